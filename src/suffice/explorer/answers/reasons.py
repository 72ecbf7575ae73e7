"""Why: what bears on a node, what a parameter moves, which paths are open, what a table says, and why an edge is there."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np

from suffice.errors import GraphError, ModelError, nearest
from suffice.explorer.answers.beliefs import check_nodes
from suffice.explorer.code import call
from suffice.explorer.requests.calls import AskedNetwork, Call
from suffice.explorer.shelf import HeldModel

MOST_ROWS = 200
"""Of a table that is told, and of what moves an answer."""


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
    check_nodes(AskedNetwork(model, {}, {}), [a, b, *given])
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
    if name not in model.network.variables:
        raise ModelError(f"the network has no node {name!r}{nearest(name, model.network.variables)}")
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
    check_nodes(AskedNetwork(model, {}, {}), [parent, child])
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
