"""What is believed of graphs before data: enumeration, every kind of scores, more variables than rows, and refusals."""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from itertools import permutations, product
from math import comb, exp, log
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FitError, GraphError
from suffice.objectives.scores import EdgePrice
from tests.statistics.test_every_family import finite_rows, mixed_rows

ROWS = {
    "finite": {n: c for n, c in finite_rows(60, 1).items() if n in ("v0", "v1", "v2")},
    "real": {n: c for n, c in mixed_rows(40, 2).items() if n in ("x", "y", "z")},
    "mixed": {n: c for n, c in mixed_rows(60, 3).items() if n in ("v0", "x", "y")},
}
SCORES = {"finite": [sf.BIC(), sf.Evidence(sf.BDeu(1)), sf.Evidence(sf.K2())], "real": [sf.BIC(), sf.Evidence(sf.BGe())]}
SCORES["mixed"] = [sf.AIC(), sf.BIC()]


class OneParent(sf.scores.StructurePrior):
    """One of a user's own: a second parent costs 3."""

    def log_prior(self, child: str, parents: Any, n_variables: int) -> float:
        return -3.0 * max(0, len(parents) - 1)


def priors(kind: str) -> list[sf.scores.StructurePrior]:
    a, b, c = sorted(ROWS[kind])
    beliefs = {(a, c): 0.9, (b, c): 0.05} if kind != "mixed" else {("v0", "y"): 0.01, ("x", "y"): 0.7, ("y", "x"): 0.2}
    return [sf.scores.KollerFriedman(), sf.scores.CasteloSiebes(beliefs, others=0.2), EdgePrice(0.7), OneParent()]


@cache
def graphs(names: tuple[str, ...]) -> list[sf.Dag]:
    """All graphs of three variables without cycles."""
    pairs = list(permutations(names, 2))
    found = []
    for chosen in product([False, True], repeat=len(pairs)):
        try:
            found.append(sf.Dag([p for p, there in zip(pairs, chosen, strict=True) if there], nodes=names))
        except GraphError:
            continue
    return found


@cache
def plain_scores(kind: str) -> list[dict[sf.Dag, float]]:
    """The scores of all graphs, but those where a finite variable has real parents."""
    rows, found = sf.scan(ROWS[kind]), []
    for score in SCORES[kind]:
        found.append({})
        for dag in graphs(tuple(sorted(ROWS[kind]))):
            with suppress(FitError):
                found[-1][dag] = sf.score(dag, rows, score)
    return found


@pytest.mark.parametrize(("kind", "place"), [(kind, k) for kind in ROWS for k in range(4)])
def test_searches_find_the_best_of_all_graphs(kind: str, place: int) -> None:
    rows, prior = sf.scan(ROWS[kind]), priors(kind)[place]
    assert len(graphs(tuple(sorted(ROWS[kind])))) == 25
    for plain, scored in zip(SCORES[kind], plain_scores(kind), strict=True):
        score = sf.scores.GraphPosterior(plain, prior)
        values = {}
        for dag, value in scored.items():
            values[dag] = sf.score(dag, rows, score)
            log_prior = sum(prior.log_prior(n, dag.parents(n), 3) for n in dag.nodes)
            assert values[dag] == pytest.approx(value + log_prior, abs=1e-9)
        best = max(values.values())
        for method in (sf.Orders(max_parents=2), sf.Exact(), sf.methods.Tabu()):
            found = sf.search(rows, score, method)
            assert found.score == pytest.approx(best, abs=1e-6)
            assert values[found.dag] == pytest.approx(best, abs=1e-6)


def test_the_prior_over_numbers_of_parents_is_a_distribution() -> None:
    n, prior = 7, sf.scores.KollerFriedman()
    whole = sum(comb(n - 1, k) * exp(prior.log_prior("a", ["p"] * k, n)) for k in range(n))
    assert whole == pytest.approx(n)


