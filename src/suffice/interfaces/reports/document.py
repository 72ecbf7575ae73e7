"""A report in one file: `report` writes it, `report_html` has its text.

Sections are put together with one style and one script, which a policy in the page itself allows, and nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import warnings
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from os import PathLike, fspath
from typing import TYPE_CHECKING, Any

from suffice.basis import VERSION
from suffice.basis.blas import one_blas_thread
from suffice.basis.output.files import replacing
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, SufficeError, SufficeNote, listing
from suffice.interfaces.reports.graph import graph_section, strengths_of
from suffice.interfaces.reports.judgement import judge, judged_section
from suffice.interfaces.reports.markup import Content, Html, element, join, line_chart, paragraph
from suffice.interfaces.reports.nodes import nodes_section
from suffice.interfaces.reports.origin import conventions, missing_section, origin_section, schema_section
from suffice.interfaces.reports.subject import Subject, subject_of
from suffice.statistics import Statistics

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike


@dataclass(frozen=True)
class Section:
    """A part of the page, by its place in the address."""

    id: str
    title: str
    html: Html


@cache
def own_file(name: str) -> str:
    """A file of this room."""
    return files("suffice.interfaces.reports").joinpath(name).read_text("utf-8").replace("\r\n", "\n").strip()


def style() -> str:
    """The style, with a class for each twentieth of a bar: a policy that forbids styles in elements allows no other way."""
    bars = "".join(f".b{k}{{--p:{5 * k}%}}" for k in range(21))
    return f"{own_file('page.css')}\n{bars}"


def policy(script: str, css: str) -> str:
    """The content security policy of the page: nothing is fetched, nothing runs but the script that it has."""
    return f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(css)}'; base-uri 'none'; form-action 'none'"


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def page(title: str, lead: Content, sections: list[Section]) -> str:
    """The whole page."""
    script, css = own_file("page.js"), style()
    meta = Html(
        '<meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(script, css)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
    )
    head = join([meta, element("title", title), Html(f"<style>{css}</style>")])
    contents = element("ul", *(element("li", element("a", s.title, href=f"#{s.id}")) for s in sections))
    field = Html('<input type="search" id="filter" autocomplete="off" spellcheck="false">')
    named = [element("label", "Filter by name ", field), element("output", id="found", for_="filter")]
    by_name = element("div", *named, class_="filter", hidden=True)  # until the script that listens to it runs
    nav = element("nav", contents, by_name, aria_label="contents")
    top = element("header", element("h1", title), paragraph(lead, class_="lead"))
    body = [element("section", element("h2", s.title, id=s.id), s.html, aria_labelledby=s.id) for s in sections]
    foot = element("footer", paragraph(f"Made by Suffice {VERSION}. This file is complete: it loads nothing."))
    skip = element("a", "Skip to the report", href="#report", class_="skip")
    inside = join([skip, top, nav, element("main", *body, id="report"), foot, Html(f"<script>{script}</script>")])
    return f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head><body>{inside}</body></html>\n'


def report(
    x: object,
    data: RowsLike | None,
    path: str | PathLike[str],
    *,
    held_out: RowsLike | None = None,
    title: str = "",
    command: str = "",
) -> None:
    """Write what was learned from what into one HTML file, which loads nothing from anywhere and is readable without scripts.

    `x` is a network, directed or not, a chain, or what `search`, `em`, `structural_em`, `mixture` and the like returned; then
    their traces are in it. `data` are the rows it was learned from, or others, or None: from them come what columns are, what is
    missing, what each edge is worth, and predictions. A fifth of the rows is set aside for these, and predicted by parameters
    fitted again from the others; `held_out` are rows that the model was not fitted from, and is judged by as it is. `command` is
    what made the model, to be told.

    >>> import suffice as sf, tempfile, pathlib
    >>> asia = sf.load("asia")
    >>> rows = asia.sample(1000, seed=0)
    >>> place = pathlib.Path(tempfile.mkdtemp()) / "asia.html"
    >>> sf.report(sf.fit(asia.dag, rows, prior=sf.BDeu(1)), rows, place)
    >>> place.read_text("utf-8").count("<h2")
    7
    """
    with replacing(path) as place:
        text = report_html(x, data, held_out=held_out, title=title, command=command)
        place.write_text(text, encoding="utf-8", newline="\n")


@one_blas_thread
def report_html(
    x: object, data: RowsLike | None = None, *, held_out: RowsLike | None = None, title: str = "", command: str = ""
) -> str:
    """The text of a report, as `report` writes it: the same for the same model and rows.

    `held_out` are rows that the model was not fitted from, and is judged by; `command` is what made it, to be told.

    >>> import suffice as sf
    >>> html = report_html(sf.load("asia"))
    >>> "<h3>lung</h3>" in html
    True
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SufficeNote)
        subject = subject_of(x)
        if data is not None and not subject.has_rows:
            raise FitError(
                f"the rows of a {subject.kind.lower()} are sequences, which a report does not judge: give None instead"
            )
        subject = subject if data is None else replace(subject, data=data)
        rows, notes = _rows(subject)
        apart = None if held_out is None else subject.model.rows(held_out)
        source = fspath(data) if isinstance(data, (str, PathLike)) else ""
        sections = _sections(subject, rows, apart, source, command, notes, caught)
    lead = subject.model._headline()
    return page(title or f"Report: {subject.kind}", lead[:600], sections)


