"""Every learner on Spark: from files that its workers read, and from frames; what goes wrong on the way; what is refused."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice as sf
from suffice.engines import Data
from suffice.engines import gather as gathering
from suffice.engines import spark as engine
from suffice.engines.partitions.workers import on_own_disk
from suffice.errors import DataError, SufficeError, TooLarge
from tests.engines.test_one_door import FINITE, HOLED, LEARNERS, WHOLE, alike, learned_here, some

SLOW = {"pseudo-likelihood, many neighbours", "hill climbing, few equal rows"}


def written(folder: Path, table: dict[str, Any], n_files: int = 3, group: int = 100) -> str:
    """Parquet files of a table, each with whole sequences, in row groups of so many rows."""
    rows = pa.table({k: pa.array(v, from_pandas=True) for k, v in table.items()})
    folder.mkdir(parents=True, exist_ok=True)
    size = -(-len(rows) // n_files // 20) * 20  # the sequences have 20 steps
    for i in range(n_files):
        pq.write_table(rows.slice(i * size, size), folder / f"{i}.parquet", row_group_size=group)
    return str(folder / "*.parquet")


def on_spark(session: Any, folder: Path, table: dict[str, Any], n: int | None = None, **how: Any) -> Data:
    known = {"k": sf.Count} if "k" in table else None
    return sf.scan(written(folder, table), known, engine=sf.Spark(session, partitions=n), **how)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_runs_on_spark(session: Any, tmp_path: Path, name: str) -> None:
    table, learn = LEARNERS[name]
    alike(learn(on_spark(session, tmp_path, table, 3)), learned_here(name))


@pytest.mark.parametrize("n", [1, 5, 17])
@pytest.mark.parametrize("name", ["fit tables", "fit numbers", "orders", "PC, G squared", "EM of tables", "logistic", "schema"])
def test_partitions_do_not_matter(session: Any, tmp_path: Path, name: str, n: int) -> None:
    table, learn = LEARNERS[name]
    alike(learn(on_spark(session, tmp_path, table, n)), learned_here(name))


@pytest.mark.parametrize(
    "name", ["fit tables", "fit numbers", "orders", "EM with numbers", "mixture", "missingness", "bootstrap"]
)
def test_rows_of_a_frame(session: Any, tmp_path: Path, name: str) -> None:
    table, learn = LEARNERS[name]
    frame = session.read.parquet(str(Path(written(tmp_path, table)).parent))
    data = sf.scan(frame, engine=sf.Spark(session, scratch=tmp_path))
    kept = list(tmp_path.glob("suffice-*"))
    assert len(kept) == 1
    alike(learn(data), learned_here(name))
    del data
    gc.collect()
    assert not list(tmp_path.glob("suffice-*"))  # removed with the data


def test_tables_have_the_same_bits(session: Any, tmp_path: Path) -> None:
    table = some(WHOLE, *FINITE)
    requests = [sf.statistics.Request(("a", "b")), sf.statistics.Request(("b", "c", "l"))]
    for n in (1, 3, 17):
        there, here = (d.gather(requests) for d in (on_spark(session, tmp_path, table, n), sf.scan(table)))
        for request in requests:
            assert there.counts(list(request.names)).values.tobytes() == here.counts(list(request.names)).values.tobytes()


def test_large_sums_are_added_by_the_workers(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "MOST", 0)
    monkeypatch.setattr(engine, "FEW", 1)
    table, learn = LEARNERS["fit numbers"]
    alike(learn(on_spark(session, tmp_path, table, 5)), learn(sf.scan(table)))


def test_tables_beyond_memory_are_refused_with_their_size(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each partition sends its tables, so that more partitions need more memory."""
    states = [f"s{i}" for i in range(20)]
    paths, names = written(tmp_path, dict.fromkeys("abcde", states * 30)), tuple("abcde")
    few, many = (sf.scan(paths, dict.fromkeys(names, states), engine=sf.Spark(session, partitions=n)) for n in (2, 16))
    monkeypatch.setattr(gathering, "available_memory", lambda: 2**28)  # a table has 24 MiB
    assert few.gather([sf.statistics.Request(names)]).counts(names).values.sum() == 600
    with pytest.raises(TooLarge, match=r"the tables asked for need .*B and .*B are free; the largest is over"):
        many.gather([sf.statistics.Request(names)])


def test_blocks_that_are_lost_or_damaged_are_made_again(session: Any, tmp_path: Path) -> None:
    table = {**some(WHOLE, "x"), "w": np.arange(len(WHOLE["x"])) % 3}
    data = sf.scan(written(tmp_path / "rows", table), weights="w", engine=sf.Spark(session, scratch=tmp_path))
    held = data.hold()
    expected = sf.scan(table, weights="w").gather([sf.statistics.Request((), ("x",))]).moments([], ["x"]).mean
    for harm in (lambda _: None, Path.unlink, lambda p: p.write_bytes(p.read_bytes()[:-9]), lambda _: None):
        np.testing.assert_allclose(held.gather([sf.statistics.Request((), ("x",))]).moments([], ["x"]).mean, expected, rtol=1e-12)
        files = list(tmp_path.glob("suffice-*/*.blocks"))
        assert files
        for path in files:
            harm(path)
    del held
    gc.collect()
    assert not list(tmp_path.glob("suffice-*"))


