"""Sequences of a block whose unknown variables are passed on factor by factor, and what is said of them.

The variables are the unknown ones at lags 0, 1, …, as far back as a node asks. Each unknown variable's node is a factor over
itself and its unknown parents; what a step shows are factors over the unknown variables that it depends on. A program
(`inference.chains.factored.slice_program`) takes a table over what the future needs from one step to the next. Whether that or
one joint state with a matrix of transitions is taken, which a `ChainLayout` says, is decided by counts of products, which are
known beforehand.

What steps show is reduced as for joint states, part by part: each part is a `ChainRows` whose states are those of the unknown
variables that it depends on. All of them and the nodes of the unknown variables are the factors of a step.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.engines.engine import Block, add_up
from suffice.errors import TooLarge, bytes_in_words, listing
from suffice.errors.remedies import FIRST_STATIONARY
from suffice.graphs.lagged import relative_name, variable_and_lag
from suffice.incomplete.chains.chain_batches import Scored
from suffice.incomplete.chains.chain_rows import ChainRows, StepRegression, checked_logs, regressions
from suffice.incomplete.chains.chain_states import MAX_STATES, Columns, Kinds, StateSpace, StepLayout, WholeSequences
from suffice.incomplete.chains.reduced_steps import Drawn, Followed, ShownPart, StatesFound, certain, observed_columns
from suffice.incomplete.components import Expectation, NodeFamily, Theta
from suffice.incomplete.numbers.patterns import connected_sets
from suffice.numerics.inference.chains.factored.factor_steps import FactorSteps, StepFactor
from suffice.numerics.inference.chains.factored.factored import expect_factors, paths_of_factors
from suffice.numerics.inference.chains.factored.slice_program import Scope, SliceProgram

Place = tuple[str, int]
"""A variable, and how many steps back."""

DEARER = 4
"""A product of a program costs as much as so many of a matrix, whose kernels are compiled; and"""

FIXED = 2**17
"""a step costs as much as so many besides. Up to 362 joint states are never passed on factor by factor."""

MAX_TABLE = 2**22
"""A program with a table of more cells than this is refused: 32 MiB, of which a step needs several."""


@dataclass(frozen=True, eq=False)
class FactorPlan:
    """The variables that steps are about, numbered, and the parts of what steps show, by the variables that they depend on."""

    layout: StepLayout
    places: tuple[Place, ...]
    parts: tuple[StepLayout, ...]

    @classmethod
    def of(cls, layout: StepLayout) -> FactorPlan:
        space = layout.space
        back = dict.fromkeys(space.unknown, 0)
        for node in (node for phase in layout.phases for node in phase.nodes.values()):
            for base, k in unknown_places(space, node):
                back[base] = max(back[base], k)
        return cls(layout, tuple((n, k) for n in sorted(back) for k in range(back[n] + 1)), tuple(_parts(layout)))

    @cached_property
    def number(self) -> dict[Place, int]:
        return {place: i for i, place in enumerate(self.places)}

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        found: Any = self.layout.phases[-1].nodes
        return tuple(found[name].child.n_states for name, _ in self.places)

    @cached_property
    def old(self) -> Scope:
        """The variables of the past that a step is about, and"""
        return tuple(i for i, (_, k) in enumerate(self.places) if k)

    @cached_property
    def kept(self) -> Scope:
        """the same, one step on."""
        return tuple(self.number[self.places[i][0], self.places[i][1] - 1] for i in self.old)

    def scope(self, places: Iterable[Place]) -> Scope:
        return tuple(self.number[place] for place in places)

    @cached_property
    def program(self) -> SliceProgram:
        """That of all steps but the first ones."""
        space, nodes = self.layout.space, self.layout.phases[-1].nodes
        moves = (self.scope(unknown_places(space, nodes[n])) for n in space.unknown)  # what these nodes are about
        shown = (self.scope(part.space.members) for part in self.parts)
        return SliceProgram.of(self.sizes, self.old, self.kept, (*moves, *shown))


def unknown_places(space: StateSpace, node: NodeFamily) -> list[Place]:
    """The unknown variables of a node with their lags, in the order of its table."""
    return [(base, k) for base, k in map(variable_and_lag, (v.name for v in node.members)) if base in space.unknown]


def _parts(layout: StepLayout) -> Iterable[StepLayout]:
    """What steps show, apart by the unknown variables that it depends on."""
    nodes: dict[str, list[NodeFamily]] = {}
    for phase in layout.phases:
        for name, node in layout.emitting_nodes(phase).items():
            nodes.setdefault(name, []).append(node)
    groups: dict[tuple[Place, ...], set[str]] = {}
    for name in layout.labelled:
        groups.setdefault(((name, 0),), set()).add(name)
    # numbers, and numbers that depend on them, must be summed out together where they are missing
    linked = [
        {name, *(v.name for node in families if not node.by_table for v in node.parents if v.name in nodes)}
        for name, families in nodes.items()
    ]
    for names in connected_sets(frozenset(nodes), linked):
        places = {place for name in names for node in nodes[name] for place in unknown_places(layout.space, node)}
        groups.setdefault(tuple(sorted(places)), set()).update(names)
    for members, own in sorted(groups.items()):
        yield replace(layout, space=layout.space.part(members), only=frozenset(own))


MAX_LIKELIHOODS = 2**28
"""Likelihoods of steps by states beyond so many (2 GiB) are refused."""


class MoveTable(NamedTuple):
    """An unknown variable's table in a phase: the factor's variables; each step's kind; cells of the table, cell × kind."""

    phase: int
    key: str
    scope: Scope
    codes: npt.NDArray[np.int32]
    cells: Ints


