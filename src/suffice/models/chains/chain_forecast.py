"""Forecasts: the next steps of sequences, as steps of which nothing is seen but what is given.

Where hidden states and numbers that bear on later steps are both unknown ahead, and known up to now:

    s_t                      the joint state, p(s_T | seen) by the filter, then by the transition
    y_t = a[s] + F[s] y + e  the numbers and those before them: given the path of the states they are normal

The mean and the covariance of y given s_t follow from those given s_{t−1}, of the K² pairs: they are exact at any distance. The
distribution itself is a mixture over all paths, of which intervals take all parts while these are few, and then some that are
drawn. What has no such form, as counts that depend on counts before, is drawn altogether.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Count, Finite
from suffice.engines.engine import Block
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, ModelError, checked_level, listing, note, whole
from suffice.errors.remedies import argument
from suffice.graphs.lagged import relative_name, variable_and_lag
from suffice.incomplete.chains.chain_rows import ChainRows
from suffice.incomplete.components import NodeFamily
from suffice.incomplete.first_slices import Stationary
from suffice.models.chains.chain_answers import columns_of, join_parts, posterior_step, refuse_impossible, within_sequences
from suffice.models.chains.chain_parts import ChainParts, chain_phases
from suffice.models.chains.chain_reading import BlockAnswers, Cells, ChainReading, KnownAhead, MixtureOfNumbers, StepNumbers
from suffice.models.rows.frames import new_table
from suffice.numerics.inference.finite.network import Array, Ints


def forecast(chain: ChainParts, x: Any, steps: Any, interval: float | None, given: Any, seed: int) -> Any:
    """A row for each sequence and step ahead."""
    n, level = whole(steps, "steps", 1), None if interval is None else checked_level(interval)
    if not isinstance(x, Sequences):
        ChainReading.of(chain, x)  # refuses it
    known = KnownAhead.of(chain, x, given, n)
    ahead = [v for v in chain.variables if v not in known.shown]
    step = _numbers_ahead(chain, x, known, ahead, level, whole(seed, "a seed", 0, ModelError))
    reading = ChainReading.of(chain, x, ahead=ahead, steps_ahead=n) if step is None else step.reading
    blocks = list(reading.map(step or partial(_smoothed_ahead, reading, known, level), "forecasting sequences"))
    cells: Cells = {name: join_parts([b.cells[name] for b in blocks]) for name in blocks[0].cells if name not in known.shown}
    # numbers are answered for from where sequences end, all else by smoothing longer ones
    lost = within_sequences(reading.sequences.lengths + (n if step is None else 0), blocks)
    refuse_impossible(reading, np.concatenate([b.log_prob for b in blocks]), lost)
    names, values = columns_of(chain, cells)
    return new_table(reading.sequences.source, {**_labels(reading.sequences, n), **dict(zip(names, values, strict=True))})


def _smoothed_ahead(reading: ChainReading, known: KnownAhead, level: float | None, block: Block) -> BlockAnswers:
    """What is said of the next steps of the sequences of a block: of the last ones of longer sequences."""
    assert block.lengths is not None
    found: BlockAnswers = posterior_step(reading, level, reading.open, smooth=True)(known.lengthen(block))
    ahead = (np.cumsum(block.lengths + known.n)[:, None] - known.n + np.arange(known.n)).reshape(-1)
    cells = Cells()
    for name, own in found.cells.items():
        if isinstance(own, StepNumbers):
            parts: list[Any] = [None if part is None else part[ahead] for part in own]
            cells[name] = StepNumbers(*parts)
        else:
            cells[name] = own[:, ahead]
    return found._replace(cells=cells)


def _numbers_ahead(
    chain: ChainParts, x: Any, known: KnownAhead, ahead: Collection[str], level: float | None, seed: int
) -> NumbersAhead | None:
    """The step for numbers that bear on later steps ahead, together with states, or without a closed form; None where there are
    no such numbers, or where some are unknown up to now, too."""
    phases = chain_phases(chain)
    every = [(node, *variable_and_lag(v.name)) for p in phases for node in p.nodes.values() for v in node.parents]
    numbers = {n for n in ahead if not isinstance(chain.variables[n], Finite)}
    used = [(node, base, k) for node, base, k in every if base in numbers and (not k or known.n > 1)]
    drawn = any(node.by_rows or p.nodes[base].by_rows for p in phases for node, base, _ in used)
    if not drawn and not any(k for _, _, k in used):
        return None
    states = [n for n in ahead if n not in numbers and any(base == n for _, base, _ in every)]
    reading = ChainReading.of(chain, x, hidden=states)
    if reading.numbers or not (reading.states or drawn):
        return None
    for name in known.shown:
        if unknown := [base for p in chain.template.parents(name) for base, _ in [variable_and_lag(p)] if base in ahead]:
            raise DataError(
                f"{argument('given')} has {name!r}, which depends on {listing(unknown)}: where numbers bear on later steps, it "
                "can have inputs only; leave it out"
            )
    drawn = drawn or any(p.nodes[n].iterative for p in phases for n in ahead if n not in reading.states)
    step = NumbersAhead(reading, known, level, tuple(n for n in chain.variables if n in ahead), drawn, seed)
    if drawn:
        note(f"{listing(sorted(numbers))} ahead has no closed form: the forecast is of {DRAWS:,} draws (seed {seed})")
    elif level is not None and known.n > step.n_exact:
        note(
            f"intervals more than {step.n_exact} steps ahead are of {MAX_PARTS:,} paths of the states, drawn (seed {seed}), as "
            "there are more; means and deviations are exact"
        )
    return step


def _labels(rows: Sequences, n: int) -> dict[str, Any]:
    """Which sequence a row is of, which step ahead, and its place in the order if that is numbers."""
    S = rows.n_sequences
    columns: dict[str, Any] = {rows.by: np.repeat(np.array(rows.labels, object), n)} if rows.by is not None else {}
    columns["step"] = np.tile(np.arange(1, n + 1), S)
    order = rows.order_values
    if rows.order is not None and order is not None and order.dtype.kind == "f":
        ends = np.cumsum(rows.lengths) - 1
        some = np.flatnonzero(rows.lengths > 1)
        apart = float(order[ends[some[0]]] - order[ends[some[0]] - 1]) if len(some) else 1.0
        columns[rows.order] = np.repeat(order[ends], n) + apart * columns["step"]
    return columns


Column = npt.NDArray[Any]

DRAWS = 20_000
"""So many paths of a sequence are drawn."""


MAX_PARTS = 2**11
"""So many paths of states are told apart for intervals; of more, so many are drawn."""


class Parts(NamedTuple):
    """A mixture of normal distributions of the numbers, each with a state: weights, states, means and covariances."""

    weight: Array
    state: Ints
    mean: Array
    covariance: Array

    def advance(self, transition: Array, lines: tuple[Array, Array, Array]) -> Parts:
        """One step on: a part for each state that may follow."""
        weight = self.weight[:, None] * transition[self.state]
        i, j = np.nonzero(weight > 0.0)
        constant, F, noise = (part[j] for part in lines)
        mean = constant + np.einsum("nab,nb->na", F, self.mean[i])
        covariance = F @ self.covariance[i] @ F.transpose(0, 2, 1) + noise
        return Parts(weight[i, j], j, mean, covariance)

    def by_state(self) -> Parts:
        """One part for each state, with the same moments."""
        states, at = np.unique(self.state, return_inverse=True)
        share = np.zeros((len(states), len(at)))
        share[at, np.arange(len(at))] = self.weight
        weight = share.sum(axis=1)
        share /= weight[:, None]
        mean = share @ self.mean
        apart = self.mean - mean[at]
        spread = self.covariance + apart[:, :, None] * apart[:, None, :]
        return Parts(weight, states, mean, np.tensordot(share, spread, 1))

    def thin(self, rng: np.random.Generator) -> Parts:
        """The same if it has few parts, else so many of them, drawn evenly by their weights in the order of their first means."""
        if len(self.weight) <= MAX_PARTS:
            return self
        order = np.lexsort((self.mean[:, 0], self.state))
        ends = np.cumsum(self.weight[order])
        at = order[np.searchsorted(ends, ends[-1] * (np.arange(MAX_PARTS) + rng.random()) / MAX_PARTS)]
        return Parts(np.full(MAX_PARTS, ends[-1] / MAX_PARTS), self.state[at], self.mean[at], self.covariance[at])

    def numbers(self, i: int) -> MixtureOfNumbers:
        """The i-th number by itself."""
        return MixtureOfNumbers(self.weight[:, None], self.mean[:, i, None], np.sqrt(self.covariance[:, i, i])[:, None])


@dataclass(frozen=True, eq=False)
class NumbersAhead:
    """The step that answers for the next steps of the sequences of a block. `unknown` are the variables not shown there."""

    reading: ChainReading
    known: KnownAhead
    level: float | None
    unknown: tuple[str, ...]
    drawn: bool
    """Whether there is no closed form."""
    seed: int

    def __call__(self, block: Block) -> BlockAnswers:
        reading, n = self.reading, self.known.n
        rows = ChainRows.of(reading.layout, block)
        found = rows.posterior(reading.theta, (), smooth=False)
        now = found.parts[0].joint[:, rows.starts[1:] - 1]
        longer = self.known.lengthen(block)
        first = self.known.first[block.number]
        parts: list[Cells] = []
        transitions = None
        if not self.drawn:
            layout = reading.layout
            shown = {p.keys[n] for p in layout.phases for n in p.nodes if n not in layout.space.unknown}
            transitions = ChainRows.of(replace(layout, counted=frozenset(shown)), longer).matrices(reading.theta)
        for i, begin in enumerate((rows.starts[:-1] + n * np.arange(len(rows.starts) - 1)).tolist()):
            length = int(rows.starts[i + 1] - rows.starts[i])
            columns = {name: cells[begin : begin + length + n] for name, cells in longer.columns.items()}
            one = OneAhead(self, columns, length, now[:, i], (self.seed, first + i))
            if not now[:, i].any():  # impossible, which is said elsewhere
                parts.append({name: self._nothing(name) for name in self.unknown})
            elif transitions is None:
                parts.append(one.drawn_cells())
            else:
                parts.append(one.cells([transitions[1][k] for k in transitions[0][begin + length : begin + length + n]]))
        cells: Cells = {name: join_parts([p[name] for p in parts]) for name in self.unknown}
        return BlockAnswers(block.number, cells, found.log_likelihood, found.stuck)

    def _nothing(self, name: str) -> Array | StepNumbers:
        variable, none = self.reading.chain.variables[name], np.full(self.known.n, np.nan)
        if isinstance(variable, Finite):
            return np.zeros((variable.n_states, self.known.n))
        return StepNumbers(none, none, *((none, none) if self.level is not None else (None, None)))

    @cached_property
    def n_exact(self) -> int:
        """For so many steps all paths of the states are told apart."""
        space = self.reading.layout.space
        each = math.prod(space.states[space.members.index((name, 0))].n_states for name in space.unknown)
        return sum(space.size * each**step <= MAX_PARTS for step in range(1, self.known.n + 1))

    @cached_property
    def places(self) -> dict[tuple[str, int], int]:
        """Where the numbers that are unknown ahead stand, at the present and as far back as steps need them."""
        chain = self.reading.chain
        normal = [n for n in self.unknown if not isinstance(chain.variables[n], (Finite, Count))]
        members = [(n, k) for n in normal for k in range(max((1, *chain.template.lags.get(n, ()))))]
        return {member: i for i, member in enumerate(members)}


@dataclass(frozen=True, eq=False)
class OneAhead:
    """The next steps of one sequence: its columns, with what is given of these, its length, p(joint state) at its last step, and
    a seed for what is drawn."""

    step: NumbersAhead
    columns: Mapping[str, Column]
    length: int
    now: Array
    seed: tuple[int, ...]

    def drawn_cells(self) -> Cells:
        """What draws of the next steps say: p(state) of finite variables at each step, or mean, deviation and the ends of an
        interval of numbers."""
        step, chain, rng = self.step, self.step.reading.chain, np.random.default_rng(self.seed)
        states = rng.choice(len(self.now), DRAWS, p=self.now / self.now.sum())
        kinds = {name: np.int64 if isinstance(chain.variables[name], Finite) else np.float64 for name in step.unknown}
        drawn: dict[str, Column] = {name: np.empty((DRAWS, step.known.n), kind) for name, kind in kinds.items()}
        settles = isinstance(chain.first_slices, Stationary)
        for ahead in range(step.known.n):
            t = self.length + ahead
            for name in (n for n in chain.template.slice_at(t).topological_order if n in drawn):
                cpd = chain[name if settles else chain.template.parameter_name(name, t)]
                places = (variable_and_lag(p) for p in cpd.parents)
                columns = {relative_name(base, k): self._drawn_cell(base, ahead - k, drawn, states) for base, k in places}
                drawn[name][:, ahead] = cpd.draw(columns, rng, DRAWS)
        cells, tails = Cells(), () if step.level is None else ((1.0 - step.level) / 2.0, (1.0 + step.level) / 2.0)
        for name, own in drawn.items():
            if isinstance(variable := chain.variables[name], Finite):
                cells[name] = np.stack([(own == state).mean(axis=0) for state in range(variable.n_states)])
            else:
                ends = [np.quantile(own, q, axis=0, method="inverted_cdf") for q in tails] or (None, None)
                cells[name] = StepNumbers(own.mean(axis=0), own.std(axis=0), *ends)
        return cells

    def _drawn_cell(self, name: str, ahead: int, drawn: Mapping[str, Column], states: Ints) -> Column:
        """The cells of a variable at a step, counted from the first that is ahead: drawn, in the states now, or as it is."""
        if ahead >= 0 and name in drawn:
            return drawn[name][:, ahead]
        space = self.step.reading.layout.space
        if ahead < 0 and name in space.unknown:
            return space.digits[name, -1 - ahead][states]
        return np.full(DRAWS, self.columns[name][self.length + ahead])

    def cells(self, transitions: Sequence[Array]) -> Cells:
        """What is said of one step after the other, by the transitions into them."""
        d, states = len(self.step.places), np.flatnonzero(self.now > 0.0)
        mean = np.zeros((len(states), d))
        for (name, k), i in self.step.places.items():
            if k < self.length:
                mean[:, i] = np.nan_to_num(self.columns[name][self.length - 1 - k])  # what is missing is not needed
        short = Parts(self.now[states], states, mean, np.zeros((len(states), d, d)))
        every, rng = short if self.step.level is not None else None, np.random.default_rng(self.seed)
        each: list[Cells] = []
        for t, transition in enumerate(transitions, self.length):
            lines = self._lines(t)
            every = None if every is None else every.advance(transition, lines).thin(rng)
            short = short.advance(transition, lines).by_state()
            joint = np.zeros(len(self.now))
            joint[short.state] = short.weight
            each.append({name: self._cell(name, t, joint, short, every) for name in self.step.unknown})
        return {name: join_parts([cells[name] for cells in each]) for name in self.step.unknown}

    def _cell(self, name: str, t: int, joint: Array, short: Parts, every: Parts | None) -> Array | StepNumbers:
        """What is said of a variable at step t, by the states and the numbers there."""
        reading, level = self.step.reading, self.step.level
        space, theta, variable = reading.layout.space, reading.theta, reading.chain.variables[name]
        if name in space.unknown:
            return space.states_of(name, joint[:, None])
        phase = reading.layout.phases[min(t, len(reading.layout.phases) - 1)]
        node, key = phase.nodes[name], phase.keys[name]
        if isinstance(variable, Finite):
            table = theta.cells[theta.tables.cells[key]].reshape(-1, variable.n_states)
            return np.asarray(joint @ table[self._configuration(node, t) // variable.n_states])[:, None]
        if isinstance(variable, Count):
            rates = theta.others[key].rates.reshape(-1)[self._configuration(node, t)]
            mixture = MixtureOfNumbers(joint[:, None], rates[:, None], rates[:, None], counts=True)
            return StepNumbers(mixture.mean, mixture.sd, *((None, None) if level is None else mixture.interval(level)))
        i = self.step.places[name, 0]
        numbers = short.numbers(i)
        ends = (None, None) if level is None or every is None else every.numbers(i).interval(level)
        return StepNumbers(numbers.mean, numbers.sd, *ends)

    def _lines(self, t: int) -> tuple[Array, Array, Array]:
        """The numbers of step t, and those before it that later steps need, as constant + matrix · (those of the step before) +
        noise, for each joint state."""
        step, theta = self.step, self.step.reading.theta
        K, d, place = len(self.now), len(step.places), step.places
        a, F, L = np.zeros((K, d)), np.zeros((K, d, d)), np.zeros((K, d, d))
        for (name, k), i in place.items():
            if k:
                F[:, i, place[name, k - 1]] = 1.0
        phase = step.reading.layout.phases[min(t, len(step.reading.layout.phases) - 1)]
        for name in (n for n in step.reading.chain.template.slice_at(t).topological_order if (n, 0) in place):
            node, line, i = phase.nodes[name], theta.lines[phase.keys[name]], place[name, 0]
            own = self._configuration(node, t)
            a[:, i] = line.intercept[own]
            for b, (base, k) in zip(line.coefficients[own].T, map(variable_and_lag, node.reals[:-1]), strict=True):
                if (base, 0) not in place:
                    a[:, i] += b * self.columns[base][t - k]
                elif k:
                    F[:, i, place[base, k - 1]] += b
                else:
                    j = place[base, 0]
                    a[:, i] += b * a[:, j]
                    F[:, i] += b[:, None] * F[:, j]
                    L[:, i] += b[:, None] * L[:, j]
            L[:, i, i] = np.sqrt(line.variance[own])
        return a, F, L @ L.transpose(0, 2, 1)

    def _configuration(self, node: NodeFamily, t: int) -> Ints:
        """The place of a node's configuration in its arrays, for each joint state; of a table that of its first cell."""
        _, current, observed = self.step.reading.layout.space.offsets(node, emitted=True)
        places = ((variable_and_lag(column), stride) for column, stride in observed if column != node.name)
        return current + sum(stride * int(self.columns[base][t - k]) for (base, k), stride in places)
