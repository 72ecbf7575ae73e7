"""Partial pooling over groups: the rows of a table that differ only in the group are drawn around a mean of their own.

    prior     θ[u, g, ·] ~ Dirichlet(s m[u, ·]), independent over groups g: a mean for each configuration u of the other parents
    chosen    argmax over s and m of Σᵤ [ln p(N[u, ·, ·] | s, m[u, ·]) + Σₓ ln m[u, x] / K], the objective of `pooling.py`

The groups are the states of a parent, or the places of a list of columns. Strength and means are chosen once, when the prior
meets the graph, and then held to be known (empirical Bayes): intervals are those of a Dirichlet prior s m.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError
from suffice.families.empirical_bayes import Node, believed, chosen
from suffice.families.pooling import common_strength, pooled
from suffice.families.priors import imagined
from suffice.statistics import Counts, Statistics
from suffice.statistics.configurations import checked_cells, n_configurations, sizes
from suffice.variables import Finite, Variable

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Pool:
    """What is pooled: the tables of nodes that correspond, each a family (child, *parents); `group` is the parent that makes
    groups of the rows of one table; without one the nodes themselves are the groups.

    >>> Pool((("outcome", "treatment", "hospital"),), "hospital").others
    ('treatment',)
    """

    families: tuple[tuple[str, ...], ...]
    group: str | None = None

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(family[0] for family in self.families)

    @property
    def others(self) -> tuple[str, ...]:
        """The parents of the first node that make no groups."""
        return tuple(p for p in self.families[0][1:] if p != self.group)

    def counts(self, seen: Mapping[str, Node]) -> Array:
        """N[u, g, x], the configurations of the other parents as one axis."""
        tables = []
        for child, *parents in self.families:
            variables = {v.name: finite(v, child) for v in (*seen[child][1], seen[child][0])}
            others = [p for p in parents if p != self.group]
            scope = [*others, *((self.group,) if self.group else ()), child]
            checked_cells(list(variables.values()), f"the table of {child!r}")
            table = seen[child][2].marginal(scope).dense()
            tables.append(table.reshape(n_configurations(variables[p] for p in others), -1, variables[child].n_states))
        return np.concatenate(tables, axis=1)


@dataclass(frozen=True, eq=False)
class Common:
    """The Dirichlet that the rows of a pool are drawn from: its strength, and a mean for each configuration, child last."""

    strength: float
    mean: Array
    states: tuple[str, ...]


@dataclass(frozen=True)
class PartialPooling:
    """The prior of pooled tables; `prior` speaks for all other nodes.

    >>> hospital, ill = Finite("hospital", ["a", "b", "c"]), Finite("ill", ["no", "yes"])
    >>> seen = Counts((hospital, ill), [[18, 2], [10, 10], [2, 0]])
    >>> prior = PartialPooling((Pool((("ill", "hospital"),), "hospital"),), strength=10.0)
    >>> prior.choose({}, [(ill, [hospital], seen)], Statistics([seen], 42)).imagine(ill, [hospital]).dense().round(1)
    array([[7.3, 2.7],
           [7.3, 2.7],
           [7.3, 2.7]])
    """

    pools: tuple[Pool, ...]
    strength: float | None = None
    prior: Any = None
    found: Mapping[str, Common] = field(default_factory=dict)

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> PartialPooling:
        return self if self.prior is None else replace(self, prior=self.prior.bind(variables, statistics))

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Node], statistics: Statistics) -> PartialPooling:
        """Strength and means by the evidence of these nodes, and what the other prior chooses by those that are not pooled."""
        seen = {node[0].name: node for node in nodes}
        found: dict[str, Common] = {}
        for pool in self.pools:
            if not set(pool.nodes) <= set(seen):  # tied to another, of which the prior is asked
                continue
            child, parents, _ = seen[pool.nodes[0]]
            strength, mean = common(pool.counts(seen), self.strength)
            by = {p.name: finite(p, child.name) for p in parents}
            mean = mean.reshape(*sizes(by[p] for p in pool.others), mean.shape[-1])
            found |= dict.fromkeys(pool.nodes, Common(strength, mean, finite(child, "").states))
        pooled_nodes = {n for pool in self.pools for n in pool.nodes}
        left = [node for name, node in seen.items() if name not in pooled_nodes]
        prior = None if self.prior is None else chosen(self.prior, variables, left, statistics)
        return replace(self, prior=prior, found=found)

    def believe(self, child: Variable, parents: Sequence[Variable]) -> Any:
        """What it imagines of a pooled table, and what the other prior holds of any other node."""
        pools = [pool for pool in self.pools if child.name in pool.nodes]
        if not pools:
            return None if self.prior is None else believed(self.prior, child, parents)
        if child.name not in self.found:
            raise FitError(
                f"Partial() learns from complete rows how much {child.name!r} differs between groups, and these are not; use "
                "Separate() or Tied(), or fill the missing cells in before"
            )
        return self._imagined(pools[0], child, parents)

    imagine = believe

    def imagine_where(self, child: Variable, parents: Sequence[Variable], seen: Any) -> Any:
        """The same, where the other prior looks at the data."""
        if self.prior is None or any(child.name in pool.nodes for pool in self.pools):
            return self.believe(child, parents)
        return imagined(self.prior, child, parents, seen)

    def _imagined(self, pool: Pool, child: Variable, parents: Sequence[Variable]) -> Counts:
        common = self.found[child.name]
        by = {v.name: finite(v, child.name) for v in (*parents, child)}
        others = [p for p in pool.families[pool.nodes.index(child.name)][1:] if p != pool.group]
        if by[child.name].states != common.states or sizes(by[p] for p in others) != common.mean.shape[:-1]:
            raise FitError(
                f"{child.name!r} or a parent of it has states that were not known when the common mean of its groups was "
                "learned: fit all rows together anew, or declare the states before"
            )
        alpha = common.strength * common.mean
        if pool.group is None:
            return Counts(tuple(by[n] for n in (*others, child.name)), alpha).marginal(list(by))
        scope = tuple(by[n] for n in (*others, pool.group, child.name))
        return Counts(scope, np.repeat(alpha[..., None, :], by[pool.group].n_states, axis=-2)).marginal(list(by))


def common(counts: Array, strength: float | None = None) -> tuple[float, Array]:
    """The strength of counts [u, g, x], for all u, and the mean [u, x] of each u.

    >>> s, m = common(np.array([[[8.0, 2.0], [3.0, 7.0], [6.0, 4.0], [1.0, 9.0]]]), strength=4.0)
    >>> s, m.round(2)
    (4.0, array([[0.45, 0.55]]))
    """
    strength = common_strength(counts) if strength is None else strength
    return strength, np.array([pooled(rows, strength).mean for rows in counts])


def finite(variable: Variable, child: str) -> Finite:
    """The variable, which must have states, as a child or as a parent of one."""
    if not isinstance(variable, Finite):
        of = f", a parent of {child!r}," if child and child != variable.name else ""
        raise FitError(
            f"Partial() pools tables, and {variable.name!r}{of} is a number: use Separate() or Tied(), or cut it into Bins"
        )
    return variable
