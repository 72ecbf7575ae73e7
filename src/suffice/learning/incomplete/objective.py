"""What EM climbs besides ln p(observed), and the estimates that are its exact maximisers: the M-step of nodes that are no tables.

    rates      Mean  a ln λ − b λ,  Mode  (a − 1) ln λ − b λ     (a imagined events in b imagined rows)
    Gaussians  Mean  −(ν − 2)/2 ln v − R/2v            v = s / (N + ν − 2)
               Mode  −(ν + 2 + d)/2 ln v − R/2v        v = s / (N + ν + 2 + d),  d = 1 + |x|

with imagined moments (κ rows with mean m and scatter S, ν of variance) of the child and its real parents,
of which the line a, b leaves  R = cᵀSc + κ (c·m − a)²,  c = (−b, 1). s is the residual of seen and imagined moments together.

To be extrapolated, distributions are numbers without bounds: logarithms of rates and variances, the others as they are.

Single entries of a Gaussian may be known, and stay as they are at the start: its intercept, coefficients, or variance.

    y = a + Σ b x + e       the M-step is the least squares of what is free: with all of b known, a is the mean of y − Σ b x;
                            with a known the line goes through (0, a), a being that of the columns as they are

In scaled columns, x' = (x − c)/s, the intercept of the columns as they are stays the same if a' − Σ b' c/s does.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.engines.gather import Groups
from suffice.errors import FitError, listing, nearest
from suffice.errors.remedies import NORMAL_PRIOR, Remedy
from suffice.families.conditional_gaussian import ConditionalGaussian, LinearGaussian
from suffice.families.protocol.family import Estimate
from suffice.families.regressions.linear_moments import common_line
from suffice.incomplete.components import Line, NodeFamily
from suffice.incomplete.numbers.mixed import scaled_moments
from suffice.incomplete.numbers.units import Units, no_groups
from suffice.numerics.exponential.normals.lines import NO_RESIDUAL, LeastSquares, regress, too_large
from suffice.statistics.counts import describe, sizes

VANISHED = 1e-8
"""A configuration with less expected weight than this, in rows, keeps its parameters."""

COLLAPSED = 1e-10
"""A variance below this share of the column's own is on its way to zero, and its density to infinity."""


class NoEstimate(FitError):
    """A node has no estimate with its parents."""

    def __init__(self, node: str, why: str) -> None:
        super().__init__(why)
        self.node = node

    def __reduce__(self) -> tuple[object, ...]:
        return NoEstimate, (self.node, self.said)


class Collapsed(NoEstimate):
    """A normal distribution that shrinks onto a point or a line, where its density has no limit.

    >>> Collapsed("y", "class='a'", "its variance is zero").node
    'y'
    """

    def __init__(self, node: str, configuration: str, why: str) -> None:
        self.configuration, self.why = configuration, why
        where = f" at {configuration}" if configuration else ""
        super().__init__(
            node,
            f"{node!r}{where} has collapsed: {why}; use a prior such as {NORMAL_PRIOR}, leave out columns that determine "
            "it, or, with hidden variables, take fewer states or another start",
        )

    def __reduce__(self) -> tuple[object, ...]:
        return Collapsed, (self.node, self.configuration, self.why)


def normal_of(
    node: NodeFamily,
    groups: Groups | None,
    old: ConditionalGaussian,
    imagined: Any,
    how: Estimate,
    variance: float,
    floor: float = 0.0,
) -> ConditionalGaussian:
    """The conditional Gaussian that expected moments and a prior give; `variance` is that of the child's observed cells, and with
    a `floor` none is below this share of it. Without a prior a configuration whose weight has vanished keeps its `old`
    parameters."""
    groups = no_groups(len(node.reals)) if groups is None else groups
    if imagined is not None:
        return LinearGaussian().estimate(node.child, node.parents, scaled_moments(node, groups), imagined, how)
    intercept, coefficients, v = (part.copy() for part in Line.of(old))
    least = VANISHED * min(1.0, float(groups.spread.weight.sum()))
    for key, N, mean, scatter in zip(groups.keys, groups.spread.weight, groups.spread.mean, groups.spread.scatter, strict=True):
        if least > N:
            continue
        r = regression_of(node, int(key), scatter, node.reals[:-1])
        if not floor:
            refuse_collapse(node, int(key), r, N, variance, scatter)
        intercept[key], coefficients[key] = mean[-1] - r.coefficients @ mean[:-1], r.coefficients
        v[key] = max(r.residual / N, floor * variance)
    return Line(intercept, coefficients, v).in_place_of(old)


