"""Regressions of largest likelihood (less a ridge), many at a time: Newton's method in lockstep, each step a pass over the rows.

    θ ← θ + t (H + Λ)⁻¹ (G − Λθ)        t = 1, or halved until the objective ℓ(θ) − ½ θᵀΛθ does not fall

ℓ is concave. What is sought is the supremum of the objective, which also exists where no θ has it: states that the columns
separate (Albert & Anderson 1984, Biometrika 71, p. 1) make θ grow without end while ℓ comes near it, by the same factor with
each step. So a climb ends when the objective has no more to gain, not when θ rests. A column that the rows cannot tell from those
before it stays where it is: it adds nothing to the likelihood.

With a ridge λ > 0, the normal prior of the effects b, and a flat prior of density 1 of the L levels, Laplace's approximation of
the evidence is

    ln ∫ p(y | θ) p(b) dθ ≈ ℓ(θ̂) − ½ θ̂ᵀΛθ̂ + ½ ln det Λ_b − ½ ln det(H + Λ) + ½ L ln 2π

The flat prior of the levels adds the same constant to every set of parents of a child, so it changes no comparison of them.

The columns of all variables, numbers in units of their deviations from their means, are made once for a block of rows. A
regression is a choice of them; its parameters are in these units, so that those of one are a start for another that has a column
more. Regressions of one child with as many columns are a `RegressionBatch`: arrays whose first axis is the regression.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Finite, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step
from suffice.errors import FitError, TooLarge
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.families.design import Regressors, Summary, Sums, columns_of, fill_design, read_only, terms
from suffice.families.protocol.family import Array, Columns
from suffice.families.regressions.glm import MAX_PARAMETERS
from suffice.numerics.exponential.normals.lines import independent, too_large
from suffice.statistics import Request

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Standardised:
    """The columns that variables give regressions: a row of ones, then (x − centre)/scale of numbers and indicators of states."""

    variables: tuple[Variable, ...]
    centre: Array
    scale: Array

    @staticmethod
    def of(rows: Data, variables: Sequence[Variable], threads: int | None = None) -> Standardised:
        """In units of the deviations that the rows have."""
        n = len(terms(variables).names)
        if n > MAX_PARAMETERS:
            raise TooLarge(
                f"regressions on these variables would have {n:,} columns, an indicator for each state but one, and the limit is "
                f"{MAX_PARAMETERS:,}: leave columns with many states out, or group their states"
            )
        centre, scale = np.zeros(n), np.ones(n)
        names = tuple(v.name for v in variables if not isinstance(v, Finite))
        if names:
            moments = rows.gather([Request((), names)], threads=threads).moments((), names)
            deviation = np.sqrt(np.diag(moments.scatter[0]) / moments.count[0])
            numbers = terms(variables).numbers
            centre[numbers] = moments.mean[0]
            scale[numbers] = np.where((deviation > 0) & np.isfinite(deviation), deviation, 1.0)
        return Standardised(tuple(variables), centre, scale)

    def table(self, columns: Columns, n: int) -> Array:
        """Z: the columns of n rows."""
        Z = fill_design(self.variables, columns, self.centre, n, "", complete=True)
        numbers = 1 + np.flatnonzero(terms(self.variables).numbers)
        Z[numbers] /= self.scale[numbers - 1, None]
        return Z

    @cached_property
    def _places(self) -> Mapping[str, range]:
        own = (columns_of(self.variables, v.name) for v in self.variables)
        return {v.name: range(1 + at.start, 1 + at.stop) for v, at in zip(self.variables, own, strict=True)}

    def places(self, variables: Sequence[Variable]) -> list[int]:
        """The rows of Z of a regression on some variables, the ones first."""
        return [0, *(place for v in variables for place in self._places[v.name])]


class RegressionBatch(NamedTuple):
    """Regressions of one child: the rows of Z that are the columns of each, the ones first, and the parameters of each."""

    family: Any
    child: Any
    members: Places
    theta: Array

    def sums(self, Z: Array, columns: Columns, weight: Array) -> Sums:
        """What these rows say of each regression at its parameters."""
        y = self.family.values(self.child, columns)
        if self.family.response is None or self.theta.shape[1] > self.members.shape[1]:
            each = (self.family.sums(Z[m], y, weight, t, columns) for m, t in zip(self.members, self.theta, strict=True))
            return Sums(*(np.array(part) for part in zip(*each, strict=True)))
        from suffice.numerics.kernels.regressions.regression import regression_sums

        B, q = self.members.shape
        gradient, hessian, totals = np.zeros((B, q)), np.zeros((B, q, q)), np.zeros((B, 3))
        exposed, theta = self.family.exposure(columns), read_only(self.theta)
        rows = tuple(read_only(a) for a in (np.asarray(y, dtype=np.float64), *exposed, weight))
        for g, own in enumerate(self.members):
            regression_sums(Z[own], *rows, theta[g], self.family.response, 1.0, False, gradient[g], hessian[g], totals[g])
        return Sums(totals[:, 0], gradient, hessian, totals[:, 1], totals[:, 2])


@dataclass(frozen=True, eq=False)
class BatchSums(Step[tuple[Sums, ...]]):
    """The sums of some batches, in one pass."""

    standardised: Standardised
    batches: tuple[RegressionBatch, ...]
    complete: ClassVar[bool] = True

    def of(self, block: Block) -> tuple[Sums, ...]:
        Z = self.standardised.table(block.columns, block.n_rows)
        weight = np.ascontiguousarray(block.weights, dtype=np.float64)
        return tuple(batch.sums(Z, block.columns, weight) for batch in self.batches)


@dataclass(frozen=True, eq=False)
class ProductSums(Step[Array]):
    """Σ w z zᵀ of all columns, in one pass."""

    standardised: Standardised
    complete: ClassVar[bool] = True

    def of(self, block: Block) -> Array:
        Z = self.standardised.table(block.columns, block.n_rows)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((Z * block.weights) @ Z.T)


@dataclass(frozen=True, eq=False)
class SummarySums(Step[Any]):
    """What a family sums of its child before its first iteration: `glm.Summary`."""

    family: Any
    child: Variable
    complete: ClassVar[bool] = True

    def of(self, block: Block) -> Any:
        return self.family.summary(self.child, (), block.columns, block.weight)


NOTHING = 1e-8
"""A step that gains less than this, in nats, is the last, and what it gains is added: its error is far smaller."""

PASSES = 100
"""Passes after which something is wrong: ten are many, and thirty where states are separated."""

MUCH = 1e-3
"""A step that promises more than this, in nats, and gives nothing however short it is made, was aimed from too far out."""

UNMOVED = 0.05
"""A last step that is longer, per deviation of a column, is on its way to infinity: it gains nothing and yet it is long."""


class Supremum(NamedTuple):
    """Where a climb ended: the log-likelihood there, ln of the evidence (NaN without a ridge), θ in the units of `Standardised`,
    whether θ was on its way to infinity, and why there is nothing, if there is."""

    log_likelihood: float
    log_evidence: float
    theta: Array
    endless: bool
    trouble: FitError | None = None

    @staticmethod
    def of(cpd: Any) -> Supremum:
        """That of a regression that was fitted, of which the evidence was not asked for."""
        return Supremum(cpd.fitted.log_likelihood, np.nan, cpd.theta, False)


@dataclass(eq=False)
class BatchClimb:
    """The climbs of a batch: where each is, what the sums are there, and the step that it tries next."""

    batch: RegressionBatch
    penalty: Array
    n_levels: int
    levels: Array
    kept: npt.NDArray[np.bool_]

    def __post_init__(self) -> None:
        B, m = self.batch.theta.shape
        self.theta = self.batch.theta.copy()
        self.step, self.fraction = np.zeros((B, m)), np.ones(B)
        self.objective, self.gain = np.full(B, -np.inf), np.full(B, np.inf)
        self.sums = Sums(np.full(B, -np.inf), np.zeros((B, m)), np.zeros((B, m, m)), np.zeros(B), np.zeros(B))
        self.open = np.ones(B, bool)
        self.lost, self.anew = np.zeros(B, bool), np.zeros(B, bool)
        self.passes = 0

    @property
    def question(self) -> RegressionBatch:
        """The regressions that are not done, at the parameters that they try."""
        trial = self.theta + self.fraction[:, None] * self.step
        return self.batch._replace(members=self.batch.members[self.open], theta=trial[self.open])

    def take(self, told: Sums) -> None:
        """Go on from what a pass said of the parameters that were tried."""
        at = np.flatnonzero(self.open)
        trial = self.theta[at] + self.fraction[at, None] * self.step[at]
        penalty = self.penalty[at]
        with np.errstate(invalid="ignore"):
            value = told.log_likelihood - 0.5 * np.einsum("bi,bij,bj->b", trial, penalty, trial)
            here = self.objective[at]
            good = np.isfinite(value) & (np.isinf(here) | (value >= here - 1e-12 * (1.0 + np.abs(here))))
        self._halve(at[~good])
        up = at[good]
        self.theta[up], self.objective[up], self.fraction[up] = trial[good], value[good], 1.0
        for own, new in zip(self.sums, told, strict=True):
            own[up] = new[good]
        self._aim(up)
        self.passes += 1
        if self.passes >= PASSES:
            self.lost |= self.open
            self.open[:] = False

    def _halve(self, at: npt.NDArray[np.intp]) -> None:
        """Half the step; a start without a finite likelihood gives way to that without effects."""
        begun = np.isfinite(self.objective[at])
        again, stuck = at[~begun], at[begun]
        self.lost[again] = ~np.any(self.theta[again] != self.levels, axis=1)
        self.theta[again] = self.levels
        self.fraction[stuck] *= 0.5
        over = stuck[self.fraction[stuck] < 1e-10]
        far = over[(self.gain[over] > MUCH) & ~self.anew[over]]  # a start so far out that steps from there are of no use
        self.theta[far], self.objective[far], self.step[far], self.fraction[far] = self.levels, -np.inf, 0.0, 1.0
        self.anew[far] = True
        over = np.setdiff1d(over, far)  # what is left of a step so short is rounding: nothing can be gained
        self.open[over], self.step[over], self.gain[over] = False, 0.0, 0.0
        self.open &= ~self.lost

    def _aim(self, at: npt.NDArray[np.intp]) -> None:
        """The next step of each, and whether it has anything to gain."""
        kept, penalty = self.kept[at], self.penalty[at]
        slope = np.where(kept, self.sums.gradient[at] - np.einsum("bij,bj->bi", penalty, self.theta[at]), 0.0)
        step = _solve(self.sums.hessian[at] + penalty, slope, kept)
        self.step[at] = step
        unit = self.sums.pearson[at] / self.sums.weight[at] if self.batch.family.dispersed else 1.0
        self.gain[at] = 0.5 * np.maximum(np.einsum("bi,bi->b", slope, step), 0.0)
        self.lost[at] = ~np.isfinite(self.gain[at])
        self.open[at] = (self.gain[at] > NOTHING * unit) & ~self.lost[at]

    def suprema(self, standardised: Standardised, summary: Summary) -> list[Supremum]:
        """Where each climb ended."""
        more = np.einsum("bi,bi->b", self.sums.gradient, self.step)
        more -= 0.5 * np.einsum("bi,bij,bj->b", self.step, self.sums.hessian, self.step)
        evidence = self._log_evidence()
        # what separates is flat: its last step, which gains nothing, is as long as those before
        endless = np.abs(self.step).max(axis=1) > UNMOVED
        family, child, found = self.batch.family, self.batch.child, list[Supremum]()
        for g, theta in enumerate(self.theta):
            trouble = FitError(f"the regression of {child.name!r} does not converge") if self.lost[g] else None
            own = Sums(*(part[g] for part in self.sums))
            own, dispersion = own._replace(log_likelihood=float(own.log_likelihood + more[g])), 1.0
            if family.dispersed and trouble is None:
                members = set(self.batch.members[g].tolist())
                parents = tuple(v for v in standardised.variables if members & set(standardised.places([v])[1:]))
                try:
                    family.refuse_exact(Regressors(child, parents, np.zeros(0)), theta, own)
                    dispersion = family.scale(own, max(-2.0 * own.log_likelihood, 0.0))
                except FitError as exact:
                    trouble = exact
            if trouble is not None:
                found.append(Supremum(-np.inf, -np.inf, theta, False, trouble))
                continue
            flat = bool(endless[g]) and not family.dispersed and not family.ridge
            total = float(family.total(own, summary, dispersion))
            found.append(Supremum(total, float(evidence[g]) + summary.base, theta, flat))
        return found

    def _log_evidence(self) -> Array:
        """By Laplace's approximation, at dispersion 1 and less the base of the response."""
        family, m = self.batch.family, self.theta.shape[1]
        if not family.ridge > 0 or family.dispersed or family.profiled:
            return np.full(len(self.theta), np.nan)
        slopes = np.ones(m, bool)
        slopes[family.layout(self.batch.child, self.batch.members.shape[1] - 1).levels] = False
        prior = np.linalg.slogdet(self.penalty[:, slopes][:, :, slopes])[1]
        curvature = np.linalg.slogdet(self.sums.hessian + self.penalty)[1]
        return np.asarray(self.objective + self.gain + 0.5 * (prior - curvature + self.n_levels * LOG_2PI))


