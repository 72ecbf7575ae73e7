"""Conditional Gaussians as distributions: p(y | u, x) = Normal(y; a[u] + b[u]·x, v[u]), fitted or written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError, listed
from suffice.families.family import Array, Columns, Cpd, Interval, checked_level, flat_index, split
from suffice.families.regression import ROUNDING, posteriors, regress
from suffice.statistics import Moments
from suffice.statistics.configurations import described, frozen, sizes
from suffice.variables import Variable

if TYPE_CHECKING:
    from suffice.exponential import StudentT
    from suffice.families.gaussian import LinearGaussian

LOG_2PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True)
class Gaussian:
    """A Gaussian written down by hand: `Gaussian(1.0, {"x": 2.0}, variance=0.5)` is Normal(1 + 2x, 0.5).

    With finite parents each number becomes an array with one axis per finite parent, in the order of the graph.

    >>> Gaussian(1.0, {"x": 2.0}, variance=0.5)
    Gaussian(intercept=1.0, coefficients={'x': 2.0}, variance=0.5)
    """

    intercept: Any = 0.0
    coefficients: Mapping[str, Any] = field(default_factory=dict)
    variance: Any = 1.0

    def bound(self, child: Variable, parents: Sequence[Variable]) -> ConditionalGaussian:
        """The CPD that these numbers make of a node and its parents; shapes and signs are checked."""
        finite, reals = split(parents)
        names = [p.name for p in reals]
        if set(self.coefficients) != set(names):
            given = listed(self.coefficients) or "none"
            raise ModelError(f"{child.name!r} needs coefficients of its real parents {listed(names) or '(none)'}, not of {given}")
        shape = sizes(finite)
        columns = [_spread(self.coefficients[n], shape, child, f"coefficient of {n!r}") for n in names]
        return ConditionalGaussian(
            child,
            tuple(parents),
            _spread(self.intercept, shape, child, "intercept"),
            np.stack(columns, axis=-1) if columns else np.zeros((*shape, 0)),
            _spread(self.variance, shape, child, "variance"),
        )


@dataclass(frozen=True, eq=False, repr=False)
class ConditionalGaussian(Cpd):
    """p(child | parents) = Normal(intercept[u] + coefficients[u]·x, variance[u]): arrays with one axis per finite parent u;
    the coefficients' last axis follows `real_parents`.
    """

    child: Variable
    parent_variables: tuple[Variable, ...]
    intercept: Array
    coefficients: Array
    variance: Array
    seen: Moments | None = None
    imagined: Moments | None = None

    arrays: ClassVar[tuple[str, ...]] = ("intercept", "coefficients", "variance")
    kind: ClassVar[str] = "Gaussian"

    def __post_init__(self) -> None:
        for name in ("intercept", "coefficients", "variance"):
            object.__setattr__(self, name, frozen(np.array(getattr(self, name), dtype=np.float64)))
        if np.any(self.variance <= 0.0) or np.any(np.isinf(self.variance)):
            raise ModelError(f"the variance of {self.child.name!r} must be a positive number")

    @property
    def family(self) -> LinearGaussian:
        from suffice.families.gaussian import LinearGaussian

        return LinearGaussian()

    @property
    def unsupported(self) -> npt.NDArray[np.bool_]:
        """For each configuration of the finite parents: whether it had no rows, or too few for an estimate."""
        return super().unsupported | (np.isnan(self.variance) & (self.seen is not None))

    def interval(self, level: float = 0.95) -> dict[str, Interval]:
        """Credible intervals of `intercept`, `coefficients` (Student t) and `variance` (inverse gamma)."""
        from scipy.special import chdtri, stdtrit

        tail = (1.0 - checked_level(level)) / 2.0
        posterior = self._posterior()
        shape, k = self.variance.shape, len(self.real_parents)
        half, ends = np.zeros((len(posterior.keys), 1 + k)), np.zeros((2, len(posterior.keys)))
        for g, _, r in posteriors(self.child, posterior):
            x, nu = posterior.mean[g, :-1], posterior.df[g]
            spread = np.array([1.0 / posterior.count[g] + x @ r.inverse @ x, *np.diag(r.inverse)])
            half[g] = stdtrit(nu, 1.0 - tail) * np.sqrt(r.residual / nu * spread)
            ends[:, g] = r.residual / chdtri(nu, tail), r.residual / chdtri(nu, 1.0 - tail)
        a, b = half[:, 0].reshape(shape), half[:, 1:].reshape(*shape, k)
        return {
            "intercept": Interval(self.intercept - a, self.intercept + a),
            "coefficients": Interval(self.coefficients - b, self.coefficients + b),
            "variance": Interval(ends[0].reshape(shape), ends[1].reshape(shape)),
        }

    def predictive(self, given: Mapping[str, object] | None = None) -> StudentT:
        """The Student t of the next child given its parents, parameters integrated out."""
        from suffice.exponential import StudentT

        given = given or {}
        g, posterior = self.configuration(given, "value"), self._posterior()
        r, nu = regress(posterior.scatter[g], ROUNDING), float(posterior.df[g])
        off = np.array([_number(given[p], p) for p in self.real_parents]) - posterior.mean[g, :-1]
        spread = 1.0 + 1.0 / posterior.count[g] + off @ r.inverse @ off
        location = posterior.mean[g, -1] + r.coefficients @ off
        return StudentT(nu, float(location), float(np.sqrt(r.residual / nu * spread)))

    def log_likelihood(self, statistic: Moments) -> float:
        """Σ ln p(y | u, x) from moments alone."""
        a, b, v = self._at(statistic.keys, statistic.count > 0)
        c = np.concatenate([-b, np.ones((len(b), 1))], axis=1)
        residual = np.einsum("gi,gij,gj->g", c, statistic.scatter, c)
        off = np.einsum("gi,gi->g", c, statistic.mean) - a
        terms = statistic.count * (LOG_2PI + np.log(v)) + (residual + statistic.count * off**2) / v
        return float(-0.5 * terms[statistic.count > 0].sum())

    def log_prob(self, columns: Columns) -> Array:
        y = columns[self.child.name]
        mean, v = self._mean(columns, len(y))
        return np.asarray(-0.5 * (LOG_2PI + np.log(v) + (y - mean) ** 2 / v))

    def draw(self, columns: Columns, rng: np.random.Generator, n: int) -> npt.NDArray[Any]:
        mean, v = self._mean(columns, n)
        return np.asarray(mean + np.sqrt(v) * rng.standard_normal(n))

    def without(self, values: Mapping[str, float]) -> ConditionalGaussian:
        """The distribution where some real parents are these numbers, which move into the intercept.

        It has no posterior: its moments speak of the parents that it no longer has.
        """
        at = np.array([values.get(p, 0.0) for p in self.real_parents])
        left = [i for i, p in enumerate(self.real_parents) if p not in values]
        parents = tuple(p for p in self.parent_variables if p.name not in values)
        intercept = self.intercept + self.coefficients @ at
        return ConditionalGaussian(self.child, parents, intercept, self.coefficients[..., left], self.variance)

    def _posterior(self) -> Moments:
        moments: Moments = self.posterior().at(np.arange(self.variance.size))
        return moments

    def _mean(self, columns: Columns, n: int) -> tuple[Array, Array]:
        rows = flat_index(columns, self.finite_parents, n)
        a, b, v = self._at(rows, np.ones(n, dtype=bool))
        for j, parent in enumerate(self.real_parents):
            a = a + b[:, j] * columns[parent]
        return a, v

    def _at(self, rows: npt.NDArray[np.int64], used: npt.NDArray[np.bool_]) -> tuple[Array, Array, Array]:
        """The parameters of each row's configuration; one that has none is refused by name."""
        variance = self.variance.reshape(-1)
        if np.isnan(variance).any():
            lost = np.isnan(variance[rows]) & used
            if lost.any():
                where = described(int(rows[np.argmax(lost)]), self.finite_parents)
                raise ModelError(f"{self.child.name!r} has no parameters at {where}: too few rows had it; fit with a prior")
        k = self.coefficients.shape[-1]
        return self.intercept.reshape(-1)[rows], self.coefficients.reshape(len(variance), k)[rows], variance[rows]

    def _numbers(self, limit: int) -> tuple[list[str], list[list[object]]]:
        n = self.variance.size
        columns = self.intercept.reshape(n, 1), self.coefficients.reshape(n, len(self.real_parents)), self.variance.reshape(n, 1)
        return ["intercept", *self.real_parents, "variance"], np.concatenate(columns, axis=1)[:limit].tolist()


def _number(value: Any, name: str) -> float:
    try:
        x = float(value)
    except (TypeError, ValueError):
        x = np.nan
    if not np.isfinite(x):
        raise ModelError(f"{name!r} is a real parent and needs a finite number, not {value!r}")
    return x


def _spread(value: Any, shape: tuple[int, ...], child: Variable, what: str) -> Array:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"the {what} of {child.name!r} must be a number, not {value!r}") from None
    if array.ndim and array.shape != shape:
        raise ModelError(f"the {what} of {child.name!r} needs the shape {shape}, one axis per finite parent, not {array.shape}")
    if not np.all(np.isfinite(array)):
        raise ModelError(f"the {what} of {child.name!r} must be a finite number")
    return np.array(np.broadcast_to(array, shape))
