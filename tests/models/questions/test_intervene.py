"""Interventions: the truncated product, what stays, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given as cases
from hypothesis import settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import FitError, GraphError, ModelError
from tests import oracles


@settings(max_examples=50, deadline=None)
@cases(st.integers(0, 10**6))
def test_the_factors_of_what_is_set_leave_the_product(seed: int) -> None:
    bn, rng = oracles.random_net(seed), np.random.default_rng(seed)
    name = str(rng.choice(list(bn)))
    state = str(rng.choice(bn.variables[name].states))
    after = oracles.joint(bn.do({name: state}))
    for states, p in oracles.joint(bn).items():
        row = dict(zip(bn.dag.nodes, states, strict=True))
        cpd = bn[name]
        own = cpd.probs[tuple(bn.variables[n].code(row[n]) for n in (*cpd.parents, name))]
        expected = p / own if row[name] == state else 0.0
        assert after[states] == pytest.approx(expected, rel=1e-12)


@settings(max_examples=30, deadline=None)
@cases(st.integers(0, 10**6))
def test_nothing_flows_back_to_the_causes(seed: int) -> None:
    bn = oracles.random_net(seed, n_nodes=5)
    done = bn.do({"n0": bn.variables["n0"].states[-1]})
    assert done.dag.parents("n0") == ()
    for name in set(bn) - {"n0"} - set(bn.dag.descendants("n0")):
        np.testing.assert_allclose(done.query(name).probs, bn.query(name).probs, atol=1e-12)


@pytest.fixture
def confounded() -> sf.BayesNet:
    sex, drug, well = (sf.Finite(n, ["no", "yes"]) for n in ("sex", "drug", "well"))
    tables = {
        "sex": [0.5, 0.5],
        "drug": [[0.25, 0.75], [0.75, 0.25]],
        "well": [[[0.4, 0.6], [0.3, 0.7]], [[0.8, 0.2], [0.7, 0.3]]],
    }
    return sf.BayesNet({"drug": ["sex"], "well": ["sex", "drug"]}, tables, [sex, drug, well])


def test_doing_is_not_seeing(confounded: sf.BayesNet) -> None:
    """Simpson's paradox: the sum over the confounder is the adjustment formula."""
    assert confounded.do({"drug": "yes"}).query("well")["yes"] == pytest.approx(0.5 * 0.7 + 0.5 * 0.3)
    assert confounded.query("well", {"drug": "yes"})["yes"] == pytest.approx(0.75 * 0.7 + 0.25 * 0.3)


def test_a_variable_is_set_to_a_distribution(confounded: sf.BayesNet) -> None:
    expected = 0.2 * (0.5 * 0.6 + 0.5 * 0.2) + 0.8 * (0.5 * 0.7 + 0.5 * 0.3)
    for half in ([0.2, 0.8], np.array([0.2, 0.8]), {"yes": 0.8, "no": 0.2}):
        done = confounded.do({"drug": half})
        assert done.query("well")["yes"] == pytest.approx(expected)
        assert done.d_separated("sex", "drug")
    assert not confounded.d_separated("sex", "drug")


def test_what_the_network_says_of_itself(confounded: sf.BayesNet) -> None:
    done = confounded.do({"drug": "yes"}).do({"sex": [0.1, 0.9]})
    assert done.fit_info == "given by hand; then do(drug=yes); then do(sex~(0.1, 0.9))"
    assert done.intervened == {"drug", "sex"}
    assert confounded.intervened == frozenset()
    assert list(done) == list(confounded)
    assert confounded.do({}) == confounded
    assert pickle.loads(pickle.dumps(done)) == done
    with pytest.raises(ModelError, match="given by hand"):
        done.update({"sex": ["no"], "drug": ["no"], "well": ["no"]})


def test_what_is_left_alone_keeps_its_posterior() -> None:
    rows = oracles.random_rows(3)
    bn = sf.fit("u -> w; w -> x; u -> x; x -> y", rows, prior=(sf.BDeu(1), sf.NormalInverseGamma()))
    done = bn.do({"w": "q"})
    for name in ("u", "x", "y"):
        assert done[name] is bn[name]
    np.testing.assert_array_equal(done["u"].interval().lower, bn["u"].interval().lower)
    assert done["w"].imagined is None
    assert done.dag == sf.Dag("w -> x; u -> x; x -> y")
    answer = done.query("u", {"x": 0.5}, interval=0.9)
    assert (answer.interval.lower < answer.probs).all()
    assert (answer.probs < answer.interval.upper).all()
    certain = done.query("w", interval=0.9)
    assert certain.interval.lower.tolist() == certain.interval.upper.tolist() == [0.0, 1.0, 0.0]


