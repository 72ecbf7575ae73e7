"""Whole sequences redrawn or parted: views of an engine of sequences that never cut one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.engines.engine import Block, Engine, View
from suffice.engines.local.local import Local
from suffice.engines.sequences.arranged import Arranged
from suffice.engines.sequences.arrangement import Arrangement, Ints
from suffice.engines.sequences.gaps import Refuse
from suffice.engines.views.views import Viewed
from suffice.errors import DataError


@dataclass(frozen=True, eq=False)
class PickSequences:
    """A view: whole sequences, each as often as it says for those of every block."""

    times: Mapping[int, Ints]

    @classmethod
    def of(cls, times: Ints, arrangement: Arrangement) -> PickSequences:
        """Sequences of an arrangement, each so often."""
        return cls({number: times[first:last] for number, (first, last) in arrangement.spans.items()})

    def __call__(self, block: Block) -> Block:
        times, lengths = self.times[block.number], block.lengths
        if lengths is None:
            raise DataError("these rows are no sequences")
        rows = np.repeat(times, lengths)
        taken = replace(block, weight=block.weights * rows) if times.max(initial=0) > 1 else block
        if times.min(initial=1) > 0:
            return taken
        return replace(taken.take(np.flatnonzero(rows)), lengths=lengths[times > 0])


class Picked(Viewed):
    """Some of the sequences of an engine, as often as a view says: those that are there several times weigh so much more."""

    empty = "there are no sequences among those picked"
    view: PickSequences

    def __init__(self, engine: Any, view: PickSequences) -> None:
        super().__init__(engine, view)
        self.weighted = self.weighted or any(t.max(initial=0) > 1 for t in view.times.values())

    @cached_property
    def arrangement(self) -> Arrangement:
        """Where the sequences lie that are picked."""
        whole = self._whole
        return whole.picked(np.concatenate([self.view.times[number] > 0 for number in whole.spans]))

    @property
    def _whole(self) -> Arrangement:
        arrangement: Arrangement = self.engine.arrangement  # type: ignore[attr-defined]
        return arrangement

    def declared(self, variables: Any) -> Engine:
        return Picked(self.engine.declared(variables), self.view)

    def hold(self, names: Sequence[str], view: View | None = None) -> Engine:
        held = super().hold(names, view)
        if view is not None:
            return held
        if not isinstance(held, Local):
            return self
        arrangement = replace(self.arrangement, given_cuts=None, numbers=())  # in memory blocks are cut anew
        return Arranged(held, held.names, arrangement, Refuse(), placed=True, input_place=self.input_place)

    def input_place(self, row: int) -> str:
        """Where a row of the input stands."""
        text: str = self.engine.input_place(row)  # type: ignore[attr-defined]
        return text

    def place(self, number: int, row: int) -> str:
        rows = np.flatnonzero(np.repeat(self.view.times[number], self._whole.lengths_of(number)))
        return self.engine.place(number, int(rows[row]))
