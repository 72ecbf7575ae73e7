"""What fits of undirected models iterate. Lassos: of groups of numbers, by descent on a small quadratic, and what rows say of the
regressions of finite nodes; on a matrix of correlations, the regression of each variable on all others; and of sparse
precision matrices, sweeps over the entries of a Newton direction.

A quadratic is minimised over θ, in groups g that are penalised as a whole:

    q(θ) = sᵀ(θ − θ₀) + ½ (θ − θ₀)ᵀ H (θ − θ₀) + Σ_g λ_g ‖θ_g‖

A group is moved to where a bound of q, with ‖H_gg‖ in place of H_gg, is least: of a group of one number that is q itself.

And iterative proportional fitting along a tree of cliques, all tables in one array. A program is rows of numbers, gone through in
every cycle; `place[places + i]` is the cell of the margin or separator that cell i of the table falls into.

    0, first cell of a table, cells, places, first cell of a margin, its cells, –, –, –              fit the table to the margin
    1, first cell of a table, cells, places, first cell of a separator, its cells, other table, its cells, its places
                                                                                       tell another table what became of it
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb

_vector, _matrix, _cube = nb.float64[::1], nb.float64[:, ::1], nb.float64[:, :, ::1]

LOGS = 512
"""Factors between 1 and 2 whose product is far from the largest number."""


@kernel(nb.int64(_matrix, _vector, _vector, nb.int64[::1], _vector, _vector, nb.float64, nb.int64))
def descend_groups(hessian, slope, theta, first, penalty, bound, tol, most):
    """Sweep over the groups until no slope would move by more than `tol`; the sweeps that it took, at most `most`. Group g is the
    numbers first[g] : first[g + 1] of θ, `penalty[g]` its λ_g and `bound[g]` a bound of its curvature. `slope` is the gradient of
    the quadratic without its penalty, and is kept up to date."""
    step = np.empty(len(theta))
    for sweep in range(most):
        largest = 0.0
        for g in range(len(penalty)):
            a, b, curved = first[g], first[g + 1], bound[g]
            size = 0.0
            for k in range(a, b):
                step[k] = curved * theta[k] - slope[k]
                size += step[k] * step[k]
            size = np.sqrt(size)
            kept = (1.0 - penalty[g] / size) / curved if size > penalty[g] else 0.0
            moved = 0.0
            for k in range(a, b):
                step[k] = kept * step[k] - theta[k]
                moved += step[k] * step[k]
            if moved == 0.0:
                continue
            largest = max(largest, curved * np.sqrt(moved))
            for k in range(a, b):
                theta[k] += step[k]
                for j in range(len(theta)):
                    slope[j] += step[k] * hessian[k, j]
        if largest <= tol:
            return sweep + 1
    return most


@kernel(nb.void(_matrix, _matrix, _vector, _matrix, _vector), reorder=True, apart=True)
def two_states(eta, z, weight, root, loss):
    """Regressions of two states, coded z = −½ and ½, with log odds η, and e^(−|η|) in `root`: [node, row].

    η becomes the residual w (p − ½ − z), `root` the root of the curvature w p (1 − p); Σ w ln (1 + e^(−2zη)) is added to the
    loss of each node. An empty `weight` stands for rows that count once; a row with z = 0, in another state, counts for nothing.
    Loops have no calls and no branches, so that several rows are done at once: hence e^(−|η|) is given, np.divide does not ask
    whether it divides by zero, and max(x, 0) is (x + |x|) / 2.
    """
    n = eta.shape[1]
    alone = len(weight) == 0
    for i in range(len(eta)):
        total = 0.0
        if alone:
            for begin in range(0, n, LOGS):
                product = 1.0  # its log is taken once for many rows
                for r in range(begin, min(begin + LOGS, n)):
                    product *= 1.0 + (root[i, r] if z[i, r] != 0.0 else 0.0)
                    total += abs(z[i, r] * eta[i, r]) - z[i, r] * eta[i, r]
                total += np.log(product)
        else:
            for r in range(n):
                if z[i, r] != 0.0:
                    total += weight[r] * (abs(z[i, r] * eta[i, r]) - z[i, r] * eta[i, r] + np.log1p(root[i, r]))
        loss[i] += total
        for r in range(n):
            w = 0.0 if z[i, r] == 0.0 else 1.0 if alone else weight[r]
            p = np.divide(1.0, 1.0 + root[i, r])  # of the state that is more probable
            root[i, r] = np.sqrt(w * root[i, r]) * p
            eta[i, r] = w * ((p - 0.5 if eta[i, r] >= 0.0 else 0.5 - p) - z[i, r])


@kernel(nb.float64(_matrix, _matrix, nb.int64[::1], _vector, _cube))
def many_states(eta, code, state, weight, curvature):
    """The regression of one node of several states s, with scores u_s = Σ_c code[s, c] η_c: [c, row]. η becomes the residual w
    Σ_s code[s] (p_s − 1{s}), `curvature` [c, c', row] is w codeᵀ (diag p − p pᵀ) code; the sum of −w ln p of the states that the
    rows have is returned. An empty `weight` stands for rows that count once; a row in a state below 0 counts for nothing."""
    n_states, n_codes = code.shape
    p = np.empty(n_states)
    mean = np.empty(n_codes)
    total = 0.0
    for r in range(eta.shape[1]):
        w = 1.0 if len(weight) == 0 else weight[r]
        if state[r] < 0:
            eta[:, r], curvature[:, :, r] = 0.0, 0.0
            continue
        top = -np.inf
        for s in range(n_states):
            p[s] = 0.0
            for c in range(n_codes):
                p[s] += code[s, c] * eta[c, r]
            top = max(top, p[s])
        there = p[state[r]] - top
        norm = 0.0
        for s in range(n_states):
            p[s] = np.exp(p[s] - top)
            norm += p[s]
        total += w * (np.log(norm) - there)
        for c in range(n_codes):
            mean[c] = 0.0
            for s in range(n_states):
                mean[c] += code[s, c] * p[s] / norm
        for c in range(n_codes):
            for d in range(c + 1):
                both = 0.0
                for s in range(n_states):
                    both += code[s, c] * code[s, d] * p[s] / norm
                curvature[c, d, r] = w * (both - mean[c] * mean[d])
                curvature[d, c, r] = curvature[c, d, r]
            eta[c, r] = w * (mean[c] - code[state[r], c])
    return total


@kernel(nb.int64(_matrix, _matrix, _matrix, nb.float64, nb.int64))
def node_lassos(R, penalty, B, tolerance, most):
    """For each variable i, from where its row of B is, the coefficients b = B[i], b_i = 0, that minimise

        ½ bᵀ R b − R_iᵀ b + Σ_j penalty_ij |b_j|,

    by coordinate descent: over all variables, then over those that are in until they settle, and again, until nothing moves by
    more than `tolerance` (R has unit diagonal). Gives the number of variables that `most` sweeps were not enough for.
    """
    n = len(R)
    left = np.empty(n)
    inside = np.zeros(n, np.bool_)
    unsettled = 0
    for i in range(n):
        for j in range(n):
            left[j] = R[i, j]
        for k in range(n):
            if B[i, k] != 0.0:
                for j in range(n):
                    left[j] -= B[i, k] * R[k, j]
        everything = True
        settled = False
        for _ in range(most):
            largest = 0.0
            for j in range(n):
                if j == i or not (everything or inside[j]):
                    continue
                old = B[i, j]
                new = left[j] + old
                if new > penalty[i, j]:
                    new -= penalty[i, j]
                elif new < -penalty[i, j]:
                    new += penalty[i, j]
                else:
                    new = 0.0
                inside[j] = new != 0.0
                step = new - old
                if step != 0.0:
                    B[i, j] = new
                    for k in range(n):
                        left[k] -= step * R[j, k]
                    largest = max(largest, abs(step))
            if largest <= tolerance:
                if everything:
                    settled = True
                    break
                everything = True
            else:
                everything = False
        if not settled:
            unsettled += 1
    return unsettled


@kernel(
    nb.types.UniTuple(nb.float64, 2)(
        _matrix, _matrix, _matrix, _matrix, nb.int64[::1], nb.int64[::1], _matrix, _matrix, nb.float64[::1]
    ),
    reorder=True,
)
def direction_sweep(S, W, theta, penalty, first, rows, D, U, column):
    """Move each listed entry D_ij = D_ji once to where it minimises, the others held,

        tr((S − W) D) + ½ tr(W D W D) + Σ penalty_ij |theta_ij + D_ij|,

    and keep U = D W. The entries of column j are (rows[k], j), rows[k] ≤ j, k = first[j] … first[j + 1] − 1. Gives Σ |moved| and
    Σ |D|, over these entries. (Hsieh, Sustik, Dhillon & Ravikumar 2014, JMLR 15, p. 2920.)

    A column of U is copied once, so that each entry costs one product of contiguous vectors, and two more if it moves.
    """
    n = len(W)
    moved, size = 0.0, 0.0
    for j in range(n):
        if first[j] == first[j + 1]:
            continue
        for k in range(n):
            column[k] = U[k, j]
        for at in range(first[j], first[j + 1]):
            i = rows[at]
            inner = 0.0
            for k in range(n):
                inner += W[i, k] * column[k]
            curve = W[i, j] * W[i, j]
            if i != j:
                curve += W[i, i] * W[j, j]
            c = theta[i, j] + D[i, j]
            new = c - (S[i, j] - W[i, j] + inner) / curve
            shrink = penalty[i, j] / curve
            if new > shrink:
                new -= shrink
            elif new < -shrink:
                new += shrink
            else:
                new = 0.0
            step = new - c
            if step != 0.0:
                D[i, j] += step
                column[i] += step * W[j, j]
                for k in range(n):
                    U[i, k] += step * W[j, k]
                if i != j:
                    D[j, i] = D[i, j]
                    column[j] += step * W[i, j]
                    for k in range(n):
                        U[j, k] += step * W[i, k]
                moved += abs(step)
            size += abs(D[i, j])
    return moved, size


@kernel(nb.float64(nb.int64[:, ::1], nb.int64[::1], _vector, _vector, _vector, _vector, _vector))
def ipf_cycle(program, place, tables, target, logs, separators, work):
    """Go through the program once; the largest difference between a table's margin and what it should be. `logs` gets ln of what
    each cell of a margin was multiplied by, added up; `work` has room for one margin."""
    worst = 0.0
    for o in range(len(program)):
        first, cells, at, margin, n = program[o, 1], program[o, 2], program[o, 3], program[o, 4], program[o, 5]
        for j in range(n):
            work[j] = 0.0
        for i in range(cells):
            work[place[at + i]] += tables[first + i]
        if program[o, 0] == 0:
            for j in range(n):
                worst = max(worst, abs(work[j] - target[margin + j]))
                work[j] = target[margin + j] / work[j] if work[j] > 0.0 else 0.0
                logs[margin + j] += np.log(work[j]) if work[j] > 0.0 else -np.inf
        else:
            for j in range(n):
                now = work[j]
                work[j] = now / separators[margin + j] if separators[margin + j] > 0.0 else 0.0
                separators[margin + j] = now
            first, cells, at = program[o, 6], program[o, 7], program[o, 8]
        for i in range(cells):
            tables[first + i] *= work[place[at + i]]
    return worst
