"""Expectations: the statistics that incomplete rows are expected to have under a network, for any family, its own or not.

A search sees them as it sees data: `weight`, and `gather(requests)`. Of a finite network `tables` answers many sets at once, in
threads; of one with numbers see `suffice.incomplete.expected_moments`. Rows that show all of a set are counted.

    E[N(s)] = Σ rows w · p(s | what the row shows),   p the product over the components of missing cells that s touches
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

import numpy as np

from suffice.basis.arrays import Array, Ints
from suffice.basis.variables import Finite, Variable
from suffice.engines.data import Data
from suffice.engines.engine import Block, Step
from suffice.engines.steps.blocks import in_order, n_threads
from suffice.errors import FitError, TooLarge, listing
from suffice.families.protocol.family import Cpd
from suffice.incomplete.completions import CodedRows, FiniteCompletions, ReduceRows, Watch, starts, theta_of
from suffice.incomplete.expected_moments import ExpectedMoments, saturated_statistics
from suffice.statistics import Counts, Request, Statistics
from suffice.statistics.counts import n_configurations, sizes

DENSE = 2**22
"""Cells up to which a table is dense."""

VISITS = 2**20
"""Rows, times tables that they are added to, between two looks at the clock."""


class IncompleteRows:
    """Rows with missing cells and hidden variables, reduced to what expectations under any network need of them."""

    def __init__(
        self, data: Data, variables: Mapping[str, Variable], seed: int = 0, *, whole: bool = False, integrated: Iterable[str] = ()
    ) -> None:
        """With `whole` no rows are summed up, and all are held: networks with regressions, of which moments do not say all, need
        every row, and pass over them again and again. Numbers that regressions may be of, or have as parents, and counts that may
        have children are `integrated`: where they are missing, points and values stand for them."""
        self._data, self._seed, self._whole = data.select([n for n in variables if n in data.columns]), seed, whole
        self.variables, self._integrated = variables, tuple(integrated)
        self._step = ReduceRows.over(tuple(variables.values()), self._data, whole=whole)
        lacking = any(v.name not in data.columns or data.missing[v.name] for v in self._step.variables)
        elsewhere = lacking and self._step.reals and not data.engine.near and not whole
        self.rows: CodedRows | None = None  # where rows with numbers lack states and are not near: each question is a pass
        if not elsewhere:
            step = self._step
            kept = self._data.fold(step, what="reading numbers").rows if step.reals else self._data.distinct()
            self.rows = step.encode(kept, self._data)

    watch: Watch = staticmethod(lambda what: None)

    def under(self, cpds: Mapping[str, Cpd]) -> ExpectedStatistics:
        """What is expected under the network of these distributions."""
        if self._step.reals and self._step.crowds and any(cpd.is_open for cpd in cpds.values()):
            raise FitError("rows that were summed up do not say all of a regression: they must be kept whole")
        if self.rows is None:
            return ExpectedElsewhere(self._data, _Expect(self._step, cpds, (), self._seed, self._integrated))
        if self.rows.reals or self._whole:
            return ExpectedMoments(cpds, self.rows, self._seed, self.watch, self._integrated)
        completions = FiniteCompletions.of(theta_of(cpds, self.rows.variables), self.rows, self._seed, self.watch)
        return ExpectedTables(self.rows, completions, self.watch)

    @property
    def n_completed(self) -> float:
        """About how many completed rows there are in the place of these, where they are held."""
        return 0.0 if self.rows is None else float(self.rows.ways(self._integrated).sum())

    def first(self) -> ExpectedStatistics | Statistics | None:
        """What there is before a network; None where states and numbers are mixed, or there are counts or regressions."""
        if (self._step.variables and self._step.reals) or self.rows is None or self._step.units.not_normal or self._whole:
            return None
        return saturated_statistics(self.rows, self.watch) if self._step.reals else ExpectedTables(self.rows, None, self.watch)


@dataclass(frozen=True, eq=False)
class _Expect(Step[Statistics]):
    """What the rows of each block are expected to have under a network."""

    reduce: ReduceRows
    cpds: Mapping[str, Cpd]
    requests: tuple[Request, ...]
    seed: int
    integrated: tuple[str, ...]

    def of(self, block: Block) -> Statistics:
        rows = self.reduce.encode(self.reduce.of(block).rows)
        seed, watch = self.seed + block.number, lambda what: None
        return ExpectedMoments(self.cpds, rows, seed, watch, self.integrated).gather(self.requests)


@dataclass(frozen=True, eq=False)
class ExpectedElsewhere:
    """What rows are expected to have that stay where they are."""

    data: Data
    step: _Expect

    @property
    def weight(self) -> float:
        return self.data.weight

    def gather(self, requests: Iterable[Request], *, threads: int | None = None) -> Statistics:
        return self.data.fold(replace(self.step, requests=tuple(requests)), threads=threads)


class ExpectedTables:
    """The tables that rows are expected to have, given their completions under a finite network. Without completions it is what
    the rows that show all of a set say about it, scaled to the weight of all rows: a guess before there is a network. Where no
    row shows a whole set, its variables are taken to be independent."""

    def __init__(self, rows: CodedRows, completions: FiniteCompletions | None, watch: Watch) -> None:
        self.variables, self.weight, self._watch = rows.variables, rows.weight, watch
        self._number = {v.name: i for i, v in enumerate(rows.variables)}
        self._complete_only = completions is None
        self.completions = completions or FiniteCompletions(rows.codes, rows.weights)

    def gather(self, requests: Iterable[Request], *, threads: int | None = None) -> Statistics:
        """The expected tables that are asked for."""
        sets = [r.names for r in requests]
        huge = {s for s in sets if n_configurations(self._variables_of(s)) > DENSE}
        dense = [s for s in sets if s not in huge]
        flat, at = self.tables(dense, threads=threads)
        named = zip(map(self._variables_of, dense), pairwise(at), strict=True)
        entries = [Counts(members, flat[a:b].reshape(sizes(members))) for members, (a, b) in named]
        entries += [self._sparse(s) for s in sets if s in huge]
        return Statistics(entries, self.weight)

    def tables(self, sets: Sequence[Sequence[str]], *, threads: int | None = None) -> tuple[Array, Ints]:
        """The expected tables of some sets of variables end to end, the last variable fastest, and where each begins."""
        flat, at = self._tables(sets, threads)
        for names, (a, b) in zip(sets, pairwise(at), strict=True) if self._complete_only else ():
            total, joint = flat[a:b].sum(), np.full(1, self.weight)
            for name in names if not total > 0 else ():
                alone = self._tables([[name]], 1)[0]
                share = alone / alone.sum() if alone.sum() > 0 else np.full(len(alone), 1 / len(alone))
                joint = np.outer(joint, share).reshape(-1)
            flat[a:b] = flat[a:b] * (self.weight / total) if total > 0 else joint
        return flat, at

    def _tables(self, sets: Sequence[Sequence[str]], threads: int | None) -> tuple[Array, Ints]:
        from suffice.numerics.kernels.inference.expectations import expected_tables

        at, states = starts([n_configurations(self._variables_of(s)) for s in sets]), np.array(sizes(self.variables), np.int64)
        flat = np.zeros(int(at[-1]))

        def job(low: int, high: int) -> None:
            members = np.array([self._number[n] for s in sets[low:high] for n in s], np.int32)
            which = (starts([len(s) for s in sets[low:high]]), members, states, at[low : high + 1] - at[low])
            expected_tables(tuple(self.completions), *which, self._complete_only, flat[at[low] : at[high]])

        parts = max(4 * n_threads(threads), len(sets) * self.completions.codes.shape[1] // VISITS)
        ends = np.unique(np.linspace(0, len(sets), parts + 1).astype(int)).tolist()
        for done, _ in zip(ends[1:], in_order((partial(job, a, b) for a, b in pairwise(ends)), threads), strict=True):
            self._watch(f"expected tables, {done:,} of {len(sets):,}")
        return flat, at

    def _sparse(self, names: Sequence[str]) -> Counts:
        """A huge table as a list of its cells."""
        members = self._variables_of(names)
        if n_configurations(members) >= 2**62:
            raise TooLarge(f"a table over {listing(names)} has too many cells to be numbered")
        keys, weights = spread(self.completions, sizes(members), [self._number[n] for n in names])
        if self._complete_only and weights.sum() > 0:
            weights *= self.weight / weights.sum()
        cells, inverse = np.unique(keys, return_inverse=True)
        return Counts(members, np.bincount(inverse, weights, len(cells)).astype(np.float64), cells)

    def _variables_of(self, names: Iterable[str]) -> tuple[Finite, ...]:
        return tuple(self.variables[self._number[n]] for n in names)


ExpectedStatistics = ExpectedTables | ExpectedMoments | ExpectedElsewhere
"""What rows are expected to say: it has a `weight`, and gathers what is requested."""


def spread(c: FiniteCompletions, shape: Sequence[int], members: Sequence[int]) -> tuple[Ints, Array]:
    """The cells of a table over which the rows are expected to fall, and the weight in each: what `expected_tables` computes. A
    cell may come several times. Without completions, rows that lack a member are left out."""
    codes = c.codes[list(members)].astype(np.int64)
    steps = np.array([math.prod(shape[k + 1 :]) for k in range(len(members))], np.int64)
    whole = (codes >= 0).all(axis=0)
    keys, weights = [steps @ codes[:, whole]], [c.weights[whole]]
    for i in np.flatnonzero(~whole) if len(c.start) else ():
        places, shares = np.array([steps @ np.maximum(codes[:, i], 0)]), np.array([c.weights[i]])
        cells, step = ~codes[codes[:, i] < 0, i], steps[codes[:, i] < 0]
        for d in np.unique(c.component[cells]):
            mine, size = c.component[cells] == d, c.start[d + 1] - c.start[d]
            states = c.digits[c.digit_at[d] : c.digit_at[d + 1]].reshape(-1, size)[:, cells[mine] - c.start[d]]
            moves, inverse = np.unique(states.astype(np.int64) @ step[mine], return_inverse=True)
            share = np.bincount(inverse, c.p[c.at[d] : c.at[d + 1]], len(moves))
            places, shares = np.add.outer(places, moves).reshape(-1), np.multiply.outer(shares, share).reshape(-1)
        keys.append(places)
        weights.append(shares)
    return np.concatenate(keys), np.concatenate(weights)
