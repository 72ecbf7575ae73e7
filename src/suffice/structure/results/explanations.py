"""What an explanation holds: the facts about a node or an edge as values, which print as sentences; among them why an edge that a
search found has its direction, in a few plain words, and the limit of the kind of model."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from suffice.basis.variables import Finite, Variable
from suffice.errors import listing, quantity
from suffice.errors.remedies import as_regression, declaration
from suffice.graphs.text import Edge, spelling
from suffice.structure.problem import Problem
from suffice.structure.rules import Parents

COMPELLED = "compelled"
"""Every graph of the same independences has it this way."""

EITHER = "either way"
"""The data cannot tell: an equivalent graph has it the other way, and nothing forbids that one."""

CONSTRAINED = "fixed by constraints"
"""An equivalent graph would have it the other way, but the constraints, or the method's, leave only this one."""

MODEL = "fixed by the kind of model"
"""The other way there is no family: a state cannot have a number for a parent."""

DISTINCT = "the other way is another model"
"""One of its ends is a regression: the two directions are different distributions, and the score tells them apart."""

TIME = "by time"
"""The parent lies in the past."""


def directions(problem: Problem, method: Any, parents: Sequence[Parents]) -> dict[Edge, str]:
    """Why each edge (parent, child) of a graph that a method found leads this way."""
    dag, names = problem.dag(list(parents)), problem.names
    pairs = [(p, c) for c, chosen in enumerate(parents) for p in chosen]
    kind = [(names[c], names[p]) for p, c in pairs if not problem.has_family(p, (c,))]
    distinct = [(names[c], names[p]) for p, c in pairs if problem.is_one_way(p, c)]
    one_way = problem.fixed_by(method)
    told = [(names[c], names[p]) for p, c in pairs if one_way[c, p]]
    past = {names[i] for i in problem.given}
    refusals = ((), kind, distinct, [*distinct, *told])
    itself, by_kind, by_model, by_rules = (set(dag.cpdag(refused).directed) for refused in refusals)

    def why(edge: Edge) -> str:
        if edge[0] in past:
            return TIME
        if edge[::-1] in kind:
            return MODEL
        if edge in itself:
            return COMPELLED
        if edge in by_kind:
            return MODEL
        return DISTINCT if edge in by_model else CONSTRAINED if edge in by_rules else EITHER

    return {(names[p], names[c]): why((names[p], names[c])) for p, c in sorted(pairs)}


def model_limit(variables: Iterable[Variable], regressions: Collection[str] = ()) -> str | None:
    """What is said before states and numbers are searched together: which directions there are, and how to have the others."""
    every = list(variables)
    laws = {v.name: v.law for v in every if not isinstance(v, Finite)}
    numbers = list(laws)
    states = [v.name for v in every if isinstance(v, Finite) and v.name not in regressions]
    if not numbers or not states:
        return None
    are = f"{listing(numbers)} {'is a number' if len(numbers) == 1 else 'are numbers'}"
    kinds = listing(dict.fromkeys(laws.values()), style="str")
    return (
        f"{are} beside states: an edge between them can only lead from the state to the number (conditional {kinds}), "
        f'whatever caused what; such a direction is "{MODEL}". To leave it open, let a state be a regression, which may have '
        f"numbers for parents: {as_regression(states[0])}; or cut numbers into intervals: {declaration(numbers[0], 'Bins(5)')}"
    )


TOLD = {
    TIME: "fixed by time: the past comes before the present",
    COMPELLED: "compelled: every equivalent graph has it this way",
    DISTINCT: f"{DISTINCT}: with a regression at one end they are different distributions, and the score tells them apart",
    CONSTRAINED: f"{CONSTRAINED}: without them, the data could not tell the direction",
}
"""What is said of a direction, by why it is so."""


@dataclass(frozen=True, repr=False)
class Explanation:
    """Facts about a node or an edge."""

    def title(self) -> str:
        raise NotImplementedError

    def lines(self) -> Iterable[tuple[str, str]]:
        """Each fact in words: (which, what)."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The facts by name, for JSON: a score of −inf (there is no estimate) is None."""
        facts: dict[str, Any] = _finite(asdict(self))
        return facts

    def __repr__(self) -> str:
        facts = list(self.lines())
        width = max((len(which) for which, _ in facts), default=0)
        return "\n".join([self.title(), *(f"  {which.ljust(width)}  {what}".rstrip() for which, what in facts)])

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"


