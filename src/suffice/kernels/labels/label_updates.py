"""Labels of one sequence after the other, for weights that change on the way. A sequence has the steps at `places`.

See `suffice.kernels.labels.crf` for groups, attributes and weights.
"""

import numpy as np

from suffice.kernels import kernel, nb

_ints, _codes, _floats, _rows = nb.int64[::1], nb.int32[::1], nb.float64[::1], nb.float64[:, ::1]
_groups, _index = nb.int32[:, ::1], nb.int64[:, ::1]


@kernel(nb.void(_ints, _groups, _ints, _codes, _ints, _codes, _rows, _ints, _floats, _rows, _codes, nb.float64, _rows, _codes))
def best_sequence(places, groups, starts, items, first, labels, numbers, number_first, w, T, truth, cost, x, path):
    """path[t] = the best label of the step at places[t], where labels other than truth[places[t]] have `cost` added to the score.

    x has room for the best scores up to each step. Of equals, the first label is taken.
    """
    n, L = places.shape[0], T.shape[0]
    for t in range(n):
        for j in range(L):
            x[t, j] = 0.0 if truth[places[t]] == j else cost
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
