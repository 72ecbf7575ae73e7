"""What a search found: the graph, its score, how sure that is, and what else would have done as well; and a graph that is given,
of which the same can be asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np

from suffice.basis.iteration import TraceStep
from suffice.basis.pictures import Focus, Picture, Pictured
from suffice.errors import FitError, GraphError, listing, quantity
from suffice.errors.remedies import in_python
from suffice.graphs import Cpdag, Dag, Graph, Template
from suffice.graphs.directed import DagLike
from suffice.graphs.text import Edge
from suffice.structure.problem import Method, Outcome, Problem
from suffice.structure.results.explain import Neighbourhood, edge_of, explain_edge, explain_node, test_of
from suffice.structure.results.explanations import Explanation, NodeTested, directions, spell
from suffice.structure.results.found_graph import SearchResult
from suffice.structure.results.plan import Work, in_words
from suffice.structure.rules import Parents, Rules

TELLING = 0.1
"""A gap above this says no more than that nothing is proved."""


class ScoreTie(NamedTuple):
    """Other parents of one node that score the same, though the data would then have other independences."""

    child: str
    parents: tuple[str, ...]
    instead_of: tuple[str, ...]
    difference: float

    def __str__(self) -> str:
        these, those = (f"{self.child} | {', '.join(ps)}" if ps else self.child for ps in (self.parents, self.instead_of))
        return f"{these} scores as {those} does"


@dataclass(frozen=True, eq=False, repr=False)
class Found(SearchResult):
    """The result of `search`. It prints as a table: each edge with what the score loses without it.

    >>> from suffice import search
    >>> from suffice import HillClimb
    >>> found = search({"x": ["a", "b"] * 20, "y": ["u", "v"] * 20, "z": ["p", "p", "q", "q"] * 10}, method=HillClimb())
    >>> found.dag, found.cpdag.undirected
    (Dag('x -> y; z'), (('x', 'y'),))
    >>> round(found.score, 3), round(found.losses["x", "y"], 3)
    (-62.83, 25.881)
    """

    cpdag: Cpdag
    """The equivalence class: what the data can say. Edges from a real to a finite variable do not exist, and so direct others;
    those of regressions have their direction, for the other way they are another model."""
    trace: tuple[TraceStep, ...]
    """Each improvement: what, its gain, the score after it, the seconds since the start."""
    bound: float | None
    """No graph that keeps the constraints and the method's maximum of parents scores more; None when nothing is known."""
    lags: Mapping[str, int] | None = None
    """Of a search in sequences: the variables, and how far back each was looked at. The other names are these in the past."""
    first: tuple[Found | None, ...] = ()
    """What was found at each of the first steps, which lack a lag; None where parents before the start are just left out."""
    _parents: tuple[Parents, ...] | None = None

    @staticmethod
    def of(problem: Problem, method: Any, outcome: Outcome, finished: bool) -> Found:
        """What a method returned, its graph replaced by the member of its class that stands for the class."""
        parents, score, cpdag = None, None, outcome.cpdag
        if cpdag is None:
            parents, score = problem.representative(outcome.parents, method)
            cpdag = problem.class_of(parents)
        told: dict[str, Any] = {"finished": finished, "method": method, "seconds": problem.progress.seconds, "_problem": problem}
        told |= {"names": problem.names, "details": outcome.details, "bound": outcome.bound, "lags": problem.lags}
        return Found(cpdag=cpdag, score=score, trace=tuple(problem.progress.trace), _parents=parents, **told)

    @staticmethod
    def at(problem: Problem, method: Any, dag: Dag, score: float, *, finished: bool) -> Found:
        """A graph that was found otherwise, here to be asked why it is as it is; it stands for itself, not for its class."""
        parents = tuple(problem.parents(dag))
        found = Found.of(problem, method, Outcome([], cpdag=problem.class_of(parents)), finished)
        return replace(found, score=score, trace=(), _parents=parents)

    @cached_property
    def dag(self) -> Dag:
        """The graph: of an equivalence class always the same member.

        A method without a score (PC) finds a class; then this is a member of it, or an error that says why it has none.
        """
        if self._parents is None:
            try:
                return self.cpdag.to_dag()
            except GraphError as error:
                raise GraphError(
                    f"what {in_words(self.method)} found is not the class of a graph; see found.cpdag: {error.said}"
                ) from None
        return Dag({self.names[i]: [self.names[p] for p in ps] for i, ps in enumerate(self._parents)})

    @property
    def graph(self) -> Graph:
        """The edges without their directions: of `ChowLiu` the undirected tree.

        >>> from suffice.methods import ChowLiu
        >>> from suffice import search
        >>> search({"x": ["a", "b"] * 20, "y": ["u", "v"] * 20}, method=ChowLiu()).graph
        Graph('x -- y')
        """
        return self.cpdag.skeleton()

    @cached_property
    def template(self) -> Template:
        """The graph of a search in sequences: the parents of each variable at the present step, and in the first steps.

        >>> from suffice import sequences
        >>> from suffice import search
        >>> found = search(sequences({"x": list("uuuuuuvvvvvv") * 9, "y": list("aaaaaabbbbbb") * 9}))
        >>> found.template
        Template('x[-1] -> x; x -> y')
        """
        if self.lags is None:
            raise FitError(
                "a template is found in sequences: search(sequences(data, by, order), lags=1); this is a graph of rows"
            )
        own = Template(self._window(self.dag))
        given = zip(own.first, self.first, strict=False)
        found = [there if here is None else self._window(here.dag) for there, here in given]
        return Template(own, first=[*found, *own.first[len(found) :]])

    def _window(self, dag: Dag) -> dict[str, tuple[str, ...]]:
        return {x: dag.parents(x) for x in sorted(self.lags or ())}

    @property
    def past(self) -> frozenset[str]:
        """Of a search in sequences: the names of variables in the past, which may be parents only."""
        return frozenset() if self.lags is None else frozenset(self.names) - set(self.lags)

    @property
    def gap(self) -> float | None:
        """How much more another graph could score, relative to this score; None where nothing is known."""
        if self.bound is None or self.score is None:
            return None
        return max(0.0, self.bound - self.score) / max(1.0, abs(self.score))

    @property
    def proved(self) -> bool:
        """Whether it is proved that no graph that keeps the constraints and the method's maximum of parents scores more."""
        return self.gap is not None and self.gap <= 1e-9

    @cached_property
    def neighbourhood(self) -> Neighbourhood:
        """The graph among those that one change makes of it."""
        if self._parents is None:
            raise FitError(f"{in_words(self.method)} uses no score, so that graphs cannot be compared by it")
        return Neighbourhood(self.problem, self.problem.rules_of(self.method), self._parents)

    @cached_property
    def _scores(self) -> dict[str, float]:
        if self._parents is None:
            return {}
        return dict(zip(self.names, self.problem.scores.families(enumerate(self._parents)).tolist(), strict=True))

    def scores_by_node(self) -> dict[str, float]:
        """What each node adds to the score."""
        return {name: score for name, score in self._scores.items() if name not in self.past}

    @cached_property
    def losses(self) -> dict[Edge, float]:
        """What the score loses without each edge (parent, child); empty when the method uses no score."""
        if self._parents is None:
            return {}
        edges = sorted((p, child) for child, chosen in enumerate(self._parents) for p in chosen)
        without = self.problem.scores.families([(c, tuple(q for q in self._parents[c] if q != p)) for p, c in edges])
        named = [(self.names[p], self.names[c]) for p, c in edges]
        return {e: self._scores[e[1]] - float(w) for e, w in zip(named, without, strict=True)}

    @cached_property
    def directions(self) -> dict[Edge, str]:
        """Why each edge (parent, child) leads this way: "compelled" (every equivalent graph has it so), "either way" (the data
        cannot tell), "fixed by constraints", "fixed by the kind of model" (from a number to a state there is no edge), "the other
        way is another model" (of regressions), in sequences also "by time"; empty when the method uses no score."""
        if self._parents is None:
            return {}
        return directions(self.problem, self.method, self._parents)

    @property
    def remarks(self) -> list[str]:
        """What its scores have to say of the graph: regressions that have a supremum of the likelihood, but no estimate."""
        return [in_python(text) for text in self.remarks_with_remedies]

    @property
    def remarks_with_remedies(self) -> list[str]:
        """The same with their ways out in both words, to be noted."""
        return [] if self._parents is None else self.problem.scores.remarks(self._parents)

    @cached_property
    def n_parameters(self) -> int:
        """How many parameters a network of this graph has."""
        return sum(self.problem.n_parameters(*family) for family in enumerate(self.problem.parents(self.dag)))

    @cached_property
    def ties(self) -> tuple[ScoreTie, ...]:
        """Graphs of other classes that score the same: one node's parents with one more, one less or one swapped.

        Two columns that are copies of each other are the usual reason.
        """
        if self._parents is None or self.score is None:
            return ()
        around, tie = self.neighbourhood, self.problem.scores.tie(self.score)
        families = [(child, s) for child in range(len(self.names)) for s in around.one_change(child)]
        own = np.array([self._scores[self.names[child]] for child, _ in families])
        differences = self.problem.scores.families(families) - own
        alike = [(f, float(d)) for f, d in zip(families, differences, strict=True) if abs(d) <= tie]
        kept = [(c, s, d) for (c, s), d in alike if around.keeps(c, s)]
        named = [tuple(self.names[p] for p in ps) for ps in self._parents]
        return tuple(ScoreTie(self.names[c], tuple(self.names[p] for p in s), named[c], d) for c, s, d in kept)

    def _scene(self) -> Picture:
        graph = self.cpdag if self._parents is None else self.dag if self.lags is None else self.template
        if not self._parents:
            return graph._scene()
        return graph._scene().weigh_edges(self.losses, "loss without the edge")

    def picture(self, against: Pictured | None = None, *, focus: Focus = None, steps: int = 1) -> Picture:
        """The graph as a picture, edges as wide as what the score loses without them; of a method that uses no score the class.

        `against` another graph, model or result, in four kinds of lines; of a large one the part around a `focus`.

        >>> from suffice import search
        >>> picture = search({"x": ["a", "b"] * 20, "y": ["u", "v"] * 20, "z": ["p", "p", "q", "q"] * 10}).picture()
        >>> picture.edges[0].title, picture.widths
        ('x -> y: loss without the edge 25.88', ((1.0, 'loss without the edge 25.88'),))
        """
        return self._view(against, focus, steps)

    def plot(self, ax: Any = None) -> Any:
        """The score after each improvement, by matplotlib; gives the axes."""
        from suffice.basis.pictures.plots import plot_traces

        title = self.summary().splitlines()[1]
        return plot_traces(ax, [("score", [s.score for s in self.trace])], x="improvement", y="score", title=title)

    def explain(self, what: str | Sequence[str]) -> Explanation:
        """Why a node has its parents, or why an edge is in the graph or is not.

        `what` is the name of a node, a pair (parent, child), or text such as "a -> b".
        """
        if isinstance(what, str) and what in self.names:
            if self.score is not None:
                score = self.scores_by_node().get(what, 0.0)
                return explain_node(self.neighbourhood, what, score, self.losses, past=what in self.past)
            edges = sorted(e for e in (*self.cpdag.directed, *self.cpdag.undirected) if what in e)
            return NodeTested(what, tuple(test_of(self.cpdag, self.details, *e) for e in edges))
        a, b = edge_of(what, self.names)
        if self.score is None:
            return test_of(self.cpdag, self.details, a, b)
        return explain_edge(self.neighbourhood, self.cpdag, self.directions, a, b)

    def to_dict(self) -> dict[str, Any]:
        """The facts, for JSON; where a class has no member, there are no edges."""
        try:
            edges = [list(e) for e in self.dag.edges]
        except GraphError:
            edges = []
        facts: dict[str, Any] = {
            "method": repr(self.method),
            "variables": list(self.names),
            "edges": edges,
            "directed": [list(e) for e in self.cpdag.directed],
            "undirected": [list(e) for e in self.cpdag.undirected],
            "losses": [[*e, loss] for e, loss in self.losses.items()],
            "directions": [[*e, why] for e, why in self.directions.items()],
            "score": self.score,
            "bound": self.bound,
            "gap": self.gap,
            "proved": self.proved,
            "finished": self.finished,
            "seconds": self.seconds,
            "trace": [s._asdict() for s in self.trace],
        }
        if self.lags is not None:
            first = [None if here is None else here.to_dict() for here in self.first]
            facts |= {"lags": dict(self.lags), "template": edges, "first": first}
        return facts

    def summary(self) -> str:
        """The graph's size and score, how sure that is, and how it was found, in two lines."""
        n = len(self.cpdag.directed) + len(self.cpdag.undirected)
        score = "" if self.score is None else f"{self._score_word} {self.score:,.3f}, "
        most = max((self.lags or {"": 0}).values())
        size = f"{quantity(len(self.names) - len(self.past), 'variable')}{f', lags up to {most}' if most else ''}"
        bounded = getattr(self.method, "max_parents", None)
        within = f" with at most {bounded} parent{'s' * (bounded != 1)}" if isinstance(bounded, int) else ""
        sure = "not proved to be the best"
        if self.score is None:
            sure = "an equivalence class, without a score"
        elif self.proved:
            sure = f"proved to be the best{within}"
        elif self.gap is not None and self.gap < TELLING:
            sure = f"no graph{within} scores more than {self.bound:,.3f} (gap {self.gap:.2%})"
        return f"{size}, {quantity(n, 'edge')}; {score}{sure}\n{self._found_by()}"

    @cached_property
    def _score_word(self) -> str:
        return repr(self.problem.score)

    def _table(self) -> tuple[list[str], list[list[object]]]:
        if self._parents is None:
            rows: list[list[object]] = [[f"{spell(a)} -> {spell(b)}"] for a, b in self.cpdag.directed]
            return ["edge"], rows + [[f"{spell(a)} - {spell(b)}"] for a, b in self.cpdag.undirected]
        ways = self.directions
        rows = [[f"{spell(a)} -> {spell(b)}", f"{loss:,.3f}", ways[a, b]] for (a, b), loss in self.losses.items()]
        return ["edge", "loss without it", "direction"], rows

    def __getstate__(self) -> dict[str, Any]:
        """All that needs no data. The data stays behind: it may be larger than memory."""
        if self._problem is not None:
            _ = self._scores, self.losses, self.plan, self._score_word, self.directions
            if self._parents is not None:
                _ = self.n_parameters
        own = {f.name for f in fields(self)} | {"_scores", "losses", "plan", "_score_word", "n_parameters", "ties", "directions"}
        return {k: v for k, v in vars(self).items() if k in own} | {"_problem": None}


