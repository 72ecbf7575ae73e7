"""What a network expects of one row: E_p[T], the statistic that the family of any node under any parents asks for.

It is what the gathered statistics of ever more rows of the network, divided by their number, tend to. So it stands wherever
data can: maximum likelihood of it is the projection of p onto a graph, and q's log-likelihood of it is E_p[ln q].

Given the finite variables, real nodes are linear in their parents: their means and covariances follow along the graph, and are
pooled over the configurations of the finite variables. That holds with counts among the parents as well, whose variance is
their rate.

The entropy of some of a network's variables, the others summed out, follows by the chain rule along the graph:

    H(x₁ … xₙ) = Σᵢ H(xᵢ | x₁ … xᵢ₋₁) = Σᵢ H(xᵢ | boundary of xᵢ)

Where all parents are among the variables, they are the boundary, and the term is that of p's own distribution. Otherwise it is
what separates xᵢ from the variables before it: in the moral graph of their ancestors, the first ones that are met on the ways
from xᵢ through what is summed out (Lauritzen 1996, Graphical Models, p. 48).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Finite, Real
from suffice.errors import ModelError, TooLarge, listing
from suffice.families.conditional_gaussian import normal_entropy
from suffice.families.protocol.family import Array, Cpd
from suffice.models.parts.closed_forms import advising, as_closed_form, words
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions.exact import above, reduce_network
from suffice.numerics.exponential.normals.lines import ROUNDING
from suffice.numerics.inference.finite.questions import posterior
from suffice.statistics import Counts, Moments, Request
from suffice.statistics.counts import RowFormula, describe, n_configurations, sizes
from suffice.statistics.moments import Spread, pool_spreads

MAX_MIXTURE = 200_000
"""Moments are pooled over the configurations of the finite variables they depend on; more than this are refused."""
MAX_NUMBERS = 2**26
"""Numbers in all covariances together: 512 MiB."""
SHARED = 2**22
"""Covariances of all real nodes together that are small enough to be made once and kept."""
LEAST = 1e-290
"""A less probable configuration has no weight: its share of a scatter would fall below the smallest double."""


def marginal(bn: NetworkParts, names: Sequence[str]) -> Array:
    """The joint distribution of a few finite variables, axes in the order of `names`, by elimination among their ancestors."""
    for name in names:
        if name not in bn.compiled.index:
            raise ModelError(f"{name!r} is real: only finite variables have a joint table")
    with advising("draw rows instead, bn.sample(100_000), and take them in the place of the network"):
        compiled = reduce_network(bn, names).compiled
    network, targets = compiled.network, [compiled.index[n] for n in names]
    return posterior(network, targets, network.no_evidence(), everywhere=False).probs


class Normals(NamedTuple):
    """Means [g, k] and covariances [g, k, k] of numbers, in each configuration g of some finite variables."""

    finite: tuple[Finite, ...]
    numbers: tuple[str, ...]
    means: Array
    covariances: Array


class Expected:
    """The expected statistics of one row of a network."""

    def __init__(self, p: NetworkParts) -> None:
        self.p = p

    def answer(self, request: Request) -> Counts | Moments:
        """The counts or moments that a family asks for, of weight 1."""
        return self.moments(request.finite, request.real, request.derived) if request.real else self.counts(request.finite)

    def counts(self, names: Sequence[str]) -> Counts:
        return Counts(finite_variables(self.p, names), marginal(self.p, names))

    def moments(self, finite: Sequence[str], numbers: Sequence[str], derived: Sequence[RowFormula] = ()) -> Moments:
        """E[1], E[x] and the centred scatter of numbers in each configuration of finite variables that can be, and E[f(x)] of
        what is derived from them."""
        found = self._normals(numbers)
        variables = finite_variables(self.p, [*finite, *(v.name for v in found.finite if v.name not in finite)])
        _check_mixture(variables, len(numbers))
        weights = marginal(self.p, [v.name for v in variables])
        codes = np.argwhere(weights > LEAST)
        w = weights[tuple(codes.T)].reshape(-1)
        place = {v.name: i for i, v in enumerate(variables)}
        at = _flat(codes[:, [place[v.name] for v in found.finite]], found.finite)
        keys, group = np.unique(_flat(codes[:, : len(finite)], variables[: len(finite)]), return_inverse=True)
        columns = np.array([found.numbers.index(n) for n in numbers])
        means = found.means[at[:, None], columns]
        covariances = found.covariances[at[:, None, None], columns[:, None], columns]
        if not (np.isfinite(means).all() and np.isfinite(covariances).all()):
            raise self._no_moments_error(numbers, found, at)
        parts = Spread(w, means, np.zeros_like(means), w[:, None, None] * covariances)
        weight, mean, left, scatter = pool_spreads(parts, group, len(keys))
        each = []
        for d in derived:  # E[f(x)] of a column in each configuration
            cpd: Any = closed_form(self.p[d.column])
            expected = cpd.mean_of(d)[tuple(codes[:, place[v.name]] for v in cpd.finite_parents)]
            each.append(np.bincount(group, w * np.broadcast_to(expected, len(codes)), len(keys)))
        sums = np.array(each, np.float64).reshape(len(each), len(keys)).T
        own = variables[: len(finite)]
        return Moments(own, tuple(numbers), keys, weight, mean, scatter, weight, None, left, tuple(derived), sums)

    def _normals(self, numbers: Sequence[str]) -> Normals:
        """The numbers with their ancestors among numbers; all numbers of the network at once, where that is no effort."""
        if self._all is not None and set(numbers) <= set(self._all.numbers):
            return self._all
        needed = above(self.p.dag, numbers)
        return normals(self.p, [n for n in self._numbers if n in needed])

    @cached_property
    def _numbers(self) -> tuple[str, ...]:
        return tuple(n for n in self.p.dag.topological_order if not isinstance(self.p.variables[n], Finite))

    @cached_property
    def _all(self) -> Normals | None:
        """All numbers that are linear in their parents; None if there is too much of them."""
        without = {d for n in self.p.compiled.open for d in (n, *self.p.dag.descendants(n))}
        linear = [n for n in self._numbers if n not in without]
        size = n_configurations(_causes(self.p, linear)) * len(linear) ** 2
        return normals(self.p, linear) if size <= SHARED else None

    def _no_moments_error(self, numbers: Sequence[str], found: Normals, at: npt.NDArray[np.intp]) -> ModelError:
        """Which number has no mean or variance: the first on the way to those that are asked for."""
        needed = above(self.p.dag, numbers)
        for k, name in enumerate(found.numbers):
            means, variances = found.means[at, k], found.covariances[at, k, k]
            wrong = ~(np.isfinite(means) & np.isfinite(variances))
            if wrong.any() and name in needed:
                where = f" at {describe(int(at[np.argmax(wrong)]), found.finite)}" if found.finite else ""
                if self.p[name].undefined.any():
                    return ModelError(f"{name!r} has no parameters{where}: too few rows had it; fit with a prior")
                return ModelError(f"the mean or variance of {name!r}{where} is beyond the largest double; rescale the columns")
        return ModelError(f"the covariances of {listing(numbers)} are beyond the largest double; rescale the columns")


def normals(p: NetworkParts, numbers: Sequence[str]) -> Normals:
    """Means and covariances of numbers, in topological order, along the graph: y = a + b·x + noise. Parents among numbers that
    are not listed are taken for constants 0."""
    finite = _causes(p, numbers)
    _check_mixture(finite, len(numbers))
    groups, k = n_configurations(finite), len(numbers)
    codes = np.indices(sizes(finite)).reshape(len(finite), groups)
    place = {n: i for i, n in enumerate(numbers)}
    row = {v.name: codes[i] for i, v in enumerate(finite)}
    means, covariances = np.zeros((groups, k)), np.zeros((groups, k, k))
    with np.errstate(over="ignore", invalid="ignore"):
        for i, name in enumerate(numbers):
            cpd = closed_form(p[name])
            intercept, coefficients, variance = cpd.as_line()
            u = tuple(row[v.name] for v in cpd.finite_parents)
            parents = [(j, place[parent]) for j, parent in enumerate(cpd.real_parents) if parent in place]
            columns = [at for _, at in parents]
            b = np.broadcast_to(coefficients[u][..., [j for j, _ in parents]], (groups, len(columns)))
            across = np.einsum("gj,gji->gi", b, covariances[:, columns, :i])
            means[:, i] = intercept[u] + np.einsum("gj,gj->g", b, means[:, columns])
            covariances[:, i, :i] = covariances[:, :i, i] = across
            covariances[:, i, i] = variance[u] + np.einsum("gj,gj->g", b, across[:, columns])
    return Normals(finite, tuple(numbers), means, covariances)


def closed_form(cpd: Cpd) -> Cpd:
    """A distribution whose expectations have a formula: as it is, or a regression that is a table, Gaussian or of rates."""
    if cpd.is_open:
        raise ModelError(
            f"{cpd.child.name!r} is a {words(cpd)}, whose expectations have no formula here; draw rows instead, as with "
            "bn.sample(100_000)"
        )
    found: Cpd = as_closed_form(cpd)
    return found


def finite_variables(p: NetworkParts, names: Sequence[str]) -> tuple[Finite, ...]:
    """The variables of these names, which must be finite."""
    return tuple(v for n in names if isinstance(v := p.variables[n], Finite))


def _causes(p: NetworkParts, numbers: Sequence[str]) -> tuple[Finite, ...]:
    """The finite parents of numbers, by name."""
    found = {v.name: v for n in numbers for v in p[n].parent_variables if isinstance(v, Finite)}
    return tuple(found[n] for n in sorted(found))


def _check_mixture(variables: Sequence[Finite], n_numbers: int) -> None:
    size = n_configurations(variables)
    if size > MAX_MIXTURE or size * n_numbers**2 > MAX_NUMBERS:
        raise TooLarge(
            f"these moments run over {size:,} configurations of {listing([v.name for v in variables])} with {n_numbers:,} "
            f"numbers in each; the limit is {MAX_MIXTURE:,} configurations, and {MAX_NUMBERS:,} covariances in all"
        )


def _flat(codes: npt.NDArray[np.intp], variables: Sequence[Finite]) -> npt.NDArray[np.intp]:
    if not variables:
        return np.zeros(len(codes), np.intp)
    return np.asarray(np.ravel_multi_index(tuple(codes.T), sizes(variables)), np.intp)


class NoEntropy(ModelError):
    """An entropy without a formula: of a mixture of densities."""


class EntropyTerm(NamedTuple):
    """H(x | boundary), in nats."""

    boundary: frozenset[str]
    entropy: float


def entropy_terms(p: NetworkParts, names: Iterable[str]) -> dict[str, EntropyTerm]:
    """The terms of the chain rule of H(names), each node's; all other nodes of `p` are summed out."""
    kept = set(names)
    order = [n for n in p.dag.topological_order if n in kept]
    # No finite node has a number for an ancestor (regressions on numbers are refused), so this is an order of the graph, too.
    order.sort(key=lambda n: not isinstance(p.variables[n], Finite))
    terms: dict[str, EntropyTerm] = {}
    before: set[str] = set()
    for name in order:
        parents = set(p.dag.parents(name))
        before |= {name, *p.dag.ancestors(name)} if not parents <= kept else {name}
        if parents <= kept:
            terms[name] = EntropyTerm(frozenset(parents), entropy_given_parents(p, name))
            continue
        boundary, summed = _surroundings(p, name, kept, before)
        if isinstance(p.variables[name], Finite):
            joint = marginal(p, [*sorted(boundary), name])
            ratio = np.divide(joint, joint.sum(axis=-1, keepdims=True), out=np.ones_like(joint), where=joint > 0)
            entropy = -float(np.sum(joint * np.log(ratio)))
        else:
            entropy = _number_entropy(p, name, boundary, summed)
        terms[name] = EntropyTerm(frozenset(boundary), entropy)
    return terms


