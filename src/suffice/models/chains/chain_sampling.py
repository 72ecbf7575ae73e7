"""Sequences drawn from a chain, step by step; and the unknown cells of sequences, drawn given what is seen, or filled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

import numpy as np

from suffice.basis.libraries import pa
from suffice.basis.variables import Count, Finite
from suffice.engines.engine import Block, is_missing
from suffice.engines.scan import rows_of
from suffice.errors import ModelError, TooLarge, bytes_in_words, note, whole
from suffice.families.protocol.family import Array
from suffice.graphs.lagged import relative_name, variable_and_lag
from suffice.incomplete.chains.chain_batches import Match
from suffice.incomplete.chains.reduced_steps import ShownPart, child_numbers, child_states
from suffice.incomplete.first_slices import Stationary
from suffice.models.chains.chain_answers import answers, cell_frame, most_probable
from suffice.models.chains.chain_parts import ChainParts
from suffice.models.chains.chain_reading import ChainReading, Column, StepNumbers, refuse_diffuse
from suffice.models.rows.frames import MAX_BYTES, Fill, arrow_columns, fill_frame, is_held


def sample(chain: ChainParts, n: Any, length: Any, seed: int | None) -> Any:
    """n sequences of so many steps, as an Arrow table."""
    refuse_diffuse(chain, "be sampled from")
    n = whole(n, "the number of sequences to draw", 1, ModelError)
    if length is None:
        raise ModelError("sample needs the number of steps of a sequence: sample(n, length=100)")
    length = whole(length, "the length of a sequence", 1, ModelError)
    if (size := 8 * n * length * (len(chain.variables) + 2)) > MAX_BYTES:
        raise TooLarge(f"{n:,} sequences of {length:,} steps need {bytes_in_words(size)}; draw them in parts with several seeds")
    rng = np.random.default_rng(None if seed is None else whole(seed, "a seed", 0, ModelError))
    drawn = {name: np.empty((n, length), np.int64 if isinstance(v, Finite) else float) for name, v in chain.variables.items()}
    settles = isinstance(chain.first_slices, Stationary)
    begun = _first_states(chain, n, rng) if settles else {}
    for t in range(length):
        for name in chain.template.slice_at(t).topological_order:
            if t == 0 and name in begun:
                drawn[name][:, 0] = begun[name]
                continue
            cpd = chain[name if settles else chain.template.parameter_name(name, t)]
            parents = {relative_name(base, k): drawn[base][:, t - k] for base, k in map(variable_and_lag, cpd.parents)}
            drawn[name][:, t] = cpd.draw(parents, rng, n)
    columns = {name: cells.reshape(-1) for name, cells in drawn.items()}
    numbers = {"sequence": np.repeat(np.arange(1, n + 1), length), "step": np.tile(np.arange(1, length + 1), n)}
    return pa.table({**{k: pa.array(v) for k, v in numbers.items()}, **arrow_columns(chain.variables, columns)})


def _first_states(chain: ChainParts, n: int, rng: np.random.Generator) -> dict[str, Column]:
    """The states, or numbers, of the variables that carry a stationary chain on, at the first step."""
    own = [name for name in chain.template.nodes if chain.template.own_at(name, 0)]
    variables: list[Any] = [chain.variables[name] for name in own]
    if not all(isinstance(v, Finite) for v in variables):
        settled = chain.stationary()
        numbers = rng.multivariate_normal(settled.mean, settled.covariance, n, method="eigh")
        return {name: numbers[:, i] for i, name in enumerate(settled.names) if name in chain.variables}
    joint = rng.choice(int(np.prod([v.n_states for v in variables])), n, p=chain.stationary())
    return dict(zip(own, np.unravel_index(joint, [v.n_states for v in variables]), strict=True))


def _draw_cells(reading: ChainReading, seed: tuple[int, ...], block: Block) -> dict[str, Column]:
    """The open cells of the sequences of a block, all of a sequence drawn together."""
    rng = np.random.default_rng([*seed, block.number])
    if reading.numbers:
        from suffice.models.chains.linear_answers import draw_numbers

        return draw_numbers(reading, block, rng)
    drawn_states, parts = reading.layout.rows(block).draw_paths(reading.theta, rng)
    numbers, result = _unknown_numbers(parts, block.n_rows, rng), dict[str, Column]()
    for name in reading.open:
        if name in reading.states:
            result[name] = drawn_states[name]
            continue
        own, variable = block.columns[name], reading.chain.variables[name]
        lost = is_missing(own)
        if isinstance(variable, Finite):
            codes = np.where(lost, -1, own.astype(np.int64))
            uniform = rng.random(block.n_rows)
            for some, probs in child_states(parts, reading.theta, name):
                chosen = (uniform[some] > np.cumsum(probs, axis=0)[:-1]).sum(axis=0)
                codes[some] = np.where(probs.sum(axis=0) > 0.5, chosen, -1)
            result[name] = codes
            continue
        values = np.array(own, float)
        for some, (weight, rates, _) in child_numbers(parts, reading.theta, name) if isinstance(variable, Count) else ():
            values[some] = rng.poisson((weight * rates).sum(axis=0))
        if name in numbers:
            values = np.where(lost, numbers[name], values)
        result[name] = values
    return result


def _unknown_numbers(parts: Sequence[ShownPart], n: int, rng: np.random.Generator) -> dict[str, Array]:
    """Missing normal numbers of all n steps, those of a step drawn together given its states."""
    result: dict[str, Array] = {}
    for rows, joint, s in ((part.rows, part.joint, s) for part in parts for s in part.scored):
        if s.joint is None:
            continue
        component, at = s.batch.component, s.batch.rows.row
        index = Match.of(component, rows.layout.space).place[joint[:, at].argmax(axis=0)]
        group = np.repeat(np.arange(len(s.batch.bounds) - 1), np.diff(s.batch.bounds))
        mean = s.joint.mean[:, index, np.arange(len(at))]
        root = np.linalg.cholesky(s.joint.given.covariance[group, index])
        drawn = mean + np.einsum("nij,jn->in", root, rng.standard_normal(mean.shape))
        for name, values in zip(component.unknown, drawn, strict=True):
            result.setdefault(name, np.full(n, np.nan))[at] = values
    return result


def sample_given(chain: ChainParts, sequences: Any, n: Any, seed: int | None) -> list[Any]:
    """n draws of the open cells, each as a frame of the input's kind."""
    n = whole(n, "the number of draws", 1, ModelError)
    seed = int(np.random.SeedSequence().entropy or 0) if seed is None else whole(seed, "a seed", 0, ModelError)  # type: ignore[arg-type]
    reading = ChainReading.of(chain, sequences)
    if not reading.open:
        raise ModelError("nothing of these sequences is hidden or missing: there is nothing to draw")
    answers(reading, names=(), smooth=False, refuse=True)
    return [cell_frame(reading, _draw_paths(reading, (seed, i))) for i in range(n)]


