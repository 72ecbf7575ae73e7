"""Names relative to a step, `x` at the present one and `x[-2]` two before, and graphs in such names: read, checked, written."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import chain as joined
from typing import Any, TypeAlias

from suffice.errors import GraphError, TooLarge, whole
from suffice.graphs.paths import chain, find_cycle, links
from suffice.graphs.text import all_nodes, checked_name, read_directed, show, spelling

Parents: TypeAlias = Mapping[str, tuple[str, ...]]
"""The parents of each variable, the lagged ones as `x[-1]`."""

MAX_LAG = 99_999

_INDEX = re.compile(r"t?[+\-\u2212]?[0-9.]*[0-9]")
_LAG = re.compile(r"[-\u2212]0*([1-9][0-9]*)")


def lag(name: str, steps: int = 1) -> str:
    """The name of a variable some steps before the present one.

    >>> lag("y"), lag("y", 2)
    ('y[-1]', 'y[-2]')
    """
    variable, k = variable_and_lag(checked_name(name))
    if k:
        raise GraphError(f"{show(name)} is a lag itself; write lag({show(variable)}, steps) with all the steps")
    return relative_name(variable, whole(steps, f"the lag of {show(name)}", 1, GraphError))


def relative_name(variable: str, k: int) -> str:
    """The name of a variable k steps before the present one, where k may be 0."""
    return f"{variable}[-{k}]" if k else variable


def unrolled_name(variable: str, t: int) -> str:
    """The name of a variable at step t of an unrolled graph, and of the CPD that it has to itself there."""
    return f"{variable}[{t}]"


def variable_and_lag(name: str) -> tuple[str, int]:
    """The variable that a name means and how many steps back, 0 for the present; blanks inside the brackets do not count."""
    variable, index = _parts(name)
    if not index:
        return name, 0
    found = _LAG.fullmatch(index)
    if not found or not variable.strip() or _parts(variable)[1]:
        raise GraphError(f"{show(name)} is no name in a template: write x for the present step and x[-1] for the one before")
    if len(found[1]) > len(str(MAX_LAG)):
        raise TooLarge(f"{show(name)} reaches back more than {MAX_LAG:,} steps")
    return variable, int(found[1])


def _parts(name: str) -> tuple[str, str]:
    """What stands before the brackets at the end of a name, and in them, if that is a number of steps."""
    variable, bracket, rest = name.rstrip().rpartition("[")
    index = "".join(rest[:-1].split())
    return (variable, index) if bracket and rest.endswith("]") and _INDEX.fullmatch(index) else (name, "")


def read_lagged(x: Any, nodes: Collection[str] | None = None) -> dict[str, tuple[str, ...]]:
    """The parents of each variable, by name; `nodes` are all variables, where these are known."""
    mentioned, read = read_directed(x)
    pairs = [(relative_name(*variable_and_lag(a)), relative_name(*variable_and_lag(b))) for a, b in read]
    for a, b in pairs:
        variable, k = variable_and_lag(b)
        if k:
            hint = f"write {spelling(variable)} for the child, and count the lag of its parent from there"
            raise GraphError(f"an edge into the past: {show(a)} -> {show(b)}; {hint}")
        if a == b:
            raise GraphError(f"the variable {show(a)} has an edge to itself; its value one step before is {show(lag(a))}")
    all_nodes([], pairs)
    lagged = {a for a, _ in pairs}
    for name in mentioned:
        if variable_and_lag(name)[1] and relative_name(*variable_and_lag(name)) not in lagged:
            raise GraphError(f"the lagged {show(name)} has no child; a lag is only of use as a parent")
    variables = all_nodes((variable_and_lag(x)[0] for x in (*mentioned, *joined.from_iterable(pairs))), [], nodes)
    for name in variables:
        if name != name.rstrip() and name.rstrip() in variables:
            raise GraphError(
                f"the variables {show(name.rstrip())} and {show(name)} differ only by a blank: write x[-1], not x [-1]"
            )
    parents, _ = links(pairs, variables)
    found = {name: tuple(parents[name]) for name in variables}
    if cycle := find_cycle(within(found)):
        raise GraphError(f"the graph has a cycle within a step: {chain(cycle)}")
    return found


def within(parents: Parents) -> dict[str, list[str]]:
    """The parents at the present step."""
    return {x: [p for p in ps if p in parents] for x, ps in parents.items()}


def lagged_written(name: str) -> str:
    """A name as it stands in the text of a template: brackets of a lag need no quotes."""
    variable, k = variable_and_lag(name)
    return name if spelling(variable) == variable and k else spelling(name)
