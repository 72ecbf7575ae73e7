"""Log-linear models of tables: golden numbers, three ways to one estimate, what penalties and priors do, what is refused."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array

import suffice as sf
from suffice.errors import DataError, FitError, GraphError, MissingCells, ModelError, StatisticsError
from suffice.learning.undirected.ipf import CliqueTree
from suffice.learning.undirected.likelihood import Curved, newton
from suffice.numerics.inference.finite.junction_tree import FactorTree

REFERENCE = Path(__file__).parents[2] / "reference"


def table(name: str) -> sf.Statistics:
    return sf.Statistics.load(REFERENCE / f"{name}.stats")


def all_terms(order: int, statistics: sf.Statistics) -> sf.LogLinear:
    return sf.LogLinear.all(order, statistics.variables)


GOLDEN = [
    ("hair_eye_color", 1, 166.3001395005, 24, -1897.306729669),
    ("hair_eye_color", 2, 6.7612504188, 9, -1817.53728513),
    ("ucb_admissions", 1, 2097.6712124171, 16, -14107.659657623),
    ("ucb_admissions", 2, 20.2042753272, 5, -13068.92618908),
    ("titanic_persons", 1, 1243.6632311919, 25, -5773.348732642),
    ("titanic_persons", 2, 116.5880330072, 13, -5209.811133550),
    ("titanic_persons", 3, 0.0, 3, -5151.517117047),
]


@pytest.mark.parametrize(("name", "order", "deviance", "df", "log_likelihood"), GOLDEN)
def test_golden_numbers(name: str, order: int, deviance: float, df: int, log_likelihood: float) -> None:
    seen = table(name)
    net = sf.fit(all_terms(order, seen), seen)
    assert net.deviance == pytest.approx(deviance, abs=2e-9)
    assert net.df == df
    assert net.log_likelihood() == pytest.approx(log_likelihood, abs=2e-8)
    assert sf.score(all_terms(order, seen), seen, sf.BIC()) == pytest.approx(net.bic(), abs=1e-9)


def test_pearson_and_p_values() -> None:
    seen = table("hair_eye_color")
    net = sf.fit(all_terms(2, seen), seen)
    assert net.pearson == pytest.approx(6.86902724, abs=1e-8)
    assert net.p_value == pytest.approx(0.662, abs=5e-4)
    assert "Pearson" in repr(net.goodness_of_fit)


def test_zero_margins_give_the_extended_estimate_with_both_degrees_of_freedom() -> None:
    seen = table("titanic_persons")
    for method in (None, sf.methods.IPF(), sf.methods.LBFGS()):
        net = sf.fit(all_terms(2, seen), seen, method=method)
        fit = net.goodness_of_fit
        assert (fit.n_fitted_zeros, fit.df, fit.df_adjusted) == (4, 13, 10)
        assert net.deviance == pytest.approx(116.5880330072, abs=1e-6)
        assert net.query("Age", given={"Class": "Crew"})["Child"] == 0.0
        assert fit.p_value_adjusted < fit.p_value
    with pytest.raises(FitError, match="impossible"):
        _ = net.weights
    with pytest.raises(ModelError, match="on the boundary"):
        _ = net.standard_errors


def test_the_way_is_said() -> None:
    seen = table("hair_eye_color")
    assert "closed form: the model is decomposable" in sf.fit(all_terms(1, seen), seen).fit_info
    assert "by IPF" in sf.fit(all_terms(2, seen), seen).fit_info
    assert "by L-BFGS" in sf.fit(all_terms(2, seen), seen, method=sf.methods.LBFGS()).fit_info
    assert "L2(0.5)" in sf.fit(all_terms(1, seen), seen, penalty=sf.L2(0.5)).fit_info


def test_closed_form_ipf_and_lbfgs_agree_on_a_decomposable_graph() -> None:
    seen = table("titanic_persons")
    graph = sf.Graph("Sex -- Survived; Survived -- Age; Age -- Sex; Survived -- Class")
    closed, cycles, steps = (sf.fit(graph, seen, method=method) for method in (None, sf.methods.IPF(), sf.methods.LBFGS()))
    for other in (cycles, steps):
        assert other.log_likelihood() == pytest.approx(closed.log_likelihood(), abs=1e-7)
        assert other.query(["Sex", "Class"]).probs == pytest.approx(closed.query(["Sex", "Class"]).probs, abs=1e-9)
        assert other.weights["Sex", "Survived"] == pytest.approx(closed.weights["Sex", "Survived"], abs=1e-5)


def test_deviance_is_that_of_a_poisson_regression() -> None:
    from statsmodels.api import GLM
    from statsmodels.genmod.families import Poisson

    seen = table("hair_eye_color")
    net = sf.fit(all_terms(2, seen), seen)
    names = list(net.variables)
    counts = seen.counts(names).values.reshape(-1)
    terms = net.terms
    design = (terms.design(names, np.arange(counts.size)) @ terms.contrasts).toarray()
    result = GLM(counts, np.column_stack([np.ones(len(counts)), design]), family=Poisson()).fit(tol=1e-12)
    assert net.deviance == pytest.approx(result.deviance, abs=1e-8)
    errors = np.sqrt(np.diag(terms.contrasts @ result.cov_params()[1:, 1:] @ terms.contrasts.T.toarray()))
    ours = np.concatenate([net.standard_errors[t.scope].reshape(-1) for t in terms.terms])
    assert ours == pytest.approx(errors, rel=1e-5)
    columns = {f"x{i}": design[:, i] for i in range(design.shape[1])} | {"n": counts.astype(int)}
    variables = {f"x{i}": sf.Real for i in range(design.shape[1])} | {"n": sf.Count}
    dag = sf.Dag({"n": [f"x{i}" for i in range(design.shape[1])]})
    bn = sf.fit(dag, sf.scan(columns, variables=variables), families={"n": sf.regressions.PoissonLog()})
    cells = list(product(*(net.variables[n].states for n in names)))
    logs = np.log(counts.sum()) + net.log_prob({n: [c[i] for c in cells] for i, n in enumerate(names)})
    fitted = bn["n"].intercept + design @ bn["n"].coefficients
    assert logs == pytest.approx(fitted, abs=1e-6)


def test_margins_match_on_a_graph_whose_table_would_be_too_large() -> None:
    rng = np.random.default_rng(0)
    names = [f"n{i:02d}" for i in range(20)]
    edges = [(names[i], names[j]) for i in range(20) for j in range(max(0, i - 4), i) if rng.random() < 0.6]
    rows = {n: rng.integers(0, 3, 400).astype(str) for n in names}
    data = sf.scan(rows)
    model = sf.Pairwise(sf.Graph(edges, nodes=names))
    one, other = (sf.fit(model, data, method=method) for method in (sf.methods.IPF(), sf.methods.LBFGS()))
    assert one.log_likelihood() == pytest.approx(other.log_likelihood(), abs=1e-5)
    seen = sf.gather(data, model)
    for a, b in edges[:5]:
        assert one.query([a, b]).probs == pytest.approx(seen.counts([a, b]).values / 400, abs=1e-9)
    with pytest.raises(ModelError, match="table of 'n00'"):
        _ = one.deviance


def test_boundary_without_zero_margins_is_told_by_name() -> None:
    seen = table("asia.pairs")
    model = sf.LogLinear.all(2, "ASTLBEXD")
    for method in (None, sf.methods.LBFGS()):
        with pytest.raises(FitError, match=r"does not exist: .* joint states.*run off to infinity; penalty=L2"):
            sf.fit(model, seen, method=method)
    assert np.isfinite(sf.fit(model, seen, penalty=sf.L2(1.0)).log_likelihood())
    assert np.isfinite(sf.fit(model, seen, prior=sf.BDeu(1)).log_likelihood())


def test_a_small_boundary_found_by_enumeration() -> None:
    """x = y = z, or none of the two-way margins is zero, but (0,0,0) and (1,1,1) never: Haberman's table."""
    counts = np.array([[[0.0, 3.0], [4.0, 5.0]], [[2.0, 6.0], [7.0, 0.0]]])
    variables = tuple(sf.Finite(n, ["0", "1"]) for n in "xyz")
    seen = sf.Statistics([sf.statistics.Counts(variables, counts)], counts.sum())
    with pytest.raises(FitError, match="2 joint states"):
        sf.fit(sf.LogLinear.all(2, "xyz"), seen)


