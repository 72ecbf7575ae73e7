"""Imputation: against enumeration, and into columns of every type, which they keep."""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import DataError, ModelError, SufficeNote
from suffice.models.rows.impute import impute
from tests.hybrid_oracles import finite_posterior, parts, random_hybrid, real_moments
from tests.models.rows.test_predict import enumerated, rows_with_gaps
from tests.oracles import joint, random_net

FIRST, SECOND = datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)
STATES = {"text": ["no", "yes"], "code": ["0", "1", "2"], "truth": ["false", "true"], "day": [str(FIRST), str(SECOND)]}
ROWS: dict[str, list[Any]] = {
    "text": ["no", None, "yes", None, None],
    "code": [0, 1, None, 2, None],
    "truth": [True, None, False, None, None],
    "day": [FIRST, None, SECOND, None, None],
    "id": [5, 6, 7, 8, 9],
}


@pytest.fixture
def bn() -> sf.BayesNet:
    rng = np.random.default_rng(0)

    def table(*shape: int) -> np.ndarray:
        cells = rng.random(shape)
        return cells / cells.sum(-1, keepdims=True)

    tables = {"text": table(2), "code": table(2, 3), "truth": table(3, 2), "day": table(2, 2, 2)}
    return sf.BayesNet("text -> code; code -> truth; text -> day; truth -> day", tables, STATES)


@pytest.fixture
def expected(bn) -> dict[str, list[Any]]:
    return bn.impute(ROWS)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000))
def test_each_cell_gets_its_most_probable_state(seed: int) -> None:
    net = random_net(seed)
    rows = rows_with_gaps(net, 15, seed)
    filled = impute(net, rows)
    for i in range(15):
        row = {n: cells[i] for n, cells in rows.items()}
        for name, state in row.items():
            probs = enumerated(net, row, name)
            got = filled[name][i]
            assert got == state if state is not None else probs[net.variables[name].code(got)] >= probs.max() - 1e-12


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_jointly_each_row_gets_its_most_probable_completion(seed: int, hidden: bool) -> None:
    """A node that is no column is summed out."""
    net = random_net(seed)
    rows = rows_with_gaps(net, 15, seed)
    if hidden:
        del rows["n2"]
    filled = impute(net, rows, joint=True)
    assert list(filled) == list(rows)
    nodes, cells = net.dag.nodes, joint(net)
    for i in range(15):
        sums: dict[tuple[str, ...], float] = {}
        for states, p in cells.items():
            row = dict(zip(nodes, states, strict=True))
            if all(rows[n][i] in (None, row[n]) for n in rows):
                key = tuple(row[n] for n in rows)
                sums[key] = sums.get(key, 0.0) + p
        assert sums[tuple(filled[n][i] for n in rows)] == pytest.approx(max(sums.values()), rel=1e-9)


def test_lists_keep_the_kinds_of_their_cells(expected) -> None:
    assert not any(cell is None for cells in expected.values() for cell in cells)
    assert {n: {type(c) for c in cells} for n, cells in expected.items()} == {
        "text": {str},
        "code": {int},
        "truth": {bool},
        "day": {datetime.date},
        "id": {int},
    }
    assert ROWS["text"][1] is None, "what was given stays as it is"


@pytest.mark.parametrize(
    "convert",
    [
        lambda d: d,
        lambda d: d.astype(object),
        lambda d: d.convert_dtypes(),
        lambda d: d.convert_dtypes(dtype_backend="pyarrow"),
        lambda d: d.astype({"text": "category", "code": "category", "truth": "category"}),
    ],
    ids=["plain", "object", "nullable", "arrow", "category"],
)
def test_pandas(bn, expected, convert) -> None:
    frame = convert(pd.DataFrame(ROWS, index=list("vwxyz")))
    before = frame.copy()
    filled = bn.impute(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert filled.dtypes.equals(frame.dtypes)
    assert filled.index.equals(frame.index)
    assert filled.columns.equals(frame.columns)
    for name in ("text", "code", "truth", "id"):
        assert filled[name].tolist() == expected[name]
    assert [str(d)[:10] for d in filled["day"]] == [str(d) for d in expected["day"]]


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["yes", "no"])])
def test_polars(bn, expected, dtype) -> None:
    frame = pl.DataFrame(ROWS).with_columns(pl.col("text").cast(dtype), pl.col("code").cast(pl.Int8))
    for rows in (frame, frame.lazy()):
        filled = bn.impute(rows)
        assert filled.schema == frame.schema
        assert filled.to_dict(as_series=False) == expected


