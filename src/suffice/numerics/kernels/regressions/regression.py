"""One pass over rows for a regression with one linear predictor: the log-likelihood, its slope, its curvature.

    η = offset + θ·X        r = dℓ/dη        v = −d²ℓ/dη² or what that is expected to be (the same where the link is canonical)
    Σ w ℓ(η),   Σ w r X,   Σ w v X Xᵀ,   Σ w (y − μ)²/V(μ)

ℓ is the log-likelihood of the row at dispersion 1 less that where μ = y: −½ of its deviance. So large counts, whose
log-likelihoods are huge, keep their digits. With D(y, μ) = y ln(y/μ) − y + μ, the responses by number:

    0  Gaussian, identity      ℓ = −½(y − η)²
    1  binomial, logit         ℓ = −D(y, np) − D(n − y, n − np)                          p = 1/(1 + e^(−η))
    2  two states, probit      ℓ = y ln Φ(η) + (1 − y) ln Φ(−η)
    3  Poisson, log            ℓ = −D(y, μ)                                              μ = e^η
    4  gamma, log              ℓ = ln(y/μ) − (y/μ − 1)                                   μ = e^η
    5  gamma, inverse          the same                                                  μ = 1/η
    6  negative binomial, log  ℓ = s ln((y + s)/(μ + s)) − y ln(1 + s(y − μ)/(μ(y + s)))  μ = e^η, s the shape

And stochastic gradient steps over rows, one after the other, for responses 0, 1 and 3, and for 7: states, softmax: θ ← θ + ρ w
(y − μ) x, with μ where the step ends. A step whose residual is taken where it ends cannot go too far, whatever its rate
(implicit: Toulis & Airoldi 2017, Annals of Statistics 45, p. 1694). With one linear predictor η it moves η by the ξ that
solves ξ = c (y − μ(η + ξ)), c = ρ w |x|²; with several the residual at the start is divided by 1 + c/2, since no curvature of
a softmax is more than ½.
"""

from __future__ import annotations

import math

import numpy as np

from suffice.numerics.kernels import kernel, nb

f8 = nb.float64
_numbers, _table = (nb.types.Array(f8, d, "C", readonly=True) for d in (1, 2))
_states = nb.types.Array(nb.int64, 1, "C", readonly=True)
TILE = 256
"""Rows whose columns stay in the nearest cache while all their products are summed."""


@kernel(f8(f8))
def log_normal_cdf(x):
    """ln Φ(x), also far out on the left, where Φ itself is 0: a continued fraction (Abramowitz & Stegun 26.2.14)."""
    if x > -12.0:
        return math.log(0.5 * math.erfc(-x / math.sqrt(2.0)))
    fraction = 0.0
    for k in range(40, 0, -1):
        fraction = k / (-x + fraction)
    return -0.5 * x * x - 0.5 * math.log(2.0 * math.pi) - math.log(-x + fraction)


@kernel(f8(f8, f8))
def curvature(ratio, x):
    """−d² ln Φ(x)/dx² = ratio (ratio + x), ratio = φ(x)/Φ(x), which is next to 1 far out on the left."""
    return ratio * (ratio + x) if x > -1e4 else 1.0


@kernel(f8(f8, f8, f8))
def distance(y, mean, log_mean):
    """D(y, mean) ≥ 0, by a series where y is large and near to the mean (Loader 2000)."""
    if y == 0.0:
        return mean
    if y < 1000.0 or abs(y - mean) > 0.1 * (y + mean):
        return y * (math.log(y) - log_mean) - y + mean
    v = (y - mean) / (y + mean)
    total, power = (y - mean) * v, y * v
    for k in range(3, 21, 2):
        power *= v * v
        total += 2.0 * power / k
    return total


@kernel(f8(f8))
def log_less(ratio):
    """ln(ratio) − (ratio − 1) ≤ 0."""
    x = ratio - 1.0
    if abs(x) > 0.01:
        return math.log(ratio) - x
    return -x * x * (1 / 2 - x * (1 / 3 - x * (1 / 4 - x * (1 / 5 - x * (1 / 6 - x * (1 / 7 - x / 8))))))


