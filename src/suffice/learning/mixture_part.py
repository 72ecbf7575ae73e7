"""Parts of a mixture: columns that have one distribution together in each class; given the class, the parts are independent.

A part knows its columns, what is fixed about them, and what the prior imagines. Its parameters θ, which it does not hold, are a
named tuple of arrays, class by class on the first axis. A learner runs it as

    prepared(θ)            what one pass over the rows needs of the parameters
    scored(prepared, …)    adds ln p(columns | class) of some rows to an array, one row per class, and remembers what it used
    gathered(memory, r)    the statistic of these rows weighted by responsibilities r: an array, or a tuple of them, that adds
    maximised(θ, s)        the parameters that the statistic and the prior give; θ are those under which it was gathered
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from suffice.engines.engine import Block
from suffice.families.family import Array, Cpd
from suffice.variables import Finite, Variable

LOG_ZERO = -1e200
"""Stands for ln 0, so that 0 · ln 0 is 0 in a product of matrices. Sums below `IMPOSSIBLE` are of probability 0."""

IMPOSSIBLE = -1e199

CELLS = 2**18
"""Numbers of an array of a block of rows: two megabytes, by measurement."""


class Collapsed(Exception):
    """A class has shrunk to a point, a line or nothing: its likelihood has no maximum. Says what has happened."""


class Part(Protocol):
    """What a part must be able to do."""

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
    def scored(self, prepared: Any, block: Block, rows: slice, log_probs: Array) -> Any: ...
    def gathered(self, memory: Any, responsibilities: Array) -> Any: ...
    def maximised(self, theta: Any, statistic: Any) -> Any: ...
    def log_prior(self, theta: Any) -> float: ...
    def narrowness(self, theta: Any) -> float:
        """The largest ratio of a column's deviation to what is left of it in a class: as many digits of ln p are lost."""

    def taken(self, means: Array, covariances: Array, tables: Mapping[str, Array]) -> Any:
        """The parameters that a start gives: means and covariances of the part's columns, or what each has in each class."""

    def cpds(self, theta: Any, hidden: Finite, variables: Mapping[str, Variable], counts: Array) -> dict[str, Cpd]:
        """Each column's distribution given the hidden class and, where they are together, the columns before it."""
