"""The distribution of the rows themselves: each distinct row and its weight."""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.engines.scan import scan
from suffice.errors import DataError
from suffice.variables import Finite


def entropy_of_rows(data: Any) -> float:
    """H(P̂) in nats, P̂ the distribution that gives each row its share of the weight. Memory: one entry per distinct row."""
    rows = scan(data)
    number = next((n for n, v in rows.schema.items() if not isinstance(v, Finite)), None)
    if number is not None:
        raise DataError(f"the entropy of rows needs finite columns, and {number!r} holds numbers; cut it with Bins(...)")
    rows.require_complete(rows.schema)
    weights: dict[bytes, float] = {}
    for batch in rows.batches():
        codes = np.ascontiguousarray(np.stack([batch.columns[n].astype(np.uint32) for n in rows.schema], axis=1))
        keys, inverse = np.unique(codes.view(np.dtype((np.void, codes.shape[1] * 4))).ravel(), return_inverse=True)
        for key, weight in zip(keys, np.bincount(inverse, batch.weight), strict=True):
            weights[key.tobytes()] = weights.get(key.tobytes(), 0.0) + float(weight)
    w = np.array([x for x in weights.values() if x > 0])
    total = w.sum()
    return float(np.log(total) - w @ np.log(w) / total)
