"""Parameter sharing: several nodes whose distributions have one parameter set, so that their statistics add.

    p(x₁ | u₁) = p(x₂ | u₂) = … = p(x | u),   seen = Σᵢ seenᵢ,   and the prior imagines its rows once

Tied nodes have as many parents, of the same kinds, which correspond by position. Each keeps a distribution of its own, under its
own names, with equal numbers; what it has `seen` is the sum. Koller & Friedman 2009, Probabilistic Graphical Models, p. 754.

A regression that they share is one set of coefficients, of the rows of all of them, one below the other: a pass over the rows
sees each block once for each node, under the names of the first, and its sums add, as those of blocks do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np

from suffice.basis.variables import Finite, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, add_up
from suffice.errors import FitError, StatisticsError, listing, nearest, note
from suffice.errors.remedies import FAMILIES, Remedy, argument, declaration
from suffice.families import family_of
from suffice.families.design import DistinctRows, Pass
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Array, Columns, Cpd, Statistic, prior_of
from suffice.families.regressions.linear_moments import fitted_line
from suffice.graphs import Dag
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.counts import common_variable

SHARED, GROUPS = argument("shared"), Remedy("shared=[('x1', 'x2'), ...]", "--shared x1,x2")


@dataclass(frozen=True)
class Tie:
    """Nodes that share their parameters, each with its parents: `families` has (child, *parents), in the order of the nodes."""

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
    wrong = isinstance(shared, (str, Mapping)) or not isinstance(shared, (Iterable, type(None)))
    given = () if wrong or shared is None else tuple(shared)
    if wrong or any(isinstance(group, str) for group in given):
        raise FitError(f"shared is a list of groups of nodes, {GROUPS}, not {shared!r}")
    groups, orders = [_group(group, dag) for group in given], dict[str, tuple[str, ...]]()
    for group in groups:
        if again := [node for node in group if node in orders]:
            raise FitError(f"{again[0]!r} is in two groups of {SHARED}: nodes that share their parameters belong into one")
        orders |= group
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
    if not isinstance(group, Mapping):
        return {name: dag.parents(name) for name in names}
    orders: dict[str, tuple[str, ...]] = {}
    for name, given in group.items():
        orders[name] = (given,) if isinstance(given, str) or not isinstance(given, Iterable) else tuple(given)
        if sorted(map(str, orders[name])) != sorted(dag.parents(name)):
            own = listing(dag.parents(name)) or "no parents"
            named = listing(orders[name]) or "none"
            raise FitError(f"{SHARED} gives {name!r} the parents {named}, but in the graph it has {own}")
    return orders


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
    """The names that must be of one shape: those that correspond in a tie, and what those correspond to in another."""
    classes: list[set[str]] = []
    for tie in ties:
        for names in tie.columns:
            near = [c for c in classes if not c.isdisjoint(names)]
            classes = [*(c for c in classes if c not in near), set(names).union(*near)]
    return [tuple(sorted(c)) for c in classes]


def variables_of_one_shape(ties: Iterable[Tie], variables: Mapping[str, Variable]) -> dict[str, Finite]:
    """The variables whose states must change so that tied nodes are of one shape; what cannot be of one is refused. Inferred
    states may lack some of another node's, and a note says which they take on; if each of two nodes has states that the other
    lacks, they may be two spellings, or two things. Declared states must be the same, in the same order."""
    result: dict[str, Finite] = {}
    for names in linked_names(ties):
        common = variables[names[0]]
        for name in names[1:]:
            common = _common(common, variables[name], [variables[n] for n in names])
        if isinstance(common, Finite):
            _check_united(common, [v for n in names if isinstance(v := variables[n], Finite)])
            result |= {n: replace(common, name=n) for n in names}
    return {n: v for n, v in result.items() if v != variables[n]}


def _check_united(common: Finite, parts: Sequence[Finite]) -> None:
    """Refuse states that no node has all of, lest two spellings of one state become two states; say who takes on which."""
    widest = max(parts, key=lambda v: v.n_states)
    if widest.n_states < common.n_states:
        other = next(v for v in parts if not set(v.states) <= set(widest.states))
        first, second = sorted([widest, other], key=lambda v: v.name)
        options = (declaration(v.name, "[...]").option for v in (first, second))
        declared = Remedy(f"scan(data, variables={{{first.name!r}: [...], {second.name!r}: [...]}})", " ".join(options))
        raise FitError(
            f"{first.name!r} has {_only(first, second)}, which {second.name!r} has not, and {second.name!r} has "
            f"{_only(second, first)}, which {first.name!r} has not: tied or pooled nodes, and their parents, have the same "
            f"states; if all of these are meant, declare them alike, {declared}"
        )
    if short := [v for v in parts if v.n_states < common.n_states]:
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
        words = {"Finite": "finite", "Real": "real", "Count": "a count"}
        said = [f"{v.name!r} is {words.get(type(v).__name__, repr(v))}" for v in (a, b)]
        raise FitError(f"nodes that share their parameters, and their parents, are of the same kind, but {' and '.join(said)}")
    if not isinstance(a, Finite) or not isinstance(b, Finite):
        return a
    if a.cuts != b.cuts:
        raise FitError(f"{a.name!r} and {b.name!r} are cut into intervals at other points: to share parameters cut them alike")
    if set(a.states) == set(b.states) and a.states != b.states and not (a.inferred and b.inferred):
        raise FitError(
            f"{b.name!r} has the states of {a.name!r} in another order, {listing(b.states)}: to share parameters declare "
            "them alike"
        )
    try:
        return common_variable(a, replace(b, name=a.name))
    except StatisticsError:
        state = sorted(set(a.states) ^ set(b.states))[0]
        owners = [v.name for v in together if isinstance(v, Finite) and state in v.states]
        lacking = [v.name for v in (a, b) if state not in v.states]
        raise FitError(
            f"{owners[0]!r} has the state {state!r}, which {lacking[0]!r} has not: nodes that share their parameters, and their "
            f"parents, have the same states; declare them with {Remedy('variables=', '--finite')}"
        ) from None


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
    by = variables_of_one_shape([tie for tie in ties if all(n in known for family in tie.families for n in family)], known)
    return statistics.recoded(by) if by else statistics


def pool_statistics(tie: Tie, statistics: Statistics, variables: Mapping[str, Variable]) -> Statistic:
    """The statistics of all nodes of a tie together, under the names of the first."""
    parts: list[Statistic] = []
    for child, *parents in tie.families:
        node = variables[child], [variables[p] for p in parents]
        parts.append(tie.rename(statistics.answer(family_of(*node).needs(*node)), child, tie.nodes[0]))
    return reduce(add, parts)


def seen_together(ties: Iterable[Tie], statistics: Statistics, variables: Mapping[str, Variable]) -> dict[str, Statistic]:
    """What each tied node has seen: the statistics of its whole tie, under its own names."""
    result: dict[str, Statistic] = {}
    for tie in ties:
        common = pool_statistics(tie, statistics, variables)
        result |= {node: tie.rename(common, tie.nodes[0], node) for node in tie.nodes}
    return result


@dataclass(frozen=True)
class TiedPrior(Prior):
    """A prior that says the same of tied nodes: what it imagines of the first, with defaults from the data of all of them. `own`
    has the prior of each tie, bound to the pooled statistics, and `prior` is that of all other nodes."""

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
        entries = []
        for names in tie.columns:
            if known := [n for n in names if n in statistics.variables]:
                finite = isinstance(statistics.variables[known[0]], Finite)
                parts = [statistics.counts([n]) if finite else statistics.moments((), [n]) for n in known]
                renamed = [_rename_statistic(part, {n: names[0]}) for n, part in zip(known, parts, strict=True)]
                entries.append(reduce(add, renamed))
    return Statistics([*others, *entries], statistics.weight, statistics.variables.values())


def tied_prior(prior: Prior, ties: tuple[Tie, ...]) -> Prior:
    """The prior of a network with ties."""
    plain: Prior = prior.prior if isinstance(prior, TiedPrior) else prior
    return TiedPrior(plain, ties) if ties else plain


def shared_in_words(ties: Iterable[Tie]) -> str:
    """The ties as the end of a sentence."""
    return "".join(f"; {listing(tie.nodes)} share their parameters" for tie in ties)


Nodes = Mapping[str, tuple[Variable, Sequence[Variable]]]
"""Nodes with their parents."""


@dataclass(frozen=True, eq=False)
class OverNodes(Step[Any]):
    """A step over the rows of each node of a tie, under the names of the first."""

    step: Step[Any]
    families: tuple[tuple[str, ...], ...]

    def of(self, block: Block) -> Any:
        named = (dict(zip(self.families[0], family, strict=True)) for family in self.families)
        columns = ({first: block.columns[name] for first, name in names.items()} for names in named)
        return reduce(add_up, (self.step.of(Block(own, block.weight, block.number)) for own in columns))


@dataclass(frozen=True, eq=False)
class StackedRows:
    """The rows of all nodes of a tie, one below the other: all that a regression asks of rows."""

    rows: Data
    tie: Tie

    @classmethod
    def of(cls, rows: Data, tie: Tie) -> StackedRows:
        """Those of rows with more columns."""
        return cls(rows.select(list(dict.fromkeys(n for own in tie.families for n in own))), tie)

    @property
    def n_rows(self) -> int:
        return self.rows.n_rows * len(self.tie.nodes)

    def fold(self, step: Step[Any], *, threads: int | None = None, what: str | None = None) -> Any:
        return self.rows.fold(OverNodes(step, self.tie.families), threads=threads, what=what)

    def stretches(self, n: int) -> Any:
        return self.rows.stretches(max(1, n // len(self.tie.nodes)))

    def of_rows(self, some: Any) -> StackedRows:
        return replace(self, rows=self.rows.of_rows(some))

    def log_likelihoods(self, cpds: Mapping[str, Cpd]) -> dict[str, float]:
        """Σ w ln p of the rows of each node."""
        return {n: float(self.rows.fold(Pass(log_likelihood, (cpd,)))) for n, cpd in cpds.items()}


def log_likelihood(cpd: Any, columns: Columns, weight: Array | None) -> float:
    """Σ w ln p of some rows."""
    logs = cpd.log_prob(columns)
    return float(logs.sum() if weight is None else np.sum(weight * logs))


def from_pooled(tie: Tie, nodes: Nodes, family: Any, seen: Statistics, ascend: Callable[[Any], Any]) -> dict[str, Cpd]:
    """The regression that the nodes of a tie share, from statistics that say all: moments of a linear one, else the contingency
    tables of finite variables, of whose rows `ascend` makes the estimate."""
    first = tie.nodes[0]
    own: dict[str, Any] = {n: seen.answer(family.needs(*nodes[n])) for n in tie.nodes}
    together: Any = reduce(add, [tie.rename(s, n, first) for n, s in own.items()])
    cpd = fitted_line(family, *nodes[first], together) if family.normal else ascend(DistinctRows(together))
    each = {n: cpd.rename(*nodes[n]) for n in tie.nodes}
    if family.normal:
        return with_shares(each, {n: c.closed_form().log_likelihood(own[n]) for n, c in each.items()})
    return with_shares(each, {n: DistinctRows(own[n]).fold(Pass(log_likelihood, (c,))) for n, c in each.items()})


def with_shares(cpds: Mapping[str, Any], log_likelihoods: Mapping[str, float]) -> dict[str, Cpd]:
    """The regression of each node, with the log-likelihood of its own rows; the rest of the fit is that of all."""
    return {n: replace(c, fitted=replace(c.fitted, log_likelihood=log_likelihoods[n])) for n, c in cpds.items()}
