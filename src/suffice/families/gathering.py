"""From a graph to the statistics that its families need; and those of every family with up to so many parents, all that a search
needs.

A finite child with finite parents needs their table, so all sets of up to k + 1 finite variables have one. A number with finite
parents u and numbers as parents needs moments within each configuration of u: those of all numbers, for each set of up to k
finite variables, serve every such family, with whatever numbers as parents.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.limits import bytes_of
from suffice.basis.output.display import OneTable
from suffice.basis.variables import Finite, Variable
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.engines.sequences.lagged import rename
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, MissingCells, TooLarge, bytes_in_words, listing, nearest, note, whole
from suffice.errors.remedies import SEQUENCES, Remedy, argument, hidden_with_states, name_of
from suffice.families import family_of
from suffice.graphs import Dag, Graph, Template
from suffice.graphs.lagged import variable_and_lag
from suffice.statistics import Counts, Moments, Request, Statistics
from suffice.statistics.counts import sizes

if TYPE_CHECKING:
    from suffice.basis.argument_types import HasGraph, RowsLike
    from suffice.graphs.template import TemplateLike


MOST_BYTES = 2**31
"""What statistics may take, where no other limit is given."""

PER_ENTRY = 1000
"""Bytes that a table or a set of moments takes beside its numbers."""


@dataclass(frozen=True, repr=False)
class GatheredSize(OneTable):
    """What statistics of every family will take, told before rows are read.

    >>> GatheredSize.of({"x": Finite("x", ["a", "b"]), "y": Finite("y", ["a", "b", "c"])}, 1).numbers
    11
    """

    max_parents: int
    n_variables: int
    entries: int
    """Tables and sets of moments."""
    numbers: int
    """Cells of tables, and counts, means and scatters in each configuration that there may be."""

    @staticmethod
    def of(variables: Mapping[str, Variable], max_parents: int) -> GatheredSize:
        sizes = [v.n_states for v in variables.values() if isinstance(v, Finite)]
        n, k = len(sizes), len(variables) - len(sizes)
        cells = _symmetric(sizes, max_parents + 1)
        entries, numbers = sum(comb(n, s) for s in range(1, min(max_parents + 1, n) + 1)), sum(cells[1:])
        if k:
            entries += sum(comb(n, s) for s in range(min(max_parents, n) + 1))
            numbers += sum(cells[: max_parents + 1]) * (3 + 2 * k + k * k)
        return GatheredSize(max_parents, len(variables), entries, numbers)

    @property
    def bytes(self) -> int:
        """About what all of it takes in memory."""
        return 8 * self.numbers + PER_ENTRY * self.entries

    def to_dict(self) -> dict[str, Any]:
        """The numbers by name, for JSON."""
        return asdict(self) | {"bytes": self.bytes}

    def in_words(self) -> str:
        """In a sentence's part."""
        return f"{self.entries:,} tables of {self.numbers:,} numbers, {bytes_in_words(float(self.bytes))}"

    def _table(self) -> tuple[list[str], list[list[object]]]:
        return ["what", "at most"], [
            ["parents", self.max_parents],
            ["variables", self.n_variables],
            ["tables", f"{self.entries:,}"],
            ["numbers", f"{self.numbers:,}"],
            ["memory", bytes_in_words(float(self.bytes))],
        ]


def gather_every_family(
    data: Any, max_parents: int, *, memory_limit: int | str | None = None, dry_run: bool = False, also: Iterable[Request] = ()
) -> Statistics | GatheredSize:
    """The statistics of all families with up to `max_parents` parents, and what is asked for also, in one pass; `dry_run` gives
    the size of the former only."""
    most = whole(max_parents, "max_parents", 0)
    if isinstance(data, Sequences):
        raise DataError("statistics of every family are of rows, and these are sequences: gather(sequences, template)")
    rows = scan(data)
    left_out = sorted(set(rows.identifiers))
    names = sorted(set(rows.columns) - set(left_out))
    if left_out:
        note(f"left out of the statistics, as an identifier: {listing(left_out)}")
    if not names:
        raise DataError("there are no columns to gather statistics of")
    variables = {name: rows.schema[name] for name in names}
    size = GatheredSize.of(variables, min(most, len(names) - 1))
    if dry_run:
        return size
    limit = MOST_BYTES if memory_limit is None else bytes_of(memory_limit)
    if size.bytes > limit:
        raise TooLarge(
            f"statistics of all families of {size.n_variables:,} variables with up to {size.max_parents} parents would be "
            f"{size.in_words()}, and may take {bytes_in_words(limit)}; gather for fewer parents ({name_of('max_parents')}), "
            f"fewer columns, or allow more ({name_of('memory_limit')})"
        )
    rows.require_complete(names)
    return rows.gather([*requests_of_every_family(variables, size.max_parents), *also])


