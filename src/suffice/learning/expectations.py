"""Expectations: the statistics that incomplete rows are expected to have under a network, for any family, its own or not.

A search sees them as it sees data: `weight`, and `gather(requests)`. Of a finite network `tables` answers many sets at once, in
threads; of a Gaussian one a single matrix of expected moments answers everything; of a mixed one rows that are completed in every
way (`suffice.learning.hybrid_expectations`). Rows that show all of a set are counted.

    E[N(s)] = Σ rows w · p(s | what the row shows),   p the product over the components of missing cells that s touches
    E[x], E[xxᵀ]: of a missing part its regression on what the row shows, and the covariance that is left
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.data import Data
from suffice.engines.parallel import in_order, n_threads
from suffice.errors import FitError, TooLarge, listed
from suffice.learning.hybrid_expectations import ExpectedMixed, MixedRows
from suffice.learning.normal_regression import constant, joint_normal, regression
from suffice.learning.row_completions import CodedRows, Completions, Watch, unwatched
from suffice.models.bayes_net import BayesNet
from suffice.statistics import Counts, Moments, Request, Statistics
from suffice.variables import Finite, Real, Variable

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DENSE = 2**22
"""Cells up to which a table is dense."""


SETTLED = 1e-3
"""The change of correlations below which a start of moments is good enough."""

VISITS = 2**20
"""Rows, times tables that they are added to, between two looks at the clock."""


class Expectations:
    """The tables that rows are expected to have under a finite network.

    >>> from suffice.engines import scan
    >>> x, y = Finite("x", ["a", "b"]), Finite("y", ["a", "b"])
    >>> bn = BayesNet("x -> y", {"x": [0.5, 0.5], "y": [[0.9, 0.1], [0.2, 0.8]]}, variables=[x, y])
    >>> rows = CodedRows.of(scan({"x": ["a", None], "y": ["a", "b"]}, variables=[x, y]), {"x": x, "y": y})
    >>> Expectations(bn, rows).gather([Request(("x", "y"))]).counts(["x", "y"]).values.round(3)
    array([[1.   , 0.111],
           [0.   , 0.889]])
    """

    def __init__(self, model: BayesNet, rows: CodedRows, seed: int = 0, watch: Watch = unwatched) -> None:
        self.rows, self.weight, self._watch = rows, rows.weight, watch
        self._number = {v.name: i for i, v in enumerate(rows.variables)}
        self._sizes = np.array([v.n_states for v in rows.variables], np.int64)
        self.completions = self._completed(model, seed)

    def _completed(self, model: Any, seed: int) -> Completions:
        return Completions.of(model, self.rows, seed, self._watch)

    def gather(self, requests: Iterable[Request], *, threads: int | None = None) -> Statistics:
        """The expected tables that are asked for."""
        sets = [self._members(r.names) for r in requests]
        dense = [s for s in sets if self._cells(s) <= DENSE]
        flat, at = self.tables([[self.rows.variables[v].name for v in s] for s in dense], threads=threads)
        entries = [Counts(self._named(s), self._shaped(flat[a:b], s)) for s, (a, b) in zip(dense, pairwise(at), strict=True)]
        entries += [self._sparse(s) for s in sets if self._cells(s) > DENSE]
        return Statistics(entries, self.weight)

    def tables(self, sets: Sequence[Sequence[str]], *, threads: int | None = None) -> tuple[Floats, Ints]:
        """The expected tables of some sets of variables end to end, the last variable fastest, and where each begins."""
        from suffice.kernels.expectations import expected_tables

        numbers = [self._members(s) for s in sets]
        at = np.concatenate([[0], np.cumsum([self._cells(s) for s in numbers])]).astype(np.int64)
        flat = np.zeros(int(at[-1]))

        def job(low: int, high: int) -> None:
            first = np.concatenate([[0], np.cumsum([len(s) for s in numbers[low:high]])]).astype(np.int64)
            members = np.array([v for s in numbers[low:high] for v in s], np.int32)
            part = flat[at[low] : at[high]]
            expected_tables(
                *self.completions, first, members, self._sizes, at[low : high + 1] - at[low], self._complete_only, part
            )

        parts = max(4 * n_threads(threads), len(sets) * self.rows.codes.shape[1] // VISITS)
        ends = np.unique(np.linspace(0, len(sets), parts + 1).astype(int)).tolist()
        for done, _ in zip(ends[1:], in_order((partial(job, a, b) for a, b in pairwise(ends)), threads), strict=True):
            self._watch(f"expected tables, {done:,} of {len(sets):,}")
        return flat, at

    _complete_only = False

    def _sparse(self, members: list[int]) -> Counts:
        """A huge table as a list of its cells."""
        if np.log2(self._sizes[members].astype(float)).sum() > 62:
            raise TooLarge(f"a table over {listed([v.name for v in self._named(members)])} has too many cells to be numbered")
        keys, weights = spread(self.completions, self._sizes, members)
        cells, inverse = np.unique(keys, return_inverse=True)
        return Counts(self._named(members), np.bincount(inverse, weights, len(cells)).astype(np.float64), cells)

    def _members(self, names: Iterable[str]) -> list[int]:
        return [self._number[n] for n in names]

    def _named(self, members: Iterable[int]) -> tuple[Finite, ...]:
        return tuple(self.rows.variables[v] for v in members)

    def _cells(self, members: Sequence[int]) -> int:
        cells = 1
        for v in members:
            cells *= int(self._sizes[v])
        return cells

    def _shaped(self, table: Floats, members: list[int]) -> Floats:
        return table.reshape(self._sizes[members])


class AvailableCases(Expectations):
    """What the rows that show all of a set say about it, scaled to the weight of all rows: a guess before there is a network.

    Where no row shows a whole set, its variables are taken to be independent.
    """

    def __init__(self, rows: CodedRows, watch: Watch = unwatched) -> None:
        super().__init__(None, rows, watch=watch)  # type: ignore[arg-type]

    _complete_only = True

    def _completed(self, model: Any, seed: int) -> Completions:
        none, small = np.zeros(0, np.int64), np.zeros(0, np.int32)
        floats = np.zeros(0)
        by_cell, lists, pairs = (small, small, none, floats), (none, none, small, floats, small), (none, none, none, floats)
        return Completions._make((self.rows.codes, self.rows.weights, *by_cell, *lists, *pairs))

    def tables(self, sets: Sequence[Sequence[str]], *, threads: int | None = None) -> tuple[Floats, Ints]:
        flat, at = super().tables(sets, threads=threads)
        for names, (a, b) in zip(sets, pairwise(at), strict=True):
            total = flat[a:b].sum()
            flat[a:b] = flat[a:b] * (self.weight / total) if total > 0 else self._independent(names)
        return flat, at

    def _independent(self, names: Sequence[str]) -> Floats:
        result = np.full(1, self.weight)
        for name in names:
            alone = super().tables([[name]], threads=1)[0]
            known = alone.sum() > 0
            result = np.outer(result, alone / alone.sum() if known else np.full(len(alone), 1 / len(alone))).reshape(-1)
        return result


def spread(completions: Completions, sizes: Ints, members: Sequence[int]) -> tuple[Ints, Floats]:
    """The cells of a table over which the rows are expected to fall, and the weight in each: what `expected_tables` computes.

    A cell may come several times.
    """
    c = completions
    codes = c.codes[list(members)].astype(np.int64)
    steps = np.array([int(np.prod(sizes[list(members[k + 1 :])])) for k in range(len(members))], np.int64)
    whole = (codes >= 0).all(axis=0)
    keys, weights = [steps @ codes[:, whole]], [c.weights[whole]]
    for i in np.flatnonzero(~whole):
        places, shares = np.array([steps @ np.maximum(codes[:, i], 0)]), np.array([c.weights[i]])
        cells = ~codes[codes[:, i] < 0, i]
        step = steps[codes[:, i] < 0]
        for d in np.unique(c.component[cells]):
            mine = c.component[cells] == d
            states = c.digits[c.digit_at[d] : c.digit_at[d + 1]].reshape(-1, c.size[d])[:, c.position[cells[mine]]]
            moves, inverse = np.unique(states.astype(np.int64) @ step[mine], return_inverse=True)
            share = np.bincount(inverse, c.p[c.at[d] : c.at[d + 1]], len(moves))
            places, shares = np.add.outer(places, moves).reshape(-1), np.multiply.outer(shares, share).reshape(-1)
        keys.append(places)
        weights.append(shares)
    return np.concatenate(keys), np.concatenate(weights)


class ExpectedMoments:
    """The moments that rows of numbers are expected to have under a normal distribution.

    >>> from suffice.engines import scan
    >>> rows = NumberRows.of(scan({"x": [0.0, 2.0, None], "y": [0.0, 4.0, 2.0]}), ["x", "y"])
    >>> here = ExpectedMoments(rows, np.zeros(2), np.array([[1.0, 0.5], [0.5, 1.0]]))
    >>> here.gather([Request((), ("x", "y"))]).moments((), ["x"]).mean
    array([[1.]])
    """

    def __init__(self, rows: NumberRows, mean: Floats, covariance: Floats, watch: Watch = unwatched) -> None:
        self.rows, self.weight, self._watch = rows, rows.weight, watch
        self._mean, self._covariance = mean, covariance

    @staticmethod
    def under(model: BayesNet, rows: NumberRows, watch: Watch = unwatched) -> ExpectedMoments:
        """Under a Gaussian network."""
        return ExpectedMoments(rows, *joint_normal(model, rows.names), watch)

    @staticmethod
    def saturated(rows: NumberRows, iterations: int = 20, watch: Watch = unwatched) -> ExpectedMoments:
        """Under the normal distribution that the rows support, all variables depending on all: some iterations of EM."""
        mean, variance = rows.marginals()
        here = ExpectedMoments(rows, mean, np.diag(variance), watch)
        for i in range(iterations):
            m = here.moments
            covariance = m.scatter[0] / m.count[0]
            scale = np.sqrt(np.diag(covariance))
            if i and np.abs((covariance - here._covariance) / scale[:, None] / scale).max() < SETTLED:
                break
            here = ExpectedMoments(rows, m.mean[0], covariance + 1e-6 * np.diag(np.diag(covariance)), watch)
        return here

    @cached_property
    def moments(self) -> Moments:
        """Of all variables together."""
        rest = np.zeros_like(self._covariance)
        away = self.rows.values - self._mean
        for i, (shown, which) in enumerate(self.rows.patterns):
            if i % 64 == 63:
                self._watch(f"moments of numbers, {i + 1:,} of {len(self.rows.patterns):,} patterns of missing cells")
            if not shown.all():
                fit = regression(self._covariance, shown, self.rows.names)
                away[np.ix_(which, ~shown)] = away[np.ix_(which, shown)] @ fit.gain.T
                rest[np.ix_(~shown, ~shown)] += self.rows.weights[which].sum() * fit.left
        w = self.rows.weights
        mean = w @ away / self.weight
        away -= mean
        scatter = (away * w[:, None]).T @ away + rest
        total = self._mean + mean
        return Moments((), self.rows.names, np.zeros(1, np.int64), np.array([self.weight]), total[None], scatter[None])

    def gather(self, requests: Iterable[Request], *, threads: int | None = None) -> Statistics:
        """The expected moments that are asked for: all of them."""
        return Statistics([self.moments], self.weight)


class NumberRows:
    """Rows of numbers, NaN where missing, and the patterns of what they show."""

    def __init__(self, names: Sequence[str], values: Floats, weights: Floats) -> None:
        self.names, self.values, self.weights = tuple(names), values, weights
        self.weight = float(weights.sum())
        shown, inverse = np.unique(~np.isnan(values), axis=0, return_inverse=True)
        order = np.argsort(inverse.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(inverse.reshape(-1)))
        self.patterns = [(s, which) for s, which in zip(shown, np.split(order, ends[:-1]), strict=True)]

    @staticmethod
    def of(rows: Data, names: Sequence[str]) -> NumberRows:
        values, weights = np.empty((rows.n_rows, len(names))), np.ones(rows.n_rows)
        for batch in rows.select(names).batches():
            part = slice(batch.start, batch.start + batch.n_rows)
            values[part] = np.column_stack([batch.columns[n] for n in names])
            if batch.weight is not None:
                weights[part] = batch.weight
        return NumberRows(names, values, weights)

    def marginals(self) -> tuple[Floats, Floats]:
        """The mean and the variance of each column, from the cells that are there."""
        w = np.where(np.isnan(self.values), 0.0, self.weights[:, None])
        x = np.nan_to_num(self.values)
        total = w.sum(axis=0)
        mean = (w * x).sum(axis=0) / total
        variance = (w * (x - mean) ** 2).sum(axis=0) / total
        for name, v in zip(self.names, variance, strict=True):
            if not v > 0:
                raise constant(name)
        return mean, variance


class IncompleteRows:
    """Rows with missing cells and hidden variables, in the form in which expectations under any network are taken of them."""

    def __init__(self, rows: Data, variables: Mapping[str, Variable], seed: int = 0) -> None:
        for name, v in variables.items():
            if not isinstance(v, (Finite, Real)):
                raise FitError(
                    f"{name!r} holds {type(v).__name__.lower()}s, and structural EM takes finite columns and numbers, so far; "
                    f"declare it as one of them: variables={{{name!r}: Real}}"
                )
        finite = {n: v for n, v in variables.items() if isinstance(v, Finite)}
        self._finite = CodedRows.of(rows, finite) if len(finite) == len(variables) else None
        self._numbers = None if finite else NumberRows.of(rows, list(variables))
        self._mixed = MixedRows.of(rows, variables) if 0 < len(finite) < len(variables) else None
        self._seed = seed
        self.watch: Watch = unwatched

    def under(self, model: BayesNet) -> Any:
        """What is expected under a network."""
        if self._finite is not None:
            return Expectations(model, self._finite, self._seed, self.watch)
        if self._numbers is not None:
            return ExpectedMoments.under(model, self._numbers, self.watch)
        assert self._mixed is not None
        return ExpectedMixed(model, self._mixed, self._seed, self.watch)

    def first(self) -> Any:
        """What is there to start with, before there is a network; None where finite columns and numbers are mixed."""
        if self._finite is not None:
            return AvailableCases(self._finite, self.watch)
        return None if self._numbers is None else ExpectedMoments.saturated(self._numbers, watch=self.watch)
