"""Answers in the kind of frame that the rows came in: pandas, polars, a dict of arrays; Arrow for all else.

New values go into the missing cells of its columns, which keep their types where they can. Rows of Spark have no order by which
one answer could be told from the next, so each stands in its row, beside the columns that the frame had.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import Library, nw, pa, pc, pt
from suffice.basis.variables import Finite, Variable, is_whole, state_text
from suffice.engines import texts
from suffice.engines.scan import backend_of
from suffice.errors import DataError, TooLarge, bytes_in_words, listing
from suffice.numerics.inference.finite.network import Array, Ints

pd, pl = Library("pandas"), Library("polars")

MAX_BYTES = 2**35
"""Answers that need more memory are refused."""


def _kind(rows: Any) -> str:
    """What rows are: a dict of arrays or an array (`columns`), `pandas`, `polars`; anything else is `arrow`."""
    if isinstance(rows, (Mapping, np.ndarray)):
        return "columns"
    implementation = getattr(nw.from_native(rows, pass_through=True), "implementation", nw.Implementation.UNKNOWN)
    return "polars" if implementation.is_polars() else "pandas" if implementation.is_pandas() else "arrow"


def is_held(rows: Any) -> bool:
    """Whether the rows are in memory, in a frame of a kind that can be given back."""
    return isinstance(rows, pa.Table) or _kind(rows) != "arrow"


def table(rows: Any, names: Sequence[str], values: Array) -> Any:
    """A frame of numbers like that of the rows, with their index if they have one: a column per name."""
    if _kind(rows) == "pandas":
        return pd.DataFrame(values, index=rows.index, columns=list(names))
    return new_table(rows, dict(zip(names, np.ascontiguousarray(values.T), strict=True)))


def column(rows: Any, name: str, values: npt.NDArray[Any], states: Sequence[str] | None = None) -> Any:
    """A column for the rows: numbers, or states by their codes, nothing where the code is −1."""
    kind = _kind(rows)
    if kind in ("columns", "pandas"):
        cells = values if states is None else np.array([*states, None], object)[values]  # the code −1 is the last
        if kind == "columns":
            return cells
        return pd.Series(cells, index=rows.index, name=name)
    cells = pa.array(values) if states is None else pa.array(states, pa.string()).take(pa.array(values, mask=values < 0))
    if kind == "arrow":
        return cells
    return pl.Series(name, cells, None if states is None else pl.String)


def new_table(rows: Any, columns: Mapping[str, Any]) -> Any:
    """A frame of these columns, of the kind that the rows are, but with rows of its own."""
    kind = _kind(rows)
    if kind == "columns":
        return dict(columns)
    if kind == "pandas":
        return pd.DataFrame(dict(columns))
    if kind == "polars":
        return pl.DataFrame(dict(columns))
    return pa.table(dict(columns))


def checked_size(n_rows: int | None, n_columns: int) -> None:
    """Refuse answers that would not fit in memory, where the number of rows is known."""
    if (size := 8 * (n_rows or 0) * n_columns) > MAX_BYTES:
        raise TooLarge(
            f"the answers for {n_rows:,} rows need {bytes_in_words(size)}; take the rows in parts, or predict from file to file "
            "with suffice predict"
        )


@dataclass(frozen=True)
class Fill:
    """The missing cells of a column by their rows, and what they become: codes of states (−1: still missing) or numbers."""

    name: str
    rows: Ints
    values: npt.NDArray[Any]
    states: tuple[str, ...] | None = None

    def cells(self, arrow_type: Any, n_rows: int) -> Any:
        """The new cells as an Arrow array: of the column's type if it can hold them. A column without a value may change it."""
        if self.states is None:
            if pt.is_string(arrow_type) or pt.is_large_string(arrow_type):
                return pa.array([None if np.isnan(x) else repr(float(x)) for x in self.values], arrow_type)
            return pa.array(self.values, arrow_type if pt.is_floating(arrow_type) else pa.float64(), from_pandas=True)
        used, index = np.unique(self.values, return_inverse=True)
        words = [None if code < 0 else self.states[code] for code in used]
        if len(self.rows) == n_rows:
            with suppress(DataError):
                return self.to_arrow(words, arrow_type).take(pa.array(index))
            arrow_type = pa.string()
        return self.to_arrow(words, arrow_type).take(pa.array(index))

    def to_arrow(self, words: Sequence[str | None], arrow_type: Any) -> Any:
        """States as an Arrow array of a type; refused if it cannot hold them."""
        try:
            return pa.array(words, pa.string()).cast(pa.string() if pa.types.is_null(arrow_type) else arrow_type)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise DataError(
                f"the column {self.name!r} has the type {arrow_type}, which cannot hold {listing(words)}: states of the network"
            ) from None

    def positions(self, words: Sequence[str | None]) -> tuple[Ints, list[str]]:
        """Where the new cells stand among some words (−1: still missing), and the states that must be added to them."""
        states = self.states or ()
        known = {word: i for i, word in enumerate(words)}
        more = [states[code] for code in np.unique(self.values) if code >= 0 and states[code] not in known]
        known |= {word: len(words) + i for i, word in enumerate(more)}
        return np.array([*(known.get(s, -1) for s in states), -1])[self.values], more


