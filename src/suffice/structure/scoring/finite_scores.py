"""Scores of finite variables from bitmaps.

With H(S) = Σ c ln c over the cells of the table of S, the log-likelihood of x given P is H(P ∪ x) − H(P): one table of four
variables serves four families. BDeu has the same form, as its imagined rows depend only on the number of cells. K2, Dirichlet and
BDs do not, and are summed for each family.

Values are whole multiples of 1/scale (see `kernels.counting.local_scores`), so that nothing depends on the order of a sum.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools, Ints
from suffice.engines.bitmaps import TABLES, Bitmaps
from suffice.engines.data import Data
from suffice.engines.steps.bits import BitBlock, BitLayout, Counts
from suffice.structure.constraints.rules import Parents, Rules
from suffice.structure.scoring.local_scores import FamilyScores, ScoreSource, families_in, form_of
from suffice.structure.scoring.parent_sets import Level, Sets, lattice, pieces
from suffice.variables import Finite

KNOWN = 2**17
"""Values of c ln c that are looked up."""

SMALL = 2**12
"""Counts up to which the terms of BDeu are looked up, for each number of cells."""

DENSE = 2**22
"""Cells up to which a table is counted densely."""


def room_for(memory_limit: float | None) -> int:
    """The cells of tables for which a scan is made.

    >>> room_for(None) == 16 * TABLES
    True
    """
    return int(np.clip((memory_limit or 2.0**31) / 16, 2**16, 16 * TABLES))


Form = tuple[int, float, float, Ints, float]
"""A score as the kernels know it: see `suffice.kernels.counting.local_scores`."""


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
        from suffice.kernels.counting.local_scores import toggle_scores

        added, taken = np.empty(len(self.new)), np.empty(len(self.prefix) - 1 if self.less else 0)
        prefix = np.array([self.prefix], np.int32)
        toggle_scores(block.rows(self.layout), prefix, self.new, self.form, added, taken)
        return added, taken


class FiniteScores(ScoreSource):
    """Bitmaps of the data, and the score as a kind and a strength: 0 likelihood less `price` a parameter, 1 BDeu(alpha),
    2 Dirichlet(alpha), 3 BDs(alpha)."""

    data: Data

    def _prepare(self) -> None:
        form = form_of(self.score, self.weight)
        assert form is not None
        finite = [v for v in self.variables if isinstance(v, Finite)]
        self.bitmaps = self._counted_by(finite)
        self.sizes = self.bitmaps.sizes
        self.kind, self.alpha, self.price = form
        self.room = room_for(self.memory_limit)
        n = max(self.weight, 2.0)
        # No sum of terms exceeds a whole number of 64 bits: a row adds at most ln N, or ln of what is imagined in its cell.
        largest = np.log(n) + (80.0 + abs(np.log(self.alpha)) if self.kind else 0.0)
        self.scale = 2.0 ** np.floor(61 - np.log2(n * largest))
        c = np.arange(min(int(n) + 1, KNOWN), dtype=float)
        self.logs = np.round(c * np.log(np.maximum(c, 1.0)) * self.scale).astype(np.int64)
        self.form: Form = (*form, self.logs, self.scale)

    def _counted_by(self, finite: Sequence[Finite]) -> Bitmaps:
        """Who has the tables of sets of variables."""
        return Bitmaps(self.data, finite, threads=self.threads, memory_limit=self.memory_limit)

    def _toggles(self, child: int, parents: Parents, candidates: Sequence[int]) -> Array:
        there = [c for c in candidates if c in parents]
        new = np.array([c for c in candidates if c not in parents], np.int32)
        r, q = int(self.sizes[child]), math.prod(int(self.sizes[p]) for p in parents)
        if not len(new) or q * r * int(self.sizes[new].max()) > DENSE:
            return super()._toggles(child, parents, candidates)
        added, taken = self._score_toggles((*parents, child), new, bool(there))
        if not there:
            return added
        place = {int(c): score for c, score in zip(new, added, strict=True)}
        place.update(zip(parents, taken, strict=True))
        return np.array([place[c] for c in candidates])

    def _score_toggles(self, prefix: Parents, new: npt.NDArray[np.int32], less: bool) -> tuple[Array, Array]:
        """The scores of the last of `prefix` given the others and each of `new`, and, if asked for, without each other."""
        if self.bitmaps.few(math.prod(int(self.sizes[v]) for v in prefix), new):
            return self.bitmaps.bits.at_once(Toggles(self.bitmaps.layout, self.form, prefix, new, less))
        from suffice.kernels.counting.local_scores import score_toggles

        added, taken = np.empty(len(new)), np.empty(len(prefix) - 1 if less else 0)
        tables, at = self.bitmaps.count_extensions(prefix, new)
        score_toggles(tables, at, self.sizes, np.array(prefix, np.int32), new, self.form, added, taken)
        return added, taken

    def _family_terms(self, sets: Sets, axis: Ints, tables: Counts, at: Ints) -> Ints:
        """The likelihoods or evidences of the children at place axis[g] of sets[g] from the tables of these."""
        from suffice.kernels.counting.local_scores import family_terms

        size, place = self.sizes[sets], np.arange(sets.shape[1])
        outer, inner = (np.where(there, size, 1).prod(1) for there in (place < axis[:, None], place > axis[:, None]))
        values = np.empty(len(sets), np.int64)
        family_terms(tables, at, outer, size[np.arange(len(sets)), axis], inner, self.form, values)
        return values

    def _score_lattice(self, rules: Rules, *, prune: bool) -> tuple[list[Level], list[Array]]:
        """The lattice and the score of each member of each set given the others, −inf where it needs no score."""
        levels = lattice(rules, self.watch)
        levels = self._worthwhile(levels, rules) if prune and self.kind == 0 and self.price > 0 else levels
        terms: Ints = np.zeros(1, np.int64)
        tables = offsets = None
        scores: list[Array] = []
        for level in levels:
            values, tables, offsets = self._level(level, tables, offsets, last=level is levels[-1])
            if self.kind <= 1:
                parts = (values[:, None] - (terms[level.sub] if level.size > 1 else self._nothing())) / self.scale
                terms = values
            else:
                parts = values / self.scale
            scores.append(np.ascontiguousarray(parts - self._penalty(level.sets)))
        return levels, scores

    @cached_property
    def _slow(self) -> FamilyScores:
        """For the few families whose tables are too large to be written down."""
        return FamilyScores(self.data, self.variables, self.score, threads=self.threads)

    def _nothing(self) -> int:
        """The term of the empty set: all rows in one cell."""
        from suffice.kernels.counting.local_scores import term

        alpha = self.alpha if self.kind == 1 else 0.0
        return int(term(int(self.weight), alpha, self.logs, self.scale)) if self.weight else 0

    def _penalty(self, sets: Sets) -> Array:
        r = self.sizes[sets].astype(float)
        return np.asarray(self.price * (r - 1.0) * (np.prod(r, axis=1, keepdims=True) / r))

    def _worthwhile(self, levels: list[Level], rules: Rules) -> list[Level]:
        """The lattice without the sets whose every family is dominated whatever its table says.

        A log-likelihood is at most 0, so that P is no better than no parents where the price of its parameters exceeds the loss
        of the child alone (de Campos & Ji 2011, Journal of Machine Learning Research 12, p. 663).
        """
        alone = self._of_sets(levels[0].sets, np.zeros(len(levels[0]), np.int64))
        need: list[Bools] = [np.ones(len(levels[0]), bool)]
        for level in levels[1:]:
            need.append(np.empty(len(level), bool))
            for part in pieces(len(level), self.watch):
                some = level.part(part)
                hope = np.less(self._penalty(some.sets), -alone[some.sets])
                if rules.required.any():
                    hope |= np.asarray(rules.required.any(1))[some.sets]
                need[-1][part] = (hope & some.families(rules)).any(1)
        for k in range(len(levels) - 1, 0, -1):
            for part in pieces(len(levels[k]), self.watch):
                need[k - 1][levels[k].sub[part][need[k][part]]] = True
        result = [levels[0]]
        for k in range(1, len(levels)):
            if not need[k].any():
                break
            result.append(levels[k].subset(np.flatnonzero(need[k]), np.cumsum(need[k - 1]) - 1, self.watch))
        return result

    def _level(self, level: Level, tables: Any, offsets: Any, *, last: bool) -> tuple[Ints, Any, Any]:
        """The terms of the sets of one level (kinds 0, 1) or of their families [set, child], and their tables for the next."""
        if level.size == 1:
            tables, offsets = self.bitmaps.singles()
            return self._terms(level.sets, tables, offsets), tables, offsets
        by_rows = self.bitmaps.by_rows(level.sets)
        shape = len(level) if self.kind <= 1 else level.sets.shape
        values = np.empty(shape, np.int64)
        kept = [np.zeros(0, np.int32)]  # type: list[Counts]
        for g in self._pieces(level.sets):
            self.watch()
            asked = ["sets", level.size, len(values), *g[[0, -1]].tolist()]
            if by_rows[g[0]]:
                values[g] = self.memory.answer(asked, partial(self._count_by_rows, level.sets[g]))
            elif last:
                values[g] = self.memory.answer(asked, partial(self._of_tables, level, g, tables, offsets))
            else:
                full, at = self._expand(level.sets[g], level.sub[g], tables, offsets)
                values[g] = self._terms(level.sets[g], full, at)
                kept.append(full)
        if last:
            return values, None, None
        cells = np.where(by_rows, 0, self.bitmaps.cells(level.sets))
        return values, np.concatenate(kept), np.concatenate([[0], np.cumsum(cells)])

    def _pieces(self, sets: Sets) -> Iterator[Ints]:
        """Which sets are counted together: those by rows, then those by bits, as many as fit into memory."""
        by_rows = self.bitmaps.by_rows(sets)
        for which in (np.flatnonzero(by_rows), np.flatnonzero(~by_rows)):
            yield from (which[part] for part in self._parts(sets[which]))

    def _of_tables(self, level: Level, g: Ints, tables: Any, offsets: Any) -> Ints:
        """The terms of some sets of the last level, whose tables nobody needs after it."""
        return self._terms(level.sets[g], *self._expand(level.sets[g], level.sub[g], tables, offsets))

    def _expand(self, sets: Sets, sub: Ints, tables: Any, offsets: Any) -> tuple[Counts, Ints]:
        from suffice.kernels.counting.bitmaps import expand

        core, core_at = self.bitmaps.core(sets)
        at = np.concatenate([[0], np.cumsum(self.bitmaps.cells(sets))])
        full = np.empty(int(at[-1]), core.dtype)

        def job(low: int, high: int) -> None:
            expand(sets[low:high], self.sizes, core, core_at[low:], sub[low:high], tables, offsets, full, at[low:])

        self._split(job, len(sets), len(full))
        return full, at

    def _terms(self, sets: Sets, tables: Counts, at: Ints) -> Ints:
        """What the tables say: one term a set (kinds 0, 1), or one a family."""
        from suffice.kernels.counting.local_scores import set_terms

        if self.kind <= 1:
            alpha, kinds, known = self._imagined_counts(np.diff(at))
            values = np.empty(len(sets), np.int64)

            def job(low: int, high: int) -> None:
                set_terms(tables, at[low : high + 1], alpha, kinds[low:high], known, self.scale, values[low:high])

            self._split(job, len(sets), len(tables))
            return values
        return np.column_stack([self._family_terms(sets, np.full(len(sets), j), tables, at) for j in range(sets.shape[1])])

    def _imagined_counts(self, cells: Ints) -> tuple[Array, Ints, Ints]:
        """The imagined rows in a cell, by the number of cells: distinct numbers, which a table has, and terms of small counts."""
        if self.kind == 0:
            return np.zeros(1), np.zeros(len(cells), np.int64), self.logs[None, :]
        from suffice.kernels.counting.local_scores import set_terms

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
        from suffice.kernels.counting.local_scores import term
        from suffice.statistics import Request

        if self.kind > 1:
            families = families_in(np.tile(members, (len(members), 1)), np.arange(len(members)))
            return np.round(self._slow.families(families) * self.scale).astype(np.int64)
        counts = self.data.gather([Request(tuple(self.bitmaps.names[v] for v in members))])
        _, cells = next(iter(counts)).listed()  # type: ignore[union-attr]
        a = self.alpha / float(np.prod(self.sizes[members].astype(float))) if self.kind else 0.0
        values, times = np.unique(cells, return_counts=True)
        return sum(int(term(int(c), a, self.logs, self.scale)) * int(k) for c, k in zip(values, times, strict=True))

    def _of_sets(self, sets: Sets, axis: Ints) -> Array:
        terms = np.zeros(len(sets), np.int64)
        huge = self.bitmaps.cells(sets) > DENSE
        small = np.flatnonzero(~huge)
        for part in self._parts(sets[small]):
            g = small[part]
            terms[g] = self._family_terms(sets[g], axis[g], *self.bitmaps.full(sets[g]))
        scores = terms / self.scale - self._penalty(sets)[np.arange(len(sets)), axis]
        if huge.any():
            scores[huge] = self._slow.families(families_in(sets[huge], axis[huge]))
        return np.asarray(scores)

    def _parts(self, sets: Sets) -> list[slice]:
        """Ranges of sets whose tables fit into memory together."""
        cells = np.cumsum(self.bitmaps.cells(sets).clip(0, DENSE)) if len(sets) else np.zeros(0)
        most = TABLES if self.bitmaps.at_hand else self.room
        cuts = [0, *np.flatnonzero(np.diff(cells // most)).tolist(), len(sets)] if len(sets) else []
        return [slice(a, b) for a, b in pairwise(cuts) if b > a]

    def _split(self, job: Any, n: int, work: int) -> None:
        """The job over ranges, in threads where it is worth it."""
        workers = self.bitmaps.workers
        if workers == 1 or work < 2**16:
            job(0, n)
            return
        from suffice.engines.steps.blocks import in_order

        ends = np.linspace(0, n, 4 * workers + 1).astype(int)
        tasks = ((lambda a=a, b=b: job(a, b)) for a, b in pairwise(ends) if b > a)
        for _ in in_order(tasks, workers):
            pass
