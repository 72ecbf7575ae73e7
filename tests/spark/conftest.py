"""One session of Spark for all tests: two cores, four tries of a task, no page to look at, loopback only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.spark import lacking

collect_ignore_glob = ["*.py"] if lacking() else []

os.environ["PYSPARK_PYTHON"] = sys.executable

QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Of Java: what runs for minutes does not repay a compiler that optimises, which took most of the time of the tests."""


@pytest.fixture(scope="session")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": QUICK,
    }
    builder = SparkSession.builder.master("local[2,4]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    made.sparkContext.setLogLevel("OFF")
    yield made
    made.stop()
