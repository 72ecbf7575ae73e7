"""The cost of a search, estimated before it: how many families and tables, how much memory, how many scans, about how long."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from math import comb, inf
from typing import Any

import numpy as np

from suffice.basis.output.display import OneTable
from suffice.basis.variables import Finite
from suffice.engines.data import Data
from suffice.engines.steps.blocks import used_memory
from suffice.errors import TooLarge, bytes_in_words
from suffice.errors.remedies import name_of
from suffice.objectives.scores import score_of_data
from suffice.statistics import Statistics
from suffice.structure.problem import Problem
from suffice.structure.rules import Rules
from suffice.structure.scoring.hybrid_scores import PER_NUMBER, HybridScores, most_families
from suffice.structure.scoring.local_scores import SLOW, room_for
from suffice.structure.scoring.regression_scores import PASSES, seconds_each

PER_BIT_CELL = 4e-12
"""Seconds a row and cell by bitmaps, one thread."""
PER_ROW_TABLE = 8e-10
"""Seconds a row and table by scans."""
PER_TABLE = 1e-6
"""Seconds a table, however few the rows: its cells are put together and scored."""
PER_FAMILY = 3e-4
"""Seconds a family that has statistics of its own."""
PER_GAUSSIAN = 1e-6
"""Seconds a family of real variables, once their moments are known."""
PER_CONFIGURATION = 2e-7
"""Seconds a family and configuration of its finite parents, once the moments there are known."""
BIT_CELLS = 256
"""Cells, the last state of each variable left out, up to which a table is counted by bitmaps."""
CELLS_A_SCAN = 2**26
"""Cells that are counted in one scan."""
START = 0.005
"""Seconds before the first row is counted."""
PER_CELL = 3e-9
"""Seconds to encode a row's cell as bits, once."""
PER_ORDER = 6e-8
"""Seconds for each round of a chain of orders and each pair of variables; chains that gain no more end before."""
TRANSITIONS = 5e-9
"""Seconds for each (set, member) of exact search by dynamic programming."""


@dataclass(frozen=True)
class Work:
    """What a method asks for: how many families, the tables by their number of variables, and what it needs besides."""

    families: float
    tables: dict[int, float]
    at_least: bool = False
    by_difference: bool = True
    """Whether the cells of last states follow from smaller tables, and are not counted."""
    bytes: float = 0.0
    seconds: float = 0.0
    further: str = ""
    """For what the rows are passed over again, where they are elsewhere."""


