"""Hidden chains of finite states: what kernels say is what all paths together say, and what logarithms say of longer ones."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.numerics.inference.chains import finite, lanes
from suffice.numerics.inference.chains.finite import (
    best_paths,
    draw_paths,
    expect_numbers,
    expect_states,
    filter_states,
    smooth_states,
)
from suffice.numerics.inference.chains.steps import Expectations, StateNormals, StateSteps


class Paths(NamedTuple):
    """All paths of a sequence and ln p(path, y) of each."""

    states: np.ndarray
    log_prob: np.ndarray


def log_b(steps: StateSteps) -> np.ndarray:
    """ln b_t[j], (T, K)."""
    out = np.zeros((steps.n_steps, steps.n_states))
    with np.errstate(divide="ignore"):
        if steps.table is not None:
            out += np.log(steps.table)[steps.symbols]
        if steps.log_likelihood is not None:
            out += steps.log_likelihood.T
    return out


def all_paths(steps: StateSteps, q: int) -> Paths:
    """By enumeration."""
    begin, end = steps.starts[q], steps.starts[q + 1]
    states = np.array(list(product(range(steps.n_states), repeat=int(end - begin))), int)
    b, log_prob = log_b(steps), np.zeros(len(states))
    before = np.zeros(len(states), int)
    with np.errstate(divide="ignore"):
        logs = np.log(steps.matrices)
    for k, t in enumerate(range(begin, end)):
        log_prob += logs[steps.codes[t], before, states[:, k]] + b[t, states[:, k]]
        before = states[:, k]
    return Paths(states, log_prob)


def log_sum(x: np.ndarray, axis: int | None = None) -> np.ndarray:
    top = np.max(x, axis=axis, keepdims=True, initial=-np.inf)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        return np.squeeze(np.log(np.sum(np.exp(x - top), axis=axis, keepdims=True)) + top, axis=axis)


class Oracle(NamedTuple):
    log_likelihood: np.ndarray
    stuck: np.ndarray
    pairs: np.ndarray
    counts: np.ndarray
    posterior: np.ndarray
    filtered: np.ndarray


def forward_backward(steps: StateSteps) -> Oracle:
    """In logarithms, one step and one sequence at a time."""
    S, T, K = steps.n_sequences, steps.n_steps, steps.n_states
    E = 0 if steps.table is None else len(steps.table)
    out = Oracle(
        np.zeros(S), np.full(S, -1), np.zeros(steps.matrices.shape), np.zeros((E, K)), np.zeros((K, T)), np.zeros((K, T))
    )
    b = log_b(steps)
    with np.errstate(divide="ignore"):
        logs = np.log(steps.matrices)
    for q in range(S):
        begin, end = steps.starts[q], steps.starts[q + 1]
        weight = 1.0 if steps.weights is None else steps.weights[q]
        alpha = np.full((end - begin + 1, K), -np.inf)
        alpha[0, 0] = 0.0
        for k, t in enumerate(range(begin, end)):
            alpha[k + 1] = log_sum(alpha[k][:, None] + logs[steps.codes[t]], axis=0) + b[t]
            total = log_sum(alpha[k + 1])
            if total == -np.inf:
                out.stuck[q] = k
                break
            out.filtered[:, t] = np.exp(alpha[k + 1] - total)
        out.log_likelihood[q] = -np.inf if out.stuck[q] >= 0 else total
        if out.stuck[q] >= 0:
            continue
        beta = np.zeros(K)
        for t in range(end - 1, begin - 1, -1):
            k, c = t - begin, steps.codes[t]
            gamma = np.exp(alpha[k + 1] + beta - total)
            out.posterior[:, t] = gamma
            if E:
                out.counts[steps.symbols[t]] += weight * gamma
            joint = alpha[k][:, None] + logs[c] + (b[t] + beta)[None, :]
            out.pairs[c] += weight * np.exp(joint - total)
            beta = log_sum(logs[c] + (b[t] + beta)[None, :], axis=1)
    return out


def chance(rng: np.random.Generator, shape: tuple[int, ...], zeros: float, power: float = 1.0) -> np.ndarray:
    x = rng.random(shape) ** power
    return np.where(rng.random(shape) < zeros, 0.0, x)


def any_steps(
    seed: int,
    lengths: list[int],
    K: int,
    *,
    C: int = 2,
    E: int = 3,
    zeros: float = 0.0,
    tabled: bool = True,
    dense: bool = False,
    each: bool = False,
    power: float = 1.0,
    weighted: bool = True,
) -> StateSteps:
    """Sequences of given lengths. Matrices are rows of probabilities, some of them 0; `each` step may have one of its own."""
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    T = int(starts[-1])
    codes = np.ones(T, np.int32)
    if C > 2:
        codes = rng.integers(1, C, T).astype(np.int32)
    codes[starts[:-1]] = 0
    if each:
        C, codes = T, np.arange(T, dtype=np.int32)
    matrices = chance(rng, (C, K, K), zeros, power)
    matrices /= np.maximum(matrices.sum(axis=-1, keepdims=True), 1e-300)
    likelihood = np.log(np.maximum(chance(rng, (K, T), zeros, power), 1e-320)) if dense else None
    if dense and zeros:
        likelihood[likelihood < -700] = -np.inf
    return StateSteps(
        starts,
        codes,
        matrices,
        symbols=rng.integers(0, E, T).astype(np.int32) if tabled else None,
        table=chance(rng, (E, K), zeros, power) if tabled else None,
        log_likelihood=likelihood,
        weights=rng.integers(0, 3, len(lengths)) / 2.0 if weighted else None,
    )


small = st.builds(
    any_steps,
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(1, 3),
    C=st.integers(2, 3),
    zeros=st.sampled_from([0.0, 0.3, 0.6]),
    tabled=st.just(True),
    dense=st.booleans(),
    each=st.booleans(),
    power=st.sampled_from([1.0, 30.0]),
)
dense_only = st.builds(
    any_steps,
    st.integers(0, 2**32 - 1),
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(1, 3),
    zeros=st.sampled_from([0.0, 0.3]),
    tabled=st.just(False),
    dense=st.just(True),
)
few = settings(max_examples=30, deadline=None)


@few
@given(small | dense_only)
def test_expectations_are_sums_over_all_paths(steps: StateSteps) -> None:
    found, weights = expect_states(steps), steps.weights
    pairs, counts = np.zeros_like(found.pairs), np.zeros_like(found.counts)
    for q in range(steps.n_sequences):
        paths, begin = all_paths(steps, q), steps.starts[q]
        total = log_sum(paths.log_prob)
        assert found.log_likelihood[q] == pytest.approx(float(total), abs=1e-10)
        assert (found.stuck[q] >= 0) == (total == -np.inf)
        p = np.exp(paths.log_prob - total) if np.isfinite(total) else np.zeros(len(paths.states))
        before = np.zeros(len(paths.states), int)
        for k in range(paths.states.shape[1]):
            here, t = paths.states[:, k], begin + k
            np.add.at(pairs[steps.codes[t]], (before, here), weights[q] * p)
            if steps.table is not None:
                np.add.at(counts[steps.symbols[t]], here, weights[q] * p)
            if steps.log_likelihood is not None:
                expected = np.bincount(here, p, steps.n_states)
                np.testing.assert_allclose(found.posterior[:, t], expected, atol=1e-12)
            before = here
    np.testing.assert_allclose(found.pairs, pairs, atol=1e-11)
    np.testing.assert_allclose(found.counts, counts, atol=1e-11)


@few
@given(small | dense_only, st.integers(1, 4))
def test_best_paths_are_the_best_of_all(steps: StateSteps, n: int) -> None:
    found, one = best_paths(steps, n), best_paths(steps)
    for q in range(steps.n_sequences):
        paths = all_paths(steps, q)
        part = slice(steps.starts[q], steps.starts[q + 1])
        order = np.argsort(-paths.log_prob, kind="stable")[:n]
        best = np.full(n, -np.inf)
        best[: len(order)] = paths.log_prob[order]
        np.testing.assert_allclose(found.log_prob[q], best, rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(one.log_prob[q], best[:1], rtol=1e-8, atol=1e-8)
        assert (one.paths[0, part] == found.paths[0, part]).all()
        seen = set()
        for r in range(n):
            path = found.paths[r, part]
            if best[r] == -np.inf:
                assert (path == -1).all()
            else:
                own = paths.log_prob[(paths.states == path).all(axis=1)]
                np.testing.assert_allclose(own, found.log_prob[q, r], rtol=1e-8, atol=1e-8)
                seen.add(tuple(path))
        assert len(seen) == np.isfinite(best).sum()


@few
@given(small | dense_only)
def test_filter_and_smoother_are_conditional_probabilities(steps: StateSteps) -> None:
    oracle = forward_backward(steps)
    found, smooth = filter_states(steps), smooth_states(steps)
    np.testing.assert_allclose(found.probabilities, oracle.filtered, atol=1e-12)
    np.testing.assert_allclose(smooth.probabilities, oracle.posterior, atol=1e-12)
    for one in (found, smooth):
        np.testing.assert_allclose(one.log_likelihood, oracle.log_likelihood, rtol=1e-12, atol=1e-12)
        np.testing.assert_array_equal(one.stuck, oracle.stuck)


def agree(steps: StateSteps, tolerance: float = 1e-10) -> None:
    """`expect_states` says what logarithms say."""
    oracle, found = forward_backward(steps), expect_states(steps)
    np.testing.assert_allclose(found.log_likelihood, oracle.log_likelihood, rtol=1e-11)
    np.testing.assert_array_equal(found.stuck, oracle.stuck)
    np.testing.assert_allclose(found.pairs, oracle.pairs, rtol=tolerance, atol=tolerance)
    if steps.table is not None:
        np.testing.assert_allclose(found.counts, oracle.counts, rtol=tolerance, atol=tolerance)
    if steps.log_likelihood is not None:
        np.testing.assert_allclose(found.posterior, oracle.posterior, atol=tolerance)


@pytest.mark.parametrize("kind", [{}, {"dense": True}, {"tabled": False, "dense": True}])
@pytest.mark.parametrize("zeros", [0.0, 0.2])
def test_longer_sequences_say_what_logarithms_say(kind: dict[str, bool], zeros: float) -> None:
    lengths = [int(n) for n in np.random.default_rng(1).integers(1, 60, 90)]
    agree(any_steps(3, lengths, 4, zeros=zeros, **kind))
    agree(any_steps(4, [100, 1, 3], 5, C=4, zeros=zeros, **kind))


@pytest.mark.parametrize("tabled", [True, False])
def test_small_likelihoods_do_not_underflow(tabled: bool) -> None:
    """States that the filter loses sight of, by 1e-300 a step, and that come back."""
    lengths = [40, 35, 2]
    steps = any_steps(5, lengths, 3, tabled=tabled, dense=not tabled)
    matrices = np.array([np.full((3, 3), 1 / 3), [[1, 0, 0], [0, 1, 0], [0, 0.5, 0.5]]])
    if tabled:
        table = np.array([[1.0, 1e-300, 1e-100], [1e-300, 1e-5, 1e-300], [1e-300, 1e-200, 1.0]])
        steps = StateSteps(steps.starts, steps.codes, matrices, symbols=steps.symbols, table=table)
    else:
        rng = np.random.default_rng(0)
        steps = StateSteps(steps.starts, steps.codes, matrices, log_likelihood=-900 * rng.random((3, steps.n_steps)))
    agree(steps)


def test_a_million_steps() -> None:
    steps = any_steps(6, [1_000_000], 2, E=2)
    tiny = StateSteps(steps.starts, steps.codes, steps.matrices, symbols=steps.symbols, table=steps.table * 1e-300)
    found, other = expect_states(steps), expect_states(tiny)
    assert np.isfinite(found.log_likelihood[0])
    np.testing.assert_allclose(other.log_likelihood, found.log_likelihood - 300 * np.log(10) * 1e6, rtol=1e-12)
    assert found.pairs.sum() == pytest.approx(1e6 * steps.weights[0])
    assert best_paths(tiny).log_prob[0, 0] <= other.log_likelihood[0]


def test_draws_follow_the_posterior() -> None:
    steps = any_steps(8, [3] * 20_000, 2, weighted=False)
    first = any_steps(8, [3], 2, weighted=False)
    same = StateSteps(steps.starts, steps.codes, first.matrices, symbols=np.tile(first.symbols, 20_000), table=first.table)
    drawn = draw_paths(same, np.random.default_rng(0).random(same.n_steps)).reshape(-1, 3)
    paths = all_paths(first, 0)
    p = np.exp(paths.log_prob - log_sum(paths.log_prob))
    share = np.bincount(drawn @ [4, 2, 1], minlength=8) / len(drawn)
    np.testing.assert_allclose(share, p, atol=0.015)


def test_draws_of_impossible_sequences_are_no_states() -> None:
    steps = any_steps(1, [3, 2], 2, weighted=False)
    barred = StateSteps(steps.starts, steps.codes, steps.matrices, symbols=steps.symbols * 0, table=np.zeros((1, 2)))
    assert (draw_paths(barred, np.full(5, 0.5)) == -1).all()


def test_exact_ties_go_to_the_smaller_state_in_any_order_of_sequences() -> None:
    rng = np.random.default_rng(0)
    K, lengths = 4, rng.integers(1, 50, 100)
    A = np.full((2, K, K), 0.2) + 0.2 * np.eye(K)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    codes = np.ones(starts[-1], np.int32)
    codes[starts[:-1]] = 0
    symbols = rng.integers(0, 2, starts[-1]).astype(np.int32)
    table = np.array([[0.3, 0.3, 0.1, 0.1], [0.1, 0.1, 0.3, 0.3]])
    one = best_paths(StateSteps(starts, codes, A, symbols=symbols, table=table))
    for q in range(100):
        part = slice(starts[q], starts[q + 1])
        alone = StateSteps(np.array([0, lengths[q]]), codes[part].copy(), A, symbols=symbols[part].copy(), table=table)
        other, both = best_paths(alone), best_paths(alone, 3)
        np.testing.assert_array_equal(other.paths[0], one.paths[0, part])
        np.testing.assert_array_equal(both.paths[0], one.paths[0, part])
    assert set(np.unique(one.paths)) == {0, 2}


def test_an_impossible_sequence_says_where_and_adds_nothing() -> None:
    table = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.5, 0.5]])
    starts, codes = np.array([0, 3, 6]), np.array([0, 1, 1] * 2, np.int32)
    symbols = np.array([0, 2, 1, 3, 3, 3], np.int32)
    found = expect_states(StateSteps(starts, codes, np.full((2, 2, 2), 0.5), symbols=symbols, table=table))
    np.testing.assert_array_equal(found.stuck, [1, -1])
    np.testing.assert_allclose(found.log_likelihood, [-np.inf, -3 * np.log(2)])
    np.testing.assert_allclose(found.counts, [[0, 0], [0, 0], [0, 0], [1.5, 1.5]])
    np.testing.assert_allclose(found.pairs.sum(axis=(1, 2)), [1, 2])


@pytest.mark.parametrize("kind", [{}, {"dense": True}, {"tabled": False, "dense": True}])
@pytest.mark.parametrize("K", [2, 5, 8, 12])
def test_blocks_are_one_piece(monkeypatch: pytest.MonkeyPatch, kind: dict[str, bool], K: int) -> None:
    """Sequences cut every 88 steps say what logarithms say of the whole."""
    for name, value in {"LONG": 100, "SHORTEST": 88, "LONGEST": 100, "AWAY": 8}.items():
        monkeypatch.setattr(finite, name, value)
    steps = any_steps(K, [900, 733, 101, 100, 5], K, **kind)
    steps = replace(steps, matrices=0.5 * steps.matrices + 0.5 / K)
    assert not len(finite.expect_in_lanes(steps, empty(steps)))
    agree(steps, 1e-11)


def empty(steps: StateSteps) -> Expectations:
    """Room for what is expected, but for counts where there are likelihoods too."""
    S, K = steps.n_sequences, steps.n_states
    n_symbols = len(steps.table) if steps.table is not None and steps.log_likelihood is None else 0
    posterior = np.zeros((K, 0 if steps.log_likelihood is None else steps.n_steps))
    return Expectations(np.zeros(S), np.full(S, -1), np.zeros(steps.matrices.shape), np.zeros((n_symbols, K)), posterior)


def test_a_chain_that_does_not_forget_is_not_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is a lane by itself, or left to logarithms if that takes too much memory."""
    for name, value in {"LONG": 100, "SHORTEST": 88, "LONGEST": 100, "AWAY": 8}.items():
        monkeypatch.setattr(finite, name, value)
    steps = any_steps(0, [600], 3)
    still = np.array([np.full((3, 3), 1 / 3), np.eye(3)])
    steps = StateSteps(steps.starts, steps.codes, still, symbols=steps.symbols, table=steps.table)
    for room, left in ((finite.WHOLE, []), (0, [0])):
        monkeypatch.setattr(finite, "WHOLE", room)
        assert finite.expect_in_lanes(steps, empty(steps)).tolist() == left
        agree(steps)


