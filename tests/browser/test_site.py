"""The documentation as it is read, from the file system with the network off: searched, drawn, dark, on a phone, printed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from playwright.sync_api import expect

from tests.browser.visits import SCREENSHOTS, Visit

Open = Callable[..., Visit]
SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PAGES = ("index", "tutorials/03_exponential_families", "gallery/pictures", "reference/index", "coming_from/pgmpy", "glossary")


def address(page: str) -> str:
    path = SITE / f"{page}.html"
    assert path.exists(), f"{path} is not there: make docs"
    return path.as_uri()


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """The site as a server has it: a browser shows passages of what a search finds only there."""
    handler = partial(Quiet, directory=str(SITE))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *told: object) -> None:
        """Nothing is printed."""


def test_search_finds_a_name(tab: Open, served: str) -> None:
    visit = tab()
    visit.refusals_expected = True  # there is no icon
    visit.page.goto(f"{served}/index.html")
    visit.page.locator("input[name=q]").first.fill("BDeu")
    visit.page.keyboard.press("Enter")
    found = visit.page.locator("#search-results li a", has_text="BDeu")
    expect(found.first).to_be_visible()
    visit.shoot("site-search")


def test_formulas_and_pictures_are_drawn(tab: Open) -> None:
    visit = tab(offline=True)
    visit.page.goto(address("tutorials/03_exponential_families"))
    expect(visit.page.locator("mjx-container svg").first).to_be_visible()
    visit.page.goto(address("gallery/pictures"))
    pictures = visit.page.locator("article img, article svg")
    expect(pictures.first).to_be_visible()
    loaded = visit.page.evaluate("() => [...document.images].every(i => i.complete && i.naturalWidth > 0)")
    assert loaded
    visit.shoot("site-gallery")


@pytest.mark.parametrize("page", PAGES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_serious_barrier(tab: Open, page: str, scheme: str) -> None:
    visit = tab(offline=True, color_scheme=scheme, bypass_csp=True)
    visit.page.goto(address(page))
    expect(visit.page.locator("h1")).to_be_visible()
    visit.shoot(f"site-{page.replace('/', '-')}-{scheme}")
    assert visit.barriers() == []


@pytest.mark.parametrize("page", PAGES)
def test_a_phone_scrolls_down_only(tab: Open, page: str) -> None:
    visit = tab(offline=True, viewport={"width": 375, "height": 700})
    visit.page.goto(address(page))
    assert visit.page.evaluate("() => document.documentElement.scrollWidth") <= 375


def test_all_is_reached_by_keyboard(tab: Open) -> None:
    visit = tab(offline=True)
    visit.page.goto(address("index"))
    for _ in range(30):
        visit.page.keyboard.press("Tab")
        place = visit.page.evaluate("() => document.activeElement.getAttribute('href') || ''")
        if place.endswith(".html"):
            break
    visit.page.keyboard.press("Enter")
    expect(visit.page.locator("h1")).to_be_visible()
    assert visit.page.url.endswith(place.removeprefix("../"))


def test_printed(tab: Open) -> None:
    visit = tab(offline=True)
    visit.page.goto(address("tutorials/03_exponential_families"))
    visit.page.emulate_media(media="print")
    expect(visit.page.locator("aside.sidebar-drawer, .sidebar-drawer").first).to_be_hidden()
    SCREENSHOTS.mkdir(exist_ok=True)
    visit.page.pdf(path=SCREENSHOTS / "site-printed.pdf", format="A4")
