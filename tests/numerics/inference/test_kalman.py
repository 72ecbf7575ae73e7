"""Kalman filter and smoother: against the joint normal of all steps, and statsmodels' numbers for the Nile."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suffice.errors import ModelError
from suffice.numerics.inference.chains.linear import gaussian, steady
from suffice.numerics.inference.chains.linear.gaussian import (
    LinearSteps,
    draw_states,
    expected_states,
    filter_states,
    smooth_states,
)

# fmt: off
NILE = np.array([
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
    1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969, 831,
    726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759, 781, 865, 845,
    944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890, 744, 749, 838, 1050, 918,
    986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
], float)
# fmt: on


def nile(y=NILE, noise=15099.0, step=1469.1, diffuse=False) -> LinearSteps:
    """The local level model of the Nile's flow."""
    first = (0.0, 0.0) if diffuse else (1000.0, 1e6)
    return LinearSteps(
        [0, len(y)],
        [0] + [1] * (len(y) - 1),
        [[[0.0]], [[1.0]]],
        [[[first[1]]], [[step]]],
        [[first[0]], [0.0]],
        y[:, None],
        [[[1.0]]],
        [[noise]],
        diffuse=[[diffuse], [False]],
    )


def forecast_states(steps, last, codes, f_steps=None):
    """The filter goes on over steps whose outputs are all missing."""
    n_sequences, n, m = len(last[0]), np.shape(codes)[-1], steps.m
    future = replace(
        steps,
        starts=np.arange(n_sequences + 1) * n,
        codes=np.broadcast_to(codes, (n_sequences, n)).ravel(),
        y=np.full((n_sequences * n, steps.y.shape[1]), np.nan),
        f_steps=np.zeros((0, m)) if f_steps is None else np.reshape(f_steps, (-1, m)),
        output_codes=np.zeros(n_sequences * n, np.int32),
    )
    ahead = filter_states(future, last)
    return ahead.means.reshape(-1, n, m), ahead.covariances.reshape(-1, n, m, m)


def test_nile():
    found = smooth_states(nile())
    assert found.log_likelihoods == pytest.approx([-640.3805408207], abs=1e-10)
    assert found.means[[0, 27, 99], 0] == pytest.approx([1111.21986307, 999.58511667, 798.37029261], abs=1e-8)
    assert found.covariances[[0, 27, 99], 0, 0] == pytest.approx([4015.96493689, 2326.75695726, 4032.15794181], abs=1e-8)


def test_nile_forecast():
    means, covariances = forecast_states(nile(), filter_states(nile()).last, [1, 1, 1])
    assert means.ravel() == pytest.approx([798.37029261] * 3, abs=1e-8)
    assert covariances.ravel() + 15099.0 == pytest.approx(20600.2579418 + 1469.1 * np.arange(3), abs=1e-7)


