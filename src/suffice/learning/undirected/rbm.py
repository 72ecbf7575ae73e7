"""`rbm`: a restricted Boltzmann machine of the rows, learned by contrastive divergence, in steps over minibatches of rows.

    ∂ ln p(v) / ∂W = v E[h | v]ᵀ − E[v hᵀ]

The first part is seen. The second is what the machine expects; it is replaced by what a few rounds of drawing give, from the rows
themselves (CD; Hinton 2002, Neural Computation 14, p. 1771) or from chains that go on all the while (PCD; Tieleman 2008, ICML,
p. 1064). Each step is a few products of matrices of floats, with what is drawn in between; a product and a step are one call.
"""

from __future__ import annotations

import time
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import Iteration, OutOfTime, Progress, Run
from suffice.basis.limits import COPIES, Limits, check_room, options_of
from suffice.basis.variables import Finite
from suffice.engines.data import Data
from suffice.engines.engine import Block
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, TooLarge, bytes_in_words, listing, note, quantity, whole
from suffice.errors.earlier import tell_of_argument
from suffice.errors.remedies import Remedy, weight_penalty
from suffice.learning.principles import MACHINE
from suffice.models.rbm import RBM
from suffice.models.undirected.visible import ROWS, VisibleColumns, refuse_missing_cells
from suffice.numerics.inference.sampling.boltzmann import Floats, LayerUnits, Machine, key_of
from suffice.objectives.principles import L1, L2, ContrastiveDivergence, as_penalties, positive_number
from suffice.statistics import Request

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike
    from suffice.objectives.principles import PenaltyLike

SPREAD = 0.01
"""The standard deviation of the weights at the start (Hinton 2012, A practical guide to training RBMs, section 8)."""
STEP = 0.4
"""Between the points at which the density of a number is summed up: normals of variance 1 need no more."""


@dataclass(frozen=True, eq=False)
class Learned:
    """Where a run has come to: W, a and c, the last move of each, the hidden units of chains that go on, the steps so far."""

    weights: Floats
    visible: Floats
    hidden: Floats
    moves: tuple[Floats, Floats, Floats]
    chains: Floats
    steps: int = 0
    stopped: bool = False

    @classmethod
    def start(cls, units: LayerUnits, means: Array, n_hidden: int, chains: int, seed: int) -> Learned:
        """Independent columns, but for small random weights."""
        rng = np.random.default_rng(seed)
        w = np.float32(SPREAD) * rng.standard_normal((units.n, n_hidden), np.float32)
        a, c = units.fields(means).astype(np.float32), np.zeros(n_hidden, np.float32)
        h = (rng.random((chains, n_hidden)) < 0.5).astype(np.float32)
        return cls(w, a, c, (np.zeros_like(w), np.zeros_like(a), np.zeros_like(c)), h)

    @property
    def largest(self) -> float:
        """The largest |w| of all weights and biases; NaN where one is not a number."""
        return float(np.max([np.abs(x).max() for x in (self.weights, self.visible, self.hidden)]))

    def machine(self, units: LayerUnits) -> Machine:
        w, a, c = (x.astype(np.float64) for x in (self.weights, self.visible, self.hidden))
        return Machine(units, w, a, c)


