"""Greedy equivalence search: hill climbing over classes of graphs that no data can tell apart.

A set of nodes is a whole number with their bits, so that sets cost nothing; a class is `above` and `beside` of each node.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array
from suffice.errors import FitError, GraphError
from suffice.errors.remedies import BY_BIC, score_by
from suffice.graphs.paths import class_edges, extension, meek
from suffice.structure.problem import Method, Outcome, Problem, check_number
from suffice.structure.rules import Parents, Rules

Edge = tuple[int, int]

Ordered = dict[int, list[int]]
"""A directed graph: the sorted parents of each node, which comes after them."""


@dataclass(frozen=True)
class GES(Method):
    """Greedy equivalence search (Chickering 2002): inserts the edge that gains most, then deletes, one class at a time.

    The forward phase makes the valid Insert(X, Y, T) that gains most until none gains, the backward phase the valid
    Delete(X, Y, H) (theorems 15 to 18 of the paper). On enough data from a network that is what it is, the result is its class.
    T and C = NaYX − H are cliques of neighbours; `subset` is the largest of them that is tried.

    Under constraints a class is what its members that keep them share, and a step is made only to a class with such a member that
    scores more; that member is the result. (Where variables may have different numbers of parents, one member
    is tried.) Needs a score that is the same for all members of a class: BIC, AIC, BDeu, BGe, but not K2.

    >>> from suffice import search
    >>> rows = {"rain": list("nnnnyyyy") * 9, "wet": list("nnnnyynn") * 9, "moon": list("nf") * 36}
    >>> found = search(rows, method=GES())
    >>> found.dag, [step.what for step in found.trace]
    (Dag('moon; rain -> wet'), ['start', 'insert wet -> rain'])
    """

    word = "ges"

    max_parents: int | None = None
    subset: int | None = None

    def __post_init__(self) -> None:
        check_number("max_parents", self.max_parents, 0, optional=True)
        check_number("subset", self.subset, 0, optional=True)

    def run(self, problem: Problem) -> Outcome:
        """Forward, then backward."""
        self.refuse_regressions(problem)
        state = _State(problem, problem.rules.cap(self.max_parents), problem.n if self.subset is None else self.subset)
        state.forward()
        state.backward()
        return Outcome(state.parents)

    def refuse_regressions(self, problem: Problem) -> None:
        """Refuse a problem with regressions."""
        why = "it goes from class to class, and with regressions the graphs of a class do not score alike"
        problem.refuse_regressions(self, why)


class Class(NamedTuple):
    """A partially directed graph: of each node the nodes with an arrow to it, and those with an edge that has no direction."""

    above: list[int]
    beside: list[int]

    def adjacent(self) -> list[int]:
        """Of each node all nodes with an edge to it."""
        around = [a | b for a, b in zip(self.above, self.beside, strict=True)]
        for node, parents in enumerate(self.above):
            for p in members(parents):
                around[p] |= 1 << node
        return around


def members(nodes: int) -> Iterator[int]:
    """The nodes of a set, in order."""
    while nodes:
        last = nodes & -nodes
        yield last.bit_length() - 1
        nodes ^= last


def as_set(nodes: Sequence[int]) -> int:
    """The set of these nodes."""
    return sum(1 << node for node in nodes)


def cliques(nodes: int, adjacent: Sequence[int], most: int) -> Iterator[int]:
    """All subsets of up to `most` nodes that are adjacent to each other, the empty one first."""
    agenda = [(0, nodes, 0)]
    while agenda:
        clique, more, size = agenda.pop()
        yield clique
        if size < most:
            steps = []
            for node in members(more):
                more ^= 1 << node
                steps.append((clique | 1 << node, more & adjacent[node], size + 1))
            agenda += reversed(steps)


def member(graph: Class) -> Ordered | None:
    """A directed graph with these arrows and no new collider; None where there is none."""
    arrows = [(x, y) for y, above in enumerate(graph.above) for x in members(above)]
    lines = [(x, y) for y, beside in enumerate(graph.beside) for x in members(beside) if x < y]
    try:
        return extension(range(len(graph.above)), arrows, lines)
    except GraphError:
        return None


def class_of(parents: Ordered) -> Class:
    """The equivalence class of a directed graph."""
    return class_with(len(parents), *class_edges(list(parents), parents))


def class_with(n: int, arrows: Sequence[Edge], lines: Sequence[Edge]) -> Class:
    """The class of these arrows (parent, child), and lines."""
    above, beside = [0] * n, [0] * n
    for x, y in arrows:
        above[y] |= 1 << x
    for x, y in lines:
        beside[x] |= 1 << y
        beside[y] |= 1 << x
    return Class(above, beside)


class _Operator(NamedTuple):
    """An edge x -> y, and the neighbours of y that become its parents too (insert) or stay so (delete); smaller goes first."""

    y: int
    x: int
    clique: int
    gain: float


class _OperatorStep(NamedTuple):
    """Where an operator leads: the class, a member that keeps the rules, and its score."""

    operator: _Operator
    graph: Class
    parents: list[Parents]
    total: float


class _State:
    """The class that the search is at, a member that keeps the rules, and the steps that gain something."""

    def __init__(self, problem: Problem, rules: Rules, subset: int) -> None:
        self.problem, self.scores, self.rules, self.subset = problem, problem.scores, rules, subset
        # Under rules about edges the theorems do not hold: what a step gains is then seen from the members before and after it.
        self.free = bool(rules.allowed.sum() == problem.n * (problem.n - 1) and not rules.required.any())
        self.single, self.pair = _pairs(problem)
        self.known: dict[tuple[int, int], float] = {}
        self.parents = rules.start()
        start = [as_set(p) for p in self.parents]
        found = member(Class(start, [0] * problem.n))
        assert found is not None, "the required edges have no cycle"
        settled = self._settle(found)
        self.graph = Class(start, [0] * problem.n) if settled is None else settled[0]
        self.adjacent = self.graph.adjacent()
        self.total = self.scores.total(self.parents)
        problem.progress.better("start", self.total, self.parents)

    def forward(self) -> None:
        """Insert the edge that gains most, until none gains."""
        live: dict[tuple[int, int], int] = {}
        heap: list[tuple[float, int, int, int, int]] = []
        stamp = 0
        changed: Iterable[tuple[int, int]] = [(y, x) for y in range(self.problem.n) for x in range(self.problem.n)]
        while True:
            stamp += 1
            changed = [(y, x) for y, x in changed if self.rules.allowed[y, x] and not self.adjacent[x] >> y & 1]
            live.update(dict.fromkeys(changed, stamp))
            tie = self.scores.tie(self.total)
            for o in self._inserts(changed):
                if o.gain > tie:
                    heappush(heap, (-o.gain, o.y, o.x, o.clique, stamp))
            step = self._best_insert(heap, live, tie)
            if step is None:
                return
            changed = self._go(step, "insert")

    def _best_insert(
        self, heap: list[tuple[float, int, int, int, int]], live: dict[tuple[int, int], int], tie: float
    ) -> _OperatorStep | None:
        """Of the valid steps within `tie` of the best the first by name; steps that are not valid now may be so later."""
        aside, best, chosen = [], -np.inf, None
        while heap and -heap[0][0] >= best - tie:
            entry = heappop(heap)
            gain, y, x, clique, stamp = -entry[0], *entry[1:]
            if live.get((y, x)) != stamp or self.adjacent[x] >> y & 1:
                continue
            aside.append(entry)
            operator = _Operator(y, x, clique, gain)
            if (chosen is None or operator < chosen.operator) and (after := self._insert(operator)) is not None:
                best, chosen = max(best, gain), after
        for entry in aside:
            heappush(heap, entry)
        return chosen

    def backward(self) -> None:
        """Delete the edge whose loss gains most, until none gains."""
        while True:
            tie = self.scores.tie(self.total)
            best, chosen = tie, None
            for o in sorted(self._deletes(), key=lambda o: -o.gain):
                if o.gain <= tie or (chosen is not None and o.gain < best - tie):
                    break
                if (chosen is None or o < chosen.operator) and (after := self._delete(o)) is not None:
                    best, chosen = max(best, o.gain), after
            if chosen is None:
                return
            self._go(chosen, "delete")

    def _inserts(self, pairs: Iterable[tuple[int, int]]) -> list[_Operator]:
        """The insertions for these pairs, with their gains; that no path is in the way is seen to later."""
        above, beside, adjacent = self.graph.above, self.graph.beside, self.adjacent
        asked = []
        for y, x in pairs:
            shared = beside[y] & adjacent[x]
            if any(shared & ~adjacent[z] & ~(1 << z) for z in members(shared)):  # they are no clique
                continue
            rest = beside[y] & ~adjacent[x]
            for z in members(shared):
                rest &= adjacent[z]
            for clique in cliques(rest, adjacent, self.subset):
                base = shared | clique | above[y]
                if base.bit_count() < self.rules.max_parents[y]:
                    asked.append((y, x, clique, base))
        self._learn_toggles([(y, base, x) for y, x, _, base in asked if base])
        return [_Operator(y, x, clique, self._gain(y, base, x)) for y, x, clique, base in asked]

    def _deletes(self) -> list[_Operator]:
        above, beside, adjacent = self.graph.above, self.graph.beside, self.adjacent
        asked = []
        for y in range(self.problem.n):
            for x in members(above[y] | beside[y]):
                if self.rules.required[y, x] or self.rules.required[x, y]:
                    continue
                for clique in cliques(beside[y] & adjacent[x], adjacent, self.subset):
                    asked.append((y, x, clique, (clique | above[y]) & ~(1 << x)))
        self._learn([(y, base) for y, _, _, base in asked] + [(y, base | 1 << x) for y, x, _, base in asked])
        return [_Operator(y, x, clique, -self._gain(y, base, x)) for y, x, clique, base in asked]

    def _gain(self, y: int, base: int, x: int) -> float:
        """What y gains when x is put to its parents; −inf where there is no such family."""
        if not base:
            return float(self.pair[y, x] - self.single[y])
        without = self.known[y, base]
        return self.known[y, base | 1 << x] - without if without > -np.inf else -np.inf

    def _insert(self, o: _Operator) -> _OperatorStep | None:
        """The step of an insertion; None if it is not valid: from y a way leads to x that meets no new parent of y."""
        blocked = self.graph.beside[o.y] & self.adjacent[o.x] | o.clique
        if self._path(o.y, o.x, blocked):
            return None
        above, beside = list(self.graph.above), list(self.graph.beside)
        above[o.y] |= 1 << o.x | o.clique
        beside[o.y] &= ~o.clique
        for t in members(o.clique):
            beside[t] &= ~(1 << o.y)
        return self._complete(o, Class(above, beside))

    def _delete(self, o: _Operator) -> _OperatorStep | None:
        above, beside = list(self.graph.above), list(self.graph.beside)
        x, y = 1 << o.x, 1 << o.y
        above[o.y] &= ~x
        beside[o.y] &= ~x
        beside[o.x] &= ~y
        for h in members(self.graph.beside[o.y] & self.adjacent[o.x] & ~o.clique):
            above[h] |= y
            beside[o.y] &= ~(1 << h)
            beside[h] &= ~y
            if beside[h] & x:
                above[h] |= x
                beside[o.x] &= ~(1 << h)
                beside[h] &= ~x
        return self._complete(o, Class(above, beside))

    def _complete(self, o: _Operator, graph: Class) -> _OperatorStep | None:
        """The step to the class of this graph; None where no member keeps the rules and gains."""
        found = member(graph)
        settled = None if found is None else self._settle(found)
        if settled is None:
            return None
        total = self.total + o.gain if self.free else self.scores.total(settled[1])
        return None if total <= self.total + self.scores.tie(self.total) else _OperatorStep(o, *settled, total)

    def _settle(self, found: Ordered) -> tuple[Class, list[Parents]] | None:
        """The class of a graph with every edge directed that the rules leave no choice, and a member that keeps them."""
        graph = plain = class_of(found)
        if not self.free:
            graph = self._direct(plain)
            other = member(graph)
            if other is None or class_of(other) != plain:
                return None
            found = other
        parents = [tuple(found[y]) for y in range(self.problem.n)]
        return (graph, parents) if self.rules.permits(parents) else None

    def _direct(self, graph: Class) -> Class:
        arrows = [(x, y) for y, above in enumerate(graph.above) for x in members(above)]
        lines = []
        for y, around in enumerate(graph.beside):
            for x in members(around):
                if self.rules.required[y, x] or not self.rules.allowed[x, y]:
                    arrows.append((x, y))
                elif x < y and not self.rules.required[x, y] and self.rules.allowed[y, x]:
                    lines.append((x, y))
        return class_with(self.problem.n, *meek(arrows, lines))

    def _path(self, start: int, end: int, blocked: int) -> bool:
        """Whether a way leads from start to end along arrows and undirected edges, around the blocked nodes."""
        above, beside, adjacent = self.graph.above, self.graph.beside, self.adjacent
        seen = blocked | 1 << start
        agenda = [start]
        while agenda:
            node = agenda.pop()
            onward = (adjacent[node] & ~above[node] | beside[node]) & ~seen
            if onward >> end & 1:
                return True
            seen |= onward
            agenda += members(onward)
        return False

    def _go(self, step: _OperatorStep, what: str) -> set[tuple[int, int]]:
        """Go to the next class; gives the pairs (y, x) for which an insertion may have changed."""
        o, after, self.parents, self.total = step
        before, self.graph, self.adjacent = self.graph, after, after.adjacent()
        names = self.problem.names
        self.problem.progress.better(f"{what} {names[o.x]} -> {names[o.y]}", self.total, self.parents)
        n, ends = self.problem.n, (1 << o.x, 1 << o.y)
        pairs = set[tuple[int, int]]()
        for y in range(n):
            around = after.beside[y]
            if before.above[y] != after.above[y] or before.beside[y] != around or all(around & end for end in ends):
                pairs.update((y, x) for x in range(n))
            elif around & ends[0]:
                pairs.add((y, o.y))
            elif around & ends[1]:
                pairs.add((y, o.x))
        return pairs

    def _learn(self, families: Iterable[tuple[int, int]]) -> None:
        new = sorted({f for f in families if f[1] and f not in self.known})
        scores = self.scores.families([(y, tuple(members(base))) for y, base in new])
        self.known.update(zip(new, scores.tolist(), strict=True))

    def _learn_toggles(self, wanted: Iterable[tuple[int, int, int]]) -> None:
        """Learn (y | base) and (y | base, x), all x of one base in one batch."""
        batches: dict[tuple[int, int], list[int]] = {}
        wanted = list(wanted)
        self._learn({(y, base) for y, base, _ in wanted})
        for y, base, x in wanted:
            if (y, base | 1 << x) not in self.known:
                batches.setdefault((y, base), []).append(x)
        self.scores.ahead((y, tuple(members(base | 1 << x))) for (y, base), xs in batches.items() for x in xs)
        for (y, base), xs in batches.items():
            row = self.scores.toggles(y, tuple(members(base)), xs)
            self.known.update({(y, base | 1 << x): float(row[x]) for x in xs})
            self.problem.progress.check()


def _pairs(problem: Problem) -> tuple[Array, Array]:
    """The scores of single variables and of pairs, which must be the same in both directions."""
    single, pair = problem.scores.pairs()
    joint = np.where(pair > -np.inf, pair + single, -np.inf)
    both = np.isfinite(joint) & np.isfinite(joint.T)
    unequal = np.abs(np.where(both, joint, 0.0) - np.where(both, joint.T, 0.0)) > problem.scores.tie(float(single.sum()))
    if unequal.any():
        a, b = (problem.names[i] for i in np.argwhere(unequal)[0])
        raise FitError(
            f"GES needs a score that is the same for equivalent graphs; {problem.score} is not: {a!r} -> {b!r} and "
            f"{b!r} -> {a!r} differ; use {BY_BIC}, {score_by('Evidence(BDeu(1))', 'bdeu:1')}, or another method"
        )
    return single, pair
