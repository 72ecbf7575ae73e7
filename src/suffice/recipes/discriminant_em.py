"""Discriminants of a shared covariance from rows with missing cells, by EM.

It is the EM of a mixture whose classes are known: in a row that shows its class, all other classes have probability 0. Missing
features are integrated out, and a row without a class belongs to each class with its probability.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from suffice.engines.data import Data
from suffice.engines.engine import Block, Step
from suffice.errors import FitError, note
from suffice.families.categorical import Table as CpdTable
from suffice.families.family import Array, Cpd, Estimate
from suffice.families.priors import Prior
from suffice.families.shared_gaussian import SharedGaussian
from suffice.learning.climb import Climb, steps_of
from suffice.learning.mixture_em import Mixture, Parameters
from suffice.learning.mixture_kinds import Kind, Tied
from suffice.learning.mixture_part import Collapsed
from suffice.learning.mixture_setup import Table
from suffice.models.bayes_net import BayesNet
from suffice.recipes.labelled import Labelled
from suffice.statistics import Counts
from suffice.variables import Variable

TOLERANCE = 1e-8
MAX_ITER = 2000


def from_incomplete(known: Labelled, kind: Kind, prior: Prior | None, how: Estimate) -> BayesNet:
    """The network that EM finds from the classes' own rows."""
    assert isinstance(known.rows, Data)
    made = Table.of(known.rows.take(known.names)).mixture(known.target, kind, prior, how)
    mixture = replace(made, data=known.rows, label=known.target.name)
    climb = Climb.at(mixture, _started(mixture, known))
    try:
        climb.run(steps_of(climb.problem, climb.point), TOLERANCE, MAX_ITER, lambda _: None)
    except Collapsed as collapse:
        raise FitError(f"EM of the discriminant of {known.target.name!r} collapsed: {collapse}; give a prior") from None
    bn = _network(known, kind, mixture, climb, prior, how)
    note(f"there are missing cells: {bn.fit_info}")
    return bn


@dataclass(frozen=True, eq=False)
class _ClassShares:
    """Responsibilities: 1 for the class that a row shows, and the shares of the classes where it shows none."""

    name: str
    shares: Array

    def __call__(self, block: Block) -> Array:
        own = np.arange(len(self.shares))[:, None] == block.columns[self.name]
        return np.where(own.any(axis=0), own, self.shares[:, None])


@dataclass(frozen=True)
class _Count(Step[Array]):
    """The rows that show each class."""

    shares: _ClassShares

    def of(self, block: Block) -> Array:
        return np.asarray(self.shares(block).sum(axis=1))


def _started(mixture: Mixture, known: Labelled) -> Parameters:
    """From the rows that show their class, and a share of the others for each class."""
    name, none = known.target.name, np.zeros(mixture.n_classes)
    counts = mixture.data.fold(_Count(_ClassShares(name, none)))
    try:
        return mixture.started(_ClassShares(name, counts / counts.sum()))
    except Collapsed as collapse:
        raise FitError(f"the discriminant of {name!r} cannot be fitted: {collapse}; give a prior") from None


def _network(known: Labelled, kind: Kind, mixture: Mixture, climb: Climb, prior: Prior | None, how: Estimate) -> BayesNet:
    target, parameters, counts = known.target, climb.point.parameters, climb.point.statistic.sums.counts
    variables: dict[str, Variable] = {target.name: target, **{v.name: v for v in known.features}}
    cpds: dict[str, Cpd] = {target.name: CpdTable(target, (), parameters.weights, Counts((target,), counts))}
    found = mixture.parts[0].cpds(parameters.parts[0], target, variables, counts)
    tied = isinstance(kind, Tied)
    cpds |= {n: SharedGaussian.of(found[n], j, tied=tied) for j, n in enumerate(known.names)}  # type: ignore[arg-type]
    ended = "converged" if climb.converged else "not converged"
    by = "maximum likelihood" if prior is None else f"posterior {type(how).__name__.lower()}"
    info = (
        f"a discriminant, {type(kind).__name__.lower()} covariance, by EM from {known.rows.weight:,.10g} rows, {by}; {ended} "
        f"after {len(climb.trace)} iterations, log-likelihood {climb.point.log_likelihood:,.3f}"
    )
    return BayesNet.of(known.dag(chained=tied), variables, cpds, prior=prior, estimate=how, fit_info=info, incomplete=True)