@dataclass(frozen=True, eq=False)
class Descent:
    """The steps over the rows of a block, in minibatches, from what the rows before it taught. A step moves by `momentum` times
    the last move and `rate` times the gradient of the mean over the minibatch of ln p(v), less that of the penalty `l1` Σ|W| +
    `l2` ΣW². No step begins after `deadline`, by the clock of `time.perf_counter`."""

    columns: VisibleColumns
    rounds: int
    persistent: bool
    batch: int
    rate: float
    momentum: float
    l1: float
    l2: float
    seed: int
    deadline: float = float("inf")

    @np.errstate(over="ignore", invalid="ignore")  # steps that run off are told of after the pass
    def __call__(self, state: Learned, block: Block) -> Learned:
        at, start = deepcopy(state), 0
        for n, v in enumerate(self.columns.parts(block, self.batch), state.steps):
            if at.stopped or time.perf_counter() > self.deadline:
                return replace(at, stopped=True)
            share = block.weights[start : start + len(v)]
            start += len(v)
            if share.any():
                seen, (x, p) = (share / share.sum()).astype(np.float32), self.draw_units(at, n, v)
                chains = len(x) - len(v)
                of = np.concatenate([seen, np.full(chains, -1.0 / chains, np.float32) if self.persistent else -seen])
                p *= of[:, None]
                self._step(at, x, p, of)
            at = replace(at, steps=n + 1)
        return at

    def draw_units(self, at: Learned, n: int, v: Floats) -> tuple[Floats, Floats]:
        """The visible units of the rows over those of the chains, and what is expected of the hidden units given them. The chains
        are at the end of their rounds; those that go on are moved."""
        units, bits, w, first = self.columns.units, LayerUnits(len(at.hidden)), at.weights, (2 * self.rounds + 1) * n
        k = len(v)
        h = at.chains if self.persistent else np.empty((k, bits.n), np.float32)
        x = np.concatenate([v, np.empty((len(h), units.n), np.float32)])
        p, field, states = np.empty((len(x), bits.n), np.float32), np.empty_like(x[k:]), x[k:]
        if not self.persistent:
            bits.draw(np.matmul(v, w, out=p[:k]), at.hidden, key_of(self.seed, first), h)
        for r in range(1, self.rounds + 1):
            units.draw(np.matmul(h, w.T, out=field), at.visible, key_of(self.seed, first + 2 * r - 1), states)
            key = key_of(self.seed, first + 2 * r)
            if self.persistent and r == self.rounds:  # rows and chains in one product
                both = np.empty_like(p)
                bits.draw(np.matmul(x, w, out=p), at.hidden, key, both)
                h[:] = both[k:]
            else:
                bits.draw(np.matmul(states, w, out=p[k:]), at.hidden, key, h)
        return x, p

    def _step(self, at: Learned, x: Floats, p: Floats, of: Floats) -> None:
        """The move W += momentum · last move + rate · (xᵀ p − penalty), and those of the biases."""
        from scipy.linalg.blas import sgemm

        w, (last, last_a, last_c) = at.weights, at.moves
        shrunk = 2.0 * self.rate * self.l2
        target, keep = (last, self.momentum) if self.momentum else (w, 1.0 - shrunk)
        sgemm(self.rate, p.T, x.T, keep, target.T, trans_b=True, overwrite_c=True)  # in place, since these are columns first
        if self.momentum:
            if shrunk:
                last -= np.float32(shrunk) * w
            w += last
        if self.l1:
            w -= np.clip(w, -self.rate * self.l1, self.rate * self.l1)
        for bias, move, gradient in ((at.visible, last_a, of @ x), (at.hidden, last_c, p.sum(axis=0))):
            move *= np.float32(self.momentum)
            move += np.float32(self.rate) * gradient
            bias += move


