"""How often learners pass over rows that are in other processes, counted, and as `dry_run` foretells it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.engines import Data
from suffice.incomplete.components import FlatTables
from suffice.incomplete.finite import FiniteComponents
from tests.toy_engine import Toy, toy

N = 1500


@cache
def alarm() -> Any:
    return sf.load("alarm").sample(N, seed=1)


@pytest.fixture
def passes(monkeypatch) -> Iterator[list[str]]:
    """The steps that were folded over the rows, in their order."""
    seen: list[str] = []
    run = Toy.run

    def counted(self: Toy, work: Any) -> Any:
        seen.append(type(work.step).__name__)
        return run(self, work)

    monkeypatch.setattr(Toy, "run", counted)
    return seen


def known(passes: list[str], **how: Any) -> Data:
    """ALARM's rows in three partitions, whose columns were looked at."""
    data = toy(alarm(), size=500, **how)
    assert data.schema
    assert passes == ["LookAt"]
    passes.clear()
    return data


def incomplete(share: float = 0.1) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    return {
        n: [None if gap else v for v, gap in zip(c.to_pylist(), rng.random(N) < share, strict=True)]
        for n, c in zip(alarm().column_names, alarm().columns, strict=True)
    }


def test_fit_passes_once_and_once_to_see_the_columns(passes) -> None:
    dag, data = sf.load("alarm").dag, toy(alarm(), size=500)
    sf.fit(dag, data, prior=sf.BDeu(1))
    assert passes == ["LookAt", "Gather"]
    passes.clear()
    sf.fit(sf.load("alarm"), toy(alarm(), sf.load("alarm").variables, size=500))
    assert passes.count("Gather") == 1
    assert len(passes) <= 2
    passes.clear()
    sf.gather(data, dag, max_parents=1)
    assert passes == ["Gather"]


@pytest.mark.parametrize(
    "method",
    [sf.Orders(), sf.Orders(max_parents=2), sf.methods.ChowLiu(), sf.methods.TAN("HR")],
    ids=lambda m: repr(m).partition("(rounds")[0],
)
def test_searches_among_all_parent_sets_take_the_passes_foretold(passes, method: Any) -> None:
    data = known(passes)
    plan = sf.search(data, method=method, dry_run=True)
    assert passes == []
    found = sf.search(data, method=method)
    assert not plan.at_least
    assert len(passes) == plan.scans <= 2
    here = sf.search(alarm(), method=method)
    assert (found.dag, found.score) == (here.dag, here.score)


def test_an_exact_search_takes_the_passes_foretold(passes) -> None:
    some = alarm().select(sorted(alarm().column_names)[:12])
    data = toy(some, size=500)
    plan = sf.search(data, method=sf.Exact(max_parents=3), dry_run=True)
    passes.clear()
    found = sf.search(data, method=sf.Exact(max_parents=3))
    assert (plan.at_least, len(passes)) == (False, plan.scans)
    assert found.score == sf.search(some, method=sf.Exact(max_parents=3)).score


def test_little_room_takes_more_passes_and_the_plan_bounds_them(passes) -> None:
    """Tables of at most 2¹⁶ cells at once."""
    data = known(passes)
    how: dict[str, Any] = {"method": sf.Orders(max_parents=2), "memory_limit": 2**20}
    plan = sf.search(data, dry_run=True, **how)
    found = sf.search(data, **how)
    assert 2 < len(passes) <= plan.scans
    assert found.dag == sf.search(alarm(), method=sf.Orders(max_parents=2)).dag


@pytest.mark.parametrize(
    "score", [sf.BIC(), sf.Evidence(sf.K2()), sf.scores.GraphPosterior(sf.BIC(), sf.scores.KollerFriedman())], ids=repr
)
def test_a_climb_passes_once_a_step(passes, score: Any) -> None:
    data = known(passes)
    plan = sf.search(data, score, sf.HillClimb(max_parents=3), dry_run=True)
    found = sf.search(data, score, sf.HillClimb(max_parents=3))
    steps = len(found.trace) - 1
    assert plan.at_least
    assert plan.scans <= len(passes) <= steps + 2  # all pairs, a step each, and the member of the class that is returned
    assert "one for each step" in plan.further_scans
    assert "one for each step" in str(plan)
    here = sf.search(alarm(), score, sf.HillClimb(max_parents=3))
    assert (found.dag, found.score) == (here.dag, pytest.approx(here.score, rel=1e-12))


def test_reversals_pass_once_too(passes) -> None:
    """From a graph with edges the wrong way round."""
    data, names = known(passes), sorted(alarm().column_names)
    start = sf.Dag({n: [names[i + 1]] if i + 1 < len(names) else [] for i, n in enumerate(names)})
    found = sf.search(data, method=sf.HillClimb(start=start, max_parents=2))
    assert any(step.what.startswith("reverse") for step in found.trace)
    assert len(passes) <= len(found.trace) + 1  # that of all scores of the start, and a step each


