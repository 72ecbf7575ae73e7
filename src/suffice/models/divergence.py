"""Entropy and Kullback–Leibler divergence of networks, and of data as the distribution of its rows.

    H(p)      = − E_p[ln p]
    KL(p‖q)   = E_p[ln p] − E_p[ln q],    E_p[ln q] = Σᵢ E_p[ln q(xᵢ | parents of xᵢ in q)]

so each term needs only p's joint of one family of q. Maximum likelihood is the q of a graph with the least KL(data‖q).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.distinct import entropy_of_rows
from suffice.errors import ModelError, TooLarge, listed
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.families.logistic_cpd import LogisticCpd
from suffice.inference.posterior import conditional
from suffice.models.bayes_net import BayesNet
from suffice.models.compiled import tabled
from suffice.variables import Count, Finite

Array = npt.NDArray[np.float64]

MAX_MIXTURE = 200_000
"""A hybrid divergence adds one Gaussian per configuration of the finite parents; more than this are refused."""


def marginal(bn: BayesNet, names: Sequence[str]) -> Array:
    """The joint distribution of a few finite variables, axes in the order of `names`, by elimination among their ancestors.

    >>> x, y = Finite("x", ["a", "b"]), Finite("y", ["a", "b"])
    >>> marginal(BayesNet("x -> y", {"x": [0.5, 0.5], "y": [[1, 0], [0.5, 0.5]]}, [x, y]), ["y"])
    array([0.75, 0.25])
    """
    compiled = bn.compiled
    for name in names:
        if name not in compiled.index:
            raise ModelError(f"{name!r} is real: only finite variables have a joint table")
    return conditional(compiled.network, [compiled.index[n] for n in names], compiled.network.unobserved())


def entropy(x: Any) -> float:
    """H in nats: of a network, exactly; of data, that of the distribution of its rows (all columns finite).

    >>> round(entropy({"x": ["a", "b"]}), 6)
    0.693147
    """
    if not isinstance(x, BayesNet):
        return entropy_of_rows(x)
    return -_expected_log(x, x)


def kl(p: Any, q: BayesNet) -> float:
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
    own = _expected_log(p, p)
    return max(own - _expected_log(p, q), 0.0)


def _same_variables(p: BayesNet, q: BayesNet) -> None:
    differing = sorted(set(p) ^ set(q))
    if differing:
        raise ModelError(f"the two networks speak of different variables: {listed(differing)}")
    for name, v in p.variables.items():
        w = q.variables[name]
        if type(v) is not type(w) or (isinstance(v, Finite) and isinstance(w, Finite) and set(v.states) != set(w.states)):
            raise ModelError(f"the two networks differ in what {name!r} is: {v!r} and {w!r}")


def _expected_log(p: BayesNet, q: BayesNet) -> float:
    """E_p[ln q]."""
    total, real = 0.0, []
    for name in q:
        cpd = q[name]
        if isinstance(cpd, LogisticCpd):
            cpd = tabled(cpd)
        if isinstance(q.variables[name], Count):
            raise ModelError(f"{name!r} is a count: entropies and divergences of counts have no formula here yet")
        if isinstance(cpd, Table):
            weights = marginal(p, [*cpd.parents, name])
            probs = _in_states_of(p, q, [*cpd.parents, name], cpd.probs)
            held = weights > 0
            with np.errstate(divide="ignore"):
                total += float(weights[held] @ np.log(probs[held]))
        else:
            real.append(name)
    if not real or np.isneginf(total):
        return total
    return total + (_expected_log_own(p, real) if p is q else _expected_log_real(p, q, real))


def _expected_log_own(p: BayesNet, real: Sequence[str]) -> float:
    """E_p[ln p] of the real nodes: −½ ln(2πe v), averaged over the finite parents."""
    total = 0.0
    for name in real:
        cpd: ConditionalGaussian = p[name]
        weights = marginal(p, [v.name for v in cpd.finite_parents])
        held = weights > 0
        if np.isnan(cpd.variance[held]).any():
            raise ModelError(f"{name!r} has no parameters at some configurations of its parents; fit with a prior")
        total -= 0.5 * float(weights[held] @ (LOG_2PI + 1.0 + np.log(cpd.variance[held])))
    return total


def _expected_log_real(p: BayesNet, q: BayesNet, real: Sequence[str]) -> float:
    """E_p[ln q] of the real nodes: given the finite variables p is Gaussian, so add up over their configurations."""
    total = 0.0
    order = [n for n in p.dag.topological_order if n in set(real)]
    place = {n: i for i, n in enumerate(order)}
    for weight, states in _configurations(p, q, real):
        mean, covariance = _gaussian(p, order, states)
        for name in real:
            cpd: ConditionalGaussian = q[name]
            u = tuple(v.code(states[v.name]) for v in cpd.finite_parents)
            c = np.zeros(len(order))
            c[place[name]] = 1.0
            for parent, b in zip(cpd.real_parents, cpd.coefficients[u], strict=True):
                c[place[parent]] -= b
            v = float(cpd.variance[u])
            if np.isnan(v):
                raise ModelError(f"{name!r} has no parameters at some configurations of its parents; fit with a prior")
            square = float(c @ covariance @ c + (c @ mean - cpd.intercept[u]) ** 2)
            total -= 0.5 * weight * (LOG_2PI + np.log(v) + square / v)
    return total


def _configurations(p: BayesNet, q: BayesNet, real: Sequence[str]) -> Iterator[tuple[float, dict[str, str]]]:
    """Each possible configuration of the finite parents of real nodes, in either network, with its probability under p."""
    names = sorted({v.name for n in real for bn in (p, q) for v in bn[n].finite_parents})
    variables = [v for n in names if isinstance(v := p.variables[n], Finite)]
    size = int(np.prod([v.n_states for v in variables], dtype=object)) if variables else 1
    if size > MAX_MIXTURE:
        raise TooLarge(f"this divergence runs over {size:,} configurations of {listed(names)}; the limit is {MAX_MIXTURE:,}")
    weights = marginal(p, names)
    for index in np.argwhere(weights > 0):
        yield float(weights[tuple(index)]), {v.name: v.states[int(i)] for v, i in zip(variables, index, strict=True)}


def _gaussian(p: BayesNet, order: Sequence[str], states: dict[str, str]) -> tuple[Array, Array]:
    """Mean and covariance of the real nodes given the finite ones, built up along the order: y = a + b·x + noise."""
    k = len(order)
    mean, covariance = np.zeros(k), np.zeros((k, k))
    place = {n: i for i, n in enumerate(order)}
    for i, name in enumerate(order):
        cpd: ConditionalGaussian = p[name]
        u = tuple(v.code(states[v.name]) for v in cpd.finite_parents)
        b = np.zeros(k)
        for parent, coefficient in zip(cpd.real_parents, cpd.coefficients[u], strict=True):
            b[place[parent]] = coefficient
        mean[i] = cpd.intercept[u] + b @ mean
        row = b @ covariance
        covariance[i, :], covariance[:, i] = row, row
        covariance[i, i] = row @ b + cpd.variance[u]
    return mean, covariance


def _in_states_of(p: BayesNet, q: BayesNet, names: Sequence[str], table: Array) -> Array:
    """A table of q with its axes in p's order of states."""
    for axis, name in enumerate(names):
        mine, theirs = p.variables[name], q.variables[name]
        if isinstance(mine, Finite) and isinstance(theirs, Finite) and mine.states != theirs.states:
            table = np.take(table, [theirs.code(s) for s in mine.states], axis=axis)
    return table
