"""Credible intervals of answers: the parameters are drawn from their posterior, and each draw is asked the question.

The point is the answer at the posterior means of the parameters; the interval's ends are quantiles of the answers at the
draws. Parameters that cannot change the answer are not drawn, and what the evidence says is cut out of the tables before.

Parameters that were learned from incomplete rows are drawn together, from a normal distribution of their coordinates whose
covariance is the inverse of the observed information (`parameter_covariance`). The point is at their estimates.

Regressions that were fitted by themselves are drawn by the normal approximation of their posterior, N(estimate, covariance), with
dispersions and the variance of a linear regression held at their estimates (`parameter_draws`); the point is at their estimates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.errors import ModelError, TooLarge, checked_level, quantity, whole
from suffice.families.protocol.family import Interval, Mean
from suffice.inference.finite.network import Array
from suffice.iteration import Progress
from suffice.models.parts.network_parts import NetworkParts, SomeNetwork
from suffice.models.parts.parameter_covariance import ParameterCovariance
from suffice.models.questions import question as asking
from suffice.models.questions.evidence import Observed, impossible
from suffice.models.questions.intervals.redrawn import Redrawn
from suffice.models.questions.question import Question
from suffice.statistics.counts import n_configurations

FEWEST = 1_000
MAX_NUMBERS = 2**25
"""Answers times draws: 256 MiB."""


@one_blas_thread
def answer_with_interval(
    bn: NetworkParts,
    targets: Sequence[str],
    evidence: Observed,
    level: float,
    draws: int = FEWEST,
    seed: int = 0,
    clock: Progress[Any] | None = None,
) -> Any:
    """p(targets | evidence) at the posterior means, with the equal-tailed interval of each probability, or of each real mean; the
    clock, if there is one, is looked at between draws.

    >>> from suffice import Dirichlet, fit
    >>> from suffice.models.questions.evidence import evidence_codes
    >>> bn = fit("x -> y", {"x": ["a", "b", "b"], "y": ["a", "a", "b"]}, prior=Dirichlet(1))
    >>> answer = answer_with_interval(bn, ["x"], evidence_codes(bn, {"y": "b"}), 0.9)
    >>> answer.probs.round(2), answer.interval.lower.round(1), answer.interval.upper.round(1)
    (array([0.31, 0.69]), array([0. , 0.2]), array([0.8, 1. ]))
    """
    tail = (1.0 - checked_level(level)) / 2.0
    question = Question.of(bn, targets, evidence)
    size = len(question.reals) or n_configurations(question.finite)
    check_draws(draws, size)
    redrawn = Redrawn(question, whole(seed, "a seed", 0, ModelError))
    point: Any = asking.exact_answer(at_means(bn, question), targets, evidence)
    answers = redrawn.answers(draws, size, clock)
    possible = answers[~np.isnan(answers).any(axis=1)]
    if not len(possible):
        raise impossible(evidence)
    interval, error = quantiles(possible, tail)
    how = how_found(question, level, draws, draws - len(possible), error, redrawn.joint)
    if question.reals:
        one = len(question.reals) == 1
        return replace(point, mean_interval=Interval(*(end[0] if one else end for end in interval)), how=how)
    shape = point.probs.shape
    return replace(point, interval=Interval(*(end.reshape(shape) for end in interval)), how=how)


def quantiles(answers: Array, tail: float) -> tuple[Interval, float]:
    """The quantiles tail and 1 − tail of each column, and the largest of their standard errors.

    The error of a quantile q is half the way between the quantiles q ± √(q(1 − q)/n): so far the number of draws below the
    true one may be off, which is binomial (David & Nagaraja 2003, Order Statistics, 3rd ed., p. 159).
    """
    step = math.sqrt(tail * (1.0 - tail) / len(answers))
    at = [max(0.0, tail - step), tail, tail + step]
    low = np.quantile(answers, at, axis=0)
    high = np.quantile(answers, [1.0 - q for q in at], axis=0)
    error = max(float((low[2] - low[0]).max()), float((high[0] - high[2]).max())) / 2.0
    return Interval(low[1], high[1]), error


def how_found(question: Question, level: float, draws: int, lost: int, error: float, joint: ParameterCovariance | None) -> str:
    bn = question.bn
    regressions = [bn[n].is_regression for n in question.nodes]
    if joint is not None or (regressions and all(regressions)):
        point = "exact at the estimates"
    else:
        modes = "" if bn.estimate == Mean() else " (not the modes, which the network has)"
        point = f"exact at the posterior means{modes}" + (" and the estimates of regressions" if any(regressions) else "")
    without = f" less {lost:,} that rule the evidence out" if lost else ""
    normal = "" if joint is None else f" of {joint.kind}, by the {joint.how}"
    held = f"; {quantity(joint.n_held, 'parameter')} at 0, or that no row speaks for, held" if joint and joint.n_held else ""
    drawn = f"{draws:,} draws{normal}{without}{held}"
    return f"{point}; {100 * level:.10g} % interval from {drawn} (Monte-Carlo error of its ends {error:.2g})"


def at_means(bn: SomeNetwork, question: Question) -> SomeNetwork:
    """The network with the posterior means of the families that matter as their point values."""
    if bn.estimate == Mean():
        return bn
    cpds = {n: bn[n] for n in bn}
    for n in question.nodes:
        cpd = cpds[n]
        if cpd.imagined is not None:
            cpds[n] = cpd.family.estimate(cpd.child, cpd.parent_variables, cpd.seen, cpd.imagined, Mean())
    return bn.with_cpds(cpds)


def check_draws(draws: object, size: int) -> None:
    """Refuse too few draws, and more numbers than may be held."""
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < FEWEST:
        raise ModelError(f"the ends of an interval need at least {FEWEST:,} draws of the parameters, not {draws!r}")
    if draws * size > MAX_NUMBERS:
        raise TooLarge(f"{draws:,} draws of an answer of {size:,} numbers are {draws * size:,}; the limit is {MAX_NUMBERS:,}")
