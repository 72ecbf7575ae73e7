"""The command that changes the format of a network: `suffice convert`."""

from __future__ import annotations

from typing import Annotated

import typer

from suffice.output.terminal import say
from suffice.registry import command


@command("convert")
def convert(source: Annotated[str, typer.Argument(metavar="IN")], target: Annotated[str, typer.Argument(metavar="OUT")]) -> None:
    """Read a network in one format and write it in another; the suffixes say which. Chains are written as .json."""
    from suffice.cli import inputs
    from suffice.formats import writable, write

    writable(target)
    bn = inputs.model_of(source)
    write(bn, target)
    say(f"{bn._headline()}; written to {target}")
