"""The Dirichlet distribution: p(x | α) = Γ(A)/Π Γ(αᵢ) Π xᵢ^(αᵢ−1), A = Σα, of k positive numbers x that sum to 1; and Beta,
of the first of two such numbers: p(x | a, b) = x^(a−1) (1 − x)^(b−1) / B(a, b), 0 < x < 1.

    T(x) = (ln x₁, …, ln x_k),   h(x) = 1,   η = α − 1,   A(η) = Σ ln Γ(αᵢ) − ln Γ(A) = ln B(α)
    E[T] = ψ(αᵢ) − ψ(A),   Cov[T] = ψ′(αᵢ) 1[i=j] − ψ′(A)

Densities are those of x₁, …, x_{k−1}, the last being what is left. Its logs vary freely below a curved surface, so that all k of
them make a minimal form. Each formula is arranged so that what is large in ln Γ and ψ of large α cancels before it is computed,
not after. As priors, of the probabilities of Categorical and Multinomial, and of that of Bernoulli, Binomial and Geometric:

    prior + statistic   Dirichlet(α + N)      evidence   ln B(α + N)/B(α) + Σ ln h(x),   N the counts of all outcomes

An estimate is the inverse of gᵢ = ψ(αᵢ) − ψ(A), of which one number is looked for, not k: at a given A each αᵢ = ψ⁻¹(ψ(A) + gᵢ),
and the right A is where they sum to it. With r(z) = z − exp ψ(z), which goes from 0 to ½, and δ = 1 − Σ exp gᵢ, which is above 0
unless the data do not vary,

    F(A) = Σ αᵢ − A = Σ r(αᵢ) − r(A) − δ exp ψ(A),   F′(A) = Σ r′(αᵢ) ψ′(A)/ψ′(αᵢ) − r′(A) − δ ψ′(A) exp ψ(A)

F is above 0 left of the solution and below it to the right, so that Newton's step, in ln A, is kept between the two best bounds.
Near-degenerate data, A ≈ (k − 1)/2δ, is where it begins. The fixed point of Minka 2000, Estimating a Dirichlet distribution, is
the same equation, iterated.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.errors import DataError, FitError, ModelError
from suffice.numerics.exponential.arithmetic import special
from suffice.numerics.exponential.arithmetic.special import HALF_LOG_2PI, log_minus_digamma
from suffice.numerics.exponential.arithmetic.symmetric import single
from suffice.numerics.exponential.arithmetic.values import LEAST, Array, Interval, between, observations, plain, tail, vectors
from suffice.numerics.exponential.protocol.family import ExponentialFamily, FamilyAndPrior, Inside
from suffice.numerics.exponential.protocol.observable import generator
from suffice.numerics.exponential.protocol.statistic import Totals

SMALL = 0.1
"""Gamma variables of a smaller shape than this are drawn as logs: they may lie below the smallest double."""
MANY = 64
"""Of more states than this the k² sums of all others are too long."""
SUM = 1e-9
"""Shares that sum to 1 but for this much are taken as such."""
EQUAL = 8.0 * float(np.finfo(np.float64).eps)
"""A δ below this, times the size of what it is made of, is rounding."""
FARTHEST = 345.0
"""|ln A| is looked for up to here: the square of e^345 is near the largest double."""


class Simplex(FamilyAndPrior):
    """What Dirichlet has in common with Beta, the Dirichlet of two shares, of which x is the first."""

    if TYPE_CHECKING:
        # α along the last axis, here or at another η, and the member with this α; what is known of each share, of those that x
        # has; vectors of as many numbers as there are shares.
        def _alpha(self, eta: Any = None) -> Array: ...
        def _from_alpha(self, alpha: Array, of: ExponentialFamily | None = None) -> Self: ...
        def _part(self, shares: Any) -> Any: ...
        def _vectors(self, value: Any, what: str) -> Array: ...

    @property
    def mean(self) -> Any:
        """E[x] = α/A."""
        alpha = self._alpha()
        return plain(self._part(alpha / alpha.sum(axis=-1, keepdims=True)))

    @property
    def variance(self) -> Any:
        """Var[xᵢ] = αᵢ (A − αᵢ)/A²(A + 1)."""
        alpha = self._alpha()
        A = alpha.sum(axis=-1, keepdims=True)
        return plain(self._part(alpha / A * (others(alpha) / A) / (A + 1.0)))

    @property
    def mode(self) -> Any:
        """(α − 1)/(A − k); refused where some α is below 1, or all are 1: there is no such point then."""
        name, alpha = self._title, self._alpha()
        if np.any(alpha < 1.0):
            where = f"where a parameter, here {alpha.min():g}, is below 1"
            raise FitError(f"{name} has no mode {where}: its density is infinite there")
        rest = (alpha - 1.0).sum(axis=-1, keepdims=True)
        if np.any(rest == 0.0):
            raise FitError(f"{name} has no mode where all parameters are 1: all points are equally likely; take the mean")
        return plain(self._part((alpha - 1.0) / rest))

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval of each share: the marginal of xᵢ is Beta(αᵢ, A − αᵢ)."""
        alpha = self._alpha()
        return beta_interval(self._part(alpha), self._part(others(alpha)), level)

    @property
    def natural(self) -> Array:
        return self._alpha() - 1.0

    def from_natural(self, eta: Any) -> Self:
        return self._from_alpha(self._alpha(eta))

    def from_mean(self, mu: Any) -> Self:
        """The α with ψ(αᵢ) − ψ(Σα) = μᵢ; refused where there is none."""
        g = self._vectors(mu, "E[T]")
        return self._from_alpha(_alpha_at(_strength(g, _gap(g)), g))

    def log_normaliser(self, eta: Any = None) -> Any:
        return plain(special.log_beta(self._alpha(eta)))

    def gradient(self, eta: Any = None) -> Array:
        """ψ(αᵢ) − ψ(A), which is near ln αᵢ/A where α is large."""
        alpha = self._alpha(eta)
        A = alpha.sum(axis=-1, keepdims=True)
        return np.asarray(-np.log1p(others(alpha) / alpha) + log_minus_digamma(A) - log_minus_digamma(alpha))

    def hessian(self, eta: Any = None) -> Array:
        alpha = self._alpha(eta)
        own, common = sc.polygamma(1, alpha), sc.polygamma(1, alpha.sum(axis=-1))
        return np.asarray(own[..., :, None] * np.eye(alpha.shape[-1]) - common[..., None, None])

    def _cumulants(self, order: int, eta: Any) -> Array:
        """ψ⁽ⁿ⁾(αᵢ) where all indices are i, less ψ⁽ⁿ⁾(A) everywhere, n = order − 1."""
        alpha = self._alpha(eta)
        own, common = sc.polygamma(order - 1, alpha), sc.polygamma(order - 1, alpha.sum(axis=-1))
        k = alpha.shape[-1]
        alike = np.zeros((k,) * order)
        alike[(np.arange(k),) * order] = 1.0
        return np.asarray(alike * own.reshape(*own.shape, *(1,) * (order - 1)) - single(common, order))

    def _log_density(self, x: Array) -> Array:
        """ln Γ(A) − Σ ln Γ(αᵢ) + Σ (αᵢ − 1) ln xᵢ as the probability of "counts" α in A draws, of which no term is large."""
        alpha = self._alpha()
        A = alpha.sum(axis=-1)
        at_edge = np.where(alpha == 1.0, np.log(A)[..., None], np.where(alpha < 1.0, np.inf, -np.inf))
        positive = np.where(x > 0.0, x, 1.0)
        logs = np.log(positive)
        counted = special.log_poisson(alpha, A[..., None] * positive, np.log(A)[..., None] + logs)
        terms = np.where(x > 0.0, counted + np.log(alpha) - logs, at_edge)
        lost = np.asarray(np.isneginf(terms).any(axis=-1))
        total = np.where(lost[..., None], 0.0, terms).sum(axis=-1) - special.log_poisson(A, A) - np.log(A)
        return np.where(lost, -np.inf, total + 0.0)

    def entropy(self) -> Any:
        """ln B(α) + (A − k) ψ(A) − Σ (αᵢ − 1) ψ(αᵢ).

        That is Σ G(αᵢ) − G(A) − (k − 1) ψ(A), where G(z) = ln Γ(z) − (z − 1) ψ(z) + z: what is large in them cancels beforehand.
        """
        alpha = self._alpha()
        A = alpha.sum(axis=-1)
        return plain(_smooth(alpha).sum(axis=-1) - _smooth(A) - (alpha.shape[-1] - 1) * sc.digamma(A))

    def _divergence(self, other: Self) -> Array:
        """Σ K(βᵢ, αᵢ) − K(B, A), where K(z, w) = ln Γ(z) − ln Γ(w) − (z − w) ψ(w), β being the other's α, and B = Σβ.

        With K(z, w) = z ln z/w − z + w and what Stirling's formula leaves, it is Σ D(βᵢ, B αᵢ/A) and these: no term is large.
        """
        alpha, beta = self._alpha(), other._alpha()
        A, B = alpha.sum(axis=-1, keepdims=True), beta.sum(axis=-1, keepdims=True)
        m, off = B * (alpha / A), beta - alpha
        alike = (np.abs(off) < 0.5 * alpha).all(axis=-1, keepdims=True)
        gap = np.where(alike, off - off.sum(axis=-1, keepdims=True) * (alpha / A), beta - m)
        rests = special.stirling_divergence(alpha, beta).sum(axis=-1) - special.stirling_divergence(A, B)[..., 0]
        return np.asarray(np.maximum(special.deviance(beta, m, gap).sum(axis=-1) + rests, 0.0))

    def plus(self, seen: Array, family: ExponentialFamily) -> Self:
        """Imagined and seen counts of the outcomes, together."""
        return self._from_alpha(self._alpha() + seen, family.bare)

    def evidence(self, seen: Array, log_base: Array) -> Array:
        """ln B(α + N)/B(α) + Σ ln h(x), as the probability of the sum of the rows, and of the rows when that is known. Of one row
        the latter is 1, and all digits are there, as where h = 1; of several they end where the rounding of Σ ln h(x) does."""
        return np.asarray(special.log_polya(seen, self._alpha()) + (log_base - special.log_multinomial(seen)))

    def _slack(self, statistic: Totals) -> Array:
        return -statistic.total


