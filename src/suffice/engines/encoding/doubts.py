"""Doubts: what may have been meant otherwise about a column that nobody declared, and what says so.

A doubt is a few words in the table of the schema, and a sentence with the way out that is noted once when a learner reads the
column. Both come from what was found in the cells (`CellsFound`), which adds, so that every engine has the same doubts.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from suffice.basis.variables import Finite, NumbersStay, Variable, sorted_states
from suffice.engines.encoding.encode import MARKS, WITH_COMMA, number
from suffice.engines.encoding.infer import FEW, STATES, CellsFound, is_integer_text
from suffice.errors import listing, note
from suffice.errors.remedies import DECIMAL_COMMA, Remedy, argument, declaration, state_names

if TYPE_CHECKING:
    from suffice.engines.encoding.sources import Options

NUMBERS = 10
"""Different numbers beside which a word or two are noted, even if they are none of the marks."""

COLLISIONS = 10.0
"""Whole numbers that all differ are taken for identifiers if so many pairs of them would be equal by chance."""

_IDENTIFIER = re.compile(r"(?:^|[^a-z])(?:id|uid|key|index|row|nr|uuid|guid)$|(?<=[a-z])(?:ID|Id|Key|Index|Nr)$")


_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.](\d{2}|\d{4})( .*)?")


def words_among_numbers(states: Collection[str]) -> tuple[tuple[str, ...], bool]:
    """The one or two words in a column that would hold numbers without them, none if it is no such column; and whether it then is
    one of numbers with a comma in place of the decimal point."""
    words = tuple(islice((s for s in states if number(s) is None and not WITH_COMMA.fullmatch(s)), 3))
    if len(words) > 2 or (words and len(states) - len(words) < (2 if MARKS.issuperset(words) else NUMBERS)):
        return (), False
    commas = {s for s in states if WITH_COMMA.fullmatch(s)}
    return words, len(commas) >= 2 and all(map(is_integer_text, set(states).difference(commas, words)))


@dataclass(frozen=True)
class Cause:
    """A kind of doubt: what is said of columns, and of the `{words}` in them; the way out, by the first column and all doubts;
    and whether such columns only tell rows apart, so that searches leave them out."""

    said: str
    way: Callable[[str, Sequence[Doubt]], object] | None = None
    identifies: bool = False

    def sentence(self, about: Mapping[str, Doubt], names: Sequence[str]) -> str:
        """What is noted of some columns, by the doubts about these and others."""
        doubts = [about[n] for n in names]
        said = f"{listing(names)}: {self.said.format(words=listing(_every(doubts)))}"
        return said if self.way is None else f"{said}: {self.way(names[0], doubts)}"


@dataclass(frozen=True)
class Doubt:
    """What may have been meant otherwise about a column, in a few words; `words` are the cells that it is about."""

    kind: Cause
    short: str
    words: tuple[str, ...] = ()
    instead: tuple[str, ...] = ()
    """The states that may have been meant, where they are few."""


def doubts_about(
    variables: Mapping[str, Variable], found: Mapping[str, CellsFound], options: Options, n_rows: int
) -> dict[str, tuple[Doubt, ...]]:
    """The doubts about columns of which nothing was declared."""
    result: dict[str, tuple[Doubt, ...]] = {}
    for name, variable in variables.items():
        if options.declared.get(name, NumbersStay) is not NumbersStay:
            continue
        cells, some = found[name], tuple[Doubt, ...]()
        if cells.reading != "numbers" or (values := cells.values) is None:
            if isinstance(variable, Finite) and variable.inferred:
                some = tuple(_of_states(variable.states, cells, options, n_rows))
        elif isinstance(variable, Finite):
            n = variable.n_states
            some = (Doubt(CODED, f"numbers with {n} {'value' if n == 1 else 'values'}, taken for states"),)
        elif values.different is not None and _are_running(name, values.different):
            some = (Doubt(RUNNING, "whole numbers that all differ: an identifier?"),)
        elif values.few and values.whole and cells.integers and options.integers is None and name not in options.declared:
            some = (Doubt(FEW_NUMBERS, f"whole numbers with {len(values.few)} values: states?"),)
        if some:
            result[name] = some
    return result


def _are_running(name: str, x: npt.NDArray[np.float64]) -> bool:
    """Whether whole numbers that are all different are running numbers, or others that only tell rows apart: too many for that to
    be chance, or under a name that says so."""
    if len(x) < FEW:
        return False
    expected = len(x) * (len(x) - 1) / 2 / (x.max() - x.min() + 1)
    named = name in ("Unnamed: 0", "ID", "Id", "KEY", "INDEX", "NR") or _IDENTIFIER.search(name) is not None
    return bool(expected > COLLISIONS) or named


def _of_states(states: Sequence[str], found: CellsFound, options: Options, n_rows: int) -> Iterable[Doubt]:
    words, commas = words_among_numbers(states)
    # A minus beside a plus is no mark of a missing cell, nor is a full stop beside a comma.
    meant = {"?", "-", "."} if "," in states else {"-"} if "+" in states else set()
    if len(states) > FEW and (found.dates or all(map(_DATE.fullmatch, states))):
        yield Doubt(DATES, f"dates, {len(states):,} of them: an identifier?")
    elif commas and not words:
        yield Doubt(COMMAS if found.guessed else COMMAS_IN_TEXT, "numbers with decimal commas?")
    # Where whole numbers are to be states, they are such beside words, too.
    elif words and not (options.integers is Finite and all(is_integer_text(s) for s in states if s not in words)):
        yield Doubt(WORDS if found.guessed else WORDS_IN_TEXT, f"numbers but for {listing(words)}", words)
        if commas:
            yield Doubt(COMMAS if found.guessed else COMMAS_IN_TEXT, "with decimal commas?")
    elif not words and len(states) > max(FEW, 0.9 * n_rows):
        yield Doubt(NAMES, "nearly as many states as rows: an identifier?")
    elif marks := tuple(s for s in states if s in MARKS and s not in meant):
        yield Doubt(MARKED, f"{listing(marks)}: a missing cell?", marks)
    if twins := tuple(s for s in states if s != s.strip() and s.strip() in states):  # apart from blanks the same
        bare = sorted_states(s.strip() for s in states)
        some = tuple(bare) if len(bare) <= STATES else ()
        yield Doubt(BLANKS, f"{listing(twins, 2)} beside {listing([t.strip() for t in twins], 2)}: the same?", twins, some)


def _integers(kind: str, name: str, doubts: Sequence[Doubt]) -> Remedy:
    """What all whole numbers are, or one column."""
    all_columns, one = argument("integers", kind, kind.lower()), declaration(name, kind)
    return Remedy(f"scan(data, {all_columns.python}) or {one.python}", f"{all_columns.option}, or {one.option}")


def _declaration(kind: str, name: str, doubts: Sequence[Doubt]) -> Remedy:
    return declaration(name, kind)


def _as_missing(name: str, doubts: Sequence[Doubt]) -> Remedy:
    every = _every(doubts)
    words = ",".join(f'"{w}"' if "," in w or '"' in w else w for w in every)
    return Remedy(f"missing={json.dumps(every, ensure_ascii=False)}", f"--missing {shlex.quote(words)}")


def _missing_and_real(name: str, doubts: Sequence[Doubt]) -> str:
    return f"{_as_missing(name, doubts)} and {declaration(name, 'Real')}"


def _bare_states(name: str, doubts: Sequence[Doubt]) -> Remedy:
    return state_names(name, doubts[0].instead) if doubts[0].instead else declaration(name, "[...]")


def _every(doubts: Sequence[Doubt]) -> list[str]:
    return list(dict.fromkeys(w for doubt in doubts for w in doubt.words))


UNLESS = "searches leave such columns out, unless they are declared"
CODED = Cause("numbers with few different values, taken for states; if they are quantities, say so", partial(_integers, "Real"))
FEW_NUMBERS = Cause(
    f"whole numbers with at most {FEW} different values, taken for numbers; if they are codes of states, say so",
    partial(_integers, "Finite"),
)
RUNNING = Cause(f"whole numbers that all differ, as in an identifier; {UNLESS}", partial(_declaration, "Real"), True)
NAMES = Cause(f"nearly as many states as rows, as in an identifier; {UNLESS}", partial(_declaration, "Finite"), True)
DATES = Cause(f"dates, each of which is a state of its own; {UNLESS}", partial(_declaration, "Finite"), True)
COMMAS = Cause(f"numbers with decimal commas, as it seems, and so taken for states; if they are, say so: {DECIMAL_COMMA}")
WORDS = Cause("numbers but for {words}, and so taken for states; if that means a missing cell, say so", _as_missing)
MARKED = Cause("{words} is taken for a state, as only an empty cell is missing; if it means that, say so", _as_missing)
BLANKS = Cause(
    "{words} with blanks around it is another state than without; where states are declared, blanks do not count", _bare_states
)
# Of columns that are text by their type: no decimal mark or missing word makes them numbers, but a declaration does.
COMMAS_IN_TEXT = Cause(
    "text that looks like numbers with decimal commas, and so taken for states; if they are numbers, make the columns such before"
)
WORDS_IN_TEXT = Cause(
    "numbers but for {words}, as text, and so taken for states; if that means a missing cell, and the others are numbers, "
    "say both",
    _missing_and_real,
)


@dataclass
class Notes:
    """What was noted of columns. The user is told it of each of them once, also where they are read again (`told`)."""

    told: set[object]
    all: list[str] = field(default_factory=list)

    def look(self, doubts: Mapping[str, Sequence[Doubt]]) -> None:
        """Note the doubts about columns, those of one kind together."""
        for kind in dict.fromkeys(doubt.kind for some in doubts.values() for doubt in some):
            about = {n: doubt for n, some in doubts.items() for doubt in some if doubt.kind is kind}
            self.tell(kind, list(about), partial(kind.sentence, about))

    def tell(self, kind: object, names: Sequence[str], sentence: Callable[[Sequence[str]], str]) -> None:
        """Note something of columns."""
        if names and sentence(names) not in self.all:
            self.all.append(sentence(names))
        untold = [n for n in names if (kind, n) not in self.told]
        self.told.update((kind, n) for n in untold)
        if untold:
            note(sentence(untold))

    def say(self, message: str) -> None:
        """Note something else."""
        self.all.append(message)
        note(message)