def test_blocks_on_the_own_disks_of_workers(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where there is no place that all reach: they are kept among Spark's own files, and removed with the data."""
    monkeypatch.setattr(sf.Spark, "has_scratch", False)
    held = on_spark(session, tmp_path / "rows", some(WHOLE, "x"), 3).hold()
    folder = held.engine.blocks.folder
    assert not folder.is_absolute()
    for _ in range(2):
        mean = held.gather([sf.statistics.Request((), ("x",))]).moments([], ["x"]).mean
        np.testing.assert_allclose(mean, [[WHOLE["x"].mean()]], rtol=1e-12)
    (there,) = set(session.sparkContext.parallelize([0, 0], 2).map(lambda _: str(on_own_disk(folder))).collect())
    assert sorted(path.name for path in Path(there).glob("*.blocks")) == ["0.blocks", "1.blocks", "2.blocks"]
    del held
    gc.collect()
    end = time.monotonic() + 60
    while Path(there).exists() and time.monotonic() < end:
        time.sleep(0.1)
    assert not Path(there).exists()


def test_wrong_cells_are_named_by_file_or_partition(session: Any, tmp_path: Path) -> None:
    table = {"a": ["u"] * 250 + ["w"] + ["u"] * 49}
    with pytest.raises(DataError, match=r"/2.parquet, row 51, column 'a': 'w' is not a state"):
        sf.scan(written(tmp_path, table), {"a": ["u", "v"]}, engine=sf.Spark(session)).schema  # noqa: B018
    frame = session.read.parquet(str(tmp_path))
    with pytest.raises(DataError, match=r"^partition \d, row \d+, column 'a': 'w' is not a state"):
        sf.scan(frame, {"a": ["u", "v"]}).schema  # noqa: B018


def text(folder: Path, table: dict[str, Any], mark: str = ",", decimal: str = ".") -> str:
    """Text files of a table, of different lengths, the last without rows."""
    cells = zip(*table.values(), strict=True)
    lines = [mark.join("" if c is None else str(c).replace(".", decimal) for c in row) for row in cells]
    for i, part in enumerate((lines[:50], lines[50:], [])):
        (folder / f"{i}.csv").write_text("\n".join([mark.join(table), *part]) + "\n")
    return str(folder / "*.csv")


@pytest.mark.parametrize("how", [{}, {"separator": ";", "decimal": ","}])
@pytest.mark.parametrize("name", ["fit tables", "fit numbers", "EM with numbers", "Poisson", "schema", "bins", "log-likelihood"])
def test_workers_read_text(session: Any, tmp_path: Path, name: str, how: dict[str, str]) -> None:
    table, learn = LEARNERS[name]
    paths, known = text(tmp_path, table, *how.values()), {"k": sf.Count} if "k" in table else None
    here, there = (sf.scan(paths, known, **how, **more) for more in ({}, {"engine": sf.Spark(session, partitions=2)}))
    assert there.engine.text_columns(["a"]) == here.engine.text_columns(["a"])
    alike(learn(there), learn(here))


def test_text_is_held_and_weighed(session: Any, tmp_path: Path) -> None:
    table = {**some(WHOLE, "a", "x"), "w": np.arange(len(WHOLE["x"])) % 3}
    paths, requests = text(tmp_path, table), [sf.statistics.Request(("a",)), sf.statistics.Request((), ("x",))]
    here = sf.scan(paths, weights="w").gather(requests)
    held = sf.scan(paths, weights="w", engine=sf.Spark(session)).hold()
    for _ in range(2):
        there = held.gather(requests)
        assert there.counts(["a"]).values.tolist() == here.counts(["a"]).values.tolist()
        np.testing.assert_allclose(there.moments([], ["x"]).mean, here.moments([], ["x"]).mean, rtol=1e-12)


def test_wrong_cells_of_text_are_named_by_line(session: Any, tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\nu,1\n")
    (tmp_path / "2.csv").write_text('a,b\nu,1\n"u",2\nw,3\n')
    with pytest.raises(DataError, match=r"2.csv, line 4, column 'a': 'w' is not a state"):
        sf.scan(tmp_path / "*.csv", {"a": ["u", "v"]}, engine=sf.Spark(session)).schema  # noqa: B018
    (tmp_path / "2.csv").write_text("a,b\nu\n")
    with pytest.raises(DataError, match=r"2.csv, line 2: found 1 field where the header has 2"):
        sf.scan(tmp_path / "*.csv", engine=sf.Spark(session)).schema  # noqa: B018


def refusals(session: Any, folder: Path) -> dict[str, tuple[Callable[[], Any], str]]:
    (folder / "rows.conll").write_text("a b\n\n")
    table = written(folder / "p", {"a": ["u", "v"] * 30})
    numbers = written(folder / "n", {"a": np.arange(60.0), "b": np.arange(60.0) ** 2})
    stream = session.readStream.format("rate").load()
    return {
        "no session": (lambda: sf.Spark("local"), "Spark is given a session"),
        "no partitions": (lambda: sf.Spark(session, partitions=0), "the number of partitions"),
        "another engine": (lambda: sf.scan(table, engine="spark"), r"an engine is Spark\(session\), not 'spark'"),
        "labels": (lambda: sf.scan(folder / "rows.conll", engine=sf.Spark(session)), "workers of Spark read Parquet and text"),
        "stream": (lambda: sf.scan(stream), "a streaming frame never ends"),
        "weights": (lambda: sf.scan(table, weights=[1.0], engine=sf.Spark(session)), "weights in a column"),
        "scratch": (lambda: sf.scan(session.range(3), engine=sf.Spark(session, scratch=folder / "none")), "no such directory"),
        "columns": (lambda: sf.scan(table, {"b": sf.Real}, engine=sf.Spark(session)), "the data have no column 'b'"),
        "order": (
            lambda: sf.regressions.lms(
                "a", sf.scan(numbers, engine=sf.Spark(session)), parents=["b"], family=sf.regressions.Linear()
            ),
            "order",
        ),
    }


def test_what_cannot_be_is_refused(session: Any, tmp_path: Path) -> None:
    for what, (call, words) in refusals(session, tmp_path).items():
        with pytest.raises(SufficeError, match=words):
            pytest.fail(f"{what}: {call()!r}")


def test_no_rows(session: Any) -> None:
    with pytest.raises(DataError, match="there are no rows"):
        sf.scan(session.range(0)).schema  # noqa: B018


def test_a_worker_of_another_version_is_refused(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = on_spark(session, tmp_path, some(HOLED, "a"))
    monkeypatch.setattr(engine.workers, "package_version", lambda: "9.9")
    with pytest.raises(DataError, match=r"a worker has version .* of suffice, and the driver 9\.9"):
        data.schema  # noqa: B018


def test_a_frame_in_is_a_frame_out(session: Any, tmp_path: Path) -> None:
    table = {**some(HOLED, "a", "b"), "x": WHOLE["x"]}
    frame = session.read.parquet(str(Path(written(tmp_path, table)).parent))
    bn = sf.fit("a -> b", some(WHOLE, "a", "b"))
    here = sf.scan(table)
    got = bn.predict_proba(frame.drop("b"), "b").toPandas()
    assert list(got.columns) == ["a", "x", "P(b=b0)", "P(b=b1)"]
    at = np.argsort(got["x"].to_numpy()), np.argsort(WHOLE["x"])
    expected = bn.predict_proba(sf.scan({"a": table["a"]}), "b")["b1"].to_numpy()
    np.testing.assert_allclose(got["P(b=b1)"].to_numpy()[at[0]], expected[at[1]], rtol=1e-12)
    assert bn.predict(frame, "b").columns == ["a", "b", "x", "predicted b"]
    logs = bn.log_prob(frame).toPandas()
    values = logs.sort_values("x")["log_prob"].to_numpy()
    np.testing.assert_allclose(values, bn.log_prob(here)[at[1]], rtol=1e-12)
    full = bn.impute(frame).toPandas()
    assert not full.isna().any().any()
    with pytest.raises(DataError, match="draws= gives several tables"):
        bn.impute(frame, draws=2)
    with pytest.raises(DataError, match="has a column 'log_prob' already"):
        bn.log_prob(frame.withColumnRenamed("x", "log_prob"))


COMMANDS = {
    "fit": "fit graph.json ROWS --prior bdeu:1 -o out.json",
    "learn": "learn ROWS --method hill-climb -o out.json",
    "score": "score graph.json ROWS --json",
    "gather": "gather ROWS graph.json --pairs -o out.stats",
    "missing": "missing ROWS --json",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_command_line(session: Any, tmp_path: Path, run: Callable[..., tuple[int, str, str]], command: str) -> None:
    """The session that runs is taken."""
    sf.write(sf.fit("a -> b -> c; l", some(WHOLE, *FINITE)), "graph.json")
    rows = written(tmp_path / "rows", some(HOLED if command == "missing" else WHOLE, *FINITE))
    words = [rows if word == "ROWS" else word for word in COMMANDS[command].split()]
    told = []
    for where in ("memory", "files", "spark", "spark:local[2]"):
        code, out, err = run(*words, "--engine", where)
        assert code == 0, err
        told.append(out if words[-1] == "--json" else kept(words[-1]))
    assert told[1:] == told[:1] * 3


def kept(path: str) -> Any:
    """What a command has written."""
    return sf.Statistics.load(path) if path.endswith(".stats") else sf.read(path)
