"""Sources: where rows come from, as batches of Arrow columns, before anything is known about what they mean; and what was
said of them (`Options`).

A source knows its columns and what each is made of, can be read more than once, and can say where a row stands, so that an
error can name the file and the line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from suffice.errors import DataError, SchemaError, nearest
from suffice.variables import Bins, Count, Finite, Real, declared, state_text


class Kind(Enum):
    """What the cells of a column are made of."""

    CELLS = "cells of a text file"
    TEXT = "text"
    CATEGORY = "categories"
    BOOL = "true or false"
    INTEGER = "whole numbers"
    NUMBER = "numbers"
    TIME = "dates or times"
    NOTHING = "nothing"
    OTHER = "something else"


class Source(Protocol):
    """Rows that can be read, again and again."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, in their order."""

    @property
    def stable(self) -> bool:
        """Whether the rows come in the same order each time they are read."""

    @property
    def n_rows(self) -> int | None:
        """The number of rows, where it is known without reading them."""

    def kind(self, name: str) -> Kind:
        """What a column is made of."""

    def described(self, name: str) -> str:
        """The type of a column in the words of its source."""

    def categories(self, name: str) -> Categories | None:
        """The states that the type of a column declares."""

    def n_bytes(self, names: Sequence[str]) -> int:
        """About how much memory these columns would take, encoded."""

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The rows in their order, as Arrow arrays of equal lengths. Text may come as such or as a dictionary."""

    def place(self, row: int) -> str:
        """Where the row with this number, from 0, stands: for a person."""


@dataclass(frozen=True)
class Categories:
    """States that a type declares, and whether their order is meant."""

    states: tuple[str, ...]
    ordered: bool


def checked_names(names: Iterable[object], where: str) -> tuple[str, ...]:
    """The names of columns, none of them blank and none there twice.

    >>> checked_names(["a", "a"], "x.csv")
    Traceback (most recent call last):
        ...
    suffice.errors.DataError: x.csv: the column 'a' occurs twice
    """
    result = tuple(str(n) for n in names)
    if not result:
        raise DataError(f"{where}: there are no columns")
    seen: set[str] = set()
    for i, name in enumerate(result):
        if not name.strip():
            raise DataError(f"{where}: column {i + 1} has no name")
        if name in seen:
            raise DataError(f"{where}: the column {name!r} occurs twice")
        seen.add(name)
    return result


def kind_of(arrow_type: Any) -> Kind:
    """The kind of an Arrow type.

    >>> import pyarrow
    >>> kind_of(pyarrow.int8()), kind_of(pyarrow.list_(pyarrow.int8()))
    (<Kind.INTEGER: 'whole numbers'>, <Kind.OTHER: 'something else'>)
    """
    from pyarrow import types as t

    tests = (
        (t.is_dictionary, Kind.CATEGORY),
        (t.is_boolean, Kind.BOOL),
        (t.is_integer, Kind.INTEGER),
        (t.is_floating, Kind.NUMBER),
        (t.is_decimal, Kind.NUMBER),
        (t.is_temporal, Kind.TIME),
        (t.is_null, Kind.NOTHING),
    )
    for test, kind in tests:
        if test(arrow_type):
            return kind
    text = (t.is_string, t.is_large_string, t.is_string_view, t.is_binary, t.is_large_binary, t.is_fixed_size_binary)
    return Kind.TEXT if any(test(arrow_type) for test in text) else Kind.OTHER


@contextmanager
def readable() -> Iterator[None]:
    """A file that has gone, or text that cannot be, is refused in our own words."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{error.filename or 'the data'}: cannot be read any more ({error.strerror or error})") from None
    except UnicodeError as error:
        raise DataError(f"the data hold text that is not Unicode: {error}") from None


def encoded_bytes(source: Source, names: Sequence[str], n_rows: int) -> int:
    """About how much memory columns take, encoded: one byte a state, eight a number."""
    numbers = (Kind.INTEGER, Kind.NUMBER, Kind.NOTHING)
    return n_rows * sum(8 if source.kind(n) in numbers else 1 for n in names)


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
