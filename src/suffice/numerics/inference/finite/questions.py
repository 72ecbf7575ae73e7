"""Questions to a finite network: the posterior of a few variables given what is observed of the others, its probability, and most
probable explanations: of all that is not observed (MPE), or of some variables with the others summed out (MAP).

Row by row the part of the network is found that a question depends on, a program is made for each different part, and all
programs are run. What that cannot do is done with more time for a good order, or by logs. Long work has a thread of its own, so
that Ctrl-C is heard while a kernel runs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import partial
from math import prod
from typing import NamedTuple, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from suffice.errors import TooLarge, bytes_in_words
from suffice.errors.remedies import BY_SAMPLING
from suffice.numerics.inference.finite import network as nets
from suffice.numerics.inference.finite.logs import (
    NEVER,
    SAFE,
    Elimination,
    LogFactor,
    Weighed,
    factors_at,
    log_sum,
    shares,
    weigh_factors,
)
from suffice.numerics.inference.finite.network import Array, Bytes, Ints, Network, Tree

MOST_VARIABLES = 2500
"""Larger networks are asked one question at a time: room for the links of all pairs is not kept for them."""
POOL, SLOTS, BUFFER = 2**20, 2**12, 2**18
"""Numbers that programs may take, places to find parts by, and numbers in all tables of one question."""
MOST_CELLS = 2e7
"""A question of more cells is worth more time for a better order than rows are given here."""
ROWS = 1024
"""Rows that one thread takes at a time."""
SPARE = 1024

ROOT, ALONE, MARGINALS, FACTORS = 0, 1, 2, 3
"""What is wanted (`kernels.messages`)."""
DONE, TOO_LARGE, UNCERTAIN, IMPOSSIBLE = 0, 1, 2, 3
"""What became of a row."""
MAX_JOINT = 2**27
"""No joint has more cells than this: 1 GiB of numbers."""

Codes = npt.NDArray[np.int32]
Room = tuple[Ints, Array, Array]


class RowAnswers(NamedTuple):
    """p(targets | each row) as the cells of the joint, ln of its normaliser, and what became of the row."""

    probs: Array
    log_prob: Array
    status: Bytes

    def doubtful(self, logs: Array | None = None, *, absolute: bool = False) -> npt.NDArray[np.bool_]:
        """The rows whose answers may be off by more than rounding. What underflowed, in tables with `logs`, too, cannot
        matter to evidence that is not rarer than it. If `absolute`, digits of probabilities hardly above 0 do not matter."""
        rare = ~(self.log_prob > SAFE)
        unsure = (self.status == TOO_LARGE) | ((self.status == UNCERTAIN) & (rare if absolute else True))
        return np.asarray(unsure if logs is None else unsure | rare)


class Workspace:
    """Room for one thread's questions, and the programs made for them so far."""

    def __init__(self, network: Network) -> None:
        n, n_factors = network.n_variables, network.n_factors
        self.most = 2 * n_factors + n + 8
        self.room = 4 * len(network.scopes) + 16 * self.most
        links = 2 * n + 2 + n * n
        self.work = np.empty(max(links, 5 * self.most + n + 2 + 3 * self.room, 2 * n + n_factors), np.int64)
        self.number = np.full(n, -1, np.int64)
        self.linked = np.zeros(n * n, np.uint8)
        self.floats = np.empty(2 * (n + 2) + self.most)
        self.parts = np.empty(POOL // 4 + 4 * (3 + 2 * n + n_factors), np.int64)
        self.pool = np.empty(POOL + 64 * self.most, np.int64)
        self.part_at, self.program_at = np.zeros(SLOTS, np.int64), np.zeros(SLOTS, np.int64)
        self.slots, self.cells = np.full(SLOTS, -1, np.int64), np.empty(SLOTS)
        self.own_room = np.empty(SPARE + 5 * self.most + 3 * n, np.int64), np.empty(2 * self.most), np.empty(BUFFER)

    def make_programs(self, net: Network, targets: Ints, seeds: Ints, seen: Codes, first: int, part: Ints) -> int:
        """Find the part of each row and make programs of the new ones; the row up to which there was room."""
        from suffice.numerics.kernels.inference.arrangement import arrange_parts
        from suffice.numerics.kernels.inference.parts import find_parts, order_parts

        before, scopes = int(self.part_at[0]), (net.scope_start, net.scopes)
        found = (self.work, self.parts, self.part_at, self.slots, int(POOL - self.program_at[0]), part)
        stop = find_parts(first, len(seen), targets, seeds, seen, *scopes, *net.links, *found)
        now = int(self.part_at[0])
        if now > before:
            self.cells[before:now] = np.inf
            parts, rule = (before, now, self.parts, self.part_at), (-1, 0.0, np.uint64(1))
            order_parts(*parts, self.cells, net.sizes, *scopes, *rule, self.linked, self.work, self.number, self.floats)
            scratch = (self.most, self.room, self.number, self.work, self.floats)
            arrange_parts(*parts, net.sizes, *scopes, net.strides, *scratch, self.pool, self.program_at, True)
            heavy = self.cells[before:now] > MOST_CELLS
            self.program_at[1 + before : 1 + now][heavy] = -1
        return int(stop)


NOWHERE = np.zeros(1, np.int64)
"""Where marginals begin when none are wanted."""


def run_tree(tree: Tree, want: int, codes: Ints, tables: Array, room: Room, answers: RowAnswers, start: Ints = NOWHERE) -> None:
    """Answer one question by a tree that was made for it; for marginals, `start` says where in a line each variable's begin."""
    from suffice.numerics.kernels.inference.messages import run

    seen = np.ascontiguousarray(codes[None], np.int32)
    run(0, 1, want, np.zeros(1, np.int64), tree.program, seen, tables[None], *tree.network.arrays, start, *room, *answers)


def room_for(tree: Tree, numbers: float) -> Room:
    """Room for one tree to be run in, with a buffer of so many numbers."""
    n = tree.n_tables
    return np.empty(SPARE + 5 * n + 3 * len(tree.variables), np.int64), np.empty(2 * n), np.empty(int(numbers) + 64)


_workspaces: WeakKeyDictionary[Network, list[Workspace]] = WeakKeyDictionary()


def row_answers(
    network: Network, targets: Sequence[int], seeds: Ints, seen: Codes, tables: Array, start: Ints | None = None
) -> RowAnswers:
    """The answers of all rows that programs can give.

    Besides what the targets depend on, the parts of the network around the factors `seeds` are gone through: around all, and
    the normaliser is p(observed); around those with zeros, and no impossible row goes unnoticed. With `start`, and without
    targets, the marginals of all variables of those parts come out, that of v at `start[v]`.

    One line of `seen` serves for all lines of `tables`, or one of `tables` for all of `seen`. No target may be observed.
    """
    from suffice.numerics.kernels.inference.messages import run

    n, asked = max(len(seen), len(tables)), np.asarray(targets, np.int64)
    cells = int(np.prod(network.sizes[asked])) if start is None else int(start[-1])
    answers = RowAnswers(np.ones((n, cells)), np.empty(n), np.empty(n, np.uint8))
    if network.n_variables > MOST_VARIABLES:
        answers.status[:] = TOO_LARGE
        return answers
    tables = np.ascontiguousarray(tables)  # kernels are compiled for one layout
    free, want = _workspaces.setdefault(network, []), ROOT if len(asked) else ALONE if start is None else MARGINALS

    def answer(first: int) -> None:
        """The answers of one thread's rows, `first` and those after it, in a workspace that is free."""
        share, one = slice(first, first + ROWS), len(seen) == 1
        own = seen if one else seen[share]
        space = free.pop() if free else Workspace(network)
        part, done, full = np.empty(len(own), np.int64), 0, False
        while done < len(own):
            if full or space.program_at[0] > POOL // 2:  # forget the programs so far
                space.part_at[:2], space.program_at[0] = 0, 0
                space.slots[:] = -1
            stop = space.make_programs(network, asked, seeds, own, done, part)
            full = stop == done
            if not full:
                rows = share if one else slice(first + done, first + stop)
                values = tables if len(tables) == 1 else tables[rows]
                out = answers.probs[rows], answers.log_prob[rows], answers.status[rows]
                shown, given = (space.program_at[1 + part[done:stop]], space.pool, own[done:stop], values), network.arrays
                run(0, len(out[2]), want, *shown, *given, NOWHERE if start is None else start, *space.own_room, *out)
            done = stop
        free.append(space)

    if n <= ROWS:
        answer(0)
        return answers
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(answer, range(0, n, ROWS)))
    return answers


