"""Tests of independence: against brute force, against scipy, and one way of counting against the others."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import suffice as sf
from suffice.errors import DataError, FitError, StatisticsError
from suffice.numerics.kernels.search import independence as kernels
from suffice.structure.independence import ChiSquared, FisherZ, GSquared, MutualInformation, independence_test
from suffice.structure.search import problem_of
from suffice.structure.separation import GatheringJudge, Questions, RowJudge, judge_of

SEEDS = st.integers(0, 2**32 - 1)


def table(seed: int, n_rows: int, sizes: list[int]) -> dict[str, list[str]]:
    """Columns a, b, c … that lean on each other; the last state of some may not occur."""
    rng = np.random.default_rng(seed)
    codes = [rng.integers(0, s, n_rows) for s in sizes]
    for i in range(1, len(codes)):
        copied = rng.random(n_rows) < 0.4
        codes[i][copied] = codes[i - 1][copied] % sizes[i]
    return {"abcdefghij"[i]: [f"s{c}" for c in column] for i, column in enumerate(codes)}


def scanned(rows: dict[str, list[str]], sizes: list[int], **options: object) -> sf.Data:
    declared = {n: sf.Finite(n, [f"s{i}" for i in range(s)]) for n, s in zip(rows, sizes, strict=True)}
    return sf.scan(rows, variables=declared, **options)


def by_hand(rows: dict[str, list[str]], x: str, y: str, given: tuple[str, ...]) -> tuple[float, float, int]:
    """G², X² and the adjusted degrees of freedom, by loops over everything."""
    strata = Counter(zip(*(rows[g] for g in given), strict=True)) if given else Counter({(): len(rows[x])})
    g2 = x2 = 0.0
    df = 0
    for z in strata:
        inside = [i for i in range(len(rows[x])) if all(rows[g][i] == v for g, v in zip(given, z, strict=True))]
        ns, ms = Counter(rows[x][i] for i in inside), Counter(rows[y][i] for i in inside)
        both = Counter((rows[x][i], rows[y][i]) for i in inside)
        df += (len(ns) - 1) * (len(ms) - 1)
        for a, n in ns.items():
            for b, m in ms.items():
                expected, seen = n * m / len(inside), both[a, b]
                x2 += (seen - expected) ** 2 / expected
                g2 += 2 * seen * math.log(seen / expected) if seen else 0.0
    return g2, x2, df


@given(SEEDS, st.integers(1, 60), st.lists(st.integers(1, 4), min_size=2, max_size=5))
@settings(max_examples=40, deadline=None)
def test_the_statistics_are_those_of_brute_force(seed: int, n_rows: int, sizes: list[int]) -> None:
    rows = table(seed, n_rows, sizes)
    data = scanned(rows, sizes)
    x, y, *others = rows
    g2, x2, adjusted = by_hand(rows, x, y, tuple(others))
    df = (sizes[0] - 1) * (sizes[1] - 1) * math.prod(sizes[2:])
    g, c, m = (independence_test(data, x, y, others, test) for test in (GSquared(), ChiSquared(), MutualInformation()))
    assert (g.statistic, c.statistic) == pytest.approx((g2, x2), abs=1e-9)
    assert 2 * n_rows * m.statistic == pytest.approx(g2, abs=1e-9)
    assert g.df == c.df == m.df == df
    assert independence_test(data, x, y, others, GSquared(adjusted=True)).df == adjusted
    assert g.p_value == m.p_value == (pytest.approx(stats.chi2.sf(g.statistic, df)) if df else 1.0)


@given(SEEDS)
@settings(max_examples=20, deadline=None)
def test_scipy_agrees(seed: int) -> None:
    rows = table(seed, 80, [3, 4])
    counts = np.array([[sum(p == (a, b) for p in zip(rows["a"], rows["b"], strict=True)) for b in sorted(set(rows["b"]))]
                       for a in sorted(set(rows["a"]))])  # fmt: skip
    for test, name in ((ChiSquared(), "pearson"), (GSquared(), "log-likelihood")):
        theirs = stats.chi2_contingency(counts, correction=False, lambda_=name)
        assert independence_test(rows, "a", "b", test=test) == pytest.approx((theirs.statistic, theirs.dof, theirs.pvalue))


@given(st.floats(-3, 3), st.integers(1, 10**6))
@settings(max_examples=300, deadline=None)
def test_the_chi_square_tail_is_scipys(deviation: float, df: int) -> None:
    for x in (df + deviation * 3 * math.sqrt(2 * df), df * 10 ** (deviation / 5)):
        theirs = special.chdtrc(df, x) if x > 0 else 1.0
        if theirs > 1e-280:
            # gammaincc itself is right to about 1e-10 far out, for many degrees of freedom
            assert math.exp(kernels.log_chi_square_tail(x, float(df))) == pytest.approx(theirs, rel=1e-10)


def test_the_tails_far_out() -> None:
    for z in (0.0, 0.1, 1.0, 8.0, 24.9, 25.1, 40.0, 1e3):
        assert kernels.log_normal_tails(z) == pytest.approx(math.log(2) + special.log_ndtr(-z), rel=1e-11, abs=1e-15)
    assert kernels.log_chi_square_tail(1e5, 1.0) == pytest.approx(math.log(2) + special.log_ndtr(-math.sqrt(1e5)), rel=1e-12)
    assert kernels.log_chi_square_tail(1e9 + 1e5, 1e9) == pytest.approx(stats.norm.logsf(1e5 / math.sqrt(2e9)), rel=1e-4)
    assert kernels.log_chi_square_tail(3.0, 0.0) == kernels.log_chi_square_tail(0.0, 3.0) == 0.0
    assert kernels.log_chi_square_tail(math.inf, 3.0) == -math.inf


@pytest.mark.parametrize(
    ("n_rows", "sizes"),
    [
        (100, [2, 3, 2, 4, 3]),  # bitmaps
        (40_000, [2, 3, 2]),  # bitmaps of more than one block
        (500, [5, 6, 7, 8, 3]),  # tables counted row by row
        (60, [9, 9, 40, 50, 60]),  # strata in a list
        (300, [200, 90, 3, 17]),  # no bitmaps at all for some
        (50, [1, 2, 1, 2, 3]),  # a constant
    ],
)
@pytest.mark.parametrize("test", [GSquared(), GSquared(adjusted=True), ChiSquared(), ChiSquared(adjusted=True)])
def test_every_way_of_counting_gives_the_same(n_rows: int, sizes: list[int], test: GSquared) -> None:
    problem = problem_of(scanned(table(3, n_rows, sizes), sizes), None, None)
    fast, slow = judge_of(problem, test), GatheringJudge(problem, test)
    assert isinstance(fast, RowJudge)
    pairs = list(combinations(range(len(sizes)), 2))
    everything = [range(len(sizes))]
    for k in range(len(sizes) - 1):
        asked = Questions.of(pairs, everything, [(0, -1)] * len(pairs))
        for owner, sets in asked.tests(k, np.zeros(len(pairs), bool), 7):
            mine = [tuple(s) for s in sets.tolist()]
            proper = np.array([not set(pairs[e]) & set(s) for e, s in zip(owner, mine, strict=True)])
            owner, sets = owner[proper], np.ascontiguousarray(sets[proper])
            ours = fast.log_p(asked.pairs, owner, sets, np.inf)
            theirs = slow.log_p(asked.pairs, owner, sets, np.inf)
            assert np.maximum(ours, -600) == pytest.approx(np.maximum(theirs, -600), abs=1e-9, rel=1e-9)


@given(SEEDS, st.integers(0, 4), st.integers(1, 5))
@settings(max_examples=50, deadline=None)
def test_sets_are_enumerated_once_each_and_in_order(seed: int, k: int, room: int) -> None:
    rng = np.random.default_rng(seed)
    pools = [sorted(rng.choice(8, rng.integers(0, 8), replace=False).tolist()) for _ in range(8)]
    pairs = [tuple(sorted(rng.choice(8, 2, replace=False).tolist())) for _ in range(5)]
    expected = []
    for e, (x, y) in enumerate(pairs):
        one, two = ([v for v in pools[a] if v != b] for a, b in ((x, y), (y, x)))
        firsts = list(combinations(one, k))
        # a pair's own pool never holds itself when pools are neighbours; here it may, and stays
        seconds = [s for s in combinations(two, k) if not set(s) <= set(pools[x])]
        expected += [(e, s) for s in firsts + (seconds if k else [])]
    got = []
    for owner, sets in Questions.of(pairs, pools).tests(k, np.zeros(len(pairs), bool), room):
        got += [(int(e), tuple(s)) for e, s in zip(owner, sets.tolist(), strict=True)]
    assert got == expected


def normal(seed: int, n_rows: int, n: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    mixed = rng.normal(size=(n_rows, n)) @ rng.normal(size=(n, n)) + 1e3
    return {"abcdefghij"[i]: mixed[:, i] for i in range(n)}


@given(SEEDS, st.integers(2, 6))
@settings(max_examples=25, deadline=None)
def test_fishers_z_is_that_of_the_residuals(seed: int, n: int) -> None:
    rows = normal(seed, 50, n)
    x, y, *others = rows
    Z = np.column_stack([np.ones(50), *(rows[o] for o in others)])
    left = [rows[v] - Z @ np.linalg.lstsq(Z, rows[v], rcond=None)[0] for v in (x, y)]
    r = float(left[0] @ left[1] / math.sqrt((left[0] @ left[0]) * (left[1] @ left[1])))
    result = independence_test(rows, x, y, others)
    assert result.statistic == pytest.approx(math.atanh(r) * math.sqrt(50 - len(others) - 3), rel=1e-6, abs=1e-7)
    assert result.p_value == pytest.approx(2 * stats.norm.sf(abs(result.statistic)))
    assert result.df is None
    problem = problem_of(rows, None, None)
    owner, sets = np.zeros(1, np.int32), np.arange(2, n, dtype=np.int32).reshape(1, -1)
    log_p = judge_of(problem, FisherZ()).log_p(np.array([[0, 1]], np.int32), owner, sets, np.inf)
    assert math.exp(log_p[0]) == pytest.approx(result.p_value, rel=1e-6)


def test_fishers_z_where_nothing_can_be_said() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=30), rng.normal(size=30)
    rows = {"x": x, "y": y, "copy": x, "sum": x + y, "flat": np.full(30, 2.0)}
    assert independence_test(rows, "x", "copy")[::2] == (math.inf, 0.0)
    assert independence_test({"a": x, "b": -x}, "a", "b")[::2] == (-math.inf, 0.0)
    for a, b, z in (("x", "y", "copy"), ("x", "flat", ()), ("flat", "y", "x"), ("sum", "copy", ("x", "y"))):
        assert independence_test(rows, a, b, z) == (0.0, None, 1.0)
    assert independence_test(rows, "x", "y", ("sum", "flat")).p_value < 1e-9
    assert independence_test(rows, "y", "sum", ("x", "copy"))[2] == pytest.approx(0.0)
    few = {k: v[:4] for k, v in normal(1, 9, 3).items()}
    assert independence_test(few, "a", "b", "c") == (0.0, None, 1.0)


def test_statistics_will_do() -> None:
    rows = table(5, 60, [2, 3, 2])
    for test in (GSquared(), ChiSquared(True), MutualInformation()):
        whole = independence_test(rows, "a", "b", "c", test)
        assert independence_test(sf.gather(rows, "c -> a; c, a -> b"), "a", "b", "c", test) == whole
    with pytest.raises(StatisticsError, match="go together"):
        independence_test(sf.gather(rows, "a; b; c"), "a", "b")


def test_states_that_never_occur_count_unless_adjusted() -> None:
    data = sf.scan(
        {"x": ["a", "b"] * 9, "y": ["u", "v", "v"] * 6}, variables=[sf.Finite("x", list("abc")), sf.Finite("y", list("uvw"))]
    )
    assert independence_test(data, "x", "y", test=GSquared()).df == 4
    assert independence_test(data, "x", "y", test=GSquared(adjusted=True)).df == 1
    assert independence_test({"x": ["a"] * 5, "y": list("uvuvu")}, "x", "y") == (0.0, 0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x", "z"), "no variable 'z'"),
        (("x", "x"), "different variables"),
        (("x", "y", ["y"]), "different variables"),
        (("x", "y", (), FisherZ()), "FisherZ tests numbers, not finite variables such as 'x', 'y'"),
        (("n", "m", (), GSquared()), "GSquared tests finite variables, not numbers such as 'n', 'm'"),
        (("x", "y", (), "g2"), "a test is GSquared"),
    ],
)
def test_what_is_no_test_is_refused(arguments: tuple, message: str) -> None:
    rows = {"x": ["a", "b"] * 4, "y": ["a", "a", "b", "b"] * 2, "n": np.arange(8.0) + 0.5, "m": np.arange(8.0) ** 2 + 0.5}
    with pytest.raises(FitError, match=message):
        independence_test(rows, *arguments)


def test_missing_cells_are_refused() -> None:
    with pytest.raises(DataError, match="missing"):
        independence_test({"x": ["a", None, "b"], "y": ["a", "b", "b"]}, "x", "y")
