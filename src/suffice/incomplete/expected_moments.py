"""What incomplete rows are expected to be under a network of tables and normal nodes: rows completed in every way.

Each combination of states of a row's missing finite cells is a row of its own, with its posterior probability; in it the missing
numbers have their regression on the observed ones, and the covariance that is left. These rows answer every request.

    E[x], E[xxᵀ]: of a missing part its regression on what the row shows, and the covariance that is left

Where that would be too many rows, draws stand for the combinations of a row: from the tables and the observed normal nodes whose
real parents are observed, too, weighted by what the other observed numbers say (importance sampling).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, partial
from graphlib import TopologicalSorter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.blas import one_blas_thread
from suffice.errors import FitError, TooLarge, listed, note
from suffice.families.conditional_gaussian import LOG_2PI, ConditionalGaussian
from suffice.families.family import Cpd
from suffice.incomplete.completions import NO_FLOATS, NO_INTS, Factor, Floats, Ints, Watch, factors_at, joint_draws
from suffice.incomplete.number_rows import NumberRows
from suffice.inference.network import Network
from suffice.statistics import Counts, Moments, Request, Statistics
from suffice.statistics.configurations import n_configurations, sizes

MOST = 2**24
"""Completed rows that are held."""

DRAWN = 2**18
"""Completed rows where draws stand for some of them, about."""

FEWEST, DRAWS = 20, 2_000
"""Draws for a row, between these."""

DENSE = 2**16
"""Cells up to which a table is dense."""

BLOCK = 2**14
"""Rows whose products are added up at once."""

VANISHED = 1e-8
"""A configuration with less expected weight than this, in rows, has no moments."""

NEGLIGIBLE = 1e-14
"""The share of a row below which a completion is left out: it is less than rounding."""

SETTLED, ITERATIONS = 1e-3, 20
"""The change of correlations below which a start of moments is good enough, and after how many iterations it is in any case."""

At = tuple[tuple[str, int], ...]
"""States of the finite variables above numbers,"""

Normal = Callable[[At], tuple[Floats, Floats]]
"""and the mean and the covariance of all numbers there."""


def saturated(rows: NumberRows, weight: float, watch: Watch) -> ExpectedMoments:
    """What is expected under the normal distribution that rows of numbers support, all joined: some iterations of EM."""
    nothing = Network.of((), ())
    mean, covariance = rows.centre, np.diag(rows.variance)
    for i in range(ITERATIONS + 1):
        here = ExpectedMoments(rows, lambda at: (mean, covariance), (), nothing, weight, 0, watch)  # noqa: B023 - called at once
        m = here.whole
        before, covariance = covariance, m.scatter[0] / m.count[0]
        scale = np.sqrt(np.diag(covariance))
        if i == ITERATIONS or (i and np.abs((covariance - before) / scale[:, None] / scale).max() < SETTLED):
            break
        mean, covariance = m.mean[0], covariance + 1e-6 * np.diag(np.diag(covariance))
    return here


class ExpectedMoments:
    """The tables and moments that rows are expected to have under a network with real nodes, finite ones, or none.

    >>> from suffice.engines import scan
    >>> from suffice.families.conditional_gaussian import Gaussian
    >>> from suffice.variables import Real
    >>> x, y = Real("x"), Real("y")
    >>> rows = NumberRows.of(scan({"x": [0.0, 2.0, None], "y": [0.0, 4.0, 2.0]}), (), ("x", "y"))
    >>> cpds = {"x": Gaussian().bound(x, []), "y": Gaussian(0.0, {"x": 1.0}).bound(y, [x])}
    >>> here = ExpectedMoments.under(cpds, Network.of((), ()), rows, 3.0, 0, lambda what: None)
    >>> here.gather([Request((), ("x", "y"))]).moments((), ["x"]).mean
    array([[1.]])
    """

    def __init__(
        self,
        rows: NumberRows,
        normal: Normal,
        nodes: Sequence[ConditionalGaussian],
        network: Network,
        weight: float,
        seed: int,
        watch: Watch,
    ) -> None:
        self.rows, self.weight, self._watch = rows, weight, watch
        self.owner, self.codes, log_p = _Completing(nodes, network, rows, seed, watch).every()
        with np.errstate(divide="ignore"):
            for f in range(network.n_factors):
                log_p += np.log(network.table(f))[tuple(self.codes[network.scope(f)])]
        self.numbers = rows.numbers[self.owner]
        self.group, left = np.zeros(len(self.owner), np.int64), [(NO_INTS, NO_INTS, NO_FLOATS)]
        for i, (group, shown, at) in enumerate(self._groups(nodes)):
            if i % 64 == 0:
                watch(f"regressions of missing numbers, group {i + 1:,}")
            mean, covariance = normal(at)
            if not np.isfinite(covariance).all():  # no row has these states, so that there is no estimate
                log_p[group] = -np.inf
                continue
            x = self.numbers[group]
            rest, own = conditioned(x, (mean - rows.centre, covariance), shown, rows.reals)
            self.numbers[group], self.group[group] = x, i
            log_p[group] += own
            cells = np.arange(len(mean) ** 2).reshape(covariance.shape)[np.ix_(~shown, ~shown)]
            left.append((np.full(cells.size, i), cells.reshape(-1), rest.reshape(-1)))
        self._left = _Left.of(left, int(self.group.max()) + 1)
        self._weigh(log_p)
        self._pairs: dict[tuple[str, ...], Counts] = {}

    @staticmethod
    def under(
        cpds: Mapping[str, Cpd], network: Network, rows: NumberRows, weight: float, seed: int, watch: Watch
    ) -> ExpectedMoments:
        """Under the normal distributions among these, and the tables of a finite network."""
        order = TopologicalSorter({n: cpds[n].parents for n in cpds}).static_order()
        nodes = [c for n in order if isinstance(c := cpds[n], ConditionalGaussian)]
        return ExpectedMoments(rows, cache(partial(joint_normal, nodes, rows.reals)), nodes, network, weight, seed, watch)

    def _groups(self, nodes: Sequence[ConditionalGaussian]) -> Iterator[tuple[Ints, npt.NDArray[np.bool_], At]]:
        """Completed rows that show the same numbers and have the same states above numbers."""
        above = {p.name for node in nodes for p in node.finite_parents}
        chosen = [(i, v) for i, v in enumerate(self.rows.variables) if v.name in above]
        pattern = self.rows.pattern[self.owner]
        order = np.lexsort([pattern, *(self.codes[i] for i, _ in chosen)])
        new = np.zeros(max(len(order) - 1, 0), bool)
        for column in (pattern, *(self.codes[i] for i, _ in chosen)):
            new |= np.diff(column[order]) != 0
        for group in np.split(order, np.flatnonzero(new) + 1):
            at = tuple((v.name, int(self.codes[i, group[0]])) for i, v in chosen)
            yield group, self.rows.patterns[pattern[group[0]]], at

    def _weigh(self, log_p: Floats) -> None:
        """Posterior probabilities times the weights of the rows; what is impossible goes."""
        weights, n = self.rows.weights[self.owner], len(self.rows.weights)
        top = np.full(n, -np.inf)
        np.maximum.at(top, self.owner, log_p)
        if not np.isfinite(top).all():
            raise self.rows.places.impossible(int(np.argmin(np.isfinite(top))))
        p = np.exp(log_p - top[self.owner])
        self.p = p / np.bincount(self.owner, p, n)[self.owner] * weights
        kept = self.p > NEGLIGIBLE * weights
        if not kept.all():
            self.codes, self.numbers = np.ascontiguousarray(self.codes[:, kept]), self.numbers[kept]
            self.p, self.group = self.p[kept], self.group[kept]

    def gather(self, requests: Iterable[Request], *, threads: int | None = None) -> Statistics:
        """The expected tables and moments that are asked for."""
        entries: dict[tuple[Any, ...], Counts | Moments] = {}
        for i, r in enumerate(requests):
            if i % 16 == 15:
                self._watch(f"expected statistics, {i + 1:,} families")
            names = tuple(sorted(r.finite))
            if names:
                entries[names, r.real] = self._moments(names, r.real) if r.real else self._counts(names)
            else:
                entries[()] = self.whole
        return Statistics(entries.values(), self.weight)

    def _keys(self, names: Iterable[str]) -> tuple[tuple[Any, ...], Ints]:
        number = {v.name: i for i, v in enumerate(self.rows.variables)}
        members = tuple(self.rows.variables[number[n]] for n in names)
        if np.log2([float(v.n_states) for v in members]).sum() > 62:
            raise TooLarge(f"a table over {listed([v.name for v in members])} has too many cells to be numbered")
        keys = np.zeros(len(self.p), np.int64)
        for v in members:
            keys = keys * v.n_states + self.codes[number[v.name]]
        return members, keys

    def _counts(self, names: tuple[str, ...]) -> Counts:
        """The table; those of pairs, which a search asks for again and again, are kept."""
        if names in self._pairs:
            return self._pairs[names]
        members, keys = self._keys(names)
        cells = n_configurations(members)
        if cells > DENSE:
            found, inverse = np.unique(keys, return_inverse=True)
            return Counts(members, _summed(inverse, self.p, len(found)), found)
        table = Counts(members, _summed(keys, self.p, cells).reshape(sizes(members)))
        if len(names) == 2:
            self._pairs[names] = table
        return table

    @cached_property
    def whole(self) -> Moments:
        """The moments of all numbers, whatever the states."""
        count, k = float(self.p.sum()), len(self.rows.reals)
        mean = self.p @ self.numbers / count
        scatter = self._left.total(_summed(self.group, self.p, self._left.n_groups), k)
        for start in range(0, len(self.p), BLOCK):
            self._watch("moments of numbers")
            away = self.numbers[start : start + BLOCK] - mean
            scatter += (away * self.p[start : start + BLOCK, None]).T @ away
        total = mean + self.rows.centre
        return Moments((), self.rows.reals, np.zeros(1, np.int64), np.array([self.weight]), total[None], scatter[None])

    def _moments(self, names: tuple[str, ...], reals: tuple[str, ...]) -> Moments:
        members, keys = self._keys(names)
        columns = [self.rows.reals.index(r) for r in reals]
        groups, inverse = np.unique(keys, return_inverse=True)
        n, k = len(groups), len(columns)
        count = _summed(inverse, self.p, n)
        some = count >= VANISHED * min(1.0, self.weight)
        away = self.numbers[:, columns].T.copy()
        mean = np.column_stack([_summed(inverse, self.p * x, n) for x in away]) / np.where(some, count, 1.0)[:, None]
        away -= mean[inverse].T
        scatter = np.empty((n, k, k))
        for a in range(k):
            for b in range(a + 1):
                both = away[a] * away[b] + self._left.at(columns[a] * len(self.rows.reals) + columns[b])[self.group]
                scatter[:, a, b] = scatter[:, b, a] = _summed(inverse, self.p * both, n)
        mean += self.rows.centre[columns]
        return Moments(members, reals, groups[some], count[some], mean[some], scatter[some])


class _Left(NamedTuple):
    """The covariance that is left of missing numbers in each group of rows: a list of the cells that are not 0, by cell."""

    group: Ints
    cell: Ints
    value: Floats
    n_groups: int

    @staticmethod
    def of(parts: Sequence[tuple[Any, Any, Any]], n_groups: int) -> _Left:
        group, cell, value = (np.concatenate(column) for column in zip(*parts, strict=True))
        order = np.argsort(cell, kind="stable")
        return _Left(group[order], cell[order], value[order], n_groups)

    def at(self, cell: int) -> Floats:
        """One cell in every group."""
        result = np.zeros(self.n_groups)
        here = slice(*np.searchsorted(self.cell, [cell, cell + 1]))
        result[self.group[here]] = self.value[here]
        return result

    def total(self, weight: Floats, k: int) -> Floats:
        """All cells, the groups with their weights added up."""
        return _summed(self.cell, self.value * weight[self.group], k * k).reshape(k, k)


def _summed(place: Any, values: Floats, n: int) -> Floats:
    """The sums of the values at each of n places."""
    return np.bincount(place, values, n).astype(np.float64)


class _Completing:
    """Completes the finite cells of rows, in every way or by draws."""

    def __init__(self, nodes: Sequence[ConditionalGaussian], network: Network, rows: NumberRows, seed: int, watch: Watch) -> None:
        self.nodes, self.network, self.rows, self.seed, self.watch = nodes, network, rows, seed, watch

    def every(self) -> tuple[Ints, Ints, Floats]:
        """Completed rows: whose each is, its states, and ln of the weight by which its probability is multiplied.

        Rows with too many combinations of states are drawn; the weight then takes back what the draws were made by.
        """
        rows = self.rows
        n = rows.codes.shape[1]
        ways = np.where(rows.codes < 0, np.array(sizes(rows.variables), np.int64)[:, None], 1).astype(float).prod(axis=0)
        if ways.sum() <= MOST:
            return self._combined(np.arange(n), ways)
        draws = int(np.clip(DRAWN // n, FEWEST, DRAWS))
        large = np.flatnonzero(ways > draws)
        if np.minimum(ways, draws).sum() > MOST:
            gaps = np.average(rows.codes < 0, axis=1, weights=rows.weights)
            worst = [f"{rows.variables[i].name!r} {gaps[i]:.0%}" for i in np.argsort(-gaps, kind="stable")[:5]]
            raise TooLarge(
                f"the missing finite cells of all rows have {ways.sum():.3g} combinations of states, and may have {MOST:,} where "
                f"there are numbers, too; leave out what is most often missing: {listed(worst, style='str')}"
            )
        note(
            f"{len(large):,} rows have more than {draws:,} combinations of states of their missing finite cells: "
            f"for each {draws:,} draws stand for them, and what is expected is approximate"
        )
        parts = [self._combined(small := np.flatnonzero(ways <= draws), ways[small])]
        for done, i in enumerate(large.tolist()):
            self.watch(f"drawing missing cells, {done:,} of {len(large):,} rows")
            parts.append(self.drawn(i, draws))
        owner, codes, log_weight = zip(*parts, strict=True)
        return np.concatenate(owner), np.hstack(codes), np.concatenate(log_weight)

    def _combined(self, which: Any, ways: Floats) -> tuple[Ints, Ints, Floats]:
        """Each of these rows with every combination of states of its missing finite cells."""
        times = ways.astype(np.int64)
        owner = np.repeat(which, times)
        turn = np.arange(len(owner)) - np.repeat(np.cumsum(times) - times, times)
        codes = self.rows.codes[:, owner].astype(np.int64)
        for row, v in zip(codes, self.rows.variables, strict=True):
            missing = row < 0
            row[missing] = turn[missing] % v.n_states
            turn[missing] //= v.n_states
        return owner, codes, np.zeros(len(owner))

    def drawn(self, i: int, draws: int) -> tuple[Ints, Ints, Floats]:
        """The distinct draws for a row; ln weight = ln times drawn − ln what they were drawn by."""
        row = self.rows.codes[:, i]
        members = np.flatnonzero(row < 0).tolist()
        factors = [*factors_at(self.network, set(members), row), *self._normal_factors(i, set(members))]
        drawn = joint_draws(members, factors, draws, np.random.default_rng([self.seed, i]), self.rows.variables)
        if drawn is None:
            raise self.rows.places.impossible(i)
        states, times = np.unique(drawn, axis=0, return_counts=True)
        column = {v: states[:, k] for k, v in enumerate(members)}
        by = sum((table[tuple(column[v] for v in scope)] for scope, table in factors), np.zeros(len(states)))
        codes = np.repeat(row[:, None].astype(np.int64), len(states), axis=1)
        codes[members] = states.T
        return np.full(len(states), i), codes, np.log(times) - by

    def _normal_factors(self, i: int, members: set[int]) -> list[Factor]:
        """What observed numbers whose real parents are observed say of missing states; states without an estimate are out."""
        result: list[Factor] = []
        number = {v.name: i for i, v in enumerate(self.rows.variables)}
        numbers = dict(zip(self.rows.reals, self.rows.numbers[i] + self.rows.centre, strict=True))
        for cpd in self.nodes:
            above = [number[p.name] for p in cpd.finite_parents]
            if not members & set(above):
                continue
            at = tuple(slice(None) if v in members else int(self.rows.codes[v, i]) for v in above)
            a, b, variance = cpd.intercept[at], cpd.coefficients[at], cpd.variance[at]
            x, y = np.array([numbers[p] for p in cpd.real_parents]), numbers[cpd.child.name]
            log_p = np.zeros(variance.shape)
            if not np.isnan(y) and not np.isnan(x).any():
                log_p = -0.5 * (LOG_2PI + np.log(variance) + (y - a - b @ x) ** 2 / variance)
            result.append(([v for v in above if v in members], np.where(np.isnan(variance), -np.inf, log_p)))
        return result


def joint_normal(nodes: Iterable[ConditionalGaussian], names: Sequence[str], at: At) -> tuple[Floats, Floats]:
    """Mean and covariance of normal nodes, given the states `at` of their finite parents; parents come before their children.

    Each node gets what its parents pass on, and its own variance.
    """
    number, states = {n: i for i, n in enumerate(names)}, dict(at)
    mean, root = np.zeros(len(names)), np.zeros((len(names), len(names)))
    for cpd in nodes:
        u = tuple(states[p.name] for p in cpd.finite_parents)
        i, parents = number[cpd.child.name], [number[p] for p in cpd.real_parents]
        mean[i] = cpd.intercept[u] + cpd.coefficients[u] @ mean[parents]
        root[i] = cpd.coefficients[u] @ root[parents]
        root[i, i] += np.sqrt(cpd.variance[u])
    return mean, root @ root.T


def conditioned(
    x: Floats, normal: tuple[Floats, Floats], shown: npt.NDArray[np.bool_], names: Sequence[str]
) -> tuple[Floats, Floats]:
    """Put the regression on what rows show into the rest of them; the covariance that is left of it, and ln p of what is shown.

    All variables are scaled to variance 1 on the way. (The conditionals of `suffice.inference.gaussian` are of nodes, and there
    are none before there is a network.)

    >>> x = np.array([[2.0, np.nan]])
    >>> left, _ = conditioned(x, (np.zeros(2), np.array([[4.0, 1.0], [1.0, 1.0]])), np.array([True, False]), ["x", "y"])
    >>> x, left
    (array([[2. , 0.5]]), array([[0.75]]))
    """
    from scipy.linalg.lapack import dtrtri

    mean, covariance = normal
    scale = np.sqrt(np.diag(covariance))
    correlation = covariance / scale[:, None] / scale
    try:
        root = np.linalg.cholesky(correlation[np.ix_(shown, shown)])
    except np.linalg.LinAlgError:
        some = listed([n for n, s in zip(names, shown, strict=True) if s])
        raise FitError(f"the covariance of {some} is singular under the current network: leave out what is determined") from None
    with one_blas_thread:  # once more, as scipy's library may have come by the import above
        inverse = dtrtri(root, lower=1)[0] if len(root) else root
    white = (x[:, shown] - mean[shown]) / scale[shown] @ inverse.T
    across = correlation[np.ix_(~shown, shown)] @ inverse.T
    x[:, ~shown] = white @ across.T * scale[~shown] + mean[~shown]
    left = (correlation[np.ix_(~shown, ~shown)] - across @ across.T) * scale[~shown, None] * scale[~shown]
    log_scale = np.log(np.diag(inverse)).sum() - np.log(scale[shown]).sum()
    return left, log_scale - 0.5 * (LOG_2PI * len(root) + (white * white).sum(axis=1))
