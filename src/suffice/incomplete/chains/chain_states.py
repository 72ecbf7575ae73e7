"""The joint state of a sequence's unknown finite variables at a step, and how it goes from one step to the next.

    s_t                  the unknown finite variables at step t, some of them also as they were a few steps before
    p(s_t | s_{t−1})     Π over unknown variables of p(x_t | its parents); what s_t has of earlier steps is copied from s_{t−1}
    p(shown | s_t)       Π over the other variables

What nodes need of earlier steps decides which lags belong to s_t. Before the first step the state is 0, whatever it means: the
first step's matrix has the start in its row 0. Which distribution a variable has hangs on the *phase*: the step itself while
lags are missing (0, 1, …, order − 1), and from then on the last phase.

A `StepLayout` has a template's nodes as steps need them: which are tables, which columns there are, what the joint state is;
`Kinds` are steps that are alike: those with the same transition, and those that show the same states.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.basis.variables import Finite, Variable
from suffice.engines.engine import Block
from suffice.engines.sequences.lagged import lag_cells, places_of, rename
from suffice.errors import FitError, TooLarge, bytes_in_words, listing
from suffice.errors.remedies import INTO_BINS
from suffice.families import family_of
from suffice.graphs.lagged import relative_name, variable_and_lag
from suffice.graphs.template import Template
from suffice.incomplete.components import FlatTables, NodeFamily, Theta
from suffice.incomplete.numbers.patterns import digits_of
from suffice.incomplete.numbers.units import Units
from suffice.statistics.counts import distinct, n_configurations, sizes

MAX_STATES = 2**12
"""Matrices of transitions between more joint states than this are not made: each would take more than 128 MiB."""


@dataclass(frozen=True, eq=False)
class Phase:
    """The nodes of a slice by variable, with the parents that they have there, and the name under which the parameters of each
    are kept: that of the variable, or of a distribution of its own in this slice."""

    number: int
    nodes: Mapping[str, NodeFamily]
    keys: Mapping[str, str]

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """All columns that these nodes speak of."""
        return tuple(sorted({v.name for node in self.nodes.values() for v in node.members}))


def members_of_state(phases: Sequence[Phase], unknown: Collection[str]) -> tuple[tuple[str, int], ...]:
    """The unknown variables that a state has, each now and as many steps back as some node looks from the step before."""
    back = dict.fromkeys(unknown, 0)
    for phase in phases:
        for name, node in phase.nodes.items():
            for base, k in (variable_and_lag(v.name) for v in node.members):
                if base in back:
                    back[base] = max(back[base], k - (name in back))
    return tuple((n, k) for n in back for k in range(back[n] + 1))


def phases_of(template: Template, variables: Mapping[str, Variable], families: Mapping[str, Any]) -> tuple[Phase, ...]:
    """What holds at steps 0, 1, …, order − 1, and from then on."""
    result = []
    for t in range(template.order + 1):
        nodes, keys = {}, {}
        for name in template.nodes:
            key = template.parameter_name(name, t)
            parents = [rename(variables[b], relative_name(b, k)) for b, k in map(variable_and_lag, template.parents_at(name, t))]
            family = families.get(name) if parents or key == name else None
            nodes[name] = NodeFamily.of(variables[name], tuple(parents), family or family_of(variables[name], parents))
            keys[name] = key
        result.append(Phase(t, nodes, keys))
    return tuple(result)


def parameter_nodes(phases: Sequence[Phase]) -> dict[str, NodeFamily]:
    """The nodes that have parameters, those of all steps first, each under its own name."""
    result: dict[str, NodeFamily] = {}
    for phase in (phases[-1], *phases[:-1]):
        for name, key in phase.keys.items():
            node = phase.nodes[name]
            result.setdefault(key, node if key == name else NodeFamily.of(rename(node.child, key), node.parents, node.family))
    return result


def unknowns(phases: Sequence[Phase], incomplete: Collection[str], hidden: Collection[str]) -> tuple[list[str], list[str]]:
    """The finite variables and the numbers that must be passed along sequences: hidden ones, and those that some steps do not
    show and others depend on. Finite and real ones together are refused."""
    kinds = {name: node.child for name, node in phases[-1].nodes.items()}
    lacking = [n for n in kinds if n in hidden or n in incomplete]
    finite = [n for n in lacking if isinstance(kinds[n], Finite) and (n in hidden or _children(phases, n))]
    # a missing number is integrated within its own step unless another step depends on it
    numbers = [
        n for n in lacking if not isinstance(kinds[n], Finite) and (n in hidden or any(k for _, k in _children(phases, n)))
    ]
    if finite and numbers:
        raise FitError(
            f"{listing(finite)} (states) and {listing(numbers)} (numbers) are both unknown and bear on later steps: a switching "
            "state space, whose exact posterior grows as Kᵗ with the steps t; leave one of them out, fill its cells in, or cut "
            f"the numbers {INTO_BINS}"
        )
    return finite, numbers


def refuse_regressions(phases: Sequence[Phase], incomplete: Collection[str], last: Collection[str] = ()) -> None:
    """Refuse missing numbers in families that are not normal: there is no closed form to sum them out. Those of `last` are
    missing only in the very last step, from which no lag reaches on."""
    for phase in phases:
        for name, node in phase.nodes.items():
            for v in node.members if node.by_rows else ():
                base, k = variable_and_lag(v.name)
                if isinstance(v, Finite) or base not in incomplete or (base in last and k):
                    continue
                if v.name != name or any(not k or name not in last for _, k in _children(phases, name)):
                    raise FitError(
                        f"cells of {base!r} are missing, and {name!r} is not Gaussian in it but {type(node.family).__name__}: "
                        f"such numbers cannot be summed out; fill them, or cut {base!r} {INTO_BINS}"
                    )


def _children(phases: Sequence[Phase], name: str) -> list[tuple[str, int]]:
    """The variables that depend on one, with the lag."""
    every = ((child, *variable_and_lag(v.name)) for p in phases for child, node in p.nodes.items() for v in node.parents)
    return [(child, k) for child, base, k in every if base == name]


class TransitionTable(NamedTuple):
    """A node's table as part of the transition: cell = base + previous[s] + current[s'] + Σ stride · observed code."""

    key: str
    previous: Ints
    current: Ints
    observed: tuple[tuple[str, int], ...]

    def cells(self, codes: Mapping[str, Ints]) -> Ints:
        """The cell of the table for each combination of observed codes, and each pair of states."""
        base = sum((stride * codes[name] for name, stride in self.observed), np.zeros(1, np.int64))
        return np.asarray(base[:, None, None] + self.previous[:, None] + self.current[None, :])


@dataclass(frozen=True, eq=False)
class StateSpace:
    """The joint states: `members` are the unknown variables with how many steps back each is, `states` are these as variables."""

    phases: tuple[Phase, ...]
    unknown: tuple[str, ...]
    members: tuple[tuple[str, int], ...]
    states: tuple[Finite, ...]

    @classmethod
    def of(cls, phases: Sequence[Phase], unknown: Sequence[str]) -> StateSpace:
        """`unknown` are the finite variables that some step does not show."""
        names = tuple(sorted(unknown))
        return cls(tuple(phases), names, (), ()).part(members_of_state(phases, names))

    def check_size(self, what: str) -> StateSpace:
        """The same; too many joint states for a matrix of transitions, which is needed for something, are refused."""
        if self.size > MAX_STATES:
            raise TooLarge(
                f"the hidden variables {listing([v.name for v in self.states])} have {self.size:,} joint states at a step, more "
                f"than the {MAX_STATES:,} that are enumerated for {what} (their transitions alone would need "
                f"{bytes_in_words(8.0 * self.size**2)}): take fewer states, or fewer hidden variables that depend on each other"
            )
        return self

    def part(self, members: Collection[tuple[str, int]]) -> StateSpace:
        """The states of some variables at some lags only; the others are unknown all the same."""
        found: dict[str, Any] = {name: node.child for name, node in self.phases[-1].nodes.items()}
        states: Any = tuple(rename(found[n], relative_name(n, k)) for n, k in members)
        return StateSpace(self.phases, self.unknown, tuple(members), states)

    @cached_property
    def size(self) -> int:
        """K, the number of joint states."""
        return n_configurations(self.states)

    @cached_property
    def digits(self) -> dict[tuple[str, int], Ints]:
        """The state of each member in each joint state."""
        return dict(zip(self.members, digits_of(sizes(self.states)).astype(np.int64), strict=True))

    def states_of(self, name: str, joint: Array) -> Array:
        """p(state of a variable) from those of joint states (first axis)."""
        n = self.states[self.members.index((name, 0))].n_states
        return np.stack([joint[self.digits[name, 0] == k].sum(axis=0) for k in range(n)])

    def offsets(self, node: NodeFamily, *, emitted: bool) -> tuple[Ints, Ints, tuple[tuple[str, int], ...]]:
        """What states before and after a step add to the flat index of a node's configuration, and what observed columns do."""
        previous, current, observed = np.zeros(self.size, np.int64), np.zeros(self.size, np.int64), []
        for v in node.finite:
            base, k = variable_and_lag(v.name)
            if base not in self.unknown:
                observed.append((v.name, node.strides[v.name]))
            elif emitted or k == 0:
                current = current + node.strides[v.name] * self.digits[base, k]
            else:
                previous = previous + node.strides[v.name] * self.digits[base, k - 1]
        return previous, current, tuple(observed)

    @cached_property
    def transitions(self) -> dict[int, tuple[TransitionTable, ...]]:
        """The tables that make the transition in each phase, by its number."""
        every = ((phase, [n for n in self.unknown if phase.nodes[n].by_table]) for phase in self.phases)
        return {
            phase.number: tuple(TransitionTable(phase.keys[n], *self.offsets(phase.nodes[n], emitted=False)) for n in names)
            for phase, names in every
        }

    @cached_property
    def allowed(self) -> dict[int, Array]:
        """Which states may follow which in each phase: what a state has of earlier steps is a copy; what is not there yet is
        0."""
        result = {phase.number: np.ones((self.size, self.size), bool) for phase in self.phases}
        for (number, may), (name, k) in product(result.items(), self.members):
            if k > number:
                may &= (self.digits[name, k] == 0)[None, :]
            elif k:
                may &= self.digits[name, k][None, :] == self.digits[name, k - 1][:, None]
        return {number: may.astype(np.float64) for number, may in result.items()}


