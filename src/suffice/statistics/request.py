"""A request: which statistic a learner asks an engine for."""

from __future__ import annotations

from dataclasses import dataclass, field

from suffice.statistics.derived import RowFormula


@dataclass(frozen=True)
class Request:
    """A contingency table of `finite`, or, if `real` is not empty, moments of `real` within each configuration of `finite`, and
    the sums of columns that are `derived` from these.

    >>> Request(("smoke", "cancer"))
    Request(finite=('smoke', 'cancer'), real=())
    """

    finite: tuple[str, ...]
    real: tuple[str, ...] = ()
    derived: tuple[RowFormula, ...] = field(default=(), repr=False)

    @property
    def names(self) -> tuple[str, ...]:
        return self.finite + self.real

    @property
    def scope(self) -> tuple[frozenset[str], frozenset[str]]:
        """What the statistic is about, whatever the order of its axes."""
        return frozenset(self.finite), frozenset(self.real)
