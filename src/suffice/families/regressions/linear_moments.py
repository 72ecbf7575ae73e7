"""Linear regression, and its fit from moments: of a number on numbers and states whose effects add, the moments within each
configuration of the finite parents say all. So they have an exact M-step, an exact update, and need no rows.

With d the indicators of a configuration, N, m, S the weight, mean and scatter of its numbers (x, y), the columns (d, x, y) have

    Σ N (v − v̄)(v − v̄)ᵀ + Σ S,   v = (d, m),  S only in the numbers

as scatter over all configurations, of which the last is regressed on the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Finite, Variable
from suffice.errors import FitError
from suffice.errors.remedies import ridge_of
from suffice.families.conditional_gaussian import ConditionalGaussian, LinearGaussian
from suffice.families.design import Maximum, Regressors, Summary, Sums, columns_of, terms
from suffice.families.protocol.family import Array, split
from suffice.families.regressions.glm import OnePredictor
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.numerics.exponential.normals.lines import LeastSquares, independent, regress
from suffice.statistics import Request
from suffice.statistics.counts import sizes
from suffice.statistics.moments import Spread


@dataclass(frozen=True)
class Linear(OnePredictor):
    """Linear regression of a real node, with one variance: y ~ Normal(a + b·x, σ²). Unlike the linear Gaussian that a real node
    has by default it has one set of coefficients for all states of its finite parents, whose effects add. `ridge` λ is in units
    of σ²: least squares plus λ b².

    >>> import suffice as sf
    >>> data = {"x": [1.0, 2.0, 3.0, 4.0], "g": ["a", "a", "b", "b"], "y": [1.0, 2.5, 5.0, 6.0]}
    >>> sf.fit("x -> y; g -> y", data, families={"y": Linear()})["y"].coefficients.round(4)
    array([1.25, 1.25])
    """

    response: ClassVar[int | None] = 0
    linear: ClassVar[bool] = True
    normal: ClassVar[bool] = True
    closes: ClassVar[bool] = True
    dispersed: ClassVar[bool] = True
    word = "linear"
    types = ("Linear",)
    words: ClassVar[str] = "linear regression"
    by_lms: ClassVar[bool] = True

    def curve(self, mean: float, trials: float) -> float:
        return 1.0

    def needs(self, child: Variable, parents: Sequence[Variable]) -> Request:
        return LinearGaussian().needs(child, parents)

    def spread_in_words(self, dispersion: float) -> str:
        return f", variance {dispersion:.6g}"

    def link(self, mean: float) -> float:
        return mean

    def mean(self, eta: Array) -> Array:
        return eta

    def level(self, theta: Array) -> float:
        return float(abs(theta[0]))

    def scale(self, s: Sums, deviance: float) -> float:
        return float(s.pearson / s.weight)

    def total(self, s: Sums, summary: Summary, dispersion: float) -> float:
        with np.errstate(divide="ignore"):
            return float(-0.5 * summary.weight * (np.log(2.0 * np.pi * dispersion) + 1.0))

    def log_prob(self, y: Array, eta: Array, dispersion: float, n: Array) -> Array:
        return np.asarray(-0.5 * ((y - eta) ** 2 / dispersion + np.log(2.0 * np.pi * dispersion)))

    def draw(self, eta: Array, dispersion: float, n: Array, rng: np.random.Generator) -> npt.NDArray[Any]:
        return np.asarray(rng.normal(eta, np.sqrt(dispersion)))

    def variance(self, eta: Array, dispersion: float, n: Array) -> Array:
        return np.full(eta.shape, dispersion)

    def in_scipy(self, stats: Any, eta: Array, dispersion: float, n: Array) -> Any:
        return stats.norm(eta, np.sqrt(dispersion))

    def from_closed(self, line: ConditionalGaussian) -> RegressionCpd:
        """Back from it: the effect of a state is what it changes where all other parents are in their first state."""
        at_first = (0,) * len(line.finite_parents)
        level, slopes = line.intercept[at_first], line.coefficients[at_first]
        effects = {v.name: np.moveaxis(line.intercept, i, 0) for i, v in enumerate(line.finite_parents)}
        steps = {p: effect.reshape(len(effect), -1)[1:, 0] - level for p, effect in effects.items()}
        numbers = {p: slopes[[j]] for j, p in enumerate(line.real_parents)}
        own = [(steps | numbers)[p.name] for p in terms(line.parent_variables, self.roles).parents]
        theta = np.concatenate([[level], *own])
        return self.cpd(line.child, line.parent_variables, theta, float(line.variance[at_first]))

    def outward_map(self, cpd: RegressionCpd, along: Array) -> Array:
        """∂ (intercept, coefficients, variance) / ∂ (those of scaled columns), from those of a line: effects of states are in the
        units of the child."""
        L, place = np.eye(cpd.n_parameters) * along[0, 0], {p: 1 + j for j, p in enumerate(cpd.real_parents)}
        L[-1, -1] = along[-1, -1]
        for i, term in enumerate(cpd.terms, 1):
            if term in place:
                L[i, i], L[0, i] = along[place[term], place[term]], along[0, place[term]]
        return np.asarray(L)

    def closed_form(self, cpd: RegressionCpd) -> ConditionalGaussian:
        """A conditional Gaussian: its intercepts are η in each configuration of the finite parents, the numbers being 0."""
        levels = cpd.predictor_by_states()
        slopes = [1.0 if p == self.offset else float(cpd.coefficients[cpd.terms.index(p)]) for p in cpd.real_parents]
        spread = np.broadcast_to(np.array(slopes), (*levels.shape, len(slopes)))
        return ConditionalGaussian(cpd.child, cpd.parent_variables, levels, spread, np.full(levels.shape, cpd.dispersion))


class CommonLine(NamedTuple):
    """One line for all configurations: y = levels[configuration] + slopes·x + e; the residual and scatter are of all rows.

    `regression` is that on the columns that are kept; `collinear` the first number that is a combination of other columns.
    """

    levels: Array
    slopes: Array
    weight: float
    scatter: Array
    regression: LeastSquares
    collinear: int | None


def indicators(finite: Sequence[Finite], keys: npt.NDArray[np.int64]) -> Array:
    """A row for each configuration, a column for each state but the first of each finite parent."""
    codes = np.unravel_index(keys, sizes(finite)) if finite else ()
    parts = [np.equal(c[:, None], np.arange(1, v.n_states)) for v, c in zip(finite, codes, strict=True)]
    return np.concatenate([np.zeros((len(keys), 0)), *parts], axis=1).astype(np.float64)


def common_line(
    finite: Sequence[Finite],
    keys: npt.NDArray[np.int64],
    spread: Spread,
    known: Mapping[int, float],
    penalty: Array | None = None,
) -> CommonLine:
    """The least squares of the last number on the others and the states. Slopes in `known`, by the place of their number, are
    not estimated. `penalty` is added to the scatter of the columns: indicators, then the numbers that are free."""
    weight, mean, _, scatter = spread
    k = mean.shape[1]
    free = [i for i in range(k - 1) if i not in known]
    A = np.vstack([np.eye(k)[free], [[1.0 if i == k - 1 else -known.get(i, 0.0) for i in range(k)]]])
    D, total = indicators(finite, keys), float(weight.sum())
    v = np.concatenate([D, mean @ A.T], axis=1)
    middle = weight @ v / total
    whole = (v - middle).T @ ((v - middle) * weight[:, None])
    whole[D.shape[1] :, D.shape[1] :] += A @ scatter.sum(axis=0) @ A.T
    if penalty is not None:
        whole[:-1, :-1] += penalty
    q = len(whole) - 1
    kept = np.flatnonzero(independent(whole[:q, :q], "the regression"))
    lost = [j - D.shape[1] for j in range(D.shape[1], q) if j not in kept]
    own = np.append(kept, q)
    r = regress(whole[np.ix_(own, own)])
    b = np.zeros(q)
    b[kept] = r.coefficients
    every = indicators(finite, np.arange(int(np.prod(sizes(finite), dtype=np.int64))))
    slopes = np.array([known.get(i, 0.0) for i in range(k - 1)])
    slopes[free] = b[D.shape[1] :]
    levels = middle[-1] - middle[:q] @ b + every @ b[: D.shape[1]]
    return CommonLine(levels, slopes, total, whole, r, free[lost[0]] if lost else None)


def fitted_line(family: Any, child: Variable, parents: Sequence[Variable], seen: Any) -> Any:
    """The linear regression of largest likelihood (less a ridge) from moments: what IRLS finds in the rows."""
    family.check(child, parents)
    (finite, reals), own = split(parents), terms(parents, family.roles).parents
    N = float(seen.count.sum())
    family.refuse(child, parents, blank := Summary(N, np.zeros(0), np.zeros(1), 0.0, N, 0.0))
    middle = seen.count @ (seen.mean + seen.rest) / N
    known = {j: 1.0 for j, p in enumerate(reals) if p.name == family.offset}
    free = [p.name for p in reals if p.name != family.offset]
    order = _order(own, finite, free)
    penalty = family.penalty(Regressors(child, own, np.zeros(len(order))))[1:, 1:]
    spread = Spread(seen.count, (seen.mean - middle) + seen.rest, np.zeros_like(seen.mean), seen.scatter)
    found = common_line(finite, seen.keys, spread, known, penalty[np.ix_(back := np.argsort(order), back)])
    if len(found.regression.coefficients) < len(order):
        raise FitError(
            f"{child.name!r} cannot be fitted: a column of its parents is a combination of others, or no row has a state of "
            f"them; leave a parent or state out, or use {ridge_of(type(family).__name__)}"
        )
    b = found.regression.coefficients[order]
    means = {v.name: m for v, m in zip(reals, middle, strict=False)}
    at = Regressors(child, own, np.array([means.get(v.name, 0.0) for v in terms(own).of]))
    level = found.levels[0] + middle[-1] - sum(known[j] * middle[j] for j in known)
    layout = family.layout(child, len(order))
    covariance = np.zeros((1 + len(order),) * 2)
    covariance[0, 0], covariance[1:, 1:] = 1.0 / N, found.regression.inverse[np.ix_(order, order)]
    shares = np.concatenate([seen.count @ indicators(finite, seen.keys) / N, np.zeros(len(free))])[order]
    covariance = layout.shift(layout.shift(covariance, -shares).T, -shares)
    rss = float(found.regression.residual) - float(b @ penalty @ b)
    inside = np.linalg.inv(covariance)
    inside[1:, 1:] -= penalty
    s = Sums(-0.5 * rss, np.zeros(1 + len(b)), inside, rss, N)
    return family.finish(at, parents, Maximum(np.append(level, b), s, covariance, 1), blank)


def _order(own: Sequence[Variable], finite: Sequence[Finite], free: Sequence[str]) -> npt.NDArray[np.intp]:
    """Where each term of a regression is among the columns of `common_line`: states of the finite parents, then numbers."""
    states = len([s for v in finite for s in v.states[1:]])
    places = {v.name: list(range(*columns_of(finite, v.name).indices(states))) for v in finite}
    places |= {name: [states + j] for j, name in enumerate(free)}
    return np.array([j for v in own for j in places[v.name]], dtype=np.intp)