def common_line_of(
    node: NodeFamily, groups: Groups | None, old: ConditionalGaussian, known: Mapping[int, float], variance: float
) -> ConditionalGaussian:
    """One line for all configurations, but for their levels; slopes that are `known`, by their place, are those of an offset."""
    if groups is None or not groups.spread.weight.sum() > 0:
        return old
    found = common_line(node.finite, groups.keys, groups.spread, known)
    if found.collinear is not None:
        raise Collapsed(node.name, "", f"its parent {node.reals[found.collinear]!r} is a combination of the others, or constant")
    refuse_collapse(node, None, found.regression, found.weight, variance, found.scatter)
    shape = sizes(node.finite)
    b, v = np.broadcast_to(found.slopes, (*shape, len(found.slopes))), np.full(shape, found.regression.residual / found.weight)
    return ConditionalGaussian(node.child, node.parents, found.levels.reshape(shape), b, v)


def refuse_collapse(node: NodeFamily, key: int | None, r: LeastSquares, N: float, variance: float, scatter: Array) -> None:
    """Refuse a variance that falls to zero; `variance` is that of the child's observed cells."""
    # of tied columns that lie far apart the scatter may be much larger than that of each
    if not r.residual / N > COLLAPSED * variance or r.residual <= NO_RESIDUAL * scatter[-1, -1]:
        raise Collapsed(node.name, _where(node, key), "its variance is falling to zero")


def regression_of(node: NodeFamily, key: int | None, scatter: Array, parents: Sequence[str]) -> LeastSquares:
    """The regression of a node on these parents in a configuration, or (None) in all; refused where it does not exist."""
    if not np.isfinite(scatter).all():
        raise too_large(node.name)
    r = regress(scatter)
    if r.collinear >= 0:
        column, before = parents[int(r.collinear)], parents[: int(r.collinear)]
        of = f"a linear combination of {listing(before)} or constant" if before else "constant"
        raise Collapsed(node.name, _where(node, key), f"its parent {column!r} is {of} there")
    return r


def _where(node: NodeFamily, key: int | None) -> str:
    return "" if key is None else describe(key, node.finite)


