"""The commands that report on data: `suffice schema`, what columns are taken for, and `missing`, what is not there."""

from __future__ import annotations

import json
from typing import Annotated, Any

from typer import Option

from suffice.cli import arguments
from suffice.errors import SufficeError
from suffice.registry import command


@command("schema")
@arguments.with_options(arguments.ColumnOptions)
def schema_command(data: arguments.Rows, as_json: arguments.AsJson = False, **options: Any) -> None:
    """Report what each column of data is taken for, with its values and counts, and what may have been meant otherwise."""
    from suffice.cli import inputs

    if data.lower().endswith(".stats"):
        raise SufficeError(f"{data} holds statistics, and a schema is reported of rows")
    rows = inputs.data_of(data, arguments.ColumnOptions(**options))
    print(json.dumps(rows.schema.records(), ensure_ascii=False) if as_json else rows.schema)


@command("missing")
@arguments.with_options(arguments.ColumnOptions)
def missing_command(
    data: arguments.Rows,
    compare: Annotated[
        bool, Option("--compare", help="estimates by complete rows, by the cells that are there and by EM, side by side")
    ] = False,
    graph: Annotated[
        str | None, Option(help="of --compare: 'a -> b', the graph for EM; found by structural EM if not given")
    ] = None,
    as_json: arguments.AsJson = False,
    **options: Any,
) -> None:
    """Report what is missing in data: by column and pattern, and whether it may be missing completely at random."""
    from suffice.cli import inputs
    from suffice.recipes.missing.missingness import missingness

    rows = inputs.data_of(data, arguments.ColumnOptions(**options))
    if graph is not None and not compare:
        raise SufficeError("--graph is for --compare: give both, or none")
    report = missingness(rows, compare=inputs.graph_of(graph)[0] if graph is not None else compare)
    print(json.dumps(report.to_dict(), ensure_ascii=False) if as_json else report)
