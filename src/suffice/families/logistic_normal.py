"""A logistic-normal prior of tables: the log-odds of a row are normal around those of a mean, with the same spread everywhere.

    θ[u, x] = exp η[u, x] / Σ exp η[u, ·],   η[u, x] ~ Normal(m[x], v), independent over rows u and states x

Unlike a Dirichlet it is not conjugate, so it imagines no counts: what it holds of a node is a `LogisticBelief`, which answers for
mode, mean, evidence and intervals by Laplace's approximation (`laplace.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import pi
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.errors import FitError, listed, nearest, note
from suffice.families.empirical_bayes import best_number, is_number
from suffice.families.family import Array, Estimate, Interval, Mode, checked_level
from suffice.families.hierarchical import all_finite, in_order, rows_of
from suffice.families.laplace import Laplace
from suffice.families.laplace_draws import drawn, quantiles
from suffice.families.priors import Node, Prior
from suffice.statistics import Counts, Statistics
from suffice.statistics.configurations import sizes
from suffice.variables import Finite, Variable

LIKE_DIRICHLET = pi**2 / 6
"""ψ′(1): with this variance the prior is, of all logistic-normal ones, the nearest to Dirichlet(1) (Aitchison & Shen 1980)."""

LOWEST, HIGHEST = 1e-3, 1e3
"""No variance is chosen outside."""


@dataclass(frozen=True)
class LogisticNormal(Prior):
    """The effects η of the states of a row are independent Normal(mean, variance), θ = softmax(η): all states are treated alike.

    `mean` is a number, which means even odds, or {node: an effect per state}; `variance` a number, {node: number}, or None: that
    with the largest evidence of each node's rows, chosen once and kept (`bn.prior`), between 0.001 and 1000; a note names the
    nodes where an end is taken. The default, π²/6, is the nearest to `Dirichlet(1)`; a node of which one row holds data takes
    it, too.

    `estimate=Mode()` gives softmax of the mode of η (that of θ is another: modes depend on how one writes the parameters),
    `Mean()` the posterior mean of θ. Evidence and mean are Laplace approximations, exact without data and with many rows; with
    the default variance and two or three states ln p of a row of counts was found up to 0.06 too small, a mean up to 0.01 off;
    with a variance of 5 up to 0.12 and 0.015. Intervals are those of the exact posterior, whatever the variance: by quadrature
    for two states, for more by 2048 even draws (of a 95% one the tails were found to be 2.1 to 3.0% each).

    It needs complete rows: EM and mixtures take priors that imagine rows, such as `Dirichlet`.

    >>> from suffice import fit
    >>> bn = fit("x", {"x": ["a", "a", "a", "b"]}, prior=LogisticNormal(variance=1.0))
    >>> bn["x"].probs.round(3), bn["x"].interval(0.9).lower.round(3)
    (array([0.656, 0.344]), array([0.34 , 0.095]))
    """

    mean: Mapping[str, Any] | float = 0.0
    variance: Mapping[str, float] | float | None = LIKE_DIRICHLET

    chooses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        for v in self.variance.values() if isinstance(self.variance, Mapping) else [self.variance]:
            if v is not None and (not is_number(v) or not 1e-12 <= v <= 1e12):
                raise FitError(f"the variance of LogisticNormal is a number between 1e-12 and 1e12, or None, not {v!r}")
        if not isinstance(self.mean, Mapping) and not (is_number(self.mean) and np.isfinite(self.mean)):
            raise FitError(f"the mean of LogisticNormal is a number or given by node, {{'y': [0.0, 1.5]}}, not {self.mean!r}")

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Node], statistics: Statistics) -> LogisticNormal:
        """The prior with a variance for each of these nodes, by the evidence of their counts."""
        for name in (n for given in (self.variance, self.mean) if isinstance(given, Mapping) for n in given):
            if name not in variables:
                raise FitError(f"LogisticNormal speaks of {name!r}, which is not in the graph{nearest(name, variables)}")
        if self.variance is not None and not isinstance(self.variance, Mapping):
            return self
        finite = [(child, seen) for child, parents, seen in nodes if all_finite(child, parents)]
        given = {child.name: self._variance(child) for child, _ in finite}
        found = {c.name: float(given[c.name] or _by_evidence(rows_of(seen), np.array(self._mean(c)))) for c, seen in finite}
        free = [name for name in found if name not in (self.variance or {})]
        for end, way in (LOWEST, "no more than chance makes them: the variance is"), (HIGHEST, "without limit: the variance is"):
            at = [name for name in free if found[name] == end]
            if at:
                note(f"the rows of {listed(at)} differ from their mean {way} {end:g}, where LogisticNormal stops")
        return replace(self, variance={**dict(self.variance or {}), **found})

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> None:
        if all_finite(child, parents):
            raise FitError(
                f"LogisticNormal imagines no rows of {child.name!r}, which EM and mixtures need where cells are missing or "
                "hidden: give them Dirichlet(1) or BDeu(1)"
            )

    def believe(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> LogisticBelief | None:
        """What it holds of the rows of a node, all alike."""
        if not all_finite(child, parents):
            return None
        variance = self._variance(child)
        if variance is None:
            raise FitError(
                f"LogisticNormal takes the variance of {child.name!r} from complete rows and a graph: give it, or choose it "
                "first, by_evidence(dag, complete_rows, LogisticNormal(variance=None))"
            )
        return LogisticBelief(self._mean(child), variance)

    def _variance(self, child: Variable) -> float | None:
        return self.variance.get(child.name) if isinstance(self.variance, Mapping) else self.variance

    def _mean(self, child: Variable) -> tuple[float, ...]:
        assert isinstance(child, Finite)
        given = self.mean.get(child.name, 0.0) if isinstance(self.mean, Mapping) else 0.0
        if is_number(given):
            return (0.0,) * child.n_states
        effects = in_order(given, child, "the mean of LogisticNormal")
        return tuple(float(x) for x in effects - effects.mean())


@dataclass(frozen=True)
class LogisticBelief:
    """Every row of a table has effects η ~ Normal(mean, variance I), one mean per state.

    >>> x = Finite("x", ["a", "b"])
    >>> LogisticBelief((0.0, 0.0), 1.0).probs(Counts((x,), [3, 1]), Mode()).round(4)
    array([0.6645, 0.3355])
    """

    mean: tuple[float, ...]
    variance: float

    def log_evidence(self, seen: Counts) -> float:
        """Σᵤ ln Z over the rows that hold data: the others add nothing."""
        rows, times = np.unique(rows_of(seen), axis=0, return_counts=True)
        return float(times @ self._posterior(rows).log_evidence)

    def probs(self, seen: Counts, how: Estimate) -> Array:
        """The point values of a whole table."""
        rows, back = self._distinct(seen)
        answer = rows.probs if isinstance(how, Mode) else rows.means()
        return np.asarray(answer[back].reshape(sizes(seen.variables)))

    def interval(self, seen: Counts, level: float) -> Interval:
        """The equal-tailed interval of each probability, for more than two states by draws, which are few beyond 0.999."""
        rows, back = self._distinct(seen)
        lower, upper = quantiles(rows, (1.0 - checked_level(level)) / 2.0)
        shape = sizes(seen.variables)
        return Interval(lower[back].reshape(shape), upper[back].reshape(shape))

    def drawn(self, counts: Array, n: int, rng: np.random.Generator) -> Array:
        """n draws of the rows that have these counts: [n, rows, states]."""
        return drawn(self._posterior(counts), n, rng)

    def _distinct(self, seen: Counts) -> tuple[Laplace, npt.NDArray[np.intp]]:
        """The posterior of each kind of row, and of which kind each row is."""
        table = seen.dense().reshape(-1, len(self.mean))
        rows, back = np.unique(table, axis=0, return_inverse=True)
        return self._posterior(rows), back.reshape(-1)

    def _posterior(self, rows: Array) -> Laplace:
        return Laplace(rows, np.array(self.mean), self.variance)


def _by_evidence(table: Array, mean: Array) -> float:
    """The variance with which these rows have the largest evidence."""
    if len(table) < 2 or table.shape[1] < 2:
        return LIKE_DIRICHLET
    rows, times = np.unique(table, axis=0, return_counts=True)

    return best_number(lambda v: float(times @ Laplace(rows, mean, v).log_evidence), LOWEST, HIGHEST, 29)
