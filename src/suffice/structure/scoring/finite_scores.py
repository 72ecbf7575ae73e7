"""Scores of finite variables from bitmaps.

With H(S) = Σ c ln c over the cells of the table of S, the log-likelihood of x given P is H(P ∪ x) − H(P): one table of four
variables serves four families. BDeu has the same form, as its imagined rows depend only on the number of cells. K2, Dirichlet and
BDs do not, and are summed for each family.

Values are whole multiples of 1/scale (see `kernels.counting.bitmaps`), so that nothing depends on the order of a sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools, Ints
from suffice.engines.bitmaps import TABLES
from suffice.engines.steps.bits import BitBlock, BitLayout, Counts
from suffice.engines.steps.blocks import in_order
from suffice.numerics.kernels.counting.bitmaps import expand, family_terms, score_toggles, set_terms, term, toggle_scores
from suffice.statistics import Request
from suffice.structure.rules import Parents, Rules
from suffice.structure.scoring.local_scores import FamilyScores, ScoreSource, families_in, form_of
from suffice.structure.scoring.parent_sets import Level, Sets, families_of, lattice, pieces

KNOWN = 2**17
"""Values of c ln c that are looked up."""

SMALL = 2**12
"""Counts up to which the terms of BDeu are looked up, for each number of cells."""

DENSE = 2**22
"""Cells up to which a table is counted densely."""


Form = tuple[int, float, float, Ints, float]
"""A score as the kernels know it: see `suffice.numerics.kernels.counting.bitmaps`."""


@dataclass(frozen=True, eq=False)
class Toggles:
    """The scores of the last of `prefix` given the others and each of `new`, and, if asked for, without each other.

    Counted and scored in one call: of few rows, calls are what costs.
    """

    layout: BitLayout
    form: Form
    prefix: Parents
    new: npt.NDArray[np.int32]
    less: bool
    coded: ClassVar[bool] = False

    def of(self, block: BitBlock) -> tuple[Array, Array]:
        added, taken = np.empty(len(self.new)), np.empty(len(self.prefix) - 1 if self.less else 0)
        bits = block.bits, block.times, self.layout.first, self.layout.sizes
        toggle_scores(bits, np.array([self.prefix], np.int32), self.new, self.form, added, taken)
        return added, taken


class FiniteScores(ScoreSource):
    """Bitmaps of the data, and the score as a kind and a strength: 0 likelihood less `price` a parameter, 1 BDeu(alpha),
    2 Dirichlet(alpha), 3 BDs(alpha)."""

    data: Any

    def __init__(self, *data: Any, tables: Any, **options: Any) -> None:
        super().__init__(*data, **options)
        form = form_of(self.score, self.weight)
        assert form is not None
        self.kind, self.alpha, self.price = form
        self.bitmaps, self.sizes, self.room = tables, tables.sizes, TABLES  # cells that are counted in one go
        n = max(self.weight, 2.0)
        # No sum of terms exceeds a whole number of 64 bits: a row adds at most ln N, or ln of what is imagined in its cell.
        largest = np.log(n) + (80.0 + abs(np.log(self.alpha)) if self.kind else 0.0)
        self.scale = 2.0 ** np.floor(61 - np.log2(n * largest))
        c = np.arange(min(int(n) + 1, KNOWN), dtype=float)
        self.logs = np.round(c * np.log(np.maximum(c, 1.0)) * self.scale).astype(np.int64)
        self.form: Form = (*form, self.logs, self.scale)

    def _toggles(self, child: int, parents: Parents, candidates: list[int]) -> Array | None:
        gone = [c for c in candidates if c in parents]
        new = np.array([c for c in candidates if c not in parents], np.int32)
        prefix = (*parents, child)
        cells = math.prod(int(self.sizes[v]) for v in prefix)
        if not len(new) or cells * int(self.sizes[new].max()) > DENSE:
            return None

        def count() -> tuple[Array, Array]:
            if self.bitmaps.is_little_work(cells, new):
                return self.bitmaps.bits.at_once(Toggles(self.bitmaps.layout, self.form, prefix, new, bool(gone)))  # type: ignore[no-any-return]
            added, taken = np.empty(len(new)), np.empty(len(parents) if gone else 0)
            tables, at = self.bitmaps.count_extensions(prefix, new)
            score_toggles(tables, at, self.sizes, np.array(prefix, np.int32), new, self.form, added, taken)
            return added, taken

        asked = ["toggles", child, *parents, -1, len(candidates), *candidates[:1], *candidates[-1:]]
        added, taken = self.memory.answer(asked, count)
        scores = np.full(self.n, np.nan)
        scores[new], scores[gone] = added, taken[[parents.index(c) for c in gone]]
        return scores

    def _family_terms(self, sets: Sets, axis: Ints, tables: Counts, at: Ints) -> Ints:
        """The likelihoods or evidences of the children at place axis[g] of sets[g] from the tables of these."""
        size, place = self.sizes[sets], np.arange(sets.shape[1])
        outer, inner = (np.where(there, size, 1).prod(1) for there in (place < axis[:, None], place > axis[:, None]))
        values = np.empty(len(sets), np.int64)
        family_terms(tables, at, outer, size[np.arange(len(sets)), axis], inner, self.form, values)
        return values

    def _score_lattice(self, rules: Rules, *, prune: bool) -> tuple[list[Level], list[Array]]:
        """The lattice and the score of each member of each set given the others, −inf where it needs no score."""
        levels = lattice(rules, self.watch)
        levels = self._worthwhile(levels, rules) if prune and self.kind == 0 and self.price > 0 else levels
        terms = None
        if self.kind <= 1:  # of no variables: all rows are in one cell
            alpha = self.alpha if self.kind == 1 else 0.0
            terms = np.array([term(int(self.weight), alpha, self.logs, self.scale) if self.weight else 0], np.int64)
        tables = offsets = None
        scores: list[Array] = []
        for level in levels:
            values, tables, offsets = self._level(level, tables, offsets, last=level is levels[-1])
            if terms is not None:
                values, terms = values[:, None] - terms[level.sub], values
            scores.append(np.ascontiguousarray(values / self.scale - self._penalty(level.sets)))
        return levels, scores

    @cached_property
    def _slow(self) -> FamilyScores:
        """For the few families whose tables are too large to be written down."""
        return FamilyScores(self.data, self.variables, self.score, threads=self.threads)

    def _penalty(self, sets: Sets) -> Array:
        r = self.sizes[sets].astype(float)
        return np.asarray(self.price * (r - 1.0) * (np.prod(r, axis=1, keepdims=True) / r))

    def _worthwhile(self, levels: list[Level], rules: Rules) -> list[Level]:
        """The lattice without the sets whose every family is dominated whatever its table says.

        A log-likelihood is at most 0, so that P is no better than no parents where the price of its parameters exceeds the loss
        of the child alone (de Campos & Ji 2011, Journal of Machine Learning Research 12, p. 663).
        """
        alone = self._of_sets(levels[0].sets, np.zeros(self.n, np.int64))
        need: list[Bools] = [np.ones(self.n, bool)]
        for level in levels[1:]:
            need.append(np.empty(len(level.sets), bool))
            for part in pieces(len(level.sets), self.watch):
                sets = level.sets[part]
                hope = np.less(self._penalty(sets), -alone[sets])
                if rules.required.any():
                    hope |= np.asarray(rules.required.any(1))[sets]
                need[-1][part] = (hope & families_of(sets, rules)).any(1)
        for k in range(len(levels) - 1, 0, -1):
            for part in pieces(len(need[k]), self.watch):
                need[k - 1][levels[k].sub[part][need[k][part]]] = True
        result = [levels[0]]
        for k in range(1, len(levels)):
            if not need[k].any():
                break
            result.append(levels[k].subset(np.flatnonzero(need[k]), np.cumsum(need[k - 1]) - 1, self.watch))
        return result

    def _level(self, level: Level, tables: Any, offsets: Any, *, last: bool) -> tuple[Ints, Any, Any]:
        """The terms of the sets of one level (kinds 0, 1) or of their families [set, child], and their tables for the next."""
        sets, size = level.sets, level.sets.shape[1]
        if size == 1:
            tables, offsets = self.bitmaps.count_singles()
            return self._terms(sets, tables, offsets), tables, offsets
        by_rows = self.bitmaps.by_rows(sets)
        values = np.empty(len(sets) if self.kind <= 1 else sets.shape, np.int64)
        kept = [np.zeros(0, np.int32)]  # type: list[Counts]
        for g in self._pieces(sets, by_rows):
            self.watch()
            asked = ["sets", size, len(values), *g[[0, -1]].tolist()]
            if by_rows[g[0]]:
                values[g] = self.memory.answer(asked, partial(self._count_by_rows, sets[g]))
            elif last:  # nobody needs the tables after it
                values[g] = self.memory.answer(asked, partial(self._expand, level, g, tables, offsets))
            else:
                values[g] = self._expand(level, g, tables, offsets, kept)
        if last:
            return values, None, None
        cells = np.where(by_rows, 0, self.bitmaps.cells(sets))
        return values, np.concatenate(kept), np.concatenate([[0], np.cumsum(cells)])

    def _pieces(self, sets: Sets, apart: Bools) -> Iterator[Ints]:
        """Which sets are counted together: those that are counted apart, then the others, as many as fit into memory."""
        cells = self.bitmaps.cells(sets)
        cells[cells > DENSE] = 0  # such tables are not written down
        for which in (np.flatnonzero(apart), np.flatnonzero(~apart)):
            ends = np.cumsum(cells[which]) // self.room
            yield from (g for g in np.split(which, np.flatnonzero(np.diff(ends))) if len(g))

    def _expand(self, level: Level, g: Ints, tables: Any, offsets: Any, kept: list[Counts] | None = None) -> Ints:
        """The terms of some sets, whose tables are kept if asked for: cells with a last state are what is left of those below."""
        sets, sub = level.sets[g], level.sub[g]
        core, core_at = self.bitmaps.count_core(sets)
        at = np.concatenate([[0], np.cumsum(self.bitmaps.cells(sets))])
        full = np.empty(int(at[-1]), core.dtype)
        self._split(at, lambda a, b: expand(sets[a:b], self.sizes, core, core_at[a:], sub[a:b], tables, offsets, full, at[a:]))
        if kept is not None:
            kept.append(full)
        return self._terms(sets, full, at)

    def _terms(self, sets: Sets, tables: Counts, at: Ints) -> Ints:
        """What the tables say: one term a set (kinds 0, 1), or one a family."""
        if self.kind > 1:
            return np.column_stack([self._family_terms(sets, np.full(len(sets), j), tables, at) for j in range(sets.shape[1])])
        values, kinds = np.empty(len(sets), np.int64), np.zeros(len(sets), np.int64)
        alpha, known = np.zeros(1), self.logs[None, :]
        if self.kind == 1:
            alpha, kinds, known = self._imagined_counts(np.diff(at))
        self._split(at, lambda a, b: set_terms(tables, at[a : b + 1], alpha, kinds[a:b], known, self.scale, values[a:b]))
        return values

    def _imagined_counts(self, cells: Ints) -> tuple[Array, Ints, Ints]:
        """The imagined rows in a cell, by the number of cells: distinct numbers, which a table has, and terms of small counts."""
        sizes, kinds = np.unique(cells, return_inverse=True)
        alpha, n = self.alpha / sizes, min(len(self.logs), SMALL)
        known, unknown = np.zeros((len(alpha), n), np.int64), np.zeros((len(alpha), 0), np.int64)
        for k, terms in enumerate(known):  # those of tables of one cell
            set_terms(np.arange(n, dtype=np.int32), np.arange(n + 1), alpha, np.full(n, k), unknown, self.scale, terms)
        return alpha, kinds.astype(np.int64), known

    def _count_by_rows(self, sets: Sets) -> Ints:
        """The terms of sets whose tables are counted row by row; huge ones as lists of the cells that occur."""
        huge = self.bitmaps.cells(sets) > DENSE
        shape = len(sets) if self.kind <= 1 else sets.shape
        values = np.empty(shape, np.int64)
        tables, at = self.bitmaps.count_by_scan(sets[~huge])
        values[~huge] = self._terms(sets[~huge], tables, at)
        for g in np.flatnonzero(huge):
            values[g] = self._huge(sets[g])
        return values

    def _huge(self, members: Any) -> Any:
        if self.kind > 1:
            families = families_in(np.tile(members, (len(members), 1)), np.arange(len(members)))
            return np.round(self._slow.families(families) * self.scale).astype(np.int64)
        counts = self.data.gather([Request(tuple(self.bitmaps.names[v] for v in members))])
        _, cells = next(iter(counts)).listed()
        a = self.alpha / float(np.prod(self.sizes[members].astype(float))) if self.kind else 0.0
        values, times = np.unique(cells, return_counts=True)
        return sum(int(term(int(c), a, self.logs, self.scale)) * int(k) for c, k in zip(values, times, strict=True))

    def _of_sets(self, sets: Sets, axis: Ints) -> Array:
        scores, huge = np.empty(len(sets)), self.bitmaps.cells(sets) > DENSE
        for g in self._pieces(sets, huge):
            if huge[g[0]]:
                scores[g] = self._slow.families(families_in(sets[g], axis[g]))
            else:
                terms = self._family_terms(sets[g], axis[g], *self.bitmaps.count_full(sets[g]))
                scores[g] = terms / self.scale - self._penalty(sets[g])[np.arange(len(g)), axis[g]]
        return scores

    def _split(self, at: Ints, job: Callable[[int, int], object]) -> None:
        """The job over ranges of tables with these offsets, in threads where it is worth it."""
        workers, n = self.bitmaps.workers, len(at) - 1
        if workers == 1 or at[-1] < 2**16:
            job(0, n)
            return
        ends = np.linspace(0, n, 4 * workers + 1).astype(int)
        tasks = ((lambda a=a, b=b: job(a, b)) for a, b in pairwise(ends) if b > a)
        for _ in in_order(tasks, workers):
            pass
