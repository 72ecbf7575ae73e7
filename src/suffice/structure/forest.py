"""Forests: of all graphs in which a node has at most one parent, the one whose edges weigh most.

Where an edge weighs the same in both directions and may have either, that is a maximum spanning tree with the light edges left
out, directed away from a root (Prim 1957). Otherwise it is a maximum branching (Edmonds 1967).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Numbers = npt.NDArray[np.int64]

NONE = -1


def best_forest(weight: Array, required: npt.NDArray[np.bool_], tie: float, *, root: int = NONE) -> Numbers:
    """The parent of each node, NONE for a root; `weight[child, parent]` is −inf for an edge that cannot be.

    Edges of weight ≤ `tie` are left out unless they are required; of edges within `tie` the first by name is taken. A `root` gets
    no parent.

    >>> weight = np.array([[0.0, 3.0, 2.0], [3.0, 0.0, 1.0], [2.0, 1.0, 0.0]])
    >>> best_forest(weight, np.zeros((3, 3), bool), 1e-9)
    array([-1,  0,  0])
    >>> best_forest(weight, np.zeros((3, 3), bool), 1e-9, root=2)
    array([ 2,  0, -1])
    """
    worth = np.where(weight > tie, weight, -np.inf)
    np.fill_diagonal(worth, -np.inf)
    one_way = np.isfinite(weight) != np.isfinite(weight).T
    np.fill_diagonal(one_way, False)
    if not required.any() and not one_way.any() and _symmetric(worth, tie):
        tree = spanning_tree(np.maximum(worth, worth.T), tie, max(root, 0))
        return tree if root == NONE else rooted(tree, root)
    bound = required.any(1)
    worth[bound] = -np.inf
    reward = 1.0 + np.abs(weight[np.isfinite(weight)]).max(initial=0.0) * 2 * len(weight)
    worth[required] = weight[required] + reward
    if root != NONE:
        worth[root] = -np.inf
    return branching(worth, tie)


def _symmetric(weight: Array, tie: float) -> bool:
    there = np.isfinite(weight)
    both = there & there.T
    # Rounding may leave an edge that weighs hardly more than nothing in one direction only.
    alone = weight[there & ~both]
    apart = np.abs(np.where(both, weight, 0.0) - np.where(both, weight.T, 0.0))
    return bool((alone <= 2 * tie).all() and (apart <= tie).all())


def spanning_tree(weight: Array, tie: float, first: int = 0) -> Numbers:
    """The parent of each node in the maximum spanning forest of a symmetric matrix; of each tree the first node is the root.

    >>> spanning_tree(np.array([[-np.inf, 1.0], [1.0, -np.inf]]), 0.0)
    array([-1,  0])
    """
    n = len(weight)
    parent = np.full(n, NONE)
    link, nearest = np.full(n, -np.inf), np.full(n, NONE)
    outside = np.ones(n, bool)
    node = first
    for _ in range(n):
        outside[node], link[node] = False, -np.inf
        row = weight[node]
        closer = outside & ((row > link + tie) | (row >= link - tie) & (node < nearest))
        link[closer], nearest[closer] = row[closer], node
        top = link.max(initial=-np.inf)
        if top == -np.inf:
            if not outside.any():
                break
            node = int(np.argmax(outside))
            continue
        node = int(np.argmax(link >= top - tie))
        parent[node] = nearest[node]
    return parent


def rooted(parent: Numbers, root: int) -> Numbers:
    """The same forest with this node as a root: the way up from it is turned around.

    >>> rooted(np.array([-1, 0, 1]), 2)
    array([ 1,  2, -1])
    """
    turned, node, below = parent.copy(), root, NONE
    while node != NONE:
        turned[node], below, node = below, node, parent[node]
    return turned


def branching(weight: Array, tie: float) -> Numbers:
    """The parent of each node in the maximum branching.

    >>> branching(np.array([[-np.inf, 2.0], [3.0, -np.inf]]), 0.0)
    array([-1,  0])
    """
    nobody = np.zeros((len(weight), 1))
    return _arborescence(np.hstack([nobody, weight]), tie) - 1


def _arborescence(weight: Array, tie: float) -> Numbers:
    """The column of each row's parent: column 0 is the root, everybody's parent at need, and column i + 1 is row i.

    Each row takes its best column. Cycles among these are contracted, each into its first member, and the smaller problem says
    where each is to be broken.
    """
    n = len(weight)
    parent = _first_best(weight, tie, axis=1)
    cycles = _cycles(parent)
    if not cycles:
        return parent
    # What each edge loses against the chosen one: a constant for each row, which has one parent anyway, so nothing else changes.
    loss = weight - weight[np.arange(n), parent][:, None]
    into, out_of = dict[int, Numbers](), dict[int, Numbers]()
    for cycle in cycles:
        members = loss[:, cycle + 1]
        out_of[cycle[0]] = cycle[_first_best(members, tie, axis=1)] + 1
        loss[:, cycle[0] + 1] = members.max(1)
    for cycle in cycles:
        into[cycle[0]] = cycle[_first_best(loss[cycle], tie, axis=0)]
        loss[cycle[0]] = loss[cycle].max(0)
        loss[cycle[0], cycle[0] + 1] = -np.inf
    rows = np.setdiff1d(np.arange(n), np.concatenate([c[1:] for c in cycles]))
    columns = np.concatenate([[0], rows + 1])
    above = columns[_arborescence(loss[np.ix_(rows, columns)], tie)]
    for row, column in zip(rows.tolist(), above.tolist(), strict=True):
        node = into[row][column] if row in into else row
        parent[node] = out_of[column - 1][node] if column - 1 in out_of else column
    return parent


def _first_best(weight: Array, tie: float, axis: int) -> Numbers:
    chosen: Numbers = np.argmax(weight >= weight.max(axis, keepdims=True) - tie, axis=axis)
    return chosen


def _cycles(parent: Numbers) -> list[Numbers]:
    """The rows of each cycle among parent columns, sorted."""
    up = [0, *parent.tolist()]
    seen, found = [-1] + [0] * len(parent), []
    for start in range(1, len(up)):
        way, column = [], start
        while seen[column] == 0:
            seen[column] = start
            way.append(column)
            column = up[column]
        if seen[column] == start and column in way:
            found.append(np.array(sorted(way[way.index(column) :])) - 1)
    return found
