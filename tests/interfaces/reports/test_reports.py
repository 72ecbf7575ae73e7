"""Reports: their facts are the library's numbers, and the page is well-formed and loads nothing."""

from __future__ import annotations

import base64
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.interfaces.reports import report_html
from suffice.interfaces.reports.document import own_file
from tests.interfaces.reports.reading import Node, article, facts, read, section, sections


@cache
def asia_rows() -> Any:
    return sf.load("asia").sample(2000, seed=3)


@cache
def searched() -> tuple[Any, Node, str]:
    found = sf.search(asia_rows(), constraints=sf.Forbid(("xray", "either")), seed=7)
    html = report_html(found, command="suffice learn <rows>.csv")
    return found, read(html), html


def hash_of(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def shown(text: str) -> float:
    return float(text.split(" ")[0].replace("−", "-").replace(",", ""))


def test_the_policy_allows_the_one_script_and_the_one_style_and_nothing_else() -> None:
    _, page, html = searched()
    policy = next(m.attributes["content"] for m in page.all("meta") if m.attributes.get("http-equiv"))
    said = {part.split()[0]: part.split()[1:] for part in policy.split(";")}
    assert said["default-src"] == ["'none'"]
    assert said["script-src"] == [f"'{hash_of(next(page.all('script')).text)}'"]
    assert said["style-src"] == [f"'{hash_of(next(page.all('style')).text)}'"]
    assert not re.search(r"https?:|//[a-z]|url\(|@import", html)


def test_what_was_learned_from_what() -> None:
    found, page, _ = searched()
    told = facts(section(page, "origin"))
    assert told["fitted from"] == "2,000 rows without missing cells"
    assert told["seed of the search"] == "7"
    assert told["constraints"] == repr(found.problem.constraints)
    assert told["score of the search"] == "BIC()"
    assert told["method of the search"] == repr(found.method)
    assert told["command"] == "suffice learn <rows>.csv"
    assert told["version"] == f"Suffice {sf.__version__}"
    assert told["rows of this report"] == "2,000 rows of 8 columns; the model was fitted from rows with the same statistics"
    assert "".join(found.summary().splitlines()) == told["found"]


def test_edges_have_their_losses_and_explanations_in_table_and_picture() -> None:
    found, page, _ = searched()
    head, *rows = next(section(page, "graph").all("table")).cells()
    assert head == ["edge", "loss of BIC() without the edge", "explained"]
    assert {r[0]: shown(r[1]) for r in rows} == {f"{a} → {b}": round(x, 2) for (a, b), x in found.losses.items()}
    strongest = max(found.losses, key=found.losses.__getitem__)
    lines = dict(found.explain(strongest).lines())
    assert rows[0][0] == " → ".join(strongest)
    assert f"direction {lines['direction']}" in rows[0][2]
    svg = next(page.all("svg"))
    link = next(a for a in svg.all("a") if a.attributes["href"] == "#e0")
    assert lines["best other parents"] in next(link.all("title")).text
    assert len(list(svg.all("a"))) == len(found.dag.nodes) + len(found.dag.edges)


def test_tables_have_the_probabilities_intervals_and_rows() -> None:
    rows = asia_rows()
    bn = sf.fit(sf.load("asia").dag, rows, prior=sf.BDeu(1))
    page = read(report_html(bn))
    for name in bn.nodes:
        cpd = bn[name]
        head, *lines = next(article(page, name).all("table")).cells()
        assert head == [*cpd.parents, *bn.variables[name].states, "rows"]
        k = len(cpd.parents)
        values = np.array([[shown(c) for c in line[k:-1]] for line in lines])
        np.testing.assert_allclose(values, cpd.probs.reshape(values.shape), rtol=1e-3)
        low, high = (end.reshape(values.shape) for end in cpd.interval())
        for line, a, b in zip(lines, low, high, strict=True):
            for cell, x, y in zip(line[k:-1], a, b, strict=True):
                ends = [float(end) for end in cell.split(" ")[1].split("–")]
                np.testing.assert_allclose(ends, [x, y], atol=6e-4)
        np.testing.assert_allclose([shown(line[-1]) for line in lines], np.asarray(cpd.support).reshape(-1))
    unseen = article(page, "dysp").text
    assert bn["either"].unsupported.any() == ("none seen" in article(page, "either").text)
    assert "2 states, parents bronc, either" in unseen


def test_a_table_past_the_budget_keeps_the_rows_with_most_support_and_says_so() -> None:
    rng = np.random.default_rng(0)
    states = [f"s{i}" for i in range(30)]
    rows = {"a": rng.choice(states, 3000).tolist(), "b": rng.choice(states, 3000).tolist(), "y": ["u", "v", "w"] * 1000}
    bn = sf.fit("a -> y; b -> y", rows, prior=sf.BDeu(1))
    found = article(read(report_html(bn)), "y")
    _, *lines = next(found.all("table")).cells()
    support = np.asarray(bn["y"].support)
    assert f"Shown: {len(lines)} of 900 rows: those with most support." in found.text
    assert sorted(shown(r[-1]) for r in lines) == sorted(np.sort(support.reshape(-1))[-len(lines) :])
    for a, b, *_, n in lines:
        assert support[bn.variables["a"].states.index(a), bn.variables["b"].states.index(b)] == shown(n)


def test_rows_are_held_out_only_where_they_were_not_fitted_from() -> None:
    asia, rows = sf.load("asia"), asia_rows()
    bn = sf.fit(asia.dag, rows, prior=sf.BDeu(1))
    part = section(read(report_html(bn, rows)), "predictions")
    train, test = next(iter(bn.rows(rows).split(5, 0)))
    again = sf.fit(asia.dag, train, prior=bn.prior)
    assert "a fifth of those of this report at random (seed 0)" in part.text
    assert shown(facts(part)["held-out log-likelihood"]) == pytest.approx(again.log_likelihood(test) / 400, abs=1e-4)
    judged = sf.calibration(again, test, "bronc")
    line = next(row for row in next(part.all("table")).cells() if row[0] == "bronc")
    assert [shown(c) for c in line[1:3]] == [round(judged.log_score, 4), round(judged.brier, 4)]
    assert shown(line[4]) == round(judged.roc[judged.of(None)].area, 4)

    unknown = section(read(report_html(asia, rows)), "predictions")
    assert "held-out log-likelihood" not in facts(unknown)
    assert "not called held out" in unknown.text
    assert shown(facts(unknown)["log-likelihood"]) == pytest.approx(asia.log_likelihood(rows) / 2000, abs=1e-4)

    other = asia.sample(300, seed=8)
    declared = section(read(report_html(bn, rows, held_out=other)), "predictions")
    assert shown(facts(declared)["held-out log-likelihood"]) == pytest.approx(bn.log_likelihood(other) / 300, abs=1e-4)
    assert "predictions" not in sections(read(report_html(bn)))
    few = section(read(report_html(bn, rows.slice(0, 20))), "predictions")
    assert "too few to set a part of them aside" in few.text


def test_missing_cells_and_the_traces_of_all_starts() -> None:
    rows = {"x": ["a", "b", None, "b", "a"] * 30, "y": ["u", "v", "v", None, "u"] * 30}
    run = sf.em("h -> x; h -> y", rows, hidden=[sf.Finite("h", ["0", "1"])], prior=sf.BDeu(1), starts=3, seed=0)
    page = read(report_html(run, rows))
    assert run.headline() in section(page, "origin").text
    chart = next(section(page, "traces").all("svg"))
    assert len(list(chart.all("polyline"))) == len(run.traces)
    assert f"best start {run.objective:,.4f}" in section(page, "traces").text
    gaps = sf.missingness(rows)
    assert gaps._headline() in section(page, "missing").text
    tables = [t.cells() for t in section(page, "missing").all("table")]
    assert ["x", "30", "20.0 %"] in tables[0]
    assert "it has hidden variables" in section(page, "predictions").text


def test_structural_em_and_undirected_searches() -> None:
    rows = {"x": ["a", "b", None, "b"] * 30, "y": ["u", "v", "u", "v"] * 30}
    run = sf.structural_em(rows, prior=sf.BDeu(1))
    page = read(report_html(run))
    assert "x → y" in section(page, "graph").text
    assert {"missing", "predictions"} <= set(sections(page))
    rng = np.random.default_rng(0)
    a = rng.normal(size=300)
    numbers = {"a": a, "b": a + rng.normal(size=300), "c": rng.normal(size=300)}
    found = sf.search(numbers, method=sf.GraphicalLasso(0.2))
    text = section(read(report_html(found)), "nodes").text
    assert f"{found.model.partial_correlations['a', 'b']:.4g}" in text
    markov = sf.fit(sf.Graph("smoke -- lung -- xray"), asia_rows())
    page = read(report_html(markov, asia_rows()))
    assert next(page.all("h1")).text == "Report: Markov network"
    weights = markov.weights[("lung", "smoke")] if ("lung", "smoke") in markov.weights else markov.weights[("smoke", "lung")]
    assert f"{abs(weights.reshape(-1)[0]):.4g}" in section(page, "nodes").text


def test_chains_are_reported_and_other_values_refused_with_a_sentence(tmp_path: Path) -> None:
    chain = sf.fit("x[-1] -> x", sf.sequences({"x": list("aabbab") * 9}), prior=sf.BDeu(1))
    page = read(report_html(chain))
    assert next(page.all("h1")).text == "Report: Chain of sequences"
    assert {next(a.all("h3")).text for a in page.all("article")} == set(chain)
    for value, said in ((sf.Dag("a -> b"), "fit its graph"), ({"x": 1}, "not of a dict")):
        with pytest.raises(sf.SufficeError, match=said):
            sf.report(value, None, tmp_path / "r.html")
    with pytest.raises(sf.SufficeError, match="sequences"):
        sf.report(chain, {"x": ["a"]}, tmp_path / "r.html")
    assert not list(tmp_path.iterdir())


def test_the_same_bytes_and_a_file_that_is_whole_or_not_there(tmp_path: Path) -> None:
    bn = sf.load("asia")
    place = tmp_path / "r.html"
    sf.report(bn, None, place)
    assert place.read_text("utf-8") == report_html(bn) == report_html(sf.load("asia"))
    place.write_text("before")
    with pytest.raises(sf.SufficeError, match="none of the columns"):
        sf.report(bn, {"other": ["a"]}, place)
    assert place.read_text() == "before"
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    for bad in (tmp_path, tmp_path / "no" / "r.html"):
        with pytest.raises(sf.SufficeError, match=r"directory|cannot be written"):
            sf.report(bn, None, bad)


def luminance(colour: str) -> float:
    digits = colour.lstrip("#")
    digits = "".join(2 * c for c in digits) if len(digits) == 3 else digits
    parts = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_text_has_the_contrast_of_wcag_aa_in_both_themes() -> None:
    light, dark, *_ = re.findall(r":root \{(.*?)\}", own_file("page.css"), re.DOTALL)
    for theme in (light, dark):
        colours = dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+)", theme))
        for ink in ("ink", "soft", "link"):
            for paper in ("paper", "card", "bar", "warn"):
                if (ink, paper) == ("link", "bar"):  # there are none in tables of numbers
                    continue
                a, b = sorted((luminance(colours[ink]), luminance(colours[paper])))
                assert (b + 0.05) / (a + 0.05) >= 4.5, (ink, paper, colours[ink], colours[paper])
        for line in ("focus", "rule", "edge", "fill"):  # what is not text needs 3
            a, b = sorted((luminance(colours[line]), luminance(colours["paper"])))
            assert (b + 0.05) / (a + 0.05) >= 3.0, line
