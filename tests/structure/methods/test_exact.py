"""Exact search: the optimum by enumeration, by dynamic programming and by branch and cut; constraints that need branching."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.basis.iteration import OutOfTime
from suffice.engines import gather
from suffice.structure.constraints import Forbid, Require
from suffice.structure.methods import branch_and_cut, exact
from suffice.structure.methods.branch_and_cut import BranchAndCut
from suffice.structure.methods.cuts import CutProgram, Fraction, cluster_cut, clusters, local_cuts
from suffice.structure.methods.exact import Branching, Exact
from suffice.structure.methods.orders import Orders, best_of_all
from suffice.structure.problem import Outcome, Problem
from suffice.structure.rules import Parents, Rules
from suffice.structure.scoring.parent_sets import ParentSets
from suffice.structure.search import problem_of, search
from tests.oracles import allowed_families, parent_sets, pruned

Graph = list[Parents]


def acyclic(parents: Graph) -> bool:
    left = set(range(len(parents)))
    while ready := {i for i in left if not left & set(parents[i])}:
        left -= ready
    return not left


def graphs(sets: ParentSets) -> Iterator[tuple[Graph, float]]:
    """All acyclic graphs over the sets."""
    for choice in product(*(sets.of_child(i) for i in range(sets.n))):
        parents = [p for p, _ in choice]
        if acyclic(parents):
            yield parents, sum(s for _, s in choice)


def random_rules(rng: np.random.Generator, n: int, max_parents: int) -> Rules:
    """Some edges forbidden, some required along an order."""
    rules = Rules.free(n, max_parents)
    rank = rng.permutation(n)
    for i, j in product(range(n), repeat=2):
        if i != j and rng.random() < 0.2:
            rules.allowed[i, j] = False
        if rank[j] < rank[i] and rules.allowed[i, j] and rng.random() < 0.15 and rules.required[i].sum() < rules.max_parents[i]:
            rules.required[i, j] = True
    return rules


def random_sets(seed: int, n: int, max_parents: int, free: bool = False) -> ParentSets:
    """Scores that more parents raise, on the whole, so that cycles are tempting."""
    rng = np.random.default_rng(seed)
    rules = Rules.free(n, max_parents) if free else random_rules(rng, n, max_parents)
    families = allowed_families(rules)
    scores = np.array([-100 + 10 * rng.random() + 8 * len(s) ** 0.5 for _, s in families])
    return pruned(rules, families, scores)


def total(sets: ParentSets, parents: Graph) -> float:
    return sum(dict(sets.of_child(i))[p] for i, p in enumerate(parents))


def some_graph(sets: ParentSets) -> Graph:
    """The smallest sets: the required edges only."""
    return [min((p for p, _ in sets.of_child(i)), key=len) for i in range(sets.n)]


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5))
def test_both_ways_find_the_optimum_by_enumeration(seed: int, n: int) -> None:
    sets = random_sets(seed, n, 2 if n == 5 else 3)
    best = max(score for _, score in graphs(sets))
    parents = best_of_all(sets)
    assert acyclic(parents)
    assert total(sets, parents) == pytest.approx(best, abs=1e-9)
    tree = BranchAndCut(sets, some_graph(sets), tie=1e-7)
    tree.run()
    assert tree.proved
    assert acyclic(tree.parents)
    assert total(sets, tree.parents) == pytest.approx(best, abs=1e-9)
    assert tree.bound == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize(("seed", "n"), [(0, 8), (1, 9), (2, 10), (3, 10)])
def test_dynamic_programming_agrees_with_branch_and_cut(seed: int, n: int) -> None:
    sets = random_sets(seed, n, 2)
    tree = BranchAndCut(sets, some_graph(sets), tie=1e-7)
    tree.run()
    assert tree.proved
    assert tree.score == pytest.approx(total(sets, best_of_all(sets)), abs=1e-7)


@pytest.mark.parametrize("seed", range(5))
def test_branches_alone_find_the_optimum(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a single cut the tree has to do everything."""
    monkeypatch.setattr(branch_and_cut, "PATIENCE", 0)
    sets = random_sets(seed, 5, 2, free=seed == 0)
    tree = BranchAndCut(sets, some_graph(sets), tie=1e-7)
    tree.run()
    assert tree.n_nodes > 1
    assert not tree.relaxation.cuts
    assert tree.proved
    assert tree.score == pytest.approx(total(sets, best_of_all(sets)), abs=1e-7)


def test_stopped_at_any_time_the_bound_holds() -> None:
    sets = random_sets(5, 9, 2)
    best = total(sets, best_of_all(sets))
    bounds = []
    for calls in (0, 1, 3, 8, 20, 60):
        left = iter([1.0] * calls)

        def ask(left: Iterator[float] = left) -> float:
            try:
                return next(left)
            except StopIteration:
                raise OutOfTime from None

        tree = BranchAndCut(sets, some_graph(sets), tie=1e-7, left=ask)
        try:
            tree.run()
        except OutOfTime:
            assert not tree.proved
        assert acyclic(tree.parents)
        assert tree.score == pytest.approx(total(sets, tree.parents))
        assert tree.score <= best + 1e-9 <= tree.bound + 2e-9
        bounds.append(tree.bound)
    assert bounds == sorted(bounds, reverse=True)


