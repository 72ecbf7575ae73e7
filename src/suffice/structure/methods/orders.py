"""Search over orders of the variables: given an order, the best graph is a look-up for each child.

Of few variables all orders are looked at, by dynamic programming over subsets: the best graph over a set W of variables has a
last variable i, whose parents are the best set inside W − i (Singh & Moore 2005, CMU-CALD-05-106; Silander & Myllymäki 2006, UAI,
pp. 445–452). Time and memory grow with 2^n, whatever the data.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.basis.iteration import Packed
from suffice.engines.steps.blocks import in_order, n_threads
from suffice.errors import FitError
from suffice.structure.methods.hill_climb import climb_from
from suffice.structure.problem import Method, Outcome, Problem, check_number
from suffice.structure.rules import Parents, Rules
from suffice.structure.scoring.local_scores import ScoreSource
from suffice.structure.scoring.parent_sets import TIE, ParentSets

KICK = 4
"""Variables that are moved anywhere at the start of a round: two, and up to so many less one more, by experiment."""

ALL_ORDERS = 16
"""Variables up to which the result is proved the best, by dynamic programming over all orders: a hundredth of a second."""

FEW = 20
"""Variables up to which threads cost more than they gain."""

MOST_ROUNDS = 400
"""Rounds of a chain unless something else is said; past 100 variables fewer."""

QUIET = 150
"""Rounds without any change after which the search ends if all chains agree on the best score."""

MOST = 27
"""More variables are not tried: their subsets would need more than a gibibyte."""

AT_ONCE = 16
"""Blocks of subsets that one task fills: a fraction of a second."""


@dataclass(frozen=True)
class Orders(Method):
    """Iterated local search over orders, on all parent sets worth having: the default of `search`.

    Teyssier & Koller 2005 (UAI, pp. 584–590), with the insertion moves of Scanagatta, Corani & Zaffalon 2017 (PMLR 73, p. 1).
    Every parent set of up to `max_parents` members is scored, and those that one of their subsets equals are dropped. A variable
    is moved to its best place in the order until none gains; then a few are moved anywhere, and so on, for up to `rounds` rounds
    in each of `chains` chains from random orders (fewer, by default, if the chains agree). Up to 16 variables the result is
    proved the best by looking at all orders. Past some 60 variables the candidate parents are chosen first: the Markov blankets
    of a hill climb and the strongest pairs, widened while that pays; the result is never worse than the hill climb's.

    >>> from suffice import search
    >>> rows = {"rain": list("nnyy") * 8, "wet": list("nnyn") * 8, "moon": list("nf") * 4 + list("fn") * 12}
    >>> search(rows, method=Orders()).dag
    Dag('moon; rain -> wet')
    """

    word = "orders"
    most_sets = 500_000
    """Sets of variables up to which every allowed parent set is scored; for more, candidate parents are chosen first."""

    max_parents: int | None = 3
    rounds: int | None = None
    chains: int = 4

    def __post_init__(self) -> None:
        check_number("max_parents", self.max_parents, 0, optional=True)
        check_number("rounds", self.rounds, 1, optional=True)
        check_number("chains", self.chains, 1)

    def run(self, problem: Problem) -> Outcome:
        rules = problem.rules.cap(self.max_parents)
        start = rules.start()
        problem.progress.better("start", problem.scores.total(start), start)
        every = self.is_exhaustive(rules, problem.scores.most_families)
        if every:
            problem.scores.survey(rules)
        # something to return, should time be short
        quick = start if rules.n_families < problem.scores.quick else climb_from(problem, rules)
        if not every:
            return Outcome(self._widen(problem, rules, quick))
        sets = problem.scores.parent_sets(rules)
        if problem.n_open <= ALL_ORDERS:
            tie, check = problem.scores.tie(sets.bound), problem.progress.check
            parents = best_of_all(sets, problem.given, tie=tie / 4, threads=problem.threads, check=check)
            total = problem.scores.total(parents)
            if total > problem.progress.score + tie:
                problem.progress.better("all orders", total, parents)
            return Outcome(parents, total)
        parents = max(self.search_orders(problem, sets, rules), quick, key=problem.scores.total)
        total = problem.scores.total(parents)
        return Outcome(parents, max(sets.bound, total) if sets.bound <= total + problem.scores.tie(total) else None)

    def most_rounds(self, n: int) -> int:
        """Rounds of a chain over n variables."""
        return self.rounds or (MOST_ROUNDS if n <= 100 else max(20, 30_000 // n))

    def is_exhaustive(self, rules: Rules, most: float) -> bool:
        """Whether every parent set that the rules allow is to be scored, if `most` families take some seconds."""
        return rules.n_families <= min(most, self.most_sets * (1 + int(rules.max_parents.max(initial=0))))

    def search_orders(
        self, problem: Problem, sets: ParentSets, rules: Rules, start: list[Parents] | None = None
    ) -> list[Parents]:
        """The best graph over orders; all chains begin with `start`, if it is given, and else at random."""
        rounds, bound, numbers = self.most_rounds(problem.n), sets.bound, range(self.chains)
        tie = TIE * (1.0 + abs(bound))
        orders = [rules.some_order(np.random.default_rng([problem.seed, k]), start) for k in numbers]
        random = [np.random.default_rng([problem.seed, k, 1]).integers(1, 2**63, 1).astype(np.uint64) for k in numbers]
        chains = _Chains([-np.inf] * self.chains, orders, [np.zeros(problem.n, np.int64) for _ in numbers], random)
        best, parents, quiet = -np.inf, rules.start(), 0
        stretch = 25 if problem.n <= 100 else 1
        workers = min(n_threads(problem.threads), self.chains) if problem.n > FEW else 1
        with ThreadPoolExecutor(workers) as pool:
            each = pool.map if workers > 1 else map
            for done in range(0, rounds, stretch):
                before = list(chains.totals)
                asked = ["rounds", done, rounds, len(sets.score), self.chains]
                walk = partial(chains.climb, sets, each, min(stretch, rounds - done), tie)
                problem.progress.memory.answer(asked, walk, chains.pack, chains.unpack)
                quiet = quiet + stretch if before == chains.totals else 0
                top = int(np.argmax(chains.totals))
                if chains.totals[top] > best + problem.scores.tie(best) or best == -np.inf:
                    best, parents = chains.totals[top], sets.members(chains.chosen[top])
                    if best > problem.progress.score + problem.scores.tie(best):
                        problem.progress.better(f"order after {done + stretch} rounds", best, parents)
                problem.progress.check(f"{done + stretch} of {rounds} rounds")
                if best >= bound - problem.scores.tie(best):  # every variable has its best parents: nothing is better
                    break
                agree = sum(total >= best - problem.scores.tie(best) for total in chains.totals)
                if self.rounds is None and quiet >= QUIET and agree == self.chains > 1:
                    break
        return parents

    def _widen(self, problem: Problem, rules: Rules, parents: list[Parents]) -> list[Parents]:
        """Candidates from a hill climb, orders over them, a hill climb from there; again while that gains."""
        best = problem.scores.total(parents)
        while True:
            narrowed = restrict_rules(problem.scores, rules, parents, min(self.most_sets, problem.scores.most_families))
            found = self.search_orders(problem, problem.scores.parent_sets(narrowed), narrowed, parents)
            if problem.scores.total(found) > best:
                parents = found
            found = climb_from(problem, rules, parents)
            total = problem.scores.total(found)
            if total <= best + problem.scores.tie(best):
                return parents
            best, parents = total, found


USUAL = Orders()
"""What `search` takes where no method is named."""


def restrict_rules(scores: ScoreSource, rules: Rules, parents: list[Parents], most: float) -> Rules:
    """The rules with only parents that have something to say: the Markov blankets of a graph, and the strongest pairs while there
    is room for `most` families."""
    blanket = np.zeros_like(rules.allowed)
    for child, chosen in enumerate(parents):
        for p in chosen:
            blanket[child, p] = blanket[p, child] = True
            blanket[p, list(chosen)] = True
    np.fill_diagonal(blanket, False)
    single, pair = scores.pairs()
    gain = np.where(rules.allowed, pair - single[:, None], -np.inf)
    rank = np.argsort(np.argsort(-gain, axis=1, kind="stable"), axis=1)
    result = rules.within(blanket)
    for k in (2, 4, 6, 8, 10, 12, 15):
        wider = rules.within(blanket | ((rank < k) & (gain > 0)))
        if wider.n_families > most:
            break
        result = wider
    return result


def best_of_all(
    sets: ParentSets,
    roots: Collection[int] = (),
    *,
    tie: float = 0.0,
    threads: int | None = None,
    check: Callable[[], None] = lambda: None,
) -> list[Parents]:
    """The parents of the best graph, found by looking at every subset; `check` is called many times on the way.

    `roots` have no parents: they may come first in any order, and only subsets of the others are looked at. Of graphs that score
    alike, up to `tie` in all, the one is taken whose last variables have the largest numbers.
    """
    from suffice.numerics.kernels.search.subsets import LOW, fill

    others, (inner, rows) = [i for i in range(sets.n) if i not in roots], sets.below(roots)
    n, low = inner.n, min(inner.n, LOW)
    masks = inner.masks[:, 0].astype(np.int64)
    total = np.empty(1 << n)
    blocks = np.arange(1 << (n - low), dtype=np.int64)
    ones = np.array([int(k).bit_count() for k in blocks])
    for level in range(n - low + 1):
        ready = blocks[ones == level]
        parts = [ready[k : k + AT_ONCE] for k in range(0, len(ready), AT_ONCE)]
        tasks = ((lambda part=part: fill(total, part, low, inner.first, inner.score, masks)) for part in parts)
        for _ in in_order(tasks, threads):
            check()
    if total[-1] == -np.inf:
        raise FitError("no graph without cycles keeps the rules with families that can be estimated")
    result: list[Parents] = [()] * sets.n
    for child, row in zip(others, _walk_back(inner, masks, total, tie, [sets.parents[r] for r in rows]), strict=True):
        result[child] = sets.parents[rows[row]]
    return result


def _walk_back(sets: ParentSets, masks: Ints, total: Array, tie: float, parents: Sequence[Parents]) -> list[int]:
    """The graph behind the best total, as the place of each node's set; `parents` are the sets with all their members.

    What ties may lose is lost once, not at every step, so that the score stays the best.
    """
    left = (1 << sets.n) - 1
    spare = tie
    result = [0] * sets.n
    while left:
        for child in reversed(range(sets.n)):
            if not left >> child & 1:
                continue
            rest = left & ~(1 << child)
            rows = np.arange(sets.first[child], sets.first[child + 1])
            rows = rows[masks[rows] & ~rest == 0]
            loss = total[left] - (total[rest] + sets.score[rows])  # in the kernel's order: the best loses exactly nothing
            if (loss <= spare).any():
                break
        _, _, row, lost = min((len(parents[r]), parents[r], int(r), x) for r, x in zip(rows, loss, strict=True) if x <= spare)
        result[child], left, spare = row, rest, spare - lost
    return result


class _Chains(NamedTuple):
    """Where each chain is: its score, its order, the row of each child's set, and the state of its random numbers."""

    totals: list[float]
    orders: list[npt.NDArray[np.int32]]
    chosen: list[Ints]
    random: list[npt.NDArray[np.uint64]]

    def climb(self, sets: ParentSets, each: Callable[..., Iterable[float]], rounds: int, tie: float) -> None:
        from suffice.numerics.kernels.search.greedy import climb_orders

        shared = map(repeat, (sets.first, sets.score, sets.masks))
        how = repeat(rounds), repeat(KICK)
        self.totals[:] = each(climb_orders, *shared, self.orders, repeat(tie), self.random, *how, self.chosen)

    def pack(self, _: object) -> Packed:
        return list(self.totals), tuple(np.array(part) for part in self[1:])

    def unpack(self, packed: Packed) -> None:
        parts: tuple[list[Any], ...] = self
        for mine, known in zip(parts, (packed[0], *packed[1]), strict=True):
            mine[:] = list(known)
