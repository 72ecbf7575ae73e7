"""The command that prints a network: `suffice show`."""

from __future__ import annotations

from typing import Annotated

import typer

from suffice.cli.arguments import AsJson, Model
from suffice.errors import SufficeError
from suffice.registry import command

FEW = 12
"""Of a chain with at most so many nodes `show` prints all distributions."""


@command("show")
def show(
    model: Model,
    node: Annotated[list[str] | None, typer.Option("--node", help="show the distribution of this node (may be repeated)")] = None,
    dot: Annotated[bool, typer.Option("--dot", help="print the graph in Graphviz's language")] = False,
    top: Annotated[int, typer.Option(help="of a conditional random field: so many of its largest weights", min=1)] = 20,
    as_json: AsJson = False,
) -> None:
    """Print a network: its nodes, with the coefficients of regressions, or the distributions of some; of a chain its tables."""
    from suffice.cli import inputs
    from suffice.formats.registry import json_of
    from suffice.models.chain import Chain

    bn = inputs.model_of(model)
    if inputs.kind_of(bn) in inputs.NO_ANSWERS and (node or dot):
        inputs.refuse_answers(model, bn)
    if inputs.kind_of(bn) == "crf" and not as_json:
        from suffice.cli.kinds.labels import show_weights

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
        told = [n for n in nodes if every or bn[n].is_regression]
        print(repr(bn), *(f"\n{bn[name]!r}" for name in told), sep="\n")
    return None
