"""Mixtures of Poisson distributions: what a network says about a count."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from suffice.display import html_table, number, text_table
from suffice.errors import ModelError
from suffice.families.family import checked_level, frame
from suffice.inference.network import Array
from suffice.models.evidence import in_words


@dataclass(frozen=True, eq=False, repr=False)
class PoissonMixture:
    """p(count | given) = Σ weights · Poisson(rates), a component for each configuration of the count's finite parents.

    >>> answer = PoissonMixture("n", [0.25, 0.75], [1.0, 5.0])
    >>> answer.mean, answer.variance, round(answer[0], 6), answer.quantile(0.5)
    (4.0, 7.0, 0.097023, 4)
    >>> answer
    p(n), exact: mean 4, sd 2.646
    weight  rate
    ──────  ────
    0.25    1
    0.75    5
    """

    name: str
    weights: Array
    rates: Array
    log_prob_of_evidence: float = 0.0
    how: str = "exact"
    given: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("weights", "rates"):
            values = np.array(getattr(self, name), np.float64)
            if values.ndim != 1 or not len(values) or len(values) != len(self.weights):
                raise ModelError("a mixture of Poisson distributions has a weight and a rate for each component")
            values.flags.writeable = False
            object.__setattr__(self, name, values)

    def __reduce__(self) -> tuple[object, ...]:
        # arrays come out of a pickle writeable; made anew they are not
        return PoissonMixture, tuple(getattr(self, f.name) for f in fields(self))

    def __len__(self) -> int:
        """The number of components."""
        return len(self.weights)

    @property
    def names(self) -> tuple[str, ...]:
        """The target."""
        return (self.name,)

    @property
    def mean(self) -> float:
        return float(self.weights @ self.rates)

    @property
    def variance(self) -> float:
        """Σ weights (rate + (rate − mean)²)."""
        return float(self.weights @ (self.rates + (self.rates - self.mean) ** 2))

    @property
    def sd(self) -> float:
        return float(np.sqrt(self.variance))

    def __getitem__(self, n: int) -> float:
        """p(count = n)."""
        from scipy.stats import poisson

        return float(self.weights @ poisson.pmf(n, self.rates))

    def log_prob(self, n: Any) -> Any:
        """ln p(count = n) at a number or an array of numbers.

        >>> PoissonMixture("n", [1.0], [1.0]).log_prob([0, 1])
        array([-1., -1.])
        """
        from scipy.stats import poisson

        counts = np.asarray(n, np.float64)
        with np.errstate(divide="ignore"):
            logs = poisson.logpmf(counts[..., None], self.rates) + np.log(self.weights)
        total = np.logaddexp.reduce(logs, axis=-1)
        return total if counts.ndim else float(total)

    def __iter__(self) -> Any:
        raise ModelError("a count has no last value: ask for single probabilities, answer[0], or for quantiles")

    def cdf(self, n: float) -> float:
        """P(count ≤ n)."""
        from scipy.stats import poisson

        return float(self.weights @ poisson.cdf(n, self.rates))

    def quantile(self, q: float) -> int:
        """The smallest count that is not exceeded with a probability of q at least."""
        from scipy.stats import poisson

        if not (isinstance(q, (int, float)) and 0.0 <= q < 1.0):
            raise ModelError(f"a quantile of a count is asked for at a probability from 0 up and below 1, not at {q!r}")
        each = np.maximum(poisson.ppf(q, self.rates), 0.0)
        low, high = int(each.min()), int(each.max())
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self.cdf(middle) >= q else (middle + 1, high)
        return low

    def interval(self, level: float = 0.95) -> tuple[int, int]:
        """The equal-tailed interval that holds the count with this probability at least."""
        tail = (1.0 - checked_level(level)) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

    def to_frame(self) -> Any:
        """One row per component: its weight and its rate.

        >>> PoissonMixture("n", [0.25, 0.75], [1.0, 5.0]).to_frame().values.tolist()
        [[0.25, 1.0], [0.75, 5.0]]
        """
        return frame({"weight": self.weights, "rate": self.rates})

    def _rows(self, limit: int) -> list[list[object]]:
        return [[float(w), float(r)] for w, r in zip(self.weights[:limit], self.rates[:limit], strict=True)]

    def _title(self) -> str:
        given = f" | {in_words(self.given)}" if self.given else ""
        return f"p({self.name}{given}), {self.how}: mean {number(self.mean)}, sd {number(self.sd)}"

    def __repr__(self) -> str:
        more = len(self) - 32
        table = text_table(["weight", "rate"], self._rows(32))
        return f"{self._title()}\n{table}" + (f"\n… and {more:,} more components" if more > 0 else "")

    def _repr_html_(self) -> str:
        return html_table(["weight", "rate"], self._rows(64), caption=self._title())