@dataclass(frozen=True, eq=False, repr=False)
class Dirichlet(Simplex):
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
    of: ExponentialFamily | None = field(default=None, kw_only=True)

    names: ClassVar[tuple[str, ...]] = ("alpha",)
    support: ClassVar[str] = "vectors of positive numbers that sum to 1"
    event_axes: ClassVar[int] = 1
    example: ClassVar[str] = "Categorical(3)"

    def _check_parameter(self, name: str, value: Any) -> Array:
        alpha = between(value, "alpha of Dirichlet", 0.0, open=True)
        if alpha.ndim == 0 or alpha.shape[-1] < 2:
            raise ModelError(f"alpha of Dirichlet needs one number for each of two states or more, not {value!r}")
        return alpha

    def sufficient(self, x: Any) -> Array:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(self._inside(x)[0]))

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        return np.maximum(draw_shares(self._alpha(), n, generator(n, seed)), LEAST)

    def _alpha(self, eta: Any = None) -> Array:
        return self._need("alpha") if eta is None else between(self._at(eta) + 1.0, "η + 1 of Dirichlet", 0.0, open=True)

    def _from_alpha(self, alpha: Array, of: ExponentialFamily | None = None) -> Self:
        return type(self)(alpha, of=of)

    def _part(self, shares: Any) -> Any:
        return shares

    def _vectors(self, value: Any, what: str) -> Array:
        return self._at(value)

    def _inside(self, x: Any) -> Inside:
        """Equal shares in place of what is not possible."""
        x = observations(x, "Dirichlet")
        k = x.shape[-1] if self.alpha is None and x.ndim else np.shape(self.alpha)[-1]
        if x.ndim == 0 or x.shape[-1] != k or k < 2:
            raise DataError(f"Dirichlet is about vectors of {max(k, 2)} shares, along the last axis; the shape is {x.shape}")
        inside = (x >= 0.0).all(axis=-1) & (np.abs(x.sum(axis=-1) - 1.0) <= SUM)
        return np.where(inside[..., None], x, 1.0 / k), inside


