"""Tests of whether cells are missing completely at random: whether which cells are missing has to do with what is observed.

Little's test compares, in columns of numbers, the mean of each pattern with what a joint normal distribution, fitted to all
that is observed, expects of it:

    d² = Σⱼ nⱼ (ȳⱼ − μⱼ)ᵀ Σⱼ⁻¹ (ȳⱼ − μⱼ),    chi-square with Σⱼ pⱼ − p degrees of freedom

over the pⱼ columns that pattern j observes (Little 1988, J. Am. Stat. Assoc. 83, p. 1198). Pairs of columns are compared one by
one: the values of one column in rows where another is missing with those in rows where it is not, states by the likelihood
ratio G², numbers by Welch's t of their ranks, which needs no normal ones; p-values are Holm's, for all pairs together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.recipes.missing_cells import Columns, MissingCells, Normal, PatternMoments

Array = npt.NDArray[np.float64]

LEVEL = 0.01
"""Pairs whose p-value, corrected for all of them, is at most this are reported as dependent."""
FEWEST = 5.0
"""Rows on either side that a mean is taken from, and that a state must be expected to have; rarer states are pooled."""
SINGULAR = 1e-9
"""The smallest eigenvalue that a correlation matrix may have."""
MAX_ITER, TOL = 2000, 1e-9


class McarTest(NamedTuple):
    """A test of data being missing completely at random. A small p-value speaks against it; `what` says how it was tested."""

    statistic: float
    df: float
    p_value: float
    what: str


class Pair(NamedTuple):
    """Whether `column` is missing, against the values of `on`: p, corrected for all pairs, and strength (0 to 1)."""

    column: str
    on: str
    p_value: float
    strength: float
    statistic: float
    df: float


def mcar_test(columns: Columns, found: MissingCells) -> tuple[McarTest, tuple[Pair, ...]]:
    """The test that fits the columns, and all pairs, the most telling first."""
    pairs = [*_finite_pairs(columns, found.tables), *_real_pairs(columns, found.ranks)]
    corrected = holm(pairs)
    if not columns.gappy:
        return McarTest(0.0, 0, 1.0, "there is nothing to test: no column is missing in some rows and observed in others"), ()
    joint = little(found.moments, len(columns.reals))
    if isinstance(joint, str):
        return _of_pairs(corrected, joint), corrected
    rest = holm([p for p in pairs if not {p.column, p.on} <= set(columns.reals)])
    return _both(joint, _of_pairs(rest, "")) if rest else joint, corrected


def holm(pairs: Sequence[Pair]) -> tuple[Pair, ...]:
    """The pairs with p-values corrected for all of them (Holm 1979, Scand. J. Stat. 6, p. 65), the smallest first.

    >>> [round(p.p_value, 6) for p in holm([Pair("a", "b", p, 0.1, 1.0, 1) for p in (0.04, 0.01, 0.03)])]
    [0.03, 0.06, 0.06]
    """
    ordered = sorted(pairs, key=lambda p: (p.p_value, -p.strength, p.column, p.on))
    result: list[Pair] = []
    for i, pair in enumerate(ordered):
        least = result[-1].p_value if result else 0.0
        result.append(pair._replace(p_value=min(1.0, max(least, (len(ordered) - i) * pair.p_value))))
    return tuple(result)


def _of_pairs(pairs: Sequence[Pair], why: str) -> McarTest:
    if not pairs:
        return McarTest(0.0, 0, 1.0, f"{why and why + '; '}no two columns could be compared: too few rows, or too many columns")
    first = pairs[0]
    n_pairs = "1 pair" if len(pairs) == 1 else f"{len(pairs):,} pairs"
    what = (
        f"{why and why + '; '}{n_pairs} of columns compared, the values of one where the other is missing and where it is not, "
        "by G² (rare states pooled) or Welch's t of ranks, p corrected by Holm; the most telling: whether "
        f"{first.column!r} is missing, against {first.on!r}; assumes independent rows, and enough of them for the "
        "large-sample distributions"
    )
    return McarTest(first.statistic, first.df, first.p_value, what)


def _both(joint: McarTest, pairs: McarTest) -> McarTest:
    """Two tests as one, the smaller of the p-values doubled (Bonferroni)."""
    first, second = (joint, pairs) if joint.p_value <= pairs.p_value else (pairs, joint)
    what = f"the more telling of two tests, p doubled: {first.what}; the other (p = {second.p_value:.4g}): {second.what}"
    return McarTest(first.statistic, first.df, min(1.0, 2.0 * first.p_value), what)


def little(moments: PatternMoments, width: int) -> McarTest | str:
    """Little's test of columns of numbers, or why it was not made ("": there is nothing that it could test)."""
    from scipy.special import chdtrc

    if moments.parts is None:
        return "there are too many patterns for Little's test of the numbers"
    seen, normals = _observed(moments.parts, width)
    if len(normals) < 2 or seen.shape[1] < 2:
        return ""
    fitted = normal_by_em(seen, normals)
    if fitted is None:
        return "columns of numbers are collinear, or their rows too few, so Little's test of them was not made"
    mean, covariance = fitted
    statistic = 0.0
    for flags, part in zip(seen, normals, strict=True):
        off = part.mean[flags] - mean[flags]
        statistic += part.weight * float(off @ np.linalg.solve(covariance[np.ix_(flags, flags)], off))
    df = int(seen.sum()) - seen.shape[1]
    what = (
        f"Little's test of {seen.shape[1]} columns of numbers in {len(normals)} patterns: the mean of each pattern against a "
        "joint normal distribution fitted by EM; assumes normal columns, or patterns of many rows"
    )
    return McarTest(statistic, df, float(chdtrc(df, statistic)), what)