@dataclass(frozen=True, eq=False)
class PseudoSums:
    """Σ w ln p(cell | the rest of its row) of one cell of each row, chosen at random, and Σ w. Times the number of columns, the
    mean is that of the pseudo-likelihood, Σᵢ ln p(vᵢ | all others)."""

    columns: VisibleColumns
    machine: Machine
    seed: int

    def __call__(self, block: Block) -> Array:
        rng, total, start = np.random.default_rng([self.seed, block.number]), np.zeros(2), 0
        for v in self.columns.parts(block, ROWS):
            w = block.weights[start : start + len(v)]
            start += len(v)
            which = rng.integers(self.n_columns, size=len(v))
            total += [w @ self.log_conditionals(v.astype(np.float64), which), w.sum()]
        return total

    @property
    def n_columns(self) -> int:
        units = self.columns.units
        return units.n_bits + len(units.groups) + units.n_numbers

    def log_conditionals(self, v: Array, which: np.ndarray) -> Array:
        """ln p(cell | the rest) of a cell of each row, by its number: bits, groups, numbers."""
        units, own = self.columns.units, np.empty(len(v))
        x = v @ self.machine.weights + self.machine.hidden
        bits = np.flatnonzero(which < units.n_bits)
        own[bits] = self._of_bits(v[bits], x[bits], which[bits])
        for i in np.unique(which[which >= units.n_bits]):
            rows, g = np.flatnonzero(which == i), int(i) - units.n_bits
            of = self._of_group if g < len(units.groups) else self._of_number
            own[rows] = of(v[rows], x[rows], g if g < len(units.groups) else g - len(units.groups))
        return own

    def _of_bits(self, v: Array, x: Array, which: np.ndarray) -> Array:
        m, now = self.machine, v[np.arange(len(v)), which]
        other = x + (1.0 - 2.0 * now)[:, None] * m.weights[which]
        sums = m.hidden_units.log_sums
        gain = sums(other) - sums(x) + (1.0 - 2.0 * now) * m.visible[which]
        return np.asarray(-np.logaddexp(0.0, gain))

    def _of_group(self, v: Array, x: Array, g: int) -> Array:
        m, a, b = self.machine, *self.columns.units.first[g : g + 2]
        now = v[:, a:b].argmax(axis=1)
        rest = x - m.weights[a + now]
        logs = np.stack([m.visible[j] + m.hidden_units.log_sums(rest + m.weights[j]) for j in range(a, b)], axis=1)
        return np.asarray(logs[np.arange(len(v)), now] - np.logaddexp.reduce(logs, axis=1))

    def _of_number(self, v: Array, x: Array, i: int) -> Array:
        """The density of a number, a mixture of normals, over its integral by equal steps."""
        m, at = self.machine, self.columns.units.n_finite + i
        w, a = m.weights[at], m.visible[at]
        rest = x - v[:, at, None] * w
        ends = a + w[w < 0].sum() - 8.0, a + w[w > 0].sum() + 8.0
        points = np.linspace(*ends, int((ends[1] - ends[0]) / STEP) + 2)

        def log_density(y: Array | float) -> Array:
            return np.asarray(a * y - 0.5 * y * y + m.hidden_units.log_sums(rest + np.multiply.outer(np.atleast_1d(y), w)))

        whole = np.logaddexp.reduce([log_density(y) for y in points], axis=0) + np.log(points[1] - points[0])
        return np.asarray(log_density(v[:, at]) - whole - np.log(self.columns.scale[i]))


TRIED = 1000
"""Rows, drawn once, by which the pseudo-likelihood is told after each pass."""
FAR = 1e3
"""Weights and biases beyond this have run off: e^(−1000) is no probability of anything."""
WORSE = 0.02
"""A pseudo-likelihood that is worse than that of independent columns by this share is no matter of chance: it is said."""
MAX_BYTES = 2**32
"""The weights, their moves and their copies take no more memory than this."""


@dataclass(frozen=True, eq=False, repr=False)
class RbmRun(Run[RBM]):
    """What `rbm` returns: the machine, and a record per pass whose `objective` is the pseudo-log-likelihood of a row.

    >>> run = rbm({"x": ["no", "yes"] * 10, "y": ["no", "yes"] * 10}, k=1, epochs=2)
    >>> run.n_iterations, run.converged, -1.4 < run.objective < -1.3
    (2, True, True)
    """

    def headline(self) -> str:
        how = "" if self.converged else ", stopped before the last"
        seconds = self.trace[-1].seconds if self.trace else 0.0
        n = f"{self.n_iterations:,} pass{'' if self.n_iterations == 1 else 'es'}"
        return f"of {n}{how}, {seconds:.2f} s: pseudo-log-likelihood {self.objective:,.4f} a row"


