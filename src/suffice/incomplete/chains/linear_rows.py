"""Sequences of a block whose unknown variables are numbers, reduced to what an expectation needs.

Kalman's smoother gives the mean of the unknown numbers at each step, and the sums of their covariances over the steps that are
alike; with them each normal node has its expected moments. A missing output is expected to be as its parents say. Nodes that
speak of no unknown number are left to `ChainRows`, as those of a chain with one state.

With first=Diffuse() ln p is the limit of ln p + ½ ln κ for each number that begins anywhere, κ its variance in the units of its
column: a sequence that says nothing of where it begins has a constant in ln p that hangs on the units.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools, Ints
from suffice.engines.engine import Block, add_up
from suffice.errors import FitError, ModelError, listing
from suffice.errors.remedies import DIFFUSE, FIRST_DIFFUSE, FREE, STATIONARY
from suffice.families.protocol.family import flat_index
from suffice.incomplete.chains.chain_rows import ChainRows
from suffice.incomplete.chains.chain_states import Columns, ImpossibleSequence, WholeSequences, parameter_nodes
from suffice.incomplete.chains.factored_rows import ChainLayout
from suffice.incomplete.chains.linear_states import OBSERVED, LinearSpace, LinearTerm
from suffice.incomplete.components import Expectation, Line, NodeFamily, Theta
from suffice.incomplete.numbers.normal import weighted_moments, widen_groups
from suffice.numerics.inference.chains.linear.gaussian import expected_states
from suffice.numerics.inference.chains.linear.kalman import LinearSteps
from suffice.statistics.counts import distinct

Lines = Mapping[str, Line]

FIRST_NUMBERS = "first numbers"
"""Under this name an expectation has the moments of the first z, where that begins as it settles."""


@dataclass(frozen=True, eq=False)
class LinearLayout(ChainLayout):
    """A template's nodes as steps of sequences with unknown numbers need them."""

    numbers: LinearSpace = field(kw_only=True)

    @cached_property
    def nodes(self) -> dict[str, NodeFamily]:
        """The nodes that have parameters."""
        return {key: node for key, node in parameter_nodes(self.numbers.phases).items() if key not in self.numbers.diffuse}

    @cached_property
    def rest(self) -> ChainLayout:
        """The same for the nodes that speak of no unknown number."""
        spoken = {p.keys[n] for p in self.phases for n, node in p.nodes.items() if self.numbers.touches(node)}
        return ChainLayout(self.space, self.tables, self.units, self.shown, self.counted | spoken)

    def rows(self, block: Block) -> LinearRows:  # type: ignore[override]
        return LinearRows.of(self, block)


class Alike(NamedTuple):
    """Steps that are alike: the kind of each step, and of each kind one step."""

    kind: npt.NDArray[np.int32]
    step: npt.NDArray[np.intp]

    @classmethod
    def of(cls, columns: Sequence[npt.NDArray[Any]], n: int) -> Alike:
        step, kind = distinct(columns, n)
        return cls(kind.astype(np.int32), step)


