"""Exact inference with finite and real variables: given the finite ones, the real ones are Gaussian.

Evidence on real nodes enters the finite network as factors, one for each block of nodes that hang together: the density of
its evidence, over the finite parents of the block. A real target is a mixture: a Gaussian for each configuration of its
block's finite parents, weighted by their posterior. Lauritzen 1992, J. Am. Stat. Assoc. 87, p. 1098.

Most probable values are where the joint density, given the evidence, is highest. Given the finite variables the mode of a
Gaussian is its mean, so what is left is a maximum over the finite ones of

    p(finite) · p(real evidence | finite) · density of the real targets at their mean given both

For all unobserved real nodes together the last two are Π 1/√(2πv) over the nodes, times e^(−½|w|²) over blocks with evidence:
factors over few finite variables each, however many there are in all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from suffice.errors import ModelError
from suffice.inference.blocks import (
    Block,
    Evidence,
    Hybrid,
    as_factor,
    blocks,
    checked_shape,
    conditioned,
    density,
    evidence_factors,
    grid,
    packed,
    refuse,
    united,
)
from suffice.inference.gaussian import FINE, LOG_2PI
from suffice.inference.junction_tree import JunctionTree, Marginals, marginals_of
from suffice.inference.logs import NEVER, LogFactor, likelihood_factors
from suffice.inference.network import NONE, Array, Ints
from suffice.inference.questions import best_codes, log_prob_of, posterior


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


class MostProbableValues(NamedTuple):
    """Codes of the finite targets, values of the real ones, ln p(them, evidence) and ln p(evidence), with reals densities."""

    codes: Ints
    values: Array
    log_joint: float
    log_prob: float


class MixtureMode(ModelError):
    """The mode of a real target is that of a mixture over finite variables that are neither targets nor observed."""

    def __init__(self, variables: Iterable[int]) -> None:
        self.variables = tuple(variables)
        super().__init__(f"the mode of a mixture over the finite variables {self.variables}")


def most_probable(hybrid: Hybrid, finite: Sequence[int], reals: Sequence[int], evidence: Evidence) -> MostProbableValues:
    """The targets' values together, all other variables summed out."""
    log_prob = log_prob_of(hybrid.network, evidence.codes, evidence_factors(hybrid, evidence))
    if log_prob == NEVER:
        return MostProbableValues(np.zeros(len(finite), np.int64), np.zeros(len(reals)), NEVER, NEVER)
    everything = len(finite) + len(reals) == int((evidence.codes == NONE).sum()) + len(hybrid.nodes) - len(evidence.reals)
    factors = _all_modes(hybrid, evidence) if everything else _modes(hybrid, finite, reals, evidence)
    codes, log_joint = best_codes(hybrid.network, finite, evidence.codes, [*factors, *likelihood_factors(evidence.soft)])
    return MostProbableValues(codes, _means(hybrid, finite, codes, reals, evidence), log_joint, log_prob)


def _all_modes(hybrid: Hybrid, evidence: Evidence) -> list[LogFactor]:
    """The density of all real nodes where those not observed are at their means."""
    factors = [_own(hybrid, m, evidence) for m in range(len(hybrid.nodes))]
    for block in packed(hybrid.nodes, blocks(hybrid.nodes, (), evidence.reals), evidence.codes, evidence.reals):
        every, answer = conditioned(hybrid, block, (), evidence)
        fine = (answer.trouble == FINE)[:, None]
        factors.append(as_factor(every, np.where(fine, -0.5 * answer.distance, NEVER)))
    return factors


def _own(hybrid: Hybrid, m: int, evidence: Evidence) -> LogFactor:
    """ln 1/√(2πv) of one node, over its finite parents."""
    node = hybrid.nodes[m]
    every = grid(hybrid.network, node.finite_parents, evidence.codes)
    variance = node.variance[tuple(slice(None) if evidence.codes[v] == NONE else evidence.codes[v] for v in node.finite_parents)]
    lost = np.isnan(variance).reshape(-1)
    refuse(hybrid.network, every, np.where(lost, m, FINE), (), evidence.codes, evidence.soft)
    return as_factor(every, np.where(lost, NEVER, -0.5 * (LOG_2PI + np.log(variance.reshape(-1))))[:, None])


def _modes(hybrid: Hybrid, finite: Sequence[int], reals: Sequence[int], evidence: Evidence) -> list[LogFactor]:
    """The density of the evidence in each block, and of its targets at their means."""
    factors = []
    for block in blocks(hybrid.nodes, reals, evidence.reals):
        own = [t for t in reals if t in block.members]
        others = [v for v in block.finite if evidence.codes[v] == NONE and v not in finite]
        if own and others:
            raise MixtureMode(others)
        every, answer = conditioned(hybrid, block, own, evidence)
        spread = np.abs(np.diagonal(answer.root, axis1=1, axis2=2))
        peak = -0.5 * len(own) * LOG_2PI - np.log(spread).sum(axis=1)
        scope, values = density(every, answer)
        factors.append(LogFactor(scope, values + peak.reshape(1, *every.shape)))
    return factors


def _means(hybrid: Hybrid, finite: Sequence[int], codes: Ints, reals: Sequence[int], evidence: Evidence) -> Array:
    """The means of the real targets given the evidence and the finite targets."""
    known = evidence.codes.copy()
    known[list(finite)] = codes
    found: dict[int, float] = {}
    values = {m: np.array([x]) for m, x in evidence.reals.items()}
    parts = [b for b in blocks(hybrid.nodes, reals, evidence.reals) if not set(reals).isdisjoint(b.members)]
    for block in packed(hybrid.nodes, parts, known, evidence.reals):
        own, at = [t for t in reals if t in block.members], {v: int(known[v]) for v in block.finite}
        mean = hybrid.gaussians.condition(block.members, own, values, at, joint=False).mean[0, 0]
        found |= zip(own, mean.tolist(), strict=True)
    return np.array([found[t] for t in reals])
