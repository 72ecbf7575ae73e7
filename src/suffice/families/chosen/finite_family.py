"""Families of states by finite parents that have fewer parameters than a table: a noisy-or, say, or a softmax.

    statistic     N[u, x], the counts, as for tables
    estimate      the table θ of the family that maximises Σ (N + α) ln θ, α what a prior imagines
    evidence      none in closed form

There is none in the package: what others add says its `word`, its number of parameters and the table that counts give
(docs/own_pieces.md). It rides on the variable of its node (`Finite.family`), so that whoever asks `family_of` is told of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, ClassVar

import numpy as np

from suffice.errors import FitError
from suffice.errors.remedies import BDEU, BY_BIC, BY_MEAN
from suffice.exponential.dirichlet import shares_of
from suffice.families.categorical import Table, TableNode
from suffice.families.protocol.family import Array, Estimate
from suffice.registry import Named
from suffice.statistics import Counts
from suffice.variables import Finite, Variable


class FiniteFamily(TableNode, Named):
    """What a family of states has to say: `n_parameters(child, parents)` and `probs(child, parents, counts)`.

    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Same(FiniteFamily):
    ...     "One distribution, whatever the parents are."
    ...     def n_parameters(self, child, parents):
    ...         return child.n_states - 1
    ...     def probs(self, child, parents, counts):
    ...         return counts.sum(axis=tuple(range(len(parents)))) / counts.sum() + 0.0 * counts
    >>> x, y = Finite("x", ["a", "b"]), Finite("y", ["a", "b"], family=Same())
    >>> y.family.estimate(y, [x], Counts((x, y), [[3, 1], [0, 2]]), None, None).probs[0]
    array([0.5, 0.5])
    """

    listed_in = "families"
    kind: ClassVar[Any] = Finite
    """What its child is, even if it is written in numbers."""
    trials: ClassVar[str | None] = None

    def probs(self, child: Finite, parents: Sequence[Finite], counts: Array) -> Array:
        """The table of this family under which these counts are most probable; an axis for each parent, the child's last."""
        raise NotImplementedError

    def n_parameters(self, child: Variable, parents: Sequence[Variable]) -> int:
        """How many parameters it has, which scores pay for."""
        raise NotImplementedError

    def fit_table(self, child: Any, parents: Sequence[Any], counts: Array) -> Array:
        """The table that these counts give. Without parents, or rows, there is nothing to choose between."""
        return np.asarray(self.probs(child, parents, counts)) if parents and counts.sum() > 0 else shares_of(counts)

    def log_likelihood(self, child: Variable, seen: Counts) -> float:
        """The log-likelihood at its maximum."""
        parents = seen.variables[:-1]
        return Table(child, parents, self.fit_table(child, parents, seen.dense())).log_likelihood(seen)  # type: ignore[arg-type]

    def log_evidence(self, child: Variable, seen: Counts, imagined: Any) -> float:
        raise FitError(f"{child.name!r} is {self!r}, whose evidence has no formula: score it with {BY_BIC}")

    def estimate(self, child: Any, parents: Sequence[Any], seen: Counts, imagined: Any, how: Estimate) -> Table:
        """The table of this family for what was seen and imagined. Imagined rows count as rows, for modes less one a cell as
        in tables; they make no posterior of its parameters, so that it has no intervals."""
        if imagined is None:
            return Table(child, tuple(parents), self.fit_table(child, parents, seen.dense()), seen)
        if not isinstance(imagined, Counts):
            raise FitError(f"{child.name!r} is {self!r}, for which a prior has to imagine rows: use {BDEU}")
        weights = (seen + imagined).dense() - how.less
        if weights.min() < 0.0:
            raise FitError(
                f"the posterior of {child.name!r} has no mode: count and prior of a cell make {weights.min() + 1.0:g}, below 1; "
                f"use {BY_MEAN} or a stronger prior"
            )
        return Table(child, tuple(parents), self.fit_table(child, parents, weights), seen)

    def to_dict(self) -> dict[str, Any]:
        """The family as plain values, for JSON: its word and its fields."""
        return {"type": self.word.split()[0], **{f.name: getattr(self, f.name) for f in fields(self)}}
