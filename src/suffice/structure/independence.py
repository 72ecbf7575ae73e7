"""Tests of conditional independence, from the same statistics as everything else.

A test says what it needs of some variables, and gives its statistic, degrees of freedom and p-value: how likely a statistic at
least as large is if the two variables are independent given the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Array, Ints
from suffice.basis.blas import one_blas_thread
from suffice.basis.libraries import sc
from suffice.basis.registry import Named
from suffice.basis.variables import Finite, Variable
from suffice.engines.data import Data
from suffice.engines.scan import scan
from suffice.errors import FitError, listing, nearest
from suffice.errors.remedies import Remedy
from suffice.numerics.exponential.normals.lines import COLLINEAR, too_large
from suffice.statistics import Counts, Moments, Request, Statistics
from suffice.structure.scoring.hybrid_scores import ConfigurationMoments

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike


class Independence(NamedTuple):
    """The answer of a test. `df` is None where the statistic has no degrees of freedom (Fisher's z is normal); those of
    `LikelihoodRatio` need not be whole.

    >>> Independence(statistic=3.84, df=1, p_value=0.05).df
    1
    """

    statistic: float
    df: float | None
    p_value: float


class IndependenceTest(Named):
    """What a test of x and y given others has to have: PC, MMHC and `independence_test` use one of your own like those here.

    `needs` says which statistic it wants, `test` gives its answer from that. `bind` may look at what the variables are.

    >>> class Never(IndependenceTest):
    ...     def needs(self, x, y, given=()):
    ...         return Request((*given, x, y))
    ...     def test(self, statistics, x, y, given=()):
    ...         return Independence(0.0, None, 1.0)
    >>> independence_test({"x": ["a", "b"], "y": ["a", "b"]}, "x", "y", test=Never()).p_value
    1.0
    """

    listed_in = "tests"
    kinds: ClassVar[str] = ""
    """Of which variables it is, in the words of a refusal."""

    def suits(self, variable: Variable) -> bool:
        """Whether it can test this variable."""
        return True

    def bind(self, variables: Mapping[str, Variable]) -> IndependenceTest:
        """The test of these variables."""
        return self

    def needs(self, x: str, y: str, given: Sequence[str] = ()) -> Request:
        """The table of finite variables, or the moments of numbers within their configurations."""
        raise NotImplementedError

    def test(self, statistics: Statistics, x: str, y: str, given: Sequence[str] = ()) -> Independence:
        """The statistic, its degrees of freedom if it has any, and the p-value."""
        raise NotImplementedError


@dataclass(frozen=True)
class TableTest(IndependenceTest):
    """What the tests of finite variables share: a contingency table of x and y within each configuration z of the given.

    The degrees of freedom are (r - 1)(c - 1)q over the declared states; `adjusted` counts only the rows and columns of each
    stratum that are not empty. Without any, the table cannot speak against independence: p is 1.
    """

    adjusted: bool = False
    kinds: ClassVar[str] = "finite variables, not numbers such as"
    pearson: ClassVar[bool] = False

    def suits(self, variable: Variable) -> bool:
        return isinstance(variable, Finite)

    def needs(self, x: str, y: str, given: Sequence[str] = ()) -> Request:
        """The table of all of them."""
        return Request((*given, x, y))

    def test(self, statistics: Statistics, x: str, y: str, given: Sequence[str] = ()) -> Independence:
        """The statistic, its degrees of freedom and its p-value."""
        counts = statistics.counts(self.needs(x, y, given).finite)
        statistic, df = table_statistic(counts, self.pearson, self.adjusted)
        return Independence(self._report_value(statistic, counts), df, float(sc.chdtrc(df, statistic)) if df else 1.0)

    def _report_value(self, statistic: float, counts: Counts) -> float:
        return statistic


@dataclass(frozen=True)
class GSquared(TableTest):
    """The likelihood ratio G² = 2 Σ n log(n n_z / (n_xz n_yz)), chi-square if independent (Wilks 1938).

    >>> from suffice import scan
    >>> from suffice.independence import independence_test
    >>> data = scan({"x": ["a", "a", "b", "b"] * 5, "y": ["u", "u", "v", "u"] * 5})
    >>> independence_test(data, "x", "y", test=GSquared())
    Independence(statistic=8.630..., df=1, p_value=0.0033...)
    """

    word = "g2"


@dataclass(frozen=True)
class ChiSquared(TableTest):
    """Pearson's X² = Σ (n - e)²/e, with e = n_xz n_yz / n_z (Pearson 1900).

    >>> independence_test({"x": ["a", "a", "b", "b"] * 5, "y": ["u", "u", "v", "u"] * 5}, "x", "y", test=ChiSquared())
    Independence(statistic=6.666..., df=1, p_value=0.0098...)
    """

    word = "chi2"

    pearson: ClassVar[bool] = True


@dataclass(frozen=True)
class MutualInformation(TableTest):
    """The conditional mutual information of x and y in nats: G² = 2N · MI, which gives its p-value.

    >>> independence_test({"x": ["a", "b"] * 9, "y": ["u", "v"] * 9}, "x", "y", test=MutualInformation()).statistic
    0.693...
    """

    word = "mi"

    def _report_value(self, statistic: float, counts: Counts) -> float:
        total = float(counts.listed()[1].sum())
        return statistic / (2.0 * total) if total else 0.0


@dataclass(frozen=True)
class FisherZ(IndependenceTest):
    """Fisher's z = atanh(r) · sqrt(N - |given| - 3) of the partial correlation r, normal if independent (Fisher 1921).

    Where nothing can be said, nothing speaks against independence: with N - |given| - 3 <= 0 rows left, and where x or y is
    constant or a linear combination of the given, z is 0 and p is 1. A given column that is a combination of other given ones
    adds nothing. With r = ±1 z is infinite and p is 0.

    >>> independence_test({"x": [1.0, 2.5, 3.0, 4.0, 5.5], "y": [2.0, 4.0, 3.5, 5.0, 4.5]}, "x", "y", test=FisherZ())
    Independence(statistic=1.696..., df=None, p_value=0.089...)
    """

    word = "fisher-z"

    kinds: ClassVar[str] = "numbers, not finite variables such as"

    def suits(self, variable: Variable) -> bool:
        return not isinstance(variable, Finite)

    def needs(self, x: str, y: str, given: Sequence[str] = ()) -> Request:
        """The moments of all of them."""
        return Request((), (*given, x, y))

    def test(self, statistics: Statistics, x: str, y: str, given: Sequence[str] = ()) -> Independence:
        """z and its two-sided p-value."""
        moments = statistics.moments((), self.needs(x, y, given).real)
        left = moments.total - len(given) - 3
        r = _partial_correlation(correlations(moments)) if left > 0 else 0.0
        z = float(np.arctanh(r) * np.sqrt(left)) if abs(r) < 1 and left > 0 else r * np.inf if r else 0.0
        return Independence(z, None, float(2.0 * sc.ndtr(-abs(z))))


@dataclass(frozen=True)
class LikelihoodRatio(IndependenceTest):
    """The likelihood ratio of conditional Gaussians, for finite and real variables together; the same for x, y and for y, x.

    Within each configuration of the finite variables that are given: two numbers are tested by the ratio of two regressions, a
    number and a finite variable by that of one regression for all states and one for each (intercept, slopes and variance; the
    density of the states given the numbers, by Bayes' rule, has the same ratio). Its exact mean and variance under independence,
    from residuals that are normal, give the degrees of freedom, which need not be whole: the level holds for few rows, too.
    States with too few rows for a regression say nothing. Two finite variables given numbers are tested by the partial
    correlations of their indicators (Pillai's trace), and without numbers by `GSquared(adjusted=True)`.

    A number whose distribution within a configuration is not normal, because finite variables that matter are not given, may
    have another level: the comparison of variances takes its kurtosis for normal.

    >>> rows = {"dose": ["low", "low", "high", "high"] * 3, "mood": [1.0, 1.5, 3.1, 2.8, 1.2, 0.7, 2.9, 3.3, 1.1, 0.8, 3.0, 2.6]}
    >>> answer = independence_test(rows, "dose", "mood", test=LikelihoodRatio())
    >>> answer == independence_test(rows, "mood", "dose"), answer.p_value < 0.05
    (True, True)
    """

    word = "likelihood-ratio"

    numbers: frozenset[str] = field(default=frozenset(), repr=False, compare=False)
    """Which variables are numbers: filled by `bind`."""

    def bind(self, variables: Mapping[str, Variable]) -> LikelihoodRatio:
        return LikelihoodRatio(frozenset(n for n, v in variables.items() if not isinstance(v, Finite)))

    def needs(self, x: str, y: str, given: Sequence[str] = ()) -> Request:
        """The table of the finite ones, those of the pair last, or the moments of the numbers in their configurations."""
        names = *sorted(given), *sorted((x, y))
        return Request(tuple(n for n in names if n not in self.numbers), tuple(n for n in names if n in self.numbers))

    def test(self, statistics: Statistics, x: str, y: str, given: Sequence[str] = ()) -> Independence:
        request = self.needs(x, y, given)
        if not request.real:
            return GSquared(adjusted=True).test(statistics, x, y, given)
        moments = statistics.moments(request.finite, request.real)
        strata = Strata.of_moments(moments, [n for n in sorted((x, y)) if n not in self.numbers])
        statistic, df, log_p = strata.answers(np.arange(len(request.real), dtype=np.int32)[None, :])[0].tolist()
        return Independence(statistic, df, float(np.exp(log_p)))


class Strata(NamedTuple):
    """Groups of rows, those that agree in the finite variables that are given one after the other: see `mixed_tests`."""

    groups: tuple[Array, Array, Array, Ints, Ints, Ints]
    sizes: tuple[int, ...]
    """The numbers of states of those of the pair that are finite."""

    @staticmethod
    def of(moments: ConfigurationMoments, sizes: Sequence[int], pair: Sequence[int]) -> Strata:
        """From moments within configurations of finite variables with these numbers of states; the pair's by place."""
        codes = (
            np.array(np.unravel_index(moments.keys, tuple(sizes))) if len(sizes) else np.zeros((0, len(moments.keys)), np.int64)
        )
        given = [i for i in range(len(sizes)) if i not in pair]
        stratum = np.zeros(len(moments.keys), np.int64)
        for i in given:
            stratum = stratum * sizes[i] + codes[i]
        order = np.argsort(stratum, kind="stable")
        stratum = stratum[order]
        first = np.concatenate([[0], np.flatnonzero(np.diff(stratum)) + 1, [len(stratum)]]).astype(np.int64)
        states = [np.ascontiguousarray(codes[i][order]) for i in pair] + [np.zeros(len(order), np.int64)] * (2 - len(pair))
        arrays = (np.ascontiguousarray(a[order]) for a in (moments.weight, moments.mean, moments.scatter))
        return Strata((*arrays, first, *states), tuple(sizes[i] for i in pair))  # type: ignore[arg-type]

    @staticmethod
    def of_moments(moments: Moments, pair: Sequence[str]) -> Strata:
        """From moments that were gathered, in units of the deviations of all rows."""
        whole = moments.marginal((), moments.reals).at(np.array([0]))
        deviation = np.sqrt(np.diag(whole.scatter[0]) / max(whole.total, 1.0))
        scale = np.where(deviation > 0, deviation, 1.0)
        about = ConfigurationMoments.about_own_means(moments, whole.mean[0], scale)
        return Strata.of(about, [v.n_states for v in moments.variables], [moments.names.index(n) for n in pair])

    def answers(self, members: npt.NDArray[np.int32]) -> Array:
        """Statistic, degrees of freedom and log p of tests by the places of their numbers: the given, then the pair's."""
        from suffice.numerics.kernels.search.mixed_tests import ratio_tests, state_tests

        result = np.zeros((len(members), 3))
        members = np.ascontiguousarray(members, np.int32)
        if len(self.sizes) == 2:
            state_tests(self.groups, members, *self.sizes, result)
        else:
            ratio_tests(self.groups, members, not self.sizes, result)
        return result


@one_blas_thread
def independence_test(
    data: RowsLike | Statistics, x: str, y: str, given: str | Iterable[str] = (), test: IndependenceTest | None = None
) -> Independence:
    """Whether x and y are independent given others: the statistic, its degrees of freedom and its p-value.

    `data` is anything that `scan` takes, or `Statistics`. Without a `test` finite variables are tested by `GSquared()`, numbers
    by `FisherZ()`, both together by `LikelihoodRatio()`.

    >>> rows = {"rain": ["no", "no", "yes", "yes"] * 9, "wet": ["no", "no", "yes", "no"] * 9, "moon": ["new", "full"] * 18}
    >>> round(independence_test(rows, "rain", "wet").p_value, 6)
    8.1e-05
    >>> independence_test(rows, "rain", "moon", given="wet").df
    2
    """
    rows = data if isinstance(data, Statistics) else scan(data)
    try:
        names = (x, y, *((given,) if isinstance(given, str) else given))
    except TypeError:
        raise FitError(f"given is the name of a variable or a list of names, not {given!r}") from None
    if wrong := [name for name in names if not isinstance(name, str)]:
        raise FitError(f"a variable is named by text, not by {wrong[0]!r}")
    known = rows.variables if isinstance(rows, Statistics) else rows.schema
    for name in names:
        if name not in known:
            raise FitError(f"there is no variable {name!r}{nearest(str(name), known)}")
    if len(set(names)) < len(names):
        raise FitError(f"a test is of different variables, and one is named twice in {listing(names)}")
    chosen = suitable_test([known[n] for n in names], test)
    if isinstance(rows, Data):
        rows.require_complete(names)
    return chosen.test(rows.gather([chosen.needs(x, y, names[2:])]), x, y, names[2:])


def suitable_test(variables: Sequence[Variable], test: IndependenceTest | None, *, adjusted: bool = False) -> IndependenceTest:
    """The test that was asked for, if it is one for these variables, or else the one that suits them."""
    finite = [isinstance(v, Finite) for v in variables]
    if test is None:
        test = GSquared(adjusted) if all(finite) else LikelihoodRatio() if any(finite) else FisherZ()
    if not isinstance(test, IndependenceTest):
        raise FitError(
            f"a test is GSquared(), ChiSquared(), MutualInformation(), FisherZ() or LikelihoodRatio(), or derived from "
            f"IndependenceTest, not {test!r}"
        )
    if wrong := [v.name for v in variables if not test.suits(v)]:
        raise FitError(
            f"{type(test).__name__} tests {test.kinds} {listing(wrong, 3)}; "
            f"{Remedy('LikelihoodRatio()', '--test likelihood-ratio')} tests both together"
        )
    return test.bind({v.name: v for v in variables})


def table_statistic(counts: Counts, pearson: bool, adjusted: bool) -> tuple[float, int]:
    """G² or X² of a table whose last two variables are x and y, from the cells that are not empty, and its degrees of freedom."""
    keys, n = counts.listed()
    sizes = [v.n_states for v in counts.variables]
    r, c = sizes[-2:]
    strata, n_z = _margin(keys // (r * c), n)
    rows, n_xz = _margin(keys // c, n)
    columns, n_yz = _margin(keys // (r * c) * c + keys % c, n)
    ratio = n * n_z / (n_xz * n_yz)
    statistic = (n * (ratio - 1.0)).sum() if pearson else 2.0 * (n * np.log(ratio)).sum()
    in_rows, in_columns = (
        np.bincount(np.searchsorted(strata, lines), minlength=len(strata)) for lines in (rows // r, columns // c)
    )
    df = ((in_rows - 1) * (in_columns - 1)).sum() if adjusted else (r - 1) * (c - 1) * prod(sizes[:-2])
    return max(0.0, float(statistic)), int(df)


def _margin(keys: Ints, n: Array) -> tuple[Ints, Array]:
    """The different keys, and of each cell the sum of all with its key."""
    different, inverse = np.unique(keys, return_inverse=True)
    return different, np.bincount(inverse, n).astype(np.float64)[inverse]


def correlations(moments: Moments) -> Array:
    """The matrix of correlations; a constant column has zeros, on the diagonal, too."""
    scatter = moments.at(np.array([0])).scatter[0]
    if not np.isfinite(scatter).all():
        raise too_large(moments.reals[-1])
    variance = np.diag(scatter)
    scale = np.sqrt(np.where(variance > 0, variance, np.inf))
    result = scatter / scale[:, None] / scale
    np.fill_diagonal(result, variance > 0)
    return np.ascontiguousarray(result)


def _partial_correlation(correlation: Array) -> float:
    """That of the last two variables given the others, which are swept out one by one."""
    left = correlation.copy()
    for j in range(len(left) - 2):
        if left[j, j] > COLLINEAR:
            left = left - np.outer(left[:, j], left[j]) / left[j, j]
    x, y = left[-2, -2], left[-1, -1]
    return 0.0 if min(x, y) <= COLLINEAR else float(np.clip(left[-2, -1] / np.sqrt(x * y), -1.0, 1.0))
