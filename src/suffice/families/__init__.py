"""Families of conditional distributions, and which of them a node takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suffice.errors import FitError
from suffice.families.categorical import Categorical
from suffice.families.family import Family
from suffice.families.conditional_gaussian import LinearGaussian
from suffice.families.poisson import Poisson
from suffice.variables import Count, Finite, Real, Variable


def family_of(child: Variable, parents: Sequence[Variable]) -> Family[Any]:
    """The family of a node by the types of its variables; what no family covers yet is refused with a way out.

    >>> from suffice.variables import Real
    >>> family_of(Real("y"), [Finite("x", ["a", "b"])])
    LinearGaussian()
    """
    numbers = [p.name for p in parents if not isinstance(p, Finite)]
    if isinstance(child, Finite) and numbers:
        raise FitError(
            f"the finite node {child.name!r} has the real parent {numbers[0]!r}, which needs a GLM: name it, "
            f"families={{{child.name!r}: Logistic()}}, turn the edge round, or cut the parent into intervals: "
            f"variables={{{numbers[0]!r}: Bins(5)}}"
        )
    if isinstance(child, Count) and numbers:
        raise FitError(
            f"the count {child.name!r} has the parent {numbers[0]!r}, a number, which needs a Poisson regression: name it, "
            f"families={{{child.name!r}: PoissonLog()}}, turn the edge round, or cut the parent into intervals: "
            f"variables={{{numbers[0]!r}: Bins(5)}}"
        )
    if isinstance(child, Count):
        return Poisson()
    return Categorical() if isinstance(child, Finite) else LinearGaussian()


def has_family(child: Variable, parents: Sequence[Variable]) -> bool:
    """Whether `family_of` knows one: only a real child can have numbers as parents.

    >>> has_family(Count("n"), [Finite("x", ["a", "b"])]), has_family(Count("n"), [Real("y")])
    (True, False)
    """
    return isinstance(child, Real) or all(isinstance(p, Finite) for p in parents)
