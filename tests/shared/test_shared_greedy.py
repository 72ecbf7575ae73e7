"""Greedy searches and trees against the numbers of other programs (REFERENCE.md), from the rows in ../shared."""

from __future__ import annotations

from typing import Any

import pytest

import suffice as sf
from suffice.structure.methods.chow_liu import ChowLiu
from suffice.structure.methods.ges import GES
from suffice.structure.methods.hill_climb import HillClimb, Tabu
from suffice.structure.search import search
from tests.shared.test_shared_tables import data

BIC, K2 = sf.BIC(), sf.Evidence(sf.K2())
TRUE = sf.Dag("[A][C][F][B|A][D|A:C][E|B:F]")


@pytest.mark.parametrize("score", [BIC, sf.AIC(), sf.Evidence(sf.BDeu(10)), sf.Evidence(sf.BDeu(1))], ids=repr)
@pytest.mark.parametrize("method", [HillClimb(), Tabu(), GES()], ids=repr)
def test_learning_test(method: Any, score: Any) -> None:
    assert search(data("learning.test"), score, method).cpdag == TRUE.cpdag()


def test_learning_test_k2() -> None:
    found = search(data("learning.test"), K2, HillClimb())
    assert found.score == pytest.approx(-23957.675838475, abs=1e-6)


def test_learning_test_tree() -> None:
    for score in (BIC, sf.LogLikelihood()):
        skeleton = search(data("learning.test"), score, ChowLiu()).dag.skeleton()
        assert skeleton.edges == (("A", "B"), ("A", "D"), ("B", "E"), ("C", "D"), ("E", "F"))
    one = search(data("learning.test"), sf.Evidence(sf.BDeu(1)), ChowLiu())
    assert one.score == pytest.approx(-24933.77702265212, abs=1e-6)  # GOBNILP: the best with at most one parent


def test_gaussian_test() -> None:
    for method in (HillClimb(), GES()):
        assert search(data("gaussian.test"), BIC, method).score == pytest.approx(-53221.34568733569, abs=1e-5)
        assert search(data("gaussian.test"), sf.Evidence(sf.BGe()), method).score == pytest.approx(-53258.94161814058, abs=1e-5)


def test_clgaussian_test() -> None:
    assert search(data("clgaussian.test"), BIC, GES()).score == pytest.approx(-20291.296304904, abs=1e-5)


@pytest.mark.parametrize(
    ("table", "method", "at_least"),
    [
        # bnlearn: asia −11107.293 by both; alarm hc −220761.688, tabu −220727.332; insurance −266113.028, −265500.924; hailfinder
        # −990474.753. Where a climb ends hangs on how ties between equivalent directions fall (under other names of the columns
        # ours ends at −11107.293 in asia, −220761.688 in alarm, −265364 in insurance), so these are the figures of ours.
        ("asia", HillClimb(), -11125.57727064),
        ("asia", HillClimb(restarts=20), -11107.29330939),
        ("asia", GES(), -11107.29330939),
        ("alarm", HillClimb(), -220245.96168637),
        ("alarm", Tabu(), -220236.03275537),
        ("alarm", GES(), -220006.55420642),
        ("insurance", HillClimb(), -266320.13843421),
        ("insurance", Tabu(), -265415.17970884),
        ("hailfinder", HillClimb(), -990920.63497174),
        ("hailfinder", GES(), -990323.59554422),
    ],
    ids=repr,
)
def test_where_greedy_searches_end(table: str, method: Any, at_least: float) -> None:
    found = search(data(table), BIC, method)
    assert found.score is not None
    assert found.score >= at_least - 1e-6
