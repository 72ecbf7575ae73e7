"""Structure of sequences: search over the lagged view, its first steps, and what is built on it."""

from __future__ import annotations

import json
import pickle
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import DataError, FitError, GraphError, SufficeNote
from suffice.models.chain import Chain
from suffice.structure.constraints import Adjacent, Candidates, Forbid, MaxParents, NotAncestor, Require, Tiers
from suffice.structure.windows import StepWindow, among

EDGES = (("a[-1]", "a"), ("a[-1]", "b"), ("b", "c"), ("b[-1]", "b"), ("c", "d"), ("c[-1]", "c"), ("d[-2]", "d"))
BIC = -17347.924554557918
LOG_LIKELIHOOD = -17283.52252430506


def template_rows(n: int = 50, length: int = 200) -> dict[str, Any]:
    """The issue's "Template recovered": u = default_rng(0).random((50, 200, 4)), lags before the start are 0."""
    u = np.random.default_rng(0).random((50, 200, 4))[:n, :length]
    x = np.zeros((n, length + 2, 4), int)
    p = [np.array(q) for q in ([0.2, 0.9], [0.1, 0.4, 0.6, 0.9], [0.1, 0.5, 0.7, 0.95], [0.2, 0.6, 0.4, 0.8])]
    for t in range(2, length + 2):
        x[:, t, 0] = u[:, t - 2, 0] < p[0][x[:, t - 1, 0]]
        x[:, t, 1] = u[:, t - 2, 1] < p[1][2 * x[:, t - 1, 0] + x[:, t - 1, 1]]
        x[:, t, 2] = u[:, t - 2, 2] < p[2][2 * x[:, t, 1] + x[:, t - 1, 2]]
        x[:, t, 3] = u[:, t - 2, 3] < p[3][2 * x[:, t, 2] + x[:, t - 2, 3]]
    flat = x[:, 2:].reshape(-1, 4)
    rows: dict[str, Any] = {name: np.array(["n", "y"])[flat[:, i]] for i, name in enumerate("abcd")}
    return rows | {"id": np.repeat(np.arange(n), length), "t": np.tile(np.arange(length), n)}


@pytest.fixture(scope="module")
def recovered() -> Any:
    return sf.sequences(template_rows(), "id", "t")


@pytest.mark.parametrize(
    "method",
    [None, sf.HillClimb(max_parents=3), sf.Exact(max_parents=3), sf.methods.GES(), sf.methods.Tabu(), sf.methods.MMHC()],
    ids=lambda m: type(m).__name__,
)
def test_template_recovered(recovered: Any, method: Any) -> None:
    found = sf.search(recovered, method=method, lags=2)
    assert found.template.edges == EDGES
    assert found.score == pytest.approx(BIC, rel=1e-13)
    assert found.n_parameters == 14
    assert found.score + 7 * np.log(9900) == pytest.approx(LOG_LIKELIHOOD, rel=1e-13)
    assert found.trace[-1].score == pytest.approx(BIC, rel=1e-13)
    assert sum(found.scores_by_node().values()) == pytest.approx(BIC, rel=1e-13)
    assert sorted(found.scores_by_node()) == list("abcd")


def test_proof_and_tests(recovered: Any) -> None:
    assert sf.search(recovered, lags=2).proved
    found = sf.search(recovered, method=sf.PC(), lags=2)
    assert found.template.edges == EDGES
    assert found.score is None


@pytest.mark.parametrize("method", [sf.methods.ChowLiu(), sf.methods.TAN("c")], ids=lambda m: type(m).__name__)
def test_trees(recovered: Any, method: Any) -> None:
    template = sf.search(recovered, method=method, lags=1).template
    assert all(len(template.parents(x)) <= 1 + isinstance(method, sf.methods.TAN) for x in template.nodes)


def shuffled(rows: dict[str, Any], seed: int) -> dict[str, Any]:
    """Rows and columns in another order, and sequences under other ids."""
    rng = np.random.default_rng(seed)
    order, names = rng.permutation(len(rows["id"])), rng.permutation(list(rows))
    return {n: (rng.permutation(50)[rows[n]] if n == "id" else rows[n])[order] for n in names}


@pytest.mark.parametrize("seed", range(3))
def test_nothing_depends_on_any_order(seed: int) -> None:
    rows = template_rows()
    one, other = (sf.search(sf.sequences(r, "id", "t"), lags=1) for r in (rows, shuffled(rows, seed)))
    assert one.template == other.template
    assert one.score == other.score


def parent_sets(child: str, names: list[str]) -> Any:
    others = [n for n in names if n != child]
    return chain.from_iterable(combinations(others, k) for k in range(len(others) + 1))


