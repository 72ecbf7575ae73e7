"""The command line: results on standard output, messages on standard error, exit 0, 1 (refused input) or 2 (usage)."""

from __future__ import annotations

import io
import json
import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from suffice import __version__
from suffice.errors import SufficeError, SufficeNote
from suffice.kernels import announce

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Learn probabilistic graphical models from data.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Model = Annotated[str, typer.Argument(metavar="MODEL", help="a network: .bif .xmlbif .net .dsc .xdsl .dsl .uai .json, also .gz")]
DataFile = Annotated[str, typer.Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet, a glob in quotes; or saved .stats")]
AsJson = Annotated[bool, typer.Option("--json", help="print JSON for a program to read")]
Weights = Annotated[str | None, typer.Option(help="the column that holds row weights")]
Missing = Annotated[list[str] | None, typer.Option(help="a word that means a missing cell, besides the empty cell")]
Integers = Annotated[str, typer.Option(help="what columns of whole numbers are: real or finite")]
FiniteWords = Annotated[
    list[str] | None, typer.Option("--finite", help="a,b: these columns are finite; smoke=no,yes: with these states")
]
RealWords = Annotated[list[str] | None, typer.Option("--real", help="a,b: these columns are real")]
BinWords = Annotated[list[str] | None, typer.Option("--bins", help="age=18,65 or age=5: cut a column of numbers into intervals")]


def main() -> None:
    """The entry point: refusals become one sentence and exit 1."""
    warnings.showwarning = _show
    warnings.simplefilter("always", SufficeNote)
    announce(_say)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        app()
        sys.stdout.flush()
    except SufficeError as error:
        _say(f"error: {error}")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        _say("interrupted")
        raise SystemExit(130) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody reads any more, nor is told
        raise SystemExit(0) from None
    except OSError as error:
        _say(f"error: {error.strerror or error}")
        raise SystemExit(1) from None


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="print the version and exit")] = False,
) -> None:
    if version:
        print(f"suffice {__version__}")
        raise typer.Exit


@app.command()
def fit(
    graph: Annotated[
        str, typer.Argument(metavar="GRAPH_OR_MODEL", help="'a -> b; b -> c', a text file with that, or a network's file")
    ],
    data: DataFile,
    out: Annotated[
        str, typer.Option("-o", "--out", metavar="MODEL", help="where to write the network; the suffix says the format")
    ],
    prior: Annotated[str, typer.Option(help="mle, bdeu:10, k2, dirichlet:1, nig, bge, or several: bdeu:1+nig")] = "mle",
    estimate: Annotated[str, typer.Option(help="with a prior: mean or mode of the posterior")] = "mean",
    weights: Weights = None,
    missing: Missing = None,
    integers: Integers = "real",
    finite: FiniteWords = None,
    real: RealWords = None,
    bins: BinWords = None,
    statistics: Annotated[
        str | None, typer.Option(metavar="STATS", help="also write the statistics, to be merged or refitted")
    ] = None,
) -> None:
    """Fit the parameters of a graph to data."""
    from suffice import cli_words as words
    from suffice.families.gathering import gather
    from suffice.formats import writable, write
    from suffice.learning.fit import fit as fitted

    writable(out)
    if statistics and (Path(statistics).resolve() == Path(out).resolve() or not Path(statistics).parent.is_dir()):
        raise SufficeError(
            f"the statistics cannot be written to {statistics}: give a file of their own in a directory that exists"
        )
    start = time.perf_counter()
    dag, bn = words.graph_of(graph)
    declared = words.declarations(finite or [], real or [], bins or [])
    chosen_prior, how = words.prior_of(prior), words.chosen(words.ESTIMATES, estimate, "--estimate")
    kinds = words.chosen(words.INTEGERS, integers, "--integers")
    rows = words.data_of(data, declared, weights=weights, missing=tuple(missing or ()), **kinds)
    gathered = gather(rows if bn is None else words.as_known(rows, bn, declared), dag)
    model = fitted(dag, gathered, prior=chosen_prior, estimate=how)
    if statistics:
        gathered.save(statistics)
    write(model, out)
    _say(f"{model._headline()}; {time.perf_counter() - start:.2f} s; written to {out}")


