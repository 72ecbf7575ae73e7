"""A walk from graph to graph, one edge at a time: what each next step would gain, and which steps are open.

A matrix holds the gain of putting in or taking out each parent of each child. A step changes the parents of one child (two when
an edge is reversed), and only its row is scored again; so a step costs one batch of scores whatever the graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError
from suffice.graphs import Dag
from suffice.structure.local_scores import toggled
from suffice.structure.problem import Problem
from suffice.structure.rules import Parents, Rules

ADD, DELETE, REVERSE = 0, 1, 2
KINDS = ("add", "delete", "reverse")

REMEMBERED = 2**23
"""Scores of rows that are remembered, for walks that come back to where they were."""


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
        from suffice.kernels.greedy import best_move, toggle_edge

        self._best_move, self._toggle_edge = best_move, toggle_edge
        n = problem.n
        self.scores, self.names, self.rules = problem.scores, problem.names, rules
        self.parents: list[Parents] = [()] * n
        self.here = np.zeros((n, n), np.uint8)
        self.above = np.zeros((n, n), np.uint8)
        self.key = np.random.default_rng(0).integers(1, 2**64 - 1, (n, n), np.uint64)
        self.graph = 0
        self._open = [np.flatnonzero(row).tolist() for row in rules.allowed & ~rules.required]
        self._rows: dict[tuple[int, Parents], npt.NDArray[np.float64]] = {}
        self._move = np.zeros(3, np.int64)
        self._start(start)

    def _start(self, start: Sequence[Parents]) -> None:
        single, pair = self.scores.pairs()
        self.local = single.copy()
        self.gain = np.where(self.rules.allowed, pair - single[:, None], -np.inf)
        self.gain[self.rules.max_parents == 0] = -np.inf
        self.gain[np.isnan(self.gain)] = -np.inf
        self.top = self.gain.max(1, initial=-np.inf)
        grown = [i for i, parents in enumerate(start) if parents]
        for i in grown:
            for p in start[i]:
                self._toggle_edge(self.here, self.above, i, p)
                self.graph ^= int(self.key[i, p])
        for i, score in zip(grown, self.scores.families([(i, start[i]) for i in grown]).tolist(), strict=True):
            if score == -np.inf:
                raise FitError(f"no search can start with {self.names[i]!r} below {self._named(start[i])}: there is no estimate")
            self._settle(i, start[i], score)

    def _named(self, nodes: Parents) -> str:
        return ", ".join(repr(self.names[p]) for p in nodes)

    @property
    def total(self) -> float:
        """The score of the graph."""
        return float(self.local.sum())

    def best(self, *, least: float, visited: npt.NDArray[np.uint64]) -> Move | None:
        """The move that gains most, if that is more than `least`, to a graph that was not visited."""
        tie = self.scores.tie(self.total)
        gain = self._best_move(
            self.gain, self.top, self.here, self.above, self.key, np.uint64(self.graph), visited, least, tie, self._move
        )
        return None if gain == -np.inf else Move(*self._move.tolist())

    def take(self, move: Move) -> None:
        """Go one step."""
        child, parent, kind = move
        self._toggle(child, parent)
        if kind == REVERSE:
            self._toggle(parent, child)

    def words(self, move: Move) -> str:
        """A move for a trace."""
        return f"{KINDS[move.kind]} {self.names[move.parent]} -> {self.names[move.child]}"

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
        names = ("parents", "here", "above", "graph", "local", "gain", "top")
        return {name: value if isinstance(value := getattr(self, name), int) else value.copy() for name in names}

    def restore(self, kept: dict[str, Any]) -> None:
        """Go back to where `copy` was taken."""
        for name, value in kept.items():
            setattr(self, name, value if isinstance(value, int) else value.copy())

    def _toggle(self, child: int, parent: int) -> None:
        score = self.local[child] + self.gain[child, parent]
        self._toggle_edge(self.here, self.above, child, parent)
        self.graph ^= int(self.key[child, parent])
        self._settle(child, toggled(self.parents[child], parent), score)

    def _settle(self, child: int, parents: Parents, score: float) -> None:
        """The child has these parents now: what would each further step gain?"""
        self.parents[child], self.local[child] = parents, score
        row = self.gain[child]
        row[:] = self._row(child, parents)
        row -= score
        self.top[child] = row.max()

    def _row(self, child: int, parents: Parents) -> npt.NDArray[np.float64]:
        known = self._rows.get((child, parents))
        if known is not None:
            return known
        if len(parents) < self.rules.max_parents[child]:
            candidates = self._open[child]
        else:
            candidates = [p for p in parents if not self.rules.required[child, p]]
        row = self.scores.toggles(child, parents, candidates)
        row[np.isnan(row)] = -np.inf
        if len(self._rows) * len(row) >= REMEMBERED:
            self._rows.clear()
        self._rows[child, parents] = row
        return row


def starting(problem: Problem, rules: Rules, start: Dag | None) -> list[Parents]:
    """The graph that a walk starts from: the edges that are required, or a graph of the user's that keeps the rules."""
    if start is None:
        return rules.start()
    dag = Dag(start, nodes=problem.names)
    number = {name: i for i, name in enumerate(problem.names)}
    parents = [tuple(sorted(number[p] for p in dag.parents(name))) for name in problem.names]
    _check(problem, rules, parents)
    return parents


def _check(problem: Problem, rules: Rules, parents: list[Parents]) -> None:
    names = problem.names
    for i, chosen in enumerate(parents):
        for p in chosen:
            if not rules.allowed[i, p]:
                raise FitError(f"the start has the edge {names[p]!r} -> {names[i]!r}, which is not allowed")
        if len(chosen) > rules.max_parents[i]:
            raise FitError(f"{names[i]!r} has {len(chosen)} parents in the start, and may have at most {rules.max_parents[i]}")
        for p in np.flatnonzero(rules.required[i]).tolist():
            if p not in chosen:
                raise FitError(f"the start lacks the edge {names[p]!r} -> {names[i]!r}, which is required")
