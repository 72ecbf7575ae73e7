"""`python -m suffice` is the command line."""

import os
import signal
import sys
from typing import Any


def run() -> None:
    """The command, interruptible from its first moment, for the imports alone take a tenth of a second, to its last: an interrupt
    that comes when its work is done no longer ends it, and a signal that ends it lets it remove what it has half written."""
    done: list[int] = []
    interrupts: list[int] = []
    signal.signal(signal.SIGINT, lambda *_: None if done else _interrupt(interrupts))
    signal.signal(signal.SIGTERM, _leave)
    try:
        code = _code()
        done.append(130 if code == 1 and interrupts else code)  # what an interrupt broke, and was told as something else
    except KeyboardInterrupt:
        done.append(130)
        print("interrupted", file=sys.stderr)
    except Exception:
        if not interrupts:
            raise
        done.append(130)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Python would put its own back on its way out
    if done[0] == 0:
        raise SystemExit(0)
    # A refused file leaves Arrow's threads waiting for Python, which would abort them, and the command, on its way out.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(done[0])


def _interrupt(interrupts: list[int]) -> None:
    interrupts.append(1)
    raise KeyboardInterrupt


def _code() -> int:
    """Run the command: how it ended."""
    from suffice.interfaces.cli.app import main

    try:
        main()
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return 0


def _leave(*_: Any) -> None:
    """Leave by an exception, so that whatever was begun is taken back; a second signal does not wait for it."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    print("ended by a signal", file=sys.stderr)
    raise SystemExit(143)


if __name__ == "__main__":
    run()
