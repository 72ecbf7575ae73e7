"""What a picture of a graph shows, by name. Where that goes and how it is drawn is decided by those who draw it."""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal, Self

from suffice.errors import GraphError, listing, nearest

Mark = Literal["", "observed", "set", "focus", "past"]
Style = Literal["solid", "dashed", "dotted", "double"]

MOST_BARS = 12
"""Bars of a node; of more states the most probable are shown."""


COMPARED: tuple[tuple[Style, str], ...] = (
    ("solid", "in both"),
    ("double", "only here"),
    ("dotted", "only there"),
    ("dashed", "in both, but with another direction"),
)
"""What the lines of two graphs in one picture mean."""


@dataclass(frozen=True)
class Bar:
    """A number from 0 to 1 with its label, the interval it may lie in, and where it was before."""

    label: str
    value: float
    low: float | None = None
    high: float | None = None
    before: float | None = None


@dataclass(frozen=True)
class Curve:
    """A density: points from left to right, those it had before, and the ends of the interval that its mean may lie in."""

    points: tuple[tuple[float, float], ...]
    before: tuple[tuple[float, float], ...] = ()
    mean: tuple[float, ...] = ()


@dataclass(frozen=True)
class PictureNode:
    """A node: its name, the heading that stands there instead of it, bars, a curve or lines of text below, and what was done to
    it."""

    name: str
    heading: str = ""
    bars: tuple[Bar, ...] = ()
    lines: tuple[str, ...] = ()
    mark: Mark = ""
    curve: Curve | None = None

    def few_bars(self) -> tuple[tuple[Bar, ...], str]:
        """The bars that are shown, and what is said of the others."""
        if len(self.bars) <= MOST_BARS:
            return self.bars, ""
        kept = sorted(sorted(range(len(self.bars)), key=lambda i: -self.bars[i].value)[:MOST_BARS])
        rest = sum(bar.value for i, bar in enumerate(self.bars) if i not in kept)
        return tuple(self.bars[i] for i in kept), f"{len(self.bars) - MOST_BARS} more states: {rest:.4g}"


@dataclass(frozen=True)
class PictureEdge:
    """An edge: from, to, how strong from 0 to 1 where that is known, its line, whether it has a head, and what is said of it."""

    tail: str
    head: str
    strength: float | None = None
    style: Style = "solid"
    arrow: bool = True
    title: str = ""


