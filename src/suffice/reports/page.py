"""The page: sections put together with one style and one script, which a policy in the page itself allows, and nothing else."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from suffice.basis.version import VERSION
from suffice.reports.markup import Content, Html, element, join, paragraph


@dataclass(frozen=True)
class Section:
    """A part of the page, by its place in the address."""

    id: str
    title: str
    html: Html


@cache
def own_file(name: str) -> str:
    """A file of this room.

    >>> own_file("page.css").count("@media print")
    1
    """
    return files("suffice.reports").joinpath(name).read_text("utf-8").replace("\r\n", "\n").strip()


def style() -> str:
    """The style, with a class for each twentieth of a bar: a policy that forbids styles in elements allows no other way."""
    bars = "".join(f".b{k}{{--p:{5 * k}%}}" for k in range(21))
    return f"{own_file('page.css')}\n{bars}"


def policy(script: str, css: str) -> str:
    """The content security policy of the page: nothing is fetched, nothing runs but the script that it has.

    >>> policy("a", "b").partition(";")[0]
    "default-src 'none'"
    """
    return f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(css)}'; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page(title: str, lead: Content, sections: list[Section]) -> str:
    """The whole page.

    >>> page("a", "b", [Section("c", "d", Html("<p>e</p>"))]).startswith("<!DOCTYPE html>")
    True
    """
    script, css = own_file("page.js"), style()
    head = join(
        [
            Html('<meta charset="utf-8">'),
            Html(f'<meta http-equiv="Content-Security-Policy" content="{policy(script, css)}">'),
            Html('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Html('<meta name="color-scheme" content="light dark">'),
            element("title", title),
            Html(f"<style>{css}</style>"),
        ]
    )
    contents = element("ul", *(element("li", element("a", s.title, href=f"#{s.id}")) for s in sections))
    nav = element("nav", contents, _filter(), aria_label="contents")
    top = element("header", element("h1", title), paragraph(lead, class_="lead"))
    body = [element("section", element("h2", s.title, id=s.id), s.html, aria_labelledby=s.id) for s in sections]
    foot = element("footer", paragraph(f"Made by Suffice {VERSION}. This file is complete: it loads nothing."))
    skip = element("a", "Skip to the report", href="#report", class_="skip")
    inside = join([skip, top, nav, element("main", *body, id="report"), foot, Html(f"<script>{script}</script>")])
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{inside}</body></html>\n'


def _filter() -> Html:
    """Where a name is typed, hidden until the script that listens to it runs."""
    label = element("label", "Filter by name ", Html('<input type="search" id="filter" autocomplete="off" spellcheck="false">'))
    return element("div", label, element("output", id="found", for_="filter"), class_="filter", hidden=True)
