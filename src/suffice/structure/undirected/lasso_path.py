"""The path of a graphical lasso: a sparse precision for each penalty, from the largest down, each the start of the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.inference.numbers.sparse_precision import SparsePrecision, sparse_precision
from suffice.iteration import OutOfTime
from suffice.models.undirected.covariances import Covariances
from suffice.statistics import Statistics
from suffice.structure.undirected.penalties import Penalties

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LassoFit:
    """A sparse precision of some covariances, as a graph that can be judged."""

    seen: Covariances
    solution: SparsePrecision

    @cached_property
    def joined(self) -> npt.NDArray[np.bool_]:
        there: npt.NDArray[np.bool_] = self.solution.precision != 0.0
        np.fill_diagonal(there, False)
        return there

    @cached_property
    def n_parameters(self) -> int:
        return int(np.count_nonzero(self.joined)) // 2

    @property
    def n_pairs(self) -> float:
        return float(self.n_parameters)

    @property
    def deviance(self) -> float:
        """−n (log det Θ − tr R Θ)."""
        return self.seen.weight * (float(np.vdot(self.seen.matrix, self.solution.precision)) - self.solution.log_det)

    def log_likelihood(self, other: Covariances) -> float:
        """Σ log p(x) of other rows, in the units of the data."""
        spread = float(np.vdot(self.seen.of_others(other), self.solution.precision))
        log_det = self.solution.log_det - 2.0 * float(np.log(self.seen.scale).sum())
        return 0.5 * other.weight * (log_det - spread - len(self.seen.names) * LOG_2PI)


@dataclass(eq=False)
class LassoPath:
    """The fits of a graphical lasso on some rows, and on others when a way to choose among the penalties asks for them."""

    data: Data | Statistics
    seen: Covariances
    penalties: Penalties
    on: str
    gap: float
    seed: int = 0
    threads: int | None = None
    watch: Callable[[], None] = lambda: None
    fits: list[LassoFit] = field(default_factory=list)

    @property
    def weight(self) -> float:
        return self.seen.weight

    @property
    def n_variables(self) -> int:
        return len(self.seen.names)

    def solve(self) -> bool:
        """Fit each penalty; whether the time, or the user, allowed it for all of them."""
        try:
            for fit in self._fits(self.seen):
                self.fits.append(fit)
        except (OutOfTime, KeyboardInterrupt):
            if not self.fits:
                raise
            return False
        return True

    def again(self, data: Data) -> Sequence[LassoFit]:
        return list(self._fits(self._covariances(data)))

    def held_out(self, train: Data, test: Data) -> Array:
        other = self._covariances(test, checked=False)
        return np.array([fit.log_likelihood(other) for fit in self._fits(self._covariances(train))])

    def _covariances(self, data: Data, *, checked: bool = True) -> Covariances:
        return Covariances.of(data, self.seen.names, on=self.on, threads=1, checked=checked)

    def _fits(self, seen: Covariances) -> Iterator[LassoFit]:
        start: Array | None = None
        for k in range(len(self.penalties.multiples)):
            solution = sparse_precision(seen.matrix, self.penalties.at(k), start=start, gap=self.gap, watch=self.watch)
            start = solution.precision
            yield LassoFit(seen, solution)
