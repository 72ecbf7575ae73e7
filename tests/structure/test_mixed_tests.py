"""Tests of independence of states and numbers together: brute force, both directions, the level, searches, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

import suffice as sf
from suffice.errors import FitError
from suffice.numerics.kernels.search import mixed_tests as kernels
from suffice.structure.independence import Strata
from suffice.structure.scoring.hybrid_scores import ConfigurationMoments
from suffice.structure.search import problem_of
from suffice.structure.separation import GatheringJudge, MixedJudge

SEEDS = st.integers(0, 2**32 - 1)
LETTERS = np.array(list("abc"))


def table(seed: int, n: int) -> dict[str, Any]:
    """Three finite and three real columns that lean on each other."""
    rng = np.random.default_rng(seed)
    d, x = rng.integers(0, 2, n), rng.integers(0, 3, n)
    e = np.where(rng.random(n) < 0.3, x, rng.integers(0, 3, n))
    u = rng.normal(size=n) + d
    v = u * (1 + x) + rng.normal(size=n)
    return {"d": LETTERS[d], "x": LETTERS[x], "e": LETTERS[e], "u": u, "v": v, "w": rng.normal(size=n) * (1 + d)}


def scanned(rows: dict[str, Any]) -> sf.Data:
    return sf.scan(rows, variables={n: list("abc") for n, c in rows.items() if c.dtype.kind != "f"})


def residual(y: Any, design: list[Any]) -> tuple[float, int]:
    """The sum of squares that a regression leaves, and how many columns it has without combinations of others."""
    X = np.column_stack([np.ones(len(y)), *design])
    beta, *_ = np.linalg.lstsq(X, y, rcond=None)
    return float(((y - X @ beta) ** 2).sum()), int(np.linalg.matrix_rank(X))


def by_hand(rows: dict[str, Any], x: str, y: str, given: tuple[str, ...]) -> tuple[float, float]:
    """The statistic and degrees of `LikelihoodRatio` where y is a number, from the rows."""
    finite = [g for g in given if rows[g].dtype.kind != "f"]
    numbers = [g for g in given if g not in finite]
    ratio = mean = variance = 0.0
    keys = list(zip(*(rows[g] for g in finite), strict=True)) if finite else [()] * len(rows[y])
    for z in sorted(set(keys)):
        inside = np.array([k == z for k in keys])
        if rows[x].dtype.kind == "f":
            N = inside.sum()
            S, k = residual(rows[y][inside], [rows[c][inside] for c in numbers])
            n = N - k
            if n < 2:
                continue
            R, _ = residual(rows[y][inside], [rows[c][inside] for c in (*numbers, x)])
            ratio += N * np.log(S / R)
            mean += N * (special.psi(n / 2) - special.psi((n - 1) / 2))
            variance += N**2 * (special.polygamma(1, (n - 1) / 2) - special.polygamma(1, n / 2))
            continue
        parts = []
        for s in sorted(set(rows[x][inside])):
            here = inside & (rows[x] == s)
            S, k = residual(rows[y][here], [rows[c][here] for c in numbers])
            if here.sum() - k >= 1:
                parts.append((here, S, here.sum() - k))
        if len(parts) < 2:
            continue
        together = np.any([here for here, _, _ in parts], axis=0)
        N = together.sum()
        S, k = residual(rows[y][together], [rows[c][together] for c in numbers])
        n = N - k
        ratio += N * np.log(S / N) - sum(h.sum() * np.log(s / h.sum()) for h, s, _ in parts)
        mean += N * (special.psi(n / 2) - np.log(N)) + sum(h.sum() * (np.log(h.sum()) - special.psi(f / 2)) for h, _, f in parts)
        variance += sum(h.sum() ** 2 * special.polygamma(1, f / 2) for h, _, f in parts) - N**2 * special.polygamma(1, n / 2)
    return (2 * mean / variance * max(ratio, 0.0), 2 * mean**2 / variance) if variance > 0 else (0.0, 0.0)


@pytest.mark.parametrize(
    ("x", "given_names"),
    [
        ("x", ()),
        ("x", ("d",)),
        ("x", ("u",)),
        ("x", ("d", "u")),
        ("x", ("d", "e", "u", "w")),
        ("u", ("d",)),
        ("u", ("d", "x", "w")),
    ],
)
@given(seed=SEEDS, n=st.integers(4, 60))
@settings(max_examples=15, deadline=None)
def test_the_ratio_is_that_of_regressions_on_rows(x: str, given_names: tuple[str, ...], seed: int, n: int) -> None:
    rows = table(seed, n)
    data = scanned(rows)
    answer = sf.independence.independence_test(data, x, "v", given_names, test=sf.independence.LikelihoodRatio())
    statistic, df = by_hand(rows, x, "v", given_names)
    assert answer.statistic == pytest.approx(statistic, rel=1e-6, abs=1e-8)
    assert answer.df == pytest.approx(df, rel=1e-9)
    assert answer.p_value == pytest.approx(stats.chi2.sf(statistic, df) if df else 1.0, rel=1e-5)
    assert sf.independence.independence_test(data, "v", x, given_names, test=sf.independence.LikelihoodRatio()) == answer


@pytest.mark.parametrize("given_names", [("u",), ("u", "v"), ("d", "u")])
@given(seed=SEEDS, n=st.integers(6, 60))
@settings(max_examples=15, deadline=None)
def test_two_finite_variables_given_numbers(given_names: tuple[str, ...], seed: int, n: int) -> None:
    rows = table(seed, n)
    numbers = [g for g in given_names if g != "d"]
    statistic = df = variance = 0.0
    for z in sorted(set(rows["d"])) if "d" in given_names else [None]:
        inside = rows["d"] == z if z is not None else np.ones(n, bool)
        N = int(inside.sum())
        C = np.column_stack([np.ones(N), *(rows[c][inside] for c in numbers)])
        X, Y = (np.column_stack([rows[k][inside] == s for s in "bc"]).astype(float) for k in ("x", "e"))
        X, Y = (A - C @ np.linalg.lstsq(C, A, rcond=None)[0] for A in (X, Y))
        left = N - np.linalg.matrix_rank(C)
        if left < 2:
            continue
        of_x, of_y = (np.linalg.svd(A, full_matrices=False) for A in (X, Y))
        bases = [U[:, s > 1e-5 * max(1.0, s.max(initial=0.0))] for U, s, _ in (of_x, of_y)]
        p, q = (basis.shape[1] for basis in bases)
        if max(p, q) < left:
            statistic += left * ((bases[0].T @ bases[1]) ** 2).sum()
            df += p * q
            variance += 2 * p * q * (left - p) * (left - q) / ((left - 1) * (left + 2))
    if variance:
        statistic, df = 2 * df / variance * statistic, 2 * df**2 / variance
    answer = sf.independence.independence_test(scanned(rows), "x", "e", given_names)
    for test in (answer, sf.independence.independence_test(scanned(rows), "e", "x", given_names)):
        assert (test.df, test.statistic) == (pytest.approx(df, rel=1e-9), pytest.approx(statistic, rel=1e-6, abs=1e-8))


@pytest.mark.parametrize(("p", "q", "n"), [(1, 1, 5), (2, 3, 8), (2, 2, 20)])
def test_the_trace_of_unrelated_directions_has_this_mean_and_variance(p: int, q: int, n: int) -> None:
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.normal(size=(20_000, n, k)))[0] for k in (p, q))
    traces = n * ((U.transpose(0, 2, 1) @ V) ** 2).sum((1, 2))
    assert traces.mean() == pytest.approx(p * q, rel=0.03)
    assert traces.var() == pytest.approx(2 * p * q * (n - p) * (n - q) / ((n - 1) * (n + 2)), rel=0.05)


def test_without_numbers_it_is_the_adjusted_table_test() -> None:
    data = scanned(table(1, 80))
    both = [
        sf.independence.independence_test(data, "x", "e", ["d"], test=t)
        for t in (sf.independence.LikelihoodRatio(), sf.independence.GSquared(adjusted=True))
    ]
    assert both[0] == both[1]


def test_special_functions() -> None:
    for a in (0.5, 1.0, 1.5, 3.7, 9.5, 10.0, 60.0, 1e6):
        assert kernels.digamma(a) == pytest.approx(special.psi(a), rel=1e-13, abs=1e-13)
        assert kernels.trigamma(a) == pytest.approx(float(special.polygamma(1, a)), rel=1e-12)


def levels(n: int, kind: str, replications: int = 10_000) -> float:
    """The share of p-values below 5 % of numbers that do not depend on x, given states d and, in turn, a number."""
    rng, hits, columns = np.random.default_rng([n, len(kind)]), 0, 50
    for _ in range(replications // columns):
        d, x = rng.integers(0, 2, n), np.minimum(rng.integers(0, 4, n), 2)
        c = rng.normal(size=(n, 1)) * (1.0 + x[:, None]) + d[:, None]
        y = rng.normal(size=(n, columns)) + 1.5 * c * (d[:, None] + 1)
        if kind == "states":
            keys, group = np.unique(3 * d + x, return_inverse=True)
        else:
            keys, group = np.unique(d, return_inverse=True)
        numbers = np.column_stack([c, y] if kind == "states" else [c, y, rng.normal(size=(n, columns)) - c])
        parts = [numbers[group == g] for g in range(len(keys))]
        means = np.array([p.mean(0) for p in parts])
        scatter = np.array([(p - m).T @ (p - m) for p, m in zip(parts, means, strict=True)])
        moments = ConfigurationMoments(np.bincount(group).astype(float), means, scatter, keys, exact=True)
        strata = Strata.of(moments, [2, 3], [1]) if kind == "states" else Strata.of(moments, [2], [])
        which = np.arange(1, columns + 1)
        ends = [which] if kind == "states" else [which, which + columns]
        answers = strata.answers(np.column_stack([np.zeros(columns), *ends]).astype(np.int32))
        hits += int((answers[:, 2] < np.log(0.05)).sum())
    return hits / replications


@pytest.mark.parametrize("n", [25, 60, 400])
@pytest.mark.parametrize("kind", ["states", "numbers"])
def test_the_level_holds(n: int, kind: str) -> None:
    assert abs(levels(n, kind) - 0.05) < 0.005 + 3 * 0.0022  # the aim, and what 10,000 simulations leave open


@pytest.mark.parametrize("seed", range(3))
def test_many_tests_at_once_are_those_one_by_one(seed: int) -> None:
    data = scanned(table(seed, 70))
    problem = problem_of(data, None, None)
    rng = np.random.default_rng(seed)
    asked = np.array([rng.permutation(6)[:4] for _ in range(60)], np.int32)
    pairs, sets, owner = np.ascontiguousarray(asked[:, :2]), np.ascontiguousarray(asked[:, 2:]), np.arange(60, dtype=np.int32)
    test = sf.independence.LikelihoodRatio().bind({v.name: v for v in problem.variables})
    expected = GatheringJudge(problem, test).log_p(pairs, owner, sets, np.inf)
    assert MixedJudge(problem).log_p(pairs, owner, sets, np.inf) == pytest.approx(expected, rel=1e-7, abs=1e-9)
    every = problem_of(sf.gather(data, max_parents=4), None, None)
    assert MixedJudge(every).log_p(pairs, owner, sets, np.inf) == pytest.approx(expected, rel=1e-7, abs=1e-9)


def test_groups_far_from_each_other_keep_their_digits() -> None:
    rows = table(4, 300)
    far = dict(rows, v=rows["v"] + np.where(rows["d"] == "a", 0.0, 1e9))
    for x, names in (("x", ["d"]), ("w", ["d", "u"])):
        near, away = (sf.independence.independence_test(scanned(r), x, "v", names) for r in (rows, far))
        assert away.p_value == pytest.approx(near.p_value, rel=1e-4)
    log_p = []
    for r in (rows, far):
        problem = problem_of(scanned(r), None, None)
        x, v, d = (problem.number[n] for n in "xvd")
        asked = np.array([[x, v]], np.int32), np.zeros(1, np.int32), np.array([[d]], np.int32)
        log_p.append(MixedJudge(problem).log_p(*asked, np.inf)[0])
    assert log_p[1] == pytest.approx(log_p[0], rel=1e-4)


def truth(n: int, seed: int) -> dict[str, Any]:
    """a -> b; a -> u; b -> v; u -> v; v -> w; c alone."""
    rng = np.random.default_rng(seed)
    a = rng.random(n) < 0.5
    b = rng.random(n) < np.where(a, 0.8, 0.2)
    u = 1.5 * a + rng.normal(size=n)
    v = 1.0 * b + 0.8 * u + rng.normal(size=n)
    w = v + rng.normal(size=n)
    words = {n: np.where(x, "yes", "no") for n, x in (("a", a), ("b", b), ("c", rng.random(n) < 0.3))}
    return {**words, "u": u, "v": v, "w": w}


@pytest.mark.parametrize("method", [sf.PC(alpha=0.01), sf.methods.MMHC(alpha=0.01)])
@pytest.mark.filterwarnings("ignore:.*fixed by the kind of model")
def test_searches_by_tests_find_mixed_graphs(method: Any) -> None:
    rows = truth(4000, 1)
    edges = {frozenset(e) for e in sf.Dag("a -> b; a -> u; b -> v; u -> v; v -> w").edges}
    found = sf.search(rows, method=method)
    assert {frozenset(e) for e in (*found.cpdag.directed, *found.cpdag.undirected)} == edges
    every = sf.gather(rows, max_parents=5)
    assert sf.search(every, method=method).cpdag == found.cpdag


def test_where_nothing_can_be_said_p_is_one_and_what_is_sure_is_sure() -> None:
    one = {"x": np.array(list("abab")), "y": np.array([1.0, 2.0, 1.5, 2.5]), "z": np.array([1.0, 1.0, 1.0, 1.0])}
    assert sf.independence.independence_test(one, "x", "z").p_value == 1.0
    assert sf.independence.independence_test({k: v[:2] for k, v in one.items()}, "x", "y").p_value == 1.0
    sure = {"x": np.array(list("ab") * 20), "y": np.array([1.0, 2.0] * 20) + np.arange(40) * 1e-9, "u": np.arange(40.0)}
    assert sf.independence.independence_test(sure, "x", "y").p_value < 1e-12
    copied = {"d": np.array(list("ab") * 20), "u": np.arange(40.0), "v": 2.0 * np.arange(40.0)}
    assert sf.independence.independence_test(copied, "u", "v", ["d"]).p_value == 0.0


def test_refusals() -> None:
    rows = table(1, 40)
    with pytest.raises(FitError, match=r"GSquared tests finite variables.*LikelihoodRatio\(\) tests both"):
        sf.independence.independence_test(rows, "x", "v", test=sf.independence.GSquared())
    with pytest.raises(FitError, match="FisherZ tests numbers"):
        sf.search(rows, method=sf.PC(test=sf.independence.FisherZ()))
    with pytest.raises(FitError, match="derived from IndependenceTest"):
        sf.search(rows, method=sf.PC(test="g2"))


@pytest.mark.filterwarnings("ignore:.*fixed by the kind of model")
def test_words_of_the_command_line(run) -> None:
    import pandas as pd

    pd.DataFrame(truth(500, 2)).to_csv("rows.csv", index=False)
    for method in ("pc", "mmhc"):
        code, _, err = run("learn", "rows.csv", "--method", method, "--test", "likelihood-ratio")
        assert code == 0, err
    assert run("learn", "rows.csv", "--method", "pc")[0] == 0
    assert run("learn", "rows.csv", "--without", "u,v,w", "--method", "pc", "--test", "chi2")[0] == 0
    for words, said in ((["--test", "nobody"], "likelihood-ratio"), (["--test", "g2"], "tests finite variables")):
        code, _, err = run("learn", "rows.csv", "--method", "pc", *words)
        assert code == 1
        assert said in err
    assert "no option --test" in run("learn", "rows.csv", "--method", "ges", "--test", "g2")[2]
