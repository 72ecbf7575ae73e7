"""The observed information of estimates from incomplete data: standard errors, intervals, and how much information is missing.

Oakes' identity (1999, Journal of the Royal Statistical Society B 61, p. 480), with Q(η | η′) what EM maximises:

    observed information   − ∂² ln L / ∂η²   =   complete information − missing information
    complete               − ∂² Q / ∂η²          closed form, one block for each configuration of each node's parents
    missing                ∂² Q / ∂η ∂η′         how the expected gradient moves with the parameters of the E-step

The gradient is exact, so only its first differences are taken, two E-steps for each parameter. A node whose family no row
lacks has no missing information, and needs none. With a prior, ln L is the objective of EM (docs/conventions.md): then
this is the curvature of the posterior.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import Progress, ProgressLike
from suffice.basis.libraries import sc
from suffice.basis.output.display import html_table, text_table
from suffice.errors import FitError, ModelError, TooLarge, bytes_in_words, checked_level, listing, nearest, note
from suffice.families.charts import Array, Chart, Natural, needing_coordinates
from suffice.families.protocol.family import Cpd, Interval, frame
from suffice.families.regression_charts import still
from suffice.incomplete.components import Theta
from suffice.learning.incomplete.coordinates import Atlas, numbers_near, projection
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.models.parts.parameter_covariance import ParameterCovariance

MOST = 5_000
"""No information matrix of more free parameters than this is made: 200 MB, and minutes for its eigenvalues."""

BOUNDARY = 1e-8
"""A probability up to this one is on the boundary, and has no standard error; nor has a row with no more weight than this."""

STEP = 1e-4
"""Of the unit of a coordinate: central differences of an exact gradient are then good to about eight digits."""

NOTHING = 1e-6
"""A direction with no more than this share of its complete information left is not identified: differences tell no more."""

SAME = 1e-12
"""Expected statistics that move less than this share of all rows do not depend on the parameters."""


@dataclass(frozen=True, eq=False)
class Information:
    """Observed information at estimates from incomplete data, in the coordinates of `suffice.learning.incomplete.coordinates`.

    matrix          the observed information, without what is fixed on the boundary
    complete        the information that complete rows would have had
    covariance      the inverse of `matrix`, without the directions that the data does not identify
    cpds, points    the distributions in the units of the coordinates, and in those of the columns; `outward` leads to these
    shares          the fractions of complete information that are left, one for each direction of incomplete nodes
    lost            the directions that the data does not identify
    posterior       whether a prior is part of it: then it is the curvature of the posterior
    n_tied          how many parameters follow from others by convention: of hidden numbers with parents, two each

    >>> from suffice import em
    >>> information = em("x", {"x": ["a"] * 20 + ["b"] * 80}).information()
    >>> information.standard_errors["x"].round(6)
    array([0.04, 0.04])
    >>> information.missing_information["x"]
    array([0., 0.])
    """

    atlas: Atlas
    cpds: Mapping[str, Cpd]
    points: Mapping[str, Cpd]
    outward: Mapping[str, Array | None]
    matrix: Array
    complete: Array
    covariance: Array
    complete_covariance: Array
    shares: Array
    lost: Array
    posterior: bool
    n_tied: int = 0

    @property
    def n_parameters(self) -> int:
        """The number of free parameters."""
        return len(self.matrix) - self.n_tied

    @property
    def largest_missing(self) -> float:
        """The largest fraction of missing information in any direction: the rate at which EM converges at the end.

        It is the spectral radius of 1 − (observed)(complete)⁻¹; near 1 EM is slow (Dempster, Laird & Rubin 1977, p. 10). It
        speaks of free parameters only: where cells fall to the boundary, EM may be slower, at the rate at which they fall.
        """
        return float(min(max(1.0 - self.shares.min(initial=1.0), 0.0), 1.0))

    @cached_property
    def standard_errors(self) -> dict[str, Natural]:
        """By node, in the shape of its parameters; NaN on the boundary, inf where the data does not identify a parameter."""
        return self.atlas.share({n: self.atlas.charts[n].reshape(np.sqrt(v)) for n, (v, _) in self._variances.items()})

    @cached_property
    def missing_information(self) -> dict[str, Natural]:
        """By node, 1 − (variance with complete rows) / (variance): 0 if nothing is missing, 1 where nothing is known."""
        return self.atlas.share({n: chart.reshape(self._missing(n)) for n, chart in self.atlas.charts.items()})

    def _missing(self, name: str) -> Array:
        variance, complete = self._variances[name]
        return np.clip(1.0 - complete / variance, 0.0, 1.0)

    @one_blas_thread
    def interval(self, name: str, level: float = 0.95) -> Any:
        """The equal-tailed normal interval of each parameter of a node: an `Interval`, or one for each kind of a Gaussian's.

        Of probabilities it is normal on the scale of log-odds, of variances on that of logarithms: the ends stay inside.
        """
        if name not in self.cpds:
            raise ModelError(f"there is no node {name!r}{nearest(name, self.cpds)}")
        first = self.atlas.copies[name][0] if name in self.atlas.copies else name  # which has the coordinates of this one
        if first not in self.atlas.charts:
            raise ModelError(f"the distribution of {name!r} was fixed: it is taken to be known, and has no interval")
        lower, upper = map(self.atlas.charts[first].reshape, self._ends(first, level))
        if isinstance(lower, dict) and isinstance(upper, dict):
            return {kind: Interval(lower[kind], upper[kind]) for kind in lower}
        return Interval(lower, upper)

    def _ends(self, name: str, level: float) -> tuple[Array, Array]:
        """The ends of these intervals, for each configuration and parameter of a node."""
        z = float(sc.ndtri(0.5 + checked_level(level) / 2.0))
        chart = self.atlas.charts[name]
        point, error = chart.lines(self.points[name]), np.sqrt(self._variances[name][0])
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ends: tuple[Array, Array] = chart.ends(point, error, z)
        return ends

    @property
    def fixed(self) -> tuple[str, ...]:
        """The parameters without a standard error: on the boundary, or of configurations that no row speaks for."""
        charts = self.atlas.charts
        return tuple(charts[n].label(u, i) for n in charts for u, i in zip(*np.nonzero(~charts[n].moving), strict=True))

    @property
    def not_identified(self) -> tuple[str, ...]:
        """The parameters about which the data says nothing, or at which the objective is no maximum."""
        unknown = {n: zip(*np.nonzero(np.isinf(variance)), strict=True) for n, (variance, _) in self._variances.items()}
        return tuple(self.atlas.charts[n].label(u, i) for n, places in unknown.items() for u, i in places)

    @cached_property
    def _variances(self) -> dict[str, tuple[Array, Array]]:
        """For each configuration and parameter of a node: its variance, and what it would be with complete rows."""
        result = {}
        for name, chart in self.atlas.charts.items():
            at, rows, L = self.atlas.places[name].start, [], self.outward[name]
            for size, inner in zip(chart.sizes, chart.derivatives(self.cpds[name]), strict=True):
                place = slice(at, at + int(size))
                at, J = place.stop, inner if L is None or not size else L @ inner
                if not size:
                    rows.append(np.full((2, len(J)), np.nan))
                    continue
                # the delta method: the diagonals of J C Jᵀ; infinite where J does not vanish along what is not identified
                both = (np.einsum("ij,jk,ik->i", J, C[place, place], J) for C in (self.covariance, self.complete_covariance))
                observed, complete = both
                along = np.abs(J @ self.lost[place]).max(axis=1, initial=0.0)
                rows.append(np.stack([np.where(along > 1e-4 * np.sqrt(complete), np.inf, observed), complete]))
            result[name] = tuple(np.stack(rows, axis=1))
        return result

    @property
    def parameter_covariance(self) -> ParameterCovariance:
        """The covariance of the coordinates in the units of the columns, as a network keeps it for intervals of its answers."""
        charts: dict[str, Chart] = {}
        larger = [np.zeros(0)]
        for name, chart in self.atlas.charts.items():
            charts[name], scale = chart.outward(self.points[name], self.outward[name])
            larger.append(scale)
        by, copies = np.concatenate(larger), {n: first for n, (first, _) in self.atlas.copies.items()}
        charts |= {n: self.atlas.charts[of].outward(self.points[n], self.outward[of])[0] for n, of in copies.items()}
        charts |= still({name: cpd for name, cpd in self.points.items() if name not in charts})
        unknown = [n for n, (variance, _) in self.atlas.share(self._variances).items() if np.isinf(variance).any()]
        return ParameterCovariance.of(charts, self.covariance * by[:, None] * by, unknown, self.posterior, copies)

    def to_frame(self, level: float = 0.95) -> Any:
        """One row per free parameter: its node and name, estimate, standard error, interval, fraction of missing information."""
        header, rows = self._table(level)
        return frame({name: [row[i] for row in rows] for i, name in enumerate(header)})

    def _table(self, level: float = 0.95) -> tuple[list[str], list[list[Any]]]:
        header = ["node", "parameter", "estimate", "standard error", "lower", "upper", "missing information"]
        rows: list[list[Any]] = []
        for name, chart in self.atlas.charts.items():
            columns = [chart.lines(self.points[name]), np.sqrt(self._variances[name][0])]
            columns += [*self._ends(name, level), self._missing(name)]
            for u, i in zip(*np.nonzero(chart.moving), strict=True):
                rows.append([name, chart.label(u, i), *(float(part[u, i]) for part in columns)])
        return header, rows

    def _repr_html_(self) -> str:
        header, rows = self._table()
        return html_table(header[1:], [row[1:] for row in rows[:40]], caption=repr(self).partition("\n")[0])

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "atlas": replace(self.atlas, problem=None)}  # type: ignore[arg-type] # the data stays behind

    def __repr__(self) -> str:
        kind = "Posterior curvature" if self.posterior else "Observed information"
        without = f"; {len(self.fixed):,} numbers fixed or on the boundary" if self.fixed else ""
        unknown = f"; not identified: {listing(self.not_identified, style='str')}" if self.not_identified else ""
        header, rows = self._table()
        more = f"\n… and {len(rows) - 20:,} more" if len(rows) > 20 else ""
        return (
            f"{kind} of {self.n_parameters:,} free parameters{without}{unknown}\n"
            f"largest fraction of missing information {self.largest_missing:.3g}\n"
            f"{text_table(header[1:], [row[1:] for row in rows[:20]])}{more}"
        )


@one_blas_thread
def observed_information(problem: ParameterProblem, parameters: Theta, *, progress: ProgressLike = None) -> Information:
    """The observed information at these parameters, which should be a maximum of the objective: the end of `em`.

    What the data does not identify, and an estimate that is no maximum, are noted.

    >>> from suffice import em
    >>> run = em("x", {"x": ["a"] * 20 + ["b"] * 80 + [None] * 100}, tol=1e-12)
    >>> information = run.information()
    >>> information.standard_errors["x"].round(6), information.missing_information["x"].round(6)
    (array([0.04, 0.04]), array([0.5, 0.5]))
    >>> information.interval("x").lower.round(3)
    array([0.133, 0.71 ])
    """
    if problem.entries:
        raise FitError("the observed information with single entries fixed is not known yet; fix whole nodes, or none")
    points, problem = problem.cpds(parameters), problem.scaled
    expected = problem.expect(parameters)
    with needing_coordinates("its intervals after EM are not known"):
        atlas = Atlas.around(problem, parameters, expected.statistic, BOUNDARY, problem.still)
    if (above := problem.conventions.with_parents) and any(node.finite for node in numbers_near(problem)):
        raise FitError(  # their variances are those of mixtures
            f"the hidden number {above[0]!r} has parents, and finite variables bear on numbers near it: the observed information "
            "of such a graph is not known yet; resample rows for errors"
        )
    if (n := atlas.size) > MOST:
        raise TooLarge(
            f"the observed information of {n:,} free parameters would be {n:,} × {n:,} numbers ({bytes_in_words(8.0 * n * n)}); "
            f"the limit is {MOST:,} parameters"
        )
    cpds = problem.cpds(parameters)
    with closing(Progress[Any]("observed information", None, progress)) as watch:
        names = _incomplete(atlas, cpds, expected.statistic)
        missing = _missing(atlas, cpds, names, watch)
    complete, root = _complete(atlas, cpds, expected.statistic)
    inverse = root.T @ root
    moved = _indices(atlas, names)
    own = np.ix_(moved, moved)
    shares, vectors = np.linalg.eigh(np.eye(len(moved)) - root[own] @ missing[own] @ root[own].T)
    directions = root[own].T @ vectors
    known = shares > NOTHING
    covariance, lost = inverse.copy(), np.zeros((atlas.size, int((~known).sum())))
    covariance[own] = (directions[:, known] / shares[known]) @ directions[:, known].T
    lost[moved] = directions[:, ~known]
    if problem.conventions.with_parents:
        P = projection(atlas, parameters)
        covariance, lost = P @ covariance @ P.T, P @ lost
    outward = {name: problem.outward_map(cpds[name]) for name in atlas.charts}
    sums = complete - missing, complete, covariance, inverse, shares, lost
    has_prior = problem.prior is not None or any(node.iterative and node.family.ridge for node in problem.others)
    result = Information(atlas, cpds, points, outward, *sums, has_prior, 2 * len(problem.conventions.with_parents))
    unknown, score = result.not_identified, atlas.scores(cpds, expected.statistic)
    if shares.min(initial=1.0) < -1e-4:
        note(
            "the estimate is not a maximum: the objective still rises along a direction of "
            f"{listing(unknown, style='str')}; run em from other starts"
        )
    elif unknown:
        note(f"the data does not identify {listing(unknown, style='str')}: their standard errors are infinite")
    gain = 0.5 * float(score @ covariance @ score)
    if gain > 0.01:
        note(f"the estimate is short of the maximum, which is higher by about {gain:.2g}: run em with a smaller tol")
    return result


def _missing(atlas: Atlas, cpds: Mapping[str, Cpd], names: list[str], watch: Progress[Any]) -> Array:
    """∂² Q / ∂η ∂η′ by central differences in η′, which only the E-step sees."""
    problem, n = atlas.problem, atlas.size
    missing = np.zeros((n, n))
    rows = _indices(atlas, names)

    def expected_score(name: str, vector: Array) -> Array:
        moved = problem.expect(problem.parameters({**cpds, **atlas.with_copies({name: atlas.charts[name].at(vector)})}))
        return atlas.scores(cpds, moved.statistic, names)

    for name in names:
        chart, place = atlas.charts[name], atlas.places[name]
        here: Array = chart.vector(cpds[name])
        for j, h in enumerate(STEP * chart.unit):
            watch.check(f"parameter {place.start + j + 1:,} of {n:,}")
            step = h * (np.arange(len(here)) == j)
            missing[rows, place.start + j] = (expected_score(name, here + step) - expected_score(name, here - step)) / (2.0 * h)
    return np.asarray((missing + missing.T) / 2.0)


def _indices(atlas: Atlas, names: list[str]) -> npt.NDArray[np.intp]:
    """Where the coordinates of these nodes are."""
    return np.concatenate([np.zeros(0, np.intp), *(np.arange(atlas.size)[atlas.places[n]] for n in names)])


def _incomplete(atlas: Atlas, cpds: Mapping[str, Cpd], statistic: Any) -> list[str]:
    """The nodes whose expected statistic hangs on the parameters, seen by moving all of them: the others are complete. Of
    regressions the curvature of complete rows may be a bound, or an expected one: differences make up for that."""
    problem = atlas.problem
    noise = np.random.default_rng(0).normal(0.0, 0.3, atlas.size) * atlas.unit
    noise[_indices(atlas, [name for name in atlas.charts if problem.nodes[name].iterative])] = 0.0  # far off they may not exist
    here = np.concatenate([np.zeros(0), *(chart.vector(cpds[name]) for name, chart in atlas.charts.items())])
    other = problem.expect(problem.parameters({**cpds, **atlas.cpds(here + noise)})).statistic
    change = np.abs(atlas.scores(cpds, other) - atlas.scores(cpds, statistic)) * atlas.unit
    moved = {name for name, place in atlas.places.items() if change[place].max(initial=0.0) > SAME * problem.weight}
    return [name for name in atlas.charts if name in moved or problem.nodes[name].iterative]


def _complete(atlas: Atlas, cpds: Mapping[str, Cpd], statistic: Any) -> tuple[Array, Array]:
    """The complete information C, block by block, and a root R of its inverse: Rᵀ R = C⁻¹."""
    n = atlas.size
    complete, root = np.zeros((n, n)), np.zeros((n, n))
    for name, s in atlas.weigh(statistic).items():
        at = atlas.places[name].start
        for block in atlas.charts[name].information(cpds[name], s):
            place = slice(at, at + len(block))
            at = place.stop
            scale = np.sqrt(np.abs(np.diag(block)))
            try:
                factor = np.linalg.cholesky(block / np.outer(scale, scale))
            except np.linalg.LinAlgError:
                raise FitError(
                    f"even with complete rows the parameters of {name!r} would not be at a maximum: run em to its end first"
                ) from None
            complete[place, place], root[place, place] = block, np.linalg.inv(factor) / scale
    return complete, root