def _sections(
    subject: Subject, rows: Any, held_out: Any, source: str, command: str, notes: list[str], caught: list[warnings.WarningMessage]
) -> list[Section]:
    links = {node: f"#n{i}" for i, node in enumerate(subject.model)}
    strengths = strengths_of(subject, rows)
    found = judge(subject, rows, held_out)
    made = [Section("graph", "Graph", graph_section(subject, strengths, links))]
    if subject.traces:
        made.append(Section("traces", "How it was found", _traces(subject)))
    if found is not None:
        made.append(Section("predictions", "Predictions", judged_section(found, links)))
    made.append(Section("nodes", "Distributions", nodes_section(subject.model, subject, links)))
    if rows is not None:
        made.append(Section("missing", "Missing cells", missing_section(rows)))
        made.append(Section("columns", "Columns", schema_section(rows)))
    said = [str(w.message) for w in caught if isinstance(w.message, SufficeNote)]
    told = list(dict.fromkeys([*notes, *getattr(subject.found, "remarks", ()), *said]))
    origin = Section("origin", "What was learned from what", origin_section(subject, rows, source, command, told))
    last = Section("conventions", "Conventions", conventions(subject, judged=found is not None))
    return [origin, *made, last]


def _rows(subject: Subject) -> tuple[Any, list[str]]:
    """The rows with the columns and states of the model, and what is to be said of them: where they cannot be read so, that is
    all."""
    if subject.data is None:
        return None, []
    if isinstance(subject.data, Statistics):
        return None, ["there are statistics and no rows: what is missing in these, and predictions, are not reported"]
    opened = scan(subject.data)
    known = [n for n in subject.names if n in opened.columns]
    if not known:
        raise DataError(
            f"the data has none of the columns that the model names: {listing(subject.names)}; it has {listing(opened.columns)}"
        )
    hidden = getattr(subject.model, "hidden", ())
    lacking = [n for n in subject.names if n not in known and n not in hidden]
    told = [f"the data lacks columns of the model, so that it is not judged by them: {listing(lacking)}"] if lacking else []
    own = opened.select(known).with_variables({n: subject.model.variables[n] for n in known})
    try:
        _ = own.n_rows, own.missing
    except SufficeError as error:
        return None, [f"the rows are not those of this model, and are left out: {error}"]
    return own, [*own.notes, *told]


def _traces(subject: Subject) -> Html:
    """What went up, step by step."""
    figures = []
    for trace in subject.traces:
        lines = trace.lines
        chart = line_chart(lines, x=trace.steps, y=trace.objective, title=f"{trace.title}: {trace.objective}")
        ends = ", ".join(f"{label} {values[-1]:,.4f}" for label, values in lines[:10])
        words = f"{trace.title}: {trace.objective} after each {trace.steps}. Ends: {ends}."
        more = " The heavy line is the best start." if len(lines) > 1 else ""
        figures.append(element("figure", chart, element("figcaption", words + more)))
    return join(figures) or paragraph("There is no trace.")
