"""Tables as a source: pandas, polars, Arrow, a dict of columns, a structured array, encoded columns; lazy frames and relations.

Columns become Arrow arrays when they are asked for, without a copy where there is a way; frames come in through narwhals.
Relations of DuckDB are streamed as Arrow batches.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import closing, contextmanager, suppress
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from suffice.basis.libraries import nw, pa
from suffice.basis.variables import Finite, Variable, state_text
from suffice.engines.encoding.encode import texts
from suffice.engines.encoding.sources import Categories, Kind, Source, checked_names, kind_of
from suffice.engines.engine import Array, is_missing
from suffice.engines.steps.blocks import available_memory, n_threads
from suffice.errors import DataError, SufficeError, TooLarge, bytes_in_words, listing

CHUNK = 2**22
"""Rows that are encoded at once; bounds the memory for what lies between a frame and its codes."""

BATCH = 2**17
"""Rows of a relation that come at once."""

LEAST = 2**27
"""Bytes without which DuckDB does not sort."""


class FrameSource(Source):
    """A source whose columns are in memory. Those that are `loose` have categories that mean nothing."""

    def __init__(
        self,
        columns: Mapping[object, Callable[[], Any]],
        n_rows: int | None,
        *,
        loose: frozenset[str] = frozenset(),
        what: str = "the table",
        decimal: str | None = None,
        place: Callable[[int], str] | None = None,
    ) -> None:
        """With a decimal mark, the cells are words of a text file, whatever they mean. `place` says where a row stands."""
        self.names, self.n_rows = checked_names(columns, what), n_rows
        self._are_words, self.decimal = decimal is not None, decimal or "."
        self._get = {n: cache(get) for n, get in zip(self.names, columns.values(), strict=True)}
        self._loose, self._place = loose, place

    def place(self, row: int) -> str:
        return super().place(row) if self._place is None else self._place(row)

    def type_of(self, name: str) -> Any:
        return self._get[name]().type

    def kind(self, name: str) -> Kind:
        kind = Kind.CELLS if self._are_words else kind_of(self._get[name]().type)
        return Kind.TEXT if kind is Kind.CATEGORY and name in self._loose else kind

    def categories(self, name: str) -> Categories | None:
        if self.kind(name) is not Kind.CATEGORY:
            return None
        array = self._get[name]()
        chunks = array.chunks if hasattr(array, "chunks") else [array]
        states = [w for chunk in chunks for w in texts(chunk.dictionary) if w is not None]
        return Categories(tuple(dict.fromkeys(states)), bool(array.type.ordered))

    def n_bytes(self, names: Sequence[str]) -> int:
        """Nothing besides what the table itself takes: what is in memory stays in memory."""
        return super().n_bytes(names) if self.n_rows is None else 0

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        table = pa.table([self._get[n]() for n in names], names=list(names))
        for batch in table.to_batches(max_chunksize=CHUNK):
            yield dict(zip(names, batch.columns, strict=True))


class Lazy(FrameSource):
    """A lazy frame: only the columns that are asked for are ever collected, in batches where it has them. How large they are is
    known before: what is collected whole must fit into half of the memory that is free."""

    stable = False

    def __init__(self, frame: Any) -> None:
        if "SPARK" in str(frame.implementation).upper():
            raise DataError(
                'a Spark frame cannot be read yet: write it to Parquet, frame.write.parquet("rows"), and scan "rows/*.parquet"'
            )
        with _collecting():
            empty = from_frame(frame.head(0).collect())
        super().__init__({n: empty._get[n] for n in empty.names}, None, loose=empty._loose)
        self._frame = frame

    @cached_property
    def length(self) -> int:
        with _collecting():
            return int(self._frame.select(nw.len()).collect().item())

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        with _collecting():
            chosen = self._frame.select(names)
            native = chosen.to_native()
            if hasattr(native, "collect_batches"):
                for part in native.collect_batches(maintain_order=True):
                    yield from from_frame(part).batches(names)
                return
            size = 8.0 * self.length * len(names)
            if size > available_memory() / 2:
                raise TooLarge(
                    f"the lazy frame must be collected, which takes some {bytes_in_words(size)}, and "
                    f"{bytes_in_words(available_memory())} are free; write it to Parquet and scan the file"
                )
            yield from from_frame(chosen.collect()).batches(names)


@contextmanager
def _collecting() -> Iterator[None]:
    """An error of a lazy frame's plan, in one sentence."""
    try:
        yield
    except SufficeError:
        raise
    except Exception as error:
        raise DataError(f"the lazy frame cannot be collected: {str(error).strip().partition(chr(10))[0]}") from None


