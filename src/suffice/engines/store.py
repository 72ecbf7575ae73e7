"""The store: a source, what was declared of it, and the columns that were read so far, encoded.

Columns are read when they are first needed, all that are needed at once, and kept: in memory, or in a spill file when they
are larger than the memory they may take.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from suffice.engines.bins import cut_points
from suffice.engines.blocks import ranges
from suffice.engines.columns import Array, Column, Sink
from suffice.engines.encode import Cuts, Numbers, States, Wrong, binned, code_type
from suffice.engines.infer import FEW, Guess, Integers, Weights
from suffice.engines.memory import Held, Memory, Nothing
from suffice.engines.parallel import n_threads, tree_sum
from suffice.engines.sources import Kind, Source
from suffice.errors import DataError, listed, nearest, note
from suffice.variables import Bins, Count, Finite, Real, Variable, declared, sorted_states

Encoder = States | Numbers | Cuts | Guess

SAMPLE = 2**22
"""Rows by which quantiles and MDL cuts are found; of more rows, every k-th is taken."""


@dataclass(frozen=True)
class Options:
    """How the rows are to be understood."""

    declared: Mapping[str, Any] = field(default_factory=dict)
    weights: str | None = None
    missing: tuple[str, ...] = ()
    integers: type[Real] | type[Finite] = Real
    memory_limit: int = 2**30


@dataclass(frozen=True)
class Read:
    """A column that was read."""

    variable: Variable
    column: Column
    n_missing: int


class Store:
    """What is known of the rows of a source so far."""

    def __init__(self, source: Source, options: Options) -> None:
        self.source, self.options = source, options
        self.read: dict[str, Read] = {}
        self.weight: Column | None = None
        self.notes: list[str] = []
        self.n_rows: int | None = source.n_rows
        self._held = 0
        self._total: float | None = None

    def require(self, names: Sequence[str]) -> None:
        """Read the columns among these that were not read yet, in one go."""
        declared = self.options.declared
        targets = [d.target for n in names if isinstance(d := declared.get(n), Bins) and d.target is not None]
        wanted = [n for n in dict.fromkeys([*names, *targets]) if n not in self.read]
        if not wanted:
            return
        for name in wanted:
            self.check(name)
        if self.read and not self.source.stable:  # rows of one reading cannot be joined to those of another
            wanted = [*self.read, *wanted]
            self.read.clear()
            self.weight = None if self.options.weights is not None else self.weight
        encoders = {n: self._encoder(n) for n in wanted}
        weights = self.options.weights
        if weights is not None and self.weight is None:
            encoders[weights] = Weights()
        self._scan(encoders)
        again = {n: how for n, e in encoders.items() if isinstance(e, Guess) and (how := self._reread(n, e))}
        if again:
            self._scan({n: self._guess(how) for n, how in again.items()})
        for name in wanted:
            self._cut(name)
        self._note(wanted, {**encoders})

    def check(self, name: str) -> None:
        """Refuse a column that the source does not have."""
        if name not in self.source.names:
            raise DataError(f"the data have no column {name!r}{nearest(name, self.source.names)}")

    def refuse(self, name: str, row: int, message: str) -> DataError:
        """The error about a cell, with its place."""
        return DataError(f"{self.source.place(row)}, column {name!r}: {message}")

    @property
    def weighted(self) -> bool:
        return self.weight is not None or self.options.weights is not None

    def set_weights(self, weights: Any) -> None:
        """Weights that are not a column of the source."""
        array = np.array(weights, np.float64)
        if array.ndim != 1 or (self.n_rows is not None and len(array) != self.n_rows):
            raise DataError(f"there are {array.size:,} weights for {self.n_rows:,} rows")
        bad = ~((array >= 0) & np.isfinite(array))
        if bad.any():
            raise DataError(f"row {int(np.argmax(bad)) + 1}: the weight {array[np.argmax(bad)]:g} is not a finite number from 0 up")
        self.weight = Held(array)

    def total_weight(self, names: Sequence[str]) -> float:
        """The weight of all rows together."""
        if not self.weighted:
            if self.n_rows is None:
                self.require(names)
            return float(self.n_rows or 0)
        if self._total is None:
            self.require(names)
            weight, n = self.weight, self.n_rows or 0
            assert weight is not None
            parts = (float(self.rows(weight, a, b).sum()) for a, b in ranges(n))
            self._total = tree_sum(parts, lambda a, b: a + b) or 0.0
            if self._total == 0:
                raise DataError("the weights of all rows are 0")
        return self._total

    def redeclared(self, variables: Any) -> Store:
        """A store of the same rows with some columns declared otherwise."""
        store = Store(self.source, replace(self.options, declared={**self.options.declared, **checked(variables, self.source)}))
        if self.options.weights is None:
            store.weight = self.weight
        return store

    def _scan(self, encoders: Mapping[str, Encoder]) -> None:
        """Read, encode and keep columns."""
        names = list(encoders)
        sink = self._sink(names)
        row = 0
        try:
            with ThreadPoolExecutor(n_threads()) as pool:
                for batch in self.source.batches(names):
                    chunks = pool.map(lambda n, b=batch, r=row: self._encode(n, encoders[n], b[n], r), names)
                    sink.add({n: c for n, c in zip(names, chunks, strict=True) if c is not None})
                    row += len(batch[names[0]])
        finally:
            sink.close()
        if row == 0:
            raise DataError(f"{self._where()}there are no rows")
        if self.n_rows not in (None, row):
            raise DataError(f"{self._where()}there were {self.n_rows:,} rows at first and now {row:,}; the data must not change while they are read")
        self.n_rows = row
        for name, encoder in encoders.items():
            self._keep(name, encoder, sink)

    def _encode(self, name: str, encoder: Encoder, chunk: Any, row: int) -> Array | None:
        try:
            return encoder.encode(chunk)
        except Wrong as wrong:
            raise self.refuse(name, row + wrong.row, wrong.message) from None

    def _keep(self, name: str, encoder: Encoder, sink: Sink) -> None:
        if isinstance(encoder, Guess):
            if encoder.mistaken or encoder.encoder is None:
                return
            encoder = encoder.encoder
        if isinstance(encoder, Weights):
            self.weight = sink.column(name, None, np.dtype(np.float64))
        elif isinstance(encoder, Cuts):
            column = sink.column(name, None, code_type(encoder.variable.n_states))
            self.read[name] = Read(encoder.variable, column, encoder.n_missing)
        elif isinstance(encoder, States):
            self.read[name] = self._states(name, encoder, sink)
        else:
            counts = encoder.whole
            column = sink.column(name, None, np.dtype(np.float64))
            self.read[name] = Read(Count(name) if counts else Real(name), column, encoder.n_missing)

    def _states(self, name: str, encoder: States, sink: Sink) -> Read:
        found = list(encoder.codes)
        if not found:
            return Read(Real(name), Nothing(), encoder.n_missing)
        categories = self.source.categories(name)
        meant = encoder.fixed or (categories is not None and categories.ordered)
        variable = Finite(name, found) if meant else Finite(name, sorted_states(found), inferred=True)
        declared = self.options.declared.get(name)
        if isinstance(declared, Finite):
            variable = declared
        order: npt.NDArray[np.int64] = np.array([variable.code(s) for s in found], np.int64)
        return Read(variable, sink.column(name, order, code_type(len(found))), encoder.n_missing)

    def _encoder(self, name: str) -> Encoder:
        """The encoder of a column, by its declaration and by what its source says it is."""
        what, kind = self.options.declared.get(name), self.source.kind(name)
        missing = self.options.missing
        if kind is Kind.OTHER:
            raise DataError(f"the column {name!r} has the type {self.source.described(name)}; a column holds numbers, text, dates or booleans")
        numeric = isinstance(what, (Real, Count, Bins)) or what in (Real, Count) or (isinstance(what, Finite) and what.cuts is not None)
        if numeric and kind is Kind.TIME:
            raise DataError(f"the column {name!r} has the type {self.source.described(name)} and cannot be read as numbers")
        if isinstance(what, Bins) and isinstance(what.how, tuple):
            return Cuts(what.finite(name, what.how), missing=missing)
        if isinstance(what, Finite):
            return Cuts(what, missing=missing) if what.cuts is not None else States(what.states, fixed=True, missing=missing)
        if numeric:
            return Numbers(missing=missing, whole=isinstance(what, Count) or what is Count)
        if what is None and kind is Kind.CELLS:
            return self._guess(None)
        if what is None and kind is Kind.INTEGER and self.options.integers is Real:
            return Integers(missing=missing)
        if what is None and kind in (Kind.NUMBER, Kind.NOTHING):
            return Numbers(missing=missing)
        if kind is Kind.BOOL:
            return States(("false", "true"), fixed=True, missing=missing)
        categories = self.source.categories(name)
        return States(categories.states if categories else (), fixed=False, missing=missing)

    def _guess(self, reading: str | None) -> Guess:
        return Guess(missing=self.options.missing, integers_finite=self.options.integers is Finite, reading=reading)

    def _reread(self, name: str, guess: Guess) -> str | None:
        try:
            return guess.reread()
        except Wrong as wrong:
            raise self.refuse(name, wrong.row, wrong.message) from None

    def _cut(self, name: str) -> None:
        """Cut a column that was read as numbers and declared as bins."""
        bins, read = self.options.declared.get(name), self.read[name]
        if not isinstance(bins, Bins) or isinstance(read.variable, Finite):
            return
        target = None if bins.target is None else self.read[bins.target]
        if target is not None and not isinstance(target.variable, Finite):
            raise DataError(f"the column {name!r} is to be cut by {bins.target!r}, which is not finite; declare its states")
        sampled = self._sampled
        codes = None if target is None else sampled(target.column)
        cuts = cut_points(bins, name, sampled(read.column), None if self.weight is None else sampled(self.weight), codes)
        variable = bins.finite(name, cuts)
        sink = self._sink([name])
        for start in range(0, self.n_rows or 0, SAMPLE):
            values = self.rows(read.column, start, min(start + SAMPLE, self.n_rows or 0))
            sink.add({name: binned(values, variable)})
        sink.close()
        self.read[name] = Read(variable, sink.column(name, None, code_type(variable.n_states)), read.n_missing)

    def rows(self, column: Column, start: int, stop: int) -> Array:
        """Some rows of a column, as an array of their own."""
        out = np.empty(stop - start, column.dtype)
        column.read(start, stop, out)
        return out

    def _sampled(self, column: Column) -> Array:
        n = self.n_rows or 0
        step = -(-n // SAMPLE)
        starts = range(0, n, SAMPLE)
        return np.concatenate([self.rows(column, s, min(s + SAMPLE, n))[-s % step :: step] for s in starts])

    def _sink(self, names: Sequence[str]) -> Sink:
        self._held += self.source.n_bytes([n for n in names if n in self.source.names])
        if self._held <= self.options.memory_limit:
            return Memory()
        from suffice.engines.files import Spill

        return Spill()

    def _where(self) -> str:
        paths = getattr(self.source, "paths", ())
        return f"{listed(paths, 3, 'str')}: " if paths else ""

    def _note(self, names: Sequence[str], encoders: Mapping[str, Encoder]) -> None:
        undeclared = [n for n in names if n not in self.options.declared]
        few = [n for n in undeclared if isinstance(self.read[n].variable, Real) and _few(encoders[n])]
        if few:
            self._say(
                f"{listed(few)}: whole numbers with at most {FEW} different values, taken for real numbers; "
                "if they are codes of states, pass integers=Finite or declare them in variables="
            )
        same = [n for n in undeclared if self.identifies(n)]
        if same:
            self._say(f"{listed(same)}: nearly as many states as rows, as in an identifier; searches leave such columns out")

    def identifies(self, name: str) -> bool:
        """Whether a column has nearly as many inferred states as there are rows."""
        variable = self.read[name].variable
        return isinstance(variable, Finite) and variable.inferred and variable.n_states > max(20, 0.9 * (self.n_rows or 0))

    def _say(self, message: str) -> None:
        self.notes.append(message)
        note(message, stacklevel=2)


def checked(variables: Any, source: Source) -> dict[str, Any]:
    """Declarations by name, each of a column that is there."""
    if variables is None:
        return {}
    if not isinstance(variables, Mapping):
        variables = {v.name: v for v in variables if isinstance(v, (Finite, Real, Count))}
    for name, what in variables.items():
        if name not in source.names:
            raise DataError(f"the column {name!r} was declared, and the data have no such column{nearest(str(name), source.names)}")
        if isinstance(what, Bins) and what.target is not None and what.target not in source.names:
            raise DataError(f"the column {name!r} is to be cut by {what.target!r}, and there is no such column{nearest(what.target, source.names)}")
    return {name: declared(name, what) for name, what in variables.items()}


def _few(encoder: Encoder) -> bool:
    return isinstance(encoder, (Integers, Guess)) and encoder.few.alive and bool(encoder.few.values)


__all__ = ["Held", "Options", "Read", "Store"]
