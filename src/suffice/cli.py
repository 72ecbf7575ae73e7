"""The command line: results on standard output, messages on standard error, exit 0, 1 (refused input) or 2 (usage)."""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
import time
import warnings
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from suffice import __version__, cli_learn, cli_predict, cli_query
from suffice.cli_arguments import (
    AsJson,
    BinWords,
    DataFile,
    FiniteWords,
    Integers,
    Missing,
    Model,
    RealWords,
    RowsOut,
    Weights,
    Without,
)
from suffice.errors import MissingCells, SufficeError, SufficeNote
from suffice.kernels import announce
from suffice.terminal import console, print_facts, say, working

HINTS: tuple[tuple[str, str], ...] = (
    (r"(?:em\(dag, data, )?hidden=\[Finite\('([^']*)', \[[^\]]*\]\)\]\)?(?:, or --hidden [^ ]+=a,b)?", r"--hidden \1=a,b"),
    (r"leave it out of hidden=", "leave it out of --hidden"),
    (r"integers=Finite or variables=, or --finite on the command line", "--integers finite, or --finite NAME"),
    (r"integers=Finite", "--integers finite"),
    (r"missing=\[[^\]]*\], or (--missing [^;]*) on the command line", r"\1"),
    (r"missing=\[\"([^\"]*)\"\]", r"--missing \1"),
    (r"say so with missing=", "say so with --missing"),
    (r"allow more with max_iter=, or accelerate=Squarem\(\)", "allow more with --max-iter"),
    (
        r"EmpiricalBayes chooses (\w+) for a whole graph.*",
        r"auto chooses \1 for one graph and complete rows: give a number, as in bdeu:10",
    ),
    (r"choose them first, by_evidence\(.*\), and give that prior", "use another here, as in bdeu:10"),
    (r"give it, or choose it first, by_evidence\(.*\)", "give it, as in logistic-normal:1"),
    (r"give them Dirichlet\(1\) or BDeu\(1\)", "use --prior dirichlet:1 or bdeu:1"),
    (r"scan\(data, variables=\{'([^']*)': \[\.\.\.\], '([^']*)': \[\.\.\.\]\}\)", r"--finite \1=a,b --finite \2=a,b"),
    (r"\bshared=", "--shared"),
    (r"or of families=", "or of --family"),
    (r"families=\{'([^']*)': Logistic\(\)\}", r"--family \1=logistic"),
    (r"families=\{'([^']*)': PoissonLog\(\)\}", r"--family \1=poisson"),
    (r"use \w+\(ridge=1\)", "use a ridge, as in --family NAME=WORD:1"),
    (r"variables= in scan declares them", "--count and --finite declare them"),
    (r"scan\(data, variables=\{'([^']*)': Finite\}\)", r"--finite \1"),
    (r"declare it, scan\(data, variables=\{'([^']*)': Count\('[^']*'\)\}\)", r"declare it, --count \1"),
    (
        r"draw the answer with query\(\.\.\., method=LikelihoodWeighting\(\)\)",
        "draw the answer with suffice query --method lw:10000",
    ),
    (r"give method=LikelihoodWeighting\(\) to predict or predict_proba, which then draw", "give --method lw:10000, to draw"),
    (r"query\((?:node|targets), \.\.\., method=LikelihoodWeighting\(\)\)(?:\.mode)?", "suffice query --method lw:10000"),
    (r"ask without interval=", "ask without --interval"),
    (r"draw it with query\(('[^']*'), \.\.\., method=LikelihoodWeighting\(\)\)", r"draw that of \1 with --method lw:10000"),
    (r"variables=\{'([^']*)': Bins\((\d+)\)\}", r"--bins \1=\2"),
    (r"variables=\{name: Bins\((\d+)\)\}", r"--bins NAME=\1"),
    (r"variables=\{'([^']*)': Real\}", r"--real \1"),
    (r"variables=\{'([^']*)': \[\.\.\.\]\}", r"--finite \1=a,b"),
    (r"variables=\[Finite\('([^']*)', \[\.\.\.\]\), \.\.\.\]", r"--finite \1=a,b"),
    (r"cut (it|'[^']*') (?:with|into) Bins\(\.\.\.\)", r"cut \1 with --bins NAME=5"),
    (r"prior=BDeu\((\d+)\) or prior=NormalInverseGamma\(\)", r"--prior bdeu:\1 or --prior nig"),
    (r"(a prior such as|a prior,) NormalInverseGamma\(\)", r"\1 --prior nig"),
    (r"; after EM, em\(\.\.\.\)\.information\(\) has intervals from the observed information", ""),
    (r", or give the frame that pandas\.read_csv\(path, sep='.'\) reads", ""),
)
"""Ways out as Python has them, and as the command line has them; the first that match come first."""


