"""What the command line prints: results on standard output, everything else on standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from suffice.status import LINE


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


def say(message: str) -> None:
    print(message, file=sys.stderr)
