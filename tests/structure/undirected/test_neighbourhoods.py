"""Gaussian neighbourhoods: scikit-learn's lasso for each node, rules, strengths by direction, and what is refused."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import suffice as sf
from tests.structure.undirected.test_graphical_lasso import chain, moments


def test_each_node_is_a_lasso() -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    table = chain(5, 120)
    found = sf.search(table, method=sf.Neighbourhoods(0.1, rule=sf.methods.Or()))
    x = np.array(list(table.values())).T
    z = (x - x.mean(0)) / x.std(0)
    for i, name in enumerate(found.names):
        others = [j for j in range(5) if j != i]
        theirs = linear.Lasso(alpha=0.1, fit_intercept=False, tol=1e-10).fit(z[:, others], z[:, i]).coef_
        own = [found.details.strengths.get((name, found.names[j]), 0.0) for j in others]
        np.testing.assert_allclose(own, theirs, atol=1e-6)


def test_strengths_are_kept_by_direction() -> None:
    table = chain(4)
    table["x3"] = table["x3"] * 100.0
    both = sf.search(table, method=sf.Neighbourhoods(0.1))
    one = sf.search(table, method=sf.Neighbourhoods(0.1, rule=sf.methods.Or()))
    assert set(both.graph.edges) <= set(one.graph.edges)
    for a, b in both.graph.edges:
        there, back = both.details.strengths[a, b], both.details.strengths[b, a]
        assert both.strengths[a, b] == pytest.approx((there + back) / 2)
    text = repr(both.explain("x0", "x1"))
    assert "in the regression of x0" in text
    assert "in the regression of x1" in text
    assert pickle.loads(pickle.dumps(both)).model == both.model
    assert both.model.graph == both.graph


def test_from_moments_alone_with_constraints() -> None:
    found = sf.search(moments("wine"), method=sf.Neighbourhoods())
    assert len(found.path) == 20
    assert found.score == -min(entry.criterion for entry in found.path)
    ruled = sf.search(
        moments("iris"),
        method=sf.Neighbourhoods(0.99),
        constraints=sf.Require(("sepal_width", "petal_width")) + sf.Forbid(("petal_width", "petal_length")),
    )
    assert ruled.graph.edges == (("petal_width", "sepal_width"),)


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"rule": sf.methods.And}, r"And\(\) or Or\(\)"),
        ({"rule": "and"}, r"And\(\) or Or\(\)"),
        ({"penalty": 0.0}, "above 0"),
        ({"select": "ebic"}, "EBIC"),
        ({"n_penalties": 0}, "number of penalties"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], match: str) -> None:
    with pytest.raises(sf.SufficeError, match=match):
        sf.Neighbourhoods(**options)


def test_constant_and_copied_columns_are_refused() -> None:
    with pytest.raises(sf.SufficeError, match="all values of 'c' are the same"):
        sf.search({**chain(3), "c": np.full(150, 1.5)}, method=sf.Neighbourhoods(0.1))
    with pytest.raises(sf.SufficeError, match="correlation of ±1"):
        sf.search({**chain(3), "c": chain(3)["x0"]}, method=sf.Neighbourhoods(0.1))
