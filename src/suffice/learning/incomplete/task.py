"""The door of learning from incomplete data: graph, rows, hidden variables and prior, checked; and missingness as part of the
model: cells that are not missing at random, and whether the graph still identifies everything.

Each column X whose cells are missing by a mechanism gets an observed node R, "X_missing", with the parents that are named. R has
no children, so given its parents it is independent of all else, and EM takes the indicators for what they are: observed.

Where X is no parent of its own R, the joint distribution is identified (Mohan, Pearl & Tian 2013, NIPS 26, p. 1277). Where it is,
the graph alone does not identify it, but other columns Z may. With W the other parents of R, Z is independent of R given X and W.
So the rows that show X give p(z | x, w), and those that do not give p(x, w, R = yes) by

    Σ_x p(z | x, w) p(x, w, R = yes) = p(z, w, R = yes)

which has one solution if no row x of p(z | x, w) is a mixture of the others (Miao & Tchetgen Tchetgen 2016, Biometrika 103,
p. 475: a shadow variable). Whether a graph allows that is seen at random tables: almost all have the largest rank there is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.basis.variables import Finite, Real, Variable
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, ModelError, TooLarge, listing, nearest, note
from suffice.errors.remedies import argument, declaration, hidden_variable, hidden_with_states, name_of, without_column
from suffice.families import checked_estimate
from suffice.families.named_families import as_families, checked_families, numbers_of, with_types_of
from suffice.families.priors.priors import Prior, as_prior
from suffice.families.protocol.family import Estimate
from suffice.families.regressions.logistic import Logistic
from suffice.graphs import Dag
from suffice.graphs.template import Template
from suffice.models.chain import Chain
from suffice.models.networks import BayesNet
from suffice.models.parts.sharing import Tie, alike, check_families, shared_in, tied_prior
from suffice.statistics import Statistics
from suffice.statistics.counts import MAX_CELLS


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
        rows = rows.with_numbers(numbers_of(families, graph))
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
        rows = with_types_of(rows, families if isinstance(families, Mapping) else {})
    found = rows.engine.variables(rows.columns)
    variables = {n: unseen.get(n) or found[n] for n in graph.nodes}
    if linked := (*ties, *getattr(dag, "alike", ())):
        wider = alike(linked, variables)
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


def of_sequences(graph: Any, data: Any) -> bool:
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
            f"the {what} names {name!r}, which is not a column of the data{nearest(name, rows.columns)}; if no {row} shows it, "
            f"declare it: {hidden_variable(name)}"
        )


SUFFIX = "_missing"
NOTHING = 1e-10
"""A singular value up to this share of the largest is 0: random tables have none that small without a reason."""
MOST_CELLS = 2**14
"""No larger joint distribution is looked at to see whether other columns tell the states of one apart."""

SAID = name_of("missing_depends_on")


def with_mechanism(dag: Any, data: Any, depends: Any, hidden: Any = (), families: Any = None) -> tuple[Dag, Data, dict[str, Any]]:
    """The graph and rows with an indicator for each column that `depends` names, and the families that these need; what is not
    identified is refused."""
    if not isinstance(dag, (BayesNet, Dag, str)) and not isinstance(dag, (Mapping, list, tuple)):
        what = type(dag).__name__
        raise FitError(f"{argument('missing_depends_on')} is for a directed graph or a Bayesian network, not for a {what}")
    graph, known = (dag.dag, dict(dag.variables)) if isinstance(dag, BayesNet) else (Dag(dag), {})
    rows = scan(data)
    rows = rows.with_variables({n: v for n, v in known.items() if n in rows.columns}) if known else rows
    unseen = declared_hidden(hidden)
    said = _check_depends(depends, graph, rows, unseen)
    names = {column: column + SUFFIX for column in said}
    for column in said:
        while names[column] in rows.columns or names[column] in graph:
            names[column] += "_"
    columns = [n for n in graph.nodes if n in rows.columns]
    variables: dict[str, Variable] = {**rows.take(columns).schema, **unseen}
    gaps = rows.take(columns).missing
    for column, name in ((column, name) for column, on in said.items() for name in on):
        if gaps[name] and not isinstance(variables[name], Finite):
            raise FitError(
                f"whether {column!r} is missing depends on the number {name!r}, which has missing cells itself: there is no "
                f"closed form to sum them out; cut it into intervals, {declaration(name, 'Bins(5)')}"
            )
    for column in said:
        _check_identified(graph, column, said, variables, tuple(unseen))
    own = dict(families or {})
    for column, parents in said.items():
        if names[column] not in own and any(not isinstance(variables[p], Finite) for p in parents):
            own[names[column]] = Logistic()
    whole = Dag({**{n: graph.parents(n) for n in graph.nodes}, **{names[c]: list(parents) for c, parents in said.items()}})
    if rest := [n for n, count in gaps.items() if count and n not in said]:
        note(f"the gaps of {listing(rest)} are taken to be at random: {SAID} does not speak of them")
    return whole, rows.with_indicators({name: column for column, name in names.items()}), own


def _check_depends(depends: Any, graph: Dag, rows: Data, hidden: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """What the missing cells of each column depend on, by names that are there."""
    if not isinstance(depends, Mapping) or not depends:
        raise FitError(
            f"{argument('missing_depends_on')} has what the gaps of a column depend on, {{'income': ['age']}}; not {depends!r}"
        )
    said = {c: ((on,) if isinstance(on, str) else on) for c, on in depends.items()}
    for column, on in said.items():
        if not isinstance(on, Iterable) or not all(isinstance(p, str) for p in on):
            raise FitError(f"{SAID} names for {column!r} a list of nodes, not {on!r}")
    said = {c: tuple(dict.fromkeys(on)) for c, on in said.items()}
    for name in dict.fromkeys(n for column, on in said.items() for n in (column, *on)):
        if name in hidden:
            raise FitError(f"{SAID} names {name!r}, which is hidden in every row: nothing tells what depends on it")
        if name not in graph:
            raise FitError(f"{SAID} names {name!r}, which is not in the graph{nearest(str(name), graph.nodes)}")
        rows.engine.check([name])
    missing = rows.take(tuple(said)).missing
    for column in said:
        if not missing[column]:
            raise DataError(f"{SAID} names {column!r}, which has no missing cells: leave it out")
        if missing[column] == rows.n_rows:
            raise DataError(f"{SAID} names {column!r}, and every cell of it is missing: it is hidden, not missing")
    return said


def _check_identified(
    graph: Dag, column: str, said: Mapping[str, Sequence[str]], variables: Mapping[str, Variable], hidden: Sequence[str]
) -> None:
    """Refuse a column that is missing by its own value where nothing tells its states apart, and say what does."""
    own = variables[column]
    if column not in said[column] or not isinstance(own, Finite):
        return
    others = [p for p in said[column] if p != column]
    given = f" given {listing(others)}" if others else ""
    if also := [p for p in others if p in said]:
        raise FitError(
            f"whether {column!r} is missing depends on itself and on {listing(also)}, whose own gaps are in {SAID}: that is not "
            f"known to be identified; leave {column!r} or {listing(also)} out of the list"
        )
    free = [n for n in graph.nodes if n not in (column, *others, *said, *hidden)]
    telling = [n for n in free if not graph.d_separated(n, column, others)]
    used, rank = _telling_apart(graph, own, others, telling, variables)
    if rank < own.n_states:
        what = f"{listing(telling)} can tell apart but {rank} of its {own.n_states} states" if telling else "nothing tells of it"
        raise FitError(
            f"the graph does not identify {column!r}: whether it is missing depends on its own value, and{given} {what}; leave "
            f"{column!r} out of its own list, or add a column that depends on it"
        )
    note(
        f"whether {column!r} is missing depends on its own value: it is identified{given} only as far as {listing(used)} "
        f"tells its states apart; intervals say how well"
    )


def _telling_apart(
    graph: Dag, column: Finite, others: Sequence[str], telling: Sequence[str], variables: Mapping[str, Variable]
) -> tuple[list[str], int]:
    """Columns that together tell most states of one apart, and how many, at tables drawn at random. Numbers have more states."""
    if not telling:
        return [], 1
    sizes = {n: v.n_states if isinstance(v, Finite) else column.n_states + 1 for n, v in variables.items()}
    near = sorted(telling, key=lambda n: (n not in (*graph.children(column.name), *graph.parents(column.name)), -sizes[n]))
    rng, tables = np.random.default_rng(0), {}
    for n in graph.nodes:
        shape = (*(sizes[p] for p in graph.parents(n)), sizes[n])
        if np.prod([float(s) for s in shape]) > MAX_CELLS:
            raise TooLarge(f"the table of {n!r} has more than {MAX_CELLS:,} cells")
        weights = rng.uniform(0.1, 1.0, shape)
        tables[n] = weights / weights.sum(axis=-1, keepdims=True)
    bn = BayesNet(graph, tables, [Finite(n, [str(i) for i in range(size)]) for n, size in sizes.items()])
    given = dict.fromkeys(others, "0")
    used: list[str] = []
    rank = 1
    for name in near:
        if np.prod([sizes[n] for n in (column.name, *used, name)]) > MOST_CELLS:
            continue
        joint: Any = bn.query([column.name, *used, name], given)
        values = np.linalg.svd(joint.probs.reshape(column.n_states, -1), compute_uv=False)
        found = int((values > NOTHING * values[0]).sum())
        if found > rank:
            used, rank = [*used, name], found
        if rank == column.n_states:
            break
    return used or list(near[:1]), rank
