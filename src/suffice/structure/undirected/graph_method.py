"""What methods that find an undirected graph share: what constraints mean to them, and the penalties of the pairs of variables,
one number, one for each pair, or a path of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from suffice.basis.arrays import Array, Bools
from suffice.basis.iteration import OutOfTime
from suffice.basis.variables import Variable
from suffice.engines.data import Data
from suffice.errors import FitError, GraphError, nearest, note, whole
from suffice.errors.remedies import Remedy
from suffice.graphs import Graph
from suffice.graphs.text import Edge
from suffice.statistics import Statistics
from suffice.structure.constraints import Constraints
from suffice.structure.problem import Method, Problem, check_has
from suffice.structure.results.found_graph import GraphOutcome, PathEntry, PenaltyPath
from suffice.structure.results.plan import Work
from suffice.structure.rules import Rules
from suffice.structure.undirected.selection import EBIC, Judgement

SMALLEST = 0.1
"""The smallest penalty of a path, relative to the largest."""


class GraphMethod(Method):
    """A method whose edges have no direction.

    An edge of `Forbid`, `Require` and `Adjacent`, and a name of `Candidates`, then speaks of both directions; what speaks of a
    direction (`Tiers`, `NotAncestor`) or of parents (`MaxParents`) is refused.
    """

    directed = False
    missing_cells = "EM for undirected models is not here: complete the cells first (impute) or leave their columns out"
    """What to do about missing cells."""

    def run(self, problem: Problem) -> GraphOutcome:
        raise NotImplementedError

    def rules(self, constraints: Constraints, variables: Sequence[Variable]) -> Rules:
        """The constraints in numbers: both matrices are symmetric."""
        name = type(self).__name__
        if constraints.tiers or constraints.not_ancestor:
            kind = "Tiers" if constraints.tiers else "NotAncestor"
            raise FitError(
                f"{kind} speaks of the direction of edges, and those that {name} finds have none; use "
                f"{Remedy('Forbid(...)', '--forbid')}"
            )
        if constraints.max_parents is not None or constraints.max_parents_of:
            raise FitError(f"MaxParents speaks of parents, and there are none in the undirected graphs that {name} finds")
        number = {v.name: i for i, v in enumerate(variables)}
        constraints.refuse_unknown(number)
        rules = Rules.free(len(variables))
        allowed = constraints.allowed_edges(rules.allowed, number)
        for a, b in (*constraints.required, *constraints.adjacent):
            rules.required[number[a], number[b]] = True
        allowed, required = allowed & allowed.T, rules.required | rules.required.T
        for i, j in np.argwhere(required & ~allowed).tolist():
            a, b = variables[i].name, variables[j].name
            raise GraphError(f"the edge {a!r} -- {b!r} is required and not allowed: edges have no direction here")
        return replace(rules, allowed=allowed, required=required)

    def work(self, problem: Problem, rules: Rules) -> Work:
        """What is asked for, to foretell the cost; by default the tables or moments of all pairs."""
        n = float(problem.n)
        return Work(0.0, {1: n, 2: n * (n - 1) / 2})


@dataclass(frozen=True, eq=False)
class Penalties:
    """Some multiples, from the largest down, of a matrix of weights: 1 where nothing else is said, ∞ for a pair that may not be
    joined, 0 for one that is to be, 0 on the diagonal."""

    multiples: tuple[float, ...]
    weights: Array

    def at(self, k: int) -> Array:
        """The penalty of each pair."""
        with np.errstate(invalid="ignore"):
            return np.ascontiguousarray(self.multiples[k] * self.weights)

    @staticmethod
    def of(
        asked: Any, n_penalties: int, matrix: Array, rules: Rules, order: Sequence[str], *, diagonal: bool = False
    ) -> Penalties:
        """What was asked for: None is a path down from where the first pair of `matrix` is joined.

        `order` is that of the columns, by which a matrix of penalties goes; `rules.names` is that of the variables here.
        """
        names, multiples = rules.names, (1.0,)
        if asked is None:
            weights = np.ones_like(matrix)
            free = rules.allowed & ~rules.required
            top = float(np.abs(matrix[free]).max(initial=0.0)) or 1.0
            multiples = tuple(np.geomspace(top, SMALLEST * top, n_penalties).tolist()) if n_penalties > 1 else (top,)
        elif isinstance(asked, (int, float)):
            weights, multiples = np.ones_like(matrix), (float(asked),)
        elif isinstance(asked, Mapping):
            weights = _by_pair(asked, names)
        else:
            shape, n = asked.values.shape, len(order)
            if shape != (n, n):
                raise FitError(f"the penalties of {n} columns are a matrix of {n} by {n}, not {shape}")
            chosen = [order.index(name) for name in names]
            weights = asked.values[np.ix_(chosen, chosen)]
        if not diagonal:
            np.fill_diagonal(weights, 0.0)
        weights = np.where(rules.required, 0.0, np.where(rules.allowed | np.eye(len(names), dtype=bool), weights, np.inf))
        return Penalties(multiples, weights)


@dataclass(frozen=True, eq=False, repr=False)
class PenaltyMatrix:
    """A penalty for each pair, in the order of the columns of the data."""

    values: Array

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PenaltyMatrix) and np.array_equal(self.values, other.values)

    def __hash__(self) -> int:
        return hash(self.values.tobytes())

    def __repr__(self) -> str:
        return f"<{len(self.values)} by {len(self.values)} penalties>"


WITHOUT_PENALTY = Remedy(
    "without one, fit(graph, data) estimates a given graph", "suffice fit estimates a given graph without one"
)


def checked_penalty(asked: Any) -> Any:
    """A penalty as it may be asked for: positive, a matrix off its diagonal and symmetric; ∞ keeps two variables apart."""
    if asked is None or isinstance(asked, PenaltyMatrix):
        return asked
    if isinstance(asked, Mapping):
        for pair, x in asked.items():
            if pair is not None and not (isinstance(pair, tuple) and len(pair) == 2 and pair[0] != pair[1]):
                raise FitError(
                    f"penalties by pair are {{('a', 'b'): 0.2, None: 0.1}}, None for all other pairs; {pair!r} is no pair"
                )
            _positive(x, "the penalty of " + ("other pairs" if pair is None else f"{pair[0]!r} and {pair[1]!r}"), math.inf)
        return dict(asked)
    if np.ndim(asked) == 0:
        return _positive(asked, "a penalty")
    matrix = np.array(asked, np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise FitError(f"a matrix of penalties is square, not of shape {matrix.shape}")
    if not np.array_equal(matrix, matrix.T):
        raise FitError("a matrix of penalties is symmetric: a pair has one")
    off = matrix[~np.eye(len(matrix), dtype=bool)]
    if not (off > 0).all():
        raise FitError(f"the penalty of each pair is larger than 0, and the smallest of this matrix is {off.min():g}")
    matrix.setflags(write=False)
    return PenaltyMatrix(matrix)


def _positive(x: Any, what: str, most: float = 1e300) -> float:
    if isinstance(x, (bool, np.bool_)) or not isinstance(x, (int, float, np.integer, np.floating)) or not 0.0 < float(x) <= most:
        raise FitError(f"{what} is a number above 0, not {x!r}; {WITHOUT_PENALTY}")
    return float(x)


def _by_pair(asked: Mapping[Edge | None, float], names: Sequence[str]) -> Array:
    """The penalties of named pairs; those of the others are under None."""
    number = {name: i for i, name in enumerate(names)}
    weights = np.full((len(names), len(names)), asked.get(None, np.nan))
    for pair, x in asked.items():
        if pair is None:
            continue
        for name in pair:
            if name not in number:
                raise FitError(f"there is a penalty for {name!r}, which is not among the variables{nearest(str(name), names)}")
        a, b = number[pair[0]], number[pair[1]]
        weights[a, b] = weights[b, a] = x
    np.fill_diagonal(weights, asked.get(None, 0.0))
    lacking = np.argwhere(np.triu(np.isnan(weights), 1))
    if len(lacking):
        a, b = names[lacking[0][0]], names[lacking[0][1]]
        raise FitError(
            f"{len(lacking)} pairs have no penalty, {a!r} and {b!r} first: give that of all others as {{..., None: 0.1}}"
        )
    return weights


@dataclass(frozen=True, eq=False)
class PenaltyFit:
    """What one penalty gives: a graph that can be judged."""

    found: Any
    """The sparse precision, or the regressions, behind it: their `objective`, and the `gap` to its minimum."""
    joined: Bools
    """Which pairs are joined: a symmetric matrix."""
    deviance: float
    """−2 log-likelihood, up to a constant."""
    n_parameters: int
    """How many parameters the edges have."""
    n_pairs: float
    """How many pairs of variables are joined."""


class PenaltyFits:
    """A path: a fit for each penalty on what was seen of some rows, and how to see that on others."""

    def __init__(self, problem: Problem, method: Any, penalties: Penalties, seen: Any) -> None:
        self.problem, self.method, self.penalties, self.seen, self.fits = problem, method, penalties, seen, list[PenaltyFit]()
        self.data = problem.data if isinstance(problem.data, Statistics) else problem.data.select(problem.names)
        self.seed, self.threads, self.weight, self.n_variables = problem.seed, problem.threads, float(seen.weight), problem.n

    def fits_of(self, seen: Any) -> Iterator[PenaltyFit]:
        """A fit for each penalty, each the start of the next."""
        raise NotImplementedError

    def seen_in(self, data: Data) -> Any:
        """What the fits need of other rows."""
        raise NotImplementedError

    def held_out(self, train: Data, test: Data) -> Array:
        """The log-likelihood of rows under the fits on others, for each penalty."""
        raise NotImplementedError

    def again(self, data: Data) -> Sequence[PenaltyFit]:
        """The fits on other rows, for the same penalties."""
        return list(self.fits_of(self.seen_in(data)))

    def outcome(self, judgement: Judgement, finished: bool) -> GraphOutcome:
        """The graph of the best fit, and what is told of each penalty."""
        names = self.problem.names
        edges = [(names[i], names[j]) for i, j in np.argwhere(np.triu(self.fits[judgement.best].joined)).tolist()]
        each = zip(self.penalties.multiples, self.fits, judgement.criteria.tolist(), strict=False)
        path = PenaltyPath(
            PathEntry(x, int(np.count_nonzero(f.joined)) // 2, c, f.found.objective, f.found.gap) for x, f, c in each
        )
        score, name = judgement.score, judgement.score_name
        return GraphOutcome(Graph(edges, nodes=names), score, path=path, finished=finished, score_name=name)

    def judgement(self) -> tuple[Judgement, bool]:
        """What the method's way to choose says of the fits, and whether time, and the user, allowed all of them.

        One penalty, or a path that was stopped, is judged by EBIC, which needs nothing more. That the best penalty is the least
        tried is told without its number, so that resamples tell it once.
        """
        select, finished, n = self.method.select, True, len(self.penalties.multiples)
        try:
            for fit in self.fits_of(self.seen):
                self.fits.append(fit)
                self.problem.progress.check(f"penalty {len(self.fits)} of {n}")
        except (OutOfTime, KeyboardInterrupt):
            if not self.fits:
                raise
            finished = False
        if finished and len(self.fits) > 1:
            try:
                judgement: Judgement = select.judge(self)
            except (OutOfTime, KeyboardInterrupt):
                finished = False
        if not finished or len(self.fits) == 1:
            judgement = EBIC(getattr(select, "gamma", 0.5)).judge(self)
        if finished and n > 1 and judgement.best == n - 1:
            note(
                "the penalty that was chosen is the smallest of the path: a still smaller one, given as a penalty, may be better"
            )
        return judgement, finished


@dataclass(frozen=True)
class PenalisedMethod(GraphMethod):
    """A method with a penalty for each pair, or a way to choose one."""

    penalty: Any = None
    select: Any = EBIC()  # noqa: RUF009 - a frozen value
    n_penalties: int = 20

    def __post_init__(self) -> None:
        object.__setattr__(self, "penalty", checked_penalty(self.penalty))
        check_has(self.select, "judge", "a penalty is chosen by EBIC(0.5), StARS(0.05) or HeldOut(5)")
        whole(self.n_penalties, "the number of penalties", 1)

    def penalties(self, problem: Problem, matrix: Array, *, diagonal: bool = False) -> Penalties:
        """The penalties of the pairs, of which `matrix` says how strong they are; those of a user have the columns' order."""
        known = problem.data.columns if isinstance(problem.data, Data) else tuple(problem.data.variables)
        order = tuple(name for name in known if name in problem.number)
        return Penalties.of(self.penalty, self.n_penalties, matrix, problem.rules, order, diagonal=diagonal)
