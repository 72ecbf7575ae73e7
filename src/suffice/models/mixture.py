"""Mixtures: what a network says about numbers, Gaussians for real variables and Poisson distributions for a count.

What such an answer tells of one target follows from the weights of its components and their own moments, tails and quantiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from suffice.display import Rows, number
from suffice.errors import ModelError, listed
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.families.family import Interval, as_numbers, checked_level, frame
from suffice.inference.logs import log_sum
from suffice.inference.network import Array
from suffice.libraries import sc
from suffice.models.answers import Answer, Distribution, and_more, apart
from suffice.models.evidence import Known, in_words

CELLS = 2**22
"""Densities are found in blocks of about this many numbers."""


class NumberAnswer(Answer):
    """p(targets | given) of numbers; what it tells is a number, or of several targets an array in their order."""

    if TYPE_CHECKING:

        @property
        def names(self) -> tuple[str, ...]: ...
        @property
        def variance(self) -> Any: ...

    finite: Distribution | None = None
    asked: tuple[str, ...] = ()
    mean_interval: Interval | None = None

    def certain(self) -> NumberAnswer:
        """The same with an interval that has no width: what is observed needs no parameters."""
        return self

    @property
    def sd(self) -> Any:
        """The standard deviation."""
        return self._simple(np.sqrt(np.atleast_1d(self.variance)))

    def quantile(self, q: Any) -> Any:
        """The number below which a target lies with probability q."""
        raise NotImplementedError

    def interval(self, level: float = 0.95) -> tuple[Any, Any]:
        """The equal-tailed interval that holds a target with this probability, of a count at least."""
        tail = (1.0 - checked_level(level)) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

    def _simple(self, values: Any) -> Any:
        return float(values[0]) if len(self.names) == 1 else np.asarray(values)

    def _check_single(self, what: str) -> None:
        if len(self.names) > 1:
            raise ModelError(f"the answer is over {listed(self.names)} together, and a {what} is of one: ask for one at a time")

    def _given_state(self, state: Any) -> tuple[tuple[int, ...], float, dict[str, Any]]:
        """A state of the finite targets that were asked for besides: its codes, its probability, and what is given with it."""
        if self.finite is None:
            raise ModelError(f"the answer is over {listed(self.names)} alone: no finite target was asked for with it")
        codes = self.finite.codes(state)
        known = {v.name: v.states[c] for v, c in zip(self.finite.variables, codes, strict=True)}
        return codes, float(self.finite.probs[codes]), Known({**self.given, **known}, getattr(self.given, "done", {}))

    def _headline(self) -> str:
        return self._question(self.asked or (*self.names, *(self.finite.names if self.finite is not None else ())))


class ComponentMixture(NumberAnswer):
    """Σ weights · p(targets | component)."""

    weights: Array
    is_count = False

    def __len__(self) -> int:
        """The number of components."""
        return len(self.weights)

    @property
    def _moments(self) -> tuple[Array, Array]:
        """The mean and the variance of each component."""
        raise NotImplementedError

    @property
    def _each(self) -> Any:
        """The components of a single target, with `cdf`, `sf` and `ppf` as of scipy's distributions."""
        raise NotImplementedError

    def _log_each(self, points: Array) -> Array:
        """ln p(point | component): [points, components], of points with a number for each target."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """A number; for several targets an array in their order."""
        return self._simple(np.atleast_1d(self.weights @ self._moments[0]))

    @property
    def variance(self) -> Any:
        """Σ weights (variance + (mean − the mean of all)²) over the components."""
        means, variances = self._moments
        off = means - self.weights @ means
        return self._simple(np.atleast_1d(self.weights @ (variances + off * off)))

    def log_prob(self, x: Any) -> Any:
        """ln of the density, of a count of the probability, at a number or an array of numbers; of several targets, at arrays
        whose last axis are they.

        >>> round(Mixture(("x",), [1.0], [[0.0]], [[[1.0]]]).log_prob(0.0), 6)
        -0.918939
        """
        d = len(self.names)
        points = _numbers(x)[..., None] if d == 1 else _numbers(x)
        if points.ndim == 0 or points.shape[-1] != d:
            raise ModelError(f"a point is a number for each of {listed(self.names)}, not an array of shape {points.shape}")
        flat, step = points.reshape(-1, d), max(1, CELLS // (d * len(self)))
        with np.errstate(divide="ignore"):
            logs = [self._log_each(flat[i : i + step]) + np.log(self.weights) for i in range(0, max(1, len(flat)), step)]
        total = np.concatenate([log_sum(part, (1,)) for part in logs])
        return total.reshape(points.shape[:-1]) if points.ndim > 1 else float(total[0])

    def cdf(self, x: Any) -> Any:
        """P(target ≤ x) of a single target, at a number or an array of numbers."""
        self._check_single("cdf")
        points = _numbers(x)
        flat = np.array([self._tail(p, upper=False) for p in points.reshape(-1)])
        return flat.reshape(points.shape) if points.ndim else float(flat[0])

    def quantile(self, q: Any) -> Any:
        """The smallest number that the single target does not exceed with a probability of q at least."""
        self._check_single("quantile")
        shares = _numbers(q)
        if not ((shares >= 0.0) & (shares <= 1.0)).all():
            raise ModelError(f"a quantile is asked for at a probability from 0 to 1, not at {q!r}")
        flat = [self._quantile(float(p)) for p in shares.reshape(-1)]
        return np.array(flat).reshape(shares.shape) if shares.ndim else flat[0]

    def _tail(self, x: float, *, upper: bool) -> float:
        """P(target > x) or P(target ≤ x), each precise where it is small."""
        return float(self.weights @ (self._each.sf(x) if upper else self._each.cdf(x)))

    def _quantile(self, q: float) -> float:
        """Between the lowest and the highest of the components' own quantiles; the upper half by the upper tail."""
        ends = self._each.ppf(q)
        ends = np.maximum(ends, 0.0) if self.is_count else ends  # scipy has the quantile 0 of counts at −1
        low, high = float(ends.min()), float(ends.max())

        def excess(x: float) -> float:
            return self._tail(x, upper=False) - q if q <= 0.5 else (1.0 - q) - self._tail(x, upper=True)

        if not low < high < np.inf:
            found = high
        elif excess(low) >= 0.0:
            found = low
        elif self.is_count:
            while high - low > 1.0:
                middle = float(np.floor((low + high) / 2.0))
                low, high = (low, middle) if excess(middle) >= 0.0 else (middle, high)
            found = high
        elif excess(high) <= 0.0:
            found = high
        else:
            from scipy.optimize import brentq

            variances = self._moments[1]
            smallest = np.sqrt(variances[variances > 0].min(initial=(high - low) ** 2))
            found = float(brentq(excess, low, high, xtol=max(1e-15 * smallest, 1e-300), rtol=1e-15, maxiter=1000))
        return int(found) if self.is_count and np.isfinite(found) else found

    def _columns(self) -> dict[str, Array]:
        """What is shown of each component."""
        raise NotImplementedError

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        columns = self._columns()
        rows = list(zip(*(c[:limit].tolist() for c in columns.values()), strict=True))
        return [(list(columns), rows)], and_more(len(self) - limit, "component")

    def _headline(self) -> str:
        kind, ends = self._words()
        moments = f": mean {number(self.mean)}{ends}, sd {number(self.sd)}" if len(self.names) == 1 else ""
        return f"{super()._headline()}{kind}{moments}"

    def _words(self) -> tuple[str, str]:
        """What the title says of the kind of distribution, and after the mean."""
        return "", ""


