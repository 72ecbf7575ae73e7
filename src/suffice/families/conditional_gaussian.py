"""Linear Gaussians: p(y | u, x) = Normal(y; a[u] + b[u]·x, v[u]) for a real child y, real parents x and finite parents u.

Without finite parents u there is one group; with them, one regression per configuration (a conditional Gaussian).

    statistic     per u: count, mean and scatter S of (x, y)
    estimate      b = S_xx⁻¹ S_xy,  a = ȳ − b·x̄,  residual s = S_yy − b·S_xy
                  v = s / N                   (maximum likelihood: divided by N, not by N − 1)
                  v = s / (ν − 2)             (posterior mean)
                  v = s / (ν + 2 + d)         (posterior mode, jointly with the d = 1 + |x| coefficients)
    prior         a, b | v ~ Normal, v ~ inverse gamma, imagined as κ rows of mean and ν rows of scatter
    evidence      Z(prior + seen) − Z(prior) − N/2 ln 2π,  Z = ln Γ(ν/2) − ½ ln κ − ½ ln|S_xx| − ν/2 ln(s/2)

The last line is the normal-inverse-gamma regression, and with a normal-Wishart prior on all variables it is BGe
(Geiger & Heckerman 2002, Annals of Statistics 30, p. 1412; Kuipers, Moffa & Heckerman 2014, same journal 42, p. 1689).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Real, Variable
from suffice.errors import FitError, ModelError, listing, quantity, whole
from suffice.families.parameter_draws import DrawnGaussian
from suffice.families.priors.number_priors import MeanBelief
from suffice.families.protocol.cpd import Array, Columns, Cpd, as_numbers, flat_index, split
from suffice.families.protocol.family import Estimate, Interval, Mean, PriorBelief
from suffice.numerics.exponential.normals.lines import (
    ConjugateLines,
    LeastSquares,
    log_line_prior,
    posterior_lines,
    regress,
    too_large,
)
from suffice.numerics.inference.numbers.gaussian import GaussianNode
from suffice.statistics import Moments, Request
from suffice.statistics.counts import checked_cells, describe, freeze, n_configurations, sizes

if TYPE_CHECKING:
    from suffice.numerics.exponential import Normal, StudentT

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class LinearGaussian:
    """The family of linear and conditional Gaussians."""

    iterative: ClassVar[bool] = False
    normal: ClassVar[bool] = True

    def needs(self, child: Variable, parents: Sequence[Variable]) -> Request:
        finite, reals = split(parents)
        return Request(tuple(p.name for p in finite), (*(p.name for p in reals), child.name))

    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int:
        finite, reals = split(parents)
        return n_configurations(finite) * (len(reals) + 2)

    def log_likelihood(self, child: Variable, seen: Moments) -> float:
        """Σᵤ −N/2 (ln(2π s/N) + 1): the log-likelihood at its maximum."""
        seen = seen.at(seen.keys[seen.count > 0])
        _, variance = likeliest_lines(child, seen, lenient=False)
        return float((-0.5 * seen.count * (LOG_2PI + np.log(variance) + 1.0)).sum())

    def log_evidence(self, child: Variable, seen: Moments, imagined: Moments | PriorBelief) -> float:
        """The log-probability of the child's data given the parents', with the parameters integrated out."""
        if not isinstance(imagined, Moments):
            return float(imagined.log_evidence(child, seen))
        before = imagined.at(seen.keys)
        Z_after, Z_before = (posterior_lines(child, s).log_normaliser for s in (seen + before, before))
        return float((Z_after - Z_before).sum() - 0.5 * LOG_2PI * seen.total)

    def estimate(
        self, child: Variable, parents: Sequence[Variable], seen: Moments, imagined: Moments | PriorBelief | None, how: Estimate
    ) -> ConditionalGaussian:
        finite, reals = split(parents)
        Q = checked_cells(finite, f"the table of {child.name!r}")
        if isinstance(imagined, MeanBelief):
            shape, means = sizes(finite), imagined.posterior(seen, Q).mean
            numbers = means.reshape(shape), np.zeros((*shape, 0)), np.full(shape, imagined.variance)
            return ConditionalGaussian(child, tuple(parents), *numbers, seen, imagined)
        if imagined is not None and not isinstance(imagined, Moments):
            drawn: ConditionalGaussian = imagined.estimate(child, parents, seen)
            return drawn
        moments = (seen if imagined is None else seen + imagined).at(np.arange(Q))
        if imagined is None:
            line, variance = likeliest_lines(child, moments, lenient=bool(finite))
            if not finite and np.isnan(variance).any():
                raise FitError(f"{child.name!r} cannot be fitted: there are no rows")
        else:
            lines = posterior_lines(child, moments)
            least = float(lines.df.min(initial=np.inf))
            if isinstance(how, Mean) and least <= 2.0:
                raise FitError(
                    f"the posterior mean of the variance of {child.name!r} does not exist with df {least:g}; give the prior a df "
                    "above 2"
                )
            line, variance = lines.line, np.asarray(lines.line.residual / how.rows_behind(lines.df, lines.mean.shape[-1]))
        known, shape, b = ~np.isnan(variance), sizes(finite), line.coefficients
        level = moments.mean[..., -1] - (b * moments.mean[..., :-1]).sum(axis=-1)  # E[a] = ȳ − b̂·x̄
        intercept = np.where(known, level, np.nan).reshape(shape)
        coefficients = np.where(known[:, None], b, np.nan).reshape(*shape, len(reals))
        return ConditionalGaussian(child, tuple(parents), intercept, coefficients, variance.reshape(shape), seen, imagined)


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalGaussian(Cpd):
    """p(child | parents) = Normal(intercept[u] + coefficients[u]·x, variance[u]): arrays with one axis per finite parent u;
    the coefficients' last axis follows `real_parents`.
    """

    child: Variable
    parent_variables: tuple[Variable, ...]
    intercept: Array
    coefficients: Array
    variance: Array
    seen: Moments | None = None
    imagined: Moments | MeanBelief | None = None

    types: ClassVar[tuple[str, ...]] = ("gaussian",)
    children: ClassVar[Any] = Real
    arrays: ClassVar[tuple[str, ...]] = ("intercept", "coefficients", "variance")
    positive: ClassVar[tuple[str, ...]] = ("variance",)
    kind: ClassVar[str] = "Gaussian"
    family: ClassVar[LinearGaussian] = LinearGaussian()  # type: ignore[misc]
    is_line: ClassVar[bool] = True
    noun: ClassVar[str] = "normal distribution"

    def __post_init__(self) -> None:
        for name in ("intercept", "coefficients", "variance"):
            object.__setattr__(self, name, freeze(np.array(getattr(self, name), dtype=np.float64)))
        if np.any(self.variance <= 0.0) or np.any(np.isinf(self.variance)):
            raise ModelError(f"the variance of {self.child.name!r} must be a positive number")

    @property
    def entries(self) -> dict[str, int]:
        """Intercept, coefficient of each real parent, variance: each one number for each configuration of the finite parents."""
        return dict.fromkeys(("intercept", *self.real_parents, "variance"), self.variance.size)

    @property
    def unsupported(self) -> npt.NDArray[np.bool_]:
        """For each configuration of the finite parents: whether it had no rows, or too few for an estimate."""
        return super().unsupported | (np.isnan(self.variance) & (self.seen is not None))

    def node(self, number: Mapping[str, int], real_number: Mapping[str, int]) -> GaussianNode:
        finite = tuple(number[p.name] for p in self.finite_parents)
        reals = tuple(real_number[p] for p in self.real_parents)
        return GaussianNode(finite, reals, self.intercept, self.coefficients, self.variance)

    def interval(self, level: float = 0.95) -> dict[str, Interval]:
        """Credible intervals of `intercept`, `coefficients` (Student t) and `variance` (inverse gamma)."""
        if isinstance(self.imagined, MeanBelief) and self.seen is not None:  # the variance is known
            found = {name: Interval(getattr(self, name), getattr(self, name)) for name in ("coefficients", "variance")}
            found = {"intercept": self.imagined.interval(self.seen, self.variance.size, level), **found}
        else:
            found = self.posterior_lines().interval(level)
        return {name: Interval(*(end.reshape(getattr(self, name).shape) for end in ends)) for name, ends in found.items()}

    def predictive(self, given: Mapping[str, object] | None = None) -> StudentT | Normal:
        """The Student t of the next child given its parents, parameters integrated out; a normal where the variance is known."""
        from suffice.numerics.exponential import Normal, StudentT

        given = given or {}
        g = self.configuration(given, "value")
        if isinstance(self.imagined, MeanBelief) and self.seen is not None:
            means = self.imagined.posterior(self.seen, self.variance.size)
            return Normal(float(means.mean[g]), float(means.variance[g] + self.imagined.variance))
        at = np.array([_number(given[p], p) for p in self.real_parents])
        return StudentT(*(float(number[g]) for number in self.posterior_lines().predictive(at)))

    def log_likelihood(self, statistic: Moments) -> float:
        """Σ ln p(y | u, x) from moments alone."""
        a, b, v = self._at(statistic.keys, statistic.count > 0)
        c = np.concatenate([-b, np.ones((len(b), 1))], axis=1)
        residual = np.einsum("gi,gij,gj->g", c, statistic.scatter, c)
        off = np.einsum("gi,gi->g", c, statistic.mean) - a
        terms = statistic.count * (LOG_2PI + np.log(v)) + (residual + statistic.count * off**2) / v
        return float(-0.5 * terms[statistic.count > 0].sum())

    def log_prob(self, columns: Columns) -> Array:
        y = columns[self.child.name]
        mean, v = self._mean(columns, len(y))
        return np.asarray(-0.5 * (LOG_2PI + np.log(v) + (y - mean) ** 2 / v))

    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]:
        mean, v = self._mean(columns, n)
        return np.asarray(mean + np.sqrt(v) * rng.standard_normal(n))

    def log_prob_at(self, parent: str, state: int, columns: Columns, n: int) -> Array:
        if [p.name for p in self.finite_parents] != [parent] or np.isnan(self.variance[state]):  # what has none is refused there
            return super().log_prob_at(parent, state, columns, n)
        # One normal regression for all rows: nothing need be looked up for each of them.
        off, v = columns[self.child.name] - self.intercept[state], float(self.variance[state])
        for real, slope in zip(self.real_parents, self.coefficients[state], strict=True):
            off -= slope * columns[real]
        return np.asarray(-0.5 * (LOG_2PI + np.log(v) + off**2 / v))

    def as_line(self) -> tuple[Array, Array, Array]:
        return self.intercept, self.coefficients, self.variance

    def fill_empty(self, mean: float, variance: float) -> ConditionalGaussian:
        lost = self.undefined
        a, v = np.where(lost, mean, self.intercept), np.where(lost, variance, self.variance)
        return replace(self, intercept=a, coefficients=np.where(lost[..., None], 0.0, self.coefficients), variance=v)

    def perturb(self, parent: str, rng: np.random.Generator) -> ConditionalGaussian:
        moved = self.intercept + 0.5 * np.sqrt(self.variance) * rng.standard_normal(self.intercept.shape)
        return replace(self, intercept=moved)

    def log_prior(self, imagined: Any, how: Estimate, log_scale: float) -> float:
        """Of imagined moments −r/2 ln v − R/2v, R the residual of the line: see `suffice.learning.incomplete.objective`."""
        if not isinstance(imagined, Moments):
            return float(imagined.log_prior(self.intercept.reshape(-1)))
        a, b, v = self.intercept.reshape(-1), self.coefficients.reshape(self.variance.size, -1), self.variance.reshape(-1)
        prior = imagined.at(np.arange(len(v)))
        rows = how.rows_behind(prior.df, 1 + b.shape[1])
        own = log_line_prior(rows, prior.count, prior.mean, prior.scatter, a, b, v)
        return float((own - rows * log_scale).sum())

    def _distinguishing_arrays(self) -> list[Array]:
        spread = np.sqrt(np.nanmean(self.variance)) or 1.0
        return [np.nan_to_num(a) for a in (self.intercept / spread, self.coefficients, np.log(self.variance))]

    def _entropies(self, held: npt.NDArray[np.bool_]) -> Array:
        return normal_entropy(self.variance[held])

    def _draw_parameters(self, n: int, rng: np.random.Generator) -> dict[str, Array]:
        number = {name: i for i, name in enumerate(self.parents)}
        node = DrawnGaussian(self, number, number).draw(n, rng)
        return {"intercept": node.intercept, "coefficients": node.coefficients, "variance": node.variance}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any], child: Any, parents: Sequence[Variable], seen: Any, imagined: Any) -> Cpd:
        if "own" not in d:
            return super().from_dict(d, child, parents, seen, imagined)
        own: Any = cls._arrays_of(d, child, parents)
        return SharedGaussian(child, tuple(parents), **own, own=whole(d["own"], f"the number of parameters of {child.name!r}", 0))

    def without(self, values: Mapping[str, float]) -> ConditionalGaussian:
        """The distribution where some real parents are these numbers, which move into the intercept.

        It has no posterior: its moments speak of the parents that it no longer has.
        """
        at = np.array([values.get(p, 0.0) for p in self.real_parents])
        left = [i for i, p in enumerate(self.real_parents) if p not in values]
        parents = tuple(p for p in self.parent_variables if p.name not in values)
        intercept = self.intercept + self.coefficients @ at
        return ConditionalGaussian(self.child, parents, intercept, self.coefficients[..., left], self.variance)

    def posterior_lines(self) -> ConjugateLines:
        """What is known of the line in each configuration of the finite parents, after seen and imagined rows."""
        return posterior_lines(self.child, self.posterior().at(np.arange(self.variance.size)))

    def _mean(self, columns: Columns, n: int) -> tuple[Array, Array]:
        rows = flat_index(columns, self.finite_parents, n)
        a, b, v = self._at(rows, np.ones(n, dtype=bool))
        for j, parent in enumerate(self.real_parents):
            a = a + b[:, j] * columns[parent]
        return a, v

    def _at(self, rows: npt.NDArray[np.int64], used: npt.NDArray[np.bool_]) -> tuple[Array, Array, Array]:
        """The parameters of each row's configuration; one that has none is refused by name."""
        variance = self.variance.reshape(-1)
        if np.isnan(variance).any():
            lost = np.isnan(variance[rows]) & used
            if lost.any():
                where = describe(int(rows[np.argmax(lost)]), self.finite_parents)
                raise ModelError(f"{self.child.name!r} has no parameters at {where}: too few rows had it; fit with a prior")
        k = self.coefficients.shape[-1]
        return self.intercept.reshape(-1)[rows], self.coefficients.reshape(len(variance), k)[rows], variance[rows]

    def _numbers(self, limit: int) -> tuple[list[str], list[list[object]]]:
        n = self.variance.size
        columns = self.intercept.reshape(n, 1), self.coefficients.reshape(n, len(self.real_parents)), self.variance.reshape(n, 1)
        return ["intercept", *self.real_parents, "variance"], np.concatenate(columns, axis=1)[:limit].tolist()


