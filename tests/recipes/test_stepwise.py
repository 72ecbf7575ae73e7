"""`Stepwise`: log-likelihoods of hierarchical models, known answers, hierarchy and rules.

The tables are R's HairEyeColor, Titanic and UCBAdmissions, by their counts; states sorted by name.
"""

from __future__ import annotations

import pickle
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.recipes.stepwise import Interactions, one_more, prime_parts, reduction, without_edge, without_term
from tests.oracles import random_net

HAIR = (
    {"Hair": ["Black", "Blond", "Brown", "Red"], "Eye": ["Blue", "Brown", "Green", "Hazel"], "Sex": ["Female", "Male"]},
    [9, 11, 36, 32, 2, 3, 5, 10, 64, 30, 4, 3, 8, 8, 5, 5, 34, 50, 66, 53, 14, 15, 29, 25, 7, 10, 16, 10, 7, 7, 7, 7],
)
TITANIC = (
    {"Class": ["1st", "2nd", "3rd", "Crew"], "Sex": ["Female", "Male"], "Age": ["Adult", "Child"], "Survived": ["No", "Yes"]},
    [4, 140, 0, 1, 118, 57, 0, 5, 13, 80, 0, 13, 154, 14, 0, 11, 89, 76, 17, 14, 387, 75, 35, 13, 3, 20, 0, 0, 670, 192, 0, 0],
)
BERKELEY = (
    {"Admit": ["Admitted", "Rejected"], "Gender": ["Female", "Male"], "Dept": list("ABCDEF")},
    [89, 17, 202, 131, 94, 24, 512, 353, 120, 138, 53, 22, 19, 8, 391, 244, 299, 317, 313, 207, 205, 279, 138, 351],
)


def rows_of(table: tuple[dict[str, list[str]], list[int]]) -> sf.Data:
    """The cells of a table as weighted rows."""
    states, counts = table
    cells = list(product(*states.values()))
    columns = {name: [cell[i] for cell in cells] for i, name in enumerate(states)}
    return sf.scan(columns, variables=states, weights=counts)


def found(table: Any, direction: Any, score: Any, **how: Any) -> Any:
    return sf.search(rows_of(table), method=sf.methods.Stepwise(direction, score, **how))


def test_known_answers() -> None:
    hair = found(HAIR, sf.methods.Backward(), sf.methods.DevianceTest(0.05))
    assert hair.generators == (("Eye", "Hair"), ("Hair", "Sex"))
    assert hair.model.deviance == pytest.approx(11.763723, abs=1e-6)
    assert hair.model.df == 12
    assert hair.score is None
    assert [step.what for step in hair.trace] == ["start", "remove Eye:Hair:Sex", "remove Eye:Sex"]
    assert -2.0 * hair.trace[1].gain == pytest.approx(6.7612504188, abs=1e-8)
    assert hair.strengths["Hair", "Sex"] == pytest.approx(19.856561 - 11.763723, abs=1e-5)
    assert "Eye:Hair" in repr(hair.explain("Eye", "Hair"))
    assert "no term" in repr(hair.explain("Eye", "Sex"))
    berkeley = found(BERKELEY, sf.methods.Forward(), sf.BIC())
    assert berkeley.generators == (("Admit", "Dept"), ("Dept", "Gender"))
    assert berkeley.model.deviance == pytest.approx(21.735507, abs=1e-6)
    assert berkeley.score == pytest.approx(berkeley.model.bic(), abs=1e-8)
    titanic = found(TITANIC, sf.methods.Backward(), sf.AIC())  # from the saturated model
    assert titanic.generators == (("Age", "Class", "Sex"), ("Age", "Class", "Survived"), ("Class", "Sex", "Survived"))
    assert titanic.model.deviance == pytest.approx(1.685397, abs=1e-4)
    copy = pickle.loads(pickle.dumps(titanic))
    assert copy.generators == titanic.generators
    assert copy.model.deviance == pytest.approx(titanic.model.deviance)


def brute(rows: sf.Data, generators: Any) -> float:
    """ln L by iterative proportional fitting of the whole table."""
    names = sorted(rows.columns)
    seen = rows.gather([sf.statistics.Request(tuple(names))]).counts(names).values
    fitted = np.full(seen.shape, seen.sum() / seen.size)
    for _ in range(3000):
        for g in generators:
            out = tuple(i for i, n in enumerate(names) if n not in g)
            there, wanted = fitted.sum(out, keepdims=True), seen.sum(out, keepdims=True)
            fitted = fitted * np.divide(wanted, there, out=np.zeros_like(there), where=there > 0)
    full = seen > 0
    return float(seen[full] @ np.log(fitted[full] / seen.sum()))


def test_log_likelihoods_are_those_of_the_whole_table() -> None:
    rows = sf.scan(random_net(3, 4).sample(2000, seed=3))
    models = Interactions(rows, dict(rows.schema))
    a, b, c, d = sorted(rows.columns)
    for generators in (
        [(a,), (b,), (c,), (d,)],
        [(a, b), (b, c), (c, d)],
        [(a, b), (b, c), (c, d), (a, d)],
        [(a, b), (a, c), (b, c), (c, d)],
        [(a, b, c), (b, c, d)],
        [(a, b, c), (b, d), (c, d)],
        [(a, b), (a, c), (a, d), (b, c), (b, d), (c, d)],
    ):
        assert models.log_likelihood(generators) == pytest.approx(brute(rows, generators), abs=1e-5)


