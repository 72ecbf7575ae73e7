"""What the command line writes: models, with what their files are to have, and reports about them."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Any

from suffice.cli.arguments import Options, option_of, refuse
from suffice.errors import FormatError, SufficeError
from suffice.output.terminal import say, working

FEW = 100
"""Networks of up to so many parameters keep the observed information in their file without being asked: 2 E-steps each."""


def write_model(model: Any, out: str | None, spent: str) -> None:
    """Write a model, if there is a place for it, and say so."""
    from suffice.formats import write

    if out is None:
        return
    write(model, out)
    say(f"{model._headline()}; {spent}; written to {out}")


def with_information(model: Any, out: str, asked: bool | None = None) -> Any:
    """The model with what its file is to have; where it cannot be found and nobody asked for it, that is noted."""
    kept = model.incomplete and Path(out).suffix.lower() == ".json"
    if kept and (asked or (asked is None and model.n_parameters <= FEW)):
        try:
            model.parameter_covariance  # noqa: B018 - it is kept once it was found
        except SufficeError as error:
            if asked:
                raise
            say(f"note: the file has no intervals of answers: {error.in_options()}")
    return model


def check_report(given: Options) -> None:
    """Refuse a place where no report can be written, and one beside an option that learns nothing.

    >>> check_report(Options(report="r.html", out=None, dry_run=False))
    """
    if given.report is None:
        return
    place = Path(given.report)
    if given.dry_run:
        refuse(given, "report", "is of what was learned, and --dry-run learns nothing")
    for option in ("chain", "rbm"):
        if vars(given).get(option) is not None:
            refuse(given, "report", f"shows the tables of nodes, which models of {option_of(option)} do not have")
    if place.is_dir():
        raise FormatError("this is a directory; give the name of a file", path=place)
    if not place.parent.is_dir():
        raise FormatError(f"there is no directory {str(place.parent)!r}", path=place)
    if given.out is not None and place.resolve() == Path(given.out).resolve():
        raise FormatError("the report and the model need a file each", path=place)


def write_report(place: str | None, x: Any, data: Any = None, *, found: Any = None, held_out: Any = None) -> None:
    """Write the report of a model, whose graph was `found`, or of a run, where one is asked for, and say so."""
    if place is None:
        return
    from suffice.reports import report
    from suffice.reports.subject import of_search

    command = shlex.join(["suffice", *sys.argv[1:]])
    with working("writing the report"):
        report(x if found is None else of_search(found, x), data, place, held_out=held_out, command=command)
    say(f"report written to {place}")