def test_what_scaling_loses_is_left_to_logarithms() -> None:
    """A state that is 1e-400 as probable as another, and the only one that is possible later on."""
    matrices = np.array([[[0.5, 0.5], [0.5, 0.5]], np.eye(2)])
    table = np.array([[1.0, 1e-200], [1e-200, 1.0]])
    symbols = np.array([0, 0, 1, 1, 1, 0, 1, 0], np.int32)
    steps = StateSteps(np.array([0, 5, 8]), np.array([0, 1, 1, 1, 1, 0, 1, 1], np.int32), matrices, symbols=symbols, table=table)
    agree(steps)


def test_what_a_lost_sequence_left_behind_is_not_used() -> None:
    """Memory is kept: here by five states, one of whose sequences is impossible, for three."""
    steps = any_steps(0, [9, 9, 9], 5, tabled=False, dense=True)
    assert steps.log_likelihood is not None
    steps.log_likelihood[:, 12] = -np.inf
    agree(steps)
    agree(any_steps(1, [9, 9, 9], 3, tabled=False, dense=True))


@few
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.sampled_from([0.0, 0.4]), st.sampled_from([1, 3, 64]))
def test_lanes_say_what_logarithms_say(seed: int, K: int, zeros: float, side: int) -> None:
    """For any number of states, lengths, and lanes side by side."""
    lengths = [int(n) for n in np.random.default_rng(seed).integers(1, 40, 12)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lanes, "LANES", side)
        for kind in ({}, {"dense": True}, {"tabled": False, "dense": True}):
            steps = any_steps(seed, lengths, K, zeros=zeros, **kind)
            agree(steps)
            one, general = best_paths(steps), best_paths(steps, 2)
            np.testing.assert_allclose(one.log_prob[:, 0], general.log_prob[:, 0], rtol=1e-12)
            np.testing.assert_array_equal(one.paths[0], general.paths[0])


