"""Credible intervals of answers: against the intervals of single tables and nodes, and against simulation by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.families.parameter_draws import DrawnGaussian
from suffice.models.questions import intervals
from suffice.numerics.exponential.dirichlet import draw_shares
from tests.oracles import random_rows

CHAIN = {"x": [0] * 30 + [1] * 20, "y": [0] * 20 + [1] * 10 + [0] * 4 + [1] * 16}


def chain_rows() -> dict[str, Any]:
    return {name: np.array(["no", "yes"])[codes] for name, codes in CHAIN.items()}


def chain() -> sf.BayesNet:
    return sf.fit("x -> y", chain_rows(), prior=sf.Dirichlet(1))


def widths(interval: Any) -> np.ndarray:
    return np.asarray(interval.upper) - np.asarray(interval.lower)


def test_a_single_table_has_its_own_interval() -> None:
    bn = chain()
    for level in (0.5, 0.95):
        root, own = bn.query("x", interval=level, draws=20_000), bn["x"].interval(level)
        assert np.allclose(root.interval, own, atol=0.005)
        row, table = bn.query("y", {"x": "yes"}, interval=level, draws=20_000), bn["y"].interval(level)
        assert np.allclose(row.interval, [end[1] for end in table], atol=0.006)
        assert row.probs == pytest.approx(bn["y"].probs[1])
        assert f"{100 * level:g} % interval from 20,000 draws" in row.how


def test_the_stated_error_is_that_of_the_ends() -> None:
    bn = chain()
    answers = [bn.query("x", interval=0.9, seed=s) for s in range(100)]
    stated = np.mean([float(a.how.rpartition("ends ")[2].rstrip(")")) for a in answers])
    spread = np.std([a.interval.lower[0] for a in answers])
    assert stated == pytest.approx(spread, rel=0.35)


def test_the_turned_question_as_simulated_by_hand() -> None:
    """p(x = yes | y = yes) by Bayes' rule from Beta draws that the test makes itself."""
    rng, n = np.random.default_rng(1), 200_000
    a, b, c = rng.beta(21, 31, n), rng.beta(11, 21, n), rng.beta(17, 5, n)
    truth = np.quantile(a * c / (a * c + (1 - a) * b), [0.025, 0.975])
    answer = chain().query("x", {"y": "yes"}, interval=0.95, draws=20_000)
    assert [end[1] for end in answer.interval] == pytest.approx(truth, abs=0.006)
    assert answer["yes"] == chain().query("x", {"y": "yes"})["yes"]
    mirrored = [1.0 - end[0] for end in reversed(answer.interval)]
    assert [end[1] for end in answer.interval] == pytest.approx(mirrored)


def test_likelihood_evidence_and_joint_targets() -> None:
    rng, n = np.random.default_rng(1), 200_000
    a, b, c = rng.beta(21, 31, n), rng.beta(11, 21, n), rng.beta(17, 5, n)
    cells = np.stack([(1 - a) * (1 - b) * 0.2, (1 - a) * b * 0.8, a * (1 - c) * 0.2, a * c * 0.8])
    low, high = np.quantile(cells / cells.sum(axis=0), [0.05, 0.95], axis=1)
    answer = chain().query(["x", "y"], {"y": [0.2, 0.8]}, interval=0.9, draws=20_000)
    assert answer.interval.lower.reshape(-1) == pytest.approx(low, abs=0.006)
    assert answer.interval.upper.reshape(-1) == pytest.approx(high, abs=0.006)


def test_a_seed_gives_the_same_interval_and_others_differ() -> None:
    bn = chain()
    first, again, other = (bn.query("x", {"y": "no"}, interval=0.9, seed=s) for s in (3, 3, 4))
    assert np.array_equal(first.interval, again.interval)
    assert not np.array_equal(first.interval, other.interval)


def test_draws_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    bn = sf.fit("u -> w; u -> x; w -> y; x -> y", random_rows(0), prior=(sf.Dirichlet(1), sf.NormalInverseGamma()))
    for target, given in (("u", {"w": "q"}), ("u", {"y": 1.0}), ("y", {"w": "p"})):
        whole = bn.query(target, given, interval=0.9, draws=10_000)
        with monkeypatch.context() as patch:
            patch.setattr(intervals, "NUMBERS", 1_000)
            parts = bn.query(target, given, interval=0.9, draws=10_000)
        first, second = (getattr(a, "interval" if target == "u" else "mean_interval") for a in (whole, parts))
        assert np.allclose(first, second, atol=0.02 if target == "u" else 0.1)


