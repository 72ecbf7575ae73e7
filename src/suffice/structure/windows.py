"""Windows: steps of sequences as rows to search, in which the steps before each are columns that may be parents only; and
their first steps, where not all lags exist: each is searched by itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from suffice.basis.variables import Real
from suffice.engines.data import Data
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, GraphError, listing, nearest, note, whole
from suffice.errors.remedies import Remedy
from suffice.graphs import Dag
from suffice.graphs.lagged import relative_name, variable_and_lag
from suffice.graphs.paths import chain
from suffice.graphs.text import Edge, show
from suffice.structure.constraints import Adjacent, Candidates, Constraints, Forbid, MaxParents, NotAncestor, Require, Tiers
from suffice.structure.results.found import Found


@dataclass(frozen=True, eq=False)
class StepWindow:
    """The steps of sequences from `first` to `last`, each with the columns of the steps before it that `lags` allows.

    >>> from suffice import sequences
    >>> window = StepWindow.of(sequences({"x": list("abaab"), "y": list("uvvuu")}), {"x": 2})
    >>> window.names, window.past, window.data.n_rows
    (('x', 'x[-1]', 'x[-2]', 'y'), ('x[-1]', 'x[-2]'), 3)
    """

    sequences: Sequences
    lags: Mapping[str, int]
    """The columns that are searched, and how many steps back each is looked at."""
    first: int
    last: int | None = None

    @staticmethod
    def of(sequences: Any, lags: Any = None) -> StepWindow:
        """All steps that have every lag; `lags` is a number of steps for all columns, or for some, {column: steps}."""
        if not isinstance(sequences, Sequences):
            raise DataError("lags= need sequences: search(sequences(data, by, order), lags=...)")
        names = _columns_to_search(sequences)
        if isinstance(lags, Mapping):
            for name in lags:
                if name not in names:
                    left_out, lacking = "it is left out of the search", f"there is no such column{nearest(str(name), names)}"
                    raise FitError(f"lags name {show(name)}, but {left_out if name in sequences.columns else lacking}")
            steps = {name: _steps(lags.get(name, 0), f"the lag of {name!r}") for name in names}
        else:
            steps = dict.fromkeys(names, 1 if lags is None else _steps(lags, "lags="))
        if gaps := [f"{name!r} {n:,}" for name, n in sequences.select(names).missing.items() if n]:
            raise DataError(
                f"structure with hidden variables or missing cells of sequences is not attempted: {listing(gaps, style='str')}, "
                f"of {sequences.n_steps:,} steps, are missing; {Remedy('em(template, sequences)', 'suffice fit')} learns the "
                f"parameters of a template with them, and {Remedy('impute(sequences)', 'suffice smooth')} of what it learned "
                "fills them in"
            )
        most = max(steps.values())
        longest = int(sequences.lengths.max(initial=0))
        if longest <= most:
            raise DataError(
                f"lags of up to {most} steps need a sequence of at least {most + 1} steps, and the longest has {longest}; "
                "take smaller lags"
            )
        return StepWindow(sequences.select(names), steps, most)

    def at(self, place: int) -> StepWindow:
        """The steps at one place of their sequences, with the lags that exist there."""
        return replace(self, lags={name: min(k, place) for name, k in self.lags.items()}, first=place, last=place)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, sorted."""
        return tuple(sorted(relative_name(name, k) for name, most in self.lags.items() for k in range(most + 1)))

    @property
    def past(self) -> tuple[str, ...]:
        """Those of steps before the present one."""
        return tuple(name for name in self.names if name not in self.lags)

    @cached_property
    def data(self) -> Data:
        """The rows. Those with finite columns, over which a search passes often, are kept near."""
        rows = self.sequences.lagged({name: variable_and_lag(name) for name in self.names}, self.first, self.last)
        return rows if all(isinstance(v, Real) for v in self.sequences.schema.values()) else rows.hold()

    def constraints(self, known: Constraints | None) -> Constraints:
        """What is known, as far as it is about these columns, and that nothing leads into the past."""
        given = known or Constraints()
        for a, b in given.required:
            if b in self.past:
                raise GraphError(f"the edge {chain((a, b))} is required, but it leads into the past")
        parts = given if self.last is None else among(given, self.names)
        return parts + Candidates(dict.fromkeys(self.past, ())) if self.past else parts


def among(constraints: Constraints, names: Collection[str]) -> Constraints:
    """The constraints as far as they are about these names only."""

    def both(pairs: Collection[Edge]) -> list[Edge]:
        return [pair for pair in pairs if set(pair) <= set(names)]

    by_name = {name: most for name, most in constraints.max_parents_of if name in names}
    lists = {c: [p for p in parents if p in names] for c, parents in constraints.candidates if c in names}
    tiers = [([[x for x in tier if x in names] for tier in t.tiers], t.within) for t in constraints.tiers]
    parts: list[Constraints] = [Forbid(*both(constraints.forbidden)), Require(*both(constraints.required))]
    parts += [Adjacent(*both(constraints.adjacent)), NotAncestor(*both(constraints.not_ancestor)), Candidates(lists)]
    parts += [Tiers(*filter(None, kept), within=within) for kept, within in tiers if any(kept)]
    if constraints.max_parents is not None or by_name:
        parts.append(MaxParents(constraints.max_parents, by_name))
    return Constraints(*parts)


def _columns_to_search(sequences: Sequences) -> tuple[str, ...]:
    """The columns without those that identify steps."""
    left_out = set(sequences.data.identifiers)
    if left_out:
        note(f"left out of the search, with nearly as many states as steps: {listing(sorted(left_out))}")
    names = tuple(sorted(n for n in sequences.columns if n not in left_out))
    if not names:
        raise DataError("there are no columns to learn a graph from")
    for name in names:
        try:
            lagged = variable_and_lag(name)[1]
        except GraphError:
            lagged = 1
        if lagged:
            raise DataError(f"the column {name!r} has a name that means a step of another column; rename it")
    return names


def _steps(value: Any, what: str) -> int:
    try:
        return whole(value, what, 0)
    except FitError as error:
        raise FitError(f"{error}: how many steps back parents may lie, or of each column, {{'x': 2}}") from None


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
    n_sequences = [int((window.sequences.lengths > t).sum()) for t in range(n_steps)]
    if (few := min(n_sequences, default=FEW)) < FEW:
        note(
            f"of fewer than {FEW} sequences ({few}) the first steps are not searched apart: parents before the start are left out"
        )
    first: list[Found | None] = [None] * n_steps
    for t in range(n_steps):
        try:
            if n_sequences[t] >= FEW:
                first[t] = _like(found, ask(window.at(t)), t)
        except (FitError, DataError) as error:
            note(f"step {t} is not searched apart ({error.said}): parents before the start are left out there")
    return replace(found, first=tuple(first))


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