@dataclass(frozen=True, eq=False, repr=False)
class SharedGaussian(ConditionalGaussian):
    """A conditional Gaussian that shares numbers with other classes or columns; `own` are those that are counted here."""

    own: int = 0

    @classmethod
    def of(cls, cpd: ConditionalGaussian, column: int, *, tied: bool) -> SharedGaussian:
        """The same numbers in the place of a column: tied, one set of slopes and variance for all classes; else the variance of
        a class is counted with its first column."""
        K = cpd.variance.size
        own = K + column + 1 if tied else K if column else 2 * K
        return cls(cpd.child, cpd.parent_variables, cpd.intercept, cpd.coefficients, cpd.variance, cpd.seen, own=own)

    @property
    def n_parameters(self) -> int:
        return self.own

    def to_dict(self) -> dict[str, Any]:
        return {**super().to_dict(), "own": self.own}

    def posterior_lines(self) -> ConjugateLines:
        raise FitError(
            f"{self.child.name!r} shares its variance with other classes or columns, and has no posterior of its own: take "
            "covariance=Full() or Diagonal() and a prior for intervals and predictives"
        )


def normal_entropy(variance: Array) -> Array:
    return np.asarray(0.5 * (LOG_2PI + 1.0 + np.log(variance)))


def likeliest_lines(child: Variable, seen: Moments, *, lenient: bool) -> tuple[LeastSquares, Array]:
    """The lines of largest likelihood, and their variances: NaN where there are no rows, and where it is `lenient` too few.

    A group has an estimate if it has enough rows, and some residual variance. Only weights are known here: whole numbers above 1
    are taken for numbers of rows, others are judged by the residual alone.
    """
    if not np.isfinite(seen.scatter).all():
        raise too_large(seen.reals[-1])
    line, N, d = regress(seen.scatter), seen.count, len(seen.reals)
    enough = ~((N > 1) & (np.rint(N) == N)) | (d < N)
    there = (N > 0) & enough & ~line.vanishes
    refused = (N > 0) & ~there & (((line.collinear >= 0) & (d < N)) | (not lenient))
    if refused.any():
        raise no_estimate(child, seen, int(np.argmax(refused)), line)
    return line, np.divide(line.residual, N, out=np.full(len(N), np.nan), where=there)


