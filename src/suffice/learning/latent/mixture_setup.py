"""Mixtures as a problem of EM, and how rows become one: what each column is, and what the prior says of it.

E-step   the classes that rows are expected to have (`suffice.learning.latent.mixture_parts`), and the parts' statistics
M-step   w = (N + α) / Σ, and each part for itself
objective   Σ ln p(row) + the logarithm of the prior that the M-step maximises: it never falls

Real columns have one of four kinds of covariance. What is not said of a column follows from its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.variables import Count, Finite, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, is_missing
from suffice.errors import DataError, FitError, TooLarge, listing, nearest, note
from suffice.errors.remedies import NORMAL_PRIOR
from suffice.families.categorical import Table
from suffice.families.priors.priors import Prior, Several
from suffice.families.protocol.family import Array, Cpd, Estimate, imagined_rows
from suffice.incomplete.numbers.units import moments_by_column, observed_cells
from suffice.learning.incomplete.reduced_task import EStep
from suffice.learning.latent.mixture_normals import JointPart, NormalPart, SeparatePart, imagined_moments
from suffice.learning.latent.mixture_parts import (
    ClassComponents,
    ClassParameters,
    ClassSums,
    CollapsedClass,
    RatesPart,
    TablesPart,
    log_shares,
    shares,
)
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.counts import log_factorial
from suffice.statistics.moments import Spread

FEW = 2**12
"""Rows that are looked at before all rows are, to see whether many are equal."""


@dataclass(frozen=True)
class Full:
    """Each class has a covariance matrix of its own.

    >>> Full()
    Full()
    """

    joint, shared = True, False


@dataclass(frozen=True)
class Tied:
    """All classes have the same covariance matrix.

    >>> Tied()
    Tied()
    """

    joint, shared = True, True


@dataclass(frozen=True)
class Diagonal:
    """Each class has a variance of its own for each column; within a class the columns are independent.

    >>> Diagonal()
    Diagonal()
    """

    joint, shared = False, False


@dataclass(frozen=True)
class Spherical:
    """Each class has one variance, the same for all columns; within a class the columns are independent.

    >>> Spherical()
    Spherical()
    """

    joint, shared = False, True


Kind = Full | Tied | Diagonal | Spherical


def checked_kind(kind: Any) -> Kind:
    """The kind of a covariance, `Full()` where nothing is said."""
    if not isinstance(kind, (Full, Tied, Diagonal, Spherical, type(None))):
        raise FitError(f"a covariance is Full(), Tied(), Diagonal() or Spherical(), not {kind!r}")
    return kind or Full()


def groups(covariance: Any, variables: Mapping[str, Variable]) -> dict[Kind, tuple[str, ...]]:
    """The real columns by their kind: those of a kind have one distribution together."""
    reals = [n for n, v in variables.items() if not isinstance(v, (Finite, Count))]
    said = dict(covariance) if isinstance(covariance, Mapping) else {}
    overall = checked_kind(None if isinstance(covariance, Mapping) else covariance)
    for name, kind in said.items():
        checked_kind(kind)
        if name not in variables:
            raise FitError(f"covariance speaks of {name!r}, which is not a column of the data{nearest(str(name), variables)}")
        if name not in reals:
            what = type(variables[name]).__name__
            raise FitError(f"covariance gives {name!r} {kind!r}, but it is {what}: only Real columns have one")
    kinds: dict[str, Kind] = {name: said.get(name, overall) for name in reals}
    return {kind: tuple(n for n in reals if kinds[n] == kind) for kind in dict.fromkeys(kinds.values())}


@dataclass(frozen=True)
class _Survey(Step[tuple[int, float]]):
    """The number of rows without any cell, and Σ ln x! of all counts."""

    counts: tuple[str, ...]

    def of(self, block: Block) -> tuple[int, float]:
        empty = np.logical_and.reduce([is_missing(c) for c in block.columns.values()])
        base = sum(float((block.weights * log_factorial(np.nan_to_num(block.columns[n]))).sum()) for n in self.counts)
        return int(empty.sum()), base


class MixtureRows(NamedTuple):
    """The rows of a mixture, and what is known of them for any number of classes."""

    data: Data
    variables: Mapping[str, Variable]
    numbers: Spread
    """Of each column of numbers: the weight of the rows that show it, their mean and scatter."""
    unit: float
    """The weight of one row."""
    log_base: float
    """Σ ln x! of all counts."""

    @classmethod
    def of(cls, rows: Data, merge: bool = False) -> MixtureRows:
        """What the rows are, equal ones made one if they may be; what cannot be used is refused."""
        variables, missing = dict(rows.schema), rows.missing
        empty = [n for n, m in missing.items() if m == rows.n_rows]
        if empty:
            raise DataError(f"every cell of {listing(empty)} is missing; leave it out")
        counts = tuple(n for n, v in variables.items() if isinstance(v, Count))
        n_empty, log_base = rows.fold(_Survey(counts)) if counts or all(missing.values()) else (0, 0.0)
        if n_empty:
            note(f"{n_empty:,} rows have no observed cell: they say nothing, and belong to each class with its weight")
        unit = 1.0 if not rows.weighted or rows.whole_weights else rows.weight / rows.n_rows
        names = tuple(n for n, v in variables.items() if not isinstance(v, Finite))
        numbers = observed_cells(rows, names)
        for i in np.flatnonzero(~np.isfinite(numbers.scatter[:, 0, 0])):
            raise FitError(f"the squares of the numbers of {names[i]!r} are beyond the largest double; rescale the column")
        # A column of equal numbers has a mean that is rounded, and so a scatter that is not quite 0.
        rounding = numbers.weight[:, None] * (4.0 * np.finfo(float).eps * np.abs(numbers.mean)) ** 2
        numbers = numbers._replace(scatter=np.where(numbers.scatter <= rounding[:, :, None], 0.0, numbers.scatter))
        return cls(merge_rows(rows) if merge else rows, variables, numbers, unit, log_base)

    def mixture(self, hidden: Finite, families: Any, prior: Prior | None, how: Estimate) -> MixtureProblem:
        """The parts for these classes, and what the prior says of them."""
        seen = Statistics(moments_by_column(self.numbers, self.variables), self.data.weight)
        bound = (Several(()) if prior is None else prior).bind({**self.variables, hidden.name: hidden}, seen)
        parts: list[Any] = [
            self._normal(kind, [self.variables[n] for n in names], hidden, bound, how)
            for kind, names in groups(families, self.variables).items()
        ]
        finite = [v for v in self.variables.values() if isinstance(v, Finite)]
        counts = [v for v in self.variables.values() if isinstance(v, Count)]
        if finite:
            states = tuple(v.n_states for v in finite)
            table = np.concatenate([np.full((hidden.n_states, n), 1.0 / n) for n in states], axis=1)
            imagined = tuple(_imagined_counts(bound, v, hidden) for v in finite)
            parts.append(TablesPart(tuple(v.name for v in finite), table, states, how, imagined))
        parts += [self._rates(counts, hidden, bound, how)] if counts else []
        alpha = _imagined_counts(bound, hidden)
        silent = [v.name for v in self.variables.values() if imagined_rows(bound, v, (hidden,)) is None]
        silent += [hidden.name] if alpha is None else []
        if prior is not None and silent:
            note(f"the prior says nothing about {listing(silent)}: fitted by maximum likelihood")
        components = ClassComponents(self.data, -self.log_base)
        return MixtureProblem(components, tuple(parts), hidden, self.variables, alpha, how, self.unit * (1.0 - 1e-9))

    def _normal(self, kind: Kind, columns: list[Variable], hidden: Finite, prior: Prior, how: Estimate) -> NormalPart:
        imagined = imagined_moments(prior, columns, hidden, chained=kind.joint)
        names, (shift, variance) = tuple(v.name for v in columns), self._moments(columns)
        same = [n for n, v in zip(names, variance, strict=True) if not v > 0.0]
        if imagined is None and same:
            raise FitError(f"all values of {listing(same)} are the same: leave it out, or give a prior, {NORMAL_PRIOR}")
        variance, k = np.where(variance > 0.0, variance, 1.0), hidden.n_states
        mean, deviation = np.zeros((k, len(names))), np.sqrt(variance)
        facts = (how, kind.shared, variance, imagined)
        if kind.joint:
            return JointPart(names, shift, mean, np.tile(np.diag(deviation), (k, 1, 1)), *facts)
        return SeparatePart(names, shift, mean, np.tile(deviation, (k, 1)), *facts)

    def _rates(self, columns: list[Count], hidden: Finite, prior: Prior, how: Estimate) -> RatesPart:
        said = [imagined_rows(prior, v, (hidden,)) for v in columns]
        groups = [s.at(np.arange(1)) if isinstance(s, Moments) else None for s in said]
        events, rows = np.array([(0.0, 0.0) if g is None else (g.count[0] * g.mean[0, 0], g.count[0]) for g in groups]).T
        names, overall = tuple(v.name for v in columns), self._moments(columns)[0]
        return RatesPart(names, np.tile(overall, (hidden.n_states, 1)), how, overall, (events, rows))

    def _moments(self, columns: Sequence[Variable]) -> tuple[Array, Array]:
        """The overall means and variances of some columns of numbers."""
        names = [n for n, v in self.variables.items() if not isinstance(v, Finite)]
        weight, mean, _, scatter = (part[[names.index(v.name) for v in columns]] for part in self.numbers)
        return mean[:, 0], scatter[:, 0, 0] / np.where(weight > 0.0, weight, 1.0)


def _imagined_counts(prior: Prior, child: Finite, *parents: Finite) -> Array | None:
    said = imagined_rows(prior, child, parents)
    return said.dense() if isinstance(said, Counts) else None


class MixtureSums(NamedTuple):
    """Sums, and the parameters around which they were gathered."""

    sums: ClassSums
    at: ClassParameters


@dataclass(frozen=True, eq=False)
class MixtureProblem:
    """Rows and the parts that explain them: what EM climbs on (see `suffice.learning.incomplete.problem`). `alpha` are imagined
    rows of each class, `least` the least weight that a class may have."""

    components: ClassComponents
    parts: tuple[Any, ...]
    """Of parameters that are the same in every class, around which first statistics are gathered."""
    hidden: Finite
    variables: Mapping[str, Variable]
    alpha: Array | None
    how: Estimate
    least: float

    @property
    def data(self) -> Data:
        return self.components.data

    @property
    def weight(self) -> float:
        return self.data.weight

    def expect(self, parameters: ClassParameters) -> EStep:
        sums = self.components.expect(parameters)
        return EStep(MixtureSums(sums, parameters), sums.log_likelihood)

    def maximise(self, statistic: MixtureSums) -> ClassParameters:
        sums, at = statistic
        if self.alpha is None and sums.counts.min() < self.least:
            raise CollapsedClass("a class has less than one row left")
        weights = shares(sums.counts, self.alpha, self.how, self.hidden.name)
        return ClassParameters(weights, tuple(part.maximise(s) for part, s in zip(at.parts, sums.parts, strict=True)))

    def log_prior(self, parameters: ClassParameters) -> float:
        return log_shares(parameters.weights, self.alpha, self.how) + float(sum(p.log_prior() for p in parameters.parts))

    def shorter(self, before: ClassParameters, after: ClassParameters) -> None:
        """Every M-step is exact."""

    def fall(self) -> None:
        """It cannot."""

    def rounding(self, parameters: ClassParameters) -> float:
        """By how much ln p may be off where the classes are narrow."""
        narrow = (part.narrowness() for part in parameters.parts if isinstance(part, NormalPart))
        return 1e-15 * self.weight * max(narrow, default=0.0)

    def cpds(self, parameters: ClassParameters, counts: Array) -> dict[str, Cpd]:
        """The distribution of the class, and those of the columns given it, from classes of these counts."""
        own = Table(self.hidden, (), parameters.weights, Counts((self.hidden,), counts))
        cpds: dict[str, Cpd] = {self.hidden.name: own}
        for part in parameters.parts:
            cpds |= part.cpds(self.hidden, self.variables, counts)
        return cpds

    def start_from(self, responsibilities: Callable[[Block], Array], rows: Data | None = None) -> ClassParameters:
        """The parameters that responsibilities of rows give: a first pass finds the means, around which the second gathers."""
        k, components = self.hidden.n_states, self.components if rows is None else replace(self.components, data=rows)
        parameters = ClassParameters(np.full(k, 1.0 / k), self.parts)
        for _ in range(2):
            parameters = self.maximise(MixtureSums(components.expect(parameters, responsibilities), parameters))
        return parameters


def merge_rows(data: Data) -> Data:
    """Equal rows made one row with their weight, where that makes the data much smaller."""
    try:
        few = data.sample(FEW)
        if few.n_rows == FEW:
            data.of_rows(few).distinct(FEW - FEW // 100)
        return data.of_rows(data.distinct(data.n_rows // 4))
    except TooLarge:
        return data
