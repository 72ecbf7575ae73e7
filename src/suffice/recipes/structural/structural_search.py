"""The rounds of structural EM: what is expected, a search on it, and the parameters of the graph that was found."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.iteration import OutOfTime, Progress, TraceStep
from suffice.basis.variables import Finite
from suffice.errors import FitError, TooLarge, listing, nearest, note, quantity
from suffice.families.gathering import requests
from suffice.families.priors.priors import as_prior
from suffice.families.protocol.family import Mean
from suffice.graphs import Dag
from suffice.incomplete.expectations import IncompleteRows
from suffice.learning.incomplete.climb import Climb
from suffice.learning.incomplete.em_run import covariance_at
from suffice.learning.incomplete.objective import NoEstimate
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.learning.incomplete.task import Task
from suffice.models.estimation import estimate_network
from suffice.models.networks import BayesNet
from suffice.objectives.scores import Evidence, score_of_data
from suffice.recipes.structural.structural_regressions import log_likelihood_of, regressions_of
from suffice.statistics import Statistics
from suffice.structure.methods.chow_liu import TAN, ChowLiu
from suffice.structure.methods.hill_climb import HillClimb
from suffice.structure.problem import Method, Problem
from suffice.structure.results.found import Found
from suffice.structure.scoring.local_scores import FamilyScores
from suffice.structure.scoring.parent_sets import TIE
from suffice.structure.scoring.score_sources import Barring
from suffice.structure.search import method_to_run

TRIES = 50
"""Searches of a round, each of which leaves out one more family that EM came to no network with."""
SHOWN = 8
"""Families that a note names."""
SHAPED = (ChowLiu, TAN)
"""Methods whose graphs have a shape of their own."""


class Round(NamedTuple):
    """One graph on the way: its observed score, the log-likelihood of what was observed, and the seconds since the start."""

    dag: Dag
    score: float
    log_likelihood: float
    seconds: float


class SearchOptions(NamedTuple):
    method: Method
    rounds: int
    tol: float
    max_iter: int
    prior: Any
    start: Any
    starts: int


@dataclass(eq=False)
class _RoundState:
    """A network, with what it expects; that is found when it is asked for, since a run may end before."""

    model: BayesNet
    log_likelihood: float
    score: float = -np.inf
    expected: Any = None
    """What the rows are expected to be under the network,"""
    problem: Problem | None = None
    """the search on it,"""
    known: dict[tuple[int, tuple[int, ...]], float] = field(default_factory=dict)
    """and the scores of families that such searches know."""


@dataclass
class _Within(Progress[Any]):
    """The clock of one search within the run: what it does is shown on the line of the whole, whose limit it has."""

    tell: Callable[[str], None] = lambda what: None

    def check(self, what: str = "", score: float | None = None, *, step: TraceStep | None = None) -> None:
        self.tell(what or f"searching, {quantity(len(self.trace), 'graph')}")


class StructuralSearch:
    """Structural EM under way: the best network so far, the graphs of each start, and the families that are left out."""

    def __init__(self, task: Task, rows: IncompleteRows, problem: Problem, options: SearchOptions) -> None:
        self.task, self.rows, self.problem, self.options = task, rows, problem, options
        self.clock: Progress[Any] = problem.progress
        score = problem.score
        self.penalised = hasattr(score, "price")
        plain = score_of_data(score)
        own = plain.prior if isinstance(plain, Evidence) else None
        self.prior = None if own is None or own.needs_data else own
        self.graphs: list[list[Round]] = []
        self.best: _RoundState | None = None
        self.of_best, self.converged = 0, False
        self.barred: dict[tuple[int, frozenset[int]], None] = {}
        self.left_out: dict[tuple[str, frozenset[str]], None] = {}
        self._begun: Climb | None = None
        self._where = ""
        rows.watch = self._tell

    def run(self) -> bool:
        """Whether it came to its end."""
        finished, trouble = True, None
        try:
            for k in range(self.options.starts):
                self.graphs.append([])
                try:
                    self._climb(k)
                except (FitError, TooLarge) as error:
                    trouble = error
        except (OutOfTime, KeyboardInterrupt) as stop:
            finished = False
            if self.best is None and self._begun is not None and self._is_allowed(self._begun.problem.dag):
                self.clock.settle()  # the first network has not had all its iterations of EM: it is taken as it is
                self._take(len(self.graphs) - 1, self._state(self._begun))
            if self.best is None:
                raise self.clock.too_early(stop, "any network was found") from None
            self.clock.settle()
        finally:
            self.clock.close()
        if trouble is not None:
            if self.best is None:
                raise trouble
            note(f"the best network so far is kept where structural EM could not go on: {trouble}")
        if self.left_out:
            regressions = any(child in self.problem.families for child, _ in self.left_out)
            why = "since EM leads to a variance of zero" + (", or to coefficients without end" if regressions else "")
            # but for those that have more parents than others
            least = [(c, s) for c, s in self.left_out if not any(c == d and t < s for d, t in self.left_out)]
            more = f" and {len(least) - SHOWN} more" if len(least) > SHOWN else ""
            families = "; ".join(f"{c} | {', '.join(sorted(s))}" for c, s in least[:SHOWN])
            note(f"families that have no estimate, {why}, are left out: {families}{more}")
        self.clock.time_limit = None  # what follows is short, and must come to its end
        return finished

    def explain_graph(self, dag: Dag, finished: bool) -> Found:
        """The best graph among others, by the statistics that the rows are expected to have under its network."""
        assert self.best is not None
        problem = self._expect(self.best)
        return Found.at(problem, self.options.method, dag, problem.scores.total(self.problem.parents(dag)), finished=finished)

    def _tell(self, what: str) -> None:
        """Look at the clock, and show what is being done."""
        self.clock.check(f"{self._where}{what}")

    def _climb(self, k: int) -> None:
        """The rounds from the k-th start."""
        start = f"start {k + 1} of {self.options.starts}, " if self.options.starts > 1 else ""
        self._where = f"{start}first graph: "
        unseen = {self.problem.names.index(n) for n in self.task.hidden}
        # What a hidden variable means differs from start to start, and so does what collapses with it.
        self.barred = {f: None for f in self.barred if not unseen & {f[0], *f[1]}}
        state = self._start(k)
        seen = {state.model.dag}
        if self._is_allowed(state.model.dag):
            self._take(k, state)
        else:
            state.score = -np.inf
        for number in range(self.options.rounds):
            self._where = f"{start}round {number + 1}, {quantity(len(state.model.dag.edges), 'edge')}: "
            new = self._next(state, seen)
            if new is None:
                break
            seen.add(new.model.dag)
            if self.penalised and not _above(new.score, state.score):
                break
            state = new
            self._take(k, state)
        else:
            return
        if k == self.of_best:  # the best network so far is where this start came to
            self.converged = True

    def _next(self, state: _RoundState, seen: set[Dag]) -> _RoundState | None:
        """The network of the graph that scores best on what is expected, None if there is none that is new. Where EM comes to no
        network, a family of the graph is barred, or fewer parents are allowed, and the search is done again."""
        trouble: FitError | TooLarge
        for _ in range(TRIES):
            dag = self._find_better(state)
            if dag is None or (dag := self._without_idle(dag)) in seen:
                return None
            try:  # EM from the parameters that the expected statistics give
                self._tell("expected statistics of the new graph")
                ready = regressions_of(dag, self.task, state.expected)
                warm = estimate_network(BayesNet, dag, self._expected_statistics(dag, state), None, Mean(), ready=ready)
                problem = self._parameters(dag)
                return self._state(self._run_em(problem, problem.parameters({n: warm[n] for n in warm})))
            except FitError as error:
                trouble = error
                self._bar(error, dag, state)
            except TooLarge as error:
                trouble = error
                rules, most = self.problem.rules, max(len(dag.parents(n)) for n in dag.nodes) - 1
                if most < max(1, int(rules.required.sum(1).max(initial=0))):
                    raise
                note(f"from here on at most {most} parents are allowed: {error.said}")
                self.problem = replace(self.problem, rules=rules.cap(most))
        raise trouble

    def _bar(self, error: FitError, dag: Dag, state: _RoundState | None) -> None:
        """Leave a family out from now on, and with it those that have more parents, since these leave less variance still."""
        names, child = self.problem.names, None
        if isinstance(error, NoEstimate):
            child = error.node
        elif state is not None and state.problem is not None:  # the new one that gained most, as one without variance does
            new = [n for n in dag.nodes if set(dag.parents(n)) - set(state.model.dag.parents(n))]
            parents, scores = dict(zip(names, self.problem.parents(dag), strict=True)), state.problem.scores
            gain = {n: scores.family(i := names.index(n), parents[n]) - scores.family(i, ()) for n in new}
            child = max(gain, key=lambda n: gain[n], default=None)
        if child is None or not (above := dag.parents(child)):
            raise error
        family = names.index(child), frozenset(names.index(p) for p in above)
        if all(self.problem.rules.required[family[0], p] for p in family[1]):
            raise error
        self.barred[family] = None
        two_numbers = len(above) == 1 and not isinstance(self.task.variables[above[0]], Finite)
        if two_numbers and child not in self.problem.families:  # they determine each other
            self.barred[next(iter(family[1])), frozenset({family[0]})] = None
        self.left_out[child, frozenset(above)] = None

    def _take(self, k: int, state: _RoundState) -> None:
        dag = state.model.dag
        self.graphs[k].append(Round(dag, state.score, state.log_likelihood, self.clock.seconds))
        if self.best is None or _above(state.score, self.best.score):
            self.best, self.of_best, self.converged = state, k, False
            self.clock.better(f"start {k + 1}, {quantity(len(dag.edges), 'edge')}", state.score, state)
        else:
            self._tell("scored")

    def _start(self, k: int) -> _RoundState:
        """The k-th network to begin with; families that collapse are left out of it."""
        trouble: FitError
        given = self.options.start
        for _ in range(TRIES):
            dag = self._start_graph(given, k)
            try:
                problem = self._parameters(dag)
                if isinstance(given, BayesNet) and k == 0 and dag == self._with_all_variables(given.dag):
                    begin = problem.parameters({n: given[n] for n in given})
                elif self.task.hidden:
                    begin = problem.random(np.random.default_rng([self.problem.seed, k]))
                else:
                    begin = problem.first()
                return self._state(self._run_em(problem, begin))
            except FitError as error:
                trouble = error
                self._bar(error, dag, None)
        raise trouble

    def _start_graph(self, given: Any, k: int) -> Dag:
        names = self.problem.names
        if given is not None:
            dag = given.dag if isinstance(given, BayesNet) else Dag(given)
            for name in dag.nodes:
                if name not in names:
                    raise FitError(f"the start names {name!r}, which is not a variable here{nearest(name, names)}")
            if isinstance(given, BayesNet) and len(dag) < len(names):
                raise FitError(
                    f"the start lacks {listing(sorted(set(names) - set(dag.nodes)))}: give a graph, or a network of all variables"
                )
            return self._without_barred(self._with_all_variables(dag))
        if not self.task.hidden:
            return self._first_graph()
        # Links from hidden to observed variables: in the first start each observed one has a hidden parent, then half of them do.
        problem, rng = self.problem, np.random.default_rng([self.problem.seed, k, 1])
        top, parents = [names.index(n) for n in self.task.hidden], problem.rules.start()
        for i in range(problem.n):
            h = int(rng.choice(top))
            room = len(parents[i]) < problem.rules.max_parents[i] and problem.rules.allowed[i, h]
            if i not in top and h not in parents[i] and room and (k == 0 or rng.random() < 0.5):
                parents[i] = tuple(sorted((*parents[i], h)))
        return self._without_barred(problem.dag(parents))

    def _with_all_variables(self, dag: Dag) -> Dag:
        return Dag({n: dag.parents(n) if n in dag else () for n in self.problem.names})

    def _without_barred(self, dag: Dag) -> Dag:
        """The graph without the parents in families that are barred, but for required ones."""
        parents, required = self.problem.parents(dag), self.problem.rules.required
        for child, some in self.barred:
            if some <= set(parents[child]):
                parents[child] = tuple(p for p in parents[child] if p not in some or required[child, p])
        return self.problem.dag(parents)

    def _first_graph(self) -> Dag:
        """The best forest on what rows show of pairs; of numbers the method's graph on the moments of all; else no edge."""
        if self._begun is None:  # so that a run that is stopped has something to give
            empty = self._parameters(self.problem.dag(self.problem.rules.start()))
            self._begun = Climb.at(empty, empty.first())
        first = self.rows.first()
        if first is None:
            return self.problem.dag(self.problem.rules.start())
        problem = self._search_on(first, {})
        method = self.options.method
        if not isinstance(self.problem.variables[0], Finite) or isinstance(method, SHAPED):
            return self._search(problem, method).dag
        most = max(1, int(problem.rules.required.sum(1).max(initial=0)))
        dag = self._search(problem, HillClimb(max_parents=None if self._beyond_edges() else most)).dag
        # Single variables and pairs are seen in different rows, so that equivalent forests do not score alike.
        return dag.cpdag().to_dag() if self.problem.constraints is None else dag

    def _search_on(self, expected: Any, known: dict[Any, float]) -> Problem:
        """The search on what is expected, without the families that are barred."""
        problem = replace(self.problem, data=expected, progress=self._watch())
        if self.barred or type(problem.scores) is FamilyScores:
            problem.__dict__["scores"] = Barring(problem.scores, self.barred, known)
        return problem

    def _expect(self, state: _RoundState) -> Problem:
        """The search on what the rows are expected to be under a network."""
        if state.expected is None:
            state.expected = self.rows.under({n: state.model[n] for n in state.model})
        state.problem = self._search_on(state.expected, state.known)
        return state.problem

    def _find_better(self, state: _RoundState) -> Dag | None:
        """The graph that scores best on what is expected; None if the method finds nothing better than the current one."""
        problem = self._expect(state)
        now = self.problem.parents(state.model.dag)
        here = problem.scores.total(now) if self._is_allowed(state.model.dag) else -np.inf
        methods, possible = [self.options.method], np.isfinite(here) and problem.rules.permits(now)
        if hasattr(methods[0], "start") and possible and not self._beyond_edges():
            methods.append(replace(methods[0], start=state.model.dag))  # type: ignore[type-var]  # a climb also goes on from here
        found = [self._search(problem, m) for m in methods]
        best = max(found, key=lambda f: -np.inf if f.score is None else f.score)
        return best.dag if best.score is not None and _above(best.score, here) else None

    def _is_allowed(self, dag: Dag) -> bool:
        """Whether a graph keeps the constraints and has the method's own shape; one to start with need not."""
        kept, method = self.problem.constraints is None or not self.problem.constraints.check(dag), self.options.method
        others = [n for n in dag.nodes if n != getattr(method, "target", None)]
        if isinstance(method, TAN):
            below = all(method.target in dag.parents(n) and len(dag.parents(n)) <= 2 for n in others)
            return kept and below and not dag.parents(method.target)
        if isinstance(method, ChowLiu):
            return kept and all(len(dag.parents(n)) <= (n != method.root) for n in others)
        return kept

    def _without_idle(self, dag: Dag) -> Dag:
        """The graph without the links of hidden variables that have a single one. Such a link explains nothing, but what is
        expected under a network that has it upholds it."""
        names, rules = self.problem.names, self.problem.rules
        links = {h: [e for e in dag.edges if h in e] for h in self.task.hidden}
        idle = {edges[0] for edges in links.values() if len(edges) == 1}
        kept = [(a, b) for a, b in dag.edges if (a, b) not in idle or rules.required[names.index(b), names.index(a)]]
        return dag if self._beyond_edges() or isinstance(self.options.method, SHAPED) else Dag(kept, nodes=names)

    def _search(self, problem: Problem, method: Any) -> Found:
        """A search under a clock of its own, with what the scores of the problem know already."""
        with closing(self._watch()) as watch:
            problem.scores.watch = lambda what="scoring parent sets": watch.check(what)
            outcome = method_to_run(method, problem).run(problem := problem.under(progress=watch))
            if not outcome.finished:
                raise self.clock.stop
            return Found.of(problem, method, outcome, finished=True)

    def _beyond_edges(self) -> bool:
        """Whether there are constraints that are not about single edges."""
        constraints = self.problem.constraints
        return constraints is not None and bool(constraints.adjacent or constraints.not_ancestor)

    def _watch(self) -> Progress[Any]:
        """The clock of one search: it may take the time that is left."""
        limit = None if self.clock.time_limit is None else max(self.clock.left, 1e-3)
        return _Within("structural EM", limit, False, memory=self.clock.memory, tell=self._tell)

    def _expected_statistics(self, dag: Dag, state: _RoundState) -> Statistics:
        """What is expected of the families of a graph."""
        wanted = requests(dag, self.task.variables, self.problem.families)
        statistics: Statistics = state.expected.gather(wanted, threads=self.problem.threads)
        return statistics

    def _parameters(self, dag: Dag) -> ParameterProblem:
        variables = {n: self.task.variables[n] for n in dag.nodes}
        return ParameterProblem.of(replace(self.task, dag=dag, variables=variables, prior=as_prior(self.prior)))

    def _run_em(self, problem: ParameterProblem, parameters: Any, iterations: int | None = None) -> Climb:
        """EM, until it gains no more than `tol`."""
        climb = self._begun = Climb.at(problem, parameters)
        climb.memory = self.clock.memory
        self._watch_climb(climb)

        asked = ["EM", *(list(edge) for edge in problem.dag.edges)]
        run = partial(climb.run, self.options.tol, iterations or self.options.max_iter, self._watch_climb)
        climb.memory.answer(asked, run, lambda _: climb.pack(), climb.restore)
        return climb

    def _watch_climb(self, climb: Climb) -> None:
        edges, log_likelihood = quantity(len(climb.problem.dag.edges), "edge"), climb.point.log_likelihood
        self._tell(f"iteration {len(climb.trace) + 1} of EM, {edges}, log-likelihood {log_likelihood:,.3f}")

    def _model(self, climb: Climb) -> BayesNet:
        by = "maximum likelihood" if self.prior is None else "posterior mean"
        info = f"structural EM from {self.task.rows.weight:,.10g} rows, {self.problem.score!r}; parameters by EM, {by}"
        model: BayesNet = climb.problem.network(climb.point.parameters, climb.point.statistic, info)
        return model.with_covariance(partial(covariance_at, climb.problem, climb.point.parameters))

    def _state(self, climb: Climb) -> _RoundState:
        """A network with its observed score: exact for penalised likelihoods, else by Cheeseman & Stutz from what is expected."""
        model, log_likelihood = self._model(climb), climb.point.log_likelihood
        state = _RoundState(model, log_likelihood)
        if self.penalised:
            state.score = log_likelihood - float(self.problem.score.price(self.task.rows.weight)) * model.n_parameters
        else:
            total = self._expect(state).scores.total(self.problem.parents(model.dag))
            seen = self._expected_statistics(model.dag, state)
            state.score = total + log_likelihood - log_likelihood_of(model, seen, state.expected)
        return state

    def with_prior(self, model: BayesNet, finished: bool) -> tuple[BayesNet, bool]:
        """The same graph with the parameters that the user's prior gives, and whether the run came to its end; of one that was
        stopped, after one iteration, or as many as there were when it was."""
        if self.options.prior is None:
            return model, finished
        self.prior, self._where = self.options.prior, "the prior: "
        problem = self._parameters(model.dag)
        begin = problem.parameters({n: model[n] for n in model})
        try:
            with closing(self.clock):  # an interrupt answers to what is still on the screen
                climb = self._run_em(problem, begin, None if finished else 1)
        except KeyboardInterrupt:
            finished, begun = False, self._begun
            self.clock.settle()
            climb = begun if begun and begun.problem is problem and begun.trace else self._run_em(problem, begin, 1)
        self.clock.close()
        return self._model(climb), finished


def _above(score: float, other: float) -> bool:
    """Whether a score is higher by more than rounding."""
    return score > other + (TIE * (1.0 + abs(other)) if np.isfinite(other) else 0.0)
