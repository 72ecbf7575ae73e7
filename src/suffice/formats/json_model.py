"""Suffice's own JSON, which keeps everything: hybrid CPDs, the bound prior, the statistics behind the posterior, the schema.

    {"suffice": "bayes_net", "version": 1, "fit_info", "estimate",
     "variables": [{"name", "type": "finite" | "real" | "count", "states", "inferred", "cuts"}],
     "parents": {node: [parents in the order of the axes]},
     "cpds": {node: {"type": "table", "probs": [...]} | {"type": "gaussian", "intercept", "coefficients", "variance", "own"}
                    | {"type": "poisson", "rates": [...]} | a distribution | a regression},
     "prior": null | {"type", …}, "statistics": null | {"weight", "entries": [{"finite", "real", …}]},
     "shared": [[nodes with one parameter set], …] (left out where there are none),
     "covariance": {"charts": {node: {"free"} | {"known", "centre"}}, "blocks": [{"places", "values"}], "unidentified",
                    "posterior"} (of parameters learned from incomplete rows, if it was found; a block is a lower triangle)}

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

import dataclasses
import json
from collections.abc import Callable
from typing import Any

from suffice.errors import FormatError
from suffice.families.conjugate import Conjugate, ParameterPrior
from suffice.families.family import Mean, Mode
from suffice.families.hierarchical import Common, HierarchicalDirichlet, PartialPooling, Pool
from suffice.families.known_variance import KnownVariance
from suffice.families.logistic_normal import LogisticNormal
from suffice.families.priors import K2, BDeu, Dirichlet, Gamma, NormalInverseGamma, NormalWishart, Prior, PriorsByNode, Several
from suffice.formats.json_covariance import covariance_from_dict, covariance_to_dict
from suffice.formats.json_parts import (
    VERSION,
    array_of,
    cpd_from_dict,
    cpd_to_dict,
    flat,
    read_as,
    statistics_from_dict,
    statistics_to_dict,
    with_distributions,
)
from suffice.graphs import Dag
from suffice.models.bayes_net import BayesNet
from suffice.models.bde import BDe
from suffice.models.sharing import Tie, TiedPrior, alike, seen_together, shared_in
from suffice.statistics.file import variable_from_dict, variable_to_dict
from suffice.variables import by_name

OF_TABLES = (Dirichlet, K2, BDeu, HierarchicalDirichlet, LogisticNormal)
OF_NUMBERS = (NormalInverseGamma, NormalWishart, Gamma, KnownVariance, Conjugate, ParameterPrior)
PRIORS: dict[str, Any] = {c.__name__: c for c in (*OF_TABLES, *OF_NUMBERS)}
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
        "cpds": {n: cpd_to_dict(bn[n]) for n in bn},
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


def prior_to_dict(prior: Any) -> dict[str, Any]:
    """A prior as plain values."""
    if type(prior) in PARTS:
        name, write_parts, _ = PARTS[type(prior)]
        return {"type": name, **write_parts(prior)}
    if type(prior).__name__ not in PRIORS:
        raise FormatError(f"a prior of the type {type(prior).__name__} cannot be written to a file")
    return {"type": type(prior).__name__, **dataclasses.asdict(prior)}


def prior_from_dict(d: dict[str, Any]) -> Prior:
    """The prior that `prior_to_dict` wrote."""
    for name, _, read_parts in PARTS.values():
        if d["type"] == name:
            made: Prior = read_parts(d)
            return made
    prior: Prior = PRIORS[d["type"]](**{k: v for k, v in d.items() if k != "type"})
    return prior


def _tied(prior: TiedPrior) -> dict[str, Any]:
    families = [[list(family) for family in tie.families] for tie in prior.ties]
    return {"prior": prior_to_dict(prior.prior), "families": families, "own": [prior_to_dict(p) for p in prior.own]}


def _tied_of(d: dict[str, Any]) -> TiedPrior:
    ties = tuple(Tie(tuple(tuple(map(str, family)) for family in families)) for families in d["families"])
    return TiedPrior(prior_from_dict(d["prior"]), ties, tuple(prior_from_dict(p) for p in d["own"]))


def _partial_pooling(prior: PartialPooling) -> dict[str, Any]:
    common = {n: {"strength": c.strength, "mean": flat(c.mean), "shape": c.mean.shape} for n, c in prior.found.items()}
    return {
        "pools": [{"families": pool.families, "group": pool.group} for pool in prior.pools],
        "strength": prior.strength,
        "prior": None if prior.prior is None else prior_to_dict(prior.prior),
        "found": {n: {**common[n], "states": c.states} for n, c in prior.found.items()},
    }


def _partial_pooling_of(d: dict[str, Any]) -> PartialPooling:
    pools = tuple(Pool(tuple(tuple(map(str, family)) for family in p["families"]), p["group"]) for p in d["pools"])
    found = {
        n: Common(float(c["strength"]), array_of(c["mean"]).reshape(c["shape"]), tuple(map(str, c["states"])))
        for n, c in d["found"].items()
    }
    return PartialPooling(pools, d["strength"], None if d["prior"] is None else prior_from_dict(d["prior"]), found)


PARTS: dict[type, tuple[str, Callable[[Any], dict[str, Any]], Callable[[dict[str, Any]], Any]]] = {
    Several: (
        "Several",
        lambda prior: {"priors": [prior_to_dict(p) for p in prior.priors]},
        lambda d: Several(tuple(prior_from_dict(p) for p in d["priors"])),
    ),
    PriorsByNode: (
        "ByNode",
        lambda prior: {"priors": {n: prior_to_dict(p) for n, p in prior.priors.items()}},
        lambda d: PriorsByNode({n: prior_from_dict(p) for n, p in d["priors"].items()}),
    ),
    TiedPrior: ("Tied", _tied, _tied_of),
    PartialPooling: ("PartialPooling", _partial_pooling, _partial_pooling_of),
    BDe: (
        "BDe",
        lambda prior: {"network": _model(prior.network), "ess": prior.ess},
        lambda d: BDe(_network(d["network"]), d["ess"]),
    ),
}
"""Priors that hold other things than numbers: their name in a file, what is written of them, and how they are made of that."""
