"""The graphical lasso: other programs' numbers, what it promises of its answers, how a penalty is chosen, and what it refuses."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.numerics.inference.numbers.sparse_precision import sparse_precision
from tests.toy_engine import toy

HERE = Path(__file__).parents[2] / "reference"


def moments(name: str) -> sf.Statistics:
    return sf.Statistics.load(HERE / f"{name}.moments.stats")


def chain(p: int = 8, n: int = 150, seed: int = 0) -> dict[str, Any]:
    """x0 - x1 - x2 - …, each pulled by the one before."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, p))
    for j in range(1, p):
        x[:, j] += 0.8 * x[:, j - 1]
    return {f"x{j:0{len(str(p - 1))}d}": x[:, j] for j in range(p)}


def matrix(table: dict[str, Any]) -> Any:
    return np.corrcoef(np.array([table[name] for name in sorted(table)]))


@pytest.mark.parametrize(
    ("name", "penalty", "objective", "edges"),
    [
        ("iris", 0.1, 1.5856915045, 5),
        ("iris", 0.3, 2.9562523758, 4),
        ("wine", 0.1, 8.6454338903, 43),
        ("wine", 0.3, 11.5743400949, 24),
        ("gaussian.test", 0.1, 2.9410698640, 18),
        ("gaussian.test", 0.3, 5.3107767946, 9),
    ],
)
def test_golden_objectives(name: str, penalty: float, objective: float, edges: int) -> None:
    """From scratch code at a gap of 1e-12; moments only, of which those of gaussian.test are figures of a GPL table."""
    found = sf.search(moments(name), method=sf.GraphicalLasso(penalty))
    assert found.path[0].objective == pytest.approx(objective, abs=2e-9)
    assert len(found.graph.edges) == found.path[0].n_edges == edges
    assert found.path[0].gap <= 1e-9
    assert np.abs(found.precision @ found.covariance - np.eye(len(found.names))).max() < 1e-8


def test_golden_precision_and_ebic_of_iris() -> None:
    found = sf.search(moments("iris"), method=sf.GraphicalLasso(0.1, gap=1e-13))
    i, j = found.names.index("sepal_length"), found.names.index("sepal_width")
    assert found.precision[i, i] == pytest.approx(2.548210856, abs=2e-9)
    assert found.precision[i, j] == pytest.approx(-0.0998796926, abs=2e-9)
    assert found.path[0].criterion == pytest.approx(106.184448148, abs=1e-7)
    assert found.score == -found.path[0].criterion


@pytest.mark.parametrize("how", [{}, {"diagonal": True}, {"on": "covariance"}])
def test_the_conditions_of_a_minimum_hold(how: dict[str, Any]) -> None:
    table = chain()
    found = sf.search(table, method=sf.GraphicalLasso(0.15, gap=1e-12, **how))
    S = matrix(table) if "on" not in how else np.cov(np.array([table[n] for n in found.names]), bias=True)
    off = ~np.eye(len(S), dtype=bool)
    pull = S - found.covariance
    assert np.abs(pull[off]).max() <= 0.15 + 1e-6
    there = off & (found.precision != 0)
    np.testing.assert_allclose(pull[there], -0.15 * np.sign(found.precision[there]), atol=1e-6)
    np.testing.assert_allclose(np.diag(pull), -0.15 if "diagonal" in how else 0.0, atol=1e-6)


def test_the_trace_has_the_gap_and_the_objective_falls() -> None:
    found = sf.search(chain(), method=sf.GraphicalLasso(0.1))
    objectives = [step.objective for step in found.trace]
    assert all(b <= a + 1e-12 for a, b in pairwise(objectives))
    assert found.trace[-1].gap <= 1e-9
    assert found.trace[-1].penalty == 0.1


def test_a_penalty_for_each_pair() -> None:
    table = chain(4)
    plain = sf.search(table, method=sf.GraphicalLasso(0.1))
    full = np.full((4, 4), 0.1)
    same = sf.search(table, method=sf.GraphicalLasso(full))
    np.testing.assert_allclose(same.precision, plain.precision, atol=1e-9)
    named = sf.search(table, method=sf.GraphicalLasso({("x1", "x0"): np.inf, None: 0.1}))
    full[0, 1] = full[1, 0] = np.inf
    other = sf.search(table, method=sf.GraphicalLasso(full))
    forbidden = sf.search(table, method=sf.GraphicalLasso(0.1), constraints=sf.Forbid(("x1", "x0")))
    for found in (named, other, forbidden):
        assert ("x0", "x1") not in found.graph.edges
        np.testing.assert_allclose(found.precision, named.precision, atol=1e-9)
    backwards = dict(reversed(table.items()))
    turned = sf.search(backwards, method=sf.GraphicalLasso(full[::-1, ::-1]))
    np.testing.assert_allclose(turned.precision, named.precision, atol=1e-9)


