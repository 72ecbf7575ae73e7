"""Prediction of many rows: against enumeration, in every kind of frame, with anything missing."""

from __future__ import annotations

import gc
import os
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.engines.engine import ROWS
from suffice.errors import DataError, ModelError, SufficeNote, TooLarge
from suffice.models.questions import sampling
from suffice.numerics.inference.finite import questions
from tests.oracles import joint, random_net

TABLES: dict[str, Any] = {
    "x": [0.75, 0.25],
    "y": [[0.9, 0.1], [0.2, 0.8]],
    "z": [[1.0, 0.0], [0.4, 0.6]],
    "w": [[0.5, 0.5], [1.0, 0.0]],
}
STATES = {"x": ["no", "yes"], "y": ["low", "high"], "z": ["0", "1"], "w": ["0", "1"]}


@pytest.fixture
def bn() -> sf.BayesNet:
    return sf.BayesNet("x -> y; x -> z; x -> w", TABLES, STATES)


def enumerated(bn: sf.BayesNet, row: dict[str, str | None], target: str) -> np.ndarray:
    """p(target | the other cells), by summing the joint."""
    nodes, states = bn.dag.nodes, bn.variables[target].states
    total = np.zeros(len(states))
    for configuration, p in joint(bn).items():
        cells = dict(zip(nodes, configuration, strict=True))
        if all(cells[n] == s for n, s in row.items() if s is not None and n != target):
            total[states.index(cells[target])] += p
    with np.errstate(invalid="ignore"):
        return total / total.sum() if total.sum() > 0 else np.full(len(states), np.nan)


def rows_with_gaps(bn: sf.BayesNet, n: int, seed: int) -> dict[str, list[str | None]]:
    """Rows of any states, possible or not, the first of them all missing."""
    rng = np.random.default_rng(seed)
    result: dict[str, list[str | None]] = {}
    for name, variable in bn.variables.items():
        cells = rng.choice(variable.states, n).tolist()
        gaps = rng.random(n) < rng.random(n)
        result[name] = [None if gap or i == 0 else cell for i, (gap, cell) in enumerate(zip(gaps, cells, strict=True))]
    return result


def proba(answer: Any) -> np.ndarray:
    """Probabilities as an array, from any kind of frame."""
    if isinstance(answer, dict):
        return np.stack(list(answer.values()), axis=1)
    return np.asarray(answer.to_pandas() if isinstance(answer, pa.Table) else answer.to_numpy())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_rows_are_answered_as_by_enumeration(seed: int, zeros: bool) -> None:
    net = random_net(seed, zeros=zeros)
    rows = rows_with_gaps(net, 25, seed)
    target = sorted(net)[seed % len(net)]
    found = net.predict_proba(rows, target)
    assert list(found) == list(net.variables[target].states)
    chosen = net.predict(rows, target)
    for i in range(25):
        expected = enumerated(net, {n: cells[i] for n, cells in rows.items()}, target)
        line = np.array([p[i] for p in found.values()])
        np.testing.assert_allclose(line, expected, rtol=0, atol=1e-12)
        if np.isnan(line[0]):
            assert chosen[i] is None
        else:
            assert expected[net.variables[target].code(chosen[i])] == pytest.approx(expected.max(), abs=1e-12)


def kinds(rows: dict[str, list[Any]], folder: Path) -> dict[str, Any]:
    """The same rows in every kind of frame that there is."""
    import duckdb

    table = pa.table({n: pa.array(cells, pa.string()) for n, cells in rows.items()})
    frame = pd.DataFrame(rows, dtype=object)
    pq.write_table(table, folder / "rows.parquet")
    table.to_pandas().to_csv(folder / "rows.csv", index=False)
    relation = duckdb.connect().from_arrow(table)
    return {
        "lists": rows,
        "objects": {n: np.array(cells, object) for n, cells in rows.items()},
        "texts": {n: np.array([c or "" for c in cells]) for n, cells in rows.items()},
        "pandas": frame,
        "pandas str": table.to_pandas(),
        "pandas category": frame.astype("category"),
        "polars": pl.DataFrame(rows),
        "polars lazy": pl.LazyFrame(rows),
        "polars category": pl.DataFrame(rows).cast(pl.Categorical),
        "arrow": table,
        "arrow batch": table.to_batches()[0],
        "arrow dictionary": pa.table({n: c.dictionary_encode() for n, c in zip(rows, table.columns, strict=True)}),
        "csv": folder / "rows.csv",
        "parquet": str(folder / "rows.parquet"),
        "data": sf.scan(frame),
        "data read": sf.scan(frame, {n: sf.Finite(n, STATES[n]) for n in rows}).hold(),
        "duckdb": relation,
    }


