"""Patterns of missing cells: which variables are connected once the observed cells of a row are known.

Two missing variables are connected if they share a family (a node and its parents). A row falls into such components, and
everything about one of them depends on the cells of the families that touch it, which are observed. So a component is known by
its missing variables alone, and rows that miss other cells elsewhere share it. Missing numbers that have to be integrated are put
on points of Gauss–Hermite quadrature, or seeded draws.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools, Ints
from suffice.basis.variables import Finite, NotNormal
from suffice.engines.engine import Block, is_missing
from suffice.errors import FitError, TooLarge, listing, note
from suffice.errors.remedies import INTO_BINS
from suffice.graphs import Dag
from suffice.incomplete.components import NodeFamily
from suffice.statistics.counts import equal_lines, n_configurations, sizes

Missing = frozenset[str]
Key = Missing | str
"""A component by its missing variables, or a family without missing cells by its node."""

MAX_STATES = 2**16
"""A component of more joint states than this is refused: they are all enumerated."""


@dataclass(frozen=True, eq=False)
class Member:
    """A node within a component: its missing states are the axes `axes` of the component's, the rest of it is observed."""

    node: NodeFamily
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    offsets: Ints
    observed: tuple[tuple[int, int], ...]
    columns: tuple[int, ...]
    sources: Mapping[str, tuple[str, int]]

    @property
    def lacks(self) -> bool:
        """Whether numbers of it are missing."""
        return any(kind == "unknown" for kind, _ in self.sources.values())

    def index(self, codes: npt.NDArray[Any]) -> Ints:
        """The configuration of each local state (first axis) and row (last axis); one column if all rows have the same."""
        base = np.zeros((1, 1), np.int64)
        for position, stride in self.observed:
            base = base + stride * codes[position].astype(np.int64)
        return np.asarray(self.offsets[:, None] + base)

    def spread(self, term: Array) -> Array:
        """Something of local states and rows, as an array over the component's states and rows."""
        return term.reshape(*self.shape, term.shape[-1])

    def gather(self, weight: Array) -> Array:
        """Weights of the component's states and rows, summed to those of local states and rows."""
        others = tuple(a for a in range(len(self.shape)) if a not in self.axes)
        return np.asarray(weight.sum(axis=others) if others else weight).reshape(len(self.offsets), -1)


