"""Classifiers: rows, the column of their classes, and the columns to tell the classes apart by.

Naive Bayes: given its class, the columns of a row are independent of each other.

    p(class, x) = p(class) Π p(xⱼ | class)        tables for finite columns, normals for real ones, Poisson rates for counts

Each factor has a statistic of its own. So where the class is known, a missing cell costs nothing but itself: the estimate of
p(xⱼ | class) from all rows that show xⱼ is exact, and nothing need be iterated.

Gaussian discriminant analysis: p(class) and p(x | class) = Normal(x; μ_c, Σ_c), as a network.

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

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.variables import Finite, Real, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step, is_missing
from suffice.engines.scan import scan
from suffice.errors import DataError, FitError, MissingCells, SchemaError, listing, nearest, note
from suffice.errors.remedies import declaration
from suffice.families import checked_estimate, family_of
from suffice.families.categorical import TableNode
from suffice.families.conditional_gaussian import ConditionalGaussian, SharedGaussian
from suffice.families.priors.priors import Dirichlet, Gamma, NormalInverseGamma, Prior, as_prior, suitable
from suffice.families.protocol.family import Array, Cpd, Estimate, imagined_rows
from suffice.graphs import Dag
from suffice.incomplete.numbers.normal import weighted_moments
from suffice.learning.fit import fit
from suffice.learning.incomplete.climb import Climb
from suffice.learning.latent.mixture_normals import JointPart, SeparatePart, imagined_moments
from suffice.learning.latent.mixture_parts import CollapsedClass
from suffice.learning.latent.mixture_setup import Diagonal, Full, Kind, MixtureRows, checked_kind
from suffice.models.estimation import estimate_network
from suffice.models.networks import BayesNet
from suffice.numerics.exponential.normals.lines import COLLINEAR, regress, too_large
from suffice.statistics import Counts, Moments, Request, Statistics
from suffice.statistics.counts import checked_cells, describe

if TYPE_CHECKING:
    from suffice.basis.argument_types import PriorLike, RowsLike, VariablesLike

PRIOR = (Dirichlet(1), NormalInverseGamma(), Gamma())
"""One imagined row in each cell of a table, one row's worth of doubt about each normal, one event about each rate."""

TOLERANCE = 1e-8
MAX_ITER = 2000

Line = tuple[Array, Array, Array]
"""Of a column given the class and the columns before it: intercepts, slopes and variances, by class."""


