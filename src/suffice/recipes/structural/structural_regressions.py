"""Regressions in structural EM: which rows they can have, and what the completed rows say of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from suffice.basis.variables import Finite, NotNormal
from suffice.engines.scan import scan
from suffice.errors import FitError, listing, note
from suffice.errors.remedies import BY_EM
from suffice.families.design import Pass
from suffice.families.named_families import families_of, for_search
from suffice.graphs import Dag
from suffice.incomplete.expectations import IncompleteRows
from suffice.incomplete.numbers.patterns import INTEGRATED, SUMMED
from suffice.learning.complete.irls import maximise
from suffice.learning.incomplete.objective import NoEstimate
from suffice.learning.incomplete.task import Task
from suffice.models.networks import BayesNet
from suffice.models.parts.sharing import log_likelihood
from suffice.statistics import Statistics
from suffice.structure.problem import Problem
from suffice.structure.scoring.regression_scores import seconds_each
from suffice.structure.search import refuse_left_out


def with_families(data: Any, families: Any, start: BayesNet | None) -> tuple[Any, dict[str, Any]]:
    """The rows, with columns as families need them, and the families that are regressions; a network to start with brings its
    own."""
    families = families_of(start, families)
    if not families or isinstance(data, Statistics):  # statistics are refused later, with or without families
        return data, {}
    rows, regressions = for_search(scan(data), families)
    refuse_left_out(dict.fromkeys(regressions, "families name"), rows)
    return rows, regressions


def lost_numbers(problem: Problem, missing: Mapping[str, int]) -> list[str]:
    """The numbers with missing cells of which means and variances do not say all: those that a regression is of, or may get as
    parents, and counts that may have children. A regression of numbers that are neither normal nor counts is refused."""
    lost = {i: v for i, v in enumerate(problem.variables) if not isinstance(v, Finite) and missing.get(v.name)}
    for child, family in problem.regressions.items():
        if child in lost and not family.normal and not isinstance(lost[child], NotNormal):
            raise FitError(
                f"cells of {problem.names[child]!r} are missing, a number that is {type(family).__name__} here, and structural "
                f"EM cannot complete it: leave the column out; {BY_EM} can, for a graph that is given"
            )
    possible = problem.rules.allowed | problem.rules.required
    children = {i: np.flatnonzero(possible[:, i]).tolist() for i in lost}
    curved = {i for i in lost if i in problem.regressions or not problem.regressions.keys().isdisjoint(children[i])}
    return [problem.names[i] for i, v in lost.items() if i in curved or (isinstance(v, NotNormal) and v.whole and children[i])]


def note_points(rows: IncompleteRows, names: Sequence[str], *, any_regressions: bool) -> None:
    """Say what stands for missing numbers, how many rows that makes, and how long a regression of these takes."""
    counts = [n for n in names if isinstance(rows.variables[n], NotNormal)]
    numbers, n = [n for n in names if n not in counts], rows.n_completed
    room = f"the rows become about {n:,.0f} completed ones"
    if any_regressions:
        room += f", of which a regression takes some {seconds_each(n):.2g} s"
    if counts:
        note(f"{SUMMED}: {listing(counts)} may have children, and {room}")
    if numbers:
        note(f"{INTEGRATED}: {listing(numbers)} may be parents there, and {room}")


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
