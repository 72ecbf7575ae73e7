"""Undirected models node by node: p(node | all others) needs the tables that it is in, and of others its neighbours alone.

So models far too large for a junction tree have a pseudo-likelihood, Σᵢ ln p(xᵢ | the others), and can be drawn from by Gibbs
sampling. All of this is over tables of logs, one after another in one array, and over columns of codes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.errors import TooLarge
from suffice.numerics.inference.finite.network import strides
from suffice.numerics.inference.sampling.boltzmann import key_of

Codes = npt.NDArray[np.uint16]

MAX_DRAWN = 2**31
"""Cells of all chains together: draws are numbered by 32 bits."""


@dataclass(frozen=True, eq=False)
class Blankets:
    """Which tables each node is in, and where: `scopes` are sets of nodes by number, `sizes` the states of each node."""

    sizes: Ints
    scopes: tuple[tuple[int, ...], ...]
    first: Ints
    own_step: Ints
    offset: Ints
    first_member: Ints
    member: Ints
    step: Ints

    @classmethod
    def of(cls, sizes: Sequence[int] | Ints, scopes: Sequence[tuple[int, ...]]) -> Blankets:
        own, every = np.asarray(sizes, np.int64), tuple(tuple(s) for s in scopes)
        if len(own) and own.max() > 2**16 - 1:
            raise TooLarge(f"a variable has {own.max():,} states, more than 65,535: they cannot be coded here")
        starts = np.cumsum([0, *(prod(int(own[v]) for v in s) for s in every)], dtype=np.int64)
        inside: list[list[tuple[int, int]]] = [[] for _ in own]
        for f, scope in enumerate(every):
            for place, v in enumerate(scope):
                inside[v].append((f, place))
        offset, own_step, first_member, member, step = [], [], [0], [], []
        for tables in inside:
            for f, place in tables:
                steps = strides([int(own[v]) for v in every[f]])
                offset.append(int(starts[f]))
                own_step.append(steps[place])
                member += [v for k, v in enumerate(every[f]) if k != place]
                step += [s for k, s in enumerate(steps) if k != place]
                first_member.append(len(member))
        first = np.cumsum([0, *map(len, inside)], dtype=np.int64)
        return cls(own, every, first, *(np.array(x, np.int64) for x in (own_step, offset, first_member, member, step)))

    @property
    def n(self) -> int:
        return len(self.sizes)

    @cached_property
    def table_start(self) -> Ints:
        """Where the logs of each table begin, and where all of them end."""
        return np.cumsum([0, *(prod(int(self.sizes[v]) for v in s) for s in self.scopes)], dtype=np.int64)

    @cached_property
    def neighbours(self) -> tuple[tuple[int, ...], ...]:
        """The others in the tables of each node, in their order."""
        ends = self.first_member[self.first]
        return tuple(tuple(sorted(set(self.member[a:b].tolist()))) for a, b in pairwise(ends))

    @staticmethod
    def columns(rows: npt.NDArray[np.integer]) -> Codes:
        """Codes, a row for each case, as columns one after another."""
        return np.ascontiguousarray(np.asarray(rows).T, dtype=np.uint16)

    def _graph(self, column: Ints) -> tuple[Ints, ...]:
        return self.sizes, self.first, self.own_step, self.offset, self.first_member, column, self.step

    def pseudo(self, columns: Codes, weights: Array, logs: Array) -> tuple[float, Array]:
        """Σ w ln p(node | the others) over nodes and cases, and its gradient by the logs; all nodes have as many cases."""
        n = columns.shape[1]
        own, cases, starts = np.arange(self.n) * n, np.full(self.n, n), np.zeros(self.n, np.int64)
        return self.pseudo_of_tables(LocalTables(columns.reshape(-1), own, cases, starts, weights, n * self.member), logs)

    def pseudo_of_tables(self, tables: LocalTables, logs: Array) -> tuple[float, Array]:
        """The same of cases that each node has for itself."""
        from suffice.numerics.kernels.inference.draws import pseudo

        where, gradient = (tables.own, tables.cases, tables.weight_start), np.zeros(len(logs))
        return pseudo(tables.cells, *where, tables.weights, logs, *self._graph(tables.column), gradient), gradient

    def sweep(self, columns: Codes, logs: Array, seed: int, step: int) -> None:
        """Draw each node in turn given the others, in all chains: `columns` changes."""
        from suffice.numerics.kernels.inference.draws import sweep

        n = columns.shape[1]
        low, high = key_of(seed, step)
        sweep(columns.reshape(-1), np.arange(self.n) * n, n, logs, *self._graph(n * self.member), self._pair, low, high)

    @cached_property
    def _pair(self) -> Ints:
        """1 where a table of a node has one other variable, of two states, else 0."""
        members = np.diff(self.first_member)
        alone = np.flatnonzero(members == 1)
        result = np.zeros(len(members), np.int64)
        result[alone] = self.sizes[self.member[self.first_member[alone]]] == 2
        return result

    @cached_property
    def _tables(self) -> tuple[Ints, Ints, Ints, Ints]:
        """Offsets, first members, members and steps with all variables of each table as members."""
        steps = [s for scope in self.scopes for s in strides([int(self.sizes[v]) for v in scope])]
        first = np.cumsum([0, *map(len, self.scopes)], dtype=np.int64)
        member = np.array([v for scope in self.scopes for v in scope], np.int64)
        return self.table_start[:-1], first, member, np.array(steps, np.int64)

    def counts(self, columns: Codes) -> Array:
        """How many of the cases fall into each cell of each table."""
        from suffice.numerics.kernels.inference.draws import tally

        offset, first, member, step = self._tables
        n, counts = columns.shape[1], np.zeros(int(self.table_start[-1]))
        tally(columns.reshape(-1), 0, n, offset, first, n * member, step, counts)
        return counts

    def checked_chains(self, chains: int) -> int:
        """A number of chains that can be drawn."""
        if self.n * chains > MAX_DRAWN:
            raise TooLarge(f"{chains:,} chains of {self.n:,} variables have {self.n * chains:,} cells; up to 2³¹ can be drawn")
        return chains


@dataclass(frozen=True, eq=False)
class LocalTables:
    """Cases of each node and its neighbours, with their weights: all that rows have to say of a pseudo-likelihood. Nodes with the
    same numbers of states around them share the columns of their cases: every joint state, row by row."""

    cells: Codes
    own: Ints
    cases: Ints
    weight_start: Ints
    weights: Array
    column: Ints

    @classmethod
    def of(cls, blankets: Blankets, tables: Sequence[Array]) -> LocalTables:
        """The tables of counts of each node, which is the last axis, and its neighbours, in their order."""
        at: dict[tuple[int, ...], int] = {}
        parts: list[Codes] = []
        end, own, column = 0, [], []
        for i, (around, table) in enumerate(zip(blankets.neighbours, tables, strict=True)):
            if table.shape not in at:
                at[table.shape] = end
                parts.append(np.indices(table.shape, np.uint16).reshape(-1))
                end += len(parts[-1])
            place = {v: at[table.shape] + k * table.size for k, v in enumerate((*around, i))}
            own.append(place[i])
            a, b = blankets.first_member[blankets.first[i]], blankets.first_member[blankets.first[i + 1]]
            column += [place[v] for v in blankets.member[a:b].tolist()]
        cases = np.array([t.size for t in tables], np.int64)
        weights = np.concatenate([np.zeros(0), *(t.reshape(-1) for t in tables)])
        starts = np.cumsum([0, *cases[:-1]], dtype=np.int64)[: len(cases)]
        cells = np.concatenate([np.zeros(0, np.uint16), *parts])
        return cls(cells, np.array(own, np.int64), cases, starts, weights, np.array(column, np.int64))
