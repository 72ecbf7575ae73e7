"""What came through the doors once: each is refused in one sentence, or read for what it is."""

from __future__ import annotations

import io
import json
import warnings
import zipfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import suffice as sf
from suffice.errors import LONGEST, SufficeError, SufficeNote, note
from suffice.formats.registry import json_of, model_in


def refusal(call: Any) -> str:
    """What is said by a call that is refused, without a warning before."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", SufficeNote)
        with pytest.raises(SufficeError) as caught:
            call()
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) <= LONGEST
    return message


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    sf.gather({"x": ["a", "b", "a"], "y": [0.5, 1.5, 3.0]}, sf.Dag("x -> y")).save(tmp_path / "a.stats")
    return tmp_path / "a.stats"


def rewritten(path: Path, name: str, change: Any) -> Path:
    """The archive with one of its parts changed."""
    with zipfile.ZipFile(path) as archive:
        parts = {n: archive.read(n) for n in archive.namelist()}
    parts[name] = change(parts[name])
    with zipfile.ZipFile(path, "w") as archive:
        for n, content in parts.items():
            archive.writestr(n, content)
    return path


HEADERS = {
    "TokenError": b"{'descr': '<f8', 'fortran_order': False, 'shape': (2,",
    "SyntaxError": b"{'descr': '<f8' 'fortran_order': : False, 'shape': (2,)}",
    "Python 2": b"{'descr': '<f8', 'fortran_order': False, 'shape': (2L,), }",
    "complex": b"{'descr': '<c16', 'fortran_order': False, 'shape': (1,), }",
    "objects": b"{'descr': '|O', 'fortran_order': False, 'shape': (2,), }",
    "larger than it is": b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }",
}


@pytest.mark.parametrize("what", HEADERS)
def test_headers_of_arrays(saved: Path, what: str) -> None:
    header = HEADERS[what] + b"\n"
    body = np.array([2.0, 1.0]).tobytes()
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + body
    rewritten(saved, "numbers.npy", lambda _: array)
    assert "is not what its header says" in refusal(lambda: sf.Statistics.load(saved))


def test_arrays_as_numpy_writes_them(saved: Path) -> None:
    """Of another byte order, and with a header of the second version: the same numbers."""

    def again(written: bytes) -> bytes:
        numbers, buffer = np.load(io.BytesIO(written)), io.BytesIO()
        np.lib.format.write_array(buffer, numbers.astype(">f8"), version=(2, 0), allow_pickle=False)
        return buffer.getvalue()

    rewritten(saved, "numbers.npy", again)
    np.testing.assert_array_equal(sf.Statistics.load(saved).counts(["x"]).values, [2.0, 1.0])


def test_lone_surrogates(saved: Path) -> None:
    rewritten(saved, "header.json", lambda text: text.replace(b'"a"', b'"\\ud800"'))
    assert "not Unicode" in refusal(lambda: sf.Statistics.load(saved))
    for model in (sf.load("asia"), sf.undirected.RBM([sf.Finite("asia", ["a", "b"])], [[1.0]], [0.0], [0.2])):
        text = json_of(model).replace('"asia"', '"\\ud800"')
        assert "not Unicode" in refusal(lambda text=text: model_in(text, ".json"))


def test_json_of_wrong_types() -> None:
    """Each number of a prior and of a regression replaced by something else: refused, or a model that can be written again."""
    counts = sf.scan({"y": [0.5, 1.5, 3.0, 2.0], "n": [1, 2, 0, 4]}, {"n": sf.Count("n")})
    glm = json.loads(json_of(sf.fit("y -> n", counts, families={"n": sf.regressions.PoissonLog(1.0)})))
    bdeu = json.loads(json_of(sf.fit("x", {"x": ["a", "b"]}, prior=sf.BDeu(1))))
    places = [
        (glm, glm["cpds"]["n"]),
        (glm, glm["cpds"]["n"]["options"]),
        (glm, glm["cpds"]["n"]["fitted"]),
        (bdeu, bdeu["prior"]),
    ]
    for whole, part in places:
        for key, right in list(part.items()):
            for wrong in ("x", [], {}, None, True, "1", [[1]], 1e999, -1, {"a": 1}, 2**70, 10**400):
                part[key] = wrong
                with suppress(SufficeError):
                    json_of(model_in(json.dumps(whole), ".json")[0])
            part[key] = right


def test_text_that_is_not_utf8(tmp_path: Path) -> None:
    cells = pa.Array.from_buffers(pa.string(), 2, [None, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"\xffa")])
    pq.write_table(pa.table({"x": cells}), tmp_path / "a.parquet")
    for rows in (tmp_path / "a.parquet", pa.table({"x": cells})):
        assert "column 'x' cannot be read (it holds text that is not UTF-8)" in refusal(lambda rows=rows: sf.scan(rows).schema)


def test_names_of_parquet_that_are_not_utf8(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    pq.write_table(pa.table({"xyzzy": [1.0]}), buffer, compression="none", store_schema=False)
    (tmp_path / "a.parquet").write_bytes(buffer.getvalue().replace(b"xyzzy", b"\xffyzzy"))
    assert "not UTF-8" in refusal(lambda: sf.scan(tmp_path / "a.parquet"))


def test_a_word_that_is_a_byte_order_mark(tmp_path: Path) -> None:
    (tmp_path / "a.conll").write_text(" \ufeff\ncat ")
    assert sf.labels.read_conll(tmp_path / "a.conll")["column1"].to_pylist() == ["\ufeff", "cat"]


def test_cells_of_text_files(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"a\n\x1cinf\n1\n")
    assert sf.scan(path).schema["a"].states == ("\x1cinf", "1")
    path.write_bytes(b"a,b\n1,x\n2,y\0z\n")
    assert "line 3: there is a byte 0" in refusal(lambda: sf.scan(path).schema)
    (tmp_path / "a.conll").write_bytes(b"a b\nc \0\n")
    assert "line 2: there is a byte 0" in refusal(lambda: sf.scan(tmp_path / "a.conll").schema)


def test_two_byte_order_marks_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" * 2 + b"\n1\n\n2\n")
    assert "line 1: there are two byte-order marks" in refusal(lambda: sf.scan(tmp_path / "a.csv").schema)


def test_numbers_and_times_of_frames() -> None:
    assert "row 2, column 'w'" in refusal(lambda: sf.scan({"x": ["a", "b"], "w": [1, 10**400]}, weights="w").weight)
    assert "row 2, column 'y'" in refusal(lambda: sf.scan({"y": [1, 10**400]}).n_rows and sf.scan({"y": [1, 10**400]}).missing)
    assert "largest double" in refusal(lambda: sf.scan({"x": ["a", "b"]}, weights=[1, 10**400]))
    zone = pa.table({"x": pa.array([1, 2], pa.timestamp("s", "Mars/Phobos"))})
    assert "'Mars/Phobos'" in refusal(lambda: sf.scan(zone).schema)
    months = pa.table({"x": pa.array([(1, 2, 3), None], pa.month_day_nano_interval())})
    assert "month_day_nano_interval, not numbers" in refusal(lambda: sf.scan(months).schema)


def test_weights_whose_sum_is_beyond_a_double() -> None:
    huge = {"x": ["a", "b", "a"], "w": [1e308] * 3}
    for rows in (lambda: sf.scan(huge, weights="w"), lambda: sf.scan({"x": huge["x"]}, weights=[1e308] * 3)):
        assert "the weights of all rows together" in refusal(lambda rows=rows: sf.fit("x", rows()))
        assert "the weights of all rows together" in refusal(lambda rows=rows: sf.gather(rows(), sf.Dag("x")))


def test_squares_beyond_a_double_are_refused_without_a_warning() -> None:
    huge = {"y": [1e308, -1e308, 1e307] * 9, "x": [1.0, 2.0, 3.0] * 9}
    for call in (
        lambda: sf.fit("y", huge),
        lambda: sf.fit("x -> y", huge),
        lambda: sf.fit("x -> y", {"y": huge["y"], "x": ["a", "b", "a"] * 9}),
        lambda: sf.search(huge),
        lambda: sf.fit(sf.Graph("x -- y"), huge),
        lambda: sf.search(huge, method=sf.GraphicalLasso()),
    ):
        assert "the squares of the numbers of 'y'" in refusal(call)


def test_the_size_of_a_table_is_said() -> None:
    names = [f"v{k}" for k in range(40)]
    variables = "".join(f"variable {n} {{ type discrete [ 2 ] {{ a, b }}; }}" for n in names)
    roots = "".join(f"probability ( {n} ) {{ table 0.5 0.5; }}" for n in names[1:])
    text = f"{variables} probability ( v0 | {', '.join(names[1:])} ) {{ default 0.5 0.5; }} {roots}"
    assert "1,099,511,627,776 numbers (8.0 TiB)" in refusal(lambda: model_in(text, ".bif"))
    factor = f"MARKOV 40 {'2 ' * 40} 1 40 {' '.join(map(str, range(40)))} {2**40} 0.5"
    assert "1,099,511,627,776" in refusal(lambda: model_in(factor, ".uai"))


NAME = "\x1b[31mred\x1b[0m\n\u202e\x07"


def test_what_files_hold_does_nothing_to_a_terminal(run: Any, tmp_path: Path) -> None:
    rows = {NAME: ["a", "b"] * 20, "y": ["\x1b]0;title\x07", "v"] * 20}
    pq.write_table(pa.table(rows), "rows.parquet")
    sf.write(sf.fit(sf.Dag([(NAME, "y")]), rows), "m.json")
    Path("bad.csv").write_text("a,b\n1,2,3\n")
    for words in (
        ("show", "m.json"),
        ("show", "m.json", "--json"),
        ("learn", "rows.parquet"),
        ("learn", "rows.parquet", "--json"),
        ("score", "m.json", "rows.parquet"),
        ("query", "m.json", "P(y)"),
        ("query", "m.json", f"P({NAME})"),
        ("missing", "rows.parquet"),
        ("predict", "m.json", "bad.csv", "--target", NAME),
        ("learn", "rows.parquet", "--without", NAME),
    ):
        code, out, err = run(*words)
        assert code in (0, 1)
        for text in (out, err):
            assert all(c.isprintable() or c in "\n\t" for c in text), words
        if code == 0 and words[-1] == "--json":
            json.loads(out)


def test_messages_are_one_short_line() -> None:
    long = sf.SufficeError("x" * 10**6 + NAME)
    assert len(str(long)) in (LONGEST - 1, LONGEST)
    assert str(long).endswith("\\u202e\\x07")
    with pytest.warns(SufficeNote) as told:
        note("a" * 10**6 + NAME)
    assert str(told[0].message).isprintable()
    assert len(str(told[0].message)) <= LONGEST


def test_a_file_of_very_many_columns(tmp_path: Path) -> None:
    """What is looked at cell by cell, in short columns, is what Arrow finds in long ones."""
    cells = ["1", "2.5", "x", "", "1e3", "nan", "inf", " 7 ", "007", "NA", "-"]
    short = tmp_path / "short.csv"
    columns = {f"c{i}": [cells[i % 11], cells[i // 11]] for i in range(121)}
    finite = {n: c for n, c in columns.items() if not ({"nan", "inf"} & set(c))}
    short.write_text(_csv(finite, 1))
    long = tmp_path / "long.csv"
    long.write_text(_csv(finite, 40))
    a, b = (sf.scan(path, missing=["NA"], integers=sf.Real) for path in (short, long))
    assert dict(a.schema) == dict(b.schema)
    assert {n: 40 * k for n, k in a.missing.items()} == dict(b.missing)


def _csv(columns: dict[str, list[str]], times: int) -> str:
    rows = [*zip(*columns.values(), strict=True)] * times
    return "\n".join(",".join(row) for row in [tuple(columns), *rows]) + "\n"
