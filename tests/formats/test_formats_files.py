"""Files by suffix: compression, encodings, what cannot be read, and that writing is all or nothing."""

from __future__ import annotations

import gzip
import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import suffice as sf
from suffice.basis.output import files
from suffice.basis.registry import every
from suffice.errors import FormatError, ModelError, SufficeError, SufficeNote, TooLarge
from suffice.formats import read, write
from tests.formats.test_formats import BIF, TEXTS, XMLBIF

COIN = "variable coin { type discrete [ 2 ] { head, tail }; } probability ( coin ) { table 0.5, 0.5; }"
WRITABLE = [f".{word}" for word, form in every("formats").items() if not form.read_only and word != "json"]


def wet(tmp_path: Path) -> sf.BayesNet:
    path = tmp_path / "wet.bif"
    path.write_text(BIF)
    return read(path)


def equal(a: sf.BayesNet, b: sf.BayesNet) -> bool:
    return dict(a.variables) == dict(b.variables) and all(
        a[n].parents == b[n].parents and np.array_equal(a[n].probs, b[n].probs) for n in a.variables
    )


@pytest.mark.parametrize("zipped", ["", ".gz"])
@pytest.mark.parametrize("suffix", WRITABLE)
def test_write_then_read(tmp_path: Path, suffix: str, zipped: str) -> None:
    bn = wet(tmp_path)
    path = tmp_path / f"out{suffix}{zipped}"
    write(bn, path)
    again = read(str(path))
    if suffix == ".uai":
        assert list(again.variables) == ["x0", "x1", "x2"]
        assert np.array_equal(again["x2"].probs, bn["wet"].probs)
    else:
        assert equal(again, bn)
    before = path.read_bytes()
    write(bn, path)
    assert path.read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(["wet.bif", path.name])