def no_estimate(child: Variable, seen: Moments, g: int, line: LeastSquares) -> FitError:
    """Why there is no maximum likelihood estimate, in one sentence."""
    rows, d, place = float(seen.count[g]), len(seen.reals), int(line.collinear[g])
    where = f" at {describe(int(seen.keys[g]), seen.variables)}" if seen.variables else ""
    what = f"{child.name!r}{where} cannot be fitted from {quantity(rows, 'row')} by maximum likelihood"
    if rows < d + 1:
        return FitError(f"{what}: its {quantity(d, 'coefficient')} and variance need at least {d + 1} rows, or a prior")
    if place >= 0:
        column, before = seen.reals[place], seen.reals[:place]
        of = f"a linear combination of {listing(before)} or constant" if before else "constant"
        return FitError(f"{what}: its parent {column!r} is {of}; leave it out, or give a prior")
    parents = ", its parents determine it" if d > 1 else ", all its values are the same"
    return FitError(f"{what}: there is no residual variance{parents}; give a prior")


def _number(value: Any, name: str) -> float:
    refusal = f"{name!r} is a real parent and needs a finite number, not {value!r}"
    x = as_numbers(value, refusal)
    if x.ndim or not np.isfinite(x):
        raise ModelError(refusal)
    return float(x)
