"""Engines: one suite over all of them. What they gather is what a plain count of the rows gives, to the last bit the same."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.basis.variables import Bins, Count, Finite, Real
from suffice.engines import Block, Data, scan
from suffice.engines import gather as gathering
from suffice.engines.bitmaps import Bitmaps, merge_equal_rows
from suffice.engines.engine import ROWS, is_missing, sum_up
from suffice.engines.local import local
from suffice.engines.local.kept import Growing, Spilled, ValueStore, sum_of
from suffice.engines.partitions.partitions import PARTITION, place
from suffice.engines.partitions.workers import Piece, Stamp, deal_out
from suffice.engines.reading.frames import in_sorted_order
from suffice.engines.schema import NumberSummary
from suffice.engines.steps.bits import BitLayout
from suffice.engines.views import sample
from suffice.errors import DataError, SufficeNote, TooLarge
from suffice.numerics.kernels.counting import (
    count,  # what is loaded is used, also for tables as small as these
    moments,
)
from suffice.statistics import Counts, Moments, Request, Statistics
from tests.toy_engine import toy

ENGINES = ("memory", "spill", "stream", "toy1", "toy3", "toy17")
N = 2 * ROWS + 1234
STATES = {"a": ["a0", "a1", "a2"], "b": ["b0", "b1"], "c": [f"c{i:03}" for i in range(300)]}
DECLARED = {**{n: Finite(n, s) for n, s in STATES.items()}, "x": Real("x"), "y": Real("y"), "k": Count("k")}
REQUESTS = (
    Request(("a", "b")),
    Request(("b",)),
    Request(("c", "a")),
    Request(("b", "c", "a")),
    Request(()),
    Request((), ("x",)),
    Request(("a",), ("x", "y")),
    Request(("c", "a"), ("y", "k")),
)


def cells(n: int = N, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, n)
    columns: dict[str, Any] = {"a": a, "b": (a + rng.integers(0, 2, n)) % 2, "c": rng.integers(0, 300, n)}
    result: dict[str, Any] = {name: np.array(STATES[name])[codes] for name, codes in columns.items()}
    x = rng.normal(1e6, 1, n)
    return {**result, "x": x, "y": x - a + rng.normal(size=n), "k": rng.poisson(3, n), "w": rng.integers(0, 4, n) / 4}


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def opened(engine: str, folder: Path, table: dict[str, Any], variables: Any = None, **options: Any) -> Data:
    """The rows on an engine; files have groups of rows that do not fit the blocks."""
    known = variables if variables is not None else {"k": Count}
    if engine == "memory":
        return scan(table, known, **options)
    if engine.startswith("toy"):
        return toy(table, known, n=int(engine[3:]), size=ROWS, here=engine != "toy3", **options)
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(pa.table(table), path, row_group_size=7001)
    declared = {n: v for n, v in DECLARED.items() if n in table} if variables is None and engine == "stream" else variables
    declared = {"k": Count} if declared is None and "k" in table else declared
    return scan(path, declared, memory_limit=0, **options)


def brute(table: dict[str, Any], request: Request, weight: np.ndarray[Any, Any] | None = None) -> dict[tuple[str, ...], Any]:
    """A count, or the rows, of each configuration, by a plain loop."""
    n = len(table["a"])
    w = np.ones(n) if weight is None else weight
    keys = list(zip(*(table[v] for v in request.finite), strict=True)) if request.finite else [()] * n
    if not request.real:
        counts: Counter[tuple[str, ...]] = Counter()
        for key, x in zip(keys, w, strict=True):
            counts[key] += x
        return {k: v for k, v in counts.items() if v}
    rows: dict[tuple[str, ...], list[int]] = {}
    for i, key in enumerate(keys):
        rows.setdefault(key, []).append(i)
    values = np.column_stack([np.asarray(table[r], float) for r in request.real])
    return {k: (w[i].sum(), np.average(values[i], 0, w[i]), values[i], w[i]) for k, i in rows.items() if w[i].sum() > 0}


def assert_is(found: Counts | Moments, expected: dict[tuple[str, ...], Any]) -> None:
    shape = tuple(v.n_states for v in found.variables)
    codes = {tuple(v.code(s) for v, s in zip(found.variables, key, strict=True)): value for key, value in expected.items()}
    flat = {int(np.ravel_multi_index(k, shape)) if shape else 0: value for k, value in codes.items()}
    if isinstance(found, Counts):
        keys, values = found.listed()
        assert dict(zip(keys.tolist(), values.tolist(), strict=True)) == flat
        return
    assert found.keys.tolist() == sorted(flat)
    for g, key in enumerate(found.keys.tolist()):
        total, mean, rows, w = flat[key]
        assert found.count[g] == pytest.approx(total)
        assert found.mean[g] == pytest.approx(mean, rel=1e-13, abs=1e-13 * np.abs(rows).max())
        off = rows - mean
        assert found.scatter[g] == pytest.approx(
            (off * w[:, None]).T @ off, rel=1e-8, abs=1e-10 * total * (1 + np.abs(rows).max())
        )


def assert_identical(a: Statistics, b: Statistics) -> None:
    """The same to the last bit."""
    assert a.weight == b.weight
    assert a.requests == b.requests
    for x, y in zip(a, b, strict=True):
        for part in ("values", "keys", "count", "mean", "scatter"):
            if getattr(x, part, None) is not None:
                assert np.array_equal(getattr(x, part), getattr(y, part)), (x, part)


TABLE = cells()
COMPLETE = {n: c for n, c in TABLE.items() if n != "w"}


@cache
def counted_plainly(request: Request, weighted: bool = False) -> dict[tuple[str, ...], Any]:
    """The same for every engine."""
    return brute(TABLE, request, TABLE["w"] if weighted else None)


def test_gather_is_a_plain_count(engine: str, tmp_path: Path) -> None:
    data = opened(engine, tmp_path, COMPLETE)
    found = data.gather(REQUESTS)
    assert found.weight == data.weight == data.n_rows == N
    for request in REQUESTS:
        assert_is(found.answer(request), counted_plainly(request))


def test_weighted_gather_is_a_plain_count(engine: str, tmp_path: Path) -> None:
    found = opened(engine, tmp_path, TABLE, weights="w").gather(REQUESTS)
    assert found.weight == TABLE["w"].sum()
    for request in REQUESTS:
        assert_is(found.answer(request), counted_plainly(request, weighted=True))


def test_weights_are_repeated_rows(engine: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    small = {n: c[:500] for n, c in COMPLETE.items()}
    times = rng.integers(0, 3, 500)
    weighted = opened(engine, tmp_path, {**small, "w": times}, weights="w").gather(REQUESTS)
    repeated = opened(engine, tmp_path, {n: np.repeat(c, times) for n, c in small.items()}, DECLARED).gather(REQUESTS)
    assert weighted.weight == repeated.weight
    for request in REQUESTS:
        a, b = weighted.answer(request), repeated.answer(request)
        if isinstance(a, Moments) and isinstance(b, Moments):
            recoded = a.recoded(DECLARED)  # type: ignore[arg-type]
            assert recoded.mean == pytest.approx(b.mean)
            assert recoded.scatter == pytest.approx(b.scatter, abs=1e-7)
        elif isinstance(a, Counts) and isinstance(b, Counts):
            assert np.array_equal(a.recoded(DECLARED).dense(), b.dense())  # type: ignore[arg-type]


def test_the_weight_alone(engine: str, tmp_path: Path) -> None:
    data = opened(engine, tmp_path, TABLE, weights="w")
    assert data.gather([Request(())]).counts([]).total == TABLE["w"].sum() == data.weight
    unweighted = opened(engine, tmp_path, {"gap": np.where(np.arange(len(TABLE["w"])) % 2, None, "x"), **COMPLETE})
    assert unweighted.gather([Request(())]).counts([]).total == len(TABLE["w"])


def test_weights_as_an_array(engine: str, tmp_path: Path) -> None:
    by_array = opened(engine, tmp_path, COMPLETE, weights=TABLE["w"]).gather(REQUESTS)
    assert_identical(by_array, opened(engine, tmp_path, TABLE, weights="w").gather(REQUESTS))


def test_parts_add_up_to_the_whole(engine: str, tmp_path: Path) -> None:
    parts = [{n: c[i::3] for n, c in COMPLETE.items()} for i in range(3)]
    total = sum(opened(engine, tmp_path, p).gather(REQUESTS) for p in parts)
    assert isinstance(total, Statistics)
    for request in REQUESTS:
        assert_is(total.answer(request), counted_plainly(request))


def test_order_of_rows_and_columns_does_not_matter(engine: str, tmp_path: Path) -> None:
    order = np.random.default_rng(5).permutation(N)
    shuffled = {n: COMPLETE[n][order] for n in reversed(COMPLETE)}
    found = opened(engine, tmp_path, shuffled).gather(reversed(REQUESTS))
    for request in REQUESTS:
        assert_is(found.answer(request), counted_plainly(request))


@pytest.mark.parametrize("weights", [None, "w"])
def test_the_same_bits_on_any_engine_and_any_number_of_threads(engine: str, weights: str | None, tmp_path: Path) -> None:
    table = {**TABLE, "w": np.random.default_rng(7).uniform(size=N)}
    expected = scan(table, {"k": Count}, weights=weights).gather(REQUESTS, threads=1)
    for threads in (1, 2, 5):
        assert_identical(opened(engine, tmp_path, table, weights=weights).gather(REQUESTS, threads=threads), expected)


@pytest.mark.parametrize("weights", [None, "w"])
def test_the_same_bits_with_and_without_a_compiler(weights: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    table = {**TABLE, "w": np.random.default_rng(7).uniform(size=N)}
    expected = scan(table, {"k": Count}, weights=weights).gather(REQUESTS)
    monkeypatch.setattr(gathering, "SMALL", 2**40)
    for module in (count, moments):
        monkeypatch.delitem(sys.modules, module.__name__)
    assert_identical(scan(table, {"k": Count}, weights=weights).gather(REQUESTS), expected)
    assert "suffice.numerics.kernels.counting.count" not in sys.modules


def weighed(block: Block) -> dict[str, Any]:
    assert block.weight is not None
    assert block.n_rows <= ROWS
    return {
        "x": (block.weight * block.columns["x"]).sum(),
        "a": (np.bincount(block.columns["a"], block.weight, 3), block.n_rows),
    }


def test_several_gathers_and_folds_agree(engine: str, tmp_path: Path) -> None:
    data = opened(engine, tmp_path, TABLE, weights="w")
    first, second = data.gather(REQUESTS), data.gather(REQUESTS)
    assert_identical(first, second)

    folded = data.fold(weighed)
    assert folded["a"][0].tolist() == first.counts(["a"]).values.tolist()
    assert folded["a"][1] == N
    assert folded["x"] == pytest.approx((TABLE["x"] * TABLE["w"]).sum())
    assert folded["x"] == data.fold(weighed, threads=1)["x"]


def test_missing_cells_are_refused_and_counted(engine: str, tmp_path: Path) -> None:
    holes = {n: list(c) for n, c in COMPLETE.items()}
    for row in (0, ROWS, N - 1):
        holes["a"][row] = None
        holes["x"][row] = np.nan
    holes["y"][5] = np.nan
    with pytest.raises(DataError, match=r"'a' 3, 'y' 1, of 34,002 rows.*no row is ever dropped"):
        opened(engine, tmp_path, holes).gather([Request(("a", "b")), Request((), ("y",))])
    found = opened(engine, tmp_path, holes).gather([Request(("b", "c"))])
    assert_is(found.counts(["b", "c"]), counted_plainly(Request(("b", "c"))))


def test_where_columns_are_kept(tmp_path: Path) -> None:
    kinds = {"memory": np.ndarray, "spill": Spilled}
    for engine, kind in kinds.items():
        data = opened(engine, tmp_path, COMPLETE)
        assert data.known.n_rows == N
        assert isinstance(data.engine.seen["a"].column, kind)
    streamed = opened("stream", tmp_path, COMPLETE)
    streamed.gather([Request(("a",))])
    assert not streamed.engine.seen
    streamed.gather([Request(("a",))])
    assert isinstance(streamed.engine.seen["a"].column, Spilled)


def test_bins_and_late_states_in_a_spill(tmp_path: Path) -> None:
    table = {
        "x": TABLE["x"],
        "s": ["m"] * (N - 2) + ["a", "z"],
        "c": [f"s{i}" for i in range(200)] * 100 + [f"t{i}" for i in range(N - 20_000)],
    }
    spill, memory = opened("spill", tmp_path, table, {"x": Bins(7)}), scan(table, {"x": Bins(7)})
    assert dict(spill.schema) == dict(memory.schema)
    for name in table:
        assert np.array_equal(spill.take([name]).sample(10**9).columns[name], memory.take([name]).sample(10**9).columns[name])
    assert spill.schema["s"] == Finite("s", ["a", "m", "z"])
    assert_identical(spill.gather([Request(("x", "s")), Request(("c",))]), memory.gather([Request(("x", "s")), Request(("c",))]))


@pytest.mark.parametrize("kind", ["csv", "relation"])
def test_other_sources_on_the_files_engine(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import duckdb
    from pyarrow import csv

    monkeypatch.setattr("suffice.engines.reading.files.BLOCK", 2**18)
    table = pa.table(TABLE)
    csv.write_csv(table, tmp_path / "t.csv")
    source = tmp_path / "t.csv" if kind == "csv" else duckdb.from_arrow(table)
    expected = scan(TABLE, {"k": Count}, weights="w").gather(REQUESTS)
    for declared in ({"k": Count}, DECLARED):
        data = scan(source, declared, weights="w", memory_limit=0)
        assert_identical(data.gather(REQUESTS), expected)
        assert bool(data.engine.seen) is (declared is not DECLARED)
        assert_identical(data.gather(REQUESTS), expected)


def test_a_relation_is_free_again_after_an_error() -> None:
    import duckdb

    con = duckdb.connect()
    relation = con.sql("select case when i = 299999 then 'z' else 'a' end as s from range(300000) r(i)")
    with pytest.raises(DataError, match="row 300000, column 's': 'z' is not a state") as error:
        scan(relation, {"s": ["a", "b"]}).take(["s"]).sample(10**9).columns["s"]
    assert con.sql("select 1").fetchall() == [(1,)], error


@pytest.mark.parametrize("declared", [None, {"s": ["a", "m"]}])
def test_a_value_of_a_dictionary_that_occurs_late(declared: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.engines.reading.files.BATCH", 1000)
    pq.write_table(pa.table({"s": ["m"] * 5000 + ["a"] * 10 + ["z"]}), tmp_path / "t.parquet")
    data = scan(tmp_path / "t.parquet", declared)
    if declared is None:
        assert data.gather([Request(("s",))]).counts(["s"]).values.tolist() == [10, 5000, 1]
    else:
        with pytest.raises(DataError, match=r"t\.parquet, row 5011, column 's': 'z' is not a state"):
            data.take(["s"]).sample(10**9).columns["s"]


def test_large_means_cost_no_digits(engine: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(0).normal(size=N).round(6)
    small, large = ({"x": noise + shift, "y": noise} for shift in (0.0, 1e9))
    a, b = (opened(engine, tmp_path, t, {"x": Real, "y": Real}).gather([Request((), ("x", "y"))]) for t in (small, large))
    exact = ((large["x"] - 1e9) ** 2).sum() - (large["x"] - 1e9).sum() ** 2 / N
    assert b.moments([], ["x"]).scatter[0, 0, 0] == pytest.approx(exact, rel=1e-10)
    assert a.moments([], ["x"]).scatter[0, 0, 0] == pytest.approx(exact, rel=1e-8)


def test_sparse_tables(engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gathering, "DENSE", 100)
    few = {n: c[:40] for n, c in TABLE.items()}
    for weights in (None, "w"):
        found = opened(engine, tmp_path, few, DECLARED, weights=weights).gather([Request(("c", "a")), Request(("a", "b"))])
        table = found.counts(["c", "a"])
        assert table.keys is not None
        assert found.counts(["a", "b"]).keys is None
        assert_is(table, brute(few, Request(("c", "a")), few["w"] if weights else None))


def test_many_blocks_of_a_sparse_table(monkeypatch: pytest.MonkeyPatch) -> None:
    codes = np.random.default_rng(0).integers(0, 500, (4, 3 * ROWS))
    data = scan({f"v{i}": pa.array(c.astype(str)) for i, c in enumerate(codes)})
    table = data.gather([Request(("v0", "v1", "v2", "v3"))]).counts(["v0", "v1", "v2", "v3"])
    assert table.keys is not None
    assert table.total == 3 * ROWS
    assert len(table.keys) > 2.9 * ROWS


def test_too_large(monkeypatch: pytest.MonkeyPatch) -> None:
    n = 300
    data = scan({f"v{i}": [f"s{j}" for j in range(n)] for i in range(9)})
    with pytest.raises(TooLarge, match=r"1\.97e\+22 cells"):
        data.gather([Request(data.columns)])
    monkeypatch.setattr(gathering, "available_memory", lambda: 2.0**20)
    monkeypatch.setattr(gathering, "DENSE", 2**40)
    with pytest.raises(TooLarge, match=r"need .* MiB and 1\.0 MiB are free; the largest is over 'v0', 'v1', 'v2'"):
        data.gather([Request(("v0", "v1", "v2"))])


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_any_small_table(draw: st.DataObject) -> None:
    n = draw.draw(st.integers(1, 30))
    text = st.lists(st.sampled_from("pqr"), min_size=n, max_size=n)
    table: dict[str, Any] = {name: draw.draw(text) for name in "ab"}
    table["x"] = draw.draw(st.lists(st.floats(-1e6, 1e6), min_size=n, max_size=n))
    weight = np.array(draw.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)), float)
    if not weight.any():
        return
    requests = (Request(("a", "b")), Request(("b",), ("x",)), Request((), ("x",)))
    for w in (None, weight):
        found = scan(table, {"x": Real}, weights=w).gather(requests)  # two values would be states
        for request in requests:
            assert_is(found.answer(request), brute(table, request, w))


def open_files() -> set[str]:
    """The files that this process has open."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        try:
            found.add(os.readlink(link))
        except OSError:
            continue
    return found


