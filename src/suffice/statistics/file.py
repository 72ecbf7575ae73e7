"""The file of statistics: a zip of one JSON header and two plain numpy arrays; and what JSON has of them. Nothing in it can run.

`header.json` holds {"suffice": "statistics", "version": 2, "weight", "variables", "entries"}; each entry names its finite
and real variables, what is derived from these (`derived`, if there is any; before 0.2
`counted`, columns of which there is ln x!), its background, and how many cells or
configurations are `listed` of a sparse table or of moments. `numbers.npy` has the numbers of all entries one after the other,
`keys.npy` the keys of those that have some. In version 1 each array stood by itself, as `<entry>.<array>.npy`.
"""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.output.files import replacing
from suffice.basis.variables import Finite, Variable, variable_from_dict, variable_to_dict
from suffice.errors import FormatError, SufficeError, listing
from suffice.statistics.counts import Counts, RowFormula, log_factorials, sizes
from suffice.statistics.moments import Moments
from suffice.statistics.suppression import NOTHING, Entry, Suppression

LONGEST_HEADER = 1000
_HEADER = re.compile(
    rb"\{ *'descr': *'(?P<type>[<>|][fiub](?P<size>[1248]))', *'fortran_order': *False, *"
    rb"'shape': *\((?P<shape>[0-9]{0,18}(?: *, *[0-9]{1,18}){0,7},?)\) *,? *\} *\n?"
)
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
)
"""What the libraries raise when the bytes of an archive are not what they should be."""


def write_archive(
    path: str | PathLike[str], header: Any, arrays: Mapping[str, Any], *, small: bool = True, lasting: bool = False
) -> None:
    """Write the header and the arrays: `small` compresses them, `lasting` waits until they are on the disk."""
    how = zipfile.ZIP_DEFLATED if small else zipfile.ZIP_STORED
    with replacing(path, lasting=lasting) as place, zipfile.ZipFile(place, "w", how) as archive:
        archive.writestr("header.json", json.dumps(header, ensure_ascii=False, default=np.generic.item))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getbuffer())


def header_of(archive: zipfile.ZipFile) -> Any:
    """The header. Half a character, which an escape can write, is refused."""
    text = archive.read("header.json").decode()
    header = json.loads(text)
    if "\\u" in text:
        json.dumps(header, ensure_ascii=False).encode()
    return header


def archived_array(archive: zipfile.ZipFile, name: str) -> Any:
    """One array, whose size in its header must be the size of what the archive holds, before any of it is taken. Headers are read
    by our own rule, as numpy's own reader takes them for Python, and warns of some."""
    info = archive.getinfo(f"{name}.npy")
    with archive.open(info) as stream:
        start = stream.read(8)
        width = {b"\x93NUMPY\x01\x00": 2, b"\x93NUMPY\x02\x00": 4}.get(start, 0)
        size = int.from_bytes(stream.read(width), "little")
        header = _HEADER.fullmatch(stream.read(size)) if 0 < size <= LONGEST_HEADER else None
        shape = () if header is None else tuple(int(n) for n in header["shape"].split(b",") if n.strip())
        body = info.file_size - len(start) - width - size
        if header is None or math.prod(shape) * int(header["size"]) != body:
            raise FormatError(f"the array {name!r} is not what its header says", path=archive.filename)
        dtype = np.dtype(header["type"].decode())
        return np.frombuffer(stream.read(), dtype).astype(dtype.newbyteorder("=")).reshape(shape)


VERSION = 2
_STEP = re.compile(r"\[-?[0-9]+\]$")
MOMENT_PARTS = ("keys", "count", "mean", "scatter", "df", "rest")


class StatisticsParts(NamedTuple):
    """What `Statistics` are made of."""

    entries: Sequence[Entry]
    weight: float
    variables: Iterable[Variable]
    suppression: Suppression | None


