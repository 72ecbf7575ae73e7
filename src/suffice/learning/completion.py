"""Completion: the rows of a component completed in every way, each completion weighed by its posterior probability.

    ln w[s, row]   Σ ln p of the nodes that touch the component, at the joint state s of its missing finite variables; missing
                   numbers are integrated within each state
    ln p(row)      ln Σ_s w          posterior   w / Σ_s w, times the weight of the row

Arrays have the rows on their last axis: there are many of them, and few states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.data import added
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.families.family import Cpd
from suffice.learning.normal_parts import Conditional, Line, conditional, places
from suffice.learning.patterns import Array, Component, Index, Local, digits_of, distinct
from suffice.learning.units import Units
from suffice.learning.weighted import Groups, weighted_moments

NEVER = np.iinfo(np.int64).max
"""The number of the first impossible row where there is none."""

ROWS = 2**14
CELLS = 2**17
"""A block has at most so many rows, and so many completions: by measurement large enough, and they stay in the cache."""


@dataclass
class Sums:
    """What completed rows add up to: counts, moments and steps of iterative families by node, and ln p(observed)."""

    log_likelihood: float = 0.0
    impossible: int = NEVER
    tables: dict[str, Array] = field(default_factory=dict)
    moments: dict[str, Groups] = field(default_factory=dict)
    steps: dict[str, Any] = field(default_factory=dict)

    def __add__(self, other: Sums) -> Sums:
        return Sums(
            self.log_likelihood + other.log_likelihood,
            min(self.impossible, other.impossible),
            _joined(self.tables, other.tables, np.add),
            _joined(self.moments, other.moments, Groups.plus),
            _joined(self.steps, other.steps, added),
        )


def _joined(a: Mapping[str, Any], b: Mapping[str, Any], add: Any) -> dict[str, Any]:
    return {**a, **{n: add(a[n], part) if n in a else part for n, part in b.items()}}


class Rows(NamedTuple):
    """The observed cells of rows around a component: codes and numbers, one row per column; weights; row numbers from 0."""

    codes: npt.NDArray[Any]
    reals: Array
    weight: Array
    number: Index

    def plus(self, other: Rows) -> Rows:
        codes, reals = (np.concatenate([a, b], axis=1) for a, b in zip(self[:2], other[:2], strict=True))
        return Rows(codes, reals, np.concatenate([self.weight, other.weight]), np.concatenate([self.number, other.number]))

    def take(self, some: Any) -> Rows:
        return Rows(self.codes[:, some], self.reals[:, some], self.weight[some], self.number[some])

    def merged(self) -> Rows:
        """Equal rows as one, with their weights together and the number of the first."""
        first, inverse = distinct([*self.codes, *self.reals], len(self.weight))
        return self.take(first)._replace(weight=np.bincount(inverse, self.weight, len(first)).astype(np.float64))


@dataclass(frozen=True, eq=False)
class Block:
    """Some rows of a component; where it has unknown numbers, in an order in which equal configurations of its joint nodes
    follow one another: from `starts[g]` to `starts[g + 1]`."""

    component: Component
    rows: Rows
    starts: npt.NDArray[np.intp]


def blocks(component: Component, rows: Rows) -> Iterator[Block]:
    """Rows in blocks of bounded size."""
    size = max(1, min(ROWS, CELLS // component.n_states))
    for start in range(0, len(rows.weight), size):
        part = rows.take(slice(start, start + size))
        if not component.unknown:
            yield Block(component, part, np.zeros(0, np.intp))
            continue
        columns = sorted({position for local in component.joint for position, _ in local.observed})
        _, group = distinct([part.codes[c] for c in columns], len(part.weight))
        order = np.argsort(group, kind="stable")
        yield Block(component, part.take(order), np.concatenate([[0], np.cumsum(np.bincount(group))]).astype(np.intp))


class Working:
    """Parameters as the completion of rows needs them, worked out once for all blocks."""

    def __init__(self, cpds: Mapping[str, Cpd], units: Units) -> None:
        self.cpds, self.units = cpds, units

    @cached_property
    def log_tables(self) -> dict[str, Array]:
        with np.errstate(divide="ignore"):
            return {n: np.log(cpd.probs).reshape(-1) for n, cpd in self.cpds.items() if isinstance(cpd, Table)}

    @cached_property
    def lines(self) -> dict[str, Line]:
        return {n: line_of(cpd) for n, cpd in self.cpds.items() if isinstance(cpd, ConditionalGaussian)}


def line_of(cpd: ConditionalGaussian) -> Line:
    q = cpd.variance.size
    return Line(cpd.intercept.reshape(q), cpd.coefficients.reshape(q, cpd.coefficients.shape[-1]), cpd.variance.reshape(q))


def completed(block: Block, working: Working) -> Sums:
    """What the rows of a block are expected to add, and their ln p(observed)."""
    component, rows = block.component, block.rows
    log_weight = np.zeros((*component.shape, len(rows.weight)))
    for local in component.tables:
        log_weight += local.spread(working.log_tables[local.node.name][local.index(rows.codes)])
    for local in component.lines:
        log_weight += local.spread(_log_normal(local, rows, working.lines[local.node.name]))
    columns = {local.node.name: _completed_columns(local, rows, component, working.units) for local in component.others}
    for local in component.others:
        cpd = working.cpds[local.node.name]
        log_weight += local.spread(cpd.log_prob(columns[local.node.name]).reshape(len(local.offsets), -1))
    joint = _joint(block, working.lines) if component.unknown else None
    if joint is not None:
        log_weight += joint.log_density.reshape(log_weight.shape)
    total = Sums()
    weight = _posterior(log_weight.reshape(component.n_states, -1), rows, total).reshape(log_weight.shape)
    _add_tables(component, rows, weight, total)
    _add_lines(component, rows, weight, total)
    for local in component.others:
        _add_other(local, rows, local.gathered(weight), columns[local.node.name], working, total)
    if joint is not None:
        _add_joint(block, joint, weight.reshape(component.n_states, -1), total)
    return total


def _posterior(log_weight: Array, rows: Rows, total: Sums) -> Array:
    """The weights of the completions, by log-sum-exp; ln p goes to the total, and so does the first impossible row."""
    top = log_weight.max(axis=0)
    possible = top > -np.inf
    if not possible.all():
        total.impossible = int(rows.number[~possible].min())
        top = np.where(possible, top, 0.0)
    weight: Array = np.exp(log_weight - top)
    sums = weight.sum(axis=0)
    sums[~possible] = 1.0
    total.log_likelihood = float(rows.weight @ (top + np.log(sums)))
    weight *= rows.weight / sums
    return weight


def _log_normal(local: Local, rows: Rows, line: Line) -> Array:
    """ln p of a normal node whose numbers are observed, by its local states and rows."""
    index = local.index(rows.codes)
    *parents, child = local.columns
    off: Array = rows.reals[child] - line.intercept[index]
    if parents and index.shape[1] == 1:
        off -= line.coefficients[index[:, 0]] @ rows.reals[parents]
    else:
        for j, column in enumerate(parents):
            off -= line.coefficients[index, j] * rows.reals[column]
    v = line.variance[index]
    off *= off
    off *= -0.5 / v
    off -= 0.5 * (LOG_2PI + np.log(v))
    return off


def _completed_columns(local: Local, rows: Rows, component: Component, units: Units) -> dict[str, npt.NDArray[Any]]:
    """The columns of a node's family, once for each of its local states, one after another."""
    n, many = len(rows.weight), len(local.offsets)
    digits = digits_of([component.shape[a] for a in local.axes])
    result: dict[str, npt.NDArray[Any]] = {}
    for name, (kind, place) in local.sources.items():
        if kind == "state":
            result[name] = np.repeat(digits[local.axes.index(place)], n)
        else:
            column = rows.codes[place] if kind == "code" else units.outward(name, rows.reals[place])
            result[name] = np.tile(column, many)
    return result


