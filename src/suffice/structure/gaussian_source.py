"""Scores of real variables from one matrix of moments: every family is a corner of it; one scan answers a whole search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.errors import FitError, note
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.families.priors import NormalWishart
from suffice.families.regression import COLLINEAR, NO_RESIDUAL, ROUNDING, too_large
from suffice.statistics import Moments, Request, Statistics
from suffice.structure.lattice import lattice
from suffice.structure.parent_sets import ParentSets, chosen
from suffice.structure.rules import Parents, Rules
from suffice.variables import Variable

Array = npt.NDArray[np.float64]


class GaussianSource:
    """The moments of all variables, and the score: likelihood less a price per parameter, or BGe.

    With s the child's residual scatter and p parents: ln L = −N/2 (ln(2π s/N) + 1), and p + 2 parameters; BGe as in
    `suffice.families.gaussian`, from the scatter to which the prior's has been added.
    """

    def __init__(self, data: Data | Statistics, variables: Sequence[Variable], score: Any, threads: int | None) -> None:
        self.names = tuple(v.name for v in variables)
        request = Request((), self.names)
        statistics = data if isinstance(data, Statistics) else data.gather([request], threads=threads)
        self.weight = statistics.weight
        seen = statistics.moments((), self.names)
        self.score = score.bind({v.name: v for v in variables}, statistics)
        self.prior: NormalWishart | None = getattr(self.score, "prior", None)
        moments = seen if self.prior is None else self._with_prior(seen, variables)
        self.scatter = moments.scatter[0]
        if not np.isfinite(self.scatter).all():
            raise too_large(self.names[int(np.argmin(np.isfinite(self.scatter).all(1)))])
        scale = np.sqrt(np.diag(self.scatter))
        constant = [n for n, s in zip(self.names, scale, strict=True) if s == 0]
        if constant or self.weight < 2:
            raise FitError(
                f"all values of {constant[0]!r} are the same, and a constant has no density: leave the column out"
                if constant
                else "one row has no variance: a Gaussian search needs more rows"
            )
        self.matrix = np.ascontiguousarray(self.scatter / scale[:, None] / scale)
        np.fill_diagonal(self.matrix, 1.0)
        self._told = False

    def _with_prior(self, seen: Moments, variables: Sequence[Variable]) -> Moments:
        assert self.prior is not None
        imagined = self.prior.imagine(variables[-1], variables[:-1])
        assert imagined is not None
        return seen + imagined.at(seen.keys)

    watch: Callable[[], None] = staticmethod(lambda: None)

    def families(self, families: Sequence[tuple[int, Parents]]) -> Array:
        result = np.empty(len(families))
        by_size: dict[int, list[int]] = {}
        for i, (_, parents) in enumerate(families):
            by_size.setdefault(len(parents), []).append(i)
        for which in by_size.values():
            result[which] = self._scored(np.array([(*families[i][1], families[i][0]) for i in which], np.int32))
        return result

    def toggles(self, child: int, parents: Parents, candidates: Sequence[int]) -> Array:
        return self.families([(child, tuple(sorted({*parents} ^ {c}))) for c in candidates])

    def pairs(self) -> tuple[Array, Array]:
        n = len(self.names)
        alone = self._scored(np.arange(n, dtype=np.int32)[:, None])
        child, parent = (a.ravel() for a in np.indices((n, n)))
        other = child != parent
        pair = np.full((n, n), -np.inf)
        pair[child[other], parent[other]] = self._scored(np.column_stack([parent, child])[other].astype(np.int32))
        return alone, pair

    def parent_sets(self, rules: Rules, *, prune: bool = True) -> ParentSets:
        levels = lattice(rules)
        scores = []
        for level in levels:
            self.watch()
            columns = [
                self._scored(np.column_stack([np.delete(level.sets, j, axis=1), level.sets[:, j]]).astype(np.int32))
                for j in range(level.size)
            ]
            scores.append(np.column_stack(columns))
        return chosen(rules, levels, scores, prune=prune)

    def _scored(self, members: npt.NDArray[np.int32]) -> Array:
        """The scores of families of one size, the child last."""
        from suffice.kernels.gaussian import residuals

        left, log_det = np.empty(len(members)), np.empty(len(members))
        collinear = COLLINEAR if self.prior is None else ROUNDING
        residuals(self.matrix, np.ascontiguousarray(members), collinear, NO_RESIDUAL, left, log_det)
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
            self._tell(members[int(np.argmax(lost))])
            scores[lost] = -np.inf
        return np.asarray(scores)

    def _evidence(self, residual: Array, log_det: Array, p: int) -> Array:
        from scipy.special import gammaln

        prior = self.prior
        assert prior is not None
        assert prior.df is not None
        assert prior.n is not None
        assert prior.scale is not None
        nu, t, N = prior.df - prior.n + p + 1, prior.scale, self.weight
        before = gammaln(nu / 2) - 0.5 * np.log(prior.count) - 0.5 * p * np.log(t) - 0.5 * nu * np.log(t / 2)
        after = gammaln((nu + N) / 2) - 0.5 * np.log(prior.count + N) - 0.5 * log_det - 0.5 * (nu + N) * np.log(residual / 2)
        return np.asarray(after - before - 0.5 * LOG_2PI * N)

    def _tell(self, family: npt.NDArray[np.int32]) -> None:
        if self._told:
            return
        self._told = True
        *parents, child = (self.names[v] for v in family)
        note(
            f"parent sets without an estimate are left out of the search (copies or combinations of columns, or too few rows); "
            f"the first: {child!r} given {', '.join(map(repr, parents))}"
        )
