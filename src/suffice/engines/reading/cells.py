"""Cells of text files on their way to encoders."""

from __future__ import annotations

from typing import Any

from suffice.basis.libraries import pt
from suffice.engines.encoding.dialect import are_numbers, with_points
from suffice.engines.encoding.encode import Encoder, StateEncoder
from suffice.engines.encoding.infer import Guess
from suffice.engines.encoding.sources import Kind
from suffice.engines.reading.frames import FrameSource


def prepared_cells(cells: Any, encoder: Encoder, decimal: str) -> Any:
    """Cells for an encoder that takes them for numbers, with decimal points; thousands marks are refused."""
    guessing = isinstance(encoder, Guess) and encoder.encoder is None
    if isinstance(encoder, StateEncoder) or (isinstance(encoder, Guess) and isinstance(encoder.encoder, StateEncoder)):
        return cells
    missing = encoder.options.missing if isinstance(encoder, Guess) else ()
    if decimal == ".":
        if guessing and len(cells) > 0 and pt.is_dictionary(cells.type):
            are_numbers(cells, missing, ".")
        return cells
    return with_points(cells, missing, guessing=guessing)


class TextCells(FrameSource):
    """A column of a text file, whose cells are words, whatever they mean."""

    def __init__(self, name: str, cells: Any, decimal: str) -> None:
        super().__init__({name: lambda: cells}, None)
        self.decimal = decimal

    def kind(self, name: str) -> Kind:
        return Kind.CELLS

    def prepared(self, cells: Any, encoder: Encoder) -> Any:
        return prepared_cells(cells, encoder, self.decimal)