class _Factors(NamedTuple):
    """The factors of steps: that of each move, and of each regression; of each part those of its symbols and of its numbers, −1
    for none, and what these remember; and a factor of ones for each variable that is asked for."""

    steps: FactorSteps
    regressions: list[StepRegression]
    parts: list[tuple[int, int, list[Scored]]]
    ones: dict[str, int]


@dataclass(frozen=True, eq=False)
class FactoredRows(WholeSequences):
    """Whole sequences, reduced."""

    plan: FactorPlan
    phase: Ints
    moves: tuple[MoveTable, ...]
    parts: tuple[ChainRows, ...]
    inputs: Columns

    @classmethod
    def of(cls, plan: FactorPlan, block: Block) -> FactoredRows:
        layout, n = plan.layout, block.n_rows
        for part in plan.parts:
            K = part.space.size
            if K * n > MAX_LIKELIHOODS and any(part.emitting_nodes(phase, by_table=False) for phase in part.phases):
                raise TooLarge(
                    f"{listing(sorted(part.only or ()))} depends on {K:,} joint states, and {n:,} steps are read at a time: "
                    f"their likelihoods would need {bytes_in_words(8.0 * K * n)}; take shorter sequences, or fewer states"
                )
        starts, weight, _, phase, columns = layout.unroll(block)
        parts = tuple(ChainRows.of(part, block) for part in plan.parts)
        inputs = columns if layout.stepwise else {}
        return cls(block.number, starts, weight, plan, phase, tuple(_moves(plan, columns, phase)), parts, inputs)

    def _factors(self, theta: Theta, ones: Collection[str] = ()) -> _Factors:
        plan, n_phases = self.plan, len(self.plan.layout.phases)
        factors: list[StepFactor] = []
        active: list[list[int]] = [[] for _ in range(n_phases)]

        def add(scope: Scope, logs: Array, codes: Any, phases: Collection[int]) -> int:
            for number in phases:
                active[number].append(len(factors))
            factors.append(StepFactor(scope, logs, codes))
            return len(factors) - 1

        for move in self.moves:
            add(move.scope, theta.log_tables[move.key][move.cells], move.codes, [move.phase])
        found = list(regressions(plan.layout, self.phase, self.inputs, theta) if self.inputs else ())
        for r in found:
            logs = np.zeros((r.n, self.n_steps))
            logs[:, r.some] = r.cpd.log_prob(r.columns).reshape(r.n, len(r.some))
            add(plan.scope(map(variable_and_lag, r.inner)), logs, None, [r.phase])
        shown = []
        for part in self.parts:
            likelihoods, scored = part.likelihoods(theta)
            scope, by_symbol, by_step = plan.scope(part.layout.space.members), -1, -1
            if likelihoods.table is not None:
                with np.errstate(divide="ignore"):
                    by_symbol = add(scope, np.log(likelihoods.table).T, likelihoods.symbols, range(n_phases))
            if likelihoods.log_likelihood is not None:
                by_step = add(scope, likelihoods.log_likelihood, None, range(n_phases))
            shown.append((by_symbol, by_step, scored))
        none = np.zeros(self.n_steps, np.int32)
        unit = {n: add((v := plan.number[n, 0],), np.zeros((plan.sizes[v], 1)), none, range(n_phases)) for n in ones}
        fixed = tuple(factors), tuple(map(tuple, active)), self.weight
        steps = FactorSteps(self.starts, self.phase, plan.sizes, plan.old, plan.kept, *fixed)
        return _Factors(steps, found, shown, unit)

    def expect(self, theta: Theta) -> Expectation:
        """What the sequences are expected to count, and ln p of what they show."""
        own = self._factors(theta)
        counted = [*range(len(self.moves) + len(own.regressions)), *(f for f, _, _ in own.parts if f >= 0)]
        found = expect_factors(own.steps, counted=counted, stepwise=[f for _, f, _ in own.parts if f >= 0])
        total = Expectation(checked_logs(self, found.log_likelihood, found.stuck), np.zeros(theta.tables.n_cells), {}, {})
        for f, move in enumerate(self.moves):
            cells = total.cells[theta.tables.cells[move.key]]
            cells += np.bincount(move.cells.reshape(-1), found.counts[f].reshape(-1), len(cells))
        for f, r in enumerate(own.regressions, len(self.moves)):
            r.count(theta, found.counts[f][:, r.some], total)
        result = [total]
        for rows, (by_symbol, by_step, scored) in zip(self.parts, own.parts, strict=True):
            posterior = found.posterior.get(by_step, np.zeros((rows.layout.space.size, 0)))
            counts = found.counts[by_symbol].T if by_symbol >= 0 else None
            result.append(rows.shown_expectation(theta, scored, counts, posterior))
        return reduce(add_up, result)

    def posterior(self, theta: Theta, names: Collection[str], *, smooth: bool) -> StatesFound:
        """p(state) of these unknown variables at each step, and what is said of the parts that others of them belong to."""
        own = self._factors(theta, [n for n in names if n in self.plan.layout.space.unknown])
        return self._expect_steps(own, own.steps, names, filtered=not smooth)[0]

    def _expect_steps(
        self, own: _Factors, steps: FactorSteps, names: Collection[str], *, filtered: bool
    ) -> tuple[StatesFound, Array]:
        """What is expected of variables and parts at each step, and what is known after the last."""
        shown = [i for i, rows in enumerate(self.parts) if not rows.layout.only.isdisjoint(names)]  # type: ignore[union-attr]
        which = {i: max(own.parts[i][:2]) for i in shown}  # either factor of a part says the same of its states
        found = expect_factors(replace(steps, weights=None), stepwise=[*own.ones.values(), *which.values()], filtered=filtered)
        states = {n: found.posterior[f] for n, f in own.ones.items()}
        parts = [ShownPart(self.parts[i], found.posterior[f], own.parts[i][2]) for i, f in which.items()]
        return StatesFound(found.log_likelihood, found.stuck, states, parts), found.last

    def best(self, theta: Theta, n: int) -> tuple[dict[str, npt.NDArray[np.int32]], Array]:
        """The most probable path of each unknown variable (path × step) and ln p (sequence × path)."""
        assert n == 1
        found = paths_of_factors(self._factors(theta).steps)
        states = {name: found.states[self.plan.number[name, 0]][None] for name in self.plan.layout.space.unknown}
        return states, found.log_prob[:, None]

    def draw_paths(self, theta: Theta, rng: np.random.Generator) -> Drawn:
        """Paths of the unknown variables given all that is seen."""
        plan, own = self.plan, self._factors(theta)
        found = paths_of_factors(own.steps, rng.random((len(plan.sizes), self.n_steps)))
        states = {n: found.states[plan.number[n, 0]].astype(np.int64) for n in plan.layout.space.unknown}
        parts = []
        for rows, (_, _, scored) in zip(self.parts, own.parts, strict=True):
            path = np.zeros(self.n_steps, np.int64)
            for v in plan.scope(rows.layout.space.members):
                path = path * plan.sizes[v] + found.states[v]
            path = np.where(found.states[0] < 0, -1, path)
            parts.append(ShownPart(rows, certain(path, rows.layout.space.size), scored))
        return Drawn(states, parts)

    def follow(self, theta: Theta, before: Array | None, names: Collection[str]) -> Followed:
        """The filter after the last step, by what was known before it."""
        own = self._factors(theta, self.plan.layout.space.unknown)
        last = replace(own.steps, starts=np.array([own.steps.n_steps - 1, own.steps.n_steps]), before=before)
        found, after = self._expect_steps(own, last, names, filtered=True)
        return Followed(float(found.log_likelihood[0]), after, {n: p[:, -1] for n, p in found.states.items()}, found.parts)


