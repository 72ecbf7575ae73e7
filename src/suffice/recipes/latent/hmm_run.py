"""What `hmm` returns: the chain, its parameters as arrays, and how it was found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType

import numpy as np

from suffice.errors import ModelError
from suffice.families.protocol.family import Array
from suffice.models.chain import Chain
from suffice.recipes.latent.latent_run import LatentRun, class_table
from suffice.statistics.counts import freeze
from suffice.variables import Count, Finite


@dataclass(frozen=True, eq=False, repr=False)
class HmmRun(LatentRun[Chain]):
    """A hidden Markov model and how it was found. The states are ordered by falling weight, those of equal weight by what they
    emit, so that their numbers do not depend on the start.

    >>> from suffice import sequences
    >>> from suffice import hmm
    >>> rows = {"f": list("uuvuuwwvwwwwuuuvuwwwwvw"), "n": [0, 1, 0, 1, 0, 7, 9, 8, 5, 9, 8, 6, 1, 0, 2, 1, 0, 9, 7, 8, 8, 6, 9]}
    >>> run = hmm(sequences(rows, variables={"n": Count("n")}), 2)
    >>> run.rates["n"].round(2), run.probs["f"].round(2).tolist(), run.n_parameters
    (array([7.62, 0.6 ]), [[0.0, 0.15, 0.85], [0.8, 0.2, 0.0]], 9)
    >>> run.durations.round(1)
    array([12.,  5.])
    """

    n_steps: float
    """The steps that were learned from: their number, or their weight."""
    name: str
    """The hidden variable."""
    _columns: tuple[str, ...] = field(repr=False)
    weights: Array = field(repr=False)
    """The share of the steps that is expected in each state."""
    _hard: float = field(repr=False)
    """ln p(most probable paths, data)."""

    @property
    def k(self) -> int:
        """The number of states."""
        return len(self.weights)

    @property
    def transition(self) -> Array:
        """p(next state | state): state × next state."""
        return np.asarray(self.model[self.name].probs)

    @property
    def start(self) -> Array:
        """p(state) at the first step."""
        return np.asarray(self.model.first[0][self.name].probs)

    @property
    def durations(self) -> Array:
        """The mean number of steps that a state lasts, 1 / (1 − p(stay))."""
        with np.errstate(divide="ignore"):
            return np.asarray(1.0 / (1.0 - np.diagonal(self.transition)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The real columns: the axes of `means` and `covariances`."""
        return tuple(n for n in self._columns if self.model[n].is_line)

    @property
    def means(self) -> Array:
        """The mean of each real column in each state: state × column."""
        return self._moments[0]

    @property
    def covariances(self) -> Array:
        """The covariance of the real columns in each state, whatever its kind: state × column × column."""
        return self._moments[1]

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        """Column by column: y = a + b·(those before it) + noise of variance v adds v, and b times their covariance."""
        names, k = self.columns, self.k
        mean, covariance = np.zeros((k, len(names))), np.zeros((k, len(names), len(names)))
        for j, name in enumerate(names):
            cpd = self.model[name]
            at = [names.index(p) for p in cpd.real_parents]
            b, shared = cpd.coefficients, covariance[:, at]
            mean[:, j] = cpd.intercept + np.einsum("kc,kc->k", b, mean[:, at])
            covariance[:, j] = covariance[:, :, j] = np.einsum("kc,kcd->kd", b, shared)
            covariance[:, j, j] = cpd.variance + np.einsum("kc,kc->k", b, covariance[:, at, j])
        return freeze(mean), freeze(covariance)

    @property
    def probs(self) -> Mapping[str, Array]:
        """p(value | state) of each finite column: state × value."""
        tables = {n: self.model[n] for n in self._columns if isinstance(self.model.variables[n], Finite)}
        return MappingProxyType({n: cpd.probs for n, cpd in tables.items() if "probs" in cpd.arrays})

    @property
    def rates(self) -> Mapping[str, Array]:
        """The Poisson rate of each count in each state."""
        counts = {n: self.model[n] for n in self._columns if isinstance(self.model.variables[n], Count)}
        return MappingProxyType({n: cpd.rates for n, cpd in counts.items() if "rates" in cpd.arrays})

    @property
    def icl(self) -> float:
        """ln p(most probable path, data) − ½ k ln N: states that are hard to tell apart cost."""
        return self._hard - 0.5 * self.n_parameters * float(np.log(self.n_steps))

    @property
    def _n(self) -> float:
        return self.n_steps

    def _headline(self) -> str:
        return (
            f"hidden Markov model of {self.k} state{'' if self.k == 1 else 's'}, {self.n_parameters:,} parameters, "
            f"{self.n_steps:,.10g} steps; log-likelihood {self.log_likelihood:.10g}, BIC {self.bic:.10g}, ICL {self.icl:.10g}; "
            f"{self._end()}"
        )

    def _table(self) -> tuple[list[str], list[list[object]]]:
        try:
            lasting = {"stationary": self.model.stationary()}
        except ModelError:  # several distributions that the transition keeps
            lasting = {}
        return class_table(self, {**lasting, "mean duration": self.durations})
