"""What should be known of hidden numbers after a fit: variances that fell to zero, parameters that the data does not identify.

Given the states, observed columns are normal. Their means and covariances are functions of the parameters, and so are all that
data can tell: parameters along which none of these changes are not identified (Fisher 1966). With x = a + B x + e, A = (I − B)⁻¹:

    ∂ mean/∂a_i   A_i            ∂ Cov/∂v_i    A_i A_iᵀ
    ∂ mean/∂B_ij  A_i mean_j     ∂ Cov/∂B_ij   A_i Cov_j + (A_i Cov_j)ᵀ
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.errors import FitError, listing
from suffice.errors.remedies import NORMAL_PRIOR
from suffice.incomplete.components import NodeFamily, Theta
from suffice.incomplete.numbers.patterns import digits_of
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.models.parts.parameter_covariance import n_angles
from suffice.statistics.counts import n_configurations, sizes
from suffice.variables import Finite

MOST = 2**21
"""Derivatives that are looked at; of larger graphs only the numbers of parameters and moments are compared."""

SMALL = 1e-2
"""A variance below this share of the column's is looked at twice."""

ROUNDING = 1e-8
"""Directions along which moments change by no more, as a share of the largest change, change nothing."""


def doubts(problem: ParameterProblem, theta: Theta, statistic: Any) -> Iterator[str]:
    """What a user should know of hidden numbers, in sentences."""
    conventions = problem.conventions
    if not conventions.names:
        return
    if small := nodes_without_noise(problem, theta, statistic):
        yield (
            f"the variance of {listing(small)} falls to zero, at least to a millionth of the column's: hidden numbers all but "
            f"determine it (a Heywood case); use fewer of them, or a prior such as {NORMAL_PRIOR}"
        )
    if set(conventions.loose) != set(conventions.names) or problem.ties:
        return  # fixed and shared distributions, and priors, identify what the data does not
    free, unknown = _directions(problem, theta)
    if free:
        where = f" of {listing(unknown)}" if unknown else ""
        yield (
            f"the data does not identify {free} direction{'s' if free > 1 else ''} of the parameters{where}: other values "
            "give the observed columns the same distribution; a hidden number needs three children of its own, or links to others"
        )


def nodes_without_noise(problem: ParameterProblem, theta: Theta, statistic: Any) -> list[str]:
    """The nodes with a variance that has come down to the least that is allowed, or is small and still falls with each step of
    EM, which needs ever longer for ever less."""
    found: list[str] = []
    try:
        ahead = problem.maximise(statistic)
    except FitError:  # what would collapse with the next step is not what is asked here
        return found
    for node in (node for node in problem.others if problem.conventions.floor(node)):
        least, whole = problem.conventions.floor(node), problem.units.variance[node.name]
        v, then = theta.lines[node.name].variance / whole, ahead.lines[node.name].variance / whole
        if bool(((v <= least * (1.0 + 1e-9)) | ((v < SMALL) & (then < v * (1.0 - 1e-5)))).any()):
            found.append(node.name)
    return found


def _directions(problem: ParameterProblem, theta: Theta) -> tuple[int, list[str]]:
    """How many directions of the parameters change no moment, besides rotations, and the nodes whose parameters they change."""
    nodes = numbers_near(problem)
    states = tuple({v.name: v for node in nodes for v in node.finite}.values())
    n_seen = sum(node.name not in problem.hidden for node in nodes)
    n_moments = n_configurations(states) * n_seen * (n_seen + 3) // 2
    n_free = sum(len(_free(problem, node)) * node.n_cells for node in nodes)
    names = problem.conventions.names
    classes = [n for n in names if problem.nodes[n].finite]  # of these all numbers are looked at, and two of each are convention
    turned = n_angles(problem.dag, problem.variables, names) + 2 * len(classes)
    if n_moments * n_free > MOST:
        return max(0, n_free - turned - n_moments), []
    J, owner = _derivatives(problem, theta, nodes, states)
    J = J / np.maximum(np.linalg.norm(J, axis=0), 1e-300)
    _, changes, axes = np.linalg.svd(np.linalg.qr(J, mode="r"), full_matrices=True)
    rank = int((changes > ROUNDING * changes.max(initial=0.0)).sum())
    moved = np.abs(axes[rank:]).max(axis=0, initial=0.0) > 1e-3
    return n_free - rank - turned, [] if turned else sorted({n for n, m in zip(owner, moved, strict=True) if m})