def penalised(net: sf.MarkovNet, seen: sf.Statistics) -> tuple[np.ndarray, np.ndarray]:
    """The weights, and the gradient of −log L by them."""
    terms = net.terms
    tree = FactorTree(terms.network(), "a test")
    expected = seen.weight * tree(terms.log_tables(net.flat_weights)).probs
    return net.flat_weights, terms.by_weight(expected - terms.count_cells(seen))


def test_penalties_hold_at_their_optimum() -> None:
    seen = table("ucb_admissions")
    model = all_terms(2, seen)
    w, slope = penalised(sf.fit(model, seen, penalty=sf.L2(3.0)), seen)
    assert slope + 6.0 * w == pytest.approx(np.zeros(len(w)), abs=1e-3)
    net = sf.fit(model, seen, penalty=sf.L1(20.0))
    w, slope = penalised(net, seen)
    assert (w == 0.0).any()
    assert np.abs(slope[w == 0.0]).max() <= 20.0 + 1e-3
    assert slope[w != 0.0] == pytest.approx(-20.0 * np.sign(w[w != 0.0]), abs=1e-2)
    w, slope = penalised(sf.fit(model, seen, penalty=sf.L1({("Admit", "Dept"): 20.0}) + sf.L2(1.0)), seen)
    own = np.concatenate([np.full(t.n_weights(net.variables), 20.0 * (t.scope == ("Admit", "Dept"))) for t in net.terms.terms])
    free = w != 0.0
    assert (slope + 2.0 * w + own * np.sign(w))[free] == pytest.approx(np.zeros(free.sum()), abs=1e-2)


