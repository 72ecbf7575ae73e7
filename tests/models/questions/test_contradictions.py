"""Evidence that cannot be, marginals by draws, notes of threads, single rows, and graphs that are given."""

from __future__ import annotations

import threading
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import ImpossibleEvidence, note, notes_kept
from tests.toy_engine import toy


def test_impossible_evidence_is_an_error_of_its_own() -> None:
    bn = sf.load("asia")
    for ask in (bn.marginals, lambda given: bn.query("smoke", given), bn.most_probable):
        with pytest.raises(ImpossibleEvidence, match="probability zero"):
            ask({"lung": "yes", "either": "no"})
    assert bn.contradiction({"lung": "yes"}) == {}
    assert bn.moral().contradiction({"xray": "yes", "lung": "yes", "either": "no"}) == {"lung": "yes", "either": "no"}
    soft = bn.contradiction({"lung": [1.0, 0.0], "either": [0.0, 1.0], "smoke": "yes"})
    assert set(soft) == {"lung", "either"}


@pytest.mark.parametrize("given", [{}, {"xray": "yes", "smoke": "no"}, {"dysp": [0.7, 0.2]}])
def test_drawn_marginals_are_near_the_exact_ones(given: Any) -> None:
    bn = sf.load("asia")
    drawn = bn.marginals(given, method=sf.methods.LikelihoodWeighting(40_000), seed=1)
    exact = bn.marginals(given)
    for name in bn:
        assert np.all(np.abs(drawn[name].probs - exact[name].probs) <= 5 * drawn[name].error + 1e-9)
    assert drawn.log_prob_of_evidence == pytest.approx(exact.log_prob_of_evidence, abs=0.05)
    again = bn.marginals(given, method=sf.methods.LikelihoodWeighting(40_000), seed=1)
    assert all((again[name].probs == drawn[name].probs).all() for name in bn)


def test_drawn_marginals_of_numbers_and_what_is_refused() -> None:
    bn: Any = sf.load("ecoli70")
    drawn = bn.marginals({"asnA": 1.0}, method=sf.methods.LikelihoodWeighting(20_000))
    exact = bn.marginals({"asnA": 1.0})
    for name in list(bn)[:5]:
        assert drawn[name].mean == pytest.approx(exact[name].mean, abs=0.2)
    with pytest.raises(sf.SufficeError, match="LikelihoodWeighting"):
        bn.marginals(method=sf.methods.Gibbs(1000))
    with pytest.raises(sf.SufficeError, match="not both"):
        bn.marginals(method=sf.methods.LikelihoodWeighting(), interval=0.9)
    with pytest.raises(ImpossibleEvidence):
        sf.load("asia").marginals({"lung": "yes", "either": "no"}, method=sf.methods.LikelihoodWeighting())


def test_notes_are_kept_for_the_thread_that_keeps_them() -> None:
    def both() -> list[Any]:
        with notes_kept() as notes:
            note("here")
            thread = threading.Thread(target=note, args=("elsewhere",))
            thread.start()
            thread.join()
        return notes

    with pytest.warns(sf.SufficeNote, match="elsewhere"):
        notes = both()
    assert [str(told) for told in notes] == ["here"]


def test_single_rows_on_every_engine(tmp_path: Any) -> None:
    table = {"x": ["a", "b", None, "a"] * 9000, "y": np.arange(36_000) / 2}
    rows = [35_999, 0, 17_000, 2, 2]
    wanted = {"x": [table["x"][i] for i in rows], "y": [i / 2 for i in rows]}
    for data in (sf.scan(table), sf.scan(table, memory_limit=0), toy(table)):
        assert data.cells(rows) == wanted
    assert sf.scan(table).cells([]) == {"x": [], "y": []}
    with pytest.raises(sf.SufficeError, match="no row 36000"):
        sf.scan(table).cells([36_000])


def test_active_paths_are_there_where_nothing_separates() -> None:
    dag = sf.load("alarm").dag
    rng = np.random.default_rng(0)
    for _ in range(300):
        a, b, *given = rng.choice(dag.nodes, 2 + int(rng.integers(0, 5)), replace=False).tolist()
        path = dag.active_path(a, b, given)
        assert bool(path) != dag.d_separated(a, b, given)
        if path:
            assert (path[0], path[-1]) == (a, b)
            assert all(y in (*dag.parents(x), *dag.children(x)) for x, y in pairwise(path))


def test_a_graph_that_is_given_is_judged_as_it_is() -> None:
    rows = sf.load("asia").sample(500, seed=3)
    dag = sf.load("asia").dag
    found = sf.search(rows, method=sf.methods.GivenGraph(dag))
    assert found.dag == dag
    assert found.score == pytest.approx(sf.score(dag, rows, sf.BIC()))
    assert sf.search(rows, method=sf.methods.GivenGraph(dag), dry_run=True).families > 0
    with pytest.raises(sf.SufficeError, match="differ"):
        sf.search(rows, method=sf.methods.GivenGraph("asia -> tub"))