@pytest.mark.parametrize("form", sorted(TEXTS))
def test_every_format_by_its_suffix(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"A.{form.upper()}"
    path.write_text(TEXTS[form])
    assert len(read(path).variables) == 3


@pytest.mark.parametrize("end", ["\r\n", "\r"])
@pytest.mark.parametrize("form", sorted(TEXTS))
def test_byte_order_mark_and_line_ends(tmp_path: Path, form: str, end: str) -> None:
    plain, odd = tmp_path / f"a.{form}", tmp_path / f"b.{form}"
    text = TEXTS[form].replace("ISO-8859-1", "UTF-8")
    plain.write_text(text)
    odd.write_bytes(b"\xef\xbb\xbf" + text.replace("\n", end).encode())
    assert equal(read(odd), read(plain))


def test_lines_are_counted_with_any_line_ends(tmp_path: Path) -> None:
    for end in ("\n", "\r\n", "\r"):
        path = tmp_path / "a.bif"
        path.write_bytes(BIF.replace("0.6, 0.4", "0.6, 0.6").replace("\n", end).encode())
        with pytest.raises(FormatError, match=r"a.bif, line 10: variable 'wet' given rain=no, pump=low"):
            read(path)


class TestEncodings:
    def test_xml_may_declare_one(self, tmp_path: Path) -> None:
        text = XMLBIF.replace('version="1.0"?', 'version="1.0" encoding="{}"?').replace("pump", "Größe")
        for encoding in ("ISO-8859-1", "UTF-8", "utf-16", "windows-1252"):
            path = tmp_path / "a.xml"
            path.write_bytes(text.format(encoding).encode(encoding))
            assert list(read(path).variables) == ["rain", "Größe", "wet"]

    def test_an_unknown_one(self, tmp_path: Path) -> None:
        path = tmp_path / "a.xml"
        for encoding in ("rot13", "zlib", "punycode", "klingon"):
            path.write_text(XMLBIF.replace('version="1.0"?', f'version="1.0" encoding="{encoding}"?'))
            with pytest.raises(FormatError, match=f"line 1: the encoding '{encoding}' is not known"):
                read(path)

    def test_bytes_that_are_no_text(self, tmp_path: Path) -> None:
        path = tmp_path / "a.bif"
        path.write_bytes(b"network x {\n}\nvariable caf\xe9 { }")
        with pytest.raises(FormatError, match="line 3: byte 27 of the file is not UTF-8"):
            read(path)
        path = tmp_path / "a.xml"
        path.write_bytes(b'<?xml version="1.0" encoding="ascii"?><BIF>\xff</BIF>')
        with pytest.raises(FormatError, match="is not ascii"):
            read(path)


class TestRefusals:
    def test_unknown_suffix(self, tmp_path: Path) -> None:
        for name in ("a.tex", "a", "a.gz", ".bif", "a.bif.bz2"):
            (tmp_path / name).write_text("")
            with pytest.raises(FormatError, match=r"the suffix .* is not known; known are \.bif .* \.json"):
                read(tmp_path / name)

    def test_missing_files_and_directories(self, tmp_path: Path) -> None:
        with pytest.raises(FormatError, match=r"a\.bif: the file cannot be read: No such file"):
            read(tmp_path / "a.bif")
        with pytest.raises(FormatError, match=r"a\.bif\.gz: the file cannot be read: No such file"):
            read(tmp_path / "a.bif.gz")
        (tmp_path / "d.bif").mkdir()
        with pytest.raises(FormatError, match="this is a directory"):
            read(tmp_path / "d.bif")
        with pytest.raises(FormatError, match="no name of a file"):
            read(str(tmp_path / "a\0.bif"))

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
    def test_forbidden_files(self, tmp_path: Path) -> None:
        path = tmp_path / "a.bif"
        path.write_text(COIN)
        path.chmod(0)
        with pytest.raises(FormatError, match="Permission denied"):
            read(path)

    def test_broken_compression(self, tmp_path: Path) -> None:
        path = tmp_path / "a.bif.gz"
        whole = gzip.compress((COIN * 100).encode())
        for data in (whole[:-9], whole[:20], whole[:60] + b"xxxx" + whole[64:], b"abc", COIN.encode(), whole + b"rest"):
            path.write_bytes(data)
            with pytest.raises(FormatError, match=r"gzip|cut off or broken"):
                read(path)

    def test_a_compressed_file_that_explodes(self, tmp_path: Path) -> None:
        path = tmp_path / "a.bif.gz"
        path.write_bytes(gzip.compress(b" " * 2**25))
        with pytest.raises(
            TooLarge, match=r"a.bif.gz: the text is larger than 16.0 MiB, the most that is read of it; decompress"
        ):
            read(path)

    def test_a_file_that_is_too_large(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(files, "MAX_BYTES", 10)
        path = tmp_path / "a.bif"
        path.write_text(COIN)
        with pytest.raises(TooLarge, match="10 B"):
            read(path)

    def test_too_large_names_the_file(self, tmp_path: Path) -> None:
        names = [f"v{k}" for k in range(31)]
        path = tmp_path / "a.bif"
        path.write_text(
            "".join(f"variable {n} {{ type discrete [ 2 ] {{ a, b }}; }}" for n in names)
            + f"probability ( v0 | {' '.join(names[1:])} ) {{ default 1 0; }}"
            + "".join(f"probability ( {n} ) {{ default 1 0; }}" for n in names[1:])
        )
        with pytest.raises(TooLarge, match=r"a\.bif: the tables have"):
            read(path)


def test_one_note_per_file_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "a.bif"
    path.write_text(BIF.replace("0.6, 0.4", "0.6, 0.3999999").replace("0.8, 0.2; }", "0.8, 0.1999999; }"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        bn = read(path)
    assert [str(w.message) for w in caught] == [f"{path}: 2 rows were divided by their sum, which was not exactly 1"]
    assert caught[0].category is SufficeNote
    assert caught[0].filename == __file__
    assert bn["rain"].probs.sum() == pytest.approx(1.0, abs=1e-15)


class TestWriting:
    def test_what_a_format_cannot_hold(self, tmp_path: Path) -> None:
        hybrid = sf.BayesNet(
            "a -> b", {"a": [0.5, 0.5], "b": sf.Gaussian([0.0, 1.0], {}, [1.0, 1.0])}, [sf.Finite("a", ["x", "y"])]
        )
        for suffix in WRITABLE:
            with pytest.raises(FormatError, match=rf"{suffix} holds only finite variables, and 'b' is none; write .json"):
                write(hybrid, tmp_path / f"a{suffix}")
        with pytest.raises(FormatError, match=r"\.dsl is only read; write \.xdsl"):
            write(hybrid, tmp_path / "a.dsl")
        assert list(tmp_path.iterdir()) == []

    def test_cut_points_are_noted(self, tmp_path: Path) -> None:
        bn = sf.BayesNet("a", {"a": [0.5, 0.5]}, [sf.Finite("a", ["<1", ">=1"], cuts=[1.0])])
        with pytest.warns(SufficeNote, match=r"\.bif does not keep where 'a' was cut"):
            write(bn, tmp_path / "a.bif")

    def test_notes_point_at_the_caller(self, tmp_path: Path) -> None:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            write(wet(tmp_path), tmp_path / "a.uai")
        assert [w.filename for w in caught] == [__file__]

    def test_an_error_leaves_the_old_file(self, tmp_path: Path) -> None:
        path = tmp_path / "a.xml"
        path.write_text("old")
        bn = sf.BayesNet("a", {"a": [0.5, 0.5]}, [sf.Finite("a", ["\x01", "b"])])
        with pytest.raises(FormatError, match=r"a\.xml: .* XML cannot hold"):
            write(bn, path)
        assert path.read_text() == "old"
        surrogate = sf.BayesNet("a", {"a": [0.5, 0.5]}, [sf.Finite("a", ["\ud800", "b"])])
        for suffix in WRITABLE:
            if suffix != ".uai":
                with pytest.raises(FormatError):
                    write(surrogate, tmp_path / f"b{suffix}")
        assert [p.name for p in tmp_path.iterdir()] == ["a.xml"]

    def test_a_full_disk_leaves_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        bn = wet(tmp_path)
        path = tmp_path / "a.bif"
        path.write_text("old")

        def full(self: Path, data: bytes) -> int:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_bytes", full)
        with pytest.raises(FormatError, match=r"a\.bif: the file cannot be written: No space left on device"):
            write(bn, path)
        assert path.read_text() == "old"
        assert sorted(p.name for p in tmp_path.iterdir()) == ["a.bif", "wet.bif"]

    def test_places_where_nothing_can_be_written(self, tmp_path: Path) -> None:
        bn = wet(tmp_path)
        (tmp_path / "d.bif").mkdir()
        for path in (tmp_path / "no" / "a.bif", tmp_path / "d.bif", tmp_path / "wet.bif" / "a.bif"):
            with pytest.raises(SufficeError):
                write(bn, path)


class TestJson:
    REPOSITORY = """{"nodes": ["r", "s", "t", "u"], "arcs": [["s", "r"], ["t", "r"], ["s", "t"], ["u", "r"]], "cpds": {
      "s": {"type": "discrete", "parents": [], "states": ["a", "b"], "parent_states": {}, "prob": [0.25, 0.75]},
      "u": {"coefficients": {"(Intercept)": [1.5]}, "variance": [4.0], "parents": []},
      "t": {"type": "discrete", "parents": ["s"], "states": ["x", "y", "z"], "parent_states": {"s": ["b", "a"]},
            "prob": [0.1, 0.2, 0.7, 0.3, 0.3, 0.4]},
      "r": {"type": "clg", "parents": ["s", "u", "t"],
            "discrete_parents": ["s", "t"], "continuous_parents": ["u"], "configs": [%s]}}}"""
    CONFIG = '{"given": {"s": "%s", "t": "%s"}, "coefficients": {"(Intercept)": %d, "u": %d}, "sd": 3}'

    def text(self) -> str:
        configs = [self.CONFIG % (s, t, k, -k) for k, (t, s) in enumerate((t, s) for t in "xyz" for s in "ab")]
        return self.REPOSITORY % ", ".join(configs)

    def test_repository_networks(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text(self.text())
        bn = read(path)
        assert list(bn.variables) == ["r", "s", "t", "u"]
        np.testing.assert_allclose(bn["t"].probs, [[0.3, 0.3, 0.4], [0.1, 0.2, 0.7]])
        assert bn["r"].parents == ("s", "u", "t")
        np.testing.assert_array_equal(bn["r"].intercept, [[0, 2, 4], [1, 3, 5]])
        np.testing.assert_array_equal(bn["r"].coefficients[..., 0], [[0, -2, -4], [-1, -3, -5]])
        np.testing.assert_array_equal(bn["r"].variance, np.full((2, 3), 9.0))
        assert bn["u"].intercept == 1.5
        assert bn["u"].variance == 4.0

    def test_two_parents_of_a_table(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        path.write_text("""{"nodes": ["a", "b", "c"], "arcs": [["a", "c"], ["b", "c"]], "cpds": {
          "a": {"type": "discrete", "parents": [], "states": ["0", "1"], "parent_states": {}, "prob": [0.5, 0.5]},
          "b": {"type": "discrete", "parents": [], "states": ["0", "1", "2"], "parent_states": {}, "prob": [0.5, 0.25, 0.25]},
          "c": {"type": "discrete", "parents": ["a", "b"], "states": ["0", "1"],
                "parent_states": {"a": ["0", "1"], "b": ["0", "1", "2"]},
                "prob": [0.0, 1.0, 0.1, 0.9, 0.2, 0.8, 0.3, 0.7, 0.4, 0.6, 0.5, 0.5]}}}""")
        np.testing.assert_array_equal(read(path)["c"].probs[..., 0], [[0.0, 0.2, 0.4], [0.1, 0.3, 0.5]])

    @pytest.mark.parametrize(
        ("old", "new", "message"),
        [
            ('"sd": 3', '"sd": -0', "variance of 'r' must be a positive number"),
            ('"sd": 3', '"sd": "3"', "the sd of 'r' must be a number"),
            ('"sd": 3', '"sd": NaN', "NaN is not a number that JSON may hold"),
            ('"sd": 3', '"sd": 1e999', "must be a number"),
            ('{"s": "a", "t": "x"}', '{"s": "b", "t": "x"}', "a configuration twice"),
            ('{"s": "a", "t": "x"}', '{"s": "c", "t": "x"}', "variable 's' has no state 'c'"),
            ('{"s": "a", "t": "x"}', '{"s": "a"}', "does not give its finite parents"),
            ('"(Intercept)": 0, "u"', '"(Intercept)": 0, "v"', "a coefficient for each"),
            ('["s", "r"], ', "", "disagree about 's' -> 'r'"),
            ('"clg"', '"glm"', "unknown type 'glm'"),
            ("0.25, 0.75", "0.25, 0.25", "variable 's': the probabilities sum to 0.5"),
            ("0.25, 0.75", "0.25", "has 1 numbers"),
            ('["b", "a"]', '["b", "c"]', "are not those it has"),
            ('["x", "y", "z"]', '["x", "y", "y"]', "the state 'y' twice"),
            ('"s": {"type"', '"v": {"type"', "must be among the nodes and have a CPD"),
            ('"u": {"coef', '"s": {"coef', "the key 's' occurs twice"),
            ('["r", "s", "t", "u"]', '["r", "s", "t", "u", "u"]', "a node is listed twice"),
            ('{"s": "a", "t": "x"}', '{"s": ["a"], "t": "x"}', "variable 's' has no state"),
            ('["r", "s", "t", "u"]', '["r", "s", "t", "u", 1]', "a node must be a text"),
            ('"parents": ["s"], ', "", "has no 'parents'"),
            ('"cpds"', '"cpd"', "the JSON holds no network"),
            ("{", "[", "broken"),
            ("}", "", "broken"),
        ],
    )
    def test_refused(self, tmp_path: Path, old: str, new: str, message: str) -> None:
        path = tmp_path / "a.json"
        path.write_text(self.text().replace(old, new, 1))
        with pytest.raises(FormatError, match=r"a\.json") as caught:
            read(path)
        assert message in str(caught.value)

    def test_a_real_parent_of_a_table(self, tmp_path: Path) -> None:
        path = tmp_path / "a.json"
        text = (
            self.text()
            .replace('"parents": ["s"]', '"parents": ["s", "u"]')
            .replace('["s", "t"], ["u"', '["s", "t"], ["u", "t"], ["u"')
        )
        path.write_text(text)
        with pytest.raises(FormatError, match="the table of 't' cannot have the real parent 'u'"):
            read(path)

    @pytest.mark.parametrize("text", ["", "1", "null", "[]", "{}", "[" * 100_000, '{"a":' * 50_000, "9" * 10_000])
    def test_nonsense(self, tmp_path: Path, text: str) -> None:
        path = tmp_path / "a.json"
        path.write_text(text)
        with pytest.raises(FormatError):
            read(path)


@pytest.mark.parametrize("value", [{"a": 1}, None, sf.Dag("a -> b"), sf.BayesNet])
def test_what_is_no_model_is_not_written(value: Any, tmp_path: Path) -> None:
    for suffix in (".json", ".bif", ".uai"):
        with pytest.raises(ModelError, match="what is written is a model, such as fit"):
            sf.write(value, tmp_path / f"model{suffix}")
    assert not list(tmp_path.iterdir())
