"""What every exponential family can do: p(x | η) = h(x) exp(η·T(x) − A(η)) in minimal form, so that η ↔ E[T] is one to one.

A family is a frozen value. Its known constants (the n of a binomial, a known variance) are always there; its parameters may be
left out, `Poisson()`, and then it can be asked for statistics and estimates, or be given, `Poisson(2.5)`, and then also for
probabilities. Parameters may have leading axes (...): so many distributions side by side.

    natural            η, of shape (..., k)
    mean_parameters    μ = E[T(x)] = A′(η), of the same shape
    log_normaliser     A(η), of shape (...)
    gradient, hessian  A′(η) = E[T] and A″(η) = Var[T], of shapes (..., k) and (..., k, k)
    cumulants(order)   the derivatives of A of any order, with an axis of k for each

A conjugate prior is a distribution of the parameters that data turns into another of the same kind: `prior + statistic`. What the
statistic adds to its parameters is known by the family (`increment`); what that does to the prior, and the evidence, by the prior
(`plus`, `evidence`); the prior remembers in `of` the family that it is about.

Wainwright & Jordan 2008, Graphical Models, Exponential Families, and Variational Inference, ch. 3.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.errors import DataError, FitError, ModelError, StatisticsError
from suffice.numerics.exponential.arithmetic.symmetric import checked_order
from suffice.numerics.exponential.arithmetic.values import Array, Outside, checked_weights, observations, plain
from suffice.numerics.exponential.protocol.observable import Observable
from suffice.numerics.exponential.protocol.statistic import Totals, explain_shapes

Inside = tuple[Any, npt.NDArray[np.bool_]]
"""Observations, and whether each is possible; something that is possible in place of those that are not."""

DENSITY = {"sufficient", "log_base", "log_prob", "_inside", "_log_density"}
"""What a density is made of,"""
FOLLOWS = ("mean", "variance", "mode", "interval", "sample", "entropy", "log_base", "_log_density", "_predictive")
"""and what of another density would be wrong."""


class ExponentialFamily(Observable, ABC):
    """The common part of all families. A distribution says T, h, A and its derivatives; the rest follows.

    >>> from suffice.exponential import Binomial
    >>> family = Binomial(3)
    >>> family.estimate(family.statistic([1, 2]) + family.statistic([0], weights=[2.0]))
    Binomial(n=3, p=0.25)
    >>> Binomial(3, 0.25).natural, Binomial(3, 0.25).mean_parameters
    (array([-1.09861229]), array([0.75]))
    """

    prior: ClassVar[str] = ""
    """The name of the conjugate prior."""

    def __init_subclass__(cls) -> None:
        """A density that replaces that of a whole distribution takes none of its numbers along."""
        super().__init_subclass__()
        above = cls.__mro__[1:]
        whole = next((c for c in above if issubclass(c, ExponentialFamily) and not c.__abstractmethods__), None)
        if whole is None:
            return
        own = {name for c in cls.__mro__[: cls.__mro__.index(whole)] for name in vars(c)}
        lost = [n for n in FOLLOWS if n not in own and getattr(whole, n, None) is not getattr(ExponentialFamily, n, None)]
        if own & DENSITY and lost:
            raise ModelError(
                f"{cls.__name__} has a density of its own, and must say its own {', '.join(lost)}: what {whole.__name__} says "
                "follows from another density"
            )

    def shares_parameters(self, other: ExponentialFamily) -> bool:
        """Whether rows of the other family tell of the same parameters, so that one prior learns from both."""
        return self.bare == other

    def sufficient(self, x: Any) -> Array:
        """T(x) of each x: an axis of k more at the end, in place of the axes of x. Anything outside the support, silently.

        Here it is x itself, of a family of numbers.
        """
        return observations(x, self._title)[..., None]

    def log_base(self, x: Any) -> Array:
        """ln h(x) of each x; −inf outside the support. Here h is 1 inside."""
        return np.where(self._inside(x)[1], 0.0, -np.inf)

    @abstractmethod
    def _inside(self, x: Any) -> Inside:
        """x, and whether it is possible."""

    @abstractmethod
    def _log_density(self, x: Any) -> Array:
        """ln p(x) = ln h(x) + η·T(x) − A(η) of each possible x, arranged so that it keeps its digits."""

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
    def log_normaliser(self, eta: Any = None) -> Any:
        """A(η), here or at another η."""

    @abstractmethod
    def gradient(self, eta: Any = None) -> Array:
        """A′(η) = E[T(x)], here or at another η."""

    @abstractmethod
    def hessian(self, eta: Any = None) -> Array:
        """A″(η) = Var[T(x)], here or at another η."""

    def cumulants(self, order: int, eta: Any = None) -> Array:
        """The derivatives of A(η) of this order, here or at another η: the joint cumulants of the components of T(x).

        An array (..., k, …, k) with an axis of k for each derivative, symmetric in them: E[T] of order 1, Var[T] of order 2,
        the third central moments E[(T − E T)ᵢ (T − E T)ⱼ (T − E T)ₗ] of order 3. Those of a sum of independent T add.

        >>> from suffice.exponential import Bernoulli, Poisson
        >>> Poisson(2.5).cumulants(5).item(), Bernoulli(0.25).cumulants(3).item(), Bernoulli(0.25).cumulants(4).item()
        (2.5, 0.09375, -0.0234375)
        """
        at = self._at(eta)
        if checked_order(order, at.shape, self._title) < 3:
            return self.gradient(eta) if order == 1 else self.hessian(eta)
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            return self._cumulants(order, eta)

    @abstractmethod
    def _cumulants(self, order: int, eta: Any) -> Array:
        """The derivatives of A of an order from 3 up."""

    @property
    def mean_parameters(self) -> Array:
        """μ = E[T(x)]."""
        return self.gradient()

    def statistic(self, x: Any, weights: Any = None) -> Totals:
        """Σ T(x) of some observations, which are the first axis, with their count and Σ ln h(x). It adds."""
        return self._totals(x, weights)

    def estimate(self, statistic: Totals) -> Self:
        """The member of largest likelihood: the one whose E[T] is the mean of T in the data."""
        return self.from_mean(self._check_statistic(statistic).mean)

    @explain_shapes
    def log_prob(self, x: Any) -> Any:
        """ln p(x) of each x; −inf outside the support, and at its edge the limit of the density there, which may be infinite."""
        self._parameters()
        x, inside = self._inside(x)
        return plain(np.where(inside, self._log_density(x), -np.inf))

    @abstractmethod
    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        """n draws, the first axis."""

    @abstractmethod
    def entropy(self) -> Any:
        """E[−ln p(x)], in nats."""

    @explain_shapes
    def kl(self, other: Self) -> Any:
        """KL(self ‖ other) = E[ln self(x) − ln other(x)] = A(η₂) − A(η₁) − (η₂ − η₁)·μ₁, in nats."""
        if not isinstance(other, ExponentialFamily) or other.bare != self.bare:
            raise ModelError(f"the divergence is between two members of one family, {self.bare!r}, and the other is {other!r}")
        return plain(self._divergence(other))

    @abstractmethod
    def _divergence(self, other: Any) -> Array:
        """The divergence of another member, arranged so that it keeps its digits where the two are alike, or far apart."""

    def conjugate(self, total: Any, count: Any) -> ConjugatePrior:
        """The prior p(η) ∝ exp(η·total − count·A(η)): what `count` imagined rows whose T sum to `total` would leave behind."""
        raise ModelError(f"{self._title} has no conjugate prior in closed form")

    def increment(self, statistic: Any) -> Any:
        """What a statistic adds to the parameters of the conjugate prior, as `Prior.plus` takes it."""
        raise NotImplementedError

    @explain_shapes
    def posterior(self, prior: Any, statistic: Totals) -> Any:
        """`prior + statistic`."""
        return self._prior(prior).plus(self.increment(self._own(statistic)), self)

    @explain_shapes
    def log_evidence(self, prior: Any, statistic: Totals) -> Any:
        """ln ∫ p(data | θ) p(θ) dθ = Z(prior + statistic) − Z(prior) + Σ ln h(x)."""
        return plain(self._prior(prior).evidence(self.increment(self._own(statistic)), statistic.log_base))

    def predictive(self, prior: Any) -> Any:
        """p(x) = ∫ p(x | θ) prior(θ) dθ: the next observation, the parameters integrated out."""
        return self._predictive(self._prior(prior))

    def _predictive(self, prior: Any) -> Any:
        raise ModelError(f"the predictive of {self._title} has no formula; draw parameters from the posterior, and x given these")

    def _totals(self, x: Any, weights: Any) -> Totals:
        values = np.asarray(x)
        x = values[None] if values.ndim == self.event_axes else values
        T, base = self.sufficient(x), self.log_base(x)
        outside = ~(np.isfinite(base) & np.isfinite(T).all(axis=-1))
        if outside.any():
            where = tuple(np.argwhere(outside)[0])
            value = np.asarray(x)[where].tolist()
            raise Outside(f"{self._title} is about {self.support}, and", int(where[0]), f"is {value!r}")
        w = checked_weights(weights, base.shape)
        with np.errstate(over="ignore", invalid="ignore"):
            sums = _sum(w), _sum(w[..., None] * T), _sum(w * base)
        if not all(np.isfinite(s).all() for s in sums):
            raise DataError(f"the sums that {self._title} needs are beyond the largest double; divide x by some power of ten")
        return Totals(self.bare, *sums)

    def _slack(self, statistic: Totals) -> Array:
        """Sums over rows of numbers that are never below 0, along the last axis: what taking rows away must not make negative."""
        return statistic.total[..., :0]

    def _gather_cells(self, values: npt.NDArray[Any], weights: Any) -> Totals:
        """The statistic of some cells of the data, codes as `_meaning` has them."""
        return self._totals(values, weights)

    def _check_statistic(self, statistic: Totals) -> Totals:
        """A statistic that an estimate can be made from: of this family, and of some rows."""
        if np.any(~(self._own(statistic).count > 0.0)):
            raise FitError(f"{self._title} cannot be estimated: there are no rows; give a prior, as prior + statistic")
        return statistic

    def _own(self, statistic: Any) -> Totals:
        if not isinstance(statistic, Totals):
            raise StatisticsError(f"{self._title} learns from its statistic: give {self._title}.statistic(x), not {statistic!r}")
        if statistic.family != self.bare:
            raise StatisticsError(f"a statistic of {statistic.family!r} says nothing about {self.bare!r}")
        return statistic

    def _need(self, name: str) -> Array:
        """A parameter that must be there."""
        value = getattr(self, name)
        if value is None:
            raise ModelError(f"{self!r} has no {name}: give it, {self._title}({name}=…), or estimate it from a statistic")
        return np.asarray(value, dtype=np.float64)

    def _parameters(self, eta: Any = None) -> tuple[Array, ...]:
        """The parameters, in the order of their names: here or at another η."""
        member = self if eta is None else self.from_natural(eta)
        return tuple(member._need(name) for name in self.names)

    def _at(self, eta: Any) -> Array:
        """η as an array with an axis of k, the family's own where none is given."""
        if eta is None:
            return self.natural
        array = np.asarray(eta, dtype=np.float64)
        if array.ndim == 0:
            raise ModelError(f"η of {self._title} is a vector, even of one number: [{array:g}]")
        if np.isnan(array).any():
            raise ModelError(f"η of {self._title} must be numbers, not NaN")
        return array

    def _prior(self, prior: Any) -> Any:
        """A prior, if it is the conjugate one and has its parameters."""
        if not isinstance(prior, ConjugatePrior) or type(prior).__name__ != self.prior:
            raise ModelError(f"{type(prior).__name__} is no conjugate prior of {self._title}")
        return prior.require_parameters()