@dataclass(frozen=True, eq=False)
class LinearRows(WholeSequences):
    """Whole sequences, reduced. `phase` is that of each step, `configuration` that of each variable's node there."""

    layout: LinearLayout
    weights: Array
    phase: Ints
    first: Bools
    configuration: Mapping[str, Ints]
    reals: Columns
    """Observed numbers in their units, by column."""
    transitions: Alike
    shapes: Alike
    """Steps whose outputs are alike."""
    groups: Alike
    """Steps whose expected moments are alike, but for means."""
    rest: ChainRows | None

    @classmethod
    def of(cls, layout: LinearLayout, block: Block) -> LinearRows:
        starts, weight, step, phase, columns = layout.unroll(block)
        n, space, first = len(step), layout.numbers, step == 0
        phase = np.minimum(phase, len(space.phases) - 1)
        index = {name: np.zeros(n, np.int64) for name in space.phases[-1].nodes}
        for number, terms in enumerate(space.terms):
            rows = np.flatnonzero(phase == number)
            for term in terms if len(rows) else ():
                own: Any = term.node.finite
                index[term.name][rows] = flat_index({v.name: columns[v.name][rows] for v in own}, own, len(rows))
        spoken = {name for terms in space.terms for t in terms for name in t.node.reals if name in columns}
        reals = {name: layout.units.inward(name, columns[name]) for name in sorted(spoken)}
        gaps = [np.isnan(reals[name]).astype(np.int64) for name in space.outputs]
        moved, put_out = [index[name] for name in space.unknown], [index[name] for name in space.outputs]
        begins = [first.astype(np.int64)] if space.settles else []
        cells = block.weights, phase, first, index, reals
        kinds = [*begins, *moved], put_out, [*begins, *moved, *put_out, *gaps]
        transitions, shapes, groups = (Alike.of([phase, *own], n) for own in kinds)
        rest = ChainRows.of(layout.rest, block) if any(map(layout.rest.emitting_nodes, layout.phases)) else None
        return cls(block.number, starts, weight, layout, *cells, transitions, shapes, groups, rest)

    @property
    def space(self) -> LinearSpace:
        return self.layout.numbers

    def expect(self, theta: Theta) -> Expectation:
        """What the sequences are expected to count, and ln p of what they show."""
        steps = self.steps(theta)
        if self.space.diffuse and self._is_undecided(steps.y):
            raise FitError(
                f"{FIRST_DIFFUSE}: a sequence shows too little to say where {listing(sorted(self.space.unknown))} begin; leave "
                f"out sequences with so few observed cells, or use {FREE}"
            )
        found = expected_states(steps, self.groups.kind, len(self.groups.step), weights=self.weight)
        counts = np.diff(self.starts) > 0 if self.weight is None else self.weight > 0
        lost = np.flatnonzero((found.log_likelihoods == -np.inf) & counts)
        if len(lost):
            raise ImpossibleSequence(self.number, int(self.starts[lost[0]] + found.impossible[lost[0]]))
        weight = np.ones(len(counts)) if self.weight is None else self.weight
        logs = float(weight[counts] @ found.log_likelihoods[counts]) + self.weights @ self.log_units
        total = Expectation(float(logs), np.zeros(theta.tables.n_cells), {}, {})
        both = np.concatenate([found.means.T, np.zeros((self.space.size, self.n_steps))])  # z_t and z_{t−1} by coordinate
        both[self.space.size :, 1:] = found.means[:-1].T
        for number, terms in enumerate(self.space.terms):
            for term in terms:
                if term.key not in self.space.diffuse:
                    self._add(total, term, number, theta.lines[term.key], both, found.sums)
        if self.space.settles:
            m, rows, at = self.space.size, np.flatnonzero(self.first), np.flatnonzero(self.first[self.groups.step])
            begun = weighted_moments(np.zeros((1, 1), np.int64), self.weights[rows][None], found.means[rows].T, 1)
            unsure = found.sums[at][:, :m, :m]
            total.moments[FIRST_NUMBERS] = widen_groups(begun, np.zeros(len(at), np.int64), np.ones(len(at)), unsure)
        return total if self.rest is None else add_up(total, self.rest.expect(theta))

    @cached_property
    def log_units(self) -> Array:
        """ln of the units of the numbers that begin anywhere, step by step: κ is in those of the columns."""
        result = np.zeros(self.n_steps)
        for number, terms in enumerate(self.space.terms):
            for term in (t for t in terms if t.key in self.space.diffuse):
                result[self.phase == number] += np.log(self.layout.units.scale[term.name])
        return result

    def _is_undecided(self, y: Array) -> bool:
        """Whether a sequence shows something, but less than where its numbers begin. (One that shows nothing adds nothing.)"""
        begun = np.zeros(self.n_steps)
        for number, terms in enumerate(self.space.terms):
            begun[self.phase == number] += sum(t.key in self.space.diffuse for t in terms)
        cells, wanted = (np.add.reduceat(x, self.starts[:-1]) for x in ((~np.isnan(y)).sum(axis=1), begun))
        return bool(((cells > 0) & (cells < wanted)).any())

    def _add(self, total: Expectation, term: LinearTerm, number: int, line: Line, both: Array, sums: Array) -> None:
        """What a node is expected to have in one phase."""
        some = self.phase == number
        if self.space.settles and term.moving:  # there are no parameters to count for in first steps
            some = some & ~self.first
        rows, at = np.flatnonzero(some), np.flatnonzero(some[self.groups.step])
        if not len(rows):
            return
        node, own = term.node, self.configuration[term.name][rows]
        each = zip(node.reals, term.places, strict=True)
        values = np.stack([both[p, rows] if p != OBSERVED else self.reals[n][rows] for n, p in each])
        lost = np.zeros(0, np.intp) if term.moving else np.flatnonzero(np.isnan(values[-1]))
        if len(lost):
            b = line.coefficients[own[lost]].T
            values[-1, lost] = line.intercept[own[lost]] + (b * values[:-1, lost]).sum(axis=0)
        index = np.zeros((1, 1), np.int64) if node.n_cells == 1 else own[None]
        groups = weighted_moments(index, self.weights[rows][None], values, node.n_cells)
        unsure = self._unsure(term, line, at, sums[at])
        groups = widen_groups(groups, self.configuration[term.name][self.groups.step[at]], np.ones(len(at)), unsure)
        total.moments[term.key] = total.moments[term.key] + groups if term.key in total.moments else groups

    def _unsure(self, term: LinearTerm, line: Line, at: npt.NDArray[np.intp], sums: Array) -> Array:
        """The summed covariances of a node's numbers in some groups of steps."""
        k = len(term.places)
        L = np.zeros((len(at), k, sums.shape[1]))
        for i, place in enumerate(term.places):
            if place != OBSERVED:
                L[:, i, place] = 1.0
        step = self.groups.step[at]
        lost = np.zeros(len(at), bool) if term.moving else np.isnan(self.reals[term.name][step])
        own = self.configuration[term.name][step[lost]]
        L[lost, -1] = np.einsum("gi,gij->gj", line.coefficients[own], L[lost, :-1])
        result = L @ sums @ np.swapaxes(L, 1, 2)
        weight = np.bincount(self.groups.kind, self.weights, len(self.groups.step))
        result[lost, -1, -1] += line.variance[own] * weight[at[lost]]
        return np.asarray(result)

    def steps(self, theta: Theta) -> LinearSteps:
        """The sequences as a filter takes them, under some parameters."""
        lines, space, kinds = theta.lines, self.space, self.transitions
        n, m = len(kinds.step), space.size
        F, Q, f, diffuse = np.zeros((n, m, m)), np.zeros((n, m, m)), np.zeros((n, m)), np.zeros((n, m), bool)
        inputs = np.zeros((self.n_steps if self._driven else 0, m))
        for number, terms in enumerate(space.terms):
            some = np.flatnonzero(self.phase[kinds.step] == number)
            if not len(some):
                continue
            index = {name: self.configuration[name][kinds.step[some]] for name in space.unknown}
            own = transition(space, terms, lines, index, len(some))
            F[some], Q[some], f[some], diffuse[some] = own.F, own.Q, own.f, own.diffuse
            if self._driven:
                rows = np.flatnonzero(self.phase == number)
                place, more = np.searchsorted(some, kinds.kind[rows]), np.zeros((len(rows), len(space.unknown)))
                for term in (t for t in terms if t.moving and t.key not in space.diffuse):
                    more[:, space.unknown.index(term.name)] = self.observed_sum(term, lines[term.key], rows)
                inputs[rows[:, None], own.now] = np.einsum("tij,tj->ti", own.solve[place], more)
        if space.settles:
            begin = self.first[kinds.step]
            F[begin], Q[begin], f[begin] = 0.0, *stationary_moments(space, lines)[::-1]
        y, H, R = self._outputs(lines)
        driven = inputs if self._driven else None
        return LinearSteps(self.starts, kinds.kind, F, Q, f, y, H, R, driven, self.shapes.kind, diffuse)  # type: ignore[arg-type]

    @cached_property
    def _driven(self) -> bool:
        """Whether observed numbers take part in the transition."""
        return any(t.outside for terms in self.space.terms for t in terms if t.moving and t.key not in self.space.diffuse)

    def observed_sum(self, term: LinearTerm, line: Line, rows: npt.NDArray[np.intp]) -> Array:
        """Σ b x over the observed parents of a node."""
        own, total = self.configuration[term.name][rows], np.zeros(len(rows))
        for j, column in term.outside:
            total += line.coefficients[own, j] * self.reals[column][rows]
        return total

    @property
    def exact(self) -> list[str]:
        """The unknown numbers that some steps show."""
        return [n for n in self.space.unknown if n in self.reals]

    def _outputs(self, lines: Lines) -> tuple[Array, Array, Array]:
        space, step = self.space, self.shapes.step
        p, m = len(space.outputs) + len(self.exact), space.size
        y, H, R = np.full((self.n_steps, p), np.nan), np.zeros((len(step), p, m)), np.ones((len(step), p))
        for number, terms in enumerate(space.terms):
            rows, some = np.flatnonzero(self.phase == number), np.flatnonzero(self.phase[step] == number)
            for term in (t for t in terms if not t.moving and len(rows)):
                j, line, own = space.outputs.index(term.name), lines[term.key], self.configuration[term.name]
                y[rows, j] = self.reals[term.name][rows] - line.intercept[own[rows]] - self.observed_sum(term, line, rows)
                R[some, j] = line.variance[own[step[some]]]
                for i, place in term.inside:
                    H[some, j, place] = line.coefficients[own[step[some]], i]
        for j, name in enumerate(self.exact, len(space.outputs)):
            y[:, j], H[:, j, space.place[name, 0]], R[:, j] = self.reals[name], 1.0, 0.0
        return y, H, R