@pytest.mark.parametrize(("one", "two"), [(0.8, None), (0.6, 0.3), (None, None), (0.1, 0.2)])
def test_beliefs_are_the_odds_of_a_pair(one: float | None, two: float | None) -> None:
    named = {pair: p for pair, p in ((("a", "b"), one), (("b", "a"), two)) if p is not None}
    prior = sf.scores.CasteloSiebes(named, others=0.2)
    forth, back = exp(prior.log_prior("b", ["a"], 2)), exp(prior.log_prior("a", ["b"], 2))
    none = 1.0 / (1.0 + forth + back)
    if one is not None:
        assert forth * none == pytest.approx(one)
        assert back * none == pytest.approx((1 - one) / 2 if two is None else two)
    else:
        assert (forth * none, back * none) == (pytest.approx(0.2), pytest.approx(0.2))


def test_an_edge_that_is_believed_is_found_although_its_parameters_cost_more_than_it_gains() -> None:
    rng = np.random.default_rng(4)
    rows = {f"v{i}": np.array(list("abcd"))[rng.integers(0, 4, 30)] for i in range(4)}
    sure = sf.scores.GraphPosterior(sf.BIC(), sf.scores.CasteloSiebes({("v0", "v3"): 1 - 1e-9}))
    assert sf.search(rows).dag.edges == ()
    assert sf.search(rows, sure).dag.edges == (("v0", "v3"),)
    assert sf.search(rows, sure, sf.HillClimb()).dag.edges == (("v0", "v3"),)


@pytest.mark.parametrize("gamma", [0.0, 0.5, 1.0])
def test_ebic_is_minus_half_of_its_value(gamma: float) -> None:
    rows = ROWS["real"]
    dag = sf.Dag("x -> y; y -> z")
    n, parameters = 40, 2 + 3 + 3
    deviance = -2.0 * sf.score(dag, rows, sf.LogLikelihood())
    value = deviance + parameters * log(n) + 4 * gamma * 2 * log(3)
    assert sf.score(dag, rows, sf.choices.EBIC(gamma)) == pytest.approx(-value / 2)
    assert sf.search(rows, sf.choices.EBIC(gamma)).score == pytest.approx(
        max(sf.score(d, rows, sf.choices.EBIC(gamma)) for d in graphs(("x", "y", "z")))
    )


def test_one_class_serves_searches_and_penalties() -> None:
    rows = ROWS["real"]
    assert sf.search(rows, sf.choices.EBIC(0.5), sf.methods.GES()).score == pytest.approx(
        sf.search(rows, sf.choices.EBIC(0.5), sf.Exact()).score
    )
    assert sf.search(rows, method=sf.GraphicalLasso(select=sf.choices.EBIC(0.5))).graph is not None
    assert repr(sf.choices.EBIC(0.25)) == "EBIC(gamma=0.25)"
    assert sf.choices.EBIC(1) == sf.choices.EBIC(1.0) != sf.choices.EBIC(0.5)


def independent(n: int, n_rows: int) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {f"v{i:03d}": rng.normal(size=n_rows) for i in range(n)}


def test_more_variables_than_rows() -> None:
    rows = independent(120, 30)
    with pytest.warns(sf.SufficeNote, match=r"30 rows are few for 120 variables.*about 465 of 7,140 pairs; score=EBIC\(1\)"):
        sf.search(rows, method=sf.HillClimb(max_parents=1), dry_run=True)
    assert len(sf.search(rows, sf.choices.EBIC(1)).dag.edges) <= 5


def test_enough_rows_get_no_note() -> None:
    sf.search(independent(20, 60))
    sf.search(finite_rows(100, 1))
    sf.search(independent(120, 30), method=sf.PC(alpha=0.001, max_condition=0))


