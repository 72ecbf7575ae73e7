"""Constraints: what is known about the graph before the data is seen.

Each kind is a value: `Forbid`, `Require`, `Tiers`, `MaxParents`, `Candidates`, `Adjacent`, `NotAncestor`. A sum says all that its
parts say, so sums commute; what no graph could keep is refused where it is written down, with the reason. `rules` puts the
constraints in numbers for a search; `check` says in words which of them a graph breaks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain as joined
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Bools
from suffice.basis.variables import Variable
from suffice.errors import FormatError, GraphError, listing, nearest
from suffice.errors.remedies import TIERS, in_python
from suffice.graphs import Dag
from suffice.graphs.paths import chain, shortest_path
from suffice.graphs.text import Edge, all_nodes, checked_name, show
from suffice.structure.rules import (
    ConstraintParts,
    EdgeByEdge,
    Rules,
    Tiering,
    ancestors,
    edges_in,
    names_in,
    needed_edges,
    pairs_in,
    size_in,
    tier_lines,
    tier_names,
)

EDGES = ("forbidden", "required", "adjacent", "not_ancestor")
"""The kinds of constraints that are pairs of names."""


class Constraints(ConstraintParts):
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

    def __init__(self, *parts: Constraints) -> None:
        for part in parts:
            if not isinstance(part, Constraints):
                raise GraphError(f"a constraint is Forbid, Require, Tiers or another kind, not {show(part)}")
        lists = defaultdict[str, list[set[str]]](list)
        for child, names in joined.from_iterable(p.candidates for p in parts):
            lists[child].append(set(names))
        every = min((p.max_parents for p in parts if p.max_parents is not None), default=None)
        limited = sorted({name for p in parts for name, _ in p.max_parents_of})
        own = tuple((name, min(most for p in parts if (most := p.most_parents(name)) is not None)) for name in limited)
        candidates = tuple((child, tuple(sorted(set.intersection(*sets)))) for child, sets in sorted(lists.items()))
        said = {kind: tuple(sorted({x for p in parts for x in getattr(p, kind)})) for kind in (*EDGES, "tiers")}
        self._hold(**said, max_parents=every, max_parents_of=own, candidates=candidates)

    def _hold(self, **said: Any) -> None:
        """Keep what is said, if some graph could keep it."""
        vars(self).update(said, _most=dict(said.get("max_parents_of", ())))
        needed_edges(self, {})

    def __setattr__(self, name: str, *value: object) -> None:
        raise AttributeError("constraints never change; add others to them")

    __delattr__ = __setattr__

    def __add__(self, other: Constraints) -> Constraints:
        return Constraints(self, other)

    def __radd__(self, other: object) -> Constraints:
        """So that `sum(parts)` works."""
        return self if other == 0 else NotImplemented

    @property
    def _key(self) -> tuple[object, ...]:
        return tuple(getattr(self, kind) for kind in (*EDGES, "tiers", "max_parents", "max_parents_of", "candidates"))

    def __eq__(self, other: object) -> bool:
        return self._key == other._key if isinstance(other, Constraints) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return " + ".join(_spell(self)) or "Constraints()"

    def rules(self, variables: Sequence[Variable], regressions: Collection[str] = ()) -> Rules:
        """The constraints in numbers: variable i is variables[i], which are sorted by name.

        No number is allowed as a parent of a finite variable that is none of the `regressions`. What follows from the
        constraints is in the rules too: the one direction that is left to two variables that must be adjacent is required; an
        edge is not allowed that runs against required edges, makes an ancestor of what must not be one, or would be one parent
        too many beside the required ones.
        What more `adjacent` and `not_ancestor` say is not about single edges, and is for the method to keep.

        >>> from suffice import Real
        >>> rules = (Require(("a", "b")) + Forbid(("c", "b"))).rules([Real("a"), Real("b"), Real("c")])
        >>> rules.allowed.astype(int)
        array([[0, 0, 1],
               [1, 0, 0],
               [1, 1, 0]])
        """
        n, number = len(variables), {v.name: i for i, v in enumerate(variables)}
        self.refuse_unknown(number)
        required = np.zeros((n, n), bool)
        required[_cells(needed_edges(self, {v.name: v for v in variables}, regressions), number)] = True
        most = np.array([n - 1 if (k := self.most_parents(v.name)) is None else min(k, n - 1) for v in variables], np.int64)
        above = ancestors([np.flatnonzero(row).tolist() for row in required])
        allowed = self.allowed_edges(Rules.of_kinds(variables, regressions).allowed, number) & ~above.T
        above |= np.eye(n, dtype=bool)
        for a, b in self.not_ancestor:
            allowed[np.ix_(above[number[b]], above[:, number[a]])] = False
        full = required.sum(1) >= most
        allowed[full] = required[full]
        return Rules(allowed, required, most)

    def allowed_edges(self, allowed: Bools, number: Mapping[str, int]) -> Bools:
        """Those edges [child, parent] that no constraint on a single edge is against: what `EdgeByEdge` says of one edge."""
        n = len(allowed)
        allowed[_cells(self.forbidden, number)] = False
        for tiering in self.tiers:
            tier = np.full(n, -1)
            for level, names in enumerate(tiering.tiers):
                tier[_numbers(names, number)] = level
            back = tier[:, None] < tier if tiering.within else tier[:, None] <= tier
            allowed[back & (tier[:, None] >= 0)] = False  # where the child has a tier before the parent's, the parent has one
        for child, names in self.candidates:
            allowed[number[child]] &= np.isin(np.arange(n), _numbers(names, number))
        return allowed

    def check(self, dag: Any) -> list[str]:
        """A sentence for each constraint that a graph (all that `Dag` takes) breaks; none when it keeps them all.

        >>> (Require("a -> b") + NotAncestor(("a", "c"))).check("a -> d -> c; b")  # doctest: +NORMALIZE_WHITESPACE
        ['the edge a -> b is required, but it is not there',
         "'a' must not be an ancestor of 'c', but there is the path a -> d -> c"]
        """
        graph = dag if isinstance(dag, Dag) else Dag(dag)
        self.refuse_unknown(graph.nodes)
        by_edge, edges = EdgeByEdge(self, {}), set(graph.edges)
        children = {x: graph.children(x) for x in graph.nodes}
        broken = [f"the edge {chain(e)} {objection}" for e in graph.edges for objection in by_edge.objections(*e)]
        broken += [f"the edge {chain(e)} is required, but it is not there" for e in self.required if e not in edges]
        for x in graph.nodes:
            most, has = self.most_parents(x), len(graph.parents(x))
            if most is not None and has > most:
                broken.append(f"{show(x)} has {has} parent{'s' * (has > 1)}, but may have at most {most}")
        for a, b in self.adjacent:
            if not edges & {(a, b), (b, a)}:
                broken.append(f"{show(a)} and {show(b)} must be adjacent, but there is no edge between them")
        for a, b in self.not_ancestor:
            if path := shortest_path(a, b, children):
                broken.append(f"{show(a)} must not be an ancestor of {show(b)}, but there is the path {chain(path)}")
        return [in_python(text) for text in broken]

    @property
    def names(self) -> frozenset[str]:
        """The variables that the constraints speak of."""
        names = {name for t in self.tiers for tier in t.tiers for name in tier}
        names.update(*joined.from_iterable(getattr(self, edges) for edges in EDGES))
        names.update(name for name, _ in self.max_parents_of)
        names.update(*((child, *parents) for child, parents in self.candidates))
        return frozenset(names)

    def refuse_unknown(self, known: Iterable[str]) -> None:
        names = self.names
        if not names <= set(known):
            name = min(names - set(known))
            hint = nearest(name[:100], sorted(k for k in known if len(k) <= 100))
            raise GraphError(f"the constraints name {show(name)}, which is not among the variables{hint}")


class Forbid(Constraints):
    """No edge of these: pairs (parent, child), text as `Dag` takes it, a mapping from a child to parents, or a Dag.

    >>> Forbid(("death", "age"), "ill, old -> sex")
    Forbid(('death', 'age'), ('ill', 'sex'), ('old', 'sex'))
    """

    def __init__(self, *edges: Any) -> None:
        self._hold(forbidden=edges_in(edges))


class Require(Constraints):
    """Each of these edges, given as to `Forbid`.

    >>> Require("a -> b -> c") == Require(("b", "c"), ("a", "b"))
    True
    >>> Require("a -> b; b -> a")
    Traceback (most recent call last):
    suffice.errors.GraphError: the edges that must be there have a cycle: a -> b -> a
    """

    def __init__(self, *edges: Any) -> None:
        self._hold(required=edges_in(edges))


class Tiers(Constraints):
    """No edge from a later tier into an earlier one; a tier is a list of names, and a name in no tier is free.

    `within=False` forbids the edges inside a tier too.

    >>> Tiers(["sex", "age"], ["smoke"], within=False)
    Tiers(['age', 'sex'], ['smoke'], within=False)
    """

    def __init__(self, *tiers: Iterable[str], within: bool = True) -> None:
        held, seen = [], dict[str, int]()
        for level, tier in enumerate(tiers, 1):
            names = names_in(tier, f"tier {level}")
            if not names:
                raise GraphError(f"tier {level} has no names")
            for name in names:
                if name in seen:
                    raise GraphError(f"{show(name)} is in tier {seen[name]} and in tier {level}")
                seen[name] = level
            held.append(names)
        if not held:
            raise GraphError(f"there are no tiers; write {TIERS}")
        if not isinstance(within, (bool, np.bool_)):
            raise GraphError(f"within is True or False, not {show(within)}; each tier is a list of its own")
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
            raise GraphError(f"the maxima of some variables are a mapping from names to numbers, not {show(by_name)}")
        numbers = {checked_name(name): k for name, k in {**(by_name or {}), **named}.items()}
        if most is None and not numbers:
            raise GraphError("a maximum of parents is needed; write MaxParents(3) or MaxParents({'age': 0})")
        self._hold(
            max_parents=None if most is None else size_in(most, "every variable"),
            max_parents_of=tuple((name, size_in(k, show(name))) for name, k in sorted(numbers.items())),
        )


class Candidates(Constraints):
    """For some children, the only parents that they may have; a child with an empty list has none.

    >>> Candidates({"xray": ["tub", "lung"], "age": []})
    Candidates({'age': [], 'xray': ['lung', 'tub']})
    """

    def __init__(self, parents: Mapping[str, Iterable[str]]) -> None:
        if not isinstance(parents, Mapping):
            raise GraphError(f"candidates are a mapping from a child to a list of parents, not {show(parents)}")
        lists = {checked_name(c): names_in(names, f"the list of candidates of {show(c)}") for c, names in parents.items()}
        for child, names in lists.items():
            all_nodes([], [(name, child) for name in names])
        self._hold(candidates=tuple(sorted(lists.items())))


class Adjacent(Constraints):
    """An edge between the two of each pair, in either direction.

    >>> Adjacent(("b", "a")).check("a -> c <- b")
    ["'a' and 'b' must be adjacent, but there is no edge between them"]
    """

    def __init__(self, *pairs: Any) -> None:
        self._hold(adjacent=tuple(sorted({(min(pair), max(pair)) for pair in pairs_in(pairs)})))


class NotAncestor(Constraints):
    """No directed path from a to b, for each pair (a, b).

    >>> NotAncestor(("a", "b")) + Require("a -> c -> b")
    Traceback (most recent call last):
    suffice.errors.GraphError: 'a' must not be an ancestor of 'b', but edges that must be there lead to it: a -> c -> b
    """

    def __init__(self, *pairs: Any) -> None:
        self._hold(not_ancestor=pairs_in(pairs))


def _spell(c: Constraints) -> Iterator[str]:
    """Each kind of constraint as it would be written."""
    if c.forbidden:
        yield f"Forbid({listing(c.forbidden, 12)})"
    if c.required:
        yield f"Require({listing(c.required, 12)})"
    for tiers, within in c.tiers:
        lists = ", ".join(f"[{listing(tier, 12)}]" for tier in tiers)
        yield f"Tiers({lists}{'' if within else ', within=False'})"
    if c.max_parents is not None or c.max_parents_of:
        named = ", ".join(f"{name!r}: {most}" for name, most in c.max_parents_of)
        every = "" if c.max_parents is None else str(c.max_parents)
        yield f"MaxParents({', '.join(filter(None, [every, named and f'{{{named}}}']))})"
    if c.candidates:
        lists = ", ".join(f"{child!r}: [{listing(parents, 12)}]" for child, parents in c.candidates)
        yield f"Candidates({{{lists}}})"
    if c.adjacent:
        yield f"Adjacent({listing(c.adjacent, 12)})"
    if c.not_ancestor:
        yield f"NotAncestor({listing(c.not_ancestor, 12)})"


def _cells(edges: Iterable[Edge], number: Mapping[str, int]) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """The cells [child, parent] of edges in a matrix."""
    flat = _numbers(joined.from_iterable(edges), number)
    return flat[1::2], flat[::2]


def _numbers(names: Iterable[str], number: Mapping[str, int]) -> npt.NDArray[np.intp]:
    return np.fromiter(map(number.__getitem__, names), np.intp)


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
    for line, text in enumerate(tier_lines(path), 1):
        if not text.strip() or text.lstrip().startswith("#"):
            continue
        tier = list(tier_names(text, path, line))
        for name in tier:
            if name in seen:
                where = f"in line {seen[name]} too" if seen[name] < line else "twice in this line"
                raise FormatError(f"{show(name)} is {where}, but a name is in one tier only", path=path, line=line)
            seen[name] = line
        tiers.append(tier)
    if not tiers:
        raise FormatError("there are no tiers in this file: each line should hold the names of one, as in 'age, sex'", path=path)
    return Tiers(*tiers, within=within)
