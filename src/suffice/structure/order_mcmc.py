"""Order MCMC: the posterior probability of each edge, by a random walk over orders of the variables.

Given an order ≺ in which parents come before children, the graphs fall apart into independent choices of parent sets, so that

    p(data, ≺) ∝ Πᵢ Σ_{S before i} exp score(i | S),     P(j → i | ≺, data) = Σ_{S ∋ j} exp score(i | S) / Σ_S exp score(i | S)

are exact sums over the table of parent sets (Friedman & Koller 2003, Machine Learning 50, 95–125, eqs. 8 and 12). The walk visits
orders in proportion to p(data, ≺); the edge's probability given each visited order is averaged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import TYPE_CHECKING, Literal, NamedTuple, Unpack, overload

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.blas import one_blas_thread
from suffice.basis.iteration import OutOfTime, Packed
from suffice.basis.limits import Limits, bytes_of, check_room, options_of
from suffice.engines.checkpoints import checkpoint_of
from suffice.engines.steps.blocks import available_memory, in_order
from suffice.errors import FitError, note
from suffice.objectives.scores import AIC, LogLikelihood
from suffice.structure.constraints import Constraints
from suffice.structure.problem import Problem, check_number
from suffice.structure.results.order_posterior import OrderPosterior
from suffice.structure.results.plan import Plan, Work, work_of_enumeration
from suffice.structure.rules import Rules
from suffice.structure.scoring.parent_sets import ParentSets
from suffice.structure.search import problem_of

if TYPE_CHECKING:
    from suffice.basis.argument_types import FamiliesLike, RowsLike, ScoresNodes
    from suffice.statistics import Statistics


AT_ONCE = 50_000
"""Moves of a chain between two looks at the clock."""

BATCHES = 20
"""Parts into which a chain is cut: for the Monte Carlo error, and to look at the clock in between."""

SWAPS = 0.95
"""The share of moves that swap neighbours; the others, which cost more and go further, relocate a variable."""

ENOUGH = "there were enough samples"
"""What a run that was stopped too early has not."""

COUNTABLE = 20
"""Variables up to which the orders of a graph are counted."""


class OrderOptions(Limits, total=False):
    """What `order_mcmc` takes besides: the limits of long calls, and how many moves are thrown away."""

    burn_in: int | None
    """Samples at the beginning of each chain that are thrown away; by default half as many as are kept."""
    thin: int | None
    """Moves between two samples; by default ten for each variable."""


@overload
def order_mcmc(
    data: RowsLike | Statistics,
    score: ScoresNodes | None = ...,
    *,
    constraints: Constraints | None = ...,
    families: FamiliesLike | None = ...,
    max_parents: int = ...,
    samples: int = ...,
    chains: int = ...,
    correct: bool = ...,
    seed: int = ...,
    dry_run: Literal[False] = ...,
    **options: Unpack[OrderOptions],
) -> OrderPosterior: ...
@overload
def order_mcmc(
    data: RowsLike | Statistics,
    score: ScoresNodes | None = ...,
    *,
    constraints: Constraints | None = ...,
    families: FamiliesLike | None = ...,
    max_parents: int = ...,
    samples: int = ...,
    chains: int = ...,
    correct: bool = ...,
    seed: int = ...,
    dry_run: Literal[True],
    **options: Unpack[OrderOptions],
) -> Plan: ...
@one_blas_thread
def order_mcmc(
    data: RowsLike | Statistics,
    score: ScoresNodes | None = None,
    *,
    constraints: Constraints | None = None,
    families: FamiliesLike | None = None,
    max_parents: int = 3,
    samples: int = 1000,
    chains: int = 2,
    correct: bool = False,
    seed: int = 0,
    dry_run: bool = False,
    **options: Unpack[OrderOptions],
) -> OrderPosterior | Plan:
    """The posterior probability of each edge, by sampling orders of the variables (Friedman & Koller 2003).

    `score` stands for ln p(data | graph): `BIC()`, the default, approximates it; `Evidence(BDeu(1))` is exact under its prior.
    Every set of at most `max_parents` parents has the same prior probability. Each of the `chains` starts from a random order,
    throws `burn_in` samples away (by default half as many as it keeps), and keeps `samples` orders, one every `thin` moves (by
    default ten for each variable). A move swaps two neighbours, or takes a variable out and puts it back by the posterior of
    its place (a Gibbs step).

    *The order bias.* All orders have the same prior probability, and so a graph's is proportional to the number of orders it
    fits: sparse and tree-like graphs are favoured. With `correct=True`, for up to 20 variables, a graph is drawn from each order
    and weighted by one over the number of orders it fits, which is counted: then all graphs have the same prior probability, at
    the price of a larger Monte Carlo error (`weight_ess` tells).

    `families` are those of nodes that are regressions, as in `search`.

    Look at `r_hat`, `largest_difference` and `ess` before you believe it; a note says so when the chains disagree. Ctrl-C and
    `time_limit` keep what was sampled so far. `dry_run=True` only estimates the cost, a `Plan` as that of `search`. `checkpoint`
    is a directory for parent sets and chains so far, to go on from, as in `search`.

    >>> data = {"x": ["a", "b"] * 20, "y": ["u", "v"] * 20, "z": ["p", "p", "q", "q"] * 10}
    >>> posterior = order_mcmc(data, samples=200)
    >>> round(posterior.adjacent("x", "y"), 2), posterior.adjacent("x", "z") < 0.5, posterior.agreed
    (1.0, True, True)
    """
    own, budget = options_of("order_mcmc", options, OrderOptions)
    thin, burn_in = own["thin"], own["burn_in"]
    for name, value, least in (("max_parents", max_parents, 0), ("samples", samples, BATCHES), ("chains", chains, 1)):
        check_number(name, value, least)
    check_number("seed", seed, 0)
    check_number("burn_in", burn_in, 0, optional=True)
    check_number("thin", thin, 1, optional=True)
    if isinstance(score, (AIC, LogLikelihood)):
        raise FitError(f"a posterior needs a score that stands for ln p(data | graph), BIC() or Evidence(prior), not {score}")
    problem = problem_of(data, score, constraints, budget, seed=seed, what="order MCMC", families=families)
    if constraints is not None and (constraints.adjacent or constraints.not_ancestor):
        raise FitError("orders are sampled under constraints on single edges only, not under Adjacent or NotAncestor")
    if correct and problem.n > COUNTABLE:
        raise FitError(
            f"the correction counts the orders of each graph, which is done for up to {COUNTABLE} variables, not {problem.n}; "
            "use correct=False and mind the order bias"
        )
    rules = problem.rules.cap(max_parents)
    thin = 10 * problem.n if thin is None else thin
    burn_in = samples // 2 if burn_in is None else burn_in
    sampling = OrderSampling(max_parents, samples, burn_in, thin, chains)
    if dry_run:
        return Plan.of(problem, sampling)
    size = rules.n_families * (32 + 8 * -(-rules.n // 64) + 16 * int(rules.max_parents.max(initial=0)))
    what = f"the table of {rules.n_families:,} parent sets"
    check_room(bytes_of(budget.memory_limit), size, what, "lower max_parents, restrict the parents by constraints")
    asked = {"score": problem.score, "constraints": constraints, "families": families, "seed": seed, "correct": correct}
    with checkpoint_of(budget.checkpoint, "order_mcmc", problem.data, asked | {"sampling": sampling}) as problem.progress.memory:
        try:
            table = _Table(problem.scores.parent_sets(rules, prune=False))
        except (OutOfTime, KeyboardInterrupt) as stop:
            raise problem.progress.too_early(stop, ENOUGH) from None
        need = sampling.memory(problem.n)
        room = available_memory() / 2 if budget.memory_limit is None else budget.room
        check_room(room, need, f"{samples:,} samples of {chains} chains", "ask for fewer samples")
        walks = [_OrderWalk(table, rules, thin, np.random.default_rng([seed, c])) for c in range(chains)]
        finished = _walk(walks, problem, samples, burn_in)
        posterior = _posterior(problem, table, walks, correct, finished)
        if finished:
            problem.progress.memory.finish()
    if not posterior.agreed:
        note(
            f"the chains disagree (R-hat {posterior.r_hat:.2f}, edges differ by up to {posterior.largest_difference:.2f}): "
            "take more samples, a longer burn-in or a larger thin before you believe the posterior"
        )
    return posterior


PER_MOVE, PER_SET = 7e-7, 4.4e-10
"""Seconds a move of a chain, and for each parent set that a variable may have."""


@dataclass(frozen=True)
class OrderSampling:
    """What is sampled, for the forecast of its cost."""

    max_parents: int
    samples: int
    burn_in: int
    thin: int
    chains: int

    def memory(self, n: int) -> float:
        """Bytes of the samples of n variables that are kept."""
        batches = max(BATCHES, self.samples * self.thin / AT_ONCE)
        return 24.0 * (self.samples * self.chains) * n + 8.0 * n**2 * self.chains * batches

    def work(self, problem: Problem, rules: Rules) -> Work:
        """All parent sets are scored once; then the chains walk."""
        work = work_of_enumeration(problem, rules, self)
        moves = float(self.samples + self.burn_in) * self.thin * self.chains
        seconds = moves * (PER_MOVE + PER_SET * work.families / problem.n)
        return replace(work, seconds=seconds, bytes=self.memory(problem.n))


class _Table:
    """The parent sets as the kernels take them, with the members of each set, and the sets that hold each parent."""

    def __init__(self, sets: ParentSets) -> None:
        self.sets = sets
        pairs = [np.nonzero(sets.flags(slice(k, k + 2**18))) for k in range(0, len(sets), 2**18)]
        rows = np.concatenate([(some + k * 2**18).astype(np.int32) for k, (some, _) in enumerate(pairs)])
        members = np.concatenate([m.astype(np.int32) for _, m in pairs])
        member_first = np.searchsorted(rows, np.arange(len(sets) + 1))
        cells = np.repeat(np.arange(sets.n), np.diff(sets.first))[rows] * sets.n + members
        having = np.concatenate([rows[np.argsort(cells, kind="stable")], np.arange(len(sets), dtype=np.int32)])
        have = np.concatenate([[0], np.cumsum(np.bincount(cells, minlength=sets.n**2)), len(rows) + sets.first[1:]])
        self.arrays = sets.first, sets.score, np.ascontiguousarray(sets.masks), have, having, member_first, members


class _Batch(NamedTuple):
    """What a chain kept of some samples: ln p(data, order), the sums of edges, sets that were drawn, and the best graph's."""

    totals: Array
    sums: Array
    drawn: Ints
    best: Ints


