"""The posterior of a few variables given what is observed of the others, the probability of what is observed, and most probable
explanations: of all that is not observed (MPE), or of some variables with the others summed out (MAP)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from suffice.errors import TooLarge, bytes_in_words
from suffice.inference.logs import NEVER, Elimination, LogFactor, Weighed, factors_at, steps, weighed
from suffice.inference.network import Array, Ints, Network
from suffice.inference.questions import ALONE, DONE, IMPOSSIBLE, ROOT, UNCERTAIN, in_rows, relevant_part, room_for, run
from suffice.inference.tree import MAX_BYTES, MAX_CELLS, Tree, arranged, completed, greedy_order, interruptible, part_of

MAX_JOINT = 2**27
"""No joint has more cells than this: 1 GiB of numbers."""


class Posterior(NamedTuple):
    """p(targets | evidence), one axis per target in the order asked for, and ln p(evidence).

    Where the evidence is impossible, `log_prob` is −inf and the probabilities are NaN.
    """

    probs: Array
    log_prob: float


def posterior(network: Network, targets: Sequence[int], codes: Ints, factors: Sequence[LogFactor] = ()) -> Posterior:
    """Exactly, by elimination within the part of the network that the question depends on.

    `codes` has the code of each observed variable, −1 for the others. No target may be observed. `factors` are what is known
    besides: likelihoods of states, densities of real evidence.

    >>> net = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.array([[1.0, 0.0], [0.5, 0.5]]))])
    >>> posterior(net, [0], np.array([-1, 0])).probs.round(4)
    array([0.6667, 0.3333])
    """
    shape = _checked_shape(network, targets)
    probs, log_prob = _answer(network, targets, codes, factors, everywhere=True)
    return Posterior(probs.reshape(shape), log_prob)


def conditional(network: Network, targets: Sequence[int], codes: Ints, factors: Sequence[LogFactor] = ()) -> Array:
    """p(targets | evidence) alone, for which less of the network is gone through; NaN where the evidence is impossible."""
    shape = _checked_shape(network, targets)
    return _answer(network, targets, codes, factors, everywhere=False)[0].reshape(shape)


def _checked_shape(network: Network, targets: Sequence[int]) -> Ints:
    shape = network.sizes[np.asarray(targets, np.int64)]
    cells = math.prod(shape.tolist())
    if cells > MAX_JOINT:
        raise TooLarge(
            f"the joint of {len(shape)} variables has {cells:,} cells ({bytes_in_words(8.0 * cells)}), and the limit is "
            f"{MAX_JOINT:,}: ask for fewer at a time, or for their most probable states (bn.most_probable)"
        )
    return shape


def log_prob_of(network: Network, codes: Ints, factors: Sequence[LogFactor] = ()) -> float:
    """ln p(evidence)."""
    return _answer(network, (), codes, factors, everywhere=True)[1]


def _answer(
    network: Network, targets: Sequence[int], codes: Ints, factors: Sequence[LogFactor], *, everywhere: bool
) -> tuple[Array, float]:
    """p(targets | evidence), and ln p(evidence) if all that it depends on is gone through."""
    w = weighed(network, codes, factors)
    if w.log_scale == NEVER:
        return np.full(math.prod(network.sizes[np.asarray(targets, np.int64)].tolist()), np.nan), NEVER
    if not network.n_variables:
        return np.ones(1), w.log_scale
    changed = [v for f in factors for v in f.scope if len(f.scope) == 1] if factors else []
    doubtful = np.union1d(w.network.with_zeros, network.own[changed]) if changed else w.network.with_zeros
    seeds = w.network.all_factors if everywhere else doubtful
    seen = np.ascontiguousarray(w.codes[None], np.int32)
    out, log_prob, status = in_rows(w.network, targets, seeds, seen, w.tables[None])
    if status[0] in (DONE, IMPOSSIBLE) and w.is_sure(float(log_prob[0])):
        return out[0], float(log_prob[0]) + w.log_scale
    probs, careful = carefully(targets, seeds, w)
    return probs, careful + w.log_scale


def carefully(targets: Sequence[int], seeds: Ints, w: Weighed) -> tuple[Array, float]:
    """One question with more time for a good order, memory checked, and logs where floats do not reach."""
    tree = tree_for(w.network, targets, seeds, w.codes)
    return interruptible(lambda: answered(tree, targets, w), tree.cells(w.codes))


def tree_for(network: Network, targets: Sequence[int], seeds: Ints, codes: Ints) -> Tree:
    """A tree for a question and all others in which the same variables are observed; refused where it would be too large."""
    part = relevant_part(network, targets, seeds, codes)
    found = greedy_order(network, part)
    tree = arranged(network, part, found.order)
    numbers = tree.n_numbers(codes)
    if 8.0 * numbers > MAX_BYTES or found.cells > MAX_CELLS:
        raise TooLarge(
            f"the answer needs products of {found.cells:.3g} cells, of {tree.widest} variables at once, and tables of "
            f"{bytes_in_words(8.0 * numbers)}: too much; ask by sampling instead: bn.query(..., method=LikelihoodWeighting())"
        )
    return tree


def answered(tree: Tree, targets: Sequence[int], w: Weighed) -> tuple[Array, float]:
    """p(targets | observed) by a tree made for it, and ln of what it was divided by."""
    network = tree.network
    cells = math.prod(network.sizes[np.asarray(targets, np.int64)].tolist())
    out, log_prob, status = np.ones((1, cells)), np.empty(1), np.empty(1, np.uint8)
    seen, want = np.ascontiguousarray(w.codes[None], np.int32), ROOT if len(targets) else ALONE
    room = room_for(tree, int(tree.n_numbers(w.codes)) + 64)
    run(network, want, np.zeros(1, np.int64), tree.program, seen, w.tables[None], room, out, log_prob, status)
    if status[0] != UNCERTAIN and w.is_sure(float(log_prob[0])):
        return out[0], float(log_prob[0])
    kept = set(targets)
    logs = in_logs(network, tree.factor, [v for v in tree.unobserved(w.codes) if v not in kept], w).joint(targets).reshape(-1)
    high = float(logs.max())
    if high == NEVER:
        return np.full(cells, np.nan), high
    shares = np.exp(logs - high)
    return shares / shares.sum(), high + float(np.log(shares.sum()))


def in_logs(network: Network, factors: Ints, order: Sequence[int], w: Weighed, n_maximised: int = 0) -> Elimination:
    """The same by logs, slow and sure: variables of some factors taken out in an order, the last of them by maxima."""
    some = factors_at(network, factors, w.codes[None], w.log_tables)
    return Elimination(some, steps((f.scope for f in some), order), network.sizes, n_maximised)


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
    order = greedy_order(network, part if n_summed else replace(part, n_kept=0)).order
    if n_summed:  # the greedy order says nothing of what comes after the sums
        order = completed(network, part, order[:n_summed]).order
    found = in_logs(network, part.factors, part.variables[order].tolist(), w._replace(codes=codes), part.n_kept)
    chosen = found.best()
    return np.array([chosen[t] for t in asked.tolist()], np.int64), float(found.joint(())[0]) + w.log_scale
