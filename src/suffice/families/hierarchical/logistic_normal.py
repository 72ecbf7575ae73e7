"""A logistic-normal prior of tables: the log-odds of a row are normal around those of a mean, with the same spread everywhere.

    θ[u, x] = exp η[u, x] / Σ exp η[u, ·],   η[u, ·] ~ Normal(m, Σ), independent over rows u;   Σ = v I, or any covariance

Unlike a Dirichlet it is not conjugate, so it imagines no counts: what it holds of a node is a `LogisticBelief`, which answers for
mode, mean, evidence and intervals by Laplace's approximation and by draws (`laplace.py`, `laplace_draws.py`), and in EM for the
logarithm that modes maximise: with all η that give the same θ at hand, the largest density of them,

    ln p(θ) = −½ min_c (ln θ + c − m)ᵀ P (ln θ + c − m),   P the precision
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import pi
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Finite, Variable
from suffice.errors import FitError, listing, note
from suffice.errors.remedies import TABLE_PRIORS, Remedy
from suffice.families.hierarchical.hierarchical import rows_of
from suffice.families.hierarchical.laplace import HIGHEST, LOWEST, JointLaplace, Laplace, normal_of_rows
from suffice.families.hierarchical.laplace_draws import draw_rows, joint_drawn, joint_quantiles, quantiles
from suffice.families.priors.empirical_bayes import best_number
from suffice.families.protocol.cpd import Array, as_numbers
from suffice.families.protocol.family import Estimate, Mode, Node, Prior, PriorBelief, all_finite, in_order, is_number
from suffice.numerics.exponential.arithmetic.symmetric import ROUNDING, scaled_cholesky, singular_column
from suffice.numerics.exponential.arithmetic.values import Interval, tail
from suffice.statistics import Counts, Statistics
from suffice.statistics.counts import sizes


@dataclass(frozen=True)
class LogisticBelief(PriorBelief):
    """Every row of a table has effects η ~ Normal(mean, variance I), one mean per state. It does not say how rare a state is that
    no row has.
    """

    of: ClassVar[str] = "LogisticNormal"
    instead: ClassVar[Remedy] = TABLE_PRIORS

    mean: tuple[float, ...]
    variance: float

    _draws = staticmethod(draw_rows)
    _quantiles = staticmethod(quantiles)

    def log_evidence(self, child: Variable, seen: Counts) -> float:
        """Σᵤ ln Z over the rows that hold data: the others add nothing."""
        rows, times = np.unique(rows_of(seen), axis=0, return_counts=True)
        return float(times @ self._posterior(rows).log_evidence)

    def probs(self, seen: Counts, how: Estimate) -> Array:
        """The point values of a whole table."""
        rows, back = self._distinct(seen)
        answer = rows.probs if isinstance(how, Mode) else rows.means()
        return np.asarray(answer[back].reshape(sizes(seen.variables)))

    def interval(self, seen: Counts, level: float) -> Interval:
        """The equal-tailed interval of each probability, for more than two states by draws, which are few beyond 0.999."""
        rows, back = self._distinct(seen)
        ends = self._quantiles(rows, tail(level))
        return Interval(*(end[back].reshape(sizes(seen.variables)) for end in ends))

    def log_prior(self, probs: Array) -> float:
        """What EM adds to ln L: the logarithm, up to a constant, whose sum with that of counts the modes maximise."""
        off = np.log(probs.reshape(-1, len(self.mean))) - np.array(self.mean)
        return float(-0.5 * ((off @ self.curvature) * off).sum())

    def slope(self, probs: Array) -> Array:
        """Its derivatives by the effects of each row."""
        return np.asarray((np.array(self.mean) - np.log(probs.reshape(-1, len(self.mean)))) @ self.curvature)

    @property
    def curvature(self) -> Array:
        """Q = P − P1 1ᵀP / 1ᵀP1: its second derivatives by effects, less what all effects have in common."""
        P = self._precision()
        along = P.sum(axis=1)
        return np.asarray(P - np.outer(along, along) / along.sum())

    def draw_rows(self, counts: Array, n: int, rng: np.random.Generator) -> Array:
        """n draws of the rows that have these counts: [n, rows, states]."""
        return self._draws(self._posterior(counts), n, rng)

    def _distinct(self, seen: Counts) -> tuple[Laplace, npt.NDArray[np.intp]]:
        """The posterior of each kind of row, and of which kind each row is."""
        table = seen.dense().reshape(-1, len(self.mean))
        rows, back = np.unique(table, axis=0, return_inverse=True)
        return self._posterior(rows), back.reshape(-1)

    def _posterior(self, rows: Array) -> Any:
        return Laplace(rows, np.array(self.mean), self.variance)

    def _precision(self) -> Array:
        return np.eye(len(self.mean)) / self.variance


@dataclass(frozen=True)
class JointBelief(LogisticBelief):
    """The same with a covariance between the effects of the states; `variance` is its mean diagonal."""

    covariance: tuple[tuple[float, ...], ...] = ()

    _draws = staticmethod(joint_drawn)  # type: ignore[assignment]
    _quantiles = staticmethod(joint_quantiles)  # type: ignore[assignment]

    def _posterior(self, rows: Array) -> JointLaplace:
        return JointLaplace.of(rows, np.array(self.mean), np.array(self.covariance))

    def _precision(self) -> Array:
        return np.linalg.inv(np.array(self.covariance))


LIKE_DIRICHLET = pi**2 / 6
"""ψ′(1): with this variance the prior is, of all logistic-normal ones, the nearest to Dirichlet(1) (Aitchison & Shen 1980)."""


@dataclass(frozen=True)
class LogisticNormal(Prior):
    """The effects η of the states of a row are Normal(mean, covariance), θ = softmax(η). A Dirichlet cannot say that two states
    are frequent together; this can.

    `mean` is a number, which means even odds, an effect per state, or {node: an effect per state}. `covariance` is a matrix over
    the states, in their order, or {node: matrix}; only the covariance of differences of effects matters. Where none is given,
    effects are independent with one `variance`: a number, {node: number}, or None: that with the largest evidence of each node's
    rows, chosen once and kept (`bn.prior`), between 0.001 and 1000; a note names the nodes where an end is taken. The default,
    π²/6, is the nearest to `Dirichlet(1)`; a node of which one row holds data takes it, too.

    `correlated=True` is the hierarchical prior: mean and covariance are those with the largest evidence of each node's rows, be
    these configurations of parents or groups (a mean that is given by node is kept). Of more than 8 states they are a fixed point
    of EM near it. `update` goes on with what was chosen.

    `estimate=Mode()` gives softmax of the mode of η (that of θ is another: modes depend on how one writes the parameters),
    `Mean()` the posterior mean of θ. Evidence and mean are Laplace approximations, exact without data and with many rows; with
    the default variance and two or three states ln p of a row of counts was found up to 0.06 too small, a mean up to 0.01 off;
    with a variance of 5 up to 0.12 and 0.015. Intervals are those of the exact posterior, whatever the variance: by quadrature
    for two states, for more by 2048 even draws (of a 95% one the tails were found to be 2.1 to 3.0% each); with a covariance by
    4096 draws (1.8 to 3.2%).

    With missing cells EM climbs to the mode of η, whatever the estimate, for the mean maximises nothing; it needs numbers that
    are given.

    >>> from suffice import fit
    >>> bn = fit("x", {"x": ["a", "a", "a", "b"]}, prior=LogisticNormal(variance=1.0))
    >>> bn["x"].probs.round(3), bn["x"].interval(0.9).lower.round(3)
    (array([0.656, 0.344]), array([0.34 , 0.095]))
    >>> near = LogisticNormal(covariance=[[1, 0.9, 0], [0.9, 1, 0], [0, 0, 1]])
    >>> fit("x", {"x": ["a"] * 8 + ["b", "c"]}, prior=near)["x"].probs.round(3)
    array([0.521, 0.321, 0.157])
    """

    word = "logistic-normal"
    types = ("LogisticNormal",)
    after_colon = ("variance", float)

    mean: Any = 0.0
    covariance: Any = None
    variance: Mapping[str, float] | float | None = LIKE_DIRICHLET
    correlated: bool = False

    chooses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for v in self.variance.values() if isinstance(self.variance, Mapping) else [self.variance]:
            if v is not None and (not is_number(v) or not 1e-12 <= v <= 1e12):
                raise FitError(f"the variance of LogisticNormal is a number between 1e-12 and 1e12, or None, not {v!r}")
        several = isinstance(self.mean, (Mapping, list, tuple, np.ndarray))
        if not several and not (is_number(self.mean) and np.isfinite(self.mean)):
            raise FitError(
                f"the mean of LogisticNormal is a number, an effect per state, or given by node, {{'y': [0.0, 1.5]}}, not "
                f"{self.mean!r}"
            )
        object.__setattr__(self, "mean", _plain(self.mean))
        object.__setattr__(self, "covariance", _plain(self.covariance))

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Node], statistics: Statistics) -> LogisticNormal:
        """The prior with a variance or a covariance for each of these nodes, by the evidence of their counts."""
        self.refuse_unknown_nodes(variables, self.variance, self.mean, self.covariance)
        finite = [(child, rows_of(seen)) for child, parents, seen in nodes if all_finite(child, parents)]
        if self.correlated:
            return self._joint(finite)
        if self.variance is not None and not isinstance(self.variance, Mapping):
            return self
        given = {child.name: self.of_node(self.variance, child.name) for child, _ in finite}
        found = {c.name: float(given[c.name] or _by_evidence(rows, np.array(self._mean(c)))) for c, rows in finite}
        free = [name for name in found if name not in (self.variance or {}) and self.of_node(self.covariance, name) is None]
        for end, way in (LOWEST, "no more than chance makes them: the variance is"), (HIGHEST, "without limit: the variance is"):
            at = [name for name in free if found[name] == end]
            if at:
                note(f"the rows of {listing(at)} differ from their mean {way} {end:g}, where LogisticNormal stops")
        return replace(self, variance={**dict(self.variance or {}), **found})

    def _joint(self, finite: Sequence[tuple[Variable, Array]]) -> LogisticNormal:
        """With a mean and a covariance for each of the nodes of which more than one row holds data."""
        means = dict(self.mean) if isinstance(self.mean, Mapping) else {}
        covariances = dict(self.covariance) if isinstance(self.covariance, Mapping) else {}
        alike = []
        for child, table in finite:
            assert isinstance(child, Finite)
            if self.of_node(self.covariance, child.name) is not None or len(table) < 2 or child.n_states < 2:
                continue
            found = normal_of_rows(table, np.array(self._mean(child)) if child.name in means else None)
            covariances[child.name] = _plain(found.covariance)
            means.setdefault(child.name, dict(zip(child.states, found.mean.tolist(), strict=True)))
            alike += [child.name] if found.least < 2.0 * LOWEST else []
        if alike:
            note(
                f"the rows of {listing(alike)} differ in some direction no more than chance makes them: the variance there is "
                f"{LOWEST:g}, the least that LogisticNormal takes"
            )
        return replace(self, mean=means or self.mean, covariance=covariances or self.covariance, correlated=False)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> LogisticBelief | None:
        """What it holds of the rows of a node, all alike."""
        if not all_finite(child, parents):
            return None
        given, variance = self.of_node(self.covariance, child.name), self.of_node(self.variance, child.name)
        if given is not None:
            mean, own = self._mean(child), _checked_covariance(given, child)
            if len(mean) == 2:  # all hangs on the difference of the effects of two states, which has a variance
                return LogisticBelief(mean, float(own[0, 0] + own[1, 1] - 2.0 * own[0, 1]) / 2.0)
            return JointBelief(mean, float(np.trace(own)) / len(mean), _plain(own))
        if variance is None or self.correlated:
            what, free, word = "variance", "variance=None", "logistic-normal:1"
            if self.correlated:
                what, free, word = "covariance", "correlated=True", "NAME=logistic-normal/covariance=1,0.5;0.5,1"
            raise FitError(
                f"LogisticNormal takes the {what} of {child.name!r} from complete rows and a graph: give it, "
                f"{Remedy(f'or choose it first, by_evidence(dag, complete_rows, LogisticNormal({free}))', f'as in {word}')}"
            )
        return LogisticBelief(self._mean(child), variance)

    def _mean(self, child: Variable) -> tuple[float, ...]:
        assert isinstance(child, Finite)
        given = self.mean.get(child.name, 0.0) if isinstance(self.mean, Mapping) else self.mean
        if is_number(given):
            return (0.0,) * child.n_states
        effects = in_order(given, child, "the mean of LogisticNormal")
        return tuple(float(x) for x in effects - effects.mean())


def _plain(given: Any) -> Any:
    """Arrays as tuples of numbers, which can be compared and written."""
    if isinstance(given, Mapping):
        return {name: _plain(value) for name, value in given.items()}
    if isinstance(given, (list, tuple, np.ndarray)):
        return tuple(_plain(part) for part in given)
    return given.item() if isinstance(given, np.generic) else given


def _checked_covariance(given: Any, child: Variable) -> Array:
    """A symmetric positive definite matrix with a line for each state."""
    assert isinstance(child, Finite)
    K, what = child.n_states, f"the covariance of LogisticNormal of {child.name!r}"
    refusal = f"{what} must be a {K} × {K} matrix of numbers, with a line for each of the states {listing(child.states)}"
    matrix = as_numbers(given, refusal, FitError)
    if matrix.shape != (K, K) or not np.isfinite(matrix).all():
        raise FitError(f"{refusal}, not of the shape {matrix.shape}" if matrix.shape != (K, K) else refusal)
    off = np.abs(matrix - matrix.T) > 1e-9 * (1.0 + np.abs(matrix))
    if off.any():
        i, j = (child.states[k] for k in np.argwhere(off)[0])
        raise FitError(f"{what} must be symmetric, and differs at {i!r}, {j!r} from {j!r}, {i!r}")
    column = singular_column(matrix[None], scaled_cholesky(matrix[None]), ROUNDING)
    if column is not None:
        raise FitError(
            f"{what} must be positive definite, and the state {child.states[column]!r} has no variance of its own beside "
            "those before it"
        )
    return np.asarray(0.5 * (matrix + matrix.T))


def _by_evidence(table: Array, mean: Array) -> float:
    """The variance with which these rows have the largest evidence."""
    if len(table) < 2 or table.shape[1] < 2:
        return LIKE_DIRICHLET
    rows, times = np.unique(table, axis=0, return_counts=True)

    return best_number(lambda v: float(times @ Laplace(rows, mean, v).log_evidence), LOWEST, HIGHEST, 29)
