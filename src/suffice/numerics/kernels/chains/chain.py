"""Hidden chains of finite states, step by step and in logarithms: for any matrices, and exact however small a number gets.

Sequence q has the steps starts[q] … starts[q + 1] − 1. Step t goes by M = matrices[codes[t]] from the state before, which is 0
before a sequence begins, and has the log likelihood

    b_t[j] = logs[symbols[t], j] + dense[j, t]

where either part may be without columns (symbols, or dense, of length 0). A filter is kept as x = ln p(s_t, y_1..t) less its
largest entry. Only so many rows of filters are kept as `rows` has; `marks` has those before each such stretch, which is
run again on the way back.
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb

FAINT = 1e-250
"""Sums below this may have lost terms, and are taken again in logarithms."""

_ints, _codes, _floats, _rows, _cube = nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.float64[:, ::1], nb.float64[:, :, ::1]
_chain = (_ints, _ints, _codes, _cube, _codes, _rows, _rows)


@kernel(nb.float64(_codes, _rows, _rows, nb.int64, _floats))
def likelihood(symbols, logs, dense, t, out):
    """Add b_t to `out`; its largest entry is returned."""
    top = -np.inf
    for j in range(out.shape[0]):
        b = out[j]
        if symbols.shape[0]:
            b += logs[symbols[t], j]
        if dense.shape[1]:
            b += dense[j, t]
        out[j] = b
        top = max(top, b)
    return top


@kernel(nb.void(_cube, nb.int64, _floats, _floats, _floats))
def push(matrices, c, x, e, out):
    """out[j] = ln Σᵢ exp(x[i]) M[i, j], where e = exp(x)."""
    K = x.shape[0]
    for j in range(K):
        out[j] = 0.0
    for i in range(K):
        if e[i] > 0.0:
            for j in range(K):
                out[j] += e[i] * matrices[c, i, j]
    for j in range(K):
        if out[j] > FAINT:
            out[j] = np.log(out[j])
        else:
            top = -np.inf
            for i in range(K):
                if matrices[c, i, j] > 0.0:
                    top = max(top, x[i] + np.log(matrices[c, i, j]))
            total = 0.0
            for i in range(K):
                if top > -np.inf and matrices[c, i, j] > 0.0:
                    total += np.exp(x[i] + np.log(matrices[c, i, j]) - top)
            out[j] = top + np.log(total) if top > -np.inf else top


@kernel(nb.float64(_cube, nb.int64, nb.int64, _floats, _floats))
def pull(matrices, c, i, x, e):
    """ln Σⱼ M[i, j] exp(x[j]), where e = exp(x)."""
    K, total = x.shape[0], 0.0
    for j in range(K):
        total += matrices[c, i, j] * e[j]
    if total > FAINT:
        return np.log(total)
    top = -np.inf
    for j in range(K):
        if matrices[c, i, j] > 0.0:
            top = max(top, x[j] + np.log(matrices[c, i, j]))
    if top == -np.inf:
        return top
    total = 0.0
    for j in range(K):
        if matrices[c, i, j] > 0.0:
            total += np.exp(x[j] + np.log(matrices[c, i, j]) - top)
    return top + np.log(total)


@kernel(nb.float64(_codes, _cube, _codes, _rows, _rows, nb.int64, nb.int64, _rows, _ints))
def run(codes, matrices, symbols, logs, dense, begin, end, rows, stuck):
    """Filter from rows[0], before step `begin`, to rows[end − begin]; the sum of what was taken off is returned.

    stuck[0] is the first step that no state explains, or −1.
    """
    K = rows.shape[1]
    taken = 0.0
    x, e, v = np.empty(K), np.empty(K), np.empty(K)
    stuck[0] = -1
    for j in range(K):
        x[j] = rows[0, j]
        e[j] = np.exp(x[j])
    for t in range(begin, end):
        push(matrices, np.int64(codes[t]), x, e, v)
        top = likelihood(symbols, logs, dense, t, v)
        if top == -np.inf:
            stuck[0] = t
            return -np.inf
        taken += top
        for j in range(K):
            x[j] = v[j] - top
            e[j] = np.exp(x[j])
            rows[t - begin + 1, j] = x[j]
    return taken


@kernel(nb.void(_rows, nb.int64, _floats, _floats))
def share(rows, r, x, out):
    """out ∝ exp(rows[r] + x), which sums to 1."""
    K, top, total = x.shape[0], -np.inf, 0.0
    for j in range(K):
        top = max(top, rows[r, j] + x[j])
    for j in range(K):
        out[j] = np.exp(rows[r, j] + x[j] - top)
        total += out[j]
    for j in range(K):
        out[j] /= total


@kernel(nb.void(_codes, _cube, _codes, _rows, _rows, nb.int64, nb.int64, _rows, _rows, nb.float64, _cube, _rows, _rows))
def collect(codes, matrices, symbols, logs, dense, begin, end, rows, work, weight, pairs, counts, posterior):
    """What steps begin … end − 1 add to the sums (see `visit`), from the last to the first.

    work[0] is the log of p(y after | s) up to a factor, after the steps, and is moved on to before them.
    """
    K = rows.shape[1]
    beta, u, e, p = work[0], work[1], work[2], work[3]
    for t in range(end - 1, begin - 1, -1):
        share(rows, t - begin + 1, beta, p)
        for j in range(K):
            u[j] = beta[j]
        top = likelihood(symbols, logs, dense, t, u)
        for j in range(K):
            u[j] -= top
            e[j] = np.exp(u[j])
            if counts.shape[0]:
                counts[symbols[t], j] += weight * p[j]
            if posterior.shape[1]:
                posterior[j, t] = p[j]
        c, top = np.int64(codes[t]), -np.inf
        for i in range(K):
            beta[i] = pull(matrices, c, i, u, e)
            top = max(top, beta[i])
        share(rows, t - begin, beta, p)
        for i in range(K if pairs.shape[0] else 0):
            faint = beta[i] < -575.0
            part = 0.0 if faint else weight * p[i] * np.exp(-beta[i])
            for j in range(K if p[i] > 0.0 else 0):
                if not faint:
                    pairs[c, i, j] += part * matrices[c, i, j] * e[j]
                elif matrices[c, i, j] > 0.0:
                    pairs[c, i, j] += weight * p[i] * np.exp(np.log(matrices[c, i, j]) + u[j] - beta[i])
        for j in range(K):
            beta[j] -= top


@kernel(nb.void(_codes, _cube, nb.int64, nb.int64, nb.boolean, _rows, _rows, _floats, _codes))
def draw(codes, matrices, begin, end, free, rows, work, uniforms, paths):
    """Draw the states of steps begin … end − 1 from the last to the first, given the one after, if not `free`."""
    K = rows.shape[1]
    x, p = work[0], work[3]
    for t in range(end - 1, begin - 1, -1):
        last = free and t == end - 1
        for i in range(K):
            m = 1.0 if last else matrices[codes[t + 1], i, paths[t + 1]]
            x[i] = np.log(m) if m > 0.0 else -np.inf
        share(rows, t - begin + 1, x, p)
        left, state = uniforms[t], -1
        for i in range(K):
            if p[i] > 0.0 and left >= 0.0:  # what rounding leaves at the end goes to the last possible state
                state = i
                left -= p[i]
        paths[t] = state


@kernel(nb.void(*_chain, _floats, _floats, _ints, _cube, _rows, _rows, _rows, _floats, _codes, _rows, _rows))
def visit(
    which, starts, codes, matrices, symbols, logs, dense, weights, log_p, stuck, pairs, counts, posterior, filtered, uniforms,
    paths, rows, marks
):  # fmt: skip
    """For each sequence of `which`: log_p = ln p(y), and of what follows, what has entries:

    pairs[c, i, j] += w p(s_{t−1} = i, s_t = j | y) over steps of code c; counts[e, j] += w p(s_t = j | y) over steps of symbol e;
    posterior[j, t] = p(s_t = j | y); filtered[j, t] = p(s_t = j | y up to t); paths ~ p(s_1, …, s_n | y) by a uniform for each
    step. A sequence that is impossible has log_p −inf, its first impossible step in `stuck`, and adds nothing; all that it has
    of the rest are filters up to there.
    """
    K, length = rows.shape[1], rows.shape[0] - 1
    at, work, back = np.empty(1, np.int64), np.zeros((4, K)), pairs.shape[0] + posterior.shape[1] + paths.shape[0] > 0
    for q in which:
        begin, end = starts[q], starts[q + 1]
        n = (end - begin + length - 1) // length
        log_p[q], stuck[q] = 0.0, -1
        for k in range(2 * n - 1 if back else n):
            on = k < n  # on the way forward; else back, from the last stretch but one
            stretch = k if on else 2 * n - 2 - k
            first = begin + stretch * length
            last = min(length, end - first)
            for j in range(K):
                if k == 0:
                    rows[0, j] = 0.0 if j == 0 else -np.inf
                elif on:
                    rows[0, j] = rows[length, j]
                else:
                    rows[0, j] = marks[stretch, j]
                marks[stretch, j] = rows[0, j]
            taken = run(codes, matrices, symbols, logs, dense, first, first + last, rows, at)
            if on:
                log_p[q] += taken
            if at[0] >= 0:
                stuck[q], last = at[0] - begin, at[0] - first
            if on and filtered.shape[1]:
                for r in range(1, last + 1):
                    for j in range(K):
                        work[0, j] = 0.0
                    share(rows, r, work[0], work[3])
                    for j in range(K):
                        filtered[j, first + r - 1] = work[3, j]
            if stuck[q] >= 0:
                break
            if k == n - 1:
                left = 0.0
                for j in range(K):
                    left += np.exp(rows[last, j])
                    work[0, j] = 0.0
                log_p[q] += np.log(left)
            if k >= n - 1 and paths.shape[0]:
                draw(codes, matrices, first, first + last, k == n - 1, rows, work, uniforms, paths)
            elif k >= n - 1 and back:
                collect(
                    codes, matrices, symbols, logs, dense, first, first + last, rows, work, weights[q], pairs, counts, posterior
                )
