"""The distribution of the rows themselves: each distinct row and its weight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.blocks import Batch
from suffice.engines.scan import scan
from suffice.errors import DataError, TooLarge, bytes_in_words
from suffice.variables import Count, Finite

Floats = npt.NDArray[np.float64]

MAX_BYTES = 2**31
"""Distinct rows and their weights take no more memory than this."""


def entropy_of_rows(data: Any) -> float:
    """H(P̂) in nats, P̂ the distribution that gives each row its share of the weight.

    Memory: the codes and the weight of each distinct row; rows are read a block at a time.

    >>> round(entropy_of_rows({"x": ["a", "b", "b"], "y": ["u", "v", "v"]}), 6)
    0.636514
    """
    rows = scan(data)
    number = next((n for n, v in rows.schema.items() if not isinstance(v, (Finite, Count))), None)
    if number is not None:
        raise DataError(f"the entropy of rows needs columns without real numbers, and {number!r} is real; cut it with Bins(...)")
    rows.require_complete(rows.schema)
    return entropy_of_weights(rows.fold(_distinct, what="finding distinct rows").weights)


def entropy_of_weights(weights: Floats) -> float:
    """H in nats of the distribution that weights make, Σ w = W: ln W − Σ w ln w / W.

    >>> round(entropy_of_weights(np.array([2.0, 2.0, 0.0])), 6)
    0.693147
    """
    w = weights[weights > 0]
    if not len(w):
        raise DataError("there are no rows, and so no distribution of them")
    # Exact sums, as the order of the rows is that of their states, which one source of the data has otherwise than another.
    share = w / math.fsum(w.tolist())
    return -math.fsum((share * np.log(share)).tolist())


@dataclass(frozen=True, eq=False)
class Distinct:
    """Rows as bytes, no two alike, in the order of the bytes, and their weights; adds to another."""

    keys: npt.NDArray[np.void]
    weights: Floats

    def __add__(self, other: Distinct) -> Distinct:
        size = (len(self.keys) + len(other.keys)) * (self.keys.dtype.itemsize + 8)
        if size > MAX_BYTES:
            raise TooLarge(
                f"there are {max(len(self.keys), len(other.keys)):,} distinct rows and more, which take {bytes_in_words(size)}, "
                f"and the limit is {bytes_in_words(MAX_BYTES)}: take fewer columns, for which data.select([...]) is there"
            )
        return _merged(np.concatenate([self.keys, other.keys]), np.concatenate([self.weights, other.weights]))


def _distinct(batch: Batch) -> Distinct:
    # Adding 0 makes -0.0 the 0.0 that it equals, so that equal rows are equal bytes.
    columns = [c if c.dtype.kind == "u" else c + 0.0 for c in batch.columns.values()]
    parts = [np.ascontiguousarray(c).view(np.uint8).reshape(batch.n_rows, c.dtype.itemsize) for c in columns]
    rows = np.concatenate(parts, axis=1)
    weights = np.ones(batch.n_rows) if batch.weight is None else batch.weight
    return _merged(rows.view(np.dtype((np.void, rows.shape[1]))).ravel(), weights)


def _merged(keys: npt.NDArray[np.void], weights: Floats) -> Distinct:
    distinct, inverse = np.unique(keys, return_inverse=True)
    return Distinct(distinct, np.bincount(inverse, weights, len(distinct)).astype(np.float64))
