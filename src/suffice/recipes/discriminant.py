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
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from suffice.blas import one_blas_thread
from suffice.errors import DataError, FitError, MissingCells, listed, note
from suffice.families.categorical import Categorical
from suffice.families.conditional_gaussian import ConditionalGaussian
from suffice.families.family import Array, Cpd, Estimate
from suffice.families.priors import Prior, as_prior
from suffice.families.regression import COLLINEAR, too_large
from suffice.families.shared_gaussian import SharedGaussian
from suffice.learning.fit import fit
from suffice.learning.mixture_belief import Belief, positive
from suffice.learning.mixture_joint import inverse
from suffice.learning.mixture_kinds import KINDS, Diagonal, Full, Kind, Tied
from suffice.models.bayes_net import BayesNet
from suffice.recipes.classifiers import naive_bayes
from suffice.recipes.labelled import Labelled, checked_estimate, labelled, supported
from suffice.statistics import Moments, Request, Statistics
from suffice.variables import Real


class Normals(NamedTuple):
    """The means of the classes, class × column, and the lower triangular roots of their covariances."""

    mean: Array
    root: Array


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

    >>> rows = {"x": [1.0, 2.0, 3.0, 5.0, 6.0, 7.0], "y": [0.0, 0.5, 0.0, 1.0, 2.0, 1.0], "kind": list("aaabbb")}
    >>> bn = discriminant(rows, "kind", covariance=Tied())
    >>> bn["y"].coefficients.round(6).tolist(), bn["x"].variance.round(4).tolist()
    ([[0.0], [0.0]], [0.6667, 0.6667])
    >>> bn.predict_proba({"x": [2.0, 4.0], "y": [0.0, 1.0]}, "kind")["b"].round(4)
    array([0.    , 0.8909])
    """
    kind = Full() if covariance is None else covariance
    if not isinstance(kind, KINDS):
        raise FitError(f"a covariance is Full(), Tied(), Diagonal() or Spherical(), not {covariance!r}")
    how = checked_estimate(estimate)
    known = labelled(data, target, features, variables)
    _refuse_others(known)
    if isinstance(kind, Full):
        return supported(fit(known.dag(chained=True), known.rows, prior=prior, estimate=how), target)
    if isinstance(kind, Diagonal):
        return naive_bayes(known.rows, target, known.names, prior=prior, estimate=how)
    try:
        return supported(_shared(known, _gathered(known), kind, as_prior(prior), how), target)
    except MissingCells:
        from suffice.recipes.discriminant_em import from_incomplete

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


def _shared(known: Labelled, seen: Statistics, kind: Kind, prior: Prior | None, how: Estimate) -> BayesNet:
    """The network of a covariance that classes, or columns, share."""
    if not seen.weight > 0:
        raise DataError("there are no rows to learn from")
    target, tied = known.target, isinstance(kind, Tied)
    variables = {target.name: target, **{v.name: v for v in known.features}}
    bound = None if prior is None else prior.bind(variables, seen)
    moments = seen.moments((target.name,), known.names).at(np.arange(target.n_states))
    if not np.isfinite(moments.scatter).all():
        raise too_large(known.names[0])
    belief = Belief.of(bound, how, known.names, variables, target, chained=tied)
    imagined: Any = None if bound is None else bound.imagine(target, ())
    unspoken = [*([] if imagined is not None else [target.name]), *([] if belief is not None else known.names)]
    if bound is not None and unspoken:
        note(f"the prior says nothing about {listed(unspoken)}: fitted by maximum likelihood")
    normals = _tied(known, moments, belief) if tied else _spherical(known, moments, belief)
    cpds: dict[str, Cpd] = {target.name: Categorical().estimate(target, [], seen.counts([target.name]), imagined, how)}
    cpds |= _chain(known, normals, moments) if tied else _columns(known, normals, moments)
    by = "maximum likelihood" if bound is None else f"posterior {type(how).__name__.lower()}"
    info = f"a discriminant, {type(kind).__name__.lower()} covariance, from {seen.weight:,.10g} rows, {by}"
    return BayesNet.of(known.dag(chained=tied), variables, cpds, prior=bound, estimate=how, fit_info=info)


def _tied(known: Labelled, moments: Moments, belief: Belief | None) -> Normals:
    """The root of Σ_c S_c / N, or of what a prior makes of it; all classes have the same."""
    N = moments.count
    if belief is not None:
        shift = moments.mean[int(np.argmax(N))]  # any place near the data keeps the digits
        mean, root = belief.joint(N, moments.mean - shift, moments.scatter, shift, tied=True)
        return Normals(mean + shift, root)
    root = _root(known, moments.scatter.sum(axis=0), float(N.sum()))
    mean = np.where((N > 0.0)[:, None], moments.mean, np.nan)
    return Normals(mean, np.broadcast_to(root, moments.scatter.shape))


def _root(known: Labelled, scatter: Array, weight: float) -> Array:
    """The Cholesky factor of scatter / weight, by columns scaled to 1, so that a collinear one is seen and named."""
    diagonal = np.diag(scatter)
    constant = [n for n, s in zip(known.names, diagonal, strict=True) if not s > 0.0]
    if constant:
        raise FitError(f"{listed(constant)} does not vary within the classes: leave the column out, or give a prior")
    scale = np.sqrt(diagonal)
    R = scatter / scale[:, None] / scale
    L = np.zeros_like(R)
    for j in range(len(R)):
        pivot = R[j, j] - L[j, :j] @ L[j, :j]
        if pivot <= COLLINEAR:
            raise FitError(
                f"within the classes {known.names[j]!r} is a linear combination of {listed(known.names[:j])} in the "
                f"{weight:,.10g} rows: leave it out, or give a prior, (Dirichlet(1), NormalInverseGamma())"
            )
        L[j, j] = np.sqrt(pivot)
        L[j + 1 :, j] = (R[j + 1 :, j] - L[j + 1 :, :j] @ L[j, :j]) / L[j, j]
    return np.asarray(L * (scale / np.sqrt(weight))[:, None])


def _spherical(known: Labelled, moments: Moments, belief: Belief | None) -> Normals:
    """The scatter of all columns of a class together, over their numbers."""
    N, d = moments.count[:, None], len(known.names)
    S = np.einsum("kjj->kj", moments.scatter)
    with np.errstate(invalid="ignore", divide="ignore"):  # a class without rows has neither
        if belief is None:
            mean, variance = np.where(N > 0.0, moments.mean, np.nan), S.sum(axis=1) / (d * N[:, 0])
        else:
            shift = moments.mean[int(np.argmax(N))]
            kappa, m0, S0, df = belief.single(shift)
            off = moments.mean - shift - m0
            mean = shift + m0 + N / (kappa + N) * off
            total = S + S0 + kappa * N / (kappa + N) * off**2
            variance = total.sum(axis=1) / positive(df + N, known.names[0]).sum(axis=1)
    variance = np.where(variance > 0.0, variance, np.nan)  # a class of equal rows has no density: `supported` says so
    return Normals(mean, np.sqrt(variance)[:, None, None] * np.eye(d))


def _chain(known: Labelled, normals: Normals, moments: Moments) -> dict[str, Cpd]:
    """x_j | class, x_<j where all classes have the same root L: slopes L_j,<j L_<j⁻¹, variance L_jj²."""
    mean, root = normals
    result = dict[str, Cpd]()
    for j, child in enumerate(known.features):
        slopes = np.einsum("ki,kij->kj", root[:, j, :j], inverse(root[:, :j, :j]))
        intercept = mean[:, j] - np.einsum("kj,kj->k", slopes, mean[:, :j])
        variance = np.where(np.isnan(intercept), np.nan, root[:, j, j] ** 2)
        parents, seen = (known.target, *known.features[:j]), moments.marginal(moments.names, known.names[: j + 1])
        cpd = ConditionalGaussian(child, parents, intercept, slopes, variance, seen)
        result[child.name] = SharedGaussian.of(cpd, j, tied=True)
    return result


def _columns(known: Labelled, normals: Normals, moments: Moments) -> dict[str, Cpd]:
    """x_j | class, the same variance for every column."""
    mean, root = normals
    result = dict[str, Cpd]()
    for j, child in enumerate(known.features):
        seen, none = moments.marginal(moments.names, (child.name,)), np.zeros((len(mean), 0))
        cpd = ConditionalGaussian(child, (known.target,), mean[:, j], none, root[:, j, j] ** 2, seen)
        result[child.name] = SharedGaussian.of(cpd, j, tied=False)
    return result
