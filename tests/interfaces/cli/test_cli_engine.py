"""Where rows are worked on, as the command line says it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import suffice as sf
from suffice.engines.spark import check_java
from suffice.errors import DataError


def test_engines_give_the_same_model(run, tmp_path: Path) -> None:
    rows = sf.load("asia").sample(2_000, seed=1)
    Path("rows.csv").write_text("\n".join([",".join(rows.column_names), *(",".join(r.values()) for r in rows.to_pylist())]))
    texts = []
    for engine in ("memory", "files"):
        code, _, _ = run("fit", "asia", "rows.csv", "--engine", engine, "-o", f"{engine}.json")
        assert code == 0
        texts.append(Path(f"{engine}.json").read_text())
    assert texts[0] == texts[1]


def test_unknown_engines_are_refused(run) -> None:
    Path("rows.csv").write_text("a,b\n1,2\n")
    code, _, err = run("score", "asia", "rows.csv", "--engine", "cluster")
    assert code == 1
    assert "--engine is memory, files, spark or spark:MASTER, not 'cluster'" in err


def fake_java(folder: Path, version: str | None) -> None:
    """A program `java` that says a version as Java does, or does not run."""
    path = folder / "java"
    path.write_text("#!/bin/sh\n" + ("exit 3\n" if version is None else f"echo 'openjdk version \"{version}\"' >&2\n"))
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("version", "words"),
    [("1.8.0_292", "is Java 8"), ("11.0.2", "is Java 11"), (None, "does not run"), ("17.0.15", ""), ("21-ea", ""), ("26", "")],
)
def test_java_is_looked_at_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str | None, words: str
) -> None:
    fake_java(tmp_path, version)
    monkeypatch.setenv("PATH", str(tmp_path) + os.pathsep + "/bin" + os.pathsep + "/usr/bin")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    if not words:
        check_java()
        return
    with pytest.raises(DataError, match=rf"^Spark needs Java 17 or newer, and .*java {words}: apt-get install [^\n]*$"):
        check_java()


def test_no_java_and_no_pyspark(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, run) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    with pytest.raises(DataError, match=r"^Spark needs Java 17 or newer, and there is none: apt-get install"):
        check_java()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(DataError, match=r"and there is none in .*, which JAVA_HOME names: apt-get"):
        check_java()
    monkeypatch.setitem(sys.modules, "pyspark", None)
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    Path("rows.csv").write_text("a,b\n1,2\n")
    code, _, err = run("score", "asia", "rows.csv", "--engine", "spark")
    assert code == 1
    assert "Spark needs the package pyspark: pip install 'suffice[spark]'" in err
    assert "Traceback" not in err
