"""Hidden Markov models: published numbers, a plain forward–backward, `em`, `fit`, and laws of order, weights and names."""

from __future__ import annotations

import pickle
import warnings
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest

import suffice as sf
from suffice.errors import DataError, FitError, SufficeNote
from suffice.incomplete.chains import chain_batches
from suffice.incomplete.first_slices import Given, Stationary
from suffice.interfaces.estimators import HMM
from suffice.learning.chains.chain_covariance import StateProblem
from suffice.learning.incomplete.climb import evaluate
from suffice.learning.latent.mixture_setup import Kind
from suffice.models.chain import Chain
from suffice.numerics.kernels.chains.state_normals import CHUNK, score_normals, sum_normals
from suffice.recipes.latent.hmm import hmm

KINDS: dict[Kind, int] = {sf.latent.Full(): 18, sf.latent.Tied(): 6, sf.latent.Diagonal(): 9, sf.latent.Spherical(): 3}
"""Covariances of 3 columns in 3 states, and how many numbers they are."""

PRIOR = (sf.Dirichlet(1), sf.NormalInverseGamma())

# Earthquakes of magnitude 7 and more in the world, 1900 to 2006: Zucchini & MacDonald, Hidden Markov Models for Time Series.
TEXT = """
13 14 8 10 16 26 32 27 18 32 36 24 22 23 22 18 25 21 21 14 8 11 14 23 18 17 19 20 22 19 13 26 13 14 22 24 21 22 26 21 23
24 27 41 31 27 35 26 28 36 39 21 17 22 17 19 15 34 10 15 22 18 15 20 15 22 19 16 30 27 29 23 20 16 21 21 25 16 18 15 18
14 10 15 8 15 6 11 8 7 18 16 13 12 13 20 15 16 12 18 15 16 13 15 16 11 11
"""
QUAKES = [int(x) for x in TEXT.split()]


@pytest.fixture(scope="module")
def quakes() -> Any:
    return sf.sequences({"n": QUAKES}, variables={"n": sf.Count("n")})


