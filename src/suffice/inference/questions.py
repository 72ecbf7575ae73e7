"""Many questions to one network: what the kernel of `kernels.rows` needs, kept from one call to the next."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from suffice.inference.network import Array, Network

MOST_VARIABLES = 2500
"""Larger networks are asked one question at a time: room for the links of all pairs is not kept for them."""
POOL, SLOTS, BUFFER = 2**20, 2**13, 2**18
"""Numbers that programs may take, places to find them by, and numbers in all tables of one question."""
ROWS = 1024
"""Rows that one thread takes at a time."""

DONE, TOO_LARGE, UNCERTAIN, IMPOSSIBLE = 0, 1, 2, 3
"""What became of a row (`kernels.rows`)."""

Codes = npt.NDArray[np.int32]
Bytes = npt.NDArray[np.uint8]


class Desk:
    """Room for one thread's questions, and the programs made for them so far."""

    def __init__(self, network: Network) -> None:
        n, n_factors = network.n_variables, network.n_factors
        self.most = 2 * n_factors + n + 8
        self.room = 4 * len(network.scopes) + 16 * self.most
        links = max(n * n + n + 2, 7 * self.most + 3 * self.room + n + 2)
        self.work = np.empty(5 * n + n_factors + 1100 + self.most + self.room + 2 * n + links, np.int64)
        self.floats = np.empty(3 * self.most + 2 * n + 8)
        self.linked = np.zeros(max(n * n, self.most) + n + 2, np.uint8)
        self.pool = np.empty(POOL + 128 * self.most, np.int64)
        self.pool[:2] = 2, 0
        self.slots = np.full(SLOTS, -1, np.int64)
        self.buffer = np.empty(BUFFER)

    def answer(
        self,
        network: Network,
        targets: Any,
        seen: Codes,
        tables: Array,
        first: int,
        last: int,
        out: Array,
        log_prob: Array,
        status: Bytes,
    ) -> None:
        from suffice.kernels.rows import answer_rows

        answer_rows(
            first,
            last,
            targets,
            seen,
            tables,
            network.sizes,
            network.scope_start,
            network.scopes,
            network.strides,
            network.table_start,
            network.child,
            network.own,
            network.backwards,
            *network.touching,
            self.most,
            self.room,
            self.work,
            self.floats,
            self.linked,
            self.pool,
            self.slots,
            self.buffer,
            out,
            log_prob,
            status,
        )


_desks: WeakKeyDictionary[Network, list[Desk]] = WeakKeyDictionary()


def in_rows(network: Network, targets: Sequence[int], seen: Codes, tables: Array) -> tuple[Array, Array, Bytes]:
    """p(targets | each row) as the cells of the joint, ln of its normaliser, and what became of the row.

    One line of `seen` serves for all lines of `tables`, or one of `tables` for all of `seen`.
    """
    n = max(len(seen), len(tables))
    asked = np.asarray(targets, np.int64)
    out, log_prob, status = np.empty((n, int(np.prod(network.sizes[asked])))), np.empty(n), np.empty(n, np.uint8)
    if network.n_variables > MOST_VARIABLES:
        status[:] = TOO_LARGE
        return out, log_prob, status
    desks = _desks.setdefault(network, [])

    def answer(first: int) -> None:
        desk = desks.pop() if desks else Desk(network)
        desk.answer(network, asked, seen, tables, first, min(first + ROWS, n), out, log_prob, status)
        desks.append(desk)

    if n <= ROWS:
        answer(0)
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for _ in pool.map(answer, range(0, n, ROWS)):
                pass
    return out, log_prob, status
