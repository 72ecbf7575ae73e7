"""Options: how the rows are to be understood, as the user said it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from suffice.engines.sources import Source
from suffice.errors import DataError, SchemaError, nearest
from suffice.variables import Bins, Count, Finite, Real, declared, state_text


@dataclass(frozen=True)
class Options:
    """Declared columns, the column of weights, the words that mean missing, what whole numbers are, how much memory to take."""

    declared: Mapping[str, Any] = field(default_factory=dict)
    weights: str | None = None
    missing: tuple[str, ...] = ()
    integers: type[Real] | type[Finite] = Real
    memory_limit: int = 2**30


def checked_variables(variables: Any, source: Source) -> dict[str, Any]:
    """Declarations by name, each of a column that is there."""
    if variables is None:
        return {}
    by_name = variables if isinstance(variables, Mapping) else _named(variables)
    names = frozenset(source.names)
    for name, what in by_name.items():
        if name not in names:
            raise DataError(f"the data have no column {name!r}, which was declared{nearest(str(name), source.names)}")
        target = what.target if isinstance(what, Bins) else None
        if target is not None and target not in names:
            raise DataError(f"the data have no column {target!r}, by which {name!r} is to be cut{nearest(target, source.names)}")
    return {name: declared(name, what) for name, what in by_name.items()}


def checked_words(missing: Iterable[object]) -> tuple[str, ...]:
    """The words that mean missing.

    >>> checked_words("NA"), checked_words(["NA", -999])
    (('NA',), ('NA', '-999'))
    """
    return (missing,) if isinstance(missing, str) else tuple(state_text(word) for word in missing)


def checked_limit(limit: int | str | None) -> int:
    """A number of bytes from a number, a text such as '2GiB', or the environment.

    >>> checked_limit("2KiB")
    2048
    """
    text = str(limit if limit is not None else os.environ.get("SUFFICE_MEMORY_LIMIT", "1GiB"))
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", text, re.IGNORECASE)
    if match is None:
        raise DataError(f"a memory limit is a number of bytes or a text such as '2GiB', not {text!r}")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def _named(variables: Iterable[Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for variable in variables:
        if not isinstance(variable, (Finite, Real, Count)):
            raise SchemaError(f"a list of variables holds Finite, Real or Count, not {variable!r}; or give a dict by column")
        result[variable.name] = variable
    return result
