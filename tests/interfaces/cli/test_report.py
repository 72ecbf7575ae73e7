"""`suffice report`, and `--report` of `learn` and `fit`."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv
from typer.testing import CliRunner

import suffice as sf
from suffice.interfaces.cli.app import app
from tests.interfaces.reports.reading import Node, facts, read, section, sections


def run(*words: object) -> None:
    result = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert result.exit_code == 0, result.output


def refused(*words: object) -> str:
    result = CliRunner().invoke(app, [*map(str, words)])
    assert isinstance(result.exception, sf.SufficeError), result.output
    return result.exception.in_options()


def page(path: Path) -> Node:
    return read(path.read_text("utf-8"))


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    table = sf.load("asia").sample(1000, seed=0)
    csv.write_csv(table.cast(pa.schema([(name, "string") for name in table.column_names])), tmp_path / "asia.csv")
    return tmp_path / "asia.csv"


def test_of_a_model_with_and_without_rows(tmp_path: Path, rows: Path) -> None:
    out = tmp_path / "r.html"
    run("report", "asia", "-o", out)
    assert sections(page(out)) == ["origin", "graph", "nodes", "conventions"]
    run("report", "asia", rows, "-o", out)
    assert {"predictions", "missing", "columns"} <= set(sections(page(out)))
    run("report", "asia", "-o", out, "--held-out", rows)
    assert "held-out log-likelihood" in facts(section(page(out), "predictions"))


def test_learn_and_fit_write_one_beside_the_model_or_without_it(tmp_path: Path, rows: Path) -> None:
    out = tmp_path / "r.html"
    run("learn", rows, "-o", tmp_path / "m.json", "--report", out, "--forbid", "xray,lung", "--seed", "4")
    told = facts(section(page(out), "origin"))
    assert told["seed of the search"] == "4"
    assert "xray" in told["constraints"]
    first = out.read_text("utf-8")
    run("report", tmp_path / "m.json", rows, "-o", out)
    tables = [section(read(text), "nodes").text for text in (first, out.read_text("utf-8"))]
    assert tables[0] == tables[1]
    out.unlink()
    run("learn", rows, "--report", out)
    run("fit", "smoke -> lung -> xray", rows, "-o", tmp_path / "f.json", "--report", out)
    assert "fitted from 1,000 rows" in page(out).text


def test_em_has_its_traces_and_undirected_models_their_weights(tmp_path: Path, rows: Path) -> None:
    out = tmp_path / "r.html"
    (tmp_path / "gaps.csv").write_text("x,y\n" + "a,u\nb,v\n,v\na,\nb,u\n" * 20)
    run("fit", "x -> y", tmp_path / "gaps.csv", "-o", tmp_path / "g.json", "--report", out)
    assert {"traces", "missing"} <= set(sections(page(out)))
    run("learn", tmp_path / "gaps.csv", "--report", out)
    assert "score" in facts(section(page(out), "origin"))["found"]
    run("learn", rows, "--method", "decomposable", "--report", out)
    assert "Markov network" in next(page(out).all("h1")).text
    run("fit", "smoke -- lung", rows, "-o", tmp_path / "u.json", "--report", out)
    assert "Markov network" in next(page(out).all("h1")).text


def test_sequences_have_the_report_of_their_chain(tmp_path: Path) -> None:
    (tmp_path / "s.csv").write_text("t,x\n" + "".join(f"{i},{'aabba'[i % 5]}\n" for i in range(100)))
    out = tmp_path / "r.html"
    run("fit", "x[-1] -> x", tmp_path / "s.csv", "--order", "t", "-o", tmp_path / "c.json", "--report", out)
    assert "Chain of sequences" in next(page(out).all("h1")).text
    run("learn", tmp_path / "s.csv", "--order", "t", "--report", out)
    assert "Chain of sequences" in next(page(out).all("h1")).text


def test_places_are_refused_before_the_work_and_nothing_half_is_left(tmp_path: Path, rows: Path) -> None:
    assert "no directory" in refused("learn", rows, "--report", tmp_path / "no" / "r.html")
    assert "a file each" in refused("learn", rows, "-o", tmp_path / "m.json", "--report", tmp_path / "m.json")
    assert "--dry-run" in refused("learn", rows, "--report", tmp_path / "r.html", "--dry-run")
    assert "directory" in refused("report", "asia", "-o", tmp_path)
    assert "none of the columns" in refused("report", "cancer", rows, "-o", tmp_path / "r.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["asia.csv"]


def test_labels_and_machines_are_refused_with_what_answers_instead(tmp_path: Path) -> None:
    (tmp_path / "w.csv").write_text("s,word,tag\n" + "1,a,X\n1,b,Y\n" * 3 + "2,a,X\n2,c,Y\n" * 3)
    words = ["fit", "--chain", "tag", tmp_path / "w.csv", "--by", "s", "--features", "word", "-o", tmp_path / "t.json"]
    assert "--chain" in refused(*words, "--report", tmp_path / "r.html")
    assert not (tmp_path / "t.json").exists()
    run(*words)
    assert "suffice predict labels sequences" in refused("report", tmp_path / "t.json", "-o", tmp_path / "r.html")
    assert not (tmp_path / "r.html").exists()


def test_a_fit_of_sequences_by_em_shows_its_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("steps.csv").write_text("y\n" + "\n".join("aabbabbbaaabbbbaaaab"))
    run("fit", "s[-1] -> s -> y", "steps.csv", "--hidden", "s=u,v", "-o", "m.json", "--report", "r.html", "--seed", "1")
    assert "How it was found" in Path("r.html").read_text()
