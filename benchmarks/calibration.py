"""Calibration: parameters are drawn from the prior, rows from the parameters, and 95 % intervals should hold the truth in 95 %.

Each of 2,000 replications draws a network (ASIA's graph, or a random one of 5 nodes with 2 to 4 states), fits it with the prior
that its parameters came from, and looks at one cell of a table and one answer, both chosen at random: so all 2,000 are
independent. The coverage of 2,000 is known to ± 0.5 points, so one line in twenty-five lies outside 94–96 % by chance. Judged
are 2,000 replications that take the numbers of rows in turn, and all of them together, known to ± 0.3. The ends of an
answer's interval are quantiles of 1,000 draws, which hold 94.8 % by themselves (the k-th of n draws
lies at k/(n + 1), and the quantiles are taken at 25.975 and 975.025).

Reported, not judged, are regressions, whose posterior is only approximately normal, and the coverage at fixed truths, which
depends on the truth. An argument is another number of replications: `python calibration.py 10000`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any

import numpy as np

import suffice as sf
import timing  # noqa: F401 - it silences notes

REPLICATIONS = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000
LEVEL, ROWS, DRAWS = 0.95, (5, 50, 500), 1_000
PRIORS = (sf.BDeu(10), sf.Dirichlet(1), sf.BDeu(4), sf.Dirichlet(0.5))
NORMAL = sf.NormalInverseGamma(count=2.0, df=5.0, mean=1.0, variance=3.0, residual=0.4)
RATE = sf.priors.Gamma(2.0, 0.5)

Held = dict[str, bool]


def random_graph(rng: np.random.Generator) -> tuple[sf.Dag, dict[str, Any]]:
    names = [f"x{i}" for i in range(5)]
    variables = {n: sf.Finite(n, [f"s{k}" for k in range(rng.integers(2, 5))]) for n in names}
    edges = [(str(p), c) for i, c in enumerate(names) for p in rng.choice(names[:i], min(i, int(rng.integers(3))), replace=False)]
    return sf.Dag(edges, nodes=names), variables


def drawn_tables(dag: sf.Dag, variables: dict[str, Any], prior: Any, rng: np.random.Generator) -> sf.BayesNet:
    """A network whose tables are drawn from the prior."""
    tables = {}
    for node in dag.nodes:
        alpha = prior.imagine(variables[node], [variables[p] for p in dag.parents(node)]).dense()
        gammas = rng.standard_gamma(alpha)
        tables[node] = gammas / gammas.sum(-1, keepdims=True)
    return sf.BayesNet(dag, tables, variables)


def refitted(truth: sf.BayesNet, n_rows: int, prior: Any, rng: np.random.Generator) -> sf.BayesNet:
    rows = truth.sample(n_rows, seed=int(rng.integers(2**31)))
    return sf.fit(truth.dag, sf.scan(rows, variables=dict(truth.variables)), prior=prior)


def held(interval: Any, value: Any, at: Any) -> bool:
    return bool(interval.lower[at] <= value[at] <= interval.upper[at])


def tables(n_rows: int, replication: int) -> Held:
    """One cell of a table, and one answer."""
    rng = np.random.default_rng([1, n_rows, replication])
    prior = PRIORS[replication % len(PRIORS)]
    asia = sf.load("asia")
    dag, variables = (asia.dag, dict(asia.variables)) if replication % len(PRIORS) == 0 else random_graph(rng)
    truth = drawn_tables(dag, variables, prior, rng)
    return asked(truth, refitted(truth, n_rows, prior, rng), rng)


def asked(truth: sf.BayesNet, bn: sf.BayesNet, rng: np.random.Generator) -> Held:
    """Whether the intervals of a cell and of an answer hold the truth; cells and evidence that cannot be are not asked for."""
    node = str(rng.choice(truth.dag.nodes))
    cells = np.argwhere((truth[node].probs > 0) & (truth[node].probs < 1))
    cell = tuple(rng.choice(cells)) if len(cells) else None
    target, *others = map(str, rng.permutation(truth.dag.nodes)[: 1 + rng.integers(3)])
    given = {n: str(rng.choice(truth.variables[n].states)) for n in others}
    if truth.log_prob_of(given) == -np.inf:
        given = {}
    answer = bn.query(target, given, interval=LEVEL, draws=DRAWS, seed=int(rng.integers(2**31)))
    state = int(rng.integers(len(answer.probs)))
    result = {"answer": held(answer.interval, truth.query(target, given).probs, state)}
    if cell is not None:
        result["cell"] = held(bn[node].interval(LEVEL), truth[node].probs, cell)
    return result


def numbers(n_rows: int, replication: int) -> Held:
    """A regression in each of two groups, and a count: u -> y <- x, u -> n."""
    rng = np.random.default_rng([2, n_rows, replication])
    u, x, y, n = sf.Finite("u", ["a", "b"]), sf.Real("x"), sf.Real("y"), sf.Count("n")
    cpds = {"u": [0.5, 0.5], "x": drawn_normal(x, [], (), rng), "y": drawn_normal(y, [u, x], (2,), rng)}
    cpds["n"] = sf.regressions.Rates(rng.gamma(RATE.shape, 1.0 / RATE.rate, 2))
    truth = sf.BayesNet("u -> y; x -> y; u -> n", cpds, [u, x, y, n])
    bn = refitted(truth, n_rows, (sf.Dirichlet(1), NORMAL, RATE), rng)
    at = int(rng.integers(2))
    ends = bn["y"].interval(LEVEL)
    found = {k: held(ends[k], getattr(truth["y"], k), (at, 0) if k == "coefficients" else at) for k in ends}
    answer = bn.query("y", {"u": "ab"[at]}, interval=LEVEL, draws=DRAWS, seed=int(rng.integers(2**31)))
    low, high = answer.mean_interval
    mean = bool(low <= truth.query("y", {"u": "ab"[at]}).mean <= high)
    return {**found, "rate": held(bn["n"].interval(LEVEL), truth["n"].rates, at), "mean of an answer": mean}


def drawn_normal(child: Any, parents: list[Any], shape: tuple[int, ...], rng: np.random.Generator) -> sf.Gaussian:
    """v = s/χ²(ν), b | v ~ Normal(0, v/S_xx), and at the imagined mean the child is Normal(mean, v/κ)."""
    everywhere = NORMAL.imagine(child, parents).background
    kappa, nu, mean, scatter = everywhere.count[0], everywhere.df[0], everywhere.mean[0], everywhere.scatter[0]
    v = scatter[-1, -1] / rng.chisquare(nu, shape)
    level = mean[-1] + np.sqrt(v / kappa) * rng.standard_normal(shape)
    if len(mean) == 1:
        return sf.Gaussian(level, variance=v)
    b = np.sqrt(v / scatter[0, 0]) * rng.standard_normal(shape)
    return sf.Gaussian(level - b * mean[0], {"x": b}, v)


def regressions(n_rows: int, replication: int) -> Held:
    """A logistic regression, its coefficients drawn from the prior of its ridge; the intercept, whose prior is flat, is 0."""
    rng = np.random.default_rng([4, n_rows, replication])
    x, b = rng.standard_normal((2, n_rows)), rng.standard_normal(2)
    y = rng.random(n_rows) < 1.0 / (1.0 + np.exp(-b @ x))
    rows = {"x1": x[0], "x2": x[1], "y": np.where(y, "yes", "no")}
    data = sf.scan(rows, variables={"y": sf.Finite("y", ["no", "yes"])})
    ends = sf.fit("x1 -> y; x2 -> y", data, families={"y": sf.Logistic(ridge=1.0)})["y"].interval(LEVEL)
    at = int(rng.integers(2))
    return {"logistic coefficient": bool(ends.lower[0, 1 + at] <= b[at] <= ends.upper[0, 1 + at])}


def at_fixed_truth(name: str, n_rows: int, replication: int) -> Held:
    truth = sf.load(name)
    rng = np.random.default_rng([3, n_rows, replication])
    return asked(truth, refitted(truth, n_rows, sf.BDeu(10), rng), rng)


def report(what: str, replicate: Callable[[int, int], Held], rows: Iterable[int], *, judged: bool = True) -> None:
    """The coverage for each number of rows; for 2,000 replications with the numbers of rows in turn; for all together."""
    start = time.perf_counter()
    together: dict[str, list[bool]] = {}
    in_turn: dict[str, list[bool]] = {}
    sizes = list(rows)
    with ProcessPoolExecutor(2) as pool:
        for k, n in enumerate(sizes):
            results = list(pool.map(partial(replicate, n), range(REPLICATIONS), chunksize=50))
            for kind in dict.fromkeys(k for r in results for k in r):
                holds = [r[kind] for r in results if kind in r]
                together.setdefault(kind, []).extend(holds)
                in_turn.setdefault(kind, []).extend(r[kind] for r in results[k :: len(sizes)] if kind in r)
                line(f"{what}, {n} rows, {kind}", holds)
    for name, found in (("in turn", in_turn), ("all together", together)) if judged else ():
        for kind, holds in found.items():
            line(f"{what}, {name}, {kind}", holds, judged=True)
    print(f"{what}: {time.perf_counter() - start:.0f} s\n", flush=True)


def line(what: str, holds: list[bool], *, judged: bool = False) -> None:
    share = np.mean(holds)
    error = np.sqrt(share * (1 - share) / len(holds))
    goal = f"  (94–96 %: {'met' if 0.94 <= share <= 0.96 else 'MISSED'})" if judged else ""
    print(f"{what:<50} {100 * share:6.2f} % ± {100 * error:.2f} of {len(holds):,}{goal}", flush=True)


def main() -> None:
    report("tables", tables, ROWS)
    report("numbers", numbers, ROWS)
    report("regressions, normal approximation", regressions, (20, 50, 500), judged=False)
    for name in ("asia", "cancer"):
        report(f"{name} itself, BDeu(10)", partial(at_fixed_truth, name), (50, 500, 5_000), judged=False)


if __name__ == "__main__":
    main()
