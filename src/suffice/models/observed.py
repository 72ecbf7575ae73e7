"""The probability of what is observed: ln p(observed cells) of rows of which any cells may be missing.

A cell that is missing is summed or integrated out, and so is a node that is no column at all. Rows of finite cells go through
the kernels, which share the work of rows that observe the same variables. Real cells enter as densities of their blocks
(`inference.hybrid_rows`): where all finite parents of a block are observed its density is a number, and only where one is not
a sum over the states that it may have is left to be done in logs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.engine import Block as Batch
from suffice.engines.passing import Passed
from suffice.engines.scan import scan
from suffice.errors import TooLarge, listed
from suffice.inference.blocks import Hybrid, ManyConfigurations
from suffice.inference.hybrid_rows import CELLS, Rows, _alike, _conditioned, shared_blocks
from suffice.inference.log_domain import LogFactor, log_factors, log_joint
from suffice.inference.network import NONE, Network
from suffice.inference.posterior import answered, tree_for
from suffice.inference.questions import DONE, IMPOSSIBLE, in_rows
from suffice.inference.tree import Tree
from suffice.models.no_formula import advising
from suffice.models.row_evidence import RowEvidence, present, row_evidence

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[Any]
Ints = npt.NDArray[np.int64]

PART = 2**12
"""Rows with real cells are worked on so many at a time: a density is held for each of their open configurations."""


def observed_log_prob(bn: BayesNet, rows: Any) -> Array:
    """ln p(observed cells) of each row, in the order of the rows; a density where real cells are observed.

    Missing cells, and nodes that are no columns, are summed or integrated out. A row of which nothing is observed has 0, one
    whose cells cannot occur together −inf.

    >>> from suffice.models.bayes_net import BayesNet
    >>> from suffice.variables import Finite
    >>> x, y = Finite("x", ["no", "yes"]), Finite("y", ["no", "yes"])
    >>> bn = BayesNet("x -> y", {"x": [0.75, 0.25], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
    >>> np.exp(observed_log_prob(bn, {"x": ["yes", None, None], "y": ["no", "yes", None]})).round(6)
    array([0.05 , 0.275, 1.   ])
    """
    data = _rows(bn, rows)
    result = np.zeros(data.n_rows)
    for batch in data.batches():
        result[batch.start : batch.start + batch.n_rows] = log_probs(bn, _evidence(bn, batch))
    return result


def observed_log_likelihood(bn: BayesNet, data: Any) -> float:
    """Σ ln p(observed cells) over the rows, each as often as its weight says.

    >>> from suffice.models.bayes_net import BayesNet
    >>> from suffice.variables import Finite
    >>> bn = BayesNet("x", {"x": [0.25, 0.75]}, variables=[Finite("x", ["a", "b"])])
    >>> round(observed_log_likelihood(bn, scan({"x": ["b", None]}, weights=[2, 5])), 6)  # 2 ln 0.75
    -0.575364
    """

    def step(batch: Batch) -> Any:
        logs = log_probs(bn, _evidence(bn, batch))
        if batch.weight is None:
            return logs.sum()
        with np.errstate(invalid="ignore"):  # an impossible row of weight 0 is no row
            return np.where(batch.weight > 0, batch.weight * logs, 0.0).sum()

    return float(_rows(bn, data).fold(step, threads=1))  # the kernels have threads of their own


def log_probs(bn: BayesNet, seen: RowEvidence) -> Array:
    """ln p(observed cells) of each row."""
    if bn.compiled.open:
        parts = np.array_split(np.arange(len(seen.codes)), max(1, -(-len(seen.codes) // PART)))
        return np.concatenate([_hybrid_log_probs(bn, seen.take(some)) for some in parts])
    network = bn.compiled.network
    numbers = np.flatnonzero(~np.isnan(seen.reals).all(axis=1))
    if not len(numbers):
        return finite_log_probs(network, seen.codes)  # real nodes that are not observed are barren
    result = np.empty(len(seen.codes))
    rest = np.setdiff1d(np.arange(len(result)), numbers)
    result[rest] = finite_log_probs(network, seen.codes[rest])
    for some in np.array_split(numbers, -(-len(numbers) // PART)):
        result[some] = _hybrid_log_probs(bn, seen.take(some))
    return result


def finite_log_probs(network: Network, codes: Codes) -> Array:
    """ln p(observed codes) of each row of a finite network, −1 where a cell is not observed; −inf for impossible rows.

    >>> net = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.array([[1.0, 0.0], [0.5, 0.5]]))])
    >>> np.exp(finite_log_probs(net, np.array([[-1, 0], [0, 1], [-1, -1]]))).round(6)
    array([0.75, 0.  , 1.  ])
    """
    seen = np.ascontiguousarray(codes, np.int32)
    if not len(seen) or not network.n_variables:
        return np.zeros(len(seen))
    _, log_prob, status = in_rows(network, (), network.all_factors, seen, network.tables[None])
    trees: dict[bytes, Tree] = {}
    for r in np.flatnonzero((status != DONE) & (status != IMPOSSIBLE)):
        row = seen[r].astype(np.int64)
        key = np.minimum(row, 0).tobytes()
        if key not in trees:
            trees = {key: tree_for(network, (), network.all_factors, row)}  # one at a time: they may be large
        log_prob[r] = answered(trees[key], (), row, network.tables)[1]
    return log_prob


def _hybrid_log_probs(bn: BayesNet, seen: RowEvidence) -> Array:
    from suffice.models.hybrid import _named
    from suffice.models.regression_rows import log_probs as beside_regressions

    rows = Rows(seen.codes.astype(np.int64), seen.reals)
    with advising(lambda refused: f"fill in {listed(refused.lacking)} in rows that lack it, or leave such rows out"), _named(bn):
        if bn.compiled.open:
            return _in_halves(lambda some: beside_regressions(bn, some), rows)
        hybrid = bn.compiled.hybrid
        return _in_halves(lambda some: summed(hybrid, some, _Densities(hybrid, some)), rows)


def _in_halves(answer: Callable[[Rows], Array], rows: Rows) -> Array:
    """Half as many rows at a time where all together are too large."""
    try:
        return answer(rows)
    except ManyConfigurations:
        raise
    except TooLarge:
        if len(rows.codes) == 1:
            raise
        halves = np.array_split(np.arange(len(rows.codes)), 2)
        return np.concatenate([_in_halves(answer, rows.take(half)) for half in halves])


def summed(hybrid: Hybrid, rows: Rows, densities: _Densities) -> Array:
    """ln of the sum over all finite variables that are not observed, what is known of the real cells being `densities`."""
    result, closed = densities.constant, ~densities.open
    result[closed] += finite_log_probs(hybrid.network, rows.codes[closed])
    still_open = np.flatnonzero(densities.open)
    for same in _alike(rows.codes[still_open] != NONE):
        some = still_open[same]
        factors = densities.at(some)
        needed = [v for f in factors for v in f.scope]
        pool = [*log_factors(hybrid.network, rows.codes[some], needed), *factors]
        result[some] += log_joint(pool, (), hybrid.network.sizes)
    return result


class _Densities:
    """ln p(real cells of a row | finite variables): numbers, and tables over the finite variables that are not observed."""

    def __init__(self, hybrid: Hybrid, rows: Rows) -> None:
        self.constant, self.open = np.zeros(len(rows.codes)), np.zeros(len(rows.codes), bool)
        self._tables: dict[tuple[int, ...], Array] = {}
        for block, having in shared_blocks(hybrid.nodes, rows.reals):
            finite = list(block.finite)
            for same in _alike(rows.codes[having][:, finite]):
                some = having[same]
                values, _ = _conditioned(hybrid, block, rows.take(some), None)
                self._add(tuple(v for v in finite if rows.codes[some[0], v] == NONE), some, values)

    def _add(self, scope: tuple[int, ...], rows: Ints, values: Array) -> None:
        if not scope:
            self.constant[rows] += values
            return
        if scope not in self._tables:
            if len(self.open) > 1 and len(self.open) * values[0].size > CELLS:
                raise TooLarge(f"{len(self.open)} rows of {values[0].size} configurations")
            self._tables[scope] = np.zeros((len(self.open), *values.shape[1:]))
        self._tables[scope][rows] += values
        self.open[rows] = True

    def at(self, rows: Ints) -> list[LogFactor]:
        """The tables of some rows."""
        return [LogFactor(scope, values[rows]) for scope, values in self._tables.items() if values[rows].any()]


def _rows(bn: BayesNet, data: Any) -> Data:
    """The columns of the data that are nodes, read as the network's variables."""
    opened = scan(data)
    variables = dict(present(bn, opened.columns))
    return opened.with_variables(variables).take(variables)


def _evidence(bn: BayesNet, batch: Batch) -> RowEvidence:
    return row_evidence(bn, Passed(batch.columns, {}, batch.start, batch.n_rows))
