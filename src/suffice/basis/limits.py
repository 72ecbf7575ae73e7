"""Limits of long calls: how long they may take, how much memory and how many threads, what is shown and kept meanwhile.

Every call that may take long takes the same keywords, `**limits: Unpack[Limits]`; some take further ones, in a `TypedDict` that
adds to these. They are read here, once, and passed on as one value, a `Budget`.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import TYPE_CHECKING, Any, TypedDict

from suffice.basis.iteration import Progress, ProgressLike, checked_seconds
from suffice.errors import ArgumentError, FitError, TooLarge, bytes_in_words, listing, nearest, whole
from suffice.errors import bytes_of as bytes_of
from suffice.errors.remedies import name_of

if TYPE_CHECKING:
    from suffice.basis.argument_types import Path


class Limits(TypedDict, total=False):
    """The limits that calls have in common. A call that never has a use for one of them refuses it by name; one that has none
    for these rows, such as `fit` for a time limit where no cell is missing, is done without.

    >>> from suffice import search
    >>> limits: Limits = {"time_limit": 60.0, "threads": 2, "progress": False}
    >>> search({"x": ["a", "b"] * 9, "y": ["u", "v"] * 9}, **limits).finished
    True
    """

    time_limit: float | None
    """Seconds; when they are over, or on Ctrl-C, the best so far is returned."""
    memory_limit: int | str | None
    """Bytes, or a text such as "4 GiB", that the call may take beside the data. What it can do without is left out (rows are then
    passed over again, or kept in a file); what needs more is refused with its size, before it is taken."""
    threads: int | None
    """Threads, which change no result; by default as many as there are processors."""
    progress: ProgressLike
    """Whether the best so far is shown on standard error: by default on a terminal, after a second; or a function that is called
    with each step (`what`, `gain`, `score`, `seconds`), and stops the run, as Ctrl-C does, by returning true."""
    checkpoint: Path | None
    """A directory in which the run keeps where it is: killed or stopped, the same call goes on from there to the same bits."""


@dataclass(frozen=True)
class Budget:
    """The limits of a call, checked.

    >>> Budget(time_limit=5.0).keywords["time_limit"]
    5.0
    """

    time_limit: float | None = None
    memory_limit: int | str | None = None
    threads: int | None = None
    progress: ProgressLike = None
    checkpoint: Path | None = None
    room: float = field(default=math.inf, init=False, repr=False, compare=False)
    """The bytes that may be taken beside the data; ∞ where nothing is said."""

    def __post_init__(self) -> None:
        if self.time_limit is not None:
            checked_seconds(self.time_limit)
        if self.threads is not None:
            whole(self.threads, "threads", 1)
        if self.progress not in (None, True, False) and not callable(self.progress):
            raise FitError(f"progress is True, False or a function that is called with each step, not {self.progress!r}")
        if not isinstance(self.checkpoint, (str, os.PathLike, NoneType)) or self.checkpoint == "":
            raise FitError(f"checkpoint is the path of a directory, not {self.checkpoint!r}")
        if self.memory_limit is not None:
            object.__setattr__(self, "room", float(bytes_of(self.memory_limit)))

    @property
    def keywords(self) -> Limits:
        """For another call with the same limits."""
        return {name: getattr(self, name) for name in LIMITS}  # type: ignore[return-value]

    def watch(self, what: str) -> Progress[Any]:
        """The clock of the run."""
        return Progress(what, self.time_limit, self.progress)

    def remaining(self, watch: Progress[Any]) -> Budget:
        """What is left of the time."""
        return self if self.time_limit is None else replace(self, time_limit=max(self.time_limit - watch.seconds, 1e-3))

    def inside(self, watch: Progress[Any]) -> Budget:
        """For a part of a run, which neither shows progress nor keeps a checkpoint of its own: what is left of the time."""
        return replace(self.remaining(watch), progress=False, checkpoint=None)


NO_LIMITS = Budget()


COPIES = 6
"""Parameters are held about so many times at once: old and new ones, what they are estimated from, and what threads add to it."""


def check_room(room: float, need: float, what: str, fewer: str) -> None:
    """Refuse what needs more bytes than it may take, before it takes them."""
    if need > room:
        raise TooLarge(
            f"{what} would take about {bytes_in_words(need)} of memory, and may take {bytes_in_words(room)}; {fewer}, or more "
            f"memory ({name_of('memory_limit')})"
        )


LIMITS = tuple(Limits.__annotations__)

CLOSE = 0.65
"""How like a keyword the nearest one is: 'prior' is none of `search`, and 'progress' (0.62) is not what was meant."""


def options_of(
    call: str, given: Mapping[str, Any], kind: type, *, without: Sequence[str] = (), old: Sequence[str] = (), **usual: Any
) -> tuple[dict[str, Any], Budget]:
    """The keywords of a call that its `TypedDict` lists, and its limits, of which those that it is `without` are refused. What is
    not given is as `usual`, or None; those that were called otherwise, `old`, are there only if given."""
    known = kind.__annotations__
    for name, value in given.items():
        if name not in (*known, *old):
            code = sys._getframe(1).f_code  # the call's own arguments, by name
            named = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            raise ArgumentError(f"{call} takes no {name}={nearest(name, (*named, *known), CLOSE)}")
        if name in without and value is not None:
            have = [limit for limit in LIMITS if limit not in without]
            raise ArgumentError(f"{call} takes no {name}=: its limits are {listing(have, style='str')}")
    own = {name: given.get(name, usual.get(name)) for name in known if name not in LIMITS}
    own |= {name: given[name] for name in old if name in given}
    limits = {name: given[name] for name in LIMITS if name in given}
    return own, Budget(**limits) if limits else NO_LIMITS