T = TypeVar("T")

LONG = 2e8
"""Cells of a tree from which on running it takes so long that somebody may want to stop it."""


def interruptible(work: Callable[[], T], cells: float) -> T:
    """The result of `work`; if it is long, a KeyboardInterrupt is raised at once, and the work left to end by itself."""
    if cells < LONG or threading.current_thread() is not threading.main_thread():
        return work()
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    while not wait([done], timeout=0.1).done:
        pass
    return done.result()


def posteriors(
    network: Network,
    targets: Sequence[int],
    seeds: Ints,
    seen: Codes,
    tables: Array,
    logs: Array | None = None,
    *,
    absolute: bool = False,
) -> tuple[Array, Array]:
    """p(targets | each row), and ln of its normaliser: what programs cannot do by a tree for each set of observed variables.
    `logs` are those of one line of tables that floats do not hold. If `absolute`, digits of probabilities that are hardly above 0
    do not matter."""
    answers = row_answers(network, targets, seeds, seen, tables)
    probs, log_prob, _ = answers
    made: dict[bytes, Tree] = {}
    for r in np.flatnonzero(answers.doubtful(logs, absolute=absolute)):
        codes, line = seen[r if len(seen) > 1 else 0].astype(np.int64), tables[r if len(tables) > 1 else 0]
        key = np.minimum(codes, 0).tobytes()
        if key not in made:
            made = {key: _tree_for(network, targets, seeds, codes)}  # one at a time: they may be large
        probs[r], log_prob[r] = _by_tree(made[key], targets, codes, line, logs)
    return probs, log_prob


