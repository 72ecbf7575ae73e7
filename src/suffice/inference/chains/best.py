"""The best path of sequences whose steps have one matrix but for the first: many side by side, in lanes."""

from __future__ import annotations

import numpy as np

from suffice.inference.chains.lanes import NO_FORMS, TILE, LaneRoom, filled_up, in_eights, side_by_side, tiers
from suffice.inference.chains.steps import Array, Codes, Ints, StateSteps


def best_in_lanes(steps: StateSteps, which: Ints, paths: Codes, log_p: Array) -> None:
    """The best path of some of the sequences, and ln p of it."""
    lengths = np.diff(steps.starts)
    order = which[np.argsort(-lengths[which], kind="stable")]
    for tier in tiers(lengths[order]):
        log_p[order[tier]] = _best_of_tier(steps, steps.starts[order[tier]], lengths[order[tier]], paths)


def _best_of_tier(steps: StateSteps, begin: Ints, length: Ints, paths: Codes) -> Array:
    """ln p of the best paths of sequences that are not too unlike in length."""
    from suffice.kernels.chains.best_lanes import descend, rise
    from suffice.kernels.chains.lane_rows import place
    from suffice.kernels.chains.normal_lanes import fill

    K, E = steps.n_states, 0 if steps.table is None else len(steps.table)
    padded = filled_up(K)
    matrix, enter, table = np.full((padded, padded), -np.inf), np.full(padded, -np.inf), np.zeros((E + 2, padded))
    with np.errstate(divide="ignore"):
        matrix[:K, :K], enter[:K] = steps.logs[1], steps.logs[0, 0]
        if steps.table is not None:
            table[:E, :K] = np.log(steps.table)
    side = side_by_side(length, padded)
    states = np.empty(side, np.int64)
    symbols, factors, none, log_p = steps.some_symbols, table.reshape(-1), np.zeros(0), np.zeros(len(begin))
    onward, back = in_eights(matrix[:K]), np.concatenate([matrix.T.reshape(-1), np.zeros(padded)])
    with LaneRoom.borrowed(padded, int(length[0]), side, steps.dense) as (places, b, x, *_):
        for g in range(0, len(begin), side):
            n = min(side, len(begin) - g)
            if steps.dense:
                fill(g, n, begin, length, steps.some_logs, *NO_FORMS, steps.some_symbols, table, none, True, side, K, log_p, b)
                symbols, factors = symbols[:0], b
            place(g, n, begin, length, symbols, padded, len(factors) - 2 * padded, side, none, log_p, places)
            rise(g, n, length, places, factors, onward, K, TILE, side, enter, log_p, x)
            descend(g, n, begin, length, back, padded, TILE, side, log_p, x, states, paths)
    return log_p
