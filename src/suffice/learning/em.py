"""EM: parameters from incomplete data (skeleton)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice.errors import FitError
from suffice.families.family import Estimate
from suffice.iteration import Iteration, Run
from suffice.learning.incomplete import problem_of
from suffice.learning.problem import Problem
from suffice.models.bayes_net import BayesNet


def em(
    dag: Any,
    data: Any,
    hidden: Any = (),
    prior: Any = None,
    estimate: Estimate | None = None,
    starts: int | None = None,
    start: BayesNet | None = None,
    seed: int = 0,
    tol: float = 1e-6,
    max_iter: int = 500,
    *,
    families: Mapping[str, Any] | None = None,
    threads: int | None = None,
) -> Run[BayesNet]:
    problem = problem_of(dag, data, hidden=hidden, prior=prior, estimate=estimate, families=families, threads=threads)
    rng = np.random.default_rng(seed)
    begin = problem.parameters({n: start[n] for n in start}) if start else problem.first() if starts == 1 else problem.random(rng)
    return climbed(problem, begin, tol, max_iter)


def climbed(problem: Problem, begin: Any, tol: float, max_iter: int) -> Run[BayesNet]:
    parameters, clock, trace = begin, time.perf_counter(), []
    expected = problem.expected(parameters)
    before = expected.log_likelihood + problem.log_prior(parameters)
    converged = False
    for _ in range(max_iter):
        parameters = problem.maximised(expected.statistic)
        expected = problem.expected(parameters)
        objective = expected.log_likelihood + problem.log_prior(parameters)
        trace.append(Iteration(objective, expected.log_likelihood, time.perf_counter() - clock))
        if objective < before - 1e-9 * (1 + abs(before)):
            raise FitError("the objective fell: an error of ours")
        if tol > 0 and objective - before <= tol:
            converged = True
            break
        before = objective
    return Run(problem.network(parameters, expected.statistic, "EM"), tuple(trace), converged)
