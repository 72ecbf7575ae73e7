"""`GraphicalLasso`: the undirected graph of real columns whose precision, penalised, is most likely.

Its path is a sparse precision for each penalty, from the largest down, each the start of the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import InitVar, dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from suffice.basis.arrays import Array
from suffice.engines.data import Data
from suffice.errors import FitError, note
from suffice.errors.earlier import tell_of_argument
from suffice.errors.remedies import Remedy
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.graphs.text import Edge
from suffice.models.gaussian_markov_net import in_data_units, partial_correlations
from suffice.models.undirected.covariances import Covariances, refuse_other_kinds, selected_precision
from suffice.numerics.inference.numbers.sparse_precision import GAP, SparsePrecision, sparse_precision
from suffice.statistics.counts import freeze
from suffice.structure.problem import Problem
from suffice.structure.results.found_graph import GraphOutcome
from suffice.structure.results.plan import Work
from suffice.structure.rules import Rules
from suffice.structure.undirected.graph_method import PenalisedMethod, PenaltyFit, PenaltyFits


class LassoPath(PenaltyFits):
    """The fits of a graphical lasso on some rows, and on others when a way to choose among the penalties asks for them."""

    def held_out(self, train: Data, test: Data) -> Array:
        """Σ log p(x), in the units of the data."""
        seen, other = self.seen_in(train), self.seen_in(test, checked=False)
        log_scale, spread, constant = 2.0 * float(np.log(seen.scale).sum()), seen.of_others(other), len(seen.names) * LOG_2PI
        logs = [
            fit.found.log_det - log_scale - float(np.vdot(spread, fit.found.precision)) - constant for fit in self.fits_of(seen)
        ]
        return 0.5 * other.weight * np.array(logs)

    def seen_in(self, data: Data, *, checked: bool = True) -> Covariances:
        return Covariances.of(data, self.seen.names, on=self.method._scale, threads=1, checked=checked)

    def fits_of(self, seen: Covariances) -> Iterator[PenaltyFit]:
        """The deviance is −n (log det Θ − tr R Θ)."""
        start: Array | None = None
        for k in range(len(self.penalties.multiples)):
            how: dict[str, Any] = {"start": start, "gap": self.method.gap, "watch": self.problem.progress.check}
            solution = sparse_precision(seen.matrix, self.penalties.at(k), **how)
            start = solution.precision
            joined = (start != 0.0) & ~np.eye(len(start), dtype=bool)
            deviance = seen.weight * (float(np.vdot(seen.matrix, start)) - solution.log_det)
            n_edges = int(np.count_nonzero(joined)) // 2
            yield PenaltyFit(solution, joined, deviance, n_edges, float(n_edges))


PER_FLOP = 1e-9
"""Seconds for each of the p³ flops of a Newton step, of which a penalty takes some ten."""

WORTH_TELLING = 1e-4
"""A duality gap, relative to the objective, that the user should know of."""


class LassoStep(NamedTuple):
    """A Newton step on one component of a penalty: the size of the component, its objective and its duality gap (NaN while it is
    far from being small), the seconds since the start of this penalty."""

    penalty: float
    size: int
    step: int
    objective: float
    gap: float
    seconds: float


@dataclass(frozen=True)
class GraphicalLasso(PenalisedMethod):
    """The graph of the precision Θ that minimises −log det Θ + tr(S Θ) + λ Σ_{i≠j} |θ_ij| (Friedman, Hastie & Tibshirani 2008).

    S is the correlation matrix of the columns, or with `scaled=False` their covariance; columns must be real. `penalty` is λ,
    or a matrix of one for each pair in the order of the columns (∞ keeps two apart), or {("a", "b"): 0.2, None: 0.1} with None
    for all other pairs. Without one, `select` chooses among `n_penalties`, from the largest |s_ij| down to a tenth of it. `EBIC`
    needs nothing but the moments, so that files, merged statistics and more columns than rows are as good as any; `StARS` and
    `HeldOut` draw from the rows. `diagonal=True` penalises θ_ii, too. A pair that is required is not penalised.

    The result's `precision` and `covariance` are inverses of each other, on the scale of S; `model` is in the units of the data;
    `strengths` are partial correlations. With `refit=True` the graph keeps its edges and the penalty is dropped: the precision is
    the maximum likelihood estimate of the graph. Newton steps end when the duality `gap`, by which the objective is above its
    minimum at most, is as small as asked for.

    >>> import numpy as np
    >>> from suffice import search
    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> found = search({"a": x[:, 0], "b": x[:, 0] + x[:, 1], "c": x[:, 2]}, method=GraphicalLasso(penalty=0.2))
    >>> found.graph.edges, bool(np.allclose(found.precision @ found.covariance, np.eye(3), atol=1e-8))
    ((('a', 'b'),), True)
    """

    word = "glasso"

    scaled: bool = True
    diagonal: bool = False
    refit: bool = False
    gap: float = GAP
    on: InitVar[str | None] = None
    """How 0.1 called `scaled`."""

    def __post_init__(self, on: str | None) -> None:
        super().__post_init__()
        if on is not None:
            if on not in ("correlation", "covariance"):
                raise FitError(f"a graphical lasso works on='correlation' or on='covariance', not {on!r}")
            tell_of_argument(f"on={on!r}", f"scaled={on == 'correlation'}")
            object.__setattr__(self, "scaled", on == "correlation")
        if not isinstance(self.scaled, bool):
            raise FitError(f"scaled is True (correlations) or False (covariances), not {self.scaled!r}")
        if isinstance(self.gap, bool) or not isinstance(self.gap, (int, float)) or not self.gap > 0.0:
            raise FitError(f"the duality gap at which to stop is a number above 0, not {self.gap!r}")

    @property
    def _scale(self) -> str:
        return "correlation" if self.scaled else "covariance"

    def run(self, problem: Problem) -> GraphOutcome:
        other = f"{Remedy('Neighbourhoods()', '--method neighbourhoods')} finds the graph of finite and mixed columns"
        refuse_other_kinds(problem.variables, str(Remedy("GraphicalLasso", "--method glasso")), other)
        seen = Covariances.of(problem.data, problem.names, on=self._scale, threads=problem.threads)
        path = LassoPath(problem, self, self.penalties(problem, seen.matrix, diagonal=self.diagonal), seen)
        judgement, finished = path.judgement()
        best: SparsePrecision = path.fits[judgement.best].found
        if not best.converged and not best.gap <= WORTH_TELLING * max(1.0, abs(best.objective)):
            note(
                f"the graphical lasso ended at a duality gap of {best.gap:.3g}, of an objective of "
                f"{best.objective:.6g}: the columns are nearly functions of each other; a larger penalty is easier"
            )
        outcome = path.outcome(judgement, finished)
        graph = outcome.graph
        solution = selected_precision(graph, seen) if self.refit else best
        partial = partial_correlations(solution.precision)
        penalty = path.penalties.multiples[judgement.best]
        info = f"graphical lasso of {path.weight:,.10g} rows, penalty {penalty:.6g}{', refitted without' * self.refit}"
        tried = list(zip(path.penalties.multiples, path.fits, strict=False))
        entered = np.full_like(seen.matrix, np.nan)
        for x, fit in tried:
            entered[fit.joined & np.isnan(entered)] = x
        return replace(
            outcome,
            strengths={(a, b): float(partial[problem.number[a], problem.number[b]]) for a, b in graph.edges},
            strength="partial correlation",
            trace=tuple(LassoStep(x, *step) for x, fit in tried for step in fit.found.steps),
            precision=freeze(solution.precision),
            covariance=freeze(solution.covariance),
            model=in_data_units(graph, seen, solution, info, None if self.refit else penalty),
            details=LassoDetails(seen.names, penalty, seen.matrix, entered, judgement.frequency),
        )

    def work(self, problem: Problem, rules: Rules) -> Work:
        n, penalties = float(problem.n), self.n_penalties * self.select.n_paths if self.penalty is None else 1
        return Work(0.0, {2: n * (n + 1) / 2}, bytes=64 * n * n, seconds=penalties * 10 * PER_FLOP * n**3)


@dataclass(frozen=True, eq=False)
class LassoDetails:
    """What a graphical lasso tells of pairs of variables."""

    names: tuple[str, ...]
    best: float
    """The penalty that was chosen."""
    seen: Array
    """The matrix S."""
    entered: Array
    """The largest penalty of the path at which each pair is joined; NaN for those that never are."""
    frequency: Array | None
    """Of StARS: how often each pair was joined in the subsamples, at the penalty that was chosen."""

    def facts(self, a: str, b: str) -> Iterator[Edge]:
        """What there is to say of two variables."""
        i, j = self.names.index(a), self.names.index(b)
        yield "correlation", f"{self.seen[i, j] / np.sqrt(self.seen[i, i] * self.seen[j, j]):.6g}"
        yield "penalty", f"{self.best:.6g}"
        first = self.entered[i, j]
        yield "joined", "at no penalty of the path" if np.isnan(first) else f"from a penalty of {first:.6g} down"
        if self.frequency is not None:
            yield "in subsamples", f"{self.frequency[i, j]:.0%}"
