"""Regressions: what a node may be given numbers (`families=`), nodes written down by hand, and learning step by step (`lms`)."""

from suffice.families.by_hand import Gaussian, Rates, Regression
from suffice.families.regressions.linear_moments import Linear
from suffice.families.regressions.logistic import Logistic, ProportionalOdds
from suffice.families.regressions.responses import BinomialLogit, GammaInverse, GammaLog, NegativeBinomialLog, PoissonLog, Probit
from suffice.learning.complete.lms import lms

__all__ = [
    "BinomialLogit", "GammaInverse", "GammaLog", "Gaussian", "Linear", "Logistic", "NegativeBinomialLog", "PoissonLog",
    "Probit", "ProportionalOdds", "Rates", "Regression", "lms",
]  # fmt: skip
