"""Linear chains of labels beside crfsuite: iterations, the same objective at the same iteration, encoding, tagging, margins,
and sequences that are kept outside memory.

Process time, so that other work on the machine matters less; ratios are of the same run. An iteration is the difference of many
and one, over their number, so that reading and encoding are not in it. Two threads go by the clock, which other work lengthens:
`python benchmarks/crf.py threads` on an idle machine. Other words: encoding, ner, xpos, upos (and tagging), margins, spill.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pycrfsuite

import suffice as sf
from timing import SHARED

warnings.simplefilter("ignore")
ITERATIONS, ROUNDS = 31, 2
WORD = [sf.Window(["word", sf.labels.Suffix("word", 3), sf.labels.Shape("word")]), sf.Window(["word"], at=(-1, 1))]
ENTITY = [
    sf.Window(
        [
            "word",
            sf.labels.Lower("word"),
            sf.labels.Suffix("word", 3),
            sf.labels.Suffix("word", 2),
            sf.labels.Shape("word"),
            sf.labels.Prefix("word", 2),
        ],
        (-1, 0, 1),
    )
]


def rows(part: str) -> dict[str, Any]:
    table = sf.labels.read_conll(SHARED / "sequences" / f"en_ewt-{part}.tsv.gz", ["word", "upos", "xpos"]).to_pydict()
    kinds = sorted(set(table["upos"]))
    return {**table, "kind": [f"k{kinds.index(t) // 2}" for t in table["upos"]]}  # nine labels, as of entities


def sequences(table: dict[str, Any], label: str) -> sf.chains.Sequences:
    return sf.sequences({n: table[n] for n in ("sentence", "word", label)}, by="sentence")


def lists(table: dict[str, Any], features: list[sf.Window], label: str) -> list[tuple[list[list[str]], list[str]]]:
    """What crfsuite takes: texts for each word."""
    places = sf.LinearChain(label, features).places
    known: dict[Any, dict[str, str]] = {p.column: {w: p.column.of(w) for w in set(table["word"])} for p in places}
    result = []
    for first, last in pairwise(np.flatnonzero(np.diff(table["sentence"], prepend=-1, append=-1)).tolist()):
        words, n = table["word"][first:last], last - first
        cells = [["bias", *(f"{p.name}={_at(words, i + p.offset, n, known[p.column])}" for p in places)] for i in range(n)]
        result.append((cells, table[label][first:last]))
    return result


def _at(words: list[str], i: int, n: int, known: dict[str, str]) -> str:
    return "<s>" if i < 0 else "</s>" if i >= n else known[words[i]]


def process_seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def crfsuite(data: list[Any], n: int, path: Path) -> Any:
    trainer = pycrfsuite.Trainer(verbose=False)
    for cells, labels in data:
        trainer.append(cells, labels)
    trainer.set_params({"c1": 0.0, "c2": 1.0, "max_iterations": n})
    seconds, _ = process_seconds(lambda: trainer.train(str(path)))
    return seconds, [step["loss"] for step in trainer.logparser.iterations]


def ours(chain: sf.LinearChain, data: sf.chains.Sequences, n: int, threads: int) -> Any:
    seconds, crf = process_seconds(lambda: sf.fit(chain, data, penalty=sf.L2(1), max_iter=n, threads=threads))
    return seconds, crf


def iterations(what: str, label: str, features: list[sf.Window], place: Path) -> sf.Crf:
    table, chain = rows("train"), sf.LinearChain(label, features)
    data, held = lists(table, features, label), sequences(table, label)
    ours(chain, held, 1, 1)
    times: dict[str, list[float]] = {"ours": [], "crfsuite": []}
    for _ in range(ROUNDS):
        (one, _), (many, losses) = crfsuite(data, 1, place), crfsuite(data, ITERATIONS, place)
        times["crfsuite"].append((many - one) / (ITERATIONS - 1))
        (one, _), (many, crf) = ours(chain, held, 1, 1), ours(chain, held, ITERATIONS, 1)
        times["ours"].append((many - one) / (ITERATIONS - 1))
    own, peer = (float(np.median(times[n])) for n in ("ours", "crfsuite"))
    print(
        f"{what} ({len(crf.labels)} labels, {crf.n_weights:,} weights): {own:.3f} s an iteration, crfsuite {peer:.3f} s = "
        f"{peer / own:.1f}x (wanted 2x: {'met' if peer >= 2 * own else 'MISSED'})"
    )
    for n in range(10, ITERATIONS, 10):
        mine, theirs = crf.run.trace[n].objective, losses[n - 1]
        print(
            f"  iteration {n}: {mine:,.4f}, crfsuite {theirs:,.4f} ({'no higher' if mine <= theirs * (1 + 1e-9) else 'HIGHER'})"
        )
    return crf


def threads(what: str, label: str, features: list[sf.Window], place: Path) -> None:
    """By the clock: one thread, two, crfsuite; in turn, and of each the least."""
    table, chain = rows("train"), sf.LinearChain(label, features)
    data, held = lists(table, features, label), sequences(table, label)
    ours(chain, held, 1, 1)
    times: dict[str, list[float]] = {"one": [], "two": [], "crfsuite": []}
    weights = {}
    for _ in range(ROUNDS):
        for name, n in (("one", 1), ("two", 2)):
            crf = ours(chain, held, ITERATIONS, n)[1]
            trace, weights[name] = crf.run.trace, crf.weight_vector
            times[name].append((trace[-1].seconds - trace[1].seconds) / (len(trace) - 2))
        clocks = []
        for n in (1, ITERATIONS):
            start = time.perf_counter()
            crfsuite(data, n, place)
            clocks.append(time.perf_counter() - start)
        times["crfsuite"].append((clocks[1] - clocks[0]) / (ITERATIONS - 1))
    one, two, peer = (min(times[n]) for n in ("one", "two", "crfsuite"))
    print(
        f"{what} by the clock: one thread {one:.3f} s an iteration, two {two:.3f} s = {one / two:.2f}x, crfsuite {peer:.3f} s = "
        f"{peer / one:.1f}x and {peer / two:.1f}x (wanted 3.5x: {'met' if peer >= 3.5 * two else 'MISSED'}), "
        f"the same bits: {np.array_equal(weights['one'], weights['two'])}; load {os.getloadavg()[0]:.1f}"
    )


def encoding() -> None:
    from suffice.learning.crf.fit import open_columns
    from suffice.learning.crf.problem import LabelProblem

    table, chain = rows("train"), sf.LinearChain("upos", WORD)
    seconds, problem = process_seconds(lambda: LabelProblem.of(chain, open_columns(chain, sequences(table, "upos")), threads=1))
    size = sum(whole.n_bytes for whole, _ in problem.blocks()) / problem.sequences.n_steps
    print(f"encoding {problem.sequences.n_steps:,} words from a frame: {seconds:.2f} s (wanted 1.5 s), {size:.0f} bytes a word")


def tagging(crf: sf.Crf, label: str, place: Path) -> None:
    """From a frame to labels, beside the tagger alone, which is given texts; and beside it with the texts that it needs."""
    tagger = pycrfsuite.Tagger()
    tagger.open(str(place))
    for part in ("test", "train"):
        table = rows(part)
        frame = pa.table({n: table[n] for n in ("sentence", "word")})
        times: list[list[float]] = [[], [], []]
        crf.predict(sf.sequences(frame, by="sentence"))
        for _ in range(5):
            seconds, cells = process_seconds(lambda some=table: [c for c, _ in lists(some, WORD, label)])
            times[0].append(seconds)
            times[1].append(process_seconds(lambda some=cells: [tagger.tag(c) for c in some])[0])
            times[2].append(process_seconds(lambda some=frame: crf.predict(sf.sequences(some, by="sentence")))[0])
        texts, tag, own = (float(np.median(t)) for t in times)
        print(
            f"tagging {len(table['word']):,} words from a frame: {own:.3f} s; crfsuite with {texts:.3f} s for its texts and "
            f"{tag:.3f} s for labels = {(tag + texts) / own:.1f}x (wanted 3x); its tagger alone = {tag / own:.1f}x"
        )


def margins() -> None:
    data, test, chain = sequences(rows("dev"), "upos"), sequences(rows("test"), "upos"), sf.LinearChain("upos", WORD)
    for objective, penalty in ((sf.objectives.Perceptron("upos"), None), (sf.Margin("upos"), sf.L2(1))):
        seconds, crf = process_seconds(partial(sf.fit, chain, data, objective=objective, penalty=penalty))
        right, passes = crf.evaluate(test).n_right, len(crf.run.trace)
        print(f"{objective!r} on en_ewt-dev: {passes} passes, {seconds:.1f} s, {right:,} right of test; {crf.run!r}")


SPILL = """
import sys, time, warnings
import suffice as sf
warnings.simplefilter("ignore")
start, words = time.process_time(), [sf.Window(["word", sf.labels.Suffix("word", 3)]), sf.Window(["word"], at=(-1, 1))]
rows = sf.sequences(sys.argv[1], by="sentence", memory_limit=sys.argv[2])
crf = sf.fit(sf.LinearChain("tag", words, min_count=2), rows, penalty=sf.L2(1), max_iter=4, threads=1)
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(f"{rows.n_steps:,} words, memory limit {sys.argv[2]}: {crf.n_weights:,} weights, objective {crf.run.objective!r}, "
      f"peak {int(peak) / 1024:.0f} MB, {time.process_time() - start:.1f} s")
