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
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, StatisticsError, listed
from suffice.statistics import Statistics
from suffice.variables import Finite

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


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
            f"to tell a column from the others, statistics must have one table of {listed(own)} together: {error}"
        ) from None
    keys, weights = counts.listed()
    codes = np.unravel_index(keys, [v.n_states for v in counts.variables])
    return {v.name: np.asarray(c, np.int64) for v, c in zip(counts.variables, codes, strict=True)}, weights


@dataclass(frozen=True, eq=False)
class TargetRows:
    """`cells[f][r, k]` is the cell of part f of the vector that row r is in if the target has state k; `true` is the state that
    it has."""

    cells: tuple[Ints, ...]
    true: Ints
    weights: Array

    @classmethod
    def of(cls, target: str, scopes: Sequence[Sequence[Finite]], starts: Sequence[int], rows: tuple[Any, Array]) -> TargetRows:
        """Tables over these variables, the last of which changes fastest, which begin at these places of the vector."""
        columns, weights = rows
        return cls(
            tuple(start + _places(target, scope, columns) for scope, start in zip(scopes, starts, strict=True)),
            columns[target],
            weights,
        )

    @property
    def weight(self) -> float:
        return float(self.weights.sum())

    def scores(self, logs: Array) -> Array:
        """s_k of each row."""
        return np.asarray(np.sum([logs[at] for at in self.cells], axis=0))

    def by_cell(self, by_score: Array, size: int) -> Array:
        """The gradient by the cells of something whose gradient by the scores this is."""
        flat = by_score.reshape(-1)
        return np.asarray(np.sum([np.bincount(at.reshape(-1), flat, size) for at in self.cells], axis=0))

    def prices(self, cost: float) -> Array:
        """What each state of each row costs: nothing where it is the right one."""
        return np.asarray(cost * (np.arange(self.cells[0].shape[1]) != self.true[:, None]))

    def loss(self, logs: Array, cost: float = 0.0, temperature: float = 1.0) -> tuple[float, Array]:
        """The loss above, and its gradient by the cells: expected − seen."""
        each = np.arange(len(self.true))
        s = (self.scores(logs) + self.prices(cost)) / temperature
        top = s.max(axis=1, keepdims=True)
        log_z = top + np.log(np.exp(s - top).sum(axis=1, keepdims=True))
        surplus = np.exp(s - log_z) * self.weights[:, None]
        surplus[each, self.true] -= self.weights
        value = temperature * float(self.weights @ (log_z[:, 0] - s[each, self.true]))
        return value, self.by_cell(surplus, len(logs))

    def hinge(self, logs: Array, cost: float) -> float:
        """Σ n max_k (cost [k ≠ y] + s_k − s_y)."""
        s = self.scores(logs)
        return float(self.weights @ ((s + self.prices(cost)).max(axis=1) - s[np.arange(len(s)), self.true]))


def _places(target: str, scope: Sequence[Finite], columns: Mapping[str, Ints]) -> Ints:
    n_states = next(v.n_states for v in scope if v.name == target)
    result = np.zeros((len(columns[target]), n_states), np.int64)
    for v in scope:
        own = np.arange(n_states)[None] if v.name == target else columns[v.name][:, None]
        result = result * v.n_states + own
    return result