@kernel(nb.void(f8[:, ::1], f8[:, ::1], nb.int64, f8[:, ::1]), reorder=True)
def add_products(weighed, own, m, products):
    """Add Σᵢ weighed[j, i] own[k, i] over i < m, of columns k ≤ j, an even number of which there must be."""
    for j in range(0, len(own), 2):  # two columns by two: four sums for four numbers loaded
        left, right = weighed[j], weighed[j + 1]
        for k in range(0, j + 1, 2):
            up, down = own[k], own[k + 1]
            a, b, c, d = 0.0, 0.0, 0.0, 0.0
            for i in range(m):
                a += left[i] * up[i]
                b += left[i] * down[i]
                c += right[i] * up[i]
                d += right[i] * down[i]
            products[j, k] += a
            products[j, k + 1] += b
            products[j + 1, k] += c
            products[j + 1, k + 1] += d


@kernel(nb.void(f8[:, ::1], *5 * (_numbers,), nb.int64, f8, nb.boolean, f8[::1], f8[:, ::1], f8[::1]), reorder=True)
def regression_sums(X, y, trials, offset, weight, theta, response, shape, expected, gradient, hessian, totals):
    """Add the sums of these rows to `gradient`, `hessian` and `totals` (ℓ, Pearson, weight). X holds one column of the regression
    per row, the first all ones; `trials` and `offset` may be empty."""
    q, n = X.shape
    even = q + q % 2
    eta, slope, curve = np.empty(TILE), np.empty(TILE), np.empty(TILE)
    own, weighed, products = np.zeros((even, TILE)), np.zeros((even, TILE)), np.zeros((even, even))
    log_likelihood, pearson, total = 0.0, 0.0, 0.0
    for start in range(0, n, TILE):
        m = min(TILE, n - start)
        # η = θ₀ + Σ θⱼ xⱼ of some rows at a time.
        own[0, :m] = 1.0
        eta[:m] = 0.0
        for j in range(1, q):
            t = theta[j]
            for i in range(m):
                own[j, i] = X[j, start + i]
                eta[i] += t * own[j, i]
        for i in range(m):
            o, w = y[start + i], weight[start + i]
            level = theta[0] + offset[start + i] if offset.size else theta[0]
            e = level + eta[i]
            trial = trials[start + i] if trials.size else 1.0
            total += w
            # ℓ (value), ∂ℓ/∂η (r), −∂²ℓ/∂η² or its expectation (v), and Pearson's term of each row. Logistic, by trials:
            if response == 1:
                a = math.exp(-abs(e))
                large, small = 1.0 / (1.0 + a), a / (1.0 + a)
                p, rest = (large, small) if e >= 0 else (small, large)
                if trials.size:
                    log_trial = math.log(trial) if trial > 0 else 0.0
                    log_p, log_rest = (-math.log1p(a), -e - math.log1p(a)) if e >= 0 else (e - math.log1p(a), -math.log1p(a))
                    value = -distance(o, trial * p, log_trial + log_p) - distance(trial - o, trial * rest, log_trial + log_rest)
                else:
                    value = (o - 1.0 if e >= 0 else o) * e - math.log1p(a)
                # written so that no digits are lost where p is nearly o
                r = o * rest - (trial - o) * p
                v = trial * p * rest
                deviation = r * r / v if v > 0 else 0.0 if r == 0 else math.inf
            # Poisson with a log link.
            elif response == 3:
                mu = math.exp(e)
                value, r, v = -distance(o, mu, e), o - mu, mu
                deviation = r * r / mu if mu > 0 else 0.0 if r == 0 else math.inf
            # Normal.
            elif response == 0:
                # what may be large is taken off first, so that the mean of y costs no digits
                r, v = (o - level if not offset.size else (o - offset[start + i]) - theta[0]) - eta[i], 1.0
                value, deviation = -0.5 * r * r, r * r
            # Probit.
            elif response == 2:
                up, down = log_normal_cdf(e), log_normal_cdf(-e)
                density = -0.5 * e * e - 0.5 * math.log(2.0 * math.pi)
                rise, fall = math.exp(density - up), math.exp(density - down)
                value = (o * up if o > 0 else 0.0) + ((trial - o) * down if trial > o else 0.0)
                r, v = o * rise - (trial - o) * fall, trial * rise * fall
                deviation = r * r / v if v > 0 else 0.0 if r == 0 else math.inf
                if not expected:
                    v = o * curvature(rise, e) + (trial - o) * curvature(fall, -e)
            # Gamma with a log link.
            elif response == 4:
                ratio = o * math.exp(-e)
                r, v = ratio - 1.0, 1.0 if expected else ratio
                value, deviation = log_less(ratio), r * r
            # Gamma with an inverse link.
            elif response == 5:
                inside, off = e > 0.0, 1.0 - o * e
                r, v = (off / e, 1.0 / (e * e)) if inside else (0.0, 0.0)
                value, deviation = log_less(o * e) if inside else -math.inf, off * off
            # Negative binomial of a known shape, with a log link.
            else:
                mu = math.exp(e)
                apart = (o - mu) / (mu + shape)
                up = math.log1p(apart) if apart > -0.5 else math.log((o + shape) / (mu + shape))
                value = shape * up
                if o > 0:
                    value -= o * math.log1p(shape / mu * (o - mu) / (o + shape)) if mu > 0 else math.inf
                r, v = (o - mu) * shape / (shape + mu), mu * shape / (shape + mu)
                deviation = r * r / v if v > 0 else 0.0 if r == 0 else math.inf
                if not expected:
                    v *= (o + shape) / (mu + shape)
            log_likelihood += w * value
            pearson += w * deviation
            slope[i], curve[i] = w * r, w * v
        # Gradient X'r and information X'VX.
        for j in range(q):
            s = 0.0
            for i in range(m):
                s += slope[i] * own[j, i]
                weighed[j, i] = curve[i] * own[j, i]
            gradient[j] += s
        add_products(weighed, own, m, products)
    for j in range(q):
        for k in range(j + 1):
            hessian[j, k] += products[j, k]
            if k < j:
                hessian[k, j] += products[j, k]
    totals[0] += log_likelihood
    totals[1] += pearson
    totals[2] += total


