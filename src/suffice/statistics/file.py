"""The file of statistics: a zip of one JSON header and plain numpy arrays. Nothing in it can run.

`header.json` holds {"suffice": "statistics", "version": 1, "weight", "variables", "entries"}; each entry names its finite
and real variables, those of the latter that are counts (`counted`, if there are any), its background, and its arrays, which
stand beside it as `<entry>.<array>.npy`.
"""

from __future__ import annotations

import re
import zipfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from suffice.errors import FormatError, SufficeError, listed
from suffice.statistics.archive import DAMAGE, array_of, header_of, write_archive
from suffice.statistics.counts import Counts
from suffice.statistics.moments import Moments
from suffice.statistics.statistics import Entry, Statistics
from suffice.variables import Count, Finite, Real, Variable

VERSION = 1
_STEP = re.compile(r"\[-?[0-9]+\]$")
MOMENT_PARTS = ("keys", "count", "mean", "scatter", "df", "rest", "log_base")


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
    write_archive(path, header, arrays)


def load(path: str | PathLike[str]) -> Statistics:
    if not Path(path).is_file():
        raise FormatError("this is a directory" if Path(path).is_dir() else "there is no such file", path=path)
    try:
        with zipfile.ZipFile(path) as archive, np.errstate(all="ignore"):
            header = header_of(archive)
            if header.get("suffice") != "statistics" or header.get("version") != VERSION:
                raise FormatError("this is not a file of statistics, or one of a later version", path=path)
            by = {d["name"]: variable_from_dict(d) for d in header["variables"]}
            entries = [_entry(d, str(i), by, archive) for i, d in enumerate(header["entries"])]
            return checked(Statistics(entries, header["weight"]))
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
        if isinstance(entry, Moments) and (np.any(entry.log_base < 0) or np.isinf(entry.log_base).any()):
            raise FormatError(f"the statistic of {what} holds a sum of ln x! that no counts have")
        lacking, most = statistics.weight - entry.total, max(statistics.weight, entry.total)
        if abs(lacking) > 1e-6 * most and not (of_steps and lacking > 0):
            raise FormatError(f"the statistic of {what} is of {entry.total:g} rows, and the whole of {statistics.weight:g}")
    return statistics


def variable_to_dict(v: Variable) -> dict[str, Any]:
    if not isinstance(v, Finite):
        return {"name": v.name, "type": type(v).__name__.lower()}
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
    for part in _parts(entry.counted):
        arrays[f"{name}.{part}"] = getattr(entry, part)
    return {**d, "counted": list(entry.counted)} if entry.counted else d


def _entry(d: dict[str, Any], name: str, by: dict[str, Variable], archive: zipfile.ZipFile) -> Entry:
    finite = [by[n] for n in d["finite"]]
    variables = tuple(v for v in finite if isinstance(v, Finite))
    if len(variables) != len(finite):
        raise FormatError(f"the table of {d['finite']} names a variable without states", path=archive.filename)
    if d["real"]:
        counted = tuple(d.get("counted", ()))
        parts = {part: array_of(archive, f"{name}.{part}") for part in _parts(counted)}
        return Moments(variables, tuple(d["real"]), **parts, counted=counted)
    keys = array_of(archive, f"{name}.keys") if d["sparse"] else None
    return Counts(variables, array_of(archive, f"{name}.values"), keys, float(d["background"]))


def _parts(counted: tuple[str, ...]) -> tuple[str, ...]:
    """The arrays of moments: without counts there is no `log_base`."""
    return MOMENT_PARTS if counted else MOMENT_PARTS[:-1]
