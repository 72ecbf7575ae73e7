"""Calibration: scores are those of scikit-learn, bins add up, and a network that is right is calibrated."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest

import suffice as sf

matplotlib.use("Agg")

ASIA = sf.load("asia")


def test_scores_are_those_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    bn = sf.fit(ASIA.dag, ASIA.sample(300, seed=3), prior=sf.BDeu(1))
    rows = ASIA.sample(500, seed=0)
    result = sf.calibration(bn, rows, "dysp")
    p = np.asarray(bn.predict_proba(rows, "dysp")["yes"])
    y = np.array(rows["dysp"].to_pylist()) == "yes"
    assert result.brier == pytest.approx(2 * metrics.brier_score_loss(y, p))
    assert result.log_score == pytest.approx(-metrics.log_loss(y, p))
    assert result.roc["yes"].area == pytest.approx(metrics.roc_auc_score(y, p))
    assert result.roc["no"].area == pytest.approx(result.roc["yes"].area)


def test_bins_hold_all_rows_and_their_intervals_the_truth() -> None:
    result = sf.calibration(ASIA, ASIA.sample(20_000, seed=0), "dysp")
    yes = [b for b in result.bins if b.state == "yes"]
    assert sum(b.weight for b in yes) == 20_000
    assert sum(b.lower <= b.predicted <= b.upper for b in yes) >= len(yes) - 1
    assert all(b.lower <= b.observed <= b.upper for b in yes)
    assert "<table>" in result._repr_html_()
    assert result.plot().get_ylabel() == "share that has dysp=yes"
    assert result.plot_roc(state="no").lines


def test_weights_count_as_rows() -> None:
    table = {"smoke": ["yes", "no", "no"], "lung": ["yes", "no", "yes"], "n": [2, 5, 1]}
    longer = {c: [v for v, n in zip(table[c], table["n"], strict=True) for _ in range(n)] for c in ("smoke", "lung")}
    a, b = sf.calibration(ASIA, sf.scan(table, weights="n"), "lung"), sf.calibration(ASIA, longer, "lung")
    assert (a.brier, a.log_score, a.weight) == pytest.approx((b.brier, b.log_score, b.weight))


def test_rows_without_weight_say_nothing_even_if_impossible() -> None:
    sure = sf.fit("z -> s", {"z": list("aabb"), "s": list("uuvv")})
    rows = sf.scan({"z": list("aabb"), "s": list("uvvu"), "n": [1, 0, 1, 0]}, weights="n")
    assert sf.calibration(sure, rows, "z").log_score == 0.0


def test_rows_with_gaps_and_one_state_only() -> None:
    result = sf.calibration(ASIA, {"smoke": ["yes", None], "lung": ["no", "no"]}, "lung")
    assert np.isnan(result.roc["yes"].area)
    assert result.weight == 2


def test_refusals() -> None:
    rows = {"smoke": ["yes", "no"], "lung": ["yes", None]}
    with pytest.raises(sf.SufficeError, match="missing"):
        sf.calibration(ASIA, rows, "lung")
    with pytest.raises(sf.SufficeError, match="no column 'xray'"):
        sf.calibration(ASIA, rows, "xray")
    with pytest.raises(sf.SufficeError, match="no node 'nobody'"):
        sf.calibration(ASIA, rows, "nobody")
    gaussian = sf.fit("x", {"x": [0.5, 1.5, 2.5]})
    with pytest.raises(sf.SufficeError, match="is a number"):
        sf.calibration(gaussian, {"x": [0.5]}, "x")
    with pytest.raises(sf.SufficeError, match="no state 'perhaps'"):
        sf.calibration(ASIA, {"lung": ["yes", "no"]}, "lung").plot(state="perhaps")
