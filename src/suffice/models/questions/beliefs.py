"""A network as a picture with its beliefs: a bar for each state, with what is observed and what is set marked.

Evidence has a heavy border, and its node says `name=value`; what is set from outside has a second border, and says `do`. The
network is asked as anybody asks it, by `marginals` and `query`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from suffice.basis.pictures import Focus, Picture, PictureEdge, PictureNode
from suffice.errors import FitError, ModelError, TooLarge, listing, notes_kept
from suffice.numerics.inference.sampling.sampling import Gibbs

DRAWS = 10_000
"""Of beliefs where the tree of a network without arrows is too large."""

PATIENCE = 10.0
"""Seconds that the intervals of a picture may take; nodes that are left then are shown without."""

MOST_CELLS = 1_000_000
"""Cells of the junction tree up to which a notebook shows the beliefs of a network."""

Values = Mapping[str, Any]


def belief_picture(
    bn: Any,
    given: Values | None = None,
    do: Values | None = None,
    interval: float | None = None,
    *,
    focus: Focus = None,
    steps: int = 1,
) -> Picture:
    """The network under evidence and interventions, or the part of it around a focus."""
    asked = bn.do(do) if do else bn
    done = {**bn.interventions, **(do or {})}
    # A number that is set is no node of the network any more, but is shown; nothing points to what is set.
    names = [*asked.dag.nodes, *(n for n in done if n not in asked.dag.nodes)]
    left = ((a, b) for a, b in bn.dag.edges if a in done and b in asked.dag.nodes and b not in done)
    edges = tuple(PictureEdge(a, b) for a, b in sorted({*asked.dag.edges, *left}))
    scene = Picture(tuple(map(PictureNode, names)), edges).near(focus, steps)
    return _with_beliefs(scene, asked, bn if given or do else None, given or {}, done, interval)


def undirected_picture(net: Any, given: Values | None, focus: Focus, steps: int) -> Picture:
    """The same of a network without arrows."""
    scene = net._scene().near(focus, steps)
    try:
        net.directed  # noqa: B018
    except TooLarge:
        return _with_drawn_beliefs(scene, net, given or {})
    return _with_beliefs(scene, net, net if given else None, given or {}, {}, None)


def _with_drawn_beliefs(scene: Picture, net: Any, given: Values) -> Picture:
    """Beliefs by draws, where a network without arrows is too large for exact ones."""
    try:
        answers = net.marginals(given, method=Gibbs(DRAWS))
    except (ModelError, TooLarge) as error:
        return scene.noting(f"no beliefs: {str(error).partition(': ')[0]}")
    worst = max((float(a.error.max()) for a in answers.values() if a.error is not None), default=0.0)
    scene = scene.noting(f"by Gibbs sampling, {DRAWS:,} draws: standard errors up to {worst:.2g}")
    return replace(scene, nodes=tuple(_node(node, answers, {}, given, {}) for node in scene.nodes))


def notebook_picture(bn: Any) -> Picture:
    """What a notebook shows of a network by itself: beliefs, where they are there at once."""
    try:
        cheap = bn.junction_tree.n_cells <= MOST_CELLS
    except (ModelError, TooLarge):
        cheap = False
    return belief_picture(bn) if cheap else bn._scene()


def _with_beliefs(scene: Picture, asked: Any, unasked: Any, given: Values, done: Values, interval: float | None) -> Picture:
    shown = [node.name for node in scene.nodes if node.name in asked.variables]
    try:
        answers = _points(asked, given, shown)
        before = {} if unasked is None else _points(unasked, {}, shown)
        answers, said = _with_intervals(asked, given, answers, interval)
    except TooLarge as error:
        return scene.noting(f"no beliefs: {error.said}")
    facts = [f"given {', '.join(map(_words, given, given.values()))}: {_probability(asked, given)}" if given else "", said]
    for text in [*facts, "upright and dotted lines: without this" if before else ""]:
        scene = scene.noting(text) if text else scene
    return replace(scene, nodes=tuple(_node(node, answers, before, given, done) for node in scene.nodes))


def _points(bn: Any, given: Values, names: Sequence[str]) -> dict[str, Any]:
    """The answers that have a formula."""
    with notes_kept():  # the picture itself shows what is lacking
        found = bn.marginals(given)
    return {name: found[name] for name in names if name in found}


def _with_intervals(bn: Any, given: Values, answers: dict[str, Any], level: float | None) -> tuple[dict[str, Any], str]:
    """The answers with intervals, those that can have one, and what is to be said of them."""
    if level is None or not answers:
        return answers, ""
    try:
        with notes_kept() as notes:
            found = bn.marginals(given, targets=list(answers), interval=level, time_limit=PATIENCE)
    except (FitError, ModelError) as error:
        return answers, f"no intervals: {str(error).partition(': ')[0]}"
    result = {name: found[name] if found[name].has_interval else answer for name, answer in answers.items()}
    lacking = [name for name, answer in result.items() if answer is answers[name]]
    if len(lacking) == len(answers):
        return answers, f"no intervals: {notes[-1]}"
    without = f", but for {listing(lacking, style='str')}" if lacking else ""
    return result, f"with {100 * level:.10g} % credible intervals{without}"


def _node(node: PictureNode, answers: Values, before: Values, given: Values, done: Values) -> PictureNode:
    name = node.name
    shown = answers[name]._node(name, before.get(name)) if name in answers else node
    if name in given:
        return replace(shown, heading=_words(name, given[name]), mark="observed")
    if name in done:
        return replace(shown, heading=f"do({_words(name, done[name])})", mark="set")
    lacking = ("no formula: observe its parents",) if name not in answers else ()
    return replace(shown, lines=(*shown.lines, *lacking), mark=node.mark)


def _words(name: str, value: Any) -> str:
    """What is known of a node: a state, a number, or likelihoods, which its bars show."""
    if isinstance(value, str):
        return f"{name}={value}"
    return f"{name}={value:.6g}" if isinstance(value, Real) and not isinstance(value, bool) else f"{name}: soft"


def _probability(bn: Any, given: Values) -> str:
    try:
        log = bn.log_prob_of(given)
    except ModelError:
        return "its probability has no formula"
    finite = all(hasattr(bn.variables[name], "states") for name in given)
    return f"{'p' if finite else 'density'} = {f'{math.exp(log):.4g}' if abs(log) < 600 else f'e^{log:.4g}'}"
