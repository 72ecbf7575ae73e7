"""How it looks and reads: small screens, dark, zoomed text, without motion; axe-core finds no serious barrier anywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import expect

import suffice as sf
from suffice.interfaces.explorer.serving import Explorer
from tests.browser.visits import Visit

Open = Callable[..., Visit]
Start = Callable[..., Explorer]
PHONE = {"width": 375, "height": 740}


def test_at_375_pixels_a_list_with_bars_replaces_the_graph(
    explored: Start, tab: Open, alarm: sf.BayesNet, alarm_rows: Any
) -> None:
    visit = tab(explored(alarm, alarm_rows), viewport=PHONE, has_touch=True, is_mobile=True)
    row = visit.page.locator('[data-testid=list-row][data-node="HISTORY"]')
    expect(row).to_be_visible()
    expect(visit.page.get_by_role("application")).to_have_count(0)
    expect(visit.test_id("list-row")).to_have_count(37)
    visit.shoot("phone")
    row.locator("[data-state=TRUE]").tap()
    expect(visit.test_id("evidence")).to_contain_text("HISTORY = TRUE")
    expect(visit.test_id("p-evidence")).to_be_visible()
    other = visit.page.locator('[data-testid=list-row][data-node="LVFAILURE"] [data-state=TRUE] .share')
    expect(other).to_have_text(f"{100 * alarm.query('LVFAILURE', given={'HISTORY': 'TRUE'})['TRUE']:.1f} %")
    visit.shoot("phone-evidence")
    for name in ("Data", "Learn", "Compare", "Cases", "Network"):
        visit.tab(name)
        expect(visit.page.get_by_role("main")).to_be_visible()
        visit.page.wait_for_timeout(300)
        visit.shoot(f"phone-{name.lower()}")
        assert visit.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), f"{name} is wider than the screen"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_barrier(explored: Start, tab: Open, asia: sf.BayesNet, asia_rows: Any, scheme: str) -> None:
    other = sf.fit(sf.Dag("smoke -> lung; smoke -> xray", nodes=list(asia.variables)), asia_rows, prior=sf.BDeu(1))
    visit = tab(explored(asia, asia_rows, against=other), color_scheme=scheme, bypass_csp=True)
    visit.bar("smoke", "yes").click()
    panel = visit.choose("either")
    found: dict[str, list[str]] = {}
    expect(panel.locator(".range").first).to_be_visible()
    for question in ("table", "influence", "tornado", "joint", "separation", "why"):
        panel.get_by_role("button", name=question, exact=True).click()
        visit.page.wait_for_timeout(250)
        found[question] = visit.barriers()
    visit.shoot(f"{scheme}-network")
    panel.get_by_role("button", name="soft", exact=True).click()
    found["soft"] = visit.barriers()
    visit.test_id("view").click()
    expect(visit.test_id("list-row")).to_have_count(8)
    found["list"] = visit.barriers()
    visit.shoot(f"{scheme}-list")
    visit.button("code").click()
    visit.button("export").click()
    found["menu"] = visit.barriers()
    visit.page.keyboard.press("Escape")
    for name in ("Data", "Learn", "Compare", "Cases"):
        visit.tab(name)
        visit.page.wait_for_timeout(600)
        found[name] = visit.barriers()
        visit.shoot(f"{scheme}-{name.lower()}")
    assert {where: what for where, what in found.items() if what} == {}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_barrier_where_nothing_is_open_or_on_a_phone(explored: Start, tab: Open, scheme: str) -> None:
    visit = tab(explored(), color_scheme=scheme, bypass_csp=True)
    expect(visit.test_id("drop")).to_be_visible()
    assert visit.barriers() == []
    visit.shoot(f"{scheme}-welcome")
    phone = tab(explored("alarm"), color_scheme=scheme, bypass_csp=True, viewport=PHONE)
    expect(phone.test_id("list-row").first).to_be_visible()
    assert phone.barriers() == []


def test_the_page_keeps_to_its_policy(explored: Start, tab: Open) -> None:
    """Nothing inline, nothing evaluated, nothing from elsewhere: a page that tried would be heard on the console."""
    visit = tab()
    answer = visit.page.goto(explored("asia").url)
    assert answer
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    expect(visit.node("smoke")).to_be_visible()


def test_without_motion_nothing_moves(explored: Start, tab: Open) -> None:
    visit = tab(explored("asia"), reduced_motion="reduce")
    visit.bar("smoke", "yes").click()
    expect(visit.test_id("p-evidence")).to_be_visible()
    assert visit.page.evaluate("() => document.getAnimations().length") == 0
