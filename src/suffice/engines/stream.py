"""Streaming: one pass over rows that nothing needs to be inferred from, without keeping them anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from suffice.engines.blocks import ROWS, Block
from suffice.engines.columns import Array
from suffice.engines.encode import code_type
from suffice.engines.gather import Fill
from suffice.engines.infer import Weights
from suffice.engines.parallel import tree_sum
from suffice.engines.reading import Encoder, encoded, encoder_for, foreseen
from suffice.engines.store import Store
from suffice.variables import Finite, Variable


class Stream:
    """The rows of some columns of a store, straight from its source."""

    def __init__(self, store: Store, encoders: dict[str, Encoder]) -> None:
        self._store, self._encoders = store, encoders
        known = {n: foreseen(n, e, store.options) for n, e in encoders.items()}
        self.variables: dict[str, Variable] = {n: v for n, v in known.items() if v is not None}
        finite = {n: v.n_states for n, v in self.variables.items() if isinstance(v, Finite)}
        self.dtypes = {n: code_type(finite[n]) if n in finite else np.dtype(np.float64) for n in encoders}

    @property
    def missing(self) -> dict[str, int]:
        """The missing cells of each column, so far."""
        return {n: e.n_missing for n, e in self._encoders.items()}

    def fills(self) -> Iterator[Fill]:
        """What puts the rows into blocks, block by block. Where cells are missing nothing is counted, only the missing cells."""
        store, weights = self._store, self._store.options.weights
        encoders = {**self._encoders, weights: Weights()} if weights is not None else self._encoders
        start, totals = 0, []
        for block in blocks(encoded(store.source, encoders)):
            n = len(next(iter(block.values())))
            weight = None if weights is None else block[weights]
            if weights is None and store.weight is not None:
                weight = store.rows(store.weight, start, start + n)
            totals.append(float(n) if weight is None else float(weight.sum()))
            start += n
            if not any(self.missing.values()):
                yield _fill(block, weight, n)
        store.set_rows(start)
        store.set_total(tree_sum(totals, lambda a, b: a + b) or 0.0)


def stream(store: Store, names: Sequence[str]) -> Stream | None:
    """A stream of these columns if they are too large for memory, none of them was read yet and all are declared.

    Only the first pass is streamed: who asks again will ask often, and a spill is faster.
    """
    if store.streamed or any(n in store.read for n in names) or store.fits(names):
        return None
    if store.weight is not None and store.n_rows is None:
        return None  # weights that may not be as many as the rows
    encoders = {n: encoder_for(n, store.source, store.options) for n in names}
    passing = Stream(store, encoders)
    if len(passing.variables) < len(encoders):
        return None
    store.streamed = True
    return passing


def blocks(parts: Iterable[tuple[dict[str, Array], int]]) -> Iterator[dict[str, Array]]:
    """Chunks of any lengths, cut anew into blocks.

    >>> [len(b["x"]) for b in blocks([({"x": np.zeros(ROWS + 1)}, ROWS + 1), ({"x": np.zeros(ROWS)}, ROWS)])]
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


def _fill(columns: dict[str, Array], weight: Array | None, n_rows: int) -> Fill:
    def read(name: str, out: Array) -> None:
        out[:] = columns[name]

    def read_weight(out: Array) -> None:
        out[:] = weight

    def fill(block: Block) -> None:
        block.fill(read, None if weight is None else read_weight, n_rows)

    return fill
