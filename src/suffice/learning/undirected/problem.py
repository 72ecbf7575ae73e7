"""What an objective is given: an undirected model of finite variables, what was seen of them, and how it is to be solved."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.limits import NO_LIMITS, Budget
from suffice.basis.variables import Finite
from suffice.errors import DataError, FitError, StatisticsError, listing
from suffice.errors.remedies import Remedy
from suffice.learning.gradient import LBFGS
from suffice.learning.owlqn import Evaluate, Minimum, minimise
from suffice.models.networks import MarkovNet
from suffice.models.undirected.factor import Factor, Terms
from suffice.models.undirected.features import UndirectedModel
from suffice.models.undirected.log_linear import Names
from suffice.objectives.principles import Objective, PenaltySum
from suffice.statistics import Request, Statistics
from suffice.statistics.counts import describe, n_configurations

ALLOWED = 1e-8
"""Tables may differ by this share of all rows."""
MAX_JOINT = 2**18
"""Cells of the table of all variables up to which it is gathered, too, for the deviance and X²."""


@dataclass(frozen=True, eq=False)
class UndirectedProblem:
    """A model, its variables, and rows (`Data`), `Statistics` or moments of features; `base` is a measure over the states."""

    model: UndirectedModel
    variables: Mapping[str, Finite]
    rows: Any
    objective: Objective
    penalties: PenaltySum
    method: Any = None
    prior: Any = None
    base: MarkovNet | None = None
    moments: Mapping[str, float] | None = None
    budget: Budget = NO_LIMITS

    def minimise(self, what: str, shown: str, loss: Evaluate, start: Array, **how: Any) -> Minimum:
        """The minimum of a loss by L-BFGS; `shown` is what is told of an iteration n: its loss, or what is gained, −loss."""
        watch, memory = self.budget.watch(what), self.method.memory if isinstance(self.method, LBFGS) else LBFGS().memory

        def check(n: int, value: float) -> None:
            watch.check(shown.format(n=n, loss=value, gain=-value))

        with closing(watch):
            return minimise(loss, start, memory=memory, check=check, **how)

    @cached_property
    def terms(self) -> Terms:
        return Terms.of(self.model, self.variables)

    @cached_property
    def statistics(self) -> Statistics:
        """The tables of the model's scopes, in one scan; and that of all variables together, where it is small."""
        wanted = [Request(scope) for scope in self.model.scopes]
        if n_configurations(self.variables.values()) <= min(MAX_JOINT, self.budget.room / 8.0):
            wanted.append(Request(tuple(self.variables)))
        found: Statistics = self.rows.gather(list(dict.fromkeys(wanted)))
        if not found.weight > 0:
            raise DataError("there are no rows to learn from")
        return found

    def check_margins(self) -> None:
        """Refuse tables that were given, not gathered, and contradict each other, by the cell in which they do."""
        if not isinstance(self.rows, Statistics) or len(self.statistics) == 1:
            return
        statistics, scopes = self.statistics, self.model.scopes
        tables = [statistics.counts(scope).dense() for scope in scopes]
        first: dict[Names, int] = {}
        pairs: dict[Names, list[int]] = {}
        for k, scope in enumerate(scopes):
            alone: list[Names] = [(), *((n,) for n in scope)]
            shared = {(first.setdefault(own, k), own) for own in alone}
            for pair in combinations(scope, 2):
                near = pairs.setdefault(pair, [])
                shared |= {(j, tuple(n for n in scope if n in scopes[j])) for j in near}
                near.append(k)
            for j, own in sorted(pair for pair in shared if pair[0] != k):
                axes = [tuple(a for a, n in enumerate(scopes[i]) if n not in own) for i in (j, k)]
                one, other = tables[j].sum(axis=axes[0]).reshape(-1), tables[k].sum(axis=axes[1]).reshape(-1)
                at = int(np.argmax(np.abs(one - other)))
                if abs(one[at] - other[at]) > ALLOWED * statistics.weight:
                    where = f" at {describe(at, tuple(self.variables[n] for n in own))}" if own else ""
                    raise StatisticsError(
                        f"the tables of {listing(scopes[j])} and of {listing(scopes[k])} contradict each other{where}: "
                        f"they count {one[at]:g} and {other[at]:g}"
                    )

    @property
    def weight(self) -> float:
        return self.statistics.weight

    def make_network(self, log_tables: Array, how: str, **fitted: Any) -> MarkovNet:
        """The network with these factors, with all that it remembers."""
        pairs = zip(self.terms.scopes, self.terms.tables(log_tables), strict=True)
        factors = [Factor(tuple(self.variables[n] for n in scope), table) for scope, table in pairs]
        return self.network(factors, how, **fitted)

    def network(self, factors: list[Factor], how: str, **fitted: Any) -> MarkovNet:
        """The same from finished factors."""
        known = {"objective": self.objective, "penalty": self.penalties or None, "model": self.model, **fitted}
        if self.moments is None:
            known["statistics"] = self.statistics
        if self.base is not None:
            factors = [*factors, *self.base.factors]
        return MarkovNet.of(self.variables, factors, fit_info=how, **known)

    @property
    def l1(self) -> Array:
        return self.terms.per_weight(self.penalties.l1([t.scope for t in self.terms.terms], self.terms.names))

    @property
    def l2(self) -> Array:
        return self.terms.per_weight(self.penalties.l2([t.scope for t in self.terms.terms], self.terms.names))

    def require_rows(self, what: Remedy | str, instead: Remedy | str) -> None:
        """For objectives that take rows alone: no imagined counts, no moments and no base measure."""
        self.refuse_prior(what)
        if self.base is not None or self.moments is not None:
            raise FitError(f"{what} is of rows, without a base measure: take {instead}")

    def refuse_prior(self, what: Remedy | str) -> None:
        """For objectives that have no place for imagined counts."""
        if self.prior is not None:
            raise FitError(f"a prior imagines rows for the likelihood of tables; {what} has no place for them: take a penalty")
