"""A hierarchical prior of tables: the rows of a node are drawn around a mean of their own node, all with the same strength.

    θ[u, ·] ~ Dirichlet(s m)     for every configuration u of the parents

Strength s and mean m that are not given are chosen per node by maximum evidence (`pooling.py`), once, when the prior meets the
graph; so the prior that a network keeps is an ordinary Dirichlet, which imagines s m in every row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.errors import FitError, listed, nearest, note
from suffice.families.pooling import LOWEST, Array, Pooled, checked_strength, highest, pooled
from suffice.statistics import Counts, Statistics
from suffice.statistics.configurations import checked_cells, sizes
from suffice.variables import Finite, Variable

__all__ = ["LOWEST", "HierarchicalDirichlet", "Pooled", "highest", "pooled"]


@dataclass(frozen=True)
class HierarchicalDirichlet:
    """Partial pooling: each row of a table is shrunk towards the mean of its node's rows, as far as the rows are alike.

    `strength` is a number for all nodes or {node: number}, `mean` {node: probabilities of its states, or None: even}. What is
    not given the data chooses when the prior is bound to a graph: the values with the largest evidence, which the network keeps
    (`bn.prior`). Rows that are alike are pooled up to the weight of all rows, rows with one state each down to a strength of
    0.001; a note names such nodes. A node of which only one row holds data, as one without parents, has nothing to pool: there
    an even mean and the strength 1 are taken, as by `BDeu(1)`.

    The evidence of a graph is then a maximum over strength and mean, not an average: with a parent that says nothing it is
    larger than without one. So a search refuses this prior unless all is given. Not score equivalent.

    >>> from suffice.learning.fit import fit
    >>> rows = {"x": ["a"] * 10 + ["b"] * 2, "y": ["u"] * 9 + ["v"] + ["v"] * 2}
    >>> fit("x -> y", rows, prior=HierarchicalDirichlet(strength=4.0))["y"].probs.round(2)
    array([[0.81, 0.19],
           [0.4 , 0.6 ]])
    """

    strength: Mapping[str, float] | float | None = None
    mean: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        for s in self.strength.values() if isinstance(self.strength, Mapping) else [self.strength]:
            if s is not None:
                checked_strength(s)
        if self.mean is not None and not isinstance(self.mean, Mapping):
            raise FitError(f"the mean of HierarchicalDirichlet is given by node: {{'y': [0.2, 0.8]}}, not as {self.mean!r}")

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> HierarchicalDirichlet:
        """Itself: what is to be chosen depends on the graph, see `choose`."""
        return self

    def choose(
        self, variables: Mapping[str, Variable], nodes: Iterable[tuple[Variable, Sequence[Variable], Any]], statistics: Statistics
    ) -> HierarchicalDirichlet:
        """The prior with a strength and a mean for each of these nodes, by the evidence of their counts."""
        for name in [*(self.strength if isinstance(self.strength, Mapping) else ()), *(self.mean or ())]:
            if name not in variables:
                raise FitError(f"HierarchicalDirichlet speaks of {name!r}, which is not in the graph{nearest(name, variables)}")
        strengths: dict[str, float] = dict(self.strength) if isinstance(self.strength, Mapping) else {}
        means: dict[str, Any] = dict(self.mean or {})
        told: dict[tuple[bool, bool], list[str]] = defaultdict(list)
        for child, parents, seen in nodes:
            if all_finite(child, parents):
                table = rows_of(seen)
                mean = self._mean(child)
                found = pooled(table, self._strength(child), mean)
                even = len(table) < 2 if mean is None else self._is_even(child)
                strengths[child.name], means[child.name] = found.strength, None if even else _by_state(child, found.mean)
                if self._strength(child) is None and len(table) > 1:
                    told[found.strength >= highest(table), found.strength <= LOWEST] += [child.name]
        _tell(alike=told[True, False], apart=told[False, True])
        return replace(self, strength=strengths, mean=means)

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Counts | None:
        if not all_finite(child, parents):
            return None
        family: tuple[Any, ...] = (*parents, child)
        checked_cells(family, f"the table of {child.name!r}")
        return Counts(family, np.broadcast_to(self._row(child), sizes(family)))

    def imagine_where(self, child: Variable, parents: Sequence[Variable], seen: Any) -> Counts | None:
        """The imagined counts of the rows that hold data: what a score needs of tables that are too large to write out."""
        if not all_finite(child, parents):
            return None
        row = self._row(child)
        rows = np.unique(seen.listed()[0] // len(row))
        keys = (rows[:, None] * len(row) + np.arange(len(row))).reshape(-1)
        return Counts(seen.variables, np.tile(row, len(rows)), keys)

    def _row(self, child: Variable) -> Array:
        s, m = self._strength(child), self._mean(child)
        if s is None or m is None:
            raise FitError(
                f"HierarchicalDirichlet takes the strength and the mean of {child.name!r} from complete rows and a graph: choose "
                "them first, by_evidence(dag, complete_rows, HierarchicalDirichlet()), and give that prior"
            )
        return np.asarray(s * m)

    def _strength(self, child: Variable) -> float | None:
        return self.strength.get(child.name) if isinstance(self.strength, Mapping) else self.strength

    def _mean(self, child: Variable) -> Array | None:
        assert isinstance(child, Finite)
        if self._is_even(child):
            return np.full(child.n_states, 1.0 / child.n_states)
        given = (self.mean or {}).get(child.name)
        return None if given is None else _probabilities(in_order(given, child, "the mean of HierarchicalDirichlet"), child)

    def _is_even(self, child: Variable) -> bool:
        return self.mean is not None and child.name in self.mean and self.mean[child.name] is None


def in_order(given: Any, child: Variable, what: str) -> Array:
    """Numbers of a node's states, given in their order or by state, as an array.

    >>> in_order({"b": 0.75, "a": 0.25}, Finite("x", ["a", "b"]), "the mean")
    array([0.25, 0.75])
    """
    assert isinstance(child, Finite)
    if isinstance(given, Mapping):
        unknown = [s for s in given if s not in child.states]
        lacking = [s for s in child.states if s not in given]
        for state in [*unknown, *lacking]:
            raise FitError(
                f"{what} of {child.name!r} and the data differ in the state {state!r}; fit again with all rows, or declare "
                "the states before"
            )
        given = [given[s] for s in child.states]
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array([np.nan])
    if numbers.shape != (child.n_states,) or not np.all(np.isfinite(numbers)):
        raise FitError(f"{what} of {child.name!r} needs {child.n_states} numbers, one per state, not {given!r}")
    return numbers


def _probabilities(mean: Array, child: Variable) -> Array:
    if np.any(mean < 0.0) or abs(mean.sum() - 1.0) > 1e-6:
        raise FitError(f"the mean of HierarchicalDirichlet of {child.name!r} must be probabilities that sum to 1, not {mean}")
    return mean if abs(mean.sum() - 1.0) <= 1e-12 else np.asarray(mean / mean.sum())


def all_finite(child: Variable, parents: Sequence[Variable]) -> bool:
    """Whether this is a table, of which a prior of tables speaks."""
    return all(isinstance(v, Finite) for v in (child, *parents))


def rows_of(seen: Counts) -> Array:
    """The rows of a table that hold data, whatever is the size of the table."""
    K = seen.variables[-1].n_states
    keys, values = seen.listed()
    rows, inverse = np.unique(keys // K, return_inverse=True)
    table = np.zeros((len(rows), K))
    table[inverse, keys % K] = values
    return table


def _by_state(child: Variable, mean: Array) -> dict[str, float]:
    assert isinstance(child, Finite)
    return {s: float(m) for s, m in zip(child.states, mean, strict=True)}


def _tell(alike: Sequence[str], apart: Sequence[str]) -> None:
    if alike:
        note(
            f"the rows of {listed(alike)} are no less alike than chance makes them: they are pooled with the strength of "
            "all rows together, the most that HierarchicalDirichlet takes"
        )
    if apart:
        note(
            f"the rows of {listed(apart)} have a state each: they are not pooled (strength {LOWEST:g}, the least that "
            "HierarchicalDirichlet takes)"
        )
