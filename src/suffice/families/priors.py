"""Priors: each imagines a statistic for a child and its parents, and speaks only for the families it knows.

`bind(variables, statistics)` fills every default from the data, once per fit or search; the bound prior is kept on the model, so
that updating with more rows, and the chain rule of the evidence, hold for one and the same prior.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from suffice.errors import FitError
from suffice.families.family import split
from suffice.statistics import Counts, Moments, Statistics
from suffice.statistics.configurations import n_configurations
from suffice.variables import Count, Finite, Real, Variable

Node = tuple[Variable, Sequence[Variable], Any]
"""A child, its parents, and what was seen of them."""


class Prior:
    """What a prior can do. One of its own says `imagine`, and else only what it does in another way."""

    chooses: ClassVar[bool] = False
    """Whether it may leave numbers free, for the data to choose."""

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Node], statistics: Statistics) -> Any:
        """The prior with its free numbers chosen by the evidence of these nodes; `bind` then fills what was chosen."""
        return self

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> Any:
        """The prior with its defaults filled from the data."""
        return self

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Any:
        """The statistic that it imagines of a node; None where it has nothing to say."""
        raise NotImplementedError

    def believe(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Any:
        """What it holds of a node: the statistic that it imagines, or a belief of another kind. For a score it may depend on
        where there is data, as `seen` says."""
        return self.imagine(child, parents)


def _positive(name: str, value: object) -> None:
    if not (isinstance(value, (int, float, np.number)) and np.isfinite(value) and value > 0):
        raise FitError(f"{name} must be a positive number, not {value!r}")


def _values(given: Mapping[str, float] | float | None) -> list[float]:
    return [] if given is None else [float(v) for v in given.values()] if isinstance(given, Mapping) else [float(given)]


def _all_finite(name: str, given: Mapping[str, float] | float | None) -> None:
    if not np.all(np.isfinite(_values(given))):
        raise FitError(f"{name} must be finite numbers, not {given!r}")


def _imagined_counts(child: Variable, parents: Sequence[Variable], alpha: float) -> Counts | None:
    """The same count in every cell, without listing any."""
    finite = tuple(v for v in (*parents, child) if isinstance(v, Finite))
    if len(finite) != len(parents) + 1:
        return None
    return Counts(finite, np.zeros(0), np.zeros(0, dtype=np.int64), alpha)


@dataclass(frozen=True)
class Dirichlet(Prior):
    """`alpha` imagined rows in each cell of each table. Dirichlet(1) is Laplace's rule.

    >>> Dirichlet(0.5)
    Dirichlet(alpha=0.5)
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        _positive("alpha of Dirichlet", self.alpha)

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Counts | None:
        return _imagined_counts(child, parents, self.alpha)


@dataclass(frozen=True)
class K2(Prior):
    """One imagined row in each cell (Cooper & Herskovits 1992). Not score equivalent.

    >>> K2()
    K2()
    """

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Counts | None:
        return _imagined_counts(child, parents, 1.0)


@dataclass(frozen=True)
class BDeu(Prior):
    """`ess` imagined rows, spread evenly over the cells of each table (Buntine 1991). Score equivalent.

    >>> BDeu(10)
    BDeu(ess=10)
    """

    ess: float = 1.0

    def __post_init__(self) -> None:
        _positive("the equivalent sample size of BDeu", self.ess)

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Counts | None:
        cells = n_configurations(v for v in (*parents, child) if isinstance(v, Finite))
        return _imagined_counts(child, parents, self.ess / cells)


