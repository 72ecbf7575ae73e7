"""Kalman filter and smoother of sequences one after the other, output by output.

    z[t] = F z[t-1] + f + w,  w ~ Normal(0, Q)          F, Q, f by the code of the step
    y[t, j] = h z[t] + e,     e ~ Normal(0, R)          h, R by the output code of the step; NaN is missing

Outputs are taken in one by one, so that nothing is inverted: Q may be singular and R zero. On the way back the smoother keeps
what later outputs say of a step, r and N:

    E[z | y] = a + P r,    Cov[z | y] = P - P N P

with a, P those of the filter after the step's outputs (Durbin and Koopman 2012, Time Series Analysis by State Space Methods,
2nd ed., §4.4, §6.4). Means are kept in columns: the first is that of the data; another has outputs 0 and nothing but a vector
that comes in with a code, and so tells how everything depends on a multiple of this vector (de Jong 1991, Annals of Statistics
19, p. 1073).
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb

_codes, _floats = nb.int32[::1], nb.float64[::1]
_ints, _rows, _matrices = nb.int64[:, ::1], nb.float64[:, ::1], nb.float64[:, :, ::1]
_model = nb.types.Tuple((_codes, _matrices, _matrices, _rows, _rows, _matrices, _codes, _matrices, _rows, _rows))
_states = nb.types.UniTuple(_matrices, 4)
_room = nb.types.Tuple((_matrices, _matrices, _matrices, _matrices, _matrices, _rows))
_wanted = nb.types.Tuple((_matrices, _matrices, _matrices, _matrices, _codes, _floats))

ROUNDING = 1e-15
"""What an update may leave of a variance that should be zero, as a share of what it was."""


@kernel(nb.void(_rows, _rows))
def put(X, out):
    """out[:] = X, which numba's own assignment takes seconds to compile."""
    for i in range(X.shape[0]):
        for j in range(X.shape[1]):
            out[i, j] = X[i, j]


@kernel(nb.void(_rows, nb.float64, _rows, _rows, _rows))
def combine(S, sign, A, X, out):
    """out = S + sign A X."""
    m = A.shape[0]
    for i in range(m):
        for j in range(m):
            total = 0.0
            for k in range(m):
                total += A[i, k] * X[k, j]
            out[i, j] = S[i, j] + sign * total


@kernel(nb.void(_rows, nb.float64, _rows, _rows, _rows, _rows))
def carry(S, sign, A, X, AX, out):
    """out = S + sign A X Aᵀ, symmetric, and AX = A X; `out` may be X."""
    m = A.shape[0]
    for i in range(m):
        for j in range(m):
            total = 0.0
            for k in range(m):
                total += A[i, k] * X[k, j]
            AX[i, j] = total
    for i in range(m):
        for j in range(i + 1):
            total = 0.0
            for k in range(m):
                total += AX[i, k] * A[j, k]
            out[i, j] = S[i, j] + sign * total
            out[j, i] = out[i, j]


@kernel(nb.void(_rows, _rows, _rows, nb.int64, nb.float64, _rows))
def join(P, K, H, j, R, room):
    """P ← (I - K h) P (I - K h)ᵀ + R K Kᵀ of output j: Joseph's form, which rounding does not make indefinite."""
    m = P.shape[0]
    for i in range(m):
        total = 0.0
        for k in range(m):
            total += H[j, k] * P[k, i]
        for k in range(m):
            room[k, i] = P[k, i] - K[j, k] * total
    for i in range(m):
        total = -R * K[j, i]
        for k in range(m):
            total += room[i, k] * H[j, k]
        for k in range(i + 1):
            P[i, k] = room[i, k] - total * K[j, k]
            P[k, i] = P[i, k]


