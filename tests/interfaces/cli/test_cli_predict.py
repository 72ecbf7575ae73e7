"""`suffice predict`, called as a user calls it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

import suffice as sf
from suffice.engines.engine import ROWS
from suffice.formats import rows as rows_file

N = ROWS + 100


@pytest.fixture
def rows(run) -> pd.DataFrame:
    """More than a block of rows of ASIA with gaps, an id and a remark, as files."""
    bn = sf.load("asia")
    sf.write(bn, "asia.bif")
    frame = bn.sample(N, seed=0).to_pandas().astype(object)
    frame = frame.mask(np.random.default_rng(0).random(frame.shape) < 0.3, None)
    frame["id"] = np.arange(N)
    frame["remark"] = np.where(frame["id"] == N - 1, 'a "b", c', "fine")
    frame.to_csv("rows.csv", index=False)
    frame.to_parquet("rows.parquet")
    return frame


def test_files_of_every_kind(run, rows) -> None:
    bn = sf.load("asia")
    probs, states = bn.predict_proba(rows, "lung"), bn.predict(rows, "lung")
    for source in ("rows.csv", "rows.parquet"):
        for target in ("out.csv", "out.csv.gz", "out.parquet"):
            code, out, err = run("predict", "asia.bif", source, "--target", "lung", "-o", target, "--keep", "id,remark")
            assert (code, out) == (0, "")
            assert f"lung predicted in {N:,} rows; written to {target}" in err
            found = pd.read_parquet(target) if target.endswith("parquet") else pd.read_csv(target)
            assert found.columns.tolist() == ["id", "remark", "lung", "P(lung=yes)", "P(lung=no)"]
            assert found["id"].astype(int).tolist() == rows["id"].tolist()
            assert found["remark"].tolist() == rows["remark"].tolist()
            assert found["lung"].astype(str).tolist() == states.tolist()
            np.testing.assert_allclose(found.iloc[:, 3:], probs, rtol=1e-14)
    assert sorted(p.name for p in Path().iterdir() if p.name.startswith(".")) == []


def test_standard_output_and_words_that_mean_missing(run) -> None:
    sf.write(sf.load("asia"), "asia.bif")
    Path("few.csv").write_text("smoke,xray,lung\nyes,?,no\n,yes,\n")
    code, out, err = run("predict", "asia.bif", "few.csv", "--target", "lung", "--missing", "?")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "lung,P(lung=yes),P(lung=no)"
    assert [line.split(",")[0] for line in lines[1:]] == ["no", "no"]
    assert float(lines[1].split(",")[1]) == pytest.approx(0.1)
    code, _, err = run("predict", "asia.bif", "few.csv", "--target", "lung")
    assert code == 1
    assert "few.csv, line 2, column 'xray': '?' is not a state" in err


def test_what_cannot_be_is_refused_in_a_sentence(run, rows) -> None:
    asked = ("predict", "asia.bif", "rows.csv", "--target")
    for words, sentence in (
        ((*asked, "lnug"), "no node 'lnug'; did you mean 'lung'"),
        ((*asked, "lung", "-o", "out.txt"), "rows are written to .csv"),
        ((*asked, "lung", "-o", "out.csv", "--keep", "remrak"), "no column 'remrak' to keep; did you mean 'remark'"),
        ((*asked, "lung", "-o", "out.csv", "--keep", "lung"), "cannot be kept: the prediction is written under this name"),
        ((*asked, "lung", "-o", "nowhere/out.csv"), "cannot be written"),
        (("predict", "asia.bif", "row.csv", "--target", "lung"), "there is no such file; did you mean 'rows.csv'"),
        (("predict", "asia.bif", "rows.stats", "--target", "lung"), "there is no such file"),
    ):
        code, out, err = run(*words)
        assert (code, out) == (1, "")
        assert sentence in err
        assert len(err.splitlines()) == 1
    assert not Path("out.csv").exists()
    assert run("predict", "asia.bif", "rows.csv")[0] == 2


def test_a_wrong_cell_in_a_late_block_leaves_no_file(run, rows) -> None:
    rows.loc[N - 1, "smoke"] = "maybe"
    rows.to_csv("bad.csv", index=False)
    Path("out.csv").write_text("what was there\n")
    code, _, err = run("predict", "asia.bif", "bad.csv", "--target", "lung", "-o", "out.csv")
    assert code == 1
    assert f"bad.csv, line {N + 1}, column 'smoke': 'maybe' is not a state" in err
    assert Path("out.csv").read_text() == "what was there\n"
    assert [p for p in Path().iterdir() if p.name.startswith(".")] == []


def test_impossible_rows_are_empty_and_noted(run) -> None:
    tables = {"x": [0.5, 0.5], "y": [[1.0, 0.0], [0.5, 0.5]], "z": [[0.5, 0.5], [1.0, 0.0]]}
    sf.write(sf.BayesNet("x -> y; x -> z", tables, {n: ["a, b", "c"] for n in tables}), "net.json")
    Path("rows.csv").write_text('y,z\nc,c\nc,"a, b"\n')
    code, out, err = run("predict", "net.json", "rows.csv", "--target", "x")
    assert code == 0
    assert "rows.csv, line 2 are impossible under the network" in err
    assert out.splitlines() == ['"x","P(x=a, b)","P(x=c)"', ",,", '"c",0,1']


def test_no_rows_give_a_header(run) -> None:
    sf.write(sf.load("asia"), "asia.bif")
    Path("none.csv").write_text("smoke,id\n")
    for name in ("out.csv", "out.parquet"):
        assert run("predict", "asia.bif", "none.csv", "--target", "lung", "-o", name, "--keep", "id")[0] == 0
    assert Path("out.csv").read_text() == "id,lung,P(lung=yes),P(lung=no)\n"
    assert pq.read_table("out.parquet").num_rows == 0


def test_real_targets(run) -> None:
    sf.write(sf.BayesNet("x -> y", {"x": sf.Gaussian(1.0), "y": sf.Gaussian(0.0, {"x": 2.0})}), "net.json")
    Path("rows.csv").write_text('y\n7\n""\n')
    code, out, _ = run("predict", "net.json", "rows.csv", "--target", "x")
    assert code == 0
    assert out.splitlines()[0] == "x,Var(x)"
    numbers = [[float(c) for c in line.split(",")] for line in out.splitlines()[1:]]
    assert numbers == [pytest.approx([3.0, 0.2]), pytest.approx([1.0, 1.0])]


def test_parquet_is_written_in_groups(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(rows_file, "GROUP", 10)
    path = str(tmp_path / "a.parquet")
    assert rows_file.write_stream((pa.table({"x": [i] * 4}) for i in range(7)), path) == 28
    assert pq.ParquetFile(path).metadata.num_row_groups == 3
    assert pq.read_table(path)["x"].to_pylist() == [i for i in range(7) for _ in range(4)]


def test_interrupted_it_leaves_no_file(tmp_path) -> None:
    def tables():
        yield pa.table({"x": [1]})
        raise KeyboardInterrupt

    for name in ("a.csv", "a.csv.gz", "a.parquet"):
        with pytest.raises(KeyboardInterrupt):
            rows_file.write_stream(tables(), str(tmp_path / name))
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_leaves_no_file(run) -> None:
    """A whole process is interrupted while it writes."""
    bn = sf.load("alarm")
    pa.csv.write_csv(bn.sample(300_000, seed=0), "rows.csv")
    sf.write(bn, "alarm.bif")
    words = [sys.executable, "-m", "suffice", "predict", "alarm.bif", "rows.csv", "--target", "LVFAILURE", "-o", "out.csv.gz"]
    process = subprocess.Popen(words, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        if list(Path().glob(".out.csv.gz*")):
            process.send_signal(signal.SIGINT)
            break
        time.sleep(0.01)
    assert process.wait(120) == 130
    assert not Path("out.csv.gz").exists()
    assert list(Path().glob(".out.csv.gz*")) == []


def test_the_rows_are_not_overwritten(run, rows) -> None:
    before = Path("rows.csv").read_bytes()
    code, _, err = run("predict", "asia.bif", "rows.csv", "--target", "lung", "-o", "./rows.csv")
    assert code == 1
    assert "another file" in err
    assert Path("rows.csv").read_bytes() == before


def test_blank_lines_of_a_file_of_one_column_are_rows(run, rows) -> None:
    Path("one.csv").write_text("\nxray\nyes\n\nno\n")  # above the header they are none
    code, out, _ = run("predict", "asia.bif", "one.csv", "--target", "lung")
    assert code == 0
    assert len(out.splitlines()) == 4
