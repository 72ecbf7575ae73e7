"""The rounds of structural EM: what is expected, a search on it, and the parameters of the graph that was found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from suffice.errors import FitError, TooLarge, listed, nearest, note
from suffice.families.family import Mean
from suffice.families.gathering import requests
from suffice.families.priors import BDs
from suffice.graphs import Dag
from suffice.iteration import Iteration, OutOfTime, Progress
from suffice.learning.expectations import IncompleteRows
from suffice.learning.incomplete import Task, problem_of
from suffice.learning.problem import Problem as ParameterProblem
from suffice.models.bayes_net import BayesNet, estimated
from suffice.recipes.structural_run import Round, StructuralRun
from suffice.scores import Evidence
from suffice.structure.branching import branched
from suffice.structure.found import Found
from suffice.structure.hill_climb import HillClimb
from suffice.structure.local_scores import TIE
from suffice.structure.problem import Method, Outcome, Problem
from suffice.variables import Finite


class Options(NamedTuple):
    method: Method
    rounds: int
    tol: float
    max_iter: int
    prior: Any
    start: Any
    starts: int


class _State(NamedTuple):
    """A network, with what it expects."""

    model: BayesNet
    log_likelihood: float
    score: float
    expected: Any
    """What the rows are expected to be under the network,"""
    problem: Problem
    """and the search on it."""


class StructuralSearch:
    """Structural EM under way: the best network so far, and the graphs of each start."""

    def __init__(self, task: Task, rows: IncompleteRows, problem: Problem, options: Options) -> None:
        self.task, self.rows, self.problem, self.options = task, rows, problem, options
        self.clock: Progress[Any] = problem.progress
        score = problem.score
        self.penalised = hasattr(score, "price")
        own = score.prior if isinstance(score, Evidence) else None
        self.prior = None if isinstance(own, BDs) else own
        self.graphs: list[list[Round]] = []
        self.best: _State | None = None
        self.of_best, self.converged = 0, False

    def run(self) -> StructuralRun:
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
            if self.best is None:
                if isinstance(stop, KeyboardInterrupt):
                    raise
                raise FitError(f"the time limit of {self.clock.time_limit:g} s was over before any network was found") from None
        finally:
            self.clock.close()
        if trouble is not None:
            if self.best is None:
                raise trouble
            note(f"the best network so far is kept where structural EM could not go on: {trouble}")
        self.clock.time_limit = None  # what follows is short, and must come to its end
        return self._result(finished)

    def _climb(self, k: int) -> None:
        """The rounds from the k-th start."""
        state = self._start(k)
        seen = {state.model.dag}
        if self._allowed(state.model.dag):
            self._take(k, state)
        else:
            state = state._replace(score=-np.inf)
        for _ in range(self.options.rounds):
            dag = self._found(state)
            if dag is None or (dag := self._without_idle(dag)) in seen:
                return self._end(k)
            seen.add(dag)
            new = self._fitted(dag, state)
            if self.penalised and not _above(new.score, state.score):
                return self._end(k)
            state = new
            self._take(k, state)
        return None

    def _end(self, k: int) -> None:
        """The k-th start is at its end; if its network is the best so far, that is where it came to."""
        if k == self.of_best:
            self.converged = True

    def _take(self, k: int, state: _State) -> None:
        dag = state.model.dag
        self.graphs[k].append(Round(dag, state.score, state.log_likelihood, self.clock.seconds))
        if self.best is None or _above(state.score, self.best.score):
            self.best, self.of_best, self.converged = state, k, False
            self.clock.better(f"start {k + 1}, {len(dag.edges)} edges", state.score, state)
        else:
            self.clock.check(f"start {k + 1}, {len(dag.edges)} edges")

    def _start(self, k: int) -> _State:
        given, hidden = self.options.start, self.task.hidden
        dag = self._start_graph(given, k)
        problem = self._parameters(dag, self.prior)
        if isinstance(given, BayesNet) and k == 0:
            begin = problem.parameters({n: given[n] for n in given})
        else:
            begin = problem.random(np.random.default_rng([self.problem.seed, k])) if hidden else problem.first()
        return self._climbed(problem, begin)

    def _start_graph(self, given: Any, k: int) -> Dag:
        names = self.problem.names
        if given is not None:
            dag = given.dag if isinstance(given, BayesNet) else Dag(given)
            for name in dag.nodes:
                if name not in names:
                    raise FitError(f"the start names {name!r}, which is not a variable here{nearest(name, names)}")
            if isinstance(given, BayesNet) and len(dag) < len(names):
                raise FitError(
                    f"the start lacks {listed(sorted(set(names) - set(dag.nodes)))}: give a graph, or a network of all variables"
                )
            return Dag({n: dag.parents(n) if n in dag else () for n in names})
        if not self.task.hidden:
            return self._first_graph()
        return self.problem.dag(_linked(self.problem, self.task.hidden, k))

    def _first_graph(self) -> Dag:
        """The best forest on what rows show of pairs; of numbers the method's graph on the moments of all; else no edge."""
        first = self.rows.first()
        if first is None:
            return self.problem.dag(self.problem.rules.start())
        problem = replace(self.problem, data=first, progress=self._watch())
        if not isinstance(self.problem.variables[0], Finite):
            return self._searched(problem, self.options.method).dag
        most = max(1, int(problem.rules.required.sum(1).max(initial=0)))
        dag = self._searched(problem, HillClimb(max_parents=None if self._beyond_edges() else most)).dag
        # Single variables and pairs are seen in different rows, so that equivalent forests do not score alike.
        return dag.cpdag().to_dag() if self.problem.constraints is None else dag

    def _found(self, state: _State) -> Dag | None:
        """The graph that scores best on what is expected; None if the method finds nothing better than the current one."""
        problem, method = state.problem, self.options.method
        methods = [method]
        if hasattr(method, "start") and not self._beyond_edges():  # a climb begins anew, and also goes on from here
            methods.append(replace(method, start=state.model.dag))  # type: ignore[type-var]
        found = [self._searched(_scored_as(problem, self._watch()), m) for m in methods]
        best = max(found, key=lambda f: -np.inf if f.score is None else f.score)
        here = problem.scores.total(self._numbered(state.model.dag)) if self._allowed(state.model.dag) else -np.inf
        return best.dag if best.score is not None and best.score > here + problem.scores.tie(here) else None

    def _allowed(self, dag: Dag) -> bool:
        """Whether a graph keeps the constraints; one to start with need not."""
        return self.problem.constraints is None or not self.problem.constraints.check(dag)

    def _without_idle(self, dag: Dag) -> Dag:
        """The graph without the links of hidden variables that have a single one.

        Such a link explains nothing, but what is expected under a network that has it upholds it.
        """
        names, rules = self.problem.names, self.problem.rules
        links = {h: [e for e in dag.edges if h in e] for h in self.task.hidden}
        idle = {edges[0] for edges in links.values() if len(edges) == 1}
        kept = [(a, b) for a, b in dag.edges if (a, b) not in idle or rules.required[names.index(b), names.index(a)]]
        return dag if self._beyond_edges() else Dag(kept, nodes=names)

    def _searched(self, problem: Problem, method: Any) -> Found:
        try:
            outcome = self._outcome(problem, method)
            return Found.of(problem, method, outcome, finished=True)
        finally:
            problem.progress.close()

    def _outcome(self, problem: Problem, method: Any) -> Outcome:
        constraints, number = problem.constraints, {name: i for i, name in enumerate(problem.names)}
        if not self._beyond_edges():
            outcome: Outcome = method.run(problem)
        else:
            pairs = [[(number[a], number[b]) for a, b in kind] for kind in (constraints.adjacent, constraints.not_ancestor)]
            outcome = branched(method, problem, *pairs)
        if not outcome.finished:
            raise OutOfTime if problem.progress.left <= 0 else KeyboardInterrupt
        return outcome

    def _beyond_edges(self) -> bool:
        """Whether there are constraints that are not about single edges."""
        constraints = self.problem.constraints
        return constraints is not None and bool(constraints.adjacent or constraints.not_ancestor)

    def _watch(self) -> Progress[Any]:
        """The clock of one search: it may take the time that is left, and shows nothing of its own."""
        return Progress("structural EM", None if self.clock.time_limit is None else max(self.clock.left, 1e-3), False)

    def _fitted(self, dag: Dag, state: _State) -> _State:
        """The parameters of a new graph, by EM from those that the expected statistics give."""
        statistics = state.expected.gather(requests(dag, self.task.variables), threads=self.problem.threads)
        warm = estimated(dag, statistics, None, Mean())
        problem = self._parameters(dag, self.prior)
        return self._climbed(problem, problem.parameters({n: warm[n] for n in warm}))

    def _parameters(self, dag: Dag, prior: Any) -> ParameterProblem:
        hidden = [self.task.variables[n] for n in self.task.hidden]
        return problem_of(dag, self.task.rows, hidden=hidden, prior=prior, threads=self.problem.threads)

    def _climbed(self, problem: ParameterProblem, parameters: Any) -> _State:
        """EM, until it gains no more than `tol`."""
        expected = problem.expected(parameters)
        objective = expected.log_likelihood + problem.log_prior(parameters)
        for i in range(self.options.max_iter):
            self.clock.check(f"{len(problem.dag.edges)} edges, iteration {i + 1} of EM")
            parameters = problem.maximised(expected.statistic)
            expected = problem.expected(parameters)
            before, objective = objective, expected.log_likelihood + problem.log_prior(parameters)
            if objective - before <= self.options.tol:
                break
        model = problem.network(parameters, expected.statistic, self._info())
        return self._state(model, expected.log_likelihood)

    def _state(self, model: BayesNet, log_likelihood: float) -> _State:
        expected = self.rows.under(model)
        problem = replace(self.problem, data=expected, progress=self._watch())
        return _State(model, log_likelihood, self._score(model, log_likelihood, expected, problem), expected, problem)

    def _score(self, model: BayesNet, log_likelihood: float, expected: Any, problem: Problem) -> float:
        """The observed score: exact for penalised likelihoods, else by Cheeseman & Stutz."""
        if self.penalised:
            return log_likelihood - float(self.problem.score.price(expected.weight)) * model.n_parameters
        statistics = expected.gather(requests(model.dag, self.task.variables), threads=problem.threads)
        return problem.scores.total(self._numbered(model.dag)) + log_likelihood - model.log_likelihood(statistics)

    def _numbered(self, dag: Dag) -> list[tuple[int, ...]]:
        number = {name: i for i, name in enumerate(self.problem.names)}
        return [tuple(sorted(number[p] for p in dag.parents(name))) for name in self.problem.names]

    def _info(self) -> str:
        by = "maximum likelihood" if self.prior is None else "posterior mean"
        return f"structural EM from {self.task.rows.weight:,.10g} rows, {self.problem.score!r}; parameters by EM, {by}"

    def _result(self, finished: bool) -> StructuralRun:
        assert self.best is not None
        graphs = tuple(self.graphs[self.of_best])
        rising = [r for k, r in enumerate(graphs) if r.score >= max(g.score for g in graphs[: k + 1])]
        for name in self.task.hidden:
            if not any(name in edge for edge in self.best.model.dag.edges):
                note(f"the hidden variable {name!r} has no links in the best graph: the data does not call for it")
        return StructuralRun(
            self._with_prior(self.best.model),
            tuple(Iteration(r.score, r.log_likelihood, r.seconds) for r in rising),
            self.converged and finished,
            graphs,
            self.best.score,
            tuple(max(r.score for r in g) for g in self.graphs if g),
            finished,
            self.options.method,
        )

    def _with_prior(self, model: BayesNet) -> BayesNet:
        """The same graph with the parameters that the user's prior gives."""
        if self.options.prior is None:
            return model
        self.prior = self.options.prior
        problem = self._parameters(model.dag, self.prior)
        return self._climbed(problem, problem.parameters({n: model[n] for n in model})).model


def _above(score: float, other: float) -> bool:
    """Whether a score is higher by more than rounding."""
    return score > other + (TIE * (1.0 + abs(other)) if np.isfinite(other) else 0.0)


def _scored_as(problem: Problem, progress: Progress[Any]) -> Problem:
    """The same problem under another clock, with what its scores know already."""
    other = replace(problem, progress=progress)
    other.__dict__["scores"] = problem.scores
    problem.scores.source.watch = lambda: progress.check("scoring parent sets")
    return other


def _linked(problem: Problem, hidden: Sequence[str], k: int) -> list[tuple[int, ...]]:
    """Links from hidden to observed variables: in the first start each observed one has a hidden parent, then half of them do."""
    rng = np.random.default_rng([problem.seed, k, 1])
    top = [problem.names.index(n) for n in hidden]
    parents = problem.rules.start()
    for i in range(problem.n):
        h = int(rng.choice(top))
        room = len(parents[i]) < problem.rules.max_parents[i] and problem.rules.allowed[i, h]
        if i not in top and h not in parents[i] and room and (k == 0 or rng.random() < 0.5):
            parents[i] = tuple(sorted((*parents[i], h)))
    return parents
