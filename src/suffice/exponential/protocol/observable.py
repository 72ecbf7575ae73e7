"""What every distribution here is: a frozen value, known by its fields, that learns from rows (`Observable`)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, MissingCells, listing, nearest, quantity, whole
from suffice.exponential.arithmetic.values import Array, Outside, between, keep, same, show, summary, table
from suffice.variables import Finite, Variable


class Value:
    """A frozen value that is known by its fields: how it is compared and shown.

    It is a `@dataclass(frozen=True, eq=False, repr=False)` whose fields are its parameters and known constants.
    """

    names: ClassVar[tuple[str, ...]] = ()
    """The fields that are parameters, not known constants; None where they are left out."""
    support: ClassVar[str] = "numbers"
    """What x may be, in words, for a refusal."""

    @property
    def _title(self) -> str:
        return type(self).__name__

    @property
    def _known(self) -> dict[str, Any]:
        """The fields that are given, by name."""
        known = {f.name: getattr(self, f.name) for f in fields(self) if f.repr}  # type: ignore[arg-type]
        return {name: value for name, value in known.items() if value is not None}

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        mine, yours = self._known, other._known
        return mine.keys() == yours.keys() and all(same(value, yours[name]) for name, value in mine.items())

    def __hash__(self) -> int:
        return hash((type(self), str(self._known)))

    def __repr__(self) -> str:
        return f"{self._title}({', '.join(f'{name}={show(value)}' for name, value in self._known.items())})"

    def _repr_html_(self) -> str:
        given = self._known
        of, states = given.pop("of", None), given.pop("states", None)
        if any(name not in given for name in self.names):
            return table({**given, "x": self.support}, self._title)
        title = self._title if of is None else f"{self._title} of {of!r}"
        return summary(self, given, title, states or getattr(of, "states", None) or ())


class Observable(Value):
    """A distribution of x that learns from rows: what an exponential family has in common with the uniform density."""

    event_axes: ClassVar[int] = 0
    """How many axes one x has: 0 for a number, 1 for a vector."""

    def __post_init__(self) -> None:
        """Each parameter inside its bounds, and all of them of one shape; or all left out."""
        given = {name: getattr(self, name) for name in self.names}
        keep(self, **{name: None if value is None else self._check_parameter(name, value) for name, value in given.items()})

    def _check_parameter(self, name: str, value: Any) -> Array:
        """A parameter, if it is within its bounds: here, if it is positive."""
        return between(value, self._name_of(name), 0.0, open=True)

    def _name_of(self, name: str) -> str:
        """What a parameter is called in a refusal."""
        return f"{'the ' if len(name) > 1 else ''}{name} of {self._title}"

    @property
    def bare(self) -> Self:
        """The same family without parameters: what a statistic belongs to."""
        of: dict[str, Any] = {"of": None} if any(f.name == "of" for f in fields(self)) else {}  # type: ignore[arg-type]
        return replace(self, **dict.fromkeys(self.names), **of)  # type: ignore[type-var]

    def gather(self, data: Any, column: str | Sequence[str], *, threads: int | None = None) -> Any:
        """The statistic of a column of some `Data`, as `scan` gives it, in one pass that never holds all rows.

        A family of vectors takes a list of columns, one for each component.
        """
        if not hasattr(data, "fold"):
            path = repr(os.fspath(data)) if isinstance(data, (str, os.PathLike)) else "rows"
            call = f"ef.{self.bare!r}.gather(sf.scan({path}), {column!r})"
            raise DataError(f"gather reads what scan gives: {call}; not {type(data).__name__}")
        if isinstance(column, str) == bool(self.event_axes):
            wanted = "a list of columns, one for each component" if self.event_axes else "the name of one column"
            raise DataError(f"{self._title} is gathered from {wanted}, not from {column!r}")
        columns = (column,) if isinstance(column, str) else tuple(column)
        rows = complete(data, columns, self._title)
        step = Gathering(self, columns, [self._meaning(rows.schema[name]) for name in columns])
        try:
            return rows.fold(step, threads=threads)
        except Outside as wrong:  # a row that is refused is named by its place in the data
            raise DataError(f"{wrong.before} {rows.place(wrong.number, wrong.row)} {wrong.after}") from None

    def _meaning(self, variable: Variable) -> npt.NDArray[Any] | None:
        """The x that each code of a finite column stands for; None where the cells are x themselves."""
        if isinstance(variable, Finite):
            raise DataError(
                f"{self._title} is about {self.support}, and {variable.name!r} has the states {listing(variable.states)}; "
                "declare it Count or Real where its states are numbers"
            )
        return None


def complete(data: Any, columns: Sequence[str], title: str) -> Any:
    """The data of these columns alone, refused where one is not there, has missing cells, or no rows at all."""
    for name in columns:
        if name not in data.columns:
            hint = nearest(str(name), data.columns) or f"; there are {listing(data.columns)}"
            raise DataError(f"there is no column {name!r}{hint}")
    rows = data.take(columns).with_numbers(columns)
    missing = {name: n for name, n in rows.missing.items() if n}
    if missing:
        found = ", ".join(f"{n:,} in {name!r}" for name, n in missing.items())
        raise MissingCells(
            f"{title} needs a value in every row, and there are missing cells ({found}, of {quantity(rows.n_rows, 'row')}); "
            f"leave those rows out yourself, for instance by df.dropna(subset={list(missing)!r})"
        )
    if rows.n_rows == 0:
        raise DataError(f"there are no rows to gather the statistic of {title} from")
    return rows


@dataclass(frozen=True, eq=False)
class Gathering:
    """The statistic of a block of rows. `meanings` has an array for each column: what its codes are; None for numbers."""

    family: Any
    columns: Sequence[str]
    meanings: Sequence[Any]

    def __call__(self, block: Any) -> Any:
        cells = [block.columns[name] for name in self.columns]
        values = [c if meaning is None else meaning[c] for c, meaning in zip(cells, self.meanings, strict=True)]
        try:
            return self.family._gather_cells(np.stack(values, axis=-1) if self.family.event_axes else values[0], block.weight)
        except Outside as wrong:
            raise Outside(wrong.before, wrong.row, wrong.after, block.number) from None


def generator(n: Any, seed: int | np.random.Generator) -> np.random.Generator:
    """The source of n draws, both checked."""
    whole(n, "the number of draws", 0)
    return seed if isinstance(seed, np.random.Generator) else np.random.default_rng(whole(seed, "a seed", 0))
