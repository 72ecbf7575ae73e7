"""CoNLL files as a source: a line for each word, with a column for each of its marks, and a blank line after each sentence.

Every cell is text, also one that looks like a number. Columns are parted by tabs if any line has one, otherwise by blanks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from suffice.basis.arrays import Bools, Ints
from suffice.basis.libraries import pa
from suffice.engines.encoding.sources import checked_names
from suffice.engines.reading.files import open_bytes
from suffice.engines.reading.frames import FrameSource
from suffice.engines.steps.blocks import locate
from suffice.errors import DataError, listing

if TYPE_CHECKING:
    import pyarrow

SUFFIXES = (".conll", ".conllu")

UNIVERSAL = ("id", "form", "lemma", "upos", "xpos", "feats", "head", "deprel", "deps", "misc")
"""The columns of a .conllu file (universaldependencies.org/format)."""

SENTENCE = "sentence"


def read_conll(path: str | PathLike[str], columns: Sequence[str] | None = None) -> pyarrow.Table:
    """The words of a CoNLL file, also of one that is compressed (.gz), as an Arrow table.

    The column `sentence` counts the sentences from 1, as whole numbers; `columns` names the others, which are text. By default
    they are column1, column2, …, and those of a .conllu file have their usual names. Blank lines part sentences. A line that
    begins with # before the first word of a sentence is a comment, unless it has as many fields as the words have: a word may be
    #. ConllLines of several words or of none, such as 1-2 and 8.1 of a .conllu file, are rows like others.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.tsv"
    >>> _ = path.write_text("the\\tDET\\ncat\\tNOUN\\n\\nsleep\\tVERB\\n")
    >>> read_conll(path, ["word", "tag"]).to_pylist()[1:]
    [{'sentence': 1, 'word': 'cat', 'tag': 'NOUN'}, {'sentence': 2, 'word': 'sleep', 'tag': 'VERB'}]
    """
    return Sentences.of(Path(path)).table(Path(path), columns)


def parts_sentences(path: Path) -> bool:
    """Whether there are blank lines between other lines in the first million bytes of a file."""
    with open_bytes(path) as raw:
        head = raw.read(2**20)
    return re.search(rb"\S[ \t]*\r?\n[ \t]*\r?\n\s*\S", head) is not None


class Sentences(NamedTuple):
    """The words of a file: their columns, the sentence that each is in, from 1, and its line."""

    columns: tuple[Any, ...]
    sentences: Ints
    lines: Ints

    @classmethod
    def of(cls, path: Path) -> Sentences:
        data = _bytes(path)
        lines = ConllLines.of(data)
        word = ~(lines.blank | lines.comments())
        if not word.any():
            raise DataError(f"{path}: the file {'is empty' if lines.blank.all() else 'has no words, but only comments'}")
        places = np.flatnonzero(word)
        widths = lines.widths[places]
        if len(ragged := np.flatnonzero(widths != widths[0])):
            i = int(ragged[0])
            found = f"{widths[i]} field{'s' if widths[i] > 1 else ''}"
            why = "; the file has tabs, so blanks part no fields" if lines.separator == "\t" else ""
            raise DataError(f"{path}, line {places[i] + 1}: found {found} where line {places[0] + 1} has {widths[0]}{why}")
        # A sentence begins with a word that a blank line comes before.
        blanks = np.cumsum(lines.blank)[places]
        sentences = np.cumsum(np.append(True, blanks[1:] != blanks[:-1]))
        return cls(_fields(lines.of_words(word), lines.separator, int(widths[0])), sentences, places + 1)

    def table(self, path: Path, columns: Sequence[str] | None, first: int = 0) -> Any:
        """The words as an Arrow table; their sentences are numbered on from `first`."""
        names = _names(path, columns, len(self.columns))
        return pa.table({SENTENCE: self.sentences + first, **dict(zip(names, self.columns, strict=True))})


@dataclass(frozen=True, eq=False)
class ConllLines:
    """The lines of a file, looked at as bytes: a loop over them would take longer than all else."""

    cells: npt.NDArray[np.uint8]
    starts: Ints
    separator: str
    widths: Ints
    """The number of fields of each line."""
    blank: Bools

    @classmethod
    def of(cls, data: bytes) -> ConllLines:
        cells = np.frombuffer(data, np.uint8)
        ends = np.flatnonzero(cells == ord("\n"))
        starts = np.append(0, ends[:-1] + 1)
        tab, space, end = (cells == ord(mark) for mark in "\t \n")
        nothing = tab | space | end
        begins = ~nothing & np.append(True, nothing[:-1])
        words = np.add.reduceat(begins, starts, dtype=np.int64)
        separator = "\t" if tab.any() else " "
        widths = np.add.reduceat(tab, starts, dtype=np.int64) + 1 if separator == "\t" else words
        return cls(cells, starts, separator, widths, words == 0)

    def comments(self) -> Bools:
        """Which lines are comments."""
        marked = (self.cells[self.starts] == ord("#")) & ~self.blank
        words = self.widths[~marked & ~self.blank]
        if not len(words):
            several = len(set(self.widths[marked].tolist())) > 1
            return marked if several else np.zeros_like(marked)
        result = np.zeros(len(self.starts), bool)
        for i in np.flatnonzero(marked).tolist():
            result[i] = self.widths[i] != words[0] and (i == 0 or self.blank[i - 1] or result[i - 1])
        return result

    def of_words(self, word: Bools) -> npt.NDArray[np.uint8]:
        """The bytes of those lines that are words, with one blank between fields that blanks part."""
        lengths = np.diff(np.append(self.starts, len(self.cells)))
        cells = self.cells if word.all() else self.cells[np.repeat(word, lengths)]
        if self.separator == "\t":
            return cells
        text = cells.tobytes()
        while b"  " in text:
            text = text.replace(b"  ", b" ")
        text = text.replace(b" \n", b"\n").replace(b"\n ", b"\n").removeprefix(b" ")
        return np.frombuffer(text, np.uint8)


def _fields(cells: npt.NDArray[np.uint8], separator: str, width: int) -> tuple[Any, ...]:
    from pyarrow import csv

    names = [str(i) for i in range(width)]
    table = csv.read_csv(
        pa.BufferReader(b"\n" + cells.tobytes()),  # Arrow would drop a byte order mark that is the first word
        read_options=csv.ReadOptions(column_names=names, block_size=2**24, skip_rows=1),
        parse_options=csv.ParseOptions(delimiter=separator, quote_char=False, double_quote=False),
        convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), check_utf8=False),
    )
    return tuple(table.columns)


def _bytes(path: Path) -> bytes:
    """The text of a file, every line ended by a newline."""
    with open_bytes(path) as raw:
        data = raw.read().removeprefix(b"\xef\xbb\xbf")
    if (zero := data.find(0)) >= 0:
        line = data.count(b"\n", 0, zero) + 1
        raise DataError(f"{path}, line {line}: there is a byte 0, which no text has")
    try:
        data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: the text is not UTF-8") from None
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    return data if data.endswith(b"\n") else data + b"\n"


def _names(path: Path, columns: Sequence[str] | None, width: int) -> tuple[str, ...]:
    if isinstance(columns, str):
        raise DataError(f"columns are a list of names, [{columns!r}], not one name")
    if columns is None:
        universal = ".conllu" in (s.lower() for s in path.suffixes) and width == len(UNIVERSAL)
        return UNIVERSAL if universal else tuple(f"column{i + 1}" for i in range(width))
    if len(columns) != width:
        raise DataError(f"{path}: there are {width} columns, and {len(columns)} names for them: {listing(columns)}")
    return checked_names([SENTENCE, *columns], str(path))[1:]


class Conll(FrameSource):
    """The words of CoNLL files, one after the other; sentences are numbered through."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        read = [Sentences.of(path) for path in self.paths]
        self._lines = [r.lines for r in read]
        first = np.cumsum([0, *(r.sentences[-1] for r in read)]).tolist()
        for path, r in zip(self.paths, read, strict=True):
            if len(r.columns) != len(read[0].columns):
                raise DataError(f"{path}: there are {len(r.columns)} columns, and {self.paths[0]} has {len(read[0].columns)}")
        table = pa.concat_tables([r.table(self.paths[0], None, n) for r, n in zip(read, first[:-1], strict=True)])
        super().__init__({n: partial(table.column, n) for n in table.column_names}, len(table))

    def place(self, row: int) -> str:
        file, own = locate([len(lines) for lines in self._lines], row)
        return f"{self.paths[file]}, line {self._lines[file][own]}"
