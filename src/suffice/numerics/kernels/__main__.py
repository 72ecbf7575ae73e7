"""`python -m suffice.numerics.kernels`: compile the kernels that most calls need, while other packages are still being installed.

And what runs in the process that compiles kernels for another one: see `compiler/background.py`."""

import os
import queue
import sys
import threading

from suffice.numerics.kernels import ESSENTIAL, compile_kernel, warm


def serve(niceness: int) -> None:
    """Compile the kernels that standard input names, until it ends."""
    if hasattr(os, "nice"):
        os.nice(niceness)
    wanted: queue.SimpleQueue[str] = queue.SimpleQueue()

    def receive() -> None:
        for line in sys.stdin:
            wanted.put(line.strip())
        os._exit(0)

    threading.Thread(target=receive, daemon=True).start()
    while True:
        name = wanted.get()
        print(f"begun {name}", flush=True)
        compile_kernel(name)
        print(f"done {name}", flush=True)


if __name__ == "__main__":
    warm(processes=os.cpu_count() or 1, only=ESSENTIAL)
