"""Every answer says what gives it outside: the Python runs and agrees, and so does the command."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from tests.interfaces.explorer.conftest import Client

ASKED: dict[str, Any] = {"given": {"xray": "yes"}, "soft": {"dysp": [0.7, 0.2]}, "do": {"smoke": "no"}}


def answer_of(code: dict[str, str], **known: Any) -> Any:
    """What the given Python answers."""
    names = dict(known)
    exec(code["python"], names)
    return names["answer"]


def printed(run: Any, code: dict[str, str], *more: str) -> Any:
    """What the given commands print, the last one with more options."""
    out = ""
    lines = code["command"].splitlines()
    for line in lines:
        words = shlex.split(line)
        assert words[0] == "suffice"
        status, out, err = run(*words[1:], *(more if line is lines[-1] else ()))
        assert status == 0, err
    return out


@pytest.fixture(scope="module")
def file(opened: Callable[..., Client], rows: dict[str, list[str]], tmp_path_factory: pytest.TempPathFactory) -> Client:
    """A model and rows in files."""
    place = tmp_path_factory.mktemp("code")
    path = place / "rows and more.csv"
    path.write_text("\n".join([",".join(rows), *map(",".join, zip(*rows.values(), strict=True))]))
    sf.write(sf.fit(sf.load("asia").dag, rows, prior=sf.BDeu(1)), place / "model.json")
    return opened(str(place / "model.json"), str(path))


def test_beliefs(file: Client, run: Any) -> None:
    told = file.ask("beliefs", **ASKED)
    python = answer_of(told["code"])
    command = json.loads(printed(run, told["code"], "--json"))
    assert command["log_prob_of_evidence"] == pytest.approx(told["log_evidence"])
    for name, belief in told["nodes"].items():
        assert python[name].probs.tolist() == belief["probs"]
    text = printed(run, told["code"])
    assert f"{told['nodes']['lung']['probs'][0]:.6g}"[:6] in text


def test_intervals(file: Client, run: Any) -> None:
    told = file.ask("beliefs", given={"xray": "yes"}, interval=0.9, only=["lung", "tub"])
    python = answer_of(told["code"])
    for name, belief in told["nodes"].items():
        np.testing.assert_allclose(python[name].interval.lower, belief["lower"], rtol=1e-12)
    assert "--interval 0.9" in told["code"]["command"]
    assert printed(run, told["code"])


def test_sampled_and_impossible(file: Client) -> None:
    told = file.ask("beliefs", **ASKED, sampled=True)
    assert answer_of(told["code"])["lung"].probs.tolist() == told["nodes"]["lung"]["probs"]
    asia = {"lung": "yes", "either": "no"}
    bundled = file.post("open", {"bundled": "asia"})
    refused = file.post(f"models/{bundled['id']}/beliefs", {"given": asia})
    assert answer_of(refused["code"]) == asia


def test_joint_and_explanation(file: Client, run: Any) -> None:
    told = file.ask("joint", **ASKED, targets=["lung", "tub"])
    np.testing.assert_allclose(answer_of(told["code"]).probs, told["probs"])
    command = json.loads(printed(run, told["code"], "--json"))
    assert command["targets"] == ["lung", "tub"]
    best = file.ask("explanation", **ASKED)
    assert dict(answer_of(best["code"])) == best["values"]
    assert json.loads(printed(run, best["code"], "--json"))["targets"]


def test_reasons(file: Client, run: Any) -> None:
    told = file.ask("influence", **ASKED, target="lung")
    assert dict(answer_of(told["code"]).information) == {row["node"]: row["information"] for row in told["rows"]}
    swings = file.ask("tornado", target="lung", state="yes")
    assert answer_of(swings["code"]).answer == swings["answer"]
    path = file.ask("separation", a="asia", b="smoke", given=["xray"])
    assert list(answer_of(path["code"])) == path["path"]
    table = file.get(f"models/{file.model}/cpd", node="dysp")
    assert repr(answer_of(table["code"])) == table["text"]
    assert printed(run, table["code"]).strip() == table["text"].strip()
    why = file.get(f"models/{file.model}/edge", parent="smoke", child="lung")
    assert repr(answer_of(why["code"])) == why["text"]
    cases = file.get(f"models/{file.model}/cases", table=file.table, limit=3)
    assert answer_of(cases["code"])[:3] == [case["row"] for case in cases["rows"]]


def test_models_and_tables(file: Client, run: Any) -> None:
    state = file.get("state")
    assert "BayesNet of 8 nodes" in printed(run, state["models"][0]["code"])
    assert "2,000 rows" in printed(run, state["tables"][0]["code"])
    wanted = {"smoke": {"states": ["yes", "no"]}, "tub": {"kind": "finite"}, "asia": {"kind": "ignore"}}
    new = file.post(f"tables/{file.table}/schema", {"columns": wanted})
    assert "asia" not in printed(run, new["code"]).split("missing")[-1].split()
    names: dict[str, Any] = {}
    exec(new["code"]["python"], names)
    assert names["data"].schema["smoke"].states == ("yes", "no")


def test_learning_and_comparing(file: Client, run: Any, tmp_path: Path) -> None:
    how = {"score": "bdeu:1", "method": "hill-climb", "max_parents": 2, "prior": "k2", "require": [["smoke", "xray"]], "seed": 1}
    job = file.post("learn", {"table": file.table, **how})
    model = file.events(job["id"])[-1][1]["model"]
    network = file.page.shelf.model(model).network
    told = file.post(f"models/{model}/beliefs", ASKED)
    assert answer_of(told["code"])["lung"].probs.tolist() == told["nodes"]["lung"]["probs"]
    assert printed(run, told["code"])
    assert sf.read(tmp_path / "learned-1.json") == network
    edge = network.edges[0]
    why = file.get(f"models/{model}/edge", parent=edge[0], child=edge[1])
    assert repr(answer_of(why["code"])) == why["text"]
    both = file.post("compare", {"a": file.model, "b": model})
    assert len(answer_of(both["code"]).edges) == len(both["graph"]["edges"])
    assert "shd" in printed(run, both["code"])


def test_values_of_a_python_session_go_by_their_names(learned: Client, fitted: sf.BayesNet, rows: dict[str, list[str]]) -> None:
    told = learned.ask("beliefs", **ASKED)
    assert told["code"]["command"] is None
    assert answer_of(told["code"], bn=fitted)["lung"].probs.tolist() == told["nodes"]["lung"]["probs"]


def test_names_with_marks(opened: Callable[..., Client], run: Any, tmp_path: Path) -> None:
    name, state = 'a "b", c=d|\n', "it's [1]"
    bn = sf.BayesNet(
        {name: [], "y": [name]}, {name: [0.25, 0.75], "y": [[0.5, 0.5], [0.1, 0.9]]}, {name: [state, "v"], "y": ["p", "q"]}
    )
    sf.write(bn, tmp_path / "odd name.json")
    client = opened(str(tmp_path / "odd name.json"))
    told = client.ask("joint", targets=["y"], given={name: state})
    assert answer_of(told["code"]).probs.tolist() == told["probs"] == [0.5, 0.5]
    assert json.loads(printed(run, told["code"], "--json"))["evidence"] == {name: state}
