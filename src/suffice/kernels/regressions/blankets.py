"""Nodes of an undirected model given all others: their pseudo-likelihood, draws of them, and the cells that draws fall into.

A column of codes is a stretch of `cells`, from `own[i]` on for node i of `sizes[i]` states. Node i is in the tables numbered
first[i]:first[i + 1]. Table e of these has its logs from offset[e] on; a state of node i is own_step[e] further than the one
before it; its other variables are those numbered first_member[e]:first_member[e + 1], with columns from column[k] on and steps
step[k]. Cases of a node are worked at CHUNK at a time: loops are over cases, and what they need stays near.
"""

import math

import numpy as np

from suffice.kernels import kernel, nb
from suffice.kernels.regressions.rbm import mix, sigmoid

CHUNK = 512

_ints, _floats, _codes, _room = nb.int64[::1], nb.float64[::1], nb.uint16[::1], nb.float64[:, ::1]
_members = (_ints, _ints, _ints, _ints)
_graph = (_ints, _ints, _ints, *_members)


@kernel(nb.void(_codes, *_members, nb.int64, nb.int64, _ints))
def find(cells, offset, first_member, column, step, e, start, index):
    """Where the numbers of table e stand for the first state of its own node, in cases from `start` on."""
    for r in range(len(index)):
        index[r] = offset[e]
    for k in range(first_member[e], first_member[e + 1]):
        codes, by = cells[column[k] + start : column[k] + start + len(index)], step[k]
        for r in range(len(index)):
            index[r] += by * nb.int64(codes[r])


@kernel(nb.void(_codes, _floats, *_graph, nb.int64, nb.int64, _ints, _room))
def weigh(cells, logs, sizes, first, own_step, offset, first_member, column, step, i, start, index, field):
    """field[s, r] ∝ p(state s of node i | the others) in cases from `start` on, the largest 1; the last row but one gets the sum
    over the states, the last is used up."""
    states, n = sizes[i], len(index)
    for s in range(states):
        for r in range(n):
            field[s, r] = 0.0
    for e in range(first[i], first[i + 1]):
        find(cells, offset, first_member, column, step, e, start, index)
        for s in range(states):
            shift = s * own_step[e]
            for r in range(n):
                field[s, r] += logs[index[r] + shift]
    top, total = field[len(field) - 1], field[len(field) - 2]
    for r in range(n):
        top[r] = field[0, r]
        total[r] = 0.0
    for s in range(1, states):
        for r in range(n):
            top[r] = field[s, r] if field[s, r] > top[r] else top[r]
    for s in range(states):
        for r in range(n):
            field[s, r] = math.exp(field[s, r] - top[r])
            total[r] += field[s, r]


@kernel(nb.float64(_codes, _ints, _ints, _ints, _floats, _floats, *_graph, _floats))
def pseudo(cells, own, cases, weight_start, weights, logs, sizes, first, own_step, offset, first_member, column, step, gradient):
    """Σ weight · ln p(node | the others) over all nodes and their cases; its gradient by the logs is added to `gradient`."""
    value, most = 0.0, 0
    for i in range(len(sizes)):
        most = max(most, sizes[i])
    room, indices = np.empty((most + 2, CHUNK)), np.empty(CHUNK, np.int64)
    for i in range(len(sizes)):
        for start in range(0, cases[i], CHUNK):
            n = min(CHUNK, cases[i] - start)
            index = indices[:n]
            weigh(cells, logs, sizes, first, own_step, offset, first_member, column, step, i, start, index, room)
            codes = cells[own[i] + start : own[i] + start + n]
            w = weights[weight_start[i] + start : weight_start[i] + start + n]
            part = 0.0  # a sum of its own, or rounding grows with the number of all cases
            for r in range(n):
                x, total = nb.int64(codes[r]), room[most, r]
                part += w[r] * (math.log(room[x, r]) - math.log(total)) if w[r] > 0.0 else 0.0
                for s in range(sizes[i]):
                    room[s, r] *= -w[r] / total
                room[x, r] += w[r]
            value += part
            for e in range(first[i], first[i + 1]):
                find(cells, offset, first_member, column, step, e, start, index)
                for s in range(sizes[i]):
                    shift = s * own_step[e]
                    for r in range(n):
                        gradient[index[r] + shift] += room[s, r]
    return value


@kernel(nb.void(_codes, _floats, *_graph, _ints, nb.int64, nb.int64, _ints, _floats))
def compare(cells, logs, sizes, first, own_step, offset, first_member, column, step, pair, i, start, index, odds):
    """ln p(second state of node i | the others) / p(first), in cases from `start` on, of a node of two states.

    Where pair[e] is 1, table e has one other variable, of two states as well: then no table need be looked into.
    """
    n = len(index)
    for r in range(n):
        odds[r] = 0.0
    for e in range(first[i], first[i + 1]):
        k, by = first_member[e], own_step[e]
        if pair[e] == 1:
            a, b = offset[e], offset[e] + step[k]
            low = logs[a + by] - logs[a]
            more = logs[b + by] - logs[b] - low
            codes = cells[column[k] + start : column[k] + start + n]
            for r in range(n):
                odds[r] += low + more * nb.float64(codes[r])
        else:
            find(cells, offset, first_member, column, step, e, start, index)
            for r in range(n):
                odds[r] += logs[index[r] + by] - logs[index[r]]


@kernel(nb.void(_codes, _ints, nb.int64, _floats, *_graph, _ints, nb.uint32, nb.uint32))
def sweep(cells, own, chains, logs, sizes, first, own_step, offset, first_member, column, step, pair, low, high):
    """Each node in turn drawn anew given the others, in so many chains: cells change."""
    most = 0
    for i in range(len(sizes)):
        most = max(most, sizes[i])
    room, indices, row = np.empty((most + 2, CHUNK)), np.empty(CHUNK, np.int64), np.empty(CHUNK)
    for i in range(len(sizes)):
        for start in range(0, chains, CHUNK):
            n = min(CHUNK, chains - start)
            index, odds = indices[:n], row[:n]
            codes, place = cells[own[i] + start : own[i] + start + n], nb.uint32(i * chains + start)
            if sizes[i] == 2:
                compare(cells, logs, sizes, first, own_step, offset, first_member, column, step, pair, i, start, index, odds)
                for r in range(n):
                    u = nb.float32(mix(nb.uint32(place + r), low, high) >> nb.uint32(8)) * nb.float32(2.0**-24)
                    codes[r] = nb.uint16(1) if u < sigmoid(nb.float32(odds[r])) else nb.uint16(0)
            else:
                weigh(cells, logs, sizes, first, own_step, offset, first_member, column, step, i, start, index, room)
                for r in range(n):
                    left = nb.float64(mix(nb.uint32(place + r), low, high)) * 2.0**-32 * room[most, r]
                    x = 0
                    for s in range(sizes[i] - 1):
                        left -= room[s, r]
                        x += left >= 0.0
                    codes[r] = nb.uint16(x)


@kernel(nb.void(_codes, nb.int64, nb.int64, *_members, _floats))
def tally(cells, start, n, offset, first_member, column, step, counts):
    """Add 1 to the cell of each table that each of n cases from `start` on falls into; here all variables are members."""
    indices = np.empty(CHUNK, np.int64)
    for e in range(len(offset)):
        for a in range(start, start + n, CHUNK):
            index = indices[: min(CHUNK, start + n - a)]
            find(cells, offset, first_member, column, step, e, a, index)
            for r in range(len(index)):
                counts[index[r]] += 1.0
