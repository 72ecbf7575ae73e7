"""Files that version 0.1 wrote are read, and answer as they did then: numbers below are those of 0.1."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import suffice as sf

FILES = Path(__file__).parent / "written_by_0_1"
ROWS = {
    "rain": ["no", "yes", "yes", "no", "yes", "no"] * 4,
    "wet": ["no", "yes", "yes", "no", "no", "yes"] * 4,
    "level": [0.5, 2.0, 1.75, 0.25, 2.5, 1.0] * 4,
    "n": [1, 4, 3, 0, 5, 2] * 4,
}
NUMBERS = {"level": sf.Real, "n": sf.Count}
STEPS = {"s": list("aabbbaabab") * 2, "who": ["u"] * 10 + ["v"] * 10}
STEPS |= {"x": [0.1, 0.2, 2.1, 1.9, 2.2, 0.3, 0.0, 2.0, 0.2, 1.8] * 2}
WORDS = {"who": ["a"] * 4 + ["b"] * 3, "word": ["the", "Cat", "sat", "down", "A", "dog", "ran"], "tag": list("DNVPDNV")}


def test_a_network() -> None:
    bn = sf.read(FILES / "network.json")
    assert isinstance(bn, sf.BayesNet)
    assert bn.log_likelihood(sf.scan({**ROWS, "yes": list("abaabb") * 4}, NUMBERS)) == pytest.approx(-86.05855240712654, abs=1e-9)
    more = bn["wet"].interval(0.9)  # the posterior is kept
    assert np.all(more[0] < bn["wet"].probs)
    assert np.all(bn["wet"].probs < more[1])


def test_what_an_update_tells_of_a_regression_is_one_thing() -> None:
    bn = sf.read(FILES / "network.json")
    with pytest.warns(sf.SufficeNote) as told:
        more = bn.update(sf.scan({**ROWS, "yes": list("abaabb") * 4}, NUMBERS))
    of_yes = [str(w.message) for w in told if "'yes'" in str(w.message)]
    assert len(of_yes) == 1, of_yes
    assert "the prior of the new rows" in of_yes[0]
    assert more.fit_info == "fitted from 48 rows, posterior mean"


def test_statistics() -> None:
    seen = sf.Statistics.load(FILES / "network.stats")
    dag = "rain -> wet; rain -> level; rain -> n"
    prior = (sf.BDeu(1), sf.NormalInverseGamma())
    rows = sf.scan(ROWS, NUMBERS)
    now, then = (sf.fit(dag, data, prior=prior).log_prob(rows) for data in (rows, seen))
    assert np.array_equal(now, then)


def test_a_chain() -> None:
    chain = sf.read(FILES / "chain.json")
    assert isinstance(chain, sf.Chain)
    assert float(np.sum(chain.log_prob(sf.sequences(STEPS, by="who")))) == pytest.approx(-9.508220269907996, abs=1e-9)


def test_an_undirected_model() -> None:
    model = sf.read(FILES / "markov.json")
    assert isinstance(model, sf.MarkovNet)
    assert model.log_likelihood({n: ROWS[n] for n in ("rain", "wet")}) == pytest.approx(-31.911872372514203, abs=1e-9)


def test_labels() -> None:
    crf = sf.read(FILES / "labels.json")
    assert isinstance(crf, sf.Crf)
    assert crf.log_prob(sf.sequences(WORDS, by="who")) == pytest.approx([-0.39547852, -0.29099167], abs=1e-7)
