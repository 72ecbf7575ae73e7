"""Search as a user calls it: odd data, limits, budgets, larger-than-memory files."""

from __future__ import annotations

import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice as sf
from suffice.structure.methods import orders
from suffice.structure.problem import Outcome

METHODS: list[Any] = [
    sf.Orders(),
    sf.HillClimb(),
    sf.methods.Tabu(),
    sf.methods.GES(),
    sf.Exact(),
    sf.methods.ChowLiu(),
    sf.PC(),
    sf.methods.MMHC(),
]
ids = [type(m).__name__ for m in METHODS]


@pytest.mark.parametrize("method", METHODS, ids=ids)
def test_one_column(method):
    found = sf.search({"x": ["a", "b", "a"]}, method=method)
    assert found.dag == sf.Dag("x")
    assert "x" in repr(found) or "0 edges" in repr(found)


@pytest.mark.parametrize("method", METHODS, ids=ids)
def test_constant_and_copied_columns(method):
    x = ["a", "b", "b", "a", "c"] * 10
    found = sf.search({"x": x, "same": ["k"] * 50, "copy": x, "other": ["p", "q"] * 25}, method=method)
    assert found.cpdag.skeleton().edges == (("copy", "x"),)


@pytest.mark.parametrize("method", METHODS, ids=ids)
def test_more_states_than_rows_and_fewer_rows_than_variables(method):
    rng = np.random.default_rng(0)
    columns = {f"v{i}": [f"s{k}" for k in rng.integers(2, size=6)] for i in range(12)}
    many = sf.Finite("many", [f"s{k}" for k in range(40)])
    columns["many"] = ["s1", "s2", "s3", "s1", "s2", "s3"]
    found = sf.search(sf.scan(columns, variables={"many": many}), method=method)
    assert set(found.dag.nodes) == set(columns)


@pytest.mark.parametrize("method", [m for m in METHODS if hasattr(m, "max_parents")], ids=repr)
def test_no_parents_at_all(method):
    x = ["a", "b", "b", "a"] * 10
    found = sf.search({"x": x, "y": x}, method=type(method)(max_parents=0))
    assert found.dag.edges == ()


@pytest.mark.parametrize("method", METHODS, ids=ids)
def test_names_with_spaces_commas_and_arrows(method):
    x = ["a", "b", "b", "a", "a"] * 10
    names = ["a b", "a, b", "a -> b", "β; |"]
    found = sf.search({n: x if i % 2 else list("uuvvv") * 10 for i, n in enumerate(names)}, method=method)
    assert set(found.dag.nodes) == set(names)
    assert sf.Dag(str(found.dag)) == found.dag
    repr(found)


@pytest.mark.parametrize("method", METHODS, ids=ids)
def test_missing_cells_are_refused_with_their_number(method):
    with pytest.raises(sf.SufficeError, match=r"'x' 1, of 3 rows.*structural_em"):
        sf.search({"x": ["a", None, "b"], "y": ["a", "b", "b"]}, method=method)


def test_an_identifier_is_left_out_with_a_note():
    rows = {"id": [f"row {i}" for i in range(60)], "x": ["a", "b"] * 30, "y": ["a", "b"] * 30}
    with pytest.warns(sf.SufficeNote, match="'id'"):
        found = sf.search(rows)
    assert set(found.dag.nodes) == {"x", "y"}


def test_what_is_no_method_score_or_constraint():
    rows = {"x": ["a", "b"], "y": ["a", "b"]}
    for wrong in ({"method": sf.Orders}, {"score": "bic"}, {"score": sf.BIC}, {"constraints": [("x", "y")]}, {"seed": -1}):
        with pytest.raises(sf.SufficeError):
            sf.search(rows, **wrong)
    for limit in (0, -1, "soon"):
        with pytest.raises(sf.SufficeError, match="time_limit"):
            sf.search(rows, time_limit=limit)
    with pytest.raises(sf.SufficeError, match="no rows"):
        sf.search(sf.scan({"x": []}, variables={"x": sf.Finite("x", ["a"])}))


def test_required_parents_beyond_the_maximum():
    rows = {n: ["a", "b"] * 10 for n in "vwxyz"}
    with pytest.raises(sf.SufficeError, match=r"4 parents of 'z'.*max_parents"):
        sf.search(rows, constraints=sf.Require(("v", "z"), ("w", "z"), ("x", "z"), ("y", "z")))


def test_a_real_column_is_no_parent_of_a_finite_one():
    rng = np.random.default_rng(1)
    g = rng.integers(2, size=300)
    found = sf.search({"group": np.array(["u", "v"])[g], "size": g + 0.1 * rng.standard_normal(300)})
    assert found.dag == sf.Dag("group -> size")
    assert found.cpdag.directed == (("group", "size"),)


def test_statistics_instead_of_rows():
    rng = np.random.default_rng(2)
    a = rng.standard_normal(200)
    rows = {"a": a, "b": a + 0.5 * rng.standard_normal(200), "c": rng.standard_normal(200)}
    statistics = sf.scan(rows).gather([sf.statistics.Request((), ("a", "b", "c"))])
    assert sf.search(statistics).dag == sf.search(rows).dag


def test_a_plan_foretells_the_cost():
    rows = sf.load("asia").sample(1000, seed=0)
    plan = sf.search(rows, dry_run=True)
    assert plan.families == 8 * (1 + 7 + 21 + 35)
    with pytest.raises(sf.SufficeError, match="memory"):
        sf.search(rows, method=sf.Exact(max_parents=7), memory_limit=1000)


class Slow:
    """A method that finds something and then goes on for ever."""

    def run(self, problem: Any) -> Outcome:
        problem.progress.better("start", problem.scores.total([()] * problem.n), [()] * problem.n)
        while True:
            time.sleep(0.01)
            problem.progress.check()


