"""Marginals and probabilities of evidence by another program.

Where they come from: pyAgrum 3.3.1, LazyPropagation, given exactly the tables of the bundled networks (its own reader of BIF
rounds), for three sets of observations drawn from each network; `make_marginals.py` wrote `pyagrum_marginals.json`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import suffice as sf

STORED = json.loads((Path(__file__).parent / "pyagrum_marginals.json").read_text(encoding="utf-8"))
CASES = [pytest.param(n, a, id=f"{n}-{k}") for n in STORED if n != "pyagrum" for k, a in enumerate(STORED[n])]


@pytest.mark.parametrize(("name", "answer"), CASES)
def test_marginals(name: str, answer: dict[str, Any]) -> None:
    bn = sf.load(name)
    ours = bn.marginals(answer["given"])
    assert list(answer["marginals"]) == list(bn)
    for node, theirs in answer["marginals"].items():
        assert ours[node].probs == pytest.approx(theirs, rel=0, abs=1e-9), node
    assert ours.log_prob_of_evidence == pytest.approx(answer["log_prob"], abs=1e-9)
    assert bn.log_prob_of(answer["given"]) == pytest.approx(answer["log_prob"], abs=1e-9)


@pytest.mark.parametrize(("name", "answer"), CASES)
def test_queries_and_rows(name: str, answer: dict[str, Any]) -> None:
    """Each unobserved node alone, by a query, and by a row of a frame."""
    bn = sf.load(name)
    frame = pd.DataFrame({n: [s] for n, s in answer["given"].items()})
    for node, theirs in answer["marginals"].items():
        if node not in answer["given"]:
            assert bn.query(node, answer["given"]).probs == pytest.approx(theirs, rel=0, abs=1e-9), node
            assert bn.predict_proba(frame, node).to_numpy(dtype=float)[0] == pytest.approx(theirs, rel=0, abs=1e-9), node
