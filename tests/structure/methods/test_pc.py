"""PC and MMHC: exact when the tests are, the same whatever the order of columns, and within the constraints."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import FitError, SufficeError, SufficeNote
from suffice.structure.constraints import MaxParents
from suffice.structure.independence import ChiSquared, FisherZ, GSquared, MutualInformation
from suffice.structure.methods import pc
from suffice.structure.methods.orientation import Conservative, FirstSepset, Majority, Triple, Verdict, orient_edges
from suffice.structure.methods.pc import MMHC, PC
from suffice.structure.problem import Problem
from suffice.structure.rules import Rules
from suffice.structure.search import problem_of, search
from suffice.structure.separation import GatheringJudge, Judge

RULES = [Majority(), Conservative(), FirstSepset()]
SEEDS = st.integers(0, 2**32 - 1)


class DSeparation(Judge):
    """A judge that knows the graph."""

    batch, threads = 64, 1

    def __init__(self, dag: sf.Dag) -> None:
        self.dag = dag

    def log_p(self, pairs: np.ndarray, owner: np.ndarray, sets: np.ndarray, enough: float) -> np.ndarray:
        names = self.dag.nodes
        asked = zip(pairs[owner].tolist(), sets.tolist(), strict=True)
        return np.array([
            0.0 if self.dag.d_separated(names[x], names[y], [names[z] for z in given]) else -50.0 for (x, y), given in asked
        ])  # fmt: skip


def random_dag(seed: int, n: int, degree: float = 2.5) -> sf.Dag:
    rng = np.random.default_rng(seed)
    names = rng.permutation(list("abcdefghij")[:n]).tolist()
    edges = [(names[i], names[j]) for j in range(n) for i in range(j) if rng.random() < degree / (n - 1)]
    return sf.Dag(edges, nodes=names)


def blank(dag: sf.Dag, rules: Rules | None = None) -> Problem:
    rows = {n: ["x", "y"] for n in dag.nodes}
    problem = problem_of(rows, None, None)
    return problem if rules is None else Problem(problem.data, problem.variables, problem.score, rules)


@given(SEEDS, st.integers(2, 8), st.sampled_from(RULES))
@settings(max_examples=60, deadline=None)
def test_true_answers_give_the_true_class(seed: int, n: int, orient: object) -> None:
    dag = random_dag(seed, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pc, "judge_of", lambda *_: DSeparation(dag))
        outcome = PC(orient=orient).run(blank(dag))
    assert outcome.cpdag == dag.cpdag()
    for (x, y), (given_, p) in outcome.details.separated.items():
        assert p == 1.0
        assert dag.d_separated(x, y, given_)


@given(SEEDS, st.integers(2, 8))
@settings(max_examples=40, deadline=None)
def test_true_answers_give_candidates_with_the_true_edges(seed: int, n: int) -> None:
    dag = random_dag(seed, n)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pc, "judge_of", lambda *_: DSeparation(dag))
        candidates = MMHC().candidates(blank(dag))
    assert (candidates == candidates.T).all()
    place = {name: i for i, name in enumerate(dag.nodes)}
    assert all(candidates[place[a], place[b]] for a, b in dag.edges)


@given(SEEDS, st.integers(3, 7))
@settings(max_examples=40, deadline=None)
def test_background_knowledge_directs_as_far_as_it_goes(seed: int, n: int) -> None:
    dag = random_dag(seed, n)
    known = [e for i, e in enumerate(dag.edges) if i % 2 == 0]
    rules = Rules.free(n)
    place = {name: i for i, name in enumerate(dag.nodes)}
    for i, (a, b) in enumerate(known):
        rules.allowed[place[a], place[b]] = False  # b -> a may not be
        rules.required[place[b], place[a]] = i % 2 == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pc, "judge_of", lambda *_: DSeparation(dag))
        cpdag = PC().run(blank(dag, rules)).cpdag
    assert cpdag == dag.cpdag(forbidden=[(b, a) for a, b in known])


def rows(seed: int = 0, n_rows: int = 3000, dag: str = "b -> a; a -> c; d -> c; c -> e; d -> f") -> dict[str, np.ndarray]:
    """Finite columns of a graph, with strong edges."""
    rng = np.random.default_rng(seed)
    graph = sf.Dag(dag)
    columns: dict[str, np.ndarray] = {}
    for name in graph.topological_order:
        parents = [columns[p] for p in graph.parents(name)]
        base = (sum(parents) + len(parents) // 2) // len(parents) if parents else rng.integers(0, 3, n_rows)
        columns[name] = np.where(rng.random(n_rows) < 0.25, rng.integers(0, 3, n_rows), base)
    return {name: np.array(["x", "y", "z"])[columns[name]] for name in sorted(columns)}


def numbers(seed: int = 0, n_rows: int = 2000, n: int = 8) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    dag = random_dag(seed, n, 2.0)
    columns: dict[str, np.ndarray] = {}
    for name in dag.topological_order:
        columns[name] = rng.normal(size=n_rows) + sum((columns[p] for p in dag.parents(name)), np.zeros(n_rows))
    return columns


def test_the_class_of_a_graph_is_found_from_rows() -> None:
    data = sf.scan(rows())
    truth = sf.Dag("b -> a; a -> c; d -> c; c -> e; d -> f").cpdag()
    for orient in RULES:
        for test in (None, GSquared(), ChiSquared(), MutualInformation()):
            found = search(data, method=PC(alpha=0.01, test=test, orient=orient))
            assert found.cpdag == truth, (orient, test)
            assert found.score is None
            assert found.dag.cpdag() == truth
    assert search(data, method=MMHC(alpha=0.01)).cpdag == truth


def test_tables_that_are_gathered_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    table = rows(2, 1000)
    expected = search(table, method=PC())
    weighted = search(sf.scan(table, weights=np.ones(1000)), method=PC())
    assert weighted.cpdag == expected.cpdag
    assert {e: s.given for e, s in weighted.details.separated.items()} == {
        e: s.given for e, s in expected.details.separated.items()
    }
    for edge, (_, p) in weighted.details.separated.items():
        assert p == pytest.approx(expected.details.separated[edge].p_value, abs=1e-7)
    small = search(table, method=PC(), memory_limit=2**30)
    assert small.cpdag == expected.cpdag
    monkeypatch.setattr(pc, "judge_of", GatheringJudge)
    assert search(table, method=PC()).cpdag == expected.cpdag
    repeated = {n: np.repeat(c, 2) for n, c in table.items()}
    assert search(sf.scan(table, weights=np.full(1000, 2.0)), method=PC()).cpdag == search(repeated, method=PC()).cpdag


def test_statistics_without_rows_will_do() -> None:
    table = {n: c for n, c in rows(2, 500).items() if n in "abcd"}
    everything = sf.gather(table, sf.Dag({"d": ["a", "b", "c"]}))
    assert search(everything, method=PC()).cpdag == search(table, method=PC()).cpdag
    real = {n: c for n, c in numbers(4).items() if n in "abcd"}
    assert search(sf.gather(real, sf.Dag({"d": ["a", "b", "c"]})), method=PC()).cpdag == search(real, method=PC()).cpdag


def test_no_node_has_more_parents_than_it_may_have() -> None:
    rng = np.random.default_rng(0)
    causes = {n: rng.normal(size=800) for n in "abcd"}
    table = {**causes, "e": sum(causes.values()) + rng.normal(size=800)}
    assert len(search(table, method=PC()).dag.parents("e")) == 4
    for most in range(4):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SufficeNote)
            found = search(table, method=PC(), constraints=MaxParents(most))
        assert max(len(found.dag.parents(x)) for x in found.dag.nodes) <= most
    clique = {"a": table["a"], "b": table["a"] + table["b"], "c": table["a"] + table["b"] / 2 + table["c"]}
    assert len(search(clique, method=PC()).cpdag.edges) == 3
    with pytest.warns(SufficeNote, match="more parents than it may have: . - ."):
        found = search(clique, method=PC(), constraints=MaxParents(1))
    assert max(len(found.dag.parents(x)) for x in "abc") == 1
    assert not search(table, method=PC(), constraints=MaxParents(0)).cpdag.edges


def test_colliders_that_contradict_each_other() -> None:
    free = Rules.free(4)
    line = np.zeros((4, 4), bool)
    for a, b in ((0, 1), (1, 2), (2, 3)):
        line[a, b] = line[b, a] = True
    sure, unsure = Verdict(Triple(0, 1, 2), True, 0.0, -0.1), Verdict(Triple(1, 2, 3), True, 0.2, -0.1)
    assert orient_edges(list("abcd"), line, free, [unsure, sure]).directed == (("a", "b"), ("c", "b"))
    flipped = [unsure._replace(share=0.0, log_p=0.0), sure]
    assert orient_edges(list("abcd"), line, free, flipped).directed == (("b", "c"), ("d", "c"))


def test_a_ring_without_colliders_gets_the_least_sure_one() -> None:
    ring = np.zeros((4, 4), bool)
    for a, b in [*pairwise(range(4)), (0, 3)]:
        ring[a, b] = ring[b, a] = True
    corners = [Triple(0, 1, 2), Triple(0, 3, 2), Triple(1, 0, 3), Triple(1, 2, 3)]
    verdicts = [Verdict(t, False, 0.9 if t.z != 2 else 0.6, 0.0) for t in corners]
    cpdag = orient_edges(list("abcd"), ring, Rules.free(4), verdicts)
    assert cpdag.directed == (("b", "c"), ("d", "c"))
    assert cpdag.to_dag().cpdag() == cpdag


@given(SEEDS)
@settings(max_examples=30, deadline=None)
def test_whatever_the_verdicts_arrows_make_no_cycle_if_they_can(seed: int) -> None:
    from suffice.structure.methods.orientation import triples

    rng = np.random.default_rng(seed)
    adjacent = np.triu(rng.random((7, 7)) < 0.4, 1)
    adjacent |= adjacent.T
    verdicts = [Verdict(t, bool(rng.random() < 0.4), float(rng.random()), 0.0) for t in triples(adjacent)]
    rules = Rules.free(7)
    rules.allowed[0, 1:4] = False
    cpdag = orient_edges(list("abcdefg"), adjacent, rules, verdicts)
    assert {frozenset(e) for e in cpdag.skeleton().edges} == {
        frozenset(("abcdefg"[a], "abcdefg"[b])) for a, b in np.argwhere(adjacent)
    }
    assert not any(e[1] == "a" and e[0] in "bcd" for e in cpdag.directed)


def test_odd_tables() -> None:
    one = search({"x": ["a", "b"] * 9}, method=PC())
    assert one.cpdag.nodes == ("x",)
    assert one.details.n_tests == 0
    flat = search({"x": ["a"] * 9, "y": list("uvuvuvuvu"), "z": list("uuuvvvuuu")}, method=PC())
    assert not flat.cpdag.edges
    assert not search({"x": np.full(9, 1.5), "y": np.arange(9) + 0.5}, method=PC()).cpdag.edges
    copies = {**rows(), "g": rows()["a"]}
    assert ("a", "g") in search(copies, method=PC()).cpdag.skeleton().edges
    few = {n: c[:4] for n, c in numbers().items()}
    search(few, method=PC()).cpdag  # noqa: B018 - more columns than rows
    search({n: c[:5] for n, c in rows().items()}, method=MMHC()).dag  # noqa: B018
    names = {"a, b": rows()["a"], "a -> b": rows()["b"], "c d": rows()["c"]}
    assert search(names, method=PC()).details.separated["a -> b", "c d"].given == ("a, b",)


def test_many_states_go_by_lists_and_wide_codes_by_scans() -> None:
    rng = np.random.default_rng(0)
    wide = rng.integers(0, 300, 2000)
    table = {
        "a": [f"s{v}" for v in wide],
        "b": [f"s{v // 100}" for v in wide],
        "c": [f"s{v}" for v in rng.integers(0, 3, 2000)],
    }
    found = search(table, method=PC(test=ChiSquared()))
    assert found.cpdag.skeleton().edges == (("a", "b"),)
    deep = {n: [f"s{v}" for v in rng.integers(0, 60, 300)] for n in "abcdef"}
    assert not search(deep, method=PC(test=GSquared(adjusted=True))).cpdag.edges


def test_max_condition_bounds_the_sets() -> None:
    found = search(rows(), method=PC(max_condition=0))
    assert all(not s.given for s in found.details.separated.values())
    assert len(found.cpdag.edges) > len(search(rows(), method=PC()).cpdag.edges)
    assert search(rows(), method=MMHC(max_condition=0)).dag


@pytest.mark.filterwarnings("ignore:.*fixed by the kind of model")
def test_a_test_of_other_variables_is_refused_and_mixed_columns_have_one() -> None:
    mixed = {"x": ["a", "b"] * 20, "y": np.sin(np.arange(40.0))}
    for method in (PC(), MMHC()):
        assert not {*search(mixed, method=method).cpdag.directed, *search(mixed, method=method).cpdag.undirected}
    with pytest.raises(FitError, match="FisherZ tests numbers"):
        search({"x": ["a", "b"] * 20, "y": ["a", "b"] * 20}, method=PC(test=FisherZ()))


def test_a_time_limit_holds() -> None:
    with pytest.raises(SufficeError, match="time limit"):
        search(numbers(), method=PC(), time_limit=1e-9)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: PC(alpha=0), "alpha"),
        (lambda: PC(alpha="0.05"), "alpha"),
        (lambda: PC(max_condition=-1), "max_condition"),
        (lambda: PC(orient="majority"), "orient is Majority"),
        (lambda: MMHC(alpha=1.5), "alpha"),
        (lambda: MMHC(max_parents=-1), "max_parents"),
    ],
)
def test_bad_options_are_refused(make: object, message: str) -> None:
    with pytest.raises(FitError, match=message):
        make()
