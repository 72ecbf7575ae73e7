"""Calibration: whether what a network says with a probability of 0.7 comes true in 70 % of the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Bools
from suffice.basis.blas import one_blas_thread
from suffice.basis.libraries import sc
from suffice.basis.output.display import OneTable
from suffice.basis.variables import Finite
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, ModelError, listing, nearest, whole
from suffice.families.protocol.family import frame
from suffice.recipes.compared_fits import HeldOutScores

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike
    from suffice.models.networks import BayesNet, MarkovNet

LEVEL = 0.95
"""Of the intervals of observed shares."""


class CalibrationBin(NamedTuple):
    """Rows with about the same probability of a state: the mean of these, the share that has it, its interval, their weight."""

    state: str
    predicted: float
    observed: float
    lower: float
    upper: float
    weight: float


class Roc(NamedTuple):
    """How many rows with and without a state are above each probability, as shares; `area` below: 0.5 is chance, 1 perfect."""

    false_positive: Array
    true_positive: Array
    area: float


@one_blas_thread
def calibration(network: BayesNet | MarkovNet, data: RowsLike, target: str, *, bins: int = 10) -> Calibration:
    """How well probabilities of a finite target, given the other cells of its row, agree with what there is in the data.

    Judge a network by rows that it was not fitted from. Cells of other columns may be missing; those of the target may not.

    >>> import suffice as sf
    >>> asia = sf.load("asia")
    >>> result = calibration(asia, asia.sample(500, seed=0), "bronc", bins=2)
    >>> round(result.brier, 3), round(result.roc["yes"].area, 3)
    (0.231, 0.894)
    >>> result.plot().get_xlabel()
    'predicted probability of bronc=yes'
    """
    n_bins = whole(bins, "bins", 1)
    if target not in network.variables:
        raise ModelError(f"the network has no node {target!r}{nearest(str(target), network.variables)}")
    own = network.variables[target]
    if not isinstance(own, Finite):
        raise FitError(f"{target!r} is a number, and what is judged are probabilities of states: cut it into Bins")
    rows = scan(data)
    if target not in rows.columns:
        raise DataError(f"the data have no column {target!r}, which is to be predicted{nearest(target, rows.columns)}")
    known = {n: v for n, v in network.variables.items() if n in rows.columns}
    some = rows.select(list(known)).with_variables(known)
    some.require_complete([target])
    different = some.distinct()
    frame_of_probs = network.predict_proba(some.of_rows(different), target)
    probs = np.stack([np.asarray(frame_of_probs[s], np.float64) for s in own.states], axis=1)
    weights, true = np.asarray(different.weights, np.float64), different.columns[target].astype(np.int64)
    total = weights.sum()
    if not total > 0:
        raise DataError("there are no rows to judge the network by")
    probs, scores = np.nan_to_num(probs), HeldOutScores.of(probs, true, weights)
    found, curves = [], {}
    for k, state in enumerate(own.states):
        found += _bins(state, probs[:, k], true == k, weights, n_bins)
        curves[state] = _roc(probs[:, k], true == k, weights)
    return Calibration(own, scores.brier, scores.conditional / scores.weight, tuple(found), curves, float(total))


def _bins(state: str, p: Array, hit: Bools, weights: Array, n_bins: int) -> list[CalibrationBin]:
    place = np.minimum((p * n_bins).astype(np.int64), n_bins - 1)
    weight, said, came = (np.bincount(place, w, n_bins) for w in (weights, weights * p, weights * hit))
    low, high = (1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0
    result = []
    for n, s, c in zip(weight.tolist(), said.tolist(), came.tolist(), strict=True):
        if n > 0:  # quantiles of the posterior of a share, by Jeffreys' prior
            lower, upper = (float(sc.betaincinv(c + 0.5, n - c + 0.5, q)) for q in (low, high))
            result.append(CalibrationBin(state, s / n, c / n, lower, upper, n))
    return result


def _roc(p: Array, hit: Bools, weights: Array) -> Roc:
    """Equal probabilities are one point, so that ties count one half."""
    order = np.argsort(-p, kind="stable")
    last = np.append(np.diff(p[order]) != 0.0, True)
    yes, no = (np.append(0.0, np.cumsum((weights * flags)[order])[last]) for flags in (hit, ~hit))
    if not (yes[-1] > 0 and no[-1] > 0):
        return Roc(no, yes, float("nan"))
    x, y = no / no[-1], yes / yes[-1]
    return Roc(x, y, float(((x[1:] - x[:-1]) * (y[1:] + y[:-1])).sum() / 2.0))


@dataclass(frozen=True, eq=False, repr=False)
class Calibration(OneTable):
    """The result of `calibration`. It prints as a table of bins of probabilities; `plot` and `plot_roc` draw it.

    >>> import suffice as sf
    >>> judged = calibration(sf.load("asia"), {"smoke": ["yes", "no", "yes"], "bronc": ["yes", "no", "no"]}, "bronc", bins=2)
    >>> [(b.state, b.predicted, b.observed, b.weight) for b in judged.bins[:2]]
    [('yes', 0.3, 0.0, 1.0), ('yes', 0.6, 0.5, 2.0)]
    """

    target: Finite
    brier: float
    """The mean of Σ (p − [state is right])²: from 0 to 2."""
    log_score: float
    """ln p of the right state, on average."""
    bins: tuple[CalibrationBin, ...]
    roc: Mapping[str, Roc] = field(repr=False)
    """Of each state against all others."""
    weight: float
    """The rows, or their weight."""

    def of(self, state: str | None) -> str:
        """A state of the target; the one whose mean probability is nearest to one half where none is given, the first of
        equals."""
        states = self.target.states
        if state is None:
            share = {s: sum(b.weight * b.predicted for b in self.bins if b.state == s) / self.weight for s in states}
            return min(states, key=lambda s: abs(share[s] - 0.5))
        if state not in states:
            raise ModelError(f"{self.target.name!r} has no state {state!r}: there are {listing(states)}")
        return state

    def plot(self, ax: Any = None, state: str | None = None) -> Any:
        """Observed shares with their intervals over predicted probabilities of a state; on the diagonal they agree. By
        matplotlib; gives the axes."""
        from suffice.basis.pictures.plots import plot_reliability

        own = self.of(state)
        bins = [(b.predicted, b.observed, b.lower, b.upper, b.weight) for b in self.bins if b.state == own]
        words = f"{self.target.name}={own}"
        return plot_reliability(
            ax, bins, x=f"predicted probability of {words}", y=f"share that has {words}", title=self._scores()
        )

    def plot_roc(self, ax: Any = None, state: str | None = None) -> Any:
        """The share of rows with a state that are above each probability, over that of rows without it. By matplotlib; gives the
        axes."""
        from suffice.basis.pictures.plots import plot_against

        own = self.of(state)
        curve = self.roc[own]
        return plot_against(
            ax, curve.false_positive, curve.true_positive, x="false positives", y="true positives", mark="-",
            title=f"{self.target.name}={own}: area {curve.area:.4f}",
        )  # fmt: skip

    def to_frame(self) -> Any:
        """The bins as a data frame."""
        return frame({name: [getattr(b, name) for b in self.bins] for name in CalibrationBin._fields})

    def _table(self) -> tuple[list[str], list[list[object]]]:
        shown = self.bins if self.target.n_states > 2 else [b for b in self.bins if b.state == self.of(None)]
        return [*CalibrationBin._fields[:-1], "rows"], [[*b[:-1], f"{b.weight:,.10g}"] for b in shown]

    def _scores(self) -> str:
        return f"Brier score {self.brier:.4f}, log score {self.log_score:.4f} per row, {self.weight:,.10g} rows"

    def _headline(self) -> str:
        areas = ", ".join(f"{s} {self.roc[s].area:.4f}" for s in self.target.states[:6])
        return f"{self.target.name} predicted: {self._scores()}; area below ROC: {areas}"
