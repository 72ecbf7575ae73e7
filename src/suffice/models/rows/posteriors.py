"""What is known of the missing cells of rows: p(target | row) and ln p(row), by whichever inference suits each row.

Rows of finite cells go through the kernels, rows with numbers through densities of blocks of them (`inference.hybrid_rows`), to
which regressions on numbers add factors of their own (`regressions`). In a row in which every node but the target t is observed,
or barren (neither it nor any node below it is observed), nothing is left to be summed out:

    p(t = k | row)  ∝  p(t = k | its parents) Π p(child | its parents, t = k)          over the observed children of t

so all that is needed of a distribution is its `log_prob`, whatever its family: regressions take part, too. Other observed nodes
only decide whether the row is possible at all.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.errors import ModelError, listed, note
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.inference import rows as finite
from suffice.inference.rows import RowEvidence
from suffice.models.regressions import advising, words
from suffice.models.rows.evidence import column, is_seen
from suffice.models.rows.regressions import factors, regression_moments

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
    if bn.compiled.open or target not in bn.compiled.index:
        return by_densities(bn, target, seen)
    return _either(seen, _with_numbers(seen), partial(by_densities, bn, target), partial(_finite, bn, target))


def _finite(bn: BayesNet, target: str, seen: RowEvidence) -> Array:
    """Real nodes that are not observed are barren: none of them has finite children."""
    return finite.posteriors(bn.compiled.network, [bn.compiled.index[target]], seen.codes)[0]


def by_densities(bn: BayesNet, target: str, seen: RowEvidence) -> Array:
    """With the densities of numbers that are observed, and what regressions on them say. The target's own cells do not matter.

    >>> from suffice.families.conditional_gaussian import Gaussian
    >>> from suffice.models.bayes_net import BayesNet
    >>> bn = BayesNet("x -> y", {"x": Gaussian(1.0), "y": Gaussian(0.0, {"x": 2.0})})
    >>> by_densities(bn, "x", RowEvidence(np.zeros((1, 0), np.int64), np.array([[np.nan, 7.0]]))).round(6)
    array([[3. , 0.2]])
    """
    from suffice.inference import hybrid_rows
    from suffice.models.hybrid import named

    compiled, hybrid, beside = bn.compiled, bn.compiled.around_regressions, partial(factors, bn, target=target)
    with named(bn):
        if target in compiled.index:
            return hybrid_rows.finite_rows(hybrid, compiled.index[target], seen, beside)
        number = compiled.real_index[target]
        if target not in compiled.open:
            return hybrid_rows.real_rows(hybrid, number, seen, beside)
        try:
            return hybrid_rows.moments_in_rows(hybrid, number, seen, partial(regression_moments, bn, target), beside)
        except hybrid_rows.NotFinite as wrong:
            said = f"{target!r} is a {words(bn[target])} whose mean in some row is {wrong.mean:g}, which is none"
            raise ModelError(said) from None


def log_probs(bn: BayesNet, seen: RowEvidence) -> Array:
    """ln p(observed cells) of each row."""
    if bn.compiled.open:
        return _log_densities(bn, seen)
    without = partial(finite.log_probs, bn.compiled.network)
    return _either(seen, _with_numbers(seen), partial(_log_densities, bn), lambda some: without(some.codes))


def _log_densities(bn: BayesNet, seen: RowEvidence) -> Array:
    from suffice.inference import hybrid_rows
    from suffice.models.hybrid import named

    with advising(lambda refused: f"fill in {listed(refused.lacking)} in rows that lack it, or leave such rows out"), named(bn):
        return hybrid_rows.log_probs(bn.compiled.around_regressions, seen, partial(factors, bn))


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

    def where(self, data: Data) -> str:
        """In words: the one row, or how many there are, and the first."""
        first = data.place(*self.first)
        return first if self.n == 1 else f"{self.n:,} rows, first {first}"


def tell_impossible(data: Data, rows: Places, consequence: str) -> None:
    """Say how many rows cannot occur under the network, if there are any."""
    if rows.n:
        which, _, first = rows.where(data).partition(", first ")
        note(f"the observed cells of {which} are impossible under the network{first and f', first {first}'}: {consequence}")


CELLS = 2**21
"""Rows are worked on in parts of at most about this many probabilities."""


def applies(bn: BayesNet, target: str) -> bool:
    """Whether rows may be answered here: networks of tables alone have kernels of their own.

    >>> from suffice.models.bayes_net import BayesNet
    >>> from suffice.variables import Finite
    >>> applies(BayesNet("x", {"x": [0.5, 0.5]}, variables=[Finite("x", ["a", "b"])]), "x")
    False
    """
    return target in bn.compiled.index and any(not isinstance(bn[n], Table) for n in bn)


def direct_rows(bn: BayesNet, target: str, seen: RowEvidence) -> Flags:
    """The rows in which every node but the target is observed or barren."""
    result = np.ones(len(seen.codes), bool)
    needed: dict[str, Flags] = {}
    for name in reversed(bn.dag.topological_order):
        below = [needed[c] for c in bn.dag.children(name)]
        if name == target:
            needed[name] = result | True
            continue
        there = is_seen(bn, name, seen)
        needed[name] = np.logical_or.reduce([there, *below])
        result &= there | ~needed[name]
    return result


def direct_posterior(bn: BayesNet, target: str, seen: RowEvidence) -> Array:
    """p(target | the other cells), a line per row, of rows that `direct_rows` names; NaN where a row is impossible."""
    n_states = bn.compiled.variables[target].n_states
    parts = -(-len(seen.codes) * n_states // CELLS)
    found = [_posterior(bn, target, seen.take(some)) for some in np.array_split(np.arange(len(seen.codes)), max(parts, 1))]
    return np.concatenate(found)


def _posterior(bn: BayesNet, target: str, seen: RowEvidence) -> Array:
    n, n_states = len(seen.codes), bn.compiled.variables[target].n_states
    logs = np.zeros((n_states, n))
    columns = {name: column(bn, name, seen) for name in bn}
    # Finite nodes first: where they leave a state of the target no probability, numbers need no parameters.
    for name in sorted(bn, key=lambda name: name not in bn.compiled.index):
        rows = np.arange(n) if name == target else np.flatnonzero(is_seen(bn, name, seen))
        family = (name, *bn[name].parents)
        for k in range(n_states) if target in family else (None,):
            possible = rows[(logs.max(axis=0) if k is None else logs[k])[rows] > -np.inf]
            own = {f: columns[f] if len(possible) == n else columns[f][possible] for f in family if f != target}
            with np.errstate(over="ignore"):  # a number far out has the density 0
                if k is None:
                    logs[:, possible[bn[name].log_prob(own) == -np.inf]] = -np.inf
                elif len(possible):
                    logs[k, possible] += _log_prob(bn[name], target, k, own, len(possible))
    return _normalised(logs.T)


def _log_prob(cpd: Any, target: str, state: int, columns: dict[str, Any], n: int) -> Array:
    """ln p(child | parents) of n rows whose target has this state."""
    simple = isinstance(cpd, ConditionalGaussian) and [p.name for p in cpd.finite_parents] == [target]
    if not simple or np.isnan(cpd.variance[state]):  # what has no parameters is refused there
        return np.asarray(cpd.log_prob(columns | {target: np.full(n, state)}))
    # One normal regression for all rows: nothing need be looked up for each of them.
    off, v = columns[cpd.child.name] - cpd.intercept[state], float(cpd.variance[state])
    for parent, slope in zip(cpd.real_parents, cpd.coefficients[state], strict=True):
        off -= slope * columns[parent]
    return np.asarray(-0.5 * (LOG_2PI + np.log(v) + off**2 / v))


def _normalised(logs: Array) -> Array:
    with np.errstate(invalid="ignore"):  # −inf less −inf: an impossible row
        probs = np.exp(logs - logs.max(axis=1, keepdims=True))
    return np.asarray(probs / probs.sum(axis=1, keepdims=True))
