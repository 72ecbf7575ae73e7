"""The section about predictions: the score of rows, and how well each node is predicted from the others."""

from __future__ import annotations

from suffice.recipes.calibration import Calibration
from suffice.reports.charts import reliability
from suffice.reports.judgement import PredictionQuality
from suffice.reports.markup import Content, Html, Row, bullets, element, facts, join, name, paragraph, table

CHARTS = 12
"""Nodes whose calibration is drawn, those first that are hardest to predict."""

MOST_STATES = 50
"""States of a node whose calibration is drawn."""


def judged_section(judgement: PredictionQuality, links: dict[str, str]) -> Html:
    """The rows that a model was judged by, their score, a line for each node, and charts of some.

    >>> judged_section(PredictionQuality("no rows are held out: 3 rows are too few"), {})
    '<p>No rows are held out: 3 rows are too few.</p>'
    """
    which = paragraph(f"{judgement.which[:1].upper()}{judgement.which[1:]}.")
    if judgement.per_row is None:
        return which
    gain = None if judgement.independent is None else judgement.per_row - judgement.independent
    told: dict[str, Content] = {
        "rows": judgement.n_rows,
        "held-out log-likelihood" if judgement.held_out else "log-likelihood": _per_row(judgement.per_row),
        "of independent columns": None if judgement.independent is None else _per_row(judgement.independent),
        "gain": None if gain is None else _per_row(gain),
    }
    impossible = judgement.per_row == float("-inf")
    why = "A row is impossible under the model, as happens without a prior: some probability is zero." if impossible else ""
    parts: list[Content] = [which, facts(told), paragraph(why, class_="note") if why else ""]
    if judgement.nodes:
        few = judgement.n_predicted < judgement.n_rows
        sample = f", on a sample of {judgement.n_predicted:,} of these rows" if few else ""
        parts.append(paragraph(f"Each node is predicted from all other cells of its row{sample}."))
        parts += [_table(judgement, links), _charts(judgement)]
    if judgement.refused:
        parts += [element("h3", "Not judged"), bullets(line[:400] for line in judgement.refused)]
    return join(parts)


def _per_row(value: float) -> str:
    said = f"{value:,.4f}".replace("-", "−") if value != float("-inf") else "−∞"
    return f"{said} per row"


def _table(judgement: PredictionQuality, links: dict[str, str]) -> Html:
    rows = []
    for c in judgement.nodes:
        state = c.of(None)
        area = c.roc[state].area
        rows.append(
            Row(
                name(c.target.name, links.get(c.target.name, "")),
                *((f"{x:.4f}".replace("-", "−"), "n") for x in (c.log_score, c.brier, calibration_error(c))),
                join([f"{area:.4f} ", element("small", name(state, letters=24))]) if area == area else "–",
                names=[c.target.name],
            )
        )
    return table(["node", "log score", "Brier score", "calibration error", "area below ROC, of the state"], rows, "Predictions")


def calibration_error(c: Calibration) -> float:
    """The mean distance of predicted probabilities from shares, over all states and bins, each by its rows.

    >>> import suffice as sf
    >>> judged = sf.calibration(sf.load("asia"), {"smoke": ["yes", "no"], "bronc": ["yes", "no"]}, "bronc", bins=2)
    >>> round(calibration_error(judged), 6)
    0.35
    """
    weight = sum(b.weight for b in c.bins)
    return sum(b.weight * abs(b.predicted - b.observed) for b in c.bins) / weight


def _charts(judgement: PredictionQuality) -> Html:
    drawn = [c for c in sorted(judgement.nodes, key=lambda c: (c.log_score, c.target.name)) if c.target.n_states <= MOST_STATES]
    figures = []
    for c in drawn[:CHARTS]:
        state = c.of(None)
        bins = [(b.predicted, b.observed, b.lower, b.upper, b.weight) for b in c.bins if b.state == state]
        label = f"{c.target.name} = {state}"
        chart = reliability(bins, title=f"calibration of {label}")
        figures.append(element("figure", chart, element("figcaption", name(label)), class_="small"))
    rest = f" The {CHARTS} nodes that are hardest to predict are drawn." if len(drawn) > CHARTS else ""
    about = f"Predicted probabilities against shares of rows, with 95 % intervals; on the diagonal they agree.{rest}"
    heading = element("h3", "Calibration")
    return join([heading, paragraph(about), element("div", *figures, class_="figures")]) if figures else Html()
