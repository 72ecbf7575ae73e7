"""The distributions of a network as numbered factors, made once and kept with it, for inference."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from suffice.families.protocol.family import Cpd
from suffice.graphs import Dag
from suffice.inference.finite.junction_tree import JunctionTree
from suffice.inference.finite.network import GaussianNode, Network
from suffice.inference.numbers.hybrid import Hybrid
from suffice.models.parts.closed_forms import as_closed_form, stand_in
from suffice.variables import Finite, NotNormal, Variable


class Compiled:
    """The finite part of a network as a `Network` whose factor i is p(variable i | its parents), the rest as Gaussian nodes.

    `finite` and `reals` have the names in the order of their numbers (real nodes in topological order, counts among them).
    `open` are the regressions that have no place among these: inference goes through `regressions` and `rows`. `parents`,
    `children` and the topological `order` are those of the graph, all nodes looked up once.
    """

    def __init__(self, dag: Dag, variables: Mapping[str, Variable], cpds: Mapping[str, Cpd]) -> None:
        self.order = dag.topological_order
        self.parents = {n: dag.parents(n) for n in dag.nodes}
        self.children = {n: dag.children(n) for n in dag.nodes}
        self.variables = {n: v for n, v in variables.items() if isinstance(v, Finite)}
        self.finite = tuple(self.variables)
        self.reals = tuple(n for n in self.order if n not in self.variables)
        self.index = {n: i for i, n in enumerate(self.finite)}
        self.real_index = {n: i for i, n in enumerate(self.reals)}
        self.counts = frozenset(n for n, v in variables.items() if isinstance(v, NotNormal))
        self.of_tables = not self.reals and not any(cpd.is_regression for cpd in cpds.values())
        self._cpds = dict(cpds)
        self.open = tuple(n for n in self.order if cpds[n].is_open)

    @cached_property
    def network(self) -> Network:
        return self._network(self._cpds)

    @cached_property
    def gaussians(self) -> tuple[GaussianNode, ...]:
        return self._nodes(self._cpds)

    @cached_property
    def tree(self) -> JunctionTree:
        return JunctionTree.of(self.network)

    @cached_property
    def hybrid(self) -> Hybrid:
        return Hybrid(self.network, self.gaussians)

    @cached_property
    def finite_part(self) -> Hybrid:
        """The finite nodes alone."""
        return Hybrid(self.network, ())

    @cached_property
    def around_regressions(self) -> Hybrid:
        """The same with something in the place of each open regression: a finite node is uniform, a number has the density 1."""
        if not self.open:
            return self.hybrid
        cpds = {n: stand_in(cpd) if n in self.open else cpd for n, cpd in self._cpds.items()}
        return Hybrid(self._network(cpds), self._nodes(cpds))

    def _network(self, cpds: Mapping[str, Any]) -> Network:
        tables = [as_closed_form(cpds[name]) for name in self.finite]
        factors = [((*(self.index[p] for p in cpd.parents), i), i, cpd.probs) for i, cpd in enumerate(tables)]
        return Network.of([v.n_states for v in self.variables.values()], factors)

    def _nodes(self, cpds: Mapping[str, Any]) -> tuple[GaussianNode, ...]:
        return tuple(as_closed_form(cpds[name]).node(self.index, self.real_index) for name in self.reals)
