"""Searches with regressions: seconds a family beside statsmodels and scikit-learn, and the optimum by enumeration.

    python benchmarks/glm_search.py

Columns of all kinds (numbers, two states, counts) are drawn from a graph with edges from numbers to states and counts. First all
29,281 graphs of five of them are enumerated, their families fitted one by one by statsmodels, and the best is compared with what
`Exact` finds. Then all families of up to three parents of ten columns are scored; of the peers some families drawn at random are
fitted, with the same columns, and the ratio is that of the processor time for a family.

abn, the system to beat in this field (additive Bayesian networks, in R), is not run here: Debian has no package of it, and CRAN
was not to be reached where this was written. Its optimum under the same score is that of the enumeration.
"""

from __future__ import annotations

import time
from itertools import combinations, product
from typing import Any

import numpy as np

import suffice as sf
from suffice.basis.limits import Budget
from suffice.structure.search import problem_of
from timing import line

FAMILIES = {"ill": sf.Logistic(), "old": sf.Logistic(), "visits": sf.regressions.PoissonLog()}
SOLVER = "newton-cholesky"
KINDS = {"visits": sf.Count("visits"), "events": sf.Count("events")}


def rows(n: int, seed: int = 0) -> dict[str, Any]:
    """Ten columns of a graph in which numbers are parents of states and of counts."""
    rng = np.random.default_rng(seed)
    age, dose = rng.normal(50, 10, n), rng.normal(2, 1, n)
    pressure = 120 + 0.6 * (age - 50) + rng.normal(0, 10, n)
    weight = 70 + 0.2 * (pressure - 120) + rng.normal(0, 12, n)
    old = rng.random(n) < 1 / (1 + np.exp(-(age - 60) / 6))
    ill = rng.random(n) < 1 / (1 + np.exp(-((pressure - 120) / 8 - 0.9 * (dose - 2))))
    visits = rng.poisson(np.exp(0.2 + 0.02 * (age - 50) + 0.7 * ill))
    events = rng.poisson(np.exp(-0.4 + 0.15 * visits))
    smoke = rng.random(n) < 0.3
    cost = 100 + 30 * visits + 20 * smoke + rng.normal(0, 25, n)
    words = {"old": old, "ill": ill, "smoke": smoke}
    numbers = {"age": age, "dose": dose, "pressure": pressure, "weight": weight, "cost": cost}
    return numbers | {"visits": visits, "events": events} | {k: np.array(["no", "yes"])[v.astype(int)] for k, v in words.items()}


def number(column: Any) -> Any:
    return np.asarray(column == "yes" if column.dtype.kind == "U" else column, dtype=float)


def by_statsmodels(data: dict[str, Any], child: str, parents: tuple[str, ...]) -> float:
    """The log-likelihood less its price."""
    import statsmodels.api as sm

    y, n = number(data[child]), len(data[child])
    X = np.column_stack([np.ones(n), *(number(data[p]) for p in parents)])
    price = 0.5 * np.log(n)
    if child in ("visits", "events"):
        return float(sm.GLM(y, X, family=sm.families.Poisson()).fit().llf - price * X.shape[1])
    if child in ("old", "ill"):
        return float(sm.GLM(y, X, family=sm.families.Binomial()).fit().llf - price * X.shape[1])
    states = [p for p in parents if data[p].dtype.kind == "U"]
    real = np.column_stack([np.ones(n), *(number(data[p]) for p in parents if p not in states)])
    total = 0.0
    for values in product((0.0, 1.0), repeat=len(states)):
        at = np.all([number(data[p]) == v for p, v in zip(states, values, strict=True)], axis=0) if states else np.ones(n, bool)
        total += float(sm.OLS(y[at], real[at]).fit().llf) - price * (real.shape[1] + 1)
    return total


