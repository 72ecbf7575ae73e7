"""Exponential families, p(x | η) = h(x) exp(η·T(x) − A(η)), and their conjugate priors.

`family.py` says what all have in common; a file beside it has the distributions that are one idea: counts of draws, those of
shares, normals.

Each name is imported when it is first used, so that a part of it, `suffice.exponential.interval`, is quick to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_HOMES = {
    "categorical": ("Categorical",),
    "dirichlet": ("Beta", "Dirichlet"),
    "draws": ("Bernoulli", "Binomial", "Multinomial"),
    "family": ("Family", "Prior"),
    "gamma": ("Exponential", "Gamma"),
    "interval": ("Interval",),
    "normal": ("MultivariateNormal", "Normal"),
    "normal_inverse_wishart": ("NormalInverseGamma", "NormalInverseWishart"),
    "normal_known": ("NormalKnownMean", "NormalKnownVariance"),
    "poisson": ("Geometric", "Poisson"),
    "predictives": ("BetaBinomial", "BetaGeometric", "DirichletMultinomial", "Lomax", "NegativeBinomial"),
    "statistic": ("Centred", "Totals"),
    "student_t": ("MultivariateT", "StudentT"),
    "uniform": ("Extremes", "Uniform"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}

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
    from suffice.exponential.categorical import Categorical
    from suffice.exponential.dirichlet import Beta, Dirichlet
    from suffice.exponential.draws import Bernoulli, Binomial, Multinomial
    from suffice.exponential.family import Family, Prior
    from suffice.exponential.gamma import Exponential, Gamma
    from suffice.exponential.interval import Interval
    from suffice.exponential.normal import MultivariateNormal, Normal
    from suffice.exponential.normal_inverse_wishart import NormalInverseGamma, NormalInverseWishart
    from suffice.exponential.normal_known import NormalKnownMean, NormalKnownVariance
    from suffice.exponential.poisson import Geometric, Poisson
    from suffice.exponential.predictives import BetaBinomial, BetaGeometric, DirichletMultinomial, Lomax, NegativeBinomial
    from suffice.exponential.statistic import Centred, Totals
    from suffice.exponential.student_t import MultivariateT, StudentT
    from suffice.exponential.uniform import Extremes, Uniform


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'suffice.exponential' has no attribute {name!r}")
    value = getattr(import_module(f"suffice.exponential.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