def test_every_kind_of_frame(bn, tmp_path) -> None:
    rows = {"x": ["yes", None, "no", None], "z": ["1", "0", None, None]}
    expected = np.array([enumerated(bn, {n: c[i] for n, c in rows.items()}, "y") for i in range(4)])
    answers = {}
    for kind, frame in kinds(rows, tmp_path).items():
        answer = answers[kind] = bn.predict_proba(frame, "y")
        np.testing.assert_allclose(proba(answer), expected, atol=1e-15, err_msg=kind)
        chosen = bn.predict(frame, "y")
        assert (chosen.to_pylist() if hasattr(chosen, "to_pylist") else list(chosen)) == ["high", "low", "low", "low"], kind
    for kind, answer in answers.items():
        home = type(answer).__module__.split(".")[0]
        expected_home = {"p": kind.split()[0]}.get(kind[0], "pyarrow") if kind != "parquet" else "pyarrow"
        assert home == ("builtins" if kind in ("lists", "objects", "texts") else expected_home), kind
    assert isinstance(bn.predict(pl.DataFrame(rows), "y"), pl.Series)
    assert bn.predict(pl.DataFrame(rows), "y").name == "y"


def test_pandas_keeps_its_index(bn) -> None:
    frame = pd.DataFrame({"x": ["yes", "no"]}, index=pd.Index(["b", "a"], name="who"))
    answer = bn.predict_proba(frame, "y")
    assert answer.index.equals(frame.index)
    assert answer.columns.tolist() == ["low", "high"]
    column = bn.predict(frame, "y")
    assert column.index.equals(frame.index)
    assert column.name == "y"
    assert column.tolist() == ["high", "low"]


def test_the_targets_own_column_and_strange_columns_are_not_looked_at(bn) -> None:
    rows = {"x": ["yes"], "y": ["no such state"], "who": [["a", "list"]]}
    assert bn.predict_proba(rows, "y")["high"] == pytest.approx([0.8])
    assert bn.predict_proba({"y": ["a", "b"]}, "y")["high"] == pytest.approx([0.275, 0.275])


def test_many_blocks_keep_their_order(bn, tmp_path) -> None:
    n = 2 * ROWS + 17
    x = np.where(np.arange(n) % 3 == 0, "yes", "no")
    expected = np.where(x == "yes", 0.8, 0.1)
    pq.write_table(pa.table({"x": x}), tmp_path / "x.parquet")
    for rows in ({"x": x}, tmp_path / "x.parquet"):
        np.testing.assert_allclose(np.asarray(bn.predict_proba(rows, "y")["high"]), expected)


def test_impossible_rows_are_nan_and_noted(bn, tmp_path) -> None:
    """z=1 is only with x=yes, w=1 only with x=no."""
    rows = {"w": ["0", "1", "1", None], "z": ["1", "1", "1", "1"]}
    with pytest.warns(SufficeNote, match="of 2 rows are impossible under the network, first row 2"):
        found = bn.predict_proba(rows, "y")
    assert np.isnan(found["low"]).tolist() == [False, True, True, False]
    with pytest.warns(SufficeNote, match="row 2 are impossible"):
        assert bn.predict({n: c[:2] for n, c in rows.items()}, "y").tolist() == ["high", None]
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv", index=False)
    with pytest.warns(SufficeNote, match=r"rows.csv, line 3"):
        assert bn.predict(tmp_path / "rows.csv", "y").to_pylist() == ["high", None, None, "high"]
    with pytest.warns(SufficeNote):
        assert bn.predict(pl.DataFrame(rows), "y").to_list() == ["high", None, None, "high"]
    with pytest.warns(SufficeNote):
        assert bn.predict(pd.DataFrame(rows), "y").isna().tolist() == [False, True, True, False]


