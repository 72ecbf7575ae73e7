"""Statistics of every family with few parents: searches without rows find what searches of the rows find, bit for bit."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import DataError, FitError, StatisticsError, TooLarge
from suffice.families.gathering import GatheredSize


def finite_rows(n: int, seed: int, columns: int = 6) -> dict[str, Any]:
    """Columns of two or three states, each of which depends on the one before."""
    rng = np.random.default_rng(seed)
    rows, last = {}, rng.integers(0, 2, n)
    for i in range(columns):
        last = np.where(rng.random(n) < 0.3, rng.integers(0, 2 + i % 2, n), last)
        rows[f"v{i}"] = np.array(list("abc"))[last]
    return rows


def mixed_rows(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    rows = finite_rows(n, seed, 3)
    rows["x"] = (rows["v0"] == "a") * 2.0 + rng.normal(size=n)
    rows["y"] = 0.8 * rows["x"] + (rows["v1"] == "b") + rng.normal(size=n)
    rows["z"] = rng.normal(size=n) * np.where(rows["v2"] == "a", 1.0, 2.0)
    return rows


def parts(rows: dict[str, Any], at: int) -> list[dict[str, Any]]:
    return [{n: c[:at] for n, c in rows.items()}, {n: c[at:] for n, c in rows.items()}]


@pytest.mark.parametrize(
    "score", [sf.BIC(), sf.AIC(), sf.Evidence(sf.BDeu(1)), sf.Evidence(sf.K2()), sf.Evidence(sf.priors.BDs(1))]
)
@pytest.mark.parametrize("method", [sf.Orders(max_parents=2), sf.HillClimb(max_parents=2), sf.Exact(max_parents=2)])
def test_the_sum_of_two_sites_gives_the_graph_and_the_score_of_all_rows_bit_for_bit(score: Any, method: Any) -> None:
    rows = finite_rows(400, 1)
    here, there = (sf.gather(part, max_parents=2) for part in parts(rows, 150))
    found, of_rows = sf.search(here + there, score, method), sf.search(rows, score, method)
    assert (found.dag, found.score) == (of_rows.dag, of_rows.score)


def test_the_statistics_are_the_tables_of_all_small_sets() -> None:
    rows = finite_rows(100, 2, 4)
    s = sf.gather(rows, max_parents=1)
    assert {e.names for e in s} == {c for k in (1, 2) for c in combinations(sorted(rows), k)}
    for a, b in combinations(sorted(rows), 2):
        table = [[np.sum((rows[a] == u) & (rows[b] == v)) for v in s.variables[b].states] for u in s.variables[a].states]
        assert np.array_equal(s.counts([a, b]).values, table)


@pytest.mark.parametrize("method", [sf.Orders(max_parents=2), sf.HillClimb(max_parents=2)])
def test_finite_and_real_columns_together(method: Any) -> None:
    rows = mixed_rows(600, 3)
    here, there = (sf.gather(part, max_parents=2) for part in parts(rows, 250))
    assert (here + there).max_parents == 2
    found, of_rows = sf.search(here + there, method=method), sf.search(rows, method=method)
    assert found.dag == of_rows.dag
    assert found.score == pytest.approx(of_rows.score, rel=1e-12)
    assert len(found.dag.edges) >= 4


def test_numbers_alone_allow_any_number_of_parents() -> None:
    rng = np.random.default_rng(4)
    rows = {n: rng.normal(size=80) for n in "abcd"}
    rows["b"] = rows["a"] + rows["c"] + rows["d"] + 0.1 * rows["b"]
    s = sf.gather(rows, max_parents=1)
    assert s.max_parents == 3
    assert sf.search(s, method=sf.Exact()).dag == sf.search(rows, method=sf.Exact()).dag


def test_a_network_is_learned_and_fitted_without_rows(tmp_path: Path) -> None:
    rows = finite_rows(300, 5)
    sf.gather(rows, max_parents=2).save(tmp_path / "site.stats")
    s = sf.Statistics.load(tmp_path / "site.stats")
    assert s == sf.gather(rows, max_parents=2)
    bn, of_rows = sf.learn(s, method=sf.Orders(max_parents=2)), sf.learn(rows, method=sf.Orders(max_parents=2))
    assert bn.dag == of_rows.dag
    assert all(np.array_equal(bn[n].probs, of_rows[n].probs) for n in bn)


def test_a_search_without_a_number_keeps_to_what_was_gathered_and_says_so() -> None:
    s = sf.gather(finite_rows(200, 6), max_parents=1)
    with pytest.warns(sf.SufficeNote, match="at most 1 parent"):
        found = sf.search(s)
    assert max(len(found.dag.parents(n)) for n in found.dag.nodes) <= 1
    with pytest.warns(sf.SufficeNote, match="at most 1 parent"):
        sf.search(s, method=sf.HillClimb())


def test_more_parents_than_gathered_are_refused_with_both_numbers() -> None:
    s = sf.gather(finite_rows(200, 6), max_parents=1)
    with pytest.raises(FitError, match=r"for up to 1 parents.*asks for up to 3"):
        sf.search(s, method=sf.Orders(max_parents=3))
    with pytest.raises(FitError, match=r"for up to 1 parents.*asks for up to 2"):
        sf.search(s, method=sf.HillClimb(max_parents=2))
    with pytest.raises(FitError, match=r"for up to 1 parents.*asks for up to 4"):
        sf.search(s, constraints=sf.constraints.MaxParents(4), method=sf.Orders(max_parents=4))
    with pytest.raises(StatisticsError, match="only of any 2 variables"):
        sf.search(s, method=sf.PC())
    assert (
        sf.search(s, method=sf.PC(max_condition=0)).cpdag == sf.search(finite_rows(200, 6), method=sf.PC(max_condition=0)).cpdag
    )


def test_states_that_differ_between_sites_are_refused_by_name() -> None:
    declared = [sf.scan({"x": ["a", "b"] * 9, "y": list("uv") * 9}, variables={"x": s}) for s in (["a", "b"], ["a", "b", "c"])]
    here, there = (sf.gather(d, max_parents=1) for d in declared)
    with pytest.raises(StatisticsError, match=r"states of variable 'x' differ.*'c'"):
        here + there


def test_sizes_are_told_and_refused_before_memory_is_taken() -> None:
    rows = {f"v{i:03d}": ["a", "b"] * 5 for i in range(200)}
    data = sf.scan(rows)
    size = sf.gather(data, max_parents=2, dry_run=True)
    assert (size.entries, size.numbers) == (200 + 19_900 + 1_313_400, 400 + 4 * 19_900 + 8 * 1_313_400)
    assert "1,333,500" in repr(size)
    with pytest.raises(TooLarge, match=r"with up to 20 parents would be .* numbers.*memory_limit"):
        sf.gather(data, max_parents=20)
    with pytest.raises(TooLarge, match=r"may take 1\.0 MiB"):
        sf.gather(data, max_parents=1, memory_limit="1MiB")


def test_the_size_foretold_is_the_size_where_every_configuration_occurs() -> None:
    data = sf.scan(mixed_rows(300, 7))
    s = sf.gather(data, max_parents=2)
    size = GatheredSize.of(dict(data.schema), 2)
    tables = sum(e.values.size for e in s if isinstance(e, sf.statistics.Counts))
    moments = sum(e.count.size * (3 + 2 * 3 + 9) for e in s if isinstance(e, sf.statistics.Moments))
    assert len(s) == size.entries
    missing = 18 * sum(
        np.prod([v.n_states for v in e.variables]) - e.count.size for e in s if isinstance(e, sf.statistics.Moments)
    )
    assert tables + moments + missing == size.numbers


def test_what_cannot_be_gathered_is_refused() -> None:
    with pytest.raises(FitError, match="directed graph"):
        sf.gather({"x": ["a"], "y": ["u"]}, "x -- y", max_parents=1)
    with pytest.raises(FitError, match="say for which graph"):
        sf.gather({"x": ["a"]})
    with pytest.raises(DataError, match="sequences"):
        sf.gather(sf.sequences({"x": ["a", "b"]}), max_parents=1)
    with pytest.raises(DataError, match="missing"):
        sf.gather({"x": ["a", None, "b"], "y": ["u", "v", "u"]}, max_parents=1)
    with pytest.raises(sf.SufficeError, match="max_parents"):
        sf.gather({"x": ["a"]}, max_parents=-1)


def test_statistics_of_a_graph_say_of_how_many_parents_they_know() -> None:
    rows = finite_rows(60, 8, 3)
    assert sf.gather(rows, "v0 -> v1; v2").max_parents is None
    assert sf.gather(rows, "v0; v1; v2").max_parents == 0
    assert sf.gather(rows, "v0 -> v1; v0 -> v2; v1 -> v2").max_parents == 2


@pytest.mark.parametrize("rows", [finite_rows(50, 9, 3), mixed_rows(80, 10)])
def test_decay_is_what_rows_of_less_weight_give(rows: dict[str, Any]) -> None:
    s = sf.gather(rows, max_parents=1)
    n = len(next(iter(rows.values())))
    light = sf.gather(sf.scan({**rows, "w": np.full(n, 0.25)}, weights="w"), max_parents=1)
    faded = s.decay(0.5, steps=2)
    assert faded.weight == light.weight == 0.25 * n
    for entry in light:
        mine = faded.answer(entry.request)
        if isinstance(entry, sf.statistics.Counts) and isinstance(mine, sf.statistics.Counts):
            assert np.allclose(mine.values, entry.values, rtol=1e-14)
        elif isinstance(entry, sf.statistics.Moments) and isinstance(mine, sf.statistics.Moments):
            assert np.allclose(mine.count, entry.count)
            assert np.allclose(mine.mean, entry.mean)
            assert np.allclose(mine.scatter, entry.scatter, rtol=1e-12)
    assert s.decay(1.0) == s
    if "x" not in rows:
        found, of_rows = sf.search(faded), sf.search(sf.scan({**rows, "w": np.full(n, 0.25)}, weights="w"))
        assert found.dag == of_rows.dag
        assert found.score == pytest.approx(of_rows.score)


def test_a_network_follows_data_that_drift() -> None:
    rng = np.random.default_rng(11)
    first, later = ({"x": np.where(rng.random(1000) < p, "a", "b")} for p in (0.9, 0.1))
    kept = fading = sf.fit("x", first, prior=sf.BDeu(1))
    for _ in range(5):
        kept, fading = kept.update(later), fading.update(later, decay=0.5)
    assert kept["x"].probs[0] > 0.2
    assert fading["x"].probs[0] == pytest.approx(0.1, abs=0.03)
    weights = np.concatenate([np.full(1000, 0.5**k) for k in (5, 4, 3, 2, 1, 0)])
    column = np.concatenate([first["x"], *[later["x"]] * 5])
    whole = sf.fit("x", sf.scan({"x": column, "w": weights}, weights="w"), prior=sf.BDeu(1))
    assert np.allclose(fading["x"].probs, whole["x"].probs, rtol=1e-12)


@pytest.mark.parametrize("factor", [0, 1.5, -0.1, float("nan"), "much", True])
def test_a_decay_that_is_none_is_refused(factor: Any) -> None:
    with pytest.raises(StatisticsError, match="decay is the share"):
        sf.gather({"x": ["a", "b"]}, "x").decay(factor)


def test_a_chain_takes_decay_too() -> None:
    steps = sf.sequences({"x": list("aababbab") * 10})
    chain = sf.fit("x[-1] -> x", steps)
    both = chain.update(steps, decay=0.5)
    assert both.statistics.weight == 1.5 * chain.statistics.weight
    assert np.allclose(both["x"].probs, chain["x"].probs)
