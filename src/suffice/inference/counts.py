"""Counts among the real nodes: n | u ~ Poisson(λ[u]), below finite variables only.

An observed count weighs the configurations of its finite parents, and is a constant to its children, as any observed number
is. One that is not observed is barren, or asked for: then all that is said of it here is its mean and its variance, both λ.
So a count is a Gaussian node with these moments, but for the probability of its value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from suffice.errors import ModelError
from suffice.inference.blocks import Hybrid
from suffice.inference.gaussian import FINE, LOG_2PI, Conditioned, Configurations, Gaussians
from suffice.inference.network import Array, GaussianNode, Ints

SMALLEST = 1e-300
"""The variance of a count of rate 0, which is always 0: a Gaussian node has some."""


@dataclass(frozen=True, eq=False)
class CountNode(GaussianNode):
    """p(n | u) = Poisson(rates[u]), u finite variables by number; NaN means that a configuration has no rate.

    >>> node = CountNode.of((0,), np.array([0.5, 3.0]))
    >>> node.rates, node.real_parents
    (array([0.5, 3. ]), ())
    """

    @classmethod
    def of(cls, finite_parents: tuple[int, ...], rates: Array) -> CountNode:
        return cls(finite_parents, (), rates, np.zeros((*rates.shape, 0)), np.maximum(rates, SMALLEST))

    @property
    def rates(self) -> Array:
        return self.intercept

    def at(self, configurations: Configurations, n_configurations: int) -> Array:
        """The rate in each configuration."""
        index: int | Ints = 0
        for v, size in zip(self.finite_parents, self.rates.shape, strict=True):
            index = index * size + configurations[v]
        return np.broadcast_to(self.rates.reshape(-1)[index], n_configurations)

    @property
    def never_zero(self) -> bool:
        """Whether no count is ruled out by a rate of 0."""
        return bool((self.rates > 0.0).all())

    def weight(self, counts: Array, rates: Array) -> tuple[Array, Array]:
        """ln p(counts) at rates, [configurations, rows], and the logarithm of the variance that a Gaussian would have."""
        return log_poisson(counts, rates), np.log(np.maximum(rates, SMALLEST))


@dataclass(frozen=True, eq=False)
class DensityNode(CountNode):
    """A number of any distribution whose value is known before: all that is held of p(n | u) is its logarithm at that value.

    It must be observed, or barren.

    >>> node = DensityNode.of((0,), np.log([0.5, 0.25]))
    >>> np.exp(node.weight(np.zeros(1), node.at({0: np.array([0, 1])}, 2)[:, None])[0]).tolist()
    [[0.5], [0.25]]
    """

    @classmethod
    def of(cls, finite_parents: tuple[int, ...], logs: Array) -> DensityNode:
        return cls(finite_parents, (), logs, np.zeros((*logs.shape, 0)), np.ones(logs.shape))

    @property
    def never_zero(self) -> bool:
        return bool((self.intercept > -np.inf).all())

    def weight(self, counts: Array, logs: Array) -> tuple[Array, Array]:
        shape = (len(logs), len(counts))
        return np.broadcast_to(logs, shape), np.zeros(shape)


class HiddenCount(ModelError):
    """A count that is not observed, but has a real child that matters: by their numbers."""

    def __init__(self, count: int, child: int) -> None:
        super().__init__(f"the count {count} of the Gaussian node {child} is not observed")
        self.count, self.child = count, child


class CountedGaussians(Gaussians):
    """Gaussian nodes and counts.

    >>> answer = CountedGaussians([CountNode.of((0,), np.array([0.5, 3.0]))])
    >>> answer = answer.condition([0], [], {0: np.array([2.0])}, {0: np.array([0, 1])}, 2)
    >>> np.exp(answer.log_density[:, 0]).round(6)
    array([0.075816, 0.224042])
    """

    def condition(
        self,
        members: Sequence[int],
        targets: Sequence[int],
        values: Mapping[int, Array],
        configurations: Configurations,
        n_configurations: int = 1,
        *,
        joint: bool = True,
    ) -> Conditioned:
        seen = [m for m in members if m in values and isinstance(self.nodes[m], CountNode)]
        rest = [m for m in members if m not in seen]
        self._refuse_hidden(rest, values)
        if rest:
            answer = super().condition(rest, targets, values, configurations, n_configurations, joint=joint)
            answer = answer._replace(root=self._without_stand_ins(answer.root, targets))
        else:
            answer = _nothing(n_configurations, max(len(v) for v in values.values()))
        for m in seen:
            answer = self._weighed(answer, m, values[m], configurations)
        return answer

    def _without_stand_ins(self, root: Array, targets: Sequence[int]) -> Array:
        """The root of the targets' covariance, in which counts of rate 0 have no variance after all."""
        counts = np.array([isinstance(self.nodes[t], CountNode) for t in targets], bool)
        return np.where(counts & (np.abs(root) < 2.0 * np.sqrt(SMALLEST)), 0.0, root)

    def _refuse_hidden(self, members: Sequence[int], values: Mapping[int, Array]) -> None:
        for m in members:
            for p in self.nodes[m].real_parents:
                if p not in values and isinstance(self.nodes[p], CountNode):
                    raise HiddenCount(p, m)

    def _weighed(self, answer: Conditioned, m: int, counts: Array, configurations: Configurations) -> Conditioned:
        """The same with the probability of observed counts.

        `distance` is what a log-density has beside −½ ln 2πv of each node: of a count there is no other use for it.
        """
        node = self.nodes[m]
        assert isinstance(node, CountNode)
        rates = node.at(configurations, len(answer.trouble))
        lost = np.isnan(rates)
        trouble = np.where(lost & (answer.trouble == FINE), m, answer.trouble)
        rates = np.where(lost, 1.0, rates)[:, None]
        logs, log_variance = node.weight(counts, rates)
        logs = np.where((trouble == FINE)[:, None], logs, np.nan)
        distance = answer.distance - 2.0 * logs - LOG_2PI - log_variance
        return answer._replace(log_density=answer.log_density + logs, distance=distance, trouble=trouble)


@dataclass(frozen=True, eq=False)
class Counted(Hybrid):
    """A finite network with Gaussian nodes and counts below it, in topological order."""

    @cached_property
    def gaussians(self) -> Gaussians:
        return CountedGaussians(self.nodes)

    @cached_property
    def never_zero(self) -> bool:
        """Whether no count is ruled out by a rate of 0."""
        return all(n.never_zero for n in self.nodes if isinstance(n, CountNode))

    @cached_property
    def all_possible(self) -> bool:
        """Whether no state is ruled out by another, or by a count."""
        return self.never_zero and bool((self.network.tables > 0).all())

    @cached_property
    def complete(self) -> bool:
        """Whether every configuration of every node has parameters, by which every number is possible."""
        return self.never_zero and not any(np.isnan(n.variance).any() for n in self.nodes)


def _nothing(n_configurations: int, rows: int) -> Conditioned:
    """No Gaussian node: nothing is asked for, and nothing is seen but counts."""
    none = np.zeros((n_configurations, rows))
    fine = np.full(n_configurations, FINE, np.int64)
    return Conditioned(np.zeros((n_configurations, rows, 0)), np.zeros((n_configurations, 0, 0)), none, none, fine)


def log_poisson(n: Array, rates: Array) -> Array:
    """ln p(n) at a rate λ: n ln λ − λ − ln n!; at the rate 0 only n = 0 is possible.

    >>> log_poisson(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    array([  0., -inf])
    """
    from scipy.special import gammaln, xlogy

    return np.asarray(xlogy(n, rates) - rates - gammaln(n + 1.0))
