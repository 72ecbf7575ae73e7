"""What several suites need: the command line, called as a user calls it."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestModule
from hypothesis import HealthCheck, settings

os.environ.setdefault("SUFFICE_COMPILE", "now")  # what is tested is what large work uses; for small work see test_kernel_laws.py

from suffice.interfaces.cli.app import main
from tests.spark import lacking

gc.set_threshold(100_000, 20, 50)  # what tests make dies young or stays: to look for it as often as usual is a tenth of the time

settings.register_profile("busy", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("busy")  # a busy machine is no fault of what is tested


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Tests have no examples: nobody looks for them."""
    return [collector for collector in (yield) if not isinstance(collector, DoctestModule)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest come first, so that no processor waits for them at the end; who asks mypy comes last: `make test` fills its
    cache beside the other tests."""
    items.sort(key=lambda item: ("told" in getattr(item, "fixturenames", ()), item.path.name != "test_fuzz.py"))


def pytest_collection_finish() -> None:
    """What was imported and collected stays to the end: nobody looks through it for what does not."""
    gc.freeze()


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Say so where everything was run but what needs Spark."""
    why = lacking()
    if why and config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        terminalreporter.write_line(f"nothing was run on Spark: {why}; make test-spark has an environment of its own")


@pytest.fixture
def run(monkeypatch, capsys, tmp_path) -> Callable[..., tuple[Any, str, str]]:
    """Run `suffice` with some words, in an empty directory: (exit code, standard output, standard error)."""
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[Any, str, str]:
        monkeypatch.setattr(sys, "argv", ["suffice", *map(str, words)])
        code: Any = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
        out, err = capsys.readouterr()
        return code, out, err

    return call
