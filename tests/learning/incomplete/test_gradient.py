"""Gradient ascent: the exact gradient against differences, and the optimum of EM by another way."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.learning.em import em
from suffice.learning.gradient import LBFGS, Projected, gradient, project_rows
from suffice.learning.incomplete.coordinates import Atlas
from suffice.learning.incomplete.problem import problem_of
from tests.oracles import random_net, random_rows


def holes(columns: dict[str, Any], share: float, seed: int) -> dict[str, list[Any]]:
    """The columns with a share of their cells taken out at random, never the first of a column."""
    rng = np.random.default_rng(seed)
    gone = {n: (rng.random(len(c)) < share) & (np.arange(len(c)) > 0) for n, c in columns.items()}
    return {n: [None if g else v for v, g in zip(list(c), gone[n], strict=True)] for n, c in columns.items()}


def finite_problem(seed: int, **options: Any) -> Any:
    bn = random_net(seed)
    rows = bn.sample(40, seed=seed)
    columns = holes({n: rows[n].to_pylist() for n in rows.column_names}, 0.3, seed)
    return problem_of(bn.dag, sf.scan(columns, dict(bn.variables)), **options)


def hybrid_problem(seed: int, **options: Any) -> Any:
    return problem_of(
        options.pop("dag", "u -> w; u -> x; w -> y; x -> y; y -> z; x -> z"), holes(random_rows(seed), 0.2, seed), **options
    )


def latent_classes(n: int = 400, seed: int = 0) -> tuple[str, Any, list[sf.Finite]]:
    """Two classes that four items tell apart badly: EM needs hundreds of iterations."""
    rng = np.random.default_rng(seed)
    h = rng.integers(0, 2, n)
    items = {f"x{i}": np.where(rng.random(n) < np.where(h == 1, 0.65, 0.35), "a", "b") for i in range(4)}
    return "; ".join(f"h -> {x}" for x in items), items, [sf.Finite("h", ["p", "q"])]


def differences(problem: Any, atlas: Atlas, here: Any, h: float = 1e-5) -> Any:
    """Central differences of the objective."""

    def objective(vector: Any) -> float:
        parameters = atlas.problem.parameters(atlas.cpds(vector))
        return problem.expect(parameters).log_likelihood + problem.log_prior(parameters)

    steps = h * np.diag(atlas.unit)
    return np.array([(objective(here + d) - objective(here - d)) / (2.0 * h) for d in steps])


CASES = [
    pytest.param(finite_problem, {}, id="finite"),
    pytest.param(finite_problem, {"prior": sf.BDeu(5)}, id="finite, mean"),
    pytest.param(finite_problem, {"prior": sf.Dirichlet(2), "estimate": sf.Mode()}, id="finite, mode"),
    pytest.param(hybrid_problem, {}, id="hybrid"),
    pytest.param(hybrid_problem, {"prior": (sf.BDeu(5), sf.NormalInverseGamma())}, id="hybrid, mean"),
    pytest.param(
        hybrid_problem,
        {"prior": (sf.Dirichlet(2), sf.NormalInverseGamma()), "estimate": sf.Mode()},
        id="hybrid, mode",
    ),
]


@pytest.mark.parametrize(("make", "options"), CASES)
@pytest.mark.parametrize("seed", [1, 2])
def test_the_gradient_is_that_of_the_objective(make, options, seed):
    problem = make(seed, **options)
    begin = problem.first()
    atlas = Atlas.around(problem, begin, problem.expect(begin).statistic)
    rng = np.random.default_rng(seed)
    here = atlas.vector(begin) + 0.3 * atlas.unit * rng.standard_normal(atlas.size)
    parameters = atlas.problem.parameters(atlas.cpds(here))
    exact = atlas.scores(atlas.cpds(here), problem.expect(parameters).statistic) * atlas.unit
    np.testing.assert_allclose(exact, differences(problem, atlas, here), rtol=1e-6, atol=1e-5)
    np.testing.assert_allclose(atlas.vector(parameters), here, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("make", "options"), CASES[:1] + CASES[3:4])
def test_a_vector_without_origin_is_the_parameters(make, options):
    problem = make(1, **options)
    vector = problem.vector(problem.first())
    again = problem.vector(problem.from_vector(vector))
    np.testing.assert_allclose(again, vector, rtol=1e-12, atol=1e-12)


def test_zeros_are_fixed():
    x, y = sf.Finite("x", ["a", "b", "c"]), sf.Finite("y", ["u", "v"])
    start = sf.BayesNet("x -> y", {"x": [0.5, 0.5, 0.0], "y": [[1.0, 0.0], [0.3, 0.7], [0.5, 0.5]]}, variables=[x, y])
    data = sf.scan({"x": ["a", "b", None, "b"], "y": ["u", "v", "u", "u"]}, [x, y])
    run = gradient("x -> y", data, start=start)
    assert run.converged
    assert run.model["x"].probs[2] == 0.0
    assert run.model["y"].probs[0].tolist() == [1.0, 0.0]
    best = em("x -> y", data, start=start, tol=1e-12)
    assert run.objective == pytest.approx(best.objective, abs=1e-6)


@pytest.mark.parametrize(("make", "options"), CASES)
def test_the_optimum_is_that_of_em(make, options):
    problem = make(4, **options)
    begin = problem.first()
    start = problem.network(begin, problem.expect(begin).statistic, "")
    given = {"prior": options.get("prior"), "estimate": options.get("estimate"), "start": start}
    run = gradient(problem.dag, problem.rows, **given)
    best = em(problem.dag, problem.rows, **given, tol=1e-10, max_iter=20_000)
    assert run.converged
    assert run.objective == pytest.approx(best.objective, abs=1e-6 * (1 + 1e-3 * abs(best.objective)))
    values = [t.objective for t in run.trace]
    assert all(b >= a for a, b in pairwise(values))
    assert [t.seconds for t in run.trace] == sorted(t.seconds for t in run.trace)
    fitted = problem.parameters({n: run.model[n] for n in run.model})
    assert run.log_likelihood == pytest.approx(problem.expect(fitted).log_likelihood, abs=1e-9)


def test_fewer_iterations_than_em_where_em_is_slow():
    dag, rows, hidden = latent_classes()
    given = {"hidden": hidden, "starts": 1, "seed": 3}
    run, slow = gradient(dag, rows, **given), em(dag, rows, **given, tol=1e-8, max_iter=20_000)
    assert run.objective == pytest.approx(slow.objective, abs=1e-4)
    assert run.n_iterations * 5 < slow.n_iterations


def test_the_plain_form_comes_to_the_same():
    dag, rows, hidden = latent_classes(60)
    given = {"hidden": hidden, "starts": 1, "seed": 1, "prior": sf.Dirichlet(2)}
    plain = gradient(dag, rows, **given, method=Projected(), max_iter=5_000, tol=1e-8)
    quick = gradient(dag, rows, **given)
    assert plain.converged
    assert plain.objective == pytest.approx(quick.objective, abs=1e-3)
    values = [t.objective for t in plain.trace]
    assert all(b >= a for a, b in pairwise(values))


@pytest.mark.parametrize("seed", range(5))
def test_a_projection_is_the_nearest_point(seed):
    rng = np.random.default_rng(seed)
    row = rng.normal(0.3, 1.0, 4)
    inside = np.array([True, True, True, seed % 2 == 0])
    near = project_rows(row[None], inside[None])[0]
    assert near.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(near[inside] > 0)
    others = rng.dirichlet(np.ones(inside.sum()) * 0.3, 2_000)
    distance = ((others - row[inside]) ** 2).sum(axis=1)
    assert ((near[inside] - row[inside]) ** 2).sum() <= distance.min() + 1e-8


def test_restarts_keep_the_best_and_are_reproducible():
    dag, rows, hidden = latent_classes(60)
    given = {"hidden": hidden, "seed": 5, "max_iter": 15}
    one, two = (gradient(dag, rows, starts=3, **given) for _ in range(2))
    assert one.objective == two.objective
    assert one.model == two.model
    alone = gradient(dag, rows, starts=1, **given)
    assert one.objective >= alone.objective
    assert "best of 3 starts" in one.model.fit_info


def test_a_limit_or_an_interrupt_gives_the_best_so_far(monkeypatch):
    dag, rows, hidden = latent_classes(100)
    short = gradient(dag, rows, hidden=hidden, starts=1, max_iter=3)
    assert (short.n_iterations, short.converged) == (3, False)
    with pytest.raises(sf.SufficeError, match="time limit"):
        gradient(dag, rows, hidden=hidden, time_limit=1e-9)

    from suffice.learning.gradient import GradientAscent

    plain = GradientAscent.step

    def interrupted(self: GradientAscent, point: Any) -> None:
        plain(self, point)
        if len(self.trace) == 4:
            raise KeyboardInterrupt

    monkeypatch.setattr(GradientAscent, "step", interrupted)
    with pytest.warns(sf.SufficeNote, match="best so far"):
        run = gradient(dag, rows, hidden=hidden)
    assert (run.n_iterations, run.converged) == (4, False)
    problem = problem_of(dag, rows, hidden=hidden)
    fitted = problem.parameters({n: run.model[n] for n in run.model})
    assert run.log_likelihood == pytest.approx(problem.expect(fitted).log_likelihood)


def test_complete_rows_need_hardly_an_iteration():
    rows = {"x": ["a", "a", "b", "b"], "y": ["u", "v", "v", "v"]}
    run = gradient("x -> y", rows, prior=sf.BDeu(1))
    np.testing.assert_allclose(run.model["y"].probs, sf.fit("x -> y", rows, prior=sf.BDeu(1))["y"].probs, atol=1e-4)
    one = gradient("x", {"x": ["a", "a"]})
    assert (one.converged, one.n_iterations, one.objective) == (True, 1, 0.0)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"method": "lbfgs"}, r"LBFGS\(\) or Projected\(\)"),
        ({"method": LBFGS}, r"LBFGS\(\) or Projected\(\)"),
        ({"tol": -1}, "tol"),
        ({"max_iter": 0}, "max_iter"),
        ({"starts": 0}, "starts"),
        ({"start": "x"}, "a start is a network"),
    ],
)
def test_what_is_wrong_is_said(options, words):
    with pytest.raises(sf.SufficeError, match=words):
        gradient("x", {"x": ["a", "b", None]}, **options)


def test_options_are_checked():
    with pytest.raises(sf.SufficeError, match="step"):
        Projected(step=0.0)
    with pytest.raises(sf.SufficeError, match="memory"):
        LBFGS(memory=0)


def test_the_plain_form_is_for_tables():
    with pytest.raises(sf.SufficeError, match=r"'x' is Gaussian"):
        gradient("u -> x", holes(random_rows(0), 0.2, 0), method=Projected())


def test_a_variance_that_falls_to_zero_is_no_estimate():
    rows = {"x": [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 5.0]}
    with pytest.raises(sf.SufficeError, match="collapsed"):
        gradient("h -> x", rows, hidden=[sf.Finite("h", ["p", "q"])], starts=1)


def test_a_network_brings_its_regressions_and_ties() -> None:
    rng = np.random.default_rng(3)
    x, smoke = rng.normal(size=150), rng.choice(["no", "yes"], 150)
    ill = np.where(rng.random(150) < 1.0 / (1.0 + np.exp(-x - (smoke == "yes"))), "yes", "no")
    rows = {"x": x, "smoke": smoke, "ill": ill}
    bn = sf.fit("x -> ill; smoke -> ill", rows, families={"ill": sf.Logistic()})
    gaps = {**rows, "smoke": [None if i % 7 == 0 else s for i, s in enumerate(smoke)]}
    assert gradient(bn, gaps, tol=1e-10).objective == pytest.approx(em(bn, gaps, tol=1e-10).objective, abs=1e-6)

    pairs = {"a": list("xyxx") * 9, "b": list("xxyx") * 9, "c": list("uvvu") * 9, "d": list("uvuu") * 9}
    tied = sf.fit("a -> c; b -> d", pairs, shared=[("a", "b"), ("c", "d")])
    pairs["a"][3] = pairs["c"][8] = None
    model = gradient(tied, pairs, tol=1e-10).model
    assert model.shared == tied.shared
    assert model["c"].probs.tolist() == model["d"].probs.tolist()
    assert model["c"].probs == pytest.approx(em(tied, pairs, tol=1e-10).model["c"].probs, abs=1e-4)
