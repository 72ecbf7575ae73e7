"""What a chain says about sequences: ln p, filtered and smoothed cells, most probable paths.

Answers have a row for each row of the input, in its order and kind of frame.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Finite
from suffice.engines.engine import Block
from suffice.errors import DataError, ModelError, checked_level, whole
from suffice.families.protocol.family import Array
from suffice.graphs.lagged import variable_and_lag
from suffice.incomplete.chains.chain_rows import ChainRows
from suffice.incomplete.chains.chain_states import StateSpace, parameter_nodes, phases_of
from suffice.incomplete.chains.factored_rows import ChainLayout
from suffice.incomplete.components import FlatTables, Theta
from suffice.incomplete.first_slices import stationary
from suffice.models.chains.chain_parts import ChainParts
from suffice.models.chains.chain_reading import BlockAnswers, Cells, ChainReading, StepNumbers, plain_units, state_posterior
from suffice.models.rows.frames import checked_size, column, new_table, table

Codes = npt.NDArray[np.int32]


def posterior_step(reading: ChainReading, level: float | None, names: Sequence[str], *, smooth: bool) -> Any:
    """The step that filters or smooths these variables of the sequences of a block."""
    if reading.numbers:
        from suffice.models.chains.linear_answers import number_posterior

        return partial(number_posterior, reading, smooth, level, tuple(names))
    return partial(state_posterior, reading, smooth, level, tuple(names))


def answers(
    reading: ChainReading, level: float | None = None, names: Sequence[str] | None = None, *, smooth: bool, refuse: bool = False
) -> BlockAnswers:
    """What is said of all steps, of these variables or all that are open, in the arrangement of the sequences; with `refuse`,
    impossible sequences are refused."""
    wanted = reading.open if names is None else tuple(names)
    checked_size(reading.sequences.n_steps, sum([getattr(reading.chain.variables[n], "n_states", 4) for n in wanted]))
    step = posterior_step(reading, level, wanted, smooth=smooth)
    blocks = list(reading.map(step, "smoothing sequences" if smooth else "filtering sequences"))
    cells: Cells = {name: join_parts([b.cells[name] for b in blocks]) for name in blocks[0].cells}
    logs = np.concatenate([b.log_prob for b in blocks])
    lost = within_sequences(reading.sequences.lengths, blocks)
    if refuse:
        refuse_impossible(reading, logs, lost)
    return BlockAnswers(0, cells, logs, lost)


def join_parts(parts: list[Any]) -> Any:
    if not isinstance(parts[0], StepNumbers):
        return np.concatenate(parts, axis=1)
    ends: list[Any] = [None if x[0] is None else np.concatenate(x) for x in zip(*parts, strict=True)]
    return StepNumbers(*ends)


def within_sequences(lengths: npt.NDArray[np.int64], blocks: Sequence[BlockAnswers]) -> npt.NDArray[np.int64]:
    """The steps at which sequences are impossible, counted within each."""
    result, at = [], 0
    for b in blocks:
        own = lengths[at : at + len(b.log_prob)]
        at += len(own)
        result.append(np.where(b.impossible < 0, -1, b.impossible - (np.cumsum(own) - own)))
    return np.concatenate(result)


def refuse_impossible(reading: ChainReading, logs: Array, step: npt.NDArray[np.int64] | None = None) -> None:
    """Refuse sequences that have the probability zero: by name, with the step, if it is not known found by a filter."""
    lost = np.flatnonzero(logs == -np.inf)
    if len(lost):
        first = int(lost[0])
        which = f"sequence {reading.sequences.labels[first]!r}" if reading.sequences.by else "the sequence"
        more = f" (and {len(lost) - 1:,} more)" if len(lost) > 1 else ""
        where = answers(reading, names=(), smooth=False).impossible if step is None else step
        raise DataError(
            f"{which}{more} is impossible under the chain: what is seen up to step {where[first] + 1:,} has the probability "
            "zero; leave it out, or fit with a prior, without zeros"
        )


def weighted_sum(reading: ChainReading, logs: Array) -> float:
    """Σ w ln p of sequences."""
    if not reading.sequences.data.weighted:
        return float(logs.sum())
    weight = np.concatenate(list(reading.map(_sequence_weights, "")))
    return float((logs[weight > 0] * weight[weight > 0]).sum())


def _sequence_weights(block: Block) -> Array:
    assert block.lengths is not None
    return np.asarray(block.weights[np.cumsum(block.lengths) - block.lengths])


def posterior_frame(
    chain: ChainParts, sequences: Any, interval: float | None = None, *, smooth: bool, impossible: bool = False
) -> Any:
    """The open cells of all rows as a frame; with `impossible`, those of sequences that cannot be have probabilities of 0."""
    level = None if interval is None else checked_level(interval)
    reading = ChainReading.of(chain, sequences)
    found = answers(reading, level, smooth=smooth, refuse=not impossible)
    names, values = columns_of(reading.chain, found.cells)
    if not names:
        raise ModelError("nothing of these sequences is hidden or missing: there is nothing to infer")
    return table(reading.sequences.source, names, reading.sequences.in_order(np.array(values)).T)


def columns_of(chain: ChainParts, cells: Cells) -> tuple[list[str], list[Array]]:
    """Cells as named columns of numbers."""
    names: list[str] = []
    values: list[Array] = []
    for name, own in cells.items():
        if isinstance(own, StepNumbers):
            parts = {name: own.mean, f"{name}_sd": own.sd, f"{name}_lower": own.lower, f"{name}_upper": own.upper}
            names += [n for n, x in parts.items() if x is not None]
            values += [x for x in parts.values() if x is not None]
        else:
            names += [f"{name}={state}" for state in chain.variables[name].states]  # type: ignore[union-attr]
            values += list(own)
    return names, values


@dataclass(frozen=True, eq=False)
class Decoded:
    """A path: the states of the unknown variables, in the input's kind of frame, and of each sequence ln p(path, what is seen).

    Of hidden numbers the path is their smoothed means, and ln p that of what is seen. `decoded["state"]` is the column of a
    variable.
    """

    states: Any
    log_prob: Array

    def __getitem__(self, name: str) -> Any:
        return self.states[name]

    def __repr__(self) -> str:
        logs = np.array2string(self.log_prob[:6], precision=4, separator=", ")
        return f"Decoded(log_prob={logs}{' …' if len(self.log_prob) > 6 else ''})\n{self.states!r}"


def _best_of_block(reading: ChainReading, n: int, block: Block) -> tuple[dict[str, Codes], Array]:
    """The most probable joint states of the sequences of a block."""
    rows = ChainRows.of(reading.layout, block) if n > 1 else reading.layout.rows(block)
    return rows.best(reading.theta, n)


def decode(chain: ChainParts, sequences: Any, best: int) -> tuple[Decoded, ...]:
    """The most probable paths."""
    n = whole(best, "best", 1)
    reading = ChainReading.of(chain, sequences)
    if not reading.states and not reading.numbers:
        raise ModelError("nothing of these sequences is hidden that other cells depend on: there is no path to find")
    if reading.numbers:
        if n > 1:
            raise ModelError("the best path of hidden numbers is one, their smoothed means; leave best out")
        found = answers(reading, names=reading.numbers, smooth=True, refuse=True)
        means = {name: own.mean for name, own in found.cells.items() if isinstance(own, StepNumbers)}
        frame = table(reading.sequences.source, list(means), reading.sequences.in_order(np.array(list(means.values()))).T)
        return (Decoded(frame, found.log_prob),)
    if n > 1:
        reading.layout.space.check_size("more than one best path")
    paths, logs = best_states(reading, n)
    refuse_impossible(reading, logs[:, 0])
    return tuple(Decoded(cell_frame(reading, {v: own[r] for v, own in paths.items()}), logs[:, r]) for r in range(n))


def best_states(reading: ChainReading, n: int = 1) -> tuple[dict[str, Codes], Array]:
    """The n most probable paths of each unknown variable (path × step, as sequences are arranged; −1 for none), and ln p of
    them (sequence × path)."""
    parts = list(reading.map(partial(_best_of_block, reading, n), "finding best paths"))
    paths = {name: np.concatenate([p[name] for p, _ in parts], axis=1) for name in reading.states}
    return paths, np.concatenate([x for _, x in parts])


def best_log_prob(chain: ChainParts, sequences: Any) -> float:
    """Σ w ln p(most probable path, what is seen) of sequences."""
    reading = ChainReading.of(chain, sequences)
    return weighted_sum(reading, best_states(reading)[1][:, 0])


def cell_frame(reading: ChainReading, cells: Mapping[str, npt.NDArray[Any]]) -> Any:
    """Codes of states, −1 for none, and numbers as a frame of the input's kind with a column for each variable."""
    rows, columns = reading.sequences, dict[str, Any]()
    for name, values in cells.items():
        variable = reading.chain.variables[name]
        states = variable.states if isinstance(variable, Finite) else None
        columns[name] = column(rows.source, name, rows.in_order(values), states)
    return new_table(rows.source, columns)


