"""All marginals at once: one tree of products for a whole network, compiled once and used with any evidence.

Messages go up the tree and down again (Shenoy & Shafer 1990; the binary tree: Shenoy 1997, Int. J. Approx. Reasoning 17, p. 239).
Observed variables are sliced out of every table as if they had one state, so that the more is observed, the less is done.
Nothing is ever divided, so zeros need no care; tables are scaled by powers of two, so small numbers do not vanish.

What the gradient of an undirected model expects are the marginals of every factor's scope, and ln Z, of a product of factors:
their tree is compiled once, too; then tables come in as logarithms, as often as an optimiser asks.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from suffice.errors import TooLarge, bytes_in_words
from suffice.errors.remedies import BY_SAMPLING, CONTRASTIVE, PSEUDO
from suffice.numerics.inference.finite import network as nets
from suffice.numerics.inference.finite import questions
from suffice.numerics.inference.finite.logs import NEVER, Elimination, LogFactor, Weighed, weigh_factors
from suffice.numerics.inference.finite.network import NONE, Array, GreedyOrders, Ints, Network, Order, Tree
from suffice.numerics.inference.finite.questions import Room, RowAnswers

RETRY_CELLS = 4_000_000
"""From so many cells on, another order is looked for that suits the evidence better than the compiled one."""
BETTER = 0.8
"""A new order is taken if it has at most so many of the cells: a new tree must be arranged, and room be made for its tables."""
RETRYING = 0.2
"""Steps of that per cell: a fraction of what running the tree takes."""
KEPT_TREES = 8
FIRST, NEXT = 0.1, 0.2
"""Steps of looking for an order: for each cell of the first tree, and of those that later questions took, up to `COMPILING` times
the cells in all. So it takes less time than the questions."""
FEW_CELLS = 5_000
"""Up to so many cells the order is looked for at once: that is over before it is noticed."""


class VariableMarginals(NamedTuple):
    """p(v | evidence) of every variable, one after another: those of variable v are `probs[start[v]:start[v + 1]]`. Where the
    evidence is impossible, `log_prob` is −inf and the probabilities are NaN."""

    probs: Array
    start: Ints
    log_prob: float


class JunctionTree:
    """A network compiled for all marginals. Its order is a good one at once, and a better one as more is asked."""

    def __init__(self, network: Network, orders: GreedyOrders) -> None:
        self.network, self._orders, self.start = network, orders, network.starts
        self._asked, self._improving = 0.0, threading.Lock()
        self._arrange(orders.look(nets.COMPILING if orders.look(0.0).cells <= FEW_CELLS else FIRST))
        if self.n_cells > FEW_CELLS and max(self.n_cells / nets.MAX_CELLS, self.n_bytes / nets.MAX_BYTES) > 1.0:
            self._arrange(orders.look(nets.COMPILING))

    def _arrange(self, order: Order) -> None:
        """Make the tree of an order; whatever runs keeps the one that it has."""
        self._order, self._tree = order, nets.arrange(self.network, self._orders.part, order.order)
        self.n_cells = self._tree.cells(self.network.no_evidence())
        self._others: dict[bytes, Tree] = {}

    @classmethod
    def of(cls, network: Network) -> JunctionTree:
        """Compile: look for a good order of elimination and arrange its tables; no table is made yet."""
        part = nets.part_of(network, network.all_factors, network.no_evidence())
        return cls(network, GreedyOrders(network, part))

    @property
    def treewidth(self) -> int:
        """One less than the most variables in one product: an upper bound, by the best order found."""
        return max(self._tree.widest, 1) - 1

    def __repr__(self) -> str:
        return (
            f"JunctionTree of {self.network.n_variables:,} variables: treewidth {self.treewidth}, the largest product has "
            f"{self.largest:,.0f} cells, all together {self.n_cells:,.0f}; tables of {bytes_in_words(self.n_bytes)}"
        )

    @property
    def largest(self) -> float:
        """Cells of the largest product."""
        return self._tree.largest()

    @property
    def n_bytes(self) -> float:
        """Memory for all tables when nothing is observed; products are summed as they are made, and not held."""
        return 8.0 * self._tree.n_numbers(self.network.no_evidence(), down=True)

    def marginals(self, codes: Ints, factors: Sequence[LogFactor] = ()) -> VariableMarginals:
        """p(v | evidence) of every variable v, and ln p(evidence), which includes the factors."""
        return marginals_of(self.network, codes, factors, lambda: self)

    def marginals_in_rows(self, tables: Array) -> Array:
        """p(v) of every variable v, nothing observed, for each line of tables instead of the network's: [lines, states]. A line
        whose tables rule everything out answers NaN. Digits of probabilities that are hardly above 0 may be lost."""
        nothing = self.network.no_evidence()
        whole = Network.of(self.network.sizes, [(scope, NONE, table) for scope, _, table in self.network.factors()])
        found = questions.row_answers(whole, (), whole.all_factors, np.asarray(nothing[None], np.int32), tables, whole.starts)
        for r in np.flatnonzero(found.doubtful(absolute=True) | (found.status == questions.IMPOSSIBLE)):
            found.probs[r] = self._marginals(Weighed(self.network, tables[r], nothing, 0.0), nothing).probs
        return found.probs

    def _marginals(self, w: Weighed, codes: Ints) -> VariableMarginals:
        # Look on for a better order, as far as the questions so far are worth it.
        worth = min(nets.COMPILING, FIRST + NEXT * self._asked / max(1.0, self.n_cells))
        if self.n_cells > FEW_CELLS and not self._orders.enough(worth) and self._improving.acquire(blocking=False):
            try:
                found = self._orders.look(worth)
                if found.cells < BETTER * self._order.cells:
                    self._arrange(found)
            finally:
                self._improving.release()
        tree = self._tree if self.n_cells < RETRY_CELLS else self._suitable_tree(codes)
        self._asked += tree.cells(codes) if self.n_cells > FEW_CELLS else 0.0
        probs, cells = np.zeros(self.start[-1]), tree.cells(codes) if self.n_cells > questions.LONG else 0.0
        log_prob = NEVER if w.log_scale == NEVER else questions.interruptible(lambda: self._run(tree, w, codes, probs), cells)
        if log_prob == NEVER:
            probs[:] = np.nan
        return VariableMarginals(probs, self.start, log_prob + w.log_scale)

    def _run(self, tree: Tree, w: Weighed, codes: Ints, probs: Array) -> float:
        """Fill in the marginals; ln p(evidence). Numbers too small for floats are counted in logs instead."""
        compiled = tree is self._tree
        room = tree.rooms.pop() if compiled and tree.rooms else self._room(tree, codes)
        answer = RowAnswers(probs[None], np.empty(1), np.empty(1, np.uint8))
        questions.run_tree(tree, questions.MARGINALS, codes, w.tables, room, answer, self.start)
        if compiled:
            tree.rooms.append(room)
        total = float(answer.log_prob[0])
        if answer.doubtful(w.logs)[0]:
            found = questions.in_logs(self.network, tree.factor, tree.free_variables(codes), codes, w.tables, w.logs)
            total, probs[:] = float(found.joint(())[0]), 0.0
            for v, own in found.marginals().items() if total > NEVER else ():
                probs[self.start[v] : self.start[v + 1]] = own
        observed = np.flatnonzero(codes >= 0)  # which is no variable of a tree made for it
        probs[self.start[observed] + codes[observed]] = 1.0
        return total

    def _room(self, tree: Tree, codes: Ints) -> Room:
        """Room for one run, refused before it is taken where it is too much."""
        numbers = tree.n_numbers(self.network.no_evidence() if tree is self._tree else codes, down=True)
        if 8.0 * numbers > nets.MAX_BYTES:
            raise TooLarge(
                f"the tables of the junction tree need {bytes_in_words(8.0 * numbers)} (treewidth {self.treewidth}, the largest "
                f"product has {self.largest:.3g} cells); {BY_SAMPLING}"
            )
        return questions.room_for(tree, numbers)

    def _suitable_tree(self, codes: Ints) -> Tree:
        """The compiled tree, or one for what is observed where that is so much cheaper that it is worth its making."""
        observed = codes >= 0
        key = observed.tobytes()
        if key in self._others:
            return self._others[key]
        tree, cells = self._tree, self._tree.cells(codes)
        heavy = max(cells / nets.MAX_CELLS, self.n_bytes / nets.MAX_BYTES) > 1.0
        if observed.any() and (heavy or cells > RETRY_CELLS):
            part = nets.part_of(self.network, self.network.all_factors, codes)
            found = nets.greedy_order(self.network, part, worth=RETRYING)
            if found.cells < 0.9 * cells or heavy:
                tree, cells = nets.arrange(self.network, part, found.order), found.cells
        if cells > nets.MAX_CELLS:
            raise TooLarge(
                f"the junction tree has products of {cells:.3g} cells in all (treewidth {self.treewidth}, the largest without "
                f"evidence has {self.largest:.3g}): too many; {BY_SAMPLING}"
            )
        if len(self._others) >= KEPT_TREES:
            self._others.pop(next(iter(self._others)), None)
        self._others[key] = tree
        return tree


def marginals_of(
    network: Network, codes: Ints, factors: Sequence[LogFactor], tree: Callable[[], JunctionTree]
) -> VariableMarginals:
    """The same of a network whose own tree is made only if no factors need another one."""
    w = weigh_factors(network, codes, factors)
    return (tree() if w.network is network else JunctionTree.of(w.network))._marginals(w, codes)


class FactorMarginals(NamedTuple):
    """ln Z, and p(scope of f) of every factor, cell by cell, where its table has them. Without any possible state: −inf, NaN."""

    log_z: float
    probs: Array


class FactorTree:
    """A network compiled for the marginals of all its factors; its own tables do not matter."""

    def __init__(self, network: Network, what: str) -> None:
        self.network = network
        part = nets.part_of(network, network.all_factors, network.no_evidence())
        order = nets.greedy_order(network, part, worth=nets.COMPILING)
        self.n_cells = order.cells
        self._check(what, 8.0 * order.cells)
        self._tree = nets.arrange(network, part, order.order)
        numbers = self._tree.n_numbers(network.no_evidence(), down=True)
        self._check(what, 8.0 * numbers)
        self._room = questions.room_for(self._tree, numbers)
        scopes = nets.steps(part.scopes(network), network.sizes[part.variables], order.order.tolist())
        self._scopes = [tuple(int(part.variables[v]) for v in scope) for scope in scopes]
        self._owner = np.repeat(np.arange(network.n_factors), np.diff(network.table_start))
        untouched = np.setdiff1d(np.arange(network.n_variables), part.variables)
        self._codes = network.no_evidence()
        self._free = float(np.log(network.sizes[untouched]).sum())

    def _check(self, what: str, n_bytes: float) -> None:
        if self.n_cells > nets.MAX_CELLS or n_bytes > nets.MAX_BYTES:
            raise TooLarge(
                f"the junction tree of {what} has products of {self.n_cells:.3g} cells in all ({bytes_in_words(n_bytes)} of "
                f"tables): too many for its likelihood; {PSEUDO} and {CONTRASTIVE} do not need it"
            )

    def __call__(self, log_tables: Array) -> FactorMarginals:
        """ln Z and the marginals at these tables, all factors one after another."""
        from suffice.numerics.kernels.inference.messages import factor_marginals

        net = self.network
        high = np.maximum.reduceat(log_tables, net.table_start[:-1]) if len(log_tables) else np.zeros(0)
        if (high == NEVER).any():
            return FactorMarginals(NEVER, np.full(len(log_tables), np.nan))
        tables, probs = np.exp(log_tables - high[self._owner]), np.zeros(len(log_tables))
        answers = RowAnswers(probs[None], np.empty(1), np.empty(1, np.uint8))
        asked = (questions.FACTORS, self._codes, tables, self._room, answers)
        questions.interruptible(partial(questions.run_tree, self._tree, *asked), self.n_cells)
        log_z = float(answers.log_prob[0])
        unsure = answers.status[0] == questions.UNCERTAIN or log_z == NEVER
        if unsure or factor_marginals(self._tree.program, net.sizes, net.table_start, *self._room, probs):
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
