"""A network's distributions as numbered factors, made once and kept with the network."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from suffice.families.categorical import Table
from suffice.families.poisson import PoissonRates
from suffice.inference.blocks import Hybrid
from suffice.inference.junction_tree import JunctionTree
from suffice.inference.network import Array, CountNode, DensityNode, GaussianNode, Network
from suffice.models.regressions import Density, closed
from suffice.variables import Count, Finite

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet


class Compiled:
    """The finite part of a network as a `Network` whose factor i is p(variable i | its parents), the rest as Gaussian nodes.

    `finite` and `reals` have the names in the order of their numbers (real nodes in topological order, counts among them).
    `open` are the regressions that have no place among these: inference goes through `regressions` and `regression_rows`.
    """

    def __init__(self, bn: BayesNet) -> None:
        self.variables = {n: v for n, v in bn.variables.items() if isinstance(v, Finite)}
        self.finite = tuple(self.variables)
        self.reals = tuple(n for n in bn.dag.topological_order if n not in self.variables)
        self.index = {n: i for i, n in enumerate(self.finite)}
        self.real_index = {n: i for i, n in enumerate(self.reals)}
        self.counts = frozenset(n for n, v in bn.variables.items() if isinstance(v, Count))
        self._cpds = {n: bn[n] for n in bn}
        self.open = tuple(n for n in bn.dag.topological_order if bn[n].is_open)

    @cached_property
    def network(self) -> Network:
        return self._network(stand_ins=False)

    @cached_property
    def gaussians(self) -> tuple[GaussianNode, ...]:
        return tuple(self._node(name, stand_ins=False) for name in self.reals)

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
        return Hybrid(self._network(stand_ins=True), tuple(self._node(name, stand_ins=True) for name in self.reals))

    def _network(self, *, stand_ins: bool) -> Network:
        factors: list[tuple[tuple[int, ...], int, Array]] = []
        for i, name in enumerate(self.finite):
            if stand_ins and name in self.open:
                n = self.variables[name].n_states
                factors.append(((i,), i, np.full(n, 1.0 / n)))
                continue
            cpd = closed(self._cpds[name])
            assert isinstance(cpd, Table)
            factors.append(((*(self.index[p] for p in cpd.parents), i), i, cpd.probs))
        return Network.of([v.n_states for v in self.variables.values()], factors)

    def _node(self, name: str, *, stand_ins: bool) -> GaussianNode:
        if stand_ins and name in self.open:
            return DensityNode.of((), np.zeros(()))
        cpd = closed(self._cpds[name])
        assert not isinstance(cpd, Table)
        finite = tuple(self.index[p.name] for p in cpd.finite_parents)
        if isinstance(cpd, Density):
            return DensityNode.of(finite, cpd.logs)
        if isinstance(cpd, PoissonRates):
            return CountNode.of(finite, cpd.rates)
        reals = tuple(self.real_index[p] for p in cpd.real_parents)
        return GaussianNode(finite, reals, cpd.intercept, cpd.coefficients, cpd.variance)