@dataclass(frozen=True, eq=False)
class Component:
    """Connected missing variables: finite ones, whose joint `states` are enumerated, and `unknown` numbers. `codes` and
    `reals` are the observed columns around them. Of the nodes that touch it, `lines` are normal with all their numbers observed,
    `joint` are normal with numbers missing, `others` are neither tables nor normal, `curved` such with numbers missing among
    their parents. `integrated` are unknown numbers that are put on points whether or not curved nodes want it; `summed` the
    places in `reals` of missing counts, which are put in value by value, as if they were observed."""

    states: tuple[Finite, ...]
    unknown: tuple[str, ...]
    codes: tuple[str, ...]
    reals: tuple[str, ...]
    tables: tuple[Member, ...]
    lines: tuple[Member, ...]
    joint: tuple[Member, ...]
    others: tuple[Member, ...]
    curved: tuple[Member, ...]
    mergeable: bool
    integrated: tuple[str, ...] = ()
    summed: tuple[int, ...] = ()

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return sizes(self.states)

    @cached_property
    def n_states(self) -> int:
        return n_configurations(self.states)

    @property
    def trivial(self) -> bool:
        """Whether no node is left that touches it."""
        return not (self.tables or self.lines or self.joint or self.others or self.curved)

    @property
    def by_moments(self) -> bool:
        """Whether moments of the observed numbers say all: there is nothing to enumerate."""
        return not self.states and bool(self.unknown) and not self.curved and not self.summed

    @cached_property
    def gridded(self) -> tuple[int, ...]:
        """The unknown numbers, by their places, that are put on points: those under curved nodes, and `integrated` ones."""
        curved = {at for x in self.curved for kind, at in x.sources.values() if kind == "unknown"}
        return tuple(sorted(curved | {self.unknown.index(n) for n in self.integrated}))

    @property
    def completed(self) -> tuple[str, ...]:
        """The missing numbers that are put in one by one: on points, or the values of counts."""
        return (*(self.unknown[i] for i in self.gridded), *(self.reals[i] for i in self.summed))

    @cached_property
    def n_completions(self) -> int:
        """In how many ways a row is completed."""
        return self.n_states * (n_points(len(self.gridded)) if self.gridded else 1)

    @cached_property
    def pools(self) -> tuple[tuple[Member, ...], ...]:
        """The `lines` whose moments are best taken together: those within the same configurations, if they share columns."""
        groups: dict[tuple[str, ...], list[Member]] = {}
        for local in self.lines:
            groups.setdefault(tuple(v.name for v in local.node.finite), []).append(local)
        result: list[tuple[Member, ...]] = []
        for group in groups.values():
            width = len({c for local in group for c in local.columns})
            apart = sum(len(local.columns) ** 2 for local in group)
            result += [tuple(group)] if width**2 <= 4 * apart else [(local,) for local in group]
        return tuple(result)

    @staticmethod
    def of(missing: Missing, nodes: Iterable[NodeFamily], most: int = MAX_STATES, integrated: Missing = frozenset()) -> Component:
        """The component of these variables, given the nodes that touch it; unknown numbers among `integrated` are put on points.
        A missing number that is nobody's parent and not normal is summed out: whatever it was, its probabilities sum to one;
        one that has children is a count."""
        touched = _without_barren(nodes, missing - integrated)
        members = {v.name: v for n in touched for v in n.members}
        states = tuple(v for n, v in sorted(members.items()) if n in missing and isinstance(v, Finite))
        if n_configurations(states) > most and all(n in missing for n in members):
            touched, states = [], ()  # nothing near it is observed: it says nothing, and nothing is expected of it
        elif n_configurations(states) > most:
            names = listing([v.name for v in states])
            raise TooLarge(
                f"where {names} are missing together they have {n_configurations(states):,} joint states, more than the "
                f"{most:,} that are enumerated; leave some of them out, or cut their states"
            )
        counts = {n.name for n in touched if n.by_rows and n.name in missing and not isinstance(n.child, Finite)}
        seen = {n for n in members if n not in missing or n in counts}
        unknown = tuple(n for n, v in sorted(members.items()) if n not in seen and not isinstance(v, Finite))
        codes = tuple(n for n, v in sorted(members.items()) if n in seen and isinstance(v, Finite))
        reals = tuple(n for n, v in sorted(members.items()) if n in seen and not isinstance(v, Finite))
        local = [_local(n, states, unknown, codes, reals) for n in touched]
        normal, by_rows = [x for x in local if x.node.normal], [x for x in local if x.node.by_rows]
        return Component(
            states,
            unknown,
            codes,
            reals,
            tuple(x for x in local if x.node.by_table),
            tuple(x for x in normal if not x.lacks),
            tuple(x for x in normal if x.lacks),
            tuple(x for x in by_rows if not x.lacks),
            tuple(x for x in by_rows if x.lacks),
            all(isinstance(members[r], NotNormal) for r in reals),
            tuple(n for n in unknown if n in integrated),
            tuple(i for i, n in enumerate(reals) if n in counts),
        )


def _without_barren(nodes: Iterable[NodeFamily], missing: Missing) -> list[NodeFamily]:
    """The nodes without missing numbers that are not normal, and have no children among those that are left."""
    left = list(nodes)
    while True:
        parents = {v.name for n in left for v in n.parents}
        numbers = {n.name for n in left if n.by_rows and not isinstance(n.child, Finite) and n.name in missing}
        if not numbers - parents:
            return left
        left = [n for n in left if n.name not in numbers - parents]


