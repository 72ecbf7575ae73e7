"""Searches in which some nodes are regressions: against enumeration of all graphs, statsmodels, IRLS and quadrature."""

from __future__ import annotations

import pickle
import warnings
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.basis.iteration import OutOfTime, Progress
from suffice.errors import DataError, FitError, GraphError, SufficeNote, TooLarge
from suffice.structure.results.explanations import COMPELLED, DISTINCT, MODEL
from suffice.structure.search import problem_of

pytestmark = pytest.mark.filterwarnings("ignore::suffice.errors.SufficeNote")

FAMILIES = {"ill": sf.Logistic(), "visits": sf.regressions.PoissonLog()}


def drawn(n: int = 400, seed: int = 0) -> dict[str, Any]:
    """age -> ill, dose -> ill, ill -> visits, age -> visits; sex -> dose."""
    rng = np.random.default_rng(seed)
    age, sex = rng.normal(50, 10, n), rng.integers(0, 2, n)
    dose = 2.0 + 0.8 * sex + rng.normal(size=n)
    ill = rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 8 + 0.9 * (dose - 2)))
    visits = rng.poisson(np.exp(0.2 + 0.03 * (age - 50) + 0.7 * ill))
    words = {"sex": np.array(["f", "m"])[sex], "ill": np.array(["no", "yes"])[ill.astype(int)]}
    return {"age": age, "dose": dose, "visits": visits, **words}


def rows(n: int = 400, seed: int = 0) -> sf.Data:
    return sf.scan(drawn(n, seed), variables={"visits": sf.Count("visits")})


def best_by_enumeration(names: list[str], local: dict[tuple[str, tuple[str, ...]], float]) -> tuple[float, int]:
    """The largest sum of local scores over all acyclic graphs, and how many graphs there are."""
    subsets = {x: [s for k in range(len(names)) for s in combinations([n for n in names if n != x], k)] for x in names}
    best, n_graphs = -np.inf, 0
    for chosen in product(*(subsets[x] for x in names)):
        left, parents = set(names), dict(zip(names, chosen, strict=True))
        while ready := [x for x in left if left.isdisjoint(parents[x])]:
            left -= set(ready)
        if not left:
            n_graphs += 1
            best = max(best, sum(local[x, parents[x]] for x in names))
    return best, n_graphs


def test_the_best_of_all_graphs_is_found_and_its_families_are_those_of_statsmodels() -> None:
    sm = pytest.importorskip("statsmodels.api")
    data = drawn()
    names = ["age", "dose", "ill", "visits"]
    numbers = {n: np.asarray(data[n] == "yes" if n == "ill" else data[n], dtype=float) for n in names}
    price = 0.5 * np.log(400)
    local: dict[tuple[str, tuple[str, ...]], float] = {}
    for x in names:
        for k in range(4):
            for own in combinations([n for n in names if n != x], k):
                X = np.column_stack([np.ones(400), *(numbers[p] for p in own)])
                if x in FAMILIES:
                    family = sm.families.Binomial() if x == "ill" else sm.families.Poisson()
                    local[x, own] = sm.GLM(numbers[x], X, family=family).fit(tol=1e-12).llf - price * (k + 1)
                elif "ill" in own:  # a regression for each of its states
                    real = [p for p in own if p != "ill"]
                    local[x, own] = -price * 2 * (len(real) + 2)
                    for state in (0.0, 1.0):
                        at = numbers["ill"] == state
                        Z = np.column_stack([np.ones(at.sum()), *(numbers[p][at] for p in real)])
                        local[x, own] += sm.OLS(numbers[x][at], Z).fit().llf
                else:
                    local[x, own] = sm.OLS(numbers[x], X).fit().llf - price * (k + 2)
    best, n_graphs = best_by_enumeration(names, local)
    assert n_graphs == 543
    found = sf.search({n: data[n] for n in names}, method=sf.Exact(), families=FAMILIES)
    assert found.proved
    assert found.score == pytest.approx(best, abs=1e-7)
    assert {("age", "ill"), ("dose", "ill"), ("ill", "visits"), ("age", "visits")} == set(found.dag.edges)
    by_node = {(x, found.dag.parents(x)): s for x, s in found.scores_by_node().items()}
    assert all(s == pytest.approx(local[x, tuple(sorted(own))], abs=1e-7) for (x, own), s in by_node.items())
    for method in (sf.Orders(), sf.methods.Tabu()):
        assert sf.search({n: data[n] for n in names}, method=method, families=FAMILIES).score == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("score", [sf.BIC()])
