"""Draws from the posterior of rows with a logistic-normal prior: exact ones, up to the width of a grid.

Laplace's normal is no guide to a state that was never seen, which may be as rare as the prior allows. But with one more variable,
of which p(ρ | η) is that of the logarithm of a Gamma(N, Σ exp η), the effects η of a row become independent:

    p(ρ, η | n) ∝ exp(N ρ − Σ exp(ρ + ηₖ) + Σ nₖ ηₖ − Σ (ηₖ − mₖ)² / 2v),     N = Σ nₖ

Its mode is η̂ of `Laplace` with exp(ρ̂ + η̂ₖ) = N θₖ = λₖ. For ρ = ρ̂ + δ each effect is largest where ρ + ηₖ = ρ̂ + η̂ₖ + eₖ,

    vλₖ (exp eₖ − 1) + eₖ = δ
    p(ρ, η)       there is  exp(−Σ λₖ bend(eₖ) − Σ (eₖ − δ)² / 2v) of that at the mode,    bend(d) = exp d − 1 − d
    p(ηₖ | ρ)     at a distance d from there  ∝ exp(−λₖ exp(eₖ) bend(d) − d² / 2v)

in which no large numbers cancel. So p(ρ) is one integral over a line for each state, and ρ and η | ρ are drawn by the inverse of
their distribution functions. Quantiles take quasi-random points, always the same; of two states they are those of one line.

Densities on a line are taken as exp of straight pieces between points, whose mass is w (exp b − exp a) / (b − a) over a width w.
Such pieces follow a log-concave density closely: its tails are nearly lines, and its cliffs lie between two points.

Effects with a covariance are drawn by elliptical slice sampling (Murray, Adams & MacKay 2010, AISTATS, p. 541), by turns with the
prior and with Laplace's normal in the place of its Gaussian (Nishihara, Murray & Adams 2014, J. Machine Learning Research 15, p.
2087): the one reaches the tails of states that were never seen, the other moves where counts are large. Both leave the posterior
as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.families.hierarchical.laplace import JointLaplace, Laplace, bend, softmax
from suffice.families.protocol.family import Array

Places = npt.NDArray[np.intp]

POINTS = 2048
"""Points of a quantile, a power of two."""

NODES = 32
"""Values of ρ."""

SIDE = 32
"""Intervals on each side of the mode of an effect."""

DEEP = 35.0
"""A density is followed down to exp(−DEEP) of its maximum."""


def quantiles(rows: Laplace, tail: float) -> tuple[Array, Array]:
    """The quantiles `tail` and 1 − `tail` of each probability of each row."""
    ends, K = np.empty((2, *rows.counts.shape)), rows.counts.shape[1]
    points = np.zeros(0)
    if K > 2:  # more even than random ones
        from scipy.stats.qmc import Sobol

        points = np.clip(Sobol(K + 1, seed=0).random(POINTS), 1e-12, 1.0 - 1e-12)[:, None]
    for some in rows.blocks(max(POINTS, 2 * NODES * SIDE)):
        ends[:, some] = _of_two(rows.some(some), tail) if K == 2 else _of_block(rows.some(some), points, tail)
    return ends[0], ends[1]


def draw_rows(rows: Laplace, n: int, rng: np.random.Generator) -> Array:
    """n random draws of each row: [n, row, state]."""
    points = rng.random((n, len(rows.counts), rows.counts.shape[1] + 1))
    theta = np.empty((n, *rows.counts.shape))
    for some in rows.blocks(max(n, 2 * NODES * SIDE)):
        theta[:, some] = _at(rows.some(some), points[:, some])
    return theta


def _of_two(rows: Laplace, tail: float) -> Array:
    """Two states: all hangs on one number, the difference of the effects, whose distance d from the mode has a density."""
    half = np.array([0.5, -0.5])

    def height(d: Array) -> Array:  # [row, point]
        return np.asarray(rows.gain(rows.effects, d.T[..., None] * half).T)

    known = _lambdas(rows).min(axis=1) * rows.probs.max(axis=1) + 0.5 / rows.variance
    left = _falls(lambda d: height(-d[:, None])[:, 0], 1.0 / np.sqrt(known))
    right = _falls(lambda d: height(d[:, None])[:, 0], 1.0 / np.sqrt(known))
    at = both_sides(left, right, 16 * SIDE)
    lines = Lines(at, np.maximum(height(at), -700.0))
    table = np.arange(len(at))
    d = np.array([lines.quantiles(table, np.full(len(at), q)) for q in (tail, 1.0 - tail)])
    low, high = softmax(rows.effects + d[..., None] * half)
    return np.array([np.stack([low[:, 0], high[:, 1]], axis=1), np.stack([high[:, 0], low[:, 1]], axis=1)])


def _falls(height: Callable[[Array], Array], start: Array) -> Array:
    """Where a concave function has fallen by DEEP from its maximum at 0: by doubling, then halving."""
    high = start
    for _ in range(100):
        more = height(high) > -DEEP
        if not more.any():
            break
        high = np.where(more, 2.0 * high, high)
    low = np.zeros_like(high)
    for _ in range(30):
        middle = 0.5 * (low + high)
        over = height(middle) > -DEEP
        low, high = np.where(over, middle, low), np.where(over, high, middle)
    return high


def _of_block(rows: Laplace, points: Array, tail: float) -> Array:
    """States take their turn by their counts, so that permuting them permutes the ends; states that are equal have equal ends."""
    means = np.broadcast_to(rows.mean, rows.counts.shape)
    order = np.lexsort((means, rows.counts), axis=1)
    counts, means = np.take_along_axis(rows.counts, order, axis=1), np.take_along_axis(means, order, axis=1)
    theta = np.sort(_at(Laplace(counts, means, rows.variance), points), axis=0)
    place = int(tail * len(theta))
    ends = theta[[place, len(theta) - 1 - place]]
    other = (np.diff(counts, axis=1) != 0) | (np.diff(means, axis=1) != 0)
    group = np.cumsum(np.insert(other, 0, True, axis=1)) - 1
    equal = np.array([(np.bincount(group, end.reshape(-1)) / np.bincount(group))[group].reshape(end.shape) for end in ends])
    return np.take_along_axis(equal, np.argsort(order, axis=1)[None], axis=2)


def _at(rows: Laplace, points: Array) -> Array:
    """θ at points of the unit cube [point, row (or 1), state + 1], the last of which says which ρ."""
    U, K = rows.counts.shape
    effects, weight = _spread(rows)
    points = np.broadcast_to(points, (len(points), U, K + 1))
    node, _ = pieces_at(weight, np.broadcast_to(np.arange(U), points.shape[:2]), points[..., -1])
    table = node[..., None] * K + np.arange(K)
    return softmax(rows.effects + effects.moved.reshape(-1)[table] + effects.lines.quantiles(table, points[..., :-1]))


def _spread(rows: Laplace) -> tuple[_Effects, Array]:
    """The effects given values of ρ that are evenly spread over where the posterior is, and the weights of these [row, node]."""
    low, high = (_far(rows, way) for way in (-1.0, 1.0))
    for _ in range(2):  # the first grid may be much wider than what it looks for
        delta = np.linspace(low, high, NODES, axis=1)
        effects = _Effects(rows, delta)
        height = effects.log_density
        there = height > height.max(axis=1, keepdims=True) - DEEP
        first, last = np.argmax(there, axis=1), NODES - 1 - np.argmax(there[:, ::-1], axis=1)
        every = np.arange(len(delta))
        low, high = delta[every, np.maximum(first - 1, 0)], delta[every, np.minimum(last + 1, NODES - 1)]
    weight = np.exp(height - height.max(axis=1, keepdims=True))
    weight[:, [0, -1]] /= 2.0
    step = (delta[:, -1] - delta[:, 0]) / (NODES - 1)
    # left of the prior's reach p(ρ) is exp(N ρ), and the effects do not depend on ρ
    left = 2.0 * weight[:, 0] / np.maximum(rows.total[:, 0] * step, 1e-300)
    weight[:, 0] += np.where(delta[:, 0] <= _reach(rows), left, 0.0)
    return effects, weight


def _far(rows: Laplace, way: float) -> Array:
    """A distance of ρ from the mode, to one side, at which its density is nothing, by doubling."""
    known = _lambdas(rows)
    step = way / np.sqrt((known / (1.0 + rows.variance * known)).sum(axis=1))
    end, top = _reach(rows), np.full(len(step), -np.inf)
    at = np.maximum(step, end) if way < 0 else np.maximum(end, 0.0) + step
    for _ in range(100):
        height = _Effects(rows, at[:, None]).log_density[:, 0]
        top = np.maximum(top, height)
        more = (height > top - DEEP) & (at > end)
        if not more.any():
            break
        at = np.where(more, np.maximum(2.0 * at, end) if way < 0 else 2.0 * at, at)
    return np.asarray(at)


def _lambdas(rows: Laplace) -> Array:
    """λ = N θ; a row without data is as one with next to none."""
    return np.asarray(np.maximum(rows.total, 1e-12) * rows.probs)


def _reach(rows: Laplace) -> Array:
    """The ρ − ρ̂ left of which the data have no say: there exp(ρ + η) is nothing for all that the prior holds possible."""
    known = _lambdas(rows)
    return np.asarray((-25.0 - 9.0 * np.sqrt(rows.variance) - np.log(known) - rows.variance * known).min(axis=1))


class _Effects:
    """The densities of the effects of rows, given some ρ − ρ̂ [row, node], as lines between points in ln p.

    `moved` is e; `log_density` is ln p(ρ) up to a constant of the row.
    """

    def __init__(self, rows: Laplace, delta: Array) -> None:
        known, v = _lambdas(rows)[:, None], rows.variance
        self.moved = e = _solve_shift(v * known, delta[..., None])
        log_rate = np.log(known) + e
        at = both_sides(*_reaches(log_rate, v), SIDE)
        L = log_rate[..., None]
        far = np.abs(at) >= 0.05
        bent = np.exp(np.minimum(L + at, 700.0)) - np.exp(L) * (1.0 + at)
        bent = np.where(far, bent, np.exp(L) * bend(np.where(far, 0.0, at)))
        height = np.maximum(-bent - at**2 / (2.0 * v), -700.0)
        self.lines = Lines(at.reshape(-1, at.shape[-1]), height.reshape(-1, at.shape[-1]))
        mode = known * bend(e) + (e - delta[..., None]) ** 2 / (2.0 * v)
        self.log_density = np.asarray((np.log(self.lines.mass.sum(axis=1)).reshape(e.shape) - mode).sum(axis=-1))


def _solve_shift(c: Array, delta: Array) -> Array:
    """e with c (exp e − 1) + e = δ: by Wright's ω, or where that cancels by its limit; then by Newton."""
    c, delta = np.broadcast_arrays(c, delta)
    near = delta > -0.5 * c
    e = np.where(near & (c > 1e4), np.log1p(np.maximum(delta / c, -0.5)), delta + c - sc.wrightomega(np.log(c) + delta + c))
    for _ in range(3):
        e = e - (c * np.expm1(e) + e - delta) / (c * np.exp(e) + 1.0)
    return np.asarray(e)


