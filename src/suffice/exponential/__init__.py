"""Exponential families, p(x | η) = h(x) exp(η·T(x) − A(η)), and their conjugate priors: one file per distribution.

Each name is imported when it is first used, so that a part of it, `suffice.exponential.interval`, is quick to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOME = {
    "Bernoulli": "bernoulli",
    "Beta": "beta",
    "BetaBinomial": "predictives",
    "BetaGeometric": "predictives",
    "Binomial": "binomial",
    "Categorical": "categorical",
    "Centred": "statistic",
    "Dirichlet": "dirichlet",
    "DirichletMultinomial": "predictives",
    "Exponential": "exponential",
    "Extremes": "uniform",
    "Family": "family",
    "Gamma": "gamma",
    "Geometric": "geometric",
    "Interval": "interval",
    "Lomax": "lomax",
    "Multinomial": "multinomial",
    "MultivariateNormal": "multivariate_normal",
    "MultivariateT": "multivariate_t",
    "NegativeBinomial": "predictives",
    "Normal": "normal",
    "NormalInverseGamma": "normal_inverse_gamma",
    "NormalInverseWishart": "normal_inverse_wishart",
    "NormalKnownMean": "normal_known_mean",
    "NormalKnownVariance": "normal_known_variance",
    "Poisson": "poisson",
    "Prior": "family",
    "StudentT": "student_t",
    "Totals": "statistic",
    "Uniform": "uniform",
}

__all__ = [
    "Bernoulli",
    "Beta",
    "BetaBinomial",
    "BetaGeometric",
    "Binomial",
    "Categorical",
    "Centred",
    "Dirichlet",
    "DirichletMultinomial",
    "Exponential",
    "Extremes",
    "Family",
    "Gamma",
    "Geometric",
    "Interval",
    "Lomax",
    "Multinomial",
    "MultivariateNormal",
    "MultivariateT",
    "NegativeBinomial",
    "Normal",
    "NormalInverseGamma",
    "NormalInverseWishart",
    "NormalKnownMean",
    "NormalKnownVariance",
    "Poisson",
    "Prior",
    "StudentT",
    "Totals",
    "Uniform",
]

if TYPE_CHECKING:
    from suffice.exponential.bernoulli import Bernoulli
    from suffice.exponential.beta import Beta
    from suffice.exponential.binomial import Binomial
    from suffice.exponential.categorical import Categorical
    from suffice.exponential.centred import Centred
    from suffice.exponential.dirichlet import Dirichlet
    from suffice.exponential.exponential import Exponential
    from suffice.exponential.family import Family
    from suffice.exponential.gamma import Gamma
    from suffice.exponential.geometric import Geometric
    from suffice.exponential.interval import Interval
    from suffice.exponential.lomax import Lomax
    from suffice.exponential.multinomial import Multinomial
    from suffice.exponential.multivariate_normal import MultivariateNormal
    from suffice.exponential.multivariate_t import MultivariateT
    from suffice.exponential.normal import Normal
    from suffice.exponential.normal_inverse_gamma import NormalInverseGamma
    from suffice.exponential.normal_inverse_wishart import NormalInverseWishart
    from suffice.exponential.normal_known_mean import NormalKnownMean
    from suffice.exponential.normal_known_variance import NormalKnownVariance
    from suffice.exponential.poisson import Poisson
    from suffice.exponential.predictives import BetaBinomial, BetaGeometric, DirichletMultinomial, NegativeBinomial
    from suffice.exponential.prior import Prior
    from suffice.exponential.statistic import Totals
    from suffice.exponential.student_t import StudentT
    from suffice.exponential.uniform import Extremes, Uniform


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'suffice.exponential' has no attribute {name!r}")
    value = getattr(import_module(f"suffice.exponential.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
