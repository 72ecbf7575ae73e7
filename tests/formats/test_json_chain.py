"""Chains in Suffice's own JSON, and through a pickle: all of them comes back."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.errors import FormatError
from suffice.families.regressions.regression_cpd import RegressionCpd
from suffice.formats.registry import json_of
from suffice.incomplete.first_slices import Stationary
from suffice.models.chain import Chain

DIE, ROLL = sf.Finite("die", ["fair", "loaded"]), sf.Finite("roll", list("123456"))
X, Y, N = sf.Finite("x", ["a", "b"]), sf.Real("y"), sf.Count("n")
TABLES = {"die": [[0.95, 0.05], [0.1, 0.9]], "roll": [[1 / 6] * 6, [0.1] * 5 + [0.5]]}


def written_down() -> dict[str, Chain]:
    """Chains of every kind of distribution and beginning."""
    step = {"x": [[0.9, 0.1], [0.2, 0.8]], "x[0]": [0.25, 0.75]}
    lags = {
        "y": sf.Gaussian(0.5, {"y[-1]": 0.6, "y[-2]": -0.2}, 1.5),
        "y[0]": sf.Gaussian(0.0, {}, 4.0),
        "y[1]": sf.Gaussian(1.0, {"y[-1]": 0.5}, 2.0),
    }
    u = sf.Real("u")
    regressions = {
        "x": RegressionCpd(X, (sf.Finite("x[-1]", X.states), u), sf.Logistic(), [0.1], [[0.5, -1.0]]),
        "x[0]": RegressionCpd(sf.Finite("x[0]", X.states), (u,), sf.Logistic(), [0.0], [[1.0]]),
        "u": sf.Gaussian(),
    }
    return {
        "casino": Chain("die[-1] -> die -> roll", {**TABLES, "die[0]": [0.5, 0.5]}, [DIE, ROLL]),
        "stationary": Chain("die[-1] -> die -> roll", TABLES, [DIE, ROLL], first=Stationary()),
        "other first slice": Chain(
            sf.Template("x[-1] -> x -> n", first=["n -> x"]),
            {
                "x": step["x"],
                "n": sf.regressions.Rates([2.0, 5.0]),
                "n[0]": sf.regressions.Rates(3.0),
                "x[0]": RegressionCpd(sf.Finite("x[0]", X.states), (N,), sf.Logistic(), [0.0], [[0.2]]),
            },
            [X, N],
        ),
        "given": Chain("die[-1] -> die -> roll", TABLES, [DIE, ROLL], first=sf.chains.Given({"die": [0.25, 0.75]})),
        "diffuse": Chain(
            "l[-1] -> l -> y; x[-1] -> x",
            {**step, "l": sf.Gaussian(0.0, {"l[-1]": 1.0}, 1.0), "y": sf.Gaussian(0.0, {"l": 1.0}, 2.0)},
            [X, Y, sf.Real("l")],
            first=sf.chains.Diffuse(),
        ),
        "lags": Chain("y[-2], y[-1] -> y", lags, [Y]),
        "regression": Chain("x[-1], u -> x", regressions, [X, u]),
    }


@pytest.mark.parametrize("name", list(written_down()))
def test_written_down(name: str, tmp_path: Path) -> None:
    chain = written_down()[name]
    sf.write(chain, tmp_path / "m.json")
    again = sf.read(tmp_path / "m.json")
    assert isinstance(again, Chain)
    assert again == chain
    assert again.template == chain.template
    assert again.variables == chain.variables
    assert type(again.first_slices) is type(chain.first_slices)
    assert json_of(again) == json_of(chain)


@pytest.mark.parametrize("name", list(written_down()))
def test_pickle(name: str) -> None:
    chain = written_down()[name]
    assert chain.first
    again = pickle.loads(pickle.dumps(chain))
    assert again == chain
    assert len(again.first) == len(chain.first)
    for node in again:
        for array in again[node].arrays:
            assert not getattr(again[node], array).flags.writeable


def test_chains_differ_by_how_they_begin() -> None:
    chains = written_down()
    assert chains["casino"] != chains["stationary"]


def rolls(seed: int = 0) -> sf.chains.Sequences:
    rng = np.random.default_rng(seed)
    return sf.sequences(
        {"id": np.repeat([1, 2, 3], 40), "roll": rng.choice(list("123456"), 120)}, by="id", variables={"roll": ROLL}
    )


@pytest.mark.parametrize("prior", [None, sf.BDeu(2), sf.Dirichlet(0.5)])
def test_fitted_by_em(prior: Any, tmp_path: Path) -> None:
    run = sf.em("die[-1] -> die -> roll", rolls(), hidden=[DIE], prior=prior, starts=1, max_iter=5)
    sf.write(run.model, tmp_path / "m.json.gz")
    again = sf.read(tmp_path / "m.json.gz")
    assert again == run.model
    assert again.fit_info == run.model.fit_info
    assert (again.hidden, again.incomplete) == (("die",), True)
    assert (again.prior is None) == (prior is None)
    assert json_of(again) == json_of(run.model)
    assert again.log_likelihood(rolls(1)) == run.model.log_likelihood(rolls(1))


def test_other_formats_refuse_chains(tmp_path: Path) -> None:
    chain = written_down()["casino"]
    for suffix in ("bif", "xmlbif", "net", "dsc", "xdsl", "uai"):
        with pytest.raises(FormatError, match=rf"m\.{suffix}: .*this is a chain: write \.json; chain\.unroll\(n\)"):
            sf.write(chain, tmp_path / f"m.{suffix}")
        assert not (tmp_path / f"m.{suffix}").exists()
    sf.write(chain.unroll(3), tmp_path / "m.bif")
    assert len(sf.read(tmp_path / "m.bif")) == 6


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    text, path = json_of(written_down()["lags"]), tmp_path / "m.json"
    content = json.loads(text)
    for key in content:
        path.write_text(json.dumps({k: v for k, v in content.items() if k != key}), "utf-8")
        with pytest.raises(FormatError, match=r"m\.json"):
            sf.read(path)
    damages: list[tuple[str, Any, str]] = [
        ("version", 2, "another version"),
        ("first", "somehow", "the first slices are free"),
        ("variables", content["variables"] * 2, "y"),
        ("variables", [{"name": "z", "type": "real"}], "not those of its parents"),
        ("parents", {"y": ["y[1]"]}, "y\\[1\\]"),
        ("first_parents", [{}], "first is a list of graphs"),
        ("cpds", {**content["cpds"], "y[0]": content["cpds"]["y"]}, "y\\[0\\]|reshape"),
    ]
    for key, value, message in damages:
        path.write_text(json.dumps({**content, key: value}), "utf-8")
        with pytest.raises(FormatError, match=message):
            sf.read(path)


def weather(seed: int, n: int = 4) -> sf.chains.Sequences:
    """Sequences of states, numbers and counts, which depend on the step before."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[Any]] = {"id": [], "x": [], "y": [], "n": []}
    for i in range(n):
        x, y = 0, 0.0
        for _ in range(30):
            x, y = int(rng.random() < (0.2, 0.7)[x]), 0.5 * y + rng.normal()
            for name, value in (("id", i), ("x", "ab"[x]), ("y", y), ("n", rng.poisson(1 + 2 * x))):
                rows[name].append(value)
    return sf.sequences(rows, by="id", variables={"n": N})


