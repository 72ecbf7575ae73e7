"""All dense tables of some statistics in one array, each found by a number for its set of variables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.statistics.counts import Array, Counts
from suffice.variables import Finite

Ints = npt.NDArray[np.int64]


class FlatCounts(NamedTuple):
    """Tables one after the other, axes in the order of names; sets of one size are numbered by their members, in that order.

    >>> x, y = Finite("x", ["a", "b"]), Finite("y", ["u", "v"])
    >>> flat = FlatCounts.of([Counts((y, x), [[1, 2], [3, 4]])], {"x": x, "y": y})
    >>> flat.values, flat.starts(np.array([[0, 1]]))
    (array([1., 3., 2., 4.]), array([0]))
    """

    names: tuple[str, ...]
    values: Array
    by_size: dict[int, tuple[Ints, Ints]]
    """Of sets of so many variables: their numbers, increasing, and where the table of each begins."""
    whole: bool
    """Whether all counts are whole numbers."""

    @staticmethod
    def of(entries: Iterable[Any], variables: Mapping[str, Any]) -> FlatCounts:
        names = tuple(sorted(n for n, v in variables.items() if isinstance(v, Finite)))
        number, parts, at = {n: i for i, n in enumerate(names)}, list[Array](), 0
        found: dict[int, list[tuple[int, int]]] = {}
        for entry in entries:
            if isinstance(entry, Counts) and entry.keys is None and len(names) ** len(entry.variables) < 2**62:
                table, key = entry.marginal(sorted(entry.names)).values, 0
                for name in sorted(entry.names):
                    key = key * len(names) + number[name]
                found.setdefault(table.ndim, []).append((key, at))
                parts.append(table.reshape(-1))
                at += table.size
        values = np.concatenate([np.zeros(0), *parts])
        places = {size: np.array(sorted(pairs), np.int64).T for size, pairs in found.items()}
        by_size = {size: (np.ascontiguousarray(p[0]), np.ascontiguousarray(p[1])) for size, p in places.items()}
        return FlatCounts(names, values, by_size, bool((values == np.floor(values)).all()))

    def starts(self, sets: npt.NDArray[Any]) -> Ints | None:
        """Where the table of each set, its members increasing, begins; None if some have none."""
        known, begin = self.by_size.get(sets.shape[1], (np.zeros(0, np.int64), np.zeros(0, np.int64)))
        if not len(known) or (sets[:, 1:] <= sets[:, :-1]).any():
            return None
        key = np.zeros(len(sets), np.int64)
        for column in sets.T:
            key = key * len(self.names) + column
        place = np.minimum(np.searchsorted(known, key), len(known) - 1)
        return begin[place] if (known[place] == key).all() else None
