"""Two models beside each other, and what can be taken away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from suffice.information import kl

import suffice as sf
from tests.interfaces.explorer.conftest import Client


@pytest.fixture(scope="module")
def two(opened: Callable[..., Client], fitted: sf.BayesNet, rows: dict[str, list[str]]) -> Client:
    return opened(fitted, rows, against="asia")


def test_two_models_are_compared(two: Client, fitted: sf.BayesNet, rows: dict[str, list[str]]) -> None:
    truth, other = sf.load("asia"), two.page.shelf.open["against"]
    answer = two.post("compare", {"a": two.model, "b": other, "table": two.table, "given": {"smoke": "yes"}})
    assert answer["shd"] == 0
    assert kl(fitted, truth) == np.inf  # of either, which the truth makes of tub and lung without exception
    assert answer["kl"]["a_to_b"] is None
    assert any("infinite" in note for note in answer["notes"])
    assert answer["kl"]["b_to_a"] == pytest.approx(kl(truth, fitted))
    scores = {row["name"]: row for row in answer["scores"]}
    assert scores["log-likelihood"]["a"] == pytest.approx(fitted.log_likelihood(rows))
    assert scores["log-likelihood"]["b"] == pytest.approx(truth.log_likelihood(rows))
    assert scores["parameters"] == {"name": "parameters", "a": 18, "b": 18}
    for side, bn in (("a", fitted), ("b", truth)):
        np.testing.assert_allclose(answer["beliefs"][side]["nodes"]["lung"]["probs"], bn.query("lung", {"smoke": "yes"}).probs)
    assert {edge["style"] for edge in answer["graph"]["edges"]} == {"both"}


def test_edges_that_differ_have_styles(two: Client) -> None:
    other = two.post("open", {"bundled": "cancer"})
    answer = two.post("compare", {"a": two.model, "b": other["id"], "given": {"smoke": "yes"}})
    assert {edge["style"] for edge in answer["graph"]["edges"]} == {"here", "there"}
    assert answer["kl"] is None
    assert any("different variables" in note for note in answer["notes"])
    assert any("has no smoke" in note for note in answer["notes"])
    assert "no model" in two.refusal("POST", "compare", 404, json={"a": two.model, "b": "m99"})
    assert two.refusal("POST", "compare", json={"a": two.model})


@pytest.mark.parametrize("word", ["json", "bif", "xdsl", "net", "uai", "xmlbif", "dsc"])
def test_models_are_exported_and_read_back(two: Client, fitted: sf.BayesNet, word: str, tmp_path: Any) -> None:
    reply = two.http.get(f"/api/models/{two.model}/export", params={"format": word})
    assert reply.status_code == 200
    assert reply.headers["content-disposition"] == f'attachment; filename="bn.{word}"'
    file = tmp_path / f"x.{word}"
    file.write_bytes(reply.content)
    read: Any = sf.read(file)
    assert len(read) == 8
    if word == "json":
        assert read == fitted
        again = two.send("models", reply.content, "x.json").json()
        assert again["has_posterior"]


@pytest.mark.parametrize("word", ["exe", "../json", "dsl", ""])
def test_formats_that_are_not_written_are_refused(two: Client, word: str) -> None:
    said = two.refusal("GET", f"models/{two.model}/export", params={"format": word})
    assert str(two.page.shelf.room) not in said


def test_pictures_are_those_of_the_library(two: Client, fitted: sf.BayesNet) -> None:
    reply = two.http.post(f"/api/models/{two.model}/picture", json={"given": {"smoke": "yes"}, "format": "svg"})
    assert reply.headers["content-type"] == "image/svg+xml"
    assert reply.text == fitted.picture({"smoke": "yes"}, interval=None).svg()
    ElementTree.fromstring(reply.text)
    png = two.http.post(f"/api/models/{two.model}/picture", json={"format": "png", "focus": "lung"})
    assert png.content.startswith(b"\x89PNG")
    assert two.refusal("POST", f"models/{two.model}/picture", json={"format": "pdf/../x"})
    assert not list(two.page.shelf.room.iterdir())


def test_reports_are_one_file(two: Client) -> None:
    reply = two.http.post(f"/api/models/{two.model}/report", json={"table": two.table})
    assert reply.status_code == 200
    assert reply.headers["content-type"].startswith("text/html")
    assert "lung" in reply.text
    assert two.http.post(f"/api/models/{two.model}/report", json={}).status_code == 200