def requests_of_every_family(variables: Mapping[str, Variable], max_parents: int) -> Iterator[Request]:
    """The tables of all sets of up to k + 1 finite variables, and the moments of all numbers by each set of up to k."""
    finite = [n for n in sorted(variables) if isinstance(variables[n], Finite)]
    numbers = tuple(n for n in sorted(variables) if n not in finite)
    derived = tuple(d for n in numbers for d in family_of(variables[n], []).needs(variables[n], []).derived)
    for size in range(1, min(max_parents + 1, len(finite)) + 1):
        yield from map(Request, combinations(finite, size))
    if numbers:
        for size in range(min(max_parents, len(finite)) + 1):
            yield from (Request(parents, numbers, derived) for parents in combinations(finite, size))


def _symmetric(sizes: list[int], most: int) -> list[int]:
    """The sums of products of 0, 1, 2, ... of the sizes: the cells of all tables of so many variables."""
    sums = [1] + [0] * most
    for r in sizes:
        for k in range(most, 0, -1):
            sums[k] += r * sums[k - 1]
    return sums


def requests(dag: Dag, variables: Mapping[str, Variable], families: Mapping[str, Any] | None = None) -> list[Request]:
    """What each node of the graph needs, in the order of the nodes; `families` are those of nodes that are regressions."""
    nodes = {node: (variables[node], [variables[p] for p in dag.parents(node)]) for node in dag.nodes}
    return [((families or {}).get(n) or family_of(*own)).needs(*own) for n, own in nodes.items()]


@overload
def gather(
    data: RowsLike | Sequences | Statistics,
    dag: TemplateLike | Graph | HasGraph | None = ...,
    *,
    max_parents: int | None = ...,
    memory_limit: int | str | None = ...,
    dry_run: Literal[False] = ...,
) -> Statistics: ...
@overload
def gather(
    data: RowsLike | Sequences | Statistics,
    dag: None = ...,
    *,
    max_parents: int,
    memory_limit: int | str | None = ...,
    dry_run: Literal[True],
) -> GatheredSize: ...
@one_blas_thread
def gather(
    data: RowsLike | Sequences | Statistics,
    dag: TemplateLike | Graph | HasGraph | None = None,
    *,
    max_parents: int | None = None,
    memory_limit: int | str | None = None,
    dry_run: bool = False,
) -> Statistics | GatheredSize:
    """All that the families of `dag` need to know about `data`, in one scan; it adds to what other data gives.

    Without a graph, `max_parents=k` gathers what every family with up to k parents needs: `search` takes that instead of rows,
    and finds the same graph. How large it is is known beforehand: more than `memory_limit` (2 GiB if not given) is refused, and
    `dry_run=True` only says the size. With a graph, too, both are gathered: `gather(data, dag, max_parents=1)` is enough to fit
    the graph and for Chow-Liu trees of its nodes.

    Of an undirected graph or model, `"a -- b; b -- c"`, these are the tables of its cliques, of numbers their moments together.

    Of `sequences(...)` the graph is a `Template`: the statistics of its nodes are over all steps, and those of the first slices
    apart, under the names of their steps.

    >>> s = gather({"x": ["a", "b", "a"], "y": ["u", "u", "v"]}, "x -> y")
    >>> s.counts(["x", "y"]).values
    array([[1., 1.],
           [1., 0.]])
    >>> from suffice import search
    >>> every = gather({"x": list("aabb") * 5, "y": list("uuvu") * 5}, max_parents=1)
    >>> search(every + every).dag
    Dag('x -> y')
    """
    if isinstance(data, Statistics):
        return data
    if max_parents is not None and dag is None:
        return gather_every_family(data, max_parents, memory_limit=memory_limit, dry_run=dry_run)
    if dag is None or dry_run or (memory_limit is not None and max_parents is None):
        raise FitError(
            "say for which graph statistics are gathered, or for how many parents, "
            f"{Remedy('gather(data, max_parents=2)', 'suffice gather --max-parents 2')}; "
            f"{argument('dry_run')} and {argument('memory_limit')} are of the latter"
        )
    scopes: tuple[tuple[str, ...], ...] | None = None  # the tables that an undirected graph or model needs
    model: Any = dag
    if isinstance(dag, Graph) or Graph.is_text(dag):
        scopes = Graph(model).cliques()
    elif not isinstance(dag, Dag):
        scopes = getattr(getattr(model, "model", model), "scopes", None)
    if max_parents is not None and (scopes is not None or isinstance(data, Sequences)):
        raise FitError(f"{argument('max_parents')} goes with a directed graph of rows, or without a graph")
    if isinstance(data, Sequences):
        return gather_steps(data, dag)
    if scopes is not None:
        return gather_scopes(data, scopes)
    graph = Dag(model)  # what is left has to make a Dag, or is refused by it
    rows = scan(data)
    for node in graph.nodes:
        if node not in rows.columns and node.partition("[-")[0] in rows.columns:
            raise DataError(
                f"the graph names {node!r}, a step of a sequence before another, and these are rows: say which belong together "
                f"and in which order, {SEQUENCES}"
            )
        if node not in rows.columns:
            raise DataError(
                f"the data have no column {node!r}, which the graph names{nearest(node, rows.columns)}; if no row shows it, "
                f"declare its states: {hidden_with_states(node, 'em(dag, data, {})')}"
            )
    rows = rows.select(graph.nodes)
    try:
        wanted = requests(graph, rows.engine.variables(rows.columns))
    except FitError:
        rows.require_complete(graph.nodes)  # a column without values has no type: that is the reason to give
        raise
    if max_parents is not None:
        return gather_every_family(rows, max_parents, memory_limit=memory_limit, also=wanted)
    return rows.gather(wanted)