@one_blas_thread
def naive_bayes(
    data: RowsLike | Statistics,
    target: str,
    features: Iterable[str] | None = None,
    *,
    prior: PriorLike | None = PRIOR,
    estimate: Estimate | None = None,
    variables: VariablesLike | None = None,
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
    known = check_labelled(data, target, features, variables)
    chosen = suitable(prior, known.variables.values(), PRIOR)
    if isinstance(known.rows, Data):
        missing, own = known.rows.missing, known.target
        if missing[target]:
            return refuse_unsupported(fit(known.dag(), known.rows, prior=chosen, estimate=how), target)
        complete = [v for v in known.features if not missing[v.name]]
        seen = known.rows.gather([Request((target,)), *(family_of(v, [own]).needs(v, [own]) for v in complete)])
        if gappy := tuple(v for v in known.features if missing[v.name]):
            seen = Statistics([*seen, *known.rows.fold(_Shown(own, gappy))], seen.weight)
    else:
        seen = known.rows
    return refuse_unsupported(estimate_network(BayesNet, known.dag(), seen, as_prior(chosen), how), target)


@dataclass(frozen=True)
class _Shown(Step[tuple[Counts | Moments, ...]]):
    """The statistic of each feature from the rows that show it."""

    target: Finite
    features: tuple[Variable, ...]

    def of(self, block: Block) -> tuple[Counts | Moments, ...]:
        return tuple(self._statistic_of(block, feature) for feature in self.features)

    def _statistic_of(self, block: Block, feature: Variable) -> Counts | Moments:
        target, cells, weight = self.target, block.columns[feature.name], block.weights
        shown = np.flatnonzero(~is_missing(cells) & (weight > 0))
        classes, cells, weight = block.columns[target.name][shown].astype(np.int64), cells[shown], weight[shown]
        if isinstance(feature, Finite):
            size = checked_cells((target, feature), f"the table of {feature.name!r}")
            counts = np.bincount(classes * feature.n_states + cells, weight, size).astype(np.float64)
            return Counts((target, feature), counts.reshape(target.n_states, feature.n_states))
        groups = weighted_moments(classes[None], weight[None], cells[None].astype(np.float64), target.n_states)
        keys, (total, mean, _, scatter) = groups.keys, groups.spread
        derived = family_of(feature, [target]).needs(feature, [target]).derived
        sums = [np.bincount(classes, weight * d.values(cells), target.n_states)[keys] for d in derived]
        own = np.array(sums, np.float64).reshape(len(sums), len(keys)).T
        return Moments((target,), (feature.name,), keys, total, mean, scatter, derived=derived, sums=own)


class Labelled(NamedTuple):
    """Rows with only the columns that matter, or statistics of them."""

    rows: Data | Statistics
    target: Finite
    features: tuple[Variable, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(v.name for v in self.features)

    @property
    def variables(self) -> dict[str, Variable]:
        return {v.name: v for v in (self.target, *self.features)}

    def dag(self, *, chained: bool = False) -> Dag:
        """The class is a parent of every feature; `chained`, so is each feature of those after it."""
        names, own = self.names, self.target.name
        return Dag({own: [], **{n: [own, *(names[:j] if chained else ())] for j, n in enumerate(names)}})


def check_labelled(data: Any, target: Any, features: Iterable[str] | None, variables: Any) -> Labelled:
    """Data, target and features, checked. Without features they are all other columns but those that identify rows."""
    if isinstance(data, Statistics) and variables is not None:
        raise SchemaError("variables declare columns of rows; statistics know theirs")
    rows = data if isinstance(data, Statistics) else scan(data, variables)
    names = _features(target, features, rows.variables if isinstance(rows, Statistics) else rows.columns)
    if isinstance(rows, Data):
        rows = rows.select([target, *names])
        if features is None and (ids := [n for n in rows.identifiers if n != target]):
            what = "identifies rows, with nearly as many states as there are rows, and is left out; name it in features="
            note(f"{listing(ids)} {what}")
            names = [n for n in names if n not in ids]
            rows = rows.select([target, *names])
    if not names:
        raise DataError(f"there is no column besides {target!r} to tell its classes apart by")
    empty = [n for n in (target, *names) if rows.missing[n] == rows.n_rows] if isinstance(rows, Data) and rows.n_rows else []
    if empty:
        raise DataError(f"every cell of {listing(empty)} is missing; leave the column out")
    known: Mapping[str, Variable] = rows.variables if isinstance(rows, Statistics) else rows.schema
    classes = known[target]
    if not isinstance(classes, Finite):
        raise SchemaError(
            f"the target {target!r} is a {type(classes).__name__}, and a classifier needs classes: declare it finite, "
            f"{declaration(target, 'Finite')}, or in bins, {declaration(target, 'Bins(5)')}"
        )
    return Labelled(rows, classes, tuple(known[n] for n in names))


def _features(target: Any, features: Iterable[str] | None, columns: Iterable[str]) -> list[str]:
    known = list(columns)
    if not isinstance(target, str):
        raise DataError(f"the target is the name of the column that has the classes, not {target!r}")
    if target not in known:
        raise DataError(f"the data have no column {target!r} of classes{nearest(target, known)}")
    if features is None:
        return [n for n in known if n != target]
    if isinstance(features, str) or not isinstance(features, Iterable):
        raise DataError(f"features are a list of names of columns, not {features!r}")
    names = list(features)
    for name in names:
        if name not in known:
            raise DataError(f"the data have no column {name!r}, which features names{nearest(str(name), known)}")
        if name == target:
            raise DataError(f"{name!r} is the target and cannot be among the features")
        if names.count(name) > 1:
            raise DataError(f"features names {name!r} twice")
    return names


def refuse_unsupported(bn: BayesNet, target: str) -> BayesNet:
    """The network, if every class that it gives some probability has parameters of every feature."""
    probs = bn[target].probs
    for name in bn:
        cpd = bn[name]
        lost = np.flatnonzero(cpd.undefined & (probs > 0.0)) if cpd.undefined.any() else np.zeros(0)
        if not len(lost):
            continue
        rows = 0.0 if cpd.seen is None else float(cpd.seen.at(np.arange(len(probs))).count[lost[0]])
        needed = 2 + len(cpd.real_parents)
        what = f"{name!r} has no {cpd.noun} at {describe(int(lost[0]), (bn.variables[target],))}"  # type: ignore[arg-type]
        if rows < needed:
            n = "1 row (n_samples=1)" if rows == 1 else f"{rows:,.10g} rows"
            why = f"the class has {n}, and maximum likelihood needs at least {needed} there; give a prior"
        else:
            why = "the column is constant there, or determined by the others; leave it out, or give a prior"
        raise FitError(f"{what}: {why}, prior=(Dirichlet(1), NormalInverseGamma(), Gamma())")
    return bn


@one_blas_thread
def discriminant(
    data: RowsLike | Statistics,
    target: str,
    features: Iterable[str] | None = None,
    *,
    covariance: Kind | None = None,
    prior: PriorLike | None = None,
    estimate: Estimate | None = None,
    variables: VariablesLike | None = None,
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

    >>> from suffice.latent import Tied
    >>> rows = {"x": [1.0, 2.0, 3.0, 5.0, 6.0, 7.0], "y": [0.0, 0.5, 0.0, 1.0, 2.0, 1.0], "kind": list("aaabbb")}
    >>> bn = discriminant(rows, "kind", covariance=Tied())
    >>> bn["y"].coefficients.round(6).tolist(), bn["x"].variance.round(4).tolist()
    ([[0.0], [0.0]], [0.6667, 0.6667])
    >>> bn.predict_proba({"x": [2.0, 4.0], "y": [0.0, 1.0]}, "kind")["b"].round(4)
    array([0.    , 0.8909])
    """
    kind, how = checked_kind(covariance), checked_estimate(estimate)
    known = check_labelled(data, target, features, variables)
    for v in known.features:
        if not isinstance(v, Real):
            raise DataError(
                f"a discriminant tells classes apart by real columns, and {v.name!r} is {type(v).__name__}: leave it out, "
                "features=[...], or use naive_bayes, which takes columns of every kind"
            )
    if isinstance(kind, Full):
        return refuse_unsupported(fit(known.dag(chained=True), known.rows, prior=prior, estimate=how), target)
    if isinstance(kind, Diagonal):
        return naive_bayes(known.rows, target, known.names, prior=prior, estimate=how)
    try:
        return refuse_unsupported(_from_statistics(known, kind, as_prior(prior), how), target)
    except MissingCells:
        return from_incomplete(known, kind, as_prior(prior), how)


def _from_statistics(known: Labelled, kind: Kind, prior: Prior | None, how: Estimate) -> BayesNet:
    """The network of a covariance that classes, or columns, share."""
    target, seen = known.target, known.rows
    if isinstance(seen, Data):
        seen = seen.gather([Request((target.name,)), Request((target.name,), known.names)])
    if not seen.weight > 0:
        raise DataError("there are no rows to learn from")
    bound = None if prior is None else prior.bind(known.variables, seen)
    moments = seen.moments((target.name,), known.names).at(np.arange(target.n_states))
    if not np.isfinite(moments.scatter).all():
        raise too_large(known.names[0])
    imagined = imagined_moments(bound, known.features, target, chained=kind.joint)
    own: Any = None if bound is None else imagined_rows(bound, target, ())
    unspoken = [*([] if own is not None else [target.name]), *([] if imagined is not None else known.names)]
    if bound is not None and unspoken:
        note(f"the prior says nothing about {listing(unspoken)}: fitted by maximum likelihood")
    cpds: dict[str, Cpd] = {target.name: TableNode().estimate(target, [], seen.counts([target.name]), own, how)}
    shift = moments.mean[int(np.argmax(moments.count))]  # any place near the data keeps the digits
    blank = (known.names, shift, moments.mean - shift, np.ones_like(moments.mean), how, True, np.ones_like(shift), imagined)
    lines = _tied_lines(JointPart(*blank), moments) if kind.joint else _spherical(SeparatePart(*blank), moments)
    for j, (child, (intercept, slopes, variance)) in enumerate(zip(known.features, lines, strict=True)):
        before = known.features[:j] if kind.joint else ()
        group = moments.marginal(moments.names, tuple(v.name for v in (*before, child)))
        cpds[child.name] = ConditionalGaussian(child, (target, *before), intercept, slopes, variance, group)
    return _network(known, kind, cpds, seen.weight, bound, how)


def _tied_lines(part: JointPart, moments: Moments) -> Iterator[Line]:
    """Slopes and variances from the scatter within all classes, or what a prior makes of it."""
    N, S, names, shift = moments.count, moments.scatter.sum(axis=0), part.names, part.shift
    constant = [n for n, s in zip(names, np.diag(S), strict=True) if not s > 0.0]
    if part.imagined is None and constant:
        raise FitError(f"{listing(constant)} does not vary within the classes: leave the column out, or give a prior")
    mean = np.where((N > 0.0)[:, None], part.mean, np.nan)
    for j, name in enumerate(names):
        if part.imagined is not None:
            a, b, v = part.line(j, N, part.mean, moments.scatter)
        else:
            r = regress(S[: j + 1, : j + 1])
            if r.residual <= COLLINEAR * S[j, j]:
                raise FitError(
                    f"within the classes {name!r} is a linear combination of {listing(names[:j])} in the {N.sum():,.10g} rows: "
                    "leave it out, or give a prior, (Dirichlet(1), NormalInverseGamma())"
                )
            b, v = r.coefficients, r.residual / float(N.sum())
            a = mean[:, j] - mean[:, :j] @ b
        yield a + shift[j] - shift[:j] @ b, np.tile(b, (len(N), 1)), np.where(np.isnan(a), np.nan, v)


def _spherical(part: SeparatePart, moments: Moments) -> Iterator[Line]:
    """The scatter of all columns of a class together, over their numbers."""
    N = np.repeat(moments.count[:, None], len(part.names), axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):  # a class without rows has neither mean nor variance
        means, variances = part.estimate_moments(N, part.mean, np.einsum("kjj->kj", moments.scatter))
    means = means + part.shift if part.imagined is not None else np.where(N > 0.0, moments.mean, np.nan)
    variances = np.where(variances > 0.0, variances, np.nan)  # a class of equal rows has no density: `refuse_unsupported` says so
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
    said: dict[str, Any] = {"prior": prior, "estimate": how, "fit_info": info, "incomplete": climb is not None}
    return BayesNet.of(known.dag(chained=kind.joint), known.variables, cpds, **said)


def from_incomplete(known: Labelled, kind: Kind, prior: Prior | None, how: Estimate) -> BayesNet:
    """The network that EM finds from the classes' own rows."""
    assert isinstance(known.rows, Data)
    name = known.target.name
    made = MixtureRows.of(known.rows.select(known.names)).mixture(known.target, kind, prior, how)
    mixture = replace(made, components=replace(made.components, data=known.rows, label=name))
    counts = known.rows.fold(_ClassShares(name, np.zeros(known.target.n_states)).count_classes)
    try:
        climb = Climb.at(mixture, mixture.start_from(_ClassShares(name, counts / counts.sum())))
        climb.run(TOLERANCE, MAX_ITER, lambda _: None)
    except CollapsedClass as collapse:
        raise FitError(f"the discriminant of {name!r} cannot be fitted by EM: {collapse}; give a prior") from None
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

    def count_classes(self, block: Block) -> Array:
        """How many rows of a block each class has."""
        return np.asarray(self(block).sum(axis=1))
