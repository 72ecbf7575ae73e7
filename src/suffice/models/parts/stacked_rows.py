"""Regressions that several nodes share: one set of coefficients, of the rows of all of them, one below the other.

A pass over the rows sees each block once for each node, under the names of the first: its sums add, as those of blocks do. So do
counts and moments, where they say all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any

import numpy as np

from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, add_up
from suffice.families.design import DistinctRows, Pass
from suffice.families.protocol.family import Array, Columns, Cpd
from suffice.families.regressions.linear_moments import fitted_line
from suffice.models.parts.sharing import Tie
from suffice.statistics import Statistics
from suffice.variables import Variable

Nodes = Mapping[str, tuple[Variable, Sequence[Variable]]]
"""Nodes with their parents."""


@dataclass(frozen=True, eq=False)
class OverNodes(Step[Any]):
    """A step over the rows of each node of a tie, under the names of the first."""

    step: Step[Any]
    families: tuple[tuple[str, ...], ...]

    def of(self, block: Block) -> Any:
        return reduce(add_up, (self.step.of(self._rename(block, family)) for family in self.families))

    def _rename(self, block: Block, family: tuple[str, ...]) -> Block:
        columns = {first: block.columns[name] for first, name in zip(self.families[0], family, strict=True)}
        return Block(columns, block.weight, block.number)


@dataclass(frozen=True, eq=False)
class StackedRows:
    """The rows of all nodes of a tie, one below the other: all that a regression asks of rows."""

    rows: Data
    tie: Tie

    @classmethod
    def of(cls, rows: Data, tie: Tie) -> StackedRows:
        """Those of rows with more columns."""
        return cls(rows.take(list(dict.fromkeys(n for own in tie.families for n in own))), tie)

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows * len(self.tie.nodes)

    def fold(self, step: Step[Any], *, threads: int | None = None, what: str | None = None) -> Any:
        return self.rows.fold(OverNodes(step, self.tie.families), threads=threads, what=what)

    def stretches(self, n: int) -> Any:
        return self.rows.stretches(max(1, n // len(self.tie.nodes)))

    def of_rows(self, some: Any) -> StackedRows:
        return replace(self, rows=self.rows.of_rows(some))

    def log_likelihoods(self, cpds: Mapping[str, Cpd]) -> dict[str, float]:
        """Σ w ln p of the rows of each node."""
        return {n: float(self.rows.fold(Pass(log_likelihood, (cpd,)))) for n, cpd in cpds.items()}


def log_likelihood(cpd: Any, columns: Columns, weight: Array | None) -> float:
    """Σ w ln p of some rows."""
    logs = cpd.log_prob(columns)
    return float(logs.sum() if weight is None else np.sum(weight * logs))


def from_pooled(tie: Tie, nodes: Nodes, family: Any, seen: Statistics, ascend: Callable[[Any], Any]) -> dict[str, Cpd]:
    """The regression that the nodes of a tie share, from statistics that say all: moments of a linear one, else the contingency
    tables of finite variables, of whose rows `ascend` makes the estimate.

    >>> from suffice import Finite, Real, gather
    >>> from suffice.regressions import Linear
    >>> seen = gather({"x": [0.0, 1.0], "y": [1.0, 3.0], "u": [2.0, 1.0], "v": [5.0, 4.0]}, "x -> y; u -> v")
    >>> nodes = {"y": (Real("y"), [Real("x")]), "v": (Real("v"), [Real("u")])}
    >>> from_pooled(Tie((("y", "x"), ("v", "u"))), nodes, Linear(), seen, None)["v"].coefficients.round(3)
    array([2.])
    """
    first = tie.nodes[0]
    own: dict[str, Any] = {n: seen.answer(family.needs(*nodes[n])) for n in tie.nodes}
    together: Any = reduce(add, [tie.rename(s, n, first) for n, s in own.items()])
    cpd = fitted_line(family, *nodes[first], together) if family.normal else ascend(DistinctRows(together))
    each = {n: cpd.rename(*nodes[n]) for n in tie.nodes}
    if family.normal:
        return with_shares(each, {n: c.closed_form().log_likelihood(own[n]) for n, c in each.items()})
    return with_shares(each, {n: DistinctRows(own[n]).fold(Pass(log_likelihood, (c,))) for n, c in each.items()})


def with_shares(cpds: Mapping[str, Any], log_likelihoods: Mapping[str, float]) -> dict[str, Cpd]:
    """The regression of each node, with the log-likelihood of its own rows; the rest of the fit is that of all."""
    return {n: replace(c, fitted=replace(c.fitted, log_likelihood=log_likelihoods[n])) for n, c in cpds.items()}
