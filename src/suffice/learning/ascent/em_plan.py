"""The cost of EM, estimated before it: the rows are reduced and one step is taken and timed; nothing is learned."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from suffice.engines.steps.blocks import used_memory
from suffice.errors import bytes_in_words, quantity
from suffice.learning.ascent.climb import evaluate
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.output.display import OneTable
from suffice.variables import Finite

FEWEST = 0.02
"""A step is repeated until so many seconds are over: the first is slow."""


@dataclass(frozen=True, repr=False)
class EmPlan(OneTable):
    """What EM will cost. How many iterations it needs is known only when it ends: their number and the seconds are upper ends.

    >>> from suffice import em
    >>> plan = em("a -> b", {"a": ["x", "y", None, "y"] * 5, "b": ["u", "v"] * 10}, dry_run=True)
    >>> plan.n_rows, plan.n_variables, plan.parameters, plan.starts, plan.iterations
    (20.0, 2, 3, 1, 500)
    """

    n_rows: float
    n_variables: int
    parameters: int
    """Free parameters."""
    passes: int
    """Passes over the rows before the first iteration,"""
    passes_an_iteration: int
    """and for each: 0 where it runs over what rows were reduced to, which is here."""
    starts: int
    iterations: int
    """Iterations of a start, at most."""
    bytes: float
    """Memory of the reduced rows, which all iterations share."""
    process_bytes: float
    """What the process takes now, the rows that it holds and the reduced ones included."""
    seconds_an_iteration: float
    """Of one E-step and M-step, as measured."""
    seconds: float
    """At most, for all starts."""
    information_steps: int
    """E-steps that the observed information takes at most, for standard errors and intervals."""
    information_bytes: float
    """Its memory, at most."""

    @staticmethod
    def of(problem: ParameterProblem, starts: int, max_iter: int) -> EmPlan:
        """The cost of climbing from so many starts."""
        each = _seconds_of_a_step(problem)
        cpds = problem.cpds(problem.first())
        again = {node for tie in problem.ties for node in tie.nodes[1:]}
        n = sum(cpd.n_parameters for name, cpd in cpds.items() if name not in again)
        reals = any(not isinstance(v, Finite) for v in problem.variables.values())
        return EmPlan(
            n_rows=problem.weight,
            n_variables=len(problem.variables),
            parameters=n,
            passes=3 if reals else 2,  # to see what the columns are, the units of numbers, and the distinct rows
            passes_an_iteration=problem.components.passes,
            starts=starts,
            iterations=max_iter,
            bytes=float(n_bytes(problem.components)),
            process_bytes=float(used_memory()),
            seconds_an_iteration=each,
            seconds=each * starts * max_iter,
            information_steps=2 * n,
            information_bytes=8.0 * n * n,
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers by name, for JSON."""
        return asdict(self)

    def _table(self) -> tuple[list[str], list[list[object]]]:
        steps = f"at most {quantity(self.information_steps, 'E-step')}, {bytes_in_words(self.information_bytes)}"
        return ["what", "estimate"], [
            ["method", "EM"],
            ["rows", f"{self.n_rows:,.10g}"],
            ["variables", f"{self.n_variables:,}"],
            ["parameters", f"{self.parameters:,}"],
            ["scans", f"{self.passes:,}" + (", and 1 an iteration" if self.passes_an_iteration else "")],
            ["starts", f"{self.starts:,}"],
            ["iterations", f"at most {self.iterations:,} a start"],
            ["memory", f"{bytes_in_words(self.bytes)} beside the data"],
            ["process", f"{bytes_in_words(self.process_bytes)} in all"],
            ["seconds", f"about {self.seconds_an_iteration:.2g} an iteration, at most about {self.seconds:.2g}"],
            ["information", steps],
        ]


def _seconds_of_a_step(problem: ParameterProblem) -> float:
    """Of the fastest of some steps: one includes what is made once."""
    point, least, begin = evaluate(problem, problem.first()), np.inf, time.perf_counter()
    while True:
        start = time.perf_counter()
        point = evaluate(problem, problem.maximise(point.statistic))
        least = min(least, time.perf_counter() - start)
        if time.perf_counter() - begin > FEWEST:
            return least


def n_bytes(value: Any, seen: set[int] | None = None) -> int:
    """The memory of all arrays in a value, each once.

    >>> x = np.zeros(4)
    >>> n_bytes({"a": x, "b": (x, np.zeros(1))})
    40
    """
    seen = set() if seen is None else seen
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Mapping):
        return sum(n_bytes(x, seen) for x in value.values())
    if isinstance(value, (list, tuple)):
        return sum(n_bytes(x, seen) for x in value)
    if is_dataclass(value) and not isinstance(value, type):
        return sum(n_bytes(getattr(value, f.name), seen) for f in fields(value))
    return 0
