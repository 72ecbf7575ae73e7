"""Finite networks with further factors, given as logarithms: densities of real evidence, likelihoods of states.

The kernels of `posterior` do the work on plain numbers, scaled to at most 1; where these run out, `log_domain` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from suffice.inference.junction_tree import JunctionTree, Marginals
from suffice.inference.log_domain import LogFactor, absorbed, log_factors, log_joint, log_most
from suffice.inference.most_probable import most_probable
from suffice.inference.network import NONE, Array, Ints, Network, Soft
from suffice.inference.posterior import Posterior, posterior

SAFE = -300.0
"""An answer whose ln p(evidence) came out above this, all factors at most 1, has lost nothing that matters to underflow."""

NEVER = float("-inf")


def likelihood_factors(soft: Soft) -> list[LogFactor]:
    """Likelihood evidence as factors."""
    with np.errstate(divide="ignore"):
        return [LogFactor((v,), np.log(np.asarray(likelihood, np.float64))[None]) for v, likelihood in soft.items()]


def weighed(network: Network, targets: Sequence[int], codes: Ints, factors: Sequence[LogFactor]) -> Posterior:
    """p(targets | evidence) of finite targets, and ln p(evidence), which includes the factors.

    >>> net = Network.of([2], [((0,), 0, np.array([0.5, 0.5]))])
    >>> weighed(net, [0], net.unobserved(), [LogFactor((0,), np.array([[-5000.0, -5000.0]]))])
    Posterior(probs=array([0.5, 0.5]), log_prob=-5000.0)
    """
    plain, scale = _plain(factors)
    if scale == NEVER:
        return Posterior(np.full([int(network.sizes[t]) for t in targets], np.nan), NEVER)
    if not (plain or len(targets) or (codes != NONE).any()):
        return Posterior(np.ones(()), scale)
    answer = posterior(network.with_factors(plain) if plain else network, targets, codes)
    if not plain or answer.log_prob > SAFE:
        return Posterior(answer.probs, answer.log_prob + scale)
    return _normalised(log_joint(_pool(network, targets, codes, factors), targets, network.sizes)[0])


def weighed_marginals(network: Network, codes: Ints, factors: Sequence[LogFactor]) -> Marginals:
    """p(v | evidence) of all variables, by a tree made for these factors."""
    plain, scale = _plain(factors)
    answer = JunctionTree.of(network.with_factors(plain)).marginals(codes)
    if scale == NEVER or answer.log_prob > SAFE:
        return answer._replace(log_prob=answer.log_prob + scale)
    probs, log_prob = np.empty(len(answer.probs)), weighed(network, (), codes, factors).log_prob
    for v, r in enumerate(network.sizes.tolist()):
        own = np.eye(r)[codes[v]] if codes[v] != NONE else weighed(network, (v,), codes, factors).probs
        probs[answer.start[v] : answer.start[v + 1]] = own
    return Marginals(probs, answer.start, log_prob)


def most_weighed(network: Network, targets: Sequence[int], codes: Ints, factors: Sequence[LogFactor]) -> tuple[Ints, float]:
    """The most probable codes of the targets together, the other variables summed out, and ln p(them, evidence)."""
    if not len(targets):
        return np.zeros(0, np.int64), weighed(network, (), codes, factors).log_prob
    plain, scale = _plain(factors)
    best = most_probable(network.with_factors(plain), targets, codes)
    if best.log_joint > SAFE:
        return best.codes, best.log_joint + scale
    return log_most(_pool(network, targets, codes, factors), targets, network.sizes)


def _plain(factors: Iterable[LogFactor]) -> tuple[list[tuple[tuple[int, ...], int, Array]], float]:
    """The factors as plain numbers of at most 1, and the logarithm of what they were divided by."""
    scale, plain = 0.0, []
    for scope, values in absorbed(factors):
        top = float(values.max())
        scale += top
        if scope and top > NEVER:
            plain.append((scope, NONE, np.exp(values[0] - top)))
    return plain, scale


def _pool(network: Network, targets: Sequence[int], codes: Ints, factors: Sequence[LogFactor]) -> list[LogFactor]:
    needed = [*targets, *(v for f in factors for v in f.scope)]
    return [*log_factors(network, codes[None], needed), *factors]


def _normalised(log_values: Array) -> Posterior:
    """Probabilities from their logarithms up to a constant, which is the other answer."""
    top = float(log_values.max())
    if top == NEVER:
        return Posterior(np.full(log_values.shape, np.nan), NEVER)
    values = np.exp(log_values - top)
    return Posterior(values / values.sum(), top + float(np.log(values.sum())))