def test_intervals_cover_what_they_should() -> None:
    """Parameters from the prior, rows from the parameters: 90 % of the intervals hold the true answer, for any question."""
    rng, covered, n = np.random.default_rng(0), 0, 300
    for k in range(n):
        tables = {"x": rng.dirichlet([1, 1]), "y": rng.dirichlet([1, 1], 2), "z": rng.dirichlet([1, 1], 2)}
        variables = [sf.Finite(v, ["no", "yes"]) for v in "xyz"]
        truth = sf.BayesNet("x -> y -> z", tables, variables)
        rows = sf.scan(truth.sample(25, seed=k), variables={v.name: v for v in variables})
        answer = sf.fit("x -> y -> z", rows, prior=sf.Dirichlet(1)).query("x", {"z": "yes"}, interval=0.9, seed=k)
        p = truth.query("x", {"z": "yes"})["yes"]
        covered += bool(answer.interval.lower[1] <= p <= answer.interval.upper[1])
    assert 0.84 < covered / n < 0.95


def test_more_rows_make_narrower_intervals() -> None:
    rows = chain_rows()
    many = {name: np.tile(column, 100) for name, column in rows.items()}
    few, much = (sf.fit("x -> y", r, prior=sf.Dirichlet(1)).query("x", {"y": "yes"}, interval=0.95) for r in (rows, many))
    assert (widths(much.interval) < 0.2 * widths(few.interval)).all()


def test_only_parameters_that_matter_are_drawn() -> None:
    """A node without a posterior does not disturb an answer that does not depend on it."""
    rows = {"x": ["a", "b", "b"], "y": ["a", "a", "b"], "z": [1.0, 2.0, 4.0]}
    bn = sf.fit("x -> y; x -> z", rows, prior=sf.Dirichlet(1))
    assert bn.query("x", {"y": "b"}, interval=0.9).interval is not None
    with pytest.raises(sf.SufficeError, match=r"'z' has no posterior.*prior"):
        bn.query("x", {"z": 1.0}, interval=0.9)


def test_modes_are_not_the_point() -> None:
    bn = sf.fit("x -> y", chain_rows(), prior=sf.Dirichlet(2), estimate=sf.Mode())
    means = sf.fit("x -> y", chain_rows(), prior=sf.Dirichlet(2))
    answer = bn.query("x", {"y": "yes"}, interval=0.9)
    assert answer.probs == pytest.approx(means.query("x", {"y": "yes"}).probs)
    assert answer.probs != pytest.approx(bn.query("x", {"y": "yes"}).probs)
    assert "not the modes" in answer.how
    assert "modes" not in means.query("x", {"y": "yes"}, interval=0.9).how


def test_what_the_prior_rules_out_stays_impossible() -> None:
    x, y = sf.Finite("x", ["a", "b"]), sf.Finite("y", ["a", "b"])
    guess = sf.BayesNet("x -> y", {"x": [0.5, 0.5], "y": [[1.0, 0.0], [0.5, 0.5]]}, [x, y])
    rows = sf.scan({"x": ["a", "b", "b"], "y": ["a", "a", "b"]}, variables={"x": x, "y": y})
    bn = sf.fit("x -> y", rows, prior=sf.BDe(guess, 4))
    answer = bn.query("x", {"y": "b"}, interval=0.9)
    assert answer.interval.upper.tolist() == [0.0, 1.0]
    assert answer.interval.lower.tolist() == [0.0, 1.0]
    with pytest.raises(sf.SufficeError, match="probability zero"):
        bn.query("y", {"x": [1.0, 0.0], "y": [0.0, 1.0]}, interval=0.9)


def test_draws_that_underflow_are_left_out_and_counted() -> None:
    """With an imagined 1e-4 of a row, nearly every draw of an unseen state is below the smallest number."""
    x, y = sf.Finite("x", ["a", "b"]), sf.Finite("y", ["a", "b"])
    rows = sf.scan({"x": ["a"] * 3 + ["b"] * 3, "y": ["a"] * 6}, variables={"x": x, "y": y})
    bn = sf.fit("x -> y", rows, prior=sf.Dirichlet(1e-3))
    answer = bn.query("x", {"y": "b"}, interval=0.9)
    assert "that rule the evidence out" in answer.how
    assert np.isfinite(answer.interval).all()


