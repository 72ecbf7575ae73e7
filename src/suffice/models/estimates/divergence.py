"""Entropy and Kullback–Leibler divergence of networks, and of data as the distribution of its rows.

    H(p)      = − E_p[ln p]
    KL(p‖q)   = E_p[ln p] − E_p[ln q],    E_p[ln q] = Σᵢ E_p[ln q(xᵢ | parents of xᵢ in q)]

Each term is q's log-likelihood of what p expects of one row, so it needs only p's joint of one family of q. Maximum likelihood is
the q of a graph with the least KL(data‖q); `project` finds it for networks, too.

The entropy of some of a network's variables, the others summed out, follows by the chain rule along the graph:

    H(x₁ … xₙ) = Σᵢ H(xᵢ | x₁ … xᵢ₋₁) = Σᵢ H(xᵢ | boundary of xᵢ)

Where all parents are among the variables, they are the boundary, and the term is that of p's own distribution. Otherwise it is
what separates xᵢ from the variables before it: in the moral graph of their ancestors, the first ones that are met on the ways
from xᵢ through what is summed out (Lauritzen 1996, Graphical Models, p. 48).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.blas import one_blas_thread
from suffice.engines.scan import scan
from suffice.errors import DataError, ModelError, listed
from suffice.families.conditional_gaussian import normal_entropy
from suffice.families.protocol.family import Array, Cpd
from suffice.families.regression import ROUNDING
from suffice.models.bayes_net import BayesNet
from suffice.models.estimates.expected import Expected, closed_form, marginal, normals
from suffice.remedies import WITH_BINS
from suffice.variables import Finite, Real, is_whole

if TYPE_CHECKING:
    from suffice.argument_types import RowsLike


@one_blas_thread
def entropy(x: BayesNet | RowsLike) -> float:
    """H in nats: of a network, exactly; of data, that of the distribution of its rows (no real columns).

    >>> round(entropy({"x": ["a", "b"]}), 6)
    0.693147
    """
    if not isinstance(x, BayesNet):
        return entropy_of_rows(x)
    return float(sum(entropy_given_parents(x, name) for name in x))


@one_blas_thread
def kl(p: BayesNet | RowsLike, q: BayesNet) -> float:
    """KL(p‖q) in nats, `p` a network or data; infinite where p can be what q rules out.

    >>> x = Finite("x", ["a", "b"])
    >>> p, q = BayesNet("x", {"x": [0.5, 0.5]}, [x]), BayesNet("x", {"x": [0.0, 1.0]}, [x])
    >>> kl(p, p), kl(p, q), kl(q, p)
    (0.0, inf, 0.6931471805599453)
    """
    if not isinstance(q, BayesNet):
        raise ModelError("the second argument of kl is a network")
    if not isinstance(p, BayesNet):
        rows = q.rows(p)
        return q.cross_entropy(rows) - entropy_of_rows(rows)
    _same_variables(p, q)
    expected, total = Expected(p), 0.0
    for name in q:
        if p[name] is not q[name]:
            cross = -_expected_log(expected, q, name)
            if np.isinf(cross):
                return float("inf")
            total += cross - entropy_given_parents(p, name)
    return max(total, 0.0)


def entropy_of_rows(data: Any) -> float:
    """H(P̂) in nats, P̂ the distribution that gives each row its share of the weight.

    Memory: the codes and the weight of each distinct row; rows are read a block at a time.

    >>> round(entropy_of_rows({"x": ["a", "b", "b"], "y": ["u", "v", "v"]}), 6)
    0.636514
    """
    rows = scan(data)
    number = next((n for n, v in rows.schema.items() if not isinstance(v, Finite) and not is_whole(v)), None)
    if number is not None:
        raise DataError(f"the entropy of rows needs columns without real numbers, and {number!r} is real; cut it {WITH_BINS}")
    rows.require_complete(rows.schema)
    return entropy_of_weights(rows.distinct().weights)


def entropy_of_weights(weights: npt.NDArray[np.float64]) -> float:
    """H in nats of the distribution that weights make, Σ w = W: ln W − Σ w ln w / W.

    >>> round(entropy_of_weights(np.array([2.0, 2.0, 0.0])), 6)
    0.693147
    """
    w = weights[weights > 0]
    if not len(w):
        raise DataError("there are no rows, and so no distribution of them")
    # Exact sums, as the order of the rows is that of their states, which one source of the data has otherwise than another.
    share = w / math.fsum(w.tolist())
    return -math.fsum((share * np.log(share)).tolist())


def _same_variables(p: BayesNet, q: BayesNet) -> None:
    differing = sorted(set(p) ^ set(q))
    if differing:
        raise ModelError(f"the two networks speak of different variables: {listed(differing)}")
    for name, v in p.variables.items():
        w = q.variables[name]
        if type(v) is not type(w) or (isinstance(v, Finite) and isinstance(w, Finite) and set(v.states) != set(w.states)):
            raise ModelError(f"the two networks differ in what {name!r} is: {v!r} and {w!r}")


def _expected_log(expected: Expected, q: BayesNet, name: str) -> float:
    """E_p[ln q(x | parents)], the states in q's order."""
    cpd: Cpd = closed_form(q[name])
    statistic = expected.answer(cpd.needs)
    return cpd.log_likelihood(statistic.recoded({v.name: v for v in (*cpd.parent_variables, cpd.child) if isinstance(v, Finite)}))