@dataclass
class _OrderWalk:
    """A random walk: where it is, and what it kept, batch by batch."""

    table: _Table
    rules: Rules
    thin: int
    rng: np.random.Generator
    n_moves: int = 0
    n_moved: int = 0
    kept: list[_Batch] = field(default_factory=list)

    def __post_init__(self) -> None:
        from suffice.numerics.kernels.search.order_mcmc import rescore

        self.order = self.rules.some_order(self.rng)
        self.own = np.empty(len(self.order))
        rescore(self.table.arrays, self.order, self.own)
        if not np.isfinite(self.own).all():
            raise FitError("the required edges leave a variable only parent sets that cannot be estimated")

    def walk(self, samples: int, keep: bool) -> None:
        """Go on until so many orders are sampled, and keep them or not."""
        from suffice.numerics.kernels.search.order_mcmc import edges, walk

        n, moves = len(self.order), samples * self.thin
        orders, totals = np.empty((samples, n), np.int32), np.empty(samples)
        moved = walk(self.table.arrays, self.order, self.own, self.rng.random((moves, 3)), SWAPS, self.thin, orders, totals)
        if not keep:
            return
        out = np.zeros((n, n))
        best, drawn = np.empty((samples, n), np.int64), np.empty((samples, n), np.int64)
        edges(self.table.arrays, orders, self.rng.random((samples, n)), out, best, drawn)
        self.n_moves += moves
        self.n_moved += moved
        self.kept.append(_Batch(totals, out, drawn, best[np.argmax(self.table.sets.score[best].sum(axis=1))]))


