"""Missing numbers of many patterns at once: patterns that touch the same nodes and lack as many numbers are solved side by side.

What a pattern lacks is a choice of columns of one matrix, that of the nodes (see `incomplete.numbers.normal`): e = M x − a, of
which A are the columns that are missing, and C those that are there. So a hundred patterns are one product of stacked matrices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from suffice.engines.gather import Groups
from suffice.incomplete.components import Line, NodeFamily
from suffice.incomplete.numbers.normal import collect_groups, solve_missing, some_columns
from suffice.incomplete.numbers.patterns import Component
from suffice.statistics.moments import Cases, Spread

Array = npt.NDArray[np.float64]
Index = npt.NDArray[np.int64]

CELLS = 2**20
"""A batch has at most so many cells of matrices."""


@dataclass(frozen=True, eq=False)
class PatternBatch:
    """Moments of rows that lack numbers. Of each set of rows (first axis): where the missing and the observed numbers stand among
    `names`, and the configuration of each node."""

    nodes: tuple[NodeFamily, ...]
    names: tuple[str, ...]
    missing: Index
    observed: Index
    configurations: Index
    spread: Spread

    def expected(self, lines: Mapping[str, Line]) -> tuple[float, dict[str, Groups]]:
        """ln p of what these rows observed, and the expected moments of each node."""
        M, a, v = self._matrix(lines)
        A, C = (np.take_along_axis(M, at[:, None, :], axis=2) for at in (self.missing, self.observed))
        c = solve_missing(A, C, a, v)
        N, o, _, S = self.spread
        off = (c.residual_map @ o[..., None])[..., 0] + c.residual_constant
        square = np.einsum("gro,gro->g", c.residual_map @ S, c.residual_map) + N * (off * off).sum(axis=-1)
        n, (m, k) = len(self.names), (self.missing.shape[1], self.observed.shape[1])
        each = np.arange(len(N))[:, None]
        mean, T = np.empty((len(N), n)), np.zeros((len(N), n, k))
        mean[each, self.missing] = (c.mean_map @ o[..., None])[..., 0] + c.mean_constant
        mean[each, self.observed] = o
        T[each, self.missing], T[each, self.observed, np.arange(k)] = c.mean_map, 1.0
        scatter = T @ S @ np.swapaxes(T, 1, 2)
        if m:
            scatter[each[..., None], self.missing[:, :, None], self.missing[:, None, :]] += N[:, None, None] * c.covariance
        whole = Spread(N, mean, np.zeros_like(mean), scatter)
        moments = {
            node.name: collect_groups(keys, some_columns(whole, [self.names.index(r) for r in node.reals]))
            for node, keys in zip(self.nodes, self.configurations, strict=True)
        }
        return float(N @ c.log_scale - 0.5 * square.sum()), moments

    def _matrix(self, lines: Mapping[str, Line]) -> tuple[Array, Array, Array]:
        """M, a and v of the nodes, for each set of rows."""
        n, q = len(self.missing), len(self.nodes)
        M, a, v = np.zeros((n, q, len(self.names))), np.empty((n, q)), np.empty((n, q))
        for i, (node, keys) in enumerate(zip(self.nodes, self.configurations, strict=True)):
            line, (*parents, child) = lines[node.name], [self.names.index(r) for r in node.reals]
            a[:, i], v[:, i] = line.intercept[keys], line.variance[keys]
            M[:, i, parents], M[:, i, child] = -line.coefficients[keys], 1.0
        return M, a, v


def pattern_batches(parts: Iterable[tuple[Component, Cases]]) -> Iterator[PatternBatch]:
    """The moments of components without finite unknowns, those together that can be."""
    alike: dict[tuple[object, ...], list[PatternBatch]] = {}
    for component, cases in parts:
        batch = _of(component, cases)
        alike.setdefault((tuple(node.name for node in batch.nodes), batch.missing.shape[1]), []).append(batch)
    for batches in alike.values():
        whole = _join_batches(batches)
        most = max(1, CELLS // (len(whole.nodes) ** 2 + len(whole.names) ** 2))
        yield from (_cut(whole, slice(i, i + most)) for i in range(0, len(whole.missing), most))


def _of(component: Component, cases: Cases) -> PatternBatch:
    """A component by itself."""
    names, size = tuple(sorted((*component.unknown, *component.reals))), len(cases.spread.weight)
    missing, observed = (
        np.tile(np.array([names.index(n) for n in part], np.int64), (size, 1)) for part in (component.unknown, component.reals)
    )
    keys = [np.broadcast_to(local.index(cases.codes)[0], size) for local in component.joint]
    nodes = tuple(local.node for local in component.joint)
    return PatternBatch(nodes, names, missing, observed, np.array(keys, np.int64), cases.spread)


def _join_batches(batches: list[PatternBatch]) -> PatternBatch:
    missing, observed = (np.concatenate(part) for part in zip(*((b.missing, b.observed) for b in batches), strict=True))
    keys = np.concatenate([b.configurations for b in batches], axis=1)
    spread = Spread(*(np.concatenate(part) for part in zip(*(b.spread for b in batches), strict=True)))
    return PatternBatch(batches[0].nodes, batches[0].names, missing, observed, keys, spread)


def _cut(batch: PatternBatch, some: slice) -> PatternBatch:
    spread = Spread(*(part[some] for part in batch.spread))
    return PatternBatch(
        batch.nodes, batch.names, batch.missing[some], batch.observed[some], batch.configurations[:, some], spread
    )
