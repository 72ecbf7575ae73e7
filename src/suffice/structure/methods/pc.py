"""Searches by tests of independence: PC takes edges and directions from them, MMHC the candidates of a climb by a score."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Bools, Ints
from suffice.errors import FitError, GraphError, note
from suffice.graphs import Cpdag, Dag
from suffice.structure.independence import IndependenceTest, suitable_test
from suffice.structure.methods.hill_climb import HillClimb
from suffice.structure.methods.orientation import Majority, Orientation, Verdict, orient_edges, possible, triples
from suffice.structure.problem import Method, Outcome, Problem, check_number
from suffice.structure.rules import Parents, Rules
from suffice.structure.separation import Census, Judge, Questions, census, find_separators, judge_of

Pair = tuple[str, str]
MAJORITY = Majority()

ALIKE = 1e-9
"""Log p-values that differ by a smaller share are equal; then the smaller name comes first."""


class Separation(NamedTuple):
    """The set that separates a pair, and the p-value of the test that says so."""

    given: tuple[str, ...]
    p_value: float


@dataclass(frozen=True)
class Separations:
    """What the tests of a search said: pairs are sorted names."""

    separated: Mapping[Pair, Separation] = field(repr=False)
    """The pairs without an edge, but for those that the rules keep apart."""
    strongest: Mapping[Pair, float] = field(repr=False)
    """The pairs that no set separates, and the largest p-value of all their tests."""
    n_tests: int
    """How many tests were made."""

    def of(self, a: str, b: str) -> tuple[tuple[str, ...] | None, float | None]:
        """What separates two variables, if anything does, and its p-value, or else the largest; None for a pair never tested."""
        pair = min(a, b), max(a, b)
        return self.separated.get(pair, (None, self.strongest.get(pair)))

    def __repr__(self) -> str:
        return f"Separations({self.n_tests:,} tests: {len(self.separated):,} pairs separated, {len(self.strongest):,} joined)"


@dataclass(frozen=True)
class MethodByTests(Method):
    """What methods that test independence have in common."""

    alpha: float = 0.05
    test: IndependenceTest | None = None
    max_condition: int | None = None

    def __post_init__(self) -> None:
        """Refuse a level or a size that is none."""
        if not isinstance(self.alpha, (int, float)) or isinstance(self.alpha, bool) or not 0 < self.alpha < 1:
            raise FitError(f"alpha, the level of the tests, must be a number between 0 and 1, not {self.alpha!r}")
        check_number("max_condition", self.max_condition, 0, optional=True)

    def judge(self, problem: Problem) -> Judge:
        """Who answers the tests of a problem."""
        return judge_of(problem, suitable_test(problem.variables, self.test, adjusted=True))

    def at_most(self, n: int) -> int:
        """How many members sets may have, where there could be n."""
        return n if self.max_condition is None else min(n, self.max_condition)


@dataclass(frozen=True)
class PC(MethodByTests):
    """Edges that no test separates, directed as far as the tests say: an equivalence class (Spirtes & Glymour 1991).

    This is PC-stable (Colombo & Maathuis 2014, JMLR 15, section 4): an edge x - y goes when x and y are independent (p > alpha)
    given some set of the other neighbours of x or of y. Sets grow from none to `max_condition` members, and the neighbours change
    only from one size to the next, so that the order of the columns does not matter. Of one size, sets are tried in the order of
    names, those of the first of the two variables first; the first that separates is kept. Then `orient` (`Majority()`,
    `Conservative()` or `FirstSepset()`) tells colliders, and Meek's rules direct the rest. When colliders contradict each other
    the surer one counts: the one whose middle is in the smaller share of the separating sets, then the one whose ends are
    separated with the larger p-value.

    `test` is by default `GSquared(adjusted=True)` for finite variables, `FisherZ()` for numbers, `LikelihoodRatio()` for both.
    No heuristic skips a test for want of rows; a table too sparse to speak has few degrees of freedom left. A variable that
    others determine (a copy, a sum) is independent of all else given those, so that its edges may be lost.

    Constraints: an edge that is forbidden both ways is left out from the start, a required one is never tested, and one that is
    allowed in one direction only is directed so. More parents than allowed: no collider is made of them, and if the result needs
    them all the same, the weakest edge (of the largest p-value) is taken out, with a note.

    >>> from suffice import search
    >>> rows = {"rain": ["no", "no", "yes", "yes"] * 9, "wet": ["no", "no", "yes", "no"] * 9, "moon": ["new", "full"] * 18}
    >>> found = search(rows, method=PC())
    >>> found.cpdag, found.score
    (Cpdag([('moon', 'wet'), ('rain', 'wet')]), None)
    >>> found.details.separated["moon", "rain"]
    Separation(given=(), p_value=1.0)
    """

    word = "pc"

    orient: Orientation = MAJORITY

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.orient, Orientation):
            raise FitError(f"orient is Majority(), Conservative() or FirstSepset(), not {self.orient!r}")

    def run(self, problem: Problem) -> Outcome:
        """The equivalence class, and the tests that led to it."""
        problem.refuse_regressions(self, "it tests independence, and scores nothing")
        if problem.n < 2:
            return Outcome([], cpdag=Cpdag(nodes=problem.names), details=Separations({}, {}, 0))
        judge = self.judge(problem)
        skeleton = Skeleton.of(self, problem, judge)
        verdicts, n_tests = self._verdicts(judge, skeleton, problem)
        cpdag = within_bounds(problem, skeleton, verdicts)
        return Outcome([], cpdag=cpdag, details=skeleton.by_name(problem.names, n_tests))

    def _verdicts(self, judge: Judge, skeleton: Skeleton, problem: Problem) -> tuple[list[Verdict], int]:
        """Which triples are colliders, and the number of tests that took."""
        # The past is not tested against itself, and its arrows are known.
        found = [t for t in triples(skeleton.adjacent) if not {t.x, t.y} <= problem.given]
        ends = sorted({(t.x, t.y) for t in found})
        counted = Census(np.zeros(len(ends), np.int64), Counter(), 0)
        if self.orient.all_sets and ends:
            asked = Questions.of(ends, [np.flatnonzero(row) for row in skeleton.adjacent])
            # The ends of a triple are not each other's neighbours, so that all of an end's neighbours may separate them.
            counted = census(judge, asked, self.at_most(skeleton.largest + 1), self.alpha, problem.progress)
        n_sets, n_with, n_tests = counted
        place = {pair: e for e, pair in enumerate(ends)}
        for pair, given in skeleton.given.items():
            if pair in place and not (self.orient.all_sets and any(skeleton.adjacent[v, list(given)].all() for v in pair)):
                n_sets[place[pair]] += 1  # the set that was found first is not among those of the last neighbours
                n_with.update((place[pair], z) for z in given)
        verdicts = []
        for t in found:
            e = place[t.x, t.y]
            n, with_z = int(n_sets[e]), n_with[e, t.z]
            share, log_p = with_z / n if n else 0.5, float(skeleton.log_p[t.x, t.y])
            verdicts.append(Verdict(t, self.orient.collider(n, with_z), share, log_p))
        return verdicts, n_tests


@dataclass(frozen=True)
class Skeleton:
    """Which variables are joined, what separates the others, and the log p-value of that; of a joined pair the largest."""

    adjacent: Bools
    given: dict[tuple[int, int], Parents]
    log_p: Array
    n_tests: int
    largest: int
    """The size of the largest sets that were tried."""

    @staticmethod
    def of(method: MethodByTests, problem: Problem, judge: Judge) -> Skeleton:
        """Take away the edges that a test separates, by sets of 0, 1, 2 … neighbours."""
        n, may, required = problem.n, possible(problem.rules), problem.rules.required
        adjacent, kept = may | may.T, required | required.T
        log_p, n_tests, k = np.full((n, n), -np.inf), 0, 0
        given: dict[tuple[int, int], Parents] = {}
        while k <= method.at_most(n):
            degree = adjacent.sum(1)
            enough = np.maximum(degree[:, None], degree) > k
            pairs = np.argwhere(np.triu(adjacent & ~kept & enough))
            if not len(pairs):
                break
            pools = [np.flatnonzero(row) if k else np.zeros(0, np.int64) for row in adjacent]
            answers = find_separators(judge, Questions.of(pairs, pools), k, method.alpha, problem.progress)
            n_tests += answers.n_tests
            for (x, y), members, value in zip(pairs.tolist(), answers.given, answers.log_p.tolist(), strict=True):
                if members is not None:
                    given[x, y] = members
                    adjacent[x, y] = adjacent[y, x] = False
                log_p[x, y] = log_p[y, x] = value if members is not None else max(value, log_p[x, y])
            k += 1
        return Skeleton(adjacent, given, log_p, n_tests, max(k - 1, 0))

    def by_name(self, names: tuple[str, ...], more_tests: int) -> Separations:
        """The same by name."""
        p = np.exp(self.log_p)
        apart = {
            (names[x], names[y]): Separation(tuple(names[z] for z in given), float(p[x, y]))
            for (x, y), given in sorted(self.given.items())
        }
        joined = np.argwhere(np.triu(self.adjacent & (self.log_p > -np.inf)))
        strongest = {(names[x], names[y]): float(p[x, y]) for x, y in joined}
        return Separations(apart, strongest, self.n_tests + more_tests)


def within_bounds(problem: Problem, skeleton: Skeleton, verdicts: list[Verdict]) -> Cpdag:
    """The class of the edges and verdicts, its weakest edges taken out while a node has more parents than it may have."""
    rules, adjacent, gone = problem.rules, skeleton.adjacent.copy(), []
    while True:
        whole = [v for v in verdicts if adjacent[v.triple.x, v.triple.z] and adjacent[v.triple.y, v.triple.z]]
        cpdag = orient_edges(problem.names, adjacent, rules, whole)
        edge = _one_too_many(problem, rules, cpdag, skeleton.log_p)
        if edge is None:
            break
        adjacent[edge] = adjacent[edge[::-1]] = False
        gone.append(f"{problem.names[edge[1]]} - {problem.names[edge[0]]}")
    if gone:
        note(f"edges taken out because a node had more parents than it may have: {', '.join(gone)}")
    return cpdag


def _one_too_many(problem: Problem, rules: Rules, cpdag: Cpdag, log_p: Array) -> tuple[int, int] | None:
    """The weakest edge (child, parent) into the first node that has too many parents."""
    if rules.max_parents.min() >= problem.n - 1:
        return None
    try:
        dag = cpdag.to_dag()
    except GraphError:
        dag = Dag(nodes=problem.names)
    for child, parents in enumerate(problem.parents(dag)):
        if len(parents) > rules.max_parents[child]:
            return child, max((p for p in parents if not rules.required[child, p]), key=lambda p: (log_p[child, p], p))
    return None


@dataclass(frozen=True)
class MMHC(MethodByTests):
    """Max-min hill climbing (Tsamardinos, Brown & Aliferis 2006, Machine Learning 65): tests first, then the score.

    Each variable gets candidate neighbours by max-min parents and children: the one that is most dependent on it given the set
    of candidates that makes it least so is added, until none is dependent (p <= alpha) given every set; then candidates that a
    set of the others separates go again, and those that are not mutual. Sets have up to `max_condition` members. A hill climb,
    with as many `restarts`, within these candidates and the constraints finds the graph. `test` is as in `PC`.

    >>> from suffice import search
    >>> rows = {"rain": ["no", "no", "yes", "yes"] * 9, "wet": ["no", "no", "yes", "no"] * 9, "moon": ["new"] * 18 + ["old"] * 18}
    >>> search(rows, method=MMHC()).dag
    Dag('moon; rain -> wet')
    """

    word = "mmhc"

    max_parents: int | None = None
    restarts: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_number("max_parents", self.max_parents, 0, optional=True)
        check_number("restarts", self.restarts, 0)

    def run(self, problem: Problem) -> Outcome:
        """Candidates by tests, then a climb among them."""
        problem.refuse_regressions(self, "its tests of candidates are not of regressions")
        rules = problem.rules.cap(self.max_parents)
        return HillClimb(restarts=self.restarts).run(problem.under(rules=rules.within(self.candidates(problem))))

    def candidates(self, problem: Problem) -> Bools:
        """[i, j]: whether i and j are candidates of each other."""
        if problem.n < 2:
            return np.zeros((problem.n, problem.n), bool)
        judge, may = self.judge(problem), possible(problem.rules)
        near = self._shrunk(judge, self._grow(judge, may | may.T, problem), problem)
        return np.asarray(near & near.T)

    def _grow(self, judge: Judge, may: Bools, problem: Problem) -> Bools:
        """Add to every variable's candidates, one in each round, who is still dependent on it and most so."""
        largest = np.where(may, -np.inf, 0.0)  # [t, x]: the largest log p of t and x given any set of candidates of t
        near, newest = np.zeros_like(may), np.full(len(may), -1)
        targets = np.arange(len(may))
        while len(targets):
            self._dependence(judge, near, newest, targets, largest, problem)
            open_ = (largest <= np.log(self.alpha)) & ~near & may
            targets = np.array([t for t in targets if open_[t].any()], int)
            for t in targets:
                values = np.where(open_[t], largest[t], np.inf)
                least = values.min()
                newest[t] = np.flatnonzero(values <= (least + ALIKE * (1 + abs(least)) if least > -np.inf else least))[0]
            near[targets, newest[targets]] = True
        return near

    def _dependence(self, judge: Judge, near: Bools, newest: Ints, targets: Ints, largest: Array, problem: Problem) -> None:
        """Bring `largest` up to date: the newest candidate makes new sets, with each set of the older ones."""
        older = near.copy()
        began = newest[targets[0]] >= 0
        older[targets[newest[targets] >= 0], newest[targets[newest[targets] >= 0]]] = False
        pools = [np.flatnonzero(row) for row in older]
        most = 1 + max((len(pools[t]) for t in targets), default=0) if began else 0
        for k in range(1 if began else 0, self.at_most(most) + 1):
            left = (largest <= np.log(self.alpha)) & ~near
            pairs = [(t, x) for t in targets.tolist() if len(pools[t]) >= k - 1 for x in np.flatnonzero(left[t]).tolist()]
            if not pairs:
                continue
            which, always = [(t, -1) for t, _ in pairs], [int(newest[t]) for t, _ in pairs]
            answers = find_separators(judge, Questions.of(pairs, pools, which, always), k, self.alpha, problem.progress)
            at = tuple(np.array(pairs).T)
            largest[at] = np.maximum(largest[at], answers.log_p)

    def _shrunk(self, judge: Judge, near: Bools, problem: Problem) -> Bools:
        """Take away candidates that a set of the others separates."""
        pools = [np.flatnonzero(row) for row in near]
        kept = near.copy()
        for k in range(self.at_most(max(map(len, pools)) - 1) + 1):
            pairs = np.argwhere(kept)
            pairs = pairs[[len(pools[t]) > k for t in pairs[:, 0]]]
            which = np.column_stack([pairs[:, 0], np.full(len(pairs), -1)])
            answers = find_separators(judge, Questions.of(pairs, pools, which), k, self.alpha, problem.progress)
            for (t, x), given in zip(pairs.tolist(), answers.given, strict=True):
                kept[t, x] = given is None
        return kept