def test_densities_that_differ_more_than_floats_hold_outweigh_each_other() -> None:
    """One number says e^2000 times rather a than b, the other b than a: only as products of factors are both told."""
    z, noise = np.repeat([0, 1], 2000), np.random.default_rng(0).normal(size=(2, 4000))
    rows = {"z": ["ab"[k] for k in z], "x": 100.0 * z + noise[0], "y": 100.0 * z + noise[1]}
    bn = sf.fit("z -> x; z -> y", rows, prior=(sf.Dirichlet(1), sf.NormalInverseGamma()))
    one, both = (bn.query("z", {"x": 0.0, "y": y}, interval=0.9) for y in (0.0, 100.0))
    assert one.interval.lower == pytest.approx([1.0, 0.0])
    assert both.interval.lower == pytest.approx([0.0, 0.0])
    assert both.interval.upper == pytest.approx([1.0, 1.0])
    assert "rule the evidence out" not in both.how


def test_dirichlets_of_tiny_weights() -> None:
    drawn = draw_shares(np.array([[1e-5, 3e-5], [2.0, 6.0]]), 20_000, np.random.default_rng(0))
    assert drawn.sum(axis=2) == pytest.approx(1.0)
    assert drawn.mean(axis=0) == pytest.approx(np.array([[0.25, 0.75], [0.25, 0.75]]), abs=0.015)
    assert drawn[:, 1, 0].var() == pytest.approx(0.25 * 0.75 / 9, rel=0.05)
    assert drawn[:, 0, 0].var() == pytest.approx(0.25 * 0.75, rel=0.05)


def test_gaussian_parameters_have_their_intervals() -> None:
    bn = sf.fit("w -> y; x -> y", random_rows(0), prior=sf.NormalInverseGamma())
    node = DrawnGaussian(bn["y"], {"w": 0}, {"x": 0}).draw(40_000, np.random.default_rng(0))
    own = bn["y"].interval(0.9)
    for name, drawn in (("intercept", node.intercept), ("coefficients", node.coefficients), ("variance", node.variance)):
        spread = widths(own[name]).max()
        assert np.quantile(drawn, 0.05, axis=0) == pytest.approx(own[name].lower, abs=0.03 * spread)
        assert np.quantile(drawn, 0.95, axis=0) == pytest.approx(own[name].upper, abs=0.03 * spread)
    assert node.variance.mean(axis=0) == pytest.approx(bn["y"].variance, rel=0.03)


def test_the_mean_of_a_real_target() -> None:
    bn = sf.fit("x -> y", random_rows(0), prior=sf.NormalInverseGamma())
    answer = bn.query("y", {"x": 0.0}, interval=0.9, draws=20_000)
    own = bn["y"].interval(0.9)["intercept"]
    assert answer.mean_interval.lower == pytest.approx(own.lower, abs=0.01)
    assert answer.mean_interval.upper == pytest.approx(own.upper, abs=0.01)
    assert answer.mean == pytest.approx(bn["y"].intercept)
    assert "posterior means" in repr(answer)


def test_a_hybrid_answer_as_simulated_by_hand() -> None:
    """p(u | y) with y Gaussian given u, and E[y], from draws that the test makes itself."""
    rows = random_rows(2)
    bn = sf.fit("u -> y", {"u": rows["u"], "y": rows["y"]}, prior=(sf.Dirichlet(1), sf.NormalInverseGamma()))
    rng, n = np.random.default_rng(1), 100_000
    counts = np.array([(rows["u"] == s).sum() for s in "ab"])
    p = rng.dirichlet(counts + 1.0, n)
    moments = (bn["y"].seen + bn["y"].imagined).at(np.arange(2))
    v = moments.scatter[:, 0, 0] / rng.chisquare(moments.df, (n, 2))
    m = moments.mean[:, 0] + np.sqrt(v / moments.count) * rng.standard_normal((n, 2))
    weights = p * np.exp(-0.5 * (1.0 - m) ** 2 / v) / np.sqrt(v)
    truth = np.quantile(weights[:, 0] / weights.sum(axis=1), [0.05, 0.95])
    answer = bn.query("u", {"y": 1.0}, interval=0.9, draws=20_000)
    assert [end[0] for end in answer.interval] == pytest.approx(truth, abs=0.006)
    mean = bn.query("y", interval=0.9, draws=20_000)
    assert mean.mean_interval == pytest.approx(np.quantile((p * m).sum(axis=1), [0.05, 0.95]), abs=0.04)