def test_five_variables_by_enumeration_of_29281_graphs(score: Any) -> None:
    problem = problem_of(rows(), score, None, families=FAMILIES)
    names = list(problem.names)
    local = {
        (x, tuple(names[p] for p in own)): problem.scores.family(i, own)
        for i, x in enumerate(names)
        for k in range(5)
        for own in combinations([j for j in range(5) if j != i], k)
    }
    # sex is a table: a state that is no regression has no number for a parent
    possible = {key: s for key, s in local.items() if s > -np.inf}
    assert all(key[0] == "sex" for key in local.keys() - possible.keys())
    best, n_graphs = best_by_enumeration(names, local)
    assert n_graphs == 29281
    assert sf.search(rows(), score, sf.Exact(), families=FAMILIES).score == pytest.approx(best, abs=1e-9 * abs(best))


EVERY = {
    "logistic": ("y", sf.Logistic()),
    "logistic, ridge": ("y", sf.Logistic(ridge=2.5)),
    "softmax": ("g", sf.Logistic()),
    "softmax, ridge": ("g", sf.Logistic(ridge=0.3)),
    "probit": ("y", sf.regressions.Probit()),
    "ordinal": ("g", sf.regressions.ProportionalOdds()),
    "Poisson": ("k", sf.regressions.PoissonLog()),
    "Poisson, offset": ("k", sf.regressions.PoissonLog(offset="x")),
    "binomial": ("k", sf.regressions.BinomialLogit(trials="n")),
    "linear": ("x", sf.regressions.Linear()),
    "linear, ridge": ("x", sf.regressions.Linear(ridge=3.0)),
    "gamma": ("w", sf.regressions.GammaLog()),
    "gamma, inverse": ("w", sf.regressions.GammaInverse()),
}


def of_every_kind(n: int = 150, weights: bool = False) -> sf.Data:
    rng = np.random.default_rng(7)
    x, z = rng.normal(3, 0.2, n), rng.normal(size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-z))
    g = np.digitize(z + rng.logistic(size=n), [-1, 1])
    k, w = rng.poisson(np.exp(0.3 * z)), rng.gamma(3.0, np.exp(0.2 * z) / 3)
    data: dict[str, Any] = {"x": x, "z": z, "k": k, "w": w, "n": np.maximum(k, rng.integers(1, 6, n))}
    data |= {"y": np.array(["a", "b"])[y.astype(int)], "g": np.array(["1", "2", "3"])[g]}
    if weights:
        data["times"] = rng.integers(1, 4, n).astype(float)
    kinds = {"k": sf.Count("k"), "n": sf.Count("n"), "g": sf.Finite("g", ["1", "2", "3"])}
    return sf.scan(data, variables=kinds, weights="times" if weights else None)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("what", EVERY)
