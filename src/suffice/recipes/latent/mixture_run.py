"""What `mixture` returns: the network, its parameters as arrays, and the classes of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.basis.blas import one_blas_thread
from suffice.engines.data import Data
from suffice.engines.scan import rows_with
from suffice.errors import quantity
from suffice.families.protocol.family import Array
from suffice.learning.mixture_normals import NormalPart
from suffice.learning.mixture_parts import ClassLogLikelihood, ClassParameters, ClassPosterior, ImpossibleRow, ScoredClasses
from suffice.models.networks import BayesNet
from suffice.recipes.latent.latent_run import LatentRun, class_table
from suffice.statistics.counts import freeze
from suffice.variables import Count, Finite, Variable

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike


@dataclass(frozen=True, eq=False, repr=False)
class MixtureRun(LatentRun[BayesNet]):
    """A mixture and how it was found. The classes are ordered by falling weight, those of equal weight by their first
    parameter, so that their numbers do not depend on the start.

    >>> from suffice import mixture
    >>> run = mixture({"x": [1.0, 1.1, 0.9, 1.2, 5.0, 5.2, 4.9], "f": ["u", "u", "v", "u", "v", "v", "v"]}, 2)
    >>> run.probs["f"].round(2).tolist(), run.n_parameters
    ([[0.75, 0.25], [0.0, 1.0]], 7)
    >>> run.responsibilities({"x": [1.0, None], "f": ["u", "v"]}).round(2)
    array([[1.  , 0.  ],
           [0.25, 0.75]])
    """

    n_rows: float
    """The rows that were learned from: their number, or their weight."""
    name: str
    """The hidden class."""
    _parameters: ClassParameters = field(repr=False)
    _hard: float = field(repr=False)
    """Σ ln r, r the responsibility of each row's most probable class."""
    _variables: Mapping[str, Variable] = field(repr=False)

    @property
    def k(self) -> int:
        """The number of classes."""
        return len(self.weights)

    @property
    def weights(self) -> Array:
        """p(class)."""
        return np.asarray(self.model[self.name].probs)

    @property
    def columns(self) -> tuple[str, ...]:
        """The real columns: the axes of `means` and `covariances`."""
        return tuple(n for n, v in self._variables.items() if not isinstance(v, (Finite, Count)))

    @property
    def means(self) -> Array:
        """The mean of each real column in each class: class × column."""
        return self._moments[0]

    @property
    def covariances(self) -> Array:
        """The covariance of the real columns in each class, whatever its kind: class × column × column."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        k, d = self.k, len(self.columns)
        means, covariances = np.zeros((k, d)), np.zeros((k, d, d))
        for theta in self._parameters.parts:
            if isinstance(theta, NormalPart):
                at = [self.columns.index(n) for n in theta.names]
                means[:, at], covariances[np.ix_(range(k), at, at)] = theta.moments
        return freeze(means), freeze(covariances)

    @property
    def probs(self) -> Mapping[str, Array]:
        """p(state | class) of each finite column: class × state."""
        return MappingProxyType({n: self.model[n].probs for n, v in self._variables.items() if isinstance(v, Finite)})

    @property
    def rates(self) -> Mapping[str, Array]:
        """The Poisson rate of each count in each class."""
        return MappingProxyType({n: self.model[n].rates for n, v in self._variables.items() if isinstance(v, Count)})

    @property
    def n_parameters(self) -> int:
        """The free parameters. A covariance that classes share counts once, though the network writes it out in each class."""
        return self.k - 1 + int(sum(part.n_parameters for part in self._parameters.parts))

    @property
    def icl(self) -> float:
        """BIC + Σ ln r, r the responsibility of each row's most probable class: classes that overlap cost (Biernacki, Celeux &
        Govaert 2000, IEEE PAMI 22, p. 719; half of what mclust prints)."""
        return self.bic + self._hard

    def plot(self, ax: Any = None, column: str | None = None) -> Any:
        """The objective after each iteration, of every start; or what the classes are like in a column: densities of a number,
        weighted and their sum, or probabilities of states. By matplotlib; gives the axes."""
        if column is None:
            return super().plot(ax)
        answer: Any = self.model.query(column)
        drawn = answer.plot(ax)
        hidden: Any = self.model.variables[self.name]
        classes = [self.model.query(column, {self.name: state}) for state in hidden.states]
        return answer._plot_parts(drawn, classes, self.weights.tolist())

    @one_blas_thread
    def responsibilities(self, rows: RowsLike) -> Array:
        """p(class | row) of each row, new rows or old: row × class. Missing cells are summed out."""
        data = rows_with(rows, self._variables, "mixture")
        try:
            return np.concatenate([np.zeros((0, self.k)), *(r for r, _ in data.map(self._posterior(refuse=True)))])
        except ImpossibleRow as error:
            raise error.to_error(data) from None

    predict_proba = responsibilities

    @one_blas_thread
    def log_prob(self, rows: RowsLike) -> Array:
        """ln p(row) of each row, the class and missing cells summed out; −inf where a row is impossible."""
        return np.concatenate(
            [np.zeros(0), *(log_p for _, log_p in rows_with(rows, self._variables, "mixture").map(self._posterior()))]
        )

    def predict(self, rows: RowsLike) -> npt.NDArray[np.int64]:
        """The number of the most probable class of each row, from 0."""
        return np.asarray(self.responsibilities(rows).argmax(axis=1), dtype=np.int64)

    def _held_out(self, rows: Data) -> float:
        """Σ ln p(row) of rows that were not learned from, of the same columns."""
        return rows.fold(ClassLogLikelihood(self._posterior()))

    def _posterior(self, refuse: bool = False) -> ClassPosterior:
        return ClassPosterior(ScoredClasses.of(self._parameters), tuple(self.rates), refuse)

    @property
    def _n(self) -> float:
        return self.n_rows

    def _headline(self) -> str:
        classes = f"{self.k} class{'' if self.k == 1 else 'es'}"
        return (
            f"mixture of {classes}, {quantity(self.n_parameters, 'parameter')}, {self.n_rows:,.10g} rows; log-likelihood "
            f"{self.log_likelihood:.10g}, BIC {self.bic:.10g}, ICL {self.icl:.10g}; {self._end()}"
        )

    def _table(self) -> tuple[list[str], list[list[object]]]:
        return class_table(self, {})
