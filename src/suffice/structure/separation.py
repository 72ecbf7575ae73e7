"""Separation: given which sets of others is each of many pairs of variables independent?

A `Questions` says which pairs, and from which pools of others the sets are taken; a judge answers them in batches, in one of
three ways: tables counted from rows in memory, a matrix of correlations, or statistics gathered from data of any size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.parallel import in_order, n_threads
from suffice.statistics import Request, Statistics
from suffice.structure.independence import FisherZ, IndependenceTest, correlations
from suffice.structure.problem import Problem
from suffice.structure.rules import Parents
from suffice.variables import Finite

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[Any]

IN_MEMORY = 2**30
"""Bytes of codes that are held in memory, where no other limit is given."""

STATES = 16
"""States up to which a column has bitmaps: they take no more than twice the memory of its codes."""

WORDS = 512
"""Words of a bitmap in one block: the bitmaps of a table's cells then stay in the nearest caches."""

CELLS = 2**24
"""Cells of tables that are asked for in one scan."""


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
        return Questions(
            chosen,
            chosen if which is None else np.ascontiguousarray(which, np.int32).reshape(-1, 2),
            np.full(len(chosen), -1, np.int32) if always is None else np.array(always, np.int32),
            np.cumsum([0, *map(len, pools)], dtype=np.int64),
            np.concatenate([np.zeros(0, np.int32), *(np.asarray(p, np.int32) for p in pools)]).astype(np.int32),
        )

    def __len__(self) -> int:
        return len(self.pairs)

    def part(self, start: int, stop: int) -> Questions:
        """Some of the pairs."""
        return Questions(self.pairs[start:stop], self.which[start:stop], self.always[start:stop], self.first, self.pool)

    def batches(self, k: int, done: npt.NDArray[np.bool_], size: int) -> Iterator[tuple[Ints, Ints]]:
        """The pairs, and the set of k members, of each test, up to `size` at a time; what is done by then is left out."""
        from suffice.kernels.independence import subsets

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


def separated(judge: Judge, questions: Questions, k: int, alpha: float, progress: Any) -> Answers:
    """Look for a set of k members that separates each pair at level alpha."""
    enough = np.log(alpha)
    given: list[Parents | None] = [None] * len(questions)
    largest, n_tests = np.full(len(questions), -np.inf), 0

    def task(start: int, stop: int) -> tuple[int, dict[int, tuple[Parents, float]], Array, int]:
        part, done = questions.part(start, stop), np.zeros(stop - start, np.bool_)
        found: dict[int, tuple[Parents, float]] = {}
        top, n = np.full(stop - start, -np.inf), 0
        for owner, sets in part.batches(k, done, judge.batch):
            log_p = judge.log_p(part.pairs, owner, sets, enough)
            np.fmax.at(top, owner, log_p)
            n += len(log_p) - int(np.isnan(log_p).sum())
            hits = np.flatnonzero(log_p > enough)
            pairs, at = np.unique(owner[hits], return_index=True)
            done[pairs] = True
            found |= {int(e): (tuple(sets[i].tolist()), float(log_p[i])) for e, i in zip(pairs, hits[at], strict=True)}
        return start, found, top, n

    for start, found, top, n in in_order(_tasks(task, len(questions), judge), judge.threads):
        progress.check(f"tests given {k} others")
        largest[start : start + len(top)] = top
        n_tests += n
        for e, (members, log_p) in found.items():
            given[start + e], largest[start + e] = members, log_p
    return Answers(given, largest, n_tests)


