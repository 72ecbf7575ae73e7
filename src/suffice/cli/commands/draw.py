"""The command that draws: `suffice draw`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from suffice.errors import SufficeError
from suffice.registry import command


@command("draw")
def draw(
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="a network or a chain as `suffice show` takes it, or a graph: 'a -> b; b -> c'")
    ],
    out: Annotated[str, typer.Option("--out", "-o", metavar="FILE", help="where the picture goes: .svg, .png or .pdf")],
    given: Annotated[
        list[str] | None, typer.Option("--given", metavar="X=YES", help="what is observed (may be repeated): 'x=yes, y=1.5'")
    ] = None,
    do: Annotated[
        list[str] | None, typer.Option("--do", metavar="X=YES", help="first set a variable from outside (may be repeated)")
    ] = None,
    interval: Annotated[
        float, typer.Option(metavar="LEVEL", help="of the credible intervals of beliefs, where a posterior is kept; 0: none")
    ] = 0.95,
    focus: Annotated[
        list[str] | None, typer.Option("--focus", metavar="NODE", help="only what is near this node (may be repeated)")
    ] = None,
    steps: Annotated[int, typer.Option(help="how many edges from the focus", min=0)] = 1,
    against: Annotated[
        str | None, typer.Option("--against", metavar="MODEL2", help="the edges of both, in four kinds of lines, without beliefs")
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
        raise SufficeError(f"{text} holds {inputs.NO_ANSWERS.get(inputs.kind_of(model), 'a model')}: it has no graph to draw")
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
        return {**asked, "do": inputs.interventions_of(shown, do) or None, "interval": interval or None}
    if do:
        raise SufficeError(f"{text} holds a network without arrows, which says nothing of causes: --do needs arrows")
    return asked