def test_the_best_so_far_when_time_is_over():
    found = sf.search({"x": ["a", "b"], "y": ["a", "b"]}, method=Slow(), time_limit=0.05)
    assert not found.finished
    assert "stopped" in repr(found)
    assert found.dag.edges == ()


def test_a_search_that_was_stopped_tells_what_compiling_took_of_its_time(monkeypatch) -> None:
    rows = {"x": ["a", "b"], "y": ["a", "b"]}
    for seconds, n_told in ((0.0, 0), (2.0, 1)):
        total = iter([1.0, 1.0 + seconds])
        monkeypatch.setattr(sys.modules[sf.search.__module__], "compiling_seconds", lambda total=total: next(total))
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", sf.SufficeNote)
            sf.search(rows, method=Slow(), time_limit=0.05)
        of_compiling = [str(w.message) for w in told if "compiling" in str(w.message)]
        assert of_compiling == ["compiling kernels took 2.0 s of this search, once; `suffice warm` compiles all ahead"][:n_told]


def test_the_best_so_far_on_ctrl_c(monkeypatch):
    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(orders, "best_of_all", interrupted)
    found = sf.search({"x": ["a", "b"] * 20, "y": ["a", "b"] * 20})
    assert not found.finished
    assert found.dag.edges == ()


def test_many_variables_take_candidates_first(monkeypatch):
    monkeypatch.setattr(orders.Orders, "most_sets", 200)
    rows = sf.load("alarm").sample(800, seed=1)
    climbed = sf.search(rows, method=sf.HillClimb(max_parents=3))
    found = sf.search(rows)
    assert found.score >= climbed.score - 1e-6
    assert max(len(found.dag.parents(n)) for n in found.dag.nodes) <= 3


def test_more_than_64_variables():
    bn = sf.load("alarm")
    tables = {side: bn.sample(500, seed=k) for k, side in enumerate("lr")}
    twice = {f"{side}{n}": table[n].to_pylist() for side, table in tables.items() for n in table.column_names}
    rules = sf.constraints.Candidates({n: [m for m in twice if m[0] == n[0] and m != n][:6] for n in twice})
    found = sf.search(twice, method=sf.Orders(max_parents=2), constraints=rules)
    assert len(found.dag.nodes) == 74
    assert rules.check(found.dag) == []
    assert all(a[0] == b[0] for a, b in found.dag.edges)


def test_files_that_do_not_fit_into_memory(tmp_path: Path):
    for k in range(3):
        pq.write_table(sf.load("asia").sample(40_000, seed=k), tmp_path / f"{k}.parquet")
    whole = pa.concat_tables([pq.read_table(tmp_path / f"{k}.parquet") for k in range(3)])
    for method in (sf.Orders(), sf.HillClimb(), sf.methods.ChowLiu()):
        data = sf.scan(str(tmp_path / "*.parquet"), memory_limit="1MB")
        found = sf.search(data, method=method, memory_limit="600KB")
        expected = sf.search(whole, method=method)
        assert found.score == expected.score
        assert found.dag == expected.dag


def test_a_seed_gives_the_same_graph():
    rows = sf.load("alarm").sample(300, seed=3)
    method = sf.HillClimb(restarts=2)
    assert sf.search(rows, method=method, seed=5).dag == sf.search(rows, method=method, seed=5).dag


def test_time_is_over_in_mixed_data():
    rng = np.random.default_rng(0)
    columns: dict[str, Any] = {f"x{i}": rng.standard_normal(200) for i in range(8)}
    columns |= {f"c{i}": np.array(["u", "v"])[rng.integers(2, size=200)] for i in range(8)}
    start = time.perf_counter()
    found = sf.search(columns, sf.Evidence((sf.BDeu(1), sf.NormalInverseGamma())), time_limit=0.2)
    assert not found.finished
    assert time.perf_counter() - start < 15  # a hang, not a slow machine


def test_a_constraint_on_an_identifier_says_so():
    rows = {"id": [f"row {i}" for i in range(60)], "x": ["a", "b"] * 30, "y": ["a", "b"] * 30}
    with pytest.raises(sf.SufficeError, match="'id', which is left out"):
        sf.search(rows, constraints=sf.Forbid(("id", "x")))


@pytest.mark.parametrize("threads", [0, -1, 1.5, "2", True])
def test_threads_are_a_whole_number(threads):
    with pytest.raises(sf.SufficeError, match="threads"):
        sf.search({"x": ["a", "b"]}, threads=threads)


def test_numbers_of_numpy_are_numbers():
    rows = {"x": ["a", "b"] * 9, "y": ["a", "b"] * 9}
    assert sf.search(rows, method=sf.Orders(np.int64(2)), seed=np.int64(3), threads=np.int64(1)).dag == sf.Dag("x -> y")


def test_the_default_is_good_from_the_start():
    """When time is short, the best so far is a hill climb's, not the empty graph."""
    rows = sf.load("alarm").sample(20_000, seed=1)
    sf.search(rows)
    found = sf.search(rows, time_limit=0.05)
    assert found.finished or found.dag.edges


def test_equal_rows_elsewhere_are_merged_and_it_is_said() -> None:
    from tests.toy_engine import toy

    rows = {"a": ["x", "y", "y", "x"] * 100, "b": ["u", "v", "u", "u"] * 100}
    with pytest.warns(sf.SufficeNote, match="400 rows are 3 different ones, which are searched with their weights"):
        found = sf.search(toy(rows), method=sf.HillClimb())
    assert found.score == sf.search(rows, method=sf.HillClimb()).score
