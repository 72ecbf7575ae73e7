"""Forecasts where hidden states and numbers that bear on later steps meet: as the unrolled network has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import SufficeError, SufficeNote
from suffice.models.chains import chain_forecast

S, A, U = sf.Finite("s", ["a", "b"]), sf.Finite("z", ["x", "y", "w"]), sf.Finite("u", ["0", "1"])
TEMPLATES: dict[str, tuple[str, list[Any]]] = {
    "autoregressive": ("s[-1] -> s -> y; y[-1] -> y", []),
    "two lags": ("s[-1] -> s -> y; y[-1], y[-2] -> y", []),
    "a state before": ("s[-1] -> s; s, s[-1] -> y; y[-1] -> y", []),
    "two numbers": ("s[-1] -> s -> y; y[-1] -> y -> v; v[-2] -> v; s -> v; v[-1] -> y", []),
    "two hidden": ("s[-1] -> s -> y; z[-1] -> z; s -> z -> y; y[-1] -> y", []),
    "inputs": ("s[-1], u -> s -> y; y[-1], r, u[-1] -> y", ["u", "r"]),
    "leaves": ("s[-1] -> s -> y; y[-1] -> y; s -> f; s -> n; y -> w", []),
    "an unseen leaf": ("s[-1] -> s -> y; y[-1] -> y; s -> f", []),
}


def drawn_chain(text: str, rng: np.random.Generator) -> sf.Chain:
    """A chain of this template with random parameters."""
    template = sf.Template(text)
    own = {"s": S, "z": A, "u": U, "f": sf.Finite("f", ["k", "l"]), "n": sf.Count("n")}
    variables = {n: own.get(n) or sf.Real(n) for n in template.nodes}
    cpds: dict[str, Any] = {}
    keys = {n: (n, template.parents(n)) for n in template.nodes}
    keys |= {template.parameter_name(n, t): (n, template.parents_at(n, t)) for n, t in template.first_nodes}
    for key, (name, parents) in keys.items():
        base = [p.split("[")[0] for p in parents]
        shape = tuple(variables[b].n_states for b in base if isinstance(variables[b], sf.Finite))  # type: ignore[union-attr]
        reals = [p for p, b in zip(parents, base, strict=True) if not isinstance(variables[b], sf.Finite)]
        v = variables[name]
        if isinstance(v, sf.Finite):
            cpds[key] = rng.dirichlet(np.ones(v.n_states), shape or None)
        elif isinstance(v, sf.Count):
            cpds[key] = sf.regressions.Rates(rng.uniform(1, 9, shape))
        else:
            slopes = {p: rng.uniform(-0.7, 0.7, shape) for p in reals}
            cpds[key] = sf.Gaussian(rng.normal(0, 3, shape), slopes, rng.uniform(0.2, 2.0, shape))
    return sf.Chain(template, cpds, variables)


@pytest.mark.parametrize("name", list(TEMPLATES))
@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_the_unrolled_network_says_the_same(name: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    text, inputs = TEMPLATES[name]
    chain = drawn_chain(text, rng)
    T, n = int(rng.integers(1, 5)), int(rng.integers(2, 4))
    rows = chain.sample(1, length=T + n, seed=seed)
    hidden = {"s", "z"} | ({"f"} if name == "an unseen leaf" else set())
    seen = [v for v in chain.variables if v not in hidden]
    past = {v: rows[v].to_pylist()[:T] for v in seen}
    known = {v: rows[v].to_pylist()[T:] for v in inputs}
    sequence = sf.sequences(past, variables={v: chain.variables[v] for v in seen})
    found = chain.forecast(sequence, n, interval=0.8, given=known or None)
    net = chain.unroll(T + n)
    evidence = {f"{v}[{t}]": c for v in seen for t, c in enumerate(past[v])}
    evidence |= {f"{v}[{T + t}]": c for v in inputs for t, c in enumerate(known[v])}
    for t in range(n):
        for v in (v for v in chain.variables if v not in inputs):
            asked = net.query(f"{v}[{T + t}]", evidence)
            own = chain.variables[v]
            if isinstance(own, sf.Finite):
                np.testing.assert_allclose([found[f"{v}={x}"][t] for x in own.states], asked.probs, atol=1e-9)
                continue
            numbers = [found[v][t], found[f"{v}_sd"][t]]
            np.testing.assert_allclose(numbers, [asked.mean, asked.sd], rtol=1e-8, atol=1e-8)
            ends = [found[f"{v}_lower"][t], found[f"{v}_upper"][t]]
            np.testing.assert_allclose(ends, asked.interval(0.8), rtol=1e-6, atol=1e-6)


def autoregressive(mean: float = 0.0) -> tuple[sf.Chain, Any]:
    y = sf.Gaussian([mean * 0.5, mean * 1.3 + 1], {"y[-1]": [0.5, -0.3]}, [1.0, 2.0])
    cpds = {"s": [[0.9, 0.1], [0.2, 0.8]], "s[0]": [0.5, 0.5], "y": y, "y[0]": sf.Gaussian([mean, mean + 1], {}, [1.0, 1.0])}
    chain = sf.Chain("s[-1] -> s -> y; y[-1] -> y", cpds, [S])
    rows = {"id": [0] * 4 + [1] * 3, "y": mean + np.array([0.1, 0.5, -0.3, 2.0, 1.0, 0.0, -1.0])}
    return chain, sf.sequences(rows, by="id", variables={"y": sf.Real("y")})


def test_many_paths_are_drawn_and_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    chain, rows = autoregressive()
    exact = chain.forecast(rows, 10, interval=0.9)
    monkeypatch.setattr(chain_forecast, "MAX_PARTS", 256)
    with pytest.warns(SufficeNote, match=r"more than 7 steps ahead are of .* paths of the states, drawn \(seed 3\)"):
        found = chain.forecast(rows, 10, interval=0.9, seed=3)
    for column in ("y", "y_sd", "s=a"):
        np.testing.assert_allclose(found[column], exact[column], rtol=1e-12)
    for column in ("y_lower", "y_upper"):
        np.testing.assert_allclose(found[column], exact[column], atol=0.02)
    with pytest.warns(SufficeNote, match="seed 3"):
        again = chain.forecast(rows, 10, interval=0.9, seed=3)
    assert np.array_equal(again["y_lower"], found["y_lower"])


def test_a_mean_of_1e9_costs_no_digits() -> None:
    (chain, rows), (far, there) = autoregressive(), autoregressive(1e9)
    near, found = chain.forecast(rows, 6), far.forecast(there, 6)
    np.testing.assert_allclose(np.asarray(found["y"]) - 1e9, near["y"], atol=1e-5)
    np.testing.assert_allclose(found["y_sd"], near["y_sd"], rtol=1e-6)


def test_each_sequence_by_itself_and_in_any_order() -> None:
    chain, rows = autoregressive()
    found = chain.forecast(rows, 3, interval=0.9)
    for i, label in enumerate([0, 1]):
        y = [y for k, y in zip(rows.source["id"], rows.source["y"], strict=True) if k == label]
        alone = chain.forecast(sf.sequences({"y": y}, variables={"y": sf.Real("y")}), 3, interval=0.9)
        for column in ("y", "y_sd", "y_lower", "y_upper", "s=a"):
            np.testing.assert_allclose(np.asarray(found[column])[3 * i : 3 * i + 3], alone[column], rtol=1e-12)


def test_counts_that_bear_on_later_steps_are_drawn() -> None:
    """y = 1 + 2 n[-1] + noise, n Poisson by a state: E y two steps ahead is 1 + 2 E n."""
    n, y = sf.regressions.Rates([2.0, 6.0]), sf.Gaussian(1.0, {"n[-1]": 2.0}, 0.5)
    cpds = {"s": [[0.9, 0.1], [0.2, 0.8]], "s[0]": [0.5, 0.5], "n": n, "y": y, "y[0]": sf.Gaussian()}
    chain = sf.Chain("s[-1] -> s -> n; n[-1] -> y", cpds, [S, sf.Count("n")])
    rows = sf.sequences({"n": [2, 3, 7], "y": [0.0, 5.5, 7.0]}, variables={"n": sf.Count("n"), "y": sf.Real("y")})
    one = chain.forecast(rows, 1, interval=0.9)
    with pytest.warns(SufficeNote, match=r"'n', 'y' ahead has no closed form: the forecast is of 20,000 draws \(seed 0\)"):
        two = chain.forecast(rows, 2, interval=0.9)
    assert two["n"][0] == pytest.approx(one["n"][0], abs=0.08)
    assert two["y"][0] == pytest.approx(15.0, abs=0.03)
    assert two["y"][1] == pytest.approx(1 + 2 * one["n"][0], abs=0.15)
    assert two["y_lower"][1] < two["y"][1] < two["y_upper"][1]


def test_what_is_given_must_be_an_input() -> None:
    chain, leaf = autoregressive()[0], sf.Finite("f", ["k", "l"])
    more = {"f": [[0.5, 0.5], [0.1, 0.9]], **{n: chain[n] for n in chain}}
    bigger = sf.Chain("s[-1] -> s -> y; y[-1] -> y; s -> f", more, [S, leaf])
    both = sf.sequences({"y": [0.1, 0.2], "f": ["k", "l"]}, variables={"y": sf.Real("y"), "f": leaf})
    with pytest.raises(SufficeError, match="given= has 'f', which depends on 's'"):
        bigger.forecast(both, 2, given={"f": ["k", "k"]})


def test_missing_numbers_before_stay_refused() -> None:
    chain, _ = autoregressive()
    rows = sf.sequences({"y": [0.1, None, 0.3]}, variables={"y": sf.Real("y")})
    with pytest.raises(SufficeError, match="a switching state space"):
        chain.forecast(rows, 2)
