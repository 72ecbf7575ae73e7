"""Greedy searches: each ends where no step gains, keeps the rules, and does not mind how the table is written down."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.basis.iteration import OutOfTime, Progress
from suffice.graphs.paths import meek
from suffice.structure.methods.ges import GES, Class, as_set, class_of, class_with, cliques, member, members
from suffice.structure.methods.hill_climb import HillClimb, Tabu
from suffice.structure.problem import Problem
from suffice.structure.rules import Parents, Rules
from tests.oracles import random_dag, random_net, random_rows, random_tables

METHODS = [HillClimb(), HillClimb(restarts=3), Tabu(length=5, patience=12), GES()]


def problem_of(rows: Any, score: Any = None, rules: Rules | None = None, **more: Any) -> Problem:
    data = sf.scan(rows)
    variables = tuple(v for _, v in sorted(data.schema.items()))
    if rules is None:
        rules = Rules.free(len(variables))
        real = np.array([isinstance(v, sf.Real) for v in variables])
        rules.allowed[~real[:, None] & real] = False
    return Problem(data, variables, score or sf.BIC(), rules, **more)


def solved(rows: Any, method: Any, score: Any = None, rules: Rules | None = None, **more: Any) -> tuple[Problem, list[Parents]]:
    problem = problem_of(rows, score, rules, **more)
    return problem, method.run(problem).parents


def acyclic(parents: list[Parents]) -> bool:
    return member(Class([as_set(p) for p in parents], [0] * len(parents))) is not None


def neighbours(parents: list[Parents]) -> list[list[Parents]]:
    """All graphs with one edge more, less or reversed."""
    found = []
    for i, j in itertools.permutations(range(len(parents)), 2):
        sets = [set(p) for p in parents]
        sets[i] ^= {j}
        found.append(sets)
        if j in parents[i]:
            turned = [set(s) for s in sets]
            turned[j] ^= {i}
            found.append(turned)
    return [g for sets in found if acyclic(g := [tuple(sorted(s)) for s in sets])]


def random_rules(rng: np.random.Generator, n: int) -> Rules:
    """Rules that some graph keeps."""
    allowed = (rng.random((n, n)) < 0.8) & ~np.eye(n, dtype=bool)
    order = rng.permutation(n)
    required = np.zeros((n, n), bool)
    for a, b in itertools.combinations(order, 2):
        required[b, a] = rng.random() < 0.15 and required[b].sum() < 2
    return Rules(allowed | required, required, rng.integers(2, n, n))


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_no_step_from_the_top_gains(seed: int) -> None:
    rng = np.random.default_rng(seed)
    n = 5
    rules = random_rules(rng, n)
    rows = random_net(seed, n).sample(200, seed=seed)
    for method in (HillClimb(), HillClimb(max_parents=2), HillClimb(restarts=2)):
        problem, parents = solved(rows, method, sf.AIC(), rules)
        kept = rules.cap(method.max_parents)
        assert kept.permits(parents)
        assert acyclic(parents)
        top = problem.scores.total(parents)
        assert top == pytest.approx(problem.progress.score, abs=1e-8)
        for other in neighbours(parents):
            if kept.permits(other):
                assert problem.scores.total(other) <= top + 2 * problem.scores.tie(top)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
@example(seed=3888)  # the random moves of a restart lead to the best graph, and no step goes on from there
def test_every_step_gains_what_it_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rules = random_rules(rng, 5)
    for method in METHODS:
        problem, parents = solved(random_net(seed, 5).sample(300, seed=seed), method, sf.Evidence(sf.BDeu(1)), rules)
        assert rules.permits(parents)
        assert acyclic(parents)
        trace = problem.progress.trace
        assert trace[0].what == "start"
        assert all(step.gain > 0 for step in trace[1:])
        assert trace[-1].score == pytest.approx(problem.scores.total(parents), abs=1e-8)


def test_other_names_give_another_member_of_the_same_class() -> None:
    """Where one graph explains the data best, the way in which ties fall does not matter."""
    rng = np.random.default_rng(0)
    dag = sf.Dag("a -> c <- b; c -> d; e")
    table = random_tables(rng, dag, {x: sf.Finite(x, ["p", "q"]) for x in dag.nodes}).sample(5000, seed=0).to_pydict()
    for names in ("abcde", "edcba", "cabed"):
        new = dict(zip("abcde", names, strict=True))
        renamed = sf.Dag([(new[a], new[b]) for a, b in dag.edges], nodes=list(names))
        for method in (HillClimb(restarts=10), Tabu(), GES()):  # a plain climb may end with a - b, if c - a came first
            problem, parents = solved({new[x]: column for x, column in table.items()}, method)
            assert problem.dag(parents).cpdag() == renamed.cpdag()


def test_mixed_variables() -> None:
    for method in METHODS:
        problem, parents = solved(random_rows(0, 400), method)
        assert problem.rules.permits(parents)
        assert {"x", "y", "z"} <= {x for edge in problem.dag(parents).edges for x in edge}


@pytest.mark.parametrize("seed", range(8))
def test_ges_finds_the_class_of_a_network(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = [f"n{i}" for i in range(6)]
    dag = random_dag(rng, nodes, 0.4)
    bn = random_tables(rng, dag, {x: sf.Finite(x, ["p", "q", "r"]) for x in nodes})
    problem, parents = solved(bn.sample(100_000, seed=seed), GES())
    truth = [tuple(sorted(problem.names.index(p) for p in dag.parents(x))) for x in problem.names]
    found = problem.dag(parents)
    assert found.cpdag() == dag.cpdag() or problem.scores.total(parents) >= problem.scores.total(truth)


def all_members(graph: Class) -> list[list[int]]:
    """Every directed graph of a class, by trying all directions."""
    lines = [(a, b) for a, around in enumerate(graph.beside) for b in members(around) if a < b]
    found = []
    for turned in itertools.product((False, True), repeat=len(lines)):
        above = list(graph.above)
        for (a, b), turn in zip(lines, turned, strict=True):
            above[a if turn else b] |= 1 << (b if turn else a)
        one = member(Class(above, [0] * len(above)))
        if one is not None and class_of(one) == graph:
            found.append(above)
    return found


def classes_next_to(graph: Class, add: bool) -> list[list[int]]:
    """A member of each class with a member that has one edge more, or less, than some member of this class."""
    found = []
    for parents in all_members(graph):
        for y, x in itertools.permutations(range(len(parents)), 2):
            if bool(parents[y] >> x & 1) != add and not parents[x] >> y & 1:
                other = [p ^ (1 << x) if i == y else p for i, p in enumerate(parents)]
                if member(Class(other, [0] * len(other))) is not None:
                    found.append(other)
    return found


@pytest.mark.parametrize("seed", range(6))
def test_each_step_of_ges_is_the_best_of_all_neighbouring_classes(seed: int) -> None:
    problem, parents = solved(random_net(seed + 40, 5).sample(300, seed=seed), GES(), sf.AIC())
    problem.progress = watched = Watched()
    GES().run(problem)
    trace, graphs = watched.trace, watched.graphs
    for k, step in enumerate(trace):
        found = member(Class([as_set(p) for p in graphs[k]], [0] * 5))
        assert found is not None
        graph = class_of(found)
        after = trace[k + 1 : k + 2]
        add = any(s.what.startswith("insert") for s in after)
        best = max((problem.scores.total([tuple(members(p)) for p in g]) for g in classes_next_to(graph, add)), default=-np.inf)
        if after:
            assert after[0].score == pytest.approx(best, abs=1e-6)
        else:
            assert best <= step.score + 1e-6
    assert graphs[-1] == parents


class Watched(Progress[Any]):
    """Keeps every graph that was reported."""

    def __init__(self) -> None:
        super().__init__("searching")
        self.graphs: list[list[Parents]] = []

    def better(self, what: str, score: float, best: Any) -> None:
        self.graphs.append(best)
        super().better(what, score, best)


def test_ges_needs_a_score_that_is_the_same_in_both_directions() -> None:
    rows = random_net(3, 4).sample(200, seed=0)
    with pytest.raises(sf.SufficeError, match="same for equivalent graphs"):
        solved(rows, GES(), sf.Evidence(sf.K2()))


def test_ges_with_small_subsets_scores_no_more() -> None:
    rows = random_net(8, 6).sample(2000, seed=0)
    problem, parents = solved(rows, GES())
    _, small = solved(rows, GES(subset=0))
    assert problem.scores.total(small) <= problem.scores.total(parents) + 1e-6
    assert acyclic(small)


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_classes_in_numbers_are_those_by_name(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = [f"n{i}" for i in range(7)]
    dag = random_dag(rng, nodes, 0.4)
    number = {name: i for i, name in enumerate(nodes)}
    graph = class_of({number[x]: [number[p] for p in dag.parents(x)] for x in dag.topological_order})
    cpdag = dag.cpdag()
    again = class_with(7, *meek(*([(number[a], number[b]) for a, b in edges] for edges in (cpdag.directed, cpdag.undirected))))
    assert graph == again
    found = member(graph)
    assert found is not None
    assert class_of(found) == graph
    shown = cpdag.to_dag()
    assert [found[i] for i in range(7)] == [sorted(number[p] for p in shown.parents(x)) for x in nodes]
    adjacent = graph.adjacent()
    by_hand = [
        as_set(c)
        for size in range(4)
        for c in itertools.combinations(range(7), size)
        if all(adjacent[a] >> b & 1 for a, b in itertools.combinations(c, 2))
    ]
    assert sorted(cliques(2**7 - 1, adjacent, 3)) == sorted(by_hand)


def test_a_graph_without_a_member_is_none() -> None:
    assert member(Class([0, 0, 0, 0], [0b1010, 0b0101, 0b1010, 0b0101])) is None
    assert member(Class([0b10, 0b01], [0, 0])) is None


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_ancestors_are_kept(seed: int) -> None:
    from suffice.numerics.kernels.search.greedy import toggle_edge

    rng = np.random.default_rng(seed)
    n = 8
    here, above = np.zeros((n, n), np.uint8), np.zeros((n, n), np.uint8)
    for _ in range(60):
        child, parent = rng.choice(n, 2, replace=False)
        if not here[child, parent] and above[parent, child]:
            continue
        toggle_edge(here, above, child, parent)
        ways = np.linalg.inv(np.eye(n) - here) - np.eye(n)
        assert (above == (ways > 0.5)).all()


def test_a_start_is_kept_to_the_rules() -> None:
    rows = random_net(5, 4).sample(100, seed=0)
    rules = Rules.free(4, 1)
    rules.allowed[1, 0] = False
    rules.required[3, 2] = True
    for start, reason in (
        ("n0 -> n1; n2 -> n3", "not allowed"),
        ("n0 -> n2; n1 -> n2; n2 -> n3", "2 parents"),
        ("n0 -> n2", "lacks"),
        ("n0 -> other", "other"),
    ):
        for method in (HillClimb(start=start), Tabu(start=start)):
            with pytest.raises(sf.SufficeError, match=reason):
                solved(rows, method, rules=rules)
    problem, parents = solved(rows, HillClimb(start="n2 -> n3; n0 -> n2"), rules=rules)
    assert rules.permits(parents)
    assert problem.progress.trace[0].score == pytest.approx(problem.scores.total([(), (), (0,), (2,)]))


def test_a_climb_from_the_top_stays_there() -> None:
    rows = random_net(7, 5).sample(500, seed=0)
    problem, parents = solved(rows, HillClimb())
    again, same = solved(rows, HillClimb(start=problem.dag(parents)))
    assert same == parents
    assert len(again.progress.trace) == 1


def test_restarts_and_tabu_never_end_lower() -> None:
    for seed in range(6):
        rows = random_net(seed, 7).sample(300, seed=seed)
        problem, parents = solved(rows, HillClimb())
        low = problem.scores.total(parents)
        for method in (HillClimb(restarts=5), Tabu()):
            _, more = solved(rows, method, seed=seed)
            assert problem.scores.total(more) >= low - 1e-6
            assert solved(rows, method, seed=seed)[1] == more


def test_the_best_so_far_is_reported_before_time_runs_out() -> None:
    rows = random_net(25, 6).sample(2000, seed=0)

    class Hurried(Progress[Any]):
        def better(self, what: str, score: float, best: Any) -> None:
            super().better(what, score, best)
            if len(self.trace) == 3:
                raise OutOfTime

    for method in METHODS:
        problem = problem_of(rows, progress=Hurried("searching"))
        with pytest.raises(OutOfTime):
            method.run(problem)
        assert problem.progress.best is not None
        assert problem.scores.total(problem.progress.best) == pytest.approx(problem.progress.score)
        assert sum(map(len, problem.progress.best)) == 2


@pytest.mark.parametrize(
    "make",
    [
        lambda: HillClimb(max_parents=-1),
        lambda: HillClimb(restarts=-1),
        lambda: HillClimb(restarts=1.5),  # type: ignore[arg-type]
        lambda: HillClimb(perturbations=0),
        lambda: HillClimb(start="a -> b -> a"),
        lambda: Tabu(length=0),
        lambda: Tabu(patience=0),
        lambda: Tabu(max_parents=True),
        lambda: GES(max_parents=-1),
        lambda: GES(subset=-1),
    ],
)
def test_bad_options_are_refused(make: Any) -> None:
    with pytest.raises(sf.SufficeError):
        make()
