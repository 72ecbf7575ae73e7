"""The file of statistics: a zip of one JSON header and plain numpy arrays. Nothing in it can run.

`header.json` holds {"suffice": "statistics", "version": 1, "weight", "variables", "entries"}; each entry names its finite
and real variables, what is derived from these (`derived`, if there is any; before 0.2 `counted`, columns of which there is
ln x!), its background, and its arrays, which stand beside it as `<entry>.<array>.npy`.
"""

from __future__ import annotations

import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from suffice.errors import FormatError, SufficeError, listed
from suffice.output import replacing
from suffice.statistics.counts import Counts
from suffice.statistics.derived import DerivedColumn, log_factorials
from suffice.statistics.moments import Moments
from suffice.statistics.statistics import Entry, Statistics
from suffice.variables import Count, Finite, Real, Variable, is_whole

VERSION = 1
LONGEST_HEADER = 1000
_HEADER = re.compile(
    rb"\{ *'descr': *'(?P<type>[<>|][fiub](?P<size>[1248]))', *'fortran_order': *False, *"
    rb"'shape': *\((?P<shape>[0-9]{0,18}(?: *, *[0-9]{1,18}){0,7},?)\) *,? *\} *\n?"
)
_STEP = re.compile(r"\[-?[0-9]+\]$")
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
MOMENT_PARTS = ("keys", "count", "mean", "scatter", "df", "rest")


def save(statistics: Statistics, path: str | PathLike[str]) -> None:
    arrays: dict[str, Any] = {}
    entries = [_described(entry, str(i), arrays) for i, entry in enumerate(statistics)]
    header = {
        "suffice": "statistics",
        "version": VERSION,
        "weight": statistics.weight,
        "variables": [variable_to_dict(v) for v in statistics.variables.values()],
        "entries": entries,
    }
    with replacing(path) as place, zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(header, ensure_ascii=False))
        for name, array in arrays.items():
            buffer = io.BytesIO()
            np.lib.format.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
            archive.writestr(f"{name}.npy", buffer.getvalue())


def load(path: str | PathLike[str]) -> Statistics:
    if not Path(path).is_file():
        raise FormatError("this is a directory" if Path(path).is_dir() else "there is no such file", path=path)
    try:
        with zipfile.ZipFile(path) as archive, np.errstate(all="ignore"):
            header = json.loads(archive.read("header.json"))
            json.dumps(header, ensure_ascii=False).encode()  # half a character, which an escape can write, is refused below
            if header.get("suffice") != "statistics" or header.get("version") != VERSION:
                raise FormatError("this is not a file of statistics, or one of a later version", path=path)
            by = {d["name"]: variable_from_dict(d) for d in header["variables"]}
            entries = [_entry(d, str(i), by, archive) for i, d in enumerate(header["entries"])]
            return checked(Statistics(entries, header["weight"], by.values()))
    except FormatError as error:
        raise error.at(path) from None
    except SufficeError as error:
        raise FormatError(f"this file of statistics is damaged: {error}", path=path) from None
    except UnicodeEncodeError:
        raise FormatError("this file of statistics holds text that is not Unicode: half of a surrogate pair", path=path) from None
    except DAMAGE as error:
        raise FormatError(f"this file of statistics is damaged ({type(error).__name__}: {error})", path=path) from None


def checked(statistics: Statistics) -> Statistics:
    """Statistics from a file, which must be possible: finite, not negative, and of one and the same rows; or of steps of the same
    sequences, of which some are only of the first, or of those after the first."""
    if not (np.isfinite(statistics.weight) and statistics.weight >= 0):
        raise FormatError(f"the weight of the rows is {statistics.weight}")
    of_steps = any(_STEP.search(name) for entry in statistics for name in (*entry.names, *entry.request.real))
    for entry in statistics:
        parts = [entry.values] if isinstance(entry, Counts) else [*entry.spread, entry.df]
        what = listed([*entry.names, *entry.request.real])
        if not all(np.isfinite(part).all() for part in parts) or (parts[0] < 0).any():
            raise FormatError(f"the statistic of {what} holds negative or infinite numbers")
        if isinstance(entry, Moments) and np.any(np.einsum("gii->gi", entry.scatter) < 0):
            raise FormatError(f"the statistic of {what} holds a negative variance")
        if isinstance(entry, Moments) and _impossible_sums(entry):
            raise FormatError(f"the statistic of {what} holds a sum of ln x! that no counts have, or one that is not finite")
        lacking, most = statistics.weight - entry.total, max(statistics.weight, entry.total)
        if abs(lacking) > 1e-6 * most and not (of_steps and lacking > 0):
            raise FormatError(f"the statistic of {what} is of {entry.total:g} rows, and the whole of {statistics.weight:g}")
    return statistics