def entropy_given_parents(p: NetworkParts, name: str) -> float:
    """H_p(x | parents of x): of a density, where x is real."""
    return closed_form(p[name]).entropy(partial(marginal, p))


def _surroundings(p: NetworkParts, name: str, kept: set[str], before: set[str]) -> tuple[set[str], set[str]]:
    """The nearest kept nodes around a node, and the nodes between, in the moral graph of `before`."""
    boundary: set[str] = set()
    between: set[str] = set()
    waiting = [name]
    while waiting:
        node = waiting.pop()
        children = [c for c in p.dag.children(node) if c in before]
        for other in {*p.dag.parents(node), *children, *(q for c in children for q in p.dag.parents(c))} - {name}:
            if other in kept:
                boundary.add(other)
            elif other not in between:
                between.add(other)
                waiting.append(other)
    return boundary, between


def _number_entropy(p: NetworkParts, name: str, boundary: set[str], summed: set[str]) -> float:
    """H(x | boundary) of a real x: Gaussian in each configuration of the finite variables, if only reals are summed out."""
    siblings = {n for n in boundary if not summed.isdisjoint(p.dag.parents(n))}
    if mixing := sorted(n for n in {name, *summed, *siblings} if not isinstance(p.variables[n], Real)):
        raise NoEntropy(
            f"with {listing(sorted(summed))} summed out, {name!r} is a mixture over {listing(mixing)}, and the entropy of a "
            "mixture of densities has no formula"
        )
    order = [n for n in p.dag.topological_order if n in summed | siblings]
    found = normals(p, [*order, name])
    weights = marginal(p, [v.name for v in found.finite]).reshape(-1)
    held = weights > 0
    columns = [i for i, n in enumerate(order) if n in siblings] + [len(order)]
    scatter = found.covariances[held][:, columns][:, :, columns]
    variances = np.einsum("gii->gi", scatter)
    scale = np.sqrt(variances)
    try:
        # the variance of the last number given those before it: the last pivot, once all are scaled to unit diagonal
        pivot = np.linalg.cholesky(scatter / scale[:, :, None] / scale[:, None, :])[:, -1, -1] ** 2
        lost = bool(np.any(pivot < ROUNDING))
    except np.linalg.LinAlgError:
        lost = True
    if lost:
        raise NoEntropy(f"the variance of {name!r} given {listing(sorted(boundary))} is lost in rounding, and so is its entropy")
    return float(weights[held] @ normal_entropy(np.asarray(pivot * variances[:, -1])))
