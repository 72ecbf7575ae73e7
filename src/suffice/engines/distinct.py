"""The distribution of the rows themselves: each distinct row and its weight."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.scan import scan
from suffice.errors import DataError
from suffice.variables import Count, Finite

Floats = npt.NDArray[np.float64]


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
    return entropy_of_weights(rows.distinct().weights)


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
