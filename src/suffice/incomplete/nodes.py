"""The nodes of a graph with their families: how each takes part where cells are missing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from suffice.errors import FitError, ModelError, listed
from suffice.families import family_of
from suffice.families.categorical import Categorical, Table
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.gaussian import LinearGaussian
from suffice.graphs import Dag
from suffice.statistics.configurations import checked_cells, sizes
from suffice.variables import Count, Finite, Variable


@dataclass(frozen=True, eq=False)
class NodeFamily:
    """A variable and its parents. Its statistic is of `reals` within each configuration of `finite`, or counts of `finite`.

    It takes part by a table, by a normal distribution, or by what its family says of completed rows.
    """

    child: Variable
    parents: tuple[Variable, ...]
    family: Any
    finite: tuple[Finite, ...]
    reals: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.child.name

    @property
    def members(self) -> tuple[Variable, ...]:
        return (*self.parents, self.child)

    @cached_property
    def by_table(self) -> bool:
        return isinstance(self.family, Categorical)

    @cached_property
    def normal(self) -> bool:
        return isinstance(self.family, LinearGaussian)

    @cached_property
    def by_rows(self) -> bool:
        """Whether it is neither a table nor normal: it says what it needs of completed rows."""
        return not self.by_table and not self.normal

    @cached_property
    def iterative(self) -> bool:
        return bool(getattr(self.family, "iterative", False))

    @cached_property
    def counted(self) -> tuple[str, ...]:
        """The counts of which the sum of ln x! belongs to the statistic."""
        counts = {v.name for v in self.members if isinstance(v, Count)}
        return tuple(r for r in self.reals if r in counts) if self.by_rows else ()

    @cached_property
    def strides(self) -> dict[str, int]:
        """How far a step of each finite variable moves the flat index of a configuration."""
        ends = np.cumprod([1, *sizes(self.finite)[::-1]])[:-1][::-1]
        return {v.name: int(s) for v, s in zip(self.finite, ends, strict=True)}

    @cached_property
    def n_cells(self) -> int:
        return checked_cells(self.finite, f"the table of {self.name!r}")

    def arranged(self, cpd: Any) -> Any:
        """A distribution with the axes of its parents in the order of the node; one that is not of this node is refused."""
        wanted = tuple(p.name for p in self.parents)
        if cpd is None or set(cpd.parents) != set(wanted):
            what = "table" if self.by_table else "distribution"
            raise ModelError(f"the start has no {what} of {self.name!r} given {listed(wanted) or 'nothing'}")
        theirs = {v.name: v for v in (*cpd.parent_variables, cpd.child)}
        for v in self.members:
            other = theirs[v.name]
            if isinstance(v, Finite) and v.states != getattr(other, "states", ()):
                states = listed(getattr(other, "states", ()))
                raise ModelError(f"{v.name!r} has the states {states} in the start and {listed(v.states)} in the data")
        kind = Table if self.by_table else ConditionalGaussian
        if not self.by_rows and not isinstance(cpd, kind):
            raise ModelError(f"the start has a {type(cpd).__name__} of {self.name!r}, which needs a {kind.__name__}")
        if self.by_rows:
            return cpd
        turned = cpd.arranged(wanted)
        return kind(self.child, self.parents, *(getattr(turned, a) for a in kind.arrays))  # type: ignore[arg-type]


def nodes_of(dag: Dag, variables: Mapping[str, Variable], families: Mapping[str, Any]) -> dict[str, NodeFamily]:
    """The nodes of a graph with their families: those named, or the ones of their types."""
    result = {}
    for name, child in variables.items():
        parents = tuple(variables[p] for p in dag.parents(name))
        family = families.get(name) or family_of(child, parents)
        finite: tuple[Finite, ...] = ()
        reals: tuple[str, ...] = ()
        if not getattr(family, "iterative", False):
            request = family.needs(child, parents)
            finite, reals = tuple(v for n in request.finite if isinstance(v := variables[n], Finite)), request.real
        result[name] = NodeFamily(child, parents, family, finite, reals)
    return result


def refuse_unanswerable(missing: Mapping[str, int], dag: Dag, nodes: Mapping[str, NodeFamily]) -> None:
    """Refuse missing numbers in families that are not normal: there is no closed form to sum them out."""
    for node in nodes.values():
        for v in node.members if node.by_rows else ():
            if isinstance(v, Finite) or not missing.get(v.name):
                continue
            if v.name == node.name and not dag.children(v.name):
                continue
            raise FitError(
                f"cells of {v.name!r} are missing, and {node.name!r} is not Gaussian in it but "
                f"{type(node.family).__name__}: such numbers cannot be summed out; fill them, or cut {v.name!r} into Bins(...)"
            )
