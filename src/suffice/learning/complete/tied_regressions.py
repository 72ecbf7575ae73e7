"""Regressions of complete rows, or of statistics of them: each by itself, those that nodes share from the rows of all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from suffice.engines.data import Data
from suffice.families.protocol.family import Cpd
from suffice.families.regressions.fitted import needs_rows
from suffice.learning.complete.irls import fit_regression, maximise
from suffice.models.parts.sharing import Tie
from suffice.models.parts.stacked_rows import Nodes, StackedRows, from_pooled, with_shares
from suffice.statistics import Request, Statistics
from suffice.variables import Finite


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
    stacked = StackedRows.of(rows, tie)
    stacked.rows.require_complete(stacked.rows.columns)
    if all(isinstance(v, Finite) for v in (child, *parents)):
        sets = [(*own[1:], own[0]) for own in tie.families]
        return from_tables(tie, nodes, family, rows.gather([Request(s) for s in sets]))
    cpd = maximise(child, parents, stacked, family)
    own = {n: cpd.rename(*nodes[n]) for n in tie.nodes}
    return with_shares(own, stacked.log_likelihoods(own))


def from_tables(tie: Tie, nodes: Nodes, family: Any, seen: Statistics) -> dict[str, Cpd]:
    """The same from statistics, which say all of a linear regression, and where the child and its parents are finite."""
    child, parents = nodes[tie.nodes[0]]
    if not family.normal and not all(isinstance(v, Finite) for v in (child, *parents)):
        raise needs_rows(child)
    return from_pooled(tie, nodes, family, seen, lambda rows: maximise(child, parents, rows, family))
