"""Sequences as a chain reads them: its variables, its parameters, and which cells of them are unknown; what is known of the steps
that come after them; and what is said of cells, block by block: p(state) of each step, or numbers, which may be one of several
normal, or one of several Poisson distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from operator import attrgetter
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.basis.variables import Count, Finite, Variable
from suffice.engines.engine import Block, is_missing
from suffice.engines.scan import rows_of
from suffice.engines.sequences.sequences import Sequences, sequences
from suffice.errors import DataError, ModelError, listing, nearest, note
from suffice.errors.remedies import FIRST_DIFFUSE, SEQUENCES, argument
from suffice.families.protocol.family import Array
from suffice.incomplete.chains.chain_states import StateSpace, parameter_nodes, refuse_regressions, unknowns
from suffice.incomplete.chains.factored_rows import ChainLayout
from suffice.incomplete.chains.linear_states import LinearSpace, linear_space
from suffice.incomplete.chains.reduced_steps import ShownPart, child_numbers, child_states
from suffice.incomplete.components import FlatTables, Theta
from suffice.incomplete.first_slices import Diffuse, Stationary
from suffice.incomplete.numbers.units import Units
from suffice.models.chains.chain_parts import ChainParts, chain_phases

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class ChainReading:
    """Sequences and the chain that is asked about them. `states` and `numbers` are the unknown variables that bear on other cells
    of a sequence; `open` are all that some step does not show."""

    chain: ChainParts
    sequences: Sequences
    states: tuple[str, ...]
    numbers: tuple[str, ...]
    open: tuple[str, ...]
    space: LinearSpace | None = None
    """That of the numbers, if there are any."""
    blank: tuple[str, ...] = ()
    """Numbers that no step shows and no later step needs: columns of which every cell is missing."""

    @classmethod
    def of(
        cls, chain: ChainParts, x: Any, ahead: Sequence[str] = (), steps_ahead: int = 0, hidden: Collection[str] = ()
    ) -> ChainReading:
        """Sequences read with the variables of a chain. One that is not a column is hidden; but where a column that the chain
        does not know has nearly its name, it is taken for a slip. `ahead` are variables that so many more steps do not show,
        `hidden` are columns that other steps than these may not show."""
        if not isinstance(x, Sequences):
            raise DataError(
                f"a chain is asked about sequences, not {type(x).__name__}: {SEQUENCES} says "
                "which rows belong together and in which order"
            )
        spare = [n for n in x.columns if n not in chain.variables]
        for name in (n for n in chain.variables if n not in x.columns and n not in chain.hidden):
            if meant := nearest(name, spare):
                raise DataError(f"the sequences have no column {name!r}, which the chain names{meant}")
            if spare:
                note(f"the sequences have no column {name!r}: it is taken to be hidden; the chain does not use {listing(spare)}")
        if not (shown := [n for n in chain.variables if n in x.columns]):
            raise DataError("the sequences have none of the chain's columns")
        rows = x.select(shown).with_variables({n: chain.variables[n] for n in shown})
        gaps = {n for n, m in rows.missing.items() if m}
        absent = {n for n in chain.variables if n not in shown}
        lacking = absent | set(hidden)
        finite = {n for n in lacking if isinstance(chain.variables[n], Finite)}
        # what only the very last step does not show bears on no other
        last = {n for n in ahead if not isinstance(chain.variables[n], Finite)} if steps_ahead == 1 else set()
        partly = gaps | (lacking - finite)
        incomplete = partly | set(ahead)
        phases = chain_phases(chain)
        states, numbers = unknowns(phases, partly | (set(ahead) - last), finite)
        own = {chain.template.parameter_name(n, t): n for n, t in chain.template.first_nodes}
        anywhere = {key: name for key, name in own.items() if isinstance(chain.first_slices, Diffuse) and key not in chain}
        space = linear_space(phases, chain.first_slices, states, numbers, incomplete, anywhere=anywhere)
        refuse_regressions(phases, incomplete, last - partly)
        if space is not None:
            numbers = list(space.unknown)
        elif isinstance(chain.first_slices, Stationary):
            states = sorted({*states, *(n for n in chain.template.nodes if chain.template.own_at(n, 0))})
        unseen = tuple(n for n in chain.variables if n in incomplete | lacking)
        blank = tuple(n for n in chain.variables if n in absent - finite and n not in numbers)
        return cls(chain, rows, tuple(states), tuple(numbers), unseen, space, blank)

    @cached_property
    def layout(self) -> ChainLayout:
        """The chain's nodes as steps of these sequences need them."""
        phases, first = chain_phases(self.chain), isinstance(self.chain.first_slices, Stationary)
        nodes = parameter_nodes(phases[-1:] if first else phases)
        finite = [v for node in nodes.values() for v in node.members if isinstance(v, Finite)]
        tables = FlatTables.of(
            list({v.name: v for v in finite}.values()),
            [node.finite for name, node in nodes.items() if node.by_table and name in self.chain],
        )
        shown = (*self.sequences.columns, *self.blank)
        return ChainLayout(StateSpace.of(phases, self.states), tables, plain_units(nodes), shown, frozenset(), stationary=first)

    @cached_property
    def theta(self) -> Theta:
        """The chain's parameters as they are in expectations."""
        nodes = {n: node for n, node in self.layout.nodes.items() if n in self.chain}
        return Theta.of(nodes, self.layout.tables, {n: self.chain[n] for n in self.chain}, lambda _, cpd: cpd)

    def __getstate__(self) -> dict[str, Any]:
        """What travels with the steps of a reading: how blocks are read, without the sequences themselves."""
        return {**self.__dict__, "layout": self.layout, "theta": self.theta, "sequences": None}

    def map(self, step: Callable[[Block], T], what: str) -> Iterator[T]:
        """What a step makes of each block of whole sequences."""
        return self.sequences.data.map(partial(_with_blank_columns, self.blank, step) if self.blank else step, what=what)