@dataclass(frozen=True, repr=False)
class Plan(OneTable):
    """What a search will cost. Counts are exact or, with `at_least`, a lower bound; seconds are an estimate within a few times.

    >>> from suffice.structure.search import problem_of
    >>> from suffice import HillClimb
    >>> rows = {"x": ["a", "b"] * 20, "y": ["u", "v"] * 20, "z": ["p", "p", "q", "q"] * 10}
    >>> plan = Plan.of(problem_of(rows, None, None), HillClimb())
    >>> plan.n_rows, plan.n_variables, plan.at_least
    (40.0, 3, True)
    """

    method: str
    n_rows: float
    n_variables: int
    families: float
    """Families (a child with some parents) that are scored."""
    tables: float
    """Distinct tables, or sets of moments, that are counted for them."""
    cells: float
    """Cells of those tables."""
    bytes: float
    """Memory for the bitmaps of the rows, the tables and the scores, beside the data itself."""
    scans: float
    """Passes over the rows, once what the columns are is known."""
    seconds: float
    """An estimate."""
    regressions: float
    """Families that are regressions, each of which is fitted: about `PASSES` passes over the rows, many of them together."""
    process_bytes: float
    """What the process takes now, the data that it holds included, and that memory."""
    at_least: bool
    """Whether the counts are lower bounds: how far a search has to go is known only when it ends."""
    further_scans: str = ""
    """For what rows that are not in this process are passed over again."""

    @staticmethod
    def of(problem: Problem, method: Any) -> Plan:
        """The cost of a method on a problem, without looking at any rows but to count them."""
        work = _work(problem, problem.rules_of(method), method)
        data = problem.data
        rows = float(data.n_rows if isinstance(data, Data) else data.weight)
        sizes = np.array([v.n_states if isinstance(v, Finite) else 1 for v in problem.variables], float)
        n_real = sum(not isinstance(v, Finite) for v in problem.variables)
        cells = sum(n * _mean_product(sizes, k) for k, n in work.tables.items())
        scans, seconds = _counting(problem, rows, sizes, n_real, work, cells)
        regressions = 0.0
        if problem.regressions:
            rules = problem.rules_of(method)
            bounds = zip(rules.allowed.sum(1).tolist(), rules.max_parents.tolist(), strict=True)
            sets = np.array([sum(_choose(c, k) for k in range(min(c, most) + 1)) for c, most in bounds])
            regressions = work.families * float(sets[list(problem.regressions)].sum() / sets.sum())
        if regressions:
            scans += PASSES * max(work.tables, default=1)
            parents = sum((k - 1) * n for k, n in work.tables.items()) / sum(work.tables.values())  # of a family on average
            seconds += regressions * seconds_each(rows, 1.0 + parents * float(np.maximum(sizes - 1, 1).mean()))
        away = isinstance(data, Data) and not data.engine.near
        if away and n_real == 0 and not _one_by_one(problem):
            scans = _passes(problem, rows, sizes, work)
        bits = 0.0 if away else rows * float((sizes * (sizes > 1)).sum()) / 8
        limit = problem.memory_limit
        held = limit is None or bits <= limit / 2
        if not held:  # the bitmaps are made again in each scan, for as many tables as there is room
            scans = max(scans, work.families / problem.n if work.at_least else cells / (limit or 1.0) * 16)
            seconds += (scans - 1) * PER_CELL * rows * len(sizes)
        tables = 4 * min(cells, CELLS_A_SCAN if limit is None else limit / 16)
        memory = bits * held + tables + 16 * work.families + work.bytes
        return Plan(
            method=in_words(method),
            n_rows=rows,
            n_variables=problem.n_open,
            families=work.families,
            tables=float(sum(work.tables.values())),
            cells=cells,
            bytes=memory,
            scans=scans,
            seconds=seconds + work.seconds,
            regressions=regressions,
            process_bytes=used_memory() + memory,
            at_least=work.at_least,
            further_scans=work.further if away and n_real < len(sizes) and scans > 0 else "",
        )

    def times(self, n: int, seconds: float, memory: float) -> Plan:
        """The cost of n such searches, each of which takes so many seconds more for its rows, and memory to hold them."""
        return replace(
            self,
            method=f"{n:,} × {self.method}",
            families=n * self.families,
            tables=n * self.tables,
            cells=n * self.cells,
            scans=n * (self.scans + 1),
            bytes=self.bytes + memory,
            seconds=n * (self.seconds + seconds),
            process_bytes=self.process_bytes + memory,
        )

    def to_dict(self) -> dict[str, Any]:
        """The numbers by name, for JSON."""
        return asdict(self)

    def _table(self) -> tuple[list[str], list[list[object]]]:
        least = "at least " if self.at_least else ""
        fits = f"{least}{_count(self.regressions)} fits × {_count(self.n_rows)} rows × about {PASSES:g} iterations"
        regressions: list[list[object]] = [["regressions", fits]] if self.regressions else []
        return ["what", "estimate"], [
            ["method", self.method],
            ["rows", _count(self.n_rows)],
            ["variables", _count(self.n_variables)],
            ["families", least + _count(self.families)],
            *regressions,
            ["tables", least + _count(self.tables)],
            ["cells", least + _count(self.cells)],
            ["memory", f"{least}{bytes_in_words(self.bytes)} beside the data"],
            ["process", f"{least}{bytes_in_words(self.process_bytes)} in all"],
            ["scans", least + _count(self.scans) + (f", and {self.further_scans}" if self.further_scans else "")],
            ["seconds", f"{least}about {self.seconds:.2g}"],
        ]


def check(plan: Plan, memory_limit: float | None) -> None:
    """Refuse a search that needs more memory than it may take (bytes)."""
    if memory_limit is not None and plan.bytes > memory_limit:
        raise TooLarge(
            f"the search would take about {bytes_in_words(plan.bytes)} of memory ({_count(plan.families)} families), and "
            f"may take {bytes_in_words(memory_limit)}; allow fewer parents ({name_of('max_parents')}) or more "
            f"memory ({name_of('memory_limit')})"
        )


def in_words(method: Any) -> str:
    """A method with the options that are not its defaults."""
    given = [
        f"{name}={getattr(method, name)!r}"
        for name, f in getattr(type(method), "__dataclass_fields__", {}).items()
        if f.repr and getattr(method, name) != f.default
    ]
    return f"{type(method).__name__}({', '.join(given)})"


