"""Which parts of impossible evidence contradict each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from suffice.errors import ImpossibleEvidence


class GivesProbability(Protocol):
    """Who is asked: a network."""

    def log_prob_of(self, given: Any) -> float: ...


def contradiction(network: GivesProbability, given: Mapping[str, Any]) -> dict[str, Any]:
    """A part of the evidence that cannot be, and of which nothing can be left out; empty if all of it can be.

    One thing after the other is left out, and stays out if the rest cannot be without it either: as many questions as there are
    things given.

    >>> import suffice as sf
    >>> contradiction(sf.load("asia"), {"smoke": "yes", "lung": "yes", "either": "no", "xray": "no"})
    {'lung': 'yes', 'either': 'no'}
    """
    left = dict(given)
    if _possible(network, left):
        return {}
    for name in list(left):
        rest = {n: value for n, value in left.items() if n != name}
        if not _possible(network, rest):
            left = rest
    return left


def _possible(network: GivesProbability, given: Mapping[str, Any]) -> bool:
    try:
        return network.log_prob_of(given) > float("-inf")
    except ImpossibleEvidence:
        return False
