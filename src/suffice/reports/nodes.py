"""The section of nodes: for each what it is, its neighbours, what the model believes of it, and its distribution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from suffice.errors import FitError, ModelError, TooLarge, quantity
from suffice.models.gaussian_markov_net import GaussianMarkovNet
from suffice.models.networks import MarkovNet
from suffice.models.questions.answers.answers import in_a_line
from suffice.pictures.shapes import cut
from suffice.reports.markup import LONG, Content, Html, Row, cut_rows, element, found_by, join, name, paragraph, table
from suffice.reports.subject import Subject
from suffice.reports.tables import MOST, share_of, table_of
from suffice.variables import Finite

Links = Mapping[str, str]
"""Where the article of each node is."""


@singledispatch
def nodes_section(model: Any, subject: Subject, links: Links) -> Html:
    """The distributions of a model: here of one that has one for each node.

    >>> import suffice as sf
    >>> from suffice.reports.subject import subject_of
    >>> bn = sf.load("asia")
    >>> nodes_section(bn, subject_of(bn), {n: f"#{n}" for n in bn.nodes}).count("<article")
    8
    """
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
    html, cut_to = table_of(cpd, budget)
    parents = [name(p, links.get(p, "")) for p in cpd.parents]
    children = [name(c, links.get(c, "")) for c in _children(model, node)]
    lines: list[Content] = [join([kind_of(cpd.child), _node_list(", parents ", parents), _node_list(", children ", children)])]
    if belief and cpd.parents:  # else its table is its marginal
        lines.append(join(["marginal: ", element("bdi", belief)]))
    if cpd._kind():
        lines.append(cpd._kind())
    unseen = int(np.asarray(cpd.unsupported).sum())
    if unseen:
        lines.append(f"{unseen:,} of {quantity(cpd.unsupported.size, 'configuration')} of its parents had no row")
    shown = [paragraph(line) for line in lines]
    note = paragraph(f"Shown: {cut_to}.", class_="cut") if cut_to else Html()
    place = links[node].removeprefix("#") if node in links else None
    return element("article", element("h3", name(node)), *shown, html, note, id=place, **found_by([node]))


def _children(model: Any, node: str) -> Sequence[str]:
    return model.dag.children(node) if hasattr(model, "dag") else ()


def _node_list(word: str, names: Sequence[Html], most: int = 12) -> Html:
    if not names:
        return Html()
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return join([word, Html(", ".join(names[:most])), more])


def kind_of(variable: Any) -> str:
    """What a variable is, in a word or two.

    >>> kind_of(Finite("x", ["a", "b"]))
    '2 states'
    """
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
    said = cut_rows(len(rows), flat.size, "weight", "that are largest")
    note = paragraph(f"Shown: {said}.", class_="cut") if said else Html()
    body = table([*header, "weight"], rows, headings=len(header))
    return element("article", element("h3", Html(", ".join(name(n) for n in names))), body, note, **found_by(names))


@nodes_section.register(GaussianMarkovNet)
def _of_precision(model: GaussianMarkovNet, subject: Subject, links: Links) -> Html:
    """Means, deviations and partial correlations."""
    deviations = np.sqrt(np.diag(model.covariance))
    own = zip(model.graph.nodes, np.asarray(model.mean).tolist(), deviations.tolist(), strict=True)
    rows = [Row(name(n), mean, sd, id=links[n][1:], names=[n]) for n, mean, sd in own]
    pairs = sorted(model.partial_correlations.items(), key=lambda item: (-abs(item[1]), item[0]))
    edges = [Row(name(a), name(b), float(r), names=[a, b]) for (a, b), r in pairs[:MOST]]
    said = cut_rows(len(edges), len(pairs), "edge", "that are strongest")
    both = table(["a", "b", "partial correlation"], edges, "Partial correlations", headings=2) if edges else Html()
    note = paragraph(f"Shown: {said}.", class_="cut") if said else Html()
    return join([table(["node", "mean", "standard deviation"], rows, "Nodes"), both, note])
