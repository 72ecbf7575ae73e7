"""Calls as 0.1 took them give what the calls of 0.2 give, with one note that says how to move."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import suffice as sf

ROWS = {"rain": ["no", "yes"] * 20, "wet": ["no", "yes"] * 19 + ["no", "no"]}
GAPS = {"a": ["x", "x", "y", None] * 5, "b": ["u", "u", "v", "v"] * 5}
POINTS = {"x": [1.0, 1.1, 0.9, 1.2, 5.0, 5.2, 4.9], "y": [0.0, 0.4, 0.1, 0.3, 2.0, 2.2, 2.5]}
CLIMB: Any = sf.HillClimb()
HIDDEN: Any = [sf.Finite("h", ["0", "1"])]
STEPS = sf.sequences({"x": [0.1, -0.2, 0.0, 0.2, 5.1, 4.9, 5.2, 5.0, 4.8, 0.1, -0.1, 0.0], "who": list("aaaaaabbbbbb")}, by="who")

MOVED: dict[str, tuple[Callable[[], Any], Callable[[], Any], str]] = {
    "bootstrap(data, method, n)": (
        lambda: sf.bootstrap(ROWS, CLIMB, 3).counts.tolist(),
        lambda: sf.bootstrap(ROWS, method=CLIMB, n=3).counts.tolist(),
        r"bootstrap\(data, method=\.\.\., n=\.\.\.\) since 0\.2",
    ),
    "bootstrap(data, method, score=)": (
        lambda: sf.bootstrap(ROWS, CLIMB, n=3, score=sf.AIC()).counts.tolist(),
        lambda: sf.bootstrap(ROWS, sf.AIC(), CLIMB, n=3).counts.tolist(),
        r"bootstrap\(data, method=\.\.\.\) since 0\.2",
    ),
    "bootstrap(data, None, n)": (
        lambda: sf.bootstrap(ROWS, None, 3).counts.tolist(),
        lambda: sf.bootstrap(ROWS, n=3).counts.tolist(),
        "since 0.2",
    ),
    "cross_validate(data, graph, folds)": (
        lambda: sf.cross_validate(ROWS, "rain -> wet", 4).mean,
        lambda: sf.cross_validate(ROWS, method="rain -> wet", folds=4).mean,
        r"cross_validate\(data, method=\.\.\., folds=\.\.\.\)",
    ),
    "structural_em(data, hidden, score)": (
        lambda: sf.structural_em(GAPS, HIDDEN, sf.BIC(), starts=2).score,
        lambda: sf.structural_em(GAPS, sf.BIC(), hidden=HIDDEN, starts=2).score,
        r"structural_em\(data, hidden=\.\.\., score=\.\.\.\)",
    ),
    "em(accelerate=)": (
        lambda: sf.em("a -> b", GAPS, accelerate=sf.methods.Squarem()).log_likelihood,
        lambda: sf.em("a -> b", GAPS, method=sf.methods.Squarem()).log_likelihood,
        r"method=Squarem\(\) since 0\.2",
    ),
    "em(batches=)": (
        lambda: sf.em("a -> b", GAPS, batches=2).log_likelihood,
        lambda: sf.em("a -> b", GAPS, method=sf.methods.Incremental(2)).log_likelihood,
        r"method=Incremental\(10\) since 0\.2",
    ),
    "em(m_step=)": (
        lambda: sf.em("a -> b", GAPS, m_step="gradient").log_likelihood,
        lambda: sf.em("a -> b", GAPS).log_likelihood,
        "m_step=",
    ),
    "mixture(families=)": (
        lambda: sf.mixture(POINTS, 2, families=sf.latent.Diagonal()).log_likelihood,
        lambda: sf.mixture(POINTS, 2, covariance=sf.latent.Diagonal()).log_likelihood,
        "covariance= since 0.2",
    ),
    "hmm(families=kinds)": (
        lambda: sf.hmm(STEPS, 2, families={"x": sf.latent.Tied()}, starts=2).log_likelihood,
        lambda: sf.hmm(STEPS, 2, covariance={"x": sf.latent.Tied()}, starts=2).log_likelihood,
        "covariance=",
    ),
    "hmm(accelerate=)": (
        lambda: sf.hmm(STEPS, 2, accelerate=sf.methods.Squarem(), starts=2).log_likelihood,
        lambda: sf.hmm(STEPS, 2, method=sf.methods.Squarem(), starts=2).log_likelihood,
        r"method=Squarem\(\)",
    ),
    "rbm(hidden=)": (
        lambda: sf.undirected.rbm(ROWS, hidden=2, epochs=1).model.weights.tolist(),
        lambda: sf.undirected.rbm(ROWS, k=2, epochs=1).model.weights.tolist(),
        "k= since 0.2",
    ),
    "Bins(method=)": (lambda: sf.Bins(3, "width"), lambda: sf.Bins(3, width=True), r"Bins\(5, width=True\)"),
    "Bins(method='mdl')": (lambda: sf.Bins(method="mdl", target="y"), lambda: sf.Bins(target="y"), r"Bins\(target='ill'\)"),
    "GraphicalLasso(on=)": (
        lambda: sf.GraphicalLasso(on="covariance"),
        lambda: sf.GraphicalLasso(scaled=False),
        "scaled=False since 0.2",
    ),
}


@pytest.mark.parametrize("name", MOVED)
def test_calls_of_0_1_are_understood_with_one_note(name: str) -> None:
    old, new, words = MOVED[name]
    with pytest.warns(sf.SufficeNote, match=words) as told:
        found = old()
    assert len([w for w in told if "since 0.2" in str(w.message)]) == 1
    assert found == new() or np.allclose(found, new())


def test_what_cannot_be_told_apart_is_refused_in_one_sentence() -> None:
    with pytest.raises(TypeError, match=r"\(data, score, method, \.\.\.\): name those after data"):
        sf.bootstrap(ROWS, CLIMB, 3, sf.BIC())
    with pytest.raises(sf.SufficeError, match=r"\(data, score, method, \.\.\.\): name those after data"):
        sf.bootstrap(ROWS, CLIMB, method=CLIMB)


def test_scores_come_second_without_a_note(recwarn: pytest.WarningsRecorder) -> None:
    assert sf.bootstrap(ROWS, sf.AIC(), CLIMB, n=2).n_done == 2
    assert not [w for w in recwarn if "since 0.2" in str(w.message)]
