"""Fingerprints of runs: what a run is of, so that a checkpoint is never gone on with by another."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import FitError, listing
from suffice.statistics import Moments, Statistics

SHORT = 60
"""Options in more words than this are not repeated in a message."""


def fingerprint(learner: str, data: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """The learner, its options, the version, and of the data the columns with the counts of their values."""
    said = {name: in_words(value) for name, value in options.items()}
    return {"learner": learner, "version": version("suffice"), "options": said, **_rows(data)}


def _rows(data: Any) -> dict[str, Any]:
    if isinstance(data, (Statistics, Moments)):
        entries = [data] if isinstance(data, Moments) else list(data)
        return {"weight": None, "columns": {listing([*e.names, *e.request.real], 9): [_digest(in_words(e)), ""] for e in entries}}
    rows = data.data if isinstance(data, Sequences) else scan(data)
    columns = {str(r["column"]): [_digest(json.dumps(r)), str(r["kind"])] for r in rows.schema.records()}
    return {"weight": repr(float(rows.weight)), "columns": columns}


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def in_words(value: Any) -> str:
    """A value of an option, whole: equal values have equal words.

    >>> from suffice import HillClimb
    >>> in_words({"a": HillClimb(restarts=3), "b": np.ones(2)})[:78]
    "{'a': HillClimb(max_parents=None, restarts=3, start=None, perturbations=None),"
    """
    if isinstance(value, np.ndarray):
        return f"array({_digest(f'{value.dtype.str}{value.shape}{value.tobytes().hex()}')})"
    if is_dataclass(value) and not isinstance(value, type):
        # what follows from other fields is neither given nor compared
        own = {f.name: getattr(value, f.name) for f in fields(value) if f.init or f.compare}
        return f"{type(value).__name__}({', '.join(f'{name}={in_words(part)}' for name, part in own.items())})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{in_words(k)}: {in_words(v)}' for k, v in value.items())}}}"
    if isinstance(value, Collection) and type(value).__iter__ in (list.__iter__, tuple.__iter__):
        return f"[{', '.join(map(in_words, value))}]"
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def differences(place: Path, then: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to go on with a checkpoint of another run, and say what differs."""
    found = [f"by {what} {then.get(key)}, not {now.get(key)}" for key, what in WHO if then.get(key) != now.get(key)]
    if then.get("learner") == now.get("learner"):
        found += _other_options(then.get("options", {}), now.get("options", {}))
    other = _other_columns(then.get("columns", {}), now.get("columns", {}))
    if then.get("weight") != now.get("weight") and not other:
        other = [f"from data of weight {then.get('weight')}, not {now.get('weight')}"]
    found += other
    if found:
        raise FitError(
            f"the checkpoint in {str(place)!r} was made {listing(found, 5, 'str')}: give another directory, or remove this one"
        )


WHO = (("learner", "the learner"), ("version", "version"))


def _other_options(then: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    found = []
    for name in dict.fromkeys([*then, *now]):
        before, after = then.get(name, "None"), now.get(name, "None")
        if before != after:
            short = max(len(before), len(after)) <= SHORT
            found.append(f"with {name} {before}, not {after}" if short else f"with another {name}")
    return found


def _other_columns(then: Mapping[str, list[str]], now: Mapping[str, list[str]]) -> list[str]:
    if set(then) != set(now):
        lost, new = [n for n in then if n not in now], [n for n in now if n not in then]
        parts = [f"with the columns {listing(lost)}"] * bool(lost) + [f"without the columns {listing(new)}"] * bool(new)
        return [f"from other data, {' and '.join(parts)}"]
    kinds = [f"from data in which {n!r} is {then[n][1]}, not {now[n][1]}" for n in then if then[n][1] != now[n][1]]
    values = [n for n in then if then[n][1] == now[n][1] and then[n][0] != now[n][0]]
    return kinds + ([f"from data with other values of {listing(values)}"] if values else [])
