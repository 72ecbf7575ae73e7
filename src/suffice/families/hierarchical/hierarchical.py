"""Hierarchical priors of tables: the rows of a node are drawn around a mean, and the data says how far from it they lie.

    HierarchicalDirichlet   θ[u, ·] ~ Dirichlet(s m)             for every configuration u of the parents: one mean for a node
    PartialPooling          θ[u, g, ·] ~ Dirichlet(s m[u, ·])    for every group g: a mean for each configuration u of the others
                            (s, m) = argmax Σᵤ [ln p(N[u, ·, ·] | s, m[u, ·]) + Σₓ ln m[u, x] / K], as in `pool_rows`

Strength s and means m that are not given are chosen by maximum evidence (`pool_rows`), once, when the prior meets the graph, and
then held to be known (`empirical_bayes`); so the prior that a network keeps is an ordinary Dirichlet, which imagines s m in every
row. The groups of partial pooling are the states of a parent, or the places of a list of columns.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from suffice.basis.variables import Finite, Real, Variable
from suffice.errors import FitError, listing, note
from suffice.errors.remedies import BINS, PARTIAL, POOLED, SEPARATE, by_evidence
from suffice.families.hierarchical.random_effects import RandomEffects
from suffice.families.priors.empirical_bayes import LOWEST, checked_strength, common_strength, highest, pool_rows
from suffice.families.priors.priors import same_rows
from suffice.families.protocol.family import Array, Node, Prior, all_finite, in_order, prior_of
from suffice.statistics import Counts, Statistics
from suffice.statistics.counts import array_of, checked_cells, flat, n_configurations, sizes


@dataclass(frozen=True)
class HierarchicalDirichlet(Prior):
    """Partial pooling: each row of a table is shrunk towards the mean of its node's rows, as far as the rows are alike.

    `strength` is a number for all nodes or {node: number}, `mean` {node: probabilities of its states, or None: even}. What is
    not given the data chooses when the prior is bound to a graph: the values with the largest evidence, which the network keeps
    (`bn.prior`). Rows that are alike are pooled up to the weight of all rows, rows with one state each down to a strength of
    0.001; a note names such nodes. A node of which only one row holds data, as one without parents, has nothing to pool: there
    an even mean and the strength 1 are taken, as by `BDeu(1)`.

    The evidence of a graph is then a maximum over strength and mean, not an average: with a parent that says nothing it is
    larger than without one. So a search refuses this prior unless all is given. Not score equivalent.

    >>> from suffice import fit
    >>> rows = {"x": ["a"] * 10 + ["b"] * 2, "y": ["u"] * 9 + ["v"] + ["v"] * 2}
    >>> fit("x -> y", rows, prior=HierarchicalDirichlet(strength=4.0))["y"].probs.round(2)
    array([[0.81, 0.19],
           [0.4 , 0.6 ]])
    """

    word = "hierarchical"
    types = ("HierarchicalDirichlet",)
    after_colon = ("strength", float)

    strength: Mapping[str, float] | float | None = None
    mean: Mapping[str, Any] | None = None

    chooses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for s in self.strength.values() if isinstance(self.strength, Mapping) else [self.strength]:
            if s is not None:
                checked_strength(s)
        if self.mean is not None and not isinstance(self.mean, Mapping):
            raise FitError(f"the mean of HierarchicalDirichlet is given by node: {{'y': [0.2, 0.8]}}, not as {self.mean!r}")

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Node], statistics: Statistics) -> HierarchicalDirichlet:
        """The prior with a strength and a mean for each of these nodes, by the evidence of their counts."""
        self.refuse_unknown_nodes(variables, self.strength, self.mean)
        strengths: dict[str, float] = dict(self.strength) if isinstance(self.strength, Mapping) else {}
        means: dict[str, Any] = dict(self.mean or {})
        told: dict[tuple[bool, bool], list[str]] = defaultdict(list)
        for child, parents, seen in nodes:
            if all_finite(child, parents):
                table = rows_of(seen)
                mean = self._mean(child)
                found = pool_rows(table, self.of_node(self.strength, child.name), mean)
                even = len(table) < 2 if mean is None else self._is_even(child)
                strengths[child.name] = found.strength
                means[child.name] = None if even else dict(zip(finite(child, "").states, found.mean.tolist(), strict=True))
                if self.of_node(self.strength, child.name) is None and len(table) > 1:
                    told[found.strength >= highest(table), found.strength <= LOWEST] += [child.name]
        _tell(alike=told[True, False], apart=told[False, True])
        return replace(self, strength=strengths, mean=means)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Counts | None:
        if not all_finite(child, parents):
            return None
        s, m = self.of_node(self.strength, child.name), self._mean(child)
        if s is None or m is None:
            raise FitError(
                f"HierarchicalDirichlet takes the strength and the mean of {child.name!r} from complete rows and a graph: "
                f"{by_evidence('HierarchicalDirichlet()', 'them')}"
            )
        return same_rows(s * m, (*parents, child), seen)

    def _mean(self, child: Variable) -> Array | None:
        assert isinstance(child, Finite)
        if self._is_even(child):
            return np.full(child.n_states, 1.0 / child.n_states)
        given = (self.mean or {}).get(child.name)
        if given is None:
            return None
        mean = in_order(given, child, "the mean of HierarchicalDirichlet")
        if np.any(mean < 0.0) or abs(mean.sum() - 1.0) > 1e-6:
            raise FitError(f"the mean of HierarchicalDirichlet of {child.name!r} must be probabilities that sum to 1, not {mean}")
        return mean if abs(mean.sum() - 1.0) <= 1e-12 else np.asarray(mean / mean.sum())

    def _is_even(self, child: Variable) -> bool:
        return self.mean is not None and child.name in self.mean and self.mean[child.name] is None


def rows_of(seen: Counts) -> Array:
    """The rows of a table that hold data, whatever is the size of the table."""
    K = seen.variables[-1].n_states
    keys, values = seen.listed()
    rows, inverse = np.unique(keys // K, return_inverse=True)
    table = np.zeros((len(rows), K))
    table[inverse, keys % K] = values
    return table


def _tell(alike: Sequence[str], apart: Sequence[str]) -> None:
    if alike:
        note(
            f"the rows of {listing(alike)} are no less alike than chance makes them: they are pooled with the strength of "
            "all rows together, the most that HierarchicalDirichlet takes"
        )
    if apart:
        note(
            f"the rows of {listing(apart)} have a state each: they are not pooled (strength {LOWEST:g}, the least that "
            "HierarchicalDirichlet takes)"
        )


@dataclass(frozen=True)
class Pool:
    """What is pooled: the tables of nodes that correspond, each a family (child, *parents); `group` is the parent that makes
    groups of the rows of one table; without one the nodes themselves are the groups.
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
class PartialPooling(Prior):
    """The prior of pooled tables; `prior` speaks for all other nodes."""

    types = ("PartialPooling",)

    pools: tuple[Pool, ...]
    strength: float | None = None
    prior: Any = None
    found: Mapping[str, Common] = field(default_factory=dict)
    slopes: tuple[str, ...] = ()
    restricted: bool = False

    chooses: ClassVar[bool] = True

    @property
    def parts(self) -> Sequence[Any]:
        """Those of other nodes."""
        return () if self.prior is None else self.prior.parts

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
            if isinstance(child, Real) and pool.group is not None:
                continue  # a number has random effects, which are chosen with its lines
            if self.slopes:
                raise FitError(f"slopes are of numbers, and {child.name!r}, which is pooled in part, has none: leave them out")
            strength, mean = common(pool.counts(seen), self.strength)
            by = {p.name: finite(p, child.name) for p in parents}
            mean = mean.reshape(*sizes(by[p] for p in pool.others), mean.shape[-1])
            found |= dict.fromkeys(pool.nodes, Common(strength, mean, finite(child, "").states))
        pooled_nodes = {n for pool in self.pools for n in pool.nodes}
        left = [node for name, node in seen.items() if name not in pooled_nodes]
        prior = None if self.prior is None else self.prior.choose(variables, left, statistics)
        return replace(self, prior=prior, found=found)

    def to_dict(self) -> dict[str, Any]:
        common = {n: vars(c) | {"mean": flat(c.mean), "shape": c.mean.shape} for n, c in self.found.items()}
        pools = [{"families": pool.families, "group": pool.group} for pool in self.pools]
        prior = None if self.prior is None else self.prior.to_dict()
        return self._head() | {"pools": pools, "strength": self.strength, "prior": prior, "found": common}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Prior:
        pools = tuple(Pool(tuple(tuple(map(str, family)) for family in p["families"]), p["group"]) for p in d["pools"])
        found = {
            n: Common(float(c["strength"]), array_of(c["mean"]).reshape(c["shape"]), tuple(map(str, c["states"])))
            for n, c in d["found"].items()
        }
        return PartialPooling(pools, d["strength"], None if d["prior"] is None else prior_of(d["prior"]), found)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Any:
        """What it imagines of a pooled table, and what the other prior holds of any other node."""
        pools = [pool for pool in self.pools if child.name in pool.nodes]
        if not pools:
            return None if self.prior is None else self.prior.imagine(child, parents, seen)
        if isinstance(child, Real) and (group := pools[0].group) is not None:
            return RandomEffects(group, self.slopes, self.restricted)
        if child.name not in self.found:
            raise FitError(
                f"{PARTIAL} learns from complete rows how much {child.name!r} differs between groups, and these are not; use "
                f"{SEPARATE} or {POOLED}, or fill the missing cells in before"
            )
        pool, common = pools[0], self.found[child.name]
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
    """The strength of counts [u, g, x], for all u, and the mean [u, x] of each u."""
    strength = common_strength(counts) if strength is None else strength
    return strength, np.array([pool_rows(rows, strength).mean for rows in counts])


def finite(variable: Variable, child: str) -> Finite:
    """The variable, which must have states, as a child or as a parent of one."""
    if not isinstance(variable, Finite):
        of = f", a parent of {child!r}," if child and child != variable.name else ""
        raise FitError(
            f"{PARTIAL} pools tables, and {variable.name!r}{of} is a number: use {SEPARATE} or {POOLED}, or cut it {BINS}"
        )
    return variable