@dataclass(frozen=True, eq=False, repr=False)
class Beta(Simplex):
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
    of: ExponentialFamily | None = field(default=None, kw_only=True)

    names: ClassVar[tuple[str, ...]] = ("a", "b")
    support: ClassVar[str] = "numbers above 0 and below 1"
    example: ClassVar[str] = "Bernoulli()"

    def sufficient(self, x: Any) -> Array:
        x = self._inside(x)[0][..., 0]
        with np.errstate(divide="ignore"):
            return np.stack([np.log(x), np.log1p(-x)], axis=-1)

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> npt.NDArray[Any]:
        a, b = self._parameters()
        # Never 0 or 1, which are no values of it, but the doubles next to them.
        return np.clip(generator(n, seed).beta(a, b, (n, *a.shape)), LEAST, np.nextafter(1.0, 0.0))

    def _alpha(self, eta: Any = None) -> Array:
        if eta is None:
            return np.stack(self._parameters(), axis=-1)
        return between(self._vectors(eta, "η") + 1.0, "η + 1 of Beta", 0.0, open=True)

    def _from_alpha(self, alpha: Array, of: ExponentialFamily | None = None) -> Self:
        return type(self)(alpha[..., 0], alpha[..., 1], of=of)

    def _part(self, shares: Any) -> Any:
        return shares[..., 0]

    def _vectors(self, value: Any, what: str) -> Array:
        return vectors(value, f"{what} of Beta", 2)

    def _inside(self, x: Any) -> Inside:
        """Both shares; ½ in place of what is not possible."""
        x = observations(x, "Beta")
        inside = (x >= 0.0) & (x <= 1.0)
        x = np.where(inside, x, 0.5)
        return np.stack([x, 1.0 - x], axis=-1), inside


