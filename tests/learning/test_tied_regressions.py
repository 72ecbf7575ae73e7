"""Regressions that several nodes share (`shared=`), and regressions after more rows (`bn.update`).

The reference numbers of tied regressions are statsmodels 0.14's, one GLM on the stacked rows:

    D = np.column_stack([np.ones(180), X, G == 1, G == 2])        # X, G, Y: the columns of the three nodes, one after another
    sm.GLM(Y, D, family=sm.families.Poisson()).fit(tol=1e-14)     # and of Y > 6, family=sm.families.Binomial()
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice import Count, Finite
from suffice.errors import FitError, SufficeNote

ROW = np.arange(60)
X = [np.sin(1.7 * ROW + j) for j in range(3)]
G = [(ROW * (j + 2)) % 3 for j in range(3)]
Y = [np.floor(2 + 2 * np.exp(0.5 * X[j]) + (ROW * 7 + j * 3) % 4 + (G[j] == 1)) for j in range(3)]
TIE = [("y0", "y1", "y2")]
GRAPH = "; ".join(f"x{j} -> y{j}; g{j} -> y{j}" for j in range(3))
POISSON = ([1.639759227202, 0.2132887651248, 0.1696545171429, 0.0005304138978278], -340.07791771209725)
POISSON_ERRORS = [0.044066553153, 0.045717164416, 0.07697778012, 0.082019815127]
BINOMIAL = ([-2.118664283233, 2.353197712704, 1.468904983614, -0.001448314168368], -70.81906591469016)


def rows(y: list[Any], kind: Any, missing: float = 0.0) -> Any:
    rng = np.random.default_rng(5)
    columns: dict[str, Any] = {}
    for j in range(3):
        gone = rng.random(60) < missing
        states = [None if lost else "abc"[k] for k, lost in zip(G[j], gone, strict=True)]
        columns |= {f"x{j}": X[j], f"g{j}": states, f"y{j}": y[j]}
    return sf.scan(columns, variables={v.name: v for j in range(3) for v in (kind(f"y{j}"), Finite(f"g{j}", list("abc")))})


def high(y: Any) -> Any:
    return [["yes" if v > 6 else "no" for v in column] for column in y]


def two(name: str) -> Finite:
    return Finite(name, ["no", "yes"])


def families(family: Any) -> dict[str, Any]:
    return {f"y{j}": family for j in range(3)}


def test_a_tied_poisson_regression_is_statsmodels_glm_on_stacked_rows():
    bn = sf.fit(GRAPH, rows(Y, Count), families=families(sf.regressions.PoissonLog()), shared=TIE)
    for j in range(3):
        np.testing.assert_allclose(bn[f"y{j}"].theta, POISSON[0], rtol=1e-9)
        np.testing.assert_allclose(bn[f"y{j}"].standard_errors, POISSON_ERRORS, rtol=1e-6)
    assert sum(bn[f"y{j}"].fitted.log_likelihood for j in range(3)) == pytest.approx(POISSON[1], abs=1e-8)
    parts = sf.score(GRAPH, rows(Y, Count), sf.AIC(), families=families(sf.regressions.PoissonLog()), shared=TIE, by_node=True)
    assert parts["y0"] == pytest.approx(POISSON[1] - 4, abs=1e-8)
    assert parts["y1"] == parts["y2"] == 0.0
    assert bn.n_parameters == 3 * (2 + 2) + 4


def test_a_tied_logistic_regression_is_statsmodels_glm_on_stacked_rows():
    bn = sf.fit(GRAPH, rows(high(Y), two), families=families(sf.Logistic()), shared=TIE)
    np.testing.assert_allclose(bn["y2"].theta, BINOMIAL[0], rtol=1e-7)
    assert bn.log_likelihood() == pytest.approx(bn.log_prob(rows(high(Y), two)).sum(), rel=1e-10)


@pytest.mark.parametrize(
    "family",
    [sf.regressions.PoissonLog(), sf.regressions.NegativeBinomialLog(), sf.regressions.Linear()],
    ids=lambda f: type(f).__name__,
)
def test_ties_in_em(family):
    """One coefficient vector in every iteration; with nothing missing that of the fit; an ascent."""
    kind = sf.Real if isinstance(family, sf.regressions.Linear) else Count
    y = [v + 3.0 * np.sin(ROW * ROW) for v in Y] if kind is sf.Real else [v + 9 * (ROW % 5 == 0) for v in Y]
    how: dict[str, Any] = {"families": families(family), "shared": TIE, "tol": 1e-12}
    run = sf.em(GRAPH, rows(y, kind), **how)
    np.testing.assert_allclose(run.model["y0"].theta, sf.fit(GRAPH, rows(y, kind), **{**how, "tol": None})["y0"].theta, atol=1e-6)
    gaps = sf.em(GRAPH, rows(y, kind, 0.3), **how)
    assert np.array_equal(gaps.model["y0"].theta, gaps.model["y2"].theta)
    assert all(b.objective >= a.objective - 1e-9 for a, b in pairwise(gaps.trace))


def test_ties_of_finite_regressions_from_statistics():
    """Where all is finite the tables of the nodes add: the same as from rows."""
    graph = "; ".join(f"g{j} -> y{j}" for j in range(3))
    how = {"families": families(sf.Logistic()), "shared": TIE}
    from_rows, statistics = sf.fit(graph, rows(high(Y), two), **how), sf.gather(rows(high(Y), two), graph)
    np.testing.assert_allclose(sf.fit(graph, statistics, **how)["y1"].theta, from_rows["y1"].theta, atol=1e-10)


def test_ties_of_other_families_are_refused():
    data = rows(Y, Count)
    with pytest.raises(
        FitError, match=r"'y0' and 'y1' are to share their parameters, but 'y0' has the family PoissonLog\(.* no family"
    ):
        sf.fit(GRAPH, data, families={"y0": sf.regressions.PoissonLog()}, shared=TIE)
    with pytest.raises(FitError, match=r"'y1' has the family NegativeBinomialLog"):
        sf.fit(
            GRAPH,
            data,
            families={**families(sf.regressions.PoissonLog()), "y1": sf.regressions.NegativeBinomialLog()},
            shared=TIE,
        )


def test_offsets_of_tied_nodes_are_their_own():
    data = sf.scan(
        {f"{n}{j}": c[j] for n, c in (("x", X), ("e", [0.1 * x for x in X[::-1]]), ("y", Y)) for j in range(3)},
        variables={f"y{j}": Count(f"y{j}") for j in range(3)},
    )
    graph = "; ".join(f"x{j} -> y{j}; e{j} -> y{j}" for j in range(3))
    bn = sf.fit(graph, data, families={f"y{j}": sf.regressions.PoissonLog(offset=f"e{j}") for j in range(3)}, shared=TIE)
    stacked = {n: np.concatenate([data.sample(60, 0).columns[f"{n}{j}"] for j in range(3)]) for n in "xey"}
    one = sf.fit(
        "x -> y; e -> y", sf.scan(stacked, variables={"y": Count("y")}), families={"y": sf.regressions.PoissonLog(offset="e")}
    )
    np.testing.assert_allclose(bn["y1"].theta, one["y"].theta, rtol=1e-10)


def halves(graph: str, columns: dict[str, Any], variables: Any, family: Any) -> tuple[Any, Any, Any]:
    """A fit to some rows, the same after the others, and the fit to all."""
    n = len(columns["y"])
    parts = [sf.scan({k: c[s] for k, c in columns.items()}, variables=variables) for s in (slice(0, n // 2), slice(n // 2, n))]
    first = sf.fit(graph, parts[0], families={"y": family})
    return first, parts[1], sf.fit(graph, sf.scan(columns, variables=variables), families={"y": family})


RNG = np.random.default_rng(2)
N = 400
A, H = RNG.normal(3.0, 1.0, N), RNG.integers(0, 3, N)
ETA = 0.4 * A - 1.0 + 0.5 * (H == 1)


@pytest.mark.parametrize(
    ("graph", "family", "y"),
    [
        ("a -> y; h -> y", sf.regressions.Linear(), ETA + RNG.normal(size=N)),
        ("a -> y; h -> y", sf.regressions.Linear(ridge=2.0), ETA + RNG.normal(size=N)),
        ("h -> y", sf.Logistic(), np.where(RNG.random(N) < 0.3 + 0.2 * (H == 1), "n", "y")),
        ("h -> y", sf.regressions.Probit(), np.where(RNG.random(N) < 0.3 + 0.2 * (H == 1), "n", "y")),
        (
            "h -> y",
            sf.regressions.ProportionalOdds(ridge=1.0),
            np.array(list("123"))[np.digitize(RNG.logistic(size=N) + (H == 1), [-1, 1])],
        ),
    ],
    ids=["linear", "ridge", "logistic", "probit", "ordinal"],
)
def test_an_update_is_exact_where_the_statistic_is_finite(graph, family, y):
    columns = {"a": A, "h": [str(h) for h in H], "y": y} if "a ->" in graph else {"h": [str(h) for h in H], "y": y}
    first, more, whole = halves(graph, columns, None, family)
    after = first.update(more)
    np.testing.assert_allclose(after["y"].theta, whole["y"].theta, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(after["y"].standard_errors, whole["y"].standard_errors, rtol=1e-7)
    assert after["y"].fitted.log_likelihood == pytest.approx(whole["y"].fitted.log_likelihood, abs=1e-8)
    assert after["y"].dispersion == pytest.approx(whole["y"].dispersion)
    np.testing.assert_allclose(after["h"].probs, whole["h"].probs)


@pytest.mark.parametrize(
    ("family", "y", "kind"),
    [
        (sf.Logistic(), np.where(RNG.random(N) < 1 / (1 + np.exp(-ETA)), "n", "y"), None),
        (sf.Logistic(ridge=1.0), np.where(RNG.random(N) < 1 / (1 + np.exp(-ETA)), "n", "y"), None),
        (sf.regressions.PoissonLog(), RNG.poisson(np.exp(ETA)), {"y": Count("y")}),
        (sf.regressions.NegativeBinomialLog(), RNG.poisson(np.exp(ETA) * RNG.gamma(2, 0.5, N)), {"y": Count("y")}),
        (sf.regressions.GammaLog(), RNG.gamma(2, np.exp(ETA)), None),
    ],
    ids=["logistic", "ridge", "poisson", "negative binomial", "gamma"],
)
def test_else_the_laplace_posterior_is_the_prior(family, y, kind):
    """Half the rows stand for themselves as a normal distribution: within a fifth of a standard error of the fit to all."""
    first, more, whole = halves("a -> y; h -> y", {"a": A, "h": [str(h) for h in H], "y": y}, kind, family)
    with pytest.warns(SufficeNote, match=r"'y' were fitted to are known by their normal approximation only \(Laplace\)"):
        after = first.update(more)
    assert np.all(np.abs(after["y"].theta - whole["y"].theta) < 0.2 * whole["y"].standard_errors.reshape(-1))
    np.testing.assert_allclose(after["y"].standard_errors, whole["y"].standard_errors, rtol=0.1)
    assert after["y"].fitted.weight == N
    assert after["y"].fitted.log_likelihood == pytest.approx(whole["y"].fitted.log_likelihood, abs=1.0)


def test_the_laplace_update_maximises_what_it_says():
    """Against scipy on the new rows' log-likelihood and the quadratic of the old ones."""
    from scipy.optimize import minimize

    y = RNG.poisson(np.exp(ETA)).astype(float)
    first, more, _ = halves("a -> y", {"a": A, "y": y}, {"y": Count("y")}, sf.regressions.PoissonLog())
    with pytest.warns(SufficeNote, match="Laplace"):
        after = first.update(more)["y"]
    old, a, n = first["y"], A[N // 2 :], y[N // 2 :]
    precision = np.linalg.inv(old.fitted.covariance)

    def loss(t: Any) -> float:
        eta = t[0] + t[1] * a
        return float(-(n * eta - np.exp(eta)).sum() + 0.5 * (t - old.theta) @ precision @ (t - old.theta))

    found = minimize(loss, old.theta, tol=1e-12, method="Nelder-Mead", options={"maxiter": 4000, "xatol": 1e-9, "fatol": 1e-11})
    np.testing.assert_allclose(after.theta, found.x, atol=1e-6)


def drawn(family: Any, parents: str, seed: int = 4, n: int = 240) -> tuple[dict[str, Any], Any]:
    """Rows of two nodes y0, y1 whose parents a (a number) and h (three states), those of `parents`, have the same effects."""
    rng, columns = np.random.default_rng(seed), {}
    kind = Count if type(family).__name__ in ("PoissonLog", "NegativeBinomialLog") else None
    for j in (0, 1):
        a, h = rng.normal(3.0, 1.0, n), rng.integers(0, 3, n)
        eta = (0.4 * a if "a" in parents else 1.0) - 1.0 + 0.5 * (h == 1)
        if kind:
            y = rng.poisson(np.exp(eta) * (rng.gamma(2, 0.5, n) if "Neg" in repr(family) else 1.0))
        else:
            y = rng.gamma(2, np.exp(eta)) if "Gamma" in repr(family) else eta + rng.logistic(size=n)
            y = y if "Linear" in repr(family) or "Gamma" in repr(family) else np.array(list("pqr"))[np.digitize(y, [0.0, 1.5])]
        if "Probit" in repr(family):
            y = np.where(y == "p", "n", "y")
        columns |= {f"{c}{j}": v for c, v in (("a", a), ("h", h.astype(str))) if c in parents} | {f"y{j}": y}
    return columns, kind


def stacked(columns: dict[str, Any]) -> dict[str, Any]:
    """The rows of both nodes, one below the other."""
    return {c: np.concatenate([columns[f"{c}0"], columns[f"{c}1"]]) for c in "ahy" if f"{c}0" in columns}


def tied_and_stacked(family: Any, parents: str) -> tuple[Any, ...]:
    """Fits to half of the rows, the other half, and fits to all: of two nodes that share a regression, and of one that has the
    rows of both."""
    columns, kind = drawn(family, parents)
    halves = [{c: v[s] for c, v in columns.items()} for s in (slice(0, 120), slice(120, None))]
    graph = "; ".join(f"{p}{j} -> y{j}" for j in (0, 1) for p in parents)
    how: dict[str, Any] = {"families": {"y0": family, "y1": family}, "shared": [("y0", "y1")]}

    def wide(rows: Any, **more: Any) -> Any:
        return sf.scan(rows, variables={f"y{j}": Count(f"y{j}") for j in (0, 1)} if kind else None, **more)

    def long(rows: Any) -> Any:
        return sf.scan(stacked(rows), variables={"y": Count("y")} if kind else None)

    one = sf.fit("; ".join(f"{p} -> y" for p in parents), long(halves[0]), families={"y": family})
    two, more, both = sf.fit(graph, wide(halves[0]), **how), wide(halves[1]), sf.fit(graph, wide(columns), **how)
    return two, more, both, one, long(halves[1]), wide({**columns, "w": np.full(240, 1e-12)}, weights="w")


EXACT = [
    (sf.regressions.Linear(), "ah"),
    (sf.regressions.Linear(ridge=2.0), "a"),
    (sf.Logistic(), "h"),
    (sf.regressions.Probit(), "h"),
    (sf.regressions.ProportionalOdds(ridge=1.0), "h"),
]


@pytest.mark.parametrize(("family", "parents"), EXACT, ids=lambda c: type(c).__name__ if not isinstance(c, str) else c)
def test_an_update_of_a_tie_is_exact_where_the_statistic_is_finite(family: Any, parents: str) -> None:
    first, more, whole, *_ = tied_and_stacked(family, parents)
    for after in (first.update(more), first.update(first.summary(more))):
        for n in ("y0", "y1"):
            np.testing.assert_allclose(after[n].theta, whole[n].theta, rtol=1e-9, atol=1e-9)
            np.testing.assert_allclose(after[n].standard_errors, whole[n].standard_errors, rtol=1e-7)
            assert after[n].fitted.log_likelihood == pytest.approx(whole[n].fitted.log_likelihood, abs=1e-7)
        assert after.shared == (("y0", "y1"),)
        assert after.log_likelihood() == pytest.approx(whole.log_likelihood(), abs=1e-7)


LAPLACE = [
    sf.Logistic(),
    sf.Logistic(ridge=1.0),
    sf.regressions.PoissonLog(),
    sf.regressions.NegativeBinomialLog(),
    sf.regressions.GammaLog(),
    sf.regressions.ProportionalOdds(),
]


@pytest.mark.parametrize("family", LAPLACE, ids=repr)
def test_else_a_tie_has_one_laplace_posterior(family: Any) -> None:
    """It is that of one node with the rows of both, to the last digits, and near the fit to all rows."""
    first, more, whole, one, below, _ = tied_and_stacked(family, "ah")
    with pytest.warns(SufficeNote, match=r"'y0', 'y1' were fitted to are known by their normal approximation only \(Laplace\)"):
        after = first.update(more)
    with pytest.warns(SufficeNote, match="Laplace"):
        single = one.update(below)["y"]
    for n in ("y0", "y1"):
        np.testing.assert_allclose(after[n].theta, single.theta, atol=1e-9)
        np.testing.assert_allclose(after[n].standard_errors, single.standard_errors, rtol=1e-7)
        assert np.all(np.abs(after[n].theta - whole[n].theta) < 0.2 * whole[n].standard_errors.reshape(-1))
    total = sum(after[n].fitted.log_likelihood for n in ("y0", "y1"))
    assert total == pytest.approx(single.fitted.log_likelihood, abs=1e-7)


@pytest.mark.parametrize(("family", "parents"), [EXACT[0], EXACT[2], *((f, "ah") for f in LAPLACE)], ids=str)
def test_no_rows_change_nothing(family: Any, parents: str) -> None:
    """Rows of all but no weight: without any, there is nothing to read."""
    first, *_, nothing = tied_and_stacked(family, parents)
    after = first.update(nothing)
    for n in ("y0", "y1"):
        np.testing.assert_allclose(after[n].theta, first[n].theta, atol=1e-8)
        np.testing.assert_allclose(after[n].standard_errors, first[n].standard_errors, rtol=1e-7)
        assert after[n].fitted.log_likelihood == pytest.approx(first[n].fitted.log_likelihood, abs=1e-7)


def test_linear_ties_from_statistics() -> None:
    """Moments of tied nodes add, and say all of a linear regression."""
    columns, _ = drawn(sf.regressions.Linear(), "ah")
    graph = "a0 -> y0; h0 -> y0; a1 -> y1; h1 -> y1"
    how: dict[str, Any] = {"families": dict.fromkeys(["y0", "y1"], sf.regressions.Linear()), "shared": [("y0", "y1")]}
    np.testing.assert_allclose(
        sf.fit(graph, sf.gather(columns, graph), **how)["y1"].theta, sf.fit(graph, columns, **how)["y1"].theta, rtol=1e-9
    )


def test_updates_that_are_refused():
    graph, columns = "a -> y", {"a": A, "y": np.where(RNG.random(N) < 0.5, "n", "y")}
    bn = sf.fit(graph, columns, families={"y": sf.Logistic()})
    with pytest.raises(FitError, match="'y' is a regression, whose likelihood is not a function of counts and moments"):
        bn.update(bn.summary(columns))
