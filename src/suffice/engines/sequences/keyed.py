"""Local rows with keys: columns that say which rows belong together and in which order are read beside the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.engines.encoding.encode import Encoder
from suffice.engines.encoding.infer import Weights
from suffice.engines.encoding.sources import readable
from suffice.engines.engine import Array, ranges
from suffice.engines.local.columns import Column, Held, Nothing, Sink
from suffice.engines.local.local import Local, Read
from suffice.engines.sequences.keys import OrderEncoder, TextCodes, Times, checked_kind, readings, times_of
from suffice.errors import DataError
from suffice.errors.remedies import argument

CHUNK = 2**20
"""Rows whose keys are looked at together."""


class Keyed(Local):
    """Local rows of which two columns are keys: an id of the sequence, and an order. Either may be absent."""

    def __init__(self, rows: Local, by: str | None, order: str | None) -> None:
        super().__init__(rows.source, rows.options, rows._noted.told)
        self.by, self.order = by, order
        self.keys = tuple(k for k in (by, order) if k is not None)
        self.names = tuple(n for n in self.names if n not in (by, order))
        if rows.weighted and rows.weights is None:
            self._weight, self.weighted, self.weight = rows._weight, True, None
        if self.source.stable:
            self._share(rows)
        self._keys_read = False
        self.id_codes: Column | None = None
        self.times: Times | None = None
        self.labels: tuple[str, ...] = ("1",)

    def _share(self, rows: Local) -> None:
        """What was read already need not be read again."""
        self.seen = {n: s for n, s in rows.seen.items() if n in self.names}
        self._found, self.n_rows, self._weight, self._bytes = dict(rows._found), rows.n_rows, rows._weight, rows._bytes

    @readable()
    def read_keys(self, names: Sequence[str]) -> None:
        """Read the keys and the weights; and these columns in the same pass, if another would cost as much or not agree."""
        together = not self.source.stable or self.n_rows is None
        if together and any(n not in self.seen for n in names):
            self.require(names)
        weights = {} if self.weights is None or self._weight is not None else {self.weights: Weights()}
        if weights or self._unread_keys():
            self._scan(weights)
        self.require(())

    def _unread_keys(self) -> dict[str, TextCodes | OrderEncoder]:
        keys: dict[str, TextCodes | OrderEncoder] = {}
        if self._keys_read:
            return keys
        if self.by is not None:
            checked_kind(self.by, self.source)
            keys[self.by] = TextCodes("the sequence", self.options.missing)
        if self.order is not None:
            keys[self.order] = OrderEncoder(readings(self.order, self.source)[0], self.options.missing)
        return keys

    def _scan(self, encoders: Mapping[str, Encoder]) -> tuple[dict[str, Read], dict[str, str]]:
        keys = self._unread_keys()
        sink = self._filled({**encoders, **keys})
        self._keys_read = True
        for name, key in keys.items():
            if isinstance(key, TextCodes):
                self._take_ids(key, sink)
            else:
                self._take_times(name, key, sink)
        return self._taken(encoders, sink)

    def _take_ids(self, ids: TextCodes, sink: Sink) -> None:
        """The ranks of the ids; without an order of rows, they are in the order given."""
        labels = ids.codes if self.order is None else ids.in_turn()
        self.id_codes = sink.column(self.by or "", ids.ranks(labels), ids.dtype)
        self.labels = tuple(labels)

    def _take_times(self, name: str, key: OrderEncoder, sink: Sink) -> None:
        ways = readings(name, self.source)
        for way in ways[ways.index(key.reading) + 1 :]:
            if key.mistaken:
                key = OrderEncoder(way, self.options.missing)
                sink = self._filled({name: key})
        if key.mistaken:
            raise DataError(f"the column {name!r} cannot be read as an order")
        self.times = times_of(name, key, sink, self.source.categories(name), self._noted)

    def keys_of(self, start: int, stop: int) -> tuple[Array, Array | None]:
        """The sequence of some rows, by its number, and their order."""
        by = np.broadcast_to(np.int32(0), stop - start) if self.id_codes is None else self.id_codes.rows(start, stop)
        return by, None if self.times is None else self.times.column.rows(start, stop)

    def in_memory(self, names: Sequence[str]) -> bool:
        """Whether the keys are in memory, and these columns are or fit beside them."""
        there = [self.seen[n].column for n in names if n in self.seen]
        keys = [c for c in (self.id_codes, self._weight, self.times and self.times.column) if c is not None]
        return all(isinstance(c, (Held, Nothing)) for c in (*there, *keys)) and self._fits(
            [n for n in names if n not in self.seen]
        )

    def refuse_twice(self, sequence: int, time: Any, row: int) -> None:
        """Refuse a pair of keys that is there twice, the second time in this row of the input."""
        text = "" if self.times is None else self.times.text(time)
        what = f"{self.order} {text}" if self.by is None else f"{self.by} {self.labels[sequence]!r} with {self.order} {text}"
        raise DataError(f"{self.source.place(row)}: {what} is there twice; each step of a sequence is one row")

    def refuse_apart(self) -> None:
        """Without an order, ids come in the order of discovery if the rows of a sequence are adjacent; refuse others."""
        for start, stop in ranges(self.n_rows or 0, CHUNK):
            by, _ = self.keys_of(max(0, start - 1), stop)
            back = np.flatnonzero(by[1:] < by[:-1])
            if len(back):
                row = max(0, start - 1) + int(back[0]) + 1
                raise DataError(
                    f"{self.source.place(row)}: the sequence {self.labels[int(by[back[0] + 1])]!r} goes on after rows of "
                    f"another; without an order the rows of a sequence must be adjacent: say {argument('order')}, or sort them"
                )

    def release_keys(self) -> None:
        """Once rows are arranged, the keys as they were read are needed no more."""
        self.id_codes = self.times = None
