"""By keyboard alone: into the graph, along edges, into bars, evidence, undo, menus, tabs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import FileChooser, Locator, expect

import suffice as sf
from suffice.interfaces.explorer.serving import Explorer
from tests.browser.visits import Visit, agrees_everywhere

Open = Callable[..., Visit]
Start = Callable[..., Explorer]
MANY = 60
"""Presses of Tab that reach anything on a page with a small network."""


def press(visit: Visit, *keys: str) -> None:
    for key in keys:
        visit.page.keyboard.press(key)


def reach(visit: Visit, wanted: Locator) -> None:
    """Tab until the focus is there, and seen to be there."""
    for _ in range(MANY):
        press(visit, "Tab")
        if wanted.evaluate("element => element === document.activeElement"):
            break
    expect(wanted).to_be_focused()
    line = wanted.evaluate("element => getComputedStyle(element).outlineStyle + getComputedStyle(element).outlineWidth")
    drawn = wanted.evaluate(
        "element => element.querySelector?.('.box') && getComputedStyle(element.querySelector('.box')).strokeWidth"
    )
    assert line not in ("none0px", "none3px") or drawn, f"the focus cannot be seen: {line}"


def test_evidence_along_edges(explored: Start, tab: Open, asia: sf.BayesNet) -> None:
    visit = tab(explored(asia))
    expect(visit.node("asia")).to_be_visible()
    reach(visit, visit.page.get_by_role("application"))
    press(visit, "Tab")
    first = visit.page.locator("[data-testid=node]:focus")
    expect(first).to_have_count(1)
    visit.shoot("keyboard-focus")
    name = str(first.get_attribute("data-node"))
    near = set(asia.dag.parents(name)) | set(asia.dag.children(name))
    press(visit, "ArrowDown")
    focused = visit.page.locator("[data-testid=node]:focus")
    expect(focused).not_to_have_attribute("data-node", name)
    second = str(focused.get_attribute("data-node"))
    assert second in near  # along an edge
    press(visit, "Enter")  # into its bars
    state = str(visit.page.locator("[data-testid=bar]:focus").get_attribute("data-state"))
    press(visit, "Enter")
    expect(visit.test_id("evidence")).to_contain_text(f"{second} = {state}")
    agrees_everywhere(visit, asia, {second: state})
    press(visit, "ArrowDown", "Enter")
    other = next(s for s in asia.variables[second].states if s != state)
    expect(visit.test_id("evidence")).to_contain_text(f"{second} = {other}")
    press(visit, "Escape")  # back to the node
    expect(visit.node(second)).to_be_focused()
    press(visit, "1")
    expect(visit.test_id("evidence")).to_contain_text(f"{second} = {asia.variables[second].states[0]}")
    press(visit, "u", "u", "u")
    expect(visit.test_id("evidence")).to_contain_text("No evidence")
    expect(visit.test_id("status")).to_have_text("beliefs updated")  # told to screen readers


def test_a_node_is_found_and_asked(explored: Start, tab: Open, alarm: sf.BayesNet) -> None:
    visit = tab(explored(alarm))
    expect(visit.node("CVP")).to_be_visible()
    press(visit, "/")
    expect(visit.test_id("finder")).to_be_focused()
    visit.page.keyboard.type("lvfail")
    press(visit, "Enter")
    expect(visit.test_id("panel")).to_have_attribute("aria-label", "node LVFAILURE")
    reach(visit, visit.test_id("panel").get_by_role("button", name="do", exact=True))
    press(visit, "Enter")
    visit.panel_bar("TRUE").focus()
    press(visit, "Space")
    expect(visit.test_id("evidence")).to_contain_text("do LVFAILURE = TRUE")
    agrees_everywhere(visit, alarm.do({"LVFAILURE": "TRUE"}))
    reach(visit, visit.test_id("panel").get_by_role("button", name="table", exact=True))
    press(visit, "Enter")
    expect(visit.test_id("panel").get_by_role("region", name="table of LVFAILURE").locator("tbody tr").first).to_be_visible()


def test_tabs_menus_and_the_dialog_of_keys(explored: Start, tab: Open, tmp_path: Path) -> None:
    visit = tab(explored("asia"))
    expect(visit.node("asia")).to_be_visible()
    reach(visit, visit.button("export"))
    press(visit, "Enter", "Tab", "Tab", "Tab")
    expect(visit.button("model as json")).to_be_focused()
    with visit.page.expect_download() as download:
        press(visit, "Enter")
    download.value.save_as(tmp_path / "asia.json")
    assert isinstance(sf.read(tmp_path / "asia.json"), sf.BayesNet)
    reach(visit, visit.button("keys"))
    press(visit, "Enter")
    dialog = visit.page.get_by_role("dialog", name="keys")
    expect(dialog).to_be_visible()
    press(visit, "Escape")
    expect(dialog).to_have_count(0)
    reach(visit, visit.button("Compare"))
    press(visit, "Enter")
    expect(visit.test_id("against")).to_be_visible()


def test_zoom_and_pan(explored: Start, tab: Open) -> None:
    visit = tab(explored("asia"))
    expect(visit.node("asia")).to_be_visible()
    graph = visit.page.get_by_role("application")
    graph.focus()
    before = visit.node("smoke").bounding_box()
    press(visit, "+")
    visit.page.wait_for_timeout(300)
    larger = visit.node("smoke").bounding_box()
    assert before
    assert larger
    assert larger["width"] > 1.1 * before["width"]
    press(visit, "ArrowRight")
    visit.page.wait_for_timeout(300)
    moved = visit.node("smoke").bounding_box()
    assert moved
    assert moved["x"] < larger["x"] - 40
    press(visit, "0")
    visit.page.wait_for_timeout(300)
    again = visit.node("smoke").bounding_box()
    assert again
    assert abs(again["width"] - before["width"]) < 2


def test_a_file_is_opened_from_the_keyboard(explored: Start, tab: Open, tmp_path: Path) -> None:
    sf.write(sf.load("cancer"), tmp_path / "mine.bif")
    visit = tab(explored())
    choosers: list[FileChooser] = []
    visit.page.on("filechooser", lambda chooser: choosers.append(chooser))
    expect(visit.test_id("drop")).to_be_visible()
    reach(visit, visit.test_id("drop"))
    press(visit, "Enter")
    for _ in range(50):
        visit.page.wait_for_timeout(0 if choosers else 100)
    choosers[0].set_files(tmp_path / "mine.bif")
    expect(visit.node("Cancer")).to_be_visible()
