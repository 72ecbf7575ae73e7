"""The command line: results on standard output, messages on standard error, exit 0, 1 (refused input) or 2 (usage)."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TextIO, cast

import typer
import typer.core

from suffice import __version__
from suffice.cli.commands import (
    compare,
    convert,
    draw,
    fit,
    learn,
    missing,
    package,
    predict,
    query,
    sample,
    schema,
    score,
    sequences,
    show,
    statistics,
)
from suffice.errors import SufficeError, SufficeNote
from suffice.kernels import announce
from suffice.terminal import PlainOutput, nobody_reads, say


class Commands(typer.core.TyperGroup):
    """All commands; one that is interrupted says so, where typer would end without a word, and a closed pipe ends quietly."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            say("interrupted: no network was written" if ctx.invoked_subcommand in ("fit", "learn") else "interrupted")
            raise SystemExit(130) from None
        except BrokenPipeError:  # of rows that nobody reads any more
            nobody_reads(sys.stdout)
            raise SystemExit(0) from None


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    help="Learn probabilistic graphical models from data.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def main() -> None:
    """The entry point: refusals become one sentence and exit 1."""
    warnings.showwarning = partial(_show, set())
    warnings.simplefilter("always", SufficeNote)
    announce(say)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    out = PlainOutput(sys.stdout)
    try:
        with redirect_stdout(cast(TextIO, out)):
            app()
    except SufficeError as error:
        say(f"error: {error.in_options()}")
        raise SystemExit(1) from None
    except OSError as error:
        say(f"error: {error.strerror or error}")
        raise SystemExit(1) from None
    finally:
        out.flush()


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", is_eager=True, help="print the version and exit")] = False,
) -> None:
    if version:
        print(f"suffice {__version__}")
        raise typer.Exit


NAMES: dict[str, Callable[..., None]] = {
    "fit": fit.fit,
    "learn": learn.learn,
    "query": query.query,
    "predict": predict.predict_command,
    "impute": predict.impute_command,
    "score": score.score,
    "gather": statistics.gather,
    "merge": statistics.merge,
    "decode": sequences.decode,
    "smooth": sequences.smooth,
    "filter": sequences.filter_command,
    "forecast": sequences.forecast,
    "sample": sample.sample,
    "networks": package.networks_command,
    "schema": schema.schema_command,
    "missing": missing.missing_command,
    "compare": compare.compare,
    "convert": convert.convert,
    "show": show.show,
    "draw": draw.draw,
    "warm": package.warm,
    "demo": package.demo,
}
"""The commands by their names, in the order in which --help has them."""

for name, command in NAMES.items():
    app.command(name)(command)


def _show(shown: set[str], message: Any, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    """Print a note, the same one only once, or a warning."""
    if not issubclass(category, SufficeNote):
        say(f"warning: {message} ({Path(filename).name}:{lineno})")
    elif (text := message.in_options()) not in shown:
        shown.add(text)
        say(f"note: {text}")
