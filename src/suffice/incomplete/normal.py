"""Missing numbers of normal nodes: their joint normal given the observed numbers, integrated and regressed.

With m the missing numbers and o the observed ones around them, every normal node that touches them says e = A m + C o − a with
e ~ Normal(0, diag v). Scaled to unit noise and factored, V^(−½) A = Q [R; 0], so with Q = [Q₁ Q₂]

    E[m | o]         −R⁻¹ Q₁ᵀ V^(−½) (C o − a)             Cov[m | o]  R⁻¹ R⁻ᵀ
    ln ∫ p dm        −½ |Q₂ᵀ V^(−½) (C o − a)|² − ½ Σ ln 2πv + |m|/2 ln 2π − ln |R|

Each missing number is the child of one of the nodes, so R is never singular; no covariance is formed and none is inverted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.gather import Groups
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.incomplete.components import Line
from suffice.incomplete.moments import collected, some_columns
from suffice.incomplete.patterns import Component, Member, distinct
from suffice.statistics.chan import Spread, pooled

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]


class Conditional(NamedTuple):
    """The missing numbers given the observed ones o, for each of many configurations (leading axes).

    mean = mean_map o + mean_constant; ln ∫ p = log_scale − ½ |residual_map o + residual_constant|²
    """

    mean_map: Array
    mean_constant: Array
    residual_map: Array
    residual_constant: Array
    covariance: Array
    log_scale: Array


def conditional(component: Component, lines: Mapping[str, Line], indices: list[Index]) -> Conditional:
    """The conditional of a component's unknown numbers, at a configuration of each of its joint nodes (all of one shape)."""
    shape, q = indices[0].shape, len(component.joint)
    p, o = len(component.unknown), len(component.reals)
    A, C = np.zeros((*shape, q, p)), np.zeros((*shape, q, o))
    a, v = np.zeros((*shape, q)), np.zeros((*shape, q))
    for i, (local, index) in enumerate(zip(component.joint, indices, strict=True)):
        line = lines[local.node.name]
        a[..., i], v[..., i] = line.intercept[index], line.variance[index]
        for j, name in enumerate(local.node.reals):
            kind, place = local.sources[name]
            own = j == len(local.node.reals) - 1
            (A if kind == "unknown" else C)[..., i, place] = 1.0 if own else -line.coefficients[index, j]
    return _solved(A, C, a, v)


def _solved(A: Array, C: Array, a: Array, v: Array) -> Conditional:
    p = A.shape[-1]
    root = 1.0 / np.sqrt(v)
    Q, R = np.linalg.qr(A * root[..., None], mode="complete")
    turned = np.swapaxes(Q, -1, -2)
    C, d = turned @ (C * root[..., None]), -(turned @ (a * root)[..., None])[..., 0]
    inverse = np.linalg.inv(R[..., :p, :])
    pivots = np.abs(np.einsum("...ii->...i", R[..., :p, :]))
    log_scale = 0.5 * (p * LOG_2PI - (LOG_2PI + np.log(v)).sum(axis=-1)) - np.log(pivots).sum(axis=-1)
    return Conditional(
        -(inverse @ C[..., :p, :]),
        -(inverse @ d[..., :p, None])[..., 0],
        C[..., p:, :],
        d[..., p:],
        inverse @ np.swapaxes(inverse, -1, -2),
        log_scale,
    )


@dataclass(frozen=True, eq=False)
class Cases:
    """Rows of a component without finite unknowns, summed up: the moments of its observed numbers by its observed codes."""

    codes: npt.NDArray[Any]
    spread: Spread

    def __add__(self, other: Cases) -> Cases:
        codes = np.concatenate([self.codes, other.codes], axis=1)
        parts = Spread(*(np.concatenate([a, b]) for a, b in zip(self.spread, other.spread, strict=True)))
        first, inverse = distinct(codes, codes.shape[1])
        return Cases(codes[:, first], pooled(parts, inverse, len(first)))


def expected_moments(component: Component, cases: Cases, lines: Mapping[str, Line]) -> tuple[float, dict[str, Groups]]:
    """ln p of what these rows observed, and the expected moments of each normal node that touches them."""
    indices = [np.broadcast_to(local.index(cases.codes)[0], len(cases.spread.weight)) for local in component.joint]
    c = conditional(component, lines, indices)
    N, o, _, S = cases.spread
    off = _times(c.residual_map, o) + c.residual_constant
    square = np.einsum("gro,gop,grp->g", c.residual_map, S, c.residual_map) + N * (off * off).sum(axis=-1)
    log_likelihood = float(N @ c.log_scale - 0.5 * square.sum())
    mean = np.concatenate([_times(c.mean_map, o) + c.mean_constant, o], axis=1)
    M = np.concatenate([c.mean_map, np.broadcast_to(np.eye(o.shape[1]), (len(N), o.shape[1], o.shape[1]))], axis=1)
    scatter = M @ S @ np.swapaxes(M, 1, 2)
    p = len(component.unknown)
    scatter[:, :p, :p] += N[:, None, None] * c.covariance
    whole = Spread(N, mean, np.zeros_like(mean), scatter)
    return log_likelihood, {
        local.node.name: collected(index, some_columns(whole, places(component, local)))
        for local, index in zip(component.joint, indices, strict=True)
    }


def places(component: Component, local: Member) -> list[int]:
    """Where the numbers of a joint node stand among the unknown and, behind them, the observed ones."""
    start = {"unknown": 0, "real": len(component.unknown)}
    return [start[kind] + i for kind, i in (local.sources[name] for name in local.node.reals)]


def _times(maps: Array, x: Array) -> Array:
    return np.asarray((maps @ x[..., None])[..., 0])
