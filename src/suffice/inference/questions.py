"""Questions to a network by the row: which part each depends on, a program for each different part, and all programs run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from suffice.inference.network import Array, Ints, Network
from suffice.inference.tree import Bytes, Part, Tree
from suffice.kernels import together

MOST_VARIABLES = 2500
"""Larger networks are asked one question at a time: room for the links of all pairs is not kept for them."""
POOL, SLOTS, BUFFER = 2**20, 2**12, 2**18
"""Numbers that programs may take, places to find parts by, and numbers in all tables of one question."""
MOST_CELLS = 2e7
"""A question of more cells is worth more time for a better order than rows are given here."""
ROWS = 1024
"""Rows that one thread takes at a time."""
SPARE = 1024

ROOT, ALONE, MARGINALS = 0, 1, 2
"""What is wanted (`kernels.messages`)."""
DONE, TOO_LARGE, UNCERTAIN, IMPOSSIBLE = 0, 1, 2, 3
"""What became of a row."""

Codes = npt.NDArray[np.int32]


class Desk:
    """Room for one thread's questions, and the programs made for them so far."""

    def __init__(self, network: Network) -> None:
        together("messages", "parts", "elimination", "arrangement")
        n, n_factors = network.n_variables, network.n_factors
        self.network = network
        self.most = 2 * n_factors + n + 8
        self.room = 4 * len(network.scopes) + 16 * self.most
        links = 2 * n + 2 + n * n
        self.work = np.empty(max(links, 5 * self.most + n + 2 + 3 * self.room, 2 * n + n_factors), np.int64)
        self.number = np.full(n, -1, np.int64)
        self.linked = np.zeros(n * n, np.uint8)
        self.floats = np.empty(2 * (n + 2) + self.most)
        self.parts = np.empty(POOL // 4 + 4 * (3 + 2 * n + n_factors), np.int64)
        self.pool = np.empty(POOL + 64 * self.most, np.int64)
        self.part_at, self.program_at = np.empty(SLOTS, np.int64), np.empty(SLOTS, np.int64)
        self.slots, self.cells = np.empty(SLOTS, np.int64), np.empty(SLOTS)
        self.ints, self.least, self.buffer = (
            np.empty(SPARE + 5 * self.most + 3 * n, np.int64),
            np.empty(2 * self.most),
            np.empty(BUFFER),
        )
        self._forget()

    def _forget(self) -> None:
        self.part_at[:2], self.program_at[0] = 0, 0
        self.slots[:] = -1

    def answer(
        self,
        targets: Ints,
        seeds: Ints,
        seen: Codes,
        tables: Array,
        out: Array,
        log_prob: Array,
        status: Bytes,
        start: Ints | None = None,
    ) -> None:
        """Answer some rows: all with one line of `seen` or of `tables`, or each with its own."""
        want, one = ROOT if len(targets) else ALONE if start is None else MARGINALS, len(seen) == 1
        part, done = np.empty(len(seen), np.int64), 0
        while done < len(seen):
            if self.program_at[0] > POOL // 2:
                self._forget()
            stop = self._programs(targets, seeds, seen, done, part)
            if stop == done:
                self._forget()
            rows = slice(None) if one else slice(done, stop)
            values = tables if one or len(tables) == 1 else tables[rows]
            program = self.program_at[1 + part[done:stop]]
            if stop > done:
                room, answers = (self.ints, self.least, self.buffer), (out[rows], log_prob[rows], status[rows])
                run(self.network, want, program, self.pool, seen[done:stop], values, room, *answers, start)
            done = stop

    def _programs(self, targets: Ints, seeds: Ints, seen: Codes, first: int, part: Ints) -> int:
        """Find the part of each row and make programs of the new ones; the row up to which there was room."""
        from suffice.kernels.arrangement import arrange_parts
        from suffice.kernels.elimination import order_parts
        from suffice.kernels.parts import find_parts

        net, before = self.network, int(self.part_at[0])
        scopes = (net.scope_start, net.scopes)
        found = (self.work, self.parts, self.part_at, self.slots, int(POOL - self.program_at[0]), part)
        links = (net.child, net.own, net.backwards, *net.touching)
        stop = find_parts(first, len(seen), targets, seeds, seen, *scopes, *links, *found)
        now = int(self.part_at[0])
        if now > before:
            self.cells[before:now] = np.inf
            order_parts(
                before,
                now,
                self.parts,
                self.part_at,
                self.cells,
                net.sizes,
                *scopes,
                -1,
                0.0,
                np.uint64(1),
                self.linked,
                self.work,
                self.number,
                self.floats,
            )
            scratch = (self.most, self.room, self.number, self.work, self.floats)
            arrange_parts(
                before, now, self.parts, self.part_at, net.sizes, *scopes, net.strides, *scratch, self.pool, self.program_at, True
            )
            heavy = self.cells[before:now] > MOST_CELLS
            self.program_at[1 + before : 1 + now][heavy] = -1
        return int(stop)


def run(
    network: Network,
    want: int,
    program: Ints,
    pool: Ints,
    seen: Codes,
    tables: Array,
    room: tuple[Ints, Array, Array],
    out: Array,
    log_prob: Array,
    status: Bytes,
    start: Ints | None = None,
) -> None:
    """Run programs in some room; for marginals, `start` says where in a line of `out` each variable's begin."""
    from suffice.kernels.messages import run as run_kernel

    at = np.zeros(1, np.int64) if start is None else start
    scopes = (network.sizes, network.scope_start, network.scopes, network.strides, network.table_start)
    run_kernel(0, len(status), want, program, pool, seen, tables, *scopes, at, *room, out, log_prob, status)


def room_for(tree: Tree, numbers: int) -> tuple[Ints, Array, Array]:
    """Room for one tree to be run in, with a buffer of so many numbers."""
    n = tree.n_tables
    return np.empty(SPARE + 5 * n + 3 * len(tree.variables), np.int64), np.empty(2 * n), np.empty(numbers)


_desks: WeakKeyDictionary[Network, list[Desk]] = WeakKeyDictionary()


def in_rows(
    network: Network, targets: Sequence[int], seeds: Ints, seen: Codes, tables: Array, start: Ints | None = None
) -> tuple[Array, Array, Bytes]:
    """p(targets | each row) as the cells of the joint, ln of its normaliser, and what became of the row.

    Besides what the targets depend on, the parts of the network around the factors `seeds` are gone through: around all, and
    the normaliser is p(observed); around those with zeros, and no impossible row goes unnoticed. With `start`, and without
    targets, the marginals of all variables of those parts come out, that of v at `start[v]`.

    One line of `seen` serves for all lines of `tables`, or one of `tables` for all of `seen`. No target may be observed.
    """
    n, asked = max(len(seen), len(tables)), np.asarray(targets, np.int64)
    cells = int(np.prod(network.sizes[asked])) if start is None else int(start[-1])
    out, log_prob, status = np.ones((n, cells)), np.empty(n), np.empty(n, np.uint8)
    if network.n_variables > MOST_VARIABLES:
        status[:] = TOO_LARGE
        return out, log_prob, status
    desks = _desks.setdefault(network, [])

    def answer(first: int) -> None:
        rows = slice(first, first + ROWS)
        own_seen = seen if len(seen) == 1 else seen[rows]
        own_tables = tables if len(tables) == 1 else tables[rows]
        desk = desks.pop() if desks else Desk(network)
        desk.answer(asked, seeds, own_seen, own_tables, out[rows], log_prob[rows], status[rows], start)
        desks.append(desk)

    if n <= ROWS:
        answer(0)
    else:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            for _ in pool.map(answer, range(0, n, ROWS)):
                pass
    return out, log_prob, status


def relevant_part(network: Network, targets: Sequence[int], seeds: Ints, codes: Ints) -> Part:
    """What p(targets | observed) depends on, and the same for some factors."""
    from suffice.kernels.parts import find_parts

    n, n_factors, asked = network.n_variables, network.n_factors, np.asarray(targets, np.int64)
    parts, part_at, slots = np.empty(4 + 2 * n + n_factors, np.int64), np.zeros(4, np.int64), np.full(4, -1, np.int64)
    work, index = np.empty(2 * n + n_factors, np.int64), np.empty(1, np.int64)
    scopes = (network.scope_start, network.scopes, network.child, network.own, network.backwards, *network.touching)
    find_parts(0, 1, asked, seeds, codes.astype(np.int32)[None], *scopes, work, parts, part_at, slots, 1, index)
    m, _, k = parts[:3]
    return Part(parts[3 : 3 + m].copy(), parts[3 + m : 3 + m + k].copy(), len(asked))
