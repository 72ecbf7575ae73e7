"""Limits of long calls: time, memory, threads, progress and checkpoints, for type hints and `**limits`."""

from suffice.basis.limits import Budget, Limits

__all__ = ["Budget", "Limits"]
