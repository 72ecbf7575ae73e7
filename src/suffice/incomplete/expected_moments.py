"""What incomplete rows are expected to be under a network of tables and normal nodes: rows completed in every way.

Each combination of states of a row's missing finite cells is a row of its own, with its posterior probability: the product of
those of the components that its cells fall into, which EM completes, too (`incomplete.numbers.completed_rows`). In it the missing
numbers have their regression on the observed ones, and the covariance that is left. These rows answer every request.

    E[x], E[xxᵀ]: of a missing part its regression on what the row shows, and the covariance that is left

Missing numbers that a regression may be of, or have as a parent, are more than their mean and covariance to it: the row becomes
one for each of the points that EM integrates over (`incomplete.numbers.integrated_rows`), weighed by its posterior probability;
what else is missing is normal given these.

Where that would be too many rows, draws from the posterior stand for the combinations of a row.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Bools, Ints
from suffice.basis.variables import Finite, Real, Variable
from suffice.engines.engine import Block, Step, add_up
from suffice.engines.gather import Groups, table_of
from suffice.errors import TooLarge, listing, note
from suffice.families.protocol.family import Cpd, flat_index
from suffice.graphs import Dag
from suffice.incomplete.completions import CodedRows, Watch, factors_at, joint_draws, starts
from suffice.incomplete.components import FlatTables, NodeFamily, Theta, nodes_of
from suffice.incomplete.numbers.completed_rows import Batch, NoProbability, batches, posterior, unknown_numbers
from suffice.incomplete.numbers.integrated_rows import log_weights_of_states, weighted_points
from suffice.incomplete.numbers.mixed import ReduceMixed
from suffice.incomplete.numbers.normal import solve_missing, weighted_moments
from suffice.incomplete.numbers.patterns import MAX_STATES, Component, PatternFinder, digits_of
from suffice.statistics import Counts, Moments, Request, Statistics
from suffice.statistics.counts import RowFormula, n_configurations, sizes
from suffice.statistics.moments import Spread

MOST = 2**24
"""Completed rows that are held."""

DRAWN = 2**18
"""Completed rows where draws stand for some of them, about."""

BLOCK = 2**16
"""Completed rows that a step sees at a time."""

FEWEST, DRAWS = 20, 2_000
"""Draws for a row, between these."""

DENSE = 2**16
"""Cells up to which a table is dense."""

VANISHED = 1e-8
"""A configuration with less expected weight than this, in rows, has no moments."""

NEGLIGIBLE = 1e-14
"""The share of a row below which a completion is left out: it is less than rounding."""

SETTLED, ITERATIONS = 1e-3, 20
"""The change of correlations below which a start of moments is good enough, and after how many iterations it is in any case."""


def saturated_statistics(rows: CodedRows, watch: Watch) -> Statistics:
    """What is expected under the normal distribution that rows of numbers support, all joined: some iterations of EM. With L Lᵀ
    the inverse of the covariance, Lᵀ(x − mean) is standard normal: the nodes of `suffice.incomplete.numbers.normal`."""
    patterns, pattern = np.unique(~np.isnan(rows.numbers), axis=1, return_inverse=True)
    alike = np.split(np.argsort(pattern.reshape(-1), kind="stable"), np.cumsum(np.bincount(pattern.reshape(-1)))[:-1])
    k, x = len(rows.reals), rows.numbers.copy()
    mean, covariance = (np.array([part[n] for n in rows.reals]) for part in (rows.units.mean, rows.units.variance))
    covariance = np.diag(covariance)
    for i in range(ITERATIONS + 1):
        watch("moments of numbers")
        root, left = np.linalg.cholesky(np.linalg.inv(covariance)).T, np.zeros((k, k))
        for shown, same in zip(patterns.T, alike, strict=True):
            c = solve_missing(root[:, ~shown], root[:, shown], root @ mean, np.ones(k))
            x[np.ix_(~shown, same)] = c.mean_map @ x[np.ix_(shown, same)] + c.mean_constant[:, None]
            left[np.ix_(~shown, ~shown)] += rows.weights[same].sum() * c.covariance
        groups = weighted_moments(np.zeros((1, 1), np.int64), rows.weights[None], x, 1)
        groups.spread.scatter[0] += left
        before, covariance = covariance, groups.spread.scatter[0] / groups.spread.weight[0]
        scale = np.sqrt(np.diag(covariance))
        if i == ITERATIONS or (i and np.abs((covariance - before) / scale[:, None] / scale).max() < SETTLED):
            break
        mean, covariance = groups.spread.mean[0], covariance + 1e-6 * np.diag(np.diag(covariance))
    return Statistics([rows.units.outward_moments((), rows.reals, groups)], rows.weight)


class ExpectedMoments:
    """The tables and moments that rows are expected to have under a network with real nodes, finite ones, or none."""

    def __init__(self, cpds: Mapping[str, Cpd], rows: CodedRows, seed: int, watch: Watch, integrated: Sequence[str] = ()) -> None:
        self.rows, self.weight, self._watch, self._seed = rows, rows.weight, watch, seed
        self._number = {v.name: i for i, v in enumerate(rows.variables)}
        numbers: list[Variable] = [rows.units.not_normal.get(n) or Real(n) for n in rows.reals]
        variables: Mapping[str, Variable] = {v.name: v for v in (*rows.variables, *numbers)}
        regressions = {n: cpds[n].family for n in variables if cpds[n].is_regression}
        nodes = nodes_of(Dag({n: cpds[n].parents for n in variables}), variables, regressions)
        tables = FlatTables.of(rows.variables, [node.finite for node in nodes.values() if node.by_table])
        self._theta = Theta.of(nodes, tables, cpds, lambda node, cpd: rows.units.inward_cpd(cpd) if node.normal else cpd)
        own = {v.name for node in nodes.values() if node.iterative for v in node.members}
        integrated = [n for n in rows.reals if n in integrated or n in own]
        ways = rows.ways()
        self._refuse_points(rows.ways(integrated).sum(), integrated)
        finder = PatternFinder(nodes, tuple(variables), MOST if ways.sum() <= MOST else MAX_STATES, integrated=integrated)
        self._step = ReduceMixed(finder, tables, rows.units.plain, True)
        owner = self._complete_states(ways)
        self.numbers = rows.numbers[:, owner]
        self._complete_integrated(owner)
        self._left = self._complete_numbers()
        self._derived = {d: x for n in rows.units.not_normal for d, x in self._complete_others(nodes[n]).items()}
        self._pairs: dict[tuple[str, ...], Counts] = {}

    def _refuse_points(self, n: float, integrated: Sequence[str]) -> None:
        """Refuse more completed rows than there is room for, where points stand for missing numbers."""
        lost = [n for n in integrated if np.isnan(self.rows.numbers[self.rows.reals.index(n)]).any()]
        if lost and n > MOST:
            raise TooLarge(
                f"with points for the missing numbers of {listing(lost)}, which regressions may be of, the rows become "
                f"{n:.3g} completed ones, and may become {MOST:,}: leave out what is most often missing, or forbid "
                f"edges from these numbers to regressions"
            )

    @property
    def n_rows(self) -> int:
        """The number of completed rows."""
        return len(self.p)

    def fold(self, step: Step[Any], *, threads: int | None = None, what: str | None = None) -> Any:
        """A step over the completed rows, weighed by their probabilities, as an engine would do it: regressions are fitted so.
        Missing numbers are at their points, those that no regression may be of at their means."""
        cuts = enumerate(slice(i, i + BLOCK) for i in range(0, max(1, len(self.p)), BLOCK))
        parts = (Block({n: c[some] for n, c in self._columns.items()}, self.p[some], i) for i, some in cuts)
        return reduce(add_up, map(step.of, parts))

    def select(self, names: Iterable[str]) -> ExpectedMoments:
        """The same: completed rows are in memory, and a step looks at what it needs."""
        return self

    @cached_property
    def _columns(self) -> dict[str, npt.NDArray[Any]]:
        """The columns of the completed rows, numbers in the units of the data."""
        numbers = {n: self.rows.units.outward(n, x) for n, x in zip(self.rows.reals, self.numbers, strict=True)}
        return {**self.rows.block(self.codes, self.numbers).columns, **numbers}

    def _complete_states(self, ways: Array) -> Ints:
        """Rows with every combination of states of their missing cells, or draws of them, and their weights; whose each is."""
        rows, (times, drawn) = self.rows, self._times(ways)
        owner, first = np.repeat(np.arange(len(times)), times), starts(times)
        codes, share, turn = rows.codes[:, owner], np.where(drawn, 1.0 / times, 1.0)[owner], np.arange(len(owner)) - first[owner]
        for own, v in zip(codes, rows.variables, strict=True):  # combination after combination of what a row lacks
            missing = (own < 0) & ~drawn[owner]
            own[missing] = turn[missing] % v.n_states
            turn[missing] //= v.n_states
        for component, row, p in self._posteriors():
            members = [self._number[v.name] for v in component.states]
            some = np.flatnonzero(~drawn[row])
            n = times[row[some]]
            entries = np.repeat(first[row[some]] - starts(n)[:-1], n) + np.arange(n.sum())
            state = np.ravel_multi_index(tuple(codes[members][:, entries]), component.shape)
            share[entries] *= p[state, np.repeat(some, n)]
            for c in np.flatnonzero(drawn[row]).tolist():
                ends, rng = np.cumsum(p[:, c]), np.random.default_rng([self._seed, row[c], members[0]])
                at = np.searchsorted(ends, rng.random(times[row[c]]) * ends[-1], side="right")
                drawn_states = digits_of(component.shape)[:, np.minimum(at, len(p) - 1)]
                codes[members, first[row[c]] : first[row[c] + 1]] = drawn_states
        for i in np.flatnonzero(drawn & (codes[:, first[:-1]] < 0).any(axis=0)).tolist():
            # near these nothing is observed: there may be too many states to be enumerated
            members, own = np.flatnonzero(codes[:, first[i]] < 0).tolist(), slice(first[i], first[i + 1])
            rng, factors = np.random.default_rng([self._seed, i]), factors_at(self._theta, set(members), rows.codes[:, i])
            found = joint_draws(members, factors, int(times[i]), rng, rows.variables)
            assert found is not None
            codes[members, own] = found.T
        tables = self._theta.tables
        for f, cells in enumerate(tables.cells.values()):
            table = self._theta.cells[cells].reshape(tables.sizes[scope := tables.scope(f)])
            lost = (table[tuple(codes[scope])] == 0) & (share > 0)
            if lost.any():
                raise rows.impossible(int(owner[np.argmax(lost)]))
        kept = share > NEGLIGIBLE
        self.codes, self.p = np.ascontiguousarray(codes[:, kept]), (share * rows.weights[owner])[kept]
        return owner[kept]

    def _times(self, ways: Array) -> tuple[Ints, Bools]:
        """How many completed rows stand for the combinations of states of each row, and whether they are drawn."""
        if ways.sum() <= MOST:
            return ways.astype(np.int64), np.zeros(len(ways), bool)
        if any(node.iterative for node in self._step.finder.nodes.values()):
            raise TooLarge(
                f"the missing finite cells of all rows have {ways.sum():.3g} combinations of states, and beside regressions they "
                f"may have {MOST:,}; leave out what is most often missing"
            )
        rows, draws = self.rows, int(np.clip(DRAWN // len(ways), FEWEST, DRAWS))
        times = np.minimum(ways, draws).astype(np.int64)
        if times.sum() > MOST:
            gaps = np.average(rows.codes < 0, axis=1, weights=rows.weights)
            worst = [f"{rows.variables[i].name!r} {gaps[i]:.0%}" for i in np.argsort(-gaps, kind="stable")[:5]]
            raise TooLarge(
                f"the missing finite cells of all rows have {ways.sum():.3g} combinations of states, and may have {MOST:,} where "
                f"there are numbers, too; leave out what is most often missing: {listing(worst, style='str')}"
            )
        note(
            f"{int((ways > draws).sum()):,} rows have more than {draws:,} combinations of states of their missing finite cells: "
            f"for each {draws:,} draws stand for them, and what is expected is approximate"
        )
        return times, ways > draws

    def _posteriors(self) -> Iterator[tuple[Component, Ints, Array]]:
        """Components with missing states, the rows that have them, and p(states | row), [states, rows]."""
        for component, batch in self._batches(self.rows.codes, self.rows.numbers, "states"):
            try:
                p = posterior(log_weights_of_states(batch, self._theta, self.rows.units), batch.rows)[1]
            except NoProbability as impossible:
                raise self.rows.impossible(impossible.row) from None
            yield component, batch.rows.row, p

    def _batches(self, codes: npt.NDArray[np.int32], numbers: Array, part: str) -> Iterator[tuple[Component, Batch]]:
        """The components of rows of these cells that have `states`, or numbers that are `completed` or `unknown`, in batches."""
        block = self.rows.block(codes, numbers)
        for _, component, observed in self._step.components(block, self._step.finder.missing(block)):
            for batch in batches(component, observed) if getattr(component, part) else ():
                self._watch(f"completing missing {'states' if part == 'states' else 'numbers'}")
                yield component, batch

    def _complete_integrated(self, owner: Ints) -> None:
        """Put the missing numbers that regressions may be of on points: each row becomes one for each of its points."""
        alone, parts, n_points = np.ones(len(self.p), bool), [], 0
        for component, batch in self._batches(self.codes, self.numbers, "completed"):
            try:
                found = list(weighted_points(batch, self._theta, self.rows.units, NEGLIGIBLE))
            except NoProbability as impossible:
                raise self.rows.impossible(int(owner[impossible.row])) from None
            which = [self.rows.reals.index(n) for n in component.completed]
            parts += [(which, *part) for part in found]
            n_points += sum(len(row) for row, *_ in found)
            self._refuse_points(n_points, component.completed)
            alone[batch.rows.row] = False
        source = np.concatenate([np.flatnonzero(alone), *(row for _, row, _, _ in parts)])
        self.codes, self.numbers = np.ascontiguousarray(self.codes[:, source]), self.numbers[:, source]
        self.p = self.p[source] * np.concatenate([np.ones(int(alone.sum())), *(share for *_, share in parts)])
        at = int(alone.sum())
        for which, row, values, _ in parts:
            self.numbers[which, at : at + len(row)] = values
            at += len(row)

    def _complete_numbers(self) -> dict[tuple[int, int], tuple[Ints, Array]]:
        """Put means into the missing numbers of completed rows; the covariance that is left of each pair, and in which rows."""
        found = defaultdict(list)
        for component, batch in self._batches(self.codes, self.numbers, "unknown"):
            unknown = [self.rows.reals.index(n) for n in component.unknown]
            here, row = unknown_numbers(batch, self._theta.lines), batch.rows.row
            self.numbers[np.array(unknown)[:, None], row] = here.mean[:, 0]
            left = np.repeat(here.given.covariance[:, 0], np.diff(batch.bounds), axis=0)
            for i, a in enumerate(unknown):
                for j, b in enumerate(unknown[: i + 1]):
                    found[min(a, b), max(a, b)].append((row, left[:, i, j]))
        return {pair: (np.concatenate([r for r, _ in own]), np.concatenate([c for _, c in own])) for pair, own in found.items()}

    def _complete_others(self, node: NodeFamily) -> dict[RowFormula, Array]:
        """Put means into the missing cells of a number that is not normal, by its parents' states; and what is derived from it,
        or the mean of that."""
        at = self.rows.reals.index(node.name)
        gone = np.isnan(self.numbers[at])
        derived = {d: np.array(d.values(self.numbers[at]), dtype=np.float64) for d in node.derived}
        if gone.any():
            cpd = self._theta.others[node.name]
            codes = tuple(self.codes[self._number[v.name], gone] for v in cpd.finite_parents)
            which = np.ravel_multi_index(codes, sizes(cpd.finite_parents)) if codes else np.zeros(int(gone.sum()), np.intp)
            self.numbers[at, gone] = cpd.means.reshape(-1)[which]
            for d, values in derived.items():
                values[gone] = cpd.mean_of(d).reshape(-1)[which]
        return derived

    def gather(self, requests: Iterable[Request], *, threads: int | None = None) -> Statistics:
        """The expected tables and moments that are asked for; without finite variables, the moments of all numbers."""
        entries: dict[tuple[Any, ...], Counts | Moments] = {}
        for i, r in enumerate(requests):
            if i % 16 == 15:
                self._watch(f"expected statistics, {i + 1:,} families")
            names = tuple(sorted(r.finite))
            if names:
                entries[names, r.real] = self._moments(names, r.real) if r.real else self._counts(names)
            else:
                entries[()] = self._whole
        return Statistics(entries.values(), self.weight, self.rows.units.not_normal.values())

    def _keys(self, names: Iterable[str]) -> tuple[tuple[Finite, ...], Ints]:
        members = tuple(self.rows.variables[self._number[n]] for n in names)
        if np.log2([float(v.n_states) for v in members]).sum() > 62:
            raise TooLarge(f"a table over {listing([v.name for v in members])} has too many cells to be numbered")
        return members, flat_index({n: self.codes[self._number[n]] for n in names}, members, len(self.p))

    def _counts(self, names: tuple[str, ...]) -> Counts:
        """The table; those of pairs, which a search asks for again and again, are kept."""
        if names in self._pairs:
            return self._pairs[names]
        members, keys = self._keys(names)
        if n_configurations(members) > DENSE:
            cells = table_of(keys, self.p)
            return Counts(members, cells.values, cells.keys)
        values = np.bincount(keys, self.p, n_configurations(members)).astype(np.float64)
        table = Counts(members, values.reshape(sizes(members)))
        if len(names) == 2:
            self._pairs[names] = table
        return table

    @cached_property
    def _whole(self) -> Moments:
        """The moments of all numbers, whatever the states."""
        return self._moments((), self.rows.reals)

    def _moments(self, names: tuple[str, ...], reals: tuple[str, ...]) -> Moments:
        members, keys = self._keys(names)
        columns = [self.rows.reals.index(r) for r in reals]
        index = keys[None] if names else keys[None, :1]
        groups = weighted_moments(index, self.p[None], self.numbers[columns], n_configurations(members))
        for (a, b), (row, left) in self._left.items():
            if a in columns and b in columns:
                i, j, at = columns.index(a), columns.index(b), np.searchsorted(groups.keys, keys[row])
                more = np.bincount(at, self.p[row] * left, len(groups.keys))
                groups.spread.scatter[:, i, j] += more
                groups.spread.scatter[:, j, i] += more if i != j else 0.0
        derived = tuple(d for d in self._derived if d.column in reals)
        each = [np.bincount(np.searchsorted(groups.keys, keys), self.p * self._derived[d]) for d in derived]
        groups = replace(groups, sums=np.array(each, dtype=np.float64).reshape(len(each), -1).T) if each else groups
        some = groups.spread.weight >= VANISHED * min(1.0, self.weight)
        spread = Spread(*(part[some] for part in groups.spread))
        return self.rows.units.outward_moments(members, reals, Groups(groups.keys[some], spread, groups.sums[some]), derived)
