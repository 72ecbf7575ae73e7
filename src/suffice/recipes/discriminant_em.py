"""Discriminants of a shared covariance from rows with missing cells, by EM.

It is the EM of a mixture whose classes are known: in a row that shows its class, all other classes have probability 0. Missing
features are integrated out, and a row without a class belongs to each class with its probability.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from suffice.engines.data import Data
from suffice.engines.encode import missing_code
from suffice.engines.engine import Block as Batch
from suffice.errors import FitError, note
from suffice.families.categorical import Table as CpdTable
from suffice.families.family import Array, Cpd, Estimate
from suffice.families.priors import Prior
from suffice.families.shared_gaussian import SharedGaussian
from suffice.learning.mixture_em import Climb, Mixture, Parameters
from suffice.learning.mixture_kinds import Kind, Tied
from suffice.learning.mixture_part import Collapsed
from suffice.learning.mixture_setup import Table
from suffice.models.bayes_net import BayesNet
from suffice.recipes.labelled import Labelled
from suffice.statistics import Counts
from suffice.variables import Variable

TOLERANCE = 1e-8
MAX_ITER = 2000


@dataclass(frozen=True, eq=False)
class _Known(Mixture):
    """A mixture of rows that may show their class."""

    def _blocks(self, prepared: Sequence[Any], log_weights: Array, batch: Batch) -> Iterator[tuple[slice, Array, list[Any]]]:
        codes = batch.columns[self.name]
        for rows, log_probs, memory in super()._blocks(prepared, log_weights, batch):
            own = codes[rows]
            shown = own != missing_code(own.dtype)
            log_probs[shown & (np.arange(self.n_classes)[:, None] != own)] = -np.inf
            yield rows, log_probs, memory


def from_incomplete(known: Labelled, kind: Kind, prior: Prior | None, how: Estimate) -> BayesNet:
    """The network that EM finds from the classes' own rows."""
    assert isinstance(known.rows, Data)
    target = known.target
    table = Table.of(known.rows.take(known.names))
    made = table.mixture(target, kind, prior, how)
    mixture = _Known(made.parts, made.n_classes, made.alpha, made.how, made.name, made.base, made.least)
    begin = _started(mixture, known)
    climb = mixture.climbed(begin, known.rows, tol=TOLERANCE, max_iter=MAX_ITER)
    if climb.collapsed is not None:
        raise FitError(f"EM of the discriminant of {target.name!r} collapsed: {climb.collapsed}; give a prior")
    bn = _network(known, kind, mixture, climb, prior, how)
    note(f"there are missing cells: {bn.fit_info}")
    return bn


def _started(mixture: _Known, known: Labelled) -> Parameters:
    """From the rows that show their class, and a share of the others for each class."""
    counts = known.rows.fold(lambda batch: _shares(mixture, batch).sum(axis=1))  # type: ignore[union-attr]
    weights = counts / counts.sum()

    def responsibilities(batch: Batch) -> Array:
        one_hot = _shares(mixture, batch)
        return np.where(one_hot.sum(axis=0) > 0.0, one_hot, weights[:, None])

    try:
        return mixture.started(known.rows, responsibilities, None)  # type: ignore[arg-type]
    except Collapsed as collapse:
        raise FitError(f"the discriminant of {known.target.name!r} cannot be fitted: {collapse}; give a prior") from None


def _shares(mixture: _Known, batch: Batch) -> Array:
    """1 for the class that a row shows; nothing where it shows none."""
    return np.asarray(np.arange(mixture.n_classes)[:, None] == batch.columns[mixture.name], dtype=np.float64)


def _network(known: Labelled, kind: Kind, mixture: _Known, climb: Climb, prior: Prior | None, how: Estimate) -> BayesNet:
    target, counts = known.target, climb.sums.counts
    variables: dict[str, Variable] = {target.name: target, **{v.name: v for v in known.features}}
    cpds: dict[str, Cpd] = {target.name: CpdTable(target, (), climb.parameters.weights, Counts((target,), counts))}
    found = mixture.parts[0].cpds(climb.parameters.parts[0], target, variables, counts)
    tied = isinstance(kind, Tied)
    cpds |= {n: SharedGaussian.of(found[n], j, tied=tied) for j, n in enumerate(known.names)}  # type: ignore[arg-type]
    ended = "converged" if climb.converged else "not converged"
    by = "maximum likelihood" if prior is None else f"posterior {type(how).__name__.lower()}"
    info = (
        f"a discriminant, {type(kind).__name__.lower()} covariance, by EM from {known.rows.weight:,.10g} rows, {by}; {ended} "
        f"after {len(climb.trace)} iterations, log-likelihood {climb.sums.log_likelihood:,.3f}"
    )
    return BayesNet.of(known.dag(chained=tied), variables, cpds, prior=prior, estimate=how, fit_info=info, incomplete=True)
