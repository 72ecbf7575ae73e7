"""What rows with missing cells are expected to be: nodes, their parameters, and what every kind of components can do.

Given what a row shows, its missing variables fall into components: two that share a family belong together. How components are
reduced and solved differs: `finite` has distinct records and trees of buckets, `mixed` enumerates states and integrates numbers.
Another kind, such as chains, is a class that has what `Components` says, made from rows by a fold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.limits import COPIES
from suffice.basis.variables import Finite, Variable
from suffice.engines.engine import Block, Step
from suffice.engines.gather import Groups
from suffice.errors import ModelError, TooLarge, bytes_in_words, listing
from suffice.families import family_of
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian, LinearGaussian
from suffice.families.protocol.family import Cpd
from suffice.graphs import Dag
from suffice.statistics.counts import RowFormula, checked_cells, describe, n_configurations, sizes


@dataclass(frozen=True, eq=False)
class FlatTables:
    """The tables p(child | parents) of some nodes, one after the other: `families` has (*parents, child) of each.

    Variables are numbered in the order of `variables`; `scopes` and `strides` list those of all tables.

    >>> x, y = Finite("x", ["a", "b"]), Finite("y", ["u", "v", "w"])
    >>> tables = FlatTables.of([x, y], [(x,), (x, y)])
    >>> tables.table_start, tables.strides, tables.rows
    (array([0, 2, 8]), array([1, 3, 1]), (array([0, 2, 5]), array([2, 3, 3])))
    """

    variables: tuple[Finite, ...]
    families: tuple[tuple[Finite, ...], ...]
    sizes: Ints
    scope_start: Ints
    scopes: Ints
    strides: Ints
    table_start: Ints
    n_cells: int
    cells: Mapping[str, slice]
    """Where the table of each node is."""

    @classmethod
    def of(cls, variables: Sequence[Finite], families: Sequence[tuple[Finite, ...]]) -> FlatTables:
        cells = [checked_cells(family, f"the table of {family[-1].name!r}") for family in families]
        if sum(cells) >= 2**31:
            raise TooLarge(
                f"the tables of the network have {sum(cells):,} cells ({bytes_in_words(8.0 * sum(cells))}), beyond 2^31"
            )
        number = {v.name: i for i, v in enumerate(variables)}
        steps = [int(s) for family in families for s in np.cumprod([1, *sizes(family)[:0:-1]])[::-1]]
        table_start = np.cumsum([0, *cells], dtype=np.int64)
        return cls(
            tuple(variables),
            tuple(families),
            np.array([v.n_states for v in variables], np.int64),
            np.cumsum([0, *map(len, families)], dtype=np.int64),
            np.array([number[v.name] for family in families for v in family], np.int64),
            np.array(steps, np.int64),
            table_start,
            sum(cells),
            {f[-1].name: slice(*ends) for f, ends in zip(families, pairwise(table_start.tolist()), strict=True)},
        )

    def scope(self, family: int) -> list[int]:
        """The variables of a family."""
        return list(self.scopes[self.scope_start[family] : self.scope_start[family + 1]].tolist())

    @cached_property
    def touching(self) -> tuple[Ints, Ints]:
        """For each variable where in the second array its families begin, and the families."""
        order = np.argsort(self.scopes, kind="stable")
        family = np.repeat(np.arange(len(self.families)), np.diff(self.scope_start))
        return np.searchsorted(self.scopes[order], np.arange(len(self.sizes) + 1)).astype(np.int64), family[order]

    @cached_property
    def rows(self) -> tuple[Ints, Ints]:
        """Where each row of each table begins, and its length."""
        parts = [np.arange(at.start, at.stop, f[-1].n_states) for f, at in zip(self.families, self.cells.values(), strict=True)]
        start = np.concatenate([np.zeros(0), *parts]).astype(np.int64)
        return start, np.diff(np.append(start, self.n_cells))

    def normalise(self, weights: Array) -> Array:
        """Weights divided by the sums of their rows; a row without weight is uniform."""
        if not len(weights):
            return weights
        start, length = self.rows
        sums, uniform = np.repeat(np.add.reduceat(weights, start), length), 1.0 / np.repeat(length, length)
        return np.asarray(np.divide(weights, sums, out=uniform, where=sums > 0))

    def describe(self, cell: int) -> str:
        """A cell in words."""
        i = int(np.searchsorted(self.table_start, cell, side="right")) - 1
        return describe(cell - int(self.table_start[i]), self.families[i])


def log_likelihood(counts: Array, cells: Array) -> float:
    """Σ N ln θ of counted cells; −∞ if one of them has no probability."""
    seen = counts > 0
    with np.errstate(divide="ignore"):
        return float(counts[seen] @ np.log(cells[seen]))


@dataclass(frozen=True, eq=False)
class NodeFamily:
    """A variable and its parents. Its statistic is of `reals` within each configuration of `finite`, or counts of `finite`. It
    takes part by a table, by a normal distribution, or by what its family says of completed rows."""

    name: str
    child: Variable
    parents: tuple[Variable, ...]
    members: tuple[Variable, ...]
    """The parents and the child."""
    family: Any
    finite: tuple[Finite, ...]
    reals: tuple[str, ...]
    derived: tuple[RowFormula, ...]
    by_table: bool
    normal: bool
    by_rows: bool
    """Whether it is neither: it says what it needs of completed rows."""
    regression: bool
    """Whether it is a regression, whose parameters are one set for all states of its parents."""
    iterative: bool
    """Whether it takes steps of its own: a normal regression needs none, moments say all."""

    @staticmethod
    def of(child: Variable, parents: tuple[Variable, ...], family: Any) -> NodeFamily:
        """A variable, its parents and their family, with what its statistic is of."""
        regression, normal = bool(family.iterative), bool(family.normal)
        iterative, by_table = regression and not normal, isinstance(child, Finite) and not regression
        members, finite, reals, derived = (*parents, child), tuple[Any, ...](), tuple[str, ...](), tuple[Any, ...]()
        if not iterative:
            request = (LinearGaussian() if normal else family).needs(child, parents)
            named = {v.name: v for v in members}
            finite, reals, derived = tuple(named[n] for n in request.finite), request.real, request.derived
        kind = by_table, normal, not by_table and not normal, regression, iterative
        return NodeFamily(child.name, child, parents, members, family, finite, reals, derived, *kind)

    @cached_property
    def strides(self) -> dict[str, int]:
        """How far a step of each finite variable moves the flat index of a configuration."""
        ends = np.cumprod([1, *sizes(self.finite)[::-1]])[:-1][::-1]
        return {v.name: int(s) for v, s in zip(self.finite, ends, strict=True)}

    @cached_property
    def n_cells(self) -> int:
        return checked_cells(self.finite, f"the table of {self.name!r}")

    def reorder(self, cpd: Any) -> Any:
        """A distribution with the axes of its parents in the order of the node; one that is not of this node is refused."""
        wanted = tuple(p.name for p in self.parents)
        if cpd is None or set(cpd.parents) != set(wanted):
            what = "table" if self.by_table else "distribution"
            raise ModelError(f"the start has no {what} of {self.name!r} given {listing(wanted) or 'nothing'}")
        theirs = {v.name: v for v in (*cpd.parent_variables, cpd.child)}
        for v in self.members:
            other = theirs[v.name]
            if isinstance(v, Finite) and v.states != getattr(other, "states", ()):
                states = listing(getattr(other, "states", ()))
                raise ModelError(f"{v.name!r} has the states {states} in the start and {listing(v.states)} in the data")
        if self.by_rows:
            return cpd
        kind = Table if self.by_table else ConditionalGaussian
        if cpd.is_open or cpd.closed_form().arrays != kind.arrays:
            raise ModelError(f"the start has a {type(cpd).__name__} of {self.name!r}, which needs a {kind.__name__}")
        turned = cpd.closed_form().reorder(wanted)
        return kind(self.child, self.parents, *(getattr(turned, a) for a in kind.arrays))  # type: ignore[arg-type]


def bytes_of_parameters(nodes: Iterable[NodeFamily]) -> float:
    """What the parameters of nodes, and the statistics that they are estimated from, take in a learner."""
    return 8.0 * COPIES * sum(float(n_configurations(node.finite)) * (len(node.reals) + 1) ** 2 for node in nodes)


def nodes_of(dag: Dag, variables: Mapping[str, Variable], families: Mapping[str, Any]) -> dict[str, NodeFamily]:
    """The nodes of a graph with their families: those named, or the ones of their types."""
    result = {}
    for name, child in variables.items():
        parents = tuple(variables[p] for p in dag.parents(name))
        result[name] = NodeFamily.of(child, parents, families.get(name) or family_of(child, parents))
    return result


class Line(NamedTuple):
    """A normal node's parameters by configuration: intercept (q,), coefficients (q, parents), variance (q,)."""

    intercept: Array
    coefficients: Array
    variance: Array

    @staticmethod
    def of(cpd: Cpd) -> Line:
        q = cpd.variance.size
        return Line(cpd.intercept.reshape(q), cpd.coefficients.reshape(q, cpd.coefficients.shape[-1]), cpd.variance.reshape(q))

    def in_place_of(self, cpd: ConditionalGaussian) -> ConditionalGaussian:
        """The distribution of the same node with these parameters."""
        (a, b, v), shape = self, cpd.variance.shape
        parts = a.reshape(shape), b.reshape(*shape, b.shape[-1]), v.reshape(shape)
        return ConditionalGaussian(cpd.child, cpd.parent_variables, *parts)