def _reaches(log_rate: Array, variance: float) -> tuple[Array, Array]:
    """How far to the left and to the right of its mode an effect has a density, at least."""
    c = 2.0 * DEEP * np.exp(np.minimum(-log_rate, 200.0))
    prior = np.sqrt(2.0 * DEEP * variance)
    left = np.minimum(prior, c / 6.0 + np.sqrt(c**2 / 36.0 + c))
    right = np.minimum(np.minimum(prior, np.sqrt(c)), np.maximum(1.2, np.log(3.0 * DEEP) - log_rate))
    return left, right


@dataclass(frozen=True, eq=False)
class Lines:
    """Densities of which ln p, up to a constant of each, is `height` [density, point] at the points `at`."""

    at: Array
    height: Array

    @cached_property
    def mass(self) -> Array:
        """That of each piece."""
        fall = np.maximum(np.abs(np.diff(self.height)), 1e-12)
        top = np.maximum(self.height[:, 1:], self.height[:, :-1])
        return np.asarray(np.diff(self.at) * np.exp(top) * -np.expm1(-fall) / fall)

    def quantiles(self, which: Places, shares: Array) -> Array:
        """The points of these densities below which such shares of their mass lie."""
        i, share = pieces_at(self.mass, which, shares)
        i += i // self.mass.shape[1]  # there is one point more than there are pieces
        at, height = self.at.reshape(-1), self.height.reshape(-1)
        return np.asarray(at[i] + (at[i + 1] - at[i]) * _along(height[i + 1] - height[i], share))


