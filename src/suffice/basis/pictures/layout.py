"""Where the nodes and edges of a picture are, and whether they are in each other's way.

Lengths are in points (1/72 inch), y grows downwards.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

Point = tuple[float, float]
Edge = tuple[str, str]
Size = tuple[float, float]

Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""

SQUARE = 1.4
"""The width over height that a picture should have."""

AT_ONCE = 2**20
"""Pairs of a line and a box that are compared together."""


@dataclass(frozen=True)
class Layout:
    """The centre and size of each node, and the corners of the path of each edge, from parent to child."""

    centres: Mapping[str, Point]
    sizes: Mapping[str, Size]
    paths: Mapping[Edge, Sequence[Point]]

    def box(self, name: str) -> Box:
        """The borders of a node."""
        (x, y), (w, h) = self.centres[name], self.sizes[name]
        return x - w / 2, y - h / 2, x + w / 2, y + h / 2

    @property
    def bounds(self) -> Box:
        """What the picture takes."""
        boxes = [self.box(name) for name in self.centres]
        points = [p for path in self.paths.values() for p in path]
        xs = [x for a, _, b, _ in boxes for x in (a, b)] + [x for x, _ in points]
        ys = [y for _, a, _, b in boxes for y in (a, b)] + [y for _, y in points]
        return min(xs, default=0.0), min(ys, default=0.0), max(xs, default=0.0), max(ys, default=0.0)

    @property
    def proportion(self) -> float:
        """How far the picture is from a pleasant shape, whichever of its sides is too long."""
        left, top, right, bottom = self.bounds
        return abs(math.log(max(right - left, 1.0) / max(bottom - top, 1.0) / SQUARE))

    def move_to(self, x: float, y: float) -> Layout:
        """The same with its left and top corner there."""
        left, top, _, _ = self.bounds
        a, b = x - left, y - top
        centres = {name: (u + a, v + b) for name, (u, v) in self.centres.items()}
        return Layout(centres, self.sizes, {edge: [(u + a, v + b) for u, v in path] for edge, path in self.paths.items()})

    def collisions(self) -> list[tuple[Edge, str]]:
        """Each edge that touches a node which it does not join, and that node: there are none, or another layout is taken."""
        names = list(self.centres)
        lines = [(edge, a, b) for edge, path in self.paths.items() for a, b in pairwise(path)]
        boxes = np.array([self.box(name) for name in names], np.float64).reshape(-1, 4)
        step = max(1, AT_ONCE // max(1, len(names)))
        found: dict[tuple[Edge, str], None] = {}
        for start in range(0, len(lines), step):
            some = lines[start : start + step]
            ends = np.array([(*a, *b) for _, a, b in some], np.float64)
            for i, j in np.argwhere(_touch(ends, boxes)).tolist():
                if names[j] not in some[i][0]:
                    found[some[i][0], names[j]] = None
        return list(found)


Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]
Flags = np.ndarray[tuple[int, ...], np.dtype[np.bool_]]


def _touch(lines: Floats, boxes: Floats) -> Flags:
    """[i, j]: whether line i (x, y, x, y) touches box j: the part of the line within the box's columns meets that within its
    rows."""
    start, end = np.zeros((len(lines), len(boxes))), np.ones((len(lines), len(boxes)))
    for k in (0, 1):
        a, step = lines[:, k, None], (lines[:, k + 2] - lines[:, k])[:, None]
        low, high = boxes[:, k] - a, boxes[:, k + 2] - a
        with np.errstate(divide="ignore", invalid="ignore"):
            first, last = np.minimum(low / step, high / step), np.maximum(low / step, high / step)
        still, inside = step == 0, (low <= 0) & (high >= 0)
        start = np.maximum(start, np.where(still, np.where(inside, 0.0, 2.0), first))
        end = np.minimum(end, np.where(still, 1.0, last))
    return np.asarray(start <= end)
