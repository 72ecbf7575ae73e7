"""What graphs are made of: text, mappings, pairs and networkx graphs, read into checked names and pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from suffice.errors import GraphError, nearest
from suffice.graphs.text import Edge, parse_arrows, parse_modelstring, shown


def read_directed(x: Any) -> tuple[list[str], list[Edge]]:
    """The names that something mentions and its pairs (parent, child); the pairs of one child in the order of its parents.

    >>> read_directed({"c": ["b", "a"]})
    (['c'], [('b', 'c'), ('a', 'c')])
    """
    if isinstance(x, str):
        return _read_text(x)
    if isinstance(x, Mapping):
        return [checked_name(c) for c in x], [(checked_name(p), c) for c, ps in x.items() for p in _parents_of(c, ps)]
    if is_networkx(x):
        if not x.is_directed():
            raise GraphError("the networkx graph is undirected; a Dag needs a DiGraph")
        return read_networkx(x)
    return [], read_pairs(x)


def _read_text(text: str) -> tuple[list[str], list[Edge]]:
    if not text.lstrip().startswith("["):
        return parse_arrows(text)
    names, pairs = parse_modelstring(text.strip())
    known = set(names)
    for parent, _ in pairs:
        if parent not in known:
            raise unknown(parent, names)
    return names, pairs


def _parents_of(child: str, parents: object) -> Iterable[object]:
    if isinstance(parents, str):
        return [parents]
    if not isinstance(parents, Iterable):
        raise GraphError(f"the parents of {shown(child)} must be a list of names, not {shown(parents)}")
    return _in_order(parents)


def is_networkx(x: object) -> bool:
    return all(hasattr(x, attribute) for attribute in ("nodes", "edges", "is_directed"))


def read_networkx(graph: Any) -> tuple[list[str], list[Edge]]:
    return [checked_name(x) for x in graph.nodes], [_pair(e) for e in graph.edges()]


def read_pairs(pairs: Iterable[Any]) -> list[Edge]:
    """Pairs of names, checked one by one.

    >>> read_pairs([("a", "b")])
    [('a', 'b')]
    """
    if isinstance(pairs, str) or not isinstance(pairs, Iterable):
        raise GraphError(f"expected pairs of names, not {shown(pairs)}")
    return [_pair(e) for e in _in_order(pairs)]


def _in_order(items: Iterable[Any]) -> Iterable[Any]:
    """A set has no order of its own, or worse, another one in each process: it is sorted."""
    return sorted(items, key=repr) if isinstance(items, (set, frozenset)) else items


def _pair(edge: Any) -> Edge:
    try:
        a, b = edge
    except (TypeError, ValueError):
        a = b = None
    if a is None or isinstance(edge, (str, set, frozenset)):
        raise GraphError(f"an edge is a pair of names, not {shown(edge)}")
    return checked_name(a), checked_name(b)


def checked_name(name: object) -> str:
    if not isinstance(name, str):
        raise GraphError(f"the name of a node must be text, not {shown(name)}")
    if not name.strip():
        raise GraphError(f"the name of a node must not be blank, as {shown(name)} is")
    return str(name)


def check_edges(pairs: list[Edge]) -> None:
    """Refuse an edge from a node to itself and an edge that is given twice."""
    seen = set(pairs)
    for a, b in pairs:
        if a == b:
            raise GraphError(f"the node {shown(a)} has an edge to itself")
        if len(seen) < len(pairs):
            if (a, b) not in seen:
                raise GraphError(f"the edge from {shown(a)} to {shown(b)} is given twice")
            seen.remove((a, b))


def all_nodes(mentioned: Iterable[str], pairs: Iterable[Edge], nodes: Iterable[str] | None) -> tuple[str, ...]:
    """The sorted names of all nodes; when `nodes` are given, a name outside them is refused.

    >>> all_nodes(["e"], [("a", "b")], None)
    ('a', 'b', 'e')
    """
    found = {*mentioned, *(x for e in pairs for x in e)}
    if nodes is None:
        return tuple(sorted(found))
    known = {checked_name(x) for x in ([nodes] if isinstance(nodes, str) else nodes)}
    if not found <= known:
        raise unknown(min(found - known), known)
    return tuple(sorted(known))


def unknown(name: object, known: Iterable[str]) -> GraphError:
    """The refusal of a name that is no node of a graph.

    >>> str(unknown("smok", ["smoke", "age"]))
    "the graph has no node 'smok'; did you mean 'smoke'?"
    """
    candidates = [k for k in known if len(k) <= 100]
    # difflib takes quadratic time in the length of names and some 10 µs a name
    hint = nearest(name, sorted(candidates)) if isinstance(name, str) and len(name) <= 100 and len(candidates) <= 10_000 else ""
    return GraphError(f"the graph has no node {shown(name)}{hint}")
