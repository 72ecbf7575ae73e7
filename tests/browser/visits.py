"""A page as a person has it before them: what is on it, and what must not happen behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playwright.sync_api import ConsoleMessage, Locator, Page, Request, expect

import suffice as sf
from suffice.interfaces.explorer.serving import Explorer

SCREENSHOTS = Path(__file__).parent / "screenshots"
AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
LOCAL = re.compile(r"(http://127\.0\.0\.1:\d+/|file:|blob:http://127\.0\.0\.1:\d+/|data:|about:)")
REFUSED = re.compile(r"Failed to load resource")
"""What Chromium itself says of a request that was refused or that nobody answered."""

BARS = """() => [...document.querySelectorAll('[data-testid=node] [data-testid=bar]')].map(bar =>
    [bar.closest('[data-testid=node]').dataset.node, bar.dataset.state, bar.querySelector('.value').textContent])"""


class Visit:
    """One tab. `heard` collects errors and requests that leave the machine; at the end of a test there are none."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.heard: list[str] = []
        self.refusals_expected = False
        page.on("console", self._listen)
        page.on("pageerror", lambda error: self.heard.append(f"uncaught: {error}"))
        page.on("request", self._watch)
        page.on("dialog", lambda dialog: self.heard.append(f"a dialog: {dialog.message}"))

    def _listen(self, message: ConsoleMessage) -> None:
        if message.type not in ("error", "warning") or (self.refusals_expected and REFUSED.match(message.text)):
            return
        self.heard.append(f"{message.type}: {message.text} {message.location.get('url', '')}")

    def _watch(self, request: Request) -> None:
        if not LOCAL.match(request.url):
            self.heard.append(f"a request off the machine: {request.url}")

    def open(self, explorer: Explorer) -> Visit:
        """The address that `suffice explore` prints."""
        self.page.goto(explorer.url)
        return self

    def test_id(self, name: str) -> Locator:
        return self.page.get_by_test_id(name)

    def button(self, name: str | re.Pattern[str], exact: bool = True) -> Locator:
        return self.page.get_by_role("button", name=name, exact=exact and isinstance(name, str))

    def tab(self, name: str) -> None:
        self.page.get_by_role("navigation", name="tabs").get_by_role("button", name=name).click()

    def node(self, name: str) -> Locator:
        return self.page.locator(f'[data-testid="node"][data-node={quoted(name)}]')

    def bar(self, node: str, state: str) -> Locator:
        return self.node(node).locator(f'[data-testid="bar"][data-state={quoted(state)}]')

    def panel_bar(self, state: str) -> Locator:
        return self.test_id("panel").locator(f'[data-testid="panel-bar"][data-state={quoted(state)}]')

    def choose(self, name: str) -> Locator:
        """A click on the heading of a node; its panel."""
        self.node(name).locator(".heading").click()
        panel = self.test_id("panel")
        expect(panel).to_have_attribute("aria-label", f"node {name}")
        return panel

    def shoot(self, name: str) -> None:
        """Keep what is on the screen, for a person to look at."""
        SCREENSHOTS.mkdir(exist_ok=True)
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")

    def barriers(self) -> list[str]:
        """What axe-core calls a serious or critical barrier, for a page whose security policy was set aside."""
        self.page.add_script_tag(path=AXE)
        found = self.page.evaluate("() => axe.run(document, {resultTypes: ['violations'], preload: false})")["violations"]
        bad = [one for one in found if one["impact"] in ("serious", "critical")]
        return [f"{one['id']}: {one['help']}: {[node['target'] for node in one['nodes']][:4]}" for one in bad]


def quoted(text: str) -> str:
    """A string of CSS."""
    return '"' + "".join(f"\\{ord(c):x} " if c in '"\\\n\r\f' or ord(c) < 32 else c for c in text) + '"'


def share_shown(text: str) -> tuple[float, float]:
    """The least and the largest probability that may be shown so."""
    word = text.strip().removesuffix("%").strip()
    if word.startswith("<"):
        return 0.0, 0.0005
    if word.startswith(">"):
        return 0.9995, 1.0
    rounding = 0.0005 + 1e-9 if "." in word else 1e-12
    return float(word) / 100 - rounding, float(word) / 100 + rounding


def agrees(text: str, probability: float) -> bool:
    """Whether the number beside a bar is the probability, to the digits that are shown."""
    low, high = share_shown(text)
    return low <= probability <= high


def agrees_everywhere(visit: Visit, bn: sf.BayesNet, given: Mapping[str, Any] | None = None) -> None:
    """Every bar on the screen is the network's answer, soon."""
    visit.test_id("bar").first.wait_for(state="attached")
    answers: dict[tuple[str, str], float] = {}
    for _ in range(100):
        bars = visit.page.evaluate(BARS)
        for node, state, _text in bars:
            if (node, state) not in answers:
                answers |= {(node, one): p for one, p in asked(bn, node, given or {}).items()}
        wrong = [(*bar, answers[bar[0], bar[1]]) for bar in bars if not agrees(bar[2], answers[bar[0], bar[1]])]
        if not wrong:
            return
        visit.page.wait_for_timeout(100)
    raise AssertionError(f"bars that are not the answers: {wrong[:5]}")


def asked(bn: sf.BayesNet, node: str, given: Mapping[str, Any]) -> dict[str, float]:
    """The answer of the library; of what is observed for sure, that."""
    states = bn.variables[node].states
    if isinstance(given.get(node), str):
        return {state: float(state == given[node]) for state in states}
    if node in given or node in bn.interventions:
        return {state: float(bn.marginals(given)[node][state]) for state in states}
    answer = bn.query(node, given=given)
    return {state: answer[state] for state in states}
