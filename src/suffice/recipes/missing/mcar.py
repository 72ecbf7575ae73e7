"""Tests of whether cells are missing completely at random: whether which cells are missing has to do with what is observed.

Little's test compares, in columns of numbers, the mean of each pattern with what a joint normal distribution, fitted to all
that is observed, expects of it:

    d² = Σⱼ nⱼ (ȳⱼ − μⱼ)ᵀ Σⱼ⁻¹ (ȳⱼ − μⱼ),    chi-square with Σⱼ pⱼ − p degrees of freedom

over the pⱼ columns that pattern j observes (Little 1988, J. Am. Stat. Assoc. 83, p. 1198). Pairs of columns are compared one by
one: the values of one column in rows where another is missing with those in rows where it is not, states by the likelihood
ratio G², numbers by Welch's t of their ranks, which needs no normal ones; p-values are Holm's, for all pairs together. Where one
side varies much less than the other, as a few rows of a column do in which most numbers are equal, Student's t takes the
variance of both together, which is the same if cells are missing completely at random.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from suffice.basis.arrays import Array, Bools, Ints
from suffice.basis.libraries import sc
from suffice.engines.steps.blocks import with_count
from suffice.recipes.missing.missing_cells import Columns, MissingSummary
from suffice.statistics.moments import Cases, Spread

LEVEL = 0.01
"""Pairs whose p-value, corrected for all of them, is at most this are reported as dependent."""
FEWEST = 5.0
"""Rows on either side that a mean is taken from, and that a state must be expected to have; rarer states are pooled."""
ALIKE = 0.25
"""The ratio of the variances of both sides from which on each side is taken by its own."""
SINGULAR = 1e-9
"""The smallest eigenvalue that a correlation matrix may have."""
TOL = 1e-9
"""The change of every mean and covariance that ends EM."""
BUDGET, FEWEST_ITERATIONS = 2 * 10**9, 100
"""What Little's test may cost, about three seconds, and the iterations below which EM is not even begun."""
SETTLED = 0.01
"""Where EM was stopped by the budget: the change of d² in its second half, in standard deviations of the chi-square."""


class McarTest(NamedTuple):
    """A test of data being missing completely at random. A small p-value speaks against it; `what` says how it was tested.

    Where nothing could be tested, the numbers are None, and `what` says why.

    >>> print(McarTest(None, None, None, "there are too few rows"))
    not tested: there are too few rows
    """

    statistic: float | None
    df: float | None
    p_value: float | None
    what: str

    def __str__(self) -> str:
        if self.p_value is None:
            return f"not tested: {self.what}"
        return f"statistic {self.statistic:.4g}, df {self.df:.4g}, p = {self.p_value:.4g} ({self.what})"


class Dependence(NamedTuple):
    """Whether `column` is missing depends on the value of `on`, by a test.

    `p_value` is corrected for all pairs of columns; `strength` is from 0 to 1: Cramér's V, or for numbers the correlation ratio.
    """

    column: str
    on: str
    p_value: float
    strength: float
    statistic: float
    df: float


def mcar_test(columns: Columns, found: MissingSummary) -> tuple[McarTest, tuple[Dependence, ...]]:
    """The test that fits the columns, and all pairs, the most telling first. Ctrl-C leaves out what is not done yet."""
    if not columns.gappy:
        return McarTest(None, None, None, "no column is missing in some rows and observed in others"), ()
    try:
        pairs = [*_finite_pairs(columns, found.tables), *_real_pairs(columns, found.ranks)]
    except KeyboardInterrupt:
        return McarTest(None, None, None, "it was interrupted"), ()
    corrected = holm(pairs)
    try:
        joint = little(found.moments.cases)
    except KeyboardInterrupt:
        joint = "Little's test of the numbers was interrupted"
    if isinstance(joint, str):
        return _of_pairs(corrected, joint), corrected
    rest = holm([p for p in pairs if not {p.column, p.on} <= set(columns.reals)])
    if not rest:
        return joint, corrected
    ordered = sorted((joint, _of_pairs(rest, "")), key=lambda test: test.p_value or 0.0)
    (first, second), (p, other) = ordered, [test.p_value or 0.0 for test in ordered]  # the smaller one doubled (Bonferroni)
    what = f"the more telling of two tests, p doubled: {first.what}; the other (p = {other:.4g}): {second.what}"
    return McarTest(first.statistic, first.df, min(1.0, 2.0 * p), what), corrected


