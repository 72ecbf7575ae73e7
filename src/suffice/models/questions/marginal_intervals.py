"""Intervals of all marginals: every node at the same draws of the parameters, or node by node, whichever should be cheaper.

What a draw costs is known before it is made: the numbers that are drawn, and the cells of the products by a greedy order of
elimination; for all nodes at once messages go up a tree and down again. One node depends only on a part of the network, which
may be small where the tree of all is large.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from suffice.basis.iteration import OutOfTime, Progress, checked_seconds
from suffice.basis.variables import Finite
from suffice.errors import FitError, ModelError, SufficeError, TooLarge, checked_level, listing, note, whole
from suffice.errors.remedies import name_of
from suffice.models.parts.network_parts import NetworkParts
from suffice.models.questions import exact, intervals
from suffice.models.questions.answers import Distribution, Marginals
from suffice.models.questions.intervals import DRAWING, DrawnFamilies, answer_with_interval
from suffice.models.questions.question import Observed, Question, is_observed

UP_AND_DOWN = 3.0
"""All marginals of a tree in products of one way."""

SECONDS = 5e-9
"""About what a cell of a product takes."""


def marginals_with_intervals(
    bn: NetworkParts,
    evidence: Observed,
    level: float,
    draws: int,
    seed: int,
    targets: Iterable[str] | None,
    time_limit: float | None,
) -> Marginals:
    """p(x | evidence) of every node, or of some, each with the interval that `query` gives it; what is observed has no width.

    A node whose answer can have no interval, or not within the limit, is told without one, with a note; if none can, whatever
    the time, the reason is refused."""
    level, seed = checked_level(level), whole(seed, "a seed", 0, ModelError)
    clock: Progress[Any] = Progress("intervals", checked_seconds(time_limit))
    found = exact.marginals(bn, evidence).of_some(targets)
    wanted = _Wanted(bn, found, evidence, level, draws, seed, clock)
    try:
        answers = wanted.answers()
    finally:
        clock.close()
    wanted.tell()
    return found.of_nodes(found, answers)


@dataclass
class _Wanted:
    """The intervals that are asked for, and what became of them."""

    bn: NetworkParts
    found: Marginals
    evidence: Observed
    level: float
    draws: int
    seed: int
    clock: Progress[Any]
    refused: dict[str, SufficeError] = field(default_factory=dict)
    late: dict[str, float] = field(default_factory=dict)
    """Nodes for which there was no time, and the seconds that they should take."""

    def answers(self) -> dict[str, Any]:
        """Those that could be found."""
        unknown = [n for n in self.found if not is_observed(self.bn, n, self.evidence)]
        answers: dict[str, Any] = {n: self.found[n].certain() for n in self.found if n not in unknown}
        together = self._together([n for n in unknown if isinstance(self.bn.variables[n], Finite)])
        whole = float("inf") if together is None else self._seconds(together.cost(UP_AND_DOWN))
        alone = self._alone(unknown, whole)
        if together is not None and sum(alone.values()) > whole and whole <= self.clock.left:
            answers |= self._all_at_once(together)
        how = (self.level, self.draws, self.seed, self.clock)
        for name in (n for n in alone if n not in answers):
            try:
                if alone[name] > self.clock.left:
                    raise OutOfTime
                self.clock.check(f"of {name}")
                answers[name] = answer_with_interval(self.bn, [name], self.evidence, *how)
            except OutOfTime:
                self.late[name] = alone[name]
            except (ModelError, FitError, TooLarge) as error:
                self.refused[name] = error
        if self.refused and len(self.refused) == len(unknown):
            raise next(iter(self.refused.values()))
        return answers

    def _seconds(self, cost: float) -> float:
        return cost * self.draws * SECONDS

    def _alone(self, names: Sequence[str], whole: float) -> dict[str, float]:
        """The seconds that each node by itself should take, the cheapest first. It is enough to know that they are more than
        all at once takes, if there is time for that; of nodes that come last only a lower bound is known."""
        questions = {name: Question.of(self.bn, [name], self.evidence) for name in names}
        least = {n: self._seconds(DRAWING * sum(self.bn[x].n_parameters for x in q.nodes)) for n, q in questions.items()}
        order, total, known = sorted(least, key=least.__getitem__), sum(least.values()), dict[str, float]()
        for name in order:
            if (total > whole and whole <= self.clock.left) or self.clock.left < (self.clock.time_limit or 0.0) / 2.0:
                break
            try:
                known[name] = self._seconds(DrawnFamilies(questions[name], self.seed).cost())
            except (ModelError, FitError, TooLarge):  # so that the reason is found at once
                known[name] = 0.0
            total += known[name] - least[name]
        return dict(sorted(known.items(), key=lambda item: item[1])) | {n: least[n] for n in order if n not in known}

    def _together(self, names: Sequence[str]) -> DrawnFamilies | None:
        """The finite nodes at the same draws of all parameters; None where some cannot be drawn so."""
        question = Question.of(self.bn, names, self.evidence)
        try:
            intervals.check_draws(self.draws, sum(v.n_states for v in question.finite))
            families = DrawnFamilies(question, self.seed)
        except (ModelError, FitError, TooLarge):
            return None
        return families if names and families.joint is None else None

    def _all_at_once(self, families: DrawnFamilies) -> dict[str, Distribution]:
        """None, where draws rule the evidence out, which only concerns the nodes that depend on it, or the time is over."""
        try:
            drawn = families.all_answers(self.draws, self.clock)
        except OutOfTime:
            return {}
        if any(np.isnan(each).any() for each in drawn.values()):
            return {}
        points, answers = exact.marginals(intervals.at_means(self.bn, families.question), self.evidence), {}
        for name in (n for n in drawn if n in self.found):
            interval, error = intervals.quantiles(drawn[name], (1.0 - self.level) / 2.0)
            how = intervals.how_in_words(Question.of(self.bn, [name], self.evidence), self.level, self.draws, 0, error, None)
            answers[name] = replace(points[name], interval=interval, how=how)
        return answers

    def tell(self) -> None:
        """Which nodes have no interval, and why."""
        if self.refused:
            note(f"{listing(self.refused)} told without an interval: {next(iter(self.refused.values()))}")
        if self.late:
            limit, seconds = f"{name_of('time_limit')} of {self.clock.time_limit:g} s", sum(self.late.values())
            size, unit, digits = (1.0, "s", 0) if seconds < 120 else (60.0, "min", 0) if seconds < 7200 else (3600.0, "h", 1)
            about = "less than a second" if seconds < 1.0 else f"about {seconds / size:,.{digits}f} {unit}"
            note(
                f"{listing(self.late)} told without an interval, as the {limit} is too short: this should take {about} or more; "
                "ask for fewer nodes, or give more time"
            )
