"""Why a node has its parents, why an edge is in the graph, why another one is not: the facts are sought here.

They lie in the neighbourhood of the graph: which single changes its arrows and the rules allow, and what each would gain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain as joined
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from suffice.basis.arrays import Bools
from suffice.basis.variables import Finite
from suffice.errors import GraphError
from suffice.graphs import Cpdag, Dag
from suffice.graphs.paths import chain, links, shortest_path
from suffice.graphs.text import Edge, parse_text, unknown_node
from suffice.structure.problem import Problem
from suffice.structure.results.explanations import Change, EdgeAbsent, EdgePresent, Explanation, NodeExplained, PairTested, spell
from suffice.structure.rules import Parents, Rules, ancestors, toggle_parent

N_RUNNERS_UP = 5

N_SETS = 10_000
"""Parent sets of one child that are looked at to find its best alternative; past that only those one or two swaps away."""


class Neighbourhood:
    """A graph, the problem it answers, and the rules as its method took them."""

    def __init__(self, problem: Problem, rules: Rules, parents: Sequence[Parents]) -> None:
        self.problem, self.rules, self.parents = problem, rules, tuple(parents)
        self.scores, self.names = problem.scores, problem.names

    @cached_property
    def children(self) -> dict[int, list[int]]:
        return links(((p, c) for c, chosen in enumerate(self.parents) for p in chosen), range(len(self.parents)))[1]

    @cached_property
    def above(self) -> Bools:
        """above[i, j]: there is a directed path from j to i."""
        return ancestors(self.parents)

    def candidates(self, child: int) -> list[int]:
        """Whom the child may have as parents, its other arrows and those of all others staying as they are."""
        return [int(p) for p in np.flatnonzero(self.rules.allowed[child] & ~self.above[:, child])]

    def one_change(self, child: int) -> Iterator[Parents]:
        """The parent sets with one parent more, one less, or one swapped, that the arrows and the rules allow."""
        own, must = self.parents[child], self.rules.required[child]
        new = [c for c in self.candidates(child) if c not in own]
        loose = [p for p in own if not must[p]]
        for p in loose:
            rest = tuple(q for q in own if q != p)
            yield rest
            yield from (tuple(sorted((*rest, c))) for c in new)
        if len(own) < self.rules.max_parents[child]:
            yield from (tuple(sorted((*own, c))) for c in new)

    def parent_sets(self, child: int, most: int, without: int | None = None) -> tuple[list[Parents], bool]:
        """Other sets of up to `most` parents that the child could have, and whether these are all.

        `without`: none with this parent. When all are more than `N_SETS`: those that two swaps, or one, lead to.
        """
        own, must = self.parents[child], {int(p) for p in np.flatnonzero(self.rules.required[child])}
        most = min(most, int(self.rules.max_parents[child]))
        loose = [c for c in self.candidates(child) if c not in must and c != without]
        sizes = range(max(0, most - len(must)) + 1)
        complete = sum(comb(len(loose), k) for k in sizes) <= N_SETS
        if complete:
            found: Iterable[Parents] = joined.from_iterable(combinations(loose, k) for k in sizes)
        else:
            kept = [p for p in own if p not in must and p != without]
            new = [c for c in loose if c not in kept]
            swaps = 2 if len(new) ** 2 * (len(kept) + 1) ** 2 <= 4 * N_SETS else 1
            found = _swaps(kept, new, swaps, max(0, most - len(must)))
        sets = dict.fromkeys(tuple(sorted({*s, *must})) for s in found)
        return [s for s in sets if s != own and (without is None or without not in s)], complete

    def keeps(self, child: int, parents: Parents) -> bool:
        """Whether other parents keep what the constraints say of paths and pairs, which is not in the rules."""
        constraints = self.problem.constraints
        if constraints is None or not (constraints.adjacent or constraints.not_ancestor):
            return True
        return not constraints.check(self.problem.dag([parents if c == child else ps for c, ps in enumerate(self.parents)]))

    def rank(self, child: int, sets: Sequence[Parents]) -> list[tuple[float, Parents]]:
        """What each set would gain, best first; sets without a score, and those against the constraints, are left out."""
        sets = [s for s in sets if self.keeps(child, s)]
        scores = self.scores.families([(child, s) for s in sets]) - self.scores.family(child, self.parents[child])
        finite = [(float(g), s) for g, s in zip(scores, sets, strict=True) if g > -np.inf]
        return sorted(finite, key=lambda r: (-r[0], len(r[1]), r[1]))


def explain_edge(around: Neighbourhood, cpdag: Cpdag, directions: Mapping[Edge, str], a: str, b: str) -> Explanation:
    """The explanation of an edge, whether it is there, in either direction, or not."""
    parent, child = around.names.index(a), around.names.index(b)
    if child in around.parents[parent]:
        parent, child = child, parent
    if parent not in around.parents[child]:
        return _absent(around, parent, child)
    return _present(around, cpdag, directions[around.names[parent], around.names[child]], parent, child)


def edge_of(what: str | Sequence[str], names: Sequence[str]) -> tuple[str, str]:
    """The two nodes of an edge as `Found.explain` takes it."""
    if isinstance(what, str):
        if not any(arrow in what for arrow in ("->", "<-", "→", "←")):
            raise unknown_node(what, names)
        edges: Sequence[Any] = parse_text(what)[1]
        if len(edges) != 1:
            raise GraphError(f"one edge is explained at a time, and {what!r} has {len(edges)}")
        what = edges[0]
    if not isinstance(what, Sequence) or len(what) != 2:
        raise GraphError(f"explain takes a node, a pair (parent, child) or text such as 'a -> b', not {what!r}")
    a, b = what
    for name in (a, b):
        if name not in names:
            raise unknown_node(name, names)
    if a == b:
        raise GraphError(f"an edge joins two nodes, not {a!r} with itself")
    return a, b


def _present(around: Neighbourhood, cpdag: Cpdag, why: str, parent: int, child: int) -> EdgePresent:
    a, b = around.names[parent], around.names[child]
    rest = toggle_parent(around.parents[child], parent)
    removed = _change(around, {child: rest})
    sets, _ = around.parent_sets(child, len(around.parents[child]), without=parent)
    others = [s for s in sets if s != rest] or sets  # the removal is told above already
    ranked = around.rank(child, others)
    reversible = (min(a, b), max(a, b)) in cpdag.undirected
    return EdgePresent(
        parent=a,
        child=b,
        loss=-(removed.gain or 0.0),
        required=bool(around.rules.required[child, parent]),
        reversible=reversible,
        removed=removed,
        reversed=_reversal(around, parent, child),
        equivalent=_equivalent(around, cpdag, a, b) if reversible else None,
        replaced=_change(around, {child: ranked[0][1]}) if ranked else None,
        n_sets=len(sets),
        why=why,
        number=next((n for n in (a, b) if not isinstance(around.problem.variables[around.names.index(n)], Finite)), None),
    )


def _reversal(around: Neighbourhood, parent: int, child: int) -> Change:
    """The same graph with child -> parent; it is scored even where it may not be, if it can be."""
    new = {child: toggle_parent(around.parents[child], parent), parent: toggle_parent(around.parents[parent], child)}
    refused = _refusal(around, child, parent)
    if around.rules.required[child, parent]:
        refused = _constraint(around, parent, child)
    elif detour := shortest_path(parent, child, {**around.children, parent: toggle_parent(around.children[parent], child)}):
        refused = refused or f"it would make a cycle: {chain([around.names[i] for i in (*detour, parent)])}"
    return _change(around, new, refused)


def _equivalent(around: Neighbourhood, cpdag: Cpdag, a: str, b: str) -> Change | None:
    """The member of the class that has b -> a: what it changes and gains, which is 0 when the score is equivalent."""
    lines = [e for e in cpdag.undirected if e != (min(a, b), max(a, b))]
    try:
        member = Cpdag([*cpdag.directed, (b, a)], lines, nodes=cpdag.nodes).completed().to_dag()
    except GraphError:
        return None
    new = enumerate(around.problem.parents(member))
    return _change(around, {x: ps for x, ps in new if ps != around.parents[x]})


def _absent(around: Neighbourhood, parent: int, child: int) -> EdgeAbsent:
    ways = (parent, child), (child, parent)
    forward, backward = (_change(around, {b: toggle_parent(around.parents[b], a)}, _refusal(around, a, b)) for a, b in ways)
    swap = None
    if forward.refused == _full(around, child):
        loose = [p for p in around.parents[child] if not around.rules.required[child, p]]
        sets = [toggle_parent(toggle_parent(around.parents[child], p), parent) for p in loose]
        ranked = around.rank(child, sets)
        swap = _change(around, {child: ranked[0][1]}) if ranked else None
    return EdgeAbsent(around.names[parent], around.names[child], forward, backward, swap)


def _full(around: Neighbourhood, child: int) -> str:
    most = int(around.rules.max_parents[child])
    return f"{spell(around.names[child])} has {most} parent{'s' * (most != 1)}, and may not have more"


def _refusal(around: Neighbourhood, parent: int, child: int) -> str | None:
    """Why an edge that is not there may not be put there; None if it may."""
    rules = around.rules
    if child in around.problem.given:
        return "time forbids it: it would lead into the past"
    if not around.problem.has_family(child, (parent,)):
        return "a finite variable cannot have a real parent unless it is a regression"
    if not rules.allowed[child, parent]:
        return _constraint(around, parent, child)
    if parent not in around.children[child] and (path := shortest_path(child, parent, around.children)):
        return f"it would make a cycle: {chain([around.names[i] for i in (*path, child)])}"
    if len(around.parents[child]) >= rules.max_parents[child]:
        return _full(around, child)
    return None


def _constraint(around: Neighbourhood, parent: int, child: int) -> str:
    """What the constraints say of an edge."""
    if around.rules.required[child, parent]:
        return "the constraints require it this way"
    constraints, names = around.problem.constraints, around.names
    if constraints is None:
        return "the constraints forbid it"
    before = constraints.check(Dag([], nodes=names))
    broken = [s for s in constraints.check(Dag([(names[parent], names[child])], nodes=names)) if s not in before]
    return f"the constraints forbid it: {broken[0]}" if broken else "it would go against required edges"


def explain_node(around: Neighbourhood, name: str, score: float, losses: Mapping[Edge, float], *, past: bool) -> NodeExplained:
    """The explanation of a node, which scores so much; `losses` are those without each edge."""
    node = around.names.index(name)
    own = around.parents[node]
    sets, complete = around.parent_sets(node, len(own) + 1)
    if not complete:
        smaller, complete_smaller = around.parent_sets(node, len(own))
        if complete_smaller:
            sets = list(dict.fromkeys([*smaller, *around.one_change(node)]))
    ranked = around.rank(node, sets)[:N_RUNNERS_UP]
    return NodeExplained(
        node=name,
        parents=tuple(around.names[p] for p in own),
        score=score,
        losses={a: loss for (a, b), loss in losses.items() if b == name},
        runners_up=tuple(_change(around, {node: s}) for _, s in ranked),
        n_sets=len(sets),
        complete=complete,
        children={b: loss for (a, b), loss in losses.items() if a == name},
        past=past,
    )


def _change(around: Neighbourhood, new: dict[int, Parents], refused: str | None = None) -> Change:
    """Other parents for some nodes, with their scores where they have any."""
    names = around.names
    parents = {names[x]: tuple(names[p] for p in ps) for x, ps in new.items()}
    if not all(around.problem.has_family(x, ps) for x, ps in new.items()):
        return Change(parents, {}, None, refused)
    scores = {names[x]: around.scores.family(x, ps) for x, ps in new.items()}
    gain = sum(scores[names[x]] - around.scores.family(x, around.parents[x]) for x in new)
    price, count = getattr(around.problem.score, "price", None), around.problem.n_parameters
    if price is None:
        return Change(parents, scores, gain, refused)
    more = sum(count(x, ps) - count(x, around.parents[x]) for x, ps in new.items())
    penalty = float(price(around.scores.weight)) * more  # what the parameters cost that they have more than the present ones
    return Change(parents, scores, gain, refused, gain + penalty, penalty)


def test_of(cpdag: Cpdag, details: Any, a: str, b: str) -> PairTested:
    """What tests say of two nodes."""
    directed, lines = set(cpdag.directed), set(cpdag.undirected)
    if (b, a) in directed:
        a, b = b, a
    line = (min(a, b), max(a, b)) in lines
    direction = "the tests leave the direction open" if line else f"{spell(a)} -> {spell(b)}" if (a, b) in directed else ""
    given, p_value = (None, None) if details is None else details.of(a, b)
    return PairTested(a, b, line or (a, b) in directed, direction, given, p_value)


def _swaps(kept: Sequence[int], new: Sequence[int], swaps: int, most: int) -> Iterator[Parents]:
    """The sets with up to `swaps` of the kept left out and up to `swaps` (or one more, in a gap) new ones put in."""
    for out in range(min(swaps, len(kept)) + 1):
        for gone in combinations(kept, out):
            rest = [p for p in kept if p not in gone]
            for into in range(min(swaps, most - len(rest)) + 1):
                yield from ((*rest, *extra) for extra in combinations(new, into))
