"""The conditional distribution of a proportional odds regression: cumulative log-odds of ordered states.

    p(y ≤ k | x) = 1/(1 + exp(−(ζₖ − b·x)))        ζ₀ < ζ₁ < … the cut points between the states

How it is fitted is in `ordinal` (what a pass over rows sums) and `learning.irls` (the steps).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError, ModelError
from suffice.families.design import predicted
from suffice.families.family import Array, Columns, Interval
from suffice.families.fitted import Fitted, RegressedStates, coefficient_table
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.families.ordinal import ProportionalOdds


@dataclass(frozen=True, eq=False, repr=False)
class OrdinalCpd(RegressedStates):
    """p(child | parents) of ordered states, by cut points and one set of coefficients: p(child ≤ k) has the log-odds
    cut_points[k] − coefficients·x, so that a positive coefficient makes later states more probable.

    The coefficients belong to `terms`: a number per real parent, an indicator per state but the first of a finite one, in the
    order of the parents. `centre` is where sums over rows are taken from; it changes no probability.

    >>> from suffice.variables import Real
    >>> OrdinalCpd(Finite("pain", ["none", "some", "much"]), (Real("dose"),), [-1.0, 1.5], [0.5])
    p(pain | dose), proportional odds
    term       estimate
    ─────────  ────────
    none|some  -1
    some|much  1.5
    dose       0.5
    """

    child: Finite
    parent_variables: tuple[Variable, ...]
    cut_points: Array
    coefficients: Array
    centre: Array = field(default_factory=lambda: np.zeros(0))
    ridge: float = 0.0
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        K, p = ordered_child(self.child).n_states, len(self.terms)
        for name, size in (("cut_points", K - 1), ("coefficients", p), ("centre", p)):
            self._keep(name, (size,))
        if not np.all(np.diff(self.cut_points) > 0):
            raise ModelError(f"the cut_points of {self.child.name!r} must rise from each to the next, not {self.cut_points}")

    @property
    def family(self) -> ProportionalOdds:
        from suffice.families.ordinal import ProportionalOdds

        return ProportionalOdds(self.ridge)

    @property
    def n_parameters(self) -> int:
        return self.cut_points.size + self.coefficients.size

    @property
    def standard_errors(self) -> Array:
        """Of the cut points, then of the coefficients."""
        return self._fitted().standard_errors

    def interval(self, level: float = 0.95) -> Interval:
        """Wald intervals of the cut points, then of the coefficients."""
        return self._fitted().interval(np.concatenate([self.cut_points, self.coefficients]), level)

    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]:
        """Codes of the child for n rows whose parents are in `columns`."""
        noise = rng.logistic(size=n)
        return np.asarray((noise >= self._levels(columns, n)).sum(axis=0), dtype=np.int32)

    def arranged(self, parents: Sequence[str]) -> OrdinalCpd:
        """The same distribution, the parents in another order or some of them left out."""
        if tuple(parents) == self.parents:
            return self
        columns = [j for p in parents for j in range(len(self.terms))[self.columns_of(p)]]
        variables = tuple(self.parent_variables[self.parents.index(p)] for p in parents)
        kept = self.coefficients[columns], self.centre[columns]
        # where parents were left out, the rest of the fit speaks of another distribution
        whole = self.fitted is not None and set(parents) == set(self.parents)
        order = [*range(len(self.cut_points)), *(len(self.cut_points) + j for j in columns)]
        fitted = self.fitted.arranged(order) if whole and self.fitted else None
        return OrdinalCpd(self.child, variables, self.cut_points, *kept, self.ridge, fitted)

    def without(self, values: Mapping[str, float]) -> OrdinalCpd:
        """The distribution where some real parents are these numbers, which move into the cut points."""
        moved = sum(float(self.coefficients[self.columns_of(p)][0]) * x for p, x in values.items())
        rest = [p for p in self.parents if p not in values]
        return replace(self, cut_points=self.cut_points - moved).arranged(rest)

    def _levels(self, columns: Columns, n: int) -> Array:
        """ζₖ − b·x of each cut point (the first axis) in each row."""
        own = np.concatenate([[0.0], self.coefficients])[None]
        shift = predicted(own, self.parent_variables, columns, self.centre, n, self.child.name)
        return np.asarray((self.cut_points - self.coefficients @ self.centre)[:, None] - shift)

    def _log_probs(self, columns: Columns, n: int) -> Array:
        from scipy.special import log_expit

        levels = self._levels(columns, n)
        below = np.concatenate([log_expit(levels), np.zeros((1, n))])
        above = np.concatenate([np.zeros((1, n)), log_expit(-levels)])
        return np.asarray(below + above + log_gaps(self.cut_points)[:, None])

    def _rows(self) -> tuple[list[str], list[list[object]]]:
        estimate = np.concatenate([self.cut_points, self.coefficients])
        states = self.child.states
        names = (*(f"{a}|{b}" for a, b in pairwise(states)), *self.terms)
        if self.fitted is None:
            return ["term", "estimate"], [[n, float(b)] for n, b in zip(names, estimate, strict=True)]
        return coefficient_table(names, estimate, self.fitted)

    def _kind(self) -> str:
        return "proportional odds"


def log_gaps(cut_points: Array) -> Array:
    """ln(1 − exp(ζₖ₋₁ − ζₖ)) of each state; of the first and the last, which have no end on one side, 0.

    With F the logistic function, F(u) − F(l) = F(u) F(−l) (1 − exp(l − u)): the one term of ln p that x is not in.

    >>> log_gaps(np.array([0.0, np.log(2.0)])).round(4)
    array([ 0.    , -0.6931,  0.    ])
    """
    between = np.log(-np.expm1(-np.diff(cut_points)))
    return np.concatenate([[0.0], between, [0.0]])


def ordered_child(v: Variable) -> Finite:
    if not isinstance(v, Finite) or v.n_states < 2:
        raise FitError(f"ProportionalOdds is a family of finite nodes of two states or more, and {v.name!r} is {v!r}")
    return v
