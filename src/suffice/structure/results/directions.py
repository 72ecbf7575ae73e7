"""Why an edge that a search found has its direction, in a few plain words; and the limit of the kind of model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

import numpy as np

from suffice.errors import listing
from suffice.errors.remedies import as_regression, declaration
from suffice.graphs.text import Edge
from suffice.structure.constraints.rules import Parents, Rules
from suffice.structure.problem import Problem
from suffice.variables import Finite, Variable

COMPELLED = "compelled"
"""Every graph of the same independences has it this way."""

EITHER = "either way"
"""The data cannot tell: an equivalent graph has it the other way, and nothing forbids that one."""

CONSTRAINED = "fixed by constraints"
"""An equivalent graph would have it the other way, but the constraints, or the method's, leave only this one."""

MODEL = "fixed by the kind of model"
"""The other way there is no family: a state cannot have a number for a parent."""

DISTINCT = "the other way is another model"
"""One of its ends is a regression: the two directions are different distributions, and the score tells them apart."""

TIME = "by time"
"""The parent lies in the past."""


def directions(problem: Problem, rules: Rules, parents: Sequence[Parents], roots: Collection[object] = ()) -> dict[Edge, str]:
    """Why each edge (parent, child) of a graph leads this way. `roots` are nodes that the method was told to begin with."""
    dag, names = problem.dag(list(parents)), problem.names
    pairs = [(p, c) for c, chosen in enumerate(parents) for p in chosen]
    kind = [(names[c], names[p]) for p, c in pairs if not problem.has_family(p, (c,))]
    distinct = [(names[c], names[p]) for p, c in pairs if problem.is_one_way(p, c)]
    one_way = rules.required | ~rules.allowed.T | np.array([name in roots for name in names], bool)
    told = [(names[c], names[p]) for p, c in pairs if one_way[c, p]]
    past = {names[i] for i in problem.given}
    refusals = ((), kind, distinct, [*distinct, *told])
    itself, by_kind, by_model, by_rules = (set(dag.cpdag(refused).directed) for refused in refusals)

    def why(edge: Edge) -> str:
        if edge[0] in past:
            return TIME
        if edge[::-1] in kind:
            return MODEL
        if edge in itself:
            return COMPELLED
        if edge in by_kind:
            return MODEL
        return DISTINCT if edge in by_model else CONSTRAINED if edge in by_rules else EITHER

    return {(names[p], names[c]): why((names[p], names[c])) for p, c in sorted(pairs)}


def model_limit(variables: Iterable[Variable], regressions: Collection[str] = ()) -> str | None:
    """What is said before states and numbers are searched together: which directions there are, and how to have the others.

    >>> from suffice import Real
    >>> model_limit([Real("x"), Real("y")])
    >>> print(model_limit([Finite("ill", ["no", "yes"]), Real("sbp")]))
    'sbp' is a number beside states: an edge between them can only lead from the state to the number (conditional Gaussian), ...
    >>> model_limit([Finite("ill", ["no", "yes"]), Real("sbp")], ["ill"])
    """
    every = list(variables)
    numbers = [v.name for v in every if not isinstance(v, Finite)]
    states = [v.name for v in every if isinstance(v, Finite) and v.name not in regressions]
    if not numbers or not states:
        return None
    are = f"{listing(numbers)} {'is a number' if len(numbers) == 1 else 'are numbers'}"
    return (
        f"{are} beside states: an edge between them can only lead from the state to the number (conditional Gaussian), "
        f'whatever caused what; such a direction is "{MODEL}". To leave it open, let a state be a regression, which may have '
        f"numbers for parents: {as_regression(states[0])}; or cut numbers into intervals: {declaration(numbers[0], 'Bins(5)')}"
    )
