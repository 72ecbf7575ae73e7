"""What every distribution here is: a frozen value, known by its fields, that learns from rows (`Observable`). And the uniform
density, which is no more than that: no exponential family, for its support hangs on its parameters. What rows say of it is their
number and their smallest and largest: they merge, but cannot be taken away again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Finite, Variable
from suffice.errors import DataError, FitError, MissingCells, ModelError, StatisticsError, listing, nearest, quantity, whole
from suffice.numerics.exponential.arithmetic.values import (
    Array,
    Outside,
    between,
    checked_weights,
    finite,
    keep,
    observations,
    plain,
    read_only,
    same,
    show,
    summary,
    table,
)
from suffice.numerics.exponential.protocol.statistic import AddedRows, explain_shapes


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
    rows = data.select(columns).with_numbers(columns)
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


@dataclass(frozen=True, eq=False)
class Extremes(AddedRows):
    """`count` = Σ w and the `lower` and `upper` end of some rows, of leading axes (...); an empty one is from inf to −inf.

    >>> Uniform().statistic([2.0, 3.0]) + Uniform().statistic([5.0])
    Extremes(count=array(3.), lower=array(2.), upper=array(5.))
    """

    count: Array
    lower: Array
    upper: Array

    def __post_init__(self) -> None:
        read_only(self, "count", "lower", "upper")

    def __add__(self, other: Extremes) -> Extremes:
        if not isinstance(other, Extremes):
            return NotImplemented
        if self.count.shape != other.count.shape:
            raise StatisticsError(
                f"extremes side by side add one to one: their shapes are {self.count.shape}, {other.count.shape}"
            )
        ends = np.minimum(self.lower, other.lower), np.maximum(self.upper, other.upper)
        return Extremes(self.count + other.count, *ends)

    def __sub__(self, other: Any) -> Extremes:
        raise StatisticsError(
            "rows cannot be taken away from their extremes: the second smallest is not known; gather the rest anew"
        )

    def _times(self, w: Array) -> Extremes:
        return Extremes(self.count * w, np.where(w > 0.0, self.lower, np.inf), np.where(w > 0.0, self.upper, -np.inf))

    def _repr_html_(self) -> str:
        return table({"count": self.count, "lower": self.lower, "upper": self.upper}, "Extremes")


@dataclass(frozen=True, eq=False, repr=False)
class Uniform(Observable):
    """The same density everywhere between two ends. It is not an exponential family: no natural parameters, and the estimate is
    the smallest and the largest row, not moment matching.

    >>> s = Uniform().statistic([2.0, 3.0]) + Uniform().statistic([5.0])
    >>> Uniform().estimate(s), Uniform().estimate(s).mean
    (Uniform(lower=2.0, upper=5.0), 3.5)
    """

    lower: Any = None
    upper: Any = None

    names: ClassVar[tuple[str, ...]] = ("lower", "upper")
    support: ClassVar[str] = "finite numbers"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.lower is not None and np.any(np.asarray(self.upper) <= self.lower):
            raise ModelError(f"the upper end of Uniform must lie above the lower: {show(self.lower)} and {show(self.upper)}")

    def _check_parameter(self, name: str, value: Any) -> Array:
        return finite(value, f"the {name} end of Uniform")

    @property
    def mean(self) -> Any:
        """The middle."""
        low, high = self._ends
        return plain(0.5 * low + 0.5 * high)

    @property
    @np.errstate(over="ignore")
    def variance(self) -> Any:
        """(upper − lower)²/12."""
        low, high = self._ends
        return plain((high - low) ** 2 / 12.0)

    def statistic(self, x: Any, weights: Any = None) -> Extremes:
        """The count, the smallest and the largest of some observations, the first axis. Rows of weight 0 do not count."""
        x = observations(x, "Uniform")
        x = x[None] if x.ndim == 0 else x
        if not np.isfinite(x).all():
            raise Outside("Uniform is about finite numbers, and", int(np.argwhere(~np.isfinite(x))[0][0]), "is not")
        w = checked_weights(weights, x.shape)
        lower = np.min(np.where(w > 0.0, x, np.inf), axis=0, initial=np.inf)
        upper = np.max(np.where(w > 0.0, x, -np.inf), axis=0, initial=-np.inf)
        return Extremes(w.sum(axis=0), np.asarray(lower), np.asarray(upper))

    _gather_cells = statistic

    def estimate(self, statistic: Extremes) -> Self:
        """From the smallest row to the largest: any narrower density gives some row none."""
        if not isinstance(statistic, Extremes):
            raise StatisticsError(f"Uniform learns from its statistic: give Uniform().statistic(x), not {statistic!r}")
        if np.any(statistic.count <= 0.0):
            raise FitError("Uniform cannot be estimated: there are no rows")
        if np.any(statistic.upper <= statistic.lower):
            raise FitError(
                "Uniform has no estimate where all numbers are equal (or there is only one): the density would be infinite"
            )
        return type(self)(statistic.lower, statistic.upper)

    @explain_shapes
    def log_prob(self, x: Any) -> Any:
        """−ln(upper − lower) from end to end, −inf elsewhere."""
        x, (low, high) = observations(x, "Uniform"), self._ends
        return plain(np.where((x >= low) & (x <= high), -self.entropy(), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Array:
        """n draws, the first axis."""
        low, high = self._ends
        share = generator(n, seed).random((n, *low.shape))
        return np.asarray(low * (1.0 - share) + high * share)

    def entropy(self) -> Any:
        """ln(upper − lower), in nats."""
        low, high = self._ends
        return plain(np.log(0.5 * high - 0.5 * low) + np.log(2.0))

    @explain_shapes
    def kl(self, other: Self) -> Any:
        """The log of the ratio of the lengths; inf where the other does not cover this one."""
        if not isinstance(other, Uniform):
            raise ModelError(f"the divergence is between two members of one family, Uniform(), and the other is {other!r}")
        (low, high), (least, most) = self._ends, other._ends
        return plain(np.where((least <= low) & (high <= most), np.maximum(other.entropy() - self.entropy(), 0.0), np.inf))

    @property
    def _ends(self) -> tuple[Array, Array]:
        if self.lower is None:
            raise ModelError("Uniform() has no ends: give them, Uniform(lower=…, upper=…), or estimate them from a statistic")
        return np.asarray(self.lower), np.asarray(self.upper)
