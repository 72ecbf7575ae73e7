"""Stochastic gradient steps over rows, one after the other: θ ← θ + ρ w (y − μ) x, with μ where the step ends.

A step whose residual is taken where it ends cannot go too far, whatever its rate (implicit: Toulis & Airoldi 2017, Annals of
Statistics 45, p. 1694). With one linear predictor η it moves η by the ξ that solves ξ = c (y − μ(η + ξ)), c = ρ w |x|²; with
several the residual at the start is divided by 1 + c/2, since no curvature of a softmax is more than ½. Responses by number:

    0  Gaussian, identity    1  binomial, logit    3  Poisson, log    7  states, softmax
"""

from __future__ import annotations

import math

import numpy as np

from suffice.kernels import kernel, nb

f8 = nb.float64
_numbers = nb.types.Array(f8, 1, "C", readonly=True)


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
    """Pass over rows (a row of X each), moving θ and its average; how many have been seen then.

    The rate after t rows is rate (1 + t/half)^(−0.6). The average weighs steps by their number, so that the first ones are
    forgotten (Shamir & Zhang 2013, International Conference on Machine Learning, p. 71). `trials` and `offset` may be empty.
    """
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
