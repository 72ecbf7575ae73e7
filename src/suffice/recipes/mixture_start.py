"""Starts of a mixture that a user gives: responsibilities, arrays of parameters, or another run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.errors import FitError, listed
from suffice.families.family import Array
from suffice.learning.mixture_em import Mixture, Parameters
from suffice.learning.mixture_joint import Joint
from suffice.learning.mixture_part import Collapsed
from suffice.learning.mixture_start import Responsibilities
from suffice.recipes.mixture_run import MixtureRun
from suffice.variables import Real, Variable


def given_start(start: Any, mixture: Mixture, variables: Mapping[str, Variable]) -> Parameters:
    """The parameters of a start that the user gave."""
    if isinstance(start, MixtureRun):
        if start.k != mixture.n_classes or dict(start._variables) != dict(variables):
            words = f"{start.k} classes and the columns {listed(start._variables)}"
            raise FitError(f"the run to start from has {words}; they must agree")
        tables = {**start.probs, **start.rates}
        return Parameters(start.weights, _parts(mixture, start.columns, start.means, start.covariances, tables))
    if isinstance(start, (tuple, list)) and len(start) == 3:
        return _from_arrays(start, mixture, variables)
    try:
        r = np.asarray(start, dtype=np.float64)
    except (TypeError, ValueError):
        r = np.zeros(0)
    shape = (mixture.data.n_rows, mixture.n_classes)
    if r.shape != shape:
        raise FitError(f"a start is another run, (weights, means, covariances), or responsibilities of the shape {shape}")
    if not (np.isfinite(r).all() and (r >= 0.0).all() and np.allclose(r.sum(axis=1), 1.0, atol=1e-6)):
        raise FitError("the responsibilities of a row are probabilities that sum to 1")
    try:
        return mixture.started(Responsibilities.of(r, mixture.data))
    except Collapsed as collapse:
        raise FitError(f"these responsibilities are no start: {collapse}") from None


def _from_arrays(start: Any, mixture: Mixture, variables: Mapping[str, Variable]) -> Parameters:
    reals = tuple(n for n, v in variables.items() if isinstance(v, Real))
    if len(reals) < len(variables):
        raise FitError("(weights, means, covariances) is a start for real columns only; give responsibilities or another run")
    k, d = mixture.n_classes, len(reals)
    weights, means = np.asarray(start[0], dtype=np.float64), np.asarray(start[1], dtype=np.float64)
    if weights.shape != (k,) or means.shape != (k, d):
        raise FitError(f"a start of {k} classes and {d} columns needs weights of the shape {(k,)} and means of {(k, d)}")
    if not (np.isfinite(means).all() and (weights > 0.0).all() and np.isclose(weights.sum(), 1.0, atol=1e-6)):
        raise FitError("the weights of a start are positive and sum to 1, and its means are finite")
    covariances = _spread(np.asarray(start[2], dtype=np.float64), k, d, mixture)
    return Parameters(weights / weights.sum(), _parts(mixture, reals, means, covariances, {}))


def _spread(given: Array, k: int, d: int, mixture: Mixture) -> Array:
    """Covariance matrices of each class, from those, one for all, variances by class and column, or by class."""
    tied = len(mixture.parts) == 1 and isinstance(mixture.parts[0], Joint) and mixture.parts[0].shared
    if given.shape == (k, d, d):
        return given
    if given.shape == (d, d) and (tied or k != d):
        return np.array(np.broadcast_to(given, (k, d, d)))
    if given.shape in ((k, d), (k,)):
        return np.asarray(given.reshape(k, -1, 1) * np.eye(d))
    raise FitError(f"the covariances of a start need the shape {(k, d, d)}, {(d, d)}, {(k, d)} or {(k,)}, not {given.shape}")


def _parts(mixture: Mixture, reals: tuple[str, ...], means: Array, covariances: Array, tables: Mapping[str, Array]) -> Any:
    at = ([reals.index(n) for n in part.names if n in reals] for part in mixture.parts)
    try:
        return tuple(p.taken(means[:, i], covariances[:, i][:, :, i], tables) for p, i in zip(mixture.parts, at, strict=True))
    except Collapsed:
        raise FitError("a covariance of the start is not positive definite") from None