def draw_shares(alpha: Array, n: int, rng: np.random.Generator) -> Array:
    """n draws of each row of `alpha`: [n, ..., states]. What has no weight stays 0; a row without any weight is NaN.

    A gamma variable of shape a is one of shape a + 1 times U^(1/a) (Devroye 1986, Non-Uniform Random Variate Generation, p. 182),
    so that a Dirichlet with a = 1e-4 still has one large probability, and not 0/0.
    """
    small = alpha < SMALL
    gammas = rng.standard_gamma(np.where(small, alpha + 1.0, alpha), (n, *alpha.shape))
    with np.errstate(divide="ignore", invalid="ignore"):
        if small.any():
            np.log(gammas, out=gammas)
            gammas[:, small] += np.log(rng.random((n, int(small.sum())))) / alpha[small]
            gammas -= gammas.max(axis=-1, keepdims=True)
            np.exp(gammas, out=gammas)
        gammas /= gammas.sum(axis=-1, keepdims=True)
    return gammas


def shares_of(weights: Array) -> Array:
    """Weights over their sum, along the last axis; all equal where there are none.

    With N + α these are the means of Dirichlet posteriors, with N + α − 1 their modes.
    """
    totals = weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.divide(weights, totals, out=np.full_like(weights, 1.0 / weights.shape[-1]), where=totals > 0.0))


def others(alpha: Array) -> Array:
    """A − αᵢ, added up rather than subtracted: a small rest beside a large αᵢ keeps its digits."""
    if alpha.shape[-1] > MANY:
        return np.asarray(alpha.sum(axis=-1, keepdims=True) - alpha)
    return np.asarray(np.where(np.eye(alpha.shape[-1], dtype=bool), 0.0, alpha[..., None, :]).sum(axis=-1))


def beta_interval(a: Array, b: Array, level: float) -> Interval:
    """The equal-tailed interval of Beta(a, b); where one of the two is 0, the share is known."""
    outside, known = tail(level), (a <= 0.0) | (b <= 0.0)
    some = np.where(known, 1.0, a), np.where(known, 1.0, b)
    ends = sc.betaincinv(*some, outside), sc.betainccinv(*some, outside)
    return Interval(*(plain(np.where(known, np.where(b <= 0.0, 1.0, 0.0), end)) for end in ends))