def test_penalties_by_matrix_and_by_name_agree() -> None:
    seen = table("ucb_admissions")
    matrix = np.array([[0.0, 1.0, 2.0], [1.0, 0.0, 3.0], [2.0, 3.0, 0.0]])
    named = {("Admit", "Dept"): 1.0, ("Admit", "Gender"): 2.0, ("Dept", "Gender"): 3.0}
    model = all_terms(2, seen)
    a, b = (sf.fit(model, seen, penalty=sf.L2(strength)) for strength in (matrix, named))
    assert a.flat_weights == pytest.approx(b.flat_weights, abs=1e-6)


def test_a_dirichlet_prior_of_a_decomposable_graph_is_hyper_dirichlet() -> None:
    seen = table("titanic_persons")
    graph = sf.Graph("Class -- Survived; Survived -- Sex; Survived -- Age; Sex -- Age")
    dag = sf.Dag("Survived -> Class; Survived -> Sex; Survived, Sex -> Age")
    net, bn = sf.fit(graph, seen, prior=sf.BDeu(8)), sf.fit(dag, seen, prior=sf.BDeu(8))
    assert net.log_evidence == pytest.approx(sf.score(dag, seen, sf.Evidence(sf.BDeu(8))), abs=1e-8)
    assert sf.score(graph, seen, sf.Evidence(sf.BDeu(8))) == net.log_evidence
    assert net.query(["Class", "Age"]).probs == pytest.approx(bn.query(["Class", "Age"]).probs, abs=1e-12)
    square = sf.fit(sf.Graph("Class -- Survived -- Sex -- Age -- Class"), seen, prior=sf.BDeu(8))
    expected = (seen.counts(["Age", "Sex"]).values + 2.0) / (seen.weight + 8.0)
    assert square.query(["Age", "Sex"]).probs == pytest.approx(expected, abs=1e-10)
    with pytest.raises(ModelError, match="decomposable graph with a Dirichlet prior"):
        _ = square.log_evidence


