"""Pieces of estimators, each by itself."""

from __future__ import annotations

import numpy as np

from suffice.interfaces.estimators.columns import classes, states
from suffice.interfaces.estimators.tagger import is_frame, with_column


def test_classes() -> None:
    assert repr(classes(["b", "a", "b"])) == "(array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))"


def test_states() -> None:
    assert states(np.array([0, 1])) == ["0", "1"]
    assert states(np.array([""])) == ["0"]


def test_is_frame() -> None:
    assert is_frame({"word": ["a"]}) is True
    assert is_frame([[{"word": "a"}]]) is False


def test_with_column() -> None:
    assert with_column({"word": ["a", "b"]}, "tag", ["D", "N"])["tag"] == ["D", "N"]
