"""What a prior believes of the normal columns of a mixture: imagined moments of each column given those before it.

With κ, m₀, S₀, ν₀ the imagined moments of columns 1 … j (count, mean, scatter, df), c = (−b, 1), and a, b, v the intercept,
coefficients and variance of column j on those before it, the M-step maximises, besides the expected log-likelihood,

    −½ (ν₀ + e) ln v − ½ (cᵀ S₀ c + κ (c·m₀ − a)²) / v        e = −2 (Mean) or 3 + the number of coefficients b (Mode)

of which the posterior mean (or mode) that `fit` takes is the maximiser. Where classes share b and v, S₀ and ν₀ are imagined once,
κ and m₀ in each class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.errors import FitError
from suffice.families.family import Array, Estimate, Mode
from suffice.families.priors import Prior
from suffice.families.regression import NO_RESIDUAL, ROUNDING, regress
from suffice.statistics import Moments
from suffice.variables import Finite, Variable


@dataclass(frozen=True, eq=False)
class Belief:
    """The imagined moments of each column, one group per class, and which point of the posterior is wanted."""

    imagined: tuple[Moments, ...]
    how: Estimate

    @classmethod
    def of(
        cls,
        prior: Prior | None,
        how: Estimate,
        names: Sequence[str],
        variables: Mapping[str, Variable],
        hidden: Finite,
        chained: bool,
    ) -> Belief | None:
        """What the prior says, or None if it says nothing. `chained`: each column has those before it as parents."""
        if prior is None:
            return None
        found: list[Moments] = []
        for j, name in enumerate(names):
            parents = [hidden, *(variables[n] for n in names[:j] if chained)]
            said = prior.imagine(variables[name], parents)
            if not isinstance(said, Moments):
                return None
            found.append(said.at(np.arange(hidden.n_states)))
        return cls(tuple(found), how)

    def extra(self, n_means: int, n_coefficients: int) -> float:
        """e of the formula: what is added to df."""
        return 2.0 + n_means + n_coefficients if isinstance(self.how, Mode) else -2.0

    def joint(self, N: Array, mean: Array, scatter: Array, shift: Array, *, tied: bool) -> tuple[Array, Array]:
        """Means and roots of covariances, from counts, means and scatters of the classes."""
        new, root = np.zeros_like(mean), np.zeros_like(scatter)
        for j in range(len(self.imagined)):
            for group in _groups(len(N), tied):
                a, b, v = self.line(j, N[group], mean[group], scatter[group], shift)
                new[group, j] = a + new[group, :j] @ b
                root[group, j, :j] = np.einsum("i,kij->kj", b, root[group, :j, :j])
                root[group, j, j] = np.sqrt(v)
        return new, root

    def line(self, j: int, N: Array, mean: Array, scatter: Array, shift: Array) -> tuple[Array, Array, float]:
        """Intercepts, coefficients and variance of column j on those before it, in classes that share the last two."""
        d, said = j + 1, self.imagined[j]
        kappa, m0 = said.count[0], said.mean[0] - shift[:d]
        off = mean[:, :d] - m0
        S = said.scatter[0] + scatter[:, :d, :d].sum(axis=0) + np.einsum("k,ki,kj->ij", kappa * N / (kappa + N), off, off)
        r = regress(S, ROUNDING)
        if r.collinear is not None or not r.residual > NO_RESIDUAL * S[-1, -1]:
            name = said.reals[j if r.collinear is None else r.collinear]
            raise FitError(
                f"the data determines {name!r} from the other columns so closely that the prior is lost in rounding; "
                "rescale the columns, leave one out, or give a stronger prior"
            )
        df = positive(said.df[0] + N.sum() + self.extra(len(N), j), said.reals[j])
        at, b = m0 + off * (N / (kappa + N))[:, None], r.coefficients
        return at[:, j] - at[:, :j] @ b, b, float(r.residual / df)

    def log_joint(self, mean: Array, root: Array, shift: Array, *, tied: bool) -> float:
        """Σ of the formula at the top."""
        total = 0.0
        for j, said in enumerate(self.imagined):
            for group in _groups(len(mean), tied):
                first = group[0]
                c = np.append(-np.linalg.solve(root[first, :j, :j].T, root[first, j, :j]), 1.0)
                v, m0 = root[first, j, j] ** 2, said.mean[0] - shift[: j + 1]
                off = (mean[group, : j + 1] - m0) @ c
                total -= 0.5 * (said.df[0] + self.extra(len(group), j)) * np.log(v)
                total -= 0.5 * (c @ said.scatter[0] @ c + said.count[0] * (off @ off)) / v
        return float(total)

    def single(self, shift: Array) -> tuple[Array, Array, Array, Array]:
        """κ, m₀, S₀ and ν₀ + e of columns that have no other columns as parents."""
        kappa, df = (np.array([getattr(m, name)[0] for m in self.imagined]) for name in ("count", "df"))
        m0 = np.array([m.mean[0, 0] for m in self.imagined]) - shift
        return kappa, m0, np.array([m.scatter[0, 0, 0] for m in self.imagined]), df + self.extra(1, 0)


def positive(df: Any, name: str) -> Any:
    if not np.all(df > 0.0):
        raise FitError(f"the posterior mean of the variance of {name!r} does not exist; give the prior a df above 2")
    return df


def _groups(k: int, tied: bool) -> list[list[int]]:
    """Classes that share coefficients and variances."""
    return [list(range(k))] if tied else [[c] for c in range(k)]
