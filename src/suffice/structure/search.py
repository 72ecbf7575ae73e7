"""Search: from data to the graph that scores best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal, overload

from suffice.blas import one_blas_thread
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.engines.sources import checked_limit
from suffice.errors import DataError, FitError, listed, note, whole
from suffice.iteration import OutOfTime, Progress, checked_seconds
from suffice.scores import BIC
from suffice.statistics import Statistics
from suffice.structure.constraints import Constraints
from suffice.structure.found import Found
from suffice.structure.orders import Orders
from suffice.structure.plan import Plan, check
from suffice.structure.problem import Method, Outcome, Problem
from suffice.variables import Variable


@overload
def search(
    data: Any,
    score: Any = ...,
    method: Any = ...,
    constraints: Constraints | None = ...,
    *,
    seed: int = ...,
    time_limit: float | None = ...,
    memory_limit: int | str | None = ...,
    threads: int | None = ...,
    progress: bool | None = ...,
    dry_run: Literal[False] = ...,
) -> Found: ...
@overload
def search(
    data: Any,
    score: Any = ...,
    method: Any = ...,
    constraints: Constraints | None = ...,
    *,
    seed: int = ...,
    time_limit: float | None = ...,
    memory_limit: int | str | None = ...,
    threads: int | None = ...,
    progress: bool | None = ...,
    dry_run: Literal[True],
) -> Plan: ...
@one_blas_thread
def search(
    data: Any,
    score: Any = None,
    method: Any = None,
    constraints: Constraints | None = None,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    memory_limit: int | str | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    dry_run: bool = False,
) -> Found | Plan:
    """The graph that scores best on the data: by default BIC, and `Orders()`, which allows up to three parents.

    `data` is anything that `scan` takes, or `Statistics` that hold what the search asks for. Columns that identify rows (nearly
    as many states as rows) are left out, with a note; a finite variable never gets a real parent. The result does not depend on
    the order of columns, rows or states, nor on `threads`; a run that a limit stopped is the exception, and says so.

    `time_limit` is in seconds; when it is reached, or on Ctrl-C, the best graph so far is returned. `memory_limit` bounds what
    the search takes beside the data. `dry_run=True` only foretells the cost. `progress` shows the best score so far on standard
    error: by default on a terminal, after a second.

    >>> rows = {"rain": list("nnyy") * 8, "wet": list("nnyn") * 8, "moon": list("nf") * 4 + list("fn") * 12}
    >>> found = search(rows)
    >>> found.dag, round(found.score, 2), found.proved
    (Dag('moon; rain -> wet'), -62.38, True)
    """
    kinds = "a method is an object such as Orders(), HillClimb(), Exact() or PC()"
    chosen: Method = _checked(Orders() if method is None else method, "run", kinds)
    budget: Any = {"seed": seed, "time_limit": time_limit, "memory_limit": memory_limit, "threads": threads, "progress": progress}
    problem = problem_of(data, score, constraints, what=type(chosen).__name__, **budget)
    plan = Plan.of(problem, chosen)
    if dry_run:
        return plan
    check(plan, problem.memory_limit)
    finished = True
    try:
        outcome = outcome_of(chosen, problem)
    except (OutOfTime, KeyboardInterrupt) as stop:
        if problem.progress.best is None:
            if isinstance(stop, KeyboardInterrupt):
                raise
            raise FitError(f"the time limit of {time_limit:g} s was over before any graph was found") from None
        outcome, finished = Outcome(problem.progress.best), False
    finally:
        problem.progress.close()
    problem.progress.time_limit = None  # what follows is short, and must come to its end
    return Found.of(problem, chosen, outcome, finished and outcome.finished)


def problem_of(
    data: Any,
    score: Any,
    constraints: Constraints | None,
    *,
    seed: int = 0,
    time_limit: float | None = None,
    memory_limit: int | str | None = None,
    threads: int | None = None,
    progress: bool | None = None,
    what: str = "searching",
) -> Problem:
    """The problem in numbers; what is wrong with it is said here."""
    if constraints is not None and not isinstance(constraints, Constraints):
        raise FitError(f"constraints are Forbid(...) + Require(...) + Tiers(...), not {constraints!r}")
    seed = whole(seed, "a seed", 0)
    threads = None if threads is None else whole(threads, "threads", 1)
    checked_seconds(time_limit)
    rows = data if isinstance(data, Statistics) else scan(data)
    variables = _variables(rows)
    if constraints is not None:
        _refuse_left_out(constraints, rows)
    return Problem(
        rows,
        variables,
        _checked(BIC() if score is None else score, "local", "a score is LogLikelihood(), AIC(), BIC() or Evidence(prior)"),
        replace((constraints or Constraints()).rules(variables), names=tuple(v.name for v in variables)),
        seed,
        threads,
        None if memory_limit is None else float(checked_limit(memory_limit)),
        Progress(what, time_limit, progress),
        constraints,
    )


def outcome_of(method: Method, problem: Problem) -> Outcome:
    """What a method finds, within constraints that are about more than single edges, too."""
    constraints = problem.constraints or Constraints()
    pairs = [
        [(problem.number[a], problem.number[b]) for a, b in kind] for kind in (constraints.adjacent, constraints.not_ancestor)
    ]
    if not any(pairs):
        return method.run(problem)
    from suffice.structure.branching import branched

    return branched(method, problem, *pairs)


def _variables(data: Data | Statistics) -> tuple[Variable, ...]:
    """The variables to search over, by name; what cannot be searched is refused, what identifies rows is left out."""
    if isinstance(data, Statistics):
        known: Mapping[str, Variable] = data.variables
        left_out: set[str] = set()
    else:
        _refuse_missing(data)
        known, left_out = data.schema, set(data.identifiers)
    if data.weight <= 0:
        raise DataError("there are no rows to learn a graph from")
    if left_out:
        note(f"left out of the search, with nearly as many states as rows: {listed(sorted(left_out))}")
    variables = tuple(v for n, v in sorted(known.items()) if n not in left_out)
    if not variables:
        raise DataError("there are no columns to learn a graph from")
    return variables


def _refuse_left_out(constraints: Constraints, data: Data | Statistics) -> None:
    """A constraint on a column that is left out is a mistake that should be explained."""
    for name in data.identifiers if isinstance(data, Data) else ():
        if name in constraints.names:
            raise FitError(
                f"the constraints name {name!r}, which is left out of the search, as nearly every row has a state of its own; "
                f"declare its states to keep it: variables={{{name!r}: [...]}}"
            )


def _refuse_missing(data: Data) -> None:
    gaps = [f"{name!r} {n:,}" for name, n in data.missing.items() if n]
    if gaps:
        raise DataError(
            f"there are missing cells ({listed(gaps, style='str')}, of {data.n_rows:,} rows), and a search needs complete rows; "
            "no row is ever dropped: structural_em(data) and learn(data) search with missing cells"
        )


def _checked(value: Any, able: str, what: str) -> Any:
    """An object that can do what it is for."""
    if isinstance(value, type) or not hasattr(value, able):
        raise FitError(f"{what}, not {value!r}")
    return value
