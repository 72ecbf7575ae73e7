"""Reading: which encoder a column gets, one pass of a source through its encoders, and what became of each column."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from suffice.engines.encode import Cuts, Numbers, States, Wrong, code_type
from suffice.engines.infer import Found, Guess, Integers
from suffice.engines.memory import Array, Column, Nothing, Sink
from suffice.engines.parallel import ahead, n_threads, watched
from suffice.engines.sources import Kind, Options, Source
from suffice.errors import DataError
from suffice.variables import Bins, Count, Finite, Real, Variable

Encoder = States | Numbers | Cuts | Guess

FEW_CELLS = 2**19
"""Cells that are encoded sooner than threads are started for them."""


@dataclass(frozen=True)
class Read:
    """A column that was read."""

    variable: Variable
    column: Column
    n_missing: int


def encoder_for(name: str, source: Source, options: Options) -> Encoder:
    """The encoder of a column, by its declaration and by what its source says it is made of."""
    what, kind, missing = options.declared.get(name), source.kind(name), options.missing
    if kind is Kind.OTHER:
        raise DataError(f"the column {name!r} has the type {source.described(name)}, not numbers, text, dates or booleans")
    if _is_numeric(what):
        if kind is Kind.TIME:
            raise DataError(f"the column {name!r} has the type {source.described(name)}, which cannot be read as numbers")
        if isinstance(what, Bins) and isinstance(what.how, tuple):
            what = what.finite(name, what.how)
        if isinstance(what, Finite):
            return Cuts(what, missing=missing)
        return Numbers(missing=missing, whole=isinstance(what, Count) or what is Count)
    if isinstance(what, Finite):
        return States(what.states, fixed=True, missing=missing)
    if kind is Kind.BOOL:
        return States(("false", "true"), fixed=True, missing=missing)
    if what is None:
        if kind is Kind.CELLS:
            return Guess(missing=missing, integers_finite=options.integers is Finite)
        if kind is Kind.INTEGER and options.integers is Real:
            return Integers(missing=missing)
        if kind in (Kind.NUMBER, Kind.NOTHING):
            return Numbers(missing=missing)
    categories = source.categories(name)
    states = [s for s in categories.states if s not in missing] if categories else []
    return States(states, fixed=False, missing=missing)


def foreseen(name: str, encoder: Encoder, options: Options) -> Variable | None:
    """The variable that a column will be, where that is known before the first row is read."""
    if isinstance(encoder, Cuts):
        return encoder.variable
    if isinstance(encoder, States) and encoder.fixed:
        declared = options.declared.get(name)
        return declared if isinstance(declared, Finite) else Finite(name, encoder.codes)
    if isinstance(encoder, Numbers) and not isinstance(encoder, Integers) and not isinstance(options.declared.get(name), Bins):
        return Count(name) if encoder.whole else Real(name)
    return None


def _is_numeric(what: Any) -> bool:
    binned = isinstance(what, Finite) and what.cuts is not None
    return binned or isinstance(what, (Real, Count, Bins)) or what is Real or what is Count


def encoded(source: Source, encoders: Mapping[str, Encoder]) -> Iterator[tuple[dict[str, Array], int]]:
    """The chunks of the columns, encoded, with their lengths; the next batch is read while one is being encoded."""
    return ((chunks, n) for chunks, _, n in passed(source, encoders))


def passed(
    source: Source, encoders: Mapping[str, Encoder], keep: Sequence[str] = (), what: str = "reading rows"
) -> Generator[tuple[dict[str, Array], Mapping[str, Any], int]]:
    """The chunks of the columns, encoded; the batches they came from, in which `keep` are columns, too; and their lengths."""
    names = list(dict.fromkeys([*encoders, *keep]))
    shares = [list(encoders)[i :: 4 * n_threads()] for i in range(min(len(encoders), 4 * n_threads()))]
    row = 0

    def encode(share: Sequence[str], batch: Mapping[str, Any]) -> dict[str, Array]:
        chunks = {}
        for name in share:
            try:
                chunk = encoders[name].encode(batch[name])
            except Wrong as wrong:
                raise misplaced(source, name, row, wrong) from None
            if chunk is not None:
                chunks[name] = chunk
        return chunks

    with ExitStack() as stack:
        run: Callable[..., Iterator[dict[str, Array]]] = map
        batches = source.batches(names)
        if source.n_rows is None or source.n_rows * len(names) > FEW_CELLS:
            run = stack.enter_context(ThreadPoolExecutor(n_threads())).map
            batches = stack.enter_context(closing(ahead(batches)))
        for batch in watched(batches, what, source.n_rows, lambda b: len(b[names[0]])):
            chunks: dict[str, Array] = {}
            for part in run(encode, shares, repeat(batch)):
                chunks.update(part)
            length = len(batch[names[0]])
            yield chunks, batch, length
            row += length


def misplaced(source: Source, name: str, row: int, wrong: Wrong) -> DataError:
    """The error about a wrong cell, with its place."""
    return DataError(f"{source.place(row + wrong.row)}, column {name!r}: {wrong.message}")


def finished(name: str, encoder: Encoder, found: Found, sink: Sink, source: Source, options: Options) -> Read:
    """The column that an encoder made, with what it turned out to be."""
    variable = found.variable(name, options, source.categories(name))
    settled = encoder.settled if isinstance(encoder, Guess) else encoder
    if not isinstance(settled, States):
        dtype = code_type(variable.n_states) if isinstance(variable, Finite) else np.dtype(np.float64)
        return Read(variable, sink.column(name, None, dtype), found.n_missing)
    if not isinstance(variable, Finite) or not settled.codes:
        return Read(variable, Nothing(), found.n_missing)
    order = np.array([variable.code(s) for s in settled.codes], np.int64)
    return Read(variable, sink.column(name, order, code_type(len(order))), found.n_missing)
