"""Hidden numbers in EM: their scale, place, sign and rotation, which no data can tell, are brought to a convention.

    h ~ Normal(m, s²), y | h ~ a + b h     is, for y, the same as     h' = (h − m)/s ~ Normal(0, 1), y | h' ~ (a + b m) + (b s) h'

An M-step fits a hidden number like any other; then it is moved to mean 0 and variance 1 over the rows. That changes no
likelihood, and is faster than holding it there: parameter-expanded EM (Liu, Rubin & Wu 1998, Biometrika 85, p. 755). Where a
prior speaks of its children the likelihood is not all that counts: then a hidden number without parents stays at Normal(0, 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.basis.variables import Real, Variable
from suffice.engines.gather import Groups
from suffice.errors import FitError, listing
from suffice.graphs import Dag
from suffice.incomplete.components import NodeFamily, Theta
from suffice.learning.incomplete.reduced_task import ReducedTask
from suffice.models.parts.parameter_covariance import rotations

FLOOR = 1e-6
"""The least variance of a node with hidden numbers, as a share of the column's own: a maximum at zero (a Heywood case) is not
waited for, since EM needs ever longer for ever less."""

Lines = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Conventions:
    """The hidden numbers of a graph, parents first, and how each is treated.

    loose       moved to mean 0 and variance 1 after every M-step
    still       without parents, and kept at Normal(0, 1), since a prior speaks of it or its children
    rotations   sets of loose numbers that only a rotation tells apart

    What is neither has its scale from fixed or shared distributions, or, with parents, from the prior.
    """

    nodes: Mapping[str, NodeFamily]
    children: Mapping[str, tuple[str, ...]]
    """In the order of the variables, observed ones first."""
    names: tuple[str, ...]
    loose: tuple[str, ...]
    still: tuple[str, ...]
    rotations: tuple[tuple[str, ...], ...]
    states: frozenset[str]
    """The hidden variables that are no numbers."""

    @staticmethod
    def of(problem: ReducedTask, names: tuple[str, ...]) -> Conventions:
        """Those of a problem; `names` are its hidden numbers."""
        dag, observed_first = problem.dag, sorted(problem.variables, key=lambda n: n in problem.hidden)
        children = {n: tuple(c for c in observed_first if c in dag.children(n)) for n in names}
        said = {n for n in names if any(problem.imagined[c] is not None for c in (n, *children[n]))}
        # the scale of some is in distributions that are fixed, or shared with nodes of other hidden numbers
        known, columns = {*problem.fixed, *problem.entries}, [set(column) for tie in problem.ties for column in tie.columns]
        bound = {n for n in names if known & {n, *children[n]} or any(n in column and column != {n} for column in columns)}
        loose = tuple(n for n in names if n not in said and n not in bound)
        roots = {n for n in names if not dag.parents(n)}
        still = tuple(n for n in names if n in said and n in roots and n not in bound)
        turned = [g for g in rotations(dag, problem.variables, names) if set(g) <= set(loose)]
        states = frozenset(problem.hidden) - set(names)
        return Conventions(problem.nodes, children, names, loose, still, tuple(turned), states)

    @cached_property
    def fixed(self) -> tuple[str, ...]:
        """The hidden numbers at Normal(0, 1): there is nothing to learn of their own distributions."""
        return tuple(n for n in (*self.loose, *self.still) if not self.nodes[n].parents)

    @cached_property
    def below(self) -> frozenset[str]:
        """The observed children of hidden numbers."""
        return frozenset(c for n in self.names for c in self.children[n]) - set(self.names)

    @property
    def by_convention(self) -> tuple[str, ...]:
        """Those with mean 0 and variance 1."""
        return tuple(n for n in self.names if n in self.loose or n in self.still)

    @cached_property
    def with_parents(self) -> tuple[str, ...]:
        """Those with parents, whose intercept and variance follow from the others."""
        return tuple(n for n in self.loose if self.nodes[n].parents)

    def put(self, theta: Theta) -> Theta:
        """The parameters with what is fixed."""
        own: Lines = {n: theta.others[n] for n in self.fixed}
        some = {n: replace(c, intercept=np.zeros_like(c.intercept), variance=np.ones_like(c.variance)) for n, c in own.items()}
        return replace(theta, others={**theta.others, **some}) if some else theta

    def standardise_roots(self, theta: Theta) -> Theta:
        """The same distribution, hidden numbers without parents being standard normal."""
        lines: Lines = dict(theta.others)
        for name in self.fixed:
            self._move(lines, name, float(lines[name].intercept), float(np.sqrt(lines[name].variance)))
        return self.put(replace(theta, others=lines)) if self.fixed else theta

    def standardise(self, theta: Theta, moments: Mapping[str, Groups]) -> Theta:
        """The same distribution of observed columns, hidden numbers having mean 0 and variance 1 where rows have these
        moments."""
        lines: Lines = dict(theta.others)
        for name in self.loose:
            if name in moments:  # to the mean and deviation of its column over all configurations
                weight, mean, _, scatter = moments[name].spread
                total = float(weight.sum())
                middle = float(weight @ mean[:, -1]) / total
                square = float((scatter[:, -1, -1] + weight * (mean[:, -1] - middle) ** 2).sum())
                self._move(lines, name, middle, float(np.sqrt(square / total)))
        return self.put(replace(theta, others=lines))

    def shift(self, theta: Theta, name: str, mean: float, scale: float) -> Theta:
        """The same distribution of the observed columns, a hidden number being (h − mean)/scale."""
        lines: Lines = dict(theta.others)
        self._move(lines, name, mean, scale)
        return replace(theta, others=lines)

    def settle(self, theta: Theta) -> Theta:
        """The same distribution, rotated and with signs by convention."""
        lines: Lines = dict(theta.others)
        singles = [(n,) for n in (*self.loose, *self.still) if not any(n in group for group in self.rotations)]
        for group in (*self.rotations, *singles):
            below = {tuple(v.name for v in self.nodes[c].finite) for c in self.children[group[0]]}
            if not self.nodes[group[0]].parents and len(below) == 1:  # each configuration has a rotation and a sign of its own
                self._turn_each(lines, group)
            else:
                self._turn(lines, group)
        return replace(theta, others=lines)

    def _turn_each(self, lines: Lines, group: tuple[str, ...]) -> None:
        """Rotate standard normal numbers at each configuration: Σ λλᵀ/noise is diagonal and falls, signs by the first loading."""
        children, q = self.children[group[0]], self.nodes[self.children[group[0]][0]].n_cells
        at = {c: [self._place(c, h) for h in group] for c in children}
        L = np.stack([lines[c].coefficients.reshape(q, -1)[:, at[c]] for c in children])
        v = np.stack([lines[c].variance.reshape(q) for c in children])
        if len(group) > 1:
            turn = np.linalg.eigh(np.einsum("cqg,cqh,cq->qgh", L, L, 1.0 / v))[1][..., ::-1]
            L = np.einsum("cqg,qgh->cqh", L, turn)
        first = np.argmax(L != 0.0, axis=0)
        L = L * np.where(np.take_along_axis(L, first[None], axis=0) < 0.0, -1.0, 1.0)
        for child, own in zip(children, L, strict=True):
            b = lines[child].coefficients.copy()
            b[..., at[child]] = own.reshape(*b.shape[:-1], len(group))
            lines[child] = replace(lines[child], coefficients=b)

    def _move(self, lines: Lines, name: str, mean: float, scale: float) -> None:
        """h ← (h − mean)/scale."""
        own = lines[name]
        a, b, v = (own.intercept - mean) / scale, own.coefficients / scale, own.variance / scale**2
        lines[name] = replace(own, intercept=a, coefficients=b, variance=v)
        for child in self.children[name]:
            j, b = self._place(child, name), lines[child].coefficients.copy()
            a = lines[child].intercept + b[..., j] * mean
            b[..., j] *= scale
            lines[child] = replace(lines[child], intercept=a, coefficients=b)

    def _turn(self, lines: Lines, group: tuple[str, ...]) -> None:
        """Rotate some numbers, of unit residuals, so that Σ λλᵀ/noise is diagonal and falls, signs by the first loading."""
        for name in group if len(group) > 1 else ():
            self._move(lines, name, 0.0, float(np.sqrt(lines[name].variance)))
        if len(group) > 1:
            children, g = self.children[group[0]], len(group)
            loadings = {c: lines[c].coefficients[..., [self._place(c, h) for h in group]] for c in children}
            scaled = [(loadings[c] / np.sqrt(lines[c].variance)[..., None]).reshape(-1, g) for c in children]
            turn = np.linalg.eigh(sum(x.T @ x for x in scaled))[1][:, ::-1]
            for child in children:
                b = lines[child].coefficients.copy()
                b[..., [self._place(child, h) for h in group]] = loadings[child] @ turn
                lines[child] = replace(lines[child], coefficients=b)
            a, b = (np.stack([getattr(lines[h], part) for h in group]) for part in ("intercept", "coefficients"))
            for h, own_a, own_b in zip(group, turn.T @ a, turn.T @ b, strict=True):
                lines[h] = replace(lines[h], intercept=np.asarray(own_a), coefficients=own_b)
        for name in group:
            sums = (float(np.sum(lines[c].coefficients[..., self._place(c, name)])) for c in self.children[name])
            if next((s for s in sums if s), 0.0) < 0.0:
                self._move(lines, name, 0.0, -1.0)

    def _place(self, child: str, name: str) -> int:
        return self.nodes[child].reals.index(name)

    def floor(self, node: NodeFamily) -> float:
        """The least variance of a node, as a share of the column's; 0 where a variance that falls to zero is refused: without
        hidden numbers, and with hidden states, where the likelihood has no limit."""
        open_ended = any(v.name in self.states for v in node.finite)
        return FLOOR if any(r in self.names for r in node.reals) and not open_ended else 0.0


NO_CONVENTIONS = Conventions({}, {}, (), (), (), (), frozenset())
"""Those of problems without hidden numbers, or with conventions of their own."""


def refuse_unlinked(dag: Dag, variables: Mapping[str, Variable], names: Sequence[str]) -> None:
    """Refuse hidden numbers that no column could say anything about, or in no closed form."""
    for name in names:
        below = dag.children(name)
        if not below:
            raise FitError(
                f"the hidden number {name!r} has no children in the graph: no column says anything about it; leave it out"
            )
        others = [c for c in below if not isinstance(variables[c], Real)]
        if others:
            raise FitError(
                f"{listing(others)} cannot be the child of the hidden number {name!r}: only Gaussian children have a closed "
                "form; hide a Finite variable instead, or declare the column as a number"
            )
