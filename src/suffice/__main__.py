"""`python -m suffice` is the command line."""

import os
import sys


def run() -> None:
    """The command, interruptible from its first moment: the imports alone take a tenth of a second."""
    try:
        from suffice.cli import main

        main()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    except SystemExit as stop:
        if not isinstance(stop.code, int) or stop.code == 0:
            raise
        # A refused file leaves Arrow's threads waiting for Python, which would abort them, and the command, on its way out.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(stop.code)


if __name__ == "__main__":
    run()
