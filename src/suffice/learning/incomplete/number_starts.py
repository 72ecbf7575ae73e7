"""Where iterations start with hidden numbers: random lines of the nodes that speak of them.

Lines begin with coefficients that are not 0, where EM would rest; those of a hidden number on hidden ones have sizes that add up
to less than 1, so that nothing grows along a sequence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.incomplete.components import Array, NodeFamily
from suffice.incomplete.numbers.units import Units
from suffice.statistics.configurations import sizes

NEAR_ONE = 0.95
"""The coefficients of hidden parents, in size, add up to at most this at a start."""


def drawn_line(
    node: NodeFamily, hidden: Collection[str], base: Callable[[str], str], units: Units, rng: np.random.Generator
) -> ConditionalGaussian:
    """A line of a node that speaks of hidden numbers, drawn: they tend to stay as they were, and show in their children."""
    shape, parents = sizes(node.finite), node.reals[:-1]
    b = np.stack([_draw_coefficients(node, r, hidden, base, rng) for r in parents], axis=-1) if parents else np.zeros((*shape, 0))
    if node.name in hidden and len(parents):
        inner = np.abs(b[..., [i for i, r in enumerate(parents) if r in hidden]]).sum(axis=-1, keepdims=True)
        b = b * np.minimum(1.0, NEAR_ONE / np.maximum(inner, 1e-300))
    v = (units.variance[node.name] or 1.0) * rng.uniform(0.1, 0.9, shape)
    a = units.mean[node.name] + 0.1 * np.sqrt(v) * rng.standard_normal(shape)
    return ConditionalGaussian(node.child, node.parents, a, b, v)


def _draw_coefficients(
    node: NodeFamily, parent: str, hidden: Collection[str], base: Callable[[str], str], rng: np.random.Generator
) -> Array:
    shape = sizes(node.finite)
    own = [r for r in node.reals[:-1] if base(r) == base(node.name)]
    if parent in own:
        return np.asarray(rng.uniform(0.3, NEAR_ONE, shape) / len(own))
    if parent not in hidden:
        return np.asarray(0.1 * rng.standard_normal(shape))
    if node.name in hidden:
        return np.asarray(0.3 * rng.standard_normal(shape))
    first = next(r for r in node.reals[:-1] if r in hidden)
    size = rng.uniform(0.5, 1.5, shape)
    return np.asarray(size if parent == first else size * rng.choice([-1.0, 1.0], shape))
