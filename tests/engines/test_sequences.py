"""Sequences: rows that belong together, in their order, on every engine the same."""

from __future__ import annotations

import datetime
import gc
import pickle
import warnings
from dataclasses import dataclass
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

import suffice as sf
from suffice.engines import Block, Data
from suffice.engines.local.kept import Spilled
from suffice.engines.sequences import arranged, arrangement, lagged
from suffice.engines.sequences.keys import TextCodes
from suffice.errors import DataError, SufficeError, SufficeNote, TooLarge
from tests.toy_engine import toy

ENGINES = ("memory", "spill", "csv", "lazy", "toy1", "toy3", "toy17")

SMALL = {
    "id": ["b", "a", "b", "a", "b"],
    "day": [3, 1, 1, 2, 2],
    "x": ["u", "v", "w", "u", "v"],
    "y": [0.5, 1.5, 2.5, 3.5, None],
}


@dataclass(frozen=True)
class Joined:
    """What adds by being put one after the other."""

    cells: tuple[Any, ...]

    def __add__(self, other: Joined) -> Joined:
        return Joined(self.cells + other.cells)


def found_in(s: sf.chains.Sequences) -> dict[str, tuple[Any, ...]]:
    """Everything that is in sequences."""
    return {n: joined.cells for n, joined in s.fold(cells).items()}


def cells(block: Block) -> dict[str, Any]:
    """Everything that is in blocks, one after the other."""
    assert block.lengths is not None
    assert block.lengths.sum() == block.n_rows
    columns = {n: ["-" if np.isnan(x) else x for x in c.tolist()] for n, c in block.columns.items()}
    return {n: Joined(tuple(c)) for n, c in {**columns, "w": block.weights.tolist(), "n": block.lengths.tolist()}.items()}


def table(n: int = 10) -> dict[str, Any]:
    """In each of n blocks of 100 rows some sequences of days from 5 on, mixed; x after x[-1], y a number, w by sequence."""
    rng = np.random.default_rng(0)
    parts = []
    for block in range(n):
        cuts = np.sort(rng.choice(np.arange(1, 100), 4, replace=False))
        own = np.searchsorted(cuts, np.arange(100), "right")
        day = np.arange(100) - np.append(0, cuts)[own]
        x = rng.integers(0, 3, 100)
        y = np.where(rng.random(100) < 0.1, np.nan, rng.normal(size=100))
        parts.append(np.stack([10 * block + own, day + 5, x, y, own + 1.0], axis=1)[rng.permutation(100)])
    by, day, x, y, w = np.concatenate(parts).T
    return {
        "id": by.astype(int),
        "day": day.astype(int),
        "x": [f"x{i:.0f}" for i in x],
        "y": [None if np.isnan(v) else v for v in y],
        "w": w,
    }


TABLE = table()


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(engine: str, folder: Path, rows: dict[str, Any], **how: Any) -> Data:
    """The rows on an engine."""
    if engine == "memory":
        return sf.scan(rows, **how)
    if engine.startswith("toy"):
        return toy(rows, n=int(engine[3:]), here=engine != "toy3", **how)
    if engine == "lazy":
        return sf.scan(pl.DataFrame(rows).lazy(), **how)
    path = folder / f"{len(list(folder.iterdir()))}.{'csv' if engine == 'csv' else 'parquet'}"
    if engine == "csv":
        pd.DataFrame(rows).to_csv(path, index=False)
        return sf.scan(path, **how)
    pq.write_table(pa.table(rows), path, row_group_size=37)
    return sf.scan(path, memory_limit=0, **how)


def expected(rows: dict[str, Any], names: tuple[str, ...] = ("x", "y")) -> dict[str, Any]:
    """The cells of sequences that are sorted by their keys."""
    order = sorted(range(len(rows["id"])), key=lambda i: (rows["id"][i], rows["day"][i]))
    states = sorted({*rows["x"]} - {None})
    found = {n: [rows[n][i] for i in order] for n in names}
    if "x" in found:
        found["x"] = [255 if v is None else states.index(v) for v in found["x"]]
    return {n: tuple("-" if v is None else v for v in c) for n, c in found.items()}


