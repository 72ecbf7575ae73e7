"""Answers for the rows of a Spark frame: a frame of Spark again, with the answers beside the columns that it had.

Rows of Spark have no order by which one answer could be told from the next, so each stands in its row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from suffice.basis.libraries import pa
from suffice.engines.scan import backend_of
from suffice.errors import DataError


@dataclass(frozen=True)
class Beside:
    """A table of rows with columns for their answers, by name."""

    answers: Callable[[Any], Mapping[str, Any]]

    def __call__(self, table: Any) -> Any:
        for name, column in self.answers(table).items():
            if name in table.column_names:
                raise DataError(f"the frame has a column {name!r} already, the name of an answer: drop or rename it")
            table = table.append_column(name, column if isinstance(column, pa.ChunkedArray) else pa.array(column))
        return plain(table)


@dataclass(frozen=True)
class InPlace:
    """A table of rows, changed."""

    change: Callable[[Any], Any]

    def __call__(self, table: Any) -> Any:
        return plain(self.change(table))


def beside(frame: Any, answers: Callable[[Any], Mapping[str, Any]]) -> Any:
    """A frame of Spark with columns for the answers of its rows; they are computed when it is asked for."""
    return _map(frame, Beside(answers))


def in_place(frame: Any, change: Callable[[Any], Any]) -> Any:
    """A frame of Spark whose rows are changed when it is asked for."""
    return _map(frame, InPlace(change))


def _map(frame: Any, function: Callable[[Any], Any]) -> Any:
    where = backend_of(frame)
    assert where is not None  # who calls has asked `maps_frames`
    return where.map_frame(frame, function)


def plain(table: Any) -> Any:
    """A table without dictionaries, which Spark does not know."""
    for i, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(i, table.column_names[i], column.cast(column.type.value_type))
    return table
