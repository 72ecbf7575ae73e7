"""The commands of statistics without rows: `suffice gather`, of one site, and `suffice merge`, of several."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from suffice.cli import arguments
from suffice.errors import SufficeError, bytes_in_words, counted
from suffice.terminal import say, working

StatisticsOut = Annotated[str, typer.Option("-o", "--out", metavar="STATS", help="where to write the statistics: .stats")]


def gather(
    data: Annotated[str, typer.Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet, a glob in quotes")],
    graph: Annotated[
        str | None, typer.Argument(metavar="[GRAPH]", help="a graph or a network whose statistics are gathered")
    ] = None,
    out: StatisticsOut = "",
    max_parents: Annotated[
        int | None, typer.Option(metavar="K", help="without a graph: all that searches with up to K parents need", min=0)
    ] = None,
    memory_limit: Annotated[
        str | None, typer.Option(metavar="SIZE", help="what the statistics may take; 2GiB if not given")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only say how large the statistics would be")] = False,
    engine: arguments.EngineWord = None,
    weights: arguments.Weights = None,
    missing: arguments.Missing = None,
    separator: arguments.Separator = None,
    decimal: arguments.Decimal = ".",
    encoding: arguments.Encoding = "utf-8",
    integers: arguments.Integers = "auto",
    finite: arguments.FiniteWords = None,
    real: arguments.RealWords = None,
    bins: arguments.BinWords = None,
    count: arguments.CountWords = None,
    without: arguments.Without = None,
    as_json: arguments.AsJson = False,
) -> None:
    """Gather the statistics of rows, of a graph or of every family with few parents: they add, and learning needs no rows."""
    from suffice.cli import inputs
    from suffice.families.gathering import gather as gathered

    if (graph is None) == (max_parents is None):
        raise SufficeError("give a graph, or --max-parents K for all that searches with up to K parents need")
    if not dry_run:
        checked_place(out)
    elif max_parents is None:
        raise SufficeError("--dry-run says how large the statistics of --max-parents K would be")
    declared = inputs.declarations(finite, real, bins, count)
    path = inputs.text_path(data, separator, decimal, encoding)
    if data.lower().endswith(".stats"):
        raise SufficeError(f"{data} holds statistics already; suffice merge adds such files")
    rows = inputs.data_of(path, declared, weights=weights, missing=missing, integers=integers, without=without, engine=engine)
    if graph is not None:
        with working("gathering"):
            return written(gathered(rows, inputs.graph_of(graph)[0]), out)
    size = gathered(rows, max_parents=int(max_parents or 0), dry_run=True)
    if dry_run:
        return print(json.dumps(size.to_dict()) if as_json else size)
    say(f"gathering at most {size.in_words()}")
    with working("gathering"):
        statistics = gathered(rows, max_parents=int(max_parents or 0), memory_limit=memory_limit)
    return written(statistics, out)


def merge(
    files: Annotated[list[str], typer.Argument(metavar="A.stats B.stats ...", help="statistics of the same graph or columns")],
    out: StatisticsOut = "",
    decay: Annotated[
        float, typer.Option(metavar="SHARE", help="before each file is added, those before it keep so much of their weight")
    ] = 1.0,
) -> None:
    """Add statistics of several sites, or times: what the rows of all of them together would give."""
    from suffice.statistics import Statistics

    checked_place(out)
    total: Statistics | None = None
    for path in files:
        if not path.lower().endswith(".stats"):
            raise SufficeError(f"{path} is no file of statistics (.stats), as suffice gather writes")
        part = Statistics.load(path)
        try:
            total = part if total is None else total.decay(decay) + part
        except SufficeError as error:
            raise SufficeError(f"{path} does not add to the files before it: {error.said}") from None
    assert total is not None
    written(total, out)


def checked_place(out: str) -> None:
    """Refuse a place for statistics that has another suffix."""
    if not out.lower().endswith(".stats"):
        raise SufficeError(f"say where the statistics go, -o NAME.stats{', not ' + repr(out) if out else ''}")


def written(statistics: object, out: str) -> None:
    """Write statistics, and say what was written."""
    from pathlib import Path

    from suffice.statistics import Statistics

    assert isinstance(statistics, Statistics)
    statistics.save(out)
    n, size = len(statistics), bytes_in_words(float(Path(out).stat().st_size))
    say(f"{counted(n, 'table')} of {statistics.weight:,.10g} rows written to {out} ({size})")