def test_rows_are_arranged_by_their_keys() -> None:
    s = sf.sequences(SMALL, by="id", order="day")
    assert s.labels == ("a", "b")
    assert s.lengths.tolist() == [2, 3]
    assert s.position.tolist() == [1, 3, 2, 4, 0]
    assert s.order_values.tolist() == [1, 2, 1, 2, 3]
    assert (s.n_sequences, s.n_steps, s.n_rows, s.weight, s.sequence_weight) == (2, 5, 5, 5.0, 2.0)
    found = found_in(s)
    assert found["x"] == (1, 0, 2, 1, 0)
    assert found["n"] == (2, 3)
    assert s.columns == ("x", "y")
    assert s.source is SMALL
    assert dict(s.missing) == {"x": 0, "y": 1}
    assert s.data.place(0, 4) == "sequence 'b', step 3 (row 1)"
    assert "2 sequences, 5 steps of 2 to 3, median 2.5, 2 columns" in repr(s)
    assert "2 sequences" in s._repr_html_()


@pytest.mark.parametrize("steps", [2**16, 64])
def test_every_engine_gives_the_same_sequences(engine: str, steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrangement, "STEPS", steps)
    monkeypatch.setattr(arrangement.cut_sequences, "__defaults__", (steps,))
    s = sf.sequences(opened(engine, tmp_path, TABLE, weights="w"), by="id", order="day")
    here = engine != "toy3" or steps == 2**16  # another process has its own size of blocks
    found = found_in(s) if here else None
    if found is not None:
        assert {n: found[n] for n in ("x", "y")} == expected(TABLE)
        assert found["n"] == tuple(s.lengths)
        assert found["w"] == expected(TABLE, ("w",))["w"]
    assert s.n_sequences == len(set(TABLE["id"])) == 50
    assert s.labels == tuple(map(str, sorted(set(TABLE["id"]))))
    assert s.n_steps == s.n_rows == 1000
    assert s.weight == TABLE["w"].sum()
    assert s.sequence_weight == 10 * 15
    assert s.position.tolist() == sorted(range(1000), key=lambda i: (TABLE["id"][i], TABLE["day"][i]))
    assert s.order_values.tolist() == [TABLE["day"][i] for i in s.position]
    assert s.schema["x"] == sf.Finite("x", ["x0", "x1", "x2"])
    assert dict(s.missing) == {"x": 0, "y": sum(v is None for v in TABLE["y"])}
    assert s.fold(max_length) == int(s.lengths.max()) or steps == 64


class Most(int):
    def __add__(self, other: int) -> Most:
        return Most(max(self, other))


def max_length(block: Block) -> Most:
    return Most(block.lengths.max())  # type: ignore[union-attr]


def test_the_order_of_the_rows_does_not_matter(engine: str, tmp_path: Path) -> None:
    mixed = {n: [c[i] for i in np.random.default_rng(1).permutation(1000)] for n, c in TABLE.items()}
    if engine.startswith("toy") and engine != "toy1":
        mixed = {n: list(c)[:100][::-1] + list(c)[100:] for n, c in TABLE.items()}
    lag = {"x": ("x", 0), "x[-1]": ("x", 1), "y": ("y", 0)}
    request = [sf.statistics.Request(("x", "x[-1]")), sf.statistics.Request(("x",))]
    one, other = (sf.sequences(opened(engine, tmp_path, rows, weights="w"), by="id", order="day") for rows in (TABLE, mixed))
    assert found_in(one) == found_in(other)
    a, b = (s.lagged(lag, first=1).gather(request).counts(["x", "x[-1]"]).values for s in (one, other))
    assert a.tobytes() == b.tobytes()


def without(rows: dict[str, Any], *lost: int) -> dict[str, Any]:
    return {n: [v for i, v in enumerate(c) if i not in lost] for n, c in rows.items()}


def inner_rows(rows: dict[str, Any]) -> list[int]:
    """A row of each of some blocks that is neither the first nor the last step of its sequence."""
    ends = pd.DataFrame(rows).groupby("id")["day"].max()
    days = zip(rows["id"], rows["day"], strict=True)
    return [i for i, (k, day) in enumerate(days) if 5 < day < ends[k]][::150]


