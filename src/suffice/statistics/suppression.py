"""Suppression: small cells that a site did not give away, and what its tables lost by that, as bounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array
from suffice.errors import StatisticsError, whole
from suffice.statistics.counts import Counts, n_configurations
from suffice.statistics.moments import Moments

Scope = tuple[frozenset[str], frozenset[str]]
Entry = Counts | Moments


class Lost(NamedTuple):
    """What a table lost: at least and at most so many of its cells, and so much weight."""

    least_cells: int
    most_cells: int
    least_weight: float
    most_weight: float

    @staticmethod
    def of(cells: int, min_count: int, *, whole: bool) -> Lost:
        """So many cells of one site: whole counts there were 1 to one less than the threshold."""
        return Lost(cells, cells, float(cells * whole), float(cells * (min_count - whole)))

    @staticmethod
    def read(row: Sequence[Any]) -> Lost:
        """Bounds as a file has them, which must be possible."""
        lost = Lost(whole(row[0], "lost cells", 0), whole(row[1], "lost cells", 0), *map(float, row[2:]))
        if not (lost.least_cells <= lost.most_cells and 0.0 <= lost.least_weight <= lost.most_weight < np.inf):
            raise StatisticsError(f"the bounds of what a table lost are impossible: {list(row)}")
        return lost

    def plus(self, other: Lost, cells: int) -> Lost:
        """What the sum of two tables of so many cells lost: where both lost a cell, it may be the same one."""
        least, most = max(self.least_cells, other.least_cells), min(self.most_cells + other.most_cells, cells)
        return Lost(least, most, self.least_weight + other.least_weight, self.most_weight + other.most_weight)

    def weighing(self, share: float) -> Lost:
        """The same of rows that weigh only so much each."""
        return self._replace(least_weight=share * self.least_weight, most_weight=share * self.most_weight)

    def within(self, cells: int) -> Lost:
        """The same of a marginal with so many cells, some of which lost a part of their count."""
        return self._replace(least_cells=min(1, self.least_cells), most_cells=min(self.most_cells, cells))


@dataclass(frozen=True)
class Suppression:
    """Cells of less than `min_count` rows were set to 0 by whoever gathered; `lost` says of each table how many."""

    min_count: int
    lost: Mapping[Scope, Lost]

    def of(self, entry: Entry) -> Lost:
        """What a table lost."""
        return self.lost.get(entry.request.scope, NOTHING)

    def plus(self, other: Suppression, entries: Iterable[Entry]) -> Suppression:
        """That of a sum, whose tables these are."""
        lost = {e.request.scope: self.of(e).plus(other.of(e), n_configurations(e.variables)) for e in entries}
        return replace(self, lost=lost)

    def weighing(self, share: float) -> Suppression:
        """The same of rows that weigh only so much each."""
        return replace(self, lost={scope: lost.weighing(share) for scope, lost in self.lost.items()})

    def to_dict(self, entries: Iterable[Entry]) -> dict[str, Any]:
        """For a file that has the entries in this order."""
        return {"min_count": self.min_count, "lost": [list(self.of(e)) for e in entries]}

    @staticmethod
    def from_dict(d: Mapping[str, Any], entries: Iterable[Entry]) -> Suppression | None:
        """What `to_dict` wrote; None of what says nothing of it."""
        if "min_count" not in d:
            return None
        lost = {e.request.scope: Lost.read(row) for e, row in zip(entries, d["lost"], strict=True)}
        return Suppression(whole(d["min_count"], "min_count", 2), lost)

    def in_words(self) -> str:
        """The whole of it, as a sentence."""
        worst = max(self.lost.values(), key=lambda lost: lost.most_weight, default=NOTHING)
        said = f"cells of less than {self.min_count} rows were left out, and "
        if not worst.most_cells:
            return f"{said}no table lost any"
        n = sum(lost.most_cells > 0 for lost in self.lost.values())
        return f"{said}{n:,} of {len(self.lost):,} tables lost some, one at most {worst.most_weight:,.10g} rows"


NOTHING = Lost(0, 0, 0.0, 0.0)


def agreed_suppression(here: Suppression | None, there: Suppression | None, sides: tuple[str, str]) -> None:
    """Refuse to add statistics that were gathered with other thresholds."""
    mine, yours = (f"cells of less than {s.min_count} rows" if s else "no cells" for s in (here, there))
    if mine != yours:
        raise StatisticsError(f"{sides[0]} left out {mine}, and {sides[1]} left out {yours}: all sites need the same threshold")


def without_small(entry: Entry, min_count: int) -> tuple[Entry, Lost]:
    """A table whose small cells are 0, or moments without the configurations of few rows; and what that lost."""
    weight: Array = entry.values if isinstance(entry, Counts) else entry.count
    small = (weight > 0) & (weight < min_count)
    lost = Lost.of(int(small.sum()), min_count, whole=bool((weight == np.floor(weight)).all()))
    if isinstance(entry, Moments):
        kept = entry.at(entry.keys[~small])
        return replace(kept, background=entry.background), lost
    if entry.keys is None:
        return replace(entry, values=np.where(small, 0.0, weight)), lost
    return replace(entry, values=weight[~small], keys=entry.keys[~small]), lost
