"""Numbers, counts and regressions that steps emit, as rows of components: batches of steps that miss the same cells.

A component's states are the joint states of the chain, as far as it depends on them, and missing children of regressions
besides, which are summed out. Numbers that are all shown and normal given the joint state are taken out of their component, since
given the states they have nothing in common with the others: compiled loops score and sum all such steps at once.

    z_j = (y_j − a_j[s] − b_j[s] · x) / √v_j[s]     ln p(step | s) = −½ Σ_j (z_j² + ln 2π v_j[s])
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools, Ints
from suffice.engines.engine import Block
from suffice.engines.gather import Groups
from suffice.engines.sequences.lagged import rename
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.families.protocol.family import Cpd
from suffice.incomplete.chains.chain_states import Phase, StateSpace, StepLayout
from suffice.incomplete.components import FlatTables, NodeFamily, Theta
from suffice.incomplete.numbers.completed_rows import Batch, ObservedRows, batches
from suffice.incomplete.numbers.normal import collect_groups, some_columns
from suffice.incomplete.numbers.patterns import Component, Member, PatternFinder
from suffice.numerics.inference.chains.steps import StateNormals, weighted_numbers
from suffice.numerics.inference.finite.logs import log_sum
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
    """The nodes as linear forms z / √2 in the component's columns, by state, padded to multiples of four (`score_normals`)."""

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


NO_TABLES = FlatTables.of((), ())


class Scored(NamedTuple):
    """A batch that was scored, and what it remembers; `inside`: p(its states that are no part of the joint state | that)."""

    batch: Batch
    keys: Mapping[str, str]
    theta: Theta
    columns: dict[str, Any]
    joint: Any
    inside: Array | None


def step_batches(
    layout: StepLayout, columns: Mapping[str, npt.NDArray[Any]], phase: Ints, weights: Array
) -> Iterator[tuple[Phase, tuple[Batch, ...], tuple[NormalSteps, ...]]]:
    """The rows of numbers, counts and regressions that are needed in every expectation, by phase and component."""
    states = [v.name for v in layout.space.states]
    groups: dict[tuple[str, ...], list[int]] = {}  # the phases, those together that emit numbers by the same parameters
    for each in layout.phases:
        own_keys = tuple(each.keys[n] for n in layout.emitting_nodes(each, by_table=False))
        groups.setdefault(own_keys, []).append(each.number)
    for number, same in ((numbers[-1], numbers) for numbers in groups.values()):
        nodes = layout.emitting_nodes(layout.phases[number], by_table=False)
        if not nodes:
            continue
        some = np.flatnonzero(np.isin(phase, same))
        if not len(some):
            continue
        members = {v.name for node in nodes.values() for v in node.members}
        names = sorted(members - set(states))
        finder = PatternFinder(nodes, names, hidden=members & set(states))
        own = Block({n: columns[n][some] for n in names}, weights[some])
        missing = finder.missing(own)
        found: list[Batch] = []
        normal: list[NormalSteps] = []
        for key, rows in finder.split(missing).items():
            component = finder.component(key)
            if component.trivial:
                continue
            shown = ObservedRows.of(component, own.columns, rows, layout.units, own.weights, some[rows])
            fast, rest = taken_apart(component, states) if len(rows) >= FEW else (None, component)
            if fast is not None:
                normal.append(NormalSteps(fast, shown, Match.of(fast, layout.space).place))
            if not rest.trivial:
                found += batches(rest, shown)
        for node in nodes.values():
            if (seen := finder.complete_rows(node, missing)) is not None:
                component = finder.component(node.name)
                found += batches(component, ObservedRows.of(component, own.columns, seen, layout.units, own.weights, some[seen]))
        yield layout.phases[number], tuple(found), tuple(normal)


class Match(NamedTuple):
    """How a component's states go with joint states of a chain: its state for each of these, and its axes left aside."""

    place: Ints
    n_states: int
    shape: tuple[int, ...]
    extra: tuple[int, ...]

    @classmethod
    def of(cls, component: Component, space: StateSpace) -> Match:
        names = [v.name for v in space.states]
        index, n = np.zeros(space.size, np.int64), 1
        for v in component.states:
            if v.name in names:
                index, n = index * v.n_states + space.digits[space.members[names.index(v.name)]], n * v.n_states
        extra = tuple(i for i, v in enumerate(component.states) if v.name not in names)
        return cls(index, n, component.shape, extra)

    def sum_out(self, log_weight: Array) -> tuple[Array, Array]:
        """ln Σ w over the extra axes, and the shares w / Σ w within it: (states, extra states, rows)."""
        wide = np.moveaxis(log_weight.reshape(*self.shape, -1), self.extra, range(-1 - len(self.extra), -1))
        wide = wide.reshape(self.n_states, -1, log_weight.shape[1])
        total = log_sum(wide, 1)
        return total, np.exp(wide - total[:, None])

    def widen(self, weight: Array, inside: Array) -> Array:
        """Weights of the component's states from those without the extra axes."""
        inner = [n for i, n in enumerate(self.shape) if i not in self.extra]
        wide = (weight[:, None] * inside).reshape(*inner, *(self.shape[i] for i in self.extra), -1)
        back = np.moveaxis(wide, range(-1 - len(self.extra), -1), self.extra)
        return back.reshape(-1, weight.shape[1])

    def pool(self, weight: Array) -> Array:
        """Weights of joint states (first axis) summed to those of the component."""
        if self.n_states == len(weight) and (self.place == np.arange(len(weight))).all():
            return weight
        total = np.zeros((self.n_states, weight.shape[1]))
        np.add.at(total, self.place, weight)
        return total


def local_parameters(theta: Theta, phase: Phase, nodes: Mapping[str, NodeFamily]) -> Theta:
    """The parameters of these nodes under the names of their variables."""
    own: dict[str, Cpd] = {}
    for name, node in nodes.items():
        cpd: Any = theta.others[phase.keys[name]]
        own[name] = cpd if phase.keys[name] == name else replace(cpd, child=rename(node.child, name))
    return Theta(NO_TABLES, np.zeros(0), own)
