"""Where iterations start: from what the observed cells say, from rows drawn at random, or from a network.

Tables begin at the counts of complete rows and one row more in each cell, or are drawn around them. Each configuration of another
node is given the complete rows it has and one imagined row: in the middle of the data for the plain start, at a drawn row for a
random one. Nodes with hidden parents have no complete rows, so each state of a hidden class begins at a row of its own, drawn far
from those of the other states (as k-means++ draws them), with the variances of the whole data.

Of hidden variables: states that cannot be told apart at a start, states that lost all rows, labels that changed places.

Lines of hidden numbers begin with coefficients that are not 0, where EM would rest; those of a hidden number on hidden ones have
sizes that add up to less than 1, so that nothing grows along a sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array
from suffice.basis.variables import Finite, Variable
from suffice.engines.gather import Groups
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.design import Summary, terms
from suffice.families.protocol.family import Cpd, Mean
from suffice.graphs import Dag
from suffice.incomplete.components import NodeFamily, Theta
from suffice.incomplete.numbers.units import Units
from suffice.learning.incomplete.hidden_numbers import Conventions
from suffice.learning.incomplete.objective import common_line_of, normal_of
from suffice.learning.incomplete.reduced_task import ReducedTask
from suffice.statistics.counts import n_configurations, project_keys, sizes
from suffice.statistics.moments import Spread

SAMPLE = 2048
"""Rows among which a random start draws."""
ALIKE = 1e-9
"""Numbers that differ by a smaller share of them are the same, for this."""
FEW = 0.5
"""A hidden state that expects fewer rows than this has collapsed."""
FEW_STATES = 5
"""Up to so many states all ways to pair them are compared; loading an algorithm for more takes as long as a small EM."""


@dataclass(frozen=True, eq=False)
class Starts:
    """Starts of one problem."""

    problem: ReducedTask
    conventions: Conventions

    def first(self) -> Theta:
        """Counts + 1, and regressions on complete rows and one row in the middle."""
        middle = {node: np.array([[self.problem.units.mean[r] for r in node.reals]]) for node in self.problem.others}
        others = {node.name: self._cpd(node, centre) for node, centre in middle.items()}
        return self.problem.theta_of(self.problem.components.shown.counts + self.problem.imagined_cells.alpha + 1.0, others)

    def random(self, rng: np.random.Generator) -> Theta:
        """Tables drawn around what is known of them, regressions on complete rows and one drawn row."""
        problem, shown, unseen = self.problem, self.problem.components.shown, self.problem.hidden_names
        weights = shown.counts + problem.imagined_cells.alpha + 1.0
        speaks_of_hidden = {n for n, node in problem.nodes.items() if any(v.name in unseen for v in node.members)}
        for node in (problem.nodes[n] for n in problem.tables.cells if n in speaks_of_hidden):
            # around the states that the child shows
            own = shown.states.get(node.name, np.zeros(node.finite[-1].n_states)) + 1.0
            own = np.ones_like(own) if node.name in unseen else own
            weights[problem.tables.cells[node.name]].reshape(-1, len(own))[:] = 0.5 + len(own) * own / own.sum()
        cells = np.maximum(rng.standard_gamma(weights), 1e-12)
        chosen: dict[tuple[str, ...], Any] = {}
        others: dict[str, Cpd] = {}
        for node in problem.others:
            if node.iterative and node.name in speaks_of_hidden:
                others[node.name] = node.family.random(node.child, node.parents, rng, self._observed_summary(node))
                continue
            hidden = tuple(v.name for v in node.finite if v.name in unseen)
            if node.normal and any(r in unseen for r in node.reals):
                line = drawn_line(node, unseen, problem.base, problem.units, rng)
                if not hidden or node.name not in self.conventions.below:
                    others[node.name] = line
                    continue
            else:
                line = None
            if node.reals and hidden not in chosen:
                units, n = self.problem.units, n_configurations(v for v in node.finite if v.name in hidden)
                names = [r for r in units.variance if r in self._sample]
                x = np.array([(self._sample[r] - units.mean[r]) / np.sqrt(units.variance[r] or 1.0) for r in names])
                chosen[hidden] = np.array(far_apart(np.nan_to_num(x.T), None, n, int(rng.integers(x.shape[1])), rng))
            if line is not None:  # each class begins at a row of its own, as without hidden numbers
                values = self._sample[node.name][chosen[hidden][project_keys(np.arange(node.n_cells), node.finite, hidden)]]
                at = values.reshape(line.intercept.shape)
                others[node.name] = replace(line, intercept=np.where(np.isnan(at), line.intercept, at))
                continue
            others[node.name] = self._cpd(node, self._at_rows(node, hidden, chosen.get(hidden), rng))
        return problem.theta_of(cells, others)

    def fill_empty(self, node: NodeFamily, cpd: Cpd) -> Cpd:
        """A distribution whose configurations without parameters start in the middle of the data."""
        return cpd.fill_empty(self.problem.units.mean[node.name], self._variances(node)[-1]) if cpd.undefined.any() else cpd

    def _cpd(self, node: NodeFamily, centres: Array) -> Cpd:
        """A distribution from complete rows and one imagined row for each configuration."""
        if node.iterative:
            cpd: Cpd = node.family.start(node.child, node.parents, self._observed_summary(node))
            return cpd
        # one row for each configuration, at these centres, with the variances of the whole columns and no correlation
        n, k = node.n_cells, len(node.reals)
        scatter = np.tile(np.diag(self._variances(node)), (n, 1, 1))
        where = np.array(np.broadcast_to(centres, (n, k)) if len(centres) == 1 else centres)
        groups = Groups(np.arange(n), Spread(np.ones(n), where, np.zeros((n, k)), scatter), np.zeros((n, 0)))
        if (seen := self.problem.components.shown.moments.get(node.name)) is not None:
            groups += replace(seen, sums=np.zeros((len(seen.keys), 0)))
        if node.normal:
            q = sizes(node.finite)
            blank = ConditionalGaussian(node.child, node.parents, np.zeros(q), np.zeros((*q, len(node.reals) - 1)), np.ones(q))
            if node.regression:
                return common_line_of(node, groups, blank, self.problem.offset_slopes(node), 0.0)
            return normal_of(node, groups, blank, None, Mean(), 0.0)
        moments = self.problem.units.outward_moments(node.finite, node.reals, groups)
        other: Cpd = node.family.from_moments(node.child, node.parents, moments)
        return other

    def _observed_summary(self, node: NodeFamily) -> Summary:
        """What observed cells say of a regression: means of its columns, and its child's states, one row more of each."""
        own: Any = node.family
        mean = {n: float(self.problem.units.outward(n, np.array(m))) for n, m in self.problem.units.mean.items()}
        given = terms(node.parents, own.roles)
        columns = [mean[v.name] if number else 0.0 for v, number in zip(given.of, given.numbers, strict=True)]
        if isinstance(node.child, Finite):
            shown = self.problem.components.shown.states.get(node.name, np.zeros(node.child.n_states)) + 1.0
            child = shown / shown.sum()
        else:
            child = np.array([mean[node.name]])
        return Summary(1.0, np.array(columns), child, mean.get(own.offset, 0.0), mean.get(own.trials, 1.0), 0.0)

    def _variances(self, node: NodeFamily) -> list[float]:
        return [self.problem.units.variance[r] or 1.0 for r in node.reals]

    def _at_rows(self, node: NodeFamily, hidden: tuple[str, ...], chosen: Any, rng: np.random.Generator) -> Array:
        """The numbers of a node in the row chosen for each of its configurations; a missing one is drawn."""
        if not node.reals:
            return np.zeros((0, 0))
        rows = chosen[project_keys(np.arange(node.n_cells), node.finite, hidden)]
        columns = []
        for name, variance in zip(node.reals, self._variances(node), strict=True):
            values, mean = self._sample[name][rows], self.problem.units.mean[name]
            if name in self.problem.units.not_normal:
                # half way to the mean: a rate of zero would stay zero
                columns.append(np.where(np.isnan(values), rng.uniform(0.5, 1.5) * mean, 0.5 * (values + mean)))
                continue
            drawn = mean + np.sqrt(variance) * rng.standard_normal(len(chosen))
            spare = drawn[project_keys(np.arange(node.n_cells), node.finite, hidden)]
            columns.append(np.where(np.isnan(values), spare, values))
        return np.array(columns).T

    @cached_property
    def _sample(self) -> dict[str, npt.NDArray[Any]]:
        """Some rows of the data, the same for every start: codes, and numbers in their units."""
        units, few = self.problem.units, self.problem.rows.sample(SAMPLE, 0)
        return {n: units.inward(n, c) if n in units.variance else c for n, c in few.columns.items()}