def bic(child: str, parents: tuple[str, ...], columns: dict[str, Any]) -> float:
    n = len(columns[child])
    q = 2 ** len(parents)
    code = sum((2**i * columns[p] for i, p in enumerate(parents)), np.zeros(n, int))
    table = np.zeros((q, 2))
    np.add.at(table, (code, columns[child]), 1)
    share = table / np.maximum(table.sum(1, keepdims=True), 1)
    return float((table * np.log(np.where(table > 0, share, 1))).sum() - 0.5 * np.log(n) * q)


@pytest.mark.parametrize("seed", range(4))
def test_the_best_of_all_templates(seed: int) -> None:
    """Against every graph of two variables and two lags, by counts."""
    rng = np.random.default_rng(seed)
    n, length = 12, 7
    x = rng.integers(2, size=(n, length, 2))
    for t in range(1, length):
        x[:, t, 0] = np.where(rng.random(n) < 0.7, x[:, t - 1, 1], x[:, t, 0])
        x[:, t, 1] = np.where(rng.random(n) < 0.7, x[:, t, 0], x[:, t, 1])
    rows = {"id": np.repeat(np.arange(n), length)} | {v: np.array(["n", "y"])[x[:, :, i].ravel()] for i, v in enumerate("uv")}
    columns = {v + (f"[-{k}]" if k else ""): x[:, 2 - k : length - k, i].ravel() for i, v in enumerate("uv") for k in range(3)}
    past = [c for c in columns if "[" in c]
    best = max(
        bic("u", pu, columns) + bic("v", pv, columns)
        for pu, pv in product(parent_sets("u", [*past, "u", "v"]), parent_sets("v", [*past, "u", "v"]))
        if not ("v" in pu and "u" in pv)
    )
    for method in (sf.Orders(max_parents=None), sf.Exact(max_parents=5)):
        found = sf.search(sf.sequences(rows, "id"), method=method, lags=2)
        assert found.score == pytest.approx(best, rel=1e-12)
        assert found.proved


def test_without_lags_it_is_a_search_of_rows(recovered: Any) -> None:
    rows = {n: v for n, v in template_rows().items() if n in "abcd"}
    plain, found = sf.search(rows), sf.search(recovered, lags=0)
    assert found.dag == plain.dag
    assert found.score == plain.score
    assert found.cpdag == plain.cpdag
    assert found.template == sf.Template(plain.dag)
    assert found.first == ()


def test_lags_of_some_columns(recovered: Any) -> None:
    found: Any = sf.search(recovered, lags={"d": 2, "a": 1})
    assert found.names == ("a", "a[-1]", "b", "c", "d", "d[-1]", "d[-2]")
    assert found.past == {"a[-1]", "d[-1]", "d[-2]"}
    assert dict(found.lags) == {"a": 1, "b": 0, "c": 0, "d": 2}
    assert found.plan.n_rows == 9900


def test_one_lag_is_the_default(recovered: Any) -> None:
    assert sf.search(recovered).names == sf.search(recovered, lags=1).names


def test_constraints_may_name_the_past(recovered: Any) -> None:
    known = Forbid(("a[-1]", "b")) + Require(("d[-1]", "c")) + Tiers(["d"], ["c"]) + MaxParents(2) + Adjacent(("a", "b[-2]"))
    found = sf.search(recovered, lags=2, constraints=known)
    template = found.template
    assert "a[-1]" not in template.parents("b")
    assert {"d[-1]"} <= set(template.parents("c"))
    assert "b[-2]" in template.parents("a")
    assert "c" not in template.parents("d")
    assert max(len(template.parents(x)) for x in template.nodes) <= 2
    assert not known.check(found.dag)


def test_an_edge_into_the_past_cannot_be_required(recovered: Any) -> None:
    with pytest.raises(GraphError, match="leads into the past"):
        sf.search(recovered, constraints=Require(("a", "b[-1]")))
    with pytest.raises(GraphError, match=r"'a\[-2\]', which is not among the variables"):
        sf.search(recovered, constraints=Forbid(("a[-2]", "b")))


def test_constraints_of_some_names() -> None:
    known = (
        Require("a -> b")
        + Forbid("c -> b")
        + MaxParents(3, {"a": 1, "c": 2})
        + Candidates({"b": ["a", "c"]})
        + Adjacent(("a", "c"))
        + NotAncestor(("b", "a"))
        + Tiers(["a"], ["c"], ["b"])
    )
    kept = among(known, ["a", "b"])
    assert kept == Require("a -> b") + MaxParents(3, {"a": 1}) + Candidates({"b": ["a"]}) + NotAncestor(("b", "a")) + Tiers(
        ["a"], ["b"]
    )


