"""Distributions that are written down by hand: numbers that become a CPD once a node and its parents are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from suffice.basis.variables import Count, Finite, Real, Variable
from suffice.errors import ModelError, listing, nearest
from suffice.families.chosen.exponential_node import PoissonRates
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.design import terms
from suffice.families.protocol.cpd import Array, Cpd, as_numbers, split
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.statistics.counts import checked_cells, sizes


class ByHand:
    """A distribution written down by hand. `kind` is the type of a node that was not declared, None if its states must be known;
    `words` says what it is where a node of another type is refused."""

    words: ClassVar[str] = ""
    kind: ClassVar[Any]

    def declare(self, name: str) -> Any:
        """The variable of a node that only this declares; None if its states must be known."""
        return None if self.kind is None else self.kind(name)

    def bound(self, child: Variable, parents: Sequence[Variable]) -> Cpd:
        """The CPD that these numbers make of a node and its parents; shapes and signs are checked."""
        raise NotImplementedError


@dataclass(frozen=True)
class Gaussian(ByHand):
    """A Gaussian written down by hand: `Gaussian(1.0, {"x": 2.0}, variance=0.5)` is Normal(1 + 2x, 0.5).

    With finite parents each number becomes an array with one axis per finite parent, in the order of the graph.

    >>> Gaussian(1.0, {"x": 2.0}, variance=0.5)
    Gaussian(intercept=1.0, coefficients={'x': 2.0}, variance=0.5)
    """

    intercept: Any = 0.0
    coefficients: Mapping[str, Any] = field(default_factory=dict)
    variance: Any = 1.0

    kind: ClassVar[type] = Real
    words: ClassVar[str] = "a Gaussian"

    def bound(self, child: Variable, parents: Sequence[Variable]) -> ConditionalGaussian:
        """The CPD that these numbers make of a node and its parents; shapes and signs are checked."""
        finite, reals = split(parents)
        names = [p.name for p in reals]
        if set(self.coefficients) != set(names):
            given = listing(self.coefficients) or "none"
            raise ModelError(
                f"{child.name!r} needs coefficients of its real parents {listing(names) or '(none)'}, not of {given}"
            )
        shape = sizes(finite)
        columns = [_spread(self.coefficients[n], shape, child, f"coefficient of {n!r}") for n in names]
        intercept, variance = (_spread(getattr(self, n), shape, child, n) for n in ("intercept", "variance"))
        coefficients = np.stack(columns, axis=-1) if columns else np.zeros((*shape, 0))
        return ConditionalGaussian(child, tuple(parents), intercept, coefficients, variance)


@dataclass(frozen=True)
class Rates(ByHand):
    """Rates of a count written down by hand: one number, or an array with one axis per parent, in the order of the graph.

    >>> from suffice import Count
    >>> Rates([0.5, 3.0]).bound(Count("visits"), [Finite("ill", ["no", "yes"])])
    p(visits | ill), Poisson
    ill  rate
    ───  ────
    no   0.5
    yes  3
    """

    rates: Any

    kind: ClassVar[type] = Count
    words: ClassVar[str] = "rates"

    def bound(self, child: Variable, parents: Sequence[Variable]) -> PoissonRates:
        """The CPD that these numbers make of a node and its parents; a single number holds for every configuration."""
        finite, numbers = split(parents)
        if numbers:
            raise ModelError(f"the rates of {child.name!r} cannot have the number {numbers[0].name!r} as a parent")
        rates = as_numbers(self.rates, f"the rates of {child.name!r} must be numbers, not {self.rates!r}")
        checked_cells(finite, f"the rates of {child.name!r}")
        if np.isnan(rates).any():
            raise ModelError(f"the rates of {child.name!r} must be finite numbers from 0 up, not NaN")
        return PoissonRates(child, finite, rates if rates.ndim else np.full(sizes(finite), float(rates)))


@dataclass(frozen=True)
class Regression(ByHand):
    """A regression written down by hand: `Regression(PoissonLog(), 0.5, {"x": 2.0, "z=b": -1.0})` is Poisson(e^(½ + 2x − [z=b])).

    Terms are the names of parents that are numbers, and `parent=state` for every state but the first of the others; those that
    are left out have the coefficient 0. The `dispersion` is the variance of `Linear`, 1/shape of gamma and negative binomial
    ones. `Logistic` of more than two states takes a list of numbers, one for each state but the first, in place of each number;
    `ProportionalOdds` takes its cut points, one fewer than there are states, in place of the intercept.

    >>> from suffice import BayesNet
    >>> from suffice import Gaussian
    >>> from suffice.regressions import PoissonLog
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
        kind: type = getattr(self.family, "kind", Real)
        return None if kind is Finite else kind

    def bound(self, child: Variable, parents: Sequence[Variable]) -> RegressionCpd:
        """The CPD that these numbers make of a node and its parents."""
        if isinstance(self.family, type) or not getattr(self.family, "iterative", False):
            raise ModelError(f"the regression of {child.name!r} needs a family such as PoissonLog(), not {self.family!r}")
        self.family.check(child, parents)
        names = terms(parents, self.family.roles).names
        if not isinstance(self.coefficients, Mapping):
            raise ModelError(f"the coefficients of {child.name!r} are given by term, {{'x': 2.0}}, not as {self.coefficients!r}")
        for term in self.coefficients:
            if term not in names:
                known = listing(names) or "none"
                raise ModelError(f"{child.name!r} has no term {term!r}, its terms are {known}{nearest(str(term), names)}")
        layout = self.family.layout(child, len(names))
        theta = layout.of_levels(self._numbers(child, self.family.level_words, self.intercept, len(layout.levels)))
        for term, value in self.coefficients.items():
            own = layout.slopes[:, names.index(term)]
            theta[own] = self._numbers(child, f"coefficient of {term!r}", value, len(own))
        cpd: RegressionCpd = self.family.cpd(child, tuple(parents), theta, self.dispersion)
        return cpd

    def _numbers(self, child: Variable, what: str, value: Any, n: int) -> Array:
        each = "a number" if n == 1 else f"{n} numbers, one for each state but one"
        refusal = f"the {what} of {child.name!r} must be {each}, not {value!r}"
        numbers = np.atleast_1d(as_numbers(value, refusal))
        if numbers.shape != (n,):
            raise ModelError(refusal)
        return numbers


def _spread(value: Any, shape: tuple[int, ...], child: Variable, what: str) -> Array:
    array = as_numbers(value, f"the {what} of {child.name!r} must be a number, not {value!r}")
    if array.ndim and array.shape != shape:
        raise ModelError(f"the {what} of {child.name!r} needs the shape {shape}, one axis per finite parent, not {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ModelError(f"the {what} of {child.name!r} must be a finite number")
    return np.array(np.broadcast_to(array, shape))
