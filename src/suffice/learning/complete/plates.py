"""Plates: a sub-network that is repeated, over columns of the data or over the groups of its rows, written down once.

    over columns   skill -> answer, answer = q1, q2, q3    is   skill -> q1, skill -> q2, skill -> q3   with one parameter set
    over groups    treatment -> outcome, by hospital       is   the same with hospital as one more parent of the nodes inside

How much the copies, or the groups, have in common is a choice: everything (`Pooled`), nothing (`Separate`), or as much as data
says (`Partial`): then the rows of their tables are drawn around a common mean. p(x) = Πᵢ over the copies i.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from suffice.errors import FitError, listing, nearest, quantity
from suffice.errors.remedies import argument
from suffice.families.hierarchical.hierarchical import PartialPooling, Pool
from suffice.families.priors.priors import Prior
from suffice.graphs import Dag
from suffice.models.parts.sharing import Tie

if TYPE_CHECKING:
    from suffice.graphs.directed import DagLike


@dataclass(frozen=True)
class Pooled:
    """Complete pooling: all copies, or groups, have the same distributions.

    >>> Pooled()
    Pooled()
    """


@dataclass(frozen=True)
class Separate:
    """No pooling: each copy, or group, has distributions of its own.

    >>> Separate()
    Separate()
    """


@dataclass(frozen=True, repr=False)
class Partial:
    """Partial pooling of tables: each copy, or group, has distributions of its own, drawn around a common mean.

    For each configuration of the other parents the prior is a Dirichlet around a mean, worth `strength` rows; both are chosen
    by the evidence, the strength once for each node, where it is not given. Small groups are drawn towards the mean, large ones
    hardly. Intervals take mean and strength as known.

    A number in the groups of rows has random effects: each group has a line of its own, drawn around a common one, with one
    variance of what is left (a linear mixed model, by maximum likelihood). Its intercepts differ, and the `slopes` of the parents
    that are named; `restricted=True` is REML. `bn["y"].effects` has the common line, its errors, and how far groups differ.

    >>> Partial(strength=10)
    Partial(strength=10)
    >>> Partial(slopes=["dose"])
    Partial(strength=None, slopes=('dose',))
    """

    strength: float | None = None
    slopes: Sequence[str] = ()
    restricted: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "slopes", (self.slopes,) if isinstance(self.slopes, str) else tuple(self.slopes))
        s = self.strength
        if s is not None and (isinstance(s, bool) or not isinstance(s, (int, float)) or not 0.0 < s < float("inf")):
            raise FitError(f"the strength of Partial is a positive number of rows, or left out, not {s!r}")

    def __repr__(self) -> str:
        more = [f"slopes={self.slopes!r}"] if self.slopes else []
        more += ["restricted=True"] if self.restricted else []
        return f"Partial({', '.join([f'strength={self.strength!r}', *more])})"


@dataclass(frozen=True, repr=False)
class Plate:
    """A graph of which a part is repeated: `fit(plate, data)` takes it in the place of a graph, and so does all that takes one.

    `columns` lists for each repeated node the columns that are its copies; several are repeated in step, so that x -> y with
    {"x": ["x1", "x2"], "y": ["y1", "y2"]} is x1 -> y1, x2 -> y2. A node that is not repeated is common to all copies; if it has
    repeated parents, all copies are its parents. `group` is a column: the nodes `inside` (all, where they are not named) have
    distributions of their own in each of its groups.

    `pooling` is `Pooled()`, `Separate()` or `Partial()`: of the groups, if there is a `group`, in which the copies of columns are
    always tied; else of the columns. Without one columns are tied, and groups separate. With `Pooled()` the group stays in the
    network, but nothing hangs on it.

    >>> plate = Plate("skill -> answer", columns={"answer": ["q1", "q2", "q3"]})
    >>> plate.dag == Dag("skill -> q1; skill -> q2; skill -> q3"), plate.shared
    (True, (('q1', 'q2', 'q3'),))
    >>> Plate("treatment -> outcome", group="hospital", inside=["outcome"]).dag.parents("outcome")
    ('treatment', 'hospital')
    """

    graph: Dag
    columns: Mapping[str, Sequence[str]] | None = None
    group: str | None = None
    inside: Sequence[str] | None = None
    pooling: Pooled | Separate | Partial | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            graph: DagLike,
            columns: Mapping[str, Sequence[str]] | None = None,
            group: str | None = None,
            inside: Sequence[str] | None = None,
            pooling: Pooled | Separate | Partial | None = None,
        ) -> None:
            """The graph is anything that makes one; the field is the `Dag`."""

    def __post_init__(self) -> None:
        graph = Dag(self.graph)
        default = Pooled() if self.group is None else Separate()
        set_field = object.__setattr__
        set_field(self, "graph", graph)
        set_field(self, "columns", _checked_columns(self.columns, graph))
        set_field(self, "inside", _checked_inside(self.inside, graph, self.group))
        set_field(self, "pooling", default if self.pooling is None else self.pooling)
        if not isinstance(self.pooling, (Pooled, Separate, Partial)):
            raise FitError(f"pooling is Pooled(), Separate() or Partial(), not {self.pooling!r}")
        if self.group is None and not self.columns:
            raise FitError(
                "a plate repeats its nodes over columns={'x': ['x1', 'x2']}, or over the groups of a column, group='g'"
            )
        if not isinstance(self.group, str | None):
            raise FitError(f"the group of a plate is the name of a column, not {self.group!r}")
        if self.group is not None and (self.group in graph or any(self.group in copies for copies in self._copies.values())):
            raise FitError(f"the group {self.group!r} is also a node of the plate: leave it out there, it is added by itself")

    @property
    def _copies(self) -> Mapping[str, tuple[str, ...]]:
        """The copies of each node, which may be itself alone."""
        given = self.columns or {}
        return {n: tuple(given.get(n, (n,))) for n in self.graph.nodes}

    @cached_property
    def dag(self) -> Dag:
        """The graph with every copy in it."""
        parents: dict[str, list[str]] = {} if self.group is None else {self.group: []}
        repeated = self.columns or {}
        for node, copies in self._copies.items():
            for i, copy in enumerate(copies):
                every = ((p, self._copies[p]) for p in self.graph.parents(node))  # in step with it, if both are repeated
                parents[copy] = [
                    name for p, own in every for name in (own[i : i + 1] if node in repeated and p in repeated else own)
                ]
                if self.group is not None and node in (self.inside or ()) and not isinstance(self.pooling, Pooled):
                    parents[copy].append(self.group)
        return Dag(parents)

    @property
    def shared(self) -> tuple[tuple[str, ...], ...]:
        """The groups of nodes that share their parameters, as `fit` takes them."""
        if self.group is None and not isinstance(self.pooling, Pooled):
            return ()
        return tuple(copies for copies in self._copies.values() if len(copies) > 1)

    @property
    def alike(self) -> tuple[Tie, ...]:
        """The copies that must be of one shape though they do not share their parameters, as ties."""
        if self.group is not None or not isinstance(self.pooling, Partial):
            return ()
        groups = [copies for copies in self._copies.values() if len(copies) > 1]
        return tuple(Tie(tuple((n, *self.dag.parents(n)) for n in copies)) for copies in groups)

    @property
    def pools(self) -> tuple[Pool, ...]:
        """The tables whose rows are pooled in part."""
        if not isinstance(self.pooling, Partial):
            return ()
        if self.group is None:
            return tuple(Pool(tie.families) for tie in self.alike)
        nodes = [copy for node in self.inside or () for copy in self._copies[node]]
        return tuple(Pool(((n, *self.dag.parents(n)),), self.group) for n in nodes)

    def check_families(self, families: Mapping[str, Any] | None) -> None:
        """Refuse regressions of nodes that are pooled in part: numbers have random effects as they are."""
        known = families or {}
        for name in (n for pool in self.pools for n in pool.nodes if n in known):
            raise FitError(
                f"{name!r} is inside of a plate with Partial() and has the family {known[name]!r}: a number is pooled by random "
                "effects without a family, and other regressions have no partial pooling yet; leave its family out, or use "
                "Separate() or Pooled()"
            )

    def expand(self, columns: Mapping[str, Sequence[str]]) -> Plate:
        """The same plate over other columns.

        >>> Plate("skill -> answer", columns={"answer": ["q1", "q2"]}).expand({"answer": ["q1", "q2", "q3", "q4"]}).shared
        (('q1', 'q2', 'q3', 'q4'),)
        """
        return replace(self, columns=columns)

    def prior_with(self, prior: Prior | None) -> Prior | None:
        """The prior of the expanded network, where this one speaks for the nodes that are not pooled in part."""
        pools = self.pools
        if not pools:
            return prior
        assert isinstance(self.pooling, Partial)
        own = self.pooling
        return PartialPooling(pools, own.strength, prior, slopes=tuple(own.slopes), restricted=own.restricted)

    def __repr__(self) -> str:
        dag = self.graph
        lone = [n for n in dag.nodes if not dag.parents(n) and not dag.children(n)]
        arrows = [*(f"{a} -> {b}" for a, b in dag.edges[:12]), *lone[:12], *(["…"] if len(dag.edges) > 12 else [])]
        parts = [repr("; ".join(arrows))]
        parts += [f"columns={{{', '.join(f'{n!r}: [{listing(c)}]' for n, c in self.columns.items())}}}"] if self.columns else []
        parts += [f"group={self.group!r}"] if self.group is not None else []
        parts += [f"inside=[{listing(self.inside)}]"] if self.inside and set(self.inside) != set(self.graph.nodes) else []
        size = f"{quantity(len(self.dag.nodes), 'node')}, {quantity(len(self.dag.edges), 'edge')}"
        tied = [f"{listing(nodes, style='str')} share their parameters" for nodes in self.shared]
        return f"Plate({', '.join(parts)}, pooling={self.pooling!r}): {'; '.join([size, *tied])}"


def _checked_columns(columns: Any, graph: Dag) -> dict[str, tuple[str, ...]]:
    if columns is None:
        return {}
    if not isinstance(columns, Mapping):
        raise FitError(f"the columns of a plate are lists by node, {{'x': ['x1', 'x2']}}, not {columns!r}")
    result: dict[str, tuple[str, ...]] = {}
    taken = {n for n in graph.nodes if n not in columns}
    for node, copies in columns.items():
        if node not in graph:
            raise FitError(f"the plate repeats {node!r}, which is not in its graph{nearest(str(node), graph.nodes)}")
        if isinstance(copies, str) or not isinstance(copies, Iterable):
            raise FitError(f"the columns of {node!r} are a list, ['x1', 'x2'], not {copies!r}")
        result[node] = tuple(copies)
        for name in result[node]:
            if not isinstance(name, str) or name in taken:
                raise FitError(
                    f"{name!r} is in two places of the plate" if name in taken else f"{name!r} is not the name of a column"
                )
            taken.add(name)
    lengths = {node: len(copies) for node, copies in result.items()}
    if len(set(lengths.values())) > 1:
        said = ", ".join(f"{node!r} {n}" for node, n in lengths.items())
        raise FitError(f"nodes are repeated in step and need as many columns, but there are {said}")
    if result and not min(lengths.values()):
        raise FitError(f"the plate repeats {next(iter(result))!r} over no columns")
    return result


def _checked_inside(inside: Any, graph: Dag, group: Any) -> tuple[str, ...] | None:
    if group is None:
        if inside is not None:
            raise FitError(
                f"{argument('inside')} names the nodes that differ between the groups of a plate: give the column, group="
            )
        return None
    names = graph.nodes if inside is None else (inside,) if isinstance(inside, str) else tuple(inside)
    for name in names:
        if name not in graph:
            raise FitError(f"{argument('inside')} names {name!r}, which is not in the graph{nearest(str(name), graph.nodes)}")
    if not names:
        raise FitError(f"{argument('inside')} names no node: then nothing differs between the groups of the plate")
    return tuple(dict.fromkeys(names))