def test_explanations_know_time(recovered: Any) -> None:
    found: Any = sf.search(recovered, lags=2)
    edge = found.explain("a[-1] -> b")
    assert edge.why == "by time"
    assert "fixed by time" in repr(edge)
    assert "it would lead into the past" in repr(edge)
    assert edge.loss == pytest.approx(1186.927, abs=1e-3)
    assert "time forbids it" in repr(found.explain(("a", "b[-2]")))
    assert "compelled" in repr(found.explain("b -> c"))
    assert found.explain("a[-1]").past
    assert "child b" in repr(found.explain("a[-1]"))
    assert "next best parents" in repr(found.explain("d"))
    assert "by time" in repr(found)
    assert "4 variables, lags up to 2, 7 edges" in repr(found)


def test_edges_within_a_step_may_go_either_way() -> None:
    """Both children of the same past: the data cannot tell which comes first. A past of its own tells it."""
    rng = np.random.default_rng(0)
    u = np.zeros(4000, int)
    for t in range(1, 4000):
        u[t] = rng.random() < (0.8 if u[t - 1] else 0.2)
    past = np.concatenate([[0], u[:-1]])
    v = rng.random(4000) < 0.1 + 0.4 * past + 0.4 * u
    rows = {"u": np.array(["n", "y"])[u], "v": np.array(["n", "y"])[v.astype(int)]}
    with pytest.warns(SufficeNote, match="fewer than 10 sequences"):
        found = sf.search(sf.sequences(rows), lags={"u": 1})
    assert found.template == sf.Template("u[-1] -> u; u[-1], u -> v")
    assert found.cpdag.undirected == (("u", "v"),)
    assert "either way" in repr(found.explain("u -> v"))
    assert found.template.first == (sf.Dag("u -> v"),)
    with pytest.warns(SufficeNote):
        told = sf.search(sf.sequences(rows), lags={"u": 1}, constraints=Forbid(("u[-1]", "v")))
    assert told.cpdag.undirected == ()


def var_rows(n: int = 40, length: int = 100) -> tuple[dict[str, Any], tuple[tuple[str, str], ...]]:
    rng = np.random.default_rng(5)
    x = np.zeros((n, length + 20, 3))
    for t in range(2, length + 20):
        e = rng.normal(size=(n, 3))
        x[:, t, 0] = 0.7 * x[:, t - 1, 0] + e[:, 0]
        x[:, t, 1] = 0.5 * x[:, t - 2, 0] + 0.3 * x[:, t - 1, 1] + e[:, 1]
        x[:, t, 2] = 0.8 * x[:, t, 1] - 0.4 * x[:, t - 1, 0] + e[:, 2]
    rows = {v: x[:, 20:, i].ravel() for i, v in enumerate("xyz")} | {"id": np.repeat(np.arange(n), length)}
    return rows, (("x[-1]", "x"), ("x[-1]", "z"), ("x[-2]", "y"), ("y", "z"), ("y[-1]", "y"))


@pytest.mark.parametrize("score", [None, sf.Evidence(sf.BGe())], ids=["BIC", "BGe"])
def test_numbers(score: Any) -> None:
    rows, edges = var_rows()
    found = sf.search(sf.sequences(rows, "id"), score, lags=2)
    assert found.template.edges == edges
    assert found.proved
    assert len(found.first) == 2


def test_numbers_and_states() -> None:
    rng = np.random.default_rng(2)
    n, length = 30, 80
    s, y = np.zeros((n, length), int), np.zeros((n, length))
    for t in range(1, length):
        s[:, t] = rng.random(n) < np.where(s[:, t - 1], 0.9, 0.15)
        y[:, t] = 2.0 * s[:, t] + 0.5 * y[:, t - 1] + rng.normal(size=n)
    y[:, 0] = rng.normal(size=n)
    rows = {"id": np.repeat(np.arange(n), length), "s": np.array(["calm", "wild"])[s.ravel()], "y": y.ravel()}
    sequences = sf.sequences(rows, "id")
    for method in (None, sf.HillClimb()):
        found = sf.search(sequences, method=method)
        assert found.template.edges == (("s", "y"), ("s[-1]", "s"), ("y[-1]", "y"))
    assert sf.learn(sequences).template.edges == found.template.edges


