"""Most probable values with finite and real variables: where their joint density, given the evidence, is highest.

Given the finite variables the mode of a Gaussian is its mean, so what is left is a maximum over the finite ones of

    p(finite) · p(real evidence | finite) · density of the real targets at their mean given both

For all unobserved real nodes together the last two are Π 1/√(2πv) over the nodes, times e^(−½|w|²) over blocks with evidence:
factors over few finite variables each, however many there are in all.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from suffice.errors import ModelError
from suffice.inference.blocks import (
    Evidence,
    Hybrid,
    as_factor,
    blocks,
    conditioned,
    density,
    evidence_factors,
    grid,
    packed,
    refuse,
)
from suffice.inference.gaussian import FINE, LOG_2PI
from suffice.inference.log_domain import NEVER, LogFactor, likelihood_factors
from suffice.inference.network import NONE, Array, Ints
from suffice.inference.posterior import best_codes, log_prob_of


class Mode(NamedTuple):
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


def most_probable(hybrid: Hybrid, finite: Sequence[int], reals: Sequence[int], evidence: Evidence) -> Mode:
    """The targets' values together, all other variables summed out."""
    log_prob = log_prob_of(hybrid.network, evidence.codes, evidence_factors(hybrid, evidence))
    if log_prob == NEVER:
        return Mode(np.zeros(len(finite), np.int64), np.zeros(len(reals)), NEVER, NEVER)
    everything = len(finite) + len(reals) == int((evidence.codes == NONE).sum()) + len(hybrid.nodes) - len(evidence.reals)
    factors = _all_modes(hybrid, evidence) if everything else _modes(hybrid, finite, reals, evidence)
    codes, log_joint = best_codes(hybrid.network, finite, evidence.codes, [*factors, *likelihood_factors(evidence.soft)])
    return Mode(codes, _means(hybrid, finite, codes, reals, evidence), log_joint, log_prob)


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