def test_gaps_on_every_engine(engine: str, tmp_path: Path) -> None:
    lost = inner_rows(TABLE)
    # blocks keep their sizes, so that no sequence comes to lie in two partitions
    rows = {n: [*c] for n, c in TABLE.items()}
    for n in rows:
        for k, i in enumerate(lost):
            rows[n][i] = {"id": 1000 + k, "day": 1, "x": "x0", "y": 0.5, "w": 1.0}[n]
    ids = {k: v for k, v in zip(rows["id"], TABLE["id"], strict=True) if k >= 1000}
    rows["id"] = [float(ids[k]) + 0.5 if k >= 1000 else float(k) for k in rows["id"]]
    data = opened(engine, tmp_path, rows, weights="w")
    with pytest.raises(DataError, match=r"has no row between day .* where 1 step of 1 would be: gaps=Missing"):
        sf.sequences(data, by="id", order="day")
    s = sf.sequences(data, by="id", order="day", gaps=sf.chains.Missing())
    found = found_in(s)
    assert s.n_steps == 1000 + len(lost)
    assert sum(s.position < 0) == len(lost) == s.missing["x"]
    assert [i for i, x in enumerate(found["x"]) if x == 255] == np.flatnonzero(s.position < 0).tolist()
    assert set(np.diff(s.order_values)[np.diff(np.repeat(np.arange(s.n_sequences), s.lengths)) == 0]) == {1.0}
    assert s.weight == sum(rows["w"]) + sum(TABLE["w"][i] for i in lost)
    assert sorted(p for p in s.position if p >= 0) == list(range(1000))
    again = s.with_variables({"x": ["x2", "x1", "x0"]})
    assert found_in(again)["x"] == tuple(255 if x == 255 else 2 - x for x in found["x"])


def test_gaps() -> None:
    rows = {"id": [1, 1, 1, 2], "t": [0, 10, 40, 7], "x": ["a", "b", "a", "b"]}
    with pytest.raises(
        DataError, match=r"the sequence '1' has no row between t 10 and 40, where 2 steps of 10 would be.*Missing"
    ):
        sf.sequences(rows, by="id", order="t")
    s = sf.sequences(rows, by="id", order="t", gaps=sf.chains.Missing())
    assert s.position.tolist() == [0, 1, -1, -1, 2, 3]
    assert s.order_values.tolist() == [0, 10, 20, 30, 40, 7]
    assert s.lengths.tolist() == [5, 1]
    assert found_in(s)["x"] == (0, 1, 255, 255, 0, 1)
    assert dict(s.missing) == {"x": 2}
    assert s.data.place(0, 3) == "sequence '1', step 4 (put in for a gap)"
    with pytest.raises(TooLarge, match="999,999,999,998 steps"):
        sf.sequences({"t": [0, 1, 10**12], "x": [1.5, 2.5, 3.5]}, order="t", gaps=sf.chains.Missing())
    assert sf.sequences({"t": [1900, 1920, 1910], "x": [1.5, 2.5, 3.5]}, order="t").position.tolist() == [0, 2, 1]
    assert sf.sequences({"t": [1.0, 2.0, 4.0], "x": [1.5, 2.5, 3.5]}, order="t", gaps=sf.chains.Missing()).n_steps == 4
    assert sf.sequences({"t": [1.0, 2.5, 4.0], "x": [1.5, 2.5, 3.5]}, order="t", gaps=sf.chains.Missing()).n_steps == 3


TIMES: dict[str, tuple[Any, Any]] = {
    "whole numbers": ([10, 9, 11], [9.0, 10.0, 11.0]),
    "numbers": ([1.5, -2.5, 1e3], [-2.5, 1.5, 1000.0]),
    "large": ([2**60 + 1, 2**60, 2**60 + 2], [2.0**60] * 3),
    "texts of whole numbers": (["10", "9", "11"], [9.0, 10.0, 11.0]),
    "texts of numbers": (["1.5", "-2.5", "1e3"], [-2.5, 1.5, 1000.0]),
    "ISO dates": (["2020-01-02", "2019-12-31", "2020-11-01"], ["2019-12-31", "2020-01-02", "2020-11-01"]),
    "ISO times": (["2020-01-02T10:00", "2020-01-02T09:59", "2021-01-01T00:00"], None),
    "dates": ([datetime.date(2020, 1, 2), datetime.date(2019, 1, 3), datetime.date(2021, 1, 1)], None),
    "timestamps": (pd.to_datetime(["2020-01-02", "2019-01-03", "2021-01-01"]).tz_localize("Europe/Berlin"), None),
    "durations": (pd.to_timedelta([5, 1, 7], "s"), None),
    "times of day": ([datetime.time(10), datetime.time(9), datetime.time(11)], ["09:00:00", "10:00:00", "11:00:00"]),
    "categories": (pd.Categorical(["mid", "low", "top"], ["low", "mid", "top"], ordered=True), ["low", "mid", "top"]),
    "categories of numbers": (pd.Categorical(["10", "9", "11"]), [9.0, 10.0, 11.0]),
    "false and true": ([True, False], ["false", "true"]),
}


