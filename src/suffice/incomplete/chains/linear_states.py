"""The state of a sequence's unknown numbers at a step, and which part of it each normal node speaks of.

    z_t                  the unknown numbers at step t, some of them also as they were a few steps before
    transition           u_t = a + B₀ u_t + B z_{t−1} + C (observed) + e    of the unknown numbers; earlier ones are copied
    outputs              y_t = a + B z_t + C (observed) + e                 of the other normal nodes that touch them

A cell of an unknown number that a step shows after all is an output without noise. Which lags belong to z_t follows from what
nodes need: those of unknown numbers have z_{t−1} at hand, others only z_t.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from suffice.basis.variables import Finite
from suffice.errors import FitError, ModelError, listing
from suffice.errors.remedies import FIRST_DIFFUSE, FREE, INTO_BINS, STATIONARY, of_python
from suffice.graphs.lagged import relative_name, variable_and_lag
from suffice.incomplete.chains.chain_states import Phase, members_of_state
from suffice.incomplete.components import NodeFamily
from suffice.incomplete.first_slices import Diffuse, First, Stationary

OBSERVED = -1
"""The place of a number that is no part of the state."""


class LinearTerm(NamedTuple):
    """A normal node in a phase. `places` says of each of its numbers, parents and then child, where it is in (z_t, z_{t−1});
    `OBSERVED` ones are columns under their own names."""

    name: str
    key: str
    node: NodeFamily
    moving: bool
    """Whether it is part of the transition; else it is an output."""
    places: tuple[int, ...]

    @property
    def inside(self) -> list[tuple[int, int]]:
        """The parents that are part of the state: their number among the parents, and their place."""
        return [(i, p) for i, p in enumerate(self.places[:-1]) if p != OBSERVED]

    @property
    def outside(self) -> list[tuple[int, str]]:
        """The observed parents: their number among the parents, and their column."""
        return [(i, self.node.reals[i]) for i, p in enumerate(self.places[:-1]) if p == OBSERVED]


@dataclass(frozen=True, eq=False)
class LinearSpace:
    """The unknown numbers: `members` are they with how many steps back each is. `diffuse` are the nodes of first slices without
    any distribution; a space that `settles` begins as its transition settles, and has no first slices."""

    phases: tuple[Phase, ...]
    unknown: tuple[str, ...]
    members: tuple[tuple[str, int], ...]
    diffuse: frozenset[str] = frozenset()
    settles: bool = False

    @classmethod
    def of(
        cls, phases: Sequence[Phase], unknown: Sequence[str], *, diffuse: Collection[str] = (), settles: bool = False
    ) -> LinearSpace:
        """`unknown` as `unknown_numbers` gives them."""
        own = tuple(phases[-1:] if settles else phases)
        space = cls(own, tuple(unknown), members_of_state(own, unknown), frozenset(diffuse), settles)
        space._refuse()
        return space

    @property
    def size(self) -> int:
        """How many coordinates z_t has."""
        return len(self.members)

    @cached_property
    def place(self) -> dict[tuple[str, int], int]:
        """Where each member is in z_t."""
        return {member: i for i, member in enumerate(self.members)}

    @property
    def names(self) -> list[str]:
        """The members as columns."""
        return [relative_name(n, k) for n, k in self.members]

    def touches(self, node: NodeFamily) -> bool:
        """Whether a node speaks of an unknown number."""
        return any(variable_and_lag(v.name)[0] in self.unknown for v in node.members)

    @cached_property
    def terms(self) -> tuple[tuple[LinearTerm, ...], ...]:
        """The nodes of each phase that speak of unknown numbers."""
        before = {(n, k + 1): self.size + i for (n, k), i in self.place.items()}  # where z_{t−1} has what is so far back
        every = []
        for phase in self.phases:
            own = []
            for name, node in ((name, node) for name, node in phase.nodes.items() if self.touches(node)):
                moving = name in self.unknown
                at = {**self.place, **before} if moving else self.place
                lagged = map(variable_and_lag, node.reals)
                places = tuple(at[n, k] if n in self.unknown else OBSERVED for n, k in lagged)
                own.append(LinearTerm(name, phase.keys[name], node, moving, places))
            every.append(tuple(own))
        return tuple(every)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The parameter nodes that speak of unknown numbers."""
        return frozenset(term.key for terms in self.terms for term in terms)

    @cached_property
    def outputs(self) -> tuple[str, ...]:
        """The variables that are outputs in some phase."""
        return tuple(dict.fromkeys(t.name for terms in self.terms for t in terms if not t.moving))

    def _refuse(self) -> None:
        """Refuse nodes that are not normal, and starts that the filter cannot have."""
        for term in (t for terms in self.terms for t in terms):
            if not term.node.normal:
                about = [v.name for v in term.node.members if variable_and_lag(v.name)[0] in self.unknown]
                raise FitError(
                    f"{listing(dict.fromkeys(variable_and_lag(n)[0] for n in about))} is unknown and bears on other steps, and "
                    f"{term.name!r} is not Gaussian in it but {type(term.node.family).__name__}: such numbers cannot be summed "
                    f"out exactly; fill its cells in, cut it {INTO_BINS}, or, if only {STATIONARY} asks for it, use {FREE}"
                )
        for phase, terms in zip(self.phases, self.terms, strict=True):
            anywhere = {phase.keys[n] for n in self.unknown} & self.diffuse
            for term in (t for t in terms if t.moving and t.key not in self.diffuse):
                lost = [self.members[p][0] for _, p in term.inside if p < self.size]
                if any(phase.keys[n] in anywhere for n in lost):
                    raise FitError(
                        f"{FIRST_DIFFUSE}: {lost[0]!r} begins anywhere, and {term.name!r}, unknown too, depends on it within the "
                        f"step: give the first slices with {FREE}{of_python(' or Given(...)')}"
                    )
        for term in (t for t in self.terms[-1] if t.moving and self.settles):
            if inputs := [n for _, n in term.outside] + [v.name for v in term.node.finite]:
                raise ModelError(
                    f"what the numbers settle to depends on the input {inputs[0]!r} of {term.name!r}: there is no one "
                    f"distribution; use {FREE}"
                )