def _gap(g: Array) -> Array:
    """δ = 1 − Σ exp gᵢ; refused where it is nothing but rounding."""
    ordered = np.sort(g, axis=-1)
    largest, rest = -np.expm1(ordered[..., -1]), np.exp(ordered[..., :-1]).sum(axis=-1)
    gap = np.asarray(largest - rest)  # to the digits of the small ones, where the largest share is all but 1
    if np.any(gap <= EQUAL * (np.abs(largest) + rest + np.abs(np.exp(g) * g).sum(axis=-1))):
        raise FitError(
            "there is no estimate where all rows are equal, or so nearly that their logs do not tell: the distribution would be "
            "infinitely narrow; give rows that vary"
        )
    return gap


def _strength(g: Array, gap: Array) -> Array:
    """A = Σα, by Newton in ln A between bounds, with F(A)/A and F′(A)."""
    u = np.clip(np.log(0.5 * (g.shape[-1] - 1) / gap), -FARTHEST, FARTHEST)
    low, high = np.full(u.shape, -FARTHEST), np.full(u.shape, FARTHEST)
    for _ in range(200):
        A = np.asarray(np.exp(u))
        alpha, width, scaled = _alpha_at(A, g), sc.polygamma(1, A), gap * np.exp(-log_minus_digamma(A))
        excess = (_rest(alpha).sum(axis=-1) - _rest(A)) / A - scaled
        slope = (_rest_slope(alpha) * width[..., None] / sc.polygamma(1, alpha)).sum(axis=-1)
        slope = slope - _rest_slope(A) - scaled * A * width
        low, high = np.where(excess > 0.0, u, low), np.where(excess <= 0.0, u, high)
        step = np.divide(-excess, slope, out=np.zeros_like(u), where=slope < 0.0)
        least = 1e-14 * np.maximum(np.abs(u), 1.0)
        there = (slope < 0.0) & (np.abs(step) <= least)
        inside = (slope < 0.0) & (u + step > low) & (u + step < high)
        u = np.where(there, u, np.where(inside, u + step, 0.5 * (low + high)))
        if np.all(there | (high - low <= least)):
            break
    if np.any(np.abs(u) > FARTHEST - 1.0):
        raise FitError("there is no estimate within the range of numbers: these shares are all but 0 and 1")
    return np.asarray(np.exp(u))


def _alpha_at(A: Array, g: Array) -> Array:
    """αᵢ = ψ⁻¹(ψ(A) + gᵢ)."""
    return inverse_digamma(np.asarray(sc.digamma(A))[..., None] + g)


def inverse_digamma(y: Any) -> Array:
    """ψ⁻¹(y), the positive number whose digamma is y, by Newton from Minka's start."""
    y = np.asarray(y, dtype=np.float64)
    z = np.where(y >= -2.22, np.exp(np.maximum(y, -2.22)) + 0.5, -1.0 / np.minimum(y - sc.digamma(1.0), -1e-300))
    for _ in range(6):
        z = np.maximum(z - (sc.digamma(z) - y) / sc.polygamma(1, z), 0.5 * z)
    return np.asarray(z)


def _rest(z: Array) -> Array:
    """r(z) = z − exp ψ(z)."""
    return np.asarray(-z * np.expm1(-log_minus_digamma(z)))


def _rest_slope(z: Array) -> Array:
    """r′(z) = 1 − ψ′(z) exp ψ(z), which is 1/24z² and a little where z is large."""
    far = z > 1e3
    near = np.where(far, 1.0, z)
    direct = 1.0 - sc.polygamma(1, near) * near * np.exp(-log_minus_digamma(near))
    return np.asarray(np.where(far, (1.0 + 1.0 / z) / (24.0 * z * z), direct))


def _smooth(z: Array) -> Array:
    """G(z) = ½ ln 2πz + S(z) + (z − 1)(ln z − ψ(z)), S being what Stirling's formula leaves of ln Γ(z)."""
    return np.asarray(0.5 * np.log(z) + HALF_LOG_2PI + special.stirling_rest(z) + (z - 1.0) * log_minus_digamma(z))
