"""The beta distribution: p(x | a, b) = x^(a−1) (1 − x)^(b−1) / B(a, b), 0 < x < 1: the first share of a Dirichlet of two.

    T(x) = (ln x, ln(1 − x)),   h(x) = 1,   η = (a − 1, b − 1),   A(η) = ln B(a, b)
    E[T] = (ψ(a) − ψ(a + b), ψ(b) − ψ(a + b)),   Cov[T] = diag(ψ′(a), ψ′(b)) − ψ′(a + b)

As a prior, of the probability of Bernoulli, Binomial and Geometric.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.exponential import shares
from suffice.exponential.dirichlet_mean import from_log_means
from suffice.exponential.family import Family, FamilyAndPrior, generator
from suffice.exponential.interval import Interval
from suffice.exponential.special import log_beta
from suffice.exponential.statistic import Totals, aligned
from suffice.exponential.values import LEAST, Array, bounded, keep, observed, plain, vectors


@dataclass(frozen=True, eq=False, repr=False)
class Beta(FamilyAndPrior):
    """A distribution of numbers between 0 and 1; as a prior, of the probability of `Bernoulli`, `Binomial` and `Geometric`.

    >>> from suffice.exponential import Bernoulli
    >>> posterior = Beta(1.0, 1.0) + Bernoulli().statistic([1, 0, 0, 1, 1])
    >>> posterior, round(posterior.mean, 4), posterior.mode
    (Beta(a=4.0, b=3.0, of=Bernoulli()), 0.5714, 0.6)
    >>> [round(end, 4) for end in posterior.interval(0.95)], posterior.predictive()
    ([0.2228, 0.8819], Bernoulli(p=0.5714285714285714))
    >>> round(Beta().estimate(Beta().statistic([0.2, 0.5, 0.6])).mean, 4)
    0.4288
    """

    a: Any = None
    b: Any = None
    of: Family | None = field(default=None, kw_only=True)

    names: ClassVar[tuple[str, ...]] = ("a", "b")
    support: ClassVar[str] = "numbers above 0 and below 1"
    example: ClassVar[str] = "Bernoulli()"

    def __post_init__(self) -> None:
        checked = {n: bounded(v, f"{n} of Beta", 0.0, open=True) for n in self.names if (v := getattr(self, n)) is not None}
        keep(self, a=checked.get("a"), b=checked.get("b"))

    @property
    def mean(self) -> Any:
        """E[x] = a/(a + b)."""
        a, b = self._need("a"), self._need("b")
        return plain(a / (a + b))

    @property
    def variance(self) -> Any:
        """Var[x] = ab/(a + b)²(a + b + 1)."""
        a, b = self._need("a"), self._need("b")
        return plain(a / (a + b) * (b / (a + b)) / (a + b + 1.0))

    @property
    def mode(self) -> Any:
        """(a − 1)/(a + b − 2); refused where a or b is below 1, or both are 1: there is no such point then."""
        return plain(shares.mode(self._both(None), "Beta")[..., 0])

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval of this probability."""
        return shares.beta_interval(self._need("a"), self._need("b"), level)

    def sufficient(self, x: Any) -> Array:
        x, _ = self._inside(x)
        with np.errstate(divide="ignore"):
            return np.stack([np.log(x), np.log1p(-x)], axis=-1)

    def log_base(self, x: Any) -> Array:
        return np.where(self._inside(x)[1], 0.0, -np.inf)

    @property
    def natural(self) -> Array:
        return self._both(None) - 1.0

    def from_natural(self, eta: Any) -> Self:
        both = self._both(eta)
        return type(self)(both[..., 0], both[..., 1])

    def from_mean(self, mu: Any) -> Self:
        both = from_log_means(vectors(mu, "E[T] of Beta", 2))
        return type(self)(both[..., 0], both[..., 1])

    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(log_beta(self._both(eta)))

    def gradient(self, eta: Any = None) -> Array:
        return shares.log_means(self._both(eta))

    def hessian(self, eta: Any = None) -> Array:
        return shares.hessian(self._both(eta))

    @aligned
    def log_prob(self, x: Any) -> Any:
        """At 0 and 1: the limit of the density there, which may be infinite."""
        both = self._both(None)
        x, inside = self._inside(x)
        return plain(np.where(inside, shares.log_density(np.stack([x, 1.0 - x], axis=-1), both), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        a, b = self._need("a"), self._need("b")
        # Never 0 or 1, which are no values of it, but the doubles next to them.
        return np.clip(generator(n, seed).beta(a, b, (n, *a.shape)), LEAST, np.nextafter(1.0, 0.0))

    def entropy(self) -> Any:
        """ln B(a, b) − (a − 1) ψ(a) − (b − 1) ψ(b) + (a + b − 2) ψ(a + b)."""
        return plain(shares.entropy(self._both(None)))

    @aligned
    def kl(self, other: Self) -> Any:
        """ln B(a₂, b₂)/B(a₁, b₁) + (a₁ − a₂) E₁[ln x] + (b₁ − b₂) E₁[ln(1 − x)]."""
        self._comparable(other)
        return plain(shares.divergence(self._both(None), other._both(None)))

    def _slack(self, statistic: Totals) -> Array:
        return -statistic.total

    def _both(self, eta: Any) -> Array:
        """(a, b), along the last axis."""
        if eta is None:
            return np.stack([self._need("a"), self._need("b")], axis=-1)
        return bounded(vectors(eta, "η of Beta", 2) + 1.0, "η + 1 of Beta", 0.0, open=True)

    def _inside(self, x: Any) -> tuple[Array, npt.NDArray[np.bool_]]:
        """x, and whether it is possible; ½ in place of what is not."""
        x = observed(x, "Beta")
        inside = (x >= 0.0) & (x <= 1.0)
        return np.where(inside, x, 0.5), inside
