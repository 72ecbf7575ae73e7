"""CoNLL files: a line for each word, and a blank line after each sentence."""

from __future__ import annotations

import gzip
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suffice as sf
from suffice.errors import DataError

TEXT = "the\tDET\ncat\tNOUN\n\n\n#\tSYM\n1\tNUM\nNA\tX\n"


def written(folder: Path, text: str | bytes, name: str = "a.conll") -> Path:
    path = folder / name
    data = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


def test_words_are_rows(tmp_path: Path) -> None:
    table = sf.labels.read_conll(written(tmp_path, TEXT), ["word", "tag"])
    assert table.to_pydict() == {
        "sentence": [1, 1, 2, 2, 2],
        "word": ["the", "cat", "#", "1", "NA"],
        "tag": ["DET", "NOUN", "SYM", "NUM", "X"],
    }
    assert [str(t) for t in table.schema.types] == ["int64", "string", "string"]
    assert sf.labels.read_conll(written(tmp_path, TEXT)).column_names == ["sentence", "column1", "column2"]


OTHER = {
    "CRLF": TEXT.replace("\n", "\r\n"),
    "CR": TEXT.replace("\n", "\r"),
    "no newline at the end": TEXT.rstrip("\n"),
    "blank lines around": "\n \n" + TEXT + "\n\t\n\n",
    "a mark of byte order": "\ufeff" + TEXT,
    "blanks": TEXT.replace("\t", " "),
    "several blanks": " " + TEXT.replace("\t", "   ").replace("T\n", "T  \n"),
    "comments": "# text = the cat\n#\n" + TEXT.replace("\n\n\n", "\n\n# sent_id = 2\n"),
    "comments apart": "# newdoc\n\n# text = the cat\n" + TEXT,
}


@pytest.mark.parametrize("name", OTHER)
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_other_ways_to_write_it(name: str, suffix: str, tmp_path: Path) -> None:
    found = sf.labels.read_conll(written(tmp_path, OTHER[name], f"a.tsv{suffix}"), ["word", "tag"])
    assert found.equals(sf.labels.read_conll(written(tmp_path, TEXT), ["word", "tag"]))


def test_marks_of_text_stay_as_they_are(tmp_path: Path) -> None:
    words = ['"', "'", '""a', "a,b", "\\", "#hash", "\u00a0", "1\u00a0000", "nan", "\u2028", "é"]
    path = written(tmp_path, "".join(f"{w}\tX\n" for w in words))
    assert sf.labels.read_conll(path)["column1"].to_pylist() == words
    one = written(tmp_path, "#\na\n\n# b c\nb\n")
    assert sf.labels.read_conll(one)["column1"].to_pylist() == ["#", "a", "b"]


REFUSED = {
    "ragged": (TEXT + "a\tb\tc\n", "line 8: found 3 fields where line 1 has 2"),
    "too few": ("# c\na\tb\n\nx\n", "line 4: found 1 field where line 2 has 2"),
    "a comment within": ("a\tb\n# no\nb\tc\n", "line 2: found 1 field where line 1 has 2"),
    "empty": ("", "the file is empty"),
    "blank": ("\n \n", "the file is empty"),
    "comments": ("# a\n# b c\n", "only comments"),
    "not text": (b"a\tb\nc\t\xff\n", "line 2: the text is not UTF-8"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str, tmp_path: Path) -> None:
    text, message = REFUSED[name]
    with pytest.raises(DataError, match=r"a\.conll.*" + message):
        sf.labels.read_conll(written(tmp_path, text))


def test_names_that_do_not_fit(tmp_path: Path) -> None:
    path = written(tmp_path, TEXT)
    with pytest.raises(DataError, match="there are 2 columns, and 1 names for them: 'word'"):
        sf.labels.read_conll(path, ["word"])
    with pytest.raises(DataError, match="a list of names"):
        sf.labels.read_conll(path, "word")
    with pytest.raises(DataError, match="'sentence' occurs twice"):
        sf.labels.read_conll(path, ["sentence", "tag"])
    with pytest.raises(DataError, match="cannot be read"):
        sf.labels.read_conll(tmp_path / "no.conll")


def test_scan_reads_such_files(tmp_path: Path) -> None:
    one, two = written(tmp_path, TEXT), written(tmp_path, "a\tX\n\nb\tX\n", "b.conll.gz")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        s = sf.sequences([one, two], by="sentence")
        assert s.lengths.tolist() == [2, 3, 1, 1]
        assert s.schema["column1"] == sf.Finite("column1", ["#", "1", "NA", "a", "b", "cat", "the"])
    assert s.data.place(0, 6) == f"sequence '4', step 1 ({two}, line 3)"
    with pytest.raises(DataError, match=r"line 5, column 'column1': '#' is not a state"):
        sf.scan(one, {"column1": ["the", "cat", "1"]}).gather([sf.statistics.Request(("column1",))])
    with pytest.raises(DataError, match=r"b\.conll: there are 1 columns, and .*a\.conll has 2"):
        sf.scan([one, written(tmp_path, "a\n", "b.conll")])
    universal = written(tmp_path, "# text = a\n" + "\t".join(map(str, range(10))) + "\n", "u.conllu")
    assert sf.scan(universal).columns[:5] == ("sentence", "id", "form", "lemma", "upos")


WORDS = st.text("ab#\"' é,1", min_size=1, max_size=3).filter(lambda word: word.strip())


@settings(max_examples=50, deadline=None)
@given(st.lists(st.lists(st.tuples(WORDS, WORDS), min_size=1, max_size=4), min_size=1))
def test_what_is_written_is_read(sentences: list[list[tuple[str, str]]]) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        text = "\n".join("".join("\t".join(w) + "\n" for w in s) for s in sentences)
        table = sf.labels.read_conll(written(Path(folder), text))
    assert list(zip(*table.to_pydict().values(), strict=True)) == [(i + 1, *w) for i, s in enumerate(sentences) for w in s]
