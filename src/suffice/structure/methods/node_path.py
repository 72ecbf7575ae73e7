"""A path of neighbourhoods of finite or mixed columns: the regressions of all nodes under penalties from the largest down."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.structure.methods.node_columns import Array
from suffice.structure.methods.node_regressions import NodeRegressions
from suffice.variables import Variable

Joined = npt.NDArray[np.bool_]
Rule = Callable[[Joined], Joined]
"""Which pairs are joined, of which nodes [node, neighbour] have a neighbour."""


@dataclass(frozen=True, eq=False)
class NodeFit:
    """What a penalty gives: strengths [node, neighbour] as in `NodeRegressions.strengths`, and how well each node is foreseen."""

    penalty: float
    strengths: Array
    log_likelihoods: Array
    """Σ ln p of each node."""
    n_parameters: int
    """Of all regressions together, those of a pair in both directions."""
    objective: float
    rule: Rule

    @property
    def deviance(self) -> float:
        """−2 times the log of the pseudo-likelihood."""
        return -2.0 * float(self.log_likelihoods.sum())

    @property
    def n_pairs(self) -> float:
        """Half the number of neighbours of all nodes."""
        return 0.5 * float(np.count_nonzero(self.strengths))

    @cached_property
    def joined(self) -> Joined:
        """Which pairs are joined: a symmetric matrix."""
        return self.rule(self.strengths != 0.0)


@dataclass(eq=False)
class NodePath:
    """The fits of some rows under each of some penalties, from the largest down; `prices` as in `NodeRegressions`."""

    data: Data
    variables: Sequence[Variable]
    penalties: Sequence[float]
    rule: Rule
    prices: Array | None = None
    seed: int = 0
    threads: int | None = None
    watch: Callable[[], None] = field(default=lambda: None)

    @property
    def weight(self) -> float:
        """The number of rows."""
        return self.data.weight

    @property
    def n_variables(self) -> int:
        return len(self.variables)

    @cached_property
    def nodes(self) -> NodeRegressions:
        return self._regressions(self.data, self.threads)

    @cached_property
    def fits(self) -> Sequence[NodeFit]:
        """A fit for each penalty."""
        return [self._fit(self.nodes, penalty) for penalty in self.penalties]

    def again(self, data: Data) -> Sequence[NodeFit]:
        """The fits on other rows, for the same penalties."""
        nodes = self._regressions(data, 1)
        return [self._fit(nodes, penalty) for penalty in self.penalties]

    def held_out(self, train: Data, test: Data) -> Array:
        """The log of the pseudo-likelihood of rows under the fits on others, for each penalty. Of a node in a state that no other
        row has nothing is said: no penalty could foresee it."""
        nodes, values = self._regressions(train, 1), []
        for penalty in self.penalties:
            nodes.move_to(penalty)
            values.append(test.weight * float(nodes.log_likelihoods(nodes.losses_of(test)).sum()))
        return np.array(values)

    def _regressions(self, data: Data, threads: int | None) -> NodeRegressions:
        return NodeRegressions(data, self.variables, prices=self.prices, threads=threads, watch=self.watch)

    def _fit(self, nodes: NodeRegressions, penalty: float) -> NodeFit:
        nodes.move_to(penalty)
        n_parameters = sum(node.n_parameters for node in nodes.nodes)
        ln_p = nodes.weight * nodes.log_likelihoods()
        return NodeFit(penalty, nodes.strengths(), ln_p, n_parameters, nodes.objective, self.rule)