@dataclass(frozen=True, eq=False, repr=False)
class Mixture(ComponentMixture):
    """p(targets | given) of real targets: Σ weights · Normal(means, covariances), a component per line of the arrays.

    With finite targets asked for beside them, `states` has those of each component, `finite` is their distribution, and
    `answer["yes"]` the mixture given a state. `mean_interval` has the ends of a credible interval of the mean, where the
    question asked for one; `how` says in words how the answer was found, `asked` all targets in the order of the question.

    >>> answer = Mixture(("x",), [0.25, 0.75], [[0.0], [4.0]], [[[1.0]], [[1.0]]])
    >>> answer.mean, answer.variance, round(answer.cdf(2.0), 6)
    (3.0, 4.0, 0.261375)
    >>> answer
    p(x), exact: mean 3, sd 2
    weight  mean  sd
    ──────  ────  ──
    0.25    0     1
    0.75    4     1
    """

    names: tuple[str, ...]
    weights: Array
    means: Array
    covariances: Array
    states: tuple[tuple[str, ...], ...] = ()
    finite: Distribution | None = None
    log_prob_of_evidence: float = 0.0
    mean_interval: Interval | None = None
    how: str = "exact"
    given: Mapping[str, object] = field(default_factory=dict)
    asked: tuple[str, ...] = ()

    def certain(self) -> Mixture:
        return replace(self, mean_interval=Interval(self.mean, self.mean))

    def __post_init__(self) -> None:
        names = (self.names,) if isinstance(self.names, str) else tuple(self.names)
        object.__setattr__(self, "names", names)
        m, d = np.shape(self.weights)[0] if np.ndim(self.weights) else 0, len(names)
        if not (m and d):
            raise ModelError("a mixture needs at least one target and one component")
        for name, shape in (("weights", (m,)), ("means", (m, d)), ("covariances", (m, d, d))):
            object.__setattr__(self, name, _shaped(getattr(self, name), shape, name))

    @property
    def variances(self) -> Array:
        """Those of the components: one number each for a single target, else one per target."""
        own = np.diagonal(self.covariances, axis1=1, axis2=2)
        return np.asarray(own[:, 0] if len(self.names) == 1 else own)

    @property
    def covariance(self) -> Array:
        """That of the targets: the mean of the components' covariances and the covariance of their means."""
        off = self.means - self.weights @ self.means
        return np.asarray(np.tensordot(self.weights, self.covariances, 1) + (off * self.weights[:, None]).T @ off)

    def __getitem__(self, state: Any) -> Mixture:
        """The mixture given a state of the finite target, or a tuple of states or a mapping where there are several.

        >>> from suffice import Finite
        >>> u = Distribution((Finite("u", ["no", "yes"]),), np.array([0.25, 0.75]))
        >>> answer = Mixture(("x",), [0.25, 0.75], [[0.0], [4.0]], [[[1.0]], [[1.0]]], (("no",), ("yes",)), u)
        >>> answer["yes"].mean, answer.finite["yes"]
        (4.0, 0.75)
        """
        _, share, given = self._given_state(state)
        states = {n: given[n] for n in self.finite.names} if self.finite is not None else {}
        if not share > 0:
            raise ModelError(f"{in_words(states)} has probability zero: there is no mixture given it")
        chosen = np.array([own == tuple(states.values()) for own in self.states])
        numbers = self.weights[chosen] / self.weights[chosen].sum(), self.means[chosen], self.covariances[chosen]
        log_prob = self.log_prob_of_evidence + float(np.log(share))
        return Mixture(self.names, *numbers, log_prob_of_evidence=log_prob, how=self.how, given=given)

    def to_frame(self) -> Any:
        """One row per component: states of the finite targets, weight, means, variances and covariances."""
        finite = self.finite.names if self.finite is not None else ()
        columns: dict[str, Any] = {name: [own[i] for own in self.states] for i, name in enumerate(finite)}
        numbers = self._numbers()
        return frame(columns | dict(zip(apart(columns, (n for n, _ in numbers)), (a for _, a in numbers), strict=True)))

    def _numbers(self) -> list[tuple[str, Array]]:
        """The columns of numbers of a frame, by names that need not differ."""
        weight = ("weight", self.weights)
        if len(self.names) == 1:
            return [weight, ("mean", self.means[:, 0]), ("variance", self.variances)]
        means = [(f"mean of {n}", self.means[:, i]) for i, n in enumerate(self.names)]
        variances = [(f"variance of {n}", self.variances[:, i]) for i, n in enumerate(self.names)]
        pairs = [(i, j) for i in range(len(self.names)) for j in range(i)]
        covariances = [(f"covariance of {self.names[j]}, {self.names[i]}", self.covariances[:, i, j]) for i, j in pairs]
        return [weight, *means, *variances, *covariances]

    @property
    def _moments(self) -> tuple[Array, Array]:
        return self.means, np.diagonal(self.covariances, axis1=1, axis2=2)

    @cached_property
    def _each(self) -> _Normals:
        return _Normals(self.means[:, 0], np.sqrt(self.variances))

    def _log_each(self, points: Array) -> Array:
        return _log_densities(points, self.means, self.covariances, self.names).T

    def _words(self) -> tuple[str, str]:
        return "", f" ({', '.join(number(float(np.ravel(e)[0])) for e in self.mean_interval)})" if self.mean_interval else ""

    def _targets(self) -> tuple[list[str], list[list[object]]]:
        """A line per target."""
        ends = [] if self.mean_interval is None else [np.ravel(e) for e in self.mean_interval]
        numbers = [self.mean, self.sd, *ends]
        rows: list[list[object]] = [[n, *(float(a[i]) for a in numbers)] for i, n in enumerate(self.names)]
        return ["node", "mean", "sd", *(["lower", "upper"] if ends else [])], rows

    def _components(self, limit: int) -> tuple[list[str], list[list[object]]]:
        """A line per component; of several targets a line per component and target."""
        finite = self.finite.names if self.finite is not None else ()
        several = len(self.names) > 1
        sd = np.sqrt(np.diagonal(self.covariances, axis1=1, axis2=2))
        rows: list[list[object]] = []
        for i in range(min(limit, len(self))):
            known = [*(self.states[i] if finite else ()), float(self.weights[i])]
            for j, name in enumerate(self.names):
                rows.append([*known, *([name] if several else []), float(self.means[i, j]), float(sd[i, j])])
        return [*finite, *apart(finite, ["weight", *(["node"] if several else []), "mean", "sd"])], rows

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], Rows]], str]:
        """Targets where there are several, components where they differ in what was asked for."""
        targets: list[tuple[list[str], Rows]] = [self._targets()] if len(self.names) > 1 else []
        if targets and self.finite is None:
            return targets, ""
        shown = max(1, limit // len(self.names))
        return [*targets, self._components(shown)], and_more(len(self) - shown, "component")


class _Normals(NamedTuple):
    """Normal distributions, of which some may have no variance, as scipy has them."""

    mean: Array
    sd: Array

    def cdf(self, x: float) -> Array:
        return np.asarray(sc.ndtr(self._z(x)))

    def sf(self, x: float) -> Array:
        return np.asarray(sc.ndtr(-self._z(x)))

    def ppf(self, q: float) -> Array:
        return np.asarray(self.mean + self.sd * sc.ndtri(q) if 0.0 < q < 1.0 else np.full(1, -np.inf if q == 0.0 else np.inf))

    def _z(self, x: float) -> Array:
        off = x - self.mean
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(self.sd > 0, off / self.sd, np.where(off >= 0, np.inf, -np.inf))


@dataclass(frozen=True, eq=False, repr=False)
class PoissonMixture(ComponentMixture):
    """p(count | given) = Σ weights · Poisson(rates), a component for each configuration of the count's finite parents.

    >>> answer = PoissonMixture("n", [0.25, 0.75], [1.0, 5.0])
    >>> answer.mean, answer.variance, round(answer[0], 6), answer.quantile(0.5)
    (4.0, 7.0, 0.097023, 4)
    >>> answer
    p(n), exact: mean 4, sd 2.646
    weight  rate
    ──────  ────
    0.25    1
    0.75    5
    """

    name: str
    weights: Array
    rates: Array
    log_prob_of_evidence: float = 0.0
    how: str = "exact"
    given: Mapping[str, object] = field(default_factory=dict)

    is_count = True

    def __post_init__(self) -> None:
        shape = np.shape(self.weights)
        if len(shape) != 1 or not shape[0] or np.shape(self.rates) != shape:
            raise ModelError("a mixture of Poisson distributions has a weight and a rate for each component")
        for name in ("weights", "rates"):
            object.__setattr__(self, name, _shaped(getattr(self, name), shape, name))

    @property
    def names(self) -> tuple[str, ...]:
        """The target."""
        return (self.name,)

    def __getitem__(self, n: int) -> float:
        """p(count = n)."""
        return float(np.exp(self.log_prob(n)))

    def __iter__(self) -> Any:
        raise ModelError("a count has no last value: ask for single probabilities, answer[0], or for quantiles")

    def quantile(self, q: Any) -> Any:
        """The smallest count that is not exceeded with a probability of q at least."""
        if np.any(np.asarray(q) == 1.0):
            raise ModelError(f"a quantile of a count is asked for at a probability from 0 up and below 1, not at {q!r}")
        return super().quantile(q)

    def to_frame(self) -> Any:
        """One row per component: its weight and its rate.

        >>> PoissonMixture("n", [0.25, 0.75], [1.0, 5.0]).to_frame().values.tolist()
        [[0.25, 1.0], [0.75, 5.0]]
        """
        return frame(self._columns())

    @property
    def _moments(self) -> tuple[Array, Array]:
        return self.rates, self.rates

    @cached_property
    def _each(self) -> Any:
        from scipy.stats import poisson

        return poisson(self.rates)

    def _log_each(self, points: Array) -> Array:
        return np.asarray(self._each.logpmf(points))

    def _columns(self) -> dict[str, Array]:
        return {"weight": self.weights, "rate": self.rates}


def _shaped(array: Any, shape: tuple[int, ...], name: str) -> Array:
    """The array as a read-only view."""
    view = np.asarray(array, np.float64).view()
    if view.shape != shape:
        raise ModelError(f"the {name} of a mixture have the shape {shape}, not {view.shape}")
    view.flags.writeable = False
    return view


def _numbers(x: Any) -> Array:
    refusal = f"the distribution of a number is asked about numbers, not {x!r}"
    array = as_numbers(x, refusal)
    if np.isnan(array).any():
        raise ModelError(refusal)
    return array


def _log_densities(points: Array, means: Array, covariances: Array, names: tuple[str, ...]) -> Array:
    """ln Normal(point; mean, covariance): [components, points]."""
    sd = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    if not sd.all():
        raise ModelError(
            f"the value of {listed(n for n, s in zip(names, sd.T, strict=True) if not s.all())} is known: it has no density"
        )
    try:
        root = np.linalg.cholesky(covariances / (sd[:, :, None] * sd[:, None, :]))
    except np.linalg.LinAlgError:
        raise ModelError(f"the targets {listed(names)} are collinear up to rounding: they have no density together") from None
    log_scale = np.log(sd).sum(axis=1) + np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
    with np.errstate(over="ignore", invalid="ignore"):
        z = np.linalg.solve(root, np.swapaxes((points[None] - means[:, None]) / sd[:, None], 1, 2))
        distance = np.nan_to_num((z * z).sum(axis=1), nan=np.inf, posinf=np.inf)
    return np.asarray(-0.5 * (distance + len(names) * LOG_2PI) - log_scale[:, None])
