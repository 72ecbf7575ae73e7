"""Hill climbing and tabu search: walks from graph to graph, one edge at a time.

A matrix holds the gain of putting in or taking out each parent of each child. A step changes the parents of one child (two when
an edge is reversed), and only its row is scored again; so a step costs one batch of scores whatever the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array
from suffice.errors import FitError
from suffice.graphs import Dag
from suffice.structure.problem import Method, Outcome, Problem, check_number
from suffice.structure.rules import Parents, Rules, toggle_parent

ADD, DELETE, REVERSE = 0, 1, 2
KINDS = ("add", "delete", "reverse")

REMEMBERED = 2**23
"""Scores of rows that are remembered, for walks that come back to where they were."""

NOWHERE = np.empty(0, np.uint64)
"""Graphs not to go to: a climb has none, since it never goes down."""


@dataclass(frozen=True)
class HillClimb(Method):
    """Add, delete or reverse the edge that gains most until nothing gains (Heckerman, Geiger & Chickering 1995, section 7).

    The climb begins at `start` (anything that `Dag` takes), or else with the required edges only. With `restarts` it goes on: the
    best graph so far is changed by `perturbations` random moves (by default half as many as variables, at least 8), and climbed
    from again. Of moves that gain alike, the first by (child, parent) is made, names in order, and an edge is rather deleted than
    reversed.

    >>> from suffice import search
    >>> rows = {"rain": list("nnnnyyyy") * 9, "wet": list("nnnnyynn") * 9, "moon": list("nf") * 36}
    >>> found = search(rows, method=HillClimb())
    >>> found.dag
    Dag('moon; rain -> wet')
    >>> [step.what for step in found.trace]
    ['start', 'add wet -> rain']
    """

    word = "hill-climb"

    max_parents: int | None = None
    restarts: int = 0
    start: Any = None
    perturbations: int | None = None

    def __post_init__(self) -> None:
        check_number("max_parents", self.max_parents, 0, optional=True)
        check_number("restarts", self.restarts, 0)
        check_number("perturbations", self.perturbations, 1, optional=True)
        object.__setattr__(self, "start", self.start if self.start is None else Dag(self.start))

    def run(self, problem: Problem) -> Outcome:
        """Climb, and climb again from each perturbed best graph."""
        walk = begin_walk(problem, self.max_parents, self.start)
        climb(problem, walk)
        best = walk.copy()
        for k in range(self.restarts):
            top = walk.total
            rng = np.random.default_rng([problem.seed, k])
            for _ in range(self.perturbations or max(8, problem.n // 2)):  # first the kind is drawn, then a move of that kind
                if moves := walk.moves(int(rng.integers(3))):
                    walk.take(moves[int(rng.integers(len(moves)))])
            climb(problem, walk, above=top)
            if walk.total > top + walk.scores.tie(top):
                best = walk.copy()
                if walk.total > problem.progress.score:  # the random moves alone have led there
                    problem.progress.better(f"restart {k + 1}", walk.total, list(walk.parents))
            else:
                walk.restore(best)
        return Outcome(list(walk.parents))


@dataclass(frozen=True)
class Tabu(Method):
    """Hill climbing that takes the best step even where it loses, to a graph that it has not just left (Glover 1989, 1990).

    The last `length` graphs are not gone back to. The search ends after `patience` steps in a row without a new best graph, and
    gives the best graph of its way. `start` and ties are as in `HillClimb`.

    >>> from suffice import search
    >>> rows = {"rain": list("nnnnyyyy") * 9, "wet": list("nnnnyynn") * 9, "moon": list("nf") * 36}
    >>> search(rows, method=Tabu()).dag
    Dag('moon; rain -> wet')
    """

    word = "tabu"

    max_parents: int | None = None
    length: int = 100
    patience: int = 100
    start: Any = None

    def __post_init__(self) -> None:
        check_number("max_parents", self.max_parents, 0, optional=True)
        check_number("length", self.length, 1)
        check_number("patience", self.patience, 1)
        object.__setattr__(self, "start", self.start if self.start is None else Dag(self.start))

    def run(self, problem: Problem) -> Outcome:
        """Walk on until patience ends."""
        walk, progress = begin_walk(problem, self.max_parents, self.start), problem.progress
        best, top, idle = list(walk.parents), walk.total, 0
        visited = np.zeros(self.length, np.uint64)
        step = 0
        while idle < self.patience:
            visited[step % self.length] = walk.graph
            step += 1
            move = walk.best(least=-np.inf, visited=visited[:step])
            if move is None:
                break
            what = walk.take(move)
            if walk.total > top + walk.scores.tie(top):
                best, top, idle = list(walk.parents), walk.total, 0
                progress.better(what, top, best)
            else:
                idle += 1
                progress.check()
        return Outcome(best)


class Move(NamedTuple):
    """One step: what is done to the edge parent -> child. Moves that gain alike are taken in the order of these numbers."""

    child: int
    parent: int
    kind: int


class Walk:
    """Where a walk is: the parents of each node, their scores, and the gain of each step from here.

    Steps keep the rules: an edge that is required is never taken out, a child that has all the parents it may have gets no more.
    """

    def __init__(self, problem: Problem, rules: Rules, start: Sequence[Parents]) -> None:
        from suffice.numerics.kernels.search.greedy import best_move, toggle_edge

        self._best_move, self._toggle_edge = best_move, toggle_edge
        n = problem.n
        self.scores, self.names, self.rules = problem.scores, problem.names, rules
        self.parents: list[Parents] = [()] * n
        self.here, self.above = np.zeros((2, n, n), np.uint8)
        self.key = np.random.default_rng(0).integers(1, 2**64 - 1, (n, n), np.uint64)
        self.graph = 0
        self._open = [np.flatnonzero(row).tolist() for row in rules.allowed & ~rules.required]
        self._rows: dict[tuple[int, Parents], Array] = {}
        self._move = np.zeros(3, np.int64)
        single, pair = self.scores.pairs()
        self.local = single.copy()
        self.gain = np.where(rules.allowed, pair - single[:, None], -np.inf)
        self.gain[rules.max_parents == 0] = -np.inf
        self.gain[np.isnan(self.gain)] = -np.inf
        self.top = self.gain.max(1, initial=-np.inf)
        grown = [i for i, parents in enumerate(start) if parents]
        for i in grown:
            for p in start[i]:
                self._toggle_edge(self.here, self.above, i, p)
                self.graph ^= int(self.key[i, p])
        for i, score in zip(grown, self.scores.families([(i, start[i]) for i in grown]).tolist(), strict=True):
            if score == -np.inf:
                above = ", ".join(repr(self.names[p]) for p in start[i])
                raise FitError(f"no search can start with {self.names[i]!r} below {above}: there is no estimate")
            self._settle(i, start[i], score)
        self.total = float(self.local.sum())

    def best(self, *, least: float, visited: npt.NDArray[np.uint64]) -> Move | None:
        """The move that gains most, if that is more than `least`, to a graph that was not visited."""
        tie = self.scores.tie(self.total)
        gain = self._best_move(
            self.gain, self.top, self.here, self.above, self.key, np.uint64(self.graph), visited, least, tie, self._move
        )
        return None if gain == -np.inf else Move(*self._move.tolist())

    def take(self, move: Move) -> str:
        """Go one step, and say it for a trace."""
        child, parent, kind = move
        changes = [(child, parent)]
        if kind == REVERSE:  # two nodes have other parents then: both are scored at once
            changes.append((parent, child))
            self.scores.ahead([*self._next(child, parent), *self._next(parent, child)])
        for c, p in changes:
            score = self.local[c] + self.gain[c, p]
            self._toggle_edge(self.here, self.above, c, p)
            self.graph ^= int(self.key[c, p])
            self._settle(c, toggle_parent(self.parents[c], p), score)
        self.total = float(self.local.sum())
        return f"{KINDS[kind]} {self.names[parent]} -> {self.names[child]}"

    def moves(self, kind: int) -> list[Move]:
        """All moves of one kind, whatever they gain."""
        if kind == ADD:
            open_ = (self.gain > -np.inf) & (self.here == 0) & (self.above.T == 0)
            return [Move(i, j, ADD) for i, j in np.argwhere(open_).tolist()]
        edges = [(i, j) for i, j in np.argwhere(self.here).tolist() if self.gain[i, j] > -np.inf]
        if kind == DELETE:
            return [Move(i, j, DELETE) for i, j in edges]
        turned = [(i, j) for i, j in edges if self.gain[j, i] > -np.inf]
        return [Move(i, j, REVERSE) for i, j in turned if not self.above[list(self.parents[i]), j].any()]

    def copy(self) -> dict[str, Any]:
        """All that a step changes, to come back to."""
        names = ("parents", "here", "above", "graph", "local", "gain", "top", "total")
        return {name: copy(getattr(self, name)) for name in names}

    def restore(self, kept: dict[str, Any]) -> None:
        """Go back to where `copy` was taken."""
        for name, value in kept.items():
            setattr(self, name, copy(value))

    def _settle(self, child: int, parents: Parents, score: float) -> None:
        """The child has these parents now: what would each further step gain?"""
        self.parents[child], self.local[child] = parents, score
        row = self._rows.get((child, parents))
        if row is None:
            row = self.scores.toggles(child, parents, self._candidates(child, parents))
            row[np.isnan(row)] = -np.inf
            if len(self._rows) * len(row) >= REMEMBERED:
                self._rows.clear()
            self._rows[child, parents] = row
        np.subtract(row, score, out=self.gain[child])
        self.top[child] = self.gain[child].max()

    def _candidates(self, child: int, parents: Parents) -> list[int]:
        """Who may come to the parents of a child, or go."""
        if len(parents) < self.rules.max_parents[child]:
            return self._open[child]
        return [p for p in parents if not self.rules.required[child, p]]

    def _next(self, child: int, parent: int) -> list[tuple[int, Parents]]:
        """The families that are scored once an edge is put in, or taken out."""
        parents = toggle_parent(self.parents[child], parent)
        if (child, parents) in self._rows:
            return []
        return [(child, toggle_parent(parents, c)) for c in self._candidates(child, parents) if c != child]


def begin_walk(problem: Problem, max_parents: int | None, start: Dag | None) -> Walk:
    """A walk from the edges that are required, or from a graph of the user's that keeps the rules."""
    rules = problem.rules.cap(max_parents)
    parents = rules.start()
    if start is not None:
        names, parents = problem.names, problem.parents(Dag(start, nodes=problem.names))
        for i, chosen in enumerate(parents):
            for p in chosen:
                if not rules.allowed[i, p]:
                    raise FitError(f"the start has the edge {names[p]!r} -> {names[i]!r}, which is not allowed")
            if len(chosen) > rules.max_parents[i]:
                most = rules.max_parents[i]
                raise FitError(f"{names[i]!r} has {len(chosen)} parents in the start, and may have at most {most}")
            for p in np.flatnonzero(rules.required[i]).tolist():
                if p not in chosen:
                    raise FitError(f"the start lacks the edge {names[p]!r} -> {names[i]!r}, which is required")
    problem.progress.better("start", problem.scores.total(parents), list(parents))  # something to return, should time be short
    return Walk(problem, rules, parents)


def climb(problem: Problem, walk: Walk, above: float = -np.inf) -> None:
    """Walk to a graph that no move betters; only steps to a score above `above` are news."""
    while True:
        tie = walk.scores.tie(walk.total)
        move = walk.best(least=tie, visited=NOWHERE)
        if move is None:
            return
        what = walk.take(move)
        if walk.total > above + (tie if above > -np.inf else 0.0):
            problem.progress.better(what, walk.total, list(walk.parents))
        else:
            problem.progress.check()


def climb_from(problem: Problem, rules: Rules, start: list[Parents] | None = None) -> list[Parents]:
    """The parents in the graph that a climb within these rules ends at, where a first graph is known already."""
    walk = Walk(problem, rules, rules.start() if start is None else start)
    climb(problem, walk, above=problem.progress.score)
    return list(walk.parents)
