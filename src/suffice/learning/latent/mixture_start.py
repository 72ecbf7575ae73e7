"""Where EM of a mixture starts: classes around rows that lie far apart.

Rows become points: real columns in units of their standard deviation, square roots of counts likewise, states as indicators with
a total variance of 1; a missing cell lies in the middle. Centres are rows that lie far apart (`far_apart`). Every other start
then moves the centres to the means of their rows a few times (Lloyd's algorithm). Or a user gives the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.basis.variables import Count, Finite, Real, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.errors import FitError
from suffice.families.protocol.family import Array
from suffice.learning.incomplete.starts import far_apart
from suffice.learning.latent.mixture_normals import JointPart
from suffice.learning.latent.mixture_parts import ClassParameters, CollapsedClass
from suffice.learning.latent.mixture_setup import MixtureProblem

SAMPLE = 2**14
"""Rows that centres are chosen among; of more rows so many are drawn."""

SOFT = 0.1
"""The share of each row that is spread over all classes, so that a class of few rows has variance, and no state probability 0."""

N_MOVES = 10


@dataclass(frozen=True, eq=False)
class Points:
    """Rows as points: the middle of each column's coordinates, and what they are divided by."""

    variables: Mapping[str, Variable]
    middle: Mapping[str, Array]
    scale: Mapping[str, float]

    @classmethod
    def of(cls, block: Block, variables: Mapping[str, Variable]) -> Points:
        middle, scale = dict[str, Array](), dict[str, float]()
        for name, variable in variables.items():
            x = _coordinates(block.columns[name], variable)
            x = x[~np.isnan(x[:, 0])]
            middle[name] = x.mean(axis=0) if len(x) else np.zeros(x.shape[1])
            spread = float(np.sqrt(x.var(axis=0).sum())) if len(x) else 0.0
            scale[name] = spread if spread > 0.0 else 1.0
        return cls(variables, middle, scale)

    def __call__(self, block: Block) -> Array:
        """The points of rows, row by row; missing cells are in the middle."""
        each = [(_coordinates(block.columns[n], v) - self.middle[n]) / self.scale[n] for n, v in self.variables.items()]
        return np.asarray(np.nan_to_num(np.concatenate(each, axis=1), copy=False, nan=0.0))


def _coordinates(column: np.ndarray, variable: Variable) -> Array:
    if isinstance(variable, Finite):
        h: Array = (column[:, None] == np.arange(variable.n_states)).astype(np.float64)
        h[column >= variable.n_states] = np.nan
        return h
    x: Array = np.asarray(np.sqrt(column) if isinstance(variable, Count) else column, dtype=np.float64)
    return x[:, None]


@dataclass(frozen=True, eq=False)
class Nearest:
    """Responsibilities: most of a row belongs to the class whose centre is nearest."""

    points: Points
    centres: Array

    def __call__(self, block: Block) -> Array:
        which, k = nearest(self.points(block), self.centres), len(self.centres)
        return np.asarray(SOFT / k + (1.0 - SOFT) * (which == np.arange(k)[:, None]))


@dataclass(frozen=True, eq=False)
class Responsibilities:
    """Responsibilities that are there for each row, class × row of each block."""

    blocks: Mapping[int, Array]

    @classmethod
    def of(cls, values: Array, data: Data) -> Responsibilities:
        """From those of all rows, row × class."""
        sizes = sorted(data.sizes().items())
        ends = np.cumsum([size.rows for _, size in sizes])
        return cls({i: values[end - size.rows : end].T for (i, size), end in zip(sizes, ends, strict=True)})

    def __call__(self, block: Block) -> Array:
        return self.blocks[block.number]


