"""What `factors` returns: the network, its loadings and noise as arrays, and the factors of rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from suffice.basis.blas import one_blas_thread
from suffice.models.networks import BayesNet
from suffice.recipes.latent.latent_run import LatentRun

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class FactorsRun(LatentRun[BayesNet]):
    """Factors and how they were found. They are standard normal and independent; which rotation of them is meant is fixed by
    convention: Λᵀ Ψ⁻¹ Λ is diagonal and falls, and the first loading of each is above 0.

    >>> from suffice import factors
    >>> rows = {"a": [1.0, 2.5, 3.0, 5.0, 3.0, 2.5], "b": [1.1, 3.0, 2.0, 4.0, 3.5, 2.5], "c": [2.0, 2.5, 2.0, 4.0, 3.5, 3.5]}
    >>> run = factors(rows, 1)
    >>> run.loadings.round(3).tolist(), run.noise.round(3).tolist(), run.n_parameters
    ([[1.0], [0.955], [0.653]], [0.389, 0.005, 0.192], 9)
    >>> run.scores({"a": [5.0], "b": [4.0], "c": [None]}).round(3)
    array([[1.382]])
    """

    n_rows: float
    """The rows that were learned from: their number, or their weight."""
    names: tuple[str, ...]
    """The factors: the columns of `loadings`."""
    columns: tuple[str, ...]
    """The columns of the data: the rows of `loadings`."""
    spherical: bool = field(default=False, repr=False)
    """Whether all columns have the same noise: probabilistic PCA."""

    @property
    def k(self) -> int:
        """The number of factors."""
        return len(self.names)

    @property
    def loadings(self) -> Array:
        """Λ: how much of each factor there is in each column: column × factor."""
        cpds = [self.model[c] for c in self.columns]
        return np.array([cpd.coefficients[[cpd.real_parents.index(n) for n in self.names]] for cpd in cpds])

    @property
    def noise(self) -> Array:
        """Ψ: the variance of each column that factors do not explain."""
        return np.array([float(self.model[c].variance) for c in self.columns])

    @property
    def mean(self) -> Array:
        """The mean of each column."""
        return np.array([float(self.model[c].intercept) for c in self.columns])

    @property
    def covariance(self) -> Array:
        """Λ Λᵀ + Ψ: the covariance of the columns."""
        loadings = self.loadings
        return np.asarray(loadings @ loadings.T + np.diag(self.noise))

    @property
    def communalities(self) -> Array:
        """The share of the variance of each column that factors explain."""
        return np.asarray(1.0 - self.noise / np.diag(self.covariance))

    @property
    def icl(self) -> float:
        """Not a number: factors are no classes, which could overlap."""
        return float("nan")

    @one_blas_thread
    def scores(self, rows: RowsLike) -> Array:
        """E[factors | row] of each row, new rows or old: row × factor. Missing cells are summed out."""
        return np.stack([np.asarray(self.model.predict(rows, name), np.float64) for name in self.names], axis=1)

    def log_prob(self, rows: RowsLike) -> Array:
        """ln p(row) of each row, factors and missing cells summed out."""
        return self.model.log_prob(rows)

    @property
    def _n(self) -> float:
        return self.n_rows

    def _headline(self) -> str:
        noise = ", the same noise in all columns" if self.spherical else ""
        number = "1 factor" if self.k == 1 else f"{self.k} factors"
        return (
            f"{number} of {len(self.columns)} columns{noise}, {self.n_parameters:,} parameters, {self.n_rows:,.10g} rows; "
            f"log-likelihood {self.log_likelihood:.10g}, BIC {self.bic:.10g}; {self._end()}"
        )

    def _table(self) -> tuple[list[str], list[list[object]]]:
        header = ["column", *self.names, "noise", "explained"]
        parts = zip(self.columns, self.loadings.tolist(), self.noise.tolist(), self.communalities.tolist(), strict=True)
        return header, [[name, *own, noise, share] for name, own, noise, share in parts]

    def _below(self) -> str:
        turned = "; only a rotation tells factors apart, and it is fixed, too" if self.k > 1 else ""
        return f"\nBy convention factors have mean 0, variance 1 and a first loading above 0{turned}.{super()._below()}"