def numbers_near(problem: ParameterProblem) -> list[NodeFamily]:
    """The normal nodes that hidden numbers speak of, and numbers beside them."""
    near = set(problem.conventions.names)
    normal = [node for node in problem.nodes.values() if node.normal]
    while more := {r for node in normal if not near.isdisjoint(node.reals) for r in node.reals} - near:
        near |= more
    order = problem.dag.topological_order
    return sorted((node for node in normal if node.name in near), key=lambda node: order.index(node.name))


def means_and_covariance(problem: ParameterProblem, theta: Theta) -> tuple[list[str], Array, Array]:
    """The numbers near hidden ones, their means and their covariance, where no states bear on them."""
    nodes = numbers_near(problem)
    names = [node.name for node in nodes]
    _, mean, covariance = _joint(theta, nodes, dict.fromkeys(names, 0), {n: i for i, n in enumerate(names)})
    return names, mean, covariance


def _free(problem: ParameterProblem, node: NodeFamily) -> list[int]:
    """The parameters of a node that are free: coefficients by number, then the intercept and the variance."""
    k, known = len(node.reals) - 1, node.name in problem.conventions.names and not node.finite
    return list(range(k)) if known else list(range(k + 2))


def _derivatives(
    problem: ParameterProblem, theta: Theta, nodes: list[NodeFamily], states: tuple[Finite, ...]
) -> tuple[Array, list[str]]:
    """∂ moments of each joint state / ∂ parameters, and the node of each parameter."""
    place = {node.name: i for i, node in enumerate(nodes)}
    seen = [i for i, node in enumerate(nodes) if node.name not in problem.hidden]
    pairs = np.tril_indices(len(seen))
    columns = {
        (node.name, key, j): c
        for c, (node, key, j) in enumerate((n, g, j) for n in nodes for g in range(n.n_cells) for j in _free(problem, n))
    }
    blocks = []
    for digits in digits_of(sizes(states)).T:
        at = dict(zip((v.name for v in states), digits.tolist(), strict=True))
        keys = {node.name: sum(node.strides[v.name] * at[v.name] for v in node.finite) for node in nodes}
        A, mean, cov = _joint(theta, nodes, keys, place)
        block = np.zeros((len(seen) + len(pairs[0]), len(columns)))
        for node in nodes:
            i, k = place[node.name], len(node.reals) - 1
            for j in _free(problem, node):
                parent = place[node.reals[j]] if j < k else -1
                by_mean = A[:, i] * (mean[parent] if j < k else 1.0 if j == k else 0.0)
                half = np.outer(A[:, i], cov[parent] if j < k else A[:, i] * (0.5 if j > k else 0.0))
                by_cov = (half + half.T)[np.ix_(seen, seen)][pairs]
                block[:, columns[node.name, keys[node.name], j]] = np.concatenate([by_mean[seen], by_cov])
        blocks.append(block)
    return np.concatenate(blocks), [name for name, _, _ in columns]


def _joint(theta: Theta, nodes: list[NodeFamily], keys: dict[str, int], place: dict[str, int]) -> tuple[Array, Array, Array]:
    """(I − B)⁻¹, the means and the covariance of all nodes at a configuration."""
    n = len(nodes)
    B, a, v = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    for i, node in enumerate(nodes):
        line, key = theta.lines[node.name], keys[node.name]
        a[i], v[i] = line.intercept[key], line.variance[key]
        B[i, [place[r] for r in node.reals[:-1]]] = line.coefficients[key]
    A = np.asarray(np.linalg.inv(np.eye(n) - B), np.float64)
    return A, A @ a, (A * v) @ A.T
