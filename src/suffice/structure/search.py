"""Search: from data to the graph that scores best."""

from __future__ import annotations

from typing import Any

from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, note
from suffice.iteration import OutOfTime, Progress
from suffice.scores import BIC
from suffice.statistics import Statistics
from suffice.structure.constraints import Constraints
from suffice.structure.found import Found
from suffice.structure.problem import Outcome, Problem
from suffice.structure.rules import Parents
from suffice.variables import Variable


def search(
    data: Any,
    score: Any = None,
    method: Any = None,
    constraints: Constraints | None = None,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    threads: int | None = None,
) -> Found:
    """The graph that scores best on the data."""
    problem = problem_of(data, score, constraints, seed=seed, time_limit=time_limit, threads=threads)
    finished = True
    try:
        outcome = method.run(problem)
    except (OutOfTime, KeyboardInterrupt) as stop:
        if problem.progress.best is None:
            raise FitError("the search was stopped before it had found anything") from stop
        outcome, finished = Outcome(problem.progress.best), False
    finally:
        problem.progress.close()
    return Found.of(problem, method, outcome, finished)


def problem_of(
    data: Any, score: Any, constraints: Constraints | None, *, seed: int, time_limit: float | None, threads: int | None
) -> Problem:
    """The problem in numbers, with all that is wrong with it said."""
    rows = data if isinstance(data, Statistics) else scan(data)
    variables = _variables(rows)
    rules = (constraints or Constraints()).rules(variables)
    return Problem(rows, variables, score or BIC(), rules, seed, threads, progress=Progress("searching", time_limit))


def _variables(data: Data | Statistics) -> tuple[Variable, ...]:
    if isinstance(data, Statistics):
        return tuple(sorted(data.variables.values(), key=lambda v: v.name))
    data.require_complete(data.columns)
    left_out = set(data.identifiers)
    if left_out:
        note(f"left out of the search: {sorted(left_out)} (nearly as many states as rows)")
    return tuple(v for n, v in sorted(data.schema.items()) if n not in left_out)