def test_first_steps(recovered: Any) -> None:
    found: Any = sf.search(recovered, lags=2)
    assert [f.lags["a"] for f in found.first] == [0, 1]
    assert [f.problem.data.n_rows for f in found.first] == [50, 50]
    assert found.template.first[0].edges == found.first[0].dag.edges
    one = sf.search(recovered, lags=2, constraints=Forbid(*((f"{x}[-2]", y) for x in "abcd" for y in "abcd")))
    assert one.template.order == 1
    assert len(one.first) == 1


def test_first_steps_agree_with_the_template_where_the_data_cannot_tell() -> None:
    """In the first step b -> a and a -> b are alike; the template, where time tells, has b -> a."""
    rng = np.random.default_rng(1)
    n, length = 60, 40
    a, b = np.zeros((n, length), int), np.zeros((n, length), int)
    for t in range(length):
        b[:, t] = rng.random(n) < (np.where(b[:, t - 1], 0.85, 0.15) if t else 0.5)
        a[:, t] = rng.random(n) < np.where(b[:, t], 0.95, 0.05)
    rows = {"id": np.repeat(np.arange(n), length)} | {k: np.array(["n", "y"])[v.ravel()] for k, v in (("a", a), ("b", b))}
    found: Any = sf.search(sf.sequences(rows, "id"))
    assert found.template == sf.Template("b[-1] -> b -> a")
    assert found.first[0].dag == sf.Dag("b -> a")
    assert found.template.first_nodes == (("b", 0),)


def test_a_first_step_that_cannot_be_searched_is_left_to_the_template() -> None:
    rows, _ = var_rows()
    rows["x"] = rows["x"].copy()
    rows["x"][::100] = 0.0  # all sequences start there
    with pytest.warns(SufficeNote, match="step 0 is not searched apart"):
        found = sf.search(sf.sequences(rows, "id"), lags={"x": 1, "y": 1})
    assert found.first == (None,)
    assert found.template.first[0] == sf.Dag({x: [p for p in found.template.parents(x) if "[" not in p] for x in "xyz"})


def test_sequences_drawn_twice_are_there_twice() -> None:
    rows = template_rows(12, 50)
    drawn = sf.sequences(rows, "id", "t").resample(3)
    times = drawn.fold(lambda block: block.weights)[::50].astype(int)
    ids = np.repeat(np.array(drawn.labels, int), times)
    at = np.concatenate([np.arange(50) + 50 * i for i in ids])
    again = {n: v[at] for n, v in rows.items() if n in "abcd"} | {"id": np.repeat(np.arange(12), 50)}
    one, other = sf.search(drawn, lags=1), sf.search(sf.sequences(again, "id"), lags=1)
    assert one.dag == other.dag
    assert one.score == pytest.approx(other.score, rel=1e-12)


def test_short_sequences_have_no_rows() -> None:
    rows = {"id": [1, 1, 1, 1, 2, 3, 3], "x": list("abbabab")}
    window = StepWindow.of(sf.sequences(rows, "id"), 2)
    assert window.data.n_rows == 2
    assert window.at(1).data.n_rows == 2
    assert window.at(0).data.n_rows == 3
    with pytest.raises(DataError, match="need a sequence of at least 6 steps, and the longest has 4"):
        sf.search(sf.sequences(rows, "id"), lags=5)


def test_found_goes_through_files(recovered: Any) -> None:
    found: Any = sf.search(recovered, lags=2)
    back = pickle.loads(pickle.dumps(found))
    assert back.template == found.template
    assert back.losses == found.losses
    assert repr(back) == repr(found)
    facts = json.loads(json.dumps(found.to_dict()))
    assert facts["lags"] == dict.fromkeys("abcd", 2)
    assert facts["template"] == [list(e) for e in EDGES]
    assert len(facts["first"]) == 2


def test_the_cost_is_foretold(recovered: Any) -> None:
    plan = sf.search(recovered, lags=2, dry_run=True)
    assert plan.n_rows == 9900
    assert plan.n_variables == 4
    assert plan.families == 4 * (1 + 11 + 55 + 165)


def test_identifiers_are_left_out() -> None:
    rows = template_rows(20, 30) | {"key": np.array([f"k{i}" for i in range(600)])}
    with pytest.warns(SufficeNote, match="nearly as many states as steps: 'key'"):
        found = sf.search(sf.sequences(rows, "id", "t"))
    assert sorted(found.template.nodes) == list("abcd")


def test_learn(recovered: Any) -> None:
    learned = sf.learn(recovered, lags=2)
    assert isinstance(learned, Chain)
    assert learned.template.edges == EDGES
    assert "graph by Orders, BIC() -17,347.925" in learned.fit_info
    fitted = sf.fit(sf.search(recovered, lags=2).template, recovered, prior=sf.BDeu(1))
    assert learned.log_likelihood(recovered) == pytest.approx(fitted.log_likelihood(recovered), rel=1e-12)
    assert learned.order == 2


