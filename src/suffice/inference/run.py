"""What a tree of products needs to be run, and buffers to run it in."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from suffice.inference.network import Array, Ints, Network, Soft
from suffice.inference.tree import Bytes, Tree

SPARE = 1024
"""Numbers that kernels use for counting, besides those of tables and variables."""


@dataclass(frozen=True, eq=False)
class Plan:
    """A tree over a network and what follows from it once: which tables come down, and where marginals are read."""

    network: Network
    tree: Tree

    @cached_property
    def sources(self) -> Ints:
        """For each place the smallest table that has its variable, a node's before a leaf's: nodes' come down anyway."""
        tree, sizes = self.tree, self.network.sizes[self.tree.variables].astype(np.float64)
        best, result = np.full(len(sizes), np.inf), np.zeros(len(sizes), np.int64)
        for t, (a, b) in enumerate(pairwise(tree.dim_start[: tree.n_tables + 1])):
            places = tree.dim_place[a:b][(tree.dim_flag[a:b] & 4) > 0]
            cells = float(np.prod(sizes[places])) + (1e300 if t < tree.n_leaves else 0.0)
            better = places[cells < best[places]]
            best[better], result[better] = cells, t
        return result

    @cached_property
    def wanted(self) -> Bytes:
        """Which tables come down: all nodes, and the leaves that marginals are read from."""
        wanted = np.ones(self.tree.n_tables, np.uint8)
        wanted[: self.tree.n_leaves] = 0
        wanted[self.sources] = 1
        return wanted

    @cached_property
    def roots(self) -> Ints:
        """The tables of which only a number is left: their product is p(evidence)."""
        tree = self.tree
        kept = np.concatenate([[0], np.cumsum(tree.dim_flag[: tree.dim_start[tree.n_tables]] & 4)])
        ends = tree.dim_start[: tree.n_tables + 1]
        return np.flatnonzero(kept[ends[1:]] == kept[ends[:-1]]).astype(np.int64)

    @property
    def widest(self) -> int:
        """The most variables in one product."""
        return int(np.diff(self.tree.dim_start[: self.tree.n_tables + 1]).max(initial=0))

    @property
    def root_cells(self) -> int:
        """Cells of the table that is asked for."""
        tree = self.tree
        span = slice(tree.dim_start[tree.root], tree.dim_start[tree.root + 1])
        return int(np.prod(self.network.sizes[tree.variables[tree.dim_place[span][(tree.dim_flag[span] & 4) > 0]]]))

    @cached_property
    def begin(self) -> int:
        """Where tables may begin in a buffer: before it are a 1 and room for one variable."""
        return 1 + int(self.network.sizes.max(initial=1))

    def n_numbers(self, codes: Ints, *, down: bool) -> int:
        """How long a buffer must be, given what is observed; −1 if it is beyond all bounds."""
        from suffice.kernels.products import lay_out

        tree = self.tree
        size = np.where(codes[tree.variables] < 0, self.network.sizes[tree.variables], 1)
        spare = np.empty(2 * tree.n_tables + 2, np.int64)
        wanted = self.wanted if down else np.zeros(tree.n_tables, np.uint8)
        dims = (tree.dim_start, tree.dim_place, tree.dim_flag)
        return int(lay_out(tree.n_leaves, tree.n_tables, *dims, size, self.begin, wanted, spare, spare[tree.n_tables :]))


def with_likelihoods(network: Network, soft: Soft | None) -> Array:
    """The network's tables, those of variables with likelihood evidence multiplied by it."""
    if not soft:
        return network.tables
    return np.asarray(with_all_likelihoods(network, soft, network.tables[None])[0])


def with_all_likelihoods(network: Network, soft: Soft | None, tables: Array) -> Array:
    """The same for many settings of the tables, one a line."""
    if not soft:
        return tables
    tables = tables.copy()
    for v, likelihood in soft.items():
        f = int(network.own[v])
        part = tables[:, network.table_start[f] : network.table_start[f + 1]]
        part *= np.tile(likelihood, part.shape[1] // len(likelihood))
    return tables


def marked(codes: Ints, soft: Soft | None) -> Ints:
    """Codes in which unobserved variables with likelihood evidence are −2: they matter, even if nothing below them does."""
    if not soft:
        return codes
    result = codes.copy()
    hinted = [v for v in soft if codes[v] < 0]
    result[hinted] = -2
    return result
