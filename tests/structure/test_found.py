"""What a search gives back: the graph that stands for its class, what the score loses, and why edges are there or not."""

from __future__ import annotations

import pickle
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.basis.limits import Budget
from suffice.errors import FitError, GraphError, TooLarge
from suffice.structure.constraints import Constraints, Forbid, MaxParents, Require
from suffice.structure.methods.orders import Orders
from suffice.structure.methods.pc import Separation, Separations
from suffice.structure.problem import Outcome, Problem
from suffice.structure.results.found import Found
from suffice.structure.results.plan import Plan, check
from suffice.structure.search import problem_of

FIVE = tuple("abcde")


@dataclass(frozen=True)
class Given:
    """A method that knows the answer."""

    max_parents: int | None = None


def problem(data: Any, constraints: Constraints | None = None, score: Any = None) -> Problem:
    made = problem_of(data, score, constraints, Budget(threads=1))
    if getattr(made, "constraints", None) is None:
        made.constraints = constraints  # type: ignore[attr-defined]
    return made


def found_of(p: Problem, dag: Any, bound: float | None = None, method: Any = None, finished: bool = True) -> Found:
    graph, number = sf.Dag(dag, nodes=p.names), {x: i for i, x in enumerate(p.names)}
    parents = [tuple(sorted(number[a] for a in graph.parents(x))) for x in p.names]
    p.progress.better("given", p.scores.total(parents), parents)
    return Found.of(p, method or Given(), Outcome(parents, bound), finished)


@pytest.fixture(scope="module")
def asia() -> Any:
    return sf.load("asia").sample(1500, seed=3)


def dags(n: int) -> Any:
    """Random graphs on the first letters."""
    names = FIVE[:n]
    pairs = list(combinations(range(n), 2))
    drawn = st.tuples(st.permutations(names), st.lists(st.booleans(), min_size=len(pairs), max_size=len(pairs)))
    return drawn.map(lambda d: sf.Dag([(d[0][i], d[0][j]) for (i, j), use in zip(pairs, d[1], strict=True) if use], nodes=names))


@pytest.fixture(scope="module")
def five() -> Any:
    rng = np.random.default_rng(0)
    return {x: rng.choice(["u", "v", "w"][: 2 + i % 2], 60) for i, x in enumerate("abcde")}


def members(dag: sf.Dag) -> list[sf.Dag]:
    """All graphs of its class, by turning edges."""
    result, todo = {dag}, [dag]
    while todo:
        graph = todo.pop()
        for a, b in graph.edges:
            if {*graph.parents(a)} == {*graph.parents(b)} - {a}:  # a covered edge (Chickering 1995)
                other = sf.Dag([e for e in graph.edges if e != (a, b)] + [(b, a)], nodes=graph.nodes)
                if other not in result:
                    result.add(other)
                    todo.append(other)
    return sorted(result, key=lambda g: g.edges)


@settings(max_examples=25, deadline=None)
@given(dag=dags(5))
def test_of_a_class_always_the_same_member(five, dag) -> None:
    p = problem(five)
    results = {found_of(p, member).dag for member in members(dag)}
    assert len(results) == 1
    assert results.pop().cpdag() == dag.cpdag()


@settings(max_examples=25, deadline=None)
@given(dag=dags(5), forbid=dags(5), data=st.data())
def test_the_member_keeps_the_constraints_and_is_one_for_all_that_do(five, dag, forbid, data) -> None:
    known = Forbid(*(e for e in forbid.edges if e not in dag.edges)) if set(forbid.edges) - set(dag.edges) else Constraints()
    if dag.edges:
        known = known + Require(data.draw(st.sampled_from(dag.edges)))
    p = problem(five, known)
    allowed = [m for m in members(dag) if not known.check(m)]
    results = {found_of(p, m).dag for m in allowed}
    assert len(results) == 1
    assert not known.check(next(iter(results)))


def test_a_score_that_is_not_equivalent_keeps_the_graph_found() -> None:
    p = problem({"x": list("aabbabab"), "y": list("uvwwuvwu")}, score=sf.Evidence(sf.K2()))
    ways = {way: p.scores.total(parents) for way, parents in (("x -> y", [(), (0,)]), ("y -> x", [(1,), ()]))}
    assert abs(ways["x -> y"] - ways["y -> x"]) > 1e-3
    best = max(ways, key=lambda w: ways[w])
    assert found_of(p, best).dag == sf.Dag(best)
    assert found_of(p, best).score == pytest.approx(ways[best])


