"""How weights were found: one record for each iteration, or pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class WeightStep(NamedTuple):
    """One iteration: the objective, which is minimised, with its penalty; the log-likelihood (or less the loss) without; at most
    how much the optimum is below the objective, NaN where nothing is known; the weights that are not zero; seconds."""

    objective: float
    log_likelihood: float
    bound: float
    n_active: int
    seconds: float


@dataclass(frozen=True)
class WeightRun:
    """The trace of a fit, and whether it came to its end.

    >>> WeightRun((WeightStep(12.5, -12.0, 0.1, 3, 0.01),), converged=True).objective
    12.5
    """

    trace: tuple[WeightStep, ...]
    converged: bool

    @property
    def n_iterations(self) -> int:
        return max(0, len(self.trace) - 1)

    @property
    def objective(self) -> float:
        """The objective at the end."""
        return self.trace[-1].objective if self.trace else float("nan")

    @property
    def log_likelihood(self) -> float:
        return self.trace[-1].log_likelihood if self.trace else float("nan")

    @property
    def bound(self) -> float:
        """At most how much the optimum is below the objective."""
        return self.trace[-1].bound if self.trace else float("nan")

    def headline(self) -> str:
        """How it ended, in a line."""
        how = "converged" if self.converged else "did not converge"
        seconds = self.trace[-1].seconds if self.trace else 0.0
        certain = f", at most {self.bound:.2g} above the optimum" if self.bound == self.bound else ""
        return f"{how} in {self.n_iterations:,} iterations, {seconds:.2f} s: objective {self.objective:,.4f}{certain}"

    def __repr__(self) -> str:
        return f"WeightRun {self.headline()}"