def test_every_family_scores_as_it_does_alone(what: str, weights: bool) -> None:
    child, family = EVERY[what]
    data = of_every_kind(weights=weights)
    problem = problem_of(data, None, None, families={child: family})
    number = problem.number
    free = [n for n in problem.names if n != child and n not in family.roles]
    asked = [(*family.roles, *own) for k in range(4) for own in combinations(free, k)]
    scores = problem.scores.families([(number[child], tuple(sorted(number[p] for p in own))) for own in asked])
    for own, score in zip(asked, scores, strict=True):
        alone = sf.score(sf.Dag({child: own}), data, families={child: family}, by_node=True)[child]
        assert score == pytest.approx(alone, abs=1e-7), own


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 30))
def test_a_parent_more_never_lowers_the_likelihood(seed: int, n: int) -> None:
    """Also where the likelihood has no maximum, as in small samples: what counts is its supremum."""
    rng = np.random.default_rng(seed)
    states = np.array(["a", "b", *rng.choice(["a", "b"], n)])
    data = {"x": rng.normal(size=n + 2), "u": rng.choice(["p", "q", "r"], n + 2), "y": states}
    problem = problem_of(sf.scan(data | {"v": data["x"] * 2.0}), sf.LogLikelihood(), None, families={"y": sf.Logistic()})
    y, others = problem.number["y"], [problem.number[p] for p in ("u", "v", "x")]
    values = {own: problem.scores.family(y, own) for k in range(4) for own in combinations(sorted(others), k)}
    assert all(v <= 1e-7 for v in values.values())
    for own, value in values.items():
        assert all(value >= values[less] - 1e-6 * (1 + abs(value)) for less in combinations(own, len(own) - 1)) if own else True
    # v is x twice over: a column that rows cannot tell from others adds nothing
    x, v = problem.number["x"], problem.number["v"]
    assert values[tuple(sorted((x, v)))] == pytest.approx(values[(x,)], abs=1e-6)


def test_separated_states_have_the_supremum_of_the_likelihood_and_a_note() -> None:
    x = np.r_[np.linspace(0, 1, 20), np.linspace(2, 3, 20)]
    data = {"x": x, "y": np.repeat(["a", "b"], 20), "z": np.sin(40 * x)}
    with pytest.warns(SufficeNote, match=r"'x' separates the values of 'y'.*Logistic\(ridge=1\)"):
        found = sf.search(data, sf.LogLikelihood(), families={"y": sf.Logistic()}, constraints=sf.Forbid("y -> x", "z -> y"))
    assert found.scores_by_node()["y"] == pytest.approx(0.0, abs=1e-6)
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        sf.search(data, families={"y": sf.Logistic(ridge=1.0)})
    assert not any("separates" in str(n.message) for n in notes)
    with pytest.raises(FitError, match="grow without end"):
        sf.learn(data, families={"y": sf.Logistic()}, constraints=sf.Require("x -> y"))


def test_states_that_are_separated_in_part_have_the_likelihood_of_the_rest() -> None:
    """A parent whose state has one value of the child only: the table of both is the supremum of the regression."""
    data = {"u": list("pppppqqqqrrrr"), "y": list("ababbbbbbaabb")}
    table = sf.score("u -> y", data, sf.LogLikelihood(), by_node=True)["y"]
    problem = problem_of(data, sf.LogLikelihood(), None, families={"y": sf.Logistic()})
    assert problem.scores.family(1, (0,)) == pytest.approx(table, abs=1e-6)


def test_states_that_no_row_has_are_no_obstacle() -> None:
    data = sf.scan(drawn(), variables={"sex": sf.Finite("sex", ["f", "m", "x"])})
    found = sf.search(data, families=FAMILIES)
    assert ("age", "ill") in found.dag.edges


