"""Which judge of independence is the fastest for some data and a test."""

from __future__ import annotations

from suffice.statistics import Request
from suffice.structure.problem import Problem
from suffice.structure.tests.independence import FisherZ, IndependenceTest, LikelihoodRatio, correlations
from suffice.structure.tests.separation import CorrelationJudge, Judge, judge_of_tables


def judge_of(problem: Problem, test: IndependenceTest) -> Judge:
    """The fastest judge for this data."""
    data, names = problem.data, problem.names
    if type(test) is FisherZ:
        moments = data.gather([Request((), names)], threads=problem.threads).moments((), names)
        return CorrelationJudge(correlations(moments), moments.total, problem.threads)
    if isinstance(test, LikelihoodRatio):
        from suffice.structure.tests.mixed_judge import MixedJudge

        return MixedJudge(problem)
    return judge_of_tables(problem, test)
