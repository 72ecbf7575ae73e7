"""Rows of a finished network of which exact inference has no formula: numbers under regressions, counts that have children.

They are completed as in EM: states are enumerated, numbers put on points, counts summed. What a row says of a target is in the
one component of missing cells that has the target.

    ln p(row)          Σ ln p of its components and of its complete families
    p(target | row)    of states their shares; of a number its mean and variance over the points
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from suffice.basis.arrays import Array
from suffice.engines.engine import Block
from suffice.families.protocol.family import Cpd, flat_index
from suffice.graphs import Dag
from suffice.incomplete.components import FlatTables, NodeFamily, Theta, nodes_of
from suffice.incomplete.numbers.completed_rows import Batch, batches
from suffice.incomplete.numbers.integrated_rows import log_weights_of_states, weighted_points
from suffice.incomplete.numbers.mixed import ReduceMixed
from suffice.incomplete.numbers.patterns import PatternFinder
from suffice.incomplete.numbers.units import Units, block_cells
from suffice.variables import Finite, Variable


@dataclass(frozen=True, eq=False)
class RowIntegrals:
    """A block of rows, with a column for each node, under the distributions of a network.

    >>> from suffice import Gaussian, Logistic, Real
    >>> from suffice.results import RegressionCpd
    >>> x, y = Real("x"), Finite("y", ["no", "yes"])
    >>> cpds = {"x": Gaussian().bound(x, []), "y": RegressionCpd(y, (x,), Logistic(), [0.0], [[1.0]])}
    >>> rows = Block({"x": np.array([np.nan, np.nan]), "y": np.array([1, 255], np.uint8)})
    >>> here = RowIntegrals.of(cpds, {"x": x, "y": y}, rows)
    >>> np.exp(here.log_probs()).round(9), here.posterior("x").round(6)[0]
    (array([0.5, 1. ]), array([0.413242, 0.829231]))
    """

    nodes: Mapping[str, NodeFamily]
    theta: Theta
    units: Units
    block: Block

    @classmethod
    def of(cls, cpds: Mapping[str, Cpd], variables: Mapping[str, Variable], block: Block) -> RowIntegrals:
        regressions = {n: cpds[n].family for n in variables if cpds[n].is_regression}
        nodes = nodes_of(Dag({n: cpds[n].parents for n in variables}), variables, regressions)
        finite = [v for v in variables.values() if isinstance(v, Finite)]
        tables = FlatTables.of(finite, [node.finite for node in nodes.values() if node.by_table])
        units = Units.of(block_cells(block, tuple(n for n, v in variables.items() if not isinstance(v, Finite))), variables)
        theta = Theta.of(nodes, tables, cpds, lambda node, cpd: units.inward_cpd(cpd) if node.normal else cpd)
        return cls(nodes, theta, units, block)

    def log_probs(self) -> Array:
        """ln p(observed cells) of each row; −inf where it is impossible."""
        block, step = self.block, self._step(())
        missing, total = step.finder.missing(block), np.zeros(block.n_rows)
        scaled = {n: self.units.inward(n, block.columns[n]) for n in self.units.scale}
        columns = {**block.columns, **scaled}
        for node in self.nodes.values():
            some = None if node.by_rows else step.finder.complete_rows(node, missing)
            if some is not None and node.by_table:
                cells = flat_index({v.name: columns[v.name][some] for v in node.finite}, node.finite, len(some))
                total[some] += self.theta.log_tables[node.name][cells]
            elif some is not None:
                total[some] += self.theta.others[node.name].log_prob({v.name: columns[v.name][some] for v in node.members})
            if node.normal:
                total -= np.where(np.isnan(block.columns[node.name]), 0.0, np.log(self.units.scale[node.name]))
        for _, component, rows in step.components(block, missing):
            for batch in batches(component, rows):
                total[batch.rows.row] += np.logaddexp.reduce(self._logs(batch), axis=0)
        return total

    def posterior(self, target: str) -> Array:
        """The probabilities of the states of a target that no row shows, or its mean and variance; NaN where a row is
        impossible."""
        child = self.nodes[target].child
        result = np.full((self.block.n_rows, child.n_states if isinstance(child, Finite) else 2), np.nan)
        possible = np.flatnonzero(self.log_probs() > -np.inf)
        some = Block({n: c[possible] for n, c in self.block.columns.items()})
        step = self._step(() if isinstance(child, Finite) else (target,))
        for key, component, rows in step.components(some, step.finder.missing(some)):
            if isinstance(key, str) or target not in key:
                continue
            for batch in batches(component, rows):
                if isinstance(child, Finite):
                    logs, at = self._logs(batch), [v.name for v in component.states].index(target)
                    share = np.exp(logs - logs.max(axis=0)).reshape(*component.shape, -1)
                    own = share.sum(axis=tuple(a for a in range(len(component.shape)) if a != at))
                    result[possible[batch.rows.row]] = (own / own.sum(axis=0)).T
                    continue
                points, place = weighted_points(batch, self.theta, self.units, 0.0), component.completed.index(target)
                row, values, share = (np.concatenate(part, axis=-1) for part in zip(*points, strict=True))
                value, n = self.units.outward(target, values[place]), int(batch.rows.row.max()) + 1
                mean = np.bincount(row, share * value, n)
                variance = np.bincount(row, share * (value - mean[row]) ** 2, n)
                result[possible[batch.rows.row]] = np.stack([mean, variance], axis=1)[batch.rows.row]
        return result

    def _step(self, integrated: Iterable[str]) -> ReduceMixed:
        finder = PatternFinder(self.nodes, tuple(self.nodes), integrated=integrated)
        return ReduceMixed(finder, self.theta.tables, self.units, True)

    def _logs(self, batch: Batch) -> Array:
        logs = log_weights_of_states(batch, self.theta, self.units)
        return np.where(np.isnan(logs), -np.inf, logs)
