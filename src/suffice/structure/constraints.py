"""Constraints: what is known about the graph before the data is seen.

Each kind is a value: `Forbid`, `Require`, `Tiers`, `MaxParents`, `Candidates`, `Adjacent`, `NotAncestor`. A sum says all that its
parts say, so sums commute; what no graph could keep is refused where it is written down, with the reason. `rules` puts the
constraints in numbers for a search; `check` says in words which of them a graph breaks.
"""

from __future__ import annotations

import operator
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain as joined
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.errors import FormatError, GraphError, bytes_in_words, listed, nearest
from suffice.graphs import Dag
from suffice.graphs.input import check_edges, checked_name, is_networkx, read_directed, read_pairs
from suffice.graphs.paths import Links, chain, find_cycle, reached, topological_order
from suffice.graphs.text import Edge, shown
from suffice.structure.rules import Rules
from suffice.variables import Finite, Variable


class Tiering(NamedTuple):
    """The names of each tier, from the first to the last, and whether there may be edges inside a tier."""

    tiers: tuple[tuple[str, ...], ...]
    within: bool


class Constraints:
    """All of some constraints at once: `Constraints(a, b)` is `a + b`, and `Constraints()` allows every graph.

    Of two maxima the smaller holds, of two lists of candidates their common names. Constraints are equal when they say the same
    in the same words, whatever their order.

    >>> known = Forbid(("death", "age")) + Tiers(["age", "sex"], ["smoke"]) + MaxParents(2)
    >>> known
    Forbid(('death', 'age')) + Tiers(['age', 'sex'], ['smoke']) + MaxParents(2)
    >>> known.check("smoke -> sex; death -> age")
    ['the edge death -> age is forbidden', 'the edge smoke -> sex goes back from tier 2 to tier 1']
    >>> known + Require("smoke -> age")
    Traceback (most recent call last):
    suffice.errors.GraphError: the edge smoke -> age is required, but it goes back from tier 2 to tier 1
    """

    forbidden: tuple[Edge, ...]
    required: tuple[Edge, ...]
    tiers: tuple[Tiering, ...]
    max_parents: int | None
    """The most parents of every variable that `max_parents_of` does not name."""
    max_parents_of: tuple[tuple[str, int], ...]
    candidates: tuple[tuple[str, tuple[str, ...]], ...]
    adjacent: tuple[Edge, ...]
    """Pairs (a, b), a < b, with an edge in either direction."""
    not_ancestor: tuple[Edge, ...]
    """Pairs (a, b) without a directed path from a to b."""
    _most: dict[str, int]

    def __init__(self, *parts: Constraints) -> None:
        for part in parts:
            if not isinstance(part, Constraints):
                raise GraphError(f"a constraint is Forbid, Require, Tiers or another kind, not {shown(part)}")
        lists = defaultdict[str, list[set[str]]](list)
        for child, names in joined.from_iterable(p.candidates for p in parts):
            lists[child].append(set(names))
        limited = {name for p in parts for name, _ in p.max_parents_of}
        self._hold(
            forbidden=_united(p.forbidden for p in parts),
            required=_united(p.required for p in parts),
            tiers=_united(p.tiers for p in parts),
            max_parents=min((p.max_parents for p in parts if p.max_parents is not None), default=None),
            max_parents_of=tuple(
                (name, min(most for p in parts if (most := p.most_parents(name)) is not None)) for name in sorted(limited)
            ),
            candidates=tuple((child, tuple(sorted(set.intersection(*sets)))) for child, sets in sorted(lists.items())),
            adjacent=_united(p.adjacent for p in parts),
            not_ancestor=_united(p.not_ancestor for p in parts),
        )

    def _hold(
        self,
        *,
        forbidden: tuple[Edge, ...] = (),
        required: tuple[Edge, ...] = (),
        tiers: tuple[Tiering, ...] = (),
        max_parents: int | None = None,
        max_parents_of: tuple[tuple[str, int], ...] = (),
        candidates: tuple[tuple[str, tuple[str, ...]], ...] = (),
        adjacent: tuple[Edge, ...] = (),
        not_ancestor: tuple[Edge, ...] = (),
    ) -> None:
        vars(self).update(forbidden=forbidden, required=required, tiers=tiers, max_parents=max_parents)
        vars(self).update(max_parents_of=max_parents_of, candidates=candidates, adjacent=adjacent, not_ancestor=not_ancestor)
        vars(self).update(_most=dict(max_parents_of))
        _needed_edges(self, {})

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("constraints never change; add others to them")

    def __delattr__(self, name: str) -> None:
        raise AttributeError("constraints never change; add others to them")

    def __add__(self, other: Constraints) -> Constraints:
        return Constraints(self, other)

    def __radd__(self, other: object) -> Constraints:
        """So that `sum(parts)` works."""
        return self if other == 0 else NotImplemented

    @property
    def _key(self) -> tuple[object, ...]:
        edges = self.forbidden, self.required, self.adjacent, self.not_ancestor
        return *edges, self.tiers, self.max_parents, self.max_parents_of, self.candidates

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Constraints) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return " + ".join(_spelled(self)) or "Constraints()"

    def most_parents(self, name: str) -> int | None:
        """How many parents a variable may have at most, None when nothing is said.

        >>> MaxParents(2, {"age": 0}).most_parents("age")
        0
        """
        return self._most.get(name, self.max_parents)

    def rules(self, variables: Sequence[Variable]) -> Rules:
        """The constraints in numbers: variable i is variables[i], which are sorted by name.

        No number is allowed as a parent of a finite variable. What follows from the constraints is in the rules too: the one
        direction that is left to two variables that must be adjacent is required; an edge is not allowed that runs against
        required edges, makes an ancestor of what must not be one, or would be one parent too many beside the required ones.
        What more `adjacent` and `not_ancestor` say is not about single edges, and is for the method to keep.

        >>> from suffice.variables import Real
        >>> rules = (Require(("a", "b")) + Forbid(("c", "b"))).rules([Real("a"), Real("b"), Real("c")])
        >>> rules.allowed.astype(int)
        array([[0, 0, 1],
               [1, 0, 0],
               [1, 1, 0]])
        """
        n, number = len(variables), {v.name: i for i, v in enumerate(variables)}
        self._refuse_unknown(number)
        required = np.zeros((n, n), bool)
        needed = _needed_edges(self, {v.name: v for v in variables})
        required[_cells(needed, number)] = True
        limits = (self.most_parents(v.name) for v in variables)
        most = np.array([max(n - 1, 0) if k is None else min(k, n - 1) for k in limits], np.int64)
        above = _ancestors(needed, number)
        allowed = self._allowed_by_themselves(variables, number) & ~above.T
        above |= np.eye(n, dtype=bool)
        for a, b in self.not_ancestor:
            allowed[np.ix_(above[number[b]], above[:, number[a]])] = False
        full = required.sum(1) >= most
        allowed[full] = required[full]
        return Rules(allowed, required, most)

    def _allowed_by_themselves(self, variables: Sequence[Variable], number: Mapping[str, int]) -> npt.NDArray[np.bool_]:
        """The edges, as [child, parent], that no constraint on a single edge is against: what `_EdgeByEdge` says of one edge."""
        n = len(variables)
        finite = np.array([isinstance(v, Finite) for v in variables], bool)
        allowed: npt.NDArray[np.bool_] = ~np.eye(n, dtype=bool) & ~(finite[:, None] & ~finite)
        allowed[_cells(self.forbidden, number)] = False
        for tiering in self.tiers:
            tier = np.full(n, -1)
            for level, names in enumerate(tiering.tiers):
                tier[_numbers(names, number)] = level
            back = tier[:, None] < tier if tiering.within else tier[:, None] <= tier
            allowed[back & (tier[:, None] >= 0)] = False  # where the child has a tier before the parent's, the parent has one
        for child, names in self.candidates:
            among = np.zeros(n, bool)
            among[_numbers(names, number)] = True
            allowed[number[child]] &= among
        return allowed

    def check(self, dag: Any) -> list[str]:
        """A sentence for each constraint that a graph (all that `Dag` takes) breaks; none when it keeps them all.

        >>> (Require("a -> b") + NotAncestor(("a", "c"))).check("a -> d -> c; b")  # doctest: +NORMALIZE_WHITESPACE
        ['the edge a -> b is required, but it is not there',
         "'a' must not be an ancestor of 'c', but there is the path a -> d -> c"]
        """
        graph = dag if isinstance(dag, Dag) else Dag(dag)
        self._refuse_unknown(graph.nodes)
        by_edge, edges = _EdgeByEdge(self, {}), set(graph.edges)
        children = {x: graph.children(x) for x in graph.nodes}
        broken = [f"the edge {chain(e)} {objection}" for e in graph.edges for objection in by_edge.objections(*e)]
        broken += [f"the edge {chain(e)} is required, but it is not there" for e in self.required if e not in edges]
        for x in graph.nodes:
            most, has = self.most_parents(x), len(graph.parents(x))
            if most is not None and has > most:
                broken.append(f"{shown(x)} has {has} parent{'s' * (has > 1)}, but may have at most {most}")
        for a, b in self.adjacent:
            if not edges & {(a, b), (b, a)}:
                broken.append(f"{shown(a)} and {shown(b)} must be adjacent, but there is no edge between them")
        for a, b in self.not_ancestor:
            if path := _path(a, b, children):
                broken.append(f"{shown(a)} must not be an ancestor of {shown(b)}, but there is the path {chain(path)}")
        return broken

    def _refuse_unknown(self, known: Iterable[str]) -> None:
        names = {name for t in self.tiers for tier in t.tiers for name in tier}
        names.update(*self.forbidden, *self.required, *self.adjacent, *self.not_ancestor)
        names.update(name for name, _ in self.max_parents_of)
        names.update(child for child, _ in self.candidates)
        names.update(*(parents for _, parents in self.candidates))
        if not names <= set(known):
            name = min(names - set(known))
            hint = nearest(name[:100], sorted(k for k in known if len(k) <= 100))
            raise GraphError(f"the constraints name {shown(name)}, which is not among the variables{hint}")


