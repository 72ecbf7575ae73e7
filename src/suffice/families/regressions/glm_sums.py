"""Passes over rows, or over the rows behind a table, and what they say about a regression: values that add, or are handed on."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.engine import Block, Step
from suffice.families.design import terms
from suffice.families.protocol.family import Array
from suffice.statistics import Counts
from suffice.statistics.configurations import sizes
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


@dataclass(frozen=True, eq=False)
class Pass(Step[Any]):
    """What a function, such as a method of a family, says of the columns and weights of some rows."""

    says: Callable[..., Any]
    about: tuple[Any, ...]
    options: Mapping[str, Any] = field(default_factory=dict)

    def of(self, block: Block) -> Any:
        return self.says(*self.about, block.columns, block.weight, **self.options)


class DistinctRows:
    """The distinct rows of a contingency table, weighted by how often they occur: all that a fold needs to see of them."""

    def __init__(self, counts: Counts) -> None:
        keys, weight = counts.listed()
        codes = np.unravel_index(keys, sizes(counts.variables)) if counts.variables else ()
        columns = {v.name: c.astype(np.intp) for v, c in zip(counts.variables, codes, strict=True)}
        self.block = Block(columns, np.asarray(weight, dtype=np.float64))
        self.n_rows = self.block.n_rows

    def fold(self, step: Step[Any], *, threads: int | None = None, what: str | None = None) -> Any:
        return step.of(self.block)
