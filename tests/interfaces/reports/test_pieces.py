"""Pieces of a report, each by itself."""

from __future__ import annotations

import suffice as sf
from suffice.basis.variables import Finite
from suffice.interfaces.reports.document import Section, own_file, page, policy
from suffice.interfaces.reports.graph import Strengths, graph_section, picture_of, strengths_of
from suffice.interfaces.reports.judgement import PredictionQuality, calibration_error, judge, judged_section
from suffice.interfaces.reports.markup import (
    Html,
    Row,
    bullets,
    cut_rows,
    element,
    facts,
    join,
    line_chart,
    name,
    number,
    reliability,
    table,
    text,
    ticks,
)
from suffice.interfaces.reports.nodes import kind_of, nodes_section, share_of, table_of
from suffice.interfaces.reports.origin import conventions, fitted_from, missing_section, origin_section, schema_section
from suffice.interfaces.reports.subject import of_search, subject_of


def test_text() -> None:
    assert text("a<b") == "a&lt;b"
    assert text(Html("<b>a</b>")) == "<b>a</b>"
    assert text(0.123456) == "0.1235"
    assert text(None) == ""


def test_number() -> None:
    assert number(0.25) == "0.25"
    assert number(-1234567.0) == "−1,234,567"
    assert number(float("-inf")) == "−∞"
    assert number(12000) == "12,000"


def test_element() -> None:
    assert element("p", "a & b", class_="x", hidden=True) == '<p class="x" hidden>a &amp; b</p>'


def test_join() -> None:
    assert join(["<", Html("<br>")]) == "&lt;<br>"


def test_name() -> None:
    assert name("lung") == "lung"
    assert name("größe", "#n1") == '<a href="#n1"><bdi>größe</bdi></a>'
    assert name("x" * 60)[:26] == '<bdi title="xxxxxxxxxxxxxx'


def test_bullets() -> None:
    assert bullets(["a"]) == "<ul><li>a</li></ul>"
    assert bullets([]) == ""


def test_facts() -> None:
    assert facts({"seed": 0, "command": ""}) == '<dl class="facts"><div><dt>seed</dt><dd>0</dd></div></dl>'


def test_table() -> None:
    html = table(["x", "p"], [Row("yes", 0.5)], "p(x)")
    frame = '<div class="wide" tabindex="0" role="region" aria-label="p(x)">'
    assert html.startswith(f"{frame}<table><caption>p(x)</caption>")


def test_cut_rows() -> None:
    assert cut_rows(2, 1500, "row", "with most support") == "2 of 1,500 rows: those with most support"
    assert cut_rows(3, 3, "row", "") == ""


def test_ticks() -> None:
    assert ticks(0.0, 10.0) == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    assert ticks(3.0, 3.0) == [3.0]


def test_line_chart() -> None:
    assert line_chart([("best", [1.0, 2.0, 2.5])], x="iteration", y="objective", title="EM").count("<polyline") == 1


def test_reliability() -> None:
    assert reliability([(0.2, 0.25, 0.1, 0.4, 20.0)], title="x=yes").count("<circle") == 1


def test_subject_of() -> None:
    assert subject_of(sf.load("asia")).kind == "Bayesian network"
    assert subject_of(sf.em("x -> y", {"x": ["a", None, "b"], "y": ["u", "v", "v"]})).traces[0].objective == "objective"


def test_of_search() -> None:
    rows = {"x": ["a", "b"] * 20, "y": ["u", "v"] * 20}
    found = sf.search(rows)
    assert of_search(found, sf.fit(found.dag, rows)).summary[0].partition(";")[0] == "2 variables, 1 edge"


def test_origin_section() -> None:
    assert "smoke=no" in origin_section(subject_of(sf.load("asia").do({"smoke": "no"})), None, "", "", [])


def test_fitted_from() -> None:
    rows = sf.scan({"x": ["a", "b", "b"]})
    bn = sf.fit("x", rows)
    assert fitted_from(bn, rows) is True
    assert fitted_from(bn, sf.scan({"x": ["a", "b"]})) is False
    assert fitted_from(sf.load("asia"), rows) is None


def test_schema_section() -> None:
    assert schema_section(sf.scan({"x": ["a", "b"], "y": [0.5, 1.5]})).count("<tr") == 3


def test_missing_section() -> None:
    assert "No cell is missing" in missing_section(sf.scan({"x": ["a", "b"]}))


def test_conventions() -> None:
    assert "higher is better" in conventions(subject_of(sf.load("asia")), judged=False)


def test_strengths_of() -> None:
    bn = sf.fit("x -> y", {"x": ["a", "b"] * 20, "y": ["u", "v"] * 20})
    found = strengths_of(subject_of(bn), None)
    assert round(found.values["x", "y"], 3) == 25.881
    assert found.what == "loss of BIC() without the edge"


def test_picture_of() -> None:
    picture = picture_of(subject_of(sf.load("asia")), Strengths("loss", {("asia", "tub"): 2.5}))
    assert picture.widths == ((1.0, "loss 2.5"),)
    assert len(picture.nodes[0].bars) == 2


def test_graph_section() -> None:
    html = graph_section(subject_of(sf.load("asia")), Strengths(), {})
    assert html.count("<svg") == 1
    assert html.count("<tr") == 9


def test_judge() -> None:
    asia = sf.load("asia")
    rows = sf.scan(asia.sample(500, seed=0))
    assert judge(subject_of(sf.fit(asia.dag, rows, prior=sf.BDeu(1))), rows, None).n_rows == 100
    assert judge(subject_of(asia), rows, None).held_out is False


def test_judged_section() -> None:
    html = judged_section(PredictionQuality("no rows are held out: 3 rows are too few"), {})
    assert html == "<p>No rows are held out: 3 rows are too few.</p>"


def test_calibration_error() -> None:
    judged = sf.calibration(sf.load("asia"), {"smoke": ["yes", "no"], "bronc": ["yes", "no"]}, "bronc", bins=2)
    assert round(calibration_error(judged), 6) == 0.35


def test_share_of() -> None:
    assert share_of(10) == 400
    assert share_of(1000) == 9
    assert share_of(1000, intervals=True) == 4


def test_table_of() -> None:
    html, note = table_of(sf.load("asia")["dysp"], 6)
    assert html.count("<tr") == 4
    assert note == '<p class="cut">Shown: 3 of 4 rows: those that come first.</p>'


def test_nodes_section() -> None:
    bn = sf.load("asia")
    assert nodes_section(bn, subject_of(bn), {n: f"#{n}" for n in bn.nodes}).count("<article") == 8


def test_kind_of() -> None:
    assert kind_of(Finite("x", ["a", "b"])) == "2 states"


def test_own_file() -> None:
    assert own_file("page.css").count("@media print") == 1


def test_policy() -> None:
    assert policy("a", "b").partition(";")[0] == "default-src 'none'"


def test_page() -> None:
    assert page("a", "b", [Section("c", "d", Html("<p>e</p>"))]).startswith("<!DOCTYPE html>") is True
