"""What several suites need: the command line, called as a user calls it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest

from suffice.cli import main


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
