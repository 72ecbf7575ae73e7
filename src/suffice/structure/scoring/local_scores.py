"""Local scores: (child, parents) → score, in batches, each computed once.

Variables are numbered in the order of their names, parents are sorted numbers. Where the statistics come from (a scan of the
rows, bitmaps in memory, one matrix of moments, statistics that were saved, or that incomplete rows are expected to have) is the
business of a kind of `ScoreSource`, which `score_sources.py` chooses once. `FamilyScores` serves any variables, any score and any
engine, by the statistics of single families, `ExpectedScores` takes them from tables of any numbers; the others are in files of
their own.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.iteration import NOTHING, Memory
from suffice.basis.variables import Finite, Variable
from suffice.engines.bitmaps import TABLES
from suffice.engines.data import Data
from suffice.errors import FitError, note
from suffice.families import family_of, has_family
from suffice.objectives.scores import Evidence, Penalised, local_score
from suffice.statistics import Request, Statistics
from suffice.structure.rules import Parents, Rules, toggle_parent
from suffice.structure.scoring.parent_sets import TIE, Level, ParentSets, Sets, by_size, choose, families_of, lattice

if TYPE_CHECKING:
    from suffice.incomplete.expectations import ExpectedStatistics

Family = tuple[int, Parents]
T = TypeVar("T")

CELLS = 2**24
"""Cells of tables that are asked for in one scan,"""

FAMILIES = 2**12
"""and families."""

DENSE = 2**20
"""Cells up to which an expected table is scored as a whole."""

SLOW = 30_000
"""Families that are scored within some seconds where each has statistics of its own."""


def in_memory(items: Iterable[T], size: Callable[[T], float], most: float, most_items: float = math.inf) -> Iterator[list[T]]:
    """The items in parts that are not larger than `most` together, unless one is by itself."""
    part: list[T] = []
    total = 0.0
    for item in items:
        here = size(item)
        if part and (total + here > most or len(part) == most_items):
            yield part
            part, total = [], 0.0
        part.append(item)
        total += here
    if part:
        yield part


class ScoreSource:
    """The scores of families over some data, from a source of some kind. A family that cannot be estimated has −inf.

    A kind says what families of one size score, in `_of_sets`; all questions come down to that. `watch` is called between parts
    of long work; it may raise to stop it. Variables that are `given` may be parents, but are not modelled: they score nothing.
    """

    most_families: float = math.inf
    """How many families are scored within some seconds."""
    quick: float = 20_000
    """How many families are scored within a fraction of a second: for more, a hill climb is made first."""
    weight: float
    """The number of rows, or their weight."""

    def __init__(
        self,
        data: Data | Statistics | ExpectedStatistics,
        variables: Sequence[Variable],
        score: Any,
        *,
        threads: int | None = None,
        memory_limit: float | None = None,
        watch: Callable[..., None] = lambda: None,
        given: Collection[int] = (),
        memory: Memory = NOTHING,
    ) -> None:
        self.memory = memory
        self.data, self.score, self.threads, self.memory_limit, self.watch = data, score, threads, memory_limit, watch
        self.variables = tuple(sorted(variables, key=lambda v: v.name))
        self.names = tuple(v.name for v in self.variables)
        self.weight = data.weight
        self.n, self.given = len(self.names), sorted(given)
        self.known: dict[Family, float] = {(i, ()): 0.0 for i in self.given}
        self._told = False

    def families(self, families: Iterable[Family]) -> Array:
        """The scores of these families; those not yet known are computed in one batch."""
        wanted = list(families)
        new = [f for f in dict.fromkeys(wanted) if f not in self.known]
        if new:
            fresh = self.memory.answer(["families", *fingerprint(new)], partial(self._fresh, new))
            self.known.update(zip(new, fresh.tolist(), strict=True))
        return np.array([self.known[f] for f in wanted])

    def family(self, child: int, parents: Parents) -> float:
        """The score of one family."""
        return float(self.families([(child, parents)])[0])

    def total(self, parents: Sequence[Parents]) -> float:
        """The score of a graph."""
        return float(self.families(enumerate(parents)).sum())

    def tie(self, score: float) -> float:
        """The difference below which gains at this score are equal."""
        return TIE * (1.0 + abs(score))

    def remarks(self, parents: Sequence[Parents]) -> list[str]:
        """What is to be said of a graph that was found."""
        return []

    def toggles(self, child: int, parents: Parents, candidates: Sequence[int] | None = None) -> Array:
        """The child's score with each candidate, all variables if none are named, put into its parents, or taken out if it is one
        of them; NaN for the child, and for no candidates."""
        chosen = [c for c in (range(self.n) if candidates is None else candidates) if c != child]
        if (scores := self._toggles(child, parents, chosen)) is None:
            scores = np.full(self.n, np.nan)
            scores[chosen] = self.families([(child, toggle_parent(parents, c)) for c in chosen])
        return scores

    def _toggles(self, child: int, parents: Parents, candidates: list[int]) -> Array | None:
        """The same by a shorter way, where there is one."""
        return None

    def ahead(self, families: Iterable[Family]) -> None:
        """Score what will be asked for next, where that saves passes over the rows."""

    def survey(self, rules: Rules) -> None:
        """Score all that the rules allow, where that saves passes over the rows: a climb asks for some of it first."""

    def pairs(self) -> tuple[Array, Array]:
        """The score of each variable alone, and [child, parent] of each with one parent (−inf where it has none)."""
        single, pair = self.memory.answer(["pairs"], self._pairs)
        return single, pair

    def _pairs(self) -> tuple[Array, Array]:
        n = self.n
        single, pair = np.empty(n), np.full((n, n), -np.inf)
        rules = Rules.free(n, 1)
        levels, scores = self._score_lattice(rules.without_parents(self.given) if self.given else rules, prune=False)
        single[levels[0].sets[:, 0]] = scores[0][:, 0]
        if len(levels) > 1:
            a, b = levels[1].sets.T
            pair[a, b], pair[b, a] = scores[1].T
        single[self.given], pair[self.given] = 0.0, -np.inf
        return single, pair

    def parent_sets(self, rules: Rules, *, prune: bool = True) -> ParentSets:
        """All parent sets that the rules allow; with `prune`, those that are better than each of their subsets."""

        def make() -> ParentSets:
            levels, scores = self._score_lattice(rules.without_parents(self.given) if self.given else rules, prune=prune)
            scores[0][self.given] = 0.0
            return choose(rules, levels, scores, self.watch, prune=prune)

        bits, others = np.packbits(rules.allowed).tobytes(), rules.required.tobytes() + rules.max_parents.tobytes()
        asked = ["parent sets", prune, rules.n_families, zlib.crc32(bits), zlib.crc32(others)]
        return self.memory.answer(asked, make, ParentSets.pack, ParentSets.unpack)

    def _score_lattice(self, rules: Rules, *, prune: bool) -> tuple[list[Level], list[Array]]:
        """The lattice and the score of each member of each set given the others, −inf where it needs no score."""
        levels, scores = lattice(rules, self.watch), []
        for level in levels:
            self.watch()
            axis, which = np.nonzero(families_of(level.sets, rules).T)
            scores.append(np.full(level.sets.shape, -np.inf))
            asked, sets = ["sets", level.sets.shape[1], len(axis)], level.sets[which]
            scores[-1][which, axis] = self.memory.answer(asked, partial(self._of_sets, sets, axis))
        return levels, scores

    def _fresh(self, families: Sequence[Family]) -> Array:
        """The scores of families that were not asked for before."""
        result = np.empty(len(families))
        for order, sets, axis in by_size(families):
            result[order] = self._of_sets(sets, axis)
        return result

    def _of_sets(self, sets: Sets, axis: Ints) -> Array:
        """The scores of the families whose child stands at place axis[g] of sets[g]."""
        return self.families(families_in(sets, axis))

    def _tell_once(self, what: str) -> None:
        """Note what is left out; only the first of its kind."""
        if not self._told:
            note(what)
            self._told = True


def fingerprint(families: Sequence[Family]) -> list[int]:
    """Which families these are, in a few numbers: how many, a sum of the first ones, and the last."""
    return [len(families), zlib.crc32(repr(list(families[:100])).encode()), families[-1][0], *families[-1][1]]


def room_for(memory_limit: float | None) -> int:
    """The cells of tables for which a scan is made."""
    return int(np.clip((memory_limit or 2.0**31) / 16, 2**16, 16 * TABLES))


def families_in(sets: Sets, axis: Ints) -> list[Family]:
    """The families whose child stands at place axis[g] of sets[g]."""
    return [(members.pop(place), tuple(members)) for members, place in zip(sets.tolist(), axis.tolist(), strict=True)]


def form_of(score: Any, weight: float) -> tuple[int, float, float] | None:
    """A score of tables as the kernels know it: kind, imagined rows, price of a parameter; None for any other."""
    if isinstance(score, Penalised):
        return 0, 0.0, score.price(weight)
    form = score.prior.table_form if type(score) is Evidence else None
    return None if form is None else (*form, 0.0)


class FamilyScores(ScoreSource):
    """Asks the data for each family's table or moments, and the score for its value; each family once."""

    most_families = SLOW

    def __init__(self, *data: Any, **options: Any) -> None:
        super().__init__(*data, **options)
        seen = self.data.gather([self._request(i, ()) for i in range(self.n)], threads=self.threads)
        self.score = self.score.bind({v.name: v for v in self.variables}, seen)

    def _score_lattice(self, rules: Rules, *, prune: bool) -> tuple[list[Level], list[Array]]:
        """Families of all sizes are asked for at once: what counts is how often the rows are read."""
        asked: list[Family] = []
        for level in lattice(rules, self.watch):
            which, axis = np.nonzero(families_of(level.sets, rules))
            asked += families_in(level.sets[which], axis)
        self.families(asked)
        return super()._score_lattice(rules, prune=prune)

    def _fresh(self, families: Sequence[Family]) -> Array:
        """In as few scans as there is memory for."""
        scores = [np.empty(0)]
        for batch in in_memory(families, self._size, CELLS, FAMILIES):
            self.watch()
            scores.append(self.memory.answer(["batch", *fingerprint(batch)], partial(self._batch, batch)))
        return np.concatenate(scores)

    def _batch(self, families: Sequence[Family]) -> Array:
        """The scores of families from one scan."""
        possible = {f for f in families if has_family(*self._members(*f))}
        statistics = self.data.gather([self._request(*f) for f in families if f in possible], threads=self.threads)
        scores = np.full(len(families), -np.inf)
        for k, f in enumerate(families):
            if k % 256 == 255:
                self.watch()
            if f not in possible:
                continue
            try:
                scores[k] = local_score(self.score, *self._members(*f), statistics)
            except FitError as error:
                if not f[1]:
                    raise
                self._tell_once(f"parent sets that cannot be estimated are left out of the search; the first: {error.said}")
        return scores

    def _members(self, child: int, parents: Parents) -> tuple[Variable, list[Variable]]:
        return self.variables[child], [self.variables[p] for p in parents]

    def _request(self, child: int, parents: Parents) -> Request:
        members = self._members(child, parents)
        return family_of(*members).needs(*members)

    def _size(self, family: Family) -> float:
        members = [self.variables[v] for v in (family[0], *family[1])]
        cells = float(np.prod([v.n_states for v in members if isinstance(v, Finite)], dtype=float))
        return cells * (sum(not isinstance(v, Finite) for v in members) ** 2 + 1)


