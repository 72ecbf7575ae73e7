"""What passes over rows say about a regression, and where it ended: values that add, or that are handed on."""

from __future__ import annotations

from typing import NamedTuple

from suffice.families.design import terms
from suffice.families.protocol.family import Array
from suffice.variables import Variable


class Sums(NamedTuple):
    """What one pass over rows says at some parameters: Σ w ℓ, its gradient, its curvature, Σ w (y − μ)²/V(μ), Σ w.

    ℓ is the log-likelihood of a row at dispersion 1 less that where a row has a predictor of its own: −½ of its deviance.
    """

    log_likelihood: float
    gradient: Array
    hessian: Array
    pearson: float
    weight: float


class Summary(NamedTuple):
    """What is known before the first iteration: Σ w, Σ w x of the columns, Σ w y (by state of a finite child), Σ w (offset),
    Σ w n (trials), and Σ w `base`, what a log-likelihood has beside −½ of the deviance."""

    weight: float
    columns: Array
    child: Array
    offset: float
    trials: float
    base: float


class Maximum(NamedTuple):
    """Where the iterations ended: θ, the sums there, the inverse of the curvature at dispersion 1, and the passes it took."""

    theta: Array
    sums: Sums
    covariance: Array
    iterations: int


class Regressors(NamedTuple):
    """A child, the parents that are columns of its regression, and the centre that their numbers are taken from."""

    child: Variable
    parents: tuple[Variable, ...]
    centre: Array

    @property
    def terms(self) -> tuple[str, ...]:
        return terms(self.parents)