class Relation(FrameSource):
    """A relation of DuckDB. Its rows may come in another order each time it runs."""

    stable = False

    def __init__(self, relation: Any) -> None:
        super().__init__({n: partial(self._first_row, n) for n in relation.columns}, None, what="the relation")
        self._relation = relation

    def categories(self, name: str) -> Categories | None:
        """The values of an enumeration, whose order is meant."""
        found = super().categories(name)
        return None if found is None else Categories(found.states, ordered=True)

    def _first_row(self, name: str) -> Any:
        """An array of at most one row, which knows its type and, of an enumeration, its values."""
        return self._first_rows.column(name).combine_chunks()

    @cached_property
    def _first_rows(self) -> Any:
        with _running():
            return self._relation.limit(1).to_arrow_table()

    @cached_property
    def length(self) -> int:
        with _running():
            return int(self._relation.aggregate("count(*)").fetchall()[0][0])

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        quoted = ['"' + n.replace('"', '""') + '"' for n in names]
        with _running(), self._relation.project(", ".join(quoted)).to_arrow_reader(BATCH) as reader:
            for batch in reader:
                yield dict(zip(names, batch.columns, strict=True))


@contextmanager
def _running() -> Iterator[None]:
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        raise DataError(f"DuckDB cannot run the relation: {str(error).splitlines()[0]}") from None


