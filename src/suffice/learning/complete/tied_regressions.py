"""Regressions that several nodes share: one set of coefficients, fitted to the rows of all of them, one below the other.

A pass over the rows sees each block once for each node, under the names of the first: its sums add, as those of blocks do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, add_up
from suffice.families.protocol.family import Array, Columns, Cpd
from suffice.families.regressions.fitted import needs_rows
from suffice.families.regressions.linear_moments import fitted_line
from suffice.learning.complete.irls import DistinctRows, Pass, fit_regression, maximise
from suffice.models.parts.sharing import Tie
from suffice.statistics import Counts, Request, Statistics
from suffice.variables import Finite, Variable

Nodes = Mapping[str, tuple[Variable, Sequence[Variable]]]
"""Nodes with their parents."""


@dataclass(frozen=True, eq=False)
class OverNodes(Step[Any]):
    """A step over the rows of each node of a tie, under the names of the first."""

    step: Step[Any]
    families: tuple[tuple[str, ...], ...]

    def of(self, block: Block) -> Any:
        return reduce(add_up, (self.step.of(self._renamed(block, family)) for family in self.families))

    def _renamed(self, block: Block, family: tuple[str, ...]) -> Block:
        columns = {first: block.columns[name] for first, name in zip(self.families[0], family, strict=True)}
        return Block(columns, block.weight, block.number)


@dataclass(frozen=True, eq=False)
class StackedRows:
    """The rows of all nodes of a tie, one below the other: all that IRLS asks of rows."""

    rows: Data
    tie: Tie

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows * len(self.tie.nodes)

    def fold(self, step: Step[Any], *, threads: int | None = None, what: str | None = None) -> Any:
        return self.rows.fold(OverNodes(step, self.tie.families), threads=threads, what=what)

    def stretches(self, n: int) -> Any:
        return self.rows.stretches(max(1, n // len(self.tie.nodes)))

    def of_rows(self, some: Any) -> StackedRows:
        return replace(self, rows=self.rows.of_rows(some))


def fitted_regressions(nodes: Nodes, families: Mapping[str, Any], rows: Data, ties: Sequence[Tie] = ()) -> dict[str, Cpd]:
    """The regressions of complete rows: each by itself, those of a tie together."""
    tied = {node: tie for tie in ties for node in tie.nodes if node in families}
    found: dict[str, Cpd] = {n: fit_regression(*nodes[n], rows, family) for n, family in families.items() if n not in tied}
    for tie in dict.fromkeys(tied.values()):
        found |= _fit_tie(tie, nodes, families[tie.nodes[0]], rows)
    return found


def _fit_tie(tie: Tie, nodes: Nodes, family: Any, rows: Data) -> dict[str, Cpd]:
    child, parents = nodes[tie.nodes[0]]
    family.check(child, parents)
    names = list(dict.fromkeys(n for own in tie.families for n in own))
    rows.require_complete(names)
    if all(isinstance(v, Finite) for v in (child, *parents)):
        sets = [(*own[1:], own[0]) for own in tie.families]
        return from_tables(tie, nodes, family, rows.gather([Request(s) for s in sets]))
    stacked = StackedRows(rows.take(names), tie)
    cpd = maximise(child, parents, stacked, family)
    own = {n: cpd.renamed(*nodes[n]) for n in tie.nodes}
    return {n: _with_share(each, float(stacked.rows.fold(Pass(log_likelihood, (each,))))) for n, each in own.items()}


def from_tables(tie: Tie, nodes: Nodes, family: Any, seen: Statistics) -> dict[str, Cpd]:
    """The same from contingency tables, which say all where the child and its parents are finite."""
    child, parents = nodes[tie.nodes[0]]
    if family.normal and len(tie.nodes) == 1:
        return {child.name: fitted_line(family, child, parents, seen.answer(family.needs(child, parents)))}
    if not all(isinstance(v, Finite) for v in (child, *parents)):
        raise needs_rows(child)
    counts = {own[0]: seen.counts([*own[1:], own[0]]) for own in tie.families}
    together: Counts = reduce(add, [tie.renamed(c, n, tie.nodes[0]) for n, c in counts.items()])
    cpd = maximise(child, parents, DistinctRows(together), family)
    own = {n: cpd.renamed(*nodes[n]) for n in tie.nodes}
    return {n: _with_share(each, DistinctRows(counts[n]).fold(Pass(log_likelihood, (each,)))) for n, each in own.items()}


def log_likelihood(cpd: Any, columns: Columns, weight: Array | None) -> float:
    """Σ w ln p of some rows."""
    logs = cpd.log_prob(columns)
    return float(logs.sum() if weight is None else np.sum(weight * logs))


def _with_share(cpd: Any, log_likelihood: float) -> Cpd:
    """The regression of one node, with the log-likelihood of its own rows; the rest of the fit is that of all."""
    own: Cpd = replace(cpd, fitted=replace(cpd.fitted, log_likelihood=log_likelihood))
    return own