@dataclass(frozen=True, eq=False)
class RegressionChild:
    """A child that is a regression, with what is known of it before its first: the sums of its own column.

    `absent` says what the rows lack so that there is no estimate: rows of a state, or events. There is a supremum, as of a table.
    """

    family: Any
    child: Any
    summary: Summary
    absent: FitError | None = None

    @staticmethod
    def of(rows: Data, family: Any, child: Variable, exposed: Sequence[Variable], threads: int | None = None) -> RegressionChild:
        """One pass over the rows, which refuses values that the family cannot have; `exposed` are its offset and trials."""
        names = [child.name, *(v.name for v in exposed)]
        summary = rows.select(names).fold(SummarySums(family, child), threads=threads)
        try:
            family.refuse(child, (), summary)
        except FitError as absent:
            if family.ordered or not summary.weight > 0:  # cut points that fall together are no direction to climb in
                raise
            return RegressionChild(family, child, summary, absent)
        return RegressionChild(family, child, summary)

    @property
    def levels(self) -> Array:
        """The levels without effects; of what is absent, as if half a row had it."""
        s = self.summary
        if self.absent is not None:
            s = s._replace(child=np.clip(s.child, 0.5, s.trials - 0.5))
        return np.asarray(self.family.first_levels(s))

    def climb(
        self, standardised: Standardised, parents: Sequence[Sequence[Variable]], starts: Array, products: Array
    ) -> BatchClimb:
        """Of sets of parents that have as many columns; θ begins at the starts. `products` are those of all columns of Z."""
        sets = [terms(own, self.family.roles).parents for own in parents]
        members = np.array([standardised.places(own) for own in sets], np.int64)
        layout = self.family.layout(self.child, members.shape[1] - 1)
        penalty = np.zeros((len(sets), layout.size, layout.size))
        scale = np.concatenate([[1.0], standardised.scale])
        for g, own in enumerate(sets) if self.family.ridge else ():
            size, at = scale[members[g]][layout.places], Regressors(self.child, own, np.zeros(members.shape[1] - 1))
            penalty[g] = self.family.penalty(at) / size / size[:, None]
        kept = independent(products[members[:, :, None], members[:, None, :]], self.child.name) | bool(self.family.ridge)
        kept, none = kept[:, layout.places], layout.of_levels(self.levels)
        foreign = np.any(~kept & (starts != none), axis=1)  # a start in a column that is not kept says nothing of the others
        batch = RegressionBatch(self.family, self.child, members, np.where(foreign[:, None], none, starts))
        return BatchClimb(batch, penalty, len(layout.levels), none, kept)