def test_bootstrap() -> None:
    sequences = sf.sequences(template_rows(30, 100), "id", "t")
    sure = sf.bootstrap(sequences, n=10, lags=2)
    assert sure.strength("a[-1]", "a") == 1.0
    assert sure.direction("a[-1]", "b") == 1.0
    assert set(sure.template().edges) >= {("a[-1]", "a"), ("a[-1]", "b"), ("d[-2]", "d")}
    assert sf.bootstrap(sequences, n=3, lags=2, seed=1).counts.sum() == sf.bootstrap(sequences, n=3, lags=2, seed=1).counts.sum()
    with pytest.raises(DataError, match="there is but one"):
        sf.bootstrap(sf.sequences({"x": list("abaabbab")}), n=2)
    with pytest.raises(FitError, match="a template is of sequences"):
        sf.bootstrap({"x": list("ab") * 9, "y": list("uv") * 9}, n=2).template()


def test_cross_validation() -> None:
    sequences = sf.sequences(template_rows(20, 60), "id", "t")
    learned = sf.cross_validate(sequences, folds=4, lags=2)
    empty = sf.cross_validate(sequences, method="a; b; c; d", folds=4)
    given = sf.cross_validate(sequences, method=sf.Template(EDGES), folds=4)
    assert empty.mean < learned.mean
    assert given.mean == pytest.approx(learned.mean, abs=0.05)
    assert [f.weight for f in learned.folds] == [300.0] * 4
    assert sf.cross_validate(sequences, method="a -> b; c; d", folds=4).log_likelihood == pytest.approx(
        sum(_held_out(sequences, "a -> b; c; d")), rel=1e-9
    )


def _held_out(sequences: Any, graph: str) -> Any:
    """A template without lags is a network of rows."""
    for train, test in sequences.split(4, 0):
        yield sf.fit(sf.Template(graph), train, prior=sf.BDeu(1)).log_likelihood(test)


def test_a_held_fold_can_be_parted_again() -> None:
    train, _ = next(sf.sequences(template_rows(12, 20), "id", "t").split(3, 0))
    near = train.hold()
    assert near.n_steps == train.n_steps == near.data.n_rows
    again = [(a.n_sequences, b.n_sequences) for a, b in near.split(2, 1)]
    assert again == [(4, 4), (4, 4)]
    assert sf.search(near, lags=1).score == sf.search(train, lags=1).score


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (lambda s: sf.search(template_rows(), lags=1), "lags= need sequences"),
        (lambda s: sf.learn(template_rows(), lags=1), "lags= need sequences"),
        (lambda s: sf.bootstrap(template_rows(), lags=1), "lags= need sequences"),
        (lambda s: sf.cross_validate(template_rows(), lags=1), "lags= need sequences"),
        (lambda s: sf.cross_validate(s, method="a", lags=1), "lags are for a search"),
        (lambda s: sf.search(s, lags=-1), "lags= is a whole number of at least 0, not -1"),
        (lambda s: sf.search(s, lags=True), "a whole number of at least 0, not True"),
        (lambda s: sf.search(s, lags={"q": 1}), "lags name 'q', but there is no such column"),
        (lambda s: sf.search(s, lags={"a": 1.5}), "the lag of 'a' is a whole number"),
        (lambda s: sf.learn(s, hidden=[sf.Finite("z", ["u", "v"])]), "is not attempted"),
        (lambda s: sf.structural_em(s), "is not attempted"),
        (lambda s: sf.methods.order_mcmc(s), "rows that do not depend on each other"),
        (lambda s: sf.search(sf.sequences({"x": ["a", None, "b"] * 9})), "is not attempted: 'x' 9, of 27 steps"),
        (lambda s: sf.search(sf.sequences({"x[-1]": list("abab")})), "has a name that means a step of another"),
        (lambda s: sf.search({"x": list("abab") * 9}).template, "a template is found in sequences"),
    ],
)
def test_refusals(recovered: Any, wrong: Any, why: str) -> None:
    with pytest.raises((DataError, FitError)) as error:
        wrong(recovered)
    assert why in str(error.value)


def test_a_limit_keeps_the_best_so_far(recovered: Any) -> None:
    with pytest.warns(SufficeNote, match="the search was stopped"):
        found = sf.search(recovered, method=sf.HillClimb(restarts=10**6), lags=2, time_limit=0.2)
    assert not found.finished
    assert found.template.edges == EDGES
    assert found.first == ()
