"""What a network believes, of all nodes, of some together, and most probably; and why: what bears on a node, what a parameter
moves, which paths are open, what a table says, and why an edge is there."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from typing import Any

import numpy as np

from suffice.errors import FitError, GraphError, ImpossibleEvidence, ModelError, TooLarge, nearest, notes_kept
from suffice.interfaces.explorer.calls import AskedNetwork, Call
from suffice.interfaces.explorer.code import call, options, word
from suffice.interfaces.explorer.shelf import HeldModel
from suffice.models.questions.answers import Distribution

MOST_DENSITIES = 20
"""Of how many nodes at once a density is told."""

POINTS = 101
"""At how many places."""

DRAWS = 10_000
"""Of sampled answers."""

PATIENCE = 5.0
"""Seconds that the intervals of one answer may take; nodes that are left then are told without."""

MOST_TOGETHER = 3
"""Nodes whose joint distribution is told."""

MOST_ROWS = 200
"""Of a table that is told, and of what moves an answer."""


def beliefs(request: Call) -> dict[str, Any]:
    """p(x | evidence) of every node x, or of some."""
    asked = AskedNetwork.of(request)
    only, level = request.names("only", None), request.part("interval", (int, float), None)
    return beliefs_of(asked, only, level, sampled=request.part("sampled", bool, False))


def beliefs_of(asked: AskedNetwork, only: Sequence[str] | None, level: float | None, *, sampled: bool = False) -> dict[str, Any]:
    """What the page is told of beliefs. Evidence that cannot be is no refusal: what contradicts what is said."""
    check_nodes(asked.model, only or ())
    with notes_kept() as notes:
        try:
            answer = _sampled_answer(asked, only) if sampled else _exact(asked, only, level)
        except ImpossibleEvidence:
            answer = _impossible(asked)
        except TooLarge as error:
            raise TooLarge(f"{error.said}; or take answers from {DRAWS:,} draws, with their errors: sampled") from None
    return {**answer, "notes": [*(str(note) for note in notes), *answer["notes"]]}


def check_nodes(model: HeldModel, names: Sequence[str]) -> None:
    """Refuse names that are no nodes."""
    every = model.network.variables
    for name in names:
        if name not in every:
            raise ModelError(f"the network has no node {name!r}{nearest(name, every)}")


def _exact(asked: AskedNetwork, only: Sequence[str] | None, level: float | None) -> dict[str, Any]:
    found = asked.network.marginals(dict(asked.given))
    log = float(found.log_prob_of_evidence)
    answers: dict[str, Any] = {name: found[name] for name in found if only is None or name in only}
    said: list[str] = []
    if level is not None:
        answers, said = _with_intervals(asked, answers, level)
    flags = " --all" + options(interval=level if not said else None)
    code = asked.code("marginals", command=asked.query(flags=flags), interval=level if not said else None)
    how: dict[str, Any] = {"method": "exact", "error": None, "notes": said}
    return {**_told_evidence(log), **how, "nodes": _nodes(asked, answers, only), "code": code}


def _with_intervals(asked: AskedNetwork, answers: dict[str, Any], level: float) -> tuple[dict[str, Any], list[str]]:
    """The answers with the intervals that they can have, within the time that somebody waits; why some have none."""
    if not asked.model.directed:
        return answers, ["no intervals: a network without arrows keeps no posterior of its parameters"]
    try:
        with notes_kept() as notes:
            given, some = dict(asked.given), list(answers)
            found = asked.network.marginals(given, targets=some, interval=level, time_limit=PATIENCE)
    except (FitError, ModelError) as error:
        return answers, [f"no intervals: {error}"]
    return {name: found[name] for name in answers}, [str(note) for note in notes]


def _sampled_answer(asked: AskedNetwork, only: Sequence[str] | None) -> dict[str, Any]:
    """By draws, where the junction tree is too large."""
    from suffice.numerics.inference.sampling.sampling import Gibbs, LikelihoodWeighting

    sampler: Any = LikelihoodWeighting(DRAWS) if asked.model.directed else Gibbs(DRAWS)
    found = asked.network.marginals(dict(asked.given), method=sampler)
    answers = {name: found[name] for name in found if only is None or name in only}
    finite = [answer for answer in answers.values() if isinstance(answer, Distribution)]
    errors = [float(answer.error.max()) for answer in finite if answer.error is not None]
    method = f"method=sf.methods.{type(sampler).__name__}({DRAWS})"
    code = asked.model.origin.code(f"{asked.statement('marginals').removesuffix(')')}{', ' * bool(asked.given)}{method})")
    how: dict[str, Any] = {"method": "sampled", "error": max(errors, default=None), "notes": []}
    return {**_told_evidence(float(found.log_prob_of_evidence)), **how, "nodes": _nodes(asked, answers, only), "code": code}


def _impossible(asked: AskedNetwork) -> dict[str, Any]:
    """What is said of evidence that cannot be."""
    from suffice.models.questions.question import in_words

    at_odds = asked.network.contradiction(dict(asked.given))
    said = in_words(at_odds or asked.given)
    message = f"{said} cannot be" if len(at_odds) == 1 else f"these contradict each other: {said}"
    nothing = {"log_evidence": None, "evidence_probability": 0.0, "possible": False, "message": message}
    code = asked.code("contradiction") if asked.given else asked.code("marginals")
    return {**nothing, "method": "exact", "error": None, "notes": [], "nodes": {}, "at_odds": list(at_odds), "code": code}


def _told_evidence(log: float) -> dict[str, Any]:
    p = math.exp(min(log, 700.0)) if log == log else None
    how_probable = {"log_evidence": log if log == log else None, "evidence_probability": p}
    return {**how_probable, "possible": True, "message": None, "at_odds": []}


def _nodes(asked: AskedNetwork, answers: dict[str, Any], only: Sequence[str] | None) -> dict[str, Any]:
    curves = only is not None and len(only) <= MOST_DENSITIES
    told = {name: _belief(answer, curves) for name, answer in answers.items()}
    for name, value in asked.do.items():  # a number that is set is no node any more
        if name not in told and not isinstance(value, str) and (only is None or name in only):
            told[name] = {"mean": float(value), "sd": 0.0, "lower": None, "upper": None, "density": None}
    return told


def _belief(answer: Any, curves: bool) -> dict[str, Any]:
    """A belief about one node."""
    if isinstance(answer, Distribution):
        lower, upper = (None, None) if answer.interval is None else (end.tolist() for end in answer.interval)
        return {"probs": answer.probs.tolist(), "lower": lower, "upper": upper}
    lower, upper = (None, None) if answer.mean_interval is None else map(float, answer.mean_interval)
    curve = curves and float(answer.sd) > 0
    density = [list(point) for point in zip(*(x.tolist() for x in answer.curve(POINTS)), strict=True)] if curve else None
    return {"mean": float(answer.mean), "sd": float(answer.sd), "lower": lower, "upper": upper, "density": density}


def joint(request: Call) -> dict[str, Any]:
    """p(targets | evidence) of up to three nodes together."""
    asked, targets = AskedNetwork.of(request), request.names("targets")
    check_nodes(asked.model, targets)
    if not 1 <= len(targets) <= MOST_TOGETHER:
        raise ModelError(f"the joint distribution of one to {MOST_TOGETHER} nodes is told, not of {len(targets)}")
    for name in targets:
        if not hasattr(asked.model.network.variables[name], "states"):
            raise ModelError(f"{name!r} is a number, and joint probabilities are of states: ask for it alone")
    answer = asked.network.query(targets, dict(asked.given))
    code = asked.code("query", repr(targets), command=asked.query(", ".join(map(word, targets))))
    states = [list(v.states) for v in answer.variables]
    return {"targets": targets, "states": states, "probs": answer.probs.tolist(), "code": code}


def explanation(request: Call) -> dict[str, Any]:
    """The most probable values of all that is not observed."""
    asked = AskedNetwork.of(request)
    found = asked.network.most_probable(dict(asked.given))
    values = {name: value if isinstance(value, str) else float(value) for name, value in found.items()}
    code = asked.code("most_probable", command=asked.query(flags=" --mpe"))
    return {"values": values, "log_prob": float(found.log_prob), "code": code}


def influence(request: Call) -> dict[str, Any]:
    """How much each other node says about a target."""
    asked, target = AskedNetwork.of(request), request.part("target", str)
    _arrows(asked.model, "influence")
    found = asked.network.influence(target, dict(asked.given))
    rows = []
    for name, nats in found.information.items():
        states, moved = found.moved.get(name, ((), np.zeros((0, len(found.probs)))))
        moves = [_move(found, state, row) for state, row in zip(states, moved, strict=True) if not np.isnan(row).any()]
        rows.append({"node": name, "information": float(nats), "moves": moves})
    return {"entropy": found.entropy, "rows": rows, "code": asked.code("influence", repr(target))}


def _move(found: Any, state: str, row: Any) -> dict[str, Any]:
    """Where a state of another node would move the target: the state of the target that it moves most."""
    most = int(np.abs(row - found.probs).argmax())
    return {"state": state, "of": found.target.states[most], "from": float(found.probs[most]), "to": float(row[most])}


def tornado(request: Call) -> dict[str, Any]:
    """The answer when one parameter goes to the ends of its interval."""
    asked, target, state = AskedNetwork.of(request), request.part("target", str), request.part("state", str)
    _arrows(asked.model, "the swing of parameters")
    found = asked.network.tornado(target, state, dict(asked.given))
    rows = [
        {"node": b.node, "parents": dict(b.parents), "state": b.state, "value": b.value, "low": b.at_low, "high": b.at_high}
        for b in found.bends[:MOST_ROWS]
    ]
    code = asked.code("tornado", repr(target), repr(state))
    return {"answer": found.answer, "question": found.question, "rows": rows, "cut": len(found.bends) - len(rows), "code": code}


def separation(request: Call) -> dict[str, Any]:
    """Whether the graph says that two nodes are independent given others; if not, along which path they are not."""
    model = request.model
    a, b, given = request.part("a", str), request.part("b", str), request.names("given", [])
    check_nodes(model, [a, b, *given])
    if a == b or a in given or b in given:
        raise GraphError("separation is between two nodes that are not given")
    graph = model.network.dag if model.directed else model.network.graph
    path = list(graph.active_path(a, b, given))
    word = "dag" if model.directed else "graph"
    code = model.origin.code(f"answer = {call(f'bn.{word}.active_path', repr(a), repr(b), given=given)}")
    return {"separated": not path, "path": path or None, "code": code}


def cpd(request: Call) -> dict[str, Any]:
    """The table of a node, with intervals where there is a posterior."""
    model, name = request.model, request.text("node")
    _arrows(model, "a table for each node")
    check_nodes(model, [name])
    own = model.network[name]
    (columns, rows), *_ = own._tables(MOST_ROWS)[0]
    unseen = own.unsupported.reshape(-1)
    unsupported = np.flatnonzero(unseen[: len(rows)]).tolist() if not own.is_regression else []
    cut = 0 if own.is_regression else unseen.size - len(rows)
    found = None if own.is_regression else own.interval_ends()
    ends = None if found is None else np.stack(found, axis=-1)[: len(rows)].tolist()  # of each number, column by column
    code = model.origin.code(f"answer = bn[{name!r}]", f"suffice show {model.origin.shell} --node {shlex.quote(name)}")
    told = {"columns": columns, "rows": [list(row) for row in rows], "unsupported": unsupported, "cut": cut}
    return {**told, "intervals": ends is not None, "ends": ends, "text": repr(own), "code": code}


def edge(request: Call) -> dict[str, Any]:
    """Why an edge is there, or is not."""
    model, parent, child = request.model, request.text("parent"), request.text("child")
    _arrows(model, "the reasons of edges")
    check_nodes(model, [parent, child])
    found, code = judgement_of(request, model)
    told = found.explain((parent, child))
    present = (parent, child) in found.losses
    loss = found.losses.get((parent, child))
    answer = {"present": present, "text": repr(told), "loss": loss, "direction": found.directions.get((parent, child))}
    return {**answer, "code": model.origin.code(f"{code}\nanswer = found.explain({(parent, child)!r})")}


def judgement_of(request: Call, model: HeldModel) -> tuple[Any, str]:
    """The search that a model comes from, or what its data say of its graph; and the statements that give it."""
    from suffice.structure.results.found import GivenGraph
    from suffice.structure.search import search

    with model.lock:
        if model.found is None:
            table = request.shelf.table_of(model)
            model.found = search(model.network.rows(table.data), method=GivenGraph(model.network.dag))
            model.found_python = f"{table.origin.python}\nfound = sf.search(bn.rows(data), method=sf.methods.GivenGraph(bn.dag))"
    return model.found, model.found_python


def _arrows(model: HeldModel, what: str) -> None:
    if not model.directed:
        raise ModelError(f"{model.name} is a network without arrows: {what} is of Bayesian networks")