def test_cells_that_the_target_does_not_depend_on_make_a_row_impossible_too(bn) -> None:
    """Given x, y depends on neither z nor w."""
    with pytest.warns(SufficeNote, match="row 1 are impossible"):
        assert np.isnan(bn.predict_proba({"x": ["no"], "z": ["1"]}, "y")["high"]).all()


def test_unknown_states_are_named_with_their_place(bn, tmp_path) -> None:
    rows = {"x": ["yes", "no", "yse"]}
    with pytest.raises(DataError, match="row 3, column 'x': 'yse' is not a state; did you mean 'yes'"):
        bn.predict_proba(rows, "y")
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(DataError, match=r"a.csv, line 4, column 'x': 'yse' is not a state; did you mean 'yes'"):
        bn.predict(tmp_path / "a.csv", "y")
    pd.DataFrame(rows).to_parquet(tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a.parquet, row 3, column 'x'"):
        bn.impute(tmp_path / "a.parquet")


def test_targets_and_columns_that_cannot_be(bn) -> None:
    with pytest.raises(ModelError, match="no node 'yy'; did you mean 'y'"):
        bn.predict_proba({"x": ["yes"]}, "yy")
    with pytest.raises(ModelError, match="one target"):
        bn.predict(pd.DataFrame({"x": ["yes"]}), ["y", "z"])
    with pytest.raises(DataError, match=r"no column of the network.*did you mean 'x'"):
        bn.predict({"X": ["yes"]}, "y")
    with pytest.raises(DataError, match="no column of the network"):
        bn.impute({"unheard": ["yes"]})
    with pytest.warns(SufficeNote, match=r"'Z' \(the node is 'z'\)"):
        bn.predict({"x": ["yes"], "Z": ["1"]}, "y")
    with pytest.raises(DataError, match="rows cannot be read from int"):
        bn.predict(3, "y")


def test_no_rows_in_no_rows_out(bn, tmp_path) -> None:
    frame = pd.DataFrame({"x": pd.Series([], dtype=object)})
    assert bn.predict_proba(frame, "y").shape == (0, 2)
    assert len(bn.predict(frame, "y")) == len(bn.impute(frame)) == 0
    (tmp_path / "none.csv").write_text("x,other\n")
    assert bn.predict_proba(tmp_path / "none.csv", "y").num_rows == 0
    assert bn.impute(tmp_path / "none.csv").column_names == ["x", "other"]
    assert bn.predict_proba({"x": []}, "y")["low"].shape == (0,)


def test_words_that_mean_missing_come_with_the_data(bn) -> None:
    rows = sf.scan({"x": ["yes", "NA"]}, missing="NA")
    assert bn.predict_proba(rows, "y")["high"].to_pylist() == pytest.approx([0.8, 0.275])
    assert bn.impute(rows)["x"].to_pylist() == ["yes", "no"]


def test_predictions_that_do_not_fit_in_memory_are_refused(bn, monkeypatch) -> None:
    monkeypatch.setattr("suffice.models.rows.frames.MAX_BYTES", 100)
    with pytest.raises(TooLarge, match="suffice predict"):
        bn.predict_proba({"x": ["yes"] * 10}, "y")


@pytest.fixture
def mixed() -> sf.BayesNet:
    """x is a coin, height a Gaussian for each side of it, weight follows height."""
    tables = {
        "x": [0.75, 0.25],
        "height": sf.Gaussian([0.0, 4.0], variance=[1.0, 1.0]),
        "weight": sf.Gaussian(1.0, {"height": 2.0}, variance=1.0),
    }
    return sf.BayesNet("x -> height -> weight", tables, {"x": ["no", "yes"]})


def test_real_targets_have_mean_and_variance(mixed) -> None:
    rows = pd.DataFrame({"x": ["yes", None, "no"], "weight": [None, None, 11.0]})
    found = mixed.predict_proba(rows, "height")
    assert found.columns.tolist() == ["mean", "variance"]
    np.testing.assert_allclose(found.to_numpy(), [[4.0, 1.0], [1.0, 1.0 + 0.75 * 0.25 * 16], [4.0, 0.2]])
    np.testing.assert_allclose(mixed.predict(rows, "height"), [4.0, 1.0, 4.0])
    assert mixed.predict(rows, "height").name == "height"


def test_numbers_are_evidence(mixed) -> None:
    rows = {"height": [2.0, None, 0.0], "weight": [None, None, 1.0]}
    likelihood = np.exp(-0.5 * np.array([[4.0, 4.0], [0.0, 0.0], [0.0, 16.0]])) * [0.75, 0.25]
    likelihood[1] = [0.75, 0.25]
    expected = likelihood / likelihood.sum(1, keepdims=True)
    np.testing.assert_allclose(proba(mixed.predict_proba(rows, "x")), expected, atol=1e-12)
    assert mixed.predict(rows, "x").tolist() == ["no", "no", "no"]


def test_rows_of_a_binned_network(tmp_path) -> None:
    rng = np.random.default_rng(0)
    age = rng.uniform(0, 90, 300)
    rows = {"age": age, "ill": np.where(rng.random(300) < age / 90, "yes", "no")}
    bn = sf.fit("age -> ill", sf.scan(rows, {"age": sf.Bins([30, 60])}))
    few = {"age": [10.0, 45.0, None, 70.0]}
    by_hand = [*bn["ill"].probs[:2, 1], bn.query("ill")["yes"], bn["ill"].probs[2, 1]]
    np.testing.assert_allclose(bn.predict_proba(few, "ill")["yes"], by_hand)
    assert bn.predict({"ill": ["yes", "no"]}, "age").tolist() == [">=60", "<30"]
    names = {"age": ["<30", "[30,60)", None, ">=60"]}
    np.testing.assert_allclose(bn.predict_proba(names, "ill")["yes"], by_hand)
    with pytest.raises(DataError, match="'young' is not a number"):
        bn.predict({"age": ["young"]}, "ill")
    with pytest.warns(SufficeNote, match="'age': known to the network in bins only"):
        filled = bn.impute(pd.DataFrame({**few, "ill": ["yes", None, "yes", "no"]}))
    assert filled["age"].isna().tolist() == [False, False, True, False]
    assert filled["ill"].notna().all()
    assert bn.impute({**names, "ill": ["yes"] * 4})["age"][2] == ">=60"


def test_no_notes_where_nothing_is_strange(bn, mixed) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        bn.predict_proba({"x": ["yes", None], "n": [1, 2]}, "y")
        bn.impute(pd.DataFrame({"x": ["yes", None], "n": [1, 2]}))
        mixed.predict({"weight": [1, 2]}, "x")


def test_a_network_that_is_gone_leaves_no_room_behind() -> None:
    """Each question's workspace takes megabytes: it goes with the network that it is for."""
    x, y = sf.Finite("x", ["no", "yes"]), sf.Finite("y", ["no", "yes"])
    gc.collect()
    before = len(questions._workspaces)
    for _ in range(3):
        bn = sf.BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
        bn.predict_proba({"x": ["yes", None]}, "y")
    del bn
    gc.collect()
    assert len(questions._workspaces) <= before


def test_rows_that_are_drawn_share_one_pool_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are drawn side by side: were the blocks of each drawn so, too, there would be threads without end."""
    cpds = {"k": sf.regressions.Rates(2.0), "y": sf.Gaussian(0.0, {"k": 1.0}, 1.0)}
    bn = sf.BayesNet("k -> y", cpds, [sf.Count("k")])
    method, rows = sf.LikelihoodWeighting(1_000), {"y": [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]}
    own, lock, under_way, most = sampling.drawn_forward, threading.Lock(), [0], [0]

    def watched(*asked: Any) -> Any:
        with lock:
            under_way[0] += 1
            most[0] = max(most[0], under_way[0])
        time.sleep(0.002)
        found = own(*asked)
        with lock:
            under_way[0] -= 1
        return found

    monkeypatch.setattr(sampling, "drawn_forward", watched)
    monkeypatch.setattr(sampling, "BLOCK", 100)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert bn.predict_proba(rows, "k", method=method, seed=1)["mean"][0] > 0
    assert most[0] == 2
