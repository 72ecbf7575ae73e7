"""Draws of units and of nodes given all others, and pseudo-likelihoods.

Units of a restricted Boltzmann machine: their probabilities and draws in one pass over the products that BLAS made. A draw is a
function of a key and of the place of its unit (two rounds of Wellons' lowbias32, half of the key in each), so that it does not
depend on who draws it, or when, and the loops over units become vector instructions: so does tanh as a ratio of polynomials
(Eigen's, good to all but the last of the 24 bits of these floats).

Nodes of an undirected model. A column of codes is a stretch of `cells`, from `own[i]` on for node i of `sizes[i]` states. Node
i is in the tables numbered first[i]:first[i + 1]. Table e of these has its logs from offset[e] on; a state of node i is
own_step[e] further than the one before it; its other variables are those numbered first_member[e]:first_member[e + 1], with
columns from column[k] on and steps step[k]. Cases of a node are worked at CHUNK at a time: loops are over cases, and what they
need stays near.

Gibbs sampling in directed ones: finite variable v is in the tables `table[k]` for k in first[v]:first[v + 1]; its next state
is `step[k]` numbers further there; `at[f]` is where the number of the present states stands. In the same way it selects the
parameters of the Gaussian nodes `node[k]` for k in first_node[v]:first_node[v + 1]; node g's present ones are the row
`row[g]`:

    y[g] ~ Normal(parameters[row, 1] + Σⱼ parameters[row, 2 + j] y[parents[g, j]], parameters[row, 0])

Real variable g is parent number `place[k]` of the nodes `child[k]` for k in first_child[g]:first_child[g + 1].
"""

import math

import numpy as np

from suffice.numerics.kernels import kernel, nb
from suffice.numerics.kernels.compiler.signatures import float32, float64, int64, uint32, void

CHUNK = 512

_ints, _floats, _codes, _matrix = nb.int64[::1], nb.float64[::1], nb.uint16[::1], nb.float64[:, ::1]
_units, _biases = float32[:, ::1], float32[::1]
_members = (_ints, _ints, _ints, _ints)
_graph = (_ints, _ints, _ints, *_members)
_links = (_ints, _ints, _ints)
_tables = (_ints, *_links, _floats, *_links)
_nodes = (nb.int64[:, ::1], _matrix, *_links)
_state = (_ints, _ints, _ints, _floats)
_random = (_ints, _floats, _ints, _floats, _floats)


@kernel(uint32(uint32, uint32, uint32))
def mix(place, low, high):
    """32 bits that look random, of a place and the halves of a key."""
    x = uint32(place ^ low)
    for key in (high, low):
        x = uint32((x ^ (x >> uint32(16))) * uint32(0x7FEB352D))
        x = uint32((x ^ (x >> uint32(15))) * uint32(0x846CA68B))
        x = uint32((x ^ (x >> uint32(16))) + key)
    return uint32((x ^ (x >> uint32(17))) * uint32(0xED5AD4BB))


@kernel(float32(float32))
def sigmoid(x):
    """1 / (1 + e^−x)."""
    t = float32(0.5) * x
    t = float32(7.9) if t > float32(7.9) else t
    t = float32(-7.9) if t < float32(-7.9) else t
    s = t * t
    top = float32(-2.76076847742355e-16)
    for c in (2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08):
        top = top * s + float32(c)
    for c in (1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03):
        top = top * s + float32(c)
    low = float32(1.19825839466702e-06)
    for c in (1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03):
        low = low * s + float32(c)
    return float32(0.5) + float32(0.5) * np.divide(t * top, low)


@kernel(void(_units, _biases, float32, int64, int64, uint32, uint32, _units))
def draw_bits(x, bias, scale, start, stop, low, high, states):
    """Units start:stop of each row: x becomes p = σ(scale x + bias), and the state is 1 with this probability, else 0."""
    n, width = x.shape
    own = bias[start:stop]
    for i in range(n):
        row, drawn, place = x[i, start:stop], states[i, start:stop], uint32(i * width + start)
        for j in range(len(own)):  # from 0 up, or each index is tested for its sign
            p = sigmoid(scale * row[j] + own[j])
            u = float32(mix(uint32(place + j), low, high) >> uint32(8)) * float32(2.0**-24)
            row[j] = p
            drawn[j] = float32(1.0) if u < p else float32(0.0)


@kernel(void(_units, _biases, float32, int64[::1], uint32, uint32, _units))
def draw_groups(x, bias, scale, first, low, high, states):
    """Units first[g]:first[g + 1] of each row, of which one is 1: x becomes their softmax, and the states a draw of it."""
    n, width = x.shape
    for i in range(n):
        for g in range(len(first) - 1):
            top = float32(-np.inf)
            for j in range(first[g], first[g + 1]):
                x[i, j] = scale * x[i, j] + bias[j]
                top = max(top, x[i, j])
            total = float32(0.0)
            for j in range(first[g], first[g + 1]):
                x[i, j] = math.exp(x[i, j] - top)
                total += x[i, j]
            left = float32(mix(uint32(i * width + first[g]), low, high) >> uint32(8)) * float32(2.0**-24) * total
            chosen = first[g]
            for j in range(first[g], first[g + 1]):
                if x[i, j] > float32(0.0) and left >= float32(0.0):  # what rounding leaves goes to the last possible one
                    chosen = j
                    left -= x[i, j]
                x[i, j] /= total
                states[i, j] = float32(0.0)
            states[i, chosen] = float32(1.0)


