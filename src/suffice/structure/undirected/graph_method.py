"""What all methods that find an undirected graph share: what constraints mean to them, and what they refuse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from suffice.errors import FitError, GraphError
from suffice.errors.remedies import Remedy
from suffice.structure.constraints.constraints import Constraints
from suffice.structure.constraints.rules import Rules
from suffice.structure.problem import Method, Problem
from suffice.structure.results.found_graph import GraphOutcome
from suffice.structure.results.plan import Work
from suffice.variables import Variable


class GraphMethod(Method):
    """A method whose edges have no direction.

    An edge of `Forbid`, `Require` and `Adjacent`, and a name of `Candidates`, then speaks of both directions; what speaks of a
    direction (`Tiers`, `NotAncestor`) or of parents (`MaxParents`) is refused.
    """

    directed = False
    missing_cells = "EM for undirected models is not here: complete the cells first (impute) or leave their columns out"
    """What to do about missing cells."""

    def run(self, problem: Problem) -> GraphOutcome:
        raise NotImplementedError

    def rules(self, constraints: Constraints, variables: Sequence[Variable]) -> Rules:
        """The constraints in numbers: both matrices are symmetric."""
        self._refuse_directions(constraints)
        number = {v.name: i for i, v in enumerate(variables)}
        constraints.refuse_unknown(number)
        rules = Rules.free(len(variables))
        for a, b in constraints.forbidden:
            rules.allowed[number[a], number[b]] = False
        for name, others in constraints.candidates:
            among = np.zeros(len(variables), bool)
            among[[number[other] for other in others]] = True
            rules.allowed[number[name]] &= among
        for a, b in (*constraints.required, *constraints.adjacent):
            rules.required[number[a], number[b]] = True
        allowed, required = rules.allowed & rules.allowed.T, rules.required | rules.required.T
        for i, j in np.argwhere(required & ~allowed).tolist():
            a, b = variables[i].name, variables[j].name
            raise GraphError(f"the edge {a!r} -- {b!r} is required and not allowed: edges have no direction here")
        return replace(rules, allowed=allowed, required=required)

    def _refuse_directions(self, constraints: Constraints) -> None:
        name = type(self).__name__
        if constraints.tiers or constraints.not_ancestor:
            kind = "Tiers" if constraints.tiers else "NotAncestor"
            raise FitError(
                f"{kind} speaks of the direction of edges, and those that {name} finds have none; use "
                f"{Remedy('Forbid(...)', '--forbid')}"
            )
        if constraints.max_parents is not None or constraints.max_parents_of:
            raise FitError(f"MaxParents speaks of parents, and there are none in the undirected graphs that {name} finds")

    def work(self, problem: Problem, rules: Rules) -> Work:
        """What is asked for, to foretell the cost; by default the tables or moments of all pairs."""
        n = float(problem.n)
        return Work(0.0, {1: n, 2: n * (n - 1) / 2})
