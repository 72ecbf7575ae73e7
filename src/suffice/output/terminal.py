"""What the command line prints: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from suffice.errors import nobody_reads
from suffice.output.status import LINE


def console() -> Any:
    from rich.console import Console

    return Console(stderr=True)


@contextmanager
def working(what: str) -> Iterator[None]:
    """What is under way, with its seconds, on a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    line = LINE.begin(lambda: what)
    try:
        yield
    finally:
        LINE.end(line)


def print_facts(facts: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
        return
    width = max(len(k) for k in facts)
    for key, value in facts.items():
        text = (
            f"{value:.10g}"
            if isinstance(value, float)
            else ", ".join(map(str, value))
            if isinstance(value, (list, tuple))
            else str(value)
        )
        print(f"{key.ljust(width)}  {text}")


@contextmanager
def then_printed(text: str) -> Iterator[None]:
    """Print a result after a block that writes one, so that a pipe which nobody reads takes nothing with it; also if it fails.

    >>> with then_printed("a -> b"):
    ...     print("written")
    written
    a -> b
    """
    try:
        yield
    finally:
        print(text)


class PlainOutput:
    """Standard output for text, in which names from files do nothing to a terminal: what cannot be printed is escaped, as in
    JSON, so that what is JSON stays so. What goes to its `buffer`, such as rows, goes as it is. That nobody reads is no error.

    >>> _ = PlainOutput(sys.stdout).write("a\\x1b[31m")
    a\\u001b[31m
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        plain = (
            text if text.isprintable() else "".join(c if c.isprintable() or c in "\n\t" else json.dumps(c)[1:-1] for c in text)
        )
        try:
            self._stream.write(plain)
        except BrokenPipeError:
            nobody_reads(self._stream)
        return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            nobody_reads(self._stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