def test_every_method_takes_a_prior() -> None:
    rows, score = finite_rows(200, 5), sf.scores.GraphPosterior(sf.BIC(), sf.scores.KollerFriedman())
    for method in (sf.Orders(), sf.HillClimb(), sf.methods.Tabu(), sf.Exact(), sf.methods.MMHC(), sf.methods.ChowLiu()):
        assert sf.search(rows, score, method).score == pytest.approx(sf.score(sf.search(rows, score, method).dag, rows, score))
    assert sf.search(rows, score, sf.methods.GES()).score == pytest.approx(sf.search(rows, score, sf.Exact()).score)
    beliefs = sf.scores.GraphPosterior(sf.BIC(), sf.scores.CasteloSiebes({("v0", "v1"): 0.99}))
    with pytest.raises(FitError, match="same for equivalent graphs"):
        sf.search(rows, beliefs, sf.methods.GES())
    assert sf.methods.order_mcmc(rows, beliefs, samples=200).adjacent("v0", "v1") > 0.5
    gaps = {n: [None if i % 17 == 0 else x for i, x in enumerate(c)] for n, c in rows.items() if n in ("v0", "v1", "v2")}
    assert sf.structural_em(gaps, score=score).score == pytest.approx(
        sf.structural_em(gaps).score + sum(-log(comb(2, 1)) for _ in range(2)), abs=0.2
    )
    assert set(sf.search(rows, score).explain("v1").to_dict()) == set(sf.search(rows).explain("v1").to_dict())


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: sf.scores.CasteloSiebes({("a", "b"): 1.0}), "what is sure is a constraint"),
        (lambda: sf.scores.CasteloSiebes({("a", "b"): 0.7, ("b", "a"): 0.3}), "leave nothing for no edge"),
        (lambda: sf.scores.CasteloSiebes({"ab": 0.5}), r"an edge \(parent, child\)"),
        (lambda: sf.scores.CasteloSiebes({}, others=0.5), "between 0 and 0.5"),
        (lambda: sf.scores.GraphPosterior(sf.BIC(), sf.BDeu(1)), "a score and a structure prior"),
        (lambda: sf.scores.GraphPosterior(sf.BIC, sf.scores.KollerFriedman()), "a score and a structure prior"),
        (lambda: sf.choices.EBIC(-1), "gamma of EBIC"),
        (
            lambda: sf.search(ROWS["finite"], sf.scores.GraphPosterior(sf.BIC(), sf.scores.CasteloSiebes({("v0", "w"): 0.5}))),
            "no variable",
        ),
    ],
)
def test_refusals(make: Any, said: str) -> None:
    with pytest.raises(FitError, match=said):
        make()


def test_a_penalised_score_has_no_formula_of_its_own() -> None:
    with pytest.raises(TypeError, match="derive it from Score"):

        class Wrong(sf.scores.Penalised):
            def local(self, *_: Any) -> float:
                return 0.0


def test_words_of_the_command_line(run) -> None:
    sf.load("asia").sample(300, seed=0).to_pandas().to_csv("rows.csv", index=False)
    assert run("learn", "rows.csv", "--score", "ebic:0.5")[0] == 0
    assert run("learn", "rows.csv", "--score", "bdeu:1", "--structure-prior", "koller-friedman")[0] == 0
    code, out, err = run("learn", "rows.csv", "--belief", "asia -> tub=0.999999", "--structure-prior", "castelo-siebes:0.05")
    assert code == 0, err
    assert "asia -> tub" in out
    for words, said in (
        (["--structure-prior", "nobody"], "koller-friedman or castelo-siebes"),
        (["--structure-prior", "koller-friedman:2"], "takes no number"),
        (["--belief", "asia,tub"], "an edge and its probability"),
        (["--belief", "asia,tub=1"], "--require or --forbid"),
        (["--score", "ebic:much"], "does not take the number 'much'"),
        (["--score", "ebic:-1"], "gamma of EBIC"),
    ):
        code, _, err = run("learn", "rows.csv", *words)
        assert code == 1
        assert said in err
