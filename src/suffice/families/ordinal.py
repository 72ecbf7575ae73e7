"""Proportional odds: regressions of a finite child whose states have an order, from the first to the last.

    p(y ≤ k | x) = F(ζₖ − b·x)        F(t) = 1/(1 + e^(−t)),   ζ₀ < ζ₁ < … cut points

One set of coefficients serves every cut point; the signs are those of `polr` in R. With u = ζ_y − b·x and l = ζ_{y−1} − b·x

    ln p(y | x) = ln F(u) + ln F(−l) + ln(1 − e^(l − u))

whose last term does not hang on x, so that no digits are lost in the difference of two cumulative probabilities. It is concave in
(ζ, b) (Burridge 1981, Journal of the Royal Statistical Society B 43, p. 41); where the cut points are out of order, −∞.
McCullagh 1980, Journal of the Royal Statistical Society B 42, p. 109.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.families.design import are_numbers, shrunk, terms
from suffice.families.family import Array, Columns
from suffice.families.glm import DRAGGED, OfStates, Regressors, Summary, Sums
from suffice.families.ordinal_cpd import OrdinalCpd, log_gaps, ordered_child
from suffice.variables import Variable


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
    lost: ClassVar[str] = "its cut points would be infinite or equal"
    words: ClassVar[str] = "proportional odds regression"

    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int:
        return ordered_child(child).n_states - 1 + len(terms(parents))

    def first(self, at: Regressors, s: Summary) -> Array:
        """No effects, the cut points the log-odds of the cumulative frequencies."""
        below = np.cumsum(s.child)[:-1]
        return np.concatenate([np.log(below) - np.log(s.weight - below), np.zeros(len(at.centre))])

    def sums(self, X: Array, y: npt.NDArray[Any], w: Array, theta: Array, columns: Columns) -> Sums:
        """The same at θ = (ζ, b)."""
        cuts = len(theta) - len(X) + 1
        if not np.all(np.diff(theta[:cuts]) > 0):
            return Sums(-np.inf, np.zeros(len(theta)), np.zeros((len(theta), len(theta))), 0.0, 0.0)
        return _sums(X, y, w, theta[:cuts], theta[cuts:])

    def penalty(self, at: Regressors) -> Array:
        """Λ of −½ θᵀΛθ, what the ridge adds to the objective."""
        cuts, P = ordered_child(at.child).n_states - 1, shrunk(at.parents)[1:, 1:]
        whole = np.zeros((cuts + len(P), cuts + len(P)))
        whole[cuts:, cuts:] = self.ridge * P
        return whole

    def places(self, at: Regressors) -> npt.NDArray[np.intp]:
        """The column that each parameter belongs to, from 1; 0 of a cut point."""
        return np.concatenate([np.zeros(ordered_child(at.child).n_states - 1, np.intp), 1 + np.arange(len(at.centre))])

    def predictors(self, at: Regressors, theta: Array) -> Array:
        """θ as a row for each cumulative log-odds."""
        cuts = ordered_child(at.child).n_states - 1
        return np.concatenate([theta[:cuts, None], np.tile(-theta[cuts:], (cuts, 1))], axis=1)

    def off_centre(self, at: Regressors, H: Array) -> Array:
        """As of other regressions: how far columns of numbers are from their centre among the rows that matter."""
        cuts = ordered_child(at.child).n_states - 1
        level = float(H[:cuts, :cuts].sum())
        if not level > 0:
            return np.zeros(len(at.centre))
        mean = -H[:cuts, cuts:].sum(axis=0) / level
        variance = np.maximum(np.diag(H)[cuts:] / level - mean**2, 0.0)
        return np.where(are_numbers(at.parents) & (mean**2 > DRAGGED * variance), mean, 0.0)

    def shifted(self, at: Regressors, theta: Array, off: Array) -> Array:
        """θ of the same log-odds where every centre is moved."""
        cuts = ordered_child(at.child).n_states - 1
        return np.concatenate([theta[:cuts] - theta[cuts:] @ off, theta[cuts:]])

    def sizes(self, at: Regressors, s: Sums) -> Array:
        """The size of each parameter's column: a change of the parameter times this is a change of the log-odds."""
        cuts, numbers = ordered_child(at.child).n_states - 1, are_numbers(at.parents)
        level = max(float(s.hessian[:cuts, :cuts].sum()), 1e-300)
        spread = np.sqrt(np.maximum(np.diag(s.hessian)[cuts:], 0.0) / level)
        return np.concatenate([np.ones(cuts), np.where(numbers, spread, 1.0)])

    def finished(
        self, at: Regressors, parents: Sequence[Variable], theta: Array, s: Sums, summary: Summary, **found: Any
    ) -> OrdinalCpd:
        """The CPD at θ, and what there is to know about the fit."""
        child = ordered_child(at.child)
        cuts = child.n_states - 1
        b, J = theta[cuts:], np.eye(len(theta))
        J[:cuts, cuts:] = at.centre
        covariance = J @ found["covariance"] @ J.T
        fitted = self.found(s, summary, covariance, found["iterations"])
        return OrdinalCpd(child, tuple(parents), theta[:cuts] + b @ at.centre, b, at.centre, self.ridge, fitted)


def _sums(X: Array, y: npt.NDArray[np.intp], w: Array, zeta: Array, b: Array) -> Sums:
    """log p and its derivatives: each row is one or two logistic regressions, on the cut points above and below its state."""
    from scipy.special import expit, log_expit

    cuts = len(zeta)
    ends = np.concatenate([[-np.inf], zeta, [np.inf]])
    shift = b @ X[1:]
    upper, lower = ends[y + 1] - shift, ends[y] - shift
    log_p = log_expit(upper) + log_expit(-lower) + log_gaps(zeta)[y]
    rise, fall = expit(-upper), expit(lower)  # the slopes of ln F(u) and −ln F(−l)
    above, below = w * rise * expit(upper), w * fall * expit(-lower)
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
