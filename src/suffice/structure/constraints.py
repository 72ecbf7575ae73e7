"""Constraints on the edges of a graph that is searched for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from suffice.structure.rules import Rules
from suffice.variables import Finite, Variable


@dataclass(frozen=True)
class Constraints:
    """What is known about the graph before the data is seen."""

    def rules(self, variables: Sequence[Variable]) -> Rules:
        """The constraints in numbers: variable i is variables[i], which are sorted by name."""
        rules = Rules.free(len(variables))
        for i, child in enumerate(variables):
            for j, parent in enumerate(variables):
                if isinstance(child, Finite) and not isinstance(parent, Finite):
                    rules.allowed[i, j] = False
        return rules
