"""The keywords of questions that one kind of model passes on to another: the same names and types everywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from suffice.errors import ArgumentError, nearest

if TYPE_CHECKING:
    from suffice.engines.sequences.arrangement import Missing, Refuse
    from suffice.inference.sampling.sampling import Gibbs, LikelihoodWeighting


class QueryOptions(TypedDict, total=False):
    """What `query` takes besides targets and evidence."""

    method: LikelihoodWeighting | Gibbs | None
    """How the answer is drawn, where an exact one costs too much."""
    interval: float | None
    """The level of the credible interval of the answer."""
    draws: int
    """Draws of the parameters for it."""
    seed: int
    """The same seed gives the same draws."""


class PredictOptions(TypedDict, total=False):
    """What `predict` takes besides rows and a target."""

    method: LikelihoodWeighting | None
    """How rows without a formula are drawn."""
    seed: int
    """The same seed gives the same draws."""
    unknown: Refuse | Missing
    """What becomes of a state that the network does not know."""


class ProbabilityOptions(PredictOptions, total=False):
    """What `predict_proba` takes besides rows and a target."""

    interval: float | None
    """The level of the credible intervals of the probabilities."""
    draws: int
    """Draws of the parameters for them."""


class ImputeOptions(TypedDict, total=False):
    """What `impute` takes besides rows."""

    joint: bool
    """Whether the cells of a row are filled by the states that are most probable together."""
    draws: int | None
    """How many frames are drawn, instead of one of the most probable cells."""
    redraw: bool | None
    """Whether the parameters are drawn anew for each of them."""
    seed: int
    """The same seed gives the same draws."""
    unknown: Refuse | Missing
    """What becomes of a state that the network does not know."""


def refuse_others(call: str, given: Mapping[str, Any], kind: type) -> None:
    """Refuse keywords that a call does not have, with the one that may have been meant.

    >>> refuse_others("query", {"intervall": 0.9}, QueryOptions)
    Traceback (most recent call last):
    suffice.errors.ArgumentError: query takes no intervall=; did you mean 'interval'?
    """
    known = kind.__annotations__
    for name in given:
        if name not in known:
            raise ArgumentError(f"{call} takes no {name}={nearest(name, known)}")