def _with_blank_columns(names: tuple[str, ...], step: Callable[[Block], Any], block: Block) -> Any:
    """What a step makes of a block with more columns, of numbers that are all missing."""
    blank = {n: np.full(block.n_rows, np.nan) for n in names}
    return step(replace(block, columns={**block.columns, **blank}))


def plain_units(nodes: Any) -> Units:
    """Columns as they are."""
    members: dict[str, Variable] = {v.name: v for node in nodes.values() for v in node.members}
    reals = [n for n, v in members.items() if not isinstance(v, Finite)]
    zero, one = dict.fromkeys(reals, 0.0), dict.fromkeys(reals, 1.0)
    return Units(zero, one, zero, one, zero, {})


def missing_in(dtype: np.dtype[Any]) -> float | int:
    """A missing cell in a column of this type: NaN, or of codes the largest number."""
    return np.nan if dtype.kind == "f" else int(np.iinfo(dtype).max)


def refuse_diffuse(chain: ChainParts, what: str) -> None:
    """Refuse what needs a proper first slice."""
    if isinstance(chain.first_slices, Diffuse):
        raise ModelError(f"a chain with {FIRST_DIFFUSE} cannot {what}: its hidden numbers begin anywhere")


Column = npt.NDArray[Any]

GIVEN = argument("given")