def holm(pairs: Sequence[Dependence]) -> tuple[Dependence, ...]:
    """The pairs with p-values corrected for all of them (Holm 1979, Scand. J. Stat. 6, p. 65), the smallest first."""
    ordered = sorted(pairs, key=lambda p: (p.p_value, -p.strength, p.column, p.on))
    result: list[Dependence] = []
    for i, pair in enumerate(ordered):
        least = result[-1].p_value if result else 0.0
        result.append(pair._replace(p_value=min(1.0, max(least, (len(ordered) - i) * pair.p_value))))
    return tuple(result)


def _of_pairs(pairs: Sequence[Dependence], why: str) -> McarTest:
    before = why and f"{why}; "
    if not pairs:
        return McarTest(None, None, None, f"{before}no two columns could be compared: too few rows, or too many columns")
    first = pairs[0]
    n_pairs = "1 pair" if len(pairs) == 1 else f"{len(pairs):,} pairs"
    what = (
        f"{before}{n_pairs} of columns compared, the values of one where the other is missing and where it is not, "
        "by G² (rare states pooled) or Welch's t of ranks, p corrected by Holm; the most telling: whether "
        f"{first.column!r} is missing, against {first.on!r}; assumes independent rows, and enough of them for the "
        "large-sample distributions"
    )
    return McarTest(first.statistic, first.df, first.p_value, what)


def little(cases: Cases | None) -> McarTest | str:
    """Little's test of columns of numbers, or why it was not made ("": there is nothing that it could test)."""
    if cases is None:
        return "there are too many patterns for Little's test of the numbers"
    seen, normals = _observed_patterns(cases)
    if len(seen) < 2 or seen.shape[1] < 2:
        return ""
    max_iter = affordable(*seen.shape)
    if max_iter < FEWEST_ITERATIONS:
        return f"Little's test of {seen.shape[1]} columns of numbers in {len(seen)} patterns would take too long"
    fitted = normal_by_em(seen, normals, max_iter)
    if fitted is None:
        return "columns of numbers are collinear, or their rows too few, so Little's test of them was not made"
    mean, covariance, settled = fitted
    if not settled:
        return f"EM for Little's test of {seen.shape[1]} columns of numbers would take too long"
    statistic, df = _distance(seen, normals, mean, covariance), int(seen.sum()) - seen.shape[1]
    what = (
        f"Little's test of {seen.shape[1]} columns of numbers in {len(seen)} patterns: the mean of each pattern against a "
        "joint normal distribution fitted by EM; assumes normal columns, or patterns of many rows"
    )
    return McarTest(statistic, df, float(sc.chdtrc(df, statistic)), what)


def affordable(patterns: int, columns: int) -> int:
    """The iterations of EM that the budget pays. One costs about a matrix product for each pattern, and some calls of numpy."""
    return BUDGET // (patterns * (columns**3 + 10_000) + 100_000)


def _distance(seen: Bools, normals: Spread, mean: Array, covariance: Array) -> float:
    """d² of all patterns."""
    total = 0.0
    for flags, weight, own in zip(seen, normals.weight, normals.mean, strict=True):
        off = own[flags] - mean[flags]
        total += float(weight * (off @ np.linalg.solve(covariance[np.ix_(flags, flags)], off)))
    return total


