"""Rules: what a search may do, in numbers; variables are numbered in the order of their names. And what rules are made from:
constraints as a user writes them down, what follows from them, and what no graph could keep, which is refused."""

from __future__ import annotations

import operator
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain as joined
from math import comb
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Bools, Ints
from suffice.basis.variables import Finite, Real, Variable
from suffice.errors import FitError, FormatError, GraphError, bytes_in_words, listing
from suffice.errors.remedies import as_regression
from suffice.families import has_family
from suffice.graphs import Dag
from suffice.graphs.directed import topological_order
from suffice.graphs.paths import Links, chain, find_cycle, links, reach, shortest_path
from suffice.graphs.text import Edge, all_nodes, checked_name, is_networkx, read_directed, read_pairs, show

Parents = tuple[int, ...]


@dataclass(frozen=True)
class Rules:
    """Which edges are allowed and which must be there; `allowed[child, parent]`, `required[child, parent]`.

    `required` implies `allowed`; the diagonal is never allowed; the required edges have no cycle and fit `max_parents`.
    """

    allowed: Bools
    required: Bools
    max_parents: Ints
    names: tuple[str, ...] = ()

    @staticmethod
    def free(n: int, max_parents: int | None = None) -> Rules:
        """Every edge allowed, none required, and at most `max_parents` parents."""
        most = n - 1 if max_parents is None else min(max_parents, max(n - 1, 0))
        return Rules(~np.eye(n, dtype=bool), np.zeros((n, n), bool), np.full(n, most, np.int64))

    @staticmethod
    def of_kinds(variables: Sequence[Variable], regressions: Collection[str] = ()) -> Rules:
        """Every edge allowed for which there is a family: numbers are parents of real variables and of `regressions` only."""
        rules = Rules.free(len(variables))
        finite = np.array([isinstance(v, Finite) for v in variables], bool)
        any_parents = np.array([isinstance(v, Real) or v.name in regressions for v in variables], bool)
        rules.allowed[~any_parents[:, None] & ~finite] = False
        return rules

    @property
    def n(self) -> int:
        return len(self.allowed)

    @property
    def n_families(self) -> int:
        """How many families they allow, whatever they require."""
        most, candidates = self.max_parents.tolist(), self.allowed.sum(1).tolist()
        return sum(comb(c, k) for c, m in zip(candidates, most, strict=True) for k in range(min(m, c) + 1))

    def cap(self, max_parents: int | None) -> Rules:
        """The same rules with at most so many parents."""
        if max_parents is None:
            return self
        needed = self.required.sum(1)
        if needed.max(initial=0) > max_parents:
            child = int(np.argmax(needed))
            name = repr(self.names[child]) if self.names else f"node {child}"
            raise FitError(
                f"the constraints require {needed[child]} parents of {name}, and the method allows at most {max_parents}: "
                "raise its max_parents"
            )
        return replace(self, max_parents=np.minimum(self.max_parents, max_parents))

    def without_parents(self, nodes: Sequence[int]) -> Rules:
        """The same rules, but these nodes have no parents."""
        allowed, required = self.allowed.copy(), self.required.copy()
        allowed[nodes], required[nodes] = False, False
        return replace(self, allowed=allowed, required=required)

    def within(self, candidates: Bools) -> Rules:
        """The same rules with these candidate parents only, and what is required."""
        return replace(self, allowed=(self.allowed & candidates) | self.required)

    def start(self) -> list[Parents]:
        """The graph of the required edges only."""
        return [tuple(map(int, np.flatnonzero(row))) for row in self.required]

    def some_order(self, rng: np.random.Generator, start: Sequence[Parents] | None = None) -> npt.NDArray[np.int32]:
        """A random order in which required parents, or the parents of `start`, come before their children."""
        before = [set(p) for p in (self.start() if start is None else start)]
        order: list[int] = []
        placed: set[int] = set()
        waiting = rng.permutation(len(before)).argsort().tolist()
        while waiting:
            ready = [v for v in waiting if before[v] <= placed]
            order += ready
            placed |= set(ready)
            waiting = [v for v in waiting if v not in placed]
        return np.array(order, np.int32)

    def permits(self, parents: Sequence[Parents]) -> bool:
        """Whether a graph keeps the rules."""
        matrix = np.zeros_like(self.allowed)
        for child, chosen in enumerate(parents):
            matrix[child, list(chosen)] = True
        few = bool((matrix.sum(1) <= self.max_parents).all())
        return few and not (matrix & ~self.allowed).any() and not (self.required & ~matrix).any()


def ancestors(parents: Sequence[Sequence[int]]) -> Bools:
    """Which have a directed path to which: [descendant, ancestor]."""
    above = np.zeros((len(parents), len(parents)), bool)
    for x in topological_order(dict(enumerate(parents))):
        for p in parents[x]:
            above[x] |= above[p]
            above[x, p] = True
    return above