def test_arrow_and_files(bn, expected, tmp_path) -> None:
    table = pa.table(ROWS)
    coded = table.set_column(0, "text", table["text"].dictionary_encode())
    for rows in (table, coded):
        filled = bn.impute(rows)
        assert filled.schema == rows.schema
        assert filled.to_pydict() == expected
    pq.write_table(table, tmp_path / "rows.parquet")
    assert bn.impute(tmp_path / "rows.parquet").to_pydict() == expected
    assert bn.impute(sf.scan(table)).to_pydict() == expected
    pa.csv.write_csv(table, tmp_path / "rows.csv")
    as_text = bn.impute(tmp_path / "rows.csv")
    assert as_text["code"].to_pylist() == [str(c) for c in expected["code"]]
    assert as_text["truth"].type.value_type == pa.string()
    assert as_text["id"].to_pylist() == ["5", "6", "7", "8", "9"]


def test_numpy(bn, expected) -> None:
    columns = {
        "text": np.array(["no", "", "yes", "", ""]),
        "code": np.array([0, 1, np.nan, 2, np.nan]),
        "truth": np.ma.array(np.array([True] * 5), mask=[False, True, True, True, True]),
        "day": np.array([str(FIRST), "NaT", str(SECOND), "NaT", "NaT"], "M8[D]"),
    }
    columns["truth"][2] = False
    filled = bn.impute(columns)
    for name, cells in filled.items():
        assert cells.dtype == columns[name].dtype
        assert cells.tolist() == expected[name]
    structured = np.empty(5, [(n, columns[n].dtype) for n in ("text", "code")])
    for name in ("text", "code"):
        structured[name] = columns[name]
    assert bn.impute(structured).dtype == structured.dtype


def test_columns_without_a_value_take_the_type_of_what_they_get(bn) -> None:
    nothing = {"text": [None, None], "code": np.array([np.nan, np.nan])}
    assert bn.impute(nothing)["text"] == ["no", "no"]
    assert bn.impute(nothing)["code"].dtype == float
    frame = bn.impute(pd.DataFrame({"text": [np.nan, np.nan]}))
    assert frame["text"].tolist() == ["no", "no"]
    assert bn.impute(pl.DataFrame({"text": [None, None]}))["text"].to_list() == ["no", "no"]
    assert bn.impute(pa.table({"text": pa.nulls(2)}))["text"].to_pylist() == ["no", "no"]


def test_categories_gain_states_that_they_lack(bn) -> None:
    frame = bn.impute(pd.DataFrame({"text": pd.Categorical([None, "yes"], ["yes"])}))
    assert frame["text"].tolist() == ["no", "yes"]
    assert frame["text"].cat.categories.tolist() == ["yes", "no"]
    enum = bn.impute(pl.DataFrame({"text": [None, "yes"]}, schema={"text": pl.Enum(["yes"])}))
    assert enum["text"].to_list() == ["no", "yes"]
    table = bn.impute(pa.table({"text": pa.array([None, "yes"]).dictionary_encode()}))
    assert table["text"].to_pylist() == ["no", "yes"]


def test_states_that_a_type_cannot_hold_are_refused() -> None:
    bn = sf.BayesNet("x", {"x": [0.9, 0.1]}, {"x": ["unknown", "1"]})
    with pytest.raises(DataError, match=r"'x' has the type.*cannot hold 'unknown'"):
        bn.impute(pd.DataFrame({"x": [1.0, None]}))


def test_impossible_rows_stay_as_they_are() -> None:
    tables = {"x": [0.5, 0.5], "y": [[1.0, 0.0], [0.5, 0.5]], "z": [[0.5, 0.5], [1.0, 0.0]]}
    bn = sf.BayesNet("x -> y; x -> z", tables, {"x": ["0", "1"], "y": ["0", "1"], "z": ["0", "1"]})
    rows = {"x": [None, None], "y": ["1", "1"], "z": ["1", "0"]}
    for joint_too in (False, True):
        with pytest.warns(SufficeNote, match="row 1 are impossible.*stay missing"):
            assert impute(bn, rows, joint=joint_too)["x"] == [None, "1"]
        with pytest.warns(SufficeNote, match="impossible"):
            assert impute(bn, pd.DataFrame(rows), joint=joint_too)["x"].isna().tolist() == [True, False]