@kernel(nb.void(f8[:, ::1], _states, _numbers, _table, f8[:, ::1], f8[:, ::1], f8[::1]), reorder=True)
def softmax_sums(X, y, weight, theta, gradient, hessian, totals):
    """The sums of these rows for a regression of K states: `gradient`, `hessian` and `totals` (log-likelihood, Pearson, weight).

    pₖ = exp ηₖ / Σⱼ exp ηⱼ,  η₀ = 0        Σ w ln p(y),   Σ w (1[y = k] − pₖ) X,   Σ w pₖ (1[k = l] − pₗ) X Xᵀ

    X holds one column of the regression per row; y the states, of which the first has no predictor.
    """
    q, n = X.shape
    states = len(theta)
    even = q + q % 2
    own, weighed, products = np.zeros((even, TILE)), np.zeros((even, TILE)), np.zeros((states, states, even, even))
    p, rest, curve = np.empty((states + 1, TILE)), np.empty((states + 1, TILE)), np.empty(TILE)
    for start in range(0, n, TILE):
        m = min(TILE, n - start)
        for j in range(q):
            for i in range(m):
                own[j, i] = X[j, start + i]
        p[0, :m] = 0.0
        for k in range(states):
            p[k + 1, :m] = 0.0
            for j in range(q):
                t = theta[k, j]
                for i in range(m):
                    p[k + 1, i] += t * own[j, i]
        for i in range(m):
            top = 0
            for k in range(1, states + 1):
                if p[k, i] > p[top, i]:
                    top = k
            highest, others = p[top, i], 0.0
            state = y[start + i]
            value = p[state, i] - highest
            for k in range(states + 1):
                p[k, i] = 1.0 if k == top else math.exp(p[k, i] - highest)
                others += 0.0 if k == top else p[k, i]
            total = 1.0 + others
            for k in range(states + 1):
                p[k, i] /= total
                rest[k, i] = others / total if k == top else 1.0 - p[k, i]  # which keeps its digits where p is nearly 1
            w = weight[start + i]
            totals[0] += w * (value - math.log1p(others))
            totals[1] += w * rest[state, i] / p[state, i] if p[state, i] > 0 else math.inf
            totals[2] += w
        for k in range(states):
            for i in range(m):
                residual = rest[k + 1, i] if y[start + i] == k + 1 else -p[k + 1, i]
                curve[i] = weight[start + i] * residual
            for j in range(q):
                s = 0.0
                for i in range(m):
                    s += curve[i] * own[j, i]
                gradient[k, j] += s
            for other in range(k + 1):
                for i in range(m):
                    curve[i] = weight[start + i] * p[k + 1, i] * (rest[k + 1, i] if other == k else -p[other + 1, i])
                for j in range(q):
                    for i in range(m):
                        weighed[j, i] = curve[i] * own[j, i]
                add_products(weighed, own, m, products[k, other])
    for k in range(states):
        for other in range(k + 1):
            for j in range(q):
                for g in range(j + 1):
                    s = products[k, other, j, g]
                    for a, b in ((k * q + j, other * q + g), (k * q + g, other * q + j)):
                        hessian[a, b] = s
                        hessian[b, a] = s