class Forbid(Constraints):
    """No edge of these: pairs (parent, child), text as `Dag` takes it, a mapping from a child to parents, or a Dag.

    >>> Forbid(("death", "age"), "ill, old -> sex")
    Forbid(('death', 'age'), ('ill', 'sex'), ('old', 'sex'))
    """

    def __init__(self, *edges: Any) -> None:
        self._hold(forbidden=_edges(edges))


class Require(Constraints):
    """Each of these edges, given as to `Forbid`.

    >>> Require("a -> b -> c") == Require(("b", "c"), ("a", "b"))
    True
    >>> Require("a -> b; b -> a")
    Traceback (most recent call last):
    suffice.errors.GraphError: the edges that must be there have a cycle: a -> b -> a
    """

    def __init__(self, *edges: Any) -> None:
        self._hold(required=_edges(edges))


class Tiers(Constraints):
    """No edge from a later tier into an earlier one; a tier is a list of names, and a name in no tier is free.

    `within=False` forbids the edges inside a tier too.

    >>> Tiers(["sex", "age"], ["smoke"], within=False)
    Tiers(['age', 'sex'], ['smoke'], within=False)
    """

    def __init__(self, *tiers: Iterable[str], within: bool = True) -> None:
        held, seen = [], dict[str, int]()
        for level, tier in enumerate(tiers, 1):
            names = _names(tier, f"tier {level}")
            if not names:
                raise GraphError(f"tier {level} has no names")
            for name in names:
                if name in seen:
                    raise GraphError(f"{shown(name)} is in tier {seen[name]} and in tier {level}")
                seen[name] = level
            held.append(names)
        if not held:
            raise GraphError("there are no tiers; write Tiers(['age', 'sex'], ['smoke'])")
        if not isinstance(within, (bool, np.bool_)):
            raise GraphError(f"within is True or False, not {shown(within)}; each tier is a list of its own")
        self._hold(tiers=(Tiering(tuple(held), bool(within)),))


