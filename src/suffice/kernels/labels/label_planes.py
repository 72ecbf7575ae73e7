"""Planes: of a labelling, what the right labels of a sequence have of each weight and it has not, and what it costs.

The entries of plane p are the weights items[starts[p]] … items[starts[p + 1] − 1] and by how much, in `values`; a weight may be
there twice. Sequence q has the planes slots[q, i], −1 where there is none, each with a share of its mixture; the rest is that of
the right labels. gram[q, i, j] are the products of two planes. See `kernels.labels.crf` for groups, attributes and weights.
"""

import numpy as np

from suffice.kernels import kernel, nb

_ints, _codes, _floats, _rows = nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.float64[:, ::1]
_index, _cube = nb.int64[:, ::1], nb.float64[:, :, ::1]
_block = (nb.int32[:, ::1], _ints, _codes, _ints, _codes, _rows, _ints)


@kernel(nb.int64(_ints, _codes, nb.int64, nb.int64, nb.float64, _codes, _floats, nb.int64))
def put(first, labels, attribute, label, value, items, values, n):
    """Put the weight of an attribute and a label at entry n, if there is one; the number of entries then."""
    for k in range(first[attribute], first[attribute + 1]):
        if labels[k] == label:
            items[n], values[n] = k, value
            return n + 1
    return n


@kernel(nb.void(_ints, _ints, *_block, _index, _codes, _codes, _ints, _codes, _floats))
def write_planes(
    bounds, places, groups, starts, attributes, first, labels, numbers, number_first,
    pair, truth, found, ends, items, values
):  # fmt: skip
    """The planes of the labels `found` of some sequences: sequence q has the places[bounds[q]] … places[bounds[q + 1] − 1], and
    its entries end at ends[q + 1]."""
    n = ends[0]
    for q in range(bounds.shape[0] - 1):
        for t in range(bounds[q], bounds[q + 1]):
            p = places[t]
            right, other = truth[p], found[p]
            for o in range(groups.shape[0] if right != other else 0):
                g = groups[o, p]
                for i in range(starts[g], starts[g + 1]):
                    n = put(first, labels, np.int64(attributes[i]), np.int64(right), 1.0, items, values, n)
                    n = put(first, labels, np.int64(attributes[i]), np.int64(other), -1.0, items, values, n)
            for r in range(number_first.shape[0] if right != other else 0):
                n = put(first, labels, number_first[r], np.int64(right), numbers[p, r], items, values, n)
                n = put(first, labels, number_first[r], np.int64(other), -numbers[p, r], items, values, n)
            if t > bounds[q]:
                before, instead = truth[places[t - 1]], found[places[t - 1]]
                if (before != instead or right != other) and pair[before, right] >= 0:
                    items[n], values[n] = pair[before, right], 1.0
                    n += 1
                if (before != instead or right != other) and pair[instead, other] >= 0:
                    items[n], values[n] = pair[instead, other], -1.0
                    n += 1
        ends[q + 1] = n


@kernel(nb.float64(_ints, _codes, _floats, nb.int64, _floats))
def product(starts, items, values, plane, w):
    """The product of a plane and weights."""
    total = 0.0
    for i in range(starts[plane], starts[plane + 1]):
        total += values[i] * w[items[i]]
    return total


@kernel(nb.void(_ints, _codes, _floats, nb.int64, nb.float64, _floats))
def add_plane(starts, items, values, plane, share, w):
    """Add so many times a plane to weights."""
    for i in range(starts[plane], starts[plane + 1]):
        w[items[i]] += share * values[i]


@kernel(nb.void(_ints, _ints, _ints, _codes, _floats, _index, _cube, _floats))
def fill_gram(which, at, starts, items, values, slots, gram, room):
    """The products of the plane in slot at[i] of sequence which[i] with all of its planes. `room` has a 0 for each weight."""
    for i in range(which.shape[0]):
        q, new = which[i], at[i]
        add_plane(starts, items, values, slots[q, new], 1.0, room)
        for j in range(slots.shape[1]):
            if slots[q, j] >= 0:
                gram[q, new, j] = product(starts, items, values, slots[q, j], room)
                gram[q, j, new] = gram[q, new, j]
        for e in range(starts[slots[q, new]], starts[slots[q, new] + 1]):
            room[items[e]] = 0.0


@kernel(nb.float64(_ints, nb.int64, nb.float64, _floats, _ints, _codes, _floats, _index, _rows, _rows, _cube, _floats))
def climb(
    order, most, c2, weights, starts, items, values, slots, costs, shares,
    gram, w
):  # fmt: skip
    """For one sequence after the other, move shares from the plane that says least of w to the one that says most, up to `most`
    times; w = Σ shares · planes · weight / (2 c2) follows. How much was still to be gained at each, in all, is returned."""
    P = slots.shape[1]
    slope, moved, left = np.empty(P + 1), np.empty(P), 0.0
    for q in order:
        size, rest = weights[q] / (2.0 * c2), 1.0
        mean, slope[P] = 0.0, 0.0
        for i in range(P):
            moved[i], slope[i] = 0.0, -np.inf
            if slots[q, i] >= 0:
                slope[i] = weights[q] * (costs[q, i] - product(starts, items, values, slots[q, i], w))
                mean += shares[q, i] * slope[i]
                rest -= shares[q, i]
        for step in range(most):
            high, low = P, P if rest > 0.0 else -1
            for i in range(P):
                if slots[q, i] >= 0:
                    high = i if slope[i] > slope[high] else high
                    low = i if shares[q, i] > 0.0 and (low < 0 or slope[i] < slope[low]) else low
            left += slope[high] - mean if step == 0 else 0.0
            if high == low or not slope[high] > slope[low]:
                break
            square = 0.0
            if high < P:
                square += gram[q, high, high]
            if low < P:
                square += gram[q, low, low]
            if high < P and low < P:
                square -= 2.0 * gram[q, high, low]
            curve = weights[q] * size * square
            there = rest if low == P else shares[q, low]
            step_size = min(there, (slope[high] - slope[low]) / curve) if curve > 0.0 else there
            all_of_it = step_size >= there
            for i in range(P):
                if slots[q, i] >= 0:
                    up = gram[q, high, i] if high < P else 0.0
                    down = gram[q, low, i] if low < P else 0.0
                    slope[i] -= weights[q] * size * step_size * (up - down)
            if high < P:
                shares[q, high] += step_size
                moved[high] += step_size
            else:
                rest += step_size
            if low < P:
                moved[low] -= step_size
                shares[q, low] = 0.0 if all_of_it else shares[q, low] - step_size
            else:
                rest = 0.0 if all_of_it else rest - step_size
        for i in range(P):
            if moved[i] != 0.0:
                add_plane(starts, items, values, slots[q, i], size * moved[i], w)
    return left
