"""The regressions with one linear predictor: what each response and link adds to `glm.OnePredictor`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.basis.variables import Count, Finite, Variable
from suffice.errors import DataError, FitError
from suffice.errors.remedies import as_family, declaration
from suffice.families.chosen.exponential_node import PoissonRates
from suffice.families.design import Regressors, Summary, Sums, codes_of, predict_rows
from suffice.families.protocol.family import Array, Columns
from suffice.families.regressions.glm import OfStates, OnePredictor, weighted_sum
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.numerics.exponential.arithmetic import special
from suffice.numerics.exponential.arithmetic.special import log_gamma_peak, log_poisson_peak
from suffice.numerics.exponential.arithmetic.values import DRAWN, drawable


@dataclass(frozen=True)
class Probit(OfStates, OnePredictor):
    """Probit regression of a node of two states: p(second state) = Φ(a + b·x).

    >>> import suffice as sf
    >>> data = {"x": [1.0, 2.0, 3.0, 4.0], "y": ["no", "yes", "no", "yes"]}
    >>> sf.fit("x -> y", data, families={"y": Probit()})["y"].coefficients.round(4)
    array([0.5908])
    """

    response: ClassVar[int | None] = 2
    canonical: ClassVar[bool] = False
    word = "probit"
    types = ("Probit",)
    words: ClassVar[str] = "probit regression"
    nodes: ClassVar[str] = "finite nodes of two states"
    lost: ClassVar[str] = "its probability would be 0; leave the node or the state out"
    first_levels = OnePredictor.first_levels

    def values(self, child: Finite, columns: Columns) -> Array:  # type: ignore[override]
        return codes_of(child, columns).astype(np.float64)

    def link(self, mean: float) -> float:
        return float(sc.ndtri(mean))

    def mean(self, eta: Array) -> Array:
        return np.asarray(sc.ndtr(eta))

    def log_probs(self, eta: Array) -> Array:
        return np.stack([sc.log_ndtr(-eta), sc.log_ndtr(eta)])

    def draw(self, eta: Array, dispersion: float, n: Array, rng: np.random.Generator) -> npt.NDArray[Any]:
        return (rng.standard_normal(len(eta)) < eta).astype(np.int32)


NO_SPREAD = 1e-7
"""A negative binomial of a smaller dispersion than this cannot be told from a Poisson."""


class _OfCounts(OnePredictor):
    kind: ClassVar[type] = Count

    def check(self, child: Variable, parents: Sequence[Variable]) -> None:
        if not isinstance(child, Count):
            name, numbers = child.name, not isinstance(child, Finite) or all(state.isdigit() for state in child.states)
            way = f": declare it, {declaration(name, f'Count({name!r})', 'scan(data, {})')}" if numbers else ""
            raise FitError(f"{type(self).__name__} is a family of counts, and {name!r} is {child!r}{way}")
        super().check(child, parents)


@dataclass(frozen=True)
class BinomialLogit(_OfCounts):
    """Logistic regression of how many of `trials` trials, a parent of the node, were successes.

    >>> import suffice as sf
    >>> data = {"dose": [1.0, 2.0, 3.0], "n": [10, 10, 10], "ill": [2, 5, 7]}
    >>> rows = sf.scan(data, variables={"ill": Count("ill"), "n": Count("n")})
    >>> sf.fit("dose -> ill; n -> ill", rows, families={"ill": BinomialLogit(trials="n")})["ill"].coefficients.round(4)
    array([1.1051])
    """

    trials: str | None = None

    response: ClassVar[int | None] = 1
    word = "binomial"
    types = ("BinomialLogit",)
    words: ClassVar[str] = "binomial regression, logit link"
    by_lms: ClassVar[bool] = True

    def check(self, child: Variable, parents: Sequence[Variable]) -> None:
        if self.trials is None:
            name, named = child.name, as_family(child.name, "BinomialLogit(trials='n')", "binomial,trials=n")
            raise FitError(
                f"BinomialLogit needs the name of the parent of {name!r} that holds the trials, {named}; where every row has the "
                f"same number, such as 12, {as_family(name, 'exponential.Binomial(12)', 'binomial,n=12')} needs none"
            )
        super().check(child, parents)

    def values(self, child: Variable, columns: Columns) -> Array:
        y = super().values(child, columns)
        n = np.asarray(columns[self.trials], dtype=np.float64)  # type: ignore[index]
        wrong = np.flatnonzero(~((y <= n) & (n == np.floor(n))))
        if wrong.size:
            i = int(wrong[0])
            raise DataError(
                f"a row has {child.name}={y[i]:g} and {self.trials}={n[i]:g}: there cannot be more successes than trials, and "
                "trials are whole numbers"
            )
        return y

    def refuse(self, child: Variable, parents: Any, s: Summary) -> None:
        super().refuse(child, parents, s)
        if not 0 < s.child[0] < s.trials:
            what = "successes" if s.child[0] <= 0 else "failures"
            raise FitError(f"{child.name!r} cannot be fitted: the data have no {what}, and its log-odds would be infinite")

    def link(self, mean: float) -> float:
        return float(np.log(mean) - np.log1p(-mean))

    def mean(self, eta: Array) -> Array:
        return np.asarray(sc.expit(eta))

    def base(self, y: Array, n: Array) -> Array:
        return log_poisson_peak(y) + log_poisson_peak(n - y) - log_poisson_peak(n)

    def log_prob(self, y: Array, eta: Array, dispersion: float, n: Array) -> Array:
        inside = (y >= 0) & (y <= n) & (y == np.floor(y))
        k, n = np.where(inside, y, 0.0), np.where(inside, n, 0.0)
        return np.where(inside, special.log_binomial(k, n, self.mean(eta), self.mean(-eta)), -np.inf)

    def draw(self, eta: Array, dispersion: float, n: Array, rng: np.random.Generator) -> npt.NDArray[Any]:
        if not np.all((n >= 0) & (n == np.floor(n)) & (n < DRAWN)):
            raise DataError(f"the trials {self.trials!r} lie in {n.min():g} … {n.max():g}: they must be whole numbers from 0 up")
        return np.asarray(rng.binomial(n.astype(np.int64), self.mean(eta)), dtype=np.float64)

    def variance(self, eta: Array, dispersion: float, n: Array) -> Array:
        return n * self.mean(eta) * self.mean(-eta)

    def in_scipy(self, stats: Any, eta: Array, dispersion: float, n: Array) -> Any:
        return stats.binom(n, self.mean(eta))


class _LogLink(OnePredictor):
    """The mean is e^η."""

    def link(self, mean: float) -> float:
        return float(np.log(mean))

    def mean(self, eta: Array) -> Array:
        with np.errstate(over="ignore"):
            return np.exp(eta)


class _Counts(_LogLink, _OfCounts):
    """Whole numbers from 0 up, not all of them 0."""

    def refuse(self, child: Variable, parents: Any, s: Summary) -> None:
        super().refuse(child, parents, s)
        if not s.child[0] > 0:
            raise FitError(f"{child.name!r} cannot be fitted: every count in the data is 0, and the log of its rate is infinite")


@dataclass(frozen=True)
class PoissonLog(_Counts):
    """Poisson regression of a count: y ~ Poisson(e^(a + b·x)). `offset` names a parent such as the logarithm of the exposure.

    >>> import suffice as sf
    >>> rows = sf.scan({"x": [0.0, 1.0, 2.0, 3.0], "n": [1, 3, 4, 9]}, variables={"n": Count("n")})
    >>> sf.fit("x -> n", rows, families={"n": PoissonLog()})["n"].coefficients.round(4)
    array([0.6574])
    """

    response: ClassVar[int | None] = 3
    closes: ClassVar[bool] = True
    word = "poisson"
    types = ("PoissonLog",)
    words: ClassVar[str] = "Poisson regression, log link"
    by_lms: ClassVar[bool] = True

    def curve(self, mean: float, trials: float) -> float:
        return max(mean, 0.1)

    def base(self, y: Array, n: Array) -> Array:
        return log_poisson_peak(y)

    def log_prob(self, y: Array, eta: Array, dispersion: float, n: Array) -> Array:
        """Also where the mean is beyond the doubles."""
        mean = self.mean(eta)
        inside = (y >= 0) & (y == np.floor(y)) & np.isfinite(mean)
        return np.where(inside, special.log_poisson(np.where(inside, y, 0.0), np.where(inside, mean, 0.0), eta), -np.inf)

    def draw(self, eta: Array, dispersion: float, n: Array, rng: np.random.Generator) -> npt.NDArray[Any]:
        return np.asarray(rng.poisson(drawable(self.mean(eta))), dtype=np.float64)

    def variance(self, eta: Array, dispersion: float, n: Array) -> Array:
        return self.mean(eta)

    def in_scipy(self, stats: Any, eta: Array, dispersion: float, n: Array) -> Any:
        return stats.poisson(self.mean(eta))

    def closed_form(self, cpd: RegressionCpd) -> PoissonRates:
        return PoissonRates(cpd.child, cpd.finite_parents, self.mean(cpd.predictor_by_states()))


@dataclass(frozen=True)
class NegativeBinomialLog(_Counts):
    """Negative binomial regression of a count: mean μ = e^(a + b·x), variance μ + d μ². A Poisson with more spread; the
    `dispersion` d of the fitted CPD is 1/θ of others.

    >>> import suffice as sf
    >>> rows = sf.scan({"x": [0.0, 1.0, 2.0, 3.0] * 2, "n": [0, 9, 1, 30, 2, 3, 14, 4]}, variables={"n": Count("n")})
    >>> cpd = sf.fit("x -> n", rows, families={"n": NegativeBinomialLog()})["n"]
    >>> cpd.coefficients.round(3), round(1 / cpd.dispersion, 3)
    (array([0.782]), 1.446)
    """

    response: ClassVar[int | None] = 6
    canonical: ClassVar[bool] = False
    profiled: ClassVar[bool] = True
    word = "negative-binomial"
    types = ("NegativeBinomialLog",)
    words: ClassVar[str] = "negative binomial regression, log link"

    def of_shape(self, what: Any, at: Regressors, theta: Array, shape: float, columns: Columns, weights: Array | None) -> Any:
        """What a function of counts, predictors, weights and shape says of some rows at θ."""
        y = self.values(at.child, columns)
        eta = predict_rows(theta[None], at.parents, columns, at.centre, len(y), at.child.name)[0]
        offset = self.exposure(columns)[1]
        return what(y, eta + offset if offset.size else eta, np.ones(len(y)) if weights is None else weights, shape)

    def dispersion_at(self, cpd: Any, s: Sums, shape: Array) -> float:
        """After a Newton step in the logarithm of the shape, of at most a factor of e²; no further than where a Poisson is."""
        slope, curve = shape
        step = float(np.clip(-slope / curve if curve < 0 else np.sign(slope), -2.0, 2.0))
        return float(np.clip(cpd.dispersion * np.exp(-step), NO_SPREAD, 1.0 / NO_SPREAD))

    def dispersion_slopes(self, cpd: Any, s: Sums, shape: Array) -> tuple[float, float]:
        return -float(shape[0]), float(shape[1])

    def spread(self, y: Array, eta: Array, w: Array, shape: float) -> Array:
        """The first and second derivatives of Σ w ln p(y | η) by ln(shape)."""
        mu = self.mean(eta)
        counts, place = np.unique(y, return_inverse=True)  # few different ones: the functions of them are dear
        times = np.bincount(place, w)
        # ψ(y + s) − ψ(s) − ln(1 + μ/s) + (μ − y)/(μ + s), in parts that keep their digits where s is large
        first = times @ (special.log_minus_digamma(shape) - special.log_minus_digamma(shape + counts))
        first -= weighted_sum(special.ratio_excess(y + shape, mu + shape), w)
        second = times @ (sc.polygamma(1, counts + shape) - sc.polygamma(1, shape))
        second += weighted_sum(mu / (shape * (shape + mu)) - (mu - y) / (shape + mu) ** 2, w)
        return np.array([shape * first, shape * first + shape**2 * second])

    def log_likelihood_of(self, y: Array, eta: Array, w: Array, shape: float) -> float:
        return weighted_sum(self.log_prob(y, eta, 1.0 / shape, np.empty(0)), w)

    def log_prob(self, y: Array, eta: Array, dispersion: float, n: Array) -> Array:
        shape, inside = 1.0 / dispersion, (y >= 0) & (y == np.floor(y))
        over = eta - np.log(shape)
        return np.where(
            inside, special.log_negative_binomial(np.where(inside, y, 0.0), shape, sc.expit(-over), sc.expit(over)), -np.inf
        )

    def draw(self, eta: Array, dispersion: float, n: Array, rng: np.random.Generator) -> npt.NDArray[Any]:
        rates = rng.gamma(1.0 / dispersion, dispersion * drawable(self.mean(eta)))
        return np.asarray(rng.poisson(drawable(rates)), dtype=np.float64)

    def variance(self, eta: Array, dispersion: float, n: Array) -> Array:
        return self.mean(eta) + dispersion * self.mean(eta) ** 2

    def in_scipy(self, stats: Any, eta: Array, dispersion: float, n: Array) -> Any:
        return stats.nbinom(1.0 / dispersion, 1.0 / (1.0 + dispersion * self.mean(eta)))


class _Gamma(OnePredictor):
    """A gamma distribution of mean μ and variance d μ², d the dispersion: of shape 1/d."""

    def values(self, child: Variable, columns: Columns) -> Array:
        y = super().values(child, columns)
        if y.size and not y.min() > 0:
            raise DataError(f"{child.name!r} has the value {y.min():g}, and {type(self).__name__} is a family of numbers above 0")
        return y

    def base(self, y: Array, n: Array) -> Array:
        return -np.log(y)

    def scale(self, s: Sums, deviance: float) -> float:
        """1/shape, where ln(shape) − ψ(shape) = deviance / 2N."""
        return float(1.0 / special.inverse_log_minus_digamma(0.5 * deviance / s.weight))

    def dispersion_slopes(self, cpd: Any, s: Sums, shape: Array) -> tuple[float, float]:
        """Of ν Σ w ℓ + N (ν ln ν − ν − ln Γ(ν)) by −ln ν, ν = 1/d."""
        nu = 1.0 / cpd.dispersion
        first = nu * (s.log_likelihood + s.weight * float(special.log_minus_digamma(nu)))
        return -first, first + s.weight * (nu - nu**2 * float(sc.polygamma(1, nu)))

    def total(self, s: Sums, summary: Summary, dispersion: float) -> float:
        return float(s.log_likelihood / dispersion + summary.weight * log_gamma_peak(1.0 / dispersion) + summary.base)

    def log_prob(self, y: Array, eta: Array, dispersion: float, n: Array) -> Array:
        mu = self.mean(eta)
        inside = (y > 0) & (mu > 0)
        own = np.where(inside, y, 1.0)
        value = log_gamma_peak(1.0 / dispersion) - special.excess_over_log(own / np.where(inside, mu, own) - 1.0) / dispersion
        return np.where(inside, value - np.log(own), -np.inf)

    def draw(self, eta: Array, dispersion: float, n: Array, rng: np.random.Generator) -> npt.NDArray[Any]:
        mu = self.mean(eta)
        if not np.all((mu > 0) & np.isfinite(mu)):
            raise DataError(f"a mean of {type(self).__name__} is {mu[~((mu > 0) & np.isfinite(mu))][0]:g}: it must be above 0")
        return np.asarray(mu * rng.gamma(1.0 / dispersion, dispersion, len(mu)))

    def variance(self, eta: Array, dispersion: float, n: Array) -> Array:
        return np.asarray(dispersion * self.mean(eta) ** 2)

    def in_scipy(self, stats: Any, eta: Array, dispersion: float, n: Array) -> Any:
        return stats.gamma(1.0 / dispersion, scale=dispersion * self.mean(eta))


@dataclass(frozen=True)
class GammaLog(_Gamma, _LogLink):
    """Gamma regression of a number above 0: mean e^(a + b·x), a constant coefficient of variation √d.

    >>> import suffice as sf
    >>> data = {"x": [0.0, 1.0, 2.0, 3.0], "y": [1.0, 3.0, 4.0, 9.0]}
    >>> sf.fit("x -> y", data, families={"y": GammaLog()})["y"].coefficients.round(4)
    array([0.6816])
    """

    response: ClassVar[int | None] = 4
    canonical: ClassVar[bool] = False
    dispersed: ClassVar[bool] = True
    word = "gamma-log"
    types = ("GammaLog",)
    words: ClassVar[str] = "gamma regression, log link"

    def level(self, theta: Array) -> float:
        return float(1.0 + abs(theta[0]))


@dataclass(frozen=True)
class GammaInverse(_Gamma):
    """Gamma regression of a number above 0 by its inverse: mean 1/(a + b·x), which must be above 0 for every row.

    >>> import suffice as sf
    >>> data = {"x": [0.0, 1.0, 2.0, 3.0], "y": [9.0, 4.0, 3.0, 2.0]}
    >>> sf.fit("x -> y", data, families={"y": GammaInverse()})["y"].coefficients.round(4)
    array([0.1238])
    """

    response: ClassVar[int | None] = 5
    dispersed: ClassVar[bool] = True
    word = "gamma-inverse"
    types = ("GammaInverse",)
    words: ClassVar[str] = "gamma regression, inverse link"
    scaled: ClassVar[bool] = True

    def link(self, mean: float) -> float:
        return 1.0 / mean

    def mean(self, eta: Array) -> Array:
        return np.asarray(np.divide(1.0, eta, out=np.full(len(eta), -np.inf), where=eta > 0))

    def apart(self, levels: Array) -> float:
        """So that every mean stays above 0."""
        return 0.3 * float(np.abs(levels).min())
