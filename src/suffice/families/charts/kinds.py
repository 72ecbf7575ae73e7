"""The rates of a Poisson node as coordinates that no bounds hold, and derivatives by them from statistics alone; and which chart
a distribution has.

ln λ    for each configuration u that rows speak for;   S − N λ and N λ, of S events in N rows, are gradient and information
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError
from suffice.families.categorical import Table
from suffice.families.charts.plain import Array, Chart, Flags, GaussianChart, TableChart
from suffice.families.charts.regression import LinearChart, RegressionChart
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.poisson import PoissonRates
from suffice.families.protocol.family import Cpd, Estimate
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.statistics import Moments
from suffice.statistics.counts import describe


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

    @classmethod
    def of(cls, cpd: PoissonRates, seen: Moments, imagined: Any, how: Estimate, boundary: float) -> RatesChart:
        every = np.ones(cpd.rates.size, bool)
        prior = None if imagined is None else _events(imagined, every)
        chart = cls(cpd, every, None if prior is None else Events(prior.events - how.less, prior.rows))
        weighed, rates = chart.weigh(seen), cpd.rates.reshape(-1)
        return cls(cpd, (rates > boundary) & (weighed.rows > boundary), chart.imagined)

    @classmethod
    def around(cls, cpd: PoissonRates, known: Any) -> RatesChart:
        """The chart of finished rates; `known` has a number for each configuration, 0 where it stays what it is."""
        return cls(cpd, np.asarray(known, bool).reshape(-1))

    @property
    def parts(self) -> dict[str, npt.NDArray[Any]]:
        """What `around` makes it of again."""
        return {"known": self.known}

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        return np.asarray(self.known.astype(np.intp))

    @property
    def unit(self) -> Array:
        """What changes ln p of a row by about one half."""
        return 1.0 / np.sqrt(self.cpd.rates.reshape(-1)[self.known])

    def vector(self, cpd: PoissonRates) -> Array:
        return np.log(cpd.rates.reshape(-1)[self.known])

    def with_lines(self, lines: Array) -> list[PoissonRates]:
        """The rates at each of many settings of the parameters, as `lines_at` has them."""
        return [PoissonRates(self.cpd.child, self.cpd.parent_variables, line.reshape(self.cpd.rates.shape)) for line in lines]

    def lines_at(self, vectors: Array) -> Array:
        """The parameters at many vectors, a line for each configuration: [vectors, configurations, 1]."""
        own = np.repeat(self.lines(self.cpd)[None], len(vectors), axis=0)
        own[:, self.known, 0] = np.exp(vectors)
        return own

    def weigh(self, seen: Moments) -> Events:
        s = _events(seen, self.known)
        if self.imagined is None:
            return s
        return Events(s.events + self.imagined.events[self.known], s.rows + self.imagined.rows[self.known])

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

    def reshape(self, values: Array) -> Array:
        return values.reshape(self.cpd.rates.shape)

    def limits(self, origin: Array, farthest: float) -> tuple[Array, Array]:
        """Log rates stay within `farthest` of their start."""
        low = np.full(len(origin), -farthest)
        return low, -low

    def ends(self, point: Array, error: Array, z: float) -> tuple[Array, Array]:
        """z standard errors below and above, on the scale of logarithms."""
        factor = np.exp(z * error / point)
        return point / factor, point * factor

    def label(self, u: int, i: int) -> str:
        where = f" at {describe(int(u), self.cpd.parent_variables)}" if self.cpd.parents else ""
        return f"rate of {self.cpd.child.name!r}{where}"


def _events(moments: Moments, known: Flags) -> Events:
    """Σ y and the rows of each configuration in `known`."""
    s = moments.at(np.flatnonzero(known))
    return Events(s.count * s.mean[:, -1], s.count)


def chart_of(cpd: Cpd) -> Any:
    """The kind of chart that a distribution has."""
    if isinstance(cpd, Table):
        if cpd.child.family is not None:
            raise FitError(
                f"{cpd.child.name!r} is {cpd.child.family!r}, whose parameters are fewer than the cells of its table; gradients "
                "and information know none of those: use em, and no interval"
            )
        return TableChart
    if isinstance(cpd, ConditionalGaussian):
        return GaussianChart
    if isinstance(cpd, PoissonRates):
        return RatesChart
    if isinstance(cpd, RegressionCpd):
        return LinearChart if cpd.family.normal else RegressionChart
    raise FitError(
        f"{cpd.child.name!r} is a {type(cpd).__name__}; gradients and information are of tables, Gaussians, rates and "
        "regressions: use em"
    )


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
