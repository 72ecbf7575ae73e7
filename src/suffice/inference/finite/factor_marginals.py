"""Marginals of every factor's scope, and ln Z, of a product of factors: what the gradient of an undirected model expects.

The tree is compiled once; then tables come in as logarithms, as often as an optimiser asks.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np

from suffice.errors import TooLarge, bytes_in_words
from suffice.errors.remedies import CONTRASTIVE, PSEUDO
from suffice.inference.finite.logs import NEVER, Elimination, LogFactor
from suffice.inference.finite.network import Array, Network
from suffice.inference.finite.questions import FACTORS, UNCERTAIN, RowAnswers, room_for, run_tree
from suffice.inference.finite.tree import COMPILING, MAX_BYTES, MAX_CELLS, arrange, greedy_order, interruptible, part_of, steps


class FactorMarginals(NamedTuple):
    """ln Z, and p(scope of f) of every factor, cell by cell, where its table has them. Without any possible state: −inf, NaN."""

    log_z: float
    probs: Array


class FactorTree:
    """A network compiled for the marginals of all its factors; its own tables do not matter.

    >>> net = Network.of([2, 2], [((0,), -1, np.ones(2)), ((0, 1), -1, np.ones((2, 2)))])
    >>> log_z, probs = FactorTree(net, "a model")(np.log([1.0, 3.0, 1.0, 1.0, 0.5, 0.5]))
    >>> round(float(np.exp(log_z)), 6), probs.round(3)
    (5.0, array([0.4, 0.6, 0.2, 0.2, 0.3, 0.3]))
    """

    def __init__(self, network: Network, what: str) -> None:
        self.network = network
        part = part_of(network, network.all_factors, network.unobserved())
        order = greedy_order(network, part, worth=COMPILING)
        self.n_cells = order.cells
        self._check(what, 8.0 * order.cells)
        self._tree = arrange(network, part, order.order)
        numbers = self._tree.n_numbers(network.unobserved(), down=True)
        self._check(what, 8.0 * numbers)
        self._room = room_for(self._tree, numbers)
        scopes = steps(part.scopes(network), network.sizes[part.variables], order.order.tolist())
        self._scopes = [tuple(int(part.variables[v]) for v in scope) for scope in scopes]
        self._owner = np.repeat(np.arange(network.n_factors), np.diff(network.table_start))
        untouched = np.setdiff1d(np.arange(network.n_variables), part.variables)
        self._codes = network.unobserved()
        self._free = float(np.log(network.sizes[untouched]).sum())

    def _check(self, what: str, n_bytes: float) -> None:
        if self.n_cells > MAX_CELLS or n_bytes > MAX_BYTES:
            raise TooLarge(
                f"the junction tree of {what} has products of {self.n_cells:.3g} cells in all ({bytes_in_words(n_bytes)} of "
                f"tables): too many for its likelihood; {PSEUDO} and {CONTRASTIVE} do not need it"
            )

    def __call__(self, log_tables: Array) -> FactorMarginals:
        """ln Z and the marginals at these tables, all factors one after another."""
        from suffice.kernels.inference.messages import factor_marginals

        net = self.network
        high = np.maximum.reduceat(log_tables, net.table_start[:-1]) if len(log_tables) else np.zeros(0)
        if (high == NEVER).any():
            return FactorMarginals(NEVER, np.full(len(log_tables), np.nan))
        tables, probs = np.exp(log_tables - high[self._owner]), np.zeros(len(log_tables))
        answers = RowAnswers(probs[None], np.empty(1), np.empty(1, np.uint8))
        interruptible(lambda: run_tree(self._tree, FACTORS, self._codes, tables, self._room, answers), self.n_cells)
        log_z = float(answers.log_prob[0])
        if answers.status[0] == UNCERTAIN or log_z == NEVER:
            return self._in_logs(log_tables)
        if factor_marginals(self._tree.program, net.sizes, net.table_start, *self._room, probs):
            return self._in_logs(log_tables)
        return FactorMarginals(log_z + float(high.sum()) + self._free, probs)

    def _in_logs(self, log_tables: Array) -> FactorMarginals:
        """The same by logarithms, for numbers that floats do not hold."""
        net = self.network
        scopes = [tuple(net.scope(f).tolist()) for f in range(net.n_factors)]
        tables = [
            log_tables[a:b].reshape(net.sizes[list(s)]) for s, (a, b) in zip(scopes, pairwise(net.table_start), strict=True)
        ]
        gone = Elimination((LogFactor(s, t[None]) for s, t in zip(scopes, tables, strict=True)), self._scopes, net.sizes)
        log_z = float(gone.joint(())[0])
        if log_z == NEVER:
            return FactorMarginals(NEVER, np.full(len(log_tables), np.nan))
        return FactorMarginals(log_z + self._free, np.concatenate([p.reshape(-1) for p in gone.of_factors(scopes)]))
