"""How sequences begin: the distribution of the first slices, before all lags exist."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.basis.arrays import Array
from suffice.errors import FitError, ModelError
from suffice.errors.remedies import DIFFUSE, FREE, STATIONARY

UNIT = 1e-9
"""An eigenvalue this near to 1 is 1."""


@dataclass(frozen=True)
class Free:
    """The first slices have distributions of their own, without the parents that do not exist yet.

    >>> Free()
    Free()
    """


@dataclass(frozen=True)
class Stationary:
    """A sequence begins as if it had always been running: with the distribution that the transition settles to.

    >>> Stationary()
    Stationary()
    """


@dataclass(frozen=True)
class Diffuse:
    """Hidden or missing numbers begin anywhere: with a variance κ without bound; the likelihood is the exact limit of
    ln L + ½ ln κ for each of them.

    κ is in the units of the number. Where what the first steps show depends on it by a coefficient that is learned, the limit
    grows without end as that goes to 0: fix the coefficient, `fixed={"y": ["coefficients"]}`, or use `Free()`.

    >>> Diffuse()
    Diffuse()
    """


@dataclass(frozen=True, eq=False)
class Given:
    """The first slices have these distributions, which stay as they are: those of a chain, or by node, `{"state": [0.5, 0.5]}`.

    >>> Given({"state": [0.5, 0.5]})
    Given({'state': [0.5, 0.5]})
    """

    cpds: Any

    def __repr__(self) -> str:
        return f"Given({self.cpds!r})"

    def __str__(self) -> str:
        return "Given(...)"


First = Free | Stationary | Diffuse | Given


def checked_first(first: Any) -> First:
    """Free() where nothing is said."""
    how = Free() if first is None else first
    if not isinstance(how, (Free, Stationary, Diffuse, Given)):
        raise FitError(f"first is {FREE}, {STATIONARY}, {DIFFUSE} or Given(...), not {first!r}")
    return how


def stationary(matrix: Array) -> Array:
    """The distribution that a matrix of transitions keeps: π = π M. One that keeps several is refused."""
    K = len(matrix)
    if np.linalg.matrix_rank(np.eye(K) - matrix, tol=UNIT) < K - 1:
        raise ModelError(
            f"{STATIONARY} needs one distribution that the transition settles to, and this one keeps several: some states never "
            f"reach the others; use {FREE}"
        )
    A = np.vstack([np.eye(K) - matrix.T, np.ones(K)])
    pi = np.linalg.lstsq(A, np.concatenate([np.zeros(K), [1.0]]), rcond=None)[0]
    pi = np.maximum(pi, 0.0)
    return np.asarray(pi / pi.sum())


def pull_of_start(matrix: Array, pi: Array, counts: Array) -> Array:
    """M · ∂ (Σ counts ln π) / ∂M: how a transition's logarithms move the likelihood of starts that are stationary. With Z = (I −
    M + 1 π)⁻¹ and g = counts / π it is M[s, s'] π[s] (Z g)[s'] (Schweitzer 1968, Journal of Applied Probability 5, p. 401)."""
    g = np.divide(counts, pi, out=np.zeros_like(counts), where=counts > 0)
    pull = np.linalg.solve(np.eye(len(pi)) - matrix + pi[None, :], g)
    return np.asarray(pi[:, None] * matrix * pull[None, :])
