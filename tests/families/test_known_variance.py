"""Means of real nodes under a prior, with a variance that is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import suffice as sf
from suffice import exponential as ef
from suffice.errors import FitError, SufficeNote

ROWS = {"c": ["a", "a", "a", "b", "c"], "y": [1.0, 2.0, 6.0, 8.0, -3.0]}
PRIOR = (sf.K2(), sf.priors.KnownVariance(4.0, mean=0.5, spread=3.0))


def test_it_is_the_conjugate_prior_of_each_class():
    bn = sf.fit("c -> y", ROWS, prior=PRIOR)
    family = ef.NormalKnownVariance(4.0)
    evidence = 0.0
    for i, state in enumerate("abc"):
        rows = family.statistic([y for c, y in zip(ROWS["c"], ROWS["y"], strict=True) if c == state])
        posterior = ef.Normal(0.5, 3.0) + rows
        evidence += ef.Normal(0.5, 3.0).log_evidence(rows)
        assert bn["y"].intercept[i] == pytest.approx(posterior.mean)
        assert bn["y"].interval(0.9)["intercept"].upper[i] == pytest.approx(posterior.interval(0.9).upper)
        predicted = bn["y"].predictive({"c": state})
        assert (predicted.mean, predicted.variance) == pytest.approx((posterior.mean, posterior.variance + 4.0))
    assert bn["y"].variance == pytest.approx(np.full(3, 4.0))
    assert sf.score("c -> y", ROWS, sf.Evidence(PRIOR), by_node=True)["y"] == pytest.approx(evidence)


def test_the_evidence_is_an_integral():
    y = [1.0, 2.0, 6.0]
    exact = quad(lambda m: np.prod(norm.pdf(y, m, 2.0)) * norm.pdf(m, 0.5, np.sqrt(3.0)), -20, 20)[0]
    prior = sf.priors.KnownVariance(4.0, 0.5, 3.0)
    assert sf.score("y", {"y": y}, sf.Evidence(prior)) == pytest.approx(np.log(exact))
    first, rest = {"y": y[:2]}, {"y": y[2:]}
    assert sf.fit("y", first, prior=prior).update(rest) == sf.fit("y", {"y": y}, prior=prior)


def test_answers():
    bn = sf.fit("c -> y", ROWS, prior=PRIOR)
    answer = str(bn.query("y", {"c": "a"}, interval=0.95))
    assert "95 % interval from 1,000 draws" in answer
    assert len(bn["y"].to_frame()) == 3


def test_em_never_falls_and_ends_at_its_own_estimate():
    rows = {"c": ["a", "a", None, "b", "b", None], "y": [1.0, None, 6.0, 8.0, 7.0, 2.0]}
    run = sf.em("c -> y", rows, prior=PRIOR, tol=0, max_iter=500)
    objective = [step.objective for step in run.trace]
    assert all(b >= a - 1e-10 for a, b in itertools.pairwise(objective))
    p, m = run.model["c"].probs, run.model["y"].intercept
    share = {y: p * norm.pdf(y, m, 2.0) / (p * norm.pdf(y, m, 2.0)).sum() for y in (6.0, 2.0)}
    for k, own in enumerate(([1.0, None], [8.0, 7.0])):
        weight = [1.0] * sum(y is not None for y in own) + [share[y][k] for y in (6.0, 2.0)]
        values = [y for y in own if y is not None] + [6.0, 2.0]
        # the missing y of the second row is expected at its own mean, and says nothing
        N = sum(weight) + (1.0 if k == 0 else 0.0)
        total = float(np.dot(weight, values)) + (m[0] if k == 0 else 0.0)
        assert m[k] == pytest.approx((total / 4.0 + 0.5 / 3.0) / (N / 4.0 + 1.0 / 3.0), abs=1e-7)
    with pytest.raises(FitError, match="variance of 'y' is known"):
        run.information()


def test_defaults_come_from_the_data_and_hidden_classes_work():
    rng = np.random.default_rng(0)
    y = np.concatenate([rng.normal(0, 1, 60), rng.normal(6, 1, 60)])
    bn = sf.fit("y", {"y": y}, prior=sf.priors.KnownVariance(1.0))
    assert bn.prior.mean["y"] == pytest.approx(y.mean())
    assert bn.prior.spread["y"] == pytest.approx(y.var())
    run = sf.em(
        "k -> y", {"y": y}, hidden=[sf.Finite("k", ["u", "v"])], prior=(sf.Dirichlet(1), sf.priors.KnownVariance(1.0)), seed=0
    )
    assert sorted(run.model["y"].intercept) == pytest.approx([0.0, 6.0], abs=0.4)


def test_a_naive_bayes_classifier_with_shrunken_means():
    bn = sf.naive_bayes({"c": ROWS["c"], "y": ROWS["y"]}, "c", prior=PRIOR)
    assert bn["y"].intercept == pytest.approx(sf.fit("c -> y", ROWS, prior=PRIOR)["y"].intercept)


def test_what_is_refused():
    for wrong in (0, -1.0, np.nan, np.inf, "a", None):
        with pytest.raises(FitError, match="variance of KnownVariance must be a positive number"):
            sf.priors.KnownVariance(wrong)
    with pytest.raises(FitError, match="spread of KnownVariance of 'y' must be a positive number"):
        sf.priors.KnownVariance(1.0, spread={"y": 0.0})
    with pytest.raises(FitError, match="mean of KnownVariance is a finite number"):
        sf.priors.KnownVariance(1.0, mean=np.nan)
    with pytest.raises(FitError, match="'z', which is not in the graph"):
        sf.fit("y", {"y": [1.0, 2.0, 3.5]}, prior=sf.priors.KnownVariance({"z": 1.0}))
    with pytest.warns(SufficeNote, match="says nothing about 'y'"):
        sf.fit("x -> y", {"x": [0.0, 1.0, 2.5, 3.0], "y": [1.0, 2.0, 3.5, 0.5]}, prior=sf.priors.KnownVariance(1.0))
    with pytest.raises(FitError, match="KnownVariance imagines no rows"):
        sf.mixture({"y": [0.5, 1.0, 5.5, 6.0]}, 2, prior=(sf.Dirichlet(1), sf.priors.KnownVariance(1.0)))
