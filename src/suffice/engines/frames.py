"""Tables in memory as a source: pandas, polars, Arrow, a dict of columns, a structured array, encoded columns.

Columns become Arrow arrays when they are asked for, without a copy where there is a way; frames come in through narwhals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from typing import Any

import numpy as np

from suffice.engines.encode import missing_code, texts
from suffice.engines.engine import ranges
from suffice.engines.memory import Held
from suffice.engines.parallel import available_memory
from suffice.engines.reading import Read
from suffice.engines.sources import Categories, Kind, checked_names, encoded_bytes, kind_of
from suffice.errors import DataError, TooLarge, bytes_in_words
from suffice.variables import Finite, state_text

CHUNK = 2**22
"""Rows that are encoded at once; bounds the memory for what lies between a frame and its codes."""


class Frame:
    """A source whose columns are in memory."""

    stable = True

    def __init__(self, columns: Mapping[object, Callable[[], Any]], n_rows: int, *, loose: frozenset[str] = frozenset()) -> None:
        self.names = checked_names(columns, "the table")
        self.n_rows: int | None = n_rows
        self._get = dict(zip(self.names, columns.values(), strict=True))
        self._loose = loose
        self._arrays: dict[str, Any] = {}

    def kind(self, name: str) -> Kind:
        kind = kind_of(self._array(name).type)
        return Kind.TEXT if kind is Kind.CATEGORY and name in self._loose else kind

    def described(self, name: str) -> str:
        return str(self._array(name).type)

    def categories(self, name: str) -> Categories | None:
        if self.kind(name) is not Kind.CATEGORY:
            return None
        array = self._array(name)
        chunks = array.chunks if hasattr(array, "chunks") else [array]
        states = [w for chunk in chunks for w in texts(chunk.dictionary) if w is not None]
        return Categories(tuple(dict.fromkeys(states)), bool(array.type.ordered))

    def n_bytes(self, names: Sequence[str]) -> int:
        """Nothing besides what the table itself takes: what is in memory stays in memory."""
        return 0

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        import pyarrow as pa

        table = pa.table([self._array(n) for n in names], names=list(names))
        for batch in table.to_batches(max_chunksize=CHUNK):
            yield dict(zip(names, batch.columns, strict=True))

    def place(self, row: int) -> str:
        return f"row {row + 1}"

    def _array(self, name: str) -> Any:
        if name not in self._arrays:
            self._arrays[name] = self._get[name]()
        return self._arrays[name]


class Lazy(Frame):
    """A lazy frame: only the columns that are asked for are ever collected, in batches where it has them.

    How large they are is known before: what is collected whole must fit into half of the memory that is free.
    """

    stable = False

    def __init__(self, frame: Any) -> None:
        if "SPARK" in str(frame.implementation).upper():
            raise DataError(
                'a Spark frame cannot be read yet: write it to Parquet, frame.write.parquet("rows"), and scan "rows/*.parquet"'
            )
        empty = from_frame(frame.head(0).collect())
        super().__init__({n: empty._get[n] for n in empty.names}, 0, loose=empty._loose)
        self.n_rows = None
        self._frame = frame

    @cached_property
    def _length(self) -> int:
        import narwhals as nw

        return int(self._frame.select(nw.len()).collect().item())

    def n_bytes(self, names: Sequence[str]) -> int:
        return encoded_bytes(self, names, self._length)

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        import narwhals as nw

        chosen = self._frame.select(names)
        native = chosen.to_native()
        if hasattr(native, "collect_batches"):
            for part in native.collect_batches(maintain_order=True):
                yield from from_frame(nw.from_native(part, eager_only=True)).batches(names)
            return
        size = 8.0 * self._length * len(names)
        if size > available_memory() / 2:
            raise TooLarge(
                f"the lazy frame must be collected, which takes some {bytes_in_words(size)}, and "
                f"{bytes_in_words(available_memory())} are free; write it to Parquet and scan the file"
            )
        yield from from_frame(chosen.collect()).batches(names)


def from_frame(frame: Any) -> Frame:
    """A data frame that narwhals knows."""
    import narwhals as nw

    series = list(frame.iter_columns())
    # The categories of a polars Categorical are those of the whole process, not of the column.
    loose = frozenset(str(s.name) for s in series if s.dtype == nw.Categorical and frame.implementation.is_polars())
    return Frame({s.name: _getter(s) for s in series}, len(frame), loose=loose)


def from_columns(columns: Mapping[object, Any]) -> Frame:
    """A mapping from names to lists or arrays of equal lengths."""
    lengths: dict[object, int] = {}
    for name, values in columns.items():
        if isinstance(values, (str, bytes, Set, Mapping)) or not hasattr(values, "__len__"):
            raise DataError(f"the column {name!r} must be a list or an array of cells, not {type(values).__name__}")
        if getattr(values, "ndim", 1) != 1:
            raise DataError(f"the column {name!r} has {values.ndim} dimensions; a column has one")
        lengths[name] = len(values)
    for name, n in lengths.items():
        first = next(iter(lengths))
        if n != lengths[first]:
            raise DataError(f"the column {name!r} has {n} rows where {first!r} has {lengths[first]}")
    texts_only = frozenset(str(n) for n, v in columns.items() if isinstance(v, np.ndarray) and v.dtype.kind == "U")
    return Frame({n: _converter(v) for n, v in columns.items()}, next(iter(lengths.values()), 0), loose=texts_only)


def _getter(series: Any) -> Callable[[], Any]:
    def get() -> Any:
        import pyarrow as pa

        native = series.to_native()
        if series.implementation.is_pandas() and native.dtype.name == "category":
            return _from_categories(native.cat)
        try:
            return series.to_arrow()
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            return _as_texts(series.to_list())

    return get


def _from_categories(categories: Any) -> Any:
    """A categorical column of pandas by its codes, of which Arrow would make a copy and a mask."""
    import pyarrow as pa

    codes = categories.codes.to_numpy()
    indices = pa.array(codes, mask=codes < 0) if len(codes) and codes.min() < 0 else pa.array(codes)
    try:
        words = pa.array(categories.categories)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        words = _as_texts(list(categories.categories))
    if isinstance(words.type, pa.BaseExtensionType):  # intervals, as pandas.cut makes them
        words = pa.array(list(map(str, categories.categories)), pa.string())
    return pa.DictionaryArray.from_arrays(indices, words, ordered=bool(categories.ordered))


def _converter(values: Any) -> Callable[[], Any]:
    def convert() -> Any:
        import pyarrow as pa

        if isinstance(values, (pa.Array, pa.ChunkedArray)):
            return values
        if hasattr(values, "to_arrow"):
            return values.to_arrow()
        if isinstance(values, np.ma.MaskedArray):
            return pa.array(values.data, mask=np.ma.getmaskarray(values))
        if isinstance(values, np.ndarray) and values.dtype.kind == "U" and values.dtype.itemsize and len(values):
            return _from_unicode(values)
        try:
            return pa.array(values, from_pandas=True)
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
            return _as_texts(values)

    return convert


def _from_unicode(values: Any) -> Any:
    """An array of texts of fixed width by its bytes, which are told apart without making a text of every cell."""
    import pyarrow as pa

    width = values.dtype.itemsize
    cells = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
    encoded = pa.Array.from_buffers(pa.binary(width), len(cells), [None, pa.py_buffer(cells)]).dictionary_encode()
    words = np.frombuffer(encoded.dictionary.buffers()[1], cells.dtype, len(encoded.dictionary))
    return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(words.tolist(), pa.string()))


def _as_texts(values: Any) -> Any:
    """A column of mixed objects: numbers if all are, otherwise the texts that states are compared by."""
    import pyarrow as pa

    there = [v for v in values if v is not None]
    if any(isinstance(v, (complex, np.complexfloating)) for v in there):
        raise DataError("complex numbers cannot be read; give their parts as columns")
    if there and all(isinstance(v, (int, float, np.integer, np.floating)) and not isinstance(v, bool) for v in there):
        return pa.array([None if v is None else float(v) for v in values], pa.float64(), from_pandas=True)
    return pa.array([None if v is None or v != v else state_text(v) for v in values], pa.string())


ROWS = 2**20
"""Rows that are made Arrow arrays at once."""


class Encoded:
    """A source of columns that are encoded already, for whoever declares them otherwise and must read them again."""

    stable = True

    def __init__(self, read: Mapping[str, Read], n_rows: int, place: Callable[[int], str] | None = None) -> None:
        self.names = tuple(read)
        self._place = place
        self.n_rows: int | None = n_rows
        self._variables = {n: r.variable for n, r in read.items()}
        self._columns = {n: r.column.array for n, r in read.items() if isinstance(r.column, Held)}

    def kind(self, name: str) -> Kind:
        return Kind.CATEGORY if isinstance(self._variables[name], Finite) else Kind.NUMBER

    def described(self, name: str) -> str:
        return repr(self._variables[name])

    def categories(self, name: str) -> Categories | None:
        variable = self._variables[name]
        return Categories(variable.states, True) if isinstance(variable, Finite) else None

    def n_bytes(self, names: Sequence[str]) -> int:
        return 0

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        for start, stop in ranges(self.n_rows or 0, ROWS):
            yield {n: self._arrow(n, start, stop) for n in names}

    def place(self, row: int) -> str:
        return f"row {row + 1} of those picked" if self._place is None else self._place(row)

    def _arrow(self, name: str, start: int, stop: int) -> Any:
        import pyarrow as pa

        cells, variable = self._columns[name][start:stop], self._variables[name]
        if not isinstance(variable, Finite):
            return pa.array(cells, from_pandas=True)
        codes = pa.array(cells.astype(np.int32), mask=cells == missing_code(cells.dtype))
        return pa.DictionaryArray.from_arrays(codes, pa.array(variable.states))
