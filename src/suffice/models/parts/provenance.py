"""Where a model comes from: what it was fitted from, with which prior, and how."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Estimate, Mean
from suffice.statistics import Statistics

if TYPE_CHECKING:
    from suffice.models.parts.parameter_covariance import ParameterCovariance

    CovarianceSource: TypeAlias = ParameterCovariance | Callable[[], ParameterCovariance] | None
    """How well parameters are known, or how to find out."""

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
    _known_parameters: CovarianceSource = None
    _elsewhere: ClassVar[Mapping[str, str]] = {}
    """What is asked of other kinds of models, and how this kind is asked it."""

    if not TYPE_CHECKING:  # which should go on to know all names

        def __getattr__(self, name: str) -> Any:
            hint = f": {self._elsewhere[name]}" if name in self._elsewhere else ""
            raise AttributeError(f"{type(self).__name__} has no {name!r}{hint}", name=name, obj=self)

    def _remember(
        self,
        statistics: Statistics | None = None,
        prior: Prior | None = None,
        estimate: Estimate | None = None,
        fit_info: str = "given by hand",
        incomplete: bool = False,
        covariance: CovarianceSource = None,
    ) -> None:
        self._statistics, self._prior, self._estimate, self._fit_info = statistics, prior, estimate or Mean(), fit_info
        self._incomplete, self._known_parameters = incomplete, covariance

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
    def is_fitted(self) -> bool:
        """Whether its parameters were estimated from rows, and not given."""
        return self._incomplete or self._statistics is not None

    @property
    def incomplete(self) -> bool:
        """Whether it was fitted from data with missing cells or hidden variables."""
        return self._incomplete

    @property
    def parameter_covariance(self) -> ParameterCovariance | None:
        """How well parameters learned from incomplete rows are known, which intervals of answers need; else None.

        It is found when it is first asked for, from the rows as EM reduced them, which the network keeps until then. A file or a
        pickle has it if it was found before: `em(..., information=True)`.
        """
        if callable(self._known_parameters):
            self._known_parameters = self._known_parameters()
        return self._known_parameters

    @property
    def found_covariance(self) -> ParameterCovariance | None:
        """The same if it was found before, which is what files and pickles hold."""
        return None if callable(self._known_parameters) else self._known_parameters

    def covariance_of(self, names: Collection[str]) -> CovarianceSource:
        """That of some nodes, or how to find it."""
        if self._known_parameters is None:
            return None
        known = self.found_covariance
        return (lambda: _only(self, names)) if known is None else known.only(names)

    def with_covariance(self, covariance: CovarianceSource) -> Self:
        """The same model, which knows how well its parameters are known, or how to find out.

        >>> from suffice import fit
        >>> bn = fit("x", {"x": ["a", "b", None]})
        >>> bn.with_covariance(None).parameter_covariance is None
        True
        """
        result = copy(self)
        result._known_parameters = covariance
        return result

    def with_fit_info(self, info: str) -> Self:
        """The same model with another sentence that says how it came about."""
        result = self.with_covariance(self._known_parameters)
        result._fit_info = info
        return result


def _only(model: Provenance, names: Collection[str]) -> ParameterCovariance:
    known = model.parameter_covariance
    assert known is not None
    return known.only(names)
