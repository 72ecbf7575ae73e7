"""The parameters of one table or Gaussian as coordinates that no bounds hold, and derivatives by them from statistics alone.

    tables       η = ln θ[u, x] − ln θ[u, x₀]     x₀ the largest entry of its row; cells on the boundary stay where they are
    Gaussians    a + b·c, b, ln v                 for each configuration u; c the mean of the real parents there

The intercept is taken at the mean c, so that a parent with mean 1e9 does not make intercept and coefficient one parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import sc
from suffice.errors import FitError
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.parameter_draws import dirichlet_shares
from suffice.families.protocol.family import Estimate
from suffice.statistics import Counts, Moments
from suffice.statistics.counts import describe

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Covariances = Callable[[npt.NDArray[np.intp], npt.NDArray[np.intp]], Array]
"""Those of pairs of coordinates, by their numbers: all at once would be a matrix, of which only blocks are needed."""
Natural = Array | dict[str, Array]
"""One number for each parameter of a node: an array of the shape of its table, or intercept, coefficients and variance."""

ROWS = 1e4
"""A cell with so many times the boundary of expected rows is on it: 1e-4 rows for 1e-8."""


class NoCoordinates(FitError):
    """Why a distribution has no coordinates: the fact, which whoever needs them says the consequence of."""


@contextmanager
def needing_coordinates(consequence: str) -> Iterator[None]:
    """Refuse what has none, with what follows from that."""
    try:
        yield
    except NoCoordinates as fact:
        raise FitError(f"{fact.said}, and {consequence}") from None


class Chart:
    """What the coordinates of all kinds of distributions have in common: numbers that no bounds hold, around `cpd`."""

    cpd: Any
    on_simplex: ClassVar[bool] = False
    """Whether parameters are rows of probabilities."""
    kept: ClassVar[tuple[str, ...]]
    """The fields that `around` makes it of again."""
    n_plain: Any = 0
    """How many parameters of a line come before those whose coordinates are logarithms."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """What each kind has of its own: see `TableChart`."""

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        """The number of coordinates of each configuration of the parents: they follow one another in the vector."""
        return np.asarray(self.moving.sum(axis=1))

    @property
    def size(self) -> int:
        return int(self.sizes.sum())

    @property
    def parts(self) -> dict[str, npt.NDArray[Any]]:
        """What `around` makes it of again."""
        return {name: getattr(self, name) for name in self.kept}

    def at(self, vector: Array) -> Any:
        """The distribution at a vector."""
        return self.with_lines(self.lines_at(vector[None]))[0]

    def with_lines(self, lines: Array) -> list[Any]:
        """The distribution at each of many settings of the parameters, as `lines_at` has them."""
        shaped = map(self.reshape, lines)
        named = (x if isinstance(x, dict) else {self.cpd.arrays[0]: x} for x in shaped)
        return [replace(self.cpd, seen=None, imagined=None, **own) for own in named]

    def reshape(self, values: Array) -> Natural:
        """One number for each configuration and parameter, in the shape of the parameters."""
        return values.reshape(getattr(self.cpd, self.cpd.arrays[0]).shape)

    def outward(self, cpd: Any, along: Array | None) -> tuple[Any, Array]:
        """The chart around `cpd`, the same distribution in other units, and by what its coordinates are larger there: nothing,
        where there are no units, or the same. `along` is ∂ its parameters there / ∂ those here."""
        return self.around(cpd, **self.parts), np.ones(self.size)

    def posterior_lines(self, vectors: Array, covariance: Covariances, rng: np.random.Generator) -> Array:
        """`lines_at`: of normal draws."""
        return np.asarray(self.lines_at(vectors))

    def curvature(self, cpd: Any, s: Any) -> Array:
        """The diagonal of `information`."""
        return np.concatenate([np.zeros(0), *(np.diag(block) for block in self.information(cpd, s))])

    def limits(self, origin: Array, farthest: float) -> tuple[Array, Array]:
        """How far coordinates may go down and up: logarithms stay within `farthest` of their start."""
        moving = self.moving
        logs = np.broadcast_to(np.arange(moving.shape[1]) >= self.n_plain, moving.shape)[moving]
        low = np.where(logs, -farthest, -np.inf)
        return low, -low

    def ends(self, point: Array, error: Array, z: float) -> tuple[Array, Array]:
        """z standard errors below and above parameters, as lines; of logarithms on their scale."""
        m = self.n_plain
        lower, upper, factor = point - z * error, point + z * error, np.exp(z * error[:, m:] / point[:, m:])
        return np.hstack([lower[:, :m], point[:, m:] / factor]), np.hstack([upper[:, :m], point[:, m:] * factor])


@dataclass(frozen=True, eq=False)
class TableChart(Chart):
    """The coordinates of a table around `cpd`: log-odds against the reference state of each row; those in `free` move."""

    cpd: Table
    log_odds: Array
    free: Flags
    reference: npt.NDArray[np.intp]
    imagined: Array | float
    belief: Any = None
    """What a prior holds of the rows that imagines no counts."""
    normal: bool = False
    """Whether log-odds are drawn as they are, since a prior is normal in them: not as those of Dirichlet distributions."""

    on_simplex: ClassVar[bool] = True
    kept: ClassVar[tuple[str, ...]] = ("free",)

    @classmethod
    def of(cls, cpd: Table, seen: Counts, imagined: Any, how: Estimate, boundary: float) -> TableChart:
        """`boundary`: cells of at most this probability are fixed; so are rows that no weight speaks for, if it is above 0."""
        theta = _rows(cpd)
        reference = theta.argmax(axis=1)
        free = theta > boundary
        free[np.arange(len(theta)), reference] = False
        counts = isinstance(imagined, Counts)
        extra = imagined.dense().reshape(theta.shape) - how.less if counts else 0.0
        belief = None if counts else imagined
        chart = cls(cpd, _log_odds(theta, reference), free, reference, extra, belief, belief is not None)
        if boundary > 0.0:
            weighed = chart.weigh(seen)
            free[weighed.sum(axis=1) <= boundary] = False
            free[weighed <= ROWS * boundary] = False  # a cell on its way to 0 that EM has not followed to the end
        return chart

    @classmethod
    def around(cls, cpd: Table, free: Any, normal: Any = False) -> TableChart:
        """The chart of a finished table; `free` has a number for each cell, 0 where it stays what it is."""
        theta = _rows(cpd)
        reference = theta.argmax(axis=1)
        own = np.asarray(free, bool).reshape(theta.shape)
        return cls(cpd, _log_odds(theta, reference), own, reference, 0.0, normal=bool(np.all(normal)))

    @property
    def parts(self) -> dict[str, npt.NDArray[Any]]:
        """What `around` makes it of again."""
        return super().parts | ({"normal": np.ones(1)} if self.normal else {})

    @property
    def sizes(self) -> npt.NDArray[np.intp]:
        return np.asarray(self.free.sum(axis=1))

    @property
    def unit(self) -> Array:
        """What is neither a small nor a large step of each coordinate."""
        return np.ones(self.size)

    def vector(self, cpd: Table) -> Array:
        return _log_odds(_rows(cpd), self.reference)[self.free]

    def lines_at(self, vectors: Array) -> Array:
        """The parameters at many vectors, a line for each configuration: [vectors, configurations, parameters]."""
        eta = np.repeat(self.log_odds[None], len(vectors), axis=0)
        eta[:, self.free] = vectors
        theta = np.exp(eta - eta.max(axis=2, keepdims=True))
        return np.asarray(theta / theta.sum(axis=2, keepdims=True))

    def posterior_lines(self, vectors: Array, covariance: Covariances, rng: np.random.Generator) -> Array:
        """`lines_at` of normal draws with these covariances; with a prior of counts as rows of Dirichlet distributions."""
        lines = self.lines_at(vectors)
        rows, moving = self.free.any(axis=1), self.moving
        if self.normal or not rows.any():
            return lines
        eta, C = np.zeros(lines.shape), np.zeros((*self.free.shape, self.free.shape[1]))
        eta[:, self.free] = vectors - self.log_odds[self.free]
        u, x, y = np.nonzero(self.free[:, :, None] & self.free[:, None, :])
        number = np.cumsum(self.free).reshape(self.free.shape) - 1
        C[u, x, y] = covariance(number[u, x], number[u, y])
        theta = np.where(moving, _rows(self.cpd), 0.0)[rows]
        whole = theta.sum(axis=1, keepdims=True)
        drawn = whole * dirichlet_shares(theta / whole, eta[:, rows], C[rows], rng)
        lines[:, rows] = np.where(moving[rows], drawn, _rows(self.cpd)[rows])
        return lines

    def weigh(self, seen: Counts) -> Array:
        return np.asarray(seen.dense().reshape(self.free.shape) + self.imagined)

    def score(self, cpd: Table, N: Array) -> Array:
        """N[u, x] − N[u] θ[u, x]."""
        pull = 0.0 if self.belief is None else self.belief.slope(cpd.probs)
        return np.asarray((N - N.sum(axis=1, keepdims=True) * _rows(cpd) + pull)[self.free])

    def curvature(self, cpd: Table, N: Array) -> Array:
        """The diagonal of the complete rows' information: N[u] θ (1 − θ)."""
        theta = _rows(cpd)
        held = 0.0 if self.belief is None else np.diag(self.belief.curvature)
        return np.asarray((N.sum(axis=1, keepdims=True) * theta * (1.0 - theta) + held)[self.free])

    def information(self, cpd: Table, N: Array) -> Iterator[Array]:
        """For each configuration that has coordinates: N[u] (diag θ − θ θᵀ)."""
        for theta, free, total in zip(_rows(cpd), self.free, N.sum(axis=1), strict=True):
            if free.any():
                held = 0.0 if self.belief is None else self.belief.curvature[np.ix_(free, free)]
                yield total * (np.diag(theta[free]) - np.outer(theta[free], theta[free])) + held

    def derivatives(self, cpd: Table) -> Iterator[Array]:
        """For each configuration: ∂ parameters / ∂ its coordinates; NaN for a cell that is fixed."""
        for theta, free, known in zip(_rows(cpd), self.free, self.moving, strict=True):
            J = np.diag(theta)[:, free] - np.outer(theta, theta[free])
            J[~known] = np.nan
            yield J

    @property
    def moving(self) -> Flags:
        """The cells that the coordinates move: the free ones, and the reference state of a row that has some."""
        moving = self.free.copy()
        moving[np.arange(len(moving)), self.reference] = self.free.any(axis=1)
        return moving

    def lines(self, cpd: Table) -> Array:
        """The parameters, one line for each configuration."""
        return _rows(cpd)

    def limits(self, origin: Array, farthest: float) -> tuple[Array, Array]:
        """Log-odds stay within `farthest`, or where they start if that is farther."""
        return np.minimum(-farthest - origin, 0.0), np.maximum(farthest - origin, 0.0)

    def ends(self, point: Array, error: Array, z: float) -> tuple[Array, Array]:
        """On the scale of log-odds."""
        middle, half = np.log(point) - np.log1p(-point), z * error / (point * (1.0 - point))
        return sc.expit(middle - half), sc.expit(middle + half)

    def label(self, u: int, i: int) -> str:
        """A parameter in words."""
        cpd = self.cpd
        given = f" | {describe(int(u), cpd.parent_variables)}" if cpd.parents else ""
        return f"p({cpd.child.name}={cpd.child.states[int(i)]!r}{given})"