@dataclass(frozen=True, eq=False)
class KnownAhead:
    """What is given of the n next steps, by sequence and variable; the sequence "" stands for all. `labels` are those of all
    sequences, `first` has the number of the first sequence of each block."""

    n: int
    cells: Mapping[str, Mapping[str, Column]]
    labels: tuple[str, ...]
    first: Mapping[int, int]

    @classmethod
    def of(cls, chain: ChainParts, x: Sequences, given: Any, n: int) -> KnownAhead:
        cells = {} if given is None else _encode_given(chain, x, given, n)
        blocks = list(x.data.select(x.columns[:1]).map(attrgetter("number", "lengths")))
        starts = np.cumsum([0, *(len(lengths) for _, lengths in blocks)]).tolist()
        return cls(n, cells, tuple(x.labels), {number: start for (number, _), start in zip(blocks, starts, strict=False)})

    @property
    def shown(self) -> set[str]:
        """The variables of which all is known."""
        return set.intersection(*(set(columns) for columns in self.cells.values())) if self.cells else set()

    def lengthen(self, block: Block) -> Block:
        """Sequences with n more steps each, of which nothing is seen but what is given."""
        assert block.lengths is not None
        at, n = self.first[block.number], self.n
        labels = self.labels[at : at + len(block.lengths)]
        lengths = block.lengths + n
        ends = np.cumsum(lengths)
        ahead = (ends[:, None] - n + np.arange(n)).reshape(-1)
        old = np.ones(int(ends[-1]), bool)
        old[ahead] = False
        columns = {}
        for name, cells in block.columns.items():
            longer = np.full(len(old), missing_in(cells.dtype), cells.dtype)
            longer[old] = cells
            if self.cells:
                own = [self.cells[label if label in self.cells else ""].get(name) for label in labels]
                if own and own[0] is not None:
                    longer[ahead] = np.concatenate(own)  # type: ignore[arg-type]
            columns[name] = longer
        weight = None if block.weight is None else np.repeat(block.weight[np.cumsum(block.lengths) - block.lengths], lengths)
        return replace(block, columns=columns, weight=weight, lengths=lengths, kept={})


def _encode_given(chain: ChainParts, x: Sequences, given: Any, n: int) -> dict[str, dict[str, Column]]:
    """What is known of the next steps, encoded as the chain's variables."""
    rows = sequences(given, by=x.by if x.by is not None and x.by in rows_of(given).columns else None)
    if unknown := [c for c in rows.columns if c not in chain.variables and c != x.order]:
        raise DataError(
            f"{GIVEN} has a column {unknown[0]!r}, which the chain does not name{nearest(unknown[0], chain.variables)}"
        )
    rows = rows.select([c for c in rows.columns if c in chain.variables])
    rows = rows.with_variables({c: chain.variables[c] for c in rows.columns})
    labels = rows.labels if rows.by is not None else ("",)
    for label, length in zip(labels, rows.lengths.tolist(), strict=True):
        if length != n:
            whose = f" for sequence {label!r}" if label else ""
            raise DataError(f"{GIVEN} has {length} rows{whose}, and there are {n} steps to forecast: one row for each")
    if rows.by is not None and (lacking := [x for x in x.labels if x not in labels]):
        raise DataError(f"{GIVEN} says nothing of sequence {lacking[0]!r}: it needs {n} rows for each sequence")
    if any(rows.missing.values()):
        raise DataError(f"{GIVEN} has missing cells: leave the whole column out of it if it is not known")
    parts = list(rows.data.map(attrgetter("columns")))
    columns = {c: np.concatenate([p[c] for p in parts]) for c in rows.columns}
    return {label: {c: cells[i * n : (i + 1) * n] for c, cells in columns.items()} for i, label in enumerate(labels)}


NEWTON, HALVINGS = 16, 80
"""An end of an interval is found by so many of Newton's steps or, if these do not end, bisections to the last digits."""


