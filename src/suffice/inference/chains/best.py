"""The best path of sequences whose steps have one matrix but for the first: many side by side, in lanes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from suffice.inference.chains.lanes import TILE, side_by_side, tiers
from suffice.inference.chains.steps import Array, Codes, Ints, StateSteps


class BestRoom(NamedTuple):
    """What a group needs to find best paths: see `suffice.kernels.best_lanes`."""

    x: Array
    b: Array
    spare: Array
    seen: Ints
    states: Ints
    best: Array

    @classmethod
    def of(cls, K: int, longest: int, side: int) -> BestRoom:
        x, b = np.empty((-(-longest // TILE), K, TILE + 1, side)), np.zeros((1, K, TILE + 1, side))
        seen, states = np.zeros(TILE * side, np.int64), np.zeros((TILE + 1) * side, np.int64)
        return cls(x, b, np.zeros(K * side), seen, states, np.empty(side))


def best_in_lanes(steps: StateSteps, which: Ints, paths: Codes, log_p: Array) -> None:
    """The best path of some of the sequences, and ln p of it."""
    lengths = np.diff(steps.starts)
    order = which[np.argsort(-lengths[which], kind="stable")]
    for tier in tiers(lengths[order]):
        log_p[order[tier]] = _best_of_tier(steps, steps.starts[order[tier]], lengths[order[tier]], paths)


def _best_of_tier(steps: StateSteps, begin: Ints, length: Ints, paths: Codes) -> Array:
    """ln p of the best paths of sequences that are not too unlike in length."""
    from suffice.kernels import best_lanes

    K = steps.n_states
    padded = -K % 4 + K
    matrix, enter, table = np.full((padded, padded), -np.inf), np.full(padded, -np.inf), np.zeros((0, padded))
    with np.errstate(divide="ignore"):
        matrix[:K, :K], enter[:K] = np.log(steps.matrices[1]), np.log(steps.matrices[0, 0])
        if steps.table is not None:
            table = np.pad(np.log(steps.table), [(0, 0), (0, padded - K)])
    symbols, dense = steps.some_symbols, steps.some_logs
    side = side_by_side(length, padded)
    x, b, spare, seen, states, best = BestRoom.of(padded, int(length[0]), side)
    flat_x, flat_b, logs, log_p = x.reshape(-1), b.reshape(-1), table.reshape(-1), np.zeros(len(begin))
    back = np.concatenate([matrix.T.reshape(-1), np.zeros(padded)])
    for g in range(0, len(begin), side):
        group = (g, min(side, len(begin) - g), begin, length)
        best_lanes.rise(*group, symbols, logs, seen, dense, b, flat_b, matrix, enter, log_p, x, flat_x)
        best_lanes.descend(*group, back, log_p, x, flat_x, states, spare, best, paths)
    return log_p
