"""Kernels compiled in another process, which leaves them in the cache on disk.

The process is told by a pipe which kernels are wanted, and tells by another what it has begun and done. It ends when the first
pipe does: with the process that started it, however that ends.
"""

from __future__ import annotations

import atexit
import os
import subprocess
import sys
import threading
from collections.abc import Iterable
from functools import cache

ASKED, BEGUN, DONE = 0, 1, 2


class Helper:
    """A process that compiles what it is asked for, in turn; it starts with the first question."""

    def __init__(self, niceness: int) -> None:
        self._niceness = niceness
        self._process: subprocess.Popen[str] | None = None
        self._state: dict[str, int] = {}
        self._changed = threading.Condition()

    def ask(self, names: Iterable[str]) -> None:
        """Have these kernels compiled, after those that were asked for before. What fails is compiled when it is called."""
        new = [n for n in names if n not in self._state]
        self._state.update(dict.fromkeys(new, ASKED))
        if not new:
            return
        try:
            self._process = self._process or self._start()
            if self._process.stdin is not None:
                self._process.stdin.writelines(f"{n}\n" for n in new)
                self._process.stdin.flush()
        except (OSError, ValueError):  # it could not be started, or has ended
            self._end()

    def is_done(self, name: str) -> bool:
        """Whether a kernel is on disk, or never will be."""
        return self._state.get(name) == DONE

    def wait(self, name: str) -> bool:
        """Wait for a kernel that is being compiled; false if it is not."""
        with self._changed:
            if self._state.get(name) == BEGUN:
                self._changed.wait_for(lambda: self.is_done(name))
        return self.is_done(name)

    def _start(self) -> subprocess.Popen[str]:
        code = f"from suffice.numerics.kernels.__main__ import serve; serve({self._niceness})"
        path = os.pathsep.join(p for p in sys.path if p)
        environment = {**os.environ, "PYTHONPATH": path, "SUFFICE_COMPILE": "now"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        process = subprocess.Popen([sys.executable, "-c", code], env=environment, text=True, **pipes)  # type: ignore[call-overload]
        threading.Thread(target=self._listen, args=(process,), daemon=True).start()
        atexit.register(_stop, process)
        return process  # type: ignore[no-any-return]

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                word, _, name = line.strip().partition(" ")
                if name in self._state:  # else the process ended in the middle of a line
                    with self._changed:
                        self._state[name] = DONE if word == "done" else BEGUN
                        self._changed.notify_all()
        self._end()

    def _end(self) -> None:
        """Nothing more will come of it."""
        with self._changed:
            self._state.update(dict.fromkeys(self._state, DONE))
            self._changed.notify_all()


@cache
def in_background() -> Helper:
    """The process that works while the processor has nothing else to do."""
    return Helper(10)


@cache
def beside() -> Helper:
    """The process that works for somebody who waits."""
    return Helper(0)


def _stop(process: subprocess.Popen[str]) -> None:
    try:
        if process.stdin is not None:
            process.stdin.close()
        process.wait(1.0)
    except (OSError, subprocess.TimeoutExpired):
        process.kill()
        process.wait()
