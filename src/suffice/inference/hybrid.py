"""Exact inference with finite and real variables: given the finite ones, the real ones are Gaussian.

Evidence on real nodes enters the finite network as factors, one for each block of nodes that hang together: the density of
its evidence, over the finite parents of the block. A real target is a mixture: a Gaussian for each configuration of its
block's finite parents, weighted by their posterior. Lauritzen 1992, J. Am. Stat. Assoc. 87, p. 1098.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from suffice.inference.blocks import (
    Block,
    Evidence,
    Hybrid,
    blocks,
    checked_shape,
    conditioned,
    density,
    evidence_factors,
    packed,
    united,
)
from suffice.inference.junction_tree import JunctionTree, Marginals, marginals_of
from suffice.inference.network import NONE, Array, Ints
from suffice.inference.posterior import log_prob_of, posterior


class Mixed(NamedTuple):
    """p(finite targets, real targets | evidence): Gaussians with weights, each with codes of the finite targets.

    [components], [components, reals], [components, reals, reals], [components, finite targets], and ln p(evidence).
    """

    weights: Array
    means: Array
    covariances: Array
    codes: Ints
    log_prob: float


def real_posterior(hybrid: Hybrid, reals: Sequence[int], finite: Sequence[int], evidence: Evidence) -> Mixed:
    """The joint posterior of real targets and finite ones."""
    parts = blocks(hybrid.nodes, reals, evidence.reals)
    asked = united(hybrid.nodes, [b for b in parts if not set(reals).isdisjoint(b.members)], evidence.reals)
    others = [b for b in parts if set(reals).isdisjoint(b.members)]
    axes = (*finite, *(v for v in asked.finite if evidence.codes[v] == NONE and v not in finite))
    checked_shape(hybrid.network, axes, len(reals) ** 2)
    every, answer = conditioned(hybrid, asked, reals, evidence)
    factors = evidence_factors(hybrid, evidence, others) + ([density(every, answer)] if asked.observed else [])
    probs, log_prob = posterior(hybrid.network, axes, evidence.codes, factors)
    return mixture(probs, axes, every.scope, len(finite), answer.mean[:, 0], answer.covariance, log_prob)


def real_marginals(hybrid: Hybrid, evidence: Evidence) -> dict[int, Mixed]:
    """p(x | evidence) of each real x that is not observed."""
    groups = _alike(hybrid, evidence)
    for targets, block in groups:
        checked_shape(hybrid.network, [v for v in block.finite if evidence.codes[v] == NONE], len(targets))
    factors = evidence_factors(hybrid, evidence)
    result = {}
    for targets, block in groups:
        every, answer = conditioned(hybrid, block, targets, evidence, joint=False)
        probs, log_prob = posterior(hybrid.network, every.scope, evidence.codes, factors)
        variance = answer.variance
        for i, t in enumerate(targets):
            mean = answer.mean[:, 0, i : i + 1]
            result[t] = mixture(probs, every.scope, every.scope, 0, mean, variance[:, i, None, None], log_prob)
    return result


def finite_marginals(hybrid: Hybrid, evidence: Evidence, tree: Callable[[], JunctionTree]) -> Marginals:
    """p(v | evidence) of each finite v; `tree` gives that of the finite network, for when no real evidence adds to it."""
    network, factors = hybrid.network, evidence_factors(hybrid, evidence)
    if not network.n_variables:
        return Marginals(np.zeros(0), np.zeros(1, np.int64), log_prob_of(network, evidence.codes, factors))
    return marginals_of(network, evidence.codes, factors, tree)


def mixture(
    probs: Array, axes: Sequence[int], scope: Sequence[int], n_finite: int, means: Array, covariances: Array, log_prob: float
) -> Mixed:
    """The Gaussians of the configurations of `scope`, weighted by probabilities over `axes`, the first of them finite targets.

    Configurations of weight zero are left out; equal Gaussians at equal states of the targets are one.
    """
    shape, flat = probs.shape, probs.reshape(-1)
    kept = np.flatnonzero(flat > 0)
    digits = np.unravel_index(kept, shape) if axes else ()
    codes = np.array(digits[:n_finite], np.int64).reshape(n_finite, len(kept)).T
    of = tuple(digits[list(axes).index(v)] for v in scope)
    index = np.ravel_multi_index(of, [shape[list(axes).index(v)] for v in scope]) if scope else np.zeros(len(kept), np.int64)
    weights, means, covariances = flat[kept], means[index], covariances[index]
    if len(kept) > 1:
        rows = np.concatenate([codes, means, covariances.reshape(len(kept), -1)], axis=1)
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        weights = np.bincount(inverse.reshape(-1), weights).astype(np.float64)
        means, covariances, codes = means[first], covariances[first], codes[first]
    return Mixed(weights / weights.sum() if len(weights) else weights, means, covariances, codes, log_prob)


def _alike(hybrid: Hybrid, evidence: Evidence) -> list[tuple[list[int], Block]]:
    """Unobserved real nodes that depend on the same unobserved finite variables, to be asked for together."""
    nodes, unknown = hybrid.nodes, [m for m in range(len(hybrid.nodes)) if m not in evidence.reals]
    if all(evidence.codes[v] != NONE for node in nodes for v in node.finite_parents):
        parts = packed(nodes, blocks(nodes, unknown, evidence.reals), evidence.codes, evidence.reals)
        return [(hidden, b) for b in parts if (hidden := [m for m in b.members if m not in evidence.reals])]
    groups: dict[tuple[int, ...], list[tuple[int, Block]]] = {}
    for m in unknown:
        own = next(b for b in blocks(nodes, [m], evidence.reals) if m in b.members)
        groups.setdefault(tuple(v for v in own.finite if evidence.codes[v] == NONE), []).append((m, own))
    return [([m for m, _ in g], united(nodes, [b for _, b in g], evidence.reals)) for g in groups.values()]
