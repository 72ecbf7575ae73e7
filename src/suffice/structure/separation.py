"""Separation: given which sets of others is each of many pairs of variables independent?

A `Questions` says which pairs, and from which pools of others the sets are taken; a judge answers them in batches, in one of
four ways: tables counted from rows in memory, a matrix of correlations, moments within configurations of finite variables, or
statistics gathered from data of any size.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import islice
from math import prod
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools
from suffice.basis.iteration import Memory, Packed
from suffice.basis.variables import Finite
from suffice.engines.bitmaps import bits_of
from suffice.engines.data import Data
from suffice.engines.engine import Bits
from suffice.engines.steps.bits import BitBlock, BitLayout
from suffice.engines.steps.blocks import in_order, n_threads
from suffice.objectives.scores import BIC
from suffice.statistics import Request
from suffice.structure.independence import (
    ChiSquared,
    FisherZ,
    GSquared,
    IndependenceTest,
    LikelihoodRatio,
    MutualInformation,
    Strata,
    correlations,
)
from suffice.structure.problem import Problem
from suffice.structure.rules import Parents
from suffice.structure.scoring.hybrid_scores import NUMBERS, HybridScores
from suffice.structure.scoring.local_scores import CELLS, in_memory

Ints = npt.NDArray[Any]
Test = tuple[str, str, tuple[str, ...]]
"""Two variables, and those that are given."""

IN_MEMORY = 2**31
"""Bytes of codes that are held in memory, where no other limit is given."""

KNOWN = 2**17
"""Values of n log n that are looked up."""

STATES = 16
"""States up to which a column has bitmaps: they take no more than twice the memory of its codes."""


class Answers(NamedTuple):
    """What is known of each pair: the first set that separates it (None if none does), the log p-value of that set, or else the
    largest of any set, and the number of tests made."""

    given: list[Parents | None]
    log_p: Array
    n_tests: int


class Census(NamedTuple):
    """Of each pair the number of sets that separate it, in how many of them a variable is, and the number of tests made."""

    n_sets: Ints
    n_with: Counter[tuple[int, int]]
    n_tests: int


@dataclass(frozen=True)
class Questions:
    """Pairs of variables, and of each the two pools, by number, that its sets are taken from (-1: none).

    `always[e]` (-1: none) is in each set of pair e.
    """

    pairs: Ints
    which: Ints
    always: Ints
    first: Ints
    pool: Ints

    @staticmethod
    def of(
        pairs: Sequence[Sequence[int]] | Ints,
        pools: Sequence[Sequence[int]] | Sequence[Ints],
        which: Sequence[Sequence[int]] | Ints | None = None,
        always: Sequence[int] | None = None,
    ) -> Questions:
        """Each pool sorted; without `which` the pools of a pair are those of its two variables."""
        chosen = np.ascontiguousarray(pairs, np.int32).reshape(-1, 2)
        own = chosen if which is None else np.ascontiguousarray(which, np.int32).reshape(-1, 2)
        every = np.full(len(chosen), -1, np.int32) if always is None else np.array(always, np.int32)
        first = np.cumsum([0, *map(len, pools)], dtype=np.int64)
        pool = np.concatenate([np.zeros(0, np.int32), *(np.asarray(p, np.int32) for p in pools)]).astype(np.int32)
        return Questions(chosen, own, every, first, pool)

    def __len__(self) -> int:
        return len(self.pairs)

    def part(self, start: int, stop: int) -> Questions:
        """Some of the pairs."""
        return Questions(self.pairs[start:stop], self.which[start:stop], self.always[start:stop], self.first, self.pool)

    def tests(self, k: int, done: Bools, size: int) -> Iterator[tuple[Ints, Ints]]:
        """The pairs, and the set of k members, of each test, up to `size` at a time; what is done by then is left out."""
        from suffice.numerics.kernels.search.independence import subsets

        cursor = np.zeros(k + 3, np.int64)
        while True:
            owner, sets = np.empty(size, np.int32), np.empty((size, k), np.int32)
            n = subsets(self.pairs, self.which, self.always, self.first, self.pool, k, done, cursor, owner, sets)
            if not n:
                return
            yield owner[:n], sets[:n]


class Judge(Protocol):
    """Answers tests: a log p-value for each, NaN where a test before it has brought the same pair above `enough`."""

    batch: int
    """How many tests it takes at once."""
    threads: int | None
    """How many threads may ask it at once."""

    def log_p(self, pairs: Ints, owner: Ints, sets: Ints, enough: float) -> Array: ...

    def ahead(self, pairs: Ints, tests: Iterable[tuple[Ints, Ints]]) -> None:
        """Make tests, owners and sets, that will be asked for whatever the others say, where that saves passes over the rows."""
        return


def find_separators(judge: Judge, questions: Questions, k: int, alpha: float, progress: Any) -> Answers:
    """Look for a set of k members that separates each pair at level alpha."""
    given, n_tests = [None] * len(questions), 0  # type: list[Parents | None], int
    largest = np.full(len(questions), -np.inf)
    for part in _in_parts(judge, questions, (k,), alpha, progress.memory, first=True):
        progress.check(f"tests given {k} others")
        n_tests += part.n_tests
        largest[part.start : part.start + len(part.largest)] = part.largest
        largest[part.pairs] = part.log_p
        for e, members in zip(part.pairs.tolist(), part.sets, strict=True):
            given[e] = members
    return Answers(given, largest, n_tests)


def census(judge: Judge, questions: Questions, most: int, alpha: float, progress: Any) -> Census:
    """Count the sets of up to `most` members that separate each pair at level alpha, and in how many each variable is."""
    n_sets, n_with, n_tests = np.zeros(len(questions), np.int64), Counter[tuple[int, int]](), 0
    for part in _in_parts(judge, questions, range(most + 1), alpha, progress.memory, first=False):
        progress.check("tests that direct edges")
        n_tests += part.n_tests
        n_sets += np.bincount(part.pairs, minlength=len(questions))
        n_with.update((e, z) for e, members in zip(part.pairs.tolist(), part.sets, strict=True) for z in members)
    return Census(n_sets, n_with, n_tests)


class PairTests(NamedTuple):
    """The tests of some pairs from a number on: which sets separate which pairs, their log p, and the largest of each pair."""

    start: int
    pairs: Ints
    sets: list[Parents]
    log_p: Array
    largest: Array
    n_tests: int

    def pack(self) -> Packed:
        """These tests for a checkpoint."""
        return [self.start, self.sets, self.n_tests], (self.pairs, self.log_p, self.largest)

    @staticmethod
    def unpack(packed: Packed) -> PairTests:
        """Those of a checkpoint."""
        (start, sets, n_tests), (pairs, log_p, largest) = packed
        return PairTests(start, pairs, [tuple(members) for members in sets], log_p, largest, n_tests)


def _in_parts(
    judge: Judge, questions: Questions, sizes: Sequence[int], alpha: float, memory: Memory, *, first: bool
) -> Iterator[PairTests]:
    """Test the pairs given sets of these sizes, up to the `first` set that separates a pair or given all of them.

    In parts, several for each thread, since some pairs take longer than others.
    """
    level = np.log(alpha)

    def task(start: int, stop: int) -> PairTests:
        some, done = questions.part(start, stop), np.zeros(stop - start, np.bool_)
        largest, n_tests = np.full(stop - start, -np.inf), 0
        pairs, sets, values = [np.zeros(0, np.int64)], list[Parents](), [np.zeros(0)]
        if not first:
            judge.ahead(some.pairs, (tests for k in sizes for tests in islice(some.tests(k, done, judge.batch), 1)))
        for k in sizes:
            for owner, members in some.tests(k, done, judge.batch):
                log_p = judge.log_p(some.pairs, owner, members, level if first else np.inf)
                np.fmax.at(largest, owner, log_p)
                n_tests += len(log_p) - int(np.isnan(log_p).sum())
                hits = np.flatnonzero(log_p > level)
                if first:
                    hits = hits[np.unique(owner[hits], return_index=True)[1]]
                    done[owner[hits]] = True
                pairs.append(start + owner[hits])
                sets += map(tuple, members[hits].tolist())
                values.append(log_p[hits])
        return PairTests(start, np.concatenate(pairs), sets, np.concatenate(values), largest, n_tests)

    n, workers = len(questions), n_threads(judge.threads)
    size = n if workers == 1 and judge.threads == 1 else max(1, min(2**13, -(-n // (8 * workers))))
    ranges = deque((a, min(a + size, n)) for a in range(0, n, max(1, size)))
    tests: Iterator[PairTests] | None = None

    def next_tests() -> PairTests:
        nonlocal tests
        if tests is None:  # the parts before this one are known
            tests = in_order([partial(task, *some) for some in ranges], judge.threads)
        return next(tests)

    while ranges:
        asked = ["tests", *ranges[0], n, list(sizes)[-1], len(questions.pool), first]
        yield memory.answer(asked, next_tests, PairTests.pack, PairTests.unpack)
        ranges.popleft()


@dataclass(frozen=True, eq=False)
class TableTests:
    """log p of pairs[owner[i]] given sets[i], counted and tested in one call, which leaves a pair once a set separates it."""

    layout: BitLayout
    logs: Array
    test: Any
    pairs: Ints
    owner: Ints
    sets: Ints
    enough: float
    coded: ClassVar[bool] = True

    def of(self, block: BitBlock) -> Array:
        from suffice.numerics.kernels.search.independence import table_tests

        result = np.empty(len(self.owner))
        at = np.where(self.layout.narrow, self.layout.first[:-1], -1)
        rows = block.codes, block.weight, block.bits, block.times, at, self.layout.sizes, self.logs
        asked = self.pairs, self.owner, self.sets, self.sets.shape[1]
        table_tests(rows, *asked, bool(self.test.pearson), bool(self.test.adjusted), self.enough, result)
        return result


class RowJudge(Judge):
    """Counts the tables of each test where all rows are in one place."""

    batch = 2**12

    def __init__(self, bits: Bits, layout: BitLayout, test: Any, weight: float, threads: int | None) -> None:
        self.bits, self.layout, self.test, self.threads = bits, layout, test, threads
        n = np.arange(min(int(weight) + 1, KNOWN), dtype=np.float64)
        self.logs = n * np.log(np.maximum(n, 1.0))
        none = np.zeros((0, 2), np.int32)
        self.log_p(none, none[:, 0].copy(), none, 0.0)  # the rows are made ready before several threads ask

    def log_p(self, pairs: Ints, owner: Ints, sets: Ints, enough: float) -> Array:
        return self.bits.at_once(TableTests(self.layout, self.logs, self.test, pairs, owner, sets, float(enough)))


class CorrelationJudge(Judge):
    """Fisher's z of partial correlations, from one matrix of correlations."""

    batch = 2**12

    def __init__(self, correlation: Array, weight: float, threads: int | None) -> None:
        self.correlation, self.weight, self.threads = correlation, float(weight), threads

    def log_p(self, pairs: Ints, owner: Ints, sets: Ints, enough: float) -> Array:
        from suffice.numerics.kernels.search.independence import partial_tests

        result = np.empty(len(owner))
        partial_tests(self.correlation, self.weight, pairs, owner, sets, sets.shape[1], float(enough), result)
        return result


