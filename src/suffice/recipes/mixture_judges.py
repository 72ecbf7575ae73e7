"""What the number of classes of a mixture is chosen by, besides the scores."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from suffice.errors import FitError


@dataclass(frozen=True)
class ICL:
    """The number of classes by BIC + Σ ln r: well separated classes are preferred. See `MixtureRun.icl`.

    >>> ICL()
    ICL()
    """


@dataclass(frozen=True)
class HeldOut:
    """The number of classes by the log-likelihood of rows that were not learned from, over some folds.

    >>> HeldOut(folds=10)
    HeldOut(folds=10)
    """

    folds: int = 5

    def __post_init__(self) -> None:
        if not isinstance(self.folds, (int, np.integer)) or isinstance(self.folds, bool) or self.folds < 2:
            raise FitError(f"the number of folds is a whole number of at least 2, not {self.folds!r}")