@kernel(nb.void(_model, _ints, _states, _rows, _matrices, _room))
def forward(model, pieces, states, logs, work, room):
    """Filter pieces of sequences, from the state before each of them, which moves on.

    `pieces`: the bounds of each, and those of its sequence. `states`: a by columns, P, what rounding may be in P, and the sums
    of v vᵀ / variance of innovations v by columns. Each Q is followed by a matrix of zeros, the noise of rounding errors, which
    are followed like P if some R is 0. `logs`: the sum of the logarithms of variances, a product whose logarithm is still to be
    added, how many variances, the first step that is impossible (an output without variance is not what it must be), or -1.
    `work` is room for matrices. `room` keeps what `backward` needs, step by step: a and P after its outputs, P before them,
    gains, innovations, variances (0: missing, or known before).
    """
    codes, F, Q, f, f_steps, entries, output_codes, H, R, y = model
    means, covariances, predicted, gains, innovations, variances = room
    m, p, columns = F.shape[1], y.shape[1], means.shape[1]
    square, row, layers, n = work[0], work[1], 1, 0
    for o in range(R.shape[0]):
        for j in range(p):
            layers = 2 if R[o, j] == 0.0 else layers
    for s in range(pieces.shape[0]):
        a, P, E, sums = states[0][s], states[1][s], states[2][s], states[3][s]
        for t in range(pieces[s, 0], pieces[s, 1]):
            c, o = codes[t], output_codes[t]
            for q in range(columns):
                for i in range(m):
                    row[0, i] = entries[c, q - 1, i] if q > 0 else f[c, i]
                    if q == 0 and f_steps.shape[0] > 0:
                        row[0, i] += f_steps[t, i]
                    for k in range(m):
                        row[0, i] += F[c, i, k] * a[q, k]
                for i in range(m):
                    a[q, i] = row[0, i]
            for layer in range(layers):
                carry(Q[2 * c + layer], 1.0, F[c], states[1 + layer][s], square, states[1 + layer][s])
            put(P, predicted[n])
            for i in range(m):
                E[i, i] += ROUNDING * P[i, i]
            for j in range(p):
                variances[n, j] = 0.0
                if np.isnan(y[t, j]):
                    continue
                variance, size, doubt = R[o, j], abs(y[t, j]), 0.0
                for i in range(m):
                    size += abs(H[o, j, i] * a[0, i])
                    total = 0.0
                    for k in range(m):
                        total += P[i, k] * H[o, j, k]
                        doubt += H[o, j, i] * E[i, k] * H[o, j, k]
                    gains[n, j, i] = total
                    variance += H[o, j, i] * total
                for q in range(columns):
                    v = y[t, j] if q == 0 else 0.0
                    for i in range(m):
                        v -= H[o, j, i] * a[q, i]
                    innovations[n, j, q] = v
                if R[o, j] == 0.0 and variance <= doubt:
                    if abs(innovations[n, j, 0]) > 1e-8 * size + 10.0 * np.sqrt(doubt) and logs[s, 3] < 0.0:
                        logs[s, 3] = t
                    continue
                variances[n, j] = variance
                for i in range(m):
                    gains[n, j, i] /= variance
                    for q in range(columns):
                        a[q, i] += gains[n, j, i] * innovations[n, j, q]
                for q in range(columns):
                    for k in range(columns):
                        sums[q, k] += innovations[n, j, q] * innovations[n, j, k] / variance
                for layer in range(layers - 1, -1, -1):
                    join(states[1 + layer][s], gains[n], H[o], j, R[o, j] * (1 - layer), square)
                    for i in range(m):
                        E[i, i] += ROUNDING * P[i, i]
                logs[s, 1] *= variance
                logs[s, 2] += 1.0
                if not 1e-200 < logs[s, 1] < 1e200:
                    logs[s, 0] += np.log(logs[s, 1])
                    logs[s, 1] = 1.0
            put(a, means[n])
            put(P, covariances[n])
            n += 1