def test_threads_do_not_matter() -> None:
    sets = random_sets(7, 15, 2)
    assert best_of_all(sets, threads=1) == best_of_all(sets, threads=2)


def test_ties_cost_the_score_nothing() -> None:
    """A tie may be lost once, not at each of n steps."""
    families = [(i, (), -1e-10 * i) for i in range(10)]
    sets = parent_sets(10, [*families, *((i, (i - 1,), -1e-10 * i + 4e-10) for i in range(1, 10))])
    parents = best_of_all(sets, tie=1e-9)
    best = total(sets, best_of_all(sets))
    assert total(sets, parents) >= best - 1e-9 - 1e-15
    assert sum(map(len, parents)) < 9


def test_more_variables_than_bits_in_a_word() -> None:
    """Seventy variables in a ring of pairs, each of which wants the other."""
    n = 70
    families = [(i, (), -2.0) for i in range(n)] + [(i, (i ^ 1,), -1.0 - i / 1000) for i in range(n)]
    sets = parent_sets(n, families)
    tree = BranchAndCut(sets, [()] * n, tie=1e-9)
    tree.run()
    assert tree.proved
    assert tree.parents == [(i + 1,) if i % 2 == 0 else () for i in range(n)]


def test_a_gap_is_enough() -> None:
    sets = random_sets(5, 10, 2)
    best = total(sets, best_of_all(sets))
    tree = BranchAndCut(sets, best_of_all(sets), gap=0.05)
    tree.run()
    assert best - 1e-9 <= tree.bound <= best + 0.05 * abs(best)


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6))
def test_cuts_keep_every_acyclic_graph(seed: int) -> None:
    """No cut that is found for a random point cuts off a graph."""
    sets = random_sets(seed, 5, 2, free=True)
    rng = np.random.default_rng(seed)
    child = np.repeat(np.arange(sets.n), np.diff(sets.first))
    flags = np.unpackbits(sets.masks.view(np.uint8), axis=1, bitorder="little")[:, : sets.n].astype(bool)
    x = rng.random(len(sets)) ** 4 * flags.any(1)
    x /= np.bincount(child, x)[child]
    seen = np.flatnonzero(x > 1e-9)
    point = Fraction(child[seen], flags[seen], x[seen])
    cuts = [cluster_cut(child, flags, c, k) for k in (1, 2) for c in clusters(point, k, 20)]
    cuts += [c for m in (4, 5) for c in local_cuts(point, child, flags, m, 10)]
    assert cuts
    assert all(cut.values @ x[cut.columns] > cut.most + 1e-4 for cut in cuts)
    rows = [{p: r for r, p in enumerate(sets.parents) if child[r] == i} for i in range(sets.n)]
    for order in rng.permuted(np.tile(np.arange(sets.n), (200, 1)), axis=1):
        inside = [[p for p in rows[i] if set(p) <= set(order[:k].tolist())] for k, i in enumerate(order.tolist())]
        graph = np.zeros(len(sets))
        graph[[rows[i][ps[rng.integers(len(ps))]] for i, ps in zip(order.tolist(), inside, strict=True)]] = 1
        assert all(cut.values @ graph[cut.columns] <= cut.most + 1e-9 for cut in cuts)


def test_local_weights_grow() -> None:
    w = CutProgram(4).weights(np.random.default_rng(0).random(64) / 4)
    for i, q, j in product(range(4), range(16), range(4)):
        assert w[i << 4 | q] <= w[i << 4 | q | 1 << j]


def rows_of(seed: int, n: int = 4, rows: int = 60) -> dict[str, list[str]]:
    rng = np.random.default_rng(seed)
    table = rng.integers(0, 2, (rows, n))
    for j in range(1, n):
        copied = rng.random(rows) < 0.6
        table[copied, j] = table[copied, rng.integers(j)]
    return {"abcdefgh"[j]: [str(v) for v in table[:, j]] for j in range(n)}


def enumerated(problem: Problem) -> Iterator[tuple[Graph, float]]:
    """All acyclic graphs that the rules allow, with their scores."""
    others = [[j for j in range(problem.n) if j != i] for i in range(problem.n)]
    for choice in product(*([s for k in range(problem.n) for s in combinations(o, k)] for o in others)):
        if acyclic(list(choice)) and problem.rules.permits(choice):
            yield list(choice), problem.scores.total(list(choice))


