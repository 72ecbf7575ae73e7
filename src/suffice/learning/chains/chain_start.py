"""Where a hidden Markov model starts: states emit what the classes of a mixture do at its starts, and tend to stay.

A mixture forgets the order of the steps, so its classes are found from a sample of them; what it cannot say, how long states
last, is drawn. Where labels show some states, or regressions are among the columns, a start is one of `em` instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.engines.engine import is_missing
from suffice.errors import DataError, FitError
from suffice.families.priors.priors import Dirichlet, Gamma, NormalInverseGamma, as_prior
from suffice.families.protocol.family import Mean
from suffice.incomplete.components import Theta
from suffice.learning.chains.chain_covariance import StateProblem
from suffice.learning.latent.mixture_parts import CollapsedClass
from suffice.learning.latent.mixture_setup import MixtureProblem, MixtureRows
from suffice.learning.latent.mixture_start import SAMPLE, MixtureStarts
from suffice.variables import Finite

STAY = 0.6, 0.95
"""Between these lies the share of a state that stays, at most starts."""

WEAK = (Dirichlet(1), NormalInverseGamma(), Gamma())
"""Under this prior a class of a start has no variance and no rate of 0."""


@dataclass(frozen=True, eq=False)
class StateStarts:
    """Starts of one problem: `hidden` is the variable of the states, `kinds` of covariances as `mixture` takes them."""

    problem: StateProblem
    hidden: Finite
    kinds: Mapping[str, Any]
    seed: int

    def draw(self, number: int, rng: np.random.Generator) -> Theta:
        """Every other start moves its centres to the means of their rows; every third may also have states that never stay."""
        theta = self._classes(rng, number % 2 == 0)
        stay = rng.uniform(*(STAY if number % 3 < 2 else (0.0, STAY[1])), self.hidden.n_states)
        own = self.problem.tables.cells(self.hidden.name)
        cells = theta.cells.copy()
        table = cells[own].reshape(-1, self.hidden.n_states)
        cells[own] = ((1.0 - stay)[:, None] * table + np.diag(stay)).reshape(-1)
        return replace(theta, cells=cells)

    def _classes(self, rng: np.random.Generator, moving: bool) -> Theta:
        """A start of `em`, whose emissions are those of classes of a mixture if they can be."""
        theta = self.problem.random(rng)
        if self._mixture is None:
            return theta
        try:
            drawn = self._mixture.draw(rng, moving)
        except CollapsedClass:
            return theta
        cpds = self._mixture.mixture.cpds(drawn, np.ones(self.hidden.n_states))
        del cpds[self.hidden.name]
        return self.problem.parameters({**self.problem.cpds(theta), **cpds})

    @cached_property
    def _mixture(self) -> MixtureStarts | None:
        data, hidden = self.problem.sequences.data, self.hidden
        data = data.select([n for n in self.problem.template.topological_order if n in data.columns])  # as regressions follow
        if hidden.name in data.columns or any(node.iterative for node in self.problem.nodes.values()):
            return None
        sample = data.sample(SAMPLE, self.seed)
        shown = ~np.logical_and.reduce([is_missing(c) for c in sample.columns.values()])
        try:  # a column may be missing in the whole sample
            table = MixtureRows.of(data.of_rows(sample.take(np.flatnonzero(shown))))
            mixture: MixtureProblem = table.mixture(hidden, self.kinds, as_prior(WEAK), Mean())
            return MixtureStarts(mixture, self.seed)
        except (DataError, FitError):
            return None
