"""Order MCMC against enumeration: of all orders, and with the correction of all graphs."""

from __future__ import annotations

import time
from itertools import permutations, product
from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import FitError, GraphError, SufficeNote, TooLarge
from suffice.graphs import n_dags
from suffice.numerics.kernels.search import order_mcmc as kernels
from suffice.structure import order_mcmc as module
from suffice.structure.constraints import Forbid, Require
from suffice.structure.order_mcmc import order_mcmc
from suffice.structure.results.order_posterior import effective, r_hat
from suffice.structure.rules import Rules
from suffice.structure.search import problem_of
from tests.oracles import parent_sets

EVIDENCE = sf.Evidence(sf.BDeu(1))


def rows(n: int = 40, seed: int = 1) -> dict[str, list[str]]:
    rng = np.random.default_rng(seed)
    a, c = rng.integers(2, size=n), rng.integers(3, size=n)
    b = (a + (rng.random(n) < 0.3)) % 2
    d = (b + c + (rng.random(n) < 0.4)) % 2
    return {name: [str(x) for x in column] for name, column in zip("abcd", (a, b, c, d), strict=True)}


def tables(max_parents: int, constraints: Any = None) -> list[dict[tuple[int, ...], float]]:
    """Of each child the sets with their weights."""
    problem = problem_of(rows(), EVIDENCE, constraints)
    sets = problem.scores.parent_sets(problem.rules.cap(max_parents), prune=False)
    top = sets.score.max()
    return [{s: float(np.exp(x - top)) for s, x in sets.of_child(i)} for i in range(sets.n)]


def by_orders(weights: list[dict[tuple[int, ...], float]]) -> Any:
    """P(edge | data) over all orders."""
    n = len(weights)
    total, result = 0.0, np.zeros((n, n))
    for order in permutations(range(n)):
        here, p = np.zeros((n, n)), 1.0
        for k, child in enumerate(order):
            inside = {s: w for s, w in weights[child].items() if set(s) <= set(order[:k])}
            z = sum(inside.values())
            p *= z
            for s, w in inside.items():
                here[list(s), child] += w / z if z else 0.0
        total += p
        result += p * here
    return result / total


def by_graphs(weights: list[dict[tuple[int, ...], float]]) -> tuple[Any, int]:
    """P(edge | data) over all graphs, and how many they are."""
    n = len(weights)
    total, count, result = 0.0, 0, np.zeros((n, n))
    for parents in product(*weights):
        if extensions(parents) == 0:
            continue
        count += 1
        p = float(np.prod([weights[i][s] for i, s in enumerate(parents)]))
        total += p
        for child, s in enumerate(parents):
            result[list(s), child] += p
    return result / total, count


def extensions(parents: Any) -> int:
    return sum(all(set(parents[v]) <= set(order[:k]) for k, v in enumerate(order)) for order in permutations(range(len(parents))))


def test_edge_posteriors_are_those_of_all_orders() -> None:
    posterior = order_mcmc(rows(), EVIDENCE, max_parents=2, samples=2000)
    exact = by_orders(tables(2))
    assert np.abs(posterior.matrix - exact).max() < 0.01
    assert (np.abs(posterior.matrix - exact) <= 5 * posterior.error + 1e-3).all()
    assert posterior.agreed
    assert posterior.matrix[0, 1] == posterior.probability("a", "b")
    assert posterior.adjacent("a", "b") == posterior.adjacent("b", "a")


def test_with_the_correction_they_are_those_of_all_graphs() -> None:
    posterior = order_mcmc(rows(), EVIDENCE, max_parents=3, samples=4000, correct=True)
    exact, count = by_graphs(tables(3))
    assert count == n_dags(4)
    assert np.abs(posterior.matrix - exact).max() < 0.03
    assert (np.abs(posterior.matrix - exact) <= 5 * posterior.error + 1e-3).all()
    assert np.abs(by_orders(tables(3)) - exact).max() > 0.04  # so the correction does something
    assert 1000 < posterior.weight_ess < 8000


def test_constraints_hold_in_every_order() -> None:
    constraints = Forbid(("a", "b")) + Require(("d", "a"))
    posterior = order_mcmc(rows(), EVIDENCE, max_parents=2, samples=1000, constraints=constraints)
    np.testing.assert_allclose(posterior.matrix, by_orders(tables(2, constraints)), atol=0.02)
    assert posterior.probability("a", "b") == 0.0
    assert posterior.probability("d", "a") == pytest.approx(1.0)


def test_the_best_graph_is_the_best() -> None:
    from suffice.structure.search import search

    found, posterior = search(rows(300), EVIDENCE), order_mcmc(rows(300), EVIDENCE, samples=100)
    assert posterior.best_score == pytest.approx(found.score)
    assert posterior.best.cpdag() == found.cpdag
    assert sf.score(posterior.best, rows(300), EVIDENCE) == pytest.approx(posterior.best_score)


def test_it_depends_on_the_seed_and_nothing_else() -> None:
    first = order_mcmc(rows(), samples=40, seed=5)
    turned = dict(reversed(rows().items()))
    for other in (order_mcmc(turned, samples=40, seed=5), order_mcmc(rows(), samples=40, seed=5, threads=1)):
        np.testing.assert_array_equal(first.matrix, other.matrix)
        np.testing.assert_array_equal(first.log_scores, other.log_scores)
    assert (order_mcmc(rows(), samples=40, seed=6).matrix != first.matrix).any()


def test_one_variable_and_no_parents() -> None:
    alone = order_mcmc({"x": ["a", "b"]}, samples=20, correct=True)
    assert alone.matrix.tolist() == [[0.0]]
    assert alone.edges == ()
    assert "agree" in repr(alone)
    assert order_mcmc(rows(), max_parents=0, samples=20).matrix.sum() == 0.0


