"""Independent trials with one probability of success: what Bernoulli (one trial) and Binomial (n of them) have in common.

T(x) = x,   h(x) = n!/x!(n−x)!,   η = ln p/(1 − p),   A(η) = n ln(1 + e^η),   E[T] = np,   Var[T] = np(1 − p)

conjugate   Beta(total, n·count − total)     prior + statistic   Beta(a + S, b + nN − S)
evidence    ln B(a + S, b + nN − S) − ln B(a, b) + Σ ln h(x),   S = Σ x of N rows
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.exponential.family import Family, generator
from suffice.exponential.special import deviance, lattice, log_binomial, log_counts_evidence, log_multinomial
from suffice.exponential.statistic import Totals, aligned
from suffice.exponential.values import Array, bounded, observed, plain, vectors

if TYPE_CHECKING:
    from suffice.exponential.beta import Beta

ROUNDING = 1e-12
"""What a subtraction of weighted statistics may leave of a share that is 0 or 1."""


class Trials(Family):
    """The number of successes in some trials, each with probability `p`."""

    names: ClassVar[tuple[str, ...]] = ("p",)
    prior: ClassVar[str] = "Beta"
    p: Any

    @property
    @abstractmethod
    def trials(self) -> Array:
        """n, the number of trials."""

    def shares_parameters(self, other: Family) -> bool:
        """The p of one trial is that of many."""
        return isinstance(other, Trials)

    @abstractmethod
    def with_p(self, p: Any) -> Self:
        """The same with this probability of success."""

    @property
    def mean(self) -> Any:
        """E[x] = np."""
        return plain(self.trials * self._need("p"))

    @property
    def variance(self) -> Any:
        """Var[x] = np(1 − p)."""
        return plain(self.trials * self._need("p") * (1.0 - self._need("p")))

    def sufficient(self, x: Any) -> Array:
        return observed(x, self._title)[..., None]

    def log_base(self, x: Any) -> Array:
        x, inside = self._inside(x)
        outcomes = np.stack(np.broadcast_arrays(x, self.trials - x), axis=-1)
        return np.where(inside, log_multinomial(outcomes), -np.inf)

    @property
    def natural(self) -> Array:
        p = self._need("p")[..., None]
        with np.errstate(divide="ignore"):
            return np.asarray(np.log(p) - np.log1p(-p))

    def from_natural(self, eta: Any) -> Self:
        from scipy.special import expit

        return self.with_p(expit(self._at(eta)[..., 0]))

    def from_mean(self, mu: Any) -> Self:
        share = vectors(mu, f"E[T] of {self._title}", 1)[..., 0] / self.trials
        slightly_out = (share >= -ROUNDING) & (share <= 1.0 + ROUNDING)
        return self.with_p(np.where(slightly_out, np.clip(share, 0.0, 1.0), share))

    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(self.trials * np.logaddexp(0.0, self._at(eta)[..., 0]))

    def gradient(self, eta: Any = None) -> Array:
        from scipy.special import expit

        return np.asarray(self.trials[..., None] * (self._need("p")[..., None] if eta is None else expit(self._at(eta))))

    def hessian(self, eta: Any = None) -> Array:
        from scipy.special import expit

        p, q = (self._need("p"), 1.0 - self._need("p")) if eta is None else (expit(s * self._at(eta)[..., 0]) for s in (1, -1))
        return np.asarray(self.trials * p * q)[..., None, None]

    @aligned
    def log_prob(self, x: Any) -> Any:
        p = self._need("p")
        x, inside = self._inside(x)
        return plain(np.where(inside, log_binomial(x, self.trials, p, 1.0 - p), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        p, trials = np.broadcast_arrays(self._need("p"), self.trials)
        return np.asarray(generator(n, seed).binomial(trials.astype(np.int64), p, (n, *p.shape)))

    def entropy(self) -> Any:
        """The sum of −p ln p over all counts, exact to rounding."""
        p = self._need("p")
        x, weight = lattice(self.mean, np.sqrt(self.variance), self.trials)
        logs = log_binomial(x, self.trials[..., None], p[..., None], 1.0 - p[..., None])
        return plain(-(weight * np.exp(logs) * np.where(np.isneginf(logs), 0.0, logs)).sum(axis=-1) + 0.0)

    @aligned
    def kl(self, other: Self) -> Any:
        """n (p ln(p/r) + (1 − p) ln((1 − p)/(1 − r))); inf where the other rules out what this allows."""
        self._comparable(other)
        p, r = self._need("p"), other._need("p")
        return plain(self.trials * (deviance(p, r) + deviance(1.0 - p, 1.0 - r)))

    @aligned
    def conjugate(self, total: Any, count: Any) -> Beta:
        from suffice.exponential.beta import Beta

        total = vectors(total, f"the total of {self._title}", 1)[..., 0]
        return Beta(total, self.trials * bounded(count, "the count", 0.0) - total, of=self.bare)

    @aligned
    def posterior(self, prior: Any, statistic: Totals) -> Beta:
        from suffice.exponential.beta import Beta

        a, b = self._imagined(prior)
        successes, failures = self._outcomes(statistic)
        return Beta(a + successes, b + failures, of=self.bare)

    @aligned
    def log_evidence(self, prior: Any, statistic: Totals) -> Any:
        """All digits are there of one row, or where h = 1; of several rows they end where the rounding of Σ ln h(x) does."""
        a, b = self._imagined(prior)
        successes, failures = self._outcomes(statistic)
        outcomes = np.stack(np.broadcast_arrays(successes, failures), axis=-1)
        return plain(log_counts_evidence(outcomes, np.stack([a, b], axis=-1), statistic.log_base))

    def _slack(self, statistic: Totals) -> Array:
        successes = statistic.total[..., 0]
        return np.stack(np.broadcast_arrays(successes, self.trials * statistic.count - successes), axis=-1)

    def _outcomes(self, statistic: Totals) -> tuple[Array, Array]:
        """Successes and failures."""
        successes = np.maximum(self._own(statistic).total[..., 0], 0.0)
        return successes, np.maximum(self.trials * statistic.count - successes, 0.0)

    def _inside(self, x: Any) -> tuple[Array, npt.NDArray[np.bool_]]:
        """x, and whether it is possible; 0 in place of what is not."""
        x = observed(x, self._title)
        inside = (x >= 0.0) & (x <= self.trials) & (x == np.rint(x))
        return np.where(inside, x, 0.0), inside
