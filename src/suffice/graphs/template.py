"""`Template`: the graph that every step of a sequence repeats, whose parents may lie some steps back, as in `state[-1] -> state`.

A template speaks in relative names: `x` is a variable at the present step, `x[-2]` the same variable two steps before. Steps
count from 0, and `x[0]`, `x[1]`, ... are the variable at those very steps. Where a parent would lie before step 0 a variable
has other parents than the template's, and so a CPD of its own, called `x[t]`; at all other steps it shares the template's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, TypeAlias

from suffice.basis.pictures import Picture
from suffice.errors import GraphError, TooLarge, quantity, whole
from suffice.graphs.directed import Dag, DagLike
from suffice.graphs.lagged import Parents, lagged_written, read_lagged, unrolled_name, variable_and_lag, within
from suffice.graphs.text import Edge, show, statements
from suffice.graphs.value import GraphValue

TemplateLike: TypeAlias = "DagLike | Template"
"""What `Template` takes: text, a mapping child -> parents, pairs (parent, child), a networkx DiGraph, a Dag, a Template."""

MAX_NODES = 5_000_000
"""Nodes over the steps of an unrolled graph, and over the first slices."""


class Template(GraphValue):
    """The graph of one step of a sequence, repeated at every step; parents may be lagged.

    `x` is text (`state[-1] -> state -> y`), a mapping from a child to its parents (`{"state": [lag("state")]}`), pairs
    (parent, child), a networkx DiGraph, a Dag with such names or a Template. In the first `order` steps the parents that would
    lie before the start are left out, unless `first` gives those slices: a list of `order` graphs, the one of step t with lags
    up to t.

    >>> from suffice.chains import lag
    >>> template = Template("state[-1] -> state -> y; u -> state")
    >>> template == Template({"state": [lag("state"), "u"], "y": "state"})
    True
    >>> template.nodes, template.order, template.parents("state")
    (('state', 'u', 'y'), 1, ('state[-1]', 'u'))
    >>> template.unroll(2).parents("state[1]")
    ('state[0]', 'u[1]')
    >>> Template("y -> state[-1]")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    suffice.errors.GraphError: an edge into the past: 'y' -> 'state[-1]'; ...
    """

    order: int
    """The largest lag, 0 without any."""
    _parents: Parents
    _first: tuple[Parents, ...] | None
    """The parents in each first slice, when these are not what leaving out gives."""
    _instead = "; fit it to sequences(...), or take the Dag of n steps, .unroll(n)"

    def __init__(self, x: TemplateLike, first: Sequence[TemplateLike] | None = None) -> None:
        x = getattr(x, "template", x)  # a chain stands for its template
        if hasattr(x, "dag"):
            raise GraphError(
                f"this is a {type(x).__name__}, not a Template; rows without parents in the past are Template(x.dag)"
            )
        first = x._first if first is None and isinstance(x, Template) else first
        parents = read_lagged(_plain(x))
        if not parents:
            raise GraphError("a template needs at least one variable")
        order = max((variable_and_lag(p)[1] for ps in parents.values() for p in ps), default=0)
        _check_size(order, len(parents))
        vars(self).update(nodes=tuple(parents), order=order, _parents=parents, _links=parents, _first=None)
        if first is not None:
            slices = _read_first(first, order, parents)
            derived = all(set(ps) == set(self.parents_at(x, t)) for t, s in enumerate(slices) for x, ps in s.items())
            vars(self).update(_first=None if derived else slices)

    @cached_property
    def _key(self) -> tuple[object, ...]:  # type: ignore[override]
        first = None if self._first is None else tuple(tuple(map(frozenset, s.values())) for s in self._first)
        return self.nodes, self.edges, first

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self._parents, self._first)

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """The pairs (parent, child), sorted.

        >>> Template("y[-2] -> y <- u").edges
        (('u', 'y'), ('y[-2]', 'y'))
        """
        return self.window.edges

    @cached_property
    def window(self) -> Dag:
        """All that a step sees: a graph of the variables and, as roots, of the lagged names among the parents.

        >>> Template("y[-2] -> y").window.nodes
        ('y', 'y[-2]')
        """
        return Dag(self._parents)

    @cached_property
    def slice(self) -> Dag:
        """The edges within a step.

        >>> Template("state[-1] -> state -> y").slice
        Dag('state -> y')
        """
        return Dag(within(self._parents))

    @property
    def topological_order(self) -> tuple[str, ...]:
        """All variables, parents within a step before children.

        >>> Template("state[-1] -> state -> a").topological_order
        ('state', 'a')
        """
        return self.slice.topological_order

    @cached_property
    def lags(self) -> Mapping[str, tuple[int, ...]]:
        """Of each variable that is a lagged parent, at the present or in a first slice, its lags from the smallest.

        >>> dict(Template("y[-2] -> y <- u[-1]; y[-1] -> u").lags)
        {'u': (1,), 'y': (1, 2)}
        """
        names = {p for parents in (self._parents, *(self._first or ())) for ps in parents.values() for p in ps}
        found: dict[str, list[int]] = {}
        for x, k in sorted(map(variable_and_lag, names)):
            if k:
                found.setdefault(x, []).append(k)
        return MappingProxyType({x: tuple(ks) for x, ks in found.items()})

    @cached_property
    def first(self) -> tuple[Dag, ...]:
        """What each of the first `order` steps sees, before all lags exist.

        >>> Template("y[-2], y[-1] -> y -> z").first
        (Dag('y -> z'), Dag('"y[-1]" -> y; y -> z'))
        """
        return tuple(Dag({x: self.parents_at(x, t) for x in self.nodes}) for t in range(self.order))

    @cached_property
    def first_nodes(self) -> tuple[tuple[str, int], ...]:
        """The pairs (variable, step) with a CPD of their own, by step, and within a step parents before children.

        >>> Template("state[-1] -> state -> y <- y[-2]").first_nodes
        (('state', 0), ('y', 0), ('y', 1))
        """
        return tuple((x, t) for t in range(self.order) for x in self.slice_at(t).topological_order if self.own_at(x, t))

    @cached_property
    def parameter_graph(self) -> Dag:
        """The graph of all CPDs: each variable and each of the `first_nodes`, as `x[t]`, with the parents that it sees.

        >>> Template("y[-2], y[-1] -> y").parameter_graph
        Dag('"y[-2]", "y[-1]" -> y; "y[0]"; "y[-1]" -> "y[1]"')
        """
        own = {unrolled_name(x, t): self.parents_at(x, t) for x, t in self.first_nodes}
        return Dag({**self._parents, **own})

    def parents(self, x: str) -> tuple[str, ...]:
        """The parents of x in their declared order, the lagged ones as `x[-1]`.

        >>> Template("y[-1], u -> y").parents("y")
        ('y[-1]', 'u')
        """
        return self._parents[x] if x in self else self._refuse(x)

    def parents_at(self, x: str, t: int) -> tuple[str, ...]:
        """The parents of x at step t, which counts from 0, in relative names.

        >>> template = Template("y[-1], u -> y")
        >>> template.parents_at("y", 0), template.parents_at("y", 1)
        (('u',), ('y[-1]', 'u'))
        """
        if whole(t, "a step", 0, GraphError) >= self.order:
            return self.parents(x)
        if self._first is not None:
            return self._first[t][x] if x in self else self._refuse(x)
        return tuple(p for p in self.parents(x) if variable_and_lag(p)[1] <= t)

    def own_at(self, x: str, t: int) -> bool:
        """Whether x has a CPD of its own at step t, since its parents there are not the template's.

        >>> template = Template("state[-1] -> state -> y")
        >>> template.own_at("state", 0), template.own_at("y", 0), template.own_at("state", 1)
        (True, False, False)
        """
        return self.parents_at(x, t) != self._parents[x]

    def parameter_name(self, x: str, t: int) -> str:
        """The name under which the parameters of x at step t are kept: its own, or `x[t]`.

        >>> template = Template("state[-1] -> state -> y")
        >>> template.parameter_name("state", 0), template.parameter_name("state", 1), template.parameter_name("y", 0)
        ('state[0]', 'state', 'y')
        """
        return unrolled_name(x, t) if self.own_at(x, t) else x

    def slice_at(self, t: int) -> Dag:
        """The edges within step t: those of `slice`, unless `first` says otherwise.

        >>> Template("x[-1] -> x -> y", first=["y -> x"]).slice_at(0)
        Dag('y -> x')
        """
        other = self._first is not None and whole(t, "a step", 0, GraphError) < self.order
        return Dag(within({x: self.parents_at(x, t) for x in self.nodes})) if other else self.slice

    def unroll(self, n: int) -> Dag:
        """The graph of n steps, over `x[0]`, `x[1]`, ...

        >>> Template("x[-1] -> x").unroll(3)
        Dag('"x[0]" -> "x[1]"; "x[1]" -> "x[2]"')
        """
        _check_size(whole(n, "the number of steps", 1, GraphError), len(self.nodes))
        return Dag(
            {
                unrolled_name(x, t): [unrolled_name(p, t - k) for p, k in map(variable_and_lag, self.parents_at(x, t))]
                for t in range(n)
                for x in self.nodes
            }
        )

    def to_networkx(self) -> Any:
        """The variables and the lagged names among the parents as a networkx DiGraph.

        >>> Template("x[-1] -> x").to_networkx().edges
        OutEdgeView([('x[-1]', 'x')])
        """
        return self.window.to_networkx()

    def to_dot(self) -> str:
        """The template in the language of Graphviz.

        >>> print(Template("x[-1] -> x").to_dot())
        digraph {
          "x";
          "x[-1]";
          "x[-1]" -> "x";
        }
        """
        return self.window.to_dot()

    def __str__(self) -> str:
        return _text(self.topological_order, self._parents)

    def __repr__(self) -> str:
        slices = [_text(self.slice_at(t).topological_order, s) for t, s in enumerate(self._first or ())]
        text = f"{str(self)!r}, first={slices!r}" if slices else repr(str(self))
        cut = f"{str(self)[:300] + ' ...'!r}, {quantity(len(self.nodes), 'node')}, {quantity(len(self.edges), 'edge')}"
        return f"Template({text if len(text) <= 400 else cut})"

    def _scene(self) -> Picture:
        """Past and present: earlier steps have other borders."""
        whole = super()._scene()
        nodes = tuple(n if n.name in self.nodes else replace(n, mark="past") for n in whole.nodes)
        picture = replace(whole, nodes=nodes)
        return picture.noting("dashed borders: steps before") if self.order else picture

    def _picture_parts(self) -> tuple[Iterable[str], Iterable[Edge], Iterable[Edge]]:
        return self.window.nodes, self.window.edges, ()


def _plain(x: TemplateLike) -> Any:
    return x._parents if isinstance(x, (Dag, Template)) else x


def _text(order: Sequence[str], parents: Parents) -> str:
    return "; ".join(statements(order, parents, lagged_written))


def _check_size(n_steps: int, n_nodes: int) -> None:
    if n_steps * n_nodes > MAX_NODES:
        raise TooLarge(f"{n_steps:,} steps make {n_steps * n_nodes:,} nodes, more than {MAX_NODES:,}")


def _read_first(first: Sequence[TemplateLike], order: int, parents: Parents) -> tuple[Parents, ...]:
    """The parents in each first slice; where they are the template's, in the template's order."""
    if isinstance(first, str) or not isinstance(first, Sequence) or len(first) != order:
        given = f"{len(first)} given" if isinstance(first, (list, tuple)) else f"not {show(first)}"
        raise GraphError(f"first is a list of graphs, one for each of the steps before all lags exist (here {order}); {given}")
    slices = []
    for t, x in enumerate(first):
        try:
            read = read_lagged(_plain(x), parents)
        except GraphError as error:
            raise GraphError(f"first[{t}]: {error.said}") from None
        for early in (p for ps in read.values() for p in ps if variable_and_lag(p)[1] > t):
            raise GraphError(f"first[{t}]: {show(early)} would lie before the first step")
        slices.append({x: parents[x] if set(ps) == set(parents[x]) else ps for x, ps in read.items()})
    return tuple(slices)