@kernel(f8(f8, f8, nb.int64))
def mean_of(eta, trials, response):
    """μ at η."""
    if response == 0:
        return eta
    if response == 3:
        return math.exp(min(eta, 700.0))
    small = math.exp(-abs(eta))
    return trials * (1.0 if eta >= 0 else small) / (1.0 + small)


@kernel(f8(f8, f8, f8, f8, nb.int64))
def implicit_step(eta, y, trials, c, response):
    """ξ = c (y − μ(η + ξ)): between 0 and what it would be with μ(η); by Newton steps that are kept between two ends."""
    full: float = c * (y - mean_of(eta, trials, response))
    if response == 0:
        return full / (1.0 + c)
    low, high = min(full, 0.0), max(full, 0.0)
    xi, before = 0.0, high - low
    for _ in range(200):
        mu = mean_of(eta + xi, trials, response)
        excess = xi - c * (y - mu)
        if excess > 0:
            high = xi
        else:
            low = xi
        curve = mu if response == 3 else mu * (trials - mu) / trials if trials > 0 else 0.0
        after = xi - excess / (1.0 + c * curve)
        if not low <= after <= high or abs(after - xi) > 0.5 * before:
            after = 0.5 * (low + high)
        before, xi = abs(after - xi), after
        if before <= 1e-12 * (1.0 + abs(xi)):
            break
    return xi


@kernel(f8(f8[:, ::1], *4 * (_numbers,), f8[:, ::1], f8[:, ::1], nb.int64, f8, f8, f8))
def lms_rows(X, y, trials, offset, weight, theta, average, response, rate, half, seen):
    """Pass over rows (a row of X each), moving θ and its average; how many have been seen then. The rate after t rows is rate (1
    + t/half)^(−0.6). The average weighs steps by their number, so that the first ones are forgotten (Shamir & Zhang 2013,
    International Conference on Machine Learning, p. 71). `trials` and `offset` may be empty."""
    n, q = X.shape
    states = len(theta)
    eta = np.empty(states)
    for i in range(n):
        w = weight[i]
        if w == 0.0:
            continue
        size = 0.0
        for j in range(q):
            size += X[i, j] * X[i, j]
        step = rate * (1.0 + seen / half) ** -0.6
        if response == 7:
            highest, total = 0.0, 0.0
            for k in range(states):
                eta[k] = 0.0
                for j in range(q):
                    eta[k] += theta[k, j] * X[i, j]
                highest = max(highest, eta[k])
            for k in range(states):
                eta[k] = math.exp(eta[k] - highest)
                total += eta[k]
            total += math.exp(-highest)
            by = step * w / (1.0 + 0.5 * step * w * size)
            for k in range(states):
                r = by * ((1.0 if y[i] == k + 1 else 0.0) - eta[k] / total)
                for j in range(q):
                    theta[k, j] += r * X[i, j]
        else:
            eta_i = offset[i] if offset.size else 0.0
            for j in range(q):
                eta_i += theta[0, j] * X[i, j]
            r = implicit_step(eta_i, y[i], trials[i] if trials.size else 1.0, step * w * size, response) / size
            for j in range(q):
                theta[0, j] += r * X[i, j]
        seen += 1.0
        share = 2.0 / (seen + 1.0)
        for k in range(states):
            for j in range(q):
                average[k, j] += share * (theta[k, j] - average[k, j])
    return seen
