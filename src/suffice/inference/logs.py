"""A tree of products run in logs, node by node with numpy: slow and sure.

For numbers that floats cannot hold, and for maxima: what is summed out elsewhere can be maximised here, and traced back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from suffice.errors import TooLarge, bytes_in_words
from suffice.inference.network import Array, Ints
from suffice.inference.tree import Tree

MAX_CELLS = 2**27
"""A product is held whole here; more cells than this (1 GiB) are refused."""


class Logs:
    """The tables of a tree as logs. Places from `maximised` on are maximised, those before it summed out."""

    def __init__(self, tree: Tree, codes: Ints, log_tables: Array, maximised: int | None = None) -> None:
        self.tree, self.network, self.codes = tree, tree.network, codes
        self.maximised = len(self.tree.variables) if maximised is None else maximised
        self._place = {int(v): p for p, v in enumerate(tree.variables)}
        free = codes[self.tree.variables] < 0
        self.size = np.where(free, self.network.sizes[self.tree.variables], 1)
        for t in range(self.tree.n_leaves, self.tree.n_tables):
            self._check(self.tree.dims(t))
        self.up = [self._leaf(t, log_tables) for t in range(self.tree.n_leaves)]
        for t in range(self.tree.n_leaves, self.tree.n_tables):
            self.up.append(self._reduced(t, self._product(t)))

    @property
    def log_prob(self) -> float:
        """The sum or maximum of all: ln p(evidence) where nothing is maximised."""
        return float(sum(self.up[t] for t in self.tree.lone))

    def marginals(self, start: Ints, out: Array) -> float:
        """Write p(v | evidence) of every variable; ln p(evidence)."""
        log_prob = self.log_prob
        out[:] = 0.0
        observed = np.flatnonzero(self.codes >= 0)
        out[start[observed] + self.codes[observed]] = 1.0
        if log_prob == -np.inf:
            return log_prob
        down, smallest = self._down(), self._smallest()
        for p, v in enumerate(self.tree.variables):
            if self.codes[v] >= 0:
                continue
            t = smallest[p]
            kept = self.tree.kept(t)
            belief = self.up[t] + down[t]
            logs = log_sum(belief, tuple(i for i, q in enumerate(kept) if q != p))
            shares = np.exp(logs - logs.max())
            out[start[v] : start[v + 1]] = shares / shares.sum()
        return log_prob

    def best(self) -> Ints:
        """The most probable codes of the places from `maximised` on, −1 before: read back from the last to the first."""
        chosen = np.full(len(self.size), -1, np.int64)
        for t in range(self.tree.n_tables - 1, self.tree.n_leaves - 1, -1):
            dims, kept = self.tree.dims(t), set(self.tree.kept(t))
            free = [q for q in dims if q not in kept and q >= self.maximised]
            if not free:
                continue
            index = tuple(int(chosen[q]) if q in kept else slice(None) for q in dims)
            inner = [q for q in dims if q not in kept]
            values = self._product(t)[index]
            values = log_sum(values, tuple(i for i, q in enumerate(inner) if q < self.maximised))
            for q, code in zip(free, np.unravel_index(int(np.argmax(values)), values.shape), strict=True):
                chosen[q] = code
        return chosen

    def _down(self) -> dict[int, Array]:
        """What all the rest says of each table's cells."""
        tree = self.tree
        down: dict[int, Array] = {int(t): np.zeros(()) for t in self.tree.lone}
        for t in range(tree.n_tables - 1, tree.n_leaves - 1, -1):
            dims, kept = self.tree.dims(t), self.tree.kept(t)
            a, b = int(tree.left[t]), int(tree.right[t])
            above = self._spread(down[t], kept, dims)
            for mine, other in ((a, b), (b, a)):
                if mine < 0:
                    continue
                rest = above if other < 0 else above + self._spread(self.up[other], self.tree.kept(other), dims)
                rest = np.broadcast_to(rest, [self.size[q] for q in dims])
                own = set(self.tree.kept(mine))
                down[mine] = log_sum(rest, tuple(i for i, q in enumerate(dims) if q not in own))
        return down

    def _smallest(self) -> dict[int, int]:
        """For each place the smallest table that has its variable."""
        result: dict[int, int] = {}
        for t in sorted(range(self.tree.n_tables), key=lambda t: -self.up[t].size):
            result.update(dict.fromkeys(self.tree.kept(t), t))
        return result

    def _leaf(self, t: int, log_tables: Array) -> Array:
        tree, net = self.tree, self.network
        f = int(tree.factor[t])
        scope, at = net.scope(f), net.table_start[f]
        index = tuple(int(self.codes[v]) if self.codes[v] >= 0 else slice(None) for v in scope)
        values = log_tables[at : net.table_start[f + 1]].reshape(net.sizes[scope])[index]
        places = [self._place[int(v)] for v in scope if self.codes[v] < 0]
        values = np.transpose(values, np.argsort(places)) if places else values
        return np.asarray(values).reshape([self.size[q] for q in self.tree.dims(t)])

    def _product(self, t: int) -> Array:
        dims, a, b = self.tree.dims(t), int(self.tree.left[t]), int(self.tree.right[t])
        values = self._spread(self.up[a], self.tree.kept(a), dims)
        if b >= 0:
            values = values + self._spread(self.up[b], self.tree.kept(b), dims)
        return np.broadcast_to(values, [self.size[q] for q in dims])

    def _reduced(self, t: int, values: Array) -> Array:
        dims, kept = self.tree.dims(t), set(self.tree.kept(t))
        gone = [q for q in dims if q not in kept]
        summed = tuple(i for i, q in enumerate(dims) if q in gone and q < self.maximised)
        values = log_sum(values, summed)
        dims = [q for q in dims if q in kept or q >= self.maximised]
        largest = tuple(i for i, q in enumerate(dims) if q not in kept)
        return values.max(axis=largest) if largest else values

    def _spread(self, values: Array, own: Sequence[int], dims: Sequence[int]) -> Array:
        have = set(own)
        return values.reshape([self.size[q] if q in have else 1 for q in dims])

    def _check(self, dims: Sequence[int]) -> None:
        cells = math.prod(int(self.size[q]) for q in dims)
        if cells > MAX_CELLS:
            raise TooLarge(
                f"a product of {len(dims)} variables needs {cells:,} cells ({bytes_in_words(8.0 * cells)}), and the limit is "
                f"{MAX_CELLS:,}: observe more variables, or ask for fewer"
            )


def log_sum(logs: Array, axes: tuple[int, ...]) -> Array:
    """ln Σ exp over some axes; −inf where all are.

    >>> log_sum(np.log([[0.25, 0.75], [0.5, 0.5]]), (1,)).round(12)
    array([0., 0.])
    """
    if not axes:
        return logs
    high = logs.max(axis=axes, keepdims=True)
    high = np.where(np.isfinite(high), high, 0.0)
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(np.exp(logs - high).sum(axis=axes)) + np.squeeze(high, axis=axes))
