"""The normal distribution, p(x | μ, v) = (2πv)^−½ exp(−(x − μ)²/2v), which is also the prior of the mean of a normal of known
variance; and that of vectors, p(x | μ, Σ) = (2π)^−d/2 |Σ|^−½ exp(−½ (x − μ)ᵀ Σ⁻¹ (x − μ)). In minimal form, for d components:

    T(x) = (x_i; x_i x_j for i ≤ j),   h(x) = (2π)^−d/2,   k = d + d(d + 1)/2
    η = (Λμ; −½Λ_ii on the diagonal, −Λ_ij off it),   Λ = Σ⁻¹
    A(η) = ½ μᵀΛμ + ½ ln |Σ|,   E[T] = (μ; μ_i μ_j + Σ_ij)

Only the symmetric half of x xᵀ is there, row by row: an entry off the diagonal stands for two, so its η is twice that of the full
matrix −½Λ, while T and E[T] have it once. Of one component, T(x) = (x, x²), η = (μ/v, −1/2v) and Var[T] = ((v, 2μv), (2μv,
4μ²v + 2v²)).

Beside each stands its conjugate prior, `mean_and_spread.py`: the two make each other.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

import numpy as np

from suffice.basis.libraries import sc
from suffice.errors import DataError, FitError, ModelError
from suffice.numerics.exponential.arithmetic.special import HALF_LOG_2PI
from suffice.numerics.exponential.arithmetic.symmetric import (
    COLLINEAR,
    of_quadratics,
    off_diagonal_weight,
    positive,
    scaled_cholesky,
    singular_column,
    symmetric,
    whole_of,
)
from suffice.numerics.exponential.arithmetic.values import (
    Array,
    Interval,
    between,
    components,
    finite,
    keep,
    keep_with_axes,
    observations,
    plain,
    tail,
    vectors,
)
from suffice.numerics.exponential.normals.mean_and_spread import MeanAndSpread, PriorOfBoth
from suffice.numerics.exponential.predictives import MultivariateT, StudentT
from suffice.numerics.exponential.protocol.family import ExponentialFamily, FamilyAndPrior, Inside
from suffice.numerics.exponential.protocol.observable import generator
from suffice.numerics.exponential.protocol.statistic import Centred, explain_shapes


@dataclass(frozen=True, eq=False, repr=False)
class Normal(FamilyAndPrior, MeanAndSpread):
    """A normal distribution, by its mean and variance. Its conjugate prior is `NormalInverseGamma`; it is itself the conjugate
    prior of the mean of `NormalKnownVariance`.

    >>> s = Normal().statistic([1.0, 2.0, 6.0])
    >>> Normal().estimate(s).mean, s.scatter
    (3.0, array([[14.]]))
    >>> from suffice.exponential import NormalKnownVariance
    >>> Normal(0.0, 1.0) + NormalKnownVariance(2.0).statistic([3.0, 3.0])
    Normal(mean=1.5, variance=0.5, of=NormalKnownVariance(variance=2.0))
    """

    mean: Any = None
    variance: Any = None
    of: ExponentialFamily | None = None

    names: ClassVar[tuple[str, ...]] = ("mean", "variance")
    prior: ClassVar[str] = "NormalInverseGamma"
    support: ClassVar[str] = "finite numbers"
    example: ClassVar[str] = "NormalKnownVariance(1.0)"

    def _check_parameter(self, name: str, value: Any) -> Array:
        return finite(value, self._name_of(name)) if name == "mean" else super()._check_parameter(name, value)

    @property
    def mode(self) -> Any:
        """The mean."""
        return self.require_parameters().mean

    def interval(self, level: float = 0.95) -> Interval:
        """The equal-tailed interval of this probability."""
        half = -sc.ndtri(tail(level)) * np.sqrt(self._need("variance"))
        return Interval(plain(self._need("mean") - half), plain(self._need("mean") + half))

    def _cumulants(self, order: int, eta: Any) -> Array:
        """Of i times x and j times x²: 0 of i > 2; 2ʲ j! vʲ⁺¹, 2ʲ j! μ vʲ, 2ʲ⁻¹ (j − 1)! vʲ⁻¹ (j μ² + v) of i = 2, 1, 0."""
        mean, v = self._parameters(eta)
        n, powers = order, [2.0**j * sc.gamma(j + 1.0) for j in (order - 2, order - 1)]
        last = 2.0 ** (n - 1) * sc.gamma(float(n)) * v ** (n - 1) * (n * mean**2 + v)
        entries = np.stack([*[np.zeros_like(v)] * (n - 2), powers[0] * v ** (n - 1), powers[1] * mean * v ** (n - 1), last], -1)
        return symmetric(2, n, lambda at: entries[..., at.sum(axis=1)])

    def from_natural(self, eta: Any) -> Self:
        eta = vectors(eta, "η of Normal", 2)
        variance = 0.5 / between(-eta[..., 1], "−η₂ of Normal", 0.0, open=True)
        return type(self)(eta[..., 0] * variance, variance)

    def from_mean(self, mu: Any) -> Self:
        mu = vectors(mu, "E[T] of Normal", 2)
        variance = between(mu[..., 1] - mu[..., 0] ** 2, "E[x²] − E[x]² of Normal", 0.0, open=True)
        return type(self)(mu[..., 0], variance)

    def _log_density(self, x: Array) -> Array:
        """−½ (x − μ)²/v − ½ ln 2πv: without the matrices of the general form."""
        mean, variance = self._parameters()
        off = (x[..., 0] - mean) / np.sqrt(variance)
        return np.asarray(-0.5 * (off * off + np.log(variance)) - HALF_LOG_2PI)

    @explain_shapes
    def conjugate(self, total: Any, count: Any) -> NormalInverseGamma:
        """The mean total₁/count; on the variance an inverse gamma of shape (count + 3)/2."""
        total, count = vectors(total, "the total", 2), between(count, "the count", 0.0, open=True)
        mean = total[..., 0] / count
        return NormalInverseGamma(mean, count, 0.5 * (count + 3.0), 0.5 * (total[..., 1] - count * mean**2), of=self.bare)

    def _refuse_singular(self, s: Centred) -> None:
        if np.any(s.scatter <= 0.0):
            raise FitError("Normal has no estimate where all numbers are equal (or there is only one): the variance would be 0")

    def _moments(self, eta: Any = None) -> tuple[Array, Array]:
        mean, variance = self._parameters(eta)
        return mean[..., None], variance[..., None, None]

    def _of_moments(self, mean: Array, covariance: Array) -> Self:
        return type(self)(mean[..., 0], covariance[..., 0, 0])

    def _student(self, df: Any, location: Array, scale: Array) -> StudentT:
        return StudentT(df, plain(location[..., 0]), plain(np.sqrt(scale[..., 0, 0])))

    def _inside(self, x: Any) -> Inside:
        x = observations(x, "Normal")
        return x[..., None], np.isfinite(x)


@dataclass(frozen=True, eq=False, repr=False)
class MultivariateNormal(MeanAndSpread):
    """A normal distribution of vectors, by its mean and covariance. Its conjugate prior is `NormalInverseWishart`.

    >>> s = MultivariateNormal().statistic([[0.0, 1.0], [2.0, 1.0], [1.0, 4.0]])
    >>> MultivariateNormal().estimate(s).covariance.round(4)
    array([[0.6667, 0.    ],
           [0.    , 2.    ]])
    >>> MultivariateNormal([0.0, 0.0], [[2.0, 1.0], [1.0, 2.0]]).natural.round(4)
    array([ 0.    ,  0.    , -0.3333,  0.3333, -0.3333])
    """

    mean: Any = None
    covariance: Any = None

    names: ClassVar[tuple[str, ...]] = ("mean", "covariance")
    prior: ClassVar[str] = "NormalInverseWishart"
    support: ClassVar[str] = "vectors of finite numbers"
    event_axes: ClassVar[int] = 1

    def __post_init__(self) -> None:
        if (self.mean is None) != (self.covariance is None):
            raise ModelError("MultivariateNormal needs both a mean and a covariance, or neither")
        if self.mean is None:
            return
        mean, covariance = finite(self.mean, "the mean"), positive(self.covariance, "the covariance of MultivariateNormal")
        if mean.ndim == 0 or mean.shape[-1] != covariance.shape[-1]:
            raise ModelError(f"a mean of the shape {mean.shape} does not fit a covariance of the shape {covariance.shape}")
        keep_with_axes(self, mean=(mean, 1), covariance=(covariance, 2))

    @property
    def variance(self) -> Array:
        """The variance of each component: the diagonal of the covariance."""
        return np.array(np.diagonal(self._need("covariance"), axis1=-2, axis2=-1))

    def _cumulants(self, order: int, eta: Any) -> Array:
        return of_quadratics(*self._moments(eta), order)

    def marginal(self, only: Any) -> Self:
        """The distribution of some of the components."""
        chosen = components(only, self._need("mean").shape[-1])
        return type(self)(self._need("mean")[..., chosen], self._need("covariance")[..., chosen[:, None], chosen])

    def from_natural(self, eta: Any) -> Self:
        eta, d = self._vectors_and_size(eta, "η of MultivariateNormal")
        precision = whole_of(-2.0 * eta[..., d:] / off_diagonal_weight(d, 2.0), d)
        covariance = scaled_cholesky(positive(precision, "Λ, from η of MultivariateNormal,")).inverse
        return type(self)(np.einsum("...ij,...j->...i", covariance, eta[..., :d]), covariance)

    def from_mean(self, mu: Any) -> Self:
        mu, d = self._vectors_and_size(mu, "E[T] of MultivariateNormal")
        mean = mu[..., :d]
        return type(self)(mean, whole_of(mu[..., d:], d) - mean[..., :, None] * mean[..., None, :])

    @explain_shapes
    def conjugate(self, total: Any, count: Any) -> NormalInverseWishart:
        """The mean total/count; on the covariance an inverse Wishart of count + d + 2 degrees of freedom."""
        total, d = self._vectors_and_size(total, "the total")
        count = between(count, "the count", 0.0, open=True)
        mean = total[..., :d] / count[..., None]
        scale = whole_of(total[..., d:], d) - count[..., None, None] * mean[..., :, None] * mean[..., None, :]
        return NormalInverseWishart(mean, count, count + d + 2.0, scale, of=self.bare)

    def _refuse_singular(self, s: Centred) -> None:
        column = singular_column(s.scatter, scaled_cholesky(s.scatter), COLLINEAR)
        if column is not None:
            constant = np.any(s.scatter[..., column, column] <= 0.0)
            why = "does not vary" if constant else "is a linear function of those before it"
            rows = f"{s.count.min():g} rows of {s.centre.shape[-1]} components"
            raise FitError(
                f"the covariance of {rows} is singular: component {column} (from 0) {why}; leave it out, or use the prior "
                "NormalInverseWishart"
            )

    def _moments(self, eta: Any = None) -> tuple[Array, Array]:
        mean, covariance = self._parameters(eta)
        return mean, covariance

    def _of_moments(self, mean: Array, covariance: Array) -> Self:
        return type(self)(mean, covariance)

    def _student(self, df: Any, location: Array, scale: Array) -> MultivariateT:
        return MultivariateT(df, location, scale)

    def _inside(self, x: Any) -> Inside:
        """x as vectors, of as many components as the mean has, if there is one; 0 in place of what is not possible."""
        rows = observations(x, "MultivariateNormal")
        if rows.ndim == 0 or (self.mean is not None and rows.shape[-1] != self.mean.shape[-1]):
            d = "some" if self.mean is None else self.mean.shape[-1]
            raise DataError(f"MultivariateNormal is about vectors of {d} numbers, the last axis of x: its shape is {rows.shape}")
        inside = np.asarray(np.isfinite(rows).all(axis=-1))
        return np.where(inside[..., None], rows, 0.0), inside

    @staticmethod
    def _vectors_and_size(value: Any, what: str) -> tuple[Array, int]:
        """Vectors of d + d(d + 1)/2 numbers, and d."""
        array = finite(value, what)
        k = array.shape[-1] if array.ndim else 0
        d = round((np.sqrt(9.0 + 8.0 * k) - 3.0) / 2.0)
        if d < 1 or d * (d + 3) // 2 != k:
            raise ModelError(f"{what} has d + d(d + 1)/2 numbers for d components, 2, 5, 9, …; not {k}")
        return array, d


@dataclass(frozen=True, eq=False, repr=False)
class NormalInverseGamma(PriorOfBoth):
    """A distribution of a normal's mean and variance: `mean` with the weight of `count` rows, and an inverse gamma of the
    variance. (`suffice.NormalInverseGamma` is something else: it imagines rows for the nodes of a network.)

    >>> posterior = NormalInverseGamma(0.0, 1.0, 2.0, 3.0) + Normal().statistic([2.0, 4.0])
    >>> posterior
    NormalInverseGamma(mean=2.0, count=3.0, shape=3.0, scale=7.0, of=Normal())
    >>> posterior.expected, posterior.predictive()
    (Normal(mean=2.0, variance=3.5), StudentT(df=6.0, location=2.0, scale=1.7638342073763937))
    """

    mean: Any
    count: Any
    shape: Any
    scale: Any
    of: ExponentialFamily | None = None
    rest: Any = field(default=None, repr=False)

    names: ClassVar[tuple[str, ...]] = ("mean", "count", "shape", "scale")
    example: ClassVar[str] = "Normal()"
    _own_family: ClassVar[Normal] = Normal()
    narrow: ClassVar[bool] = True
    worth: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        mean = finite(self.mean, "the mean of NormalInverseGamma")
        rest = np.zeros(()) if self.rest is None else np.asarray(self.rest, dtype=np.float64)
        positive = {n: between(getattr(self, n), f"the {n} of NormalInverseGamma", 0.0, open=True) for n in self.names[1:]}
        keep(self, mean=mean, **positive, rest=rest)

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Any:
        """n draws of both, as so many normals side by side: the first axis of their parameters."""
        rng, a = generator(n, seed), np.asarray(self.shape)
        variance = self.scale / rng.standard_gamma(a, (n, *a.shape))
        off = rng.standard_normal((n, *a.shape)) * np.sqrt(variance / self._k)
        return self._normal(variance[..., None, None], off[..., None])


@dataclass(frozen=True, eq=False, repr=False)
class NormalInverseWishart(PriorOfBoth):
    """A distribution of a multivariate normal's mean and covariance: `mean` with the weight of `count` rows, and an inverse
    Wishart of `df` > d − 1 degrees of freedom and the `scale` matrix.

    >>> prior = NormalInverseWishart([0.0, 0.0], 1.0, 4.0, [[1.0, 0.0], [0.0, 1.0]])
    >>> posterior = prior + MultivariateNormal().statistic([[2.0, 0.0], [4.0, 3.0]])
    >>> posterior.mean, posterior.count, posterior.df, posterior.scale
    (array([2., 1.]), 3.0, 6.0, array([[9., 6.],
           [6., 7.]]))
    >>> posterior.predictive().df
    5.0
    """

    mean: Any
    count: Any
    df: Any
    scale: Any
    of: ExponentialFamily | None = None
    rest: Any = field(default=None, repr=False)

    names: ClassVar[tuple[str, ...]] = ("mean", "count", "df", "scale")
    example: ClassVar[str] = "MultivariateNormal()"
    _own_family: ClassVar[MultivariateNormal] = MultivariateNormal()

    def __post_init__(self) -> None:
        name = type(self).__name__
        mean, scale = finite(self.mean, f"the mean of {name}"), positive(self.scale, f"the scale of {name}")
        d = scale.shape[-1]
        if mean.ndim == 0 or mean.shape[-1] != d:
            raise ModelError(f"a mean of the shape {mean.shape} does not fit a scale of the shape {scale.shape}")
        count = between(self.count, f"the count of {name}", 0.0, open=True)
        df = between(self.df, f"the df of {name} for {d} components", d - 1.0, open=True)
        rest = np.zeros(d) if self.rest is None else np.asarray(self.rest, dtype=np.float64)
        keep_with_axes(self, mean=(mean, 1), count=(count, 0), df=(df, 0), scale=(scale, 2), rest=(rest, 1))

    def marginal(self, only: Any) -> NormalInverseWishart:
        """The prior of the mean and covariance of some of the components: as many degrees of freedom less as are left out."""
        chosen = components(only, self._d)
        scale = self.scale[..., chosen[:, None], chosen]
        return NormalInverseWishart(
            self.mean[..., chosen], self.count, self.df - (self._d - len(chosen)), scale, rest=self.rest[..., chosen]
        )

    def sample(self, n: int, seed: int | np.random.Generator = 0) -> Any:
        """n draws of both, as so many normals side by side: the first axis of their parameters. By Bartlett's decomposition."""
        rng, lead, d = generator(n, seed), np.shape(self.df), self._d
        A = np.tril(rng.standard_normal((n, *lead, d, d)), -1)
        A[..., np.arange(d), np.arange(d)] = np.sqrt(rng.chisquare(np.asarray(self.df)[..., None] - np.arange(d), (n, *lead, d)))
        root = self._factor.scale[..., :, None] * (self._factor.lower @ np.swapaxes(np.linalg.inv(A), -1, -2))
        off = np.einsum("...ij,...j->...i", root, rng.standard_normal((n, *lead, d))) / np.sqrt(self._k)[..., None]
        return self._normal(root @ np.swapaxes(root, -1, -2), off)
