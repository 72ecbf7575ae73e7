"""The regression of one node on all others under a lasso over whole variables, on its way to the minimum.

    minimise over h, Θ:  −(1/N) Σ ln p(x_i | h + Σ_j Θ_ijᵀ z_j)  +  Σ_j λ_ij √(d_i d_j) ‖Θ_ij‖

z_j and d_j as in `node_columns`; −ln p is logistic, multinomial or, of a real node, ½ (z_i − h − Σ_j Θ_ijᵀ z_j)². By proximal
Newton steps (Lee, Sun & Saunders 2014, SIAM J. Optim. 24, p. 1420): the quadratic that touches the loss is minimised under the
penalty by descent, group by group. Its curvature is wanted between the *active* columns only, those of θ ≠ 0 and those near to
it. The first step needs no rows: without neighbours, slopes and curvatures follow from the products of columns.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.structure.undirected.node_columns import NodeColumns

CLOSE = 1e-4
"""The slope at a minimum is off by no more than this, relative to its penalty."""

NEAR = 0.9
"""Columns whose slope is above this share of their penalty are active."""

LAST = 1e-2
"""A step from a slope that is off by no more than this is the last, and is not measured: what it leaves is about the square."""

STALE = 0.1
"""Curvatures are measured anew unless a step with the old ones brings the slope down to this share."""

MOST = 2000
"""Numbers of θ that a first step moves."""

LEAST = 1e-12
"""Of a group that has no curvature."""

SLIGHT = 1e-3
"""What slopes are compared with where nothing has a penalty."""

SWEEPS = 1000


class Trial(NamedTuple):
    """Where a node wants its loss and slope to be measured, and between which columns its curvature, if at all."""

    node: int
    theta: Array
    active: Ints
    curved: bool


class Measured(NamedTuple):
    """What was measured there: the loss, its slope [column, code], and its curvature [active column and code, the same]."""

    loss: float
    slope: Array
    hessian: Array


class CodedRegression:
    """One node i: θ[column, code] (its row 0 is h), the loss there, its slope, and its curvature between some columns.

    `products` are the means of the products of all columns. The loop is: `begin` under penalties λ_i, then `trial`, measure it,
    `settle`; until `trial` is None.
    """

    def __init__(self, columns: NodeColumns, node: int, products: Array) -> None:
        self.columns, self.node, self.products = columns, node, products
        self.finite, self.own = columns.finite[node], columns.at(node)
        self._single = len(products) == len(columns.names) + 1
        mean = products[0, self.own]
        variance = products[self.own, self.own] - np.outer(mean, mean)
        self.theta = np.zeros((len(products), self.own.stop - self.own.start))
        self.loss, self._spread = 0.5 * float(variance[0, 0]), np.ones((1, 1))
        if self.finite:
            share = columns.shares[node]
            table, share = columns.tables[node][share > 0], share[share > 0]
            self.theta[0], self.loss, self._spread = 2.0 * np.log(share) @ table, -float(share @ np.log(share)), variance
        self.slope = np.outer(products[:, 0], mean) - products[:, self.own]
        self._curved, self._hessian = np.empty(0, np.int64), np.empty((0, 0))
        self._trial: Trial | None = None
        self._fresh = False
        self._from, self._promise, self._paid, self._off = self.theta, 0.0, 0.0, np.inf

    def norms(self, numbers: Array) -> Array:
        """The norm of the numbers [column, code] of each variable."""
        if self._single:
            return np.abs(numbers[1:, 0])
        return np.asarray(np.sqrt(np.add.reduceat((numbers**2).sum(1), self.columns.first[:-1])))

    def price(self, theta: Array) -> float:
        """Σ_j λ_ij √(d_i d_j) ‖Θ_ij‖."""
        return float(self.norms(theta) @ self._prices)

    @property
    def neighbours(self) -> Ints:
        return np.flatnonzero(self.norms(self.theta))

    @property
    def n_parameters(self) -> int:
        """The numbers of θ that are not 0, but for h."""
        return int(self.columns.sizes[self.neighbours].sum() * self.theta.shape[1])

    def here(self) -> Trial:
        """The present θ, to be measured on other rows."""
        return Trial(self.node, self.theta, np.append(0, 1 + np.flatnonzero(self.theta[1:].any(1))), False)

    def begin(self, penalty: Array) -> None:
        """Go on under other penalties λ_ij: 0 of a variable that must be a neighbour, infinity of one that must not."""
        free = (penalty > 0) & np.isfinite(penalty)
        unit = self.columns.weight(self.node)
        self._least = float(penalty[free].min()) if free.any() else SLIGHT
        self._scale = unit * np.where(free, penalty, self._least)
        self._limits = unit * penalty
        self._limits[self.node] = np.inf
        self._prices = np.where(np.isfinite(self._limits), self._limits, 0.0)  # who may not be a neighbour has no θ to pay for
        self._trial, self._off = None, np.inf

    def off(self) -> float:
        """How far the slope is from that of a minimum, relative to the penalty."""
        norms = self.norms(self.theta)
        slack = np.maximum(self.norms(self.slope) - self._limits, 0.0)
        there = norms > 0
        if self._single:
            slack[there] = np.abs(self.slope[1:, 0] + self._prices * np.sign(self.theta[1:, 0]))[there]
        elif there.any():
            pull = np.repeat(np.where(there, self._prices / np.where(there, norms, 1.0), 0.0), self.columns.sizes)
            slack[there] = self.norms(self.slope + np.append(0.0, pull)[:, None] * self.theta)[there]
        return float(max((slack / self._scale).max(), np.abs(self.slope[0]).max() / self._least))

    def trial(self) -> Trial | None:
        """Where to go next; None at the minimum."""
        if self._trial is not None:  # the last step was too long
            return self._ask(self._from + 0.5 * (self._trial.theta - self._from), self.slope, curved=True)
        off, before = self.off(), self._off
        if off <= CLOSE:
            return None
        self._off = off
        if not len(self._curved):
            self._suppose()
        theta, slope = self._step()
        self._from, self._paid = self.theta, self.price(self.theta)
        self._promise = float((self.slope * (theta - self.theta)).sum()) + self.price(theta) - self._paid
        known = np.zeros(len(theta), bool)
        known[self._curved] = True
        if off <= (LAST if self._fresh else STALE * LAST) and known[self._active(theta, slope, 0.5 + 0.5 * NEAR)].all():
            self.loss += 0.5 * float(((theta - self.theta) * (self.slope + slope)).sum())
            self.theta, self.slope = theta, slope
            return None
        beyond = not known[self._active(theta, slope, 1.0)].all()
        return self._ask(theta, slope, curved=beyond or off > STALE * before or before == np.inf)

    def settle(self, measured: Measured) -> None:
        """Take what was measured at the trial; a step that gains too little is halved next."""
        assert self._trial is not None
        theta = self._trial.theta
        gain = measured.loss - self.loss + self.price(theta) - self._paid
        if gain > 1e-3 * self._promise + 1e-12:
            self._promise *= 0.5
            return
        self.theta, self.loss, self.slope, self._fresh = theta, measured.loss, measured.slope, self._trial.curved
        if self._trial.curved:
            self._curved, self._hessian = self._trial.active, measured.hessian
        self._trial = None

    def _ask(self, theta: Array, slope: Array, *, curved: bool) -> Trial:
        active = self._active(theta, slope, NEAR if curved else np.inf)
        self._trial = Trial(self.node, theta, active, curved)
        return self._trial

    def _active(self, theta: Array, slope: Array, near: float) -> Ints:
        """The constant column, and those of variables with θ ≠ 0 or a slope above a share of their penalty."""
        active = (self.norms(theta) > 0) | (self.norms(slope) > near * (self._limits + LEAST))
        columns = np.ones(len(theta), bool)
        columns[1:] = active if self._single else np.repeat(active, self.columns.sizes)
        return np.flatnonzero(columns)

    def _suppose(self) -> None:
        """The curvature where there are no neighbours, or of a real node."""
        ratio = self.norms(self.slope) / np.maximum(self._limits, LEAST)
        chosen = np.flatnonzero(ratio > 0.5)
        order = chosen[np.argsort(-ratio[chosen], kind="stable")]
        fits = np.cumsum(self.columns.sizes[order]) * self.theta.shape[1] <= MOST
        keep = np.zeros(len(ratio), bool)
        keep[order[fits]] = True
        self._curved = np.concatenate([[0], 1 + np.flatnonzero(np.repeat(keep, self.columns.sizes))])
        products = self.products[np.ix_(self._curved, self._curved)]
        self._hessian = products * self._spread if len(self._spread) == 1 else np.asarray(np.kron(products, self._spread))

    def _step(self) -> tuple[Array, Array]:
        """The minimum of the quadratic that touches the loss here, under the penalty (h is solved for), and its slope there."""
        from suffice.kernels.regressions.undirected import descend_groups

        c, H, slope = self.theta.shape[1], self._hessian, self.slope[self._curved].ravel()
        across, level = self._of_h(H, slope)
        curved = H[c:, c:] - H[c:, :c] @ across
        profiled = slope[c:] - H[c:, :c] @ level
        groups, ends, bound = self._groups(curved)
        here = self.theta[self._curved[1:]].ravel()
        there = here.copy()
        tol = 0.01 * min(self._off, 1.0) * self._least
        descend_groups(curved, profiled, there, ends, self._prices[groups], bound, tol, SWEEPS)
        theta = self.theta.copy()
        theta[self._curved[1:]] = there.reshape(-1, c)
        theta[0] -= level + across @ (there - here)
        foreseen = self.slope.copy()
        foreseen[0], foreseen[self._curved[1:]] = 0.0, profiled.reshape(-1, c)
        return theta, foreseen

    def _of_h(self, H: Array, slope: Array) -> tuple[Array, Array]:
        """How h follows the other numbers of θ, and how far it is off by itself."""
        c = self.theta.shape[1]
        if c == 1:
            return H[:1, 1:] / H[0, 0], slope[:1] / H[0, 0]
        solved: Array = np.linalg.solve(H[:c, :c], np.column_stack([H[:c, c:], slope[:c]])).astype(np.float64)
        return solved[:, :-1], solved[:, -1]

    def _groups(self, curved: Array) -> tuple[Ints, Ints, Array]:
        """The variables of the curved columns, where their numbers begin and end, and the largest curvature of each."""
        if self._single:
            return self._curved[1:] - 1, np.arange(len(curved) + 1), np.maximum(np.diag(curved), LEAST)
        variable = np.searchsorted(self.columns.first, self._curved[1:], side="right") - 1
        groups, first = np.unique(variable, return_index=True)
        ends = np.append(first, len(variable)) * self.theta.shape[1]
        blocks = [curved[a:b, a:b] for a, b in pairwise(ends.tolist())]
        return groups, ends, np.array([max(float(np.linalg.eigvalsh(block)[-1]), LEAST) for block in blocks])