@kernel(void(_units, _biases, float32, int64, int64, uint32, uint32, _units))
def draw_numbers(x, bias, scale, start, stop, low, high, states):
    """Units start:stop of each row: x becomes their mean, scale x + bias, and the states draws of variance 1 around it."""
    n, width = x.shape
    for i in range(n):
        for j in range(start, stop):
            place = uint32(2 * (i * width + j))
            u = (float64(mix(place, low, high)) + 1.0) * 2.0**-32
            v = float64(mix(uint32(place + uint32(1)), low, high)) * 2.0**-32
            x[i, j] = scale * x[i, j] + bias[j]
            states[i, j] = x[i, j] + float32(math.sqrt(-2.0 * math.log(u)) * math.cos(2.0 * math.pi * v))


@kernel(void(_units, _biases, float64, float64, float64[::1]))
def gains(x, bias, before, after, out):
    """Add Σ_j ln(1 + e^{after a_j}) − ln(1 + e^{before a_j}), a = x + bias, of each row to `out`."""
    for i in range(x.shape[0]):
        total = 0.0
        for j in range(x.shape[1]):
            a = float64(x[i, j] + bias[j])
            up, down = after * a, before * a
            total += max(up, 0.0) - max(down, 0.0)
            total += math.log((1.0 + math.exp(-abs(up))) / (1.0 + math.exp(-abs(down))))
        out[i] += total


@kernel(nb.void(_codes, *_members, nb.int64, nb.int64, _ints))
def find(cells, offset, first_member, column, step, e, start, index):
    """Where the numbers of table e stand for the first state of its own node, in cases from `start` on."""
    for r in range(len(index)):
        index[r] = offset[e]
    for k in range(first_member[e], first_member[e + 1]):
        codes, by = cells[column[k] + start : column[k] + start + len(index)], step[k]
        for r in range(len(index)):
            index[r] += by * nb.int64(codes[r])


@kernel(nb.void(_codes, _floats, *_graph, nb.int64, nb.int64, _ints, _matrix))
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


@kernel(nb.float64(nb.int64[:, ::1], _matrix, _floats, nb.int64, nb.int64))
def residual(parents, parameters, y, g, row):
    """y[g] less its mean by the parameters of a row."""
    r = y[g] - parameters[row, 1]
    for j in range(parents.shape[1]):
        r -= parameters[row, 2 + j] * y[parents[g, j]]
    return r


@kernel(nb.void(*_tables, *_nodes, *_state, *_random, _ints, _ints, _ints, _ints, _matrix))
def walk(
    sizes, first, table, step, logs, first_node, node, node_step, parents, parameters, first_child, child, place, codes, at,
    row, y, free, uniforms, free_reals, normals, weights, targets, target_step, real_targets, cells, reals
):  # fmt: skip
    """One sweep for each of `cells`, where the targets' joint state goes; their numbers go to `reals`. The state (`codes`, `at`,
    `row`, `y`) moves on. `logs` are the logs of the tables, `weights` is room for a number per state."""
    used = 0
    for s in range(len(cells)):
        for i in range(len(free)):
            v = free[i]
            old, top = codes[v], -np.inf
            for x in range(sizes[v]):
                w = 0.0
                for k in range(first[v], first[v + 1]):
                    w += logs[at[table[k]] + (x - old) * step[k]]
                for k in range(first_node[v], first_node[v + 1]):
                    r = row[node[k]] + (x - old) * node_step[k]
                    e = residual(parents, parameters, y, node[k], r)
                    w -= 0.5 * (np.log(parameters[r, 0]) + e * e / parameters[r, 0])
                weights[x] = w
                top = max(top, w)
            total = 0.0
            for x in range(sizes[v]):
                weights[x] = np.exp(weights[x] - top)
                total += weights[x]
            left, new = uniforms[used] * total, old
            used += 1
            for x in range(sizes[v]):
                if weights[x] > 0.0 and left >= 0.0:  # what rounding leaves at the end goes to the last possible state
                    new = x
                    left -= weights[x]
            codes[v] = new
            for k in range(first[v], first[v + 1]):
                at[table[k]] += (new - old) * step[k]
            for k in range(first_node[v], first_node[v + 1]):
                row[node[k]] += (new - old) * node_step[k]
        for i in range(len(free_reals)):
            g = free_reals[i]  # as a function of y[g], its densities together are that of a Gaussian
            precision = 1.0 / parameters[row[g], 0]
            shift = -precision * residual(parents, parameters, y, g, row[g])
            for k in range(first_child[g], first_child[g + 1]):
                r = row[child[k]]
                b = parameters[r, 2 + place[k]]
                precision += b * b / parameters[r, 0]
                shift += b / parameters[r, 0] * residual(parents, parameters, y, child[k], r)
            y[g] += shift / precision + normals[s * len(free_reals) + i] / np.sqrt(precision)
        cells[s] = 0
        for i in range(len(targets)):
            cells[s] += codes[targets[i]] * target_step[i]
        for i in range(len(real_targets)):
            reals[s, i] = y[real_targets[i]]
