"""Counts in searches, in equality of networks, and where they are still refused."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import poisson

import suffice as sf
from suffice.families.by_hand import Rates
from suffice.families.priors.priors import Gamma
from suffice.structure.constraints import Require

VARIABLES = {"u": ["0", "1"], "n": sf.Count, "m": sf.Count}


def rows() -> sf.Data:
    rng = np.random.default_rng(0)
    u = rng.integers(0, 2, 3000)
    n, m = rng.poisson(1.0 + 3.0 * u), rng.poisson(2.0 + 2.0 * u)
    return sf.scan({"u": u, "n": n, "m": m, "y": 0.5 * n + rng.normal(size=3000)}, variables=VARIABLES)


@pytest.mark.parametrize("score", [sf.BIC(), sf.Evidence((sf.BDeu(1), sf.NormalInverseGamma(), Gamma()))])
@pytest.mark.parametrize("method", [sf.Orders(), sf.HillClimb(), sf.methods.GES()])
def test_counts_have_finite_parents_and_real_children(score, method) -> None:
    found = sf.search(rows(), score=score, method=method)
    assert set(found.dag.edges) == {("u", "n"), ("u", "m"), ("n", "y")}
    assert set(found.cpdag.directed) == {("u", "n"), ("u", "m"), ("n", "y")}


def test_numbers_above_counts_are_refused() -> None:
    with pytest.raises(sf.SufficeError, match="y -> n is required, but it leads from a number to a count"):
        sf.search(rows(), constraints=Require("y -> n"))


def test_equality_and_entropy() -> None:
    variables = [sf.Finite("u", ["a", "b"]), sf.Finite("w", ["p", "q", "r"])]
    tables = {"u": [0.5, 0.5], "w": [0.2, 0.3, 0.5]}
    rates = np.arange(6.0).reshape(2, 3)
    a = sf.BayesNet({"u": [], "w": [], "n": ["u", "w"]}, {**tables, "n": Rates(rates)}, variables)
    b = sf.BayesNet({"u": [], "w": [], "n": ["w", "u"]}, {**tables, "n": Rates(rates.T)}, variables)
    other = sf.BayesNet({"u": [], "w": [], "n": ["u", "w"]}, {**tables, "n": Rates(rates + 1.0)}, variables)
    assert a == b
    assert a != other
    finite = sf.BayesNet({"u": [], "w": []}, tables, variables).entropy()
    shares = np.outer(tables["u"], tables["w"])
    counts = np.arange(60)
    logs = [[poisson.logpmf(counts, rate) if rate else np.zeros(1) for rate in row] for row in rates]
    each = [[-float(np.exp(log) @ log) for log in row] for row in logs]
    assert a.entropy() == pytest.approx(finite + float(np.sum(shares * each)), rel=1e-12)
    assert sf.information.kl(a, b) == pytest.approx(0.0, abs=1e-12)
    assert sf.information.kl(other, a) == np.inf
    nonzero = np.where(rates > 0, rates, 1.0)
    assert sf.information.kl(a, other) == pytest.approx(
        np.sum(shares * (rates * np.log(nonzero / (rates + 1.0)) + 1.0)), rel=1e-12
    )


def test_missing_counts_are_drawn_as_counts() -> None:
    bn = sf.BayesNet("u -> n", {"u": [0.5, 0.5], "n": Rates([0.0, 4.0])}, [sf.Finite("u", ["a", "b"])])
    drawn = bn.impute({"u": ["b"] * 4000 + ["a"], "n": [None] * 4001}, draws=1)[0]
    n = np.array(drawn["n"], float)
    assert (n == np.floor(n)).all()
    assert n[-1] == 0.0
    assert n[:-1].mean() == pytest.approx(4.0, abs=0.15)
    assert n[:-1].var() == pytest.approx(4.0, abs=0.4)
