"""Laws of linear chains with constraints, of second order, and with weights of two labels by attribute: all labellings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.learning.crf.fit import open_columns
from suffice.learning.crf.problem import LabelProblem
from tests.crf_oracles import by_name

LABELS = ("B-p", "I-p", "O", "B-q")
RULES: dict[str, Any] = {
    "none": None,
    "BIO": sf.labels.BIO(),
    "pairs": sf.labels.Transitions(forbidden=[("O", "O"), ("<s>", "B-q"), ("B-p", "</s>"), ("B-q", "I-p")]),
    "only": sf.labels.Transitions(
        only=[("O", "B-p"), ("B-p", "O"), ("B-p", "I-p"), ("I-p", "I-p"), ("I-p", "O"), ("<s>", "O"), ("<s>", "B-p")]
    ),
}


def may(rule: str, before: str | None, label: str | None) -> bool:
    """The same rules, written down again."""
    if rule == "BIO":
        return label != "I-p" or before in ("B-p", "I-p")
    if rule == "pairs":
        return (before, label) not in (("O", "O"), (None, "B-q"), ("B-p", None), ("B-q", "I-p"))
    if rule == "only":
        if label is None:
            return True
        known = (("O", "B-p"), ("B-p", "O"), ("B-p", "I-p"), ("I-p", "I-p"), ("I-p", "O"), (None, "O"), (None, "B-p"))
        return (before, label) in known
    return True


def drawn(rule: str, lengths: list[int], L: int, rng: np.random.Generator) -> list[str]:
    """Labels that a rule allows, each of them at least once."""
    labels = list(LABELS[:L])
    if {*(again := _some(rule, lengths, labels, rng))} != {*labels}:
        return drawn(rule, lengths, L, rng)
    return again


def _some(rule: str, lengths: list[int], labels: list[str], rng: np.random.Generator) -> list[str]:
    result: list[str] = []
    for n in lengths:
        own: list[str] = []
        while not own or not may(rule, own[-1], None):
            own = []
            for _ in range(n):
                options = [y for y in labels if may(rule, own[-1] if own else None, y)]
                own.append(options[rng.integers(len(options))])
        result += own
    return result


def case(rule: str, lengths: list[int], order: int, pairs: bool, seed: int, unseen: bool) -> tuple[Any, Any, dict[str, Any]]:
    rng = np.random.default_rng(seed)
    train = [*lengths, *[3] * 8]
    n, L = sum(train), 3 if rule == "only" else 4
    cells = {"x": [f"a{i}" for i in rng.integers(0, 3, n)], "z": rng.normal(size=n).round(2).tolist()}
    rows = {"s": np.repeat(np.arange(len(train)), train), **cells, "y": drawn(rule, train, L, rng)}
    windows = [sf.Window(["x", "z"]), *([sf.Window(["x", "z"], pairs=True)] if pairs else [])]
    chain = sf.LinearChain("y", windows, unseen=unseen, order=order, transitions=RULES[rule])
    m = sum(lengths)
    return chain, sf.sequences(rows, by="s"), {name: rows[name][:m] for name in ("s", "x", "z", "y")}


@given(
    st.sampled_from(sorted(RULES)),
    st.lists(st.integers(1, 4), min_size=1, max_size=3),
    st.sampled_from([1, 2]),
    st.booleans(),
    st.booleans(),
    st.sampled_from([1.0, 40.0, 500.0]),
    st.integers(0, 99),
)
@example("only", [3, 1, 4], 1, False, False, 500.0, 4)  # the likeliest path passes through products below the least double
@settings(deadline=None, max_examples=40)
def test_answers_are_those_of_all_labellings(
    rule: str, lengths: list[int], order: int, pairs: bool, unseen: bool, size: float, seed: int
) -> None:
    chain, everything, rows = case(rule, lengths, order, pairs, seed, unseen)
    fitted = sf.fit(chain, everything, penalty=sf.L2(1.0), tol=1e-4)
    crf = sf.Crf(fitted.vocabulary, fitted.features, size * fitted.weight_vector)
    s = sf.sequences(rows, by="s")
    probs = np.array([crf.predict_proba(s)[label] for label in crf.labels]).T
    both, best, logs, found = crf.pairs(s), crf.most_probable(s, 3), crf.log_prob(s), list(crf.predict(s))
    drawn_labels = list(crf.sample(s, seed=seed))
    codes, at, L = [crf.labels.index(y) for y in rows["y"]], 0, len(crf.labels)
    cells = {"x": rows["x"], "z": rows["z"]}
    rules = None if rule == "none" else lambda a, b: may(rule, a, b)
    for q, (paths, values) in enumerate(by_name(crf, cells, lengths, rules)):
        n, log_z = lengths[q], values.max() + np.log(np.exp(values - values.max()).sum())
        p = np.exp(values - log_z)
        for t in range(n):
            np.testing.assert_allclose(probs[at + t], [p[[y[t] == j for y in paths]].sum() for j in range(L)], atol=1e-8)
            if t:
                wanted = [[p[[y[t - 1 : t + 1] == (i, j) for y in paths]].sum() for j in range(L)] for i in range(L)]
                np.testing.assert_allclose(both[at + t], wanted, atol=1e-8)
        falling = np.sort(values)[::-1]
        for r in range(min(3, len(values))):
            assert best[r].log_prob[q] == pytest.approx(falling[r] - log_z, rel=1e-9, abs=1e-7)
            if falling[r] > -np.inf:
                path = tuple(crf.labels.index(y) for y in best[r]["y"][at : at + n])
                assert values[paths.index(path)] == pytest.approx(falling[r], rel=1e-9, abs=1e-7)
        assert [crf.labels.index(y) for y in found[at : at + n]] == [crf.labels.index(y) for y in best[0]["y"][at : at + n]]
        assert logs[q] == pytest.approx(values[paths.index(tuple(codes[at : at + n]))] - log_z, rel=1e-9, abs=1e-7)
        assert p[paths.index(tuple(crf.labels.index(y) for y in drawn_labels[at : at + n]))] > 0.0
        at += n


@given(st.sampled_from(sorted(RULES)), st.sampled_from([1, 2]), st.booleans(), st.booleans(), st.booleans(), st.integers(0, 99))
@settings(deadline=None, max_examples=20)
def test_the_gradient_is_that_of_differences(rule: str, order: int, pairs: bool, unseen: bool, gaps: bool, seed: int) -> None:
    chain, everything, rows = case(rule, [5, 1, 4, 3, 6, 6, 6, 2], order, pairs, seed, unseen)
    rng = np.random.default_rng(seed)
    if gaps:
        assume(len({*rows["y"]}) == (3 if rule == "only" else 4))
        kept = {rows["y"].index(y) for y in rows["y"]}
        rows = {**rows, "y": [None if i not in kept and rng.random() < 0.4 else y for i, y in enumerate(rows["y"])]}
        everything = sf.sequences(rows, by="s")
    problem = LabelProblem.of(chain, open_columns(chain, everything))
    w = rng.normal(size=problem.features.n)
    value, slope = problem.loss(w)
    assert value == pytest.approx(-sf.Crf(problem.vocabulary, problem.features, w).log_likelihood(everything), rel=1e-9)
    for k in rng.integers(0, len(w), 8).tolist():
        e = np.zeros(len(w))
        e[k] = 1e-5
        assert (problem.loss(w + e)[0] - problem.loss(w - e)[0]) / 2e-5 == pytest.approx(slope[k], abs=1e-5)


def test_weights_of_triples_that_are_0_are_first_order() -> None:
    chain, s, _ = case("none", [6, 2, 5], 2, False, 3, True)
    second = sf.fit(chain, s, penalty=sf.L2(0.5))
    first = sf.LinearChain("y", chain.features, unseen=True)
    one = sf.fit(first, s, penalty=sf.L2(0.5))
    same = np.concatenate([one.weight_vector, np.zeros(len(second.features.triples))])  # type: ignore[attr-defined]
    two = sf.Crf(second.vocabulary, second.features, same)
    np.testing.assert_allclose(two.log_prob(s), one.log_prob(s), atol=1e-10)
    np.testing.assert_allclose(two.pairs(s), one.pairs(s), atol=1e-10)
    assert list(two.predict(s)) == list(one.predict(s))
    assert second.log_likelihood(s) > one.log_likelihood(s)


def test_rules_that_forbid_nothing_change_nothing() -> None:
    chain, s, _ = case("none", [6, 2, 5], 1, False, 4, False)
    free = sf.LinearChain("y", chain.features, transitions=sf.labels.Transitions())
    one, other = (sf.fit(c, s, penalty=sf.L2(0.5), tol=1e-13) for c in (chain, free))
    np.testing.assert_allclose(one.weight_vector, other.weight_vector, atol=1e-5)
    np.testing.assert_allclose(one.log_prob(s), other.log_prob(s), atol=1e-6)


def test_a_pair_attribute_that_all_steps_have_is_a_transition() -> None:
    """The weights of `one=1` by pairs of labels are those of pairs of labels: with both, half of each."""
    chain, _, rows = case("none", [6, 5], 1, False, 5, False)
    table = {**rows, "one": ["1"] * len(rows["y"])}
    again = sf.LinearChain("y", [*chain.features, sf.Window(["one"], pairs=True)])
    both = sf.fit(again, sf.sequences(table, by="s"), penalty=sf.L2(0.5), tol=1e-13)
    features: Any = both.features
    n = len(features.before)
    own = both.weight_vector[len(features.labels) : len(features.labels) + n]
    np.testing.assert_allclose(own, both.weight_vector[features.n_pairs :], atol=1e-5)


@pytest.mark.parametrize(("order", "pairs"), [(2, False), (1, True), (2, True)])
def test_draws_have_the_probabilities_of_labellings(order: int, pairs: bool) -> None:
    chain, everything, rows = case("BIO", [3], order, pairs, 6, True)
    crf = sf.fit(chain, everything, penalty=sf.L2(0.3))
    often = sf.sequences({"s": np.repeat(np.arange(600), 3), "x": rows["x"] * 600, "z": rows["z"] * 600}, by="s")
    [(paths, values)] = by_name(crf, {"x": rows["x"], "z": rows["z"]}, [3], lambda a, b: may("BIO", a, b))
    p = np.exp(values - values.max())
    drawn_labels = [crf.labels.index(y) for y in crf.sample(often)]
    draws = [tuple(drawn_labels[i : i + 3]) for i in range(0, 1800, 3)]
    share = np.array([draws.count(path) for path in paths]) / 600
    np.testing.assert_allclose(share, p / p.sum(), atol=0.07)


def test_long_sequences_and_large_weights_stay_finite() -> None:
    n = 20_000
    rng = np.random.default_rng(0)
    rows = {"x": [f"a{i}" for i in rng.integers(0, 3, n)], "y": [LABELS[i] for i in rng.integers(0, 2, n)]}
    chain = sf.LinearChain("y", [sf.Window(["x"]), sf.Window(["x"], pairs=True)], order=2, unseen=True)
    problem = LabelProblem.of(chain, open_columns(chain, sf.sequences(rows)))
    for size in (1.0, 500.0):
        value, slope = problem.loss(size * rng.uniform(-1, 1, problem.features.n))
        assert np.isfinite(value)
        assert np.isfinite(slope).all()


@pytest.mark.parametrize("size", [1.0, 500.0])
@pytest.mark.parametrize("n", [3, 3000])
def test_few_long_sequences_with_forbidden_ends(n: int, size: float) -> None:
    """The ways of many sequences side by side, of few long ones and of logarithms = one sequence after the other."""
    rng = np.random.default_rng(n)
    labels = ["B-p", "I-p", "O"] * n
    rows = {"x": [f"a{i}" for i in rng.integers(0, 3, 3 * n)], "y": labels}
    for rule in (sf.labels.BIO(), sf.labels.Transitions(forbidden=[("<s>", "O"), ("B-p", "</s>")])):
        chain = sf.LinearChain("y", [sf.Window(["x"])], unseen=True, transitions=rule)
        problem = LabelProblem.of(chain, open_columns(chain, sf.sequences(rows)))
        features: Any = problem.features
        w = size * rng.uniform(-1, 1, features.n)
        [(block, _)] = problem.blocks()
        one, other = features.expect_terms(w, block), features.expect(w, block)
        assert one.log_z == pytest.approx(float(other.log_z.sum()), rel=1e-11)
        both = other.counts[0][features.before, features.after]
        np.testing.assert_allclose(one.expected[len(features.labels) :], both, atol=1e-7 * n)


def test_weights_are_repeated_sequences_and_threads_change_nothing() -> None:
    chain, _, rows = case("BIO", [4, 2, 5, 3], 2, True, 8, False)
    heavy = np.array([3.0 if i % 2 else 1.0 for i in rows["s"].tolist()])
    again = [i for i, w in enumerate(heavy) if w == 3.0]
    more = {n: [*list(c), *[list(c)[i] for i in again] * 2] for n, c in rows.items()}
    more["s"] = [*rows["s"].tolist(), *(100 + rows["s"][again]), *(200 + rows["s"][again])]
    one = sf.fit(chain, sf.sequences(rows, by="s", weights=heavy), penalty=sf.L2(1), tol=1e-12)
    other = sf.fit(chain, sf.sequences(more, by="s"), penalty=sf.L2(1), tol=1e-12, threads=2)
    np.testing.assert_allclose(one.weight_vector, other.weight_vector, atol=1e-4)


@pytest.mark.parametrize(("order", "gaps"), [(1, False), (1, True), (2, True)])
def test_weights_of_labels_are_costs_of_missing_them(order: int, gaps: bool) -> None:
    """−Σ log exp(s(y)) / Σ_y' w(y, y') exp(s(y')), w the product of the weights of the labels that y' misses; by enumeration."""
    weights = {"B-p": 5.0, "O": 0.5}
    chain, _, rows = case("none", [4, 1, 3], order, False, 9, False)
    if gaps:
        rows = {**rows, "y": [None if i in (1, 6) else y for i, y in enumerate(rows["y"])]}
    s = sf.sequences(rows, by="s")
    problem = LabelProblem.of(chain, open_columns(chain, s))
    costs = np.log([weights.get(y, 1.0) for y in problem.vocabulary.labels])
    problem = replace(problem, costs=costs)
    w = np.random.default_rng(0).normal(size=problem.features.n)
    value, slope = problem.loss(w)
    crf = sf.Crf(problem.vocabulary, problem.features, w)
    total, at = 0.0, 0
    for paths, scores in by_name(crf, {"x": rows["x"], "z": rows["z"]}, [4, 1, 3]):
        truth = [crf.labels.index(y) if y else -1 for y in rows["y"][at : at + len(paths[0])]]
        at += len(truth)
        missed = [sum(costs[a] for a, b in zip(truth, path, strict=True) if a not in (-1, b)) for path in paths]
        right = np.array([all(a in (-1, b) for a, b in zip(truth, path, strict=True)) for path in paths])
        total += np.log(np.exp(scores + missed).sum()) - np.log(np.exp(scores[right]).sum())
    assert value == pytest.approx(total, rel=1e-10)
    for k in range(len(w)):
        e = np.zeros(len(w))
        e[k] = 1e-5
        assert (problem.loss(w + e)[0] - problem.loss(w - e)[0]) / 2e-5 == pytest.approx(slope[k], abs=1e-6)


@given(st.integers(0, 99))
@settings(deadline=None, max_examples=15)
def test_weights_of_labels_keep_the_objective_concave(seed: int) -> None:
    chain, s, _ = case("none", [4, 1, 3], 1, False, seed, False)
    problem = replace(LabelProblem.of(chain, open_columns(chain, s)), costs=np.log([5.0, 0.2, 3.0, 1.0]))
    rng = np.random.default_rng(seed)
    one, other = rng.normal(size=(2, problem.features.n))
    middle = problem.loss((one + other) / 2)[0]
    assert middle <= (problem.loss(one)[0] + problem.loss(other)[0]) / 2 + 1e-9


def test_labels_of_weight_1_change_nothing_and_heavy_ones_are_found_more() -> None:
    chain, s, _ = case("none", [4, 1, 3], 1, False, 10, False)
    plain = sf.fit(chain, s, penalty=sf.L2(1), tol=1e-13)
    same = sf.fit(chain, s, penalty=sf.L2(1), tol=1e-13, objective=sf.Conditional("y", label_weights={"O": 1.0}))
    np.testing.assert_allclose(plain.weight_vector, same.weight_vector, atol=1e-6)
    heavy = sf.fit(chain, s, penalty=sf.L2(1), objective=sf.Conditional("y", label_weights={"B-q": 20.0}))
    assert heavy.predict_proba(s)["B-q"].sum() > plain.predict_proba(s)["B-q"].sum() + 1
    assert heavy.evaluate(s).recall("B-q") >= plain.evaluate(s).recall("B-q")
    assert "label weights {'B-q': 20.0}" in heavy.fit_info
