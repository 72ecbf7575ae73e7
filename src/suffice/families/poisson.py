"""Poisson nodes: p(n | u) = λ[u]ⁿ e^(−λ[u]) / n! for a count n and finite parents u, with a rate λ for each configuration.

    statistic     per u: the rows N, the events S = Σ n (as count and mean of n), and Σ ln n!
    estimate      λ = S / N                    (maximum likelihood)
                  λ = (S + a) / (N + b)        (posterior mean)
                  λ = (S + a − 1) / (N + b)    (posterior mode)
    prior         λ[u] ~ Gamma(a, b), independent over u: a imagined events in b imagined rows
    evidence      Σᵤ [ln Γ(a + S) − ln Γ(a) + a ln b − (a + S) ln(b + N)] − Σ ln n!

Gelman et al. 2013, Bayesian Data Analysis, 3rd ed., p. 44.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError, ModelError, StatisticsError
from suffice.exponential.arithmetic.special import log_gamma_step
from suffice.exponential.poisson import Poisson as Counting
from suffice.exponential.predictives import NegativeBinomial as NegativeBinomial
from suffice.families.protocol.cpd import Array, Columns, Cpd, flat_index, split
from suffice.families.protocol.family import Estimate, Interval, Mean, Mode, checked_level
from suffice.inference.finite.network import CountNode, log_poisson
from suffice.libraries import sc
from suffice.remedies import BY_MEAN
from suffice.statistics import Moments, Request
from suffice.statistics.configurations import checked_cells, described, frozen, n_configurations, sizes
from suffice.statistics.derived import RowFormula, log_factorials
from suffice.variables import Count, Finite, Variable

LARGEST = 1e15
"""Counts are not drawn at larger rates: not every whole number is a double beyond."""


@dataclass(frozen=True)
class Poisson:
    """The family of counts with a rate for each configuration of their finite parents.

    >>> from suffice import Count
    >>> s = Moments((), ("n",), [0], [4.0], [[2.5]], [[[1.0]]], derived=log_factorials(["n"]), sums=[[3.0]])
    >>> Poisson().estimate(Count("n"), [], s, None, Mode()).rates
    array(2.5)
    """

    iterative: ClassVar[bool] = False
    normal: ClassVar[bool] = False

    def needs(self, child: Variable, parents: Sequence[Variable]) -> Request:
        return Request(tuple(p.name for p in parents), (child.name,), log_factorials([child.name]))

    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int:
        return n_configurations(split(parents)[0])

    def log_likelihood(self, child: Variable, seen: Moments) -> float:
        """Σᵤ S ln(S/N) − S − Σ ln n!: the log-likelihood at its maximum."""
        N, S = _rows_and_events(seen)
        return float((sc.xlogy(S, S / np.where(N > 0, N, 1.0)) - S).sum()) - _log_base(child, seen)

    def log_evidence(self, child: Variable, seen: Moments, imagined: Moments) -> float:
        """The log-probability of the data with the rates integrated out. An unseen configuration adds nothing."""
        N, S = _rows_and_events(seen)
        b, a = _rows_and_events(imagined.at(seen.keys))
        terms = log_gamma_step(a, S) - S * np.log(b + N) - a * np.log1p(N / b)
        return float(terms.sum()) - _log_base(child, seen)

    def estimate(
        self, child: Variable, parents: Sequence[Variable], seen: Moments, imagined: Moments | None, how: Estimate
    ) -> PoissonRates:
        finite = split(parents)[0]
        every = np.arange(checked_cells(finite, f"the rates of {child.name!r}"))
        N, S = _rows_and_events((seen if imagined is None else seen + imagined).at(every))
        if imagined is not None and isinstance(how, Mode):
            S = np.where(np.abs(S - np.rint(S)) < 1e-9 * np.maximum(S, 1.0), np.rint(S), S)  # rounding must not rule out a mode
            if np.any(S < 1.0):
                where = f" at {described(int(np.argmin(S)), finite)}" if finite else ""
                raise FitError(
                    f"the posterior of the rate of {child.name!r} has no mode{where}: events and shape of the prior make "
                    f"{S.min():g}, below 1; use {BY_MEAN} or a Gamma of a larger shape"
                )
            S = S - 1.0
        if not finite and not N[0] > 0:
            raise FitError(f"{child.name!r} cannot be fitted: there are no rows")
        rates = np.divide(S, N, out=np.full(len(N), np.nan), where=N > 0)
        return PoissonRates(child, finite, rates.reshape(sizes(finite)), seen, imagined)

    def from_moments(self, child: Variable, parents: Sequence[Variable], moments: Moments) -> PoissonRates:
        """The distribution whose means are these: where iterations start."""
        return self.estimate(child, parents, moments, None, Mean())


@dataclass(frozen=True, eq=False, repr=False)
class PoissonRates(Cpd):
    """p(child | parents) = Poisson(rates[u]), an axis per parent; `seen` and `imagined` are the moments it was fitted from.

    The rate of a configuration that no row had is NaN, without a prior.

    >>> from suffice import Count
    >>> import math
    >>> round(math.exp(PoissonRates(Count("n"), (), 2.0).log_prob({"n": np.array([3.0])})[0]), 6)
    0.180447
    """

    child: Variable
    parent_variables: tuple[Finite, ...]
    rates: Array
    seen: Moments | None = None
    imagined: Moments | None = None

    types: ClassVar[tuple[str, ...]] = ("poisson",)
    children: ClassVar[Any] = Count
    arrays: ClassVar[tuple[str, ...]] = ("rates",)
    positive: ClassVar[tuple[str, ...]] = ("rates",)
    kind: ClassVar[str] = "Poisson"
    noun: ClassVar[str] = "rate"
    marks_unseen: ClassVar[bool] = True

    def __post_init__(self) -> None:
        rates = np.array(self.rates, dtype=np.float64, order="C")
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        shape = sizes(self.parent_variables)
        if rates.shape != shape:
            axes = f" (axes {list(self.parents)})" if shape else ""
            raise ModelError(f"the rates of {self.child.name!r} need the shape {shape}{axes}, not {rates.shape}")
        if np.isinf(rates).any() or np.any(rates < 0.0):
            wrong = rates[np.isinf(rates) | (rates < 0.0)][0]
            raise ModelError(f"the rates of {self.child.name!r} must be finite numbers from 0 up, not {wrong:g}")
        object.__setattr__(self, "rates", frozen(rates))

    @property
    def family(self) -> Poisson:
        return Poisson()

    def node(self, number: Mapping[str, int], real_number: Mapping[str, int]) -> CountNode:
        return CountNode.of(tuple(number[p] for p in self.parents), self.rates)

    @property
    def means(self) -> Array:
        """The mean of the count in each configuration."""
        return self.rates

    def expected(self, derived: RowFormula) -> Array:
        """The mean in each configuration of what is derived from the count, ln n!: H − λ + λ ln λ."""
        return np.asarray(poisson_entropy(self.rates) - self.rates + sc.xlogy(self.rates, self.rates))

    def interval(self, level: float = 0.95) -> Interval:
        """The credible interval of each rate: quantiles of its Gamma(a + S, b + N)."""
        tail = (1.0 - checked_level(level)) / 2.0
        rows, events = self._posterior()
        lower, upper = ((sc.gammaincinv(events, q) / rows).reshape(self.rates.shape) for q in (tail, 1.0 - tail))
        return Interval(lower, upper)

    def predictive(self, given: Mapping[str, object] | None = None) -> NegativeBinomial:
        """The distribution of the next count given its parents, the rate integrated out."""
        g, (rows, events) = self.configuration(given or {}), self._posterior()
        return NegativeBinomial(float(events[g]), float(rows[g]))

    def log_likelihood(self, statistic: Moments) -> float:
        """Σ ln p(n | u) = Σᵤ S ln λ − N λ − Σ ln n!, from moments alone; −inf where there are events at a rate of 0."""
        N, S = _rows_and_events(statistic)
        rates = self._at(statistic.keys, N > 0)
        return float((sc.xlogy(S, rates) - N * rates)[N > 0].sum()) - _log_base(self.child, statistic)

    def log_prob(self, columns: Columns) -> Array:
        n = columns[self.child.name]
        rates = self._at(flat_index(columns, self.parent_variables, len(n)), np.ones(len(n), dtype=bool))
        return log_poisson(n, rates)

    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]:
        """Counts, as numbers, for n rows whose parents are in `columns`."""
        rates = self._at(flat_index(columns, self.parent_variables, n), np.ones(n, dtype=bool))
        if np.any(rates > LARGEST):
            raise ModelError(f"{self.child.name!r} has the rate {rates.max():g}: counts so large cannot be drawn exactly")
        return rng.poisson(rates).astype(np.float64)

    def to_frame(self) -> Any:
        """One row per configuration of the parents: its states, the rate, its 95 % interval where there is one."""
        return self._frame("rate", self.rates, self.parent_variables)

    def as_line(self) -> tuple[Array, Array, Array]:
        return self.rates, np.zeros((*self.rates.shape, 0)), self.rates

    def filled(self, mean: float, variance: float) -> PoissonRates:
        return replace(self, rates=np.where(self.undefined, mean, self.rates))

    def moved(self, parent: str, rng: np.random.Generator) -> PoissonRates:
        return replace(self, rates=self.rates * rng.uniform(0.7, 1.4, self.rates.shape))

    def log_prior(self, imagined: Moments, how: Estimate, log_scale: float) -> float:
        """Σ a ln λ − b λ for means, with a imagined events in b rows; Σ (a − 1) ln λ − b λ for modes."""
        prior, rates = imagined.at(np.arange(self.rates.size)), self.rates.reshape(-1)
        events = prior.count * prior.mean[:, 0] - how.less
        return float((sc.xlogy(events, rates) - prior.count * rates).sum())

    def _entropies(self, held: npt.NDArray[np.bool_]) -> Array:
        return poisson_entropy(self.rates[held])

    def _drawn(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        rows, events = self._posterior()
        drawn = rng.standard_gamma(events, (n, len(events))) / rows
        return {"rates": drawn.reshape(n, *self.rates.shape)}

    def quantiles_at(self, means: Array, variances: Array, shares: Array) -> Array:
        """Below which so large a share of counts of these means lies."""
        from scipy.stats import poisson

        return np.asarray(poisson.ppf(shares, means))

    def _posterior(self) -> tuple[Array, Array]:
        return _rows_and_events(self.posterior().at(np.arange(self.rates.size)))

    def _at(self, rows: npt.NDArray[np.int64], used: npt.NDArray[np.bool_]) -> Array:
        """The rate of each row's configuration; one that has none is refused by name."""
        rates = self.rates.reshape(-1)[rows]
        lost = np.isnan(rates) & used
        if lost.any():
            where = described(int(rows[np.argmax(lost)]), self.parent_variables)
            raise ModelError(f"{self.child.name!r} has no rate at {where}: no row had it; fit with a prior")
        return np.asarray(rates)

    def _numbers(self, limit: int) -> tuple[list[str], list[list[object]]]:
        return ["rate"], [[rate] for rate in self.rates.reshape(-1)[:limit].tolist()]


