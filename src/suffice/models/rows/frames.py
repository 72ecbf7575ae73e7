"""Answers in the kind of frame that the rows came in: pandas, polars, a dict of arrays; Arrow for all else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from suffice.errors import TooLarge, bytes_in_words

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_BYTES = 2**35
"""Answers that need more memory are refused."""


class Kind(Protocol):
    """A kind of frame, which makes frames and columns with a cell per row."""

    def table(self, names: Sequence[str], values: Array) -> Any:
        """A frame of numbers, one column per name."""

    def numbers(self, name: str, values: Array) -> Any:
        """A column of numbers."""

    def states(self, name: str, states: Sequence[str], codes: Ints) -> Any:
        """A column of text: states by their codes, nothing where the code is −1."""


class Arrow:
    """Arrow tables and arrays."""

    def table(self, names: Sequence[str], values: Array) -> Any:
        import pyarrow as pa

        return pa.table([pa.array(column) for column in _columns(values)], names=list(names))

    def numbers(self, name: str, values: Array) -> Any:
        import pyarrow as pa

        return pa.array(values)

    def states(self, name: str, states: Sequence[str], codes: Ints) -> Any:
        import pyarrow as pa

        return pa.array(states, pa.string()).take(pa.array(codes, mask=codes < 0))


class Pandas:
    """pandas frames and series, with the index of the rows."""

    def __init__(self, index: Any) -> None:
        self._index = index

    def table(self, names: Sequence[str], values: Array) -> Any:
        import pandas as pd

        return pd.DataFrame(values, index=self._index, columns=list(names))

    def numbers(self, name: str, values: Array) -> Any:
        import pandas as pd

        return pd.Series(values, index=self._index, name=name)

    def states(self, name: str, states: Sequence[str], codes: Ints) -> Any:
        import pandas as pd

        return pd.Series(_texts(states, codes), index=self._index, name=name)


class Polars:
    """polars frames and series."""

    def table(self, names: Sequence[str], values: Array) -> Any:
        import polars as pl

        return pl.DataFrame(dict(zip(names, _columns(values), strict=True)))

    def numbers(self, name: str, values: Array) -> Any:
        import polars as pl

        return pl.Series(name, values)

    def states(self, name: str, states: Sequence[str], codes: Ints) -> Any:
        import polars as pl

        return pl.Series(name, Arrow().states(name, states, codes), pl.String)


class Columns:
    """Dicts of arrays, and arrays."""

    def table(self, names: Sequence[str], values: Array) -> Any:
        return dict(zip(names, _columns(values), strict=True))

    def numbers(self, name: str, values: Array) -> Any:
        return values

    def states(self, name: str, states: Sequence[str], codes: Ints) -> Any:
        return _texts(states, codes)


def like(rows: Any) -> Kind:
    """The kind of frame for answers about some rows.

    >>> like({"x": [1]}).states("y", ["no", "yes"], np.array([1, -1]))
    array(['yes', None], dtype=object)
    """
    if isinstance(rows, (Mapping, np.ndarray)):
        return Columns()
    import narwhals as nw

    frame = nw.from_native(rows, pass_through=True)
    implementation = getattr(frame, "implementation", nw.Implementation.UNKNOWN)
    if implementation.is_polars():
        return Polars()
    return Pandas(rows.index) if implementation.is_pandas() else Arrow()


def checked_size(n_rows: int | None, n_columns: int) -> None:
    """Refuse answers that would not fit in memory, where the number of rows is known."""
    size = 8 * (n_rows or 0) * n_columns
    if size > MAX_BYTES:
        raise TooLarge(
            f"the answers for {n_rows:,} rows need {bytes_in_words(size)}; take the rows in parts, or predict from file to file "
            "with suffice predict"
        )


def _columns(values: Array) -> list[Array]:
    return list(np.ascontiguousarray(values.T))


def _texts(states: Sequence[str], codes: Ints) -> npt.NDArray[np.object_]:
    table = np.array([*states, None], object)  # the code −1 is the last
    return table[codes]