def test_a_required_pair_is_not_penalised() -> None:
    table = chain(4)
    found = sf.search(table, method=sf.GraphicalLasso(0.9, gap=1e-13), constraints=sf.Require(("x3", "x0")))
    assert found.graph.edges == (("x0", "x3"),)
    assert found.covariance[0, 3] == pytest.approx(matrix(table)[0, 3], abs=1e-9)


def test_refit_is_covariance_selection_of_the_graph() -> None:
    table = chain()
    found = sf.search(table, method=sf.GraphicalLasso(0.3, refit=True))
    there = found.precision != 0
    np.testing.assert_allclose(found.covariance[there], matrix(table)[there], atol=1e-9)
    assert found.model.deviance < sf.search(table, method=sf.GraphicalLasso(0.3)).model.deviance


def test_the_path_goes_down_from_the_empty_graph() -> None:
    found = sf.search(chain(), method=sf.GraphicalLasso(n_penalties=7))
    penalties = [entry.penalty for entry in found.path]
    assert len(penalties) == 7
    assert found.path[0].n_edges == 0
    assert penalties[0] == pytest.approx(10 * penalties[-1])
    assert penalties[0] == pytest.approx(np.abs(np.triu(matrix(chain()), 1)).max())
    best = min(found.path, key=lambda entry: entry.criterion)
    assert found.score == -best.criterion
    assert len(found.graph.edges) == best.n_edges
    assert found.path.to_frame().shape == (7, 5)
    assert "penalty" in repr(found.path)


@pytest.mark.parametrize("select", [sf.choices.EBIC(0.0), sf.choices.StARS(0.05, 10), sf.choices.HeldOut(3)])
@pytest.mark.parametrize("method", [sf.GraphicalLasso, sf.Neighbourhoods])
def test_ways_to_choose_find_a_chain_and_do_not_depend_on_threads(select: Any, method: Any) -> None:
    table = chain(12, 400)
    one = sf.search(table, method=method(select=select, n_penalties=10), threads=1)
    two = sf.search(table, method=method(select=select, n_penalties=10), threads=2)
    links = {(f"x{j:02d}", f"x{j + 1:02d}") for j in range(11)}
    assert links <= set(one.graph.edges)
    assert one.graph == two.graph
    assert one.path == two.path
    again = sf.search(table, method=method(select=select, n_penalties=10), seed=1)
    assert links <= set(again.graph.edges)


def test_explanations_and_pickles() -> None:
    found = sf.search(chain(5, 300), method=sf.GraphicalLasso(select=sf.choices.StARS(0.1, 5), n_penalties=8))
    text = repr(found.explain("x1 -- x0"))
    assert "x0 -- x1: an edge" in text
    assert "correlation" in text
    assert "in subsamples" in text
    assert "no edge" in repr(found.explain("x0", "x4"))
    copy = pickle.loads(pickle.dumps(found))
    assert copy.model == found.model
    assert copy.strengths == found.strengths == pytest.approx(found.model.partial_correlations)
    assert repr(copy.explain("x1", "x0")) == text