@dataclass(frozen=True)
class GivenGraph(Method):
    """The graph itself, as it is, with its score, what the score loses without each edge, and `explain` of any other.

    >>> import suffice as sf
    >>> rows = {"x": ["a", "b"] * 20, "y": ["u", "v"] * 20, "z": ["p", "p", "q", "q"] * 10}
    >>> found = sf.search(rows, method=GivenGraph("y -> x; z"))
    >>> found.dag, round(found.losses["y", "x"], 3)
    (Dag('y -> x; z'), 25.881)
    """

    dag: DagLike
    finished: ClassVar[bool] = True

    def run(self, problem: Problem) -> Any:
        graph = Dag(self.dag)
        if lacking := sorted(set(graph.nodes) ^ set(problem.names)):
            raise FitError(f"the graph and the columns differ: {listing(lacking)}; a graph is judged by data of all of its nodes")
        for i, parents in enumerate(problem.parents(graph)):
            if not problem.has_family(i, parents):
                raise FitError(f"{problem.names[i]!r} has no distribution given its parents that this score knows")
        return self

    def to_found(self, problem: Problem, method: Any, finished: bool) -> Found:
        """What `search` makes of it."""
        graph = Dag(self.dag)
        return Found.at(problem, method, graph, problem.scores.total(problem.parents(graph)), finished=finished)

    def work(self, problem: Problem, rules: Rules) -> Work:
        """What it costs: the family of each node, and that without each of its edges."""
        families = float(problem.n + len(Dag(self.dag).edges))
        return Work(families, {2: families})