@app.command()
def learn(
    data: DataFile,
    out: Annotated[
        str | None,
        typer.Option("-o", "--out", metavar="MODEL", help="where to write the fitted network; the suffix says the format"),
    ] = None,
    method: Annotated[str, typer.Option(help="orders, hill-climb, tabu, ges, exact, chow-liu, tan:CLASS, pc or mmhc")] = "orders",
    score: Annotated[str, typer.Option(help="bic, aic, loglik, k2, bdeu:1, bds:1, bge, or several priors: bdeu:1+bge")] = "bic",
    max_parents: Annotated[int | None, typer.Option(help="at most so many parents", min=0)] = None,
    require: Annotated[list[str] | None, typer.Option(metavar="A,B", help="the edge A -> B must be there")] = None,
    forbid: Annotated[list[str] | None, typer.Option(metavar="A,B", help="the edge A -> B must not be there")] = None,
    tiers: Annotated[
        str | None, typer.Option(metavar="FILE", help="a tier of names on each line; no edge leads to an earlier tier")
    ] = None,
    restarts: Annotated[int | None, typer.Option(help="start so many times again (methods that can)", min=0)] = None,
    alpha: Annotated[float | None, typer.Option(help="the level of the independence tests (pc, mmhc)")] = None,
    prior: Annotated[str | None, typer.Option(help="for the parameters, as in fit; bdeu:1+nig if not given")] = None,
    bootstrap: Annotated[
        int | None, typer.Option(metavar="N", help="search in N resamples, too: how often each edge is found", min=1)
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="say of each edge why it is there")] = False,
    time_limit: Annotated[float | None, typer.Option(metavar="SECONDS", help="stop the search, take the best so far")] = None,
    memory_limit: Annotated[
        str | None, typer.Option(metavar="SIZE", help="what the search may take beside the data: 2GB")
    ] = None,
    seed: Annotated[int, typer.Option(help="the same seed gives the same graph", min=0)] = 0,
    threads: Annotated[int | None, typer.Option(help="how many threads; all that there are if not given", min=1)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="only foretell what the search would cost")] = False,
    weights: Weights = None,
    missing: Missing = None,
    integers: Integers = "real",
    finite: FiniteWords = None,
    real: RealWords = None,
    bins: BinWords = None,
    without: Annotated[list[str] | None, typer.Option(metavar="A,B", help="leave these columns out")] = None,
    as_json: AsJson = False,
) -> None:
    """Learn a network's graph, and then its parameters, from data. Ctrl-C takes the best graph so far."""
    from suffice import cli_words as words
    from suffice.formats import writable
    from suffice.recipes.learn import PRIOR, suitable
    from suffice.structure.search import search

    if out is not None:
        writable(out)
    in_method = words.takes(method, "max_parents")
    how = words.method_of(method, max_parents=max_parents if in_method else None, restarts=restarts, alpha=alpha)
    known = words.constraints_of(require or [], forbid or [], tiers, None if in_method else max_parents)
    asked: dict[str, Any] = {"score": words.score_of(score), "constraints": known, "seed": seed}
    chosen_prior = None if prior is None else words.prior_of(prior)
    declared = words.declarations(finite or [], real or [], bins or [])
    kinds = words.chosen(words.INTEGERS, integers, "--integers")
    rows = words.data_of(data, declared, weights=weights, missing=tuple(missing or ()), **kinds)
    if without:
        rows = words.left_out(rows, without)
    if bootstrap is not None and not hasattr(rows, "resample"):
        raise SufficeError("--bootstrap resamples rows, and saved statistics have none")
    if dry_run:
        plan = search(rows, method=how, dry_run=True, threads=threads, memory_limit=memory_limit, **asked)
        print(json.dumps(plan.to_dict(), ensure_ascii=False) if as_json else plan)
        return
    found = search(rows, method=how, time_limit=time_limit, memory_limit=memory_limit, threads=threads, **asked)
    if not found.finished:
        _say("note: the search was stopped before its end; this is the best graph so far")
    if not as_json:
        print(found)
    told = [found.explain(e) for e in sorted({*found.cpdag.directed, *found.cpdag.undirected})] if explain else []
    if not as_json and told:
        print(*(f"\n{t}" for t in told), sep="\n")
    limits = {"time_limit": time_limit, "memory_limit": memory_limit, "threads": threads}
    strengths = None if bootstrap is None else _bootstrapped(rows, how, bootstrap, asked | limits, quiet=as_json)
    if as_json:
        facts = {**found.to_dict(), "score_name": repr(asked["score"])}
        facts |= {"explanations": [t.to_dict() for t in told]} if explain else {}
        facts |= {} if strengths is None else {"bootstrap": strengths.to_dict()}
        print(json.dumps(facts, ensure_ascii=False))
    if out is not None:
        _write_fitted(found, rows, suitable(PRIOR, found.problem.variables) if prior is None else chosen_prior, out)


def _bootstrapped(rows: Any, how: Any, n: int, asked: dict[str, Any], *, quiet: bool) -> Any:
    """How often each edge is found in resamples; printed, too."""
    from suffice.recipes.bootstrap import bootstrap

    strengths = bootstrap(rows, how, n, **asked)
    if not quiet:
        print(f"\n{strengths!r}")
    return strengths


def _write_fitted(found: Any, rows: Any, prior: Any, out: str) -> None:
    """Fit the graph's parameters and write the network."""
    from suffice.formats import write
    from suffice.learning.fit import fit as fitted

    model = fitted(found.dag, rows, prior=prior)
    write(model, out)
    _say(f"{model._headline()}; searched for {found.seconds:.2f} s; written to {out}")


