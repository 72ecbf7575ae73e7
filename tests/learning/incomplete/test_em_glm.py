"""Regressions of every family in EM. The oracles know CPDs one at a time: they enumerate missing states row by row, and integrate
a missing number by a rule of many points about its top."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise, product
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice import Count, Finite, Real
from suffice.errors import FitError, SufficeNote

N = 160
RNG = np.random.default_rng(11)
Z, U = RNG.integers(0, 2, N), RNG.integers(0, 3, N)
X = RNG.normal(1.0 + Z, 1.5)
W = 0.5 * X + RNG.normal(size=N)
ETA = 0.3 + 0.8 * X - 1.0 * Z + 0.5 * (U == 1)
TRIALS = RNG.integers(3, 9, N).astype(float)
STATES = {"z": ("a", "b"), "u": ("p", "q", "r")}


def uniform(*size: int) -> Any:
    return RNG.random(size or N)


RESPONSES: dict[str, tuple[Any, Any, Any]] = {
    "logistic": (sf.Logistic(), (uniform() < 1 / (1 + np.exp(-ETA))).astype(int), Finite("y", ["no", "yes"])),
    "softmax": (sf.Logistic(), (uniform() < 0.4).astype(int) + (RNG.logistic(size=N) < ETA), Finite("y", ["1", "2", "3"])),
    "probit": (sf.regressions.Probit(), (RNG.normal(size=N) < 0.6 * ETA).astype(int), Finite("y", ["no", "yes"])),
    "ordinal": (
        sf.regressions.ProportionalOdds(),
        np.digitize(ETA + RNG.logistic(size=N), [0.0, 1.5]),
        Finite("y", ["1", "2", "3"]),
    ),
    "poisson": (sf.regressions.PoissonLog(), RNG.poisson(np.exp(0.4 * ETA + 2)).astype(float), Count("y")),
    "negative binomial": (
        sf.regressions.NegativeBinomialLog(),
        RNG.poisson(np.exp(0.4 * ETA + 2) * RNG.gamma(2, 0.5, N)) * 1.0,
        Count("y"),
    ),
    "gamma": (sf.regressions.GammaLog(), RNG.gamma(3, np.exp(0.3 * ETA) / 3), Real("y")),
    "inverse gamma": (sf.regressions.GammaInverse(), RNG.gamma(3, 1 / (0.2 * np.abs(ETA) + 1) / 3), Real("y")),
    "linear": (sf.regressions.Linear(), ETA + RNG.normal(size=N), Real("y")),
    "binomial": (
        sf.regressions.BinomialLogit(trials="t"),
        RNG.binomial(TRIALS.astype(int), 1 / (1 + np.exp(-0.5 * ETA))) * 1.0,
        Count("y"),
    ),
    "offset": (sf.regressions.Linear(offset="t"), ETA + TRIALS + RNG.normal(size=N), Real("y")),
}
EVERY = pytest.mark.parametrize("kind", RESPONSES)


def gaps(share: float, seed: int) -> Any:
    return np.random.default_rng(seed).random(N) < share


def rows_of(kind: str, missing: dict[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    """A graph, data, and its columns as codes and numbers, with the names of those that a row lacks."""
    _, y, v = RESPONSES[kind]
    columns: dict[str, Any] = {"z": Z, "u": U, "x": X, "w": W, "y": y}
    columns |= {"t": TRIALS} if kind in ("binomial", "offset") else {}
    table = {}
    for name, column in columns.items():
        states = STATES.get(name) or getattr(v, "states", None) if name in ("z", "u", "y") else None
        cells = [states[int(k)] for k in column] if states else [float(c) for c in column]
        table[name] = [None if lost else c for c, lost in zip(cells, missing.get(name, np.zeros(N, bool)), strict=True)]
    declared = {"y": v, **({"t": Count("t")} if kind == "binomial" else {})}
    graph = "z -> u; z -> x; x -> w; z -> y; u -> y; x -> y" + ("; t -> y" if "t" in columns else "")
    return graph, sf.scan(table, variables=declared), columns


def log_joint(bn: Any, row: dict[str, Any], lacking: frozenset[str]) -> Any:
    """ln p of rows whose leaves `lacking` say nothing; a cell that is no array is that of all rows."""
    n_rows = max(np.size(x) for x in row.values())
    columns = {n: np.full(n_rows, x) for n, x in row.items()}
    return sum(bn[n].log_prob(columns) for n in bn if n not in lacking)


NODES, WEIGHTS = np.polynomial.legendre.leggauss(60)


def integrated(bn: Any, here: dict[str, Any], leaves: frozenset[str]) -> list[float]:
    """e⁹ p of rows without x, row by row."""
    n_rows = len(here["x"])
    rows = [{n: np.broadcast_to(c, n_rows)[k] for n, c in here.items()} for k in range(n_rows)]
    return [integral(lambda x, row=row: np.exp(log_joint(bn, row | {"x": x}, leaves) + 9.0)) for row in rows]


def integral(density: Callable[[Any], Any]) -> float:
    """∫ density(x) dx from -14 to 17, by Gauss and Legendre's rule in pieces that are finer about its top."""
    grid = np.linspace(-12.0, 15.0, 109)
    top = grid[np.argmax(density(grid))]
    ends = np.unique([-14.0, *np.clip(top + np.array([-4.0, -1.5, -0.4, 0.0, 0.4, 1.5, 4.0]), -14.0, 17.0), 17.0])
    half = np.diff(ends)[:, None] / 2
    at = ends[:-1, None] + half * (1 + NODES)
    return float((half * WEIGHTS * density(at.ravel()).reshape(at.shape)).sum())


