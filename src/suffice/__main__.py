"""`python -m suffice` is the command line."""

import sys


def run() -> None:
    """The command, interruptible from its first moment: the imports alone take a tenth of a second."""
    try:
        from suffice.cli import main
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        raise SystemExit(130) from None
    main()


if __name__ == "__main__":
    run()
