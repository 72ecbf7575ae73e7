"""What exact inference can make of one distribution, a table, a conditional Gaussian, rates, a density, or nothing; and the
distributions of a network as numbered factors, made once and kept with it.

A linear regression is a conditional Gaussian, and a regression of states, or of a Poisson count, on states alone is a table.
Any other one is *open*: it has a place in exact inference only once its numbers are known (`questions/exact.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from suffice.basis.variables import Finite, NotNormal, Variable
from suffice.errors import ModelError, listing
from suffice.errors.remedies import BY_DRAWS
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.design import configurations
from suffice.families.protocol.family import Array, Cpd
from suffice.graphs import Dag
from suffice.numerics.inference.finite.junction_tree import JunctionTree
from suffice.numerics.inference.finite.network import Network
from suffice.numerics.inference.numbers.gaussian import DensityNode, GaussianNode
from suffice.numerics.inference.numbers.hybrid import Hybrid
from suffice.statistics.counts import checked_cells, sizes


class NoFormula(ModelError):
    """The refusal of an integral, or of a sum without end: `fact` says which, observing `lacking` would make it known."""

    def __init__(self, fact: str, lacking: Sequence[str], way_out: str | None = None) -> None:
        self.fact, self.lacking = fact, tuple(lacking)
        self.way_out = way_out or f"observe {listing(lacking)}, or draw the answer with {BY_DRAWS}"
        super().__init__(f"{fact}; {self.way_out}")

    def __reduce__(self) -> tuple[object, ...]:
        return NoFormula, (self.fact, self.lacking, self.way_out)


def no_formula(cpd: Any, values: Mapping[str, float] | None = None) -> NoFormula:
    """The refusal of an integral over numbers that are not observed."""
    unknown = [p for p in cpd.real_parents if p not in (values or {})]
    about = f"an exact answer depends on {cpd.child.name!r}, a {words(cpd)}"
    if not unknown:
        return NoFormula(f"{about}, which is not observed: there is no formula for its distribution here", [cpd.child.name])
    s, are = ("s", "are") if len(unknown) > 1 else ("", "is")
    fact = f"{about} on the number{s} {listing(unknown)}, which {are} not observed: there is no formula for the integral"
    return NoFormula(fact, unknown)


@contextmanager
def advising(way_out: Callable[[NoFormula], str] | str) -> Iterator[None]:
    """Refusals within get another way out: one that helps with what was asked."""
    try:
        yield
    except NoFormula as refused:
        said = way_out if isinstance(way_out, str) else way_out(refused)
        raise NoFormula(refused.fact, refused.lacking, said) from None


def words(cpd: Any) -> str:
    """What kind of regression it is."""
    return str(cpd.family.words.partition(",")[0])


@dataclass(frozen=True, eq=False, repr=False)
class Density(Cpd):
    """ln p(child = what is observed | finite parents): the place of a regression in one question."""

    child: Variable
    parent_variables: tuple[Finite, ...]
    logs: Array

    def node(self, number: Mapping[str, int], real_number: Mapping[str, int]) -> DensityNode:
        return DensityNode.of(tuple(number[p] for p in self.parents), self.logs, np.ones(self.logs.shape))


def as_closed_form(cpd: Any) -> Any:
    """A distribution as a table, a conditional Gaussian or Poisson rates; open regressions are refused."""
    if cpd.is_open:
        raise no_formula(cpd)
    return cpd.closed_form()


def density(cpd: Cpd, values: Mapping[str, float]) -> Density:
    """ln p(the value of the child | finite parents), the numbers of the others being known as well."""
    finite = cpd.finite_parents
    checked_cells(finite, f"the configurations of the parents of {cpd.child.name!r}")
    return Density(cpd.child, finite, cpd.log_prob(configurations(finite, values)[0]).reshape(sizes(finite)))


def stand_in(cpd: Any, *, known: bool = True) -> Cpd:
    """What stands for a node that no answer depends on: a finite one is uniform, a number that is known has the density 1."""
    if isinstance(cpd.child, Finite):
        return Table(cpd.child, (), np.full(cpd.child.n_states, 1.0 / cpd.child.n_states))
    if known:
        return Density(cpd.child, (), np.zeros(()))
    return ConditionalGaussian(cpd.child, (), np.zeros(()), np.zeros(0), np.ones(()))


class Compiled:
    """The finite part of a network as a `Network` whose factor i is p(variable i | its parents), the rest as Gaussian nodes.
    `finite` and `reals` have the names in the order of their numbers (real nodes in topological order, counts among them); `open`
    are the regressions that have no place among these. `parents`, `children` and the topological `order` are those of the
    graph."""

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
