"""The conditional distribution of a logistic regression: log-odds that are linear in the parents, and its columns.

    p(y = k | x) = exp ηₖ / Σⱼ exp ηⱼ        η₀ = 0 and ηₖ = aₖ + bₖ·x

How it is fitted is in `logistic` (one step uphill) and `learning.irls` (to the top, from complete rows).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError
from suffice.families.design import CELLS, filled
from suffice.families.family import Array, Columns, Interval
from suffice.families.fitted import Fitted, RegressedStates, coefficient_table
from suffice.variables import Finite, Variable

if TYPE_CHECKING:
    from suffice.families.logistic import Logistic


@dataclass(frozen=True, eq=False, repr=False)
class LogisticCpd(RegressedStates):
    """p(child | parents) by the log-odds of each state against the first: intercept[k] + coefficients[k]·x for state k + 1.

    The columns of the coefficients are `terms`: a number per real parent, an indicator per state but the first of a finite one,
    in the order of the parents. `centre` is where sums over rows are taken from; it changes no probability.

    >>> from suffice.variables import Real
    >>> LogisticCpd(Finite("y", ["no", "yes"]), (Real("x"), Finite("z", ["a", "b"])), [0.5], [[2.0, -1.0]])
    p(y | x, z), logistic, against y=no
    y    intercept  x  z=b
    ───  ─────────  ─  ───
    yes  0.5        2  -1
    """

    child: Finite
    parent_variables: tuple[Variable, ...]
    intercept: Array
    coefficients: Array
    centre: Array = field(default_factory=lambda: np.zeros(0))
    ridge: float = 0.0
    fitted: Fitted | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "parent_variables", tuple(self.parent_variables))
        K, p = finite_child(self.child).n_states, len(self.terms)
        shapes = {"intercept": (K - 1,), "coefficients": (K - 1, p), "centre": (p,)}
        for name, shape in shapes.items():
            self._keep(name, shape)

    @property
    def family(self) -> Logistic:
        from suffice.families.logistic import Logistic

        return Logistic(self.ridge)

    @property
    def n_parameters(self) -> int:
        return self.intercept.size + self.coefficients.size

    def interval(self, level: float = 0.95) -> Interval:
        """Wald intervals, a row per state but the first: of its intercept, then of its coefficients."""
        return self._fitted().interval(np.concatenate([self.intercept[:, None], self.coefficients], axis=1), level)

    @property
    def standard_errors(self) -> Array:
        """A row per state but the first: of its intercept, then of its coefficients."""
        return self._fitted().standard_errors.reshape(len(self.intercept), -1)

    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]:
        """Codes of the child for n rows whose parents are in `columns`."""
        ends = np.cumsum(np.exp(self._log_probs(columns, n)), axis=0)
        return np.asarray((rng.random(n) * ends[-1] >= ends[:-1]).sum(axis=0), dtype=np.int32)

    def effects(self, parent: str) -> Array:
        """The log-odds that each state of a finite parent adds (the first axis), those of its first state being 0."""
        own = self.coefficients[:, self.columns_of(parent)].T
        return np.concatenate([np.zeros((1, own.shape[1])), own])

    def arranged(self, parents: Sequence[str]) -> LogisticCpd:
        """The same distribution, the parents in another order or some of them left out."""
        columns = [j for p in parents for j in range(len(self.terms))[self.columns_of(p)]]
        variables = tuple(self.parent_variables[self.parents.index(p)] for p in parents)
        kept = self.coefficients[:, columns], self.centre[columns]
        # where parents were left out, the rest of the fit speaks of another distribution
        whole = self.fitted is not None and set(parents) == set(self.parents)
        blocks = 1 + len(self.terms)
        order = [k * blocks + j for k in range(len(self.intercept)) for j in (0, *(1 + c for c in columns))]
        fitted = self.fitted.arranged(order) if whole and self.fitted else None
        return LogisticCpd(self.child, variables, self.intercept, *kept, self.ridge, fitted)

    def without(self, values: Mapping[str, float]) -> LogisticCpd:
        """The distribution where some real parents are these numbers, which move into the intercept."""
        intercept = self.intercept + sum(self.coefficients[:, self.columns_of(p)][:, 0] * x for p, x in values.items())
        return replace(self, intercept=intercept).arranged([p for p in self.parents if p not in values])

    def _log_probs(self, columns: Columns, n: int) -> Array:
        parts, done = [], 0
        size = max(1, CELLS // (1 + len(self.terms) + self.child.n_states))
        while done < n:
            part = {p: columns[p][done : done + size] for p in self.parents}
            parts.append(softmax(self, design(self, part, min(size, n - done)))[0])
            done += size
        return np.concatenate(parts, axis=1) if parts else np.zeros((self.child.n_states, 0))

    def _rows(self) -> tuple[list[str], list[list[object]]]:
        numbers = np.concatenate([self.intercept[:, None], self.coefficients], axis=1)
        if self.fitted is None:
            header = [self.child.name, "intercept", *self.terms]
            return header, [[state, *row] for state, row in zip(self.child.states[1:], numbers.tolist(), strict=True)]
        names = ("(intercept)", *self.terms)
        header, rows = coefficient_table(names * len(numbers), numbers.reshape(-1), self.fitted)
        states = [s for s in self.child.states[1:] for _ in names]
        return [self.child.name, *header], [[state, *row] for state, row in zip(states, rows, strict=True)]

    def _kind(self) -> str:
        return f"logistic, against {self.child.name}={self.child.states[0]}"


def design(cpd: LogisticCpd, columns: Columns, n: int) -> Array:
    """Xᵀ of some rows: a row of ones, then one row per column of the regression."""
    return filled(cpd.parent_variables, columns, cpd.centre, n, cpd.child.name)


def softmax(cpd: LogisticCpd, X: Array) -> tuple[Array, Array, Array]:
    """ln p, p and 1 − p of each state (the first axis) in each row; 1 − p keeps its digits where p is nearly 1."""
    levels = cpd.intercept + cpd.coefficients @ cpd.centre
    return probabilities(np.concatenate([levels[:, None], cpd.coefficients], axis=1) @ X)


def probabilities(predictors: Array) -> tuple[Array, Array, Array]:
    """The same from the predictors of all states but the first."""
    eta = np.concatenate([np.zeros((1, predictors.shape[1])), predictors])
    top = eta.argmax(axis=0)[None]
    eta -= np.take_along_axis(eta, top, axis=0)
    P = np.exp(eta)
    np.put_along_axis(P, top, 0.0, axis=0)
    others = P.sum(axis=0, keepdims=True)
    np.put_along_axis(P, top, 1.0, axis=0)
    P /= 1.0 + others
    rest = 1.0 - P
    np.put_along_axis(rest, top, others / (1.0 + others), axis=0)
    return eta - np.log1p(others), P, rest


def finite_child(v: Variable) -> Finite:
    if not isinstance(v, Finite) or v.n_states < 2:
        raise FitError(f"Logistic is a family of finite nodes of two states or more, and {v.name!r} is {v!r}")
    return v