@pytest.mark.parametrize("name", TIMES)
@pytest.mark.parametrize("how", ["frame", "toy"])
def test_kinds_of_order(name: str, how: str) -> None:
    times, shown = TIMES[name]
    rows = pd.DataFrame({"t": times, "x": [0.5, 1.5, 2.5][: len(times)]})
    with warnings.catch_warnings():
        if name == "false and true":
            warnings.simplefilter("ignore")
        s = sf.sequences(rows if how == "frame" else toy(pa.Table.from_pandas(rows), n=1), order="t")
    assert s.position.tolist() == [1, 0, 2][: len(times)]
    assert found_in(s)["x"] == (1.5, 0.5, 2.5)[: len(times)]
    assert len(s.order_values) == len(times)
    assert shown is None or s.order_values.tolist() == shown
    if name == "dates":
        assert s.order_values.dtype.kind == "M"


@pytest.mark.parametrize("how", ["frame", "csv", "toy", "lazy"])
def test_other_text_is_sorted_as_text_and_noted(how: str, tmp_path: Path) -> None:
    rows = {"t": ["t9", "t10", "t8"], "x": [0.5, 1.5, 2.5]}
    kind = {"frame": "memory", "toy": "toy1"}.get(how, how)
    with pytest.warns(SufficeNote, match="'t': the order is sorted as text") as notes:
        s = sf.sequences(opened(kind, tmp_path, rows), order="t")
    assert found_in(s)["x"] == (1.5, 2.5, 0.5)
    assert len(notes) == 1
    assert s.order_values.tolist() == ["t10", "t8", "t9"]


