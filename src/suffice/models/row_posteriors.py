"""The posterior of one variable in each of many rows, and the tally of the rows that have none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from suffice.engines.passing import Passing
from suffice.errors import note
from suffice.inference.rows import posteriors
from suffice.models import regression_rows
from suffice.models.direct_posteriors import applies, direct_posterior, direct_rows
from suffice.models.row_evidence import RowEvidence

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOMENTS = ("mean", "variance")
"""What the posterior of a real variable is told by."""


def row_posterior(bn: BayesNet, target: str, seen: RowEvidence) -> Array:
    """A line per row: the probabilities of the target's states, or its mean and variance; NaN where a row is impossible."""
    if not applies(bn, target):
        return _inferred(bn, target, seen)
    direct = direct_rows(bn, target, seen)
    if direct.all():
        return direct_posterior(bn, target, seen)
    result = np.empty((len(direct), bn.compiled.variables[target].n_states))
    for rows, answer in ((np.flatnonzero(direct), direct_posterior), (np.flatnonzero(~direct), _inferred)):
        if len(rows):
            result[rows] = answer(bn, target, seen.take(rows))
    return result


def _inferred(bn: BayesNet, target: str, seen: RowEvidence) -> Array:
    """By inference, in rows that leave other nodes to be summed out."""
    compiled = bn.compiled
    if compiled.open:
        return regression_rows.row_posterior(bn, target, seen)
    if target not in compiled.index:
        return _hybrid(bn, target, seen)
    with_numbers = ~np.isnan(seen.reals).all(axis=1)
    if not with_numbers.any():
        return _finite(bn, target, seen)
    result = np.empty((len(seen.codes), int(compiled.network.sizes[compiled.index[target]])))
    for rows, answer in ((np.flatnonzero(with_numbers), _hybrid), (np.flatnonzero(~with_numbers), _finite)):
        if len(rows):
            result[rows] = answer(bn, target, seen.take(rows))
    return result


def _finite(bn: BayesNet, target: str, seen: RowEvidence) -> Array:
    """Real nodes that are not observed are barren: none of them has finite children."""
    compiled = bn.compiled
    return posteriors(compiled.network, [compiled.index[target]], seen.codes)[0]


def _hybrid(bn: BayesNet, target: str, seen: RowEvidence) -> Array:
    from suffice.models.hybrid import row_posteriors

    return np.asarray(row_posteriors(bn, target, seen.codes, seen.reals))


def best(probs: Array) -> Ints:
    """The code of the most probable state of each row, the first of equals; −1 where the probabilities are NaN.

    >>> best(np.array([[0.25, 0.75], [0.5, 0.5], [np.nan, np.nan]]))
    array([ 1,  0, -1])
    """
    codes: Ints = probs.argmax(axis=1)
    codes[np.isnan(probs[:, 0])] = -1
    return codes


class Impossible:
    """How many rows cannot occur under the network, and the first of them."""

    def __init__(self) -> None:
        self._n, self._first = 0, 0

    def add(self, rows: Ints) -> None:
        """Take note of impossible rows, by their numbers from 0; each row once, in the order of the rows."""
        if len(rows) and not self._n:
            self._first = int(rows[0])
        self._n += len(rows)

    def tell(self, rows: Passing, consequence: str) -> None:
        """Say so, if there were any."""
        if self._n == 1:
            note(f"the observed cells of {rows.place(self._first)} are impossible under the network: {consequence}")
        elif self._n:
            first = rows.place(self._first)
            note(f"the observed cells of {self._n:,} rows are impossible under the network, first {first}: {consequence}")
