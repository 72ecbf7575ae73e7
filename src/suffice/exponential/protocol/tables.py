"""Distributions, priors and statistics as HTML for a notebook: a row for each number of interest, a column for each component."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.errors import SufficeError
from suffice.exponential.arithmetic.values import Interval
from suffice.output.display import html_table

MOST = 12
"""The columns, and the rows of a matrix, that are shown."""


def summary(thing: Any, given: Mapping[str, Any], title: str, labels: Sequence[str] = ()) -> str:
    """The parameters of a distribution, and what it has of mean, mode, variance and 95 % interval.

    >>> from suffice.exponential import Beta
    >>> summary(Beta(2.0, 2.0), {"a": 2.0, "b": 2.0}, "Beta").count("<tr>")
    8
    """
    facts = dict(given)
    for name in ("mean", "expected", "mode", "variance"):
        facts.update((key, value) for key, value in _named_numbers(name, _ask(thing, name)) if key not in facts)
    ends = _ask(thing, "interval")
    intervals = {"": ends} if isinstance(ends, Interval) else ends or {}
    for name, interval in intervals.items():
        of = f" of the {name}" if name else ""
        facts.update({f"95 %{of} from": interval[0], f"95 %{of} to": interval[1]})
    return table(facts, title, labels)


def table(facts: Mapping[str, Any], title: str, labels: Sequence[str] = ()) -> str:
    """Numbers, vectors and matrices by name; `labels` name the components, whose numbers stand there else.

    >>> table({"mean": np.array([0.25, 0.75]), "n": 3}, "Categorical", ["a", "b"]).count("<td>")
    6
    """
    rows = [row for name, value in facts.items() for row in _rows(name, value)]
    width = max([len(cells) for _, cells in rows], default=1)
    top = ["value"] if width == 1 else [str(label) for label in (labels if len(labels) >= width else range(width))][:width]
    return html_table(["", *top], [[name, *cells, *[""] * (width - len(cells))] for name, cells in rows], caption=title)


def _ask(thing: Any, name: str) -> Any:
    """What a distribution says when asked; None where it has no answer."""
    try:
        answer = getattr(thing, name, None)
        return answer() if callable(answer) else answer
    except SufficeError:
        return None


def _named_numbers(name: str, value: Any) -> list[tuple[str, Any]]:
    """A number by its name; a distribution, as the mode of a prior of two parameters is, by those of its parameters."""
    if value is None:
        return []
    parts = getattr(value, "names", None)
    return [(name, value)] if parts is None else [(f"{name} {part}", getattr(value, part)) for part in parts]


def _rows(name: str, value: Any) -> list[tuple[str, list[object]]]:
    if isinstance(value, str):
        return [(name, [value])]
    array = np.asarray(value)
    if array.ndim > 2:
        return [(name, [f"array of shape {array.shape}"])]
    if array.ndim == 2:
        rows = [(f"{name} {i}", _cells(row)) for i, row in enumerate(array[:MOST])]
        return [*rows, ("…", [f"{len(array) - MOST:,} more"])] if len(array) > MOST else rows
    return [(name, _cells(np.atleast_1d(array)))]


def _cells(vector: Any) -> list[object]:
    few = vector[:MOST].tolist()
    return [*few, f"and {len(vector) - MOST:,} more"] if len(vector) > MOST else few
