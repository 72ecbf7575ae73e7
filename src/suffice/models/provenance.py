"""Where a model comes from: what it was fitted from, with which prior, and how."""

from __future__ import annotations

from suffice.families.family import Estimate
from suffice.families.priors import Prior
from suffice.statistics import Statistics


class Provenance:
    """What every model remembers of how it came about."""

    _statistics: Statistics | None
    _prior: Prior | None
    _estimate: Estimate
    _fit_info: str
    _incomplete: bool

    @property
    def statistics(self) -> Statistics | None:
        """What it was fitted from; None if it was written down, or fitted from incomplete data."""
        return self._statistics

    @property
    def prior(self) -> Prior | None:
        """The prior it was fitted with, with every default filled in."""
        return self._prior

    @property
    def estimate(self) -> Estimate:
        """Whether point values are posterior means or modes."""
        return self._estimate

    @property
    def fit_info(self) -> str:
        """How it came about, in a sentence."""
        return self._fit_info

    @property
    def incomplete(self) -> bool:
        """Whether it was fitted from data with missing cells or hidden variables."""
        return self._incomplete