class Commands(typer.core.TyperGroup):
    """All commands; one that is interrupted says so, where typer would end without a word."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted: no network was written" if ctx.invoked_subcommand in ("fit", "learn") else "interrupted")
            raise SystemExit(130) from None


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
    try:
        app()
        sys.stdout.flush()
    except SufficeError as error:
        say(f"error: {in_options(str(error))}")
        raise SystemExit(1) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads any more, nor is told
        raise SystemExit(0) from None
    except OSError as error:
        say(f"error: {error.strerror or error}")
        raise SystemExit(1) from None


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="print the version and exit")] = False,
) -> None:
    if version:
        print(f"suffice {__version__}")
        raise typer.Exit


app.command()(cli_learn.fit)
app.command()(cli_learn.learn)
app.command()(cli_query.query)
app.command("predict")(cli_predict.predict_command)


@app.command()
def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", help="how many rows", min=0)],
    out: RowsOut = None,
    seed: Annotated[int | None, typer.Option(help="the same seed gives the same rows", min=0)] = None,
) -> None:
    """Draw rows from a network."""
    from suffice import cli_words as words
    from suffice.formats.rows import checked_rows_path, write_stream

    if out:
        checked_rows_path(out)
    bn = words.model_of(model)
    with working(f"drawing {n:,} rows"):
        write_stream([bn.sample(n, seed=seed)], out)
    if out:
        say(f"{n:,} rows of {len(bn)} columns written to {out}")


@app.command()
def score(model: Model, data: DataFile, weights: Weights = None, missing: Missing = None, as_json: AsJson = False) -> None:
    """How well a network and its graph account for data: natural logs, higher is better."""
    from suffice import cli_words as words

    print_facts(_scores(words.model_of(model), words.data_of(data, weights=weights, missing=missing)), as_json)


def _scores(bn: Any, rows: Any) -> dict[str, Any]:
    """The scores of a network and of its graph; where some of its nodes are regressions, from the rows."""
    from suffice import cli_words as words
    from suffice.models.regressions import families_of

    has_rows = hasattr(rows, "columns")
    hidden = has_rows and bool(bn.hidden - set(rows.columns))
    families = families_of(bn, None) if has_rows and not hidden else None
    known: Any = bn.rows(rows) if families else None
    if families and any(known.missing.values()):
        return _observed_scores(bn, known)
    if not families and not hidden:
        with suppress(MissingCells):
            known = bn.summary(rows)
    if known is None:
        return _observed_scores(bn, words.as_known(rows, bn, {}).select([n for n in bn if n in rows.columns]))
    return {
        "rows": known.weight,
        "parameters": bn.n_parameters,
        "network: log-likelihood": bn.log_likelihood(known),
        "network: nats per row": bn.cross_entropy(known),
        **_graph_scores(bn, known, families),
    }


def _observed_scores(bn: Any, rows: Any) -> dict[str, Any]:
    """How well a network accounts for what is observed of incomplete rows."""
    with working("summing over missing cells"):
        log_likelihood = bn.log_likelihood(rows)
    return {
        "rows": rows.weight,
        "parameters": bn.n_parameters,
        "missing cells": sum(rows.missing.values()),
        "network: log-likelihood": log_likelihood,
        "network: nats per row": -log_likelihood / rows.weight,
        "network: AIC": log_likelihood - bn.n_parameters,
        "network: BIC": log_likelihood - 0.5 * bn.n_parameters * math.log(rows.weight),
        "graph": "its scores need complete rows; the log-likelihood is that of the cells that are there",
    }


def _graph_scores(bn: Any, known: Any, families: Any) -> dict[str, float]:
    """The scores of the graph alone, parameters fitted or, unless there are regressions, integrated out."""
    from suffice.families.priors import K2, BDeu, BGe
    from suffice.learning.fit import score as scored
    from suffice.scores import AIC, BIC, Evidence, LogLikelihood
    from suffice.variables import Finite

    evidence = {
        (True,): {"K2": Evidence(K2()), "BDeu, ess 1": Evidence(BDeu(1))},
        (False,): {"BGe": Evidence(BGe())},
        (False, True): {"BDeu, ess 1, with BGe": Evidence((BDeu(1), BGe()))},
    }
    kinds = tuple(sorted({isinstance(v, Finite) for v in bn.variables.values()}))
    scores = {"log-likelihood": LogLikelihood(), "AIC": AIC(), "BIC": BIC(), **({} if families else evidence[kinds])}
    return {f"graph: {name}": scored(bn.dag, known, s, families=families, shared=bn.shared) for name, s in scores.items()}


@app.command("missing")
def missing_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet, a glob in quotes")],
    weights: Weights = None,
    missing: Missing = None,
    integers: Integers = "real",
    finite: FiniteWords = None,
    real: RealWords = None,
    bins: BinWords = None,
    without: Without = None,
    as_json: AsJson = False,
) -> None:
    """Report what is missing in data: by column and pattern, and whether it may be missing completely at random."""
    from suffice import cli_words as words
    from suffice.recipes.missingness import missingness

    declared = words.declarations(finite, real, bins)
    rows = words.data_of(data, declared, weights=weights, missing=missing, integers=integers, without=without)
    report = missingness(rows)
    print(json.dumps(report.to_dict(), ensure_ascii=False) if as_json else report)


@app.command()
def compare(
    truth: Annotated[str, typer.Argument(metavar="TRUTH", help="a network or a graph")],
    learned: Annotated[str, typer.Argument(metavar="LEARNED", help="a network or a graph")],
    as_json: AsJson = False,
) -> None:
    """Compare two graphs, and two networks' distributions where both have parameters."""
    from suffice import cli_words as words
    from suffice.graphs import compare as compared
    from suffice.models.divergence import kl

    (a, p), (b, q) = words.graph_of(truth), words.graph_of(learned)
    facts = compared(a, b).to_dict()
    if p is not None and q is not None:
        try:
            facts["KL(truth || learned), nats"] = kl(p, q)
        except SufficeError as error:
            say(f"note: no divergence of the distributions: {error}")
    print_facts(facts, as_json)


