"""What a method of structure search is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from suffice.registry import Named

if TYPE_CHECKING:
    from suffice.structure.problem import Problem


class Method(Named):
    """A method of structure search: a frozen dataclass of options, which is found by its `word` if it has one.

    `run` gives an `Outcome`, or another value with `finished` and `found`, which says what `search` returns of it: so does
    that of a `GraphMethod`, whose edges have no direction.
    """

    listed_in = "methods"

    def run(self, problem: Problem) -> Any:
        raise NotImplementedError