@dataclass(frozen=True, eq=False)
class Theta:
    """The parameters of a network: all tables in one array, and the distributions of other nodes, which are of scaled columns."""

    tables: FlatTables
    cells: Array
    others: Mapping[str, Cpd] = field(default_factory=dict)

    @staticmethod
    def of(
        nodes: Mapping[str, NodeFamily], tables: FlatTables, cpds: Mapping[str, Cpd], scaled: Callable[[NodeFamily, Any], Cpd]
    ) -> Theta:
        """The parameters of these distributions; those that are no tables are `scaled`."""
        cells, others = np.empty(tables.n_cells), {}
        for name, node in nodes.items():
            cpd = node.reorder(cpds.get(name))
            if node.by_table:
                cells[tables.cells[name]] = cpd.probs.reshape(-1)
            else:
                others[name] = scaled(node, cpd)
        return Theta(tables, cells, others)

    @cached_property
    def logs(self) -> Array:
        """The logarithms of all tables."""
        with np.errstate(divide="ignore"):
            return np.log(self.cells)

    @cached_property
    def log_tables(self) -> dict[str, Array]:
        return {name: self.logs[place] for name, place in self.tables.cells.items()}

    @cached_property
    def lines(self) -> dict[str, Line]:
        """The normal distributions."""
        return {n: Line.of(cpd) for n, cpd in self.others.items() if cpd.is_line}