def enumerated(data: dict[str, Any]) -> tuple[float, int, float]:
    """The best score of all graphs, their number, and the seconds of the fits."""
    names, start = list(data), time.process_time()
    sets = {x: [s for k in range(len(names)) for s in combinations([n for n in names if n != x], k)] for x in names}
    local = {(x, s): by_statsmodels(data, x, s) for x in names for s in sets[x]}
    spent = time.process_time() - start
    best, n_graphs = -np.inf, 0
    for chosen in product(*(sets[x] for x in names)):
        parents, left = dict(zip(names, chosen, strict=True)), set(names)
        while ready := [x for x in left if left.isdisjoint(parents[x])]:
            left -= set(ready)
        if not left:
            n_graphs += 1
            best = max(best, sum(local[x, parents[x]] for x in names))
    return best, n_graphs, spent


def optimum() -> None:
    data = {name: column for name, column in rows(1000).items() if name in ("age", "dose", "pressure", "ill", "visits")}
    best, n_graphs, peer = enumerated(data)
    start = time.process_time()
    own = {k: v for k, v in FAMILIES.items() if k in data}
    found = sf.search(sf.scan(data, variables={"visits": KINDS["visits"]}), method=sf.Exact(), families=own)
    line("five columns × 1,000 rows, 80 families and the proof", time.process_time() - start, statsmodels_families_only=peer)
    print(f"    best of {n_graphs:,} graphs {best:.6f}, found {found.score:.6f} ({found.score - best:+.1e})")
    print(f"    proved: {found.proved}; {found.dag}")


def each(n: int, some: int) -> None:
    """Seconds for a family of up to three parents."""
    from sklearn.linear_model import LogisticRegression, PoissonRegressor
    from threadpoolctl import threadpool_limits

    data, own = rows(n), FAMILIES | {"events": sf.regressions.PoissonLog()}
    problem = problem_of(sf.scan(data, variables=KINDS), None, None, Budget(threads=1), families=own)
    scores = problem.scores
    start = time.process_time()
    children = [problem.number[x] for x in own]
    free = range(problem.n)
    families = [(c, s) for k in range(4) for c in children for s in combinations([p for p in free if p != c], k)]
    values = dict(zip(families, scores.families(families), strict=True))
    ours = (time.process_time() - start) / len(families)
    rng = np.random.default_rng(1)
    chosen = [families[i] for i in rng.choice(len(families), some, replace=False)]
    names, off = problem.names, 0.0
    start = time.process_time()
    for c, s in chosen:
        with threadpool_limits(1):
            off = max(off, abs(by_statsmodels(data, names[c], tuple(names[p] for p in s)) - values[c, s]))
    stats = (time.process_time() - start) / some
    start = time.process_time()
    for c, s in chosen:
        X = np.column_stack([np.zeros(n), *(number(data[names[p]]) for p in s)])
        X = (X - X.mean(0)) / np.maximum(X.std(0), 1e-9)
        y = number(data[names[c]])
        states = names[c] in ("old", "ill")
        model = LogisticRegression(C=1e9, solver=SOLVER) if states else PoissonRegressor(alpha=0, solver=SOLVER)
        with threadpool_limits(1):
            model.fit(X, y)
    sklearn = (time.process_time() - start) / some
    what = f"a family, {len(families):,} of them × {n:,} rows, {scores.n_passes} passes in all"  # type: ignore[attr-defined]
    line(what, ours, statsmodels=stats, scikit_learn=sklearn)
    print(f"    scores of {some} families differ from statsmodels' by at most {off:.1e}")


def main() -> None:
    warm = sf.scan(rows(200), variables=KINDS)
    sf.search(warm, families=FAMILIES | {"events": sf.regressions.PoissonLog()}, method=sf.HillClimb())  # kernels are loaded
    optimum()
    each(500, 60)
    each(5_000, 60)
    each(50_000, 20)
    print("abn was not run: it has no Debian package, and CRAN was not reachable")


if __name__ == "__main__":
    main()
