"""What a request asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from suffice.errors import SufficeError
from suffice.explorer.shelf import HeldModel, HeldTable, Shelf


@dataclass(frozen=True)
class Call:
    """A request: what is held, the words of its address, and its body."""

    shelf: Shelf
    path: Mapping[str, str] = field(default_factory=dict)
    query: Mapping[str, str] = field(default_factory=dict)
    body: Mapping[str, Any] = field(default_factory=dict)

    @property
    def model(self) -> HeldModel:
        """The model that the address names."""
        return self.shelf.model(self.path["id"])

    @property
    def table(self) -> HeldTable:
        """The table that the address names."""
        return self.shelf.table(self.path["id"])

    def text(self, name: str, default: str | None = None) -> str:
        """A word of the query string."""
        value = self.query.get(name, default)
        if value is None:
            raise SufficeError(f"the request lacks {name!r}")
        return value

    def number(self, name: str, default: int, least: int = 0, most: int = 10**9) -> int:
        """A whole number of the query string."""
        try:
            value = int(self.query.get(name, str(default)))
        except ValueError:
            value = least - 1
        if not least <= value <= most:
            raise SufficeError(f"{name!r} is a whole number from {least} to {most}, not {self.query[name]!r}")
        return value

    def given(self, name: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
        """A part of the body, of a kind; `...` means that it must be there."""
        value = self.body.get(name)
        if value is None:
            if default is ...:
                raise SufficeError(f"the request lacks {name!r}")
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise SufficeError(f"{name!r} of the request is of the wrong kind")
        return value

    def names(self, name: str, default: Any = ...) -> Any:
        """A list of names."""
        value = self.given(name, list, default)
        if value is not default and not all(isinstance(x, str) for x in value):
            raise SufficeError(f"{name!r} of the request is a list of names")
        return value


Answering = Callable[[Call], Any]
"""What answers a request: plain values, or a file."""


@dataclass(frozen=True)
class FileAnswer:
    """A file that is taken away."""

    name: str
    kind: str
    data: bytes
