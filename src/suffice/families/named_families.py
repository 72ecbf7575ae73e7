"""Families that are named for nodes: what they make of the columns of numbers, and which a node cannot have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from suffice.basis.variables import Count, Distributed, Finite, Real, Variable
from suffice.engines.data import Data
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import FitError, listing, nearest, note
from suffice.errors.remedies import DECLARED, FAMILY, Remedy, as_regression, declaration
from suffice.families import family_of, regressions_among
from suffice.families.categorical import FiniteFamily
from suffice.families.chosen.exponential_node import ExponentialNode
from suffice.families.chosen.node_kinds import kind_of
from suffice.families.priors.number_priors import GammaPrior
from suffice.numerics.exponential import Gamma
from suffice.statistics import Statistics

STATES = 20
"""A column of numbers with more different values than this is not taken for states unless it is declared."""

R = TypeVar("R", Data, Sequences)
C = TypeVar("C", Data, Sequences, Statistics)


def as_families(families: Any) -> Any:
    """Families by node, in which a distribution such as `Gamma()` is the family of nodes that have it by their finite parents."""
    if not isinstance(families, Mapping):
        return families
    named: dict[str, Any] = {}
    for name, family in families.items():
        if isinstance(family, GammaPrior):  # `suffice.Gamma()` imagines rows as a prior; as a family it is the distribution
            if family != GammaPrior():
                raise FitError(f"the parameters of {name!r} are learned: as a family it is Gamma(), not {family!r}")
            family = Gamma()
        its_own = getattr(family, "iterative", False) or kind_of(family) is None  # a regression is its own family
        named[name] = family if its_own else ExponentialNode(family)
    return named


def families_of(bn: Any, families: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """The families of a network's regressions, if it is a network, and those that are named beside them."""
    families = as_families(families)
    nodes = bn if hasattr(bn, "compiled") else ()
    own = {n: bn[n].family for n in nodes if bn[n].is_regression or bn[n].child.family is not None}
    return {**own, **families} if isinstance(families, Mapping) and own else families or own or None


def variables_with_distributions(families: Any) -> dict[str, Distributed]:
    """The variables of nodes whose distribution is named."""
    named = as_families(families) if isinstance(families, Mapping) else {}
    return {n: f.variable(n) for n, f in named.items() if isinstance(f, ExponentialNode)}


def with_chosen_families(data: C, families: Any) -> C:
    """Rows, or statistics, whose columns are of the families that were chosen for them."""
    numbers, named = variables_with_distributions(families), families if isinstance(families, Mapping) else {}
    if not isinstance(data, Statistics):
        numbers = {n: v for n, v in numbers.items() if n in data.columns}
        return _with_states(data.with_variables(numbers) if numbers else data, named)
    known = {**data.variables, **numbers}
    return data.with_variables(_of_family(v, named.get(v.name)) for v in known.values())


def _with_states(rows: R, families: Mapping[str, Any]) -> R:
    """Rows whose columns of states are of the families that were chosen in place of tables."""
    states = {n: f for n, f in families.items() if isinstance(f, FiniteFamily) and n in rows.columns}
    schema = rows.schema if states else {}
    return rows.with_variables({n: _of_family(schema[n], f) for n, f in states.items()}) if states else rows


def _of_family(variable: Variable, family: Any) -> Variable:
    return replace(variable, family=family) if isinstance(family, FiniteFamily) and isinstance(variable, Finite) else variable


def number_columns(families: Any, graph: Any) -> list[str]:
    """The columns that are numbers, if they may be, however few values they have: parents of a regression, and children that are
    no states."""
    if not isinstance(families, Mapping):
        return []
    regressions, nodes = regressions_among(families), frozenset(graph.nodes)
    parents = [p for n in regressions if n in nodes for p in graph.parents(n)]
    children = [n for n, f in regressions.items() if f.kind is not Finite]
    return list(dict.fromkeys((*parents, *children, *(n for n, f in families.items() if isinstance(f, ExponentialNode)))))


def with_family_types(rows: R, families: Mapping[str, Any]) -> R:
    """The rows, with columns of the families that were chosen, and numbers that are the child of a family of states or of counts
    taken for such, which is said."""
    chosen = {n: f.variable(n) for n, f in families.items() if isinstance(f, ExponentialNode)}
    if own := {n: v for n, v in chosen.items() if n in rows.columns}:
        rows = rows.with_variables(own)
    others = {n: f for n, f in families.items() if n not in chosen}
    kinds = {n: getattr(f, "kind", Real) for n, f in others.items() if n in rows.columns}
    kinds |= {f.trials: Count for f in others.values() if getattr(f, "trials", None) in rows.columns}
    variables = (rows.data if isinstance(rows, Sequences) else rows).engine.variables(rows.columns)
    if declared := {n: kind for n, kind in kinds.items() if kind is not Real and isinstance(variables[n], Real)}:
        rows = _with_kinds(rows, {n: kind if kind is Finite else Count(n) for n, kind in declared.items()}, families)
    return _with_states(rows, families) if any(isinstance(f, FiniteFamily) for f in families.values()) else rows