def _observed(parts: Mapping[bytes, Normal], width: int) -> tuple[npt.NDArray[np.bool_], list[Normal]]:
    """The patterns that observe something, in a fixed order: what they observe, and their moments, in units of each column's
    standard deviation from its mean. Constant columns are left out.
    """
    used = [key for key in sorted(parts) if parts[key].weight > 0]
    packed = np.frombuffer(b"".join(used), np.uint8).reshape(len(used), -1)
    seen = ~np.unpackbits(packed, axis=1).astype(bool)[:, :width]
    weight = np.array([parts[key].weight for key in used])
    means = np.array([parts[key].mean for key in used]).reshape(len(used), width)
    total = np.maximum(weight @ seen, 1e-300)
    centre = (weight @ (means * seen)) / total
    scatter = np.array([np.diag(parts[key].scatter) for key in used]).reshape(len(used), width)
    spread = np.sqrt((scatter.sum(axis=0) + weight @ (seen * (means - centre) ** 2)) / total)
    varies = np.flatnonzero(spread > 1e-12 * np.abs(centre))
    kept = np.flatnonzero(seen[:, varies].any(axis=1))
    unit = spread[varies]
    normals = [
        Normal(
            float(weight[i]),
            seen[i, varies] * (means[i, varies] - centre[varies]) / unit,
            parts[used[i]].scatter[np.ix_(varies, varies)] / np.outer(unit, unit),
        )
        for i in kept
    ]
    return seen[np.ix_(kept, varies)], normals


