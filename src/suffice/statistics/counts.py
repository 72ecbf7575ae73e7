"""Counts: how much weight of the data, or of a prior's imagination, fell into each cell of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.errors import StatisticsError, nearest
from suffice.statistics.configurations import (
    GONE,
    Request,
    checked_cells,
    describe,
    freeze,
    move_keys,
    n_configurations,
    project_keys,
    rename_variables,
    sizes,
)
from suffice.variables import Finite


@dataclass(frozen=True, eq=False)
class Counts:
    """A contingency table, dense or sparse.

    Dense: `keys` is None and `values` has one axis per variable. Sparse: `values[i]` is the count of the cell with the
    row-major flat index `keys[i]`, and every cell that is not listed holds `background` (what a prior imagines there).

    >>> x = Finite("x", ["a", "b"])
    >>> (Counts((x,), [3, 1]) + Counts((x,), [1, 1])).values
    array([4., 2.])
    """

    variables: tuple[Finite, ...]
    values: Array
    keys: Ints | None = None
    background: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "variables", tuple(self.variables))
        values = np.array(self.values, dtype=np.float64)
        shape = sizes(self.variables)
        if self.keys is None:
            if values.shape != shape:
                raise StatisticsError(f"counts of {[v.name for v in self.variables]} need the shape {shape}, not {values.shape}")
            if self.background:
                raise StatisticsError("a dense table has no background: every cell is listed")
        else:
            keys = np.array(self.keys, dtype=np.int64)
            if values.shape != keys.shape or keys.ndim != 1:
                raise StatisticsError(f"{keys.size} keys do not fit {values.size} counts")
            if keys.size and (keys[0] < 0 or keys[-1] >= n_configurations(self.variables) or np.any(np.diff(keys) <= 0)):
                raise StatisticsError("the keys of a sparse table must increase and lie within the table")
            object.__setattr__(self, "keys", freeze(keys))
        object.__setattr__(self, "values", freeze(values))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(v.name for v in self.variables)

    @property
    def request(self) -> Request:
        return Request(self.names)

    @property
    def total(self) -> float:
        """The weight of all cells together."""
        unlisted = 0 if self.keys is None else n_configurations(self.variables) - len(self.keys)
        return float(self.values.sum()) + self.background * unlisted

    def listed(self) -> tuple[Ints, Array]:
        """The cells that are not empty: their flat indices, increasing, and their counts."""
        if self.keys is not None:
            full = self.values != 0
            return (self.keys, self.values) if full.all() else (self.keys[full], self.values[full])
        flat = self.values.reshape(-1)
        keys = np.flatnonzero(flat)
        return keys, flat[keys]

    def at(self, keys: Ints) -> Array:
        """The counts of the cells with these flat indices."""
        if self.keys is None:
            return np.asarray(self.values.reshape(-1)[keys])
        result = np.full(len(keys), self.background)
        if len(self.keys):
            places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
            found = self.keys[places] == keys
            result[found] = self.values[places[found]]
        return result

    def dense(self) -> Array:
        """The whole table as an array; refused before allocation where it would not fit."""
        if self.keys is None:
            return self.values
        table = np.full(checked_cells(self.variables, "a table"), self.background)
        table[self.keys] = self.values
        return table.reshape(sizes(self.variables))

    def marginal(self, names: Sequence[str]) -> Counts:
        """The counts of some of the variables, in the order of `names`.

        >>> x, y = Finite("x", ["a", "b"]), Finite("y", ["a", "b"])
        >>> Counts((x, y), [[1, 2], [3, 4]]).marginal(["y"]).values
        array([4., 6.])
        """
        if tuple(names) == self.names:
            return self
        kept = tuple(self._variable(n) for n in names)
        if self.keys is None:
            dropped = tuple(i for i, v in enumerate(self.variables) if v.name not in names)
            summed = self.values.sum(axis=dropped)
            left = [n for n in self.names if n in names]
            return Counts(kept, np.transpose(summed, [left.index(n) for n in names]))
        places = project_keys(self.keys, self.variables, names)
        keys, inverse = np.unique(places, return_inverse=True)
        background = self.background * (n_configurations(self.variables) // n_configurations(kept))
        values: Array = np.bincount(inverse, self.values - self.background, len(keys)).astype(np.float64) + background
        return Counts(kept, values, keys, background)

    def recoded(self, by: Mapping[str, Finite]) -> Counts:
        """The same counts over the same variables with other (more, or reordered) states."""
        target = rename_variables(self.variables, by)
        if target == self.variables:
            alike = all(a.inferred == b.inferred for a, b in zip(target, self.variables, strict=True))
            return self if alike else replace(self, variables=target)
        if self.keys is not None and self.background:
            raise StatisticsError(f"imagined counts of {list(self.names)} cannot take other states")
        keys, values = self.listed()
        keys = move_keys(keys, self.variables, target)
        if self.keys is None:
            table = np.zeros(checked_cells(target, "a table"))
            table[keys] = values
            return Counts(target, table.reshape(sizes(target)))
        order = np.argsort(keys)
        return Counts(target, values[order], keys[order])

    def weighing(self, share: float) -> Counts:
        """The same counts, each weighing only so much of itself."""
        return replace(self, values=share * self.values, background=share * self.background)

    def __add__(self, other: Counts) -> Counts:
        return self._combined(other, 1.0)

    def __sub__(self, other: Counts) -> Counts:
        """What is left when `other` is taken away; a cell that would fall below zero is refused by name."""
        result = self._combined(other, -1.0)
        keys = np.arange(result.values.size) if result.keys is None else result.keys
        values, was = result.values.reshape(-1), self.at(keys)
        below = values < -GONE * was
        if np.any(below) or result.background < 0:
            cell = describe(int(keys[np.argmax(below)]), self.variables) if np.any(below) else "the cells that are not listed"
            raise StatisticsError(f"taking these counts away leaves less than nothing at {cell}: they were never part of the sum")
        values = np.where(values > GONE * was, values, 0.0)
        if result.keys is None:
            return Counts(result.variables, values.reshape(result.values.shape))
        kept = (values != result.background) | (result.background != 0)
        return Counts(result.variables, values[kept], keys[kept], result.background)

    def __eq__(self, other: object) -> bool:
        """The same counts of the same variables, dense or sparse."""
        if not isinstance(other, Counts) or self.variables != other.variables or self.background != other.background:
            return False
        return all(np.array_equal(a, b) for a, b in zip(self.listed(), other.listed(), strict=True))

    __hash__ = None  # type: ignore[assignment]

    def _combined(self, other: Counts, sign: float) -> Counts:
        if other.variables != self.variables:
            raise StatisticsError(f"counts of {list(self.names)} do not add to counts of {list(other.names)}")
        if self.keys is None or other.keys is None:
            if self.keys is None and other.keys is not None and not other.background:
                values = self.values.reshape(-1).copy()
                values[other.keys] += sign * other.values
                return Counts(self.variables, values.reshape(self.values.shape))
            return Counts(self.variables, self.dense() + sign * other.dense())
        keys = np.union1d(self.keys, other.keys)
        return Counts(self.variables, self.at(keys) + sign * other.at(keys), keys, self.background + sign * other.background)

    def _variable(self, name: str) -> Finite:
        if name not in self.names:
            raise StatisticsError(f"there are no counts of {name!r} here{nearest(name, self.names)}")
        return self.variables[self.names.index(name)]

    def __repr__(self) -> str:
        kind = "" if self.keys is None else f", sparse, {len(self.keys):,} listed"
        shape = "×".join(map(str, sizes(self.variables))) or "1"
        return f"Counts({' × '.join(self.names) or '()'}: {shape} cells{kind}, total {self.total:g})"