def far_apart(points: Array, weight: Array | None, n: int, first: int, rng: np.random.Generator) -> list[int]:
    """Numbers of n points: after the first each with a probability in proportion to its squared distance from the nearest one
    before (Arthur & Vassilvitskii 2007, SODA, p. 1029), times its weight."""
    chosen, nearest = [first], np.full(len(points), np.inf)
    while len(chosen) < n:
        nearest = np.minimum(nearest, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
        odds = nearest if weight is None else weight * nearest
        odds = odds if odds.sum() > 0.0 else weight  # fewer distinct points than are asked for
        chosen.append(int(rng.choice(len(points), p=None if odds is None else odds / odds.sum())))
    return chosen


def indistinguishable_states(
    dag: Dag, variables: Mapping[str, Variable], hidden: str, cpds: Mapping[str, Cpd]
) -> list[tuple[str, str]]:
    """Pairs of states of a hidden variable that give every child the same distribution: no iteration tells them apart."""
    variable = variables[hidden]
    assert isinstance(variable, Finite)
    profile = profiles(dag, hidden, cpds)
    if profile is None:
        return []
    pairs = combinations(range(variable.n_states), 2)
    size = np.abs(profile)
    return [
        (variable.states[i], variable.states[j])
        for i, j in pairs
        if (np.abs(profile[i] - profile[j]) <= ALIKE * np.maximum(size[i], size[j])).all()
    ]


def profiles(dag: Dag, hidden: str, cpds: Mapping[str, Cpd]) -> Array | None:
    """What each state of a hidden variable says about its children, one line of numbers a state; None without children."""
    parts = []
    for child in dag.children(hidden):
        parts += [numbers.reshape(len(numbers), -1) for numbers in cpds[child].by_states(hidden)]
    return np.concatenate(parts, axis=1) if parts else None


def nearest_pairs(distance: Array) -> Array:
    """The column of each row so that the distances of all pairs add up to least."""
    k = len(distance)
    if k <= FEW_STATES:
        return np.array(min(permutations(range(k)), key=lambda columns: distance[range(k), columns].sum()))
    from scipy.optimize import linear_sum_assignment

    return np.asarray(linear_sum_assignment(distance)[1])


NEAR_ONE = 0.95
"""The coefficients of hidden parents, in size, add up to at most this at a start."""


def drawn_line(
    node: NodeFamily, hidden: Collection[str], base: Callable[[str], str], units: Units, rng: np.random.Generator
) -> ConditionalGaussian:
    """A line of a node that speaks of hidden numbers, drawn: they tend to stay as they were, and show in their children."""
    shape, parents = sizes(node.finite), node.reals[:-1]
    own, b = [r for r in parents if base(r) == base(node.name)], np.zeros((*shape, len(parents)))
    first = next((r for r in parents if r in hidden), None)
    for j, parent in enumerate(parents):
        if parent in own:
            b[..., j] = rng.uniform(0.3, NEAR_ONE, shape) / len(own)
        elif parent not in hidden or node.name in hidden:
            b[..., j] = (0.3 if parent in hidden else 0.1) * rng.standard_normal(shape)
        else:
            size = rng.uniform(0.5, 1.5, shape)
            b[..., j] = size if parent == first else size * rng.choice([-1.0, 1.0], shape)
    if node.name in hidden and len(parents):
        inner = np.abs(b[..., [i for i, r in enumerate(parents) if r in hidden]]).sum(axis=-1, keepdims=True)
        b = b * np.minimum(1.0, NEAR_ONE / np.maximum(inner, 1e-300))
    v = (units.variance[node.name] or 1.0) * rng.uniform(0.1, 0.9, shape)
    a = units.mean[node.name] + 0.1 * np.sqrt(v) * rng.standard_normal(shape)
    return ConditionalGaussian(node.child, node.parents, a, b, v)
