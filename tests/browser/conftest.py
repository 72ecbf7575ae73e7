"""One Chromium for all tests, the system's; servers and tabs as each test asks for them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, expect, sync_playwright

import suffice as sf
from suffice.interfaces.explorer.serving import Explorer
from tests.browser.visits import Visit

WAIT = 20_000
"""Milliseconds until something that should be on the page is missed: other tests may keep the machine busy."""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = shutil.which("chromium") or shutil.which("chromium-browser")
    assert path, "there is no chromium here: apt-get install chromium"
    expect.set_options(timeout=WAIT)
    sandbox = [] if os.getuid() else ["--no-sandbox"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=sandbox)
        yield browser
        browser.close()


@pytest.fixture
def context(chromium: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Windows: nothing is shared between two of them."""
    with ExitStack() as stack:

        def make(**options: Any) -> BrowserContext:
            made = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
            made.set_default_timeout(WAIT)
            stack.callback(made.close)
            return made

        yield make


@pytest.fixture
def tab(context: Callable[..., BrowserContext]) -> Iterator[Callable[..., Visit]]:
    """Open a tab; in all of them no error may be heard, and nothing leave the machine."""
    visits: list[Visit] = []

    def open_tab(explorer: Explorer | None = None, within: BrowserContext | None = None, **options: Any) -> Visit:
        visit = Visit((within or context(**options)).new_page())
        visits.append(visit)
        return visit if explorer is None else visit.open(explorer)

    yield open_tab
    assert [heard for visit in visits for heard in visit.heard] == []


@pytest.fixture
def explored() -> Iterator[Callable[..., Explorer]]:
    """Start an explorer, as `sf.explore` does."""
    with ExitStack() as stack:
        yield lambda *given, **more: stack.enter_context(sf.explore(*given, **more))


@pytest.fixture(scope="session")
def asia_rows() -> Any:
    return sf.load("asia").sample(2000, seed=1)


@pytest.fixture(scope="session")
def asia(asia_rows: Any) -> sf.BayesNet:
    """A network with a posterior."""
    return sf.fit(sf.load("asia").dag, asia_rows, prior=sf.BDeu(1))


@pytest.fixture(scope="session")
def alarm_rows() -> Any:
    return sf.load("alarm").sample(2000, seed=0)


@pytest.fixture(scope="session")
def alarm(alarm_rows: Any) -> sf.BayesNet:
    return sf.fit(sf.load("alarm").dag, alarm_rows, prior=sf.BDeu(1))
