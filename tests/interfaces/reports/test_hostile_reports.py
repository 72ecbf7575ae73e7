"""Reports of what is strange: names that are markup, no nodes, a thousand states, kinds of nodes, rows of something else."""

from __future__ import annotations

import numpy as np
import pytest
from suffice.regressions import PoissonLog

import suffice as sf
from suffice.interfaces.reports import report_html
from tests.interfaces.reports.reading import article, read, section, sections

NAMES = [
    "<script>alert(1)</script>",
    "\"quoted\" and 'so' & on",
    "two\nlines\tand\x00\x1b[31m",
    "\u202eright to left \u05e9\u05dc\u05d5\u05dd",
    "</style></title><svg onload=alert(1)>",
    "x" * 10_000,
    "{{braces}} `ticks` ${x}",
]


@pytest.mark.parametrize("name", NAMES)
def test_names_and_states_are_only_text(name: str) -> None:
    rows = {name: [name, "b"] * 40, "y": [name[::-1], "v"] * 40}
    found = sf.search(rows)
    html = report_html(found, title=name, command=name)
    page = read(html)  # which finds scripts, handlers and addresses
    assert len(list(page.all("article"))) == 2
    assert "alert(1)" not in next(page.all("script")).text
    if len(name) == 10_000:
        assert name in html
        assert name not in "".join(h.text for h in page.all("h3"))
        assert len(html) < 2_000_000


def test_no_node_one_node_and_a_thousand_states() -> None:
    one = sf.BayesNet("x", {"x": [0.25, 0.75]}, variables=[sf.Finite("x", ["a", "b"])])
    assert "1 node, 0 edges" in section(read(report_html(one)), "graph").text
    none = sf.BayesNet(sf.Dag([]), {}, variables=[])
    assert "no nodes" in section(read(report_html(none)), "graph").text
    probs = np.arange(1.0, 1001.0) / 500500.0
    many = sf.BayesNet("x", {"x": probs}, variables=[sf.Finite("x", [f"s{i}" for i in range(1000)])])
    found = article(read(report_html(many)), "x")
    _, *rows = next(found.all("table")).cells()
    assert f"{len(rows)} of 1,000 cells: those that are most probable" in found.text
    assert rows[-1][0] == "s999"


def test_numbers_counts_and_regressions() -> None:
    rng = np.random.default_rng(0)
    x, g = rng.normal(size=200), rng.choice(["a", "b"], 200)
    rows = {"x": x, "g": g, "y": np.where(x + rng.normal(size=200) > 0, "yes", "no"), "z": x + rng.normal(size=200)}
    rows["n"] = rng.poisson(np.exp(0.3 * x)).astype(float)
    families = {"y": sf.Logistic(), "n": PoissonLog()}
    bn = sf.fit("g -> z; x -> z; x -> y; x -> n", rows, prior=(sf.BDeu(1), sf.NormalInverseGamma()), families=families)
    page = read(report_html(bn, rows))
    head, *lines = next(article(page, "y").all("table")).cells()
    assert head[:3] == ["y", "term", "estimate"]
    assert [line[1] for line in lines] == ["(intercept)", "x"]
    head, *lines = next(article(page, "z").all("table")).cells()
    assert head == ["g", "intercept", "x", "variance", "rows"]
    low, high = bn["z"].interval()["variance"]
    assert lines[0][3].endswith(f" {low[0]:.3g}–{high[0]:.3g}")
    assert "predictions" in sections(page)


def test_without_a_posterior_and_with_unseen_configurations() -> None:
    rows = {"a": list("uuvv") * 5, "b": list("uuvv") * 5, "y": list("pqpq") * 5}
    page = read(report_html(sf.fit("a -> y; b -> y", rows)))
    assert "No node has intervals" in section(page, "nodes").text
    lines = next(article(page, "y").all("table")).cells()
    assert ["u", "v", "0.5", "0.5", "0 none seen"] in lines
    assert "2 of 4 configurations of its parents had no row" in article(page, "y").text


def test_rows_that_lack_columns_or_have_new_states() -> None:
    asia = sf.load("asia")
    rows = asia.sample(200, seed=0)
    bn = sf.fit(asia.dag, rows, prior=sf.BDeu(1))
    lacking = read(report_html(bn, rows.drop_columns(["smoke"])))
    assert "lacks columns of the model" in section(lacking, "origin").text
    assert "columns" in sections(lacking)
    changed = {n: ["maybe" if n == "smoke" else s for s in rows[n].to_pylist()] for n in rows.column_names}
    strange = read(report_html(bn, changed))
    assert "'maybe'" in section(strange, "origin").text
    assert "predictions" not in sections(strange)


def test_a_junction_tree_that_is_too_large_is_said() -> None:
    n = 40
    variables = [sf.Finite(f"x{i}", [str(s) for s in range(8)]) for i in range(n)]
    rng = np.random.default_rng(0)
    edges = [(f"x{i}", f"x{j}") for j in range(n) for i in sorted(rng.choice(j, min(j, 3), replace=False))] if n else []
    parents = {v.name: [a for a, b in edges if b == v.name] for v in variables}
    cpds = {c: np.full((8,) * (len(ps) + 1), 0.125) for c, ps in parents.items()}
    bn = sf.BayesNet(sf.Dag(parents), cpds, variables)
    page = read(report_html(bn))
    assert "Marginals are left out" in section(page, "nodes").text
    assert "no beliefs" in section(page, "graph").text


def test_rows_that_are_few_or_impossible() -> None:
    rows = {"x": ["a"] * 59 + ["b"], "y": ["u"] * 59 + ["v"]}
    text = section(read(report_html(sf.fit("x -> y", rows), rows)), "predictions").text
    assert "per row" in text
    empty = sf.scan({"x": ["a", "b"], "y": ["u", "v"]})
    assert "too few" in section(read(report_html(sf.fit("x -> y", empty), empty)), "predictions").text