def _local(
    node: NodeFamily, states: Sequence[Finite], unknown: Sequence[str], codes: Sequence[str], reals: Sequence[str]
) -> Member:
    names = {v.name for v in node.members}
    axes = tuple(i for i, v in enumerate(states) if v.name in names)
    digits = digits_of([states[i].n_states for i in axes])
    offsets = np.zeros(digits.shape[1], np.int64)
    for i, digit in zip(axes, digits, strict=True):
        offsets += node.strides.get(states[i].name, 0) * digit
    places = {"state": [v.name for v in states], "unknown": unknown, "code": codes, "real": reals}
    sources = {n: (kind, i) for kind, place in places.items() for i, n in enumerate(place) if n in names}
    shape = tuple(v.n_states if i in axes else 1 for i, v in enumerate(states))
    observed = tuple((codes.index(v.name), node.strides[v.name]) for v in node.finite if v.name in codes)
    columns = tuple(reals.index(r) for r in node.reals if r in reals)
    return Member(node, axes, shape, offsets, observed, columns, sources)


def refuse_unanswerable(missing: Mapping[str, int], dag: Dag, nodes: Mapping[str, NodeFamily]) -> None:
    """Refuse missing numbers that are neither normal nor counts and have children. Normal ones under regressions are integrated
    over points, counts are summed, which is said."""
    lost = [n for n in nodes.values() if n.by_rows and missing.get(n.name) and dag.children(n.name)]
    counts = [node.name for node in lost if isinstance(node.child, NotNormal) and node.child.whole]
    for node in (node for node in lost if not isinstance(node.child, Finite) and node.name not in counts):
        kind = repr(node.family).partition("(")[0]
        raise FitError(
            f"cells of {node.name!r} are missing, which is neither Gaussian nor a count but {kind} and has children: "
            f"such numbers cannot be integrated; fill them, or cut {node.name!r} {INTO_BINS}"
        )
    under = {v.name: node.name for node in nodes.values() if node.by_rows for v in node.parents if missing.get(v.name)}
    if counts:
        note(f"{SUMMED}: {listing(counts)}")
    if numbers := {v: child for v, child in under.items() if nodes[v].normal}:
        note(f"{INTEGRATED}: {listing(list(numbers))}")


def digits_of(shape: Sequence[int]) -> npt.NDArray[np.intp]:
    """The state of each variable (first axis) in each of their joint states.

    >>> digits_of([2, 2])
    array([[0, 0, 1, 1],
           [0, 1, 0, 1]])
    """
    return np.indices(tuple(shape)).reshape(len(shape), math.prod(shape))


