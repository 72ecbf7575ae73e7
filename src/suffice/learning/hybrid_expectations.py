"""What incomplete rows are expected to be under a network of tables and normal nodes: rows completed in every way.

Each combination of states of a row's missing finite cells is a row of its own, with its posterior probability; in it the missing
numbers have their regression on the observed ones, and the covariance that is left. These rows answer every request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.encode import missing_code
from suffice.errors import FitError, TooLarge, listed
from suffice.families.categorical import Table
from suffice.families.conditional_gaussian import LOG_2PI
from suffice.learning.normal_regression import constant, joint_normal, regression
from suffice.models.bayes_net import BayesNet
from suffice.statistics import Counts, Moments, Request, Statistics
from suffice.statistics.configurations import n_configurations, sizes
from suffice.variables import Finite, Variable

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MOST = 2**24
"""Completed rows that are held."""

DENSE = 2**16
"""Cells up to which a table is dense."""


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

    def __init__(self, model: BayesNet, rows: MixedRows) -> None:
        self.rows, self.weight = rows, float(rows.weights.sum())
        self.owner, self.codes = _combined(rows)
        self.numbers = rows.numbers[self.owner]
        log_p = _log_tables(model, rows.finite, self.codes)
        self.left = [np.zeros((len(rows.reals),) * 2)]
        self.which = np.zeros(len(self.owner), np.int64)
        for group, shown, at in self._groups(model):
            log_p[group] += self._regressed(model, group, shown, at)
        self._weigh(log_p)

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
        kept = self.p > 0
        self.codes, self.numbers = np.ascontiguousarray(self.codes[:, kept]), self.numbers[kept]
        self.p, self.which, self._left = self.p[kept], self.which[kept], np.array(self.left)

    def gather(self, requests: Iterable[Request], *, threads: int | None = None) -> Statistics:
        """The expected tables and moments that are asked for."""
        return Statistics([self._moments(r) if r.real else self._counts(r) for r in requests], self.weight)

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
        members, keys = self._keys(request.finite)
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
        away = self.numbers[:, columns].copy()
        mean = np.column_stack([_summed(inverse, self.p * x, n) for x in away.T]) / count[:, None]
        away -= mean[inverse]
        scatter = np.empty((n, k, k))
        for a in range(k):
            for b in range(a + 1):
                both = away[:, a] * away[:, b] + self._left[self.which, columns[a], columns[b]]
                scatter[:, a, b] = scatter[:, b, a] = _summed(inverse, self.p * both, n)
        return Moments(members, request.real, groups, count, mean + self.rows.centre[columns], scatter)


def _summed(place: Any, values: Floats, n: int) -> Floats:
    """The sums of the values at each of n places."""
    return np.bincount(place, values, n).astype(np.float64)


def _combined(rows: MixedRows) -> tuple[Ints, Ints]:
    """Each row with every combination of states of its missing finite cells: whose it is, and its states."""
    n = rows.codes.shape[1]
    size = np.array(sizes(rows.finite), np.int64)
    ways = np.where(rows.codes < 0, size[:, None], 1).astype(float).prod(axis=0)
    if ways.sum() > MOST:
        row = int(np.argmax(ways))
        raise TooLarge(
            f"the missing finite cells of all rows have {ways.sum():.3g} combinations of states (row {row + 1:,} alone "
            f"{ways[row]:.3g}), and may have {MOST:,} where there are numbers, too; leave out what is often missing"
        )
    times = ways.astype(np.int64)
    owner = np.repeat(np.arange(n), times)
    turn = np.arange(len(owner)) - np.repeat(np.cumsum(times) - times, times)
    codes = rows.codes[:, owner]
    for i in range(len(codes)):
        missing = codes[i] < 0
        codes[i, missing] = turn[missing] % size[i]
        turn[missing] //= size[i]
    return owner, codes


def _log_tables(model: BayesNet, finite: tuple[Finite, ...], codes: Ints) -> Floats:
    number = {v.name: i for i, v in enumerate(finite)}
    result = np.zeros(codes.shape[1])
    for v in finite:
        cpd = model[v.name]
        assert isinstance(cpd, Table)
        with np.errstate(divide="ignore"):
            result += np.log(cpd.probs)[tuple(codes[number[m]] for m in (*cpd.parents, v.name))]
    return result
