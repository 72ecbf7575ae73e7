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
from suffice.families.fitted import Fitted
from suffice.families.logistic_cpd import LogisticCpd
from suffice.families.ordinal_cpd import OrdinalCpd, ordered_child
from suffice.families.regression_cpd import RegressionCpd
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
TYPES = ("logistic", "ordinal", "regression")


def to_json(cpd: LogisticCpd | OrdinalCpd | RegressionCpd) -> dict[str, Any]:
    """A regression as plain values.

    >>> from suffice.variables import Real
    >>> to_json(RegressionCpd(Real("y"), (Real("x"),), Linear(), 1.0, [2.0], 0.5))["coefficients"]
    [2.0]
    """
    arrays = {k: _numbers(getattr(cpd, k)) for k in ("coefficients", "centre")}
    fitted = None if cpd.fitted is None else _fitted(cpd.fitted)
    if isinstance(cpd, LogisticCpd):
        return {"type": "logistic", "intercept": _numbers(cpd.intercept), **arrays, "ridge": cpd.ridge, "fitted": fitted}
    if isinstance(cpd, OrdinalCpd):
        return {"type": "ordinal", "cut_points": _numbers(cpd.cut_points), **arrays, "ridge": cpd.ridge, "fitted": fitted}
    if type(cpd.family).__name__ not in FAMILIES:
        raise FormatError(f"the regression {type(cpd.family).__name__} of {cpd.child.name!r} cannot be written to a file")
    return {
        "type": "regression",
        "family": type(cpd.family).__name__,
        "options": dataclasses.asdict(cpd.family),
        "intercept": cpd.intercept,
        "terms": list(cpd.terms),
        **arrays,
        "dispersion": cpd.dispersion,
        "fitted": fitted,
    }


def from_json(d: dict[str, Any], child: Variable, parents: Sequence[Variable]) -> LogisticCpd | OrdinalCpd | RegressionCpd:
    """What `to_json` made of a regression; older files have neither centre nor fit."""
    if d["type"] != "regression" and not isinstance(child, Finite):
        raise FormatError(f"the CPD of {child.name!r} is {d['type']!r}, which does not fit {child!r}")
    if d["type"] == "ordinal":
        fitted = _fitted_of(d["fitted"], len(d["cut_points"]) + len(d["coefficients"]), child)
        cuts, coefficients, centre = (_array(d[k]) for k in ("cut_points", "coefficients", "centre"))
        return OrdinalCpd(ordered_child(child), tuple(parents), cuts, coefficients, centre, float(d["ridge"]), fitted)
    if d["type"] == "logistic":
        assert isinstance(child, Finite)
        shape = (child.n_states - 1, len(terms(parents)))
        numbers = _array(d["intercept"]), _array(d["coefficients"]).reshape(shape), _array(d.get("centre", []))
        fitted = _fitted_of(d.get("fitted"), shape[0] * (1 + shape[1]), child)
        return LogisticCpd(child, tuple(parents), *numbers, float(d["ridge"]), fitted)
    if d["family"] not in FAMILIES:
        raise FormatError(f"the regression {d['family']!r} of {child.name!r} is not known")
    family = FAMILIES[d["family"]](**d["options"])
    family.check(child, parents)
    own = terms(family.regressors(parents))
    if tuple(d["terms"]) != own:
        raise FormatError(f"the terms of {child.name!r} are {list(own)}, and the file has {d['terms']}")
    fitted = _fitted_of(d["fitted"], 1 + len(own), child)
    coefficients, centre = _array(d["coefficients"]), _array(d["centre"])
    return RegressionCpd(child, tuple(parents), family, d["intercept"], coefficients, d["dispersion"], centre, fitted)


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


def _array(numbers: list[Any]) -> Any:
    return np.array([float(x) for x in numbers], dtype=np.float64)