def work_of_enumeration(problem: Problem, rules: Rules, method: Any) -> Work:
    """All parent sets that the rules allow; one table serves all families on the same variables."""
    n = rules.n
    families, by_size = 0.0, dict.fromkeys(range(1, n + 1), 0.0)
    kinds = Counter(zip(rules.allowed.sum(1).tolist(), rules.required.sum(1).tolist(), rules.max_parents.tolist(), strict=True))
    for (allowed, required, most), children in kinds.items():
        for k in range(required, min(most, allowed) + 1):
            sets = children * _choose(allowed - required, k - required)
            families += sets
            by_size[k + 1] += sets
    by_size[1] = max(by_size[1], float(n))
    families -= len(problem.given)
    tables = {k: min(_choose(n, k), sets) for k, sets in by_size.items() if sets}
    if tables and (below := max(tables) - 1):
        tables.setdefault(below, _choose(n, below))  # the parents' own tables
    return Work(families, tables)


def _orders(problem: Problem, rules: Rules, method: Any) -> Work:
    """All parent sets, or, where they are too many, a climb and then as many sets as may be."""
    n = rules.n
    walks = PER_ORDER * method.most_rounds(n) * method.chains * n**2
    seconds = min(walks, TRANSITIONS * n * 2.0 ** (n - 1))  # of few variables all orders are looked at
    slow = SLOW if _one_by_one(problem) else most_families(problem.data.weight) if _hybrid(problem) else inf
    if isinstance(problem.data, Data) and problem.families:
        slow = min(slow, 20.0 / seconds_each(problem.data.n_rows))
    if method.is_exhaustive(rules, slow):
        return replace(work_of_enumeration(problem, rules, method), seconds=seconds)
    climb, size = _climbing(problem, rules, method), int(rules.max_parents.max(initial=0)) + 1
    most = min(method.most_sets, slow)
    tables = climb.tables | {size: climb.tables.get(size, 0.0) + most}
    return Work(climb.families + most, tables, at_least=True, seconds=seconds, further=climb.further)


def _one_by_one(problem: Problem) -> bool:
    """Whether each family needs statistics of its own, because finite and real variables are mixed, or rows weigh differently."""
    if _hybrid(problem):
        return False
    mixed = len({isinstance(v, Finite) for v in problem.variables}) > 1
    return mixed or (isinstance(problem.data, Data) and problem.data.weighted and not problem.data.whole_weights)


def _hybrid(problem: Problem) -> bool:
    """Whether finite and real variables are mixed, and one table of moments serves all families with the same finite parents."""
    mixed = len({isinstance(v, Finite) for v in problem.variables}) > 1
    return mixed and HybridScores.serves(problem.data, score_of_data(problem.score))


def _exact(problem: Problem, rules: Rules, method: Any) -> Work:
    """All parent sets, then every set of variables once (dynamic programming) or branches of unknown number."""
    work, n = work_of_enumeration(problem, rules, method), problem.n_open
    if n > 27 or (problem.memory_limit is not None and 2.0 ** (n + 3) > problem.memory_limit):
        return Work(work.families, work.tables, at_least=True)
    return Work(work.families, work.tables, bytes=2.0 ** (n + 3), seconds=TRANSITIONS * n * 2.0**n)


def _climbing(problem: Problem, rules: Rules, method: Any) -> Work:
    """All single edges, then n more families a step, and about as many steps as there are variables."""
    n = rules.n
    pairs = float(rules.allowed.sum())
    runs = 1.0 + (getattr(method, "restarts", 0) or 0)
    steps = 1.5 * problem.n_open * runs
    size = min(4, n, 1 + int(rules.max_parents.max(initial=0)))
    tables = {1: float(n), 2: pairs / 2} | ({size: steps * n} if size > 2 else {})
    families = problem.n_open + pairs + steps * n
    return Work(families, tables, at_least=True, by_difference=False, further="at most one for each step")


def _pairs(problem: Problem, rules: Rules, method: Any) -> Work:
    """Each pair of variables once."""
    n = rules.n
    return Work(_choose(n, 2), {1: float(n), 2: _choose(n, 2)})


def _below_a_class(problem: Problem, rules: Rules, method: Any) -> Work:
    """Each pair of the other variables once, with the class."""
    n = rules.n
    return Work(_choose(n - 1, 2), {1: float(n), 2: n - 1.0, 3: _choose(n - 1, 2)})


def _work_of_tests(problem: Problem, rules: Rules, method: Any) -> Work:
    """Each pair once, and each again given every other variable that may be next to it: more as edges remain."""
    n = rules.n
    tables, further = {1: float(n), 2: _choose(n, 2), 3: 3.0 * n * n}, "one for each level of tests, and 2^24 cells of it"
    return Work(_choose(n, 2) + 3.0 * n * n, tables, at_least=True, further=further)


