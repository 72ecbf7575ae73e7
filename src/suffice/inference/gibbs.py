"""Gibbs sampling in numbered networks: chains of states, each made from the last by drawing one variable at a time.

What zeros in tables tie together is summed out first: `collapse`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.inference.network import Array, GaussianNode, Ints, Network

Bools = npt.NDArray[np.bool_]

RANDOM = 2**20
"""Random numbers are drawn ahead of a stretch of sweeps, this many at a time."""


class State(NamedTuple):
    """A value of every variable: codes of the finite ones, numbers of the real ones."""

    codes: Ints
    reals: Array


class Trace(NamedTuple):
    """The targets after each sweep: the joint state of the finite ones as a row-major index, the real ones as columns."""

    cells: Ints
    reals: Array


class Links(NamedTuple):
    """For owner i, `what[k]` and `how[k]` for k in first[i]:first[i + 1]."""

    first: Ints
    what: Ints
    how: Ints


class Walker:
    """All that the kernel needs to know of a network: made once, used by every chain.

    `nodes` are the Gaussian nodes that matter; `free` and `free_reals` the variables that are drawn, `targets` and
    `real_targets` those that are recorded.

    >>> network = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.array([[0.9, 0.1], [0.2, 0.8]]))])
    >>> walker = Walker(network, free=[0], targets=[0])
    >>> trace = walker.chain(State(np.array([0, 1]), np.zeros(0)), 10_000, np.random.default_rng(0))
    >>> bool(abs(trace.cells.mean() - 0.8 / 0.9) < 0.02)
    True
    """

    def __init__(
        self,
        network: Network,
        *,
        free: Sequence[int],
        targets: Sequence[int],
        gaussians: Sequence[GaussianNode] = (),
        nodes: Iterable[int] = (),
        free_reals: Sequence[int] = (),
        real_targets: Sequence[int] = (),
    ) -> None:
        self._sizes = network.sizes
        self._free, self._free_reals = np.array(free, np.int64), np.array(free_reals, np.int64)
        self._targets, self._real_targets = np.array(targets, np.int64), np.array(real_targets, np.int64)
        self._target_step = _steps(network.sizes[self._targets])
        with np.errstate(divide="ignore"):
            self._logs = np.log(network.tables)
        tables = np.repeat(np.arange(network.n_factors), np.diff(network.scope_start))
        self._tables = _links(np.column_stack([network.scopes, tables, network.strides]), network.n_variables)
        self._start = network.table_start[:-1]
        self._set_nodes(gaussians, list(nodes))

    def _set_nodes(self, gaussians: Sequence[GaussianNode], nodes: Sequence[int]) -> None:
        """One row of parameters for each configuration of each node; rows are as long as the longest needs."""
        most = max((len(gaussians[g].real_parents) for g in nodes), default=0)
        self._parents = np.zeros((len(gaussians), most), np.int64)
        self._row = np.zeros(len(gaussians), np.int64)
        links, children, parts, n_rows = [], [], [np.zeros((0, 2 + most))], 0
        for g in nodes:
            node = gaussians[g]
            links += list(zip(node.finite_parents, [g] * node.variance.ndim, _steps(node.variance.shape), strict=True))
            children += [(p, g, j) for j, p in enumerate(node.real_parents)]
            self._parents[g, : len(node.real_parents)] = node.real_parents
            parts.append(_parameters(node, 2 + most))
            self._row[g], n_rows = n_rows, n_rows + len(parts[-1])
        self._parameters = np.concatenate(parts)
        self._selected, self._children = _links(links, len(self._sizes)), _links(children, len(gaussians))

    def chain(self, start: State, n: int, rng: np.random.Generator, burn_in: int = 0) -> Trace:
        """The targets after each of n sweeps that follow `burn_in` others, from a state that is possible."""
        codes, reals = start.codes.astype(np.int64), start.reals.astype(np.float64)
        rows = self._placed(self._selected, self._row, codes)
        state = (codes, self._placed(self._tables, self._start, codes), rows, reals)
        length = max(1, RANDOM // max(1, len(self._free) + len(self._free_reals)))
        for i in range(0, burn_in, length):
            self._sweep(state, self._room(min(length, burn_in - i)), rng)
        trace = self._room(n)
        for i in range(0, n, length):
            self._sweep(state, Trace(trace.cells[i : i + length], trace.reals[i : i + length]), rng)
        return trace

    def _room(self, n: int) -> Trace:
        return Trace(np.empty(n, np.int64), np.empty((n, len(self._real_targets))))

    def _sweep(self, state: tuple[Ints, Ints, Ints, Array], trace: Trace, rng: np.random.Generator) -> None:
        """Move the state on, as often as there is room to record."""
        from suffice.kernels.gibbs import walk

        n, weights = len(trace.cells), np.empty(int(self._sizes.max(initial=1)))
        uniforms, normals = rng.random(n * len(self._free)), rng.standard_normal(n * len(self._free_reals))
        nodes = (self._parents, self._parameters, *self._children)
        random = (self._free, uniforms, self._free_reals, normals, weights)
        targets = (self._targets, self._target_step, self._real_targets)
        walk(self._sizes, *self._tables, self._logs, *self._selected, *nodes, *state, *random, *targets, *trace)

    def _placed(self, links: Links, start: Ints, codes: Ints) -> Ints:
        """Where the numbers of the present codes stand."""
        owner = np.repeat(np.arange(len(codes)), np.diff(links.first))
        places = start.copy()
        np.add.at(places, links.what, codes[owner] * links.how)
        return places


def _steps(sizes: Sequence[int] | Ints) -> Ints:
    """The row-major strides of a table."""
    return np.array([int(np.prod(sizes[i + 1 :], dtype=np.int64)) for i in range(len(sizes))], np.int64)


def _links(links: Any, n: int) -> Links:
    """Triples (owner, what, how) by owner."""
    columns = np.asarray(links, np.int64).reshape(-1, 3)
    columns = columns[np.argsort(columns[:, 0], kind="stable")]
    first = np.searchsorted(columns[:, 0], np.arange(n + 1))
    return Links(first.astype(np.int64), columns[:, 1].copy(), columns[:, 2].copy())


def _parameters(node: GaussianNode, width: int) -> Array:
    n = node.variance.size
    rows = np.zeros((n, width))
    rows[:, 0], rows[:, 1] = node.variance.reshape(-1), node.intercept.reshape(-1)
    rows[:, 2 : 2 + len(node.real_parents)] = node.coefficients.reshape(n, -1) if node.real_parents else 0.0
    return rows
