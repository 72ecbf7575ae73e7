"""Where iterations start: from what the observed cells say, from rows drawn at random, or from a network.

Tables begin at the counts of complete rows and one row more in each cell, or are drawn around them. Each configuration of another
node is given the complete rows it has and one imagined row: in the middle of the data for the plain start, at a drawn row for a
random one. Nodes with hidden parents have no complete rows, so each state of a hidden class begins at a row of its own, drawn far
from those of the other states (as k-means++ draws them), with the variances of the whole data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.gather import Groups
from suffice.errors import listed, note
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.family import Cpd, Mean
from suffice.incomplete.components import Theta
from suffice.incomplete.nodes import NodeFamily
from suffice.incomplete.tables import Array
from suffice.incomplete.units import Units
from suffice.learning.objective import normal_of
from suffice.learning.problem import ParameterProblem
from suffice.learning.symmetry import alike, broken
from suffice.models.bayes_net import BayesNet
from suffice.statistics.chan import Spread
from suffice.statistics.configurations import n_configurations, projected, sizes

SAMPLE = 2048
"""Rows among which a random start draws."""


def beginnings(problem: ParameterProblem, start: BayesNet | None, n: int, seed: int) -> Iterator[Theta]:
    """Where to start from: the network given, or what the data suggests, or at random; states that are alike are moved apart."""
    generators = [np.random.default_rng(s) for s in np.random.SeedSequence(seed).spawn(n)]
    for i, rng in enumerate(generators):
        if i == 0 and start is not None:
            theta = problem.parameters({name: start[name] for name in start})
        elif i == 0 and not problem.hidden:
            theta = problem.first()
        else:
            theta = problem.random(rng)
        yield _told_apart(problem, theta, rng)


def _told_apart(problem: ParameterProblem, theta: Theta, rng: np.random.Generator) -> Theta:
    """The same parameters, unless states of a hidden variable are alike there: EM would never tell them apart."""
    if not problem.hidden:
        return theta
    cpds = problem.cpds(theta)
    moved = cpds
    for name in problem.hidden:
        pairs = alike(problem.dag, problem.variables, name, cpds)
        if pairs:
            states = list(dict.fromkeys(s for pair in pairs for s in pair))
            note(
                f"at the start the states {listed(states)} of the hidden variable {name!r} say the same about its children, and "
                "EM would never tell them apart: the start was moved a little, at random"
            )
            moved = broken(problem.dag, name, moved, rng)
    return theta if moved is cpds else problem.parameters(moved)


@dataclass(frozen=True, eq=False)
class Starts:
    """Starts of one problem."""

    problem: ParameterProblem

    def first(self) -> Theta:
        """Counts + 1, and regressions on complete rows and one row in the middle."""
        return self._theta(self._weights, {node.name: self._cpd(node, self._middle(node)) for node in self._others})

    def random(self, rng: np.random.Generator) -> Theta:
        """Tables drawn around what is known of them, regressions on complete rows and one drawn row."""
        weights = self._weights
        for node in self.problem.nodes.values():
            if node.by_table and self._hidden(node):
                # around the states that the child shows
                own = self.problem.components.shown.states.get(node.name, np.zeros(node.finite[-1].n_states)) + 1.0
                own = np.ones_like(own) if node.name in self.problem.hidden else own
                weights[self.problem.tables.cells(node.name)] = np.tile(
                    0.5 + len(own) * own / own.sum(), node.n_cells // len(own)
                )
        cells = np.maximum(rng.standard_gamma(weights), 1e-12)
        chosen: dict[tuple[str, ...], npt.NDArray[np.intp]] = {}
        others: dict[str, Cpd] = {}
        for node in self._others:
            if node.iterative and self._hidden(node) and hasattr(node.family, "random"):
                others[node.name] = node.family.random(node.child, node.parents, rng)
                continue
            hidden = tuple(v.name for v in node.finite if v.name in self.problem.hidden)
            if node.reals and hidden not in chosen:
                chosen[hidden] = self._far_apart(n_configurations(v for v in node.finite if v.name in hidden), rng)
            others[node.name] = self._cpd(node, self._at_rows(node, hidden, chosen.get(hidden), rng))
        return self._theta(cells, others)

    def _theta(self, weights: Array, others: dict[str, Cpd]) -> Theta:
        tables = self.problem.tables
        return Theta(tables, tables.normalised(weights), others)

    @property
    def _weights(self) -> Array:
        return self.problem.components.shown.counts + self.problem.alpha + 1.0

    @property
    def _others(self) -> list[NodeFamily]:
        return [node for node in self.problem.nodes.values() if not node.by_table]

    @property
    def units(self) -> Units:
        return self.problem.units

    def _hidden(self, node: NodeFamily) -> bool:
        return any(v.name in self.problem.hidden for v in node.members)

    def filled(self, node: NodeFamily, cpd: Cpd) -> Cpd:
        """A distribution whose configurations without parameters start in the middle of the data."""
        if hasattr(cpd, "rates") and np.isnan(cpd.rates).any():
            return replace(cpd, rates=np.where(np.isnan(cpd.rates), self.units.mean[node.name], cpd.rates))  # type: ignore[type-var]
        if not isinstance(cpd, ConditionalGaussian) or not node.normal or not np.isnan(cpd.variance).any():
            return cpd
        lost = np.isnan(cpd.variance)
        b = np.where(lost[..., None], 0.0, cpd.coefficients)
        a, v = np.where(lost, self.units.mean[node.name], cpd.intercept), np.where(lost, self._variances(node)[-1], cpd.variance)
        return replace(cpd, intercept=a, coefficients=b, variance=v)

    def _cpd(self, node: NodeFamily, centres: Array) -> Cpd:
        """A distribution from complete rows and one imagined row for each configuration."""
        if node.iterative:
            cpd: Cpd = node.family.start(node.child, node.parents)
            return cpd
        groups = self._imagined(node, centres)
        if (seen := self.problem.components.shown.moments.get(node.name)) is not None:
            groups += replace(seen, log_base=np.zeros((len(seen.keys), 0)))
        if node.normal:
            q = sizes(node.finite)
            blank = ConditionalGaussian(node.child, node.parents, np.zeros(q), np.zeros((*q, len(node.reals) - 1)), np.ones(q))
            return normal_of(node, groups, blank, None, Mean(), 0.0)
        moments = self.problem.units.outward_moments(node.finite, node.reals, groups)
        other: Cpd = node.family.estimate(node.child, node.parents, moments, None, Mean())
        return other

    def _imagined(self, node: NodeFamily, centres: Array) -> Groups:
        """One row for each configuration, at these centres, with the variances of the whole columns and no correlation."""
        q, k = node.n_cells, len(node.reals)
        scatter = np.tile(np.diag(self._variances(node)), (q, 1, 1))
        where = np.broadcast_to(centres, (q, k)) if len(centres) == 1 else centres
        return Groups(np.arange(q), Spread(np.ones(q), np.array(where), np.zeros((q, k)), scatter), np.zeros((q, 0)))

    def _variances(self, node: NodeFamily) -> list[float]:
        return [self.units.variance[r] or 1.0 for r in node.reals]

    def _middle(self, node: NodeFamily) -> Array:
        return np.array([[self.units.mean[r] for r in node.reals]])

    def _at_rows(self, node: NodeFamily, hidden: tuple[str, ...], chosen: Any, rng: np.random.Generator) -> Array:
        """The numbers of a node in the row chosen for each of its configurations; a missing one is drawn."""
        if not node.reals:
            return np.zeros((0, 0))
        rows = chosen[projected(np.arange(node.n_cells), node.finite, hidden)]
        columns = []
        for name, variance in zip(node.reals, self._variances(node), strict=True):
            values, mean = self._sample[name][rows], self.units.mean[name]
            if name in self.units.counted:
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
        units, few = self.units, self.problem.task.rows.sample(SAMPLE, 0)
        return {n: units.inward(n, c) if n in units.variance else c for n, c in few.columns.items()}
