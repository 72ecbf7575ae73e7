"""Partial pooling of numbers: a line for each group, drawn around a common one (a linear mixed model).

    y = x·β[u] + z·b[g] + e,    b[g] ~ Normal(0, σ² D),  e ~ Normal(0, σ²)        z = 1 and the parents whose slopes vary

u is the configuration of the other finite parents, which have lines of their own, and g the group. Of the rows in a group only
their products matter, so moments by configuration say all. With D = Λ Λᵀ and M[g] = Λᵀ (Σ z zᵀ) Λ + 1 the likelihood with b
integrated out is, at the best β and σ² for this Λ,

    −2 ln L = Σ ln |M[g]| + N (1 + ln 2π r/N),     r = min over β, b of Σ (y − x·β − z·Λb)² + Σ |b|²

and restricted to contrasts (REML) it has ln |Σ x xᵀ − …|, and N less the size of β, besides. The lines of groups are the means
of b given all rows: those of small groups are drawn towards the common line, those of groups without rows are it.

Bates, Mächler, Bolker & Walker 2015, Journal of Statistical Software 67(1), pp. 14–16.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.libraries import so
from suffice.basis.variables import Finite, Variable
from suffice.errors import FitError, listing, note
from suffice.errors.remedies import BY_BIC
from suffice.families.conditional_gaussian import SharedGaussian
from suffice.families.protocol.family import Array, PriorBelief, split
from suffice.numerics.exponential.normals.lines import ConjugateLines, independent
from suffice.statistics import Moments
from suffice.statistics.counts import sizes

ALIKE = 1e-8
"""A random effect whose variance is a smaller share of the residual's than this does not vary."""


class Effects(NamedTuple):
    """What the groups have in common, and how far they differ. `terms` name the random effects; `fixed` has the common line of
    each configuration of the other finite parents; `covariance` is that of the random effects, σ² D."""

    terms: tuple[str, ...]
    fixed: Array
    fixed_errors: Array
    covariance: Array
    variance: float
    log_likelihood: float
    restricted: bool


@dataclass(frozen=True, eq=False, repr=False)
class MixedGaussian(SharedGaussian):
    """A conditional Gaussian whose groups have lines drawn around a common one; `effects` has that, and how far they differ."""

    effects: Effects | None = None

    def posterior_lines(self) -> ConjugateLines:
        raise FitError(
            f"the lines of {self.child.name!r} are drawn around a common one, of which there is an estimate only: no intervals "
            "of single groups are known; effects.fixed_errors has those of the common line"
        )


@dataclass(frozen=True)
class RandomEffects(PriorBelief):
    """What `Partial()` holds of a number: its lines in the groups differ as normal draws do."""

    of: ClassVar[str] = "Partial"

    group: str
    slopes: tuple[str, ...] = ()
    restricted: bool = False

    def estimate(self, child: Variable, parents: Sequence[Variable], seen: Moments) -> MixedGaussian:
        """The lines of all groups."""
        finite, reals = split(parents)
        for name in self.slopes:
            if name not in [v.name for v in reals]:
                raise FitError(f"slopes names {name!r}, which is not a parent of {child.name!r} that is a number")
        products = _Products.of(self, finite, tuple(v.name for v in reals), seen)
        found = products.best(child.name, self.restricted)
        a, b, effects = products.lines(found, self)
        shape = sizes(finite)
        numbers = a.reshape(shape), b.reshape(*shape, len(reals)), np.full(shape, effects.variance)
        q = len(effects.terms)
        own = effects.fixed.size + q * (q + 1) // 2 + 1
        return MixedGaussian(child, tuple(parents), *numbers, seen, own=own, effects=effects)

    def log_evidence(self, child: Variable, seen: Moments) -> float:
        """There is none: the common line has a flat prior."""
        raise FitError(
            f"{child.name!r} is a number that is pooled in part, and the flat prior of its common line gives it no evidence: "
            f"score it with {BY_BIC}"
        )


class _Point(NamedTuple):
    """A Λ, and what follows from it."""

    root: Array
    deviance: float
    slope: Array
    beta: Array
    variance: float
    draws: Array
    inverse: Array


