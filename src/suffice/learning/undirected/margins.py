"""Tables that were given one by one must say the same of what they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from suffice.errors import StatisticsError, listing
from suffice.models.undirected.log_linear import Names
from suffice.statistics import Statistics
from suffice.statistics.configurations import describe
from suffice.variables import Finite

Array = npt.NDArray[np.float64]

ALLOWED = 1e-8
"""Tables may differ by this share of all rows."""


def check_margins(statistics: Statistics, scopes: Sequence[Names], variables: Mapping[str, Finite]) -> None:
    """Refuse tables that contradict each other, by the cell in which they do.

    >>> from suffice.statistics import Counts
    >>> x, y, z = (Finite(n, ["a", "b"]) for n in "xyz")
    >>> given = Statistics([Counts((x, y), [[1, 1], [1, 1]]), Counts((y, z), [[2, 1], [1, 0]])], 4)
    >>> check_margins(given, [("x", "y"), ("y", "z")], {"x": x, "y": y, "z": z})
    Traceback (most recent call last):
    suffice.errors.StatisticsError: the tables of 'x', 'y' and of 'y', 'z' contradict each other at y='a': they count 2 and 3
    """
    if len(statistics) == 1:
        return
    tables = [statistics.counts(scope).dense() for scope in scopes]
    first: dict[Names, int] = {}
    pairs: dict[Names, list[int]] = {}
    for k, scope in enumerate(scopes):
        alone: list[Names] = [(), *((n,) for n in scope)]
        shared = {(first.setdefault(own, k), own) for own in alone}
        for pair in combinations(scope, 2):
            near = pairs.setdefault(pair, [])
            shared |= {(j, tuple(n for n in scope if n in scopes[j])) for j in near}
            near.append(k)
        for j, own in sorted(shared):
            if j != k:
                _compare(tables, scopes, (j, k), own, variables, ALLOWED * statistics.weight)


def _compare(
    tables: Sequence[Array],
    scopes: Sequence[Names],
    both: tuple[int, int],
    own: Names,
    variables: Mapping[str, Finite],
    allowed: float,
) -> None:
    one, other = (tables[i].sum(axis=tuple(a for a, n in enumerate(scopes[i]) if n not in own)).reshape(-1) for i in both)
    at = int(np.argmax(np.abs(one - other)))
    if abs(one[at] - other[at]) > allowed:
        where = f" at {describe(at, tuple(variables[n] for n in own))}" if own else ""
        raise StatisticsError(
            f"the tables of {listing(scopes[both[0]])} and of {listing(scopes[both[1]])} contradict each other{where}: "
            f"they count {one[at]:g} and {other[at]:g}"
        )