class Transition(NamedTuple):
    """How z goes on, for each of some configurations; `solve` is (I − B₀)⁻¹, `now` the places of the present numbers."""

    F: Array
    Q: Array
    f: Array
    diffuse: Bools
    solve: Array
    now: list[int]


def transition(space: LinearSpace, terms: Sequence[LinearTerm], lines: Lines, index: Mapping[str, Ints], n: int) -> Transition:
    """The transition of a phase for each of n configurations of its nodes."""
    u, m, now = len(space.unknown), space.size, [space.place[name, 0] for name in space.unknown]
    a, v, B, anywhere = np.zeros((n, u)), np.zeros((n, u)), np.zeros((n, u, 2 * m)), np.zeros(m, bool)
    for term in (t for t in terms if t.moving):
        i = space.unknown.index(term.name)
        if term.key in space.diffuse:
            anywhere[now[i]] = True
            continue
        line, own = lines[term.key], index[term.name]
        a[:, i], v[:, i] = line.intercept[own], line.variance[own]
        for j, place in term.inside:
            B[:, i, place] = line.coefficients[own, j]
    T: Array = np.asarray(np.linalg.inv(np.eye(u) - B[:, :, now]), np.float64)
    F, Q, f = np.zeros((n, m, m)), np.zeros((n, m, m)), np.zeros((n, m))
    F[:, now] = T @ B[:, :, m:]
    f[:, now] = (T @ a[:, :, None])[:, :, 0]
    Q[np.ix_(range(n), now, now)] = (T * v[:, None, :]) @ np.swapaxes(T, 1, 2)
    for (name, k), i in space.place.items():
        if k:
            F[:, i, space.place[name, k - 1]] = 1.0
    return Transition(F, Q, f, np.broadcast_to(anywhere, (n, m)), T, now)


def stationary_moments(space: LinearSpace, lines: Lines) -> tuple[Array, Array]:
    """Mean and covariance of the z that the last phase settles to: μ = F μ + f, Σ = F Σ Fᵀ + Q. One that grows is refused."""
    from scipy.linalg import solve_discrete_lyapunov

    index = {name: np.zeros(1, np.int64) for name in space.unknown}
    own = transition(space, space.terms[-1], lines, index, 1)
    F, m = own.F[0], space.size
    largest = float(np.abs(np.linalg.eigvals(F)).max())
    if not largest < 1.0:
        raise ModelError(
            f"{STATIONARY} needs numbers that settle, and the transition of {listing(space.unknown)} does not: its largest "
            f"eigenvalue is {largest:.6g} in size, not below 1; use {FREE} or {DIFFUSE}"
        )
    covariance = solve_discrete_lyapunov(F, own.Q[0], method="direct" if m <= 8 else None)
    return np.linalg.solve(np.eye(m) - F, own.f[0]), np.asarray((covariance + covariance.T) / 2.0)
