"""Streaming: one pass over rows that nothing needs to be inferred from, without keeping them anywhere."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence

import numpy as np

from suffice.engines.engine import ROWS, Array, Block, Sum
from suffice.engines.infer import Weights
from suffice.engines.reading import Encoder, encoded, encoder_for, foreseen
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
        store, weights = self._store, self._store.options.weights
        encoders = {**self._encoders, weights: Weights()} if weights is not None else self._encoders
        start, total = 0, Sum[float]()
        for number, columns in enumerate(cut(encoded(store.source, encoders))):
            n = len(next(iter(columns.values())))
            weight = None if weights is None else columns.pop(weights)
            if weights is None and store.weight is not None:
                weight = store.rows(store.weight, start, start + n)
            total.add(number, float(n) if weight is None else float(weight.sum()))
            start += n
            if not complete or not any(self.missing.values()):
                yield Block(columns, weight, number)
        store.set_rows(start)
        store.set_total(total.value or 0.0)


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


def cut(parts: Iterable[tuple[dict[str, Array], int]]) -> Iterator[dict[str, Array]]:
    """Chunks of any lengths, cut anew into blocks.

    >>> [len(b["x"]) for b in cut([({"x": np.zeros(ROWS + 1)}, ROWS + 1), ({"x": np.zeros(ROWS)}, ROWS)])]
    [16384, 16384, 1]
    """
    left: dict[str, Array] = {}
    n_left = 0
    for chunks, n in parts:
        whole = {k: np.concatenate([left[k], c]) for k, c in chunks.items()} if n_left else chunks
        full = (n_left + n) // ROWS * ROWS
        for start in range(0, full, ROWS):
            yield {k: c[start : start + ROWS] for k, c in whole.items()}
        left, n_left = {k: c[full:] for k, c in whole.items()}, n_left + n - full
    if n_left:
        yield left
