"""Where EM starts in a network with numbers: from what the observed cells say, or from rows drawn at random.

Each configuration of a node is given the complete rows it has and one imagined row: in the middle of the data for the plain
start, at a drawn row for a random one. Nodes with hidden parents have no complete rows, so each state of a hidden class begins
at a row of its own, drawn far from those of the other states (as k-means++ draws them), with the variances of the whole data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.family import Cpd, Mean
from suffice.learning.gathered import Gathered
from suffice.learning.incomplete import Task
from suffice.learning.objective import normal_of
from suffice.learning.patterns import Array, Kind, Node
from suffice.learning.units import Units
from suffice.learning.weighted import Groups
from suffice.statistics import Counts
from suffice.statistics.chan import Spread
from suffice.statistics.configurations import n_configurations, projected, sizes
from suffice.variables import Finite

SAMPLE = 2048
"""Rows among which a random start draws."""


@dataclass(frozen=True, eq=False)
class Start:
    """Starts of one problem."""

    task: Task
    nodes: Mapping[str, Node]
    units: Units
    gathered: Gathered

    def first(self) -> dict[str, Cpd]:
        """Counts + 1, and regressions on complete rows and one row in the middle."""
        return {name: self._cpd(node, self._counts(node), self._middle(node)) for name, node in self.nodes.items()}

    def random(self, rng: np.random.Generator) -> dict[str, Cpd]:
        """Tables drawn around what is known of them, regressions on complete rows and one drawn row."""
        chosen: dict[tuple[str, ...], npt.NDArray[np.intp]] = {}
        result: dict[str, Cpd] = {}
        for name, node in self.nodes.items():
            hidden = tuple(v.name for v in node.finite if v.name in self.task.hidden)
            unseen = any(v.name in self.task.hidden for v in node.members)
            if node.iterative and unseen and hasattr(node.family, "random"):
                result[name] = node.family.random(node.child, node.parents, rng)
                continue
            if node.reals and hidden not in chosen:
                many = n_configurations(v for v in node.finite if v.name in hidden)
                chosen[hidden] = self._far_apart(many, rng)
            centres = self._at_rows(node, hidden, chosen[hidden], rng) if node.reals else np.zeros((0, 0))
            weights = self._around(node) if unseen else self._counts(node)
            result[name] = self._cpd(node, np.maximum(rng.standard_gamma(weights), 1e-12), centres)
        return result

    def filled(self, node: Node, cpd: Cpd) -> Cpd:
        """A distribution whose configurations without parameters start in the middle of the data."""
        if hasattr(cpd, "rates") and np.isnan(cpd.rates).any():
            return replace(cpd, rates=np.where(np.isnan(cpd.rates), self.units.mean[node.name], cpd.rates))  # type: ignore[type-var]
        if not isinstance(cpd, ConditionalGaussian) or node.kind is not Kind.NORMAL or not np.isnan(cpd.variance).any():
            return cpd
        lost = np.isnan(cpd.variance)
        b = np.where(lost[..., None], 0.0, cpd.coefficients)
        a, v = np.where(lost, self.units.mean[node.name], cpd.intercept), np.where(lost, self._variances(node)[-1], cpd.variance)
        return replace(cpd, intercept=a, coefficients=b, variance=v)

    def _cpd(self, node: Node, counts: Array, centres: Array) -> Cpd:
        """A distribution from counts, or from complete rows and one imagined row for each configuration."""
        if node.iterative:
            cpd: Cpd = node.family.start(node.child, node.parents)
            return cpd
        if not node.reals:
            return self._table(node, counts)
        groups = self._imagined(node, centres)
        if node.name in self.gathered.moments:
            groups = groups.plus(self.gathered.moments[node.name].only(list(range(len(node.reals)))))
        if node.kind is Kind.NORMAL:
            q = sizes(node.finite)
            blank = ConditionalGaussian(node.child, node.parents, np.zeros(q), np.zeros((*q, len(node.reals) - 1)), np.ones(q))
            return normal_of(node, groups, blank, None, Mean(), 0.0)
        moments = self.units.outward_moments(node.finite, node.reals, groups, [r for r in node.reals if self.units.counts(r)])
        other: Cpd = node.family.estimate(node.child, node.parents, moments, None, Mean())
        return other

    def _table(self, node: Node, counts: Array) -> Cpd:
        if node.kind is not Kind.TABLE:
            seen = Counts(node.finite, counts.reshape(sizes(node.finite)))
            cpd: Cpd = node.family.estimate(node.child, node.parents, seen, None, Mean())
            return cpd
        rows = counts.reshape(sizes(node.finite))
        parents = tuple(p for p in node.parents if isinstance(p, Finite))
        assert isinstance(node.child, Finite)
        return Table(node.child, parents, rows / rows.sum(axis=-1, keepdims=True))

    def _counts(self, node: Node) -> Array:
        return self.gathered.tables.get(node.name, np.zeros(node.n_cells)) + 1.0 if not node.reals else np.zeros(0)

    def _around(self, node: Node) -> Array:
        """Weights to draw a table with hidden variables by: around the states that the child shows."""
        if node.reals or not isinstance(node.child, Finite):
            return np.zeros(0)
        own = np.ones(node.child.n_states)
        if node.name in self._sample:
            codes = self._sample[node.name]
            own += np.bincount(codes[codes < len(own)], minlength=len(own))
        return np.tile(0.5 + len(own) * own / own.sum(), node.n_cells // len(own))

    def _imagined(self, node: Node, centres: Array) -> Groups:
        """One row for each configuration, at these centres, with the variances of the whole columns and no correlation."""
        q, k = node.n_cells, len(node.reals)
        scatter = np.tile(np.diag(self._variances(node)), (q, 1, 1))
        where = np.broadcast_to(centres, (q, k)) if len(centres) == 1 else centres
        return Groups(np.arange(q), Spread(np.ones(q), np.array(where), np.zeros((q, k)), scatter))

    def _variances(self, node: Node) -> list[float]:
        return [self.units.variance[r] or 1.0 for r in node.reals]

    def _middle(self, node: Node) -> Array:
        return np.array([[self.units.mean[r] for r in node.reals]])

    def _at_rows(self, node: Node, hidden: tuple[str, ...], chosen: Any, rng: np.random.Generator) -> Array:
        """The numbers of a node in the row chosen for each of its configurations; a missing one is drawn."""
        rows = chosen[projected(np.arange(node.n_cells), node.finite, hidden)]
        columns = []
        for name, variance in zip(node.reals, self._variances(node), strict=True):
            values, mean = self._sample[name][rows], self.units.mean[name]
            if self.units.counts(name):
                # half way to the mean: a rate of zero would stay zero
                columns.append(np.where(np.isnan(values), rng.uniform(0.5, 1.5) * mean, 0.5 * (values + mean)))
                continue
            drawn = mean + np.sqrt(variance) * rng.standard_normal(len(chosen))
            spare = drawn[projected(np.arange(node.n_cells), node.finite, hidden)]
            columns.append(np.where(np.isnan(values), spare, values))
        return np.array(columns).T

    def _far_apart(self, n: int, rng: np.random.Generator) -> npt.NDArray[np.intp]:
        """Rows of the sample: the first at random, each next with a probability in proportion to its squared distance from
        the nearest one before (Arthur & Vassilvitskii 2007, SODA, p. 1029)."""
        names = [r for r in self.units.variance if r in self._sample]
        x = np.array([(self._sample[r] - self.units.mean[r]) / np.sqrt(self.units.variance[r] or 1.0) for r in names])
        x = np.nan_to_num(x)
        chosen = [int(rng.integers(x.shape[1]))]
        nearest = np.full(x.shape[1], np.inf)
        while len(chosen) < n:
            nearest = np.minimum(nearest, ((x - x[:, chosen[-1]][:, None]) ** 2).sum(axis=0))
            p = nearest / nearest.sum() if nearest.sum() > 0 else None
            chosen.append(int(rng.choice(x.shape[1], p=p)))
        return np.array(chosen)

    @cached_property
    def _sample(self) -> dict[str, npt.NDArray[Any]]:
        """Some rows of the data, the same for every start: codes, and numbers in their units."""
        rows = self.task.rows
        picked = np.sort(np.random.default_rng(0).permutation(rows.n_rows)[:SAMPLE])
        few = rows.pick(picked)
        names = {n: few.column(n) for n in rows.columns}
        return {n: self.units.inward(n, c) if n in self.units.variance else c for n, c in names.items()}
