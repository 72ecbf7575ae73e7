"""The command that reports what columns are taken for: `suffice schema`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from suffice.cli import arguments
from suffice.errors import SufficeError
from suffice.registry import command


@command("schema")
def schema_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet, a glob in quotes")],
    as_json: arguments.AsJson = False,
    *,
    read: arguments.ColumnOptions,
) -> None:
    """Report what each column of data is taken for, with its values and counts, and what may have been meant otherwise."""
    from suffice.cli import inputs

    if data.lower().endswith(".stats"):
        raise SufficeError(f"{data} holds statistics, and a schema is reported of rows")
    rows = inputs.data_of(inputs.text_path(data, read), inputs.declarations(read), **read.reading)
    print(json.dumps(rows.schema.records(), ensure_ascii=False) if as_json else rows.schema)
