"""Pseudo-counts as they are written down: a number, a vector of a node, a table of its cells; and priors of single nodes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln

import suffice as sf
from suffice.errors import FitError, SufficeError, SufficeNote
from suffice.families.priors.priors import PriorsByNode
from suffice.interfaces.cli.words import prior_of

ROWS = {"smoke": ["no", "no", "yes", "yes", "yes"], "lung": ["no", "no", "no", "yes", "yes"]}
GRAPH = "smoke -> lung"


def test_a_table_is_added_to_the_counts():
    bn = sf.fit(GRAPH, ROWS, prior={"lung": [[9, 1], [1, 1]], "smoke": [3, 1]})
    assert bn["lung"].probs == pytest.approx(np.array([[11 / 12, 1 / 12], [2 / 5, 3 / 5]]))
    assert bn["smoke"].probs == pytest.approx([5 / 9, 4 / 9])
    mode = sf.fit(GRAPH, ROWS, prior={"lung": [[9, 1], [1, 1]], "smoke": 1}, estimate=sf.Mode())
    assert mode["lung"].probs == pytest.approx(np.array([[1.0, 0.0], [1 / 3, 2 / 3]]))


def test_all_ways_to_write_the_same():
    one = sf.fit(GRAPH, ROWS, prior=2)
    assert one == sf.fit(GRAPH, ROWS, prior=sf.Dirichlet(2))
    for lung in (2, [2, 2], (2.0, 2.0), np.full((2, 2), 2), {"yes": 2, "no": 2}, sf.Dirichlet([2, 2]), sf.Dirichlet(2)):
        assert sf.fit(GRAPH, ROWS, prior=({"lung": lung}, sf.Dirichlet(2))) == one
    assert sf.fit(GRAPH, ROWS, prior={"smoke": sf.BDeu(1), "lung": sf.BDeu(1)}) == sf.fit(GRAPH, ROWS, prior=sf.BDeu(1))


def test_the_axes_of_a_table_are_those_of_the_graph():
    rows = {"a": list("xyxy"), "b": list("uvwu"), "c": list("nnyy")}
    alpha = np.arange(1.0, 13.0).reshape(2, 3, 2)
    bn = sf.fit("a -> c <- b", rows, prior=({"c": alpha}, sf.K2()))
    assert bn == sf.fit("a -> c <- b", rows, prior=({"c": alpha.reshape(6, 2)}, sf.K2()))
    turned = sf.fit(sf.Dag({"c": ["b", "a"]}), rows, prior=({"c": alpha.transpose(1, 0, 2)}, sf.K2()))
    assert turned == bn
    empty = alpha[0, 1] / alpha[0, 1].sum()  # a=x never meets b=v
    assert bn["c"].probs[0, 1] == pytest.approx(empty)


def test_the_evidence_is_that_of_betas():
    found = sf.score(GRAPH, ROWS, sf.Evidence({"lung": [[9, 1], [1, 1]], "smoke": {"yes": 1, "no": 3}}), by_node=True)
    assert found["smoke"] == pytest.approx(betaln(5, 4) - betaln(3, 1))
    no = quad(lambda t: t**2 * t**8 / np.exp(betaln(9, 1)), 0, 1)[0]
    yes = quad(lambda t: t * (1 - t) ** 2, 0, 1)[0]
    assert found["lung"] == pytest.approx(np.log(no) + np.log(yes))


def test_a_search_takes_vectors_and_leaves_out_what_a_table_does_not_fit():
    rng = np.random.default_rng(0)
    x = rng.integers(0, 2, 300)
    rows = {"x": x.astype(str), "y": (x ^ (rng.random(300) < 0.1)).astype(str), "z": rng.integers(0, 3, 300).astype(str)}
    by_vector = sf.search(rows, sf.Evidence({"x": [1, 1], "y": [1, 1], "z": [1, 1, 1]}))
    assert by_vector.score == pytest.approx(sf.search(rows, sf.Evidence(sf.K2())).score)
    with pytest.warns(SufficeNote, match="pseudo-counts of 'y' have the shape"):
        found = sf.search(rows, sf.Evidence(({"y": [[1, 1], [1, 1]]}, sf.K2())), constraints=sf.Require(("x", "y")))
    assert found.dag.parents("y") == ("x",)


def test_updates_files_and_em_keep_them(tmp_path):
    prior = ({"lung": [[9, 1], [1, 1]]}, sf.BDeu(1))
    bn = sf.fit(GRAPH, ROWS, prior=prior)
    sf.write(bn, tmp_path / "bn.json")
    back = sf.read(tmp_path / "bn.json")
    assert back == bn
    assert back.prior == bn.prior
    twice = {k: v * 2 for k, v in ROWS.items()}
    assert back.update(ROWS) == sf.fit(GRAPH, twice, prior=prior)
    with pytest.raises(FitError, match="shape"):
        back.update({"smoke": ["often"], "lung": ["no"]})
    gaps = {"smoke": [*ROWS["smoke"], None], "lung": [*ROWS["lung"], "no"]}
    run = sf.em(GRAPH, gaps, prior=prior, tol=0, max_iter=200)
    objective = [step.objective for step in run.trace]
    assert all(b >= a - 1e-12 for a, b in itertools.pairwise(objective))
    share = run.model["smoke"].probs * run.model["lung"].probs[:, 0]
    share /= share.sum()
    assert run.model["lung"].probs[0, 0] == pytest.approx((2 + 9 + share[0]) / (2 + 10 + share[0]), rel=1e-9)


def test_a_node_may_have_any_prior():
    rows = {**ROWS, "age": [30.0, 40.0, 55.0, 61.0, 70.0]}
    bn = sf.fit("smoke -> age; smoke -> lung", rows, prior={"age": sf.NormalInverseGamma(), "lung": [1, 1], "smoke": 1})
    assert bn["age"].interval(0.9)["variance"].lower.shape == (2,)
    chosen = sf.fit(GRAPH, ROWS, prior={"lung": sf.priors.HierarchicalDirichlet(), "smoke": [1, 1]})
    assert set(chosen.prior.priors["lung"].strength) == {"lung"}
    tied = sf.fit("x; y", {"x": list("aab"), "y": list("abb")}, prior={"x": [3, 1], "y": [3, 1]}, shared=[("x", "y")])
    assert tied["y"].probs == pytest.approx([6 / 10, 4 / 10])


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        ({"lung": [[9, 1], [1, 0]]}, "'lung' at smoke='yes', lung='yes' is 0, and each must be a positive number"),
        ({"lung": [[9, 1], [1, -2]]}, "at smoke='yes', lung='yes' is -2"),
        ({"lung": [9, np.inf]}, "'lung' needs 2 numbers"),
        ({"lung": [[9, 1], [1, np.nan]]}, "at smoke='yes', lung='yes' is nan"),
        ({"lung": [[9, 1], [1, 1], [2, 2]]}, r"shape \(3, 2\), and its table has \(2, 2\)"),
        ({"lung": [[9, 1], [1]]}, "'lung' must be a table of numbers, with lines of the same length"),
        ({"lung": [9, 1, 1]}, "'lung' needs 2 numbers, one per state"),
        ({"lung": {"no": 1}}, "'lung' and the data differ in the state 'yes'"),
        ({"lung": 0}, "pseudo-counts of 'lung': .* positive number"),
        ({"lung": True}, "not a prior"),
        ({"lung": None}, "the prior of 'lung' is None"),
        ({"lun": [9, 1]}, "'lun', which is not in the graph; did you mean 'lung'"),
        ({"lung": sf.BGe()}, "given as the prior of 'lung', says nothing about a finite node"),
        ({}, "names no node"),
        ([9, 1], "name no node"),
        ([[9, 1], [1, 1]], "name no node"),
    ],
)
def test_what_is_refused(prior, message):
    with pytest.raises(FitError, match=message):
        sf.fit(GRAPH, ROWS, prior=prior)


def test_a_number_is_chosen_of_plain_counts_only():
    with pytest.raises(FitError, match="this Dirichlet has several"):
        sf.priors.EmpiricalBayes(sf.Dirichlet([1, 2]))
    with pytest.raises(FitError, match="PriorsByNode is not one of them"):
        sf.priors.by_evidence(GRAPH, ROWS, {"lung": [9, 1]})


def test_words_of_the_command_line():
    assert prior_of("lung=9,1;1,1") == {"lung": ((9.0, 1.0), (1.0, 1.0))}
    by_node = {"lung": 2.0, "a+b": (1000.0, 2.0)}
    assert prior_of('lung=2+"a+b"=1e+3,2+nig:1e+2/df=5') == (by_node, sf.NormalInverseGamma(100.0, 5.0))
    assert prior_of("lung = bdeu:3 + k2") == ({"lung": sf.BDeu(3.0)}, sf.K2())
    assert prior_of("y=logistic-normal/mean=0,1,0/covariance=1,0.5,0;0.5,1,0;0,0,1") == {
        "y": sf.priors.LogisticNormal([0.0, 1.0, 0.0], [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]])
    }
    assert prior_of("logistic-normal/correlated") == sf.priors.LogisticNormal(correlated=True)
    assert prior_of("known-variance:4/mean=0/spread=10") == sf.priors.KnownVariance(4.0, 0.0, 10.0)
    for words, message in (
        ("x=", "nothing stands after"),
        ("=3", "without a name"),
        ("x=1+x=2", "names 'x' twice"),
        ("x=1,a", "is no number, vector 9,1 or table"),
        ("nig/foo=3", "no option 'foo'; nig takes count, df"),
        ("known-variance", "needs its variance: known-variance:1"),
        ("known-variance:auto", "cannot choose a number of known-variance"),
    ):
        with pytest.raises(SufficeError, match=message):
            prior_of(words)


def test_the_numbers_of_pgmpy():
    """pgmpy 1.1.2, BayesianEstimator(prior_type="dirichlet"), whose pseudo_counts have the child first, on these rows."""
    table = sf.load("asia").sample(2000, seed=0)
    rows = {n: table[n].to_pylist() for n in ("smoke", "lung", "bronc")}  # states in the order of the alphabet
    prior = {"smoke": [2, 1], "lung": [[9, 1], [1, 1]], "bronc": [[1, 3], [2, 4]]}
    bn = sf.fit("smoke -> lung; smoke -> bronc", rows, prior=prior)
    assert bn["smoke"].probs == pytest.approx([0.51972042, 0.48027958], abs=1e-8)
    assert bn["lung"].probs.reshape(-1) == pytest.approx([0.98856053, 0.01143947, 0.91484943, 0.08515057], abs=1e-8)
    assert bn["bronc"].probs.reshape(-1) == pytest.approx([0.71812081, 0.28187919, 0.36918304, 0.63081696], abs=1e-8)


def test_by_node_is_a_value():
    assert PriorsByNode({"x": [9, 1]}) == PriorsByNode({"x": sf.Dirichlet((9.0, 1.0))})
    with pytest.warns(SufficeNote, match="says nothing about 'smoke'"):
        sf.fit(GRAPH, ROWS, prior={"lung": [9, 1]})
