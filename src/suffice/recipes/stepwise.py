"""`Stepwise`: hierarchical log-linear models, one term at a time, by a score or by tests of the deviance.

A variable that only one generator g has can be summed out, p(x) = p(x_g) / p(x_g without it) · p(rest), which leaves g without it
(Graham's reduction); a decomposable model is reduced to nothing, and any other to a core. Where a generator s of the core parts
its variables, p(x) = Π p(parts with s) / p(x_s)^(parts − 1). So only prime parts are fitted by iteration, each once:

    ln L(model) = Σ ± e(g) + Σ ln L(prime part)        e(g) = Σ_x N(x_g) ln (N(x_g) / N)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Bools
from suffice.basis.libraries import sc
from suffice.basis.variables import Finite
from suffice.errors import FitError, GraphError, TooLarge, listing
from suffice.errors.remedies import Remedy
from suffice.graphs.paths import reach
from suffice.graphs.text import Edge
from suffice.learning.fit import fit
from suffice.learning.undirected.ipf import IPF, CliqueTree
from suffice.models.undirected.factor import Terms
from suffice.models.undirected.features import undirected_model
from suffice.models.undirected.log_linear import LogLinear, Names, maximal
from suffice.objectives.scores import AIC, BIC, LogLikelihood
from suffice.statistics import Request, Statistics
from suffice.structure.problem import Problem, check_has, check_number
from suffice.structure.results.found_graph import GraphOutcome
from suffice.structure.scoring.parent_sets import TIE
from suffice.structure.undirected.graph_method import GraphMethod

NEAR = 1e-3
"""How far a log-likelihood may be from its maximum, about, where that is inside,"""
CYCLES = 2000
"""and the cycles after which it is taken as it is: on the boundary they gain less and less, like 1 over their number."""
SATURATED = 2**24
"""Cells of a table of all variables up to which a search begins with all of their interactions."""


@dataclass(frozen=True)
class Forward:
    """From independence on, put terms in.

    >>> Forward()
    Forward()
    """

    adds, removes, from_all = True, False, False


@dataclass(frozen=True)
class Backward:
    """From all interactions on, take terms out.

    >>> Backward()
    Backward()
    """

    adds, removes, from_all = False, True, True


@dataclass(frozen=True)
class Both:
    """From independence on, put terms in and take them out.

    >>> Both()
    Both()
    """

    adds, removes, from_all = True, True, False


@dataclass(frozen=True)
class DevianceTest:
    """A term is put in where the deviance falls significantly, P(χ² ≥ fall) < α, and taken out where it does not rise so.

    The degrees of freedom are the weights that the term has beside its subsets, Π (states − 1).

    >>> DevianceTest()
    DevianceTest(alpha=0.05)
    """

    alpha: float = 0.05

    def __post_init__(self) -> None:
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, (int, float)) or not 0.0 < self.alpha < 1.0:
            raise FitError(f"the alpha of a test is a number between 0 and 1, not {self.alpha!r}")


class TermChange(NamedTuple):
    """A term that may come or go: the model after it, how much ln L changes, and by how many weights."""

    adds: bool
    term: Names
    generators: tuple[Names, ...]
    log_likelihood: float
    df: int

    @property
    def p_value(self) -> float:
        """P(χ² ≥ what the deviance changes by)."""
        return float(sc.chdtrc(self.df, max(2.0 * abs(self.log_likelihood), 0.0)))

    @property
    def what(self) -> str:
        return f"{'add' if self.adds else 'remove'} {':'.join(self.term)}"


@dataclass(frozen=True)
class Stepwise(GraphMethod):
    """Hierarchical log-linear models, one term at a time: a set of variables comes when all of its subsets are there, and goes
    when it is in no larger one.

    `direction` is `Forward()`, `Backward()` or `Both()`; `score` is BIC(), AIC() or LogLikelihood(), of which the step that gains
    most is taken (by default that of `search`), or `DevianceTest(0.05)`: then the most significant term comes, or the least
    significant one goes. `max_order` bounds the variables of a term; `start` is a `LogLinear` model, or anything that `Graph`
    takes, to begin with. The variables themselves always stay. `found.generators` has the terms that are in no larger one,
    `found.model` the fitted network, `found.trace` each step; `strengths` are what the deviance grows by without any term of
    both variables.

    >>> from suffice import search
    >>> rows = {"rain": list("nnnnyyyy") * 9, "wet": list("nnnnyynn") * 9, "moon": list("nf") * 36}
    >>> found = search(rows, method=Stepwise(Backward(), DevianceTest(0.05)))
    >>> found.generators
    (('moon',), ('rain', 'wet'))
    >>> [step.what for step in found.trace]
    ['start', 'remove moon:rain:wet', 'remove moon:rain', 'remove moon:wet']
    """

    word = "stepwise"

    direction: Any = Both()
    score: Any = None
    max_order: int | None = None
    start: Any = None

    def __post_init__(self) -> None:
        check_has(self.direction, "from_all", "a direction is Forward(), Backward() or Both()")
        if self.score is not None:
            _check_score(self.score)
        check_number("max_order", self.max_order, 1, optional=True)
        if self.start is not None:
            model = undirected_model(self.start)
            if not isinstance(model, LogLinear):
                raise FitError(f"the start is a Graph or a LogLinear model, not {self.start!r}")
            object.__setattr__(self, "start", LogLinear(model.generators))

    def run(self, problem: Problem) -> GraphOutcome:
        score = problem.score if self.score is None else self.score
        _check_score(score)
        return StepwiseWalk(problem, self, score).run()


def _check_score(score: Any) -> None:
    if not isinstance(score, BIC | AIC | LogLikelihood | DevianceTest):
        raise FitError(f"Stepwise judges by BIC(), AIC(), LogLikelihood() or DevianceTest(0.05), not {score!r}")


class StepwiseWalk:
    """Where a stepwise search is: the generators of the model, and its ln L."""

    def __init__(self, problem: Problem, method: Stepwise, score: Any) -> None:
        self.problem, self.method, self.score, self.names = problem, method, score, problem.names
        self.tested = isinstance(score, DevianceTest)
        self.variables = {v.name: v for v in problem.variables if isinstance(v, Finite)}
        if real := [n for n in problem.names if n not in self.variables]:
            raise FitError(f"log-linear models are of finite columns; {listing(real)} is not: cut it into Bins, or leave it out")
        self.models = Interactions(problem.data, self.variables, problem.threads)
        self.price = 0.0 if self.tested else float(score.price(self.models.weight))
        self.max_order = problem.n if method.max_order is None else method.max_order
        self.generators = self._first()
        self.log_likelihood = self.models.log_likelihood(self.generators)

    def run(self) -> GraphOutcome:
        self.problem.progress.better("start", self.value, self.outcome())
        seen = {self.generators}
        while (step := self._best()) is not None and step.generators not in seen:
            self.generators = step.generators
            self.log_likelihood += step.log_likelihood
            seen.add(self.generators)
            self.problem.progress.better(step.what, self.value, self.outcome())
        return self.outcome(strengths=True)

    @property
    def value(self) -> float:
        """The score of the model; of tests its ln L."""
        return self.log_likelihood - self.price * LogLinear(self.generators).n_parameters(self.variables)

    def outcome(self, *, strengths: bool = False) -> GraphOutcome:
        """The model here; with `strengths` those of its edges."""
        model, data = LogLinear(self.generators), self.problem.data
        without = {e: without_edge(self.generators, *e) for e in model.graph.edges} if strengths else {}
        worth = {e: 2.0 * (self.log_likelihood - self.models.log_likelihood(rest)) for e, rest in without.items()}
        score = None if self.tested else self.value
        details = StepwiseDetails(self.generators)
        return GraphOutcome(model.graph, score, worth, "deviance without it", model=lambda: fit(model, data), details=details)

    def _first(self) -> tuple[Names, ...]:
        """The generators to start with, which keep what is required and forbidden."""
        rules, single = self.problem.rules, [(n,) for n in self.names]
        required = [e for e in combinations(self.names, 2) if rules.required[self._at(*e)]]
        start = self.method.start
        if start is not None:
            if unknown := sorted(set(start.nodes) - set(self.names)):
                raise GraphError(f"the start has variables that the data do not have: {listing(unknown)}")
            for a, b in start.graph.edges:
                if not rules.allowed[self._at(a, b)]:
                    raise FitError(f"the start joins {a!r} and {b!r}, which is forbidden")
            if lacking := [e for e in required if e not in start.graph.edges]:
                raise FitError(f"the start does not join {lacking[0][0]!r} and {lacking[0][1]!r}, which is required")
            return LogLinear([*start.generators, *single]).generators
        if not self.method.direction.from_all:
            return LogLinear([*required, *single]).generators
        # else all interactions that are allowed, of no more variables than may interact
        cells = prod(float(v.n_states) for v in self.variables.values())
        if cells > SATURATED and self.max_order == self.problem.n:
            raise TooLarge(
                f"all interactions of {len(self.names)} variables are a table of {cells:,.3g} cells: "
                f"{Remedy('give max_order, a start, or go Forward()', 'leave some out with --without')}"
            )
        joined = LogLinear([*[e for e in combinations(self.names, 2) if rules.allowed[self._at(*e)]], *single])
        parts = [p for c in joined.graph.cliques() for p in combinations(c, min(self.max_order, len(c)))]
        return LogLinear(parts).generators

    def _at(self, a: str, b: str) -> tuple[int, int]:
        return self.problem.number[a], self.problem.number[b]

    def _best(self) -> TermChange | None:
        """The step to take; None where there is none."""
        changes = self._changes()
        if self.tested:  # the least significant term goes, if it is not significant; else the most significant comes, if it is
            if out := [c for c in changes if not c.adds and c.p_value > self.score.alpha]:
                return max(out, key=lambda c: c.p_value)
            new = [c for c in changes if c.adds and c.p_value < self.score.alpha]
            return min(new, key=lambda c: (c.p_value, -c.log_likelihood)) if new else None
        gains = [c.log_likelihood - self.price * (c.df if c.adds else -c.df) for c in changes]
        tie = TIE * (1.0 + abs(self.value))
        top = max(gains, default=-float("inf"))
        return next(c for c, gain in zip(changes, gains, strict=True) if gain >= top - tie) if top > tie else None

    def _changes(self) -> list[TermChange]:
        """All steps from here, in the order of their terms."""
        rules, direction = self.problem.rules, self.method.direction
        asked: list[tuple[bool, Names, tuple[Names, ...]]] = []
        if direction.adds:
            more = one_more(self.generators, rules.allowed, self.names, self.max_order)
            asked += [(True, term, tuple(sorted(maximal([*self.generators, term])))) for term in more]
        if direction.removes:
            loose = [g for g in self.generators if len(g) > 2 or (len(g) == 2 and not rules.required[self._at(*g)])]
            asked += [(False, g, without_term(self.generators, g)) for g in loose]
        self.models.count(g for _, _, generators in asked for g in generators)
        result = []
        for adds, term, generators in sorted(asked, key=lambda c: (c[1], c[0])):
            change = self.models.log_likelihood(generators) - self.log_likelihood
            df = prod(self.variables[name].n_states - 1 for name in term)
            result.append(TermChange(adds, term, generators, change, df))
            self.problem.progress.check()
        return result


@dataclass(frozen=True)
class StepwiseDetails:
    """The generators of the model that was found."""

    generators: tuple[Names, ...]

    def facts(self, a: str, b: str) -> list[Edge]:
        """The terms that two variables are in together."""
        both = [":".join(g) for g in self.generators if a in g and b in g]
        return [("together in", ", ".join(both) or "no term")]


class Interactions:
    """The log-likelihoods of hierarchical models at their maximum, each table and each prime part once. Where a maximum is on the
    boundary, so that weights run off to infinity, it is approached from below: `CYCLES` come to within about 0.1 of it on the
    data of `asia`, where all rows are 10,000."""

    def __init__(self, data: Any, variables: dict[str, Finite], threads: int | None = None) -> None:
        self.data, self.variables, self.threads = data, variables, threads
        self.weight = float(data.weight)
        self._tables: dict[Names, Any] = {}
        self._entropy: dict[Names, float] = {(): 0.0}
        self._primes: dict[tuple[Names, ...], float] = {}

    def count(self, sets: Iterable[Names]) -> None:
        """Count tables that will be asked for, in one pass over the rows."""
        if new := [s for s in dict.fromkeys(sets) if s and s not in self._tables]:
            seen = self.data.gather([Request(s) for s in new], threads=self.threads)
            self._tables |= {s: seen.counts(s) for s in new}

    def log_likelihood(self, generators: Iterable[Names]) -> float:
        """ln L of a model at its maximum."""
        closed, primes = prime_parts(generators)
        return sum(times * self._logs(names) for names, times in closed.items()) + sum(map(self._prime, primes))

    def _logs(self, names: Names) -> float:
        """e of a set of variables."""
        if names not in self._entropy:
            self.count([names])
            counts = np.asarray(self._tables[names].listed()[1], np.float64)
            counts = counts[counts > 0]
            self._entropy[names] = float(counts @ np.log(counts / self.weight))
        return self._entropy[names]

    def _prime(self, part: tuple[Names, ...]) -> float:
        """ln L of a model that does not fall apart, by iterative proportional fitting: where that ends margins are off by some
        share of the rows, and about as much of ln L, per row, is still to gain."""
        if part not in self._primes:
            self.count(part)
            model = LogLinear(part)
            terms = Terms.of(model, model.finite_variables(self.variables))
            target = terms.count_cells(Statistics([self._tables[g] for g in part], self.weight)) / self.weight
            found = CliqueTree(terms).fit(target, IPF(tol=min(NEAR / self.weight, 1e-6), max_iter=CYCLES))
            occur = target > 0
            uniform = float(np.log(terms.sizes).sum())
            self._primes[part] = self.weight * (float(target[occur] @ found.log_tables[occur]) - uniform)
        return self._primes[part]


def prime_parts(generators: Iterable[Names]) -> tuple[Counter[Names], list[tuple[Names, ...]]]:
    """How often e of each set counts, and the parts that must be fitted."""
    steps, core = reduction(generators)
    closed: Counter[Names] = Counter()
    for with_it, without in steps:
        closed[with_it] += 1
        closed[without] -= 1
    if not core:
        return closed, []
    around = {n: {m for g in core if n in g for m in g} for g in core for n in g}
    for separator in core:
        left = {n: sorted(ms - set(separator)) for n, ms in around.items() if n not in separator}
        parts: list[set[str]] = []  # the connected ones of what is left without the separator
        for name in sorted(left):
            if not any(name in part for part in parts):
                parts.append(set(reach([name], left)))
        if len(parts) > 1:
            primes: list[tuple[Names, ...]] = []
            closed[separator] -= len(parts) - 1
            for part in parts:
                more, found = prime_parts([separator, *(g for g in core if not part.isdisjoint(g))])
                closed.update(more)
                primes += found
            return closed, primes
    return closed, [core]


def reduction(generators: Iterable[Names]) -> tuple[list[tuple[Names, Names]], tuple[Names, ...]]:
    """The steps (g, g without a variable that no other generator has) of Graham's reduction, and the core that is left."""
    sets = sorted(maximal(generators))
    steps: list[tuple[Names, Names]] = []
    while True:
        times = Counter(name for own in sets for name in own)
        alone = next((k for k, own in enumerate(sets) if any(times[n] == 1 for n in own)), None)
        if alone is None:
            return steps, tuple(sets)
        shared = tuple(n for n in sets[alone] if times[n] > 1)
        steps.append((sets[alone], shared))
        sets = sorted(maximal([*sets[:alone], *sets[alone + 1 :], *([shared] if shared else [])]))


