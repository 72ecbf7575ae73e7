"""The section about predictions, and how well a model predicts: the score of rows, and how well each node is predicted from the
others, of rows that it was not fitted from, or rows of which it is said that this is not known.

Rows that a network was fitted from are never called held out: a fifth of them is set aside, and the parameters are fitted again
from the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from suffice.basis.variables import Finite
from suffice.errors import FitError, SufficeError, quantity
from suffice.families.named_families import families_of
from suffice.families.priors.priors import suitable
from suffice.graphs import Dag
from suffice.interfaces.reports.markup import Html, Row, bullets, element, facts, join, name, paragraph, reliability, table
from suffice.interfaces.reports.subject import Subject
from suffice.learning.fit import fit
from suffice.recipes.calibration import Calibration, calibration
from suffice.recipes.learn import PRIOR

FOLDS = 5
"""One part in so many is set aside."""

FEWEST = 50
"""Rows, of which a part can be set aside."""

MOST_ROWS = 5_000
"""Rows that single predictions are judged by; of more a sample."""

MOST_TARGETS = 60
"""Nodes that are predicted, the first by name."""

MOST_FILLED = 2_000_000
"""Cells of rows with gaps from which parameters are fitted again, by EM."""


@dataclass(frozen=True)
class PredictionQuality:
    """Which rows a model was judged by, what it said of them, and how well it predicts each node; or why it was not judged."""

    which: str
    held_out: bool = False
    n_rows: int = 0
    per_row: float | None = None
    independent: float | None = None
    """ln p of a row where all columns are taken to be independent, each as in the rows that were not set aside."""
    n_predicted: int = 0
    """The rows that single predictions were judged by."""
    nodes: tuple[Calibration, ...] = ()
    refused: tuple[str, ...] = ()


def judge(subject: Subject, rows: Any, held_out: Any) -> PredictionQuality | None:
    """The judgement by rows that are declared to be held out, by a part of the rows of the report, or by all of them."""
    model = subject.model
    if held_out is not None:
        which = "rows that were given as held out: whoever made the report says that the model was not fitted from them"
        return _judgement(model, held_out, which, held_out=True)
    if rows is None:
        return None
    if not getattr(model, "is_fitted", False):
        which = "the rows of this report; whether the model was fitted from them is not known, so they are not called held out"
        return _judgement(model, rows, which, held_out=False)
    return _set_aside(subject, rows)


def _set_aside(subject: Subject, rows: Any) -> PredictionQuality:
    """A fifth of the rows, by what the others teach."""
    if rows.n_rows < FEWEST:
        return PredictionQuality(f"no rows are held out: {quantity(rows.n_rows, 'row')} are too few to set a part of them aside")
    train, test = next(iter(rows.split(FOLDS, 0)))
    try:
        again = _again(subject.model, train)
        alone = None
        if subject.is_directed and not subject.model.regressions:  # the network without edges, for comparison
            prior = suitable(PRIOR, subject.model.variables.values(), PRIOR)
            alone = fit(Dag([], nodes=list(subject.model)), train, prior=prior)
    except SufficeError as error:
        return PredictionQuality(
            f"no rows are held out: the parameters cannot be fitted again without a part of the rows: {error}"
        )
    which = (
        f"{quantity(test.n_rows, 'row')}, a fifth of those of this report at random (seed 0), predicted by the same graph with "
        "parameters fitted again from the others; the graph itself may have been chosen with all rows"
    )
    return _judgement(again, test, which, held_out=True, independent=alone)


def _again(model: Any, train: Any) -> Any:
    """The same model of other rows."""
    gappy = any(train.missing.values())
    if getattr(model, "hidden", ()):
        raise FitError("it has hidden variables")
    if gappy and train.n_rows * len(train.columns) > MOST_FILLED:
        raise FitError("EM of so many rows with gaps would take long")
    if not hasattr(model, "dag"):
        return fit(model.model, train, prior=model.prior, penalty=model.penalty)
    shared = model.shared or None
    return fit(model.dag, train, prior=model.prior, estimate=model.estimate, families=families_of(model, None), shared=shared)


def _judgement(model: Any, rows: Any, which: str, *, held_out: bool, independent: Any = None) -> PredictionQuality:
    try:
        per_row = model.log_likelihood(rows) / rows.weight
        alone = None if independent is None else independent.log_likelihood(rows) / rows.weight
    except SufficeError as error:
        return PredictionQuality(f"{which}; they cannot be scored: {error}", held_out, rows.n_rows)
    some = rows if rows.n_rows <= MOST_ROWS else rows.of_rows(rows.sample(MOST_ROWS))
    nodes, refused = [], []
    finite = sorted(n for n, v in model.variables.items() if isinstance(v, Finite) and n in rows.columns)
    hidden = getattr(model, "hidden", ())
    for target in [n for n in finite if n not in hidden][:MOST_TARGETS]:
        try:
            nodes.append(calibration(model, some, target))
        except SufficeError as error:
            refused.append(f"{target}: {error}")
    if len(finite) > MOST_TARGETS:
        refused.append(f"of {len(finite):,} nodes the first {MOST_TARGETS} by name were predicted")
    return PredictionQuality(which, held_out, rows.n_rows, per_row, alone, some.n_rows, tuple(nodes), tuple(refused))


CHARTS = 12
"""Nodes whose calibration is drawn, those first that are hardest to predict."""

MOST_STATES = 50
"""States of a node whose calibration is drawn."""


def judged_section(judgement: PredictionQuality, links: dict[str, str]) -> Html:
    """The rows that a model was judged by, their score, a line for each node, and charts of some."""
    which = paragraph(f"{judgement.which[:1].upper()}{judgement.which[1:]}.")
    if judgement.per_row is None:
        return which
    gain = None if judgement.independent is None else judgement.per_row - judgement.independent
    told: dict[str, Any] = {
        "rows": judgement.n_rows,
        "held-out log-likelihood" if judgement.held_out else "log-likelihood": _per_row(judgement.per_row),
        "of independent columns": None if judgement.independent is None else _per_row(judgement.independent),
        "gain": None if gain is None else _per_row(gain),
    }
    impossible = judgement.per_row == float("-inf")
    why = "A row is impossible under the model, as happens without a prior: some probability is zero." if impossible else ""
    parts = [which, facts(told), paragraph(why, class_="note") if why else Html()]
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
        area, node = c.roc[state].area, c.target.name
        numbers = [(f"{x:.4f}".replace("-", "−"), "n") for x in (c.log_score, c.brier, calibration_error(c))]
        below = join([f"{area:.4f} ", element("small", name(state, letters=24))]) if area == area else "–"
        rows.append(Row(name(node, links.get(node, "")), *numbers, below, names=[node]))
    return table(["node", "log score", "Brier score", "calibration error", "area below ROC, of the state"], rows, "Predictions")


def calibration_error(c: Calibration) -> float:
    """The mean distance of predicted probabilities from shares, over all states and bins, each by its rows."""
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