def test_numbers_and_one_chain() -> None:
    x = np.random.default_rng(0).normal(size=100)
    posterior = order_mcmc(
        {"x": x, "y": x + np.random.default_rng(1).normal(size=100)}, sf.Evidence(sf.BGe()), samples=50, chains=1
    )
    assert posterior.adjacent("x", "y") > 0.99
    assert posterior.largest_difference == 0.0


def test_the_result_shows_itself() -> None:
    posterior = order_mcmc(rows(), samples=40)
    assert "the order bias" in repr(posterior)
    assert "R-hat" in repr(posterior)
    assert "uniform prior over every graph" in repr(order_mcmc(rows(), samples=40, correct=True))
    assert "<table>" in posterior._repr_html_()
    assert list(posterior.to_frame().columns) == ["parent", "child", "posterior", "error"]
    assert [e.posterior for e in posterior.edges] == sorted((e.posterior for e in posterior.edges), reverse=True)
    with pytest.raises(GraphError, match="no variable 'z'"):
        posterior.probability("z", "a")


def test_chains_that_disagree_are_noted() -> None:
    with pytest.warns(SufficeNote, match="the chains disagree"):
        posterior = order_mcmc(rows(500), samples=20, burn_in=0, thin=1, seed=1)
    assert not posterior.agreed
    assert "DISAGREE" in repr(posterior)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"samples": 3}, "samples must be a whole number of at least 20"),
        ({"chains": 0}, "chains must be"),
        ({"max_parents": -1}, "max_parents must be"),
        ({"thin": 0}, "thin must be"),
        ({"burn_in": 1.5}, "burn_in must be"),
        ({"seed": -1}, "seed must be"),
        ({"score": sf.AIC()}, "a posterior needs a score"),
        ({"memory_limit": 100}, r"32 parent sets would take"),
    ],
)
def test_bad_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((FitError, TooLarge), match=message):
        order_mcmc(rows(), **options)


def test_the_correction_is_refused_for_many_variables() -> None:
    rng = np.random.default_rng(0)
    many = {f"x{i}": rng.choice(["a", "b"], 30) for i in range(21)}
    with pytest.raises(FitError, match="up to 20 variables, not 21"):
        order_mcmc(many, correct=True, max_parents=1)


def test_a_stopped_walk_keeps_what_it_has(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FitError, match="before there were enough samples"):
        order_mcmc(rows(), time_limit=1e-9)
    walk, calls = module._OrderWalk.walk, []

    def stopping(self: Any, samples: int, keep: bool) -> None:
        calls.append(keep)
        if sum(calls) == 8:
            raise KeyboardInterrupt
        walk(self, samples, keep)

    monkeypatch.setattr(module._OrderWalk, "walk", stopping)
    posterior = order_mcmc(rows(), samples=200, threads=1)
    assert posterior.log_scores.shape == (2, 30)
    assert not posterior.finished
    assert "stopped before its end" in repr(posterior)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 5), st.integers(0, 10**6), st.floats(0.01, 300.0), st.sampled_from([0, 63, 70]))
def test_moves_keep_local_scores_right(n: int, seed: int, spread: float, shift: int) -> None:
    """After every move the local scores are those of a sum from scratch; with more than 64 variables, too."""
    rng = np.random.default_rng(seed)
    wide = n + shift
    families = [
        (child, tuple(p + shift for p in range(n) if mask >> p & 1), spread * rng.normal())
        for child in range(shift, wide)
        for mask in range(1 << n)
        if not mask >> (child - shift) & 1
    ]
    families += [(child, (), 0.0) for child in range(shift)]
    chain = module._OrderWalk(module._Table(parent_sets(wide, families)), Rules.free(wide), 1, rng)
    for _ in range(5):
        chain.walk(5, True)
        fresh = np.empty(wide)
        kernels.rescore(chain.table.arrays, chain.order, fresh)
        np.testing.assert_allclose(chain.own, fresh, rtol=1e-9, atol=1e-9)
        assert sorted(chain.order) == list(range(wide))


@given(st.integers(1, 5), st.integers(0, 2**20))
def test_linear_extensions_are_counted(n: int, bits: int) -> None:
    parents = [tuple(p for p in range(child) if bits >> (5 * child + p) & 1) for child in range(n)]
    masks = np.array([sum(1 << p for p in s) for s in parents], np.int64)
    assert kernels.linear_extensions(masks) == extensions(parents)
    assert kernels.linear_extensions(np.zeros(n, np.int64)) == factorial(n)


def test_diagnostics_tell_chains_apart() -> None:
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(2, 500))
    drift = noise + np.linspace(0, 5, 500)
    assert r_hat(noise) < 1.02
    assert r_hat(drift) > 1.3
    slow = np.zeros((2, 4000))
    for t in range(1, 4000):
        slow[:, t] = 0.9 * slow[:, t - 1] + rng.normal(size=2)
    assert 8000 * 0.1 / 1.9 * 0.6 < effective(slow) < 8000 * 0.1 / 1.9 * 1.6  # an AR(1) has n (1 − φ) / (1 + φ)
    assert r_hat(np.repeat([[1.0], [2.0]], 10, axis=1)) == np.inf


def test_a_short_limit_keeps_what_was_sampled() -> None:
    rows = sf.load("asia").sample(500, seed=0)
    sf.methods.order_mcmc(rows, samples=40)
    start = time.perf_counter()
    posterior = sf.methods.order_mcmc(rows, samples=10**6, burn_in=0, time_limit=1.0)
    assert not posterior.finished
    assert time.perf_counter() - start < 20  # a hang, not a slow machine
    with pytest.raises(sf.SufficeError, match="fewer samples"):
        sf.methods.order_mcmc(rows, samples=10**12)
