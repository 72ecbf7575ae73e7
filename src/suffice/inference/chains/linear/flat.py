"""Coordinates without prior: flat densities of the values β that they start from, given all outputs.

Filter and smoother run as if β were 0, with one more column of means for each of its numbers, which has outputs 0 and starts at
1: with the innovations' columns v₀, V and their variances the outputs have the density

    p(y | β) ∝ exp -½ Σ (v₀ + V β)² / variance,    J = Σ Vᵀ V / variance,    s = Σ Vᵀ v₀ / variance

so that β has mean -J⁻¹ s and covariance J⁻¹, and states follow by their columns. A prior of variance κ → ∞ gives the limit of
log p(y) + ½ rank(J) log κ (de Jong 1991, Annals of Statistics 19, p. 1073).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from suffice.inference.chains.linear.linear_steps import Array

NOTHING = 1e-10
"""A direction whose information is a smaller share than this is not told by the outputs."""


class FlatStart(NamedTuple):
    """p(β | y) for each of several sums J, s."""

    mean: Array
    """[sums, d]."""
    covariance: Array
    """[sums, d, d], as if directions that outputs say nothing of were known."""
    free: Array
    """Those directions: [sums, d, d], in columns, other columns 0."""
    log_likelihood: Array
    """What is to be added to log p(y | β = 0)."""


def flat_start(sums: Array, precision: Array) -> FlatStart:
    """p(β | y) by the sums of the products of v₀, V: [sums, 1 + d, 1 + d], and the precision of β's prior: 1, or 0 if flat.

    >>> found = flat_start(np.array([[[9.0, -6.0], [-6.0, 4.0]]]), np.zeros(1))
    >>> found.mean, found.covariance
    (array([[1.5]]), array([[[0.25]]]))
    """
    J, s = sums[:, 1:, 1:] + np.diag(precision), sums[:, 1:, 0]
    size = np.diagonal(J, axis1=1, axis2=2)
    seen = size > NOTHING**2 * size.max(axis=1, keepdims=True, initial=0.0)
    root = np.sqrt(np.where(seen, size, 1.0))
    scaled = J / (root[:, :, None] * root[:, None])  # so that units do not decide what is small
    values, vectors = np.linalg.eigh(np.where(seen[:, :, None] & seen[:, None], scaled, 0.0))
    told = values > NOTHING
    vectors = vectors / root[:, :, None]
    covariance = (vectors * np.where(told, 1.0 / np.where(told, values, 1.0), 0.0)[:, None]) @ vectors.swapaxes(1, 2)
    mean = -(covariance @ s[:, :, None])[:, :, 0]
    log_det = np.where(told.all(axis=1), np.log(np.where(told, values, 1.0)).sum(axis=1) + 2.0 * np.log(root).sum(axis=1), 0.0)
    partly = ~told.all(axis=1)
    if partly.any():  # the eigenvalues that do not vanish are those of J itself
        n_told, plain = told[partly].sum(axis=1), np.linalg.eigvalsh(J[partly])
        kept = np.arange(plain.shape[1]) >= plain.shape[1] - n_told[:, None]
        log_det[partly] = np.log(np.where(kept, plain, 1.0)).sum(axis=1)
    return FlatStart(mean, covariance, np.where(told[:, None], 0.0, vectors), -0.5 * (log_det + (s * mean).sum(axis=1)))


def spread_infinite(covariances: Array, columns: Array, free: Array) -> None:
    """Make variances infinite where directions that outputs say nothing of matter: `columns` are [steps, d, m]."""
    loose = columns.swapaxes(1, 2) @ free
    size = np.abs(loose).max(axis=2, initial=0.0)
    lost = size > NOTHING * np.abs(columns).max(axis=(1, 2), initial=0.0)[:, None]
    together = np.where(lost[:, :, None] & lost[:, None], loose @ loose.swapaxes(1, 2), 0.0)
    here = np.abs(together) > NOTHING * size[:, :, None] * size[:, None]
    covariances[here] = np.copysign(np.inf, together[here])
