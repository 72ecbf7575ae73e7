"""The posterior of a finite target in rows that leave nothing else to be summed out.

In a row in which every node but the target t is observed, or barren (neither it nor any node below it is observed),

    p(t = k | row)  ∝  p(t = k | its parents) Π p(child | its parents, t = k)          over the observed children of t

so all that is needed of a distribution is its `log_prob`, whatever its family: regressions take part, too. Other observed nodes
only decide whether the row is possible at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.inference.rows import RowEvidence
from suffice.models.rows.evidence import column, is_seen

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Array = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

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
