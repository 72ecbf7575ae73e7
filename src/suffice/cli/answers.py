"""Answers of a network as the command line prints them: whole tables for a person, plain values for a program (JSON)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np

from suffice.display import text_table
from suffice.errors import ModelError
from suffice.models.answers import Distribution, Marginals, MostProbable, in_a_line
from suffice.models.bayes_net import BayesNet
from suffice.models.distribution_mixture import DistributionMixture
from suffice.models.evidence import code_of
from suffice.models.mixture import Mixture, PoissonMixture
from suffice.models.regression_mixture import RegressionMixture
from suffice.models.samples import Samples
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
    if isinstance(answer, PoissonMixture):
        components = [{"weight": w, "rate": r} for w, r in zip(answer.weights.tolist(), answer.rates.tolist(), strict=True)]
        moments = {"mean": {answer.name: answer.mean}, "sd": {answer.name: answer.sd}}
        return {**moments, "components": components, "how": answer.how}
    if isinstance(answer, DistributionMixture):
        moments = {"mean": {answer.name: answer.mean}, "sd": {answer.name: answer.sd}}
        return {**moments, "components": answer.components(), "how": answer.how}
    if isinstance(answer, RegressionMixture):
        components = [dict(zip(("weight", "mean", "variance"), row, strict=True)) for row in answer.components()]
        ends = {q: {answer.name: answer.quantile(float(q))} for q in ("0.025", "0.5", "0.975")}
        moments = {"mean": {answer.name: answer.mean}, "sd": {answer.name: answer.sd}}
        return {**moments, "quantiles": ends, "components": components, "how": answer.how}
    finite = {} if answer.finite is None else _probabilities(answer.finite, {})
    moments = {"mean": _by_name(answer, answer.mean), "sd": _by_name(answer, answer.sd)}
    return {**finite, **moments, **(_drawn(answer) if isinstance(answer, Samples) else _mixed(answer)), "how": answer.how}


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


def _mixed(answer: Mixture) -> dict[str, Any]:
    """Of a mixture: its components, and the interval of the mean if there is one."""
    components = []
    for i, (weight, mean, covariance) in enumerate(zip(answer.weights, answer.means, answer.covariances, strict=True)):
        known = {} if answer.finite is None else {"states": dict(zip(answer.finite.names, answer.states[i], strict=True))}
        moments = {"mean": _by_name(answer, mean), "covariance": covariance.tolist()}
        components.append({"weight": float(weight), **known, **moments})
    ends = answer.mean_interval
    interval = {} if ends is None else {"lower": _by_name(answer, ends.lower), "upper": _by_name(answer, ends.upper)}
    return {**interval, "components": components}


def _drawn(answer: Samples) -> dict[str, Any]:
    """Of draws: how sure the means are, and quantiles."""
    return {
        "standard_error": _by_name(answer, answer.error),
        "quantiles": {q: _by_name(answer, answer.quantile(float(q))) for q in ("0.025", "0.5", "0.975")},
        "effective_sample_size": answer.effective_sample_size,
    }


def _by_name(answer: Mixture | Samples, numbers: Any) -> dict[str, float]:
    return dict(zip(answer.names, np.atleast_1d(numbers).tolist(), strict=True))
