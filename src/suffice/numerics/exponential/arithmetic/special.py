"""Logs of gamma functions, probabilities of counts and quantiles that keep their digits where they are large.

    ln Γ(z) = (z − ½) ln z − z + ½ ln 2π + S(z),   S(z) = 1/12z − 1/360z³ + 1/1260z⁵ − …

At a shape of 1e8 ln Γ is 1.7e9, and a double of that size ends at 2e-7; S and what follows from it have all their digits. So
every probability of counts here is made of

    ln Pois(x; m) = x ln m − m − ln x! = −D(x, m) − S(x) − ½ ln 2πx,   D(x, m) = x ln(x/m) − x + m

of which both D and S have all their digits, too. For numbers x ≥ 0 that need not be whole:

    Binomial(x; n, p)               Pois(x; np) Pois(n − x; n(1 − p)) / Pois(n; n)
    NegativeBinomial(x; a, p)       a/(a + x) Binomial(a; a + x, p)

Abramowitz & Stegun 1964, 6.1.40 and 6.3.18; Loader 2000, Fast and Accurate Computation of Binomial Probabilities.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from suffice.basis.libraries import sc
from suffice.numerics.exponential.arithmetic.values import Array, Interval

HALF_LOG_2PI = 0.5 * float(np.log(2.0 * np.pi))

LARGE = 16.0
"""From here on six terms of the series have all digits of a double."""

_REST = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)
_TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730, 7 / 6)


def stirling_rest(z: Any) -> Array:
    """S(z): what Stirling's formula leaves of ln Γ(z)."""
    z = np.asarray(z, dtype=np.float64)
    small = np.where(z < LARGE, z, 1.0)
    exact = sc.gammaln(small) - ((small - 0.5) * np.log(small) - small + HALF_LOG_2PI)
    return np.where(z < LARGE, exact, _odd_series(np.maximum(z, LARGE), _REST))


def log_gamma_step(z: Any, step: Any) -> Array:
    """ln Γ(z + step) − ln Γ(z)."""
    z, step = np.broadcast_arrays(np.asarray(z, dtype=np.float64), np.asarray(step, dtype=np.float64))
    large = np.minimum(z, z + step) >= LARGE
    # The scores of a search are made of these: what all are is computed for all, and nothing else.
    if large.all():
        return _stirling_step(z, step)
    with np.errstate(invalid="ignore"):
        result = np.asarray(sc.gammaln(z + step) - sc.gammaln(z))
    if large.any():
        result[large] = _stirling_step(z[large], step[large])
    return result


def log_minus_digamma(z: Any) -> Array:
    """ln z − ψ(z), which is 1/2z and a little."""
    z = np.asarray(z, dtype=np.float64)
    small, large = np.where(z < LARGE, z, 1.0), np.maximum(z, LARGE)
    series = 0.5 / large + _odd_series(large, _DIGAMMA) / large
    return np.asarray(np.where(z < LARGE, np.log(small) - sc.digamma(small), series))


def log_multigamma_step(z: Any, step: Any, d: int) -> Array:
    """ln Γ_d(z + step) − ln Γ_d(z) of the multivariate gamma function: that of Γ at z, z − ½, …, z − (d − 1)/2."""
    places = np.asarray(z, dtype=np.float64)[..., None] - 0.5 * np.arange(d)
    return np.asarray(log_gamma_step(places, np.asarray(step, dtype=np.float64)[..., None]).sum(axis=-1))


def log_growth(before: Any, added: Any) -> Array:
    """ln((before + added)/before), for before > 0 and added ≥ 0, whether little is added or very much."""
    before, added = np.asarray(before, dtype=np.float64), np.asarray(added, dtype=np.float64)
    much = added > before
    little = np.log1p(np.where(much, 0.0, added) / before)
    return np.asarray(np.where(much, np.log(before + added) - np.log(before), little))


def excess_over_log(x: Any) -> Array:
    """x − ln(1 + x) ≥ 0, what divergences are made of."""
    x = np.asarray(x, dtype=np.float64)
    near = np.abs(x) < 0.01
    small, other = np.where(near, x, 0.0), np.where(near | (x == np.inf), 0.0, x)
    series = sum((-1.0) ** k * small**k / k for k in range(2, 10))
    with np.errstate(divide="ignore"):
        return np.where(x == np.inf, np.inf, np.where(near, series, other - np.log1p(other)))


