"""Exponential families, p(x | η) = h(x) exp(η·T(x) − A(η)), and their conjugate priors.

`family.py` says what all have in common; a file beside it has the distributions that are one idea: counts of draws, those of
shares, normals. They may use statistics only. Start with `protocol/family`, then `gamma`.

Each name is imported when it is first used, so that a part of it, `exponential.arithmetic.values`, is quick to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {
    "categorical": "Categorical",
    "dirichlet": "Beta Dirichlet",
    "draws": "Bernoulli Binomial Multinomial",
    "protocol.family": "ConjugatePrior ExponentialFamily",
    "gamma": "Exponential Gamma Poisson",
    "arithmetic.values": "Interval",
    "negative_binomial": "BetaGeometric BetaNegativeBinomial Geometric NegativeBinomialKnownSize",
    "normals.normal": "MultivariateNormal Normal NormalInverseGamma NormalInverseWishart",
    "normals.normal_known": "NormalKnownMean NormalKnownVariance",
    "predictives": "BetaBinomial DirichletMultinomial Lomax MultivariateT NegativeBinomial StudentT",
    "protocol.observable": "Extremes Uniform",
    "protocol.statistic": "Centred Totals",
}
_HOME = {name: module for module, names in _NAMES.items() for name in names.split()}

if TYPE_CHECKING:
    from suffice.numerics.exponential.categorical import Categorical as Categorical
    from suffice.numerics.exponential.dirichlet import Beta as Beta, Dirichlet as Dirichlet
    from suffice.numerics.exponential.draws import Bernoulli as Bernoulli, Binomial as Binomial, Multinomial as Multinomial
    from suffice.numerics.exponential.protocol.family import (
        ExponentialFamily as ExponentialFamily,
        ConjugatePrior as ConjugatePrior,
    )
    from suffice.numerics.exponential.gamma import Exponential as Exponential, Gamma as Gamma, Poisson as Poisson
    from suffice.numerics.exponential.arithmetic.values import Interval as Interval
    from suffice.numerics.exponential.negative_binomial import (
        BetaGeometric as BetaGeometric, BetaNegativeBinomial as BetaNegativeBinomial, Geometric as Geometric,
        NegativeBinomialKnownSize as NegativeBinomialKnownSize,
    )  # fmt: skip
    from suffice.numerics.exponential.normals.normal import (
        MultivariateNormal as MultivariateNormal, Normal as Normal, NormalInverseGamma as NormalInverseGamma,
        NormalInverseWishart as NormalInverseWishart,
    )  # fmt: skip
    from suffice.numerics.exponential.normals.normal_known import (
        NormalKnownMean as NormalKnownMean,
        NormalKnownVariance as NormalKnownVariance,
    )
    from suffice.numerics.exponential.predictives import (
        BetaBinomial as BetaBinomial, DirichletMultinomial as DirichletMultinomial, Lomax as Lomax,
        MultivariateT as MultivariateT, NegativeBinomial as NegativeBinomial, StudentT as StudentT,
    )  # fmt: skip
    from suffice.numerics.exponential.protocol.statistic import Centred as Centred, Totals as Totals
    from suffice.numerics.exponential.protocol.observable import Extremes as Extremes, Uniform as Uniform
else:
    __all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'suffice.exponential' has no attribute {name!r}")
    value = getattr(import_module(f"suffice.numerics.exponential.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(_HOME)
