"""Numbers that are normal given a hidden state, in lanes: likelihoods of tiles, and their moments by what is expected of states.

Lanes, groups and tiles are those of `suffice.kernels.lane_tiles`. The numbers of a group are laid out like its states, so that
neither likelihoods nor posteriors have to be written down step by step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.kernels import kernel
from suffice.kernels import signatures as nb
from suffice.kernels.lane_tiles import TILES, _floats, _group, _rows, _tiles, active, add_tops, exponentials, lay
from suffice.kernels.state_normals import _cube, _flags, score_normals, sum_normals

_forms = (_rows, _cube, _flags, _rows, _floats)


@kernel(nb.void(*_group, _rows, *_forms, _tiles, _cube, _cube, _floats, _floats))
def fill_normals(
    g: int,
    n: int,
    begin: Any,
    length: Any,
    x: Any,
    centre: Any,
    weight: Any,
    used: Any,
    base: Any,
    constant: Any,
    numbers: Any,
    flat_numbers: Any,
    b: Any,
    top: Any,
    log_p: Any,
) -> None:
    """numbers[k, c, s, v] = x; b[k, j, s L + v] = p(numbers | j) over its largest at each step, whose logarithms go to log_p.

    For the forms see `score_normals`. `flat_numbers` are the numbers with steps and lanes as one axis, `top` is room for the
    steps of a tile.
    """
    W, size, zero = numbers.shape[2] - 1, len(top), np.int64(0)
    n_tiles = (length[g] + W - 1) // W
    for k in range(0, n_tiles, TILES):
        last = min(n_tiles, k + TILES)
        lay(g, n, begin, length, x, k, last - k, numbers, k, np.bool_(False))
        for i in range(k, last):
            score_normals(flat_numbers[i], size, centre, weight, used, base, constant, zero, np.bool_(True), b[i])
            exponentials(b[i], base.shape[0], top)
            add_tops(g, n, begin, length, i, W, top, log_p)


@kernel(nb.void(*_group, _cube, _cube, nb.int64, _flags, _floats, _rows, _cube))
def sum_lanes(
    g: int,
    n: int,
    begin: Any,
    length: Any,
    numbers: Any,
    gamma: Any,
    W: int,
    used: Any,
    total: Any,
    mean: Any,
    scatter: Any,
) -> None:
    """Add the moments of the numbers, weighted by gamma[k, j, s L + v]: see `sum_normals`. What lies beyond a lane's end becomes
    0 in gamma."""
    L, none = gamma.shape[2] // (W + 1), np.zeros(0)
    for k in range((length[g] + W - 1) // W):
        for s in range(W):
            for v in range(active(length, g, n, k * W + s), L):
                for j in range(len(total)):
                    gamma[k, j, s * L + v] = 0.0
        sum_normals(numbers[k], W * L, gamma[k], np.int64(0), none, used, total, mean, scatter)
