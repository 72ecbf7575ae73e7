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
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np

import suffice.formats.repository_json as repository_json
from suffice.basis.registry import find_type, not_known
from suffice.basis.variables import Count, Finite, Variable, by_name, variable_from_dict, variable_to_dict
from suffice.errors import FormatError, SufficeError
from suffice.families import family_of
from suffice.families.priors.priors import Prior
from suffice.families.protocol.family import Cpd, Mean, Mode, prior_of
from suffice.families.regression_charts import chart_of
from suffice.formats.grammar.network_format import Format
from suffice.graphs import Dag
from suffice.models.networks import BayesNet
from suffice.models.parts.parameter_covariance import ParameterCovariance
from suffice.models.parts.sharing import seen_together, shared_in, variables_of_one_shape
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.counts import array_of, flat, sizes
from suffice.statistics.file import checked_parts, derived_from_dict, derived_to_dict
from suffice.statistics.suppression import Suppression

VERSION = 1


def cpd_from_dict(
    d: dict[str, Any],
    child: Variable,
    parents: Sequence[Variable],
    prior: Prior | None,
    statistics: Statistics | None,
    together: Any = None,
) -> Cpd:
    """The distribution that `Cpd.to_dict` wrote; `together` is what was seen of it where parameters are shared."""
    kind = find_type("cpds", d["type"])
    if kind is None:
        raise not_known(f"the CPD {d['type']!r} of {child.name!r}")
    if not isinstance(child, kind.children):
        raise FormatError(f"the CPD of {child.name!r} is {d['type']!r}, which does not fit {child!r}")
    if kind.is_regression:
        regression: Cpd = kind.from_dict(d, child, parents, None, None)
        return regression
    own: Any = None if statistics is None else statistics.answer(family_of(child, parents).needs(child, parents))
    imagined: Any = None if prior is None else prior.imagine(child, parents)
    cpd: Cpd = kind.from_dict(d, child, parents, own if together is None else together, imagined)
    return cpd


def statistics_to_dict(statistics: Statistics) -> dict[str, Any]:
    """Statistics as plain values."""
    entries = []
    for e in statistics:
        d: dict[str, Any] = {"finite": list(e.names), "real": list(e.request.real)}
        if isinstance(e, Counts):
            d |= {"values": flat(e.values), "keys": None if e.keys is None else e.keys.tolist()}
        else:
            parts = {k: flat(getattr(e, k)) for k in ("count", "mean", "rest", "scatter")}
            d |= {"keys": e.keys.tolist(), **parts}
            d |= {**derived_to_dict(e.derived), "log_base": flat(e.sums)} if e.derived else {}
        entries.append(d)
    suppression = statistics.suppression
    said = {} if suppression is None else {"suppression": suppression.to_dict(statistics)}
    return {"weight": statistics.weight, "entries": entries, **said}


def statistics_from_dict(d: dict[str, Any], variables: Mapping[str, Variable]) -> Statistics:
    """The statistics that `statistics_to_dict` wrote."""
    entries: list[Counts | Moments] = []
    for e in d["entries"]:
        finite = tuple(v for n in e["finite"] if isinstance(v := variables[n], Finite))
        k = len(e["real"])
        if k:
            n = len(e["keys"])
            mean, rest = (array_of(e[part]).reshape(n, k) for part in ("mean", "rest"))
            scatter = array_of(e["scatter"]).reshape(n, k, k)
            counts = [r for r in e["real"] if isinstance(variables[r], Count)] if "log_base" in e else []
            derived = derived_from_dict(e, counts)
            base = array_of(e["log_base"]).reshape(n, len(derived)) if derived else np.zeros((n, 0))
            parts = (e["keys"], array_of(e["count"]), mean, scatter)
            entries.append(Moments(finite, tuple(e["real"]), *parts, rest=rest, derived=derived, sums=base))
        elif e["keys"] is None:
            entries.append(Counts(finite, array_of(e["values"]).reshape(sizes(finite))))
        else:
            entries.append(Counts(finite, array_of(e["values"]), e["keys"]))
    suppression = Suppression.from_dict(d.get("suppression", {}), entries)
    return Statistics(*checked_parts(entries, float(d["weight"]), variables.values(), suppression))


def covariance_to_dict(bn: BayesNet) -> dict[str, Any]:
    """The covariance of a network's parameters under its name, if it was found."""
    known = bn.found_covariance
    if known is None:
        return {}
    charts = {n: {part: flat(numbers) for part, numbers in chart.parts.items()} for n, chart in known.charts.items()}
    pairs = zip(known.places, known.blocks, strict=True)
    blocks = [{"places": own.tolist(), "values": flat(block[np.tril_indices(len(own))])} for own, block in pairs]
    facts: dict[str, Any] = {"unidentified": sorted(known.unidentified), "posterior": known.posterior}
    facts |= {"copies": dict(known.copies)} if known.copies else {}
    return {"covariance": {"charts": charts, "blocks": blocks, **facts}}


