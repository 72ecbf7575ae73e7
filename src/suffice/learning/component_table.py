"""The table into which incomplete rows are put: shapes and records as they come, in arrays that grow."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.kernels import together
from suffice.learning.layout import Array, Ints, Layout

Places = npt.NDArray[np.int32]


class Collected(NamedTuple):
    """All of a table, its records sorted by shape; the fields are those of a `Reduction`."""

    counts: Array
    states: Array
    shapes: tuple[tuple[Places, Places], ...]
    record_shape: Ints
    record_at: Ints
    records: Places
    multiplicity: Array


class ComponentTable:
    """Records as they come, in arrays that grow."""

    def __init__(self, layout: Layout) -> None:
        together("bucket_trees", "components")
        n, f = layout.n_variables, len(layout.scope_start) - 1
        self.layout, self.least = layout, 4 * n + 2 * f + 8
        self.counts, self.states = np.zeros(layout.n_cells), np.zeros(int(layout.sizes.sum()))
        self.shapes, self.shape_at = np.empty(2**14 + 4 * self.least, np.int32), np.zeros(2**10 + n + 8, np.int64)
        self.shape_slots = np.full(2**11 + 4 * n, -1, np.int64)
        self.records, self.record_at = np.empty(2**16 + f, np.int32), np.zeros(2**13 + n + 8, np.int64)
        self.record_shape, self.multiplicity = np.empty(2**13 + n + 8, np.int64), np.empty(2**13 + n + 8)
        self.record_key, self.record_slots = np.empty(2**13 + n + 8, np.uint64), np.full(2**15 + 4 * n, -1, np.int64)
        self.work = np.empty(2 * n + 2 * f, np.int64)

    def add(self, codes: npt.NDArray[np.int32], weight: Array) -> None:
        """Take some rows."""
        from suffice.kernels.components import reduce_rows

        la, done = self.layout, 0
        while True:
            done = reduce_rows(
                done,
                codes,
                weight,
                la.scope_start,
                la.scopes,
                la.strides,
                la.table_start,
                *la.touching,
                self.counts,
                la.state_start,
                self.states,
                self.shapes,
                self.shape_at,
                self.shape_slots,
                self.records,
                self.record_at,
                self.record_shape,
                self.multiplicity,
                self.record_key,
                self.record_slots,
                self.work,
            )
            if done == len(codes):
                return
            self._grow()

    def _grow(self) -> None:
        """Twice the room, for whatever is more than half full."""
        from suffice.kernels.components import rehash

        n_shapes, n_records = int(self.shape_at[0]), int(self.record_at[0])
        self.shapes = _longer(self.shapes, int(self.shape_at[1 + n_shapes]) + self.least)
        self.shape_at = _longer(self.shape_at, n_shapes + self.least)
        self.records = _longer(self.records, int(self.record_at[1 + n_records]) + self.least)
        for name in ("record_at", "record_shape", "multiplicity", "record_key"):
            setattr(self, name, _longer(getattr(self, name), n_records + self.least))
        if 4 * (n_records + self.least) > len(self.record_slots):
            self.record_slots = np.full(4 * len(self.record_slots), -1, np.int64)
            rehash(n_records, self.record_key, self.record_slots)
        if 4 * (n_shapes + self.least) > len(self.shape_slots):
            keys = np.array([_key(self._variables(s)) for s in range(n_shapes)], np.uint64)
            self.shape_slots = np.full(4 * len(self.shape_slots), -1, np.int64)
            rehash(n_shapes, keys, self.shape_slots)

    def _variables(self, shape: int) -> Places:
        at = int(self.shape_at[1 + shape])
        return self.shapes[at + 2 : at + 2 + int(self.shapes[at])]

    def finished(self) -> Collected:
        """What was collected, its records sorted by shape."""
        n_shapes, n = int(self.shape_at[0]), int(self.record_at[0])
        shapes = []
        for s in range(n_shapes):
            at = int(self.shape_at[1 + s])
            m, k = int(self.shapes[at]), int(self.shapes[at + 1])
            shapes.append((self.shapes[at + 2 : at + 2 + m].copy(), self.shapes[at + 2 + m : at + 2 + m + k].copy()))
        order = np.argsort(self.record_shape[:n], kind="stable")
        begin, length = self.record_at[1 : n + 1][order], np.diff(self.record_at[1 : n + 2])[order]
        starts = np.cumsum([0, *length], dtype=np.int64) if n < 64 else np.concatenate([[0], np.cumsum(length)]).astype(np.int64)
        within = np.arange(starts[-1]) - np.repeat(starts[:-1], length)
        records = self.records[np.repeat(begin, length) + within]
        return Collected(
            self.counts,
            self.states,
            tuple(shapes),
            self.record_shape[:n][order],
            starts,
            records,
            self.multiplicity[:n][order],
        )


def _longer(array: npt.NDArray[Any], used: int) -> npt.NDArray[Any]:
    if 2 * used <= len(array):
        return array
    longer = np.zeros(2 * len(array) + used, array.dtype)
    longer[: len(array)] = array
    return longer


def _key(variables: Places) -> int:
    """The hash of a shape, as in the kernel."""
    key = 1469598103934665603
    for v in variables.tolist():
        key = ((key ^ v) * 1099511628211) % 2**64
    return key
