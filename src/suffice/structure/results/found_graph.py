"""What a search for an undirected graph found: the graph, how strong its edges are, and the path that led to it."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from suffice.basis.arrays import Array
from suffice.basis.output.display import OneTable, html_table, text_table
from suffice.basis.pictures import Focus, Picture, Pictured, PicturedTable
from suffice.errors import FitError, GraphError, SufficeError, nearest, quantity
from suffice.families.protocol.family import frame
from suffice.graphs import Graph
from suffice.graphs.text import Edge, spelling
from suffice.structure.problem import Problem
from suffice.structure.results.explanations import Explanation
from suffice.structure.results.plan import Plan, in_words

N_SHOWN = 60
"""Edges that a printed result lists."""


class PathEntry(NamedTuple):
    """A penalty that was tried: how many edges it leaves, what it was judged by, the objective that was minimised, and how far
    from its minimum that is at most."""

    penalty: float
    n_edges: int
    criterion: float
    objective: float
    gap: float


class PenaltyPath(OneTable, tuple[PathEntry, ...]):
    """The penalties that were tried, from the largest down. Prints as a table.

    >>> PenaltyPath([PathEntry(0.5, 3, 12.5, 1.25, 1e-6)])
    penalty  edges  criterion  objective  gap
    ───────  ─────  ─────────  ─────────  ─────
    0.5      3      12.5       1.25       1e-06
    """

    __slots__ = ()

    def _table(self) -> tuple[list[str], list[list[object]]]:
        return ["penalty", "edges", "criterion", "objective", "gap"], [list(entry) for entry in self]

    def to_frame(self) -> Any:
        """The same as a data frame."""
        return frame({name: [getattr(entry, name) for entry in self] for name in PathEntry._fields})


@dataclass(frozen=True, eq=False)
class GraphOutcome:
    """What a method that finds an undirected graph returns, by name.

    `model` is a fitted undirected model, or a function without arguments that makes one; `details` is what else the method has to
    tell: where it has `facts(a, b)`, pairs of texts, an explanation of the edge lists them.
    """

    graph: Graph
    score: float | None = None
    """Higher is better; None when the method does not use one."""
    strengths: Mapping[Edge, float] = field(default_factory=dict)
    strength: str = "strength"
    """What the strengths are, in a word or two."""
    path: PenaltyPath = field(default_factory=PenaltyPath)
    trace: tuple[Any, ...] | None = None
    """Of the method's own steps; None where the search's clock kept them."""
    precision: Array | None = None
    covariance: Array | None = None
    model: Any = None
    details: Any = None
    finished: bool = True
    score_name: str | None = None
    """What the score is, in a word or two; that of the search if not given."""

    def to_found(self, problem: Problem, method: Any, finished: bool) -> FoundGraph:
        trace = tuple(problem.progress.trace) if self.trace is None else self.trace
        name = self.score_name or repr(getattr(method, "score", None) or problem.score)
        own = {"_strength": self.strength, "_precision": self.precision, "_covariance": self.covariance, "_model": self.model}
        told: dict[str, Any] = {"finished": finished, "method": method, "seconds": problem.progress.seconds, "_problem": problem}
        told |= {"names": problem.names, "details": self.details, "score_name": name, **own}
        return FoundGraph(graph=self.graph, score=self.score, strengths=dict(self.strengths), path=self.path, trace=trace, **told)


@dataclass(frozen=True, repr=False)
class Link(Explanation):
    """Whether two variables are joined, and what speaks for it."""

    a: str
    b: str
    joined: bool
    facts: tuple[tuple[str, str], ...]

    def title(self) -> str:
        return f"{spelling(self.a)} -- {spelling(self.b)}: {'an edge' if self.joined else 'no edge'}"

    def lines(self) -> tuple[tuple[str, str], ...]:
        return self.facts


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SearchResult(PicturedTable):
    """What a search found, whatever its graph: it knows its method and its problem, and shows its edges in a table."""

    names: tuple[str, ...]
    """The variables, sorted."""
    score: float | None
    """What the graph was judged by, higher is better; None when the method does not use a score."""
    finished: bool
    """False when a limit or Ctrl-C stopped the search: then this is the best so far, and may differ from run to run."""
    method: Any
    seconds: float
    details: Any = None
    """What the method tells besides, such as the tests of PC."""
    _problem: Problem | None = None

    _most_in_html: ClassVar[int | None] = None

    if TYPE_CHECKING:

        def summary(self) -> str: ...
        def _table(self) -> tuple[list[str], list[list[object]]]: ...

    @cached_property
    def plan(self) -> Plan:
        """What the search was estimated to cost."""
        return Plan.of(self.problem, self.method)

    @property
    def problem(self) -> Problem:
        """The data, the score and the rules of the search."""
        if self._problem is None:
            raise FitError("this result was unpickled, and its data is not with it; search again to ask for more")
        return self._problem

    def _found_by(self) -> str:
        stopped = "" if self.finished else "; stopped before its end: the best so far"
        return f"found by {in_words(self.method)} in {self.seconds:.3g} s{stopped}"

    def _further(self, n: int) -> str:
        return quantity(n, "more edge")

    def __repr__(self) -> str:
        header, rows = self._table()
        more = f"\n... and {self._further(len(rows) - N_SHOWN)}" if len(rows) > N_SHOWN else ""
        table = f"\n\n{text_table(header, rows[:N_SHOWN])}" if rows else ""
        return f"{type(self).__name__}: {self.summary()}{table}{more}"

    def _repr_html_(self) -> str:
        lines = "<br>".join(html.escape(line) for line in self.summary().splitlines())
        header, rows = self._table()
        return f"<p>{lines}</p>{html_table(header, rows[: self._most_in_html])}"


@dataclass(frozen=True, eq=False, repr=False)
class FoundGraph(SearchResult):
    """The result of `search` by a method whose edges have no direction. It prints as a table of edges with their strengths.

    >>> from suffice import GraphicalLasso, search
    >>> found = search({"a": [0.5, 1.5, 2.5, 4.0], "b": [1.0, 1.5, 3.5, 4.5]}, method=GraphicalLasso(0.1))
    >>> found.graph.edges, sorted(found.strengths)
    ((('a', 'b'),), [('a', 'b')])
    >>> print(repr(found.explain("a", "b")).splitlines()[0])
    a -- b: an edge
    """

    graph: Graph
    strengths: dict[Edge, float]
    """A number for each edge; the method says what it is."""
    path: PenaltyPath
    """Each penalty that was tried; empty where the method has none."""
    trace: tuple[Any, ...]
    """The steps of the method."""
    score_name: str = "score"
    """What the score is, in a word or two."""
    _strength: str = "strength"
    _precision: Array | None = None
    _covariance: Array | None = None
    _model: Any | Callable[[], Any] = None
    _most_in_html = 2 * N_SHOWN

    @property
    def precision(self) -> Array:
        """Of real variables: the inverse of `covariance`, in the order of `names`, on the scale that the method worked on."""
        return self._matrix(self._precision)

    @property
    def covariance(self) -> Array:
        """Of real variables: the inverse of `precision`."""
        return self._matrix(self._covariance)

    def _matrix(self, matrix: Array | None) -> Array:
        if matrix is None:
            raise FitError(f"{in_words(self.method)} finds a graph only; a graphical lasso, of real columns, gives a precision")
        return matrix

    @cached_property
    def model(self) -> Any:
        """A fitted model of the graph, in the units of the data, where the search has made one."""
        if not self.has_model:
            raise FitError("there is no model with this result: fit(found.graph, data) estimates one")
        return self._made

    @property
    def has_model(self) -> bool:
        """Whether there is a `model`: other methods find a graph only."""
        return self._made is not None

    @cached_property
    def _made(self) -> Any:
        return self._model() if callable(self._model) else self._model

    @property
    def generators(self) -> tuple[tuple[str, ...], ...]:
        """The largest sets of variables that interact: of `Stepwise` those of its model, else the cliques of the graph."""
        own: tuple[tuple[str, ...], ...] | None = getattr(self.details, "generators", None)
        return self.graph.cliques() if own is None else own

    def _scene(self) -> Picture:
        return self.graph._scene().weigh_edges(self.strengths, self._strength)

    def picture(self, against: Pictured | None = None, *, focus: Focus = None, steps: int = 1) -> Picture:
        """The graph as a picture, edges as wide as their strengths; `against` another, or the part around a `focus`."""
        return self._view(against, focus, steps)

    def plot(self, ax: Any = None) -> Any:
        """What each penalty was judged by, or the score after each step of a method without any, by matplotlib; gives the
        axes."""
        from suffice.basis.pictures.plots import plot_curves, plot_traces

        title = self.summary().splitlines()[1]
        if not self.path:
            return plot_traces(ax, [("score", [s.score for s in self.trace])], x="step", y=self.score_name, title=title)
        curve = [("criterion", [entry.criterion for entry in self.path])]
        drawn = plot_curves(ax, [entry.penalty for entry in self.path], curve, x="penalty", y="criterion", title=title)
        drawn.set_xscale("log")
        return drawn

    def explain(self, a: str, b: str | None = None) -> Link:
        """Why there is an edge between two variables, or none: `explain("a", "b")` or `explain("a -- b")`."""
        edges = Graph(a).edges if b is None else Graph([(a, b)]).edges
        if len(edges) != 1:
            raise GraphError(f"one edge is explained, which joins two variables: explain('a', 'b'), not {a!r}")
        first, second = edges[0]
        for name in (first, second):
            if name not in self.graph:
                raise GraphError(f"{name!r} is not among the variables{nearest(name, self.names)}")
        facts: list[tuple[str, str]] = []
        if (first, second) in self.strengths:
            facts.append((self._strength, f"{self.strengths[first, second]:.6g}"))
        if hasattr(self.details, "facts"):
            facts += self.details.facts(first, second)
        return Link(first, second, second in self.graph.neighbours(first), tuple(facts))

    def to_dict(self) -> dict[str, Any]:
        """The facts, for JSON."""
        return {
            "method": repr(self.method),
            "variables": list(self.names),
            "edges": [list(e) for e in self.graph.edges],
            "strengths": [[*e, value] for e, value in self.strengths.items()],
            "score": self.score,
            "score_name": None if self.score is None else self.score_name,
            "path": [entry._asdict() for entry in self.path],
            "finished": self.finished,
            "seconds": self.seconds,
        }

    def summary(self) -> str:
        """The graph's size and score, and how it was found, in two lines."""
        score = "" if self.score is None else f"; {self.score_name} {self.score:,.3f}"
        size = f"{quantity(len(self.names), 'variable')}, {quantity(len(self.graph.edges), 'edge')}"
        return f"{size}{score}\n{self._found_by()}"

    def _table(self) -> tuple[list[str], list[list[object]]]:
        edges = [(a, b, self.strengths.get((a, b))) for a, b in self.graph.edges]
        rows: list[list[object]] = [[f"{spelling(a)} -- {spelling(b)}", "" if s is None else f"{s:,.4g}"] for a, b, s in edges]
        return ["edge", self._strength], rows

    def _further(self, n: int) -> str:
        return f"{n:,} more edges; see found.strengths"

    def __getstate__(self) -> dict[str, Any]:
        """All that needs no data. The data stays behind: it may be larger than memory."""
        if self._problem is not None:
            _ = self.plan
        try:
            model = self.model
        except SufficeError:  # what cannot be estimated is not there afterwards either
            model = None
        own = {f.name for f in fields(self)} | {"plan"}
        return {k: v for k, v in vars(self).items() if k in own} | {"_problem": None, "_model": model}
