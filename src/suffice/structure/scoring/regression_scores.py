"""Scores of families among which some children are regressions: each is fitted, many in one pass over the rows.

A regression has no sufficient statistic. But all that are asked for together climb together, and one that has a parent more than
another that is known begins where that one ended. The other children have scores of their own kind.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.iteration import Packed
from suffice.basis.variables import Variable
from suffice.engines.data import Data
from suffice.errors import SufficeError, listing
from suffice.errors.remedies import as_regression
from suffice.families.design import ParameterLayout, terms
from suffice.families.regressions.glm import MAX_PARAMETERS
from suffice.families.regressions.regression_suprema import RegressionChild, Standardised, Supremum, climb_all, column_products
from suffice.objectives.scores import Evidence
from suffice.structure.rules import Parents
from suffice.structure.scoring.local_scores import Family, ScoreSource, families_in, fingerprint, in_memory
from suffice.structure.scoring.parent_sets import Sets

ROWS_A_PASS = 3e7
"""Rows times regressions of one pass: about a second, after which limits are looked at."""

KEPT = 2**22
"""Parameters that are kept to begin other regressions with."""

PASSES = 4.0
"""Passes over the rows that a regression takes, about: it begins near its end, where one with a parent less ended."""

PER_ROW = 5e-9
"""Seconds a row, pass and column of a regression whose response the kernel knows;"""

PER_REGRESSION = 8e-5
"""and seconds a regression, however few the rows."""


def seconds_each(weight: float, columns: float = 4.0) -> float:
    """About how long one regression of so many rows takes."""
    return PER_REGRESSION + PASSES * PER_ROW * columns * weight


class RegressionScores(ScoreSource):
    """The scores of other kinds of families, and those of children that are regressions: `families` by the child's number."""

    data: Data

    def __init__(self, others: ScoreSource, families: Mapping[int, Any]) -> None:
        self.others, self.regressions = others, dict(families)
        options: Any = {"threads": others.threads, "memory_limit": others.memory_limit, "watch": others.watch}
        self.fits = others.memory  # of each fit what the next ones begin with, and not the scores alone
        super().__init__(others.data, others.variables, others.score, **options)
        self.standardised = Standardised.of(self.data, self.variables, self.threads)
        self.products = column_products(self.data, self.standardised, self.threads)
        by_name = dict(zip(self.names, self.variables, strict=True))
        self.children = {
            i: RegressionChild.of(self.data, f, self.variables[i], [by_name[n] for n in f.roles], self.threads)
            for i, f in self.regressions.items()
        }
        # how many columns each variable gives a child: none where it is its offset or trials
        self._widths = {i: [len(terms([v], f.roles).names) for v in self.variables] for i, f in self.regressions.items()}
        self.most_families = min(self.others.most_families, 20.0 / seconds_each(float(self.data.n_rows)))
        self.quick = min(self.others.quick, self.most_families / 20)
        self.theta: dict[Family, Array] = {}
        self.endless: set[Family] = set()
        self.n_fits = self.n_passes = 0
        self._n_kept = 0

    def remarks(self, parents: Sequence[Parents]) -> list[str]:
        """What is to be said of a graph: regressions whose likelihood has a supremum, but no maximum."""
        said = []
        for child, own in ((c, own) for c, own in enumerate(parents) if (c, own) in self.endless):
            name, absent = self.names[child], self.children[child].absent
            by = f"{listing([self.names[p] for p in own])} {'separates' if len(own) == 1 else 'together separate'}"
            ridge = as_regression(name, type(self.regressions[child]).__name__, ridge=True)
            said.append(
                f"the score of {name!r} is the supremum of its likelihood: {absent}"
                if absent is not None
                else f"{by} the values of {name!r} in the data: its score is the supremum of the likelihood, which no "
                f"coefficients reach; to fit it, give it a ridge, {ridge}"
            )
        return said

    def _of_sets(self, sets: Sets, axis: Ints) -> Array:
        mine = np.isin(sets[np.arange(len(sets)), axis], list(self.regressions))
        result = np.empty(len(sets))
        if not mine.all():
            result[~mine] = self.others._of_sets(sets[~mine], axis[~mine])
        families = families_in(sets[mine], axis[mine])
        new = [f for f in families if f not in self.known and self._has_room(f)]
        most = max(1.0, ROWS_A_PASS / max(1, self.data.n_rows))
        for part in in_memory(new, lambda f: float(self._layout(f).size) ** 2, KEPT, most):
            asked = ["regressions", *fingerprint(part)]
            self.fits.answer(asked, partial(self._fit, part), partial(self._pack, part), partial(self._unpack, part))
        result[mine] = [self.known[f] for f in families]
        return result

    def _has_room(self, family: Family) -> bool:
        """Whether there is room for the curvature of a regression; one without is left out."""
        if self._layout(family).size <= MAX_PARAMETERS:
            return True
        child, parents = family
        try:
            self.regressions[child].check(self.variables[child], self._variables(parents))
        except SufficeError as error:
            self.known[family] = self._without(family, error)
        return False

    def _fit(self, families: Sequence[Family]) -> None:
        """Fit regressions together, by child and number of columns."""
        groups: dict[tuple[int, int], list[Family]] = {}
        for f in families:
            groups.setdefault((f[0], self._n_columns(f)), []).append(f)
        climbs = []
        for (child, _), group in groups.items():
            own, starts = [self._variables(parents) for _, parents in group], np.stack([self._start(f) for f in group])
            climbs.append(self.children[child].climb(self.standardised, own, starts, self.products))
        self.n_fits += len(families)
        watch = partial(self.watch, f"{self.n_fits:,} regressions")
        self.n_passes += climb_all(self.data, self.standardised, climbs, watch, self.threads)
        for (child, _), group, climb in zip(groups, groups.values(), climbs, strict=True):
            found = climb.suprema(self.standardised, self.children[child].summary)
            for family, supremum in zip(group, found, strict=True):
                self.known[family] = self._score_of(family, supremum)

    def _pack(self, families: Sequence[Family], _: None) -> Packed:
        """What a fit of these families has found, for a checkpoint."""
        thetas = [self.theta.get(f, np.zeros(0)) for f in families]
        facts = [[f in self.endless, len(theta)] for f, theta in zip(families, thetas, strict=True)]
        return [facts, self.n_fits, self.n_passes], (np.array([self.known[f] for f in families]), np.concatenate(thetas))

    def _unpack(self, families: Sequence[Family], packed: Packed) -> None:
        (facts, self.n_fits, self.n_passes), (scores, thetas) = packed
        at = 0
        for family, score, (endless, size) in zip(families, scores.tolist(), facts, strict=True):
            self.known[family] = score
            if endless:
                self.endless.add(family)
            if size:
                self.theta[family] = thetas[at : at + size]
            at += size
        self._n_kept += at

    def _score_of(self, family: Family, found: Supremum) -> float:
        """The score of a regression, of which what matters is kept."""
        child, parents = family
        if found.trouble is not None:
            return self._without(family, found.trouble)
        absent = self.children[child].absent
        if absent is not None and isinstance(self.score, Evidence):
            raise absent  # a flat prior of a level without end has no evidence
        if found.endless or absent is not None:
            self.endless.add(family)
        elif self._n_kept < KEPT:
            self.theta[family] = found.theta
            self._n_kept += len(found.theta)
        node = self.regressions[child], self.variables[child], self._variables(parents)
        return float(self.score.of_regression(*node, found, self.weight))

    def _without(self, family: Family, trouble: SufficeError) -> float:
        """The score of a family that is left out, which is said once; a child that has none even without parents is refused."""
        if not family[1]:
            raise trouble
        self._tell_once(f"parent sets that cannot be estimated are left out of the search; the first: {trouble}")
        return -np.inf

    def _layout(self, family: Family) -> ParameterLayout:
        layout: ParameterLayout = self.regressions[family[0]].layout(self.variables[family[0]], self._n_columns(family))
        return layout

    def _variables(self, parents: Parents) -> list[Variable]:
        return [self.variables[p] for p in parents]

    def _n_columns(self, family: Family) -> int:
        widths = self._widths[family[0]]
        return sum(widths[p] for p in family[1])

    def _start(self, family: Family) -> Array:
        """θ of the best regression with a parent less, which has no effect yet; of the levels alone where none is known."""
        child, parents = family
        layout = self._layout(family)
        start = layout.of_levels(self.children[child].levels)
        smaller = [(child, tuple(q for q in parents if q != p)) for p in parents]
        known = [f for f in smaller if f in self.theta]
        if known:
            best = max(known, key=self.known.__getitem__)
            of = [p for p in parents for _ in range(self._widths[child][p])]
            start[layout.of_columns([j for j, p in enumerate(of) if p in best[1]])] = self.theta[best]
        return np.asarray(start)
