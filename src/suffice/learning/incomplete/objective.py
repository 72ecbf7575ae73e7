"""What EM climbs besides ln p(observed), and the estimates that are its exact maximisers: the M-step of nodes that are no tables.

    rates      Mean  a ln λ − b λ,  Mode  (a − 1) ln λ − b λ     (a imagined events in b imagined rows)
    Gaussians  Mean  −(ν − 2)/2 ln v − R/2v            v = s / (N + ν − 2)
               Mode  −(ν + 2 + d)/2 ln v − R/2v        v = s / (N + ν + 2 + d),  d = 1 + |x|

with imagined moments (κ rows with mean m and scatter S, ν of variance) of the child and its real parents,
of which the line a, b leaves  R = cᵀSc + κ (c·m − a)²,  c = (−b, 1). s is the residual of seen and imagined moments together.

To be extrapolated, distributions are numbers without bounds: logarithms of rates and variances, the others as they are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.engines.gather import Groups
from suffice.errors import FitError, listing
from suffice.errors.remedies import NORMAL_PRIOR
from suffice.exponential.normals.lines import NO_RESIDUAL, LeastSquares, regress, too_large
from suffice.families.conditional_gaussian import ConditionalGaussian, LinearGaussian
from suffice.families.protocol.family import Estimate
from suffice.families.regressions.linear_moments import common_line
from suffice.incomplete.components import Line, NodeFamily
from suffice.incomplete.numbers.mixed import scaled_moments
from suffice.incomplete.numbers.units import no_groups
from suffice.statistics.counts import describe, sizes

VANISHED = 1e-8
"""A configuration with less expected weight than this, in rows, keeps its parameters."""

COLLAPSED = 1e-10
"""A variance below this share of the column's own is on its way to zero, and its density to infinity."""


class NoEstimate(FitError):
    """A node has no estimate with its parents.

    >>> NoEstimate("y", "its coefficients grow without end").node
    'y'
    """

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
    a `floor` none is below this share of it.

    Without a prior a configuration whose weight has vanished keeps its `old` parameters.
    """
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
    """The linear regression that expected moments give: one line for all configurations, but for their levels. Slopes that are
    `known`, by their place, are those of an offset."""
    if groups is None or not groups.spread.weight.sum() > 0:
        return old
    found = common_line(node.finite, groups.keys, groups.spread, known)
    if found.collinear is not None:
        raise Collapsed(node.name, "", f"its parent {node.reals[found.collinear]!r} is a combination of the others, or constant")
    refuse_collapse(node, None, found.regression, found.weight, variance, found.scatter)
    shape = sizes(node.finite)
    return ConditionalGaussian(
        node.child,
        node.parents,
        found.levels.reshape(shape),
        np.broadcast_to(found.slopes, (*shape, len(found.slopes))),
        np.full(shape, found.regression.residual / found.weight),
    )


def refuse_collapse(node: NodeFamily, key: int | None, r: LeastSquares, N: float, variance: float, scatter: Array) -> None:
    """Refuse a variance that falls to zero; `variance` is that of the child's observed cells."""
    # of tied columns that lie far apart the scatter may be much larger than that of each
    if not r.residual / N > COLLAPSED * variance or r.residual <= NO_RESIDUAL * scatter[-1, -1]:
        raise Collapsed(node.name, _where(node, key), "its variance is falling to zero")


def regression_of(node: NodeFamily, key: int | None, scatter: Array, parents: Sequence[str]) -> LeastSquares:
    """The regression of a node on these parents in one of its configurations, or (None) in all; one that does not exist is
    refused."""
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
