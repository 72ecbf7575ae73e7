"""The command line: results on standard output, messages on standard error, exit 0, 1 (refused input) or 2 (usage)."""

from __future__ import annotations

import io
import json
import sys
import time
import warnings
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TextIO, cast

import typer
import typer.core

from suffice import __version__, cli_fit, cli_learn, cli_predict, cli_query, cli_score, cli_sequences, cli_statistics
from suffice.cli_arguments import (
    AsJson,
    BinWords,
    CountWords,
    Decimal,
    Encoding,
    EngineWord,
    FiniteWords,
    Integers,
    Missing,
    Model,
    RealWords,
    RowsOut,
    Separator,
    Weights,
    Without,
)
from suffice.cli_hints import in_options
from suffice.errors import SufficeError, SufficeNote, counted
from suffice.kernels import announce
from suffice.terminal import PlainOutput, console, nobody_reads, print_facts, say, working

FEW = 12
"""Of a chain with at most so many nodes `show` prints all distributions."""


class Commands(typer.core.TyperGroup):
    """All commands; one that is interrupted says so, where typer would end without a word, and a closed pipe ends quietly."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted: no network was written" if ctx.invoked_subcommand in ("fit", "learn") else "interrupted")
            raise SystemExit(130) from None
        except BrokenPipeError:  # of rows that nobody reads any more
            nobody_reads(sys.stdout)
            raise SystemExit(0) from None


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    help="Learn probabilistic graphical models from data.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """The entry point: refusals become one sentence and exit 1."""
    warnings.showwarning = partial(_show, set())
    warnings.simplefilter("always", SufficeNote)
    announce(say)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    out = PlainOutput(sys.stdout)
    try:
        with redirect_stdout(cast(TextIO, out)):
            app()
    except SufficeError as error:
        say(f"error: {in_options(str(error))}")
        raise SystemExit(1) from None
    except OSError as error:
        say(f"error: {error.strerror or error}")
        raise SystemExit(1) from None
    finally:
        out.flush()


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="print the version and exit")] = False,
) -> None:
    if version:
        print(f"suffice {__version__}")
        raise typer.Exit


app.command()(cli_fit.fit)
app.command()(cli_learn.learn)
app.command()(cli_query.query)
app.command("predict")(cli_predict.predict_command)
app.command("impute")(cli_predict.impute_command)
app.command()(cli_score.score)
app.command()(cli_statistics.gather)
app.command()(cli_statistics.merge)
for command in (cli_sequences.decode, cli_sequences.smooth, cli_sequences.filter_command, cli_sequences.forecast):
    app.command(command.__name__.removesuffix("_command"))(command)


@app.command()
def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", help="how many rows; of a chain, how many sequences", min=0)],
    out: RowsOut = None,
    length: Annotated[int | None, typer.Option("--length", help="of a chain: how many steps each sequence has", min=1)] = None,
    seed: Annotated[int | None, typer.Option(help="the same seed gives the same rows", min=0)] = None,
) -> None:
    """Draw rows from a network, or sequences from a chain."""
    from suffice import cli_inputs as inputs
    from suffice.formats.rows import checked_rows_path, write_stream
    from suffice.models.chain import Chain

    if out:
        checked_rows_path(out)
    drawn = inputs.model_of(model)
    if inputs.kind_of(drawn) == "crf":
        inputs.refuse_answers(model, drawn)
    if isinstance(drawn, Chain) is (length is None):
        instead = "a chain: give --length, the steps of a sequence" if length is None else "a network of rows: leave --length out"
        raise SufficeError(f"{model} holds {instead}")
    with working(f"drawing {n:,} {'rows' if length is None else 'sequences'}"):
        rows = drawn.sample(n, seed=seed) if length is None else drawn.sample(n, length, seed)
    write_stream([rows], out)
    if out:
        say(f"{counted(rows.num_rows, 'row')} of {counted(rows.num_columns, 'column')} written to {out}")


@app.command("networks")
def networks_command(as_json: AsJson = False) -> None:
    """List the networks and the tables that come with the package: where a file is asked for, their names will do."""
    from suffice.formats import networks, tables

    if as_json:
        print(json.dumps({"networks": list(networks()), "tables": list(tables())}))
        return
    print(f"networks\n\n{networks()}\n\ntables\n\n{tables()}")


@app.command("schema")
def schema_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet, a glob in quotes")],
    weights: Weights = None,
    missing: Missing = None,
    separator: Separator = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    integers: Integers = "auto",
    finite: FiniteWords = None,
    real: RealWords = None,
    count: CountWords = None,
    bins: BinWords = None,
    without: Without = None,
    as_json: AsJson = False,
) -> None:
    """Report what each column of data is taken for, with its values and counts, and what may have been meant otherwise."""
    from suffice import cli_inputs as inputs

    if data.lower().endswith(".stats"):
        raise SufficeError(f"{data} holds statistics, and a schema is reported of rows")
    declared = inputs.declarations(finite, real, bins, count)
    path = inputs.text_path(data, separator, decimal, encoding)
    rows = inputs.data_of(path, declared, weights=weights, missing=missing, integers=integers, without=without)
    print(json.dumps(rows.schema.records(), ensure_ascii=False) if as_json else rows.schema)


@app.command("missing")
def missing_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet, a glob in quotes")],
    engine: EngineWord = None,
    weights: Weights = None,
    missing: Missing = None,
    separator: Separator = None,
    decimal: Decimal = ".",
    encoding: Encoding = "utf-8",
    integers: Integers = "auto",
    finite: FiniteWords = None,
    real: RealWords = None,
    bins: BinWords = None,
    without: Without = None,
    compare: Annotated[
        bool, typer.Option("--compare", help="estimates by complete rows, by the cells that are there and by EM, side by side")
    ] = False,
    graph: Annotated[
        str | None, typer.Option(help="of --compare: 'a -> b', the graph for EM; found by structural EM if not given")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report what is missing in data: by column and pattern, and whether it may be missing completely at random."""
    from suffice import cli_inputs as inputs
    from suffice.recipes.missingness import missingness

    declared = inputs.declarations(finite, real, bins)
    path = inputs.text_path(data, separator, decimal, encoding)
    rows = inputs.data_of(path, declared, weights=weights, missing=missing, integers=integers, without=without, engine=engine)
    if graph is not None and not compare:
        raise SufficeError("--graph is for --compare: give both, or none")
    report = missingness(rows, compare=inputs.graph_of(graph)[0] if graph is not None else compare)
    print(json.dumps(report.to_dict(), ensure_ascii=False) if as_json else report)


