"""The section of the graph: its picture, in which every node and edge leads to what is said of it, and the table of edges: how
strong each is, what the score loses without it, and what explains it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from suffice.basis.pictures import Picture
from suffice.basis.pictures.shapes import cut
from suffice.errors import SufficeError, quantity
from suffice.families.named_families import families_of
from suffice.interfaces.reports.markup import Content, Html, Row, bullets, cut_rows, element, join, name, paragraph, table
from suffice.interfaces.reports.subject import Subject
from suffice.structure.methods.orders import Orders
from suffice.structure.results.found import Found
from suffice.structure.search import problem_of

MOST_EXPLAINED, FEW_EXPLAINED = 200, 60
"""Edges that are explained, the strongest first: each takes some looking at other parents. Of graphs with more edges, fewer."""

MOST_LOSSES = 5_000
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
    """Those of a search, or of the graph of a network on its rows, or on the statistics that it was fitted from."""
    found, said = subject.found, "as the search scored them"
    if found is None:
        found, said = _judged_graph(subject, rows)
    if found is None:
        return Strengths(said=said)
    try:
        if hasattr(found, "losses"):
            losses = {pair: loss for pair, loss in found.losses.items() if not math.isnan(loss)}
            what = f"loss of {found.problem.score!r} without the edge" if losses else ""
            edges = losses or dict.fromkeys((*found.cpdag.directed, *found.cpdag.undirected), 0.0)
            said = said if losses else "the method uses no score"
            return Strengths(what, losses, found.directions, _explanations(found, edges), said)
    except SufficeError as error:
        return Strengths(said=f"no strengths of edges: {error}")
    return Strengths(f"{found._strength}", dict(found.strengths), {}, _explanations(found, found.strengths), said)


def _explanations(found: Any, edges: Mapping[Pair, float]) -> dict[Pair, tuple[tuple[str, str], ...]]:
    """What explains the strongest edges, as far as the data at hand can tell."""
    most = MOST_EXPLAINED if len(edges) <= MOST_EXPLAINED else FEW_EXPLAINED
    chosen = sorted(edges, key=lambda pair: (-abs(edges[pair]), pair))[:most]
    result = {}
    for pair in chosen:
        try:
            told = found.explain(pair) if hasattr(found, "losses") else found.explain(*pair)
            result[pair] = tuple((which, what) for which, what in told.lines() if what)
        except SufficeError:  # statistics of a fit know no other parents
            continue
    return result


def _judged_graph(subject: Subject, rows: Any) -> tuple[Found | None, str]:
    """The graph of a network as a search would have found it, and where its numbers come from; or why there are none."""
    bn, seen = subject.model, rows
    if not subject.is_directed or not bn.dag.edges:
        return None, ""
    if len(bn.dag.edges) > MOST_LOSSES:
        return None, f"no strengths of more than {MOST_LOSSES:,} edges"
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


BARS = 60
"""Nodes up to which the picture shows beliefs."""

WHOLE_PAGE = 2200.0
"""A picture that is wider, in points, is not made smaller to fit the page, unless one asks for it."""

MOST_EDGES = 400
"""Edges of the table; the others are in the picture only."""

LOSS = "without it"
"""A fact that stands in a column of its own."""

FACT = 400
"""Letters of a fact that explains an edge."""


def picture_of(subject: Subject, strengths: Strengths) -> Picture:
    """The picture of a model: with beliefs where there are few nodes, edges as wide as they are strong."""
    model = subject.model
    believing = subject.has_rows and len(subject.names) <= BARS
    scene: Picture = model.picture() if believing else model._scene()
    scene = scene.weigh_edges(strengths.values, strengths.what) if strengths.values else scene
    told = {pair: "\n".join(f"{which}: {what}" for which, what in facts) for pair, facts in strengths.explained.items()}
    edges = [replace(e, title=_title(e, told.get((e.tail, e.head), ""))) for e in scene.edges]
    return replace(scene, edges=tuple(edges))


def _title(edge: Any, facts: str) -> str:
    arrow = "->" if edge.arrow else "--"
    own = edge.title or f"{cut(edge.tail, FACT)} {arrow} {cut(edge.head, FACT)}"
    return f"{own}\n{facts}" if facts else str(edge.title)


def graph_section(subject: Subject, strengths: Strengths, links: Mapping[str, str]) -> Html:
    """The picture and the edges."""
    picture = picture_of(subject, strengths)
    edges = sorted(picture.edges, key=lambda e: (-abs(strengths.values.get((e.tail, e.head), 0.0)), e.tail, e.head))
    shown = edges[:MOST_EDGES]
    at: dict[Pair, str] = {(e.tail, e.head): f"#e{i}" for i, e in enumerate(shown)}
    return join([_figure(picture, {**links, **at}), _edges(shown, len(edges), strengths, links)])


def _figure(picture: Picture, links: Mapping[Any, str]) -> Html:
    n, m = len(picture.nodes), len(picture.edges)
    if not n:
        return paragraph("The graph has no nodes.")
    drawn = picture.svg(links)
    width = float(drawn.partition('width="')[2].partition('"')[0])
    svg = Html(drawn.replace(' xmlns="http://www.w3.org/2000/svg"', "", 1))
    checked = " checked" if width <= WHOLE_PAGE else ""
    size = Html(f'<input type="checkbox" id="fit"{checked}><label for="fit">fit to the page</label>')
    words = f"{quantity(n, 'node')}, {quantity(m, 'edge')}. Each leads to what is said of it; point at one, or move there by Tab."
    frame = element("div", svg, class_="graph", tabindex=0, role="region", aria_label="the graph")
    panel = element("div", id="why", class_="panel", role="status", hidden=True)
    return element("figure", size, frame, panel, element("figcaption", words), class_="picture")


def _edges(edges: Sequence[Any], total: int, strengths: Strengths, links: Mapping[str, str]) -> Html:
    """A row for each edge: how strong it is, why it leads this way, and what explains it."""
    said = paragraph(f"Strengths: {strengths.what}, {strengths.said}." if strengths.what else f"{strengths.said.capitalize()}.")
    if not edges:
        return Html() if not strengths.said else said
    explained = bool(strengths.explained)
    columns = {"strength": bool(strengths.what), "direction": bool(strengths.directions) and not explained, "why": explained}
    rows = []
    for i, e in enumerate(edges):
        pair = (e.tail, e.head)
        label = join([name(e.tail, links.get(e.tail, "")), " → " if e.arrow else " – ", name(e.head, links.get(e.head, ""))])
        facts = [fact for fact in strengths.explained.get(pair, ()) if fact[0] != LOSS]
        value = strengths.values.get(pair)
        cells: dict[str, Content] = {
            "strength": None if value is None else Html(f"{value:,.2f}".replace("-", "−")),
            "direction": strengths.directions.get(pair, ""),
            "why": bullets((join([element("b", which), " ", cut(what, FACT)]) for which, what in facts), class_="why"),
        }
        own = [(cells[key], "n" if key == "strength" else "") for key, there in columns.items() if there]
        rows.append(Row(label, *own, names=pair, id=f"e{i}"))
    heads = {"strength": strengths.what, "direction": "direction", "why": "explained"}
    html = table(["edge", *(heads[key] for key, there in columns.items() if there)], rows, "Edges, the strongest first"
                 if strengths.what else "Edges")  # fmt: skip
    note = cut_rows(len(edges), total, "edge", "that are strongest" if strengths.what else "that come first")
    few = len(strengths.explained) < len(edges) and strengths.explained
    more = f"Explained: the {len(strengths.explained):,} strongest." if few else ""
    return join([said if strengths.said else "", html, *(paragraph(t, class_="cut") for t in (note, more) if t)])
