"""The real part of a question: which Gaussian nodes it needs, in which independent blocks, and what evidence in them weighs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from suffice.errors import ModelError, TooLarge
from suffice.inference.gaussian import FINE, Conditioned, Configurations, Gaussians
from suffice.inference.logs import LogFactor, likelihood_factors
from suffice.inference.network import Array, GaussianNode, Ints, Network, Soft
from suffice.inference.questions import conditional

MAX_CONFIGURATIONS = 2**17
"""No more configurations of finite variables than this are gone through."""

MAX_CELLS = 2**26
"""No more numbers than this are held for all configurations together."""


TOGETHER = 24
"""Blocks of so many nodes in all are better worked on together than one by one."""


class Evidence(Protocol):
    """What is observed: codes of finite variables (−1: not), likelihoods of their states, values of real ones."""

    @property
    def codes(self) -> Ints: ...
    @property
    def soft(self) -> Soft: ...
    @property
    def reals(self) -> Mapping[int, float]: ...


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


class Block(NamedTuple):
    """Nodes that hang together through unobserved real nodes: independent of other blocks given the finite variables."""

    members: tuple[int, ...]
    observed: tuple[int, ...]
    finite: tuple[int, ...]
    """The finite parents of members."""


def blocks(nodes: Sequence[GaussianNode], targets: Iterable[int], observed: Collection[int]) -> list[Block]:
    """The blocks of targets, evidence and their ancestors; what is below both is barren.

    An observed node is a constant to its children, so it hangs together with its parents only.

    >>> x = GaussianNode((), (), np.array(1.0), np.zeros(0), np.array(1.0))
    >>> y, z = (GaussianNode((), (p,), np.array(0.0), np.array([2.0]), np.array(1.0)) for p in (0, 1))
    >>> [b.members for b in blocks([x, y, z], [2], {1: 0.0})]
    [(0, 1), (2,)]
    """
    needed = np.zeros(len(nodes), bool)
    needed[[*targets, *observed]] = True
    root = list(range(len(nodes)))
    groups: dict[int, list[int]] = {}
    for m in range(len(nodes) - 1, -1, -1):
        if needed[m]:
            for p in nodes[m].real_parents:
                needed[p] = True
                if p not in observed:
                    root[_root(root, m)] = _root(root, p)
    for m in np.flatnonzero(needed).tolist():
        groups.setdefault(_root(root, m), []).append(m)
    return [block_of(nodes, members, observed) for members in groups.values()]


def united(nodes: Sequence[GaussianNode], parts: Iterable[Block], observed: Collection[int]) -> Block:
    """Several blocks as one."""
    return block_of(nodes, sorted({m for part in parts for m in part.members}), observed)


def packed(nodes: Sequence[GaussianNode], parts: Iterable[Block], codes: Ints, observed: Collection[int]) -> list[Block]:
    """Fewer blocks that say the same: small ones together where that makes no further configurations to go through."""
    piles: list[tuple[set[int], list[Block]]] = []
    for part in sorted(parts, key=lambda b: -sum(codes[v] < 0 for v in b.finite)):
        scope = {v for v in part.finite if codes[v] < 0}
        for host, pile in piles:
            if scope <= host and len(part.members) + sum(len(b.members) for b in pile) <= TOGETHER:
                pile.append(part)
                break
        else:
            piles.append((scope, [part]))
    return [pile[0] if len(pile) == 1 else united(nodes, pile, observed) for _, pile in piles]


class Grid(NamedTuple):
    """All configurations of the finite variables that matter to a block: of those not observed, the last fastest."""

    scope: tuple[int, ...]
    shape: tuple[int, ...]
    codes: Configurations

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    def states(self, i: int) -> dict[int, int]:
        """The i-th configuration, observed variables included."""
        return {v: int(c if isinstance(c, int) else c[i]) for v, c in self.codes.items()}


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


def evidence_factors(hybrid: Hybrid, evidence: Evidence, parts: Iterable[Block] | None = None) -> list[LogFactor]:
    """What evidence other than codes says of the finite variables: ln p(evidence in a block | them) for each block that has
    some, all blocks unless `parts` are given; and likelihoods.
    """
    if not evidence.reals:
        return likelihood_factors(evidence.soft)
    if parts is None:
        parts = blocks(hybrid.nodes, (), evidence.reals)
    some = packed(hybrid.nodes, (part for part in parts if part.observed), evidence.codes, evidence.reals)
    found = [density(*conditioned(hybrid, part, (), evidence)) for part in some]
    return found + likelihood_factors(evidence.soft)


def conditioned(
    hybrid: Hybrid, block: Block, targets: Sequence[int], evidence: Evidence, *, joint: bool = True
) -> tuple[Grid, Conditioned]:
    """The targets, members of the block, given its evidence, in every configuration; those in trouble must be impossible."""
    every = grid(hybrid.network, block.finite, evidence.codes, max(1, len(targets) ** 2 if joint else len(targets)))
    values = {m: np.array([x]) for m, x in evidence.reals.items()}
    answer = hybrid.gaussians.condition(block.members, targets, values, every.codes, every.size, joint=joint)
    refuse(hybrid.network, every, answer.trouble, block.observed, evidence.codes, evidence.soft)
    return every, answer


def density(every: Grid, answer: Conditioned) -> LogFactor:
    """ln p(evidence | finite variables); −inf where there is no Gaussian."""
    return as_factor(every, np.where((answer.trouble == FINE)[:, None], answer.log_density, -np.inf))


def as_factor(every: Grid, values: Array) -> LogFactor:
    """A factor from numbers for each configuration and row."""
    return LogFactor(every.scope, values.T.reshape(-1, *every.shape))


def refuse(network: Network, every: Grid, trouble: Ints, observed: Sequence[int], codes: Ints, soft: Soft) -> None:
    """Refuse trouble in a configuration to which the finite evidence leaves some probability."""
    wrong = trouble != FINE
    if not wrong.any():
        return
    if every.scope:
        wrong &= conditional(network, every.scope, codes, likelihood_factors(soft)).reshape(-1) > 0
    if wrong.any():
        first = int(np.argmax(wrong))
        raise Trouble(int(trouble[first]), observed, every.states(first))


def block_of(nodes: Sequence[GaussianNode], members: Sequence[int], observed: Collection[int]) -> Block:
    """The block of these members, ascending."""
    finite = sorted({v for m in members for v in nodes[m].finite_parents})
    return Block(tuple(members), tuple(m for m in members if m in observed), tuple(finite))


def _root(root: list[int], m: int) -> int:
    while root[m] != m:
        root[m] = root[root[m]]
        m = root[m]
    return m
