"""Columns of the regressions of each node on all others, states as contrasts and numbers standardised; and the regression of one
node under a lasso over whole variables, on its way to the minimum.

A variable j of K states is coded by K − 1 numbers z_j, its row of an orthonormal basis of the vectors that sum to zero, over √2:
two states are −½ and +½, as 0 and 1 are but for the mean. As the child of a regression, its states s have the scores

    ln p(x_i = s | rest) = z_i(s)·(h_i + Σ_j Θ_ijᵀ z_j) − ln Z

so that of two variables of two states each Θ_ij is the log odds ratio given the rest (4 J_ij of an Ising model). The norm of
Θ_ij, over all of its (K_i − 1)(K_j − 1) numbers, does not depend on the basis, and so not on the order of the states. A real
variable is its number less the mean, in units of *two* standard deviations: then it varies as two equally frequent states do
(Gelman 2008, Statistics in Medicine 27, p. 2865), and one penalty is fair to both.

The regression of node i is to

    minimise over h, Θ:  −(1/N) Σ ln p(x_i | h + Σ_j Θ_ijᵀ z_j)  +  Σ_j λ_ij √(d_i d_j) ‖Θ_ij‖

with d_j for K_j − 1, 1 of a real variable; −ln p is logistic, multinomial or, of a real node, ½ (z_i − h − Σ_j Θ_ijᵀ z_j)². By
proximal Newton steps (Lee, Sun & Saunders 2014, SIAM J. Optim. 24, p. 1420): the quadratic that touches the loss is minimised
under the penalty by descent, group by group. Its curvature is wanted between the *active* columns only, those of θ ≠ 0 and those
near to it. The first step needs no rows: without neighbours, slopes and curvatures follow from the products of columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.variables import Finite, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.errors import TooLarge, bytes_in_words
from suffice.statistics import Request, Statistics

PRODUCTS = 2**31
"""Bytes that the products of all pairs of columns may take."""

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


@dataclass(frozen=True, eq=False)
class NodeColumns:
    """How the cells of a row become numbers: column 0 is 1, and those of variable j are first[j] : first[j + 1].

    `tables[j]` has a row of numbers for each state, 0 for one that no row has; of a real variable it has one row, its mean and
    twice its standard deviation. `shares[j]` are the shares of the states among the rows, none of a real variable.

    >>> from suffice import scan
    >>> data = scan({"x": ["a", "b", "a"], "y": ["u", "v", "w"]})
    >>> columns = NodeColumns.of(data, list(data.schema.values()))
    >>> columns.first
    array([1, 2, 4])
    >>> columns.numbers(Block({"x": np.array([0, 1, 0]), "y": np.array([0, 1, 2])})).round(2)
    array([[ 1.  ,  1.  ,  1.  ],
           [-0.5 ,  0.5 , -0.5 ],
           [-0.5 ,  0.5 ,  0.  ],
           [-0.29, -0.29,  0.58]])
    """

    names: tuple[str, ...]
    finite: tuple[bool, ...]
    tables: tuple[Array, ...]
    shares: tuple[Array, ...]

    @staticmethod
    def of(data: Data, variables: Sequence[Variable], *, threads: int | None = None) -> NodeColumns:
        """The columns of some finite and real variables; one that does not vary is coded as 0."""
        finite = tuple(isinstance(v, Finite) for v in variables)
        requests = [Request((v.name,)) if f else Request((), (v.name,)) for v, f in zip(variables, finite, strict=True)]
        seen = data.gather(requests, threads=threads)
        codes = [_states(seen, v.name) if f else _spread(seen, v.name) for v, f in zip(variables, finite, strict=True)]
        tables, shares = zip(*codes, strict=True)
        result = NodeColumns(tuple(v.name for v in variables), finite, tables, shares)
        n_bytes = 8.0 * float(result.first[-1]) ** 2
        if n_bytes > PRODUCTS:
            raise TooLarge(
                f"the {result.first[-1]:,} columns of {len(variables):,} variables have products that take "
                f"{bytes_in_words(n_bytes)}, more than {bytes_in_words(PRODUCTS)}: take fewer variables, or merge their states"
            )
        return result

    @cached_property
    def first(self) -> Ints:
        """Where the columns of each variable begin."""
        return np.cumsum([1, *(t.shape[1] if f else 1 for t, f in zip(self.tables, self.finite, strict=True))])

    @cached_property
    def sizes(self) -> Ints:
        """How many columns each variable has."""
        return np.diff(self.first)

    def at(self, variable: int) -> slice:
        """The columns of a variable."""
        return slice(int(self.first[variable]), int(self.first[variable + 1]))

    def weight(self, child: int) -> Array:
        """What λ is multiplied with for each variable j in the regression of i: √((K_i − 1)(K_j − 1)), 1 in place of K − 1 for a
        real one."""
        return np.asarray(np.sqrt(self.sizes * self.sizes[child]))

    def numbers(self, block: Block, rows: slice = slice(None)) -> Array:
        """The columns of some rows of a block: [column, row]."""
        cells = [block.columns[name][rows] for name in self.names]
        X = np.empty((int(self.first[-1]), len(cells[0])))
        X[0] = 1.0
        if self.two_states:
            np.subtract(np.array(cells, np.uint8), 0.5, out=X[1:])
            return X
        for j, (column, finite, table) in enumerate(zip(cells, self.finite, self.tables, strict=True)):
            if finite:
                X[self.at(j)] = table.T[:, column]
            else:
                np.divide(column - table[0, 0], table[0, 1], out=X[self.first[j]])
        return X

    @property
    def constant(self) -> tuple[bool, ...]:
        """Which variables do not vary."""
        return tuple(not t.any() if f else bool(np.isinf(t[0, 1])) for t, f in zip(self.tables, self.finite, strict=True))

    @cached_property
    def two_states(self) -> bool:
        """Whether all variables have two states."""
        return all(self.finite) and all(len(table) == 2 and table.any() for table in self.tables)


def contrasts(n_states: int) -> Array:
    """An orthonormal basis of the vectors over some states that sum to zero, over √2: each state against those before it."""
    z = np.zeros((n_states, n_states - 1))
    for k in range(1, n_states):
        z[:k, k - 1], z[k, k - 1] = -1.0, k
        z[:, k - 1] *= np.sqrt(0.5 / (k * (k + 1)))
    return z


def _states(seen: Statistics, name: str) -> tuple[Array, Array]:
    """The numbers of each state, and their shares."""
    counts = np.asarray(seen.counts([name]).values, np.float64)
    occur = np.flatnonzero(counts > 0)
    table = np.zeros((len(counts), max(len(occur) - 1, 1)))
    if len(occur) > 1:
        table[occur] = contrasts(len(occur))
    return table, counts / counts.sum()


def _spread(seen: Statistics, name: str) -> tuple[Array, Array]:
    """The mean of a real column, and twice its standard deviation."""
    moments = seen.moments((), [name])
    mean, deviation = float(moments.mean[0, 0]), float(np.sqrt(moments.scatter[0, 0, 0] / moments.count[0]))
    return np.array([[mean, 2.0 * deviation if deviation > 1e-12 * abs(mean) else np.inf]]), np.empty(0)


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
    def n_parameters(self) -> int:
        """The numbers of θ that are not 0, but for h."""
        return int(self.columns.sizes[self.norms(self.theta) > 0].sum() * self.theta.shape[1])

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
        from suffice.numerics.kernels.regressions.undirected import descend_groups

        c, H, slope = self.theta.shape[1], self._hessian, self.slope[self._curved].ravel()
        if c == 1:  # how h follows the other numbers of θ, and how far it is off by itself
            across, level = H[:1, 1:] / H[0, 0], slope[:1] / H[0, 0]
        else:
            solved = np.linalg.solve(H[:c, :c], np.column_stack([H[:c, c:], slope[:c]])).astype(np.float64)
            across, level = solved[:, :-1], solved[:, -1]
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

    def _groups(self, curved: Array) -> tuple[Ints, Ints, Array]:
        """The variables of the curved columns, where their numbers begin and end, and the largest curvature of each."""
        if self._single:
            return self._curved[1:] - 1, np.arange(len(curved) + 1), np.maximum(np.diag(curved), LEAST)
        variable = np.searchsorted(self.columns.first, self._curved[1:], side="right") - 1
        groups, first = np.unique(variable, return_index=True)
        ends = np.append(first, len(variable)) * self.theta.shape[1]
        blocks = [curved[a:b, a:b] for a, b in pairwise(ends.tolist())]
        return groups, ends, np.array([max(float(np.linalg.eigvalsh(block)[-1]), LEAST) for block in blocks])