def test_equivalence_search_passes_about_once_a_step(passes) -> None:
    data = known(passes)
    found = sf.search(data, method=sf.methods.GES())
    assert len(passes) <= 1.25 * len(found.trace) + 2
    assert found.dag == sf.search(alarm(), method=sf.methods.GES()).dag


def test_pc_passes_once_a_level_and_once_to_direct(passes) -> None:
    data = known(passes)
    plan = sf.search(data, method=sf.PC(), dry_run=True)
    found = sf.search(data, method=sf.PC())
    sets = [s.given for s in found.details.separated.values()]
    levels = 1 + max(len(given) for given in sets)
    assert plan.scans <= len(passes) <= levels + 2  # a last level that separates no pair, and the tests that direct edges
    assert "each level of tests" in plan.further_scans
    here = sf.search(alarm(), method=sf.PC())
    assert found.cpdag == here.cpdag
    assert sets == [s.given for s in here.details.separated.values()]


@pytest.mark.parametrize("learn", [sf.em, sf.gradient], ids=lambda f: f.__name__)
def test_expectations_of_tables_take_one_pass_in_all(passes, learn: Callable[..., Any]) -> None:
    data = toy({n: c for n, c in incomplete().items() if n in ("HR", "HRBP", "HREKG", "HRSAT")}, size=500)
    assert data.schema
    passes.clear()
    plan = sf.em("HR -> HRBP; HR -> HREKG; HR -> HRSAT", data, dry_run=True)
    assert len(passes) == plan.passes - 1  # that to see the columns, which was made
    assert plan.passes_an_iteration == 0
    passes.clear()
    learn("HR -> HRBP; HR -> HREKG; HR -> HRSAT", data)
    assert passes == ["Reduce"]


def test_scores_of_few_different_rows_take_one_pass(passes) -> None:
    """Where few rows can differ, they are merged, and then all are here."""
    some = {n: alarm().column(n).to_pylist() for n in ("HR", "HRBP", "HREKG")}
    data = toy(some, size=500)
    assert data.schema
    passes.clear()
    with pytest.warns(sf.SufficeNote, match="different ones"):
        plan, found = sf.search(data, dry_run=True), sf.search(data)
    assert (passes, plan.scans) == (["Gather"], 1)
    assert found.dag == sf.search(some).dag


def test_what_takes_rows_in_an_order_is_refused_with_a_way_out() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    data = toy({"x": x, "y": 2 * x + rng.normal(size=200)}, size=50)
    with pytest.raises(sf.SufficeError, match=r"families=.*Linear\("):
        sf.regressions.lms("y", data, parents=["x"])


def test_components_that_were_too_many_are_forgotten_for_good() -> None:
    """Those of rows that come after are of no use, and are not held through the iterations."""
    hidden, seen = sf.Finite("h", ["a", "b"]), [sf.Finite(f"x{i}", ["0", "1"]) for i in range(9)]
    codes = (np.arange(2**9)[:, None] >> np.arange(9)) % 2
    data = toy({v.name: [str(c) for c in codes[:, i]] for i, v in enumerate(seen)}, size=100)
    tables = FlatTables.of([hidden, *seen], [(hidden,), *((hidden, x) for x in seen)])
    with pytest.warns(sf.SufficeNote, match="each iteration passes over the rows"):
        components = FiniteComponents.of(data, tables, 1, room=15_000.0)
    assert components.passes == 1
    assert len(components.reduction.multiplicity) == 0


def test_components_that_are_too_many_stay_with_the_rows(passes, monkeypatch) -> None:
    """Past a size the reduction is not summed in one place: each E-step is a pass, and what is learned is the same."""
    graph = "HR -> HRBP; HR -> HREKG; HR -> HRSAT"
    rows = {n: c for n, c in incomplete(0.3).items() if n in ("HR", "HRBP", "HREKG", "HRSAT")}
    how: dict[str, Any] = {"max_iter": 6, "tol": 0}
    with pytest.warns(sf.SufficeNote):
        here = sf.em(graph, rows, **how)
    monkeypatch.setattr("suffice.incomplete.finite.MOST", 200)
    for n in (1, 3, 17):
        data = toy(rows, size=100, n=n)
        assert data.schema
        with pytest.warns(sf.SufficeNote, match="each iteration passes over the rows"):
            plan = sf.em(graph, data, dry_run=True)
        assert plan.passes_an_iteration == 1
        passes.clear()
        with pytest.warns(sf.SufficeNote, match="each iteration passes over the rows"):
            run = sf.em(graph, data, **how)
        assert passes[0] == "Reduce"
        assert set(passes[1:]) == {"ReduceAndExpect"}
        assert len(passes) <= 1 + run.n_iterations + 2
        assert run.log_likelihood == pytest.approx(here.log_likelihood, rel=1e-10)
        for node in here.model:
            np.testing.assert_allclose(run.model[node].probs, here.model[node].probs, rtol=1e-9)
    with pytest.raises(sf.SufficeError, match="Incremental"), pytest.warns(sf.SufficeNote):
        sf.em(graph, toy(rows, size=100), method=sf.methods.Incremental(4))
