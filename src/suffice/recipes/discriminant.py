"""Gaussian discriminant analysis: p(class) and p(x | class) = Normal(x; μ_c, Σ_c), as a network.

A normal distribution of several columns is a chain of regressions, x_j | class, x_1 … x_{j−1}, and so a network in which the
class is a parent of every column and each column of those after it. What the classes share is shared by its numbers:

    Full        Σ_c of each class: every regression is of the class's own rows (quadratic discriminant analysis)
    Tied        one Σ, from the scatter within the classes, added up: slopes and variances are the same in every class, only
                intercepts differ (linear discriminant analysis)
    Diagonal    variances of each class and no edges between columns (Gaussian naive Bayes)
    Spherical   one variance for each class

Maximum likelihood divides by the number of rows: Σ_c = S_c / N_c, Σ = Σ_c S_c / N. (Hastie, Tibshirani & Friedman 2009,
The Elements of Statistical Learning, 2nd ed., p. 109, divide Σ by N − K.)

From rows with missing cells a discriminant of a shared covariance is found by EM, that of a mixture whose classes are known: in
a row that shows its class, all other classes have probability 0. Missing features are integrated out, and a row without a class
belongs to each class with its probability.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.blas import one_blas_thread
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step
from suffice.errors import DataError, FitError, MissingCells, listed, note
from suffice.families.categorical import Categorical
from suffice.families.conditional_gaussian import ConditionalGaussian, SharedGaussian
from suffice.families.family import Array, Cpd, Estimate, checked_estimate
from suffice.families.priors import Prior, as_prior
from suffice.families.regression import COLLINEAR, regress, too_large
from suffice.incomplete.class_parts import SeparateNormals
from suffice.learning.climb import Climb, steps_of
from suffice.learning.fit import fit
from suffice.learning.mixture_parts import Belief, CollapsedClass, Separate
from suffice.learning.mixture_setup import Diagonal, Full, Kind, Table, checked_kind
from suffice.models.bayes_net import BayesNet
from suffice.recipes.classifiers import Labelled, labelled, naive_bayes, supported
from suffice.statistics import Moments, Request, Statistics
from suffice.variables import Real, Variable

TOLERANCE = 1e-8
MAX_ITER = 2000

Line = tuple[Array, Array, Array]
"""Of a column given the class and the columns before it: intercepts, slopes and variances, by class."""


@one_blas_thread
def discriminant(
    data: Any,
    target: str,
    features: Iterable[str] | None = None,
    *,
    covariance: Kind | None = None,
    prior: Any = None,
    estimate: Estimate | None = None,
    variables: Any = None,
) -> BayesNet:
    """The Gaussian discriminant analysis of `target` by real columns: a network that classifies, samples and answers queries.

    `covariance` says how the features, by default all other columns, vary within a class: `Full()` (the default), each class
    with a covariance of its own; `Tied()`, all classes with the same; `Diagonal()`, each with its own variances and no
    correlation; or `Spherical()`, each with one variance. Without a prior the parameters are of maximum likelihood (covariances
    divided by N); with one, `(Dirichlet(1), NormalInverseGamma())` or `(Dirichlet(1), BGe())`, they are posterior means, or
    modes with `estimate=Mode()`. Collinear columns and classes of too few rows need a prior, or are refused by name.

    `data` is anything that `scan` takes, or `Statistics` of the graph of a full covariance. Rows with missing cells, of the
    class, too, are learned from by EM. With `Tied()` and `Spherical()`, numbers are shared between classes or columns, which
    statistics of single nodes do not say: such a network keeps none, and has no `update` and no intervals.

    >>> from suffice.learning.mixture_setup import Tied
    >>> rows = {"x": [1.0, 2.0, 3.0, 5.0, 6.0, 7.0], "y": [0.0, 0.5, 0.0, 1.0, 2.0, 1.0], "kind": list("aaabbb")}
    >>> bn = discriminant(rows, "kind", covariance=Tied())
    >>> bn["y"].coefficients.round(6).tolist(), bn["x"].variance.round(4).tolist()
    ([[0.0], [0.0]], [0.6667, 0.6667])
    >>> bn.predict_proba({"x": [2.0, 4.0], "y": [0.0, 1.0]}, "kind")["b"].round(4)
    array([0.    , 0.8909])
    """
    kind, how = checked_kind(covariance), checked_estimate(estimate)
    known = labelled(data, target, features, variables)
    _refuse_others(known)
    if isinstance(kind, Full):
        return supported(fit(known.dag(chained=True), known.rows, prior=prior, estimate=how), target)
    if isinstance(kind, Diagonal):
        return naive_bayes(known.rows, target, known.names, prior=prior, estimate=how)
    try:
        return supported(_from_statistics(known, _gathered(known), kind, as_prior(prior), how), target)
    except MissingCells:
        return from_incomplete(known, kind, as_prior(prior), how)


def _refuse_others(known: Labelled) -> None:
    for v in known.features:
        if not isinstance(v, Real):
            raise DataError(
                f"a discriminant tells classes apart by real columns, and {v.name!r} is {type(v).__name__}: leave it out, "
                "features=[...], or use naive_bayes, which takes columns of every kind"
            )


def _gathered(known: Labelled) -> Statistics:
    if isinstance(known.rows, Statistics):
        return known.rows
    target = known.target.name
    return known.rows.gather([Request((target,)), Request((target,), known.names)])


def _from_statistics(known: Labelled, seen: Statistics, kind: Kind, prior: Prior | None, how: Estimate) -> BayesNet:
    """The network of a covariance that classes, or columns, share."""
    if not seen.weight > 0:
        raise DataError("there are no rows to learn from")
    target = known.target
    bound = None if prior is None else prior.bind(_variables(known), seen)
    moments = seen.moments((target.name,), known.names).at(np.arange(target.n_states))
    if not np.isfinite(moments.scatter).all():
        raise too_large(known.names[0])
    belief = Belief.of(bound, how, known.features, target, chained=kind.joint)
    imagined: Any = None if bound is None else bound.imagine(target, ())
    unspoken = [*([] if imagined is not None else [target.name]), *([] if belief is not None else known.names)]
    if bound is not None and unspoken:
        note(f"the prior says nothing about {listed(unspoken)}: fitted by maximum likelihood")
    cpds: dict[str, Cpd] = {target.name: Categorical().estimate(target, [], seen.counts([target.name]), imagined, how)}
    lines = _tied(known, moments, belief) if kind.joint else _spherical(known, moments, belief, how)
    for j, (child, (intercept, slopes, variance)) in enumerate(zip(known.features, lines, strict=True)):
        before = known.features[:j] if kind.joint else ()
        own = moments.marginal(moments.names, tuple(v.name for v in (*before, child)))
        cpds[child.name] = ConditionalGaussian(child, (target, *before), intercept, slopes, variance, own)
    return _network(known, kind, cpds, seen.weight, bound, how)


def _tied(known: Labelled, moments: Moments, belief: Belief | None) -> Iterator[Line]:
    """Slopes and variances from the scatter within all classes, or what a prior makes of it."""
    N, S = moments.count, moments.scatter.sum(axis=0)
    constant = [n for n, s in zip(known.names, np.diag(S), strict=True) if not s > 0.0]
    if belief is None and constant:
        raise FitError(f"{listed(constant)} does not vary within the classes: leave the column out, or give a prior")
    shift = moments.mean[int(np.argmax(N))]  # any place near the data keeps the digits
    mean = np.where((N > 0.0)[:, None], moments.mean - shift, np.nan)
    for j, name in enumerate(known.names):
        if belief is not None:
            a, b, v = belief.line(j, N, moments.mean - shift, moments.scatter, shift)
        else:
            r = regress(S[: j + 1, : j + 1])
            if r.residual <= COLLINEAR * S[j, j]:
                raise FitError(
                    f"within the classes {name!r} is a linear combination of {listed(known.names[:j])} in the "
                    f"{N.sum():,.10g} rows: leave it out, or give a prior, (Dirichlet(1), NormalInverseGamma())"
                )
            b, v = r.coefficients, r.residual / float(N.sum())
            a = mean[:, j] - mean[:, :j] @ b
        yield a + shift[j] - shift[:j] @ b, np.tile(b, (len(N), 1)), np.where(np.isnan(a), np.nan, v)


def _spherical(known: Labelled, moments: Moments, belief: Belief | None, how: Estimate) -> Iterator[Line]:
    """The scatter of all columns of a class together, over their numbers."""
    N, S, shift = moments.count[:, None], np.einsum("kjj->kj", moments.scatter), moments.mean[int(np.argmax(moments.count))]
    blank = SeparateNormals(known.names, shift, np.zeros_like(S), np.ones_like(S))
    part = Separate(blank, how, True, np.ones_like(shift), belief)
    with np.errstate(invalid="ignore", divide="ignore"):  # a class without rows has neither mean nor variance
        means, variances = part.estimated(np.repeat(N, S.shape[1], axis=1), moments.mean - shift, S)
    means = means + shift if belief is not None else np.where(N > 0.0, moments.mean, np.nan)
    variances = np.where(variances > 0.0, variances, np.nan)  # a class of equal rows has no density: `supported` says so
    for mean, variance in zip(means.T, variances.T, strict=True):
        yield mean, np.zeros((len(N), 0)), variance


def _network(
    known: Labelled,
    kind: Kind,
    cpds: dict[str, Cpd],
    weight: float,
    prior: Prior | None,
    how: Estimate,
    climb: Climb | None = None,
) -> BayesNet:
    """The network, in which columns know which of their numbers they share."""
    by = "maximum likelihood" if prior is None else f"posterior {type(how).__name__.lower()}"
    for j, name in enumerate(known.names):
        cpds[name] = SharedGaussian.of(cpds[name], j, tied=kind.joint)  # type: ignore[arg-type]
    info = f"a discriminant, {type(kind).__name__.lower()} covariance, {'by EM ' if climb else ''}from {weight:,.10g} rows, {by}"
    if climb is not None:
        ended = "converged" if climb.converged else "not converged"
        info += f"; {ended} after {len(climb.trace)} iterations, log-likelihood {climb.point.log_likelihood:,.3f}"
    said = {"prior": prior, "estimate": how, "fit_info": info, "incomplete": climb is not None}
    return BayesNet.of(known.dag(chained=kind.joint), _variables(known), cpds, **said)


def from_incomplete(known: Labelled, kind: Kind, prior: Prior | None, how: Estimate) -> BayesNet:
    """The network that EM finds from the classes' own rows."""
    assert isinstance(known.rows, Data)
    name = known.target.name
    made = Table.of(known.rows.take(known.names)).mixture(known.target, kind, prior, how)
    mixture = replace(made, components=replace(made.components, data=known.rows, label=name))
    counts = known.rows.fold(_Count(_ClassShares(name, np.zeros(known.target.n_states))))
    try:
        begin = mixture.started(_ClassShares(name, counts / counts.sum()))
    except CollapsedClass as collapse:
        raise FitError(f"the discriminant of {name!r} cannot be fitted: {collapse}; give a prior") from None
    climb = Climb.at(mixture, begin)
    try:
        climb.run(steps_of(climb.problem, climb.point), TOLERANCE, MAX_ITER, lambda _: None)
    except CollapsedClass as collapse:
        raise FitError(f"EM of the discriminant of {name!r} collapsed: {collapse}; give a prior") from None
    cpds = mixture.cpds(climb.point.parameters, climb.point.statistic.sums.counts)
    bn = _network(known, kind, cpds, known.rows.weight, prior, how, climb)
    note(f"there are missing cells: {bn.fit_info}")
    return bn


@dataclass(frozen=True, eq=False)
class _ClassShares:
    """Responsibilities: 1 for the class that a row shows, and the shares of the classes where it shows none."""

    name: str
    shares: Array

    def __call__(self, block: Block) -> Array:
        own = np.arange(len(self.shares))[:, None] == block.columns[self.name]
        return np.where(own.any(axis=0), own, self.shares[:, None])


@dataclass(frozen=True)
class _Count(Step[Array]):
    """The rows that show each class."""

    shares: _ClassShares

    def of(self, block: Block) -> Array:
        return np.asarray(self.shares(block).sum(axis=1))


def _variables(known: Labelled) -> dict[str, Variable]:
    return {v.name: v for v in (known.target, *known.features)}
