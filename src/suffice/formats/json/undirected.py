"""Markov networks in Suffice's own JSON, which keeps all of them.

    {"suffice": "markov_net", "version": 1, "fit_info", "variables": [as in a network],
     "factors": [{"names": [axes], "log": [ln φ, row by row]}], "log_normaliser", "weights": null | [...], "log_evidence",
     "model": null | {"type": "LogLinear", "generators"} | {"type": "Pairwise" | "Ising", "nodes", "edges"}
                   | {"type": "Features", "variables": [names], "tables": [{"name", "names", "values"}]},
     "objective": null | {"type", …}, "penalty": [{"type": "L1" | "L2", "strength"}], "prior", "statistics": as in a network}

    {"suffice": "gaussian_markov_net", "version": 1, "fit_info", "variables", "edges", "precision", "covariance", "mean",
     "penalty", "statistics"}

Numbers that are not finite are text: "-inf".

Restricted Boltzmann machines in Suffice's own JSON, which keeps all of them.

    {"suffice": "rbm", "version": 1, "fit_info", "variables": [as in a network],
     "weights": [visible units × hidden units], "visible_biases", "hidden_biases", "centre", "scale": [of the real columns],
     "base": null | [visible biases of independent columns]}

Visible units are in the order of `suffice.models.undirected.visible`: bits, groups of states, numbers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from suffice import objectives
from suffice.basis.registry import find_type, not_known, type_of
from suffice.basis.variables import Finite, by_name, variable_from_dict, variable_to_dict
from suffice.errors import FormatError
from suffice.formats.json.model import prior_from_dict, prior_to_dict, statistics_from_dict, statistics_to_dict
from suffice.graphs import Graph
from suffice.models.gaussian_markov_net import GaussianMarkovNet
from suffice.models.networks import MarkovNet
from suffice.models.rbm import RBM
from suffice.models.undirected.factor import Factor
from suffice.models.undirected.features import Features
from suffice.models.undirected.log_linear import Ising, LogLinear, Pairwise
from suffice.statistics.counts import array_of, checked_cells, flat, sizes

PENALTIES: dict[str, Any] = {"L1": objectives.L1, "L2": objectives.L2}
GRAPHS: dict[str, Any] = {"Pairwise": Pairwise, "Ising": Ising}
ARRAYS = ("weights", "visible_biases", "hidden_biases", "centre", "scale")


def _finite(net: MarkovNet) -> dict[str, Any]:
    goal: Any = net.objective
    return {
        "fit_info": net.fit_info,
        "variables": [variable_to_dict(v) for v in net.variables.values()],
        "statistics": None if net.statistics is None else statistics_to_dict(net.statistics),
        "factors": [{"names": list(f.names), "log": flat(f.log, in_text=True)} for f in net.factors],
        "log_normaliser": net._log_normaliser,
        "weights": None if net._weights is None else flat(net._weights),
        "log_evidence": net._log_evidence,
        "model": None if net._model is None else _model(net._model),
        "objective": None if goal is None else {"type": type_of(goal), **dataclasses.asdict(goal)},
        "penalty": _penalties(net.penalty),
        "prior": None if net.prior is None else prior_to_dict(net.prior),
    }


def _finite_of(d: dict[str, Any]) -> MarkovNet:
    variables = by_name([variable_from_dict(v) for v in d["variables"]])
    finite = {n: v for n, v in variables.items() if isinstance(v, Finite)}
    if len(finite) < len(variables):
        raise FormatError("a Markov network with factors is of finite variables")
    factors = []
    for f in d["factors"]:
        own = tuple(finite[n] for n in f["names"])
        checked_cells(own, "a factor")
        factors.append(Factor(own, array_of(f["log"], finite=False).reshape(sizes(own))))
    statistics = None if d["statistics"] is None else statistics_from_dict(d["statistics"], variables)
    weights = None if d["weights"] is None else array_of(d["weights"])
    known: dict[str, Any] = {"statistics": statistics, "weights": weights, "fit_info": str(d["fit_info"])}
    known["model"] = None if d["model"] is None else _model_of(d["model"], finite)
    known["objective"] = None
    if (goal := d["objective"]) is not None:
        if (kind := find_type("objectives", goal["type"])) is None:
            raise not_known(f"an objective of the type {goal['type']!r}")
        known["objective"] = kind(**{k: v for k, v in goal.items() if k != "type"})
    known["penalty"] = _penalties_of(d["penalty"])
    known["prior"] = None if d["prior"] is None else prior_from_dict(d["prior"])
    for name in ("log_normaliser", "log_evidence"):
        known[name] = None if d[name] is None else float(d[name])
        if known[name] is not None and not np.isfinite(known[name]):
            raise FormatError(f"the number {name!r} of this file is not finite")
    return MarkovNet.of(finite, factors, **known)


def _model(model: Any) -> dict[str, Any]:
    if isinstance(model, Features):
        tables = [{"name": n, "names": list(scope), "values": flat(table)} for n, (scope, table) in model.tables.items()]
        return {"type": "Features", "variables": list(model.variables), "tables": tables}
    if isinstance(model, Pairwise):
        return {"type": type(model).__name__, "nodes": list(model.graph.nodes), "edges": [list(e) for e in model.graph.edges]}
    return {"type": "LogLinear", "generators": [list(g) for g in model.generators]}


def _model_of(d: dict[str, Any], variables: Mapping[str, Finite]) -> Any:
    """The model by its interactions, which are of variables that there are."""
    if d["type"] == "Features":
        own = {str(n): variables[n] for n in d["variables"]}
        tables = {}
        for t in d["tables"]:
            shape = sizes([own[n] for n in t["names"]])
            tables[str(t["name"])] = tuple(map(str, t["names"])), array_of(t["values"]).reshape(shape)
        model: Any = Features.of(tables, own)
    elif d["type"] in GRAPHS:
        model = GRAPHS[d["type"]](Graph([tuple(e) for e in d["edges"]], nodes=d["nodes"]))
    elif d["type"] == "LogLinear":
        model = LogLinear([tuple(g) for g in d["generators"]])
    else:
        raise FormatError(f"an undirected model of the type {d['type']!r} is not known")
    names = model.variables if isinstance(model, Features) else model.graph.nodes
    if strange := sorted(set(names) - set(variables)):
        raise FormatError(f"the model has the variable {strange[0]!r}, and the network has none of this name")
    return model


def _penalties(penalty: Any) -> list[dict[str, Any]]:
    result = []
    for part in objectives.principles.as_penalties(penalty).parts:
        s = part.strength
        strength = [[*key, value] for key, value in s.items()] if isinstance(s, Mapping) else s
        result.append({"type": type(part).__name__, "by_name": isinstance(s, Mapping), "strength": strength})
    return result


def _penalties_of(parts: list[dict[str, Any]]) -> Any:
    result = objectives.PenaltySum()
    for d in parts:
        strength = {tuple(key): value for *key, value in d["strength"]} if d["by_name"] else d["strength"]
        result = result + PENALTIES[d["type"]](strength)
    return result or None


def _gaussian(net: GaussianMarkovNet) -> dict[str, Any]:
    return {
        "fit_info": net.fit_info,
        "variables": [variable_to_dict(v) for v in net.variables.values()],
        "statistics": None if net.statistics is None else statistics_to_dict(net.statistics),
        "edges": [list(e) for e in net.graph.edges],
        "precision": flat(net.precision),
        "covariance": flat(net.covariance),
        "mean": flat(net.mean),
        "penalty": None if net.penalty is None else np.asarray(net.penalty, dtype=np.float64).tolist(),
    }


def _gaussian_of(d: dict[str, Any]) -> GaussianMarkovNet:
    variables = by_name([variable_from_dict(v) for v in d["variables"]])
    graph = Graph([tuple(e) for e in d["edges"]], nodes=list(variables))
    n = len(graph)
    precision, covariance = (array_of(d[k]).reshape(n, n) for k in ("precision", "covariance"))
    written = GaussianMarkovNet(graph, precision, array_of(d["mean"]))  # which checks what it is given
    if not np.abs(precision @ covariance - np.eye(n)).max() <= 1e-6:
        raise FormatError("the covariance in this file is not the inverse of its precision")
    statistics = None if d["statistics"] is None else statistics_from_dict(d["statistics"], variables)
    penalty = None if d["penalty"] is None else np.asarray(d["penalty"], dtype=np.float64)  # of all pairs, or of each
    if penalty is not None and (penalty.shape not in ((), (n, n)) or not np.isfinite(penalty).all()):
        raise FormatError(f"the penalty in this file is neither a number nor one for each pair of {n} variables")
    known: dict[str, Any] = {"statistics": statistics, "fit_info": str(d["fit_info"])}
    known["penalty"] = float(penalty) if penalty is not None and penalty.ndim == 0 else penalty
    return GaussianMarkovNet.of(graph, precision, covariance, written.mean, **known)


def _machine_content(machine: RBM) -> dict[str, Any]:
    """What is written of a machine."""
    variables = [variable_to_dict(v) for v in machine.variables.values()]
    arrays = {name: flat(getattr(machine, name)) for name in ARRAYS}
    base = None if machine.base is None else flat(machine.base)
    return {"fit_info": machine.fit_info, "variables": variables, **arrays, "base": base}


def _machine(d: dict[str, Any]) -> RBM:
    weights, visible, hidden, centre, scale = (array_of(d[name]) for name in ARRAYS)
    variables = by_name([variable_from_dict(v) for v in d["variables"]])
    shaped = weights.reshape(len(visible), len(hidden))
    base = None if d["base"] is None else array_of(d["base"])
    return RBM(variables, shaped, visible, hidden, centre=centre, scale=scale, base=base, fit_info=str(d["fit_info"]))


KNOWN = {
    "markov_net": ("Markov network", _finite, _finite_of),
    "gaussian_markov_net": ("Markov network", _gaussian, _gaussian_of),
    "rbm": ("machine", _machine_content, _machine),
}
