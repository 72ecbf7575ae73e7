"""Cross-validation that compares principles: what it says is what the models say of the rows that they have not seen."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.recipes.compared_fits import HeldOutScores
from tests.learning.test_discriminative import NAIVE, rows
from tests.learning.test_principles import turns

GOALS = {"plain": sf.Likelihood(), "prior": sf.objectives.Bayes(sf.BDeu(1)), "told": sf.Conditional("y"), "wide": sf.Margin("y")}
CHAIN = sf.LinearChain("y", [sf.Window(["a", "b"])])


def test_it_is_what_the_models_say() -> None:
    data = sf.scan(rows(150))
    result = sf.cross_validate(data, method=NAIVE, folds=3, objective=GOALS, penalty=sf.L2(0.3), seed=4)
    logs, right, squares, whole = 0.0, 0.0, 0.0, 0.0
    for train, test in data.split(3, 4):
        bn = sf.fit(NAIVE, train, objective=sf.Conditional("y"), penalty=sf.L2(0.3))
        probs = bn.predict_proba(test, "y").to_pydict()
        true = test.sample(10_000).columns["y"]  # all of its rows, in their order
        p = np.stack([probs[s] for s in ("y0", "y1", "y2")], axis=1)
        logs += np.log(p[np.arange(len(true)), true]).sum()
        right += (p.argmax(axis=1) == true).sum()
        squares += ((p - np.eye(3)[true]) ** 2).sum()
        whole += bn.log_likelihood(test)
    told = result["told"]
    assert told.weight == 150
    assert told.conditional == pytest.approx(logs)
    assert told.accuracy == pytest.approx(right / 150)
    assert told.brier == pytest.approx(squares / 150)
    assert told.log_likelihood == pytest.approx(whole)
    assert result["prior"].log_likelihood > told.log_likelihood
    assert result.target == "y"
    assert list(result.folds) == list(GOALS)
    assert list(result.to_frame()["fit"]) == list(GOALS)
    assert "<table>" in result._repr_html_()
    assert "ln p(y | rest)" in repr(result)
    assert result.error("told") > 0


def test_functions_by_name_and_weights_are_rows() -> None:
    table = rows(60)
    fits = {"star": lambda d: sf.fit("y -- a; y -- b", d, objective=sf.Conditional("y"), penalty=sf.L2(0.5)), "all": sf.learn}
    twice = sf.cross_validate(sf.scan(table, weights=[2.0] * 60), method=fits, folds=4, target="y", seed=1)
    assert twice["star"].weight == 120
    assert twice["all"].weight == 120
    halves = sf.cross_validate(sf.scan(table, weights=[0.5] * 60), method=fits, folds=4, target="y", seed=1)
    once = sf.cross_validate(sf.scan(table, weights=[1.5] * 60), method=fits, folds=4, target="y", seed=1)
    assert halves["star"].weight == 30
    assert once["star"].weight == 90


def test_the_error_of_calibration() -> None:
    sure = HeldOutScores.of(np.array([[1.0, 0.0]] * 4), np.array([0, 0, 0, 1]), np.ones(4))
    assert sure.calibration_error == pytest.approx(0.25)
    assert sure.conditional == -np.inf
    even = HeldOutScores.of(np.array([[0.75, 0.25]] * 4), np.array([0, 0, 0, 1]), np.ones(4))
    assert even.calibration_error == pytest.approx(0.0)
    assert (sure + even).calibration_error == pytest.approx(0.125)
    impossible = HeldOutScores.of(np.full((1, 2), np.nan), np.array([0]), np.ones(1))
    assert (impossible.accuracy, impossible.brier, impossible.conditional) == (0.0, 1.0, -np.inf)


def test_whole_sequences_are_held_out() -> None:
    s = turns()
    fits: dict[str, Any] = {
        "chain": lambda d: sf.fit("y[-1] -> y -> a; y -> b", d, prior=sf.BDeu(1)),
        "crf": lambda d: sf.fit(CHAIN, d, penalty=sf.L2(1.0)),
    }
    result = sf.cross_validate(s, method=fits, folds=3, target="y", seed=2)
    logs, right, joint = np.zeros(2), 0, 0.0
    for train, test in s.split(3, 2):
        crf, chain = fits["crf"](train), fits["chain"](train)
        logs += [crf.log_likelihood(test), chain.log_prob(test).sum() - chain.log_prob(test.select(["a", "b"])).sum()]
        joint += float(chain.log_prob(test).sum())
        found = np.argmax(np.stack([np.asarray(crf.predict_proba(test)[x]) for x in crf.labels]), axis=0)
        ids = test.select(["y"]).data.sample(10_000).columns["y"]
        right += int((found == ids).sum())
    assert result["crf"].conditional == pytest.approx(logs[0])
    assert result["chain"].conditional == pytest.approx(logs[1])
    assert result["chain"].log_likelihood == pytest.approx(joint)
    assert np.isnan(result["crf"].log_likelihood)
    assert result["crf"].right == right
    assert result["crf"].weight == result["chain"].weight == 120
    several = sf.cross_validate(
        s, method=CHAIN, folds=2, objective=[sf.Conditional("y"), sf.objectives.Perceptron("y")], penalty=sf.L2(1.0)
    )
    assert several["Conditional('y')"].weight == 120


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"objective": sf.Likelihood()}, "say which column is predicted"),
        ({"objective": sf.Likelihood(), "target": "z"}, "no column 'z'"),
        ({"objective": sf.Conditional("y"), "prior": sf.BDeu(1)}, r"a prior is an objective, too: Bayes\(prior\)"),
        ({"objective": sf.Conditional("y"), "score": sf.BIC()}, "score= is not for fits that are compared"),
        ({"objective": sf.objectives.Perceptron("y")}, r"fold 1 of 10: Perceptron.* is not for a Bayesian network"),
        ({"penalty": sf.L2(1)}, "for principles that are compared"),
        ({"method": {"a": sf.learn, "b": "y -> a"}, "target": "y"}, "'b' is none"),
        ({"method": {"a": lambda d: 3}, "target": "y"}, "gives a int, which does not predict 'y'"),
        ({"objective": sf.Conditional("y"), "folds": 500}, "500 folds need at least as many rows"),
    ],
)
def test_what_cannot_be_compared_is_refused(how: dict[str, Any], said: str) -> None:
    with pytest.raises(sf.SufficeError, match=said):
        sf.cross_validate(rows(40), **({"method": NAIVE} | how))


def test_numbers_gaps_and_sequences_are_refused() -> None:
    table = {**rows(40), "x": np.linspace(0.0, 1.0, 40)}
    with pytest.raises(sf.SufficeError, match="holds numbers"):
        sf.cross_validate(table, method={"a": sf.learn}, target="x")
    with pytest.raises(sf.SufficeError, match="'y'"):
        sf.cross_validate({**table, "y": [None, *table["y"][1:]]}, method={"a": sf.learn}, target="y")
    with pytest.raises(sf.SufficeError, match="does not predict 'y' of sequences"):
        sf.cross_validate(turns(), method={"a": lambda s: 3}, folds=2, target="y")


def test_a_dict_of_parents_is_still_a_graph() -> None:
    result = sf.cross_validate(rows(40), method={"y": [], "a": ["y"]}, folds=4)
    assert [f.n_edges for f in result.folds] == [1] * 4


def test_ctrl_c_keeps_the_folds_done() -> None:
    calls: list[int] = []

    def interrupted(d: Any) -> Any:
        calls.append(1)
        if len(calls) > 2:
            raise KeyboardInterrupt
        return sf.fit(NAIVE, d)

    with pytest.warns(sf.SufficeNote, match="stopped after 2 of 4"):
        result = sf.cross_validate(rows(40), method={"a": interrupted}, folds=4, target="y")
    assert len(result.folds["a"]) == 2
    assert "2 folds of 4, then stopped" in repr(result)
    del calls[1:]
    with pytest.warns(sf.SufficeNote, match="stopped after 1 of 4"):
        result = sf.cross_validate(rows(40), method={"a": interrupted}, folds=4, target="y")
    assert np.isnan(result.error("a"))
    assert "1 fold of 4, then stopped" in repr(result)
