"""Ways up from several starts; one of EM is plain, accelerated, or in parts. Its objective never falls, and that is checked."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice, pairwise
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np

from suffice.basis.iteration import NOTHING, Iteration, Memory, OutOfTime, Packed, Progress, numbers_of, with_numbers
from suffice.errors import ArgumentError, FitError, ModelError, Sentence, SufficeError, note, quantity, whole
from suffice.errors.earlier import tell_of_argument

ROUNDING = 1e-10
"""A fall of the objective by a smaller share of it than this is rounding."""


HALVINGS = 40
"""So often a step is halved that lowers the objective."""


class Point(NamedTuple):
    """Parameters, what is expected under them, and how good they are; `plain`: reached by a step of EM. `fresh`: the steps could
    begin anew at the point before it. Of incremental steps, `parts` are the parameters of the last E-step of each part."""

    parameters: Any
    statistic: Any
    objective: float
    log_likelihood: float
    plain: bool = True
    fresh: bool = True
    parts: tuple[Any, ...] = ()


class Climbable(Protocol):
    """What can be climbed on. Parameters and statistics are in the problem's own form."""

    @property
    def weight(self) -> float:
        """The weight of all rows together."""

    def expect(self, parameters: Any) -> Any:
        """The E-step: a statistic, and ln p(observed), as `Expected`."""

    def maximise(self, statistic: Any) -> Any:
        """The M-step: parameters."""

    def log_prior(self, parameters: Any) -> float:
        """What the objective is besides ln p(observed)."""

    def rounding(self, parameters: Any) -> float:
        """By how much ln p may be off since digits are lost at these parameters."""

    def shorter(self, before: Any, after: Any) -> Any:
        """Half of the way of an M-step, where families took steps that may be too long; None where none did."""

    def fall(self) -> SufficeError | None:
        """What to say where the objective fell, if the data can make it fall."""


class FellError(SufficeError):
    """The objective fell, which EM rules out: an error in this program, not in the data."""


class EmMethod(Protocol):
    """How EM climbs."""

    def steps(self, problem: Any, begin: Point) -> Iterator[Point]:
        """The points that follow a beginning, without end."""

    def end(self, way: Climb) -> None:
        """What is left to do after the last of them."""


@dataclass(frozen=True)
class Squarem:
    """Acceleration: every third point is extrapolated from the two steps before it, and kept only if it is better.

    SQUAREM, scheme S3 (Varadhan & Roland 2008, Scandinavian Journal of Statistics 35, p. 335), with the objective watched, so
    that it never falls. A step costs up to half as much again, and saves most of them where EM crawls.

    >>> Squarem()
    Squarem()
    """

    def steps(self, problem: Any, begin: Point) -> Iterator[Point]:
        """θ₀, θ₁ = EM(θ₀), θ₂ = EM(θ₁), then θ₀ − 2a r + a² v with r = θ₁ − θ₀, v = θ₂ − θ₁ − r, a = −|r|/|v|."""
        point, after = begin, None  # the step of EM from an extrapolated point, which was taken to try it
        while True:
            here = [point]
            for k in range(2):
                here.append((after or em_step(problem, here[-1]))._replace(fresh=k == 0))
                after = None
                yield here[-1]
            point = here[-1]
            ahead = _extrapolate(problem, [p.parameters for p in here], point.objective)
            if ahead is not None:
                point, after = ahead
                yield point._replace(fresh=False)

    def end(self, way: Climb) -> None:
        """Nothing."""


@dataclass(frozen=True)
class Incremental:
    """Incremental EM: an M-step after each of so many batches of the data, one pass over them an iteration.

    The trace has the free energy, a bound on the objective, and the objective itself at its end (Neal & Hinton 1998).

    >>> Incremental(10)
    Incremental(batches=10)
    """

    batches: int

    def __post_init__(self) -> None:
        whole(self.batches, "batches", 1)

    def steps(self, problem: Any, begin: Point) -> Iterator[Point]:
        """The E-step of one part after the other, an M-step after each (Neal & Hinton 1998, Learning in Graphical Models,
        p. 355).

        What never falls is the free energy, Σ over parts of ln L + N·(ln θ − ln θ'), θ' the parameters of the part's last E-step;
        it is at most the objective, and the same at the end. One point is one pass over all parts.
        """
        parts = problem.parts(self.batches)
        parameters = begin.parameters
        last = list(begin.parts) or [parameters] * len(parts)
        known: list[Any] = [part.expect(theta) for part, theta in zip(parts, last, strict=True)]
        entropy = [e.log_likelihood - problem.free_energy(e.statistic, theta) for e, theta in zip(known, last, strict=True)]
        while True:
            for i, part in enumerate(parts):
                last[i] = parameters
                known[i] = part.expect(parameters)
                entropy[i] = known[i].log_likelihood - problem.free_energy(known[i].statistic, parameters)
                total = problem.join([e.statistic for e in known])
                parameters = problem.maximise(total)
            bound = float(sum(entropy)) + problem.free_energy(total, parameters)
            yield Point(parameters, total, bound + problem.log_prior(parameters), bound, parts=tuple(last))

    def end(self, way: Climb) -> None:
        way.settle()


