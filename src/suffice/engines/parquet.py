"""Parquet files as a source.

Text is read as dictionaries, as Parquet stores it, so that a column of states costs its codes and not its words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

from suffice.engines.sources import Files, Kind, checked_names, kind_of
from suffice.errors import DataError

BATCH = 2**17


class Parquet(Files):
    """Parquet files."""

    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = tuple(paths)
        self._schemas = [self._schema(p) for p in self.paths]
        self.lengths = [n for _, n in self._schemas]
        self.names = checked_names(self._schemas[0][0].names, str(self.paths[0]))
        self.n_rows = sum(self.lengths)
        self.check_columns(checked_names(s.names, str(p)) for p, (s, _) in zip(self.paths, self._schemas, strict=True))

    def kind(self, name: str) -> Kind:
        return self._kinds[name]

    @cached_property
    def _kinds(self) -> dict[str, Kind]:
        """What all files together say a column is. Parquet keeps no unused categories, so a dictionary is but text."""
        result: dict[str, Kind] = {}
        for name in self.names:
            kinds = [kind_of(schema.field(name).type) for schema, _ in self._schemas]
            kinds = [Kind.TEXT if k is Kind.CATEGORY else k for k in kinds]
            known = set(kinds) - {Kind.NOTHING}
            if known == {Kind.INTEGER, Kind.NUMBER}:
                known = {Kind.NUMBER}
            if len(known) > 1:
                other = next(i for i, k in enumerate(kinds) if k not in (kinds[0], Kind.NOTHING))
                types = [str(self._schemas[i][0].field(name).type) for i in (0, other)]
                raise DataError(
                    f"the column {name!r} has the type {types[0]} in {self.paths[0]} and {types[1]} in {self.paths[other]}; "
                    "the files must agree"
                )
            result[name] = known.pop() if known else Kind.NOTHING
        return result

    def type_of(self, name: str) -> Any:
        return self._schemas[0][0].field(name).type

    def batches(self, names: Sequence[str]) -> Iterator[Mapping[str, Any]]:
        import pyarrow.parquet as pq

        text = [n for n in names if self.kind(n) is Kind.TEXT]
        # Arrow's buffer ahead would keep the bytes of every row group that was read until the file is closed
        for path in self.paths:
            with _readable(path), pq.ParquetFile(path, read_dictionary=text, pre_buffer=False) as file:
                for batch in file.iter_batches(BATCH, columns=list(names)):
                    yield dict(zip(batch.schema.names, batch.columns, strict=True))

    @staticmethod
    def _schema(path: Path) -> tuple[Any, int]:
        import pyarrow.parquet as pq

        with _readable(path), pq.ParquetFile(path) as file:
            return file.schema_arrow, file.metadata.num_rows


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path}: not a Parquet file that can be read ({str(error).splitlines()[0]})") from None
