"""Gibbs sampling: each free variable drawn again from its distribution given all others.

Finite variable v is in the tables `table[k]` for k in first[v]:first[v + 1]; its next state is `step[k]` numbers further there;
`at[f]` is where the number of the present states stands. In the same way it selects the parameters of the Gaussian nodes
`node[k]` for k in first_node[v]:first_node[v + 1]; node g's present ones are the row `row[g]`:

    y[g] ~ Normal(parameters[row, 1] + Σⱼ parameters[row, 2 + j] y[parents[g, j]], parameters[row, 0])

Real variable g is parent number `place[k]` of the nodes `child[k]` for k in first_child[g]:first_child[g + 1].
"""

import numpy as np

from suffice.kernels import kernel, nb

_ints, _floats, _rows = nb.int64[::1], nb.float64[::1], nb.float64[:, ::1]
_links = (_ints, _ints, _ints)
_tables = (_ints, *_links, _floats, *_links)
_nodes = (nb.int64[:, ::1], _rows, *_links)
_state = (_ints, _ints, _ints, _floats)
_random = (_ints, _floats, _ints, _floats, _floats)


@kernel(nb.float64(nb.int64[:, ::1], _rows, _floats, nb.int64, nb.int64))
def residual(parents, parameters, y, g, row):
    """y[g] less its mean by the parameters of a row."""
    r = y[g] - parameters[row, 1]
    for j in range(parents.shape[1]):
        r -= parameters[row, 2 + j] * y[parents[g, j]]
    return r


@kernel(nb.void(*_tables, *_nodes, *_state, *_random, _ints, _ints, _ints, _ints, _rows))
def walk(
    sizes, first, table, step, logs, first_node, node, node_step, parents, parameters, first_child, child, place, codes, at,
    row, y, free, uniforms, free_reals, normals, weights, targets, target_step, real_targets, cells, reals
):  # fmt: skip
    """One sweep for each of `cells`, where the targets' joint state goes; their numbers go to `reals`.

    The state (`codes`, `at`, `row`, `y`) moves on. `logs` are the logs of the tables, `weights` is room for a number per state.
    """
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
