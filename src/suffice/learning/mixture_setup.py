"""From rows to the parts of a mixture: what each column is, its overall mean and variance, and what the prior says of it.

Real columns have one of four kinds of covariance. What is not said of a column follows from its type.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.data import Data
from suffice.engines.engine import Block, Step
from suffice.errors import DataError, FitError, TooLarge, listed, nearest, note
from suffice.families.family import Array, Estimate
from suffice.families.priors import Prior
from suffice.incomplete.units import observed_cells
from suffice.learning.mixture_belief import Belief
from suffice.learning.mixture_em import Mixture
from suffice.learning.mixture_normals import Joint, Separate
from suffice.learning.mixture_parts import Part, Rates, Tables, log_factorials
from suffice.statistics import Counts, Moments, Statistics
from suffice.variables import Count, Finite, Variable

FEW = 2**12
"""Rows that are looked at before all rows are, to see whether many are equal."""


@dataclass(frozen=True)
class Full:
    """Each class has a covariance matrix of its own.

    >>> Full()
    Full()
    """


@dataclass(frozen=True)
class Tied:
    """All classes have the same covariance matrix.

    >>> Tied()
    Tied()
    """


@dataclass(frozen=True)
class Diagonal:
    """Each class has a variance of its own for each column; within a class the columns are independent.

    >>> Diagonal()
    Diagonal()
    """


@dataclass(frozen=True)
class Spherical:
    """Each class has one variance, the same for all columns; within a class the columns are independent.

    >>> Spherical()
    Spherical()
    """


Kind = Full | Tied | Diagonal | Spherical
KINDS = (Full, Tied, Diagonal, Spherical)


def groups(families: Any, variables: Mapping[str, Variable]) -> dict[Kind, tuple[str, ...]]:
    """The real columns by their kind: those of a kind have one distribution together.

    >>> from suffice.variables import Real
    >>> groups({"x": Tied()}, {"x": Real("x"), "y": Real("y")})
    {Tied(): ('x',), Full(): ('y',)}
    """
    reals = [n for n, v in variables.items() if not isinstance(v, (Finite, Count))]
    overall = Full() if families is None or isinstance(families, Mapping) else families
    said = dict(families) if isinstance(families, Mapping) else {}
    for kind in (overall, *said.values()):
        if not isinstance(kind, KINDS):
            raise FitError(f"a covariance is Full(), Tied(), Diagonal() or Spherical(), not {kind!r}")
    for name, kind in said.items():
        if name not in variables:
            raise FitError(f"families speaks of {name!r}, which is not a column of the data{nearest(str(name), variables)}")
        if name not in reals:
            what = type(variables[name]).__name__
            raise FitError(f"families gives {name!r} the covariance {kind!r}, but it is {what}: only Real columns have one")
    result: dict[Kind, tuple[str, ...]] = {}
    for name in reals:
        kind = said.get(name, overall)
        result[kind] = (*result.get(kind, ()), name)
    return result


class Overall(NamedTuple):
    """Of each column of numbers: the weight of the rows that show it, and their mean and variance."""

    weight: Mapping[str, float]
    mean: Mapping[str, float]
    variance: Mapping[str, float]

    @classmethod
    def of(cls, data: Data, names: tuple[str, ...]) -> Overall:
        spread = observed_cells(data, names)
        mean, variance = spread.mean[:, 0], spread.scatter[:, 0, 0] / np.where(spread.weight > 0.0, spread.weight, 1.0)
        for name in np.array(names)[~np.isfinite(variance)]:
            raise FitError(f"the squares of the numbers of {str(name)!r} are beyond the largest double; rescale the column")
        # A column of equal numbers has a mean that is rounded, and so a variance that is not quite 0.
        variance = np.where(variance <= (4.0 * np.finfo(float).eps * np.abs(mean)) ** 2, 0.0, variance)
        return cls(*(dict(zip(names, v.tolist(), strict=True)) for v in (spread.weight, mean, variance)))


@dataclass(frozen=True)
class _Survey(Step[tuple[int, float]]):
    """The number of rows without any cell, and Σ ln x! of all counts."""

    counts: tuple[str, ...]

    def of(self, block: Block) -> tuple[int, float]:
        lost = [np.isnan(c) if c.dtype.kind == "f" else c == np.iinfo(c.dtype).max for c in block.columns.values()]
        base = sum(float((log_factorials(block.columns[n]) * block.weights).sum()) for n in self.counts)
        return int(np.logical_and.reduce(lost).sum()), float(base)


class Table(NamedTuple):
    """The rows of a mixture, and what is known of them for any number of classes."""

    data: Data
    variables: Mapping[str, Variable]
    overall: Overall
    unit: float
    """The weight of one row."""
    log_base: float
    """Σ ln x! of all counts."""

    @classmethod
    def of(cls, rows: Data, merge: bool = False) -> Table:
        """What the rows are, equal ones made one if they may be; what cannot be used is refused."""
        variables, missing = dict(rows.schema), rows.missing
        empty = [n for n, m in missing.items() if m == rows.n_rows]
        if empty:
            raise DataError(f"every cell of {listed(empty)} is missing; leave it out")
        counts = tuple(n for n, v in variables.items() if isinstance(v, Count))
        n_empty, log_base = rows.fold(_Survey(counts)) if counts or all(missing.values()) else (0, 0.0)
        if n_empty:
            note(f"{n_empty:,} rows have no observed cell: they say nothing, and belong to each class with its weight")
        unit = 1.0 if not rows.weighted or rows.whole_weights else rows.weight / rows.n_rows
        overall = Overall.of(rows, tuple(n for n, v in variables.items() if not isinstance(v, Finite)))
        return cls(merged(rows) if merge else rows, variables, overall, unit, log_base)

    def mixture(self, hidden: Finite, families: Any, prior: Prior | None, how: Estimate) -> Mixture:
        """The parts for these classes, and what the prior says of them."""
        bound = None if prior is None else prior.bind({**self.variables, hidden.name: hidden}, self._statistics())
        makers = _Makers(self, hidden, bound, how)
        parts: list[Part] = [makers.normal(kind, names) for kind, names in groups(families, self.variables).items()]
        finite = tuple(v for v in self.variables.values() if isinstance(v, Finite))
        counts = tuple(n for n, v in self.variables.items() if isinstance(v, Count))
        parts += [makers.tables(finite)] if finite else []
        parts += [makers.rates(counts)] if counts else []
        alpha, least = makers.alpha(hidden, ()), self.unit * (1.0 - 1e-9)
        if bound is not None and makers.unspoken:
            note(f"the prior says nothing about {listed(makers.unspoken)}: fitted by maximum likelihood")
        return Mixture(self.data, tuple(parts), hidden.n_states, alpha, how, hidden.name, -self.log_base, least)

    def _statistics(self) -> Statistics:
        """What priors take their defaults from: the moments of each column of numbers."""
        o = self.overall
        moments = [Moments((), (n,), [0], [o.weight[n]], [[o.mean[n]]], [[[o.weight[n] * o.variance[n]]]]) for n in o.mean]  # type: ignore[arg-type]
        return Statistics(moments, self.data.weight)


class _Makers:
    """Makes parts, and remembers which columns the prior said nothing about."""

    def __init__(self, table: Table, hidden: Finite, prior: Prior | None, how: Estimate) -> None:
        self.table, self.hidden, self.prior, self.how = table, hidden, prior, how
        self.unspoken: list[str] = []

    def normal(self, kind: Kind, names: tuple[str, ...]) -> Part:
        overall, joint = self.table.overall, isinstance(kind, (Full, Tied))
        belief = Belief.of(self.prior, self.how, names, self.table.variables, self.hidden, joint)
        shift, variance = (np.array([of[n] for n in names]) for of in (overall.mean, overall.variance))
        if belief is None:
            self.unspoken += names
            same = [n for n in names if not overall.variance[n] > 0.0]
            if same:
                raise FitError(f"all values of {listed(same)} are the same: leave it out, or give a prior, NormalInverseGamma()")
        variance, made = np.where(variance > 0.0, variance, 1.0), Joint if joint else Separate
        shared = isinstance(kind, (Tied, Spherical))
        return made(names, self.hidden.n_states, shared, shift, variance, self._incomplete(names), belief)

    def tables(self, variables: tuple[Finite, ...]) -> Part:
        alpha = tuple(self.alpha(v, (self.hidden,)) for v in variables)
        return Tables(variables, self.hidden.n_states, self._incomplete(v.name for v in variables), alpha, self.how)

    def rates(self, names: tuple[str, ...]) -> Part:
        events, rows = np.zeros(len(names)), np.zeros(len(names))
        for j, name in enumerate(names):
            said = None if self.prior is None else self.prior.imagine(self.table.variables[name], (self.hidden,))
            if isinstance(said, Moments):
                group = said.at(np.arange(1))
                events[j], rows[j] = group.count[0] * group.mean[0, 0], group.count[0]
            else:
                self.unspoken.append(name)
        overall = np.array([self.table.overall.mean[n] for n in names])
        return Rates(names, self.hidden.n_states, overall, self._incomplete(names), (events, rows), self.how)

    def alpha(self, child: Finite, parents: tuple[Finite, ...]) -> Array | None:
        said = None if self.prior is None else self.prior.imagine(child, parents)
        if isinstance(said, Counts):
            return said.dense()
        self.unspoken.append(child.name)
        return None

    def _incomplete(self, names: Iterable[str]) -> bool:
        missing = self.table.data.missing
        return any(missing[n] for n in names)


def merged(data: Data) -> Data:
    """Equal rows made one row with their weight, where that makes the data much smaller."""
    try:
        few = data.sample(FEW)
        if few.n_rows == FEW:
            data.of_rows(few).distinct(FEW - FEW // 100)
        return data.of_rows(data.distinct(data.n_rows // 4))
    except TooLarge:
        return data