def posterior_decode(chain: ChainParts, sequences: Any) -> Any:
    """The most probable state of each open cell."""
    reading = ChainReading.of(chain, sequences)
    if reading.numbers:
        raise ModelError("posterior_decode is of states, and the unknown variables are numbers: smooth gives their means")
    if not (finite := [n for n in reading.open if isinstance(chain.variables[n], Finite)]):
        raise ModelError("no state of these sequences is hidden or missing")
    found = answers(reading, names=finite, smooth=True, refuse=True)
    return cell_frame(reading, {n: most_probable(p) for n, p in found.cells.items()})  # type: ignore[arg-type]


def most_probable(probs: Array) -> npt.NDArray[np.int64]:
    """The state of largest probability of each step, the first of those within 1e-9; −1 where there is none."""
    best = (probs >= probs.max(axis=0) - 1e-9).argmax(axis=0)
    return np.where(probs.sum(axis=0) > 0.5, best, -1)


def stationary_distribution(chain: ChainParts) -> Any:
    """The distribution that the transition of the variables with lags keeps."""
    template = chain.template
    carried = [n for n in template.nodes if any(k for p in template.parents(n) for _, k in [variable_and_lag(p)])]
    if not (names := [*dict.fromkeys([*carried, *(n for n in template.lags)])]):
        raise ModelError("this chain has no lags: its steps are independent, and nothing settles")
    if not all(isinstance(chain.variables[n], Finite) for n in names):
        from suffice.models.chains.linear_answers import settled_numbers

        return settled_numbers(chain)
    phases = phases_of(chain.template, chain.variables, {})
    space = StateSpace.of(phases, sorted(names)).check_size("what it settles to")
    own = parameter_nodes(phases[-1:])
    tabled = {n: own[n] for n in space.unknown}
    if any(not node.by_table or space.offsets(node, emitted=False)[2] for node in tabled.values()):
        raise ModelError("what the chain settles to depends on its inputs: there is no one distribution")
    finite = {v.name: v for node in tabled.values() for v in node.members}
    tables = FlatTables.of(list(finite.values()), [node.finite for node in tabled.values()])  # type: ignore[arg-type]
    theta = Theta.of(tabled, tables, {n: chain[n] for n in tabled}, lambda _, cpd: cpd)
    return stationary(ChainLayout(space, tables, plain_units(own), (), frozenset(), stationary=True).settling(theta))
