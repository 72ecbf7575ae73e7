"""Resampling: some rows of a store as a store of their own, and which rows a bootstrap sample or a fold takes.

Picked rows are held in memory as encoded columns, one byte a cell for up to 255 states and eight a number, wherever the rows came
from; their size is known, and refused if it is too large, before any of it is taken. What the columns are is taken over as
declared: a state that none of the picked rows has is still a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.blocks import ranges
from suffice.engines.columns import Array, Column
from suffice.engines.encode import missing_code
from suffice.engines.memory import Held
from suffice.engines.options import Options
from suffice.engines.reading import Read
from suffice.engines.sources import Categories, Kind
from suffice.engines.store import Store
from suffice.errors import DataError, TooLarge, bytes_in_words
from suffice.variables import Finite, Variable

Index = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

Sample = tuple[Index, Floats | None]
"""Numbers of rows, and their weights if they have any."""

ROWS = 2**20
"""Rows that are read at once from a column that is not in memory."""

WRITTEN_OUT = 2**25
"""Rows up to which rows that weights count are written out one by one."""


class Encoded:
    """A source of columns that are encoded already, for whoever declares them otherwise and must read them again."""

    stable = True

    def __init__(self, read: Mapping[str, Read], n_rows: int, place: Callable[[int], str] | None = None) -> None:
        self.names = tuple(read)
        self._place = place
        self.n_rows: int | None = n_rows
        self._variables = {n: r.variable for n, r in read.items()}
        self._columns = {n: r.column.array for n, r in read.items() if isinstance(r.column, Held)}

    def kind(self, name: str) -> Kind:
        return Kind.CATEGORY if isinstance(self._variables[name], Finite) else Kind.NUMBER

    def described(self, name: str) -> str:
        return repr(self._variables[name])

    def categories(self, name: str) -> Categories | None:
        variable = self._variables[name]
        return Categories(variable.states, True) if isinstance(variable, Finite) else None

    def n_bytes(self, names: Sequence[str]) -> int:
        return 0

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        for start, stop in ranges(self.n_rows or 0, ROWS):
            yield {n: self._arrow(n, start, stop) for n in names}

    def place(self, row: int) -> str:
        return f"row {row + 1} of those picked" if self._place is None else self._place(row)

    def _arrow(self, name: str, start: int, stop: int) -> Any:
        import pyarrow as pa

        cells, variable = self._columns[name][start:stop], self._variables[name]
        if not isinstance(variable, Finite):
            return pa.array(cells, from_pandas=True)
        codes = pa.array(cells.astype(np.int32), mask=cells == missing_code(cells.dtype))
        return pa.DictionaryArray.from_arrays(codes, pa.array(variable.states))


def picked(store: Store, names: Sequence[str], index: Any, weights: Any = None) -> Store:
    """A store of the rows `index` in that order, as often as they are named, with their weights or with new ones."""
    store.require(names)
    n_rows = store.n_rows or 0
    rows = checked_index(index, n_rows)
    _refuse_too_large(store, names, len(rows))
    read = {n: _picked_column(store.read[n], rows, n_rows) for n in names}
    declared: dict[str, Variable] = {n: r.variable for n, r in read.items()}
    result = Store(Encoded(read, len(rows)), Options(declared, memory_limit=store.options.memory_limit))
    result.read = read
    if weights is not None:
        result.set_weights(weights)
    elif store.weight is not None:
        result.weight = Held(_cells(store.weight, rows, n_rows))
    return result


def checked_index(index: Any, n_rows: int) -> Index:
    """Numbers of rows from 0, all of them there; a mask of all rows means those where it is true.

    >>> checked_index([True, False, True], 3), checked_index([2, 0, 2], 3)
    (array([0, 2]), array([2, 0, 2]))
    """
    rows = np.asarray(index)
    if rows.dtype == bool and rows.shape == (n_rows,):
        rows = np.flatnonzero(rows)
    if not rows.size:
        raise DataError("there are no rows among those picked")
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise DataError("rows are picked by a list of their numbers from 0, or by a mask with one truth value for each row")
    if rows.min() < 0 or rows.max() >= n_rows:
        wrong = rows.min() if rows.min() < 0 else rows.max()
        raise DataError(f"there is no row {wrong}; the {n_rows:,} rows are numbered from 0")
    return rows.astype(np.int64, copy=False)


def drawn(n_rows: int, weight: Floats | None, rng: np.random.Generator) -> Sample:
    """A bootstrap sample: as many rows as there are, drawn with replacement, sorted; and their weights.

    Weights that are whole numbers count equal rows, and the rows they count are what is drawn: the sample of a table of counts
    is that of the table written out. Other weights stay with the rows they belong to.

    >>> drawn(2, np.array([3.0, 0.0]), np.random.default_rng(0))
    (array([0]), array([3.]))
    """
    if weight is None or not counts(weight):
        index = np.sort(rng.integers(n_rows, size=n_rows))
        return index, None if weight is None else weight[index]
    return _weighing(rng.multinomial(int(weight.sum()), weight / weight.sum()).astype(float))


def parted(n_rows: int, weight: Floats | None, folds: int, rng: np.random.Generator) -> Iterator[tuple[Sample, Sample]]:
    """The rows outside and those inside each of the folds, which are random and of sizes that differ by at most one row.

    Where weights count equal rows, those rows are what is parted, so that a row of the table may lie in several folds.

    >>> [tuple(map(int, test)) for _, (test, _) in parted(3, None, 3, np.random.default_rng(0))]
    [(2,), (0,), (1,)]
    """
    if weight is not None and counts(weight):
        yield from ((_weighing(weight - inside), _weighing(inside)) for inside in _dealt(weight, folds, rng))
        return
    fold_of = np.empty(n_rows, np.int64)
    fold_of[rng.permutation(n_rows)] = np.arange(n_rows) * folds // n_rows
    for fold in range(folds):
        outside, inside = np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)
        yield (outside, None if weight is None else weight[outside]), (inside, None if weight is None else weight[inside])


def _dealt(weight: Floats, folds: int, rng: np.random.Generator) -> Iterator[Floats]:
    """How many of the rows that each row stands for lie in each fold."""
    left, total = weight.astype(np.int64), int(weight.sum())
    for fold in range(folds):
        if total < 10**9:
            size = (fold + 1) * total // folds - fold * total // folds
            inside = rng.multivariate_hypergeometric(left, size, method="marginals")
        else:  # more than numpy deals out exactly; the sizes of so large folds differ by a random trifle
            inside = rng.binomial(left, 1.0 / (folds - fold))
        left = left - inside
        yield inside.astype(float)


def _weighing(weight: Floats) -> Sample:
    """The rows that have weight."""
    index = np.flatnonzero(weight)
    return index, weight[index]


def counts(weight: Floats) -> bool:
    """Whether weights are numbers of equal rows.

    >>> counts(np.array([3.0, 0.0])), counts(np.array([0.5]))
    (True, False)
    """
    return bool((weight == np.floor(weight)).all()) and float(weight.sum()) < 2**53


def _refuse_too_large(store: Store, names: Sequence[str], n_rows: int) -> None:
    columns = [store.read[n].column for n in names]
    size = n_rows * (sum(c.dtype.itemsize for c in columns) + (8 if store.weighted else 0))
    held = sum(c.array.nbytes for c in columns if isinstance(c, Held))
    if size > max(store.options.memory_limit, 2 * held):  # who has the rows in memory may have a sample of them, too
        raise TooLarge(
            f"a sample of {n_rows:,} rows takes {bytes_in_words(size)} in memory, and the limit is "
            f"{bytes_in_words(store.options.memory_limit)}; scan the rows with a larger memory_limit, or take fewer columns"
        )


def _picked_column(read: Read, rows: Index, n_rows: int) -> Read:
    cells = _cells(read.column, rows, n_rows)
    variable = read.variable
    if isinstance(variable, Finite) and variable.inferred:
        variable = Finite(variable.name, variable.states, cuts=variable.cuts)
    if not read.n_missing:
        return Read(variable, Held(cells), 0)
    empty = np.isnan(cells) if cells.dtype.kind == "f" else cells == missing_code(cells.dtype)
    return Read(variable, Held(cells), int(np.count_nonzero(empty)))


def _cells(column: Column, rows: Index, n_rows: int) -> Array:
    """The cells of a column in these rows; a column that is not in memory is read from its first row to its last."""
    if isinstance(column, Held):
        return np.asarray(column.array[rows])
    out = np.empty(len(rows), column.dtype)
    order = np.argsort(rows, kind="stable")
    ordered = rows[order]
    part = np.empty(min(ROWS, n_rows), column.dtype)
    for start, stop in ranges(n_rows, ROWS):
        low, high = np.searchsorted(ordered, [start, stop])
        if low < high:
            column.read(start, stop, part[: stop - start])
            out[order[low:high]] = part[ordered[low:high] - start]
    return out


def written_out(store: Store, names: Sequence[str]) -> Store | None:
    """The rows without weights, each as often as its weight says; None where weights are no whole numbers, or are too large."""
    store.require(names)
    if store.weight is None:
        return store
    weight = store.rows(store.weight, 0, store.n_rows or 0)
    if not counts(weight) or not 0 < weight.sum() <= WRITTEN_OUT:
        return None
    result = picked(store, names, np.repeat(np.arange(len(weight)), weight.astype(np.int64)))
    result.weight = None
    return result
