"""The first steps of sequences, where not all lags exist: each is searched by itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from suffice.errors import DataError, FitError, GraphError, note
from suffice.graphs import Dag
from suffice.structure.lagged.windows import StepWindow
from suffice.structure.results.found import Found

FEW = 10
"""Sequences below which the graph of a single step says nothing."""


def with_first_steps(found: Found, window: StepWindow, ask: Callable[[StepWindow], Found]) -> Found:
    """What was found, with what `ask` finds at each of the steps that lack a lag of the template."""
    try:
        n_steps = found.template.order
    except GraphError:  # tests that contradict each other: there is a class, but no template
        return found
    if not found.finished:
        note(
            "the search was stopped, so that the first steps were not searched apart: parents before the start are left out there"
        )
        return found
    if n_steps and (few := min(_sequences_at(window, t) for t in range(n_steps))) < FEW:
        note(
            f"of fewer than {FEW} sequences ({few}) the first steps are not searched apart: parents before the start are left out"
        )
    first = tuple(_search_step(found, window.at(t), t, ask) for t in range(n_steps))
    return replace(found, first=first)


def method_at_other_steps(method: Any) -> Any:
    """The method for steps with fewer columns: where to start was said for all of them."""
    return replace(method, start=None) if getattr(method, "start", None) is not None else method


def _sequences_at(window: StepWindow, t: int) -> int:
    return int((window.sequences.lengths > t).sum())


def _search_step(found: Found, window: StepWindow, t: int, ask: Callable[[StepWindow], Found]) -> Found | None:
    """What is found at step t; None where the template says what holds there."""
    if _sequences_at(window, t) < FEW:
        return None
    try:
        return _like(found, ask(window), t)
    except (FitError, DataError) as error:
        note(f"step {t} is not searched apart ({error.said}): parents before the start are left out there")
        return None


def _like(found: Found, here: Found, t: int) -> Found:
    """What was found at step t, as the template has it where the data cannot tell the two apart."""
    if here.score is None:
        return here
    problem, template = here.problem, found.template
    same = Dag({x: template.parents_at(x, t) if x in template.nodes else () for x in here.names})
    parents = tuple(problem.parents(same))
    one_way = [(c, p) for p, c in same.edges if problem.is_one_way(problem.number[p], problem.number[c])]
    alike = problem.rules_of(here.method).permits(parents) and same.cpdag(one_way) == here.cpdag
    score = problem.scores.total(parents) if alike else -float("inf")
    return replace(here, _parents=parents, score=score) if score >= here.score - problem.scores.tie(here.score) else here
