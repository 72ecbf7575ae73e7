"""The commands that look at a model: `suffice show`, `draw` and `explore`; and `convert`, which changes its format."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Argument, Option

from suffice.cli.arguments import AsJson, Do, Model
from suffice.errors import SufficeError, listing, nearest
from suffice.output.terminal import say
from suffice.registry import command

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
    from suffice.cli import inputs
    from suffice.formats.registry import json_of
    from suffice.models.chain import Chain

    bn = inputs.model_of(model)
    if bn.file_kind in inputs.NO_ANSWERS and (node or dot):
        inputs.refuse_answers(model, bn)
    if bn.file_kind == "crf" and not as_json:
        from suffice.cli.kinds.labels import show_weights

        return print(f"{bn!r}\n\n{show_weights(bn, top)}")
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
    from suffice.cli import inputs

    if any(arrow in text for arrow in ("->", "<-", "→", "←")):
        return inputs.graph_of(text)[0]
    model = inputs.model_of(text)
    if not hasattr(model, "picture"):
        raise SufficeError(f"{text} holds {inputs.NO_ANSWERS.get(model.file_kind, 'a model')}: it has no graph to draw")
    return model


def _beliefs(text: str, shown: Any, given: list[str], do: list[str], interval: float) -> dict[str, Any]:
    """What the picture is asked for beside the graph."""
    from suffice.cli import inputs

    if not hasattr(shown, "marginals"):
        if given or do:
            raise SufficeError(f"--given and --do are asked of a network: {text} has no beliefs about single rows")
        return {}
    asked: dict[str, Any] = {"given": inputs.settings_of(shown, given, "--given") or None}
    if hasattr(shown, "dag"):
        return {**asked, "do": inputs.settings_of(shown, do, "--do") or None, "interval": interval or None}
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
    from suffice.explorer.serving import explore as started

    with started(model, data, against=against, port=port, browser=not no_browser) as page:
        print(page.url, flush=True)
        say("this machine only; Ctrl-C ends it")
        page.wait()


@command("convert")
def convert(source: Annotated[str, Argument(metavar="IN")], target: Annotated[str, Argument(metavar="OUT")]) -> None:
    """Read a network in one format and write it in another; the suffixes say which. Chains are written as .json."""
    from suffice.cli import inputs
    from suffice.formats import writable, write

    writable(target)
    bn = inputs.model_of(source)
    write(bn, target)
    say(f"{bn._headline()}; written to {target}")