def test_ids_are_compared_as_text(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,x\n007,a\n007,b\n7,a\n10,b\n9,a\n")
    assert sf.sequences(path, by="id").labels == ("007", "7", "10", "9")
    path.write_text("id,t,x\n007,1,a\n007,2,b\n10,1,a\n7,1,b\n9,1,a\n")
    assert sf.sequences(path, by="id", order="t").labels == ("007", "7", "9", "10")
    assert sf.sequences({"id": [2.0, 1.5], "t": [1, 1], "x": [0.5, 1.5]}, by="id", order="t").labels == ("1.5", "2")


def test_without_an_order_rows_stay_as_they_are(engine: str, tmp_path: Path) -> None:
    order = np.lexsort([TABLE["day"], TABLE["id"]])
    rows = {n: [c[i] for i in order] for n, c in TABLE.items() if n != "day"}
    s = sf.sequences(opened(engine, tmp_path, rows, weights="w"), by="id")
    assert s.position.tolist() == list(range(1000))
    assert s.order_values is None
    assert {n: found_in(s)[n] for n in ("x", "y")} == expected(TABLE)
    one = sf.sequences({"x": [0.5, 1.5]})
    assert (one.labels, one.lengths.tolist(), one.by, one.order) == (("1",), [2], None, None)


def test_columns_in_order_are_not_copied() -> None:
    y = np.arange(10.0)
    s = sf.sequences({"t": np.arange(10), "y": y}, order="t")
    assert s.data.known.n_rows
    column = s.data.engine.seen["y"].column  # type: ignore[attr-defined]
    assert np.shares_memory(column, y)


def test_larger_than_memory_means_a_spill(tmp_path: Path) -> None:
    s = sf.sequences(opened("spill", tmp_path, TABLE), by="id", order="day")
    assert s.data.known.n_rows
    engine: Any = s.data.engine
    assert all(isinstance(engine.seen[n].column, Spilled) for n in ("x", "y", "w"))
    assert isinstance(engine.arrangement.position, Spilled)
    ordered = {n: [c[i] for i in np.lexsort([TABLE["day"], TABLE["id"]])] for n, c in TABLE.items()}
    s = sf.sequences(opened("spill", tmp_path, ordered), by="id", order="day")
    assert s.data.engine.seen == {}  # nothing to sort, and so nothing is read before it is needed
    assert {n: found_in(s.select(["x", "y"]))[n] for n in ("x", "y")} == expected(TABLE)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "unknown by": ({}, {"by": "idd"}, "the data have no column 'idd', which is by=; did you mean 'id'?"),
    "unknown order": ({}, {"by": "id", "order": "dai"}, "no column 'dai', which is order="),
    "both": ({}, {"by": "id", "order": "id"}, "both the column 'id'"),
    "no name": ({}, {"by": 3}, "name of a column, not 3"),
    "twice": ({"day": [3, 1, 1, 2, 3]}, {"by": "id", "order": "day"}, "row 5.*: id 'b' with day 3 is there twice"),
    "twice, one sequence": ({}, {"order": "day"}, "row 3.*: day 1 is there twice"),
    "missing order": ({"day": [3, None, 1, 2, 2]}, {"by": "id", "order": "day"}, "row 2, column 'day': the order is missing"),
    "missing text": (
        {"day": ["3", "", "1", "2", "2"]},
        {"by": "id", "order": "day"},
        "row 2, column 'day': the order is missing",
    ),
    "missing word": (
        {"day": ["c", "a", "a", "NA", "b"]},
        {"by": "id", "order": "day", "missing": ["NA"]},
        "row 4, column 'day': the order is missing",
    ),
    "missing number": (
        {"day": [3, 1, -99, 2, 2]},
        {"by": "id", "order": "day", "missing": [-99]},
        "row 3, column 'day': the order is missing",
    ),
    "missing id": (
        {"id": ["b", "a", None, "a", "b"]},
        {"by": "id", "order": "day"},
        "row 3, column 'id': the sequence is missing",
    ),
    "infinite": ({"day": [3.5, np.inf, 1, 2, 2]}, {"by": "id", "order": "day"}, "row 2, column 'day': 'inf' is not a finite"),
    "apart": ({}, {"by": "id"}, "row 3: the sequence 'b' goes on after rows of another"),
    "weights": (
        {"w": [1, 2, 1, 2, 3]},
        {"by": "id", "order": "day", "weights": "w"},
        r"sequence 'b', step 2 \(.*row 5\): the weight 3 is not that of the step before, 1",
    ),
    "weights as by": ({}, {"by": "day", "weights": "day"}, "'day' holds the weights"),
    "lists": ({"day": [[1], [2], [3], [4], [5]]}, {"order": "day"}, "'day' has the type list"),
    "gaps": ({}, {"by": "id", "gaps": "missing"}, r"gaps are Refuse\(\) or Missing\(\)"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("engine", ["memory", "spill", "toy1"])
def test_what_is_refused(name: str, engine: str, tmp_path: Path) -> None:
    other, how, message = REFUSED[name]
    options = {k: how.pop(k) for k in ("weights", "missing") if k in (how := dict(how))}
    with pytest.raises(SufficeError, match=message):
        sf.sequences(opened(engine, tmp_path, {**SMALL, **other}, **options), **how)


def test_nothing_but_keys() -> None:
    with pytest.raises(DataError, match="no columns besides 'id'"):
        sf.sequences({"id": [1, 2]}, by="id")
    with pytest.raises(DataError, match="already"):
        sf.sequences(sf.sequences(SMALL, by="id", order="day"))
    with pytest.raises(DataError, match="already"):
        sf.sequences(sf.sequences(SMALL, by="id", order="day").data)
    with pytest.raises(DataError, match="these are sequences"):
        sf.scan(sf.sequences(SMALL, by="id", order="day"))


def test_weights_of_rows_in_a_file(tmp_path: Path) -> None:
    rows = {n: c for n, c in TABLE.items() if n != "w"}
    for engine in ("memory", "csv", "spill"):
        s = sf.sequences(opened(engine, tmp_path, rows, weights=TABLE["w"]), by="id", order="day")
        assert found_in(s)["w"] == expected(TABLE, ("w",))["w"]
        assert found_in(s.with_variables({"x": ["x2", "x1", "x0"]}))["w"] == expected(TABLE, ("w",))["w"]
    with pytest.raises(DataError, match="3 weights for 1,000 rows"):
        sf.sequences(rows, by="id", order="day", weights=[1, 2, 3])


def test_what_partitions_said_of_their_keys_is_not_kept() -> None:
    def n_looked() -> int:
        gc.collect()
        return sum(type(x) is arrangement.Looked for x in gc.get_objects())  # isinstance would ask dead proxies

    before = n_looked()
    s = sf.sequences(toy(SMALL, n=1, size=2), by="id", order="day")
    assert n_looked() == before
    assert s.position.tolist() == sf.sequences(SMALL, by="id", order="day").position.tolist()


def test_sequences_in_several_partitions_are_refused() -> None:
    with pytest.raises(DataError, match=r"'a' has rows in partition 1 and in partition 2; .* repartition by 'id'"):
        sf.sequences(toy(SMALL, n=3, size=2), by="id", order="day")
    with pytest.raises(DataError, match="without by=, all rows are one sequence"):
        sf.sequences(toy(SMALL, n=3, size=2))
    mixed = toy({"id": [1, 2], "t": ["1", "a"], "x": [0.5, 1.5]}, n=3, size=1)
    with pytest.raises(DataError, match="numbers in partition 1 and text in partition 2"):
        sf.sequences(mixed, by="id", order="t")


def test_a_place_is_a_step_of_a_sequence(engine: str, tmp_path: Path) -> None:
    s = sf.sequences(opened(engine, tmp_path, TABLE), by="id", order="day")
    number = list(s.arrangement.spans)[-1]
    first = s.arrangement.spans[number][0]
    assert s.data.place(number, 1).startswith(f"sequence '{s.labels[first]}', step 2 (")
    assert s.lagged({"x": ("x", 1)}, first=2).place(number, 0).startswith(f"sequence '{s.labels[first]}', step 3 (")
    (_, part), *_ = s.split(5, 0)
    number, (first, _) = next((n, span) for n, span in part.arrangement.spans.items() if span[0] < span[1])
    assert part.data.place(number, 0).startswith(f"sequence '{part.labels[first]}', step 1 (")


def test_lagged_rows(engine: str, tmp_path: Path) -> None:
    s = sf.sequences(opened(engine, tmp_path, TABLE, weights="w"), by="id", order="day")
    names = {"x": ("x", 0), "x[-1]": ("x", 1), "y[-2]": ("y", 2), "x[-9]": ("x", 9)}
    data = s.lagged(names)
    assert data.schema["x[-1]"] == sf.Finite("x[-1]", ["x0", "x1", "x2"])
    assert data.schema["y[-2]"] == sf.Real("y[-2]")
    frame = pd.DataFrame({**TABLE, "t": 0}).sort_values(["id", "day"])
    for new, (column, lag) in names.items():
        frame[new] = frame.groupby("id")[column].shift(lag)
    assert dict(data.missing) == {n: int(frame[n].isna().sum()) for n in names}
    late = s.lagged({"x": ("x", 0), "x[-1]": ("x", 1)}, first=1, last=7)
    kept = frame[(frame["day"] > 5) & (frame["day"] <= 12)]
    assert late.n_rows == len(kept)
    assert late.weight == kept["w"].sum()
    counts = late.gather([sf.statistics.Request(("x[-1]", "x"))]).counts(["x[-1]", "x"]).values
    brute = kept.groupby(["x[-1]", "x"])["w"].sum().to_numpy().reshape(3, 3)
    assert counts.tolist() == brute.tolist()
    held, number = late.hold(), next(iter(s.arrangement.spans))
    assert held.place(0, 8) == late.place(number, 8)
    assert [d.n_rows for d in (held, late.sample(5), late.select(["x"]))] == [len(kept), 5, len(kept)]
    with pytest.raises(SufficeError, match="missing cells"):
        s.lagged({"x": ("x", 0), "x[-1]": ("x", 1)}).gather([sf.statistics.Request(("x[-1]", "x"))])
    with pytest.raises(SufficeError, match="no sequence has a step there"):
        s.lagged({"x": ("x", 0)}, first=1000).gather([sf.statistics.Request(("x",))])


def test_searches_and_fits_of_lagged_rows(engine: str, tmp_path: Path) -> None:
    s = sf.sequences(opened(engine, tmp_path, TABLE), by="id", order="day")
    late = s.lagged({"x": ("x", 0), "x[-1]": ("x", 1), "x[-2]": ("x", 2)}, first=2)
    here = sf.sequences(TABLE, by="id", order="day").lagged({"x": ("x", 0), "x[-1]": ("x", 1), "x[-2]": ("x", 2)}, first=2)
    assert sf.search(late).score == pytest.approx(sf.search(here).score)
    assert sf.search(late, method=sf.PC()).cpdag == sf.search(here, method=sf.PC()).cpdag
    one, other = (sf.fit({"x": ["x[-1]"], "x[-1]": [], "x[-2]": []}, d)["x"].probs for d in (late, here))
    assert np.allclose(one, other, rtol=1e-12)


def test_steps_of_lagged_rows_refuse_what_cannot_be() -> None:
    s = sf.sequences(SMALL, by="id", order="day")
    with pytest.raises(SufficeError, match="the lag of 'x' is a whole number of at least 0"):
        s.lagged({"x": ("x", -1)})
    with pytest.raises(DataError, match="no column 'id'"):
        s.lagged({"i": ("id", 1)})
    with pytest.raises(DataError, match="at least one"):
        s.lagged({})
    both = s.lagged({"x": ("x", 0), "x[-1]": ("x", 1)})
    with pytest.raises(DataError, match="declared differently"):
        both.with_variables({"x": sf.Finite("x", ["u", "v", "w"]), "x[-1]": sf.Finite("x[-1]", ["w", "v", "u"])})
    turned = both.with_variables({"x": ["w", "v", "u"]})
    assert turned.schema["x[-1]"] == sf.Finite("x[-1]", ["w", "v", "u"])


def test_whole_sequences_are_parted_and_redrawn(engine: str, tmp_path: Path) -> None:
    s = sf.sequences(opened(engine, tmp_path, TABLE, weights="w"), by="id", order="day")
    seen: list[str] = []
    for train, test in s.split(5, 3):
        assert train.n_sequences + test.n_sequences == 50
        assert abs(test.n_sequences - 10) <= 1
        assert train.weight + test.weight == s.weight
        assert set(train.labels).isdisjoint(test.labels)
        assert found_in(test)["n"] == tuple(test.lengths)
        assert [TABLE["id"][i] for i in test.position] == np.repeat([int(i) for i in test.labels], test.lengths).tolist()
        assert [TABLE["day"][i] for i in test.position] == test.order_values.tolist()
        seen += test.labels
        held = test.hold()
        assert found_in(held) == found_in(test)
        assert held.labels == test.labels
        one, other = (next(n for n, (a, b) in part.arrangement.spans.items() if b > a) for part in (held, test))
        assert held.data.place(one, 0) == test.data.place(other, 0)
        assert held.position.tolist() == test.position.tolist()
        (again, _), *_ = held.split(2, 0)
        assert set(again.labels) < set(test.labels)
        assert found_in(again) == found_in(next(iter(test.split(2, 0)))[0])
    assert sorted(seen, key=int) == list(s.labels)
    drawn = s.resample(7)
    assert drawn.n_sequences < 50
    plain = sf.sequences(opened(engine, tmp_path, {n: c for n, c in TABLE.items() if n != "w"}), by="id", order="day").resample(7)
    assert plain.sequence_weight == 50
    assert plain.labels == drawn.labels
    found = found_in(plain)
    assert set(found["w"]) >= {1.0, 2.0}
    assert found_in(plain.hold()) == found
    assert plain.weight == sum(found["w"])
    assert plain.lagged({"x": ("x", 1)}, first=1).weight == plain.weight - 50


def test_folds_want_enough_sequences() -> None:
    with pytest.raises(DataError, match="2 sequences cannot be dealt to 3 folds"):
        list(sf.sequences(SMALL, by="id", order="day").split(3, 0))


def test_select_and_declare(engine: str, tmp_path: Path) -> None:
    s = sf.sequences(opened(engine, tmp_path, TABLE), by="id", order="day")
    assert s.select(["y"]).columns == ("y",)
    declared = s.with_variables({"x": ["x2", "x1", "x0"], "y": sf.Bins([0.0])})
    found, before = found_in(declared), found_in(s)
    assert found["x"] == tuple(2 - x for x in before["x"])
    assert found["y"] == tuple(255 if y == "-" else int(y >= 0) for y in before["y"])
    (_, part), *_ = declared.split(5, 0)
    assert part.with_variables({"x": ["x0", "x1", "x2"]}).schema["x"].states == ("x0", "x1", "x2")  # type: ignore[union-attr]
    with pytest.raises(DataError, match="no column 'day'"):
        s.select(["day"])


def test_columns_are_passed_on_as_they_came(tmp_path: Path) -> None:
    for engine in ("memory", "spill", "toy3"):
        s = sf.sequences(opened(engine, tmp_path, TABLE), by="id", order="day")
        kept = [k for some in s.data.map(kept_days, keep=["day"]) for k in some]
        assert kept == s.order_values.tolist()


def kept_days(block: Block) -> list[Any]:
    return block.kept["day"].to_pylist()  # type: ignore[no-any-return]


def test_mixed_blocks_are_whole_sequences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrangement.cut_sequences, "__defaults__", (64,))
    s = sf.sequences(TABLE, by="id", order="day")
    found = s.data.walk(lambda state, block: [*state, *block.lengths.tolist()], [], seed=1)
    assert sorted(found) == sorted(s.lengths)
    assert found != s.lengths.tolist()


@pytest.mark.parametrize("limit", [0, None])
def test_rows_that_come_in_another_order_each_time(limit: int | None) -> None:
    """Keys and columns of a relation are read in one pass, as another pass would not agree with it."""
    rows = pa.table(TABLE)
    s = sf.sequences(duckdb.sql("select * from rows order by random()"), by="id", order="day", memory_limit=limit)
    assert {n: found_in(s)[n] for n in ("x", "y")} == expected(TABLE)
    declared = s.with_variables({"x": ["x2", "x1", "x0"]})
    assert found_in(declared)["x"] == tuple(2 - x for x in expected(TABLE)["x"])
    assert found_in(declared)["y"] == expected(TABLE)["y"]
    assert len(rows)


def test_data_of_a_view_are_held_first() -> None:
    data = sf.scan(TABLE).resample(0)
    with pytest.raises(DataError, match="twice"):
        sf.sequences(data, by="id", order="day")
    (_, part), *_ = sf.scan(TABLE).split(2, 0)
    s = sf.sequences(part, by="id", order="day", gaps=sf.chains.Missing())
    assert s.n_steps - s.missing["x"] == 500


def test_columns_that_were_read_are_not_read_again() -> None:
    data = sf.scan(TABLE)
    assert data.known.n_rows
    s = sf.sequences(data, by="id", order="day")
    assert found_in(s)["x"] == expected(TABLE)["x"]
    assert data.engine.seen["x"].column[0:3].tolist() == [int(x[1]) for x in TABLE["x"][:3]]  # type: ignore[attr-defined]


def test_steps_travel() -> None:
    view = sf.sequences(TABLE, by="id", order="day").resample(1).data.engine.view  # type: ignore[attr-defined]
    assert pickle.loads(pickle.dumps(view)).times[0].tolist() == view.times[0].tolist()


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_any_small_table(draw: st.DataObject) -> None:
    """Whatever the keys, the rows come in the order of a plain sort, and gaps are what a plain loop finds."""
    keys = draw.draw(st.lists(st.tuples(st.sampled_from("abc"), st.integers(-6, 12)), min_size=1, max_size=12, unique=True))
    rows = {"k": [k for k, _ in keys], "t": [t for _, t in keys], "y": [float(i) for i in range(len(keys))]}
    order = sorted(range(len(keys)), key=lambda i: keys[i])
    s = sf.sequences(rows, by="k", order="t", gaps=sf.chains.Missing())
    assert [p for p in s.position if p >= 0] == order
    jumps = [b[1] - a[1] for a, b in zip(sorted(keys), sorted(keys)[1:], strict=False) if a[0] == b[0]]
    spacing = int(np.gcd.reduce(jumps)) if jumps else 1
    assert s.n_steps == len(keys) + sum(j // spacing - 1 for j in jumps)
    again = sf.sequences(toy(rows, n=1, size=3), by="k", order="t", gaps=sf.chains.Missing())
    assert found_in(again) == found_in(s)
    assert again.position.tolist() == s.position.tolist()


def test_keys_in_their_order() -> None:
    words = TextCodes("the sequence")
    assert (words.encode(pa.array(["b", "a", "b"])).tolist(), list(words.codes)) == ([0, 1, 0], ["b", "a"])
    assert words.in_turn() == ["a", "b"]
    words = TextCodes("the sequence")
    words.encode(pa.array(["10", "9", "-1"]))
    assert words.in_turn() == ["-1", "9", "10"]
    assert arrangement.in_order(np.array([0, 0, 1]), np.array([1, 2, 1]))
    assert not arrangement.in_order(np.array([1, 0]), None)
    assert arrangement.sorting(np.array([1, 0, 1]), np.array([2, 5, 1])).tolist() == [1, 2, 0]


def test_places_of_sequences_and_steps() -> None:
    assert arrangement.starts_of(np.array([2, 3])).tolist() == [0, 2, 5]
    assert arrangement.cut_sequences(np.array([0, 2, 4, 9, 10, 11]), 4).tolist() == [0, 2, 3, 5]
    assert arranged.lacking_before(np.array([0, 0, 1]), np.array([1, 4, 9]), 1).tolist() == [0, 2, 0]
    assert arranged.times_with_gaps(np.array([1, 4]), np.array([0, 2]), 1).tolist() == [1, 2, 3, 4]
    looked = arrangement.Looked(3, True, spacing=1)
    looked.distances[:] = 2**62
    assert looked.n_lacking == 3 * 2**62
    assert lagged.places_of(np.array([2, 3])).tolist() == [0, 1, 0, 1, 2]
    assert lagged.lag_cells(np.array([1, 2, 3, 4], np.uint8), np.array([0, 1, 0, 1]), 1).tolist() == [255, 1, 255, 3]