def census(judge: Judge, questions: Questions, most: int, alpha: float, n: int, progress: Any) -> Census:
    """Count the sets of up to `most` members that separate each pair at level alpha, and in how many each of n variables is."""
    n_sets, n_with, n_tests = np.zeros(len(questions), np.int64), Counter[tuple[int, int]](), 0

    def task(start: int, stop: int) -> tuple[Counter[tuple[int, int]], int]:
        part, done = questions.part(start, stop), np.zeros(stop - start, np.bool_)
        seen, tested = Counter[tuple[int, int]](), 0
        for k in range(most + 1):
            for owner, sets in part.batches(k, done, judge.batch):
                log_p = judge.log_p(part.pairs, owner, sets, np.inf)
                hits = log_p > np.log(alpha)
                pairs = owner[hits].astype(np.int64)
                n_sets[start:stop] += np.bincount(pairs, minlength=stop - start)
                keys, counts = np.unique(pairs[:, None] * n + sets[hits], return_counts=True)
                for key, count in zip(keys.tolist(), counts.tolist(), strict=True):
                    seen[start + key // n, key % n] += count
                tested += len(log_p)
        return seen, tested

    for seen, tested in in_order(_tasks(task, len(questions), judge), judge.threads):
        progress.check("tests that direct edges")
        n_with.update(seen)
        n_tests += tested
    return Census(n_sets, n_with, n_tests)


def _tasks(task: Any, n: int, judge: Judge) -> Iterator[Any]:
    """The pairs in parts: several for each thread, since some pairs take longer than others."""
    workers = n_threads(judge.threads)
    size = n if workers == 1 and judge.threads == 1 else max(1, min(2**13, -(-n // (8 * workers))))
    return ((lambda a=a: task(a, min(a + size, n))) for a in range(0, n, max(1, size)))


class RowJudge:
    """Counts the tables of each test from columns of codes, a byte a cell."""

    batch = 2**12

    def __init__(self, codes: npt.NDArray[np.uint8], sizes: Sequence[int], test: Any, threads: int | None) -> None:
        self.codes, self.sizes, self.threads = codes, np.array(sizes, np.int64), threads
        self.pearson, self.adjusted = bool(test.pearson), bool(test.adjusted)
        n = np.arange(codes.shape[1] + 1, dtype=np.float64)
        self.logs = n * np.log(np.maximum(n, 1.0))
        self.bits, self.at = _bitmaps(codes, self.sizes)

    def log_p(self, pairs: Ints, owner: Ints, sets: Ints, enough: float) -> Array:
        from suffice.kernels.independence import table_tests

        result = np.empty(len(owner))
        arrays = self.codes, self.bits, self.at, self.sizes, self.logs, pairs, owner, sets
        table_tests(*arrays, sets.shape[1], self.pearson, self.adjusted, float(enough), result)
        return result


def _bitmaps(codes: npt.NDArray[np.uint8], sizes: Ints) -> tuple[npt.NDArray[np.uint64], Ints]:
    """The bitmaps of the columns with few states, in blocks of rows, and the place of each column's first."""
    from suffice.kernels.bitmaps import set_bits

    few = sizes <= STATES
    at = np.where(few, np.cumsum(sizes * few) - sizes * few, -1)
    n_words = min(WORDS, -(-codes.shape[1] // 256) * 4)
    rows = 64 * n_words
    bits = np.zeros((-(-codes.shape[1] // rows), int((sizes * few).sum()), n_words), np.uint64)
    codes = codes.view()
    codes.flags.writeable = False
    for b, block in enumerate(bits):
        for v in np.flatnonzero(few):
            set_bits(codes[v, b * rows : (b + 1) * rows], int(at[v]), block)
    return bits, at


class CorrelationJudge:
    """Fisher's z of partial correlations, from one matrix of correlations."""

    batch = 2**12

    def __init__(self, correlation: Array, weight: float, threads: int | None) -> None:
        self.correlation, self.weight, self.threads = correlation, float(weight), threads

    def log_p(self, pairs: Ints, owner: Ints, sets: Ints, enough: float) -> Array:
        from suffice.kernels.independence import partial_tests

        result = np.empty(len(owner))
        partial_tests(self.correlation, self.weight, pairs, owner, sets, sets.shape[1], float(enough), result)
        return result


class GatheringJudge:
    """Gathers the table of each test: for weighted rows, rows that memory does not hold, and statistics without rows.

    All tests of a batch are made, as one scan answers them all.
    """

    batch = 2**15
    threads: int | None = 1  # the scan has threads of its own

    def __init__(self, problem: Problem, test: IndependenceTest) -> None:
        self.problem, self.test = problem, test

    def log_p(self, pairs: Ints, owner: Ints, sets: Ints, enough: float) -> Array:
        names = self.problem.names
        asked = [
            (names[x], names[y], tuple(names[z] for z in given))
            for (x, y), given in zip(pairs[owner].tolist(), sets.tolist(), strict=True)
        ]
        result = np.empty(len(asked))
        for start, stop in self._scans(asked):
            statistics = self._gathered([self.test.needs(*a) for a in asked[start:stop]])
            for i in range(start, stop):
                result[i] = self.test.test(statistics, *asked[i]).p_value
            self.problem.progress.check()
        with np.errstate(divide="ignore"):
            return np.log(result)

    def _gathered(self, requests: Sequence[Request]) -> Statistics:
        data = self.problem.data
        return data if isinstance(data, Statistics) else data.gather(requests, threads=self.problem.threads)

    def _scans(self, asked: Sequence[tuple[str, str, tuple[str, ...]]]) -> Iterator[tuple[int, int]]:
        """The tests whose tables fit into memory together, from one to the next."""
        sizes = {v.name: v.n_states for v in self.problem.variables if isinstance(v, Finite)}
        start, cells = 0, 0
        for i, (x, y, given) in enumerate(asked):
            size = prod(sizes[v] for v in (x, y, *given))
            if i > start and cells + min(size, CELLS) > CELLS:
                yield start, i
                start, cells = i, 0
            cells += size
        if start < len(asked):
            yield start, len(asked)


def judge_of(problem: Problem, test: IndependenceTest) -> Judge:
    """The fastest judge for this data."""
    data, names = problem.data, problem.names
    if isinstance(test, FisherZ):
        statistics = data if isinstance(data, Statistics) else data.gather([Request((), names)], threads=problem.threads)
        moments = statistics.moments((), names)
        return CorrelationJudge(correlations(moments), moments.total, problem.threads)
    sizes = [v.n_states for v in problem.variables if isinstance(v, Finite)]
    if not isinstance(data, Data) or data.weighted or max(sizes) > 255:
        return GatheringJudge(problem, test)
    if data.n_rows * len(names) > (problem.memory_limit or IN_MEMORY):
        return GatheringJudge(problem, test)
    codes = np.empty((len(names), data.n_rows), np.uint8)
    for i, name in enumerate(names):
        codes[i] = data.column(name)
    return RowJudge(codes, sizes, test, problem.threads)
