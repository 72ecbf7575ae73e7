"""Which principle is one argument: every combination that there is runs, every other is refused with the nearest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from building.cells import code_of
from suffice.learning.principles import KINDS, OBJECTIVES, in_markdown, objective_in_python

ROOT = Path(__file__).parents[2]


def rows(n: int = 120) -> dict[str, Any]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    a, b = ((y + (rng.random(n) < share)) % 2 for share in (0.3, 0.4))
    named = {name: [f"{name}{i}" for i in v] for name, v in (("y", y), ("a", a), ("b", b))}
    return {**named, "u": y + rng.normal(size=n), "v": a + rng.normal(size=n), "s": np.arange(n) // 10}


TABLE = rows()
VALUES: dict[type, Any] = {
    sf.Likelihood: sf.Likelihood(),
    sf.objectives.Bayes: sf.objectives.Bayes(sf.BDeu(2)),
    sf.Conditional: sf.Conditional("y"),
    sf.Margin: sf.Margin("y"),
    sf.objectives.Perceptron: sf.objectives.Perceptron("y"),
    sf.MaxEntropy: sf.MaxEntropy(),
    sf.PseudoLikelihood: sf.PseudoLikelihood(),
    sf.ContrastiveDivergence: sf.ContrastiveDivergence(),
}


def columns(*names: str) -> dict[str, Any]:
    return {n: TABLE[n] for n in names}


def turns() -> sf.chains.Sequences:
    return sf.sequences(columns("y", "a", "b", "s"), by="s")


def features() -> sf.undirected.Features:
    states = [sf.Finite(n, [f"{n}0", f"{n}1"]) for n in ("a", "y")]
    return sf.undirected.Features(
        {"alone": (("a",), {"a1": 1}), "target": (("y",), {"y1": 1}), "both": (("a", "y"), {("a1", "y1"): 1})}, over=states
    )


def few(goal: Any) -> dict[str, Any]:
    return {"method": sf.methods.RobbinsMonro(5)} if isinstance(goal, sf.ContrastiveDivergence) else {}


FITS: dict[str, Any] = {
    "a Bayesian network": lambda goal: sf.fit("y -> a; y -> b", columns("y", "a", "b"), objective=goal),
    "a chain of slices": lambda goal: sf.fit("y[-1] -> y -> a", turns(), objective=goal),
    "a log-linear model": lambda goal: sf.fit("y -- a; y -- b", columns("y", "a", "b"), objective=goal, **few(goal)),
    "a model of features": lambda goal: sf.fit(features(), columns("y", "a"), objective=goal, **few(goal)),
    "graphs of real columns": lambda goal: sf.fit("u -- v", columns("u", "v"), objective=goal),
    "a LinearChain": lambda goal: sf.fit(
        sf.LinearChain("y", [sf.Window(["a", "b"])]),
        turns(),
        objective=goal,
        penalty=None if isinstance(goal, sf.objectives.Perceptron) else sf.L2(1),
    ),
    "an RBM": lambda goal: sf.undirected.rbm(columns("y", "a", "b"), 2, objective=goal, epochs=1).model,
}


@pytest.mark.parametrize("objective", OBJECTIVES, ids=lambda o: o.__name__)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_cell_of_the_table(kind: Any, objective: type) -> None:
    fit, goal = FITS[kind.name], VALUES[objective]
    if objective in kind.takes:
        assert fit(goal).fit_info
        return
    with pytest.raises(sf.SufficeError) as refused:
        fit(goal)
    said = str(refused.value)
    assert said.startswith(f"{goal!r} is not for {kind.name}"), said
    assert "the nearest is " in said
    near = next(o for o in OBJECTIVES if f"the nearest is {objective_in_python(o, 'y')}" in said)
    assert near in kind.takes
    assert f"{objective.__name__} is for " in said
    assert fit(VALUES[near]).fit_info


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("wrong", [sf.Likelihood, sf.Conditional, "likelihood", 3])
def test_an_objective_is_a_value(kind: Any, wrong: Any) -> None:
    with pytest.raises(sf.SufficeError, match="an objective is a value: objective="):
        FITS[kind.name](wrong)


@pytest.mark.parametrize("goal", [sf.Conditional, sf.Margin, sf.objectives.Perceptron])
def test_a_target_is_a_name(goal: Any) -> None:
    for wrong in (3, "", ["y"], None):
        with pytest.raises(sf.SufficeError, match="is about one column, by its name"):
            goal(wrong)


def test_bayes_is_the_prior_to_the_bit() -> None:
    prior = sf.BDeu(3)
    for fit in (
        lambda **how: sf.fit("y -> a; y -> b", columns("y", "a", "b"), **how),
        lambda **how: sf.fit("y[-1] -> y -> a", turns(), **how),
    ):
        one, other, plain = fit(objective=sf.objectives.Bayes(prior)), fit(prior=prior), fit(objective=sf.Likelihood())
        assert all(np.array_equal(one[n].probs, other[n].probs) for n in one)
        assert one.prior == other.prior
        assert one.fit_info == other.fit_info
        assert all(np.array_equal(plain[n].probs, fit()[n].probs) for n in plain)
    one, other = (
        sf.fit("y -- a; y -- b", columns("y", "a", "b"), **how)
        for how in ({"objective": sf.objectives.Bayes(prior)}, {"prior": prior})
    )
    assert all(np.array_equal(f.log, g.log) for f, g in zip(one.factors, other.factors, strict=True))
    assert one.log_evidence == other.log_evidence
    both = (sf.BDeu(1), sf.NormalInverseGamma())
    mixed = [sf.fit("y -> u", columns("y", "u"), **how) for how in ({"objective": sf.objectives.Bayes(both)}, {"prior": both})]
    assert np.array_equal(mixed[0]["u"].variance, mixed[1]["u"].variance)
    mode = sf.fit("y -> a", columns("y", "a"), objective=sf.objectives.Bayes(sf.Dirichlet(2)), estimate=sf.Mode())
    assert "posterior mode" in mode.fit_info


def test_bayes_is_of_one_prior() -> None:
    with pytest.raises(sf.SufficeError, match="leave one out"):
        sf.fit("y -> a", columns("y", "a"), objective=sf.objectives.Bayes(sf.BDeu(1)), prior=sf.BDeu(1))
    with pytest.raises(sf.SufficeError, match="Bayes is of a prior"):
        sf.objectives.Bayes(None)
    with pytest.raises(sf.SufficeError):
        sf.objectives.Bayes(sf.BIC())
    assert hash(sf.objectives.Bayes(sf.BDeu(1))) == hash(sf.objectives.Bayes(sf.BDeu(1)))


def test_penalties_are_of_weights() -> None:
    for goal in (None, sf.Likelihood(), sf.objectives.Bayes(sf.BDeu(1))):
        with pytest.raises(sf.SufficeError, match="penalty= is for weights"):
            sf.fit("y -> a", columns("y", "a"), objective=goal, penalty=sf.L2(1))


def test_the_table_of_the_documentation_is_made_from_code() -> None:
    assert in_markdown() in (ROOT / "docs" / "principles.md").read_text("utf-8")


def compared_in_markdown(compared: Any, *, seconds: bool) -> str:
    """The table of the documentation; seconds differ from run to run."""
    head = ["principle", "log-likelihood", "conditional", "accuracy", "calibration error", "seconds"]
    lines = [head, ["---"] * 6]
    for name in compared.folds:
        s = compared[name]
        numbers = [s.log_likelihood / s.weight, s.conditional / s.weight, s.accuracy, s.calibration_error]
        lines.append([f"`{name}`", *(f"{x:.3f}" for x in numbers), f"{s.seconds:.2f}" if seconds else ""])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def without_seconds(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")[1:-2]] for line in table.splitlines()]


def test_the_five_principles_of_the_documentation_are_what_they_are() -> None:
    page = (ROOT / "docs" / "principles.md").read_text("utf-8")
    cell = next(cell for cell in code_of(page) if "compared = " in cell.source)
    namespace = {"sf": sf}
    exec(compile(cell.source, "principles.md", "exec"), namespace)
    shown = page[page.index("| principle |") :].split("\n\n")[0]
    found = compared_in_markdown(namespace["compared"], seconds=False)
    assert without_seconds(shown)[:2] == without_seconds(found)[:2]
    for mine, theirs in zip(without_seconds(shown)[2:], without_seconds(found)[2:], strict=True):
        assert mine[0] == theirs[0]
        np.testing.assert_allclose([float(x) for x in mine[1:]], [float(x) for x in theirs[1:]], atol=2e-3)


def conditional(model: Any, table: dict[str, Any]) -> np.ndarray:
    probs = model.predict_proba({n: c for n, c in table.items() if n != "y"}, "y")
    return np.stack([np.asarray(probs[s]) for s in model.variables["y"].states], axis=1)


@pytest.mark.parametrize("penalty", [None, sf.L2(0.7)])
def test_a_star_is_naive_bayes_is_logistic_regression(penalty: Any) -> None:
    table = columns("y", "a", "b")
    star = sf.fit("y -- a; y -- b", table, objective=sf.Conditional("y"), penalty=penalty)
    naive = sf.fit("y -> a; y -> b", table, objective=sf.Conditional("y"), penalty=penalty)
    np.testing.assert_allclose(conditional(star, table), conditional(naive, table), atol=1e-6)
    if penalty is None:
        softmax = sf.fit("a -> y; b -> y", table, families={"y": sf.Logistic()})
        np.testing.assert_allclose(conditional(star, table), conditional(softmax, table), atol=1e-6)
        return
    from sklearn.linear_model import LogisticRegression

    X = np.stack([np.array(table[n]) == f"{n}{i}" for n in "ab" for i in (0, 1)] + [np.ones(120)], axis=1).astype(float)
    # weights of both states, each half of the plain one: Σ w² is half of it
    ridge = LogisticRegression(C=1 / penalty.strength, tol=1e-10, fit_intercept=False).fit(X, table["y"])
    np.testing.assert_allclose(conditional(star, table), ridge.predict_proba(X), atol=1e-5)


def test_undirected_conditional_likelihood_is_concave_and_leaves_the_rest() -> None:
    from suffice.learning.undirected.problem import UndirectedProblem
    from suffice.learning.undirected.without_tree import rows_of
    from suffice.objectives.principles import PenaltySum

    table = columns("y", "a", "b")
    model = sf.LogLinear([("a", "b"), ("a", "y"), ("b", "y")])
    net, plain = sf.fit(model, table, objective=sf.Conditional("y")), sf.fit(model, table)
    np.testing.assert_allclose(net.weights[("a", "b")], plain.weights[("a", "b")], atol=1e-9)
    true = np.array([int(y[1]) for y in table["y"]])
    logs = [float(np.log(conditional(m, table)[np.arange(120), true]).sum()) for m in (net, plain)]
    assert logs[0] >= logs[1] - 1e-9
    assert f"{logs[0]:,.4f}" in net.fit_info
    assert plain.log_likelihood(table) >= net.log_likelihood(table) - 1e-9
    variables = {n: plain.variables[n] for n in model.nodes}
    problem = UndirectedProblem(model, variables, sf.scan(table), sf.Conditional("y"), PenaltySum())
    own, terms = rows_of(problem, "y"), problem.terms
    w = np.random.default_rng(0).normal(size=terms.n_weights)
    slope = terms.by_weight(own.loss(terms.log_tables(w))[1])
    for k in range(terms.n_weights):
        e = np.eye(terms.n_weights)[k] * 1e-5
        ahead, back = (own.loss(terms.log_tables(x))[0] for x in (w + e, w - e))
        assert (ahead - back) / 2e-5 == pytest.approx(slope[k], abs=1e-4)


def test_undirected_conditional_likelihood_takes_an_l1_and_is_kept_in_files(tmp_path: Path) -> None:
    table = columns("y", "a", "b")
    sparse = sf.fit(sf.Pairwise("y -- a; y -- b"), table, objective=sf.Conditional("y"), penalty=sf.L1(15.0))
    assert (sparse.weights[("b", "y")] == 0.0).all()
    assert (sparse.weights[("a", "y")] != 0.0).any()
    sf.write(sparse, tmp_path / "net.json")
    again = sf.read(tmp_path / "net.json")
    assert again.objective == sf.Conditional("y")
    np.testing.assert_array_equal(conditional(again, table), conditional(sparse, table))
    spins = sf.fit(sf.Ising("y -- a; y -- b"), table, objective=sf.Conditional("y"))
    star = sf.fit("y -- a; y -- b", table, objective=sf.Conditional("y"))
    np.testing.assert_allclose(conditional(spins, table), conditional(star, table), atol=1e-6)


def test_undirected_conditional_likelihood_refuses() -> None:
    table = columns("y", "a", "b")
    for how, said in (
        ({"objective": sf.Conditional("z")}, "no node of the model"),
        ({"objective": sf.Conditional("y"), "prior": sf.BDeu(1)}, "has no place for them"),
        ({"objective": sf.Conditional("y"), "method": sf.methods.IPF()}, r"is LBFGS\(\)"),
    ):
        with pytest.raises(sf.SufficeError, match=said):
            sf.fit("y -- a; y -- b", table, **how)
    told = {"y": list("uuvv") * 5, "a": list("ppqq") * 5, "b": list("xyxy") * 5}
    with pytest.raises(sf.SufficeError, match=r"penalty=L2"):
        sf.fit("y -- a; y -- b", told, objective=sf.Conditional("y"))
    assert sf.fit("y -- a; y -- b", told, objective=sf.Conditional("y"), penalty=sf.L2(0.1)).fit_info
    with pytest.raises(sf.SufficeError, match="together"):
        sf.fit("y -- a; y -- b", sf.gather(table, "y -> a; y -> b"), objective=sf.Conditional("y"))
    whole = sf.scan(table).gather([sf.statistics.Request(("a", "b", "y"))])
    one, other = (sf.fit("y -- a; y -- b", data, objective=sf.Conditional("y")) for data in (table, whole))
    np.testing.assert_allclose(conditional(one, table), conditional(other, table), atol=1e-9)
