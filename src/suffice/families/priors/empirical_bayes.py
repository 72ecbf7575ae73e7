"""Numbers of a prior chosen by the data: those with which the graph has the largest evidence (type II maximum likelihood).

    x̂ = argmax Σᵢ ln p(data of node i and its parents | prior with the number x)

The sum may have several maxima, or rise for ever towards 0 or ∞: it is looked at on a grid of ln x, and each maximum of the grid
is refined by Brent's method. MacKay 1992, Bayesian interpolation, Neural Computation 4, p. 415; for the equivalent sample size:
Silander, Kontkanen & Myllymäki 2007, On sensitivity of the MAP Bayesian network structure to the equivalent sample size
parameter, UAI, p. 360.

The rows of a table are drawn around a common mean, and the data says how far from it they lie:

    prior         θ[u, ·] ~ Dirichlet(s m), independent over u: a strength s and a mean m of the node, the same for every row
    evidence      L(s, m) = Σᵤ [ln Γ(s) − ln Γ(s + Nᵤ) + Σₖ ln Γ(s mₖ + Nᵤₖ) − ln Γ(s mₖ)]
    chosen        (s, m) = argmax L(s, m) + c Σₖ ln mₖ,  c = 1/K

The last term is one imagined row, spread evenly over the states of the mean: so no state gets the mean 0. For a given s the
maximum over α = s m is that of a concave function, found by Newton's method with a diagonal Hessian; the slope of that maximum as
a function of ln s is then set to 0, on every interval of a grid where it falls through 0, and the best of these maxima is taken.

Minka 2000 (revised 2012), Estimating a Dirichlet distribution, §3; MacKay & Peto 1995, A hierarchical Dirichlet language model,
Natural Language Engineering 1, p. 289.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc, so
from suffice.basis.registry import every
from suffice.basis.variables import Variable
from suffice.errors import FitError, listing, note
from suffice.errors.remedies import Remedy, by_evidence
from suffice.families import family_of
from suffice.families.priors.priors import Dirichlet, Several, as_prior
from suffice.families.protocol.family import Array, Node, Prior, Statistic, as_numbers, is_number
from suffice.numerics.exponential.arithmetic.special import log_gamma_step
from suffice.statistics import Statistics

LEAST = 1e-6
"""Rows that weigh less together say nothing beyond rounding."""


@dataclass(frozen=True)
class EmpiricalBayes(Prior):
    """A prior whose strength the data chooses: `ess` of BDeu and BDe, `alpha` of Dirichlet, `shape` of Gamma, `count` of
    NormalInverseGamma, one number for all nodes of the graph.

    `fit(dag, data, prior=EmpiricalBayes(BDeu()))` takes the equivalent sample size with the largest evidence of the graph; the
    network keeps that prior, so that `update` goes on with it. If the evidence keeps rising, the number stops at `lowest` or
    `highest`, and a note says so: towards 0 where every row of every table has a single state, towards ∞ where all states are
    equally frequent. The choice uses the data once more: the maximal evidence is a little too good.

    >>> from suffice import BDeu
    >>> from suffice import fit
    >>> bn = fit("x -> y", {"x": list("aaaaabbbbb"), "y": list("uuuuvvvvvu")}, prior=EmpiricalBayes(BDeu()))
    >>> round(bn.prior.ess, 3)
    37.537
    """

    prior: Any
    lowest: float = 1e-4
    highest: float = 1e8

    chooses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", as_prior(self.prior))
        if isinstance(self.prior, (Several, EmpiricalBayes)):
            raise FitError("EmpiricalBayes takes one prior; of several, each has its own: (EmpiricalBayes(BDeu()), BGe())")
        if isinstance(self.prior, Dirichlet) and not self.prior.is_number:
            raise FitError("EmpiricalBayes chooses one pseudo-count for all cells, and this Dirichlet has several: give it alone")
        if not self.prior.worth:
            able = sorted({p.public_name or p.__name__ for p in every("priors").values() if p.worth})
            name = self.prior.title
            why = f"{name} chooses by itself" if self.prior.chooses else f"{name} is not one of them"
            if name == "K2":
                why = "K2 has no number to choose, Dirichlet() has: it is K2 with another count"
            raise FitError(f"EmpiricalBayes chooses the strength of {listing(able, style='str')}; {why}")
        if not (is_number(self.lowest) and is_number(self.highest) and 0.0 < self.lowest < self.highest < np.inf):
            raise FitError(f"EmpiricalBayes needs 0 < lowest < highest, not {self.lowest!r} and {self.highest!r}")

    @property
    def number(self) -> str:
        """The name of what is chosen."""
        return str(self.prior.worth)

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Node], statistics: Statistics) -> Any:
        """The prior with the number that has the largest evidence on these nodes, those that it speaks for."""
        first = self.prior.bind(variables, statistics)
        spoken = [node for node in nodes if first.imagine(*node[:2]) is not None]
        if not spoken:
            return self.prior
        if statistics.weight < LEAST:
            raise FitError(
                f"the rows weigh {statistics.weight:g} together, too little to choose {self.number} by: give it, as in "
                f"{self.prior.title}({self.number}=1)"
            )
        # of a tie the first node has seen what all have: the defaults of the prior come from that, too
        own = [({v.name: v for v in (c, *parents)}, Statistics([seen], seen.total, [c])) for c, parents, seen in spoken]

        def evidence(x: float) -> float:
            priors = [self._at(x).bind(*data) for data in own]
            parts = zip(spoken, priors, strict=True)
            return float(sum(family_of(c, p).log_evidence(c, seen, prior.imagine(c, p)) for (c, p, seen), prior in parts))

        x = best_number(evidence, self.lowest, self.highest)
        if x in (self.lowest, self.highest):
            note(
                f"the evidence keeps rising as {self.number} of {self.prior.title} goes to "
                f"{'0' if x == self.lowest else 'infinity'}: it stops at {x:g}"
            )
        return self._at(x)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Statistic | None:
        kind = self.prior.title
        raise FitError(
            f"{Remedy('EmpiricalBayes', 'auto')} chooses {self.number} for a whole graph and complete rows: "
            f"{by_evidence(f'{kind}(...)')}"
        )

    def _at(self, x: float) -> Any:
        return replace(self.prior, **{self.number: x})


def best_number(f: Callable[[float], float], lowest: float, highest: float, n: int = 49) -> float:
    """The positive number between two bounds, which may be taken, where f is largest."""
    low, high = float(np.log(lowest)), float(np.log(highest))
    best = highest_point(lambda t: f(float(np.exp(t))), low, high, n)
    return {low: lowest, high: highest}.get(best, float(np.exp(best)))


def highest_point(f: Callable[[float], float], low: float, high: float, n: int = 49) -> float:
    """Where a smooth function is largest between two ends: the best point of a grid, refined between its neighbours.

    Every maximum of the grid within reach of the best one is refined. An end that is not exceeded by more than rounding is taken
    as it is.
    """
    grid = np.linspace(low, high, n)
    values = np.array([f(x) for x in grid])
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    peaks = np.flatnonzero((values >= padded[:-2]) & (values >= padded[2:]))
    best = [(values[-1], high), (values[0], low)]
    for i in peaks[(peaks > 0) & (peaks < n - 1)]:
        found = so.minimize_scalar(lambda x: -f(x), bounds=(grid[i - 1], grid[i + 1]), method="bounded", options={"xatol": 1e-9})
        best.append((-float(found.fun), float(found.x)))
    top = max(value for value, _ in best)
    near = 1e-12 * (1.0 + abs(top))
    return float(next(x for value, x in best if value >= top - near))


LOWEST = 1e-3
"""No strength is chosen below this: where every row has one state only, the evidence keeps rising as the strength falls to 0."""

ALONE = 1.0
"""The strength, around an even mean, of a table of one row: nothing can be learned from other rows."""

LARGE = 1e4
"""From here on differences of digammas are taken by their asymptotic series, in which nothing cancels."""


class PooledRows(NamedTuple):
    """The strength and the mean of the rows' common Dirichlet, and ln p(counts | strength, mean)."""

    strength: float
    mean: Array
    log_evidence: float