@dataclass(frozen=True)
class Change:
    """Other parents for one or two nodes: their families' scores, what the graph gains, and why it may not be so.

    `likelihood` and `penalty` split the gain where the score is a penalised likelihood: gain = likelihood − penalty.
    """

    parents: dict[str, tuple[str, ...]]
    scores: dict[str, float]
    gain: float | None
    refused: str | None = None
    likelihood: float | None = None
    penalty: float | None = None

    @property
    def loss(self) -> float | None:
        return None if self.gain is None else -self.gain

    def families(self) -> str:
        return "; ".join(f"{family(x, ps)} {self.scores[x]:,.3f}" for x, ps in self.parents.items() if x in self.scores)

    def why(self) -> str:
        """The gain in words."""
        if self.gain is None:
            return ""
        if self.likelihood is None or not self.penalty or self.gain == -float("inf"):
            return _gains(self.gain)
        more = len(self.parents) == 1 and self.penalty > 0
        parts = f"explains {self.likelihood:,.3f} nats, costs {self.penalty:,.3f}" if more else ""
        return f"{parts}: {_gains(self.gain)}" if parts else _gains(self.gain)


@dataclass(frozen=True, repr=False)
class EdgePresent(Explanation):
    """An edge of the graph, and what would be without it."""

    parent: str
    child: str
    loss: float
    required: bool
    reversible: bool
    """Whether an equivalent graph has the edge the other way round."""
    removed: Change
    reversed: Change
    equivalent: Change | None
    """For a reversible edge: the nodes that change in the equivalent graph that has it the other way round."""
    replaced: Change | None
    """The best other parents of the child without this one."""
    n_sets: int
    """How many parent sets were looked at for that."""
    why: str = ""
    """Why it leads this way, as `found.directions` says."""
    number: str | None = None
    """The end of it that is a number, if one is."""

    def title(self) -> str:
        why = "; the constraints require it" if self.required else ""
        return f"{spell(self.parent)} -> {spell(self.child)} is in the graph{why}"

    def lines(self) -> Iterable[tuple[str, str]]:
        yield "without it", self.removed.why()
        yield "the other way", _change_in_words(self.reversed)
        yield "direction", self._direction()
        if self.replaced is None:
            yield "other parents", "none: it is required" if self.required else "there are none that it could have"
        else:
            shown = family(self.child, self.replaced.parents[self.child])
            yield "best other parents", f"{shown}: {_gains(self.replaced.gain)} (of {quantity(self.n_sets, 'set')})"

    def _direction(self) -> str:
        if self.why in TOLD:
            return TOLD[self.why]
        if self.why == MODEL:
            bins = f"variables={{{self.number!r}: Bins(5)}}" if self.number else "variables={name: Bins(5)}"
            word = "PoissonLog" if self.number == self.parent else "Logistic"
            ask = f"let {self.parent!r} be a regression, families={{{self.parent!r}: {word}()}}, or " if self.number else ""
            return (
                f"{MODEL}: a state cannot have a number for a parent, so that the data was not asked; "
                f"to ask it, {ask}cut numbers into intervals: {bins}"
            )
        gain = None if self.equivalent is None else self.equivalent.gain
        if gain is None or abs(gain) > 1e-6 * (1 + abs(self.loss)):
            return f"{EITHER}: a graph of the same independences has it the other way"
        along = " (other edges turn with it)" if self.equivalent is not None and len(self.equivalent.parents) > 2 else ""
        return f"{EITHER}: the data cannot tell the direction{along}"


@dataclass(frozen=True, repr=False)
class EdgeAbsent(Explanation):
    """Two nodes without an edge, and what each would do."""

    parent: str
    child: str
    forward: Change
    backward: Change
    swap: Change | None
    """When the child has as many parents as it may: the best graph with this parent in the place of another."""

    def title(self) -> str:
        return f"there is no edge between {spell(self.parent)} and {spell(self.child)}"

    def lines(self) -> Iterable[tuple[str, str]]:
        for (a, b), change in (((self.parent, self.child), self.forward), ((self.child, self.parent), self.backward)):
            yield f"{spell(a)} -> {spell(b)}", _change_in_words(change)
        if self.swap is not None:
            parents = self.swap.parents[self.child]
            yield "in a parent's place", f"{family(self.child, parents)}: {_gains(self.swap.gain)}"


