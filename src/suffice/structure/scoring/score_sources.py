"""Which kind of `ScoreSource` answers fastest for some data, variables and score: those of other files are loaded when they are
chosen. Here are scores of real variables, all from one matrix of moments, and any others with what a structure prior believes of
each node's parents, or with some families left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.libraries import sc
from suffice.basis.variables import Finite, Real, Variable
from suffice.engines.data import Data
from suffice.errors import FitError
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.numerics.exponential.normals.lines import COLLINEAR, NO_RESIDUAL, ROUNDING, too_large
from suffice.objectives.scores import Evidence, GraphPosterior, Penalised
from suffice.statistics import Request, Statistics
from suffice.structure.rules import Parents, Rules, toggle_parent
from suffice.structure.scoring.local_scores import SLOW, ExpectedScores, Family, FamilyScores, ScoreSource, form_of
from suffice.structure.scoring.parent_sets import Level, Sets, by_size


class GaussianScores(ScoreSource):
    """The moments of all variables, and the score: likelihood less a price per parameter, or BGe.

    With s the child's residual scatter and p parents: ln L = −N/2 (ln(2π s/N) + 1), and p + 2 parameters; BGe as in
    `suffice.families.conditional_gaussian`, from the scatter to which the prior's has been added.
    """

    def __init__(self, *data: Any, **options: Any) -> None:
        super().__init__(*data, **options)
        statistics = self.data.gather([Request((), self.names)], threads=self.threads)
        moments = statistics.moments((), self.names)
        self.score = self.score.bind({v.name: v for v in self.variables}, statistics)
        self.prior: Any = self.score.prior if isinstance(self.score, Evidence) else None
        if self.prior is not None:
            moments += self.prior.imagine(self.variables[-1], self.variables[:-1]).at(moments.keys)
        self.scatter = moments.scatter[0]
        if not np.isfinite(self.scatter).all():
            raise too_large(self.names[int(np.argmin(np.isfinite(np.diag(self.scatter))))])
        scale = np.sqrt(np.diag(self.scatter))
        constant = [n for n, s in zip(self.names, scale, strict=True) if s == 0]
        if constant:
            raise FitError(f"all values of {constant[0]!r} are the same, and a constant has no density: leave the column out")
        if self.weight < 2:
            raise FitError("one row has no variance: a Gaussian search needs more rows")
        self.matrix = np.ascontiguousarray(self.scatter / scale[:, None] / scale)
        np.fill_diagonal(self.matrix, 1.0)

    def _of_sets(self, sets: Sets, axis: Ints) -> Array:
        from suffice.numerics.kernels.counting.moments import residuals

        others = sets[np.arange(sets.shape[1]) != axis[:, None]].reshape(len(sets), -1)
        members = np.column_stack([others, sets[np.arange(len(sets)), axis]])  # the child last
        left, log_det = np.empty(len(members)), np.empty(len(members))
        collinear = COLLINEAR if self.prior is None else ROUNDING
        residuals(self.matrix, members, collinear, NO_RESIDUAL, left, log_det)
        residual = left * np.diag(self.scatter)[members[:, -1]]
        p = members.shape[1] - 1
        if self.prior is None:
            few = float(self.weight).is_integer() and self.weight < p + 2
            if few:
                left[:] = np.nan
            scores = -0.5 * self.weight * (LOG_2PI + np.log(residual / self.weight) + 1.0)
            scores -= self.score.price(self.weight) * (p + 2)
        else:
            log_det += np.log(np.diag(self.scatter))[members[:, :-1]].sum(1)
            scores = self._evidence(residual, log_det, p)
        lost = np.isnan(left)
        if lost.any():
            *parents, child = (self.names[v] for v in members[int(np.argmax(lost))])
            self._tell_once(
                "parent sets without an estimate are left out of the search (copies or combinations of columns, or too few rows)"
                f"; the first: {child!r} given {', '.join(map(repr, parents))}"
            )
            scores[lost] = -np.inf
        return np.asarray(scores)

    def _evidence(self, residual: Array, log_det: Array, p: int) -> Array:
        prior, gammaln = self.prior, sc.gammaln
        nu, t, N = prior.df - prior.n + p + 1, prior.scale, self.weight
        before = gammaln(nu / 2) - 0.5 * np.log(prior.count) - 0.5 * p * np.log(t) - 0.5 * nu * np.log(t / 2)
        after = gammaln((nu + N) / 2) - 0.5 * np.log(prior.count + N) - 0.5 * log_det - 0.5 * (nu + N) * np.log(residual / 2)
        return np.asarray(after - before - 0.5 * LOG_2PI * N)


class PriorScores(ScoreSource):
    """ln p(graph | data) family by family: the scores of the data, as `of_data` makes them, and the prior of
    the parents."""

    def __init__(self, of_data: Callable[..., ScoreSource], *data: Any, **options: Any) -> None:
        super().__init__(*data, **options)
        self.prior = self.score.prior
        self.prior.check(self.names)
        self.of_data = of_data(self.data, self.variables, self.score.score, **options | {"watch": lambda: self.watch()})
        self.most_families = self.of_data.most_families

    def ahead(self, families: Iterable[Family]) -> None:
        self.of_data.ahead(families)

    def survey(self, rules: Rules) -> None:
        self.of_data.survey(rules)

    def _score_lattice(self, rules: Rules, *, prune: bool) -> tuple[list[Level], list[Array]]:
        """Nothing is left out for the price of its parameters where the prior may make up for it."""
        levels, scores = self.of_data._score_lattice(rules, prune=prune and not self.prior.favours_edges(self.names))
        for level, of_level in zip(levels, scores, strict=True):
            for place in range(level.sets.shape[1]):
                of_level[:, place] += self.prior.of_sets(self.names, level.sets, np.full(len(level.sets), place, np.int64))
        return levels, scores

    def _toggles(self, child: int, parents: Parents, candidates: list[int]) -> Array:
        scores = self.of_data.toggles(child, parents, candidates)
        chosen = np.array(candidates, np.int64)
        for order, sets, axis in by_size([(child, toggle_parent(parents, c)) for c in candidates]):
            scores[chosen[order]] += self.prior.of_sets(self.names, sets, axis)
        return scores

    def _of_sets(self, sets: Sets, axis: Ints) -> Array:
        return np.asarray(self.of_data._of_sets(sets, axis) + self.prior.of_sets(self.names, sets, axis))


class Barring(ScoreSource):
    """Other scores, but some families have none: a child whose parents are these, or these and others.

    `known` keeps the other scores, for the next one that is made when more is barred.
    """

    most_families = SLOW

    def __init__(self, scores: ScoreSource, barred: Collection[tuple[int, frozenset[int]]], known: dict[Family, float]) -> None:
        super().__init__(scores.data, scores.variables, scores.score, watch=scores.watch)
        self.scores, self.known = scores, known
        self.barred = [[parents for c, parents in barred if c == child] for child in range(self.n)]

    def families(self, families: Iterable[Family]) -> Array:
        wanted = list(families)
        barred = [any(some <= set(parents) for some in self.barred[child]) for child, parents in wanted]
        return np.where(barred, -np.inf, super().families(wanted))

    def _fresh(self, families: Sequence[Family]) -> Array:
        self.scores.watch = self.watch
        return self.scores.families(families)


class LocalScores(ScoreSource):
    """The scores of families over some data, of the kind that answers fastest. A family that cannot be estimated has −inf.

    `watch` is called between parts of long work; it may raise to stop it. Variables that are `given` may be parents, but are not
    modelled: they score nothing.

    >>> from suffice import scan
    >>> from suffice import BIC
    >>> data = scan({"x": ["a", "b", "a", "b"], "y": ["u", "v", "u", "v"]})
    >>> scores = LocalScores(data, tuple(data.schema.values()), BIC())
    >>> scores.families([(0, ()), (0, (1,))]).round(3)
    array([-3.466, -1.386])
    >>> round(scores.total([(), (0,)]), 3)
    -4.852
    """

    def __new__(cls, data: Any, variables: Sequence[Variable], score: Any, **options: Any) -> ScoreSource:  # type: ignore[misc]
        if isinstance(score, GraphPosterior):
            return PriorScores(cls, data, variables, score, **options)
        if source := source_of_tables(data, variables, score, **options):
            return source
        one_matrix = isinstance(score, Penalised) or (type(score) is Evidence and score.prior.is_one_matrix)
        if all(isinstance(v, Real) for v in variables) and one_matrix:
            return GaussianScores(data, variables, score, **options)
        from suffice.structure.scoring.hybrid_scores import HybridScores

        if HybridScores.serves(data, score):
            return HybridScores(data, variables, score, of_tables=source_of_tables, **options)
        return FamilyScores(data, variables, score, **options)


def source_of_tables(data: Any, variables: Sequence[Variable], score: Any, **options: Any) -> ScoreSource | None:
    """The fastest source for variables that are all finite, or whose tables are expected; None where there are others."""
    from suffice.engines.bitmaps import Bitmaps
    from suffice.structure.scoring.distant_scores import DistantScores, GatheredScores, GatheredTables
    from suffice.structure.scoring.finite_scores import FiniteScores

    asked = data, variables, score
    finite = sorted((v for v in variables if isinstance(v, Finite)), key=lambda v: v.name)
    of_tables = len(finite) == len(variables)
    # tables that have lost different rows have no arithmetic in common, and kernels know tables with a parameter for each cell
    apart = isinstance(data, Statistics) and data.suppression is not None
    if not apart and not (of_tables and any(v.family is not None for v in variables)) and form_of(score, data.weight) is not None:
        few = of_tables and all(v.n_states < 2**16 for v in finite)
        if few and isinstance(data, Data) and (not data.weighted or data.whole_weights):
            limits = {name: options.get(name) for name in ("threads", "memory_limit")}
            tables = Bitmaps(data, finite, **limits)
            return (FiniteScores if tables.at_hand else DistantScores)(*asked, tables=tables, **options)
        if few and GatheredScores.serves(data):
            return GatheredScores(*asked, tables=GatheredTables(data, finite), **options)
        if hasattr(data, "tables") or (few and isinstance(data, Data)):
            return ExpectedScores(*asked, **options)
    return FamilyScores(*asked, **options) if apart or of_tables else None
