"""Arguments that commands share."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np

from suffice.basis.variables import Finite
from suffice.interfaces.cli.arguments import DataFile, Options, TextOptions, refuse, with_options
from suffice.interfaces.cli.commands.query import facts, in_text
from suffice.models.questions.answers import Distribution


def test_refuse() -> None:
    refuse(Options(lags=0, hidden=[]), "lags hidden", "is for sequences")


def test_with_options() -> None:
    @with_options(TextOptions)
    def look(data: DataFile, **options: Any) -> None:
        print(data, TextOptions(**options).decimal)

    assert list(signature(look).parameters) == ["data", "missing", "separator", "decimal", "encoding"]


def test_in_text() -> None:
    answer = Distribution((Finite("x", ["a", "b"]),), np.array([0.25, 0.75]))
    assert in_text(answer, {}) == repr(answer)
    assert in_text(answer, {"x": "b"}) == "0.75"


def test_facts() -> None:
    answer = Distribution((Finite("x", ["a", "b"]),), np.array([0.25, 0.75]))
    assert facts(answer, {"x": "b"})["probabilities"] == [{"states": {"x": "b"}, "probability": 0.75}]