def climb_all(
    rows: Data, standardised: Standardised, climbs: Sequence[BatchClimb], watch: Callable[[], None], threads: int | None = None
) -> int:
    """Take all climbs to their ends, together; how many passes over the rows that took. `watch` is called before each."""
    passes = 0
    while live := [c for c in climbs if c.open.any()]:
        watch()
        told = rows.fold(BatchSums(standardised, tuple(c.question for c in live)), threads=threads)
        for climb, sums in zip(live, told, strict=True):
            climb.take(sums)
        passes += 1
    return passes


def supremum_of(rows: Data, family: Any, child: Variable, parents: Sequence[Variable]) -> Supremum:
    """That of one regression."""
    standardised = Standardised.of(rows, parents)
    exposed = [p for p in parents if p.name in family.roles]
    own = RegressionChild.of(rows, family, child, exposed)
    levels = family.layout(child, len(terms(parents, family.roles).names)).of_levels(own.levels)
    climb = own.climb(standardised, [parents], levels[None], column_products(rows, standardised))
    climb_all(rows, standardised, [climb], lambda: None)
    return climb.suprema(standardised, own.summary)[0]


def column_products(rows: Data, standardised: Standardised, threads: int | None = None) -> Array:
    """Σ w z zᵀ of all columns, in one pass."""
    products = np.asarray(rows.fold(ProductSums(standardised), threads=threads))
    if not np.isfinite(products).all():
        place = int(np.argmin(np.isfinite(np.diag(products))))
        raise too_large(next(v.name for v in standardised.variables if place in standardised.places([v])[1:]))
    return products


def _solve(A: Array, b: Array, kept: npt.NDArray[np.bool_]) -> Array:
    """A⁻¹ b of each, in the parameters that are kept and 0 in the others; the smallest solution where A is singular."""
    m = A.shape[1]
    A = np.where(kept[:, :, None] & kept[:, None, :], A, np.eye(m))
    scale = np.sqrt(np.maximum(np.diagonal(A, axis1=1, axis2=2), 1e-300))
    R, c = A / scale[:, :, None] / scale[:, None, :], b / scale
    try:
        x = np.linalg.solve(R, c[:, :, None])[:, :, 0]
    except np.linalg.LinAlgError:
        x = np.einsum("bij,bj->bi", np.linalg.pinv(R, hermitian=True), c)
    return np.asarray(x / scale)
