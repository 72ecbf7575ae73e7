"""What a prior says of the nodes of a problem: statistics that it imagines, or other beliefs; None where it says nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from suffice.errors import FitError, listing, note
from suffice.errors.remedies import ANY_PRIOR, NORMAL_PRIOR
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Estimate, Mode
from suffice.incomplete.components import NodeFamily, Theta
from suffice.incomplete.numbers.units import Units
from suffice.models.parts.sharing import Tie
from suffice.statistics import Counts, Moments


def imagined_by(nodes: Mapping[str, NodeFamily], prior: Prior | None, how: Estimate) -> dict[str, Any]:
    """What the prior holds of each node; None where it says nothing, which is noted."""
    answers = {
        n: None if prior is None or node.regression else prior.imagine(node.child, node.parents) for n, node in nodes.items()
    }
    unspoken = [n for n, answer in answers.items() if answer is None]
    if prior is not None and unspoken:
        note(f"the prior says nothing about {listing(unspoken)}: fitted by maximum likelihood")
    beliefs = beliefs_of_tables(nodes, answers)
    if beliefs and how != Mode():
        note(
            f"with missing cells the tables of {listing(beliefs)} are modes of the effects of LogisticNormal, to which EM can "
            "climb, and no posterior means"
        )
    return answers


def beliefs_of_tables(nodes: Mapping[str, NodeFamily], said: Mapping[str, Any]) -> dict[str, Any]:
    """What the prior holds of tables of which it imagines no counts."""
    tables = {n: s for n, s in said.items() if s is not None and nodes[n].by_table}
    return {n: s for n, s in tables.items() if not isinstance(s, Counts)}


def refuse_beliefs(said: Mapping[str, Any]) -> None:
    """Refuse priors that imagine no rows, where the M-step needs them."""
    for name, answer in said.items():
        if answer is not None and not isinstance(answer, (Counts, Moments)):
            raise FitError(
                f"the prior of {name!r} imagines no rows, which stationary first slices and hidden numbers need: give it "
                f"{ANY_PRIOR}"
            )


def with_known(nodes: Mapping[str, NodeFamily], said: Mapping[str, Any], theta: Theta) -> Theta:
    """The parameters with the variances that a prior knows."""
    normal = {n: s for n, s in said.items() if s is not None and nodes[n].normal and not isinstance(s, Moments)}
    others: dict[str, Any] = dict(theta.others)
    for name, belief in normal.items():
        others[name] = replace(others[name], variance=np.full_like(others[name].variance, belief.variance))
    return replace(theta, others=others) if normal else theta


def refuse_constants(
    nodes: Mapping[str, NodeFamily], units: Units, spread: Any, imagined: Mapping[str, Any], ties: Iterable[Tie]
) -> None:
    """A column of equal numbers has no density, unless a prior gives it one, or a column that shares it."""
    tied = {node for tie in ties if any(units.variance.get(n, 0.0) > 0 for n in tie.nodes) for node in tie.nodes}
    for i, name in enumerate(units.centre):
        if name in tied or name not in nodes:
            continue
        square = float(spread.scatter[i, 0, 0]) / max(float(spread.weight[i]), 1e-300)
        same = square <= (1e-14 * float(spread.mean[i, 0])) ** 2
        if same and nodes[name].normal and imagined[name] is None:
            raise FitError(
                f"all values of {name!r} are the same, and a constant has no density: leave the column out, or use a prior "
                f"such as {NORMAL_PRIOR}"
            )
