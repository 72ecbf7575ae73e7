"""Regressions written down by hand: a family, an intercept, and a coefficient per term."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from suffice.errors import ModelError, listed, nearest
from suffice.families.design import terms
from suffice.families.family import Array
from suffice.families.logistic import Logistic
from suffice.families.logistic_cpd import LogisticCpd, finite_child
from suffice.families.ordinal import ProportionalOdds
from suffice.families.ordinal_cpd import OrdinalCpd, ordered_child
from suffice.families.regression_cpd import RegressionCpd
from suffice.families.responses import BinomialLogit, NegativeBinomialLog, PoissonLog, Probit
from suffice.variables import Count, Real, Variable


@dataclass(frozen=True)
class Regression:
    """A regression written down by hand: `Regression(PoissonLog(), 0.5, {"x": 2.0, "z=b": -1.0})` is Poisson(e^(½ + 2x − [z=b])).

    Terms are the names of parents that are numbers, and `parent=state` for every state but the first of the others; those that
    are left out have the coefficient 0. The `dispersion` is the variance of `Linear`, 1/shape of gamma and negative binomial
    ones. `Logistic` of more than two states takes a list of numbers, one for each state but the first, in place of each number;
    `ProportionalOdds` takes its cut points, one fewer than there are states, in place of the intercept.

    >>> from suffice.models.bayes_net import BayesNet
    >>> from suffice.families.conditional_gaussian import Gaussian
    >>> bn = BayesNet("x -> n", {"x": Gaussian(), "n": Regression(PoissonLog(), 0.5, {"x": 2.0})})
    >>> round(float(bn.log_prob({"x": [0.0], "n": [1]})[0]), 6)
    -2.06766
    """

    family: Any
    intercept: Any = 0.0
    coefficients: Mapping[str, Any] = field(default_factory=dict)
    dispersion: float = 1.0

    @property
    def kind(self) -> type | None:
        """What a node is that was not declared; None if its states must be known."""
        if isinstance(self.family, (Logistic, ProportionalOdds, Probit)):
            return None
        return Count if isinstance(self.family, (BinomialLogit, NegativeBinomialLog, PoissonLog)) else Real

    def bound(self, child: Variable, parents: Sequence[Variable]) -> LogisticCpd | OrdinalCpd | RegressionCpd:
        """The CPD that these numbers make of a node and its parents."""
        if isinstance(self.family, type) or not getattr(self.family, "iterative", False):
            raise ModelError(f"the regression of {child.name!r} needs a family such as PoissonLog(), not {self.family!r}")
        self.family.check(child, parents)
        predictors = finite_child(child).n_states - 1 if isinstance(self.family, Logistic) else 1
        names = terms(self.family.regressors(parents))
        if not isinstance(self.coefficients, Mapping):
            raise ModelError(f"the coefficients of {child.name!r} are given by term, {{'x': 2.0}}, not as {self.coefficients!r}")
        for term in self.coefficients:
            if term not in names:
                known = listed(names) or "none"
                raise ModelError(f"{child.name!r} has no term {term!r}, its terms are {known}{nearest(str(term), names)}")
        given = {t: self.coefficients.get(t, np.zeros(predictors)) for t in names}
        b = [self._numbers(child, f"coefficient of {t!r}", value, predictors) for t, value in given.items()]
        effects = np.array(b).reshape(len(names), predictors).T
        if isinstance(self.family, ProportionalOdds):
            cuts = self._numbers(child, "intercept, its cut points,", self.intercept, ordered_child(child).n_states - 1)
            return OrdinalCpd(ordered_child(child), tuple(parents), cuts, effects[0], ridge=self.family.ridge)
        levels = self._numbers(child, "intercept", self.intercept, predictors)
        if isinstance(self.family, Logistic):
            return LogisticCpd(finite_child(child), tuple(parents), levels, effects, ridge=self.family.ridge)
        return RegressionCpd(child, tuple(parents), self.family, float(levels[0]), effects[0], self.dispersion)

    def _numbers(self, child: Variable, what: str, value: Any, n: int) -> Array:
        try:
            numbers = np.atleast_1d(np.asarray(value, dtype=np.float64))
        except (TypeError, ValueError):
            numbers = np.zeros(0)
        if numbers.shape != (n,):
            each = "a number" if n == 1 else f"{n} numbers, one for each state but one"
            raise ModelError(f"the {what} of {child.name!r} must be {each}, not {value!r}")
        return numbers
