"""The explorer in Chromium: how long a person waits, beside how long they should at most.

    pip install -e ".[explore,browser]"; apt-get install chromium
    python benchmarks/explorer.py [alarm] [munin] [start] [report]

Times are those of the page: from the click to the frame that shows the answer. Exit 1 where a figure is not reached.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

import report
import suffice as sf
from suffice.basis.output.display import text_table

STATIC = Path(sf.__file__).parent / "explorer" / "static"
CLICKS = 50
READY = 60_000

BARS = """() => [...document.querySelectorAll('[data-testid=bar]')]
    .filter(bar => !['0', '100'].includes(bar.querySelector('.value').textContent))
    .map(bar => [bar.closest('[data-testid=node]').dataset.node, bar.dataset.state])"""

CLICK = """([node, state]) => new Promise(done => {
    const box = [...document.querySelectorAll('[data-testid=node]')].find(one => one.dataset.node === node);
    const bar = [...box.querySelectorAll('[data-testid=bar]')].find(one => one.dataset.state === state);
    const start = performance.now();
    let bars = 0;
    const painted = then => requestAnimationFrame(() => setTimeout(then));
    const end = () => painted(() => { watch.disconnect(); done([bars, performance.now() - start]); });
    const watch = new MutationObserver(changes => {
        const shown = changes.some(change => (change.target.parentElement ?? change.target).closest?.('.value'));
        if (!bars && shown) painted(() => { bars ||= performance.now() - start; if (!WAIT) end(); });
        const added = changes.flatMap(change => [...change.addedNodes]);
        if (WAIT && added.some(one => one.classList?.contains('interval'))) end();
    });
    watch.observe(document.querySelector('.canvas'), {subtree: true, childList: true, characterData: true});
    bar.dispatchEvent(new MouseEvent('click', {bubbles: true}));
})"""
"""Milliseconds from a click on a bar to the frame with the new bars, and to the one with their intervals, if WAIT is true."""

FRAMES = """() => { window.frames_seen = []; let last = performance.now();
    const next = now => { window.frames_seen.push(now - last); last = now; requestAnimationFrame(next); };
    requestAnimationFrame(next); }"""

PAINT = "() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime"


@contextmanager
def opened(browser: Browser, url: str) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.set_default_timeout(READY)
    page.goto(url)
    yield page
    page.close()


def worst(times: list[float]) -> float:
    """The 95th percentile."""
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


def clicks(page: Page, intervals: bool) -> tuple[list[float], list[float]]:
    """Bars are observed and taken back, one after another; what was answered before is not measured."""
    page.get_by_test_id("bar").first.wait_for()
    page.wait_for_timeout(2000)
    watched = CLICK.replace("WAIT", str(intervals).lower())
    shown, sure = [], []
    done: list[tuple[str, str]] = []
    for _ in range(CLICKS):
        bars = [(node, state) for node, state in page.evaluate(BARS)]
        bar = min(bars, key=done.count)
        done.append(bar)
        first, last = page.evaluate(watched, list(bar))
        shown.append(first)
        sure.append(last - first)
        page.get_by_role("button", name="clear all").click()
        page.get_by_test_id("p-evidence").wait_for(state="detached")
        page.wait_for_timeout(50)
    return shown, sure


def alarm(browser: Browser) -> Iterator[tuple[str, float, float]]:
    net = sf.load("alarm")
    bn = sf.fit(net.dag, net.sample(10_000, seed=0), prior=sf.BDeu(1))
    with sf.explore(bn) as explorer, opened(browser, explorer.url) as page:
        shown, sure = clicks(page, intervals=True)
        yield "ALARM: click to bars, ms, 95th percentile of 50", worst(shown), 100
        yield "ALARM: intervals after that, ms, 95th percentile", worst(sure), 1000


def munin(browser: Browser) -> Iterator[tuple[str, float, float]]:
    with sf.explore("munin") as explorer, opened(browser, explorer.url) as page:
        start = time.perf_counter()
        page.get_by_test_id("node").first.wait_for()
        yield "MUNIN: focus view drawn, ms", 1000 * (time.perf_counter() - start), 1000
        page.get_by_test_id("bar").first.wait_for()
        yield "MUNIN: and its bars, ms", 1000 * (time.perf_counter() - start), 5000
        page.locator("[data-testid=whole]:enabled").wait_for()
        yield "MUNIN: whole graph laid out, ms", 1000 * (time.perf_counter() - start), 5000
        page.get_by_label("steps").select_option("2")
        shown, _ = clicks(page, intervals=False)
        yield "MUNIN: click to bars, ms, 95th percentile of 50", worst(shown), 500
        page.get_by_test_id("whole").click()
        page.wait_for_timeout(2000)
        yield "MUNIN: 1,041 nodes, from afar: pan and zoom, ms a frame, 95th percentile", worst(moved(page)), 50
        for _ in range(14):
            page.get_by_role("button", name="zoom in").click()
            page.wait_for_timeout(60)
        yield "MUNIN: 1,041 nodes, with bars: pan and zoom, ms a frame, 95th percentile", worst(moved(page)), 50


def moved(page: Page) -> list[float]:
    """Frames while the graph is dragged to and fro, and zoomed by the wheel."""
    page.evaluate(FRAMES)
    page.mouse.move(560, 450)
    page.mouse.down()
    for way in (1, -1, 1, -1):
        page.mouse.move(560 + 250 * way, 450 + 150 * way, steps=25)
    page.mouse.up()
    for way in (1, -1, 1, -1):
        for _ in range(5):
            page.mouse.wheel(0, 60 * way)
            page.wait_for_timeout(30)
    return [float(frame) for frame in page.evaluate("() => window.frames_seen")]


def start(browser: Browser) -> Iterator[tuple[str, float, float]]:
    command = [sys.executable, "-m", "suffice", "explore", "alarm", "--no-browser"]
    for again in (False, True):
        begin = time.perf_counter()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            assert server.stdout
            url = server.stdout.readline().strip()
            printed = time.perf_counter()
            with opened(browser, url) as page:
                page.get_by_test_id("bar").first.wait_for()
                there, paint = time.perf_counter(), float(page.evaluate(PAINT))
            server.terminate()
        if again:  # files are in memory by now
            yield "suffice explore alarm: to first paint, ms", 1000 * (printed - begin) + paint, 2000
            yield "the page's part: first paint, ms", paint, 1000
            yield "the page's part: bars are there, ms", 1000 * (there - printed), 1000
    yield "bundle, kB", (STATIC / "app.js").stat().st_size / 1e3, 150
    yield "static files, kB", sum(file.stat().st_size for file in STATIC.iterdir()) / 1e3, 400


PARTS: dict[str, Callable[[Browser], Iterator[tuple[str, float, float]]]] = {"start": start, "alarm": alarm, "munin": munin}


def main(wanted: list[str]) -> int:
    path = shutil.which("chromium") or sys.exit("there is no chromium here: apt-get install chromium")
    lines: list[list[Any]] = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=[] if os.getuid() else ["--no-sandbox"])
        for name, part in PARTS.items():
            if not wanted or name in wanted:
                lines += [[what, round(value, 1), aim, "met" if value <= aim else "MISSED"] for what, value, aim in part(browser)]
        browser.close()
    if lines:
        print(text_table(["figure", "measured", "at most", ""], lines), flush=True)
    failed = any(line[-1] != "met" for line in lines)
    return max(int(failed), report.main() if not wanted or "report" in wanted else 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
