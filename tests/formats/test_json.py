"""Suffice's own JSON keeps everything."""

from __future__ import annotations

import json

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FormatError
from suffice.formats.json import model as json_model
from tests.oracles import random_net, random_rows

U, W = sf.Finite("u", ["a", "b"]), sf.Finite("w", ["p", "q", "r"])
PRIORS = [
    None,
    sf.BDeu(2),
    (sf.Dirichlet(0.5), sf.NormalInverseGamma()),
    (sf.K2(), sf.BGe()),
    sf.BDe(sf.BayesNet("u; w", {"u": [0.5, 0.5], "w": [0.2, 0.3, 0.5]}, [U, W]), 3),
]
GRAPH = "u -> w; u -> x; x -> y; w -> y; y -> z"


def test_networks_written_down_and_unseen_configurations(tmp_path) -> None:
    sf.write(random_net(3), tmp_path / "a.json.gz")
    assert sf.read(tmp_path / "a.json.gz") == random_net(3)
    sparse = sf.fit("g -> y", sf.scan({"g": ["a", "a", "a"], "y": [1.0, 2.0, 4.0]}, variables={"g": ["a", "b"]}))
    sf.write(sparse, tmp_path / "b.json")
    assert sf.read(tmp_path / "b.json") == sparse
    binned = sf.fit("age", sf.scan({"age": [1.0, 20.0, 70.0]}, variables={"age": sf.Bins([18, 65])}))
    sf.write(binned, tmp_path / "c.json")
    assert sf.read(tmp_path / "c.json").log_prob({"age": [5.0]}) == pytest.approx(np.log(1 / 3))


def test_damaged_files_are_refused(tmp_path) -> None:
    text = json_model.write(sf.fit(GRAPH, random_rows(0, 80), prior=PRIORS[2]))
    path = tmp_path / "m.json"
    content = json.loads(text)
    for key in content:
        smaller = {k: v for k, v in content.items() if k != key}
        path.write_text(json.dumps(smaller), "utf-8")
        with pytest.raises(FormatError, match=r"m\.json"):
            sf.read(path)
    for end in range(0, len(text), 997):
        path.write_text(text[:end], "utf-8")
        with pytest.raises(FormatError, match=r"m\.json"):
            sf.read(path)
    path.write_text(text.replace('"table"', '"tabel"'), "utf-8")
    with pytest.raises(FormatError, match="tabel"):
        sf.read(path)
    path.write_text("[" * 100_000, "utf-8")
    with pytest.raises(FormatError):
        sf.read(path)
