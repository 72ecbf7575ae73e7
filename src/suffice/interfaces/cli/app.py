"""The command line: results on standard output, messages on standard error, exit 0, 1 (refused input) or 2 (usage)."""

from __future__ import annotations

import io
import re
import sys
import warnings
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TextIO, cast

import typer
import typer.core

from suffice.basis import VERSION
from suffice.basis.output.terminal import PlainOutput
from suffice.basis.registry import PLACES, every, find, words
from suffice.errors import SufficeError, SufficeNote, nobody_reads, say
from suffice.numerics.kernels import announce

KINDS = re.compile(f"<((?:{'|'.join(PLACES)})(?:[|](?:{'|'.join(PLACES)}))*)>")
"""Where help lists the words of a kind, or of several."""


class Command(typer.core.TyperCommand):
    """A command whose help lists words as they are registered: `<methods>` stands for those of all methods."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        for parameter in self.params:
            said = getattr(parameter, "help", None) or ""
            listed = KINDS.sub(lambda kinds: ", ".join(w for kind in kinds[1].split("|") for w in words(kind)), said)
            parameter.help = listed  # type: ignore[attr-defined]
        super().format_help(ctx, formatter)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Arguments by their names, in brackets where they may be left out; versions of typer put other ones around them."""
        arguments = (p for p in self.params if p.param_type_name == "argument")
        named = ((p.metavar or str(p.name).upper(), p.required) for p in arguments)
        return ["[OPTIONS]", *(name if required else f"[{name}]" for name, required in named)]


class Commands(typer.core.TyperGroup):
    """All commands; one that is interrupted says so, where typer would end without a word, and a closed pipe ends quietly."""

    def list_commands(self, ctx: Any) -> list[str]:
        known = every("commands")
        return [word for word in words("commands") if word in known]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command of a word, whose module is loaded now."""
        function = find("commands", cmd_name)
        if function is None:
            self.commands = dict.fromkeys(words("commands"))  # type: ignore[assignment]  # to find one that is near
            return None
        own = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
        own.command(cmd_name, cls=Command)(function)
        return typer.main.get_command(own)

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
        print(f"suffice {VERSION}")
        raise typer.Exit


def _show(shown: set[str], message: Any, category: type[Warning], filename: str, lineno: int, *_: Any) -> None:
    """Print a note, the same one only once, or a warning."""
    if not issubclass(category, SufficeNote):
        say(f"warning: {message} ({Path(filename).name}:{lineno})")
    elif (text := message.in_options()) not in shown:
        shown.add(text)
        say(f"note: {text}")
