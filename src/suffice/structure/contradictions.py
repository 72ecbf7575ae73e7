"""Constraints that no graph could keep, and what follows from those that some graph can."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain as joined
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from suffice.errors import GraphError, listed
from suffice.families import has_family
from suffice.graphs.paths import Links, chain, find_cycle, reached, topological_order
from suffice.graphs.text import Edge, shown
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.structure.constraints import Constraints


class EdgeByEdge:
    """What constraints say of one edge by itself; `variables` may hold the kinds of some."""

    def __init__(self, constraints: Constraints, variables: Mapping[str, Variable]) -> None:
        self.forbidden = set(constraints.forbidden)
        self.tiers = [({x: i for i, tier in enumerate(t.tiers, 1) for x in tier}, t.within) for t in constraints.tiers]
        self.candidates = {child: set(parents) for child, parents in constraints.candidates}
        self.variables = variables

    def objections(self, a: str, b: str) -> Iterator[str]:
        """Why there can be no edge a -> b; each continues a sentence that begins with the edge."""
        if (a, b) in self.forbidden:
            yield "is forbidden"
        for level, within in self.tiers:
            if a in level and b in level:
                if level[a] > level[b]:
                    yield f"goes back from tier {level[a]} to tier {level[b]}"
                elif level[a] == level[b] and not within:
                    yield f"is inside tier {level[a]}, where no edge may be"
        if a not in self.candidates.get(b, (a,)):
            yield f"does not come from a candidate parent of {shown(b)}"
        child, parent = self.variables.get(b), self.variables.get(a)
        if child is not None and parent is not None and not has_family(child, [parent]):
            kind = "finite variable" if isinstance(child, Finite) else "count"
            yield f"leads from a number to a {kind}, for which there is no family"


def needed_edges(constraints: Constraints, variables: Mapping[str, Variable]) -> set[Edge]:
    """The edges that must be there: the required ones, and of each adjacent pair the one direction that is left, if one is.

    What cannot hold is refused. Pairs that may still point either way can be impossible together: that takes a search to see.
    """
    if not constraints.required and not constraints.adjacent:
        return set()
    by_edge, needed = EdgeByEdge(constraints, variables), set(constraints.required)
    for edge in constraints.required:
        for objection in by_edge.objections(*edge):
            raise GraphError(f"the edge {chain(edge)} is required, but it {objection}")
    while True:
        parents, children = links(needed, constraints.adjacent, constraints.not_ancestor)
        refuse_together(constraints, parents, children)
        fresh = set()
        for a, b in constraints.adjacent:
            if (a, b) in needed or (b, a) in needed:
                continue
            forth, back = (
                next(joined(by_edge.objections(*edge), _objections_of_all(constraints, parents, children, *edge)), "")
                for edge in ((a, b), (b, a))
            )
            if forth and back:
                why = f"{chain((a, b))} {forth}, and {chain((b, a))} {back}"
                raise GraphError(f"{shown(a)} and {shown(b)} must be adjacent, but {why}")
            if forth or back:
                fresh.add((b, a) if forth else (a, b))
        if not fresh:
            return needed
        needed |= fresh


def refuse_together(constraints: Constraints, parents: Links, children: Links) -> None:
    """Refuse edges that must be there, each possible by itself, when they are not possible together."""
    if cycle := find_cycle(parents):
        raise GraphError(f"the edges that must be there have a cycle: {chain(cycle)}")
    for child, names in parents.items():
        most = constraints.most_parents(child) if names else None
        if most is not None and len(names) > most:
            must = f"the parent{'s' * (len(names) > 1)} {listed(names)}"
            raise GraphError(f"{shown(child)} must have {must}, but may have at most {most}")
    for a, b in constraints.not_ancestor:
        if path := path_between(a, b, children):
            why = f"edges that must be there lead to it: {chain(path)}"
            raise GraphError(f"{shown(a)} must not be an ancestor of {shown(b)}, but {why}")


def _objections_of_all(constraints: Constraints, parents: Links, children: Links, a: str, b: str) -> Iterator[str]:
    """Why there can be no edge a -> b beside the edges that must be there."""
    most = constraints.most_parents(b)
    if most is not None and len(parents[b]) >= most:
        yield f"would be one parent more than the {most} that {shown(b)} may have"
    if path := path_between(b, a, children):
        yield f"would close a cycle with edges that must be there, {chain(path)}"
    above, below = reached([a], parents), reached([b], children)
    for x, y in constraints.not_ancestor:
        if x in above and y in below:
            yield f"would make {shown(x)} an ancestor of {shown(y)}, which it must not be"


def path_between(start: str, end: str, children: Links) -> list[str]:
    """A shortest directed path of one edge or more, as names; empty when there is none."""
    came: dict[str, str] = {}
    row = [start]
    while row and end not in came:
        fresh = {child: x for x in row for child in children[x] if child not in came}
        came.update(fresh)
        row = list(fresh)
    if end not in came:
        return []
    path = [end]
    while len(path) == 1 or path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


def links(edges: Iterable[Edge], *others: Iterable[Edge]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The parents and the children of each name in some edges, and of the names in other pairs too."""
    ordered = sorted(edges)
    names = sorted({x for pair in joined(ordered, *others) for x in pair})
    parents: dict[str, list[str]] = {x: [] for x in names}
    children: dict[str, list[str]] = {x: [] for x in names}
    for a, b in ordered:
        parents[b].append(a)
        children[a].append(b)
    return parents, children


def ancestors(edges: Iterable[Edge], number: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """Which have a directed path to which: [descendant, ancestor]."""
    above = np.zeros((len(number), len(number)), bool)
    parents, children = links(edges)
    for x in topological_order(parents, children):
        row = above[number[x]]
        for p in parents[x]:
            row |= above[number[p]]
            row[number[p]] = True
    return above


def cells(edges: Iterable[Edge], number: Mapping[str, int]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The cells [child, parent] of edges in a matrix."""
    flat = numbers(joined.from_iterable(edges), number)
    return flat[1::2], flat[::2]


def numbers(names: Iterable[str], number: Mapping[str, int]) -> npt.NDArray[np.intp]:
    return np.fromiter(map(number.__getitem__, names), np.intp)
