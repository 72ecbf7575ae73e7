"""Columns derived from others, row by row: what the statistic of an exponential family is a sum of, besides counts and moments.

A derived column is a plain value that can be sent, compared and written to a file; engines know of formulas only by name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.libraries import sc
from suffice.errors import StatisticsError


def log_factorial(x: Array) -> Array:
    """ln x!."""
    return np.asarray(sc.gammaln(x + 1.0))


FORMULAS: dict[str, Callable[[Array, float], Array]] = {
    "ln x": lambda x, n: np.log(x),
    "ln(1 - x)": lambda x, n: np.log1p(-x),
    "ln x!": lambda x, n: log_factorial(x),
    "ln C(n, x)": lambda x, n: np.asarray(-sc.betaln(n - x + 1.0, x + 1.0) - np.log(n + 1.0)),
    "ln C(x + n - 1, x)": lambda x, n: np.asarray(-sc.betaln(n, x + 1.0) - np.log(n + x)),  # x failures before n successes
}
"""What may be summed of a column x, by name; n is a number that is known."""
WAYS = ("ln x!", "ln C(n, x)", "ln C(x + n - 1, x)")
"""Those that are logarithms of whole numbers from 1 up."""


@dataclass(frozen=True, order=True)
class RowFormula:
    """A formula of FORMULAS, of each row of a column."""

    column: str
    formula: str
    n: float = 0.0

    def __post_init__(self) -> None:
        if self.formula not in FORMULAS:
            raise StatisticsError(f"there is no formula {self.formula!r} of {self.column!r}; there are {', '.join(FORMULAS)}")

    @property
    def least(self) -> float:
        """What no row is below: the logarithm of a number of ways is at least 0."""
        return 0.0 if self.formula in WAYS else -np.inf

    def values(self, x: Array) -> Array:
        """What it is of each row; not finite where there is none."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return FORMULAS[self.formula](x, self.n)


def log_factorials(columns: Sequence[str]) -> tuple[RowFormula, ...]:
    """ln x! of each of some columns."""
    return tuple(RowFormula(c, "ln x!") for c in columns)