TOGETHER = 4096
"""Rates whose sums are held in memory at once."""


def poisson_entropy(rates: Array) -> Array:
    """H of a Poisson distribution of each rate, in nats; NaN where the rate is.

    >>> poisson_entropy(np.array([0.0, 1.0, 1.0, np.nan, 1e6])).round(6)
    array([0.      , 1.304842, 1.304842,      nan, 8.326694])
    """
    result = np.full(np.shape(rates), np.nan)
    known = ~np.isnan(rates)
    distinct, inverse = np.unique(rates[known], return_inverse=True)
    parts = [Counting(distinct[i : i + TOGETHER]).entropy() for i in range(0, len(distinct), TOGETHER)]
    if parts:
        result[known] = np.concatenate(parts)[inverse]
    return result


def _rows_and_events(moments: Moments) -> tuple[Array, Array]:
    """N and S = Σ n of each group; of what a prior imagines, the rate b and the shape a."""
    return moments.count, moments.count * (moments.mean[:, -1] + moments.rest[:, -1])


def _log_base(child: Variable, moments: Moments) -> float:
    """Σ ln n! over all rows, without which the likelihood of counts is known only up to a constant."""
    total = float(moments.sum_of(*log_factorials([child.name])).sum())
    if np.isnan(total):
        raise StatisticsError(
            f"these moments of {child.name!r} do not hold Σ ln n!, which the likelihood of counts needs; gather them from data "
            f"in which {child.name!r} is declared a Count"
        )
    return total
