"""What Suffice says when it cannot do what was asked, and what it notes when it can.

Every refusal is a `SufficeError`: one sentence that names the file, line, variable or state, says what is wrong and, where
there is one, the way out. A note is a warning of the category `SufficeNote`; the command line prints it on standard error.
It uses nothing but `remedies`, the ways out in the words of Python and of the command line; `earlier` has the notes about 0.1.
"""

from __future__ import annotations

import difflib
import operator
import os
import re
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import partial
from numbers import Real
from typing import Literal, TextIO

from suffice.errors.remedies import argument, in_options, in_python

LONGEST = 500
"""Characters of a message, and no more: what a file holds may be in it."""


WAY_OUT = f" {argument('unknown', 'Missing()', 'missing')} takes such cells for missing"
"""How an error ends about a state that is not known, where it might be taken for missing."""


def printable(text: str, most: int = LONGEST) -> str:
    """A text as one line that does nothing to a terminal: what cannot be printed is escaped as `repr` does it, the middle of
    what is long is left out.

    >>> print(printable("a\\x1b[31m\\n"), printable("x" * 9, most=6))
    a\\x1b[31m\\n xxx…xx
    """
    if len(text) > most:
        text = text[:most] + text[-most:]
    if not text.isprintable():
        text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return text if len(text) <= most else f"{text[: most * 2 // 3 - 1]}…{text[len(text) - most // 3 :]}"


class Sentence(Exception):
    """What is said to the user, in one printable line, with ways out (`remedies.Remedy`): in Python, and in options."""

    @property
    def said(self) -> str:
        """The text with its ways out in both words, to be part of another."""
        return super().__str__()

    def __str__(self) -> str:
        return printable(in_python(self.said))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({str(self)!r})"

    def in_options(self) -> str:
        """The text with its ways out as the command line has them.

        >>> error = FitError(f"leave it out of {argument('shared')}")
        >>> str(error), error.in_options()
        ('leave it out of shared=', 'leave it out of --shared')
        """
        return printable(in_options(self.said))


class SufficeError(Sentence, ValueError):
    """The root of all refusals: catch this one to catch them all. What it says is one printable line.

    >>> from suffice import Dag
    >>> try:
    ...     Dag("a -> b -> a")
    ... except SufficeError as error:
    ...     print(error)
    the graph has a cycle: a -> b -> a
    """


class ArgumentError(SufficeError, TypeError):
    """A keyword that a call does not take."""


class GraphError(SufficeError):
    """A graph that cannot be: a cycle, a duplicate edge, an unknown name, text that is not a graph."""


class SchemaError(SufficeError):
    """A variable that cannot be: duplicate states, bins out of order, a type that does not fit the data."""


class DataError(SufficeError):
    """Rows that cannot be used: an unknown state, a missing column, a ragged line, a negative weight."""


class MissingCells(DataError):
    """Rows with missing cells where complete rows are needed."""


class StatisticsError(SufficeError):
    """Statistics that do not fit together, or do not answer the question."""


class ModelError(SufficeError):
    """A network that cannot be: wrong shapes, probabilities that do not sum to one, a question it cannot answer."""


class ImpossibleEvidence(ModelError):
    """Evidence that a network gives probability zero, so that nothing can be asked given it."""


class FitError(SufficeError):
    """An estimate that does not exist: too few rows, collinear parents, a mode on the boundary."""


class TooLarge(SufficeError):
    """Something that would not fit in memory, refused before any memory is taken, with its size."""


class FormatError(SufficeError):
    """A file that cannot be read or written, with its name and, where known, the line.

    >>> str(FormatError("the sum is 1.2, not 1", path="a.bif", line=3))
    'a.bif, line 3: the sum is 1.2, not 1'
    """

    def __init__(self, message: str, *, path: object = None, line: int | None = None) -> None:
        self.message, self.path, self.line = message, path, line
        where = ", ".join(([str(path)] if path is not None else []) + ([f"line {line}"] if line is not None else []))
        super().__init__(f"{where}: {message}" if where else message)

    def __reduce__(self) -> tuple[object, ...]:
        return partial(FormatError, self.message, path=self.path, line=self.line), ()

    def at(self, path: object) -> FormatError:
        """The same error with the name of the file, for a reader that saw only its text."""
        return FormatError(self.message, path=path, line=self.line)


class SufficeNote(Sentence, UserWarning):
    """Something the user should know about an answer that was given: a warning, which Python's filters hide or make an error.

    >>> from suffice import scan
    >>> with warnings.catch_warnings(record=True) as told:
    ...     warnings.simplefilter("always", SufficeNote)
    ...     kind = scan({"doses": [1, 2, 3] * 30}).schema["doses"]
    >>> kind.states, "taken for states" in str(told[0].message)
    (('1', '2', '3'), True)
    """