def test_states_of_the_child_that_no_row_has_leave_the_likelihood_of_the_others() -> None:
    kinds = {"y": sf.Finite("y", ["a", "b", "c"])}
    rows = sf.scan({"u": list("pppppqqqqrrrr"), "y": list("ababbbbbbaabb")}, variables=kinds)
    table = sf.score("u -> y", rows, sf.LogLikelihood(), by_node=True)["y"]
    problem = problem_of(rows, sf.LogLikelihood(), None, families={"y": sf.Logistic()})
    assert problem.scores.family(1, (0,)) == pytest.approx(table, abs=1e-6)
    with pytest.warns(SufficeNote, match="supremum of its likelihood: no row has y=c"):
        sf.search(rows, families={"y": sf.Logistic()})
    with pytest.raises(FitError, match="no row has y=c"):
        sf.search(rows, sf.Evidence(sf.BDeu(1)), families={"y": sf.Logistic(1.0)})
    with pytest.raises(FitError, match="no row has y=c"):
        sf.search(rows, families={"y": sf.regressions.ProportionalOdds()})
    none = sf.scan({"x": [0.1, 0.7, 0.4], "k": [0, 0, 0]}, variables={"k": sf.Count("k")})
    problem = problem_of(none, sf.LogLikelihood(), None, families={"k": sf.regressions.PoissonLog()})
    assert problem.scores.families([(0, ()), (0, (1,))]) == pytest.approx([0.0, 0.0], abs=1e-6)
    rare = drawn() | {"sex": ["x", *drawn()["sex"][1:]]}
    sure = sf.bootstrap(rare, n=6, families={"sex": sf.Logistic()}, score=sf.BIC(), method=sf.HillClimb(max_parents=1))
    assert sure.n_done == 6  # though some resamples have no row of the rare state


def log_evidence(log_joint: Any, centre: Any, width: Any) -> float:
    """ln ∫∫ exp(log_joint(a, b)) da db on a wide grid."""
    a, b = (np.linspace(c - 12 * w, c + 12 * w, 201) for c, w in zip(centre, width, strict=True))
    A, B = np.meshgrid(a, b, indexing="ij")
    values = log_joint(A, B)
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum() * (a[1] - a[0]) * (b[1] - b[0])))


@pytest.mark.parametrize("child", ["ill", "visits"])
def test_evidence_is_that_of_quadrature(child: str) -> None:
    """Laplace's error falls with the rows: 300 of them leave less than a hundredth of a nat."""
    data, ridge = drawn(300), 0.5
    x, family = np.asarray(data["dose"]), {"ill": sf.Logistic(ridge), "visits": sf.regressions.PoissonLog(ridge)}[child]
    y = np.asarray(data[child] == "yes" if child == "ill" else data[child], dtype=float)
    score = sf.Evidence((sf.BDeu(1), sf.BGe(), sf.priors.Gamma()))
    problem = problem_of(
        sf.scan({"dose": x, child: data[child]}, variables={"visits": sf.Count("visits")} if child == "visits" else None),
        score,
        None,
        families={child: family},
    )
    number = problem.number
    found = problem.scores.family(number[child], (number["dose"],))

    def log_joint(a: Any, b: Any) -> Any:
        total = 0.5 * np.log(ridge / (2 * np.pi)) - 0.5 * ridge * b**2
        for xi, yi in zip(x - x.mean(), y, strict=True):
            eta = a + b * xi
            total = total + (yi * eta - np.logaddexp(0, eta) if child == "ill" else yi * eta - np.exp(eta))
        return total

    base = 0.0 if child == "ill" else -sum(np.log(np.arange(1, k + 1)).sum() for k in y.astype(int))
    at = sf.fit(f"dose -> {child}", problem.data, families={child: family})[child]
    slope = float(np.ravel(at.coefficients)[0])
    level = float(np.ravel(at.intercept)[0]) + slope * x.mean()
    assert found == pytest.approx(log_evidence(log_joint, (level, slope), (0.1, 0.1)) + base, abs=0.01)
    assert sf.score(f"dose -> {child}", problem.data, score, families={child: family}, by_node=True)[child] == pytest.approx(
        found
    )


