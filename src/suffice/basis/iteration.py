"""Iteration: the clock of a long run, what it has found so far, and what each of its steps gained.

A learner that works step by step reports each improvement to a `Progress`. Whoever started it can then set a time limit, watch
the best value, interrupt it, and still take the best result so far.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array
from suffice.basis.output.terminal import LINE, is_shown, patience
from suffice.errors import FitError
from suffice.errors.remedies import name_of

T = TypeVar("T")
V = TypeVar("V")
Packed = tuple[Any, tuple[npt.NDArray[Any], ...]]
"""A value as a JSON document and arrays."""
Pack: TypeAlias = Callable[[V], Packed]
Load: TypeAlias = Callable[[Packed], V]
M = TypeVar("M", covariant=True)


class TraceStep(NamedTuple):
    """One step of a run: what it did, the gain of the objective, the objective after it, the seconds since the start."""

    what: str
    gain: float
    score: float
    seconds: float


ProgressLike = bool | Callable[[TraceStep], object] | None
"""Whether a run is shown on a terminal or in a notebook, by default if there is one; or a function that is called with each step,
and stops the run, as Ctrl-C does, when what it returns is true; where there is nothing to return yet, a `FitError` says so."""


class Iteration(NamedTuple):
    """One iteration of a run: the objective after it, which never falls; the log-likelihood; the seconds since the start."""

    objective: float
    log_likelihood: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Run(Generic[M]):
    """What an iterative learner returns: the model, one record per iteration, and whether it came to its end.

    >>> run = Run("a model", (Iteration(-10.0, -10.0, 0.1), Iteration(-8.0, -8.0, 0.2)), converged=True)
    >>> run.model, run.n_iterations, run.objective
    ('a model', 2, -8.0)
    """

    model: M
    """What was learned: of several starts the best."""
    trace: tuple[Iteration, ...]
    """A record for each iteration of the best start: objective, log-likelihood, seconds since the start."""
    converged: bool
    """Whether the best start came to its end, and was not cut short by a limit."""
    traces: tuple[tuple[Iteration, ...], ...] = field(default=(), repr=False, kw_only=True)
    """The records of every start, the best first; empty where there was but one."""

    @property
    def n_iterations(self) -> int:
        return len(self.trace)

    @property
    def objective(self) -> float:
        """The objective at the end."""
        return self.trace[-1].objective if self.trace else float("nan")

    @property
    def log_likelihood(self) -> float:
        """The log-likelihood of what was observed, at the end."""
        return self.trace[-1].log_likelihood if self.trace else float("nan")

    def plot(self, ax: Any = None) -> Any:
        """The objective after each iteration, of every start, by matplotlib; gives the axes."""
        from suffice.basis.pictures.plots import plot_traces

        traces = self.traces or (self.trace,)
        starts = [("the best start" if k == 0 else "other starts", [i.objective for i in t]) for k, t in enumerate(traces)]
        return plot_traces(ax, starts, y="objective", title=self.headline())

    def headline(self) -> str:
        """How it ended, in a line."""
        how = "converged" if self.converged else "did not converge"
        seconds = self.trace[-1].seconds if self.trace else 0.0
        n = f"{self.n_iterations:,} iteration{'' if self.n_iterations == 1 else 's'}"
        return f"{how} in {n}, {seconds:.2f} s: log-likelihood {self.log_likelihood:,.4f}, objective {self.objective:,.4f}"

    def __repr__(self) -> str:
        about = self.model._headline() if hasattr(self.model, "_headline") else repr(self.model)
        return f"Run {self.headline()}\n{about}"


def checked_seconds(limit: Any) -> float | None:
    """A time limit: a number of seconds above 0, or None."""
    if limit is None:
        return None
    if isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit > 0:
        raise FitError(f"{name_of('time_limit')} is a number of seconds above 0, not {limit!r}")
    return float(limit)


class OutOfTime(Exception):
    """The time limit was reached. Whoever started the run catches it and takes the best so far."""


class Stopped(KeyboardInterrupt):
    """Who watches the run has stopped it: it ends as by Ctrl-C, with the best so far; where there is none, by a sentence."""


def pack_arrays(value: Any) -> Packed:
    """An array, or a tuple of two or more."""
    return None, value if isinstance(value, tuple) else (value,)


def unpack_arrays(packed: Packed) -> Any:
    """The same again."""
    return packed[1] if len(packed[1]) > 1 else packed[1][0]


def numbers_of(value: Any) -> tuple[Array, ...]:
    """The arrays and numbers of parameters, in mappings, tuples and fields, bit by bit, for a checkpoint."""
    if isinstance(value, (np.ndarray, float)):
        return (np.array(value, np.float64),)
    parts = value if isinstance(value, tuple) else (value if isinstance(value, Mapping) else _own(value)).values()
    return tuple(x for part in parts for x in numbers_of(part))


def _own(value: Any) -> dict[str, Any]:
    """The fields that hold parameters; what they were estimated from, and variables, are none."""
    own = {f.name: getattr(value, f.name) for f in fields(value)} if is_dataclass(value) else {}
    return {name: part for name, part in own.items() if isinstance(part, (np.ndarray, float, Mapping))}


def with_numbers(like: Any, numbers: Iterator[Array]) -> Any:
    """Parameters of the same kind as others, with these numbers."""
    if isinstance(like, np.ndarray):
        return next(numbers).reshape(like.shape)
    if isinstance(like, float):
        return float(next(numbers))
    if isinstance(like, Mapping):
        return {name: with_numbers(part, numbers) for name, part in like.items()}
    if isinstance(like, tuple):
        parts = [with_numbers(part, numbers) for part in like]
        return tuple(parts) if type(like) is tuple else type(like)(*parts)
    own = _own(like)
    return replace(like, **{name: with_numbers(part, numbers) for name, part in own.items()}) if own else like


class Memory(AbstractContextManager["Memory"]):
    """What a run remembers of its steps should it be killed: nothing. A checkpoint remembers (`engines.checkpoints`)."""

    def answer(self, label: list[Any], make: Callable[[], V], pack: Pack[V] = pack_arrays, unpack: Load[V] = unpack_arrays) -> V:
        """The answer of a costly step: what it was in a run before this one, or else what is made now. The label says what was
        asked, in numbers and words; steps come in the same order in every run."""
        return make()

    def keep(self, state: Callable[[], Packed]) -> None:
        """Where the step is that is under way, in place of what was kept of it before."""

    @property
    def kept(self) -> Packed | None:
        """Where the step was that is under way, in a run before this one."""
        return None

    def finish(self) -> None:
        """The run came to its end, and nothing of it need be remembered."""

    def __exit__(self, *_: object) -> None:
        """The run ends; if it was stopped, what it remembers is kept."""


NOTHING = Memory()


@dataclass
class Progress(Generic[T]):
    """What a run reports to: it keeps the best result, the trace, and the time."""

    what: str
    time_limit: float | None = None
    show: ProgressLike = None
    start: float = field(default_factory=time.perf_counter)
    best: T | None = None
    score: float = -float("inf")
    trace: list[TraceStep] = field(default_factory=list)
    memory: Memory = NOTHING
    _stopped: bool = False
    _shown: float = 0.0
    _line: int | None = None
    _text: str = ""

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self.start

    @property
    def left(self) -> float:
        """Seconds until the limit."""
        return float("inf") if self.time_limit is None else self.time_limit - self.seconds

    def better(self, what: str, score: float, best: T) -> None:
        """A better result was found. Looks at the clock, too."""
        gain = score - self.score if self.trace else 0.0
        self.score, self.best = score, best
        self.trace.append(TraceStep(what, gain, score, self.seconds))
        self._tell(self.trace[-1])
        self.check()

    def check(self, what: str = "", score: float | None = None) -> None:
        """Raise `OutOfTime` when the limit is reached; show what is going on, on a terminal from the second second on, in a
        notebook from the third, or tell it to who watches, with the objective if it is not that of the best so far."""
        now = self.seconds
        if what and callable(self.show):
            best = self.score if self.trace else float("nan")
            self._tell(TraceStep(what, 0.0, best if score is None else score, now))
        if self.time_limit is not None and now > self.time_limit:
            raise OutOfTime
        if now > 1.0 and now - self._shown > 0.1:
            self._shown = now
            if self.show is None:
                self.show = is_shown()
            if not self.show or callable(self.show) or self.seconds < patience():
                return
            so_far = f"; best so far {self.score:,.3f}" if self.trace else ""
            self._text = f"{self.what}{': ' + what if what else ''}{so_far}"
            if self._line is None:
                self._line = LINE.begin(lambda: self._text, self.start)

    def _tell(self, step: TraceStep) -> None:
        """Tell a step to who watches, and hear whether to stop."""
        if callable(self.show) and self.show(step):
            self._stopped = True
            raise Stopped

    @property
    def stop(self) -> BaseException:
        """Why a part of the run gave its best so far, and no more: for want of time, since who watches said so, or by Ctrl-C."""
        return OutOfTime() if self.left <= 0 else Stopped() if self._stopped else KeyboardInterrupt()

    def too_early(self, stop: BaseException, what: str) -> BaseException:
        """What is raised where a run was stopped before what it would return was there: a sentence, but Ctrl-C as it came."""
        if isinstance(stop, OutOfTime):
            return FitError(f"the time limit of {self.time_limit:g} s was over before {what}")
        return FitError(f"the run was stopped before {what}") if isinstance(stop, Stopped) else stop

    def settle(self) -> None:
        """What follows is short, and must come to its end: neither the clock nor who watches stops it any more."""
        self.time_limit = None
        if callable(self.show):
            self.show = False

    def close(self) -> None:
        """Take the line on the terminal away."""
        if self._line is not None:
            LINE.end(self._line)
            self._line = None