def test_order_of_sequences_changes_nothing() -> None:
    steps = any_steps(11, [7, 30, 2, 30, 19], 4)
    other = any_steps(11, [7, 30, 2, 30, 19], 4)
    order = [3, 0, 4, 2, 1]
    rows = np.concatenate([np.arange(steps.starts[q], steps.starts[q + 1]) for q in order])
    starts = np.concatenate([[0], np.cumsum(np.diff(steps.starts)[order])])
    other = StateSteps(
        starts, steps.codes[rows], steps.matrices, symbols=steps.symbols[rows], table=steps.table, weights=steps.weights[order]
    )
    one, two = expect_states(steps), expect_states(other)
    np.testing.assert_allclose(two.log_likelihood, one.log_likelihood[order], rtol=1e-14)
    np.testing.assert_allclose(two.counts, one.counts, rtol=1e-13)
    np.testing.assert_allclose(two.pairs, one.pairs, rtol=1e-13)
    np.testing.assert_array_equal(best_paths(other).paths[0], best_paths(steps).paths[0, rows])


def test_long_sequences_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a few filters are kept at a time by the general kernels."""
    steps = any_steps(12, [50, 7, 8, 16, 1], 3, C=4)
    whole = expect_states(steps), filter_states(steps), best_paths(steps, 3), draw_paths(steps, np.full(82, 0.3))
    monkeypatch.setattr(finite, "STRETCH", 8)
    parts = expect_states(steps), filter_states(steps), best_paths(steps, 3), draw_paths(steps, np.full(82, 0.3))
    for one, two in zip(whole[:3], parts[:3], strict=True):
        for x, y in zip(one, two, strict=True):
            np.testing.assert_allclose(y, x, rtol=1e-13)
    np.testing.assert_array_equal(whole[3], parts[3])
    agree(steps)


def test_weights_are_repeats() -> None:
    steps = any_steps(13, [9, 4, 20], 3, weighted=False)
    weighted = StateSteps(
        steps.starts, steps.codes, steps.matrices, symbols=steps.symbols, table=steps.table, weights=np.array([2.0, 0.0, 1.0])
    )
    rows = np.r_[0:9, 0:9, 13:33]
    repeated = StateSteps(
        np.array([0, 9, 18, 38]), steps.codes[rows], steps.matrices, symbols=steps.symbols[rows], table=steps.table
    )
    one, two = expect_states(weighted), expect_states(repeated)
    np.testing.assert_allclose(one.pairs, two.pairs, rtol=1e-13)
    np.testing.assert_allclose(one.counts, two.counts, rtol=1e-13)


def normals_of(rng: np.random.Generator, K: int, C: int, n: int) -> StateNormals:
    """Numbers and states with any means and covariances."""
    padded = C + -C % 4
    centre, weight, base = np.zeros((K, padded)), np.zeros((K, padded, padded)), np.zeros((K, padded))
    centre[:, :C], base[:, :C] = rng.normal(size=(K, C)), rng.normal(size=(K, C))
    weight[:, :C, :C] = np.tril(rng.normal(size=(K, C, C)))
    used, pairs = np.ones((padded // 4, padded // 4), bool), np.ones((C, padded // 4), bool)
    return StateNormals(rng.normal(size=(C, n)), centre, weight, used, base, rng.normal(size=K), pairs)


@pytest.mark.parametrize("case", ["short", "weights", "long", "codes", "lost"])
@pytest.mark.parametrize("C", [1, 3, 6])
def test_moments_in_lanes_are_those_of_the_posterior(monkeypatch: pytest.MonkeyPatch, case: str, C: int) -> None:
    rng, K = np.random.default_rng(C), 3
    lengths = rng.integers(1, 40, 70) if case != "long" else np.array([900, 3])
    if case == "long":
        for name, value in (("LONG", 500), ("SHORTEST", 72), ("LONGEST", 136)):
            monkeypatch.setattr(finite, name, value)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    codes = np.ones(starts[-1], np.int32)
    codes[starts[:-1]] = 0
    matrices = rng.dirichlet(np.ones(K), (2, K))
    if case == "codes":  # no lanes
        codes[1:4] = 0
    normals = normals_of(rng, K, C, int(starts[-1]))
    if case == "lost":  # states that never change, and numbers that speak for one, then for the other
        matrices[1] = np.eye(K)
        normals.x[:, starts[3] : starts[4]] *= 1e3
    weights = rng.integers(0, 3, len(lengths)).astype(float) if case == "weights" else None
    steps = StateSteps(starts, codes, matrices, weights=weights)
    found, moments = expect_numbers(steps, normals)
    want = expect_states(replace(steps, log_likelihood=normals.log_likelihood()))
    share = want.posterior * (1.0 if weights is None else np.repeat(weights, lengths))
    for mine, theirs in ((found.log_likelihood, want.log_likelihood), (found.pairs, want.pairs), (found.stuck, want.stuck)):
        np.testing.assert_allclose(mine, theirs, rtol=1e-11, atol=1e-11)
    N = share.sum(axis=1)
    mean = share @ normals.x.T / N[:, None]
    off = normals.x[None] - mean[:, :, None]
    np.testing.assert_allclose(moments.weight, N, rtol=1e-11)
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-9, atol=1e-11 * np.abs(normals.x).max())
    scatter = np.einsum("kt,kat,kbt->kab", share, off, off)
    np.testing.assert_allclose(np.tril(moments.scatter), np.tril(scatter), rtol=1e-9, atol=1e-10 * np.abs(scatter).max())


def test_exponentials_to_the_last_digit() -> None:
    from suffice.numerics.kernels.chains.state_normals import exponentials

    x = np.concatenate([-np.linspace(0.0, 706.0, 20_001), [-707.5, -1e4, -np.inf]])
    b, top = np.stack([np.full(len(x), 3.0), 3.0 + x]), np.empty(len(x))
    exponentials(b, 2, top)
    assert (top == 3.0).all()
    assert (b[0] == 1.0).all()
    exact = np.exp((3.0 + x) - 3.0)
    np.testing.assert_allclose(b[1, :-3], exact[:-3], rtol=3e-16)
    assert (b[1, -3:] == 0.0).all()
