"""How often the edges of a layout cross: for tests and for `benchmarks/pictures.py`."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from suffice.basis.pictures.layout import Layout


def crossings(at: Layout) -> int:
    """How often two edges that share no node cross: the fewer, the easier a picture is to read."""
    lines = [(edge, a, b) for edge, path in at.paths.items() for a, b in pairwise(path)]
    ends = np.array([(*a, *b) for _, a, b in lines], np.float64).reshape(-1, 4)
    number = {name: i for i, name in enumerate({name for edge, _, _ in lines for name in edge})}
    nodes = np.array([[number[edge[0]], number[edge[1]]] for edge, _, _ in lines]).reshape(-1, 2)
    total = 0
    for i in range(len(lines)):
        apart = (nodes[i + 1 :, :, None] != nodes[i]).all(axis=(1, 2))
        total += int((apart & _cross(ends[i], ends[i + 1 :])).sum())
    return total


def _cross(line: Any, others: Any) -> Any:
    """Whether each of the others crosses a line, in the midst of both."""

    def side(a: Any, b: Any, c: Any) -> Any:
        u, v = b - a, c - a
        return np.asarray(u[..., 0] * v[..., 1] - u[..., 1] * v[..., 0])

    a, b, c, d = line[:2], line[2:], others[:, :2], others[:, 2:]
    return np.asarray((side(a, b, c) * side(a, b, d) < 0) & (side(c, d, a) * side(c, d, b) < 0))