class MixtureStarts:
    """A sample of the rows, from which starts are drawn."""

    def __init__(self, mixture: MixtureProblem, seed: int) -> None:
        sample = mixture.data.sample(SAMPLE, seed)
        self.mixture, self.rows = mixture, mixture.data.of_rows(sample)
        self.scale = Points.of(sample, mixture.variables)
        self.points = self.scale(sample)
        self.weight = sample.weights if sample.weights.sum() > 0.0 else np.ones(sample.n_rows)

    def draw(self, rng: np.random.Generator, moving: bool) -> ClassParameters:
        """Parameters of a start."""
        first = int(rng.choice(len(self.points), p=self.weight / self.weight.sum()))
        centres = self.points[far_apart(self.points, self.weight, self.mixture.hidden.n_states, first, rng)]
        middle = self.weight @ self.points / self.weight.sum()
        for _ in range(N_MOVES if moving else 0):  # to the means of their rows; one that has lost its rows to the middle of all
            member = (nearest(self.points, centres)[:, None] == np.arange(len(centres))) * self.weight[:, None]
            total = member.sum(axis=0)[:, None]
            centres = np.where(total > 0.0, member.T @ self.points / np.where(total > 0.0, total, 1.0), middle)
        return self.mixture.start_from(Nearest(self.scale, centres), self.rows)


def nearest(points: Array, centres: Array) -> np.ndarray:
    """The centre that is nearest to each point."""
    return np.asarray(np.stack([((points - c) ** 2).sum(axis=1) for c in centres], axis=1).argmin(axis=1))


def given_start(start: Any, mixture: MixtureProblem) -> ClassParameters:
    """The parameters of a start that the user gave: responsibilities, or arrays of parameters."""
    if isinstance(start, (tuple, list)) and len(start) == 3:
        reals = tuple(n for n, v in mixture.variables.items() if isinstance(v, Real))
        if len(reals) < len(mixture.variables):
            raise FitError("(weights, means, covariances) is a start for real columns only; give responsibilities or another run")
        k, d = mixture.hidden.n_states, len(reals)
        weights, means = np.asarray(start[0], dtype=np.float64), np.asarray(start[1], dtype=np.float64)
        if weights.shape != (k,) or means.shape != (k, d):
            raise FitError(f"a start of {k} classes and {d} columns needs weights of the shape {(k,)} and means of {(k, d)}")
        if not (np.isfinite(means).all() and (weights > 0.0).all() and np.isclose(weights.sum(), 1.0, atol=1e-6)):
            raise FitError("the weights of a start are positive and sum to 1, and its means are finite")
        covariances = _spread(np.asarray(start[2], dtype=np.float64), k, d, mixture)
        return start_at(mixture, weights / weights.sum(), reals, means, covariances, {})
    try:
        r = np.asarray(start, dtype=np.float64)
    except (TypeError, ValueError):
        r = np.zeros(0)
    shape = (mixture.data.n_rows, mixture.hidden.n_states)
    if r.shape != shape:
        raise FitError(f"a start is another run, (weights, means, covariances), or responsibilities of the shape {shape}")
    if not (np.isfinite(r).all() and (r >= 0.0).all() and np.allclose(r.sum(axis=1), 1.0, atol=1e-6)):
        raise FitError("the responsibilities of a row are probabilities that sum to 1")
    try:
        return mixture.start_from(Responsibilities.of(r, mixture.data))
    except CollapsedClass as collapse:
        raise FitError(f"these responsibilities are no start: {collapse}") from None


def _spread(given: Array, k: int, d: int, mixture: MixtureProblem) -> Array:
    """Covariance matrices of each class, from those, one for all, variances by class and column, or by class."""
    tied = len(mixture.parts) == 1 and isinstance(mixture.parts[0], JointPart) and mixture.parts[0].shared
    if given.shape == (k, d, d):
        return given
    if given.shape == (d, d) and (tied or k != d):
        return np.array(np.broadcast_to(given, (k, d, d)))
    if given.shape in ((k, d), (k,)):
        return np.asarray(given.reshape(k, -1, 1) * np.eye(d))
    raise FitError(f"the covariances of a start need the shape {(k, d, d)}, {(d, d)}, {(k, d)} or {(k,)}, not {given.shape}")


def start_at(
    mixture: MixtureProblem, weights: Array, reals: Sequence[str], means: Array, covariances: Array, tables: Mapping[str, Array]
) -> ClassParameters:
    """Parameters from the means and covariances of the real columns, and tables and rates of the others."""
    at = ([reals.index(n) for n in part.names if n in reals] for part in mixture.parts)
    pairs = zip(mixture.parts, at, strict=True)
    try:
        parts = tuple(p.with_parameters(means[:, i], covariances[:, i][:, :, i], tables) for p, i in pairs)
    except CollapsedClass:
        raise FitError("a covariance of the start is not positive definite") from None
    return ClassParameters(weights, parts)
