"""Tests of independence of finite and real variables together, from moments within configurations of the finite ones.

Groups g of rows, one for each configuration that occurs, have a weight count[g], a mean[g] and a centred scatter[g] of all
numbers. Groups first[s] : first[s + 1] agree in all finite variables that are given: they are stratum s. Of a pair, x[g] and y[g]
are the states of those that are finite. members[t] are the numbers of test t by place: those that are given, then the pair's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from suffice.numerics.kernels import kernel, nb
from suffice.numerics.kernels.search.independence import COLLINEAR, log_chi_square_tail

_groups = nb.types.Tuple(
    (nb.float64[::1], nb.float64[:, ::1], nb.float64[:, :, ::1], nb.int64[::1], nb.int64[::1], nb.int64[::1])
)
_floats = nb.float64[::1]


def _steps(groups: Any, members: Any) -> float:
    """Entries of the matrices of all groups that are added up and swept."""
    return 30.0 * len(members) * len(groups[0]) * float(members.shape[1] + 2) ** 2


@kernel(nb.float64(nb.float64))
def digamma(a):
    """ψ(a) for a > 0: its asymptotic series past 10, to which the argument is shifted."""
    value, x = 0.0, a
    while x < 10.0:
        value -= 1.0 / x
        x += 1.0
    s = 1.0 / (x * x)
    series = s * (1.0 / 12.0 - s * (1.0 / 120.0 - s * (1.0 / 252.0 - s * (1.0 / 240.0 - s / 132.0))))
    return value + math.log(x) - 0.5 / x - series


@kernel(nb.float64(nb.float64))
def trigamma(a):
    """ψ'(a) for a > 0, likewise."""
    value, x = 0.0, a
    while x < 10.0:
        value += 1.0 / (x * x)
        x += 1.0
    s = 1.0 / (x * x)
    return (
        value + 1.0 / x + 0.5 * s + s / x * (1.0 / 6.0 - s * (1.0 / 30.0 - s * (1.0 / 42.0 - s * (1.0 / 30.0 - s * 5.0 / 66.0))))
    )


# the first column is given as np.int64(0): a plain 0 is a type of its own to numba, for which all is compiled once more
@kernel(nb.int64(nb.float64[:, ::1], nb.int64, nb.int64, nb.int64, _floats))
def sweep(A, start, stop, m, own):
    """Take what columns start : stop explain out of all later ones of the first m; gives how many were no combinations of others.
    own[j] is the scatter of column j before anything was taken out."""
    rank = 0
    for j in range(start, stop):
        pivot = A[j, j]
        if pivot <= COLLINEAR * own[j] or pivot <= 0.0:
            continue
        rank += 1
        for a in range(j + 1, m):
            share = A[a, j] / pivot
            for b in range(j + 1, m):
                A[a, b] -= share * A[j, b]
    return rank


@kernel(nb.float64(_groups, nb.int64, nb.int64, nb.int32[::1], nb.int64, nb.boolean[::1], nb.float64[:, ::1], _floats, _floats))
def pool(groups, low, high, members, m, taken, A, own, centre):
    """The scatter of the first m of `members` in those groups low : high that are `taken`, about their mean; their weight."""
    count, mean, scatter = groups[0], groups[1], groups[2]
    total = 0.0
    for a in range(m):
        centre[a] = 0.0
        for b in range(m):
            A[a, b] = 0.0
    for g in range(low, high):
        if taken[g - low]:
            total += count[g]
            for a in range(m):
                centre[a] += count[g] * mean[g, members[a]]
    for a in range(m):
        centre[a] /= max(total, 1e-300)
    for g in range(low, high):
        if taken[g - low]:
            for a in range(m):
                off = count[g] * (mean[g, members[a]] - centre[a])
                for b in range(m):
                    A[a, b] += scatter[g, members[a], members[b]] + off * (mean[g, members[b]] - centre[b])
    for a in range(m):
        own[a] = A[a, a]
    return total