@app.command()
def convert(source: Annotated[str, typer.Argument(metavar="IN")], target: Annotated[str, typer.Argument(metavar="OUT")]) -> None:
    """Read a network in one format and write it in another; the suffixes say which."""
    from suffice import cli_words as words
    from suffice.formats import writable, write

    writable(target)
    bn = words.model_of(source)
    write(bn, target)
    say(f"{len(bn):,} nodes, {bn.n_parameters:,} parameters written to {target}")


@app.command()
def show(
    model: Model,
    node: Annotated[list[str] | None, typer.Option("--node", help="show the distribution of this node (may be repeated)")] = None,
    dot: Annotated[bool, typer.Option("--dot", help="print the graph in Graphviz's language")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a network: its nodes, with the coefficients of regressions, or the distributions of some."""
    from suffice import cli_words as words

    bn = words.model_of(model)
    names = words.known_names(node or [], bn)
    if dot:
        print(bn.dag.to_dot())
    elif as_json:
        from suffice.formats.json_model import write

        print(write(bn))
    elif names:
        for name in names:
            print(f"{bn[name]!r}\n")
    else:
        from suffice.families.regression_cpd import GlmCpd

        print(repr(bn), *(f"\n{bn[name]!r}" for name in bn if isinstance(bn[name], GlmCpd)), sep="\n")


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
    rows: Annotated[int, typer.Option("-n", help="how many rows to draw", min=1)] = 100_000,
    seed: Annotated[int, typer.Option(help="the same seed gives the same rows", min=0)] = 0,
) -> None:
    """Draw rows from the ALARM network, fit its 37 tables again, and show how close they come."""
    from suffice.demo import run

    run(rows, seed, working)


def in_options(message: str) -> str:
    """A message with its ways out in options of the command line, not in Python.

    >>> in_options("cut the parent into intervals: variables={'Wind': Bins(5)}")
    'cut the parent into intervals: --bins Wind=5'
    """
    for python, option in HINTS:
        message = re.sub(python, option, message)
    return message


def _show(shown: set[str], message: Any, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    """Print a note, the same one only once, or a warning."""
    if not issubclass(category, SufficeNote):
        say(f"warning: {message} ({Path(filename).name}:{lineno})")
    elif str(message) not in shown:
        shown.add(str(message))
        say(f"note: {in_options(str(message))}")