def ratio_excess(top: Any, bottom: Any) -> Array:
    """r − 1 − ln r ≥ 0 of r = top/bottom, both above 0; from r − 1 where that is small, else from r and the logs of both."""
    top, bottom = np.broadcast_arrays(np.asarray(top, dtype=np.float64), np.asarray(bottom, dtype=np.float64))
    near = np.abs(top - bottom) < 0.5 * bottom
    with np.errstate(over="ignore"):
        far = top / bottom - 1.0 - (np.log(top) - np.log(bottom))
    return np.where(near, excess_over_log(np.where(near, top - bottom, 0.0) / bottom), far)


def stirling_divergence(a: Any, c: Any) -> Array:
    """½ ln a/c − (a − c)(ln a − ψ(a)) + S(c) − S(a): what ln Γ(c) − ln Γ(a) − (c − a) ψ(a) has beside c ln c/a − c + a."""
    a, c = np.asarray(a, dtype=np.float64), np.asarray(c, dtype=np.float64)
    # ln a − ψ(a) is 1/2a and a little: the first goes with the logs, so that like shapes leave no more than their difference.
    little = log_minus_digamma(a) - 0.5 / a
    with np.errstate(over="ignore"):
        return np.asarray(0.5 * ratio_excess(c, a) + (c - a) * little + (stirling_rest(c) - stirling_rest(a)))


def inverse_log_minus_digamma(gap: Any) -> Array:
    """The z with ln z − ψ(z) = gap > 0, by Newton in ln z, inside 1/2gap < z < 1/gap, which hold it."""
    gap = np.asarray(gap, dtype=np.float64)
    low, high = np.log(0.5 / gap), -np.log(gap)
    t = np.log(3.0 - gap + np.sqrt((gap - 3.0) ** 2 + 24.0 * gap)) - np.log(12.0 * gap)
    for _ in range(60):
        z = np.exp(np.clip(t, low, high))
        value = log_minus_digamma(z)
        large = np.maximum(z, LARGE)
        # z (1/z − ψ′(z)), where 1/z and ψ′(z) are all but equal by the series ψ′(z) − 1/z = 1/2z² + 1/6z³ − 1/30z⁵ + 1/42z⁷ − …
        excess = 0.5 / large**2 + _odd_series(large, _TRIGAMMA) / large**2
        slope = np.where(z < LARGE, 1.0 - z * sc.polygamma(1, np.minimum(z, LARGE)), -large * excess)
        # In the logarithm of the value the curve is all but straight.
        step = value * np.log(value / gap) / slope
        t = np.clip(np.log(z) - step, low, high)
        if np.all(np.abs(step) < 1e-15 * (1.0 + np.abs(t))):
            break
    return np.asarray(np.exp(t))


def _stirling_step(z: Array, step: Array) -> Array:
    """ln Γ(z + step) − ln Γ(z) by Stirling's formula."""
    after, before = _odd_series(np.stack([z + step, z]), _REST)
    return np.asarray((z + step - 0.5) * np.log1p(step / z) + step * (np.log(z) - 1.0) + (after - before))


def _odd_series(z: Array, terms: tuple[float, ...]) -> Array:
    """Σ c_i / z^(2i+1)."""
    inverse = (1.0 / z) ** 2
    total = np.zeros_like(z)
    for c in reversed(terms):
        total = total * inverse + c
    return np.asarray(total / z)


NEAR = 0.1
"""Where x and m differ by less than this part of their sum, the series of D is shorter than its rounding."""

TINY = 1e-290
"""Below, a double has not all its digits, or soon not."""


