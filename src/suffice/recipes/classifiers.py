"""Naive Bayes: given its class, the columns of a row are independent of each other.

    p(class, x) = p(class) Π p(xⱼ | class)        tables for finite columns, normals for real ones, Poisson rates for counts

Each factor has a statistic of its own. So where the class is known, a missing cell costs nothing but itself: the estimate of
p(xⱼ | class) from all rows that show xⱼ is exact, and nothing need be iterated.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.blas import one_blas_thread
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, is_missing
from suffice.errors import MissingCells
from suffice.families import family_of
from suffice.families.family import Estimate
from suffice.families.priors import Dirichlet, Gamma, NormalInverseGamma, as_prior
from suffice.incomplete.normal import weighted_moments
from suffice.learning.fit import fit
from suffice.models.bayes_net import BayesNet
from suffice.models.estimated import estimated
from suffice.recipes.labelled import Labelled, checked_estimate, labelled, supported
from suffice.statistics import Counts, Moments, Request, Statistics
from suffice.statistics.configurations import checked_cells
from suffice.variables import Count, Finite, Real, Variable

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
    chosen = _spoken(prior, (known.target, *known.features))
    if isinstance(known.rows, Data) and known.rows.missing[target]:
        return supported(fit(known.dag(), known.rows, prior=chosen, estimate=how), target)
    return supported(estimated(known.dag(), _statistics(known), as_prior(chosen), how), target)


def _spoken(prior: Any, variables: Iterable[Variable]) -> Any:
    """The default prior without the parts that no variable needs; any other prior as it is."""
    if not isinstance(prior, tuple) or prior != PRIOR:
        return prior
    kinds = {type(v) for v in variables}
    return tuple(p for p, kind in zip(PRIOR, (Finite, Real, Count), strict=True) if kind in kinds)


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
    base = np.bincount(classes, weight * _log_factorial(cells), target.n_states)[keys, None] if counted else None
    return Moments((target,), (feature.name,), keys, spread.weight, spread.mean, spread.scatter, counted=counted, log_base=base)  # type: ignore[arg-type]


def _log_factorial(n: Any) -> Any:
    from scipy.special import gammaln

    return gammaln(n + 1.0)
