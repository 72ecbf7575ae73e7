"""The command that shows models in a browser: `suffice explore`."""

from __future__ import annotations

from typing import Annotated

import typer

from suffice.output.terminal import say
from suffice.registry import command


@command("explore")
def explore(
    model: Annotated[
        str | None,
        typer.Argument(metavar="[MODEL]", help="a network, as `suffice show` takes it; else the page offers some"),
    ] = None,
    data: Annotated[str | None, typer.Argument(metavar="[DATA]", help="rows: .csv .csv.gz .parquet, a glob in quotes")] = None,
    against: Annotated[str | None, typer.Option("--against", metavar="MODEL2", help="a network to compare it with")] = None,
    port: Annotated[int, typer.Option(help="where on this machine; one that is free, if not given", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="print the address only, and open nothing")] = False,
) -> None:
    """Show a network and data on a page of this machine that answers clicks, learns and compares."""
    from suffice.explorer.serving import explore as started

    with started(model, data, against=against, port=port, browser=not no_browser) as page:
        print(page.url, flush=True)
        say("this machine only; Ctrl-C ends it")
        page.wait()
