"""Regressions in structural EM: which rows they can have, and what the completed rows say of them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

from suffice.engines.scan import scan
from suffice.errors import FitError, listing
from suffice.errors.remedies import BY_EM, forbidden_edge
from suffice.families.named_families import families_of, for_search
from suffice.families.regressions.fitted import Pass
from suffice.graphs import Dag
from suffice.learning.complete.irls import maximise
from suffice.learning.incomplete.objective import NoEstimate
from suffice.learning.incomplete.task import Task
from suffice.models.networks import BayesNet
from suffice.models.parts.stacked_rows import log_likelihood
from suffice.statistics import Statistics
from suffice.structure.problem import Problem
from suffice.structure.search import refuse_left_out
from suffice.variables import Finite


def with_families(data: Any, families: Any, start: BayesNet | None) -> tuple[Any, dict[str, Any]]:
    """The rows, with columns as families need them, and the families that are regressions; a network to start with brings its
    own."""
    families = families_of(start, families)
    if not families or isinstance(data, Statistics):  # statistics are refused later, with or without families
        return data, {}
    rows, regressions = for_search(scan(data), families)
    refuse_left_out(dict.fromkeys(regressions, "families name"), rows)
    return rows, regressions


def refuse_lost_numbers(problem: Problem, missing: Mapping[str, int]) -> None:
    """Refuse missing numbers that a regression is of, or may get as parents: their means do not say all of them."""
    lost = [i for i, v in enumerate(problem.variables) if not isinstance(v, Finite) and missing.get(v.name)]
    names, rules = problem.names, problem.rules
    what = {child: f"the regression of {names[child]!r} ({type(f).__name__})" for child, f in problem.regressions.items()}
    for child, i in product(what, lost):
        if i == child or rules.required[child, i]:
            raise FitError(
                f"cells of {names[i]!r} are missing, a number that {what[child]} needs, and structural EM completes only states "
                f"there: leave the column out; {BY_EM} integrates numbers, for a graph that is given"
            )
    for child in what:
        if own := [names[i] for i in lost if rules.allowed[child, i]]:
            raise FitError(
                f"cells of {listing(own)} are missing, numbers that {what[child]} may get as parents, and structural EM "
                f"completes only states there: leave them out, or forbid these edges, {forbidden_edge(own[0], names[child])}; "
                f"{BY_EM} integrates numbers, for a graph that is given"
            )


def regressions_of(dag: Dag, task: Task, completed: Any) -> dict[str, Any]:
    """The regressions of a graph, fitted to completed rows."""
    found: dict[str, Any] = {}
    for name, family in task.families.items():
        parents = [task.variables[p] for p in dag.parents(name)]
        try:
            found[name] = maximise(task.variables[name], parents, completed, family, sample=False)
        except FitError as error:
            raise NoEstimate(name, error.said) from None
    return found


def log_likelihood_of(model: BayesNet, statistics: Statistics, completed: Any) -> float:
    """ln p of completed rows: of regressions row by row, of other nodes from their statistics."""
    regressions = [n for n in model if model[n].is_regression]
    total = sum(completed.fold(Pass(log_likelihood, (model[n],))) for n in regressions)
    return float(total + sum(model[n].log_likelihood(statistics.answer(model[n].needs)) for n in model if n not in regressions))