@dataclass(frozen=True)
class HeldEntries:
    """Which entries of a Gaussian are known: its intercept, the coefficients of some real parents (by number), its variance."""

    intercept: bool
    coefficients: tuple[int, ...]
    variance: bool

    @staticmethod
    def of(node: NodeFamily, names: Iterable[str]) -> HeldEntries:
        """The entries of these names: those of the arrays, or real parents, whose coefficients are meant."""
        wanted, parents = set(names), node.reals[:-1]
        known = [*Line._fields, *parents]
        for name in sorted(wanted - set(known)):
            raise FitError(
                f"fixed has {name!r} of {node.name!r}, which is no entry of it: {listing(known)}{nearest(str(name), known)}"
            )
        some = tuple(i for i, p in enumerate(parents) if "coefficients" in wanted or p in wanted)
        return HeldEntries("intercept" in wanted, some, "variance" in wanted)

    def names(self, node: NodeFamily) -> tuple[str, ...]:
        """The entries by name, coefficients as those of their parents."""
        own = (("intercept", self.intercept), *((node.reals[i], True) for i in self.coefficients), ("variance", self.variance))
        return tuple(name for name, known in own if known)

    def whole(self, node: NodeFamily) -> bool:
        """Whether nothing is left to learn."""
        return self.intercept and self.variance and len(self.coefficients) == len(node.reals) - 1

    def put(self, cpd: ConditionalGaussian, start: ConditionalGaussian, ratio: Array) -> ConditionalGaussian:
        """A distribution with the known entries of the start; `ratio` is c/s of each real parent."""
        line, old = Line.of(cpd), Line.of(start)
        b = line.coefficients.copy()
        b[:, list(self.coefficients)] = old.coefficients[:, list(self.coefficients)]
        a = old.intercept + (b - old.coefficients) @ ratio if self.intercept else line.intercept
        return Line(a, b, old.variance if self.variance else line.variance).in_place_of(cpd)

    def estimate(
        self,
        node: NodeFamily,
        groups: Groups | None,
        old: ConditionalGaussian,
        start: ConditionalGaussian,
        ratio: Array,
        variance: float,
    ) -> ConditionalGaussian:
        """The distribution of largest likelihood among those with the known entries; a configuration without weight keeps the
        `old` one. `variance` is that of the child's observed cells."""
        groups = no_groups(len(node.reals)) if groups is None else groups
        a, b, v = (part.copy() for part in Line.of(self.put(old, start, ratio)))
        known, spread = Line.of(start), groups.spread
        free = [i for i in range(len(node.reals) - 1) if i not in self.coefficients]
        least = VANISHED * min(1.0, float(spread.weight.sum()))
        for key, N, mean, scatter in zip(groups.keys, spread.weight, spread.mean, spread.scatter, strict=True):
            if least > N:
                continue
            fixed = np.where(np.isin(np.arange(len(ratio)), free), 0.0, known.coefficients[key])
            L = np.vstack([np.eye(len(mean))[free], np.append(-fixed, 1.0)])
            S, m = L @ scatter @ L.T, L @ mean
            if self.intercept:
                m += np.append(ratio[free], (known.coefficients[key] * ratio)[free].sum() - known.intercept[key])
                S = S + N * np.outer(m, m)
            r = regression_of(node, int(key), S, [node.reals[i] for i in free])
            if not self.variance:
                refuse_collapse(node, int(key), r, N, variance, S)
                v[key] = r.residual / N
            b[key] = fixed
            b[key, free] = r.coefficients
            line = known.intercept[key] + (b[key] - known.coefficients[key]) @ ratio
            a[key] = line if self.intercept else mean[-1] - b[key] @ mean[:-1]
        return Line(a, b, v).in_place_of(old)


def ratios(node: NodeFamily, units: Units) -> Array:
    """c/s of each real parent."""
    return np.array([units.centre[r] / units.scale[r] for r in node.reals[:-1]])


def read_fixed(fixed: Any, nodes: Mapping[str, NodeFamily]) -> tuple[tuple[str, ...], dict[str, HeldEntries]]:
    """The nodes that are known as a whole, and those of which only some entries are."""
    if not isinstance(fixed, (Iterable, Mapping)):
        raise FitError(f"fixed names nodes, ['state'], or entries of them, {{'level': ['intercept']}}, not {fixed!r}")
    if not isinstance(fixed, Mapping):
        return ((fixed,) if isinstance(fixed, str) else tuple(fixed)), {}
    whole, entries = [], {}
    for name, said in fixed.items():
        node = nodes.get(name)
        if node is None:
            raise FitError(f"fixed names {name!r}, which has no parameters here{nearest(str(name), list(nodes))}")
        if said is True:
            whole.append(name)
            continue
        if not node.normal or node.regression:
            raise FitError(
                f"fixed names single entries of {name!r}, and only those of Gaussians can be: "
                f"{Remedy(f'{{{name!r}: True}}', f'--fixed {shlex.quote(name)}')} is all of it"
            )
        held = HeldEntries.of(node, [said] if isinstance(said, str) else said)
        if held.whole(node):
            whole.append(name)
        else:
            entries[name] = held
    return tuple(whole), entries
