"""Refusals that have a status of their own; all others are 400."""

from __future__ import annotations

from collections.abc import Mapping

from suffice.errors import SufficeError


class NotHeld(SufficeError):
    """A model, table or job that is not there, or no longer."""


class Busy(SufficeError):
    """A job is running, and there is one at a time."""


class TooMuch(SufficeError):
    """A body that is larger than what is taken."""


STATUS: Mapping[type[SufficeError], int] = {NotHeld: 404, Busy: 409, TooMuch: 413}
"""Of refusals that are not 400."""