def _by_tree(tree: Tree, targets: Sequence[int], codes: Ints, tables: Array, logs: Array | None) -> tuple[Array, float]:
    """One row's answer; or by logs, slow and sure, where floats do not reach. What its tables took is free when it is known."""
    cells, want = int(np.prod(tree.network.sizes[np.asarray(targets, np.int64)])), ROOT if len(targets) else ALONE
    room, found = room_for(tree, tree.n_numbers(codes)), RowAnswers(np.ones((1, cells)), np.empty(1), np.empty(1, np.uint8))
    interruptible(partial(run_tree, tree, want, codes, tables, room, found), tree.cells(codes))
    if not found.doubtful(logs)[0]:
        return found.probs[0], float(found.log_prob[0])
    order = [v for v in tree.free_variables(codes) if v not in targets]
    joint = in_logs(tree.network, tree.factor, order, codes, tables, logs).joint(targets).reshape(-1)
    return shares(joint, (0,)), float(log_sum(joint, (0,)))


def _tree_for(network: Network, targets: Sequence[int], seeds: Ints, codes: Ints) -> Tree:
    """A tree for a question and all others in which the same variables are observed; refused where it would be too large."""
    part = nets.relevant_part(network, targets, seeds, codes)
    found = nets.greedy_order(network, part)
    tree = nets.arrange(network, part, found.order)
    numbers = tree.n_numbers(codes)
    if 8.0 * numbers > nets.MAX_BYTES or found.cells > nets.MAX_CELLS:
        raise TooLarge(
            f"the answer needs products of {found.cells:.3g} cells, of {tree.widest} variables at once, and tables of "
            f"{bytes_in_words(8.0 * numbers)}: too much; {BY_SAMPLING}"
        )
    return tree


def in_logs(
    network: Network, factors: Ints, order: Sequence[int], codes: Ints, tables: Array, logs: Array | None, n_maximised: int = 0
) -> Elimination:
    """Variables of some factors taken out in an order, the last of them by maxima."""
    with np.errstate(divide="ignore"):
        some = factors_at(network, factors, codes[None], np.log(tables) if logs is None else logs)
    return Elimination(some, nets.steps((f.scope for f in some), network.sizes, order), network.sizes, n_maximised)


