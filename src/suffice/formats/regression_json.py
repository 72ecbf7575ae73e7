"""Regressions in Suffice's own JSON: a part of `json_model`.

    {"type": "logistic", "intercept": [a number per state but the first], "coefficients": [… × terms], "ridge", "centre",
     "fitted"}
    {"type": "ordinal", "cut_points": [a number per state but the last], "coefficients": […], "ridge", "centre", "fitted"}
    {"type": "regression", "family": "PoissonLog", "options": {"ridge", "offset", "trials"}, "intercept", "terms": [names],
     "coefficients": [a number per term], "dispersion", "centre", "fitted"}

`centre` only keeps digits. `fitted` is null, or what the fit left behind: its numbers, and the covariance of the parameters row
by row, from which the standard errors come. Numbers that are not finite are written as text: "nan", "inf", "-inf".
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from suffice.errors import FormatError
from suffice.families.design import terms
from suffice.families.logistic import Logistic
from suffice.families.ordinal import ProportionalOdds
from suffice.families.regression_cpd import Fitted, GlmCpd
from suffice.families.responses import (
    BinomialLogit,
    GammaInverse,
    GammaLog,
    Linear,
    NegativeBinomialLog,
    PoissonLog,
    Probit,
)
from suffice.variables import Finite, Variable

FAMILIES: dict[str, Any] = {
    c.__name__: c for c in (Linear, Probit, BinomialLogit, PoissonLog, NegativeBinomialLog, GammaLog, GammaInverse)
}
OF_STATES: dict[str, Any] = {"logistic": Logistic, "ordinal": ProportionalOdds}
TYPES = (*OF_STATES, "regression")


def to_json(cpd: GlmCpd) -> dict[str, Any]:
    """A regression as plain values.

    >>> from suffice.families.regression_cpd import RegressionCpd
    >>> from suffice.variables import Real
    >>> to_json(RegressionCpd(Real("y"), (Real("x"),), Linear(), 1.0, [2.0], 0.5))["coefficients"]
    [2.0]
    """
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


def from_json(d: dict[str, Any], child: Variable, parents: Sequence[Variable]) -> GlmCpd:
    """What `to_json` made of a regression; older files have neither centre nor fit."""
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
    theta = layout.of_levels(_array(d[_levels(family)]).reshape(layout.levels.shape))
    theta[layout.slopes] = _array(d["coefficients"]).reshape(layout.slopes.shape)
    rest = {"centre": _array(d.get("centre", [])), "fitted": _fitted_of(d.get("fitted"), layout.size, child)}
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
    covariance = _array(d["covariance"])
    if covariance.size != size**2:
        raise FormatError(f"the covariance of {child.name!r} has {covariance.size} numbers, and needs {size**2}")
    numbers = {f.name: float(d[f.name]) for f in dataclasses.fields(Fitted) if f.name in d.keys() - {"covariance", "iterations"}}
    return Fitted(**numbers, covariance=covariance.reshape(size, size), iterations=int(d["iterations"]))


def _numbers(array: Any) -> list[Any]:
    return [_number(x) for x in np.asarray(array, dtype=np.float64).reshape(-1).tolist()]


def _number(x: Any) -> Any:
    return x if np.isfinite(x) else str(float(x))


def _array(numbers: Any) -> Any:
    return np.array([float(x) for x in (numbers if isinstance(numbers, list) else [numbers])], dtype=np.float64)
