"""What a request asks, and what it says of the nodes of a network: observed, weighed, set."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from suffice.errors import ModelError, SufficeError
from suffice.interfaces.explorer.code import call, options, settings
from suffice.interfaces.explorer.shelf import HeldModel, HeldTable, Shelf


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

    def part(self, name: str, kind: type | tuple[type, ...], default: Any = ...) -> Any:
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
        value = self.part(name, list, default)
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


@dataclass(frozen=True)
class AskedNetwork:
    """Evidence and interventions of a request, and the network that they are asked of."""

    model: HeldModel
    given: Mapping[str, Any]
    """States, numbers, and likelihoods."""
    do: Mapping[str, Any]

    @classmethod
    def of(cls, request: Call, model: HeldModel | None = None) -> AskedNetwork:
        own = model or request.model
        given, soft, do = (request.part(name, dict, {}) for name in ("given", "soft", "do"))
        if twice := [name for name in soft if name in given]:
            raise ModelError(f"{twice[0]!r} is given and weighed at once: one of them")
        for name, value in (*given.items(), *do.items()):
            if isinstance(value, bool) or not isinstance(value, (str, int, float)):
                raise SufficeError(f"a state or a number is expected of {name!r}")
        for name, value in soft.items():
            if not isinstance(value, list) or not all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in value):
                raise SufficeError(f"one number for each state is expected of {name!r}")
        if do and not own.directed:
            raise ModelError("a network without arrows says nothing of causes, and nothing can be set in it: observe it instead")
        return cls(own, {**given, **soft}, do)

    @property
    def network(self) -> Any:
        """The network after what is set."""
        return self.model.after(self.do)

    def statement(self, method: str, *positional: str, **named: Any) -> str:
        """`answer = bn.METHOD(…)` of these."""
        network = f"bn.do({dict(self.do)!r})" if self.do else "bn"
        return f"answer = {call(f'{network}.{method}', *positional, given=dict(self.given), **named)}"

    def code(self, method: str, *positional: str, command: str | None = None, **named: Any) -> dict[str, str | None]:
        """What asks the same; a command of None is one that the command line lacks."""
        return self.model.origin.code(self.statement(method, *positional, **named), command)

    def query(self, targets: str = "", flags: str = "") -> str:
        """The command that asks; targets None for all nodes."""
        known = settings(self.given)
        question = f"P({targets}{' | ' * bool(known)}{known})" if targets else known
        asked = f" {shlex.quote(question)}" if question else ""
        return f"suffice query {self.model.origin.shell}{asked}{flags}{options(do=[settings(self.do)] if self.do else [])}"