@pytest.mark.parametrize("prior", [None, (sf.BDeu(2), sf.NormalInverseGamma(), sf.priors.Gamma())])
def test_fitted_to_complete_steps(prior: Any, tmp_path: Path) -> None:
    chain = sf.fit("x[-1] -> x; x, y[-1], y[-2] -> y; x -> n", weather(0, 40), prior=prior)
    sf.write(chain, tmp_path / "m.json")
    again = sf.read(tmp_path / "m.json")
    assert again == chain
    assert json_of(again) == json_of(chain)
    assert again.log_likelihood() == chain.log_likelihood()
    assert again.bic() == chain.bic()
    assert again.update(weather(1)) == chain.update(weather(1))
    pickled = pickle.loads(pickle.dumps(chain))
    if prior is not None:
        for node in ("x", "x[0]"):
            for other in (again, pickled):
                assert np.array_equal(other[node].interval(0.9).lower, chain[node].interval(0.9).lower)


def test_a_regression_keeps_its_standard_errors(tmp_path: Path) -> None:
    chain = sf.fit("x[-1], y -> x", weather(0, 20), families={"x": sf.Logistic()})
    sf.write(chain, tmp_path / "m.json")
    again = sf.read(tmp_path / "m.json")
    assert again == chain
    assert again["x"].fitted.deviance == chain["x"].fitted.deviance
    assert np.array_equal(again["x"].interval(0.9).lower, chain["x"].interval(0.9).lower)


