"""The section of nodes: for each what it is, its neighbours, what the model believes of it, and its distribution as a table.

Tables have numbers, their intervals, how many rows had a configuration, and which none had; past a budget they are cut to the
lines with most support, and say so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from suffice.basis.arrays import Array, Bools
from suffice.basis.pictures.shapes import cut
from suffice.basis.variables import Finite
from suffice.errors import FitError, ModelError, TooLarge, quantity
from suffice.interfaces.reports.markup import (
    LONG,
    Html,
    Row,
    cut_note,
    element,
    filter_attribute,
    join,
    name,
    number,
    paragraph,
    table,
)
from suffice.interfaces.reports.subject import Subject
from suffice.models.gaussian_markov_net import GaussianMarkovNet
from suffice.models.networks import MarkovNet
from suffice.models.questions.answers import in_a_line
from suffice.statistics.counts import sizes

CELLS = 9_000
"""Numbers in the tables of a whole report, about."""

FEWEST, MOST = 4, 400
"""Numbers of one table, whatever the others take."""

WIDE = 8
"""Numbers in a line; a table of more has a line for each number."""

LARGEST = 2_000_000
"""Numbers of a table that is looked through for the lines with most support; of larger ones the first are taken."""


def share_of(n_tables: int, *, intervals: bool = False) -> int:
    """How many numbers each of some tables may show; one with an interval takes the room of two."""
    return max(FEWEST, min(MOST, CELLS // max(1, n_tables) // (2 if intervals else 1)))


@dataclass(frozen=True)
class CpdNumbers:
    """The numbers of a distribution: a line for each configuration of the finite parents, a column for each name."""

    names: list[str]
    values: Array
    low: Array | None
    high: Array | None
    support: Array | None
    """The rows of each configuration."""
    unsupported: Bools
    are_probabilities: bool

    @classmethod
    def of(cls, cpd: Any) -> CpdNumbers:
        """Those of a distribution that has arrays by configuration."""
        n = int(np.prod(sizes(cpd.finite_parents), dtype=np.int64))
        values = np.concatenate([np.asarray(getattr(cpd, a)).reshape(n, -1) for a in cpd.arrays], axis=1)
        probs = "probs" in cpd.arrays
        names = list(cpd.child.states) if probs else cpd._numbers(0)[0]
        ends = cpd.interval_ends() if values.size <= LARGEST else None
        low, high = (None, None) if ends is None else ends
        rows = cpd.support
        return cls(names, values, low, high, None if rows is None else rows.reshape(n), cpd.unsupported.reshape(n), probs)

    def cell(self, i: int, j: int) -> tuple[Html, str]:
        """A number with its interval, and a class that draws it as a bar."""
        value = float(self.values[i, j])
        bar = round(20 * value) if self.are_probabilities and value == value else 0
        classes = f"n b{bar}" if bar else "n"
        if self.low is None or self.high is None:
            return Html(number(value)), classes
        low, high = (self._end(float(end[i, j])) for end in (self.low, self.high))
        return Html(f"{number(value)} <small>{low}–{high}</small>"), classes

    def _end(self, value: float) -> str:
        """An end of an interval: of a probability three decimals, of other numbers three digits."""
        if self.are_probabilities and value == value:
            return f"{value:.3f}".rstrip("0").rstrip(".")
        return f"{value:.3g}".replace("-", "−")


def table_of(cpd: Any, budget: int) -> tuple[Html, Html]:
    """The table of a node's distribution with about so many numbers, and what is to be said of it."""
    if not cpd.arrays or cpd.is_regression:
        return _regression(cpd, budget)
    own, parents = CpdNumbers.of(cpd), cpd.finite_parents
    (n, k), alone = own.values.shape, own.support is None and len(own.values) == 1
    if wide := k <= WIDE:  # a line for each configuration of the finite parents
        chosen, which = _choice(own.support, n, max(1, budget // k))
        places = [(i, range(k)) for i in chosen]
        heads = list(map(name, own.names))
    else:  # of many states a line for each number
        weight = own.values if alone else None if own.support is None else own.support[:, None] * own.values
        chosen, which = _choice(None if weight is None else weight.reshape(-1), n * k, max(2, budget // 2))
        which = "that are most probable" if alone else which
        places = [(c // k, range(c % k, c % k + 1)) for c in chosen]
        heads = [name(cpd.child.name), Html("probability" if own.are_probabilities else "value")]
    rows = []
    for (i, columns), states in zip(places, _states(parents, [i for i, _ in places]), strict=True):
        labels = [*states, *([] if wide else [own.names[columns[0]]])]
        seen: list[tuple[Html, str]] = []
        if own.support is not None:
            none = " <small>none seen</small>" if own.unsupported[i] and own.support[i] <= 0 else ""
            seen = [(Html(f"{number(float(own.support[i]))}{none}"), "n")]
        cells = [own.cell(i, j) for j in columns]
        rows.append(Row(*map(name, labels), *cells, *seen, class_="unseen" if own.unsupported[i] else ""))
    header = [*(name(p.name) for p in parents), *heads, *([] if own.support is None else ["rows"])]
    html = table(header, rows, headings=len(parents) + (not wide))
    return html, cut_note(len(rows), n if wide else n * k, "row" if wide else "cell", which)


def _regression(cpd: Any, budget: int) -> tuple[Html, Html]:
    """A line for each coefficient."""
    n, limit = cpd._n_rows(), max(4, budget // 4)
    header, rows = cpd._rows(limit)
    body = [Row(*(_content(cell) for cell in row)) for row in rows]
    return table([_content(h) for h in header], body), cut_note(len(rows), n, "row", "that come first")


def _content(cell: object) -> str | float:
    return name(cell) if isinstance(cell, str) else float(cell) if isinstance(cell, float) else str(cell)


def _choice(weight: Array | None, n: int, limit: int) -> tuple[Sequence[int], str]:
    """Which lines are shown, in their order, and which these are."""
    if n <= limit:
        return range(n), ""
    if weight is None or n > LARGEST:
        return range(limit), "that come first"
    kept: list[int] = sorted(np.argsort(-weight, kind="stable")[:limit].tolist())
    return kept, "with most support"


def _states(parents: Sequence[Any], chosen: Sequence[int]) -> list[tuple[str, ...]]:
    """The states of the parents in some configurations."""
    if not parents:
        return [()] * len(chosen)
    places = np.unravel_index(np.asarray(chosen, np.int64), sizes(parents))
    return [tuple(p.states[c] for p, c in zip(parents, codes, strict=True)) for codes in zip(*places, strict=True)]


Links = Mapping[str, str]
"""Where the article of each node is."""


@singledispatch
def nodes_section(model: Any, subject: Subject, links: Links) -> Html:
    """The distributions of a model: here of one that has one for each node."""
    believed, said = _beliefs(subject)
    budget = share_of(len(model), intervals=any(model[node].has_posterior for node in model))
    shown = [_article(model, node, links, believed.get(node, ""), budget) for node in model]
    return join([_intervals(model), said, element("div", *shown, class_="cards")])


def _beliefs(subject: Subject) -> tuple[dict[str, str], Html]:
    """The marginal of each node in a line; where the junction tree is too large, or there is no formula, why there are none."""
    if not subject.has_rows:
        return {}, Html()
    try:
        found = subject.model.marginals()
        return {node: cut(in_a_line(found[node], 6), 4 * LONG) for node in found}, Html()
    except (TooLarge, ModelError) as error:
        return {}, paragraph(f"Marginals are left out: {error}", class_="note")


def _intervals(model: Any) -> Html:
    """What is said of intervals."""
    known = [model[node].has_posterior or (model[node].is_regression and model[node].fitted is not None) for node in model]
    if all(known):
        return Html()
    if model.incomplete:
        why = "parameters learned from incomplete rows have no intervals here: query(..., interval=0.95) gives those of answers"
    else:
        why = "they were given, read from a file that holds no posterior, or fitted without a prior; a fit with a prior keeps one"
    which = "No node has" if not any(known) else f"{quantity(len(known) - sum(known), 'node')} without"
    return paragraph(f"{which} intervals: {why}.", class_="note")


def _article(model: Any, node: str, links: Links, belief: str, budget: int) -> Html:
    cpd = model[node]
    html, note = table_of(cpd, budget)
    parents = [name(p, links.get(p, "")) for p in cpd.parents]
    children = [name(c, links.get(c, "")) for c in (model.dag.children(node) if hasattr(model, "dag") else ())]
    lines: list[str] = [join([kind_of(cpd.child), _node_list(", parents ", parents), _node_list(", children ", children)])]
    if belief and cpd.parents:  # else its table is its marginal
        lines.append(join(["marginal: ", element("bdi", belief)]))
    if cpd._kind():
        lines.append(cpd._kind())
    if unseen := int(np.asarray(cpd.unsupported).sum()):
        lines.append(f"{unseen:,} of {quantity(cpd.unsupported.size, 'configuration')} of its parents had no row")
    shown = [paragraph(line) for line in lines]
    place = links[node].removeprefix("#") if node in links else None
    return element("article", element("h3", name(node)), *shown, html, note, id=place, **filter_attribute([node]))


def _node_list(word: str, names: Sequence[Html], most: int = 12) -> Html:
    if not names:
        return Html()
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return join([word, Html(", ".join(names[:most])), more])


def kind_of(variable: Any) -> str:
    """What a variable is, in a word or two."""
    return quantity(variable.n_states, "state") if isinstance(variable, Finite) else str(variable.word)


@nodes_section.register(MarkovNet)
def _of_factors(model: MarkovNet, subject: Subject, links: Links) -> Html:
    """The weights of each term, and the marginals."""
    believed, said = _beliefs(subject)
    own = [Row(name(n), kind_of(v), believed.get(n, ""), id=links[n][1:], names=[n]) for n, v in model.variables.items()]
    heads = table(["node", "kind", "marginal"], own, "Nodes")
    weights, meaning = _weights(model)
    terms = [_term(model, key, np.asarray(own), share_of(len(weights))) for key, own in weights]
    return join([said, heads, paragraph(meaning), element("div", *terms, class_="cards")])


def _weights(model: MarkovNet) -> tuple[list[tuple[Any, Any]], str]:
    """The weights of each term, or, where cells are impossible and weights not unique, the logarithms of factors."""
    try:
        return list(model.weights.items()), "ln p(row) is the sum of the weights of its terms, less that of the normaliser."
    except FitError as error:
        factors = [(factor.names, factor.log) for factor in model.factors if factor.names]
        return factors, f"ln p(row) is the sum of ln φ of its factors, less that of the normaliser; weights: {error}."


def _term(model: MarkovNet, key: Any, weights: Any, budget: int) -> Html:
    """The weights of a term, the largest ones where there are many."""
    names = list(key) if isinstance(key, tuple) else [str(key)]
    flat = weights.reshape(-1)
    order = sorted(np.argsort(-np.abs(flat), kind="stable")[: max(4, budget)].tolist())
    own = [model.variables[n] for n in names if n in model.variables] if weights.ndim == len(names) else []
    whole = bool(own) and tuple(v.n_states for v in own) == weights.shape
    places = [np.unravel_index(i, weights.shape) if whole else (i,) for i in order]
    rows = [
        Row(*(name(own[k].states[c]) if whole else f"weight {c + 1}" for k, c in enumerate(at)), float(flat[i]))
        for i, at in zip(order, places, strict=True)
    ]
    header = [name(n) for n in names] if whole else ["weight of"]
    note = cut_note(len(rows), flat.size, "weight", "that are largest")
    body = table([*header, "weight"], rows, headings=len(header))
    return element("article", element("h3", Html(", ".join(name(n) for n in names))), body, note, **filter_attribute(names))


@nodes_section.register(GaussianMarkovNet)
def _of_precision(model: GaussianMarkovNet, subject: Subject, links: Links) -> Html:
    """Means, deviations and partial correlations."""
    deviations = np.sqrt(np.diag(model.covariance))
    own = zip(model.graph.nodes, np.asarray(model.mean).tolist(), deviations.tolist(), strict=True)
    rows = [Row(name(n), mean, sd, id=links[n][1:], names=[n]) for n, mean, sd in own]
    pairs = sorted(model.partial_correlations.items(), key=lambda item: (-abs(item[1]), item[0]))
    edges = [Row(name(a), name(b), float(r), names=[a, b]) for (a, b), r in pairs[:MOST]]
    both = table(["a", "b", "partial correlation"], edges, "Partial correlations", headings=2) if edges else Html()
    note = cut_note(len(edges), len(pairs), "edge", "that are strongest")
    return join([table(["node", "mean", "standard deviation"], rows, "Nodes"), both, note])
