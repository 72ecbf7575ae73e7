"""Exponential families, p(x | η) = h(x) exp(η·T(x) − A(η)), and their conjugate priors: one file per distribution."""

from suffice.exponential.family import Family
from suffice.exponential.prior import Prior
from suffice.exponential.statistic import Totals

__all__ = ["Family", "Prior", "Totals"]
