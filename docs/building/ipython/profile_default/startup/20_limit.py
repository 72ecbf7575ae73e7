"""No cell may take 20 seconds of the processor, however busy the machine is: one that does ends in an error, with the build."""

import signal

SECONDS = 20


class CellTookTooLong(Exception):
    """A cell of the page took more of the processor than a reader should wait for."""


def _end_cell(number, frame):
    raise CellTookTooLong(f"the cell took {SECONDS} seconds of the processor: make it smaller")


def _begin(info):
    signal.signal(signal.SIGPROF, _end_cell)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)


def _finish(result):
    signal.setitimer(signal.ITIMER_PROF, 0)


get_ipython().events.register("pre_run_cell", _begin)  # noqa: F821
get_ipython().events.register("post_run_cell", _finish)  # noqa: F821
