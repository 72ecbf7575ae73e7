"""Variable elimination: the joint of a few variables from a product of factors.

The variable whose elimination makes the smallest new factor goes first (min-weight, ties by name), and every factor's
size is checked before it is made. Zhang & Poole 1996, JAIR 5, p. 301.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from suffice.factors import Factor, product


def joint(factors: Iterable[Factor], keep: Sequence[str]) -> Factor:
    """Σ over everything but `keep` of the product of the factors, axes in the order of `keep`.

    >>> import numpy as np
    >>> a = Factor(("a",), np.array([0.25, 0.75]))
    >>> b = Factor(("a", "b"), np.array([[0.5, 0.5], [0.0, 1.0]]))
    >>> joint([a, b], ["b"]).values
    array([0.125, 0.875])
    """
    pool = list(factors)
    sizes = {n: s for f in pool for n, s in zip(f.names, f.values.shape, strict=True)}
    neighbours: dict[str, set[str]] = {n: set() for n in sizes}
    for f in pool:
        for n in f.names:
            neighbours[n].update(f.names)
    left = set(sizes) - set(keep)
    weight = {n: math.prod(sizes[m] for m in neighbours[n]) for n in left}
    while left:
        name = min(left, key=lambda n: (weight[n], n))
        left.remove(name)
        touched = [f for f in pool if name in f.names]
        pool = [f for f in pool if name not in f.names]
        pool.append(product(touched).without(name))
        around = neighbours.pop(name) - {name}
        for n in around:
            neighbours[n] = (neighbours[n] | around) - {name}
            if n in left:
                weight[n] = math.prod(sizes[m] for m in neighbours[n])
    result = product(pool)
    return Factor(tuple(keep), result.ordered(keep))