def _with_kinds(rows: R, declared: Mapping[str, Any], families: Mapping[str, Any]) -> R:
    """The rows, with numbers taken for states or counts, which is said."""
    result = rows.with_variables(declared)
    for name, kind in declared.items():
        v = result.schema[name]
        if kind is Finite and isinstance(v, Finite) and v.n_states > STATES:
            raise FitError(
                f"{name!r} is a number with {v.n_states:,} different values, and {type(families[name]).__name__} is a family of "
                f"states; if they are states, declare them: {declaration(name, 'Finite', 'scan(data, {})')}"
            )
    states, counts = ([n for n, kind in declared.items() if (kind is Finite) == finite] for finite in (True, False))
    said = [f"{listing(names)} for {what}" for names, what in ((states, "states"), (counts, "counts")) if names]
    note(f"numbers are taken as their family needs them: {' and '.join(said)}; {DECLARED}")
    return result


def for_search(rows: Data, families: Any) -> tuple[Data, dict[str, Any]]:
    """The rows, with columns as families need them, and those families that are regressions; others nodes have anyway."""
    if not isinstance(families or {}, Mapping):
        raise FitError(f"families are given by node, {as_regression('y')}, not as {families!r}")
    named = as_families(dict(families or {}))
    for name, family in named.items():
        _refuse_other(name, family)
        for column in (name, *getattr(family, "roles", ())):
            if column not in rows.columns:
                raise FitError(
                    f"{FAMILY} speaks of {column!r}, which is no column of the data{nearest(str(column), rows.columns)}"
                )
    regressions = regressions_among(named)
    rows = with_family_types(rows.with_numbers(n for n, f in regressions.items() if f.kind is not Finite), named)
    schema = rows.schema if named else {}
    checked_families(named, {n: getattr(f, "roles", ()) for n, f in named.items()}, schema)
    for name, family in regressions.items():
        if family.profiled:
            raise FitError(
                f"{name!r} cannot be {type(family).__name__} in a search: its shape is found in turn with its coefficients, for "
                f"each set of parents anew; search with {Remedy('PoissonLog()', f'--family {name}=poisson')}, and fit the "
                f"graph with this family"
            )
    return rows, regressions


def checked_families(
    families: Any, parents: Mapping[str, Sequence[str]], variables: Mapping[str, Variable], what: str = "graph"
) -> None:
    """Refuse families of nodes that are not there, and those that a node with these parents cannot have."""
    if not isinstance(families or {}, Mapping):
        raise FitError(f"families are given by node, {as_regression('y')}, not as {families!r}")
    for name, family in (families or {}).items():
        if name not in parents:
            raise FitError(f"{FAMILY} speaks of {name!r}, which is not in the {what}{nearest(str(name), parents)}")
        child, above = variables[name], [variables[p] for p in parents[name]]
        if getattr(family, "iterative", False) and not isinstance(family, type):
            family.check(child, above)
            if getattr(family, "ordered", False) and isinstance(child, Finite):
                _say_order(child)
            continue
        _refuse_other(name, family)
        if family != family_of(child, above):
            raise FitError(
                f"{name!r} cannot have the family {family!r}; regressions such as Logistic() and distributions such as "
                "exponential.Gamma() may be chosen, and of states with finite parents a FiniteFamily"
            )


def _refuse_other(name: str, family: Any) -> None:
    if isinstance(family, type) or not hasattr(family, "n_parameters"):
        raise FitError(
            f"the family of {name!r} is an object such as Logistic(), or a distribution such as exponential.Gamma(), "
            f"not {family!r}"
        )


def _say_order(child: Finite) -> None:
    """Words that are in the order of the alphabet may be so because nobody said another."""
    in_order = child.inferred and child.n_states > 2 and list(child.states) == sorted(child.states)
    if in_order and not all(_is_number(s) for s in child.states):
        order = " < ".join(child.states)
        note(
            f"the states of {child.name!r} are taken in this order: {order}; "
            f"{Remedy('variables= in scan', '--finite NAME=a,b')} declares another"
        )


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
