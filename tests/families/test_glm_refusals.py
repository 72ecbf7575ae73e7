"""Regressions that have no estimate, and columns that they cannot have: one sentence that names them, and a way out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.basis.variables import Count, Finite, Real
from suffice.engines.scan import scan
from suffice.errors import ModelError, SufficeError, SufficeNote, TooLarge
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.learning.complete.irls import fit_regression

RNG = np.random.default_rng(0)
N = 80
X, V = RNG.normal(size=N), RNG.normal(size=N)
Z = np.array(list("abc"))[RNG.integers(0, 3, N)]
TWO = np.array(list("pq"))[RNG.integers(0, 2, N)]
COUNTS, TRIALS = RNG.poisson(2, N), RNG.integers(1, 9, N)
SUCCESSES, POSITIVE = RNG.binomial(TRIALS, 0.4), np.exp(V)
BINARY = {"y": Finite("y", ["p", "q"])}
BINOMIAL = sf.regressions.BinomialLogit(trials="t")


def states(yes: Any) -> Any:
    return np.where(yes, "q", "p")


def refused(family: Any, message: str, columns: dict[str, Any], variables: dict[str, Any] | None = None, **options: Any) -> str:
    """Fit `y` on all other columns; the message names what it must, in one sentence."""
    weights = options.get("weights")
    parents = [n for n in columns if n not in ("y", weights)]
    declared = {"t": Count("t")} if "t" in columns else {}
    if isinstance(family, (sf.regressions.PoissonLog, sf.regressions.NegativeBinomialLog, sf.regressions.BinomialLogit)):
        declared["y"] = Count("y")
    graph, kinds = "; ".join(f"{p} -> y" for p in parents) or "y", {**declared, **(variables or {})}
    with pytest.raises(SufficeError, match=message) as error:
        sf.fit(graph, scan(columns, variables=kinds, **options), families={"y": family})
    text = str(error.value)
    assert "\n" not in text
    assert ". " not in text
    return text


@pytest.mark.parametrize("family", [sf.Logistic(), sf.regressions.Probit()])
@pytest.mark.parametrize(
    ("columns", "by"),
    [
        ({"x": X, "v": V, "y": states(X > 0.1)}, "'x' separates"),
        ({"x": X, "v": V, "y": states(X + V > 0.1)}, "'x', 'v' together separate"),
        ({"x": np.where(np.abs(X) < 0.8, 0.0, X), "y": np.where(np.abs(X) < 0.8, TWO, states(X > 0))}, "'x' separates"),
        ({"x": X, "z": Z, "y": np.where(Z == "c", "q", TWO)}, "'z=c' separates"),
        ({"x": X, "z": Z, "y": np.where(Z == "a", "q", TWO)}, "'z=b', 'z=c' together separate"),
    ],
)
def test_separation(family, columns, by):
    text = refused(family, f"the coefficients of 'y' grow without end: {by} its values", columns)
    assert text.endswith(f"leave a parent out, or use {type(family).__name__}(ridge=1)")
    own = sf.fit("; ".join(f"{n} -> y" for n in columns if n != "y"), columns, families={"y": type(family)(ridge=1.0)})["y"]
    assert np.abs(own.coefficients).max() < 20


def test_separation_of_a_state_of_several():
    refused(sf.Logistic(), "'x'.* separates? its values", {"x": X, "v": V, "y": np.where(X > 1, "r", TWO)})


@pytest.mark.parametrize("family", [sf.regressions.PoissonLog(), sf.regressions.NegativeBinomialLog()])
def test_separation_of_counts(family):
    """No count above 0 in a state, or only at one end of a number."""
    refused(family, "'z=b' separates", {"z": Z, "x": X, "y": np.where(Z == "b", 0, COUNTS)})
    refused(family, "'x' separates", {"x": np.maximum(X, 0.0), "v": V, "y": np.where(X > 0, 0, 1 + 3 * COUNTS)})


def test_separation_of_trials():
    refused(BINOMIAL, "'x' separates", {"x": X, "t": TRIALS, "y": np.where(X > 0, TRIALS, 0)})


def test_separation_in_few_of_many_rows():
    """Ten rows of a hundred thousand, by a state or by a number that is 0 in the others; and the same rows without it."""
    n, rng = 100_000, np.random.default_rng(1)
    few = np.arange(n) < 10
    table = {"x": rng.normal(size=n), "y": np.where(few, "q", np.where(rng.random(n) < 0.3, "q", "p"))}
    refused(sf.Logistic(), "'z=few' separates", {**table, "z": np.where(few, "few", "all")}, {"z": Finite("z", ["all", "few"])})
    refused(sf.Logistic(), "'u' separates", {**table, "u": np.where(few, 1.0, 0.0)})
    table["y"][0] = "p"
    cpd = sf.fit("x -> y; u -> y", {**table, "u": np.where(few, 1.0, 0.0)}, families={"y": sf.Logistic()})["y"]
    assert cpd.reorder(["x", "u"]).coefficients[0, 1] == pytest.approx(np.log(9) - np.log(0.3 / 0.7), abs=0.1)


@pytest.mark.parametrize("weight", [1e-6, 1e-3, 1e8])
def test_one_light_row_prevents_separation(weight):
    """An estimate exists as soon as one row of any weight speaks against: log-odds of ±ln(weights)."""
    columns = {"z": list("aabb"), "y": list("pqpq"), "w": [5.0, 3.0, weight, 4.0]}
    cpd = sf.fit("z -> y", scan(columns, weights="w"), families={"y": sf.Logistic()})["y"]
    assert cpd.coefficients[0, 0] == pytest.approx(np.log(4 / weight) - np.log(3 / 5), rel=1e-9)


FAMILIES = [
    sf.Logistic(),
    sf.regressions.Probit(),
    sf.regressions.Linear(),
    sf.regressions.PoissonLog(),
    sf.regressions.NegativeBinomialLog(),
    sf.regressions.GammaLog(),
    sf.regressions.GammaInverse(),
]


def child_of(family: Any) -> Any:
    if isinstance(family, (sf.Logistic, sf.regressions.Probit)):
        return TWO
    return COUNTS if isinstance(family, (sf.regressions.PoissonLog, sf.regressions.NegativeBinomialLog)) else POSITIVE


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_columns_that_the_rows_do_not_tell_apart(family):
    y = child_of(family)
    refused(
        family, "the column 'u' of its parent 'u' is a linear combination of 'x', 'v'", {"x": X, "v": V, "u": 3 * X - V, "y": y}
    )
    refused(family, "the column 'u' of its parent 'u' is constant; leave the parent out", {"u": 0 * X + 0.1, "y": y})
    refused(family, "'u' is a linear combination of 'x' or constant", {"x": X, "u": 0 * X + 1e9 + 0.1, "y": y})
    refused(family, "'z=b' of its parent 'z' is a linear combination", {"u": 1.0 * (Z == "b"), "z": Z, "y": y})
    refused(family, "no row has z=d; leave the state out", {"z": Z, "y": y}, {"z": Finite("z", list("abcd"))})
    data = scan({"x": X * 1e200, "y": y}, variables={"y": Count("y")} if y is COUNTS else {})
    with pytest.raises(SufficeError, match="beyond the largest double; rescale the columns"):
        fit_regression(data.schema["y"], [data.schema["x"]], data, family)
    refused(family, "there are no rows", {"x": np.zeros(0), "y": y[:0]}, BINARY if y is TWO else None)


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: type(f).__name__)
def test_a_ridge_lets_them_exist(family):
    wide = type(family)(ridge=0.5)
    columns = {"x": X, "u": 2 * X, "y": child_of(family)}
    declared = {"y": Count("y")} if columns["y"] is COUNTS else {}
    cpd = sf.fit("x -> y; u -> y", scan(columns, variables=declared), families={"y": wide})["y"].reorder(["x", "u"])
    b = np.ravel(cpd.coefficients)
    assert b[1] == pytest.approx(2 * b[0], rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("family", [sf.Logistic(), sf.regressions.Probit()])
def test_a_child_with_one_state(family):
    refused(family, "no row has y=q", {"x": X, "y": np.full(N, "p")}, BINARY)
    refused(family, "no row has y=q", {"y": np.full(N, "p")}, BINARY)
    refused(family, "no row has y=p", {"x": [1.0], "y": ["q"]}, BINARY)


@pytest.mark.parametrize("family", [sf.regressions.PoissonLog(), sf.regressions.NegativeBinomialLog()])
def test_counts_that_are_none(family):
    refused(family, "'y' cannot be fitted: every count in the data is 0", {"x": X, "y": 0 * COUNTS})
    refused(family, "row 1, column 'y': 0.5 is not a count", {"x": X, "y": 0.5 + 0 * X})
    refused(family, "column 'y': -1 is not a count", {"x": X, "y": COUNTS - 1 - COUNTS.min()})


def test_counts_without_more_spread_than_poisson():
    refused(
        sf.regressions.NegativeBinomialLog(), "'y' has no more spread .* use PoissonLog", {"x": X, "y": RNG.binomial(10, 0.9, N)}
    )
    refused(sf.regressions.NegativeBinomialLog(), "no more spread", {"x": X, "y": np.full(N, 3)})


@pytest.mark.parametrize("family", [sf.regressions.Linear(), sf.regressions.GammaLog(), sf.regressions.GammaInverse()])
def test_nothing_left_for_the_dispersion(family):
    exact = {
        sf.regressions.Linear: 2 * X + V,
        sf.regressions.GammaLog: np.exp(0.3 + 0.5 * X + V),
        sf.regressions.GammaInverse: 1 / (9 + X + V),
    }[type(family)]
    refused(
        family, "in the data it is a function of 'x', 'v', and its dispersion would be 0; give more", {"x": X, "v": V, "y": exact}
    )
    refused(family, "its values are all equal, and its dispersion would be 0", {"x": X, "y": 0 * X + 3})
    refused(family, "its values are all equal, and its dispersion would be 0", {"x": X, "y": 0 * X + 1e9 + 0.1})
    refused(family, "all equal, and its dispersion would be 0; give more rows$", {"y": [3.0]})
    refused(family, "a function of 'x'", {"x": [1.0, 2.0], "y": [3.0, 4.0]})
    refused(family, "the column 'x' of its parent 'x' is constant", {"x": [1.0], "y": [3.0]})


@pytest.mark.parametrize("family", [sf.regressions.GammaLog(), sf.regressions.GammaInverse()])
def test_numbers_that_are_not_above_zero(family):
    refused(family, f"'y' has the value 0, and {type(family).__name__} is a family of numbers above 0", {"y": np.maximum(V, 0)})
    refused(family, "'y' has the value -", {"x": X, "y": V})


def test_trials():
    columns = {"x": X, "t": TRIALS, "y": SUCCESSES}
    refused(BINOMIAL, "a row has y=.* and t=.*: there cannot be more successes than trials", {**columns, "y": SUCCESSES + 9})
    refused(BINOMIAL, "column 't': .*.5 is not a count", {**columns, "t": TRIALS + 0.5}, {"t": Real("t")})
    refused(BINOMIAL, "the data have no successes", {**columns, "y": 0 * SUCCESSES})
    refused(BINOMIAL, "the data have no failures", {**columns, "y": TRIALS})
    refused(sf.regressions.BinomialLogit(), "needs the name of the parent of 'y' that holds the trials", columns)
    refused(BINOMIAL, "the trials 't' of 'y' must be one of its parents: add the edge t -> y", {"x": X, "y": SUCCESSES})
    refused(BINOMIAL, "the trials 't' of 'y' must be a number", {**columns, "t": Z}, {"t": Finite("t", list("abc"))})
    refused(
        BINOMIAL, "BinomialLogit is a family of counts, and 'y' is Finite", {**columns, "y": Z}, {"y": Finite("y", list("abc"))}
    )
    refused(sf.regressions.BinomialLogit(trials="t", offset="t"), "'t' cannot be both", columns)


@pytest.mark.parametrize("family", [sf.regressions.PoissonLog, sf.regressions.Linear, sf.regressions.GammaLog])
def test_offsets(family):
    y = COUNTS if family is sf.regressions.PoissonLog else POSITIVE
    refused(family(offset="o"), "the offset 'o' of 'y' must be one of its parents: add the edge o -> y", {"x": X, "y": y})
    refused(family(offset="o"), "did you mean 'oo'", {"oo": X, "y": y})
    refused(family(offset="o"), "the offset 'o' of 'y' must be a number, not states", {"o": Z, "y": y})


def test_an_offset_beyond_the_doubles():
    refused(sf.regressions.PoissonLog(offset="o"), "'y' has nowhere to start from: rescale", {"o": 1000 * V, "y": COUNTS})


@pytest.mark.parametrize("family", FAMILIES[1:], ids=lambda f: type(f).__name__)
def test_a_missing_number_that_is_not_gaussian_and_has_children(family):
    """A missing Gaussian parent is integrated out, a missing count is summed; a gamma with children is neither."""
    gamma = {"x": sf.regressions.GammaLog(), "y": family}
    holes = np.where(np.arange(N) == 3, np.nan, POSITIVE)
    kinds = {"y": Count("y")} if isinstance(family, (sf.regressions.PoissonLog, sf.regressions.NegativeBinomialLog)) else {}
    rows = sf.scan({"x": holes, "y": child_of(family)}, variables={"x": Real("x"), **kinds})
    with pytest.raises(
        SufficeError, match="'x' are missing, which is neither Gaussian nor a count but GammaLog and has children"
    ):
        sf.fit("x -> y", rows, families=gamma)
    holes = np.where(np.arange(N) == 3, np.nan, COUNTS)
    rows = sf.scan({"x": holes, "y": child_of(family)}, variables={"x": Count("x"), **kinds})
    with pytest.warns(SufficeNote, match="missing counts that have children are summed, .*: 'x'"):
        bn = sf.fit("x -> y", rows, families={"y": family})
    assert np.isfinite(bn["y"].theta).all()


@pytest.mark.parametrize(
    ("family", "y", "message"),
    [
        (sf.Logistic(), V, "'y' is a number with 80 different values, and Logistic is a family of states"),
        (sf.regressions.Probit(), V, "'y' is a number with 80 different values, and Probit is a family of states"),
        (sf.regressions.Probit(), Z, "Probit is a family of finite nodes of two states, and 'y' is Finite"),
        (sf.regressions.Linear(), TWO, "Linear is a family of real nodes, and 'y' is Finite"),
        (sf.regressions.GammaLog(), TWO, "GammaLog is a family of real nodes"),
        (sf.regressions.GammaInverse(), TWO, "GammaInverse is a family of real nodes"),
    ],
)
def test_children_of_another_kind(family, y, message):
    refused(family, message, {"x": X, "y": y})


@pytest.mark.parametrize("family", [sf.regressions.PoissonLog(), sf.regressions.NegativeBinomialLog()])
def test_counts_must_be_declared(family):
    refused(family, "row 1, column 'y': .* is not a count", {"x": X, "y": V}, {"y": Real("y")})
    refused(
        family,
        f"{type(family).__name__} is a family of counts, and 'y' is Finite",
        {"x": X, "y": Z},
        {"y": Finite("y", list("abc"))},
    )
    refused(
        sf.regressions.Linear(), "Linear is a family of real nodes, and 'y' is Count", {"x": X, "y": COUNTS}, {"y": Count("y")}
    )


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sf.regressions.Linear(ridge=-1), SufficeError, "the ridge of Linear must be a number from 0 up"),
        (lambda: sf.regressions.PoissonLog(ridge=float("nan")), SufficeError, "ridge of PoissonLog"),
        (lambda: sf.regressions.PoissonLog(ridge="1"), SufficeError, "ridge of PoissonLog"),
        (lambda: sf.regressions.PoissonLog(offset=1), SufficeError, "the offset of PoissonLog is the name of a parent, not 1"),
        (
            lambda: sf.regressions.BinomialLogit(trials=10),
            SufficeError,
            "the trials of BinomialLogit is the name of a parent, not 10",
        ),
        (
            lambda: sf.regressions.Linear().check(Real("y"), [Finite(f"z{i}", range(1000)) for i in range(5)]),
            TooLarge,
            "4,99.* parameters, a Hessian of",
        ),
        (
            lambda: RegressionCpd(Real("y"), (Real("x"),), sf.regressions.Linear(), 0.0, [1.0, 2.0]),
            ModelError,
            "coefficients of 'y'",
        ),
        (lambda: RegressionCpd(Real("y"), (Real("x"),), sf.regressions.Linear(), np.inf, [1.0]), ModelError, "intercept of 'y'"),
        (lambda: RegressionCpd(Real("y"), (), sf.regressions.Linear(), 0.0, [], dispersion=0.0), ModelError, "dispersion of 'y'"),
        (lambda: RegressionCpd(Real("y"), (), sf.regressions.Linear(), 0.0, []).interval(), SufficeError, "'y' was not fitted"),
        (
            lambda: RegressionCpd(Real("y"), (Real("x"),), sf.regressions.Linear(), 0.0, [1.0]).table(),
            ModelError,
            "'y' is a number",
        ),
        (
            lambda: RegressionCpd(Finite("y", ["a", "b"]), (Real("x"),), sf.regressions.Probit(), 0.0, [1.0]).table(),
            ModelError,
            "'x' is a number",
        ),
    ],
)
def test_arguments(call, error, message):
    with pytest.raises(error, match=message) as refusal:
        call()
    assert isinstance(refusal.value, SufficeError)


def test_too_few_iterations():
    data = scan({"x": X, "y": COUNTS}, variables={"y": Count("y")})
    with pytest.raises(SufficeError, match="'y' did not converge in 1 iterations"):
        fit_regression(data.schema["y"], [data.schema["x"]], data, sf.regressions.PoissonLog(), max_iter=1)


def test_draws_beyond_the_doubles():
    cpd = RegressionCpd(Count("y"), (Real("x"),), sf.regressions.PoissonLog(), 0.0, [1.0])
    with pytest.raises(SufficeError, match="too large: such counts cannot be drawn"):
        cpd.draw({"x": np.array([800.0])}, np.random.default_rng(0), 1)
    below = RegressionCpd(Real("y"), (Real("x"),), sf.regressions.GammaInverse(), 0.0, [1.0])
    with pytest.raises(SufficeError, match="it must be above 0"):
        below.draw({"x": np.array([-1.0])}, np.random.default_rng(0), 1)
    assert below.log_prob({"x": np.array([-1.0]), "y": np.array([1.0])})[0] == -np.inf