OLD = ("accelerate", "batches", "m_step")
"""How 0.1 called a method of EM."""


def em_method_of(given: Mapping[str, Any]) -> EmMethod | None:
    """How EM climbs: `method=`, or what `accelerate=` and `batches=` said in 0.1; None is the plain way."""
    method = given["method"]
    if given.get("accelerate") is not None:
        tell_of_argument("accelerate=Squarem()", "method=Squarem()")
        method = given["accelerate"]
    if given.get("batches") is not None:
        tell_of_argument("batches=10", "method=Incremental(10)")
        method = Incremental(given["batches"])
    if given.get("m_step") is not None:
        if given["m_step"] != "gradient":
            raise ArgumentError(f'm_step= is no longer taken, and was "gradient", not {given["m_step"]!r}')
        tell_of_argument('m_step="gradient"', "what families without a closed form do anyway")
    if method is not None and (isinstance(method, type) or not hasattr(method, "steps")):
        raise FitError(f"the method of EM is Squarem(), Incremental(10) or left out, not {method!r}")
    return method


@dataclass(eq=False)
class Way:
    """A way up from one start, as far as it has got: it can be looked at, or stopped, at any time."""

    problem: Any
    point: Point
    trace: list[Iteration] = field(default_factory=list)
    converged: bool = False
    stopped: str = ""
    begun: float = field(default_factory=time.perf_counter)
    memory: Memory = NOTHING

    def pack(self) -> Packed:
        """The end of this way, for a checkpoint."""
        return _pack_point(self.point, self.trace, len(self.trace), self.converged, self.stopped)

    def restore(self, packed: Packed) -> Self:
        """Go to where this way was."""
        facts, (trace, *numbers) = packed
        self.converged, self.stopped = facts["converged"], facts["stopped"]
        self.trace = [Iteration(*row) for row in trace.tolist()]
        if self.trace:
            self.begun = time.perf_counter() - self.trace[-1].seconds  # what was spent before counts
            each, like = [tuple(numbers[a:b]) for a, b in pairwise(facts["cuts"])], self.point.parameters
            if [x.shape for x in numbers_of(like)] != [x.shape for x in each[0]]:
                like = self.problem.maximise(evaluate(self.problem, like).statistic)
            parameters, *parts = (with_numbers(like, iter(own)) for own in each)
            statistic = evaluate(self.problem, parameters).statistic
            self.point = Point(parameters, statistic, *self.trace[-1][:2], parts=tuple(parts))
        return self

    def record(self) -> None:
        """The point as one more iteration."""
        self.trace.append(Iteration(self.point.objective, self.point.log_likelihood, time.perf_counter() - self.begun))

    def in_words(self, n: int) -> str:
        """How the best of n ways ended."""
        end = "converged" if self.converged else "did not converge"
        several = f", best of {n} starts" if n > 1 else ""
        return f"{end} in {quantity(len(self.trace), 'iteration')}{several}, log-likelihood {self.point.log_likelihood:,.3f}"


W = TypeVar("W", bound=Way)


def _pack_point(point: Point, trace: list[Iteration], n: int, converged: bool = False, stopped: str = "") -> Packed:
    """Where a way was after n iterations, for a checkpoint; of one that has not begun, only how it ended."""
    each = [numbers_of(p) for p in (point.parameters, *point.parts)] if n else []
    cuts = np.cumsum([0, *map(len, each)]).tolist()
    facts = {"converged": converged, "stopped": stopped, "cuts": cuts}
    return facts, (np.array(trace[:n], float).reshape(-1, 3), *(x for numbers in each for x in numbers))


def climb_from_starts(
    starts: Iterator[Any],
    n: int,
    progress: Progress[Any],
    begin: Callable[[Any], W],
    climb: Callable[[int, W], None],
    collapse: type[Sentence] = FitError,
) -> tuple[list[W], bool]:
    """The ways from all n starts, and whether the clock or Ctrl-C stopped them. A way may collapse if there are others."""
    ways: list[W] = []
    try:
        for i, parameters in enumerate(starts):
            way = begin(parameters)
            way.memory = progress.memory
            ways.append(way)
            walk = partial(_climb, i, way, climb, collapse, n)
            progress.memory.answer(["start", i, n], walk, lambda way: way.pack(), way.restore)
    except (OutOfTime, KeyboardInterrupt) as stop:
        if any(way.trace for way in ways):
            return ways, True
        raise progress.too_early(stop, "the first iteration") from None
    finally:
        progress.close()
    return ways, False


def _climb(i: int, way: W, climb: Callable[[int, W], None], collapse: type[Sentence], n: int) -> W:
    """The way from the i-th of n starts, climbed; where it collapses it says why, unless it is the only one."""
    try:
        climb(i, way)
    except collapse as error:
        way.stopped = error.said
        if n == 1:
            raise
    return way


