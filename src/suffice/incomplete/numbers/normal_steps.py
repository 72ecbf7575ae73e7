"""Steps whose numbers are all shown and normal given the joint state: scored and summed by compiled loops, all at once.

    z_j = (y_j − a_j[s] − b_j[s] · x) / √v_j[s]     ln p(step | s) = −½ Σ_j (z_j² + ln 2π v_j[s])

Such a part of a component is taken out of it, since given the states its nodes have nothing in common with the others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from suffice.basis.arrays import Array, Bools, Ints
from suffice.engines.gather import Groups
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.incomplete.components import Theta
from suffice.incomplete.numbers.completed_rows import ObservedRows
from suffice.incomplete.numbers.normal import collect_groups, some_columns
from suffice.incomplete.numbers.patterns import Component, Member
from suffice.inference.chains.steps import StateNormals, weighted_numbers
from suffice.statistics.moments import Spread

FEW = 64
"""Of fewer steps than this the loops are not worth compiling."""


def taken_apart(component: Component, states: Collection[str]) -> tuple[Component | None, Component]:
    """The normal nodes of a component that depend on no finite variables but these states, and the rest of it."""
    fast = [x for x in component.lines if not x.observed and all(component.states[a].name in states for a in x.axes)]
    if not fast or component.unknown:
        return None, component
    slow = tuple(local for local in component.lines if local not in fast)
    return replace(component, lines=tuple(fast), tables=(), others=()), replace(component, lines=slow)


@dataclass(frozen=True, eq=False)
class NormalForms:
    """The nodes as linear forms z / √2 in the columns of the component, for each of its states, with zeros up to multiples of
    four (see `score_normals`)."""

    centre: Array
    weight: Array
    base: Array
    constant: Array

    @classmethod
    def of(cls, component: Component, theta: Theta) -> NormalForms:
        """Centres are the means that a state gives its columns; of a column that is no child here, its middle, 0."""
        S, J, C = component.n_states, _up(len(component.lines)), _up(len(component.reals))
        centre, weight, base, constant = np.zeros((S, C)), np.zeros((S, J, C)), np.zeros((S, J)), np.zeros(S)
        every = ((local, theta.lines[local.node.name], _configurations(component, local)) for local in component.lines)
        lines = [(local, line.intercept[at], line.coefficients[at], line.variance[at]) for local, line, at in every]
        for _ in lines:  # a chain of columns has its means after as many rounds, in whatever order they are
            before = centre.copy()
            for local, a, b, _ in lines:
                *parents, child = local.columns
                centre[:, child] = a + (b * centre[:, parents]).sum(axis=1)
            if (centre == before).all():
                break
        for j, (local, a, b, v) in enumerate(lines):
            *parents, child = local.columns
            root = 1.0 / np.sqrt(2.0 * v)
            weight[:, j, child], weight[:, j, parents] = root, -b * root[:, None]
            base[:, j] = ((centre[:, child] - a) - (b * centre[:, parents]).sum(axis=1)) * root
            constant -= 0.5 * (LOG_2PI + np.log(v))
        return cls(centre, weight, base, constant)


def _up(n: int) -> int:
    """The next multiple of four."""
    return n + -n % 4


def _configurations(component: Component, local: Member) -> Ints:
    """The configuration of a node in each state of its component."""
    own = np.arange(len(local.offsets)).reshape(local.shape)
    return np.asarray(local.offsets[np.broadcast_to(own, component.shape).reshape(-1)])


@dataclass(frozen=True, eq=False)
class NormalSteps:
    """Such steps. `place` has the state of the component for each joint state."""

    component: Component
    rows: ObservedRows
    place: Ints

    @cached_property
    def begin(self) -> int | None:
        """The first step, if these are steps one after the other, and joint states are the component's."""
        row = self.rows.row
        same = len(self.place) == self.component.n_states and bool((self.place == np.arange(len(self.place))).all())
        return int(row[0]) if same and bool((np.diff(row) == 1).all()) else None

    @cached_property
    def _numbers(self) -> Array:
        return np.ascontiguousarray(self.rows.reals)

    @cached_property
    def _weight(self) -> Array:
        """Nothing if every step weighs 1."""
        return np.zeros(0) if (self.rows.weight == 1.0).all() else np.ascontiguousarray(self.rows.weight)

    @cached_property
    def _used(self) -> tuple[Bools, Bools]:
        """Which fours of columns each four of nodes has, and of which pairs of a column and a four the products are needed."""
        C, lines = len(self.component.reals), self.component.lines
        forms, pairs = np.zeros((_up(len(lines)) // 4, _up(C) // 4), np.bool_), np.zeros((C, _up(C) // 4), np.bool_)
        for j, local in enumerate(lines):
            fours = [c // 4 for c in local.columns]
            forms[j // 4, fours] = True
            pairs[np.ix_(local.columns, sorted(set(fours)))] = True
        return forms, pairs

    def fills(self, n_steps: int) -> bool:
        """Whether these are all the steps there are."""
        return self.begin == 0 and len(self.rows.row) == n_steps

    def normals(self, theta: Theta) -> StateNormals:
        """The steps as numbers and forms."""
        forms = NormalForms.of(self.component, theta)
        used, pairs = self._used
        return StateNormals(self._numbers, forms.centre, forms.weight, used, forms.base, forms.constant, pairs)

    def score(self, normals: StateNormals, log_likelihood: Array, *, fresh: bool) -> None:
        """Add ln p of each step under each joint state; or put it there, which `fills` allows."""
        if self.begin is None:
            log_likelihood[:, self.rows.row] += normals.log_likelihood()[self.place]
        else:
            normals.score(log_likelihood, self.begin, fresh=fresh)

    def gather(self, posterior: Array) -> dict[str, Groups]:
        """The moments of the nodes, the steps weighted by the posterior of their joint states."""
        share = posterior
        if self.begin is None:
            share = np.zeros((self.component.n_states, len(self.rows.row)))
            for s, own in zip(self.place.tolist(), posterior[:, self.rows.row], strict=True):
                share[s] += own
        return self.by_node(weighted_numbers(self._numbers, self._used[1], share, self._weight, self.begin or 0))

    def by_node(self, spread: Spread) -> dict[str, Groups]:
        """The moments of each node, from those of all columns, of which the lower triangles are known."""
        scatter, upper = spread.scatter, np.triu_indices(spread.mean.shape[1], 1)
        scatter[:, upper[0], upper[1]] = scatter[:, upper[1], upper[0]]
        result = {}
        for local in self.component.lines:
            keys = _configurations(self.component, local)
            result[local.node.name] = collect_groups(keys, some_columns(spread, list(local.columns)))
        return result