@pytest.fixture
def hybrid() -> sf.BayesNet:
    """u -> x -> y <- z, y -> v, u -> y: the mean of y is 1 + 2x + 3z where u=a, −1 + x − z where u=b."""
    u = sf.Finite("u", ["a", "b"])
    y = sf.Gaussian([1.0, -1.0], {"x": [2.0, 1.0], "z": [3.0, -1.0]}, [1.0, 4.0])
    tables = {"u": [0.5, 0.5], "x": sf.Gaussian([0.0, 5.0]), "z": sf.Gaussian(), "y": y, "v": sf.Gaussian(0.0, {"y": 1.0})}
    return sf.BayesNet({"x": ["u"], "y": ["x", "u", "z"], "v": ["y"]}, tables, [u])


def test_a_real_variable_moves_into_its_children(hybrid: sf.BayesNet) -> None:
    done = hybrid.do({"x": 10})
    assert "x" not in done
    assert done["y"].parents == ("u", "z")
    np.testing.assert_array_equal(done["y"].intercept, [21.0, 9.0])
    np.testing.assert_array_equal(done["y"].coefficients, [[3.0], [-1.0]])
    np.testing.assert_array_equal(done["y"].variance, [1.0, 4.0])
    assert done["v"] is hybrid["v"]
    assert done.dag == sf.Dag("u -> y; z -> y; y -> v")
    assert done.fit_info == "given by hand; then do(x=10)"
    assert done.query("y").mean == pytest.approx(15.0)
    assert done.query("y", {"u": "b"}).mean == pytest.approx(9.0)


def test_several_variables_are_set_at_once(hybrid: sf.BayesNet) -> None:
    done = hybrid.do({"x": 1.0, "z": -1.0, "u": "b"})
    assert list(done) == ["u", "y", "v"]
    np.testing.assert_array_equal(done["y"].intercept, [0.0, 1.0])
    assert done["y"].coefficients.shape == (2, 0)
    assert hybrid.do({"y": 3.0})["v"].intercept == 3.0
    assert hybrid.do({"y": 3.0})["x"] is hybrid["x"]


def test_doing_and_seeing_agree_without_causes(hybrid: sf.BayesNet) -> None:
    """Nothing points into z: to set it is to see it."""
    done, row = hybrid.do({"z": 0.5}), {"u": ["a"], "x": [0.3], "y": [2.0], "v": [1.0]}
    seen = hybrid.log_prob({**row, "z": [0.5]}) + 0.5 * (np.log(2 * np.pi) + 0.25)
    np.testing.assert_allclose(done.log_prob(row), seen)


def test_refused_interventions(confounded: sf.BayesNet, hybrid: sf.BayesNet) -> None:
    def refused(bn: sf.BayesNet, interventions: Any, match: str) -> None:
        with pytest.raises(sf.SufficeError, match=match):
            bn.do(interventions)

    refused(confounded, "drug=yes", r"an intervention must be a mapping.*as in \{'drug': 'yes'\}")
    refused(confounded, {"drag": "yes"}, "no node 'drag'; did you mean 'drug'")
    refused(confounded, {"drug": "yess"}, "no state 'yess'; did you mean 'yes'")
    for nothing in (None, np.nan, pd.NA, pd.NaT):
        refused(confounded, {"drug": nothing}, f"'drug' cannot be set to {nothing}: set it to a state, 'no', 'yes', or a distri")
        refused(hybrid, {"x": nothing}, f"'x' cannot be set to {nothing}: set it to a finite number")
    refused(confounded, [["drug", "yes"]], "; not of type list$")
    refused(confounded, {"drug": [0.5, 0.6]}, "the numbers of 'drug' sum to 1.1, not 1")
    refused(confounded, {"drug": [1.5, -0.5]}, "the numbers of 'drug' are not all probabilities")
    refused(confounded, {"drug": [1.0]}, "the probabilities of 'drug' must be one number for each of its 2 states")
    refused(confounded, {"drug": {"yes": 1.0}}, "the probabilities of 'drug' lack its state 'no'")
    refused(hybrid, {"x": "high"}, "'x' is a number and needs a finite one, not 'high'")
    refused(hybrid, {"x": np.inf}, "needs a finite one")
    refused(sf.BayesNet("x", {"x": sf.Gaussian()}), {"x": 1.0}, "nothing is left")


