"""Rows with numbers, reduced by a sum: rows that show the same states and lack the same numbers become few.

What is expected of missing numbers is linear in the observed ones, so of rows that differ in their numbers only, weight, mean and
scatter say all. They are kept as rows, at most one more than there are numbers, with the same weight, mean and scatter: then
nothing that comes later need tell them from rows that were seen. Rows that lack states stay as they are, since what their
numbers say of the states is not linear.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from suffice.engines.data import MAX_BYTES, Data
from suffice.engines.engine import Block, Step
from suffice.engines.sample import row_hashes
from suffice.errors import DataError, TooLarge, bytes_in_words
from suffice.incomplete.completions import Floats, Ints, Places, Small, codes_of
from suffice.incomplete.units import Units, observed_cells
from suffice.variables import Finite, Real

CROWD = 4
"""Rows are summed up when there are so many times as many as they become: summing up takes time itself."""


class NumberRows(NamedTuple):
    """Rows of states, `codes[variable, row]`, −1 where missing, and of numbers in units, `numbers[real, row]`, NaN there."""

    variables: tuple[Finite, ...]
    reals: tuple[str, ...]
    codes: Small
    numbers: Floats
    weights: Floats
    units: Units
    places: Places

    @staticmethod
    def of(data: Data, variables: tuple[Finite, ...], reals: tuple[str, ...]) -> NumberRows:
        """The rows over these variables, of which those that are no column are hidden."""
        seen = data.take([n for n in (*(v.name for v in variables), *reals) if n in data.columns])
        units = Units.of(observed_cells(seen.take(reals), reals), {n: Real(n) for n in reals})
        for name in reals:
            if not units.variance[name] > 0:
                raise DataError(f"all values of {name!r} are the same, and a constant has no density: leave the column out")
        rows = seen.fold(_Reduce(variables, reals, units), what="reading numbers")
        numbers = np.ascontiguousarray(rows.numbers.T)
        return NumberRows(variables, reals, rows.codes, numbers, rows.weights, units, Places(seen, rows.at))

    def block(self, codes: Small, numbers: Floats) -> Block:
        """Rows of these variables as an engine has them."""
        states = {v.name: column for v, column in zip(self.variables, codes.view(np.uint32), strict=True)}
        return Block({**states, **dict(zip(self.reals, numbers, strict=True))})


@dataclass(frozen=True, eq=False)
class _Reduced:
    """Rows, and the places of those that they stand for, or of one of them."""

    codes: Small
    numbers: Floats
    weights: Floats
    at: Ints

    def __add__(self, other: _Reduced) -> _Reduced:
        joined = (np.concatenate([self.numbers, other.numbers]), np.concatenate([self.weights, other.weights]))
        both = _Reduced(np.hstack([self.codes, other.codes]), *joined, np.concatenate([self.at, other.at])).crowds_merged()
        size = sum(a.nbytes for a in (both.codes, both.numbers, both.weights, both.at))
        if size > MAX_BYTES:
            raise TooLarge(
                f"rows with numbers that lack different cells cannot be summed up: {len(both.weights):,} of them and more take "
                f"{bytes_in_words(size)}, and the limit is {bytes_in_words(MAX_BYTES)}: take fewer columns, for which "
                "data.select([...]) is there"
            )
        return both

    def crowds_merged(self) -> _Reduced:
        """The same with few rows in the place of many that show the same states and lack the same numbers."""
        order, edges = self._groups()
        large = np.flatnonzero(np.diff(edges) > CROWD * (self.numbers.shape[1] + 1))
        crowds = [order[edges[i] : edges[i + 1]] for i in large]
        if not crowds:
            return self
        alone = np.ones(len(self.weights), bool)
        alone[np.concatenate(crowds)] = False
        kept, numbers, weights = [np.flatnonzero(alone)], [self.numbers[alone]], [self.weights[alone]]
        for crowd in crowds:
            x, w = condensed(self.numbers[crowd], self.weights[crowd])
            kept.append(np.full(len(w), crowd.min()))
            numbers.append(x)
            weights.append(w)
        owner = np.concatenate(kept)
        return _Reduced(self.codes[:, owner], np.concatenate(numbers), np.concatenate(weights), self.at[owner])

    def _groups(self) -> tuple[Ints, Ints]:
        """The rows that lack no state, those of equal codes and patterns together, and where each of these groups begins."""
        whole = np.flatnonzero((self.codes >= 0).all(axis=0))
        key = np.vstack([self.codes[:, whole].view(np.uint32), np.packbits(~np.isnan(self.numbers[whole]), axis=1).T])
        mix = row_hashes(Block({str(i): part for i, part in enumerate(key)}))
        order = np.argsort(mix, kind="stable")
        key = key[:, order]
        new = (key[:, 1:] != key[:, :-1]).any(axis=0)  # where hashes collide, a group may come in parts
        return whole[order], np.concatenate([[0], np.flatnonzero(new) + 1, [len(whole)]])


@dataclass(frozen=True, eq=False)
class _Reduce(Step[_Reduced]):
    """Rows with weight, those that say the same summed up; numbers are in their units, so that they keep their digits."""

    variables: tuple[Finite, ...]
    reals: tuple[str, ...]
    units: Units

    def of(self, block: Block) -> _Reduced:
        rows = np.flatnonzero(block.weights > 0)
        some = block.take(rows)
        numbers = np.column_stack([self.units.inward(n, some.columns[n]) for n in self.reals])
        at = np.column_stack([np.full(len(rows), block.number), rows])
        return _Reduced(codes_of(some.columns, self.variables, len(rows)), numbers, some.weights, at).crowds_merged()


def condensed(x: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Few rows with the weight, mean and scatter of these, which all lack (NaN) the same numbers; a constant stays one.

    >>> x, w = condensed(np.array([[1.0, np.nan], [2.0, np.nan], [6.0, np.nan]]), np.array([1.0, 1.0, 2.0]))
    >>> len(x), (w @ x[:, 0] / w.sum()).round(9), (w @ (x[:, 0] - 3.75) ** 2).round(9)
    (2, np.float64(3.75), np.float64(20.75))
    """
    from scipy.linalg import helmert

    shown, total = ~np.isnan(x[0]), float(w.sum())
    off = x[:, shown] - x[0, shown]
    mean = w @ off / total
    off -= mean
    scatter = (off * w[:, None]).T @ off
    scale = np.sqrt(np.diag(scatter))
    some = np.where(scale > 0, scale, 1.0)
    square, axes = np.linalg.eigh(scatter / some[:, None] / some)
    n = len(scale) + 1
    result = np.full((n, x.shape[1]), np.nan)
    spread = helmert(n).T @ (np.sqrt(np.maximum(square, 0.0))[:, None] * axes.T)
    result[:, shown] = x[0, shown] + mean + np.sqrt(n / total) * scale * spread
    return result, np.full(n, total / n)