def deviance(x: Any, m: Any, gap: Any = None) -> Array:
    """D(x, m) = x ln(x/m) − x + m ≥ 0 of two numbers from 0 up: inf where m is 0 and x is not, m where x is 0.

    `gap` is x − m, if it is known better than to the rounding of x and m.
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
    """
    x, m = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(m, dtype=np.float64))
    large = x >= LARGE
    few = np.where(large, 1.0, x)
    answer = np.asarray(sc.xlogy(few, m) - m - sc.gammaln(few + 1.0))
    if large.any():
        many = x[large]
        answer[large] = -deviance(many, m[large]) - stirling_rest(many) - HALF_LOG_2PI - 0.5 * np.log(many)
    tiny = m < TINY if log_m is not None else np.zeros(0, bool)
    return np.where(tiny, x * log_m - m - sc.gammaln(x + 1.0), answer) if tiny.any() else answer


def log_binomial(x: Any, n: Any, p: Any, q: Any) -> Array:
    """ln [Γ(n+1) / Γ(x+1) Γ(n−x+1)] pˣ qⁿ⁻ˣ, 0 ≤ x ≤ n. q = 1 − p is a word of its own: it may be known better than that."""
    x, n = np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64)
    return np.asarray(log_poisson(x, n * p) + log_poisson(n - x, n * q) - log_poisson(n, n))


def log_negative_binomial(x: Any, shape: Any, p: Any, q: Any) -> Array:
    """ln [Γ(a+x) / Γ(a) Γ(x+1)] pᵃ qˣ, a = shape > 0, x ≥ 0."""
    x, a = np.asarray(x, dtype=np.float64), np.asarray(shape, dtype=np.float64)
    return np.asarray(np.log(a) - np.log(a + x) + log_binomial(a, a + x, p, q))


def log_beta(alpha: Any) -> Array:
    """ln B(α) = Σ ln Γ(αᵢ) − ln Γ(Σα) along the last axis, α > 0: one that is large beside the others costs no digits."""
    ordered = np.sort(np.asarray(alpha, dtype=np.float64), axis=-1)
    rest = ordered[..., :-1]
    return np.asarray(sc.gammaln(rest).sum(axis=-1) - log_gamma_step(ordered[..., -1], rest.sum(axis=-1)))


def log_multinomial(x: Any) -> Array:
    """ln (Σx)!/Π xᵢ! along the last axis, x ≥ 0, not only whole."""
    ordered = np.sort(np.asarray(x, dtype=np.float64), axis=-1)
    rest = ordered[..., :-1]
    return np.asarray(log_gamma_step(ordered[..., -1] + 1.0, rest.sum(axis=-1)) - sc.gammaln(rest + 1.0).sum(axis=-1))


def log_polya(x: Any, alpha: Any) -> Array:
    """ln n!/Π xᵢ! B(α + x)/B(α), n = Σx, along the last axis: the probability of counts x under Dirichlet(α).

    They are independent negative binomial counts whose sum is known to be n, whatever the rate of those: at the rate A/n, A = Σα,
    no term is large, and no digit is lost.
    """
    x, alpha = np.asarray(x, dtype=np.float64), np.asarray(alpha, dtype=np.float64)
    n, A = x.sum(axis=-1), alpha.sum(axis=-1)
    p, q = A / (A + n), n / (A + n)
    each = log_negative_binomial(x, alpha, p[..., None], q[..., None]).sum(axis=-1)
    return np.asarray(each - log_negative_binomial(n, A, p, q))


def log_gamma_peak(shape: float) -> float:
    """ln p(1) of a gamma distribution of mean 1: s ln s − s − ln Γ(s)."""
    return float(0.5 * np.log(shape) - HALF_LOG_2PI - stirling_rest(shape))


def log_poisson_peak(y: Array) -> Array:
    """ln p(y) of Poisson counts y, each at its own mean y; most counts are small, and looked up."""
    peaks = _peaks()
    small = y < len(peaks)
    found = peaks[np.where(small, y, 0.0).astype(np.intp)]
    return found if small.all() else np.where(small, found, log_poisson(y, y))


@cache
def _peaks() -> Array:
    counts = np.arange(4096.0)
    return log_poisson(counts, counts)


MANY_ROWS = 1e5
"""From this shape on scipy's inverse of the gamma distribution has not all digits in the tails."""
NEWTON_STEPS = 6
"""Newton's: from where it begins, three are enough."""
C0 = (-1 / 3, 1 / 12, -2 / 135, 1 / 864, 1 / 2835, -139 / 777600)
C1 = (-1 / 540, -1 / 288, 1 / 378)
"""The coefficients of powers of η in the first two terms of Temme's expansion."""
FAR = -40.0
"""exp of this is nothing beside 1."""