def linear_space(
    phases: Sequence[Phase],
    first: First,
    states: Sequence[str],
    numbers: Sequence[str],
    incomplete: Collection[str],
    *,
    anywhere: Mapping[str, str] | None = None,
) -> LinearSpace | None:
    """The space of unknown numbers, or None without any. `states` are the unknown finite variables; `anywhere` the nodes that
    begin anywhere with `Diffuse()` and their variables, if these are not all that unknown numbers have in first slices."""
    settles, kinds = isinstance(first, Stationary), {name: node.child for name, node in phases[-1].nodes.items()}
    if settles:  # finite variables may carry a stationary chain on; together with numbers they are refused
        carriers = names_in_state(phases)
        finite = [n for n in carriers if isinstance(kinds[n], Finite)]
        others = [*(n for n in carriers if n not in finite), *numbers]
        if finite and others:
            raise FitError(
                f"{STATIONARY} is of states or of numbers, and here {listing(finite)} and {listing(dict.fromkeys(others))} both "
                f"bear on later steps: use {FREE}"
            )
        settles = not finite
    wanted = {*numbers, *(names_in_state(phases) if settles else ()), *(anywhere or {}).values()}
    if not wanted:
        return None
    if states:
        raise FitError(
            f"{listing(states)} (states) and {listing(sorted(wanted))} (numbers) are both unknown and bear on later steps: a "
            "switching state space, whose exact posterior grows as Kᵗ with the steps t; fill the cells of one of them in"
        )
    unknown = unknown_numbers(phases, wanted, incomplete)
    diffuse: Collection[str] = ()
    if isinstance(first, Diffuse):
        diffuse = {p.keys[n] for p in phases[:-1] for n in unknown if p.keys[n] != n} if anywhere is None else anywhere
    return LinearSpace.of(phases, unknown, diffuse=diffuse, settles=settles)


def unknown_numbers(phases: Sequence[Phase], numbers: Collection[str], incomplete: Collection[str]) -> tuple[str, ...]:
    """The numbers that a state must have: those given, and missing ones with children in families that speak of them."""
    kinds = {name: node.child for name, node in phases[-1].nodes.items()}
    nodes = [node for p in phases for node in p.nodes.values()]
    parents = {variable_and_lag(v.name)[0] for node in nodes for v in node.parents}
    families = [{variable_and_lag(v.name)[0] for v in node.members} for node in nodes]
    lacking, found = {n for n in parents & set(incomplete) if not isinstance(kinds[n], Finite)}, set(numbers)
    while more := {n for family in families if family & found for n in family & lacking} - found:
        found |= more
    return tuple(n for n in phases[-1].nodes if n in found)


def names_in_state(phases: Sequence[Phase]) -> list[str]:
    """What must be in the state of a chain that begins as it settles: what has lags, and what is a lagged parent."""
    nodes: Mapping[str, NodeFamily] = phases[-1].nodes
    lagged = {name: [base for base, k in (variable_and_lag(v.name) for v in node.parents) if k] for name, node in nodes.items()}
    found = {n for n, bases in lagged.items() if bases} | {b for bases in lagged.values() for b in bases}
    return [n for n in nodes if n in found]