@dataclass(frozen=True, eq=False)
class Contents:
    """What a file holds: the `layout` of its tables, the weight of the rows, and all numbers in two flat arrays. Files of the
    same graph have equal layouts, unless one has met other states, so that their numbers add as they stand."""

    layout: dict[str, Any]
    weight: float
    numbers: Array
    keys: Ints
    lost: list[Any] | None = None
    """What each table lost, where small cells were left out."""

    @staticmethod
    def of(parts: StatisticsParts) -> Contents:
        arrays: list[Any] = []
        keys: list[Any] = []
        entries, variables = [_describe(e, arrays, keys) for e in parts.entries], [variable_to_dict(v) for v in parts.variables]
        said = {} if parts.suppression is None else parts.suppression.to_dict(parts.entries)
        lost = said.pop("lost", None)
        return Contents({"variables": variables, "entries": entries, **said}, parts.weight, *_join(arrays, keys), lost)

    def parts(self) -> StatisticsParts:
        """What the statistics are made of that the file holds, if they are possible."""
        by = {d["name"]: variable_from_dict(d) for d in self.layout["variables"]}
        left: dict[str, Any] = {"keys": self.keys, "numbers": self.numbers}

        def take(part: str, shape: Sequence[int]) -> Any:
            """The next array of an entry, which may not be longer than what is left."""
            kind, n = "keys" if part == "keys" else "numbers", math.prod(shape)
            if not 0 <= n <= len(left[kind]):
                raise FormatError(f"the array {kind!r} is not what its header says: it is too short for the tables")
            taken, left[kind] = left[kind][:n], left[kind][n:]
            return taken.reshape(shape)

        entries = [_entry(d, by, take) for d in self.layout["entries"]]
        for kind, rest in left.items():
            if len(rest):
                raise FormatError(f"the array {kind!r} is not what its header says: {len(rest):,} numbers belong to no table")
        suppression = Suppression.from_dict({**self.layout, "lost": self.lost}, entries)
        return checked_parts(entries, float(self.weight), by.values(), suppression)

    def write(self, path: str | PathLike[str]) -> None:
        lost = {} if self.lost is None else {"lost": self.lost}
        header = {"suffice": "statistics", "version": VERSION, "weight": self.weight, **self.layout, **lost}
        write_archive(path, header, {"numbers": self.numbers, "keys": self.keys})

    @staticmethod
    def read(path: str | PathLike[str]) -> Contents:
        """What is in a file, of any version; what it says is checked when statistics are made of it."""
        with reading(path), zipfile.ZipFile(path) as archive:
            header: dict[str, Any] = header_of(archive)
            if header.get("suffice") != "statistics" or header.get("version") not in (1, VERSION):
                raise FormatError("this is not a file of statistics, or one of a later version", path=archive.filename)
            if header.get("version") == 1:
                return _first_version(header, archive)
            layout: dict[str, Any] = {k: header[k] for k in ("variables", "entries", "min_count") if k in header}
            numbers, keys = (archived_array(archive, name) for name in ("numbers", "keys"))
            return Contents(layout, header["weight"], numbers, keys, header.get("lost"))


@contextmanager
def reading(path: str | PathLike[str]) -> Iterator[None]:
    """Whatever is wrong with a file is said in one sentence that names it."""
    if not Path(path).is_file():
        raise FormatError("this is a directory" if Path(path).is_dir() else "there is no such file", path=path)
    try:
        with np.errstate(all="ignore"):
            yield
    except FormatError as error:
        raise error.at(path) from None
    except SufficeError as error:
        raise FormatError(f"this file of statistics is damaged: {error}", path=path) from None
    except UnicodeEncodeError:
        raise FormatError("this file of statistics holds text that is not Unicode: half of a surrogate pair", path=path) from None
    except DAMAGE as error:
        raise FormatError(f"this file of statistics is damaged ({type(error).__name__}: {error})", path=path) from None


def _first_version(header: dict[str, Any], archive: zipfile.ZipFile) -> Contents:
    """What a file of version 1 says, in which each array is a member of the archive."""
    by = {d["name"]: variable_from_dict(d) for d in header["variables"]}
    arrays: list[Any] = []
    keys: list[Any] = []

    def take(i: int, part: str, shape: Sequence[int]) -> Any:
        return archived_array(archive, f"{i}.{part}")

    entries = [_describe(_entry(d, by, partial(take, i)), arrays, keys) for i, d in enumerate(header["entries"])]
    return Contents({"variables": header["variables"], "entries": entries}, header["weight"], *_join(arrays, keys))


def _join(arrays: list[Any], keys: list[Any]) -> tuple[Array, Ints]:
    """All numbers in one array, and all keys in another."""
    numbers, places = (np.concatenate([np.zeros(0, t), *map(np.ravel, parts)]) for t, parts in ((float, arrays), (int, keys)))
    return numbers, places


