"""`rbm`: a restricted Boltzmann machine of the rows, learned by contrastive divergence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.blas import one_blas_thread
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, TooLarge, bytes_in_words, listing, note, quantity, whole
from suffice.errors.earlier import tell_of_argument
from suffice.errors.remedies import Remedy, weight_penalty
from suffice.iteration import Iteration, OutOfTime, Progress, Run
from suffice.learning.principles import MACHINE
from suffice.learning.undirected.descent import Descent, Learned, PseudoSums
from suffice.limits import COPIES, Limits, check_room, options_of
from suffice.models.rbm import RBM
from suffice.models.undirected.visible import VisibleColumns, refuse_missing_cells
from suffice.objectives import L1, L2, ContrastiveDivergence, as_penalties
from suffice.statistics import Request
from suffice.variables import Finite

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike
    from suffice.objectives import PenaltyLike

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
    rows = _rows(data, n_hidden)
    columns, means = _summary(rows)
    rate = (0.01 if columns.numbers else 0.1) if rate is None else rate
    if isinstance(rate, bool) or not isinstance(rate, (int, float, np.number)) or not 0.0 < float(rate) < np.inf:
        raise FitError(f"rate is a number above 0, not {rate!r}")
    if isinstance(momentum, bool) or not isinstance(momentum, (int, float, np.number)) or not 0.0 <= float(momentum) < 1.0:
        raise FitError(f"momentum is a number from 0 up and below 1, not {momentum!r}")
    l1, l2 = (x / rows.weight for x in _amounts(penalty))
    units = sum(v.n_states if isinstance(v, Finite) else 1 for v in columns.variables.values())
    chains = goal.chains if goal.persistent else 0
    need = 8.0 * (COPIES * units * n_hidden + 4.0 * (batch + chains) * (units + n_hidden))
    check_room(budget.room, need, f"a machine of {units:,} by {n_hidden:,} units", "take fewer hidden units or a smaller batch")
    watch = budget.watch("rbm")
    deadline = watch.start + (watch.time_limit or np.inf)
    descent = Descent(columns, goal.steps, goal.persistent, batch, float(rate), float(momentum), l1, l2, seed, deadline)
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
    """The pseudo-log-likelihood of a row."""
    sums = PseudoSums(descent.columns, state.machine(descent.columns.units), descent.seed)
    total, weight = tried.fold(sums)
    return float(total / weight) * sums.n_columns


def _rows(data: Any, n_hidden: int) -> Data:
    """The rows, complete, with columns that can be units."""
    rows = scan(data)
    refuse_missing_cells(rows)
    if rows.identifiers:
        names = listing(rows.identifiers)
        raise DataError(f"{names} have nearly as many states as there are rows: leave them out, data.select([...])")
    n = VisibleColumns.of(rows.schema).units.n
    if 32.0 * n * n_hidden > MAX_BYTES:
        size = bytes_in_words(32.0 * n * n_hidden)
        raise TooLarge(f"{n:,} visible and {n_hidden:,} hidden units need {size} for their weights: take fewer of them")
    return rows


def _summary(rows: Data) -> tuple[VisibleColumns, Array]:
    """The columns with the centre and scale of their numbers, and the mean of each unit."""
    columns = VisibleColumns.of(rows.schema)
    finite, numbers = (*columns.bits, *columns.groups), columns.numbers
    said = rows.gather([*(Request((n,)) for n in finite), *(Request((), (n,)) for n in numbers)])
    counts = {n: said.counts([n]).values + 0.5 for n in finite}
    shares = [c / c.sum() for c in counts.values()]
    means = [s[1:] for s in shares[: len(columns.bits)]] + shares[len(columns.bits) :]
    moments = [said.moments((), (n,)) for n in numbers]
    centre = np.array([m.mean[0, 0] for m in moments])
    scale = np.array([np.sqrt(m.scatter[0, 0, 0] / m.count[0]) for m in moments])
    if constant := [n for n, s in zip(numbers, scale, strict=True) if not s > 0]:
        raise DataError(f"{listing(constant)} {'is' if len(constant) == 1 else 'are'} constant: leave out what does not vary")
    return columns.rescale(centre, scale), np.concatenate([*means, np.zeros(len(numbers))])


def _amounts(penalty: Any) -> tuple[float, float]:
    """c1 and c2 of the weights."""
    parts = as_penalties(penalty).parts
    if any(not isinstance(p.strength, float) for p in parts):
        raise FitError(f"the penalty of rbm has one number for all weights, {weight_penalty(2, 0.1, '')}, not {penalty!r}")
    l1, l2 = (sum(p.strength for p in parts if isinstance(p, kind)) for kind in (L1, L2))
    return l1, l2
