"""The section of the graph: its picture, in which every node and edge leads to what is said of it, and the table of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from suffice.errors import quantity
from suffice.pictures import Picture
from suffice.pictures.shapes import cut
from suffice.reports.markup import Content, Html, Row, bullets, cut_rows, element, join, name, paragraph, table
from suffice.reports.strengths import Pair, Strengths
from suffice.reports.subject import Subject

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
    """The picture of a model: with beliefs where there are few nodes, edges as wide as they are strong.

    >>> import suffice as sf
    >>> from suffice.reports.subject import subject_of
    >>> picture = picture_of(subject_of(sf.load("asia")), Strengths("loss", {("asia", "tub"): 2.5}))
    >>> picture.widths, len(picture.nodes[0].bars)
    (((1.0, 'loss 2.5'),), 2)
    """
    model = subject.model
    believing = subject.has_rows and len(subject.names) <= BARS
    scene: Picture = model.picture() if believing else model._scene()
    scene = scene.weighed(strengths.values, strengths.what) if strengths.values else scene
    told = {pair: "\n".join(f"{which}: {what}" for which, what in facts) for pair, facts in strengths.explained.items()}
    edges = [replace(e, title=_title(e, told.get((e.tail, e.head), ""))) for e in scene.edges]
    return replace(scene, edges=tuple(edges))


def _title(edge: Any, facts: str) -> str:
    arrow = "->" if edge.arrow else "--"
    own = edge.title or f"{cut(edge.tail, FACT)} {arrow} {cut(edge.head, FACT)}"
    return f"{own}\n{facts}" if facts else str(edge.title)


def graph_section(subject: Subject, strengths: Strengths, links: Mapping[str, str]) -> Html:
    """The picture and the edges.

    >>> import suffice as sf
    >>> from suffice.reports.subject import subject_of
    >>> html = graph_section(subject_of(sf.load("asia")), Strengths(), {})
    >>> html.count("<svg"), html.count("<tr")
    (1, 9)
    """
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
    size = Html(
        f'<input type="checkbox" id="fit"{" checked" if width <= WHOLE_PAGE else ""}><label for="fit">fit to the page</label>'
    )
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
