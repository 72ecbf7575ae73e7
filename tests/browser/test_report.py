"""A report as it is read: with and without scripts, dark, on a phone, printed, by keyboard; nothing is loaded from anywhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

import suffice as sf
from tests.browser.visits import SCREENSHOTS, Visit

Open = Callable[..., Visit]
STRANGE = ['<script>alert("x")</script>', 'it\'s "quoted"', "two\nlines", "עברית ‮abc", "long " * 400]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, asia: sf.BayesNet, asia_rows: Any) -> str:
    path = tmp_path_factory.mktemp("report") / "r.html"
    sf.report(asia, asia_rows, path)
    return path.as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_read_and_filtered(report: str, tab: Open, scheme: str, asia: sf.BayesNet) -> None:
    visit = tab(color_scheme=scheme, bypass_csp=True)
    visit.page.goto(report)
    expect(visit.page.locator("article")).to_have_count(8)
    assert visit.barriers() == []
    visit.shoot(f"report-{scheme}")
    visit.page.get_by_role("searchbox").fill("tub")
    expect(visit.page.locator("article:visible")).to_have_count(1)
    visit.page.get_by_role("searchbox").fill("")
    expect(visit.page.locator("article:visible")).to_have_count(8)
    paper = visit.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert (paper == "rgb(255, 255, 255)") == (scheme == "light")


def test_numbers_are_those_of_the_network(report: str, tab: Open, asia: sf.BayesNet) -> None:
    visit = tab()
    visit.page.goto(report)
    text = visit.page.locator("article", has=visit.page.locator("h3", has_text="smoke")).first.inner_text()
    assert f"{asia['smoke'].probs[0]:.3f}" in text


def test_explained_on_focus(report: str, tab: Open) -> None:
    visit = tab()
    visit.page.goto(report)
    link = visit.page.locator(".graph a").first
    link.focus()
    expect(visit.page.locator("#why")).to_be_visible()
    expect(visit.page.locator("#why")).not_to_be_empty()
    visit.shoot("report-why")
    visit.page.keyboard.press("Escape")
    expect(visit.page.locator("#why")).to_be_hidden()


def test_readable_without_scripts(report: str, tab: Open) -> None:
    visit = tab(java_script_enabled=False)
    visit.page.goto(report)
    expect(visit.page.locator("article")).to_have_count(8)
    for article in visit.page.locator("article").all():
        assert "smoke" in article.inner_text() or len(article.inner_text()) > 20
    expect(visit.page.get_by_role("searchbox")).to_have_count(0)  # what would do nothing is not offered
    visit.shoot("report-without-scripts")


def test_on_a_phone_nothing_is_cut(report: str, tab: Open) -> None:
    visit = tab(viewport={"width": 375, "height": 740})
    visit.page.goto(report)
    assert visit.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    visit.shoot("report-phone")


def test_printed_on_a4(report: str, tab: Open) -> None:
    visit = tab()
    visit.page.goto(report)
    visit.page.emulate_media(media="print")
    expect(visit.page.get_by_role("searchbox")).to_have_count(0)
    expect(visit.page.locator("article:visible")).to_have_count(8)
    SCREENSHOTS.mkdir(exist_ok=True)
    printed = visit.page.pdf(path=SCREENSHOTS / "report.pdf", format="A4", print_background=True)
    assert 1 < printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") < 30


def test_names_are_text(tab: Open, tmp_path: Path) -> None:
    names = [f"{i} {name}" for i, name in enumerate(STRANGE)]
    rows = {name: [f"{state}{i}" for i in (0, 1, 1, 0, 1, 0) * 10] for name, state in zip(names, STRANGE, strict=True)}
    bn = sf.fit(sf.Dag([(names[0], name) for name in names[1:]]), rows, prior=sf.BDeu(1))
    sf.report(bn, rows, tmp_path / "r.html")
    visit = tab()
    visit.page.goto((tmp_path / "r.html").as_uri())
    expect(visit.page.locator("article")).to_have_count(5)
    assert visit.page.evaluate("() => document.scripts.length") == 1
    assert visit.page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    visit.shoot("report-strange")
