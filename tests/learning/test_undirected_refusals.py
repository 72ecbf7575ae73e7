"""What undirected models refuse is told in words of this library, never by an error from within."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FitError, FormatError, ModelError, SufficeError

X = sf.Finite("x", ["a", "b"])
NAN = float("nan")


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: sf.LogLinear([1]), FitError, "a generator is a set of different names, not 1"),
        (lambda: sf.L1([[1, 2], [3]]), FitError, "of numbers, square and symmetric"),
        (lambda: sf.L1([["a"]]), FitError, "of numbers, square and symmetric"),
        (lambda: sf.L2([[1, NAN], [NAN, 1]]), FitError, "at least 0; nan is among them"),
        (lambda: sf.L2([[1, -2], [-2, 1]]), FitError, "at least 0; -2 is among them"),
        (lambda: sf.L1({1: 2}), FitError, "a penalty is given by names"),
        (lambda: sf.L1({(): 2}), FitError, "a penalty is given by names"),
        (lambda: sf.MarkovNet(5, [X]), ModelError, "factors are a mapping"),
        (lambda: sf.MarkovNet([1], [X]), ModelError, "a factor is a pair"),
        (lambda: sf.MarkovNet({"x": [0, 1]}, ["x"]), SufficeError, "'x' is no variable"),
        (lambda: sf.undirected.RBM([X], [[0.0]], [0.0], [0.0]).log_normaliser(method="ais"), FitError, "is AIS"),  # type: ignore[arg-type]
        (lambda: sf.fit(sf.Ising("a -- b"), {"a": [1, -1, 2], "b": [1, -1, -2]}), FitError, "declare its states"),
        (
            lambda: sf.fit(sf.LogLinear(["a"]), sf.scan({"a": ["x"]}, variables={"a": ["x", "y"]}), objective=sf.MaxEntropy()),
            FitError,
            "the share of a='x', 1 is the largest",
        ),
    ],
)  # fmt: skip
def test_refusals(make: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_a_network_without_factors_has_weights_of_zero() -> None:
    assert np.array_equal(sf.MarkovNet({}, [X]).weights[("x",)], [0.0, 0.0])
    assert np.array_equal(sf.MarkovNet({(): 2.0}, [X]).weights[("x",)], [0.0, 0.0])


def test_a_file_that_is_no_uai_file(tmp_path: Path) -> None:
    (tmp_path / "a.uai").write_text("NONE 1")
    with pytest.raises(FormatError, match="'BAYES' or 'MARKOV'"):
        sf.read(tmp_path / "a.uai")


@pytest.mark.parametrize("penalty", [sf.L1({}), sf.L1({"a": 1.0}), sf.L2({"a": 1.0, "b": 1.0}), sf.L1({("a", "b"): 0.0})])
def test_weights_without_a_penalty_of_their_own_run_off_by_name(penalty: sf.L1) -> None:
    """All cells but two, a corner and the opposite one: no margin of two is zero, and there is no estimate of all pairs."""
    cells = [c for c in product("01", repeat=3) if len(set(c)) > 1]
    rows = {n: [c[i] for c in cells] for i, n in enumerate("abc")}
    with pytest.raises(FitError, match=r"2 joint states.*run off to infinity"):
        sf.fit(sf.LogLinear.all(2, "abc"), rows, penalty=penalty)
    with pytest.raises(FitError, match=r"maximum pseudo-likelihood estimate does not exist: 2 joint states"):
        sf.fit(sf.LogLinear.all(2, "abc"), rows, objective=sf.PseudoLikelihood())
    held = sf.fit(sf.LogLinear.all(2, "abc"), rows, penalty=sf.L2({("a", "b"): 0.5}))  # one pair held, and none can go
    assert held.goodness_of_fit.n_fitted_zeros == 0


@pytest.mark.parametrize(("rows", "rate"), [("bits", 1e6), ("bits", 1e30), ("numbers", 10.0), ("numbers", 1e30)])
def test_a_machine_whose_steps_run_off_is_refused_with_its_rate(rows: str, rate: float) -> None:
    rng = np.random.default_rng(0)
    cells = rng.random((3, 200)) < 0.5 if rows == "bits" else rng.normal(size=(3, 200))
    with pytest.raises(FitError, match=r"run off: after pass \d .* give a smaller rate than"):
        sf.undirected.rbm(dict(zip("abc", cells, strict=True)), k=2, epochs=3, rate=rate)


def test_a_machine_that_is_worse_than_independent_columns_is_told_of() -> None:
    rng = np.random.default_rng(0)
    with pytest.warns(sf.SufficeNote, match="worse than independent columns"):
        sf.undirected.rbm(dict(zip("abc", rng.random((3, 500)) < 0.5, strict=True)), k=2, epochs=3, rate=100.0)


BOUNDARY = {"a": list("xxxyyy") * 20, "b": list("uuuvvv") * 20, "c": list("pqpqpq") * 20}


@pytest.mark.parametrize("strength", [0.1, 0.01, 0.001, 1e-6])
def test_a_small_penalty_on_the_boundary_still_has_its_minimum(strength: float) -> None:
    net = sf.fit(sf.LogLinear.all(2, list("abc")), BOUNDARY, penalty=sf.L2(strength), method=sf.methods.LBFGS())
    assert 0.49 < net.query("a").probs[0] < 0.51
    gradient = 120 * (net.query(["a", "b"]).probs - [[0.5, 0.0], [0.0, 0.5]]) + 2 * strength * net.weights[("a", "b")]
    assert abs(gradient).max() < 1e-5


def test_contrastive_divergence_ends_with_the_time() -> None:
    goal = sf.ContrastiveDivergence(persistent=True)
    with pytest.warns(sf.SufficeNote, match="stopped after"):
        net = sf.fit("a -- b -- c -- a", BOUNDARY, objective=goal, method=sf.methods.RobbinsMonro(rounds=10**6), time_limit=0.2)
    assert "stopped after" in net.fit_info
    with pytest.raises(FitError, match="time_limit is a number of seconds above 0"):
        sf.fit("a -- b", BOUNDARY, time_limit=-1)
    with pytest.raises(FitError, match="max_iter= is for a LinearChain"):
        sf.fit("a -- b", BOUNDARY, max_iter=5)


def test_an_estimate_that_has_no_time_says_so() -> None:
    rng = np.random.default_rng(0)
    rows = {n: x.astype(str) for n, x in zip("abcdefgh", rng.integers(0, 3, (8, 300)), strict=True)}
    with pytest.raises(FitError, match=r"time limit of 1e-09 s was over before the estimate by Likelihood\(\)"):
        sf.fit(sf.LogLinear.all(2, list("abcdefgh")), rows, penalty=sf.L2(1.0), time_limit=1e-9)
