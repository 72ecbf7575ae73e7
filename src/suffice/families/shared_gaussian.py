"""Linear Gaussians that share numbers with other classes or columns, as those of a discriminant with one covariance do."""

from __future__ import annotations

from dataclasses import dataclass

from suffice.errors import FitError
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.statistics import Moments


@dataclass(frozen=True, eq=False)
class SharedGaussian(ConditionalGaussian):
    """A conditional Gaussian that shares numbers with other classes or columns; `own` are those that are counted here."""

    own: int = 0

    @classmethod
    def of(cls, cpd: ConditionalGaussian, column: int, *, tied: bool) -> SharedGaussian:
        """The same numbers in the place of a column: tied, one set of slopes and variance for all classes; else the variance of
        a class is counted with its first column."""
        K = cpd.variance.size
        own = K + column + 1 if tied else K if column else 2 * K
        return cls(cpd.child, cpd.parent_variables, cpd.intercept, cpd.coefficients, cpd.variance, cpd.seen, own=own)

    @property
    def n_parameters(self) -> int:
        return self.own

    def _posterior(self) -> Moments:
        raise FitError(
            f"{self.child.name!r} shares its variance with other classes or columns, and has no posterior of its own: take "
            "covariance=Full() or Diagonal() and a prior for intervals and predictives"
        )
