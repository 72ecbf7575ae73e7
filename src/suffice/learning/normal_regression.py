"""The joint normal distribution of a network's real nodes, and the regression of what is missing on what is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.blas import one_blas_thread
from suffice.errors import DataError, FitError, listed
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.models.bayes_net import BayesNet

Floats = npt.NDArray[np.float64]


class Fit(NamedTuple):
    """What some variables of a normal distribution say about the others."""

    gain: Floats
    """Coefficients of the others on them,"""
    left: Floats
    """the covariance that is left,"""
    whitening: Floats
    """what makes deviations of them independent, with variance 1,"""
    log_scale: float
    """and ln of its determinant."""


def joint_normal(model: BayesNet, names: Sequence[str], at: Mapping[str, int] | None = None) -> tuple[Floats, Floats]:
    """Mean and covariance of the real nodes, given the states `at` of their finite parents, if they have any.

    Each node gets what its parents pass on, and its own variance.
    """
    number = {n: i for i, n in enumerate(names)}
    mean, root = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for name in model.dag.topological_order:
        cpd = model[name]
        if not isinstance(cpd, ConditionalGaussian):
            continue
        u = tuple((at or {})[p.name] for p in cpd.finite_parents)
        i, parents = number[name], [number[p] for p in cpd.real_parents]
        mean[i] = cpd.intercept[u] + cpd.coefficients[u] @ mean[parents]
        root[i] = cpd.coefficients[u] @ root[parents]
        root[i, i] += np.sqrt(cpd.variance[u])
    return mean, root @ root.T


def regression(covariance: Floats, shown: npt.NDArray[np.bool_], names: Sequence[str]) -> Fit:
    """The regression of what is not shown on what is, with all variables scaled to variance 1 on the way.

    >>> fit = regression(np.array([[4.0, 1.0], [1.0, 1.0]]), np.array([True, False]), ["x", "y"])
    >>> fit.gain, fit.left
    (array([[0.25]]), array([[0.75]]))
    """
    from scipy.linalg.lapack import dtrtri

    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / scale[:, None] / scale
    across = correlation[np.ix_(~shown, shown)]
    try:
        root = np.linalg.cholesky(correlation[np.ix_(shown, shown)])
    except np.linalg.LinAlgError:
        some = listed([n for n, s in zip(names, shown, strict=True) if s])
        raise FitError(f"the covariance of {some} is singular under the current network: leave out what is determined") from None
    with one_blas_thread:  # once more, as scipy's library may have come by the import above
        inverse = dtrtri(root, lower=1)[0] if len(root) else root
    unscaled = across @ inverse.T @ inverse
    left = correlation[np.ix_(~shown, ~shown)] - unscaled @ across.T
    out, into = scale[~shown], scale[shown]
    log_scale = float(np.log(np.diag(inverse)).sum() - np.log(into).sum())
    return Fit(unscaled * out[:, None] / into, left * out[:, None] * out, inverse.T / into[:, None], log_scale)


def constant(name: str) -> DataError:
    """Why a column cannot be normal."""
    return DataError(f"all values of {name!r} are the same, and a constant has no density: leave the column out")
