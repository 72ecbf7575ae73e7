"""A network's distributions as numbered factors, made once and kept with the network."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from suffice.errors import ModelError
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.logistic import LogisticCpd
from suffice.families.poisson import PoissonRates
from suffice.inference.blocks import Hybrid
from suffice.inference.counts import Counted, CountNode
from suffice.inference.junction_tree import JunctionTree
from suffice.inference.network import GaussianNode, Network
from suffice.variables import Count, Finite

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet


def tabled(cpd: LogisticCpd) -> Table:
    """A logistic regression on finite parents as a table."""
    if cpd.real_parents:
        raise ModelError(
            f"{cpd.child.name!r} is a logistic regression on the number {cpd.real_parents[0]!r}: there is no exact inference in "
            "such a network yet; log_prob and sample work, and do({...}) with numbers for its real parents makes it a table"
        )
    return cpd.table()


class Compiled:
    """The finite part of a network as a `Network` whose factor i is p(variable i | its parents), the rest as Gaussian nodes.

    `finite` and `reals` have the names in the order of their numbers (real nodes in topological order, counts among them).
    """

    def __init__(self, bn: BayesNet) -> None:
        self.variables = {n: v for n, v in bn.variables.items() if isinstance(v, Finite)}
        self.finite = tuple(self.variables)
        self.reals = tuple(n for n in bn.dag.topological_order if n not in self.variables)
        self.index = {n: i for i, n in enumerate(self.finite)}
        self.real_index = {n: i for i, n in enumerate(self.reals)}
        self.counts = frozenset(n for n, v in bn.variables.items() if isinstance(v, Count))
        self._cpds = {n: bn[n] for n in bn}

    @cached_property
    def network(self) -> Network:
        factors = []
        for i, name in enumerate(self.finite):
            cpd = self._cpds[name]
            if isinstance(cpd, LogisticCpd):
                cpd = tabled(cpd)
            assert isinstance(cpd, Table)
            factors.append(((*(self.index[p] for p in cpd.parents), i), i, cpd.probs))
        return Network.of([v.n_states for v in self.variables.values()], factors)

    @cached_property
    def gaussians(self) -> tuple[GaussianNode, ...]:
        nodes: list[GaussianNode] = []
        for name in self.reals:
            cpd = self._cpds[name]
            assert isinstance(cpd, (ConditionalGaussian, PoissonRates))
            finite = tuple(self.index[p.name] for p in cpd.finite_parents)
            if isinstance(cpd, PoissonRates):
                nodes.append(CountNode.of(finite, cpd.rates))
                continue
            reals = tuple(self.real_index[p] for p in cpd.real_parents)
            nodes.append(GaussianNode(finite, reals, cpd.intercept, cpd.coefficients, cpd.variance))
        return tuple(nodes)

    @cached_property
    def tree(self) -> JunctionTree:
        return JunctionTree.of(self.network)

    @cached_property
    def hybrid(self) -> Hybrid:
        return Counted(self.network, self.gaussians) if self.counts else Hybrid(self.network, self.gaussians)
