"""Inference on the networks in ../shared: numbers of pyAgrum 3.3.1 on the large ones, and answers that agree with each other.

`tests/reference/make_marginals.py` wrote `pyagrum_marginals.json`, from exactly our tables. pyAgrum does not manage link here.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf

HERE = Path(__file__).parent
NETWORKS = HERE.parents[2] / "shared" / "data" / "networks"
STORED = json.loads((HERE / "pyagrum_marginals.json").read_text(encoding="utf-8"))
CASES = [pytest.param(n, a, id=f"{n}-{k}") for n in STORED if n != "pyagrum" for k, a in enumerate(STORED[n])]
ALL = sorted(path.name.removesuffix(".bif.gz") for path in NETWORKS.glob("*.bif.gz"))


@cache
def network(name: str) -> sf.BayesNet:
    """Read and compiled once for all tests."""
    return sf.read(NETWORKS / f"{name}.bif.gz")


@pytest.mark.parametrize(("name", "answer"), CASES)
def test_pyagrum(name: str, answer: dict[str, Any]) -> None:
    bn = network(name)
    ours = bn.marginals(answer["given"])
    assert ours.log_prob_of_evidence == pytest.approx(answer["log_prob"], abs=1e-9)
    for node, theirs in answer["marginals"].items():
        assert ours[node].probs == pytest.approx(theirs, rel=0, abs=1e-9), node
        if node not in answer["given"]:
            assert bn.query(node, answer["given"]).probs == pytest.approx(theirs, rel=0, abs=1e-9), node


def drawn(bn: sf.BayesNet, seed: int, share: float) -> dict[str, str]:
    """Some cells of a row of the network."""
    rng = np.random.default_rng(seed)
    row = bn.sample(1, seed=seed)
    return {n: row[n][0].as_py() for n in bn if rng.random() < share}


@pytest.mark.parametrize("name", ALL)
def test_ways_of_asking_agree(name: str) -> None:
    """All marginals, one query, one row, and the probability of the evidence, with little and with much observed."""
    bn = network(name)
    for seed, share in enumerate([0.03, 0.3]):
        given = drawn(bn, seed, share)
        marginals = bn.marginals(given)
        assert marginals.log_prob_of_evidence == pytest.approx(bn.log_prob_of(given), rel=1e-9, abs=1e-9)
        table = {n: [s] for n, s in given.items()} or {next(iter(bn)): [None]}
        for target in [n for n in bn if n not in given][:: max(1, len(bn) // 10)]:
            once = bn.query(target, given).probs
            np.testing.assert_allclose(marginals[target].probs, once, rtol=0, atol=1e-9)
            rows = bn.predict_proba(table, target)
            np.testing.assert_allclose([rows[s][0] for s in bn.variables[target].states], once, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", ALL)
def test_marginals_without_evidence_agree_with_samples(name: str) -> None:
    """Ten thousand draws, within six standard errors."""
    bn, n = network(name), 10_000
    marginals, rows = bn.marginals(), bn.sample(n, seed=0)
    for node in bn:
        p = marginals[node].probs
        assert p.sum() == pytest.approx(1.0, abs=1e-12)
        column = rows[node].combine_chunks()
        seen = np.bincount(column.indices.to_numpy(), minlength=len(p)) / n
        assert (np.abs(seen - p) <= 6 * np.sqrt(p * (1 - p) / n) + 3 / n).all(), node


@pytest.mark.parametrize("name", ALL)
def test_most_probable_states_are_at_least_as_probable_as_a_draw(name: str) -> None:
    bn = network(name)
    row = bn.sample(1, seed=7)
    given = {n: row[n][0].as_py() for n in list(bn)[::5]}
    best = bn.most_probable(given)
    rest = {n: row[n][0].as_py() for n in bn if n not in given}
    assert best.log_prob >= float(bn.log_prob({n: [s] for n, s in {**given, **rest}.items()})[0]) - 1e-9
    assert best.log_prob == pytest.approx(float(bn.log_prob({n: [s] for n, s in {**given, **best}.items()})[0]), rel=1e-9)
    assert best.log_prob <= best.log_prob_of_evidence + 1e-9
