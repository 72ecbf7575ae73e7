"""Maximum entropy: golden numbers of Jaynes' dice, likelihood as its dual, slack as a penalty, moments that cannot be."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FitError, SchemaError

DIE = sf.Finite("die", range(1, 7))
MEAN = sf.undirected.Features({"mean": {i: i for i in range(1, 7)}}, over=[DIE])


def test_jaynes_dice() -> None:
    net = sf.fit(MEAN, {"mean": 4.5}, objective=sf.MaxEntropy(), base=None)
    golden = [0.0543531678, 0.0787715456, 0.1141599772, 0.1654468031, 0.2397744404, 0.3474940658]
    assert net.query("die").probs == pytest.approx(golden, abs=1e-9)
    assert net.weights["mean"] == pytest.approx(0.3710489381, abs=1e-9)
    assert net.entropy() == pytest.approx(1.6135810982, abs=1e-9)
    assert "maximum entropy with 1 moments" in net.fit_info
    by_function = sf.fit(sf.undirected.Features({"mean": lambda x: x}, over=[DIE]), {"mean": 4.5}, objective=sf.MaxEntropy())
    assert by_function == net
    assert net.model == MEAN


def test_it_is_the_maximum_likelihood_of_the_log_linear_model() -> None:
    rows = {"die": [1, 6, 6, 5, 4, 4, 6, 2, 6, 5]}
    features = sf.undirected.Features({"mean": lambda x: x, "six": {6: 1}}, over=[DIE])
    data = sf.scan(rows, variables={"die": DIE})
    likely = sf.fit(features, data)
    moments = {"mean": float(np.mean(rows["die"])), "six": 0.4}
    flat, seen = (sf.fit(features, given, objective=sf.MaxEntropy()) for given in (moments, data))
    for net in (flat, seen):
        assert net.query("die").probs == pytest.approx(likely.query("die").probs, abs=1e-8)
        assert net.weights["six"] == pytest.approx(likely.weights["six"], abs=1e-6)
    assert flat.entropy() == pytest.approx(-likely.log_likelihood() / 10, abs=1e-8)
    assert likely.n_parameters == 2


def test_of_tables_it_is_the_likelihood_too() -> None:
    rng = np.random.default_rng(0)
    rows = {n: rng.integers(0, 3, 200).astype(str) for n in "abc"}
    model = sf.LogLinear.all(2, "abc")
    flat, likely = sf.fit(model, rows, objective=sf.MaxEntropy()), sf.fit(model, rows)
    assert flat.query(["a", "b", "c"]).probs == pytest.approx(likely.query(["a", "b", "c"]).probs, abs=1e-8)


def test_slack_is_an_l1_penalty_on_one_row() -> None:
    rows = {"die": [1, 6, 6, 5, 4, 4, 6, 2, 6, 5]}
    features = sf.undirected.Features({"mean": lambda x: x, "even": lambda x: x % 2 == 0, "five": {5: 1.0}}, over=[DIE])
    data = sf.scan(rows, variables={"die": DIE})
    slack = sf.fit(features, data, objective=sf.MaxEntropy(slack=0.05))
    priced = sf.fit(features, data, penalty=sf.L1(0.5))  # of ten rows
    assert slack.query("die").probs == pytest.approx(priced.query("die").probs, abs=1e-6)
    p = slack.query("die").probs
    off = [abs(p @ np.arange(1, 7) - np.mean(rows["die"])), abs(p[1::2].sum() - 0.7), abs(p[4] - 0.2)]
    assert max(off) <= 0.05 + 1e-7
    assert slack.penalty == sf.L1(0.05)


def test_a_base_measure_is_where_no_moment_pulls() -> None:
    base = sf.MarkovNet({"die": np.log([0.3, 0.1, 0.1, 0.1, 0.1, 0.3])}, [DIE])
    start = float(base.query("die").probs @ np.arange(1, 7))
    same = sf.fit(MEAN, {"mean": start}, objective=sf.MaxEntropy(), base=base)
    assert same.query("die").probs == pytest.approx(base.query("die").probs, abs=1e-9)
    tilted = sf.fit(MEAN, {"mean": 4.5}, objective=sf.MaxEntropy(), base=base)
    p = base.query("die").probs * np.exp(tilted.weights["mean"] * np.arange(1, 7))
    assert tilted.query("die").probs == pytest.approx(p / p.sum(), abs=1e-9)
    assert p @ np.arange(1, 7) / p.sum() == pytest.approx(4.5, abs=1e-8)


def test_features_of_several_variables() -> None:
    x, y, z = (sf.Finite(n, [0, 1]) for n in "xyz")
    same = sf.undirected.Features({"same": (("x", "y"), lambda a, b: float(a == b)), "z": ("z", {1: 1.0})}, over=[x, y, z])
    net = sf.fit(same, {"same": 0.75, "z": 0.25}, objective=sf.MaxEntropy())
    assert net.query(["x", "y"]).probs == pytest.approx(np.array([[0.375, 0.125], [0.125, 0.375]]), abs=1e-8)
    assert net.graph == sf.Graph("x -- y; z")
    assert net.query("z")["1"] == pytest.approx(0.25, abs=1e-9)


@pytest.mark.parametrize(
    ("features", "moments", "message"),
    [
        ({"mean": lambda x: x}, {"mean": 7}, "no distribution on these states has mean 7: it lies between 1 and 6"),
        ({"mean": lambda x: x}, {"mean": 6}, "largest there is"),
        ({"mean": lambda x: x}, {"mean": "a"}, "a finite number"),
        ({"mean": lambda x: x, "six": {6: 1}}, {"mean": 4.5}, "no moment of 'six'"),
        ({"mean": lambda x: x}, {"mean": 4.5, "meen": 1.0}, "did you mean 'mean'"),
        ({"mean": lambda x: x, "square": lambda x: x * x}, {"mean": 3.5, "square": 12.0}, "together, though each is possible"),
        ({"mean": lambda x: x, "six": {6: 1}}, {"mean": 5.0, "six": 0.8}, "give some states no probability"),
        ({"mean": lambda x: "a"}, {"mean": 3.0}, "cannot be tabulated"),
        ({"mean": 3.0}, {"mean": 3.0}, "a function of states"),
        ({"mean": {(1, 2): 3.0}}, {"mean": 3.0}, "is a state of 2"),
        ({"mean": ("coin", {1: 1})}, {"mean": 3.0}, "'coin'"),
        ({}, {}, "given by name"),
    ],
)
def test_refusals(features: dict, moments: dict, message: str) -> None:
    with pytest.raises(sf.SufficeError, match=message):
        sf.fit(sf.undirected.Features(features, over=[DIE]), moments, objective=sf.MaxEntropy())


def test_more_refusals() -> None:
    with pytest.raises(FitError, match=r"objective=MaxEntropy\(\)"):
        sf.fit(MEAN, {"mean": 4.5})
    with pytest.raises(FitError, match="is its penalty"):
        sf.fit(MEAN, {"mean": 4.5}, objective=sf.MaxEntropy(), penalty=sf.L1(1.0))
    with pytest.raises(FitError, match="at least 0, not -1"):
        sf.MaxEntropy(slack=-1.0)
    with pytest.raises(FitError, match="base measure is for moments"):
        sf.fit("a -- b", {"a": list("xy"), "b": list("uv")}, base=sf.MarkovNet({"die": np.zeros(6)}, [DIE]))
    with pytest.raises(SchemaError, match="no state '7'"):
        sf.undirected.Features({"mean": {7: 1.0}}, over=[DIE])
    other = sf.MarkovNet({"dye": np.zeros(6)}, [sf.Finite("dye", range(1, 7))])
    with pytest.raises(FitError, match="the base measure is of"):
        sf.fit(MEAN, {"mean": 4.5}, objective=sf.MaxEntropy(), base=other)


def test_no_program_is_loaded_that_is_too_large_to_be_solved() -> None:
    """Weights of 15 variables that are far from 0, but have an end."""
    code = (
        "import sys, suffice as sf; far = {'a': list('x' * 200 + 'y' * 200), 'b': list('x' * 199 + 'yx' + 'y' * 199)}; "
        "rows = far | {c: list('uvuuvuvv' * 50) for c in 'cdefghijklmno'}; "
        "sf.fit(sf.Pairwise('a -- b; ' + '; '.join('cdefghijklmno')), rows, objective=sf.PseudoLikelihood()); "
        "print('scipy.optimize' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
