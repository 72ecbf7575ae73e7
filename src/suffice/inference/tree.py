"""A binary tree of products over part of a network, made from an order of elimination."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.inference.network import Array, Ints, Network

Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True, eq=False)
class Part:
    """Some factors of a network and the variables of theirs that are not observed, numbered anew: the question's part.

    `scopes` are of the unobserved variables; the first `n_kept` variables are what is asked for.
    """

    variables: Ints
    factors: Ints
    start: Ints
    scopes: Ints
    n_kept: int

    @property
    def n_variables(self) -> int:
        return len(self.variables)


@dataclass(frozen=True, eq=False)
class Tree:
    """Tables numbered as `kernels.products` says; `variables` has the network's number of the variable at each place."""

    variables: Ints
    factor: Ints
    n_tables: int
    dim_start: Ints
    dim_place: Ints
    dim_flag: Ints
    dim_stride: Ints
    left: Ints
    right: Ints
    root: int

    @property
    def n_leaves(self) -> int:
        return len(self.factor)

    def cells(self, sizes: Ints) -> Array:
        """How many cells each node's product has, given the sizes of the variables at the places."""
        logs = np.log(sizes.astype(np.float64))[self.dim_place[: self.dim_start[self.n_tables]]]
        sums = np.concatenate([[0.0], np.cumsum(logs)])
        weights = sums[self.dim_start[1 : self.n_tables + 1]] - sums[self.dim_start[: self.n_tables]]
        return np.asarray(np.exp(weights[self.n_leaves :]))


def part_of(network: Network, factors: Ints, codes: Ints, targets: Any = ()) -> Part:
    """These factors over their unobserved variables, targets first."""
    lengths = network.scope_start[factors + 1] - network.scope_start[factors]
    at = np.repeat(network.scope_start[factors], lengths) + _counted(lengths)
    variables, owner = network.scopes[at], np.repeat(np.arange(len(factors)), lengths)
    free = codes[variables] < 0
    variables, owner = variables[free], owner[free]
    number = np.full(network.n_variables, -1, np.int64)
    order = np.concatenate([np.asarray(targets, np.int64), np.setdiff1d(variables, np.asarray(targets, np.int64))]).astype(
        np.int64
    )
    number[order] = np.arange(len(order))
    start = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=len(factors)))]).astype(np.int64)
    return Part(order, factors.astype(np.int64), start, number[variables], len(targets))


def arranged(network: Network, part: Part, order: Ints) -> Tree:
    """The tree that an order of elimination makes; kept variables come last in the order."""
    from suffice.kernels.products import arrange

    m, n_leaves = part.n_variables, len(part.factors)
    place = np.empty(m, np.int64)
    place[order] = np.arange(m)
    most, room = 2 * n_leaves + m + 2, 4 * len(part.scopes) + 64
    log_size = np.log(network.sizes[part.variables[order]].astype(np.float64))
    places, strides = _leaf_dims(network, part, place)
    while True:
        dim_start = np.zeros(most + 2, np.int64)
        dim_start[: n_leaves + 1] = part.start
        dim_place, dim_flag = np.zeros(room, np.int64), np.zeros(room, np.int64)
        dim_place[: len(places)], dim_flag[: len(places)] = places, 4
        left, right = np.full(most, -1, np.int64), np.full(most, -1, np.int64)
        head, following, bucket = np.zeros(m + 1, np.int64), np.zeros(most, np.int64), np.zeros(most, np.int64)
        weight = np.zeros(most)
        n = arrange(
            n_leaves,
            m - part.n_kept,
            m,
            most,
            room,
            log_size,
            dim_start,
            dim_place,
            dim_flag,
            left,
            right,
            head,
            following,
            weight,
            bucket,
        )
        if n >= 0:
            break
        room *= 2
    stride = np.zeros(len(dim_place), np.int64)
    stride[: len(strides)] = strides
    root = int(bucket[0]) if part.n_kept else -1
    return Tree(part.variables[order], part.factors, n, dim_start, dim_place, dim_flag, stride, left, right, root)


def _leaf_dims(network: Network, part: Part, place: Ints) -> tuple[Ints, Ints]:
    """The places of the unobserved variables of each factor in ascending order, and their steps in the factor's table."""
    owner = np.repeat(np.arange(len(part.factors)), np.diff(part.start))
    lengths = network.scope_start[part.factors + 1] - network.scope_start[part.factors]
    at = np.repeat(network.scope_start[part.factors], lengths) + _counted(lengths)
    free = np.isin(network.scopes[at], part.variables)
    key = np.lexsort((place[part.scopes], owner))
    return place[part.scopes][key], network.strides[at[free]][key]


def _counted(lengths: Ints) -> Ints:
    """0 … length−1 for each length."""
    return np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
