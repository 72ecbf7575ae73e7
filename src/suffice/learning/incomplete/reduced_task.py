"""A task whose rows are reduced to what iterations need: its nodes, their tables and units, and what the prior says of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.errors import FitError, listing, note
from suffice.errors.remedies import ANY_PRIOR, NORMAL_PRIOR
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Estimate, Mode
from suffice.incomplete.components import Components, FlatTables, NodeFamily, Theta
from suffice.incomplete.numbers.units import Units
from suffice.learning.incomplete.held import HeldEntries
from suffice.learning.incomplete.task import Task
from suffice.models.parts.sharing import Tie
from suffice.statistics import Counts, Moments


def imagined_by(nodes: Mapping[str, NodeFamily], prior: Prior | None, how: Estimate) -> dict[str, Any]:
    """What the prior holds of each node; None where it says nothing, which is noted."""
    answers = {
        n: None if prior is None or node.regression else prior.imagine(node.child, node.parents) for n, node in nodes.items()
    }
    unspoken = [n for n, answer in answers.items() if answer is None]
    if prior is not None and unspoken:
        note(f"the prior says nothing about {listing(unspoken)}: fitted by maximum likelihood")
    beliefs = beliefs_of_tables(nodes, answers)
    if beliefs and how != Mode():
        note(
            f"with missing cells the tables of {listing(beliefs)} are modes of the effects of LogisticNormal, to which EM can "
            "climb, and no posterior means"
        )
    return answers


def beliefs_of_tables(nodes: Mapping[str, NodeFamily], said: Mapping[str, Any]) -> dict[str, Any]:
    """What the prior holds of tables of which it imagines no counts."""
    tables = {n: s for n, s in said.items() if s is not None and nodes[n].by_table}
    return {n: s for n, s in tables.items() if not isinstance(s, Counts)}


def refuse_beliefs(said: Mapping[str, Any]) -> None:
    """Refuse priors that imagine no rows, where the M-step needs them."""
    for name, answer in said.items():
        if answer is not None and not isinstance(answer, (Counts, Moments)):
            raise FitError(
                f"the prior of {name!r} imagines no rows, which stationary first slices and hidden numbers need: give it "
                f"{ANY_PRIOR}"
            )


def with_known(nodes: Mapping[str, NodeFamily], said: Mapping[str, Any], theta: Theta) -> Theta:
    """The parameters with the variances that a prior knows."""
    normal = {n: s for n, s in said.items() if s is not None and nodes[n].normal and not isinstance(s, Moments)}
    others: dict[str, Any] = dict(theta.others)
    for name, belief in normal.items():
        others[name] = replace(others[name], variance=np.full_like(others[name].variance, belief.variance))
    return replace(theta, others=others) if normal else theta


def refuse_constants(
    nodes: Mapping[str, NodeFamily], units: Units, spread: Any, imagined: Mapping[str, Any], ties: Iterable[Tie]
) -> None:
    """A column of equal numbers has no density, unless a prior gives it one, or a column that shares it."""
    tied = {node for tie in ties if any(units.variance.get(n, 0.0) > 0 for n in tie.nodes) for node in tie.nodes}
    for i, name in enumerate(units.centre):
        if name in tied or name not in nodes:
            continue
        square = float(spread.scatter[i, 0, 0]) / max(float(spread.weight[i]), 1e-300)
        same = square <= (1e-14 * float(spread.mean[i, 0])) ** 2
        if same and nodes[name].normal and imagined[name] is None:
            raise FitError(
                f"all values of {name!r} are the same, and a constant has no density: leave the column out, or use a prior "
                f"such as {NORMAL_PRIOR}"
            )


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
