"""What rows with missing cells are reduced to, once: it adds, so that a fold over batches of rows collects it.

Complete families are counted and done with. Components without finite unknowns become moments, those without observed numbers
become distinct rows with weights. Only rows with both, a hidden class of measured things, are needed in every iteration: they
are kept where they fit into `HELD` bytes, and read again otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.engine import Block as Batch
from suffice.learning.completion import Rows, counted, numbers
from suffice.learning.normal_parts import Cases
from suffice.learning.patterns import Array, Component, Key, Kind, Node, Patterns, distinct
from suffice.learning.units import Units
from suffice.learning.weighted import Groups, weighted_moments

HELD = 2**29
"""Bytes of rows that are kept for the iterations."""


@dataclass
class Gathered:
    """Counts and moments of complete families, rows and moments of components; `empty` is the number of rows without a cell."""

    tables: dict[str, Array] = field(default_factory=dict)
    moments: dict[str, Groups] = field(default_factory=dict)
    rows: dict[Key, Rows] = field(default_factory=dict)
    cases: dict[Key, Cases] = field(default_factory=dict)
    mergeable: frozenset[Key] = frozenset()
    empty: int = 0

    def __add__(self, other: Gathered) -> Gathered:
        mergeable = self.mergeable | other.mergeable
        return Gathered(
            _joined(self.tables, other.tables, np.add),
            _joined(self.moments, other.moments, Groups.plus),
            {k: r.merged() if k in mergeable else r for k, r in _joined(self.rows, other.rows, Rows.plus).items()},
            _joined(self.cases, other.cases, Cases.plus),
            mergeable,
            self.empty + other.empty,
        )


def _joined(a: dict[Any, Any], b: dict[Any, Any], add: Any) -> dict[Any, Any]:
    return {**a, **{k: add(a[k], part) if k in a else part for k, part in b.items()}}


@dataclass(frozen=True, eq=False)
class Collector:
    """Reduces batches of rows. With `hold` the rows that iterations need are kept, too."""

    patterns: Patterns
    units: Units
    hold: bool

    def gathered(self, batch: Batch) -> Gathered:
        missing = self.patterns.missing(batch)
        result = Gathered(empty=int(missing.all(axis=0).sum()))
        for node in self.patterns.nodes.values():
            self._complete(node, batch, missing, result)
        mergeable = set()
        for key, component, rows in self._components(batch, missing):
            if component.by_moments:
                result.cases[key] = _cases(rows)
            elif component.mergeable:
                mergeable.add(key)
                result.rows[key] = rows.merged()
            elif self.hold:
                result.rows[key] = rows
        result.mergeable = frozenset(mergeable)
        return result

    def needed(self, batch: Batch) -> Iterator[tuple[Component, Rows]]:
        """The rows of a batch that are needed in every iteration."""
        for _, component, rows in self._components(batch, self.patterns.missing(batch)):
            if not component.by_moments and not component.mergeable:
                yield component, rows

    def _components(self, batch: Batch, missing: npt.NDArray[np.bool_]) -> Iterator[tuple[Key, Component, Rows]]:
        for key, some in self.patterns.split(missing).items():
            component = self.patterns.component(key)
            if not component.trivial:
                yield key, component, self._rows(component, batch, some)
        for node in self.patterns.nodes.values():
            if node.kind is Kind.OTHER and (seen := self._seen(node, missing)) is not None:
                component = self.patterns.component(node.name)
                yield node.name, component, self._rows(component, batch, seen)

    def _complete(self, node: Node, batch: Batch, missing: npt.NDArray[np.bool_], result: Gathered) -> None:
        """Count the rows that have every cell of a node's family. Other kinds of nodes need them again; this is for a start."""
        some = None if node.iterative else self._seen(node, missing)
        if some is None:
            return
        component = self.patterns.component(node.name)
        [local] = (*component.tables, *component.lines, *component.others)
        rows = self._rows(component, batch, some)
        if node.reals:
            index = local.index(rows.codes)
            result.moments[node.name] = weighted_moments(index, rows.weight[None], numbers(local, rows.reals), node.n_cells)
        else:
            result.tables[node.name] = counted(local, rows.codes, rows.weight[None])

    def _seen(self, node: Node, missing: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp] | None:
        """The rows that have every cell of a node's family; None if there are none."""
        names = [v.name for v in node.members]
        if any(n in self.patterns.hidden for n in names):
            return None
        some = np.flatnonzero(~missing[[self.patterns.columns.index(n) for n in names]].any(axis=0))
        return some if len(some) else None

    def _rows(self, component: Component, batch: Batch, some: npt.NDArray[np.intp]) -> Rows:
        if batch.weight is not None:
            some = some[batch.weight[some] > 0]
        codes = np.array([batch.columns[n][some] for n in component.codes], np.int32).reshape(len(component.codes), len(some))
        reals = np.array([self.units.inward(n, batch.columns[n][some]) for n in component.reals], np.float64)
        weight = np.ones(len(some)) if batch.weight is None else np.array(batch.weight[some])
        return Rows(codes, reals.reshape(len(component.reals), len(some)), weight, some.astype(np.int64) + batch.start)


def _cases(rows: Rows) -> Cases:
    first, inverse = distinct(rows.codes, len(rows.weight))
    groups = weighted_moments(inverse[None].astype(np.int64), rows.weight[None], rows.reals, len(first))
    return Cases(rows.codes[:, first], groups.spread)
