"""Contrastive divergence of undirected models of finite variables, on graphs far too large for a junction tree.

    w ← w + rate (seen − drawn − penalty)

*Seen* are shares of the rows in the cells of the model's tables, *drawn* those of chains after a few sweeps of Gibbs sampling.
Steps become smaller, and the weights are averaged over the second half of the way (Robbins & Monro 1951, Annals of Mathematical
Statistics 22, p. 400; Polyak & Juditsky 1992, SIAM Journal on Control and Optimization 30, p. 838).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array
from suffice.basis.blas import one_blas_thread
from suffice.engines.data import Data
from suffice.errors import FitError, note, whole
from suffice.errors.remedies import CONTRASTIVE, LIKELIHOOD, MAX_ENTROPY, PERSISTENT
from suffice.inference.sampling.blankets import Blankets, Codes
from suffice.iteration import OutOfTime, Progress
from suffice.learning.undirected.pseudo_likelihood import blankets_of, kept_weights
from suffice.models.networks import MarkovNet
from suffice.models.undirected.terms import Terms
from suffice.objectives import ContrastiveDivergence

POOL = 10_000
"""Rows, drawn once, from which chains start that do not go on."""

LEAST = 0.02
"""Variances of features are taken as no smaller than this: rare states must not move by leaps."""

RECORDS = 50
"""Records in a trace."""


class DrawnRound(NamedTuple):
    """Some rounds of a run: the root mean square of seen − drawn over the cells, on average over the rounds, and the seconds."""

    mismatch: float
    seconds: float


@dataclass(frozen=True)
class RobbinsMonro:
    """Stochastic steps of falling size: `rounds` of them, round t by rate · (1 + t/half)^(−0.6), half a tenth of the rounds.

    Weights move by the rate times the gradient over the variance of their feature. Without a `rate` it is ½ over 1 + the largest
    number of neighbours.

    >>> RobbinsMonro(rounds=200)
    RobbinsMonro(rounds=200, rate=None, seed=0)
    """

    rounds: int = 500
    rate: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        whole(self.rounds, "the number of rounds of RobbinsMonro", 2)
        whole(self.seed, "a seed", 0)
        number = isinstance(self.rate, (int, float, np.number)) and not isinstance(self.rate, bool)
        if self.rate is not None and not (number and 0.0 < float(self.rate) < np.inf):
            raise FitError(f"the rate of RobbinsMonro is a number above 0, not {self.rate!r}")


class Chains:
    """What is seen and what is drawn in a round: shares of the cells of all tables. Chains go on, and all rows are seen; or they
    start at some of `rows`, others in each round, and the same are seen, so that little is left to chance."""

    def __init__(self, terms: Terms, goal: ContrastiveDivergence, seed: int, seen: Array, rows: Data | None) -> None:
        self.blankets: Blankets = blankets_of(terms)
        self.goal, self.seed, self.seen, self.rows = goal, seed, seen, rows
        self.blankets.checked_chains(goal.chains)
        if rows is None:
            uniforms = np.random.default_rng(seed).random((len(terms.sizes), goal.chains))
            self.columns: Codes = (uniforms * terms.sizes[:, None]).astype(np.uint16)
        else:
            pool = rows.sample(POOL, seed)
            self.pool = np.stack([pool.columns[n].astype(np.uint16) for n in terms.names])
            self.share = None if pool.weight is None else pool.weights / pool.weights.sum()

    def round(self, logs: Array, t: int) -> tuple[Array, Array]:
        """Seen and drawn, after the sweeps of round t."""
        if self.rows is None:
            seen, columns = self.seen, self.columns
        else:
            n, rng = self.pool.shape[1], np.random.default_rng([self.seed, t])
            every = self.share is None and n <= self.goal.chains
            chosen = np.arange(n) if every else rng.choice(n, self.goal.chains, replace=self.share is not None, p=self.share)
            columns = np.ascontiguousarray(self.pool[:, chosen])
            seen = self.blankets.counts(columns) / len(chosen)
        for k in range(self.goal.steps):
            self.blankets.sweep(columns, logs, self.seed, t * self.goal.steps + k)
        return seen, np.asarray(self.blankets.counts(columns) / columns.shape[1])


@one_blas_thread
def contrastive_divergence(problem: Any, goal: ContrastiveDivergence) -> MarkovNet:
    """The weights at which what is drawn has the shares of what is seen."""
    how = RobbinsMonro() if problem.method is None else problem.method
    if not isinstance(how, RobbinsMonro):
        raise FitError(f"the method of ContrastiveDivergence is RobbinsMonro(rounds, rate, seed), not {how!r}")
    problem.require_rows(CONTRASTIVE, f"{LIKELIHOOD} or {MAX_ENTROPY}")
    terms: Terms = problem.terms
    seen = terms.count_cells(problem.statistics) / problem.weight
    if not goal.persistent and not isinstance(problem.rows, Data):
        raise FitError(f"chains that start at rows need rows, not statistics of them: {PERSISTENT} needs no more")
    chains = Chains(terms, goal, how.seed, seen, None if goal.persistent else problem.rows)
    prices, watch = (problem.l1 / problem.weight, problem.l2 / problem.weight), problem.watch("contrastive divergence")
    weights, trace, done = _descend(terms, chains, how, seen, prices, watch)
    rounds = f"{how.rounds:,} rounds" if done == how.rounds else f"stopped after {done:,} of {how.rounds:,} rounds"
    by = f"{goal!r}{f' with {problem.penalties!r}' if problem.penalties else ''}, {rounds}"
    words = f"fitted from {problem.weight:,.10g} rows by {by}; seen − drawn at the end {trace[-1].mismatch:.2g}"
    kept = kept_weights(problem, weights)
    return problem.make_network(terms.log_tables(weights), words, **kept, trace=trace)  # type: ignore[no-any-return]


def _descend(
    terms: Terms, chains: Chains, how: RobbinsMonro, seen: Array, penalties: tuple[Array, Array], watch: Progress[Any]
) -> tuple[Array, list[DrawnRound], int]:
    """The average of the weights over the second half of the rounds, the trace, and how many rounds there were. Where time or the
    user ends it in the first half, the last weights are returned, which are rougher."""
    l1, l2 = penalties
    degree = max((len(own) for own in chains.blankets.neighbours), default=0)
    first = 0.5 / (1.0 + degree) if how.rate is None else float(how.rate)
    scale = first / np.maximum(terms.variances(seen), LEAST)
    w, total, zeros = np.zeros(terms.n_weights), np.zeros(terms.n_weights), np.zeros(terms.n_weights)
    trace: list[DrawnRound] = []
    off, since, every, done, n = np.zeros(terms.n_cells), 0, max(1, how.rounds // RECORDS), 0, 0
    try:
        for t in range(how.rounds):
            own, drawn = chains.round(terms.log_tables(w), t)
            rate = scale * (1.0 + 10.0 * t / how.rounds) ** -0.6
            w = w + rate * (terms.by_weight(own - drawn) - 2.0 * l2 * w)
            w = np.sign(w) * np.maximum(np.abs(w) - rate * l1, 0.0)
            off, since = off + own - drawn, since + 1
            done = t + 1
            if 2 * t >= how.rounds:
                total, zeros, n = total + w, zeros + (w == 0.0), n + 1
            if (t + 1) % every == 0 or t + 1 == how.rounds:
                trace.append(DrawnRound(float(np.sqrt(np.mean((off / since) ** 2))), watch.seconds))
                off, since = np.zeros_like(off), 0
            watch.check(f"round {t + 1} of {how.rounds}")
    except (OutOfTime, KeyboardInterrupt):
        if not done:
            raise
        if done < how.rounds:
            note(f"stopped after {done:,} of {how.rounds:,} rounds: the weights are as far as they came")
    finally:
        watch.close()
    if since:
        trace.append(DrawnRound(float(np.sqrt(np.mean((off / since) ** 2))), watch.seconds))
    mean = np.where((zeros > 0.5 * n) & (l1 > 0.0), 0.0, total / n) if n else w
    return mean, trace, done
