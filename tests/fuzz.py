"""Every reader of files, fed with broken files: each input is read, or refused by a `SufficeError` of one short printable line.

Files are broken where their parts meet: words, numbers and marks are cut, doubled, swapped, or replaced by others and by
`BITS`; files of bytes also by random bytes. All draws come from a seed, which a failure names with the number of the input.

    python -m tests.fuzz [INPUTS [SEED [READER ...]]]
"""

from __future__ import annotations

import faulthandler
import io
import json
import os
import random
import re
import signal
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import suffice as sf
from suffice.errors import LONGEST, SufficeError, SufficeNote
from suffice.formats.registry import json_of, model_in
from tests.formats.test_formats import TEXTS
from tests.models.undirected.test_markov_net import UAI as MARKOV

SECONDS = 20
"""Of the processor, for one input: more is a hang."""

BITS = (
    *(b'(){}[]"\\;,|=:<>&%#\n\0\t\r'.decode()),
    *("/*", "*/", "//", "0", "-1", "1e999", "nan", "inf", "1e308", "-0.0", "property x", "default", "table", "node", "1_0", "é"),
    *("null", "true", "{}", "[]", '""', "[[]]", '"nan"', "\x1cinf", "\ud800", "\x1b[31m", "9" * 30, "4294967296", "\u2028", ""),
    *("\\ud800", '"\\ud83d"', "1j", "'<c16'", "'O'", "L", "1,5", "1 000", "NA", "\ufeff"),
)
_PARTS = re.compile(r'"[^"\n]{0,40}"|[+-]?[0-9.]+(?:e[+-]?[0-9]+)?|\w+|\s+|[^\w\s]')


@dataclass(frozen=True)
class Reader:
    """What reads files of one kind, and whole files to begin with."""

    read: Callable[[Any], object]
    seeds: Sequence[str]

    @property
    def parts(self) -> list[list[str]]:
        return [_PARTS.findall(seed) for seed in self.seeds]


def broken(parts: Sequence[str], rng: random.Random) -> str:
    """The text of the parts, some of them cut, doubled, swapped or replaced."""
    parts = list(parts)
    for _ in range(rng.choice((1, 1, 2, 4))):
        n = len(parts)
        if not n:
            break
        i, j = rng.randrange(n), rng.randrange(n)
        match rng.randrange(8):
            case 0:
                del parts[i : i + rng.choice((1, 1, 3, 20))]
            case 1:
                parts[i] = parts[j]
            case 2:
                parts[i], parts[j] = parts[j], parts[i]
            case 3:
                parts[i:i] = parts[i : i + rng.choice((1, 3, 20))]
            case 4:
                del parts[i:]
            case 5:
                a = rng.randrange(len(parts[i]) + 1)
                parts[i] = parts[i][:a] + rng.choice(BITS) + parts[i][a + rng.randrange(2) :]
            case _:
                parts[i] = rng.choice(BITS)
    return "".join(parts)


ODD = (
    *("null", "true", "[]", "{}", '""', '"x"', '"nan"', "0", "-1", "1e308", "Infinity", "NaN", "0.5"),
    *("1180591620717411303424", "[[1]]", "[null]", '{"type": "x"}', '"\\ud800"'),
)
"""Values as JSON."""


def broken_values(content: Any, rng: random.Random) -> str:
    """JSON in which some value, at any depth, is replaced by an odd one or by another of its own, or is gone."""
    whole = content
    content = json.loads(whole)
    for again in range(rng.choice((1, 1, 2))):
        paths = _paths(content) if again else _paths_of(whole)
        if not paths:
            break
        (holder, key), (other, own) = (_place(content, rng.choice(paths)) for _ in range(2))
        match rng.randrange(4):
            case 0:
                del holder[key]
            case 1 if own in other if isinstance(other, dict) else own < len(other):
                holder[key] = json.loads(json.dumps(other[own]))
            case _:
                holder[key] = json.loads(rng.choice(ODD))
    return json.dumps(content)