def covariance_from_dict(d: dict[str, Any] | None, cpds: Mapping[str, Cpd]) -> ParameterCovariance | None:
    """What `covariance_to_dict` wrote; None where there is nothing."""
    if d is None:
        return None
    parts = {n: {part: array_of(numbers) for part, numbers in own.items()} for n, own in d["charts"].items()}
    charts = {n: chart_of(cpds[n]).around(cpds[n], **own) for n, own in parts.items()}
    places = tuple(np.array([int(i) for i in block["places"]], np.int64) for block in d["blocks"])
    blocks = tuple(_block(array_of(block["values"]), len(own)) for block, own in zip(d["blocks"], places, strict=True))
    every = np.sort(np.concatenate([np.zeros(0, np.int64), *places]))
    copies = {str(n): str(first) for n, first in d.get("copies", {}).items()}
    if not copies.keys() | set(copies.values()) <= charts.keys() or copies.keys() & set(copies.values()):
        raise FormatError(f"the covariance has copies, {copies}, which do not lead to nodes that have coordinates of their own")
    if not np.array_equal(every, np.arange(sum(chart.size for n, chart in charts.items() if n not in copies))):
        raise FormatError("the blocks of the covariance do not speak of every parameter once")
    return ParameterCovariance(charts, places, blocks, frozenset(map(str, d["unidentified"])), bool(d["posterior"]), copies)


def _block(values: Any, n: int) -> Any:
    """The symmetric matrix of a lower triangle."""
    if len(values) != n * (n + 1) // 2 or np.isnan(values).any():
        raise FormatError(f"a block of the covariance of {n} parameters has {n * (n + 1) // 2} numbers, not {len(values)}")
    matrix = np.zeros((n, n))
    matrix[np.tril_indices(n)] = values
    return matrix + np.tril(matrix, -1).T


ESTIMATES = {"mean": Mean(), "mode": Mode()}


def write(model: Any) -> str:
    """The text of a model of any kind."""
    _, content_of, _ = import_module(f"suffice.formats.json.{MODULES[model.file_kind]}").KNOWN[model.file_kind]
    d = {"suffice": model.file_kind, "version": VERSION, **content_of(model)}
    return json.dumps(d, ensure_ascii=False, allow_nan=False)


def read(text: str, d: dict[str, Any]) -> Any:
    """The model that `write` wrote as this text, the values of which are `d`; a kind that is not known is refused as that of
    networks."""
    kind = said if (said := str(d["suffice"])) in MODULES else "bayes_net"
    what, _, make = import_module(f"suffice.formats.json.{MODULES[kind]}").KNOWN[kind]
    try:
        if "\\ud" in text.lower():  # half a character, which an escape can write and nothing else can hold
            try:
                json.dumps(d, ensure_ascii=False).encode()
            except UnicodeEncodeError:
                raise FormatError("this file holds text that is not Unicode: half of a surrogate pair") from None
        if d["suffice"] != kind:
            raise FormatError(f"this JSON is not a {what} of Suffice")
        if d.get("version") != VERSION:
            raise FormatError(
                f"this {what} was written by another version of Suffice (format {d.get('version')!r}, known {VERSION})"
            )
        with np.errstate(all="ignore"):  # numbers that are too large are refused, without a warning before
            return make(d)
    except SufficeError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, ArithmeticError) as error:
        raise FormatError(f"this {what} is incomplete or damaged ({type(error).__name__}: {error})") from None


def content(bn: BayesNet) -> dict[str, Any]:
    """What is written of a network."""
    prior, statistics = bn.prior, bn.statistics
    return {
        "fit_info": bn.fit_info,
        "estimate": type(bn.estimate).__name__.lower(),
        "variables": [variable_to_dict(v) for v in bn.variables.values()],
        "parents": {n: list(bn.dag.parents(n)) for n in bn.variables},
        "cpds": {n: bn[n].to_dict() for n in bn.variables},
        "prior": None if prior is None else prior_to_dict(prior),
        "statistics": None if statistics is None else statistics_to_dict(statistics),
        **({"incomplete": True, "hidden": sorted(bn.hidden), **covariance_to_dict(bn)} if bn.incomplete else {}),
        **({"shared": [list(nodes) for nodes in bn.shared]} if bn.shared else {}),
    }


def _network(d: dict[str, Any]) -> BayesNet:
    variables = by_name([variable_from_dict(v) for v in d["variables"]])
    kinds = {n: find_type("cpds", cpd["type"]) for n, cpd in d["cpds"].items()}
    variables |= {n: kinds[n].variable_of(d["cpds"][n], v) for n, v in variables.items() if kinds.get(n) is not None}
    dag = Dag(d["parents"], nodes=list(variables))
    prior = None if d["prior"] is None else prior_from_dict(d["prior"])
    statistics = None if d["statistics"] is None else statistics_from_dict(d["statistics"], variables)
    dag, ties = shared_in(dag, d.get("shared", []))
    variables_of_one_shape(ties, variables)
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
    titled = {"suffice": BayesNet.file_kind, "version": VERSION}
    d: dict[str, Any] = _change_values(prior.to_dict(), lambda x: {**titled, **content(x)} if isinstance(x, BayesNet) else x)
    return d


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


KNOWN = {"bayes_net": ("network", content, _network)}
MODULES = {"bayes_net": "model", **dict.fromkeys(("chain", "crf"), "chains")}
MODULES |= dict.fromkeys(("markov_net", "gaussian_markov_net", "rbm"), "undirected")
"""The module that knows each kind of model (`KNOWN`): what errors call it, what is written of it, and what makes it of that."""


class Json(Format):
    """Suffice's own JSON, which has room for everything."""

    word = "json"

    def read(self, text: str) -> tuple[Any, tuple[str, ...]]:
        content = repository_json.parse_object(text)
        if "suffice" in content:
            return read(text, content), ()
        if "nodes" in content and "cpds" in content:
            return repository_json.read(content)
        raise FormatError("the JSON holds no network: it has neither the key 'suffice' nor 'nodes' and 'cpds'")

    def write(self, model: Any) -> str:
        return write(model)
