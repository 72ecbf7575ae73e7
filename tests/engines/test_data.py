"""The door: what `scan` takes, what it makes of it, and what it refuses."""

from __future__ import annotations

import contextlib
import datetime
import decimal
import gc
import gzip
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.basis.variables import Bins, Count, Distributed, Finite, Real, declaration, sorted_states, state_text
from suffice.engines import Data, scan
from suffice.engines.encoding import doubts, encode, infer, sources
from suffice.engines.reading import files
from suffice.engines.scan import backend_of, rows_of, rows_with
from suffice.engines.views import sample
from suffice.errors import DataError, SchemaError, SufficeError, SufficeNote, note
from suffice.families.chosen.exponential_node import ExponentialNode
from suffice.numerics.exponential import Gamma
from suffice.statistics import Request

CELLS = {"x": ["b", "a", "b", "c"], "y": ["u", "u", "v", "u"], "z": [1.5, 2.5, -1.0, 0.0]}
CSV = "x,y,z\nb,u,1.5\na,u,2.5\nb,v,-1\nc,u,0\n"


def written(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    data = content if isinstance(content, bytes) else content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def parquet(folder: Path, name: str = "t.parquet", cells: dict[str, Any] | None = None) -> Path:
    pq.write_table(pa.table(cells or CELLS), folder / name)
    return folder / name


def structured() -> np.ndarray[Any, Any]:
    return np.array(list(zip(*CELLS.values(), strict=True)), dtype=[("x", "U1"), ("y", "O"), ("z", "f8")])


INPUTS: dict[str, Callable[[Path], Any]] = {
    "dict of lists": lambda _: CELLS,
    "dict of arrays": lambda _: {n: np.array(c) for n, c in CELLS.items()},
    "dict of Series": lambda _: {n: pd.Series(c) for n, c in CELLS.items()},
    "dict of polars Series": lambda _: {n: pl.Series(c) for n, c in CELLS.items()},
    "structured array": lambda _: structured(),
    "pandas": lambda _: pd.DataFrame(CELLS),
    "pandas objects": lambda _: pd.DataFrame(CELLS).astype({"x": object, "y": object}),
    "pandas categories": lambda _: pd.DataFrame(CELLS).astype({"x": "category", "y": "category"}),
    "pandas nullable": lambda _: pd.DataFrame(CELLS).convert_dtypes(),
    "polars": lambda _: pl.DataFrame(CELLS),
    "polars lazy": lambda _: pl.DataFrame(CELLS).lazy(),
    "polars categories": lambda _: pl.DataFrame(CELLS).with_columns(pl.col("x", "y").cast(pl.Categorical)),
    "polars chunks": lambda _: pl.concat([pl.DataFrame(CELLS)[:1], pl.DataFrame(CELLS)[1:]], rechunk=False),
    "arrow table": lambda _: pa.table(CELLS),
    "arrow dictionary": lambda _: pa.table({n: pa.array(c).dictionary_encode() if n != "z" else c for n, c in CELLS.items()}),
    "arrow batch": lambda _: pa.RecordBatch.from_pydict(CELLS),
    "arrow reader": lambda _: pa.table(CELLS).to_reader(),
    "csv": lambda d: written(d, "t.csv", CSV),
    "csv text path": lambda d: str(written(d, "t.csv", CSV)),
    "csv.gz": lambda d: written(d, "t.csv.gz", CSV),
    "tsv": lambda d: written(d, "t.tsv", CSV.replace(",", "\t")),
    "csv crlf": lambda d: written(d, "t.csv", CSV.replace("\n", "\r\n")),
    "csv cr": lambda d: written(d, "t.csv", CSV.replace("\n", "\r")),
    "csv bom": lambda d: written(d, "t.csv", "\ufeff" + CSV),
    "csv blank lines": lambda d: written(d, "t.csv", "\n" + CSV.replace("\n", "\n\n")),
    "csv no last newline": lambda d: written(d, "t.csv", CSV.rstrip()),
    "csv quoted": lambda d: written(d, "t.csv", CSV.replace("b", '"b"').replace("x", '"x"')),
    "parquet": lambda d: parquet(d),
    "parquet dictionary": lambda d: parquet(d, cells={n: pa.array(c).dictionary_encode() for n, c in CELLS.items()}),
    "duckdb": lambda d: duckdb.connect().from_parquet(str(parquet(d))),
    "two paths": lambda d: [written(d, "1.csv", CSV[:14]), written(d, "2.csv", "y,z,x\nu,2.5,a\nv,-1,b\nu,0,c\n")],
    "glob": lambda d: [written(d, "1.csv", CSV[:14]), written(d, "2.csv", CSV[:6] + CSV[14:])] and f"{d}/*.csv",
}


@pytest.mark.parametrize("kind", INPUTS)
def test_all_inputs_give_the_same(kind: str, tmp_path: Path) -> None:
    data = scan(INPUTS[kind](tmp_path))
    assert dict(data.schema) == {"x": Finite("x", ["a", "b", "c"]), "y": Finite("y", ["u", "v"]), "z": Real("z")}
    assert (data.n_rows, data.weight, data.columns) == (4, 4.0, ("x", "y", "z"))
    found = data.gather([Request(("x", "y")), Request(("y",), ("z",))])
    assert found.counts(["x", "y"]).values.tolist() == [[1, 0], [1, 1], [1, 0]]
    assert found.moments(["y"], ["z"]).mean.ravel() == pytest.approx([4 / 3, -1])
    assert data.take(["z"]).sample(10**9).columns["z"].tolist() == CELLS["z"]


def schema(cells: dict[str, Any], **options: Any) -> dict[str, Any]:
    return dict(scan(cells, **options).schema)


def csv_schema(folder: Path, text: str | bytes, **options: Any) -> dict[str, Any]:
    return dict(scan(written(folder, "t.csv", text), **options).schema)


@pytest.mark.parametrize(
    "cells", [["yes", "no"], ["T", "F"], ["01x", "02"], ["2020-01-01", "2020-02-01"], ["1_0", "2"], ["0x1", "0"], ["nan", "a"]]
)
def test_csv_is_text(cells: list[str], tmp_path: Path) -> None:
    found = csv_schema(tmp_path, "v,w\n" + "".join(f"{c},0.5\n" for c in cells))["v"]
    assert isinstance(found, Finite)
    assert set(found.states) == set(cells)


@pytest.mark.parametrize("cells", ["1 2", "1.5 -2", "1e3 .5", "+1 2.", "1 ' 2 '", "01 2", "1E-3 1e308"])
def test_csv_numbers(cells: str, tmp_path: Path) -> None:
    words = [c.replace("'", "") for c in cells.split(" ")] if "'" not in cells else ["1", " 2 "]
    path = written(tmp_path, "t.csv", "v,w\n" + "".join(f"{c},a\n" for c in words))
    data = scan(path)
    assert data.schema["v"] == Real("v")
    assert data.take(["v"]).sample(10**9).columns["v"].tolist() == [float(w) for w in words]


def test_a_column_that_turns_to_text_late_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", 1000)
    rows = [f"{i},{i % 7},{i % 3},{'' if i < 900 else 'late'},{i}" for i in range(1000)]
    rows[990] = "990,6,0,late,word"
    path = written(tmp_path, "t.csv", "a,b,c,d,e\n" + "\n".join(rows))
    data = scan(path, integers=Finite)
    assert data.schema["b"] == Finite("b", [str(i) for i in range(7)])
    assert data.schema["d"] == Finite("d", ["late"])
    assert "word" in data.schema["e"].states
    assert data.schema["e"].states[0] == "0"
    assert data.missing["d"] == 900
    assert data.missing["e"] == 0
    assert scan(path).schema["b"] == Finite("b", [str(i) for i in range(7)])
    assert scan(path, integers=Real).schema["b"] == Real("b")


def test_integers_that_turn_out_to_be_real_late(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", 1000)
    path = written(tmp_path, "t.csv", "a,b\n" + "1,1\n" * 500 + "0.5,2\n1.5,2\n")
    data = scan(path, integers=Finite)
    assert dict(data.schema) == {"a": Real("a"), "b": Finite("b", ["1", "2"])}
    assert data.take(["a"]).sample(10**9).columns["a"].sum() == 502.0


@pytest.mark.parametrize("word", ["inf", "-Infinity", "nan", "1e999"])
def test_numbers_that_are_not_finite(word: str, tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", f"v,w\n1,a\n\n{word},a\n2,a\n")
    with pytest.raises(DataError, match=rf"t\.csv, line 4, column 'v': '{word}' is not a finite number"):
        scan(path).schema  # noqa: B018
    assert scan(path, missing=[word]).missing["v"] == 1
    assert scan(path, {"v": Finite}).schema["v"].n_states == 3


def test_typed_columns() -> None:
    day = datetime.date(2020, 1, 31)
    found = schema(
        {
            "bool": [True, True, None],
            "text": ["b", "a", None],
            "float": [1.0, np.nan, 2.0],
            "date": [day, None, day],
            "decimal": [decimal.Decimal("1.5"), None, decimal.Decimal(2)],
            "nothing": [None, None, None],
            "mixed": ["a", 1, 2.5],
            "ordered": pd.Categorical(["low", "high", "low"], ["low", "mid", "high"], ordered=True),
            "unordered": pd.Categorical(["b", "a", "b"], ["b", "a", "z"]),
            "coded": pd.Categorical([10, 9, 9], [10, 9]),
        }
    )
    assert found == {
        "bool": Finite("bool", ["false", "true"]),
        "text": Finite("text", ["a", "b"]),
        "float": Real("float"),
        "date": Finite("date", ["2020-01-31"]),
        "decimal": Real("decimal"),
        "nothing": Real("nothing"),
        "mixed": Finite("mixed", ["1", "2.5", "a"]),
        "ordered": Finite("ordered", ["low", "mid", "high"]),
        "unordered": Finite("unordered", ["a", "b", "z"]),
        "coded": Finite("coded", ["9", "10"]),
    }
    assert found["text"].inferred
    assert found["unordered"].inferred
    assert not found["ordered"].inferred


def test_times_are_text() -> None:
    noon = datetime.datetime(2020, 1, 31, 12, 30)
    zoned = pd.to_datetime(["2020-01-01", "2020-01-02"]).tz_localize("UTC")
    fine = np.array(["2020-01-01T00:00:00.123456789", "NaT"], "M8[ns]")
    found = schema({"t": [noon, None], "z": zoned, "c": [datetime.time(1, 2), None], "n": fine})
    assert [v.states for v in found.values()] == [
        ("2020-01-31 12:30:00",),
        ("2020-01-01 00:00:00Z", "2020-01-02 00:00:00Z"),
        ("01:02:00",),
        ("2020-01-01 00:00:00.123456789",),
    ]


def test_names_of_any_kind(tmp_path: Path) -> None:
    cells = {"a.b": ["x", "y"], "c[0]": [1.5, 2.5], 'é\n"': ["u", "v"], "a": ["p", "q"], "select": ["s", "t"]}
    path = parquet(tmp_path, cells=cells)
    expected = [
        Finite("a.b", ["x", "y"]),
        Real("c[0]"),
        Finite('é\n"', ["u", "v"]),
        Finite("a", ["p", "q"]),
        Finite("select", ["s", "t"]),
    ]
    assert list(scan(path).schema.values()) == expected
    assert list(scan(duckdb.from_parquet(str(path))).schema.values()) == expected
    assert list(scan(pd.DataFrame({0: ["a", "b"], 1: [1.5, 2]})).schema) == ["0", "1"]


def test_a_category_that_means_missing() -> None:
    data = scan({"x": pd.Categorical(["a", "?", None])}, missing="?")
    assert data.schema["x"] == Finite("x", ["a"])
    assert data.missing["x"] == 2


def test_polars_enum_and_categories_of_others() -> None:
    frame = pl.DataFrame(
        {
            "e": pl.Series(["mid", "low"], dtype=pl.Enum(["low", "mid", "high"])),
            "c": pl.Series(["b", "a"], dtype=pl.Categorical),
            "d": pl.Series(["x", "y"], dtype=pl.Categorical),
        }
    )
    found = dict(scan(frame).schema)
    assert found == {"e": Finite("e", ["low", "mid", "high"]), "c": Finite("c", ["a", "b"]), "d": Finite("d", ["x", "y"])}
    assert dict(scan(frame.lazy()).schema) == found


def test_duckdb_relation() -> None:
    con = duckdb.connect()
    con.execute("create type mood as enum ('sad', 'ok', 'happy')")
    con.execute('create table t as select i as "a ""b", \'ok\'::mood as m, i > 3 as big, i * 0.5::double as x from range(9) r(i)')
    data = scan(con.table("t"), integers=Finite)
    assert data.schema["m"] == Finite("m", ["sad", "ok", "happy"])
    assert data.schema["big"] == Finite("big", ["false", "true"])
    assert data.schema['a "b'].n_states == 9
    first = scan(con.table("t")).take(["m"])
    assert first.gather([Request(("m",))]).counts(["m"]).values.tolist() == [0, 9, 0]


def test_integers_are_real_with_one_note() -> None:
    cells = {"i": [1, 2, 3] * 10, "j": [0, 1, 3] * 10, "wide": [i * i for i in range(29)] + [0], "f": [0.0, 1.0, 2.0] * 10}
    data = scan(cells)
    with pytest.warns(SufficeNote, match=r"^'i', 'j': whole numbers") as notes:
        kinds = set(map(type, data.schema.values()))
    assert kinds == {Real}
    assert len(notes) == 1
    assert data.notes == (str(notes[0].message),)
    assert schema(cells, integers=Finite)["wide"] == Finite("wide", [str(i * i) for i in range(29)])
    assert schema(cells, integers=Finite)["f"] == Real("f")
    assert schema(cells, variables={"i": Finite, "j": Count, "wide": Real}) == {
        "i": Finite("i", ["1", "2", "3"]),
        "j": Count("j"),
        "wide": Real("wide"),
        "f": Real("f"),
    }


def test_integers_of_text_files(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "i,f,t\n1,1.0,a\n2,2.0,b\n")
    with pytest.warns(SufficeNote, match=r"^'i': whole numbers"):
        assert scan(path).schema["i"] == Real("i")
    assert scan(path, integers=Finite).schema["i"] == Finite("i", ["1", "2"])
    assert scan(path, integers=Finite).schema["f"] == Real("f")


def test_states_are_sorted_by_number_if_they_are_numbers() -> None:
    assert schema({"x": ["10", "9", "-1"]})["x"].states == ("-1", "9", "10")
    assert schema({"x": ["10", "9", "b"]})["x"].states == ("10", "9", "b")


def test_only_empty_is_missing(tmp_path: Path) -> None:
    text = "a,b,c\n,1,x\nNA,,x\nNone,3,\n?,4,x\n"
    path = written(tmp_path, "t.csv", text)
    data = scan(path)
    assert data.schema["a"].states == ("?", "NA", "None")
    assert dict(data.missing) == {"a": 1, "b": 1, "c": 1}
    again = scan(path, missing=["?", "NA", "4"])
    assert again.schema["a"].states == ("None",)
    assert dict(again.missing) == {"a": 3, "b": 2, "c": 1}
    typed = scan({"a": ["", "x", None, "?"], "b": [1.0, -999.0, np.nan, 2.0], "i": [1, -999, 2, 3]}, missing=["?", "-999"])
    assert dict(typed.missing) == {"a": 3, "b": 2, "i": 1}
    assert typed.schema["a"].states == ("x",)
    assert np.isnan(typed.take(["i"]).sample(10**9).columns["i"]).tolist() == [False, True, False, False]
    assert typed.take(["a"]).sample(10**9).columns["a"].tolist() == [255, 0, 255, 255]


def test_missing_cells_are_refused_where_they_matter() -> None:
    data = scan({"x": ["a", None, "b"], "y": [1.0, np.nan, np.nan], "z": ["u", "u", "v"], "n": [None, None, None]})
    with pytest.raises(DataError, match=r"'x' 1, 'y' 2, of 3 rows.*no row is ever dropped"):
        data.gather([Request(("x", "z")), Request((), ("y",))])
    with pytest.raises(DataError, match="'n' has no values at all"):
        data.gather([Request((), ("n",))])
    assert data.gather([Request(("z",))]).counts(["z"]).values.tolist() == [2, 1]


def test_identifiers_are_noted() -> None:
    data = scan({"name": [f"n{i}" for i in range(30)], "sex": ["f", "m"] * 15})
    with pytest.warns(SufficeNote, match=r"'name': nearly as many states as rows"):
        found = data.identifiers
    assert found == ("name",)
    assert scan({"few": list("abcdefghij")}).identifiers == ()


def test_too_many_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encode, "MAX_STATES", 50)
    cells = {"name": [f"n{i}" for i in range(60)], "sex": ["f", "m"] * 30}
    with pytest.raises(DataError, match="column 'name': there are more than 50 different texts"):
        schema(cells)
    assert scan(cells).take(["sex"]).gather([Request(("sex",))]).weight == 60


@pytest.mark.parametrize("n_states", [255, 256, 65535, 65536])
def test_wide_columns(n_states: int) -> None:
    rng = np.random.default_rng(0)
    codes = np.concatenate([np.arange(n_states), rng.integers(0, n_states, 1000)])
    data = scan({"x": pa.array([f"s{c:06}" for c in codes]), "y": ["a", "b"] * (len(codes) // 2) + ["a"] * (len(codes) % 2)})
    assert data.take(["x"]).sample(10**9).columns["x"].dtype == encode.code_type(n_states)
    assert (data.take(["x"]).sample(10**9).columns["x"] == codes).all()
    table = data.gather([Request(("y", "x"))]).counts(["y", "x"]).dense()
    assert table.sum() == len(codes)
    assert (table.sum(axis=0) == np.bincount(codes)).all()


def test_declared_states() -> None:
    data = scan(
        {"x": ["b", "a"], "i": [1, 2], "f": [1.0, 2.5]}, {"x": ["c", "b", "a"], "i": ["2", "1"], "f": Finite("f", [2.5, 1])}
    )
    assert data.take(["x"]).sample(10**9).columns["x"].tolist() == [1, 2]
    assert data.schema["x"] == Finite("x", ["c", "b", "a"])
    assert data.take(["i"]).sample(10**9).columns["i"].tolist() == [1, 0]
    assert data.take(["f"]).sample(10**9).columns["f"].tolist() == [1, 0]
    unused = pd.DataFrame({"x": pd.Categorical(["a"], ["a", "never"])})
    assert scan(unused, {"x": ["b", "a"]}).take(["x"]).sample(10**9).columns["x"].tolist() == [1]


def test_redeclaring() -> None:
    data = scan({"x": ["a", "b"], "i": [1, 2]})
    assert data.with_variables({"i": Finite}).schema["i"] == Finite("i", ["1", "2"])
    assert scan(data) is data
    assert scan(data, [Finite("x", ["b", "a"])]).take(["x"]).sample(10**9).columns["x"].tolist() == [1, 0]
    with pytest.raises(DataError, match="scan their source again"):
        scan(data, weights="i")


def test_bins() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=1000)
    cells = {"x": x, "ill": np.where(x > 0.3, "yes", "no"), "w": rng.integers(0, 3, 1000)}
    data = scan(cells, {"x": Bins(4), "w": Real})
    assert data.gather([Request(("x",))]).counts(["x"]).values.tolist() == [250] * 4
    assert (
        scan(cells, {"x": data.schema["x"], "w": Real}).take(["x"]).sample(10**9).columns["x"].tolist()
        == data.take(["x"]).sample(10**9).columns["x"].tolist()
    )
    wide = scan(cells, {"x": Bins(4, width=True), "w": Real})
    assert np.diff(wide.schema["x"].cuts) == pytest.approx((x.max() - x.min()) / 4)
    mdl = scan(cells, {"x": Bins(target="ill"), "w": Real}).take(["x"])
    assert len(mdl.schema["x"].cuts) == 1
    assert mdl.schema["x"].cuts[0] == pytest.approx(0.3, abs=0.01)
    assert scan({"x": [1.0, 17, 18, np.nan]}, {"x": Bins([18])}).take(["x"]).sample(10**9).columns["x"].tolist() == [0, 0, 1, 255]
    assert scan({"x": [1.0, 1, 1, 1, 2]}, {"x": Bins(3)}).schema["x"].cuts == (2.0,)
    assert scan({"x": [1.0, 1]}, {"x": Bins(3)}).schema["x"].states == ("all",)


def test_weighted_bins_are_those_of_repeated_rows() -> None:
    rng = np.random.default_rng(1)
    x, y, w = rng.normal(size=200).round(1), rng.integers(0, 2, 200).astype(str), rng.integers(0, 4, 200)
    for bins in (Bins(5), Bins(3, width=True), Bins(target="y")):
        weighted = scan({"x": x, "y": y, "w": w}, {"x": bins}, weights="w").schema["x"]
        assert weighted == scan({"x": np.repeat(x, w), "y": np.repeat(y, w)}, {"x": bins}).schema["x"]


def test_mdl_finds_known_cuts_and_none_in_noise() -> None:
    rng = np.random.default_rng(2)
    x = rng.uniform(0, 3, 3000)
    cells = {"x": x, "t": np.array(["a", "b", "c"])[x.astype(int)], "noise": rng.integers(0, 2, 3000).astype(str)}
    assert scan(cells, {"x": Bins(target="t")}).schema["x"].cuts == pytest.approx((1, 2), abs=0.01)
    assert scan(cells, {"x": Bins(target="noise")}).schema["x"].cuts == ()


def test_only_what_is_taken_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "a,b,c\nx,1,inf\ny,2,3\n")
    data = scan(path).take(["a", "b"])
    assert dict(data.schema) == {"a": Finite("a", ["x", "y"]), "b": Real("b")}
    assert data.select(["b"]).columns == ("b",)
    lists = scan({"a": ["x", "y"], "l": [[1], [2]]})
    assert lists.take(["a"]).n_rows == 2
    with pytest.raises(DataError, match=r"'l' has the type list"):
        lists.schema  # noqa: B018


def test_declared_data_need_not_be_read_for_their_schema(tmp_path: Path) -> None:
    path = written(tmp_path, "t.csv", "a,b\nx,1\ny,2\n")
    data = scan(path, {"a": ["x", "y"], "b": Real})
    assert data.schema["a"] == Finite("a", ["x", "y"])
    assert "not read yet" in repr(data)
    assert data.n_rows == 2


def test_repr() -> None:
    data = scan({"x": ["a", "b", None], "z": [1.5, 2.0, 3.0]})
    assert repr(data) == "Data(3 rows, 2 columns, not read yet: x, z)"
    data.schema  # noqa: B018
    assert repr(data).splitlines()[0] == "Data(2 columns): 3 rows"
    assert "<td>a 1, b 1</td>" in data._repr_html_()


def test_the_frame_is_not_changed_and_does_not_change_the_codes() -> None:
    frame = pd.DataFrame({"x": pd.Categorical(["b", "a"]), "z": [1.0, 2.0]})
    array = np.array([1.0, 2.0])
    data, other = scan(frame), scan({"z": array})
    data.gather([Request(("x",), ("z",))])
    other.take(["z"]).sample(10**9).columns["z"]
    frame.loc[0, "z"] = array[0] = 5.0
    frame.loc[0, "x"] = None
    assert frame["z"].tolist() == [5.0, 2.0]
    assert data.take(["x"]).sample(10**9).columns["x"].tolist() == [1, 0]


REFUSED: dict[str, tuple[Callable[[Path], Any], str]] = {
    "no rows": (lambda d: scan({"x": []}), "there are no rows"),
    "no rows in csv": (lambda d: scan(written(d, "t.csv", "a,b\n")).schema, r"t\.csv: there are no rows"),
    "no rows, no newline": (lambda d: scan(written(d, "t.csv", "a,b")).schema, r"t\.csv: there are no rows"),
    "no rows in parquet": (lambda d: scan(parquet(d, cells={"x": pa.array([], pa.string())})), r"t\.parquet: there are no rows"),
    "no columns": (lambda d: scan({}), "there are no columns"),
    "empty file": (lambda d: scan(written(d, "t.csv", "")), r"t\.csv: the file is empty"),
    "empty gz": (lambda d: scan(written(d, "t.csv.gz", "")), r"t\.csv\.gz: the file is empty"),
    "no such file": (
        lambda d: scan(written(d, "data.csv", CSV).parent / "dat.csv"),
        r"there is no such file; did you mean 'data\.csv'",
    ),
    "no such directory": (lambda d: scan(d / "none" / "t.csv"), "there is no directory"),
    "a directory": (lambda d: scan(d), "this is a directory"),
    "no file fits": (lambda d: scan(f"{d}/*.csv"), "no file fits this pattern"),
    "unknown suffix": (lambda d: scan(written(d, "t.xlsx", CSV)), r"rows are read from \.csv"),
    "mixed files": (lambda d: scan([parquet(d), written(d, "t.csv", CSV)]), "different kinds"),
    "not parquet": (lambda d: scan(written(d, "t.parquet", CSV)), r"t\.parquet: not a Parquet file that can be read"),
    "truncated parquet": (
        lambda d: scan(written(d, "u.parquet", parquet(d).read_bytes()[:-20])),
        r"u\.parquet: not a Parquet file that can be read",
    ),
    "not gzip": (lambda d: scan((d / "t.csv.gz").write_bytes(b"a,b\n1,2\n") and d / "t.csv.gz"), r"t\.csv\.gz: cannot be read"),
    "duplicate header": (lambda d: scan(written(d, "t.csv", "a,b,a\n1,2,3\n")), r"t\.csv, line 1: the column 'a' occurs twice"),
    "blank header": (lambda d: scan(written(d, "t.csv", '"",a\n1,2\n')), r"t\.csv, line 1: column 1 has no name"),
    "duplicate in frame": (lambda d: scan(pd.DataFrame([[1, 2]], columns=["a", "a"])), "twice|duplicate"),
    "blank name": (lambda d: scan({" ": [1]}), "column 1 has no name"),
    "short row": (
        lambda d: scan(written(d, "t.csv", "a,b\n1,2\n\n3\n")).schema,
        r"t\.csv, line 4: found 1 field where the header has 2",
    ),
    "long row": (
        lambda d: scan(written(d, "t.csv", 'a,b\n1,"2\n3"\n3,4,5\n')).schema,
        r"t\.csv, line 4: found 3 fields where the header has 2",
    ),
    "comment": (
        lambda d: scan(written(d, "t.csv", '"a1","a2"\n1,2\n# x\n2,1\n')).schema,
        r"line 3: found 1 field where the header has 2",
    ),
    "quote inside": (
        lambda d: scan(written(d, "t.csv", 'X,Y,Z\n0,1,2\n0,1",0\n0,0,2\n1,"0,2\n')).schema,
        r"line 3: a quote begins inside a cell",
    ),
    "quote ends inside": (lambda d: scan(written(d, "t.csv", 'X,Y\n"a"b,1\n')).schema, r"line 2: a quote ends inside a cell"),
    "quote not closed": (lambda d: scan(written(d, "t.csv", 'X,Y\n1,2\n1,"2\n3,4\n')).schema, r"line 3: a quote is never closed"),
    "latin-1": (lambda d: scan(written(d, "t.csv", b"a,b\n1,x\n2,caf\xe9\n")).schema, r"t\.csv, line 3: the text is not UTF-8"),
    "cut utf-8": (lambda d: scan(written(d, "t.csv", b"a,b\n1,x\n2,caf\xc3")).schema, r"t\.csv, line 3: the text is not UTF-8"),
    "utf-16": (lambda d: scan(written(d, "t.csv", CSV.encode("utf-16"))).schema, r"t\.csv, line 1: the text is not UTF-8"),
    "differing columns": (
        lambda d: scan([written(d, "1.csv", "a,b\n1,2\n"), written(d, "2.csv", "a,c\n1,2\n")]),
        r"2\.csv: the columns differ from those of .*1\.csv: this file lacks 'b'",
    ),
    "differing parquet columns": (
        lambda d: scan([parquet(d, "1.parquet"), parquet(d, "2.parquet", {"x": ["a"]})]),
        r"2\.parquet: the columns differ",
    ),
    "differing types": (
        lambda d: scan([parquet(d, "1.parquet", {"x": ["a"]}), parquet(d, "2.parquet", {"x": [1]})]).schema,
        r"'x' has the type string in .*1\.parquet and int64 in .*2\.parquet",
    ),
    "unknown state": (
        lambda d: scan({"x": ["no", "yes", "yse"]}, {"x": ["no", "yes"]}).take(["x"]).sample(10**9).columns["x"],
        r"row 3, column 'x': 'yse' is not a state; did you mean 'yes'",
    ),
    "unknown state in csv": (
        lambda d: (
            scan(written(d, "t.csv", "s,t\ntrue,1\n\nBEURK,2\n"), {"s": ["true", "false"]}).take(["s"]).sample(10**9).columns["s"]
        ),
        r"t\.csv, line 4, column 's': 'BEURK' is not a state; the states are 'true', 'false'",
    ),
    "unknown state in second file": (
        lambda d: (
            scan([written(d, "1.csv", "s\na\nb\n"), written(d, "2.csv", "s\na\nz\n")], {"s": ["a", "b"]})
            .take(["s"])
            .sample(10**9)
            .columns["s"]
        ),
        r"2\.csv, line 3, column 's': 'z' is not a state",
    ),
    "unknown state in second parquet": (
        lambda d: (
            scan([parquet(d, "1.parquet"), parquet(d, "2.parquet")], {"x": ["a", "b"]}).take(["x"]).sample(10**9).columns["x"]
        ),
        r"1\.parquet, row 4, column 'x': 'c' is not a state",
    ),
    "unknown integer": (
        lambda d: scan({"x": [1, 2, 3]}, {"x": ["1", "2"]}).take(["x"]).sample(10**9).columns["x"],
        r"row 3, column 'x': '3' is not a state",
    ),
    "text is not real": (
        lambda d: scan({"x": ["1", "b"]}, {"x": Real}).take(["x"]).sample(10**9).columns["x"],
        r"row 2, column 'x': 'b' is not a number",
    ),
    "inf": (
        lambda d: scan({"x": [1.0, np.inf]}).take(["x"]).sample(10**9).columns["x"],
        r"row 2, column 'x': 'inf' is not a finite number",
    ),
    "negative count": (
        lambda d: scan({"x": [1, -1]}, {"x": Count}).take(["x"]).sample(10**9).columns["x"],
        r"row 2, column 'x': -1 is not a count",
    ),
    "half count": (
        lambda d: scan({"x": [1, 0.5]}, {"x": Count}).take(["x"]).sample(10**9).columns["x"],
        r"row 2, column 'x': 0.5 is not a count",
    ),
    "dates are not real": (
        lambda d: scan({"x": [datetime.date(2020, 1, 1)]}, {"x": Real}).take(["x"]).sample(10**9).columns["x"],
        "'x' has the type date32",
    ),
    "unknown column": (lambda d: scan({"smoke": ["a"]}).take(["smok"]), "no column 'smok'; did you mean 'smoke'"),
    "unknown column asked": (
        lambda d: scan({"smoke": ["a"]}).gather([Request(("smok",))]),
        "no column 'smok'; did you mean 'smoke'",
    ),
    "unknown declared": (
        lambda d: scan({"smoke": ["a"]}, {"smok": Real}),
        "no column 'smok', which was declared; did you mean 'smoke'",
    ),
    "unknown target": (
        lambda d: scan({"x": [1.0]}, {"x": Bins(target="y")}),
        "no column 'y', by which 'x' is to be cut",
    ),
    "target not finite": (
        lambda d: scan({"x": [1.0], "y": [1.0]}, {"x": Bins(target="y")}).schema,
        "'y', which is not finite",
    ),
    "bins of nothing": (lambda d: scan({"x": [None]}, {"x": Bins(2)}).schema, "cannot be cut into bins"),
    "unknown weights": (
        lambda d: scan({"x": ["a"], "w": [1]}, weights="W"),
        "no column 'W' of weights; did you mean 'w'|no column 'W' of weights",
    ),
    "only weights": (lambda d: scan({"w": [1]}, weights="w"), "no columns besides the weights"),
    "negative weight": (
        lambda d: scan({"x": ["a", "b"], "w": [1, -1]}, weights="w").weight,
        "row 2, column 'w': the weight -1 is negative",
    ),
    "missing weight": (
        lambda d: scan({"x": ["a", "b"], "w": [1, None]}, weights="w").weight,
        "row 2, column 'w': the weight is missing",
    ),
    "infinite weight": (
        lambda d: scan({"x": ["a", "b"], "w": [1, np.inf]}, weights="w").weight,
        "row 2, column 'w': 'inf' is not a finite",
    ),
    "text weight": (
        lambda d: scan(written(d, "t.csv", "x,w\na,1\nb,x\n"), weights="w").weight,
        r"t\.csv, line 3, column 'w': 'x' is not a number",
    ),
    "NaN in weights": (lambda d: scan({"x": ["a", "b"]}, weights=[1, np.nan]), "row 2: the weight nan"),
    "too many weights for a file": (lambda d: scan(written(d, "t.csv", CSV), weights=[1] * 5).schema, "5 weights for 4 rows"),
    "words for weights": (lambda d: scan({"x": ["a", "b"]}, weights=["a", "b"]), "weights are a column by its name"),
    "table of weights": (lambda d: scan({"x": ["a", "b"]}, weights=np.ones((2, 2))), "an array of 2 dimensions"),
    "too few weights": (lambda d: scan({"x": ["a", "b"]}, weights=[1]), "1 weights for 2 rows"),
    "zero weights": (lambda d: scan({"x": ["a", "b"]}, weights=[0, 0]).weight, "the weights of all rows are 0"),
    "lengths": (lambda d: scan({"x": ["a", "b"], "y": [1]}), "'y' has 1 rows where 'x' has 2"),
    "weights as a variable": (lambda d: scan({"x": ["a"], "w": [1]}, weights="w").take(["w"]), "'w' holds the weights"),
    "set": (lambda d: scan({"x": {"a", "b"}}), "'x' must be a list"),
    "bytes": (lambda d: scan({"x": [b"\xff"]}).schema, "bytes that are not UTF-8"),
    "periods": (
        lambda d: scan(pd.DataFrame({"p": pd.period_range("2020", periods=2, freq="M")})).schema,
        "'p' has the type extension",
    ),
    "empty relation": (lambda d: scan(duckdb.sql("select 1 as x where false")).schema, "there are no rows"),
    "empty lazy frame": (lambda d: scan(pl.DataFrame({"x": [1]}).lazy().filter(pl.col("x") > 1)).schema, "there are no rows"),
    "scalar": (lambda d: scan({"x": 1}), "'x' must be a list"),
    "text for a column": (lambda d: scan({"x": "abc"}), "'x' must be a list"),
    "matrix": (lambda d: scan({"x": np.zeros((2, 2))}), "'x' has 2 dimensions"),
    "plain array": (lambda d: scan(np.zeros((2, 2))), "no names of columns"),
    "nothing": (lambda d: scan(None), "rows cannot be read from NoneType"),
    "list of numbers": (lambda d: scan([1, 2]), "rows cannot be read from list"),
    "limit": (lambda d: scan({"x": ["a"]}, memory_limit="much"), "a memory limit is"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str, tmp_path: Path) -> None:
    act, message = REFUSED[what]
    with pytest.raises(DataError, match=message) as error:
        act(tmp_path)
    assert "\n" not in str(error.value)


def test_what_was_refused_is_refused_again(tmp_path: Path) -> None:
    late = scan(written(tmp_path, "t.csv", "v,w\n1,a\ninf,b\n"))
    bins = scan({"x": [None, None], "y": ["a", "b"]}, {"x": Bins(2)})
    for data, message in ((late, "'inf' is not a finite number"), (bins, "cannot be cut")):
        for _ in range(2):
            with pytest.raises(DataError, match=message):
                data.schema  # noqa: B018
    assert late.take(["w"]).take(["w"]).sample(10**9).columns["w"].tolist() == [0, 1]


def test_refused_declarations() -> None:
    with pytest.raises(SchemaError, match="integers are Real or Finite"):
        scan({"x": [1]}, integers=Count)  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="a list of variables"):
        scan({"x": [1]}, ["x"])
    with pytest.raises(SchemaError, match="declared as 3"):
        scan({"x": [1]}, {"x": 3})
    with pytest.raises(SchemaError, match="a table needs finite columns"):
        scan({"x": [1.5]}).gather([Request(("x",))])
    with pytest.raises(SchemaError, match="moments need columns of numbers"):
        scan({"x": ["a"]}).gather([Request((), ("x",))])


def test_quotes_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "BLOCK", 64)
    cells = ['a""b', "c\nd", "e,f", ",", "\r\n", '""""', "é" * 5, "plain"] * 20
    path = written(tmp_path, "t.csv", "x,n\n" + "".join(f'"{c}",0.5\n' for c in cells))
    expected = {c.replace('""', '"') for c in cells}
    assert set(scan(path).schema["x"].states) == expected
    bad = path.read_bytes() + b'x"y",1\n'
    with pytest.raises(DataError, match=r"line 202: a quote begins inside a cell"):
        scan(written(tmp_path, "u.csv", bad)).schema  # noqa: B018


words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=4)


@settings(max_examples=40, deadline=None)
@given(rows=st.lists(st.tuples(words, words), min_size=1, max_size=12), end=st.sampled_from(["\n", "\r\n", "\r"]))
def test_any_text_survives_a_csv_file(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], end: str) -> None:
    quoted = [",".join('"' + c.replace('"', '""') + '"' for c in row) for row in [("x", "y"), *rows]]
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(end.join(quoted).encode())
    declared = {"x": Finite, "y": Finite}
    assert_same(scan(path, declared), scan({"x": [r[0] for r in rows], "y": [r[1] for r in rows]}, declared))


