"""The commands of one model, or two: `suffice show`, `draw`, `explore`, `report`, `sample` and `compare`; and `convert`, which
changes its format."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Argument, Option

from suffice.basis.output.terminal import print_facts, working
from suffice.basis.registry import command
from suffice.errors import SufficeError, listing, nearest, quantity, say
from suffice.interfaces.cli import arguments
from suffice.interfaces.cli.arguments import ARROWS, AsJson, Do, Model, Options, RowsOut

FEW = 12
"""Of a chain with at most so many nodes `show` prints all distributions."""


@command("show")
def show(
    model: Model,
    node: Annotated[list[str] | None, Option(help="show the distribution of this node (may be repeated)")] = None,
    dot: Annotated[bool, Option("--dot", help="print the graph in Graphviz's language")] = False,
    top: Annotated[int, Option(help="of a conditional random field: so many of its largest weights", min=1)] = 20,
    as_json: AsJson = False,
) -> None:
    """Print a network: its nodes, with the coefficients of regressions, or the distributions of some; of a chain its tables."""
    from suffice.formats.registry import json_of
    from suffice.interfaces.cli import models
    from suffice.models.chain import Chain

    bn = models.model_of(model)
    if bn.file_kind in models.NO_ANSWERS and (node or dot):
        models.refuse_answers(model, bn)
    if bn.file_kind == "crf" and not as_json:
        weights = bn.weights
        columns = (list(weights[name])[:top] for name in ("attribute", "label", "weight"))
        largest = (f"{weight:12.6f}  {attribute} -> {label}" for attribute, label, weight in zip(*columns, strict=True))
        return print(repr(bn), "", *largest, sep="\n")
    names = node or []
    if lacking := [n for n in names if n not in bn]:
        what = "chain" if isinstance(bn, Chain) else "network"
        raise SufficeError(f"the {what} has no node {listing(lacking)}{nearest(lacking[0], bn)}")
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
        told = [n for n in nodes if every or bn[n].is_regression]
        print(repr(bn), *(f"\n{bn[name]!r}" for name in told), sep="\n")
    return None


@command("draw")
def draw(
    model: Annotated[
        str, Argument(metavar="MODEL", help="a network or a chain as `suffice show` takes it, or a graph: 'a -> b; b -> c'")
    ],
    out: Annotated[str, Option("--out", "-o", metavar="FILE", help="where the picture goes: .svg, .png or .pdf")],
    given: Annotated[list[str] | None, Option(metavar="X=YES", help="what is observed (may be repeated): 'x=yes, y=1.5'")] = None,
    do: Do = None,
    interval: Annotated[
        float, Option(metavar="LEVEL", help="of the credible intervals of beliefs, where a posterior is kept; 0: none")
    ] = 0.95,
    focus: Annotated[list[str] | None, Option(metavar="NODE", help="only what is near this node (may be repeated)")] = None,
    steps: Annotated[int, Option(help="how many edges from the focus", min=0)] = 1,
    against: Annotated[
        str | None, Option(metavar="MODEL2", help="the edges of both, in four kinds of lines, without beliefs")
    ] = None,
) -> None:
    """Draw a network, what it believes given evidence, or how the edges of two differ."""
    shown = _model_or_graph(model)
    beliefs = _beliefs(model, shown, given or [], do or [], interval)
    if against is not None:
        if given or do:
            raise SufficeError("--against draws the edges of two, and --given and --do the beliefs of one: leave one of them out")
        beliefs = {"against": _model_or_graph(against)}
    picture = shown.picture(**beliefs, focus=focus or None, steps=steps)
    picture.save(out)
    n, m = len(picture.nodes), len(picture.edges)
    print(f"{out}: {n:,} node{'s' * (n != 1)}, {m:,} edge{'s' * (m != 1)}{f'; {picture.caption}' if picture.caption else ''}")


def _model_or_graph(text: str) -> Any:
    """A model, or a graph that is written down."""
    from suffice.interfaces.cli import models

    if any(arrow in text for arrow in ARROWS):
        return models.graph_of(text)[0]
    model = models.model_of(text)
    if not hasattr(model, "picture"):
        raise SufficeError(f"{text} holds {models.NO_ANSWERS.get(model.file_kind, 'a model')}: it has no graph to draw")
    return model


def _beliefs(text: str, shown: Any, given: list[str], do: list[str], interval: float) -> dict[str, Any]:
    """What the picture is asked for beside the graph."""
    from suffice.interfaces.cli import models

    if not hasattr(shown, "marginals"):
        if given or do:
            raise SufficeError(f"--given and --do are asked of a network: {text} has no beliefs about single rows")
        return {}
    asked: dict[str, Any] = {"given": models.settings_of(shown, given, "--given") or None}
    if hasattr(shown, "dag"):
        return {**asked, "do": models.settings_of(shown, do, "--do") or None, "interval": interval or None}
    if do:
        raise SufficeError(f"{text} holds a network without arrows, which says nothing of causes: --do needs arrows")
    return asked


@command("explore")
def explore(
    model: Annotated[
        str | None, Argument(metavar="[MODEL]", help="a network, as `suffice show` takes it; else the page offers some")
    ] = None,
    data: Annotated[str | None, Argument(metavar="[DATA]", help="rows: .csv .csv.gz .parquet, a glob in quotes")] = None,
    against: Annotated[str | None, Option(metavar="MODEL2", help="a network to compare it with")] = None,
    port: Annotated[int, Option(help="where on this machine; one that is free, if not given", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, Option("--no-browser", help="print the address only, and open nothing")] = False,
) -> None:
    """Show a network and data on a page of this machine that answers clicks, learns and compares."""
    from suffice.interfaces.explorer.serving import explore as started

    with started(model, data, against=against, port=port, browser=not no_browser) as page:
        print(page.url, flush=True)
        say("this machine only; Ctrl-C ends it")
        page.wait()


@command("report")
@arguments.with_options(arguments.WeightOptions)
def report(
    model: Model,
    data: Annotated[
        str | None, Argument(metavar="[DATA]", help="rows that it was learned from, or others: .csv .csv.gz .parquet")
    ] = None,
    *,
    out: Annotated[str, Option("--out", "-o", metavar="FILE", help="where the report goes: one HTML file")],
    held_out: Annotated[
        str | None,
        Option(
            metavar="DATA2",
            help="rows that the model was not fitted from, to judge it by; else a fifth of DATA is set aside, and what is "
            "fitted again from the rest is judged",
        ),
    ] = None,
    **options: Any,
) -> None:
    """Write what a model is, what it was learned from and how well it predicts into one HTML file, which loads nothing."""
    from suffice.interfaces.cli import inputs, models

    models.check_report(Options(report=out, out=None, dry_run=False))
    shown = models.model_of(model)
    if (kind := shown.file_kind) in models.NO_ANSWERS:
        raise SufficeError(f"{model} holds {models.NO_ANSWERS[kind]}; there is no report of it")
    read = arguments.WeightOptions(**options)
    rows, others = (None if path is None else inputs.data_of(path, read) for path in (data, held_out))
    models.write_report(out, shown, rows, held_out=others)


@command("sample")
def sample(
    model: Model,
    n: Annotated[int, Option("-n", help="how many rows; of a chain, how many sequences", min=0)],
    out: RowsOut = None,
    length: Annotated[int | None, Option(help="of a chain: how many steps each sequence has", min=1)] = None,
    seed: Annotated[int | None, Option(help="the same seed gives the same rows", min=0)] = None,
) -> None:
    """Draw rows from a network, or sequences from a chain."""
    from suffice.formats.rows import checked_rows_path, write_stream
    from suffice.interfaces.cli import models
    from suffice.models.chain import Chain

    if out:
        checked_rows_path(out)
    drawn = models.model_of(model)
    if drawn.file_kind == "crf":
        models.refuse_answers(model, drawn)
    if isinstance(drawn, Chain) is (length is None):
        instead = "a chain: give --length, the steps of a sequence" if length is None else "a network of rows: leave --length out"
        raise SufficeError(f"{model} holds {instead}")
    with working(f"drawing {n:,} {'rows' if length is None else 'sequences'}"):
        rows = drawn.sample(n, seed=seed) if length is None else drawn.sample(n, length, seed)
    write_stream([rows], out)
    if out:
        say(f"{quantity(rows.num_rows, 'row')} of {quantity(rows.num_columns, 'column')} written to {out}")


@command("compare")
def compare(
    truth: Annotated[str, Argument(metavar="TRUTH", help="a network or a graph")],
    learned: Annotated[str, Argument(metavar="LEARNED", help="a network or a graph")],
    as_json: AsJson = False,
) -> None:
    """Compare two graphs, and two networks' distributions where both have parameters."""
    from suffice.graphs import Template
    from suffice.graphs import compare as compared
    from suffice.interfaces.cli import models
    from suffice.models.divergence import kl

    (a, p), (b, q) = (models.graph_of(text) for text in (truth, learned))
    for text, graph in ((truth, a), (learned, b)):
        if isinstance(graph, Template):
            raise SufficeError(
                f"{text} holds a chain, and networks are compared: suffice score says how well each accounts for data"
            )
    facts = compared(a, b).to_dict()
    if p is not None and q is not None:
        try:
            facts["KL(truth || learned), nats"] = kl(p, q)
        except SufficeError as error:
            say(f"note: no divergence of the distributions: {error.in_options()}")
    print_facts(facts, as_json)


@command("convert")
def convert(
    source: Annotated[
        str, Argument(metavar="IN", help="the model to read, in a file whose suffix is one of <formats>; also .gz")
    ],
    target: Annotated[
        str,
        Argument(
            metavar="OUT",
            help="where it is written: the suffix is one of <formats>, of which some are only read; also .gz; a chain, labels "
            "and numbers: json",
        ),
    ],
) -> None:
    """Read a network in one format and write it in another; the suffixes say which. Chains are written as .json."""
    from suffice.formats import writable, write
    from suffice.interfaces.cli import models

    writable(target)
    bn = models.model_of(source)
    write(bn, target)
    say(f"{bn._headline()}; written to {target}")