@kernel(nb.void(_groups, nb.int32[:, ::1], nb.boolean, nb.float64[:, ::1]), work=_steps)
def ratio_tests(groups, members, both, answers):
    """The likelihood ratio of a number given others, with and without the other of the pair: a number (`both`), or states x.

    Within a stratum, all residual scatters are those of one regression if the pair is independent: with S that of all rows, and
    S_x that of state x by itself, the shares S_x/S have a Dirichlet distribution with half their degrees of freedom, n_x, and

        LR   = N ln(S/N) − Σ N_x ln(S_x/N_x)
        E LR = Σ N_x (ψ(n/2) − ψ(n_x/2)) + Σ N_x ln N_x − N ln N,     Var LR = Σ N_x² ψ'(n_x/2) − N² ψ'(n/2)

    (N_x = N, and one degree less, if the other is a number). Both add over strata. The gamma distribution that has this mean and
    variance gives the p-value: a chi-square of 2 E²/Var degrees, of the statistic 2 E/Var · LR. A state with too few rows for a
    regression of its own says nothing. answers[t] are the statistic, the degrees and ln p.
    """
    count, first = groups[0], groups[3]
    m = members.shape[1]
    A, own, centre = np.empty((m, m)), np.empty(m), np.empty(m)
    widest = 1
    for s in range(len(first) - 1):
        widest = max(widest, first[s + 1] - first[s])
    taken, alone, free = np.zeros(widest, np.bool_), np.empty(widest), np.empty(widest)
    for t in range(len(members)):
        ratio, mean, variance = 0.0, 0.0, 0.0
        given = m - 2 if both else m - 1
        for s in range(len(first) - 1):
            low, high = first[s], first[s + 1]
            n_states = 0
            if both:
                taken[: high - low] = True
            else:
                for g in range(low, high):
                    taken[: high - low] = False
                    taken[g - low] = True
                    pool(groups, low, high, members[t], m, taken, A, own, centre)
                    free[g - low] = count[g] - 1.0 - sweep(A, np.int64(0), given, m, own)
                    alone[g - low] = A[m - 1, m - 1]
                for g in range(low, high):
                    taken[g - low] = free[g - low] >= 1.0
                    n_states += taken[g - low]
                if n_states < 2:
                    continue
            N = pool(groups, low, high, members[t], m, taken, A, own, centre)
            n = N - 1.0 - sweep(A, np.int64(0), given, m, own)
            S = A[m - 1, m - 1]
            if n < 2.0 or COLLINEAR * own[m - 1] >= S or S <= 0.0:  # the given determine it
                continue
            if both:
                explained = sweep(A, given, given + 1, m, own)
                if explained == 0:
                    continue
                share = A[m - 1, m - 1] / S
                ratio -= N * math.log(share) if share > COLLINEAR else -np.inf
                mean += N * (digamma(0.5 * n) - digamma(0.5 * (n - 1.0)))
                variance += N * N * (trigamma(0.5 * (n - 1.0)) - trigamma(0.5 * n))
                continue
            variance -= N * N * trigamma(0.5 * n)
            mean += N * (digamma(0.5 * n) - math.log(N))
            ratio += N * math.log(S / N)
            for g in range(low, high):
                if taken[g - low]:
                    N_x, n_x = count[g], 0.5 * free[g - low]
                    share = alone[g - low] / S
                    ratio -= N_x * math.log(alone[g - low] / N_x) if share > COLLINEAR else -np.inf
                    mean += N_x * (math.log(N_x) - digamma(n_x))
                    variance += N_x * N_x * trigamma(n_x)
        known = mean > 0.0 and variance > 0.0
        answers[t, 0] = 2.0 * mean / variance * max(ratio, 0.0) if known else 0.0
        answers[t, 1] = 2.0 * mean * mean / variance if known else 0.0
        answers[t, 2] = log_chi_square_tail(answers[t, 0], answers[t, 1])


