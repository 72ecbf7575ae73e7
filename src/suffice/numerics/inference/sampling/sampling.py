"""Inference by drawing: the options, and what draws say about a probability or a mean, and how surely.

Two kinds of draws, with the same questions: `Weighted` ones are independent and carry weights (likelihood weighting),
`Chained` ones weigh the same and depend on those before (Gibbs sampling).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.blas import one_blas_thread
from suffice.basis.libraries import sc
from suffice.basis.registry import Named
from suffice.errors import ModelError, whole
from suffice.numerics.inference.finite.network import Array, Ints

FEW = 100
"""Draws worth fewer independent ones than this deserve a note."""
BATCHES = 20
"""A chain is cut into so many batches, a short one into fewer, of at least as many draws as there are batches."""
FAR = 1.1
"""Chains with a larger R-hat than this have not met, …"""
APART = 1e-4
"""… and neither have those whose means would lie so far apart with a smaller chance than this if they had."""


@dataclass(frozen=True)
class LikelihoodWeighting(Named):
    """Answers from n draws of what is not observed, each weighted by the likelihood of what is.

    For every kind of network and evidence. It needs draws that the evidence is likely for: improbable evidence at the leaves
    leaves few that count, which the effective sample size of the answer tells. Shachter & Peot, UAI 1989, p. 311.

    >>> LikelihoodWeighting(n=1000)
    LikelihoodWeighting(n=1000)
    """

    listed_in = "samplers"
    word = "lw"
    after_colon = ("n", int)

    n: int = 10_000

    def __post_init__(self) -> None:
        whole(self.n, "the number of draws of LikelihoodWeighting", 1, ModelError)


@dataclass(frozen=True)
class Gibbs(Named):
    """Answers from n states of random walks that redraw each unobserved variable given all others, again and again.

    The n states come from several `chains` in equal parts; each chain first walks `burn_in` sweeps that do not count. Variables
    that zeros in tables tie together are summed out before (Liu 1994, JASA 89, p. 958); where that is too large, the question
    is refused. Geman & Geman 1984, IEEE PAMI 6, p. 721.

    >>> Gibbs(n=1000, burn_in=100)
    Gibbs(n=1000, burn_in=100, chains=4)
    """

    listed_in = "samplers"
    word = "gibbs"
    after_colon = ("n", int)

    n: int = 10_000
    burn_in: int = 1_000
    chains: int = 4

    def __post_init__(self) -> None:
        whole(self.chains, "the number of chains of Gibbs", 1, ModelError)
        whole(self.burn_in, "the burn-in of Gibbs", 0, ModelError)
        whole(self.n, "the number of draws of Gibbs, four for each chain,", 4 * self.chains, ModelError)

    @property
    def length(self) -> int:
        """How many states each chain keeps.

        >>> Gibbs(n=10, chains=2).length
        5
        """
        return -(-self.n // self.chains)


class Average(NamedTuple):
    """A mean, or the probability of each of some cells; its standard error; how many independent draws would be worth as much.
    `agree` is False where chains have not met. `r_hat` compares the spread of all draws with that within chains: it is near 1
    where they have (Gelman & Rubin 1992, Statistical Science 7, p. 457)."""

    mean: Any
    error: Any
    effective_sample_size: float
    agree: bool = True
    r_hat: float = 1.0


class Weighted:
    """Independent draws with weights w: the mean of f is Σ w f / Σ w. Its standard error is √(Σ w² (f − mean)²) / Σ w, and the
    effective sample size (Σ w)² / Σ w² (Owen, Monte Carlo theory, methods and examples, 2013, sections 9.2 and 9.3)."""

    def __init__(self, log_weights: Array) -> None:
        weights = np.exp(log_weights - log_weights.max())
        self.weights: Array = weights / weights.sum()
        self.effective_sample_size = float(1.0 / (self.weights @ self.weights))

    @one_blas_thread
    def mean(self, values: Array, among: Array | None = None) -> Average:
        """The mean of all values, or of those `among` which is 1 and not 0."""
        w = self.weights if among is None else self.weights * among / (self.weights @ among)
        mean = float(w @ values)
        return Average(mean, float(np.linalg.norm(w * (values - mean))), float(1.0 / (w @ w)))

    def shares(self, cells: Ints, n_cells: int) -> Average:
        """The weight of each of the cells 0 … n_cells − 1 into which the draws fall."""
        p: Array = np.bincount(cells, self.weights, n_cells).astype(np.float64)
        squares = np.bincount(cells, self.weights**2, n_cells)
        variance = squares * (1.0 - 2.0 * p) + p**2 / self.effective_sample_size
        return _shares(p, np.sqrt(np.maximum(variance, 0.0)), self.effective_sample_size)


class Chained:
    """Draws of equal weight from chains of equal length, one chain after another.

    The standard error is that of the means of long batches, as if these were independent, or that of the means of whole
    chains if it is larger: chains that have not met may each look settled. Few chains tell their own spread badly: where they
    have not met, the error is that of Student's t with as many degrees of freedom. The effective sample size is what
    independent draws would need for the same error (Geyer 1992, Statistical Science 7, p. 473).
    """

    def __init__(self, n_chains: int, length: int) -> None:
        self.n_chains, self.length = n_chains, length
        self.n_batches = n_chains * min(BATCHES, int(np.sqrt(length)))
        self.batch = length * n_chains // self.n_batches

    @property
    def n(self) -> int:
        return self.n_chains * self.length

    @property
    def weights(self) -> Array:
        return np.full(self.n, 1.0 / self.n)

    @one_blas_thread
    def mean(self, values: Array, among: Array | None = None) -> Average:
        """The mean of all values, or of those `among` which is 1 and not 0."""
        among = np.ones(self.n) if among is None else among
        n = float(among.sum())
        off = among * (values - float(among @ values) / n)
        sums = self._batches(off * (self.n / n)).sum(axis=2)
        spread = float(off @ off) / n
        error, agree, r_hat = self._error((sums**2).sum(), (sums.sum(axis=1) ** 2).sum(), sums.sum(), spread)
        effective = float(spread / error**2) if error > 0 else float(self.n_batches)
        return Average(float(among @ values) / n, float(error), min(effective, n), agree, r_hat)

    def shares(self, cells: Ints, n_cells: int) -> Average:
        """The share of each of the cells 0 … n_cells − 1 into which draws fall; the effective size is of all together."""
        p = np.bincount(cells, minlength=n_cells) / self.n
        batches = self._batches(cells)
        total = np.bincount(batches.reshape(-1), minlength=n_cells).astype(np.float64)
        by_batch = _squared_counts(batches.reshape(self.n_batches, -1), n_cells)
        by_chain = _squared_counts(batches.reshape(self.n_chains, -1), n_cells)
        return self._shares(p, by_batch, by_chain, total, p * (1.0 - p))

    def average(self, kinds: Ints, probs: Array) -> Average:
        """The means of cells' probabilities: a draw of kind k says probs[k] of them (Rao and Blackwell's way)."""
        n = np.bincount(kinds, minlength=len(probs))
        p: Array = n @ probs / self.n
        off = np.where(np.abs(probs - p) > 1e-12, probs - p, 0.0)
        keys = np.arange(self.n_batches)[:, None] * len(probs) + self._batches(kinds).reshape(self.n_batches, -1)
        sums = np.bincount(keys.reshape(-1), minlength=self.n_batches * len(probs)).reshape(self.n_batches, -1) @ off
        chains = sums.reshape(self.n_chains, -1, len(p)).sum(axis=1)
        shares = self._shares(p, (sums**2).sum(axis=0), (chains**2).sum(axis=0), sums.sum(axis=0), n @ off**2 / self.n)
        return shares._replace(error=np.maximum(shares.error, 1.0 / shares.effective_sample_size))  # kinds not met, too

    def _shares(self, p: Array, by_batch: Array, by_chain: Array, total: Array, spread: Array) -> Average:
        error, agree, r_hat = self._error(by_batch, by_chain, total, float(spread.sum()))
        effective = float((p * (1.0 - p)).sum() / (error**2).sum()) if error.any() else float(self.n_batches)
        return _shares(p, error, min(effective, float(self.n)), agree, r_hat)

    def _batches(self, values: Any) -> Any:
        """[chains, batches, draws]. The first draws of a chain, too few for a batch, are left out."""
        n = self.n_batches // self.n_chains
        return values.reshape(self.n_chains, -1)[:, self.length - n * self.batch :].reshape(self.n_chains, n, self.batch)

    def _error(self, by_batch: Any, by_chain: Any, total: Any, spread: float) -> tuple[Array, bool, float]:
        """The larger of the errors by batches within chains and by whole chains, whether these agree, and R-hat. `by_batch` and
        `by_chain` are the sums, over batches and over chains, of the squares of a function's sum there; `spread` is the variance
        of all draws."""
        m, B, b = self.n_chains, self.n_batches // self.n_chains, self.batch
        within = np.maximum(by_batch - by_chain / B, 0.0) / (m * (B - 1)) / (m * B) / b**2
        if m == 1:
            return np.sqrt(within), True, 1.0
        between = np.maximum(by_chain - np.asarray(total, np.float64) ** 2 / m, 0.0) / (m - 1) / m / (B * b) ** 2
        of_means = float(np.sum(between)) * m
        rest = spread - of_means  # the variance of all draws has that of the means of chains in it
        r_hat = math.sqrt(1.0 + of_means / rest) if rest > 1e-12 * of_means else math.inf if of_means > 0.0 else 1.0
        agree = bool(np.sum(between) <= sc.fdtri(m - 1, m * (B - 1), 1.0 - APART) * np.sum(within)) and r_hat <= FAR
        wider = 1.0 if agree else (m - 1) / max(m - 3, 0.5)
        return np.sqrt(np.maximum(within, between * wider)), agree, r_hat


def _squared_counts(groups: Ints, n_cells: int) -> Array:
    """For each cell the sum, over groups, of the square of how many of a group are in it. Cells without draws cost nothing."""
    n_groups = len(groups)
    keys, counts = np.unique(groups * n_groups + np.arange(n_groups)[:, None], return_counts=True)
    return np.bincount(keys // n_groups, counts.astype(np.float64) ** 2, n_cells).astype(np.float64)


def _shares(probs: Array, error: Array, effective: float, agree: bool = True, r_hat: float = 1.0) -> Average:
    """Where all draws agree no spread is seen, yet 3/n is still within reach (the rule of three): 1/n stands for the error."""
    alike = (probs <= 0.0) | (probs >= 1.0 - 1e-12)
    return Average(probs, np.where(alike, 1.0 / effective, error), effective, agree, r_hat)
