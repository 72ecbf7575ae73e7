"""Scores of real variables, all from one matrix of moments."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.errors import FitError, note
from suffice.exponential.normals.lines import COLLINEAR, NO_RESIDUAL, ROUNDING, too_large
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.scores import Evidence
from suffice.statistics import Request
from suffice.structure.scoring.local_scores import ScoreSource
from suffice.structure.scoring.parent_sets import Sets


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
        if constant or self.weight < 2:
            raise FitError(
                f"all values of {constant[0]!r} are the same, and a constant has no density: leave the column out"
                if constant
                else "one row has no variance: a Gaussian search needs more rows"
            )
        self.matrix = np.ascontiguousarray(self.scatter / scale[:, None] / scale)
        np.fill_diagonal(self.matrix, 1.0)

    def _of_sets(self, sets: Sets, axis: Ints) -> Array:
        from suffice.kernels.counting.moments import residuals

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
            self._tell(members[int(np.argmax(lost))])
            scores[lost] = -np.inf
        return np.asarray(scores)

    def _evidence(self, residual: Array, log_det: Array, p: int) -> Array:
        from scipy.special import gammaln

        prior = self.prior
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