@dataclass(frozen=True, repr=False)
class NodeExplained(Explanation):
    """A node: what each parent is worth, which other parents come next, and what it is worth to its children."""

    node: str
    parents: tuple[str, ...]
    score: float
    losses: dict[str, float]
    runners_up: tuple[Change, ...]
    n_sets: int
    complete: bool
    children: dict[str, float]
    past: bool = False
    """Whether it lies in the past, and so has no parents here."""

    def title(self) -> str:
        if self.past:
            return f"{spell(self.node)} lies in the past: it may be a parent, and has none"
        return f"{family(self.node, self.parents)}: score {self.score:,.3f}"

    def lines(self) -> Iterable[tuple[str, str]]:
        for p, loss in sorted(self.losses.items(), key=lambda x: (-x[1], x[0])):
            yield f"without {spell(p)}", _gains(-loss)
        for i, change in enumerate(self.runners_up):
            what = f"{family(self.node, change.parents[self.node])}: {_gains(change.gain)}"
            yield ("next best parents" if not i else ""), what
        looked = "all" if self.complete else "the nearest"
        if not self.past:
            yield "", f"({looked} {self.n_sets:,} other parent sets that keep the rest of the graph were looked at)"
        for c, loss in sorted(self.children.items(), key=lambda x: (-x[1], x[0])):
            yield f"child {spell(c)}", f"without this parent it {_gains(-loss)}"


@dataclass(frozen=True, repr=False)
class PairTested(Explanation):
    """Two nodes as independence tests see them."""

    parent: str
    child: str
    adjacent: bool
    direction: str
    given: tuple[str, ...] | None
    """The set given which they are independent; None when there is none, or it was not recorded."""
    p_value: float | None

    def title(self) -> str:
        between = "an edge" if self.adjacent else "no edge"
        return f"there is {between} between {spell(self.parent)} and {spell(self.child)}"

    def lines(self) -> Iterable[tuple[str, str]]:
        p = "" if self.p_value is None else f" (p = {self.p_value:.4g})"
        if self.adjacent:
            yield "tests", f"no set was found given which they are independent{p.replace('p =', 'the largest p =')}"
            yield "direction", self.direction
        elif self.given is None:
            yield "tests", f"they were found independent{p}"
        else:
            yield "tests", f"independent given {', '.join(map(spell, self.given)) or 'nothing'}{p}"


@dataclass(frozen=True, repr=False)
class NodeTested(Explanation):
    """A node and its edges, found by independence tests."""

    node: str
    edges: tuple[PairTested, ...]

    def title(self) -> str:
        return f"{spell(self.node)} has {len(self.edges)} edge{'s' * (len(self.edges) != 1)}"

    def lines(self) -> Iterable[tuple[str, str]]:
        for e in self.edges:
            other = e.child if e.parent == self.node else e.parent
            p = "" if e.p_value is None else f" (the largest p = {e.p_value:.4g})"
            yield spell(other), f"{e.direction}{p}"


def spell(name: str) -> str:
    """A name in a sentence: that of a column in the past needs no quotes."""
    variable, bracket, lag = name.partition("[-")
    return name if bracket and lag.endswith("]") and lag[:-1].isdigit() and spelling(variable) == variable else spelling(name)


def _finite(facts: Any) -> Any:
    if isinstance(facts, dict):
        return {k: _finite(v) for k, v in facts.items()}
    if isinstance(facts, (list, tuple)):
        return [_finite(v) for v in facts]
    return None if isinstance(facts, float) and not isfinite(facts) else facts


def _change_in_words(change: Change) -> str:
    if change.gain is None:
        return f"not possible: {change.refused}"
    families = f" ({change.families()})" if len(change.parents) > 1 else ""
    if change.refused:
        verb, rest = _gains(change.gain).split(" ", 1)
        would = f"would {'have' if verb == 'has' else verb.removesuffix('s')} {rest}"
        return f"not possible: {change.refused}; else it {would}{families}"
    kept = ": the search did not come to it" if change.gain > 5e-4 else ""
    return f"{change.why()}{kept}{families}"


def family(child: str, parents: Sequence[str]) -> str:
    """A family for a sentence."""
    return f"{spell(child)} | {', '.join(map(spell, parents))}" if parents else f"{spell(child)} | nothing"


def _gains(gain: float | None) -> str:
    if gain is None or gain == -float("inf"):
        return "has no score"
    if abs(gain) < 5e-4:
        return "scores the same"
    return f"gains {gain:,.3f}" if gain > 0 else f"loses {-gain:,.3f}"
