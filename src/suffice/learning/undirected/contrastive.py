"""Contrastive divergence as a value: what a model expects is replaced by what a few rounds of drawing give."""

from __future__ import annotations

from dataclasses import dataclass

from suffice.errors import FitError, whole


@dataclass(frozen=True)
class ContrastiveDivergence:
    """The gradient *seen − expected*, with what is expected from `steps` rounds of drawing that start at the rows (CD).

    With `persistent=True` the rounds go on from where the last ones ended, in so many `chains` (PCD): nearer to the likelihood,
    where CD has a bias that falls with `steps`.

    >>> ContrastiveDivergence(steps=1, persistent=True)
    ContrastiveDivergence(steps=1, persistent=True, chains=100)
    """

    steps: int = 1
    persistent: bool = False
    chains: int = 100

    def __post_init__(self) -> None:
        whole(self.steps, "the number of steps of contrastive divergence", 1)
        whole(self.chains, "the number of chains of contrastive divergence", 1)
        if not isinstance(self.persistent, bool):
            raise FitError(f"persistent is True or False, not {self.persistent!r}")
