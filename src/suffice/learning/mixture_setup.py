"""From rows to the parts of a mixture: what each column is, its overall mean and variance, and what the prior says of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.engine import Block as Batch
from suffice.errors import DataError, FitError, listed, note
from suffice.families.family import Array, Estimate
from suffice.families.priors import Prior
from suffice.learning.mixture_belief import Belief
from suffice.learning.mixture_discrete import Rates, Tables
from suffice.learning.mixture_em import Mixture
from suffice.learning.mixture_joint import Joint
from suffice.learning.mixture_kinds import Full, Kind, Spherical, Tied, groups
from suffice.learning.mixture_part import Part
from suffice.learning.mixture_separate import Separate
from suffice.statistics import Counts, Moments, Statistics
from suffice.variables import Count, Finite, Variable


class Overall(NamedTuple):
    """Of each column of numbers: the weight of the rows that show it, and their mean and variance; Σ ln x! of all counts."""

    weight: Mapping[str, float]
    mean: Mapping[str, float]
    variance: Mapping[str, float]
    log_base: float


class Table(NamedTuple):
    """The rows of a mixture, and what is known of them for any number of classes."""

    data: Data
    variables: Mapping[str, Variable]
    overall: Overall
    unit: float
    """The weight of one row."""
    places: npt.NDArray[np.intp] | None = None
    """Where the rows stand among those that were given, if equal ones were merged."""

    @classmethod
    def of(cls, rows: Data, merge: bool = False) -> Table:
        """What the rows are, equal ones made one if they may be; what cannot be used is refused."""
        data, places = merged(rows) if merge else (rows, None)
        variables, missing = dict(data.schema), data.missing
        empty = [n for n, m in missing.items() if m == data.n_rows]
        if empty:
            raise DataError(f"every cell of {listed(empty)} is missing; leave it out")
        if all(missing.values()):
            _note_empty(data)
        unit = 1.0 if not rows.weighted or rows.whole_weights else rows.weight / rows.n_rows
        return cls(data, variables, _overall(data, variables), unit, places)

    def mixture(self, hidden: Finite, families: Any, prior: Prior | None, how: Estimate) -> Mixture:
        """The parts for these classes, and what the prior says of them."""
        bound = None if prior is None else prior.bind({**self.variables, hidden.name: hidden}, self._statistics())
        makers = _Makers(self, hidden, bound, how)
        parts: list[Part] = [makers.normal(kind, names) for kind, names in groups(families, self.variables).items()]
        finite = tuple(v for v in self.variables.values() if isinstance(v, Finite))
        counts = tuple(n for n, v in self.variables.items() if isinstance(v, Count))
        parts += [makers.tables(finite)] if finite else []
        parts += [makers.rates(counts)] if counts else []
        alpha = makers.alpha(hidden, ())
        makers.tell()
        return Mixture(tuple(parts), hidden.n_states, alpha, how, hidden.name, -self.overall.log_base, self.unit * (1.0 - 1e-9))

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
        k, overall = self.hidden.n_states, self.table.overall
        joint = isinstance(kind, (Full, Tied))
        belief = Belief.of(self.prior, self.how, names, self.table.variables, self.hidden, joint)
        shift, variance = (np.array([of[n] for n in names]) for of in (overall.mean, overall.variance))
        if belief is None:
            self.unspoken += names
            same = [n for n in names if not overall.variance[n] > 0.0]
            if same:
                raise FitError(f"all values of {listed(same)} are the same: leave it out, or give a prior, NormalInverseGamma()")
        variance = np.where(variance > 0.0, variance, 1.0)
        incomplete = self._incomplete(names)
        if joint:
            return Joint(names, k, isinstance(kind, Tied), shift, variance, incomplete, belief)
        return Separate(names, k, isinstance(kind, Spherical), shift, variance, incomplete, belief)

    def tables(self, variables: tuple[Finite, ...]) -> Part:
        names = tuple(v.name for v in variables)
        alpha = tuple(self.alpha(v, (self.hidden,)) for v in variables)
        return Tables(variables, self.hidden.n_states, self._incomplete(names), alpha, self.how)

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

    def tell(self) -> None:
        if self.prior is not None and self.unspoken:
            note(f"the prior says nothing about {listed(self.unspoken)}: fitted by maximum likelihood")

    def _incomplete(self, names: tuple[str, ...]) -> bool:
        missing = self.table.data.missing
        return any(missing[n] for n in names)


def _overall(data: Data, variables: Mapping[str, Variable]) -> Overall:
    """Two passes, so that the variance is gathered around the mean."""
    names = tuple(n for n, v in variables.items() if not isinstance(v, Finite))
    if not names:
        return Overall({}, {}, {}, 0.0)
    counted = [j for j, n in enumerate(names) if isinstance(variables[n], Count)]

    def sums(around: Array, power: int) -> Any:
        def step(batch: Batch) -> Any:
            x = np.stack([batch.columns[n] for n in names]) - around[:, None]
            w, seen = np.ones(x.shape[1]) if batch.weight is None else batch.weight, ~np.isnan(x)
            base = 0.0 if power == 2 or not counted else _log_factorials(x[counted], w)
            with np.errstate(over="ignore"):  # said below, by the name of the column
                return np.where(seen, w, 0.0).sum(axis=1), np.where(seen, x**power, 0.0) @ w, base

        return data.fold(step)

    first = np.array([_first(data, n) for n in names])
    N, total, _ = sums(first, 1)
    mean = first + total / np.where(N > 0, N, 1.0)
    _, square, _ = sums(mean, 2)
    base = sums(np.zeros(len(names)), 1)[2] if counted else 0.0
    variance = square / np.where(N > 0, N, 1.0)
    if not np.isfinite(variance).all():
        bad = names[int(np.argmin(np.isfinite(variance)))]
        raise FitError(f"the squares of the numbers of {bad!r} are beyond the largest double; rescale the column")
    # A column of equal numbers has a mean that is rounded, and so a variance that is not quite 0.
    variance = np.where(variance <= (4.0 * np.finfo(float).eps * np.abs(mean)) ** 2, 0.0, variance)
    weights, means, variances = (dict(zip(names, v.tolist(), strict=True)) for v in (N, mean, variance))
    return Overall(weights, means, variances, float(base))


def _first(data: Data, name: str) -> float:
    """A value of a column: a place near which its numbers are."""
    for batch in data.batches():
        x = batch.columns[name]
        seen = np.flatnonzero(~np.isnan(x))
        if len(seen):
            return float(x[seen[0]])
    return 0.0


def _log_factorials(x: Array, weight: Array) -> float:
    from scipy.special import gammaln

    return float((np.where(np.isnan(x), 0.0, gammaln(x + 1.0)) @ weight).sum())


def _note_empty(data: Data) -> None:
    def step(batch: Batch) -> int:
        lost = [np.isnan(c) if c.dtype.kind == "f" else c == np.iinfo(c.dtype).max for c in batch.columns.values()]
        return int(np.logical_and.reduce(lost).sum())

    n = data.fold(step)
    if n:
        note(f"{n:,} rows have no observed cell: they say nothing, and belong to each class with its weight")


def merged(data: Data) -> tuple[Data, npt.NDArray[np.intp] | None]:
    """Equal rows made one row with their weight, where all columns have few values and that makes the data much smaller; and
    which rows they are."""
    n, width = data.n_rows, len(data.columns)
    weights: dict[bytes, float] = {}
    places: dict[bytes, int] = {}
    for batch in data.batches():
        rows = np.ascontiguousarray(np.stack([batch.columns[c] for c in data.columns], axis=1).astype(np.float64))
        _, first, which = np.unique(rows.view(np.dtype((np.void, 8 * width))).ravel(), return_index=True, return_inverse=True)
        for place, weight in zip(first, np.bincount(which.ravel(), batch.weight), strict=True):
            key = rows[place].tobytes()
            weights[key] = weights.get(key, 0.0) + float(weight)
            places.setdefault(key, batch.start + int(place))
        if len(places) > n // 4:
            return data, None
    index = np.array(list(places.values()))
    return data.pick(index, weights=np.array(list(weights.values()))), index
