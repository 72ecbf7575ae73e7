"""The command that compares two networks or graphs: `suffice compare`."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Argument

from suffice.cli.arguments import AsJson
from suffice.errors import SufficeError
from suffice.output.terminal import print_facts, say
from suffice.registry import command


@command("compare")
def compare(
    truth: Annotated[str, Argument(metavar="TRUTH", help="a network or a graph")],
    learned: Annotated[str, Argument(metavar="LEARNED", help="a network or a graph")],
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
            say(f"note: no divergence of the distributions: {error.in_options()}")
    print_facts(facts, as_json)


def _network_or_graph(text: str) -> Any:
    from suffice.cli import inputs
    from suffice.graphs import Template

    graph, model = inputs.graph_of(text)
    if isinstance(graph, Template):
        raise SufficeError(f"{text} holds a chain, and networks are compared: suffice score says how well each accounts for data")
    return graph, model