def fill_frame(rows: Any, fills: Mapping[str, Fill]) -> Any:
    """The same frame with its gaps filled; the frame that was given stays as it is."""
    if isinstance(rows, Mapping):
        return {name: _fill_column(values, fills[str(name)]) if str(name) in fills else values for name, values in rows.items()}
    if isinstance(rows, np.ndarray):
        columns = fill_frame({n: rows[n] for n in rows.dtype.names or ()}, fills)
        result = np.empty(len(rows), [(n, c.dtype) for n, c in columns.items()])
        for name, column in columns.items():
            result[name] = column
        return result
    if isinstance(rows, pa.Table):
        for name, fill in fills.items():
            rows = rows.set_column(rows.column_names.index(name), name, _fill_column(rows.column(name), fill))
        return rows
    if hasattr(rows, "with_columns"):
        return rows.with_columns(*(_fill_column(rows[name], fill) for name, fill in fills.items()))
    result = rows.copy()
    for label in [c for c in rows.columns if str(c) in fills]:
        result[label] = _fill_column(rows[label], fills[str(label)])
    return result


def _fill_column(column: Any, fill: Fill) -> Any:
    """A column with its gaps filled, by what it is."""
    if isinstance(column, (pa.Array, pa.ChunkedArray)):
        return _in_arrow(column, fill)
    if type(column).__module__.startswith("polars"):
        return _in_polars(column, fill)
    if hasattr(column, "iloc"):
        return _in_pandas(column, fill)
    return _in_array(column, fill)


def _in_arrow(column: Any, fill: Fill) -> Any:
    if pa.types.is_dictionary(column.type):
        return _in_dictionary(column, fill)
    cells = fill.cells(column.type, len(column))
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    where = np.zeros(len(column), bool)
    where[fill.rows] = True
    return pc.replace_with_mask(column.cast(cells.type), pa.array(where), cells)


def _in_dictionary(column: Any, fill: Fill) -> Any:
    whole = column.unify_dictionaries().combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if fill.states is None:
        return _in_arrow(whole.dictionary_decode(), fill)
    positions, more = fill.positions(texts(whole.dictionary))
    dictionary = pa.concat_arrays([whole.dictionary, fill.to_arrow(more, whole.dictionary.type)])
    indices = whole.indices.cast(pa.int64()).fill_null(-1).to_numpy().copy()
    indices[fill.rows] = positions
    old = column.type.index_type
    fits = np.iinfo(old.to_pandas_dtype()).max >= len(dictionary)
    kept = pa.array(indices, old if fits else pa.int32(), mask=indices < 0)
    return pa.DictionaryArray.from_arrays(kept, dictionary, ordered=column.type.ordered)


def _in_pandas(column: Any, fill: Fill) -> Any:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return _in_categories(column, fill)
    arrow_type = _type_of(column if column.dtype == object else column.iloc[:0])
    cells = fill.cells(arrow_type, len(column))
    if cells.type != arrow_type and len(cells) == len(column):
        return pd.Series(cells.to_pylist(), index=column.index, name=column.name)
    result = column.astype("float64") if pa.types.is_integer(arrow_type) and fill.states is None else column.copy()
    result.iloc[fill.rows] = pd.Series(cells.to_pylist(), dtype=result.dtype).array
    return result


