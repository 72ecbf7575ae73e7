"""The result of EM: the best network, its trace, where every start led to, and what its rows still say."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.errors import ModelError
from suffice.iteration import Run
from suffice.learning.incomplete.problem import ParameterProblem
from suffice.models.networks import BayesNet
from suffice.output.display import html_table, text_table
from suffice.statistics import Statistics

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from suffice.learning.ascent.information import Information
    from suffice.models.chain import Chain
    from suffice.models.parts.parameter_covariance import ParameterCovariance

    Learned = TypeVar("Learned", bound=BayesNet | Chain, default=BayesNet, covariant=True)
else:  # a default is for type checkers: from Python 3.13 on, typing has it, too
    from typing import TypeVar

    Learned = TypeVar("Learned", covariant=True)

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
        from suffice.learning.ascent.information import observed_information

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
        rows: list[list[object]] = [
            [
                o.start + 1,
                f"{o.objective:,.4f}",
                o.iterations,
                "yes" if o.converged else o.stopped or "no",
                "other places" * o.labels,
            ]
            for o in self.optima
        ]
        return ["start", "objective", "iterations", "converged", "labels"], rows


def spread(optima: tuple[Optimum, ...]) -> str:
    """How far apart the optima of several starts are, in a sentence."""
    ended = [o for o in optima if np.isfinite(o.objective)]
    best = ended[0].objective
    same = sum(best - o.objective <= SAME * (1.0 + 1e-6 * abs(best)) for o in ended)
    lowest = min(o.objective for o in ended)
    lost = len(optima) - len(ended)
    return f"{same} of {len(optima)} starts led to the best optimum; the objectives lie between {lowest:,.4f} and {best:,.4f}" + (
        f"; {lost} ended early" if lost else ""
    )


def covariance_at(problem: ParameterProblem, parameters: Any) -> ParameterCovariance:
    """The covariance of estimates, as a network takes it that finds it when it is first needed, and keeps the reduced rows until
    then."""
    from suffice.learning.ascent.information import observed_information

    return observed_information(problem, parameters).parameter_covariance
