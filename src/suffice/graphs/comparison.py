"""How far a learned graph is from another: what differs, and precision and recall of its edges."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import comb
from typing import Any, TypeAlias

from suffice.errors import GraphError, listing
from suffice.graphs.directed import Cpdag, Dag, DagLike
from suffice.graphs.text import Edge

Marks: TypeAlias = Mapping[Edge, str]
"""Of each joined pair (a, b) with a < b the mark of its edge: `->`, `<-` or `--`."""


def marks(graph: Dag | Cpdag) -> Marks:
    """The marks of a graph."""
    directed, undirected = (graph.edges, ()) if isinstance(graph, Dag) else (graph.directed, graph.undirected)
    return {**{(min(e), max(e)): "->" if e[0] < e[1] else "<-" for e in directed}, **dict.fromkeys(undirected, "--")}


@dataclass(frozen=True)
class Comparison:
    """What differs between a true and a learned graph.

    `adjacency_` counts edges whatever their direction, `arrow_` counts arrows with the right direction. Precision is the
    share of the learned edges that are true, 1 when nothing was learned; recall is the share of the true edges that were
    learned, 1 when there are none; f1 is their harmonic mean, 0 when both are 0. `missing`, `extra` and `reversed` (in both
    graphs, but directed otherwise) list edges, the first and last as the truth has them. The distance `shd` is always of the
    equivalence classes; all else is of the two graphs as they are if both are `Dag`, otherwise of their classes.

    >>> compare("a -> b -> c", "a -> b; c").missing
    (('b', 'c'),)
    """

    shd: int
    adjacency_precision: float
    adjacency_recall: float
    adjacency_f1: float
    arrow_precision: float
    arrow_recall: float
    arrow_f1: float
    missing: tuple[Edge, ...]
    extra: tuple[Edge, ...]
    reversed: tuple[Edge, ...]
    of_classes: bool = False
    """Whether arrows, and what is missing, extra or reversed, are those of the equivalence classes, not of graphs as drawn."""

    def to_dict(self) -> dict[str, Any]:
        """The numbers and the edges by their names, for JSON.

        >>> compare("a -> b", "a -> b").to_dict()["adjacency_f1"]
        1.0
        """
        return dict(vars(self))

    def __repr__(self) -> str:
        def rates(precision: float, recall: float, f1: float) -> str:
            return f"precision {precision:.3f}, recall {recall:.3f}, f1 {f1:.3f}"

        def edges(word: str, pairs: tuple[Edge, ...]) -> str:
            return f"\n  {word} {len(pairs)}" + (f": {listing(pairs, 4)}" if pairs else "")

        what = "the classes, too" if self.of_classes else "the graphs as drawn (equivalent ones may differ)"
        return (
            f"Comparison: shd {self.shd} between the equivalence classes; all below is of {what}"
            f"\n  edges   {rates(self.adjacency_precision, self.adjacency_recall, self.adjacency_f1)}"
            f"\n  arrows  {rates(self.arrow_precision, self.arrow_recall, self.arrow_f1)}"
            + edges("missing", self.missing)
            + edges("extra", self.extra)
            + edges("reversed", self.reversed)
        )


def shd(a: DagLike | Cpdag, b: DagLike | Cpdag) -> int:
    """The structural Hamming distance of the equivalence classes of two graphs on the same nodes.

    One for each pair of nodes whose edge differs: missing, extra, or directed otherwise. Equivalent graphs have distance 0.

    >>> shd(Dag("a -> b -> c"), Dag("c -> b -> a"))
    0
    >>> shd(Dag("a -> b <- c"), Dag("a -> b -> c"))
    2
    """
    first, second = _class_of(a), _class_of(b)
    if first.nodes != second.nodes:
        only = sorted({*first.nodes} ^ {*second.nodes})
        raise GraphError(f"the graphs have different nodes: {listing(only)} only in one of them")
    one, two = marks(first), marks(second)
    return sum(one.get(pair) != two.get(pair) for pair in one.keys() | two.keys())


def compare(truth: DagLike | Cpdag, learned: DagLike | Cpdag) -> Comparison:
    """Compare a learned graph with the truth, on the same nodes; `Comparison` says what is counted.

    >>> compare(Dag("a -> c <- b; c -> d"), Dag("a -> c; d -> c; a -> b"))
    Comparison: shd 3 between the equivalence classes; all below is of the graphs as drawn (equivalent ones may differ)
      edges   precision 0.667, recall 0.667, f1 0.667
      arrows  precision 0.333, recall 0.333, f1 0.333
      missing 1: ('b', 'c')
      extra 1: ('a', 'b')
      reversed 1: ('c', 'd')
    """
    graphs = [g if isinstance(g, (Dag, Cpdag)) else Dag(g) for g in (truth, learned)]
    distance = shd(*graphs)
    if any(isinstance(g, Cpdag) for g in graphs):
        graphs = [_class_of(g) for g in graphs]
    true, found = map(marks, graphs)
    both = true.keys() & found.keys()
    n_right = sum(true[pair] == found[pair] != "--" for pair in both)
    return Comparison(
        distance,
        *_rates(len(both), len(true), len(found)),
        *_rates(n_right, *(sum(mark != "--" for mark in some.values()) for some in (true, found))),
        missing=_edges(true, true.keys() - both),
        extra=_edges(found, found.keys() - both),
        reversed=_edges(true, (pair for pair in both if true[pair] != found[pair])),
        of_classes=isinstance(graphs[0], Cpdag),
    )


def _class_of(graph: DagLike | Cpdag) -> Cpdag:
    return graph if isinstance(graph, Cpdag) else Dag(graph).cpdag()


def _edges(marks: Marks, pairs: Iterable[Edge]) -> tuple[Edge, ...]:
    return tuple(sorted((b, a) if marks[a, b] == "<-" else (a, b) for a, b in pairs))


def _rates(n_right: int, n_true: int, n_found: int) -> tuple[float, float, float]:
    precision = n_right / n_found if n_found else 1.0
    recall = n_right / n_true if n_true else 1.0
    return precision, recall, 2 * precision * recall / (precision + recall) if n_right else float(not n_true and not n_found)


def n_dags(n: int) -> int:
    """The number of directed graphs without cycles on n labelled nodes (Robinson 1973).

    a(n) = sum over k = 1..n of (-1)^(k+1) C(n, k) 2^(k(n-k)) a(n-k)

    >>> [n_dags(n) for n in range(6)]
    [1, 1, 3, 25, 543, 29281]
    """
    if not isinstance(n, int) or n < 0:
        raise GraphError(f"the number of nodes is a whole number from 0 up, not {n!r}")
    a = [1]
    for m in range(1, n + 1):
        a.append(sum((-1) ** (k + 1) * comb(m, k) * (a[m - k] << k * (m - k)) for k in range(1, m + 1)))
    return a[n]
