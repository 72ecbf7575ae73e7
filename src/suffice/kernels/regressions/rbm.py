"""Units of a restricted Boltzmann machine: their probabilities and draws in one pass over the products that BLAS made.

A draw is a function of a key and of the place of its unit (two rounds of Wellons' lowbias32, half of the key in each), so that
it does not depend on who draws it, or when, and the loops over units become vector instructions: so does tanh as a ratio of
polynomials (Eigen's, good to all but the last of the 24 bits of these floats).
"""

import math

import numpy as np

from suffice.kernels import kernel
from suffice.kernels.compiler.signatures import float32, float64, int64, uint32, void

_units, _biases = float32[:, ::1], float32[::1]


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
