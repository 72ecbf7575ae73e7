"""Two models beside each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from suffice.errors import ImpossibleEvidence, ModelError, SufficeError, notes_kept
from suffice.explorer.answers.beliefs import beliefs_of
from suffice.explorer.answers.network import kind_of, layout_of, sized_node, told_graph
from suffice.explorer.requests.calls import AskedNetwork, Call
from suffice.explorer.shelf import HeldModel


def compare(request: Call) -> dict[str, Any]:
    """Where the edges of two differ, how far their distributions are apart, and what both say given the same."""
    a, b = (request.shelf.model(request.part(name, str)) for name in ("a", "b"))
    chosen = request.part("table", str, None)
    notes: list[str] = []
    table = None if chosen is None else request.shelf.table(chosen)
    shd = _shd(a, b, notes)
    scores = [{"name": "parameters", "a": int(a.network.n_parameters), "b": int(b.network.n_parameters)}]
    if table is not None:
        scores += _scores(a, b, table.data, notes)
    beliefs = {side: _beliefs(request, model, notes) for side, model in (("a", a), ("b", b))}
    told = {"graph": _graph(a, b), "shd": shd, "kl": _kl(a, b, notes), "scores": scores, "beliefs": beliefs, "notes": notes}
    return {**told, "code": _code(a, b)}


def _graph(a: HeldModel, b: HeldModel) -> dict[str, Any]:
    """The edges of both, in four styles."""
    both = a.network._scene().against(b.network._scene())
    own = {n.name: sized_node(a if n.name in a.network.variables else b, n.name) for n in both.nodes}
    scene = type(both)(tuple(own.values()), both.edges, both.caption, both.legend)
    at = layout_of(a, scene, ("against", b.id))
    kinds = {n: kind_of(v) for n, v in {**b.network.variables, **a.network.variables}.items()}
    return {"ready": False} if at is None else told_graph(scene, at, kinds)


def _shd(a: HeldModel, b: HeldModel, notes: list[str]) -> int | None:
    from suffice.graphs import shd

    if not a.directed or not b.directed:
        notes.append("no structural distance: that is between networks with arrows")
        return None
    found: int | None = _or_noted(notes, lambda: shd(a.network.dag, b.network.dag))
    return found


def _kl(a: HeldModel, b: HeldModel, notes: list[str]) -> dict[str, float] | None:
    from suffice.models.divergence import kl

    if not a.directed or not b.directed:
        notes.append("no divergence of the distributions: that is between networks with arrows")
        return None
    found = _or_noted(notes, lambda: {"a_to_b": kl(a.network, b.network), "b_to_a": kl(b.network, a.network)})
    if found is None:
        return None
    for (p, q), nats in zip(((a, b), (b, a)), found.values(), strict=True):
        if nats == math.inf:
            notes.append(f"the divergence of {p.name} from {q.name} is infinite: the one can be what the other rules out")
    return {name: float(nats) for name, nats in found.items()}


def _scores(a: HeldModel, b: HeldModel, data: Any, notes: list[str]) -> list[dict[str, Any]]:
    """What each says of the data."""
    rows = []
    for name, score in (("log-likelihood", "log_likelihood"), ("BIC", "bic"), ("AIC", "aic")):
        found = [_or_noted(notes, lambda m=m, score=score: float(getattr(m.network, score)(data))) for m in (a, b)]  # type: ignore[misc]
        rows.append({"name": name, "a": found[0], "b": found[1]})
    return rows


def _or_noted(notes: list[str], ask: Callable[[], Any]) -> Any:
    """An answer, or None with a note that says why there is none."""
    try:
        with notes_kept() as kept:
            answer = ask()
    except SufficeError as error:
        said = [str(error)]
        answer = None
    else:
        said = [str(note) for note in kept]
    notes += [text for text in said if text not in notes]
    return answer


def _beliefs(request: Call, model: HeldModel, notes: list[str]) -> dict[str, Any]:
    """The same evidence, as far as the model has these nodes and states."""
    known = model.network.variables
    asked = AskedNetwork.of(request, model)
    given = {n: v for n, v in asked.given.items() if n in known}
    done = {n: v for n, v in asked.do.items() if n in known}
    if left := [n for n in (*asked.given, *asked.do) if n not in known]:
        notes.append(f"{model.name} has no {', '.join(left)}: told without it")
    try:
        return beliefs_of(AskedNetwork(model, given, done), None, None)
    except (ModelError, ImpossibleEvidence) as error:
        nothing = dict.fromkeys(("log_evidence", "evidence_probability", "error"))
        told: dict[str, Any] = {**nothing, "method": "exact", "notes": [], "nodes": {}, "possible": False, "message": str(error)}
        return {**told, "code": {"python": None, "command": None}}


def _code(a: HeldModel, b: HeldModel) -> dict[str, str | None]:
    other = b.origin.python.replace("bn = ", "other = ")
    python = f"import suffice as sf\n\n{a.origin.python}\n{other}\nanswer = bn.picture(against=other)"
    if a.origin.word is None or b.origin.word is None or not (a.directed and b.directed):
        return {"python": python, "command": None}
    before = dict.fromkeys([*a.origin.commands, *b.origin.commands])
    return {"python": python, "command": "\n".join([*before, f"suffice compare {a.origin.shell} {b.origin.shell}"])}
