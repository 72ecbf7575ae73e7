"""Derivatives of A of any order: joint cumulants of the components of T, which are symmetric in their indices; plain arrays.

A symmetric array of `order` axes is known by its entries with sorted indices: `symmetric` asks for these, as rows of an array of
indices, and writes each wherever its indices stand in another order.

    two states     p⁽ⁿ⁾(η) = Σⱼ (−1)ʲ E(n, j) pʲ⁺¹ (1 − p)ⁿ⁻ʲ,   E(n, j) the Eulerian numbers
    more states    κ(S) = M(S) − Σ κ(R) M(S − R) over the R ⊂ S that hold the first of S,   M(S) = E[Π of S]
    normal         of m forms xᵀAx + bᵀx: sums over their orders (`of_quadratics`)

Speed 1983, Cumulants and partition lattices, Australian Journal of Statistics 25, p. 378; Graham, Knuth & Patashnik 1994,
Concrete Mathematics, § 6.2; Mathai & Provost 1992, Quadratic Forms in Random Variables, § 3.3.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, combinations_with_replacement
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.errors import ModelError, TooLarge, bytes_in_words, whole
from suffice.exponential.arithmetic.values import Array

AXES = 32
"""Arrays of every version of numpy may have so many axes."""

LARGEST = 2**28
"""Bytes that the answer may take."""

Indices = npt.NDArray[np.intp]


def checked_order(order: int, shape: tuple[int, ...], title: str) -> int:
    """The order of the derivatives, if their array can be held.

    >>> checked_order(3, (2,), "Normal")
    3
    """
    most = AXES - len(shape[:-1])
    if whole(order, "the order of cumulants", 1) > most:
        raise ModelError(f"the order of cumulants is at most {most} here, one axis of an array each; not {order}")
    size = 8.0 * float(np.prod(shape[:-1])) * float(max(shape[-1], 1)) ** order
    if size > LARGEST:
        raise TooLarge(f"the cumulants of {title} of order {order} are {shape[-1]:,}^{order} numbers, {bytes_in_words(size)}")
    return order


def symmetric(k: int, order: int, entries: Callable[[Indices], Array]) -> Array:
    """The array (..., k, …, k) whose entries with sorted indices, one row of indices each, are the last axis of `entries`.

    >>> symmetric(2, 2, lambda at: at.sum(axis=1) * 1.0)
    array([[0., 1.],
           [1., 2.]])
    """
    at = np.array(list(combinations_with_replacement(range(k), order)), dtype=np.intp)
    cells = np.indices((k,) * order, dtype=np.uint16).reshape(order, -1)
    cells.sort(axis=0)
    where = np.searchsorted(_keys(at.T, k), _keys(cells, k)).reshape((k,) * order)
    return np.asarray(entries(at)[..., where])


def _keys(indices: npt.NDArray[Any], k: int) -> npt.NDArray[np.int64]:
    """Indices (order, n) as one number each; in the order in which sorted ones are listed."""
    key = np.zeros(indices.shape[1], dtype=np.int64)
    for index in indices:
        key *= k
        key += index
    return key


def single(values: Array, order: int) -> Array:
    """The same with k = 1: as many axes of length 1 as the order says.

    >>> single(np.array(2.5), 3).shape
    (1, 1, 1)
    """
    return np.asarray(values).reshape(*np.shape(values), *(1,) * order)


def of_odds(p: Array, q: Array, n: int) -> Array:
    """The n-th derivative of p = 1/(1 + e⁻ˣ) by x, q = 1 − p; with p = −m and q = 1 + m, that of −m = −1/(e⁻ˣ − 1).

    >>> of_odds(np.array(0.25), np.array(0.75), 2).item()
    0.09375
    """
    terms = [(-1.0) ** j * eulerian(n, j) * p ** (j + 1) * q ** (n - j) for j in range(n)]
    return np.asarray(sum(terms))


def eulerian(n: int, j: int) -> float:
    """E(n, j), the number of orders of n things with j ascents.

    >>> [eulerian(4, j) for j in range(4)]
    [1.0, 11.0, 11.0, 1.0]
    """
    return float(sum((-1) ** i * comb(n + 1, i) * (j + 1 - i) ** n for i in range(j + 1)))


def of_one_draw(p: Array, order: int) -> Array:
    """The cumulants of the indicators of all states but the last, of one draw with the probabilities p (..., K)."""
    k = p.shape[-1] - 1
    rest = np.stack([np.delete(p, i, axis=-1).sum(axis=-1) for i in range(k)], axis=-1)
    if k == 1:
        return single(of_odds(p[..., 0], rest[..., 0], order - 1), order)
    # A state of more than half takes the place of "none of the others": no sum below is then the difference of large numbers.
    flipped = p[..., :-1] > 0.5
    return symmetric(k, order, lambda at: _by_subsets(_Indicators(p[..., :-1], rest, flipped, at), order))


class _Indicators:
    """E[Π] of sets of the positions of each row of indices."""

    def __init__(self, p: Array, rest: Array, flipped: npt.NDArray[np.bool_], at: Indices) -> None:
        self.at, self.flipped = at, flipped[..., at]
        self.p = np.where(self.flipped, rest[..., at], p[..., at])
        self.sign = np.where(self.flipped, -1.0, 1.0).prod(axis=-1)

    def moment(self, some: tuple[int, ...]) -> Array:
        """p of the only state; that of a plain one beside the complement of others; 0 of two plain ones that differ."""
        places = list(some)
        flipped, p, at = self.flipped[..., places], self.p[..., places], self.at[:, places]
        least = np.where(flipped, np.inf, at).min(axis=-1)
        most = np.where(flipped, -np.inf, at).max(axis=-1)
        plain = np.where(flipped, -np.inf, p).max(axis=-1)
        every = flipped.all(axis=-1)
        return np.where(every, p[..., 0], np.where(least == most, np.where(every, 0.0, plain), 0.0))


def _by_subsets(indicators: _Indicators, order: int) -> Array:
    """Cumulants of all positions, from those of fewer that hold the first."""
    everywhere = tuple(range(order))
    moments: dict[tuple[int, ...], Array] = {}
    found: dict[tuple[int, ...], Array] = {}
    for size in range(1, order + 1):
        for some in combinations(everywhere, size):
            moments[some] = indicators.moment(some)
    for size in range(1, order + 1):
        for others in combinations(everywhere[1:], size - 1):
            total = moments[0, *others].copy()
            for n in range(size - 1):
                for some in combinations(others, n):
                    total -= found[0, *some] * moments[tuple(i for i in others if i not in some)]
            found[0, *others] = total
    return np.asarray(found[everywhere] * indicators.sign)


def of_quadratics(mean: Array, covariance: Array, order: int) -> Array:
    """The cumulants of (x_i; x_i x_j for i ≤ j) of normal x, with mean (..., d) and covariance S (..., d, d).

    Each is a form xᵀAx + bᵀx; with c = b + 2Aμ, m of them have

        κ = 2^(m−1) Σ tr(A₁ S A S … A S) + 2^(m−3) Σ cᵀ S A S … A S c,

    the first sum over the orders of all but the first, the second over all orders. The sum of S A S … A S over the orders of a
    set grows by one form at a time, so that m forms cost m 2^m products of matrices.
    """
    d = mean.shape[-1]
    i, j = np.triu_indices(d)
    k = d + len(i)
    forms = np.zeros((k, d, d))
    forms[np.arange(d, k), i, j] += 0.5
    forms[np.arange(d, k), j, i] += 0.5
    linear = np.concatenate([np.eye(d), np.zeros((len(i), d))])
    slopes = linear + 2.0 * np.einsum("kab,...b->...ka", forms, mean)
    return symmetric(k, order, lambda at: _by_orders(forms[at], slopes[..., at, :], covariance[..., None, :, :], order))


def _by_orders(forms: Array, slopes: Array, S: Array, order: int) -> Array:
    """κ of each row of forms (rows, order, d, d) with slopes (..., rows, order, d)."""
    grown: dict[tuple[int, ...], Array] = {(): np.broadcast_to(S, (*slopes.shape[:-2], *S.shape[-2:]))}
    for size in range(1, order):
        for some in combinations(range(order), size):
            parts = (grown[tuple(i for i in some if i != last)] @ forms[:, last] @ S for last in some)
            grown[some] = np.asarray(sum(parts))
    cycles = np.einsum("rab,...rba->...r", forms[:, 0], grown[tuple(range(1, order))])
    paths = 0.0
    for a, b in combinations(range(order), 2):
        between = grown[tuple(i for i in range(order) if i not in (a, b))]
        paths = paths + 2.0 * np.einsum("...ra,...rab,...rb->...r", slopes[..., a, :], between, slopes[..., b, :])
    return np.asarray(2.0 ** (order - 1) * cycles + 2.0 ** (order - 3) * paths)