def test_a_number_that_was_set_is_known_to_be_set(hybrid: sf.BayesNet) -> None:
    done = hybrid.do({"x": 10})
    assert done.intervened == {"x"}
    for ask in (
        lambda: done.query("x"),
        lambda: done.query("y", {"x": 1.0}),
        lambda: done.most_probable(targets=["x"]),
        lambda: done.do({"z": 1.0}).do({"x": 3.0}),
    ):
        with pytest.raises(ModelError, match=r"'x' was set to a number by do\(...\) and is no node any more"):
            ask()


def test_a_child_of_a_number_that_was_set_has_no_interval() -> None:
    bn = sf.fit("x -> y", {"x": [0.0, 1.0, 2.0, 3.0], "y": [0.0, 1.5, 1.5, 3.5]}, prior=sf.NormalInverseGamma())
    assert bn.query("y", interval=0.9).mean_interval is not None
    with pytest.raises(FitError, match=r"'y' has no posterior.* or has a parent that do\(...\) set to a number"):
        bn.do({"x": 1.0}).query("y", interval=0.9)


def test_interventions_from_a_row_of_a_frame(confounded: sf.BayesNet, hybrid: sf.BayesNet) -> None:
    assert confounded.do(pd.Series({"drug": "yes"})) == confounded.do({"drug": "yes"})
    assert hybrid.do(pd.Series({"x": 1.0, "z": 2.0})) == hybrid.do({"x": 1.0, "z": 2.0})
    shares = pd.Series(["yes", "yes", "yes", "no"]).value_counts(normalize=True)
    assert confounded.do({"drug": shares}) == confounded.do({"drug": [0.25, 0.75]})


def test_d_separation(confounded: sf.BayesNet) -> None:
    chain = confounded.do({"drug": "no"})
    assert chain.d_separated("drug", ["sex"])
    assert not chain.d_separated("drug", "sex", given="well")
    with pytest.raises(GraphError, match="no node 'sexx'; did you mean 'sex'"):
        chain.d_separated("drug", "sexx")


def test_answers_say_what_was_set() -> None:
    """An answer without its intervention is read as another one."""
    asia = sf.load("asia")
    done = asia.do({"smoke": "yes"})
    assert repr(done.query("lung")).startswith("p(lung | do(smoke=yes)), exact\n")
    assert repr(done.query("lung", {"xray": "yes"})).startswith("p(lung | do(smoke=yes), xray=yes), exact\n")
    assert repr(done.do({"tub": "no"}).query("lung")).startswith("p(lung | do(smoke=yes, tub=no)), exact\n")
    assert repr(done.query(["lung", "xray"])).startswith("p(lung, xray | do(smoke=yes)), exact\n")
    drawn = done.query("lung", method=sf.methods.LikelihoodWeighting(1000))
    assert repr(drawn).startswith("p(lung | do(smoke=yes)), ")
    assert repr(pickle.loads(pickle.dumps(drawn))) == repr(drawn)
    assert "given do(smoke=yes)" in repr(done.marginals())
    assert repr(done.marginals()["lung"]).startswith("p(lung | do(smoke=yes))")
    assert "given do(smoke=yes)" in repr(done.most_probable())
    assert repr(asia.query("lung")).startswith("p(lung), exact\n")
    fitted = sf.fit(asia.dag, asia.sample(500, seed=0), prior=sf.BDeu(1)).do({"smoke": "yes"})
    assert repr(fitted.query("lung", interval=0.9)).startswith("p(lung | do(smoke=yes)), ")


def test_answers_of_numbers_say_what_was_set() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    f = rng.choice(["a", "b"], 200)
    bn = sf.fit("f -> x -> y", {"f": f, "x": x, "y": x + rng.normal(size=200)})
    done = bn.do({"x": 1.5})
    assert repr(done.query("y")).startswith("p(y | do(x=1.5)), ")
    mixed = bn.do({"x": 1.5}).query(["y", "f"])
    assert repr(mixed).startswith("p(y, f | do(x=1.5)), ")
    assert repr(mixed["a"]).startswith("p(y | do(x=1.5), f=a), ")