def test_engines_files_and_merged_moments_agree(tmp_path: Path) -> None:
    table = chain(5, 120)
    here = sf.search(table, method=sf.GraphicalLasso(0.1))
    rows = np.column_stack([table[name] for name in sorted(table)])
    lines = [",".join(sorted(table)), *(",".join(map(repr, row)) for row in rows.tolist())]
    (tmp_path / "rows.csv").write_text("\n".join(lines) + "\n")
    names = tuple(sorted(table))
    halves = [sf.scan({n: table[n][part] for n in names}) for part in (slice(0, 50), slice(50, None))]
    both = sum(half.gather([sf.statistics.Request((), names)]) for half in halves)
    for data in (tmp_path / "rows.csv", toy(table, n=3), both, both.moments((), names)):
        found = sf.search(data, method=sf.GraphicalLasso(0.1))
        np.testing.assert_allclose(found.precision, here.precision, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(found.model.mean, here.model.mean, rtol=1e-10)


def test_more_columns_than_rows() -> None:
    table = chain(30, 12)
    found = sf.search(table, method=sf.GraphicalLasso(0.4))
    assert found.finished
    assert found.path[0].gap <= 1e-9
    assert np.abs(found.precision @ found.covariance - np.eye(30)).max() < 1e-8
    assert sf.search(table, method=sf.GraphicalLasso()).graph.nodes == found.names


def test_nearly_collinear_columns_converge() -> None:
    """A correlation of 1 − 1e-10: sweeps alone took 200 Newton steps; scikit-learn's stall (#11417, #12228)."""
    table = chain(4, 200)
    table["x9"] = table["x0"] + 1e-5 * table["x3"]
    found = sf.search(table, method=sf.GraphicalLasso(0.01))
    assert found.path[0].gap <= 1e-9
    assert found.trace[-1].step < 30
    assert np.abs(found.precision @ found.covariance - np.eye(5)).max() < 1e-8


@pytest.mark.parametrize("penalty", [0.1, 0.01])
def test_columns_of_three_factors_converge(penalty: float) -> None:
    """Correlations of 0.99, and a penalty far below: steps whose directions are not solved for do not end."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 3)) @ rng.normal(size=(3, 25)) + 0.05 * rng.normal(size=(300, 25))
    found = sf.search({f"x{j:02d}": x[:, j] for j in range(25)}, method=sf.GraphicalLasso(penalty))
    assert found.path[0].gap <= 1e-6
    assert len(found.trace) < 60
    assert np.abs(found.precision @ found.covariance - np.eye(25)).max() < 1e-8


def test_scikit_learn_agrees_within_its_tolerance() -> None:
    covariance = pytest.importorskip("sklearn.covariance")
    S = matrix(chain())
    found = sf.search(chain(), method=sf.GraphicalLasso(0.1))
    _, precision = covariance.graphical_lasso(S, alpha=0.1, tol=1e-6, enet_tol=1e-8, max_iter=1000)
    np.testing.assert_allclose(found.precision, precision, atol=1e-3)
    off = ~np.eye(len(S), dtype=bool)
    objective = -np.linalg.slogdet(precision)[1] + np.vdot(S, precision) + 0.1 * np.abs(precision[off]).sum()
    assert found.path[0].objective <= objective + 1e-9


def test_time_limits_and_foretold_costs() -> None:
    found = sf.search(chain(40, 60), method=sf.GraphicalLasso(select=sf.choices.StARS()), time_limit=1e-9)
    assert not found.finished
    assert len(found.path) == 1
    with pytest.raises(sf.SufficeError, match="before any graph was found"):
        sf.search(chain(40, 60), method=sf.GraphicalLasso(0.1), time_limit=1e-9)
    assert sf.search(chain(), method=sf.GraphicalLasso(), dry_run=True).scans == 1
    with pytest.raises(sf.SufficeError, match="memory"):
        sf.search(chain(), method=sf.GraphicalLasso(), memory_limit=100)


def given(covariance: Any, n: float = 50.0) -> sf.statistics.Moments:
    S = np.array(covariance, float)
    names = tuple(f"x{i}" for i in range(len(S)))
    return sf.statistics.Moments((), names, [0], [n], [np.zeros(len(S))], [n * S])


@pytest.mark.parametrize(
    ("data", "method", "match"),
    [
        ({**chain(3), "c": np.full(150, 2.5)}, sf.GraphicalLasso(0.1), "all values of 'c' are the same"),
        ({**chain(3), "y": -2 * chain(3)["x1"] + 1}, sf.GraphicalLasso(0.1), "'x1' and 'y' have a correlation of ±1"),
        ({**chain(3), "c": ["u", "v", "w"] * 50}, sf.GraphicalLasso(0.1), r"'c' is finite: Neighbourhoods\(\)"),
        (given([[1.0, 0.2], [0.3, 1.0]]), sf.GraphicalLasso(0.1), "symmetric, but that of 'x0' and 'x1' is 0.2 and 0.3"),
        (given([[1.0, 2.0], [2.0, 1.0]]), sf.GraphicalLasso(0.1), "semi-definite, but this one has the eigenvalue -1"),
        (given([[1.0, np.nan], [np.nan, 1.0]]), sf.GraphicalLasso(0.1), "not finite"),
        (given(np.eye(2), 1.0), sf.GraphicalLasso(0.1), "one row has no variance"),
        (given(np.eye(3)), sf.GraphicalLasso(np.ones((2, 2))), "matrix of 3 by 3"),
        (given(np.eye(3)), sf.GraphicalLasso({("x0", "x1"): 0.1}), "2 pairs have no penalty"),
        (given(np.eye(3)), sf.GraphicalLasso({("x0", "y1"): 0.1, None: 1}), "'y1', which is not among"),
        (given(np.eye(3)), sf.GraphicalLasso(select=sf.choices.StARS()), "StARS draws subsamples.*EBIC"),
        (given(np.eye(3)), sf.GraphicalLasso(select=sf.choices.HeldOut(3)), "holds out some of the rows"),
        ({n: x[:8] for n, x in chain(3).items()}, sf.GraphicalLasso(select=sf.choices.HeldOut(5)), "needs at least 10 rows"),
        ({"x": [0.5, None, 1.0], "y": [1.0, 2.0, 0.0]}, sf.GraphicalLasso(), "missing cells.*EM for undirected"),
    ],
)
def test_data_that_has_no_answer(data: Any, method: Any, match: str) -> None:
    with pytest.raises(sf.SufficeError, match=match):
        sf.search(data, method=method)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"penalty": 0}, "a penalty is a number above 0"),
        ({"penalty": -0.1}, "a penalty is a number above 0"),
        ({"penalty": float("nan")}, "a penalty is a number above 0"),
        ({"penalty": True}, "a penalty is a number above 0"),
        ({"penalty": "much"}, "a penalty is a number above 0"),
        ({"penalty": np.ones((2, 3))}, "square"),
        ({"penalty": np.array([[0, 1], [2, 0]])}, "symmetric"),
        ({"penalty": np.zeros((2, 2))}, "larger than 0"),
        ({"penalty": {("a", "b"): -1}}, "'a' and 'b' is a number above 0"),
        ({"penalty": {"ab": 1}}, "is no pair"),
        ({"select": sf.BIC()}, r"chosen by EBIC\(0.5\)"),
        ({"select": sf.choices.EBIC}, r"chosen by EBIC\(0.5\)"),
        ({"n_penalties": 0}, "number of penalties"),
        ({"on": "rows"}, "on='correlation'"),
        ({"gap": 0}, "gap"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], match: str) -> None:
    with pytest.raises(sf.SufficeError, match=match):
        sf.GraphicalLasso(**options)


@pytest.mark.parametrize(
    "wrong",
    [lambda: sf.choices.EBIC(-1), lambda: sf.choices.StARS(0.6), lambda: sf.choices.StARS(0.1, 1), lambda: sf.choices.HeldOut(1)],
)
def test_selections_that_make_no_sense(wrong: Any) -> None:
    with pytest.raises(sf.SufficeError):
        wrong()


def test_the_score_has_a_name_and_the_end_of_the_path_is_told() -> None:
    x = np.random.default_rng(3).normal(size=(200, 4))
    x[:, 1:] += x[:, :1]
    frame = dict(zip("abcd", x.T, strict=True))
    with pytest.warns(sf.SufficeNote, match="is the smallest of the path"):
        found = sf.search(frame, method=sf.GraphicalLasso())
    assert "; −EBIC(gamma=0.5) -" in found.summary()
    assert found.to_dict()["score_name"] == "−EBIC(gamma=0.5)"
    assert sf.search(frame, method=sf.GraphicalLasso(select=sf.choices.HeldOut(3))).score_name == "held-out log-likelihood"
    assert sf.search(frame, method=sf.Decomposable()).score_name == "BIC()"


def test_a_first_step_does_not_end_where_the_precision_is_nearly_singular() -> None:
    """With a lax line search it did, and each step after it only doubled the least eigenvalue: 9 steps in place of 5."""
    rng = np.random.default_rng(0)
    p = 100
    A = np.triu(rng.random((p, p)) < 3 / p, 1) * 0.3 * rng.choice([-1, 1], (p, p))
    A = A + A.T
    np.fill_diagonal(A, np.abs(A).sum(1) + 0.3)
    S = np.corrcoef((rng.standard_normal((200, p)) @ np.linalg.inv(np.linalg.cholesky(A))).T)
    found = sparse_precision(S, 0.1 * (1.0 - np.eye(p)), gap=1e-4)
    assert found.converged
    assert len(found.steps) <= 6