def _walk(walks: Sequence[_OrderWalk], problem: Problem, samples: int, burn_in: int) -> bool:
    """Let all chains walk, batch by batch; whether they came to the end."""
    thin = walks[0].thin
    sizes = [(size, keep) for total, keep in ((burn_in, False), (samples, True)) for size in _parts(total, thin)]
    try:
        for done, (size, keep) in enumerate(sizes):
            walk = partial(_walk_on, walks, size, keep, problem.threads)
            unpack = partial(_unpack, walks, keep)
            problem.progress.memory.answer(["walk", done, len(sizes), size, keep], walk, partial(_pack, walks, keep), unpack)
            problem.progress.check(f"{done + 1} of {len(sizes)} parts of the walk")
    except (OutOfTime, KeyboardInterrupt) as stop:
        done = min(len(w.kept) for w in walks)
        if done < 2:
            raise problem.progress.too_early(stop, ENOUGH) from None
        for w in walks:
            del w.kept[done:]
        return done == len(_parts(samples, thin))
    finally:
        problem.progress.close()
    return True


def _walk_on(walks: Sequence[_OrderWalk], size: int, keep: bool, threads: int | None) -> None:
    for _ in in_order([partial(w.walk, size, keep) for w in walks], threads):
        pass


def _pack(walks: Sequence[_OrderWalk], keep: bool, _: None) -> Packed:
    """Where the chains are, and the batch that each has kept last, for a checkpoint."""
    facts = [[w.n_moves, w.n_moved, w.rng.bit_generator.state] for w in walks]
    batches = [np.array(part) for part in zip(*(w.kept[-1] for w in walks), strict=True)] if keep else []
    return facts, (np.array([w.order for w in walks]), np.array([w.own for w in walks]), *batches)