def _moves(plan: FactorPlan, columns: Mapping[str, Any], phases: Ints) -> Iterator[MoveTable]:
    """The tables of unknown variables, phase by phase."""
    space = plan.layout.space
    for name in space.unknown:
        driving = observed_columns(plan.layout, {v.name for p in plan.layout.phases for v in p.nodes[name].parents})
        kinds = Kinds.of(phases, {n: columns[n] for n in driving if columns[n].dtype.kind != "f"})
        for phase in plan.layout.phases:
            node, (some, codes) = phase.nodes[name], kinds.of_phase(phase.number)
            if not node.by_table or not len(some):
                continue
            places = unknown_places(space, node)
            _, current, observed = space.part(places).offsets(node, emitted=True)
            base = sum((stride * codes[n] for n, stride in observed), np.zeros(len(some), np.int64))
            place = np.zeros(len(kinds.phase), np.int32)
            place[some] = np.arange(len(some))
            yield MoveTable(phase.number, phase.keys[name], plan.scope(places), place[kinds.kind], current[:, None] + base)


@dataclass(frozen=True, eq=False)
class ChainLayout(StepLayout):
    """A template's nodes as steps of sequences need them, and how blocks of whole sequences are reduced."""

    @cached_property
    def plan(self) -> FactorPlan | None:
        """How unknown variables are passed on factor by factor: where that takes fewer products than all of them as one state, or
        where a matrix of joint states would be too large. Tables that are too large, too, are refused."""
        space = self.space
        if self.only is not None or space.size**2 <= FIXED:
            return None
        if self.stationary:
            space.check_size(str(FIRST_STATIONARY))
            return None
        plan = FactorPlan.of(self)
        program = plan.program
        if space.size <= MAX_STATES:
            cheaper = FIXED + DEARER * program.cost < space.size**2
            return plan if cheaper and program.largest <= MAX_TABLE else None
        if program.largest > MAX_TABLE:
            names = [relative_name(*plan.places[i]) for i in plan.kept]
            raise TooLarge(
                f"the hidden variables {listing(names)} have {program.cells(plan.kept):,} joint states at a step; passed on "
                f"factor by factor they still need a table of {program.largest:,} cells "
                f"({bytes_in_words(8.0 * program.largest)}), more than {MAX_TABLE:,}: take fewer states, or fewer "
                "hidden variables that depend on each other"
            )
        return plan

    def rows(self, block: Block) -> ChainRows | FactoredRows:
        """A block of whole sequences, reduced."""
        return ChainRows.of(self, block) if self.plan is None else FactoredRows.of(self.plan, block)