def pool_rows(counts: Any, strength: float | None = None, mean: Any = None) -> PooledRows:
    """The Dirichlet from which the rows of a table of counts were drawn, by maximum evidence; what is given is kept.

    `counts` has a row per group and a column per state. Rows that are alike make the evidence rise for ever with the strength:
    it stops at the weight of all rows together, as the mean is not known better than by these rows. Rows that have one state
    each make it rise as the strength falls: it stops at 0.001. If only one row holds data, the mean that is not given is
    even, and so is the strength 1: one row says nothing about how rows differ.
    """
    rows = _Rows.of(_checked_counts(counts))
    m = None if mean is None else _checked_mean(mean, rows)
    s = None if strength is None else checked_strength(strength)
    if m is None and (rows.n_rows < 2 or rows.n_states < 2):
        m = np.full(rows.n_states, 1.0 / rows.n_states)
        s = ALONE if s is None else s
    if s is None and rows.n_rows == 0:
        s = ALONE
    s = _strongest([_Profile(rows, m)]) if s is None else s
    m = _mean_at(rows, s, np.full(rows.n_states, 1.0 / rows.n_states)) if m is None else m
    return PooledRows(s, m, rows.log_evidence(s, m))


def common_strength(tables: Iterable[Any]) -> float:
    """The strength that several tables of counts have in common, each around a mean of its own: of one, that of `pool_rows`.

    Tables of which less than two rows hold data say nothing, and where all are such it is 1.
    """
    several = [rows for rows in (_Rows.of(_checked_counts(table)) for table in tables) if rows.n_rows > 1 and rows.n_states > 1]
    return _strongest([_Profile(rows, None) for rows in several]) if several else ALONE