"""


def spill(n: int = 2_000_000) -> None:
    """Peak memory of a fit from a file, in a process of its own (Linux), with and without room for the encoded sequences."""
    rng, n_kinds = np.random.default_rng(0), 50_000
    word = np.minimum(rng.zipf(1.3, n), n_kinds) - 1
    tag = np.where(rng.random(n) < 0.9, rng.integers(0, 17, n_kinds)[word], rng.integers(0, 17, n))
    sentence = np.cumsum(rng.random(n) < 1 / 17)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "words.parquet"
        pq.write_table(pa.table({"sentence": sentence, "word": np.char.mod("w%d", word), "tag": np.char.mod("t%d", tag)}), path)
        for limit in ("2 GB", "10 MB"):
            subprocess.run([sys.executable, "-c", SPILL, str(path), limit], check=True)


def main(words: list[str]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / "model"
        parts: dict[str, Callable[[], Any]] = {
            "encoding": encoding,
            "ner": lambda: iterations("NER-like, 19 attributes", "kind", ENTITY, place),
            "xpos": lambda: iterations("XPOS", "xpos", WORD, place),
            "upos": lambda: tagging(iterations("UPOS", "upos", WORD, place), "upos", place),
            "threads": lambda: [threads("UPOS", "upos", WORD, place), threads("NER-like", "kind", ENTITY, place)],
            "margins": margins,
            "spill": spill,
        }
        for word in words or parts:
            parts[word]()


if __name__ == "__main__":
    main(sys.argv[1:])
