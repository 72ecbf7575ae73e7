"""Mixtures of Gaussians: what a network says about real variables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from suffice.display import html_table, number, text_table
from suffice.errors import ModelError, listed
from suffice.families.family import Interval, checked_level, frame
from suffice.inference.logs import log_sum
from suffice.inference.network import Array
from suffice.models.answers import Distribution, and_more, apart
from suffice.models.evidence import code_of, in_words

LOG_2PI = float(np.log(2.0 * np.pi))

CELLS = 2**22
"""Densities are found in blocks of about this many numbers."""


@dataclass(frozen=True, eq=False, repr=False)
class Mixture:
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
    given: Mapping[str, Any] = field(default_factory=dict)
    asked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = (self.names,) if isinstance(self.names, str) else tuple(self.names)
        object.__setattr__(self, "names", names)
        m, d = np.shape(self.weights)[0] if np.ndim(self.weights) else 0, len(names)
        if not (m and d):
            raise ModelError("a mixture needs at least one target and one component")
        for name, shape in (("weights", (m,)), ("means", (m, d)), ("covariances", (m, d, d))):
            object.__setattr__(self, name, _shaped(getattr(self, name), shape, name))

    def __reduce__(self) -> tuple[object, ...]:
        # arrays come out of a pickle writeable; made anew they are not
        return Mixture, tuple(getattr(self, f.name) for f in fields(self))

    def __len__(self) -> int:
        """The number of components."""
        return len(self.weights)

    @property
    def variances(self) -> Array:
        """Those of the components: one number each for a single target, else one per target."""
        own = np.diagonal(self.covariances, axis1=1, axis2=2)
        return np.asarray(own[:, 0] if len(self.names) == 1 else own)

    @property
    def mean(self) -> Any:
        """A number; for several targets an array in their order."""
        return self._simple(self.weights @ self.means)

    @property
    def covariance(self) -> Array:
        """That of the targets: the mean of the components' covariances and the covariance of their means."""
        off = self.means - self.weights @ self.means
        return np.asarray(np.tensordot(self.weights, self.covariances, 1) + (off * self.weights[:, None]).T @ off)

    @property
    def variance(self) -> Any:
        """A number; for several targets an array in their order."""
        off = self.means - self.weights @ self.means
        return self._simple(self.weights @ (np.diagonal(self.covariances, axis1=1, axis2=2) + off * off))

    @property
    def sd(self) -> Any:
        """The standard deviation: a number; for several targets an array in their order."""
        return self._simple(np.sqrt(np.atleast_1d(self.variance)))

    def __getitem__(self, state: Any) -> Mixture:
        """The mixture given a state of the finite target, or a tuple of states or a mapping where there are several.

        >>> from suffice.variables import Finite
        >>> u = Distribution((Finite("u", ["no", "yes"]),), np.array([0.25, 0.75]))
        >>> answer = Mixture(("x",), [0.25, 0.75], [[0.0], [4.0]], [[[1.0]], [[1.0]]], (("no",), ("yes",)), u)
        >>> answer["yes"].mean, answer.finite["yes"]
        (4.0, 0.75)
        """
        if self.finite is None:
            raise ModelError(f"the answer is over {listed(self.names)} alone: no finite target was asked for with it")
        names, states = self.finite.names, self._in_order(state)
        if not self.finite[state] > 0:
            raise ModelError(
                f"{in_words(dict(zip(names, states, strict=True)))} has probability zero: there is no mixture given it"
            )
        chosen = np.array([own == states for own in self.states])
        return Mixture(
            self.names,
            self.weights[chosen] / self.weights[chosen].sum(),
            self.means[chosen],
            self.covariances[chosen],
            log_prob_of_evidence=self.log_prob_of_evidence + float(np.log(self.finite[state])),
            how=self.how,
            given={**self.given, **dict(zip(self.finite.names, states, strict=True))},
        )

    def log_prob(self, x: Any) -> Any:
        """The log-density at a number or an array of numbers; of several targets, at arrays whose last axis are they.

        >>> round(Mixture(("x",), [1.0], [[0.0]], [[[1.0]]]).log_prob(0.0), 6)
        -0.918939
        """
        points, d = _numbers(x), len(self.names)
        if d == 1:
            points = points[..., None]
        if points.ndim == 0 or points.shape[-1] != d:
            raise ModelError(f"a point is a number for each of {listed(self.names)}, not an array of shape {points.shape}")
        flat = points.reshape(-1, d)
        total = np.full(len(flat), -np.inf)
        step = max(1, CELLS // max(1, flat.size))
        for start in range(0, len(self), step):
            some = slice(start, start + step)
            logs = _log_densities(flat, self.means[some], self.covariances[some], self.names)
            total = np.logaddexp(total, log_sum(logs + np.log(self.weights[some])[:, None], (0,)))
        return total.reshape(points.shape[:-1]) if points.ndim > 1 else float(total[0])

    def cdf(self, x: Any) -> Any:
        """P(target ≤ x) of a single target, at a number or an array of numbers.

        >>> Mixture(("x",), [1.0], [[2.0]], [[[1.0]]]).cdf([2.0, np.inf])
        array([0.5, 1. ])
        """
        self._check_single("cdf")
        points = _numbers(x)
        flat = np.array([self._tail(p, upper=False) for p in points.reshape(-1)])
        return flat.reshape(points.shape) if points.ndim else float(flat[0])

    def quantile(self, q: Any) -> Any:
        """The number below which the single target lies with probability q.

        >>> round(Mixture(("x",), [0.5, 0.5], [[-9.0], [9.0]], [[[1.0]], [[1.0]]]).quantile(0.25), 6)
        -9.0
        """
        self._check_single("quantile")
        shares = _numbers(q)
        if not ((shares >= 0.0) & (shares <= 1.0)).all():
            raise ModelError(f"a quantile is asked for at a probability from 0 to 1, not at {q!r}")
        flat = np.array([self._quantile(float(p)) for p in shares.reshape(-1)])
        return flat.reshape(shares.shape) if shares.ndim else float(flat[0])

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The equal-tailed interval that holds the single target with this probability.

        >>> [round(end, 4) for end in Mixture(("x",), [1.0], [[0.0]], [[[1.0]]]).interval(0.95)]
        [-1.96, 1.96]
        """
        tail = (1.0 - checked_level(level)) / 2.0
        return self.quantile(tail), self.quantile(1.0 - tail)

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

    def _in_order(self, state: Any) -> tuple[str, ...]:
        assert self.finite is not None
        if isinstance(state, Mapping):
            state = tuple(state.get(n) for n in self.finite.names)
        listed_states = state if isinstance(state, tuple) else (state,)
        return tuple(v.states[code_of(v, s)] for v, s in zip(self.finite.variables, listed_states, strict=False))

    def _simple(self, values: Array) -> Any:
        return float(values[0]) if len(self.names) == 1 else np.asarray(values)

    def _check_single(self, what: str) -> None:
        if len(self.names) > 1:
            raise ModelError(f"the answer is over {listed(self.names)} together, and a {what} is of one: ask for one at a time")

    def _tail(self, x: float, *, upper: bool) -> float:
        """P(target > x) or P(target ≤ x), each precise where it is small."""
        from scipy.special import ndtr

        sd, off = np.sqrt(self.variances), x - self.means[:, 0]
        with np.errstate(divide="ignore", invalid="ignore"):
            z = np.where(sd > 0, off / sd, np.where(off >= 0, np.inf, -np.inf))
        return float(self.weights @ ndtr(-z if upper else z))

    def _quantile(self, q: float) -> float:
        """Between the lowest and the highest of the components' own quantiles; the upper half by the upper tail."""
        from scipy.optimize import brentq
        from scipy.special import ndtri

        sd = np.sqrt(self.variances)
        if q in (0.0, 1.0):
            return -np.inf if q == 0.0 else np.inf
        ends = self.means[:, 0] + sd * ndtri(q)
        low, high = float(ends.min()), float(ends.max())

        def excess(x: float) -> float:
            return self._tail(x, upper=False) - q if q <= 0.5 else (1.0 - q) - self._tail(x, upper=True)

        if low == high or excess(low) >= 0:
            return low
        if excess(high) <= 0:
            return high
        smallest = sd[sd > 0].min(initial=high - low)
        return float(brentq(excess, low, high, xtol=max(1e-15 * smallest, 1e-300), rtol=1e-15, maxiter=1000))

    def _title(self) -> str:
        given = f" | {in_words(self.given)}" if self.given else ""
        finite = self.finite.names if self.finite is not None else ()
        short = ""
        if len(self.names) == 1:
            ends = f" ({', '.join(number(float(np.ravel(e)[0])) for e in self.mean_interval)})" if self.mean_interval else ""
            short = f": mean {number(self.mean)}{ends}, sd {number(self.sd)}"
        return f"p({', '.join(self.asked or (*self.names, *finite))}{given}), {self.how}{short}"

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

    def _tables(self, limit: int) -> tuple[list[tuple[list[str], list[list[object]]]], int]:
        """What is shown: targets where there are several, components where they differ in what was asked for; those left out."""
        targets = [self._targets()] if len(self.names) > 1 else []
        if targets and self.finite is None:
            return targets, 0
        shown = max(1, limit // len(self.names))
        return [*targets, self._components(shown)], len(self) - shown

    def __repr__(self) -> str:
        tables, left_out = self._tables(32)
        return f"{self._title()}\n" + "\n\n".join(text_table(*t) for t in tables) + and_more(left_out, "component")

    def _repr_html_(self) -> str:
        (first, *rest), _ = self._tables(64)
        return html_table(*first, caption=self._title()) + "".join(html_table(*t) for t in rest)


def _shaped(array: Any, shape: tuple[int, ...], name: str) -> Array:
    """The array as a read-only view."""
    view = np.asarray(array, np.float64).view()
    if view.shape != shape:
        raise ModelError(f"the {name} of a mixture have the shape {shape}, not {view.shape}")
    view.flags.writeable = False
    return view


def _numbers(x: Any) -> Array:
    try:
        array = np.asarray(x, np.float64)
    except (TypeError, ValueError):
        array = np.array(np.nan)
    if np.isnan(array).any():
        raise ModelError(f"a mixture over real variables is asked about numbers, not {x!r}")
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
