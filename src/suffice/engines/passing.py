"""Passing: rows read once, in their order, as variables that are known beforehand. Nothing of them is kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

from suffice.engines.blocks import ranges
from suffice.engines.columns import Array
from suffice.engines.data import Data
from suffice.engines.encode import Cuts
from suffice.engines.engine import ROWS
from suffice.engines.options import Options, checked_words
from suffice.engines.reading import Encoder, encoder_for, passed
from suffice.engines.scan import source_of
from suffice.engines.sources import Kind, Source, readable
from suffice.engines.store import Store
from suffice.errors import DataError
from suffice.variables import Variable


@dataclass(frozen=True)
class Passed:
    """Some rows: codes or numbers of the columns that were encoded, and the Arrow arrays of those that were kept as they are."""

    columns: Mapping[str, Array]
    kept: Mapping[str, Any]
    start: int
    n_rows: int


class Passing:
    """The rows of a source, on their way. There may be none."""

    def __init__(self, source: Source, options: Options, names: Sequence[str], store: Store | None = None) -> None:
        self._source, self._options, self._store = source, options, store
        self._encoders: dict[str, Encoder] = {}
        self.names = tuple(names)

    @property
    def n_rows(self) -> int | None:
        """The number of rows, where it is known without reading them."""
        return self._source.n_rows if self._store is None else self._store.n_rows

    @property
    def paths(self) -> tuple[Any, ...]:
        """The files that the rows come from, if they do."""
        return tuple(getattr(self._source, "paths", ()))

    def kind(self, name: str) -> Kind:
        """What a column is made of."""
        return self._source.kind(name)

    def place(self, row: int) -> str:
        """Where a row stands, for a person; after the rows have passed."""
        return self._source.place(row)

    def binned_by_name(self, name: str) -> bool:
        """Whether the cells of a binned column were the names of bins, not numbers; after the rows have passed."""
        encoder = self._encoders.get(name)
        return isinstance(encoder, Cuts) and encoder.by_name

    def blocks(self, variables: Mapping[str, Variable], keep: Sequence[str] = (), what: str = "reading rows") -> Iterator[Passed]:
        """The rows, at most `ROWS` at a time, with some columns encoded as these variables and others kept as they are.

        >>> from suffice.variables import Finite
        >>> [block] = passing({"x": ["b", None], "n": [1, 2]}).blocks({"x": Finite("x", ["a", "b"])}, keep=["n"])
        >>> block.columns["x"], block.kept["n"].to_pylist()
        (array([  1, 255], dtype=uint8), [1, 2])
        """
        if not keep and variables and self._read_as(variables):
            return self._held(variables)
        return self._streamed(variables, keep, what)

    def _read_as(self, variables: Mapping[str, Variable]) -> bool:
        read = {} if self._store is None else self._store.read
        return all(n in read and read[n].variable == v for n, v in variables.items())

    def _held(self, variables: Mapping[str, Variable]) -> Iterator[Passed]:
        store = self._store
        assert store is not None
        for start, stop in ranges(store.n_rows or 0):
            columns = {n: store.view(store.read[n].column, start, stop) for n in variables}
            yield Passed(columns, {}, start, stop - start)

    def _streamed(self, variables: Mapping[str, Variable], keep: Sequence[str], what: str) -> Iterator[Passed]:
        options = replace(self._options, declared={**self._options.declared, **variables})
        self._encoders = encoders = {n: encoder_for(n, self._source, options) for n in variables}
        counted = keep if keep or encoders else self.names[:1]
        start = 0
        with readable(), closing(passed(self._source, encoders, counted, what)) as parts:
            for chunks, batch, n_rows in parts:
                for first, last in ranges(n_rows, ROWS):
                    columns = {n: chunk[first:last] for n, chunk in chunks.items()}
                    yield Passed(columns, {n: batch[n][first:last] for n in keep}, start + first, last - first)
                start += n_rows


def passing(x: Any, missing: Iterable[object] = ()) -> Passing:
    """The rows of anything that `scan` takes; `missing` lists words that mean a missing cell.

    >>> passing({"x": ["a"], "y": [1]}).names
    ('x', 'y')
    """
    if not isinstance(x, Data):
        source = source_of(x)
        return Passing(source, Options(missing=checked_words(missing)), source.names)
    if tuple(missing):
        raise DataError("words that mean missing are said when rows are first scanned; scan their source again")
    store: Any = x.engine.store  # type: ignore[attr-defined]
    return Passing(store.source, store.options, x.columns, store)
