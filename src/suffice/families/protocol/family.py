"""What a family of conditional distributions is.

A family is orthogonal to priors, scores and searches: it says which statistic it needs, and turns a statistic into an
estimate, a log-likelihood and a log-evidence. `cpd` has what its estimates can do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.exponential.arithmetic.values import Interval as Interval
from suffice.families.protocol.cpd import Array as Array
from suffice.families.protocol.cpd import Columns as Columns
from suffice.families.protocol.cpd import Cpd as Cpd
from suffice.families.protocol.cpd import as_numbers as as_numbers
from suffice.families.protocol.cpd import flat_index as flat_index
from suffice.families.protocol.cpd import frame as frame
from suffice.families.protocol.cpd import no_posterior as no_posterior
from suffice.families.protocol.cpd import split as split
from suffice.statistics import Counts, Moments, Request
from suffice.variables import Variable

Codes = npt.NDArray[np.integer[Any]]
Statistic = Counts | Moments


@dataclass(frozen=True)
class Mean:
    """With a prior, the point value of a parameter is its posterior mean (the predictive).

    >>> Mean()
    Mean()
    """

    less: ClassVar[float] = 0.0
    """What is taken from imagined counts."""

    def rows_behind(self, df: Any, d: int) -> Any:
        """The rows behind a variance with so many degrees of freedom, estimated beside d coefficients."""
        return df - 2.0


@dataclass(frozen=True)
class Mode:
    """With a prior, the point value of a parameter is its posterior mode (MAP); refused where there is none.

    >>> Mode()
    Mode()
    """

    less: ClassVar[float] = 1.0

    def rows_behind(self, df: Any, d: int) -> Any:
        return df + 2.0 + d


Estimate = Mean | Mode


S = TypeVar("S", bound=Statistic, contravariant=True)


class Family(Protocol[S]):
    """A kind of p(child | parents), without parameters.

    An `iterative` one is a regression, with one set of parameters for all states of its parents; the child of a `normal` one is
    normal around a line, so that moments say all.
    """

    @property
    def iterative(self) -> bool: ...
    @property
    def normal(self) -> bool: ...
    def needs(self, child: Variable, parents: Sequence[Variable]) -> Request: ...
    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int: ...
    def log_likelihood(self, child: Variable, seen: S) -> float: ...
    def log_evidence(self, child: Variable, seen: S, imagined: S) -> float: ...
    def estimate(self, child: Variable, parents: Sequence[Variable], seen: S, imagined: S | None, how: Estimate) -> Cpd: ...
