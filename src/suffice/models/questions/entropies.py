"""Entropies of a network's variables, of each node and of some of them together.

The entropy of some of a network's variables, the others summed out, follows by the chain rule along the graph:

    H(x₁ … xₙ) = Σᵢ H(xᵢ | x₁ … xᵢ₋₁) = Σᵢ H(xᵢ | boundary of xᵢ)

Where all parents are among the variables, they are the boundary, and the term is that of p's own distribution. Otherwise it is
what separates xᵢ from the variables before it: in the moral graph of their ancestors, the first ones that are met on the ways
from xᵢ through what is summed out (Lauritzen 1996, Graphical Models, p. 48).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import NamedTuple

import numpy as np

from suffice.errors import ModelError, listing
from suffice.exponential.normals.lines import ROUNDING
from suffice.families.conditional_gaussian import normal_entropy
from suffice.families.protocol.family import Array
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions.expected import closed_form, marginal, normals
from suffice.variables import Finite, Real


class NoEntropy(ModelError):
    """An entropy without a formula: of a mixture of densities."""


class EntropyTerm(NamedTuple):
    """H(x | boundary), in nats."""

    boundary: frozenset[str]
    entropy: float


def entropy_terms(p: NetworkParts, names: Iterable[str]) -> dict[str, EntropyTerm]:
    """The terms of the chain rule of H(names), each node's; all other nodes of `p` are summed out.

    >>> from suffice import BayesNet
    >>> x, y = Finite("x", ["a", "b"]), Finite("y", ["a", "b"])
    >>> p = BayesNet("x -> y", {"x": [0.5, 0.5], "y": [[1, 0], [0.5, 0.5]]}, [x, y])
    >>> {n: (set(t.boundary), round(t.entropy, 4)) for n, t in entropy_terms(p, ["x", "y"]).items()}
    {'x': (set(), 0.6931), 'y': ({'x'}, 0.3466)}
    >>> round(entropy_terms(p, ["y"])["y"].entropy, 4)
    0.5623
    """
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
        else:
            terms[name] = _marginal(p, name, kept, before)
    return terms


def entropy_given_parents(p: NetworkParts, name: str) -> float:
    """H_p(x | parents of x): of a density, where x is real.

    >>> from suffice import BayesNet
    >>> x = Finite("x", ["a", "b"])
    >>> round(entropy_given_parents(BayesNet("x", {"x": [0.5, 0.5]}, [x]), "x"), 6)
    0.693147
    """
    return closed_form(p[name]).entropy(partial(marginal, p))


def _marginal(p: NetworkParts, name: str, kept: set[str], before: set[str]) -> EntropyTerm:
    """H(x | the kept ones of `before`), where some parents of x are summed out."""
    boundary, summed = _surroundings(p, name, kept, before)
    if isinstance(p.variables[name], Finite):
        joint = marginal(p, [*sorted(boundary), name])
        given = joint.sum(axis=-1, keepdims=True)
        ratio = np.divide(joint, given, out=np.ones_like(joint), where=joint > 0)
        return EntropyTerm(frozenset(boundary), -float(np.sum(joint * np.log(ratio))))
    return EntropyTerm(frozenset(boundary), _number_entropy(p, name, boundary, summed))


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
    mixing = sorted(n for n in {name, *summed, *siblings} if not isinstance(p.variables[n], Real))
    if mixing:
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
    try:
        left = _last_residual(scatter)
    except np.linalg.LinAlgError:
        raise NoEntropy(
            f"the variance of {name!r} given {listing(sorted(boundary))} is lost in rounding, and so is its entropy"
        ) from None
    return float(weights[held] @ normal_entropy(left))


def _last_residual(covariances: Array) -> Array:
    """The variance of the last number given those before it: the last pivot, once all are scaled to unit diagonal."""
    variances = np.einsum("gii->gi", covariances)
    scale = np.sqrt(variances)
    pivot = np.linalg.cholesky(covariances / scale[:, :, None] / scale[:, None, :])[:, -1, -1] ** 2
    if np.any(pivot < ROUNDING):
        raise np.linalg.LinAlgError
    return np.asarray(pivot * variances[:, -1])