def in_sorted_order(
    parts: Iterable[Mapping[Any, Array]], types: Mapping[Any, np.dtype[Any]], keys: Sequence[Any], memory_limit: int
) -> Iterator[dict[Any, Array]]:
    """Rows in parts, sorted by some of their columns, in other parts. DuckDB sorts them in a directory for temporary files."""
    import duckdb

    names = {k: f"c{i}" for i, k in enumerate(types)}
    schema = pa.schema([(names[k], pa.from_numpy_dtype(dtype)) for k, dtype in types.items()])
    batches = (pa.record_batch([pa.array(part[k]) for k in types], schema=schema) for part in parts)
    width = sum(dtype.itemsize for dtype in types.values())
    memory = max(memory_limit, LEAST + width * 2**16)
    threads = max(1, min(n_threads(), memory // 2**26))  # as many as have memory to sort in
    config = {"memory_limit": f"{memory}B", "threads": str(threads)}
    try:
        with (
            tempfile.TemporaryDirectory(prefix="suffice-") as folder,
            closing(duckdb.connect(config={**config, "temp_directory": folder})) as connection,
        ):
            rows = connection.from_arrow(pa.RecordBatchReader.from_batches(schema, batches))
            ordered = rows.order(", ".join(names[k] for k in keys))
            with ordered.to_arrow_reader(max(2**11, min(BATCH, 2**24 // width))) as reader:
                for batch in reader:
                    yield {k: batch.column(i).to_numpy(zero_copy_only=False) for i, k in enumerate(types)}
    except (duckdb.Error, OSError) as error:
        what = str(error).splitlines()[0]
        if "memory" in what.lower():
            raise TooLarge(f"the rows cannot be sorted in so little memory; raise memory_limit ({what})") from None
        raise DataError(
            f"{tempfile.gettempdir()}: the rows cannot be sorted there; set TMPDIR to a larger place ({what})"
        ) from None


def from_frame(x: Any) -> FrameSource:
    """Columns by name, a relation, a data frame that narwhals knows, or whatever passes itself on as an Arrow table."""
    if isinstance(x, np.ndarray) and x.dtype.names is None:
        raise DataError("an array has no names of columns; give a dict of columns, such as dict(zip(names, x.T))")
    if isinstance(x, (Mapping, np.ndarray)):
        return from_columns(x if isinstance(x, Mapping) else {n: x[n] for n in x.dtype.names})
    if type(x).__name__ == "DuckDBPyRelation":
        return Relation(x)
    if type(x).__name__ == "Sequences":
        raise DataError("these are sequences, which a template is for; their rows, as if each stood alone, are sequences.data")
    try:
        frame = nw.from_native(x)
    except nw.exceptions.DuplicateError:
        names = list(map(str, getattr(x, "columns", ())))
        twice = sorted({n for n in names if names.count(n) > 1})
        raise DataError(f"the table has a column twice: {listing(twice)}") from None
    except TypeError:
        frame = None
    if isinstance(frame, nw.LazyFrame):
        return Lazy(frame)
    if isinstance(frame, nw.DataFrame):
        series = list(frame.iter_columns())
        # The categories of a polars Categorical are those of the whole process, not of the column.
        loose = frozenset(str(s.name) for s in series if s.dtype == nw.Categorical and frame.implementation.is_polars())
        return FrameSource({s.name: partial(_from_series, s) for s in series}, len(frame), loose=loose)
    if hasattr(x, "__arrow_c_stream__") or hasattr(x, "__arrow_c_array__"):
        with suppress(pa.ArrowInvalid, TypeError):  # a single column has the interface, too, but is no table
            return from_frame(pa.table(x))
    raise DataError(
        f"rows cannot be read from {type(x).__name__}; give a pandas, polars or Arrow frame, a dict of columns, "
        "a path or glob of CSV or Parquet files, or a DuckDB relation"
    )


def from_columns(columns: Mapping[object, Any]) -> FrameSource:
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
    cells: dict[object, Callable[[], Any]] = {n: partial(_from_cells, v) for n, v in columns.items()}
    return FrameSource(cells, next(iter(lengths.values()), 0), loose=texts_only)


def _from_series(series: Any) -> Any:
    native = series.to_native()
    if not (series.implementation.is_pandas() and native.dtype.name == "category"):
        try:
            return series.to_arrow()
        except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
            return _as_texts(series.to_list())
    # A categorical column of pandas by its codes, of which Arrow would make a copy and a mask.
    codes, categories = native.cat.codes.to_numpy(), native.cat.categories
    indices = pa.array(codes, mask=codes < 0) if len(codes) and codes.min() < 0 else pa.array(codes)
    try:
        words = pa.array(categories)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        words = _as_texts(list(categories))
    if isinstance(words.type, pa.BaseExtensionType):  # intervals, as pandas.cut makes them
        words = pa.array(list(map(str, categories)), pa.string())
    return pa.DictionaryArray.from_arrays(indices, words, ordered=bool(native.cat.ordered))


def _from_cells(values: Any) -> Any:
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if hasattr(values, "to_arrow"):
        return values.to_arrow()
    if isinstance(values, np.ma.MaskedArray):
        return pa.array(values.data, mask=np.ma.getmaskarray(values))
    if isinstance(values, np.ndarray) and values.dtype.kind == "U" and values.dtype.itemsize and len(values):
        # By their bytes, texts of fixed width are told apart without making a text of every cell.
        cells = np.ascontiguousarray(values.astype(values.dtype.newbyteorder("="), copy=False))
        width = pa.binary(values.dtype.itemsize)
        encoded = pa.Array.from_buffers(width, len(cells), [None, pa.py_buffer(cells)]).dictionary_encode()
        words = np.frombuffer(encoded.dictionary.buffers()[1], cells.dtype, len(encoded.dictionary))
        return pa.DictionaryArray.from_arrays(encoded.indices, pa.array(words.tolist(), pa.string()))
    try:
        return pa.array(values, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        return _as_texts(values)


def _as_texts(values: Any) -> Any:
    """A column of mixed objects: numbers if all are, otherwise the texts that states are compared by."""
    there = [v for v in values if v is not None]
    if any(isinstance(v, (complex, np.complexfloating)) for v in there):
        raise DataError("complex numbers cannot be read; give their parts as columns")
    if there and all(isinstance(v, (int, float, np.integer, np.floating)) and not isinstance(v, bool) for v in there):
        return pa.array([None if v is None else _double(v) for v in values], pa.float64(), from_pandas=True)
    return pa.array([None if v is None or v != v else state_text(v) for v in values], pa.string())


def _double(number: Any) -> float:
    """The nearest double: infinite where there is none, which is refused with its place."""
    try:
        return float(number)
    except OverflowError:
        return math.inf if number > 0 else -math.inf


def from_codes(variable: Variable, cells: Array) -> Any:
    """The cells of a column that is encoded already, for whoever declares it otherwise and must read it again."""
    if not isinstance(variable, Finite):
        return pa.array(cells, from_pandas=True)
    return pa.DictionaryArray.from_arrays(pa.array(cells, mask=is_missing(cells)), pa.array(variable.states), ordered=True)