@one_blas_thread
def rbm(
    data: RowsLike,
    k: int = 256,
    *,
    objective: ContrastiveDivergence | None = None,
    rate: float | None = None,
    momentum: float = 0.5,
    penalty: PenaltyLike | None = None,
    epochs: int = 10,
    batch: int = 100,
    seed: int = 0,
    **limits: Unpack[Limits],
) -> RbmRun:
    """A restricted Boltzmann machine of the columns with `k` hidden units.

    Columns of two states are bits, those of more states softmax units. Real columns are Gaussian units of variance 1 given the
    hidden ones: they are centred and scaled to variance 1 first. `objective` is `ContrastiveDivergence(steps, persistent,
    chains)`. Each of `epochs` passes takes the rows in another random order, `batch` at a time. A step moves the parameters by
    `rate` times the gradient of the mean of ln p(row), and by `momentum` times the move before; without a `rate` it is 0.1, and
    0.01 where there are real columns. `penalty` is `L1(x)`, `L2(x)` or their sum, of the weights, beside −ln p summed over the
    rows.

    The trace has an estimate of the mean over rows of Σᵢ ln p(vᵢ | all others), from one cell of each of 1,000 rows. The result
    depends on `seed`, not on the number of threads. `converged` says that all passes were made. Its limits are `time_limit` and
    `progress`.

    >>> rng = np.random.default_rng(0)
    >>> side = rng.random(2000) < 0.5
    >>> rows = {f"x{i}": np.where(rng.random(2000) < 0.9, side, ~side) for i in range(6)}
    >>> run = rbm(rows, k=2, epochs=30)
    >>> machine = run.model
    >>> machine.n_parameters, run.trace[0].objective < run.objective
    (20, True)
    """
    own, budget = options_of("rbm", limits, Limits, without=["threads", "checkpoint"], old=["hidden"])
    if "hidden" in own:
        tell_of_argument("hidden= of rbm", "k=")
        k = own["hidden"]
    goal = ContrastiveDivergence() if objective is None else objective
    MACHINE.check(goal)
    n_hidden, passes = whole(k, "the number of hidden units", 1), whole(epochs, "the number of epochs", 1)
    batch, seed = whole(batch, "the size of a batch", 1), whole(seed, "a seed", 0)
    rows, columns, means = _open_columns(data, n_hidden)
    rate = positive_number((0.01 if columns.numbers else 0.1) if rate is None else rate, "rate")
    if isinstance(momentum, bool) or not isinstance(momentum, (int, float, np.number)) or not 0.0 <= float(momentum) < 1.0:
        raise FitError(f"momentum is a number from 0 up and below 1, not {momentum!r}")
    parts = as_penalties(penalty).parts
    if any(not isinstance(p.strength, float) for p in parts):
        raise FitError(f"the penalty of rbm has one number for all weights, {weight_penalty(2, 0.1, '')}, not {penalty!r}")
    l1, l2 = (sum(p.strength for p in parts if isinstance(p, kind)) / rows.weight for kind in (L1, L2))
    units = sum(v.n_states if isinstance(v, Finite) else 1 for v in columns.variables.values())
    chains = goal.chains if goal.persistent else 0
    need = 8.0 * (COPIES * units * n_hidden + 4.0 * (batch + chains) * (units + n_hidden))
    check_room(budget.room, need, f"a machine of {units:,} by {n_hidden:,} units", "take fewer hidden units or a smaller batch")
    watch = budget.watch("rbm")
    deadline = watch.start + (watch.time_limit or np.inf)
    descent = Descent(columns, goal.steps, goal.persistent, batch, rate, float(momentum), l1, l2, seed, deadline)
    state = Learned.start(columns.units, means, n_hidden, chains, seed)
    state, trace, done = _passes(rows, descent, state, passes, watch)
    info = f"by {goal!r} from {quantity(rows.n_rows, 'row')}{', real columns centred and scaled' if columns.numbers else ''}"
    arrays = state.weights, state.visible, state.hidden
    own = {"centre": columns.centre, "scale": columns.scale, "base": columns.units.fields(means)}
    machine = RBM(columns.variables, *arrays, **own, fit_info=info)
    return RbmRun(machine, tuple(trace), done)


