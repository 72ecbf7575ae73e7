"""Logistic regressions of largest likelihood, from complete rows: Newton steps, each a pass over the rows and each checked.

An estimate need not exist. Columns that the rows do not tell apart (collinear) and columns that part the states of the child
(separation: Albert & Anderson 1984, Biometrika 71, p. 1) are refused by name, with a way out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from suffice.engines.data import Data
from suffice.errors import FitError, ModelError, listed
from suffice.families.family import Array
from suffice.families.logistic import Logistic, Working
from suffice.families.logistic_cpd import LogisticCpd, are_numbers, expanded
from suffice.variables import Variable

CONVERGED = 1e-9
"""A step that moves no effect by more than this, in standard deviations of its column, ends the iterations."""

STALLED = 10
"""So many steps that gain nothing and still move the coefficients are a way to infinity."""


def fitted(
    child: Variable,
    parents: Sequence[Variable],
    rows: Data,
    *,
    ridge: float = 0.0,
    max_iter: int = 200,
    threads: int | None = None,
) -> LogisticCpd:
    """The logistic regression of `child` on `parents` of largest likelihood (less the ridge), from complete rows.

    >>> from suffice.engines import scan
    >>> data = scan({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "b", "a", "b"]})
    >>> fitted(data.schema["y"], [data.schema["x"]], data).coefficients.round(4)
    array([[0.9082]])
    """
    names = [v.name for v in (child, *parents)]
    rows.require_complete(names)
    family = Logistic(ridge)
    start, chosen = family.start(child, parents), rows.take(names)

    def measure(cpd: LogisticCpd) -> Working:
        return chosen.fold(lambda batch: family.step(cpd, batch.columns, batch.weight, newton=True), threads=threads)

    return maximised(start, measure, max_iter=max_iter)


def maximised(cpd: LogisticCpd, measure: Callable[[LogisticCpd], Working], *, max_iter: int = 200) -> LogisticCpd:
    """The regression of largest log-likelihood (less the ridge), where `measure` gives the sums over some rows, Hessian included.

    Newton steps, each checked; where one overshoots, half of it and so on, and then the step that cannot. Effects that the rows
    do not tell apart, and effects that grow without end because they separate the states, are refused by name.
    """
    s, stalled = measure(cpd), 0
    _refuse_unseen(cpd, s)
    scale = abs(float(s.log_likelihood))
    cpd, s, _ = _uphill(cpd, s, measure, fractions=())  # which finds the centre of the columns
    _refuse_collinear(cpd, s)
    for _ in range(max_iter):
        before, sums = cpd, s
        cpd, s, newton = _uphill(cpd, s, measure)
        moved = _effects(cpd, before, sums)
        if newton and moved.max() <= CONVERGED:
            return cpd
        was = _objective(before, sums)
        idle = _objective(cpd, s) - was <= 1e-9 * abs(was) or abs(was) <= 1e-9 * scale
        stalled = stalled + 1 if idle and moved.max() > 0.1 else 0
        if stalled >= STALLED:
            raise _separated(cpd, moved)
    raise FitError(
        f"the logistic regression of {cpd.child.name!r} did not converge in {max_iter} iterations; give max_iter, or a ridge"
    )


def _uphill(
    cpd: LogisticCpd, s: Working, measure: Callable[[LogisticCpd], Working], fractions: tuple[float, ...] = (1.0, 0.5, 0.125)
) -> tuple[LogisticCpd, Working, bool]:
    """A better regression, its sums, and whether a whole Newton step led there."""
    here = _objective(cpd, s)
    for fraction in fractions:
        try:
            ahead = cpd.family.newton(cpd, s, fraction)
        except (np.linalg.LinAlgError, ModelError):
            break
        there = measure(ahead)
        if _objective(ahead, there) >= here - 1e-13 * (1.0 + abs(here)):
            return ahead, there, fraction == 1.0
    ahead = cpd.family.advance(cpd, s)
    return ahead, measure(ahead), False


def _objective(cpd: LogisticCpd, s: Working) -> float:
    return float(s.log_likelihood) + cpd.family.log_prior(cpd)


def _effects(a: LogisticCpd, b: LogisticCpd, s: Working) -> Array:
    """By how much each column's effect differs, the largest over the states: of a number, per standard deviation."""
    deviation = np.sqrt(np.maximum(np.diag(s.scatter)[1:] / s.scatter[0, 0], 0.0))
    unit = np.where(are_numbers(a.parent_variables), deviation, 1.0)
    levels = [c.intercept + c.coefficients @ a.centre for c in (a, b)]
    change = np.concatenate([(levels[0] - levels[1])[:, None], (a.coefficients - b.coefficients) * unit], axis=1)
    return np.asarray(np.abs(change).max(axis=0))


def _refuse_unseen(cpd: LogisticCpd, s: Working) -> None:
    if not s.counts.sum() > 0:
        raise FitError(f"{cpd.child.name!r} cannot be fitted: there are no rows")
    if np.any(s.counts <= 0):
        state = cpd.child.states[int(np.argmin(s.counts))]
        raise FitError(f"no row has {cpd.child.name}={state}, and its log-odds would be infinite; leave the state out")


def _refuse_collinear(cpd: LogisticCpd, s: Working) -> None:
    kept = set(cpd.family.independent(cpd, s).tolist())
    for j, ((variable, state), term) in enumerate(zip(expanded(cpd.parent_variables), cpd.terms, strict=True), start=1):
        if j in kept:
            continue
        if state and not s.scatter[j, j] > 0:
            raise FitError(
                f"{cpd.child.name!r} cannot be fitted: no row has {term}; leave the state out, or use Logistic(ridge=1)"
            )
        before = listed(cpd.terms[: j - 1])
        of = f"a linear combination of {before} or constant" if before else "constant"
        raise FitError(
            f"{cpd.child.name!r} cannot be fitted: the column {term!r} of its parent {variable.name!r} is {of}; leave the parent "
            "out, or use Logistic(ridge=1)"
        )


def _separated(cpd: LogisticCpd, moved: Array) -> FitError:
    columns = [name for name, change in zip(("the intercept", *cpd.terms), moved, strict=True) if change > 0.1 * moved.max()]
    by = [c for c in columns if c != "the intercept"] or columns
    return FitError(
        f"the coefficients of {cpd.child.name!r} grow without end: {listed(by)} separates its states in the data, and there is "
        "no estimate of largest likelihood; leave the parent out, or use Logistic(ridge=1)"
    )
