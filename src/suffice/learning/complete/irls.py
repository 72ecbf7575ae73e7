"""Iteratively reweighted least squares: regressions of largest likelihood (less a ridge), each iteration a fold over the rows.

    θ ← θ + (H + Λ)⁻¹ (G − Λθ)        G = Σ w dℓ/dθ,   H = −Σ w d²ℓ/dθ²,   ½ θᵀΛθ the ridge

which solves the weighted least squares argmin (z − Xθ)ᵀ W (z − Xθ) of the working response z. ℓ is concave in θ for every family
here, so these are Newton steps that end quadratically; one that lowers the objective is halved. The covariance is the inverse of
the expected curvature, which differs from H where the link is not canonical.

An estimate need not exist: columns that the rows do not tell apart (collinear), and columns that part the values of the child
(separation: Albert & Anderson 1984, Biometrika 71, p. 1), are refused by name, with a way out.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from suffice.basis.variables import Finite, Variable
from suffice.engines.data import Data
from suffice.errors import FitError, listing
from suffice.errors.remedies import Remedy
from suffice.families.design import (
    DistinctRows,
    Maximum,
    ParameterLayout,
    Pass,
    Regressors,
    Summary,
    Sums,
    needs_rows,
    predict_rows,
    terms,
)
from suffice.families.protocol.family import Array, Columns, Cpd
from suffice.models.parts.sharing import Nodes, StackedRows, Tie, from_pooled, with_shares
from suffice.numerics.exponential.normals.lines import independent
from suffice.statistics import Request, Statistics

CONVERGED = 1e-9
"""A step that moves no effect by more than this, per standard deviation of its column, is the last: its error is the square."""

ERRORS = 1e3
"""A last step is also no longer than this times its tolerance, in standard errors: columns may matter to few of the rows."""

VANISHED = 1e-4
"""Steps of fewer standard errors that still move the predictor of some row by more than `FAR`, and do not grow shorter, are on
their way to infinity: no more than 1e-6 of a row speaks against them. (Where there is an estimate they end quadratically.)"""

FAR, LASTING = 0.1, 3

LOOK = 8
"""After so many iterations it is looked whether the columns are still centred."""

SAMPLE = 2**14
MANY = 2**17
"""From so many rows on a sample of them gives the start: it takes no time, and saves passes over all rows."""


@dataclass(frozen=True)
class _Largest:
    """A number that adds to another as the larger of the two."""

    value: float

    def __add__(self, other: _Largest) -> _Largest:
        return self if self.value >= other.value else other


def largest_change(at: Regressors, changes: Array, columns: Columns, weight: Array | None) -> _Largest:
    """The largest change of a predictor in a row that has weight."""
    n = len(columns[at.child.name])
    changed = np.abs(predict_rows(changes, at.parents, columns, at.centre, n, at.child.name)).max(axis=0)
    return _Largest(float(np.max(changed if weight is None else changed[weight > 0], initial=0.0)))


class Nowhere(FitError):
    """The log-likelihood is not finite at a start."""


@dataclass(frozen=True)
class Ascent:
    """A family, its columns (which of them are numbers, and where θ has them), the Λ of its ridge, and the rows that are passed
    over. `endless`: whether the likelihood may have no maximum; `count` is a standard error of one row, `options` what a pass is
    told besides θ."""

    family: Any
    at: Regressors
    numbers: Any
    layout: ParameterLayout
    penalty: Array
    endless: bool
    rows: Any
    max_iter: int
    count: float
    threads: int | None = None
    what: str | None = None
    movable: bool = True
    options: Mapping[str, float] = field(default_factory=dict)

    def reach(self, step: Array) -> float:
        """The largest change of a predictor that a step makes."""
        largest = Pass(largest_change, (self.at, self.layout.predictors(step)))
        return float(self.rows.fold(largest, threads=self.threads).value)

    def with_expected_curvature(self, climb: Maximum) -> Maximum:
        """The same with the sums and the covariance by the expected curvature: another one where the link is not canonical."""
        step = Pass(self.family.measure, (self.at, climb.theta), {**self.options, "expected": True})
        s: Sums = self.rows.fold(step, threads=self.threads, what=self.what)
        covariance = solve_positive(s.hessian + self.penalty, s.gradient)[1]
        return Maximum(climb.theta, s, covariance, climb.iterations + 1)

    def climb(self, theta: Array, tol: float) -> tuple[Maximum, Array]:
        """The θ of largest objective from a start, and how far its columns are off their centre, for which it may have
        stopped."""
        name, penalty, family, m = self.at.child.name, self.penalty, self.family, len(theta)
        nowhere = Sums(-np.inf, np.zeros(m), np.zeros((m, m)), 0.0, 0.0)
        theta, s, here = self._uphill(theta, nowhere, -np.inf, np.zeros(m))  # a step of nothing: the sums at the start
        if not np.isfinite(s.log_likelihood):
            raise Nowhere(f"the regression of {name!r} has nowhere to start from: rescale its parents or its offset")
        if not (kept := independent(s.hessian + penalty, name)).all():
            self._refuse_collinear(s.hessian + penalty, int(np.argmin(kept)))
        size, _ = self.layout.columns_in(s.hessian, self.numbers)
        far, before, gains = [np.inf], np.inf, [np.inf]
        for iteration in range(1, self.max_iter + 1):
            slope = s.gradient - penalty @ theta
            step, covariance = solve_positive(s.hessian + penalty, slope)
            moved, errors = np.abs(step) * size, float(np.sqrt(max(float(slope @ step), 0.0)))
            spread = float(np.sqrt(s.pearson / s.weight)) if family.dispersed else 1.0
            # a change of η that is neither small nor large, and an error of one row
            unit, error = spread * (float(np.sqrt(s.weight / s.hessian[0, 0])) if family.scaled else 1.0), self.count * spread
            rounding = 8.0 * np.finfo(float).eps * float(np.max(np.abs(theta) * size))
            # of steps that end quadratically the next one is known, about: each is shorter by the square of what the last one was
            # (and a pass over many rows is worth saving)
            ahead = 100.0 * (errors / before) ** 2 if self.rows.n_rows >= MANY and errors < 1e-2 * before < np.inf else 1.0
            slow, before = errors > 0.1 * before, errors
            done = ahead * moved.max() <= max(tol * unit, rounding) and ahead * errors <= max(ERRORS * tol * error, rounding)
            if not done and slow and error > 0.0 and errors <= VANISHED * error:
                furthest = self.reach(step) / unit
                far = [*far, furthest] if furthest > max(FAR, 0.3 * far[-1]) else [furthest]
                if len(far) > LASTING and self.endless:
                    raise self._separation_error(moved)
                # columns that are nearly collinear have steps of rounding that change no predictor
                done = max(furthest, errors / error) <= tol
            idle = len(gains) == 3 and max(gains) < 1e-12 and errors <= 1e-8 * error  # what changes is rounding
            if done or idle:
                if self.endless and not independent(s.hessian, name).all():
                    raise self._flat_error(s)
                gained = float(s.gradient @ step - 0.5 * step @ s.hessian @ step)
                found = Maximum(theta + step, s._replace(log_likelihood=s.log_likelihood + gained), covariance, iteration)
                return found, self.layout.columns_in(s.hessian, self.numbers & self.movable)[1]
            before_step = here
            theta, s, here = self._uphill(theta, s, here, step)
            gains = [*gains[-2:], abs(here - before_step) / (1.0 + abs(before_step))]
            if iteration % LOOK == 0 and (off := self.layout.columns_in(s.hessian, self.numbers & self.movable)[1]).any():
                return Maximum(theta, s, covariance, iteration), off
        raise FitError(
            f"the regression of {name!r} did not converge in {self.max_iter} iterations; rescale its parents, or give a ridge: "
            f"{self._with_ridge()}"
        )

    def _uphill(self, theta: Array, s: Sums, here: float, step: Array) -> tuple[Array, Sums, float]:
        """θ after a step that does not lower the objective from what it is here, half of it, and so on; the sums of all rows and
        the objective there, which is −∞ where it is not finite."""
        fraction = 1.0
        while fraction > 1e-10:
            ahead = theta + fraction * step
            measure = Pass(self.family.measure, (self.at, ahead), self.options)
            there: Sums = self.rows.fold(measure, threads=self.threads, what=self.what)
            value = there.log_likelihood - 0.5 * float(ahead @ self.penalty @ ahead)
            value = value if np.isfinite(value) else -np.inf
            if value >= here - 1e-12 * (1.0 + abs(here)):
                return ahead, there, value
            fraction *= 0.5
        name = self.at.child.name
        if self.endless and not independent(s.hessian, name).all():
            raise self._flat_error(s)
        raise FitError(
            f"the regression of {name!r} finds no step that raises its likelihood: its columns may be nearly collinear or of "
            f"very different size; rescale them, or give a ridge: {self._with_ridge()}"
        )

    def _refuse_collinear(self, A: Array, lost: int) -> None:
        """Refuse a column that is a combination of those before it, if it is no level."""
        place, own = int(self.layout.places[lost]), terms(self.at.parents)
        if place == 0:
            return
        refusal, term = f"{self.at.child.name!r} cannot be fitted:", own.names[place - 1]
        if not own.numbers[place - 1] and not A[lost, lost] > 0:
            raise FitError(f"{refusal} no row has {term}; leave the state out, or use {self._with_ridge()}")
        before = listing(own.names[: place - 1])
        of = f"a linear combination of {before} or constant" if before else "constant"
        raise FitError(
            f"{refusal} the column {term!r} of its parent {own.of[place - 1].name!r} is {of}; leave the parent out, or use "
            f"{self._with_ridge()}"
        )

    def _flat_error(self, s: Sums) -> FitError:
        """A log-likelihood is flat in some direction: what parts the values of the child has gone far that way."""
        scale = np.sqrt(np.maximum(np.diag(s.hessian), 1e-300))
        flat = np.linalg.eigh(s.hessian / scale[:, None] / scale)[1][:, 0]
        return self._separation_error(np.abs(flat / scale * self.layout.columns_in(s.hessian, self.numbers)[0]))

    def _separation_error(self, moved: Array) -> FitError:
        names = ("the intercept", *terms(self.at.parents).names)
        by_term = np.zeros(len(names))
        np.maximum.at(by_term, self.layout.places, moved)
        grows = [n for n, m in zip(names, by_term, strict=True) if m > 0.1 * by_term.max()]
        by = [n for n in grows if n != "the intercept"] or grows
        part = "separates" if len(by) == 1 else "together separate"
        return FitError(
            f"the coefficients of {self.at.child.name!r} grow without end: {listing(by)} {part} its values in the data, and "
            f"there is no estimate of largest likelihood; leave a parent out, or use {self._with_ridge()}"
        )

    def _with_ridge(self) -> Remedy:
        """The same regression with a ridge."""
        trials, word = self.family.trials, self.family.word or "WORD"
        said = f"{self.at.child.name}={word}:1{f',trials={trials}' if trials else ''}"
        call = f"{type(self.family).__name__}(ridge=1{f', trials={trials!r}' if trials else ''})"
        return Remedy(call, f"--family {shlex.quote(said)}")


def fit_regression(
    child: Variable, parents: Sequence[Variable], rows: Data, family: Any, *, max_iter: int = 100, threads: int | None = None
) -> Any:
    """The regression of `child` on `parents` of largest likelihood (less the ridge), from complete rows."""
    family.check(child, parents)
    names = [v.name for v in (*parents, child)]
    rows.require_complete(names)
    if all(isinstance(v, Finite) for v in (child, *parents)):
        table = rows.gather([Request(tuple(names))], threads=threads).counts(names)
        return maximise(child, parents, DistinctRows(table), family, max_iter=max_iter)
    return maximise(child, parents, rows.select(names), family, max_iter=max_iter, threads=threads)


def maximise(
    child: Variable,
    parents: Sequence[Variable],
    chosen: Any,
    family: Any,
    *,
    max_iter: int = 100,
    threads: int | None = None,
    sample: bool = True,
) -> Any:
    """The same of rows known to be complete, or `DistinctRows`; without `sample` they need only `n_rows` and `fold`."""
    what = f"the regression of {child.name!r}"
    summary = chosen.fold(Pass(family.summary, (child, tuple(parents))), threads=threads, what=what)
    family.refuse(child, parents, summary)
    own = terms(parents, family.roles)
    at = Regressors(child, own.parents, np.where(own.numbers, summary.columns / summary.weight, 0.0))
    layout = family.layout(child, len(own.names))
    count = float(np.sqrt(min(1.0, summary.weight / chosen.n_rows)))  # where weights add up to 1, a row is less than a count
    endless = not family.dispersed and not family.ridge
    ascent = Ascent(family, at, own.numbers, layout, family.penalty(at), endless, chosen, max_iter, count, threads, what)
    first = theta = layout.of_levels(family.first_levels(summary))
    if sample and not family.linear and chosen.n_rows >= MANY and 50 * theta.size <= SAMPLE:  # a parabola needs no start
        theta = _start_from_sample(ascent, first)
    moves = 0
    while True:  # until the columns are centred among the rows that matter
        try:
            climb, off = ascent.climb(theta, CONVERGED)
        except Nowhere:
            if theta is first:
                raise
            theta = first
            continue
        if not off.any():
            break
        moves, at = moves + 1, ascent.at._replace(centre=ascent.at.centre + off)
        ascent, theta = replace(ascent, at=at, movable=moves < 20), layout.shift(climb.theta, off)
    if family.profiled:
        return _profile_shape(ascent, parents, summary, climb.theta)
    return family.finish(ascent.at, parents, climb if family.canonical else ascent.with_expected_curvature(climb), summary)


def _profile_shape(ascent: Ascent, parents: Sequence[Variable], summary: Summary, theta: Array) -> Any:
    """Coefficients and a shape in turn, each the best given the other, until neither moves."""
    family, shape, iterations = ascent.family, 1.0, 0
    for _ in range(200):
        climb, _ = replace(ascent, movable=False, options={"dispersion": 1.0 / shape}).climb(theta, CONVERGED)
        theta, before = climb.theta, shape
        # a Newton step in the logarithm of the shape
        slope, curve = ascent.rows.fold(Pass(family.of_shape, (family.spread, ascent.at, theta, shape)))
        shape *= float(np.exp(np.clip(-slope / curve if curve < 0 else np.sign(slope), -2.0, 2.0)))
        if shape > 1e7:
            raise FitError(
                f"{ascent.at.child.name!r} has no more spread in the data than a Poisson count, and its negative binomial shape "
                f"grows without end: use {Remedy('PoissonLog()', '--family NAME=poisson')}"
            )
        iterations += climb.iterations + 1
        if abs(np.log(shape / before)) < 1e-10:
            break
    shaped = replace(ascent, options={"dispersion": 1.0 / shape})
    climb = shaped.with_expected_curvature(climb)._replace(iterations=iterations + 1)
    total = ascent.rows.fold(Pass(family.of_shape, (family.log_likelihood_of, ascent.at, theta, shape)))
    cpd = family.finish(ascent.at, parents, climb, summary, 1.0 / shape)
    return replace(cpd, fitted=replace(cpd.fitted, log_likelihood=float(total)))


def _start_from_sample(ascent: Ascent, theta: Array) -> Array:
    """A start near the end, from some of many rows; where they alone have no estimate, the start that was given."""
    rows = ascent.rows
    some = rows.stretches(min(max(SAMPLE, rows.n_rows // 16), 4 * SAMPLE))
    if not some.weights.sum() > 0:
        return theta
    try:
        return replace(ascent, rows=rows.of_rows(some), max_iter=30, what=None).climb(theta, 1e-3)[0].theta
    except FitError:
        return theta


def fit_regressions(nodes: Nodes, families: Mapping[str, Any], rows: Data, ties: Sequence[Tie] = ()) -> dict[str, Cpd]:
    """The regressions of complete rows: each by itself, those of a tie together."""
    tied = {node: tie for tie in ties for node in tie.nodes if node in families}
    found: dict[str, Cpd] = {n: fit_regression(*nodes[n], rows, family) for n, family in families.items() if n not in tied}
    for tie in dict.fromkeys(tied.values()):
        family, (child, parents) = families[tie.nodes[0]], nodes[tie.nodes[0]]
        family.check(child, parents)
        stacked = StackedRows.of(rows, tie)
        stacked.rows.require_complete(stacked.rows.columns)
        if all(isinstance(v, Finite) for v in (child, *parents)):
            sets = [(*own[1:], own[0]) for own in tie.families]
            found |= from_tables(tie, nodes, family, rows.gather([Request(s) for s in sets]))
            continue
        cpd = maximise(child, parents, stacked, family)
        renamed = {n: cpd.rename(*nodes[n]) for n in tie.nodes}
        found |= with_shares(renamed, stacked.log_likelihoods(renamed))
    return found


def from_tables(tie: Tie, nodes: Nodes, family: Any, seen: Statistics) -> dict[str, Cpd]:
    """The same from statistics, which say all of a linear regression, and where the child and its parents are finite."""
    child, parents = nodes[tie.nodes[0]]
    if not family.normal and not all(isinstance(v, Finite) for v in (child, *parents)):
        raise needs_rows(child)
    return from_pooled(tie, nodes, family, seen, lambda rows: maximise(child, parents, rows, family))


def solve_positive(A: Array, b: Array) -> tuple[Array, Array]:
    """A⁻¹ b and A⁻¹ for a positive definite A, scaled to unit diagonal."""
    scale = np.sqrt(np.maximum(np.diag(A), 1e-300))
    R = A / scale[:, None] / scale
    try:
        inverse = np.linalg.inv(R)
        inverse = 0.5 * (inverse + inverse.T)
        x = np.linalg.solve(R, b / scale)
    except np.linalg.LinAlgError:  # a curvature that has vanished in some direction: the smallest step that solves the rest
        inverse = np.linalg.pinv(R, hermitian=True)
        x = inverse @ (b / scale)
    return np.asarray(x / scale), np.asarray(inverse / scale[:, None] / scale)
