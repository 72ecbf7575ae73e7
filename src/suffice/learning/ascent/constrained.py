"""The information about parameters that are tied by convention: hidden numbers with parents have mean 0 and variance 1.

Nothing is known along G, the directions in which a hidden number moves and its children make up for it. The convention, with
derivatives K, takes them away: with C any inverse of the information but along G,

    Cov = P C Pᵀ,   P = I − G (K G)⁻¹ K
"""

from __future__ import annotations

import numpy as np

from suffice.errors import FitError
from suffice.families.charts.plain import Array
from suffice.incomplete.components import Theta
from suffice.learning.ascent.coordinates import Atlas
from suffice.learning.ascent.identified import means_and_covariance, numbers_near

STEP = 1e-5
"""Of the unit of a coordinate, or of a hidden number: what is differentiated is smooth, and known to all digits."""


def refuse_classes_above(atlas: Atlas) -> None:
    """Refuse hidden numbers with parents where states bear on numbers near them: their variances are those of mixtures."""
    conventions = atlas.problem.conventions
    if conventions.with_parents and any(node.finite for node in numbers_near(atlas.problem)):
        raise FitError(
            f"the hidden number {conventions.with_parents[0]!r} has parents, and finite variables bear on numbers near it: the "
            "observed information of such a graph is not known yet; resample rows for errors"
        )


def projection(atlas: Atlas, theta: Theta) -> Array:
    """P."""
    names = atlas.problem.conventions.with_parents
    G, K = _free(atlas, theta, names), _constraints(atlas, theta, names)
    return np.asarray(np.eye(atlas.size) - G @ np.linalg.solve(K @ G, K))


def _free(atlas: Atlas, theta: Theta, names: tuple[str, ...]) -> Array:
    """∂ parameters / ∂ (place, logarithm of the scale) of each hidden number."""
    shift, columns = atlas.problem.conventions.shift, []
    for name in names:
        for ahead, back in (((STEP, 1.0), (-STEP, 1.0)), ((0.0, np.exp(STEP)), (0.0, np.exp(-STEP)))):
            there, here = (atlas.vector(shift(theta, name, *move)) for move in (ahead, back))
            columns.append((there - here) / (2.0 * STEP))
    return np.array(columns).T


def _constraints(atlas: Atlas, theta: Theta, names: tuple[str, ...]) -> Array:
    """∂ (mean, variance) of each hidden number / ∂ parameters."""
    problem, origin, cpds = atlas.problem, atlas.vector(theta), atlas.problem.cpds(theta)

    def fixed_moments(vector: Array) -> Array:
        moved = problem.parameters({**cpds, **atlas.cpds(vector)})
        order, mean, covariance = means_and_covariance(problem, moved)
        at = [order.index(n) for n in names]
        return np.stack([mean[at], np.diag(covariance)[at]], axis=1).reshape(-1)

    steps = STEP * atlas.unit
    return np.array([(fixed_moments(origin + h) - fixed_moments(origin - h)) / (2.0 * h.sum()) for h in np.diag(steps)]).T
