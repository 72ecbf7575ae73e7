"""What every exponential family can do: p(x | η) = h(x) exp(η·T(x) − A(η)) in minimal form, so that η ↔ E[T] is one to one.

A family is a frozen value. Its known constants (the n of a binomial, a known variance) are always there; its parameters may be
left out, `Poisson()`, and then it can be asked for statistics and estimates, or be given, `Poisson(2.5)`, and then also for
probabilities. Parameters may have leading axes (...): so many distributions side by side.

    natural            η, of shape (..., k)
    mean_parameters    μ = E[T(x)] = A′(η), of the same shape
    log_normaliser     A(η), of shape (...)
    gradient, hessian  A′(η) = E[T] and A″(η) = Var[T], of shapes (..., k) and (..., k, k)

Wainwright & Jordan 2008, Graphical Models, Exponential Families, and Variational Inference, ch. 3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError
from suffice.exponential.statistic import Array, Totals

if TYPE_CHECKING:
    from suffice.exponential.prior import Prior


class Family(ABC):
    """The common part of all families. A distribution says T, h, A and its derivatives; the rest follows."""

    @property
    @abstractmethod
    def bare(self) -> Self:
        """The same family without parameters: what a statistic belongs to."""

    @abstractmethod
    def sufficient(self, x: Any) -> Array:
        """T(x) of each x: an axis of k more at the end."""

    @abstractmethod
    def log_base(self, x: Any) -> Array:
        """ln h(x) of each x; −inf outside the support."""

    @property
    @abstractmethod
    def natural(self) -> Array:
        """η of these parameters."""

    @abstractmethod
    def from_natural(self, eta: Any) -> Self:
        """The member of the family with the natural parameters η."""

    @abstractmethod
    def from_mean(self, mu: Any) -> Self:
        """The member of the family with E[T(x)] = μ."""

    @abstractmethod
    def log_normaliser(self, eta: Any = None) -> Array:
        """A(η), here or at another η."""

    @abstractmethod
    def gradient(self, eta: Any = None) -> Array:
        """A′(η) = E[T(x)], here or at another η."""

    @abstractmethod
    def hessian(self, eta: Any = None) -> Array:
        """A″(η) = Var[T(x)], here or at another η."""

    @property
    def mean_parameters(self) -> Array:
        """μ = E[T(x)]."""
        return self.gradient()

    def statistic(self, x: Any, weights: Any = None) -> Totals:
        """Σ T(x) of some observations, which are the first axis, with their count and Σ ln h(x). It adds."""
        raise NotImplementedError

    def gather(self, data: Any, column: str, *, threads: int | None = None) -> Totals:
        """The statistic of a column of some `Data`, as `scan` gives it, in one pass that never holds all rows."""
        raise NotImplementedError

    def estimate(self, statistic: Totals) -> Self:
        """The member of largest likelihood: the one whose E[T] is the mean of T in the data."""
        raise NotImplementedError

    def log_prob(self, x: Any) -> Array:
        """ln p(x) = ln h(x) + η·T(x) − A(η) of each x; −inf outside the support."""
        raise NotImplementedError

    @abstractmethod
    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        """n draws, the first axis."""

    @abstractmethod
    def entropy(self) -> Array:
        """E[−ln p(x)], in nats."""

    def kl(self, other: Self) -> Array:
        """KL(self ‖ other) = E[ln self(x) − ln other(x)] = A(η₂) − A(η₁) − (η₂ − η₁)·μ₁, in nats."""
        raise NotImplementedError

    def conjugate(self, total: Any, count: Any) -> Prior:
        """The prior p(η) ∝ exp(η·total − count·A(η)): what `count` imagined rows whose T sum to `total` would leave behind."""
        raise ModelError(f"{type(self).__name__} has no conjugate prior in closed form")

    def posterior(self, prior: Any, statistic: Totals) -> Prior:
        """`prior + statistic`."""
        raise ModelError(f"{type(prior).__name__} is no conjugate prior of {type(self).__name__}")

    def log_evidence(self, prior: Any, statistic: Totals) -> Array:
        """ln ∫ p(data | θ) p(θ) dθ = Z(prior + statistic) − Z(prior) + Σ ln h(x)."""
        raise ModelError(f"{type(prior).__name__} is no conjugate prior of {type(self).__name__}")

    def predictive(self, prior: Any) -> Any:
        """p(x) = ∫ p(x | θ) prior(θ) dθ: the next observation, the parameters integrated out."""
        raise ModelError(f"{type(prior).__name__} is no conjugate prior of {type(self).__name__}")
