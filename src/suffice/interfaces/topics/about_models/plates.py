"""Plates: a graph that is repeated for each group of rows, and how its parameters are shared (`Partial` pools them in part)."""

from suffice.learning.complete.plates import Partial, Plate, Pooled, Separate

__all__ = ["Partial", "Plate", "Pooled", "Separate"]
