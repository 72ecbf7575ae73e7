"""Decomposable graphs by their score: from graph to graph, one edge at a time, every cycle of four or more nodes with a chord.

The score of a decomposable graph is that of its cliques less that of their separators, and so that of a directed graph along a
perfect order. One edge a – b more, with S the common neighbours of a and b, makes a clique {a, b} ∪ S and changes nothing else:

    gain(a – b) = score(a | b, S) − score(a | S)

Only pairs with a or b in them have other common neighbours after that, and are scored again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Ints
from suffice.basis.variables import Finite, Real
from suffice.errors import FitError, GraphError, listing
from suffice.errors.remedies import Remedy, score_by
from suffice.graphs import Dag, Graph
from suffice.structure.problem import Problem, check_has, check_number
from suffice.structure.results.found_graph import GraphOutcome
from suffice.structure.scoring.local_scores import form_of
from suffice.structure.undirected.graph_method import GraphMethod

Edge = tuple[int, int]

DIRICHLET = 2
"""Scores of tables whose kind, as `form_of` numbers them, is from this on tell a -> b from b -> a."""

ONE_KIND = Remedy(
    "declare numbers as Bins(5), or use Neighbourhoods", "cut numbers with --bins NAME=5, or use --method neighbourhoods"
)
EQUIVALENT = score_by(
    "BIC(), AIC(), Evidence(BDeu(1)) or, of real columns, Evidence(BGe())", "bic, aic, bdeu:1 or, of real columns, bge"
)


@dataclass(frozen=True)
class Decomposable(GraphMethod):
    """Put in or take out the edge that gains most, as long as the graph stays decomposable, until nothing gains.

    `score` is one that scores a -> b and b -> a alike: BIC, AIC or Evidence(BDeu(1)) of finite columns, BIC or Evidence(BGe()) of
    real ones; by default that of `search`. `max_clique` bounds the variables of a clique. The climb begins at `start` (anything
    that `Graph` takes), or else with the required edges only. A single climb often ends at a lesser top, since the way to a
    better one leads over graphs that are not decomposable; so `restarts` times the best graph so far is changed by random edges,
    as many as variables and at least 8, and climbed from again. Of edges that gain alike the first by name is taken.

    >>> from suffice import search
    >>> rows = {"rain": list("nnnnyyyy") * 9, "wet": list("nnnnyynn") * 9, "moon": list("nf") * 36}
    >>> found = search(rows, method=Decomposable())
    >>> found.graph, [step.what for step in found.trace]
    (Graph('moon; rain -- wet'), ['start', 'add rain -- wet'])
    >>> round(found.score, 3), round(found.strengths["rain", "wet"], 3)
    (-133.32, 13.396)
    """

    word = "decomposable"

    score: Any = None
    max_clique: int | None = None
    start: Any = None
    restarts: int = 20

    def __post_init__(self) -> None:
        check_number("max_clique", self.max_clique, 1, optional=True)
        check_number("restarts", self.restarts, 0)
        if self.score is not None:
            check_has(self.score, "local", "a score is LogLikelihood(), AIC(), BIC() or Evidence(prior)")
        object.__setattr__(self, "start", self.start if self.start is None else Graph(self.start))

    def run(self, problem: Problem) -> GraphOutcome:
        """Climb, and climb again from each changed best graph."""
        scored = problem if self.score is None else replace(problem, score=self.score)
        kinds = [[v.name for v in problem.variables if isinstance(v, kind)] for kind in (Finite, Real)]
        if other := [v.name for v in problem.variables if not isinstance(v, Finite | Real)]:
            raise FitError(f"Decomposable knows finite columns, or real ones; {listing(other)} is of another kind")
        if all(kinds):
            both = f"{listing(kinds[0], 3)} and {listing(kinds[1], 3)}"
            raise FitError(f"Decomposable takes finite columns or real ones, not both: {both}; leave some out, {ONE_KIND}")
        climb = ChordalClimb(scored, self._first(scored), self.max_clique)
        _refuse_one_way(scored)
        scored.progress.better("start", climb.total, climb.outcome())
        climb.to_the_top()
        for k in range(self.restarts):
            best, total = climb.near.copy(), climb.total
            climb.perturb(max(8, problem.n), np.random.default_rng([problem.seed, k]))
            climb.to_the_top(above=total)
            if climb.total <= total + scored.scores.tie(total):
                climb.go_to(best, total)
        return climb.outcome(strengths=True)

    def _first(self, problem: Problem) -> npt.NDArray[np.uint8]:
        """The graph to start with; one that the rules or the method do not allow is refused."""
        names, rules = problem.names, problem.rules
        pairs = [(names[a], names[b]) for a, b in np.argwhere(np.triu(rules.required)).tolist()]
        graph = Graph(pairs, nodes=names).triangulated() if self.start is None else Graph(self.start, nodes=names)
        if set(graph.nodes) - set(names):
            raise GraphError(f"the start has nodes that the data do not have: {listing(sorted(set(graph.nodes) - set(names)))}")
        if not graph.is_decomposable:
            raise GraphError("the start is not decomposable: it has a cycle without a chord; its .triangulated() graph has none")
        near = np.zeros((problem.n,) * 2, np.uint8)
        for a, b in graph.edges:
            i, j = problem.number[a], problem.number[b]
            if not rules.allowed[i, j]:
                what = "the start has" if self.start is not None else "a decomposable graph with the required edges needs"
                raise FitError(f"{what} the edge {a!r} -- {b!r}, which is forbidden")
            near[i, j] = near[j, i] = 1
        for a, b in pairs:
            if not near[problem.number[a], problem.number[b]]:
                raise FitError(f"the start lacks the edge {a!r} -- {b!r}, which is required")
        largest = max(graph.cliques(), key=len)
        if self.max_clique is not None and len(largest) > self.max_clique:
            raise FitError(f"max_clique is {self.max_clique}, and the climb starts with the clique {listing(largest)}")
        return near


class ChordalClimb:
    """Where a climb is: a chordal graph near[a, b], its score, and what each edge would gain, NaN where that is not known yet."""

    def __init__(self, problem: Problem, near: npt.NDArray[np.uint8], max_clique: int | None) -> None:
        self.problem, self.max_clique = problem, problem.n if max_clique is None else max_clique
        names = problem.names  # the score is that of a directed graph that says the same, along a perfect order
        graph = Graph([(names[a], names[b]) for a, b in np.argwhere(np.triu(near)).tolist()], nodes=names)
        self.go_to(near, problem.scores.total(problem.parents(dag_of(graph))))

    def go_to(self, near: npt.NDArray[np.uint8], total: float) -> None:
        """Go on from another graph, whose score this is."""
        self.near, self.total = near, float(total)
        self.gain = np.full(near.shape, np.nan)

    def to_the_top(self, above: float = -np.inf) -> None:
        """Take the edge that gains most until none does; only steps to a score above `above` are news."""
        progress, scores = self.problem.progress, self.problem.scores
        while (best := self._best()) is not None:
            what = self.toggle(best)
            if self.total > above + (scores.tie(above) if above > -np.inf else 0.0):
                progress.better(what, self.total, self.outcome())
            else:
                progress.check()

    def perturb(self, n: int, rng: np.random.Generator) -> None:
        """Put in or take out so many edges at random, one after the other."""
        for _ in range(n):
            changes = self._changes()
            if len(changes):
                self._score(changes)
                possible = [(a, b) for a, b in changes.tolist() if np.isfinite(self.gain[a, b])]
                if possible:
                    self.toggle(possible[int(rng.integers(len(possible)))])

    def toggle(self, pair: Edge) -> str:
        """Put in an edge, or take it out, and say so."""
        a, b = pair
        there = self.near[a, b]
        self.total += float(-self.gain[a, b] if there else self.gain[a, b])
        self.near[a, b] = self.near[b, a] = not there
        self.gain[[a, b]] = np.nan
        self.gain[:, [a, b]] = np.nan
        return f"{'delete' if there else 'add'} {self.problem.names[a]} -- {self.problem.names[b]}"

    def outcome(self, *, strengths: bool = False) -> GraphOutcome:
        """The graph here; with `strengths`, what each edge adds to the score given the common neighbours of its ends."""
        names = self.problem.names
        edges = np.argwhere(np.triu(self.near))
        named = [(names[a], names[b]) for a, b in edges.tolist()]
        if strengths:
            self._score(edges)
        gains = {e: float(self.gain[a, b]) for e, (a, b) in zip(named, edges.tolist(), strict=True)} if strengths else {}
        return GraphOutcome(Graph(named, nodes=names), self.total, strengths=gains, strength="gain")

    def _best(self) -> Edge | None:
        """The change that gains most, the first by name of those that gain alike; None where none gains."""
        changes = self._changes()
        if not len(changes):
            return None
        self._score(changes)
        a, b = changes.T
        gains = np.where(self.near[a, b], -1.0, 1.0) * self.gain[a, b]
        gains[np.isnan(gains)] = -np.inf
        tie, top = self.problem.scores.tie(self.total), gains.max()
        if not top > tie:
            return None
        first = int(np.argmax(gains >= top - tie))
        return int(a[first]), int(b[first])

    def _changes(self) -> Ints:
        """The pairs a < b whose edge can come or go, by the rules too."""
        from suffice.numerics.kernels.search.greedy import chordal_changes

        legal = np.zeros_like(self.near)
        chordal_changes(self.near, legal)
        rules, there = self.problem.rules, self.near.astype(bool)
        room = self.near.astype(np.int64) @ self.near <= self.max_clique - 2
        open_ = legal.astype(bool) & np.where(there, ~rules.required, rules.allowed & room)
        return np.argwhere(np.triu(open_, 1))

    def _score(self, pairs: Ints) -> None:
        """Fill in what edges gain that are not known yet."""
        new = [(a, b) for a, b in pairs.tolist() if np.isnan(self.gain[a, b])]
        common = [tuple(np.flatnonzero(self.near[a] & self.near[b]).tolist()) for a, b in new]
        families = [(a, tuple(sorted((b, *s)))) for (a, b), s in zip(new, common, strict=True)]
        alone = [(a, s) for (a, _), s in zip(new, common, strict=True)]
        scores = self.problem.scores.families([*families, *alone])
        for (a, b), with_b, without in zip(new, scores[: len(new)], scores[len(new) :], strict=True):
            self.gain[a, b] = self.gain[b, a] = with_b - without


def dag_of(graph: Graph) -> Dag:
    """A directed graph that says the same as a decomposable one."""
    order = dict.fromkeys(name for clique in graph.perfect_sequence() for name in clique)
    place = {name: i for i, name in enumerate(order)}
    return Dag([(a, b) if place[a] < place[b] else (b, a) for a, b in graph.edges], nodes=graph.nodes)


def _refuse_one_way(problem: Problem) -> None:
    """Refuse a score to which a -> b and b -> a are not the same."""
    form = form_of(problem.score, problem.scores.weight)
    single, pair = problem.scores.pairs()
    both = single[:, None] + pair.T  # [a, b]: a alone, and b given a
    both = np.where(np.isfinite(both) & np.isfinite(both.T), both, 0.0)
    apart = np.abs(both - both.T) > 1e-8 * (1.0 + np.abs(both))
    if apart.any() or (form is not None and form[0] >= DIRICHLET):
        raise FitError(
            f"{problem.score!r} scores a -> b and b -> a differently, and an edge of a decomposable graph has no direction; use "
            f"{EQUIVALENT}"
        )
