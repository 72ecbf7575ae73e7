"""A graph that is given: nothing is searched, and what the data say of it can be asked as of one that was found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from suffice.errors import FitError, listing
from suffice.graphs import Dag
from suffice.graphs.directed import DagLike
from suffice.structure.constraints.rules import Rules
from suffice.structure.problem import Method, Problem
from suffice.structure.results.found import Found
from suffice.structure.results.plan import Work


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

    def run(self, problem: Problem) -> Any:
        graph = Dag(self.dag)
        if lacking := sorted(set(graph.nodes) ^ set(problem.names)):
            raise FitError(f"the graph and the columns differ: {listing(lacking)}; a graph is judged by data of all of its nodes")
        for i, parents in enumerate(problem.parents(graph)):
            if not problem.has_family(i, parents):
                raise FitError(f"{problem.names[i]!r} has no distribution given its parents that this score knows")
        return _Judged(graph)

    def work(self, problem: Problem, rules: Rules) -> Work:
        """What it costs: the family of each node, and that without each of its edges."""
        families = float(problem.n + len(Dag(self.dag).edges))
        return Work(families, {2: families})


@dataclass(frozen=True)
class _Judged:
    """What `search` returns of it."""

    graph: Dag
    finished: bool = True

    def to_found(self, problem: Problem, method: Any, finished: bool) -> Found:
        return Found.at(problem, method, self.graph, problem.scores.total(problem.parents(self.graph)), finished=finished)