@pytest.mark.parametrize("diffuse", [False, True])
def test_forecast_is_smoothing_of_missing_steps(diffuse):
    rng = np.random.default_rng(5)
    steps = random_steps(rng, 3, 2, [6, 6], diffuse=diffuse, missing=0.1)
    y = steps.y.reshape(2, 6, 2).copy()
    y[:, 4:] = np.nan
    whole = smooth_states(replace(steps, y=y.reshape(-1, 2)))
    at = np.array([0, 1, 2, 3, 6, 7, 8, 9])
    rows = {name: getattr(steps, name)[at] for name in ("codes", "y", "f_steps", "output_codes")}
    past = replace(steps, starts=[0, 4, 8], **rows)
    codes, f_steps = steps.codes.reshape(2, 6)[:, 4:], steps.f_steps.reshape(2, 6, 3)[:, 4:]
    means, covariances = forecast_states(past, filter_states(past).last, codes, f_steps)
    np.testing.assert_allclose(means, whole.means.reshape(2, 6, 3)[:, 4:], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(covariances, whole.covariances.reshape(2, 6, 3, 3)[:, 4:], rtol=1e-9, atol=1e-9)


def test_nile_missing():
    y = NILE.copy()
    y[20:40] = y[60:80] = np.nan
    found = smooth_states(nile(y))
    assert found.log_likelihoods == pytest.approx([-388.4219399199], abs=1e-10)
    assert found.means[[29, 69], 0] == pytest.approx([903.42000483, 837.17732317], abs=1e-8)
    assert found.covariances[[29, 69], 0, 0] == pytest.approx([9715.00580, 9715.00555], abs=5e-6)


def test_nile_diffuse():
    steps = nile(noise=15098.52, step=1469.18, diffuse=True)
    found = smooth_states(steps)
    assert found.log_likelihoods == pytest.approx([-633.46456364], abs=1e-8)
    assert filter_states(steps).log_likelihoods == pytest.approx(found.log_likelihoods, abs=1e-10)
    before = filter_states(nile(np.full(3, np.nan), diffuse=True))
    assert np.isinf(before.covariances).all()


def random_steps(rng, m, p, lengths, *, missing=0.3, exact=False, lag=False, diffuse=False, inputs=True, size=0.6):
    """A model with two first codes and two others, and outputs drawn from it.

    With `lag` the last coordinate is a copy of the first, one step earlier.
    """
    F, Q = rng.normal(size=(4, m, m)) * size, np.zeros((4, m, m))
    F[:2] = 0.0
    for c in range(4):
        A = rng.normal(size=(m, m))
        if lag:
            A[-1] = 0.0
            F[c, -1] = np.eye(m)[0] * (c > 1)
        Q[c] = A @ A.T
    codes = np.concatenate([[rng.integers(2), *rng.integers(2, 4, n - 1)] for n in lengths]).astype(np.int32)
    T = len(codes)
    H, R = rng.normal(size=(2, p, m)), rng.uniform(0.1, 2.0, (2, p))
    if exact:
        H[:, 0], R[:, 0] = np.eye(m)[0], 0.0
        H[:, -1], R[:, -1] = np.eye(m)[-1], 0.0
    steps = LinearSteps(
        np.concatenate([[0], np.cumsum(lengths)]),
        codes,
        F,
        Q,
        rng.normal(size=(4, m)),
        np.zeros((T, p)),
        H,
        R,
        rng.normal(size=(T, m)) if inputs else None,
        rng.integers(0, 2, T),
        np.concatenate([rng.random((2, m)) < 0.7, np.zeros((2, m))]) if diffuse else None,
    )
    y = np.zeros((T, p))
    for s in range(len(lengths)):
        z = np.zeros(m)
        for t in range(*steps.starts[s : s + 2]):
            c, o = codes[t], steps.output_codes[t]
            z = F[c] @ z + steps.f[c] + psd_root(Q[c]) @ rng.normal(size=m)
            z += steps.f_steps[t] if inputs else 0.0
            y[t] = H[o] @ z + np.sqrt(R[o]) * rng.normal(size=p)
    y[rng.random((T, p)) < missing] = np.nan
    return replace(steps, y=y)


def psd_root(Q):
    values, vectors = np.linalg.eigh(Q)
    return vectors * np.sqrt(values.clip(0))


def dense(steps: LinearSteps, s: int, upto: int | None = None):
    """log L, means [n, m] and covariances [n, m, n, m] of the states of a sequence given its outputs, by the joint normal."""
    low, high = steps.starts[s : s + 2]
    n, m, p = high - low, steps.m, steps.y.shape[1]
    mean, A = np.zeros((n, m)), np.zeros((n, m, n, m))
    B = np.zeros((n, m, n, m))  # directions without prior, one for each step and coordinate
    for i, t in enumerate(range(low, high)):
        c = steps.codes[t]
        mean[i] = steps.f[c] + (steps.f_steps[t] if len(steps.f_steps) else 0)
        if i:
            mean[i] += steps.F[c] @ mean[i - 1]
            A[i], B[i] = np.tensordot(steps.F[c], A[i - 1], 1), np.tensordot(steps.F[c], B[i - 1], 1)
        A[i, :, i] += psd_root(steps.Q[c] + np.diag(steps.diffuse[c]))  # flat is flat
        B[i, :, i] += np.diag(steps.diffuse[c])
    A, B = A.reshape(n * m, -1), B.reshape(n * m, -1)
    B = B[:, np.abs(B).max(axis=0) > 0]
    S = A @ A.T
    y = steps.y[low : high if upto is None else low + upto + 1]
    H = np.zeros((n, p, n, m))
    H[np.arange(n), :, np.arange(n)] = steps.H[steps.output_codes[low:high]]
    seen = np.flatnonzero(~np.isnan(y.ravel()))
    H, R, v = H.reshape(n * p, n * m)[seen], steps.R[steps.output_codes[low:high]].ravel()[seen], y.ravel()[seen]
    v = v - H @ mean.ravel()
    keep = []
    for i in range(len(seen)):  # outputs that those before them determine say nothing
        rows = [*keep, i]
        root = np.linalg.svd(np.hstack([H[rows] @ A, H[rows] @ B * 10, np.diag(np.sqrt(R[rows]))]), compute_uv=False)
        if R[i] > 0 or root[-1] > 1e-7:
            keep.append(i)
    H, R, v = H[keep], R[keep], v[keep]
    V = H @ S @ H.T + np.diag(R)
    X, inverse = H @ B, np.linalg.inv(V)
    G = S @ H.T @ inverse
    information = X.T @ inverse @ X
    values = np.linalg.eigvalsh(information) if len(information) else np.ones(0)
    values = values[values > 1e-9 * values.max(initial=1e-300)]
    free = np.linalg.pinv(information, rcond=1e-9, hermitian=True)
    beta = free @ X.T @ inverse @ v
    e = v - X @ beta
    log_likelihood = -0.5 * (len(v) * np.log(2 * np.pi) + np.linalg.slogdet(V)[1] + np.log(values).sum() + e @ inverse @ v)
    z = mean.ravel() + B @ beta + G @ e
    D = B - G @ X
    covariance = S - G @ H @ S + D @ free @ D.T
    left = np.abs(B - B @ free @ information).max(axis=1, initial=0)
    known = left <= 1e-7 * np.abs(B).max(axis=1, initial=0)  # of what F has made small, a small rest is still without prior
    return log_likelihood, z.reshape(n, m), covariance.reshape(n, m, n, m), known.reshape(n, m)


@given(
    seed=st.integers(0, 2**32),
    m=st.integers(1, 4),
    p=st.integers(1, 3),
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    missing=st.sampled_from([0.0, 0.3, 0.8, 1.0]),
    exact=st.booleans(),
    lag=st.booleans(),
    inputs=st.booleans(),
)
@settings(max_examples=60)
def test_joint_normal(seed, m, p, lengths, missing, exact, lag, inputs):
    rng = np.random.default_rng(seed)
    steps = random_steps(rng, m, p, lengths, missing=missing, exact=exact, lag=lag and m > 1, inputs=inputs)
    groups, weights = rng.integers(0, 3, len(steps.codes)), rng.uniform(0.5, 2, len(lengths))
    check(steps, groups, weights)


def check(steps, groups, weights):
    """All answers are those of the joint normal."""
    found, filtered = smooth_states(steps, lagged=True), filter_states(steps)
    expected, m = expected_states(steps, groups, 3, weights=weights), steps.m
    sums = np.zeros((3, 2 * m, 2 * m))
    for s, (low, high) in enumerate(zip(steps.starts[:-1], steps.starts[1:], strict=True)):
        log_likelihood, z, covariance, known = dense(steps, s)
        assert found.log_likelihoods[s] == pytest.approx(log_likelihood, abs=1e-7)
        assert filtered.log_likelihoods[s] == pytest.approx(log_likelihood, abs=1e-7)
        assert expected.log_likelihoods[s] == pytest.approx(log_likelihood, abs=1e-7)
        for i, t in enumerate(range(low, high)):
            scale = 1 + np.abs(covariance[i, :, i]).max()
            k = known[i]
            np.testing.assert_allclose(found.means[t][k], z[i][k], rtol=1e-6, atol=1e-7 * scale)
            np.testing.assert_allclose(expected.means[t][k], z[i][k], rtol=1e-6, atol=1e-7 * scale)
            np.testing.assert_allclose(found.covariances[t][k][:, k], covariance[i, :, i][k][:, k], rtol=1e-6, atol=1e-7 * scale)
            joint = np.zeros((2, m, 2, m))
            joint[0, :, 0] = covariance[i, :, i]
            if i:
                joint[:, :, :, :] = covariance[i - 1 : i + 1, :, i - 1 : i + 1][::-1, :, ::-1]
                both = k[:, None] & known[i - 1]
                np.testing.assert_allclose(found.lagged[t][both], joint[0, :, 1][both], rtol=1e-6, atol=1e-7 * scale)
            sums[groups[t]] += weights[s] * joint.reshape(2 * m, 2 * m)
            _, z_now, covariance_now, known_now = dense(steps, s, i)
            k = known_now[i]
            np.testing.assert_allclose(filtered.means[t][k], z_now[i][k], rtol=1e-6, atol=1e-7 * scale)
            np.testing.assert_allclose(
                filtered.covariances[t][k][:, k], covariance_now[i, :, i][k][:, k], rtol=1e-6, atol=1e-7 * scale
            )
            assert np.isinf(np.diag(filtered.covariances[t])[~k]).all()
        if not known.all():
            return
    np.testing.assert_allclose(expected.sums, sums, rtol=1e-6, atol=1e-6 * (1 + np.abs(sums).max()))


@given(
    seed=st.integers(0, 2**32),
    m=st.integers(1, 4),
    p=st.integers(1, 3),
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=3),
    missing=st.sampled_from([0.0, 0.3, 0.8]),
    exact=st.booleans(),
    lag=st.booleans(),
)
@settings(max_examples=40)
def test_diffuse_joint_normal(seed, m, p, lengths, missing, exact, lag):
    rng = np.random.default_rng(seed)
    steps = random_steps(rng, m, p, lengths, missing=missing, exact=exact, lag=lag and m > 1, diffuse=True)
    check(steps, rng.integers(0, 3, len(steps.codes)), rng.uniform(0.5, 2, len(lengths)))


