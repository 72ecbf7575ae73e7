"""Parquet files as a source. Text is read as dictionaries, as Parquet stores it, so that a column of states costs its codes and
not its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from suffice.basis.libraries import pa, pq
from suffice.engines.encoding.sources import Kind, checked_names, kind_of
from suffice.engines.reading.files import Files
from suffice.errors import DataError

BATCH = 2**17
"""Rows of a file that come at once."""


class Parquet(Files):
    """Parquet files."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._schemas, self.lengths = list[Any](), list[int]()
        for path in self.paths:
            with readable_parquet(path), pq.ParquetFile(path) as file:
                self._schemas.append(file.schema_arrow)
                self.lengths.append(file.metadata.num_rows)
        self.names = checked_names(self._schemas[0].names, str(self.paths[0]))
        self.n_rows = sum(self.lengths)
        if len(self.paths) > 1:
            self.check_columns(checked_names(s.names, str(p)) for p, s in zip(self.paths, self._schemas, strict=True))
        self._kinds: dict[str, Kind] | None = None

    def kind(self, name: str) -> Kind:
        """What all files together say a column is. Parquet keeps no unused categories, so a dictionary is but text."""
        if self._kinds is None:
            found: dict[str, Kind] = {}
            for each in self.names:
                kinds = [kind_of(schema.field(each).type) for schema in self._schemas]
                kinds = [Kind.TEXT if k is Kind.CATEGORY else k for k in kinds]
                known = set(kinds) - {Kind.NOTHING}
                if known == {Kind.INTEGER, Kind.NUMBER}:
                    known = {Kind.NUMBER}
                if len(known) > 1:
                    other = next(i for i, k in enumerate(kinds) if k not in (kinds[0], Kind.NOTHING))
                    types = [str(self._schemas[i].field(each).type) for i in (0, other)]
                    raise DataError(
                        f"the column {each!r} has the type {types[0]} in {self.paths[0]} and {types[1]} in {self.paths[other]}; "
                        "the files must agree"
                    )
                found[each] = known.pop() if known else Kind.NOTHING
            self._kinds = found
        return self._kinds[name]

    def type_of(self, name: str) -> Any:
        return self._schemas[0].field(name).type

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        text = [n for n in names if self.kind(n) is Kind.TEXT]
        # Arrow's buffer ahead would keep the bytes of every row group that was read until the file is closed
        for path in self.paths:
            with readable_parquet(path), pq.ParquetFile(path, read_dictionary=text, pre_buffer=False) as file:
                for batch in file.iter_batches(BATCH, columns=list(names)):
                    yield dict(zip(batch.schema.names, batch.columns, strict=True))


@contextmanager
def readable_parquet(path: Path | str) -> Iterator[None]:
    """A file that is no Parquet is refused in our own words."""
    try:
        yield
    except UnicodeError:
        raise DataError(f"{path}: not a Parquet file that can be read (names or texts in it are not UTF-8)") from None
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: not a Parquet file that can be read ({str(error).splitlines()[0]})") from None
