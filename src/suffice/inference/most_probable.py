"""Most probable explanations: of all that is not observed (MPE), or of some variables with the others summed out (MAP)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from suffice.inference.log_domain import LogFactor
from suffice.inference.logs import Logs
from suffice.inference.network import Ints, Network
from suffice.inference.orders import completed, greedy_order
from suffice.inference.posterior import log_prob_of
from suffice.inference.questions import relevant_part
from suffice.inference.tree import arranged, part_of
from suffice.inference.weighed import NEVER, weighed


class Explanation(NamedTuple):
    """The most probable codes of the targets together, ln p(targets = codes, evidence) and ln p(evidence).

    Where the evidence is impossible the codes are −1 and both logs −inf.
    """

    codes: Ints
    log_joint: float
    log_prob: float


def most_probable(network: Network, targets: Sequence[int], codes: Ints, factors: Sequence[LogFactor] = ()) -> Explanation:
    """argmax p(targets | evidence). All sums come before all maxima, so some variables may cost more than all (Park 2002).

    >>> net = Network.of([2, 2], [((0,), 0, np.array([0.4, 0.6])), ((0, 1), 1, np.array([[1.0, 0.0], [0.5, 0.5]]))])
    >>> most_probable(net, [0, 1], net.unobserved()).codes, most_probable(net, [0], net.unobserved()).codes
    (array([0, 0]), array([1]))
    """
    log_prob = log_prob_of(network, codes, factors)
    if log_prob == NEVER:
        return Explanation(np.full(len(targets), -1, np.int64), log_prob, log_prob)
    return Explanation(*best_codes(network, targets, codes, factors), log_prob)


def best_codes(network: Network, targets: Sequence[int], codes: Ints, factors: Sequence[LogFactor]) -> tuple[Ints, float]:
    """The targets' codes at the maximum of Σ Π φ, the sum over all other variables, and its logarithm."""
    if not len(targets):
        return np.zeros(0, np.int64), log_prob_of(network, codes, factors)
    w = weighed(network, codes, factors)
    network, needed = w.network, w.codes.copy()
    needed[list(targets)] = 0  # as if observed, so that nothing above them is barren
    asked = np.asarray(targets, np.int64)
    part = part_of(network, relevant_part(network, (), network.all_factors, needed).factors, codes, asked)
    n_summed = len(part.variables) - part.n_kept
    free = replace(part, n_kept=0)
    order = greedy_order(network, free if n_summed == 0 else part).order
    if n_summed:  # the greedy order says nothing of what comes after the sums
        order = completed(network, part, order[:n_summed]).order
    logs = Logs(arranged(network, free, order), codes, w.log_tables, maximised=n_summed)
    chosen = logs.best()[np.argsort(order)]
    return chosen[: len(targets)], logs.log_prob + w.log_scale
