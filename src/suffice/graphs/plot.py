"""Drawings of graphs: parents above children; of undirected ones by their distance from a first node. `layout` says where."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

from suffice.errors import GraphError
from suffice.graphs.layout import HEIGHT, laid_out, shown

MAX_SVG_NODES = 100

MARGIN = 12.0
"""Around a picture, in points."""


def svg(order: Sequence[str], parents: Mapping[str, Sequence[str]], text: str, *, heads: bool = True) -> str:
    """The graph as an SVG picture for notebooks; past 100 nodes, the text. Without `heads` arrows are lines.

    >>> svg("ab", {"a": [], "b": ["a"]}, "").count("<rect")
    2
    """
    if not 0 < len(order) <= MAX_SVG_NODES:
        return f"<code>{html.escape(text)}</code>"
    at = laid_out(order, parents)
    left, top, right, bottom = at.bounds
    box = f"{left - MARGIN:g} {top - MARGIN:g} {right - left + 2 * MARGIN:g} {bottom - top + 2 * MARGIN:g}"
    size = f'width="{right - left + 2 * MARGIN:g}" height="{bottom - top + 2 * MARGIN:g}"'
    head = '<marker id="suffice-head" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="{box}" font-family="sans-serif" font-size="12">']
    parts += [f'<defs>{head}<path d="M0 0L8 4L0 8z" fill="#555"/></marker></defs>']
    end = ' marker-end="url(#suffice-head)"' if heads else ""
    for path in at.paths.values():
        points = " ".join(f"{x:g},{y:g}" for x, y in path)
        parts.append(f'<polyline points="{points}" fill="none" stroke="#555"{end}/>')
    for name, (x, y) in at.centres.items():
        rect = f'x="{x - at.widths[name] / 2:g}" y="{y - HEIGHT / 2:g}" width="{at.widths[name]:g}" height="{HEIGHT:g}" rx="3"'
        parts.append(f'<g><title>{html.escape(name)}</title><rect {rect} fill="#fff" stroke="#555"/>')
        parts.append(f'<text x="{x:g}" y="{y + 4:g}" text-anchor="middle">{html.escape(shown(name))}</text></g>')
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
    """Draw the graph with matplotlib: on `ax`; without one on a figure that is saved to `path`, or on pyplot's current figure."""
    try:
        from matplotlib.patches import FancyArrowPatch, FancyBboxPatch
        from matplotlib.path import Path
    except ImportError:
        raise GraphError("plotting needs matplotlib: pip install suffice[plot]") from None
    at = laid_out(order, parents)
    left, top, right, bottom = at.bounds if at.centres else (0.0, 0.0, 40.0, 40.0)
    size = (right - left + 2 * MARGIN, bottom - top + 2 * MARGIN)
    ax = _axes(path, size) if ax is None else ax
    ax.set_xlim(left - MARGIN, right + MARGIN)
    ax.set_ylim(bottom + MARGIN, top - MARGIN)
    ax.set_aspect("equal")
    ax.set_axis_off()
    scale = _scale(ax, size)
    style: Any = {"arrowstyle": "-|>" if heads else "-", "mutation_scale": 10 * scale, "shrinkA": 0, "shrinkB": 0}
    style |= {"linewidth": scale, "joinstyle": "round", "capstyle": "butt", "color": "0.35"}
    for points in at.paths.values():
        ax.add_patch(FancyArrowPatch(path=Path(points), **style))
    for name, (x, y) in at.centres.items():
        a, b, _, _ = at.box(name)
        rounded: Any = {"boxstyle": "round,pad=0,rounding_size=3", "facecolor": "white", "edgecolor": "0.35", "linewidth": scale}
        ax.add_patch(FancyBboxPatch((a, b), at.widths[name], HEIGHT, **rounded))
        ax.text(x, y, shown(name), ha="center", va="center", fontsize=10 * scale, parse_math=False)
    if path is not None:
        ax.figure.savefig(path)
    return ax


def _axes(path: Any, size: tuple[float, float]) -> Any:
    """Axes that fill a figure of this size in points. What goes to a file needs no window; all else is pyplot's to show, on its
    current figure or, where there is something on that already, on a new one."""
    inches = (min(size[0] / 72, 40), min(size[1] / 72, 40))
    if path is not None:
        from matplotlib.figure import Figure

        return Figure(figsize=inches).add_axes((0, 0, 1, 1))
    import matplotlib.pyplot as plt

    if not plt.get_fignums() or any(ax.has_data() for ax in plt.gcf().axes):
        return plt.figure(figsize=inches).add_axes((0, 0, 1, 1))
    return plt.gca()


def _scale(ax: Any, size: tuple[float, float]) -> float:
    """How large a point of the layout is on the axes, of which letters and lines should know."""
    area = ax.get_window_extent()
    points = 72 / ax.figure.dpi
    return float(min(area.width * points / size[0], area.height * points / size[1], 1.5))
