"""Libraries that take long to import: each is imported when something of it is first used.

`from suffice.basis.libraries import pa, sc` at the top of a file costs nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["nw", "pa", "pc", "pq", "pt", "sc", "so", "st"]


class Library:
    """A module that is imported when something of it is first asked for."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value


if TYPE_CHECKING:
    import narwhals as nw
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    import pyarrow.types as pt
    import scipy.optimize as so
    import scipy.special as sc
    import scipy.stats as st
else:
    pa, pc, pq = Library("pyarrow"), Library("pyarrow.compute"), Library("pyarrow.parquet")
    nw, pt, sc = Library("narwhals"), Library("pyarrow.types"), Library("scipy.special")
    so, st = Library("scipy.optimize"), Library("scipy.stats")
