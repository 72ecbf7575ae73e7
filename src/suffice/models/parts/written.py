"""CPDs that a user writes down: arrays, frames, Gaussians and rates, bound to a node and its parents."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from suffice.basis.libraries import nw
from suffice.basis.variables import Count, Declaration, Finite, Real, Variable, by_name
from suffice.errors import ModelError, listing, nearest
from suffice.errors.remedies import Remedy, declaration
from suffice.families.by_hand import ByHand
from suffice.families.categorical import Table
from suffice.families.protocol.family import Cpd, as_numbers
from suffice.statistics.counts import checked_cells, sizes


def written_cpd(name: str, given: Any, parents: Sequence[str], known: dict[str, Variable]) -> Cpd:
    """The CPD of one node. A node that `known` lacks is added: a Gaussian is Real, rates are of a Count, a frame names states, a
    regression is of what its family is for."""
    if isinstance(given, Cpd):
        return _fitting(name, given, parents, known)
    if isinstance(given, ByHand):
        if name not in known and given.kind is None:
            raise _no_states(name)
        child = known[name] if given.kind is None else known.setdefault(name, given.kind(name))
        if given.words and given.kind is not None and not isinstance(child, given.kind):
            raise ModelError(f"{name!r} is {_NEEDED[type(child)]}, not {given.words}")
        return given.bound(child, [known[p] for p in parents])
    columns = _columns(given)
    if name not in known and columns is not None and name in columns:
        known[name] = Finite(name, dict.fromkeys(columns[name]))
    if name not in known:
        raise _no_states(name)
    child = known[name]
    if not isinstance(child, Finite):
        raise ModelError(f"{name!r} is {_NEEDED[type(child)]}, not a table")
    if numbers := [p for p in parents if not isinstance(known[p], Finite)]:
        raise ModelError(f"the table of {name!r} cannot have the real parent {numbers[0]!r}")
    finite = tuple(v for p in parents if isinstance(v := known[p], Finite))
    checked_cells((*finite, child), f"the table of {name!r}")
    if columns is None:
        refusal = f"the table of {name!r} must be numbers in the shape of its parents and states"
        return Table(child, finite, as_numbers(given, refusal))
    return Table(child, finite, _from_cells(child, finite, columns))


_NEEDED: dict[type, str] = {
    Finite: "finite and needs a table",
    Real: "Real and needs a Gaussian",
    Count: "a Count and needs Rates",
}


def _no_states(name: str) -> ModelError:
    given = Remedy(f"variables=[Finite({name!r}, [...]), ...]", declaration(name, "[...]").option)
    return ModelError(f"the states of {name!r} are not known: give {given}")


def _fitting(name: str, given: Cpd, parents: Sequence[str], known: dict[str, Variable]) -> Cpd:
    """A CPD of another network, which must be of this node, these parents, and the same states."""
    if given.child.name != name or set(given.parents) != set(parents):
        is_of = f"p({given.child.name} | {', '.join(given.parents)})"
        raise ModelError(
            f"the distribution of {name!r} is {is_of}, and the graph gives it the parents {listing(parents) or '(none)'}"
        )
    for variable in (given.child, *given.parent_variables):
        if known.setdefault(variable.name, variable) != variable:
            raise ModelError(f"the distribution of {name!r} is over {variable!r}, and the network has {known[variable.name]!r}")
    return given


def _columns(given: Any) -> dict[str, list[Any]] | None:
    """The columns of a frame, or None if it is not one."""
    if isinstance(given, (list, tuple, np.ndarray)):
        return None
    if isinstance(given, dict):
        if not all(isinstance(v, (list, tuple, np.ndarray)) for v in given.values()):
            raise ModelError("a table is an array, or a frame with one row per cell; a dict of single numbers is neither")
        return {str(k): list(v) for k, v in given.items()}
    table = nw.from_native(given, eager_only=True, pass_through=True)
    return {c: table[c].to_list() for c in table.columns} if isinstance(table, nw.DataFrame) else None


def _from_cells(child: Finite, parents: tuple[Finite, ...], columns: dict[str, list[Any]]) -> Any:
    """The table from one row per cell: a column for each parent, one for the child, one of numbers named `probability`."""
    variables = (*parents, child)
    if lacking := [n for n in [*(v.name for v in variables), "probability"] if n not in columns]:
        raise ModelError(f"the frame of {child.name!r} has no column {lacking[0]!r}; it has {listing(columns)}")
    table = np.full(math.prod(sizes(variables)), np.nan)
    for i, p in enumerate(columns["probability"]):
        place = int(np.ravel_multi_index([v.code(columns[v.name][i]) for v in variables], sizes(variables)))
        if not math.isnan(table[place]):
            raise ModelError(f"the frame of {child.name!r} has the cell of row {i + 1} twice")
        table[place] = float(p)
    if np.isnan(table).any():
        raise ModelError(f"the frame of {child.name!r} lacks {int(np.isnan(table).sum())} of its {table.size} cells")
    return table.reshape(sizes(variables))


def declared_variables(
    cpds: Mapping[str, object], variables: Mapping[str, Declaration] | Iterable[Variable]
) -> dict[str, Variable]:
    """The variables that a user declares beside distributions by node, {name: [states]} among them, as `scan` takes them, too."""
    if not isinstance(cpds, Mapping):
        raise ModelError(f"the distributions are given by node: {{'x': [0.5, 0.5], ...}}, not as {type(cpds).__name__}")
    declared: Any = variables
    if isinstance(variables, Mapping):
        declared = {n: Finite(n, v) if isinstance(v, (list, tuple)) else v for n, v in variables.items()}
    return by_name(declared)


def check_nodes(cpds: Mapping[str, object], known: Iterable[str], wanted: Collection[str], word: str) -> None:
    """Refuse what is no node of a graph, and a node without a distribution."""
    for name in [*cpds, *known]:
        if name not in wanted:
            raise ModelError(f"the {word} has no node {name!r}{nearest(name, wanted)}")
    if lacking := [n for n in wanted if n not in cpds]:
        raise ModelError(f"there is no distribution for the node {lacking[0]!r}")