def test_what_a_method_puts_on_top_stays_there(five) -> None:
    @dataclass(frozen=True)
    class Tree:
        root: str

    for root in "abc":
        dag = sf.Dag([(root, x) for x in "abc" if x != root], nodes=FIVE)
        assert found_of(problem(five), dag, method=Tree(root)).dag == dag


def test_numbers_agree_with_scores_of_whole_graphs(asia) -> None:
    truth = sf.load("asia").dag
    p = problem(asia)
    found = found_of(p, truth, bound=p.scores.total(problem_parents(p, truth)) + 1.0)
    assert found.score == pytest.approx(sf.score(found.dag, asia))
    assert sum(found.scores_by_node().values()) == pytest.approx(found.score)
    assert found.n_parameters == sf.fit(found.dag, asia).n_parameters
    for edge, loss in found.losses.items():
        without = sf.Dag([e for e in found.dag.edges if e != edge], nodes=found.names)
        assert loss == pytest.approx(found.score - sf.score(without, asia))
    assert not found.proved
    assert found.gap == pytest.approx(1.0 / abs(found.score))
    assert found_of(p, truth, bound=found.score).proved
    assert found_of(p, truth).gap is None
    assert found.trace[-1].what == "given"


def problem_parents(p: Problem, dag: sf.Dag) -> list[tuple[int, ...]]:
    return [tuple(sorted(p.names.index(a) for a in dag.parents(x))) for x in p.names]


def test_ties_of_copies() -> None:
    rng = np.random.default_rng(1)
    x = rng.choice(["a", "b"], 200)
    y = np.where(rng.random(200) < 0.8, x, "a")
    p = problem({"copy": x, "x": x, "y": y})
    found = found_of(p, "copy -> x; x -> y")
    assert ("y", ("copy",)) in {(t.child, t.parents) for t in found.ties}
    assert "y | copy scores as y | x does" in map(str, found.ties)
    for tie in found.ties:
        other = {n: found.dag.parents(n) for n in found.names} | {tie.child: tie.parents}
        assert sf.Dag(other).cpdag() != found.cpdag
        assert p.scores.total(problem_parents(p, sf.Dag(other))) == pytest.approx(found.score)
    assert found_of(problem({"x": x, "y": y}), "x -> y").ties == ()


def test_an_edge_that_is_there(asia) -> None:
    p = problem(asia)
    found = found_of(p, sf.load("asia").dag)
    total = found.score
    assert total is not None
    for a, b in found.dag.edges:
        why = found.explain((a, b))
        rest = [e for e in found.dag.edges if e != (a, b)]
        assert why.to_dict()["loss"] == why.loss == pytest.approx(found.losses[a, b])
        assert why.reversible == ((min(a, b), max(a, b)) in found.cpdag.undirected)
        try:
            turned = sf.Dag([*rest, (b, a)], nodes=found.names)
        except GraphError:
            assert "cycle" in why.reversed.refused
        else:
            assert why.reversed.refused is None
            assert why.reversed.gain == pytest.approx(sf.score(turned, asia) - total, abs=1e-8)
        if why.reversible:
            assert why.equivalent.gain == pytest.approx(0.0, abs=1e-6)
            assert "the data cannot tell" in repr(why)
        else:
            assert "compelled" in repr(why)
        others = [c for c in found.names if c not in (a, b, *found.dag.descendants(b))]
        best = -np.inf
        for k in range(len(found.dag.parents(b)) + 1):
            for parents in combinations(others, k):
                if sorted(parents) != sorted(set(found.dag.parents(b)) - {a}):
                    family = (p.names.index(b), tuple(p.names.index(x) for x in parents))
                    best = max(best, p.scores.family(*family) - found.scores_by_node()[b])
        assert why.replaced is None or why.replaced.gain == pytest.approx(best)
        assert repr(found.explain(f"{a} -> {b}")) == repr(found.explain((b, a))) == repr(why)