class MaxParents(Constraints):
    """At most so many parents: a number for all, a mapping from names to numbers, or both, where a name's own number holds.

    >>> MaxParents(3), MaxParents({"age": 0}), MaxParents(3, {"age": 0}) == MaxParents(3, age=0)
    (MaxParents(3), MaxParents({'age': 0}), True)
    """

    def __init__(self, most: int | Mapping[str, int] | None = None, by_name: Mapping[str, int] | None = None, /, **named: int):
        if isinstance(most, Mapping) and by_name is None:
            most, by_name = None, most
        if not isinstance(by_name, Mapping | None):
            raise GraphError(f"the maxima of some variables are a mapping from names to numbers, not {shown(by_name)}")
        numbers = {checked_name(name): k for name, k in {**(by_name or {}), **named}.items()}
        if most is None and not numbers:
            raise GraphError("a maximum of parents is needed; write MaxParents(3) or MaxParents({'age': 0})")
        self._hold(
            max_parents=None if most is None else _size(most, "every variable"),
            max_parents_of=tuple((name, _size(k, shown(name))) for name, k in sorted(numbers.items())),
        )


class Candidates(Constraints):
    """For some children, the only parents that they may have; a child with an empty list has none.

    >>> Candidates({"xray": ["tub", "lung"], "age": []})
    Candidates({'age': [], 'xray': ['lung', 'tub']})
    """

    def __init__(self, parents: Mapping[str, Iterable[str]]) -> None:
        if not isinstance(parents, Mapping):
            raise GraphError(f"candidates are a mapping from a child to a list of parents, not {shown(parents)}")
        lists = {checked_name(c): _names(names, f"the list of candidates of {shown(c)}") for c, names in parents.items()}
        for child, names in lists.items():
            check_edges([(name, child) for name in names])
        self._hold(candidates=tuple(sorted(lists.items())))