@dataclass(frozen=True, eq=False)
class GaussianChart(Chart):
    """The coordinates of a Gaussian around `cpd`: one row for each configuration in `known`, its intercept at `centre`."""

    cpd: ConditionalGaussian
    known: Flags
    centre: Array
    spread: Array
    imagined: Moments | None
    extra: float

    kept: ClassVar[tuple[str, ...]] = ("known", "centre")

    @classmethod
    def of(cls, cpd: ConditionalGaussian, seen: Moments, imagined: Any, how: Estimate, boundary: float) -> GaussianChart:
        """The rows behind a posterior mean of v are ν − 2, behind a mode ν + 2 + d: see `families.conditional_gaussian`."""
        if imagined is not None and not isinstance(imagined, Moments):
            raise NoCoordinates(f"the variance of {cpd.child.name!r} is known")
        Q, k = cpd.variance.size, cpd.coefficients.shape[-1]
        extra = 0.0 if imagined is None else float(how.rows_behind(0.0, k + 1))
        moments = (seen if imagined is None else seen + imagined).at(np.arange(Q))
        diagonal = np.einsum("gii->gi", moments.scatter)[:, :-1]
        spread = np.sqrt(diagonal / np.where(moments.count > 0, moments.count, 1.0)[:, None])
        centre = moments.mean[:, :-1]
        known = ~np.isnan(cpd.variance.reshape(-1)) & (moments.count > boundary)
        return cls(cpd, known, centre, np.where(spread > 0, spread, np.maximum(np.abs(centre), 1.0)), imagined, extra)

    @classmethod
    def around(cls, cpd: ConditionalGaussian, known: Any, centre: Any) -> GaussianChart:
        """The chart of a finished Gaussian; `known` has a number for each configuration, 0 where it stays what it is."""
        flags = np.asarray(known, bool).reshape(-1)
        middle = np.asarray(centre, np.float64).reshape(len(flags), -1)
        return cls(cpd, flags, middle, np.ones_like(middle), None, 0.0)

    @property
    def n_plain(self) -> int:
        return 1 + int(self.centre.shape[1])

    @property
    def unit(self) -> Array:
        """One standard deviation of the child; a factor of e of its variance."""
        sigma = np.sqrt(self.cpd.variance.reshape(-1, 1)[self.known])
        return np.hstack([sigma, sigma / self.spread[self.known], np.ones_like(sigma)]).reshape(-1)

    def vector(self, cpd: ConditionalGaussian) -> Array:
        a, b, v = self._parts(cpd)
        centred = a + np.einsum("gi,gi->g", b, self.centre[self.known])
        return np.column_stack([centred, b, np.log(v)]).reshape(-1)

    def lines_at(self, vectors: Array) -> Array:
        """The parameters at many vectors, a line for each configuration: [vectors, configurations, parameters]."""
        new = vectors.reshape(len(vectors), -1, 2 + self.centre.shape[1])
        own = np.repeat(self.lines(self.cpd)[None], len(vectors), axis=0)
        centred = new[:, :, :1] - np.einsum("ngi,gi->ng", new[:, :, 1:-1], self.centre[self.known])[:, :, None]
        own[:, self.known] = np.concatenate([centred, new[:, :, 1:-1], np.exp(new[:, :, -1:])], axis=2)
        return own

    def outward(self, cpd: ConditionalGaussian, along: Array | None) -> tuple[GaussianChart, Array]:
        """The same: a column x = m + s z has the coefficient b/s, and s m more of the intercept."""
        if along is None:
            return super().outward(cpd, along)
        slopes = np.diag(along)[1:-1]
        centre = (along[0, 0] * self.centre - along[0, 1:-1]) / slopes
        larger = np.array([along[0, 0], *slopes, 1.0])
        return GaussianChart.around(cpd, self.known, centre), np.tile(larger, int(self.known.sum()))

    def weigh(self, seen: Moments) -> Moments:
        """Moments at every configuration; the rows behind its variances are seen and imagined ones."""
        moments = (seen if self.imagined is None else seen + self.imagined).at(np.flatnonzero(self.known))
        return replace(moments, df=moments.df + self.extra)

    def score(self, cpd: ConditionalGaussian, s: Moments) -> Array:
        """Σ r z / v for the coefficients, −N/2 + Σ r² / 2v for ln v: r the residuals, z = (1, x − c)."""
        _, _, v = self._parts(cpd)
        rz, rr, _ = self._sums(cpd, s)
        return np.column_stack([rz / v[:, None], 0.5 * (rr / v - s.df)]).reshape(-1)

    def information(self, cpd: ConditionalGaussian, s: Moments) -> Iterator[Array]:
        """For each configuration that has coordinates: [[Σ z zᵀ, Σ r z], [Σ r zᵀ, Σ r² / 2]] / v."""
        rz, rr, zz = self._sums(cpd, s)
        for g, v in enumerate(self._parts(cpd)[2]):
            yield np.block([[zz[g], rz[g][:, None]], [rz[g][None], np.array([[0.5 * rr[g]]])]]) / v

    def derivatives(self, cpd: ConditionalGaussian) -> Iterator[Array]:
        """∂ (a, b, v) / ∂ (a + b·c, b, ln v)."""
        k = self.centre.shape[1]
        for centre, v, known in zip(self.centre, cpd.variance.reshape(-1), self.known, strict=True):
            J = np.diag([1.0] * (1 + k) + [v])
            J[0, 1 : 1 + k] = -centre
            yield J if known else np.full((2 + k, 0), np.nan)

    @property
    def moving(self) -> Flags:
        return np.repeat(self.known[:, None], 2 + self.centre.shape[1], axis=1)

    def lines(self, cpd: ConditionalGaussian) -> Array:
        b = cpd.coefficients.reshape(len(self.known), -1)
        return np.column_stack([cpd.intercept.reshape(-1), b, cpd.variance.reshape(-1)])

    def reshape(self, values: Array) -> dict[str, Array]:
        parts = zip(self.cpd.arrays, (values[:, 0], values[:, 1:-1], values[:, -1]), strict=True)
        return {name: own.reshape(getattr(self.cpd, name).shape) for name, own in parts}

    def label(self, u: int, i: int) -> str:
        cpd = self.cpd
        kinds = ["intercept", *(f"coefficient of {p!r}" for p in cpd.real_parents), "variance"]
        where = f" at {describe(int(u), cpd.finite_parents)}" if cpd.finite_parents else ""
        return f"{kinds[int(i)]} of {cpd.child.name!r}{where}"

    def _parts(self, cpd: ConditionalGaussian) -> tuple[Array, Array, Array]:
        own = self.lines(cpd)[self.known]
        return own[:, 0], own[:, 1:-1], own[:, -1]

    def _sums(self, cpd: ConditionalGaussian, s: Moments) -> tuple[Array, Array, Array]:
        """Σ r z, Σ r² and Σ z zᵀ of each configuration, from centred moments."""
        own = self.vector(cpd).reshape(-1, 2 + self.centre.shape[1])
        x = s.mean[:, :-1] - self.centre[self.known]
        c = np.column_stack([-own[:, 1:-1], np.ones(len(own))])
        off = s.mean[:, -1] - own[:, 0] - np.einsum("gi,gi->g", own[:, 1:-1], x)
        Sc = np.einsum("gij,gj->gi", s.scatter, c)
        z = np.column_stack([np.ones(len(own)), x])
        zz = s.count[:, None, None] * np.einsum("gi,gj->gij", z, z)
        zz[:, 1:, 1:] += s.scatter[:, :-1, :-1]
        rz = (s.count * off)[:, None] * z
        rz[:, 1:] += Sc[:, :-1]
        return rz, np.einsum("gi,gi->g", c, Sc) + s.count * off**2, zz


def _rows(cpd: Table) -> Array:
    return np.asarray(cpd.probs.reshape(-1, cpd.child.n_states))


def _log_odds(theta: Array, reference: npt.NDArray[np.intp]) -> Array:
    with np.errstate(divide="ignore"):
        logs = np.log(theta)
    return np.asarray(logs - np.take_along_axis(logs, reference[:, None], axis=1))
