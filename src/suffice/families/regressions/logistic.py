"""Regressions of a finite child of K states, in no order (logistic), or in one (proportional odds).

Logistic regression: p(y = k | x) = exp ηₖ / Σⱼ exp ηⱼ, η₀ = 0 and ηₖ = aₖ + bₖ·x.

The columns x are the numbers of the real parents and, of each finite parent, an indicator of every state but its first; there
are no interactions. The first state of the child is the reference, so that (K − 1)(1 + p) parameters say all.

There is no sufficient statistic of rows with numbers in them: the family is iterative. With θ = (a, b), X = (1, x − c) for a
centre c that keeps the digits, and row weights w, a pass over the rows sums

    log-likelihood  Σ w ln p(y | x)
    gradient        G = Σ w (1[y = k] − pₖ) X
    scatter         S = Σ w X Xᵀ                         (K = 2: Σ w c(η) X Xᵀ, c(η) = 2 tanh(η/2)/η ≤ 1)
    counts          Σ w 1[y = k]
    powers          Σ X¹⁶, whose root is at least max |X|
    hessian         H = Σ w pₖ (1[k = l] − pₗ) X Xᵀ      (where it is small)

from which two steps are known that never lower the log-likelihood; the one that promises more is taken.

    bound           E ⊗ ½S is nowhere less than H, with E = I − 11ᵀ/K and E⁻¹ = I + 11ᵀ: solve it against G
                    (Böhning & Lindsay 1988, Annals of the Institute of Statistical Mathematics 40, p. 641; for K = 2 the sharper
                    bound of Jaakkola & Jordan 2000, Statistics and Computing 10, p. 25)
    damped Newton   d = H⁻¹ G. Along d the third derivative is at most M times the second, M the widest range over the states of
                    a row's change of η; so t = ln(1 + M)/M of d gains at least G·d (t − (M − ln(1 + M))/M²)
                    (the self-concordance of Bach 2010, Electronic Journal of Statistics 4, p. 384)

With `ridge` λ the objective is Σ w ln p − ½ λ tr(E b P bᵀ), P = 1 for a number and I − 11ᵀ/r among the indicators of r states:
half λ times the squares of the effects, each set of effects taken to sum to 0, so that no state is special. For K = 2, where
there is one predictor, E is taken as 1: the prior of each effect is normal of variance 1/λ, as in the other regressions.

`step` and `advance` are one sure step, as EM takes it; `irls` goes to the top with `measure`, by Newton steps it checks.

Proportional odds: p(y ≤ k | x) = F(ζₖ − b·x), F(t) = 1/(1 + e^(−t)), with cut points ζ₀ < ζ₁ < … and one set of coefficients for
all of them; the signs are those of `polr` in R. With u = ζ_y − b·x and l = ζ_{y−1} − b·x

    ln p(y | x) = ln F(u) + ln F(−l) + ln(1 − e^(l − u))

whose last term does not hang on x, so that no digits are lost in the difference of two cumulative probabilities. It is concave in
(ζ, b) (Burridge 1981, Journal of the Royal Statistical Society B 43, p. 41); where the cut points are out of order, −∞.
McCullagh 1980, Journal of the Royal Statistical Society B 42, p. 109.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.basis.variables import Finite, Variable
from suffice.families.design import ParameterLayout, Regressors, Summary, Sums, read_only, shrunk, terms
from suffice.families.hierarchical.laplace import log_softmax
from suffice.families.protocol.family import Array, Columns
from suffice.families.regressions.glm import OfStates
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.numerics.exponential.normals.lines import independent

SMALL = 256
"""Up to so many parameters a step asks for the Hessian unasked: it is worth its sums."""

POWER = 16
"""The power whose sum bounds the largest number of a column: for a million rows it is at most 2.4 times too high."""


class Working(NamedTuple):
    """What one pass over rows says about some parameters; it adds. The Hessian may be empty."""

    log_likelihood: float
    gradient: Array
    scatter: Array
    counts: Array
    powers: Array
    hessian: Array


@dataclass(frozen=True)
class Logistic(OfStates):
    """The family of logistic regressions of a finite node: of two states, or multinomial. `ridge` shrinks the coefficients.

    >>> import suffice as sf
    >>> data = {"x": [1.0, 2.0, 3.0, 4.0], "y": ["no", "yes", "no", "yes"]}
    >>> sf.fit("x -> y", data, families={"y": Logistic()})["y"].coefficients.round(4)
    array([[0.9082]])
    """

    ridge: float = 0.0

    lost: ClassVar[str] = "its log-odds would be infinite; leave the state out"
    word = "logistic"
    types = ("logistic",)
    words: ClassVar[str] = "logistic regression"
    by_lms: ClassVar[bool] = True
    sure: ClassVar[bool] = True
    response: ClassVar[int | None] = 1

    def start(self, child: Variable, parents: Sequence[Variable], known: Summary | None = None) -> RegressionCpd:
        """No effects: every state as probable as the others, whatever is known."""
        self.check(child, parents)
        return self.cpd(child, tuple(parents), np.zeros(self.n_parameters(child, parents)))

    def random(
        self, child: Variable, parents: Sequence[Variable], rng: np.random.Generator, known: Summary | None = None
    ) -> RegressionCpd:
        """Standard normal intercepts and effects of states, no effects of numbers (whose scale is not known): a start where
        some of the variables are hidden and equal effects would stay equal."""
        cpd = self.start(child, parents)
        effects = rng.standard_normal(cpd.coefficients.shape)
        effects[:, terms(parents).numbers] = 0.0
        return replace(cpd, intercept=rng.standard_normal(cpd.intercept.shape), coefficients=effects)

    def step(
        self, cpd: RegressionCpd, columns: Columns, weights: npt.NDArray[Any] | None = None, *, newton: bool | None = None
    ) -> Working:
        """The sums of one pass over these rows, at the parameters of `cpd`; whether with the Hessian goes by its size."""
        curved = cpd.n_parameters <= SMALL if newton is None else newton
        at = Regressors(cpd.child, cpd.parent_variables, cpd.centre)
        sums: Working = self.measure(at, cpd, columns, weights, sums=_working_sums, complete=False, curved=curved)
        return sums

    def advance(self, cpd: RegressionCpd, statistic: tuple[Any, ...]) -> RegressionCpd:
        """The parameters after one step that does not lower Σ w ln p (less the ridge). A column that the rows cannot tell
        from those before it stays where it is."""
        s = Working(*statistic)
        kept = np.flatnonzero(independent(self._half(cpd, s), cpd.child.name))  # the intercept is the first
        G, moved = self._gradient(cpd, s), np.zeros_like(s.gradient)  # to the top of the bound, and what that gains at least
        moved[:, kept] = _solve_positive(self._half(cpd, s)[np.ix_(kept, kept)], (G + G.sum(axis=0))[:, kept].T).T
        gain = 0.5 * float(np.sum(G * moved))
        further, more = self._damped_step(cpd, s, kept) if s.hessian.size else (moved, gain)
        layout, best = cpd.layout, further if more > gain else moved
        theta = layout.shift(layout.shift(cpd.theta, cpd.centre) + best.reshape(-1), -cpd.centre)
        mean = s.scatter[0, 1:] / s.scatter[0, 0] if s.scatter[0, 0] > 0 else np.zeros_like(cpd.centre)
        centre = cpd.centre + np.where(terms(cpd.parent_variables).numbers, mean, 0.0)  # to the mean of the numbers
        return self.cpd(cpd.child, cpd.parent_variables, theta, centre=centre)

    def _damped_step(self, cpd: RegressionCpd, s: Working, kept: npt.NDArray[np.intp]) -> tuple[Array, float]:
        """As much of the Newton step as is safe, and what it gains at least: nothing where its digits are in doubt."""
        H = s.hessian + self.penalty(Regressors(cpd.child, cpd.regressors, cpd.centre))
        G, d = self._gradient(cpd, s), np.zeros(len(H))
        used = (len(s.scatter) * np.arange(len(G))[:, None] + kept).reshape(-1)
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # where every row is sure, H is next to nothing
                d[used] = _solve_positive(H[np.ix_(used, used)], G.reshape(-1)[used])
                scale = np.sqrt(np.diag(H)[used])
                off, size = (float(np.linalg.norm(v[used] / scale)) for v in (H @ d - G.reshape(-1), G.reshape(-1)))
                step = d.reshape(G.shape)
                M, slope = _widest(cpd, s, step), float(np.sum(G * step))
        except np.linalg.LinAlgError:
            return np.zeros_like(G), -np.inf
        if not (np.isfinite(M) and M > 0 and slope > 0 and (off / size if size else 0.0) < 1e-6):
            return np.zeros_like(G), -np.inf
        t = np.log1p(M) / M
        return t * step, slope * (t - (1.0 - t) / M)

    def _half(self, cpd: RegressionCpd, s: Working) -> Array:
        """The bound of one predictor: E, which the ridge takes as 1 of two states, is ½ of them in the bound."""
        ridge = self.ridge * (2.0 if cpd.child.n_states == 2 else 1.0)
        return np.asarray(0.5 * s.scatter + ridge * shrunk(cpd.parent_variables))

    def slopes(self, cpd: RegressionCpd, statistic: tuple[Any, ...]) -> tuple[Array, Array, float]:
        """Where the Hessian would be large, its bound stands for it."""
        s = Working(*statistic)
        K = cpd.child.n_states
        H = s.hessian if s.hessian.size else np.kron(np.eye(K - 1) - 1.0 / K, 0.5 * s.scatter)
        penalty = self.penalty(Regressors(cpd.child, cpd.regressors, cpd.centre))
        return self._gradient(cpd, s).reshape(-1), H + penalty, float(s.counts.sum())

    def log_prior(self, cpd: RegressionCpd) -> float:
        """−½ λ tr(E b P bᵀ): what the ridge adds to the objective."""
        return -0.5 * float(np.sum(self._pull(cpd) * cpd.numbers)) if self.ridge else 0.0

    def _gradient(self, cpd: RegressionCpd, s: Working) -> Array:
        return np.asarray(s.gradient - self._pull(cpd))

    def _pull(self, cpd: RegressionCpd) -> Array:
        """λ E b P, the slope of the ridge."""
        return np.asarray(self.ridge * self.contrasts(cpd.child) @ cpd.numbers @ shrunk(cpd.parent_variables))

    def sums_of_states(self, X: Array, y: npt.NDArray[Any], w: Array, theta: Array) -> Sums:
        """The same, the predictors of the states one after the other."""
        from suffice.numerics.kernels.regressions.regression import softmax_sums

        theta = theta.reshape(-1, len(X))
        gradient, hessian, totals = np.zeros(theta.shape), np.zeros((theta.size, theta.size)), np.zeros(3)
        softmax_sums(X, read_only(y), read_only(w), read_only(theta), gradient, hessian, totals)
        return Sums(float(totals[0]), gradient.reshape(-1), hessian, float(totals[1]), float(totals[2]))

    def contrasts(self, child: Finite) -> Array:
        """E = I − 11ᵀ/K over the states but the first; 1 of two states."""
        K = child.n_states
        return np.eye(1) if K == 2 else np.eye(K - 1) - 1.0 / K

    def title(self, child: Finite, dispersion: float) -> str:
        return f"logistic, against {child.name}={child.states[0]}"

    def log_probs(self, eta: Array) -> Array:
        return log_softmax(np.concatenate([np.zeros((1, *eta.shape[1:])), eta]), axis=0)

    def draw(self, eta: Array, dispersion: float, n: Array, rng: np.random.Generator) -> npt.NDArray[Any]:
        ends = np.cumsum(np.exp(self.log_probs(eta)), axis=0)
        return np.asarray((rng.random(eta.shape[1]) * ends[-1] >= ends[:-1]).sum(axis=0), dtype=np.int32)


def _working_sums(X: Array, y: npt.NDArray[np.intp], w: Array, cpd: RegressionCpd, columns: Columns, *, curved: bool) -> Working:
    layout = cpd.layout
    log_p = cpd.family.log_probs(layout.predictors(layout.shift(cpd.theta, cpd.centre)) @ X)
    P, rest = np.exp(log_p), -np.expm1(log_p)  # which keeps its digits where p is nearly 1
    residual, rows = -P, np.arange(len(y))
    residual[y, rows] = rest[y, rows]
    with np.errstate(over="ignore", invalid="ignore"):  # squares beyond the largest double are refused by name in `advance`
        G = (residual[1:] * w) @ X.T
        bound = 1.0  # c(η) = 2 tanh(η/2)/η of two states; of more no sharper bound of this form is known to us
        if len(log_p) == 2:
            half = np.maximum(np.abs(log_p[1] - log_p[0]) / 2.0, 1e-9)
            bound = np.tanh(half) / half
        S = (X * (w * bound)) @ X.T
        q, K = (len(X), len(P)) if curved else (0, 1)
        H = np.empty(((K - 1) * q, (K - 1) * q))  # minus the second derivatives, a block for each pair of states but the first
        for k in range(K - 1):
            for j in range(k + 1):
                block = (X * (w * P[k + 1] * (rest[k + 1] if j == k else -P[j + 1]))) @ X.T
                H[k * q : (k + 1) * q, j * q : (j + 1) * q] = block
                H[j * q : (j + 1) * q, k * q : (k + 1) * q] = block.T
        powers = np.square(np.square(np.square(np.square(X)))).sum(axis=1) if curved else np.zeros(len(X))
    return Working(float(w @ log_p[y, rows]), G, S, np.bincount(y, w, len(P)).astype(np.float64), powers, H)


def _widest(cpd: RegressionCpd, s: Working, d: Array) -> float:
    """At least the widest range, over the states of the child, of the change of η that a step d makes in any row."""
    largest = np.ones(len(s.powers))
    numbers = np.flatnonzero(terms(cpd.parent_variables).numbers) + 1
    largest[numbers] = s.powers[numbers] ** (1.0 / POWER)
    if np.any((largest == 0) & (np.diag(s.scatter) > 0)):  # numbers too small for their powers
        return np.inf
    changes = np.concatenate([np.zeros((1, d.shape[1])), d])
    apart = np.abs(changes[:, None] - changes) * largest
    total = apart[..., 0]
    for p in cpd.parents:
        total = total + apart[..., 1:][..., cpd.columns_of(p)].max(axis=-1, initial=0.0)  # a row is in one state only
    return float(total.max())


def _solve_positive(A: Array, b: Array) -> Array:
    """A⁻¹ b for a positive definite A, scaled to unit diagonal."""
    diagonal = np.diag(A)
    if np.any(diagonal <= 0):
        raise np.linalg.LinAlgError("singular")
    scale = np.sqrt(diagonal)
    rows = scale[:, None] if b.ndim == 2 else scale
    return np.asarray(np.linalg.solve(A / scale[:, None] / scale, b / rows) / rows)


@dataclass(frozen=True)
class ProportionalOdds(OfStates):
    """The family of ordered states: cumulative log-odds that are linear in the parents. `ridge` shrinks the coefficients.

    >>> import suffice as sf
    >>> data = {"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "y": ["low", "low", "mid", "low", "high", "mid"]}
    >>> rows = sf.scan(data, variables={"y": sf.Finite("y", ["low", "mid", "high"])})
    >>> cpd = sf.fit("x -> y", rows, families={"y": ProportionalOdds()})["y"]
    >>> cpd.cut_points.round(4), cpd.coefficients.round(4)
    (array([3.3365, 5.7687]), array([0.9531]))
    """

    ridge: float = 0.0

    ordered: ClassVar[bool] = True
    lost: ClassVar[str] = "its cut points would be infinite or equal; leave the state out"
    level_field: ClassVar[str] = "cut_points"
    word = "ordinal"
    types = ("ordinal",)
    words: ClassVar[str] = "proportional odds regression"
    level_words: ClassVar[str] = "intercept, its cut points,"

    def first_levels(self, s: Summary) -> Array:
        """The log-odds of the cumulative frequencies."""
        below = np.cumsum(s.child)[:-1]
        return np.asarray(np.log(below) - np.log(s.weight - below))

    def sums_of_states(self, X: Array, y: npt.NDArray[Any], w: Array, theta: Array) -> Sums:
        """The same at θ = (ζ, b)."""
        cuts = len(theta) - len(X) + 1
        if not np.all(np.diff(theta[:cuts]) > 0):
            return Sums(-np.inf, np.zeros(len(theta)), np.zeros((len(theta), len(theta))), 0.0, 0.0)
        return _sums(X, y, w, theta[:cuts], theta[cuts:])

    def limit_step(self, layout: ParameterLayout, theta: Array, ahead: Array) -> Array:
        """On the way ahead until two cut points would have come nine tenths of their distance nearer."""
        now, then = np.diff(theta[layout.levels]), np.diff(ahead[layout.levels])
        shares = np.where(then < 0.1 * now, 0.9 * now / np.where(then < now, now - then, 1.0), 1.0)
        return np.asarray(theta + min(1.0, float(shares.min(initial=1.0))) * (ahead - theta))

    def level_names(self, child: Finite) -> list[str]:
        return [f"{a}|{b}" for a, b in pairwise(child.states)]

    def title(self, child: Finite, dispersion: float) -> str:
        return "proportional odds"

    def log_probs_at(self, levels: Array, eta: Array) -> Array:
        return self.log_probs(eta, log_gaps(levels)[:, None])

    def log_probs(self, eta: Array, gaps: Array | None = None) -> Array:
        """ln p of each state, from η in rising order and `log_gaps` of the cut points, whose digits η may have lost."""
        end = np.zeros((1, *eta.shape[1:]))
        below, above = np.concatenate([sc.log_expit(eta), end]), np.concatenate([end, sc.log_expit(-eta)])
        return np.asarray(below + above + (log_gaps(eta) if gaps is None else gaps))

    def draw(self, eta: Array, dispersion: float, n: Array, rng: np.random.Generator) -> npt.NDArray[Any]:
        return np.asarray((rng.logistic(size=eta.shape[1]) >= eta).sum(axis=0), dtype=np.int32)


def log_gaps(cut_points: Array) -> Array:
    """ln(1 − exp(ζₖ₋₁ − ζₖ)) of each state; of the first and the last, which have no end on one side, 0.

    With F the logistic function, F(u) − F(l) = F(u) F(−l) (1 − exp(l − u)): the one term of ln p that x is not in.
    """
    end = np.zeros((1, *cut_points.shape[1:]))
    with np.errstate(divide="ignore"):
        return np.concatenate([end, np.log(-np.expm1(-np.diff(cut_points, axis=0))), end])


def _sums(X: Array, y: npt.NDArray[np.intp], w: Array, zeta: Array, b: Array) -> Sums:
    """log p and its derivatives: each row is one or two logistic regressions, on the cut points above and below its state."""
    cuts = len(zeta)
    ends = np.concatenate([[-np.inf], zeta, [np.inf]])
    shift = b @ X[1:]
    upper, lower = ends[y + 1] - shift, ends[y] - shift
    log_p = sc.log_expit(upper) + sc.log_expit(-lower) + log_gaps(zeta)[y]
    rise, fall = sc.expit(-upper), sc.expit(lower)  # the slopes of ln F(u) and −ln F(−l)
    above, below = w * rise * sc.expit(upper), w * fall * sc.expit(-lower)
    small, gaps = np.exp(-np.diff(zeta)), -np.expm1(-np.diff(zeta))
    counts = np.bincount(y, w, cuts + 1)
    pull = np.concatenate([[0.0], counts[1:-1] * small / gaps, [0.0]])
    stiff = np.concatenate([[0.0], counts[1:-1] * small / gaps**2, [0.0]])
    up, down = np.bincount(y, w * rise, cuts + 1) + pull, np.bincount(y, w * fall, cuts + 1) + pull
    gradient = np.concatenate([up[:-1] - down[1:], X[1:] @ (w * (fall - rise))])
    beside = np.equal(y, np.arange(cuts)[:, None]) * above + np.equal(y, np.arange(1, cuts + 1)[:, None]) * below
    mixed = beside @ X.T
    H = np.zeros((cuts + len(b), cuts + len(b)))
    H[:cuts, :cuts] = np.diag(mixed[:, 0] + stiff[:-1] + stiff[1:]) - np.diag(stiff[1:-1], 1) - np.diag(stiff[1:-1], -1)
    H[:cuts, cuts:] = -mixed[:, 1:]
    H[cuts:, :cuts] = H[:cuts, cuts:].T
    H[cuts:, cuts:] = (X[1:] * (above + below)) @ X[1:].T
    with np.errstate(over="ignore"):
        pearson = float(w @ np.expm1(-log_p))  # (1 − p)/p
    return Sums(float(w @ log_p), gradient, H, pearson, float(w.sum()))
