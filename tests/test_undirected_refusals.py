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
        (lambda: sf.RBM([X], [[0.0]], [0.0], [0.0]).log_normaliser(method="ais"), FitError, "is AIS"),  # type: ignore[arg-type]
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
