"""The parameters of one regression, or of Poisson rates, as coordinates that no bounds hold, and derivatives by them from what
completed rows say; and which chart a distribution has.

    levels, slopes    of predictors whose columns are centred; of ordered states the first cut point, ln of the steps to others
    ln d              of a dispersion: 1/shape, or the variance of a linear regression
    ln λ              for each configuration u that rows speak for;   S − N λ and N λ, of S events in N rows, are gradient and
                      information

Completed rows say the gradient g and the curvature H of a regression at the parameters η′ of the E-step, not at others. At η near
them the gradient is g − H (η − η′), whose error is of the second order and even in η − η′, so that central differences do not see
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from suffice.families.categorical import Table
from suffice.families.charts import Array, Chart, Flags, GaussianChart, NoCoordinates, TableChart
from suffice.families.chosen.exponential_node import PoissonRates
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.protocol.family import Cpd, Estimate
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.numerics.exponential.normals.lines import independent
from suffice.statistics import Moments
from suffice.statistics.counts import describe


class LocalSlopes(NamedTuple):
    """The gradient and the curvature (minus the second derivatives) of an objective by all coordinates, where they are of, and
    the weight of the rows."""

    here: Array
    gradient: Array
    curvature: Array
    weight: float


@dataclass(frozen=True, eq=False)
class RegressionChart(Chart):
    """The coordinates of a regression around `cpd`, whose columns are taken from `centre`; those in `free` move."""

    cpd: RegressionCpd
    free: Flags
    centre: Array
    units: Array

    kept: ClassVar[tuple[str, ...]] = ("free", "centre")

    @classmethod
    def of(cls, cpd: RegressionCpd, seen: Any, imagined: Any, how: Estimate, boundary: float) -> RegressionChart:
        """A column that the rows cannot tell from those before it stays what it is."""
        chart = RegressionChart.around(cpd, np.ones(cpd.n_parameters), cpd.centre)
        s = chart.weigh(seen)
        return chart._told_apart(s.curvature, s.weight)

    @staticmethod
    def around(cpd: RegressionCpd, free: Any, centre: Any) -> RegressionChart:
        """The chart of a finished regression; `free` has a number for each parameter, 0 where it stays what it is."""
        flags = np.asarray(free, bool).reshape(-1)
        return RegressionChart(cpd, flags, np.asarray(centre, np.float64).reshape(-1), np.ones(len(flags)))

    @property
    def n_plain(self) -> int:
        return self.cpd.layout.size

    @property
    def unit(self) -> Array:
        """What changes ln p of a row by about one half."""
        return self.units[self.free]

    def vector(self, cpd: RegressionCpd) -> Array:
        return self._coordinates(cpd)[self.free]

    def with_lines(self, lines: Array) -> list[RegressionCpd]:
        """The regression at each of many settings of the parameters, as `lines_at` has them."""
        m, own, family = self.cpd.layout.size, (self.cpd.child, self.cpd.parent_variables), self.cpd.family
        spread = [float(line[0, m]) if self._spread else self.cpd.dispersion for line in lines]
        return [family.cpd(*own, line[0, :m], d, centre=self.centre) for line, d in zip(lines, spread, strict=True)]

    def lines_at(self, vectors: Array) -> Array:
        """The parameters at many vectors: [vectors, 1, parameters]."""
        own = np.repeat(self._coordinates(self.cpd)[None], len(vectors), axis=0)
        own[:, self.free] = vectors
        layout = self.cpd.layout
        theta, spread = own[:, : layout.size].copy(), np.exp(own[:, layout.size :])
        if self.cpd.family.ordered:
            theta[:, layout.levels[1:]] = np.exp(theta[:, layout.levels[1:]])
            theta[:, layout.levels] = np.cumsum(theta[:, layout.levels], axis=1)
        return np.concatenate([layout.shift(theta, -self.centre), spread], axis=1)[:, None]

    def outward(self, cpd: RegressionCpd, along: Array | None) -> tuple[RegressionChart, Array]:
        """The same: where columns have other units, a level is taken at the middle of the numbers."""
        if along is None:
            return super().outward(cpd, along)
        slopes = slice(1, 1 + len(self.centre))
        larger = np.append(np.diag(along)[:-1], 1.0)
        centre = (along[0, 0] * self.centre - along[0, slopes]) / larger[slopes]
        return RegressionChart.around(cpd, self.free, centre), larger[self.free]

    def weigh(self, seen: Any) -> LocalSlopes:
        """`seen` is the regression at which completed rows were looked at, and what they said; None if no row has weight."""
        cpd, statistic = seen
        here, m = self._coordinates(cpd), len(self.free)
        if statistic is None:
            return LocalSlopes(here, np.zeros(m), np.zeros((m, m)), 0.0)
        g, H, weight = cpd.family.slopes(cpd, statistic)
        if not cpd.family.ordered:
            return LocalSlopes(here, g, H, weight)
        J, steps = self._by_coordinates(cpd), self.cpd.layout.levels[1:]
        gradient = J.T @ g
        bent = np.zeros(m)
        bent[steps] = gradient[steps]  # ∂² cut point / ∂ (ln step)² is the step
        return LocalSlopes(here, gradient, J.T @ H @ J - np.diag(bent), weight)

    def score(self, cpd: RegressionCpd, s: LocalSlopes) -> Array:
        """g − H (η − η′)."""
        return np.asarray((s.gradient - s.curvature @ (self._coordinates(cpd) - s.here))[self.free])

    def information(self, cpd: RegressionCpd, s: LocalSlopes) -> Iterator[Array]:
        """H, one block."""
        if self.size:
            yield s.curvature[np.ix_(self.free, self.free)]

    def derivatives(self, cpd: RegressionCpd) -> Iterator[Array]:
        """∂ parameters / ∂ coordinates: centres are taken out; NaN for what is fixed."""
        layout, J = cpd.layout, self._by_coordinates(cpd)
        m = layout.size
        J[:m] = layout.shift(np.eye(m), -self.centre).T @ J[:m]
        J[m:, m:] *= cpd.dispersion
        J = J[:, self.free]
        J[~self.free] = np.nan
        yield J

    @property
    def moving(self) -> Flags:
        return self.free[None]

    def lines(self, cpd: RegressionCpd) -> Array:
        return np.concatenate([cpd.theta, [cpd.dispersion] if self._spread else []])[None]

    def reshape(self, values: Array) -> dict[str, Array]:
        family, layout = self.cpd.family, self.cpd.layout
        shaped = {family.level_field: values[0, layout.levels].reshape(layout.intercept)}
        shaped["coefficients"] = values[0, layout.slopes].reshape(layout.coefficients)
        return shaped | ({"dispersion": values[0, -1].reshape(())} if self._spread else {})

    def label(self, u: int, i: int) -> str:
        return (*self.cpd.parameter_names, f"dispersion of {self.cpd.child.name!r}")[int(i)]

    def _told_apart(self, curvature: Array, weight: float) -> Self:
        """The same chart, of the coordinates that have a curvature of their own, with steps that are as large as it says."""
        free = independent(curvature, self.cpd.child.name)
        return replace(self, free=free, units=np.sqrt(max(weight, 1e-300) / np.where(free, np.diag(curvature), weight or 1.0)))

    @property
    def _spread(self) -> bool:
        """Whether a dispersion is one of the parameters."""
        return len(self.free) > self.cpd.layout.size

    def _coordinates(self, cpd: RegressionCpd) -> Array:
        layout = cpd.layout
        theta = layout.shift(cpd.theta, self.centre)
        if cpd.family.ordered:
            theta[layout.levels[1:]] = np.log(np.diff(theta[layout.levels]))
        return np.append(theta, [np.log(cpd.dispersion)] if self._spread else [])

    def _by_coordinates(self, cpd: RegressionCpd) -> Array:
        """∂ (levels and slopes of centred columns, ln d) / ∂ coordinates: 1, but for cut points."""
        J, levels = np.eye(len(self.free)), cpd.layout.levels
        if cpd.family.ordered:
            steps = np.append(1.0, np.diff(cpd.cut_points))
            J[np.ix_(levels, levels)] = np.tril(np.ones((len(levels), len(levels)))) * steps
        return J


@dataclass(frozen=True, eq=False)
class LinearChart(RegressionChart):
    """The coordinates ξ of a linear regression, about which moments say all: those of a Gaussian are A ξ + b.

    `offset` has the slope of a parent that is not estimated, by its place among the numbers.
    """

    inner: GaussianChart
    offset: Mapping[int, float]

    @classmethod
    def of(cls, cpd: RegressionCpd, seen: Moments, imagined: Any, how: Estimate, boundary: float) -> LinearChart:
        """`imagined` is the slope of the offset."""
        line, m = line_of(cpd, imagined), cpd.n_parameters
        inner = GaussianChart.of(line, seen, None, how, boundary)
        chart = cls(cpd, np.ones(m, bool), np.zeros(m - 2), np.ones(m), inner, imagined)
        (block,) = chart.information(cpd, chart.weigh(seen))
        return chart._told_apart(block, float(seen.count.sum()))

    def weigh(self, seen: Moments) -> Any:
        return self.inner.weigh(seen)

    def score(self, cpd: RegressionCpd, s: Any) -> Array:
        return np.asarray((self._map.T @ self.inner.score(line_of(cpd, self.offset), s))[self.free])

    def information(self, cpd: RegressionCpd, s: Any) -> Iterator[Array]:
        blocks = np.array(list(self.inner.information(line_of(cpd, self.offset), s)))
        A = self._map.reshape(*blocks.shape[:2], len(self.free))[:, :, self.free]
        yield np.einsum("uij,uik,ukl->jl", A, blocks, A)

    @cached_property
    def _map(self) -> Array:
        """A: what each coordinate adds to those of the Gaussian."""
        m, family, own = len(self.free), self.cpd.family, (self.cpd.child, self.cpd.parent_variables)

        def gaussian(xi: Array) -> Array:
            line = line_of(family.cpd(*own, xi[:-1], float(np.exp(xi[-1]))), self.offset)
            return self.inner.vector(line)

        origin = gaussian(np.zeros(m))
        return np.array([gaussian(step) - origin for step in np.eye(m)]).T


def line_of(cpd: RegressionCpd, offset: Mapping[int, float]) -> ConditionalGaussian:
    """A linear regression as a Gaussian whose offset has this slope, by its place: 1, but that columns may be scaled."""
    line: ConditionalGaussian = cpd.closed_form()
    if not offset:
        return line
    slopes = line.coefficients.copy()
    slopes[..., list(offset)] = list(offset.values())
    return replace(line, coefficients=slopes)


class Events(NamedTuple):
    """How many events there were in how many rows, seen and imagined, in each configuration that has a coordinate."""

    events: Array
    rows: Array


@dataclass(frozen=True, eq=False)
class RatesChart(Chart):
    """The coordinates of rates around `cpd`, one for each configuration in `known`."""

    cpd: PoissonRates
    known: Flags
    imagined: Events | None = None

    kept: ClassVar[tuple[str, ...]] = ("known",)

    @classmethod
    def of(cls, cpd: PoissonRates, seen: Moments, imagined: Any, how: Estimate, boundary: float) -> RatesChart:
        every = np.ones(cpd.rates.size, bool)
        prior = None if imagined is None else cls(cpd, every).weigh(imagined)
        chart = cls(cpd, every, None if prior is None else prior._replace(events=prior.events - how.less))
        weighed, rates = chart.weigh(seen), cpd.rates.reshape(-1)
        return cls(cpd, (rates > boundary) & (weighed.rows > boundary), chart.imagined)

    @classmethod
    def around(cls, cpd: PoissonRates, known: Any) -> RatesChart:
        """The chart of finished rates; `known` has a number for each configuration, 0 where it stays what it is."""
        return cls(cpd, np.asarray(known, bool).reshape(-1))

    @property
    def unit(self) -> Array:
        """What changes ln p of a row by about one half."""
        return 1.0 / np.sqrt(self.cpd.rates.reshape(-1)[self.known])

    def vector(self, cpd: PoissonRates) -> Array:
        return np.log(cpd.rates.reshape(-1)[self.known])

    def lines_at(self, vectors: Array) -> Array:
        """The parameters at many vectors, a line for each configuration: [vectors, configurations, 1]."""
        own = np.repeat(self.lines(self.cpd)[None], len(vectors), axis=0)
        own[:, self.known, 0] = np.exp(vectors)
        return own

    def weigh(self, seen: Moments) -> Events:
        s = seen.at(np.flatnonzero(self.known))
        events, rows = s.count * s.mean[:, -1], s.count
        if self.imagined is None:
            return Events(events, rows)
        return Events(events + self.imagined.events[self.known], rows + self.imagined.rows[self.known])

    def score(self, cpd: PoissonRates, s: Events) -> Array:
        return np.asarray(s.events - s.rows * cpd.rates.reshape(-1)[self.known])

    def curvature(self, cpd: PoissonRates, s: Events) -> Array:
        """The diagonal of `information`."""
        return np.asarray(s.rows * cpd.rates.reshape(-1)[self.known])

    def information(self, cpd: PoissonRates, s: Events) -> Iterator[Array]:
        yield from (np.array([[x]]) for x in self.curvature(cpd, s))

    def derivatives(self, cpd: PoissonRates) -> Iterator[Array]:
        """∂ λ / ∂ ln λ."""
        for rate, known in zip(cpd.rates.reshape(-1), self.known, strict=True):
            yield np.array([[rate]]) if known else np.full((1, 0), np.nan)

    @property
    def moving(self) -> Flags:
        return self.known[:, None]

    def lines(self, cpd: PoissonRates) -> Array:
        return np.asarray(cpd.rates.reshape(-1, 1))

    def label(self, u: int, i: int) -> str:
        where = f" at {describe(int(u), self.cpd.parent_variables)}" if self.cpd.parents else ""
        return f"rate of {self.cpd.child.name!r}{where}"


def chart_of(cpd: Cpd) -> Any:
    """The kind of chart that a distribution has."""
    if isinstance(cpd, Table):
        if cpd.child.family is not None:  # whose parameters are fewer than the cells
            raise NoCoordinates(f"{cpd.child.name!r} is {cpd.child.family!r}")
        return TableChart
    if isinstance(cpd, ConditionalGaussian):
        return GaussianChart
    if isinstance(cpd, PoissonRates):
        return RatesChart
    if isinstance(cpd, RegressionCpd):
        return LinearChart if cpd.family.normal else RegressionChart
    raise NoCoordinates(f"{cpd.child.name!r} is {cpd.family!r}")


def still(cpds: Mapping[str, Any]) -> dict[str, Chart]:
    """The charts of distributions that are known: they have no coordinates."""
    charts: dict[str, Chart] = {}
    for name, cpd in cpds.items():
        if isinstance(cpd, Table):
            charts[name] = TableChart.around(cpd, np.zeros(cpd.probs.size))
        elif isinstance(cpd, ConditionalGaussian):
            centre = np.zeros((cpd.variance.size, len(cpd.real_parents)))
            charts[name] = GaussianChart.around(cpd, np.zeros(cpd.variance.size), centre)
        elif isinstance(cpd, PoissonRates):
            charts[name] = RatesChart.around(cpd, np.zeros(cpd.rates.size))
        elif isinstance(cpd, RegressionCpd):
            charts[name] = RegressionChart.around(cpd, np.zeros(cpd.n_parameters), cpd.centre)
    return charts
