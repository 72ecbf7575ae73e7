"""Families of conditional distributions, and which of them a node takes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from suffice.errors import FitError
from suffice.families.categorical import Categorical
from suffice.families.family import Family
from suffice.families.gaussian import LinearGaussian
from suffice.variables import Count, Finite, Variable


def family_of(child: Variable, parents: Sequence[Variable]) -> Family[Any]:
    """The family of a node by the types of its variables; what no family covers yet is refused with a way out.

    >>> from suffice.variables import Real
    >>> family_of(Real("y"), [Finite("x", ["a", "b"])])
    LinearGaussian()
    """
    if isinstance(child, Count):
        raise FitError(
            f"{child.name!r} is a Count, and there is no family for counts as children yet; declare it Real, or Bins(...)"
        )
    if not isinstance(child, Finite):
        return LinearGaussian()
    numbers = [p.name for p in parents if not isinstance(p, Finite)]
    if numbers:
        raise FitError(
            f"the finite node {child.name!r} has the real parent {numbers[0]!r}, which needs a GLM; turn the edge round, "
            f"or cut the parent into intervals: variables={{{numbers[0]!r}: Bins(5)}}"
        )
    return Categorical()
