"""The command that draws: `suffice sample`."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from suffice.cli.arguments import Model, RowsOut
from suffice.errors import SufficeError, quantity
from suffice.output.terminal import say, working
from suffice.registry import command


@command("sample")
def sample(
    model: Model,
    n: Annotated[int, Option("-n", help="how many rows; of a chain, how many sequences", min=0)],
    out: RowsOut = None,
    length: Annotated[int | None, Option(help="of a chain: how many steps each sequence has", min=1)] = None,
    seed: Annotated[int | None, Option(help="the same seed gives the same rows", min=0)] = None,
) -> None:
    """Draw rows from a network, or sequences from a chain."""
    from suffice.cli import inputs
    from suffice.formats.rows import checked_rows_path, write_stream
    from suffice.models.chain import Chain

    if out:
        checked_rows_path(out)
    drawn = inputs.model_of(model)
    if drawn.file_kind == "crf":
        inputs.refuse_answers(model, drawn)
    if isinstance(drawn, Chain) is (length is None):
        instead = "a chain: give --length, the steps of a sequence" if length is None else "a network of rows: leave --length out"
        raise SufficeError(f"{model} holds {instead}")
    with working(f"drawing {n:,} {'rows' if length is None else 'sequences'}"):
        rows = drawn.sample(n, seed=seed) if length is None else drawn.sample(n, length, seed)
    write_stream([rows], out)
    if out:
        say(f"{quantity(rows.num_rows, 'row')} of {quantity(rows.num_columns, 'column')} written to {out}")