def _observed_patterns(cases: Cases) -> tuple[Bools, Spread]:
    """The patterns that observe something, in a fixed order: what they observe, and their moments, in units of each column's
    standard deviation from its mean. Constant columns are left out.
    """
    used = np.flatnonzero(cases.spread.weight > 0)
    seen: Bools = ~cases.codes[:, used].T
    weight, means, rests, scatter = (part[used] for part in cases.spread)
    total = np.maximum(weight @ seen, 1e-300)
    centre = (weight @ (means * seen)) / total
    off = (means - centre + rests) * seen
    spread = np.sqrt((np.einsum("jpp->p", scatter) + weight @ off**2) / total)
    varies = np.flatnonzero(spread > 1e-12 * np.abs(centre))
    kept = np.flatnonzero(seen[:, varies].any(axis=1))
    unit, some = spread[varies], np.ix_(kept, varies)
    scatter = scatter[np.ix_(kept, varies, varies)] / np.outer(unit, unit)
    return seen[some], Spread(weight[kept], off[some] / unit, np.zeros((len(kept), len(varies))), scatter)


def normal_by_em(seen: Bools, normals: Spread, max_iter: int = 2000) -> tuple[Array, Array, bool] | None:
    """The mean and covariance of the joint normal that makes the observed cells most probable, by EM, and whether d² would not
    change any more; None where it is singular.

    All patterns at once: with A the inverse of the covariance of what pattern j observes, zero elsewhere, K = ΣA is the
    regression of all columns on the observed ones, which it leaves as they are. Little & Rubin 2002, Statistical Analysis with
    Missing Data, 2nd ed., p. 223.
    """
    weight, means, _, scatters = normals
    both, hidden = seen[:, :, None] & seen[:, None, :], ~seen[:, :, None] & ~seen[:, None, :]
    rest = np.einsum("jp,pq->jpq", ~seen, np.eye(seen.shape[1]))
    mean, covariance = np.zeros(seen.shape[1]), np.eye(seen.shape[1])
    change, halfway = np.inf, np.inf
    for i in with_count(range(max_iter), "fitting a joint normal", max_iter):
        if np.linalg.eigvalsh(covariance)[0] < SINGULAR:
            return None
        before = mean, covariance
        K = covariance @ (np.linalg.inv(covariance * both + rest) * both)
        expected = mean + np.einsum("jpq,jq->jp", K, (means - mean) * seen)
        left = (covariance - K @ covariance) * hidden
        mean = weight @ expected / weight.sum()
        off = expected - mean
        scatter = K @ scatters @ K.transpose(0, 2, 1) + weight[:, None, None] * left
        covariance = (scatter.sum(axis=0) + (off * weight[:, None]).T @ off) / weight.sum()
        covariance = (covariance + covariance.T) / 2.0
        change = max(np.abs(mean - before[0]).max(), np.abs(covariance - before[1]).max())
        if change < TOL:
            break
        if i == max_iter // 2:
            halfway = _distance(seen, normals, mean, covariance)
    if np.linalg.eigvalsh(covariance)[0] < SINGULAR:
        return None
    deviation = np.sqrt(2.0 * max(int(seen.sum()) - seen.shape[1], 1))
    settled = change < TOL or abs(_distance(seen, normals, mean, covariance) - halfway) < SETTLED * deviation
    return mean, covariance, bool(settled)