def test_an_edge_that_is_not_there(asia) -> None:
    p = problem(asia, Forbid("smoke -> xray"))
    found = found_of(p, "smoke -> lung -> either -> xray; tub -> either; bronc -> dysp; smoke -> bronc", method=Given(2))
    why = found.explain("asia -> tub")
    more = sf.Dag([*found.dag.edges, ("asia", "tub")], nodes=found.names)
    assert why.forward.gain == pytest.approx(sf.score(more, asia) - found.score)
    assert why.forward.gain == pytest.approx(why.forward.likelihood - why.forward.penalty)
    assert why.forward.penalty == pytest.approx(0.5 * np.log(1500))
    assert "explains" in repr(why)

    assert "smoke -> xray is forbidden" in found.explain("smoke -> xray").forward.refused
    cycle = found.explain("xray -> tub").forward.refused
    assert cycle == "it would make a cycle: tub -> either -> xray -> tub"

    full = found.explain("asia -> either")
    assert "either has 2 parents" in full.forward.refused
    assert full.swap.parents["either"] in (("asia", "lung"), ("asia", "tub"))
    swapped = {x: found.dag.parents(x) for x in found.names} | full.swap.parents
    assert full.swap.gain == pytest.approx(sf.score(sf.Dag(swapped), asia) - found.score)
    assert "either | asia, lung" in repr(full) or "either | asia, tub" in repr(full)


def test_a_required_edge_and_its_direction(asia) -> None:
    found = found_of(problem(asia, Require("xray -> smoke")), "xray -> smoke")
    why = found.explain("xray -> smoke")
    assert why.required
    assert why.reversible
    assert "require" in why.reversed.refused
    assert found.dag == sf.Dag("xray -> smoke", nodes=found.names)
    assert "fixed by constraints: without them, the data could not tell" in repr(why)


def test_a_node(asia) -> None:
    p = problem(asia)
    found = found_of(p, sf.load("asia").dag)
    why = found.explain("either")
    assert why.complete
    assert set(why.losses) == set(found.dag.parents("either"))
    assert set(why.children) == set(found.dag.children("either"))
    assert [c.gain for c in why.runners_up] == sorted((c.gain for c in why.runners_up), reverse=True)
    for change in why.runners_up:
        other = {x: found.dag.parents(x) for x in found.names} | change.parents
        assert change.gain == pytest.approx(sf.score(sf.Dag(other), asia) - found.score)
    assert "next best parents" in repr(why)


def test_what_cannot_be_explained(asia) -> None:
    found = found_of(problem(asia), "smoke -> lung")
    with pytest.raises(GraphError, match="did you mean 'smoke'"):
        found.explain("smok")
    with pytest.raises(GraphError, match="did you mean 'lung'"):
        found.explain("smoke -> lun")
    with pytest.raises(GraphError, match="one edge"):
        found.explain("smoke -> lung -> xray")
    with pytest.raises(GraphError, match="pair"):
        found.explain(("smoke", "lung", "xray"))
    with pytest.raises(GraphError, match="itself"):
        found.explain(("smoke", "smoke"))
    with pytest.raises(GraphError):
        found.explain(3)  # type: ignore[arg-type]


def test_real_parents_of_finite_children_do_not_exist() -> None:
    rng = np.random.default_rng(2)
    s = rng.choice(["a", "b"], 300)
    x = rng.normal(size=300) + 2.0 * (s == "a")
    y = x + rng.normal(size=300)
    found = found_of(problem({"s": s, "x": x, "y": y}), "s -> x -> y")
    assert found.cpdag.directed == (("s", "x"), ("x", "y"))
    assert "a finite variable cannot have a real parent" in found.explain("y -> s").forward.refused
    assert found.explain("s -> x").reversed.refused == "a finite variable cannot have a real parent unless it is a regression"
    assert not found.explain("x -> y").reversible
    alone = found_of(problem({"x": x, "y": y}), "y -> x")
    assert alone.cpdag.undirected == (("x", "y"),)
    assert alone.dag == sf.Dag("x -> y")