@pytest.mark.parametrize("family", [sf.Logistic(0.3), sf.regressions.ProportionalOdds(0.3)])
def test_evidence_depends_on_no_state_of_reference_and_on_no_unit(family: Any) -> None:
    """Ordered states may be turned round; numbers in other units have another ridge, which only states do without."""
    data, score = drawn(), sf.Evidence((sf.BDeu(1), sf.BGe(), sf.priors.Gamma()))
    stage = np.digitize(np.asarray(data["age"]) + np.asarray(data["visits"]), [45.0, 55.0]).astype(str)
    orders = [["0", "1", "2"], ["2", "1", "0"]] + ([["1", "0", "2"]] if isinstance(family, sf.Logistic) else [])
    found = []
    for order, sex in product(orders, (["f", "m"], ["m", "f"])):
        kinds = {"stage": sf.Finite("stage", order), "sex": sf.Finite("sex", sex)}
        rows = sf.scan({"stage": stage, "sex": data["sex"], "age": data["age"]}, variables=kinds)
        problem = problem_of(rows, score, None, families={"stage": family})
        found.append(problem.scores.families([(2, ()), (2, (0,)), (2, (0, 1)), (2, (1,))]))
    np.testing.assert_allclose(found, np.broadcast_to(found[0], np.shape(found)), atol=1e-6)


def test_regressions_beyond_memory_are_left_out_or_refused() -> None:
    rng = np.random.default_rng(0)
    wide = {f"w{i}": rng.permutation(np.repeat(np.arange(150), 4)).astype(str) for i in range(2)}
    rows = sf.scan(wide | {"y": rng.permutation(np.repeat(np.arange(50), 12)).astype(str)})
    with pytest.warns(SufficeNote, match=r"left out of the search; the first: the regression of 'y' on 'w0' would have 7,350"):
        found = sf.search(rows, families={"y": sf.Logistic(1.0)}, method=sf.Orders(max_parents=1))
    assert found.dag.parents("y") == ()
    many = {f"w{i:02}": rng.permutation(np.repeat(np.arange(150), 4)).astype(str) for i in range(29)}
    with pytest.raises(TooLarge, match=r"would have 4,3\d\d columns"):
        sf.search(many | {"y": rng.choice(["a", "b"], 600)}, families={"y": sf.Logistic()})


def test_evidence_without_a_prior_of_the_effects_is_refused() -> None:
    score = sf.Evidence((sf.BDeu(1), sf.BGe(), sf.priors.Gamma()))
    with pytest.raises(FitError, match=r"'ill'.*flat prior.*Logistic\(ridge=1\)"):
        sf.search(rows(), score, families=FAMILIES)
    with pytest.raises(FitError, match="'age' is a regression with a dispersion"):
        sf.search(rows(), score, families={"age": sf.regressions.Linear(ridge=1.0)})


def test_directions_classes_and_explanations() -> None:
    found = sf.search(rows(), families=FAMILIES)
    assert found.directions["age", "ill"] == COMPELLED  # beside dose, which it is not adjacent to
    assert found.directions["sex", "dose"] == MODEL
    few = sf.search(rows().select(["age", "ill", "visits"]), families=FAMILIES)
    assert few.directions == dict.fromkeys([("age", "ill"), ("age", "visits"), ("ill", "visits")], DISTINCT)
    assert few.cpdag.undirected == ()
    assert "another model" in str(few.explain("age -> ill"))
    assert ("age", "ill") in found.cpdag.directed
    edge = found.explain("age -> ill")
    assert edge.reversed.gain is not None
    assert edge.reversed.gain < 0
    assert "families={'sex': Logistic()}" in str(found.explain("sex -> dose"))
    again = pickle.loads(pickle.dumps(found))
    assert again.dag == found.dag
    assert again.directions == found.directions
    assert found.n_parameters == sf.fit(found.dag, rows(), families=FAMILIES).n_parameters


def test_constraints_reach_from_numbers_to_states() -> None:
    with pytest.raises(GraphError, match=r"leads from a number to a finite variable.*families=\{'ill': Logistic\(\)\}"):
        sf.search(rows(), constraints=sf.Require("age -> ill"))
    with pytest.raises(GraphError, match=r"leads from a number to a count.*families=\{'visits': PoissonLog\(\)\}"):
        sf.search(rows(), constraints=sf.Require("age -> visits"))
    known = sf.Require("age -> ill") + sf.Forbid("dose -> ill") + sf.Tiers(["sex"], ["age", "dose"], ["ill", "visits"])
    found = sf.search(rows(), constraints=known, families=FAMILIES)
    assert known.check(found.dag) == []
    assert ("age", "ill") in found.dag.edges


