"""A problem of search: the variables in the order of their names, their data, the score, the rules and the budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Bools
from suffice.basis.iteration import Progress
from suffice.basis.registry import Named
from suffice.basis.variables import Variable
from suffice.engines.data import Data
from suffice.errors import FitError, GraphError
from suffice.errors.remedies import FAMILIES, Remedy
from suffice.families import family_of, has_family
from suffice.graphs import Cpdag, Dag
from suffice.graphs.directed import topological_order
from suffice.graphs.paths import class_edges, extension
from suffice.statistics import Statistics
from suffice.structure.rules import Parents, Rules
from suffice.structure.scoring.local_scores import ScoreSource
from suffice.structure.scoring.regression_scores import RegressionScores
from suffice.structure.scoring.score_sources import LocalScores


class Outcome(NamedTuple):
    """What a method of search returns: each node's parents by number.

    `bound`: no graph that keeps the rules scores more, None where nothing is known; `dag` and `cpdag` instead of `parents` where
    the method learns an equivalence class without a score (PC); `details`: what else it has to tell (the tests of PC);
    `finished`: False when it was stopped and took its best so far itself.
    """

    parents: list[Parents]
    bound: float | None = None
    cpdag: Any = None
    details: Any = None
    finished: bool = True


def is_directed(method: Any) -> bool:
    """Whether the graphs that a method finds have directions."""
    return bool(getattr(method, "directed", True))


@dataclass
class Problem:
    """All that a method sees. It works in numbers: variable i is `names[i]`, and names are sorted."""

    data: Data | Statistics
    variables: tuple[Variable, ...]
    score: Any
    rules: Rules
    seed: int = 0
    threads: int | None = None
    memory_limit: float | None = None
    progress: Progress[Any] = field(default_factory=lambda: Progress("searching"))
    constraints: Any = None
    """What the rules were made from, for explanations by name."""
    lags: Mapping[str, int] | None = None
    """Of steps of sequences: the variables, and how far back each is looked at; the other names are these in the past."""
    families: Mapping[str, Any] = field(default_factory=dict)
    """The families of the variables that are regressions,"""
    regressions: dict[int, Any] = field(init=False)
    """and the same by number."""
    n: int = field(init=False)
    n_open: int = field(init=False)
    """How many variables may have parents."""
    names: tuple[str, ...] = field(init=False)
    number: dict[str, int] = field(init=False)
    """The number of each name."""
    given: frozenset[int] = field(init=False)
    """The variables that lie in the past: they have no parents, and no score."""

    def __post_init__(self) -> None:
        self.names = tuple(v.name for v in self.variables)
        self.number = {name: i for i, name in enumerate(self.names)}
        self.given = frozenset(i for i, name in enumerate(self.names) if self.lags is not None and name not in self.lags)
        self.n, self.n_open = len(self.names), len(self.names) - len(self.given)
        self.regressions = {self.number[name]: family for name, family in self.families.items()}

    @cached_property
    def scores(self) -> ScoreSource:
        """The local scores of this data under this score."""
        scores: ScoreSource = LocalScores(
            self.data,
            self.variables,
            self.score,
            threads=self.threads,
            memory_limit=self.memory_limit,
            watch=lambda what="scoring parent sets": self.progress.check(what),
            given=self.given,
            memory=self.progress.memory,
        )
        return RegressionScores(scores, self.regressions) if self.families else scores

    def refuse_regressions(self, method: Any, why: str) -> None:
        """Refuse the regressions of a problem that a method cannot search with."""
        if self.families:
            raise FitError(
                f"{type(method).__name__} does not search with regressions ({FAMILIES}): {why}; use "
                f"{Remedy('Orders(), Exact(), HillClimb() or Tabu()', '--method orders, exact, hill-climb or tabu')}"
            )

    def under(self, **changes: Any) -> Problem:
        """The same problem under other rules or another clock, with what its scores know already."""
        other = replace(self, **changes)
        other.__dict__["scores"] = self.scores
        return other

    def dag(self, parents: list[Parents]) -> Dag:
        """The graph of these parents, by name."""
        return Dag({self.names[i]: [self.names[p] for p in chosen] for i, chosen in enumerate(parents)})

    def parents(self, dag: Dag) -> list[Parents]:
        """The parents of each node in a graph, by number."""
        return [tuple(sorted(self.number[p] for p in dag.parents(name))) for name in self.names]

    def rules_of(self, method: Any) -> Rules:
        """The rules with the method's own maximum of parents."""
        most = method.most_parents(self.n) if hasattr(method, "most_parents") else getattr(method, "max_parents", None)
        return self.rules.cap(most if isinstance(most, int) else None)

    def fixed_by(self, method: Any) -> Bools:
        """[child, parent]: arrows that the rules leave no other direction, and those out of nodes that a method begins with."""
        rules, roots = self.rules_of(method), [getattr(method, option, None) for option in ("root", "target")]
        return np.asarray(rules.required | ~rules.allowed.T | np.array([name in roots for name in self.names], bool))

    def class_of(self, parents: Sequence[Parents]) -> Cpdag:
        """The equivalence class of a graph; an edge whose reverse has no family keeps its direction."""
        above, names = dict(enumerate(parents)), self.names
        one_way = {(c, p) for c, ps in above.items() for p in ps if self.is_one_way(p, c)}
        arrows, lines = class_edges(topological_order(above), above, one_way)
        return Cpdag._of_known(names, [(names[a], names[b]) for a, b in arrows], [(names[a], names[b]) for a, b in lines])

    def representative(self, parents: Sequence[Parents], method: Any) -> tuple[tuple[Parents, ...], float]:
        """The graph that stands for the class, and its score: always the same one, whichever member a search arrived at.

        Of the members whose edges the rules allow, the extension by Dor & Tarsi (1992); what the method was told to begin with
        stays on top. The graph found is kept when that member scores less (K2 is not score equivalent) or has more parents
        somewhere than the rules allow.
        """
        score, above, one_way = self.scores.total(parents), dict(enumerate(parents)), self.fixed_by(method)
        one_way[list(self.regressions)] = one_way[:, list(self.regressions)] = True
        fixed = {(c, p) for c, ps in above.items() for p in ps if one_way[c, p]}
        try:
            found = extension(range(self.n), *class_edges(topological_order(above), above, fixed))
        except GraphError:  # two arrows that the rules fix may leave Meek's rules a class without an extension
            return tuple(parents), score
        other = tuple(tuple(found[i]) for i in range(self.n))
        other_score, constraints = self.scores.total(other), self.constraints
        kept = self.rules_of(method).permits(other) and (constraints is None or not constraints.check(self.dag(list(other))))
        if other_score < score - self.scores.tie(score) or not kept:
            return tuple(parents), score
        return other, other_score

    def has_family(self, child: int, parents: Parents) -> bool:
        if parents and child in self.given:
            return False
        return child in self.regressions or has_family(self.variables[child], [self.variables[p] for p in parents])

    def is_one_way(self, parent: int, child: int) -> bool:
        """Whether an edge the other way round does not exist, or makes another model of it: one end is a regression."""
        if parent in self.given or not self.regressions.keys().isdisjoint((parent, child)):
            return True
        return not has_family(self.variables[parent], [self.variables[child]])

    def n_parameters(self, child: int, parents: Parents) -> int:
        """How many parameters a family has."""
        if child in self.given:
            return 0
        variable, above = self.variables[child], [self.variables[p] for p in parents]
        family: Any = self.regressions.get(child) or family_of(variable, above)
        return int(family.n_parameters(variable, above))


class Method(Named):
    """A method of structure search: a frozen dataclass of options, which is found by its `word` if it has one.

    `run` gives an `Outcome`, or another value with `finished` and `to_found`, which says what `search` returns of it: so does
    that of a `GraphMethod`, whose edges have no direction.
    """

    listed_in = "methods"

    def run(self, problem: Problem) -> Any:
        raise NotImplementedError


def check_number(name: str, value: object, least: int, *, optional: bool = False) -> None:
    """Refuse an option that is no whole number of at least so much, nor None where it may be left open."""
    if optional and value is None:
        return
    if not isinstance(value, (int, np.integer)) or isinstance(value, bool) or value < least:
        raise FitError(f"{name} must be a whole number of at least {least}, not {value!r}")


def check_has(value: Any, member: str, what: str) -> Any:
    """The value, an object with this member; a class, or what lacks it, is refused by saying what is expected."""
    if isinstance(value, type) or not hasattr(value, member):
        raise FitError(f"{what}, not {value!r}")
    return value