def highest(counts: Any) -> float:
    """The largest strength that `pool_rows` chooses: the weight of all rows."""
    return max(float(np.sum(counts)), 1.0)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Counts by value: `times[i]` rows have the count `value[i]` of the state `state[i]`; and the rows' totals alike."""

    n_rows: int
    n_states: int
    value: Array
    times: Array
    state: npt.NDArray[np.intp]
    total: Array
    total_times: Array

    @classmethod
    def of(cls, counts: Array) -> _Rows:
        filled = counts[counts.sum(axis=1) > 0]
        parts = [np.unique(column[column > 0], return_counts=True) for column in filled.T]
        state = np.repeat(np.arange(counts.shape[1]), [len(v) for v, _ in parts])
        value, times = (np.concatenate([p[i] for p in parts]).astype(np.float64) for i in (0, 1))
        total, total_times = np.unique(filled.sum(axis=1), return_counts=True)
        return cls(len(filled), counts.shape[1], value, times, state, total, total_times.astype(np.float64))

    @property
    def weight(self) -> float:
        return float(self.total @ self.total_times)

    def by_state(self, terms: Array) -> Array:
        return np.bincount(self.state, self.times * terms, self.n_states).astype(np.float64)

    def log_evidence(self, s: float, m: Array) -> float:
        cells = log_gamma_step((s * m)[self.state], self.value)
        return float(cells @ self.times - log_gamma_step(np.full(len(self.total), s), self.total) @ self.total_times)


def _strongest(profiles: Sequence[_Profile]) -> float:
    """The strength where the sum of the objectives of some tables is largest."""

    def slope(log_s: float) -> float:
        return sum(profile.slope(log_s) for profile in profiles)

    most = max(sum(profile.rows.weight for profile in profiles), 1.0)
    ends = np.log(LOWEST), np.log(most)
    grid = np.linspace(*ends, 2 + int(ends[1] - ends[0]))
    slopes = [slope(t) for t in grid]
    falls = [i for i in range(len(grid) - 1) if slopes[i] > 0 >= slopes[i + 1]]
    peaks = [so.brentq(slope, grid[i], grid[i + 1], xtol=1e-11) for i in falls]
    peaks += [grid[0]] * (slopes[0] <= 0) + [grid[-1]] * (slopes[-1] > 0)
    best = max(peaks, key=lambda log_s: sum(profile.height(log_s) for profile in profiles))
    return float({grid[0]: LOWEST, grid[-1]: most}.get(best, np.exp(best)))


class _Profile:
    """The objective as a function of ln s, at its maximum over m (or at the mean that is given)."""

    def __init__(self, rows: _Rows, mean: Array | None) -> None:
        self.rows, self.given = rows, mean
        self._last = np.full(rows.n_states, 1.0 / rows.n_states) if mean is None else mean

    def mean(self, log_s: float) -> Array:
        if self.given is None:
            self._last = _mean_at(self.rows, float(np.exp(log_s)), self._last)
        return self._last

    def height(self, log_s: float) -> float:
        m = self.mean(log_s)
        weak = 0.0 if self.given is not None else float(np.log(m).sum()) / self.rows.n_states
        return self.rows.log_evidence(float(np.exp(log_s)), m) + weak

    def slope(self, log_s: float) -> float:
        """d/d ln s: at the best mean moving the mean gains nothing, so that only s itself counts."""
        rows, s = self.rows, float(np.exp(log_s))
        m = self.mean(log_s)
        cells = rows.by_state(_digamma_rise((s * m)[rows.state], rows.value))
        return s * float(cells @ m - _digamma_rise(np.full(len(rows.total), s), rows.total) @ rows.total_times)