def spills(files: Iterable[str], folder: Path) -> list[str]:
    return [f for f in files if f.startswith(str(folder)) and "(deleted)" in f]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks Linux for the open files")
def test_a_spill_has_no_name_and_goes_with_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    data = opened("spill", tmp_path, COMPLETE)
    data.gather([Request(("a",))])
    assert list(folder.iterdir()) == []
    assert len(spills(open_files(), folder)) == 1
    del data
    gc.collect()
    assert spills(open_files(), folder) == []


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="asks Linux for the open files")
def test_a_spill_goes_after_an_interrupt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "spill"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    calls: list[int] = []

    def interrupted(self: Spilled, chunk: Any) -> None:
        calls.append(len(spills(open_files(), folder)))
        if len(calls) > 1:
            raise KeyboardInterrupt

    monkeypatch.setattr(Spilled, "add", interrupted)
    data = opened("spill", tmp_path, COMPLETE)
    with pytest.raises(KeyboardInterrupt):
        print(data.known)
    assert calls == [1, 1]
    assert list(folder.iterdir()) == []
    gc.collect()
    assert spills(open_files(), folder) == []


def test_a_spill_goes_when_the_process_is_killed(tmp_path: Path) -> None:
    folder = tmp_path / "spill"
    folder.mkdir()
    pq.write_table(pa.table(COMPLETE), tmp_path / "t.parquet")
    program = (
        "import sys, time; from suffice.engines import scan\n"
        "data = scan(sys.argv[1], memory_limit=0); data.known; print('ready', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "t.parquet")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env={**os.environ, "TMPDIR": str(folder)}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(signal.SIGKILL)
    assert list(folder.iterdir()) == []


def test_no_space_for_the_spill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = opened("spill", tmp_path, COMPLETE)

    def full(**_: Any) -> Any:
        return open("/dev/full", "wb", buffering=0)

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    with pytest.raises(DataError, match="no space left for the encoded columns; set TMPDIR"):
        print(data.known)


def test_rows_of_an_unstable_source_are_read_together() -> None:
    import duckdb

    relation = duckdb.connect().sql("select i % 5 as g, (i * 7 % 3)::varchar as s, i * 1.0::double as x from range(50000) r(i)")
    shuffled = relation.order("random()")
    data = scan(shuffled, {"g": Finite})
    assert data.take(["g"]).sample(10**9).columns["g"].shape == (50_000,)
    rows = data.take(["g", "s", "x"]).sample(10**9).columns
    x, s, g = rows["x"], rows["s"], rows["g"]
    assert np.array_equal(g, x % 5)
    assert np.array_equal(s, x * 7 % 3)


def test_bins_of_many_rows_come_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (sample, local):
        monkeypatch.setattr(module, "SAMPLE", 1000)
    x = np.random.default_rng(0).uniform(size=10_500)
    with pytest.warns(SufficeNote, match="random sample"):
        cuts = scan({"x": x}, {"x": Bins(4)}).schema["x"].cuts
    assert cuts == pytest.approx((0.25, 0.5, 0.75), abs=0.05)
    assert cuts == scan({"x": x}, {"x": Bins(4)}).schema["x"].cuts
    x[1], x[3] = -100.0, 100.0
    assert scan({"x": x}, {"x": Bins(2, width=True)}).schema["x"].cuts == (0.0,)
    assert scan({"x": np.arange(10_500) % 2 * 1.0}, {"x": Bins(2)}).schema["x"].cuts == (1.0,)


def test_each_kernel_is_compiled_for_one_signature() -> None:
    """Whatever other tests called before in this process."""
    from suffice.numerics.kernels import warm
    from suffice.numerics.kernels.compiler.compiling import Kernel, kernels

    scan(TABLE, {"k": Count}, weights="w").gather(REQUESTS)
    scan(COMPLETE, {"k": Count}).gather(REQUESTS)
    seen: list[str] = []
    warm(lambda done, total, name: seen.append(name))
    assert {"count", "moments", "messages"} <= set(seen)
    for copy in (Kernel.whole, Kernel.in_numba):  # what Python calls, and what other kernels call
        assert {n for n, k in kernels.items() if len(copy(k).signatures) > 1} == set()


def test_importing_loads_only_numpy() -> None:
    heavy = ("pyarrow", "numba", "narwhals", "duckdb", "pandas", "polars", "scipy")
    program = f"import sys, suffice.engines.scan; print([m for m in {heavy!r} if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_a_large_file_is_read_by_the_way(tmp_path: Path) -> None:
    """A hostile megabyte is refused or read in well under two seconds."""
    hostile = {"quotes": b'a,b\n"' + b'""' * 500_000, "one line": b"a," * 500_000, "no end": b"a,b\n" + b"1" * 1_000_000}
    for name, content in hostile.items():
        path = tmp_path / f"{name}.csv"
        path.write_bytes(content)
        start = time.perf_counter()
        with pytest.raises(DataError):
            scan(path).schema  # noqa: B018
        assert time.perf_counter() - start < 20  # a hang, not a slow machine


def compiled_already() -> dict[str, list[str]]:
    """The files that the cache has of kernels that Python calls, where they are compiled as declared and not otherwise."""
    from suffice.numerics.kernels import _direct
    from suffice.numerics.kernels.compiler.compiling import kernels

    kept = {name: kernels[name].whole()._cache._cache_file for name in _direct()}
    found = {name: (file, list(file._load_index().values())) for name, file in kept.items() if hasattr(file, "_load_index")}
    return {n: [file._index_path, file._data_path(data[0])] for n, (file, data) in found.items() if len(data) == 1}


WARMING = """
import json, os, shutil, sys
from suffice.numerics.kernels import _modules, warm
from suffice.numerics.kernels.compiler.compiling import kernels

if __name__ == "__main__":
    for module in _modules().values():
        __import__(module)
    for name, files in json.loads(sys.argv[1]).items():
        place = kernels[name].whole()._cache.cache_path
        os.makedirs(place, exist_ok=True)
        for file in files:
            shutil.copy(file, place)
    print(warm(processes=2))
"""
"""Kernels that are compiled already are taken from where they are, and `warm` has the others to do."""


def test_warm_kernels_are_those_that_calls_use(tmp_path) -> None:
    """Nothing is compiled after `warm`, not even in another process, and nothing for two signatures."""
    from suffice.numerics.kernels import warm

    warm()
    script = (
        "import suffice as sf; bn = sf.load('alarm'); rows = bn.sample(30_000, seed=0); sf.fit(bn.dag, rows)\n"
        "for method in (sf.Orders(), sf.HillClimb(), sf.methods.ChowLiu(), sf.PC()): sf.search(rows, method=method)\n"
        "sf.search(bn.sample(500, seed=0).select(['CVP', 'PCWP', 'BP']), sf.Evidence(sf.BDeu(1)), sf.Exact())\n"
        "bn.marginals({'CVP': 'LOW'}), bn.query('CVP', {'BP': 'LOW'}), bn.predict(rows.slice(0, 3000), 'CVP')\n"
        "bn.query('CVP', {'BP': 'LOW'}, method=sf.methods.Gibbs(1000)), bn.query('CVP', method=sf.methods.LikelihoodWeighting())"
    )
    settings = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    words = [sys.executable, "-c", WARMING, json.dumps(compiled_already())]
    n_kernels = subprocess.run(words, check=True, env=settings, capture_output=True).stdout
    subprocess.run([sys.executable, "-c", script], check=True, env=settings)
    assert not list(tmp_path.rglob("*.2.nbc"))
    assert len(list(tmp_path.rglob("*.1.nbc"))) == int(n_kernels)


def test_requests_of_the_same_rows_are_pooled() -> None:
    x, xy = Request((), ("x",)), Request((), ("x", "y"))
    assert gathering.pool_requests([x, xy]) == {xy: (x, xy)}
    listed = gathering.table_of(np.array([7, 3, 7]), None)
    assert (listed.keys.tolist(), listed.values.tolist()) == ([3, 7], [1.0, 2.0])
    keys, group = gathering.group_rows(np.array([7, 3, 7]), 10)
    assert (keys.tolist(), group.tolist()) == ([3, 7], [1, 0, 1])


def test_small_sums() -> None:
    assert sum_of(np.array([1e308, 1e308])) == np.inf
    assert sum_up([0.5, 1.5]) == 2.0
    assert is_missing(np.array([0, 255], np.uint8)).tolist() == [False, True]
    assert is_missing(np.array([np.nan])).tolist() == [True]
    numbers = NumberSummary.of(np.array([1.0, np.nan])) + NumberSummary.of(np.array([3.0]))
    assert numbers == NumberSummary(n=2, total=4.0, least=1.0, most=3.0)
    assert sample.most_of(10, 20) == sample.most_of(10, None) == 2**64 - 1
    assert sample.most_of(2**14, 2**20) < 2**59


def test_columns_that_grow_and_values_that_are_kept() -> None:
    growing = Growing(None)
    for chunk in (np.array([1, 255], np.uint8), np.array([300], np.uint16)):
        growing.add(chunk)
    assert growing.column(None, np.dtype(np.uint16)).tolist() == [1, 65535, 300]
    store: ValueStore[Any] = ValueStore(100)
    small, large = store.keep(np.arange(3), 24), store.keep(np.arange(20), 160)
    assert (small.read().sum(), large.read().sum(), store.n_spilled) == (3, 190, 1)


def test_rows_are_sorted_in_parts() -> None:
    parts = [{"k": np.array([3, 1]), "x": np.array([0.3, 0.1])}, {"k": np.array([2]), "x": np.array([0.2])}]
    ordered = in_sorted_order(parts, {"k": np.dtype(int), "x": np.dtype(float)}, ["k"], 2**30)
    assert [part["x"].tolist() for part in ordered] == [[0.1, 0.2, 0.3]]


def test_pieces_are_dealt_out_and_rows_have_places() -> None:
    parts = deal_out([Piece(f, f, Stamp(0, 0), i, 10, 0) for i, f in enumerate("abc")], 2)
    assert [[piece.path for piece in part] for part in parts] == [["a"], ["b", "c"]]
    assert place(PARTITION + 2, 4) == "partition 2, block 3, row 5"


def test_equal_rows_are_merged_and_counted() -> None:
    assert BitLayout(("x", "y", "z"), (2, 200, 3)).first.tolist() == [0, 2, 2, 5]
    data = scan({"x": ["a", "b", "a", "a"], "y": ["u", "v", "v", "u"]})
    assert Bitmaps(data, list(data.schema.values())).count_full(np.array([[0, 1]], np.int32))[0].tolist() == [2, 1, 0, 1]
    data = scan({"x": ["a", "b"] * 9000})
    few = merge_equal_rows(data, list(data.schema.values()))
    assert few is not None
    assert (few.n_rows, few.weight) == (2, 18000.0)
