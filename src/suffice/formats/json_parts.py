"""What networks and chains have in common in Suffice's own JSON: distributions, statistics, arrays of numbers.

`json_model` says how they are written.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

from suffice.errors import FormatError, SufficeError, whole
from suffice.families import family_of
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import ConditionalGaussian, SharedGaussian
from suffice.families.design import terms
from suffice.families.exponential_cpd import ExponentialCpd
from suffice.families.exponential_node import ExponentialNode
from suffice.families.family import Cpd, split
from suffice.families.logistic import Logistic
from suffice.families.node_kinds import KINDS, distribution_of
from suffice.families.ordinal import ProportionalOdds
from suffice.families.poisson import PoissonRates
from suffice.families.priors import Prior
from suffice.families.regression_cpd import Fitted, GlmCpd
from suffice.families.responses import BinomialLogit, GammaInverse, GammaLog, Linear, NegativeBinomialLog, PoissonLog, Probit
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.configurations import checked_cells, sizes
from suffice.statistics.file import checked, derived_from_dict, derived_to_dict
from suffice.statistics.suppression import Suppression
from suffice.variables import Count, Distributed, Finite, Real, Variable

VERSION = 1
FAMILIES: dict[str, Any] = {
    c.__name__: c for c in (Linear, Probit, BinomialLogit, PoissonLog, NegativeBinomialLog, GammaLog, GammaInverse)
}
CPDS: dict[str, Any] = {"table": Table, "gaussian": ConditionalGaussian, "poisson": PoissonRates}
CHILDREN: dict[type, str] = {Finite: "table", Real: "gaussian", Count: "poisson"}
OF_STATES: dict[str, Any] = {"logistic": Logistic, "ordinal": ProportionalOdds}
TYPES = (*OF_STATES, "regression")
T = TypeVar("T")


def read_as(text: str, kind: str, what: str, make: Callable[[dict[str, Any]], T]) -> T:
    """What is made of a JSON text of this kind; `what` is what an error calls it.

    >>> read_as('{"suffice": "coin", "version": 1, "side": "head"}', "coin", "coin", lambda d: d["side"])
    'head'
    """
    try:
        d = json.loads(text)
        unicode_only(text, d)
        if not isinstance(d, dict) or d.get("suffice") != kind:
            raise FormatError(f"this JSON is not a {what} of Suffice")
        if d.get("version") != VERSION:
            raise FormatError(
                f"this {what} was written by another version of Suffice (format {d.get('version')!r}, known {VERSION})"
            )
        with np.errstate(all="ignore"):  # numbers that are too large are refused, without a warning before
            return make(d)
    except SufficeError:
        raise
    except json.JSONDecodeError as error:
        raise FormatError(f"this is not JSON: {error.msg}", line=error.lineno) from None
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError, ArithmeticError) as error:
        raise FormatError(f"this {what} is incomplete or damaged ({type(error).__name__}: {error})") from None


def unicode_only(text: str, content: object) -> None:
    r"""Refuse JSON with half a character in it, which an escape can write and nothing else can hold.

    >>> unicode_only('"\\ud83d\\ude00"', "\U0001f600")
    """
    if "\\ud" in text.lower():
        try:
            json.dumps(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise FormatError("this file holds text that is not Unicode: half of a surrogate pair") from None


def cpd_to_dict(cpd: Any) -> dict[str, Any]:
    """A distribution as plain values."""
    if cpd.is_regression:
        return _regression(cpd)
    if isinstance(cpd, ExponentialCpd):
        return {"type": "distribution", **family_to_dict(cpd.family), "parameters": flat(cpd.parameters)}
    own = {"own": cpd.own} if isinstance(cpd, SharedGaussian) else {}
    name = next(name for name, kind in CPDS.items() if isinstance(cpd, kind))
    return {"type": name, **{k: flat(getattr(cpd, k)) for k in cpd.arrays}, **own}


def cpd_from_dict(
    d: dict[str, Any],
    child: Variable,
    parents: Sequence[Variable],
    prior: Prior | None,
    statistics: Statistics | None,
    together: Any = None,
) -> Cpd:
    """The distribution that `cpd_to_dict` wrote; `together` is what was seen of it where parameters are shared."""
    name = child.name
    if d["type"] in TYPES:
        return _regression_of(d, child, parents)
    if d["type"] == "distribution" and not isinstance(child, Distributed):
        raise FormatError(f"the CPD of {name!r} is {d['type']!r}, which does not fit {child!r}")
    family = family_of(child, parents)
    own: Any = None if statistics is None else statistics.answer(family.needs(child, parents))
    seen = own if together is None else together
    imagined: Any = None if prior is None else prior.believe(child, parents)
    finite, reals = split(parents)
    if isinstance(child, Distributed):
        checked_cells(finite, f"the parameters of {name!r}")
        parameters = array_of(d["parameters"]).reshape(*sizes(finite), len(child.family.names))
        return ExponentialCpd(child, finite, parameters, seen, imagined)
    if d["type"] != CHILDREN[type(child)]:
        raise FormatError(f"the CPD of {name!r} is {d['type']!r}, which does not fit {child!r}")
    states = (child,) if isinstance(child, Finite) else ()
    checked_cells((*finite, *states), f"the {'rates' if d['type'] == 'poisson' else 'table'} of {name!r}")
    last = {"probs": sizes(states), "coefficients": (len(reals),)}
    arrays = {k: array_of(d[k]).reshape(sizes(finite) + last.get(k, ())) for k in CPDS[d["type"]].arrays}
    if "own" in d:
        return SharedGaussian(child, tuple(parents), **arrays, own=whole(d["own"], f"the number of parameters of {name!r}", 0))
    cpd: Cpd = CPDS[d["type"]](child, tuple(parents), **arrays, seen=seen, imagined=imagined)
    return cpd


def family_to_dict(family: ExponentialNode) -> dict[str, Any]:
    """A distribution by its word, and its known number."""
    kind = family.kind
    return {"family": kind.word, "constants": {kind.constant: kind.known(family.distribution)} if kind.constant else {}}


def with_distributions(variables: Mapping[str, Variable], cpds: Mapping[str, Any]) -> dict[str, Variable]:
    """The variables, those whose CPD is of a chosen distribution as such."""
    result = dict(variables)
    for name, d in cpds.items():
        if name in result and d["type"] == "distribution":
            if d["family"] not in KINDS or isinstance(result[name], Finite):
                raise FormatError(f"the distribution {d['family']!r} of {name!r} is not known, or is not of numbers")
            result[name] = ExponentialNode(distribution_of(d["family"], d["constants"])).variable(name)
    return result


def _regression(cpd: GlmCpd) -> dict[str, Any]:
    """A regression as plain values."""
    family, fitted = cpd.family, None if cpd.fitted is None else _fitted(cpd.fitted)
    rest = {"coefficients": numbers(cpd.coefficients), "centre": numbers(cpd.centre), "fitted": fitted}
    for name, kind in OF_STATES.items():
        if isinstance(family, kind):
            levels = {_levels(family): numbers(cpd.theta[cpd.layout.levels])}
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
    theta = layout.of_levels(array_of(d[_levels(family)], finite=False).reshape(layout.levels.shape))
    theta[layout.slopes] = array_of(d["coefficients"], finite=False).reshape(layout.slopes.shape)
    rest = {"centre": array_of(d.get("centre", []), finite=False), "fitted": _fitted_of(d.get("fitted"), layout.size, child)}
    cpd: GlmCpd = family.cpd(child, tuple(parents), theta, d.get("dispersion", 1.0), **rest)
    return cpd


def _levels(family: Any) -> str:
    return "cut_points" if family.ordered else "intercept"


def _fitted(fitted: Fitted) -> dict[str, Any]:
    own = {f.name: getattr(fitted, f.name) for f in dataclasses.fields(fitted) if f.name != "covariance"}
    return {**{k: _number(x) for k, x in own.items()}, "covariance": numbers(fitted.covariance)}


def _fitted_of(d: dict[str, Any] | None, size: int, child: Variable) -> Fitted | None:
    if d is None:
        return None
    covariance = array_of(d["covariance"], finite=False)
    if covariance.size != size**2:
        raise FormatError(f"the covariance of {child.name!r} has {covariance.size} numbers, and needs {size**2}")
    own = {f.name: float(d[f.name]) for f in dataclasses.fields(Fitted) if f.name in d.keys() - {"covariance", "iterations"}}
    n = int(d["iterations"])
    if not 0 <= n < 2**53:
        raise FormatError(f"the number of iterations of {child.name!r} is {n:.3g}")
    return Fitted(**own, covariance=covariance.reshape(size, size), iterations=n)


def statistics_to_dict(statistics: Statistics) -> dict[str, Any]:
    """Statistics as plain values."""
    entries = []
    for e in statistics:
        d: dict[str, Any] = {"finite": list(e.names), "real": list(e.request.real)}
        if isinstance(e, Counts):
            d |= {"values": flat(e.values), "keys": None if e.keys is None else e.keys.tolist()}
        else:
            parts = {k: flat(getattr(e, k)) for k in ("count", "mean", "rest", "scatter")}
            d |= {"keys": e.keys.tolist(), **parts, **derived_to_dict(e.derived)}
            d |= {"log_base": flat(e.sums)} if e.derived else {}
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
    return checked(Statistics(entries, d["weight"], variables.values(), suppression))


def flat(array: Any) -> list[float | None]:
    """An array as a list, None for NaN."""
    flat = np.asarray(array, dtype=np.float64).reshape(-1)
    return [None if np.isnan(x) else x for x in flat.tolist()]


def array_of(numbers: Any, *, finite: bool = True) -> Any:
    """The array that `flat` wrote, in one dimension."""
    array = np.array([np.nan if x is None else float(x) for x in (numbers if isinstance(numbers, list) else [numbers])])
    if finite and np.isinf(array).any():
        raise FormatError("this file holds a number that is not finite")
    return array


def numbers(array: Any) -> list[Any]:
    """An array as a list, numbers that are not finite as text."""
    return [_number(x) for x in np.asarray(array, dtype=np.float64).reshape(-1).tolist()]


def _number(x: Any) -> Any:
    return x if np.isfinite(x) else str(float(x))
