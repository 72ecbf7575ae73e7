"""Answers of a network as the command line prints them: whole tables for a person, plain values for a program (JSON)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from suffice.errors import ModelError
from suffice.models.networks import BayesNet
from suffice.models.questions.answers import Distribution, Marginals, MostProbable, in_a_line
from suffice.models.questions.evidence import code_of
from suffice.output.display import text_table
from suffice.variables import Finite

States = Mapping[str, str]
"""The states that targets are asked for, where the question names some."""


def check_states(bn: BayesNet, targets: tuple[str, ...], states: States) -> None:
    """Refuse states that a target does not have, before anything is computed."""
    if not states:
        return
    for name in targets:
        variable = bn.variables.get(name)
        if isinstance(variable, Finite) and name in states:
            code_of(variable, states[name])
        elif variable is not None and not isinstance(variable, Finite):
            raise ModelError(f"{name!r} is a number and has no states: ask for its distribution, with states only after the bar")


def in_text(answer: Any, states: States) -> str:
    """The answer for a person; where each target has a state, the one probability, with all its digits.

    >>> answer = Distribution((Finite("x", ["a", "b"]),), np.array([0.25, 0.75]))
    >>> in_text(answer, {}) == repr(answer), in_text(answer, {"x": "b"})
    (True, '0.75')
    """
    title = repr(answer).partition("\n")[0]
    if isinstance(answer, Marginals):
        return f"{title}\n{text_table(['node', 'distribution'], [(n, in_a_line(answer[n])) for n in answer], indent='  ')}"
    if isinstance(answer, MostProbable):
        return f"{title}\n{text_table(['node', 'state'], answer.items(), indent='  ')}"
    if not isinstance(answer, Distribution):
        return repr(answer)
    found = _records(answer, states)
    if set(answer.names) == set(states) and answer.interval is None and answer.error is None:
        return repr(found[0]["probability"])
    rows = [[*record["states"].values(), *(x for k, x in record.items() if k != "states")] for record in found]
    return f"{title}\n{text_table(answer.heading(), rows)}"


def facts(answer: Any, states: States) -> dict[str, Any]:
    """The answer for a program.

    >>> answer = Distribution((Finite("x", ["a", "b"]),), np.array([0.25, 0.75]))
    >>> facts(answer, {"x": "b"})["probabilities"]
    [{'states': {'x': 'b'}, 'probability': 0.75}]
    """
    if isinstance(answer, Marginals):
        return {"marginals": {n: facts(answer[n], {}) for n in answer}}
    if isinstance(answer, MostProbable):
        probability = answer.probability if np.isfinite(answer.probability) else None  # JSON has no infinity
        word = "density" if answer.is_density else "probability"
        return {"most_probable": dict(answer), "log_prob": answer.log_prob, word: probability}
    if isinstance(answer, Distribution):
        size = answer.effective_sample_size
        drawn = {} if size is None else {"effective_sample_size": size}
        return {**_probabilities(answer, states), **drawn, "how": answer.how}
    finite = {} if answer.finite is None else _probabilities(answer.finite, {})
    return {**finite, **answer.to_dict(), "how": answer.how}


def _probabilities(answer: Distribution, states: States) -> dict[str, Any]:
    return {"states": {v.name: list(v.states) for v in answer.variables}, "probabilities": _records(answer, states)}


def _records(answer: Distribution, states: States) -> list[dict[str, Any]]:
    """One record per cell, of those that have the states."""
    numbers = {"probability": answer.probs}
    if answer.interval is not None:
        numbers |= {"lower": answer.interval.lower, "upper": answer.interval.upper}
    if answer.error is not None:
        numbers |= {"standard_error": answer.error}
    wanted = [[states[v.name]] if v.name in states else v.states for v in answer.variables]
    records = []
    for cell in product(*wanted):
        at = tuple(map(code_of, answer.variables, cell))
        values = {name: float(array[at]) for name, array in numbers.items()}
        records.append({"states": dict(zip(answer.names, cell, strict=True)), **values})
    return records
