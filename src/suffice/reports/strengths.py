"""How strong the edges of a graph are, and why each is there: what the score loses without it, and what explains it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from suffice.errors import SufficeError
from suffice.families.named_families import families_of
from suffice.reports.subject import Subject
from suffice.structure.methods.orders import Orders
from suffice.structure.results.found import Found
from suffice.structure.search import problem_of

MOST_EXPLAINED, FEW_EXPLAINED = 200, 60
"""Edges that are explained, the strongest first: each takes some looking at other parents. Of graphs with more edges, fewer."""

MOST_EDGES = 5_000
"""Edges whose losses are found."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class Strengths:
    """A number for each edge, what it is, why the edge leads this way, and facts (which, what) that explain it."""

    what: str = ""
    values: Mapping[Pair, float] = field(default_factory=dict)
    directions: Mapping[Pair, str] = field(default_factory=dict)
    explained: Mapping[Pair, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    said: str = ""
    """Where the numbers come from, or why there are none."""


def strengths_of(subject: Subject, rows: Any) -> Strengths:
    """Those of a search, or of the graph of a network on its rows, or on the statistics that it was fitted from.

    >>> import suffice as sf
    >>> from suffice.reports.subject import subject_of
    >>> bn = sf.fit("x -> y", {"x": ["a", "b"] * 20, "y": ["u", "v"] * 20})
    >>> found = strengths_of(subject_of(bn), None)
    >>> round(found.values["x", "y"], 3), found.what
    (25.881, 'loss of BIC() without the edge')
    """
    found, said = subject.found, "as the search scored them"
    if found is None:
        found, said = _judged_graph(subject, rows)
    if found is None:
        return Strengths(said=said)
    try:
        if hasattr(found, "losses"):
            return _of_losses(found, said)
    except SufficeError as error:
        return Strengths(said=f"no strengths of edges: {error}")
    return Strengths(f"{found._strength}", dict(found.strengths), {}, _explanations(found, found.strengths), said)


def _of_losses(found: Any, said: str) -> Strengths:
    losses = {pair: loss for pair, loss in found.losses.items() if not math.isnan(loss)}
    what = f"loss of {found.problem.score!r} without the edge" if losses else ""
    edges = losses or dict.fromkeys((*found.cpdag.directed, *found.cpdag.undirected), 0.0)
    return Strengths(what, losses, found.directions, _explanations(found, edges), said if losses else "the method uses no score")


def _explanations(found: Any, edges: Mapping[Pair, float]) -> dict[Pair, tuple[tuple[str, str], ...]]:
    """What explains the strongest edges, as far as the data at hand can tell."""
    most = MOST_EXPLAINED if len(edges) <= MOST_EXPLAINED else FEW_EXPLAINED
    chosen = sorted(edges, key=lambda pair: (-abs(edges[pair]), pair))[:most]
    result = {}
    for pair in chosen:
        try:
            result[pair] = tuple((which, what) for which, what in found.explain(*_ask(found, pair)).lines() if what)
        except SufficeError:  # statistics of a fit know no other parents
            continue
    return result


def _ask(found: Any, pair: Pair) -> tuple[Any, ...]:
    return (pair,) if hasattr(found, "losses") else pair


def _judged_graph(subject: Subject, rows: Any) -> tuple[Found | None, str]:
    """The graph of a network as a search would have found it, and where its numbers come from; or why there are none."""
    if not subject.is_directed:
        return None, ""
    bn, seen = subject.model, rows
    if not bn.dag.edges:
        return None, ""
    if len(bn.dag.edges) > MOST_EDGES:
        return None, f"no strengths of more than {MOST_EDGES:,} edges"
    where = "on the rows of this report"
    if seen is None or set(seen.columns) != set(bn) or any(seen.missing.values()):
        why = "there are no rows" if seen is None else "the rows do not show all cells"
        seen, where = bn.statistics, "on the statistics that the network was fitted from"
        if seen is None:
            return None, f"no strengths of edges: {why}, and the network keeps no statistics"
    try:
        most = max(len(bn.dag.parents(name)) for name in bn.dag.nodes)
        method = Orders(max_parents=max(1, most))
        problem = problem_of(seen, None, None, families=families_of(bn, None) if seen is rows else None, method=method)
        score = problem.scores.total(problem.parents(bn.dag))
        return Found.at(problem, method, bn.dag, score, finished=True), where
    except SufficeError as error:
        return None, f"no strengths of edges: {error}"
