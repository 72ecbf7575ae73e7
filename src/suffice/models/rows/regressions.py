"""Many rows, any cells of which may be missing, in networks with open regressions (see `models.regressions`).

In each row an open regression y adds a factor over those of its finite variables that the row does not show,

    ln p(y | parents)          at the numbers of the row,

to a network in which it has a stand-in: of a finite y a uniform one, whose ln n states are added back. Where y is barren there is
no factor, and the stand-in sums to 1. Rows that leave an integral over a number without a formula are refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.errors import TooLarge
from suffice.inference.blocks import checked_shape
from suffice.inference.hybrid_rows import CELLS, Factor, Moments
from suffice.inference.network import NONE
from suffice.inference.rows import RowEvidence, alike
from suffice.models.question import requisite
from suffice.models.regressions import no_formula
from suffice.models.rows.evidence import is_seen
from suffice.variables import Finite

if TYPE_CHECKING:
    from suffice.models.bayes_net import BayesNet

Flags = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]


def factors(bn: BayesNet, rows: RowEvidence, target: str | None = None) -> Iterator[Factor]:
    """What the open regressions add; the factor of a target that is a number is left to the caller.

    >>> from suffice.families.conditional_gaussian import Gaussian
    >>> from suffice.families.logistic import LogisticCpd
    >>> from suffice.models.bayes_net import BayesNet
    >>> from suffice.variables import Real
    >>> y, x = Finite("y", ["no", "yes"]), Real("x")
    >>> bn = BayesNet("x -> y", {"x": Gaussian(), "y": LogisticCpd(y, (x,), [0.0], [[1.0]])}, [x, y])
    >>> [factor] = factors(bn, RowEvidence(np.array([[-1]]), np.array([[0.0]])), "y")
    >>> np.exp(factor.values)  # beside a stand-in of 0.5 each
    array([[1., 1.]])
    """
    for name, needed in _needed(bn, rows, target).items() if bn.compiled.open else ():
        if not bn[name].is_open:
            continue
        some = np.flatnonzero(needed)
        numbers = [n for n in (name, *bn[name].parents) if n in bn.compiled.real_index and n != target]
        if target is not None and not all(is_seen(bn, n, rows)[some].all() for n in numbers):
            some = some[_matters(bn, name, rows.take(some), target)]
        if len(some):
            _refuse_hidden(bn, name, rows.take(some), target)
            if name != target or name in bn.compiled.index:
                yield from _factors(bn, name, rows, some)


def _needed(bn: BayesNet, rows: RowEvidence, target: str | None) -> dict[str, Flags]:
    """For each node the rows in which it is asked for, observed, or above such a one."""
    needed: dict[str, Flags] = {}
    for name in reversed(bn.dag.topological_order):
        own = np.full(len(rows.codes), name == target) | is_seen(bn, name, rows)
        needed[name] = np.logical_or.reduce([own, *(needed[c] for c in bn.dag.children(name))])
    return needed


def _matters(bn: BayesNet, name: str, rows: RowEvidence, target: str) -> Flags:
    """The rows in which the observed cells do not cut a node off from the target."""
    result, seen = np.zeros(len(rows.codes), bool), np.array([is_seen(bn, n, rows) for n in bn]).T
    for same in alike(seen):
        observed = [n for n, known in zip(bn, seen[same[0]], strict=True) if known]
        result[same] = name in requisite(bn.dag, [target], observed)
    return result


def _refuse_hidden(bn: BayesNet, name: str, rows: RowEvidence, target: str | None) -> None:
    """Refuse a regression on numbers that are not observed, and one that is a number, not observed, but has children."""
    cpd = bn[name]
    known = {p: 0.0 for p in cpd.real_parents if is_seen(bn, p, rows).all()}
    if len(known) < len(cpd.real_parents):
        raise no_formula(cpd, known)
    if name in bn.compiled.index or is_seen(bn, name, rows).all():
        return
    if name != target or _needed(bn, rows, None)[name].any():
        raise no_formula(cpd, known)


def _factors(bn: BayesNet, name: str, rows: RowEvidence, some: Ints) -> Iterator[Factor]:
    """ln p(y | parents) in some of the rows, in groups that show the same of its finite variables."""
    compiled, cpd = bn.compiled, bn[name]
    finite = [*cpd.finite_parents, *([cpd.child] if isinstance(cpd.child, Finite) else [])]
    numbers = np.array(sorted(compiled.index[v.name] for v in finite), np.int64)
    spare = math.log(cpd.child.n_states) if isinstance(cpd.child, Finite) else 0.0
    for same in alike(rows.codes[some][:, numbers] != NONE):
        own = some[same]
        scope = tuple(int(v) for v in numbers if rows.codes[own[0], v] == NONE)
        columns, shape = _spread(bn, (name, *cpd.parents), rows.take(own), scope)
        with np.errstate(over="ignore"):  # a number far out has the density 0
            logs = np.asarray(cpd.log_prob(columns)) + spare
        yield Factor(scope, own, logs.reshape(len(own), *shape))


def regression_moments(bn: BayesNet, target: str, rows: RowEvidence) -> Iterator[Moments]:
    """The mean and variance of a number that is an open regression: nothing below it is observed, its numbers are."""
    cpd = bn[target]
    numbers = np.array(sorted(bn.compiled.index[v.name] for v in cpd.finite_parents), np.int64)
    for same in alike(rows.codes[:, numbers] != NONE):
        scope = tuple(int(v) for v in numbers if rows.codes[same[0], v] == NONE)
        columns, shape = _spread(bn, cpd.parents, rows.take(same), scope)
        each = cpd.moments(columns, len(same) * math.prod(shape))
        yield Moments(scope, same, *(x.reshape(len(same), -1) for x in each))


def _spread(
    bn: BayesNet, names: tuple[str, ...], rows: RowEvidence, scope: tuple[int, ...]
) -> tuple[dict[str, Any], tuple[int, ...]]:
    """Columns in which every row stands once for each configuration of `scope`, the last fastest."""
    compiled = bn.compiled
    shape = checked_shape(compiled.around_regressions.network, scope)
    n, size = len(rows.codes), math.prod(shape)
    if n > 1 and n * size > CELLS:
        raise TooLarge(f"{n} rows of {size} configurations")
    digits = dict(zip(scope, np.unravel_index(np.arange(size), shape), strict=True)) if scope else {}
    columns: dict[str, Any] = {}
    for name in names:
        v = compiled.index.get(name)
        if v is None:
            columns[name] = np.repeat(rows.reals[:, compiled.real_index[name]], size)
        else:
            columns[name] = np.tile(digits[v], n) if v in digits else np.repeat(rows.codes[:, v], size)
    return columns, shape