def normal_by_em(seen: npt.NDArray[np.bool_], normals: Sequence[Normal]) -> tuple[Array, Array] | None:
    """Mean and covariance of the joint normal that makes the observed cells most probable, by EM; None where it is singular.

    All patterns at once: with A the inverse of the covariance of what pattern j observes, zero elsewhere, K = ΣA is the
    regression of all columns on the observed ones, which it leaves as they are. Little & Rubin 2002, Statistical Analysis with
    Missing Data, 2nd ed., p. 223.
    """
    weight = np.array([n.weight for n in normals])
    means, scatters = np.array([n.mean for n in normals]), np.array([n.scatter for n in normals])
    both, hidden = seen[:, :, None] & seen[:, None, :], ~seen[:, :, None] & ~seen[:, None, :]
    rest = np.einsum("jp,pq->jpq", ~seen, np.eye(seen.shape[1]))
    mean, covariance = np.zeros(seen.shape[1]), np.eye(seen.shape[1])
    for _ in range(MAX_ITER):
        if np.linalg.eigvalsh(covariance)[0] < SINGULAR:
            return None
        K = covariance @ (np.linalg.inv(covariance * both + rest) * both)
        expected = mean + np.einsum("jpq,jq->jp", K, (means - mean) * seen)
        left = (covariance - K @ covariance) * hidden
        new_mean = weight @ expected / weight.sum()
        off = expected - new_mean
        scatter = K @ scatters @ K.transpose(0, 2, 1) + weight[:, None, None] * left
        new_covariance = (scatter.sum(axis=0) + (off * weight[:, None]).T @ off) / weight.sum()
        change = max(np.abs(new_mean - mean).max(), np.abs(new_covariance - covariance).max())
        mean, covariance = new_mean, (new_covariance + new_covariance.T) / 2.0
        if change < TOL:
            break
    return None if np.linalg.eigvalsh(covariance)[0] < SINGULAR else (mean, covariance)


def _finite_pairs(columns: Columns, tables: Mapping[str, Array]) -> Iterator[Pair]:
    """G² of the states of each finite column and whether each other column is missing."""
    from scipy.special import chdtrc

    for on, table in tables.items():
        total, missing = table[0], table[1:]
        share = missing.sum(axis=1) / max(float(total.sum()), 1e-300)
        for j, column in enumerate(columns.gappy):
            if column == on or not 0.0 < share[j] < 1.0:
                continue
            states = _pooled(total, missing[j], FEWEST / min(share[j], 1.0 - share[j]))
            if states is None:
                continue
            cells = np.stack([states[0] - states[1], states[1]])
            expected = np.outer([1.0 - share[j], share[j]], states[0])
            logs = np.log(np.maximum(cells, 1e-300) / expected)
            statistic, df = max(0.0, 2.0 * float((cells * logs).sum())), len(states[0]) - 1
            strength = float(np.sqrt(((cells - expected) ** 2 / expected).sum() / total.sum()))
            yield Pair(column, on, float(chdtrc(df, statistic)), min(1.0, strength), statistic, df)


def _pooled(total: Array, missing: Array, fewest: float) -> tuple[Array, Array] | None:
    """Weights by state, those of rare states together; None where fewer than two are left."""
    order = np.argsort(-total, kind="stable")
    common = order[total[order] >= fewest]
    rare = np.setdiff1d(order, common)
    pools = [[i] for i in common.tolist()]
    if total[rare].sum() >= fewest:
        pools.append(rare.tolist())
    elif pools:
        pools[-1] += rare.tolist()
    if len(pools) < 2:
        return None
    return np.array([total[p].sum() for p in pools]), np.array([missing[p].sum() for p in pools])


def _real_pairs(columns: Columns, sums: Array) -> Iterator[Pair]:
    """Welch's t of the ranks of each column of numbers where each other column is missing and where it is not."""
    from scipy.special import stdtr

    for j, column in enumerate(columns.gappy):
        n, first, second = np.stack([sums[0] - sums[1 + j], sums[1 + j]]).transpose(1, 0, 2)
        mean = first / np.maximum(n, 1e-300)
        scatter = np.maximum(second - first * mean, 0.0)
        for k, on in enumerate(columns.reals):
            weight, spread = n[:, k], scatter[:, k]
            if column == on or weight.min() < FEWEST or not spread.sum() > 1e-12 * weight.sum():
                continue
            error = spread / (weight * (weight - 1.0))
            step = float(mean[1, k] - mean[0, k])
            statistic = step / float(np.sqrt(error.sum()))
            df = float(error.sum() ** 2 / (error**2 / (weight - 1.0)).sum())
            between = step * step * float(weight[0] * weight[1] / weight.sum())
            strength = float(np.sqrt(between / (between + spread.sum())))
            yield Pair(column, on, float(2.0 * stdtr(df, -abs(statistic))), strength, statistic, df)