def test_statistics_add_up_to_the_same_network() -> None:
    rng = np.random.default_rng(1)
    rows = {n: rng.integers(0, 2, 300).astype(str) for n in "abcd"}
    model = sf.LogLinear([("a", "b"), ("b", "c"), ("c", "d"), ("d", "a")])
    parts = [sf.gather({n: c[i::2] for n, c in rows.items()}, model) for i in range(2)]
    added, whole = sf.fit(model, parts[0] + parts[1]), sf.fit(model, rows)
    assert [f.log.tolist() for f in added.factors] == [f.log.tolist() for f in whole.factors]
    assert whole.deviance > 0.0
    assert sf.gather(rows, "a -- b; c").counts(["c"]).total == 300


def test_ising_by_brute_force() -> None:
    k = np.arange(512)
    spins = 2 * ((k[:, None] >> np.arange(8, -1, -1)) & 1) - 1
    weight = 1.0 + (37 * k + 11) % 101 + 40.0 * (np.abs(spins.sum(axis=1)) >= 5)
    variables = tuple(sf.Finite(f"s{i}", ["-1", "+1"]) for i in range(1, 10))
    seen = sf.Statistics([sf.statistics.Counts(variables, weight.reshape([2] * 9))], weight.sum())
    assert weight.sum() == 29791
    edges = [(f"s{i}", f"s{i + 1}") for i in (1, 2, 4, 5, 7, 8)] + [(f"s{i}", f"s{i + 3}") for i in range(1, 7)]
    for method in (None, sf.methods.IPF(), sf.methods.LBFGS()):
        net = sf.fit(sf.Ising(edges), seen, method=method)
        assert net.log_likelihood() == pytest.approx(-185589.767949234, abs=1e-8)
        assert net.log_normaliser == pytest.approx(6.246916254711, abs=1e-9)
        assert net.fields["s1"] == pytest.approx(0.00432846, abs=1e-8)
        assert net.couplings["s1", "s2"] == pytest.approx(0.04097632, abs=1e-8)
        assert net.couplings["s1", "s4"] == pytest.approx(0.04096291, abs=1e-8)
    as_pairs = sf.fit(sf.Pairwise(edges), seen)
    assert as_pairs.weights["s1", "s2"] == pytest.approx(0.04097632 * np.array([[1, -1], [-1, 1]]), abs=1e-8)
    assert net.n_parameters == as_pairs.n_parameters == 21


