"""What two executors make of a step that fails, for `test_faults`: python -m tests.spark.faults.on_cluster ROWS SCRATCH."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import suffice as sf
from suffice.errors import DataError
from tests.spark.conftest import QUICK
from tests.spark.faults.steps import FailAlways, FailOnce

SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": QUICK,
    "spark.executor.extraJavaOptions": QUICK,
}


def cluster() -> Any:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in {**SETTINGS, "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"]}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    return session


def held_apart(rows: str, session: Any) -> Any:
    """Rows that each executor keeps on its own disk, as where there is no place that all reach."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sf.Spark, "has_scratch", False)
        return sf.scan(rows, engine=sf.Spark(session, partitions=4)).hold()


def refusal(call: Callable[[], Any]) -> str:
    try:
        return repr(call())
    except DataError as error:
        return str(error)


def main(rows: str, scratch: str) -> None:
    session = cluster()
    where = sf.Spark(session, scratch=scratch, partitions=4)
    found: dict[str, Any] = {}
    files = sf.scan(rows, engine=where)
    for kind, data in {"files": files, "held": files.hold(), "on own disks": held_apart(rows, session)}.items():
        found[f"{kind}, plain"] = data.gather([sf.statistics.Request((), ("x",))]).moments([], ["x"]).mean.item()
        for how in ("raise", "kill", "kill executor"):
            mark = Path(scratch) / f"{kind} {how}"
            found[f"{kind}, {how}"] = data.fold(FailOnce(str(mark), how))
            assert mark.exists()
    found["always"] = refusal(lambda: data.fold(FailAlways("bug")))
    frame = session.read.parquet(str(Path(rows).parent))
    session.stop()
    after = (lambda: sf.Spark(session), lambda: sf.scan(frame), lambda: data.fold(FailAlways("bug")))
    found["stopped"] = [refusal(call) for call in after]
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
