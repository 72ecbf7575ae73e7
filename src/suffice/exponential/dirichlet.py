"""The Dirichlet distribution: p(x | α) = Γ(A)/Π Γ(αᵢ) Π xᵢ^(αᵢ−1), A = Σα, of k positive numbers x that sum to 1.

    T(x) = (ln x₁, …, ln x_k),   h(x) = 1,   η = α − 1,   A(η) = Σ ln Γ(αᵢ) − ln Γ(A)
    E[T] = ψ(αᵢ) − ψ(A),   Cov[T] = ψ′(αᵢ) 1[i=j] − ψ′(A)

Densities are those of x₁, …, x_{k−1}, the last being what is left. Its logs vary freely below a curved surface, so that all k of
them make a minimal form. As a prior, of the probabilities of Categorical and Multinomial.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, ModelError
from suffice.exponential import shares
from suffice.exponential.dirichlet_mean import from_log_means
from suffice.exponential.family import Family, FamilyAndPrior, generator
from suffice.exponential.interval import Interval
from suffice.exponential.special import log_beta
from suffice.exponential.statistic import Totals, aligned
from suffice.exponential.values import LEAST, Array, bounded, held, observed, plain

SUM = 1e-9
"""Shares that sum to 1 but for this much are taken as such."""


@dataclass(frozen=True, eq=False, repr=False)
class Dirichlet(FamilyAndPrior):
    """A distribution of shares, or of the probabilities of states: the conjugate prior of `Categorical` and `Multinomial`.

    `alpha` are imagined counts. (`suffice.Dirichlet` is something else: it imagines counts for the nodes of a network.)

    >>> from suffice.exponential import Categorical
    >>> posterior = Dirichlet([1, 1, 1]) + Categorical(3).statistic([0, 0, 2])
    >>> posterior.mean.round(3), posterior.mode.round(3)
    (array([0.5  , 0.167, 0.333]), array([0.667, 0.   , 0.333]))
    >>> posterior.interval(0.9).upper.round(3)
    array([0.811, 0.451, 0.657])
    """

    alpha: Any = None
    of: Family | None = field(default=None, kw_only=True)

    names: ClassVar[tuple[str, ...]] = ("alpha",)
    support: ClassVar[str] = "vectors of positive numbers that sum to 1"
    event_axes: ClassVar[int] = 1
    example: ClassVar[str] = "Categorical(3)"

    def __post_init__(self) -> None:
        if self.alpha is not None:
            alpha = bounded(self.alpha, "alpha of Dirichlet", 0.0, open=True)
            if alpha.ndim == 0 or alpha.shape[-1] < 2:
                raise ModelError(f"alpha of Dirichlet needs one number for each of two states or more, not {self.alpha!r}")
            object.__setattr__(self, "alpha", held(alpha))

    @property
    def mean(self) -> Any:
        """E[x] = α/A."""
        alpha = self._need("alpha")
        return plain(alpha / alpha.sum(axis=-1, keepdims=True))

    @property
    def variance(self) -> Any:
        """Var[xᵢ] = mᵢ (1 − mᵢ)/(A + 1), m the mean."""
        alpha = self._need("alpha")
        A = alpha.sum(axis=-1, keepdims=True)
        return plain(alpha / A * ((A - alpha) / A) / (A + 1.0))

    @property
    def mode(self) -> Any:
        """(α − 1)/(A − k); refused where some α is below 1, or all are 1: there is no such point then."""
        return plain(shares.mode(self._need("alpha"), "Dirichlet"))

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval of each share: the marginal of xᵢ is Beta(αᵢ, A − αᵢ)."""
        alpha = self._need("alpha")
        return shares.beta_interval(alpha, shares.others(alpha), level)

    def sufficient(self, x: Any) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log(self._shares(x)[0])

    def log_base(self, x: Any) -> Array:
        return np.where(self._shares(x)[1], 0.0, -np.inf)

    @property
    def natural(self) -> Array:
        return np.asarray(self._need("alpha") - 1.0)

    def from_natural(self, eta: Any) -> Self:
        return type(self)(self._alpha(eta))

    def from_mean(self, mu: Any) -> Self:
        return type(self)(from_log_means(self._at(mu)))

    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(log_beta(self._alpha(eta)))

    def gradient(self, eta: Any = None) -> Array:
        return shares.log_means(self._alpha(eta))

    def hessian(self, eta: Any = None) -> Array:
        return shares.hessian(self._alpha(eta))

    @aligned
    def log_prob(self, x: Any) -> Any:
        """At the edge, where some xᵢ = 0: the limit of the density there, which may be infinite."""
        alpha = self._need("alpha")
        x, inside = self._shares(x)
        return plain(np.where(inside, shares.log_density(x, alpha), -np.inf))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        alpha = self._need("alpha")
        # The logs of gammas with a small shape: those themselves would be 0, and their shares 0/0.
        rng = generator(n, seed)
        logs = np.log(rng.standard_gamma(alpha + 1.0, (n, *alpha.shape))) - rng.standard_exponential((n, *alpha.shape)) / alpha
        unscaled = np.exp(logs - logs.max(axis=-1, keepdims=True))
        return np.asarray(np.maximum(unscaled / unscaled.sum(axis=-1, keepdims=True), LEAST))

    def entropy(self) -> Any:
        """ln B(α) + (A − k) ψ(A) − Σ (αᵢ − 1) ψ(αᵢ)."""
        return plain(shares.entropy(self._need("alpha")))

    @aligned
    def kl(self, other: Self) -> Any:
        """ln Γ(A₁)/Γ(A₂) + Σ ln Γ(α₂)/Γ(α₁) + Σ (α₁ − α₂) E₁[ln xᵢ]."""
        self._comparable(other)
        return plain(shares.divergence(self._need("alpha"), other._need("alpha")))

    def _slack(self, statistic: Totals) -> Array:
        return -statistic.total

    def _alpha(self, eta: Any) -> Array:
        return self._need("alpha") if eta is None else bounded(self._at(eta) + 1.0, "η + 1 of Dirichlet", 0.0, open=True)

    def _shares(self, x: Any) -> tuple[Array, npt.NDArray[np.bool_]]:
        """x, and whether it is possible; equal shares in place of what is not."""
        x = observed(x, "Dirichlet")
        k = x.shape[-1] if self.alpha is None and x.ndim else np.shape(self.alpha)[-1]
        if x.ndim == 0 or x.shape[-1] != k or k < 2:
            raise DataError(f"Dirichlet is about vectors of {max(k, 2)} shares, along the last axis; the shape is {x.shape}")
        inside = (x >= 0.0).all(axis=-1) & (np.abs(x.sum(axis=-1) - 1.0) <= SUM)
        return np.where(inside[..., None], x, 1.0 / k), inside
