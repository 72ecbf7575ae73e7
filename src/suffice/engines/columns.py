"""Columns: encoded once, and read by row ranges from then on, wherever they lie."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class Column(Protocol):
    """An encoded column: codes of states, or numbers."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of its cells."""

    def read(self, start: int, stop: int, out: Array) -> None:
        """Write the rows from `start` to `stop` into `out`."""


class Sink(Protocol):
    """Where the encoded chunks of columns go."""

    def add(self, chunks: dict[str, Array]) -> None:
        """Take the next rows of every column that is still being encoded."""

    def column(self, name: str, order: Array | None, dtype: np.dtype[Any]) -> Column:
        """A finished column: codes put in order, in the type they need in the end."""
