"""What the pages of the reference list, and what they lack: public names, and commands with their examples."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from building.meanings import arguments_of, fields_of
from building.public import Name
from suffice.basis.registry import words

REFERENCE = Path(__file__).parents[1] / "reference"
COMMANDS = REFERENCE / "command_line.md"
GROUP = re.compile(r"^```\{names\}[^\n]*\n(?::[^\n]*\n)*(.*?)^```", re.M | re.S)
BLOCK = re.compile(r"^```\{command\} (\w+)\n(.*?)^```", re.M | re.S)


def groups() -> dict[str, str]:
    """Every name that a page of the reference lists, and the page."""
    return {
        word: path.stem
        for path in sorted(REFERENCE.glob("*.md"))
        for block in GROUP.findall(path.read_text("utf-8"))
        for word in block.split()
    }


def lacks(name: Name) -> Iterator[str]:
    """What an entry should have and has not."""
    if callable(name.thing) and not name.has_example:
        yield f"{name.short} has no example"
    for one in (name, *(m for m in name.members() if m.has_example)):
        yield from (
            f"nothing says what {a.name} of {one.short} is" for a in (*arguments_of(one), *fields_of(one)) if not a.meaning
        )


@dataclass(frozen=True)
class Example:
    """A line of the command line, of the block of a command."""

    command: str
    line: str

    @property
    def arguments(self) -> list[str]:
        return shlex.split(self.line)[1:]


def examples_of(page: str) -> list[Example]:
    """The lines of all blocks of a page, in order."""
    return [Example(command, line) for command, block in BLOCK.findall(page) for line in block.splitlines() if line.strip()]


def without_example(page: str) -> list[str]:
    """The commands that the page does not have."""
    return sorted(set(words("commands")) - {example.command for example in examples_of(page)})
