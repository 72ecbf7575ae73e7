"""Candidate parents: with many variables only parents that have something to say are tried together."""

from __future__ import annotations

from math import comb

import numpy as np
import numpy.typing as npt

from suffice.structure.local_scores import LocalScores
from suffice.structure.rules import Parents, Rules


def restricted(scores: LocalScores, rules: Rules, parents: list[Parents], most: float) -> Rules:
    """The rules with fewer candidates: the Markov blankets of a graph, and the strongest pairs while there is room for `most`."""
    blanket = markov_blankets(parents)
    single, pair = scores.pairs()
    gain = np.where(rules.allowed, pair - single[:, None], -np.inf)
    strength = np.argsort(-gain, axis=1, kind="stable")
    rank = np.empty_like(strength)
    np.put_along_axis(rank, strength, np.arange(rules.n)[None, :].repeat(rules.n, 0), axis=1)
    result = rules.within(blanket)
    for k in (2, 4, 6, 8, 10, 12, 15):
        wider = rules.within(blanket | ((rank < k) & (gain > 0)))
        if n_families(wider) > most:
            break
        result = wider
    return result


def markov_blankets(parents: list[Parents]) -> npt.NDArray[np.bool_]:
    """[i, j]: whether j is a parent, a child, or another parent of a child of i."""
    n = len(parents)
    matrix = np.zeros((n, n), bool)
    for child, chosen in enumerate(parents):
        for p in chosen:
            matrix[child, p] = matrix[p, child] = True
            matrix[p, list(chosen)] = True
    np.fill_diagonal(matrix, False)
    return matrix


def n_families(rules: Rules) -> int:
    """The number of families that the rules allow.

    >>> n_families(Rules.free(3, 1))
    9
    """
    most, candidates = rules.max_parents.tolist(), rules.allowed.sum(1).tolist()
    return sum(comb(c, k) for c, m in zip(candidates, most, strict=True) for k in range(min(m, c) + 1))
