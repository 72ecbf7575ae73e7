"""Missingness as part of the model: cells that are not missing at random, and whether the graph still identifies everything.

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

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from suffice.basis.variables import Finite, Variable
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, TooLarge, listing, nearest, note
from suffice.errors.remedies import argument, declaration, name_of
from suffice.families.regressions.logistic import Logistic
from suffice.graphs import Dag
from suffice.learning.incomplete.task import declared_hidden
from suffice.models.networks import BayesNet
from suffice.statistics.counts import MAX_CELLS

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
    variables: dict[str, Variable] = {**rows.select(columns).schema, **unseen}
    gaps = rows.select(columns).missing
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
    missing = rows.select(tuple(said)).missing
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