def _unpack(walks: Sequence[_OrderWalk], keep: bool, packed: Packed) -> None:
    for w, (n_moves, n_moved, state), order, own, *batch in zip(walks, packed[0], *packed[1], strict=True):
        w.n_moves, w.n_moved, w.rng.bit_generator.state, w.order, w.own = n_moves, n_moved, state, order, own
        if keep:
            w.kept.append(_Batch(*batch))


def _parts(samples: int, thin: int) -> list[int]:
    """The samples of each part: at least `BATCHES` parts, and none of more than `AT_ONCE` moves."""
    n = max(min(BATCHES, samples), -(-samples * thin // AT_ONCE))
    n = max(1, min(n, samples))
    return [samples // n + (k < samples % n) for k in range(n)] if samples else []


def _posterior(problem: Problem, table: _Table, walks: Sequence[_OrderWalk], correct: bool, finished: bool) -> OrderPosterior:
    """What all chains say together, and each of them alone."""
    batches = [batch for w in walks for batch in w.kept]
    each = _weights(table, batches) if correct else [np.ones(len(batch.totals)) for batch in batches]
    pairs = zip(batches, each, strict=True)  # of graphs that were drawn, the weight of those that have each edge
    sums = [np.einsum("s,scp->pc", u, table.sets.flags(b.drawn)) if correct else b.sums for b, u in pairs]
    n = len(problem.names)
    parts = np.array(sums).reshape(len(walks), -1, n, n)
    sizes = np.array([u.sum() for u in each]).reshape(len(walks), -1)
    total, m = sizes.sum(), sizes.size  # Σ parts / Σ sizes over the batches, and its standard error by their spread
    matrix = parts.sum(axis=(0, 1)) / total
    error = np.sqrt(((parts - matrix * sizes[:, :, None, None]) ** 2).sum(axis=(0, 1)) * m / (m - 1)) / total
    by_chain = parts.sum(axis=1) / sizes.sum(axis=1)[:, None, None]
    spread = by_chain.std(axis=0, ddof=1) / np.sqrt(len(walks)) if len(walks) > 1 else np.zeros_like(matrix)
    every = np.concatenate(each)
    rows = max((b.best for b in batches), key=lambda rows: float(table.sets.score[rows].sum()))
    return OrderPosterior(
        names=problem.names,
        matrix=matrix,
        error=np.maximum(error, spread),
        by_chain=by_chain,
        log_scores=np.concatenate([b.totals for b in batches]).reshape(len(walks), -1),
        acceptance=np.array([w.n_moved / w.n_moves for w in walks]),
        best=problem.dag(table.sets.members(rows)),
        best_score=float(table.sets.score[rows].sum()),
        corrected=correct,
        weight_ess=float(every.sum() ** 2 / (every**2).sum()),
        finished=finished,
        seconds=problem.progress.seconds,
    )


def _weights(table: _Table, batches: Sequence[_Batch]) -> list[Array]:
    """One over the number of orders of each graph that was drawn, relative to the largest."""
    from suffice.numerics.kernels.search.order_mcmc import linear_extensions

    masks = table.sets.masks[:, 0]

    @cache
    def orders(parents: bytes) -> float:
        return float(linear_extensions(np.frombuffer(parents, np.int64).copy()))

    counts = [np.array([orders(masks[rows].tobytes()) for rows in batch.drawn]) for batch in batches]
    fewest = min(float(c.min()) for c in counts)
    return [fewest / c for c in counts]