class Adjacent(Constraints):
    """An edge between the two of each pair, in either direction.

    >>> Adjacent(("b", "a")).check("a -> c <- b")
    ["'a' and 'b' must be adjacent, but there is no edge between them"]
    """

    def __init__(self, *pairs: Any) -> None:
        self._hold(adjacent=tuple(sorted({(min(pair), max(pair)) for pair in _pairs(pairs)})))


class NotAncestor(Constraints):
    """No directed path from a to b, for each pair (a, b).

    >>> NotAncestor(("a", "b")) + Require("a -> c -> b")
    Traceback (most recent call last):
    suffice.errors.GraphError: 'a' must not be an ancestor of 'b', but edges that must be there lead to it: a -> c -> b
    """

    def __init__(self, *pairs: Any) -> None:
        self._hold(not_ancestor=_pairs(pairs))


def read_tiers(path: str | Path, *, within: bool = True) -> Tiers:
    """Tiers from a text file: a line is a tier, commas separate its names; blank lines and lines that begin with # are skipped.

    A name that holds a comma or a quote, or begins with #, stands in double quotes, with quotes inside doubled, as in CSV.

    >>> import tempfile
    >>> place = Path(tempfile.mkdtemp()) / "tiers.txt"
    >>> _ = place.write_text('# what comes first\\nage, sex\\n\\n"smoke, ever"\\n')
    >>> read_tiers(place)
    Tiers(['age', 'sex'], ['smoke, ever'])
    """
    seen: dict[str, int] = {}
    tiers = []
    for line, text in enumerate(_lines(path), 1):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        tier = list(_fields(text, path, line))
        for name in tier:
            if name in seen:
                where = f"in line {seen[name]} too" if seen[name] < line else "twice in this line"
                raise FormatError(f"{shown(name)} is {where}, but a name is in one tier only", path=path, line=line)
            seen[name] = line
        tiers.append(tier)
    if not tiers:
        raise FormatError("there are no tiers in this file: each line should hold the names of one, as in 'age, sex'", path=path)
    return Tiers(*tiers, within=within)


MAX_BYTES = 2**26
"""No larger file is read as tiers."""

_FIELD = re.compile(r'\s*+(?:"((?:[^"]|"")*+)"|([^",]*+))\s*+(,|$)')


def _fields(text: str, path: object, line: int) -> Iterator[str]:
    at, more = 0, True
    while more:
        match = _FIELD.match(text, at)
        if not match:
            hint = "a name that holds a quote stands in quotes, with the quotes inside doubled"
            raise FormatError(f"a quote is out of place in {shown(text[at:].strip())}: {hint}", path=path, line=line)
        name = match[2].strip() if match[1] is None else match[1].replace('""', '"')
        if not name.strip():
            raise FormatError("a name is missing beside a comma, or blank", path=path, line=line)
        yield name
        at, more = match.end(), match[3] == ","


def _lines(path: str | Path) -> list[str]:
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


