"""What a network believes: of all nodes, of some together, and most probably."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from suffice.errors import ModelError, nearest, notes_kept
from suffice.explorer.calls import Call
from suffice.explorer.evidence import Asked

MOST_DENSITIES = 20
"""Of how many nodes at once a density is told."""

POINTS = 101
"""At how many places."""


def beliefs(request: Call) -> dict[str, Any]:
    """p(x | evidence) of every node x, or of some."""
    asked = Asked.of(request)
    only, level = request.names("only", None), request.given("interval", (int, float), None)
    return believed(asked, only, level, sampled=request.given("sampled", bool, False))


def believed(asked: Asked, only: Sequence[str] | None, level: float | None, *, sampled: bool = False) -> dict[str, Any]:
    """What the page is told of beliefs. Evidence that cannot be is no refusal."""
    for name in only or ():
        if name not in asked.model.network.variables:
            raise ModelError(f"the network has no node {name!r}{nearest(name, asked.model.network.variables)}")
    with notes_kept() as notes:
        answer = _exact(asked, only, level)
    return {**answer, "notes": [str(note) for note in notes] + answer["notes"]}


def _exact(asked: Asked, only: Sequence[str] | None, level: float | None) -> dict[str, Any]:
    found = asked.network.marginals(dict(asked.given))
    log = float(found.log_prob_of_evidence)
    wanted = [name for name in found if only is None or name in only]
    answers: dict[str, Any] = {name: found[name] for name in wanted}
    result = {
        "log_evidence": log,
        "evidence_probability": math.exp(min(log, 700.0)),
        "method": "exact",
        "error": None,
        "notes": [],
        "possible": True,
        "message": None,
        "code": asked.code("marginals", command=asked.query(flags=" --all")),
    }
    curves = only is not None and len(only) <= MOST_DENSITIES
    nodes = {name: _told(answer, curves) for name, answer in answers.items()}
    return {**result, "nodes": nodes}


def _told(answer: Any, curves: bool) -> dict[str, Any]:
    """A belief about one node."""
    if hasattr(answer, "probs"):
        ends = answer.interval
        lower, upper = (None, None) if ends is None else (end.tolist() for end in ends)
        return {"probs": answer.probs.tolist(), "lower": lower, "upper": upper}
    lower, upper = (None, None) if answer.mean_interval is None else map(float, answer.mean_interval)
    density = [list(point) for point in zip(*(x.tolist() for x in answer.curve(POINTS)), strict=True)] if curves else None
    return {"mean": float(answer.mean), "sd": float(answer.sd), "lower": lower, "upper": upper, "density": density}
