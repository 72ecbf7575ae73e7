"""Where rows are worked on, as `scan(x, engine=…)` takes it: Spark, or a place of somebody else's.

A backend is found by its word (`--engine WORD`), and by the type of rows that are its own; `suffice.registry` lists it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from suffice.engines.encoding.sources import Options, Source
from suffice.engines.engine import Engine
from suffice.errors import DataError
from suffice.registry import Named, every


class Backend(Named):
    """What makes an `Engine` of files, or of rows that only it can read."""

    listed_in = "engines"

    maps_frames: ClassVar[bool] = False
    """Whether answers about its rows are such rows again (`map_frame`); elsewhere they are an Arrow table."""

    @classmethod
    def takes(cls, x: Any) -> bool:
        """Whether these rows are of a kind of its own."""
        return False

    @classmethod
    def around(cls, x: Any) -> Backend:
        """The backend where such rows are."""
        return cls()

    def of_frame(self, x: Any, options: Options) -> Engine:
        """The engine of rows that it takes."""
        raise DataError(f"{type(self).__name__} reads files, and no rows of the type {type(x).__name__}")

    def of_files(self, source: Source, options: Options) -> Engine:
        """The engine of rows of Parquet or text files."""
        raise DataError(f"{type(self).__name__} reads no files: give it rows of its own kind")

    def map_frame(self, x: Any, function: Callable[[Any], Any]) -> Any:
        """Rows of its own kind, of what a function makes of tables of those that it is given."""
        raise NotImplementedError


LOCAL = frozenset({"builtins", "collections", "duckdb", "narwhals", "numpy", "pandas", "pathlib", "polars", "pyarrow", "suffice"})
"""Packages whose types are read here: for them nobody else is asked."""


def backend_of(x: Any) -> Backend | None:
    """The backend that rows are of by their type; None where they are read here.

    >>> backend_of({"x": [1, 2]}) is None
    True
    """
    if type(x).__module__.partition(".")[0] in LOCAL:
        return None
    return next((kind.around(x) for kind in every("engines").values() if kind.takes(x)), None)


def maps_frames(x: Any) -> bool:
    """Whether answers about these rows are rows of the same kind, beside their columns: of a frame of Spark they are."""
    where = backend_of(x)
    return where is not None and where.maps_frames
