"""What incomplete rows are expected to be under a network of tables and normal nodes: rows completed in every way.

Each combination of states of a row's missing finite cells is a row of its own, with its posterior probability; in it the missing
numbers have their regression on the observed ones, and the covariance that is left. These rows answer every request.

Where that would be too many rows, draws stand for the combinations of a row: from the tables and the observed normal nodes whose
real parents are observed, too, weighted by what the other observed numbers say (importance sampling).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.encode import missing_code
from suffice.errors import FitError, TooLarge, listed, note
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.learning.normal_regression import constant, joint_normal, regression
from suffice.learning.row_completions import Factor, Network, Watch, joint_draws, unwatched
from suffice.models.bayes_net import BayesNet
from suffice.statistics import Counts, Moments, Request, Statistics
from suffice.statistics.configurations import n_configurations, sizes
from suffice.variables import Finite, Variable

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST = 2**24
"""Completed rows that are held."""

DRAWN = 2**18
"""Completed rows where draws stand for some of them, about."""

FEWEST, DRAWS = 20, 2_000
"""Draws for a row, between these."""

DENSE = 2**16
"""Cells up to which a table is dense."""

VANISHED = 1e-8
"""A configuration with less expected weight than this, in rows, has no moments."""

NEGLIGIBLE = 1e-14
"""The share of a row below which a completion is left out: it is less than rounding."""


class MixedRows(NamedTuple):
    """Rows of states, `codes[variable, row]`, −1 where missing, and of numbers less their `centre`, NaN where missing."""

    finite: tuple[Finite, ...]
    reals: tuple[str, ...]
    codes: Ints
    numbers: Floats
    centre: Floats
    weights: Floats

    @staticmethod
    def of(rows: Data, variables: Mapping[str, Variable]) -> MixedRows:
        """The rows over these variables, of which those that are no column are hidden."""
        finite = tuple(v for v in variables.values() if isinstance(v, Finite))
        reals = tuple(n for n, v in variables.items() if not isinstance(v, Finite))
        codes, numbers = np.full((len(finite), rows.n_rows), -1, np.int64), np.empty((rows.n_rows, len(reals)))
        weights = np.ones(rows.n_rows)
        for batch in rows.select([n for n in variables if n in rows.columns]).batches():
            part = slice(batch.start, batch.start + batch.n_rows)
            for i, v in enumerate(finite):
                if v.name in batch.columns:
                    column = batch.columns[v.name]
                    codes[i, part] = np.where(column == missing_code(column.dtype), -1, column.astype(np.int64))
            numbers[part] = np.column_stack([batch.columns[r] for r in reals])
            if batch.weight is not None:
                weights[part] = batch.weight
        for name, column in zip(reals, numbers.T, strict=True):
            if not np.nanmin(column) < np.nanmax(column):
                raise constant(name)
        centre = np.nanmean(numbers, axis=0)
        return MixedRows(finite, reals, codes, numbers - centre, centre, weights)


class ExpectedMixed:
    """The tables and moments that rows are expected to have under a network with finite and real nodes.

    >>> from suffice.engines import scan
    >>> from suffice.learning.fit import fit
    >>> rows = scan({"x": ["a", "a", "b", "b"], "y": [0.0, 1.0, 10.0, 11.0]})
    >>> gaps = scan({"x": ["a", None], "y": [0.5, 10.5]}, variables={"x": ["a", "b"]})
    >>> here = ExpectedMixed(fit("x -> y", rows), MixedRows.of(gaps, gaps.schema))
    >>> here.gather([Request(("x",))]).counts(["x"]).values
    array([1., 1.])
    """

    def __init__(self, model: BayesNet, rows: MixedRows, seed: int = 0, watch: Watch = unwatched) -> None:
        self.rows, self.weight, self._watch = rows, float(rows.weights.sum()), watch
        self.owner, self.codes, log_weight = _completed(model, rows, seed, watch)
        self.numbers = rows.numbers[self.owner]
        log_p = _log_tables(model, rows.finite, self.codes) + log_weight
        self.left = [np.zeros((len(rows.reals),) * 2)]
        self.which = np.zeros(len(self.owner), np.int64)
        for group, shown, at in self._groups(model):
            watch("regressions of missing numbers")
            log_p[group] += self._regressed(model, group, shown, at)
        self._weigh(log_p)
        self._pairs: dict[tuple[str, ...], Counts] = {}

    def _groups(self, model: BayesNet) -> Iterable[tuple[Ints, Any, dict[str, int]]]:
        """Completed rows that show the same numbers and have the same states above numbers."""
        above = {p.name for n in self.rows.reals for p in model[n].finite_parents}
        chosen = [i for i, v in enumerate(self.rows.finite) if v.name in above]
        keys = np.vstack([~np.isnan(self.numbers.T), self.codes[chosen]]).astype(np.int64)
        kinds, inverse = np.unique(keys, axis=1, return_inverse=True)
        order = np.argsort(inverse.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(inverse.reshape(-1)))
        n = len(self.rows.reals)
        for kind, group in zip(kinds.T, np.split(order, ends[:-1]), strict=True):
            at = {self.rows.finite[i].name: int(code) for i, code in zip(chosen, kind[n:], strict=True)}
            yield group, kind[:n].astype(bool), at

    def _regressed(self, model: BayesNet, group: Ints, shown: Any, at: dict[str, int]) -> Floats:
        """Put the regression into the missing numbers; ln p of those that are there."""
        mean, covariance = joint_normal(model, self.rows.reals, at)
        if not np.isfinite(covariance).all():  # no row has these states, so that there is no estimate
            return np.full(len(group), -np.inf)
        away = self.numbers[group] - (mean - self.rows.centre)
        fit = regression(covariance, shown, self.rows.reals)
        away[:, ~shown] = away[:, shown] @ fit.gain.T
        self.numbers[group] = away + (mean - self.rows.centre)
        if not shown.all():
            self.which[group] = len(self.left)
            rest = np.zeros_like(covariance)
            rest[np.ix_(~shown, ~shown)] = fit.left
            self.left.append(rest)
        z = away[:, shown] @ fit.whitening
        return np.asarray(fit.log_scale - 0.5 * (LOG_2PI * shown.sum() + (z * z).sum(axis=1)))

    def _weigh(self, log_p: Floats) -> None:
        """Posterior probabilities times the weights of the rows; what is impossible goes."""
        n = len(self.rows.weights)
        top = np.full(n, -np.inf)
        np.maximum.at(top, self.owner, log_p)
        if not np.isfinite(top).all():
            row = int(np.argmin(np.isfinite(top)))
            raise FitError(f"row {row + 1:,} is impossible under the current network: its observed cells have probability 0")
        p = np.exp(log_p - top[self.owner])
        self.p = p / np.bincount(self.owner, p, n)[self.owner] * self.rows.weights[self.owner]
        kept = self.p > NEGLIGIBLE * self.rows.weights[self.owner]
        self.codes, self.numbers = np.ascontiguousarray(self.codes[:, kept]), self.numbers[kept]
        self.p, self.which, self._left = self.p[kept], self.which[kept], np.array(self.left)

    def gather(self, requests: Iterable[Request], *, threads: int | None = None) -> Statistics:
        """The expected tables and moments that are asked for."""
        entries: list[Counts | Moments] = []
        for i, r in enumerate(requests):
            if i % 16 == 15:
                self._watch(f"expected statistics, {i + 1:,} families")
            entries.append(self._moments(r) if r.real else self._counts(r))
        return Statistics(entries, self.weight)

    def _keys(self, names: Iterable[str]) -> tuple[tuple[Finite, ...], Ints]:
        number = {v.name: i for i, v in enumerate(self.rows.finite)}
        members = tuple(self.rows.finite[number[n]] for n in names)
        if np.log2([float(v.n_states) for v in members]).sum() > 62:
            raise TooLarge(f"a table over {listed([v.name for v in members])} has too many cells to be numbered")
        keys = np.zeros(len(self.p), np.int64)
        for v in members:
            keys = keys * v.n_states + self.codes[number[v.name]]
        return members, keys

    def _counts(self, request: Request) -> Counts:
        """The table; those of pairs, which a search asks for in both orders, are kept."""
        order = tuple(sorted(request.finite))
        if len(order) != 2 or request.finite == order:
            return self._kept(request.finite)
        table = self._kept(order)
        if table.keys is not None:
            return self._table(request.finite)
        return Counts(table.variables[::-1], np.ascontiguousarray(table.dense().T))

    def _kept(self, names: tuple[str, ...]) -> Counts:
        if names in self._pairs:
            return self._pairs[names]
        table = self._table(names)
        if len(names) == 2 and table.keys is None:
            self._pairs[names] = table
        return table

    def _table(self, names: Iterable[str]) -> Counts:
        members, keys = self._keys(names)
        cells = n_configurations(members)
        if cells <= DENSE:
            return Counts(members, _summed(keys, self.p, cells).reshape(sizes(members)))
        listed_, inverse = np.unique(keys, return_inverse=True)
        return Counts(members, _summed(inverse, self.p, len(listed_)), listed_)

    def _moments(self, request: Request) -> Moments:
        members, keys = self._keys(request.finite)
        columns = [self.rows.reals.index(r) for r in request.real]
        groups, inverse = np.unique(keys, return_inverse=True)
        n, k = len(groups), len(columns)
        count = _summed(inverse, self.p, n)
        some = count >= VANISHED * min(1.0, self.weight)
        away = self.numbers[:, columns].copy()
        mean = np.column_stack([_summed(inverse, self.p * x, n) for x in away.T]) / np.where(some, count, 1.0)[:, None]
        away -= mean[inverse]
        scatter = np.empty((n, k, k))
        for a in range(k):
            for b in range(a + 1):
                both = away[:, a] * away[:, b] + self._left[self.which, columns[a], columns[b]]
                scatter[:, a, b] = scatter[:, b, a] = _summed(inverse, self.p * both, n)
        mean += self.rows.centre[columns]
        return Moments(members, request.real, groups[some], count[some], mean[some], scatter[some])


def _summed(place: Any, values: Floats, n: int) -> Floats:
    """The sums of the values at each of n places."""
    return np.bincount(place, values, n).astype(np.float64)


def _completed(model: BayesNet, rows: MixedRows, seed: int, watch: Watch) -> tuple[Ints, Ints, Floats]:
    """Completed rows: whose each is, its states, and ln of the weight by which its probability is multiplied.

    Rows with too many combinations of states are drawn; the weight then takes back what the draws were made by.
    """
    n = rows.codes.shape[1]
    ways = np.where(rows.codes < 0, np.array(sizes(rows.finite), np.int64)[:, None], 1).astype(float).prod(axis=0)
    if ways.sum() <= MOST:
        owner, codes = _combined(rows, np.arange(n), ways)
        return owner, codes, np.zeros(len(owner))
    draws = int(np.clip(DRAWN // n, FEWEST, DRAWS))
    large = np.flatnonzero(ways > draws)
    if np.minimum(ways, draws).sum() > MOST:
        gaps = (rows.codes < 0).mean(axis=1)
        worst = [f"{rows.finite[i].name!r} {gaps[i]:.0%}" for i in np.argsort(-gaps, kind="stable")[:5]]
        raise TooLarge(
            f"the missing finite cells of all rows have {ways.sum():.3g} combinations of states, and may have {MOST:,} where "
            f"there are numbers, too; leave out what is most often missing: {listed(worst, style='str')}"
        )
    note(
        f"{len(large):,} rows have more than {draws:,} combinations of states of their missing finite cells: "
        f"for each {draws:,} draws stand for them, and what is expected is approximate"
    )
    parts = [(*_combined(rows, small := np.flatnonzero(ways <= draws), ways[small]), np.zeros(int(ways[small].sum())))]
    drawing = _Drawing(model, rows, draws, seed)
    for done, i in enumerate(large.tolist()):
        watch(f"drawing missing cells, {done:,} of {len(large):,} rows")
        parts.append(drawing.row(i))
    return np.concatenate([p[0] for p in parts]), np.hstack([p[1] for p in parts]), np.concatenate([p[2] for p in parts])


def _combined(rows: MixedRows, which: Ints, ways: Floats) -> tuple[Ints, Ints]:
    """Each of these rows with every combination of states of its missing finite cells: whose it is, and its states."""
    times = ways.astype(np.int64)
    owner = np.repeat(which, times)
    turn = np.arange(len(owner)) - np.repeat(np.cumsum(times) - times, times)
    codes = rows.codes[:, owner]
    for i, v in enumerate(rows.finite):
        missing = codes[i] < 0
        codes[i, missing] = turn[missing] % v.n_states
        turn[missing] //= v.n_states
    return owner, codes


class _Drawing:
    """Draws of the missing finite cells of single rows."""

    def __init__(self, model: BayesNet, rows: MixedRows, draws: int, seed: int) -> None:
        self.rows, self.draws, self.seed = rows, draws, seed
        self.network = Network.of(model, rows.finite)
        self.number = {v.name: i for i, v in enumerate(rows.finite)}
        self.normal = [c for n in rows.reals if isinstance(c := model[n], ConditionalGaussian) and c.finite_parents]
        self.place = {n: i for i, n in enumerate(rows.reals)}

    def row(self, i: int) -> tuple[Ints, Ints, Floats]:
        """The distinct draws for a row; ln weight = ln times drawn − ln what they were drawn by."""
        row = self.rows.codes[:, i]
        members = np.flatnonzero(row < 0).tolist()
        factors = [*self.network.factors(set(members), row), *self._normal_factors(i, set(members))]
        rng = np.random.default_rng([self.seed, i])
        drawn = joint_draws(self.network.sizes, members, factors, self.draws, rng, self.rows.finite)
        if drawn is None:
            raise FitError(f"row {i + 1:,} is impossible under the current network: its observed cells have probability 0")
        states, times = np.unique(drawn, axis=0, return_counts=True)
        column = {v: states[:, k] for k, v in enumerate(members)}
        by = sum((table[tuple(column[v] for v in scope)] for scope, table in factors), np.zeros(len(states)))
        codes = np.repeat(row[:, None], len(states), axis=1)
        codes[members] = states.T
        return np.full(len(states), i), codes, np.log(times) - by

    def _normal_factors(self, i: int, members: set[int]) -> list[Factor]:
        """What observed numbers whose real parents are observed say of missing states; states without an estimate are out."""
        result: list[Factor] = []
        numbers, row = self.rows.numbers[i] + self.rows.centre, self.rows.codes[:, i]
        for cpd in self.normal:
            above = [self.number[p.name] for p in cpd.finite_parents]
            if not members & set(above):
                continue
            at = tuple(slice(None) if v in members else int(row[v]) for v in above)
            a, b, variance = cpd.intercept[at], cpd.coefficients[at], cpd.variance[at]
            x, y = numbers[[self.place[p] for p in cpd.real_parents]], numbers[self.place[cpd.child.name]]
            log_p = np.zeros(variance.shape)
            if not np.isnan(y) and not np.isnan(x).any():
                log_p = -0.5 * (LOG_2PI + np.log(variance) + (y - a - b @ x) ** 2 / variance)
            result.append(([v for v in above if v in members], np.where(np.isnan(variance), -np.inf, log_p)))
        return result


def _log_tables(model: BayesNet, finite: tuple[Finite, ...], codes: Ints) -> Floats:
    number = {v.name: i for i, v in enumerate(finite)}
    result = np.zeros(codes.shape[1])
    for v in finite:
        cpd = model[v.name]
        assert isinstance(cpd, Table)
        with np.errstate(divide="ignore"):
            result += np.log(cpd.probs)[tuple(codes[number[m]] for m in (*cpd.parents, v.name))]
    return result