def walks(n: int = 12, length: int = 50, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sequences of three states with three columns: the sequence, the state and the numbers of each step."""
    rng = np.random.default_rng(seed)
    means = np.array([[0.0, 0, 0], [3, 1, -2], [-2, 3, 1]])
    roots = np.array([[[1, 0, 0], [0.5, 1, 0], [0, 0.3, 0.7]], [[0.5, 0, 0], [0, 0.8, 0], [0.4, 0, 1]], np.eye(3)])
    state = np.zeros(n * length, np.int64)
    for t in range(len(state)):
        stay = t % length > 0 and rng.random() < 0.8
        state[t] = state[t - 1] if stay else rng.integers(3)
    x = means[state] + np.einsum("tij,tj->ti", roots[state], rng.normal(size=(len(state), 3)))
    return np.repeat(np.arange(n), length), state, x


def rows_of(ids: Any, x: Any, **more: Any) -> Any:
    return sf.sequences({"id": ids, **{c: x[:, j] for j, c in enumerate("abc")}, **more}, by="id")


def emissions(x: Any, means: Any, covariances: Any) -> Any:
    """ln p(step | state), state × step."""
    logs = []
    for m, C in zip(means, covariances, strict=True):
        off = x - m
        logs.append(-0.5 * (np.einsum("ti,ij,tj->t", off, np.linalg.inv(C), off) + np.linalg.slogdet(2 * np.pi * C)[1]))
    return np.array(logs)


def plain_forward_backward(ids: Any, logs: Any, start: Any, transition: Any) -> tuple[float, Any, Any, Any]:
    """ln L, the posteriors of the steps, the expected starts and transitions: no scaling but by step."""
    total, posterior, starts, pairs = 0.0, np.zeros_like(logs), np.zeros(len(start)), np.zeros_like(transition)
    for q in np.unique(ids):
        steps = np.flatnonzero(ids == q)
        b = np.exp(logs[:, steps] - logs[:, steps].max(axis=0))
        alpha, scale = np.zeros_like(b), np.zeros(len(steps))
        for t in range(len(steps)):
            a = (start if t == 0 else alpha[:, t - 1] @ transition) * b[:, t]
            scale[t] = a.sum()
            alpha[:, t] = a / scale[t]
        beta = np.ones_like(b)
        for t in range(len(steps) - 2, -1, -1):
            beta[:, t] = transition @ (b[:, t + 1] * beta[:, t + 1]) / scale[t + 1]
            pairs += alpha[:, t][:, None] * transition * (b[:, t + 1] * beta[:, t + 1])[None, :] / scale[t + 1]
        posterior[:, steps] = alpha * beta
        starts += posterior[:, steps[0]]
        total += np.log(scale).sum() + logs[:, steps].max(axis=0).sum()
    return total, posterior, starts / starts.sum(), pairs


def covariances_of(kind: Kind, weight: Any, scatter: Any) -> Any:
    """The estimate of each kind from Σ γ and Σ γ (x − m)(x − m)ᵀ."""
    d = scatter.shape[1]
    if kind == sf.latent.Full():
        return scatter / weight[:, None, None]
    if kind == sf.latent.Tied():
        return np.broadcast_to(scatter.sum(axis=0) / weight.sum(), scatter.shape)
    variances = np.diagonal(scatter, axis1=1, axis2=2) / weight[:, None]
    if kind == sf.latent.Spherical():
        variances = np.repeat(variances.mean(axis=1)[:, None], d, axis=1)
    return variances[:, :, None] * np.eye(d)


def test_earthquakes(quakes: Any) -> None:
    free = {1: -391.9189281655, 2: -341.8787, 3: -328.5275}
    for k, value in free.items():
        assert hmm(quakes, k, starts=4).log_likelihood == pytest.approx(value, abs=1e-4)
    three = hmm(quakes, 3, starts=2, tol=1e-10)
    np.testing.assert_allclose(np.sort(three.rates["n"]), [13.13374, 19.71312, 29.70964], rtol=1e-5)
    np.testing.assert_allclose(three.start[np.argsort(three.rates["n"])], [1, 0, 0], atol=1e-6)


def test_four_states_of_earthquakes_beyond_local_optima(quakes: Any) -> None:
    run = hmm(quakes, 4)
    assert run.log_likelihood > -326.6749  # what the book's program reached; ours is a better optimum
    assert len(run.optima) == 10
    assert run.optima[0].objective == run.objective
    assert run.n_parameters == 3 + 12 + 4


@pytest.mark.parametrize(("k", "value"), [(2, -346.625298), (3, -335.433673)])
def test_best_paths_of_earthquakes_at_full_convergence(quakes: Any, k: int, value: float) -> None:
    run = hmm(quakes, k, starts=1, tol=0, max_iter=200)
    assert run.icl + 0.5 * run.n_parameters * np.log(107) == pytest.approx(value, abs=1e-6)
    assert run.model.decode(quakes).log_prob[0] == pytest.approx(value, abs=1e-6)


def test_stationary_earthquakes(quakes: Any) -> None:
    two = hmm(quakes, 2, first=Stationary(), starts=1, tol=1e-8)
    assert two.log_likelihood == pytest.approx(-342.3183, abs=1e-4)
    assert (-2 * two.aic, -2 * two.bic) == (pytest.approx(692.6365, abs=1e-3), pytest.approx(703.3278, abs=1e-3))
    run = hmm(quakes, 3, first=Stationary(), starts=1, tol=1e-11)
    assert run.log_likelihood == pytest.approx(-329.4603, abs=1e-4)
    order = np.argsort(run.rates["n"])
    np.testing.assert_allclose(run.rates["n"][order], [13.14573, 19.72101, 29.71437], rtol=1e-5)
    transition = [[0.9546243, 0.0244426, 0.0209331], [0.0497668, 0.8993673, 0.0508659], [0, 0.1966420, 0.8033580]]
    np.testing.assert_allclose(run.transition[np.ix_(order, order)], transition, atol=5e-6)
    np.testing.assert_allclose(run.start[order], [0.4436420, 0.4044983, 0.1518597], atol=1e-5)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_steps_of_em_against_a_plain_forward_backward(kind: Kind) -> None:
    ids, _, x = walks()
    rows = rows_of(ids, x)
    first = hmm(rows, 3, covariance=kind, starts=2, max_iter=2, tol=0)
    run = hmm(rows, 3, covariance=kind, start=first, max_iter=1, tol=0)
    logs, gamma, start, pairs = plain_forward_backward(
        ids, emissions(x, first.means, first.covariances), first.start, first.transition
    )
    assert first.log_likelihood == pytest.approx(logs, rel=1e-11)
    N = gamma.sum(axis=1)
    means = gamma @ x / N[:, None]
    off = x[None] - means[:, None]
    C = covariances_of(kind, N, np.einsum("kt,kti,ktj->kij", gamma, off, off))
    transition = pairs / pairs.sum(axis=1, keepdims=True)
    after = plain_forward_backward(ids, emissions(x, means, C), start, transition)
    order = np.lexsort((means[:, 0], -after[1].sum(axis=1).round(6)))
    assert run.log_likelihood == pytest.approx(after[0], rel=1e-11)
    np.testing.assert_allclose(run.means, means[order], rtol=1e-8)
    np.testing.assert_allclose(run.covariances, C[order], rtol=1e-7, atol=1e-10)
    np.testing.assert_allclose(run.transition, transition[np.ix_(order, order)], rtol=1e-8)
    np.testing.assert_allclose(run.start, start[order], rtol=1e-8, atol=1e-12)
    assert run.n_parameters == 2 + 6 + 9 + KINDS[kind]
    assert run.bic == pytest.approx(run.log_likelihood - 0.5 * run.n_parameters * np.log(len(x)))
    np.testing.assert_allclose(run.weights, after[1].sum(axis=1)[order] / len(x), rtol=1e-8)


@pytest.mark.parametrize("kind", [sf.latent.Tied(), sf.latent.Spherical()], ids=repr)
@pytest.mark.parametrize("estimate", [sf.Mean(), sf.Mode()], ids=repr)
def test_shared_variances_maximise_the_objective_with_a_prior(kind: Kind, estimate: Any, monkeypatch: Any) -> None:
    ids, _, x = walks(4, 40)
    made: list[StateProblem] = []
    monkeypatch.setattr(StateProblem, "sticking", lambda self, name, s: made.append(self) or self)
    x[:, 1] *= 100.0  # columns have units of their own
    prior = (sf.Dirichlet(1), sf.NormalInverseGamma(3, 9))
    run = hmm(rows_of(ids, x), 2, covariance=kind, prior=prior, estimate=estimate, starts=1, tol=1e-12, max_iter=3000)
    problem = made[-1]
    best = problem.parameters({n: run.model[n] for n in run.model})
    top = evaluate(problem, best).objective
    assert top == pytest.approx(run.objective, rel=1e-12)
    for name in "abc":
        cpd: Any = best.others[name]
        for other in (
            {n: moved_gaussian(best.others[n], variance=factor) for n in ("abc" if kind == sf.latent.Spherical() else name)}
            for factor in (0.98, 1.02)
        ):
            moved = type(best)(best.tables, best.cells, {**best.others, **other})
            assert evaluate(problem, moved).objective < top - 1e-4
        for shift in (-0.05, 0.05):
            other = {name: moved_gaussian(cpd, shift=shift)}
            assert evaluate(problem, type(best)(best.tables, best.cells, {**best.others, **other})).objective < top - 1e-4


def moved_gaussian(cpd: Any, variance: float = 1.0, shift: float = 0.0) -> Any:
    """A Gaussian with other variances, intercepts and coefficients."""
    return replace(cpd, variance=cpd.variance * variance, intercept=cpd.intercept + shift, coefficients=cpd.coefficients + shift)


@pytest.mark.parametrize("kind", KINDS, ids=repr)
def test_climbs_never_fall(kind: Kind) -> None:
    ids, _, x = walks(5, 40)
    holes = np.where(np.random.default_rng(1).random(x.shape) < 0.2, np.nan, x)
    for numbers, prior, how in ((x, None, None), (holes, None, None), (holes, PRIOR, sf.Mode()), (x, PRIOR, sf.Mean())):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SufficeNote)  # some steps show nothing, some starts collapse
            run = hmm(rows_of(ids, numbers), 2, covariance=kind, prior=prior, estimate=how, sticky=2, starts=1, max_iter=30)
        values = [i.objective for i in run.trace]
        assert all(b >= a - 1e-9 * abs(a) for a, b in pairwise(values))
    fast = hmm(rows_of(ids, x), 2, covariance=kind, starts=1, method=sf.methods.Squarem())
    assert fast.log_likelihood == pytest.approx(hmm(rows_of(ids, x), 2, covariance=kind, starts=1).log_likelihood, abs=1e-2)


def test_all_labels_given_it_is_a_fit() -> None:
    ids, state, x = walks()
    words = np.array(["calm", "brisk", "wild"])[state]
    rows = rows_of(ids, x, state=words)
    with pytest.warns(SufficeNote, match="shown in every step"):
        run = hmm(rows, 3)
    template = {"state": ["state[-1]"], "a": ["state"], "b": ["state", "a"], "c": ["state", "a", "b"]}
    chain = sf.fit(sf.Template(template), rows)
    assert run.model.variables["state"] == chain.variables["state"]
    for name in chain:
        for part in chain[name].arrays:
            np.testing.assert_allclose(getattr(run.model[name], part), getattr(chain[name], part), rtol=1e-9, atol=1e-12)
    assert run.log_likelihood == pytest.approx(chain.log_likelihood(), rel=1e-12)
    assert run.icl == pytest.approx(run.bic, rel=1e-12)


def test_some_labels_name_the_states() -> None:
    ids, state, x = walks()
    words: list[Any] = [s if i % 10 == 0 else None for i, s in enumerate(np.array(["calm", "brisk", "wild"])[state])]
    run = hmm(rows_of(ids, x, state=words), 3, starts=3)
    names = run.model.variables["state"].states  # type: ignore[union-attr]
    assert set(names) == {"calm", "brisk", "wild"}
    np.testing.assert_allclose(run.means[names.index("brisk")], [3, 1, -2], atol=0.3)
    more = hmm(rows_of(ids, x, state=words), 4, starts=2)
    assert set(more.model.variables["state"].states) == {"calm", "brisk", "wild", "0"}  # type: ignore[union-attr]
    with pytest.raises(FitError, match=r"have 3 states, .*: k must be at least that, not 2"):
        hmm(rows_of(ids, x, state=words), 2)


def test_sticky_adds_to_the_counts_of_staying() -> None:
    rows = sf.sequences({"state": list("aabbbbab"), "y": list("uuvvvuuv")})
    for prior, how, base in (
        (None, None, 0.0),
        (None, sf.Mode(), 0.0),
        (sf.Dirichlet(2), None, 2.0),
        (sf.Dirichlet(2), sf.Mode(), 1.0),
    ):
        with pytest.warns(SufficeNote, match="shown in every step"):
            run = hmm(rows, 2, sticky=3, prior=prior, estimate=how)
        counts = np.array([[1.0, 2.0], [1.0, 3.0]]) + base + 3 * np.eye(2)
        np.testing.assert_allclose(run.transition, counts / counts.sum(axis=1, keepdims=True), rtol=1e-12)
        if prior is None:
            assert run.objective - run.log_likelihood == pytest.approx(3 * np.log(np.diagonal(run.transition)).sum())


def test_weights_are_repeats_and_order_and_names_do_not_matter() -> None:
    ids, _, x = walks(6, 40)
    how: dict[str, Any] = {"starts": 3, "tol": 1e-11, "max_iter": 1000}
    one = hmm(rows_of(ids, x), 3, **how)
    twice = hmm(rows_of(np.concatenate([ids, ids + 6]), np.concatenate([x, x])), 3, **how)
    columns = {c: x[:, j] for j, c in enumerate("abc")}
    heavy = hmm(sf.sequences({"id": ids, **columns}, by="id", weights=np.full(len(ids), 2.0)), 3, **how)
    turned = np.concatenate([np.flatnonzero(ids == q) for q in (3, 0, 5, 1, 4, 2)])
    other = hmm(rows_of(ids[turned], x[turned]), 3, name="regime", **how)
    assert heavy.n_steps == twice.n_steps == 2 * one.n_steps
    assert (heavy.log_likelihood, twice.log_likelihood) == (
        pytest.approx(2 * one.log_likelihood),
        pytest.approx(2 * one.log_likelihood),
    )
    assert heavy.icl == pytest.approx(twice.icl, rel=1e-9)
    for run in (twice, heavy, other):
        np.testing.assert_allclose(run.means, one.means, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(run.transition, one.transition, rtol=1e-4, atol=1e-5)
    assert list(other.model) == ["a", "b", "c", "regime", "regime[0]"]


def test_columns_of_all_kinds_as_em_finds_them() -> None:
    ids, state, x = walks(8, 40)
    rng = np.random.default_rng(2)
    counts = rng.poisson(np.array([1.0, 5.0, 9.0])[state])
    rows = sf.sequences(
        {
            "id": ids,
            "x": np.where(rng.random(len(ids)) < 0.1, np.nan, x[:, 0]),
            "z": x[:, 1],
            "n": counts,
            "f": np.array(list("uvw"))[(state + (rng.random(len(ids)) < 0.2)) % 3],
        },
        by="id",
        variables={"n": sf.Count("n")},
    )
    run = hmm(rows, 3, starts=2)
    again = sf.em(run.model, rows, start=run.model, tol=0, max_iter=1, hidden=[run.model.variables["state"]])
    assert again.log_likelihood == pytest.approx(run.log_likelihood, abs=1e-5)
    assert run.probs["f"].shape == (3, 3)
    assert run.rates["n"].shape == (3,)
    assert run.columns == ("x", "z")
    assert run.n_parameters == 2 + 6 + 3 * 5 + 3 + 6
    np.testing.assert_allclose(np.sort(run.rates["n"]), [counts[state == s].mean() for s in range(3)], atol=0.3)
    text, html = repr(run), run._repr_html_()
    for word in ("mean duration", "stationary", "rate of n", "BIC"):
        assert word in text
        assert word in html
    back = pickle.loads(pickle.dumps(run))
    assert back.log_likelihood == run.log_likelihood
    assert back.model == run.model


def test_covariances_by_column() -> None:
    ids, _, x = walks(6, 40)
    run = hmm(rows_of(ids, x), 2, covariance={"a": sf.latent.Tied(), "b": sf.latent.Diagonal(), "c": sf.latent.Tied()}, starts=2)
    assert run.n_parameters == 1 + 2 + 6 + 3 + 2
    np.testing.assert_allclose(run.covariances[0][np.ix_([0, 2], [0, 2])], run.covariances[1][np.ix_([0, 2], [0, 2])])
    assert run.covariances[0, 0, 1] == 0.0 != run.covariances[0, 0, 2]
    same = hmm(rows_of(ids, x), 2, families={"b": sf.latent.Diagonal()}, covariance=sf.latent.Tied(), starts=2)
    assert same.log_likelihood == pytest.approx(run.log_likelihood)


def test_the_number_of_states() -> None:
    ids, _, x = walks(10, 40)
    rows = rows_of(ids, x)
    for judge in (sf.BIC(), sf.AIC(), sf.choices.ICL(), sf.choices.HeldOut(3)):
        run = hmm(rows, range(1, 5), starts=1, choose=judge, max_iter=60, tol=1e-4)
        assert run.choices is not None
        assert [c.k for c in run.choices] == [1, 2, 3, 4]
        assert run.k == max(run.choices, key=lambda c: c.value).k
        assert run.k >= 3
    assert "log-likelihood" in repr(run)
    hard = run.model.decode(rows).log_prob.sum()
    assert run.icl == pytest.approx(hard - 0.5 * run.n_parameters * np.log(400), rel=1e-10)


def test_given_and_free_first_states(quakes: Any) -> None:
    run = hmm(quakes, 2, first=Given({"state": [0.25, 0.75]}), starts=2)
    np.testing.assert_allclose(run.start, [0.25, 0.75])
    start = Chain(
        "state[-1] -> state -> n",
        {"state": [[0.9, 0.1], [0.1, 0.9]], "state[0]": [0.5, 0.5], "n": sf.regressions.Rates([10.0, 30.0])},
        variables=[sf.Finite("state", ["0", "1"]), sf.Count("n")],
    )
    assert hmm(quakes, 2, start=start).log_likelihood == pytest.approx(-341.8787, abs=1e-4)


@pytest.mark.parametrize("n", [1, CHUNK - 1, CHUNK, 3 * CHUNK + 5])
@pytest.mark.parametrize("columns", [1, 3, 4, 6, 13])
def test_kernels_against_numpy(n: int, columns: int) -> None:
    rng, K, padded = np.random.default_rng(n), 3, columns + -columns % 4
    x = 1e3 * rng.integers(0, 2, n) + rng.normal(size=(columns, n))
    centre, weight = rng.normal(size=(K, columns)), np.tril(rng.normal(size=(K, columns, columns)))
    intercept, constant, out = rng.normal(size=(K, columns)), rng.normal(size=K), rng.normal(size=(K, n + 7))
    fours = np.ones((columns, -(-columns // 4)), bool)
    z = np.einsum("kjc,kct->kjt", weight, x[None] - centre[:, :, None]) + intercept[:, :, None]
    forms = [np.zeros((K, padded)), np.zeros((K, padded, padded)), np.zeros((K, padded))]
    forms[0][:, :columns], forms[1][:, :columns, :columns], forms[2][:, :columns] = centre, weight, intercept
    used = np.tril(np.ones((padded // 4, padded // 4), bool))
    for fresh in (False, True):
        want = out.copy()
        want[:, 5 : 5 + n] = (0.0 if fresh else want[:, 5 : 5 + n]) + constant[:, None] - (z**2).sum(axis=1)
        score_normals(x, n, forms[0], forms[1], used, forms[2], constant, 5, fresh, out)
        np.testing.assert_allclose(out, want, rtol=1e-11)
    share, own = rng.random((K, n + 7)) ** 20, rng.random(n)
    for w in (np.zeros(0), own):
        total, mean, scatter = np.zeros(K), np.zeros((K, columns)), np.zeros((K, columns, columns))
        sum_normals(x, n, share, 5, w, fours, total, mean, scatter)
        g = share[:, 5 : 5 + n] * (w if len(w) else 1.0)
        np.testing.assert_allclose(total, g.sum(axis=1), rtol=1e-12)
        np.testing.assert_allclose(mean, g @ x.T / g.sum(axis=1)[:, None], rtol=1e-10)
        off = x[None] - mean[:, :, None]
        exact = np.einsum("kt,kat,kbt->kab", g, off, off)
        np.testing.assert_allclose(np.tril(scatter), np.tril(exact), rtol=1e-8, atol=1e-8 * np.abs(exact).max())


@pytest.mark.parametrize("kind", [sf.latent.Full(), sf.latent.Diagonal()], ids=repr)
def test_compiled_steps_are_those_of_numpy(kind: Kind, monkeypatch: Any) -> None:
    ids, _, x = walks()
    holes = np.where(np.random.default_rng(3).random(x.shape) < 0.05, np.nan, x)
    weights = 1.0 + (ids % 3)
    columns = {"id": ids, **{c: holes[:, j] for j, c in enumerate("abc")}}
    rows = sf.sequences(columns, by="id", weights=weights)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SufficeNote)
        fast = hmm(rows, 3, covariance=kind, starts=1, max_iter=8, tol=0)
        monkeypatch.setattr(chain_batches, "FEW", 10**9)
        slow = hmm(rows, 3, covariance=kind, starts=1, max_iter=8, tol=0)
    assert fast.log_likelihood == pytest.approx(slow.log_likelihood, rel=1e-12)
    np.testing.assert_allclose(fast.covariances, slow.covariances, rtol=1e-9)


def test_states_in_another_order_keep_what_was_expected(monkeypatch: Any) -> None:
    ids, _, x = walks()
    holes = np.where(np.random.default_rng(1).random(x.shape) < 0.05, np.nan, x)
    letter = np.random.default_rng(2).choice(list("uvw"), len(x))
    rows = rows_of(ids, holes, letter=letter)
    start = hmm(rows, 3, starts=1, max_iter=2, tol=0, seed=4)
    monkeypatch.setattr("suffice.recipes.latent.hmm._order", lambda problem, hidden, theta, counts: [2, 0, 1])
    found: list[Any] = []
    network = StateProblem.network
    monkeypatch.setattr(StateProblem, "network", lambda self, *parts: found.append((self, *parts)) or network(self, *parts))
    hmm(rows, 3, start=start, max_iter=2, tol=0)
    [(problem, theta, statistic, _)] = found
    want = evaluate(problem, theta).statistic
    np.testing.assert_allclose(statistic.cells, want.cells, rtol=1e-10)
    assert set(statistic.moments) == set(want.moments)
    for name, groups in want.moments.items():
        np.testing.assert_array_equal(statistic.moments[name].keys, groups.keys)
        for mine, theirs in zip(statistic.moments[name].spread, groups.spread, strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-8, atol=1e-9)


def test_narrow_states_far_apart_and_far_from_zero() -> None:
    rng = np.random.default_rng(0)
    state = np.repeat([0, 1, 0, 1], 100)
    x = 1e9 + 1e5 * state + rng.normal(size=400) * np.where(state, 1.0, 3.0)
    run = hmm(sf.sequences({"x": x}), 2, starts=3)
    sd = np.sqrt(run.covariances[:, 0, 0])[np.argsort(run.means[:, 0])]
    np.testing.assert_allclose(sd, [x[state == 0].std(), x[state == 1].std()], rtol=1e-6)


def test_a_start_that_collapses_is_given_up_and_told() -> None:
    x = np.concatenate([np.zeros(30), np.random.default_rng(0).normal(5, 1, 60)])
    with pytest.raises(FitError, match=r"collapsed: .*use fewer states, a prior"):
        hmm(sf.sequences({"x": x}), 2, starts=3)
    run = hmm(sf.sequences({"x": x}), 2, starts=3, prior=PRIOR)
    assert run.converged
    assert hmm(sf.sequences({"x": x}), [1, 2], starts=2).k == 1


def test_a_state_that_is_never_visited_is_noted() -> None:
    rows = sf.sequences({"y": list("uuuuuuvvvvvv")})
    start = Chain(
        "state[-1] -> state -> y",
        {
            "state": [[0.9, 0.1, 0], [0.1, 0.9, 0], [0, 0, 1]],
            "state[0]": [0.5, 0.5, 0],
            "y": [[0.9, 0.1], [0.1, 0.9], [0.5, 0.5]],
        },
        variables=[sf.Finite("state", ["0", "1", "2"]), sf.Finite("y", ["u", "v"])],
    )
    with pytest.warns(SufficeNote, match="no steps are left for '2' of 'state'"):
        hmm(rows, 3, start=start)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"k": 0}, "whole number from 1 up"),
        ({"k": []}, "no number of states"),
        ({"k": 10**6}, "needs at least as many steps"),
        ({"k": [1, 2], "choose": "bic"}, r"chosen by BIC\(\)"),
        ({"k": [1, 2], "choose": sf.choices.HeldOut(5)}, "holds out whole sequences, and there is only 1"),
        ({"k": [2, 3], "start": "x"}, "a start has a number of states of its own"),
        ({"start": "x"}, "a start is a Chain or another run"),
        ({"sticky": -1}, "sticky is a number"),
        ({"sticky": True}, "sticky is a number"),
        ({"covariance": "full"}, r"a covariance is Full\(\)"),
        ({"covariance": {"q": sf.latent.Tied()}}, "'q', which is not a column"),
        ({"families": {"q": sf.Logistic()}}, "'q', which is not a column"),
        ({"families": sf.latent.Tied()}, "families are given by column"),
        ({"method": True}, r"the method of EM is Squarem\(\)"),
        ({"first": "free"}, r"first is Free\(\)"),
        ({"tol": -1}, "tol is a number"),
        ({"time_limit": -1}, "time_limit is a number"),
    ],
    ids=str,
)
def test_refusals(change: dict[str, Any], words: str) -> None:
    asked: dict[str, Any] = {"k": 2, **change}
    with pytest.raises((FitError, DataError), match=words):
        hmm(sf.sequences({"x": [0.0, 1.0, 2.0, 1.5, 0.5, 2.5]}), asked.pop("k"), **asked)


def test_rows_are_no_sequences() -> None:
    with pytest.raises(DataError, match="sequences"):
        hmm({"x": [1.0, 2.0]}, 2)
    with pytest.raises(DataError, match="nothing for the states to explain"):
        hmm(sf.sequences({"state": ["a", "b"]}), 2)


def test_stopped_by_the_clock() -> None:
    ids, _, x = walks(30, 60)
    with pytest.warns(SufficeNote, match="stopped in start"):
        run = hmm(rows_of(ids, x), 5, tol=0, max_iter=10**6, time_limit=0.5)
    assert not run.converged
    assert run.trace


class TestEstimator:
    def test_as_the_recipe(self) -> None:
        ids, _, x = walks(6, 40)
        lengths = [40] * 6
        model = HMM(3, prior=None, starts=3).fit(x, lengths=lengths)
        rows = sf.sequences({"id": ids, **{f"x{j}": x[:, j] for j in range(3)}}, by="id")
        run = hmm(rows, 3, starts=3)
        assert model.run_.log_likelihood == pytest.approx(run.log_likelihood, rel=1e-12)
        assert model.score(x, lengths=lengths) == pytest.approx(run.log_likelihood, abs=1e-5)
        decoded = run.model.decode(rows)
        logs, path = model.decode(x, lengths)
        assert logs == pytest.approx(decoded.log_prob.sum(), rel=1e-12)
        assert path.tolist() == [int(s) for s in decoded["state"]] == model.predict(x, lengths).tolist()
        smooth = run.model.smooth(rows)
        np.testing.assert_allclose(model.predict_proba(x, lengths), np.stack([smooth[f"state={s}"] for s in range(3)], axis=1))

    def test_counts_missing_cells_and_frames(self) -> None:
        model = HMM(2, variables={"x0": sf.Count}, starts=3).fit(np.array(QUAKES, float)[:, None])
        assert np.sort(model.run_.rates["x0"]) == pytest.approx([15.4, 26.0], abs=0.5)
        _, _, x = walks(6, 40)
        x[::7, 1] = np.nan
        assert HMM(3, starts=1).fit(x).predict_proba(x).sum(axis=1) == pytest.approx(np.ones(240))

    @pytest.mark.parametrize(
        ("lengths", "words"),
        [([3, 4], "sum to 7, and there are 10 rows"), ([5, 0, 5], "from 1 up"), ([5.5, 4.5], "whole numbers"), (10, "whole")],
    )
    def test_lengths_that_are_refused(self, lengths: Any, words: str) -> None:
        with pytest.raises(DataError, match=words):
            HMM(2).fit(np.random.default_rng(0).normal(size=(10, 1)), lengths=lengths)

    def test_lengths_are_given_by_name(self) -> None:
        with pytest.raises(DataError, match="the lengths of sequences are given by name"):
            HMM(2).fit(np.random.default_rng(0).normal(size=(10, 1)), [5, 5])
        with pytest.raises(DataError, match="of the hidden state: give that another"):
            HMM(2).fit(pd.DataFrame({"state": [0.1, 0.2, 0.3]}))


def test_the_order_of_columns_does_not_matter() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(np.repeat([0.0, 5.0, 0.0, 5.0], 50), 1.0)
    y = 0.5 * x + rng.normal(size=200)
    one, other = (hmm(sf.sequences(rows), 2, starts=2) for rows in ({"a": x, "b": y}, {"b": y, "a": x}))
    assert other.log_likelihood == pytest.approx(one.log_likelihood, abs=1e-4)
