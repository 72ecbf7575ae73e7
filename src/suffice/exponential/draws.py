"""Independent draws among k states: what Categorical (one draw) and Multinomial (n of them) have in common.

T(x) = the counts of all states but the last,   h(x) = n!/Π xᵢ!,   ηᵢ = ln pᵢ/p_k   (k − 1 of them: the form is minimal)
A(η) = n ln(1 + Σ exp ηᵢ),   E[T] = n pᵢ,   Cov[T] = n (pᵢ 1[i=j] − pᵢ pⱼ)

conjugate   Dirichlet(total, n·count − Σ total)    prior + statistic   Dirichlet(α + N),   N the counts of all k states
evidence    Σ ln Γ(α + N)/Γ(α) − ln Γ(Σα + ΣN)/Γ(Σα) + Σ ln h(x)
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from suffice.errors import ModelError
from suffice.exponential.family import Family
from suffice.exponential.special import deviance, log_counts_evidence
from suffice.exponential.statistic import Totals, aligned
from suffice.exponential.trials import ROUNDING
from suffice.exponential.values import Array, bounded, plain, vectors

if TYPE_CHECKING:
    from suffice.exponential.dirichlet import Dirichlet


class Draws(Family):
    """The counts of `k` states in some draws, of probabilities `probs`."""

    names: ClassVar[tuple[str, ...]] = ("probs",)
    prior: ClassVar[str] = "Dirichlet"
    k: Any
    probs: Any

    @property
    @abstractmethod
    def draws(self) -> float:
        """n, the number of draws."""

    def shares_parameters(self, other: Family) -> bool:
        """The probabilities of one draw are those of many, if they are of as many states, and not of others by name."""
        if not isinstance(other, Draws) or other.k != self.k:
            return False
        mine, yours = getattr(self, "states", None), getattr(other, "states", None)
        return mine is None or yours is None or mine == yours

    @abstractmethod
    def with_probs(self, probs: Any) -> Self:
        """The same with these probabilities of all k states."""

    @property
    def mean(self) -> Any:
        """n p: the expected count of each of the k states."""
        return plain(self.draws * self._need("probs"))

    @property
    def variance(self) -> Any:
        """n p (1 − p): the variance of the count of each of the k states."""
        p = self._need("probs")
        return plain(self.draws * p * (1.0 - p))

    @property
    def natural(self) -> Array:
        """ln pᵢ/p_k; infinite where the last state is impossible, and then a point on the edge that has no natural name."""
        p = self._need("probs")
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.log(p[..., :-1]) - np.log(p[..., -1:])
        return np.where(p[..., :-1] > 0.0, odds, -np.inf)

    def from_natural(self, eta: Any) -> Self:
        return self.with_probs(self._probs(eta))

    def from_mean(self, mu: Any) -> Self:
        shares = vectors(mu, f"E[T] of {self._title}", self.k - 1) / self.draws
        shares = np.concatenate([shares, 1.0 - shares.sum(axis=-1, keepdims=True)], axis=-1)
        return self.with_probs(np.where((shares < 0.0) & (shares >= -ROUNDING), 0.0, shares))

    def log_normaliser(self, eta: Any = None) -> Any:
        from scipy.special import logsumexp

        return plain(self.draws * logsumexp(_with_last(self._at(eta)), axis=-1))

    def gradient(self, eta: Any = None) -> Array:
        return np.asarray(self.draws * self._probs(eta)[..., :-1])

    def hessian(self, eta: Any = None) -> Array:
        p = self._probs(eta)[..., :-1]
        return np.asarray(self.draws * (p[..., :, None] * np.eye(self.k - 1) - p[..., :, None] * p[..., None, :]))

    def estimate(self, statistic: Totals) -> Self:
        """The share of each state among the draws."""
        cells = self.cells(self._seen(statistic))
        return self.with_probs(cells / cells.sum(axis=-1, keepdims=True))

    @aligned
    def kl(self, other: Self) -> Any:
        """n Σ pᵢ ln(pᵢ/rᵢ); inf where the other rules out a state that this allows."""
        self._comparable(other)
        return plain(self.draws * deviance(self._need("probs"), other._need("probs")).sum(axis=-1))

    @aligned
    def conjugate(self, total: Any, count: Any) -> Dirichlet:
        from suffice.exponential.dirichlet import Dirichlet

        total = vectors(total, f"the total of {self._title}", self.k - 1)
        last = self.draws * bounded(count, "the count", 0.0)[..., None] - total.sum(axis=-1, keepdims=True)
        return Dirichlet(np.concatenate([total, last], axis=-1), of=self.bare)

    @aligned
    def posterior(self, prior: Any, statistic: Totals) -> Dirichlet:
        from suffice.exponential.dirichlet import Dirichlet

        return Dirichlet(self._imagined(prior) + self.cells(self._own(statistic)), of=self.bare)

    @aligned
    def log_evidence(self, prior: Any, statistic: Totals) -> Any:
        """All digits are there of one row, or where h = 1; of several rows they end where the rounding of Σ ln h(x) does."""
        alpha, cells = self._imagined(prior), self.cells(self._own(statistic))
        return plain(log_counts_evidence(cells, alpha, statistic.log_base))

    def cells(self, statistic: Totals) -> Array:
        """The counts of all k states, the last of them too."""
        return np.maximum(self._slack(statistic), 0.0)

    def _slack(self, statistic: Totals) -> Array:
        last = self.draws * statistic.count[..., None] - statistic.total.sum(axis=-1, keepdims=True)
        return np.concatenate([statistic.total, last], axis=-1)

    def _imagined(self, prior: Any) -> Array:
        alpha: Array = super()._imagined(prior)[0]
        if alpha.shape[-1] != self.k:
            raise ModelError(f"{prior!r} is about {alpha.shape[-1]} states, and {self.bare!r} has {self.k}")
        if prior.of is not None and not prior.of.shares_parameters(self.bare):
            raise ModelError(f"{prior!r} is about {prior.of!r}, not about {self.bare!r}")
        return alpha

    def _probs(self, eta: Any) -> Array:
        from scipy.special import softmax

        if eta is None:
            return self._need("probs")
        eta = vectors_or_infinite(self._at(eta), self.k - 1, self._title)
        certain = np.isposinf(eta).any(axis=-1, keepdims=True)
        settled = np.where(certain, np.where(np.isposinf(_with_last(eta)), 0.0, -np.inf), _with_last(eta))
        return np.asarray(softmax(settled, axis=-1))


def vectors_or_infinite(eta: Array, k: int, title: str) -> Array:
    """η as k numbers, of which one may be +inf: a state that is certain.

    >>> vectors_or_infinite(np.array([0.0, np.inf]), 2, "Categorical")
    array([ 0., inf])
    """
    if eta.shape[-1] != k:
        raise ModelError(f"η of {title} has {k} numbers, so its last axis must be {k}: the shape is {eta.shape}")
    if np.any(np.isposinf(eta).sum(axis=-1) > 1):
        raise ModelError(f"η of {title} can be +inf for one state only, which is then certain")
    return eta


def checked_probs(probs: Any, what: str) -> Array:
    """Probabilities of states along the last axis: from 0 to 1, and of sum 1, by which they are divided where it is nearly so.

    >>> checked_probs([0.25, 0.75], "probs")
    array([0.25, 0.75])
    """
    p = bounded(probs, what, 0.0, 1.0 + 1e-6)
    if p.ndim == 0 or p.shape[-1] == 0:
        raise ModelError(f"{what} must be an array with one probability for each state, not {probs!r}")
    sums = p.sum(axis=-1, keepdims=True)
    off = np.abs(sums - 1.0)
    if np.any(off > 1e-6):
        raise ModelError(f"{what} must sum to 1, not to {sums[off > 1e-6][0]:.9g}")
    return np.where(off > 1e-12, p / sums, p)


def number_of_states(k: Any, probs: Any, what: str) -> tuple[Any, Array | None]:
    """k and the probabilities, either of which may stand in the place of k.

    >>> number_of_states([0.5, 0.5], None, "Categorical")
    (2, array([0.5, 0.5]))
    """
    if k is not None and probs is None and np.ndim(k) > 0:
        k, probs = None, k
    if probs is not None:
        probs = checked_probs(probs, f"the probabilities of {what}")
        if k is not None and k != probs.shape[-1]:
            raise ModelError(f"{what} has {k} states and {probs.shape[-1]} probabilities")
        k = probs.shape[-1]
    if k is None or isinstance(k, bool) or not isinstance(k, (int, np.integer)) or k < 1:
        raise ModelError(f"{what} needs the number of its states, a whole number from 1 up, or their probabilities; not {k!r}")
    return int(k), probs


def _with_last(eta: Array) -> Array:
    """The log-odds of all k states to the last: its own is 0."""
    return np.concatenate([eta, np.zeros((*eta.shape[:-1], 1))], axis=-1)
