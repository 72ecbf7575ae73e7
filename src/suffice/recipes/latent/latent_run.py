"""What `mixture`, `hmm` and `factors` have in common: what their number of classes, states or factors is chosen by, besides the
scores, how those that were tried compare, and what their runs say of the ends of all starts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from suffice.basis.iteration import Progress, Run
from suffice.basis.limits import Limits
from suffice.basis.output.display import OneTable
from suffice.errors import FitError, Sentence, listing, note, quantity
from suffice.errors.remedies import in_python
from suffice.families.protocol.family import Array, frame
from suffice.learning.em import checked_numbers
from suffice.learning.incomplete.climb import Climb, EmMethod, Point, climb_from_starts, evaluate
from suffice.objectives.scores import BIC
from suffice.structure.undirected.selection import HeldOut

SHOWN = 8
"""Columns of each kind that a table of classes shows."""

R = TypeVar("R", bound=Any)


@dataclass(frozen=True)
class ICL:
    """The number of classes by BIC + Σ ln r, that of hidden states by ln p(best path, data) − ½ k ln N: those that are well apart
    are preferred. See `MixtureRun.icl` and `HmmRun.icl`.

    >>> ICL()
    ICL()
    """


class StartResult(NamedTuple):
    """What one start led to: its objective, its iterations, and whether it converged; or why a class or state of it collapsed."""

    objective: float
    n_iterations: int
    converged: bool
    collapsed: str | None


class Choice(NamedTuple):
    """A number of classes, states or factors that was tried: the value it was judged by, higher is better, its facts; or why it
    failed. Factors have no ICL."""

    k: int
    value: float
    log_likelihood: float
    n_parameters: int
    bic: float
    icl: float
    problem: str | None = None


class Choices(OneTable, tuple[Choice, ...]):
    """The numbers of classes or states that were tried. Prints as a table.

    >>> Choices([Choice(2, -10.0, -8.0, 3, -10.0, -11.0)])
    k  value  log-likelihood  parameters  BIC  ICL
    ─  ─────  ──────────────  ──────────  ───  ───
    2  -10    -8              3           -10  -11
    """

    __slots__ = ()

    def _table(self) -> tuple[list[str], list[list[object]]]:
        header = ["k", "value", "log-likelihood", "parameters", "BIC", "ICL"]
        header = header[: 5 if all(np.isnan(c.icl) for c in self) else 6]
        rows: list[list[object]] = [
            [f"{v:.10g}" if isinstance(v, float) else v for v in choice[: len(header)]] for choice in self
        ]
        if any(c.problem for c in self):
            header, rows = [*header, "problem"], [[*row, c.problem or ""] for row, c in zip(rows, self, strict=True)]
        return header, rows

    def plot(self, ax: Any = None) -> Any:
        """What each number was judged by, by matplotlib, the best ringed; gives the axes."""
        from suffice.basis.pictures.plots import plot_curves

        told = [c for c in self if np.isfinite(c.value)]
        drawn = plot_curves(ax, [c.k for c in told], [("", [c.value for c in told])], x="number", y="value, higher is better")
        if told:
            best = max(told, key=lambda c: c.value)
            drawn.plot([best.k], [best.value], "o", mfc="none", mec="black", ms=10)
        return drawn

    def to_frame(self) -> Any:
        """The same as a data frame."""
        return frame({name: [getattr(c, name) for c in self] for name in Choice._fields})


def check_asked(
    own: Mapping[str, Any], k: Any, choose: Any, starts: Any, start: Any, seed: Any, n_rows: int, what: str, rows: str, icl: bool
) -> dict[str, Any]:
    """What is asked of every learner of something hidden, in the fields of `LatentTask`: the numbers of classes, states or
    factors (`what`) to try, each at most that of the rows, what to choose by, BIC where nothing is said, and how to climb.
    Classes and states have an `icl`, and a start has their number."""
    several = list(k) if isinstance(k, Iterable) and not isinstance(k, str) else [k]
    for size in several:
        if not isinstance(size, (int, np.integer)) or isinstance(size, bool) or size < 1:
            raise FitError(f"the number of {what} is a whole number from 1 up, or several of them, range(1, 6); not {size!r}")
        if size > n_rows:
            raise FitError(f"a number of {size:,} {what} needs at least as many {rows}, and there are {n_rows:,}")
    if not several:
        raise FitError(f"there is no number of {what} to choose among")
    sizes = list(dict.fromkeys(int(s) for s in several))
    tol, max_iter, seed, _ = checked_numbers(own["tol"], own["max_iter"], seed, starts)
    judge = BIC() if choose is None else choose
    if not (isinstance(judge, (ICL, HeldOut) if icl else HeldOut) or hasattr(judge, "price")):
        overlap = ", ICL()" if icl else ""
        raise FitError(f"the number of {what} is chosen by BIC(), AIC(){overlap} or HeldOut(folds=5), not {choose!r}")
    if icl and len(sizes) > 1 and start is not None:
        raise FitError(f"a start has a number of {what} of its own: give k as that number")
    numbers = {"several": not isinstance(k, (int, np.integer)), "sizes": sizes, "judge": judge, "seed": seed, "tol": tol}
    return {"name": own["name"], "what": what, "starts": starts, "start": start, "max_iter": max_iter, **numbers}


class LatentOptions(Limits, total=False):
    """What learners of something hidden take besides: the limits of long calls, when a climb ends, and what it is called."""

    name: str
    """The name of what is hidden: "class", "state", or "factor", to which a number is added where there are several."""
    tol: float
    """In nats: a climb ends when an iteration gains no more (1e-6); 0 makes all of `max_iter`."""
    max_iter: int
    """The most iterations of a climb: 500."""


@dataclass(frozen=True, eq=False)
class LatentTask:
    """What was asked, checked."""

    name: str
    what: str
    """What is hidden, in the plural."""
    several: bool
    """Whether the best of several numbers of them is wanted."""
    sizes: list[int]
    judge: Any
    starts: int
    start: Any
    seed: int
    tol: float
    max_iter: int
    watch: Progress[Any]

    def watching(self, i: int, k: int) -> Callable[[Climb], None]:
        """Look at the clock after each iteration from the i-th start, and show how far it is."""
        said = f"{k} {self.what}, start {i + 1}"
        return lambda way: self.watch.check(f"{said}, iteration {len(way.trace)}: {way.point.objective:,.3f}")

    def climbs(
        self,
        kind: type[Climb],
        problem: Any,
        k: int,
        begin: Callable[[], Any],
        draws: Callable[[], Callable[[int, np.random.Generator], Any]],
        collapse: type[Sentence] = FitError,
        method: EmMethod | None = None,
    ) -> tuple[list[Climb], bool]:
        """EM from every start, and whether it was stopped before the end: `begin` gives the start that was asked for, `draws` how
        the i-th is drawn."""
        n = 1 if self.start is not None or k == 1 else self.starts  # one class or state has one optimum

        def places() -> Iterator[Callable[[], Any]]:
            if self.start is not None:
                yield begin
                return
            draw = draws()
            for i, seed in enumerate(np.random.SeedSequence(self.seed).spawn(n)):
                yield partial(draw, i, np.random.default_rng(seed))

        def climb(i: int, way: Climb) -> None:
            way.point = evaluate(problem, way.point.parameters())
            way.run(self.tol, self.max_iter, self.watching(i, k), method)

        def at(place: Callable[[], Any]) -> Climb:
            return kind(problem, Point(place, None, -np.inf, -np.inf))

        climbs, stopped = climb_from_starts(places(), n, self.watch, at, climb, collapse)
        return [c for c in climbs if c.trace or c.stopped], stopped

    def best(self, rows: Any, learn: Callable[[int], tuple[R, bool]], outside: Callable[[Any, Any, int], float]) -> R:
        """The run of the number of classes, states or factors that is asked for, or the best of several, with how they compare.
        `learn` gives the run of a number, and whether it was stopped before its end; a number at which all starts collapse is
        out. Of rows, or sequences, held out, `outside(train, test, k)` is ln p under what those outside their fold teach."""
        if not self.several:
            return learn(self.sizes[0])[0]
        found, choices, what = dict[int, R](), list[Choice](), self.what
        for size in self.sizes:
            try:
                run, stopped = learn(size)
                if stopped and found:
                    note(f"stopped at {size} {what}: the number of {what} is the best of {listing(found)}")
                    break
                if isinstance(self.judge, HeldOut):
                    value = sum(outside(train, test, run.k) for train, test in rows.split(self.judge.folds, self.seed))
                else:
                    value = run._value(self.judge)
                choices.append(Choice(size, value, run.log_likelihood, run.n_parameters, run.bic, run.icl))
                found[size] = run
                if stopped:
                    break
            except FitError as error:
                choices.append(Choice(size, -np.inf, np.nan, 0, np.nan, np.nan, str(error)))
        if not found:
            raise FitError(f"no number of {what} could be learned: {choices[0].problem}")
        best = max((c for c in choices if c.k in found), key=lambda c: c.value)
        return replace(found[best.k], choices=Choices(choices))


def order_of(shares: Array, numbers: Sequence[Array]) -> list[int]:
    """The classes or states by falling share, and then by their numbers."""
    every = range(len(shares))
    return sorted(every, key=lambda c: (-round(float(shares[c]), 9), *(x for a in numbers for x in a[c].ravel().tolist())))


M = TypeVar("M", bound=Any)


@dataclass(frozen=True, eq=False, repr=False)
class LatentRun(OneTable, Run[M]):
    """A model with something hidden, and how it was found."""

    optima: tuple[StartResult, ...]
    """The end of every start, the best first, those that collapsed last."""
    choices: Choices | None
    """The numbers of classes, states or factors that were tried, if there were several."""

    @property
    @abstractmethod
    def _n(self) -> float:
        """N: the weight of the rows or steps that were learned from."""

    @property
    def n_parameters(self) -> int:
        """The free parameters; what is shared counts once."""
        return int(self.model.n_parameters)

    @property
    def bic(self) -> float:
        """log-likelihood − ½ k ln N, k the number of parameters and N that of rows or steps: higher is better (half of what
        mclust prints)."""
        return self.log_likelihood - 0.5 * self.n_parameters * float(np.log(self._n))

    @property
    def aic(self) -> float:
        """log-likelihood − k: higher is better."""
        return self.log_likelihood - self.n_parameters

    def _value(self, judge: Any) -> float:
        """What it is judged by: a penalised likelihood, or `ICL`."""
        return self.icl if isinstance(judge, ICL) else self.log_likelihood - float(judge.price(self._n)) * self.n_parameters

    @property
    @abstractmethod
    def icl(self) -> float:
        """BIC, less what classes or states cost that are hard to tell apart; NaN where there are none."""

    def _end(self) -> str:
        """How the starts ended, in words."""
        good = sum(o.collapsed is None for o in self.optima)
        same = sum(o.collapsed is None and self.objective - o.objective <= 1e-3 for o in self.optima)
        starts = f"; best of {good} starts, {same} of which reached it" if len(self.optima) > 1 else ""
        fallen = f", {len(self.optima) - good} more collapsed" if len(self.optima) > good else ""
        return f"{'' if self.converged else 'not '}converged in {quantity(self.n_iterations, 'iteration')}{starts}{fallen}"

    def _below(self) -> str:
        return f"\n\n{self.choices!r}" if self.choices else ""


def class_table(run: Any, more: Mapping[str, Array]) -> tuple[list[str], list[list[object]]]:
    """A line for each class or state of a run: its weight, what else is told, and the parameters of its columns."""
    columns: list[tuple[str, list[Any]]] = [("weight", run.weights.tolist()), *((n, v.tolist()) for n, v in more.items())]
    for j, name in enumerate(run.columns[:SHOWN]):
        columns += [(name, run.means[:, j].tolist()), ("sd", np.sqrt(run.covariances[:, j, j]).tolist())]
    columns += [(f"rate of {name}", rates.tolist()) for name, rates in list(run.rates.items())[:SHOWN]]
    for name, p in list(run.probs.items())[:SHOWN]:
        states = run.model.variables[name].states
        columns.append((name, [f"{states[i]} {q[i]:.3g}" for q, i in zip(p, p.argmax(1), strict=True)]))
    lines = zip(run.model.variables[run.name].states, *(values for _, values in columns), strict=True)
    return [run.name, *(name for name, _ in columns)], [list(line) for line in lines]


def collapse_of_all(n: int, of: str, why: str, what: str) -> FitError:
    return FitError(
        f"all {n} starts of {of} collapsed: {why}; use fewer {what}, a prior, for instance (Dirichlet(1), NormalInverseGamma()), "
        f"or a covariance that all {what} share, Tied()"
    )


def tell_of_ends(climbs: list[Climb], stopped: bool, task: LatentTask, of: str, model: str) -> None:
    """Note what the user should know of how starts ended, and bring the best to the front; refuse it if all collapsed."""
    fallen = [c.stopped for c in climbs if c.stopped]
    if len(fallen) == len(climbs):
        raise collapse_of_all(len(climbs), of, climbs[0].stopped, task.what)
    if stopped:
        note(f"stopped in start {len(climbs)} of {task.starts}: the {model} is the best so far")
    if fallen:
        note(f"{len(fallen)} of {len(climbs)} starts collapsed and were given up: {fallen[0]}")
    climbs.sort(key=lambda c: (bool(c.stopped), -c.point.objective))


def optima_of(climbs: list[Climb]) -> tuple[StartResult, ...]:
    """What each start led to."""
    each = [(c.trace[-1].objective if c.trace else -np.inf, c) for c in climbs]
    return tuple(StartResult(end, len(c.trace), c.converged, in_python(c.stopped) or None) for end, c in each)