def gamma_ends(shape: Any, outside: float) -> Interval:
    """The numbers below and above which Gamma(shape, 1) has the probability `outside`."""
    shape = np.asarray(shape, dtype=np.float64)
    inside = shape < MANY_ROWS
    few, many = np.where(inside, shape, 1.0), np.maximum(shape, MANY_ROWS)
    ends = sc.gammaincinv(few, outside), sc.gammainccinv(few, outside)
    if inside.all():
        return Interval(*ends)
    lower, upper = _newton(many, outside, -1.0), _newton(many, outside, 1.0)
    return Interval(np.where(inside, ends[0], lower), np.where(inside, ends[1], upper))


def _newton(shape: Array, outside: float, side: float) -> Array:
    """Where the probability beyond x, on one side, is `outside`: by Newton in its log, from the cube of Wilson & Hilferty."""
    x = shape * (1.0 - 1.0 / (9.0 * shape) - side * sc.ndtri(outside) / (3.0 * np.sqrt(shape))) ** 3
    for _ in range(NEWTON_STEPS):
        beyond = _beyond(shape, x, side)
        # The density at x is shape/x Pois(shape; x).
        slope = np.exp(log_poisson(shape, x)) * (shape / x) / beyond
        x = x + side * np.log(beyond / outside) / slope
    return np.asarray(x)


def _beyond(shape: Array, x: Array, side: float) -> Array:
    """P(X < x), or P(X > x) where the side is 1, of Gamma(shape, 1), by the first terms of Temme's expansion (DLMF 8.12.7–10):

    Φ(side·−z) + side e^(−z²/2)/√2πa (c₀(η) + c₁(η)/a),   z²/2 = aη²/2 = a ln a/x − a + x

    scipy's own loses the lower tail from a = 1e7 on.
    """
    z = np.copysign(np.sqrt(2.0 * deviance(shape, x)), x - shape)
    eta = z / np.sqrt(shape)
    c = np.polyval(C0[::-1], eta) + np.polyval(C1[::-1], eta) / shape
    return np.asarray(sc.ndtr(-side * z) + side * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi * shape) * c)


def student_end(df: Any, outside: float) -> Array:
    """The t above which there is the probability `outside`.

    y = df/(df + t²) is Beta(df/2, ½) there; where it is below all rounding, its probability is a power of it.
    """
    df = np.asarray(df, dtype=np.float64)
    a = 0.5 * df
    log_y = (np.log(2.0 * outside) + np.log(a) + log_beta(np.stack([a, np.full_like(a, 0.5)], axis=-1))) / a
    far = log_y < FAR
    with np.errstate(over="ignore"):
        power = np.exp(0.5 * (np.log(df) - np.where(far, log_y, 0.0)))
    return np.asarray(np.where(far, power, -sc.stdtrit(np.where(far, 1.0, df), outside)))


WIDTH = 12.0
"""Standard deviations on each side; and SKEW more numbers, for what is skew where the mean is small."""
SKEW = 60.0
FINENESS = 6.0
"""Numbers in one standard deviation."""


def lattice(mean: Any, deviation: Any, high: Any = np.inf) -> tuple[Array, Array]:
    """Whole numbers from 0 to `high` around a mean, an axis more at the end, and the weight of each: 0 beyond the bounds.

    There may be billions of them, for a sum E[f(x)]. The trapezoid rule on a smooth bump is exact to all digits once its step is
    a fraction of the bump's width: the error of the step h at the standard deviation s is of the order of exp(−2π²s²/h²), here
    below 1e-300. So a few hundred stand for all.
    """
    mean, deviation, high = (np.asarray(a, dtype=np.float64)[..., None] for a in (mean, deviation, high))
    step = np.maximum(np.floor(deviation / FINENESS), 1.0)
    each_side = int(np.max(np.ceil((WIDTH * deviation + SKEW) / step), initial=1.0))
    x = np.rint(mean) + step * np.arange(-each_side, each_side + 1)
    inside = (x >= 0.0) & (x <= high)
    return np.where(inside, x, 0.0), np.where(inside, step, 0.0)