def _finite_pairs(columns: Columns, tables: Mapping[str, Array]) -> Iterator[Dependence]:
    """G² of the states of each finite column and whether each other column is missing, all of those at once."""
    for on, table in with_count(tables.items(), "comparing columns", len(tables)):
        ordered = table[:, np.argsort(-table[0], kind="stable")]
        share = table[1:].sum(axis=1) / max(float(table[0].sum()), 1e-300)
        rarer = np.minimum(share, 1.0 - share)
        pools = _pools(ordered[0], FEWEST / np.maximum(rarer, 1e-300))
        used = np.flatnonzero((pools > 1) & (rarer > 0.0) & (np.array(columns.gappy) != on))
        share, pools = share[used, None], pools[used]
        total, missing = _pool_weights(ordered[:1], pools), _pool_weights(ordered[1 + used], pools)
        cells = np.stack([total - missing, missing])
        expected = np.where(total > 0.0, np.stack([(1.0 - share) * total, share * total]), 1.0)
        logs = np.log(np.maximum(cells, 1e-300) / expected)
        statistic, df = np.maximum(0.0, 2.0 * (cells * logs).sum(axis=(0, 2))), pools - 1
        off = np.where(total > 0.0, (cells - expected) ** 2 / expected, 0.0).sum(axis=(0, 2))
        strength = np.minimum(1.0, np.sqrt(off / max(float(table[0].sum()), 1e-300)))
        numbers = zip(sc.chdtrc(df, statistic).tolist(), strength.tolist(), statistic.tolist(), df.tolist(), strict=True)
        yield from (Dependence(columns.gappy[j], on, *four) for j, four in zip(used.tolist(), numbers, strict=True))


def _pools(total: Array, fewest: Array) -> Ints:
    """Into how many pools states go, the most frequent first, if each must have so much weight at least.

    A common state is a pool of its own; the rare ones are a pool together, or go with the last of the others."""
    common = np.searchsorted(-total, -fewest, side="right")
    rare = np.append(total[::-1].cumsum()[::-1], 0.0)[common]
    return np.asarray(common + (rare >= fewest), np.int64)


def _pool_weights(weights: Array, pools: Ints) -> Array:
    """Weights by state, all from the last pool on together, for each number of pools."""
    place, last = np.arange(weights.shape[1]), pools[:, None] - 1
    onwards = weights[:, ::-1].cumsum(axis=1)[:, ::-1]
    return np.where(place < last, weights, np.where(place == last, onwards, 0.0))


def _real_pairs(columns: Columns, sums: Array) -> Iterator[Dependence]:
    """The t of the ranks of each column of numbers where each other column is missing and where it is not. Twelve times the
    variance of ranks is 1 where all numbers differ, and small where most are equal: such rows count less."""
    names = np.array(list(columns.reals))
    for j, column in with_count(enumerate(columns.gappy), "comparing columns", len(columns.gappy)):
        n, first, second = np.stack([sums[0] - sums[1 + j], sums[1 + j]]).transpose(1, 0, 2)
        every, mean = np.maximum(n.sum(axis=0), 1e-300), first / np.maximum(n, 1e-300)
        step, spread = mean[1] - mean[0], np.maximum(second - first * mean, 0.0)
        between, within = step * step * n[0] * n[1] / every, np.maximum(spread.sum(axis=0), 1e-12 * every)
        untied = np.minimum(1.0, 12.0 * (between + within) / every)
        used = np.flatnonzero((names != column) & (n.min(axis=0) * untied >= FEWEST))
        error, df = _error(n[:, used], spread[:, used], within[used])
        statistic = step[used] / np.sqrt(error)
        p, strength = 2.0 * sc.stdtr(df, -np.abs(statistic)), np.sqrt(between / (between + within))[used]
        numbers = zip(p.tolist(), strength.tolist(), statistic.tolist(), df.tolist(), strict=True)
        yield from (Dependence(column, str(names[k]), *four) for k, four in zip(used.tolist(), numbers, strict=True))


def _error(n: Array, spread: Array, within: Array) -> tuple[Array, Array]:
    """The variance of the difference of two means, and its degrees of freedom: Welch's, or Student's where one side varies
    much less than the other.
    """
    each = np.maximum(spread, 1e-12) / (n * (n - 1.0))
    welch = each.sum(axis=0), each.sum(axis=0) ** 2 / (each**2 / (n - 1.0)).sum(axis=0)
    student = within / (n.sum(axis=0) - 2.0) * (1.0 / n).sum(axis=0), n.sum(axis=0) - 2.0
    variance = spread / (n - 1.0)
    alike = variance.min(axis=0) > ALIKE * variance.max(axis=0)
    return np.where(alike, welch[0], student[0]), np.where(alike, welch[1], student[1])
