"""`Neighbourhoods`: a graph from one penalised regression for each variable on all others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from suffice.basis.arrays import Array, Bools
from suffice.basis.variables import Finite, Real
from suffice.engines.data import Data
from suffice.errors import FitError, listing
from suffice.graphs.text import Edge
from suffice.structure.problem import Problem, check_has
from suffice.structure.results.found_graph import GraphOutcome
from suffice.structure.undirected.graph_method import PenalisedMethod, PenaltyFit, PenaltyFits
from suffice.structure.undirected.node_regressions import CodedNodes, GaussianNodes, NodeFit, NodeRegressions


@dataclass(frozen=True)
class And:
    """Two variables are joined if each is among the neighbours that the other's regression finds.

    >>> And().joined(np.array([[False, True], [False, False]]))
    array([[False, False],
           [False, False]])
    """

    def joined(self, there: Bools) -> Bools:
        return there & there.T


@dataclass(frozen=True)
class Or:
    """Two variables are joined if one of them is among the neighbours that the other's regression finds.

    >>> Or().joined(np.array([[False, True], [False, False]]))
    array([[False,  True],
           [ True, False]])
    """

    def joined(self, there: Bools) -> Bools:
        return there | there.T


@dataclass(frozen=True)
class Neighbourhoods(PenalisedMethod):
    """The graph in which a variable is joined to those that a lasso of it on all others keeps (Meinshausen & Bühlmann 2006).

    Of real columns, from their moments alone: each column, scaled, is regressed on all others with a penalty λ on the absolute
    values of the coefficients: ½ E(x_i − Σ_j b_ij x_j)² + λ Σ_j |b_ij|. Of finite columns, and of finite and real ones together,
    by passes over the rows: −E ln p(x_i | rest) + λ Σ_j √((K_i − 1)(K_j − 1)) ‖Θ_ij‖, logistic or multinomial, where K are the
    numbers of states and the norm is over all numbers of a pair. Of two states, coded 0 and 1, Θ_ij is the log odds ratio given
    the rest (4 J_ij of an `Ising` model); a real column counts as one of two states, in units of two standard deviations.

    `rule=And()` joins two variables that keep each other, `Or()` those of which one keeps the other. `penalty`, `select` and
    `n_penalties` are those of `GraphicalLasso`; one penalty holds for all variables, and what it is chosen by is summed over them
    (EBIC: 2 γ log p for each neighbour, Chen & Chen 2008).

    `strengths` has the mean of both coefficients; `found.details.strengths` keeps them apart: of (a, b) it is that of b in the
    regression of a.

    >>> from suffice import search
    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> found = search({"a": x[:, 0], "b": x[:, 0] + x[:, 1], "c": x[:, 2]}, method=Neighbourhoods(penalty=0.2))
    >>> found.graph.edges
    (('a', 'b'),)
    """

    word = "neighbourhoods"

    rule: Any = And()

    kinds: ClassVar[Sequence[type[NodeRegressions]]] = (GaussianNodes, CodedNodes)
    """The regressions for each kind of columns; the first that takes them is used."""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_has(self.rule, "joined", "the rule by which neighbours are joined is And() or Or()")

    def run(self, problem: Problem) -> GraphOutcome:
        kind = next((kind for kind in self.kinds if kind.takes(problem.variables)), None)
        if kind is None:
            other = [v.name for v in problem.variables if not isinstance(v, Finite | Real)]
            raise FitError(
                f"Neighbourhoods takes finite and real columns, and {listing(other)} is of another kind: declare it so"
            )
        nodes = kind.of(problem.data, problem.variables, threads=problem.threads)
        nodes.check()
        path = NeighbourhoodPath(problem, self, self.penalties(problem, nodes.association), nodes)
        judgement, finished = path.judgement()
        outcome, names, best = path.outcome(judgement, finished), problem.names, path.fits[judgement.best].found
        own = {(names[i], names[j]): float(best.strengths[i, j]) for i, j in np.argwhere(best.strengths).tolist()}
        return replace(
            outcome,
            strengths={(a, b): (own.get((a, b), 0.0) + own.get((b, a), 0.0)) / 2.0 for a, b in outcome.graph.edges},
            strength="mean strength",
            model=partial(nodes.model, outcome.graph),
            details=NeighbourhoodDetails(own, path.penalties.multiples[judgement.best], best.objective, best.coefficients),
        )


class NeighbourhoodPath(PenaltyFits):
    """The fits of all regressions for each penalty, on some rows and on others."""

    def held_out(self, train: Data, test: Data) -> Array:
        nodes = self.seen_in(train)
        return nodes.held_out([fit.found for fit in self.fits_of(nodes)], test)

    def seen_in(self, data: Data) -> NodeRegressions:
        return type(self.seen).of(data, self.problem.variables, threads=1)  # type: ignore[no-any-return]

    def fits_of(self, seen: NodeRegressions) -> Iterator[PenaltyFit]:
        """Pairs are half the number of neighbours, since each pair of them is chosen twice."""
        start: NodeFit | None = None
        for k in range(len(self.penalties.multiples)):
            start = seen.fit(self.penalties.at(k), start)
            there = self.method.rule.joined(start.strengths != 0.0)
            joined = (there & self.problem.rules.allowed) | self.problem.rules.required
            yield PenaltyFit(start, joined, start.deviance, start.n_parameters, int(np.count_nonzero(start.strengths)) / 2.0)


@dataclass(frozen=True, eq=False)
class NeighbourhoodDetails:
    """What the regressions tell of pairs of variables."""

    strengths: dict[Edge, float]
    """For each variable a and each neighbour b that the regression of a keeps: how strong b is in it."""
    penalty: float
    objective: float
    coefficients: Any = None
    """All that the regressions of this kind have found."""

    def facts(self, a: str, b: str) -> Iterator[Edge]:
        """What there is to say of two variables."""
        for child, other in ((a, b), (b, a)):
            yield f"in the regression of {child}", f"{self.strengths.get((child, other), 0.0):.6g}"
        yield "penalty", f"{self.penalty:.6g}"