def _paths(content: Any) -> list[tuple[Any, ...]]:
    """The keys and numbers that lead to each value."""
    found: list[tuple[Any, ...]] = []
    waiting: list[tuple[Any, tuple[Any, ...]]] = [(content, ())]
    while waiting:
        some, path = waiting.pop()
        keys = list(some) if isinstance(some, dict) else range(len(some)) if isinstance(some, list) else ()
        found += [(*path, key) for key in keys]
        waiting += [(some[key], (*path, key)) for key in keys]
    return found


@cache
def _paths_of(content: str) -> list[tuple[Any, ...]]:
    return _paths(json.loads(content))


def _place(content: Any, path: tuple[Any, ...]) -> tuple[Any, Any]:
    """Where a value stands: in what, and under which key or number."""
    *way, key = path
    for step in way:
        content = content[step]
    return content, key


def broken_bytes(data: bytes, rng: random.Random) -> bytes:
    """The bytes, some of them cut, doubled or replaced."""
    for _ in range(rng.choice((1, 2, 4, 8))):
        a = rng.randrange(len(data) + 1)
        b = a + rng.choice((1, 1, 4, 30))
        new = rng.choice((rng.randbytes(b - a), rng.randbytes(1), b"", b"\xff" * 4, data[a:b] * 2, bytes(4)))
        data = data[:a] + new + data[b:]
    return data


def _read_text(suffix: str, text: str) -> None:
    """The model of a text; of JSON, what was read must be fit to be written and shown."""
    model, _ = model_in(text.encode("utf-8", "ignore").decode(), suffix)
    if suffix == ".json":
        json_of(model)
        repr(model)


@cache
def _folder() -> tempfile.TemporaryDirectory[str]:
    memory = "/dev/shm"  # where there is one: so many files would take half of the time on a disk
    return tempfile.TemporaryDirectory(prefix="suffice-fuzz-", dir=memory if os.access(memory, os.W_OK) else None)


def _file(name: str, data: bytes) -> str:
    path = os.path.join(_folder().name, f"{os.getpid()}{name}")
    with open(path, "wb") as file:
        file.write(data)
    return path


