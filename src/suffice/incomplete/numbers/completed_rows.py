"""Completion: the rows of a component completed in every way, each completion weighed by its posterior probability.

    ln w[s, row]   Σ ln p of the nodes that touch the component, at the joint state s of its missing finite variables; missing
                   numbers are integrated within each state
    ln p(row)      ln Σ_s w          posterior   w / Σ_s w, times the weight of the row

Arrays have the rows on their last axis: there are many of them, and few states.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.engines.gather import Groups
from suffice.errors import FitError
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.incomplete.components import Expectation, Line, Theta
from suffice.incomplete.numbers.normal import ConditionalNormal, conditional, places, some_columns, weighted_moments, widen_groups
from suffice.incomplete.numbers.patterns import Component, Member, digits_of
from suffice.incomplete.numbers.units import Units
from suffice.statistics.counts import distinct

ROWS = 2**14
CELLS = 2**17
"""A block has at most so many rows, and so many completions: by measurement large enough, and they stay in the cache."""


class NoProbability(FitError):
    """A row has no probability under the parameters; `row` is its place in its block."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


@dataclass(frozen=True, eq=False)
class ObservedRows:
    """The observed cells of rows around a component: codes and numbers, one row per column; weights; the row in
    its block that each was. With `equal`, equal rows are kept once."""

    codes: npt.NDArray[Any]
    reals: Array
    weight: Array
    row: Ints
    equal: bool = False

    @classmethod
    def of(
        cls, component: Component, columns: Mapping[str, Any], some: Any, units: Units, weights: Array, row: Any
    ) -> ObservedRows:
        """Some rows of columns, numbers in their units; `row` is what each was."""
        codes, reals = [columns[n][some] for n in component.codes], [units.inward(n, columns[n][some]) for n in component.reals]
        own = np.array(codes, np.int32).reshape(len(codes), len(some)), np.array(reals, np.float64).reshape(len(reals), len(some))
        return cls(*own, np.array(weights[some]), row)

    def __add__(self, other: ObservedRows) -> ObservedRows:
        pairs = [(getattr(self, f.name), getattr(other, f.name)) for f in fields(self)[:4]]
        both = ObservedRows(*[np.concatenate(pair, axis=-1) for pair in pairs])  # type: ignore[arg-type]
        return both.merge_equal() if self.equal else both

    def take(self, some: Any) -> ObservedRows:
        return ObservedRows(self.codes[:, some], self.reals[:, some], self.weight[some], self.row[some], self.equal)

    def merge_equal(self) -> ObservedRows:
        """Equal rows as one, with their weights together and the number of the first."""
        first, inverse = distinct([*self.codes, *self.reals], len(self.weight))
        weight = np.bincount(inverse, self.weight, len(first)).astype(np.float64)
        return replace(self.take(first), weight=weight, equal=True)


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows of a component; where it has unknown numbers, in an order in which equal configurations of its joint nodes
    follow one another: from `bounds[g]` to `bounds[g + 1]`."""

    component: Component
    rows: ObservedRows
    bounds: npt.NDArray[np.intp]
    copies: int = 1
    """So many of the rows, which follow one another, are one row, and differ in counts that it lacks."""

    def part(self, start: int, end: int) -> Batch:
        """The rows from `start` to `end`."""
        bounds = np.unique(np.clip(self.bounds, start, end)) - start
        return replace(self, rows=self.rows.take(slice(start, end)), bounds=bounds)


def batches(component: Component, rows: ObservedRows) -> Iterator[Batch]:
    """Rows in batches of bounded size."""
    size = max(1, min(ROWS, CELLS // component.n_completions))
    for start in range(0, len(rows.weight), size):
        part = rows.take(slice(start, start + size))
        if not component.unknown:
            yield Batch(component, part, np.zeros(0, np.intp))
            continue
        columns = sorted({position for local in component.joint for position, _ in local.observed})
        _, group = distinct([part.codes[c] for c in columns], len(part.weight))
        order = np.argsort(group, kind="stable")
        yield Batch(component, part.take(order), np.concatenate([[0], np.cumsum(np.bincount(group))]).astype(np.intp))


def expect_batch(batch: Batch, theta: Theta, units: Units) -> Expectation:
    """What the rows of a batch are expected to add, and their ln p(observed)."""
    columns = other_columns(batch, units)
    log_weight, joint = log_weights(batch, theta, columns)
    logs, weight = posterior(log_weight, batch.rows, batch.copies)
    return gather_completions(batch, theta, columns, joint, weight)._replace(log_likelihood=logs)


def other_columns(batch: Batch, units: Units) -> dict[str, dict[str, npt.NDArray[Any]]]:
    """The columns of nodes that are neither tables nor normal, completed."""
    component, rows = batch.component, batch.rows
    result: dict[str, dict[str, npt.NDArray[Any]]] = {}
    for local in component.others:  # once for each of its local states, one after another
        digits, own = digits_of([component.shape[a] for a in local.axes]), result.setdefault(local.node.name, {})
        for name, (kind, place) in local.sources.items():
            if kind == "state":
                own[name] = np.repeat(digits[local.axes.index(place)], len(rows.weight))
            else:
                column = rows.codes[place] if kind == "code" else units.outward(name, rows.reals[place])
                own[name] = np.tile(column, len(local.offsets))
    return result


def gather_completions(
    batch: Batch, theta: Theta, columns: Mapping[str, Any], joint: UnknownNumbers | None, weight: Array
) -> Expectation:
    """What the rows of a batch add if their completions have these weights (joint states × rows); its ln p is left at 0."""
    component, rows = batch.component, batch.rows
    total = Expectation(0.0, np.zeros(theta.tables.n_cells), {}, {})
    weight = weight.reshape(*component.shape, -1)
    for local in component.tables:
        total.cells[theta.tables.cells[local.node.name]] = count_cells(local, rows.codes, local.gather(weight))
    for pool in component.pools:
        columns_of_pool = sorted({c for local in pool for c in local.columns})
        index, values = pool[0].index(rows.codes), rows.reals[columns_of_pool]
        groups = weighted_moments(index, pool[0].gather(weight), values, pool[0].node.n_cells)
        for local in pool:
            spread = some_columns(groups.spread, [columns_of_pool.index(c) for c in local.columns])
            total.moments[local.node.name] = replace(groups, spread=spread)
    for local in component.others:
        if local.node.iterative:
            own = local.gather(weight).reshape(-1)
            total.steps[local.node.name] = expected_step(local, theta, columns[local.node.name], own)
        else:
            total.moments[local.node.name] = observed_moments(local, rows, local.gather(weight))
    if joint is not None:
        add_unknown(batch, joint, weight.reshape(component.n_states, -1), total)
    return total


def expected_step(local: Member, theta: Theta, columns: Mapping[str, npt.NDArray[Any]], weight: Array) -> Any:
    """What completed rows add to the step of a regression; those that do not occur, where it may have no mean, are left out."""
    some = weight > 0
    if not some.all():
        columns, weight = {n: column[some] for n, column in columns.items()}, weight[some]
    return local.node.family.step(theta.others[local.node.name], columns, weight)


def log_weights(batch: Batch, theta: Theta, columns: Mapping[str, Any]) -> tuple[Array, UnknownNumbers | None]:
    """ln w of each joint state and row, and what is known of unknown numbers; `columns` are those of nodes of other families."""
    component, rows = batch.component, batch.rows
    log_weight = np.zeros((*component.shape, len(rows.weight)))
    for local in component.tables:
        log_weight += local.spread(theta.log_tables[local.node.name][local.index(rows.codes)])
    for local in component.lines:
        log_weight += local.spread(_log_normal(local, rows, theta.lines[local.node.name]))
    for local in component.others:
        cpd = theta.others[local.node.name]
        log_weight += local.spread(cpd.log_prob(columns[local.node.name]).reshape(len(local.offsets), -1))
    log_weight = log_weight.reshape(component.n_states, -1)
    if not component.unknown:
        return log_weight, None
    joint = unknown_numbers(batch, theta.lines)
    log_weight += joint.log_density
    return log_weight, joint


def posterior(log_weight: Array, rows: ObservedRows, copies: int = 1) -> tuple[float, Array]:
    """ln p of all rows together, and the weights of their completions, by log-sum-exp; of `copies` of a row all together."""
    if copies > 1:
        n = log_weight.shape[1] // copies
        apart = np.moveaxis(log_weight.reshape(-1, n, copies), 2, 1)
        logs, each = posterior(apart.reshape(-1, n), rows.take(slice(None, None, copies)))
        return logs, np.ascontiguousarray(np.moveaxis(each.reshape(apart.shape), 1, 2)).reshape(log_weight.shape)
    top = log_weight.max(axis=0)
    if not (top > -np.inf).all():
        raise NoProbability(int(rows.row[~(top > -np.inf)].min()))
    weight: Array = np.exp(log_weight - top)
    sums = weight.sum(axis=0)
    logs = float(rows.weight @ (top + np.log(sums)))
    weight *= rows.weight / sums
    return logs, weight


def _log_normal(local: Member, rows: ObservedRows, line: Line) -> Array:
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


def count_cells(local: Member, codes: npt.NDArray[Any], weight: Array) -> Array:
    """The weight of each cell of a node's table."""
    index = local.index(codes)
    if index.shape[1] == 1:
        return np.bincount(index[:, 0], weight.sum(axis=1), local.node.n_cells).astype(np.float64)
    return np.bincount(index.reshape(-1), weight.reshape(-1), local.node.n_cells).astype(np.float64)


