"""One line on the terminal for what is under way: its clock moves by itself, and work within other work shares it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

REFRESHES = 8
"""How often a second the line is drawn."""


class StatusLine:
    """What is under way, the outermost work first, with the seconds since that began.

    >>> line = StatusLine()
    >>> outer = line.begin(lambda: "searching", shown=False)
    >>> inner = line.begin(lambda: "counting rows 34 %", shown=False)
    >>> line.text()
    'searching; counting rows 34 %; 0 s'
    >>> line.end(inner); line.end(outer)
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Callable[[], str], float]] = {}
        self._lock = threading.Lock()
        self._next = 0
        self._live: Any = None

    def begin(self, text: Callable[[], str], start: float | None = None, *, shown: bool = True) -> int:
        """Show a text, made anew whenever the line is drawn, until `end` is called with the number that this returns.

        `start` is when the work began, by `time.perf_counter`.
        """
        with self._lock:
            number, self._next = self._next, self._next + 1
            self._entries[number] = text, time.perf_counter() if start is None else start
            if self._live is None and shown:
                self._live = _drawn(self.text)
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


def _drawn(text: Callable[[], str]) -> Any:
    from rich.console import Console
    from rich.live import Live
    from rich.spinner import Spinner
    from rich.text import Text

    spinner = Spinner("dots")

    def drawn() -> Spinner:
        spinner.update(text=Text(text(), overflow="ellipsis", no_wrap=True))
        return spinner

    live = Live(console=Console(stderr=True), get_renderable=drawn, refresh_per_second=REFRESHES, transient=True)
    live.start()
    return live


LINE = StatusLine()