FEW = 2**16
"""Codes below this are looked up, not sorted."""

GLANCE = 2**12
"""So many steps often show all codes that there are."""


class Kinds(NamedTuple):
    """Steps that are alike: the kind of each step, and of each kind its phase and codes."""

    kind: npt.NDArray[np.int32]
    phase: Ints
    codes: dict[str, Ints]

    @classmethod
    def of(cls, phase: Ints | int, columns: Mapping[str, npt.NDArray[Any]]) -> Kinds:
        """Kinds by the codes of columns and by the phase, unless that is the same for all steps."""
        apart = [] if isinstance(phase, int) else [phase]
        cells = [*apart, *columns.values()]
        if len(cells) == 1 and int(cells[0].max(initial=0)) < FEW:
            column = cells[0]
            there = np.zeros(int(column.max(initial=0)) + 1, np.bool_)
            there[column[:GLANCE]] = True
            if not there.all():
                there[column] = True
            first = np.flatnonzero(there)
            kind = column.astype(np.int32) if there.all() else (np.cumsum(there, dtype=np.int32) - 1)[column]
            codes = dict.fromkeys(columns, first)
            return cls(kind, np.full(len(first), phase) if not apart else first, codes)
        rows, inverse = distinct(cells, len(cells[0]))
        codes = {name: column[rows].astype(np.int64) for name, column in columns.items()}
        return cls(inverse.astype(np.int32), np.full(len(rows), phase) if not apart else phase[rows], codes)  # type: ignore[index]

    def of_phase(self, number: int) -> tuple[npt.NDArray[np.intp], dict[str, Ints]]:
        """The kinds of a phase and their codes."""
        some = np.flatnonzero(self.phase == number)
        return some, {name: codes[some] for name, codes in self.codes.items()}