@app.command()
def sample(
    model: Model,
    n: Annotated[int, typer.Option("-n", help="how many rows", min=0)],
    out: Annotated[
        str | None, typer.Option("-o", "--out", metavar="OUT", help=".csv .csv.gz .parquet; standard output if not given")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="the same seed gives the same rows", min=0)] = None,
) -> None:
    """Draw rows from a network."""
    from suffice import cli_words as words
    from suffice.formats.rows import checked_rows_path, write_rows

    if out:
        checked_rows_path(out)
    bn = words.model_of(model)
    with _working(f"drawing {n:,} rows"):
        table = bn.sample(n, seed=seed)
        write_rows(table, out)
    if out:
        _say(f"{n:,} rows of {len(bn)} columns written to {out}")


@app.command()
def score(model: Model, data: DataFile, weights: Weights = None, missing: Missing = None, as_json: AsJson = False) -> None:
    """How well a network and its graph account for data: natural logs, higher is better."""
    from suffice import cli_words as words

    bn = words.model_of(model)
    statistics = bn.summary(words.data_of(data, weights=weights, missing=tuple(missing or ())))
    facts = {
        "rows": statistics.weight,
        "parameters": bn.n_parameters,
        "network: log-likelihood": bn.log_likelihood(statistics),
        "network: nats per row": bn.cross_entropy(statistics),
        **_graph_scores(bn, statistics),
    }
    _print(facts, as_json)


def _graph_scores(bn: Any, statistics: Any) -> dict[str, float]:
    """The scores of the graph alone, parameters fitted or integrated out."""
    from suffice.families.priors import K2, BDeu, BGe
    from suffice.learning.fit import score as scored
    from suffice.scores import AIC, BIC, Evidence, LogLikelihood
    from suffice.variables import Finite

    kinds = {isinstance(v, Finite) for v in bn.variables.values()}
    scores: dict[str, Any] = {"log-likelihood": LogLikelihood(), "AIC": AIC(), "BIC": BIC()}
    if kinds == {True}:
        scores |= {"K2": Evidence(K2()), "BDeu, ess 1": Evidence(BDeu(1))}
    elif kinds == {False}:
        scores |= {"BGe": Evidence(BGe())}
    else:
        scores |= {"BDeu, ess 1, with BGe": Evidence((BDeu(1), BGe()))}
    return {f"graph: {name}": scored(bn.dag, statistics, s) for name, s in scores.items()}


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
            _say(f"note: no divergence of the distributions: {error}")
    _print(facts, as_json)


@app.command()
def convert(source: Annotated[str, typer.Argument(metavar="IN")], target: Annotated[str, typer.Argument(metavar="OUT")]) -> None:
    """Read a network in one format and write it in another; the suffixes say which."""
    from suffice import cli_words as words
    from suffice.formats import writable, write

    writable(target)
    bn = words.model_of(source)
    write(bn, target)
    _say(f"{len(bn):,} nodes, {bn.n_parameters:,} parameters written to {target}")


@app.command()
def show(
    model: Model,
    node: Annotated[list[str] | None, typer.Option("--node", help="show the distribution of this node (may be repeated)")] = None,
    dot: Annotated[bool, typer.Option("--dot", help="print the graph in Graphviz's language")] = False,
    as_json: AsJson = False,
) -> None:
    """Print a network: its nodes, or the distributions of some."""
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
        print(repr(bn))


@app.command()
def warm() -> None:
    """Compile all kernels ahead of their first use; they are kept on disk."""
    from rich.progress import Progress

    from suffice.kernels import warm as warmed

    start = time.perf_counter()
    with Progress(console=_console(), transient=True) as bar:
        task = bar.add_task("compiling kernels", total=None)
        n = warmed(lambda done, total, name: bar.update(task, completed=done, total=total, description=f"compiling {name}"))
    _say(f"{n} kernels ready in {time.perf_counter() - start:.1f} s")


@app.command()
def demo(
    rows: Annotated[int, typer.Option("-n", help="how many rows to draw", min=1)] = 100_000,
    seed: Annotated[int, typer.Option(help="the same seed gives the same rows", min=0)] = 0,
) -> None:
    """Draw rows from the ALARM network, fit its 37 tables again, and show how close they come."""
    from suffice.demo import run

    run(rows, seed, _working)


def _console() -> Any:
    from rich.console import Console

    return Console(stderr=True)


@contextmanager
def _working(what: str) -> Iterator[None]:
    """What is under way, with its seconds, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=_console(), transient=True) as bar:
        bar.add_task(what, total=None)
        yield


def _print(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    width = max(len(k) for k in facts)
    for key, value in facts.items():
        text = (
            f"{value:.10g}"
            if isinstance(value, float)
            else ", ".join(map(str, value))
            if isinstance(value, (list, tuple))
            else str(value)
        )
        print(f"{key.ljust(width)}  {text}")


def _say(message: str) -> None:
    print(message, file=sys.stderr)


def _show(message: Any, category: type[Warning], filename: str, lineno: int, file: Any = None, line: str | None = None) -> None:
    if issubclass(category, SufficeNote):
        _say(f"note: {message}")
    else:
        _say(f"warning: {message} ({Path(filename).name}:{lineno})")
