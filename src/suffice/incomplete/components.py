"""What rows with missing cells are expected to be: what every kind of components can do.

Given what a row shows, its missing variables fall into components: two that share a family belong together. How components are
reduced and solved differs: `finite` has distinct records and trees of buckets, `mixed` enumerates states and integrates numbers.
Another kind, such as chains, is a class that has what `Components` says, made from rows by a fold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np

from suffice.engines.gather import Groups
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.family import Cpd
from suffice.incomplete.tables import Array, FlatTables


class Line(NamedTuple):
    """A normal node's parameters by configuration: intercept (q,), coefficients (q, parents), variance (q,)."""

    intercept: Array
    coefficients: Array
    variance: Array

    @staticmethod
    def of(cpd: ConditionalGaussian) -> Line:
        q = cpd.variance.size
        return Line(cpd.intercept.reshape(q), cpd.coefficients.reshape(q, cpd.coefficients.shape[-1]), cpd.variance.reshape(q))


@dataclass(frozen=True, eq=False)
class Theta:
    """The parameters of a network: all tables in one array, and the distributions of other nodes, which are of scaled columns."""

    tables: FlatTables
    cells: Array
    others: Mapping[str, Cpd] = field(default_factory=dict)

    @cached_property
    def log_tables(self) -> dict[str, Array]:
        with np.errstate(divide="ignore"):
            logs = np.log(self.cells)
        return {name: logs[self.tables.cells(name)] for name in (f[-1].name for f in self.tables.families)}

    @cached_property
    def lines(self) -> dict[str, Line]:
        """The normal distributions."""
        return {n: Line.of(cpd) for n, cpd in self.others.items() if isinstance(cpd, ConditionalGaussian)}


class Expectation(NamedTuple):
    """What rows are expected to count under some parameters, and ln p of what they show. Expectations add.

    Counts of all tables, in one array; moments of scaled columns by node; steps of families that take steps of their own.
    """

    log_likelihood: float
    cells: Array
    moments: dict[str, Groups]
    steps: dict[str, Any]


class Shown(NamedTuple):
    """What rows show as a whole: counts of all tables, moments of other nodes, how often each state of each variable is shown,
    the weight of the rows, and how many of them show nothing. It adds."""

    counts: Array
    moments: dict[str, Groups]
    states: dict[str, Array]
    weight: float
    n_empty: int


class Components(Protocol):
    """Incomplete rows, reduced once. What iterations ask of them is an expectation; they never see the rows."""

    @property
    def shown(self) -> Shown: ...

    def expected(self, theta: Theta) -> Expectation:
        """What all rows are expected to count. Rows that are impossible under the parameters are refused."""

    def parts(self, n: int) -> Sequence[Components]:
        """The same rows in n parts, whose expectations add to that of all."""
