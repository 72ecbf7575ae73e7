"""How soon each page of the built site is painted, in the system's Chromium, from the file system; needs the extra `browser`.

python benchmarks/site.py [docs/_build/html]
"""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

WANTED = 1000.0
PAINT = """() => new Promise(done => {
    const known = () => performance.getEntriesByName('first-contentful-paint')[0]?.startTime
    const look = () => known() ? done(known()) : requestAnimationFrame(look)
    look()
})"""


def first_paint(page: Page, file: Path) -> float:
    """Milliseconds from the request to the first text or picture on the screen."""
    page.goto(file.as_uri())
    return float(page.evaluate(PAINT))


def main() -> None:
    site = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_build/html").resolve()
    files = sorted(site.rglob("*.html"))
    if not files:
        raise SystemExit(f"{site} has no pages: make docs builds them")
    with sync_playwright() as playwright:
        sandbox = [] if os.getuid() else ["--no-sandbox"]
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=sandbox)
        page = browser.new_page()
        first_paint(page, files[0])  # the browser itself starts
        times = {file.relative_to(site): first_paint(page, file) for file in files}
        browser.close()
    worst = max(times, key=times.__getitem__)
    said = "met" if times[worst] <= WANTED else "missed"
    print(f"first paint of {len(times)} pages: median {statistics.median(times.values()):.0f} ms; latest {times[worst]:.0f} ms")
    print(f"    {worst}  (wanted {WANTED:.0f} ms: {said})")


if __name__ == "__main__":
    main()
