"""LMS: near to IRLS after a pass, nearer after several; a run that goes on is a longer run; what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import suffice as sf
from suffice.basis.variables import Count, Finite
from suffice.engines.scan import scan
from suffice.errors import SufficeError
from suffice.learning.complete.irls import fit_regression
from suffice.learning.complete.lms import lms
from suffice.numerics.kernels.regressions.regression import implicit_step

COUNTED = {n: Count(n) for n in ("count", "successes", "trials")}
CASES = {
    "linear": (sf.regressions.Linear(), []),
    "two": (sf.Logistic(), []),
    "four": (sf.Logistic(), []),
    "count": (sf.regressions.PoissonLog(offset="o"), ["o"]),
    "successes": (sf.regressions.BinomialLogit(trials="trials"), ["trials"]),
}


def rows(n: int = 20_000, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    x, v, z = rng.normal(1e4, 50, n), rng.normal(0, 1e-3, n), rng.integers(0, 3, n)
    eta = 0.01 * (x - 1e4) + 300 * v - 0.5 * (z == 2)
    o, trials = rng.normal(0, 0.3, n), rng.integers(0, 6, n)
    return {
        "x": x,
        "v": v,
        "z": np.array(list("abc"))[z],
        "o": o,
        "trials": trials,
        "linear": eta + rng.normal(0, 2, n),
        "two": np.where(rng.random(n) < expit(eta), "yes", "no"),
        "four": np.array(list("pqrs"))[np.argmax(np.outer([0, 1, -1, 0.5], eta).T + rng.gumbel(size=(n, 4)), axis=1)],
        "count": rng.poisson(np.exp(0.5 + eta + o)),
        "successes": rng.binomial(trials, expit(eta)),
    }


def opened(table: dict[str, Any], name: str, **options: Any) -> tuple[Any, list[str]]:
    parents = ["x", "v", "z", *CASES[name][1]]
    declared = {n: v for n, v in COUNTED.items() if n in (name, *parents)}
    return scan({n: table[n] for n in (*parents, name)}, variables=declared, **options), parents


def away(cpd: Any, best: Any) -> float:
    """The distance from the estimate of largest likelihood, in standard errors, on average over the parameters."""
    # at the mean of the columns, where the intercept and the slopes say different things
    d = np.column_stack([np.ravel(cpd.intercept - best.intercept), np.atleast_2d(cpd.coefficients - best.coefficients)])
    return float(np.sqrt(np.ravel(d) @ np.linalg.solve(best.fitted.covariance, np.ravel(d)) / d.size))


@pytest.mark.parametrize("name", CASES)
def test_near_to_irls(name):
    """Within a standard error after one pass, a quarter after ten. A row is seen by 300 ns of work, whatever its rate."""
    data, parents = opened(rows(), name)
    best = fit_regression(data.schema[name], [data.schema[p] for p in parents], data, CASES[name][0])
    one, ten = (lms(name, data, parents=parents, family=CASES[name][0], passes=passes) for passes in (1, 10))
    assert one.converged
    assert away(one.model, best) < 1.0
    assert away(ten.model, best) < 0.25
    assert len(ten.trace) == 10
    assert best.fitted.log_likelihood >= ten.log_likelihood > best.fitted.log_likelihood - 1.0
    if name == "linear":
        assert ten.model.dispersion == pytest.approx(best.dispersion, rel=1e-3)


@pytest.mark.parametrize("name", CASES)
def test_going_on_is_a_longer_run(name):
    """Rows as they come: 20,000 at once, or 7,000 and 13,000 more, to the last bit."""
    table = rows()
    family, columns = CASES[name][0], opened(table, name)[1]
    whole = lms(name, opened(table, name)[0], parents=columns, family=family, seed=None)
    parts = [opened({n: c[r] for n, c in table.items()}, name)[0] for r in (slice(0, 7000), slice(7000, None))]
    first = lms(name, parts[0], parents=columns, family=family, seed=None)
    both = lms(name, parts[1], parents=columns, family=family, seed=None, start=first)
    np.testing.assert_array_equal(both.model.coefficients, whole.model.coefficients)
    np.testing.assert_array_equal(both.model.intercept, whole.model.intercept)
    assert both.state.seen == 20_000
    again = lms(name, parts[0], parents=columns, family=family, seed=None)
    np.testing.assert_array_equal(first.model.coefficients, again.model.coefficients)


def test_going_on_from_a_fit():
    """New rows move an estimate of 20,000 old ones as far as 2,000 of 22,000 may."""
    table, new = rows(), rows(2000, seed=9)
    data, parents = opened(table, "two")
    old = fit_regression(data.schema["two"], [data.schema[p] for p in parents], data, sf.Logistic())
    both = opened({n: np.concatenate([table[n], new[n]]) for n in table}, "two")[0]
    best = fit_regression(both.schema["two"], [both.schema[p] for p in parents], both, sf.Logistic())
    run = lms("two", opened(new, "two")[0], parents=parents, start=old)
    assert away(run.model, best) < 0.5
    assert run.state.seen == 22_000


def test_sorted_rows_are_mixed(tmp_path):
    """A file with all of one state first, read by blocks that never are in memory together."""
    import pandas as pd

    table = rows()
    order = np.argsort(table["two"], kind="stable")
    pd.DataFrame({n: table[n][order] for n in ("x", "v", "z", "two")}).to_csv(tmp_path / "rows.csv", index=False)
    data = scan(tmp_path / "rows.csv", memory_limit=0)
    best = fit_regression(data.schema["two"], [data.schema[p] for p in "xvz"], data, sf.Logistic())
    mixed, as_is = (lms("two", data, parents=["x", "v", "z"], seed=s) for s in (0, None))
    assert away(mixed.model, best) < 1.5
    assert away(as_is.model, best) > 5
    assert not as_is.converged
    np.testing.assert_array_equal(mixed.model.coefficients, lms("two", data, parents=["x", "v", "z"], seed=0).model.coefficients)


def test_weights():
    """Rows of weight 0 are not there; a weight makes a step longer."""
    table = rows(6000)
    half = np.arange(6000) % 2 == 0
    data, parents = opened({**table, "w": 1.0 * half}, "two")
    weighted = scan({**{n: table[n] for n in (*parents, "two")}, "w": 1.0 * half}, weights="w")
    some, _ = opened({n: c[half] for n, c in table.items()}, "two")
    assert lms("two", weighted, parents=parents, seed=None).state.seen == 3000
    heavy = scan({**{n: table[n] for n in (*parents, "two")}, "w": np.full(6000, 50.0)}, weights="w")
    best = fit_regression(data.schema["two"], [data.schema[p] for p in parents], data, sf.Logistic())
    assert away(lms("two", heavy, parents=parents, passes=20).model, best) < 1.0
    best = fit_regression(some.schema["two"], [some.schema[p] for p in parents], some, sf.Logistic())
    assert away(lms("two", weighted, parents=parents, passes=5).model, best) < 1.5


@pytest.mark.parametrize("response", [0, 1, 3])
def test_steps_end_where_they_should(response):
    """ξ = c (y − μ(η + ξ)), however long the step and whatever the residual."""
    means = {0: lambda e: e, 1: lambda e: 5 * expit(e), 3: np.exp}
    for eta in (-30.0, -1.0, 0.0, 2.0, 30.0):
        for y in (0.0, 1.0, 5.0) if response < 3 else (0.0, 1.0, 1000.0):
            for c in (1e-6, 0.1, 1.0, 1e6):
                xi = implicit_step(eta, y, 5.0, c, response)
                miss = xi - c * (y - means[response](eta + xi))
                assert abs(miss) <= 1e-6 * (1 + abs(xi)) * (1 + c * means[3](min(eta + xi, 700)) if response == 3 else 1 + c)


@pytest.mark.parametrize("rate", [0.001, 1e3])
def test_any_rate_is_stable(rate):
    data, parents = opened(rows(4000), "count")
    run = lms("count", data, parents=parents, family=sf.regressions.PoissonLog(offset="o"), rate=rate)
    assert np.isfinite(run.model.coefficients).all()
    assert not run.converged


def test_no_parents_and_a_constant_column():
    table = rows(3000)
    run = lms("linear", {"linear": table["linear"]}, parents=[], family=sf.regressions.Linear())
    assert run.model.intercept == pytest.approx(table["linear"].mean(), abs=0.1)
    assert run.model.dispersion == pytest.approx(table["linear"].var(), rel=0.01)
    flat = lms("linear", {"linear": table["linear"], "x": np.full(3000, 7.0)}, parents=["x"], family=sf.regressions.Linear())
    assert np.isfinite(flat.model.coefficients).all()


TABLE = {n: c for n, c in rows(50).items() if n in ("x", "v", "two", "linear")}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lms("tow", TABLE, parents=["x"]), "no column 'tow'; did you mean 'two'"),
        (lambda: lms("two", TABLE, parents=["y"]), "no column 'y'"),
        (lambda: lms("two", TABLE, parents="x"), r"parents is a list of names, not 'x': write \['x'\]"),
        (lambda: lms("two", TABLE, parents=["two"]), "different columns"),
        (lambda: lms("two", TABLE, parents=["x"], family=sf.regressions.Probit()), "lms learns Linear.*, not Probit"),
        (lambda: lms("two", TABLE, parents=["x"], family=sf.Logistic), "not <class"),
        (lambda: lms("two", TABLE, parents=["x"], family=sf.Logistic(ridge=1)), "lms has no ridge"),
        (lambda: lms("linear", TABLE, parents=["x"], family=sf.Logistic()), "'linear' is Real"),
        (lambda: lms("linear", TABLE, parents=["x"], family=sf.regressions.PoissonLog()), "family of counts"),
        (lambda: lms("two", TABLE, parents=["x"], passes=0), "passes is a whole number"),
        (lambda: lms("two", TABLE, parents=["x"], rate=-1.0), "rate is a number above 0"),
        (lambda: lms("two", TABLE, parents=["x"], seed=-1), "seed is a whole number"),
        (lambda: lms("two", TABLE, parents=["x"], start="run"), "start is a run of lms or a regression"),
        (lambda: lms("two", {**TABLE, "x": np.where(TABLE["v"] > 0, np.nan, 1.0)}, parents=["x"]), "missing cells"),
        (lambda: lms("two", {n: c[:0] for n, c in TABLE.items()}, parents=["x"]), "no rows"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(SufficeError, match=message):
        call()


def test_another_start_is_refused():
    run = lms("two", TABLE, parents=["x"])
    with pytest.raises(SufficeError, match=r"start is a Logistic of .* on 'x', which is not what is to be learned"):
        lms("two", TABLE, parents=["x", "v"], start=run)
    with pytest.raises(SufficeError, match="which is not what is to be learned"):
        lms("two", scan(TABLE, variables={"two": Finite("two", ["yes", "no"])}), parents=["x"], start=run)


def test_the_family_is_that_of_the_column():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    rows = {"x": x, "y": 2 * x + rng.normal(size=2000), "s": np.where(x > 0, "a", "b"), "n": rng.poisson(np.exp(x / 2))}
    data = sf.scan(rows, variables={"n": sf.Count("n")})
    assert type(sf.regressions.lms("y", data, parents=["x"]).model.family) is sf.regressions.Linear
    assert type(sf.regressions.lms("n", data, parents=["x"]).model.family) is sf.regressions.PoissonLog
    assert type(sf.regressions.lms("s", data, parents=["y"]).model.family) is sf.Logistic
    assert sf.regressions.lms("y", data, parents=["x"]).model.coefficients == pytest.approx([2.0], abs=0.1)
