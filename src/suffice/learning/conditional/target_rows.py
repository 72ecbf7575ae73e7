"""Rows as an objective about one finite column sees them: the scores that each of its states has in each row, and what they
lose.

A model gives each state k of the target in row r the score s_k = Σ_f ℓ[cells_f[r, k]], a sum of cells of one vector ℓ. With n_r
the weight of the row and y its state,

    Σ_r n_r T ln Σ_k exp((cost [k ≠ y] + s_k − s_y) / T)

is −Σ log p(y | rest) for cost 0 and T = 1, and tends to the hinge loss of `Margin` with T to 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, StatisticsError, listing
from suffice.inference.finite.logs import log_sum
from suffice.statistics import Statistics
from suffice.variables import Finite


def distinct_rows(variables: Mapping[str, Any], names: Iterable[str], data: Any) -> tuple[dict[str, Ints], Array]:
    """The distinct rows of some finite columns, sorted, as states by column, and the weight of each; of statistics, the cells
    of the table of these columns."""
    own = {name: variables[name] for name in names}
    for name, variable in own.items():
        if not isinstance(variable, Finite):
            raise FitError(f"{name!r} holds numbers, and a finite column is told from finite columns: cut it into Bins")
    if isinstance(data, Statistics):
        return _cells(own, data)
    rows = (data if isinstance(data, Data) else scan(data)).take(own).with_variables(own)
    if gaps := [n for n, m in rows.missing.items() if m]:
        raise DataError(f"the column {gaps[0]!r} has missing cells, and one column is told from the others in complete rows")
    found = rows.distinct()
    columns = {n: found.columns[n].astype(np.int64) for n in own}
    order = np.lexsort(tuple(columns.values()))
    return {n: c[order] for n, c in columns.items()}, np.asarray(found.weights, np.float64)[order]


def _cells(own: Mapping[str, Finite], statistics: Statistics) -> tuple[dict[str, Ints], Array]:
    try:
        counts = statistics.counts(list(own))
    except StatisticsError as error:
        raise StatisticsError(
            f"to tell a column from the others, statistics must have one table of {listing(own)} together: {error.said}"
        ) from None
    keys, weights = counts.listed()
    codes = np.unravel_index(keys, [v.n_states for v in counts.variables])
    return {v.name: np.asarray(c, np.int64) for v, c in zip(counts.variables, codes, strict=True)}, weights


@dataclass(frozen=True, eq=False)
class TargetRows:
    """`design` (rows × configurations, sparse) says which configurations of the other columns a row has, one in each part of
    the vector, and `places` (configurations × states of the target) which cell is theirs; `true` is the state that a row
    has."""

    design: Any
    places: Ints
    true: Ints
    weights: Array

    @classmethod
    def of(cls, target: str, scopes: Sequence[Sequence[Finite]], starts: Sequence[int], rows: tuple[Any, Array]) -> TargetRows:
        """Tables over these variables, the last of which changes fastest, which begin at these places of the vector."""
        from scipy.sparse import csr_array

        columns, weights = rows
        places, which, n = [], [], 0
        for scope, start in zip(scopes, starts, strict=True):
            first, of_row, by_state = _configurations(target, scope, columns)
            places.append(start + first[:, None] + by_state)
            which.append(n + of_row)
            n += len(first)
        numbers = np.stack(which, axis=1)
        starts_of_rows = np.arange(0, numbers.size + 1, len(which))
        design = csr_array((np.ones(numbers.size), numbers.reshape(-1), starts_of_rows), shape=(len(weights), n))
        return cls(design, np.concatenate(places), columns[target], weights)

    @property
    def weight(self) -> float:
        return float(self.weights.sum())

    @cached_property
    def _transposed(self) -> Any:
        return self.design.T.tocsr()

    def scores(self, logs: Array) -> Array:
        """s_k of each row."""
        return np.asarray(self.design @ logs[self.places])

    def by_cell(self, by_score: Array, size: int) -> Array:
        """The gradient by the cells of something whose gradient by the scores this is."""
        result = np.zeros(size)
        result[self.places] = self._transposed @ by_score
        return result

    def prices(self, cost: float) -> Array:
        """What each state of each row costs: nothing where it is the right one."""
        return np.asarray(cost * (np.arange(self.places.shape[1]) != self.true[:, None]))

    def loss(self, logs: Array, cost: float = 0.0, temperature: float = 1.0) -> tuple[float, Array]:
        """The loss above, and its gradient by the cells: expected − seen."""
        each = np.arange(len(self.true))
        s = (self.scores(logs) + self.prices(cost)) / temperature
        log_z = log_sum(s, 1)
        surplus = np.exp(s - log_z[:, None]) * self.weights[:, None]
        surplus[each, self.true] -= self.weights
        value = temperature * float(self.weights @ (log_z - s[each, self.true]))
        return value, self.by_cell(surplus, len(logs))

    def hinge(self, logs: Array, cost: float) -> float:
        """Σ n max_k (cost [k ≠ y] + s_k − s_y)."""
        s = self.scores(logs)
        return float(self.weights @ ((s + self.prices(cost)).max(axis=1) - s[np.arange(len(s)), self.true]))


def _configurations(target: str, scope: Sequence[Finite], columns: Mapping[str, Ints]) -> tuple[Ints, Ints, Ints]:
    """The configurations of a table without its target that rows have, as cells where that has its first state; which of them
    each row has; and how far on the cell of each state is."""
    first, step = np.zeros(len(columns[target]), np.int64), 0
    for v in scope:
        own = 0 if v.name == target else columns[v.name]
        first = first * v.n_states + own
        step = 1 if v.name == target else step * v.n_states
    n_states = next(v.n_states for v in scope if v.name == target)
    found, of_row = np.unique(first, return_inverse=True)
    return found, of_row, step * np.arange(n_states)
