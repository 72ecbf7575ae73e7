"""The door of learning from incomplete data: graph, rows, hidden variables and prior, checked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from suffice.basis.variables import Finite, Real, Variable
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, ModelError, listing, nearest
from suffice.errors.remedies import argument, hidden_variable, hidden_with_states, without_column
from suffice.families import checked_estimate
from suffice.families.named_families import as_families, checked_families, number_columns, with_family_types
from suffice.families.priors.priors import Prior, as_prior
from suffice.families.protocol.family import Estimate
from suffice.graphs import Dag
from suffice.graphs.template import Template
from suffice.models.chain import Chain
from suffice.models.networks import BayesNet
from suffice.models.parts.sharing import Tie, check_families, shared_in, tied_prior, variables_of_one_shape
from suffice.statistics import Statistics


@dataclass(frozen=True, eq=False)
class Task:
    """What is to be learned, as every kind of problem takes it. `rows` has the columns of the graph that are not hidden."""

    dag: Dag
    rows: Data
    variables: Mapping[str, Variable]
    hidden: tuple[str, ...]
    prior: Prior | None
    estimate: Estimate
    families: Mapping[str, Any]
    threads: int | None = None
    ties: tuple[Tie, ...] = ()
    room: float = math.inf
    """Bytes that may be taken beside the rows."""


def task_of(
    dag: Any,
    data: Any,
    *,
    hidden: Any = (),
    prior: Any = None,
    estimate: Estimate | None = None,
    families: Mapping[str, Any] | None = None,
    threads: int | None = None,
    room: float = math.inf,
    shared: Any = (),
    start: BayesNet | None = None,
) -> Task:
    """Graph, rows, hidden variables and prior, checked. Where nothing is declared hidden, the variables of a start are that are
    nodes of the graph but not columns of the data."""
    how = checked_estimate(estimate)
    if isinstance(data, Statistics):
        raise DataError("statistics are of complete rows: fit(dag, statistics) needs no iterations; em needs the rows")
    known = dict(dag.variables) if isinstance(dag, BayesNet) else {}
    graph, ties = graph_and_ties(dag, shared)
    families = as_families(families) if families else {}
    rows = scan(data)
    if families:
        rows = rows.with_numbers(number_columns(families, graph))
    if start is not None and not isinstance(start, BayesNet):
        raise ModelError(f"a start is a network, not {type(start).__name__}")
    if start is not None:
        rows = rows.with_numbers(n for n, v in start.variables.items() if not isinstance(v, Finite))
    if start is not None and hidden == ():
        others = (v for n, v in start.variables.items() if n in graph and n not in rows.columns)
        hidden = [v for v in others if isinstance(v, (Finite, Real))]
    unseen: dict[str, Any] = {} if hidden == () else declared_hidden(hidden)
    if unseen or not all(n in rows.columns for n in graph.nodes):
        check_hidden(unseen, graph, rows)
    for name in (name for name, v in unseen.items() if isinstance(v, Real)):
        rows = rows.with_numbers(graph.children(name))
    if known:
        rows = rows.with_variables({n: v for n, v in known.items() if n in rows.columns and n not in unseen})
    both = [n for n in unseen if n in rows.columns]
    values = {n: rows.n_rows - m for n, m in rows.select(both).missing.items() if m < rows.n_rows} if both else {}
    if values:  # a hidden variable may be a column of the data only if no cell of it has a value
        name = next(iter(values))
        raise DataError(
            f"the hidden variable {name!r} is also a column of the data, with values in {values[name]:,} rows; a column that is "
            f"partly missing needs no declaration: leave it out of {argument('hidden')}"
        )
    rows = rows.select([n for n in graph.nodes if n not in unseen])
    if not rows.columns:
        raise DataError("every node of the graph is hidden: there is nothing to learn from")
    if empty := [n for n, m in rows.missing.items() if m == rows.n_rows]:
        raise DataError(
            f"every cell of {listing(empty)} is missing; if it is never observed, declare its states: "
            f"{hidden_with_states(empty[0])}, or leave it out{without_column(empty[0])}"
        )
    if families:
        rows = with_family_types(rows, families if isinstance(families, Mapping) else {})
    found = rows.engine.variables(rows.columns)
    variables = {n: unseen.get(n) or found[n] for n in graph.nodes}
    if linked := (*ties, *getattr(dag, "alike", ())):
        wider = variables_of_one_shape(linked, variables)
        rows, variables = rows.with_variables({n: v for n, v in wider.items() if n not in unseen}), {**variables, **wider}
    if families:
        checked_families(families, {n: graph.parents(n) for n in graph.nodes}, variables)
    if families and ties:
        check_families(ties, families)
    own = None if prior is None else as_prior(prior)
    own = own if own is None or not ties else tied_prior(own, ties)
    return Task(graph, rows, variables, tuple(unseen), own, how, dict(families), threads, ties, room)


def graph_and_ties(dag: Any, shared: Any) -> tuple[Dag, tuple[Tie, ...]]:
    """A graph, or that of a network, and the ties that are asked for, or that the network brings."""
    graph = dag if isinstance(dag, Dag) else Dag(dag)
    groups = getattr(dag, "shared", ()) if shared is None else shared
    return shared_in(graph, groups) if groups else (graph, ())


def is_of_sequences(graph: Any, data: Any) -> bool:
    """Whether a learner is asked about sequences: by a template, or by the data; text with lags is a template where statistics
    tell first steps apart."""
    steps = isinstance(data, Statistics) and any(n.endswith("[0]") for n in data.variables)
    return isinstance(graph, (Template, Chain)) or isinstance(data, Sequences) or (steps and "[-" in str(graph))


def declared_hidden(hidden: Any) -> dict[str, Any]:
    """Hidden variables by name, from a list of `Finite` or `Real`, one of them, or {name: states}."""
    kinds = (Finite, Real)
    if isinstance(hidden, kinds):
        hidden = [hidden]
    if isinstance(hidden, Mapping):
        hidden = [v if isinstance(v, kinds) else Finite(n, v) for n, v in hidden.items()]
    if isinstance(hidden, str) or not isinstance(hidden, Iterable):
        raise FitError(f"hidden variables are declared with their states: hidden=[Finite('class', ['a', 'b'])], not {hidden!r}")
    result: dict[str, Any] = {}
    for v in hidden:
        if not isinstance(v, kinds):
            states = "Finite('class', ['a', 'b'])"
            raise FitError(f"a hidden variable is a Finite with its states: {states}, or a Real('level'), not {v!r}")
        if v.name in result:
            raise FitError(f"the hidden variable {v.name!r} is declared twice")
        result[v.name] = v
    return result


def check_hidden(unseen: Mapping[str, Any], graph: Dag | Template, rows: Any, what: str = "graph", row: str = "row") -> None:
    """Refuse hidden variables that the graph has not, or of too many states, and nodes neither hidden nor columns."""
    for name, v in unseen.items():
        if name not in graph:
            raise FitError(f"the hidden variable {name!r} is not in the {what}{nearest(name, graph.nodes)}")
        if isinstance(v, Finite) and v.n_states > rows.n_rows:
            raise FitError(f"the hidden variable {name!r} has {v.n_states:,} states, more than the {rows.n_rows:,} {row}s")
    for name in (n for n in graph.nodes if n not in rows.columns and n not in unseen):
        raise DataError(
            f"the data have no column {name!r}, which the {what} names{nearest(name, rows.columns)}; if no {row} shows it, "
            f"declare it: {hidden_variable(name)}"
        )
