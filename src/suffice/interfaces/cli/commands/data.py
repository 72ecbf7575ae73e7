"""The commands of data: `suffice schema`, what columns are taken for, `missing`, what is not there; `gather`, the statistics of
one site, and `merge`, of several."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from suffice.basis.output.terminal import working
from suffice.basis.registry import command
from suffice.errors import SufficeError, bytes_in_words, quantity, say
from suffice.interfaces.cli import arguments

if TYPE_CHECKING:
    from suffice.statistics import Statistics

StatisticsOut = Annotated[str, Option("-o", "--out", metavar="STATS", help="where to write the statistics: .stats")]


@command("schema")
@arguments.with_options(arguments.ColumnOptions)
def schema_command(data: arguments.Rows, as_json: arguments.AsJson = False, **options: Any) -> None:
    """Report what each column of data is taken for, with its values and counts, and what may have been meant otherwise."""
    from suffice.interfaces.cli import inputs

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
    from suffice.interfaces.cli import inputs, models
    from suffice.recipes.missing.missingness import missingness

    rows = inputs.data_of(data, arguments.ColumnOptions(**options))
    if graph is not None and not compare:
        raise SufficeError("--graph is for --compare: give both, or none")
    report = missingness(rows, compare=models.graph_of(graph)[0] if graph is not None else compare)
    print(json.dumps(report.to_dict(), ensure_ascii=False) if as_json else report)


@command("gather")
@arguments.with_options(arguments.ColumnOptions)
def gather(
    data: arguments.Rows,
    graph: Annotated[str | None, Argument(metavar="GRAPH", help="a graph or a network whose statistics are gathered")] = None,
    out: StatisticsOut = "",
    max_parents: Annotated[
        int | None, Option(metavar="K", help="all that searches with up to K parents need, beside a graph or without one", min=0)
    ] = None,
    pairs: Annotated[
        bool, Option("--pairs", help="the tables of all pairs, enough for chow-liu: the same as --max-parents 1")
    ] = False,
    min_count: Annotated[
        int | None, Option(metavar="N", help="leave out cells, and moments, of less than N rows; the file says so", min=2)
    ] = None,
    memory_limit: Annotated[str | None, Option(metavar="SIZE", help="what the statistics may take; 2GiB if not given")] = None,
    dry_run: Annotated[bool, Option("--dry-run", help="only say how large the statistics would be")] = False,
    as_json: arguments.AsJson = False,
    **options: Any,
) -> None:
    """Gather the statistics of rows, of a graph or of every family with few parents: they add, and learning needs no rows."""
    from suffice.families.gathering import gather as gathered
    from suffice.interfaces.cli import inputs, models

    if pairs and max_parents not in (None, 1):
        raise SufficeError("--pairs is --max-parents 1: give one of them")
    most = 1 if pairs else max_parents
    if graph is None and most is None:
        raise SufficeError("give a graph, --pairs, or --max-parents K for all that searches with up to K parents need")
    if not dry_run:
        checked_place(out)
    elif most is None or graph is not None:
        raise SufficeError("--dry-run says how large the statistics of --max-parents K would be, without a graph")
    read = arguments.ColumnOptions(**options)
    if data.lower().endswith(".stats"):
        raise SufficeError(f"{data} holds statistics already; suffice merge adds such files")
    rows = inputs.data_of(data, read)
    dag, model = (None, None) if graph is None else models.graph_of(graph)
    if model is not None:  # the states of all sites are those of the network
        rows = inputs.as_known(rows, model, inputs.declarations(read))
    kept: dict[str, Any] = {} if most is None else {"max_parents": most, "memory_limit": memory_limit}
    if graph is None and most is not None:
        size = gathered(rows, max_parents=most, dry_run=True)
        if dry_run:
            return print(json.dumps(size.to_dict()) if as_json else size)
        say(f"gathering at most {size.in_words()}")
    with working("gathering"):
        statistics = gathered(rows, dag, **kept)
    return write_statistics(statistics if min_count is None else statistics.suppress(min_count), out)


@command("merge")
def merge(
    files: Annotated[list[str], Argument(metavar="A.stats B.stats ...", help="statistics of the same graph or columns")],
    out: StatisticsOut = "",
    decay: Annotated[
        float, Option(metavar="SHARE", help="before each file is added, those before it keep so much of their weight")
    ] = 1.0,
) -> None:
    """Add statistics of several sites, or times: what the rows of all of them together would give."""
    from suffice.statistics.merge import merge_files

    checked_place(out)
    seen: dict[Path, str] = {}
    for path in files:
        if not path.lower().endswith(".stats"):
            raise SufficeError(f"{path} is no file of statistics (.stats), as suffice gather writes")
        place = Path(path).resolve()
        if place == Path(out).resolve():
            raise SufficeError(f"{out} is one of the files to add, and would be written over: give -o another name")
        if place in seen:
            again = "" if seen[place] == path else f", as {seen[place]}"
            raise SufficeError(f"{path} is given twice{again}: its rows would count twice")
        seen[place] = path
    with working("adding"):
        total = merge_files(files, decay)
    write_statistics(total, out)


def checked_place(out: str) -> None:
    """Refuse a place for statistics that has another suffix, or is in no directory, before anything is read."""
    if not out.lower().endswith(".stats"):
        raise SufficeError(f"say where the statistics go, -o NAME.stats{', not ' + repr(out) if out else ''}")
    if not (folder := Path(out).parent).is_dir():
        raise SufficeError(f"there is no directory {str(folder)!r} for {out} to be written to")


def write_statistics(statistics: Statistics, out: str) -> None:
    """Write statistics, and say what was written."""
    statistics.save(out)
    n, size = len(statistics), bytes_in_words(float(Path(out).stat().st_size))
    say(f"{quantity(n, 'table')} of {statistics.weight:,.10g} rows written to {out} ({size})")
    if statistics.suppression is not None:
        say(statistics.suppression.in_words())
