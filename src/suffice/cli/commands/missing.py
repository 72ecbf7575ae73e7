"""The command that reports what is missing: `suffice missing`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from suffice.cli import arguments
from suffice.errors import SufficeError
from suffice.registry import command


@command("missing")
def missing_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet, a glob in quotes")],
    compare: Annotated[
        bool, typer.Option("--compare", help="estimates by complete rows, by the cells that are there and by EM, side by side")
    ] = False,
    graph: Annotated[
        str | None, typer.Option(help="of --compare: 'a -> b', the graph for EM; found by structural EM if not given")
    ] = None,
    as_json: arguments.AsJson = False,
    *,
    read: arguments.ColumnOptions,
) -> None:
    """Report what is missing in data: by column and pattern, and whether it may be missing completely at random."""
    from suffice.cli import inputs
    from suffice.recipes.missing.missingness import missingness

    rows = inputs.data_of(inputs.text_path(data, read), inputs.declarations(read), **read.reading)
    if graph is not None and not compare:
        raise SufficeError("--graph is for --compare: give both, or none")
    report = missingness(rows, compare=inputs.graph_of(graph)[0] if graph is not None else compare)
    print(json.dumps(report.to_dict(), ensure_ascii=False) if as_json else report)