def _add_tables(component: Component, rows: Rows, weight: Array, total: Sums) -> None:
    for local in component.tables:
        total.tables[local.node.name] = counted(local, rows.codes, local.gathered(weight))


def counted(local: Local, codes: npt.NDArray[Any], weight: Array) -> Array:
    """The weight of each cell of a node's table."""
    index = local.index(codes)
    if index.shape[1] == 1:
        return np.bincount(index[:, 0], weight.sum(axis=1), local.node.n_cells).astype(np.float64)
    return np.bincount(index.reshape(-1), weight.reshape(-1), local.node.n_cells).astype(np.float64)


def _add_lines(component: Component, rows: Rows, weight: Array, total: Sums) -> None:
    for pool in component.pools:
        columns = sorted({c for local in pool for c in local.columns})
        index, values = pool[0].index(rows.codes), rows.reals[columns]
        groups = weighted_moments(index, pool[0].gathered(weight), values, pool[0].node.n_cells)
        for local in pool:
            total.moments[local.node.name] = groups.only([columns.index(c) for c in local.columns])


def _add_other(
    local: Local, rows: Rows, weight: Array, columns: Mapping[str, npt.NDArray[Any]], working: Working, total: Sums
) -> None:
    node = local.node
    if node.iterative:
        total.steps[node.name] = node.family.step(working.cpds[node.name], columns, weight.reshape(-1))
    elif node.reals:
        values = numbers(local, rows.reals)
        total.moments[node.name] = weighted_moments(local.index(rows.codes), weight, values, node.n_cells)
    else:
        total.tables[node.name] = counted(local, rows.codes, weight)


