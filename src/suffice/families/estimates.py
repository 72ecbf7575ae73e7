"""Which point of a posterior an estimate is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from suffice.errors import FitError


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


def checked_estimate(estimate: Any) -> Estimate:
    """Mean() where nothing is said."""
    how = Mean() if estimate is None else estimate
    if not isinstance(how, (Mean, Mode)):
        raise FitError(f"estimate is Mean() or Mode(), not {estimate!r}")
    return how
