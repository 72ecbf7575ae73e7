"""What should not be put in: strange names, no nodes, many states, what cannot happen, broken files, a server that is gone."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import expect

import suffice as sf
from suffice.interfaces.explorer.serving import Explorer
from tests.browser.visits import Visit, agrees_everywhere

Open = Callable[..., Visit]
Start = Callable[..., Explorer]
STRANGE = {
    "markup": '<script>alert("x")</script><img src=x onerror=alert(1)>',
    "quotes": 'it\'s "quoted" \\ and `ticked`',
    "newlines": "two\nlines\tand a tab",
    "right to left": "משתנה ‮reversed",
    "long": "long " * 2000,
    "prototype": "__proto__",
}


@pytest.mark.parametrize("kind", STRANGE)
def test_names_and_states_are_text(explored: Start, tab: Open, kind: str) -> None:
    name, states = STRANGE[kind], [f"{STRANGE[kind]} 0", f"{STRANGE[kind]} 1"]
    bn = sf.BayesNet(
        sf.Dag([(name, "y")]),
        {name: [0.25, 0.75], "y": [[0.9, 0.1], [0.2, 0.8]]},
        variables=[sf.Finite(name, states), sf.Finite("y", ["a", "b"])],
    )
    visit = tab(explored(bn))
    expect(visit.test_id("node")).to_have_count(2)
    agrees_everywhere(visit, bn)
    visit.page.locator("[data-testid=node]:not([data-node=y]) [data-testid=bar]").first.click()
    expect(visit.test_id("p-evidence").locator("output")).to_have_text("0.25")
    agrees_everywhere(visit, bn, {name: states[0]})
    expect(visit.test_id("panel")).to_be_visible()
    visit.button("table").click()
    expect(visit.test_id("panel").locator(".scroll tbody tr").first).to_be_visible()
    visit.shoot(f"strange-{kind.replace(' ', '-')}")
    assert visit.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    visit.page.reload()
    expect(visit.test_id("p-evidence")).to_be_visible()
    agrees_everywhere(visit, bn, {name: states[0]})


def test_no_nodes_and_one(explored: Start, tab: Open) -> None:
    nothing = tab(explored(sf.BayesNet(sf.Dag([]), {}, variables=[])))
    expect(nothing.page.get_by_role("main")).to_contain_text("nodes")
    nothing.shoot("no-nodes")
    one = sf.BayesNet(sf.Dag([], nodes=["x"]), {"x": [0.25, 0.75]}, variables=[sf.Finite("x", ["a", "b"])])
    visit = tab(explored(one))
    agrees_everywhere(visit, one)
    visit.bar("x", "b").click()
    expect(visit.test_id("p-evidence").locator("output")).to_have_text("0.75")


def test_a_thousand_states(explored: Start, tab: Open) -> None:
    states = [f"s{i}" for i in range(1000)]
    probs = np.random.default_rng(0).dirichlet(np.ones(1000))
    bn = sf.BayesNet(
        sf.Dag("x -> y"),
        {"x": probs, "y": np.tile([0.5, 0.5], (1000, 1))},
        variables=[sf.Finite("x", states), sf.Finite("y", ["a", "b"])],
    )
    visit = tab(explored(bn))
    agrees_everywhere(visit, bn)
    visit.choose("x")
    expect(visit.test_id("panel").get_by_test_id("panel-bar")).to_have_count(14)
    visit.button("show all 1000 states").click()
    expect(visit.test_id("panel").get_by_test_id("panel-bar")).to_have_count(1000)
    visit.panel_bar("s777").click()
    expect(visit.test_id("evidence")).to_contain_text("x = s777")
    visit.shoot("thousand-states")


def test_what_cannot_happen_is_said_at_the_bar(explored: Start, tab: Open) -> None:
    asia = sf.load("asia")
    visit = tab(explored("asia"))
    visit.bar("tub", "yes").click()
    expect(visit.test_id("evidence")).to_contain_text("tub = yes")
    visit.bar("either", "no").click()
    expect(visit.test_id("panel").get_by_role("alert")).to_contain_text("tub")
    expect(visit.bar("either", "no")).to_have_class(re.compile("refused"))
    expect(visit.test_id("evidence")).not_to_contain_text("either")
    agrees_everywhere(visit, asia, {"tub": "yes"})  # the last possible is kept
    visit.shoot("impossible")
    visit.button("undo").click()
    expect(visit.test_id("evidence")).to_contain_text("No evidence")


def test_a_junction_tree_that_is_too_large(explored: Start, tab: Open) -> None:
    side, size = 12, 8
    cell = lambda i, j: f"c{i}_{j}"  # noqa: E731
    parents = {cell(i, j): [cell(*p) for p in ((i - 1, j), (i, j - 1)) if min(p) >= 0] for i in range(side) for j in range(side)}
    rng = np.random.default_rng(0)
    tables = {name: rng.dirichlet(np.ones(size), (size,) * len(above)) for name, above in parents.items()}
    names = [str(i) for i in range(size)]
    bn = sf.BayesNet(sf.Dag(parents), tables, variables=[sf.Finite(name, names) for name in parents])
    visit = tab(explored(bn))
    visit.refusals_expected = True
    expect(visit.test_id("trouble")).to_contain_text("draws")
    visit.shoot("too-large")
    visit.button("answer by sampling").click()
    expect(visit.test_id("sampled")).to_contain_text("standard error")
    visit.choose("c5_5")
    expect(visit.test_id("panel").get_by_test_id("panel-bar")).to_have_count(size)


def test_without_a_posterior_the_hint_is_there(explored: Start, tab: Open) -> None:
    visit = tab(explored("asia"))
    expect(visit.page.get_by_text("No intervals: this model has point values only.")).to_be_visible()
    expect(visit.page.locator(".interval")).to_have_count(0)


def test_numbers_among_the_nodes(explored: Start, tab: Open) -> None:
    rng = np.random.default_rng(0)
    ill = rng.integers(0, 2, 400)
    rows = {"ill": np.array(["no", "yes"])[ill].tolist(), "fever": 37 + ill + rng.normal(0, 0.3, 400)}
    bn = sf.fit(sf.Dag("ill -> fever"), rows)
    visit = tab(explored(bn, rows))
    panel = visit.choose("fever")
    expect(panel.get_by_role("img", name="density of fever")).to_be_visible()
    visit.shoot("hybrid")
    visit.test_id("number").fill("38.2")
    panel.locator("form").get_by_role("button", name="observe").click()
    expect(visit.test_id("evidence")).to_contain_text("fever = 38.2")
    agrees_everywhere(visit, bn, {"fever": 38.2})


def test_edges_without_arrows(explored: Start, tab: Open, asia_rows: Any) -> None:
    net = sf.fit(sf.Graph("smoke -- lung; lung -- xray"), asia_rows.select(["smoke", "lung", "xray"]))
    visit = tab(explored(net))
    visit.bar("smoke", "yes").click()
    expect(visit.test_id("p-evidence")).to_be_visible()
    expect(visit.bar("xray", "yes").locator(".value")).to_have_text(
        f"{100 * net.query('xray', given={'smoke': 'yes'})['yes']:.1f}"
    )


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("broken.bif", "network x { } variable", "broken.bif"),
        ("broken.json", '{"kind": "bayes_net"', "broken.json"),
        ("broken.csv", "a,b\n1,2,3\n", "broken.csv"),
        ("empty.csv", "", "empty.csv"),
        ("note.docx", "hello", "note.docx"),
    ],
)
def test_a_file_that_is_none(explored: Start, tab: Open, tmp_path: Path, name: str, text: str, said: str) -> None:
    (tmp_path / name).write_text(text)
    visit = tab(explored())
    visit.refusals_expected = True
    visit.test_id("file").set_input_files(tmp_path / name)
    expect(visit.test_id("trouble")).to_contain_text(said)
    assert "suffice-explorer-" not in visit.test_id("trouble").inner_text()  # where uploads go is nobody's business
    visit.shoot(f"refused-{name}")
    visit.button("dismiss").click()
    expect(visit.test_id("drop")).to_be_visible()


def test_an_upload_that_breaks_off(explored: Start, tab: Open, tmp_path: Path) -> None:
    sf.write(sf.load("cancer"), tmp_path / "mine.bif")
    visit = tab(explored())
    visit.refusals_expected = True
    visit.page.route("**/api/models?**", lambda route: route.abort("connectionreset"))
    visit.test_id("file").set_input_files(tmp_path / "mine.bif")
    expect(visit.test_id("gone")).to_be_visible()
    visit.page.unroute("**/api/models?**")
    expect(visit.test_id("gone")).to_have_count(0)  # it asks again by itself
    visit.test_id("file").set_input_files([])
    visit.test_id("file").set_input_files(tmp_path / "mine.bif")
    expect(visit.node("Cancer")).to_be_visible()


def test_the_server_is_gone(explored: Start, tab: Open) -> None:
    explorer = explored("asia")
    visit = tab(explorer)
    visit.refusals_expected = True
    expect(visit.node("smoke")).to_be_visible()
    explorer.close()
    visit.bar("smoke", "yes").click()
    expect(visit.test_id("gone")).to_contain_text("suffice explore")
    visit.shoot("gone")
    explored("asia", port=explorer.port)  # another, with another token
    expect(visit.test_id("refused")).to_be_visible()


def test_rows_that_lack_columns_or_have_new_states(explored: Start, tab: Open, asia: sf.BayesNet, asia_rows: Any) -> None:
    visit = tab(explored(asia, asia_rows.drop_columns(["xray"])))
    visit.refusals_expected = True
    visit.tab("Cases")
    rows = visit.page.get_by_role("main")
    expect(rows).to_contain_text("xray")
    visit.shoot("lacks-columns")
    other = {name: ["perhaps" if name == "smoke" else "yes"] * 4 for name in asia.variables}
    visit = tab(explored(asia, other))
    visit.refusals_expected = True
    visit.tab("Cases")
    expect(visit.page.get_by_role("main")).to_contain_text("perhaps")
    visit.shoot("new-states")


def test_models_that_are_asked_elsewhere(explored: Start, tab: Open, tmp_path: Path) -> None:
    rows = {"who": ["a"] * 30 + ["b"] * 30, "when": list(range(30)) * 2, "y": ["x", "z", "z"] * 20}
    chain = sf.hmm(sf.sequences(rows, by="who", order="when"), 2, seed=0).model
    sf.write(chain, tmp_path / "chain.json")
    visit = tab(explored())
    visit.refusals_expected = True
    visit.test_id("file").set_input_files(tmp_path / "chain.json")
    expect(visit.test_id("trouble")).to_contain_text("suffice decode")