def test_numbers_get_their_mean() -> None:
    tables = {"x": [0.75, 0.25], "y": sf.Gaussian([0.0, 4.0], variance=[1.0, 1.0])}
    bn = sf.BayesNet("x -> y", tables, {"x": ["no", "yes"]})
    rows = {"x": ["yes", None, None], "y": [None, None, 3]}
    assert bn.impute(rows) == {"x": ["yes", "no", "yes"], "y": [4.0, 1.0, 3]}
    frame = bn.impute(pd.DataFrame(rows).astype({"y": "Int64"}))
    assert frame["y"].tolist() == [4.0, 1.0, 3.0]
    assert bn.impute(pl.DataFrame(rows))["y"].to_list() == [4.0, 1.0, 3.0]
    assert bn.impute(pa.table({"x": ["yes"], "y": pa.array([None], pa.float32())}))["y"].type == pa.float32()
    assert bn.impute({"x": ["yes", "no"], "y": np.array([np.nan, 2.5], np.float32)})["y"].dtype == np.float32
    assert bn.impute({"x": ["yes", "no"], "y": ["", "2.5"]})["y"] == ["4.0", "2.5"]
    with pytest.raises(ModelError, match="joint=True is for finite columns, and 'y'"):
        impute(bn, rows, joint=True)
    assert impute(bn, {"x": [None]}, joint=True) == {"x": ["no"]}


def test_numbers_of_a_text_file_become_numbers(tmp_path) -> None:
    bn = sf.BayesNet("x", {"x": sf.Gaussian(2.5)})
    (tmp_path / "x.csv").write_text("x,who\n1,a\n,\n")
    table = bn.impute(tmp_path / "x.csv")
    assert table.to_pydict() == {"x": [1.0, 2.5], "who": ["a", None]}


