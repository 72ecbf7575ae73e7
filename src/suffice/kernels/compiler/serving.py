"""What runs in the process that compiles kernels for another one: see `background.py`."""

from __future__ import annotations

import os
import queue
import sys
import threading

from suffice.kernels import compile_kernel


def serve(niceness: int) -> None:
    """Compile the kernels that standard input names, until it ends."""
    if hasattr(os, "nice"):
        os.nice(niceness)
    wanted: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_receive, args=(wanted,), daemon=True).start()
    while True:
        name = wanted.get()
        print(f"begun {name}", flush=True)
        compile_kernel(name)
        print(f"done {name}", flush=True)


def _receive(wanted: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        wanted.put(line.strip())
    os._exit(0)