def enumerated(bn: Any, columns: Any, missing: dict[str, Any]) -> float:
    """Σ ln p(observed): missing z and u are summed out, missing w and y are leaves, a missing x is integrated."""
    patterns: dict[frozenset[str], list[int]] = {}
    for i in range(N):
        patterns.setdefault(frozenset(n for n, m in missing.items() if m[i]), []).append(i)
    total = 0.0
    for lost, rows in patterns.items():
        seen = {n: np.asarray(c)[rows] for n, c in columns.items()}
        leaves, p = lost & {"w", "y"}, np.zeros(len(rows))
        for z, u in product(range(2) if "z" in lost else [seen["z"]], range(3) if "u" in lost else [seen["u"]]):
            here = seen | {"z": z, "u": u}
            p += integrated(bn, here, leaves) if "x" in lost else np.exp(log_joint(bn, here, leaves) + 9.0)
        total += float(np.log(p).sum()) - 9.0 * len(rows)
    return total


def never_falls(run: Any, slack: float = 1e-10) -> bool:
    return all(b.objective >= a.objective - slack * (1 + abs(a.objective)) for a, b in pairwise(run.trace))


@EVERY
def test_missing_states_are_enumerated(kind):
    """Parents and responses missing: ln p is the enumerated one, no iteration lowers it, and the estimate is stationary."""
    missing = {"z": gaps(0.2, 1), "u": gaps(0.2, 2), "y": gaps(0.1, 3), "w": gaps(0.1, 4)}
    graph, data, columns = rows_of(kind, missing)
    run = sf.em(graph, data, families={"y": RESPONSES[kind][0]}, tol=1e-10)
    assert run.converged
    assert never_falls(run)
    assert run.log_likelihood == pytest.approx(enumerated(run.model, columns, missing), abs=1e-8)
    theta = run.model["y"].theta
    for i, j in ((0, 1e-4), (len(theta) - 1, 1e-4), (0, -1e-4)):
        moved = theta.copy()
        moved[i] += j
        cpd = run.model["y"]
        other = sf.BayesNet.of(
            run.model.dag,
            dict(run.model.variables),
            {n: run.model[n] for n in run.model} | {"y": cpd.family.cpd(cpd.child, cpd.parent_variables, moved, cpd.dispersion)},
        )
        assert enumerated(other, columns, missing) <= run.log_likelihood + 1e-8


