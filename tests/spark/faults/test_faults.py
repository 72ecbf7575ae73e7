"""What goes wrong on the way: each fault ends in the same result, or in one sentence."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice as sf
from suffice.engines import Data
from suffice.engines.spark import SparkRows
from suffice.errors import DataError
from tests.engines.test_one_door import WHOLE, some
from tests.spark.faults.steps import FailAlways, FailOnce, Slow
from tests.spark.test_spark import on_spark, written

ROOT = Path(__file__).parents[3]
TOTAL = WHOLE["x"].sum()


def opened(session: Any, folder: Path, held: bool) -> Data:
    data = on_spark(session, folder / "rows", some(WHOLE, "x"), 4)
    if not held:
        return data
    kept = data.hold()
    np.testing.assert_allclose(kept.fold(Slow(0)), len(WHOLE["x"]))  # the blocks are written
    return kept


@pytest.mark.parametrize("held", [False, True])
@pytest.mark.parametrize("how", ["raise", "kill"])
def test_a_task_that_fails_once_is_tried_again(session: Any, tmp_path: Path, how: str, held: bool) -> None:
    total = opened(session, tmp_path, held).fold(FailOnce(str(tmp_path / "mark"), how))
    np.testing.assert_allclose(total, TOTAL, rtol=1e-12)
    assert (tmp_path / "mark").exists()


def test_a_task_that_fails_while_blocks_are_written(session: Any, tmp_path: Path) -> None:
    data = on_spark(session, tmp_path / "rows", some(WHOLE, "x"), 4).hold()
    np.testing.assert_allclose(data.fold(FailOnce(str(tmp_path / "mark"), "kill")), TOTAL, rtol=1e-12)
    np.testing.assert_allclose(
        data.gather([sf.statistics.Request((), ("x",))]).moments([], ["x"]).mean, [[TOTAL / 600]], rtol=1e-12
    )


def test_a_task_that_always_fails_is_named_in_one_sentence(session: Any, tmp_path: Path) -> None:
    data = on_spark(session, tmp_path, some(WHOLE, "x"))
    with pytest.raises(DataError, match=r"^no such rows$"):
        data.fold(FailAlways("refusal"))
    with pytest.raises(DataError, match=r"^the work on a partition failed: ZeroDivisionError: of a step$"):
        data.fold(FailAlways("bug"))
    with pytest.raises(DataError) as caught:
        data.fold(FailAlways("kill"))
    said = str(caught.value)
    assert said.startswith("the work on a partition failed: a Python worker")
    assert "\n" not in said
    assert "org.apache" not in said


def test_a_cluster_whose_executors_are_killed(tmp_path: Path) -> None:
    rows = written(tmp_path / "rows", some(WHOLE, "x"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = {
        **os.environ,
        "PYTHONPATH": paths,
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        "SPARK_WORKER_DIR": str(tmp_path),
    }
    words = [sys.executable, "-m", "tests.spark.faults.on_cluster", rows, str(scratch)]
    done = subprocess.run(words, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert found.pop("always") == "the work on a partition failed: ZeroDivisionError: of a step"
    assert found.pop("stopped") == ["the Spark session was stopped: start another, SparkSession.builder.getOrCreate()"] * 3
    kinds = ("files", "held", "on own disks")
    means = [found.pop(f"{kind}, plain") for kind in kinds]
    np.testing.assert_allclose(means, TOTAL / 600, rtol=1e-12)
    assert set(found) == {f"{kind}, {how}" for kind in kinds for how in ("raise", "kill", "kill executor")}
    np.testing.assert_allclose(list(found.values()), TOTAL, rtol=1e-12)


def test_a_frame_that_is_random_is_read_once(session: Any) -> None:
    """Its rows are written to files first, so that no pass computes them again: all passes see the same ones."""
    from pyspark.sql.functions import rand

    data = sf.scan(session.range(0, 2000, 1, 3).select(rand().alias("x")), {"x": sf.Real})
    sums = [d.fold(FailOnce("/", "")) for d in (data, data, data.hold())]
    assert sums[0] == sums[1] == sums[2]


def test_files_that_change_between_passes_are_refused(session: Any, tmp_path: Path) -> None:
    data = on_spark(session, tmp_path, some(WHOLE, "x"))
    data.fold(Slow(0))
    pq.write_table(pa.table({"x": WHOLE["x"][:200] + 1}), tmp_path / "1.parquet", row_group_size=100)
    with pytest.raises(DataError, match=r"1.parquet: the file has changed since it was scanned; scan it again"):
        data.fold(Slow(0))
    (tmp_path / "1.parquet").unlink()
    with pytest.raises(DataError, match=r"1.parquet: a worker cannot read it \(No such file or directory\)"):
        data.fold(Slow(0))


def test_blocks_that_come_out_otherwise_are_refused(session: Any, tmp_path: Path) -> None:
    """Blocks were lost, and those that are made again have another checksum."""
    data = sf.scan(written(tmp_path / "rows", some(WHOLE, "x")), engine=sf.Spark(session, scratch=tmp_path)).hold()
    data.fold(Slow(0))
    for path in tmp_path.glob("suffice-*/*.blocks"):
        path.unlink()
        path.with_suffix(".sum").write_text("1")
    with pytest.raises(DataError, match=r"/\d.parquet: its rows have changed since they were first read; scan them again"):
        data.fold(Slow(0))


@contextmanager
def interrupt_after(seconds: float) -> Iterator[None]:
    """A signal as Ctrl-C sends it, unless it is over before."""
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def test_an_interrupt_ends_our_jobs_and_the_session_goes_on(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Spark's own handler would cancel all jobs of the session
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        data, context = opened(session, tmp_path, False), session.sparkContext
        data.schema  # noqa: B018
        other = threading.Thread(target=lambda: done.append(context.parallelize([8], 1).map(sleeping).collect()))
        done: list[Any] = []
        other.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt), interrupt_after(2):
            data.fold(Slow(15))
        assert time.monotonic() - start < 14
        other.join()
        assert done == [[8]]  # a job of somebody else goes on
        assert data.fold(Slow(0)) == 600
    finally:
        signal.signal(signal.SIGINT, before)


def sleeping(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def test_an_interrupted_learner_gives_the_best_so_far(session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal comes in the fifth pass, while Spark works on it."""
    data = on_spark(session, tmp_path, {f"{n}{i}": np.roll(WHOLE[n], i) for n in "abcl" for i in range(3)})
    data.schema  # noqa: B018
    real, passes = SparkRows.sum, []

    def interrupted(self: SparkRows, work: Any) -> Any:
        passes.append(work)
        if len(passes) != 5:
            return real(self, work)
        with interrupt_after(0.05):
            return self.spark.sum(self.tasks, Lasting(self.reading(work)))

    monkeypatch.setattr(SparkRows, "sum", interrupted)
    found = sf.search(data, method=sf.HillClimb(max_parents=2))
    assert not found.finished
    assert len(passes) >= 5


class Lasting:
    """Some work that takes a while longer."""

    def __init__(self, work: Any) -> None:
        self.work = work

    def __call__(self, task: Any) -> Any:
        time.sleep(3)
        return self.work(task)