def test_hybrid_answers_at_the_means_without_doubt() -> None:
    """With very many rows the interval closes around the exact answer, whatever hangs together with what."""
    rows = {name: np.tile(column, 20_000) for name, column in random_rows(1).items()}
    rows["v"] = np.where(np.arange(len(rows["u"])) % 3 == 0, "i", "j")
    graph = "u -> x; u -> w; v -> y; x -> y; y -> z; w -> z"
    bn = sf.fit(graph, sf.gather(rows, sf.Dag(graph)), prior=(sf.Dirichlet(1), sf.NormalInverseGamma()))
    for target, given in (
        ("u", {"y": 1.0}),
        ("v", {"z": 99.0}),
        ("u", {"x": 0.5, "z": 100.0}),
        ("v", {"x": 0.5, "y": 2.0}),
        (["u", "w"], {"z": 100.5, "v": "i"}),
        ("x", {"z": 100.0}),
        (["z", "x"], {"y": 0.5}),
        (["y", "u"], {"w": [0.5, 1.0, 0.1]}),
        ("y", {"x": 1.0, "v": "j"}),
    ):
        answer, exact = bn.query(target, given, interval=0.99), bn.query(target, given)
        if hasattr(answer, "probs"):
            assert np.allclose(answer.interval, [exact.probs] * 2, atol=0.02), (target, given)
        else:
            assert np.allclose(answer.mean_interval, [exact.mean] * 2, atol=0.02), (target, given)


def test_interventions_are_certain() -> None:
    bn = chain()
    set_from_outside = bn.do({"x": "yes"})
    answer, table = set_from_outside.query("y", interval=0.95, draws=20_000), bn["y"].interval(0.95)
    assert np.allclose(answer.interval, [end[1] for end in table], atol=0.006)
    mixed = bn.do({"x": [0.5, 0.5]}).query("x", interval=0.95)
    assert np.allclose(mixed.interval, 0.5)


@pytest.mark.parametrize("prior", [None, sf.NormalInverseGamma()])
def test_no_posterior_no_interval(prior: Any) -> None:
    bn = sf.fit("x -> y", chain_rows(), prior=prior)
    with pytest.raises(sf.SufficeError, match=r"'x' has no posterior"):
        bn.query("x", interval=0.95)
    with pytest.raises(sf.SufficeError, match=r"no posterior.*file"):
        sf.load("asia").query("lung", interval=0.95)


def test_bad_questions() -> None:
    bn = chain()
    for draws in (999, 0, 1e3, True):
        with pytest.raises(sf.SufficeError, match="at least 1,000 draws"):
            bn.query("x", interval=0.95, draws=draws)
    for level in (0, 1, 95, "0.95"):
        with pytest.raises(sf.SufficeError, match="level of an interval"):
            bn.query("x", interval=level)
    with pytest.raises(sf.SufficeError, match="a seed is a whole number"):
        bn.query("x", interval=0.95, seed=-1)
    with pytest.raises(sf.SufficeError, match="the limit is"):
        bn.query(["x", "y"], interval=0.95, draws=10**8)


def test_a_larger_network() -> None:
    alarm = sf.load("alarm")
    bn = sf.fit(alarm.dag, alarm.sample(1_000, seed=0), prior=sf.BDeu(10))
    given = {"HRBP": "HIGH", "BP": "LOW", "EXPCO2": "LOW"}
    answer = bn.query("SHUNT", given, interval=0.95)
    assert (answer.interval.lower <= answer.probs).all()
    assert (answer.probs <= answer.interval.upper).all()
    assert 0.0 < widths(answer.interval)[0] < 0.5


def test_densities_that_differ_beyond_floats() -> None:
    """Two groups of real evidence, each of which rules out what the other wants by e^−1000 and more: found by an auditor."""
    n = 4000
    a, rng = np.arange(n) % 3, np.random.default_rng(0)
    means = np.array([[0.0, 1000.0, 450.0], [1000.0, 0.0, 450.0]])
    rows = {"a": a.astype(str).tolist(), "x": means[0][a] + rng.normal(size=n), "y": means[1][a] + rng.normal(size=n)}
    bn = sf.fit("a -> x; a -> y", rows, prior=(sf.Dirichlet(1), sf.NormalInverseGamma(count=1e-3, variance=1.0, residual=1.0)))
    given = {"x": 60.0, "y": 60.0}
    answer = bn.query("a", given, interval=0.9)
    best = int(np.argmax(bn.query("a", given).probs))
    assert answer.probs[best] == pytest.approx(1.0)
    assert answer.interval.upper[best] == pytest.approx(1.0)
