"""Gaussian nodes given finite configurations: against dense formulas, and where those lose their digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from suffice.errors import TooLarge
from suffice.numerics.inference.finite import logs
from suffice.numerics.inference.finite.junction_tree import JunctionTree
from suffice.numerics.inference.finite.logs import LogFactor, absorb_factors, log_factors, log_joint
from suffice.numerics.inference.finite.network import Network
from suffice.numerics.inference.finite.questions import best_codes, posterior
from suffice.numerics.inference.numbers import gaussian
from suffice.numerics.inference.numbers.gaussian import COLLINEAR, FINE, OVERFLOW, GaussianNode, Gaussians
from suffice.numerics.inference.numbers.hybrid import blocks, pack_blocks

seeds = st.integers(0, 2**32 - 1)


def node(intercept: Any, coefficients: dict[int, Any], variance: Any, finite: tuple[int, ...] = ()) -> GaussianNode:
    shape = np.shape(variance)
    columns = [np.broadcast_to(np.asarray(b, float), shape) for b in coefficients.values()]
    slopes = np.stack(columns, axis=-1) if columns else np.zeros((*shape, 0))
    return GaussianNode(finite, tuple(coefficients), np.asarray(intercept, float), slopes, np.asarray(variance, float))


def random_nodes(rng: np.random.Generator, n: int, sizes: list[int]) -> list[GaussianNode]:
    nodes = []
    for m in range(n):
        finite = tuple(v for v in range(len(sizes)) if rng.random() < 0.5)
        shape = tuple(sizes[v] for v in finite)
        slopes = {p: rng.normal(size=shape) for p in range(m) if rng.random() < 0.5}
        nodes.append(node(rng.normal(size=shape) * 3, slopes, rng.gamma(2.0, size=shape) + 0.05, finite))
    return nodes


def dense(nodes: list[GaussianNode], codes: tuple[int, ...]) -> tuple[Any, Any]:
    n = len(nodes)
    a, B, v = np.zeros(n), np.zeros((n, n)), np.zeros(n)
    for m, one in enumerate(nodes):
        u = tuple(codes[f] for f in one.finite_parents)
        a[m], v[m] = one.intercept[u], one.variance[u]
        B[m, list(one.real_parents)] = one.coefficients[u]
    inverse = np.linalg.inv(np.eye(n) - B)
    return inverse @ a, inverse @ np.diag(v) @ inverse.T


@settings(max_examples=40, deadline=None)
@given(seed=seeds)
def test_conditioning_is_that_of_the_dense_gaussian(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes = random_nodes(rng, n := int(rng.integers(1, 7)), [2, 3])
    observed = [m for m in range(n) if rng.random() < 0.4]
    targets = [m for m in range(n) if m not in observed]
    values = {m: rng.normal(size=2) * 3 for m in observed}
    grid = [(i, j) for i in range(2) for j in range(3)]
    every = {0: np.array([i for i, _ in grid]), 1: np.array([j for _, j in grid])}
    answer = Gaussians(nodes).condition(range(n), targets, values, every, len(grid))
    alone = Gaussians(nodes).condition(range(n), targets, values, every, len(grid), joint=False)
    np.testing.assert_allclose(alone.variance, answer.variance, rtol=1e-12)
    assert (answer.trouble == FINE).all()
    for c, codes in enumerate(grid):
        mean, covariance = dense(nodes, codes)
        S = covariance[np.ix_(observed, observed)]
        gain = np.linalg.solve(S, covariance[np.ix_(observed, targets)]).T if observed else np.zeros((len(targets), 0))
        for row in range(2 if observed else 1):
            off = np.array([values[m][row] for m in observed]) - mean[observed]
            np.testing.assert_allclose(answer.mean[c, row], mean[targets] + gain @ off, rtol=1e-10, atol=1e-10)
            expected = multivariate_normal.logpdf(off, np.zeros(len(off)), S) if observed else 0.0
            assert answer.log_density[c, row] == pytest.approx(expected, rel=1e-10, abs=1e-10)
            distance = off @ np.linalg.solve(S, off) if observed else 0.0
            assert answer.distance[c, row] == pytest.approx(distance, rel=1e-9, abs=1e-10)
        left = covariance[np.ix_(targets, targets)] - gain @ covariance[np.ix_(observed, targets)]
        np.testing.assert_allclose(answer.covariance[c], left, rtol=1e-9, atol=1e-10)


def test_blocks_of_configurations_and_targets_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    nodes = random_nodes(rng, 7, [5])
    ask = (range(7), [0, 1, 2, 4, 6], {3: np.array([0.5]), 5: np.array([-1.0])}, {0: np.arange(5)}, 5)
    whole = Gaussians(nodes).condition(*ask)
    monkeypatch.setattr(gaussian, "CELLS", 60)
    monkeypatch.setattr(gaussian, "FEW", 2)
    parts = Gaussians(nodes).condition(*ask, joint=False)
    np.testing.assert_allclose(parts.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(parts.variance, whole.variance, rtol=1e-12)
    np.testing.assert_allclose(parts.log_density, whole.log_density, rtol=1e-12)


def test_a_mean_of_1e9_costs_no_digits() -> None:
    shift = 1e9
    nodes = [node(shift, {}, 1.0), node(0.0, {0: 1.0}, 1.0), node(0.0, {1: 1.0}, 2.0)]
    answer = Gaussians(nodes).condition([0, 1, 2], [0, 1], {2: np.array([shift + 3.0])}, {})
    small = Gaussians([node(0.0, {}, 1.0), *nodes[1:]]).condition([0, 1, 2], [0, 1], {2: np.array([3.0])}, {})
    np.testing.assert_allclose(answer.mean - shift, small.mean, atol=2e-7)
    np.testing.assert_array_equal(answer.covariance, small.covariance)
    assert answer.log_density == pytest.approx(small.log_density, rel=1e-14)


@pytest.mark.parametrize("sd", [1e3, 1e6, 1e9, 1e13])
def test_a_vague_parent_of_precise_evidence(sd: float) -> None:
    """1/(1/sd² + 1) is all noise where sd² − sd⁴/(sd² + 1) is computed as it stands; and so it is with two witnesses."""
    vague, witness = node(0.0, {}, sd**2), node(0.0, {0: 1.0}, 1.0)
    one = Gaussians([vague, witness]).condition([0, 1], [0], {1: np.array([2.0])}, {})
    assert one.variance[0, 0] == pytest.approx(1.0 / (1.0 + sd**-2), rel=1e-12)
    assert one.mean[0, 0, 0] == pytest.approx(2.0 / (1.0 + sd**-2), rel=1e-12)
    if sd < 1e10:
        two = Gaussians([vague, witness, witness]).condition([0, 1, 2], [0], {1: np.array([2.0]), 2: np.array([4.0])}, {})
        assert two.variance[0, 0] == pytest.approx(1.0 / (2.0 + sd**-2), rel=1e-12)
        assert two.mean[0, 0, 0] == pytest.approx(6.0 / (2.0 + sd**-2), rel=1e-9)
        expected = -gaussian.LOG_2PI - 0.5 * np.log(2 * sd**2 + 1) - 0.5 * (20.0 - 36.0 / (2.0 + sd**-2))
        assert two.log_density[0, 0] == pytest.approx(expected, rel=1e-10)


def test_collinear_evidence_overflow_and_missing_parameters_are_told_apart() -> None:
    cause, effect = node(0.0, {}, 1.0), node(0.0, {0: 1.0}, 1e-26)
    seen = {1: np.array([1.0]), 2: np.array([1.0])}
    answer = Gaussians([cause, effect, effect]).condition([0, 1, 2], [0], seen, {})
    assert answer.trouble.tolist() == [COLLINEAR]
    assert np.isnan(answer.log_density).all()
    steep = [cause, *(node(0.0, {m: 1e200}, 1.0) for m in range(3))]
    assert Gaussians(steep).condition(range(4), [3], {}, {}).trouble.tolist() == [OVERFLOW]
    far = Gaussians([node(1e300, {}, 1.0), node(0.0, {0: 1e300}, 1.0)])
    assert far.condition([0, 1], [1], {}, {}).trouble.tolist() == [OVERFLOW]
    some = [node([0.0, np.nan], {}, [1.0, np.nan], (0,)), node([0.0, 1.0], {0: [1.0, np.nan]}, [1.0, 1.0], (1,))]
    configurations = {0: np.array([0, 0, 1, 1]), 1: np.array([0, 1, 0, 1])}
    found = Gaussians(some).condition([0, 1], [0], {1: np.array([0.0])}, configurations, 4)
    assert found.trouble.tolist() == [FINE, 1, 0, 0]
    assert np.isnan(found.log_density[:, 0]).tolist() == [False, True, True, True]
    assert np.isfinite(found.mean[0]).all()


def test_evidence_out_of_all_proportion_has_density_zero() -> None:
    answer = Gaussians([node(0.0, {}, 1.0)]).condition([0], [], {0: np.array([1e200])}, {})
    assert answer.log_density.tolist() == [[-np.inf]]


def test_a_chain_of_a_thousand_nodes() -> None:
    """Stationary: each has variance 1, two that are k apart the correlation b^k."""
    b, n = 0.999, 1000
    nodes = [node(0.0, {}, 1.0), *(node(0.0, {m: b}, 1.0 - b * b) for m in range(n - 1))]
    chain = Gaussians(nodes)
    answer = chain.condition(range(n), list(range(n - 1)), {n - 1: np.array([2.0])}, {}, joint=False)
    correlation = b ** np.arange(n - 1, 0, -1)
    np.testing.assert_allclose(answer.mean[0, 0], 2.0 * correlation, rtol=1e-10)
    np.testing.assert_allclose(answer.variance[0], 1.0 - correlation**2, rtol=1e-9)
    assert answer.log_density[0, 0] == pytest.approx(-0.5 * (gaussian.LOG_2PI + 4.0), rel=1e-12)


def test_blocks_leave_out_the_barren_and_are_cut_by_evidence() -> None:
    chain = [node(0.0, {m - 1: 1.0} if m else {}, 1.0) for m in range(6)]
    assert [b.members for b in blocks(chain, [2], {})] == [(0, 1, 2)]
    assert [b.members for b in blocks(chain, [2], {1: 0.0, 3: 0.0})] == [(0, 1), (2, 3)]
    assert [b.members for b in blocks(chain, [], {5: 0.0})] == [(0, 1, 2, 3, 4, 5)]
    assert [b.members for b in blocks(chain, [], dict.fromkeys(range(6), 0.0))] == [(m,) for m in range(6)]
    collider = [node(0.0, {}, 1.0, ()), node(0.0, {}, 1.0), node([0.0, 1.0], {0: 1.0, 1: 1.0}, [1.0, 1.0], (4,))]
    (block,) = blocks(collider, [0], {2: 0.0})
    assert (block.members, block.observed, block.finite) == ((0, 1, 2), (2,), (4,))
    assert blocks(chain, [], {}) == []


def test_small_blocks_are_packed_where_that_needs_no_more_configurations() -> None:
    nodes = [node(np.zeros(s), {}, np.ones(s), f) for f, s in (((0,), 2), ((1,), 2), ((0, 1), (2, 2)), ((), ()), ((2,), 2))]
    seen = dict.fromkeys(range(5), 0.0)
    parts = blocks(nodes, [], seen)
    unknown = np.full(3, -1)
    assert sorted(b.members for b in pack_blocks(nodes, parts, unknown, seen)) == [(0, 1, 2, 3), (4,)]
    assert sorted(b.members for b in pack_blocks(nodes, parts, np.array([-1, -1, 0]), seen)) == [(0, 1, 2, 3, 4)]


def random_network(rng: np.random.Generator, n: int = 5) -> Network:
    sizes, factors = rng.integers(1, 4, n), []
    for v in range(n):
        scope = (*(u for u in range(v) if rng.random() < 0.5), v)
        table = rng.gamma(0.7, size=[sizes[u] for u in scope]) + 1e-6
        factors.append((scope, v, table / table.sum(-1, keepdims=True)))
    return Network.of(sizes, factors)


def whole(network: Network, extra: list[LogFactor]) -> Any:
    """ln of the product of all factors, one axis per variable."""
    total = np.zeros(tuple(network.sizes))
    everything = tuple(range(network.n_variables))
    for scope, _, table in network.factors():
        total = total + LogFactor(tuple(scope.tolist()), np.log(table)[None]).over(everything)[0]
    for f in extra:
        total = total + f.over(everything)[0]
    return total


@settings(max_examples=30, deadline=None)
@given(seed=seeds, spread=st.sampled_from([1.0, 100.0, 5000.0]))
def test_factors_of_any_size_are_weighed_as_by_enumeration(seed: int, spread: float) -> None:
    rng = np.random.default_rng(seed)
    network = random_network(rng)
    scopes = [tuple(sorted(rng.choice(5, rng.integers(0, 4), replace=False).tolist())) for _ in range(4)]
    extra = [LogFactor(s, rng.normal(size=(1, *network.sizes[list(s)])) * spread) for s in scopes]
    codes = np.where(rng.random(5) < 0.3, 0, -1)
    targets = [v for v in range(5) if codes[v] < 0][::-1][:2]
    fixed = [LogFactor(tuple(v for v in f.scope if codes[v] < 0), f.values[(slice(None), *_at(f.scope, codes))]) for f in extra]
    table = whole(network, extra)[tuple(_at(range(5), codes))]
    free = [v for v in range(5) if codes[v] < 0]
    top = table.max()
    answer = posterior(network, targets, codes, fixed)
    assert answer.log_prob == pytest.approx(float(top + np.log(np.exp(table - top).sum())), rel=1e-12, abs=1e-10)
    joint = np.exp(table - answer.log_prob)
    keep = np.transpose(joint, [*(free.index(t) for t in targets), *(i for i, v in enumerate(free) if v not in targets)])
    summed = keep.reshape(*keep.shape[: len(targets)], -1).sum(-1)
    np.testing.assert_allclose(answer.probs, summed, rtol=1e-8, atol=1e-12)
    every = JunctionTree.of(network).marginals(codes, fixed)
    for v in targets:
        own = joint.sum(axis=tuple(i for i, u in enumerate(free) if u != v))
        np.testing.assert_allclose(every.probs[every.start[v] : every.start[v + 1]], own, rtol=1e-8, atol=1e-12)
    best, log_best = best_codes(network, free, codes, fixed)
    assert log_best == pytest.approx(float(top), rel=1e-12, abs=1e-10)
    assert table[tuple(best)] == pytest.approx(float(top), rel=1e-12, abs=1e-10)
    some, log_some = best_codes(network, targets, codes, fixed)
    assert log_some == pytest.approx(float(np.log(summed.max()) + answer.log_prob), rel=1e-10, abs=1e-9)
    assert summed[tuple(some)] == pytest.approx(summed.max(), rel=1e-9)


def _at(scope: Any, codes: Any) -> list[Any]:
    return [slice(None) if codes[v] < 0 else int(codes[v]) for v in scope]


def test_factors_that_pull_apart_do_not_underflow() -> None:
    """One says a by e^800, the other b by e^900; they are the same variable but for a deterministic table between."""
    network = Network.of([2, 2], [((0,), 0, np.array([0.5, 0.5])), ((0, 1), 1, np.eye(2))])
    pull = [LogFactor((0,), np.array([[0.0, -800.0]])), LogFactor((1,), np.array([[-900.0, 0.0]]))]
    answer = posterior(network, [0], network.no_evidence(), pull)
    assert answer.probs[1] == pytest.approx(1.0)
    assert answer.log_prob == pytest.approx(-800.0 - np.log(2.0))
    codes, log_joint_ = best_codes(network, [0, 1], network.no_evidence(), pull)
    assert codes.tolist() == [1, 1]
    assert log_joint_ == pytest.approx(-800.0 - np.log(2.0))
    never = [LogFactor((0,), np.array([[0.0, -np.inf]])), LogFactor((1,), np.array([[-np.inf, 0.0]]))]
    impossible = posterior(network, [0], network.no_evidence(), never)
    assert impossible.log_prob == -np.inf
    assert np.isnan(impossible.probs).all()
    nothing = posterior(network, [0], network.no_evidence(), [LogFactor((), np.array([-np.inf]))])
    assert nothing.log_prob == -np.inf


def test_rows_are_eliminated_at_once() -> None:
    rng = np.random.default_rng(5)
    network = random_network(rng)
    codes = np.full((3, 5), -1)
    codes[:, 2] = rng.integers(0, network.sizes[2], 3)
    joint = log_joint(log_factors(network, codes, [0]), [0], network.sizes)
    for row in range(3):
        one = log_joint(log_factors(network, codes[row : row + 1], [0]), [0], network.sizes)
        np.testing.assert_allclose(joint[row], one[0], rtol=1e-12)


def test_absorbed_factors_are_the_same_product() -> None:
    rng = np.random.default_rng(2)
    parts = [LogFactor(s, rng.normal(size=(1, *(2 + v for v in s)))) for s in ((0,), (1, 0), (2,), (), (1,))]
    merged = absorb_factors(parts)
    assert [f.scope for f in merged] == [(1, 0), (2,)]
    total = sum(f.over((0, 1, 2)) for f in parts)
    np.testing.assert_allclose(sum(f.over((0, 1, 2)) for f in merged), np.broadcast_to(total, (1, 2, 3, 4)), rtol=1e-12)


def test_a_table_too_large_is_refused_before_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_CELLS", 7)
    factor = LogFactor((0, 1, 2), np.zeros((1, 2, 2, 2)))
    with pytest.raises(TooLarge, match="a table of 8 cells"):
        log_joint([factor], [0], np.array([2, 2, 2]))
