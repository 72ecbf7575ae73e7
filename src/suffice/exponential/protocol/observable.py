"""What every distribution here is: a frozen value, known by its fields, that learns from rows (`Observable`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Self

import numpy.typing as npt

from suffice.errors import DataError, listing
from suffice.exponential.arithmetic.values import Array, between, keep, same, show, summary, table
from suffice.exponential.protocol.statistic import complete, gather_statistic, refuse_unscanned
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
        columns = self._columns(data, column)
        return gather_statistic(self, complete(data, columns, self._title), columns, threads)

    def _columns(self, data: Any, column: str | Sequence[str]) -> tuple[str, ...]:
        refuse_unscanned(data, column, self.bare)
        if isinstance(column, str) == bool(self.event_axes):
            wanted = "a list of columns, one for each component" if self.event_axes else "the name of one column"
            raise DataError(f"{self._title} is gathered from {wanted}, not from {column!r}")
        return (column,) if isinstance(column, str) else tuple(column)

    def _meaning(self, variable: Variable) -> npt.NDArray[Any] | None:
        """The x that each code of a finite column stands for; None where the cells are x themselves."""
        if isinstance(variable, Finite):
            raise DataError(
                f"{self._title} is about {self.support}, and {variable.name!r} has the states {listing(variable.states)}; "
                "declare it Count or Real where its states are numbers"
            )
        return None