class Posterior(NamedTuple):
    """p(targets | evidence), one axis per target in the order asked for, and ln p(evidence). Where the evidence is impossible,
    `log_prob` is −inf and the probabilities are NaN."""

    probs: Array
    log_prob: float


def posterior(
    network: Network, targets: Sequence[int], codes: Ints, factors: Sequence[LogFactor] = (), *, everywhere: bool = True
) -> Posterior:
    """Exactly, by elimination within the part of the network that the question depends on. `codes` has the code of each observed
    variable, −1 for the others. No target may be observed. `factors` are what is known besides: likelihoods of states, densities
    of real evidence. Less of the network is gone through if not `everywhere`: then the logarithm is not that of all evidence."""
    shape = tuple(network.sizes[np.asarray(targets, np.int64)].tolist())
    if (cells := prod(shape)) > MAX_JOINT:
        raise TooLarge(
            f"the joint of {len(shape)} variables has {cells:,} cells ({bytes_in_words(8.0 * cells)}), and the limit is "
            f"{MAX_JOINT:,}: ask for fewer at a time, or for their most probable states (bn.most_probable)"
        )
    w = weigh_factors(network, codes, factors) if factors else Weighed(network, network.tables, codes)
    if w.log_scale == NEVER or not network.n_variables:
        return Posterior(np.full(shape, np.nan if w.log_scale == NEVER else 1.0), w.log_scale)
    changed = [v for f in factors for v in f.scope if len(f.scope) == 1] if factors else []
    doubtful = np.union1d(w.network.with_zeros, network.own[changed]) if changed else w.network.with_zeros
    seeds, seen = w.network.all_factors if everywhere else doubtful, np.ascontiguousarray(w.codes[None], np.int32)
    probs, log_prob = posteriors(w.network, targets, seeds, seen, w.tables[None], w.logs)
    return Posterior(probs[0].reshape(shape), float(log_prob[0]) + w.log_scale)


class MostProbableCodes(NamedTuple):
    """The most probable codes of the targets together, ln p(targets, evidence), ln p(evidence), and the values of targets that
    are numbers, with which the logs are of densities. Where the evidence is impossible the codes are −1 and both logs −inf."""

    codes: Ints
    log_joint: float
    log_prob: float
    values: Array = np.zeros(0)


def most_probable(network: Network, targets: Sequence[int], codes: Ints, factors: Sequence[LogFactor] = ()) -> MostProbableCodes:
    """argmax p(targets | evidence). All sums come before all maxima, so some variables may cost more than all (Park 2002)."""
    log_prob = posterior(network, (), codes, factors).log_prob
    if log_prob == NEVER:
        return MostProbableCodes(np.full(len(targets), -1, np.int64), log_prob, log_prob)
    return MostProbableCodes(*best_codes(network, targets, codes, factors), log_prob)


def best_codes(network: Network, targets: Sequence[int], codes: Ints, factors: Sequence[LogFactor]) -> tuple[Ints, float]:
    """The targets' codes at the maximum of Σ Π φ, the sum over all other variables, and its logarithm."""
    if not len(targets):
        return np.zeros(0, np.int64), posterior(network, (), codes, factors).log_prob
    w = weigh_factors(network, codes, factors)
    network, needed = w.network, w.codes.copy()
    needed[list(targets)] = 0  # as if observed, so that nothing above them is barren
    asked = np.asarray(targets, np.int64)
    part = nets.part_of(network, nets.relevant_part(network, (), network.all_factors, needed).factors, codes, asked)
    n_summed = len(part.variables) - part.n_kept
    order = nets.greedy_order(network, part if n_summed else replace(part, n_kept=0)).order
    if n_summed:  # the greedy order says nothing of what comes after the sums
        order = nets.complete_order(network, part, order[:n_summed]).order
    found = in_logs(network, part.factors, part.variables[order].tolist(), codes, w.tables, w.logs, part.n_kept)
    chosen = found.best()
    return np.array([chosen[t] for t in asked.tolist()], np.int64), float(found.joint(())[0]) + w.log_scale
