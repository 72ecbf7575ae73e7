"""Independent draws among k states: Multinomial, and of one draw Categorical; of success and failure, Binomial and Bernoulli.

    Multinomial   p(x | p) = n!/Π xᵢ! Π pᵢ^xᵢ,   the counts of k states in n draws
    Binomial      p(x | p) = n!/x!(n−x)! pˣ (1 − p)ⁿ⁻ˣ,   x in {0, …, n}: the first of two such counts

    T(x) = the counts of all states but the last,   h(x) = n!/Π xᵢ!,   ηᵢ = ln pᵢ/p_k   (k − 1 of them: the form is minimal)
    A(η) = n ln(1 + Σ exp ηᵢ),   E[T] = n pᵢ,   Cov[T] = n (pᵢ 1[i=j] − pᵢ pⱼ)

    conjugate   Dirichlet(total, n·count − Σ total)    prior + statistic   Dirichlet(α + N),   N the counts of all k states
    evidence    Σ ln Γ(α + N)/Γ(α) − ln Γ(Σα + ΣN)/Γ(Σα) + Σ ln h(x)

Of two states the Dirichlet is a Beta.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.basis.variables import Finite, Variable
from suffice.errors import DataError, ModelError, listing
from suffice.numerics.exponential.arithmetic.special import deviance, lattice, log_binomial, log_multinomial, log_poisson
from suffice.numerics.exponential.arithmetic.symmetric import of_one_draw
from suffice.numerics.exponential.arithmetic.values import (
    Array,
    between,
    broadcast,
    hold,
    natural_numbers,
    observations,
    plain,
    rows_of_several,
    show,
    vectors,
)
from suffice.numerics.exponential.dirichlet import Beta, Dirichlet, others
from suffice.numerics.exponential.predictives import BetaBinomial, DirichletMultinomial
from suffice.numerics.exponential.protocol.family import ExponentialFamily, Inside
from suffice.numerics.exponential.protocol.observable import generator
from suffice.numerics.exponential.protocol.statistic import Totals, explain_shapes

ROUNDING = 1e-12
"""What a subtraction of weighted statistics may leave of a share that is 0 or 1."""


class Draws(ExponentialFamily):
    """The counts of `k` states in some draws, of probabilities `probs`."""

    names: ClassVar[tuple[str, ...]] = ("probs",)
    prior: ClassVar[str] = "Dirichlet"
    k: Any

    @property
    @abstractmethod
    def draws(self) -> Any:
        """n, the number of draws."""

    @abstractmethod
    def with_probs(self, probs: Any) -> Self:
        """The same with these probabilities of all k states."""

    def shares_parameters(self, other: ExponentialFamily) -> bool:
        """The probabilities of one draw are those of many, if they are of as many states, and not of others by name."""
        if not isinstance(other, Draws) or other.prior != self.prior or other.k != self.k:
            return False
        mine, yours = getattr(self, "states", None), getattr(other, "states", None)
        return mine is None or yours is None or mine == yours

    @property
    def mean(self) -> Any:
        """n p: the expected count of each state, or of the successes."""
        return plain(self._part(self._each * self._probs()))

    @property
    def variance(self) -> Any:
        """n p (1 − p): the variance of the count of each state, or of the successes."""
        p = self._probs()
        return plain(self._part(self._each * p * (1.0 - p)))

    def sufficient(self, x: Any) -> Array:
        return np.asarray(self._inside(x)[0][..., :-1])

    def log_base(self, x: Any) -> Array:
        x, inside = self._inside(x)
        return np.where(inside, log_multinomial(x), -np.inf)

    @property
    def natural(self) -> Array:
        """ln pᵢ/p_k; infinite where the last state is impossible, and then a point on the edge that has no natural name."""
        p = self._probs()
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.log(p[..., :-1]) - np.log(p[..., -1:])
        return np.where(p[..., :-1] > 0.0, odds, -np.inf)

    def from_natural(self, eta: Any) -> Self:
        return self.with_probs(self._probs(eta))

    def from_mean(self, mu: Any) -> Self:
        shares = _with_rest(vectors(mu, f"E[T] of {self._title}", self.k - 1) / self._each, 1.0)
        slightly_out = (shares >= -ROUNDING) & (shares <= 1.0 + ROUNDING)
        return self.with_probs(np.where(slightly_out, np.clip(shares, 0.0, 1.0), shares))

    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(self.draws * sc.logsumexp(self._odds(eta), axis=-1))

    def gradient(self, eta: Any = None) -> Array:
        return np.asarray(self._each * self._probs(eta)[..., :-1])

    def hessian(self, eta: Any = None) -> Array:
        return self._covariance(self._probs(eta))[..., :-1, :-1]

    def _cumulants(self, order: int, eta: Any) -> Array:
        one = of_one_draw(self._probs(eta), order)
        return np.asarray(np.reshape(self.draws, (*np.shape(self.draws), *(1,) * order)) * one)

    def estimate(self, statistic: Totals) -> Self:
        """The share of each state among the draws."""
        cells = self.increment(self._check_statistic(statistic))
        return self.with_probs(cells / cells.sum(axis=-1, keepdims=True))

    def _log_density(self, x: Array) -> Array:
        """Counts are independent Poisson counts whose sum is known to be n."""
        each = log_poisson(x, self._each * self._probs())
        return np.asarray(each.sum(axis=-1) - log_poisson(self.draws, self.draws))

    def entropy(self) -> Any:
        """Σᵢ E[−ln Pois(xᵢ; n pᵢ)] + ln Pois(n; n): each xᵢ is binomial, and no term is large."""
        n, p = self._each, self._probs()
        x, weight = lattice(n * p, np.sqrt(n * p * (1.0 - p)), n)
        n, p = n[..., None], p[..., None]
        chance = weight * np.exp(log_binomial(x, n, p, 1.0 - p))
        logs = np.where(chance > 0.0, log_poisson(x, n * p), 0.0)
        return plain(log_poisson(self.draws, self.draws) - (chance * logs).sum(axis=(-2, -1)))

    def _divergence(self, other: Self) -> Array:
        """n Σ pᵢ ln(pᵢ/rᵢ); inf where the other rules out a state that this allows."""
        return np.asarray(self.draws * deviance(self._probs(), other._probs()).sum(axis=-1))

    @explain_shapes
    def conjugate(self, total: Any, count: Any) -> Any:
        """Dirichlet(total, n·count − Σ total)."""
        total = vectors(total, f"the total of {self._title}", self.k - 1)
        return self._dirichlet(_with_rest(total, self.draws * between(count, "the count", 0.0)))

    def increment(self, statistic: Totals) -> Array:
        """The counts of all k states, the last of them too."""
        return np.maximum(self._slack(statistic), 0.0)

    def _slack(self, statistic: Totals) -> Array:
        return _with_rest(statistic.total, self.draws * statistic.count)

    @property
    def _each(self) -> Array:
        """n, with an axis for the states."""
        return np.asarray(self.draws, dtype=np.float64)[..., None]

    def _probs(self, eta: Any = None) -> Array:
        """The probabilities of all k states, here or at another η."""
        if eta is None:
            return self._need("probs")
        odds = self._odds(eta)
        certain = np.isposinf(odds)
        if np.any(certain.sum(axis=-1) > 1):
            raise ModelError(f"η of {self._title} can be +inf for one state only, which is then certain")
        settled = np.where(certain.any(axis=-1, keepdims=True), np.where(certain, 0.0, -np.inf), odds)
        return np.asarray(sc.softmax(settled, axis=-1))

    def _odds(self, eta: Any) -> Array:
        """The log-odds of all k states to the last: its own is 0."""
        eta = self._at(eta)
        if eta.shape[-1] != self.k - 1:
            n = self.k - 1
            raise ModelError(f"η of {self._title} has {n} numbers, so its last axis must be {n}: the shape is {eta.shape}")
        return np.concatenate([eta, np.zeros((*eta.shape[:-1], 1))], axis=-1)

    def _covariance(self, p: Array) -> Array:
        """n (pᵢ 1[i=j] − pᵢ pⱼ); pᵢ (1 − pᵢ) as pᵢ times the sum of all others, which keeps its digits."""
        own = p * others(p)
        products = np.where(np.eye(self.k, dtype=bool), own[..., None], -p[..., :, None] * p[..., None, :])
        return np.asarray(self._each[..., None] * products)

    def _part(self, states: Array) -> Array:
        """What is known of each state, of those that are counted."""
        return states

    def _dirichlet(self, alpha: Array) -> Any:
        return Dirichlet(alpha, of=self.bare)

    def _prior(self, prior: Any) -> Any:
        alpha = super()._prior(prior)._alpha()
        if alpha.shape[-1] != self.k:
            raise ModelError(f"{prior!r} is about {alpha.shape[-1]} states, and {self.bare!r} has {self.k}")
        if isinstance(prior.of, Draws) and not prior.of.shares_parameters(self.bare):
            raise ModelError(f"{prior!r} is about {prior.of!r}, not about {self.bare!r}")
        return prior


@dataclass(frozen=True, eq=False, repr=False)
class Multinomial(Draws):
    """The counts of `k` states in `n` draws. The conjugate prior is `Dirichlet`, the predictive `DirichletMultinomial`.

    >>> from suffice.exponential import Dirichlet
    >>> seen = Multinomial(4, 3).statistic([[2, 1, 1], [4, 0, 0]])
    >>> Multinomial(4, 3).estimate(seen)
    Multinomial(n=4, probs=[0.75, 0.125, 0.125])
    >>> (Dirichlet([1, 1, 1]) + seen).predictive()
    DirichletMultinomial(n=4, alpha=array([7., 2., 2.]))
    """

    n: Any
    k: Any = None
    probs: Any = None

    event_axes: ClassVar[int] = 1

    def __post_init__(self) -> None:
        n = natural_numbers(self.n, "n of Multinomial", 1)
        if n.ndim:
            raise ModelError(f"n of Multinomial is one number, the same for all that stand side by side, not {self.n!r}")
        k, probs = number_of_states(self.k, self.probs, "Multinomial")
        object.__setattr__(self, "n", int(n))
        object.__setattr__(self, "k", k)
        object.__setattr__(self, "probs", None if probs is None else hold(probs))

    @property
    def support(self) -> str:  # type: ignore[override]
        """What x may be, in words."""
        return f"{self.k} counts that sum to {self.n}"

    @property
    def draws(self) -> float:
        return float(self.n)

    def with_probs(self, probs: Any) -> Self:
        return replace(self, probs=probs)

    @property
    def covariance(self) -> Array:
        """n (pᵢ 1[i=j] − pᵢ pⱼ), of all k counts: singular, for they sum to n."""
        return self._covariance(self._probs())

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        p = self._probs()
        return np.asarray(generator(n, seed).multinomial(self.n, p, (n, *p.shape[:-1])))

    def _predictive(self, prior: Any) -> DirichletMultinomial:
        return DirichletMultinomial(self.n, plain(prior._alpha()))

    def _inside(self, x: Any) -> Inside:
        """n times the last state in place of what is not possible."""
        x = observations(x, "Multinomial")
        if x.ndim == 0 or x.shape[-1] != self.k:
            raise DataError(f"Multinomial is about {self.support}, along the last axis; the shape is {x.shape}")
        inside = ((x >= 0.0) & (x == np.rint(x))).all(axis=-1) & (x.sum(axis=-1) == self.n)
        return np.where(inside[..., None], x, self.n * (np.arange(self.k) == self.k - 1)), inside

    def __repr__(self) -> str:
        return f"Multinomial(n={self.n}, {f'k={self.k}' if self.probs is None else f'probs={show(self.probs)}'})"


class Trials(Draws):
    """Draws of two states: the number of successes in some trials, each with probability `p`."""

    names: ClassVar[tuple[str, ...]] = ("p",)
    prior: ClassVar[str] = "Beta"
    k = 2

    def _check_parameter(self, name: str, value: Any) -> Array:
        return between(value, self._name_of(name), 0.0, 1.0)

    def with_probs(self, probs: Any) -> Self:
        return replace(self, p=probs[..., 0])  # type: ignore[type-var]

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        p, trials = np.broadcast_arrays(self._need("p"), self.draws)
        return np.asarray(generator(n, seed).binomial(trials.astype(np.int64), p, (n, *p.shape)))

    def _probs(self, eta: Any = None) -> Array:
        if eta is not None:
            return super()._probs(eta)
        p = self._need("p")
        return np.stack([p, 1.0 - p], axis=-1)

    def _part(self, states: Array) -> Array:
        return states[..., 0]

    def _dirichlet(self, alpha: Array) -> Beta:
        return Beta(alpha[..., 0], alpha[..., 1], of=self.bare)

    def _inside(self, x: Any) -> Inside:
        """Successes and failures; no success in place of what is not possible."""
        x = observations(x, self._title)
        inside = (x >= 0.0) & (x <= self.draws) & (x == np.rint(x))
        return _with_rest(np.where(inside, x, 0.0)[..., None], self.draws), inside


@dataclass(frozen=True, eq=False, repr=False)
class Binomial(Trials):
    """The successes in `n` trials, each with probability `p`. The conjugate prior of p is `Beta`, the predictive `BetaBinomial`.

    >>> from suffice.exponential import Beta
    >>> seen = Binomial(10).statistic([3, 4, 8])
    >>> Binomial(10).estimate(seen)
    Binomial(n=10, p=0.5)
    >>> (Beta(1.0, 1.0) + seen).predictive()
    BetaBinomial(n=10, a=16.0, b=16.0)
    """

    n: Any
    p: Any = None

    support: ClassVar[str] = "whole numbers from 0 to n"

    def __post_init__(self) -> None:
        n = natural_numbers(self.n, "n of Binomial", 1)
        object.__setattr__(self, "n", int(n) if n.ndim == 0 else hold(n))
        super().__post_init__()

    def _check_parameter(self, name: str, value: Any) -> Array:
        return broadcast("Binomial", p=super()._check_parameter(name, value), n=np.asarray(self.n))[0]

    @property
    def draws(self) -> Array:
        return np.asarray(self.n, dtype=np.float64)

    def _predictive(self, prior: Any) -> BetaBinomial:
        return BetaBinomial(self.n, prior.a, prior.b)

    def _totals(self, x: Any, weights: Any) -> Totals:
        rows_of_several(x, self.n, "Binomial")
        return super()._totals(x, weights)


@dataclass(frozen=True, eq=False, repr=False)
class Bernoulli(Trials):
    """One trial with the probability `p` of a success, 1. The conjugate prior of p is `Beta`.

    >>> from suffice.exponential import Beta
    >>> tosses = Bernoulli().statistic([1, 0, 0, 1, 1])
    >>> Bernoulli().estimate(tosses)
    Bernoulli(p=0.6)
    >>> Beta(1.0, 1.0) + tosses, round(float(np.exp(-Beta(1.0, 1.0).log_evidence(tosses))), 9)
    (Beta(a=4.0, b=3.0, of=Bernoulli()), 60.0)
    """

    p: Any = None

    support: ClassVar[str] = "0 and 1"

    @property
    def draws(self) -> Array:
        return np.ones(())

    def entropy(self) -> Any:
        """−p ln p − (1 − p) ln(1 − p)."""
        p = self._need("p")
        return plain(-sc.xlogy(p, p) - sc.xlog1py(1.0 - p, -p) + 0.0)

    def _predictive(self, prior: Any) -> Bernoulli:
        return Bernoulli(prior.mean)

    def _meaning(self, variable: Variable) -> npt.NDArray[Any] | None:
        """A column of two states is 1 where it has the second, of states 0 and 1 or false and true where it has that one."""
        if not isinstance(variable, Finite):
            return super()._meaning(variable)
        meaning = {"0": 0, "false": 0, "1": 1, "true": 1}
        if all(state in meaning for state in variable.states):
            return np.array([meaning[state] for state in variable.states])
        if variable.n_states == 2:
            return np.arange(2)
        raise DataError(
            f"Bernoulli needs a column of two states, and {variable.name!r} has {variable.n_states}: {listing(variable.states)}"
        )


def checked_probs(probs: Any, what: str) -> Array:
    """Probabilities of states along the last axis: from 0 to 1, and of sum 1, by which they are divided where it is nearly so."""
    p = between(probs, what, 0.0, 1.0 + 1e-6)
    if p.ndim == 0 or p.shape[-1] == 0:
        raise ModelError(f"{what} must be an array with one probability for each state, not {probs!r}")
    sums = p.sum(axis=-1, keepdims=True)
    off = np.abs(sums - 1.0)
    if np.any(off > 1e-6):
        raise ModelError(f"{what} must sum to 1, not to {sums[off > 1e-6][0]:.9g}")
    return np.where(off > 1e-12, p / sums, p)


def number_of_states(k: Any, probs: Any, what: str) -> tuple[Any, Array | None]:
    """k and the probabilities, either of which may stand in the place of k."""
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


def _with_rest(counts: Array, whole: Any) -> Array:
    """All counts along the last axis, the last being what is left of the whole."""
    last = np.asarray(whole)[..., None] - counts.sum(axis=-1, keepdims=True)
    lead = np.broadcast_shapes(counts.shape[:-1], last.shape[:-1])
    return np.concatenate([np.broadcast_to(part, (*lead, part.shape[-1])) for part in (counts, last)], axis=-1)
