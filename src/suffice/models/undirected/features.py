"""Models of features that the user names, tabulated at once so that models pickle and save."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import combinations, combinations_with_replacement, product
from typing import Any

import numpy as np

from suffice.basis.variables import Finite, Variable, by_name, state_text
from suffice.errors import FitError, ModelError, nearest
from suffice.graphs import Graph
from suffice.models.undirected.log_linear import LogLinear, Names, Term, finite, maximal
from suffice.models.undirected.twin import Undirected
from suffice.numerics.inference.finite.network import Array
from suffice.statistics.counts import checked_cells, freeze, sizes


class Features:
    """A model of features that the user names: ln p(x) = Σ w_f f(x) + ln base(x) − log Z.

    A feature is a mapping from a state to a number, or a function of the state; of several variables from a tuple, or a function
    of so many arguments; `(names, feature)` where it is of some of the variables only. Functions are tabulated at once; states
    that are numbers reach them as numbers.

    >>> die = Finite("die", range(1, 7))
    >>> Features({"mean": lambda x: x, "six": {6: 1}}, over=[die])
    Features(mean(die), six(die))
    """

    tables: Mapping[str, tuple[Names, Array]]
    """Of each feature its variables and its value at each of their joint states."""

    def __init__(self, features: Mapping[str, Any], over: Iterable[Finite]) -> None:
        if not isinstance(features, Mapping) or not features:
            raise FitError("features are given by name: Features({'mean': {1: 1, 2: 2}}, over=[variable])")
        declared = by_name([over] if isinstance(over, Finite) else over)
        variables = {n: finite(v, "a model of features") for n, v in declared.items()}
        if not variables:
            raise FitError("features are of variables: Features(..., over=[Finite('die', range(1, 7))])")
        tables = {str(name): _tabulate(str(name), f, variables) for name, f in features.items()}
        vars(self).update(variables=variables, tables=tables)

    variables: dict[str, Finite]

    @classmethod
    def of(cls, tables: Mapping[str, tuple[Names, Array]], variables: Mapping[str, Finite]) -> Features:
        """A model from finished tables; the way in for readers of files."""
        model = cls.__new__(cls)
        own = {name: (scope, np.array(table, dtype=np.float64)) for name, (scope, table) in tables.items()}
        vars(model).update(variables=dict(variables), tables={n: (scope, freeze(t)) for n, (scope, t) in own.items()})
        return model

    __setattr__ = LogLinear.__setattr__

    @property
    def nodes(self) -> Names:
        return tuple(sorted(self.variables))

    @property
    def scopes(self) -> tuple[Names, ...]:
        """The sets whose tables are all that data has to say of the model."""
        lone: list[Names] = [(n,) for n in self.nodes]
        return tuple(sorted(maximal([tuple(sorted(scope)) for scope, _ in self.tables.values()] + lone)))

    @cached_property
    def graph(self) -> Graph:
        pairs = {pair for s in self.scopes for pair in combinations(s, 2)}
        return Graph(sorted(pairs), nodes=self.nodes)

    is_decomposable = False

    def terms(self, variables: Mapping[str, Finite]) -> list[Term]:
        """One for each set of variables that has features, a weight per feature, in the order in which they were given."""
        own: dict[Names, list[Array]] = {}
        for scope, table in self.tables.values():
            order = tuple(sorted(scope))
            own.setdefault(order, []).append(np.transpose(table, [scope.index(n) for n in order]).reshape(-1))
        return [Term(scope, np.column_stack(columns)) for scope, columns in own.items()]

    @property
    def weight_names(self) -> Names:
        """The features in the order of the weights of `terms`."""
        by_scope: dict[Names, list[str]] = {}
        for name, (scope, _) in self.tables.items():
            by_scope.setdefault(tuple(sorted(scope)), []).append(name)
        return tuple(n for names in by_scope.values() for n in names)

    def n_parameters(self, variables: Mapping[str, Finite]) -> int:
        """The features, less those that are sums of others and a constant: the rank of their correlations over all joint states.

        Features f and g covary by their means given the variables that they share.
        """
        own = list(self.tables.values())
        spread = np.array([np.std(table) if np.ptp(table) > 0.0 else 0.0 for _, table in own])
        matrix = np.zeros((len(own), len(own)))
        for (i, (a, f)), (j, (b, g)) in combinations_with_replacement(enumerate(own), 2):
            shared = [n for n in a if n in b]
            if shared and spread[i] and spread[j]:
                matrix[i, j] = matrix[j, i] = (
                    np.mean(_mean_given(a, f, shared) * _mean_given(b, g, shared)) / spread[i] / spread[j]
                )
        return int(np.linalg.matrix_rank(matrix, hermitian=True, tol=1e-9))

    def finite_variables(self, variables: Mapping[str, Variable]) -> dict[str, Finite]:
        for name, own in self.variables.items():
            if variables[name] != own:
                raise FitError(
                    f"the features are of {own!r}, and the data have {variables[name]!r}: declare its states when scanning"
                )
        return dict(self.variables)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Features) or self.variables != other.variables or list(self.tables) != list(other.tables):
            return False
        both = zip(self.tables.values(), other.tables.values(), strict=True)
        return all(a[0] == b[0] and np.array_equal(a[1], b[1]) for a, b in both)

    def __hash__(self) -> int:
        return hash((tuple(self.variables.values()), tuple(self.tables)))

    def __repr__(self) -> str:
        own = [f"{name}({', '.join(scope)})" for name, (scope, _) in self.tables.items()]
        return f"Features({', '.join(own)})"


UndirectedModel = LogLinear | Features


def is_undirected(x: Any) -> bool:
    """Whether something spells an undirected model; of a large graph the cliques need not be known for that."""
    return isinstance(x, (LogLinear, Features, Graph, Undirected)) or Graph.is_text(x)


def undirected_model(x: Any) -> UndirectedModel | None:
    """The undirected model that something spells, None if it is a directed one: graphs have their cliques as generators."""
    x = getattr(x, "model", x) if isinstance(getattr(x, "model", None), (LogLinear, Features)) else x
    if isinstance(x, (LogLinear, Features)):
        return x
    if isinstance(x, (Graph, Undirected)) or Graph.is_text(x):
        return LogLinear(Graph(x).cliques())
    return None


def _mean_given(scope: Names, table: Array, shared: Sequence[str]) -> Array:
    """What a feature is on average given some of its variables, less its mean; axes in the order of `shared`."""
    rest = tuple(i for i, n in enumerate(scope) if n not in shared)
    kept = [n for n in scope if n in shared]
    return np.asarray(np.transpose(table.mean(axis=rest), [kept.index(n) for n in shared]) - table.mean())


def _tabulate(name: str, given: Any, variables: Mapping[str, Finite]) -> tuple[Names, Array]:
    scope, feature = tuple(variables), given
    if isinstance(given, tuple) and len(given) == 2:
        scope, feature = ((given[0],) if isinstance(given[0], str) else tuple(given[0])), given[1]
    for n in scope:
        if n not in variables:
            raise FitError(f"the feature {name!r} is of {n!r}, which is not among the variables{nearest(str(n), variables)}")
    own = [variables[n] for n in scope]
    checked_cells(own, f"the feature {name!r}")
    values = _values_of_mapping(name, feature, own) if isinstance(feature, Mapping) else _values_of_function(name, feature, own)
    try:
        table = np.array(values, dtype=np.float64).reshape(sizes(own))
    except (TypeError, ValueError):
        raise FitError(f"the feature {name!r} is not a number at every state") from None
    if not np.isfinite(table).all():
        raise FitError(f"the feature {name!r} is not a finite number at every state")
    return scope, freeze(table)


def _values_of_mapping(name: str, feature: Mapping[Any, Any], own: Sequence[Finite]) -> list[float]:
    """Joint states that are not mentioned have the value 0."""
    known: dict[tuple[str, ...], float] = {}
    for key, value in feature.items():
        states = tuple(map(state_text, key)) if isinstance(key, tuple) else (state_text(key),)
        if len(states) != len(own):
            raise FitError(f"the feature {name!r} is of {len(own)} variables, and {key!r} is a state of {len(states)}")
        for variable, state in zip(own, states, strict=True):
            variable.code(state)
        known[states] = value
    return [known.get(states, 0.0) for states in product(*(v.states for v in own))]


def _values_of_function(name: str, feature: Callable[..., float], own: Sequence[Finite]) -> list[float]:
    if not callable(feature):
        raise FitError(f"the feature {name!r} is a mapping from states to numbers, or a function of states, not {feature!r}")
    try:
        return [float(feature(*states)) for states in product(*map(_values, own))]
    except (TypeError, ValueError) as error:
        raise ModelError(f"the feature {name!r} cannot be tabulated: {error}") from None


def _values(variable: Finite) -> list[Any]:
    """The states as what functions get: numbers, if all are."""
    try:
        numbers = [float(s) for s in variable.states]
    except ValueError:
        return list(variable.states)
    return [int(x) if x.is_integer() else x for x in numbers]
