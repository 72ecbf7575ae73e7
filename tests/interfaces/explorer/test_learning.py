"""Learning: choices, what it would cost, live progress, stopping, one job at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest

import suffice as sf
from tests.interfaces.explorer.conftest import Client


@pytest.fixture
def page(opened: Callable[..., Client], rows: dict[str, list[str]]) -> Client:
    return opened(None, rows)


def learned_by(page: Client, **how: Any) -> Any:
    job = page.post("learn", {"table": page.table, **how})
    assert job["kind"] == "learn"
    events = page.events(job["id"])
    assert events[0][0] == "step"
    assert events[-1][0] == "end"
    return events[-1][1]


def test_what_can_be_chosen_is_what_the_registry_has(page: Client) -> None:
    found = page.get("choices")
    assert {"bic", "aic"} <= {c["word"] for c in found["scores"]}
    assert {"orders", "hill-climb", "pc"} <= {c["word"] for c in found["methods"]}
    assert {"mle", "bdeu", "k2"} <= {c["word"] for c in found["priors"]}
    assert all(choice["text"] for kind in found.values() for choice in kind)


TIERS = [["smoke"], ["lung", "bronc"]]
RULES = {"require": [["smoke", "xray"]], "forbid": [["lung", "xray"]]}
HOW: list[tuple[Any, Any]] = [
    ({}, {}),
    (
        {"score": "bdeu:1", "method": "hill-climb", "max_parents": 2},
        {"score": sf.Evidence(sf.BDeu(1)), "method": sf.HillClimb(max_parents=2)},
    ),
    (
        {"prior": "k2", **RULES},
        {"prior": sf.K2(), "constraints": sf.Require(("smoke", "xray")) + sf.Forbid(("lung", "xray"))},
    ),
    ({"prior": "mle", "tiers": TIERS}, {"prior": None, "constraints": sf.Tiers(*TIERS)}),
]


@pytest.mark.parametrize(("how", "exact"), HOW)
def test_what_is_learned_is_what_the_library_learns(page: Client, rows: dict[str, list[str]], how: Any, exact: Any) -> None:
    end = learned_by(page, **how)
    assert (end["stopped"], end["error"]) == (False, None)
    assert page.page.shelf.model(end["model"]).network == sf.learn(rows, **exact)
    told = next(m for m in page.get("state")["models"] if m["id"] == end["model"])
    assert told["table"] == page.table
    edge = page.page.shelf.model(end["model"]).network.edges[0]
    why = page.get(f"models/{end['model']}/edge", parent=edge[0], child=edge[1])
    assert why["present"]


def test_the_cost_is_foretold(page: Client) -> None:
    told = page.post("learn", {"table": page.table, "dry_run": True, "method": "orders", "max_parents": 2})
    assert "families" in told["cost"]
    assert told["seconds"] > 0
    assert told["bytes"] > 0
    assert page.get("state")["job"] is None


@pytest.mark.parametrize(
    "how",
    [
        {"score": "best"},
        {"method": "magic"},
        {"prior": "faith"},
        {"max_parents": -1},
        {"max_parents": "two"},
        {"require": [["smoke"]]},
        {"require": [["smoke", "lung"], ["lung", "smoke"]]},
        {"tiers": ["smoke"]},
        {"tiers": [["smoke"], ["smoke"]]},
        {"time_limit": "long"},
        {"seed": 0.5},
        {"method": "chow-liu", "max_parents": 2},
    ],
)
def test_what_cannot_be_learned_is_refused(page: Client, how: Any) -> None:
    assert page.refusal("POST", "learn", json={"table": page.table, **how, "dry_run": False})
    assert page.get("state")["job"] is None


def test_a_refusal_while_learning_is_the_end(page: Client) -> None:
    job = page.post("learn", {"table": page.table, "require": [["smoke", "no such"]]})
    kind, end = page.events(job["id"])[-1]
    assert kind == "end"
    assert "no such" in end["error"]
    assert end["model"] is None


def test_one_job_at_a_time_answers_meanwhile_and_a_stop_keeps_the_best(page: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    from suffice.interfaces.explorer.answers.learning import LearningJob

    held, seen = threading.Event(), LearningJob.watch

    def slow(self: LearningJob, step: Any) -> bool:
        stop = seen(self, step)
        if "add" in step.what:
            held.wait(30)
        return stop or self._stop

    monkeypatch.setattr(LearningJob, "watch", slow)
    job = page.post("learn", {"table": page.table, "method": "hill-climb"})
    assert "one at a time" in page.refusal("POST", "learn", 409, json={"table": page.table})
    model = page.post("open", {"bundled": "cancer"})
    assert page.post(f"models/{model['id']}/beliefs")["possible"]
    assert page.get("state")["job"] == {"id": job["id"], "kind": "learn", "table": page.table, "running": True}
    assert page.post(f"jobs/{job['id']}/stop") == {}
    held.set()
    end = page.events(job["id"])[-1][1]
    assert end["stopped"]
    assert end["model"] is not None
    told = next(m for m in page.get("state")["models"] if m["id"] == end["model"])
    assert any("stopped before its end" in note for note in told["notes"])
    assert not page.get("state")["job"]["running"]
    assert "no job" in page.refusal("POST", "jobs/j99/stop", 404)
    assert "no job" in page.refusal("GET", "jobs/j99/events", 404)


def test_a_time_limit_keeps_the_best_so_far(page: Client) -> None:
    end = learned_by(page, time_limit=60)
    assert end["model"]


def test_rows_with_gaps_are_learned_by_structural_em(opened: Callable[..., Client], rows: dict[str, list[str]]) -> None:
    few = list(rows)[:4]
    some = {name: [None if i % 9 == k else v for i, v in enumerate(rows[name][:200])] for k, name in enumerate(few)}
    page = opened(None, some)
    assert "structural EM" in page.post("learn", {"table": page.table, "dry_run": True})["cost"]
    end = learned_by(page)
    assert end["error"] is None
    assert page.page.shelf.model(end["model"]).network.incomplete


def test_strengths_become_the_widths_of_edges(learned: Client, fitted: sf.BayesNet, rows: dict[str, list[str]]) -> None:
    job = learned.post(f"models/{learned.model}/strengths", {"table": learned.table, "n": 10})
    assert job["kind"] == "bootstrap"
    assert learned.events(job["id"])[-1][1]["error"] is None
    graph = learned.get(f"models/{learned.model}/graph", widths="share")
    sure = sf.bootstrap(fitted.rows(rows), n=10)
    for edge in graph["edges"]:
        assert edge["width"] == pytest.approx(1 + 4 * sure.strength(edge["from"], edge["to"]))
    assert learned.refusal("POST", f"models/{learned.model}/strengths", json={"table": learned.table, "n": 0})
