"""Incomplete data of one graph, reduced once to what iterations need: the common face of all kinds of networks.

E-step   expected(θ)     the statistics that the data is expected to have under θ, and ln p(observed | θ)
M-step   maximised(s)    the parameters that statistics and prior give: as in `fit`
objective                ln p(observed | θ) + log_prior(θ), which no iteration lowers (DESIGN: conventions)
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from suffice.families.family import Cpd
from suffice.graphs import Dag
from suffice.models.bayes_net import BayesNet
from suffice.statistics import Statistics
from suffice.variables import Variable


class Expected(NamedTuple):
    """The result of an E-step: a statistic in the problem's own form, and ln p(observed | θ)."""

    statistic: Any
    log_likelihood: float


class Problem(Protocol):
    """What `em`, `gradient` and the observed information work on. Parameters θ are in the problem's own form."""

    @property
    def dag(self) -> Dag: ...
    @property
    def variables(self) -> Mapping[str, Variable]:
        """The variables of the graph, hidden ones included, in the order of its nodes."""

    @property
    def hidden(self) -> tuple[str, ...]:
        """The variables that no row shows."""

    @property
    def weight(self) -> float:
        """The weight of all rows together."""

    def first(self) -> Any:
        """Where to start without hidden variables: what the cells that are there say, smoothed."""

    def random(self, rng: np.random.Generator) -> Any:
        """A random start: families with hidden variables, or cells that are often missing, are drawn."""

    def expected(self, parameters: Any) -> Expected: ...
    def maximised(self, statistic: Any) -> Any: ...
    def log_prior(self, parameters: Any) -> float:
        """What the prior adds to the objective: 0 without one; Σ α ln θ for means, Σ (α − 1) ln θ for modes of tables; of a
        Gaussian the logarithm that its estimate maximises (see `suffice.learning.objective`)."""

    def vector(self, parameters: Any) -> Any:
        """The parameters as one vector of coordinates in which they may be extrapolated."""

    def from_vector(self, vector: Any) -> Any:
        """Back from such coordinates."""

    def cpds(self, parameters: Any) -> dict[str, Cpd]:
        """The parameters as distributions by node."""

    def parameters(self, cpds: Mapping[str, Cpd]) -> Any:
        """The parameters of these distributions."""

    def with_nodes(self, parameters: Any, other: Any, names: Any) -> Any:
        """The parameters, those of some nodes taken from others."""

    def imagined_of(self, name: str) -> Any:
        """What the prior imagines of a node; None if it says nothing."""

    def statistics(self, statistic: Any) -> Statistics:
        """An expected statistic under its names."""

    def network(self, parameters: Any, statistic: Any, info: str) -> BayesNet:
        """The network of these parameters, which were estimated from this expected statistic."""
