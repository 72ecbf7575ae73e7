"""What is known of the missing cells of rows: p(target | row) and ln p(row), by whichever inference suits each row.

Where every other node is observed or barren, the answer is a product of distributions (`direct`). Rows of finite cells go through
the kernels, rows with numbers through densities of blocks of them (`inference.hybrid_rows`), to which regressions on numbers add
factors of their own (`regressions`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.errors import listed, note
from suffice.inference import rows as finite
from suffice.inference.rows import RowEvidence
from suffice.models.no_formula import advising
from suffice.models.rows import regressions
from suffice.models.rows.direct import applies, direct_posterior, direct_rows

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

MOMENTS = ("mean", "variance")
"""What the posterior of a real variable is told by."""


def row_posterior(bn: BayesNet, target: str, seen: RowEvidence) -> Array:
    """A line per row: the probabilities of the target's states, or its mean and variance; NaN where a row is impossible."""
    inferred = partial(_inferred, bn, target)
    if not applies(bn, target):
        return inferred(seen)
    return _either(seen, direct_rows(bn, target, seen), partial(direct_posterior, bn, target), inferred)


def _inferred(bn: BayesNet, target: str, seen: RowEvidence) -> Array:
    """By inference, in rows that leave other nodes to be summed out."""
    from suffice.models.hybrid import row_posteriors

    compiled = bn.compiled
    if compiled.open:
        return regressions.row_posterior(bn, target, seen)
    if target not in compiled.index:
        return row_posteriors(bn, target, *seen)
    return _either(seen, _with_numbers(seen), lambda some: row_posteriors(bn, target, *some), partial(_finite, bn, target))


def _finite(bn: BayesNet, target: str, seen: RowEvidence) -> Array:
    """Real nodes that are not observed are barren: none of them has finite children."""
    return finite.posteriors(bn.compiled.network, [bn.compiled.index[target]], seen.codes)[0]


def log_probs(bn: BayesNet, seen: RowEvidence) -> Array:
    """ln p(observed cells) of each row."""
    from suffice.inference import hybrid_rows
    from suffice.models.hybrid import named

    def with_numbers(seen: RowEvidence) -> Array:
        way_out = "fill in {} in rows that lack it, or leave such rows out".format
        with advising(lambda refused: way_out(listed(refused.lacking))), named(bn):
            if bn.compiled.open:
                return regressions.log_probs(bn, seen)
            return hybrid_rows.log_probs(bn.compiled.hybrid, seen)

    if bn.compiled.open:
        return with_numbers(seen)
    return _either(seen, _with_numbers(seen), with_numbers, lambda seen: finite.log_probs(bn.compiled.network, seen.codes))


def _with_numbers(seen: RowEvidence) -> Flags:
    return np.asarray(~np.isnan(seen.reals).all(axis=1))


def _either(seen: RowEvidence, first: Flags, one: Callable[[RowEvidence], Array], other: Callable[[RowEvidence], Array]) -> Array:
    """Some rows in one way, the rest in another, in the order of the rows."""
    if first.all() or not first.any():
        return (one if len(first) and first.all() else other)(seen)
    answer = one(seen.take(np.flatnonzero(first)))
    result = np.empty((len(first), *answer.shape[1:]))
    result[first], result[~first] = answer, other(seen.take(np.flatnonzero(~first)))
    return result


class Places:
    """How many rows there are of some kind, and where the first of them stands: the number of its block, and the row in it."""

    def __init__(self) -> None:
        self.n, self.first = 0, (0, 0)

    def add(self, number: int, rows: Ints) -> None:
        """Take note of rows of a block, in the order of the blocks."""
        if len(rows) and not self.n:
            self.first = number, int(rows[0])
        self.n += len(rows)


def tell_impossible(data: Data, rows: Places, consequence: str) -> None:
    """Say how many rows cannot occur under the network, if there are any."""
    if rows.n:
        first = data.place(*rows.first)
        which = first if rows.n == 1 else f"{rows.n:,} rows"
        also = "" if rows.n == 1 else f", first {first}"
        note(f"the observed cells of {which} are impossible under the network{also}: {consequence}")
