"""Search over orders of the variables: given an order, the best graph is a look-up for each child."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from suffice.engines.parallel import n_threads
from suffice.kernels import together
from suffice.structure.candidates import n_families, restricted
from suffice.structure.dynamic_programming import best_of_all
from suffice.structure.hill_climb import check_max_parents, check_number, climbed
from suffice.structure.parent_sets import ParentSets
from suffice.structure.problem import Outcome, Problem
from suffice.structure.rules import Parents, Rules
from suffice.variables import Finite

EVERYTHING = 500_000
"""Sets of variables up to which every allowed parent set is scored; for more, candidate parents are chosen first."""

KICK = 4
"""Variables that are moved anywhere at the start of a round: two, and up to so many less one more, by experiment."""

QUICK = 20_000
"""Families from which on a hill climb is made first."""

ALL_ORDERS = 16
"""Variables up to which the result is proved the best, by dynamic programming over all orders: a hundredth of a second."""

FEW = 20
"""Variables up to which threads cost more than they gain."""

MOST_ROUNDS = 400
"""Rounds of a chain unless something else is said; past 100 variables fewer."""

QUIET = 150
"""Rounds without any change after which the search ends if all chains agree on the best score."""


@dataclass(frozen=True)
class Orders:
    """Iterated local search over orders, on all parent sets worth having: the default of `search`.

    Teyssier & Koller 2005 (UAI, pp. 584–590), with the insertion moves of Scanagatta, Corani & Zaffalon 2017 (PMLR 73, p. 1).
    Every parent set of up to `max_parents` members is scored, and those that one of their subsets equals are dropped. A variable
    is moved to its best place in the order until none gains; then a few are moved anywhere, and so on, for up to `rounds` rounds
    in each of `chains` chains from random orders (fewer, by default, if the chains agree). Up to 16 variables the result is
    proved the best by looking at all orders. Past some 60 variables the candidate parents are chosen first: the Markov blankets
    of a hill climb and the strongest pairs, widened while that pays; the result is never worse than the hill climb's.

    >>> from suffice.structure.search import search
    >>> rows = {"rain": list("nnyy") * 8, "wet": list("nnyn") * 8, "moon": list("nf") * 4 + list("fn") * 12}
    >>> search(rows, method=Orders()).dag
    Dag('moon; rain -> wet')
    """

    max_parents: int | None = 3
    rounds: int | None = None
    chains: int = 4

    def __post_init__(self) -> None:
        check_max_parents(self.max_parents)
        for name in ("rounds", "chains"):
            value = getattr(self, name)
            if value is not None:
                check_number(name, value, 1)

    def run(self, problem: Problem) -> Outcome:
        if all(isinstance(v, Finite) for v in problem.variables):
            together("local_scores", "orders", "greedy")
        rules = problem.rules.capped(self.max_parents)
        start = rules.start()
        problem.progress.better("start", problem.scores.total(start), start)
        quick = start if n_families(rules) < QUICK else climbed(problem, rules)  # something to return, should time be short
        if not exhaustive(rules, problem.scores.most_families):
            return Outcome(self._widened(problem, rules, quick))
        sets = problem.scores.parent_sets(rules)
        parents = self.ordered(problem, sets, rules)
        best = max(parents, quick, key=problem.scores.total)
        return self._proved(problem, sets, best)

    def _proved(self, problem: Problem, sets: ParentSets, parents: list[Parents]) -> Outcome:
        """With few variables every order is looked at as well; with more, only whether each child has its best set."""
        total = problem.scores.total(parents)
        tie = problem.scores.tie(total)
        bound = float(sets.score[sets.first[:-1]].sum())
        if bound > total + tie and problem.n <= ALL_ORDERS:
            best = best_of_all(sets, tie=tie / 4, threads=problem.threads, check=problem.progress.check)
            bound = problem.scores.total(best)
            if bound > total + tie:
                problem.progress.better("all orders", bound, best)
                parents, total = best, bound
        return Outcome(parents, max(bound, total) if bound <= total + tie else None)

    def ordered(self, problem: Problem, sets: ParentSets, rules: Rules, start: list[Parents] | None = None) -> list[Parents]:
        """The best graph over orders; all chains begin with `start`, if it is given, and else at random."""
        rounds = self.rounds or (MOST_ROUNDS if sets.n <= 100 else max(20, 30_000 // sets.n))
        chains = [
            _Chain(sets, rules.some_order(np.random.default_rng([problem.seed, k]), start), [problem.seed, k, 1])
            for k in range(self.chains)
        ]
        best, parents, quiet = -np.inf, rules.start(), 0
        stretch = 25 if sets.n <= 100 else 1
        workers = min(n_threads(problem.threads), len(chains)) if sets.n > FEW else 1
        with ThreadPoolExecutor(workers) as pool:
            for done in range(0, rounds, stretch):
                before = [c.total for c in chains]
                climb = partial(_Chain.climb, rounds=min(stretch, rounds - done))
                list((pool.map if workers > 1 else map)(climb, chains))
                quiet = quiet + stretch if before == [c.total for c in chains] else 0
                top = max(chains, key=lambda c: c.total)
                if top.total > best + problem.scores.tie(best) or best == -np.inf:
                    best, parents = top.total, top.parents
                    if best > problem.progress.score + problem.scores.tie(best):
                        problem.progress.better(f"order after {done + stretch} rounds", best, parents)
                problem.progress.check(f"{done + stretch} of {rounds} rounds")
                agree = sum(c.total >= best - problem.scores.tie(best) for c in chains)
                if self.rounds is None and quiet >= QUIET and agree == len(chains) > 1:
                    break
        return parents

    def _widened(self, problem: Problem, rules: Rules, parents: list[Parents]) -> list[Parents]:
        """Candidates from a hill climb, orders over them, a hill climb from there; again while that gains."""
        best = problem.scores.total(parents)
        while True:
            narrowed = restricted(problem.scores, rules, parents, min(EVERYTHING, problem.scores.most_families))
            found = self.ordered(problem, problem.scores.parent_sets(narrowed), narrowed, parents)
            if problem.scores.total(found) > best:
                parents = found
            found = climbed(problem, rules, parents)
            total = problem.scores.total(found)
            if total <= best + problem.scores.tie(best):
                return parents
            best, parents = total, found


def exhaustive(rules: Rules, most: float) -> bool:
    """Whether every parent set that the rules allow is to be scored, if `most` families take some seconds."""
    return n_families(rules) <= min(most, EVERYTHING * (1 + int(rules.max_parents.max(initial=0))))


class _Chain:
    """One chain: an order, and the state of its random numbers."""

    def __init__(self, sets: ParentSets, order: npt.NDArray[np.int32], seed: list[int]) -> None:
        self.sets, self.order, self.total = sets, order, -np.inf
        self._random = np.random.default_rng(seed).integers(1, 2**63, 1).astype(np.uint64)
        self._chosen = np.zeros(sets.n, np.int64)

    def climb(self, rounds: int) -> None:
        from suffice.kernels.orders import climb_orders

        s = self.sets
        tie = 1e-9 * (1.0 + abs(float(s.score[s.first[:-1]].sum())))
        self.total = climb_orders(s.first, s.score, s.masks, self.order, tie, self._random, rounds, KICK, self._chosen)

    @property
    def parents(self) -> list[Parents]:
        return [self.sets.members(int(row)) for row in self._chosen]
