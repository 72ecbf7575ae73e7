"""What the command line prints: results on standard output, everything else on standard error; and one line for what is under
way, on a terminal or below a cell of a notebook: its clock moves by itself, and work within other work shares it."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from suffice.errors import nobody_reads


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
        value = f"{value:.10g}" if isinstance(value, float) else value
        text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)
        print(f"{key.ljust(width)}  {text}")


@contextmanager
def then_printed(text: str) -> Iterator[None]:
    """Print a result after a block that writes one, so that a pipe which nobody reads takes nothing with it; also if it fails."""
    try:
        yield
    finally:
        print(text)


class PlainOutput:
    """Standard output for text, in which names from files do nothing to a terminal: what cannot be printed is escaped, as in
    JSON, so that what is JSON stays so. What goes to its `buffer`, such as rows, goes as it is. That nobody reads is no error."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        plain = text
        if not text.isprintable():
            plain = "".join(c if c.isprintable() or c in "\n\t" else json.dumps(c)[1:-1] for c in text)
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


REFRESHES = 8
"""How often a second the line is drawn."""


def in_notebook() -> bool:
    """Whether the code runs in a cell of a notebook."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return getattr(shell, "kernel", None) is not None


def is_shown() -> bool:
    """Whether there is somebody to look at it."""
    return sys.stderr.isatty() or in_notebook()


def patience() -> float:
    """Seconds before what is under way is shown."""
    return 2.0 if in_notebook() else 1.0


class StatusLine:
    """What is under way, the outermost work first, with the seconds since that began."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Callable[[], str], float]] = {}
        self._lock = threading.Lock()
        self._next = 0
        self._live: Any = None

    def begin(self, text: Callable[[], str], start: float | None = None, *, shown: bool = True) -> int:
        """Show a text, made anew whenever the line is drawn, until `end` is called with the number that this returns. `start` is
        when the work began, by `time.perf_counter`."""
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._entries[number] = text, time.perf_counter() if start is None else start
            if self._live is None and shown:
                self._live = CellLine(self.text) if in_notebook() else _in_terminal(self.text)
                self._live.start()
            return number

    def end(self, number: int) -> None:
        """Take a text off the line; the last one takes the line away."""
        with self._lock:
            self._entries.pop(number, None)
            if self._live is not None and not self._entries:
                self._live.stop()
                self._live = None

    def text(self) -> str:
        """What the line says now."""
        entries = list(self._entries.values())
        if not entries:
            return ""
        texts = "; ".join(text() for text, _ in entries)
        return f"{texts}; {time.perf_counter() - min(start for _, start in entries):.0f} s"


class CellLine:
    """A line below a cell of a notebook that is written again and again, and taken away at the end: what needs no widgets."""

    def __init__(self, text: Callable[[], str], stream: Any = None) -> None:
        self._text, self._stream, self._width = text, stream or sys.stderr, 0
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Draw it now, and again while time goes on."""
        self.draw()
        self._thread = threading.Thread(target=self._keep_drawing, daemon=True)
        self._thread.start()

    def draw(self) -> None:
        """Write what there is to say over what was said."""
        text = self._text()
        self._write("\r" + text.ljust(self._width))
        self._width = max(self._width, len(text))

    def stop(self) -> None:
        """Take the line away."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        self._write("\r" + " " * self._width + "\r")

    def _keep_drawing(self) -> None:
        while not self._over.wait(2.0 / REFRESHES):
            self.draw()

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def _in_terminal(text: Callable[[], str]) -> Any:
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    spinner = Spinner("dots")

    def draw() -> Spinner:
        spinner.update(text=Text(text(), overflow="ellipsis", no_wrap=True))
        return spinner

    return Live(console=console(), get_renderable=draw, refresh_per_second=REFRESHES, transient=True)


LINE = StatusLine()
