"""Numbers of a prior chosen by the data: those with which the graph has the largest evidence (type II maximum likelihood).

    x̂ = argmax Σᵢ ln p(data of node i and its parents | prior with the number x)

The sum may have several maxima, or rise for ever towards 0 or ∞: it is looked at on a grid of ln x, and each maximum of the grid
is refined by Brent's method. MacKay 1992, Bayesian interpolation, Neural Computation 4, p. 415; for the equivalent sample size:
Silander, Kontkanen & Myllymäki 2007, On sensitivity of the MAP Bayesian network structure to the equivalent sample size
parameter, UAI, p. 360.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from suffice.basis.libraries import so
from suffice.errors import FitError, listing, note
from suffice.errors.remedies import Remedy, by_evidence
from suffice.families import family_of
from suffice.families.priors.prior import Node, Prior, is_number
from suffice.families.priors.priors import Dirichlet, Several, as_prior
from suffice.families.protocol.family import Statistic
from suffice.registry import every
from suffice.statistics import Statistics
from suffice.variables import Variable

LEAST = 1e-6
"""Rows that weigh less together say nothing beyond rounding."""


@dataclass(frozen=True)
class EmpiricalBayes(Prior):
    """A prior whose strength the data chooses: `ess` of BDeu and BDe, `alpha` of Dirichlet, `shape` of Gamma, `count` of
    NormalInverseGamma, one number for all nodes of the graph.

    `fit(dag, data, prior=EmpiricalBayes(BDeu()))` takes the equivalent sample size with the largest evidence of the graph; the
    network keeps that prior, so that `update` goes on with it. If the evidence keeps rising, the number stops at `lowest` or
    `highest`, and a note says so: towards 0 where every row of every table has a single state, towards ∞ where all states are
    equally frequent. The choice uses the data once more: the maximal evidence is a little too good.

    >>> from suffice import BDeu
    >>> from suffice import fit
    >>> bn = fit("x -> y", {"x": list("aaaaabbbbb"), "y": list("uuuuvvvvvu")}, prior=EmpiricalBayes(BDeu()))
    >>> round(bn.prior.ess, 3)
    37.537
    """

    prior: Any
    lowest: float = 1e-4
    highest: float = 1e8

    chooses: ClassVar[bool] = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", as_prior(self.prior))
        if isinstance(self.prior, (Several, EmpiricalBayes)):
            raise FitError("EmpiricalBayes takes one prior; of several, each has its own: (EmpiricalBayes(BDeu()), BGe())")
        if isinstance(self.prior, Dirichlet) and not self.prior.is_number:
            raise FitError("EmpiricalBayes chooses one pseudo-count for all cells, and this Dirichlet has several: give it alone")
        if not self.prior.worth:
            able = sorted({p.public_name or p.__name__ for p in every("priors").values() if p.worth})
            raise FitError(f"EmpiricalBayes chooses the strength of {listing(able, style='str')}; {_without(self.prior)}")
        if not (is_number(self.lowest) and is_number(self.highest) and 0.0 < self.lowest < self.highest < np.inf):
            raise FitError(f"EmpiricalBayes needs 0 < lowest < highest, not {self.lowest!r} and {self.highest!r}")

    @property
    def number(self) -> str:
        """The name of what is chosen."""
        return str(self.prior.worth)

    def choose(self, variables: Mapping[str, Variable], nodes: Iterable[Node], statistics: Statistics) -> Any:
        """The prior with the number that has the largest evidence on these nodes, those that it speaks for."""
        first = self.prior.bind(variables, statistics)
        spoken = [node for node in nodes if first.imagine(*node[:2]) is not None]
        if not spoken:
            return self.prior
        if statistics.weight < LEAST:
            raise FitError(
                f"the rows weigh {statistics.weight:g} together, too little to choose {self.number} by: give it, as in "
                f"{self.prior.title}({self.number}=1)"
            )
        # of a tie the first node has seen what all have: the defaults of the prior come from that, too
        own = [({v.name: v for v in (c, *parents)}, Statistics([seen], seen.total, [c])) for c, parents, seen in spoken]

        def evidence(x: float) -> float:
            priors = [self._at(x).bind(*data) for data in own]
            parts = zip(spoken, priors, strict=True)
            return float(sum(family_of(c, p).log_evidence(c, seen, prior.imagine(c, p)) for (c, p, seen), prior in parts))

        x = best_number(evidence, self.lowest, self.highest)
        if x in (self.lowest, self.highest):
            note(
                f"the evidence keeps rising as {self.number} of {self.prior.title} goes to "
                f"{'0' if x == self.lowest else 'infinity'}: it stops at {x:g}"
            )
        return self._at(x)

    def imagine(self, child: Variable, parents: Sequence[Variable], seen: Any = None) -> Statistic | None:
        kind = self.prior.title
        raise FitError(
            f"{Remedy('EmpiricalBayes', 'auto')} chooses {self.number} for a whole graph and complete rows: "
            f"{by_evidence(f'{kind}(...)')}"
        )

    def _at(self, x: float) -> Any:
        return replace(self.prior, **{self.number: x})


def best_number(f: Callable[[float], float], lowest: float, highest: float, n: int = 49) -> float:
    """The positive number between two bounds, which may be taken, where f is largest.

    >>> round(best_number(lambda x: -abs(np.log(x)), 0.01, 1e4), 6), best_number(lambda x: -x, 0.01, 1e4)
    (1.0, 0.01)
    """
    low, high = float(np.log(lowest)), float(np.log(highest))
    best = highest_point(lambda t: f(float(np.exp(t))), low, high, n)
    return {low: lowest, high: highest}.get(best, float(np.exp(best)))


def highest_point(f: Callable[[float], float], low: float, high: float, n: int = 49) -> float:
    """Where a smooth function is largest between two ends: the best point of a grid, refined between its neighbours.

    Every maximum of the grid within reach of the best one is refined. An end that is not exceeded by more than rounding is taken
    as it is.

    >>> round(highest_point(lambda x: -((x - 2.0) ** 2), -10.0, 10.0), 6)
    2.0
    """
    grid = np.linspace(low, high, n)
    values = np.array([f(x) for x in grid])
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    peaks = np.flatnonzero((values >= padded[:-2]) & (values >= padded[2:]))
    best = [(values[-1], high), (values[0], low)]
    for i in peaks[(peaks > 0) & (peaks < n - 1)]:
        found = so.minimize_scalar(lambda x: -f(x), bounds=(grid[i - 1], grid[i + 1]), method="bounded", options={"xatol": 1e-9})
        best.append((-float(found.fun), float(found.x)))
    top = max(value for value, _ in best)
    near = 1e-12 * (1.0 + abs(top))
    return float(next(x for value, x in best if value >= top - near))


def _without(prior: Any) -> str:
    name = prior.title
    if name == "K2":
        return "K2 has no number to choose, Dirichlet() has: it is K2 with another count"
    if prior.chooses:
        return f"{name} chooses by itself"
    return f"{name} is not one of them"
