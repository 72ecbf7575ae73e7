"""Draws as an answer: what is known of real variables when a network was sampled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from suffice.blas import one_blas_thread
from suffice.display import Rows
from suffice.errors import ModelError
from suffice.families.family import frame
from suffice.inference.network import Array, Ints
from suffice.inference.sampling import Average, Chained, Weighted
from suffice.models.answers import Distribution, and_more, apart
from suffice.models.mixture import NumberAnswer


@dataclass(frozen=True, eq=False, repr=False)
class Samples(NumberAnswer):
    """p(targets | given) of real targets as draws: `values` has a line per draw and a column per target, `weights` sum to 1.

    It answers what a `Mixture` does, and `error` is the standard error of the mean. With finite targets asked for beside the
    real ones, `finite` is their distribution, `cells` the cell of it that each draw is in, and `answer["yes"]` are the draws
    given a state. `asked` are all targets in the order of the question.

    >>> drawn = Samples(("y",), np.array([[1.0], [2.0], [3.0]]), Weighted(np.log([0.25, 0.5, 0.25])))
    >>> drawn.mean, round(drawn.sd, 6), drawn.quantile(0.5), round(drawn.effective_sample_size, 6)
    (2.0, 0.707107, 2.0, 2.666667)
    """

    names: tuple[str, ...]
    values: Array
    drawn: Weighted | Chained
    finite: Distribution | None = None
    cells: Ints | None = None
    among: Array | None = None
    how: str = "drawn"
    given: Mapping[str, object] = field(default_factory=dict)
    asked: tuple[str, ...] = ()

    @cached_property
    @one_blas_thread
    def weights(self) -> Array:
        w = self.drawn.weights
        return w if self.among is None else np.asarray(w * self.among / (w @ self.among))

    @cached_property
    def _averages(self) -> list[Average]:
        return [self.drawn.mean(column, self.among) for column in self.values.T]

    @property
    def mean(self) -> Any:
        """A number; for several targets an array in their order."""
        return self._simple([a.mean for a in self._averages])

    @property
    def error(self) -> Any:
        """The standard error of the mean: a number; for several targets an array in their order."""
        return self._simple([a.error for a in self._averages])

    @property
    def effective_sample_size(self) -> float:
        """How many independent draws would tell the mean as well; of several targets the smallest."""
        return min(a.effective_sample_size for a in self._averages)

    @property
    @one_blas_thread
    def covariance(self) -> Array:
        """That of the targets."""
        off = self.values - np.array([a.mean for a in self._averages])
        return np.asarray((off * self.weights[:, None]).T @ off)

    @property
    def variance(self) -> Any:
        """A number; for several targets an array in their order."""
        return self._simple(np.diag(self.covariance))

    def __getitem__(self, state: Any) -> Samples:
        """The draws given a state of the finite target, or a tuple of states or a mapping where there are several."""
        codes, share, given = self._given_state(state)
        if not share > 0 or self.finite is None:
            raise ModelError(f"no draw has the state {state!r}: draw more, or observe it")
        among = np.asarray(self.cells == np.ravel_multi_index(codes, self.finite.probs.shape), np.float64)
        return replace(self, finite=None, cells=None, among=among, given=given, asked=())

    @one_blas_thread
    def cdf(self, x: float) -> float:
        """P(target ≤ x) of a single target."""
        self._check_single("cdf")
        return float(self.weights @ (self.values[:, 0] <= x))

    def quantile(self, q: float) -> Any:
        """The smallest draw that a share q of the weight does not exceed; for several targets an array, each by itself."""
        if not (isinstance(q, (int, float)) and 0.0 <= q <= 1.0):
            raise ModelError(f"a quantile is asked for at a probability from 0 to 1, not at {q!r}")
        return self._simple([self._quantile(values, q) for values in self.values.T])

    def to_frame(self) -> Any:
        """One row per draw: states of the finite targets, the numbers of the real ones, the weight.

        >>> Samples(("y",), np.array([[1.0], [2.0]]), Weighted(np.zeros(2))).to_frame().values.tolist()
        [[1.0, 0.5], [2.0, 0.5]]
        """
        own = slice(None) if self.among is None else self.among > 0.0
        columns: dict[str, Any] = {}
        if self.finite is not None and self.cells is not None:
            digits = np.unravel_index(self.cells[own], self.finite.probs.shape)
            columns = {v.name: np.array(v.states, object)[d] for v, d in zip(self.finite.variables, digits, strict=True)}
        columns |= dict(zip(self.names, self.values[own].T, strict=True))
        return frame({**columns, apart(columns, ["weight"])[0]: self.weights[own]})

    def _quantile(self, values: Array, q: float) -> float:
        order = np.argsort(values, kind="stable")
        order = order[self.weights[order] > 0.0]
        ends = np.cumsum(self.weights[order])
        return float(values[order[min(int(np.searchsorted(ends, q * ends[-1])), len(order) - 1)]])

    def _targets(self) -> tuple[list[str], list[list[object]]]:
        """A line per target."""
        rows: list[list[object]] = []
        for name, values, average, v in zip(self.names, self.values.T, self._averages, np.diag(self.covariance), strict=True):
            ends = [self._quantile(values, q) for q in (0.025, 0.975)]
            rows.append([name, average.mean, average.error, float(np.sqrt(v)), *ends])
        return ["node", "mean", "±", "sd", "2.5 %", "97.5 %"], rows

    def _cells(self, finite: Distribution) -> Iterator[list[object]]:
        """A line per cell of the finite targets that was drawn, and real target."""
        for codes in np.argwhere(finite.probs > 0.0).tolist():
            states = tuple(v.states[c] for v, c in zip(finite.variables, codes, strict=True))
            within = self[states]
            for name, average, v in zip(self.names, within._averages, np.diag(within.covariance), strict=True):
                yield [*states, finite[states], name, average.mean, average.error, float(np.sqrt(v))]

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        if self.finite is None:
            return [self._targets()], ""
        lines = int(np.count_nonzero(self.finite.probs > 0.0)) * len(self.names)
        heading = [*self.finite.names, *apart(self.finite.names, ["probability", "node", "mean", "±", "sd"])]
        rows = list(islice(self._cells(self.finite), limit))
        return [self._targets(), (heading, rows)], and_more(lines - limit, "row")

    def _headline(self) -> str:
        return f"{super()._headline()}, as good as {self.effective_sample_size:,.0f} independent ones"
