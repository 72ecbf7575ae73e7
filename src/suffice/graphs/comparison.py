"""How far a learned graph is from another: what differs, and precision and recall of its edges.

Functions of marks; `shd` and `compare` of graphs are in `graphs.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from suffice.errors import listed
from suffice.graphs.text import Edge

Marks: TypeAlias = Mapping[Edge, str]
"""Of each joined pair (a, b) with a < b the mark of its edge: `->`, `<-` or `--`."""


def marks(directed: Iterable[Edge], undirected: Iterable[Edge] = ()) -> Marks:
    """The marks of a graph.

    >>> marks([("b", "a")], [("a", "c")])
    {('a', 'b'): '<-', ('a', 'c'): '--'}
    """
    return {**{(min(e), max(e)): "->" if e[0] < e[1] else "<-" for e in directed}, **dict.fromkeys(undirected, "--")}


def n_differing(a: Marks, b: Marks) -> int:
    """The number of pairs whose edge is missing from one of two graphs, or directed otherwise.

    >>> n_differing(marks([("a", "b"), ("b", "c")]), marks([("b", "a")]))
    2
    """
    return sum(a.get(pair) != b.get(pair) for pair in a.keys() | b.keys())


@dataclass(frozen=True)
class Comparison:
    """What differs between a true and a learned graph.

    `adjacency_` counts edges whatever their direction, `arrow_` counts arrows with the right direction. Precision is the
    share of the learned edges that are true, 1 when nothing was learned; recall is the share of the true edges that were
    learned, 1 when there are none; f1 is their harmonic mean, 0 when both are 0. `missing`, `extra` and `reversed` (in both
    graphs, but directed otherwise) list edges, the first and last as the truth has them. The distance `shd` is always of the
    equivalence classes; all else is of the two graphs as they are if both are `Dag`, otherwise of their classes.

    >>> compared(1, marks([("a", "b"), ("b", "c")]), marks([("a", "b")])).missing
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

    def to_dict(self) -> dict[str, Any]:
        """The numbers and the edges by their names, for JSON.

        >>> compared(0, {}, {}).to_dict()["adjacency_f1"]
        1.0
        """
        return dict(vars(self))

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


def compared(shd: int, true: Marks, found: Marks) -> Comparison:
    """The comparison of two graphs by their marks; the distance is of their classes, so it comes from elsewhere."""
    both = true.keys() & found.keys()
    n_right = sum(true[pair] == found[pair] != "--" for pair in both)
    return Comparison(
        shd,
        *_rates(len(both), len(true), len(found)),
        *_rates(n_right, _n_arrows(true), _n_arrows(found)),
        missing=_edges(true, true.keys() - both),
        extra=_edges(found, found.keys() - both),
        reversed=_edges(true, (pair for pair in both if true[pair] != found[pair])),
    )


def _n_arrows(marks: Marks) -> int:
    return sum(mark != "--" for mark in marks.values())


def _edges(marks: Marks, pairs: Iterable[Edge]) -> tuple[Edge, ...]:
    return tuple(sorted((b, a) if marks[a, b] == "<-" else (a, b) for a, b in pairs))


def _rates(n_right: int, n_true: int, n_found: int) -> tuple[float, float, float]:
    """Precision, recall and f1."""
    precision = n_right / n_found if n_found else 1.0
    recall = n_right / n_true if n_true else 1.0
    return precision, recall, 2 * precision * recall / (precision + recall) if n_right else float(not n_true and not n_found)
