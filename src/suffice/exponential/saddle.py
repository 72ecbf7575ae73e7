"""Probabilities of counts that keep their digits where the counts are large.

At n = 1e9 the logs of n! and of its like are 2e10, and their differences end at 4e-6. So every probability here is made of

    ln Pois(x; m) = x ln m − m − ln x! = −D(x, m) − S(x) − ½ ln 2πx,   D(x, m) = x ln(x/m) − x + m

S being what Stirling's formula leaves of ln x!. Both D and S have all their digits. For numbers x ≥ 0 that need not be whole:

    Binomial(x; n, p)               Pois(x; np) Pois(n − x; n(1 − p)) / Pois(n; n)
    NegativeBinomial(x; a, p)       a/(a + x) Binomial(a; a + x, p)

Loader 2000, Fast and Accurate Computation of Binomial Probabilities.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from suffice.exponential.special import HALF_LOG_2PI, LARGE, log_gamma_step, stirling_rest
from suffice.exponential.statistic import Array

NEAR = 0.1
"""Where x and m differ by less than this part of their sum, the series of D is shorter than its rounding."""

TINY = 1e-290
"""Below, a double has not all its digits, or soon not."""


def deviance(x: Any, m: Any, gap: Any = None) -> Array:
    """D(x, m) = x ln(x/m) − x + m ≥ 0 of two numbers from 0 up: inf where m is 0 and x is not, m where x is 0.

    `gap` is x − m, if it is known better than to the rounding of x and m.

    >>> deviance([1e8, 0.0, 2.0], [1e8 + 1.0, 2.0, 0.0])
    array([4.99999997e-09, 2.00000000e+00,            inf])
    """
    x, m = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(m, dtype=np.float64))
    gap = x - m if gap is None else gap
    near = np.abs(gap) < NEAR * (x + m)
    a, b, step = np.where(near, x, 1.0), np.where(near, m, 1.0), np.where(near, gap, 0.0)
    v = step / (a + b)
    # x ln(x/m) = 2x artanh v; the first term of its series is taken together with m − x.
    series, power = step * v, a * v
    for k in range(3, 21, 2):
        power = power * v * v
        series = series + 2.0 * power / k
    positive = np.where((x > 0.0) & ~near, x, 1.0)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        far = np.where(x > 0.0, positive * (np.log(positive) - np.log(m)) - x + m, m)
    return np.asarray(np.where(near, series, np.where(m == np.inf, np.inf, far)))


def log_poisson(x: Any, m: Any, log_m: Any = None) -> Array:
    """x ln m − m − ln Γ(x + 1), for x ≥ 0 and m ≥ 0; at m = 0 only x = 0 is possible.

    `log_m` is ln m, if it is known also where m is below the range of doubles.

    >>> log_poisson([1e9, 0.0, 1.0], [1e9, 0.0, 0.0])
    array([-11.28057145,   0.        ,         -inf])
    """
    from scipy.special import gammaln, xlogy

    x, m = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(m, dtype=np.float64))
    large = x >= LARGE
    few, many = np.where(large, 1.0, x), np.where(large, x, LARGE)
    direct = xlogy(few, m) - m - gammaln(few + 1.0)
    saddle = -deviance(many, m) - stirling_rest(many) - HALF_LOG_2PI - 0.5 * np.log(many)
    answer = np.asarray(np.where(large, saddle, direct))
    return answer if log_m is None else np.where(m < TINY, x * log_m - m - gammaln(x + 1.0), answer)


def log_binomial(x: Any, n: Any, p: Any, q: Any) -> Array:
    """ln [Γ(n+1) / Γ(x+1) Γ(n−x+1)] pˣ qⁿ⁻ˣ, 0 ≤ x ≤ n. q = 1 − p is a word of its own: it may be known better than that.

    >>> log_binomial([5e8, 0.0], [1e9, 3.0], [0.5, 0.0], [0.5, 1.0])
    array([-10.58742427,   0.        ])
    """
    x, n = np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64)
    return np.asarray(log_poisson(x, n * p) + log_poisson(n - x, n * q) - log_poisson(n, n))


def log_negative_binomial(x: Any, shape: Any, p: Any, q: Any) -> Array:
    """ln [Γ(a+x) / Γ(a) Γ(x+1)] pᵃ qˣ, a = shape > 0, x ≥ 0.

    >>> np.exp(log_negative_binomial([0.0, 1.0], 2.0, 0.5, 0.5))
    array([0.25, 0.25])
    """
    x, a = np.asarray(x, dtype=np.float64), np.asarray(shape, dtype=np.float64)
    return np.asarray(np.log(a) - np.log(a + x) + log_binomial(a, a + x, p, q))


def log_beta(alpha: Any) -> Array:
    """ln B(α) = Σ ln Γ(αᵢ) − ln Γ(Σα) along the last axis, α > 0: one that is large beside the others costs no digits.

    >>> log_beta([[2.0, 1.0], [2.0, 1e12]])
    array([ -0.69314718, -55.26204223])
    """
    from scipy.special import gammaln

    ordered = np.sort(np.asarray(alpha, dtype=np.float64), axis=-1)
    rest = ordered[..., :-1]
    return np.asarray(gammaln(rest).sum(axis=-1) - log_gamma_step(ordered[..., -1], rest.sum(axis=-1)))


def log_multinomial(x: Any) -> Array:
    """ln (Σx)!/Π xᵢ! along the last axis, x ≥ 0, not only whole.

    >>> np.exp(log_multinomial([2.0, 1.0, 1.0])).round(9)
    np.float64(12.0)
    """
    from scipy.special import gammaln

    ordered = np.sort(np.asarray(x, dtype=np.float64), axis=-1)
    rest = ordered[..., :-1]
    return np.asarray(log_gamma_step(ordered[..., -1] + 1.0, rest.sum(axis=-1)) - gammaln(rest + 1.0).sum(axis=-1))


def log_polya(x: Any, alpha: Any) -> Array:
    """ln n!/Π xᵢ! B(α + x)/B(α), n = Σx, along the last axis: the probability of counts x under Dirichlet(α).

    They are independent negative binomial counts whose sum is known to be n, whatever the rate of those: at the rate A/n, A = Σα,
    no term is large, and no digit is lost.

    >>> np.exp(log_polya([2.0, 0.0, 0.0], [1.0, 1.0, 1.0])).round(9)
    np.float64(0.166666667)
    """
    x, alpha = np.asarray(x, dtype=np.float64), np.asarray(alpha, dtype=np.float64)
    n, A = x.sum(axis=-1), alpha.sum(axis=-1)
    p, q = A / (A + n), n / (A + n)
    each = log_negative_binomial(x, alpha, p[..., None], q[..., None]).sum(axis=-1)
    return np.asarray(each - log_negative_binomial(n, A, p, q))


def log_counts_evidence(x: Any, alpha: Any, log_base: Any) -> Array:
    """ln B(α + x)/B(α) + log_base along the last axis: the evidence of rows whose counts sum to x, and ln h(x) to log_base.

    It is the probability of their sum, and of the rows when that is known. Of one row the latter is 1, and all digits are there;
    of several it ends where the rounding of Σ ln h(x) does.

    >>> float(log_counts_evidence([1e12, 0.0], [1.0, 1.0], 0.0).round(6))
    -27.631021
    """
    return np.asarray(log_polya(x, alpha) + (log_base - log_multinomial(x)))