def pieces_at(mass: Array, which: Places, shares: Array) -> tuple[Places, Array]:
    """The pieces, counted through all rows of `mass`, in which such shares of a row are reached, and the share of that piece."""
    n = mass.shape[1]
    below = np.cumsum(mass, axis=1)
    below /= below[:, -1:]
    # all rows in one increasing line: row i from i to i + 1
    i = np.searchsorted((below + np.arange(len(below))[:, None]).reshape(-1), which + shares)
    i = np.clip(i, which * n, (which + 1) * n - 1)
    start = np.where(i % n == 0, 0.0, below.reshape(-1)[i - 1])
    return i, np.clip((shares - start) / np.maximum(below.reshape(-1)[i] - start, 1e-300), 0.0, 1.0)


def both_sides(left: Array, right: Array, n: int) -> Array:
    """Points from −left to right, n pieces on each side of 0, denser there and at the ends, where there may be a cliff."""
    t = 0.5 - 0.5 * np.cos(np.linspace(0.0, np.pi, n + 1))
    return np.concatenate([-left[..., None] * t[:0:-1], right[..., None] * t], axis=-1)


def _along(rise: Array, share: Array) -> Array:
    """The x in [0, 1] below which a share of ∫ exp(rise · x) lies."""
    up = np.where(np.abs(rise) < 1e-9, 1e-9, rise)
    down, q = -np.abs(up), np.where(up > 0, 1.0 - share, share)
    x = np.log1p(q * np.expm1(down)) / down
    return np.asarray(np.where(up > 0, 1.0 - x, x))