DRAWS = 2000


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("hidden", [False, True])
def test_draws_have_the_joint_distribution_of_the_missing_cells(seed: int, hidden: bool) -> None:
    """The frequency of every completion against its enumerated probability: five standard deviations, 3 more for rare ones."""
    net = random_net(seed, zeros=seed % 2 == 0)
    whole = net.sample(3, seed=seed).to_pydict()
    gaps = np.random.default_rng(seed).random((3, 4)) < 0.7
    rows = {n: [None if gap else cell for gap, cell in zip(gaps[:, j], whole[n], strict=True)] for j, n in enumerate(whole)}
    if hidden:
        del rows["n2"]
    frames = impute(net, {n: cells * (DRAWS // 4) for n, cells in rows.items()}, draws=4, seed=seed)
    for i in range(3):
        given = {n: cells[i] for n, cells in rows.items() if cells[i] is not None}
        expected: dict[tuple[str, ...], float] = {}
        for states, p in joint(net).items():
            row = dict(zip(net.dag.nodes, states, strict=True))
            if all(row[n] == s for n, s in given.items()):
                key = tuple(row[n] for n in rows)
                expected[key] = expected.get(key, 0.0) + p
        total = sum(expected.values())
        found = [cells for frame in frames for cells in zip(*(frame[n][i::3] for n in rows), strict=True)]
        assert set(found) <= {key for key, p in expected.items() if p > 0}
        for key, p in expected.items():
            p /= total
            assert abs(found.count(key) - DRAWS * p) <= 5.0 * np.sqrt(DRAWS * p * (1 - p)) + 3.0 * (p < 0.01) + 1e-6


@pytest.mark.parametrize("hidden", [(), ("u0",), ("x1",), ("u1", "x2")])
@pytest.mark.parametrize("seed", [3, 4, 8])
def test_draws_of_finite_and_real_cells_together(seed: int, hidden: tuple[str, ...]) -> None:
    """States, means, covariances, and means within a state, so that the two kinds are seen to be drawn together."""
    net = random_hybrid(seed, n_finite=2, n_real=3)
    whole = {n: cells for n, cells in net.sample(1, seed=seed).to_pydict().items() if n not in hidden}
    gaps = [n for i, n in enumerate(whole) if (seed + i) % 3]
    rows = {n: [None] if n in gaps else cells for n, cells in whole.items()}
    frames = impute(net, {n: cells * 4000 for n, cells in rows.items()}, draws=1, seed=seed)[0]
    given = {n: cells[0] for n, cells in rows.items() if cells[0] is not None}
    finite, reals = [n for n in gaps if n[0] == "u"], [n for n in gaps if n[0] == "x"]
    drawn = list(zip(*(frames[n] for n in finite), strict=True)) if finite else [()] * 4000
    for states, p in finite_posterior(net, finite, given).items():
        assert abs(drawn.count(states) - 4000 * p) <= 5.0 * np.sqrt(4000 * p * (1 - p)) + 3.0 * (p < 0.01) + 1e-6
        here = np.array([d == states for d in drawn])
        known = {**given, **dict(zip(finite, states, strict=True))}
        if here.sum() > 200 and reals:
            mean, covariance = real_moments(net, reals, known)
            sample = np.array([frames[n] for n in reals], float)[:, here]
            spread = np.sqrt(np.diag(covariance))
            assert np.abs(sample.mean(axis=1) - mean).max() <= 5.0 * spread.max() / np.sqrt(here.sum())
            off = np.atleast_2d(np.cov(sample)) - covariance
            assert np.abs(off / np.outer(spread, spread)).max() <= 10.0 / np.sqrt(here.sum())
    assert sum(p.weight for p in parts(net, given)) > 0


def test_draws_are_reproducible_whatever_the_parts_and_columns(bn, monkeypatch, tmp_path) -> None:
    from suffice.incomplete import rows as finite

    table = bn.sample(300, seed=5)
    rng = np.random.default_rng(6)
    rows = {n: pa.array(table[n].to_pylist(), mask=rng.random(300) < 0.4) for n in table.column_names}
    frame = pa.table(rows)
    first = bn.impute(frame, draws=3, seed=7)
    assert len({str(f.to_pydict()) for f in first}) == 3
    assert bn.impute(frame, draws=4, seed=7)[:3] == first
    assert bn.impute(frame, draws=3, seed=8) != first
    backwards = bn.impute(frame.select(frame.column_names[::-1]), draws=3, seed=7)
    assert [b.select(frame.column_names) for b in backwards] == first
    later = bn.impute(frame.slice(100), draws=1, seed=7)[0]
    assert later != first[0].slice(100), "a row's numbers belong to its place"
    monkeypatch.setattr(finite, "CELLS", 64)
    monkeypatch.setattr("suffice.models.rows.impute.MAX_NUMBERS", 64)
    assert bn.impute(frame, draws=3, seed=7) == first
    pq.write_table(frame, tmp_path / "rows.parquet", row_group_size=50)
    assert [f.to_pydict() for f in bn.impute(tmp_path / "rows.parquet", draws=3, seed=7)] == [f.to_pydict() for f in first]


def test_draws_keep_the_kind_of_frame_and_impossible_rows(bn, expected) -> None:
    for frame in bn.impute(pd.DataFrame(ROWS, index=list("vwxyz")), draws=2):
        assert frame.index.tolist() == list("vwxyz")
        assert not frame.isna().to_numpy().any()
    assert all(isinstance(f, pl.DataFrame) for f in bn.impute(pl.DataFrame(ROWS).lazy(), draws=2))
    assert bn.impute({"text": ["no"]}, draws=2) == [{"text": ["no"]}] * 2
    tables = {"x": [0.5, 0.5], "y": [[1.0, 0.0], [0.5, 0.5]], "z": [[0.5, 0.5], [1.0, 0.0]]}
    net = sf.BayesNet("x -> y; x -> z", tables, {"x": ["0", "1"], "y": ["0", "1"], "z": ["0", "1"]})
    with pytest.warns(SufficeNote, match="row 1 are impossible.*stay missing"):
        frames = net.impute({"x": [None, None], "y": ["1", "1"], "z": ["1", "0"]}, draws=2)
    assert [f["x"] for f in frames] == [[None, "1"]] * 2


@pytest.mark.parametrize(
    "wrong", [{"draws": 0}, {"draws": 1.5}, {"draws": True}, {"draws": 1, "seed": -1}, {"draws": 1, "joint": True}]
)
def test_draws_that_cannot_be_made_are_refused(bn, wrong) -> None:
    with pytest.raises(ModelError, match=r"whole number of at least|not by both"):
        bn.impute({"text": [None]}, **wrong)
