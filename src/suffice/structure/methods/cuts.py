"""Cuts: inequalities that every acyclic graph keeps and a fractional one does not.

A fractional graph gives every parent set of every child a weight x(i, P) between 0 and 1, with sum 1 for each child. Two kinds of
inequalities cut it off, both of the form Σ a(i, P) x(i, P) ≤ β:

* clusters (Jaakkola et al. 2010, AISTATS; Bartlett & Cussens 2017, Artificial Intelligence 244, pp. 258–271): of the variables
  in C at least k have fewer than k parents in C, so at most |C| − k have k or more;
* all others over few variables S (local cuts, as Applegate et al. 2001 have them for the travelling salesman): coefficients
  w(i, P ∩ S) that grow with P, and β the most that an order of S collects. A small linear program finds the one that cuts off
  most. On four variables these are the facets that Cussens et al. 2017 (JAIR 58, pp. 185–229) list.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import permutations
from typing import NamedTuple

import highspy
import numpy as np

from suffice.basis.arrays import Array, Bools, Ints
from suffice.numerics.kernels.search.subsets import clusters as search
from suffice.numerics.kernels.search.subsets import screen

LEAST = 0.01
"""A cut that is violated by less is not worth a row."""

ROUNDS = 100
"""Steps towards a point before it is taken for a mixture of graphs: deep violations show in 4 to 25, by experiment."""


class Cut(NamedTuple):
    """Σ values · x[columns] ≤ most."""

    columns: Ints
    values: Array
    most: float


@dataclass(frozen=True)
class Fraction:
    """A fractional graph: of the columns (child, parents as flags) the positive ones, and their weights."""

    child: Ints
    parents: Bools
    x: Array

    @property
    def n(self) -> int:
        return int(self.parents.shape[1])

    @cached_property
    def arcs(self) -> Array:
        """[child, parent]: how much of the edge there is."""
        result = np.zeros((self.n, self.n))
        np.add.at(result, self.child, self.parents * self.x[:, None])
        return result


def cluster_cut(child: Ints, parents: Bools, cluster: Bools, k: int) -> Cut:
    """The cut of a cluster over columns (child, parents): at most |C| − k with k parents, or at least k with fewer."""
    inside = cluster[child]
    many = (parents & cluster).sum(1) >= k
    columns, others = np.flatnonzero(inside & many), np.flatnonzero(inside & ~many)
    if len(columns) <= len(others):
        return Cut(columns, np.ones(len(columns)), float(cluster.sum() - k))
    return Cut(others, -np.ones(len(others)), float(-k))


def clusters(point: Fraction, k: int, most: int) -> list[Bools]:
    """Clusters that the point violates, most violated first."""
    first = np.searchsorted(point.child, np.arange(point.n + 1)).astype(np.int64)
    parent, row = np.nonzero(point.parents.T)
    first_with = np.searchsorted(parent, np.arange(point.n + 1)).astype(np.int64)
    found, below = np.empty((1000, point.n), np.bool_), np.empty(1000)
    count = search(first, point.child, point.x, first_with, row.astype(np.int64), k, found, below)
    best: dict[bytes, int] = {}
    for r in np.argsort(-below[:count], kind="stable"):
        best.setdefault(found[r].tobytes(), int(r))
    return [found[r] for r in list(best.values())[:most]]


class CutProgram:
    """The linear program that finds the best cut over m variables.

    Its columns are w(i, Q) for Q a set of the other variables, as a mask, and β; its rows say that w grows with Q and that no
    order collects more than β. Weights are at most 1, and a little is paid for each: so those that the point does not feel are
    large, too.
    """

    def __init__(self, m: int) -> None:
        self.m = m
        self.cells = [(i << m) + q for i in range(m) for q in range(1, 1 << m) if not q >> i & 1]
        place = {cell: k for k, cell in enumerate(self.cells)}
        self.orders = np.array([_cells_of_order(order) for order in permutations(range(m))])
        size = len(self.cells)
        infinite = highspy.kHighsInf
        none, nothing = np.empty(0, np.int32), np.empty(0)
        self.lp = highspy.Highs()
        for name, value in (("output_flag", False), ("presolve", "off"), ("threads", 1)):
            self.lp.setOptionValue(name, value)
        high = np.append(np.ones(size), infinite)
        self.lp.addCols(size + 1, np.zeros(size + 1), np.zeros(size + 1), high, 0, none, none, nothing)
        for order in self.orders:
            members = np.array([*(place[cell] for cell in order[1:]), size], np.int32)
            self.lp.addRow(-infinite, 0.0, m, members, np.append(np.ones(m - 1), -1.0))
        for cell, k in place.items():
            i, q = cell >> m, cell & (1 << m) - 1
            for j in range(m):
                if j != i and not q >> j & 1:
                    self.lp.addRow(-infinite, 0.0, 2, np.array([k, place[cell | 1 << j]], np.int32), np.array([1.0, -1.0]))

    def weights(self, x: Array) -> Array:
        """w[i·2^m + Q] of the cut that x[i·2^m + Q] violates most."""
        cost = np.append(-x[self.cells] - 1e-4, 1.0)
        self.lp.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
        self.lp.run()
        w = np.zeros(self.m << self.m)
        w[self.cells] = np.array(self.lp.getSolution().col_value)[:-1]
        for bit in range(self.m):  # to the last digit: β is the most of an order only if w grows with Q
            halves = w.reshape(self.m, -1, 2, 1 << bit)
            np.maximum(halves[:, :, 1], halves[:, :, 0], out=halves[:, :, 1])
        simple = np.round(w * 12) / 12
        return max((simple, w), key=lambda v: self.violation(v, x) + 1e-6 * (v is simple))

    def most(self, w: Array) -> float:
        """β: the most that an order collects."""
        return float(w[self.orders].sum(1).max())

    def violation(self, w: Array, x: Array) -> float:
        return float(w @ x) - self.most(w)


def _cells_of_order(order: Sequence[int]) -> list[int]:
    """The cells of an order: each variable with all that come before it."""
    m, before, cells = len(order), 0, []
    for i in order:
        cells.append((i << m) + before)
        before |= 1 << i
    return cells


_programs = cache(CutProgram)


def local_cuts(point: Fraction, child: Ints, parents: Bools, m: int, tries: int, most: int = 60) -> list[Cut]:
    """Cuts over m variables that the point violates, over columns (child, parents); at most `tries` sets are looked at."""
    members = promising(point, m, tries)
    outside = np.empty(len(members), np.bool_)
    screen(members, point.child, point.parents, point.x, ROUNDS, LEAST, outside)
    if not outside.any():
        return []
    program = _programs(m)
    found: list[tuple[float, Ints, Array]] = []
    for chosen in members[outside]:
        cell = _cells(point.child, point.parents, chosen)
        x: Array = np.bincount(cell[cell >= 0], point.x[cell >= 0], m << m).astype(float)
        w = program.weights(x)
        found.append((program.violation(w, x), chosen, w))
    found.sort(key=lambda f: (-f[0], f[1].tolist()))
    cuts = []
    for _, chosen, w in (f for f in found[:most] if f[0] > LEAST):
        cell = _cells(child, parents, chosen)
        value = np.where(cell >= 0, w[cell], 0.0)
        columns = np.flatnonzero(value > 0)
        cuts.append(Cut(columns, value[columns], program.most(w)))
    return cuts


def _cells(child: Ints, parents: Bools, members: Ints) -> Ints:
    """i·2^m + Q of each column, with Q its parents among the members; −1 where the child is not among them."""
    m = len(members)
    place = np.full(parents.shape[1], -1)
    place[members] = np.arange(m)
    among: Ints = parents[:, members] @ (1 << np.arange(m))
    return np.where(place[child] >= 0, (place[child] << m) + among, -1)


def promising(point: Fraction, m: int, tries: int) -> Ints:
    """Sets of m variables (rows of numbers) that come nearest to a violated cluster.

    Each leads to each other in them; if not, the cuts over them are cuts over fewer.
    """
    edge = point.arcs > 1e-6
    linked = (edge | edge.T).astype(np.float32)
    one, other = np.nonzero(np.triu(linked))
    chosen = np.zeros((len(one), point.n), bool)
    chosen[np.arange(len(one)), one] = chosen[np.arange(len(one)), other] = True
    for _ in range(m - 2):
        row, new = np.nonzero((chosen.astype(np.float32) @ linked > 0) & ~chosen)
        grown = chosen[row]
        grown[np.arange(len(row)), new] = True
        _, once = np.unique(np.packbits(grown, axis=1).view(f"V{-(-point.n // 8)}"), return_index=True)
        chosen = grown[once]
        # how many of the variables in each set have no parents there: 1 at least, unless a cluster is violated
        alone = (chosen.astype(np.float32) @ point.parents.T.astype(np.float32) == 0) & chosen[:, point.child]
        chosen = chosen[np.argsort(alone.astype(float) @ point.x, kind="stable")[: 4 * tries]]
    members: Ints = np.nonzero(chosen)[1].reshape(-1, m).astype(np.int64)
    reach = (edge[members[:, :, None], members[:, None, :]] | np.eye(m, dtype=bool)).astype(np.float32)
    for _ in range(m.bit_length()):
        reach = (reach @ reach > 0).astype(np.float32)
    return members[reach.all((1, 2))][:tries]
