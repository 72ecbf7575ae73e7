"""The command that reports: `suffice report`."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Argument, Option

from suffice.cli import arguments
from suffice.cli.arguments import Options
from suffice.cli.outputs import check_report, write_report
from suffice.errors import SufficeError
from suffice.registry import command


@command("report")
@arguments.with_options(arguments.WeightOptions)
def report(
    model: arguments.Model,
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
    check_report(Options(report=out, out=None, dry_run=False))
    from suffice.cli import inputs

    shown = inputs.model_of(model)
    if (kind := shown.file_kind) in inputs.NO_ANSWERS:
        raise SufficeError(f"{model} holds {inputs.NO_ANSWERS[kind]}; there is no report of it")

    read = arguments.WeightOptions(**options)
    rows, others = (None if path is None else inputs.data_of(path, read) for path in (data, held_out))
    write_report(out, shown, rows, held_out=others)
