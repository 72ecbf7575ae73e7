"""Exponential families, p(x | η) = h(x) exp(η·T(x) − A(η)), and their conjugate priors: one file per distribution."""

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