class NoEntropy(ModelError):
    """An entropy without a formula: of a mixture of densities."""


class Term(NamedTuple):
    """H(x | boundary), in nats."""

    boundary: frozenset[str]
    entropy: float


def entropy_terms(p: BayesNet, names: Iterable[str]) -> dict[str, Term]:
    """The terms of the chain rule of H(names), each node's; all other nodes of `p` are summed out.

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
    terms: dict[str, Term] = {}
    before: set[str] = set()
    for name in order:
        parents = set(p.dag.parents(name))
        before |= {name, *p.dag.ancestors(name)} if not parents <= kept else {name}
        terms[name] = (
            Term(frozenset(parents), entropy_given_parents(p, name)) if parents <= kept else _marginal(p, name, kept, before)
        )
    return terms


def entropy_given_parents(p: BayesNet, name: str) -> float:
    """H_p(x | parents of x): of a density, where x is real.

    >>> x = Finite("x", ["a", "b"])
    >>> round(entropy_given_parents(BayesNet("x", {"x": [0.5, 0.5]}, [x]), "x"), 6)
    0.693147
    """
    return closed_form(p[name]).entropy(partial(marginal, p))


def _marginal(p: BayesNet, name: str, kept: set[str], before: set[str]) -> Term:
    """H(x | the kept ones of `before`), where some parents of x are summed out."""
    boundary, summed = _surroundings(p, name, kept, before)
    if isinstance(p.variables[name], Finite):
        joint = marginal(p, [*sorted(boundary), name])
        given = joint.sum(axis=-1, keepdims=True)
        ratio = np.divide(joint, given, out=np.ones_like(joint), where=joint > 0)
        return Term(frozenset(boundary), -float(np.sum(joint * np.log(ratio))))
    return Term(frozenset(boundary), _number_entropy(p, name, boundary, summed))


def _surroundings(p: BayesNet, name: str, kept: set[str], before: set[str]) -> tuple[set[str], set[str]]:
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


def _number_entropy(p: BayesNet, name: str, boundary: set[str], summed: set[str]) -> float:
    """H(x | boundary) of a real x: Gaussian in each configuration of the finite variables, if only reals are summed out."""
    siblings = {n for n in boundary if not summed.isdisjoint(p.dag.parents(n))}
    mixing = sorted(n for n in {name, *summed, *siblings} if not isinstance(p.variables[n], Real))
    if mixing:
        raise NoEntropy(
            f"with {listed(sorted(summed))} summed out, {name!r} is a mixture over {listed(mixing)}, and the entropy of a "
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
            f"the variance of {name!r} given {listed(sorted(boundary))} is lost in rounding, and so is its entropy"
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
