"""Steps travel: each learner gives the same bits where every step is pickled, and run as what comes out of the pickle."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import suffice as sf
import suffice.numerics.exponential as ef
from suffice.engines.data import Data
from suffice.errors import DataError
from tests.toy_engine import toy


class Travelling:
    """An engine that sends every step away before it is run."""

    def __init__(self, engine: Any, sent: list[str]) -> None:
        self.engine, self.sent = engine, sent

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)

    def _sent(self, step: Any) -> Any:
        self.sent.append(type(getattr(step, "function", step)).__name__)
        return pickle.loads(pickle.dumps(step))

    def declare(self, variables: Any) -> Travelling:
        return Travelling(self.engine.declare(variables), self.sent)

    def hold(self, names: Any, view: Any = None) -> Travelling:
        return Travelling(self.engine.hold(names, view), self.sent)

    def fold(self, step: Any, names: Any, **how: Any) -> Any:
        return self.engine.fold(self._sent(step), names, **how)

    def map(self, step: Any, names: Any, **how: Any) -> Any:
        return self.engine.map(self._sent(step), names, **how)

    def walk(self, step: Any, state: Any, names: Any, **how: Any) -> Any:
        return self.engine.walk(self._sent(step), state, names, **how)


def table(n: int = 40_000) -> dict[str, Any]:
    rng = np.random.default_rng(3)
    x, v, z = rng.normal(5, 2, n), rng.normal(size=n), rng.integers(0, 3, n)
    eta = 0.3 * (x - 5) - 0.4 * v + 0.5 * (z == 2)
    late = eta + rng.logistic(size=n)
    return {
        "x": x,
        "v": v,
        "z": np.array(list("abc"))[z],
        "two": np.where(late > 0, "yes", "no"),
        "three": np.array(["high", "low", "mid"])[np.digitize(late, [-1, 1])],
        "real": eta + rng.normal(size=n),
        "count": rng.poisson(np.exp(eta)),
        "spread": rng.poisson(np.exp(eta) * rng.gamma(2, 0.5, n)),
        "w": rng.integers(0, 3, n).astype(float),
    }


COUNTS = {n: sf.Count(n) for n in ("count", "spread")}
ORDERED = {"three": sf.Finite("three", ["high", "low", "mid"])}
PARENTS = ["x", "v", "z"]


def both(data: Data, learn: Any) -> tuple[Any, Any, list[str]]:
    """What is learned here, what is learned by steps that travel, and which did."""
    sent: list[str] = []
    return learn(data), learn(Data(Travelling(data.engine, sent), data.columns)), sent


def same(a: Any, b: Any) -> None:
    np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


REGRESSIONS = {
    "two": sf.Logistic(),
    "three": sf.Logistic(ridge=1),
    "real": sf.regressions.Linear(),
    "count": sf.regressions.PoissonLog(),
    "spread": sf.regressions.NegativeBinomialLog(),
}


@pytest.mark.parametrize(
    ("child", "family"), [*REGRESSIONS.items(), ("three", sf.regressions.ProportionalOdds()), ("two", sf.regressions.Probit())]
)
@pytest.mark.parametrize("weights", [None, "w"])
def test_regressions(child: str, family: Any, weights: str | None) -> None:
    rows = table()
    names = [*PARENTS, child, *([weights] if weights else [])]
    declared = {n: v for n, v in {**COUNTS, **ORDERED}.items() if n in names}
    data = sf.scan({n: rows[n] for n in names}, variables=declared, weights=weights)
    dag = "; ".join(f"{p} -> {child}" for p in PARENTS)
    here, there, sent = both(data, lambda d: sf.fit(dag, d, families={child: family})[child])
    same(here.coefficients, there.coefficients)
    same(here.fitted.covariance, there.fitted.covariance)
    assert here.fitted.log_likelihood == there.fitted.log_likelihood
    assert "Pass" in sent


def test_a_regression_of_many_rows_starts_from_a_sample() -> None:
    rows = table(140_000)
    data = sf.scan({n: rows[n] for n in (*PARENTS, "two")})
    here, there, sent = both(data, lambda d: sf.score("x -> two; v -> two; z -> two", d, families={"two": sf.Logistic()}))
    assert here == there
    assert "Stretches" in sent


@pytest.mark.parametrize("seed", [0, None])
@pytest.mark.parametrize("child", ["two", "three", "real", "count"])
def test_lms(child: str, seed: int | None) -> None:
    rows = table()
    data = sf.scan({n: rows[n] for n in (*PARENTS, child)}, variables={n: v for n, v in COUNTS.items() if n == child})
    family = REGRESSIONS[child] if child != "three" else sf.Logistic()
    here, there, sent = both(data, lambda d: sf.regressions.lms(child, d, parents=PARENTS, family=family, seed=seed, passes=2))
    same(here.model.coefficients, there.model.coefficients)
    assert here.log_likelihood == there.log_likelihood
    assert sent.count("LmsWalk") == 2


def test_rows_without_an_order_are_not_walked() -> None:
    rows = table(100)
    unordered = toy({n: rows[n] for n in (*PARENTS, "two")})
    with pytest.raises(DataError, match="have no order to be taken in"):
        sf.regressions.lms("two", unordered, parents=PARENTS)
    with pytest.raises(DataError, match="have no order to be taken in"):
        sf.regressions.lms("two", unordered.resample(0), parents=PARENTS)


def gappy(n: int = 40_000) -> Data:
    rng, rows = np.random.default_rng(4), table(n)
    cells = {k: np.where(rng.random(n) < 0.1, np.nan if c.dtype.kind in "if" else None, c) for k, c in rows.items() if k != "w"}
    return sf.scan({**cells, "two": rows["two"]}, variables=COUNTS)


def test_missingness() -> None:
    here, there, sent = both(gappy(), sf.missingness)
    assert here.to_dict() == there.to_dict()
    assert {"LookAtMissing", "Sample"} <= set(sent)


def test_naive_bayes_with_gaps() -> None:
    here, there, sent = both(gappy(), lambda d: sf.naive_bayes(d, "two"))
    same(here["x"].variance, there["x"].variance)
    same(here["z"].probs, there["z"].probs)
    same(here["count"].rates, there["count"].rates)
    assert "_Shown" in sent


@pytest.mark.parametrize(
    ("family", "column"),
    [
        (ef.Normal(), "x"),
        (ef.MultivariateNormal(), ["x", "v"]),
        (ef.Poisson(), "count"),
        (ef.Bernoulli(), "two"),
        (ef.Categorical(states=["c", "b", "a"]), "z"),
        (ef.Uniform(), "v"),
    ],
)
def test_gathering(family: Any, column: Any) -> None:
    data = sf.scan(table(), variables=COUNTS, weights="w")
    here, there, sent = both(data, lambda d: family.gather(d, column))
    assert sent == ["Gathering"]
    for name in ("lower", "upper") if isinstance(family, ef.Uniform) else ("count", "total", "log_base"):
        same(getattr(here, name), getattr(there, name))


def test_a_refused_row_is_named_by_its_place_wherever_it_was_read(tmp_path: Any) -> None:
    x = np.ones(40_000)
    x[30_000] = -1.0
    (tmp_path / "rows.csv").write_text("x\n" + "\n".join(f"{v:g}" for v in x))
    for rows, place in (({"x": x}, "row 30001"), (tmp_path / "rows.csv", "rows.csv, line 30002")):
        data = sf.scan(rows, variables={"x": sf.Real("x")})
        travelling: Any = Travelling(data.engine, [])
        with pytest.raises(DataError, match=rf"Exponential is about numbers from 0 up, and .*{place} is -1\.0"):
            ef.Exponential().gather(Data(travelling, data.columns), "x")


def test_cuts_are_those_of_the_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any engine that can sample finds the same cut points."""
    from suffice.engines.local import local
    from suffice.engines.views import sample

    for module in (sample, local):
        monkeypatch.setattr(module, "SAMPLE", 1000)
    x = table()["x"]
    some = sf.scan({"x": x}).sample(1000).columns["x"]
    with pytest.warns(sf.SufficeNote, match="random sample of 1,000"):
        cut = sf.scan({"x": x}, variables={"x": sf.Bins(4)}).schema["x"]
    assert cut == sf.scan({"x": some}, variables={"x": sf.Bins(4)}).schema["x"]


def test_a_search_with_regressions() -> None:
    columns = {n: c for n, c in table(20_000).items() if n in ("x", "v", "two", "count")}
    families = {"two": sf.Logistic(), "count": sf.regressions.PoissonLog()}
    data = sf.scan(columns, variables={"count": sf.Count("count")})
    here, there, sent = both(data, lambda rows: sf.search(rows, method=sf.HillClimb(max_parents=2), families=families))
    assert here.dag == there.dag
    same(list(here.losses.values()), list(there.losses.values()))
    assert {"BatchSums", "ProductSums", "SummarySums"} <= set(sent)
