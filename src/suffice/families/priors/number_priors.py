"""Priors of nodes that are numbers: Gaussians and counts, which imagine moments, and means where the variance is known."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from suffice.basis.variables import Count, Finite, Real, Variable
from suffice.errors import FitError
from suffice.errors.remedies import NUMBER_PRIORS, Remedy
from suffice.families.chosen.exponential_node import PoissonNode
from suffice.families.protocol.family import Array, Interval, Prior, PriorBelief, check_positive, is_number, split
from suffice.numerics.exponential.normals.normal import Normal
from suffice.numerics.exponential.normals.normal_known import NormalKnownVariance
from suffice.numerics.exponential.protocol.statistic import Centred
from suffice.statistics import Moments, Statistics

P = TypeVar("P", bound=Prior)
Numbers = Mapping[str, float] | float | None
"""One number for all nodes, some by name, or none."""


@dataclass(frozen=True, repr=False)
class NormalInverseGammaPrior(Prior):
    """`suffice.NormalInverseGamma`, a prior of Gaussian nodes: v ~ inverse gamma(df/2, scale/2), coefficients | v ~ normal.

    It imagines `count` rows at `mean`, in which the child does not hang on its parents: the scatter of a parent is `count`
    times its `variance`. The expected v is the child's `variance`, of which its parents, if it has any, leave the share
    `residual` (with a df up to 2, where v has no expectation, df takes the place of df − 2). Means and variances that are not
    given are those of the data to which the prior is bound. So the default says: one row's worth of doubt about each
    coefficient, three about the variance, and a good guess is that the parents explain nine tenths of it.

    >>> NormalInverseGammaPrior(count=2.0)
    NormalInverseGamma(count=2.0, df=3.0, mean=None, variance=None, residual=0.1)
    """

    worth = "count"
    word = "nig"
    types = ("NormalInverseGamma",)
    public_name = "NormalInverseGamma"
    after_colon = ("count", float)

    count: float = 1.0
    df: float = 3.0
    mean: Mapping[str, float] | float | None = None
    variance: Mapping[str, float] | float | None = None
    residual: float = 0.1

    def __post_init__(self) -> None:
        check_positive("the count of NormalInverseGamma", self.count)
        check_positive("the df of NormalInverseGamma", self.df)
        check_positive("the residual share of NormalInverseGamma", self.residual)
        _all_finite("the mean of NormalInverseGamma", self.mean)
        for variance in _values(self.variance):
            check_positive("the variance of NormalInverseGamma", variance)

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> NormalInverseGammaPrior:
        reals = sorted(n for n, v in variables.items() if not isinstance(v, Finite))
        return with_defaults(self, reals, statistics, mean=own_mean, variance=own_variance)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Moments | None:
        if not isinstance(child, Real):
            return None
        names = _numbers(child, parents)
        mean, variance = bound_numbers(self.mean, names, self), bound_numbers(self.variance, names, self)
        own = (self.df - 2.0 if self.df > 2.0 else self.df) * (self.residual if parents else 1.0)
        weight = np.array([self.count] * (len(names) - 1) + [own])
        return _imagined_moments(child, parents, self.count, self.df, mean, np.diag(weight * variance))


@dataclass(frozen=True)
class NormalWishart(Prior):
    """A prior of all real nodes together: precision ~ Wishart(df), mean | precision ~ normal with `count` imagined rows.

    With the defaults this is BGe: df = n + 2 for n real nodes, the imagined scatter t·I with
    t = count (df − n − 1) / (count + 1), the prior mean the sample mean. Score equivalent.

    >>> NormalWishart().count
    1.0
    """

    word = "bge"
    types = ("NormalWishart",)
    after_colon = ("count", float)

    count: float = 1.0
    df: float | None = None
    mean: Mapping[str, float] | float | None = None
    scale: float | None = None
    n: int | None = None

    def __post_init__(self) -> None:
        check_positive("the count of NormalWishart", self.count)
        _all_finite("the mean of NormalWishart", self.mean)
        if self.scale is not None:
            check_positive("the scale of NormalWishart", self.scale)

    @property
    def is_one_matrix(self) -> bool:
        return type(self) is NormalWishart

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> NormalWishart:
        reals = sorted(n for n, v in variables.items() if not isinstance(v, Finite))
        n = self.n if self.n is not None else len(reals)
        df = self.df if self.df is not None else float(n + 2)
        if df <= n - 1 or (self.scale is None and df <= n + 1):
            raise FitError(f"the df of NormalWishart must be above {n + 1} for {n} real variables, not {df:g}")
        scale = self.scale if self.scale is not None else self.count * (df - n - 1) / (self.count + 1)
        return replace(with_defaults(self, reals, statistics, mean=own_mean), df=df, scale=scale, n=n)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Moments | None:
        if not isinstance(child, Real):
            return None
        names = _numbers(child, parents)
        mean = bound_numbers(self.mean, names, self)
        assert self.df is not None
        assert self.n is not None
        assert self.scale is not None
        df = self.df - self.n + len(names)
        return _imagined_moments(child, parents, self.count, df, mean, self.scale * np.eye(len(names)))


BGe = NormalWishart


@dataclass(frozen=True, repr=False)
class GammaPrior(Prior):
    """`suffice.Gamma`, a prior of the rates of counts: `shape` imagined events in `rate` imagined rows, at each configuration of
    the parents.

    The expected rate of the count is shape/rate. A rate that is not given makes it the mean of the data to which the prior is
    bound: so the default is worth one event.

    >>> GammaPrior(2.0, 0.5)
    Gamma(shape=2.0, rate=0.5)
    """

    worth = "shape"
    word = "gamma"
    types = ("Gamma",)
    public_name = "Gamma"
    after_colon = ("shape", float)

    shape: float = 1.0
    rate: Mapping[str, float] | float | None = None

    def __post_init__(self) -> None:
        check_positive("the shape of Gamma", self.shape)
        for rate in _values(self.rate):
            check_positive("the rate of Gamma", rate)

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> GammaPrior:
        def default(m: Moments) -> float:
            return self.shape / (mean if (mean := own_mean(m)) > 0 else 1.0)

        counts = sorted(n for n, v in variables.items() if isinstance(v, Count))
        return with_defaults(self, counts, statistics, rate=default)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Moments | None:
        if not isinstance(child, Count) or not all(isinstance(p, Finite) for p in parents):
            return None
        rate = float(bound_numbers(self.rate, [child.name], self)[0])
        return PoissonNode().imagine_rows(child, parents, rate, np.array([self.shape / rate]))


@dataclass(frozen=True)
class KnownVariance(Prior):
    """Real nodes have the known `variance`, a number or {node: number}; their means, one for each configuration of their finite
    parents, are Normal(`mean`, `spread`): numbers, or {node: number}; where they are not given, mean and variance of the data to
    which the prior is bound. Of nodes with real parents it says nothing.

    >>> from suffice import K2, fit
    >>> rows = {"class": ["a", "a", "a", "b"], "y": [1.0, 2.0, 6.0, 8.0]}
    >>> bn = fit("class -> y", rows, prior=(K2(), KnownVariance(4.0, mean=0.0, spread=4.0)))
    >>> bn["y"].intercept, bn["y"].variance
    (array([2.25, 4.  ]), array([4., 4.]))
    >>> bn["y"].interval(0.95)["intercept"].lower.round(2)
    array([0.29, 1.23])
    """

    word = "known-variance"
    types = ("KnownVariance",)
    after_colon = ("variance", float)

    variance: Mapping[str, float] | float
    mean: Mapping[str, float] | float | None = None
    spread: Mapping[str, float] | float | None = None

    def __post_init__(self) -> None:
        for what in ("variance", "spread"):
            given = getattr(self, what)
            for node, value in given.items() if isinstance(given, Mapping) else [("", given)]:
                if value is not None or what == "variance":
                    check_positive(f"the {what} of KnownVariance{f' of {node!r}' if node else ''}", value)
        for value in self.mean.values() if isinstance(self.mean, Mapping) else [self.mean]:
            if value is not None and not (is_number(value) and np.isfinite(value)):
                raise FitError(f"the mean of KnownVariance is a finite number, or given by node, {{'y': 2.5}}, not {self.mean!r}")

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> KnownVariance:
        self.refuse_unknown_nodes(variables, self.variance, self.mean, self.spread)
        reals = sorted(n for n, v in variables.items() if isinstance(v, Real))
        return with_defaults(self, reals, statistics, mean=own_mean, spread=own_variance)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> MeanBelief | None:
        """What it holds of the means of a node; None of one with real parents, or whose variance is not known."""
        if not isinstance(child, Real) or not all(isinstance(p, Finite) for p in parents):
            return None
        if isinstance(self.variance, Mapping) and child.name not in self.variance:
            return None
        given = (self.mean, self.spread, self.variance)
        return MeanBelief(*(float(bound_numbers(numbers, [child.name], self)[0]) for numbers in given))


@dataclass(frozen=True)
class MeanBelief(PriorBelief):
    """Every mean of a node is Normal(mean, spread), and its rows Normal(that, variance):

        posterior     μ[u] ~ Normal((N ȳ/v + m/t) / p, 1/p),   p = N/v + 1/t

    So class means are shrunk towards m, by the more the fewer rows a class has. Posterior and evidence are those of
    `suffice.exponential.NormalKnownVariance`, side by side.
    """

    of: ClassVar[str] = "KnownVariance"
    instead: ClassVar[Remedy] = NUMBER_PRIORS

    mean: float
    spread: float
    variance: float

    def posterior(self, seen: Moments, n: int) -> Normal:
        """What is known of the mean of each of n configurations."""
        return Normal(self.mean, self.spread) + self._statistic(seen.at(np.arange(n)))

    def log_evidence(self, child: Variable, seen: Moments) -> float:
        return float(Normal(self.mean, self.spread).log_evidence(self._statistic(seen)).sum())

    def _statistic(self, seen: Moments) -> Centred:
        return Centred.of(NormalKnownVariance(self.variance), seen.spread, seen.count.shape)

    def log_prior(self, means: Array) -> float:
        """What EM adds to ln L, up to a constant."""
        return float(-0.5 * ((means - self.mean) ** 2).sum() / self.spread)

    def interval(self, seen: Moments, n: int, level: float) -> Interval:
        """The equal-tailed interval of each mean."""
        return self.posterior(seen, n).interval(level)

    def rescale(self, centre: float, scale: float) -> MeanBelief:
        """The same of (y − centre) / scale."""
        return MeanBelief((self.mean - centre) / scale, self.spread / scale**2, self.variance / scale**2)


def _values(given: Mapping[str, float] | float | None) -> list[float]:
    return [] if given is None else [float(v) for v in given.values()] if isinstance(given, Mapping) else [float(given)]


def _all_finite(name: str, given: Mapping[str, float] | float | None) -> None:
    if not np.all(np.isfinite(_values(given))):
        raise FitError(f"{name} must be finite numbers, not {given!r}")


def _numbers(child: Variable, parents: Sequence[Variable]) -> tuple[str, ...]:
    """The names of the numbers in a family, the child last."""
    return (*(p.name for p in split(parents)[1]), child.name)


def _imagined_moments(child: Variable, parents: Sequence[Variable], count: float, df: float, mean: Any, scatter: Any) -> Moments:
    """The same moments everywhere, without listing any."""
    names = _numbers(child, parents)
    everywhere = Moments((), names, [0], [count], [mean], [scatter], [df])  # type: ignore[arg-type]
    return everywhere.over(split(parents)[0])


def with_defaults(prior: P, names: Iterable[str], statistics: Statistics, **of_column: Callable[[Moments], float]) -> P:
    """The prior with numbers by name: those that are given, or what is made of the moments of their columns."""
    moments, filled = {n: statistics.moments((), [n]) for n in names}, dict[str, Any]()
    for field, default in of_column.items():
        given = getattr(prior, field)
        own = given if isinstance(given, Mapping) else dict.fromkeys(moments, given)
        filled[field] = {n: default(m) if own.get(n) is None else float(own[n]) for n, m in moments.items()}
    return replace(prior, **filled)  # type: ignore[type-var]


def bound_numbers(values: Numbers, names: Sequence[str], prior: Prior) -> Any:
    """The numbers of these names, which must have been given or filled."""
    if isinstance(values, Mapping):
        return np.array([values[n] for n in names])
    if values is None:
        raise FitError(f"{prior.title} takes its defaults from data; give them, or bind it with statistics first")
    return np.full(len(names), float(values))


def own_mean(m: Moments) -> float:
    """The mean of a column."""
    return float(m.mean[0, 0]) if len(m.keys) else 0.0


def own_variance(m: Moments) -> float:
    """The variance of a column; 1 of a constant column, whose mean is rounded, so that its variance is not always 0."""
    v = float(m.scatter[0, 0, 0] / m.count[0]) if len(m.keys) and m.count[0] > 0 else 0.0
    return v if v > (4.0 * np.finfo(float).eps * own_mean(m)) ** 2 else 1.0