def assert_same(a: Data, b: Data) -> None:
    assert dict(a.schema) == dict(b.schema)
    assert dict(a.missing) == dict(b.missing)
    for name in a.columns:
        assert np.array_equal(
            a.take([name]).sample(10**9).columns[name], b.take([name]).sample(10**9).columns[name], equal_nan=True
        )


@settings(max_examples=40, deadline=None)
@given(data=st.binary(max_size=60))
def test_hostile_csv_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("hostile") / "t.csv"
    path.write_bytes(b"a,b\n" + data)
    with contextlib.suppress(DataError):
        scan(path).schema  # noqa: B018


def _noted(path: object, **options: Any) -> list[str]:
    """The notes on words that may mean missing cells, and on separators."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SufficeNote)
        data = scan(path, **options)
        for names in (data.columns[:1], data.columns):
            assert data.select(names).missing is not None
        assert data.with_variables({}).n_rows
    messages = [str(w.message) for w in caught]
    assert len(messages) == len(set(messages))
    return [m for m in messages if "whole numbers" not in m and "nearly as many" not in m]


def test_words_among_numbers_are_noted_once(tmp_path: Path) -> None:
    rows = "".join(f"{i}.5,{i},{i % 3},{'ab'[i % 2]}\n" for i in range(30))
    (tmp_path / "rows.csv").write_text("x,y,n,s\n" + rows + "NA,gone,?,-\n1.5,2,1,.\n", "utf-8")
    assert _noted(tmp_path / "rows.csv") == [
        "'x': numbers but for 'NA', and so taken for states; if that means a missing cell, say so: missing=[\"NA\"]",
        "'y', 'n': numbers but for 'gone', '?', and so taken for states; if that means a missing cell, say so: "
        'missing=["gone", "?"]',
        "'s': '-', '.' is taken for a state, as only an empty cell is missing; if it means that, say so: missing=[\"-\", \".\"]",
    ]
    assert not _noted(tmp_path / "rows.csv", missing=["NA", "gone", "?", "-", "."])
    declared = {"x": Finite, "y": Finite, "s": Finite}
    assert [m.split(":")[0] for m in _noted(tmp_path / "rows.csv", variables=declared)] == ["'n'"]
    assert ["'n', 's'" in m for m in _noted(tmp_path / "rows.csv", integers=Finite, missing=["NA", "gone"])] == [True]
    assert not scan(tmp_path / "rows.csv").missing["x"]


def test_ordinary_words_are_not_noted(tmp_path: Path) -> None:
    columns = ["2,None,+,80+", "3,one,-,1", "more,two,+,2", "2,None,-,3"]
    (tmp_path / "rows.csv").write_text("doors,state,class,age\n" + "\n".join(columns * 3), "utf-8")
    assert not _noted(tmp_path / "rows.csv")
    assert not _noted({"x": ["1", "2", "other"], "y": ["a", None, "b"]})
    assert "'x': numbers but for 'NA'" in _noted({"x": ["1.5", "2", "NA"]})[0]


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        (
            "rows.csv",
            "a;b\n1;2\n3;4\n",
            "a semicolon separates the columns, as the first lines show, not a comma; separator='",
        ),
        ("rows.csv", "a\tb\n1\t2\n", "a tab separates the columns, as the first lines show, not a comma"),
        ("rows.tsv", "a,b\n1,2\n", "a comma separates the columns, as the first lines show, not a tab"),
        ("rows.csv", "a;b\n1\n3;4\n", None),
        ("rows.csv", "a\n1;2\n3;4\n", None),
        ("rows.csv", "a;b,c\n1;2,3\n", None),
    ],
)
def test_other_separators_are_noted(tmp_path: Path, name: str, text: str, expected: str | None) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    notes = _noted(tmp_path / name)
    assert len(notes) == (expected is not None)
    assert expected is None or expected in notes[0]


def test_notes_come_from_the_line_of_the_user() -> None:
    with ThreadPoolExecutor(1) as pool, pytest.warns(SufficeNote, match="from a thread") as caught:
        pool.submit(note, "from a thread").result()
    assert Path(caught[0].filename).name == "test_data.py"


def test_a_lazy_frame_has_a_size_and_comes_in_batches() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.LazyFrame({"a": ["x", "y", None] * 1000, "v": np.arange(3000.0)})
    data = scan(frame, memory_limit=0)
    assert data.known.missing == {"a": 1000, "v": 0}
    assert data.engine.source.n_bytes(["a", "v"]) == 9 * 3000
    assert data.take(["v"]).gather([Request((), ("v",))]).moments((), ["v"]).mean[0, 0] == pytest.approx(1499.5)


def test_a_spark_frame_is_refused_rather_than_collected() -> None:
    from suffice.engines.reading.frames import Lazy

    class Spark:
        implementation = "Implementation.PYSPARK"

    with pytest.raises(DataError, match="a Spark frame cannot be read yet: write it to Parquet"):
        Lazy(Spark())


REFUSED_CALLS = {
    "a sample of −1": (lambda d: d.sample(-1), "the size of a sample is a whole number of at least 0, not -1"),
    "half a row": (lambda d: d.sample(2.5), "the size of a sample is a whole number of at least 0, not 2.5"),
    "a seed of text": (lambda d: d.sample(3, seed="x"), "a seed is a whole number of at least 0, not 'x'"),
    "no seed": (lambda d: d.resample(None), "a seed is a whole number of at least 0, not None"),
    "one fold": (lambda d: list(d.split(1, 0)), "the number of folds is a whole number of at least 2, not 1"),
    "a limit of −1": (lambda d: d.distinct(-1), "the limit is a whole number of at least 1, not -1"),
    "one name": (lambda d: d.select("x"), r"columns are a list of names, \['x'\], not one name"),
    "no step": (lambda d: d.fold(None), "a step is a function of a block of rows, not None"),
    "no step to map": (lambda d: d.map(3), "a step is a function of a block of rows, not 3"),
    "a column to keep": (lambda d: d.map(len, keep=["z"]), "the data have no column 'z'"),
    "a step without a result": (lambda d: d.fold(lambda block: None), "the step gives None, which does not add"),
}


@pytest.mark.parametrize("name", REFUSED_CALLS)
def test_calls_that_are_refused(name: str) -> None:
    call, words = REFUSED_CALLS[name]
    with pytest.raises(SufficeError, match=words):
        call(scan({"x": list("ababab")}))


def test_arrays_of_other_shapes_are_not_added() -> None:
    data = scan({"x": list("ab") * 20_000})
    with pytest.raises(DataError, match=r"a step gives arrays of one shape for all blocks, not \(1,\) and \(2,\)"):
        data.fold(lambda block: np.ones(block.number + 1), threads=1)


@pytest.mark.parametrize("many", [False, True])
def test_a_map_whose_step_stops_loses_no_rows(many: bool) -> None:
    data = scan({"x": list("ab") * (20_000 if many else 2)})
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(data.map(lambda block: next(iter(()))))


def test_a_lazy_frame_that_fails_is_told_in_one_sentence() -> None:
    frame = pl.LazyFrame({"a": ["1", "x"]}).with_columns(pl.col("a").cast(pl.Int64))
    with pytest.raises(DataError, match="the lazy frame cannot be collected: "):
        scan(frame).n_rows  # noqa: B018


def test_data_of_some_rows_keep_no_other_copy_of_them() -> None:
    data = scan({"x": ["a", "b"] * 50})
    rows = data.sample(10)
    cells, at = weakref.ref(rows.columns["x"]), rows.at
    few = data.of_rows(rows)
    del rows
    gc.collect()
    assert cells() is None
    assert few.place(0, 3) == data.place(*at[3].tolist())


def test_codes_of_a_finite_column() -> None:
    assert (encode.code_type(255), encode.code_type(256)) == (np.uint8, np.uint16)
    assert encode.recode(np.array([0, 1, 255], np.uint8), np.array([1, 0]), np.dtype(np.uint8)).tolist() == [1, 0, 255]
    assert encode.first_rows(np.array([2, 0, 2]), 3).tolist() == [1, -1, 0]
    assert encode.texts(pa.array([1.5, 2.0, None])) == ["1.5", "2", None]
    assert encode.texts(pa.array([True])) == ["true"]
    assert encode.bin_codes(np.array([17.0, 18.0, np.nan]), Bins([18]).finite("age", [18])).tolist() == [0, 1, 255]
    assert encode.bin_codes(np.array([2.5, 0.0, np.nan]), Finite("x", ["0", "2.5"])).tolist() == [1, 0, 255]


def test_what_reads_as_numbers() -> None:
    assert [encode.number(s) for s in (" +1e3 ", "1_000", "0x1", "1e999")] == [1000.0, None, None, np.inf]
    assert encode.with_points(pa.array(["1,5", "", "-2", "1,2,3"])).to_pylist() == ["1.5", "", "-2", "1,2,3"]
    assert infer.reads_as(["1", "2.5"], False) == "numbers"
    assert infer.reads_as(["1", "2"], True) == infer.reads_as(["inf"], False) == "states"
    numbers = ([0.0, 1.0, 1.0], np.arange(50.0) % 10, [0.5, 1.5], np.arange(49.0) % 10)
    assert [infer.Values.of(np.array(x)).are_states for x in numbers] == [True, True, False, False]
    names = ("id", "patient_id", "PatientID", "Unnamed: 0", "paid", "valid")
    assert [n for n in names if doubts._are_running(n, np.arange(100.0) ** 3)] == list(names[:4])
    assert doubts._are_running("x", np.arange(100.0))
    assert not doubts._are_running("x", np.arange(100.0) ** 3)


def test_what_sources_say() -> None:
    with pytest.raises(DataError, match=r"x\.csv: the column 'a' occurs twice"):
        sources.checked_names(["a", "a"], "x.csv")
    assert sources.kind_of(pa.int8()) is sources.Kind.INTEGER
    assert sources.kind_of(pa.list_(pa.int8())) is sources.Kind.OTHER
    assert sources.checked_words("NA") == ("NA",)
    assert sources.checked_words(["NA", -999]) == ("NA", "-999")
    parts = [({"x": np.zeros(n)}, n) for n in (sources.ROWS + 1, sources.ROWS)]
    assert [len(b["x"]) for b in sources.cut(parts)] == [sources.ROWS, sources.ROWS, 1]
    assert backend_of({"x": [1, 2]}) is None
    assert rows_of({"x": []}).columns == ("x",)
    assert rows_with({"x": ["a"], "y": [1]}, {"x": Finite("x", ["a", "b"])}, "network").columns == ("x",)


def test_cut_points() -> None:
    assert sample.cut_points(Bins(2), "x", np.array([1.0, 2.0, 3.0, 4.0]), None, None) == [3.0]
    assert sample.cut_points(Bins(2, width=True), "x", np.array([0.0, 1.0, 4.0]), None, None) == [2.0]


def test_states_and_declarations() -> None:
    assert [state_text(s) for s in (True, 3, 3.0, 2.5, "yes")] == ["true", "3", "3", "2.5", "yes"]
    assert sorted_states(["10", "9", "-1"]) == ["-1", "9", "10"]
    assert sorted_states(["b", "10", "9"]) == ["10", "9", "b"]
    assert declaration("x", ["a", "b"]) == Finite("x", ["a", "b"])
    assert declaration("x", Real) is Real
    assert repr(Distributed("wait", ExponentialNode(Gamma()))) == "Distributed('wait', Gamma())"
    a, b = infer.Values.of(np.array([1.0, 2.0, np.nan])), infer.Values.of(np.array([2.0]))
    assert ((a + b).n, sorted((a + b).few or ()), (a + b).different) == (3, [1.0, 2.0], None)
