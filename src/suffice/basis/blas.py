"""One thread for products of matrices, so that they have the same bits wherever the library runs.

A library of linear algebra (OpenBLAS, MKL) gives each of its threads a part of a product, or of the sum in it, and so rounds
otherwise on a machine with more processors. Sums over rows have threads of their own, over blocks, which are faster: the
threads of two products at a time wait for each other.
"""

from __future__ import annotations

import sys
import threading
from contextlib import ContextDecorator
from typing import Any


class _OneThread(ContextDecorator):
    """While anyone is inside, linear algebra has one thread in this process; then as many as before. The libraries know no other
    scope than the process, so the first to enter sets the number and the last to leave resets it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0
        self._known: list[Any] = []
        self._loaded = 0
        self._before: dict[str, tuple[Any, int]] = {}

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            # Libraries of linear algebra that are loaded: those of scipy may come later than those of numpy.
            loaded = 1 + ("scipy.special" in sys.modules) + ("scipy.linalg" in sys.modules)
            if loaded != self._loaded:
                from threadpoolctl import ThreadpoolController

                self._known = ThreadpoolController().select(user_api="blas").lib_controllers
                self._loaded = loaded
            for library in self._known:
                if library.filepath not in self._before:
                    self._before[library.filepath] = library, library.get_num_threads()
                    library.set_num_threads(1)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                for library, n in self._before.values():
                    library.set_num_threads(n)
                self._before.clear()


one_blas_thread = _OneThread()
"""A decorator, or a context, in which products of matrices do not depend on the number of processors.

>>> import numpy as np
>>> with one_blas_thread:
...     product = np.ones((2, 3)) @ np.ones((3, 2))
"""
