"""The command that reports on missing cells: `suffice missing`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from suffice.cli_arguments import AsJson, BinWords, FiniteWords, Integers, Missing, RealWords, Weights


def missing_command(
    data: Annotated[str, typer.Argument(metavar="DATA", help="rows: .csv .csv.gz .parquet, a glob in quotes")],
    weights: Weights = None,
    missing: Missing = None,
    integers: Integers = "real",
    finite: FiniteWords = None,
    real: RealWords = None,
    bins: BinWords = None,
    without: Annotated[list[str] | None, typer.Option(metavar="A,B", help="leave these columns out")] = None,
    as_json: AsJson = False,
) -> None:
    """Report what is missing in data: by column and pattern, and whether it may be missing completely at random."""
    from suffice import cli_words as words
    from suffice.recipes.missingness import missingness

    declared = words.declarations(finite or [], real or [], bins or [])
    kinds = words.chosen(words.INTEGERS, integers, "--integers")
    rows = words.data_of(data, declared, weights=weights, missing=tuple(missing or ()), **kinds)
    if without:
        rows = words.left_out(rows, without)
    report = missingness(rows)
    print(json.dumps(report.to_dict(), ensure_ascii=False) if as_json else report)
