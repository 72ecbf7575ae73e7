"""Recipes on top of search: learn, bootstrap, cross-validation; and the resampling of rows underneath."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.basis.iteration import Progress
from suffice.engines import scan
from suffice.errors import DataError, FitError, GraphError, SufficeNote, TooLarge
from suffice.families.gathering import gather
from suffice.graphs import Cpdag, Dag
from suffice.recipes import resampling
from suffice.recipes.cross_validation import cross_validate
from suffice.recipes.learn import learn
from suffice.recipes.resampling import Bootstrap, _threshold, bootstrap
from suffice.structure.constraints import Require
from suffice.structure.methods.hill_climb import HillClimb
from suffice.structure.problem import Outcome, Problem
from suffice.structure.search import search


def sprinkler(n: int = 300, seed: int = 0) -> dict[str, list[str]]:
    """rain -> wet <- sprinkler, and a fair coin."""
    rng = np.random.default_rng(seed)
    rain, sprinkler = rng.random(n) < 0.4, rng.random(n) < 0.5
    wet = rng.random(n) < np.where(rain | sprinkler, 0.95, 0.05)
    columns = {"rain": rain, "sprinkler": sprinkler, "wet": wet, "coin": rng.random(n) < 0.5}
    return {name: ["yes" if x else "no" for x in column] for name, column in columns.items()}


@dataclass(frozen=True)
class Scripted:
    """A method that says what it was told to, call after call."""

    say: Callable[[int], Any]
    calls: list[int]

    def run(self, problem: Problem) -> Outcome:
        self.calls.append(len(self.calls))
        return Outcome(self.say(self.calls[-1]), None)


def edges(*pairs: tuple[int, int], n: int = 4) -> list[tuple[int, ...]]:
    return [tuple(sorted(p for p, c in pairs if c == child)) for child in range(n)]


def test_rows_of_a_sample_keep_order_states_and_missing_cells() -> None:
    data = scan({"x": ["a", "b", None, "c"], "y": [1.0, None, 3.0, 4.0]}, weights=[1, 2, 3, 4])
    rows = data.sample(10).take([2, 0, 0])
    few = data.of_rows(rows)
    assert few.schema["x"] == data.schema["x"]
    assert dict(few.missing) == {"x": 1, "y": 0}
    np.testing.assert_array_equal(few.sample(10).columns["x"], [255, 0, 0])
    np.testing.assert_array_equal(few.sample(10).columns["y"], [3.0, 1.0, 1.0])
    assert few.weight == 5.0


def test_rows_of_a_sample_can_be_declared_anew() -> None:
    data = scan({"x": ["a", "b", None], "y": [1.0, 2.0, 2.0]}, weights=[1.0, 0.5, 0.5])
    again = data.of_rows(data.sample(10).take([2, 1, 0])).with_variables({"x": ["b", "a", "z"], "y": sf.Finite})
    np.testing.assert_array_equal(again.sample(10).columns["x"], [255, 0, 1])
    assert again.schema["y"].states == ("1", "2")
    assert again.weight == 2.0


def test_a_sample_is_without_replacement_and_by_its_seed() -> None:
    data = scan({"x": np.arange(100_000.0)})
    few = data.sample(1000, 1).columns["x"]
    assert len(set(few.tolist())) == 1000
    assert (np.diff(few) > 0).all()
    np.testing.assert_array_equal(few, data.sample(1000, 1).columns["x"])
    assert (few != data.sample(1000, 2).columns["x"]).any()
    assert abs(few.mean() - 50_000) < 5 * 100_000 / np.sqrt(12 * 1000)


def test_views_of_files_larger_than_memory_are_those_of_memory(tmp_path: Any) -> None:
    table = pa.table({**sprinkler(500), "z": np.arange(500.0)})
    pyarrow.csv.write_csv(table, tmp_path / "rows.csv")
    spilled, held = scan(tmp_path / "rows.csv", memory_limit="6KiB"), scan(table)
    a, b = spilled.resample(3), held.resample(3)
    for x, y in ((a, b), (a.hold(), b.hold()), (a, b.hold())):
        assert x.known.missing == y.known.missing
        for name in held.columns:
            np.testing.assert_array_equal(x.sample(10**6).columns[name], y.sample(10**6).columns[name])
    for one, other in zip(spilled.split(3, 0), held.split(3, 0), strict=True):
        for x, y in zip(one, other, strict=True):
            np.testing.assert_array_equal(x.sample(10**6).columns["z"], y.hold().sample(10**6).columns["z"])


def test_gathered_statistics_of_a_view_are_those_of_its_rows() -> None:
    rows = pa.table({**sprinkler(100), "i": np.arange(100.0)})
    view = scan(rows).resample(0)
    index = view.take(["i"]).sample(10**6).columns["i"].astype(int)
    mine, theirs = (gather(d, "rain -> wet; coin") for d in (view, scan(rows.take(index))))
    np.testing.assert_array_equal(mine.counts(["rain", "wet"]).values, theirs.counts(["rain", "wet"]).values)
    assert len(index) == 100


def test_identifiers_are_judged_once() -> None:
    data = scan({"x": [str(i % 85) for i in range(100)]}, {"x": sf.Finite})
    assert not data.identifiers
    assert not data.resample(0).identifiers


@settings(max_examples=50)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=8).filter(any), st.integers(2, 4), st.integers(0, 99))
def test_counts_are_dealt_out_and_drawn_one_by_one(numbers: list[int], folds: int, seed: int) -> None:
    data = scan({"i": np.arange(float(len(numbers)))}, weights=numbers)
    assert data.whole_weights
    assert data.resample(seed).weight == sum(numbers)
    dealt, sizes = np.zeros(len(numbers)), []
    for outside, inside in data.split(folds, seed):
        weights = [weights_of(part, len(numbers)) for part in (outside, inside)]
        np.testing.assert_array_equal(weights[0] + weights[1], numbers)
        dealt += weights[1]
        sizes.append(weights[1].sum())
    np.testing.assert_array_equal(dealt, numbers)
    assert max(sizes) - min(sizes) <= 1


def weights_of(data: Any, n: int) -> Any:
    """The weight of each of n numbered rows in a view; it may have none of them."""
    try:
        rows = data.sample(10**6)
    except DataError:
        return np.zeros(n)
    return np.bincount(rows.columns["i"].astype(int), rows.weights, n)


@settings(max_examples=50)
@given(st.integers(2, 30), st.integers(2, 5), st.integers(0, 99))
def test_folds_part_the_rows(n: int, folds: int, seed: int) -> None:
    if folds > n:
        return
    parts = [inside.sample(100).columns["i"] for _, inside in scan({"i": np.arange(float(n))}).split(folds, seed)]
    assert sorted(np.concatenate(parts)) == list(range(n))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_folds_of_many_blocks_part_the_rows_evenly() -> None:
    parts = [inside.known.n_rows for _, inside in scan({"i": np.arange(50_000.0)}).split(7, 0)]
    assert sum(parts) == 50_000
    assert max(parts) - min(parts) <= 1


def test_very_large_counts_are_dealt_out_too() -> None:
    data = scan({"i": [0.0, 1.0]}, weights=[3e12, 1e12])
    inside = [weights_of(part, 2) for _, part in data.split(4, 0)]
    np.testing.assert_allclose(np.sum(inside, axis=0), [3e12, 1e12])
    np.testing.assert_allclose(inside[0], [7.5e11, 2.5e11], rtol=1e-4)


def test_learn_finds_graph_and_parameters() -> None:
    rows = sprinkler()
    bn = learn(rows)
    assert bn.dag == search(rows).dag == Dag("rain -> wet <- sprinkler; coin")
    assert bn == sf.fit(bn.dag, rows, prior=sf.BDeu(1))
    assert bn.prior == sf.BDeu(1)
    assert "graph by Orders, BIC()" in bn.fit_info
    assert learn(rows, prior=None) == sf.fit(bn.dag, rows)
    assert bn.update(rows).n_parameters == bn.n_parameters


def test_learn_with_numbers_and_both() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    numbers = {"x": x, "y": x + 0.5 * rng.normal(size=200)}
    bn = learn(numbers)
    assert len(bn.dag.edges) == 1
    assert bn[bn.dag.edges[0][1]].interval() is not None
    mixed = learn({**numbers, "g": np.where(x > 0, "high", "low")})
    assert all(mixed[n].interval() is not None for n in mixed)
    assert not mixed.dag.parents("g")


def test_learn_leaves_identifiers_out() -> None:
    rows = {**sprinkler(100), "id": [f"r{i}" for i in range(100)]}
    with pytest.warns(SufficeNote, match="left out of the search"):
        assert "id" not in learn(rows)


def test_learn_from_statistics_and_under_constraints() -> None:
    rows = {n: c for n, c in sprinkler().items() if n in ("rain", "wet")}
    both = gather(rows, "rain -> wet")
    assert learn(both, method=HillClimb()).dag == learn(rows, method=HillClimb()).dag
    assert ("wet", "rain") in learn(rows, constraints=Require(("wet", "rain"))).dag.edges


def test_bootstrap_finds_what_is_there() -> None:
    sure = bootstrap(sprinkler(), n=20)
    assert sure.strength("rain", "wet") == sure.strength("wet", "rain") == 1.0
    assert sure.direction("rain", "wet") == 1.0
    assert sure.strength("coin", "rain") < 0.5
    assert sure.averaged() == Dag("rain -> wet <- sprinkler; coin")
    assert list(sure.to_frame().columns) == ["a", "b", "strength", "direction"]
    assert "sprinkler" in repr(sure)
    assert "<table>" in sure._repr_html_()
    assert sure.to_dict()["averaged"] == [["rain", "wet"], ["sprinkler", "wet"]]


def test_bootstrap_does_not_depend_on_columns_threads_or_chance() -> None:
    rows = sprinkler(80)
    first = bootstrap(rows, n=6, seed=3)
    turned = dict(reversed(rows.items()))
    for other in (bootstrap(rows, n=6, seed=3), bootstrap(turned, n=6, seed=3), bootstrap(rows, n=6, seed=3, threads=1)):
        np.testing.assert_array_equal(first.counts, other.counts)
    assert (bootstrap(rows, n=6, seed=4).counts != first.counts).any()


def test_a_table_of_counts_is_resampled_as_its_rows() -> None:
    rows = pa.table(sprinkler(400))
    table = rows.group_by(rows.column_names).aggregate([([], "count_all")])
    whole = bootstrap(scan(table, weights="count_all"), n=10)
    np.testing.assert_allclose(whole.strength("rain", "wet"), 1.0)
    assert whole.averaged() == Dag("rain -> wet <- sprinkler; coin")


def test_an_edge_without_direction_counts_half_each_way() -> None:
    said = [edges((0, 1)), edges((0, 2), (1, 2)), edges((1, 0))]
    sure = bootstrap(sprinkler(60), method=Scripted(lambda k: said[k % 3], []), n=3)
    coin, rain, wet = sure.names[0], sure.names[1], sure.names[2]
    assert sure.strength(coin, rain) == 2 / 3
    assert sure.direction(coin, rain) == 0.5
    assert sure.direction(coin, wet) == 1.0
    assert np.isnan(sure.direction(wet, rain)) or sure.strength(wet, rain) > 0


def test_constraints_direct_edges() -> None:
    sure = bootstrap(sprinkler(60), n=3, constraints=Require(("rain", "coin")))
    assert sure.strength("rain", "coin") == sure.direction("rain", "coin") == 1.0


def interrupted(k: int) -> list[tuple[int, ...]]:
    if k == 2:
        raise KeyboardInterrupt
    return edges((0, 1))


def test_ctrl_c_keeps_the_replicates_done() -> None:
    with pytest.warns(SufficeNote, match="stopped after 2 of 9"):
        sure = bootstrap(sprinkler(60), method=Scripted(interrupted, []), n=9)
    assert (sure.n_done, sure.n) == (2, 9)
    assert sure.strength("coin", "rain") == 1.0
    assert "2 replicates of 9, then stopped" in repr(sure)


def test_one_replicate_makes_no_edge_significant() -> None:
    with pytest.warns(SufficeNote, match="stopped after 1 of 9"):
        stopped = bootstrap(sprinkler(60), method=Scripted(lambda k: interrupted(k + 1), []), n=9)
    for sure in (stopped, bootstrap(sprinkler(60), n=1)):
        assert "are significant" not in repr(sure)
        assert "one replicate does not say whether an edge is significant" in repr(sure)
    assert "1 replicate of 9, then stopped" in repr(stopped)


def test_a_time_limit_keeps_the_replicates_done() -> None:
    def slow(k: int) -> list[tuple[int, ...]]:
        time.sleep(0.05)
        return edges((0, 1))

    with pytest.warns(SufficeNote, match="stopped after"):
        sure = bootstrap(sprinkler(60), method=Scripted(slow, []), n=100, time_limit=0.3)
    assert 0 < sure.n_done < 100
    with pytest.raises(FitError, match="before its first replicate"):
        bootstrap(sprinkler(60), n=1, time_limit=1e-9)


def test_a_replicate_has_the_time_that_holding_its_rows_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    known, held, left = sf.Data.hold, list[sf.Data](), list[tuple[float, int]]()

    def counted(rows: sf.Data) -> sf.Data:
        held.append(rows)
        return known(rows)

    def told(*given: Any, time_limit: float, **asked: Any) -> Any:
        left.append((time_limit, len(held)))
        return search(*given, **asked)

    monkeypatch.setattr(sf.Data, "hold", counted)
    monkeypatch.setattr(resampling, "search", told)
    monkeypatch.setattr(Progress, "seconds", property(lambda clock: float(len(held))))  # a second each time
    bootstrap(sprinkler(60), method=Scripted(lambda k: edges((0, 1)), []), n=2, time_limit=100.0)
    assert [limit + n for limit, n in left] == [100.0, 100.0]


def test_bootstrap_of_complete_rows_needs_no_em() -> None:
    code = (
        "import sys, suffice as sf; sf.bootstrap({'a': list('xyxy'), 'b': list('xyyy')}, n=1); "
        "print([m for m in sys.modules if m.startswith(('suffice.learning', 'suffice.recipes.structural'))])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.filterwarnings("ignore::suffice.errors.SufficeNote")
def test_bootstrap_of_rows_with_missing_cells() -> None:
    """Structural EM in each replicate: nothing is dropped, and directions that constraints fix stay fixed."""
    rows = {n: np.array(c, object) for n, c in sprinkler(300).items()}
    full = bootstrap({n: c.copy() for n, c in rows.items()}, n=4)
    for k, column in enumerate(rows.values()):
        column[k::17] = None
    sure = bootstrap(rows, n=4)
    assert sure.averaged().cpdag() == full.averaged().cpdag()
    assert sure.names == full.names
    fixed = bootstrap(rows, n=2, constraints=Require(("wet", "rain")))
    assert fixed.direction("wet", "rain") == 1.0
    again = bootstrap(rows, n=4, threads=1)
    assert (again.counts == sure.counts).all()
    with pytest.warns(SufficeNote, match="each of 2 replicates is a structural EM; the first took"):
        bootstrap(rows, n=2)


def test_bootstrap_refuses() -> None:
    with pytest.raises(FitError, match="whole number of at least 1"):
        bootstrap(sprinkler(20), n=0)
    with pytest.raises(DataError, match="statistics have none"):
        bootstrap(gather(sprinkler(20), "rain"))
    with pytest.raises(FitError, match="a method is an object"):
        bootstrap(sprinkler(20), method=HillClimb)
    with pytest.raises(TooLarge, match=r"the rows of structural EM would take about .* of memory, and may take 8 B"):
        bootstrap({"x": ["a", None] * 20, "y": ["u", "v"] * 20}, memory_limit=8)
    sure = bootstrap(sprinkler(30), n=1)
    with pytest.raises(GraphError, match="did you mean 'rain'"):
        sure.strength("rainy", "wet")
    with pytest.raises(FitError, match="between 0 and 1"):
        sure.averaged(2.0)


@settings(max_examples=200)
@given(st.lists(st.integers(0, 10), min_size=1, max_size=12))
@example([0, 1, 9, 10])
@example([1, 4])
def test_the_threshold_minimises_the_area(tenths: list[int]) -> None:
    """Against the definition: the t on a fine grid that minimises ∫ |F(x) − t| dx."""
    strengths = np.array(tenths) / 10
    x = (np.arange(1000) + 0.5) / 1000
    below = (strengths[:, None] <= x).mean(axis=0)
    areas = {t: np.abs(below - t).mean() for t in np.unique(np.concatenate([below, [0.0, 1.0]]))}
    kept = strengths >= _threshold(strengths)
    t = 1.0 - kept.mean() if len(strengths) else 1.0
    assert np.abs(below - t).mean() <= min(areas.values()) + 1e-9


def boot(names: str, *found: tuple[str, str, float]) -> Bootstrap:
    matrix = np.zeros((len(names), len(names)))
    for a, b, n in found:
        matrix[names.index(a), names.index(b)] = n
    return Bootstrap(tuple(names), matrix, 10, 10, 0.0)


def test_averaged_leaves_the_weakest_edge_of_a_cycle_out() -> None:
    assert boot("abc", ("a", "b", 10), ("b", "c", 9), ("c", "a", 8)).averaged() == Dag("a -> b -> c")
    assert boot("abc", ("a", "b", 10), ("b", "c", 9), ("c", "a", 8)).averaged(0.95) == Dag("a -> b; c")


def test_averaged_makes_no_collider_of_undirected_edges() -> None:
    chain = boot("abc", ("a", "c", 5), ("c", "a", 5), ("b", "c", 5), ("c", "b", 5))
    assert chain.averaged().cpdag() == Cpdag([], [("a", "c"), ("b", "c")])
    square = boot("abcd", *((x, y, 5.0) for a, b in ("ab", "bc", "cd", "da") for x, y in ((a, b), (b, a))))
    assert len(square.averaged().edges) == 4  # no member without a collider: directed all the same


def test_cross_validation_of_a_graph_is_what_it_says() -> None:
    rows = scan(sprinkler(50))
    result = cross_validate(rows, method="rain -> wet", folds=5, seed=1)
    parts = [
        (sf.fit("rain -> wet", train, prior=sf.BDeu(1)).log_prob(test).sum(), test.n_rows)
        for train, test in rows.take(["rain", "wet"]).split(5, 1)
    ]
    np.testing.assert_allclose([f.log_likelihood for f in result.folds], [p[0] for p in parts])
    np.testing.assert_allclose(result.mean, sum(p[0] for p in parts) / 50)
    np.testing.assert_allclose(result.error, np.std([p[0] / p[1] for p in parts], ddof=1) / np.sqrt(5))
    assert "± " in repr(result)
    assert len(result.to_frame()) == 5
    assert "<table>" in result._repr_html_()


def test_cross_validation_prefers_the_truth() -> None:
    rows = sprinkler(400)
    learned, empty = (
        cross_validate(rows, folds=4, seed=1),
        cross_validate(rows, method=Dag((), nodes=list(rows)), folds=4, seed=1),
    )
    assert learned.mean > empty.mean + 0.1
    assert [f.n_edges for f in learned.folds] == [2] * 4
    assert cross_validate(rows, folds=4, seed=1, threads=1).mean == learned.mean
    turned = cross_validate(dict(reversed(rows.items())), folds=4, seed=1)
    np.testing.assert_allclose(turned.mean, learned.mean)


def test_impossible_rows_are_minus_infinity() -> None:
    rows = {"x": ["a"] * 9 + ["b"]}
    never = cross_validate(rows, method="x", folds=2, prior=None)
    assert never.mean == -np.inf
    assert np.isnan(never.error)
    assert "impossible" in repr(never)
    assert np.isfinite(cross_validate(rows, method="x", folds=2).mean)


def test_cross_validation_of_rows_with_missing_cells() -> None:
    """A row counts as far as it was observed: with almost nothing missing, almost as without."""
    rows = {n: np.array(c, object) for n, c in sprinkler(300).items()}
    full = cross_validate({n: c.copy() for n, c in rows.items()}, folds=3, seed=1)
    rows["wet"][5] = rows["rain"][7] = None
    with pytest.warns(SufficeNote, match="in each fold parameters are learned by EM") as notes:
        learned = cross_validate(rows, folds=3, seed=1)
    assert sum("by EM" in str(note.message) for note in notes) == 1  # where kernels are compiled, another note says so
    assert learned.mean == pytest.approx(full.mean, rel=0.02)
    with pytest.warns(SufficeNote, match="learned by EM"):
        empty = cross_validate(rows, method=Dag((), nodes=list(rows)), folds=3, seed=1)
    assert learned.mean > empty.mean
    with pytest.warns(SufficeNote), pytest.raises(TooLarge, match=r"of memory, and may take 8 B"):
        cross_validate(rows, folds=3, memory_limit=8)


def test_cross_validation_with_weights() -> None:
    table = scan({"x": ["a", "b"]}, weights=[30, 10])
    result = cross_validate(table, method="x", folds=4)
    assert [f.weight for f in result.folds] == [10.0] * 4
    halves = scan({"x": ["a", "b", "a", "b"]}, weights=[0.5, 1.5, 0.5, 0.5])
    assert cross_validate(halves, method="x", folds=2).folds[0].weight in (1.0, 2.0)


def test_cross_validation_refuses() -> None:
    rows = sprinkler(20)
    for folds, message in ((1, "at least 2"), (21, "21 folds need at least as many rows, and there are 20"), ("ten", "whole")):
        with pytest.raises(FitError, match=message):
            cross_validate(rows, folds=folds)  # type: ignore[arg-type]
    with pytest.raises(DataError, match="no column 'snow'"):
        cross_validate(rows, method="snow -> wet")
    with pytest.raises(FitError, match="the graph is given"):
        cross_validate(rows, method="rain -> wet", score=sf.BIC())
    with pytest.raises(DataError, match="statistics have none"):
        cross_validate(gather(rows, "rain"))
    with pytest.raises(FitError, match="a method is an object"):
        cross_validate(rows, method=HillClimb)


def test_ctrl_c_keeps_the_folds_done() -> None:
    with pytest.warns(SufficeNote, match="stopped after 2 of 5"):
        result = cross_validate(sprinkler(50), method=Scripted(interrupted, []), folds=5)
    assert len(result.folds) == 2
    assert "2 folds of 5, then stopped" in repr(result)
    with pytest.raises(KeyboardInterrupt):
        cross_validate(sprinkler(50), method=Scripted(lambda k: interrupted(2), []), folds=5)


def test_one_fold_has_no_standard_error() -> None:
    with pytest.warns(SufficeNote, match="stopped after 1 of 5"):
        result = cross_validate(sprinkler(50), method=Scripted(lambda k: interrupted(k + 1), []), folds=5)
    assert result.mean == result.folds[0].per_row
    assert np.isnan(result.error)
    assert "nan" not in repr(result)
    assert "no standard error; 1 fold of 5, then stopped" in repr(result)


def test_a_replicate_that_cannot_be_searched_is_named() -> None:
    rows = sf.scan({"a": [0.0] * 49 + [1.0], "b": np.random.default_rng(0).normal(size=50)}, integers=sf.Real)
    with pytest.raises(sf.SufficeError, match=r"replicate .* of the bootstrap"):
        sf.bootstrap(rows, n=20)
    with pytest.raises(sf.SufficeError, match=r"fold .* of 5"):
        sf.cross_validate(rows, folds=5)