class Summed(ExponentialFamily):
    """A family of numbers from 0 up with T(x) = x: what rows say is their sum, and A′ and A″ are the mean and variance of x."""

    @property
    def mean(self) -> Any:
        """E[x]."""
        return plain(self.gradient()[..., 0])

    @property
    def variance(self) -> Any:
        """Var[x]."""
        return plain(self.hessian()[..., 0, 0])

    def _slack(self, statistic: Totals) -> Array:
        return statistic.total


class ConjugatePrior:
    """What all conjugate priors can do. `of` is the family whose parameters they are about; the first statistic tells it.

    >>> from suffice.exponential import Bernoulli, Beta
    >>> prior = Bernoulli().conjugate(total=[1.0], count=2.0)
    >>> prior, prior + Bernoulli().statistic([1, 1, 0])
    (Beta(a=1.0, b=1.0, of=Bernoulli()), Beta(a=3.0, b=2.0, of=Bernoulli()))
    """

    of: ExponentialFamily | None
    names: ClassVar[tuple[str, ...]]
    example: ClassVar[str] = "Poisson()"
    """A family that it may be about, for a refusal."""

    def plus(self, seen: Any, family: ExponentialFamily) -> Self:
        """The posterior, after what rows of a family have added."""
        raise NotImplementedError

    def evidence(self, seen: Any, log_base: Array) -> Array:
        """The log-evidence of rows that add this, and of which Σ ln h(x) is known."""
        raise NotImplementedError

    def require_parameters(self) -> Self:
        """This, if it has its parameters."""
        return self

    def __add__(self, statistic: Totals) -> Self:
        """The posterior: what was imagined and what was seen, together."""
        if not isinstance(statistic, Totals):
            raise StatisticsError(f"a prior is updated by a statistic: prior + {self.example}.statistic(x), not by {statistic!r}")
        posterior: Self = self.family(statistic.family).posterior(self, statistic)
        # It stays about the family it was about: Bernoulli and Binomial rows tell of the same p.
        return posterior if self.of in (None, posterior.of) else replace(posterior, of=self.of)  # type: ignore[type-var]

    def log_evidence(self, statistic: Totals) -> Any:
        """The log-probability of the data with the parameters integrated out; of families that share them, too."""
        if not isinstance(statistic, Totals):
            raise StatisticsError(f"the evidence is that of a statistic, as family.statistic(x) gives it, not of {statistic!r}")
        return self.family(statistic.family).log_evidence(self, statistic)

    def predictive(self, of: ExponentialFamily | None = None) -> Any:
        """The distribution of the next observation, the parameters integrated out.

        It may be one of another family than the rows were of, if this is a prior of its parameter, too.

        >>> from suffice.exponential import Bernoulli, Beta, Binomial
        >>> (Beta(1.0, 1.0) + Bernoulli().statistic([1, 0])).predictive(Binomial(10))
        BetaBinomial(n=10, a=2.0, b=2.0)
        """
        return (self.family(None) if of is None else self._family(of)).predictive(self)

    def family(self, of: ExponentialFamily | None) -> ExponentialFamily:
        """The family whose rows this prior is to learn from: one that shares the parameters it is about."""
        if of is None and self.of is None:
            raise ModelError(f"{self!r} may be about several families: say which, for instance predictive({self.example})")
        if of is None or self.of is None:
            return self._family(of if self.of is None else self.of)
        if not self._family(self.of).shares_parameters(of.bare):
            raise ModelError(f"{self!r} is about {self.of!r}, not about {of.bare!r}")
        return of.bare

    def _family(self, of: Any) -> ExponentialFamily:
        """A family that a caller names. Whether this is a prior of its parameters, it knows itself."""
        if not isinstance(of, ExponentialFamily):
            raise ModelError(f"{type(self).__name__} is asked about a family, for instance {self.example}, not about {of!r}")
        return of.bare