class GatheringJudge(Judge):
    """Gathers the table of each test: for rows that are elsewhere, or weigh parts of a row, and for statistics without rows.

    All tests of a batch are made, as one scan answers them all.
    """

    batch = 2**17
    threads: int | None = 1  # the scan has threads of its own

    def __init__(self, problem: Problem, test: IndependenceTest) -> None:
        self.problem, self.test = problem, test
        self.sizes = {v.name: v.n_states for v in problem.variables if isinstance(v, Finite)}
        self._ready: dict[Test, float] = {}

    def log_p(self, pairs: Ints, owner: Ints, sets: Ints, enough: float) -> Array:
        asked = self._tests_by_name(pairs, owner, sets)
        new = [test for test in asked if test not in self._ready]
        found = self._ready | dict(zip(new, self._p_values(new), strict=True))
        with np.errstate(divide="ignore"):
            return np.log([found[test] for test in asked])

    def ahead(self, pairs: Ints, tests: Iterable[tuple[Ints, Ints]]) -> None:
        asked = [test for owner, sets in tests for test in self._tests_by_name(pairs, owner, sets)]
        self._ready = dict(zip(asked, self._p_values(asked), strict=True))

    def _tests_by_name(self, pairs: Ints, owner: Ints, sets: Ints) -> list[Test]:
        names = self.problem.names
        both = zip(pairs[owner].tolist(), sets.tolist(), strict=True)
        return [(names[x], names[y], tuple(names[z] for z in given)) for (x, y), given in both]

    def _p_values(self, asked: Sequence[Test]) -> list[float]:
        """In as few scans as there is memory for."""
        result = list[float]()
        for some in in_memory(asked, lambda a: prod(self.sizes.get(v, 2) for v in (a[0], a[1], *a[2])), CELLS):
            statistics = self.problem.data.gather([self.test.needs(*a) for a in some], threads=self.problem.threads)
            result += [self.test.test(statistics, *a).p_value for a in some]
            self.problem.progress.check()
        return result


