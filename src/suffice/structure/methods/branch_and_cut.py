"""The best graph by branch and cut: a linear program over parent sets, cuts against cycles, and a tree where they do not suffice.

The program of Jaakkola et al. (2010) and Cussens (2011): x(i, P) says that P are the parents of i. Its bound is not taken from
the solver but computed from the multipliers λ of the cuts, and so holds to the last digit whatever the solver's tolerance:

    score of any acyclic graph  ≤  Σ_i max_P (s(i, P) − Σ λ a(i, P)) + Σ λ β,

and a set whose term is further below its child's best than the bound is above the best known graph is dropped for good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import highspy
import numpy as np
from scipy.sparse import csc_array

from suffice.basis.arrays import Array, Bools, Ints
from suffice.structure.methods.cuts import Cut, Fraction, cluster_cut, clusters, local_cuts
from suffice.structure.rules import Parents
from suffice.structure.scoring.parent_sets import ParentSets

Pair = tuple[int, int]

AGE = 20
"""Rounds after which a cut that does nothing is forgotten."""

PATIENCE = 6
"""Rounds in which the gap must shrink by SHRINK of itself, or a node is branched on."""

SHRINK = 0.03

STRONG = 6
"""Choices to branch on that are tried, before the best is taken."""

LOCAL = ((4, 300), (5, 200), (6, 60))
"""Sizes of local cuts, and how many sets of variables are tried for each; a larger size only where smaller ones give little."""


@dataclass
class Solved:
    """A solved relaxation: its bound, how far each column is below its child's best, and the fractional graph, if optimal."""

    bound: float
    below: Array
    point: Fraction | None


class Relaxation:
    """The linear program over the parent sets, with cuts."""

    def __init__(self, sets: ParentSets) -> None:
        self.n = sets.n
        self.child: Ints = np.repeat(np.arange(sets.n), np.diff(sets.first))
        self.parents: Bools = sets.flags()
        self.first: Ints = sets.first[:-1].astype(np.int64)
        self.base = sets.score[self.first]
        self.score: Array = sets.score - self.base[self.child]
        self.cuts: list[Cut] = []
        self.age: Ints = np.zeros(0, np.int64)
        self._build()

    def _build(self) -> None:
        self.lp = highspy.Highs()
        for name, value in (("output_flag", False), ("threads", 1), ("dual_feasibility_tolerance", 1e-9)):
            self.lp.setOptionValue(name, value)
        size, infinite = len(self.score), highspy.kHighsInf
        none, nothing = np.empty(0, np.int32), np.empty(0)
        self.lp.addCols(size, -self.score, np.zeros(size), np.full(size, infinite), 0, none, none, nothing)
        for start, stop in zip(self.first, [*self.first[1:], size], strict=True):
            self.lp.addRow(1.0, 1.0, stop - start, np.arange(start, stop, dtype=np.int32), np.ones(stop - start))
        for cut in self.cuts:
            self._add_row(cut)
        self._matrix: Any = None

    def _add_row(self, cut: Cut) -> None:
        self.lp.addRow(-highspy.kHighsInf, cut.most, len(cut.columns), cut.columns.astype(np.int32), cut.values)

    def add(self, cuts: list[Cut]) -> None:
        """Take more cuts."""
        for cut in cuts:
            self._add_row(cut)
        self.cuts += cuts
        self.age = np.append(self.age, np.zeros(len(cuts), np.int64))
        self._matrix = None

    def forget(self) -> None:
        """Drop cuts that have done nothing for long."""
        old, kept = np.flatnonzero(self.age > AGE), np.flatnonzero(self.age <= AGE)
        if len(old) > 20:
            self.lp.deleteRows(len(old), (self.n + old).astype(np.int32))
            self.cuts, self.age = [self.cuts[k] for k in kept], self.age[kept]
            self._matrix = None

    def keep(self, columns: Bools) -> None:
        """Drop the other columns for good."""
        place = np.cumsum(columns) - 1
        self.cuts = [Cut(place[c.columns[columns[c.columns]]], c.values[columns[c.columns]], c.most) for c in self.cuts]
        self.child, self.parents, self.score = self.child[columns], self.parents[columns], self.score[columns]
        self.first = np.searchsorted(self.child, np.arange(self.n)).astype(np.int64)
        self._build()

    def solve(self, open_columns: Bools, left: Callable[[], float], *, aging: bool = True) -> Solved | None:
        """The relaxation over some columns; None if it has no solution."""
        if not np.logical_or.reduceat(open_columns, self.first).all():
            return None
        size = len(self.score)
        high = np.where(open_columns, highspy.kHighsInf, 0.0)
        self.lp.changeColsBounds(size, np.arange(size, dtype=np.int32), np.zeros(size), high)
        status = self._run(left)
        if status == highspy.HighsModelStatus.kInfeasible:
            return None
        solution = self.lp.getSolution()
        weight = np.maximum(0.0, -np.array(solution.row_dual)[self.n :]) if solution.dual_valid else np.zeros(len(self.cuts))
        self.age = np.where(weight > 0, 0, self.age + aging)
        value = np.where(open_columns, self.score - self._transpose() @ weight, -np.inf)
        best = np.maximum.reduceat(value, self.first)
        bound = float(self.base.sum() + best.sum() + weight @ [c.most for c in self.cuts])
        point = None
        if status == highspy.HighsModelStatus.kOptimal:
            x = np.array(solution.col_value)
            seen = np.flatnonzero(x > 1e-7)
            point = Fraction(self.child[seen], self.parents[seen], x[seen])
        return Solved(bound, best[self.child] - value, point)

    def _run(self, left: Callable[[], float]) -> Any:
        """Let the solver work, a few seconds at a time, so that limits and Ctrl-C are seen."""
        seconds = 1.0
        while (more := left()) > 0:
            self.lp.setOptionValue("time_limit", self.lp.getRunTime() + min(seconds, more))
            self.lp.run()
            status = self.lp.getModelStatus()
            if status != highspy.HighsModelStatus.kTimeLimit:
                break
            seconds *= 2
        return self.lp.getModelStatus()

    def _transpose(self) -> Any:
        """The coefficients: columns × cuts."""
        if self._matrix is None:
            lengths = np.cumsum([0, *(len(c.columns) for c in self.cuts)])
            rows = np.concatenate([np.empty(0, np.int64), *(c.columns for c in self.cuts)])
            values = np.concatenate([np.empty(0), *(c.values for c in self.cuts)])
            self._matrix = csc_array((values, rows, lengths), shape=(len(self.score), len(self.cuts)))
        return self._matrix