def observed_moments(local: Member, rows: ObservedRows, weight: Array) -> Groups:
    """The moments of a node whose numbers are observed, and the sums of what is derived from them."""
    node, index, own = local.node, local.index(rows.codes), rows.reals[list(local.columns)]
    groups = weighted_moments(index, weight, own, node.n_cells)
    if not node.derived:
        return groups
    at = np.searchsorted(groups.keys, np.broadcast_to(index, weight.shape).reshape(-1))
    each = [(weight * d.values(own[node.reals.index(d.column)])).reshape(-1) for d in node.derived]
    return replace(groups, sums=np.stack([np.bincount(at, own, len(groups.keys)) for own in each], axis=1))


class UnknownNumbers(NamedTuple):
    """Unknown numbers of a batch: how they hang on observed ones; by state and row ln ∫ p and mean (unknown, states, rows)."""

    given: ConditionalNormal
    indices: list[Ints]
    log_density: Array
    mean: Array


def unknown_numbers(batch: Batch, lines: Mapping[str, Line]) -> UnknownNumbers:
    component, rows, starts = batch.component, batch.rows, batch.bounds
    S, n, p = component.n_states, len(rows.weight), len(component.unknown)
    codes = rows.codes[:, starts[:-1]]
    indices = []  # the configuration of each joint node for each group of rows (first axis) and joint state
    for local in component.joint:
        index = local.index(codes)
        wide = np.broadcast_to(index.reshape(*local.shape, index.shape[1]), (*component.shape, index.shape[1]))
        indices.append(np.asarray(np.broadcast_to(wide.reshape(S, -1), (S, codes.shape[1])).T))
    given = conditional(component, lines, indices)
    log_density, mean = np.empty((S, n)), np.empty((p, S, n))
    for g, (a, b) in enumerate(pairwise(starts)):
        o = rows.reals[:, a:b]
        off = np.tensordot(given.residual_map[g], o, 1) + given.residual_constant[g][..., None]
        log_density[:, a:b] = given.log_scale[g][:, None] - 0.5 * (off * off).sum(axis=1)
        middle = np.tensordot(given.mean_map[g], o, 1) + given.mean_constant[g][..., None]
        mean[:, :, a:b] = middle.transpose(1, 0, 2)
    return UnknownNumbers(given, indices, log_density, mean)


def add_unknown(batch: Batch, joint: UnknownNumbers, weight: Array, total: Expectation) -> None:
    """Add the moments of normal nodes with unknown numbers, by the weights of states and rows."""
    component, rows = batch.component, batch.rows
    n_groups = len(batch.bounds) - 1
    group = np.repeat(np.arange(n_groups), np.diff(batch.bounds))
    in_group = np.add.reduceat(weight, batch.bounds[:-1], axis=1).T
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
        total.moments[local.node.name] = widen_groups(groups, index, in_group, unsure)