def variable_to_dict(v: Variable) -> dict[str, Any]:
    if not isinstance(v, Finite):
        return {"name": v.name, "type": "count" if is_whole(v) else "real"}
    extra = {} if v.cuts is None else {"cuts": list(v.cuts)}
    return {"name": v.name, "type": "finite", "states": list(v.states), "inferred": v.inferred, **extra}


def variable_from_dict(d: dict[str, Any]) -> Variable:
    if d["type"] == "finite":
        return Finite(d["name"], d["states"], cuts=d.get("cuts"), inferred=bool(d.get("inferred", False)))
    if d["type"] not in ("real", "count"):
        raise ValueError(f"variable {d['name']!r} has the unknown type {d['type']!r}")
    return Real(d["name"]) if d["type"] == "real" else Count(d["name"])


def _described(entry: Entry, name: str, arrays: dict[str, Any]) -> dict[str, Any]:
    d: dict[str, Any] = {"finite": list(entry.names), "real": list(entry.request.real)}
    if isinstance(entry, Counts):
        arrays[f"{name}.values"] = entry.values
        if entry.keys is not None:
            arrays[f"{name}.keys"] = entry.keys
        return {**d, "sparse": entry.keys is not None, "background": entry.background}
    for array, part in _parts(entry.derived).items():
        arrays[f"{name}.{array}"] = getattr(entry, part)
    return d | derived_to_dict(entry.derived)


def _entry(d: dict[str, Any], name: str, by: dict[str, Variable], archive: zipfile.ZipFile) -> Entry:
    finite = [by[n] for n in d["finite"]]
    variables = tuple(v for v in finite if isinstance(v, Finite))
    if len(variables) != len(finite):
        raise FormatError(f"the table of {d['finite']} names a variable without states", path=archive.filename)
    if d["real"]:
        derived = derived_from_dict(d, d.get("counted", ()))
        parts = {part: _array(archive, f"{name}.{array}") for array, part in _parts(derived).items()}
        return Moments(variables, tuple(d["real"]), **parts, derived=derived)
    keys = _array(archive, f"{name}.keys") if d["sparse"] else None
    return Counts(variables, _array(archive, f"{name}.values"), keys, float(d["background"]))


def derived_to_dict(derived: tuple[DerivedColumn, ...]) -> dict[str, Any]:
    """DerivedColumn columns as plain values; nothing where there are none."""
    return {"derived": [[d.column, d.formula, d.n] for d in derived]} if derived else {}


def derived_from_dict(d: dict[str, Any], counted: Iterable[str]) -> tuple[DerivedColumn, ...]:
    """What `derived_to_dict` wrote; older files have ln x! of the columns that are counts."""
    if "derived" not in d:
        return log_factorials(tuple(counted))
    return tuple(DerivedColumn(str(column), str(formula), float(n)) for column, formula, n in d["derived"])


def _impossible_sums(entry: Moments) -> bool:
    factorials = [d.formula == "ln x!" for d in entry.derived]
    return bool(np.isinf(entry.sums).any() or np.any(entry.sums[:, factorials] < 0))


def _parts(derived: tuple[DerivedColumn, ...]) -> dict[str, str]:
    """The arrays of moments, and their names in memory: without derived columns there is no `log_base`."""
    own = {part: part for part in MOMENT_PARTS}
    return own | {"log_base": "sums"} if derived else own


def _array(archive: zipfile.ZipFile, name: str) -> Any:
    """One array, whose size in its header must be the size of what the archive holds, before any of it is taken.

    Headers are read by our own rule, as numpy's own reader takes them for Python, and warns of some.
    """
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
