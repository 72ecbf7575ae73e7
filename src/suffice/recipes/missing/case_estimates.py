"""What the columns look like by complete rows alone, by all cells that are there, and by EM, side by side.

Complete cases are right if cells are missing completely at random, available cases of a column if its own are, and EM if whether
a cell is missing depends on what its row shows and the graph has it. Where they differ, the first two are doubtful.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, is_missing
from suffice.errors import DataError, SufficeNote, listing
from suffice.families.protocol.family import frame
from suffice.graphs import Dag
from suffice.incomplete.numbers.units import observed_cells
from suffice.learning.em import em
from suffice.output.display import OneTable
from suffice.recipes.missing.missing_cells import Columns, MissingSummary
from suffice.variables import Finite


class CaseEstimate(NamedTuple):
    """A share of a state, or a mean or standard deviation of numbers, estimated in three ways; NaN where no row is complete."""

    column: str
    what: str
    complete: float
    available: float
    em: float


@dataclass(frozen=True, eq=False, repr=False)
class CaseEstimates(OneTable):
    """The result of `missingness(..., compare=True)`: all estimates, and the graph along which EM filled the gaps.

    >>> from suffice import missingness
    >>> rows = {"a": ["x"] * 6 + ["y"] * 6, "b": ["u"] * 4 + [None] * 2 + ["u"] + ["v"] * 3 + [None] * 2}
    >>> found = missingness(rows, compare="a -> b").compared.rows[2]
    >>> found.column, found.what, found.complete, found.available, round(found.em, 4)
    ('b', 'u', 0.625, 0.625, 0.625)
    """

    dag: Dag
    rows: tuple[CaseEstimate, ...]

    def to_frame(self) -> Any:
        """One row per estimate."""
        return frame({name: [getattr(row, name) for row in self.rows] for name in CaseEstimate._fields})

    def to_dict(self) -> dict[str, Any]:
        """The same for JSON, None for NaN."""
        rows = [{k: None if x != x else x for k, x in row._asdict().items()} for row in self.rows]
        return {"graph": str(self.dag), "estimates": rows}

    def _table(self) -> tuple[list[str], list[list[object]]]:
        header = ["column", "what", "complete cases", "available cases", "EM"]
        return header, [list(row) for row in self.rows]


@dataclass(frozen=True, eq=False)
class CompleteCases(Step[dict[str, Any]]):
    """Of the rows without a missing cell: counts of states, and Σ w, Σ w d and Σ w d² of numbers, d from a centre."""

    sizes: Mapping[str, int]
    centres: Mapping[str, float]

    def of(self, block: Block) -> dict[str, Any]:
        whole = np.flatnonzero(~np.any([is_missing(cells) for cells in block.columns.values()], axis=0))
        weight, result = block.weights[whole], {}
        for name, cells in block.columns.items():
            if name in self.sizes:
                result[name] = np.bincount(cells[whole], weight, self.sizes[name])
            else:
                d = cells[whole] - self.centres[name]
                result[name] = np.array([weight.sum(), (weight * d).sum(), (weight * d * d).sum()])
        return result


def case_estimates(rows: Data, columns: Columns, found: MissingSummary, compare: Any) -> CaseEstimates:
    """The estimates of each column that is compared; `compare` is the graph for EM, or True to find one by structural EM."""
    told = [n for n in rows.columns if (n in columns.finite or n in columns.reals) and n not in rows.identifiers]
    if not told:
        raise DataError("there are no columns whose estimates could be compared")
    model = _model(rows.take(told), compare)
    some = rows.take([n for n in told if n in model])
    schema = some.schema
    available = {n: _moments(some, n) for n, v in schema.items() if not isinstance(v, Finite)}
    sizes = {n: v.n_states for n, v in schema.items() if isinstance(v, Finite)}
    complete = some.fold(CompleteCases(sizes, {n: mean for n, (mean, _) in available.items()}))
    result: list[CaseEstimate] = []
    for name, variable in schema.items():
        answer: Any = model.query(name)
        if isinstance(variable, Finite):
            parts = (_shares(complete[name]), _shares(found.tables[name][0]), answer.probs)
            result += [CaseEstimate(name, s, *(float(p[i]) for p in parts)) for i, s in enumerate(variable.states)]
        else:
            each = (_around(complete[name], available[name][0]), available[name], (float(answer.mean), float(answer.sd)))
            result += [CaseEstimate(name, what, *(m[i] for m in each)) for i, what in enumerate(("mean", "sd"))]
    return CaseEstimates(model.dag, tuple(result))


def _around(sums: Any, centre: float) -> tuple[float, float]:
    """Mean and standard deviation from sums around a centre."""
    weight, first, second = sums.tolist()
    if not weight > 0:
        return np.nan, np.nan
    off = first / weight
    return centre + off, float(np.sqrt(max(second / weight - off * off, 0.0)))


def _model(data: Data, compare: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        if compare is True:
            from suffice.recipes.structural.structural_em import structural_em

            return structural_em(data).model
        graph = Dag(compare)
        if unknown := [n for n in graph.nodes if n not in data.columns]:
            raise DataError(f"the graph to compare by names {listing(unknown)}, no column that can be compared")
        return em(graph, data, information=False).model


def _shares(counts: Any) -> Any:
    total = counts.sum()
    return counts / total if total > 0 else np.full(len(counts), np.nan)


def _moments(rows: Data, name: str) -> tuple[float, float]:
    """Mean and standard deviation of the cells that are there."""
    spread = observed_cells(rows.take([name]), (name,))
    weight = float(spread.weight[0])
    return float(spread.mean[0, 0] + spread.rest[0, 0]), float(np.sqrt(spread.scatter[0, 0, 0] / weight)) if weight else np.nan
