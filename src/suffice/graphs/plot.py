"""Drawings of graphs in layers: parents above children; of undirected ones by their distance from a first node."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from suffice.errors import GraphError

MAX_SVG_NODES = 100


def layers(order: Sequence[str], parents: Mapping[str, Sequence[str]]) -> dict[str, tuple[float, int]]:
    """The place (x, layer) of each node: its layer is the length of the longest path to it, x is near its parents.

    >>> layers("abc", {"a": [], "b": [], "c": ["a", "b"]})
    {'a': (-0.5, 0), 'b': (0.5, 0), 'c': (0.0, 1)}
    """
    depth: dict[str, int] = {}
    rows: list[list[str]] = []
    for x in order:
        depth[x] = 1 + max((depth[p] for p in parents[x]), default=-1)
        if depth[x] == len(rows):
            rows.append([])
        rows[depth[x]].append(x)
    place: dict[str, tuple[float, int]] = {}
    for layer, row in enumerate(rows):
        middle = {x: sum(place[p][0] for p in parents[x]) / max(len(parents[x]), 1) for x in row}
        for i, x in enumerate(sorted(row, key=lambda x: (middle[x], x))):
            place[x] = (i - (len(row) - 1) / 2, layer)
    return place


def _short(name: str, limit: int = 16) -> str:
    return name if len(name) <= limit else name[: limit - 1] + "…"


def svg(order: Sequence[str], parents: Mapping[str, Sequence[str]], text: str, *, heads: bool = True) -> str:
    """The graph as an SVG picture for notebooks; past 100 nodes, the text. Without `heads` arrows are lines.

    >>> svg("ab", {"a": [], "b": ["a"]}, "").count("<rect")
    2
    """
    if not 0 < len(order) <= MAX_SVG_NODES:
        return f"<code>{html.escape(text)}</code>"
    place = layers(order, parents)
    left = min(x for x, _ in place.values())
    at = {name: (round(130 * (x - left) + 65), 70 * layer + 25) for name, (x, layer) in place.items()}
    width, height = max(x for x, _ in at.values()) + 65, max(y for _, y in at.values()) + 25
    head = '<marker id="suffice-head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" font-size="12">'
    ]
    parts += [f'<defs>{head}<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>']
    for child in order:
        for parent in parents[child]:
            (x1, y1), (x2, y2) = at[parent], at[child]
            line = f'x1="{x1}" y1="{y1 + 14}" x2="{x2}" y2="{y2 - 14}"'
            end = ' marker-end="url(#suffice-head)"' if heads else ""
            parts.append(f'<line {line} stroke="#555"{end}/>')
    for name, (x, y) in at.items():
        parts.append(
            f'<g><title>{html.escape(name)}</title><rect x="{x - 58}" y="{y - 14}" width="116" height="28" rx="14" fill="#fff"'
        )
        parts.append(f' stroke="#555"/><text x="{x}" y="{y + 4}" text-anchor="middle">{html.escape(_short(name))}</text></g>')
    return "".join(parts) + "</svg>"


def svg_lines(nodes: Sequence[str], neighbours: Mapping[str, Sequence[str]], text: str) -> str:
    """The same of an undirected graph.

    >>> svg_lines("ab", {"a": ["b"], "b": ["a"]}, "").count("marker-end")
    0
    """
    return svg(*_laid_out(nodes, neighbours), text, heads=False)


def draw_lines(nodes: Sequence[str], neighbours: Mapping[str, Sequence[str]], path: Any, ax: Any) -> Any:
    """An undirected graph drawn with matplotlib."""
    return draw(*_laid_out(nodes, neighbours), path, ax, heads=False)


def _laid_out(nodes: Sequence[str], neighbours: Mapping[str, Sequence[str]]) -> tuple[list[str], dict[str, list[str]]]:
    """The nodes as a breadth-first walk comes by them, and of each those neighbours that came before it."""
    order: dict[str, None] = {}
    for x in nodes:
        queue = [] if x in order else [x]
        order[x] = None
        for y in queue:
            fresh = [z for z in neighbours[y] if z not in order]
            order.update(dict.fromkeys(fresh))
            queue += fresh
    place = {x: i for i, x in enumerate(order)}
    return list(order), {x: [y for y in neighbours[x] if place[y] < place[x]] for x in order}


def draw(order: Sequence[str], parents: Mapping[str, Sequence[str]], path: Any, ax: Any, *, heads: bool = True) -> Any:
    """Draw the graph with matplotlib, without a window: on `ax` or on a figure of its own, saved to `path` when given."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise GraphError("plotting needs matplotlib: pip install suffice[plot]") from None
    place = {name: (x, -layer) for name, (x, layer) in layers(order, parents).items()}
    xs, ys = [x for x, _ in place.values()] or [0.0], [y for _, y in place.values()] or [0]
    if ax is None:
        size = (min(2 + 1.4 * (max(xs) - min(xs)), 40), min(1.5 + max(ys) - min(ys), 40))
        ax = Figure(figsize=size, layout="constrained").add_subplot()
    for child in order:
        for parent in parents[child]:
            arrow = {"arrowstyle": "-|>" if heads else "-", "color": "0.4", "shrinkA": 14, "shrinkB": 14}
            ax.annotate("", xy=place[child], xytext=place[parent], arrowprops=arrow)
    for name, (x, y) in place.items():
        box = {"boxstyle": "round,pad=0.4", "facecolor": "white", "edgecolor": "0.4"}
        ax.text(x, y, _short(name), ha="center", va="center", bbox=box, parse_math=False)
    ax.set_xlim(min(xs) - 0.7, max(xs) + 0.7)
    ax.set_ylim(min(ys) - 0.5, max(ys) + 0.5)
    ax.set_axis_off()
    if path is not None:
        ax.figure.savefig(path)
    return ax