class _EdgeByEdge:
    """What constraints say of one edge by itself; `variables` may hold the kinds of some."""

    def __init__(self, constraints: Constraints, variables: Mapping[str, Variable]) -> None:
        self.forbidden = set(constraints.forbidden)
        self.tiers = [({x: i for i, tier in enumerate(t.tiers, 1) for x in tier}, t.within) for t in constraints.tiers]
        self.candidates = {child: set(parents) for child, parents in constraints.candidates}
        self.variables = variables

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
            yield f"does not come from a candidate parent of {shown(b)}"
        if isinstance(self.variables.get(b), Finite) and not isinstance(self.variables.get(a, self.variables[b]), Finite):
            yield "leads from a number to a finite variable, for which there is no family"


def _needed_edges(constraints: Constraints, variables: Mapping[str, Variable]) -> set[Edge]:
    """The edges that must be there: the required ones, and of each adjacent pair the one direction that is left, if one is.

    What cannot hold is refused. Pairs that may still point either way can be impossible together: that takes a search to see.
    """
    if not constraints.required and not constraints.adjacent:
        return set()
    by_edge, needed = _EdgeByEdge(constraints, variables), set(constraints.required)
    for edge in constraints.required:
        for objection in by_edge.objections(*edge):
            raise GraphError(f"the edge {chain(edge)} is required, but it {objection}")
    while True:
        parents, children = _links(needed, constraints.adjacent, constraints.not_ancestor)
        _refuse_together(constraints, parents, children)
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
                raise GraphError(f"{shown(a)} and {shown(b)} must be adjacent, but {why}")
            if forth or back:
                fresh.add((b, a) if forth else (a, b))
        if not fresh:
            return needed
        needed |= fresh


def _refuse_together(constraints: Constraints, parents: Links, children: Links) -> None:
    """Refuse edges that must be there, each possible by itself, when they are not possible together."""
    if cycle := find_cycle(parents):
        raise GraphError(f"the edges that must be there have a cycle: {chain(cycle)}")
    for child, names in parents.items():
        most = constraints.most_parents(child) if names else None
        if most is not None and len(names) > most:
            must = f"the parent{'s' * (len(names) > 1)} {listed(names)}"
            raise GraphError(f"{shown(child)} must have {must}, but may have at most {most}")
    for a, b in constraints.not_ancestor:
        if path := _path(a, b, children):
            why = f"edges that must be there lead to it: {chain(path)}"
            raise GraphError(f"{shown(a)} must not be an ancestor of {shown(b)}, but {why}")


def _objections_of_all(constraints: Constraints, parents: Links, children: Links, a: str, b: str) -> Iterator[str]:
    """Why there can be no edge a -> b beside the edges that must be there."""
    most = constraints.most_parents(b)
    if most is not None and len(parents[b]) >= most:
        yield f"would be one parent more than the {most} that {shown(b)} may have"
    if path := _path(b, a, children):
        yield f"would close a cycle with edges that must be there, {chain(path)}"
    above, below = reached([a], parents), reached([b], children)
    for x, y in constraints.not_ancestor:
        if x in above and y in below:
            yield f"would make {shown(x)} an ancestor of {shown(y)}, which it must not be"


def _path(start: str, end: str, children: Links) -> list[str]:
    """A shortest directed path of one edge or more, as names; empty when there is none."""
    came: dict[str, str] = {}
    row = [start]
    while row and end not in came:
        fresh = {child: x for x in row for child in children[x] if child not in came}
        came.update(fresh)
        row = list(fresh)
    if end not in came:
        return []
    path = [end]
    while len(path) == 1 or path[-1] != start:
        path.append(came[path[-1]])
    return path[::-1]