@kernel(nb.void(_groups, nb.int32[:, ::1], nb.int64, nb.int64, nb.float64[:, ::1]), work=_steps)
def state_tests(groups, members, r, c, answers):
    """Whether states x of r and y of c are independent given numbers: the score test of their indicators' partial correlations.

    Within a stratum of N rows, k numbers swept out of the indicators X and Y of all states but one, p and q columns, the
    trace of (X'X)⁻¹X'Y(Y'Y)⁻¹Y'X is Pillai's V. Of directions that have nothing to do with each other, n = N − 1 − k dimensions,

        E nV = p q,     Var nV = 2 p q (n − p)(n − q) / ((n − 1)(n + 2)),

    less than a chi-square has. Both add over strata, and a chi-square with this mean and variance gives the p-value, as above.
    """
    count, mean, first, x, y = groups[0], groups[1], groups[3], groups[4], groups[5]
    k = members.shape[1]
    m = k + r + c - 2
    A, own, centre = np.empty((m, m)), np.empty(m), np.empty(max(k, 1))
    part, factor = np.empty((c, c)), np.empty((c, c))
    widest = 1
    for s in range(len(first) - 1):
        widest = max(widest, first[s + 1] - first[s])
    taken = np.ones(widest, np.bool_)
    for t in range(len(members)):
        statistic, df, variance = 0.0, 0.0, 0.0
        for s in range(len(first) - 1):
            low, high = first[s], first[s + 1]
            for a in range(m):
                for b in range(m):
                    A[a, b] = 0.0
            # Moments of the stratum: of the numbers, ...
            N = pool(groups, low, high, members[t], k, taken, A, own, centre)
            for g in range(low, high):  # indicators of all states but the first: their sums of products, and with the numbers
                i, j, w = k + x[g] - 1, k + r - 1 + y[g] - 1, count[g]
                if x[g] > 0:
                    A[i, i] += w
                    for a in range(k):
                        A[i, a] += w * (mean[g, members[t, a]] - centre[a])
                if y[g] > 0:
                    A[j, j] += w
                    for a in range(k):
                        A[j, a] += w * (mean[g, members[t, a]] - centre[a])
                if x[g] > 0 and y[g] > 0:
                    A[j, i] += w
            for a in range(k, m):  # … less their means
                own[a] = A[a, a]
            for a in range(k, m):
                for b in range(k, a + 1):
                    A[a, b] -= own[a] * own[b] / N
            for a in range(m):
                for b in range(a):
                    A[b, a] = A[a, b]
                own[a] = A[a, a]
            # The numbers are swept out of the indicators; then those of x out of those of y.
            left = N - 1.0 - sweep(A, np.int64(0), k, m, own)
            if left < 2.0:
                continue
            start = k + r - 1
            for a in range(c - 1):
                for b in range(c - 1):
                    part[a, b] = A[start + a, start + b]
            columns = sweep(A, k, start, m, own)
            rows = 0  # tr(P⁻¹ (P − R)), R what X leaves of P: with P = LL', that of L⁻¹(P − R)L'⁻¹
            for a in range(c - 1):
                for b in range(a):
                    value = part[a, b]
                    for q in range(b):
                        value -= factor[a, q] * factor[b, q]
                    factor[a, b] = value / factor[b, b] if factor[b, b] > 0.0 else 0.0
                pivot = part[a, a]
                for q in range(a):
                    pivot -= factor[a, q] * factor[a, q]
                there = pivot > COLLINEAR * own[start + a] and pivot > 0.0
                factor[a, a] = math.sqrt(pivot) if there else 0.0
                rows += there
            for a in range(c - 1):
                for b in range(c - 1):
                    part[a, b] -= A[start + a, start + b]
            # L⁻¹(P − R)L'⁻¹: from the left, and from the right.
            for side in range(2):
                for b in range(c - 1):
                    for a in range(c - 1):
                        value = part[a, b] if side == 0 else part[b, a]
                        for q in range(a):
                            value -= factor[a, q] * (part[q, b] if side == 0 else part[b, q])
                        value = value / factor[a, a] if factor[a, a] > 0.0 else 0.0
                        if side == 0:
                            part[a, b] = value
                        else:
                            part[b, a] = value
            if columns >= left or rows >= left:  # as many states as rows: nothing is left to chance
                continue
            for a in range(c - 1):
                statistic += left * part[a, a]
            df += columns * rows
            variance += 2.0 * columns * rows * (left - columns) * (left - rows) / ((left - 1.0) * (left + 2.0))
        scale = 2.0 * df / variance if variance > 0.0 else 1.0
        answers[t, 0], answers[t, 1] = scale * max(statistic, 0.0), scale * df
        answers[t, 2] = log_chi_square_tail(answers[t, 0], answers[t, 1])