@dataclass(order=True)
class Node:
    """A part of the graphs: those with some edges, without others, and with an order of some pairs; [child, parent] flags."""

    worst: float
    number: int
    never: Bools = field(compare=False)
    always: Bools = field(compare=False)
    before: Bools = field(compare=False)

    def with_(self, never: Pair | None = None, always: Pair | None = None, before: Pair | None = None) -> Node | None:
        """A part of it: without an edge (child, parent), with one, or with one variable before another; None if there is none."""
        part = Node(self.worst, self.number, self.never.copy(), self.always.copy(), self.before)
        if never is not None:
            part.never[never] = True
        if always is not None:
            part.always[always] = True
        if before is not None:
            a, b = before
            earlier, later = self.before[:, a].copy(), self.before[b].copy()
            earlier[a], later[b] = True, True
            part.before = self.before | np.outer(earlier, later)
        return None if part.before.diagonal().any() else part

    def admits(self, child: Ints, parents: Bools) -> Bools:
        """The columns that its graphs may have."""
        never = self.never | self.before  # i before j: j is no parent of i
        missed = (parents & never[child]) | (self.always[child] & ~parents)
        return np.logical_not(missed.any(1))


class BranchAndCut:
    """The search. It can be stopped at any time: `parents` is the best graph so far, and none scores more than `bound`."""

    def __init__(
        self,
        sets: ParentSets,
        start: list[Parents],
        *,
        tie: float = 0.0,
        gap: float = 0.0,
        left: Callable[[], float] = lambda: np.inf,
        better: Callable[[float, list[Parents]], None] = lambda score, parents: None,
    ) -> None:
        self.sets, self.parents, self.better, self.left, self.gap = sets, start, better, left, gap
        known = [dict(sets.of_child(i)) for i in range(sets.n)]
        self.score = sum(known[i][p] for i, p in enumerate(start))
        self.tolerance = max(tie / 4, 1e-12 * (1.0 + abs(self.score)))
        self.bound = sets.bound
        self._done = -np.inf  # the largest bound among what was set aside
        self._open: list[Node] = []
        self._n_pushed = 0
        self.n_nodes = 0

    def run(self) -> None:
        """Search until the best graph is proved, up to `gap`; `left` says how many seconds there are."""
        n = self.sets.n
        self.relaxation = Relaxation(self.sets)
        nothing = np.zeros((n, n), bool)
        self._open = [Node(-self.bound, 0, nothing, nothing, nothing)]
        while self._open and not self._enough:
            node = heappop(self._open)
            self.n_nodes += 1
            self._work(node)
        self._tell(self._done)

    @property
    def proved(self) -> bool:
        """Whether no graph scores more than the best known."""
        return self.bound <= self.score + self.tolerance

    @property
    def _enough(self) -> bool:
        return self.bound <= self.score + max(self.tolerance, self.gap * abs(self.score))

    def _tell(self, bound: float) -> None:
        """The bound is the largest of all parts that are not yet done, and of those set aside."""
        waiting = -self._open[0].worst if self._open else -np.inf
        self.bound = max(self.score, min(self.bound, max(bound, waiting, self._done)))

    def _work(self, node: Node) -> None:
        """Cut until that no longer helps, then set aside or branch."""
        history: list[float] = []
        relaxation, bound, fixed = self.relaxation, -node.worst, None
        while True:
            admitted = node.admits(relaxation.child, relaxation.parents) & (True if fixed is None else fixed)
            solved = relaxation.solve(admitted, self.left)
            if solved is None:
                return
            bound = min(bound, solved.bound)
            self._tell(bound)
            if solved.point is not None:
                self._round(solved.point)
            if bound <= self.score + self.tolerance or self._enough:
                self._done = max(self._done, bound)
                return
            worth = admitted & (solved.below <= solved.bound - self.score - self.tolerance)
            self._done = max(self._done, self.score + self.tolerance if (admitted & ~worth).any() else -np.inf)
            if node.number == 0 and worth.sum() < 0.7 * len(worth):
                relaxation.keep(worth)
                worth = np.ones(int(worth.sum()), bool)
            fixed = worth
            history.append(bound)
            stalled = len(history) > PATIENCE and history[-PATIENCE] - bound < SHRINK * (bound - self.score)
            if solved.point is None or stalled:
                break
            cuts = self._cuts(solved.point, root=node.number == 0)
            if not cuts:
                break
            relaxation.forget()
            relaxation.add(cuts)
        self._branch(node, bound, solved.point, fixed)

    def _cuts(self, point: Fraction, root: bool) -> list[Cut]:
        """Cuts that the point violates, cheap ones first."""
        child, parents = self.relaxation.child, self.relaxation.parents
        found = [cluster_cut(child, parents, c, 1) for c in clusters(point, 1, 40)]
        if len(found) < 10:
            found += [cluster_cut(child, parents, c, k) for k in (2, 3) for c in clusters(point, k, 15)]
        for size, tries in LOCAL if root else LOCAL[:-1]:
            if len(found) >= 10 or size > point.n or self.left() <= 0:
                break
            found += local_cuts(point, child, parents, size, tries)
        return found

    def _round(self, point: Fraction) -> None:
        """The graph of an order that the fractional graph suggests."""
        n = point.n
        placed = np.zeros(n, bool)
        parents: list[Parents] = [()] * n
        score = 0.0
        for _ in range(n):
            ready = np.bincount(point.child, point.x * ~(point.parents & ~placed).any(1), n)
            ready[placed] = -1.0
            child = int(np.argmax(ready))
            rows = range(self.sets.first[child], self.sets.first[child + 1])
            row = next((r for r in rows if all(placed[p] for p in self.sets.parents[r])), None)
            if row is None:
                return
            parents[child], score = self.sets.parents[row], score + float(self.sets.score[row])
            placed[child] = True
        if score > self.score + self.tolerance:
            self.score, self.parents = score, parents
            self.better(score, parents)

    def _branch(self, node: Node, bound: float, point: Fraction | None, fixed: Bools) -> None:
        """Into two: which of two variables comes first, or an edge that is there or not; of a few choices the most helpful."""
        best: tuple[float, list[Node]] | None = None
        choices = self._choices(node, point)
        for choice in choices:
            parts = [part for part in (node.with_(**more) for more in choice) if part is not None]
            gain = 1.0
            for part in parts:
                part.worst = -bound
                if len(choices) > 1:
                    admitted = part.admits(self.relaxation.child, self.relaxation.parents) & fixed
                    solved = self.relaxation.solve(admitted, self.left, aging=False)
                    part.worst = np.inf if solved is None else max(-bound, -solved.bound)
                    gain *= max(1e-6, min(part.worst, -self.score) + bound)
            if best is None or gain > best[0]:
                best = gain, parts
        if best is None:
            self._done = max(self._done, bound)
            return
        for part in best[1]:
            if -part.worst > self.score + self.tolerance:
                self._n_pushed += 1
                part.number = self._n_pushed
                heappush(self._open, part)
            else:
                self._done = max(self._done, -part.worst)

    def _choices(self, node: Node, point: Fraction | None) -> list[list[dict[str, Pair]]]:
        """Pairs of variables with an edge both ways, each in part; or else the edge in most doubt."""
        n = self.sets.n
        arcs = point.arcs if point is not None else np.full((n, n), 0.5)
        undecided = np.triu(~(node.before | node.before.T), 1)
        both = np.where(undecided, np.minimum(arcs, arcs.T), 0.0)
        order = np.argsort(-both, axis=None, kind="stable")[:STRONG]
        pairs = [(int(k) // n, int(k) % n) for k in order if both.flat[k] > 0.02]
        if pairs:
            return [[{"before": (i, j)}, {"before": (j, i)}] for i, j in pairs]
        open_edge = ~(node.never | node.always | node.before | np.eye(n, dtype=bool))
        doubt = np.where(open_edge, np.minimum(arcs, 1.0 - arcs), -1.0)
        i, j = map(int, np.unravel_index(np.argmax(doubt), doubt.shape))
        return [] if doubt[i, j] < 0 else [[{"before": (j, i), "always": (i, j)}, {"never": (i, j)}]]