def test_decomposable_models_are_reduced_to_nothing() -> None:
    for edges in range(64):
        pairs = [pair for k, pair in enumerate(combinations("abcd", 2)) if edges >> k & 1]
        graph = sf.Graph(pairs, nodes=list("abcd"))
        assert (reduction(graph.cliques())[1] == ()) == graph.is_decomposable
    assert reduction([("a",)]) == ([(("a",), ())], ())
    assert reduction([("a", "b"), ("a", "c"), ("b", "c"), ("c", "d")])[1] == (("a", "b"), ("a", "c"), ("b", "c"))
    square = [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")]
    assert prime_parts([*square, ("d", "e")])[1] == [tuple(sorted(square))]
    assert prime_parts([("a", "b"), ("b", "c")])[0] == {("a", "b"): 1, ("b", "c"): 1, ("b",): -1, (): -1}
    assert without_edge([("a", "b")], "a", "b") == (("a",), ("b",))
    assert without_term([("a", "b"), ("b", "c")], ("a", "b")) == (("a",), ("b", "c"))
    assert without_term([("a", "b", "c")], ("a", "b", "c")) == (("a", "b"), ("a", "c"), ("b", "c"))
    assert list(one_more([("a",), ("b",)], np.zeros((2, 2), bool), ("a", "b"), 2)) == []
    assert list(one_more([("a", "b"), ("a", "c"), ("b", "c")], np.ones((3, 3), bool), ("a", "b", "c"), 3)) == [("a", "b", "c")]


@pytest.mark.parametrize("direction", [sf.methods.Forward(), sf.methods.Backward(), sf.methods.Both()], ids=repr)
def test_no_step_from_the_end_gains(direction: Any) -> None:
    data = rows_of(HAIR)
    end = sf.search(data, method=sf.methods.Stepwise(direction, sf.BIC()))
    again = sf.search(data, method=sf.methods.Stepwise(sf.methods.Both(), sf.BIC(), start=sf.LogLinear(end.generators)))
    assert again.generators == end.generators
    best = max(end.score, *(s.score for s in end.trace))
    assert end.score == pytest.approx(best)
    gains = [step.gain for step in end.trace[1:]]
    assert all(gain > 0 for gain in gains)


def test_rules_and_orders_are_kept() -> None:
    data = rows_of(TITANIC)
    known = sf.Forbid(("Class", "Sex")) + sf.Require(("Age", "Sex"))
    for direction in (sf.methods.Forward(), sf.methods.Backward(), sf.methods.Both()):
        kept = sf.search(data, method=sf.methods.Stepwise(direction, sf.BIC()), constraints=known)
        assert ("Class", "Sex") not in kept.graph.edges
        assert ("Age", "Sex") in kept.graph.edges
    two = sf.search(data, method=sf.methods.Stepwise(sf.methods.Backward(), sf.BIC(), max_order=2))
    assert max(map(len, two.generators)) <= 2


def test_learn_gives_a_markov_network() -> None:
    rows = rows_of(TITANIC)
    found = sf.search(rows, method=sf.methods.Stepwise(max_order=2))
    net = sf.learn(rows, method=sf.methods.Stepwise(max_order=2))
    assert net.model == sf.LogLinear(found.generators)
    graph = sf.search(rows, method=sf.Decomposable()).graph
    assert sf.learn(rows, method=sf.Decomposable()).graph == graph
    with pytest.raises(sf.SufficeError, match="undirected"):
        sf.cross_validate(rows, method=sf.Decomposable(), folds=3)
    with pytest.raises(sf.SufficeError, match="undirected"):
        sf.learn(rows, method=sf.Decomposable(), hidden=[sf.Finite("h", ["a", "b"])])
    with pytest.raises(sf.SufficeError, match="missing"):
        sf.learn({"a": ["x", None, "y"], "b": ["u", "v", "v"]}, method=sf.Decomposable())


def test_bootstrap() -> None:
    sure = sf.bootstrap(rows_of(HAIR), method=sf.methods.Stepwise(), n=5)
    assert sure.strength("Eye", "Hair") == 1.0
    assert ("Eye", "Hair") in sure.graph().edges


def test_refusals() -> None:
    rows = rows_of(HAIR)
    with pytest.raises(sf.SufficeError, match="finite columns"):
        sf.search({"x": np.linspace(0.1, 2.3, 30), "y": np.linspace(0.1, 2.3, 30) ** 2}, method=sf.methods.Stepwise())
    for build, message in (
        (lambda: sf.methods.Stepwise("forward"), "Forward"),
        (lambda: sf.methods.Stepwise(sf.methods.Forward), "Forward"),
        (lambda: sf.methods.Stepwise(score=sf.Evidence(sf.BDeu(1))), "judges by"),
        (lambda: sf.methods.DevianceTest(1.5), "between 0 and 1"),
        (lambda: sf.methods.Stepwise(max_order=0), "max_order"),
        (lambda: sf.methods.Stepwise(start=3), "start|text"),
    ):
        with pytest.raises(sf.SufficeError, match=message):
            build()
    for method, constraints, message in (
        (sf.methods.Stepwise(start="Hair -- who"), None, "who"),
        (sf.methods.Stepwise(start="Hair -- Eye"), sf.Forbid(("Hair", "Eye")), "forbidden"),
        (sf.methods.Stepwise(start="Hair -- Eye"), sf.Require(("Hair", "Sex")), "required"),
        (sf.methods.Stepwise(), sf.constraints.MaxParents(2), "parents"),
    ):
        with pytest.raises(sf.SufficeError, match=message):
            sf.search(rows, method=method, constraints=constraints)
    wide = {f"c{i:02d}": (["u", "v"] * 40)[i : i + 30] for i in range(26)}
    with pytest.raises(sf.SufficeError, match="max_order"):
        sf.search(wide, method=sf.methods.Stepwise(sf.methods.Backward()))
