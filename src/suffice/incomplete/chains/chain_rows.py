"""Sequences of a block, reduced to what an expectation needs: which transition each step has, and what it shows.

Steps with the same observed parents of unknown variables have the same *transition*; steps that show the same states have the
same *symbol*, and one row of a table of likelihoods. Numbers, counts and regressions are scored step by step, for each joint
state, as rows of components are (`incomplete.numbers.completed_rows`); the posterior of the states weighs their completions.
Where transitions are regressions on what each step shows, every step has a table, or a matrix, of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.engines.engine import add_up
from suffice.graphs.lagged import variable_and_lag
from suffice.incomplete.chains.chain_batches import Match, NormalSteps, Scored, local_parameters
from suffice.incomplete.chains.chain_states import Columns, ImpossibleSequence, Phase, StateSpace, StepLayout, WholeSequences
from suffice.incomplete.chains.reduced_steps import Drawn, Followed, ReducedSteps, ShownPart, StatesFound, certain
from suffice.incomplete.components import Expectation, Theta
from suffice.incomplete.first_slices import stationary
from suffice.incomplete.numbers.completed_rows import Batch, gather_completions, log_weights, other_columns
from suffice.numerics.inference.chains.finite import (
    best_paths,
    draw_paths,
    expect_numbers,
    expect_states,
    filter_states,
    smooth_states,
)
from suffice.numerics.inference.chains.steps import StateSteps
from suffice.statistics.moments import Spread


@dataclass(frozen=True, eq=False)
class StepRegression:
    """A regression among transitions: its phase, steps, unknown variables, distribution, and columns for each of n states."""

    phase: int
    some: npt.NDArray[np.intp]
    inner: tuple[str, ...]
    shape: tuple[int, ...]
    cpd: Any
    columns: Columns

    @property
    def n(self) -> int:
        return int(np.prod(self.shape))

    def count(self, theta: Theta, own: Array, total: Expectation) -> None:
        """Add what its family needs where each of its states (first axis) weighs so much at each of its steps."""
        name = self.cpd.child.name
        step = self.cpd.family.step(theta.others[name], self.columns, own.reshape(-1))
        total.steps[name] = add_up(total.steps[name], step) if name in total.steps else step

    def index(self, space: StateSpace) -> Ints:
        """Which of its states each pair of joint states is."""
        index = np.zeros((space.size, space.size), np.int64)
        for name, n in zip(self.inner, self.shape, strict=True):
            base, k = variable_and_lag(name)
            digit = space.digits[base, 0][None, :] if k == 0 else space.digits[base, k - 1][:, None]
            index = index * n + digit
        return index


def regressions(layout: StepLayout, phases: Ints, inputs: Columns, theta: Theta) -> Iterator[StepRegression]:
    """The regressions among transitions. `phases` are those of the steps, `inputs` has the columns that they depend on."""
    unknown = layout.space.unknown
    for phase in layout.phases:
        some = np.flatnonzero(phases == phase.number)
        for name in unknown if len(some) else ():
            node, key = phase.nodes[name], phase.keys[name]
            if node.by_table:
                continue
            inner: list[Any] = [v for v in node.members if variable_and_lag(v.name)[0] in unknown]
            shape = tuple(v.n_states for v in inner)
            states = dict(zip((v.name for v in inner), np.indices(shape).reshape(len(shape), -1), strict=True))
            seen = {v.name: inputs[v.name][some] for v in node.members if v.name not in states}
            every = {n: np.repeat(x, len(some)) for n, x in states.items()}
            every |= {n: np.tile(x, int(np.prod(shape))) for n, x in seen.items()}
            columns = {key if n == name else n: column for n, column in every.items()}
            yield StepRegression(phase.number, some, tuple(v.name for v in inner), shape, theta.others[key], columns)


FIRST = "first states"
"""Under this name an expectation has how often each joint state is expected to be the first, where that is stationary."""

SMALLEST = -650.0
"""The logarithm of a likelihood that a double still holds with all its digits."""


LITTLE = 2**14
"""So many cells of transitions are looked up once, not at each E-step."""


class Likelihoods(NamedTuple):
    """What steps show, given the states: as rows of a table by symbol, or as logarithms (states × steps), or the product."""

    symbols: npt.NDArray[np.int32] | None
    table: Array | None
    log_likelihood: Array | None


Moving = tuple[Phase, npt.NDArray[np.intp], list[tuple[str, Ints]]]
"""A phase, its kinds of transitions, and of each table the cells that are multiplied (kind × state before × state)."""


@dataclass(frozen=True, eq=False)
class ChainRows(ReducedSteps):
    """Whole sequences, reduced, and what is expected of them where all unknown variables are one joint state."""

    def steps(self, theta: Theta) -> tuple[StateSteps, list[Scored]]:
        """Transitions and likelihoods under some parameters, and what was remembered of numbers."""
        shown, scored = self.likelihoods(theta)
        codes, matrices = self.matrices(theta)
        return StateSteps(self.starts, codes, matrices, *shown, self.weight), scored

    def likelihoods(self, theta: Theta) -> tuple[Likelihoods, list[Scored]]:
        """p(what steps show | states), and what was remembered of numbers."""
        scored: list[Scored] = []
        space, kinds, symbols, table = self.layout.space, self.symbols, None, None
        log_likelihood = self._log_likelihoods(theta, scored)
        if kinds is not None:
            logs = np.zeros((len(kinds.phase), space.size))  # ln p(what a symbol shows | joint state)
            for e in self.emissions:
                logs[e.symbols[e.seen]] += theta.log_tables[e.key][e.shown]
            for name in (n for n in space.unknown if n in kinds.codes):
                labels, own = kinds.codes[name], space.digits[name, 0]
                known = labels <= own.max()
                logs[known[:, None] & (labels[:, None] != own)] = -np.inf
            if logs[logs > -np.inf].min(initial=0.0) < SMALLEST:  # a product of tables that a double does not hold
                dense = logs[kinds.kind].T
                log_likelihood = dense if log_likelihood is None else log_likelihood + dense
            else:
                symbols, table = kinds.kind, np.exp(logs)
        return Likelihoods(symbols, table, log_likelihood), scored

    def _log_likelihoods(self, theta: Theta, scored: list[Scored]) -> Array | None:
        """Log likelihoods of what steps show but for tables."""
        if not self.dense:
            return None
        log_likelihood = np.empty((self.layout.space.size, self.n_steps))
        fresh = any(steps.fills(self.n_steps) for steps in self.dense[0][2][:1])
        if not fresh:  # zeros would cost another pass
            log_likelihood[:] = 0.0
        for phase, own, normal in self.dense:
            local = local_parameters(theta, phase, self.layout.emitting_nodes(phase, by_table=False))
            for steps in normal:
                steps.score(steps.normals(local), log_likelihood, fresh=fresh)
                fresh = False
            scored += [self._score(batch, phase, local, log_likelihood) for batch in own]
        return log_likelihood

    @cached_property
    def _alone(self) -> tuple[Phase, NormalSteps] | None:
        """The numbers that are all that steps show, if that is so."""
        if self.symbols is not None or len(self.dense) != 1:
            return None
        [(phase, own, normal)] = self.dense
        return (phase, normal[0]) if not own and len(normal) == 1 and normal[0].fills(self.n_steps) else None

    def expect(self, theta: Theta) -> Expectation:
        """What the sequences are expected to count, and ln p of what they show."""
        moments: Spread | None = None
        scored: list[Scored] = []
        if self._alone is None:
            steps, scored = self.steps(theta)
            found = expect_states(steps)
        else:
            phase, normal = self._alone
            local = local_parameters(theta, phase, self.layout.emitting_nodes(phase, by_table=False))
            codes, matrices = self.matrices(theta)
            steps = StateSteps(self.starts, codes, matrices, weights=self.weight)
            found, moments = expect_numbers(steps, normal.normals(local))
        logs = checked_logs(self, found.log_likelihood, self._in_block(found.stuck))
        total = Expectation(logs, np.zeros(theta.tables.n_cells), {}, {})
        self._count_transitions(theta, found.pairs, total)
        counts = None if steps.table is None else found.counts
        shown = self.shown_expectation(theta, scored, counts, found.posterior, moments)
        return add_up(total, shown)  # type: ignore[no-any-return]

    def shown_expectation(
        self, theta: Theta, scored: list[Scored], counts: Array | None, posterior: Array, moments: Spread | None = None
    ) -> Expectation:
        """What is expected of the nodes that steps emit: by sums of the states by symbol, if there are any, or by step."""
        total = Expectation(0.0, np.zeros(theta.tables.n_cells), {}, {})
        if self.symbols is not None:
            if counts is None:  # the posterior of the states summed over the steps of each symbol
                kinds, weight = self.symbols, 1.0 if self.weight is None else np.repeat(self.weight, np.diff(self.starts))
                counts = np.stack([np.bincount(kinds.kind, p * weight, len(kinds.phase)) for p in posterior], axis=1)
            for e in self.emissions:
                cells, expected = theta.cells[theta.tables.cells[e.key]], total.cells[theta.tables.cells[e.key]]
                expected += np.bincount(e.shown.reshape(-1), counts[e.symbols[e.seen]].reshape(-1), len(expected))
                if not e.seen.all():  # a missing child is expected to be as its parents say
                    index = (e.base[~e.seen, None] + e.current)[:, :, None] + np.arange(e.n_states)
                    shares = counts[e.symbols[~e.seen]][:, :, None] * cells[index]
                    expected += np.bincount(index.reshape(-1), shares.reshape(-1), len(expected))
        parts, nothing = [total, *(self._gather_scored(s, posterior) for s in scored)], np.zeros(self.layout.tables.n_cells)
        for phase, steps in ((phase, steps) for phase, _, normal in self.dense for steps in normal):
            own = steps.gather(posterior) if moments is None else steps.by_node(moments)
            parts.append(Expectation(0.0, nothing, {phase.keys[n]: groups for n, groups in own.items()}, {}))
        return reduce(add_up, parts)

    def posterior(self, theta: Theta, names: Collection[str], *, smooth: bool) -> StatesFound:
        """p(state) of these unknown variables at each step, and of the joint states."""
        steps, scored = self.steps(theta)
        found = (smooth_states if smooth else filter_states)(steps)
        joint, space = found.probabilities, self.layout.space
        states = {n: space.states_of(n, joint) for n in names if n in space.unknown}
        return StatesFound(found.log_likelihood, self._in_block(found.stuck), states, [ShownPart(self, joint, scored)])

    def _in_block(self, stuck: Ints) -> Ints:
        """Steps that were counted within sequences, counted within the block."""
        return np.where(stuck < 0, -1, stuck + self.starts[:-1])

    def best(self, theta: Theta, n: int) -> tuple[dict[str, npt.NDArray[np.int32]], Array]:
        """The n most probable paths of each unknown variable (path × step) and ln p (sequence × path)."""
        found, space = best_paths(self.steps(theta)[0], n), self.layout.space
        if len(space.members) == 1:  # the joint state is the state
            return dict.fromkeys(space.unknown, found.paths), found.log_prob
        own = {n: np.append(space.digits[n, 0], -1).astype(np.int32) for n in space.unknown}  # no path is -1, the last
        return {name: digits[found.paths] for name, digits in own.items()}, found.log_prob

    def draw_paths(self, theta: Theta, rng: np.random.Generator) -> Drawn:
        """Paths of the unknown variables given all that is seen."""
        steps, scored = self.steps(theta)
        path, space = draw_paths(steps, rng.random(self.n_steps)).astype(np.int64), self.layout.space
        states = {n: np.append(space.digits[n, 0], -1)[path] for n in space.unknown}
        return Drawn(states, [ShownPart(self, certain(path, space.size), scored)])

    def follow(self, theta: Theta, before: Array | None, names: Collection[str]) -> Followed:
        """The filter after the last step, by the joint states before it."""
        steps, scored = self.steps(theta)
        space, top = self.layout.space, 0.0
        prior = np.eye(space.size)[0] if before is None else before
        joint = prior @ steps.matrices[steps.codes[-1]]
        if steps.symbols is not None and steps.table is not None:
            joint = joint * steps.table[steps.symbols[-1]]
        if steps.log_likelihood is not None:
            top = float(steps.log_likelihood[:, -1].max())
            joint = joint * np.exp(steps.log_likelihood[:, -1] - top) if top > -np.inf else np.zeros_like(joint)
        total = float(joint.sum())
        if not total > 0.0:
            return Followed(-np.inf, joint, {}, [])
        wide = np.zeros((space.size, self.n_steps))
        wide[:, -1] = joint / total
        states = {n: space.states_of(n, wide[:, -1:])[:, 0] for n in space.unknown}
        return Followed(top + float(np.log(total)), wide[:, -1], states, [ShownPart(self, wide, scored)])

    def matrices(self, theta: Theta) -> tuple[npt.NDArray[np.int32], Array]:
        """The matrix of transitions into each step, as its number and the distinct ones."""
        space, kinds = self.layout.space, self.transitions
        matrices = np.zeros((len(kinds.phase), space.size, space.size))
        for phase, some, tables in self._moving():
            if not (self.layout.stationary and phase.number == 0):
                matrices[some] = space.allowed[phase.number]
                for key, cells in tables:
                    matrices[some] *= theta.cells[theta.tables.cells[key]][cells]
        if self.layout.stationary:
            matrices[kinds.phase == 0, 0] = stationary(self.layout.settling(theta))
        if not self.layout.stepwise:
            return kinds.kind, matrices
        product = matrices[kinds.kind]  # tables as they are for the kind of a step, times what regressions say of it
        for r in self._regressions(theta):
            probs = np.exp(r.cpd.log_prob(r.columns)).reshape(r.n, len(r.some))
            product[r.some] *= probs.T[:, r.index(space)]
        return np.arange(self.n_steps, dtype=np.int32), product

    def _regressions(self, theta: Theta) -> Iterator[StepRegression]:
        return regressions(self.layout, self.transitions.phase[self.transitions.kind], self.inputs, theta)

    def _count_transitions(self, theta: Theta, weight: Array, total: Expectation) -> None:
        if self.layout.stepwise:  # regressions take the pairs of states of each step, and tables those of each kind of step
            for r in self._regressions(theta):
                own, index = np.zeros((r.n, len(r.some))), r.index(self.layout.space)
                for i in range(r.n):
                    own[i] = weight[r.some][:, index == i].sum(axis=1)
                r.count(theta, own, total)
            pairs = np.zeros((len(self.transitions.phase), *weight.shape[1:]))
            np.add.at(pairs, self.transitions.kind, weight)
            weight = pairs
        for phase, some, tables in self._moving():
            if self.layout.stationary and phase.number == 0:
                total.steps[FIRST] = weight[some, 0].sum(axis=0)
                continue
            for key, cells in tables:
                own = total.cells[theta.tables.cells[key]]
                own += np.bincount(cells.reshape(-1), weight[some].reshape(-1), len(own))

    def _moving(self) -> Iterable[Moving]:
        """The phases that there are, with what makes their transitions: kept if it is little."""
        return self._kept if len(self.transitions.phase) * self.layout.space.size**2 <= LITTLE else self._make_batches()

    @cached_property
    def _kept(self) -> list[Moving]:
        return list(self._make_batches())

    def _make_batches(self) -> Iterator[Moving]:
        K = self.layout.space.size
        for phase in self.layout.phases:
            some, codes = self.transitions.of_phase(phase.number)
            if len(some):
                every = ((table.key, table.cells(codes)) for table in self.layout.space.transitions[phase.number])
                yield phase, some, [(key, np.broadcast_to(cells, (len(some), K, K))) for key, cells in every]

    def _score(self, batch: Batch, phase: Phase, theta: Theta, log_likelihood: Array) -> Scored:
        columns = other_columns(batch, self.layout.units)
        log_weight, joint = log_weights(batch, theta, columns)
        match, inside = Match.of(batch.component, self.layout.space), None
        if match.extra:
            log_weight, inside = match.sum_out(log_weight)
        log_likelihood[:, batch.rows.row] += log_weight[match.place]
        return Scored(batch, phase.keys, theta, columns, joint, inside)

    def _gather_scored(self, scored: Scored, posterior: Array) -> Expectation:
        batch, match = scored.batch, Match.of(scored.batch.component, self.layout.space)
        weight = match.pool(posterior[:, batch.rows.row]) * batch.rows.weight
        weight = weight if scored.inside is None else match.widen(weight, scored.inside)
        found = gather_completions(batch, scored.theta, scored.columns, scored.joint, weight)
        moments, steps = ({scored.keys[n]: x for n, x in part.items()} for part in (found.moments, found.steps))
        return Expectation(0.0, np.zeros(self.layout.tables.n_cells), moments, steps)


def checked_logs(rows: WholeSequences, logs: Array, stuck: Ints) -> float:
    """Σ w ln p of sequences; one that is impossible is refused."""
    lost = np.flatnonzero(logs == -np.inf)
    if rows.weight is not None:
        lost = lost[rows.weight[lost] > 0]
    if len(lost):
        raise ImpossibleSequence(rows.number, int(stuck[lost[0]]))
    if rows.weight is None:
        return float(logs.sum())
    some = rows.weight > 0  # what has no weight may be infinite
    return float(rows.weight[some] @ logs[some])
