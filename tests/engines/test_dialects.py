"""Text files that are written otherwise: separators, decimal marks, encodings, on every command that opens data."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.engines.encoding.sources import Dialect, TextPath
from suffice.engines.reading.files import recognise_separator
from suffice.errors import DataError, SufficeNote

PLAIN = "age,smoke,sbp\n17,no,120.5\n64,yes,133.25\n,no,\n30,yes,141\n"


def written(path: Path, separator: str, decimal: str, encoding: str = "utf-8", text: str = PLAIN) -> Path:
    body = text.replace(",", "\0").replace(".", decimal).replace("\0", separator).encode(encoding)
    path.write_bytes(gzip.compress(body) if path.suffix == ".gz" else body)
    return path


def numbers(data: sf.Data) -> Any:
    return data.fold(lambda block: np.nansum(block.columns["sbp"]))


@pytest.mark.filterwarnings("ignore::suffice.errors.SufficeNote")
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16", "cp1252"])
@pytest.mark.parametrize("decimal", [".", ","])
@pytest.mark.parametrize("separator", [";", "\t", "|", " "])
@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_the_same_rows_however_they_are_written(tmp_path: Path, name: str, separator: str, decimal: str, encoding: str) -> None:
    text = PLAIN.replace("smoke", "raucht_é" if encoding != "utf-16" else "raucht_€")
    path = written(tmp_path / name, separator, decimal, encoding, text)
    plain = tmp_path / "plain.csv"
    plain.write_text(text)
    data, expected = sf.scan(path, separator=separator, decimal=decimal, encoding=encoding), sf.scan(plain)
    assert dict(data.schema) == dict(expected.schema)
    assert dict(data.missing) == dict(expected.missing)
    assert numbers(data) == numbers(expected) == 120.5 + 133.25 + 141
    if separator != " ":
        assert dict(sf.scan(path, decimal=decimal, encoding=encoding).schema) == dict(expected.schema)


@pytest.mark.parametrize(
    ("name", "text", "columns"),
    [
        ("a.csv", 'a;b\n1,5;"x;y"\n2,5;z\n', ("a", "b")),
        ("a.csv", '"a";"b"\n"1";"x"\n', ("a", "b")),
        ("a.csv", "weight, kg;b\n1;2\n1;2\n", ("weight, kg", "b")),
        ("a.tsv", "a;b\n1;2\n", ("a", "b")),
        ("a.csv", "a|b|c\n1|2|3\n", ("a", "b", "c")),
        ("a.csv", "a,b\n1;2,2\n", ("a", "b")),
        ("a.csv", "a;b\n", ("a;b",)),
        ("a.csv", "a;b\n1\n2\n", ("a;b",)),
    ],
)
def test_separators_are_recognised_and_said(tmp_path: Path, name: str, text: str, columns: tuple[str, ...]) -> None:
    (tmp_path / name).write_text(text)
    if len(columns) == 1 or ("," in text.split("\n")[0].replace(", kg", "") and ";" not in text.split("\n")[0]):
        assert sf.scan(tmp_path / name).columns == columns
        return
    with pytest.warns(SufficeNote, match="separates the columns, as the first lines show"):
        assert sf.scan(tmp_path / name).columns == columns


def refused(path: Path, text: str, **how: Any) -> str:
    path.write_text(text)
    with pytest.raises(DataError) as caught:
        repr(sf.scan(path, **how).schema)
    return str(caught.value)


def test_thousands_marks_are_refused_with_their_column(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for cell in ("1.234,5", "1.234.567", "1 234", "1'234,5", "1.234"):
        told = refused(path, f"id;pay\nx;12\ny;{cell}\n", decimal=",", separator=";")
        assert f"line 3, column 'pay': '{cell}'".replace("'1'234,5'", '"1\'234,5"') in told
        assert "thousands mark" in told
    assert "decimal point" in refused(path, "id;pay\nx;12,5\ny;1.5\n", decimal=",", separator=";")
    for cell in ("1,234.5", "1,234,567", "1 234.0", "1,234"):
        told = refused(path, f"id;pay\nx;12\ny;{cell}\n", separator=";")
        assert "line 3, column 'pay'" in told
        assert ("decimal=','" in told) == ("," in cell)
    path.write_text("id;pay\nx;1,234\ny;2,345\n")
    states = sf.scan(path, {"pay": sf.Finite}, separator=";").schema["pay"]
    assert states.states == ("1,234", "2,345")


@pytest.mark.filterwarnings("ignore::suffice.errors.SufficeNote")
def test_only_columns_of_numbers_are_read_with_decimal_commas(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x;choice;n;w\n1,5;1,2;NA;0,5\nNA;1,2,3;2,5;1\n-,5;x;1e3;1\n")
    data = sf.scan(path, decimal=",", missing=["NA"], weights="w")
    assert data.schema["choice"].states == ("1,2", "1,2,3", "x")
    assert isinstance(data.schema["x"], sf.Real)
    assert isinstance(data.schema["n"], sf.Real)
    assert data.weight == 2.5
    cut = sf.scan(path, {"x": sf.Bins([0.0])}, decimal=",", missing=["NA"])
    assert cut.schema["x"].states == ("<0", ">=0")


@pytest.mark.filterwarnings("ignore::suffice.errors.SufficeNote")
def test_states_keep_their_decimal_commas_where_a_word_comes_late(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x;y\n" + "1,5;1\n2,5;1\n" * 600 + "k.A.;1\n")
    assert sf.scan(path, decimal=",").schema["x"].states == ("1,5", "2,5", "k.A.")


def test_what_is_no_dialect_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for how, told in (
        ({"separator": ";;"}, "one character"),
        ({"separator": '"'}, "one character"),
        ({"decimal": "x"}, "decimal mark is"),
        ({"decimal": ",", "separator": ","}, "cannot separate"),
        ({"encoding": "nonsense"}, "is not known"),
        ({"encoding": "base64"}, "is not known"),
        ({"encoding": "ascii\0"}, "is not known"),
    ):
        assert told in refused(path, "a\n1\n", **how)
    with pytest.raises(DataError, match="for text files"):
        sf.scan({"a": [1]}, separator=";")
    with pytest.raises(DataError, match="first scanned"):
        sf.scan(sf.scan({"a": [1]}), decimal=",")
    path.write_bytes("a\n\xe9\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"line 2: the text is not UTF-8; .* encoding='latin-1'"):
        repr(sf.scan(path).schema)
    path.write_bytes("a\n1\n".encode("utf-16"))
    with pytest.raises(DataError, match="encoding='utf-16'"):
        repr(sf.scan(path).schema)
    path.write_bytes(b"a\n\xff\xff\xff\n")
    with pytest.raises(DataError, match="the text is not utf-16"):
        repr(sf.scan(path, encoding="utf-16").schema)


def test_every_command_that_opens_data(run: Any) -> None:
    rows = "id;s;x;y\n" + "".join(f"{i // 10};{'ab'[i // 3 % 2]};{i % 7},5;{'ué'[i // 2 % 2]}\n" for i in range(60))
    Path("rows.csv").write_bytes(rows.encode("latin-1"))
    gaps = "id;s;x;y\n1;a;1,5;u\n1;;2,5;\xe9\n2;b;0,5;u\n"
    Path("gaps.csv").write_bytes(gaps.encode("latin-1"))
    how = ("--separator", "semicolon", "--decimal", ",", "--encoding", "latin-1")

    def done(*words: str) -> str:
        code, out, err = run(*words, *how)
        assert code == 0, (words, err)
        return str(out)

    assert "0.5 to 6.5" in done("schema", "rows.csv")
    done("fit", "y -> x", "rows.csv", "-o", "m.json")
    assert "2.5" in done("impute", "m.json", "gaps.csv")
    assert sf.read("m.json").variables["x"] == sf.Real("x")
    assert sf.read("m.json").variables["y"].states == ("u", "é")
    done("fit", "s[-1] -> s", "rows.csv", "-o", "chain.json", "--by", "id")
    done("fit", "s -- y", "rows.csv", "-o", "lines.json")
    done("fit", "rows.csv", "-o", "crf.json", "--chain", "y", "--features", "s@0", "--by", "id", "--max-iter", "3")
    done("learn", "rows.csv", "--without", "id")
    done("learn", "rows.csv", "--by", "id", "--without", "x,y")
    done("score", "m.json", "rows.csv")
    done("score", "chain.json", "rows.csv", "--by", "id")
    done("missing", "gaps.csv")
    assert "3.5" not in done("predict", "m.json", "rows.csv", "--target", "y", "--keep", "x")
    done("predict", "crf.json", "rows.csv", "--by", "id")
    for command in ("decode", "smooth", "filter"):
        done(command, "chain.json", "gaps.csv", "--by", "id")
    done("forecast", "chain.json", "rows.csv", "--by", "id", "--steps", "2")
    code, _, err = run("score", "m.json", "rows.csv", "--separator", "nonsense")
    assert code == 1
    assert "one character" in err


def test_advice_of_the_command_line_is_in_its_options(run: Any) -> None:
    Path("a.csv").write_text("id;pay\nx;12\ny;1,234\n")
    code, _, err = run("learn", "a.csv")
    assert code == 1
    assert "say so: --decimal ," in err
    Path("a.csv").write_bytes(b"a\n\xe9\n")
    assert "say how: --encoding latin-1" in run("learn", "a.csv")[2]
    Path("a.csv").write_text("a;b\n1;x\n2;y\n")
    assert "--separator comma says otherwise" in run("learn", "a.csv")[2]


def test_states_of_a_file_are_read_without_pandas(tmp_path: Path) -> None:
    """Arrow loads it at its first look at a list or for `to_numpy`: a third of a second, for a file of a few rows."""
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "yes,x\nno,y\nno,x\n" * 20, encoding="utf-8")
    script = f"import sys, suffice as sf; sf.fit('a -> b', {str(path)!r}); print('pandas' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    assert run.stdout.strip() == "False"


def test_the_separator_of_first_lines() -> None:
    assert recognise_separator(b"age;smoke\n17,5;no\n18,5;yes\n", ",") == ";"
    assert recognise_separator(b"age\n17\n", ",") == ","
    assert recognise_separator(b"age;smoke\n17,5;no\n18,5;yes;1\n19,5;no\n", ",") == ";"
    assert TextPath("rows.csv", Dialect(";")).dialect == Dialect(";", ".", "utf-8")
