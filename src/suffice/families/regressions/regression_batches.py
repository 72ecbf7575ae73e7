"""Many regressions at once: the sums of each at parameters of its own, all in one pass over the rows.

The columns of all variables, numbers in units of their deviations from their means, are made once for a block of rows. A
regression is a choice of them; its parameters are in these units, so that those of one are a start for another that has a column
more. Regressions of one child with as many columns are a `RegressionBatch`: arrays whose first axis is the regression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.engine import Block, Step
from suffice.errors import TooLarge
from suffice.families.design import columns_of, fill_design, read_only, terms
from suffice.families.protocol.family import Array, Columns
from suffice.families.regressions.glm import MAX_PARAMETERS
from suffice.statistics import Request
from suffice.variables import Finite, Variable

Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Standardised:
    """The columns that variables give regressions: a row of ones, then (x − centre)/scale of numbers and indicators of states."""

    variables: tuple[Variable, ...]
    centre: Array
    scale: Array

    @staticmethod
    def of(rows: Data, variables: Sequence[Variable], threads: int | None = None) -> Standardised:
        """In units of the deviations that the rows have."""
        n = len(terms(variables).names)
        if n > MAX_PARAMETERS:
            raise TooLarge(
                f"regressions on these variables would have {n:,} columns, an indicator for each state but one, and the limit is "
                f"{MAX_PARAMETERS:,}: leave columns with many states out, or group their states"
            )
        centre, scale = np.zeros(n), np.ones(n)
        names = tuple(v.name for v in variables if not isinstance(v, Finite))
        if names:
            moments = rows.gather([Request((), names)], threads=threads).moments((), names)
            deviation = np.sqrt(np.diag(moments.scatter[0]) / moments.count[0])
            numbers = terms(variables).numbers
            centre[numbers] = moments.mean[0]
            scale[numbers] = np.where((deviation > 0) & np.isfinite(deviation), deviation, 1.0)
        return Standardised(tuple(variables), centre, scale)

    def table(self, columns: Columns, n: int) -> Array:
        """Z: the columns of n rows."""
        Z = fill_design(self.variables, columns, self.centre, n, "", complete=True)
        numbers = 1 + np.flatnonzero(terms(self.variables).numbers)
        Z[numbers] /= self.scale[numbers - 1, None]
        return Z

    @cached_property
    def _places(self) -> Mapping[str, range]:
        own = (columns_of(self.variables, v.name) for v in self.variables)
        return {v.name: range(1 + at.start, 1 + at.stop) for v, at in zip(self.variables, own, strict=True)}

    def places(self, variables: Sequence[Variable]) -> list[int]:
        """The rows of Z of a regression on some variables, the ones first.

        >>> from suffice import Real
        >>> x, z = Real("x"), Finite("z", ["a", "b", "c"])
        >>> Standardised((x, z), np.zeros(3), np.ones(3)).places([z, x])
        [0, 2, 3, 1]
        """
        return [0, *(place for v in variables for place in self._places[v.name])]


class ManySums(NamedTuple):
    """`glm.Sums` of many regressions: the first axis is the regression."""

    log_likelihood: Array
    gradient: Array
    hessian: Array
    pearson: Array
    weight: Array


class RegressionBatch(NamedTuple):
    """Regressions of one child: the rows of Z that are the columns of each, the ones first, and the parameters of each."""

    family: Any
    child: Any
    members: Places
    theta: Array

    def sums(self, Z: Array, columns: Columns, weight: Array) -> ManySums:
        """What these rows say of each regression at its parameters."""
        y = self.family.values(self.child, columns)
        if self.family.response is None or self.theta.shape[1] > self.members.shape[1]:
            each = (self.family.sums(Z[m], y, weight, t, columns) for m, t in zip(self.members, self.theta, strict=True))
            return ManySums(*(np.array(part) for part in zip(*each, strict=True)))
        from suffice.kernels.regressions.regression import regression_sums

        B, q = self.members.shape
        gradient, hessian, totals = np.zeros((B, q)), np.zeros((B, q, q)), np.zeros((B, 3))
        exposed, theta = self.family.exposure(columns), read_only(self.theta)
        rows = tuple(read_only(a) for a in (np.asarray(y, dtype=np.float64), *exposed, weight))
        for g, own in enumerate(self.members):
            regression_sums(Z[own], *rows, theta[g], self.family.response, 1.0, False, gradient[g], hessian[g], totals[g])
        return ManySums(totals[:, 0], gradient, hessian, totals[:, 1], totals[:, 2])


@dataclass(frozen=True, eq=False)
class BatchSums(Step[tuple[ManySums, ...]]):
    """The sums of some batches, in one pass."""

    standardised: Standardised
    batches: tuple[RegressionBatch, ...]
    complete: ClassVar[bool] = True

    def of(self, block: Block) -> tuple[ManySums, ...]:
        Z = self.standardised.table(block.columns, block.n_rows)
        weight = np.ascontiguousarray(block.weights, dtype=np.float64)
        return tuple(batch.sums(Z, block.columns, weight) for batch in self.batches)


@dataclass(frozen=True, eq=False)
class ProductSums(Step[Array]):
    """Σ w z zᵀ of all columns, in one pass."""

    standardised: Standardised
    complete: ClassVar[bool] = True

    def of(self, block: Block) -> Array:
        Z = self.standardised.table(block.columns, block.n_rows)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray((Z * block.weights) @ Z.T)


@dataclass(frozen=True, eq=False)
class SummarySums(Step[Any]):
    """What a family sums of its child before its first iteration: `glm.Summary`."""

    family: Any
    child: Variable
    complete: ClassVar[bool] = True

    def of(self, block: Block) -> Any:
        return self.family.summary(self.child, (), block.columns, block.weight)