@kernel(nb.void(_model, _matrices, _ints, _states, _matrices, _room, _wanted))
def backward(model, transposed, pieces, states, work, room, wanted):
    """Smooth pieces of sequences with what `forward` kept of them.

    `transposed` are the transposes of F; `work` is room, its fourth matrix 0. `states` are carried from the steps after a piece:
    r by columns, N, and P before the outputs and Cov[z | y] of the next step. `wanted` is filled where it has room: means by
    columns, Cov[z[t] | y], Cov[z[t], z[t-1] | y], and the sums over the steps of each group, by the weights of pieces, of the
    joint covariance of z[t] and z[t-1].
    """
    codes, output_codes, H = model[0], model[6], model[7]
    filtered, covariances, predicted, gains, innovations, variances = room
    means, smoothed, lagged, sums, groups, weights = wanted
    m, p, columns, n = H.shape[2], H.shape[1], filtered.shape[1], 0
    NF, V, cross, nothing, row = work[0], work[1], work[2], work[3], work[4]
    for s in range(pieces.shape[0]):
        n += pieces[s, 1] - pieces[s, 0]
    for s in range(pieces.shape[0] - 1, -1, -1):
        r, N, P, later = states[0][s], states[1][s], states[2][s], states[3][s]
        for t in range(pieces[s, 1] - 1, pieces[s, 0] - 1, -1):
            n -= 1
            C, o = covariances[n], output_codes[t]
            inside = t + 1 < pieces[s, 3]
            if inside:
                c = codes[t + 1]
                carry(nothing, 1.0, transposed[c], N, NF, N)
                combine(transposed[c], -1.0, NF, P, V)
                combine(nothing, 1.0, C, V, cross)
                for q in range(columns):
                    for i in range(m):
                        row[0, i] = 0.0
                        for k in range(m):
                            row[0, i] += transposed[c, i, k] * r[q, k]
                    for i in range(m):
                        r[q, i] = row[0, i]
            for q in range(columns):
                for i in range(m):
                    total = filtered[n, q, i]
                    for k in range(m):
                        total += C[i, k] * r[q, k]
                    means[q, t, i] = total
            carry(C, -1.0, C, N, NF, V)
            if inside and lagged.shape[0] > 0:
                for i in range(m):
                    for k in range(m):
                        lagged[t + 1, i, k] = cross[k, i]
            if smoothed.shape[0] > 0:
                put(V, smoothed[t])
            if sums.shape[0] > 0:
                w, first = weights[s], t == pieces[s, 2]
                for i in range(m):
                    for k in range(m):
                        if inside:
                            g = groups[t + 1]
                            sums[g, i, k] += w * later[i, k]
                            sums[g, m + i, m + k] += w * V[i, k]
                            sums[g, m + i, k] += w * cross[i, k]
                            sums[g, k, m + i] += w * cross[i, k]
                        if first:
                            sums[groups[t], i, k] += w * V[i, k]
            put(V, later)
            put(predicted[n], P)
            for j in range(p - 1, -1, -1):
                if variances[n, j] == 0.0:
                    continue
                inner = 1.0 / variances[n, j]
                for i in range(m):
                    row[0, i] = 0.0
                    for k in range(m):
                        row[0, i] += N[i, k] * gains[n, j, k]
                    inner += gains[n, j, i] * row[0, i]
                for i in range(m):
                    for k in range(m):
                        N[i, k] += H[o, j, i] * (H[o, j, k] * inner - row[0, k]) - row[0, i] * H[o, j, k]
                for q in range(columns):
                    shift = innovations[n, j, q] / variances[n, j]
                    for i in range(m):
                        shift -= gains[n, j, i] * r[q, i]
                    for i in range(m):
                        r[q, i] += H[o, j, i] * shift


@kernel(nb.void(_model, nb.int64[::1], _matrices, _rows, _rows, _rows))
def simulate(model, starts, roots, normals, z, y):
    """States and outputs with mean 0 from standard normals; `roots` times their transposes are the Q."""
    codes, F, output_codes, H, R = model[0], model[1], model[6], model[7], model[8]
    m, p = F.shape[1], H.shape[1]
    for s in range(starts.shape[0] - 1):
        for t in range(starts[s], starts[s + 1]):
            c, o = codes[t], output_codes[t]
            for i in range(m):
                z[t, i] = 0.0
                for k in range(m):
                    z[t, i] += roots[c, i, k] * normals[t, k]
                    if t > starts[s]:
                        z[t, i] += F[c, i, k] * z[t - 1, k]
            for j in range(p):
                y[t, j] = np.sqrt(R[o, j]) * normals[t, m + j]
                for k in range(m):
                    y[t, j] += H[o, j, k] * z[t, k]