def toggle_parent(parents: Sequence[int], other: int) -> Parents:
    """The parents with one more, or one less if it was there."""
    return tuple(p for p in parents if p != other) if other in parents else tuple(sorted((*parents, other)))


class Tiering(NamedTuple):
    """The names of each tier, from the first to the last, and whether there may be edges inside a tier."""

    tiers: tuple[tuple[str, ...], ...]
    within: bool


class ConstraintParts:
    """What constraints hold, each kind under its name: the part of `Constraints` that is looked at here."""

    forbidden: tuple[Edge, ...] = ()
    required: tuple[Edge, ...] = ()
    tiers: tuple[Tiering, ...] = ()
    max_parents: int | None = None
    """The most parents of every variable that `max_parents_of` does not name."""
    max_parents_of: tuple[tuple[str, int], ...] = ()
    candidates: tuple[tuple[str, tuple[str, ...]], ...] = ()
    adjacent: tuple[Edge, ...] = ()
    """Pairs (a, b), a < b, with an edge in either direction."""
    not_ancestor: tuple[Edge, ...] = ()
    """Pairs (a, b) without a directed path from a to b."""
    _most: dict[str, int]

    def most_parents(self, name: str) -> int | None:
        """How many parents a variable may have at most, None when nothing is said.

        >>> from suffice.constraints import MaxParents
        >>> MaxParents(2, {"age": 0}).most_parents("age")
        0
        """
        return self._most.get(name, self.max_parents)


class EdgeByEdge:
    """What constraints say of one edge by itself; `variables` may hold the kinds of some, of which some are `regressions`."""

    def __init__(
        self, constraints: ConstraintParts, variables: Mapping[str, Variable], regressions: Collection[str] = ()
    ) -> None:
        self.forbidden = set(constraints.forbidden)
        self.tiers = [({x: i for i, tier in enumerate(t.tiers, 1) for x in tier}, t.within) for t in constraints.tiers]
        self.candidates = {child: set(parents) for child, parents in constraints.candidates}
        self.variables, self.regressions = variables, regressions

    def objections(self, a: str, b: str) -> Iterator[str]:
        """Why there can be no edge a -> b; each continues a sentence that begins with the edge."""
        if (a, b) in self.forbidden:
            yield "is forbidden"
        for level, within in self.tiers:
            if a in level and b in level:
                if level[a] > level[b]:
                    yield f"goes back from tier {level[a]} to tier {level[b]}"
                elif level[a] == level[b] and not within:
                    yield f"is inside tier {level[a]}, where no edge may be"
        if a not in self.candidates.get(b, (a,)):
            yield f"does not come from a candidate parent of {show(b)}"
        child, parent = self.variables.get(b), self.variables.get(a)
        if child is not None and parent is not None and b not in self.regressions and not has_family(child, [parent]):
            kind, word = ("finite variable", "Logistic") if isinstance(child, Finite) else ("count", "PoissonLog")
            yield (
                f"leads from a number to a {kind}, for which there is no family unless it is a regression: "
                f"{as_regression(b, word)}"
            )


def needed_edges(constraints: ConstraintParts, variables: Mapping[str, Variable], regressions: Collection[str] = ()) -> set[Edge]:
    """The edges that must be there: the required ones, and of each adjacent pair the one direction that is left, if one is.

    What cannot hold is refused. Pairs that may still point either way can be impossible together: that takes a search to see.
    """
    if not (constraints.required or constraints.adjacent):
        return set()
    by_edge, needed = EdgeByEdge(constraints, variables, regressions), set(constraints.required)
    for edge in constraints.required:
        for objection in by_edge.objections(*edge):
            raise GraphError(f"the edge {chain(edge)} is required, but it {objection}")
    while True:
        pairs = joined(constraints.adjacent, constraints.not_ancestor, needed)
        parents, children = links(sorted(needed), sorted({x for pair in pairs for x in pair}))
        if cycle := find_cycle(parents):
            raise GraphError(f"the edges that must be there have a cycle: {chain(cycle)}")
        for child, names in parents.items():
            most = constraints.most_parents(child) if names else None
            if most is not None and len(names) > most:
                must = f"the parent{'s' * (len(names) > 1)} {listing(names)}"
                raise GraphError(f"{show(child)} must have {must}, but may have at most {most}")
        for a, b in constraints.not_ancestor:
            if path := shortest_path(a, b, children):
                why = f"edges that must be there lead to it: {chain(path)}"
                raise GraphError(f"{show(a)} must not be an ancestor of {show(b)}, but {why}")
        fresh = set()
        for a, b in constraints.adjacent:
            if (a, b) in needed or (b, a) in needed:
                continue
            forth, back = (
                next(joined(by_edge.objections(*edge), _objections_of_all(constraints, parents, children, *edge)), "")
                for edge in ((a, b), (b, a))
            )
            if forth and back:
                why = f"{chain((a, b))} {forth}, and {chain((b, a))} {back}"
                raise GraphError(f"{show(a)} and {show(b)} must be adjacent, but {why}")
            if forth or back:
                fresh.add((b, a) if forth else (a, b))
        if not fresh:
            return needed
        needed |= fresh


