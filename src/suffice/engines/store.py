"""The store: a source, what was declared of it, and the columns that were read so far, encoded.

Columns are read when they are first needed, all that are needed at once, and kept: in memory, or in a spill file when they
are larger than the memory they may take.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from suffice.engines.bins import cut_points
from suffice.engines.encode import Wrong, binned, code_type, is_integer_text
from suffice.engines.engine import Sum, ranges
from suffice.engines.infer import FEW, Found, Guess, Weights, found_by, marks_among, words_among_numbers
from suffice.engines.memory import Array, Column, Held, Memory, Sink
from suffice.engines.reading import Encoder, Read, encoded, encoder_for, finished, foreseen, misplaced
from suffice.engines.sample import sampled_rows
from suffice.engines.sources import Kind, Options, Source, checked_variables, readable
from suffice.errors import DataError, listed, nearest, note
from suffice.variables import Bins, Finite, Real, Variable

SAMPLE = 2**22
"""Rows by which quantiles and MDL cuts are found; of more rows, so many are drawn, those that `Data.sample` draws by seed 0."""


class Store:
    """What is known of the rows of a source so far."""

    def __init__(self, source: Source, options: Options, told: set[object] | None = None) -> None:
        self.source, self.options = source, options
        self.read: dict[str, Read] = {}
        self.found: dict[str, Found] = {}
        self.weight: Column | None = None
        self.notes: list[str] = []
        self.n_rows: int | None = source.n_rows
        self.streamed = False
        self._names = frozenset(source.names)
        self._total: float | None = None
        self._bytes = 0
        self._told = set() if told is None else told
        for message in getattr(source, "notes", ()):
            self._tell("source", [message], "".join)

    def check(self, name: str) -> None:
        """Refuse a column that the source does not have, or that is not one of the variables."""
        if name not in self._names:
            raise DataError(f"the data have no column {name!r}{nearest(str(name), self.source.names)}")
        if name == self.options.weights:
            raise DataError(f"the column {name!r} holds the weights of the rows; it is no variable")

    @readable()
    def variables(self, names: Sequence[str]) -> dict[str, Variable]:
        """What columns are; they are read only if that must be inferred."""
        for name in names:
            self.check(name)
        unread = {n: encoder_for(n, self.source, self.options) for n in names if n not in self.read}
        known = {n: v for n, e in unread.items() if (v := foreseen(n, e, self.options)) is not None}
        if len(known) < len(unread):
            self.require(names)
            known = {}
        return {n: known.get(n) or self.read[n].variable for n in names}

    @readable()
    def require(self, names: Sequence[str]) -> None:
        """Read the columns among these that were not read yet, in one go. Where one of them is refused, none is kept."""
        wanted = self._unread(names)
        encoders: dict[str, Encoder] = {n: encoder_for(n, self.source, self.options) for n in wanted}
        weights = self.options.weights
        if weights is not None and self.weight is None:
            encoders[weights] = Weights()
        if not encoders:
            return
        fresh, again = self._scan(encoders)
        if again:
            finite = self.options.integers is Finite
            reread = {n: Guess(missing=self.options.missing, integers_finite=finite, reading=how) for n, how in again.items()}
            fresh |= self._scan(reread)[0]
        known = {**self.read, **fresh}
        for name in wanted:
            fresh[name] = known[name] = self._cut(name, known)
        self.read |= fresh
        self._note(wanted)

    def _unread(self, names: Sequence[str]) -> list[str]:
        for name in names:
            self.check(name)
        bins = [d for n in names if isinstance(d := self.options.declared.get(n), Bins)]
        targets = [b.target for b in bins if b.target is not None]
        unread = [n for n in dict.fromkeys([*names, *targets]) if n not in self.read]
        if unread and self.read and not self.source.stable:
            # The rows of one reading cannot be joined to those of another.
            unread = [*self.read, *unread]
            self.read.clear()
            self.weight = None if self.options.weights is not None else self.weight
        return unread

    def _scan(self, encoders: Mapping[str, Encoder]) -> tuple[dict[str, Read], dict[str, str]]:
        """Read and encode columns; those that must be read again, and how, come apart."""
        sink = self.sink(list(encoders))
        n_rows = 0
        for chunks, n in encoded(self.source, encoders):
            sink.add(chunks)
            n_rows += n
        self.set_rows(n_rows)
        again: dict[str, str] = {}
        fresh: dict[str, Read] = {}
        for name, encoder in encoders.items():
            if isinstance(encoder, Weights):
                self.weight = sink.column(name, None, np.dtype(np.float64))
                continue
            self.found[name] = found = found_by(encoder, n_rows)
            how = self._reread(name, found)
            if how is None:
                fresh[name] = finished(name, encoder, found, sink, self.source, self.options)
            else:
                again[name] = how
        return fresh, again

    def set_rows(self, n_rows: int) -> None:
        """Take note of how many rows there were; none at all, or not as many as the last time, are refused."""
        paths = getattr(self.source, "paths", ())
        where = f"{listed(paths, 3, 'str')}: " if paths else ""
        if n_rows == 0:
            raise DataError(f"{where}there are no rows")
        if self.n_rows not in (None, n_rows):
            raise DataError(
                f"{where}there were {self.n_rows:,} rows at first and now {n_rows:,}; data must not change while they are read"
            )
        if isinstance(self.weight, Held) and len(self.weight.array) != n_rows:
            raise DataError(f"there are {len(self.weight.array):,} weights for {n_rows:,} rows")
        self.n_rows = n_rows

    def fits(self, names: Sequence[str]) -> bool:
        """Whether columns may be kept in memory, besides those that are."""
        return self._bytes + self.source.n_bytes(names) <= self.options.memory_limit

    def sink(self, names: Sequence[str]) -> Sink:
        """Where columns are kept: in memory as long as there is some left."""
        if self.fits(names):
            self._bytes += self.source.n_bytes(names)
            return Memory(self.n_rows)
        from suffice.engines.files import Spill

        return Spill()

    def _reread(self, name: str, found: Found) -> str | None:
        try:
            return found.reread(self.options)
        except Wrong as wrong:
            raise misplaced(self.source, name, 0, wrong) from None

    def _cut(self, name: str, read: Mapping[str, Read]) -> Read:
        """A column that was read, cut if it was read as numbers and declared as bins."""
        bins, column = self.options.declared.get(name), read[name].column
        if not isinstance(bins, Bins) or isinstance(read[name].variable, Finite):
            return read[name]
        target = None if bins.target is None else read[bins.target]
        if target is not None and not isinstance(target.variable, Finite):
            raise DataError(f"the column {name!r} is to be cut by {bins.target!r}, which is not finite; declare its states")
        if bins.method == "width":
            variable = bins.finite(name, cut_points(bins, name, self._extremes(column), None, None))
        else:
            rows = sampled_rows(SAMPLE, self.n_rows or 0, 0)
            codes = None if target is None else self._sampled(target.column, rows)
            weight = None if self.weight is None else self._sampled(self.weight, rows)
            variable = bins.finite(name, cut_points(bins, name, self._sampled(column, rows), weight, codes))
            if (self.n_rows or 0) > SAMPLE:
                self._say(f"{name!r}: the cut points were found by a random sample of {SAMPLE:,} of the rows")
        sink = self.sink([name])
        for start, stop in ranges(self.n_rows or 0, SAMPLE):
            sink.add({name: binned(self.rows(column, start, stop), variable)})
        return Read(variable, sink.column(name, None, code_type(variable.n_states)), read[name].n_missing)

    def rows(self, column: Column, start: int, stop: int) -> Array:
        """Some rows of a column, as an array of their own."""
        out = np.empty(stop - start, column.dtype)
        column.read(start, stop, out)
        return out

    def view(self, column: Column, start: int, stop: int) -> Array:
        """Some rows of a column, not to be written to; of a column in memory without a copy."""
        out = column.array[start:stop] if isinstance(column, Held) else self.rows(column, start, stop)
        out.flags.writeable = False
        return out

    def _sampled(self, column: Column, rows: Array) -> Array:
        """Some rows of a column, by their numbers, which increase."""
        parts = ((a, b, rows[slice(*np.searchsorted(rows, [a, b]))]) for a, b in ranges(self.n_rows or 0, SAMPLE))
        return np.concatenate([self.rows(column, a, b)[own - a] for a, b, own in parts])

    def _extremes(self, column: Column) -> Array:
        """The smallest and the largest value among rows that have weight."""
        found = []
        for a, b in ranges(self.n_rows or 0, SAMPLE):
            values = self.rows(column, a, b)
            if self.weight is not None:
                values = values[self.rows(self.weight, a, b) > 0]
            values = values[~np.isnan(values)]
            found += [values.min(), values.max()] if len(values) else []
        return np.array(found)

    @property
    def weighted(self) -> bool:
        return self.weight is not None or self.options.weights is not None

    def set_weights(self, weights: Any) -> None:
        """Weights that are not a column of the source."""
        try:
            array = np.array(weights, np.float64)
        except (TypeError, ValueError):
            raise DataError("weights are a column by its name, or one number for each row") from None
        if array.ndim != 1:
            raise DataError(f"weights are one number for each row, not an array of {array.ndim} dimensions")
        bad = ~((array >= 0) & np.isfinite(array))
        if bad.any():
            row = int(np.argmax(bad))
            raise DataError(f"row {row + 1}: the weight {array[row]:g} is not a finite number from 0 up")
        self.weight = Held(array)
        if self.n_rows is not None:
            self.set_rows(self.n_rows)

    @property
    def known_total(self) -> float | None:
        """The weight of all rows together, where it is known without reading them."""
        return float(self.n_rows) if self._total is None and self.n_rows is not None and not self.weighted else self._total

    def total_weight(self, names: Sequence[str]) -> float:
        """The weight of all rows together."""
        if self._total is None:
            if self.n_rows is None or self.weighted:
                self.require(names)
            weight, total = self.weight, Sum[float]()
            for i, (a, b) in enumerate(ranges(self.n_rows or 0)):
                total.add(i, float(b - a) if weight is None else float(self.rows(weight, a, b).sum()))
            self.set_total(total.value or 0.0)
        return self._total or 0.0

    @cached_property
    def whole_weights(self) -> bool:
        """Whether the rows have weights that are whole numbers."""
        weight = self.weight
        if weight is None or self.total_weight(()) >= 2**53:
            return False
        parts = (self.rows(weight, a, b) for a, b in ranges(self.n_rows or 0, SAMPLE))
        return all(bool((w == np.floor(w)).all()) for w in parts)

    def set_total(self, total: float) -> None:
        if total == 0:
            raise DataError("the weights of all rows are 0")
        self._total = total

    def redeclared(self, variables: Any) -> Store:
        """A store of the same rows with some columns declared otherwise."""
        declared = {**self.options.declared, **checked_variables(variables, self.source)}
        store = Store(self.source, replace(self.options, declared=declared), self._told)
        if self.options.weights is None:
            store.weight = self.weight
        return store

    def identifies(self, name: str) -> bool:
        """Whether a column has nearly as many inferred states as there are rows."""
        return identifies(self.read[name].variable, self.n_rows or 0)

    def _note(self, names: Sequence[str]) -> None:
        undeclared = [n for n in names if n not in self.options.declared]
        few = [n for n in undeclared if isinstance(self.read[n].variable, Real) and self.found[n].few]
        self._tell("few", few, _about_few)
        self._tell("same", [n for n in undeclared if self.identifies(n)], _about_identifiers)
        states = {n: v.states for n in undeclared if isinstance(v := self.read[n].variable, Finite) and v.inferred}
        text = [n for n in states if self.source.kind(n) is Kind.CELLS]
        spoiled = {n: words for n in text if (words := words_among_numbers(states[n])) and not self._codes(states[n], words)}
        self._tell("numbers", list(spoiled), lambda names: _about_numbers(names, [spoiled[n] for n in names]))
        marked = {n: marks for n in states if n not in spoiled and (marks := marks_among(states[n]))}
        self._tell("marks", list(marked), lambda names: _about_marks(names, [marked[n] for n in names]))

    def _codes(self, states: Sequence[str], words: Sequence[str]) -> bool:
        """Whether what is left without the words would be states all the same."""
        return self.options.integers is Finite and all(is_integer_text(s) for s in states if s not in words)

    def _tell(self, kind: str, names: Sequence[str], sentence: Callable[[Sequence[str]], str]) -> None:
        """Note something of columns; the user is told it of each of them once."""
        if names and sentence(names) not in self.notes:
            self.notes.append(sentence(names))
        untold = [n for n in names if (kind, n) not in self._told]
        self._told.update((kind, n) for n in untold)
        if untold:
            note(sentence(untold))

    def _say(self, message: str) -> None:
        self.notes.append(message)
        note(message)


def identifies(variable: Variable, n_rows: int) -> bool:
    """Whether a column has nearly as many inferred states as there are rows."""
    return isinstance(variable, Finite) and variable.inferred and variable.n_states > max(20, 0.9 * n_rows)


def _about_few(names: Sequence[str]) -> str:
    return (
        f"{listed(names)}: whole numbers with at most {FEW} different values, taken for real numbers; "
        "if they are codes of states, say so: integers=Finite or variables=, or --finite on the command line"
    )


def _about_identifiers(names: Sequence[str]) -> str:
    return f"{listed(names)}: nearly as many states as rows, as in an identifier; searches leave such columns out"


def _about_numbers(names: Sequence[str], words: Sequence[Sequence[str]]) -> str:
    found, remedy = _as_missing(words)
    return f"{listed(names)}: numbers but for {found}, and so taken for states; if that means a missing cell, say so: {remedy}"


def _about_marks(names: Sequence[str], words: Sequence[Sequence[str]]) -> str:
    found, remedy = _as_missing(words)
    return f"{listed(names)}: {found} is taken for a state, as only an empty cell is missing; if it means that, say so: {remedy}"


def _as_missing(words: Sequence[Sequence[str]]) -> tuple[str, str]:
    """Words for a sentence, and how to say that they mean a missing cell."""
    every = list(dict.fromkeys(w for some in words for w in some))
    options = " ".join(f"--missing {shlex.quote(w)}" for w in every)
    return listed(every), f"missing={json.dumps(every, ensure_ascii=False)}, or {options} on the command line"
