"""Components of finite networks: distinct records by shape, solved by trees of buckets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from suffice.engines.data import Data
from suffice.errors import FitError, listed
from suffice.incomplete.buckets import Buckets, ImpossibleRecord
from suffice.incomplete.components import Expectation, Shown, Theta
from suffice.incomplete.reduction import Reduce, Reduction
from suffice.incomplete.tables import FlatTables, log_likelihood

START = "; give another start, or one without zeros"


@dataclass(frozen=True, eq=False)
class FiniteComponents:
    """The components of a reduction; see `suffice.incomplete.components`."""

    reduction: Reduction
    threads: int | None = None

    @classmethod
    def of(cls, rows: Data, tables: FlatTables, threads: int | None) -> FiniteComponents:
        """The rows, passed over once."""
        step = Reduce(tables, not rows.weighted or rows.whole_weights)
        return cls(rows.fold(step, threads=threads, what="reducing rows").reduction(), threads)

    @cached_property
    def shown(self) -> Shown:
        r, tables = self.reduction, self.reduction.tables
        parts = zip(tables.variables, np.split(r.states, tables.state_start[1:-1]), strict=True)
        return Shown(r.counts, {}, {v.name: part for v, part in parts}, r.weight, r.n_empty)

    @cached_property
    def buckets(self) -> Buckets:
        return Buckets(self.reduction, self.threads)

    def expected(self, theta: Theta) -> Expectation:
        counts = self.reduction.counts
        try:
            more, logs = self.buckets.expected(theta.cells)
        except ImpossibleRecord as impossible:
            raise self._impossible(impossible.record) from None
        own = log_likelihood(counts, theta.cells)
        if own == -np.inf:
            cell = int(np.argmax((counts > 0) & (theta.cells <= 0.0)))
            raise FitError(f"rows with {self.reduction.tables.described(cell)} are impossible under the parameters{START}")
        return Expectation(logs + own, counts + more, {}, {})

    def parts(self, n: int) -> list[FiniteComponents]:
        """Every n-th component; complete families are in the first part."""
        r = self.reduction
        n = max(1, min(n, r.n_records))
        parts = [r.only(np.arange(i, r.n_records, n)) for i in range(n)]
        rest = [replace(part, counts=np.zeros_like(r.counts)) for part in parts[1:]]
        return [replace(self, reduction=part) for part in (parts[0], *rest)]

    def _impossible(self, record: int) -> FitError:
        """What an impossible record shows: the observed states around what is missing."""
        r, tables = self.reduction, self.reduction.tables
        variables, families = r.shape(int(r.record_shape[record]))
        missing = {tables.variables[v].name for v in variables.tolist()}
        shown: dict[str, str] = {}
        for f, place in zip(families.tolist(), r.places(record).tolist(), strict=True):
            scope = tables.families[f]
            digits = np.unravel_index(place - int(tables.table_start[f]), [v.n_states for v in scope])
            shown |= {v.name: v.states[int(d)] for v, d in zip(scope, digits, strict=True) if v.name not in missing}
        given = ", ".join(f"{n}={s!r}" for n, s in shown.items()) or "any cells"
        gone = listed(sorted(missing))
        return FitError(f"rows with {given}, in which {gone} is missing, are impossible under the parameters{START}")
