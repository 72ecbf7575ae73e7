"""Linear chains of labels: from weights to the scores of steps, and from what is expected of steps back to weights.

Step p has the groups groups[o, p], one for each offset o. Group g has the attributes items[starts[g]] … items[starts[g + 1] − 1],
attribute a the weights first[a] … first[a + 1] − 1, each of one label.

And labels of one sequence after the other, for weights that change on the way. A sequence has the steps at `places`.

And planes: of a labelling, what the right labels of a sequence have of each weight and it has not, and what it costs. The entries
of plane p are the weights items[starts[p]] … items[starts[p + 1] − 1] and by how much, in `values`; a weight may be there twice.
Sequence q has the planes slots[q, i], −1 where there is none, each with a share of its mixture; the rest is that of the right
labels. gram[q, i, j] are the products of two planes.
"""

import numpy as np

from suffice.numerics.kernels import kernel, nb

FAINT = 1e-200
"""Products whose largest entry is below this are taken again in logarithms."""

_ints, _codes, _floats, _rows = nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.float64[:, ::1]
_groups, _index = nb.int32[:, ::1], nb.int64[:, ::1]


@kernel(nb.void(_ints, _codes, _ints, _codes, _floats, _rows))
def score_groups(starts, items, first, labels, w, scores):
    """scores[g, j] = Σ of the weights of the attributes of group g for label j."""
    for g in range(scores.shape[0]):
        for j in range(scores.shape[1]):
            scores[g, j] = 0.0
        for i in range(starts[g], starts[g + 1]):
            for k in range(first[items[i]], first[items[i] + 1]):
                scores[g, labels[k]] += w[k]


@kernel(nb.void(_ints, _codes, _ints, _codes, _rows, _floats))
def spread_groups(starts, items, first, labels, expected, out):
    """out[k] += Σ of expected[g, label of k] over the groups that have its attribute."""
    for g in range(expected.shape[0]):
        for i in range(starts[g], starts[g + 1]):
            for k in range(first[items[i]], first[items[i] + 1]):
                out[k] += expected[g, labels[k]]


@kernel(nb.void(nb.int32[:, ::1], nb.int64, _rows, _rows, _floats, _rows, _codes, _rows, _floats), apart=True)
def weigh_steps(groups, begin, scores, powers, tops, more, clamp, out, top):
    """out[p] = exp(the sum of the scores of the groups of step begin + p − top[p]).

    powers = exp(scores − tops), the largest of each row. `more` has further scores of all steps, or no rows; `clamp`, if it has
    entries, the one label that a step may have, or −1.
    """
    n_offsets, L = groups.shape[0], scores.shape[1]
    for p in range(out.shape[0]):
        at, high, taken = begin + p, 0.0, 0.0
        if more.shape[0] == 0 and (clamp.shape[0] == 0 or clamp[at] < 0):
            for o in range(n_offsets):
                g = groups[o, at]
                taken += tops[g]
                if o == 0:
                    for j in range(L):
                        out[p, j] = powers[g, j]
                else:
                    for j in range(L):
                        out[p, j] *= powers[g, j]
            for j in range(L if n_offsets else 0):
                high = max(high, out[p, j])
        if high < FAINT:
            taken = -np.inf
            for j in range(L):
                s = more[at, j] if more.shape[0] else 0.0
                for o in range(n_offsets):
                    s += scores[groups[o, at], j]
                if clamp.shape[0] and clamp[at] >= 0 and clamp[at] != j:
                    s = -np.inf
                out[p, j] = s
                taken = max(taken, s)
            for j in range(L):
                out[p, j] = np.exp(out[p, j] - taken)
        top[p] = taken


@kernel(nb.void(nb.int32[:, ::1], nb.int64, _rows, _rows), apart=True)
def sum_groups(groups, begin, steps, out):
    """out[g] += steps[p] for every step begin + p that has the group g."""
    for o in range(groups.shape[0]):
        for p in range(steps.shape[0]):
            g = groups[o, begin + p]
            for j in range(out.shape[1]):
                out[g, j] += steps[p, j]


