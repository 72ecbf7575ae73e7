"""What a network says about a number that is a regression: its distribution, mixed over finite parents that are not observed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

import numpy as np

from suffice.display import html_table, number, text_table
from suffice.errors import ModelError
from suffice.families.family import checked_level, frame
from suffice.families.regression_cpd import RegressionCpd
from suffice.inference.logs import log_sum
from suffice.inference.network import Array
from suffice.models.answers import and_more
from suffice.models.evidence import in_words
from suffice.models.no_formula import words
from suffice.statistics.configurations import frozen
from suffice.variables import Count


@dataclass(frozen=True, eq=False, repr=False)
class RegressionMixture:
    """p(target | given) = Σ weights · p(target | parents), a component for each configuration of the parents in `columns`.

    Of a binomial, a negative binomial or a gamma regression all of whose numbers are given.

    >>> from suffice.families.responses import GammaLog
    >>> from suffice.variables import Finite, Real
    >>> cpd = RegressionCpd(Real("cost"), (Finite("ill", ["no", "yes"]),), GammaLog(), 0.0, [np.log(3.0)], dispersion=0.5)
    >>> answer = RegressionMixture(cpd, [0.75, 0.25], {"ill": np.array([0, 1])})
    >>> answer
    p(cost), exact, gamma regression: mean 1.5, sd 1.5
    weight  mean  sd
    ──────  ────  ──────
    0.75    1     0.7071
    0.25    3     2.121
    >>> [round(end, 3) for end in answer.interval(0.95)], round(answer.log_prob(1.0), 4)
    ([0.139, 5.841], -0.7699)
    """

    cpd: RegressionCpd
    weights: Array
    columns: Mapping[str, Any]
    log_prob_of_evidence: float = 0.0
    how: str = "exact"
    given: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", frozen(np.array(self.weights, np.float64)))
        trials = np.asarray(self.columns.get(str(self.cpd.family.trials), 0.0))
        if not np.all((trials >= 0) & (trials == np.floor(trials))):
            raise ModelError(f"the trials {self.cpd.family.trials!r} of {self.name!r} are a whole number, not {trials[0]:g}")
        if not np.isfinite(self._moments[1]).all():
            wrong = float(self._moments[0][~np.isfinite(self._moments[1])][0])
            raise ModelError(f"{self.name!r} is a {words(self.cpd)} whose mean here is {wrong:g}, which is none")

    def __reduce__(self) -> tuple[object, ...]:
        # arrays come out of a pickle writeable; made anew they are not
        return RegressionMixture, tuple(getattr(self, f.name) for f in fields(self))

    def __len__(self) -> int:
        """The number of components."""
        return len(self.weights)

    @property
    def name(self) -> str:
        return self.cpd.child.name

    @property
    def names(self) -> tuple[str, ...]:
        """The target."""
        return (self.name,)

    @property
    def is_count(self) -> bool:
        return isinstance(self.cpd.child, Count)

    @property
    def mean(self) -> float:
        return float(self.weights @ self._moments[0])

    @property
    def variance(self) -> float:
        """Σ weights (variance + (mean − the mean of all)²) over the components."""
        mean, variance = self._moments
        return float(self.weights @ (variance + (mean - self.mean) ** 2))

    @property
    def sd(self) -> float:
        return float(np.sqrt(self.variance))

    def log_prob(self, x: Any) -> Any:
        """ln of the density, of a count of the probability, at a number or an array of numbers."""
        points = _numbers(x)
        flat, m = points.reshape(-1), len(self)
        spread = {name: np.tile(column, len(flat)) for name, column in self.columns.items()}
        logs = self.cpd.log_prob(spread | {self.name: np.repeat(flat, m)}).reshape(len(flat), m)
        with np.errstate(divide="ignore"):
            total = np.asarray(log_sum(logs + np.log(self.weights), (1,)))
        return total.reshape(points.shape) if points.ndim else float(total[0])

    def cdf(self, x: float) -> float:
        """P(target ≤ x)."""
        return float(self.weights @ self._each.cdf(float(_numbers(x))))

    def quantile(self, q: float) -> float:
        """The smallest number that the target does not exceed with a probability of q at least; of a count, a whole one."""
        if isinstance(q, bool) or not (isinstance(q, (int, float)) and 0.0 <= q <= 1.0):
            raise ModelError(f"a quantile is asked for at a probability from 0 to 1, not at {q!r}")
        ends = np.maximum(self._each.ppf(q), 0.0)  # scipy has the quantile 0 of counts at −1
        low, high = float(ends.min()), float(ends.max())
        if not low < high < np.inf:
            return self._told(high)

        def enough(x: float) -> bool:  # by the tail that has the digits
            return self.cdf(x) >= q if q <= 0.5 else float(self.weights @ self._each.sf(x)) <= 1.0 - q

        return self._told(_first(enough, low, high, whole=self.is_count))

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The equal-tailed interval that holds the target with this probability, of a count at least."""
        tail = (1.0 - checked_level(level)) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

    def to_frame(self) -> Any:
        """One row per component: its weight, mean and variance."""
        mean, variance = self._moments
        return frame({"weight": self.weights, "mean": mean, "variance": variance})

    def components(self) -> list[tuple[float, float, float]]:
        """The weight, mean and variance of each component."""
        return list(zip(self.weights.tolist(), *(m.tolist() for m in self._moments), strict=True))

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        return self.cpd.moments(self.columns, len(self))

    @cached_property
    def _each(self) -> Any:
        return self.cpd.distribution(self.columns, len(self))

    def _told(self, x: float) -> float:
        return int(x) if self.is_count and np.isfinite(x) else x

    def _rows(self, limit: int) -> list[list[object]]:
        columns = self.weights, self._moments[0], np.sqrt(self._moments[1])
        return [[float(x) for x in row] for row in zip(*(c[:limit] for c in columns), strict=True)]

    def _title(self) -> str:
        given = f" | {in_words(self.given)}" if self.given else ""
        return f"p({self.name}{given}), {self.how}, {words(self.cpd)}: mean {number(self.mean)}, sd {number(self.sd)}"

    def __repr__(self) -> str:
        return f"{self._title()}\n{text_table(['weight', 'mean', 'sd'], self._rows(32))}{and_more(len(self) - 32, 'component')}"

    def _repr_html_(self) -> str:
        return html_table(["weight", "mean", "sd"], self._rows(64), caption=self._title())


def _first(enough: Callable[[float], bool], low: float, high: float, *, whole: bool) -> float:
    """The first number from low to high for which it is enough, by halving: to the last digit, or to the whole number.

    >>> _first(lambda x: x > 2.5, 0.0, 9.0, whole=True)
    3.0
    """
    if enough(low):
        return low
    while True:
        middle = float(np.floor((low + high) / 2.0)) if whole else 0.5 * low + 0.5 * high
        if middle in (low, high):
            return high
        low, high = (low, middle) if enough(middle) else (middle, high)


def _numbers(x: Any) -> Array:
    try:
        array = np.asarray(x, np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if np.isnan(array).any():
        raise ModelError(f"the distribution of a number is asked about numbers, not {x!r}")
    return array
