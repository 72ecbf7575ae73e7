"""Parts of a mixture: columns that have one distribution together in each class; given the class, the parts are independent.

A part knows its columns, what is fixed about them, and what the prior imagines; it holds no parameters. A learner runs it as

    prepared(θ)            what one pass over the rows needs of the parameters
    scored(prepared, …)    adds ln p(columns | class) of some rows to an array, one row per class, and remembers what it used
    gathered(memory, r)    the statistic of these rows weighted by responsibilities r: arrays that add
    maximised(θ, s)        the parameters that the statistic and the prior give; θ are those under which it was gathered
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from suffice.engines.engine import Block as Batch
from suffice.families.family import Array, Cpd
from suffice.variables import Finite, Variable

LOG_ZERO = -1e200
"""Stands for ln 0, so that 0 · ln 0 is 0 in a product of matrices. Sums below `IMPOSSIBLE` are of probability 0."""

IMPOSSIBLE = -1e199


CELLS = 2**18
"""Numbers of an array of a block of rows: two megabytes, by measurement."""


class Collapsed(Exception):
    """A class has shrunk to a point, a line or nothing: its likelihood has no maximum. Says what has happened."""


class Moved(NamedTuple):
    """Parameters of a part, as a start may give them: the mean and covariance of its columns in each class, or None."""

    means: Array | None = None
    covariances: Array | None = None
    probs: Mapping[str, Array] | None = None
    rates: Mapping[str, Array] | None = None


class Part(Protocol):
    """What a part must be able to do. θ is in the part's own form."""

    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def n_parameters(self) -> int: ...
    @property
    def block_rows(self) -> int:
        """The rows that a block should have for this part at most."""

    def blank(self) -> Any:
        """Parameters that are the same in every class, around which first statistics are gathered."""

    def prepared(self, theta: Any) -> Any: ...
    def scored(self, prepared: Any, batch: Batch, rows: slice, log_probs: Array) -> Any: ...
    def gathered(self, memory: Any, responsibilities: Array) -> tuple[Any, ...]: ...
    def maximised(self, theta: Any, statistic: tuple[Any, ...]) -> Any: ...
    def log_prior(self, theta: Any) -> float: ...
    def permuted(self, theta: Any, order: Sequence[int]) -> Any: ...
    def named(self, theta: Any) -> Moved:
        """The parameters under names that do not depend on the part."""

    def taken(self, given: Moved) -> Any:
        """The parameters of `named`, or of a part with the same columns, in this part's form."""

    def cpds(self, theta: Any, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        """Each column's distribution given the hidden class and, where they are together, the columns before it."""
