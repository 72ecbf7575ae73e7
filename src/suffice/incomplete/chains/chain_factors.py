"""Unknown finite variables of a step, passed on factor by factor: which tables a step multiplies, over which variables.

The variables are the unknown ones at lags 0, 1, …, as far back as a node asks. Each unknown variable's node is a factor over
itself and its unknown parents; what a step shows are factors over the unknown variables that it depends on. A program
(`inference.chains.factored.slice_program`) takes a table over what the future needs from one step to the next. Whether that or
one joint state with a matrix of transitions is taken is decided by counts of products, which are known beforehand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from suffice.errors import TooLarge, bytes_in_words, listing
from suffice.errors.remedies import FIRST_STATIONARY
from suffice.graphs.lagged import relative_name, variable_and_lag
from suffice.incomplete.chains.chain_states import MAX_STATES, Phase, StateSpace
from suffice.incomplete.chains.step_layout import StepLayout
from suffice.incomplete.components import NodeFamily
from suffice.inference.chains.factored.slice_program import Scope, SliceProgram

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

    def moves(self, phase: Phase) -> tuple[Scope, ...]:
        """What the nodes of unknown variables are about."""
        return tuple(self.scope(unknown_places(self.layout.space, phase.nodes[n])) for n in self.layout.space.unknown)

    @cached_property
    def program(self) -> SliceProgram:
        """That of all steps but the first ones."""
        shown = tuple(self.scope(part.space.members) for part in self.parts)
        return SliceProgram.of(self.sizes, self.old, self.kept, (*self.moves(self.layout.phases[-1]), *shown))

    def refuse_large(self) -> None:
        """Refuse tables that are too large."""
        if self.program.largest > MAX_TABLE:
            names = [relative_name(*self.places[i]) for i in self.kept]
            n = self.program.cells(self.kept)
            raise TooLarge(
                f"the hidden variables {listing(names)} have {n:,} joint states at a step; passed on factor by factor they still "
                f"need a table of {self.program.largest:,} cells ({bytes_in_words(8.0 * self.program.largest)}), more than "
                f"{MAX_TABLE:,}: take fewer states, or fewer hidden variables that depend on each other"
            )


def plan_of(layout: StepLayout) -> FactorPlan | None:
    """Factor by factor where that takes fewer products, or where a matrix of joint states would be too large."""
    space = layout.space
    if layout.only is not None or space.size**2 <= FIXED:
        return None
    if layout.stationary:
        space.checked(str(FIRST_STATIONARY))
        return None
    plan = FactorPlan.of(layout)
    if space.size > MAX_STATES:
        plan.refuse_large()
        return plan
    program = plan.program
    return plan if FIXED + DEARER * program.cost < space.size**2 and program.largest <= MAX_TABLE else None


def unknown_places(space: StateSpace, node: NodeFamily) -> list[Place]:
    """The unknown variables of a node with their lags, in the order of its table."""
    return [(base, k) for base, k in map(variable_and_lag, (v.name for v in node.members)) if base in space.unknown]


def _parts(layout: StepLayout) -> Iterable[StepLayout]:
    """What steps show, apart by the unknown variables that it depends on."""
    nodes: dict[str, list[NodeFamily]] = {}
    for phase in layout.phases:
        for by_table in (True, False):
            for name, node in layout.emitted(phase, by_table=by_table).items():
                nodes.setdefault(name, []).append(node)
    groups: dict[tuple[Place, ...], set[str]] = {}
    for name in layout.labelled:
        groups.setdefault(((name, 0),), set()).add(name)
    for names in _together(nodes):
        places = {place for name in names for node in nodes[name] for place in unknown_places(layout.space, node)}
        groups.setdefault(tuple(sorted(places)), set()).update(names)
    for members, names in sorted(groups.items()):
        yield replace(layout, space=layout.space.part(members), only=frozenset(names))


def _together(nodes: dict[str, list[NodeFamily]]) -> list[set[str]]:
    """Variables that must be summed out together where they are missing: numbers, and numbers that depend on them."""
    groups: list[set[str]] = []
    for name, own in nodes.items():
        linked = {name, *(v.name for node in own if not node.by_table for v in node.parents if v.name in nodes)}
        touching = [g for g in groups if g & linked]
        groups = [g for g in groups if g not in touching] + [set().union(linked, *touching)]
    return groups