@kernel(nb.void(_rows, _floats, _rows), apart=True)
def shift_rows(x, tops, out):
    """The largest entry of each row, and the row less it."""
    for g in range(x.shape[0]):
        top = x[g, 0]
        for j in range(1, x.shape[1]):
            top = max(top, x[g, j])
        tops[g] = top
        for j in range(x.shape[1]):
            out[g, j] = x[g, j] - top


@kernel(nb.void(_rows, _rows, _floats), reorder=True, apart=True)
def scale_rows(a, b, c):
    """c = the sums of the rows of a · b, which take the place of a, divided by them."""
    for p in range(a.shape[0]):
        total = 0.0
        for j in range(a.shape[1]):
            a[p, j] *= b[p, j]
            total += a[p, j]
        c[p], total = total, 1.0 / total if total > 0.0 else np.nan
        for j in range(a.shape[1]):
            a[p, j] *= total


@kernel(nb.void(_rows, _rows, _floats), apart=True)
def weigh_rows(b, z, c):
    """b · z / c takes the place of b."""
    for p in range(b.shape[0]):
        scale = 1.0 / c[p]
        for j in range(b.shape[1]):
            b[p, j] *= z[p, j] * scale


@kernel(nb.void(_ints, _groups, _ints, _codes, _ints, _codes, _rows, _ints, _floats, _rows, _rows, _codes))
def best_sequence(places, groups, starts, items, first, labels, numbers, number_first, w, T, x, path):
    """path[t] = the best label of the step at places[t]; of equals, the first. x has room for the best scores up to each step."""
    n, L = places.shape[0], T.shape[0]
    for t in range(n):
        for j in range(L):
            x[t, j] = 0.0
        for o in range(groups.shape[0]):
            g = groups[o, places[t]]
            for i in range(starts[g], starts[g + 1]):
                for k in range(first[items[i]], first[items[i] + 1]):
                    x[t, labels[k]] += w[k]
        for r in range(number_first.shape[0]):
            for k in range(first[number_first[r]], first[number_first[r] + 1]):
                x[t, labels[k]] += numbers[places[t], r] * w[k]
        for j in range(L if t else 0):
            high = x[t - 1, 0] + T[0, j]
            for i in range(1, L):
                high = max(high, x[t - 1, i] + T[i, j])
            x[t, j] += high
    for t in range(n - 1, -1, -1):
        high, own = -np.inf, 0
        for j in range(L):
            value = x[t, j] + (T[j, path[t + 1]] if t < n - 1 else 0.0)
            if value > high:
                high, own = value, j
        path[t] = own


@kernel(nb.void(_ints, _groups, _ints, _codes, _ints, _codes, _rows, _ints, _index, _rows, _rows, nb.float64, _floats))
def add_labels(places, groups, starts, items, first, labels, numbers, number_first, pair, steps, pairs, share, w):
    """Add to the weight of each pair `share` times what a sequence has of it: steps[t, j] of label j at step t, pairs[i, j]."""
    for t in range(places.shape[0]):
        for o in range(groups.shape[0]):
            g = groups[o, places[t]]
            for i in range(starts[g], starts[g + 1]):
                for k in range(first[items[i]], first[items[i] + 1]):
                    w[k] += share * steps[t, labels[k]]
        for r in range(number_first.shape[0]):
            for k in range(first[number_first[r]], first[number_first[r] + 1]):
                w[k] += share * steps[t, labels[k]] * numbers[places[t], r]
    for i in range(pairs.shape[0]):
        for j in range(pairs.shape[1]):
            if pair[i, j] >= 0:
                w[pair[i, j]] += share * pairs[i, j]


_block, _cube = (_groups, _ints, _codes, _ints, _codes, _rows, _ints), nb.float64[:, :, ::1]


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
