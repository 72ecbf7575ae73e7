"""Derived columns: a text made of another column's cell, computed once for each distinct one."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol, runtime_checkable

from suffice.errors import ModelError, whole

RUNS = re.compile(r"(.)\1+", re.DOTALL)


def _kind(c: str) -> str:
    return "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c


ASCII = str.maketrans({chr(i): _kind(chr(i)) for i in range(128)})


@lru_cache(2**12)
def _without_runs(kinds: str) -> str:
    return RUNS.sub(r"\1", kinds)


@runtime_checkable
class DerivedColumn(Protocol):
    """What stands for a column in a `Window`."""

    @property
    def source(self) -> str:
        """The column that it is made of."""

    @property
    def name(self) -> str:
        """How its attributes are called."""

    def of(self, cell: str) -> str:
        """What a cell becomes."""

    def each(self, cells: Sequence[str]) -> list[str]:
        """What each of some cells becomes."""


@dataclass(frozen=True)
class OfColumn:
    """What is made of one column."""

    column: str

    @property
    def source(self) -> str:
        return self.column

    @property
    def name(self) -> str:
        return f"{type(self).__name__.lower()}({self.column})"

    def each(self, cells: Sequence[str]) -> list[str]:
        """What each of some cells becomes."""
        raise NotImplementedError

    def of(self, cell: str) -> str:
        """What a cell becomes."""
        return self.each([cell])[0]


@dataclass(frozen=True)
class EndOfColumn(OfColumn):
    """So many characters of a cell, from one of its ends."""

    length: int

    def __post_init__(self) -> None:
        whole(self.length, f"the length of a {type(self).__name__.lower()}", 1)

    @property
    def name(self) -> str:
        return f"{type(self).__name__.lower()}{self.length}({self.column})"


@dataclass(frozen=True)
class Suffix(EndOfColumn):
    """The last characters of a cell; all of it where it is shorter.

    >>> Suffix("word", 3).of("walking"), Suffix("word", 3).name
    ('ing', 'suffix3(word)')
    """

    def each(self, cells: Sequence[str]) -> list[str]:
        return [cell[-self.length :] for cell in cells]


@dataclass(frozen=True)
class Prefix(EndOfColumn):
    """The first characters of a cell; all of it where it is shorter.

    >>> Prefix("word", 2).of("undone")
    'un'
    """

    def each(self, cells: Sequence[str]) -> list[str]:
        return [cell[: self.length] for cell in cells]


@dataclass(frozen=True)
class Shape(OfColumn):
    """The kinds of characters: X for upper case, x for lower case, d for digits, others themselves; runs of one become one.

    >>> Shape("word").of("McDonald's-1999")
    "XxXx'x-d"
    """

    def of(self, cell: str) -> str:
        kinds = cell.translate(ASCII) if cell.isascii() else "".join(map(_kind, cell))
        return _without_runs(kinds)

    def each(self, cells: Sequence[str]) -> list[str]:
        together = "\0".join(cell if cell.isascii() else "" for cell in cells)
        if together.count("\0") >= len(cells):  # a cell has one, too
            return list(map(self.of, cells))
        shapes = map(_without_runs, together.translate(ASCII).split("\0"))
        return [shape if cell.isascii() else self.of(cell) for cell, shape in zip(cells, shapes, strict=True)]


@dataclass(frozen=True)
class Lower(OfColumn):
    """The cell in lower case.

    >>> Lower("word").of("The")
    'the'
    """

    def each(self, cells: Sequence[str]) -> list[str]:
        return [cell.lower() for cell in cells]


@dataclass(frozen=True)
class Derived:
    """A function of one's own: a text of a text. Files and pickles keep its name only, and no function: a model that was read
    needs the column `name` in the rows that it is asked about.

    >>> Derived("length", "word", lambda word: str(len(word))).of("cat")
    '3'
    """

    name: str
    column: str
    function: Callable[[str], str] | None = None

    def __post_init__(self) -> None:
        if self.function is not None and not callable(self.function):
            raise ModelError(f"Derived({self.name!r}, {self.column!r}, ...) takes a function of a cell, not {self.function!r}")

    @property
    def source(self) -> str:
        return self.name if self.function is None else self.column

    def of(self, cell: str) -> str:
        if self.function is None:
            return cell
        result = self.function(cell)
        if not isinstance(result, str):
            raise ModelError(f"the function of {self.name!r} gives {result!r} for {cell!r}; it must give a text")
        return result

    def each(self, cells: Sequence[str]) -> list[str]:
        return list(map(self.of, cells))

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "column": self.column, "function": None}