@pytest.mark.parametrize("kind", ["logistic", "ordinal", "poisson", "gamma"])
def test_one_missing_number_is_integrated(kind):
    """x is missing in some rows, beside states: as good as adaptive quadrature to 1e-6 over all rows."""
    missing = {"x": gaps(0.06, 5), "z": gaps(0.1, 6), "y": gaps(0.05, 7), "w": gaps(0.1, 8)}
    graph, data, columns = rows_of(kind, missing)
    with pytest.warns(SufficeNote, match=r"missing numbers under regressions are integrated by .*33 points for one.*: 'x'"):
        run = sf.em(graph, data, families={"y": RESPONSES[kind][0]}, tol=1e-9)
    assert run.converged
    assert never_falls(run, 1e-8)
    assert run.log_likelihood == pytest.approx(enumerated(run.model, columns, missing), abs=2e-6)


@pytest.mark.parametrize("kind", ["linear", "offset"])
def test_missing_numbers_of_a_linear_regression_have_a_closed_form(kind):
    """No points, no note: the same ln p as by quadrature, and never falling."""
    missing = {"x": gaps(0.06, 5), "z": gaps(0.1, 6), "y": gaps(0.05, 7)}
    graph, data, columns = rows_of(kind, missing)
    run = sf.em(graph, data, families={"y": RESPONSES[kind][0]}, tol=1e-10)
    assert run.converged
    assert never_falls(run)
    assert run.log_likelihood == pytest.approx(enumerated(run.model, columns, missing), abs=1e-6)
    assert isinstance(run.model["y"], sf.results.RegressionCpd)


def test_complete_rows_are_fitted_as_by_irls():
    """Nothing missing in any regression: EM ends where IRLS does, for every family."""
    for kind, (family, _, _) in RESPONSES.items():
        graph, data, _ = rows_of(kind, {"w": gaps(0.2, 1)})
        run = sf.em(graph, data, families={"y": family}, tol=1e-12)
        cpd = sf.fit(graph, rows_of(kind, {})[1], families={"y": family})["y"]
        np.testing.assert_allclose(run.model["y"].theta, cpd.theta, rtol=1e-5, atol=1e-5, err_msg=kind)
        assert run.model["y"].dispersion == pytest.approx(cpd.dispersion, rel=1e-4), kind


def test_two_missing_numbers_together():
    """y hangs on x and v, both missing in some rows: two-dimensional points against nested sums on a fine grid."""
    rng = np.random.default_rng(3)
    x, v = rng.normal(size=60), rng.normal(size=60)
    y = rng.poisson(np.exp(0.5 + 0.6 * x - 0.4 * v)).astype(float)
    lost = rng.random(60) < 0.3
    rows = sf.scan({"x": np.where(lost, np.nan, x), "v": np.where(lost, np.nan, v), "y": y}, variables={"y": Count("y")})
    with pytest.warns(SufficeNote, match=r"15² for two"):
        run = sf.em("x -> v; x -> y; v -> y", rows, families={"y": sf.regressions.PoissonLog()}, tol=1e-8)
    bn, grid = run.model, np.linspace(-7.0, 7.0, 281)
    a, b = (g.reshape(-1) for g in np.meshgrid(grid, grid, indexing="ij"))
    total = 0.0
    for i in range(60):
        columns = {"x": a, "v": b} if lost[i] else {"x": x[i : i + 1], "v": v[i : i + 1]}
        columns["y"] = np.full(len(columns["x"]), y[i])
        p = np.exp(sum(bn[n].log_prob(columns) for n in bn)).sum()
        total += np.log(p * (grid[1] - grid[0]) ** 2 if lost[i] else p)
    assert run.log_likelihood == pytest.approx(total, abs=1e-6)