def gather_scopes(data: Any, scopes: Iterable[tuple[str, ...]]) -> Statistics:
    """The tables of some sets of variables, in one scan; where all variables are numbers, their moments."""
    rows = complete_rows(data, sorted({n for scope in scopes for n in scope}))
    finite = [n for n, v in rows.schema.items() if isinstance(v, Finite)]
    if not finite:
        return rows.gather([Request((), tuple(rows.schema))])
    if len(finite) < len(rows.schema):
        number = next(n for n in rows.schema if n not in finite)
        raise FitError(
            f"{number!r} is {rows.schema[number]!r} and {finite[0]!r} is finite: undirected models are of finite variables, or "
            "of numbers; cut numbers into Bins"
        )
    return rows.gather([Request(scope) for scope in scopes])


def complete_rows(data: Any, nodes: Sequence[str], known: Mapping[str, Variable] | None = None) -> Data:
    """The rows of some variables, all of which undirected models need: missing cells are refused by their numbers."""
    rows = scan(data)
    for node in nodes:
        if node not in rows.columns:
            raise DataError(f"the data have no column {node!r}, which the graph names{nearest(node, rows.columns)}")
    rows = rows.with_variables(known).select(list(nodes)) if known else rows.select(list(nodes))
    gaps = {name: n for name, n in rows.missing.items() if n}
    if gaps:
        cells = ", ".join(f"{name!r} {n:,}" for name, n in list(gaps.items())[:8])
        raise MissingCells(
            f"there are missing cells ({cells}), and undirected models are fitted to complete rows only, for EM of them is not "
            "here: fill them in with impute of another model, or leave the rows out yourself"
        )
    return rows


def gather_steps(sequences: Sequences, template: Any, without: Container[str] = ()) -> Statistics:
    """All that a template's nodes, but for some, need to know about sequences: a scan for each slice that differs."""
    graph = Template(template)
    for node in graph.nodes:
        if node not in sequences.columns:
            raise DataError(
                f"the data have no column {node!r}, which the template names{nearest(node, sequences.columns)}; if no step shows "
                f"it, declare it: {hidden_with_states(node, 'em(template, sequences, {})')}"
            )
    rows = sequences.select(graph.nodes)
    rows.data.require_complete(graph.nodes)
    schema, entries = rows.schema, dict[Request, Counts | Moments]()
    for t in range(graph.order + 1):
        last = t == graph.order
        nodes = {graph.parameter_name(n, t): (n, graph.parents_at(n, t)) for n in graph.nodes}
        places = {p: variable_and_lag(p) for _, parents in nodes.values() for p in parents}
        places |= {key: (name, 0) for key, (name, _) in nodes.items()}
        variables = {n: rename(schema[base], n) for n, (base, _) in places.items()}
        wanted = [
            family_of(variables[key], own := [variables[p] for p in parents]).needs(variables[key], own)
            for key, (_, parents) in nodes.items()
            if key not in without
        ]
        steps = rows.lagged(places, first=t, last=None if last else t)
        seen = wanted and rows.lengths.max() > t
        found = {e.request: e for e in steps.gather(wanted)} if seen else {r: nothing_seen(r, variables) for r in wanted}
        for request, entry in found.items():
            entries[request] = entries[request] + entry if request in entries else entry  # type: ignore[operator]
    return Statistics(entries.values(), rows.weight, schema.values())


def nothing_seen(request: Request, variables: Mapping[str, Variable]) -> Counts | Moments:
    """The statistic of no rows at all."""
    finite: tuple[Finite, ...] = tuple(variables[n] for n in request.finite)  # type: ignore[misc]
    k, none = len(request.real), np.zeros(0, np.int64)
    if not k:
        return Counts(finite, np.zeros(sizes(finite)))
    return Moments(finite, request.real, none, np.zeros(0), np.zeros((0, k)), np.zeros((0, k, k)), derived=request.derived)
