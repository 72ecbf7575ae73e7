"""A task whose rows are reduced to what iterations need: its nodes, their tables and units, and what the prior says of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from suffice.incomplete.components import Array, Components, FlatTables, NodeFamily, Theta
from suffice.incomplete.numbers.units import Units
from suffice.learning.incomplete.held import HeldEntries
from suffice.learning.incomplete.said import beliefs_of_tables
from suffice.learning.incomplete.task import Task


@dataclass(frozen=True, eq=False)
class ReducedTask(Task):
    """What starts, and conventions of hidden numbers, are made of. `ParameterProblem` iterates over it."""

    nodes: Mapping[str, NodeFamily] = field(kw_only=True)
    tables: FlatTables = field(kw_only=True)
    units: Units = field(kw_only=True)
    components: Components = field(kw_only=True)
    said: Mapping[str, Any] = field(kw_only=True)
    """What the prior imagines of each node; None where it says nothing."""
    shown: Units = field(kw_only=True)
    """The units in which distributions and statistics are shown: those of the columns, unless they stay scaled."""
    fixed: tuple[str, ...] = ()
    start: Theta | None = None
    """Where fixed nodes have their parameters from."""
    entries: Mapping[str, HeldEntries] = field(default_factory=dict)
    """Nodes of which only some entries are fixed."""

    @cached_property
    def hidden_names(self) -> frozenset[str]:
        """The names of all that no row shows."""
        return frozenset(self.hidden)

    def base(self, name: str) -> str:
        """The variable behind a name: the same for all lags."""
        return name

    @cached_property
    def others(self) -> list[NodeFamily]:
        """The nodes that are no tables."""
        return [node for node in self.nodes.values() if not node.by_table]

    @cached_property
    def alpha(self) -> Array:
        """What the prior imagines of the cells of all tables."""
        return self._imagined_cells(0.0)

    def _imagined_cells(self, less: float) -> Array:
        result = np.zeros(self.tables.n_cells)
        for name, imagined in self.said.items():
            if imagined is not None and self.nodes[name].by_table and name not in self._beliefs:
                result[self.tables.cells(name)] = imagined.dense().reshape(-1) - less
        return result

    @cached_property
    def _beliefs(self) -> dict[str, Any]:
        """What the prior holds of tables of which it imagines no counts; their estimates are modes."""
        return beliefs_of_tables(self.nodes, self.said)

    def offset_slopes(self, node: NodeFamily) -> dict[int, float]:
        """The slope of the offset of a linear regression, by its place: 1, but that the columns are scaled."""
        y = self.units.scale[node.name]
        return {j: self.units.scale[r] / y for j, r in enumerate(node.reals[:-1]) if r == node.family.offset}