_kept: ContextVar[list[SufficeNote] | None] = ContextVar("kept notes", default=None)


@contextmanager
def notes_kept() -> Iterator[list[SufficeNote]]:
    """What is noted meanwhile, in a list instead of as warnings; what other threads note is told as always."""
    notes: list[SufficeNote] = []
    token = _kept.set(notes)
    try:
        yield notes
    finally:
        _kept.reset(token)


def note(message: str) -> None:
    """Tell the user something that is not an error, as from the user's own line, in one printable line."""
    told = SufficeNote(message)
    if (kept := _kept.get()) is not None:
        kept.append(told)
        return
    ours = ("suffice", "contextlib", "functools", "numba", "concurrent", "threading", "multiprocessing", "importlib")
    # A thread of a pool was not started by the user's line, but the main thread waits there for its results.
    for frame in (sys._getframe(1), sys._current_frames().get(threading.main_thread().ident or 0)):
        while frame is not None and str(frame.f_globals.get("__name__", "")).split(".")[0] in ours:
            frame = frame.f_back
        if frame is not None:
            registry = frame.f_globals.setdefault("__warningregistry__", {})
            module = frame.f_globals.get("__name__") or "<text>"  # of a module without a name nothing would be told
            warnings.warn_explicit(told, SufficeNote, frame.f_code.co_filename, frame.f_lineno, module, registry)
            return
    warnings.warn(told, stacklevel=2)


def say(message: str) -> None:
    """Print a message, of one line; that nobody reads it any more is no reason to stop the work."""
    try:
        print(printable(message, 2 * LONGEST), file=sys.stderr)
    except BrokenPipeError:
        nobody_reads(sys.stderr)


def nobody_reads(stream: TextIO) -> None:
    """Send what is still written to a closed pipe nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def nearest(name: str, known: Iterable[str], likeness: float = 0.6) -> str:
    """A hint that ends an error about an unknown name."""
    close = difflib.get_close_matches(name, list(known), n=1, cutoff=likeness)
    return f"; did you mean {close[0]!r}?" if close else ""


def listing(names: Iterable[object], limit: int = 8, style: Literal["repr", "str"] = "repr") -> str:
    """Names for a sentence, cut after `limit`.

    >>> listing(["a", "b"]), listing(range(20), limit=2)
    ("'a', 'b'", '0, 1 and 18 more')
    """
    items = [repr(n) if style == "repr" else str(n) for n in names]
    return ", ".join(items) if len(items) <= limit else f"{', '.join(items[:limit])} and {len(items) - limit} more"


def quantity(n: float, noun: str) -> str:
    """A number of things for a sentence.

    >>> quantity(1, "node"), quantity(2000, "more node"), quantity(1.5, "row")
    ('1 node', '2,000 more nodes', '1.5 rows')
    """
    return f"{n:,.10g} {noun}{'' if n == 1 else 's'}"


def whole(value: object, what: str, least: int, refusal: type[SufficeError] = FitError) -> int:
    """A whole number that is not too small, or a refusal that says what it is."""
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        number = least - 1
    if isinstance(value, bool) or number < least:
        raise refusal(f"{what} is a whole number of at least {least}, not {value!r}")
    return number


def checked_level(level: object) -> float:
    """The level of an interval."""
    share = float(level) if isinstance(level, Real) else 0.0
    if not 0.0 < share < 1.0:
        raise FitError(f"the level of an interval lies between 0 and 1, for instance 0.95; not {level!r}")
    return share


def bytes_in_words(n: float) -> str:
    """A size for a sentence.

    >>> bytes_in_words(8e9), bytes_in_words(512)
    ('7.5 GiB', '512 B')
    """
    for unit in ("B", "KiB", "MiB", "GiB", "TiB", "PiB"):
        if n < 1024:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n /= 1024
    return f"{n:.3g} EiB"


def bytes_of(limit: int | str | None) -> int:
    """A number of bytes from a number, or a text such as "2 GiB"; where nothing is said, from the environment.

    >>> bytes_of("2KiB"), bytes_of(100)
    (2048, 100)
    """
    limit = os.environ.get("SUFFICE_MEMORY_LIMIT", "1GiB") if limit is None else limit
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", str(limit), re.IGNORECASE)
    if match is None:
        raise DataError(f"a memory limit is a number of bytes or a text such as '2GiB', not {str(limit)!r}")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