def one_more(generators: Sequence[Names], allowed: Bools, names: Names, max_order: int) -> Iterator[Names]:
    """The terms that a hierarchical model can get: all their subsets are in it already, and all their pairs are allowed."""
    number = {name: i for i, name in enumerate(names)}
    terms = {t for g in generators for k in range(1, len(g) + 1) for t in combinations(g, k)}
    for smaller in sorted((t for t in terms if len(t) < max_order), key=lambda t: (len(t), t)):
        for name in names[number[smaller[-1]] + 1 :]:
            term = (*smaller, name)
            possible = term not in terms and all(allowed[number[name], number[n]] for n in smaller)
            if possible and all(part in terms for part in combinations(term, len(term) - 1)):
                yield term


def without_term(generators: Sequence[Names], term: Names) -> tuple[Names, ...]:
    """The generators of a model without one of them; its subsets stay."""
    rest = [g for g in generators if g != term]
    return tuple(sorted(maximal([*rest, *combinations(term, len(term) - 1)])))


def without_edge(generators: Sequence[Names], a: str, b: str) -> tuple[Names, ...]:
    """The generators of a model without any term that has both variables."""
    rest: list[Names] = []
    for g in generators:
        both = a in g and b in g
        rest += [tuple(n for n in g if n != a), tuple(n for n in g if n != b)] if both else [g]
    return tuple(sorted(maximal(rest)))