@pytest.mark.parametrize("diffuse", [False, True])
def test_draws(diffuse):
    rng = np.random.default_rng(3)
    steps = random_steps(rng, 2, 2, [5, 1, 8], missing=0.2, diffuse=diffuse)
    draws = draw_states(steps, rng.standard_normal((20_000, len(steps.codes), 4)))
    exact = smooth_states(steps, lagged=True)
    deviation = np.sqrt(np.diagonal(exact.covariances, axis1=1, axis2=2))
    assert np.abs((draws.mean(axis=0) - exact.means) / deviation).max() < 0.03
    shape = deviation[:, :, None] * deviation[:, None]
    centred = draws - exact.means
    assert np.abs((np.einsum("dti,dtj->tij", centred, centred) / len(draws) - exact.covariances) / shape).max() < 0.04
    lagged = np.einsum("dti,dtj->tij", centred[:, 1:], centred[:, :-1]) / len(draws)
    inside = ~np.isin(np.arange(1, len(steps.codes)), steps.starts)
    assert np.abs((lagged - exact.lagged[1:])[inside]).max() < 0.05 * shape.max()


@pytest.mark.parametrize("fewest", [0, 10**9])
def test_vague_start_keeps_digits(fewest, monkeypatch):
    """A slope of variance 10¹⁰ that the outputs tell to 10⁻³: as good as none, and no worse."""
    monkeypatch.setattr(gaussian, "FEWEST", fewest)
    rng, n = np.random.default_rng(0), 400
    F, Q = np.array([[1.0, 1.0], [0.0, 1.0]]), np.diag([0.1, 1e-3])
    y = np.cumsum(0.3 + rng.normal(size=(4, n)), axis=1).reshape(-1, 1)
    answers = []
    for variance, diffuse in ((1e10, False), (0.0, True)):
        first = np.eye(2) * variance
        steps = LinearSteps(
            np.arange(5) * n,
            np.tile(np.r_[0, np.ones(n - 1)], 4),
            [0 * F, F],
            [first, Q],
            np.zeros((2, 2)),
            y,
            [[[1.0, 0.0]]],
            [[1.0]],
            diffuse=[[diffuse] * 2, [False] * 2],
        )
        answers.append((expected_states(steps, steps.codes, 2), smooth_states(steps, lagged=True)))
    (sums, one), (others, other) = answers
    assert one.log_likelihoods + np.log(1e10) == pytest.approx(other.log_likelihoods, rel=1e-8)
    np.testing.assert_allclose(one.means, other.means, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(one.covariances, other.covariances, rtol=1e-6)
    np.testing.assert_allclose(one.lagged, other.lagged, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(sums.sums, others.sums, rtol=1e-6, atol=1e-9)


def test_impossible():
    y = np.array([[1.0], [1.0], [2.0], [1.0]])
    F, Q = [[[0.0]], [[1.0]]], [[[1.0]], [[0.0]]]
    steps = LinearSteps([0, 2, 4], [0, 1, 0, 1], F, Q, np.zeros((2, 1)), y, [[[1.0]]], [[0.0]])
    for found in (smooth_states(steps), filter_states(steps), expected_states(steps, [0] * 4, 1)):
        assert found.log_likelihoods == pytest.approx([-0.5 * np.log(2 * np.pi) - 0.5, -np.inf])
        assert list(found.impossible) == [-1, 1]


def test_refusals():
    F, Q, f = [[[0.0]]], [[[1.0]]], [[0.0]]
    with pytest.raises(ModelError, match="code 0 starts coordinates without prior"):
        LinearSteps([0, 2], [0, 0], F, Q, f, [[1.0], [2.0]], [[[1.0]]], [[1.0]], diffuse=[[True]])
    one = LinearSteps([0, 2], [0, 0], F, Q, f, [[1.0], [2.0]], [[[1.0]]], [[1.0]])
    with pytest.raises(ModelError, match="as many sequences"):
        filter_states(one.repeat(2), filter_states(one).last)


def test_no_outputs():
    steps = LinearSteps(
        [0, 3], [0, 1, 1], [[[0.0]], [[0.5]]], [[[1.0]]] * 2, [[1.0]] * 2, np.zeros((3, 0)), np.zeros((1, 0, 1)), np.zeros((1, 0))
    )
    found = smooth_states(steps)
    assert found.means[:, 0] == pytest.approx([1.0, 1.5, 1.75])
    assert found.log_likelihoods == [0.0]


def test_empty_and_long():
    none = LinearSteps([0], [], [[[0.0]]], [[[1.0]]], [[0.0]], np.zeros((0, 1)), [[[1.0]]], [[1.0]])
    assert smooth_states(none).means.shape == (0, 1)
    assert filter_states(none).log_likelihoods.shape == (0,)
    rng = np.random.default_rng(0)
    long = random_steps(rng, 2, 1, [10000, 3], inputs=False, size=0.2)
    parts = [expected_states(long, long.codes, 4), smooth_states(long)]
    assert parts[0].means == pytest.approx(parts[1].means, abs=1e-12)
    cut = 9000
    first = replace(long, starts=[0, cut], codes=long.codes[:cut], y=long.y[:cut], output_codes=long.output_codes[:cut])
    rest = replace(
        long, starts=[0, 1000], codes=long.codes[cut:10000], y=long.y[cut:10000], output_codes=long.output_codes[cut:10000]
    )
    filtered, whole = filter_states(first), filter_states(long)
    after = filter_states(rest, filtered.last)
    assert (filtered.log_likelihoods + after.log_likelihoods)[0] == pytest.approx(parts[0].log_likelihoods[0], abs=1e-8)
    assert np.array_equal(after.covariances, whole.covariances[cut:10000])
    np.testing.assert_allclose(whole.means[9999], parts[1].means[9999], atol=1e-12)


@given(
    seed=st.integers(0, 2**32),
    m=st.integers(1, 5),
    p=st.integers(1, 6),
    lengths=st.lists(st.integers(1, 9) | st.integers(50, 300), min_size=2, max_size=12),
    kind=st.sampled_from(["complete", "column", "same", "some"]),
    diffuse=st.booleans(),
    inputs=st.booleans(),
    piece=st.sampled_from([16, 1024]),
)
@settings(max_examples=30)
def test_side_by_side_is_one_by_one(seed, m, p, lengths, kind, diffuse, inputs, piece):
    rng = np.random.default_rng(seed)
    steps = random_steps(rng, m, p, lengths, missing=0.0, diffuse=diffuse, inputs=inputs, size=0.4 / np.sqrt(m))
    T, within = len(steps.codes), np.concatenate([np.arange(n) for n in lengths])
    y = rng.normal(size=(T, p)) * 3
    if kind == "column":
        y[:, 0] = np.nan
    elif kind == "same":
        y[np.isin(within, [1, 3, 4, 20]), -1] = np.nan
    elif kind == "some":
        y[: T // 3][rng.random((T // 3, p)) < 0.3] = np.nan
    steps = replace(steps, codes=np.where(within == 0, 1, 2), output_codes=np.minimum(within, 1), y=y)
    groups, weights = rng.integers(0, 3, T), rng.uniform(0.5, 2, len(lengths))
    answers = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(steady, "PIECE", piece)
        patch.setattr(steady, "LANES", 5)
        for fewest in (0, 10**9):
            patch.setattr(gaussian, "FEWEST", fewest)
            answers.append((expected_states(steps, groups, 3, weights=weights), smooth_states(steps, lagged=True)))
    for one, other in zip(*answers, strict=True):
        for name, value, same in zip(one._fields, one, other, strict=True):
            scale = np.abs(np.where(np.isfinite(same), same, 0.0)).max(initial=1.0)
            np.testing.assert_allclose(value, same, rtol=1e-10, atol=1e-10 * scale, err_msg=name)
