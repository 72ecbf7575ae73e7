"""Products of tables summed into a third: the one operation that exact inference consists of.

    z[dims of z] += Σ x[dims of x] · y[dims of y]    over all dims

All tables lie in one buffer, row by row, their dims in one order common to all. A dim has a size and a flag: 1 where x has it,
2 where y has it, 4 where z has it. Neighbouring dims with the same flag are one longer dim, so that loops are few and long.
"""

from suffice.kernels import kernel, nb

_ints, _floats = nb.int64[::1], nb.float64[::1]

MOST_DIMS = 64
"""Dims longer than one state in a product: more would have 2^64 cells."""


@kernel(nb.int64(_ints, _ints, nb.int64, _ints))
def collapse(size, flag, n_dims, loops):
    """The loops, innermost first, as (length, flag, steps of x, y, z, a counter) each; how many there are."""
    n = 0
    for d in range(n_dims - 1, -1, -1):
        if size[d] == 1 or flag[d] == 0:
            continue
        if n > 0 and loops[6 * n - 5] == flag[d]:
            loops[6 * n - 6] *= size[d]
        else:
            loops[6 * n] = size[d]
            loops[6 * n + 1] = flag[d]
            n += 1
    x, y, z = 1, 1, 1
    for g in range(n):
        length, f = loops[6 * g], loops[6 * g + 1]
        loops[6 * g + 2] = x if f & 1 else 0
        loops[6 * g + 3] = y if f & 2 else 0
        loops[6 * g + 4] = z if f & 4 else 0
        loops[6 * g + 5] = 0
        x *= length if f & 1 else 1
        y *= length if f & 2 else 1
        z *= length if f & 4 else 1
    return n


@kernel(nb.void(_floats, _ints, nb.int64, nb.int64, nb.int64, nb.int64))
def contract(buffer, loops, n_loops, x, y, z):
    """Run the loops that `collapse` made; x, y and z are where the tables begin."""
    if n_loops == 0:
        buffer[z] += buffer[x] * buffer[y]
        return
    a, b = 2, 3  # which steps belong to x and to y: exchanged if only y has the innermost loop
    f = loops[1]
    if f & 3 == 2:
        a, b = 3, 2
        x, y = y, x
        f += -1
    n = loops[0]
    n1, x1, y1, z1 = 1, 0, 0, 0
    if n_loops > 1:
        n1, x1, y1, z1 = loops[6], loops[6 + a], loops[6 + b], loops[10]
    while True:
        i, j, k = x, y, z
        for _ in range(n1):
            if f == 7:
                for t in range(n):
                    buffer[k + t] += buffer[i + t] * buffer[j + t]
            elif f == 5:
                c = buffer[j]
                for t in range(n):
                    buffer[k + t] += buffer[i + t] * c
            elif f == 4:
                c = buffer[i] * buffer[j]
                for t in range(n):
                    buffer[k + t] += c
            else:
                s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
                whole = n - n % 4
                if f == 3:
                    for t in range(0, whole, 4):
                        s0 += buffer[i + t] * buffer[j + t]
                        s1 += buffer[i + t + 1] * buffer[j + t + 1]
                        s2 += buffer[i + t + 2] * buffer[j + t + 2]
                        s3 += buffer[i + t + 3] * buffer[j + t + 3]
                    for t in range(whole, n):
                        s0 += buffer[i + t] * buffer[j + t]
                    buffer[k] += (s0 + s1) + (s2 + s3)
                else:
                    for t in range(0, whole, 4):
                        s0 += buffer[i + t]
                        s1 += buffer[i + t + 1]
                        s2 += buffer[i + t + 2]
                        s3 += buffer[i + t + 3]
                    for t in range(whole, n):
                        s0 += buffer[i + t]
                    buffer[k] += ((s0 + s1) + (s2 + s3)) * buffer[j]
            i += x1
            j += y1
            k += z1
        g = 2
        while g < n_loops:
            at = 6 * g
            loops[at + 5] += 1
            x += loops[at + a]
            y += loops[at + b]
            z += loops[at + 4]
            if loops[at + 5] < loops[at]:
                break
            x -= loops[at] * loops[at + a]
            y -= loops[at] * loops[at + b]
            z -= loops[at] * loops[at + 4]
            loops[at + 5] = 0
            g += 1
        if g >= n_loops:
            return