class MixedJudge(Judge):
    """Log p-values of `LikelihoodRatio`: tables of finite variables alone as ever, the others from moments, a pass a batch."""

    batch = 2**13
    threads: int | None = 1  # a pass has threads of its own

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self._real = np.array([not isinstance(v, Finite) for v in problem.variables])
        self._place = np.where(self._real, np.cumsum(self._real), np.cumsum(~self._real)) - 1
        self._sizes = [v.n_states if isinstance(v, Finite) else 0 for v in problem.variables]
        self._moments = HybridScores(problem.data, problem.variables, BIC(), threads=problem.threads)

    @cached_property
    def _of_finite(self) -> Any:
        """Who tests finite variables given finite ones."""
        finite = tuple(v for v in self.problem.variables if isinstance(v, Finite))
        return judge_of(replace(self.problem, variables=finite), GSquared(adjusted=True))

    def log_p(self, pairs: Ints, owner: Ints, sets: Ints, enough: float) -> Array:
        ends = np.sort(pairs[owner], axis=1)
        members = np.column_stack([sets, ends])
        result, real = np.zeros(len(owner)), self._real[members]
        tables = np.flatnonzero(~real.any(1))
        if len(tables):
            asked, inverse = np.unique(owner[tables], return_inverse=True)
            places = self._place.astype(np.int32)
            result[tables] = self._of_finite.log_p(places[pairs[asked]], inverse.astype(np.int32), places[sets[tables]], enough)
        groups: dict[Parents, dict[tuple[Parents, int], list[int]]] = {}
        for t in np.flatnonzero(real.any(1)).tolist():
            finite = members[t][~real[t]]
            pair = tuple(int(v) for v in ends[t] if not self._real[v])
            groups.setdefault(tuple(sorted(finite.tolist())), {}).setdefault((pair, len(finite)), []).append(t)
        squares = float(self._real.sum()) ** 2
        for part in in_memory(groups, lambda finite: float(prod(self._sizes[v] for v in finite)) * squares, NUMBERS):
            self.problem.progress.check()
            for finite, moments in self._moments.about(part).items():  # which one pass over the rows fills
                for (pair, _), tests in groups[finite].items():
                    strata = Strata.of(moments, [self._sizes[v] for v in finite], [finite.index(v) for v in pair])
                    rows = members[tests]
                    numbers = self._place[rows[self._real[rows]]].reshape(len(tests), -1)
                    result[tests] = strata.answers(numbers.astype(np.int32))[:, 2]
        return result


def judge_of(problem: Problem, test: IndependenceTest) -> Judge:
    """The fastest judge by a test for this data; one that has no judge of its own is asked table by table."""
    data, names = problem.data, problem.names
    if type(test) is FisherZ:
        moments = data.gather([Request((), names)], threads=problem.threads).moments((), names)
        return CorrelationJudge(correlations(moments), moments.total, problem.threads)
    if isinstance(test, LikelihoodRatio):
        return MixedJudge(problem)
    if not isinstance(data, Data) or type(test) not in (GSquared, ChiSquared, MutualInformation):
        return GatheringJudge(problem, test)
    finite = [v for v in problem.variables if isinstance(v, Finite)]
    layout = BitLayout(names, tuple(v.n_states for v in finite), STATES)
    if max(layout.n_states) <= 255 and data.weight < 2**31 and (not data.weighted or data.whole_weights):
        bits, rows = bits_of(data, finite, layout, threads=problem.threads, memory_limit=problem.memory_limit)
        if bits.at_hand and 2 * rows.n_rows * len(names) <= (problem.memory_limit or IN_MEMORY):
            return RowJudge(bits, layout, test, rows.weight, problem.threads)
    return GatheringJudge(problem, test)