@app.command()
def compare(
    truth: Annotated[str, typer.Argument(metavar="TRUTH", help="a network or a graph")],
    learned: Annotated[str, typer.Argument(metavar="LEARNED", help="a network or a graph")],
    as_json: AsJson = False,
) -> None:
    """Compare two graphs, and two networks' distributions where both have parameters."""
    from suffice.graphs import compare as compared
    from suffice.models.divergence import kl

    (a, p), (b, q) = (_network_or_graph(text) for text in (truth, learned))
    facts = compared(a, b).to_dict()
    if p is not None and q is not None:
        try:
            facts["KL(truth || learned), nats"] = kl(p, q)
        except SufficeError as error:
            say(f"note: no divergence of the distributions: {error}")
    print_facts(facts, as_json)


def _network_or_graph(text: str) -> Any:
    from suffice import cli_inputs as inputs
    from suffice.graphs import Template

    graph, model = inputs.graph_of(text)
    if isinstance(graph, Template):
        raise SufficeError(f"{text} holds a chain, and networks are compared: suffice score says how well each accounts for data")
    return graph, model


@app.command()
def convert(source: Annotated[str, typer.Argument(metavar="IN")], target: Annotated[str, typer.Argument(metavar="OUT")]) -> None:
    """Read a network in one format and write it in another; the suffixes say which. Chains are written as .json."""
    from suffice import cli_inputs as inputs
    from suffice.formats import writable, write

    writable(target)
    bn = inputs.model_of(source)
    write(bn, target)
    say(f"{bn._headline()}; written to {target}")


