"""Classifiers: rows, the column of their classes, and the columns to tell the classes apart by; and the simplest of them.

Naive Bayes: given its class, the columns of a row are independent of each other.

    p(class, x) = p(class) Π p(xⱼ | class)        tables for finite columns, normals for real ones, Poisson rates for counts

Each factor has a statistic of its own. So where the class is known, a missing cell costs nothing but itself: the estimate of
p(xⱼ | class) from all rows that show xⱼ is exact, and nothing need be iterated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from suffice.blas import one_blas_thread
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, is_missing
from suffice.engines.gather import log_base
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, MissingCells, SchemaError, listed, nearest, note
from suffice.families import family_of
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.family import Estimate, checked_estimate
from suffice.families.poisson import PoissonRates
from suffice.families.priors import Dirichlet, Gamma, NormalInverseGamma, as_prior
from suffice.graphs import Dag
from suffice.incomplete.normal import weighted_moments
from suffice.learning.fit import fit
from suffice.models.bayes_net import BayesNet
from suffice.models.estimated import estimated
from suffice.recipes.learn import suitable
from suffice.statistics import Counts, Moments, Request, Statistics
from suffice.statistics.configurations import checked_cells, described
from suffice.variables import Count, Finite, Variable

PRIOR = (Dirichlet(1), NormalInverseGamma(), Gamma())
"""One imagined row in each cell of a table, one row's worth of doubt about each normal, one event about each rate."""


@one_blas_thread
def naive_bayes(
    data: Any,
    target: str,
    features: Iterable[str] | None = None,
    *,
    prior: Any = PRIOR,
    estimate: Estimate | None = None,
    variables: Any = None,
) -> BayesNet:
    """The naive Bayes classifier of `target`: a network in which the class is the only parent of every feature.

    A finite feature has a table, a real one a normal distribution in each class, with a variance of its own, a count a Poisson
    rate. `data` is anything that `scan` takes, with `variables` as there, or `Statistics`; the features are all other columns
    unless they are named. By default the parameters are posterior means: of tables under Dirichlet(1) (Laplace's rule), of
    normals under NormalInverseGamma(), of rates under Gamma(). `prior=None` is maximum likelihood, in which a class with too few
    rows is refused.

    Missing cells of features are left out of the sums, which is exact; rows without a class are learned from by `em`. In
    prediction, `bn.predict_proba(rows, target)`, missing cells are summed out.

    >>> rows = {"weight": [1.0, 1.2, 0.8, 3.0, 3.2, 2.8], "skin": list("ggyyyy"), "fruit": ["lime"] * 3 + ["lemon"] * 3}
    >>> bn = naive_bayes(rows, "fruit")
    >>> bn.dag
    Dag('fruit -> skin; fruit -> weight')
    >>> bn.predict({"weight": [1.1, 2.9], "skin": [None, "y"]}, "fruit")
    array(['lime', 'lemon'], dtype=object)
    """
    how = checked_estimate(estimate)
    known = labelled(data, target, features, variables)
    chosen = suitable(prior, (known.target, *known.features), PRIOR)
    if isinstance(known.rows, Data) and known.rows.missing[target]:
        return supported(fit(known.dag(), known.rows, prior=chosen, estimate=how), target)
    return supported(estimated(known.dag(), _statistics(known), as_prior(chosen), how), target)


def _statistics(known: Labelled) -> Statistics:
    """What each family needs to know; of a feature with missing cells, from the rows that show it."""
    if isinstance(known.rows, Statistics):
        return known.rows
    needs = {v.name: family_of(v, [known.target]).needs(v, [known.target]) for v in known.features}
    own = Request((known.target.name,))
    try:
        return known.rows.gather([own, *needs.values()])
    except MissingCells:
        missing = known.rows.missing
    complete = known.rows.gather([own, *(request for n, request in needs.items() if not missing[n])])
    gaps = [v for v in known.features if missing[v.name]]
    found = known.rows.fold(_Shown(known.target, tuple(gaps)))
    return Statistics([*complete, *found], complete.weight)


@dataclass(frozen=True)
class _Shown(Step[tuple[Counts | Moments, ...]]):
    """The statistic of each feature from the rows that show it."""

    target: Finite
    features: tuple[Variable, ...]

    def of(self, block: Block) -> tuple[Counts | Moments, ...]:
        return tuple(_shown(block, self.target, feature) for feature in self.features)


def _shown(block: Block, target: Finite, feature: Variable) -> Counts | Moments:
    cells, weight = block.columns[feature.name], block.weights
    shown = np.flatnonzero(~is_missing(cells) & (weight > 0))
    classes, cells, weight = block.columns[target.name][shown].astype(np.int64), cells[shown], weight[shown]
    if isinstance(feature, Finite):
        shape = (target.n_states, feature.n_states)
        size = checked_cells((target, feature), f"the table of {feature.name!r}")
        return Counts((target, feature), np.bincount(classes * shape[1] + cells, weight, size).astype(np.float64).reshape(shape))
    groups = weighted_moments(classes[None], weight[None], cells[None].astype(np.float64), target.n_states)
    keys, spread = groups.keys, groups.spread
    counted = (feature.name,) if isinstance(feature, Count) else ()
    base = np.bincount(classes, log_base(cells, weight), target.n_states)[keys, None] if counted else None
    return Moments((target,), (feature.name,), keys, spread.weight, spread.mean, spread.scatter, counted=counted, log_base=base)  # type: ignore[arg-type]


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
