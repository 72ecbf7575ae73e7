"""Suffice's own JSON, which keeps everything: hybrid CPDs, the bound prior, the statistics behind the posterior, the schema.

    {"suffice": "bayes_net", "version": 1, "fit_info", "estimate",
     "variables": [{"name", "type": "finite" | "real" | "count", "states", "inferred", "cuts"}],
     "parents": {node: [parents in the order of the axes]},
     "cpds": {node: {"type": "table", "probs": [...]} | {"type": "gaussian", "intercept", "coefficients", "variance", "own"}
                    | {"type": "poisson", "rates": [...]} | a distribution | a regression},
     "prior": null | {"type", …}, "statistics": null | {"weight", "entries": [{"finite", "real", …}]},
     "shared": [[nodes with one parameter set], …] (left out where there are none),
     "covariance": {"charts": {node: {"free"} | {"known", "centre"} | {"free", "centre"}}, "blocks": [{"places", "values"}],
                    "unidentified", "posterior", "copies": {node: the one whose parameters it has}} (of parameters learned from
                    incomplete rows, if it was found; a block is a lower triangle)}

Arrays are flat and row-major, child last; null stands for a number that does not exist (an unseen configuration of a Gaussian
or Poisson node). Moments also hold "log_base", the sums of "derived" columns, [[column, formula, n], …]; without these, of files
before 0.2, they are Σ ln x! of each count. "own" is the number of parameters of a Gaussian
that shares some with other classes or nodes (left out where there are none). Distributions that were chosen, and regressions:

    {"type": "distribution", "family": "gamma", "constants": {}, "parameters": [those of each configuration, …]}

    {"type": "logistic", "intercept": [a number per state but the first], "coefficients": [… × terms], "ridge", "centre",
     "fitted"}
    {"type": "ordinal", "cut_points": [a number per state but the last], "coefficients": […], "ridge", "centre", "fitted"}
    {"type": "regression", "family": "PoissonLog", "options": {"ridge", "offset", "trials"}, "intercept", "terms": [names],
     "coefficients": [a number per term], "dispersion", "centre", "fitted"}

`centre` only keeps digits. `fitted` is null, or what the fit left behind: its numbers, and the covariance of the parameters row
by row, from which the standard errors come. Numbers of regressions that are not finite are text: "nan", "inf", "-inf".
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from suffice.families.priors.prior import prior_of
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Mean, Mode
from suffice.formats.json.covariance import covariance_from_dict, covariance_to_dict
from suffice.formats.json.parts import (
    VERSION,
    cpd_from_dict,
    read_as,
    statistics_from_dict,
    statistics_to_dict,
    with_distributions,
)
from suffice.graphs import Dag
from suffice.models.networks import BayesNet
from suffice.models.parts.sharing import alike, seen_together, shared_in
from suffice.statistics.file import variable_from_dict, variable_to_dict
from suffice.variables import by_name

ESTIMATES = {"mean": Mean(), "mode": Mode()}


def write(bn: BayesNet) -> str:
    """The text of a network."""
    return json.dumps(_model(bn), ensure_ascii=False, allow_nan=False)


def read(text: str) -> BayesNet:
    """The network that `write` wrote."""
    return read_as(text, "bayes_net", "network", _network)


def _model(bn: BayesNet) -> dict[str, Any]:
    return {
        "suffice": "bayes_net",
        "version": VERSION,
        "fit_info": bn.fit_info,
        "estimate": type(bn.estimate).__name__.lower(),
        "variables": [variable_to_dict(v) for v in bn.variables.values()],
        "parents": {n: list(bn.dag.parents(n)) for n in bn},
        "cpds": {n: bn[n].to_dict() for n in bn},
        "prior": None if bn.prior is None else prior_to_dict(bn.prior),
        "statistics": None if bn.statistics is None else statistics_to_dict(bn.statistics),
        **({"incomplete": True, "hidden": sorted(bn.hidden)} if bn.incomplete else {}),
        **({} if bn.incomplete is False else covariance_to_dict(bn)),
        **({"shared": [list(nodes) for nodes in bn.shared]} if bn.shared else {}),
    }


def _network(d: dict[str, Any]) -> BayesNet:
    variables = with_distributions(by_name([variable_from_dict(v) for v in d["variables"]]), d["cpds"])
    dag = Dag(d["parents"], nodes=list(variables))
    prior = None if d["prior"] is None else prior_from_dict(d["prior"])
    statistics = None if d["statistics"] is None else statistics_from_dict(d["statistics"], variables)
    dag, ties = shared_in(dag, d.get("shared", []))
    alike(ties, variables)
    seen = {} if statistics is None else seen_together(ties, statistics, variables)
    parents = {n: [variables[p] for p in dag.parents(n)] for n in variables}
    cpds = {n: cpd_from_dict(d["cpds"][n], v, parents[n], prior, statistics, seen.get(n)) for n, v in variables.items()}
    how = ESTIMATES[d["estimate"]]
    fitted: dict[str, Any] = {"statistics": statistics, "prior": prior, "estimate": how, "fit_info": str(d["fit_info"])}
    hidden = [name for name in d.get("hidden", []) if name in variables]
    fitted |= {"incomplete": bool(d.get("incomplete")), "hidden": hidden, "ties": ties}
    return BayesNet.of(dag, variables, cpds, **fitted, covariance=covariance_from_dict(d.get("covariance"), cpds))


def prior_to_dict(prior: Prior) -> dict[str, Any]:
    """A prior as plain values; a network in it is written as networks are."""
    return _change_values(prior.to_dict(), lambda x: _model(x) if isinstance(x, BayesNet) else x)  # type: ignore[no-any-return]


def prior_from_dict(d: dict[str, Any]) -> Prior:
    """The prior that `prior_to_dict` wrote."""
    return prior_of(_change_values(d, lambda x: _network(x) if isinstance(x, dict) and x.get("suffice") == "bayes_net" else x))


def _change_values(values: Any, change: Callable[[Any], Any]) -> Any:
    """Plain values, of which some are changed; what is changed is not looked into."""
    if (new := change(values)) is not values:
        return new
    if isinstance(values, dict):
        return {k: _change_values(v, change) for k, v in values.items()}
    return [_change_values(v, change) for v in values] if isinstance(values, (list, tuple)) else values