def test_offsets_and_trials_are_always_parents() -> None:
    found = sf.search(of_every_kind(), families={"k": sf.regressions.BinomialLogit(trials="n")}, method=sf.HillClimb())
    assert ("n", "k") in found.dag.edges
    assert found.explain("n -> k").required


def test_the_note_before_a_search_offers_a_regression() -> None:
    with pytest.warns(SufficeNote, match=r"families=\{'ill': Logistic\(\)\}; or cut numbers .*Bins\(5\)"):
        sf.search(rows())
    with warnings.catch_warnings(record=True) as notes:
        warnings.simplefilter("always")
        sf.search(rows(), families=FAMILIES | {"sex": sf.Logistic()})
    assert not any("beside states" in str(n.message) for n in notes)


@pytest.mark.parametrize("method", [sf.methods.GES(), sf.PC(), sf.methods.MMHC()])
def test_methods_that_cannot_are_refused_by_name(method: Any) -> None:
    with pytest.raises(FitError, match=f"{type(method).__name__} does not search with regressions"):
        sf.search(rows(), method=method, families=FAMILIES)


def test_other_refusals() -> None:
    with pytest.raises(FitError, match="finds graphs without directions"):
        sf.search(rows(), method=sf.GraphicalLasso(), families=FAMILIES)
    with pytest.raises(FitError, match=r"'il'.*no column of the data.*'ill'"):
        sf.search(rows(), families={"il": sf.Logistic()})
    with pytest.raises(FitError, match=r"an object such as Logistic\(\)"):
        sf.search(rows(), families={"ill": sf.Logistic})
    with pytest.raises(FitError, match=r"given by node"):
        sf.search(rows(), families=[sf.Logistic()])  # type: ignore[call-overload]
    with pytest.raises(FitError, match="'visits' cannot be NegativeBinomialLog in a search"):
        sf.search(rows(), families={"visits": sf.regressions.NegativeBinomialLog()})
    with pytest.raises(FitError, match="Logistic is a family of finite nodes"):
        sf.search({"x": ["a", "a"], "y": [0.5, 1.5]}, families={"x": sf.Logistic()})
    with pytest.raises(DataError, match="statistics say nothing of regressions"):
        sf.search(sf.gather(rows(), "sex -> age"), families={"sex": sf.Logistic()})
    with pytest.raises(DataError, match="sequences are not attempted"):
        sf.search(sf.sequences(drawn()), families=FAMILIES)


def test_the_plan_counts_regressions() -> None:
    plan = sf.search(rows(), method=sf.Exact(max_parents=2), families=FAMILIES, dry_run=True)
    assert plan.regressions == 2 * (1 + 4 + 6)
    assert "22 fits × 400 rows" in repr(plan)
    problem = problem_of(rows(), None, None, families=FAMILIES)
    problem.scores.parent_sets(problem.rules.cap(2))
    assert problem.scores.n_fits == plan.regressions  # type: ignore[attr-defined]
    assert sf.search(rows(), dry_run=True).regressions == 0