def _passes(
    rows: Data, descent: Descent, state: Learned, passes: int, watch: Progress[Any]
) -> tuple[Learned, list[Iteration], bool]:
    """All passes, with a record of each; stopped by the time limit or by the user, as far as they have come."""
    tried = rows.of_rows(rows.sample(TRIED, descent.seed)) if rows.n_rows > TRIED else rows
    trace: list[Iteration] = []
    alone = _pseudo(tried, descent, state)
    try:
        for i in range(passes):
            state = rows.walk(descent, state, seed=[descent.seed, i])
            if not state.largest <= FAR:  # or not a number
                raise FitError(
                    f"the steps of rbm run off: after pass {i + 1} weights are as large as {state.largest:.2g}; give a smaller "
                    f"rate than {descent.rate:g}"
                )
            value = _pseudo(tried, descent, state)
            trace.append(Iteration(value, float("nan"), watch.seconds))
            if state.stopped:
                raise OutOfTime
            watch.check(f"pass {i + 1} of {passes}: pseudo-log-likelihood {value:,.3f} a row")
    except (OutOfTime, KeyboardInterrupt):
        note(f"stopped in pass {len(trace)} of {passes}: the machine is as far as it came")
        return state, trace, len(trace) == passes and not state.stopped
    finally:
        watch.close()
    if value < alone - WORSE * abs(alone):
        note(
            f"the machine predicts cells worse than independent columns do: pseudo-log-likelihood {value:,.4f} a row, not "
            f"{alone:,.4f}; a smaller rate than {descent.rate:g}{Remedy('', ', which rbm(data, rate=...) in Python takes,')} "
            f"may mend it"
        )
    return state, trace, True


def _pseudo(tried: Data, descent: Descent, state: Learned) -> float:
    sums = PseudoSums(descent.columns, state.machine(descent.columns.units), descent.seed)
    total, weight = tried.fold(sums)
    return float(total / weight) * sums.n_columns


def _open_columns(data: Any, n_hidden: int) -> tuple[Data, VisibleColumns, Array]:
    """The rows, complete; their columns, that can be units, with the centre and scale of numbers; and the mean of each unit."""
    rows = scan(data)
    refuse_missing_cells(rows)
    if rows.identifiers:
        names = listing(rows.identifiers)
        raise DataError(f"{names} have nearly as many states as there are rows: leave them out, data.select([...])")
    columns = VisibleColumns.of(rows.schema)
    if 32.0 * columns.units.n * n_hidden > MAX_BYTES:
        size = bytes_in_words(32.0 * columns.units.n * n_hidden)
        raise TooLarge(
            f"{columns.units.n:,} visible and {n_hidden:,} hidden units need {size} for their weights: take fewer of them"
        )
    finite, numbers = (*columns.bits, *columns.groups), columns.numbers
    said = rows.gather([*(Request((n,)) for n in finite), *(Request((), (n,)) for n in numbers)])
    shares = [c / c.sum() for c in (said.counts([n]).values + 0.5 for n in finite)]
    means = [s[1:] for s in shares[: len(columns.bits)]] + shares[len(columns.bits) :]
    moments = [said.moments((), (n,)) for n in numbers]
    centre = np.array([m.mean[0, 0] for m in moments])
    scale = np.array([np.sqrt(m.scatter[0, 0, 0] / m.count[0]) for m in moments])
    if constant := [n for n, s in zip(numbers, scale, strict=True) if not s > 0]:
        raise DataError(f"{listing(constant)} {'is' if len(constant) == 1 else 'are'} constant: leave out what does not vary")
    return rows, columns.rescale(centre, scale), np.concatenate([*means, np.zeros(len(numbers))])