def _links(edges: Iterable[Edge], *others: Iterable[Edge]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """The parents and the children of each name in some edges, and of the names in other pairs too."""
    ordered = sorted(edges)
    names = sorted({x for pair in joined(ordered, *others) for x in pair})
    parents: dict[str, list[str]] = {x: [] for x in names}
    children: dict[str, list[str]] = {x: [] for x in names}
    for a, b in ordered:
        parents[b].append(a)
        children[a].append(b)
    return parents, children


def _ancestors(edges: Iterable[Edge], number: Mapping[str, int]) -> npt.NDArray[np.bool_]:
    """Which have a directed path to which: [descendant, ancestor]."""
    above = np.zeros((len(number), len(number)), bool)
    parents, children = _links(edges)
    for x in topological_order(parents, children):
        row = above[number[x]]
        for p in parents[x]:
            row |= above[number[p]]
            row[number[p]] = True
    return above


def _cells(edges: Iterable[Edge], number: Mapping[str, int]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The cells [child, parent] of edges in a matrix."""
    flat = _numbers(joined.from_iterable(edges), number)
    return flat[1::2], flat[::2]


def _numbers(names: Iterable[str], number: Mapping[str, int]) -> npt.NDArray[np.intp]:
    return np.fromiter(map(number.__getitem__, names), np.intp)


def _edges(items: Iterable[Any]) -> tuple[Edge, ...]:
    """Edges, sorted and each once, from all the ways in which they are written down."""
    found: set[Edge] = set()
    for item in items:
        found.update(_edges_of(getattr(item, "dag", item)))  # a network stands for its graph
    check_edges(sorted(found))
    return tuple(sorted(found))


def _edges_of(item: Any) -> Iterable[Edge]:
    if isinstance(item, Dag):
        return item.edges
    if isinstance(item, str):
        names, edges = read_directed(item)
        lone = set(names) - {x for edge in edges for x in edge}
        if lone or not edges:
            what = f"{shown(min(lone))} has no edge in {shown(item)}" if lone else f"there is no edge in {shown(item)}"
            raise GraphError(f"{what}; an edge is written 'a -> b' or ('a', 'b')")
        return edges
    if isinstance(item, Mapping) or is_networkx(item):
        return read_directed(item)[1]
    return _pairs_of(item)


def _pairs(items: Iterable[Any]) -> tuple[Edge, ...]:
    """Pairs of names, sorted and each once, one by one or in lists of pairs."""
    found = {pair for item in items for pair in _pairs_of(item)}
    for a, b in sorted(found):
        if a == b:
            raise GraphError(f"a pair is of two names, not {shown(a)} twice")
    return tuple(sorted(found))


def _pairs_of(item: Any) -> list[Edge]:
    is_one = isinstance(item, str) or (isinstance(item, (tuple, list)) and any(isinstance(x, str) for x in item))
    return read_pairs([item] if is_one else item)


def _names(names: Any, what: str) -> tuple[str, ...]:
    """Names, sorted and each once, from a list of them."""
    if isinstance(names, str):
        raise GraphError(f"{what} should be a list of names, not {shown(names)}; write [{shown(names)}]")
    if not isinstance(names, Iterable):
        raise GraphError(f"{what} should be a list of names, not {shown(names)}")
    found = list(names)
    if found and not any(isinstance(name, str) for name in found) and all(isinstance(name, Iterable) for name in found):
        raise GraphError(f"{what} should be a list of names, not a list of lists; put a star before it")
    return tuple(sorted({checked_name(name) for name in found}))


def _size(most: Any, of: str) -> int:
    try:
        number = operator.index(most)
    except TypeError:
        number = -1
    if number < 0 or isinstance(most, bool):
        raise GraphError(f"the maximum of parents of {of} is a whole number from 0 up, not {shown(most)}")
    return number


def _united(parts: Iterable[Iterable[Any]]) -> tuple[Any, ...]:
    return tuple(sorted(set(joined.from_iterable(parts))))


def _spelled(c: Constraints) -> Iterator[str]:
    """Each kind of constraint as it would be written."""
    if c.forbidden:
        yield f"Forbid({listed(c.forbidden, 12)})"
    if c.required:
        yield f"Require({listed(c.required, 12)})"
    for tiers, within in c.tiers:
        lists = ", ".join(f"[{listed(tier, 12)}]" for tier in tiers)
        yield f"Tiers({lists}{'' if within else ', within=False'})"
    if c.max_parents is not None or c.max_parents_of:
        named = ", ".join(f"{name!r}: {most}" for name, most in c.max_parents_of)
        yield f"MaxParents({', '.join(filter(None, [_text(c.max_parents), named and f'{{{named}}}']))})"
    if c.candidates:
        lists = ", ".join(f"{child!r}: [{listed(parents, 12)}]" for child, parents in c.candidates)
        yield f"Candidates({{{lists}}})"
    if c.adjacent:
        yield f"Adjacent({listed(c.adjacent, 12)})"
    if c.not_ancestor:
        yield f"NotAncestor({listed(c.not_ancestor, 12)})"


def _text(number: int | None) -> str:
    return "" if number is None else str(number)
