"""Parameter sharing: several nodes whose distributions have one parameter set, so that their statistics add.

    p(x₁ | u₁) = p(x₂ | u₂) = … = p(x | u),   seen = Σᵢ seenᵢ,   and the prior imagines its rows once

Tied nodes have as many parents, of the same kinds, which correspond by position. Each keeps a distribution of its own, under its
own names, with equal numbers; what it has `seen` is the sum. Koller & Friedman 2009, Probabilistic Graphical Models, p. 754.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, ClassVar

from suffice.errors import FitError, StatisticsError, listing, nearest, note
from suffice.errors.remedies import FAMILIES, Remedy, argument, declaration
from suffice.families import family_of
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Statistic, prior_of
from suffice.graphs import Dag
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.counts import common_variable
from suffice.variables import Finite, Variable

SHARED = argument("shared")


@dataclass(frozen=True)
class Tie:
    """Nodes that share their parameters, each with its parents: `families` has (child, *parents), in the order of the nodes.

    >>> Tie((("x2", "x1"), ("x3", "x2"))).nodes
    ('x2', 'x3')
    """

    families: tuple[tuple[str, ...], ...]

    @property
    def nodes(self) -> tuple[str, ...]:
        return tuple(family[0] for family in self.families)

    def family(self, node: str) -> tuple[str, ...]:
        return self.families[self.nodes.index(node)]

    @property
    def columns(self) -> Iterator[tuple[str, ...]]:
        """The names that correspond: the nodes, their first parents, their second ones, …"""
        return zip(*self.families, strict=True)

    def rename(self, statistic: Any, source: str, target: str) -> Any:
        """What was said of one node and its parents, said of another and its own."""
        names = dict(zip(self.family(source), self.family(target), strict=True))
        return statistic if source == target else _rename_statistic(statistic, names)

    def only(self, nodes: Iterable[str]) -> Tie:
        """The tie of some of its nodes."""
        kept = set(nodes)
        return Tie(tuple(family for family in self.families if family[0] in kept))


def shared_in(dag: Dag, shared: Any) -> tuple[Dag, tuple[Tie, ...]]:
    """The ties that a user asks for, and the graph with the parents of tied nodes in the order in which they correspond.

    A group is a list of nodes, whose parents correspond as they are declared in the graph, or {node: its parents in order}.

    >>> dag, (tie,) = shared_in(Dag("a -> x; b -> x; c -> y; d -> y"), [{"x": ["a", "b"], "y": ["d", "c"]}])
    >>> tie.families, dag.parents("y")
    ((('x', 'a', 'b'), ('y', 'd', 'c')), ('d', 'c'))
    """
    groups = [_group(group, dag) for group in _groups(shared)]
    seen: set[str] = set()
    for group in groups:
        for node in group:
            if node in seen:
                raise FitError(f"{node!r} is in two groups of {SHARED}: nodes that share their parameters belong into one")
        seen |= set(group)
    orders = {node: parents for group in groups for node, parents in group.items()}
    if any(dag.parents(node) != parents for node, parents in orders.items()):
        dag = Dag({n: orders.get(n, dag.parents(n)) for n in dag.nodes})
    # in the order of the graph, so that nothing depends on the order in which the groups were written
    ties = [Tie(tuple((n, *dag.parents(n)) for n in dag.nodes if n in group)) for group in groups]
    for first, *others in (tie.families for tie in ties):
        for family in (f for f in others if len(f) != len(first)):
            raise FitError(
                f"{first[0]!r} has {len(first) - 1} parents and {family[0]!r} has {len(family) - 1}: nodes that share their "
                "parameters have as many"
            )
    return dag, tuple(sorted(ties, key=lambda tie: tie.nodes))


def _groups(shared: Any) -> Iterable[Any]:
    if shared is None:
        return ()
    wrong = isinstance(shared, (str, Mapping)) or not isinstance(shared, Iterable)
    groups = () if wrong else tuple(shared)
    if wrong or any(isinstance(group, str) for group in groups):
        raise FitError(f"shared is a list of groups of nodes, {GROUPS}, not {shared!r}")
    return groups


def _group(group: Any, dag: Dag) -> dict[str, tuple[str, ...]]:
    """A group as nodes with their parents in order."""
    if not isinstance(group, Iterable):
        raise FitError(f"a group of {SHARED} is a list of nodes, ('x1', 'x2'), not {group!r}")
    names = list(group)
    for name in names:
        if name not in dag:
            raise FitError(f"{SHARED} names {name!r}, which is not in the graph{nearest(str(name), dag.nodes)}")
        if names.count(name) > 1:
            raise FitError(f"{SHARED} names {name!r} twice in one group")
    if len(names) < 2:
        raise FitError(f"a group of {SHARED} has at least two nodes, not {names!r}: a node by itself shares nothing")
    return {name: _order(name, group[name], dag) if isinstance(group, Mapping) else dag.parents(name) for name in names}


def _order(name: str, parents: Any, dag: Dag) -> tuple[str, ...]:
    order = (parents,) if isinstance(parents, str) else tuple(parents) if isinstance(parents, Iterable) else (parents,)
    if sorted(map(str, order)) != sorted(dag.parents(name)):
        own = listing(dag.parents(name)) or "no parents"
        raise FitError(f"{SHARED} gives {name!r} the parents {listing(order) or 'none'}, but in the graph it has {own}")
    return order


def check_families(ties: Iterable[Tie], families: Mapping[str, Any] | None) -> None:
    """Refuse ties of nodes whose families differ; an offset or trials are those of each node."""
    known = families or {}
    for tie in ties:
        named = [node for node in tie.nodes if node in known and known[node].iterative]
        for node in tie.nodes if named else ():
            first = named[0]
            names = dict(zip(tie.family(first)[1:], tie.family(node)[1:], strict=True))
            own, wanted = known.get(node), known[first].rename(names)
            if own != wanted:
                has = "no family of its own" if own is None else f"the family {own!r}"
                raise FitError(
                    f"{first!r} and {node!r} are to share their parameters, but {first!r} has the family {known[first]!r} and "
                    f"{node!r} has {has}: name one for all of them, or leave it out of {SHARED}, or of {FAMILIES}"
                )


def linked_names(ties: Iterable[Tie]) -> list[tuple[str, ...]]:
    """The names that must be of one shape: those that correspond in a tie, and what those correspond to in another.

    >>> linked_names([Tie((("x2", "x1"), ("x3", "x2")))])
    [('x1', 'x2', 'x3')]
    """
    classes: list[set[str]] = []
    for tie in ties:
        for names in tie.columns:
            near = [c for c in classes if not c.isdisjoint(names)]
            classes = [*(c for c in classes if c not in near), set(names).union(*near)]
    return [tuple(sorted(c)) for c in classes]


def alike(ties: Iterable[Tie], variables: Mapping[str, Variable]) -> dict[str, Finite]:
    """The variables whose states must change so that tied nodes are of one shape; what cannot be of one is refused.

    Inferred states may lack some of another node's, and a note says which they take on; if each of two nodes has states that the
    other lacks, they may be two spellings, or two things. Declared states must be the same, in the same order.

    >>> known = {n: Finite(n, s, inferred=True) for n, s in {"x": ["a", "b"], "y": ["a", "b", "c"]}.items()}
    >>> alike([Tie((("x",), ("y",)))], known)["x"].states
    ('a', 'b', 'c')
    """
    result: dict[str, Finite] = {}
    for names in linked_names(ties):
        common = variables[names[0]]
        for name in names[1:]:
            common = _common(common, variables[name], [variables[n] for n in names])
        if isinstance(common, Finite):
            _check_united(common, [v for n in names if isinstance(v := variables[n], Finite)])
            result |= {n: replace(common, name=n) for n in names}
    return {n: v for n, v in result.items() if v != variables[n]}


GROUPS = Remedy("shared=[('x1', 'x2'), ...]", "--shared x1,x2")


def _alike(one: str, two: str) -> Remedy:
    """The declaration of two columns with the same states."""
    options = (declaration(name, "[...]").option for name in (one, two))
    return Remedy(f"scan(data, variables={{{one!r}: [...], {two!r}: [...]}})", " ".join(options))


def _check_united(common: Finite, parts: Sequence[Finite]) -> None:
    """Refuse states that no node has all of, lest two spellings of one state become two states; say who takes on which."""
    widest = max(parts, key=lambda v: v.n_states)
    if widest.n_states < common.n_states:
        other = next(v for v in parts if not set(v.states) <= set(widest.states))
        first, second = sorted([widest, other], key=lambda v: v.name)
        raise FitError(
            f"{first.name!r} has {_only(first, second)}, which {second.name!r} has not, and {second.name!r} has "
            f"{_only(second, first)}, which {first.name!r} has not: tied or pooled nodes, and their parents, have the same "
            f"states; if all of these are meant, declare them alike, {_alike(first.name, second.name)}"
        )
    short = [v for v in parts if v.n_states < common.n_states]
    if short:
        added = [f"{v.name!r} takes on {_only(common, v)}" for v in short]
        note(
            f"tied or pooled nodes, and their parents, have the same states: {listing(added, style='str')}, "
            f"which {widest.name!r} has"
        )


def _only(a: Finite, b: Finite) -> str:
    """The states of one variable that another has not."""
    return listing([s for s in a.states if s not in b.states])


def _common(a: Variable, b: Variable, together: Sequence[Variable]) -> Variable:
    """The variable, under the first name, that two of several can both be."""
    if type(a) is not type(b):
        raise FitError(
            f"nodes that share their parameters, and their parents, are of the same kind, but {a.name!r} is "
            f"{_kind(a)} and {b.name!r} is {_kind(b)}"
        )
    if not isinstance(a, Finite) or not isinstance(b, Finite):
        return a
    other = replace(b, name=a.name)
    if a.cuts != b.cuts:
        raise FitError(f"{a.name!r} and {b.name!r} are cut into intervals at other points: to share parameters cut them alike")
    if set(a.states) == set(b.states) and a.states != b.states and not (a.inferred and b.inferred):
        raise FitError(
            f"{b.name!r} has the states of {a.name!r} in another order, {listing(b.states)}: to share parameters declare "
            "them alike"
        )
    try:
        return common_variable(a, other)
    except StatisticsError:
        state = sorted(set(a.states) ^ set(b.states))[0]
        owners = [v.name for v in together if isinstance(v, Finite) and state in v.states]
        lacking = [v.name for v in (a, b) if state not in v.states]
        raise FitError(
            f"{owners[0]!r} has the state {state!r}, which {lacking[0]!r} has not: nodes that share their parameters, and their "
            f"parents, have the same states; declare them with {Remedy('variables=', '--finite')}"
        ) from None


def _kind(variable: Variable) -> str:
    return {"Finite": "finite", "Real": "real", "Count": "a count", "Distributed": repr(variable)}[type(variable).__name__]


def _rename_statistic(statistic: Any, names: Mapping[str, str]) -> Any:
    if not isinstance(statistic, (Counts, Moments)):
        return statistic  # a belief that is not of names
    finite = tuple(replace(v, name=names[v.name]) for v in statistic.variables)
    if isinstance(statistic, Counts):
        return replace(statistic, variables=finite)
    reals = tuple(names[r] for r in statistic.reals)
    derived = tuple(replace(d, column=names[d.column]) for d in statistic.derived)
    background = None if statistic.background is None else _rename_statistic(statistic.background, names)
    return replace(statistic, variables=finite, reals=reals, derived=derived, background=background)


def agreeing(statistics: Statistics, ties: Sequence[Tie]) -> Statistics:
    """The same statistics, in which tied nodes are of one shape."""
    known = statistics.variables
    by = alike([tie for tie in ties if all(n in known for family in tie.families for n in family)], known)
    return statistics.recoded(by) if by else statistics


def pool_statistics(tie: Tie, statistics: Statistics, variables: Mapping[str, Variable]) -> Statistic:
    """The statistics of all nodes of a tie together, under the names of the first."""
    parts = []
    for child, *parents in tie.families:
        node = variables[child], [variables[p] for p in parents]
        parts.append(tie.rename(statistics.answer(family_of(*node).needs(*node)), child, tie.nodes[0]))
    total: Statistic = reduce(add, parts)
    return total


def seen_together(ties: Iterable[Tie], statistics: Statistics, variables: Mapping[str, Variable]) -> dict[str, Statistic]:
    """What each tied node has seen: the statistics of its whole tie, under its own names."""
    result: dict[str, Statistic] = {}
    for tie in ties:
        common = pool_statistics(tie, statistics, variables)
        result |= {node: tie.rename(common, tie.nodes[0], node) for node in tie.nodes}
    return result


@dataclass(frozen=True)
class TiedPrior(Prior):
    """A prior that says the same of tied nodes: what it imagines of the first, with defaults from the data of all of them.

    `own` has the prior of each tie, bound to the pooled statistics, and `prior` is that of all other nodes.

    >>> from suffice import Dirichlet
    >>> TiedPrior(Dirichlet(1), ()).prior
    Dirichlet(alpha=1)
    """

    types = ("Tied",)

    prior: Any
    ties: tuple[Tie, ...]
    own: tuple[Any, ...] = ()

    chooses: ClassVar[bool] = True

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> TiedPrior:
        own = tuple(self.prior.bind(variables, _of_tie(tie, statistics, variables)) for tie in self.ties)
        return replace(self, prior=self.prior.bind(variables, statistics), own=own)

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Any], statistics: Statistics) -> TiedPrior:
        """The same, with the numbers that the prior leaves free chosen by these nodes, of each tie the first."""
        return replace(self, prior=self.prior.choose(variables, nodes, statistics))

    def to_dict(self) -> dict[str, Any]:
        families = [[list(family) for family in tie.families] for tie in self.ties]
        return self._head() | {"prior": self.prior.to_dict(), "families": families, "own": [p.to_dict() for p in self.own]}

    @classmethod
    def from_dict(cls, d: Mapping[str, Any]) -> Prior:
        ties = tuple(Tie(tuple(tuple(map(str, family)) for family in families)) for families in d["families"])
        return TiedPrior(prior_of(d["prior"]), ties, tuple(map(prior_of, d["own"])))

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Any:
        """What the prior says of the first node of a tie, under the names of this one; `seen` are the pooled statistics."""
        places = [i for i, tie in enumerate(self.ties) if child.name in tie.nodes]
        if not places or not self.own:
            return self.prior.imagine(child, parents, seen)
        tie, own = self.ties[places[0]], self.own[places[0]]
        first, *others = (replace(v, name=name) for v, name in zip((child, *parents), tie.families[0], strict=True))
        said = own.imagine(first, others, seen and tie.rename(seen, child.name, tie.nodes[0]))
        return None if said is None else tie.rename(said, tie.nodes[0], child.name)


def _of_tie(tie: Tie, statistics: Statistics, variables: Mapping[str, Variable]) -> Statistics:
    """The data that the prior of a tie takes its defaults from: for the first node and its parents, that of all nodes."""
    others = statistics.marginal(set(statistics.variables) - set(tie.families[0]))
    try:
        entries = [pool_statistics(tie, statistics, variables)]
    except StatisticsError:  # incomplete rows: there are only statistics of single columns
        entries = [_column(names, statistics) for names in tie.columns if not set(names).isdisjoint(statistics.variables)]
    return Statistics([*others, *entries], statistics.weight, statistics.variables.values())


def _column(names: Sequence[str], statistics: Statistics) -> Statistic:
    """The statistics of columns that correspond, each by itself, under the name of the first."""
    known = [n for n in names if n in statistics.variables]
    finite = isinstance(statistics.variables[known[0]], Finite)
    parts = [_rename_statistic(statistics.counts([n]) if finite else statistics.moments((), [n]), {n: names[0]}) for n in known]
    total: Statistic = reduce(add, parts)
    return total


def tied_prior(prior: Prior, ties: tuple[Tie, ...]) -> Prior:
    """The prior of a network with ties."""
    plain: Prior = prior.prior if isinstance(prior, TiedPrior) else prior
    return TiedPrior(plain, ties) if ties else plain


def shared_in_words(ties: Iterable[Tie]) -> str:
    """The ties as the end of a sentence.

    >>> shared_in_words([Tie((("x", "u"), ("y", "u")))])
    "; 'x', 'y' share their parameters"
    """
    return "".join(f"; {listing(tie.nodes)} share their parameters" for tie in ties)