KINDS: dict[str, Callable[[Problem, Rules, Any], Work]] = {
    "Orders": _orders,
    "Exact": _exact,
    "ChowLiu": _pairs,
    "TAN": _below_a_class,
    "MethodByTests": _work_of_tests,
}
"""How the work of each method is counted; of any other as that of a climb."""


def _work(problem: Problem, rules: Rules, method: Any) -> Work:
    """What a method foretells itself, or what its kind is known for."""
    if hasattr(method, "work"):
        own: Work = method.work(problem, rules)
        return own
    kind = next((KINDS[c.__name__] for c in type(method).__mro__ if c.__name__ in KINDS), _climbing)
    return kind(problem, rules, method)


def _counting(
    problem: Problem, rows: float, sizes: np.typing.NDArray[np.float64], n_real: int, work: Work, cells: float
) -> tuple[float, float]:
    """Scans and seconds for the tables of some work."""
    if isinstance(problem.data, Statistics):
        return 0.0, PER_TABLE * work.families
    scans = max(1.0, float(np.ceil(cells / CELLS_A_SCAN)))
    if n_real == len(sizes):
        return 1.0, rows * len(sizes) ** 2 * PER_ROW_TABLE / 4 + PER_GAUSSIAN * work.families
    if _hybrid(problem):
        return scans, _grouping(rows, sizes, n_real, work)
    if _one_by_one(problem):
        return scans, work.families * (rows * PER_ROW_TABLE + PER_FAMILY)
    seconds = START + rows * len(sizes) * PER_CELL
    for k, n in work.tables.items():
        core = _mean_product(np.maximum(sizes - 1, 1) if work.by_difference else sizes, k)
        seconds += n * (PER_TABLE + rows * (PER_BIT_CELL * core if core <= BIT_CELLS else PER_ROW_TABLE))
    return scans, seconds


def _passes(problem: Problem, rows: float, sizes: np.typing.NDArray[np.float64], work: Work) -> float:
    """Passes over finite rows that are elsewhere: of a search among all parent sets, at most; of another, at least.

    Equal rows are merged in one pass where few can differ. Else single variables and pairs are one, and larger sets of all levels
    together another, as far as there is room for their tables (see `DistantScores`).
    """
    if work.at_least or rows >= 8 * np.prod(sizes):
        return 1.0
    room = room_for(problem.memory_limit)
    larger = [n * _mean_product(sizes, k) for k, n in work.tables.items() if k > 2]
    if sum(n * _mean_product(sizes, k) for k, n in work.tables.items()) <= room:
        return 1.0 + bool(larger)
    return 2.0 + sum(float(np.ceil(cells / room)) + (cells > room) for cells in larger)


def _grouping(rows: float, sizes: np.typing.NDArray[np.float64], n_real: int, work: Work) -> float:
    """Seconds for moments of all numbers within configurations of finite parents, and for the regressions there.

    The largest sets of finite parents leave no room for real ones, so that variances are enough.
    """
    finite = sizes[sizes > 1]
    most = max(work.tables, default=1) - 1
    numbers = configurations = 0.0
    for k in range(min(most, len(finite)) + 1):
        sets = min(_choose(len(finite), k), work.families)
        numbers += sets * (1.0 + 2.0 * n_real + (n_real * (n_real - 1) / 2 if k < most else 0.0))
        configurations += sets * _mean_product(finite, k) * n_real * _choose(n_real - 1, min(most - k, n_real - 1))
    return START + rows * numbers * PER_NUMBER + configurations * PER_CONFIGURATION + work.families * PER_GAUSSIAN


def _mean_product(sizes: np.typing.NDArray[np.float64], k: int) -> float:
    """The mean over all k variables of the product of their sizes: an elementary symmetric polynomial over its terms."""
    if k > len(sizes):
        return 0.0
    if k > 12:  # past any table that could be counted
        return float(np.exp(min(700.0, k * np.log(sizes).mean())))
    e = np.zeros(k + 1)
    e[0] = 1.0
    for i, r in enumerate(sizes):
        top = min(i + 1, k)
        e[1 : top + 1] += r * e[:top]
    return float(e[k] / comb(len(sizes), k))


def _choose(n: int, k: int) -> float:
    value = comb(n, k)
    return float(value) if value < 10**300 else inf


def _count(n: float) -> str:
    return f"{n:,.0f}" if n < 1e9 else f"{n:.3g}"