class PatternFinder:
    """Finds the components of rows, of at most `most` joint states; each is worked out once. `hidden` are variables that no
    row shows: nodes that are not columns, unless others are named. Numbers that are `integrated` are in one component where a row
    lacks several of them, and are put on points together."""

    def __init__(
        self,
        nodes: Mapping[str, NodeFamily],
        columns: Sequence[str],
        most: int = MAX_STATES,
        hidden: Iterable[str] | None = None,
        integrated: Iterable[str] = (),
    ) -> None:
        self.nodes, self.columns, self.most, self.integrated = nodes, tuple(columns), most, frozenset(integrated)
        self.hidden = frozenset((n for n in nodes if n not in self.columns) if hidden is None else hidden)
        self._keys: dict[bytes, tuple[Missing, ...]] = {}
        self._components: dict[Key, Component] = {}

    def missing(self, block: Block) -> Bools:
        """Which cells are missing: one row per column."""
        return np.array([is_missing(block.columns[n]) for n in self.columns]).reshape(len(self.columns), -1)

    def complete_rows(self, node: NodeFamily, missing: Bools) -> npt.NDArray[np.intp] | None:
        """The rows that have every cell of a node's family; None if there are none."""
        names = [v.name for v in node.members]
        if any(n in self.hidden for n in names):
            return None
        some = np.flatnonzero(~missing[[self.columns.index(n) for n in names]].any(axis=0))
        return some if len(some) else None

    def split(self, missing: Bools) -> dict[Key, npt.NDArray[np.intp]]:
        """The components that occur, and the rows of each, increasing."""
        rows: dict[Key, list[npt.NDArray[np.intp]]] = {}
        for some in equal_lines(missing.T):
            for key in self._of(missing[:, some[0]]):
                rows.setdefault(key, []).append(some)
        return {key: parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts)) for key, parts in rows.items()}

    def component(self, key: Key) -> Component:
        if key not in self._components:
            whole = isinstance(key, str)
            nodes = [n for n in self.nodes.values() if (n.name == key if whole else any(v.name in key for v in n.members))]
            self._components[key] = Component.of(frozenset() if isinstance(key, str) else key, nodes, self.most, self.integrated)
        return self._components[key]

    def _of(self, missing: Bools) -> tuple[Missing, ...]:
        if (pattern := missing.tobytes()) not in self._keys:
            names = self.hidden | {n for n, m in zip(self.columns, missing, strict=True) if m}
            families = [[v.name for v in node.members] for node in self.nodes.values()]
            self._keys[pattern] = connected_sets(names, [*families, self.integrated])
        return self._keys[pattern]


def connected_sets(missing: Missing, families: Iterable[Collection[str]]) -> tuple[Missing, ...]:
    """The missing variables in sets that share families, directly or through one another."""
    sets: dict[str, set[str]] = {n: {n} for n in missing}
    for family in families:
        together = [n for n in family if n in missing]
        for name in together[1:]:
            one, other = sets[together[0]], sets[name]
            if one is not other:
                one |= other
                sets.update(dict.fromkeys(other, one))
    return tuple(sorted({frozenset(s) for s in sets.values()}, key=sorted))


POINTS = {1: 33, 2: 15, 3: 9}
"""Points of Gauss–Hermite quadrature for each of one, two or three numbers that are missing together: 33, 15² and 9³ in all."""

DRAWS, SEED = 2_000, 0
"""Draws that stand for more numbers, half of them the others with the opposite sign."""

TAIL = 1e-12
"""The share of the sum over a missing count that is left out, at most."""

INTEGRATED = (
    f"missing numbers under regressions are integrated by adaptive Gauss-Hermite quadrature ({POINTS[1]} points for one number, "
    f"{POINTS[2]}² for two, {POINTS[3]}³ for three that are missing together; {DRAWS:,} seeded draws for more)"
)
SUMMED = f"missing counts that have children are summed, from 0 up to where less than {TAIL:g} of the posterior is left"


class HermitePoints(NamedTuple):
    """Standard normal points (number, point), their log-weights, and how near the points lie to each other; 0 of draws."""

    z: Array
    log_weight: Array
    spacing: float


def n_points(d: int) -> int:
    """How many points stand for d numbers."""
    return POINTS[d] ** d if d in POINTS else DRAWS


@cache
def points(d: int) -> HermitePoints:
    """The points for d numbers."""
    if d not in POINTS:
        half = np.random.default_rng(SEED).standard_normal((d, DRAWS // 2))
        return HermitePoints(np.concatenate([half, -half], axis=1), np.full(DRAWS, -np.log(DRAWS)), 0.0)
    x, w = np.polynomial.hermite_e.hermegauss(POINTS[d])
    z = np.stack(np.meshgrid(*[x] * d, indexing="ij")).reshape(d, -1)
    weight = np.stack(np.meshgrid(*[np.log(w) - 0.5 * np.log(2.0 * np.pi)] * d, indexing="ij")).reshape(d, -1)
    return HermitePoints(z, weight.sum(axis=0), float(np.diff(x).min()))
