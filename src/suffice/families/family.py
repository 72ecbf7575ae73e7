"""What a family of conditional distributions is, and what every conditional distribution (CPD) can do.

A family is orthogonal to priors, scores and searches: it says which statistic it needs, and turns a statistic into an
estimate, a log-likelihood and a log-evidence. A CPD is one fitted or written-down p(child | parents).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError
from suffice.exponential.interval import Interval as Interval
from suffice.exponential.interval import checked_level as checked_level
from suffice.statistics import Counts, Moments, Request
from suffice.variables import Finite, Variable

Array = npt.NDArray[np.float64]
Codes = npt.NDArray[np.integer[Any]]
Columns = Mapping[str, npt.NDArray[Any]]
Statistic = Counts | Moments


@dataclass(frozen=True)
class Mean:
    """With a prior, the point value of a parameter is its posterior mean (the predictive).

    >>> Mean()
    Mean()
    """


@dataclass(frozen=True)
class Mode:
    """With a prior, the point value of a parameter is its posterior mode (MAP); refused where there is none.

    >>> Mode()
    Mode()
    """


Estimate = Mean | Mode


class Cpd(Protocol):
    """p(child | parents): parameters and the questions they answer."""

    @property
    def child(self) -> Variable: ...
    @property
    def parent_variables(self) -> tuple[Variable, ...]: ...
    @property
    def seen(self) -> Any: ...
    @property
    def imagined(self) -> Any: ...
    @property
    def parents(self) -> tuple[str, ...]: ...
    @property
    def family(self) -> Family[Any]: ...
    @property
    def n_parameters(self) -> int: ...
    @property
    def unsupported(self) -> npt.NDArray[np.bool_]: ...
    def log_likelihood(self, statistic: Any) -> float: ...
    def log_prob(self, columns: Columns) -> Array: ...
    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]: ...
    def to_frame(self) -> Any: ...


S = TypeVar("S", bound=Statistic, contravariant=True)


class Family(Protocol[S]):
    """A kind of p(child | parents), without parameters."""

    def needs(self, child: Variable, parents: Sequence[Variable]) -> Request: ...
    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int: ...
    def log_likelihood(self, child: Variable, seen: S) -> float: ...
    def log_evidence(self, child: Variable, seen: S, imagined: S) -> float: ...
    def estimate(self, child: Variable, parents: Sequence[Variable], seen: S, imagined: S | None, how: Estimate) -> Cpd: ...


def flat_index(columns: Columns, parents: Sequence[Finite], n: int) -> npt.NDArray[np.int64]:
    """The row-major index of each row's configuration of `parents`."""
    index = np.zeros(n, dtype=np.int64)
    for parent in parents:
        index *= parent.n_states
        index += columns[parent.name]
    return index


def no_posterior(child: Variable) -> FitError:
    return FitError(
        f"{child.name!r} has no posterior, and so no interval and no predictive: it was fitted without a prior, read from a "
        "file that holds none, or has a parent that do(...) set to a number; fit it with one, for instance prior=BDeu(1) or "
        "prior=NormalInverseGamma(); after EM, em(...).information() has intervals from the observed information"
    )


def frame(columns: Mapping[str, Any]) -> Any:
    """A data frame of these columns: pandas if it is installed, else pyarrow."""
    try:
        import pandas as pd
    except ImportError:
        import pyarrow as pa

        return pa.table({k: pa.array(list(v)) for k, v in columns.items()})
    return pd.DataFrame(dict(columns))
