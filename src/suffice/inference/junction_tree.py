"""All marginals at once: one tree of products for a whole network, compiled once and used with any evidence.

Messages go up the tree and down again (Shenoy & Shafer 1990; the binary tree: Shenoy 1997, Int. J. Approx. Reasoning 17, p. 239).
Observed variables are sliced out of every table as if they had one state, so that the more is observed, the less is done.
Nothing is ever divided, so zeros need no care; tables are scaled by powers of two, so small numbers do not vanish.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from suffice.errors import TooLarge, bytes_in_words
from suffice.inference.logs import Logs
from suffice.inference.network import Array, Ints, Network, Soft
from suffice.inference.orders import ASKING, COMPILING, greedy_order
from suffice.inference.run import SPARE, Plan, with_likelihoods
from suffice.inference.tree import arranged, part_of

MAX_CELLS = 2.0**34
"""More products than this in one pass up are refused: a minute of work or so."""
MAX_BYTES = 2.0**33
RETRY_CELLS = 4_000_000
"""From so many cells on, another order is looked for that suits the evidence better than the compiled one."""


KEPT_PLANS = 8


class Marginals(NamedTuple):
    """p(v | evidence) of every variable, one after another: those of variable v are `probs[start[v]:start[v + 1]]`.

    Where the evidence is impossible, `log_prob` is −inf and the probabilities are NaN.
    """

    probs: Array
    start: Ints
    log_prob: float


class JunctionTree:
    """A network compiled for all marginals.

    >>> net = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.array([[1.0, 0.0], [0.5, 0.5]]))])
    >>> JunctionTree.of(net).marginals(np.array([-1, 0])).probs.round(4)
    array([0.6667, 0.3333, 1.    , 0.    ])
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self.network = plan.network
        self.start = np.concatenate([[0], np.cumsum(self.network.sizes)]).astype(np.int64)
        sizes = self.network.sizes[plan.tree.variables]
        self._cells = plan.tree.cells(sizes)
        self._spare: list[tuple[Ints, Array, Array]] = []
        self._others: dict[bytes, Plan] = {}

    @classmethod
    def of(cls, network: Network) -> JunctionTree:
        """Compile: look for a good order of elimination and arrange its tables; no table is made yet."""
        part = part_of(network, np.arange(network.n_factors), network.unobserved())
        found = greedy_order(network, part, patience=COMPILING)
        return cls(Plan(network, arranged(network, part, found.order)))

    @property
    def n_cells(self) -> float:
        """Products in one pass up the tree when nothing is observed: what time is proportional to."""
        return float(self._cells.sum())

    @cached_property
    def treewidth(self) -> int:
        """One less than the most variables in one product: an upper bound, the best order found."""
        tree = self._plan.tree
        widths = np.diff(tree.dim_start[: tree.n_tables + 1])
        return int(widths.max(initial=1)) - 1

    @property
    def largest(self) -> float:
        """Cells of the largest product."""
        return float(self._cells.max(initial=1.0))

    @cached_property
    def n_bytes(self) -> float:
        """Memory for all tables when nothing is observed; products are summed as they are made, and not held."""
        n = self._plan.n_numbers(self.network.unobserved(), down=True)
        return float("inf") if n < 0 else 8.0 * n

    def marginals(self, codes: Ints, soft: Soft | None = None) -> Marginals:
        """p(v | evidence) of every variable v, and ln p(evidence)."""
        tables = with_likelihoods(self.network, soft)
        plan = self._plan if self.n_cells < RETRY_CELLS else self._suited(codes)
        out = np.empty(self.start[-1])
        log_prob = self._run(plan, codes, tables, out)
        if log_prob == -np.inf:
            out[:] = np.nan
        return Marginals(out, self.start, log_prob)

    def _run(self, plan: Plan, codes: Ints, tables: Array, out: Array) -> float:
        """Fill `out` with the marginals; ln p(evidence). Numbers too small for floats are counted in logs instead."""
        from suffice.kernels.products import all_marginals

        tree, net = plan.tree, self.network
        spare = self._spare.pop() if plan is self._plan and self._spare else self._buffers(plan, codes)
        scratch, least, buffer = spare
        log_prob = all_marginals(
            tree.n_leaves,
            tree.n_tables,
            plan.begin,
            tree.dim_start,
            tree.dim_place,
            tree.dim_flag,
            tree.dim_stride,
            tree.left,
            tree.right,
            tree.factor,
            plan.wanted,
            plan.roots,
            plan.sources,
            tree.variables,
            net.sizes,
            net.scope_start,
            net.scopes,
            net.strides,
            net.table_start,
            codes,
            tables,
            self.start,
            scratch,
            least,
            buffer,
            out,
        )
        uncertain = bool(scratch[0])
        if plan is self._plan:
            self._spare.append(spare)
        if uncertain:
            return Logs(plan, codes, tables).marginals(self.start, out)
        if plan is not self._plan:
            seen = np.flatnonzero(codes >= 0)
            out[self.start[seen] + codes[seen]] = 1.0
        return float(log_prob)

    def _buffers(self, plan: Plan, codes: Ints) -> tuple[Ints, Array, Array]:
        """Room for one run, refused before it is taken where it is too much."""
        n, m = plan.tree.n_tables, len(plan.tree.variables)
        numbers = plan.n_numbers(self.network.unobserved() if plan is self._plan else codes, down=True)
        if numbers < 0 or 8.0 * numbers > MAX_BYTES:
            size = "more than 2^62 numbers" if numbers < 0 else bytes_in_words(8.0 * numbers)
            raise TooLarge(
                f"the tables of the junction tree need {size} (treewidth {self.treewidth}, the largest product has "
                f"{self.largest:.3g} cells); ask by sampling instead: bn.query(..., method=LikelihoodWeighting())"
            )
        return np.empty(2 * n + 2 * m + SPARE, np.int64), np.empty(2 * n), np.empty(numbers)

    def _suited(self, codes: Ints) -> Plan:
        """The compiled tree, or one for what is observed where that is so much cheaper that it is worth its making."""
        tree = self._plan.tree
        sizes = np.where(codes[tree.variables] < 0, self.network.sizes[tree.variables], 1)
        cells = float(tree.cells(sizes).sum())
        observed = codes >= 0
        key = observed.tobytes()
        if key in self._others:
            return self._others[key]
        plan, asked = self._plan, cells / (ASKING * len(sizes))
        if observed.any() and (asked >= 3 or cells > MAX_CELLS or self.n_bytes > MAX_BYTES):
            part = part_of(self.network, np.arange(self.network.n_factors), codes)
            found = greedy_order(self.network, part)
            if found.cells < 0.9 * cells or self.n_bytes > MAX_BYTES:
                plan, cells = Plan(self.network, arranged(self.network, part, found.order)), found.cells
        if cells > MAX_CELLS:
            raise TooLarge(
                f"the junction tree has products of {cells:.3g} cells (treewidth {self.treewidth}, the largest of them "
                f"{self.largest:.3g}): too many; ask by sampling instead: bn.query(..., method=LikelihoodWeighting())"
            )
        if len(self._others) >= KEPT_PLANS:
            self._others.pop(next(iter(self._others)), None)
        self._others[key] = plan
        return plan