@pytest.mark.parametrize("method", [sf.Orders(), sf.Exact(), sf.HillClimb(), sf.methods.Tabu()])
@pytest.mark.parametrize("stop", [OutOfTime, KeyboardInterrupt])
def test_what_was_found_before_a_stop_is_kept(method: Any, stop: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    calls, check = [0], Progress.check

    def stopped(self: Any, what: str = "") -> None:
        calls[0] += 1
        if calls[0] == 13:
            raise stop
        check(self, what)

    monkeypatch.setattr(Progress, "check", stopped)
    found = sf.search(rows(), method=method, families=FAMILIES)
    assert not found.finished
    assert found.score is not None
    assert np.isfinite(found.score)


def test_the_result_depends_on_no_order_and_on_no_engine(tmp_path: Any) -> None:
    import pandas as pd

    frame = pd.DataFrame(drawn())
    found = sf.search(rows(), families=FAMILIES)
    turned = sf.search(frame.iloc[::-1, ::-1], families=FAMILIES)
    frame.to_parquet(tmp_path / "rows.parquet")
    read = sf.search(sf.scan(tmp_path / "rows.parquet"), families=FAMILIES, threads=2)
    for other in (turned, read):
        assert other.dag == found.dag
        assert other.score == pytest.approx(found.score, abs=1e-6)


def test_learn_bootstrap_and_cross_validate() -> None:
    bn = sf.learn(rows(), families=FAMILIES)
    assert set(bn.dag.parents("ill")) == {"age", "dose"}
    assert bn["ill"].family == sf.Logistic()
    sure = sf.bootstrap(rows(), n=4, families=FAMILIES)
    assert sure.strength("age", "ill") == 1.0
    assert sure.direction("sex", "dose") == 1.0  # the other way there is no family
    better, worse = (sf.cross_validate(rows(), folds=3, families=f) for f in (FAMILIES, None))
    assert better.mean > worse.mean
    fixed = sf.cross_validate(rows(), method=bn.dag, folds=3, families=FAMILIES)
    assert fixed.mean == pytest.approx(better.mean, abs=0.05)


def test_numbers_are_taken_as_their_family_needs_them() -> None:
    data = drawn() | {"ill": (np.asarray(drawn()["ill"]) == "yes").astype(float)}
    with pytest.warns(SufficeNote, match="numbers are taken as their family needs them"):
        found = sf.search(data, families=FAMILIES)
    assert set(found.dag.edges) == set(sf.search(rows(), families=FAMILIES).dag.edges)


@pytest.mark.parametrize("what", ["far from 0", "tiny", "huge", "one far out", "heavy tails"])
def test_numbers_of_any_size_cost_no_digits(what: str) -> None:
    rng = np.random.default_rng(3)
    z = rng.normal(size=300)
    out = np.where(np.arange(300) == 0, 1e6, z)
    x = {
        "far from 0": 1e8 + z,
        "tiny": 1e-9 * z,
        "huge": 1e12 * z,
        "one far out": out,
        "heavy tails": rng.standard_cauchy(300) ** 3,
    }
    y = np.where(rng.random(300) < 1 / (1 + np.exp(-z)), "b", "a")
    g = np.array(["u", "v", "w"])[np.digitize(z + rng.logistic(size=300), [-1, 1])]
    data = {"x": x[what], "w": rng.normal(size=300) + 0.5 * z, "y": y, "k": rng.poisson(np.exp(0.4 * z)), "g": g}
    rows = sf.scan(data, variables={"k": sf.Count("k"), "x": sf.Real})
    families = {"y": sf.Logistic(), "k": sf.regressions.PoissonLog(), "g": sf.regressions.ProportionalOdds()}
    problem = problem_of(rows, None, None, families=families)
    number = problem.number
    for child, own in product(families, (["x"], ["w", "x"])):
        score = problem.scores.family(number[child], tuple(sorted(number[p] for p in own)))
        dag = sf.Dag({n: own if n == child else () for n in problem.names})
        assert score == pytest.approx(sf.score(dag, rows, families=families, by_node=True)[child], abs=1e-6)


def test_learn_fits_columns_as_the_search_saw_them() -> None:
    rng = np.random.default_rng(0)
    stage = rng.integers(0, 3, 500)
    rows = {"stage": stage, "ill": np.where(rng.random(500) < 1 / (1 + np.exp(1.5 - 1.5 * stage)), "yes", "no")}
    with pytest.warns(sf.SufficeNote):
        bn = sf.learn(rows, families={"ill": sf.Logistic()}, constraints=sf.Require(("stage", "ill")))
    assert bn.dag.edges == (("stage", "ill"),)
    assert bn.variables["stage"] == sf.Finite("stage", ["0", "1", "2"])