@dataclass(frozen=True, eq=False)
class WholeSequences:
    """The whole sequences of a block: its number, where each begins, one more for the end, and their weights."""

    number: int
    starts: Ints
    weight: Array | None

    @property
    def n_steps(self) -> int:
        return int(self.starts[-1])


class ImpossibleSequence(FitError):
    """A sequence without probability under the parameters: the number of its block, and the step there at which it is lost."""


Columns = dict[str, npt.NDArray[Any]]


@dataclass(frozen=True, eq=False)
class StepLayout:
    """A template's nodes as steps of sequences need them. It travels with the steps that are folded over sequences. `shown` are
    the columns that the data have; `counted` the parameter nodes whose families every step shows: they are counted once, and take
    no part in expectations. `stationary`: the joint state begins as its transition settles. `only` are the variables that a part
    of a template is about, whose states are passed on elsewhere (`incomplete.chains.factored_rows`)."""

    space: StateSpace
    tables: FlatTables
    units: Units
    shown: tuple[str, ...]
    counted: frozenset[str]
    stationary: bool = False
    only: frozenset[str] | None = None

    @property
    def phases(self) -> tuple[Phase, ...]:
        return self.space.phases

    @cached_property
    def nodes(self) -> dict[str, NodeFamily]:
        """The nodes that have parameters."""
        return parameter_nodes(self.phases[-1:] if self.stationary else self.phases)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The columns of all nodes, at their lags, as far as the data have them."""
        every = {n for phase in self.phases for n in phase.columns}
        if self.only is not None:
            own = (node for p in self.phases for node in self.emitting_nodes(p).values())
            every = {v.name for node in own for v in node.members} | {n for n in self.only if n in self.space.unknown}
        return tuple(n for n in sorted(every) if variable_and_lag(n)[0] in self.shown)

    def emitting_nodes(self, phase: Phase, *, by_table: bool | None = None) -> dict[str, NodeFamily]:
        """The nodes of a phase whose variable is not part of the joint state: all of them, the tables, or the others."""
        own = {n: node for n, node in phase.nodes.items() if n not in self.space.unknown and phase.keys[n] not in self.counted}
        return {n: node for n, node in own.items() if by_table in (None, node.by_table) and self._has(n)}

    def _has(self, name: str) -> bool:
        return self.only is None or name in self.only

    @cached_property
    def moving(self) -> tuple[str, ...]:
        """The unknown variables, whose nodes make the transition: none in a part of a template."""
        return self.space.unknown if self.only is None else ()

    @cached_property
    def labelled(self) -> tuple[str, ...]:
        """The unknown variables that some steps may show."""
        return tuple(n for n in self.space.unknown if n in self.shown and self._has(n))

    @cached_property
    def stepwise(self) -> bool:
        """Whether transitions are regressions on what each step shows: then every step has a matrix of its own."""
        return any(not phase.nodes[n].by_table for phase in self.phases for n in self.moving)

    def settling(self, theta: Theta) -> Array:
        """The transition of all steps but the first, as far as tables say it, where no observed cell takes part in it."""
        number = self.phases[-1].number
        product = self.space.allowed[number].copy()
        for table in self.space.transitions[number]:
            product *= theta.cells[theta.tables.cells[table.key]][table.cells({})[0]]
        return product

    @cached_property
    def varies(self) -> bool:
        """Whether tables that steps emit have parameters of their own in first slices."""
        keys = [[phase.keys[n] for n in self.emitting_nodes(phase, by_table=True)] for phase in self.phases]
        return any(own != keys[-1] for own in keys)

    def unroll(self, block: Block) -> tuple[Ints, Array | None, Ints, Ints, Columns]:
        """Of a block of whole sequences: where each begins, one more for the end, and its weight; the place of each step in its
        sequence, and its phase; and the columns at their lags, of which what lies before the first step is missing."""
        assert block.lengths is not None
        starts, step = np.concatenate([[0], np.cumsum(block.lengths)]).astype(np.int64), places_of(block.lengths)
        places = ((name, *variable_and_lag(name)) for name in self.names)
        columns = {name: lag_cells(block.columns[base], step, k) for name, base, k in places}
        weight = None if block.weight is None else block.weight[starts[:-1]]
        return starts, weight, step, np.minimum(step, len(self.phases) - 1), columns
