"""Laws of searches for undirected graphs, over all methods of the registry: orders, threads, weights and constraints."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.basis.registry import every
from suffice.structure.problem import is_directed
from tests.laws.test_search_laws import finite, permuted, real, written_out
from tests.toy_engine import toy

FINITE: dict[str, Any] = {
    "neighbourhoods": sf.Neighbourhoods(penalty=0.02),
    "neighbourhoods, or": sf.Neighbourhoods(n_penalties=4, rule=sf.methods.Or()),
    "decomposable": sf.Decomposable(restarts=3),
    "stepwise": sf.methods.Stepwise(),
    "stepwise, backward": sf.methods.Stepwise(sf.methods.Backward(), sf.methods.DevianceTest(0.01), max_order=2),
}
REAL: dict[str, Any] = {
    "glasso": sf.GraphicalLasso(penalty=0.1),
    "neighbourhoods": sf.Neighbourhoods(penalty=0.1),
    "decomposable": sf.Decomposable(restarts=3),
}


def test_every_method_is_here() -> None:
    undirected = {method for method in every("methods").values() if not is_directed(method)}
    assert {type(method) for method in (*FINITE.values(), *REAL.values())} == undirected


def states(seed: int, n: int = 400) -> dict[str, np.ndarray]:
    """Rows of a random network, with a column that is the same in almost every row."""
    rows = {name: c for name, c in finite(seed, 5, n).items() if name.startswith("n") and len(set(c)) > 1}
    return {**rows, "rare": np.where(np.arange(n) % 57, "no", "yes")}


def same(a: sf.results.FoundGraph, b: sf.results.FoundGraph) -> None:
    assert a.graph == b.graph
    assert a.generators == b.generators
    assert a.score == b.score or a.score == pytest.approx(b.score, rel=1e-7)
    for edge, strength in a.strengths.items():
        assert abs(b.strengths[edge]) == pytest.approx(abs(strength), rel=1e-3, abs=1e-5)


@pytest.mark.parametrize("name", FINITE)
def test_the_order_of_columns_rows_and_states_does_not_matter(name: str) -> None:
    rows = states(3)
    first = sf.search(sf.scan(rows), method=FINITE[name])
    for k in range(4):
        same(first, sf.search(permuted(rows, np.random.default_rng(k)), method=FINITE[name], threads=1 + k % 3))
    same(first, pickle.loads(pickle.dumps(first)))


@pytest.mark.parametrize("name", REAL)
def test_nor_does_it_for_real_columns(name: str) -> None:
    rows = real(1)
    first = sf.search(sf.scan(rows), method=REAL[name])
    for k in range(4):
        same(first, sf.search(permuted(rows, np.random.default_rng(k)), method=REAL[name], threads=1 + k % 3))


EITHER = [(states, m) for m in FINITE.values()] + [(real, m) for m in REAL.values()]


@pytest.mark.parametrize(("of", "method"), EITHER)
def test_weights_are_numbers_of_rows(of: Any, method: Any) -> None:
    rows = of(4, n=90)
    weights = np.random.default_rng(0).integers(0, 40, 90)
    written = written_out(rows, weights) if of is states else {n: np.repeat(c, weights) for n, c in rows.items()}
    same(sf.search(written, method=method), sf.search(sf.scan(rows, weights=weights), method=method))


@pytest.mark.parametrize(("of", "method"), EITHER)
def test_rows_elsewhere_give_the_same_graph(of: Any, method: Any) -> None:
    rows = of(5, n=250)
    far = toy(rows)
    same(sf.search(rows, method=method), sf.search(far, method=method))
    assert far.engine.rows_out == []


@pytest.mark.parametrize(("rows", "method"), EITHER)
def test_constraints_are_kept(rows: Any, method: Any) -> None:
    data = sf.scan(rows(2))
    free = sf.search(data, method=method)
    out = free.graph.edges[0]
    far = next((a, b) for a in free.names for b in free.names if a < b and b not in free.graph.neighbours(a) and (a, b) != out)
    found = sf.search(data, method=method, constraints=sf.Forbid(out) + sf.Require(far))
    assert out not in found.graph.edges
    assert far in found.graph.edges