def _in_categories(column: Any, fill: Fill) -> Any:
    """A categorical column of pandas."""
    if fill.states is None:
        return _in_pandas(column.astype("float64"), fill)
    old = column.cat.categories
    positions, more = fill.positions([state_text(c) for c in old])
    new = fill.to_arrow(more, pa.string() if old.dtype == object else _type_of(old)).to_pylist()
    codes = column.cat.codes.to_numpy().astype(np.int64)
    codes[fill.rows] = positions
    dtype = pd.CategoricalDtype([*old, *new], ordered=column.cat.ordered) if new else column.dtype
    return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype), index=column.index, name=column.name)


def _in_polars(column: Any, fill: Fill) -> Any:
    if fill.states is not None and isinstance(column.dtype, pl.Enum):
        words = column.dtype.categories.to_list()
        more = fill.positions(words)[1]
        column = column.cast(pl.Enum([*words, *more])) if more else column
    arrow_type = pa.string() if isinstance(column.dtype, (pl.Enum, pl.Categorical)) else column.slice(0, 0).to_arrow().type
    cells = fill.cells(arrow_type, len(column))
    index = np.full(len(column), -1)
    index[fill.rows] = np.arange(len(fill.rows))
    new = pl.Series(column.name, cells.take(pa.array(index, mask=index < 0)))
    dtype = column.dtype if cells.type == arrow_type else new.dtype
    return new.cast(dtype).zip_with(pl.Series(index >= 0), column.cast(dtype))


def _in_array(column: Any, fill: Fill) -> Any:
    """Lists, tuples and arrays."""
    cells = fill.cells(_type_of(column), len(column))
    if not isinstance(column, np.ndarray):
        result: Any = list(column)
        for row, cell in zip(fill.rows.tolist(), cells.to_pylist(), strict=True):
            result[row] = cell
        return tuple(result) if isinstance(column, tuple) else result
    new = cells.to_numpy(zero_copy_only=False)
    if column.dtype.kind == "U":
        new = np.array([cell or "" for cell in cells.to_pylist()])
    result = column.astype(object if new.dtype == object else np.promote_types(column.dtype, new.dtype))
    result[fill.rows] = new
    if isinstance(result, np.ma.MaskedArray):
        result[fill.rows[cells.is_null().to_numpy(zero_copy_only=False)]] = np.ma.masked
    return result


def _type_of(values: Any) -> Any:
    """The Arrow type of a column; text where its cells are of several kinds."""
    try:
        return pa.array(values.compressed() if isinstance(values, np.ma.MaskedArray) else values, from_pandas=True).type
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        return pa.string()


def beside(frame: Any, call: Callable[[Any], Any], titles: str | Mapping[str, str]) -> Any:
    """A frame of Spark with the answers of a call beside its rows, computed when it is asked for: a column, or some by titles."""
    return in_place(frame, partial(_with_answers, call, titles))


def _with_answers(call: Callable[[Any], Any], titles: str | Mapping[str, str], table: Any) -> Any:
    found = call(table)
    answers = {titles: found} if isinstance(titles, str) else {title: found.column(n) for n, title in titles.items()}
    for name, column in answers.items():
        if name in table.column_names:
            raise DataError(f"the frame has a column {name!r} already, the name of an answer: drop or rename it")
        table = table.append_column(name, column if isinstance(column, pa.ChunkedArray) else pa.array(column))
    return table


def in_place(frame: Any, change: Callable[[Any], Any]) -> Any:
    """A frame of Spark whose rows are changed when it is asked for."""
    where = backend_of(frame)
    assert where is not None  # who calls has asked `maps_frames`
    return where.map_frame(frame, partial(_plain_change, change))


def _plain_change(change: Callable[[Any], Any], table: Any) -> Any:
    """What a change makes of a table, without dictionaries, which Spark does not know."""
    table = change(table)
    for i, column in enumerate(table.columns):
        if pa.types.is_dictionary(column.type):
            table = table.set_column(i, table.column_names[i], column.cast(column.type.value_type))
    return table


def arrow_columns(variables: Mapping[str, Variable], columns: Mapping[str, Any]) -> dict[str, Any]:
    """Codes and numbers as Arrow arrays: states as a dictionary, counts as whole numbers."""
    arrays = {}
    for name, values in columns.items():
        v = variables[name]
        if isinstance(v, Finite):
            arrays[name] = pa.DictionaryArray.from_arrays(
                pa.array(values), pa.array(v.states, pa.string()), ordered=not v.inferred
            )
        else:
            arrays[name] = pa.array(values.astype(np.int64) if is_whole(v) else values)
    return arrays