def best_first(ways: list[W], n: int) -> list[W]:
    """Those that came to an end before those that did not, the best first; which did not is noted."""
    lost = list(dict.fromkeys(way.stopped for way in ways if way.stopped))
    order = sorted(range(len(ways)), key=lambda i: (bool(ways[i].stopped) or not ways[i].trace, -ways[i].point.objective, i))
    best = ways[order[0]]
    if best.stopped or not best.trace:
        raise FitError(f"every one of {len(ways)} starts ended early; the first: {lost[0]}")
    if lost:
        note(f"{sum(bool(way.stopped) for way in ways)} of {n} starts ended early; the first: {lost[0]}")
    return [ways[i] for i in order]


class Climb(Way):
    """A way of EM."""

    @classmethod
    def at(cls, problem: Any, parameters: Any) -> Climb:
        """A climb that begins at these parameters; its clock runs from now."""
        begun = time.perf_counter()
        return cls(problem, evaluate(problem, parameters), begun=begun)

    def run(self, tol: float, max_iter: int, watch: Callable[[Climb], None], method: EmMethod | None = None) -> None:
        """Take steps, from where a run before this one was, until one of EM's gains at most `tol`, or there were `max_iter`."""
        remembers = self.memory is not NOTHING
        if remembers and (kept := self.memory.kept) is not None:
            self.restore(kept)
        begun = self.point, self.trace, len(self.trace)  # where steps may begin anew
        steps = em_points(self.problem, self.point) if method is None else method.steps(self.problem, self.point)
        for point in islice(steps, max_iter - len(self.trace)):
            gain = point.objective - self.point.objective
            if not gain >= 0.0 and not gain >= -slack_of(self.problem, point):
                raise self.problem.fall() or FellError(
                    f"the objective of EM fell from {self.point.objective!r} to {point.objective!r} in iteration "
                    f"{len(self.trace) + 1}: that is an error of ours, please report it"
                )
            if point.fresh:
                begun = self.point, self.trace, len(self.trace)
            self.point = point
            self.record()
            if remembers:
                self.memory.keep(partial(_pack_point, *begun))
            if tol > 0 and point.plain and gain <= max(tol, 1e-15 * abs(point.objective)):
                self.converged = True
                break
            watch(self)
        if method is not None:
            method.end(self)

    def settle(self) -> None:
        """After incremental steps, whose objective was a bound: the objective itself, as one more iteration."""
        self.point = evaluate(self.problem, self.point.parameters)
        self.record()


def slack_of(problem: Climbable, point: Point) -> float:
    """By how much the objective may fall by rounding: it is a sum of as many terms as there are rows, of either sign; and a
    problem may know that digits are lost elsewhere."""
    lost = problem.rounding(point.parameters)
    return float(ROUNDING * (1.0 + abs(point.objective)) + 1e-13 * problem.weight + lost)


def evaluate(problem: Climbable, parameters: Any, plain: bool = True) -> Point:
    """A point: one E-step."""
    expected = problem.expect(parameters)
    objective = expected.log_likelihood + problem.log_prior(parameters)
    return Point(parameters, expected.statistic, objective, expected.log_likelihood, plain)


def em_points(problem: Climbable, point: Point) -> Iterator[Point]:
    """The points that plain EM comes to, without end: θ ← M(E(θ))."""
    while True:
        point = em_step(problem, point)
        yield point


def em_step(problem: Climbable, point: Point) -> Point:
    """The point after a step of EM. Where families take steps of their own that may be too long, it is one that does not lower
    the objective: half of the way, half of that, and so on."""
    parameters = problem.maximise(point.statistic)
    for _ in range(HALVINGS):
        try:
            new = evaluate(problem, parameters)
            if new.objective >= point.objective:
                return new
            shorter = problem.shorter(point.parameters, parameters)
            if shorter is None or new.objective >= point.objective - slack_of(problem, new):
                return new
        except (FitError, ModelError):  # beyond what the family allows
            shorter = problem.shorter(point.parameters, parameters)
            if shorter is None:
                raise
        parameters = shorter
    return evaluate(problem, parameters)


def _extrapolate(problem: Any, parameters: list[Any], objective: float) -> tuple[Point, Point] | None:
    """An extrapolated point that is better, with the step of EM from it; None if there is none. Where a distribution is about to
    collapse, a likelihood may be no more than rounding: EM must not fall from there."""
    try:
        with np.errstate(all="ignore"):
            a, b, c = (problem.vector(p) for p in parameters)
            used = np.isfinite(a) & np.isfinite(b) & np.isfinite(c)
            r = b[used] - a[used]
            v = (c[used] - b[used]) - r
            curve, size = float(np.linalg.norm(v)), float(np.linalg.norm(r))
            if curve == 0.0 or size <= curve:
                return None
            step = -size / curve
            ahead = np.where(used, 0.0, c)
            ahead[used] = a[used] - 2.0 * step * r + step**2 * v
            point = evaluate(problem, problem.from_vector(ahead), plain=False)
            if not point.objective > objective:
                return None
            after = em_step(problem, point)
    except (FitError, ModelError, ArithmeticError, np.linalg.LinAlgError):  # beyond what the model allows: stay
        return None
    return (point, after) if after.objective >= point.objective - slack_of(problem, point) else None
