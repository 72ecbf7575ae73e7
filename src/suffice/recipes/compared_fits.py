"""Several ways to fit compared by what they predict of one column in rows, or whole sequences, that they have not seen."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.iteration import Progress, ProgressLike
from suffice.basis.output.display import OneTable
from suffice.basis.variables import Finite
from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.engines.scan import scan
from suffice.engines.sequences.sequences import Sequences
from suffice.errors import DataError, FitError, listing, nearest, note, quantity
from suffice.families.protocol.family import frame
from suffice.learning.fit import fit
from suffice.models.chains.chain_answers import posterior_frame
from suffice.objectives.principles import Perceptron

Fits = Mapping[str, Callable[[Any], Any]]

N_BINS = 10
"""Bins of the largest probability, by which the error of calibration is found."""


@dataclass(frozen=True, eq=False)
class HeldOutScores:
    """Sums over held-out rows, which add: their weight, ln p of whole rows, ln p of the target given the others, the weight of
    those whose most probable state is the right one, the squares of Brier's score, and by bins of the largest probability its
    sum, the weight and the weight that is right. `seconds` is what the fits took."""

    weight: float
    log_likelihood: float
    conditional: float
    right: float
    squares: float
    bins: Array = field(repr=False)
    seconds: float = 0.0

    @classmethod
    def of(cls, probs: Array, true: Ints, weights: Array, **more: float) -> HeldOutScores:
        """Of p(state | the others) of rows, a column per state. Rows that are impossible have none, which is as bad as p =
        0."""
        probs = np.nan_to_num(probs, nan=0.0)
        each, found = np.arange(len(true)), probs.argmax(axis=1)
        with np.errstate(divide="ignore"):
            logs = np.log(probs[each, true])
        top = probs[each, found]
        hit = (found == true) & (top > 0.0)
        squares = (probs**2).sum(axis=1) - 2.0 * probs[each, true] + 1.0
        place = np.minimum((top * N_BINS).astype(np.int64), N_BINS - 1)
        bins = np.stack([np.bincount(place, w, N_BINS) for w in (weights * top, weights, weights * hit)]).astype(np.float64)
        sums = {"conditional": float(weights[weights > 0] @ logs[weights > 0]), "log_likelihood": float("nan")} | more
        return cls(float(weights.sum()), right=float(weights @ hit), squares=float(weights @ squares), bins=bins, **sums)

    def __add__(self, other: HeldOutScores) -> HeldOutScores:
        return HeldOutScores(**{name: value + getattr(other, name) for name, value in vars(self).items()})

    @property
    def accuracy(self) -> float:
        """The share of rows whose most probable state is the right one."""
        return self.right / self.weight

    @property
    def brier(self) -> float:
        """The mean of Σ (p − [state is right])²: from 0 to 2."""
        return self.squares / self.weight

    @property
    def calibration_error(self) -> float:
        """How far the largest probability is from the share that is right, bin by bin, on average over rows."""
        said, _, right = self.bins
        return float(np.abs(said - right).sum() / self.weight)


def as_fits(method: Any, objective: Any, penalty: Any, prior: Any) -> Fits | None:
    """What `cross_validate` is asked to compare: functions by name, or one graph under several objectives; None if neither."""
    if objective is not None:
        if prior is not None:
            raise FitError("with objective= a prior is an objective, too: Bayes(prior)")
        several = objective if isinstance(objective, (list, tuple)) else [objective]
        named: Mapping[str, Any] = objective if isinstance(objective, Mapping) else {repr(o): o for o in several}
        fits: dict[str, Callable[[Any], Any]] = {}
        for name, goal in named.items():  # a penalty is for objectives about one column; mistakes have none
            takes = penalty is not None and hasattr(goal, "target") and not isinstance(goal, Perceptron)
            fits[str(name)] = partial(fit, method, objective=goal, **({"penalty": penalty} if takes else {}))
        return fits
    if not isinstance(method, Mapping) or not any(callable(f) for f in method.values()):
        return None
    if wrong := [n for n, f in method.items() if not callable(f)]:
        raise FitError(f"what is compared are functions of rows, {{'name': lambda rows: fit(graph, rows)}}; {wrong[0]!r} is none")
    return {str(n): f for n, f in method.items()}


def compare_fits(data: Any, fits: Fits, folds: int, target: str | None, seed: int, progress: ProgressLike) -> ComparedFits:
    """Each fit to the rows outside each fold, scored by the rows inside."""
    rows = data if isinstance(data, Sequences) else scan(data)
    target = _checked_target(rows, fits, target)
    if isinstance(rows, Data):
        check_folds(rows, folds)
    watch: Progress[Any] = Progress("cross-validation", None, progress)
    done: dict[str, list[HeldOutScores]] = {name: [] for name in fits}
    n = 0
    try:
        for train, test in rows.split(folds, seed):
            scores = {}
            for name, how in fits.items():
                watch.check(f"fold {n + 1} of {folds}, {name}")
                start = time.perf_counter()
                try:
                    model = how(train)
                except FitError as error:
                    rare = "a part of the rows may lack what is rare in all"
                    raise FitError(f"{name}, fold {n + 1} of {folds}: {error.said} ({rare})") from None
                score = _of_sequences if isinstance(test, Sequences) else _of_rows
                scores[name] = score(name, model, test, target, time.perf_counter() - start)
            for name, own in scores.items():
                done[name].append(own)
            n += 1
    except KeyboardInterrupt as stop:
        if not n:
            raise watch.too_early(stop, "any fold was done") from None
        note(f"the cross-validation was stopped after {n} of {folds} folds")
    finally:
        watch.close()
    return ComparedFits(target, {name: tuple(own) for name, own in done.items()}, folds, watch.seconds)


def standard_error(folds: Sequence[float]) -> float:
    """The standard error of a mean over folds, by their spread; NaN where one is −inf, or there is but one."""
    known = len(folds) > 1 and bool(np.isfinite(folds).all())
    return float(np.std(folds, ddof=1) / np.sqrt(len(folds))) if known else float("nan")


def check_folds(rows: Data, folds: int) -> None:
    """Refuse more folds than there are rows."""
    most = int(min(rows.weight, 2**62)) if rows.whole_weights else rows.n_rows
    if folds > most:
        raise FitError(f"{folds:,} folds need at least as many rows, and there are {most:,}")


def _checked_target(rows: Any, fits: Fits, target: str | None) -> str:
    goals: list[Any] = [getattr(f, "keywords", {}).get("objective") for f in fits.values()]
    own = {goal.target for goal in goals if hasattr(goal, "target")}
    if target is None and len(own) != 1:
        raise FitError("say which column is predicted: cross_validate(..., target='y')")
    name = next(iter(own)) if target is None else target
    if name not in rows.columns:
        raise DataError(f"the data have no column {name!r}, which is to be predicted{nearest(name, rows.columns)}")
    if not isinstance(rows.schema[name], Finite):
        raise FitError(f"{name!r} holds numbers, and what is predicted is a finite column: cut it into Bins")
    if not isinstance(rows, Sequences):
        rows.require_complete([name])
    elif rows.missing[name]:
        raise DataError(f"the column {name!r} has missing cells, and fits are compared by all of it")
    return name


def _of_rows(name: str, model: Any, test: Any, target: str, seconds: float) -> HeldOutScores:
    if not hasattr(model, "predict_proba") or target not in getattr(model, "variables", ()):
        raise FitError(f"{name!r} gives a {type(model).__name__}, which does not predict {target!r}")
    some = test.select([n for n in test.columns if n in model.variables])
    rows = some.distinct()
    probs = model.predict_proba(some.of_rows(rows), target)
    own: Any = test.schema[target]
    known = model.variables[target].states
    columns = np.stack([_column(probs, s, known, len(rows.weights)) for s in own.states], axis=1)
    more = {"log_likelihood": float(model.log_likelihood(some)), "seconds": seconds}
    return HeldOutScores.of(columns, rows.columns[target].astype(np.int64), np.asarray(rows.weights, np.float64), **more)


def _column(probs: Any, state: str, known: Any, n: int) -> Array:
    """The probabilities of a state; 0 of one that a model does not know."""
    return np.asarray(probs[state], np.float64) if state in known else np.zeros(n)


def _target_cells(target: str, block: Block) -> tuple[Ints, Array]:
    """The states of a column in a block, and the weights of its rows."""
    return block.columns[target].astype(np.int64), np.asarray(block.weights, np.float64)


def _of_sequences(name: str, model: Any, test: Any, target: str, seconds: float) -> HeldOutScores:
    """Of a `Chain`, what the other columns of the sequence say of the target; of a `Crf`, what it says of its label."""
    if not hasattr(model, "smooth") and getattr(model, "label", None) != target:
        raise FitError(f"{name!r} gives a {type(model).__name__}, which does not predict {target!r} of sequences")
    parts = list(test.select([target]).data.map(partial(_target_cells, target)))
    true, weights = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    each = weights[np.cumsum(test.lengths) - test.lengths]  # a sequence weighs what its first step does
    own: Any = test.schema[target]
    more = {"seconds": seconds}
    if hasattr(model, "smooth"):
        hidden = test.select([n for n in test.columns if n != target])
        known = [f"{target}={s}" for s in model.variables[target].states]
        probs = posterior_frame(model, hidden, smooth=True, impossible=True)
        names = [f"{target}={s}" for s in own.states]
        logs, rest = model.log_prob(test), model.log_prob(hidden)
        given = np.subtract(logs, rest, out=np.full_like(logs, -np.inf), where=rest > -np.inf)
        more |= {"log_likelihood": float(each @ logs), "conditional": float(each @ given)}
    else:
        probs, known, names = model.predict_proba(test), list(model.labels), list(own.states)
        more["conditional"] = float(each @ model.log_prob(test))
    columns = np.stack([_column(probs, s, known, len(true)) for s in names], axis=1)
    return HeldOutScores.of(columns, test.in_order(true), test.in_order(weights), **more)


@dataclass(frozen=True, eq=False, repr=False)
class ComparedFits(OneTable):
    """What `cross_validate` gives where it compares fits: `folds[name]` are the scores of each fold, `result[name]` their sum.
    It prints as a table; log-likelihoods are per row, NaN of a model that says nothing of the other columns.

    >>> from suffice import Conditional, Likelihood, cross_validate
    >>> rows = {"y": list("abab") * 12, "u": list("abaa") * 12, "v": list("abbb") * 12}
    >>> compared = cross_validate(rows, method="y -> u; y -> v", folds=3, objective=[Likelihood(), Conditional("y")])
    >>> compared.target, list(compared.folds)
    ('y', ['Likelihood()', "Conditional('y')"])
    """

    target: str
    folds: Mapping[str, tuple[HeldOutScores, ...]]
    n_folds: int
    seconds: float

    def __getitem__(self, name: str) -> HeldOutScores:
        if name not in self.folds:
            raise DataError(f"nothing was compared under the name {name!r}: there are {listing(self.folds)}")
        first, *others = self.folds[name]
        return sum(others, start=first)

    def error(self, name: str) -> float:
        """The standard error of the conditional log-likelihood per row, by the spread of the folds; NaN where a fold is
        −inf, or there is but one."""
        return standard_error([f.conditional / f.weight for f in self.folds[name]])

    def plot(self, ax: Any = None) -> Any:
        """ln p(target | rest) of a held-out row by each fit, ± two standard errors, by matplotlib; gives the axes."""
        from suffice.basis.pictures.plots import plot_intervals

        means = np.array([self[name].conditional / self[name].weight for name in self.folds])
        errors = np.array([self.error(name) for name in self.folds])
        own = [(self.target, means, means - 2 * errors, means + 2 * errors)]
        return plot_intervals(ax, list(self.folds), own, x=f"held-out ln p({self.target} | rest) per row", title=self._headline())

    def to_frame(self) -> Any:
        """One row for each fit."""
        header, rows = self._table()
        return frame({name: [row[i] for row in rows] for i, name in enumerate(header)})

    def _table(self) -> tuple[list[str], list[list[object]]]:
        rows: list[list[object]] = []
        for name in self.folds:
            s = self[name]
            given = [s.conditional / s.weight, self.error(name)]
            rows.append([name, s.log_likelihood / s.weight, *given, s.accuracy, s.brier, s.calibration_error, s.seconds])
        given_rest = [f"ln p({self.target} | rest)", "± error"]
        return ["fit", "log-likelihood", *given_rest, "accuracy", "Brier", "calibration error", "seconds"], rows

    def _headline(self) -> str:
        done = len(next(iter(self.folds.values())))
        stopped = f" of {self.n_folds}, then stopped" if done < self.n_folds else ""
        return f"{self.target!r} predicted in held-out rows; {quantity(done, 'fold')}{stopped}; {self.seconds:.3g} s"