@dataclass(frozen=True)
class BDs(Prior):
    """`ess` imagined rows, spread evenly over the configurations of the parents that occur (Scutari 2016, PMLR 52, p. 438).

    Where data is sparse BDeu wastes imagined rows on configurations that never occur. Which do depends on the data, so this is
    for scores, `Evidence(BDs(1))`, not for `fit`. Not score equivalent.

    >>> BDs(10)
    BDs(ess=10)
    """

    ess: float = 1.0

    def __post_init__(self) -> None:
        _positive("the equivalent sample size of BDs", self.ess)

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Counts | None:
        raise FitError(
            "BDs imagines rows only where the data has some: it is a score, Evidence(BDs(1)), and no prior; fit with BDeu"
        )

    def believe(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Counts | None:
        """The imagined counts, given where there are real ones."""
        if seen is None:
            return self.imagine(child, parents)
        if not isinstance(seen, Counts) or not isinstance(child, Finite):
            return None
        keys, _ = seen.listed()
        occur = len(np.unique(keys // child.n_states))
        return _imagined_counts(child, parents, self.ess / (max(occur, 1) * child.n_states))


@dataclass(frozen=True)
class NormalInverseGamma(Prior):
    """A prior of Gaussian nodes: v ~ inverse gamma(df/2, scale/2), coefficients | v ~ normal.

    It imagines `count` rows at `mean`, in which the child does not hang on its parents: the scatter of a parent is `count`
    times its `variance`. The expected v is the child's `variance`, of which its parents, if it has any, leave the share
    `residual` (with a df up to 2, where v has no expectation, df takes the place of df − 2). Means and variances that are not
    given are those of the data to which the prior is bound. So the default says: one row's worth of doubt about each
    coefficient, three about the variance, and a good guess is that the parents explain nine tenths of it.

    >>> NormalInverseGamma(count=2.0).count
    2.0
    """

    count: float = 1.0
    df: float = 3.0
    mean: Mapping[str, float] | float | None = None
    variance: Mapping[str, float] | float | None = None
    residual: float = 0.1

    def __post_init__(self) -> None:
        _positive("the count of NormalInverseGamma", self.count)
        _positive("the df of NormalInverseGamma", self.df)
        _positive("the residual share of NormalInverseGamma", self.residual)
        _all_finite("the mean of NormalInverseGamma", self.mean)
        for variance in _values(self.variance):
            _positive("the variance of NormalInverseGamma", variance)

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> NormalInverseGamma:
        reals = _real_names(variables)
        moments = {r: statistics.moments((), [r]) for r in reals}
        mean = _filled(self.mean, reals, {r: _mean(m) for r, m in moments.items()})
        variance = _filled(self.variance, reals, {r: _variance(m) for r, m in moments.items()})
        return replace(self, mean=mean, variance=variance)

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Moments | None:
        if not isinstance(child, Real):
            return None
        names = _numbers(child, parents)
        mean, variance = _bound(self.mean, names, self), _bound(self.variance, names, self)
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

    count: float = 1.0
    df: float | None = None
    mean: Mapping[str, float] | float | None = None
    scale: float | None = None
    n: int | None = None

    def __post_init__(self) -> None:
        _positive("the count of NormalWishart", self.count)
        _all_finite("the mean of NormalWishart", self.mean)
        if self.scale is not None:
            _positive("the scale of NormalWishart", self.scale)

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> NormalWishart:
        reals = _real_names(variables)
        n = self.n if self.n is not None else len(reals)
        df = self.df if self.df is not None else float(n + 2)
        if df <= n - 1 or (self.scale is None and df <= n + 1):
            raise FitError(f"the df of NormalWishart must be above {n + 1} for {n} real variables, not {df:g}")
        scale = self.scale if self.scale is not None else self.count * (df - n - 1) / (self.count + 1)
        mean = _filled(self.mean, reals, {r: _mean(statistics.moments((), [r])) for r in reals})
        return replace(self, df=df, mean=mean, scale=scale, n=n)

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Moments | None:
        if not isinstance(child, Real):
            return None
        names = _numbers(child, parents)
        mean = _bound(self.mean, names, self)
        assert self.df is not None
        assert self.n is not None
        assert self.scale is not None
        df = self.df - self.n + len(names)
        return _imagined_moments(child, parents, self.count, df, mean, self.scale * np.eye(len(names)))


BGe = NormalWishart


@dataclass(frozen=True)
class Gamma(Prior):
    """A prior of the rates of counts: `shape` imagined events in `rate` imagined rows, at each configuration of the parents.

    The expected rate of the count is shape/rate. A rate that is not given makes it the mean of the data to which the prior is
    bound: so the default is worth one event.

    >>> Gamma(2.0, 0.5)
    Gamma(shape=2.0, rate=0.5)
    """

    shape: float = 1.0
    rate: Mapping[str, float] | float | None = None

    def __post_init__(self) -> None:
        _positive("the shape of Gamma", self.shape)
        for rate in _values(self.rate):
            _positive("the rate of Gamma", rate)

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> Gamma:
        counts = sorted(n for n, v in variables.items() if isinstance(v, Count))
        means = {n: _mean(statistics.moments((), [n])) for n in counts}
        return replace(self, rate=_filled(self.rate, counts, {n: self.shape / (m if m > 0 else 1.0) for n, m in means.items()}))

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Moments | None:
        if not isinstance(child, Count) or not all(isinstance(p, Finite) for p in parents):
            return None
        rate = float(_bound(self.rate, [child.name], self)[0])
        return _imagined_moments(child, parents, rate, rate, [self.shape / rate], np.zeros((1, 1)))


@dataclass(frozen=True)
class Several(Prior):
    """Several priors: the first that speaks for a family is heard."""

    priors: tuple[Any, ...]

    @property
    def chooses(self) -> bool:  # type: ignore[override]
        """Whether one of them does."""
        return any(p.chooses for p in self.priors)

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Node], statistics: Statistics) -> Several:
        """Each by the nodes that none before it speaks for."""
        if not self.chooses:
            return self
        left, parts = list(nodes), []
        for part in self.priors:
            parts.append(part.choose(variables, left, statistics))
            bound = parts[-1].bind(variables, statistics)
            left = [node for node in left if bound.believe(*node[:2]) is None]
        return Several(tuple(parts))

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> Several:
        return Several(tuple(p.bind(variables, statistics) for p in self.priors))

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Any:
        return _first(p.imagine(child, parents) for p in self.priors)

    def believe(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Any:
        return _first(p.believe(child, parents, seen) for p in self.priors)


def _first(answers: Iterable[Any]) -> Any:
    return next((a for a in answers if a is not None), None)


@dataclass(frozen=True)
class Written(Prior):
    """A prior that is written elsewhere, with no more than `bind` and `imagine`."""

    prior: Any

    def bind(self, variables: Mapping[str, Variable], statistics: Statistics) -> Written:
        return Written(self.prior.bind(variables, statistics))

    def imagine(self, child: Variable, parents: Sequence[Variable]) -> Any:
        return self.prior.imagine(child, parents)


def as_prior(prior: object) -> Prior | None:
    """One prior from what a user gives: a prior, several of them, or None."""
    if prior is None:
        return None
    if isinstance(prior, (list, tuple)):
        return Several(tuple(_checked(p) for p in prior))
    return _checked(prior)


def suitable(prior: Any, variables: Iterable[Variable], default: tuple[Any, ...]) -> Any:
    """The default prior, of states, numbers and counts, without the part that no variable needs; any other prior as it is.

    >>> default = (BDeu(1), NormalInverseGamma(), Gamma())
    >>> suitable(default, [Finite("x", ["a", "b"])], default), suitable(None, [], default)
    (BDeu(ess=1), None)
    """
    if not isinstance(prior, tuple) or prior != default:
        return prior
    kinds = {type(v) for v in variables}
    needed = tuple(p for p, kind in zip(default, (Finite, Real, Count), strict=True) if kind in kinds)
    return needed if len(needed) != 1 else needed[0]


def _checked(prior: object) -> Prior:
    if isinstance(prior, type):
        raise FitError(f"a prior is an object: write {prior.__name__}(), with its parameters, not the class")
    if not (hasattr(prior, "bind") and hasattr(prior, "imagine")):
        raise FitError(f"{prior!r} is not a prior; use Dirichlet, K2, BDeu, BDe, NormalInverseGamma, BGe or Gamma")
    return prior if isinstance(prior, Prior) else Written(prior)


def _numbers(child: Variable, parents: Sequence[Variable]) -> tuple[str, ...]:
    """The names of the numbers in a family, the child last."""
    return (*(p.name for p in split(parents)[1]), child.name)


def _imagined_moments(child: Variable, parents: Sequence[Variable], count: float, df: float, mean: Any, scatter: Any) -> Moments:
    """The same moments everywhere, without listing any; imagined counts have no Σ ln x!, which is a constant of the data."""
    names = _numbers(child, parents)
    k, counts = len(names), names if isinstance(child, Count) else ()
    base = np.zeros((1, len(counts)))
    everywhere = Moments((), names, [0], [count], [mean], [scatter], [df], None, None, counts, base)  # type: ignore[arg-type]
    none = np.zeros(0)
    empty = (none.astype(np.int64), none, np.zeros((0, k)), np.zeros((0, k, k)), none)
    return Moments(split(parents)[0], names, *empty, everywhere, counted=counts, log_base=base[:0])


def _real_names(variables: Mapping[str, Variable]) -> list[str]:
    return sorted(n for n, v in variables.items() if not isinstance(v, Finite))


def _filled(given: Mapping[str, float] | float | None, names: Iterable[str], default: Mapping[str, float]) -> dict[str, float]:
    if isinstance(given, Mapping):
        return {n: float(given[n]) if n in given else default[n] for n in names}
    return {n: default[n] if given is None else float(given) for n in names}


def _bound(values: Mapping[str, float] | float | None, names: Sequence[str], prior: object) -> Any:
    if isinstance(values, Mapping):
        return np.array([values[n] for n in names])
    if values is None:
        raise FitError(f"{type(prior).__name__} takes its defaults from data; give them, or bind it with statistics first")
    return np.full(len(names), float(values))


def _mean(m: Moments) -> float:
    return float(m.mean[0, 0]) if len(m.keys) else 0.0


def _variance(m: Moments) -> float:
    """1 of a constant column, whose mean is rounded, so that its variance is not always 0."""
    v = float(m.scatter[0, 0, 0] / m.count[0]) if len(m.keys) and m.count[0] > 0 else 0.0
    return v if v > (4.0 * np.finfo(float).eps * _mean(m)) ** 2 else 1.0
