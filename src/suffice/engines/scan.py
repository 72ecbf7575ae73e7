"""The door: anything that holds rows becomes `Data`."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from suffice.basis.registry import Named, every
from suffice.basis.variables import Finite, Real
from suffice.engines.data import Data
from suffice.engines.encoding.sources import AS_USUAL, Dialect, Options, Source, TextPath, checked_words
from suffice.engines.engine import Engine
from suffice.engines.local.local import Local
from suffice.engines.reading.conll import SUFFIXES as CONLL
from suffice.engines.reading.conll import Conll
from suffice.engines.reading.files import SUFFIXES, Delimited, Parquet
from suffice.engines.reading.frames import from_frame
from suffice.errors import DataError, SchemaError, bytes_of, nearest
from suffice.errors.remedies import TEXT_OPTIONS

if TYPE_CHECKING:
    from suffice.basis.argument_types import RowsLike, VariablesLike, WeightsLike


class Backend(Named):
    """Where rows are worked on, as `scan(x, engine=…)` takes it: Spark, or a place of somebody else's. It makes an `Engine` of
    files, or of rows that only it can read, and is found by its word (`--engine WORD`) or by the type of such rows."""

    listed_in = "engines"

    maps_frames: ClassVar[bool] = False
    """Whether answers about its rows are such rows again (`map_frame`); elsewhere they are an Arrow table."""

    @classmethod
    def takes(cls, x: Any) -> bool:
        """Whether these rows are of a kind of its own."""
        return False

    @classmethod
    def around(cls, x: Any) -> Backend:
        """The backend where such rows are."""
        return cls()

    def of_frame(self, x: Any, options: Options) -> Engine:
        """The engine of rows that it takes."""
        raise DataError(f"{type(self).__name__} reads files, and no rows of the type {type(x).__name__}")

    def of_files(self, source: Source, options: Options) -> Engine:
        """The engine of rows of Parquet or text files."""
        raise DataError(f"{type(self).__name__} reads no files: give it rows of its own kind")

    def map_frame(self, x: Any, function: Callable[[Any], Any]) -> Any:
        """Rows of its own kind, of what a function makes of tables of those that it is given."""
        raise NotImplementedError


LOCAL = frozenset({"builtins", "collections", "duckdb", "narwhals", "numpy", "pandas", "pathlib", "polars", "pyarrow", "suffice"})
"""Packages whose types are read here: for them nobody else is asked."""


def backend_of(x: Any) -> Backend | None:
    """The backend that rows are of by their type; None where they are read here."""
    if type(x).__module__.partition(".")[0] in LOCAL:
        return None
    return next((kind.around(x) for kind in every("engines").values() if kind.takes(x)), None)


def maps_frames(x: Any) -> bool:
    """Whether answers about these rows are rows of the same kind, beside their columns: of a frame of Spark they are."""
    where = backend_of(x)
    return where is not None and where.maps_frames


def scan(
    x: RowsLike,
    variables: VariablesLike | None = None,
    *,
    weights: WeightsLike | None = None,
    missing: Iterable[object] = (),
    integers: type[Real] | type[Finite] | None = None,
    memory_limit: int | str | None = None,
    separator: str | None = None,
    decimal: str = ".",
    encoding: str = "utf-8",
    engine: Backend | None = None,
) -> Data:
    """Rows, wherever they are: a pandas, polars or Arrow frame, a dict of columns, a structured array, a path, a list or glob
    of paths of CSV, Parquet or CoNLL files, a DuckDB relation, a Spark frame.

    `variables` declares columns: {name: Finite(...), Real, Count, Bins(5) or a list of states}, or a list of variables; what
    is not declared is inferred. `weights` is the name of a column of row weights, or an array of them. `missing` lists words
    that mean a missing cell, besides the empty one.

    Undeclared numbers with two different values, and whole numbers with at most 10 in at least 50 rows, are states, which a note
    says; `integers=Real` keeps all of them numbers, `integers=Finite` makes states of all whole numbers.

    Columns that are larger, encoded, than `memory_limit` (by default 1 GiB, or SUFFICE_MEMORY_LIMIT) are kept in a temporary
    file. `print(data.schema)` reports what each column is, and what may have been meant otherwise.

    Of text files, `separator` parts the columns: by default a comma, of .tsv files a tab, or what the first lines show, which is
    noted. `decimal=","` is for numbers such as 1,5; thousands marks are refused. `encoding` is for text that is not UTF-8.

    `engine=Spark(session)` has Parquet and text files read by the workers of Spark; rows of a Spark frame are never collected.
    Engines of others are a `Backend` (docs/own_pieces.md).

    >>> from suffice import Bins
    >>> scan({"age": [17, 64], "ill": ["no", "yes"]}, {"age": Bins([18, 65])}).schema
    2 rows
    <BLANKLINE>
    column  kind    values                    missing
    ──────  ──────  ────────────────────────  ───────
    age     Finite  <18 1, [18,65) 1, >=65 0
    ill     Finite  no 1, yes 1
    """
    said = (separator, decimal, encoding) != (None, ".", "utf-8")
    dialect = Dialect(separator, decimal, encoding) if said else AS_USUAL
    if isinstance(x, Data):
        if weights is not None or tuple(missing) or integers is not None or said:
            raise DataError(
                "weights, missing, integers and how text is written are said when rows are first scanned; scan their source again"
            )
        return x if variables is None else x.with_variables(variables)
    if integers not in (None, Real, Finite):
        raise SchemaError(f"integers are Real or Finite, not {integers!r}")
    options = Options({}, None, checked_words(missing), integers, bytes_of(memory_limit))
    where = backend_of(x) if engine is None else engine
    if where is not None:
        return on_backend(x, where, options, variables, weights, dialect)
    source = source_of(x, dialect)
    if isinstance(weights, str):
        options = replace(options, weights=_weights_column(weights, source))
    rows = Local(source, options if variables is None else options.declare(variables, source.names))
    if source.n_rows == 0:
        rows.set_rows(0)
    if weights is not None and not isinstance(weights, str):
        rows.set_weights(weights)
    return Data(rows, rows.names)


def on_backend(x: Any, where: Any, options: Options, variables: Any, weights: Any, dialect: Dialect) -> Data:
    """Rows that are worked on elsewhere: of a kind of its own, or in files."""
    if not isinstance(where, Backend):
        raise DataError(f"an engine is Spark(session), not {where!r}; without one, rows are read here")
    if weights is not None and not isinstance(weights, str):
        raise DataError(f"rows on {type(where).__name__} have their weights in a column: give its name")
    rows: Any = where.of_frame(x, options) if where.takes(x) else where.of_files(source_of(x, dialect), options)
    column = None if weights is None else _weights_column(weights, rows)
    made = rows.again(replace(rows.options, weights=column).declare(variables, rows.names))
    return Data(made, made.names)


def rows_of(x: Any, missing: Iterable[object] = ()) -> Data:
    """Anything that `scan` takes, for whoever answers row by row: there may be no rows at all."""
    if isinstance(x, Data):
        return x
    if backend_of(x) is not None:
        return scan(x, missing=missing)
    source = source_of(x)
    return Data(Local(source, Options(missing=checked_words(missing))), source.names)


def rows_with(x: Any, variables: Mapping[str, Any], word: str) -> Data:
    """Anything that `scan` takes with a column for each of these variables, read as them; `word` is what names them."""
    rows = scan(x)
    for name in variables:
        if name not in rows.columns:
            raise DataError(f"the data have no column {name!r}, which the {word} names{nearest(name, rows.columns)}")
    return rows.with_variables(variables).select(list(variables))


def source_of(x: Any, dialect: Dialect = AS_USUAL) -> Source:
    """The source of the rows of anything that `scan` takes, but `Data`."""
    if isinstance(x, TextPath):
        dialect = x.dialect
    given = [x] if isinstance(x, (str, os.PathLike)) else x
    if not (isinstance(given, Sequence) and given and all(isinstance(p, (str, os.PathLike)) for p in given)):
        if dialect != AS_USUAL:
            raise DataError(f"{TEXT_OPTIONS} are for text files: leave them out")
        return from_frame(x)
    files = [file for path in given for file in matching_files(path)]
    paths, suffixes = [path for path, _ in files], {suffix for _, suffix in files}
    if suffixes <= set(SUFFIXES):
        return Delimited(paths, [SUFFIXES[suffix] for _, suffix in files], dialect)
    if dialect != AS_USUAL:
        raise DataError(f"{paths[0]}: {TEXT_OPTIONS} are for .csv and .tsv files: leave them out")
    if suffixes <= set(PARQUET):
        return Parquet(paths)
    if suffixes <= set(CONLL):
        return Conll(paths)
    raise DataError("the files are of different kinds: " + ", ".join(sorted(suffixes)))


def _weights_column(weights: str, source: Source | Engine) -> str:
    if weights not in source.names:
        raise DataError(f"the data have no column {weights!r} of weights{nearest(weights, source.names)}")
    if len(source.names) == 1:
        raise DataError(f"there are no columns besides the weights {weights!r}")
    return weights


PARQUET = (".parquet", ".pq")


def matching_files(path: str | os.PathLike[str]) -> list[tuple[Path, str]]:
    """The files that a path or pattern means, in the order of their names; and the suffix of each that says what it holds, in
    small letters, without that of its compression."""
    text = os.path.expanduser(os.fspath(path))
    if os.path.isdir(text):
        raise DataError(f"{text}: this is a directory; give its files, such as {os.path.join(text, '*.parquet')}")
    path = Path(text)
    found = [path]
    if not os.path.exists(text):
        if not glob.has_magic(text):
            if not path.parent.is_dir():
                raise DataError(f"{text}: there is no directory {str(path.parent)!r}")
            raise DataError(f"{text}: there is no such file{nearest(path.name, os.listdir(path.parent))}")
        found = sorted(Path(f) for f in glob.glob(text, recursive=True) if os.path.isfile(f))
        if not found:
            raise DataError(f"{text}: no file fits this pattern")
    files = []
    for file in found:
        packed = file.suffix.lower() == ".gz"
        suffix = Path(file.stem if packed else file.name).suffix.lower()
        if suffix not in (*SUFFIXES, *CONLL, *PARQUET) or (packed and suffix in PARQUET):
            raise DataError(f"{file}: rows are read from .csv, .tsv, .conll, .conllu (also .gz) and .parquet files")
        files.append((file, suffix))
    return files