def _read_rows(suffix: str, text: str | bytes) -> None:
    """The rows of a file, all of them, weighed by a column if it has one of this name."""
    path = _file(f"a{suffix}", text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    data = sf.scan(path)
    repr(data.schema)
    if "w" in data.columns and len(data.columns) > 1:
        sf.scan(path, weights="w").weight  # noqa: B018


STATISTICS = sf.gather(sf.scan({"x": ["a", "b", "a"], "y": [0.5, 1.5, 3.0]}), sf.Dag("x -> y"))


@cache
def _members() -> dict[str, bytes]:
    """The parts of a file of statistics."""
    buffer = os.path.join(_folder().name, f"{os.getpid()}seed.stats")
    STATISTICS.save(buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _read_statistics(data: bytes) -> None:
    sf.Statistics.load(_file("a.stats", data))


def _archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return buffer.getvalue()


def broken_statistics(rng: random.Random) -> bytes:
    """A file of statistics whose header, or the header or body of an array, is broken; or the whole of it."""
    members = dict(_members())
    name = rng.choice(sorted(members))
    if rng.random() < 0.2:
        return broken_bytes(_archive(members), rng)
    if name == "header.json" or rng.random() < 0.3:
        header = members["header.json"].decode()
        text = broken_values(header, rng) if rng.random() < 0.7 else broken(_PARTS.findall(header), rng)
        members["header.json"] = text.encode("utf-8", "surrogatepass")
    elif rng.random() < 0.7:
        head = members[name][10:].split(b"\n")[0].decode("latin-1")
        new = broken(_PARTS.findall(head), rng).encode("latin-1", "replace")
        members[name] = members[name][:8] + len(new).to_bytes(2, "little") + new + members[name][10 + len(head) :]
    else:
        members[name] = broken_bytes(members[name], rng)
    return _archive(members)


@cache
def _parquet() -> tuple[bytes, ...]:
    """Small Parquet files."""
    text = pa.array(["a", "b", None, "b"])
    tables = [
        pa.table({"x": text, "y": pa.array([1.5, None, 2.5, 3.0]), "n": pa.array([1, 2, 3, 4])}),
        pa.table({"x": text.dictionary_encode(), "d": pa.array([0, 1, 2, None], pa.date32())}),
    ]
    result = []
    for table in tables:
        buffer = io.BytesIO()
        pq.write_table(table, buffer, compression="none", store_schema=False)
        result.append(buffer.getvalue())
    return tuple(result)


def _json_seeds() -> dict[str, tuple[str, ...]]:
    """A small model of every kind, as JSON."""
    rows = {"x": ["a", "b", "a", "b"], "y": [0.5, 1.5, 3.0, 2.0], "z": ["u", "u", "v", "v"], "n": [1, 2, 0, 4]}
    count = {"n": sf.Count("n")}
    mixed = sf.fit("x -> y; x -> z", rows, prior=(sf.BDeu(2), sf.NormalInverseGamma()))
    glm = sf.fit("y -> n", sf.scan(rows, variables=count), families={"n": sf.regressions.PoissonLog(1.0)})
    steps = sf.sequences({"id": [1, 1, 1, 2, 2, 2], "s": list("abbaab"), "v": [1.0, 2.0, 2.5, 0.5, 1.0, 3.0]}, by="id")
    finite = {n: rows[n] for n in "xz"}
    variables = [sf.Finite("x", ["a", "b"]), sf.Finite("z", ["u", "v"])]
    crf = sf.fit(sf.LinearChain("s", [sf.Window(["v"], at=(0, -1))]), steps, penalty=sf.L2(1.0), max_iter=3)
    return {
        "json network": (json_of(mixed), json_of(glm)),
        "json chain": (json_of(sf.fit(sf.Template("s[-1] -> s -> v"), steps, prior=(sf.BDeu(1), sf.NormalInverseGamma()))),),
        "json crf": (json_of(crf),),
        "json markov net": (json_of(sf.fit(sf.Graph("x -- z"), finite, prior=sf.BDeu(1))),),
        "json gaussian": (json_of(sf.fit(sf.Graph("y -- m"), {"y": [0.5, 1.5, 3.0, 2.0, 1.0], "m": [1.0, 1.2, 2.9, 2.5, 0.3]})),),
        "json rbm": (json_of(sf.undirected.RBM(variables, [[1.0], [0.5]], [0.0, 0.1], [0.2])),),
    }


REPOSITORY = json.dumps(
    {
        "nodes": ["a", "g", "h"],
        "arcs": [["a", "g"], ["g", "h"]],
        "cpds": {
            "a": {"type": "discrete", "states": ["x", "y"], "parents": [], "parent_states": {}, "prob": [0.25, 0.75]},
            "g": {
                "type": "clg",
                "parents": ["a"],
                "discrete_parents": ["a"],
                "configs": [
                    {"given": {"a": "x"}, "coefficients": {"(Intercept)": 1.0}, "sd": 1.0},
                    {"given": {"a": "y"}, "coefficients": {"(Intercept)": 2.0}, "sd": 0.5},
                ],
            },
            "h": {"type": "gaussian", "parents": ["g"], "coefficients": {"(Intercept)": 0.5, "g": 2.0}, "sd": 1.5},
        },
    }
)
CSV = (
    'a,b,w\n1,x,1\n2,"y, z",2.5\n,x,0\n3,"q""q",1\n',
    "a;b;w\n1,5;x;1\n2,5;y;2\n0,5;x;1\n",
    "only\n1\n\n2\n",
    "a\tb\n1\tx\n2\ty\n",
)
CONLL = ("# text\n1\tthe\tDET\n2\tcat\tNOUN\n\n1\tsleep\tVERB\n", "the DET\ncat NOUN\n\nsleep VERB\n")


@cache
def readers() -> dict[str, Callable[[random.Random], Callable[[], object]]]:
    """By name: what draws a broken input, and gives what reads it."""
    texts = {**{name: (f".{name}", (text,)) for name, text in TEXTS.items()}, "uai markov": (".uai", (MARKOV,))}
    texts |= {name: (".json", seeds) for name, seeds in _json_seeds().items()}
    texts["json repository"] = (".json", (REPOSITORY,))
    models = {name: Reader(partial(_read_text, suffix), seeds) for name, (suffix, seeds) in texts.items()}
    rows = {"csv": Reader(partial(_read_rows, ".csv"), CSV), "conll": Reader(partial(_read_rows, ".conll"), CONLL)}

    def of_text(reader: Reader, is_json: bool) -> Callable[[random.Random], Callable[[], object]]:
        parts = reader.parts

        def draw(rng: random.Random) -> Callable[[], object]:
            if is_json and rng.random() < 0.7:
                return partial(reader.read, broken_values(rng.choice(reader.seeds), rng))
            return partial(reader.read, broken(rng.choice(parts), rng))

        return draw

    return {
        **{name: of_text(reader, name.startswith("json")) for name, reader in (models | rows).items()},
        "parquet": lambda rng: partial(_read_rows, ".parquet", broken_bytes(rng.choice(_parquet()), rng)),
        "stats": lambda rng: partial(_read_statistics, broken_statistics(rng)),
    }


KINDS = ("network", "chain", "crf", "markov net", "gaussian", "rbm", "repository")
NAMES = (*TEXTS, "uai markov", "csv", "conll", "parquet", "stats", *(f"json {kind}" for kind in KINDS))


@contextmanager
def _no_hang() -> Iterator[None]:
    """A hang becomes a failure, with the place where it hung."""

    def refuse(*_: object) -> None:
        raise TimeoutError(f"not read within {SECONDS} s of the processor")

    before = signal.signal(signal.SIGPROF, refuse)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _readings(draw: Callable[[random.Random], Any], seed: str) -> Iterator[tuple[int, Any]]:
    """Broken inputs without end, with their numbers. One in four breaks as an earlier one did, and is left out."""
    known: set[int] = set()
    for number in count():
        reading = draw(random.Random(f"{seed} {number}"))
        if (content := hash(reading.args[-1])) not in known:
            known.add(content)
            yield number, reading


def fuzz(name: str, inputs: int, seed: int) -> dict[str, int]:
    """Give a reader so many broken files, each once; how many were read, and how many refused. Anything else that happens is
    raised."""
    draw, told = readers()[name], {"read": 0, "refused": 0}
    with warnings.catch_warnings(), _no_hang():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SufficeNote)
        for number, reading in islice(_readings(draw, f"{name} {seed}"), inputs):
            signal.setitimer(signal.ITIMER_PROF, SECONDS)
            try:
                reading()
                told["read"] += 1
            except SufficeError as error:
                told["refused"] += 1
                message = str(error)
                assert message.isprintable(), (name, seed, number, message)
                assert len(message) <= LONGEST, (name, seed, number, message)
            except BaseException as error:
                error.add_note(f"input {number} of the reader {name!r}, seed {seed}: {reading!r}"[:2000])
                raise
    return told


def main(words: Sequence[str]) -> None:
    """The long run: a line for each reader."""
    inputs, seed = (
        int(words[0]) if words else 200_000,
        int(words[1]) if len(words) > 1 else random.SystemRandom().randrange(2**31),
    )
    faulthandler.enable()
    for name in words[2:] or NAMES:
        print(f"{name:16} seed {seed}", end="  ", flush=True)
        print(fuzz(name, inputs, seed), flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    main(sys.argv[1:])
