"""The first minute: the graph with its bars, evidence by a click, soft evidence, do; undo, reload, a second tab."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, expect

import suffice as sf
from suffice.interfaces.explorer.serving import Explorer
from tests.browser.visits import Visit, agrees, agrees_everywhere

Open = Callable[..., Visit]
Start = Callable[..., Explorer]


def test_a_click_on_a_bar_observes_and_another_takes_it_back(explored: Start, tab: Open, alarm: sf.BayesNet) -> None:
    visit = tab(explored(alarm))
    expect(visit.node("LVFAILURE")).to_be_visible()
    expect(visit.test_id("node")).to_have_count(37)
    agrees_everywhere(visit, alarm)
    visit.shoot("alarm")
    visit.bar("HISTORY", "TRUE").click()
    expect(visit.test_id("p-evidence")).to_be_visible()
    expect(visit.bar("HISTORY", "TRUE")).to_have_attribute("aria-pressed", "true")
    agrees_everywhere(visit, alarm, {"HISTORY": "TRUE"})
    shown = float(visit.test_id("p-evidence").locator("output").inner_text())
    assert shown == pytest.approx(alarm.query("HISTORY")["TRUE"], rel=0.005)
    assert visit.node("LVFAILURE").locator(".was").count() == 2  # where the bars were
    visit.shoot("alarm-history")
    visit.bar("HISTORY", "TRUE").click()
    expect(visit.test_id("p-evidence")).to_have_count(0)
    agrees_everywhere(visit, alarm)


def test_intervals_follow(explored: Start, tab: Open, asia: sf.BayesNet) -> None:
    visit = tab(explored(asia))
    expect(visit.node("dysp").locator(".interval")).to_have_count(2)
    visit.bar("smoke", "yes").click()
    panel = visit.choose("dysp")
    expect(panel.locator(".range")).to_have_count(2)
    assert agrees(visit.panel_bar("yes").locator(".share").inner_text(), asia.query("dysp", given={"smoke": "yes"})["yes"])
    lower, upper = asia.query("dysp", given={"smoke": "yes"}, interval=0.95).interval
    low, high = (float(end) for end in panel.locator(".range").first.inner_text().split("–"))
    assert [low, high] == pytest.approx([100 * lower[0], 100 * upper[0]], abs=1.0)


def test_soft_evidence_and_do(explored: Start, tab: Open, asia: sf.BayesNet) -> None:
    visit = tab(explored(asia))
    panel = visit.choose("xray")
    panel.get_by_role("button", name="soft", exact=True).click()
    panel.get_by_label("weight of yes", exact=True).fill("0.2")
    panel.get_by_role("button", name="apply").click()
    expect(visit.test_id("evidence")).to_contain_text("xray ~")
    weights = [0.2 if state == "yes" else 1.0 for state in asia.variables["xray"].states]
    agrees_everywhere(visit, asia, {"xray": weights})
    panel = visit.choose("smoke")
    panel.get_by_role("button", name="do", exact=True).click()
    visit.panel_bar("no").click()
    expect(visit.test_id("evidence")).to_contain_text("do smoke = no")
    agrees_everywhere(visit, asia.do({"smoke": "no"}), {"xray": weights})
    expect(visit.node("smoke").locator(".second")).to_have_count(1)  # marked by more than colour
    visit.shoot("asia-soft-do")
    visit.button("clear all").click()
    expect(visit.test_id("evidence")).to_contain_text("No evidence")
    agrees_everywhere(visit, asia)


def test_undo_and_reload_keep_the_place(explored: Start, tab: Open, asia: sf.BayesNet) -> None:
    visit = tab(explored(asia))
    visit.bar("smoke", "yes").click()
    expect(visit.test_id("evidence")).to_contain_text("smoke = yes")
    visit.bar("dysp", "no").click()
    expect(visit.test_id("evidence")).to_contain_text("dysp = no")
    assert "token" not in visit.page.url
    visit.page.reload()
    expect(visit.test_id("evidence")).to_contain_text("dysp = no")
    expect(visit.bar("smoke", "yes")).to_have_attribute("aria-pressed", "true")
    agrees_everywhere(visit, asia, {"smoke": "yes", "dysp": "no"})
    visit.button("undo").click()
    expect(visit.test_id("evidence")).not_to_contain_text("dysp")
    visit.button("undo").click()
    expect(visit.test_id("evidence")).to_contain_text("No evidence")
    expect(visit.button("undo")).to_be_disabled()
    agrees_everywhere(visit, asia)


def test_two_tabs_ask_on_their_own(explored: Start, tab: Open, asia: sf.BayesNet, context: Callable[..., BrowserContext]) -> None:
    explorer, window = explored(asia), context()
    one, two = tab(explorer, within=window), tab(explorer, within=window)
    one.bar("smoke", "yes").click()
    two.bar("smoke", "no").click()
    expect(one.test_id("p-evidence")).to_be_visible()
    expect(two.test_id("p-evidence")).to_be_visible()
    agrees_everywhere(one, asia, {"smoke": "yes"})
    agrees_everywhere(two, asia, {"smoke": "no"})


def test_what_one_tab_opens_the_other_finds(explored: Start, tab: Open, context: Callable[..., BrowserContext]) -> None:
    explorer, window = explored("asia"), context()
    one, two = tab(explorer, within=window), tab(explorer, within=window)
    expect(two.node("smoke")).to_be_visible()
    one.test_id("model-picker").select_option("bundled cancer")
    expect(one.node("Cancer")).to_be_visible()
    two.page.reload()
    expect(two.test_id("model-picker").locator("optgroup[label=held] option")).to_have_text(["asia", "cancer"])


def test_without_a_token_nothing_is_shown(explored: Start, tab: Open) -> None:
    explorer, visit = explored("asia"), tab()
    visit.refusals_expected = True
    visit.page.goto(explorer.url.partition("#")[0])
    expect(visit.test_id("refused")).to_be_visible()
    expect(visit.test_id("node")).to_have_count(0)


def test_questions_about_a_node(explored: Start, tab: Open, asia: sf.BayesNet, asia_rows: Any) -> None:
    visit = tab(explored(asia, asia_rows))
    panel = visit.choose("either")
    panel.get_by_role("button", name="table", exact=True).click()
    expect(panel.get_by_role("region", name="table of either").locator("tbody tr")).to_have_count(4)
    panel.get_by_role("button", name="influence", exact=True).click()
    information = asia.influence("either").information
    expect(visit.test_id("influence").locator("tbody tr").first).to_contain_text(
        max(information, key=lambda name: information[name])
    )
    panel.get_by_role("button", name="tornado", exact=True).click()
    expect(visit.test_id("tornado").locator("li").first).to_be_visible()
    panel.get_by_role("button", name="joint", exact=True).click()
    visit.test_id("joint").get_by_label("with").select_option("smoke")
    expect(visit.test_id("joint").locator("tbody tr")).to_have_count(2)
    panel.get_by_role("button", name="separation", exact=True).click()
    visit.test_id("separation").get_by_label("from").select_option("asia")
    expect(visit.test_id("separation")).to_contain_text("Active path: either – tub – asia")
    expect(visit.page.locator(".active-path")).to_have_count(2)
    visit.button("most probable").click()
    expect(visit.test_id("explanation")).to_contain_text("log probability")
    best = asia.most_probable()
    for star in visit.page.locator(".star").all():
        bar = star.locator("xpath=..")
        assert best[star.locator("xpath=../..").get_attribute("data-node")] == bar.get_attribute("data-state")
    visit.shoot("asia-separation")


def test_every_answer_offers_its_code(explored: Start, tab: Open, asia: sf.BayesNet) -> None:
    visit = tab(explored("asia"))
    visit.bar("smoke", "yes").click()
    expect(visit.test_id("p-evidence")).to_be_visible()
    visit.button("code").click()
    text = visit.page.locator("section.drawer").get_by_label("Python code", exact=True).inner_text()
    assert "smoke" in text
    names: dict[str, Any] = {"sf": sf}
    exec(compile(text, "code", "exec"), names)  # it runs
    expect(visit.page.locator("section.drawer").get_by_label("command code", exact=True)).to_contain_text(
        re.compile("suffice (query|show|draw)")
    )
