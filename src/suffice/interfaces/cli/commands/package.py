"""The commands about the package itself: `suffice networks`, `demo` and `warm`."""

from __future__ import annotations

import json
import time
from functools import partial
from typing import Annotated

from typer import Argument, Option

from suffice.basis.output.terminal import console
from suffice.basis.registry import command
from suffice.errors import SufficeError, say
from suffice.interfaces.cli.arguments import AsJson


@command("networks")
def networks_command(as_json: AsJson = False) -> None:
    """List the networks and the tables that come with the package: where a file is asked for, their names will do."""
    from suffice.formats import networks, tables

    if as_json:
        print(json.dumps({"networks": list(networks()), "tables": list(tables())}))
        return
    print(f"networks\n\n{networks()}\n\ntables\n\n{tables()}")


@command("demo")
def demo(
    what: Annotated[str, Argument(metavar="WHAT", help="networks (if not given), or sequences")] = "networks",
    rows: Annotated[int, Option("-n", help="of networks: how many rows to draw", min=1)] = 100_000,
    seed: Annotated[int, Option(help="the same seed gives the same rows", min=0)] = 0,
) -> None:
    """Draw rows from the ALARM network, fit its 37 tables again, and show how close they come; or learn from sequences."""
    if what not in ("networks", "sequences"):
        raise SufficeError(f"there is a demo of networks, and one of sequences; not of {what!r}")
    from suffice.interfaces.cli.demos import show_networks, show_sequences

    return show_sequences(seed) if what == "sequences" else show_networks(rows, seed)


@command("warm")
def warm() -> None:
    """Compile all kernels ahead of their first use; they are kept on disk."""
    from rich.progress import Progress

    from suffice.engines.steps.blocks import n_threads as cores
    from suffice.numerics.kernels import warm as warmed

    start = time.perf_counter()
    with Progress(console=console(), transient=True) as bar:
        show = partial(bar.update, bar.add_task("compiling kernels", total=None))
        n = warmed(lambda done, total, name: show(completed=done, total=total, description=f"compiled {name}"), cores())
    say(f"{n} kernels ready in {time.perf_counter() - start:.1f} s")
