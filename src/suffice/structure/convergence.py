"""Convergence of random walks: do several chains agree, and how many independent draws are their draws worth?

After Gelman et al., Bayesian Data Analysis (3rd ed. 2013), §11.4–11.5: each chain is cut into halves, which are compared as
chains of their own, so that one that still drifts disagrees with itself.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


def r_hat(draws: Floats) -> float:
    """The split R̂ of draws[chain, time]: the spread of all draws over the spread within halves of chains; near 1 is good.

    >>> rng = np.random.default_rng(0)
    >>> same = rng.normal(size=(2, 1000)); apart = same + [[0.0], [3.0]]
    >>> round(r_hat(same), 2), r_hat(apart) > 1.5, r_hat(np.ones((2, 10)))
    (1.0, True, 1.0)
    """
    halves = _halves(draws)
    within, total = _variances(halves)
    if total == 0:
        return 1.0
    return float(np.sqrt(total / within)) if within > 0 else float("inf")


def effective(draws: Floats) -> float:
    """How many independent draws would tell the mean as well: m n / (1 + 2 Σ ρ(t)), ρ the autocorrelation at lag t.

    The sum ends where two neighbouring ρ together are no longer positive (Geyer 1992).

    >>> rng = np.random.default_rng(0)
    >>> 1500 < effective(rng.normal(size=(2, 1000))) <= 2000
    True
    >>> slow = np.repeat(rng.normal(size=(2, 100)), 10, axis=1)
    >>> 100 < effective(slow) < 400
    True
    """
    halves = _halves(draws)
    m, n = halves.shape
    within, total = _variances(halves)
    if total == 0:
        return float(draws.size)
    centred = halves - halves.mean(axis=1, keepdims=True)
    spectrum = np.fft.rfft(centred, 2 * n, axis=1)
    covariance = np.fft.irfft(spectrum * spectrum.conj(), 2 * n, axis=1)[:, :n].mean(axis=0) / n
    rho = 1.0 - (within - covariance * n / (n - 1)) / total
    rho[0] = 1.0
    pairs = rho[0 : n - n % 2 : 2] + rho[1::2]
    end = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs)
    correlated = 2.0 * float(np.minimum.accumulate(pairs[:end]).sum()) - 1.0
    return float(min(m * n / correlated, draws.size))


def _halves(draws: Floats) -> Floats:
    n = draws.shape[1] // 2
    return np.concatenate([draws[:, :n], draws[:, -n:]])


def _variances(chains: Floats) -> tuple[float, float]:
    """The mean variance within chains, and what it is estimated to be over all of them together."""
    n = chains.shape[1]
    within = float(chains.var(axis=1, ddof=1).mean())
    between = float(chains.mean(axis=1).var(ddof=1))
    return within, within * (n - 1) / n + between