SWEEPS = 12
"""Steps of each kind from Laplace's normal to a draw."""

CHAINS = 4096
"""Draws of an interval."""

Height = Callable[[Array, Places], Array]


def joint_drawn(rows: JointLaplace, n: int, rng: np.random.Generator) -> Array:
    """n random draws of each row: [n, row, state]."""
    theta = np.empty((n, *rows.counts.shape))
    for some in rows.blocks(n):
        theta[:, some] = _chains(rows.some(some), n, rng)
    return theta


def joint_quantiles(rows: JointLaplace, tail: float) -> tuple[Array, Array]:
    """The quantiles `tail` and 1 − `tail` of each probability of each row, by draws that are always the same."""
    ends = np.empty((2, *rows.counts.shape))
    for u in range(len(rows.counts)):  # each by itself, so that a row has the same ends among whatever others
        theta = joint_drawn(rows.some(np.array([u])), CHAINS, np.random.default_rng(0))[:, 0]
        ends[:, u] = np.quantile(theta, [tail, 1.0 - tail], axis=0)
    return ends[0], ends[1]


def _chains(rows: JointLaplace, n: int, rng: np.random.Generator) -> Array:
    """θ at the ends of n chains of each row, which start from Laplace's normal."""
    U, K = rows.counts.shape
    root = np.linalg.cholesky(np.asarray(rows.covariance))
    prior = NormalAround(rows.mean - rows.effects, *(np.broadcast_to(a, (U, K, K)) for a in (root, rows.precision)))
    spread = rows.spread
    spread = 0.5 * (spread + np.swapaxes(spread, 1, 2))
    ways = (np.linalg.cholesky, np.linalg.inv)
    near = NormalAround(np.zeros(rows.counts.shape), *(np.asarray(way(spread), np.float64) for way in ways))
    row = np.tile(np.arange(U), n)

    def of_counts(x: Array, some: Places) -> Array:
        """Σ n ln θ: what is left of ln p when that of the prior is taken away."""
        eta, counts = rows.effects[row[some]] + x, rows.counts[row[some]]
        eta = eta - eta.max(axis=1, keepdims=True)
        return np.asarray((counts * eta).sum(axis=1) - counts.sum(axis=1) * np.log(np.exp(eta).sum(axis=1)))

    def of_rest(x: Array, some: Places) -> Array:
        return of_counts(x, some) + prior.log_prob(x, row[some]) - near.log_prob(x, row[some])

    x = near.draw(n, rng)
    for _ in range(SWEEPS):
        x = _slice(x, prior.centre[row], prior.draw(n, rng), of_counts, rng)
        x = _slice(x, near.centre[row], near.draw(n, rng), of_rest, rng)
    return softmax(rows.effects[row] + x).reshape(n, U, K)


@dataclass(frozen=True, eq=False)
class NormalAround:
    """A normal distribution of x = η − η̂ for each row, the prior or Laplace's: centre, root of the covariance, precision."""

    centre: Array
    root: Array
    precision: Array

    def draw(self, n: int, rng: np.random.Generator) -> Array:
        """n draws around 0 of each row, one after the other: [n · row, state]."""
        z = rng.standard_normal((n, *self.centre.shape))
        return np.asarray(np.einsum("rkl,nrl->nrk", self.root, z).reshape(-1, z.shape[2]))

    def log_prob(self, x: Array, row: Places) -> Array:
        off = x - self.centre[row]
        return np.asarray(-0.5 * (off[:, None] @ self.precision[row] @ off[:, :, None])[:, 0, 0])


def _slice(x: Array, centre: Array, other: Array, height: Height, rng: np.random.Generator) -> Array:
    """One elliptical slice step of all chains: on the ellipse through x and `other`, a draw of the normal, around its centre.

    `height` has what ln p of the target is above that of the normal, at x of some of the chains.
    """
    off, new, left = x - centre, x.copy(), np.arange(len(x))
    level = height(x, left) + np.log(rng.random(len(x)))
    angle = rng.random(len(x)) * 2.0 * np.pi
    low, high = angle - 2.0 * np.pi, angle.copy()
    for _ in range(200):
        cos, sin = np.cos(angle[left])[:, None], np.sin(angle[left])[:, None]
        at = centre[left] + off[left] * cos + other[left] * sin
        taken = height(at, left) > level[left]
        new[left[taken]] = at[taken]
        left = left[~taken]
        if not len(left):
            break
        below = angle[left] < 0.0
        low[left], high[left] = np.where(below, angle[left], low[left]), np.where(below, high[left], angle[left])
        angle[left] = low[left] + (high[left] - low[left]) * rng.random(len(left))
    return new
