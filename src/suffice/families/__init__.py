"""Families of conditional distributions, their priors, and which of them a node takes.

May use engines, exponential families, inference and statistics; knows no model. Start with `protocol/family`: what a family
and its distributions can do; then `categorical`, the shortest one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from suffice.errors import FitError
from suffice.graphs.lagged import variable_and_lag
from suffice.errors.remedies import as_regression, declaration
from suffice.families.categorical import TableNode
from suffice.families.protocol.family import Estimate, Family, Mean, Mode
from suffice.families.conditional_gaussian import LinearGaussian
from suffice.families.chosen.exponential_node import PoissonNode
from suffice.basis.variables import Count, Distributed, Finite, Real, Variable


def family_of(child: Variable, parents: Sequence[Variable]) -> Family[Any]:
    """The family of a node by the types of its variables; what no family covers yet is refused with a way out."""
    numbers = [p.name for p in parents if not isinstance(p, Finite)]
    if isinstance(child, Distributed) and numbers:
        regression = f"make it a regression, {as_regression(child.name, 'PoissonLog' if child.whole else 'GammaLog')}, "
        raise FitError(
            f"{child.name!r} is {child.family!r} by finite parents, and {numbers[0]!r} is a number: "
            f"{'' if child.family.kind.bounded else regression}turn the edge round, or cut the parent into intervals: "
            f"{declaration(numbers[0], 'Bins(5)')}"
        )
    if child.family is not None and not numbers:  # one that was chosen for states or a number
        return child.family  # type: ignore[no-any-return]
    if numbers and not isinstance(child, Real):
        name, number, finite = child.name, numbers[0], isinstance(child, Finite)
        of_states = f"the finite node {name!r} has the real parent {number!r}, which needs a GLM"
        of_counts = f"the count {name!r} has the parent {number!r}, a number, which needs a Poisson regression"
        raise FitError(
            f"{of_states if finite else of_counts}: name it, {as_regression(name, 'Logistic' if finite else 'PoissonLog')}, "
            f"turn the edge round, or cut the parent into intervals: {declaration(variable_and_lag(number)[0], 'Bins(5)')}"
        )
    if isinstance(child, Count):
        return PoissonNode()
    return TableNode() if isinstance(child, Finite) else LinearGaussian()


def has_family(child: Variable, parents: Sequence[Variable]) -> bool:
    """Whether `family_of` knows one: only a real child can have numbers as parents."""
    return isinstance(child, Real) or all(isinstance(p, Finite) for p in parents)


def regressions_among(families: Mapping[str, Any]) -> dict[str, Any]:
    """Those of some families, by node, that are regressions; what is no family is none."""
    return {n: f for n, f in families.items() if getattr(f, "iterative", False)}


def checked_estimate(estimate: Any) -> Estimate:
    """Mean() where nothing is said."""
    how = Mean() if estimate is None else estimate
    if not isinstance(how, (Mean, Mode)):
        raise FitError(f"estimate is Mean() or Mode(), not {estimate!r}")
    return how
