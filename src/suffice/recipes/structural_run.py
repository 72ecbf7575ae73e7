"""What structural EM returns: the network, and the graphs on the way to it."""

from __future__ import annotations

import html
import textwrap
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from suffice.display import html_table, text_table
from suffice.graphs import Cpdag, Dag
from suffice.iteration import Run
from suffice.models.bayes_net import BayesNet

WIDTH = 120
"""Characters of a line of edges."""

UNBROKEN = "\0"
"""Stands for a space at which no line ends."""

HEADER = ["round", "edges", "score", "log-likelihood", "seconds"]


class Round(NamedTuple):
    """One graph on the way: its observed score, the log-likelihood of what was observed, and the seconds since the start."""

    dag: Dag
    score: float
    log_likelihood: float
    seconds: float


@dataclass(frozen=True, eq=False, repr=False)
class StructuralRun(Run[BayesNet]):
    """The result of `structural_em`: a `Run` with one record for each round that gained, and the graphs on the way.

    It prints as its edges, those that may lead either way as a - b, and a table of rounds. As `start=` of another run it is where
    that run goes on.

    >>> from suffice.recipes.structural_em import structural_em
    >>> run = structural_em({"x": ["a", "b", None, "b"] * 9, "y": ["u", "v", "u", "v"] * 9})
    >>> run.dag, run.graphs[-1].dag == run.dag, run.score == run.objective
    (Dag('x -> y'), True, True)
    """

    graphs: tuple[Round, ...] = ()
    """The graphs of the best start, from the first to the last, with their observed scores."""
    score: float = float("nan")
    """The observed score of the network: its log-likelihood less the penalty, or Cheeseman & Stutz's approximation."""
    optima: tuple[float, ...] = ()
    """What each start came to, in their order; the best is kept."""
    finished: bool = True
    """False when a limit or Ctrl-C stopped the run: then this is the best so far."""
    method: Any = None

    @property
    def dag(self) -> Dag:
        """The graph of the network."""
        return self.model.dag

    @cached_property
    def cpdag(self) -> Cpdag:
        """The equivalence class of the graph."""
        return self.dag.cpdag()

    def to_dict(self) -> dict[str, Any]:
        """The facts, for JSON."""
        return {
            "method": repr(self.method),
            "variables": list(self.dag.nodes),
            "edges": [list(e) for e in self.dag.edges],
            "directed": [list(e) for e in self.cpdag.directed],
            "undirected": [list(e) for e in self.cpdag.undirected],
            "score": self.score,
            "log_likelihood": self.log_likelihood,
            "converged": self.converged,
            "finished": self.finished,
            "optima": list(self.optima),
            "graphs": [{**r._asdict(), "dag": [list(e) for e in r.dag.edges]} for r in self.graphs],
        }

    def __repr__(self) -> str:
        whole = self._edges().replace(" ", UNBROKEN).replace(f";{UNBROKEN}", "; ")
        edges = textwrap.fill(whole, WIDTH, break_long_words=False, break_on_hyphens=False).replace(UNBROKEN, " ")
        return f"{self._headline()}\n{edges}\n\n{text_table(HEADER, self._rows())}"

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self._headline())}<br>{html.escape(self._edges())}</p>{html_table(HEADER, self._rows())}"

    def _headline(self) -> str:
        end = (
            "converged" if self.converged else "stopped before its end: the best so far" if not self.finished else "not converged"
        )
        starts = f"; the best of {len(self.optima)} starts" if len(self.optima) > 1 else ""
        return (
            f"StructuralRun: {len(self.dag):,} variables, {len(self.dag.edges):,} edges, score {self.score:,.3f}; {end}{starts}"
        )

    def _edges(self) -> str:
        """The edges in words, by name: those that every equivalent graph has as a -> b, the others as a - b."""
        found = [(a, b, "->") for a, b in self.cpdag.directed] + [(*sorted(e), "-") for e in self.cpdag.undirected]
        return "; ".join(f"{a} {arrow} {b}" for a, b, arrow in sorted(found)) or "no edges"

    def _rows(self) -> list[list[object]]:
        return [
            [k, len(r.dag.edges), f"{r.score:,.3f}", f"{r.log_likelihood:,.3f}", f"{r.seconds:.3g}"]
            for k, r in enumerate(self.graphs)
        ]