class Expectation(NamedTuple):
    """What rows are expected to count under some parameters, and ln p of what they show. Expectations add. Counts of all tables,
    in one array; moments of scaled columns by node; steps of families that take steps of their own."""

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


@dataclass(frozen=True, eq=False)
class ReducedComponents:
    """Components of rows that a step reduces, and holds where they are near and fit into memory. `constant` is what ln p of the
    observed cells has besides that of the scaled ones; among parts, the first has it."""

    step: Any
    reduced: Any
    constant: float
    threads: int | None

    @property
    def shown(self) -> Shown:
        return self.reduced.shown  # type: ignore[no-any-return]

    @property
    def passes(self) -> int:
        return int(not self.step.hold)

    @property
    def shown_nowhere(self) -> Shown:
        """What is shown, as of parts besides the first: nothing is counted."""
        return self.shown._replace(counts=np.zeros_like(self.shown.counts), moments={})


@dataclass(frozen=True, eq=False)
class ReduceAndExpect(Step[Expectation]):
    """What the rows of each block are expected to add that are reduced again for each expectation."""

    reduce: Any
    theta: Theta

    def of(self, block: Block) -> Expectation:
        return self.reduce.expect(block, self.theta)  # type: ignore[no-any-return]


class Components(Protocol):
    """Incomplete rows, reduced once. What iterations ask of them is an expectation; they never see the rows."""

    @property
    def shown(self) -> Shown: ...

    @property
    def passes(self) -> int:
        """How often an expectation passes over the rows: 0 where they were reduced to something that is here."""

    def expect(self, theta: Theta) -> Expectation:
        """What all rows are expected to count. Rows that are impossible under the parameters are refused."""

    def parts(self, n: int) -> Sequence[Components]:
        """The same rows in n parts, whose expectations add to that of all."""
