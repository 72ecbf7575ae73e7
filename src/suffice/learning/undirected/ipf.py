"""Iterative proportional fitting: margins are fitted one after another, again and again, until all agree.

    φ_g ← φ_g · seen_g / expected_g

It never holds the table of all variables: each generator is fitted within one clique of a triangulated graph, and cliques tell
their neighbours along the tree (Jiroušek & Přeučil 1995, Computational Statistics & Data Analysis 19, p. 177). Where a margin is
zero, it stays so: the estimate is then the extended one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.errors import FitError, TooLarge, bytes_in_words, whole
from suffice.errors.remedies import CONTRASTIVE, PSEUDO
from suffice.graphs import Graph
from suffice.models.undirected.factor import Terms, smallest_covers
from suffice.models.undirected.log_linear import Names
from suffice.numerics.inference.finite.network import COMPILING, greedy_order, part_of, steps

MAX_TABLES = 2**27
"""Numbers that the tables of all cliques, and the places of their cells, may take: 1 GiB."""


@dataclass(frozen=True)
class IPF:
    """Iterative proportional fitting until no margin is off by more than `tol` of all rows.

    >>> IPF()
    IPF(tol=1e-11, max_iter=10000)
    """

    tol: float = 1e-11
    max_iter: int = 10_000

    def __post_init__(self) -> None:
        whole(self.max_iter, "max_iter of IPF", 1)
        if isinstance(self.tol, bool) or not isinstance(self.tol, (int, float)) or not 0.0 < self.tol < 1.0:
            raise FitError(f"tol of IPF is a number between 0 and 1, not {self.tol!r}")


class Cycles(NamedTuple):
    """ln φ of all factors, one after another, how many cycles it took, how far off a margin still is, and whether that is all."""

    log_tables: Array
    n: int
    off: float
    converged: bool


class CliqueTree:
    """Where each margin is fitted, and along which separators cliques are told."""

    def __init__(self, terms: Terms) -> None:
        self.terms = terms
        graph = _triangulate(terms)
        self.cliques, self.separators = graph.perfect_sequence(), ((), *graph.separators())
        self.n_cells = sum(self._cells(c) for c in self.cliques)
        # the first clique before each that has all of its separator; −1 for the first of a component
        self.parent = tuple(
            next((j for j in range(k) if own and set(own) <= set(self.cliques[j])), -1) for k, own in enumerate(self.separators)
        )
        self.home = smallest_covers(terms.scopes, self.cliques, np.diff(self.table_start))

    def _cells(self, names: Sequence[str]) -> int:
        return int(np.prod([self.terms.variables[n].n_states for n in names], dtype=object)) if names else 1

    @cached_property
    def program(self) -> tuple[Ints, Ints]:
        """What `ipf_cycle` runs: its rows, and the places of cells."""
        places: list[Ints] = []
        at = 0

        def add_map(clique: int, names: Names) -> int:
            nonlocal at
            places.append(self.terms.places(self.cliques[clique], names))
            at += len(places[-1])
            if at > 2 * MAX_TABLES:
                raise TooLarge(
                    f"IPF needs more than {bytes_in_words(8.0 * at)} to know where cells belong: too much; use LBFGS()"
                )
            return at - len(places[-1])

        start, cells = self.table_start, np.diff(self.table_start)
        fits: list[list[list[int]]] = [[] for _ in self.cliques]
        for f, k in enumerate(self.home):
            margin = self.terms.table_start
            own = add_map(k, self.terms.scopes[f])
            fits[k].append([0, start[k], cells[k], own, margin[f], margin[f + 1] - margin[f], 0, 0, 0])
        down: dict[int, list[int]] = {}
        up: dict[int, list[int]] = {}
        children: list[list[int]] = [[] for _ in self.cliques]
        for k, p in enumerate(self.parent):
            if p >= 0:
                children[p].append(k)
                a, b = self.separator_start[k], self.separator_start[k + 1]
                own, other = add_map(k, self.separators[k]), add_map(p, self.separators[k])
                down[k] = [1, start[p], cells[p], other, a, b - a, start[k], cells[k], own]
                up[k] = [1, start[k], cells[k], own, a, b - a, start[p], cells[p], other]
        rows: list[list[int]] = []
        stack = [(k, False) for k in reversed(range(len(self.cliques))) if self.parent[k] < 0]
        while stack:
            k, done = stack.pop()
            if done:
                rows.append(up[k])
                continue
            rows += ([down[k]] if k in down else []) + fits[k]
            stack += [(k, True)] if k in up else []
            stack += [(child, False) for child in reversed(children[k])]
        return np.array(rows, np.int64).reshape(-1, 9), np.concatenate([*places, np.zeros(0, np.int64)])

    @cached_property
    def table_start(self) -> Ints:
        return np.cumsum([0, *map(self._cells, self.cliques)], dtype=np.int64)

    @cached_property
    def separator_start(self) -> Ints:
        return np.cumsum([0, *map(self._cells, self.separators)], dtype=np.int64)

    def fit(self, target: Array, method: IPF, check: Any = None, max_iter: int | None = None) -> Cycles:
        """Cycles from the uniform distribution on, until the margins are `target`, shares of 1."""
        from suffice.numerics.kernels.regressions.undirected import ipf_cycle

        if self.n_cells > MAX_TABLES:
            raise TooLarge(
                f"the cliques of the triangulated graph have {self.n_cells:,} cells ({bytes_in_words(8.0 * self.n_cells)}): too "
                f"many for IPF; {PSEUDO} and {CONTRASTIVE} do not need them"
            )
        program, place = self.program
        size, shared = np.diff(self.table_start), np.diff(self.separator_start)
        tables, separators = np.repeat(1.0 / size, size), np.repeat(1.0 / shared, shared)
        logs, work = np.zeros(len(target)), np.empty(int(max(np.diff(self.terms.table_start).max(), shared.max())))
        limit, off = max_iter or method.max_iter, np.inf
        for cycle in range(1, limit + 1):
            before, off = off, float(ipf_cycle(program, place, tables, target, logs, separators, work))
            if off <= method.tol or (cycle > 50 and off <= 1e3 * method.tol and off >= before):
                return Cycles(logs, cycle, off, True)
            if check is not None and cycle % 16 == 0:
                check(cycle, off)
        return Cycles(logs, limit, off, False)


def _triangulate(terms: Terms) -> Graph:
    """The graph of the model with what eliminating its variables, in an order that makes small tables, adds."""
    network = terms.network()
    part = part_of(network, network.all_factors, network.no_evidence())
    order = greedy_order(network, part, worth=COMPILING).order
    found = steps(part.scopes(network), network.sizes[part.variables], order.tolist())
    pairs = set()
    for scope in found:
        names = sorted(terms.names[part.variables[v]] for v in scope)
        pairs |= {(a, b) for i, a in enumerate(names) for b in names[i + 1 :]}
    return Graph(sorted(pairs), nodes=terms.names)
