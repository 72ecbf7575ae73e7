"""What a learner makes of blocks of rows and needs in every pass: kept in memory up to a limit, then in a spill."""

from __future__ import annotations

import pickle
from threading import Lock
from typing import Generic, TypeVar

import numpy as np

from suffice.engines.local.columns import Unnamed

T = TypeVar("T")


class KeptValue(Generic[T]):
    """A value in memory."""

    def __init__(self, value: T) -> None:
        self._value = value

    def read(self) -> T:
        """The value."""
        return self._value


class SpilledValue(KeptValue[T]):
    """A value whose arrays are in a spill, read anew each time; what holds them together stays in memory."""

    def __init__(self, file: Unnamed, lock: Lock, value: T) -> None:
        arrays: list[pickle.PickleBuffer] = []
        self._file, self._form = file, pickle.dumps(value, protocol=5, buffer_callback=arrays.append)
        with lock:  # a file has one end
            self._places = [(file.append(np.frombuffer(a.raw(), np.uint8)), a.raw().nbytes) for a in arrays]

    def read(self) -> T:
        buffers = []
        for start, size in self._places:
            buffer = np.empty(size, np.uint8)
            self._file.read(buffer, start)
            buffers.append(buffer)
        value: T = pickle.loads(self._form, buffers=buffers)
        return value


class ValueStore:
    """Takes values of some bytes: as long as there is room in memory, there; then into a temporary file without a name.

    >>> store = ValueStore(100)
    >>> small, large = store.keep(np.arange(3), 24), store.keep(np.arange(20), 160)
    >>> small.read().sum(), large.read().sum(), store.n_spilled
    (np.int64(3), np.int64(190), 1)
    """

    def __init__(self, limit: float) -> None:
        self._left, self._lock = float(limit), Lock()
        self._file: Unnamed | None = None
        self.n_spilled = 0

    def keep(self, value: T, n_bytes: int) -> KeptValue[T]:
        """A value that can be read from now on."""
        with self._lock:
            if n_bytes <= self._left:
                self._left -= n_bytes
                return KeptValue(value)
            self._file = self._file or Unnamed()
            self.n_spilled += 1
        return SpilledValue(self._file, self._lock, value)
