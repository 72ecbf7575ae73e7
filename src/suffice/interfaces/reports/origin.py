"""The sections about where a model comes from: how it was learned, from which rows, what is missing in them, and which
conventions its numbers follow."""

from __future__ import annotations

from typing import Any

from suffice.basis import VERSION
from suffice.errors import SufficeError, quantity
from suffice.interfaces.reports.markup import Content, Html, Row, bullets, cut_note, element, facts, join, name, paragraph, table
from suffice.interfaces.reports.subject import Subject
from suffice.recipes.missing.missingness import missingness

MOST_COLUMNS = 500
"""Columns of the table of what they are."""


def origin_section(subject: Subject, rows: Any, source: str, command: str, notes: list[str]) -> Html:
    """How the model was learned, and from what."""
    model, problem = subject.model, getattr(subject.found, "problem", None)
    statistics, prior = getattr(model, "statistics", None), model.prior
    fitted = "not known: the model keeps no statistics of rows"
    if statistics is not None:
        fitted = f"{quantity(statistics.weight, 'row')} without missing cells"
    elif getattr(model, "incomplete", False):
        fitted = "rows with missing cells or hidden variables, which the model does not keep"
    told: dict[str, Content] = {
        "found": join([element("span", line, class_="line") for line in subject.summary]),
        "fitted from": fitted,
        "set from outside": ", ".join(f"{n}={v}" for n, v in getattr(model, "interventions", {}).items()),
        "prior": "" if prior is None else repr(prior),
        "estimate": repr(model.estimate) if prior is not None else "",
        "score of the search": "" if problem is None else repr(problem.score),
        "method of the search": "" if subject.found is None else repr(subject.found.method),
        "constraints": "" if problem is None else "none" if problem.constraints is None else repr(problem.constraints),
        "seed of the search": "" if problem is None else problem.seed,
        "rows of this report": _rows(subject, rows, source),
        "command": element("code", command) if command else "",
        "version": f"Suffice {VERSION}",
    }
    said = join([element("h3", "Notes"), bullets(notes)]) if notes else Html()
    plain = {term for term, value in told.items() if isinstance(value, str) and value and not isinstance(value, Html)}
    return join([facts({term: name(str(x), letters=600) if term in plain else x for term, x in told.items()}), said])


def _rows(subject: Subject, rows: Any, source: str) -> str:
    if rows is None:
        return "none"
    weight = f", weight {rows.weight:,.10g}" if rows.weighted else ""
    own = f"{quantity(rows.n_rows, 'row')}{weight} of {quantity(len(rows.columns), 'column')}{f', {source}' if source else ''}"
    same = fitted_from(subject.model, rows)
    which = "rows with the same statistics" if same else "other rows"
    return own if same is None else f"{own}; the model was fitted from {which}"


def fitted_from(model: Any, rows: Any) -> bool | None:
    """Whether rows have the statistics that a model was fitted from; None where that cannot be told."""
    kept = getattr(model, "statistics", None)
    if kept is None:
        return None
    if abs(kept.weight - rows.weight) > 1e-9 * kept.weight:
        return False
    try:
        return bool(model.log_likelihood() == model.log_likelihood(model.summary(rows)))
    except SufficeError:
        return None


def schema_section(rows: Any) -> Html:
    """What each column is."""
    header, lines = rows.schema._table()
    own = [Row(*(name(str(cell), letters=120) for cell in line), names=[str(line[0])]) for line in lines[:MOST_COLUMNS]]
    return join([table(header, own, "Columns"), cut_note(len(own), len(lines), "row", "that come first")])


def missing_section(rows: Any) -> Html:
    """How many cells are missing, in which patterns, and whether that seems to be at random."""
    if not any(rows.missing.values()):
        return paragraph(f"No cell is missing in {quantity(rows.n_rows, 'row')} of {quantity(len(rows.columns), 'column')}.")
    found = missingness(rows)
    parts: list[Html] = [paragraph(f"{found._headline()}.")]
    if found.warning:
        parts.append(paragraph(element("strong", "Warning: "), found.warning, class_="note"))
    parts.append(bullets([*found._facts(), f"MCAR: {found.mcar}"]))
    for header, lines, said in found._tables():
        if lines:
            shown = [[c if isinstance(c, (int, float)) else name(str(c), letters=120) for c in line] for line in lines]
            body = [Row(*cells, names=[str(line[0])]) for line, cells in zip(lines, shown, strict=True)]
            parts += [table(header, body, header[0].capitalize()), paragraph(said, class_="cut") if said else Html()]
    return join(parts)


def conventions(subject: Subject, *, judged: bool) -> Html:
    """The conventions that the numbers of this report follow."""
    prior = subject.model.prior is not None
    lines = [
        "Logarithms are natural. Scores are such that higher is better: BIC is log L − ½ k ln N, AIC is log L − k.",
        "The loss of an edge is what the score of the graph would be lower by without it, all else the same.",
        "Point values are posterior means, unless the estimate above says mode."
        if prior
        else "Without a prior, point values are of maximum likelihood, or as given; the variance of a Gaussian is divided by N.",
        "Intervals are equal-tailed and hold 95 % of the posterior, each parameter by itself; those of regressions are Wald's.",
        "None seen: no row had these states of the parents. Its numbers are those of the prior; without one, uniform or missing.",
        "Arrows are edges (parent, child) of a factorisation; that they are causes does not follow from data.",
        "Numbers are shown with four digits, ends of intervals with three; the saved model has all of them.",
    ]
    if not subject.is_directed:
        del lines[5]
    if judged:
        lines.append(
            "The log score is the mean of ln p of the right state, the Brier score the mean of Σ (p − [state is right])², from 0 "
            "to 2; the calibration error the mean distance of predicted probabilities from shares over bins of a tenth, by rows."
        )
    return bullets(lines)