def _objections_of_all(constraints: ConstraintParts, parents: Links[str], children: Links[str], a: str, b: str) -> Iterator[str]:
    """Why there can be no edge a -> b beside the edges that must be there."""
    most = constraints.most_parents(b)
    if most is not None and len(parents[b]) >= most:
        yield f"would be one parent more than the {most} that {show(b)} may have"
    if path := shortest_path(b, a, children):
        yield f"would close a cycle with edges that must be there, {chain(path)}"
    above, below = reach([a], parents), reach([b], children)
    for x, y in constraints.not_ancestor:
        if x in above and y in below:
            yield f"would make {show(x)} an ancestor of {show(y)}, which it must not be"


def edges_in(items: Iterable[Any]) -> tuple[Edge, ...]:
    """Edges, sorted and each once, from all the ways in which they are written down."""
    found = sorted({edge for item in items for edge in _edges_of(getattr(item, "dag", item))})  # a network stands for its graph
    all_nodes([], found)
    return tuple(found)


def _edges_of(item: Any) -> Iterable[Edge]:
    if isinstance(item, Dag):
        return item.edges
    if isinstance(item, str):
        names, edges = read_directed(item)
        lone = set(names) - {x for edge in edges for x in edge}
        if lone or not edges:
            what = f"{show(min(lone))} has no edge in {show(item)}" if lone else f"there is no edge in {show(item)}"
            raise GraphError(f"{what}; an edge is written 'a -> b' or ('a', 'b')")
        return edges
    if isinstance(item, Mapping) or is_networkx(item):
        return read_directed(item)[1]
    return _pairs_of(item)


def pairs_in(items: Iterable[Any]) -> tuple[Edge, ...]:
    """Pairs of names, sorted and each once, one by one or in lists of pairs."""
    found = {pair for item in items for pair in _pairs_of(item)}
    for a, b in sorted(found):
        if a == b:
            raise GraphError(f"a pair is of two names, not {show(a)} twice")
    return tuple(sorted(found))


def _pairs_of(item: Any) -> list[Edge]:
    is_one = isinstance(item, str) or (isinstance(item, (tuple, list)) and any(isinstance(x, str) for x in item))
    return read_pairs([item] if is_one else item)


def names_in(names: Any, what: str) -> tuple[str, ...]:
    """Names, sorted and each once, from a list of them."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        hint = f"; write [{show(names)}]" if isinstance(names, str) else ""
        raise GraphError(f"{what} should be a list of names, not {show(names)}{hint}")
    found = list(names)
    if found and not any(isinstance(name, str) for name in found) and all(isinstance(name, Iterable) for name in found):
        raise GraphError(f"{what} should be a list of names, not a list of lists; put a star before it")
    return tuple(sorted({checked_name(name) for name in found}))


def size_in(most: Any, of: str) -> int:
    try:
        number = operator.index(most)
    except TypeError:
        number = -1
    if number < 0 or isinstance(most, bool):
        raise GraphError(f"the maximum of parents of {of} is a whole number from 0 up, not {show(most)}")
    return number


MAX_BYTES = 2**26
"""No larger file is read as tiers."""

_FIELD = re.compile(r'\s*+(?:"((?:[^"]|"")*+)"|([^",]*+))\s*+(,|$)')


def tier_names(text: str, path: object, line: int) -> Iterator[str]:
    """The names in a line of a file of tiers."""
    at, more = 0, True
    while more:
        match = _FIELD.match(text, at)
        if not match:
            hint = "a name that holds a quote stands in quotes, with the quotes inside doubled"
            raise FormatError(f"a quote is out of place in {show(text[at:].strip())}: {hint}", path=path, line=line)
        name = match[2].strip() if match[1] is None else match[1].replace('""', '"')
        if not name.strip():
            raise FormatError("a name is missing beside a comma, or blank", path=path, line=line)
        yield name
        at, more = match.end(), match[3] == ","


def tier_lines(path: str | Path) -> list[str]:
    """The lines of a file of tiers."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, TypeError, ValueError) as error:
        raise FormatError(f"the file cannot be read: {getattr(error, 'strerror', None) or error}", path=path) from None
    if len(data) > MAX_BYTES:
        raise FormatError(f"the file is larger than {bytes_in_words(MAX_BYTES)}, too large for tiers", path=path)
    try:
        return re.split(r"\r\n|\r|\n", data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise FormatError(f"byte {error.start + 1} of the file is not UTF-8", path=path, line=line) from None
