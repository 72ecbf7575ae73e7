"""What a network is asked: every answer is that of the library."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import suffice as sf
from tests.interfaces.explorer.conftest import Client

NAMES = ["<script>alert(1)</script>", "a \"b\" 'c'", "two\nlines", "\u202eright", "x" * 10_000, "日本", "a,b=c|d"]


def test_state_models_and_bundled(asia: Client) -> None:
    state = asia.get("state")
    model = state["models"][0]
    assert (model["name"], model["kind"], model["n_nodes"], model["n_edges"], model["n_parameters"]) == (
        "asia",
        "bayes_net",
        8,
        8,
        18,
    )
    assert not model["has_posterior"]
    assert state["open"] == {"model": model["id"], "table": None, "against": None}
    assert "alarm" in state["bundled"]
    other = asia.post("open", {"bundled": "cancer"})
    assert other["n_nodes"] == 5
    assert asia.http.delete(f"/api/models/{other['id']}").json() == {}
    assert "no model" in asia.refusal("GET", f"models/{other['id']}/nodes", 404)
    assert "no bundled network" in asia.refusal("POST", "open", json={"bundled": "../alarm"})


def test_nodes_and_graph(asia: Client) -> None:
    bn = sf.load("asia")
    nodes = {node["name"]: node for node in asia.get(f"models/{asia.model}/nodes")["nodes"]}
    assert {name: tuple(node["parents"]) for name, node in nodes.items()} == {n: bn.dag.parents(n) for n in bn}
    assert {name: tuple(node["states"]) for name, node in nodes.items()} == {n: v.states for n, v in bn.variables.items()}
    graph = asia.get(f"models/{asia.model}/graph", size="bars")
    assert graph["ready"]
    assert {(e["from"], e["to"]) for e in graph["edges"]} == set(bn.edges)
    assert {n["name"]: n["rows"] for n in graph["nodes"]}["lung"] == ["yes", "no"]
    boxes = [(n["x"], n["y"], n["x"] + n["w"], n["y"] + n["h"]) for n in graph["nodes"]]
    assert all(a >= 0 and b >= 0 and c <= graph["width"] and d <= graph["height"] for a, b, c, d in boxes)
    small = asia.get(f"models/{asia.model}/graph", size="names", focus="lung", steps=1)
    assert {n["name"] for n in small["nodes"]} == {"lung", "smoke", "either"}
    assert small["hidden"] == 5
    assert "no node" in asia.refusal("GET", f"models/{asia.model}/graph", params={"focus": "lun"})
    assert "names" in asia.refusal("GET", f"models/{asia.model}/graph", params={"size": "/etc/passwd"})


EVIDENCE: list[dict[str, Any]] = [
    {},
    {"given": {"xray": "yes"}},
    {"soft": {"xray": [0.7, 0.2]}, "given": {"smoke": "no"}},
    {"do": {"bronc": "yes"}, "given": {"dysp": "yes"}},
]


@pytest.mark.parametrize("evidence", EVIDENCE)
def test_beliefs_are_those_of_the_library(asia: Client, evidence: dict[str, Any]) -> None:
    bn = sf.load("asia").do(evidence["do"]) if "do" in evidence else sf.load("asia")
    given = {**evidence.get("given", {}), **evidence.get("soft", {})}
    answer = asia.ask("beliefs", **evidence)
    assert answer["possible"]
    assert answer["log_evidence"] == pytest.approx(bn.log_prob_of(given))
    for name in bn:
        if name not in evidence.get("given", {}):
            np.testing.assert_allclose(answer["nodes"][name]["probs"], bn.query(name, given).probs, atol=1e-12)
    few = asia.ask("beliefs", **evidence, only=["tub"])
    assert list(few["nodes"]) == ["tub"]


def test_intervals_are_those_of_the_library(learned: Client, fitted: sf.BayesNet) -> None:
    answer = learned.ask("beliefs", given={"smoke": "yes"}, interval=0.9, only=["lung", "smoke"])
    exact = fitted.marginals({"smoke": "yes"}, interval=0.9, targets=["lung", "smoke"])["lung"]
    assert answer["nodes"]["lung"]["lower"] == exact.interval.lower.tolist()
    assert answer["nodes"]["lung"]["upper"] == exact.interval.upper.tolist()
    assert answer["nodes"]["smoke"]["lower"] == answer["nodes"]["smoke"]["probs"]


def test_without_a_posterior_there_are_no_intervals_and_a_hint(asia: Client) -> None:
    answer = asia.ask("beliefs", interval=0.95)
    assert answer["nodes"]["lung"]["lower"] is None
    assert any("prior=BDeu(1)" in note for note in answer["notes"])
    assert "no posterior" in asia.refusal("POST", f"models/{asia.model}/tornado", json={"target": "lung", "state": "yes"})


def test_impossible_evidence_is_said_and_not_refused(asia: Client) -> None:
    answer = asia.ask("beliefs", given={"smoke": "yes", "lung": "yes", "either": "no"})
    assert not answer["possible"]
    assert answer["at_odds"] == ["lung", "either"]
    assert answer["message"] == "these contradict each other: lung=yes, either=no"
    assert answer["evidence_probability"] == 0


@pytest.mark.parametrize(
    "body",
    [
        {"given": {"lung": "maybe"}},
        {"given": {"lungs": "yes"}},
        {"given": {"lung": None}},
        {"given": {"lung": {"a": 1}}},
        {"given": {"lung": True}},
        {"given": ["lung"]},
        {"soft": {"lung": [0.5]}},
        {"soft": {"lung": "yes"}},
        {"soft": {"lung": [0, 0]}},
        {"given": {"lung": "yes"}, "soft": {"lung": [1, 1]}},
        {"do": {"lung": "maybe"}},
        {"only": ["lungs"]},
        {"only": "lung"},
        {"interval": "wide"},
        {"sampled": "yes"},
    ],
)
def test_what_cannot_be_asked_is_refused(asia: Client, body: dict[str, Any]) -> None:
    assert asia.refusal("POST", f"models/{asia.model}/beliefs", json=body)


@pytest.mark.parametrize("body", [b"{", b"[1]", b'"x"', b"\xff", b"[" * 100_000])
def test_a_body_that_is_no_object_is_refused(asia: Client, body: bytes) -> None:
    assert "JSON" in asia.refusal("POST", f"models/{asia.model}/beliefs", content=body)


def test_joint_and_explanation(asia: Client) -> None:
    bn = sf.load("asia")
    answer = asia.ask("joint", targets=["smoke", "tub"], given={"xray": "yes"})
    np.testing.assert_allclose(answer["probs"], bn.query(["smoke", "tub"], {"xray": "yes"}).probs)
    assert answer["states"] == [["yes", "no"], ["yes", "no"]]
    assert "one to 3" in asia.refusal("POST", f"models/{asia.model}/joint", json={"targets": ["smoke", "tub", "lung", "xray"]})
    assert "one to 3" in asia.refusal("POST", f"models/{asia.model}/joint", json={"targets": []})
    best = asia.ask("explanation", given={"xray": "yes"})
    exact = bn.most_probable({"xray": "yes"})
    assert best["values"] == dict(exact)
    assert best["log_prob"] == pytest.approx(exact.log_prob)


def test_influence_and_tornado(learned: Client, fitted: sf.BayesNet) -> None:
    answer = learned.ask("influence", target="lung", given={"xray": "yes"})
    exact = fitted.influence("lung", {"xray": "yes"})
    assert {row["node"]: row["information"] for row in answer["rows"]} == pytest.approx(dict(exact.information))
    move = next(row for row in answer["rows"] if row["node"] == "smoke")["moves"][0]
    assert move["to"] == pytest.approx(fitted.query("lung", {"xray": "yes", "smoke": move["state"]})[move["of"]])
    swings = learned.ask("tornado", target="lung", state="yes")
    own = fitted.tornado("lung", "yes")
    assert swings["answer"] == pytest.approx(own.answer)
    assert [(row["low"], row["high"]) for row in swings["rows"]] == [(b.at_low, b.at_high) for b in own.bends]


def test_separation_has_the_active_path(asia: Client) -> None:
    assert asia.ask("separation", a="asia", b="smoke", given=[])["separated"]
    answer = asia.ask("separation", a="asia", b="smoke", given=["xray"])
    assert answer["path"] == ["asia", "tub", "either", "lung", "smoke"]
    assert "not given" in asia.refusal("POST", f"models/{asia.model}/separation", json={"a": "asia", "b": "asia"})


def test_tables_of_nodes(learned: Client, fitted: sf.BayesNet) -> None:
    answer = learned.get(f"models/{learned.model}/cpd", node="dysp")
    assert answer["columns"] == ["bronc", "either", "dysp=no", "dysp=yes"]
    assert [row[2:] for row in answer["rows"]] == fitted["dysp"].probs.reshape(-1, 2).tolist()
    low, _ = fitted["dysp"].interval()
    assert np.array(answer["ends"])[..., 0].tolist() == low.reshape(-1, 2).tolist()
    assert answer["cut"] == 0
    assert "no node" in learned.refusal("GET", f"models/{learned.model}/cpd", params={"node": "x"})


def test_reasons_of_edges(learned: Client, asia: Client, fitted: sf.BayesNet, rows: dict[str, list[str]]) -> None:
    found = sf.search(fitted.rows(rows), method=sf.methods.GivenGraph(fitted.dag))
    there = learned.get(f"models/{learned.model}/edge", parent="smoke", child="lung")
    assert there["present"]
    assert there["loss"] == pytest.approx(found.losses["smoke", "lung"])
    assert there["text"] == repr(found.explain(("smoke", "lung")))
    assert not learned.get(f"models/{learned.model}/edge", parent="smoke", child="tub")["present"]
    graph = learned.get(f"models/{learned.model}/graph", widths="loss")
    assert "loss without the edge" in graph["widths"]
    assert len({edge["width"] for edge in graph["edges"]}) > 3
    assert "no data" in asia.refusal("GET", f"models/{asia.model}/edge", params={"parent": "smoke", "child": "lung"})
    assert "resampled" in asia.refusal("GET", f"models/{asia.model}/graph", params={"widths": "share"})


def test_numbers_and_hybrid_networks(opened: Callable[..., Client]) -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 300)
    x = a + rng.normal(size=300)
    data = {
        "a": np.array(["no", "yes"])[a],
        "x": x,
        "y": 2 * x + rng.normal(size=300),
        "l": np.where(rng.random(300) < 1 / (1 + np.exp(-x)), "u", "v"),
    }
    families = {"l": sf.Logistic()}
    bn = sf.fit("a -> x -> y; x -> l", data, prior=(sf.BDeu(1), sf.NormalInverseGamma()), families=families)
    client = opened(bn, data)
    kinds = {node["name"]: node["kind"] for node in client.get(f"models/{client.model}/nodes")["nodes"]}
    assert kinds == {"a": "finite", "x": "real", "y": "real", "l": "finite"}
    answer = client.ask("beliefs", given={"x": 1.5}, only=["a", "y", "l"], interval=0.95)
    exact = bn.query("y", {"x": 1.5})
    assert answer["nodes"]["y"]["mean"] == pytest.approx(exact.mean)
    at, height = zip(*answer["nodes"]["y"]["density"], strict=True)
    assert 0.9 < np.trapezoid(height, at) < 1.01
    assert answer["nodes"]["l"]["probs"] == pytest.approx(bn.query("l", {"x": 1.5}).probs.tolist())
    assert any("left out" in note for note in client.ask("beliefs")["notes"])  # l, whose parent is not observed
    done = client.ask("beliefs", do={"x": 2.0}, only=["x", "y"])
    assert done["nodes"]["x"]["mean"] == 2.0
    assert client.get(f"models/{client.model}/cpd", node="l")["rows"]
    assert client.get(f"models/{client.model}/cpd", node="y")["rows"]
    assert "a number" in client.refusal("POST", f"models/{client.model}/joint", json={"targets": ["a", "x"]})


def test_networks_without_arrows(opened: Callable[..., Client]) -> None:
    net = sf.load("asia").moral()
    client = opened(net)
    assert client.get("state")["models"][0]["kind"] == "markov_net"
    answer = client.ask("beliefs", given={"xray": "yes"}, interval=0.95)
    np.testing.assert_allclose(answer["nodes"]["lung"]["probs"], net.query("lung", {"xray": "yes"}).probs)
    assert not any(edge["directed"] for edge in client.get(f"models/{client.model}/graph")["edges"])
    assert client.ask("separation", a="asia", b="xray", given=["tub"])["separated"]
    for question, body in (("influence", {"target": "lung"}), ("beliefs", {"do": {"lung": "yes"}})):
        assert "without arrows" in client.refusal("POST", f"models/{client.model}/{question}", json=body)


def test_chains_and_other_models_are_refused_with_what_answers_instead(asia: Client, tmp_path: Any) -> None:
    chain = sf.fit("x[-1] -> x", sf.sequences({"x": list("uvuvvuuv")}))
    sf.write(chain, tmp_path / "chain.json")
    said = asia.send("models", (tmp_path / "chain.json").read_bytes(), "chain.json")
    assert said.status_code == 400
    assert "suffice decode, smooth, filter and forecast" in said.json()["error"]["message"]
    with pytest.raises(sf.SufficeError, match="suffice decode"):
        sf.explore(chain)


@pytest.mark.parametrize("n", [0, 1])
def test_networks_of_few_nodes(opened: Callable[..., Client], n: int) -> None:
    names = ["x"][:n]
    client = opened(sf.BayesNet(sf.Dag({x: [] for x in names}), {x: [0.25, 0.75] for x in names}, {x: ["a", "b"] for x in names}))
    graph = client.get(f"models/{client.model}/graph")
    assert len(graph["nodes"]) == n
    assert len(client.ask("beliefs")["nodes"]) == n
    assert client.http.post(f"/api/models/{client.model}/picture", json={}).status_code == 200


def test_names_and_states_of_any_kind(opened: Callable[..., Client]) -> None:
    first, *rest = NAMES
    bn = sf.BayesNet({b: [a] for a, b in zip(NAMES, rest, strict=False)} | {first: []}, {
        name: [0.25, 0.75] if name == first else [[0.5, 0.5], [0.1, 0.9]] for name in NAMES
    }, dict.fromkeys(NAMES, NAMES[:2]))  # fmt: skip
    client = opened(bn)
    assert {node["name"] for node in client.get(f"models/{client.model}/graph")["nodes"]} == set(NAMES)
    for name in NAMES:
        answer = client.ask("beliefs", given={name: NAMES[0]})
        np.testing.assert_allclose(answer["nodes"][first]["probs"], bn.marginals({name: NAMES[0]})[first].probs)
        assert client.get(f"models/{client.model}/cpd", node=name)["rows"]
        assert client.get(f"models/{client.model}/graph", focus=name)["nodes"]
    assert "<script>" not in client.http.post(f"/api/models/{client.model}/picture", json={}).text


def test_a_thousand_states(opened: Callable[..., Client]) -> None:
    p = np.random.default_rng(0).dirichlet(np.ones(1000))
    client = opened(sf.BayesNet("x", {"x": p}, {"x": [f"s{i}" for i in range(1000)]}))
    node = client.get(f"models/{client.model}/graph")["nodes"][0]
    assert (len(node["rows"]), node["more"]) == (12, 988)
    assert client.ask("beliefs")["nodes"]["x"]["probs"] == pytest.approx(p.tolist())


def test_a_junction_tree_that_is_too_large_offers_draws(opened: Callable[..., Client]) -> None:
    rng, n = np.random.default_rng(0), 60
    names = [f"x{i}" for i in range(n)]
    parents = {name: sorted(rng.choice(names[:i], min(i, 4), replace=False).tolist()) for i, name in enumerate(names)}
    tables = {name: rng.dirichlet(np.ones(8), [8] * len(above)) for name, above in parents.items()}
    bn = sf.BayesNet(parents, tables, {name: [str(k) for k in range(8)] for name in names})
    client = opened(bn)
    said = client.refusal("POST", f"models/{client.model}/beliefs", json={})
    assert "sampled" in said
    answer = client.ask("beliefs", sampled=True, given={"x0": "1"})
    assert answer["method"] == "sampled"
    assert 0 < answer["error"] < 0.02
    assert answer["log_evidence"] == pytest.approx(np.log(tables["x0"][1]))
    exact = bn.query("x1", {"x0": "1"}).probs
    np.testing.assert_allclose(answer["nodes"]["x1"]["probs"], exact, atol=5 * answer["error"])


def test_large_layouts_are_made_beside_and_a_focus_at_once(opened: Callable[..., Client]) -> None:
    client = opened("link")
    name = client.get(f"models/{client.model}/nodes")["nodes"][0]["name"]
    first = client.http.get(f"/api/models/{client.model}/graph")
    assert (first.status_code, first.json()) == (202, {"ready": False})
    assert client.get(f"models/{client.model}/graph", focus=name)["hidden"] > 600
    until = time.monotonic() + 120
    while (reply := client.http.get(f"/api/models/{client.model}/graph")).status_code == 202:
        assert time.monotonic() < until
        time.sleep(0.2)
    assert len(reply.json()["nodes"]) == 724


def test_a_network_without_arrows_that_is_too_large_is_sampled(
    opened: Callable[..., Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    states = {name: sf.Finite(name, ["no", "yes"]) for name in "abc"}
    net = sf.MarkovNet({("a", "b"): np.eye(2), ("b", "c"): np.eye(2), "a": [1.0, 0.0]}, states)
    exact = net.query("a", {"c": "yes"}).probs
    client = opened(net)
    answer = client.ask("beliefs", sampled=True, given={"c": "yes"})
    assert (answer["method"], answer["log_evidence"]) == ("sampled", None)
    assert 0 < answer["error"] < 0.05
    np.testing.assert_allclose(answer["nodes"]["a"]["probs"], exact, atol=5 * answer["error"])
    assert "sf.methods.Gibbs(10000)" in answer["code"]["python"]


def test_intervals_take_no_longer_than_somebody_waits(learned: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("suffice.interfaces.explorer.answers.beliefs.PATIENCE", 1e-9)
    answer = learned.ask("beliefs", interval=0.95)
    assert all(node["lower"] is None for node in answer["nodes"].values())
    assert "ask for fewer nodes" in answer["notes"][0]