@pytest.mark.parametrize("seed", range(3))
def test_search_proves_the_optimum_under_constraints(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows, constraints = rows_of(seed), Forbid(("a", "b"), ("c", "d")) + Require(("d", "a"))
    for score in (sf.BIC(), sf.Evidence(sf.BDeu(1)), sf.Evidence(sf.K2())):
        best = max(s for _, s in enumerated(problem_of(rows, score, constraints)))
        for most in (27, 0):
            monkeypatch.setattr(exact, "MOST", most)
            found = search(rows, score, Exact(), constraints)
            assert found.score == pytest.approx(best, abs=1e-8)
            assert found.proved
            assert found.finished


@pytest.mark.parametrize("seed", range(4))
def test_adjacency_and_ancestors_by_branching(seed: int) -> None:
    problem = problem_of(rows_of(seed), sf.Evidence(sf.BDeu(1)), None)
    pairs = [(int(a), int(b)) for a, b in np.random.default_rng(seed).permuted(np.tile(np.arange(4), (4, 1)), axis=1)[:, :2]]
    adjacent, not_ancestor = pairs[:2], pairs[2:]

    def keeps(parents: Graph) -> bool:
        def reaches(a: int, b: int) -> bool:
            return a in parents[b] or any(reaches(a, p) for p in parents[b])

        linked = all(a in parents[b] or b in parents[a] for a, b in adjacent)
        return linked and not any(reaches(a, b) for a, b in not_ancestor)

    best = max((s for g, s in enumerated(problem) if keeps(g)), default=None)
    if best is None:
        with pytest.raises(sf.SufficeError, match="no graph"):
            Branching(Exact(), adjacent, not_ancestor).run(problem)
        return
    outcome = Branching(Exact(), adjacent, not_ancestor).run(problem)
    assert keeps(outcome.parents)
    assert problem.scores.total(outcome.parents) == pytest.approx(best, abs=1e-8)
    assert outcome.bound == pytest.approx(best, abs=1e-6)
    heuristic = Branching(Orders(), adjacent, not_ancestor).run(problem)
    assert keeps(heuristic.parents)
    assert problem.scores.total(heuristic.parents) <= best + 1e-8


class Stopped:
    """Exact search that is stopped after some runs."""

    def __init__(self, runs: int) -> None:
        self.runs = runs

    def run(self, problem: Problem) -> Outcome:
        self.runs -= 1
        if self.runs < 0:
            raise OutOfTime
        return Exact().run(problem)


def test_branching_that_is_stopped_keeps_its_bound() -> None:
    problem = problem_of(rows_of(3, 5), sf.Evidence(sf.BDeu(1)), None)
    adjacent, not_ancestor = [(0, 4), (1, 3), (2, 4)], [(0, 3), (1, 2)]
    whole = Branching(Exact(), adjacent, not_ancestor).run(problem)
    best, stopped = problem.scores.total(whole.parents), 0
    assert whole.finished
    for runs in range(1, 30):
        try:
            part = Branching(Stopped(runs), adjacent, not_ancestor).run(problem)
        except OutOfTime:
            continue
        assert part.bound is not None
        assert problem.scores.total(part.parents) <= best + 1e-8 <= part.bound + 2e-8
        stopped += not part.finished
    assert stopped


def test_a_search_that_is_stopped_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST", 0)

    def interrupted(self: BranchAndCut) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(BranchAndCut, "run", interrupted)
    found = search(rows_of(0, 6), method=Exact(max_parents=2))
    assert not found.finished
    assert found.bound is not None
    assert found.score is not None
    assert found.bound >= found.score


def test_memory_decides_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    ways = []
    monkeypatch.setattr(exact, "_by_subsets", lambda problem, sets: ways.append("subsets"))
    monkeypatch.setattr(exact, "_by_branches", lambda problem, sets, gap: ways.append("branches"))
    problem = problem_of(rows_of(0), None, None)
    Exact().run(problem)
    problem.memory_limit = 100.0
    Exact().run(problem)
    assert ways == ["subsets", "branches"]
    assert gather.available_memory() > 0


@pytest.mark.parametrize("option", [{"max_parents": -1}, {"max_parents": 1.5}, {"gap": -0.1}, {"gap": "small"}])
def test_bad_options_are_refused(option: dict[str, object]) -> None:
    with pytest.raises(sf.SufficeError, match=next(iter(option))):
        Exact(**option)  # type: ignore[arg-type]


def test_too_many_families_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "AT_MOST", 10)
    with pytest.raises(sf.SufficeError, match="max_parents"):
        search(rows_of(0), method=Exact())


def test_one_variable_and_no_parents() -> None:
    assert search({"a": ["x", "y"] * 5}, method=Exact()).proved
    found = search(rows_of(1), method=Exact(max_parents=0))
    assert found.proved
    assert not found.dag.edges


def test_dynamic_programming_that_is_too_slow_gives_way_to_branch_and_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped half-way it knows no bound but the best set of each child: 22 to 29 % above the score."""
    rng = np.random.default_rng(0)
    hidden = rng.integers(0, 2, 300)
    rows = {f"v{i:02}": np.where(rng.random(300) < 0.7, hidden, rng.integers(0, 2, 300)).astype(str) for i in range(14)}
    quick = search(rows, method=Exact(max_parents=2))
    hours = iter(range(0, 10**9, 3600))
    monkeypatch.setattr("suffice.structure.methods.exact.perf_counter", lambda: float(next(hours)))
    slow = search(rows, method=Exact(max_parents=2), time_limit=600)
    assert "all subsets" in [step.what for step in quick.trace]
    assert "all subsets" not in [step.what for step in slow.trace]
    assert slow.proved
    assert slow.score == pytest.approx(quick.score)
