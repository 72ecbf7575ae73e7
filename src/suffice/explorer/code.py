"""What gives the same answer outside the explorer: Python, and a command."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_PLAIN = re.compile(r"[A-Za-z_][\w.]*|\d[\w.]*", re.ASCII)

Code = dict[str, str | None]


@dataclass(frozen=True)
class Origin:
    """Where a model or a table comes from, in Python and on the command line.

    `python` are the statements that make it, the last one `NAME = …`; `word` is what commands call it, None if they cannot, and
    `commands` what makes it first.
    """

    python: str
    word: str | None
    commands: tuple[str, ...] = ()
    flags: str = ""
    """Options that a table is read with."""

    def code(self, statements: str, command: str | None = None, *others: Origin) -> Code:
        """Statements after those that make this and others, and a command with its own name first after the word."""
        begun = dict.fromkeys(line for origin in (self, *others) for line in origin.python.splitlines())
        python = "\n".join(["import suffice as sf", "", *begun, statements])
        if command is None or self.word is None:
            return {"python": python, "command": None}
        before = dict.fromkeys(line for origin in (self, *others) for line in origin.commands)
        return {"python": python, "command": "\n".join([*before, command])}

    @property
    def shell(self) -> str:
        """The word as a shell takes it."""
        return shlex.quote(self.word or "")


def call(name: str, *positional: str, **named: Any) -> str:
    """A call as text; what is None or empty is left out."""
    words = [*positional, *(f"{key}={value!r}" for key, value in named.items() if value not in (None, {}, [], ()))]
    return f"{name}({', '.join(words)})"


def word(text: str) -> str:
    """A name or a state as questions of the command line have it."""
    if _PLAIN.fullmatch(text):
        return text
    inside = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{inside}"'


def settings(values: Mapping[str, Any]) -> str:
    """Evidence as questions of the command line have it."""
    return ", ".join(f"{word(name)}={_value(value)}" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, str):
        return word(value)
    return repr([float(x) for x in value]) if isinstance(value, Sequence) else repr(value)


def options(**given: Any) -> str:
    """Options of a command; each value once, of lists each of them."""
    result = ""
    for name, value in given.items():
        for one in value if isinstance(value, list) else [] if value is None else [value]:
            result += f" --{name.replace('_', '-')} {shlex.quote(str(one))}"
    return result