@dataclass(frozen=True)
class Scene:
    """Nodes and edges, what the lines mean, and what is said below."""

    nodes: tuple[PictureNode, ...]
    edges: tuple[PictureEdge, ...] = ()
    caption: str = ""
    legend: tuple[tuple[Style, str], ...] = field(default=())
    widths: tuple[tuple[float, str], ...] = field(default=())
    """What strengths mean: some of them, with words."""

    @classmethod
    def of(cls, parents: Mapping[str, Iterable[str]], names: Iterable[str]) -> Self:
        """That of a directed graph, by the parents of each node."""
        edges = tuple(PictureEdge(a, b) for b, above in parents.items() for a in above)
        return cls(tuple(map(PictureNode, names)), edges)

    def weigh_edges(self, weights: Mapping[tuple[str, str], float], what: str, most: float | None = None) -> Self:
        """The same with edges as wide as their weights, up to the largest or to `most`; the legend says `what` they are."""
        pairs = [(e.tail, e.head) for e in self.edges]
        own = {pair: abs(weights[pair]) for pair in pairs if pair in weights and weights[pair] == weights[pair]}
        largest = most or max((w for w in own.values() if w < math.inf), default=0.0) or 1.0
        edges = []
        for e, pair in zip(self.edges, pairs, strict=True):
            if pair in own:
                title = f"{e.tail} {'->' if e.arrow else '--'} {e.head}: {what} {weights[pair]:,.4g}"
                e = replace(e, strength=min(1.0, own[pair] / largest), title=title)
            edges.append(e)
        ends = [min(own.values()), largest] if own else []
        shown = {f"{what} {end:,.4g}": min(1.0, end / largest) for end in ends}
        return replace(self, edges=tuple(edges), widths=tuple((share, words) for words, share in shown.items()))

    def noting(self, text: str) -> Self:
        """The same with a sentence more below."""
        return replace(self, caption="; ".join(part for part in (self.caption, text) if part))

    def against(self, other: Scene) -> Self:
        """The nodes and edges of both, told apart by their lines."""
        here, there = ({frozenset((e.tail, e.head)): e for e in p.edges} for p in (self, other))

        def style(pair: frozenset[str]) -> Style:
            if pair not in here or pair not in there:
                return "double" if pair in here else "dotted"
            a, b = here[pair], there[pair]
            return "solid" if a.arrow == b.arrow and (not a.arrow or a.tail == b.tail) else "dashed"

        edges = [replace(edge, style=style(pair), strength=None, title="") for pair, edge in (there | here).items()]
        names = {node.name for node in self.nodes}
        nodes = (*self.nodes, *(node for node in other.nodes if node.name not in names))
        ordered = tuple(sorted(edges, key=lambda e: (e.tail, e.head)))
        return replace(self, nodes=nodes, edges=ordered, legend=COMPARED, widths=())

    def near(self, focus: str | Collection[str] | None, steps: int = 1) -> Self:
        """The part around some nodes: all that are at most so many edges from one of them, whichever way these lead."""
        if focus is None:
            return self
        middle = [focus] if isinstance(focus, str) else list(focus)
        names = [node.name for node in self.nodes]
        if unknown := [name for name in middle if name not in names]:
            raise GraphError(f"the picture has no node {unknown[0]!r}{nearest(str(unknown[0]), names)}")
        if steps < 0 or int(steps) != steps:
            raise GraphError(f"steps are a number of edges from the focus, from 0 up, not {steps!r}")
        kept, beside = set(middle), self._beside
        for _ in range(int(steps)):
            kept |= {other for name in kept for other in beside[name]}
        nodes = [n if n.name not in middle or n.mark else replace(n, mark="focus") for n in self.nodes if n.name in kept]
        edges = tuple(edge for edge in self.edges if edge.tail in kept and edge.head in kept)
        said = f"{len(nodes)} of {len(names)} nodes: at most {steps} edge{'s' * (steps != 1)} from {listing(middle, style='str')}"
        return replace(self, nodes=tuple(nodes), edges=edges).noting(said)

    @cached_property
    def order(self) -> list[str]:
        """The nodes so that arrows lead on, as far as there is such an order, whatever order they were given in."""
        names = sorted(node.name for node in self.nodes)
        arrows = [(e.tail, e.head) for e in self.edges if e.arrow]
        if not arrows:
            return self._by_distance(names)
        below: dict[str, list[str]] = {name: [] for name in names}
        above = dict.fromkeys(names, 0)
        for tail, head in sorted(set(arrows)):
            below[tail].append(head)
            above[head] += 1
        ready, done = [name for name in names if not above[name]], dict[str, None]()
        while len(done) < len(names):
            if not ready:  # a cycle, as two graphs in one picture may have: it is cut where the fewest edges lead
                ready = [min((name for name in names if name not in done), key=lambda name: (above[name], name))]
            name = heapq.heappop(ready)
            if name in done:
                continue
            done[name] = None
            for child in below[name]:
                above[child] -= 1
                if not above[child] and child not in done:
                    heapq.heappush(ready, child)
        return list(done)

    @property
    def _beside(self) -> dict[str, set[str]]:
        """What each node is joined to, whichever way edges lead."""
        beside: dict[str, set[str]] = {node.name: set() for node in self.nodes}
        for edge in self.edges:
            beside[edge.tail].add(edge.head)
            beside[edge.head].add(edge.tail)
        return beside

    def _by_distance(self, names: Sequence[str]) -> list[str]:
        """Breadth first over lines without heads, each part from the node with the most neighbours."""
        order, beside = dict[str, None](), self._beside
        for name in sorted(names, key=lambda name: (-len(beside[name]), name)):
            queue = [] if name in order else [name]
            order.setdefault(name)
            for x in queue:
                fresh = sorted(y for y in beside[x] if y not in order)
                order.update(dict.fromkeys(fresh))
                queue += fresh
        return list(order)
