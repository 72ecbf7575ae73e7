"""Streaming: one pass over rows that nothing needs to be inferred from, without keeping them anywhere."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from suffice.engines.engine import ROWS, Block, Sum
from suffice.engines.infer import Weights
from suffice.engines.reading import Encoder, encoder_for, foreseen, passed
from suffice.engines.store import Store


class Stream:
    """The rows of some columns of a store, straight from its source."""

    def __init__(self, store: Store, encoders: dict[str, Encoder]) -> None:
        self._store, self._encoders = store, encoders

    @property
    def missing(self) -> dict[str, int]:
        """The missing cells of each column, so far."""
        return {n: e.n_missing for n, e in self._encoders.items()}

    def blocks(self, complete: bool) -> Generator[Block]:
        """The rows, block by block. If they must be complete, there are no more of them once a cell is missing."""
        n_rows, total = 0, Sum[float]()
        for block in self.rows():
            n_rows += block.n_rows
            total.add(block.number, float(block.n_rows if block.weight is None else block.weight.sum()))
            if not complete or not any(self.missing.values()):
                yield block
        self._store.set_rows(n_rows)
        self._store.set_total(total.value or 0.0)

    def rows(self, keep: Sequence[str] = (), what: str = "reading rows") -> Generator[Block]:
        """The rows, block by block, with columns to keep as they are; there may be none."""
        store, weights = self._store, self._store.options.weights
        encoders = {**self._encoders, weights: Weights()} if weights is not None else self._encoders
        with closing(passed(store.source, encoders, keep, what)) as parts:
            whole = (({**chunks, **{(n,): batch[n] for n in keep}}, n_rows) for chunks, batch, n_rows in parts)
            start = 0
            for number, cells in enumerate(cut(whole)):
                columns, kept = {n: cells[n] for n in self._encoders}, {n: cells[n,] for n in keep}
                n_rows = len(next(iter(cells.values())))
                weight = None if weights is None else cells[weights]
                if weights is None and store.weight is not None:
                    weight = store.rows(store.weight, start, start + n_rows)
                yield Block(columns, weight, number, kept)
                start += n_rows


def stream(store: Store, names: Sequence[str]) -> Stream | None:
    """A stream of these columns if they are too large for memory, none of them was read yet and all are declared.

    Only the first pass is streamed: who asks again will ask often, and a spill is faster.
    """
    if not names or store.streamed or any(n in store.read for n in names) or store.fits(names):
        return None
    if store.weight is not None and store.n_rows is None:
        return None  # weights that may not be as many as the rows
    encoders = {n: encoder_for(n, store.source, store.options) for n in names}
    if any(foreseen(n, e, store.options) is None for n, e in encoders.items()):
        return None
    store.streamed = True
    return Stream(store, encoders)


def cut(parts: Iterable[tuple[dict[Any, Any], int]]) -> Iterator[dict[Any, Any]]:
    """Chunks of any lengths, arrays of numpy or Arrow, cut anew into blocks; what lies in one chunk is not copied.

    >>> [len(b["x"]) for b in cut([({"x": np.zeros(ROWS + 1)}, ROWS + 1), ({"x": np.zeros(ROWS)}, ROWS)])]
    [16384, 16384, 1]
    """
    pieces: list[dict[Any, Any]] = []
    lacking = ROWS
    for chunks, n in parts:
        start = 0
        while start < n:
            size = min(lacking, n - start)
            pieces.append({k: c[start : start + size] for k, c in chunks.items()})
            start, lacking = start + size, lacking - size
            if not lacking:
                yield _joined(pieces)
                pieces, lacking = [], ROWS
    if pieces:
        yield _joined(pieces)


def _joined(pieces: list[dict[Any, Any]]) -> dict[Any, Any]:
    if len(pieces) == 1:
        return pieces[0]
    return {k: _concatenated([piece[k] for piece in pieces]) for k in pieces[0]}


def _concatenated(cells: list[Any]) -> Any:
    if isinstance(cells[0], np.ndarray):
        return np.concatenate(cells)
    import pyarrow as pa

    return pa.concat_arrays(cells)
