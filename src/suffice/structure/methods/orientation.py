"""Orientation: from edges without a direction, and what separates the others, to the arrows that follow.

x - z - y with x and y apart is a collider x -> z <- y if z is not among what separates x and y. Three rules decide when several
sets do; then the rules of Meek direct what the arrows leave no choice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, NamedTuple, TypeAlias

import numpy as np

from suffice.basis.arrays import Bools
from suffice.errors import GraphError
from suffice.graphs import Cpdag
from suffice.graphs.paths import find_cycle, links, reach
from suffice.structure.rules import Rules

MOST_REVERSED = 100
"""Verdicts that are reversed for a graph that extends them all; past these the tests contradict each other throughout."""


@dataclass(frozen=True)
class Majority:
    """A collider, if z is in fewer than half of all sets of neighbours that separate x and y (Colombo & Maathuis 2014, 4.2).

    >>> Majority().collider(5, 2), Majority().collider(4, 2), Majority().collider(0, 0)
    (True, False, False)
    """

    all_sets: ClassVar[bool] = True
    """Whether it asks for all sets of neighbours that separate x and y, or only for the first that was found."""

    def collider(self, n_sets: int, n_with: int) -> bool:
        """Whether the triple x - z - y is a collider, if `n_with` of the `n_sets` sets hold z."""
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
class FirstSepset(Conservative):
    """A collider, if z is not in the set that separated x and y in the search for edges (Spirtes & Glymour 1991): fewest tests.

    >>> FirstSepset().collider(1, 0), FirstSepset().collider(1, 1)
    (True, False)
    """

    all_sets: ClassVar[bool] = False


Orientation: TypeAlias = Majority | Conservative
"""A rule that tells colliders from the sets that separate the ends of a triple x - z - y."""


class Triple(NamedTuple):
    """x - z - y with x and y apart."""

    x: int
    z: int
    y: int


def triples(adjacent: Bools) -> list[Triple]:
    """All triples x - z - y with x < y apart, sorted by (x, y, z)."""
    found = []
    for z in range(len(adjacent)):
        near = np.flatnonzero(adjacent[z])
        x, y = np.nonzero(~adjacent[np.ix_(near, near)])
        found += [Triple(a, z, b) for a, b in zip(near[x].tolist(), near[y].tolist(), strict=True) if a < b]
    return sorted(found, key=lambda t: (t.x, t.y, t.z))


class Verdict(NamedTuple):
    """Whether a triple is a collider, the share of the separating sets that hold its middle, and how well they do it (log p)."""

    triple: Triple
    collider: bool
    share: float
    log_p: float


def orient_edges(names: Sequence[str], adjacent: Bools, rules: Rules, verdicts: Sequence[Verdict]) -> Cpdag:
    """The class that edges, rules and verdicts on the triples make.

    What is required, or allowed in one direction only, is directed first. Then each collider, surest first (the smallest share,
    then the largest p), that does not turn an arrow around, does not close a cycle and leaves no node with more parents than it
    may have; one that does is passed over whole. Then Meek's rules, for which any other triple is no collider.

    If what comes out has no member, verdicts contradict each other. Then the least sure that stand in the way are reversed:
    triples on a directed cycle, or in a part without arrows that has a cycle without chords, become colliders. If that does not
    help, the least sure colliders are given up, as few as need be; and if nothing helps, none is.
    """
    sure = sorted(verdicts, key=lambda v: (v.share, -v.log_p, v.triple))
    colliders = [v.triple for v in sure if v.collider]
    of = partial(_complete, names, adjacent, rules)
    whole = of(colliders)
    if _has_member(whole):
        return whole
    others = [v.triple for v in sure if not v.collider]
    return _reverse_colliders(names, of, colliders, others, whole) or _drop_colliders(of, colliders) or whole


def _reverse_colliders(
    names: Sequence[str], of: Callable[[Sequence[Triple]], Cpdag], colliders: list[Triple], waiting: list[Triple], cpdag: Cpdag
) -> Cpdag | None:
    """The first class that has a member when more and more of the triples in the way, least sure first, are made colliders."""
    chosen = list(colliders)
    for _ in range(MOST_REVERSED):
        inside = _in_the_way(names, cpdag)
        one = next((t for t in waiting if inside(t)), None)
        if one is None:
            return None
        waiting.remove(one)
        chosen.append(one)
        cpdag = of(chosen)
        if _has_member(cpdag):
            return cpdag
    return None


def _drop_colliders(of: Callable[[Sequence[Triple]], Cpdag], colliders: Sequence[Triple]) -> Cpdag | None:
    """The class without some of the least sure colliders, or None if none of those has a member."""
    gone = 1
    while gone < 2 * len(colliders):
        kept = list(colliders[:-gone])
        if _has_member(of(kept)):
            for one in colliders[-gone:]:
                if _has_member(of([*kept, one])):
                    kept.append(one)
            return of(kept)
        gone *= 2
    return None


def _in_the_way(names: Sequence[str], cpdag: Cpdag) -> Callable[[Triple], bool]:
    """Tells the triples on a directed cycle, or else those without arrows in parts that no arrows fit into."""
    cycle = find_cycle(links(cpdag.directed, names)[0])
    if cycle:
        around = {(a, b) for a, b in zip([cycle[-2], *cycle], cycle, strict=False)}
        return lambda t: all((names[v], names[t.z]) in around or (names[t.z], names[v]) in around for v in (t.x, t.y))
    before, after = links(cpdag.undirected, names)
    near = {name: before[name] + after[name] for name in names}
    stuck, seen = set[str](), set[str]()
    for name in names:
        if name not in seen:
            part = reach([name], near)
            seen |= part
            if not _has_member(Cpdag([], [e for e in cpdag.undirected if e[0] in part])):
                stuck |= part
    return lambda t: names[t.z] in stuck and names[t.x] in near[names[t.z]] and names[t.y] in near[names[t.z]]


def possible(rules: Rules) -> Bools:
    """Which arrows there may be, [child, parent]: allowed, into a child that may have parents, and not against one required."""
    return np.asarray(rules.allowed & (rules.max_parents > 0)[:, None] & ~rules.required.T)


def _complete(names: Sequence[str], adjacent: Bools, rules: Rules, colliders: Iterable[Triple]) -> Cpdag:
    """The class of what the rules leave no choice and of these colliders, as far as they fit together."""
    may = possible(rules)
    known = np.argwhere(adjacent & may & ~may.T | rules.required).tolist()
    parents = links(((names[p], names[c]) for c, p in known), names)[0]
    for x, z, y in colliders:
        child, two = names[z], [names[x], names[y]]
        new = [v for v in two if v not in parents[child]]
        if not (may[z, x] and may[z, y]) or any(child in parents[v] for v in two):
            continue
        if len(parents[child]) + len(new) <= rules.max_parents[z] and child not in reach(new, parents):
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