class FamilyAndPrior(ConjugatePrior, ExponentialFamily):
    """A distribution that is both: a family of x that can be estimated, and the conjugate prior of another family's parameter.

    Gamma is a distribution of numbers, and a prior of rates. As a family it is asked `family.log_evidence(prior, statistic)` and
    `family.predictive(prior)`, as a prior `prior.log_evidence(statistic)` and `prior.predictive(family)`: what comes in tells.
    """

    def require_parameters(self) -> Self:
        """This, if it has its parameters."""
        self._need(self.names[0])
        return self

    def log_evidence(self, prior: Any, statistic: Totals | None = None) -> Any:  # type: ignore[override]
        """As a prior, of the statistic alone; as a family, of its prior and the statistic."""
        if statistic is None:
            return ConjugatePrior.log_evidence(self, prior)
        return ExponentialFamily.log_evidence(self, prior, statistic)

    def predictive(self, of: Any = None) -> Any:
        """As a prior, the next observation of the family `of`; as a family, the next observation under the prior `of`."""
        # A family comes without parameters, a prior with them: two that are both can be told apart.
        if isinstance(of, ConjugatePrior) and not (isinstance(of, ExponentialFamily) and of == of.bare):
            return ExponentialFamily.predictive(self, of)
        return ConjugatePrior.predictive(self.require_parameters(), of)


def _sum(array: Array) -> Array:
    """The sum over the first axis, added pairwise: numpy does that along contiguous memory only."""
    return np.asarray(np.ascontiguousarray(np.moveaxis(array, 0, -1)).sum(axis=-1))
