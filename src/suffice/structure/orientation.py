"""Orientation: from edges without a direction, and what separates the others, to the arrows that follow.

x - z - y with x and y apart is a collider x -> z <- y if z is not among what separates x and y. Three rules decide when several
sets do; then the rules of Meek direct what the arrows leave no choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from suffice.errors import GraphError
from suffice.graphs import Cpdag
from suffice.graphs.paths import reached
from suffice.structure.rules import Rules

Matrix = npt.NDArray[np.bool_]
Arrow = tuple[int, int]


class Orientation(Protocol):
    """A rule that tells colliders from the sets that separate the ends of a triple x - z - y."""

    all_sets: ClassVar[bool]
    """Whether it asks for all sets of neighbours that separate them, or only for the first that was found."""

    def collider(self, n_sets: int, n_with: int) -> bool:
        """Whether the triple is a collider, if `n_with` of the `n_sets` sets hold z."""


@dataclass(frozen=True)
class Majority:
    """A collider, if z is in fewer than half of all sets of neighbours that separate x and y (Colombo & Maathuis 2014, 4.2).

    >>> Majority().collider(5, 2), Majority().collider(4, 2), Majority().collider(0, 0)
    (True, False, False)
    """

    all_sets: ClassVar[bool] = True

    def collider(self, n_sets: int, n_with: int) -> bool:
        return 2 * n_with < n_sets


@dataclass(frozen=True)
class Conservative:
    """A collider, if z is in none of all sets of neighbours that separate x and y (Ramsey, Zhang & Spirtes 2006).

    >>> Conservative().collider(5, 0), Conservative().collider(5, 1), Conservative().collider(0, 0)
    (True, False, False)
    """

    all_sets: ClassVar[bool] = True

    def collider(self, n_sets: int, n_with: int) -> bool:
        return n_sets > 0 and n_with == 0


@dataclass(frozen=True)
class FirstSepset:
    """A collider, if z is not in the set that separated x and y in the search for edges (Spirtes & Glymour 1991): fewest tests.

    >>> FirstSepset().collider(1, 0), FirstSepset().collider(1, 1)
    (True, False)
    """

    all_sets: ClassVar[bool] = False

    def collider(self, n_sets: int, n_with: int) -> bool:
        return n_sets > 0 and n_with == 0


class Triple(NamedTuple):
    """x - z - y with x and y apart."""

    x: int
    z: int
    y: int


def triples(adjacent: Matrix) -> list[Triple]:
    """All triples x - z - y with x < y apart, sorted by (x, y, z).

    >>> triples(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]], bool))
    [Triple(x=0, z=1, y=2)]
    """
    found = []
    for z in range(len(adjacent)):
        near = np.flatnonzero(adjacent[z])
        x, y = np.nonzero(~adjacent[np.ix_(near, near)])
        found += [Triple(a, z, b) for a, b in zip(near[x].tolist(), near[y].tolist(), strict=True) if a < b]
    return sorted(found, key=lambda t: (t.x, t.y, t.z))


def directed(names: Sequence[str], adjacent: Matrix, rules: Rules, colliders: Sequence[Triple]) -> Cpdag:
    """The class that edges, rules and colliders make; the colliders come with the surest first.

    What is required, or allowed in one direction only, is directed first. Then each collider that does not turn an arrow around,
    does not close a cycle and leaves no node with more parents than it may have; one that does is passed over whole. Then Meek's
    rules, for which any other triple is no collider. If what comes out has no member, the least sure colliders are given up, as
    few as need be; where that does not help, none is.
    """
    known = _known(adjacent, rules)
    whole = _completed(names, adjacent, rules, known, colliders)
    if _has_member(whole):
        return whole
    for n in range(len(colliders) - 1, -1, -1):
        kept = list(colliders[:n])
        if _has_member(_completed(names, adjacent, rules, known, kept)):
            for one in colliders[n + 1 :]:
                if _has_member(_completed(names, adjacent, rules, known, [*kept, one])):
                    kept.append(one)
            return _completed(names, adjacent, rules, known, kept)
    return whole


def _known(adjacent: Matrix, rules: Rules) -> list[Arrow]:
    """The arrows (parent, child) that the rules leave no choice."""
    may = possible(rules)
    only = adjacent & may & ~may.T | rules.required
    return [(int(p), int(c)) for c, p in np.argwhere(only)]


def possible(rules: Rules) -> Matrix:
    """Which arrows there may be, [child, parent]: allowed, into a child that may have parents, and not against one required."""
    result: Matrix = rules.allowed & (rules.max_parents > 0)[:, None] & ~rules.required.T
    return result


def _completed(
    names: Sequence[str], adjacent: Matrix, rules: Rules, known: Iterable[Arrow], colliders: Iterable[Triple]
) -> Cpdag:
    may = possible(rules)
    parents: dict[str, list[str]] = {name: [] for name in names}
    for p, c in known:
        parents[names[c]].append(names[p])
    for x, z, y in colliders:
        child, two = names[z], [names[x], names[y]]
        new = [v for v in two if v not in parents[child]]
        if not (may[z, x] and may[z, y]) or any(child in parents[v] for v in two):
            continue
        if len(parents[child]) + len(new) <= rules.max_parents[z] and child not in reached(new, parents):
            parents[child] += new
    arrows = [(p, c) for c, ps in parents.items() for p in ps]
    there = {frozenset(a) for a in arrows}
    pairs = ((names[a], names[b]) for a, b in np.argwhere(np.triu(adjacent)))
    return Cpdag(arrows, [p for p in pairs if frozenset(p) not in there], nodes=names).completed()


def _has_member(cpdag: Cpdag) -> bool:
    try:
        cpdag.to_dag()
    except GraphError:
        return False
    return True