def _mean_at(rows: _Rows, s: float, start: Array) -> Array:
    """The mean that maximises Σₖ fₖ(αₖ) + c ln αₖ over α = s m.

    g and h are the gradient and the negative second derivatives, all positive; Δ = (g − λ)/h with λ such that Σ Δ = 0.
    """
    c, alpha = 1.0 / rows.n_states, s * start

    def value(a: Array) -> float:
        return float(log_gamma_step(a[rows.state], rows.value) @ rows.times + c * np.log(a).sum())

    now = value(alpha)
    for _ in range(200):
        g = rows.by_state(_digamma_rise(alpha[rows.state], rows.value)) + c / alpha
        h = rows.by_state(_trigamma_fall(alpha[rows.state], rows.value)) + c / alpha**2
        step = (g - (g / h).sum() / (1.0 / h).sum()) / h
        gain = float(step @ (h * step))
        length = min(1.0, 0.9 / max(float((-step / alpha).max()), 1e-300))
        new = value(alpha + length * step)
        while new < now + 1e-4 * length * gain and length * gain > 1e-13 * (1.0 + abs(now)):
            length /= 2.0
            new = value(alpha + length * step)
        alpha, now = alpha + length * step, new
        alpha *= s / alpha.sum()
        if length == 1.0 and np.abs(step / alpha).max() < 1e-9:
            break
    return np.asarray(alpha / alpha.sum())


def _digamma_rise(a: Array, n: Array) -> Array:
    """ψ(a + n) − ψ(a)."""
    b = np.maximum(a, LARGE)
    tail = 0.5 * n / (b * (b + n)) + (1.0 / b**2 - 1.0 / (b + n) ** 2) / 12.0
    return np.asarray(np.where(a > LARGE, np.log1p(n / b) + tail, sc.digamma(a + n) - sc.digamma(a)))


def _trigamma_fall(a: Array, n: Array) -> Array:
    """ψ′(a) − ψ′(a + n), which is positive."""
    b = np.maximum(a, LARGE)
    inverse = n / (b * (b + n))
    series = inverse * (1.0 + 0.5 * (1.0 / b + 1.0 / (b + n)) + (1.0 / b**2 + 1.0 / (b * (b + n)) + 1.0 / (b + n) ** 2) / 6.0)
    return np.asarray(np.where(a > LARGE, series, sc.zeta(2.0, a) - sc.zeta(2.0, a + n)))


def _checked_counts(counts: Any) -> Array:
    table = as_numbers(counts, "the counts to pool are numbers, a row per group and a column per state", FitError)
    if table.ndim != 2 or not table.shape[1]:
        raise FitError(f"the counts to pool are a table, a row per group and a column per state, not of the shape {table.shape}")
    if not np.all(np.isfinite(table)) or np.any(table < 0):
        raise FitError("the counts to pool must be finite numbers that are not negative")
    return table


def checked_strength(strength: Any) -> float:
    if isinstance(strength, bool) or not isinstance(strength, (int, float, np.number)) or not 0.0 < strength < np.inf:
        raise FitError(f"the strength of a HierarchicalDirichlet must be a positive number, not {strength!r}")
    return float(strength)


def _checked_mean(mean: Any, rows: _Rows) -> Array:
    m = np.asarray(mean, dtype=np.float64)
    if m.shape != (rows.n_states,) or not np.all(np.isfinite(m)) or np.any(m < 0) or abs(m.sum() - 1.0) > 1e-6:
        raise FitError(f"the mean of a HierarchicalDirichlet must be {rows.n_states} probabilities that sum to 1, not {mean!r}")
    denied = np.flatnonzero((m == 0) & (rows.by_state(rows.value) > 0))
    if len(denied):
        raise FitError(f"the mean {mean!r} rules out state number {denied[0]}, which the counts hold")
    return m if abs(m.sum() - 1.0) <= 1e-12 else np.asarray(m / m.sum())
