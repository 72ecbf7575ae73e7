"""Undirected models as values, before data: which variables interact, and by which numbers.

    ln p(x) = Σ_T w_T · b_T(x_T) − log Z

A *term* T is a set of variables with a basis b: of log-linear models one indicator per joint state, of `Ising` a product of ±1,
of `Features` (`features.py`) what the user wrote. `scopes` are the sets whose tables are all that data has to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.variables import Finite, Variable
from suffice.errors import FitError, GraphError, TooLarge, listing
from suffice.errors.remedies import BINS, declaration
from suffice.graphs import Dag, Graph
from suffice.graphs.text import checked_name
from suffice.numerics.inference.finite.network import Array

Names = tuple[str, ...]

MAX_TERMS = 200_000
"""A clique of k variables has 2^k − 1 terms: more than this are not listed."""


class Term(NamedTuple):
    """Some variables that interact: their names, sorted, and a column per weight over their joint states, row by row. Without a
    `basis` there is one weight per joint state."""

    scope: Names
    basis: Array | None = None

    def n_weights(self, variables: Mapping[str, Finite]) -> int:
        return prod(variables[n].n_states for n in self.scope) if self.basis is None else self.basis.shape[1]


class LogLinear:
    """A hierarchical log-linear model by its generators: the largest sets of variables that interact.

    With a set all its subsets interact, too. `LogLinear.all(2, names)` has all pairs.

    >>> LogLinear([("c", "a"), ("a", "d", "e"), ("d", "a")])
    LogLinear([('a', 'c'), ('a', 'd', 'e')])
    >>> LogLinear.all(2, ["x", "y", "z"]).graph.edges
    (('x', 'y'), ('x', 'z'), ('y', 'z'))
    """

    _what = "a log-linear model"

    def __init__(self, generators: Iterable[str | Iterable[str]]) -> None:
        self._set(maximal(_checked_generators(generators)))

    def _set(self, generators: Iterable[Names]) -> None:
        vars(self)["generators"] = tuple(sorted(generators))

    generators: tuple[Names, ...]
    """Sets of names, each sorted, none within another, in their order."""

    def __setattr__(self, name: str, *value: object) -> None:
        raise AttributeError(f"a {type(self).__name__} never changes; make another one")

    @classmethod
    def all(cls, order: int, names: Iterable[str]) -> LogLinear:
        """All interactions of so many variables.

        >>> LogLinear.all(1, "ab")
        LogLinear([('a',), ('b',)])
        """
        own = sorted({checked_name(n) for n in names})
        if isinstance(order, bool) or not isinstance(order, int) or order < 1:
            raise FitError(f"the order of interactions is a whole number of at least 1, not {order!r}")
        return LogLinear(combinations(own, min(order, len(own))))

    @property
    def nodes(self) -> Names:
        """All names, sorted."""
        return tuple(sorted({n for g in self.generators for n in g}))

    @cached_property
    def graph(self) -> Graph:
        """The graph that joins what interacts."""
        pairs = {pair for g in self.generators for pair in combinations(g, 2)}
        return Graph(sorted(pairs), nodes=self.nodes)

    @property
    def scopes(self) -> tuple[Names, ...]:
        """The sets whose tables are all that data has to say of the model."""
        return self.generators

    @cached_property
    def is_decomposable(self) -> bool:
        """Whether the estimate has a closed form: a decomposable graph, and all in a clique interacts.

        >>> LogLinear([("a", "b", "c")]).is_decomposable, LogLinear.all(2, "abc").is_decomposable
        (True, False)
        """
        return self.graph.is_decomposable and self.generators == self.graph.cliques()

    def terms(self, variables: Mapping[str, Finite]) -> list[Term]:
        """The terms, smaller ones first: every subset of a generator."""
        n = sum(2 ** len(g) - 1 for g in self.generators)
        if n > 4 * MAX_TERMS:
            raise TooLarge(f"{self._what} with {n:,} sets of variables that interact is too large to be written out")
        found = {t for g in self.generators for k in range(1, len(g) + 1) for t in combinations(g, k)}
        return [Term(t) for t in sorted(found, key=lambda t: (len(t), t))]

    def n_parameters(self, variables: Mapping[str, Finite]) -> int:
        """How many of the weights are free: Σ over the terms of Π (states − 1).

        >>> two = {n: Finite(n, ["a", "b"]) for n in "xyz"}
        >>> LogLinear.all(2, "xyz").n_parameters(two), LogLinear.all(1, "xyz").n_parameters(two)
        (6, 3)
        """
        if self.is_decomposable:  # cliques may be too large for a list of all their subsets
            cells = [prod(variables[n].n_states for n in c) - 1 for c in self.graph.cliques()]
            shared = [prod(variables[n].n_states for n in s) - 1 for s in self.graph.separators()]
            return sum(cells) - sum(shared)
        return sum(prod(variables[n].n_states - 1 for n in t.scope) for t in self.terms(variables))

    def finite_variables(self, variables: Mapping[str, Variable]) -> dict[str, Finite]:
        """The variables of the model, which must be finite."""
        return {n: finite(variables[n], self._what) for n in self.nodes}

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.generators == other.generators

    def __hash__(self) -> int:
        return hash((type(self), self.generators))

    def __repr__(self) -> str:
        return f"{type(self).__name__}([{listing(self.generators, 12)}])"


class Pairwise(LogLinear):
    """All pair terms along the edges of a graph, of variables with any number of states (a Potts model).

    >>> Pairwise("a -- b -- c; a -- c").n_parameters({n: Finite(n, ["x", "y"]) for n in "abc"})
    6
    """

    _what = "a pairwise model"

    def __init__(self, graph: Any) -> None:
        if isinstance(graph, Dag):
            raise GraphError("this is a Dag, not a Graph: take its .moral() graph, or its .skeleton()")
        own = Graph(graph)
        self._set([*own.edges, *((n,) for n in own.nodes if not own.neighbours(n))])
        vars(self)["graph"] = own

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self.graph)!r})"


class Ising(Pairwise):
    """Variables of two states, coded −1 and +1 in their order: ln p(x) = Σ h_i x_i + Σ J_ij x_i x_j − log Z.

    >>> model = Ising("a -- b; b -- c")
    >>> model.terms({n: Finite(n, ["down", "up"]) for n in "abc"})[0].basis.ravel()
    array([-1.,  1.])
    """

    _what = "an Ising model"

    def terms(self, variables: Mapping[str, Finite]) -> list[Term]:
        spin = np.array([-1.0, 1.0])
        fields = [Term((n,), spin[:, None]) for n in self.nodes]
        return fields + [Term(edge, np.outer(spin, spin).reshape(-1, 1)) for edge in self.graph.edges]

    def finite_variables(self, variables: Mapping[str, Variable]) -> dict[str, Finite]:
        own = super().finite_variables(variables)
        for name, variable in own.items():
            if variable.n_states != 2:
                raise FitError(
                    f"{name!r} has {variable.n_states} states ({listing(variable.states, 4)}), and an Ising model is of two: "
                    "Pairwise(graph) takes any number"
                )
        return own


def _checked_generators(generators: Iterable[Any]) -> list[Names]:
    if isinstance(generators, (str, Graph)) or not isinstance(generators, Iterable):
        raise FitError(f"generators are sets of names, LogLinear([('a', 'b'), ('b', 'c')]), not {generators!r}")
    result = []
    for given in generators:
        names = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else ()
        own = tuple(sorted({checked_name(n) for n in names}))
        if not own or len(own) < len(names):
            raise FitError(f"a generator is a set of different names, not {given!r}")
        result.append(own)
    if not result:
        raise FitError("a log-linear model needs a generator at least: LogLinear([('a', 'b')])")
    return result


def maximal(sets: Iterable[Names]) -> list[Names]:
    """Those that are within no other."""
    found: list[Names] = []
    holding: dict[str, list[frozenset[str]]] = {}
    for own in sorted(set(sets), key=len, reverse=True):
        if not any(frozenset(own) <= other for other in holding.get(own[0], [])):
            found.append(own)
            for name in own:
                holding.setdefault(name, []).append(frozenset(own))
    return found


def finite(variable: Variable, what: str) -> Finite:
    if not isinstance(variable, Finite):
        raise FitError(
            f"{variable.name!r} is {variable!r}, and {what} is of finite variables: declare its states where they are few, "
            f"{declaration(variable.name, '[...]', 'scan(data, {})')}, cut it {BINS}, or take a graph over numbers alone"
        )
    return variable