def test_what_was_fixed_or_given_is_kept_and_not_counted(tmp_path: Path) -> None:
    """n_parameters, BIC and AIC of what was learned only; older files, which do not say what was fixed, are read."""
    rolls = sf.sequences({"roll": list("3151162464466442453113216311641521336251445436316566")}, variables={"roll": ROLL})
    casino = written_down()["casino"]
    text = "die[-1] -> die -> roll"
    free = sf.em(text, rolls, hidden=[DIE], start=casino, max_iter=5, tol=0).model
    given = sf.em(text, rolls, hidden=[DIE], first=sf.chains.Given(casino), start=casino, max_iter=5, tol=0).model
    fixed = sf.em(text, rolls, hidden=[DIE], start=casino, fixed={"roll": True}, max_iter=5, tol=0).model
    assert [free.n_parameters, given.n_parameters, fixed.n_parameters] == [13, 12, 3]
    assert isinstance(given.first_slices, sf.chains.Given)
    assert dict(given.fixed) == {"die[0]": True}
    assert "Given(...)" in repr(given)
    assert "Free" not in repr(given)
    for chain in (free, given, fixed):
        log_likelihood, k = chain.log_likelihood(rolls), chain.n_parameters
        assert chain.bic(rolls) == pytest.approx(log_likelihood - 0.5 * k * np.log(52))
        assert chain.aic(rolls) == pytest.approx(log_likelihood - k)
        sf.write(chain, tmp_path / "m.json")
        for again in (sf.read(tmp_path / "m.json"), pickle.loads(pickle.dumps(chain))):
            assert again == chain
            assert again.fixed == chain.fixed
            assert again.n_parameters == k
    old = {k: v for k, v in json.loads(json_of(given)).items() if k != "fixed"} | {"first": "free"}
    (tmp_path / "old.json").write_text(json.dumps(old))
    assert sf.read(tmp_path / "old.json").n_parameters == 13
    wrong = json.loads(json_of(fixed)) | {"fixed": {"roll": ["slope"]}}
    (tmp_path / "wrong.json").write_text(json.dumps(wrong))
    with pytest.raises(FormatError, match="the chain has no such parameters"):
        sf.read(tmp_path / "wrong.json")


def test_entries_that_were_fixed_are_kept_and_not_counted(tmp_path: Path) -> None:
    y = np.cumsum(np.random.default_rng(0).standard_normal(60)) + np.random.default_rng(1).standard_normal(60)
    steps, text = sf.sequences({"y": y}), "level[-1] -> level -> y"
    lines = {"level": sf.Gaussian(0.0, {"level[-1]": 1.0}, 1.0), "y": sf.Gaussian(0.0, {"level": 1.0}, 1.0)}
    known = {"level": ["intercept", "coefficients"], "y": ["intercept", "level"]}
    first = {"level[0]": sf.Gaussian(0.0, {}, 1.0)}
    how: dict[str, Any] = {"hidden": [sf.Real("level")], "max_iter": 3, "tol": 0}
    anywhere = sf.em(
        text, steps, start=Chain(text, lines, first=sf.chains.Diffuse()), first=sf.chains.Diffuse(), fixed=known, **how
    ).model
    start = Chain(text, {**lines, **first})
    some = sf.em(text, steps, start=start, fixed={**known, "level[0]": True}, **how).model
    given = sf.em(text, steps, start=start, first=sf.chains.Given(start), fixed=known, **how).model
    free = sf.em(
        text, steps, start=start, fixed={"level": ["intercept", "coefficients", "variance"], "level[0]": True}, **how
    ).model
    assert [anywhere.n_parameters, some.n_parameters, given.n_parameters, free.n_parameters] == [2, 2, 2, 3]
    assert some.fixed["level"] == ("intercept", "level[-1]")
    assert "1 (2 fixed)" in repr(some)
    for chain in (anywhere, some, given):
        sf.write(chain, tmp_path / "m.json")
        again = sf.read(tmp_path / "m.json")
        assert (again.fixed, again.n_parameters) == (chain.fixed, 2)
    refit = sf.em(text, steps, start=some, fixed=some.fixed, **how).model
    assert refit.n_parameters == 2


def test_first_slices_that_are_given_stay_in_an_update() -> None:
    a, b = sf.sequences({"x": list("aabbaab")}), sf.sequences({"x": list("aabbaabc")})
    chain = sf.fit("x[-1] -> x", a, first=sf.chains.Given({"x": [0.5, 0.5]}), prior=sf.Dirichlet(1))
    assert chain.n_parameters == 2
    assert chain.log_likelihood() == pytest.approx(chain.log_likelihood(a))
    more = chain.update(a)
    assert isinstance(more.first_slices, sf.chains.Given)
    assert more["x[0]"].probs.tolist() == [0.5, 0.5]
    with pytest.raises(sf.SufficeError, match=r"the first slices are given, and 'x\[0\]' is of"):
        chain.update(b)
