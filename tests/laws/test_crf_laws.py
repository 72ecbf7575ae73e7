"""Laws of linear chains of labels: enumeration, finite differences, and what must not matter."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.learning.crf.fit import open_columns
from suffice.learning.crf.problem import LabelProblem
from suffice.numerics.inference.chains.conditional import PLACES, Room, SequenceLayout, expect_few, expect_in_logs, expect_labels
from tests.crf_oracles import enumerated, scores_of

CHAIN = sf.LinearChain("y", [sf.Window(["x", "z"]), sf.Window(["x"], at=(-1, 2))])


def table(seed: int, n: int = 40, L: int = 3, gaps: float = 0.0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = [f"l{i}" if rng.random() >= gaps else None for i in rng.integers(0, L, n)]
    cells = {
        "s": np.sort(rng.integers(0, n // 4, n)),
        "x": [f"a{i}" for i in rng.integers(0, 4, n)],
        "z": rng.normal(size=n).round(2),
    }
    return {**cells, "y": y}


def rows(cells: dict[str, Any], **how: Any) -> sf.chains.Sequences:
    return sf.sequences(cells, by="s", **how)


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=4),
    st.integers(2, 4),
    st.integers(0, 99),
    st.sampled_from([1.0, 30.0, 500.0]),
)
@settings(deadline=None, max_examples=40)
def test_expectations_are_those_of_all_labellings(lengths: list[int], L: int, seed: int, size: float) -> None:
    rng = np.random.default_rng(seed)
    T, s = size * rng.uniform(-1, 1, (L, L)), size * rng.uniform(-1, 1, (sum(lengths), L))
    weights = rng.uniform(0.5, 2, len(lengths))
    [part] = (layout := SequenceLayout.of(np.array(lengths))).parts
    own, w = s[layout.order], weights[layout.sequences][part.ranks]
    top = own.max(axis=1, keepdims=True)
    room = Room.of(part.n, L)
    room.b[:] = np.exp(own - top)
    for found, more in ((expect_labels(room, T, part, w), top[:, 0]), (expect_in_logs(own, T, part, w), 0.0)):
        if found is None:
            assert size == 500.0
            continue
        pairs, steps, logs = np.zeros((L, L)), np.zeros_like(s), []
        for q, (start, n) in enumerate(zip(np.cumsum(lengths) - lengths, lengths, strict=True)):
            paths, values = enumerated(s[start : start + n], T)
            logs.append(values.max() + np.log(np.exp(values - values.max()).sum()))
            for path, p in zip(paths, np.exp(values - logs[-1]), strict=True):
                for t, label in enumerate(path):
                    steps[start + t, label] += p
                for a, b in pairwise(path):
                    pairs[a, b] += weights[q] * p
        np.testing.assert_allclose(found.steps, steps[layout.order], atol=1e-9)
        np.testing.assert_allclose(found.pairs, pairs, atol=1e-9)
        total = np.bincount(part.ranks, found.logs + more)
        np.testing.assert_allclose(total, np.array(logs)[layout.sequences], rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_the_gradient_is_that_of_differences(gaps: float) -> None:
    problem = LabelProblem.of(CHAIN, open_columns(CHAIN, rows(table(1, gaps=gaps))))
    rng = np.random.default_rng(0)
    w = rng.normal(size=problem.features.n)
    _, slope = problem.loss(w)
    for k in [*rng.integers(0, len(w), 12).tolist(), len(w) - 1]:
        e = np.zeros(len(w))
        e[k] = 1e-5
        assert (problem.loss(w + e)[0] - problem.loss(w - e)[0]) / 2e-5 == pytest.approx(slope[k], abs=1e-6)


def test_at_the_optimum_what_is_seen_is_expected_but_for_the_penalty() -> None:
    problem = LabelProblem.of(CHAIN, open_columns(CHAIN, rows(table(2))))
    crf = sf.fit(CHAIN, rows(table(2)), penalty=sf.L2(0.5), tol=1e-13)
    _, slope = problem.loss(crf.weight_vector)
    np.testing.assert_allclose(slope, -2 * 0.5 * crf.weight_vector, atol=1e-4)
    assert crf.run is not None
    assert crf.run.converged
    assert crf.run.bound <= 1e-13 * crf.run.objective
    assert crf.run.objective == pytest.approx(-crf.log_likelihood(rows(table(2))) + 0.5 * (crf.weight_vector**2).sum(), abs=1e-9)


def test_an_l1_keeps_zeros_where_the_slope_is_within_its_price() -> None:
    for c1 in (0.5, 2.0):
        problem = LabelProblem.of(CHAIN, open_columns(CHAIN, rows(table(3))))
        crf = sf.fit(CHAIN, rows(table(3)), penalty=sf.L1(c1) + sf.L2(0.01), tol=1e-12)
        w, slope = crf.weight_vector, problem.loss(crf.weight_vector)[1]
        smooth = slope + 2 * 0.01 * w
        assert 0 < (w == 0).sum() < len(w)
        assert (np.abs(smooth[w == 0]) <= c1 + 1e-6).all()
        np.testing.assert_allclose(smooth[w != 0], -c1 * np.sign(w[w != 0]), atol=1e-4)


def test_answers_are_those_of_all_labellings() -> None:
    s = rows(table(4, n=14))
    crf = sf.fit(CHAIN, s, penalty=sf.L2(0.1))
    scores, T = scores_of(crf, s), crf.transitions
    probs = np.array([crf.predict_proba(s)[label] for label in crf.labels]).T
    pairs, best, logs = crf.pairs(s), crf.most_probable(s, 3), crf.log_prob(s)
    codes = np.array([crf.labels.index(y) for y in table(4, n=14)["y"]])
    found = crf.predict(s)
    at = 0
    for q, own in enumerate(scores):
        paths, values = enumerated(own, T)
        p = np.exp(values - values.max())
        p /= p.sum()
        order = np.argsort(-p, kind="stable")
        n = len(own)
        for t in range(n):
            np.testing.assert_allclose(
                probs[at + t], [p[[path[t] == j for path in paths]].sum() for j in range(len(T))], atol=1e-9
            )
        if n > 1:
            both = [[p[[path[:2] == (i, j) for path in paths]].sum() for j in range(len(T))] for i in range(len(T))]
            np.testing.assert_allclose(pairs[at + 1], both, atol=1e-9)
        assert np.isnan(pairs[at]).all()
        assert [crf.labels.index(y) for y in found[at : at + n]] == list(paths[order[0]])
        for r in range(3):
            assert best[r].log_prob[q] == pytest.approx(np.log(p[order[r]]), abs=1e-9)
        truth = paths.index(tuple(codes[at : at + n].tolist()))
        assert logs[q] == pytest.approx(np.log(p[truth]), abs=1e-9)
        at += n


def test_draws_have_the_probabilities_of_labels() -> None:
    s = rows(table(5, n=12))
    crf = sf.fit(CHAIN, s, penalty=sf.L2(1))
    probs = np.array([crf.predict_proba(s)[label] for label in crf.labels]).T
    draws = np.array([[crf.labels.index(y) for y in crf.sample(s, seed=i)] for i in range(400)])
    share = np.array([(draws == j).mean(axis=0) for j in range(len(crf.labels))]).T
    np.testing.assert_allclose(share, probs, atol=0.12)


def test_weights_are_repeated_sequences() -> None:
    cells = table(6)
    heavy = np.array([3.0 if s % 2 else 1.0 for s in cells["s"].tolist()])
    again = [i for i in range(40) if heavy[i] == 3.0]
    more = {n: list(np.asarray(c, object)) + [np.asarray(c, object)[i] for i in again] * 2 for n, c in cells.items()}
    more["s"] = [*cells["s"].tolist(), *(100 + cells["s"][again]), *(200 + cells["s"][again])]
    chain = sf.LinearChain("y", CHAIN.features, min_count=2)
    one = sf.fit(chain, rows(cells, weights=heavy), penalty=sf.L2(1), tol=1e-12)
    other = sf.fit(chain, rows(more), penalty=sf.L2(1), tol=1e-12)
    np.testing.assert_allclose(one.weight_vector, other.weight_vector, atol=1e-4)


def test_order_and_threads_change_nothing() -> None:
    cells = table(7, n=60)
    one = sf.fit(CHAIN, rows(cells), penalty=sf.L2(1), tol=1e-12)
    assert np.array_equal(one.weight_vector, sf.fit(CHAIN, rows(cells), penalty=sf.L2(1), tol=1e-12, threads=3).weight_vector)
    flipped = np.argsort(-np.asarray(cells["s"]), kind="stable")
    turned = {n: list(np.asarray(c, object)[flipped]) for n, c in cells.items()}
    renamed = {**turned, "y": [{"l0": "z", "l1": "b", "l2": "a"}[y] for y in turned["y"]]}
    other = sf.fit(CHAIN, rows(renamed), penalty=sf.L2(1), tol=1e-12)
    assert other.run is not None
    assert one.run is not None
    assert other.run.objective == pytest.approx(one.run.objective, abs=1e-8)
    probs = [np.asarray(one.predict_proba(rows(cells))[a]) for a in ("l0", "l1", "l2")]
    again = [np.asarray(other.predict_proba(rows(cells | {"y": cells["y"]}))[a]) for a in ("z", "b", "a")]
    np.testing.assert_allclose(probs, again, atol=1e-5)


def test_a_sequence_without_labels_adds_nothing() -> None:
    cells = table(8)
    blank = {n: [*list(c), *list(c)[:4]] for n, c in cells.items()} | {"s": [*cells["s"].tolist(), *[99] * 4]}
    blank["y"][-4:] = [None] * 4
    with pytest.warns(sf.SufficeNote, match="1 sequences have no 'y' at all"):
        other = sf.fit(CHAIN, rows(blank), penalty=sf.L2(1))
    np.testing.assert_allclose(other.weight_vector, sf.fit(CHAIN, rows(cells), penalty=sf.L2(1)).weight_vector, atol=1e-6)


def test_a_chain_without_transitions_is_a_softmax_regression() -> None:
    rng = np.random.default_rng(9)
    n = 300
    x = rng.normal(size=n)
    y = [("a", "b", "c")[int(i)] for i in np.clip(np.round(x + rng.normal(size=n) + 1), 0, 2)]
    cells = {"s": np.arange(n), "x": x, "y": y}
    chain = sf.LinearChain("y", [sf.Window(["x"])], unseen=True)
    crf = sf.fit(chain, sf.sequences(cells, by="s"), tol=1e-12)
    bn = sf.fit("x -> y", {"x": x, "y": y}, families={"y": sf.Logistic()})
    known = bn.predict_proba({"x": x}, "y")
    found = crf.predict_proba(sf.sequences({"s": np.arange(n), "x": x}, by="s"))
    for label in "abc":
        np.testing.assert_allclose(found[label], known[label], atol=1e-4)


def test_few_long_sequences_are_the_same_in_lanes() -> None:
    rng = np.random.default_rng(3)
    T, s, weights = rng.normal(size=(3, 3)), 3 * rng.normal(size=(6000, 3)), np.array([2.0, 1.0])
    [part] = (layout := SequenceLayout.of(np.array([2000, 4000]))).parts
    assert part.few
    own, w = s[layout.order], weights[layout.sequences][part.ranks]
    few, plain = expect_few(own, T, part, w), expect_in_logs(own, T, part, w)
    assert few is not None
    np.testing.assert_allclose(few.steps, plain.steps, atol=1e-10)
    np.testing.assert_allclose(few.pairs, plain.pairs, rtol=1e-10)
    np.testing.assert_allclose(np.bincount(part.ranks, few.logs), np.bincount(part.ranks, plain.logs), rtol=1e-12)


def test_parts_are_bounded_and_cover_all_steps() -> None:
    lengths = np.array([3, 70_000, 1, 40_000, 30_000, *[2] * 1500])
    layout = SequenceLayout.of(lengths)
    assert sorted(layout.order.tolist()) == list(range(int(lengths.sum())))
    assert all(p.n <= PLACES or p.offsets[1] == 1 for p in layout.parts)
    before, after = layout.pairs
    assert (layout.order[after] == layout.order[before] + 1).all()


def test_long_sequences_and_large_scores_stay_finite() -> None:
    n = 100_000
    rng = np.random.default_rng(0)
    T, s = np.array([[500.0, -500.0], [-500.0, 500.0]]), 500.0 * rng.choice([-1.0, 1.0], (n, 2))
    [part] = SequenceLayout.of(np.array([n])).parts
    few = expect_few(1e-2 * s, 1e-2 * T, part)
    assert few is not None
    assert np.isfinite(few.logs).all()
    np.testing.assert_allclose(few.steps.sum(axis=1), 1.0)
    assert expect_few(s, T, part) is None  # e⁻¹⁰⁰⁰ is no float
    [part] = SequenceLayout.of(np.array([n // 10])).parts
    slow = expect_in_logs(s[: n // 10], T, part)
    assert np.isfinite(slow.logs).all()
    np.testing.assert_allclose(slow.steps.sum(axis=1), 1.0)