@app.command()
def show(
    model: Model,
    node: Annotated[list[str] | None, typer.Option("--node", help="show the distribution of this node (may be repeated)")] = None,
    dot: Annotated[bool, typer.Option("--dot", help="print the graph in Graphviz's language")] = False,
    top: Annotated[int, typer.Option(help="of a conditional random field: so many of its largest weights", min=1)] = 20,
    as_json: AsJson = False,
) -> None:
    """Print a network: its nodes, with the coefficients of regressions, or the distributions of some; of a chain its tables."""
    from suffice import cli_inputs as inputs
    from suffice.families.cpd import Cpd
    from suffice.formats.registry import json_of
    from suffice.models.chain import Chain

    bn = inputs.model_of(model)
    if inputs.kind_of(bn) in inputs.NO_ANSWERS and (node or dot):
        inputs.refuse_answers(model, bn)
    if inputs.kind_of(bn) == "crf" and not as_json:
        from suffice.cli_labels import show_weights

        return print(f"{bn!r}\n\n{show_weights(bn, top)}")
    names = inputs.known_names(node or [], bn)
    if names and not hasattr(bn, "__getitem__"):
        raise SufficeError(f"{model} holds a model without a distribution for each node: leave --node out")
    if dot:
        print(next(getattr(bn, kind) for kind in ("template", "dag", "graph") if hasattr(bn, kind)).to_dot())
    elif as_json:
        print(json_of(bn))
    elif names:
        print(*(f"{bn[name]!r}\n" for name in names), sep="\n")
    else:
        nodes = bn if hasattr(bn, "__getitem__") else ()
        every = isinstance(bn, Chain) and len(bn) <= FEW
        told = [n for n in nodes if every or (isinstance(bn[n], Cpd) and bn[n].is_regression)]
        print(repr(bn), *(f"\n{bn[name]!r}" for name in told), sep="\n")
    return None


@app.command()
def warm() -> None:
    """Compile all kernels ahead of their first use; they are kept on disk."""
    from rich.progress import Progress

    from suffice.engines.parallel import n_threads as cores
    from suffice.kernels import warm as warmed

    start = time.perf_counter()
    with Progress(console=console(), transient=True) as bar:
        show = partial(bar.update, bar.add_task("compiling kernels", total=None))
        n = warmed(lambda done, total, name: show(completed=done, total=total, description=f"compiled {name}"), cores())
    say(f"{n} kernels ready in {time.perf_counter() - start:.1f} s")


@app.command()
def demo(
    what: Annotated[str, typer.Argument(metavar="[WHAT]", help="networks (if not given), or sequences")] = "networks",
    rows: Annotated[int, typer.Option("-n", help="of networks: how many rows to draw", min=1)] = 100_000,
    seed: Annotated[int, typer.Option(help="the same seed gives the same rows", min=0)] = 0,
) -> None:
    """Draw rows from the ALARM network, fit its 37 tables again, and show how close they come; or learn from sequences."""
    if what not in ("networks", "sequences"):
        raise SufficeError(f"there is a demo of networks, and one of sequences; not of {what!r}")
    if what == "sequences":
        from suffice.demo_sequences import run as run_sequences

        return run_sequences(seed, working)
    from suffice.demo import run

    return run(rows, seed, working)


def _show(shown: set[str], message: Any, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    """Print a note, the same one only once, or a warning."""
    if not issubclass(category, SufficeNote):
        say(f"warning: {message} ({Path(filename).name}:{lineno})")
    elif str(message) not in shown:
        shown.add(str(message))
        say(f"note: {in_options(str(message))}")
