"""Exact inference with finite and real variables: given the finite ones, the real ones are Gaussian.

Evidence on real nodes enters the finite network as factors, one for each block of connected nodes: the density of
its evidence, over the finite parents of the block. A real target is a mixture: a Gaussian for each configuration of its
block's finite parents, weighted by their posterior. Lauritzen 1992, J. Am. Stat. Assoc. 87, p. 1098.

Most probable values are where the joint density, given the evidence, is highest. Given the finite variables the mode of a
Gaussian is its mean, so what is left is a maximum over the finite ones of

    p(finite) · p(real evidence | finite) · density of the real targets at their mean given both

For all unobserved real nodes together the last two are Π 1/√(2πv) over the nodes, times e^(−½|w|²) over blocks with evidence:
factors over few finite variables each, however many there are in all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from suffice.errors import ModelError, TooLarge
from suffice.numerics.inference.finite.junction_tree import JunctionTree, VariableMarginals, marginals_of
from suffice.numerics.inference.finite.logs import NEVER, LogFactor, likelihood_factors
from suffice.numerics.inference.finite.network import NONE, Array, Ints, Network, Soft
from suffice.numerics.inference.finite.questions import MostProbableCodes, best_codes, posterior
from suffice.numerics.inference.numbers.gaussian import FINE, LOG_2PI, Conditioned, Configurations, GaussianNode, Gaussians

MAX_CONFIGURATIONS = 2**17
"""No more configurations of finite variables than this are gone through."""
MAX_CELLS = 2**26
"""No more numbers than this are held for all configurations together."""
TOGETHER = 24
"""Blocks of so many nodes in all are better worked on together than one by one."""


class HybridEvidence(Protocol):
    """What is observed: codes of finite variables (−1: not), likelihoods of their states, values of real ones. Many rows at once
    have a line of codes each, and for each real variable an array of values."""

    @property
    def codes(self) -> Ints: ...
    @property
    def soft(self) -> Soft: ...
    @property
    def reals(self) -> Mapping[int, Any]: ...


@dataclass(frozen=True, eq=False)
class Hybrid:
    """A finite network with Gaussian nodes and counts below it, in topological order."""

    network: Network
    nodes: tuple[GaussianNode, ...]

    @cached_property
    def gaussians(self) -> Gaussians:
        return Gaussians(self.nodes)

    @cached_property
    def all_possible(self) -> bool:
        """Whether no state is ruled out by another, or by a count."""
        return all(n.never_zero for n in self.nodes) and bool((self.network.tables > 0).all())

    @cached_property
    def complete(self) -> bool:
        """Whether every configuration of every node has parameters, by which every number is possible."""
        return all(n.complete for n in self.nodes)


class Trouble(ModelError):
    """A configuration that the evidence allows has no Gaussian: `reason` as in `gaussian`, `states` by number of the variable."""

    def __init__(self, reason: int, observed: Sequence[int], states: Mapping[int, int]) -> None:
        super().__init__(f"Gaussian nodes in trouble at {dict(states)}: {reason}")
        self.reason, self.observed, self.states = reason, tuple(observed), dict(states)


class ManyConfigurations(TooLarge):
    """Too many configurations of finite variables to go through."""

    def __init__(self, n: int, limit: int, variables: Sequence[int]) -> None:
        super().__init__(f"{n:,} configurations of finite variables; the limit is {limit:,}")
        self.n, self.limit, self.variables = n, limit, tuple(variables)


class GaussianBlock(NamedTuple):
    """Nodes that are connected through unobserved real nodes: independent of other blocks given the finite variables."""

    members: tuple[int, ...]
    observed: tuple[int, ...]
    finite: tuple[int, ...]
    """The finite parents of members."""


def blocks(nodes: Sequence[GaussianNode], targets: Iterable[int], observed: Collection[int]) -> list[GaussianBlock]:
    """The blocks of targets, evidence and their ancestors; what is below both is barren. An observed node is a constant to its
    children, so it hangs together with its parents only."""
    needed = np.zeros(len(nodes), bool)
    needed[[*targets, *observed]] = True
    root = list(range(len(nodes)))
    groups: dict[int, list[int]] = {}

    def root_of(m: int) -> int:
        while root[m] != m:
            root[m] = root[root[m]]
            m = root[m]
        return m

    for m in range(len(nodes) - 1, -1, -1):
        if needed[m]:
            for p in nodes[m].real_parents:
                needed[p] = True
                if p not in observed:
                    root[root_of(m)] = root_of(p)
    for m in np.flatnonzero(needed).tolist():
        groups.setdefault(root_of(m), []).append(m)
    return [block_of(nodes, members, observed) for members in groups.values()]


def unite_blocks(nodes: Sequence[GaussianNode], parts: Iterable[GaussianBlock], observed: Collection[int]) -> GaussianBlock:
    """Several blocks as one."""
    return block_of(nodes, sorted({m for part in parts for m in part.members}), observed)


def pack_blocks(
    nodes: Sequence[GaussianNode], parts: Iterable[GaussianBlock], codes: Ints, observed: Collection[int]
) -> list[GaussianBlock]:
    """Fewer blocks that say the same: small ones together where that makes no further configurations to go through."""
    piles: list[tuple[set[int], list[GaussianBlock]]] = []
    for part in sorted(parts, key=lambda b: -sum(codes[v] < 0 for v in b.finite)):
        scope = {v for v in part.finite if codes[v] < 0}
        for host, pile in piles:
            if scope <= host and len(part.members) + sum(len(b.members) for b in pile) <= TOGETHER:
                pile.append(part)
                break
        else:
            piles.append((scope, [part]))
    return [pile[0] if len(pile) == 1 else unite_blocks(nodes, pile, observed) for _, pile in piles]


class Grid(NamedTuple):
    """All configurations of the finite variables that matter to a block: of those not observed, the last fastest."""

    scope: tuple[int, ...]
    shape: tuple[int, ...]
    codes: Configurations

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def factor(self, values: Array) -> LogFactor:
        """A factor from numbers for each configuration and row."""
        return LogFactor(self.scope, values.T.reshape(-1, *self.shape))


def grid(network: Network, finite: Iterable[int], codes: Ints, width: int = 1) -> Grid:
    """The configurations of these variables, which must not be too many for `width` numbers to be held for each."""
    variables = list(finite)
    scope = tuple(v for v in variables if codes[v] < 0)
    shape = checked_shape(network, scope, width)
    digits = np.unravel_index(np.arange(math.prod(shape)), shape) if scope else ()
    every: dict[int, int | Ints] = {v: int(codes[v]) for v in variables if codes[v] >= 0}
    return Grid(scope, shape, every | dict(zip(scope, digits, strict=True)))


def checked_shape(network: Network, scope: Sequence[int], width: int = 1) -> tuple[int, ...]:
    shape = tuple(int(network.sizes[v]) for v in scope)
    limit = min(MAX_CONFIGURATIONS, MAX_CELLS // width)
    if math.prod(shape) > max(limit, 1):
        raise ManyConfigurations(math.prod(shape), limit, scope)
    return shape


def evidence_factors(hybrid: Hybrid, evidence: HybridEvidence, parts: Iterable[GaussianBlock] | None = None) -> list[LogFactor]:
    """What evidence other than codes says of the finite variables: ln p(evidence in a block | them) for each block that has
    some, all blocks unless `parts` are given; and likelihoods.
    """
    if not evidence.reals:
        return likelihood_factors(evidence.soft)
    if parts is None:
        parts = blocks(hybrid.nodes, (), evidence.reals)
    some = pack_blocks(hybrid.nodes, (part for part in parts if part.observed), evidence.codes, evidence.reals)
    found = [density(*condition_block(hybrid, part, (), evidence)) for part in some]
    return found + likelihood_factors(evidence.soft)


def condition_block(
    hybrid: Hybrid, block: GaussianBlock, targets: Sequence[int], evidence: HybridEvidence, *, joint: bool = True
) -> tuple[Grid, Conditioned]:
    """The targets, members of the block, given its evidence, in every configuration; those in trouble must be impossible."""
    lines = np.atleast_2d(evidence.codes)
    every = grid(hybrid.network, block.finite, lines[0], max(1, len(targets) ** 2 if joint else len(targets)))
    values = {m: np.atleast_1d(x) for m, x in evidence.reals.items()}
    answer = hybrid.gaussians.condition(block.members, targets, values, every.codes, every.size, joint=joint)
    if (answer.trouble != FINE).any():
        for line in np.unique(lines, axis=0):
            refuse(hybrid.network, every, answer.trouble, block.observed, line, evidence.soft)
    return every, answer


def density(every: Grid, answer: Conditioned) -> LogFactor:
    """ln p(evidence | finite variables); −inf where there is no Gaussian."""
    return every.factor(np.where((answer.trouble == FINE)[:, None], answer.log_density, -np.inf))


def refuse(network: Network, every: Grid, trouble: Ints, observed: Sequence[int], codes: Ints, soft: Soft) -> None:
    """Refuse trouble in a configuration to which the finite evidence leaves some probability."""
    wrong = trouble != FINE
    if not wrong.any():
        return
    if every.scope:
        wrong &= posterior(network, every.scope, codes, likelihood_factors(soft), everywhere=False).probs.reshape(-1) > 0
    if wrong.any():
        first = int(np.argmax(wrong))
        states = {v: int(c if isinstance(c, int) else c[first]) for v, c in every.codes.items()}  # observed ones included
        raise Trouble(int(trouble[first]), observed, states)


def block_of(nodes: Sequence[GaussianNode], members: Sequence[int], observed: Collection[int]) -> GaussianBlock:
    """The block of these members, ascending."""
    finite = sorted({v for m in members for v in nodes[m].finite_parents})
    return GaussianBlock(tuple(members), tuple(m for m in members if m in observed), tuple(finite))


class Mixed(NamedTuple):
    """p(finite targets, real targets | evidence): Gaussians with weights, each with codes of the finite targets. [components],
    [components, reals], [components, reals, reals], [components, finite targets], and ln p(evidence)."""

    weights: Array
    means: Array
    covariances: Array
    codes: Ints
    log_prob: float


def real_posterior(hybrid: Hybrid, reals: Sequence[int], finite: Sequence[int], evidence: HybridEvidence) -> Mixed:
    """The joint posterior of real targets and finite ones."""
    parts = blocks(hybrid.nodes, reals, evidence.reals)
    asked = unite_blocks(hybrid.nodes, [b for b in parts if not set(reals).isdisjoint(b.members)], evidence.reals)
    others = [b for b in parts if set(reals).isdisjoint(b.members)]
    axes = (*finite, *(v for v in asked.finite if evidence.codes[v] == NONE and v not in finite))
    checked_shape(hybrid.network, axes, len(reals) ** 2)
    every, answer = condition_block(hybrid, asked, reals, evidence)
    factors = evidence_factors(hybrid, evidence, others) + ([density(every, answer)] if asked.observed else [])
    probs, log_prob = posterior(hybrid.network, axes, evidence.codes, factors)
    return mixture(probs, axes, every.scope, len(finite), answer.mean[:, 0], answer.covariance, log_prob)


def real_marginals(hybrid: Hybrid, evidence: HybridEvidence) -> dict[int, Mixed]:
    """p(x | evidence) of each real x that is not observed."""
    groups = _alike(hybrid, evidence)
    for targets, block in groups:
        checked_shape(hybrid.network, [v for v in block.finite if evidence.codes[v] == NONE], len(targets))
    factors = evidence_factors(hybrid, evidence)
    result = {}
    for targets, block in groups:
        every, answer = condition_block(hybrid, block, targets, evidence, joint=False)
        probs, log_prob = posterior(hybrid.network, every.scope, evidence.codes, factors)
        variance = answer.variance
        for i, t in enumerate(targets):
            mean = answer.mean[:, 0, i : i + 1]
            result[t] = mixture(probs, every.scope, every.scope, 0, mean, variance[:, i, None, None], log_prob)
    return result


def finite_marginals(hybrid: Hybrid, evidence: HybridEvidence, tree: Callable[[], JunctionTree]) -> VariableMarginals:
    """p(v | evidence) of each finite v; `tree` gives that of the finite network, for when no real evidence adds to it."""
    network, factors = hybrid.network, evidence_factors(hybrid, evidence)
    if not network.n_variables:
        return VariableMarginals(np.zeros(0), np.zeros(1, np.int64), posterior(network, (), evidence.codes, factors).log_prob)
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


def _alike(hybrid: Hybrid, evidence: HybridEvidence) -> list[tuple[list[int], GaussianBlock]]:
    """Unobserved real nodes that depend on the same unobserved finite variables, to be asked for together."""
    nodes, unknown = hybrid.nodes, [m for m in range(len(hybrid.nodes)) if m not in evidence.reals]
    if all(evidence.codes[v] != NONE for node in nodes for v in node.finite_parents):
        parts = pack_blocks(nodes, blocks(nodes, unknown, evidence.reals), evidence.codes, evidence.reals)
        return [(hidden, b) for b in parts if (hidden := [m for m in b.members if m not in evidence.reals])]
    groups: dict[tuple[int, ...], list[tuple[int, GaussianBlock]]] = {}
    for m in unknown:
        own = next(b for b in blocks(nodes, [m], evidence.reals) if m in b.members)
        groups.setdefault(tuple(v for v in own.finite if evidence.codes[v] == NONE), []).append((m, own))
    return [([m for m, _ in g], unite_blocks(nodes, [b for _, b in g], evidence.reals)) for g in groups.values()]


class MixtureMode(ModelError):
    """The mode of a real target is that of a mixture over finite variables that are neither targets nor observed."""

    def __init__(self, variables: Iterable[int]) -> None:
        self.variables = tuple(variables)
        super().__init__(f"the mode of a mixture over the finite variables {self.variables}")


def most_probable(hybrid: Hybrid, finite: Sequence[int], reals: Sequence[int], evidence: HybridEvidence) -> MostProbableCodes:
    """The targets' values together, all other variables summed out."""
    log_prob = posterior(hybrid.network, (), evidence.codes, evidence_factors(hybrid, evidence)).log_prob
    if log_prob == NEVER:
        return MostProbableCodes(np.full(len(finite), NONE, np.int64), NEVER, NEVER)
    everything = len(finite) + len(reals) == int((evidence.codes == NONE).sum()) + len(hybrid.nodes) - len(evidence.reals)
    factors = _all_modes(hybrid, evidence) if everything else _modes(hybrid, finite, reals, evidence)
    codes, log_joint = best_codes(hybrid.network, finite, evidence.codes, [*factors, *likelihood_factors(evidence.soft)])
    return MostProbableCodes(codes, log_joint, log_prob, _means(hybrid, finite, codes, reals, evidence))