def numbers(local: Local, reals: Array) -> Array:
    """The numbers of a node, and behind them ln x! of those that are counts."""
    own = reals[list(local.columns)]
    if not local.node.counted:
        return own
    from scipy.special import gammaln

    bases = [gammaln(own[local.node.reals.index(c)] + 1.0) for c in local.node.counted]
    return np.concatenate([own, np.array(bases)])


class Joint(NamedTuple):
    """Unknown numbers of a block: how they hang on the observed ones (groups, states, …), and by state and row their
    ln ∫ p and mean (unknown, states, rows)."""

    given: Conditional
    indices: list[Index]
    log_density: Array
    mean: Array


def _joint(block: Block, lines: Mapping[str, Line]) -> Joint:
    component, rows, starts = block.component, block.rows, block.starts
    S, n, p = component.n_states, len(rows.weight), len(component.unknown)
    codes = rows.codes[:, starts[:-1]]
    indices = [_by_group(local, component, codes) for local in component.joint]
    given = conditional(component, lines, indices)
    log_density, mean = np.empty((S, n)), np.empty((p, S, n))
    for g, (a, b) in enumerate(pairwise(starts)):
        o = rows.reals[:, a:b]
        off = np.tensordot(given.residual_map[g], o, 1) + given.residual_constant[g][..., None]
        log_density[:, a:b] = given.log_scale[g][:, None] - 0.5 * (off * off).sum(axis=1)
        middle = np.tensordot(given.mean_map[g], o, 1) + given.mean_constant[g][..., None]
        mean[:, :, a:b] = middle.transpose(1, 0, 2)
    return Joint(given, indices, log_density, mean)


def _by_group(local: Local, component: Component, codes: npt.NDArray[Any]) -> Index:
    """The configuration of a joint node for each group of rows (first axis) and joint state of the component."""
    index = local.index(codes)
    wide = np.broadcast_to(index.reshape(*local.shape, index.shape[1]), (*component.shape, index.shape[1]))
    return np.asarray(np.broadcast_to(wide.reshape(component.n_states, -1), (component.n_states, codes.shape[1])).T)


def _add_joint(block: Block, joint: Joint, weight: Array, total: Sums) -> None:
    component, rows = block.component, block.rows
    n_groups = len(block.starts) - 1
    group = np.repeat(np.arange(n_groups), np.diff(block.starts))
    in_group = np.add.reduceat(weight, block.starts[:-1], axis=1).T
    observed = np.broadcast_to(rows.reals[:, None, :], (len(rows.reals), *weight.shape))
    values = np.concatenate([joint.mean, observed])
    p = len(component.unknown)
    for local, index in zip(component.joint, joint.indices, strict=True):
        columns = places(component, local)
        own = index.T if n_groups == 1 else index[group].T
        groups = weighted_moments(own, weight, values[columns], local.node.n_cells)
        unsure = np.zeros((*index.shape, len(columns), len(columns)))
        hidden = [i for i, c in enumerate(columns) if c < p]
        which = [columns[i] for i in hidden]
        unsure[..., np.array(hidden)[:, None], hidden] = joint.given.covariance[..., np.array(which)[:, None], which]
        total.moments[local.node.name] = groups.widened(index, in_group, unsure)