@dataclass(frozen=True, eq=False)
class MixtureOfNumbers:
    """Many mixtures, with the parts on the first axis: weights, means and standard deviations (of `counts`: rates, unused)."""

    weight: Array
    means: Array
    sds: Array
    counts: bool = False

    @property
    def mean(self) -> Array:
        return np.asarray((self.weight * self.means).sum(axis=0))

    @property
    def sd(self) -> Array:
        own = self.means if self.counts else self.sds**2
        return np.asarray(np.sqrt((self.weight * (own + (self.means - self.mean) ** 2)).sum(axis=0)))

    def interval(self, level: float) -> tuple[Array, Array]:
        tail = (1.0 - level) / 2.0
        return self._quantile(tail), self._quantile(1.0 - tail)

    def _quantile(self, q: float) -> Array:
        if self.counts:
            return self._count_quantile(q)
        far, sd = 12.0 * self.sds, np.where(self.sds > 0, self.sds, np.inf)  # parts without spread have no density
        low, high = (self.means - far).min(axis=0), (self.means + far).max(axis=0)
        x, near = np.clip(self.mean + self.sd * sc.ndtri(q), low, high), 1e-14 * (high - low)
        for i in range(NEWTON + HALVINGS):
            z = (x - self.means) / sd
            gap, density = self._below(x) - q, (self.weight * np.exp(-0.5 * z**2) / sd).sum(axis=0) / np.sqrt(2.0 * np.pi)
            low, high = np.where(gap < 0, x, low), np.where(gap < 0, high, x)
            step = x - np.divide(gap, density, out=np.full_like(x, np.inf), where=density > 1e-300)
            inside = (step >= low) & (step <= high) & (i < NEWTON)
            x, before = np.where(inside, step, 0.5 * (low + high)), x
            if (np.abs(x - before) <= near).all():
                break
        return np.asarray(x)

    def _below(self, x: Array) -> Array:
        """p(number ≤ x)."""
        if self.counts:
            each: Any = np.where(x >= 0, sc.pdtr(np.maximum(np.floor(x), 0.0), self.means), 0.0)
        else:
            sd = np.where(self.sds > 0, self.sds, 1.0)
            each = np.where(self.sds > 0, sc.ndtr((x - self.means) / sd), x >= self.means)
        return np.asarray((self.weight * each).sum(axis=0))

    def _count_quantile(self, q: float) -> Array:
        """The least whole number n with p(count ≤ n) ≥ q."""
        most = self.means.max(axis=0)
        low, high = np.full_like(most, -1.0), np.ceil(most + 12.0 * np.sqrt(most) + 30.0)
        while ((high - low) > 1).any():
            middle = np.floor(0.5 * (low + high))
            below = self._below(middle) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(high)


class StepNumbers(NamedTuple):
    """Numbers of steps: mean and standard deviation, and the ends of an interval where one is asked for."""

    mean: Array
    sd: Array
    lower: Array | None
    upper: Array | None


Cells = dict[str, "Array | StepNumbers"]
"""What is said of open variables: of finite ones p(state) of each step (states × steps), of others numbers."""


class BlockAnswers(NamedTuple):
    """What is said of the steps of a block, and of its sequences ln p and the step at which each is impossible, or −1: counted
    within the block, and where all blocks are joined within its sequence."""

    number: int
    cells: Cells
    log_prob: Array
    impossible: npt.NDArray[np.int64]


def state_posterior(
    reading: ChainReading, smooth: bool, level: float | None, names: tuple[str, ...], block: Block
) -> BlockAnswers:
    """The sequences of a block filtered or smoothed, where the unknown variables that bear on others are finite."""
    found = reading.layout.rows(block).posterior(reading.theta, names, smooth=smooth)
    cells: Cells = {n: found.states[n] for n in names if n in reading.states}
    cells |= {n: shown_cell(reading, found.parts, block, n, level) for n in names if n not in reading.states}
    return BlockAnswers(block.number, {n: cells[n] for n in names}, found.log_likelihood, found.stuck)


def shown_cell(
    reading: ChainReading, parts: Sequence[ShownPart], block: Block, name: str, level: float | None
) -> Array | StepNumbers:
    """A variable on which no other cell depends but of its own step: as its distribution says, given states and parents."""
    variable, own = reading.chain.variables[name], block.columns[name]
    lost = is_missing(own)
    if isinstance(variable, Finite):
        probs = np.zeros((variable.n_states, len(own)))
        probs[own[~lost], np.flatnonzero(~lost)] = 1.0
        for some, found in child_states(parts, reading.theta, name):
            probs[:, some] = found
        return probs
    mean, sd = np.where(lost, np.nan, own), np.where(lost, np.nan, 0.0)
    ends = None if level is None else (mean.copy(), mean.copy())
    for some, mixture in child_numbers(parts, reading.theta, name):
        values = MixtureOfNumbers(*mixture, counts=isinstance(variable, Count))
        mean[some], sd[some] = values.mean, values.sd
        if ends is not None and level is not None:
            ends[0][some], ends[1][some] = values.interval(level)
    return StepNumbers(mean, sd, *(ends or (None, None)))
