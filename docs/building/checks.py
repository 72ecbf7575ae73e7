"""Looks at the site that was built: what a reader's browser would ask for, follow and read aloud. `make docs` runs it at the end.

python -m building.checks docs/_build/html
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    ("script", "src"),
    ("img", "src"),
    ("source", "src"),
    ("iframe", "src"),
    ("video", "src"),
    ("audio", "src"),
    ("object", "data"),
}
"""What a browser fetches by itself, besides links to styles, icons and fonts."""
FETCHED = ("stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch", "manifest")
IN_STYLES = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
LARGEST = 15 * 2**20


@dataclass
class Page(HTMLParser):
    """One page: where it leads, what it loads, which places it has, and pictures that say nothing."""

    links: list[str] = field(default_factory=list)
    loads: list[str] = field(default_factory=list)
    places: set[str] = field(default_factory=set)
    mute: list[str] = field(default_factory=list)
    styles: str = ""
    _svg: str | None = None
    _inside: str = ""

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        has = {name: value or "" for name, value in attrs}
        self.places |= {has[key] for key in ("id", "name") if key in has}
        self.loads += [has[key] for kind, key in LOADED if kind == tag and key in has]
        self.styles += has.get("style", "")
        if tag == "a" and "href" in has:
            self.links.append(has["href"])
        if tag == "link" and "href" in has and any(word in has.get("rel", "") for word in FETCHED):
            self.loads.append(has["href"])
        if tag == "img" and not has.get("alt", "").strip():
            self.mute.append(has.get("src", "an image"))
        if tag == "svg" and has.get("role") == "img" and "aria-label" not in has:
            self._svg = "a drawing"
        if tag == "title" and self._svg:
            self._svg = None
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        if tag == "svg" and self._svg:
            self.mute.append(self._svg)
            self._svg = None
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.styles += data


def problems(site: Path) -> Iterator[str]:
    """What is wrong with a site."""
    pages = {path: _page(path) for path in sorted(site.rglob("*.html"))}
    for path, page in pages.items():
        name = path.relative_to(site)
        yield from (f"{name}: {picture} has no alternative text" for picture in page.mute)
        for address in (*page.loads, *_styled(page.styles)):
            yield from (f"{name}: {told}" for told in _loaded(address, path))
        for link in page.links:
            yield from (f"{name}: {told}" for told in _followed(link, path, pages))
    for style in sorted(site.rglob("*.css")):
        for address in _styled(style.read_text("utf-8")):
            yield from (f"{style.relative_to(site)}: {told}" for told in _loaded(address, style))
    size = sum(path.stat().st_size for path in site.rglob("*") if path.is_file())
    if size > LARGEST:
        yield f"the site has {size / 2**20:.1f} MiB, more than {LARGEST / 2**20:.0f}"


def _page(path: Path) -> Page:
    page = Page()
    page.feed(path.read_text("utf-8"))
    return page


def _styled(styles: str) -> list[str]:
    return [a or b for a, b in IN_STYLES.findall(styles)]


def _loaded(address: str, path: Path) -> Iterator[str]:
    parts = urlsplit(address)
    if parts.netloc:
        yield f"{address} is asked of another host"
    elif parts.scheme not in ("", "data"):
        yield f"{address} is no file of the site"
    elif not parts.scheme and parts.path and not (path.parent / unquote(parts.path)).exists():
        yield f"{address} is not there"


def _followed(link: str, path: Path, pages: dict[Path, Page]) -> Iterator[str]:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        yield f"the link {link} leads nowhere"
    elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].places:
        yield f"the link {link} leads to a place that is not there"


def main() -> None:
    site = Path(sys.argv[1]).resolve()
    found = list(problems(site))
    print("\n".join(found), file=sys.stderr)
    if found:
        raise SystemExit(f"{len(found)} problems of the site")
    files = [path for path in site.rglob("*") if path.is_file()]
    print(
        f"{len(list(site.rglob('*.html')))} pages, {sum(p.stat().st_size for p in files) / 2**20:.1f} MiB: {site / 'index.html'}"
    )


if __name__ == "__main__":
    main()