def test_an_equivalence_class_without_a_score(five) -> None:
    p = problem(five)
    found = Found.of(p, Given(), Outcome([], cpdag=sf.Cpdag([("a", "b")], [("c", "d")], nodes=FIVE)), True)
    assert (found.score, found.gap, found.proved, found.losses, found.ties) == (None, None, False, {}, ())
    assert found.dag == sf.Dag("a -> b; c -> d; e")
    assert "a -> b" in repr(found)
    assert "c - d" in repr(found)
    assert "open" in repr(found.explain("c -> d"))
    assert "there is no edge between a and e" in repr(found.explain(("a", "e")))
    assert "2 edges" in repr(Found.of(p, Given(), Outcome([], cpdag=sf.Cpdag([("a", "b"), ("b", "c")])), True).explain("b"))
    tests = Separations({("a", "e"): Separation(("c", "d"), 0.25)}, {("a", "b"): 1e-5}, 9)
    recorded = replace(found, details=tests)
    assert "independent given c, d (p = 0.25)" in repr(recorded.explain("e -> a"))
    assert "the largest p = 1e-05" in repr(recorded.explain("b -> a"))
    square = sf.Cpdag([], [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")], nodes=FIVE)
    broken = Found.of(p, Given(), Outcome([], cpdag=square), True)
    assert "a - b" in repr(broken)
    assert broken.to_dict()["edges"] == []
    with pytest.raises(GraphError, match=r"found\.cpdag.*no directed graph extends"):
        _ = broken.dag


def test_it_prints_and_pickles(asia) -> None:
    found = found_of(problem(asia), sf.load("asia").dag, finished=False)
    assert "8 variables, 8 edges; BIC() -" in repr(found)
    assert "stopped before its end" in repr(found)
    assert "not proved" in repr(found)
    assert "<table>" in found._repr_html_()
    again = pickle.loads(pickle.dumps(found))
    assert repr(again) == repr(found)
    assert (again.dag, again.cpdag, again.score, again.losses) == (found.dag, found.cpdag, found.score, found.losses)
    assert again.plan == found.plan
    assert again.n_parameters == found.n_parameters
    with pytest.raises(FitError, match="unpickled"):
        again.explain("xray")
    with pytest.raises(AttributeError):
        found.score = 1.0


def test_names_with_marks() -> None:
    x = list("abab") * 5
    found = found_of(problem({"a -> b": x, "c, <d>": x}), [("a -> b", "c, <d>")])
    assert '"a -> b" -> "c, <d>"' in repr(found)
    assert "&lt;d&gt;" in found._repr_html_()
    assert found.explain("a -> b").node == "a -> b"
    assert found.explain('"a -> b" -> "c, <d>"').child == "c, <d>"


def test_a_plan_counts_what_there_is(asia) -> None:
    for constraints, most in ((None, 2), (Forbid("asia -> xray", "smoke -> asia"), 3), (MaxParents(1), 2)):
        p = problem(asia, constraints)
        plan = Plan.of(p, Orders(most))
        rules = p.rules.cap(most)
        families = [
            frozenset({child, *parents})
            for child in range(p.n)
            for k in range(int(rules.max_parents[child]) + 1)
            for parents in combinations(np.flatnonzero(rules.allowed[child]), k)
        ]
        assert plan.families == len(families)
        assert plan.n_rows == 1500
        if constraints is None:
            assert plan.tables == len(set(families))
            assert plan.cells == pytest.approx(sum(2 ** len(s) for s in set(families)))
    assert "about" in repr(plan)
    with pytest.raises(TooLarge, match="families"):
        check(plan, 1000)
    check(plan, None)
    check(plan, 1e12)


def test_a_plan_of_many_variables_takes_no_time() -> None:
    rng = np.random.default_rng(0)
    many = {f"v{i}": rng.choice(["a", "b"], 5) for i in range(300)}
    p = problem(sf.scan(many, variables={n: sf.Finite(n, ["a", "b"]) for n in many}))

    @dataclass(frozen=True)
    class Exact(Given):
        pass

    assert Plan.of(p, Exact(3)).families == 300 * (1 + 299 + 299 * 298 // 2 + 299 * 298 * 297 // 6)
    assert Plan.of(p, Exact()).families > 1e80
    assert "EiB" in repr(Plan.of(p, Exact()))
    assert Plan.of(p, Orders()).families < 3e6  # candidate parents are chosen first
    assert 0 < Plan.of(p, Given()).seconds < 1


def test_families_without_an_estimate_and_degenerate_columns() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=50)
    found = found_of(problem({"a": a, "b": 2 * a, "c": a + rng.normal(size=50)}), "a -> c -> b")
    why = found.explain("a -> b")
    assert "has no score" in repr(why)
    assert why.to_dict()["forward"]["gain"] is None
    assert repr(found_of(problem({"x": list("aab")}), {})).startswith("Found: 1 variable, 0 edges")
    none = found_of(problem({"x": list("aabb") * 5, "k": ["c"] * 20}, MaxParents(0)), {})
    assert none.dag.edges == none.ties == ()
    assert "k has 0 parents" in none.explain("x -> k").forward.refused or "forbid" in none.explain("x -> k").forward.refused
    for x in none.names:
        assert none.explain(x).parents == ()