class ExpectedScores(FamilyScores):
    """Scores of tables that are expected, or of rows with weights of any kind; one table serves all families on its variables.

    The score is a kind, a strength and a price per parameter, as in `FiniteScores`; counts need not be whole.
    """

    def __init__(self, data: Any, variables: Sequence[Variable], score: Any, **options: Any) -> None:
        form = form_of(score, data.weight)
        assert form is not None
        self.kind, self.alpha, self.price = form
        super().__init__(data, variables, score, **options)
        self._n_states = [v.n_states for v in self.variables if isinstance(v, Finite)]

    def _batch(self, families: Sequence[Family]) -> Array:
        huge = np.array([math.prod(self._n_states[v] for v in (child, *parents)) > DENSE for child, parents in families], bool)
        scores = np.empty(len(families))
        scores[~huge] = self._dense([f for f, is_huge in zip(families, huge, strict=True) if not is_huge])
        if huge.any():
            scores[huge] = super()._batch([families[k] for k in np.flatnonzero(huge).tolist()])
        return scores

    def _dense(self, families: Sequence[Family]) -> Array:
        """Those whose tables are scored as a whole."""
        from suffice.numerics.kernels.inference.expectations import table_scores

        sets = [tuple(sorted((child, *parents))) for child, parents in families]
        place = {s: k for k, s in enumerate(dict.fromkeys(sets))}
        names = [tuple(self.variables[v].name for v in s) for s in place]
        if hasattr(self.data, "tables"):  # what is expected makes them at once
            tables, at = self.data.tables(names, threads=self.threads)
        else:
            statistics = self.data.gather([Request(some) for some in names], threads=self.threads)
            each = [statistics.counts(some).values.ravel() for some in names]
            tables, at = np.concatenate([np.zeros(0), *each]), np.cumsum([0, *map(len, each)])
        shape = np.ones((3, len(families)), np.int64)
        for g, ((child, _), members) in enumerate(zip(families, sets, strict=True)):
            for v in members:
                shape[(v >= child) + (v > child), g] *= self._n_states[v]
        scores = np.empty(len(families))
        table_scores(tables, at[[place[s] for s in sets]], *shape, self.kind, self.alpha, scores)
        return np.asarray(scores - self.price * (shape[0] * (shape[1] - 1.0) * shape[2]))
