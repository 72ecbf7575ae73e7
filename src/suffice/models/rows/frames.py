"""Answers in the kind of frame that the rows came in: pandas, polars, a dict of arrays; Arrow for all else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import TooLarge, bytes_in_words

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_BYTES = 2**35
"""Answers that need more memory are refused."""


def _kind(rows: Any) -> str:
    """What rows are: a dict of arrays or an array (`columns`), `pandas`, `polars`; anything else is `arrow`."""
    if isinstance(rows, (Mapping, np.ndarray)):
        return "columns"
    import narwhals as nw

    frame = nw.from_native(rows, pass_through=True)
    implementation = getattr(frame, "implementation", nw.Implementation.UNKNOWN)
    return "polars" if implementation.is_polars() else "pandas" if implementation.is_pandas() else "arrow"


def table(rows: Any, names: Sequence[str], values: Array) -> Any:
    """A frame of numbers like that of the rows, with their index if they have one: a column per name.

    >>> table({"x": [1]}, ["a", "b"], np.array([[0.25, 0.75]]))
    {'a': array([0.25]), 'b': array([0.75])}
    """
    kind, columns = _kind(rows), dict(zip(names, np.ascontiguousarray(values.T), strict=True))
    if kind == "columns":
        return columns
    if kind == "pandas":
        import pandas as pd

        return pd.DataFrame(values, index=rows.index, columns=list(names))
    if kind == "polars":
        import polars as pl

        return pl.DataFrame(columns)
    import pyarrow as pa

    return pa.table([pa.array(column) for column in columns.values()], names=list(names))


def column(rows: Any, name: str, values: npt.NDArray[Any], states: Sequence[str] | None = None) -> Any:
    """A column for the rows: numbers, or states by their codes, nothing where the code is −1.

    >>> column({"x": [1]}, "y", np.array([1, -1]), ["no", "yes"])
    array(['yes', None], dtype=object)
    """
    kind = _kind(rows)
    if kind in ("columns", "pandas"):
        cells = values if states is None else np.array([*states, None], object)[values]  # the code −1 is the last
        if kind == "columns":
            return cells
        import pandas as pd

        return pd.Series(cells, index=rows.index, name=name)
    import pyarrow as pa

    cells = pa.array(values) if states is None else pa.array(states, pa.string()).take(pa.array(values, mask=values < 0))
    if kind == "arrow":
        return cells
    import polars as pl

    return pl.Series(name, cells, None if states is None else pl.String)


def checked_size(n_rows: int | None, n_columns: int) -> None:
    """Refuse answers that would not fit in memory, where the number of rows is known."""
    size = 8 * (n_rows or 0) * n_columns
    if size > MAX_BYTES:
        raise TooLarge(
            f"the answers for {n_rows:,} rows need {bytes_in_words(size)}; take the rows in parts, or predict from file to file "
            "with suffice predict"
        )
