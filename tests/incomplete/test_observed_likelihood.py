"""The probability of the observed cells of incomplete rows, against enumeration."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import DataError
from suffice.models.rows.posteriors import RowsLogLikelihood, log_prob_in_rows, shown_rows
from tests.hybrid_oracles import probability, random_hybrid
from tests.models.rows.test_predict import rows_with_gaps
from tests.oracles import joint, random_net


def observed_log_prob(net: sf.BayesNet, rows: Any) -> Any:
    return log_prob_in_rows(net, shown_rows(net, rows))


def observed_log_likelihood(net: sf.BayesNet, rows: Any) -> float:
    return float(shown_rows(net, rows).fold(RowsLogLikelihood(net)))


def log(p: float) -> float:
    with np.errstate(divide="ignore"):
        return float(np.log(p))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_finite_rows(seed: int, hidden: bool) -> None:
    """Impossible rows among them, and a node that is no column."""
    net = random_net(seed, zeros=seed % 2 == 0)
    rows = rows_with_gaps(net, 20, seed)
    if hidden:
        del rows["n1"]
    found = observed_log_prob(net, rows)
    for i in range(20):
        seen = {n: cells[i] for n, cells in rows.items() if cells[i] is not None}
        cells = [dict(zip(net.dag.nodes, states, strict=True)) for states in joint(net)]
        total = sum(p for row, p in zip(cells, joint(net).values(), strict=True) if all(row[n] == s for n, s in seen.items()))
        assert found[i] == pytest.approx(log(total), rel=1e-9, abs=1e-12)
    assert found[0] == pytest.approx(0.0, abs=1e-12)
    possible = {n: [c for c, p in zip(cells, found, strict=True) if p > -np.inf] for n, cells in rows.items()}
    assert observed_log_likelihood(net, possible) == pytest.approx(found[found > -np.inf].sum(), rel=1e-9)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([(3, 4), (0, 4), (2, 1)]))
def test_rows_of_states_and_numbers(seed: int, size: tuple[int, int]) -> None:
    net = random_hybrid(seed, *size, zeros=seed % 2 == 0)
    rows = net.sample(12, seed=seed).to_pydict()
    rng = np.random.default_rng(seed)
    rows = {n: [None if rng.random() < 0.4 else cell for cell in cells] for n, cells in rows.items()}
    found = observed_log_prob(net, rows)
    for i in range(12):
        seen = {n: cells[i] for n, cells in rows.items() if cells[i] is not None}
        assert found[i] == pytest.approx(log(probability(net, seen)), rel=1e-9, abs=1e-9)


def test_complete_rows_are_as_ever() -> None:
    for net in (sf.load("alarm"), random_hybrid(1)):
        rows = net.sample(200, seed=1)
        np.testing.assert_allclose(observed_log_prob(net, rows), net.log_prob(rows), rtol=1e-10)


def test_weights_repeat_rows_and_impossible_ones_are_minus_infinity() -> None:
    net = sf.BayesNet("x -> y", {"x": [0.5, 0.5], "y": [[1.0, 0.0], [0.5, 0.5]]}, {"x": ["0", "1"], "y": ["0", "1"]})
    rows = {"x": [None, "0", "1"], "y": ["1", None, None], "w": [3.0, 2.0, 0.5]}
    expected = 3 * np.log(0.25) + 2.5 * np.log(0.5)
    assert observed_log_likelihood(net, sf.scan(rows, weights="w")) == pytest.approx(expected)
    impossible = {"x": ["0", None], "y": ["1", "0"]}
    np.testing.assert_array_equal(observed_log_prob(net, impossible), [-np.inf, np.log(0.75)])
    assert observed_log_likelihood(net, impossible) == -np.inf
    assert observed_log_likelihood(net, sf.scan(impossible, weights=[0, 2])) == pytest.approx(2 * np.log(0.75))
    assert observed_log_prob(net, {"x": [None, None], "y": ["0", None]})[1] == 0.0, "a column of which every cell is missing"


def test_densities_that_no_float_holds() -> None:
    """Far-off numbers, whose density vanishes in every state: only in logs is something left of the sum."""
    net = sf.BayesNet("u -> x", {"u": [0.5, 0.5], "x": sf.Gaussian([0.0, 1.0], variance=[1.0, 1.0])}, {"u": ["a", "b"]})
    terms = np.log(0.5) - 0.5 * np.log(2 * np.pi) - 0.5 * np.array([100.0, 99.0]) ** 2
    assert observed_log_prob(net, {"u": [None], "x": [100.0]})[0] == pytest.approx(np.logaddexp(*terms))
    chain = "; ".join(f"v{i} -> v{i + 1}" for i in range(400))
    tables = {f"v{i}": [[1e-3, 1 - 1e-3]] * 2 if i else [0.5, 0.5] for i in range(401)}
    long = sf.BayesNet(chain, tables, {f"v{i}": ["0", "1"] for i in range(401)})
    row = {f"v{i}": ["0" if i % 2 else None] for i in range(401)}
    assert observed_log_prob(long, row)[0] == pytest.approx(200 * np.log(1e-3))


def test_blocks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.incomplete import rows as inference_rows

    net = random_hybrid(2)
    complete = net.sample(50, 1).to_pydict()
    rows = {n: [c if (i + 2 * j) % 3 else None for i, c in enumerate(complete[n])] for j, n in enumerate(complete)}
    whole = observed_log_prob(net, rows)
    monkeypatch.setattr(inference_rows, "PART", 7)
    monkeypatch.setattr(inference_rows, "CELLS", 20)
    np.testing.assert_allclose(observed_log_prob(net, rows), whole, rtol=1e-12)


def test_a_table_without_any_node_is_refused() -> None:
    with pytest.raises(DataError, match="no column of the network"):
        observed_log_prob(sf.load("asia"), {"nothing": ["yes"]})
