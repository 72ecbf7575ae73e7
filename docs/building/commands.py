"""The command line on the site: the help that a command gives, and examples that run when the site is built.

The page lists each command in a block of lines, which run one after another in one directory:

    ```{command} query
    suffice query asia "P(lung | xray=yes)"
    ```
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from tempfile import TemporaryDirectory
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from building.listing import COMMANDS, Example, without_example

logger = logging.getLogger(__name__)
CALLED = "import sys; sys.argv[0] = 'suffice'; from suffice.__main__ import run; run()"
"""The command as it calls itself in its help."""


def output_of(arguments: list[str], folder: str) -> tuple[int, str]:
    """What the command line says, all of it, without colours, and how it ends."""
    surroundings = {**os.environ, "COLUMNS": "88", "NO_COLOR": "1", "TERM": "dumb"}
    done = subprocess.run(
        [sys.executable, "-c", CALLED, *arguments],
        cwd=folder,
        env=surroundings,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.returncode, done.stdout.rstrip()


class CommandBlock(SphinxDirective):
    """The help of a command, then its examples with what they print."""

    has_content = True
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        folder = self.env.temp_data.setdefault("folder of commands", TemporaryDirectory())
        _, said = output_of([self.arguments[0], "--help"], folder.name)
        return [_text(said, "text"), *self._examples(folder.name)]

    def _examples(self, folder: str) -> Iterator[nodes.Node]:
        for line in self.content:
            if line.strip():
                code, said = output_of(Example("", line).arguments, folder)
                if code:
                    logger.warning("%s ends with %s: %s", line, code, said, location=self.get_location(), type="commands")
                yield _text(f"$ {line}\n{said}".rstrip(), "console")


def _text(text: str, language: str) -> nodes.literal_block:
    return nodes.literal_block(text, text, language=language)


def check(app: Sphinx, env: Any) -> None:
    for command in without_example(COMMANDS.read_text("utf-8")):
        logger.warning("the command %s has no example in %s", command, COMMANDS.name, type="commands")


def setup(app: Sphinx) -> dict[str, Any]:
    kind: type[Directive] = CommandBlock
    app.add_directive("command", kind)
    app.connect("env-check-consistency", check)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
