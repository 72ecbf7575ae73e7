"""Sources: where rows come from, as batches of Arrow columns, before anything is known about what they mean; what was said of
them (`Options`) and of how text is written (`Dialect`); and one pass over them, through encoders
(`encode_batches`), in blocks (`cut`).

A source knows its columns and what each is made of, can be read more than once, and can say where a row stands, so that an
error can name the file and the line.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from itertools import repeat
from pathlib import Path
from typing import Any, Literal

import numpy as np

from suffice.basis.libraries import pa, pt
from suffice.basis.variables import Bins, Finite, NumbersStay, Real, Variable, declaration, state_text
from suffice.engines.encoding.encode import Encoder, Wrong
from suffice.engines.steps.blocks import ROWS, Array, ahead, n_threads, with_count
from suffice.errors import DataError, SchemaError, nearest

FEW_CELLS = 2**19
"""Cells that are encoded sooner than threads are started for them."""


class Kind(Enum):
    """What the cells of a column are made of."""

    CELLS = "cells of a text file"
    TEXT = "text"
    CATEGORY = "categories"
    BOOL = "true or false"
    INTEGER = "whole numbers"
    NUMBER = "numbers"
    TIME = "dates or times"
    NOTHING = "nothing"
    LISTS = "lists of texts"
    OTHER = "something else"


class Source:
    """Rows that can be read, again and again. Most are columns of Arrow, whose types say what they are made of."""

    names: tuple[str, ...]
    """The columns, in their order."""
    n_rows: int | None = None
    """The number of rows, where it is known without reading them."""
    stable = True
    """Whether the rows come in the same order each time they are read."""
    paths: tuple[Path, ...] = ()
    """The files that the rows are in, if they are in files."""
    notes: tuple[str, ...] = ()
    """What the user should know before the rows are read."""
    decimal: str = "."
    """The decimal mark of numbers that are written as text."""
    few_bytes = False
    """Whether the rows take so few bytes that they are encoded sooner than threads are started for them, or a line is shown."""

    def type_of(self, name: str) -> Any:
        """The Arrow type of a column."""
        raise NotImplementedError

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        """The rows in their order, as Arrow arrays of equal lengths. Text may come as such or as a dictionary."""
        raise NotImplementedError

    def kind(self, name: str) -> Kind:
        """What a column is made of."""
        raise NotImplementedError

    def categories(self, name: str) -> Categories | None:
        """The states that the type of a column declares."""
        return None

    @cached_property
    def length(self) -> int:
        """The number of rows, counted before they are read if it must be."""
        return self.n_rows or 0

    def n_bytes(self, names: Sequence[str]) -> int:
        """About how much memory these columns would take, encoded: one byte a state, eight a number."""
        numbers = (Kind.INTEGER, Kind.NUMBER, Kind.NOTHING)
        n_rows = self.length if self.n_rows is None else self.n_rows
        return n_rows * sum(8 if self.kind(n) in numbers else 1 for n in names)

    def place(self, row: int) -> str:
        """Where the row with this number, from 0, stands: for a person."""
        return f"row {row + 1}"


@dataclass(frozen=True)
class Categories:
    """States that a type declares, and whether their order is meant."""

    states: tuple[str, ...]
    ordered: bool


def checked_names(names: Iterable[object], where: str) -> tuple[str, ...]:
    """The names of columns, none of them blank and none there twice."""
    result = tuple(str(n) for n in names)
    if not result:
        raise DataError(f"{where}: there are no columns")
    seen: set[str] = set()
    for i, name in enumerate(result):
        if not name.strip():
            raise DataError(f"{where}: column {i + 1} has no name")
        if name in seen:
            raise DataError(f"{where}: the column {name!r} occurs twice")
        seen.add(name)
    return result


def kind_of(arrow_type: Any) -> Kind:
    """The kind of an Arrow type."""
    tests = (
        (pt.is_interval, Kind.OTHER),
        (pt.is_dictionary, Kind.CATEGORY),
        (pt.is_boolean, Kind.BOOL),
        (pt.is_integer, Kind.INTEGER),
        (pt.is_floating, Kind.NUMBER),
        (pt.is_decimal, Kind.NUMBER),
        (pt.is_temporal, Kind.TIME),
        (pt.is_null, Kind.NOTHING),
    )
    for test, kind in tests:
        if test(arrow_type):
            return kind
    text = (pt.is_string, pt.is_large_string, pt.is_string_view, pt.is_binary, pt.is_large_binary, pt.is_fixed_size_binary)
    if any(test(arrow_type) for test in text):
        return Kind.TEXT
    lists = pt.is_list(arrow_type) or pt.is_large_list(arrow_type)
    texts = lists and (pt.is_string(arrow_type.value_type) or pt.is_large_string(arrow_type.value_type))
    return Kind.LISTS if texts else Kind.OTHER


@contextmanager
def readable() -> Iterator[None]:
    """A file that has gone, or text that cannot be, is refused in our own words."""
    try:
        yield
    except OSError as error:
        raise DataError(f"{error.filename or 'the data'}: cannot be read any more ({error.strerror or error})") from None
    except UnicodeError as error:
        raise DataError(f"the data hold text that is not Unicode: {error}") from None


@dataclass(frozen=True)
class Options:
    """Declared columns, the column of weights, the words that mean missing, what whole numbers are, how much memory to take."""

    declared: Mapping[str, Any] = field(default_factory=dict)
    weights: str | None = None
    missing: tuple[str, ...] = ()
    integers: type[Real] | type[Finite] | None = None
    memory_limit: int = 2**30
    unknown: Literal["refuse", "missing"] | None = None
    """What becomes of states that declared columns do not have; None where nothing is said of a way out."""
    loose: bool = False
    """Whether categories that types declare mean nothing, as those of Parquet files, which keep no unused ones."""
    decimal: str | None = None
    """The decimal mark of rows of text files in other processes, whose cells are words; None where columns have types."""

    def declare(self, variables: Any, columns: Sequence[str]) -> Options:
        """The same with more declarations, by name or as a list of variables, each of one of these columns. That numbers stay
        numbers is said of columns of which nothing else was said."""
        if variables is None:
            return self
        by_name = variables if isinstance(variables, Mapping) else _by_name(variables)
        there, declared = frozenset(columns), dict(self.declared)
        for name, what in by_name.items():
            if name not in there:
                raise DataError(f"the data have no column {name!r}, which was declared{nearest(str(name), columns)}")
            target = what.target if isinstance(what, Bins) else None
            if target is not None and target not in there:
                raise DataError(f"the data have no column {target!r}, by which {name!r} is to be cut{nearest(target, columns)}")
        for name, what in by_name.items():
            if what is NumbersStay:
                declared.setdefault(name, what)
            else:
                declared[name] = declaration(name, what)
        return replace(self, declared=declared)

    def with_targets(self, names: Iterable[str]) -> list[str]:
        """These columns, and those by which some of them are cut."""
        targets = [b.target for n in names if isinstance(b := self.declared.get(n), Bins) and b.target is not None]
        return list(dict.fromkeys([*names, *targets]))


@dataclass(frozen=True)
class Dialect:
    """How a text file is written; without a separator it is recognised."""

    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        mark = self.separator
        if mark is not None and (not isinstance(mark, str) or len(mark) != 1 or not mark.isascii() or mark in '"\r\n\0'):
            raise DataError(f"a separator is one character, such as ';' or a tab, not {mark!r}")
        if self.decimal not in (".", ","):
            raise DataError(f"the decimal mark is '.' or ',', not {self.decimal!r}")
        if mark == self.decimal:
            raise DataError(f"{mark!r} cannot separate columns and be the decimal mark: give another separator")
        try:
            is_text = isinstance(self.encoding, str) and codecs.lookup(self.encoding)._is_text_encoding
        except (LookupError, ValueError):
            is_text = False
        if not is_text:
            raise DataError(f"the encoding {self.encoding!r} is not known; known are utf-8, utf-16, latin-1, cp1252 and others")


AS_USUAL = Dialect()
"""How text files are written of which nothing was said."""


class TextPath(str):
    """The path of text files, or a pattern, with what was said of how they are written: for whoever passes paths on."""

    dialect: Dialect

    def __new__(cls, path: str, dialect: Dialect) -> TextPath:
        result = super().__new__(cls, path)
        result.dialect = dialect
        return result


def checked_words(missing: Iterable[object]) -> tuple[str, ...]:
    """The words that mean missing."""
    return (missing,) if isinstance(missing, str) else tuple(state_text(word) for word in missing)


def _by_name(variables: Iterable[Any]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for variable in variables:
        if not isinstance(variable, Variable):
            raise SchemaError(f"a list of variables holds Finite, Real or Count, not {variable!r}; or give a dict by column")
        result[variable.name] = variable
    return result


def encode_batches(
    source: Source, encoders: Mapping[str, Encoder], keep: Sequence[str] = (), what: str = "reading rows"
) -> Generator[tuple[dict[str, Array], Mapping[str, Any], int]]:
    """The chunks of the columns, encoded; the batches they came from, in which `keep` are columns, too; and their lengths."""
    names = list(dict.fromkeys([*encoders, *keep]))
    shares = [list(encoders)[i :: 4 * n_threads()] for i in range(min(len(encoders), 4 * n_threads()))]
    row = 0

    def encode_share(share: Sequence[str], batch: Mapping[str, Any]) -> dict[str, Array]:
        chunks = {}
        for name in share:
            try:
                chunk = encoders[name].encode(batch[name])
            except Wrong as wrong:
                raise wrong_cell(source, name, row, wrong) from None
            except (UnicodeError, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                where = f"{source.paths[0]}: " if len(source.paths) == 1 else ""
                why = "it holds text that is not UTF-8" if isinstance(error, UnicodeError) else str(error).partition("\n")[0]
                raise DataError(f"{where}the column {name!r} cannot be read ({why})") from None
            if chunk is not None:
                chunks[name] = chunk
        return chunks

    with ExitStack() as stack:
        run: Callable[..., Iterator[dict[str, Array]]] = map
        batches = source.batches(names)
        if not source.few_bytes and (source.n_rows is None or source.n_rows * len(names) > FEW_CELLS):
            run = stack.enter_context(ThreadPoolExecutor(n_threads())).map
            batches = stack.enter_context(closing(ahead(batches)))
        counted = batches if source.few_bytes else with_count(batches, what, source.n_rows, lambda b: len(b[names[0]]))
        for batch in counted:
            chunks: dict[str, Array] = {}
            for part in run(encode_share, shares, repeat(batch)):
                chunks.update(part)
            length = len(batch[names[0]])
            yield chunks, batch, length
            row += length


def wrong_cell(source: Source, name: str, row: int, wrong: Wrong) -> DataError:
    """The error about a wrong cell, with its place."""
    return DataError(f"{source.place(row + wrong.row)}, column {name!r}: {wrong.message}")


def cut(parts: Iterable[tuple[dict[Any, Any], int]]) -> Iterator[dict[Any, Any]]:
    """Chunks of any lengths, arrays of numpy or Arrow, cut anew into blocks; what lies in one chunk is not copied."""
    pieces: list[dict[Any, Any]] = []
    lacking = ROWS
    for chunks, n in parts:
        start = 0
        while start < n:
            size = min(lacking, n - start)
            pieces.append({k: c[start : start + size] for k, c in chunks.items()})
            start, lacking = start + size, lacking - size
            if not lacking:
                yield pieces[0] if len(pieces) == 1 else _join_pieces(pieces)
                pieces, lacking = [], ROWS
    if pieces:
        yield pieces[0] if len(pieces) == 1 else _join_pieces(pieces)


def _join_pieces(pieces: list[dict[Any, Any]]) -> dict[Any, Any]:
    joined = {k: np.concatenate if isinstance(cells, np.ndarray) else pa.concat_arrays for k, cells in pieces[0].items()}
    return {k: join([piece[k] for piece in pieces]) for k, join in joined.items()}