def checked_parts(
    entries: Sequence[Entry], weight: float, variables: Iterable[Variable], suppression: Suppression | None
) -> StatisticsParts:
    """Statistics from a file, which must be possible: finite, not negative, and of one and the same rows; or of steps of the same
    sequences, of which some are only of the first, or of those after the first."""
    if not (np.isfinite(weight) and weight >= 0):
        raise FormatError(f"the weight of the rows is {weight}")
    of_steps = any(_STEP.search(name) for entry in entries for name in (*entry.names, *entry.request.real))
    for entry in entries:
        arrays = [entry.values] if isinstance(entry, Counts) else [*entry.spread, entry.df]
        what = listing([*entry.names, *entry.request.real])
        if not all(np.isfinite(array).all() for array in arrays) or (arrays[0] < 0).any():
            raise FormatError(f"the statistic of {what} holds negative or infinite numbers")
        if isinstance(entry, Moments) and np.any(np.einsum("gii->gi", entry.scatter) < 0):
            raise FormatError(f"the statistic of {what} holds a negative variance")
        factorials = [d.formula == "ln x!" for d in entry.derived] if isinstance(entry, Moments) else []
        if isinstance(entry, Moments) and (np.isinf(entry.sums).any() or np.any(entry.sums[:, factorials] < 0)):
            raise FormatError(f"the statistic of {what} holds a sum of ln x! that no counts have, or one that is not finite")
        lacking, most = weight - entry.total, max(weight, entry.total)
        lost = NOTHING if suppression is None else suppression.of(entry)
        beyond = max(lost.least_weight - lacking, lacking - lost.most_weight)
        if beyond > 1e-6 * most and not (of_steps and lacking > 0):
            raise FormatError(f"the statistic of {what} is of {entry.total:g} rows, and the whole of {weight:g}")
    return StatisticsParts(entries, weight, variables, suppression)


def _describe(entry: Entry, arrays: list[Any], keys: list[Any]) -> dict[str, Any]:
    d: dict[str, Any] = {"finite": list(entry.names), "real": list(entry.request.real)}
    if isinstance(entry, Counts):
        arrays.append(entry.values)
        d |= {"sparse": entry.keys is not None, "background": entry.background}
    else:
        arrays += [getattr(entry, part) for part in _parts(entry.derived).values() if part != "keys"]
        d |= derived_to_dict(entry.derived)
    if entry.keys is None:
        return d
    keys.append(entry.keys)
    return {**d, "listed": len(entry.keys)}


def _entry(d: dict[str, Any], by: dict[str, Variable], take: Callable[[str, Sequence[int]], Any]) -> Entry:
    finite = [by[n] for n in d["finite"]]
    variables = tuple(v for v in finite if isinstance(v, Finite))
    if len(variables) != len(finite):
        raise FormatError(f"the table of {d['finite']} names a variable without states")
    n, k = d.get("listed", 0), len(d["real"])
    if k:
        derived = derived_from_dict(d, d.get("counted", ()))
        shapes = {"mean": (n, k), "rest": (n, k), "scatter": (n, k, k), "log_base": (n, len(derived))}
        parts = {part: take(array, shapes.get(array, (n,))) for array, part in _parts(derived).items()}
        return Moments(variables, tuple(d["real"]), **parts, derived=derived)
    keys = take("keys", (n,)) if d["sparse"] else None
    return Counts(variables, take("values", (n,) if d["sparse"] else sizes(variables)), keys, float(d["background"]))


def derived_to_dict(derived: tuple[RowFormula, ...]) -> dict[str, Any]:
    """RowFormula columns as plain values; nothing where there are none."""
    return {"derived": [[d.column, d.formula, d.n] for d in derived]} if derived else {}


def derived_from_dict(d: dict[str, Any], counted: Iterable[str]) -> tuple[RowFormula, ...]:
    """What `derived_to_dict` wrote; older files have ln x! of the columns that are counts."""
    if "derived" not in d:
        return log_factorials(tuple(counted))
    return tuple(RowFormula(str(column), str(formula), float(n)) for column, formula, n in d["derived"])


def _parts(derived: tuple[RowFormula, ...]) -> dict[str, str]:
    """The arrays of moments, and their names in memory: without derived columns there is no `log_base`."""
    own = {part: part for part in MOMENT_PARTS}
    return own | {"log_base": "sums"} if derived else own
