"""Suffice's own JSON, which keeps everything: hybrid CPDs, the bound prior, the statistics behind the posterior, the schema.

    {"suffice": "bayes_net", "version": 1, "fit_info", "estimate",
     "variables": [{"name", "type": "finite" | "real" | "count", "states", "inferred", "cuts"}],
     "parents": {node: [parents in the order of the axes]},
     "cpds": {node: {"type": "table", "probs": [...]} | {"type": "gaussian", "intercept", "coefficients", "variance", "own"}
                    | {"type": "poisson", "rates": [...]} | a regression},
     "prior": null | {"type", …}, "statistics": null | {"weight", "entries": [{"finite", "real", …}]},
     "shared": [[nodes with one parameter set], …] (left out where there are none)}

Arrays are flat and row-major, child last; null stands for a number that does not exist (an unseen configuration of a Gaussian
or Poisson node). Moments of counts also hold "log_base", Σ ln x! of each count. "own" is the number of parameters of a Gaussian
that shares some with other classes or nodes (left out where there are none). Regressions:

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
from collections.abc import Sequence
from typing import Any

import numpy as np

from suffice.errors import FormatError, SufficeError, whole
from suffice.families import family_of
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian, SharedGaussian
from suffice.families.design import terms
from suffice.families.family import Cpd, Mean, Mode, split
from suffice.families.hierarchical import Common, HierarchicalDirichlet, PartialPooling, Pool
from suffice.families.logistic import Logistic
from suffice.families.logistic_normal import LogisticNormal
from suffice.families.ordinal import ProportionalOdds
from suffice.families.poisson import PoissonRates
from suffice.families.priors import K2, BDeu, Dirichlet, Gamma, NormalInverseGamma, NormalWishart, Prior, Several
from suffice.families.regression_cpd import Fitted, GlmCpd
from suffice.families.responses import BinomialLogit, GammaInverse, GammaLog, Linear, NegativeBinomialLog, PoissonLog, Probit
from suffice.graphs import Dag
from suffice.models.bayes_net import BayesNet
from suffice.models.bde import BDe
from suffice.models.sharing import Tie, TiedPrior, alike, seen_together, shared_in
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.configurations import checked_cells, sizes
from suffice.statistics.file import checked, variable_from_dict, variable_to_dict
from suffice.variables import Count, Finite, Real, Variable, by_name

VERSION = 1
PRIORS: dict[str, Any] = {
    c.__name__: c for c in (Dirichlet, K2, BDeu, NormalInverseGamma, NormalWishart, Gamma, HierarchicalDirichlet, LogisticNormal)
}
FAMILIES: dict[str, Any] = {
    c.__name__: c for c in (Linear, Probit, BinomialLogit, PoissonLog, NegativeBinomialLog, GammaLog, GammaInverse)
}
CPDS: dict[str, Any] = {"table": Table, "gaussian": ConditionalGaussian, "poisson": PoissonRates}
CHILDREN: dict[type, str] = {Finite: "table", Real: "gaussian", Count: "poisson"}
OF_STATES: dict[str, Any] = {"logistic": Logistic, "ordinal": ProportionalOdds}
TYPES = (*OF_STATES, "regression")


def write(bn: BayesNet) -> str:
    """The text of a network."""
    return json.dumps(_model(bn), ensure_ascii=False, allow_nan=False)


def read(text: str) -> BayesNet:
    """The network that `write` wrote."""
    try:
        d = json.loads(text)
        if not isinstance(d, dict) or d.get("suffice") != "bayes_net":
            raise FormatError("this JSON is not a network of Suffice")
        if d.get("version") != VERSION:
            raise FormatError(
                f"this network was written by another version of Suffice (format {d.get('version')!r}, known {VERSION})"
            )
        return _network(d)
    except SufficeError:
        raise
    except json.JSONDecodeError as error:
        raise FormatError(f"this is not JSON: {error.msg}", line=error.lineno) from None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, ArithmeticError) as error:
        raise FormatError(f"this network is incomplete or damaged ({type(error).__name__}: {error})") from None


def _model(bn: BayesNet) -> dict[str, Any]:
    return {
        "suffice": "bayes_net",
        "version": VERSION,
        "fit_info": bn.fit_info,
        "estimate": type(bn.estimate).__name__.lower(),
        "variables": [variable_to_dict(v) for v in bn.variables.values()],
        "parents": {n: list(bn.dag.parents(n)) for n in bn},
        "cpds": {n: _cpd(bn[n]) for n in bn},
        "prior": None if bn.prior is None else _prior(bn.prior),
        "statistics": None if bn.statistics is None else _statistics(bn.statistics),
        **({"incomplete": True, "hidden": sorted(bn.hidden)} if bn.incomplete else {}),
        **({"shared": [list(nodes) for nodes in bn.shared]} if bn.shared else {}),
    }


def _network(d: dict[str, Any]) -> BayesNet:
    variables = by_name([variable_from_dict(v) for v in d["variables"]])
    dag = Dag(d["parents"], nodes=list(variables))
    prior = None if d["prior"] is None else _prior_of(d["prior"])
    statistics = None if d["statistics"] is None else _statistics_of(d["statistics"], variables)
    dag, ties = shared_in(dag, d.get("shared", []))
    alike(ties, variables)
    seen = {} if statistics is None else seen_together(ties, statistics, variables)
    cpds = {n: _cpd_of(d["cpds"][n], n, dag, variables, prior, statistics, seen.get(n)) for n in variables}
    how = {"mean": Mean(), "mode": Mode()}[d["estimate"]]
    fitted: dict[str, Any] = {"statistics": statistics, "prior": prior, "estimate": how, "fit_info": str(d["fit_info"])}
    hidden = [name for name in d.get("hidden", []) if name in variables]
    return BayesNet.of(dag, variables, cpds, **fitted, incomplete=bool(d.get("incomplete")), hidden=hidden, ties=ties)


def _cpd(cpd: Any) -> dict[str, Any]:
    if cpd.is_regression:
        return _regression(cpd)
    own = {"own": cpd.own} if isinstance(cpd, SharedGaussian) else {}
    name = next(name for name, kind in CPDS.items() if isinstance(cpd, kind))
    return {"type": name, **{k: _flat(getattr(cpd, k)) for k in cpd.arrays}, **own}


def _cpd_of(
    d: dict[str, Any],
    name: str,
    dag: Dag,
    variables: dict[str, Variable],
    prior: Prior | None,
    statistics: Statistics | None,
    together: Any = None,
) -> Cpd:
    child, parents = variables[name], [variables[p] for p in dag.parents(name)]
    if d["type"] in TYPES:
        return _regression_of(d, child, parents)
    family = family_of(child, parents)
    own: Any = None if statistics is None else statistics.answer(family.needs(child, parents))
    seen = own if together is None else together
    imagined: Any = None if prior is None else prior.believe(child, parents)
    finite, reals = split(parents)
    if d["type"] != CHILDREN[type(child)]:
        raise FormatError(f"the CPD of {name!r} is {d['type']!r}, which does not fit {child!r}")
    states = (child,) if isinstance(child, Finite) else ()
    checked_cells((*finite, *states), f"the {'rates' if d['type'] == 'poisson' else 'table'} of {name!r}")
    last = {"probs": sizes(states), "coefficients": (len(reals),)}
    numbers = {k: _array(d[k]).reshape(sizes(finite) + last.get(k, ())) for k in CPDS[d["type"]].arrays}
    if "own" in d:
        return SharedGaussian(child, tuple(parents), **numbers, own=whole(d["own"], f"the number of parameters of {name!r}", 0))
    cpd: Cpd = CPDS[d["type"]](child, tuple(parents), **numbers, seen=seen, imagined=imagined)
    return cpd


def _regression(cpd: GlmCpd) -> dict[str, Any]:
    """A regression as plain values."""
    family, fitted = cpd.family, None if cpd.fitted is None else _fitted(cpd.fitted)
    rest = {"coefficients": _numbers(cpd.coefficients), "centre": _numbers(cpd.centre), "fitted": fitted}
    for name, kind in OF_STATES.items():
        if isinstance(family, kind):
            levels = {_levels(family): _numbers(cpd.theta[cpd.layout.levels])}
            return {"type": name, **levels, **rest, "ridge": family.ridge}
    if type(family).__name__ not in FAMILIES:
        raise FormatError(f"the regression {type(family).__name__} of {cpd.child.name!r} cannot be written to a file")
    named = {"family": type(family).__name__, "options": dataclasses.asdict(family)}
    own = {"intercept": float(cpd.theta[0]), "terms": list(cpd.terms), "dispersion": cpd.dispersion}
    return {"type": "regression", **named, **own, **rest}


def _regression_of(d: dict[str, Any], child: Variable, parents: Sequence[Variable]) -> GlmCpd:
    """What `_regression` made of a regression; older files have neither centre nor fit."""
    if d["type"] != "regression" and not isinstance(child, Finite):
        raise FormatError(f"the CPD of {child.name!r} is {d['type']!r}, which does not fit {child!r}")
    if d["type"] == "regression" and d["family"] not in FAMILIES:
        raise FormatError(f"the regression {d['family']!r} of {child.name!r} is not known")
    family = OF_STATES[d["type"]](float(d["ridge"])) if d["type"] in OF_STATES else FAMILIES[d["family"]](**d["options"])
    family.check_child(child)
    names = terms(family.regressors(parents))
    if tuple(d.get("terms", names)) != names:
        raise FormatError(f"the terms of {child.name!r} are {list(names)}, and the file has {d['terms']}")
    layout = family.layout(child, len(names))
    theta = layout.of_levels(_array(d[_levels(family)], finite=False).reshape(layout.levels.shape))
    theta[layout.slopes] = _array(d["coefficients"], finite=False).reshape(layout.slopes.shape)
    rest = {"centre": _array(d.get("centre", []), finite=False), "fitted": _fitted_of(d.get("fitted"), layout.size, child)}
    cpd: GlmCpd = family.cpd(child, tuple(parents), theta, d.get("dispersion", 1.0), **rest)
    return cpd


def _levels(family: Any) -> str:
    return "cut_points" if family.ordered else "intercept"


def _fitted(fitted: Fitted) -> dict[str, Any]:
    numbers = {f.name: getattr(fitted, f.name) for f in dataclasses.fields(fitted) if f.name != "covariance"}
    return {**{k: _number(x) for k, x in numbers.items()}, "covariance": _numbers(fitted.covariance)}


def _fitted_of(d: dict[str, Any] | None, size: int, child: Variable) -> Fitted | None:
    if d is None:
        return None
    covariance = _array(d["covariance"], finite=False)
    if covariance.size != size**2:
        raise FormatError(f"the covariance of {child.name!r} has {covariance.size} numbers, and needs {size**2}")
    numbers = {f.name: float(d[f.name]) for f in dataclasses.fields(Fitted) if f.name in d.keys() - {"covariance", "iterations"}}
    return Fitted(**numbers, covariance=covariance.reshape(size, size), iterations=int(d["iterations"]))


def _prior(prior: Any) -> dict[str, Any]:
    if isinstance(prior, Several):
        return {"type": "Several", "priors": [_prior(p) for p in prior.priors]}
    if isinstance(prior, TiedPrior):
        families = [[list(family) for family in tie.families] for tie in prior.ties]
        return {"type": "Tied", "prior": _prior(prior.prior), "families": families, "own": [_prior(p) for p in prior.own]}
    if isinstance(prior, PartialPooling):
        return _partial_pooling(prior)
    if isinstance(prior, BDe):
        return {"type": "BDe", "network": _model(prior.network), "ess": prior.ess}
    if type(prior).__name__ not in PRIORS:
        raise FormatError(f"a prior of the type {type(prior).__name__} cannot be written to a file")
    return {"type": type(prior).__name__, **dataclasses.asdict(prior)}


def _prior_of(d: dict[str, Any]) -> Prior:
    if d["type"] == "Several":
        return Several(tuple(_prior_of(p) for p in d["priors"]))
    if d["type"] == "Tied":
        ties = tuple(Tie(tuple(tuple(map(str, family)) for family in families)) for families in d["families"])
        return TiedPrior(_prior_of(d["prior"]), ties, tuple(_prior_of(p) for p in d["own"]))
    if d["type"] == "PartialPooling":
        return _partial_pooling_of(d)
    if d["type"] == "BDe":
        return BDe(_network(d["network"]), d["ess"])
    prior: Prior = PRIORS[d["type"]](**{k: v for k, v in d.items() if k != "type"})
    return prior


def _partial_pooling(prior: PartialPooling) -> dict[str, Any]:
    common = {n: {"strength": c.strength, "mean": _flat(c.mean), "shape": c.mean.shape} for n, c in prior.found.items()}
    return {
        "type": "PartialPooling",
        "pools": [{"families": pool.families, "group": pool.group} for pool in prior.pools],
        "strength": prior.strength,
        "prior": None if prior.prior is None else _prior(prior.prior),
        "found": {n: {**common[n], "states": c.states} for n, c in prior.found.items()},
    }


def _partial_pooling_of(d: dict[str, Any]) -> PartialPooling:
    pools = tuple(Pool(tuple(tuple(map(str, family)) for family in p["families"]), p["group"]) for p in d["pools"])
    found = {
        n: Common(float(c["strength"]), _array(c["mean"]).reshape(c["shape"]), tuple(map(str, c["states"])))
        for n, c in d["found"].items()
    }
    return PartialPooling(pools, d["strength"], None if d["prior"] is None else _prior_of(d["prior"]), found)


def _statistics(statistics: Statistics) -> dict[str, Any]:
    entries = []
    for e in statistics:
        d: dict[str, Any] = {"finite": list(e.names), "real": list(e.request.real)}
        if isinstance(e, Counts):
            d |= {"values": _flat(e.values), "keys": None if e.keys is None else e.keys.tolist()}
        else:
            parts = ("count", "mean", "rest", "scatter", *(("log_base",) if e.counted else ()))
            d |= {"keys": e.keys.tolist(), **{k: _flat(getattr(e, k)) for k in parts}}
        entries.append(d)
    return {"weight": statistics.weight, "entries": entries}


def _statistics_of(d: dict[str, Any], variables: dict[str, Variable]) -> Statistics:
    entries: list[Counts | Moments] = []
    for e in d["entries"]:
        finite = tuple(v for n in e["finite"] if isinstance(v := variables[n], Finite))
        k = len(e["real"])
        if k:
            n = len(e["keys"])
            mean, rest = (_array(e[part]).reshape(n, k) for part in ("mean", "rest"))
            scatter = _array(e["scatter"]).reshape(n, k, k)
            counted = tuple(r for r in e["real"] if isinstance(variables[r], Count))
            base = _array(e["log_base"]).reshape(n, len(counted)) if counted else np.zeros((n, 0))
            numbers = (e["keys"], _array(e["count"]), mean, scatter)
            entries.append(Moments(finite, tuple(e["real"]), *numbers, rest=rest, counted=counted, log_base=base))
        elif e["keys"] is None:
            entries.append(Counts(finite, _array(e["values"]).reshape(sizes(finite))))
        else:
            entries.append(Counts(finite, _array(e["values"]), e["keys"]))
    return checked(Statistics(entries, d["weight"]))


def _flat(array: Any) -> list[float | None]:
    flat = np.asarray(array, dtype=np.float64).reshape(-1)
    return [None if np.isnan(x) else x for x in flat.tolist()]


def _array(numbers: Any, *, finite: bool = True) -> Any:
    array = np.array([np.nan if x is None else float(x) for x in (numbers if isinstance(numbers, list) else [numbers])])
    if finite and np.isinf(array).any():
        raise FormatError("this network holds a number that is not finite")
    return array


def _numbers(array: Any) -> list[Any]:
    return [_number(x) for x in np.asarray(array, dtype=np.float64).reshape(-1).tolist()]


def _number(x: Any) -> Any:
    return x if np.isfinite(x) else str(float(x))
