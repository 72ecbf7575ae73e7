"""Where a model comes from: what it was fitted from, with which prior, and how."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from suffice.families.family import Estimate
from suffice.families.priors import Prior
from suffice.statistics import Statistics

ASKED_OF_ROWS = {
    "predict": "decode(sequences) has the most probable path, posterior_decode the most probable state of each cell",
    "predict_proba": "smooth(sequences) has the probabilities",
    "query": "smooth(sequences) answers for all steps, unroll(n).query for a network of n steps",
    "marginals": "smooth(sequences) answers for all steps, unroll(n).marginals for a network of n steps",
    "most_probable": "decode(sequences) has the most probable path",
}
"""Questions to networks of rows, and how a chain is asked."""

ASKED_OF_STEPS = dict.fromkeys(
    ("decode", "filter", "follow", "forecast", "posterior_decode", "smooth", "stationary"),
    "that is asked of a Chain, which fit('x[-1] -> x', sequences(data, by=..., order=...)) makes",
)
"""Questions to chains of steps, which a network of rows is not asked."""


class Provenance:
    """What every model remembers of how it came about."""

    _statistics: Statistics | None
    _prior: Prior | None
    _estimate: Estimate
    _fit_info: str
    _incomplete: bool
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    """What is asked of other kinds of models, and how this kind is asked it."""

    if not TYPE_CHECKING:  # which should go on to know all names

        def __getattr__(self, name: str) -> Any:
            hint = f": {self._elsewhere[name]}" if name in self._elsewhere else ""
            raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}", name=name, obj=self)

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
