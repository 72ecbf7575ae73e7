"""The result of EM: the best network, its trace, where every start led to, and what its rows still say.

Before it, what EM will cost: the rows are reduced and one step is taken and timed; nothing is learned.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import Run
from suffice.basis.output.display import OneTable, html_table, text_table
from suffice.basis.variables import Finite
from suffice.engines.steps.blocks import used_memory
from suffice.errors import ModelError, bytes_in_words, quantity
from suffice.learning.incomplete.climb import evaluate
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.models.networks import BayesNet
from suffice.statistics import Statistics

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from suffice.learning.incomplete.information import Information
    from suffice.models.chain import Chain
    from suffice.models.parts.parameter_covariance import ParameterCovariance

    Learned = TypeVar("Learned", bound=BayesNet | Chain, default=BayesNet, covariant=True)
else:  # a default is for type checkers: from Python 3.13 on, typing has it, too
    from typing import TypeVar

    Learned = TypeVar("Learned", covariant=True)

FEWEST = 0.02
"""A step is repeated until so many seconds are over: the first is slow."""

SAME = 1e-3
"""Optima whose objectives differ by at most this are the same."""


class Optimum(NamedTuple):
    """Where a start led to. `labels`: the hidden states have other places than in the best; `stopped`: why it ended early."""

    start: int
    objective: float
    log_likelihood: float
    iterations: int
    converged: bool
    labels: bool = False
    stopped: str = ""


@dataclass(frozen=True, eq=False)
class EmRun(Run[Learned]):
    """What `em` returns: the best network or chain, its trace, whether it converged, and where every start led to, best first.

    >>> from suffice import BDeu, Finite, em
    >>> rows = {"cough": list("nnyy") * 5, "fever": list("nnyn") * 5}
    >>> run = em("ill -> cough; ill -> fever", rows, hidden=[Finite("ill", ["no", "yes"])], prior=BDeu(1), starts=3)
    >>> run.converged, len(run.optima), run.optima[0].objective == run.objective
    (True, 3, True)
    """

    optima: tuple[Optimum, ...] = ()
    problem: Any = field(default=None, repr=False)
    point: Any = field(default=None, repr=False)

    @property
    def expected(self) -> Statistics:
        """The statistics that the data is expected to have under the model: fractional counts, moments of what is missing."""
        self._require_rows()
        statistics: Statistics = self.problem.statistics(self.point.statistic)
        return statistics

    @one_blas_thread
    def information(self) -> Information:
        """Standard errors, intervals and the fraction of missing information, from the observed information.

        >>> from suffice import em
        >>> run = em("x -> y", {"x": ["a", "b", "b", "a"] * 9, "y": ["u", None, "v", "v"] * 9})
        >>> run.information().standard_errors["x"].round(4)
        array([0.0833, 0.0833])
        """
        from suffice.learning.incomplete.information import observed_information

        self._require_rows()
        return observed_information(self.problem, self.point.parameters)

    def _require_rows(self) -> None:
        if self.problem is None:
            raise ModelError("a run that was pickled has left its data behind: ask for information() or expected before")

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "problem": None, "point": None}

    def __repr__(self) -> str:
        lines = [f"EM {self.headline()}"]
        if len(self.optima) > 1:
            lines += [spread(self.optima), text_table(*self._table())]
        return "\n".join([*lines, self.model._headline()])

    def _repr_html_(self) -> str:
        return html_table(*self._table(), caption=f"EM {self.headline()}") + self.model._repr_html_()

    def _table(self) -> tuple[list[str], list[list[object]]]:
        ends = ("yes" if o.converged else o.stopped or "no" for o in self.optima)
        rows: list[list[object]] = [
            [o.start + 1, f"{o.objective:,.4f}", o.iterations, end, "other places" * o.labels]
            for o, end in zip(self.optima, ends, strict=True)
        ]
        return ["start", "objective", "iterations", "converged", "labels"], rows


def spread(optima: tuple[Optimum, ...]) -> str:
    """How far apart the optima of several starts are, in a sentence."""
    ended = [o for o in optima if np.isfinite(o.objective)]
    best = ended[0].objective
    same = sum(best - o.objective <= SAME * (1.0 + 1e-6 * abs(best)) for o in ended)
    lowest = min(o.objective for o in ended)
    lost = f"; {len(optima) - len(ended)} ended early" if len(ended) < len(optima) else ""
    ends = [f"{lowest:,.4f}", f"{best:,.4f}"]
    between = f"; the objectives lie between {' and '.join(ends)}" if ends[0] != ends[1] else ""
    return f"{same} of {len(optima)} starts led to the best optimum{between}{lost}"


def covariance_at(problem: ParameterProblem, parameters: Any) -> ParameterCovariance:
    """The covariance of estimates, for a network that finds it when first needed and keeps the reduced rows until then."""
    from suffice.learning.incomplete.information import observed_information

    return observed_information(problem, parameters).parameter_covariance


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
        point, each, begin = evaluate(problem, problem.first()), np.inf, time.perf_counter()
        while time.perf_counter() - begin <= FEWEST or each == np.inf:  # of the fastest: one includes what is made once
            start = time.perf_counter()
            point = evaluate(problem, problem.maximise(point.statistic))
            each = min(each, time.perf_counter() - start)
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


def n_bytes(value: Any, seen: set[int] | None = None) -> int:
    """The memory of all arrays in a value, each once."""
    seen = set() if seen is None else seen
    if id(value) in seen:
        return 0
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        return value.nbytes
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    parts = value.values() if isinstance(value, Mapping) else value if isinstance(value, (list, tuple)) else ()
    return sum(n_bytes(x, seen) for x in parts)