def _all_modes(hybrid: Hybrid, evidence: HybridEvidence) -> list[LogFactor]:
    """The density of all real nodes where those not observed are at their means: ln 1/√(2πv) of each node, over its finite
    parents, and what the evidence of each block is off."""
    factors, codes = [], evidence.codes
    for m, node in enumerate(hybrid.nodes):
        every = grid(hybrid.network, node.finite_parents, codes)
        variance = node.variance[tuple(slice(None) if codes[v] == NONE else codes[v] for v in node.finite_parents)].reshape(-1)
        lost = np.isnan(variance)
        refuse(hybrid.network, every, np.where(lost, m, FINE), (), codes, evidence.soft)
        factors.append(every.factor(np.where(lost, NEVER, -0.5 * (LOG_2PI + np.log(variance)))[:, None]))
    for block in pack_blocks(hybrid.nodes, blocks(hybrid.nodes, (), evidence.reals), evidence.codes, evidence.reals):
        every, answer = condition_block(hybrid, block, (), evidence)
        fine = (answer.trouble == FINE)[:, None]
        factors.append(every.factor(np.where(fine, -0.5 * answer.distance, NEVER)))
    return factors


def _modes(hybrid: Hybrid, finite: Sequence[int], reals: Sequence[int], evidence: HybridEvidence) -> list[LogFactor]:
    """The density of the evidence in each block, and of its targets at their means."""
    factors = []
    for block in blocks(hybrid.nodes, reals, evidence.reals):
        own = [t for t in reals if t in block.members]
        others = [v for v in block.finite if evidence.codes[v] == NONE and v not in finite]
        if own and others:
            raise MixtureMode(others)
        every, answer = condition_block(hybrid, block, own, evidence)
        spread = np.abs(np.diagonal(answer.root, axis1=1, axis2=2))
        peak = -0.5 * len(own) * LOG_2PI - np.log(spread).sum(axis=1)
        scope, values = density(every, answer)
        factors.append(LogFactor(scope, values + peak.reshape(1, *every.shape)))
    return factors


def _means(hybrid: Hybrid, finite: Sequence[int], codes: Ints, reals: Sequence[int], evidence: HybridEvidence) -> Array:
    """The means of the real targets given the evidence and the finite targets."""
    known = evidence.codes.copy()
    known[list(finite)] = codes
    found: dict[int, float] = {}
    values = {m: np.array([x]) for m, x in evidence.reals.items()}
    parts = [b for b in blocks(hybrid.nodes, reals, evidence.reals) if not set(reals).isdisjoint(b.members)]
    for block in pack_blocks(hybrid.nodes, parts, known, evidence.reals):
        own, at = [t for t in reals if t in block.members], {v: int(known[v]) for v in block.finite}
        mean = hybrid.gaussians.condition(block.members, own, values, at, joint=False).mean[0, 0]
        found |= zip(own, mean.tolist(), strict=True)
    return np.array([found[t] for t in reals])
