"""The public names of the library, each once: where users find it, what it is, and what may be asked of it."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import suffice


@dataclass(frozen=True)
class Name:
    """A public name: `suffice.fit`, `suffice.priors.BDs`, or a member of a class, `suffice.BayesNet.query`."""

    module: str
    path: str
    thing: Any
    owner: type | None = None

    @property
    def short(self) -> str:
        """As users write it: `fit`, `priors.BDs`."""
        return f"{self.module}.{self.path}".removeprefix("suffice.")

    @property
    def is_class(self) -> bool:
        return isinstance(self.thing, type)

    @property
    def function(self) -> Any:
        """The function behind a method, property or class method."""
        thing = getattr(self.thing, "__func__", self.thing)
        thing = getattr(thing, "fget", None) or getattr(thing, "func", None) or thing
        return inspect.unwrap(thing) if callable(thing) and not isinstance(thing, type) else thing

    @property
    def is_property(self) -> bool:
        return self.owner is not None and not callable(self.thing) and not isinstance(self.thing, (staticmethod, classmethod))

    @cached_property
    def doc(self) -> str:
        return inspect.cleandoc(getattr(self.function, "__doc__", None) or "")

    @property
    def has_example(self) -> bool:
        return bool(doctest.DocTestParser().get_examples(self.doc))

    def members(self) -> Iterator[Name]:
        """What a class has besides its constructor, but for what another public class, which it is one of, has already."""
        if not self.is_class:
            return
        others = _documented() - {self.thing}
        for name in dir(self.thing):
            home = next((c for c in self.thing.__mro__ if name in vars(c)), object)
            if name.startswith("_") or home in others or not home.__module__.startswith("suffice"):
                continue
            thing = vars(home)[name]
            member = Name(self.module, f"{self.path}.{name}", thing, self.thing)
            if member.doc and _describes(member, thing):
                yield member


def _describes(member: Name, thing: Any) -> bool:
    return callable(member.function) and not isinstance(thing, type) and member.function.__module__.startswith("suffice")


@cache
def public_names() -> dict[str, Name]:
    """All of them, by the shortest way to write each: those of the front door, then those of the modules by topic."""
    names: dict[str, Name] = {}
    seen: dict[int, str] = {}
    for module in ("suffice", *(f"suffice.{topic}" for topic in suffice._MODULES.split())):
        for name, thing in _listed(module):
            if id(thing) not in seen:
                seen[id(thing)] = name
                found = Name(module, name, thing)
                names[found.short] = found
    return names


def _listed(module: str) -> Iterator[tuple[str, Any]]:
    room = suffice if module == "suffice" else getattr(suffice, module.split(".")[1])
    own = [n for n, x in vars(room).items() if isinstance(x, type) and x.__module__ == room.__name__ and n[0] != "_"]
    for name in getattr(room, "__all__", own):
        yield name, getattr(room, name)


@cache
def _documented() -> set[type]:
    return {name.thing for name in public_names().values() if name.is_class}
