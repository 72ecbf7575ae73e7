"""The first day of a stranger, on the command line: a file as spreadsheets write it, to a network, answers and predictions."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import suffice as sf

HEADER = "patient;visit;age;pressure;stage;smoker;ward;outcome"
HOW = ("--decimal", ",", "--missing", "NA")


def lines(n: int) -> list[str]:
    """Semicolons, decimal commas, NA for a missing cell, dates, an identifier and a code."""
    rng = random.Random(3)
    result = []
    for i in range(n):
        age, smoker = rng.gauss(55, 14), rng.random() < 0.4
        pressure = f"{100 + 0.6 * age + rng.gauss(0, 9):.1f}".replace(".", ",") if rng.random() > 0.06 else "NA"
        visit = f"20{19 + i % 4}-{1 + i % 12:02}-{1 + i % 28:02}"
        ward = rng.choice("AB") if rng.random() > 0.05 else "NA"
        outcome = "ill" if rng.random() < 0.2 + 0.5 * smoker else "well"
        cells = [
            f"P{i:05}",
            visit,
            f"{age:.1f}".replace(".", ","),
            pressure,
            str(i % 3),
            "yes" if smoker else "no",
            ward,
            outcome,
        ]
        result.append(";".join(cells))
    return result


@pytest.fixture
def visits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    rows = lines(300)
    Path("visits.csv").write_text("\n".join([HEADER, *rows]) + "\n")
    return rows


def test_from_a_file_to_an_interval_and_a_prediction(run: Any, visits: list[str]) -> None:
    code, out, err = run("schema", "visits.csv", *HOW)
    assert code == 0
    assert "an identifier?" in out
    assert "age       Real" in out
    code, _, err = run("learn", "visits.csv", *HOW, "-o", "net.json")
    assert code == 0, err
    assert "at random" in err
    code, out, err = run("draw", "net.json", "-o", "net.svg")
    assert code == 0, err
    assert ">pressure<" in Path("net.svg").read_text()
    code, out, err = run("query", "net.json", "P(outcome | smoker=yes)", "--interval", "0.95")
    assert code == 0, err
    assert "95 % interval from 1,000 draws of Dirichlet and normal parameters" in out
    assert "lower" in out
    Path("new.csv").write_text("\n".join([HEADER, visits[0], visits[1].replace(";A;", ";Z;").replace(";B;", ";Z;")]) + "\n")
    code, _, err = run("predict", "net.json", "new.csv", "--target", "outcome", *HOW)
    assert code == 1
    assert "--unknown missing" in err
    code, out, err = run("predict", "net.json", "new.csv", "--target", "outcome", *HOW, "--unknown", "missing")
    assert code == 0, err
    assert len(out.splitlines()) == 3


def test_a_line_that_is_too_long_is_named_and_not_all_the_others(run: Any, visits: list[str]) -> None:
    Path("bad.csv").write_text("\n".join([HEADER, *visits[:20], visits[20] + ";more", *visits[21:40]]) + "\n")
    code, _, err = run("schema", "bad.csv", *HOW)
    assert code == 1
    assert "line 22" in err
    assert "found 9 fields where the header has 8" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["query", "net.jsn", "P(a)"], "net.jsn: there is no such file; did you mean 'net.json'?"),
        (["query", "rows.csv", "P(a)"], "learn one from it first: suffice learn rows.csv -o model.json"),
        (["learn", "empty_column.csv", "-o", "x.json"], "every cell of 'b' is missing"),
        (["learn", "empty_column.csv", "-o", "x.json"], "or leave it out: --without b"),
        (
            ["predict", "net.json", "commas.csv", "--target", "a"],
            "if the comma is a decimal mark, say so: --decimal ,",
        ),
    ],
)
def test_what_goes_wrong_names_the_way_out(run: Any, tmp_path: Path, monkeypatch: Any, words: list[str], said: str) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.csv").write_text("a,b\nu,1.25\nv,2.5\nu,1.5\nv,2.25\nu,1.75\nv,2\n")
    sf.write(sf.fit("a -> b", "rows.csv"), "net.json")
    Path("empty_column.csv").write_text("a,b\nu,\nv,\nu,\n")
    Path("commas.csv").write_text("a;b\nu;1,5\n")
    code, _, err = run(*words)
    assert code == 1
    assert said in err


def test_a_column_without_a_cell_is_left_out_as_advised(run: Any, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("empty_column.csv").write_text("a,b,c\nu,,x\nv,,y\nu,,x\n")
    code, _, err = run("learn", "empty_column.csv", "-o", "x.json", "--without", "b")
    assert code == 0, err
