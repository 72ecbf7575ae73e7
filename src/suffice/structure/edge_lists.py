"""Edges, pairs, names and sizes as a user writes them in constraints."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping
from typing import Any

from suffice.errors import GraphError
from suffice.graphs import Dag
from suffice.graphs.input import check_edges, checked_name, is_networkx, read_directed, read_pairs
from suffice.graphs.text import Edge, shown


def edges_in(items: Iterable[Any]) -> tuple[Edge, ...]:
    """Edges, sorted and each once, from all the ways in which they are written down."""
    found: set[Edge] = set()
    for item in items:
        found.update(_edges_of(getattr(item, "dag", item)))  # a network stands for its graph
    check_edges(sorted(found))
    return tuple(sorted(found))


def _edges_of(item: Any) -> Iterable[Edge]:
    if isinstance(item, Dag):
        return item.edges
    if isinstance(item, str):
        names, edges = read_directed(item)
        lone = set(names) - {x for edge in edges for x in edge}
        if lone or not edges:
            what = f"{shown(min(lone))} has no edge in {shown(item)}" if lone else f"there is no edge in {shown(item)}"
            raise GraphError(f"{what}; an edge is written 'a -> b' or ('a', 'b')")
        return edges
    if isinstance(item, Mapping) or is_networkx(item):
        return read_directed(item)[1]
    return _pairs_of(item)


def pairs_in(items: Iterable[Any]) -> tuple[Edge, ...]:
    """Pairs of names, sorted and each once, one by one or in lists of pairs."""
    found = {pair for item in items for pair in _pairs_of(item)}
    for a, b in sorted(found):
        if a == b:
            raise GraphError(f"a pair is of two names, not {shown(a)} twice")
    return tuple(sorted(found))


def _pairs_of(item: Any) -> list[Edge]:
    is_one = isinstance(item, str) or (isinstance(item, (tuple, list)) and any(isinstance(x, str) for x in item))
    return read_pairs([item] if is_one else item)


def names_in(names: Any, what: str) -> tuple[str, ...]:
    """Names, sorted and each once, from a list of them."""
    if isinstance(names, str):
        raise GraphError(f"{what} should be a list of names, not {shown(names)}; write [{shown(names)}]")
    if not isinstance(names, Iterable):
        raise GraphError(f"{what} should be a list of names, not {shown(names)}")
    found = list(names)
    if found and not any(isinstance(name, str) for name in found) and all(isinstance(name, Iterable) for name in found):
        raise GraphError(f"{what} should be a list of names, not a list of lists; put a star before it")
    return tuple(sorted({checked_name(name) for name in found}))


def size_in(most: Any, of: str) -> int:
    try:
        number = operator.index(most)
    except TypeError:
        number = -1
    if number < 0 or isinstance(most, bool):
        raise GraphError(f"the maximum of parents of {of} is a whole number from 0 up, not {shown(most)}")
    return number
