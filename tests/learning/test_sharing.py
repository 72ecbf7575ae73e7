"""Shared parameters: a tied fit is the fit of the stacked rows, in every family, with every prior, from rows or statistics."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FitError, ModelError, SufficeNote
from suffice.families.hierarchical.hierarchical import HierarchicalDirichlet
from suffice.families.hierarchical.logistic_normal import LogisticNormal
from suffice.learning.incomplete.objective import Collapsed
from suffice.models.parts.sharing import Tie, linked_names

CHAIN = "x1 -> x2 -> x3"
STATES = ["a", "b", "c"]


def chain(n: int = 150, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    table = rng.dirichlet(np.ones(3), 3)
    codes = [rng.integers(3, size=n)]
    for _ in range(2):
        codes.append(np.array([rng.choice(3, p=table[c]) for c in codes[-1]]))
    return {f"x{i + 1}": np.array(STATES)[c] for i, c in enumerate(codes)}


def stacked(rows: dict[str, Any], **columns: list[str]) -> dict[str, Any]:
    return {name: np.concatenate([rows[c] for c in parts]) for name, parts in columns.items()}


def walk(n: int = 120, seed: int = 1, at: float = 0.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y1 = at + rng.normal(size=n)
    y2 = at + 0.5 * (y1 - at) + rng.normal(size=n)
    y3 = at + 0.5 * (y2 - at) + rng.normal(size=n)
    return {"y1": y1, "y2": y2, "y3": y3}


@pytest.mark.parametrize("prior", [None, sf.BDeu(4), sf.K2(), sf.Dirichlet(0.3)])
@pytest.mark.parametrize("from_statistics", [False, True])
def test_tied_tables_are_the_table_of_the_stacked_rows(prior: Any, from_statistics: bool) -> None:
    rows = chain()
    data = sf.gather(rows, CHAIN) if from_statistics else rows
    bn = sf.fit(CHAIN, data, prior=prior, shared=[("x2", "x3")])
    long = sf.fit("x -> y", stacked(rows, x=["x1", "x2"], y=["x2", "x3"]), prior=prior)
    for node in ("x2", "x3"):
        np.testing.assert_array_equal(bn[node].probs, long["y"].probs)
        np.testing.assert_array_equal(bn[node].seen.dense(), long["y"].seen.dense())
    np.testing.assert_array_equal(bn["x1"].probs, sf.fit("x1", rows, prior=prior)["x1"].probs)
    if prior is not None:
        np.testing.assert_array_equal(bn["x3"].interval().lower, long["y"].interval().lower)


def test_by_hand() -> None:
    """x1 and x2, tied coins: 3 heads of 6 and prior (1, 1) once: 4/8, not (1 + 1 + 3)/(6 + 4)."""
    rows = {"x1": ["h", "h", "t"], "x2": ["h", "t", "t"]}
    assert sf.fit("x1; x2", rows, shared=[("x1", "x2")])["x1"].probs[0] == 0.5
    rows["x2"] = ["t", "t", "t"]
    bn = sf.fit("x1; x2", rows, shared=[("x1", "x2")], prior=sf.Dirichlet(1))
    np.testing.assert_allclose(bn["x2"].probs, [3 / 8, 5 / 8], rtol=1e-15)
    assert bn.n_parameters == 1
    assert bn.shared == (("x1", "x2"),)
    assert bn.log_likelihood() == pytest.approx(2 * np.log(3 / 8) + 4 * np.log(5 / 8), rel=1e-14)


@pytest.mark.parametrize("prior", [None, sf.NormalInverseGamma(), sf.BGe()])
@pytest.mark.parametrize("at", [0.0, 1e9])
def test_tied_lines_are_the_line_of_the_stacked_rows(prior: Any, at: float) -> None:
    rows = walk(at=at)
    bn = sf.fit("y1 -> y2 -> y3", rows, prior=prior, shared=[("y2", "y3")])
    long = sf.fit("x -> y", stacked(rows, x=["y1", "y2"], y=["y2", "y3"]), prior=prior)["y"]
    for node in ("y2", "y3"):
        np.testing.assert_allclose(bn[node].coefficients, long.coefficients, rtol=1e-10)
        np.testing.assert_allclose(bn[node].intercept, long.intercept, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(bn[node].variance, long.variance, rtol=1e-10)
    assert bn.n_parameters == 5


def test_conditional_gaussians_and_rates() -> None:
    rng = np.random.default_rng(3)
    n = 80
    g = {f"g{i}": rng.choice(["u", "v"], n) for i in (1, 2)}
    reals = {f"r{i}": rng.normal(size=n) for i in (1, 2)}
    children = {f"y{i}": np.where(g[f"g{i}"] == "u", 1.0, -2.0) * reals[f"r{i}"] + rng.normal(size=n) for i in (1, 2)}
    counts = {f"n{i}": rng.poisson(np.where(g[f"g{i}"] == "u", 2.0, 5.0)) for i in (1, 2)}
    rows = sf.scan({**g, **reals, **children, **counts}, variables={"n1": sf.Count, "n2": sf.Count})
    dag = {"y1": ["g1", "r1"], "y2": ["g2", "r2"], "n1": ["g1"], "n2": ["g2"]}
    together = stacked({**g, **reals, **children, **counts}, g=["g1", "g2"], r=["r1", "r2"], y=["y1", "y2"], n=["n1", "n2"])
    long_rows = sf.scan(together, variables={"n": sf.Count})
    for prior in (None, (sf.BDeu(1), sf.NormalInverseGamma(), sf.priors.Gamma())):
        bn = sf.fit(dag, rows, prior=prior, shared=[("y1", "y2"), ("n1", "n2")])
        long = sf.fit({"y": ["g", "r"], "n": ["g"]}, long_rows, prior=prior)
        np.testing.assert_allclose(bn["y2"].coefficients, long["y"].coefficients, rtol=1e-11)
        np.testing.assert_allclose(bn["y1"].variance, long["y"].variance, rtol=1e-11)
        np.testing.assert_allclose(bn["n2"].rates, long["n"].rates, rtol=1e-13)
        assert bn.log_likelihood() == pytest.approx(bn.log_prob(rows).sum(), rel=1e-12)


def test_permuting_the_group_changes_nothing() -> None:
    rows = walk()
    fits = [sf.fit("y1 -> y2; y3", rows, shared=[g], prior=sf.NormalInverseGamma()) for g in (("y1", "y3"), ["y3", "y1"])]
    assert fits[0] == fits[1]
    assert fits[0].shared == fits[1].shared == (("y1", "y3"),)


def test_states_that_another_node_lacks_are_taken_on_and_said() -> None:
    rows = {"x1": ["a", "b", "a"], "x2": ["b", "c", "a"], "x3": ["a", "a", "a"]}
    with pytest.warns(SufficeNote, match="same states: 'x1' takes on 'c', 'x3' takes on 'b', 'c', which 'x2' has") as said:
        bn = sf.fit("x1; x2; x3", rows, shared=[("x1", "x2", "x3")])
    assert len(said) == 1
    assert {v.states for v in bn.variables.values()} == {("a", "b", "c")}
    np.testing.assert_allclose(bn["x1"].probs, [6 / 9, 2 / 9, 1 / 9])
    with pytest.warns(SufficeNote, match="'x2' takes on 'd', 'x3' takes on 'd', which 'x1' has"):
        wider = bn.update({"x1": ["d"], "x2": ["a"], "x3": ["a"]})
    assert wider.variables["x2"].states == ("a", "b", "c", "d")
    np.testing.assert_allclose(wider["x2"].probs, [8 / 12, 2 / 12, 1 / 12, 1 / 12])
    with pytest.warns(SufficeNote) as said:
        sf.fit("x1; x2", {"x1": ["a", "b", None], "x2": ["b", "c", "a"]}, shared=[("x1", "x2")])
    assert sum("'x1' takes on 'c'" in str(w.message) for w in said) == 1


@pytest.mark.parametrize("rest", [[], [None]])
def test_states_of_which_no_node_has_all_are_refused(rest: Any) -> None:
    """`yes` and `Yes` were four states of a quarter each; incomplete rows, plates and scores say the same."""
    rows = {"q1": ["yes", "no", *rest], "q2": ["Yes", "No", *rest], "q3": ["yes", "no", *rest]}
    said = "'q1' has 'no', 'yes', which 'q2' has not, and 'q2' has 'No', 'Yes', which 'q1' has not: .* declare them alike"
    with pytest.raises(FitError, match=said):
        sf.fit("q1; q2; q3", rows, shared=[("q1", "q2", "q3")])
    with pytest.raises(FitError, match=said):
        sf.fit(sf.plates.Plate("q", columns={"q": ["q1", "q2", "q3"]}), rows)
    if not rest:
        with pytest.raises(FitError, match=said):
            sf.score("q1; q2; q3", rows, shared=[("q1", "q2", "q3")])
    with pytest.raises(FitError, match="'q1' has 'right', 'wrong', which 'q2' has not, and 'q2' has 'a', 'b', 'c'"):
        sf.fit("q1; q2", {"q1": ["wrong", "right", "right"], "q2": ["a", "b", "c"]}, shared=[("q1", "q2")])


def test_declared_states_are_taken_at_their_word() -> None:
    states = ["No", "Yes", "no", "yes"]
    data = sf.scan({"q1": ["yes", "no"], "q2": ["Yes", "No"]}, variables={"q1": states, "q2": states})
    np.testing.assert_array_equal(sf.fit("q1; q2", data, shared=[("q1", "q2")])["q1"].probs, [0.25] * 4)


def test_a_tied_chain_is_of_one_shape_throughout() -> None:
    assert linked_names([Tie((("x2", "x1"), ("x3", "x2"))), Tie((("z", "w"), ("w", "v")))]) == [
        ("x1", "x2", "x3"),
        ("v", "w", "z"),
    ]
    rows = {"x1": ["a", "b", "c"], "x2": ["b", "c", "c"], "x3": ["c", "a", "a"]}
    with pytest.warns(SufficeNote, match="'x2' takes on 'a', 'x3' takes on 'b', which 'x1' has"):
        bn = sf.fit(CHAIN, rows, shared=[("x2", "x3")], prior=sf.K2())
    assert {v.states for v in bn.variables.values()} == {("a", "b", "c")}
    with pytest.raises(FitError, match="'x1' has 'a', which 'x2' has not"):
        sf.fit(CHAIN, {"x1": ["a", "b"], "x2": ["b", "c"], "x3": ["c", "d"]}, shared=[("x2", "x3")], prior=sf.K2())


def test_parents_correspond_by_position_or_as_the_group_says() -> None:
    rng = np.random.default_rng(0)
    rows = {n: rng.choice(["0", "1"], 60) for n in ("a", "b", "c", "d")}
    rows["x"] = np.where(rng.random(60) < 0.8, rows["a"], rows["b"])
    rows["y"] = np.where(rng.random(60) < 0.8, rows["d"], rows["c"])
    bn = sf.fit({"x": ["a", "b"], "y": ["c", "d"]}, rows, shared=[{"x": ["a", "b"], "y": ["d", "c"]}])
    assert bn["y"].parents == ("d", "c")
    long = sf.fit({"z": ["u", "v"]}, stacked(rows, z=["x", "y"], u=["a", "d"], v=["b", "c"]))
    np.testing.assert_array_equal(bn["y"].probs, long["z"].probs)
    assert bn.update(rows)["y"].probs == pytest.approx(bn["y"].probs)
    with pytest.raises(FitError, match="gives 'y' the parents 'c', but in the graph it has 'c', 'd'"):
        sf.fit({"x": ["a", "b"], "y": ["c", "d"]}, rows, shared=[{"x": ["a", "b"], "y": ["c"]}])


def test_update_keeps_the_ties_and_the_prior() -> None:
    first, second = walk(60, 1), walk(90, 2)
    both = {n: np.concatenate([first[n], second[n]]) for n in first}
    for prior in (None, sf.NormalInverseGamma(mean=0.0, variance=1.0)):
        bn = sf.fit("y1 -> y2 -> y3", first, shared=[("y2", "y3")], prior=prior).update(second)
        whole = sf.fit("y1 -> y2 -> y3", both, shared=[("y2", "y3")], prior=prior)
        assert bn.shared == (("y2", "y3"),)
        np.testing.assert_allclose(bn["y3"].coefficients, whole["y3"].coefficients, rtol=1e-12)
        np.testing.assert_allclose(bn["y2"].variance, whole["y2"].variance, rtol=1e-12)
    data_dependent = sf.fit("y1 -> y2 -> y3", first, shared=[("y2", "y3")], prior=sf.NormalInverseGamma())
    assert data_dependent.update(second)["y2"].imagined == data_dependent["y2"].imagined


@pytest.mark.parametrize("prior", [sf.BDeu(2), sf.K2(), sf.priors.BDs(1), HierarchicalDirichlet(), LogisticNormal()])
def test_scores(prior: Any) -> None:
    rows = chain(60)
    long = stacked(rows, x=["x1", "x2"], y=["x2", "x3"])
    shared = [("x3", "x2")]

    def split(score: Any) -> float:
        return sf.score("x1", rows, score) + sf.score("x -> y", long, score, by_node=True)["y"]

    assert sf.score(CHAIN, rows, sf.LogLikelihood(), shared=shared) == pytest.approx(split(sf.LogLikelihood()), rel=1e-13)
    assert sf.score(CHAIN, rows, sf.AIC(), shared=shared) == pytest.approx(split(sf.AIC()), rel=1e-13)
    evidence = sf.score(CHAIN, rows, sf.Evidence(prior), shared=shared)
    assert evidence == pytest.approx(split(sf.Evidence(prior)), rel=1e-12)
    bn = sf.fit(CHAIN, rows, shared=shared)
    assert sf.score(CHAIN, rows, shared=shared) == pytest.approx(bn.bic(), rel=1e-13)
    parts = sf.score(CHAIN, rows, shared=shared, by_node=True)
    assert parts["x3"] == 0.0
    assert sum(parts.values()) == pytest.approx(bn.bic(), rel=1e-13)
    assert bn.log_likelihood() == pytest.approx(bn.log_prob(rows).sum(), rel=1e-12)


def test_evidence_of_numbers_is_that_of_the_stacked_rows() -> None:
    rows = walk()
    for prior in (sf.NormalInverseGamma(), sf.BGe()):
        tied = sf.score("y1 -> y2 -> y3", rows, sf.Evidence(prior), shared=[("y2", "y3")], by_node=True)["y2"]
        long = sf.score("x -> y", stacked(rows, x=["y1", "y2"], y=["y2", "y3"]), sf.Evidence(prior), by_node=True)["y"]
        assert tied == pytest.approx(long, rel=1e-11)


def test_query_intervals_draw_shared_parameters_once() -> None:
    """p(x1 = h, x2 = h) = θ²: its quantiles are the squares of those of the Beta posterior."""
    from scipy.stats import beta

    bn = sf.fit("x1; x2", {"x1": ["h"] * 3 + ["t"] * 2, "x2": ["h"] * 4 + ["t"]}, shared=[("x1", "x2")], prior=sf.Dirichlet(1))
    answer = bn.query(["x1", "x2"], interval=0.9, draws=10_000)
    expected = beta(8, 4).ppf([0.05, 0.95]) ** 2
    np.testing.assert_allclose([answer.interval.lower[0, 0], answer.interval.upper[0, 0]], expected, atol=0.015)
    apart = sf.fit("x1; x2", {"x1": ["h"] * 3 + ["t"] * 2, "x2": ["h"] * 4 + ["t"]}, prior=sf.Dirichlet(1))
    assert apart.query(["x1", "x2"], interval=0.9).interval.lower[0, 0] < expected[0] - 0.02
    narrow = bn.do({"x1": "h"}).query("x2", interval=0.9, draws=10_000)
    np.testing.assert_allclose(narrow.interval.lower[0], beta(8, 4).ppf(0.05), atol=0.01)


def test_query_intervals_of_a_tied_chain() -> None:
    """Two steps of one chain are T²; evidence at the first leaves another row of T at each node, of the same draw."""
    rows = chain(40)
    bn = sf.fit(CHAIN, rows, shared=[("x2", "x3")], prior=sf.Dirichlet(1))
    rng = np.random.default_rng(0)
    alpha = bn["x2"].seen.dense() + 1.0
    tables = np.stack([rng.dirichlet(a, 40_000) for a in alpha], axis=1)
    twice = (tables @ tables)[:, 1]
    answer = bn.query("x3", given={"x1": "b"}, interval=0.9, draws=10_000)
    for end, q in ((answer.interval.lower, 0.05), (answer.interval.upper, 0.95)):
        np.testing.assert_allclose(end, np.quantile(twice, q, axis=0), atol=0.012)


def test_query_intervals_of_tied_gaussians() -> None:
    """Means of two nodes with one intercept: the sum is 2a, so that the mean of y2 given nothing moves with that of y1."""
    rng = np.random.default_rng(5)
    rows = {"y1": rng.normal(3.0, 1.0, 20), "y2": rng.normal(3.0, 1.0, 20)}
    dag = {"y1": [], "y2": [], "z": ["y1", "y2"]}
    rows["z"] = rows["y1"] - rows["y2"] + 1e-3 * rng.normal(size=20)
    tied = sf.fit(dag, rows, shared=[("y1", "y2")], prior=sf.NormalInverseGamma())
    apart = sf.fit(dag, rows, prior=sf.NormalInverseGamma())
    width = [float(np.ptp(bn.query("z", interval=0.9).mean_interval)) for bn in (tied, apart)]
    assert width[0] < 0.6 * width[1]


def test_ties_after_interventions() -> None:
    bn = sf.fit(CHAIN, chain(), shared=[("x2", "x3")], prior=sf.BDeu(1))
    assert bn.do({"x1": "a"}).shared == (("x2", "x3"),)
    assert bn.do({"x2": "a"}).shared == ()


def test_pickle_json_and_equality(tmp_path: Any) -> None:
    rows = walk()
    for shared, prior in (([("y2", "y3")], sf.NormalInverseGamma()), ([("y2", "y3")], None), ((), None)):
        bn = sf.fit("y1 -> y2 -> y3", rows, shared=shared, prior=prior)
        sf.write(bn, tmp_path / "bn.json")
        read = sf.read(tmp_path / "bn.json")
        for other in (read, pickle.loads(pickle.dumps(bn))):
            assert other == bn
            assert other.shared == bn.shared
            assert other.n_parameters == bn.n_parameters
            assert other["y2"].seen == bn["y2"].seen
            assert other["y2"].imagined == bn["y2"].imagined
            assert other.update(rows) == bn.update(rows)
    coins = {"x": ["a", "b"], "y": ["a", "b"]}
    assert sf.fit("x; y", coins) != sf.fit("x; y", coins, shared=[("x", "y")])


def test_other_formats_lose_ties_and_that_is_said(tmp_path: Any) -> None:
    bn = sf.fit(CHAIN, chain(), shared=[("x2", "x3")])
    for suffix in ("bif", "xmlbif", "net", "dsc", "xdsl", "uai"):
        with pytest.warns(SufficeNote, match=f".{suffix} keeps the tables of 'x2', 'x3', but not that they share"):
            sf.write(bn, tmp_path / f"bn.{suffix}")
    assert sf.read(tmp_path / "bn.bif").shared == ()


def test_a_network_brings_its_ties() -> None:
    rows = chain()
    bn = sf.fit(CHAIN, rows, shared=[("x2", "x3")])
    assert sf.fit(bn, rows).shared == bn.shared
    assert sf.fit(bn, rows, shared=()).shared == ()
    assert sf.fit(bn, rows) == bn


@pytest.mark.parametrize(
    ("shared", "said"),
    [
        ([("x2", "x33")], "names 'x33', which is not in the graph; did you mean"),
        ([("x2",)], "at least two nodes"),
        ([()], "at least two nodes"),
        ([("x2", "x2")], "names 'x2' twice"),
        ([("x2", "x3"), ("x3", "x1")], "'x3' is in two groups"),
        (("x2", "x3"), "list of groups"),
        ("x2", "list of groups"),
        (7, "list of groups"),
        ([7], "a group of shared= is a list of nodes"),
        ([("x1", "x2")], "'x1' has 0 parents and 'x2' has 1"),
    ],
)
def test_refusals(shared: Any, said: str) -> None:
    with pytest.raises(FitError, match=said):
        sf.fit(CHAIN, chain(20), shared=shared)
    with pytest.raises(FitError, match=said):
        sf.score(CHAIN, chain(20), shared=shared)


def test_other_shapes_are_refused() -> None:
    rows = {"a": ["x", "y"], "b": ["y", "x"], "r": [0.5, 1.5], "c": [1, 2], "d": ["x", "z"]}

    def refused(said: str, **variables: Any) -> None:
        names = list(variables)
        data = sf.scan({n: rows[n] for n in names}, variables={n: v for n, v in variables.items() if v is not None})
        with pytest.raises(FitError, match=said):
            sf.fit("; ".join(names), data, shared=[names])

    refused("'a' is finite and 'r' is real", a=None, r=None)
    refused("'c' is a count and 'r' is real", c=sf.Count, r=None)
    refused("'b' has the states of 'a' in another order, 'y', 'x'", a=["x", "y"], b=["y", "x"])
    refused("'a' has the state 'y', which 'd' has not", a=["x", "y"], d=["x", "z"])
    with pytest.raises(FitError, match="'r' is real"):
        sf.fit("a -> r; d -> b", {**rows, "r": rows["r"]}, shared=[("b", "r")])


def test_regressions_are_refused_but_may_stand_beside_ties() -> None:
    rng = np.random.default_rng(0)
    rows = {"x1": rng.choice(["a", "b"], 50), "x2": rng.choice(["a", "b", "c"], 50), "r": rng.normal(size=50)}
    rows["y"] = np.where(rows["r"] + rng.normal(size=50) > 0, "p", "q")
    dag = {"x1": [], "x2": [], "y": ["r", "x1"]}
    with pytest.warns(SufficeNote, match="'x1' takes on 'c', which 'x2' has"):
        bn = sf.fit(dag, rows, families={"y": sf.Logistic(ridge=1)}, shared=[("x1", "x2")])
    assert bn["y"].parent_variables[1].states == bn.variables["x1"].states == ("a", "b", "c")
    np.testing.assert_array_equal(bn["x1"].probs, bn["x2"].probs)
    with pytest.raises(FitError, match="tied or pooled nodes, and their parents, have the same states"):
        sf.fit("r -> y; r -> x1", rows, families={"y": sf.Logistic()}, shared=[("x1", "y")])


def holes(rows: dict[str, Any], share: float, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)

    def with_holes(column: Any) -> Any:
        lost = rng.random(len(column)) < share
        return (
            np.where(lost, np.nan, column)
            if column.dtype.kind == "f"
            else [None if m else x for m, x in zip(lost, column, strict=True)]
        )

    return {name: with_holes(column) for name, column in rows.items()}


def test_em_of_independent_tied_nodes_is_the_frequency_of_all_observed_cells() -> None:
    rows = {"x1": ["h", None, "t", "h"], "x2": ["h", "h", None, None]}
    run = sf.em("x1; x2", rows, shared=[("x1", "x2")], tol=1e-12)
    np.testing.assert_allclose(run.model["x1"].probs, [4 / 5, 1 / 5], atol=1e-6)
    np.testing.assert_array_equal(run.model["x1"].probs, run.model["x2"].probs)
    assert run.model.shared == (("x1", "x2"),)
    assert run.model.n_parameters == 1
    with pytest.warns(SufficeNote, match="there are missing cells"):
        np.testing.assert_allclose(sf.fit("x1; x2", rows, shared=[("x1", "x2")])["x2"].probs, [4 / 5, 1 / 5], atol=1e-3)
    information = run.information()
    assert information.n_parameters == 1
    for node in ("x1", "x2"):  # five observed cells
        np.testing.assert_allclose(information.standard_errors[node], np.sqrt(0.8 * 0.2 / 5), rtol=1e-4)


@pytest.mark.parametrize("prior", [None, (sf.Dirichlet(2), sf.NormalInverseGamma())])
@pytest.mark.parametrize("options", [{}, {"accelerate": sf.methods.Squarem()}, {"batches": 3}])
def test_em_of_tied_copies_is_em_of_the_stacked_rows(prior: Any, options: dict[str, Any]) -> None:
    """Two copies of h -> y, h -> s with all tied, both hidden, are twice the rows of one."""
    rng = np.random.default_rng(7)
    n = 60
    h = rng.integers(2, size=(2, n))
    rows = {f"y{i + 1}": np.where(h[i] == 1, 3.0, -1.0) + rng.normal(size=n) for i in (0, 1)}
    rows |= {f"s{i + 1}": np.where(rng.random(n) < 0.2 + 0.6 * h[i], "u", "v") for i in (0, 1)}
    rows = holes(rows, 0.15, 0)
    long = {c: [*rows[f"{c}1"], *rows[f"{c}2"]] for c in "ys"}
    hidden = [sf.Finite("h1", ["p", "q"]), sf.Finite("h2", ["p", "q"])]
    options = {"prior": prior, "tol": 1e-10, "max_iter": 3000, "starts": 3, **options}
    shared = [("h1", "h2"), ("y1", "y2"), ("s1", "s2")]
    tied = sf.em("h1 -> y1; h1 -> s1; h2 -> y2; h2 -> s2", rows, hidden=hidden, shared=shared, **options)
    one = sf.em("h -> y; h -> s", long, hidden=[sf.Finite("h", ["p", "q"])], **options)
    assert tied.trace[-1].objective == pytest.approx(one.trace[-1].objective, abs=1e-5)
    assert tied.trace[-1].log_likelihood == pytest.approx(one.trace[-1].log_likelihood, abs=1e-4)
    for a, b in (("h1", "h2"), ("s1", "s2")):
        np.testing.assert_array_equal(tied.model[a].probs, tied.model[b].probs)
    np.testing.assert_allclose(np.sort(tied.model["y1"].intercept), np.sort(one.model["y"].intercept), atol=1e-3)
    np.testing.assert_array_equal(tied.model["y1"].variance, tied.model["y2"].variance)


@pytest.mark.parametrize("prior", [None, sf.BDeu(3)])
def test_em_of_a_tied_chain_is_at_a_maximum(prior: Any) -> None:
    """Moving any row of the shared table, in all its places, lowers ln L (+ Σ α ln θ, once)."""
    rows = holes(chain(80), 0.3, 1)
    run = sf.em(CHAIN, rows, shared=[("x2", "x3")], prior=prior, tol=1e-12, max_iter=5000)
    bn = run.model
    alpha = 0.0 if prior is None else 3.0 / 9.0
    alpha1 = 0.0 if prior is None else 1.0

    def objective(table: Any) -> float:
        other = sf.BayesNet(CHAIN, {"x1": bn["x1"].probs, "x2": table, "x3": table}, variables=bn.variables)
        return other.log_likelihood(rows) + float((alpha * np.log(table)).sum()) + alpha1 * float(np.log(bn["x1"].probs).sum())

    best = objective(bn["x2"].probs)
    assert best == pytest.approx(run.trace[-1].objective, abs=1e-8)
    rng = np.random.default_rng(0)
    for _ in range(10):
        moved = bn["x2"].probs * np.exp(0.05 * rng.normal(size=(3, 3)))
        assert objective(moved / moved.sum(axis=1, keepdims=True)) < best


def test_em_from_complete_rows_is_fit() -> None:
    for rows, dag, pair in ((chain(), CHAIN, ("x2", "x3")), (walk(), "y1 -> y2 -> y3", ("y2", "y3"))):
        for prior in (None, (sf.BDeu(2), sf.NormalInverseGamma())):
            run, bn = sf.em(dag, rows, shared=[pair], prior=prior), sf.fit(dag, rows, shared=[pair], prior=prior)
            for node in bn:
                for part in ("probs", "intercept", "coefficients", "variance"):
                    if hasattr(bn[node], part):
                        np.testing.assert_allclose(getattr(run.model[node], part), getattr(bn[node], part), rtol=1e-9)


def test_em_from_a_start_that_is_not_tied_and_with_fixed_nodes() -> None:
    rows = holes(chain(80), 0.3, 1)
    start = sf.fit(CHAIN, chain(), prior=sf.BDeu(1))
    run = sf.em(CHAIN, rows, start=start, shared=[("x2", "x3")], fixed=["x1"], tol=1e-10)
    np.testing.assert_array_equal(run.model["x1"].probs, start["x1"].probs)
    np.testing.assert_array_equal(run.model["x2"].probs, run.model["x3"].probs)
    with pytest.raises(FitError, match="'x2' is in fixed= and in shared="):
        sf.em(CHAIN, rows, start=start, shared=[("x2", "x3")], fixed="x2")


def test_em_with_far_units() -> None:
    """Tied columns have common units inside, wherever they lie: one is 1,000 away from the other, and has other holes."""
    rng = np.random.default_rng(2)
    rows = {"x1": rng.normal(size=80), "x2": 1e3 + rng.normal(size=80)}
    for i in (1, 2):
        rows[f"y{i}"] = 2.0 * rows[f"x{i}"] + 5.0 + rng.normal(size=80)
    lost = {
        **rows,
        "y1": np.where(np.arange(80) < 20, np.nan, rows["y1"]),
        "y2": np.where(np.arange(80) > 50, np.nan, rows["y2"]),
    }
    run = sf.em("x1 -> y1; x2 -> y2", lost, shared=[("y1", "y2")], tol=1e-12)
    seen = [~np.isnan(lost[f"y{i}"]) for i in (1, 2)]
    long = {c: np.concatenate([rows[f"{c}{i + 1}"][seen[i]] for i in (0, 1)]) for c in "xy"}
    line = sf.fit("x -> y", long)["y"]
    np.testing.assert_allclose(run.model["y1"].coefficients, line.coefficients, rtol=1e-9)
    np.testing.assert_allclose(run.model["y2"].variance, line.variance, rtol=1e-5)
    with pytest.raises(ModelError):
        run.model.update(rows)


@pytest.mark.parametrize(("far", "seed"), [(1e6, 2), (1e6, 5), (1e7, 2), (1e8, 5)])
@pytest.mark.parametrize("prior", [None, sf.NormalInverseGamma()])
def test_em_of_lines_so_far_apart_that_digits_are_lost(far: float, seed: int, prior: Any) -> None:
    """The residual is 1e-12 of the pooled scatter, and less: rounding is not taken for an error of ours, and then refused."""
    rng = np.random.default_rng(seed)
    rows = {"x1": rng.normal(size=80), "x2": far + rng.normal(size=80)}
    for i in (1, 2):
        y = 2.0 * rows[f"x{i}"] + 5.0 + rng.normal(size=80)
        rows[f"y{i}"] = np.where(rng.random(80) < 0.2, np.nan, y)
    try:
        found = sf.em("x1 -> y1; x2 -> y2", rows, shared=[("y1", "y2")], prior=prior, tol=1e-12).model["y2"]
    except Collapsed:
        found = None
    assert found is not None or prior is None
    assert found is None or far < 1e7 or prior is not None
    if found is not None:
        np.testing.assert_allclose(found.coefficients, [2.0], rtol=1e-5 if prior is None else 0.02)
        assert prior is not None or 0.5 < found.variance < 2.0