TWO = {"a": list("xxyyxy"), "b": list("uvuvuu")}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: sf.fit("a -- z", TWO), DataError, "no column 'z'"),
        (
            lambda: sf.fit("a -- b", {"a": ["x", None], "b": ["u", "v"]}),
            MissingCells,
            r"missing cells \('a' 1\).*EM of them is not",
        ),
        (lambda: sf.fit("a -- b", {**TWO, "a": [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]}), FitError, "'a' is Real"),
        (lambda: sf.fit(sf.Ising("a -- b"), {**TWO, "a": list("xyzxyz")}), FitError, "'a' has 3 states .*Pairwise"),
        (lambda: sf.fit(sf.Ising("a -- b"), {"a": list("xxyy"), "b": list("uuuv")}), FitError, "no row has a='x', b='v'"),
        (lambda: sf.Ising(sf.Dag("a -> b")), GraphError, "this is a Dag, not a Graph"),
        (lambda: sf.fit("a -- b", TWO, penalty=0.5), FitError, "a penalty is a value"),
        (lambda: sf.fit("a -- b", TWO, penalty=sf.L2), FitError, "penalty=L2"),
        (lambda: sf.L1(-1.0), FitError, "above 0, not -1"),
        (lambda: sf.L1(0.0), FitError, "above 0"),
        (lambda: sf.L2([[1.0, 2.0], [3.0, 1.0]]), FitError, "symmetric"),
        (lambda: sf.fit(sf.Pairwise("a -- b"), TWO, penalty=sf.L2(np.eye(3))), FitError, r"shape \(2, 2\)"),
        (lambda: sf.fit(sf.Pairwise("a -- b"), TWO, penalty=sf.L2({("a", "q"): 1.0})), FitError, "names 'q'"),
        (lambda: sf.fit(sf.LogLinear(["a", "b"]), TWO, penalty=sf.L2({("a", "b"): 1.0})), FitError, "no such term"),
        (lambda: sf.fit("a -- b", TWO, method=sf.methods.IPF), FitError, r"IPF\(\) or LBFGS\(\)"),
        (lambda: sf.fit("a -- b", TWO, method=sf.methods.IPF(), penalty=sf.L2(1.0)), FitError, "no place for a penalty"),
        (lambda: sf.fit("a -- b", TWO, prior=sf.BDeu(1), penalty=sf.L2(1.0)), FitError, "not both"),
        (lambda: sf.fit("a -- b", TWO, objective=sf.Likelihood), FitError, r"objective=Likelihood\(\)"),
        (lambda: sf.fit("a -- b", TWO, families={"a": sf.Logistic()}), FitError, "families= is for Bayesian networks"),
        (lambda: sf.fit("a -> b", TWO, penalty=sf.L1(1.0)), FitError, "penalty= is for weights: of undirected models"),
        (lambda: sf.fit(sf.Graph("a -- b; b -- c"), {**TWO, "c": list("123123")}, prior=sf.Dirichlet(1)), FitError, "BDeu"),
        (lambda: sf.fit("a -- b", TWO, prior=sf.BGe()), FitError, "imagines no counts"),
        (lambda: sf.LogLinear("ab"), FitError, "generators are sets of names"),
        (lambda: sf.LogLinear([()]), FitError, "a set of different names"),
        (lambda: sf.LogLinear([("a", "a")]), FitError, "a set of different names"),
        (lambda: sf.LogLinear.all(0, "ab"), FitError, "at least 1"),
        (lambda: sf.methods.IPF(tol=2.0), FitError, "between 0 and 1"),
        (
            lambda: sf.score("a -- b -- c -- d -- a", {n: list("xyxy") for n in "abcd"}, sf.Evidence(sf.BDeu(1))),
            ModelError,
            "BIC",
        ),
    ],
)
def test_refusals(call: object, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        call()  # type: ignore[operator]


def test_tables_that_contradict_each_other() -> None:
    x, y, z = (sf.Finite(n, ["a", "b"]) for n in "xyz")
    given = [sf.statistics.Counts((x, y), [[1, 1], [1, 1]]), sf.statistics.Counts((y, z), [[2, 1], [1, 0]])]
    for objective in (sf.Likelihood(), sf.MaxEntropy()):
        with pytest.raises(StatisticsError, match="contradict each other at y='a': they count 2 and 3"):
            sf.fit(sf.LogLinear([("x", "y"), ("y", "z")]), sf.Statistics(given, 4), objective=objective, method=None)


def test_a_tree_too_large_is_refused_with_its_size_and_a_way_out() -> None:
    names = [f"n{i:03d}" for i in range(60)]
    model = sf.Pairwise(sf.Graph.complete(names))
    rng = np.random.default_rng(0)
    rows = {n: rng.integers(0, 2, 100).astype(str) for n in names}
    with pytest.raises(sf.SufficeError, match=r"cells .*PseudoLikelihood\(\) and ContrastiveDivergence\(\) do not need"):
        sf.fit(model, rows)
    with pytest.raises(sf.SufficeError, match="do not need"):
        sf.fit(model, rows, method=sf.methods.LBFGS())


def test_a_cycle_of_cliques_is_triangulated_for_ipf() -> None:
    two = {n: sf.Finite(n, ["x", "y"]) for n in "abcdef"}
    model = sf.LogLinear([tuple("ab"), tuple("bc"), tuple("cd"), tuple("de"), tuple("ef"), tuple("fa")])
    from suffice.models.undirected.factor import Terms

    tree = CliqueTree(Terms.of(model, two))
    assert max(map(len, tree.cliques)) == 3


def test_newton_steps_go_to_the_minimum() -> None:
    two = Curved(csr_array([[0.0], [1.0]]), np.array([0.75]), np.zeros(1))
    assert newton(two, np.zeros(1), 1e-12).x[0] == pytest.approx(np.log(3.0))
