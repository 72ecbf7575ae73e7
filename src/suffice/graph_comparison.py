"""How far a learned graph is from another: the structural Hamming distance, and precision and recall of its edges."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from suffice.errors import GraphError, listed
from suffice.graph_text import Edge
from suffice.graphs import Cpdag, Dag, DagLike


def shd(a: DagLike, b: DagLike) -> int:
    """The structural Hamming distance of the equivalence classes of two graphs, each a `Dag` or a `Cpdag`.

    One for each pair of nodes whose edge differs: missing, extra, or directed otherwise. Equivalent graphs have distance 0.

    >>> shd(Dag("a -> b -> c"), Dag("c -> b -> a"))
    0
    >>> shd(Dag("a -> b <- c"), Dag("a -> b -> c"))
    2
    """
    first, second = _class_of(a), _class_of(b)
    if first.nodes != second.nodes:
        only = sorted({*first.nodes} ^ {*second.nodes})
        raise GraphError(f"the graphs have different nodes: {listed(only)} only in one of them")
    one, other = _marks(first), _marks(second)
    return sum(one.get(pair) != other.get(pair) for pair in one.keys() | other.keys())


@dataclass(frozen=True)
class Comparison:
    """What differs between a true and a learned graph.

    `adjacency_` counts edges whatever their direction, `arrow_` counts arrows with the right direction. Precision is the
    share of the learned edges that are true, 1 when nothing was learned; recall is the share of the true edges that were
    learned, 1 when there are none; f1 is their harmonic mean, 0 when both are 0. `missing`, `extra` and `reversed` (in both
    graphs, but directed otherwise) list edges, the first and last as the truth has them. The distance `shd` is always of the
    equivalence classes; all else is of the two graphs as they are if both are `Dag`, otherwise of their classes.

    >>> compare(Dag("a -> b -> c"), Dag("a -> b; c")).missing
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

    def __repr__(self) -> str:
        def rates(precision: float, recall: float, f1: float) -> str:
            return f"precision {precision:.3f}, recall {recall:.3f}, f1 {f1:.3f}"

        def edges(word: str, pairs: tuple[Edge, ...]) -> str:
            return f"\n  {word} {len(pairs)}" + (f": {listed(pairs, 4)}" if pairs else "")

        return (
            f"Comparison: shd {self.shd}"
            f"\n  edges   {rates(self.adjacency_precision, self.adjacency_recall, self.adjacency_f1)}"
            f"\n  arrows  {rates(self.arrow_precision, self.arrow_recall, self.arrow_f1)}"
            + edges("missing", self.missing)
            + edges("extra", self.extra)
            + edges("reversed", self.reversed)
        )


def compare(truth: DagLike, learned: DagLike) -> Comparison:
    """Compare a learned graph with the truth, each a `Dag` or a `Cpdag` on the same nodes; see `Comparison`.

    >>> compare(Dag("a -> c <- b; c -> d"), Dag("a -> c; d -> c; a -> b"))
    Comparison: shd 3
      edges   precision 0.667, recall 0.667, f1 0.667
      arrows  precision 0.333, recall 0.333, f1 0.333
      missing 1: ('b', 'c')
      extra 1: ('a', 'b')
      reversed 1: ('c', 'd')
    """
    graphs = [g if isinstance(g, (Cpdag, Dag)) else Dag(g) for g in (truth, learned)]
    distance = shd(*graphs)
    if any(isinstance(g, Cpdag) for g in graphs):
        graphs = [_class_of(g) for g in graphs]
    true, found = map(_marks, graphs)
    both = true.keys() & found.keys()
    true_arrows, found_arrows = map(_arrows, graphs)
    return Comparison(
        distance,
        *_rates(len(both), len(true), len(found)),
        *_rates(len(true_arrows & found_arrows), len(true_arrows), len(found_arrows)),
        missing=_edges(true, true.keys() - both),
        extra=_edges(found, found.keys() - both),
        reversed=_edges(true, (pair for pair in both if true[pair] != found[pair])),
    )


def _class_of(graph: DagLike) -> Cpdag:
    if isinstance(graph, Cpdag):
        return graph
    return (graph if isinstance(graph, Dag) else Dag(graph)).cpdag()


def _arrows(graph: Dag | Cpdag) -> set[Edge]:
    return set(graph.edges if isinstance(graph, Dag) else graph.directed)


def _marks(graph: Dag | Cpdag) -> dict[Edge, str]:
    """Of each joined pair (a, b) with a < b the mark of its edge: `->`, `<-` or `--`."""
    undirected = () if isinstance(graph, Dag) else graph.undirected
    return {**{(min(e), max(e)): "->" if e[0] < e[1] else "<-" for e in _arrows(graph)}, **dict.fromkeys(undirected, "--")}


def _edges(marks: dict[Edge, str], pairs: Iterable[Edge]) -> tuple[Edge, ...]:
    return tuple(sorted((b, a) if marks[a, b] == "<-" else (a, b) for a, b in pairs))


def _rates(n_right: int, n_true: int, n_found: int) -> tuple[float, float, float]:
    """Precision, recall and f1."""
    precision = n_right / n_found if n_found else 1.0
    recall = n_right / n_true if n_true else 1.0
    return precision, recall, 2 * precision * recall / (precision + recall) if n_right else float(not n_true and not n_found)