def test_many_missing_numbers_are_drawn_and_reproducible():
    rng = np.random.default_rng(4)
    columns = {f"x{i}": rng.normal(size=80) for i in range(4)}
    eta = sum(columns.values())
    y = np.where(rng.random(80) < 1 / (1 + np.exp(-eta)), "yes", "no")
    lost = rng.random(80) < 0.2
    table = {n: np.where(lost, np.nan, c) for n, c in columns.items()} | {"y": y}
    graph = "; ".join(f"{n} -> y" for n in columns)
    runs = []
    for _ in range(2):
        with pytest.warns(SufficeNote, match="2,000 seeded draws for more"):
            runs.append(sf.em(graph, table, families={"y": sf.Logistic(ridge=1)}, tol=1e-4))
    assert np.array_equal(runs[0].model["y"].theta, runs[1].model["y"].theta)
    complete = sf.fit(graph, {n: c[~lost] for n, c in table.items()}, families={"y": sf.Logistic(ridge=1)})
    np.testing.assert_allclose(runs[0].model["y"].theta, complete["y"].theta, atol=0.1)


@pytest.mark.parametrize("kind", ["poisson", "gamma", "negative binomial", "ordinal", "linear", "probit"])
def test_a_hidden_class_of_experts(kind):
    """A hidden class above a regression: starts that are told apart, an ascent, and SQUAREM comes to no less."""
    graph, data, _ = rows_of(kind, {})
    hidden = [Finite("class", ["1", "2"])]
    how = {"families": {"y": RESPONSES[kind][0]}, "hidden": hidden, "starts": 2, "seed": 1, "max_iter": 300}
    run = sf.em(graph + "; class -> y; class -> w", data, tol=1e-5, **how)
    assert never_falls(run)
    fast = sf.em(graph + "; class -> y; class -> w", data, tol=1e-7, method=sf.methods.Squarem(), **how)
    assert fast.log_likelihood >= run.log_likelihood - 0.05


def test_fit_sends_regressions_with_gaps_to_em():
    graph, data, _ = rows_of("poisson", {"z": gaps(0.2, 1), "x": gaps(0.1, 2)})
    with pytest.warns(SufficeNote):
        bn = sf.fit(graph, data, families={"y": sf.regressions.PoissonLog()})
    assert "by EM" in bn.fit_info


def test_what_has_no_objective_is_refused():
    graph, data, _ = rows_of("gamma", {"z": gaps(0.2, 1)})
    with pytest.raises(FitError, match=r"'y' has a dispersion, and the ridge of GammaLog is in its units"):
        sf.em(graph, data, families={"y": sf.regressions.GammaLog(ridge=1)})


def test_states_that_a_number_with_gaps_separates_are_refused_with_a_way_out() -> None:
    rows = {"x": [1.0, 2.0, 3.0, 4.0, None], "ill": list("aabba")}
    with pytest.raises(FitError, match=r"grow without end.*Logistic\(ridge=1\)"):
        sf.em("x -> ill", rows, families={"ill": sf.Logistic()})
    assert sf.em("x -> ill", rows, families={"ill": sf.Logistic(ridge=1)}).converged


def test_a_network_brings_its_regressions() -> None:
    graph, data, _ = rows_of("poisson", {"z": gaps(0.2, 1), "x": gaps(0.1, 2)})
    bn = sf.fit(graph, rows_of("poisson", {})[1], families={"y": sf.regressions.PoissonLog()})
    named = sf.em(bn.dag, data, families={"y": sf.regressions.PoissonLog()}).model["y"]
    assert sf.em(bn, data).model["y"].theta.tolist() == named.theta.tolist()
    by_mechanism = sf.em(bn, data, missing_depends_on={"z": ["y"], "x": ["y"]}).model["y"]
    assert by_mechanism.is_regression
    other = sf.regressions.PoissonLog(ridge=1)
    assert sf.em(bn, data, families={"y": other}).model["y"].family == other
