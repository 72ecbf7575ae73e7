"""How often 95 % intervals after EM hold the truth, where 20 % of the cells are missing at random.

Each replication draws rows from a fixed network, takes cells out (by chance alone, or by what the row still shows), learns the
parameters by EM, and asks that network for every interval; nothing is fitted again. Intervals of answers are quantiles of 1,000
draws of normal coordinates, whose covariance is the inverse of the observed information; those of Rubin's rules are from
20 tables, imputed with the parameters drawn anew for each, in a fourth of the replications. Judged: 95 ± 1.5 % over 2,000
replications (the coverage of one interval is known to ± 0.5 points).

Arguments are another number of replications, and the stages to run: `python em_intervals.py 200 tied regressed`.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from scipy import stats

os.environ.setdefault("SUFFICE_COMPILE", "now")  # each replication is little work, and there are many

import suffice as sf

REPLICATIONS = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
LEVEL, ROWS, SHARE = 0.95, 500, 0.2
TABLES = 20

FINITE = sf.BayesNet(
    "a -> b; a -> c; b -> c; c -> d",
    {
        "a": [0.35, 0.65],
        "b": [[0.7, 0.3], [0.2, 0.8]],
        "c": [[[0.6, 0.3, 0.1], [0.3, 0.4, 0.3]], [[0.2, 0.5, 0.3], [0.1, 0.3, 0.6]]],
        "d": [[0.8, 0.2], [0.5, 0.5], [0.25, 0.75]],
    },
    {"a": ["no", "yes"], "b": ["no", "yes"], "c": ["low", "mid", "high"], "d": ["no", "yes"]},
)
MIXED = sf.BayesNet(
    "a -> x; a -> y; x -> y",
    {
        "a": [0.4, 0.6],
        "x": sf.Gaussian([1.0, 3.0], variance=[1.0, 2.0]),
        "y": sf.Gaussian([0.0, 1.0], {"x": [0.5, -0.3]}, variance=[0.5, 1.0]),
    },
    {"a": ["no", "yes"]},
)
TIED = sf.BayesNet(
    "a -> b -> c -> d",
    {"a": [0.35, 0.65], **{n: [[0.7, 0.3], [0.2, 0.8]] for n in "bcd"}},
    {n: ["no", "yes"] for n in "abcd"},
)
REGRESSED = sf.BayesNet(
    "a -> x; a -> y; x -> y",
    {
        "a": [0.4, 0.6],
        "x": sf.Gaussian([1.0, 3.0], variance=[1.0, 2.0]),
        "y": sf.regressions.Regression(sf.Logistic(), -1.0, {"a=yes": 0.8, "x": 0.5}),
    },
    {"a": ["no", "yes"], "y": ["no", "yes"]},
)
LEARNED: dict[int, dict[str, Any]] = {
    id(TIED): {"shared": [("b", "c", "d")]},
    id(REGRESSED): {"families": {"y": sf.Logistic()}},
}
"""What `em` is told of a network besides its graph."""
QUESTIONS: dict[str, tuple[sf.BayesNet, str, Any]] = {
    "p(c)": (FINITE, "c", {}),
    "p(c | a=yes)": (FINITE, "c", {"a": "yes"}),
    "p(a | d=yes)": (FINITE, "a", {"d": "yes"}),
    "p(b | a=no, c=high)": (FINITE, "b", {"a": "no", "c": "high"}),
    "p(a | x=2, y=1)": (MIXED, "a", {"x": 2.0, "y": 1.0}),
    "mean y": (MIXED, "y", {}),
    "mean y | a=yes": (MIXED, "y", {"a": "yes"}),
    "mean x | y=1": (MIXED, "x", {"y": 1.0}),
    "p(d)": (TIED, "d", {}),
    "p(d | a=no)": (TIED, "d", {"a": "no"}),
    "p(c | b=yes)": (TIED, "c", {"b": "yes"}),
    "p(a | d=yes), tied": (TIED, "a", {"d": "yes"}),
    "p(y | a=yes, x=2)": (REGRESSED, "y", {"a": "yes", "x": 2.0}),
    "p(y | a=no, x=0)": (REGRESSED, "y", {"a": "no", "x": 0.0}),
    "p(y | x=4)": (REGRESSED, "y", {"x": 4.0}),
    "p(a | x=2, y=yes)": (REGRESSED, "a", {"x": 2.0, "y": "yes"}),
}


def with_gaps(truth: sf.BayesNet, rng: np.random.Generator) -> dict[str, Any]:
    """Rows of which a fifth of the cells are missing: of the first column by chance, of the others as that one decides."""
    table = truth.sample(ROWS, seed=int(rng.integers(2**31)))
    columns = {n: np.array(table[n].to_pylist(), dtype=object) for n in table.column_names}
    first = columns["a"] == "yes"
    gone = rng.random(ROWS) < SHARE
    for name, cells in columns.items():
        share = SHARE if name == "a" else np.where(gone, SHARE, np.where(first, 0.5 * SHARE, 1.8 * SHARE))
        cells[gone if name == "a" else rng.random(ROWS) < share] = None
    return {n: list(cells) for n, cells in columns.items()}


def held(answer: Any, truth: Any) -> bool:
    """Whether the interval of one probability, the first, or of the mean holds the true one."""
    if isinstance(truth, sf.results.Distribution):
        return bool(answer.interval.lower[0] <= truth.probs[0] <= answer.interval.upper[0])
    return bool(answer.mean_interval.lower <= truth.mean <= answer.mean_interval.upper)


def rubin(bn: sf.BayesNet, rows: dict[str, Any], column: str, seed: int) -> tuple[float, float]:
    """The interval of a mean, or of the share of "yes", from imputed tables (Rubin 1987, p. 76; Barnard & Rubin 1999)."""
    tables = bn.impute(rows, draws=TABLES, seed=seed)
    cells = [np.array([x == "yes" if isinstance(x, str) else x for x in table[column]], float) for table in tables]
    estimates, within = np.array([c.mean() for c in cells]), np.mean([c.var(ddof=1) / len(c) for c in cells])
    between = estimates.var(ddof=1)
    total = within + (1 + 1 / TABLES) * between
    share = (1 + 1 / TABLES) * between / total
    complete = (ROWS - 1) / (ROWS + 2) * ROWS * (1 - share)
    df = 1 / (share**2 / (TABLES - 1) + 1 / complete)
    half = stats.t.ppf(0.5 + LEVEL / 2, df) * np.sqrt(total)
    return estimates.mean() - half, estimates.mean() + half


def learned(truth: sf.BayesNet, seed: int) -> tuple[dict[str, Any], sf.BayesNet]:
    """Rows with gaps, and what EM learns from them."""
    warnings.simplefilter("ignore", sf.SufficeNote)
    rows = with_gaps(truth, np.random.default_rng([17, len(truth), seed]))
    declared = {n: v for n, v in truth.variables.items() if isinstance(v, sf.Finite)}
    return rows, sf.em(truth.dag, sf.scan(rows, declared), **LEARNED.get(id(truth), {})).model


def finite(seed: int) -> dict[str, bool]:
    _, bn = learned(FINITE, seed)
    result = {name: asked(bn, name, seed) for name, (truth, _, _) in QUESTIONS.items() if truth is FINITE}
    every = bn.marginals({"d": "yes"}, interval=LEVEL, seed=seed)
    result["marginals: p(b | d=yes)"] = held(every["b"], FINITE.query("b", {"d": "yes"}))
    one = bn.predict_proba({"b": ["no"], "c": ["mid"]}, "d", interval=LEVEL, seed=seed)
    result["predict_proba: p(d | c=mid)"] = bool(one["no_lower"][0] <= 0.5 <= one["no_upper"][0])
    return result


def mixed(seed: int) -> dict[str, bool]:
    _, bn = learned(MIXED, seed)
    return {name: asked(bn, name, seed) for name, (truth, _, _) in QUESTIONS.items() if truth is MIXED}


def tied(seed: int) -> dict[str, bool]:
    _, bn = learned(TIED, seed)
    return {name: asked(bn, name, seed) for name, (truth, _, _) in QUESTIONS.items() if truth is TIED}


def regressed(seed: int) -> dict[str, bool]:
    _, bn = learned(REGRESSED, 20_000 + seed)
    result = {name: asked(bn, name, seed) for name, (truth, _, _) in QUESTIONS.items() if truth is REGRESSED}
    one = bn.predict_proba({"a": ["yes"], "x": [1.0]}, "y", interval=LEVEL, seed=seed)
    truth = REGRESSED.query("y", {"a": "yes", "x": 1.0})["no"]
    result["predict_proba: p(y | a=yes, x=1)"] = bool(one["no_lower"][0] <= truth <= one["no_upper"][0])
    return result


def imputed(seed: int) -> dict[str, bool]:
    result = {}
    for truth, column in ((FINITE, "b"), (MIXED, "y")):
        rows, bn = learned(truth, 10_000 + seed)
        low, high = rubin(bn, rows, column, seed)
        answer: Any = truth.query(column)
        result[f"Rubin: mean of {column}"] = bool(low <= (answer["yes"] if truth is FINITE else answer.mean) <= high)
    return result


def asked(bn: sf.BayesNet, name: str, seed: int) -> bool:
    truth, target, given = QUESTIONS[name]
    return held(bn.query(target, given, interval=LEVEL, seed=seed), truth.query(target, given))


def main() -> None:
    print(f"rows: {ROWS}, about {100 * SHARE:.0f} % of the cells missing at random; {100 * LEVEL:.0f} % intervals", flush=True)
    with ProcessPoolExecutor(2) as pool:
        stages = {
            finite: REPLICATIONS,
            mixed: REPLICATIONS,
            tied: REPLICATIONS,
            regressed: REPLICATIONS,
            imputed: REPLICATIONS // 4,
        }
        for stage, n in stages.items():
            if len(sys.argv) > 2 and stage.__name__ not in sys.argv[2:]:
                continue
            start = time.perf_counter()
            found = list(pool.map(stage, range(n), chunksize=10))
            print(f"{n:,} replications, {time.perf_counter() - start:.0f} s")
            for name in found[0]:
                print(f"  {name:30} {100 * float(np.mean([each[name] for each in found])):6.2f} %", flush=True)


if __name__ == "__main__":
    main()