class _Products(NamedTuple):
    """Products of the columns z, x and y in each group; numbers are centred and scaled."""

    finite: tuple[Finite, ...]
    reals: tuple[str, ...]
    others: npt.NDArray[np.intp]
    """The configuration of the other finite parents in each configuration of all,"""
    groups: npt.NDArray[np.intp]
    """and the group."""
    centre: Array
    scale: Array
    ZZ: Array
    ZX: Array
    Zy: Array
    XX: Array
    Xy: Array
    yy: float
    weight: float

    @staticmethod
    def of(what: RandomEffects, finite: tuple[Finite, ...], reals: tuple[str, ...], seen: Moments) -> _Products:
        shape, names = sizes(finite), [v.name for v in finite]
        at, rest = names.index(what.group), [v.n_states for v in finite if v.name != what.group]
        codes = np.unravel_index(np.arange(int(np.prod(shape))), shape)
        others = [c for i, c in enumerate(codes) if i != at]
        u = np.ravel_multi_index(tuple(others), tuple(rest)) if others else np.zeros(len(codes[0]), np.intp)
        N, k, m = seen.count, len(reals), finite[at].n_states
        total = float(N.sum())
        centre = N @ (seen.mean + seen.rest) / total
        off = (seen.mean - centre) + seen.rest
        square = N @ off**2 + np.einsum("gii->i", seen.scatter)
        scale = np.sqrt(np.where(square > 0, square / total, 1.0))
        mean, scatter = off / scale, seen.scatter / scale[:, None] / scale
        # second moments of (1, numbers) in each configuration
        whole = np.zeros((len(N), k + 2, k + 2))
        whole[:, 0, 0], whole[:, 0, 1:] = N, N[:, None] * mean
        whole[:, 1:, 0], whole[:, 1:, 1:] = whole[:, 0, 1:], scatter + N[:, None, None] * mean[:, :, None] * mean[:, None, :]
        random = [0, *(1 + reals.index(s) for s in what.slopes)]
        line, n_u, keys = list(range(k + 1)), int(np.prod(rest)), seen.keys
        ZX, XX, Xy = np.zeros((m, len(random), n_u, k + 1)), np.zeros((n_u, k + 1, n_u, k + 1)), np.zeros((n_u, k + 1))
        ZZ, Zy = np.zeros((m, len(random), len(random))), np.zeros((m, len(random)))
        for key, part in zip(keys, whole, strict=True):
            g, v = int(codes[at][key]), int(u[key])
            ZZ[g] += part[np.ix_(random, random)]
            Zy[g] += part[random, -1]
            ZX[g, :, v] += part[np.ix_(random, line)]
            XX[v, :, v] += part[np.ix_(line, line)]
            Xy[v] += part[line, -1]
        p, yy = n_u * (k + 1), float(whole[:, -1, -1].sum())
        flat = (ZZ, ZX.reshape(m, -1, p), Zy, XX.reshape(p, p), Xy.reshape(p), yy, total)
        return _Products(finite, reals, u, codes[at], centre, scale, *flat)

    def best(self, child: str, restricted: bool) -> _Point:
        """The Λ of largest likelihood."""
        kept = np.flatnonzero(independent(self.XX, child))
        p, q = len(kept), self.ZZ.shape[1]
        if self.weight <= p or len(self.ZZ) < 2:
            raise FitError(
                f"{child!r} cannot be fitted: there are {self.weight:g} rows in {len(self.ZZ)} groups, too few to differ"
            )
        low = np.tril_indices(q)

        def at(theta: Array) -> _Point:
            root = np.zeros((q, q))
            root[low] = theta
            return self._at(root, kept, restricted, child)

        start = np.eye(q)[low]
        found = so.minimize(
            lambda t: ((x := at(t)).deviance, x.slope[low]), start, jac=True, method="BFGS", options={"gtol": 1e-9}
        )
        theta = found.x
        for _ in range(20):  # to the last digits: Newton steps with differences of slopes
            here = at(theta)
            H = np.array([at(theta + h).slope[low] - at(theta - h).slope[low] for h in 1e-5 * np.eye(len(theta))]) / 2e-5
            step = np.linalg.lstsq(0.5 * (H + H.T), here.slope[low], rcond=1e-10)[0]
            ahead = at(theta - step)
            if np.abs(step).max() < 1e-12 or not ahead.deviance <= here.deviance + 1e-9:
                break
            theta = theta - step
        best = at(theta)
        alike = np.flatnonzero(np.diag(best.root @ best.root.T) < ALIKE)
        same = ["the intercept" if i == 0 else "a slope" for i in alike.tolist()]
        if same:
            note(f"the groups of {child!r} do not differ in {listing(same, style='str')}: its random effect has the variance 0")
        return best

    def _at(self, root: Array, kept: npt.NDArray[np.intp], restricted: bool, child: str) -> _Point:
        """−2 ln L at Λ, less what does not change, and its slope by Λ."""
        A, B, c = self.ZZ, self.ZX[:, :, kept], self.Zy
        inverse = np.linalg.inv(root.T @ A @ root + np.eye(len(root)))
        LB, Lc = root.T @ B, c @ root
        W = inverse @ LB
        S = self.XX[np.ix_(kept, kept)] - np.einsum("gqp,gqr->pr", LB, W)
        rhs = self.Xy[kept] - np.einsum("gqp,gq->p", W, Lc)
        beta = np.linalg.solve(S, rhs)
        d = c - B @ beta
        v = np.einsum("gqr,gr->gq", inverse, d @ root)
        # Σ (y − xβ)² − Σ (Λᵀd)ᵀ M⁻¹ (Λᵀd)
        plain = self.yy - 2.0 * self.Xy[kept] @ beta + beta @ self.XX[np.ix_(kept, kept)] @ beta
        r = float(plain - np.sum((d @ root) * v))
        n = self.weight - (len(kept) if restricted else 0)
        if not r > 1e-12 * self.yy:
            raise FitError(f"{child!r} cannot be fitted: the lines of its groups leave nothing but rounding of it")
        AL = A @ root
        deviance = -float(np.linalg.slogdet(inverse)[1].sum()) + n * (1.0 + np.log(2.0 * np.pi * r / n))
        slope = 2.0 * np.einsum("gij,gjk->ik", AL, inverse)
        left = d - np.einsum("gij,gj->gi", AL, v)
        slope -= (n / r) * 2.0 * np.einsum("gi,gj->ij", left, v)
        if restricted:
            deviance += float(np.linalg.slogdet(S)[1])
            slope -= 2.0 * np.einsum("gip,pr,gjr->ij", B - AL @ W, np.linalg.inv(S), W)
        whole = np.zeros(len(self.Xy))
        whole[kept] = beta
        covariance = np.full((len(self.Xy),) * 2, np.nan)
        covariance[np.ix_(kept, kept)] = np.linalg.inv(S) * r / n
        return _Point(root, deviance, slope, whole, r / n, v @ root.T, covariance)

    def lines(self, found: _Point, what: RandomEffects) -> tuple[Array, Array, Effects]:
        """The line of each configuration in the units of the columns, and what is common to the groups."""
        k, y = len(self.reals), float(self.scale[-1])
        common = found.beta.reshape(-1, k + 1)
        T = np.zeros((k + 1, k + 1))  # from scaled to plain coefficients: the intercept takes up the centres
        T[0, 0], T[0, 1:] = y, -y * self.centre[:-1] / self.scale[:-1]
        T[1:, 1:] = np.diag(y / self.scale[:-1])
        random = [0, *(1 + self.reals.index(s) for s in what.slopes)]
        own = np.zeros((len(found.draws), k + 1))
        own[:, random] = found.draws
        every = (common[self.others] + own[self.groups]) @ T.T
        every[:, 0] += self.centre[-1]
        fixed = common @ T.T
        fixed[:, 0] += self.centre[-1]
        block = np.kron(np.eye(len(common)), T)
        errors = np.sqrt(np.diag(block @ np.nan_to_num(found.inverse) @ block.T)).reshape(fixed.shape)
        part = T[np.ix_(random, random)] @ found.root
        kept = np.isfinite(np.diag(found.inverse))
        n = self.weight - (kept.sum() if what.restricted else 0)
        log_likelihood = -0.5 * found.deviance - n * np.log(y)
        if what.restricted:  # the contrasts are those of the columns as they are
            log_likelihood -= float(np.tile(np.log([1.0, *self.scale[:-1]]), len(common))[kept].sum())
        covariance, variance = part @ part.T * found.variance, found.variance * y * y
        terms = ("intercept", *what.slopes)
        effects = Effects(terms, fixed, errors, covariance, variance, float(log_likelihood), what.restricted)
        return every[:, 0], every[:, 1:], effects
