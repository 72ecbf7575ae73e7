"""The door of classifiers: rows, the column of their classes, and the columns to tell the classes apart by."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, SchemaError, listed, nearest, note
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.family import Estimate, Mean, Mode
from suffice.families.poisson import PoissonRates
from suffice.graphs import Dag
from suffice.models.bayes_net import BayesNet
from suffice.statistics import Statistics
from suffice.statistics.configurations import described
from suffice.variables import Finite, Variable


class Labelled(NamedTuple):
    """Rows with only the columns that matter, or statistics of them."""

    rows: Data | Statistics
    target: Finite
    features: tuple[Variable, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(v.name for v in self.features)

    def dag(self, *, chained: bool = False) -> Dag:
        """The class is a parent of every feature; `chained`, so is each feature of those after it."""
        names = self.names
        return Dag(
            {self.target.name: [], **{n: [self.target.name, *(names[:j] if chained else ())] for j, n in enumerate(names)}}
        )


def labelled(data: Any, target: Any, features: Iterable[str] | None, variables: Any) -> Labelled:
    """Data, target and features, checked. Without features they are all other columns but those that identify rows.

    >>> labelled({"x": [0.5, 1.5], "y": ["a", "b"]}, "y", None, None).features
    (Real('x'),)
    """
    if isinstance(data, Statistics):
        if variables is not None:
            raise SchemaError("variables declare columns of rows; statistics know theirs")
        known: Mapping[str, Variable] = data.variables
        names = _features(target, features, known)
        return _checked(data, target, names, known)
    rows = scan(data, variables)
    names = _features(target, features, rows.columns)
    rows = rows.take([target, *names])
    if features is None and (ids := [n for n in rows.identifiers if n != target]):
        note(
            f"{listed(ids)} identifies rows, with nearly as many states as there are rows, and is left out; name it in features="
        )
        names = [n for n in names if n not in ids]
        rows = rows.take([target, *names])
    return _checked(rows, target, names, rows.schema)


def _checked(rows: Data | Statistics, target: str, names: list[str], known: Mapping[str, Variable]) -> Labelled:
    if not names:
        raise DataError(f"there is no column besides {target!r} to tell its classes apart by")
    classes = known[target]
    empty = [n for n in (target, *names) if rows.missing[n] == rows.n_rows] if isinstance(rows, Data) and rows.n_rows else []
    if empty:
        raise DataError(f"every cell of {listed(empty)} is missing; leave the column out")
    if not isinstance(classes, Finite):
        raise SchemaError(
            f"the target {target!r} is a {type(classes).__name__}, and a classifier needs classes: declare it finite, "
            f"variables={{{target!r}: Finite}}, or in bins, variables={{{target!r}: Bins(5)}}"
        )
    return Labelled(rows, classes, tuple(known[n] for n in names))


def _features(target: Any, features: Iterable[str] | None, columns: Iterable[str]) -> list[str]:
    known = list(columns)
    if not isinstance(target, str):
        raise DataError(f"the target is the name of the column that has the classes, not {target!r}")
    if target not in known:
        raise DataError(f"the data has no column {target!r} of classes{nearest(target, known)}")
    if features is None:
        return [n for n in known if n != target]
    if isinstance(features, str) or not isinstance(features, Iterable):
        raise DataError(f"features are a list of names of columns, not {features!r}")
    names = list(features)
    for name in names:
        if name not in known:
            raise DataError(f"the data has no column {name!r}, which features names{nearest(str(name), known)}")
        if name == target:
            raise DataError(f"{name!r} is the target and cannot be among the features")
        if names.count(name) > 1:
            raise DataError(f"features names {name!r} twice")
    return names


def checked_estimate(estimate: Estimate | None) -> Estimate:
    """Mean() where nothing is said."""
    how = Mean() if estimate is None else estimate
    if not isinstance(how, (Mean, Mode)):
        raise FitError(f"estimate is Mean() or Mode(), not {estimate!r}")
    return how


def supported(bn: BayesNet, target: str) -> BayesNet:
    """The network, if every class that it gives some probability has parameters of every feature."""
    probs = bn[target].probs
    for name in bn:
        cpd = bn[name]
        if not isinstance(cpd, (ConditionalGaussian, PoissonRates)):
            continue
        values = cpd.rates if isinstance(cpd, PoissonRates) else cpd.variance
        lost = np.flatnonzero(np.isnan(values) & (probs > 0.0))
        if len(lost):
            raise _unsupported(bn, cpd, target, int(lost[0]))
    return bn


def _unsupported(bn: BayesNet, cpd: Any, target: str, code: int) -> FitError:
    """Why a class has no parameters: too few rows, or a column that is constant there."""
    name, where = cpd.child.name, described(code, (bn.variables[target],))  # type: ignore[arg-type]
    rows = 0.0 if cpd.seen is None else float(cpd.seen.at(np.arange(len(bn[target].probs))).count[code])
    needed = 2 + len(cpd.real_parents)
    what = f"{name!r} has no normal distribution at {where}" if isinstance(cpd, ConditionalGaussian) else f"no rate at {where}"
    prior = "prior=(Dirichlet(1), NormalInverseGamma(), Gamma())"
    if rows < needed:
        n = "1 row (n_samples=1)" if rows == 1 else f"{rows:,.10g} rows"
        return FitError(f"{what}: the class has {n}, and maximum likelihood needs at least {needed} there; give a prior, {prior}")
    return FitError(f"{what}: the column is constant there, or determined by the others; leave it out, or give a prior, {prior}")
