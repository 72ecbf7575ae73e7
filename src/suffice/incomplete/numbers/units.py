"""Units: real columns centred and scaled, so that a mean of 1e9 or a scale of 1e-9 costs no digits.

    z = (x − centre) / scale     centre: the mean of the observed cells; scale: a power of two near their deviation

The division is exact, and so is the subtraction for cells within a factor of two of the centre. Counts stay as they are. Hidden
numbers have the units of the first observed child, going down the graph, so that what is computed stays near 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array
from suffice.basis.variables import Count, Distributed, Finite, NotNormal, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step
from suffice.engines.gather import Groups
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.protocol.family import Cpd
from suffice.graphs.lagged import variable_and_lag
from suffice.graphs.template import Template
from suffice.numerics.exponential.normals.lines import too_large
from suffice.statistics import Moments
from suffice.statistics.counts import RowFormula, freeze, log_factorials
from suffice.statistics.moments import Spread, add_exactly


def no_groups(n_columns: int, n_derived: int = 0) -> Groups:
    """No configuration at all."""
    k = n_columns
    spread = Spread(np.zeros(0), np.zeros((0, k)), np.zeros((0, k)), np.zeros((0, k, k)))
    return Groups(np.zeros(0, np.int64), spread, np.zeros((0, n_derived)))


@dataclass(frozen=True, eq=False)
class _Columns(Step[Groups]):
    """The weight, mean and scatter of the observed cells of each of some columns, a column as a group of its own."""

    names: tuple[str, ...]

    def of(self, block: Block) -> Groups:
        parts = [_column(block.columns[n], block.weight) for n in self.names]
        weight, mean, rest, scatter = (np.array(part) for part in zip(*parts, strict=True))
        spread = Spread(weight, mean[:, None], rest[:, None], scatter[:, None, None])
        return Groups(np.arange(len(self.names)), spread, np.zeros((len(self.names), 0)))


def observed_cells(rows: Data, names: tuple[str, ...], threads: int | None = None) -> Spread:
    """The weight, mean and scatter of the observed cells of each column."""
    return rows.fold(_Columns(names), threads=threads).spread if names else no_groups(1).spread


def block_cells(block: Block, names: tuple[str, ...]) -> Spread:
    """The same of the rows of one block."""
    return _Columns(names).of(block).spread if names else no_groups(1).spread


def _column(x: npt.NDArray[Any], weight: Array | None) -> tuple[float, float, float, float]:
    seen = ~np.isnan(x)
    x, w = x[seen], np.ones(int(seen.sum())) if weight is None else weight[seen]
    total = float(w.sum())
    if not total > 0:
        return 0.0, 0.0, 0.0, 0.0
    # Sums rather than dot products, for which the BLAS starts threads of its own: ours and theirs would wait for each other.
    with np.errstate(over="ignore", invalid="ignore"):
        share = w / total
        mean = float((share * x).sum())
        off = x - mean
        rest = float((share * off).sum())
        return total, mean, rest, float((w * off * off).sum()) - total * rest * rest


@dataclass(frozen=True)
class Units:
    """The centre and scale of each real column, and `mean` and `variance` of its observed cells in these units."""

    centre: Mapping[str, float]
    scale: Mapping[str, float]
    mean: Mapping[str, float]
    variance: Mapping[str, float]
    weight: Mapping[str, float]
    not_normal: Mapping[str, Variable]
    """The columns that stay as they are."""

    @staticmethod
    def of(spread: Spread, variables: Mapping[str, Variable]) -> Units:
        names = [n for n, v in variables.items() if not isinstance(v, Finite)]
        centre, scale, middle, variance = {}, {}, {}, {}
        for i, name in enumerate(names):
            mean, square = float(spread.mean[i, 0]), float(spread.scatter[i, 0, 0])
            if not np.isfinite(square):
                raise too_large(name)
            own = max(square, 0.0) / max(float(spread.weight[i]), 1e-300)
            plain = isinstance(variables[name], NotNormal)
            scale[name] = 1.0 if plain or own <= 0 else float(2.0 ** np.round(0.5 * np.log2(own)))
            centre[name] = 0.0 if plain else mean
            middle[name], variance[name] = mean - centre[name], own / scale[name] ** 2
        weight = dict(zip(names, spread.weight.tolist(), strict=True))
        others = {n: variables[n] for n in names if isinstance(variables[n], NotNormal)}
        return Units(centre, scale, middle, variance, weight, others)

    def with_common_units(self, groups: Iterable[tuple[str, ...]]) -> Units:
        """The same, but that some columns have common units: the mean of their centres, and the largest of their scales. A scale
        large enough for centres that are far apart, too, keeps what is computed in these units near 1."""
        centre, scale, mean, variance = (dict(part) for part in (self.centre, self.scale, self.mean, self.variance))
        for names in ([n for n in group if n in self.centre and n not in self.not_normal] for group in groups):
            if len(names) < 2:
                continue
            middle = float(np.mean([self.centre[n] for n in names]))
            far = max(abs(self.centre[n] - middle) for n in names)
            common = max(self.scale[n] for n in names)
            common = max(common, float(2.0 ** np.round(np.log2(far)))) if far > 0 else common
            for n in names:
                mean[n] = (self.centre[n] - middle + self.mean[n] * self.scale[n]) / common
                variance[n] = self.variance[n] * (self.scale[n] / common) ** 2
                centre[n], scale[n] = middle, common
        return replace(self, centre=centre, scale=scale, mean=mean, variance=variance)

    @property
    def plain(self) -> Units:
        """The units of columns that are scaled already."""
        zero, one = dict.fromkeys(self.centre, 0.0), dict.fromkeys(self.scale, 1.0)
        return replace(self, centre=zero, scale=one)

    def outward_map(self, cpd: Cpd) -> Array:
        """∂ (intercept, coefficients, variance) / ∂ (those of scaled columns)."""
        y = self.scale[cpd.child.name]
        scale, centre = (np.array([part[p] for p in cpd.real_parents]) for part in (self.scale, self.centre))
        L = np.diag([y, *(y / scale), y * y])
        L[0, 1:-1] = -y * centre / scale
        return L

    def inward(self, name: str, x: Array) -> Array:
        return np.asarray((x - self.centre[name]) / self.scale[name])

    def outward(self, name: str, z: Array) -> Array:
        return np.asarray(self.centre[name] + self.scale[name] * z)

    def of_cells(self, names: Any) -> float:
        """What ln p of the observed cells of these columns has less than that of the scaled ones: Σ w ln scale."""
        return float(sum(self.weight[n] * np.log(self.scale[n]) for n in names))

    def inward_cpd(self, cpd: ConditionalGaussian) -> ConditionalGaussian:
        """The same distribution of scaled columns."""
        y, parents = cpd.child.name, cpd.real_parents
        b = cpd.coefficients.astype(np.longdouble)
        a = cpd.intercept.astype(np.longdouble) - self.centre[y]
        if parents:
            a = a + b @ np.array([self.centre[p] for p in parents], np.longdouble)
        scales = np.array([self.scale[p] for p in parents])
        own, slopes = (a / self.scale[y]).astype(np.float64), cpd.coefficients * scales / self.scale[y]
        v = cpd.variance / self.scale[y] ** 2
        return replace(cpd, intercept=own, coefficients=slopes, variance=v, seen=None, imagined=None)

    def outward_cpd(self, cpd: ConditionalGaussian) -> ConditionalGaussian:
        """The same distribution of the columns as they are."""
        y, parents = cpd.child.name, cpd.real_parents
        b = cpd.coefficients * self.scale[y] / np.array([self.scale[p] for p in parents])
        a = cpd.intercept.astype(np.longdouble) * self.scale[y] + self.centre[y]
        if parents:
            # with the coefficients as they were rounded, so that the line goes through the centre
            a = a - b.astype(np.longdouble) @ np.array([self.centre[p] for p in parents], np.longdouble)
        return replace(cpd, intercept=a.astype(np.float64), coefficients=b, variance=cpd.variance * self.scale[y] ** 2)

    def inward_moments(self, moments: Moments) -> Moments:
        """Imagined moments as a prior would imagine them of scaled columns."""
        centre, scale = (np.array([part[r] for r in moments.reals]) for part in (self.centre, self.scale))
        inside = None if moments.background is None else self.inward_moments(moments.background)
        mean = ((moments.mean - centre) + moments.rest) / scale
        scatter = moments.scatter / scale[:, None] / scale
        return Moments(moments.variables, moments.reals, moments.keys, moments.count, mean, scatter, moments.df, inside)

    def outward_moments(
        self, finite: tuple[Finite, ...], reals: tuple[str, ...], groups: Groups, derived: tuple[RowFormula, ...] = ()
    ) -> Moments:
        """Moments of the columns as they are, and the sums of what is derived from them, where groups have these."""
        centre, scale = (np.array([part[r] for r in reals]) for part in (self.centre, self.scale))
        weight, mean, _, scatter = groups.spread
        far = np.repeat(centre[None, :], len(weight), axis=0)
        whole, rest = add_exactly(far, np.zeros_like(far), mean * scale)
        own = scatter * scale[:, None] * scale
        sums = groups.sums if groups.sums.shape[1] else None
        return Moments(finite, reals, groups.keys, weight, whole, own, None, None, rest, derived, sums)  # type: ignore[arg-type]


NO_UNITS = Units({}, {}, {}, {}, {}, {})
"""Where no column is a number."""


@dataclass(frozen=True)
class _Sums(Step[Array]):
    """The sums of derived columns over their observed cells."""

    derived: tuple[RowFormula, ...]

    def of(self, block: Block) -> Array:
        cells = ((d, block.columns[d.column]) for d in self.derived)
        return np.array([float((block.weights * np.where(np.isnan(x), 0.0, d.values(x))).sum()) for d, x in cells])


def observed_sums(rows: Data, variables: Mapping[str, Variable], threads: int | None = None) -> dict[RowFormula, float]:
    """The sums of what the families of chosen distributions derive from their columns, over the observed cells."""
    chosen = [v for v in variables.values() if isinstance(v, Distributed)]
    derived = tuple(d for v in chosen for d in v.family.needs(v, []).derived)
    return dict(zip(derived, rows.fold(_Sums(derived), threads=threads).tolist(), strict=True)) if derived else {}


def moments_by_column(
    spread: Spread, variables: Mapping[str, Variable], sums: Mapping[RowFormula, float] | None = None
) -> list[Moments]:
    """What a prior takes its defaults from: mean and variance of observed cells of real columns, and sums derived from them."""
    entries = []
    for i, n in enumerate(n for n, v in variables.items() if not isinstance(v, Finite)):
        count, mean, rest, scatter = (freeze(np.array(part[i : i + 1])) for part in spread)
        unknown = log_factorials([n] if isinstance(variables[n], Count) else [])
        own = {d: s for d, s in (sums or {}).items() if d.column == n} | dict.fromkeys(unknown, np.nan)
        found: dict[str, Any] = {"rest": rest, "derived": tuple(own), "sums": [list(own.values())]}
        entries.append(Moments((), (n,), np.zeros(1, np.int64), count, mean, scatter, **found))
    return entries


def with_hidden(units: Units, alike: Mapping[str, str | None]) -> Units:
    """The units with those of hidden numbers, each as the column it is like, or as they are."""
    defaults = {"centre": 0.0, "scale": 1.0, "variance": 1.0}
    own = {part: {n: getattr(units, part).get(model, x) for n, model in alike.items()} for part, x in defaults.items()}
    own |= {part: dict.fromkeys(alike, 0.0) for part in ("mean", "weight")}
    return replace(units, **{part: {**getattr(units, part), **new} for part, new in own.items()})


def columns_below(template: Template, hidden: Collection[str], observed: Collection[str]) -> dict[str, str | None]:
    """For each hidden variable the column that it is measured like, or None."""
    children: dict[str, list[str]] = {}
    for child in template.nodes:
        for parent in template.parents(child):
            children.setdefault(variable_and_lag(parent)[0], []).append(child)
    nearest: dict[str, str | None] = {}
    for name in hidden:  # the first observed one among its descendants, generation by generation
        near, seen, nearest[name] = [name], {name}, None
        while near and nearest[name] is None:
            near = list(dict.fromkeys(c for n in near for c in children.get(n, ()) if c not in seen))
            nearest[name] = next((c for c in near if c in observed), None)
            seen.update(near)
    return nearest