def _draw_paths(reading: ChainReading, seed: tuple[int, ...]) -> dict[str, Column]:
    parts = list(reading.map(partial(_draw_cells, reading, seed), "drawing paths"))
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


def impute(chain: ChainParts, sequences: Any, draws: Any, seed: int) -> Any:
    """The rows with their missing cells filled."""
    reading = ChainReading.of(chain, sequences)
    rows = reading.sequences.source
    if not is_held(rows):  # those of files and relations come as an Arrow table
        data = rows_of(rows)
        cells = list(data.map(attrgetter("kept"), keep=data.columns))
        rows = pa.table({n: pa.chunked_array([p[n] for p in cells]) for n in data.columns})
    if draws is not None:
        n = whole(draws, "the number of draws", 1, ModelError)
        answers(reading, names=(), smooth=False, refuse=True)
        return [
            fill_frame(rows, _fills(reading, _draw_paths(reading, (whole(seed, "a seed", 0, ModelError), i)))) for i in range(n)
        ]
    found = answers(reading, smooth=True, refuse=True)
    likely = {n: most_probable(c) if not isinstance(c, StepNumbers) else c.mean for n, c in found.cells.items()}
    return fill_frame(rows, _fills(reading, likely))


def _missing_cells(names: tuple[str, ...], block: Block) -> dict[str, Column]:
    return {n: is_missing(block.columns[n]) for n in names}


def _fills(reading: ChainReading, cells: Mapping[str, Column]) -> dict[str, Fill]:
    """What goes into the missing cells of the columns that there are."""
    names = tuple(n for n in reading.open if n in reading.sequences.columns)
    parts = list(reading.map(partial(_missing_cells, names), ""))
    result = {}
    for name in names:
        lost = np.flatnonzero(reading.sequences.in_order(np.concatenate([p[name] for p in parts])))
        v = reading.chain.variables[name]
        if isinstance(v, Finite) and v.cuts is not None:
            note(f"{name!r}: known to the chain in bins only, and a bin is not a number; missing cells there stay missing")
            continue
        values = reading.sequences.in_order(cells[name])[lost]
        result[name] = Fill(name, lost, values, v.states if isinstance(v, Finite) else None)
    return result
