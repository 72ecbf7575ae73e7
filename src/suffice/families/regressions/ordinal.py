"""Proportional odds: regressions of a finite child whose states have an order, from the first to the last.

    p(y ≤ k | x) = F(ζₖ − b·x)        F(t) = 1/(1 + e^(−t)),   ζ₀ < ζ₁ < … cut points

One set of coefficients serves every cut point; the signs are those of `polr` in R. With u = ζ_y − b·x and l = ζ_{y−1} − b·x

    ln p(y | x) = ln F(u) + ln F(−l) + ln(1 − e^(l − u))

whose last term does not hang on x, so that no digits are lost in the difference of two cumulative probabilities. It is concave in
(ζ, b) (Burridge 1981, Journal of the Royal Statistical Society B 43, p. 41); where the cut points are out of order, −∞.
McCullagh 1980, Journal of the Royal Statistical Society B 42, p. 109.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.errors import ModelError
from suffice.families.design import ParameterLayout
from suffice.families.protocol.family import Array
from suffice.families.regressions.fitted import Summary, Sums
from suffice.families.regressions.glm import OfStates
from suffice.variables import Finite


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

    def check_levels(self, child: Finite, levels: Array) -> None:
        if not np.all(np.diff(levels) > 0):
            raise ModelError(f"the cut_points of {child.name!r} must rise from each to the next, not {levels}")

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

    >>> log_gaps(np.array([0.0, np.log(2.0)])).round(4)
    array([ 0.    , -0.6931,  0.    ])
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
